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
//! *Source*: the inference rules are veristrong.txt §5's pruning, run with reasons.

use crate::budget::Meter;
use crate::constrain::Nodes;
use crate::levels::Level;
use crate::observe::{Contradiction, INITIAL, Problem, Read, Refusal, Standing, Txn, normal, observe};
use crate::verdict::{Edge, EdgeKind, Options, Reason};
use crate::{rows, settle};
use history::{History, KeyId, OpId, Operation, Status, Transaction, TxnId, ValueId};
use std::cell::Cell;
use std::collections::VecDeque;

/// An argument: the edges of a cycle in order, and what else they rest on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Argument {
    pub(crate) edges: Vec<Edge>,
    pub(crate) support: Vec<Edge>,
}

/// How many suppositions may be nested.
const DEPTH_MAX: usize = 3;
/// How many cases may be looked at in all.
const CASES_MAX: usize = 64;
/// How many facts may be looked at in all: about a second.
const EFFORT_MAX: u64 = 50_000_000;

/// Argues that a tiny history has no explanation at a level. `None`: the argument would be too long.
pub(crate) fn argue(history: &History, level: Level, options: &Options) -> Option<Argument> {
    let problem = match observe(history, options) {
        Ok(problem) => problem,
        Err(Refusal::Contradiction(contradiction)) => return Some(of_contradiction(history, &contradiction)),
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => return None,
    };
    argue_problem(history, &problem, level, options)
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

/// What was spent on an argument.
#[derive(Debug)]
struct Effort<'o> {
    cases: Cell<usize>,
    facts: Cell<u64>,
    meter: Meter<'o>,
}

impl<'o> Effort<'o> {
    fn new(options: &'o Options) -> Self {
        Self { cases: Cell::new(0), facts: Cell::new(0), meter: options.budget.meter() }
    }

    fn spend(&self, facts: usize) {
        let spent = if self.meter.steps(facts).is_ok() { facts as u64 } else { EFFORT_MAX };
        self.facts.set(self.facts.get().saturating_add(spent));
    }

    fn is_spent(&self) -> bool {
        self.facts.get() > EFFORT_MAX
    }
}

/// Something that may have been.
#[derive(Clone, Copy)]
enum Case {
    Alternative(u32),
    TookEffect(Txn),
    TookNoEffect(Txn),
}

/// Where what was left depends on what was found, or on whether somebody took effect at all: argues for one case after
/// the other.
fn argue_cases(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
    effort: &Effort<'_>,
) -> Option<Argument> {
    let cases: Vec<Case> = match problem.matches.first() {
        Some(it) => {
            let is_possible = |it: &u32| problem.alternatives[*it as usize].is_possible;
            (it.first..it.end).filter(is_possible).map(Case::Alternative).collect()
        }
        None => {
            let mut facts = Facts::known(history, problem, level, options.clock_skew, effort);
            if let Some(cycle) = facts.refute(DEPTH_MAX) {
                let support = relevant(&cycle, facts.support);
                return Some(Argument { edges: cycle, support });
            }
            let open = problem.standing.iter().position(|&standing| standing == Standing::Maybe)? as Txn;
            vec![Case::TookNoEffect(open), Case::TookEffect(open)]
        }
    };
    let mut argument = Argument::default();
    for case in cases {
        effort.cases.set(effort.cases.get() + 1);
        if effort.cases.get() > CASES_MAX || effort.is_spent() {
            return None;
        }
        let mut supposed = problem.clone();
        let settled = match case {
            Case::Alternative(it) => settle::suppose(&mut supposed, it, &options.budget),
            Case::TookEffect(txn) => {
                settle::suppose_standing(&mut supposed, txn, Standing::In, &options.budget)
            }
            Case::TookNoEffect(txn) => {
                settle::suppose_standing(&mut supposed, txn, Standing::Out, &options.budget)
            }
        };
        let of_case = match settled {
            Ok(()) => argue_cases(history, &supposed, level, options, effort)?,
            Err(Refusal::Contradiction(contradiction)) => of_contradiction(history, &contradiction),
            Err(Refusal::Unsupported(_) | Refusal::Open(_)) => return None,
        };
        // The last case is the one shown; the others say why it is the last.
        let before = std::mem::replace(&mut argument.edges, of_case.edges);
        argument.support.extend(before.into_iter().chain(of_case.support));
    }
    Some(argument)
}

/// Of the orders that were inferred on the way, those that say why somebody on the cycle missed a version, and those that
/// these follow from. Everything else stays.
pub(crate) fn relevant(cycle: &[Edge], support: Vec<Edge>) -> Vec<Edge> {
    let is_order = |edge: &Edge| edge.kind == EdgeKind::Ww && matches!(edge.reason, Reason::Otherwise { .. });
    let mut missed: Vec<TxnId> = Vec::new();
    note_missed(cycle, &mut missed);
    support
        .iter()
        .filter(|edge| !is_order(edge))
        .for_each(|edge| note_missed(std::slice::from_ref(edge), &mut missed));
    let mut kept = vec![false; support.len()];
    // Each round follows what the last one kept.
    while let Some(next) = (0..support.len())
        .find(|&index| !kept[index] && (!is_order(&support[index]) || missed.contains(&support[index].to)))
    {
        kept[next] = true;
        note_missed(std::slice::from_ref(&support[next]), &mut missed);
    }
    let mut shown: Vec<Edge> = Vec::new();
    for (edge, _) in support.into_iter().zip(kept).filter(|(_, kept)| *kept) {
        if !shown.contains(&edge) && !cycle.contains(&edge) {
            shown.push(edge);
        }
    }
    shown
}

/// Notes whose versions were missed, also in what edges follow from.
fn note_missed(edges: &[Edge], missed: &mut Vec<TxnId>) {
    let mut open: Vec<&Edge> = edges.iter().collect();
    while let Some(edge) = open.pop() {
        match &edge.reason {
            Reason::Missed { .. } => missed.push(edge.to),
            Reason::Otherwise { because } => open.extend(because),
            _ => {}
        }
    }
}

/// Contradictions that need no order, as edges that speak for themselves.
pub(crate) fn of_contradiction(history: &History, contradiction: &Contradiction) -> Argument {
    let edges = match *contradiction {
        Contradiction::Internal { op } => internal(history, op),
        Contradiction::NonRepeatable { first, second } => non_repeatable(history, first, second),
        Contradiction::NoSource { op, key } => vec![bad_source(history, op, Some(key))],
        Contradiction::BadRows { op } => match rows::twice(&history.operation(op)) {
            Some(key) => vec![twice(history, op, key)],
            None => vec![bad_source(history, op, None)],
        },
        Contradiction::BrokenList { op } => vec![bad_source(history, op, None)],
        Contradiction::IncompatibleLists { first, second, key } => {
            [first, second].map(|read| bad_source(history, read, Some(key))).to_vec()
        }
    };
    Argument { edges, support: Vec::new() }
}

fn edge(history: &History, from: Option<TxnId>, to: TxnId, kind: EdgeKind, op: OpId, reason: Reason) -> Edge {
    Edge { from, to, kind, key: history.operation(op).key(), predicate: false, reason }
}

/// Whether an operation saw nothing at a key because of its predicate or its range.
fn is_by_predicate(history: &History, op: OpId, key: KeyId) -> bool {
    let operation = history.operation(op);
    rows::is_about_many(&operation)
        && !matches!(rows::row_of(&operation, key), value if value.is_known() && value != ValueId::ABSENT)
}

/// Two rows of one key: the second, as a rule, is what the transaction itself wrote.
fn twice(history: &History, read: OpId, key: KeyId) -> Edge {
    let txn = history.owner(read);
    let own = history.transaction(txn).ops().take_while(|&(op, _)| op < read);
    let write = own.filter(|(_, it)| it.key() == Some(key) && is_write(it)).last().map(|(op, _)| op);
    let from = write.map(|_| txn);
    let edge = edge(history, from, txn, EdgeKind::Wr, read, Reason::Saw { read, write });
    Edge { key: Some(key), ..edge }
}

/// The read that contradicts its transaction's own last write.
fn internal(history: &History, read: OpId) -> Vec<Edge> {
    let txn = history.owner(read);
    let key = history.operation(read).key();
    let own = history.transaction(txn).ops().take_while(|&(op, _)| op < read);
    let write = own.filter(|(_, it)| it.key() == key && is_write(it)).last();
    let Some((write, _)) = write else { return vec![bad_source(history, read, None)] };
    vec![edge(history, Some(txn), txn, EdgeKind::Rw, read, Reason::Missed { read, write })]
}

pub(crate) fn is_write(operation: &Operation<'_>) -> bool {
    matches!(operation, Operation::Write { .. } | Operation::Delete { .. } | Operation::Append { .. })
}

/// The operation that made a version.
pub(crate) fn write_op(history: &History, problem: &Problem, version: u32) -> OpId {
    let version = problem.versions[version as usize];
    let ops = history.transaction(problem.txns[version.txn as usize]).ops();
    let key = KeyId(version.key);
    let writes = ops.filter(|(_, it)| match it {
        Operation::Update { keys: Some(keys), .. } | Operation::DeleteWhere { keys: Some(keys), .. } => {
            keys.contains(&key)
        }
        Operation::Update { keys: None, set, .. } => {
            !set.is_known() || normal(history, *set) == version.value
        }
        Operation::DeleteWhere { keys: None, .. } => version.value == ValueId::ABSENT,
        it => it.key() == Some(key) && is_write(it),
    });
    writes.last().expect("a version has an operation that wrote it").0
}

/// Two reads of one key, or rows about it: the second saw a version that the first missed.
fn non_repeatable(history: &History, first: OpId, second: OpId) -> Vec<Edge> {
    let txn = history.owner(first);
    let key = differing(history, first, second);
    let newer = writers(history, second, key).next().map(|write| (second, first, write));
    let older = writers(history, first, key).next().map(|write| (first, second, write));
    let Some((saw, missed, write)) = newer.or(older) else { return vec![bad_source(history, second, key)] };
    let writer = history.owner(write);
    let at_key = |edge: Edge, op: OpId| Edge {
        key: edge.key.or(key),
        predicate: key.is_some_and(|key| is_by_predicate(history, op, key)),
        ..edge
    };
    let seen = Reason::Saw { read: saw, write: Some(write) };
    vec![
        at_key(edge(history, Some(writer), txn, EdgeKind::Wr, saw, seen), saw),
        at_key(
            edge(history, Some(txn), writer, EdgeKind::Rw, missed, Reason::Missed { read: missed, write }),
            missed,
        ),
    ]
}

/// A key at which two operations saw different things: the one that a read of a single key is about, also where lists
/// differ only without what the transaction appended in between.
fn differing(history: &History, first: OpId, second: OpId) -> Option<KeyId> {
    let operations = [history.operation(first), history.operation(second)];
    if let Some(key) = operations.iter().find_map(Operation::key) {
        return Some(key);
    }
    let rows = |operation: &Operation<'_>| match *operation {
        Operation::Scan { rows: Some(rows), .. }
        | Operation::Iterate { rows: Some(rows), .. }
        | Operation::Query { rows: Some(rows), .. } => rows.iter().map(|row| row.key).collect(),
        _ => Vec::new(),
    };
    let mut keys = operations.iter().flat_map(rows);
    keys.find(|&key| rows::row_of(&operations[0], key) != rows::row_of(&operations[1], key))
}

/// The operations of other transactions that wrote (the end of) what a read returned: those of transactions that took
/// effect first, and of these the ones that the clients' clocks make plausible.
fn writers(history: &History, read: OpId, key: Option<KeyId>) -> impl Iterator<Item = OpId> + '_ {
    let (key, value) = match (history.operation(read), key) {
        (Operation::Read { key, value, .. }, _) => (Some(key), value),
        (many, Some(key)) => (Some(key), rows::row_of(&many, key)),
        _ => (None, ValueId::UNKNOWN),
    };
    let last = history.values_of(value).last().copied();
    let reader = history.owner(read);
    let mut found: Vec<(bool, u8, OpId)> = Vec::new();
    for transaction in history.transactions().filter(|it| it.id() != reader) {
        for (op, operation) in transaction.ops() {
            let wrote = match operation {
                Operation::Write { key: at, value: it } => Some(at) == key && it == value,
                Operation::Delete { key: at } => Some(at) == key && value == ValueId::ABSENT,
                Operation::Append { key: at, value: it } => Some(at) == key && Some(it) == last,
                _ => false,
            };
            if wrote {
                let is_aborted = transaction.status() == Status::Aborted;
                found.push((is_aborted, plausibility(transaction, history.transaction(reader)), op));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(_, _, op)| op)
}

/// How far the clients' clocks let a reader have seen a writer: 0 where they overlap or do not say, 1 where the writer was
/// done before, 2 where it began too late.
fn plausibility(writer: Transaction<'_>, reader: Transaction<'_>) -> u8 {
    match (writer.client(), reader.client()) {
        (Some(writer), Some(reader)) if writer.begin > reader.end => 2,
        (Some(writer), Some(reader)) if writer.end < reader.begin => 1,
        _ => 0,
    }
}

/// A read that no version explains: who wrote it after all, or nobody.
pub(crate) fn bad_source(history: &History, read: OpId, key: Option<KeyId>) -> Edge {
    let txn = history.owner(read);
    let write = writers(history, read, key).next();
    let from = write.map(|write| history.owner(write));
    let edge = edge(history, from, txn, EdgeKind::Wr, read, Reason::Saw { read, write });
    Edge { key: edge.key.or(key), ..edge }
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
    nodes: Nodes,
    effort: &'a Effort<'a>,
    facts: Vec<Fact>,
    /// For each read the version it saw, once that is settled.
    sources: Vec<Option<u32>>,
    support: Vec<Edge>,
}

/// An open question's answer: `first` is overwritten by `second`.
type Answer = (u32, u32);

impl<'a> Facts<'a> {
    fn known(
        history: &'a History,
        problem: &'a Problem,
        level: Level,
        skew: i64,
        effort: &'a Effort<'a>,
    ) -> Self {
        let sources = problem.reads.iter().map(|read| read.is_known().then_some(read.source)).collect();
        let mut facts = Self {
            history,
            problem,
            nodes: Nodes::of(level),
            effort,
            facts: Vec::new(),
            sources,
            support: Vec::new(),
        };
        let live: Vec<Txn> =
            (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] == Standing::In).collect();
        for &txn in &live {
            if facts.nodes.points == 2 {
                facts.facts.push(Fact { from: facts.begin(txn), to: facts.commit(txn), edge: None });
            }
            let previous = problem.previous[txn as usize];
            if level.session && previous != u32::MAX {
                facts.add(previous, txn, EdgeKind::So, None, Reason::Session);
            }
        }
        if level.realtime {
            for &first in &live {
                for &second in &live {
                    if facts.ended_before(first, second, skew) {
                        facts.add(first, second, EdgeKind::Rt, None, Reason::Clock);
                    }
                }
            }
        }
        for &(first, second, by) in &problem.added {
            if facts.is_in(first) && facts.is_in(second) {
                let reason = Reason::Module { name: level.modules()[by as usize].name() };
                facts.add(first, second, EdgeKind::Added, None, reason);
            }
        }
        for read in &problem.reads {
            if read.is_known() && facts.is_in(read.txn) {
                facts.add_seen(read, read.source);
            }
        }
        for &(first, second) in &problem.chains {
            let reason =
                Reason::Overwrote { first: Some(facts.write_op(first)), second: facts.write_op(second) };
            facts.add(facts.writer(first), facts.writer(second), EdgeKind::Ww, Some(first), reason);
        }
        facts
    }

    fn is_in(&self, txn: Txn) -> bool {
        self.problem.standing[txn as usize] == Standing::In
    }

    fn ended_before(&self, first: Txn, second: Txn, skew: i64) -> bool {
        let span = |txn: Txn| self.history.transaction(self.id(txn));
        let (one, two) = (span(first), span(second));
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
    fn refute(&mut self, depth: usize) -> Option<Vec<Edge>> {
        loop {
            if let Some(cycle) = self.cycle() {
                return Some(cycle);
            }
            if self.effort.is_spent() {
                return None;
            }
            if self.conclude() {
                continue;
            }
            if depth == 0 || !self.suppose(depth) {
                return None;
            }
        }
    }

    /// One round of conclusions. False: there was nothing new.
    fn conclude(&mut self) -> bool {
        let before = self.facts.len();
        for index in 0..self.problem.reads.len() {
            let read = self.problem.reads[index];
            if !self.is_in(read.txn) || self.effort.is_spent() {
                continue;
            }
            match self.sources[index] {
                Some(source) => self.conclude_from_read(&read, source),
                None => self.conclude_source(index, &read),
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
        let source_txn = if source == INITIAL { u32::MAX } else { self.writer(source) };
        for other in self.other_versions(read.key, [source_txn, read.txn]) {
            let writer = self.writer(other);
            let rw = self.missed(read, other);
            if !self.has(rw.from, rw.to) {
                if source == INITIAL {
                    self.facts.push(rw.clone());
                } else if let Some(because) = self.path(self.commit(source_txn), self.commit(writer)) {
                    // W ⇝ S, so the reader of W comes before S.
                    match &because[..] {
                        [edge] if edge.kind == EdgeKind::Ww => {
                            // An order that was inferred is told with what it follows from.
                            let inferred = matches!(edge.reason, Reason::Otherwise { .. });
                            self.support.extend(inferred.then(|| edge.clone()));
                        }
                        _ => {
                            let key = Some(read.key);
                            let reason = Reason::Otherwise { because };
                            self.support.push(self.edge(source_txn, writer, EdgeKind::Ww, key, reason));
                        }
                    }
                    self.facts.push(rw.clone());
                }
            }
            if source != INITIAL && !self.has(self.commit(writer), self.begin(source_txn)) {
                // S ⇝ T, so S comes before W.
                if let Some(mut because) = self.path(self.commit(writer), self.begin(read.txn)) {
                    because.insert(0, rw.edge.expect("an anti-dependency is shown"));
                    self.add(writer, source_txn, EdgeKind::Ww, Some(other), Reason::Otherwise { because });
                }
            }
        }
    }

    fn has(&self, from: u32, to: u32) -> bool {
        self.effort.spend(self.facts.len() / 8);
        self.facts.iter().any(|fact| fact.from == from && fact.to == to)
    }

    /// Strikes out candidates that cannot be what a read saw.
    fn conclude_source(&mut self, index: usize, read: &Read) {
        let candidates: Vec<u32> = self.problem.candidates(read).collect();
        let mut left = Vec::new();
        let mut struck = Vec::new();
        for candidate in candidates {
            match self.why_not(read, candidate) {
                Some(mut because) => struck.append(&mut because),
                None => left.push(candidate),
            }
        }
        match left[..] {
            [only] => {
                self.sources[index] = Some(only);
                self.support.append(&mut struck);
                self.add_seen(read, only);
                if only == INITIAL {
                    // Something changed even if no edge says so.
                    self.conclude_from_read(read, only);
                }
            }
            [] => {
                // Every candidate is impossible: the cycle of the first one is as good as any.
                let first = self.problem.candidates(read).find(|&version| version != INITIAL);
                if let Some(first) = first {
                    self.sources[index] = Some(first);
                    self.add_seen(read, first);
                }
            }
            _ => {}
        }
    }

    /// The cycle that a candidate would close.
    fn why_not(&self, read: &Read, candidate: u32) -> Option<Vec<Edge>> {
        let reader = self.begin(read.txn);
        let candidate_txn = if candidate == INITIAL { u32::MAX } else { self.writer(candidate) };
        if candidate != INITIAL
            && let Some(path) = self.path(reader, self.commit(candidate_txn))
        {
            return Some(path);
        }
        for other in self.other_versions(read.key, [candidate_txn, read.txn]) {
            let writer = self.writer(other);
            let hidden = match candidate {
                INITIAL => Some(Vec::new()),
                _ => self.path(self.commit(candidate_txn), self.commit(writer)),
            };
            if let (Some(mut first), Some(mut second)) = (hidden, self.path(self.commit(writer), reader)) {
                first.append(&mut second);
                return Some(first);
            }
        }
        None
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
                let mut supposed = self.clone();
                supposed.take(answer, Reason::Otherwise { because: Vec::new() });
                if let Some(because) = supposed.refute(depth) {
                    self.take(opposite, Reason::Otherwise { because });
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
        let reason = match reason {
            Reason::Otherwise { because } if because.is_empty() => {
                Reason::Overwrote { first: Some(self.write_op(first)), second: self.write_op(second) }
            }
            reason => reason,
        };
        self.add(self.writer(first), self.writer(second), EdgeKind::Ww, Some(first), reason);
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
