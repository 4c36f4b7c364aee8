//! The argument: why a core has no explanation, edge by edge.
//!
//! *What*: works on the core, a tiny history, with plain facts "this point comes before that one", each
//! with its reason. It draws the two conclusions that reads allow until the facts close a cycle; where
//! they do not, it supposes one answer to an open question, shows that it closes a cycle, and takes the
//! other answer as a fact whose reason is that cycle.
//!
//! ```text
//!   T read W's version; S wrote the key too
//!     S ⇝ T   so   S before W     (else T would have missed S)
//!     W ⇝ S   so   T before S     (T saw the older version)
//! ```
//!
//! *Cost*: cubic in the size of the core, a handful of transactions; nothing here is used to decide.
//! *Source*: the inference rules are the pruning of VeriStrong (Cai et al., PVLDB 2026) §5, run with reasons.

mod direct;
pub(crate) mod must_see;
mod proof;

pub(crate) use direct::of_contradiction as direct_contradiction;
pub(crate) use direct::{
    effect, incompatible_lists, no_source, unexplained, unexplained_by, unexplained_value,
};
use history::{History, KeyId, OpId, Primitive, Status, TxnId, ValueId, WriteIf};
use isolation::{Argument, Case, Edge, EdgeKind, Level, Meter, Options, Reason, Supposition};
pub(crate) use proof::{Pending, all_struck, finished, shown_by, simplified};
use proof::{split, trimmed};
use search::constrain::Nodes;
use search::lists::normal;
use search::observe::{observe, observe_certain};
use search::problem::{INITIAL, NONE, Problem, Read, Standing, Txn};
use search::refusal::{Contradiction, Refusal};
use search::rows;
use search::settle;
use search::weak;
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

/// How many suppositions may be nested.
const DEPTH_MAX: usize = 3;
/// How many cases may be looked at in all.
const CASES_MAX: usize = 64;
/// How many facts may be looked at in all: about a second.
const EFFORT_MAX: u64 = 50_000_000;
/// How many candidates a read may have that is taken apart into cases.
const SPLIT_MAX: usize = 12;
/// How many transactions of unknown outcome may in turn be taken to have committed.
const UNKNOWN_MAX: usize = 4;

/// Argues that a tiny history has no explanation at a level. `None`: the argument would be too long.
pub(crate) fn argue(history: &History, level: Level, options: &Options) -> Option<Argument> {
    if let Some(argument) = incompatible_lists(history, options.ryow) {
        return Some(argument);
    }
    // What is certain follows from what was seen, step by step, unless predicate writes leave it open what was left.
    match observe_certain(history, options, &[]) {
        Ok(problem) if problem.matches.is_empty() => argue_problem(history, &problem, level, options),
        Ok(_) => match observe(history, options) {
            Ok(problem) => argue_problem(history, &problem, level, options),
            Err(Refusal::Contradiction(contradiction)) => {
                Some(of_contradiction(history, &contradiction, level, options))
            }
            Err(Refusal::Unsupported(_) | Refusal::Open(_)) => None,
        },
        Err(Refusal::Contradiction(contradiction)) => {
            Some(of_contradiction(history, &contradiction, level, options))
        }
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => None,
    }
}

/// Argues that a tiny problem, perhaps a part of a history's, has no explanation.
pub(crate) fn argue_problem(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
) -> Option<Argument> {
    argue_cases(history, problem, level, options, &Effort::new(options))
}

/// Contradictions that need no order, as edges that speak for themselves.
pub(crate) fn of_contradiction(
    history: &History,
    contradiction: &Contradiction,
    level: Level,
    options: &Options,
) -> Argument {
    of_contradiction_but(history, contradiction, level, options, &[])
}

/// As [`of_contradiction`], where some transactions of unknown outcome are taken to have committed.
pub(crate) fn of_contradiction_but(
    history: &History,
    contradiction: &Contradiction,
    level: Level,
    options: &Options,
    certain: &[TxnId],
) -> Argument {
    if let Some(argument) = direct::of_contradiction(history, contradiction, options.ryow) {
        return argument;
    }
    let (reads, key) = match *contradiction {
        Contradiction::NonRepeatable { first, second } => {
            (vec![first, second], differing(history, first, second))
        }
        Contradiction::NoSource { op, key } => (vec![op], Some(key)),
        _ => return Argument::default(),
    };
    let Some(key) = key else { return Argument::default() };
    // Of several operations one may be wrong by itself.
    let alone =
        |&op: &OpId| direct::of_contradiction(history, &Contradiction::NoSource { op, key }, options.ryow);
    if let Some(argument) = reads.iter().rev().find_map(alone) {
        return argument;
    }
    let asked = weak::Asked::of(history, level, options);
    // Two operations of one transaction that differ: the levels below tell them apart.
    if asked.is_none()
        && let Some(argument) = must_see::argue_apart(history, reads[0], key, level, options, certain)
    {
        return argument;
    }
    let observe = |taken: &[TxnId]| match &asked {
        Some(asked) => asked.observe_unsettled(history, options, taken),
        None => observe_certain(history, options, taken),
    };
    let again =
        |found: &Contradiction, taken: &[TxnId]| of_contradiction_but(history, found, level, options, taken);
    unsettled_writers(history, (&reads, key), certain, &observe, &again).unwrap_or_else(|| match reads[..] {
        [first, second] => direct::different(history, first, second, key),
        _ => direct::unordered(history, reads[0], key),
    })
}

/// Whoever wrote what was read is of unknown outcome: then it took effect, and what contradicts that is the reason.
fn unsettled_writers(
    history: &History,
    (reads, key): (&[OpId], KeyId),
    certain: &[TxnId],
    observe: &dyn Fn(&[TxnId]) -> Result<Problem, Refusal>,
    again: &dyn Fn(&Contradiction, &[TxnId]) -> Argument,
) -> Option<Argument> {
    let read = reads[0];
    let is_open = |write: &OpId| {
        let writer = history.owner(*write);
        history.transaction(writer).status() == Status::Unknown && !certain.contains(&writer)
    };
    if reads.len() > 1 || certain.len() >= UNKNOWN_MAX {
        return None;
    }
    let strike = |write: OpId| {
        let mut taken = certain.to_vec();
        taken.push(history.owner(write));
        let argument = match observe(&taken) {
            Err(Refusal::Contradiction(found)) => again(&found, &taken),
            // What it saw in turn may be of somebody who cannot have taken effect.
            _ => unexplained_by(history, history.owner(write)).or_else(|| {
                let own = history.transaction(history.owner(write)).primitives();
                let mut seen = own
                    .flat_map(|(op, it)| rows::returned(&it).map(|(key, _)| (op, key)).collect::<Vec<_>>());
                seen.find_map(|(op, key)| unsettled_writers(history, (&[op], key), &taken, observe, again))
            })?,
        };
        let suppose = Supposition::Source { read, key, write: Some(write) };
        (argument != Argument::default()).then_some(Case { suppose, argument })
    };
    let parts = direct::Sources::of_parts(history, read, key);
    let open =
        parts.into_iter().filter(|it| !it.initial && !it.fair.is_empty() && it.fair.iter().all(is_open));
    let mut struck = open.filter_map(|it| it.fair.into_iter().map(strike).collect::<Option<Vec<Case>>>());
    struck.next().map(|all| all_struck(history, all))
}

/// What was spent on an argument.
#[derive(Debug)]
pub(crate) struct Effort<'o> {
    cases: Cell<usize>,
    facts: Cell<u64>,
    meter: Meter<'o>,
}

impl<'o> Effort<'o> {
    pub(crate) fn new(options: &'o Options) -> Self {
        Self { cases: Cell::new(0), facts: Cell::new(0), meter: options.budget.meter() }
    }

    pub(crate) fn spend(&self, facts: usize) {
        let spent = if self.meter.steps(facts).is_ok() { facts as u64 } else { EFFORT_MAX };
        self.facts.set(self.facts.get().saturating_add(spent));
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.facts.get() > EFFORT_MAX
    }
}

/// Where what was left depends on what was found: argues for one case after the other.
fn argue_cases(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
    effort: &Effort<'_>,
) -> Option<Argument> {
    let Some(open) = problem.matches.first() else {
        return Facts::known(history, problem, level, options, effort).refute(DEPTH_MAX);
    };
    let mut all = Vec::new();
    let is_possible = |it: &u32| problem.alternatives[*it as usize].is_possible;
    let possible = || (open.first..open.end).filter(is_possible);
    let tells_found = possible().all(|case| found(history, problem, case).is_some());
    for case in possible() {
        effort.cases.set(effort.cases.get() + 1);
        if effort.cases.get() > CASES_MAX || effort.is_spent() {
            return None;
        }
        let changed = problem.alternatives[case as usize].version != NONE;
        let suppose = match found(history, problem, case).filter(|_| tells_found) {
            Some((read, write)) => Supposition::Source { read, key: KeyId(open.key), write },
            None => Supposition::Changed { op: open.op, key: KeyId(open.key), changed },
        };
        let mut supposed = problem.clone();
        let argument = match settle::suppose(&mut supposed, case, &options.budget) {
            Ok(()) => argue_cases(history, &supposed, level, options, effort)?,
            Err(Refusal::Contradiction(contradiction)) => {
                of_contradiction(history, &contradiction, level, options)
            }
            Err(Refusal::Unsupported(_) | Refusal::Open(_)) => return None,
        };
        all.push(Case { suppose, argument });
    }
    match all.len() {
        0 => Some(direct::unfit(history, open.op, KeyId(open.key))),
        1 => all.pop().map(|only| only.argument),
        _ => Some(split(history, all)),
    }
}

/// The version that an operation found in an alternative, where that is one: the operation, and the write that made it.
fn found(history: &History, problem: &Problem, alternative: u32) -> Option<(OpId, Option<OpId>)> {
    let read = problem.reads.get(problem.alternatives[alternative as usize].read as usize)?;
    let write = || (read.source != INITIAL).then(|| write_op(history, problem, read.source));
    read.is_known().then(|| (read.op, write()))
}

/// Whether what some predicate write left depends on what it found.
fn has_open_writes(history: &History) -> bool {
    let mut all = history.transactions().flat_map(|it| it.primitives());
    all.any(|(_, it)| it.is_open_write())
}

/// Whether an operation saw nothing at a key because of its predicate or its range.
fn is_by_predicate(history: &History, op: OpId, key: KeyId) -> bool {
    let operation = history.primitive(op);
    rows::is_about_many(&operation)
        && !matches!(rows::row_of(&operation, key), value if value.is_known() && value != ValueId::ABSENT)
}

/// The operation that made a version.
pub(crate) fn write_op(history: &History, problem: &Problem, version: u32) -> OpId {
    let version = problem.versions[version as usize];
    let ops = history.transaction(problem.txns[version.txn as usize]).primitives();
    let key = KeyId(version.key);
    let mut writes = ops.filter(|(_, it)| match it {
        Primitive::WriteIf(WriteIf { keys: None, set, .. }) => {
            it.may_have_written(key) && (!set.is_known() || normal(history, *set) == version.value)
        }
        it => it.certainly_wrote(key),
    });
    writes.next_back().expect("a version has an operation that wrote it").0
}

/// A key at which two operations saw different things: the one that a read of a single key is about, also where lists
/// differ only without what the transaction appended in between.
fn differing(history: &History, first: OpId, second: OpId) -> Option<KeyId> {
    let operations = [history.primitive(first), history.primitive(second)];
    operations.iter().find_map(Primitive::key).or_else(|| direct::differing(history, first, second))
}

/// One point comes before another.
#[derive(Clone, Debug)]
struct Fact {
    from: u32,
    to: u32,
    /// What to show for it; `None` for a transaction's own begin before its commit.
    edge: Option<Edge>,
}

/// What is known so far.
#[derive(Clone)]
struct Facts<'a> {
    history: &'a History,
    problem: &'a Problem,
    level: Level,
    options: &'a Options,
    nodes: Nodes,
    effort: &'a Effort<'a>,
    /// Who took effect as far as is known here.
    is_in: Vec<bool>,
    facts: Vec<Fact>,
    /// For each read the version it saw, once that is settled.
    sources: Vec<Option<u32>>,
    /// Orders that others follow from without being facts, and reads that show that somebody took effect.
    support: Vec<Edge>,
    /// How much of that was there before this was supposed.
    base: usize,
    /// Reads of which all candidates but one were struck out.
    pending: Vec<Pending>,
    /// Whether transactions that contradict themselves are candidates, too: whatever strikes them out is reported.
    tells_all: bool,
}

/// An open question's answer: `first` is overwritten by `second`.
type Answer = (u32, u32);

impl<'a> Facts<'a> {
    fn known(
        history: &'a History,
        problem: &'a Problem,
        level: Level,
        options: &'a Options,
        effort: &'a Effort<'a>,
    ) -> Self {
        let sources = problem.reads.iter().map(|read| problem.certain_source(read)).collect();
        let mut facts = Self {
            history,
            problem,
            level,
            options,
            nodes: Nodes::of(level),
            effort,
            is_in: vec![false; problem.len()],
            facts: Vec::new(),
            sources,
            support: Vec::new(),
            base: 0,
            pending: Vec::new(),
            tells_all: !has_open_writes(history),
        };
        let live: Vec<Txn> =
            (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] == Standing::In).collect();
        live.into_iter().for_each(|txn| facts.activate(txn));
        facts
    }

    /// A transaction took effect: everything that follows of it and of those whose writes it certainly saw.
    fn activate(&mut self, txn: Txn) {
        let mut work = vec![txn];
        while let Some(txn) = work.pop() {
            if std::mem::replace(&mut self.is_in[txn as usize], true) {
                continue;
            }
            self.add_orders(txn);
            for index in self.problem.read_ids(txn) {
                let read = self.problem.reads[index];
                if let Some(source) = self.sources[index].filter(|&source| source < INITIAL) {
                    let writer = self.writer(source);
                    self.add_seen(&read, source);
                    if !self.is_in(writer) {
                        self.support.extend(self.facts.last().and_then(|fact| fact.edge.clone()));
                        work.push(writer);
                    }
                }
            }
        }
    }

    /// The orders that one more transaction brings.
    fn add_orders(&mut self, txn: Txn) {
        if self.nodes.points == 2 {
            self.facts.push(Fact { from: self.begin(txn), to: self.commit(txn), edge: None });
        }
        let previous = self.problem.previous[txn as usize];
        if self.level.session && previous != NONE && self.is_in(previous) {
            self.add(previous, txn, EdgeKind::So, None, Reason::Session);
        }
        let others: Vec<Txn> =
            (0..self.problem.len() as Txn).filter(|&it| self.is_in(it) && it != txn).collect();
        for other in others {
            if self.level.session && self.problem.previous[other as usize] == txn {
                self.add(txn, other, EdgeKind::So, None, Reason::Session);
            }
            for (first, second) in [(txn, other), (other, txn)] {
                if self.level.realtime && self.ended_before(first, second) {
                    self.add(first, second, EdgeKind::Rt, None, Reason::Clock);
                }
            }
        }
        for &(first, second, by) in &self.problem.added {
            if [first, second].contains(&txn) && self.is_in(first) && self.is_in(second) {
                let reason = Reason::Module { name: self.level.modules()[by as usize].name() };
                self.add(first, second, EdgeKind::Added, None, reason);
            }
        }
        for &(first, second) in &self.problem.chains {
            let ends = [self.writer(first), self.writer(second)];
            // Lists that contradict each other put a version before itself; no step says why.
            if ends[0] != ends[1] && ends.contains(&txn) && ends.iter().all(|&it| self.is_in(it)) {
                let (one, two) = (self.write_op(first), self.write_op(second));
                let shown = shown_by(self.history, one, two);
                let reason = Reason::Overwrote { first: Some(one), second: two, shown };
                self.add(ends[0], ends[1], EdgeKind::Ww, Some(first), reason);
            }
        }
    }

    fn is_in(&self, txn: Txn) -> bool {
        self.is_in[txn as usize]
    }

    fn ended_before(&self, first: Txn, second: Txn) -> bool {
        let span = |txn: Txn| self.history.transaction(self.id(txn));
        let (one, two) = (span(first), span(second));
        let skew = self.options.clock_skew;
        one.is_committed()
            && one.client().zip(two.client()).is_some_and(|(a, b)| a.end.saturating_add(skew) < b.begin)
    }

    fn begin(&self, txn: Txn) -> u32 {
        self.nodes.begin(txn)
    }

    fn commit(&self, txn: Txn) -> u32 {
        self.nodes.commit(txn)
    }

    fn id(&self, txn: Txn) -> TxnId {
        self.problem.txns[txn as usize]
    }

    fn writer(&self, version: u32) -> Txn {
        self.problem.versions[version as usize].txn
    }

    fn write_op(&self, version: u32) -> OpId {
        write_op(self.history, self.problem, version)
    }

    fn edge(&self, from: Txn, to: Txn, kind: EdgeKind, key: Option<u32>, reason: Reason) -> Edge {
        let key = key.map(KeyId);
        Edge { from: Some(self.id(from)), to: self.id(to), kind, key, predicate: false, reason }
    }

    /// Adds commit(from) → begin(to), what all kinds but `rw` mean. `version` names the key.
    fn add(&mut self, from: Txn, to: Txn, kind: EdgeKind, version: Option<u32>, reason: Reason) {
        let key = version.map(|version| self.problem.versions[version as usize].key);
        let edge = self.edge(from, to, kind, key, reason);
        self.facts.push(Fact { from: self.commit(from), to: self.begin(to), edge: Some(edge) });
    }

    fn add_seen(&mut self, read: &Read, source: u32) {
        if source == INITIAL {
            return;
        }
        let reason = Reason::Saw { read: read.op, write: Some(self.write_op(source)) };
        self.add(self.writer(source), read.txn, EdgeKind::Wr, Some(source), reason);
        if let Some(Fact { edge: Some(edge), .. }) = self.facts.last_mut() {
            edge.predicate = is_by_predicate(self.history, read.op, KeyId(read.key));
        }
    }

    fn missed(&self, read: &Read, version: u32) -> Fact {
        let writer = self.writer(version);
        let reason = Reason::Missed { read: read.op, write: self.write_op(version) };
        let mut edge = self.edge(read.txn, writer, EdgeKind::Rw, Some(read.key), reason);
        edge.predicate = is_by_predicate(self.history, read.op, KeyId(read.key));
        Fact { from: self.begin(read.txn), to: self.commit(writer), edge: Some(edge) }
    }

    // ---- paths ----

    /// The shortest chain of facts from one point to another, as edges to show.
    fn path(&self, from: u32, to: u32) -> Option<Vec<Edge>> {
        self.path_over(from, to, |_| true)
    }

    fn path_over(&self, from: u32, to: u32, usable: impl Fn(&Fact) -> bool) -> Option<Vec<Edge>> {
        if from == to {
            return Some(Vec::new());
        }
        let nodes = self.problem.len() * self.nodes.points as usize;
        self.effort.spend(nodes + self.facts.len());
        let mut via: Vec<Option<usize>> = vec![None; nodes];
        let mut queue = VecDeque::from([from]);
        let mut leaving: Vec<Vec<usize>> = vec![Vec::new(); nodes];
        for (index, fact) in self.facts.iter().enumerate().filter(|(_, fact)| usable(fact)) {
            leaving[fact.from as usize].push(index);
        }
        while let Some(at) = queue.pop_front() {
            for (index, fact) in leaving[at as usize].iter().map(|&index| (index, &self.facts[index])) {
                if via[fact.to as usize].is_some() || fact.to == from {
                    continue;
                }
                via[fact.to as usize] = Some(index);
                if fact.to == to {
                    return Some(self.unwind(from, to, &via));
                }
                queue.push_back(fact.to);
            }
        }
        None
    }

    fn unwind(&self, from: u32, to: u32, via: &[Option<usize>]) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut at = to;
        while at != from {
            let fact = &self.facts[via[at as usize].expect("the search came this way")];
            edges.extend(fact.edge.clone());
            at = fact.from;
        }
        edges.reverse();
        edges
    }

    /// The shortest cycle, if there is one; of what was seen directly rather than of what was inferred.
    fn cycle(&self) -> Option<Vec<Edge>> {
        let seen = |fact: &Fact| !matches!(fact.edge, Some(Edge { reason: Reason::Otherwise { .. }, .. }));
        self.cycle_over(seen).or_else(|| self.cycle_over(|_| true))
    }

    fn cycle_over(&self, usable: impl Fn(&Fact) -> bool) -> Option<Vec<Edge>> {
        let mut best: Option<Vec<Edge>> = None;
        for fact in self.facts.iter().filter(|fact| fact.edge.is_some() && usable(fact)) {
            if let Some(mut back) = self.path_over(fact.to, fact.from, &usable)
                && best.as_ref().is_none_or(|best| back.len() + 1 < best.len())
            {
                back.insert(0, fact.edge.clone().expect("only facts to show were asked"));
                best = Some(back);
            }
        }
        best
    }

    // ---- conclusions ----

    /// Draws conclusions until the facts close a cycle; supposes answers where that is not enough.
    fn refute(&mut self, depth: usize) -> Option<Argument> {
        loop {
            if let Some(cycle) = self.cycle() {
                return Some(self.finish(Argument::new(cycle, Vec::new())));
            }
            if self.effort.is_spent() {
                return None;
            }
            if self.conclude() {
                continue;
            }
            match self.strike() {
                Some(Some(argument)) => return Some(self.finish(argument)),
                Some(None) => continue,
                None => {}
            }
            if depth == 0 {
                return None;
            }
            if !self.suppose(depth) {
                let argument = self.split(depth - 1)?;
                return Some(self.finish(argument));
            }
        }
    }

    /// An argument with what it rests on, as a case of each read whose other candidates were struck out.
    fn finish(&mut self, argument: Argument) -> Argument {
        finished(self.history, argument, &self.support[self.base..], std::mem::take(&mut self.pending))
    }

    /// The same facts, where something more is supposed.
    fn branch(&self) -> Self {
        self.effort.spend(self.facts.len());
        Self { pending: Vec::new(), base: self.support.len(), ..self.clone() }
    }

    /// One round of conclusions. False: there was nothing new.
    fn conclude(&mut self) -> bool {
        let before = self.facts.len();
        for index in 0..self.problem.reads.len() {
            let read = self.problem.reads[index];
            if !self.is_in(read.txn) || self.effort.is_spent() {
                continue;
            }
            if let Some(source) = self.sources[index] {
                self.conclude_from_read(&read, source);
            }
        }
        if self.nodes.points == 2 {
            self.conclude_overlaps();
        }
        self.facts.len() > before
    }

    fn other_versions(&self, key: u32, but: [Txn; 2]) -> Vec<u32> {
        let of_key = self.problem.versions_of_key(key).iter().map(|&(_, version)| version);
        of_key
            .filter(|&version| !but.contains(&self.writer(version)) && self.is_in(self.writer(version)))
            .collect()
    }

    fn conclude_from_read(&mut self, read: &Read, source: u32) {
        let source_txn = if source == INITIAL { NONE } else { self.writer(source) };
        for other in self.other_versions(read.key, [source_txn, read.txn]) {
            let writer = self.writer(other);
            let rw = self.missed(read, other);
            if !self.has(rw.from, rw.to) {
                if source == INITIAL {
                    self.facts.push(rw.clone());
                } else if let Some(because) = self.path(self.commit(source_txn), self.commit(writer)) {
                    // W ⇝ S, so the reader of W comes before S.
                    self.show_behind(source_txn, writer, read.key, because);
                    self.facts.push(rw.clone());
                }
            }
            if source != INITIAL && !self.has(self.commit(writer), self.begin(source_txn)) {
                // S ⇝ T, so S comes before W.
                if let Some(mut because) = self.path(self.commit(writer), self.begin(read.txn)) {
                    because.insert(0, rw.edge.expect("an anti-dependency is shown"));
                    let because = self.because(because);
                    self.add(writer, source_txn, EdgeKind::Ww, Some(other), Reason::Otherwise { because });
                }
            }
        }
    }

    /// That a source comes before what was missed, where no single edge says so.
    fn show_behind(&mut self, source: Txn, missed: Txn, key: u32, because: Vec<Edge>) {
        match &because[..] {
            [edge] if edge.kind == EdgeKind::Ww => {
                // An order that was inferred is reported with what it follows from.
                let inferred = matches!(edge.reason, Reason::Otherwise { .. });
                self.support.extend(inferred.then(|| edge.clone()));
            }
            _ => {
                let because = self.because(because);
                let reason = Reason::Otherwise { because };
                self.support.push(self.edge(source, missed, EdgeKind::Ww, Some(key), reason));
            }
        }
    }

    /// What an inferred order follows from. What this relies on in turn is found when the whole argument is there.
    fn because(&self, edges: Vec<Edge>) -> Arc<Argument> {
        Arc::new(Argument::new(edges, Vec::new()))
    }

    fn has(&self, from: u32, to: u32) -> bool {
        self.effort.spend(self.facts.len() / 8);
        self.facts.iter().any(|fact| fact.from == from && fact.to == to)
    }

    /// What a read can have seen, as far as nothing is concluded: also from those who contradict themselves.
    fn candidates(&self, read: &Read) -> Vec<u32> {
        match self.tells_all {
            _ if read.is_known() => vec![read.source],
            true => self.problem.all_candidates(read).collect(),
            false => self.problem.candidates(read).collect(),
        }
    }

    /// Looks for a read of which all candidates but one, or all, cannot be what it saw. The outer `None`: there is none;
    /// the inner one: one candidate was left, and is known now.
    fn strike(&mut self) -> Option<Option<Argument>> {
        for index in 0..self.problem.reads.len() {
            let read = self.problem.reads[index];
            if self.sources[index].is_some() || !self.is_in(read.txn) {
                continue;
            }
            let mut left = Vec::new();
            let mut struck = Vec::new();
            for candidate in self.candidates(&read) {
                match self.why_not(&read, candidate) {
                    Some(argument) => {
                        struck.push(Case { suppose: self.supposition(&read, candidate), argument });
                    }
                    None => left.push(candidate),
                }
                if left.len() > 1 || self.effort.is_spent() {
                    break;
                }
            }
            match left[..] {
                [] if !struck.is_empty() => return Some(Some(all_struck(self.history, struck))),
                [only] if !self.problem.is_out(only) => {
                    let suppose = self.supposition(&read, only);
                    let place = self.support.len() - self.base;
                    self.pending.push(Pending::new(self.history, suppose, struck, place));
                    self.saw(index, only);
                    return Some(None);
                }
                _ => {}
            }
        }
        None
    }

    fn supposition(&self, read: &Read, candidate: u32) -> Supposition {
        let write = (candidate != INITIAL).then(|| self.write_op(candidate));
        Supposition::Source { read: read.op, key: KeyId(read.key), write }
    }

    /// A read saw this version.
    fn saw(&mut self, index: usize, version: u32) {
        let read = self.problem.reads[index];
        self.sources[index] = Some(version);
        if version != INITIAL {
            self.add_seen(&read, version);
            self.activate(self.writer(version));
        }
    }

    /// The cycle that a candidate would close, or why its transaction did not take effect.
    fn why_not(&self, read: &Read, candidate: u32) -> Option<Argument> {
        let reader = self.begin(read.txn);
        let mut branch = self.branch();
        let told = |branch: &Self, cycle: Vec<Edge>| {
            let cycle = Argument::new(cycle, Vec::new());
            Some(trimmed(self.history, cycle, &branch.support[branch.base..]))
        };
        let (writer, commit) = match candidate {
            INITIAL => (NONE, None),
            _ => (self.writer(candidate), Some(self.commit(self.writer(candidate)))),
        };
        if let Some(mut cycle) = commit.and_then(|commit| self.path(reader, commit)) {
            branch.add_seen(read, candidate);
            cycle.push(branch.facts.pop()?.edge?);
            return told(&branch, cycle);
        }
        for other in self.other_versions(read.key, [writer, read.txn]) {
            let seen = self.commit(self.writer(other));
            let behind = commit.map_or(Some(Vec::new()), |commit| self.path(commit, seen));
            if let (Some(behind), Some(mut cycle)) = (behind, self.path(seen, reader)) {
                if candidate != INITIAL {
                    branch.show_behind(writer, self.writer(other), read.key, behind);
                }
                cycle.push(self.missed(read, other).edge?);
                return told(&branch, cycle);
            }
        }
        if candidate == INITIAL { None } else { self.why_out(writer) }
    }

    /// Why somebody of unknown outcome did not take effect, whatever others did.
    fn why_out(&self, txn: Txn) -> Option<Argument> {
        let id = self.id(txn);
        if self.problem.standing[txn as usize] != Standing::Out
            || self.history.transaction(id).status() != Status::Unknown
        {
            return None;
        }
        match observe_certain(self.history, self.options, &[id]) {
            Err(Refusal::Contradiction(found)) => {
                let argument = of_contradiction_but(self.history, &found, self.level, self.options, &[id]);
                (argument != Argument::default()).then_some(argument)
            }
            _ => None,
        }
    }

    /// Snapshot isolation: writers of one key do not overlap.
    fn conclude_overlaps(&mut self) {
        for key in 0..self.problem.keys() as u32 {
            let versions = self.other_versions(key, [u32::MAX, u32::MAX]);
            for &first in &versions {
                for &second in versions.iter().filter(|&&second| second != first) {
                    let (one, two) = (self.writer(first), self.writer(second));
                    if self.has(self.commit(one), self.begin(two)) {
                        continue;
                    }
                    if let Some(because) = self.path(self.begin(one), self.commit(two)) {
                        let because = self.because(because);
                        self.add(one, two, EdgeKind::Ww, Some(first), Reason::Otherwise { because });
                    }
                }
            }
        }
    }

    /// Supposes one answer after the other to open questions until one is refuted; its opposite is a fact.
    fn suppose(&mut self, depth: usize) -> bool {
        for depth in 0..depth {
            for (answer, opposite) in self.open_questions() {
                let mut supposed = self.branch();
                supposed.take(answer, Reason::Supposed);
                if let Some(because) = supposed.refute(depth) {
                    self.take(opposite, Reason::Otherwise { because: Arc::new(because) });
                    return true;
                }
                if self.effort.is_spent() {
                    return false;
                }
            }
        }
        false
    }

    fn take(&mut self, (first, second): Answer, reason: Reason) {
        self.add(self.writer(first), self.writer(second), EdgeKind::Ww, Some(first), reason);
    }

    /// Takes a read with few candidates apart: each of them is refuted by itself.
    fn split(&mut self, depth: usize) -> Option<Argument> {
        let open =
            |&index: &usize| self.sources[index].is_none() && self.is_in(self.problem.reads[index].txn);
        let mut reads: Vec<(usize, usize)> = (0..self.problem.reads.len())
            .filter(open)
            .map(|index| (self.candidates(&self.problem.reads[index]).len(), index))
            .filter(|&(count, _)| count <= SPLIT_MAX)
            .collect();
        reads.sort_unstable();
        for (_, index) in reads {
            if let Some(argument) = self.split_read(index, depth) {
                return Some(argument);
            }
            if self.effort.is_spent() {
                return None;
            }
        }
        None
    }

    fn split_read(&self, index: usize, depth: usize) -> Option<Argument> {
        let read = self.problem.reads[index];
        let mut cases = Vec::new();
        for candidate in self.candidates(&read) {
            let suppose = self.supposition(&read, candidate);
            let argument = match self.why_not(&read, candidate) {
                Some(argument) => argument,
                None if self.problem.is_out(candidate) => return None,
                None => {
                    let mut branch = self.branch();
                    branch.saw(index, candidate);
                    branch.refute(depth)?
                }
            };
            cases.push(Case { suppose, argument });
        }
        Some(all_struck(self.history, cases))
    }

    /// Pairs of versions whose order is open and matters, each with either answer first.
    fn open_questions(&self) -> Vec<(Answer, Answer)> {
        let mut questions = Vec::new();
        for key in 0..self.problem.keys() as u32 {
            let versions = self.other_versions(key, [u32::MAX, u32::MAX]);
            for (place, &first) in versions.iter().enumerate() {
                for &second in &versions[place + 1..] {
                    let (one, two) = (self.writer(first), self.writer(second));
                    let settled = self.path(self.commit(one), self.begin(two)).is_some()
                        || self.path(self.commit(two), self.begin(one)).is_some();
                    if !settled {
                        questions.push(((first, second), (second, first)));
                        questions.push(((second, first), (first, second)));
                    }
                }
            }
        }
        questions
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    /// A lock that was taken twice more often than it was let go: every read may have seen any of dozens of writes, and no
    /// short argument says why none will do. The search for one ends, and not after a thousandfold of what it may cost.
    #[test]
    fn the_search_for_an_argument_ends() {
        let taken = (0..40).map(|it| format!("t{it}: r(lock,0) w(lock,1)\n"));
        let let_go = (0..38).map(|it| format!("g{it}: r(lock,1) w(lock,0)\n"));
        let text: String = std::iter::once("init: lock=0\n".to_owned()).chain(taken).chain(let_go).collect();
        let history = notation::parse(&text).expect("the notation is right");
        let options = Options::default();
        let problem = observe(&history, &options).expect("nobody contradicts itself");
        let effort = Effort::new(&options);
        let argument = argue_cases(&history, &problem, Level::SERIALIZABLE, &options, &effort);
        assert!(argument.is_none(), "{:?}", argument.map(|it| it.edges));
        let spent = effort.facts.get();
        assert!((EFFORT_MAX..2 * EFFORT_MAX).contains(&spent), "{spent} facts");
    }
}
