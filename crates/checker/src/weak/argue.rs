//! Why a core has no explanation at a level, edge by edge.
//!
//! *What*: works on the core, a tiny history, with facts "this transaction commits before that one", each an edge with
//! its reason. Where a read must see a writer that is known to come after what it saw, the chain that shows it must be
//! seen and the anti-dependency close the cycle that the level forbids. Where that order is open, it follows that the
//! writer comes before the source; facts that close a cycle end the argument too. Where neither helps, one order of
//! two versions is supposed and refuted, and its opposite becomes a fact.
//!
//! An ambiguous read is argued for the first of its candidates: all are impossible, one shows how.
//!
//! *Cost*: cubic in the size of the core; nothing here is used to decide.

use super::{Asked, Setting, Sight, Strict, marked};
use crate::explain::{Argument, bad_source, of_contradiction, relevant, write_op};
use crate::levels::{Level, Rule};
use crate::observe::{INITIAL, NONE, Problem, Refusal, Standing, Txn, normal};
use crate::verdict::{Edge, EdgeKind, Options, Reason};
use history::{History, KeyId, OpId, Operation, TxnId, ValueId};
use std::collections::VecDeque;

/// How many suppositions may be nested.
const DEPTH_MAX: usize = 2;
/// How many conclusions may be drawn in all.
const STEPS_MAX: usize = 5_000;

/// Argues that a tiny history has no explanation; the inner `None`: the argument would be too long.
pub(crate) fn argue(history: &History, level: Level, options: &Options) -> Option<Option<Argument>> {
    if !options.mixed && level.rule == Rule::ReadUncommitted {
        return Some(from_nowhere(history));
    }
    let asked = Asked::of(history, level, options)?;
    match asked.observe(history, options) {
        Ok(problem) => Some(argue_problem(history, &problem, &asked, options)),
        Err(Refusal::Contradiction(contradiction)) => Some(Some(of_contradiction(history, &contradiction))),
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => Some(None),
    }
}

/// Argues that a tiny problem, perhaps a part of a history's, has no explanation.
pub(crate) fn argue_problem(
    history: &History,
    problem: &Problem,
    asked: &Asked,
    options: &Options,
) -> Option<Argument> {
    if !problem.matches.is_empty() {
        // Facts say nothing of what depends on what was found.
        return None;
    }
    let mut facts = Facts::known(history, problem, &asked.setting, options.clock_skew);
    let mut steps = 0;
    let cycle = facts.refute(DEPTH_MAX, &mut steps);
    if cycle.is_none() && asked.blind.contains(&true) {
        return from_nowhere(history);
    }
    cycle.map(|edges| Argument { support: relevant(&edges, facts.support), edges })
}

/// A value that no transaction wrote.
fn from_nowhere(history: &History) -> Option<Argument> {
    let wrote = |key: KeyId, value: ValueId| {
        normal(history, history.initial_value(key)) == value
            || history.transactions().flat_map(|it| it.ops()).any(|(_, operation)| match operation {
                Operation::Write { key: at, value: it } => at == key && normal(history, it) == value,
                Operation::Delete { key: at } => at == key && value == ValueId::ABSENT,
                Operation::Append { key: at, value: it } => {
                    at == key && history.values_of(value).contains(&it)
                }
                _ => false,
            })
    };
    let reads = history.transactions().filter(|it| it.is_committed()).flat_map(|it| it.ops());
    let nowhere = reads.into_iter().find(|&(_, operation)| {
        matches!(operation, Operation::Read { key, value, .. }
            if value.is_known() && !wrote(key, normal(history, value)))
    });
    nowhere.map(|(op, _)| Argument { edges: vec![bad_source(history, op, None)], support: Vec::new() })
}

/// One transaction commits before another.
#[derive(Clone)]
struct Fact {
    from: Txn,
    to: Txn,
    edge: Edge,
    /// The operation of `to` that shows it, where one does.
    op: Option<OpId>,
}

#[derive(Clone)]
struct Facts<'a> {
    history: &'a History,
    problem: &'a Problem,
    sight: Sight,
    /// For [`Sight::Asked`]: what each transaction asked for.
    strict: Vec<Strict>,
    is_unshown: Vec<bool>,
    facts: Vec<Fact>,
    /// For each read the version it is argued to have seen; none for what is no read.
    sources: Vec<Option<u32>>,
    support: Vec<Edge>,
}

impl<'a> Facts<'a> {
    fn known(history: &'a History, problem: &'a Problem, setting: &Setting, skew: i64) -> Self {
        let (level, sight) = (setting.level, setting.sight);
        let is_base = marked(&problem.bases, problem.reads.len());
        let sources = problem.reads.iter().enumerate().map(|(id, read)| {
            let is_live = problem.standing[read.txn as usize] != Standing::Out;
            let is_read = is_live && !is_base.get(id).copied().unwrap_or(false);
            let source = if read.is_known() { Some(read.source) } else { problem.candidates(read).next() };
            source.filter(|_| is_read)
        });
        let sources = sources.collect();
        let mut it = Self {
            history,
            problem,
            sight,
            strict: setting.strict.of(problem),
            is_unshown: marked(&problem.unshown, problem.reads.len()),
            facts: Vec::new(),
            sources,
            support: Vec::new(),
        };
        let live = |txn: &Txn| problem.standing[*txn as usize] != Standing::Out;
        for txn in (0..problem.len() as Txn).filter(live) {
            let previous = problem.previous[txn as usize];
            if level.session && previous != NONE {
                it.add(previous, txn, EdgeKind::So, None, Reason::Session);
            }
            for first in (0..problem.len() as Txn).filter(live) {
                if level.realtime && it.ended_before(first, txn, skew) {
                    it.add(first, txn, EdgeKind::Rt, None, Reason::Clock);
                }
            }
        }
        for &(first, second, by) in problem.added.iter().filter(|it| live(&it.0) && live(&it.1)) {
            let reason = Reason::Module { name: level.modules()[by as usize].name() };
            it.add(first, second, EdgeKind::Added, None, reason);
        }
        for (id, read) in problem.reads.iter().enumerate() {
            if let Some(source) = it.sources[id].filter(|&source| source != INITIAL) {
                let reason = Reason::Saw { read: read.op, write: Some(it.write_op(source)) };
                let from = it.writer(source);
                it.add(from, read.txn, EdgeKind::Wr, Some(read.key), reason);
                let predicate = it.is_by_predicate(id);
                let fact = it.facts.last_mut().expect("just added");
                fact.op = Some(read.op);
                fact.edge.predicate = predicate;
            }
        }
        for &(first, second) in &problem.chains {
            let reason = Reason::Overwrote { first: Some(it.write_op(first)), second: it.write_op(second) };
            it.add_ww(first, second, reason);
        }
        it
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

    fn ended_before(&self, first: Txn, second: Txn, skew: i64) -> bool {
        let (one, two) =
            (self.history.transaction(self.id(first)), self.history.transaction(self.id(second)));
        one.is_committed()
            && one.client().zip(two.client()).is_some_and(|(a, b)| a.end.saturating_add(skew) < b.begin)
    }

    fn add(&mut self, from: Txn, to: Txn, kind: EdgeKind, key: Option<u32>, reason: Reason) {
        let key = key.map(KeyId);
        let edge = Edge { from: Some(self.id(from)), to: self.id(to), kind, key, predicate: false, reason };
        self.facts.push(Fact { from, to, edge, op: None });
    }

    fn add_ww(&mut self, first: u32, second: u32, reason: Reason) {
        let key = self.problem.versions[first as usize].key;
        self.add(self.writer(first), self.writer(second), EdgeKind::Ww, Some(key), reason);
        self.facts.last_mut().expect("just added").op = Some(self.write_op(second));
    }

    /// Whether a read is of a range or predicate and saw no row.
    fn is_by_predicate(&self, id: usize) -> bool {
        self.is_unshown.get(id).copied().unwrap_or(false)
    }

    /// Whether it misses only what changes that.
    fn is_unshown(&self, id: usize) -> bool {
        !self.sight.is_axiomatic() && self.is_by_predicate(id)
    }

    fn anti(&self, id: usize, version: u32) -> Edge {
        let read = &self.problem.reads[id];
        Edge {
            from: Some(self.id(read.txn)),
            to: self.id(self.writer(version)),
            kind: EdgeKind::Rw,
            key: Some(KeyId(read.key)),
            predicate: self.is_by_predicate(id),
            reason: Reason::Missed { read: read.op, write: self.write_op(version) },
        }
    }

    fn has(&self, from: Txn, to: Txn) -> bool {
        self.facts.iter().any(|fact| fact.from == from && fact.to == to)
    }

    /// The shortest chain of usable facts from one transaction to another; at least one.
    fn path(&self, from: Txn, to: Txn, usable: impl Fn(&Fact) -> bool) -> Option<Vec<Edge>> {
        let mut via: Vec<Option<usize>> = vec![None; self.problem.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for (index, fact) in self.facts.iter().enumerate() {
                if fact.from != at || via[fact.to as usize].is_some() || !usable(fact) {
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

    fn unwind(&self, from: Txn, to: Txn, via: &[Option<usize>]) -> Vec<Edge> {
        let mut edges = Vec::new();
        let mut at = to;
        loop {
            let fact = &self.facts[via[at as usize].expect("the search came this way")];
            edges.push(fact.edge.clone());
            at = fact.from;
            if at == from {
                edges.reverse();
                return edges;
            }
        }
    }

    fn is_update(&self, txn: Txn) -> bool {
        !self.problem.versions_of(txn).is_empty()
    }

    /// Why a read must see a writer of its key; see [`Sight`].
    fn must_see(&self, id: usize, seen: Txn) -> Option<Vec<Edge>> {
        let read = &self.problem.reads[id];
        let reader = read.txn;
        let to_reader = |usable: &dyn Fn(&Fact) -> bool| self.path(seen, reader, usable);
        let is_cause = |fact: &Fact| matches!(fact.edge.kind, EdgeKind::So | EdgeKind::Wr);
        match self.sight {
            Sight::Nothing => None,
            Sight::Asked if !self.is_strict(id) => None,
            Sight::BeforeOwnWrite if self.is_unshown(id) => None,
            Sight::Asked => to_reader(&|_| true),
            Sight::BeforeOwnWrite => {
                self.problem.version_by(reader, read.key).and_then(|_| to_reader(&|_| true))
            }
            Sight::Dependencies => to_reader(&|_| true),
            Sight::Causes => to_reader(&is_cause),
            Sight::Updates if self.is_update(reader) => to_reader(&|_| true),
            Sight::Updates => {
                to_reader(&|fact| self.is_update(fact.from) && (fact.to == reader || self.is_update(fact.to)))
            }
            Sight::Direct => to_reader(&|fact| fact.edge.kind == EdgeKind::So)
                .or_else(|| to_reader(&|fact| fact.from == seen && fact.edge.kind == EdgeKind::Wr)),
            Sight::EarlierReads => to_reader(&|fact| {
                fact.from == seen && fact.edge.kind == EdgeKind::Wr && fact.op < Some(read.op)
            }),
            Sight::EarlierOperations => {
                to_reader(&|fact| fact.to != reader || fact.op.is_some_and(|op| op < read.op))
            }
            Sight::Prefix => {
                let last = |fact: &Fact| fact.to != reader || is_cause(fact);
                to_reader(&last)
            }
        }
    }

    /// Draws conclusions until the level's rule is broken.
    fn refute(&mut self, depth: usize, steps: &mut usize) -> Option<Vec<Edge>> {
        loop {
            if let Some(cycle) = self.cycle() {
                return Some(cycle);
            }
            *steps += 1;
            if *steps > STEPS_MAX {
                return None;
            }
            let before = self.facts.len();
            if let Some(cycle) = self.conclude() {
                return Some(cycle);
            }
            if self.facts.len() == before && (depth == 0 || !self.suppose(depth, steps)) {
                return None;
            }
        }
    }

    fn cycle(&self) -> Option<Vec<Edge>> {
        let cycles = (0..self.problem.len() as Txn).filter_map(|txn| self.path(txn, txn, |_| true));
        cycles.min_by_key(Vec::len)
    }

    /// One round over all reads; a cycle if some read misses what it must see.
    fn conclude(&mut self) -> Option<Vec<Edge>> {
        let mut best: Option<Vec<Edge>> = None;
        for (id, read) in self.problem.reads.iter().enumerate() {
            let Some(source) = self.sources[id] else { continue };
            let writer = if source == INITIAL { NONE } else { self.writer(source) };
            for &(_, other) in self.problem.versions_of_key(read.key) {
                let seen = self.writer(other);
                let is_live = self.problem.standing[seen as usize] == Standing::In;
                let fits = self.is_unshown(id) && self.problem.fits(read, other);
                if seen == read.txn || seen == writer || !is_live || fits {
                    continue;
                }
                let behind =
                    if source == INITIAL { Some(Vec::new()) } else { self.path(writer, seen, |_| true) };
                let must = self.must_see(id, seen);
                match (must, behind) {
                    (Some(mut cycle), Some(behind)) => {
                        cycle.push(self.anti(id, other));
                        if best.as_ref().is_none_or(|best| cycle.len() < best.len()) {
                            self.show_behind(writer, seen, read.key, behind);
                            best = Some(cycle);
                        }
                    }
                    (Some(mut because), None) if !self.has(seen, writer) => {
                        because.insert(0, self.anti(id, other));
                        self.add_ww(other, source, Reason::Otherwise { because });
                    }
                    (None, Some(_)) if self.is_strict(id) && !self.has(read.txn, seen) => {
                        let edge = self.anti(id, other);
                        self.facts.push(Fact { from: read.txn, to: seen, edge, op: None });
                    }
                    _ => {}
                }
            }
        }
        best
    }

    /// Whether the reader comes before whoever overwrites what it saw.
    fn is_strict(&self, id: usize) -> bool {
        let read = &self.problem.reads[id];
        match self.sight {
            Sight::BeforeOwnWrite => {
                !self.is_unshown(id) && self.problem.version_by(read.txn, read.key).is_some()
            }
            Sight::Updates => self.is_update(read.txn),
            Sight::Asked => match self.strict[read.txn as usize] {
                Strict::Nothing => false,
                Strict::Items => !self.is_unshown(id),
                Strict::Everything => true,
            },
            _ => false,
        }
    }

    /// That the source is overwritten by what was missed, where no single edge says so.
    fn show_behind(&mut self, writer: Txn, seen: Txn, key: u32, because: Vec<Edge>) {
        let is_plain = matches!(&because[..], [] | [Edge { kind: EdgeKind::Ww, .. }]);
        if is_plain {
            // An order that was inferred is told with what it follows from.
            let inferred = |edge: &Edge| matches!(edge.reason, Reason::Otherwise { .. });
            self.support.extend(because.into_iter().filter(inferred));
        } else {
            let (from, to) = (Some(self.id(writer)), self.id(seen));
            let reason = Reason::Otherwise { because };
            self.support.push(Edge {
                from,
                to,
                kind: EdgeKind::Ww,
                key: Some(KeyId(key)),
                predicate: false,
                reason,
            });
        }
    }

    /// Supposes one order of two versions after the other until one is refuted; its opposite is a fact.
    fn suppose(&mut self, depth: usize, steps: &mut usize) -> bool {
        for (first, second) in self.open_questions() {
            let mut supposed = self.clone();
            let reason =
                Reason::Overwrote { first: Some(self.write_op(first)), second: self.write_op(second) };
            supposed.add_ww(first, second, reason);
            if let Some(because) = supposed.refute(depth - 1, steps) {
                self.add_ww(second, first, Reason::Otherwise { because });
                return true;
            }
            if *steps > STEPS_MAX {
                return false;
            }
        }
        false
    }

    fn open_questions(&self) -> Vec<(u32, u32)> {
        let mut questions = Vec::new();
        for key in 0..self.problem.keys() as u32 {
            let versions: Vec<u32> = (self.problem.versions_of_key(key).iter())
                .map(|&(_, version)| version)
                .filter(|&version| self.problem.standing[self.writer(version) as usize] != Standing::Out)
                .collect();
            for &first in &versions {
                for &second in versions.iter().filter(|&&second| second != first) {
                    let (one, two) = (self.writer(first), self.writer(second));
                    let settled =
                        self.path(one, two, |_| true).is_some() || self.path(two, one, |_| true).is_some();
                    if !settled {
                        questions.push((first, second));
                    }
                }
            }
        }
        questions
    }
}
