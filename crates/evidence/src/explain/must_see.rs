//! Why a core has no explanation at a level, edge by edge.
//!
//! *What*: works on the core, a tiny history, with facts "this transaction commits before that one", each an edge with
//! its reason. Where a read must see a writer that is known to come after what it saw, the chain that shows it must be
//! seen and the anti-dependency close the cycle that the level forbids. Where that order is open, it follows that the
//! writer comes before the source; facts that close a cycle end the argument too. Where neither helps, one order of
//! two versions is supposed and refuted, and its opposite becomes a fact.
//!
//! An ambiguous read is taken apart: each of its candidates is a case, and each case ends in its own contradiction.
//!
//! *Cost*: cubic in the size of the core; nothing here is used to decide.

use super::{
    Effort, Pending, all_struck, direct_contradiction, finished, incompatible_lists, of_contradiction,
    of_contradiction_but, shown_by, unexplained_value, write_op,
};
use history::{History, KeyId, OpId, TxnId};
use isolation::{Argument, Case, Edge, EdgeKind, Level, Options, Reason, Rule, Supposition};
use search::problem::{INITIAL, NONE, Problem, Read, Standing, Txn};
use search::refusal::Refusal;
use search::weak::{Asked, Sight, Strict, marked};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many suppositions may be nested.
const DEPTH_MAX: usize = 2;
/// How many candidates a read may have that is taken apart into cases.
const SPLIT_MAX: usize = 12;

/// Argues that a tiny history has no explanation; the inner `None`: the argument would be too long.
pub(crate) fn argue(history: &History, level: Level, options: &Options) -> Option<Option<Argument>> {
    if !options.mixed && level.rule == Rule::ReadUncommitted {
        return Some(unexplained_value(history));
    }
    let asked = Asked::of(history, level, options)?;
    if asked.blind.is_empty()
        && let Some(argument) = incompatible_lists(history, options.ryow)
    {
        return Some(Some(argument));
    }
    match asked.observe_unsettled(history, options, &[]) {
        Ok(problem) if problem.matches.is_empty() => Some(argue_problem(history, &problem, &asked, options)),
        Ok(_) => match asked.observe(history, options) {
            Ok(problem) => Some(argue_problem(history, &problem, &asked, options)),
            Err(Refusal::Contradiction(contradiction)) => {
                Some(Some(of_contradiction(history, &contradiction, level, options)))
            }
            Err(Refusal::Unsupported(_) | Refusal::Open(_)) => Some(None),
        },
        Err(Refusal::Contradiction(contradiction)) => {
            Some(Some(of_contradiction(history, &contradiction, level, options)))
        }
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => Some(None),
    }
}

/// Argues that two operations of one transaction cannot have seen what they saw of a key, where each may see a version of
/// its own: so much every level from consistent view on forbids.
pub(crate) fn argue_apart(
    history: &History,
    read: OpId,
    key: KeyId,
    level: Level,
    options: &Options,
    certain: &[TxnId],
) -> Option<Argument> {
    let options = Options { mixed: false, ..options.clone() };
    let asked =
        Asked::of(history, Level::new(Rule::ConsistentView, level.session, level.realtime), &options)?;
    let problem = match asked.observe_unsettled(history, &options, certain) {
        Ok(problem) => problem,
        Err(Refusal::Contradiction(found)) => return direct_contradiction(history, &found, options.ryow),
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => return None,
    };
    let reader = problem.find(history.owner(read))?;
    let mut keep: Vec<Txn> = vec![reader];
    for read in problem.reads_of(reader).iter().filter(|it| it.key == key.0) {
        let seen: Vec<u32> =
            if read.is_known() { vec![read.source] } else { problem.all_candidates(read).collect() };
        let versions = seen.into_iter().filter(|&version| version < INITIAL);
        keep.extend(versions.map(|version| problem.versions[version as usize].txn));
        if keep.len() > APART_MAX {
            return None;
        }
    }
    keep.sort_unstable();
    keep.dedup();
    argue_problem(history, &problem.part(&keep), &asked, &options)
}

/// Up to how many transactions are looked at to tell two operations of one apart.
const APART_MAX: usize = 24;

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
    let effort = Effort::new(options);
    let argument = Facts::known(history, problem, asked, options, &effort).refute(DEPTH_MAX);
    if argument.is_none() && asked.blind.contains(&true) {
        return unexplained_value(history);
    }
    argument
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
    asked: &'a Asked,
    level: Level,
    options: &'a Options,
    effort: &'a Effort<'a>,
    sight: Sight,
    /// For [`Sight::Asked`]: what each transaction asked for.
    strict: Vec<Strict>,
    is_unshown: Vec<bool>,
    /// Reads that are none.
    is_base: Vec<bool>,
    /// Who took effect as far as is known here.
    is_in: Vec<bool>,
    facts: Vec<Fact>,
    /// For each read the version it saw, once that is settled; none for what is no read.
    sources: Vec<Option<u32>>,
    support: Vec<Edge>,
    /// How much of that was there before this was supposed.
    base: usize,
    /// Reads of which all candidates but one were struck out.
    pending: Vec<Pending>,
}

impl<'a> Facts<'a> {
    fn known(
        history: &'a History,
        problem: &'a Problem,
        asked: &'a Asked,
        options: &'a Options,
        effort: &'a Effort<'a>,
    ) -> Self {
        let setting = &asked.setting;
        let is_base = marked(&problem.bases, problem.reads.len());
        let sources = problem.reads.iter().enumerate().map(|(id, read)| {
            let is_read = !is_base.get(id).copied().unwrap_or(false);
            problem.certain_source(read).filter(|_| is_read)
        });
        let mut it = Self {
            history,
            problem,
            asked,
            level: setting.level,
            options,
            effort,
            sight: setting.sight,
            strict: setting.strict.of(problem),
            is_unshown: marked(&problem.unshown, problem.reads.len()),
            is_in: vec![false; problem.len()],
            facts: Vec::new(),
            sources: sources.collect(),
            is_base,
            support: Vec::new(),
            base: 0,
            pending: Vec::new(),
        };
        let live = |txn: &Txn| problem.standing[*txn as usize] == Standing::In;
        for txn in (0..problem.len() as Txn).filter(live) {
            it.activate(txn);
        }
        it
    }

    /// A transaction took effect: everything that follows of it and of those whose writes it certainly saw.
    fn activate(&mut self, txn: Txn) {
        let mut work = vec![txn];
        while let Some(txn) = work.pop() {
            if std::mem::replace(&mut self.is_in[txn as usize], true) {
                continue;
            }
            self.add_orders(txn);
            for id in self.problem.read_ids(txn) {
                if let Some(source) = self.sources[id].filter(|&source| source < INITIAL) {
                    let writer = self.writer(source);
                    self.add_seen(id, source);
                    if !self.is_in[writer as usize] {
                        self.support.extend(self.facts.last().map(|fact| fact.edge.clone()));
                        work.push(writer);
                    }
                }
            }
        }
    }

    /// The orders that one more transaction brings.
    fn add_orders(&mut self, txn: Txn) {
        let previous = self.problem.previous[txn as usize];
        if self.level.session && previous != NONE && self.is_in[previous as usize] {
            self.add(previous, txn, EdgeKind::So, None, Reason::Session);
        }
        for other in (0..self.problem.len() as Txn).filter(|&it| it != txn) {
            if !self.is_in[other as usize] {
                continue;
            }
            if self.level.session && self.problem.previous[other as usize] == txn {
                self.add(txn, other, EdgeKind::So, None, Reason::Session);
            }
            for (first, second) in [(txn, other), (other, txn)] {
                if self.level.realtime && self.ended_before(first, second) {
                    self.add(first, second, EdgeKind::Rt, None, Reason::Clock);
                }
            }
        }
        let concerns = |first: Txn, second: Txn, is_in: &[bool]| {
            [first, second].contains(&txn) && is_in[first as usize] && is_in[second as usize]
        };
        for &(first, second, by) in &self.problem.added {
            if concerns(first, second, &self.is_in) {
                let reason = Reason::Module { name: self.level.modules()[by as usize].name() };
                self.add(first, second, EdgeKind::Added, None, reason);
            }
        }
        for &(first, second) in &self.problem.chains {
            let ends = [self.writer(first), self.writer(second)];
            // Lists that contradict each other put a version before itself; no step says why.
            if ends[0] != ends[1] && concerns(ends[0], ends[1], &self.is_in) {
                let (one, two) = (self.write_op(first), self.write_op(second));
                let shown = shown_by(self.history, one, two);
                self.add_ww(first, second, Reason::Overwrote { first: Some(one), second: two, shown });
            }
        }
    }

    fn add_seen(&mut self, id: usize, source: u32) {
        let read = self.problem.reads[id];
        let reason = Reason::Saw { read: read.op, write: Some(self.write_op(source)) };
        let from = self.writer(source);
        self.add(from, read.txn, EdgeKind::Wr, Some(read.key), reason);
        let predicate = self.is_by_predicate(id);
        let fact = self.facts.last_mut().expect("just added");
        fact.op = Some(read.op);
        fact.edge.predicate = predicate;
    }

    /// A read saw this version.
    fn saw(&mut self, id: usize, version: u32) {
        self.sources[id] = Some(version);
        if version != INITIAL {
            self.add_seen(id, version);
            self.activate(self.writer(version));
        }
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

    fn ended_before(&self, first: Txn, second: Txn) -> bool {
        let (one, two) =
            (self.history.transaction(self.id(first)), self.history.transaction(self.id(second)));
        one.is_committed()
            && one
                .client()
                .zip(two.client())
                .is_some_and(|(a, b)| a.end.saturating_add(self.options.clock_skew) < b.begin)
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
        self.effort.spend(self.problem.len() + self.facts.len());
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

    /// Draws conclusions until the level's rule is broken; supposes answers where that is not enough.
    fn refute(&mut self, depth: usize) -> Option<Argument> {
        loop {
            if let Some(cycle) = self.deduce() {
                return Some(self.finish(cycle));
            }
            if self.effort.is_spent() {
                return None;
            }
            match self.strike() {
                Some(Some(argument)) => return Some(self.finish(argument)),
                Some(None) => continue,
                None => {}
            }
            if depth == 0 || self.effort.is_spent() {
                return None;
            }
            if !self.suppose(depth) {
                let argument = self.split(depth - 1)?;
                return Some(self.finish(argument));
            }
        }
    }

    /// Draws conclusions as long as there are new ones, or until the level's rule is broken.
    fn deduce(&mut self) -> Option<Argument> {
        loop {
            if let Some(cycle) = self.cycle() {
                return Some(Argument::new(cycle, Vec::new()));
            }
            let before = self.facts.len();
            if let Some(cycle) = self.conclude() {
                return Some(Argument::new(cycle, Vec::new()));
            }
            if self.facts.len() == before || self.effort.is_spent() {
                return None;
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

    /// Reads that may have seen one of several versions, and which; those with few first.
    fn ambiguous(&self) -> Vec<(usize, Vec<u32>)> {
        let is_open = |id: &usize| {
            self.sources[*id].is_none()
                && !self.is_base.get(*id).copied().unwrap_or(false)
                && self.is_in[self.problem.reads[*id].txn as usize]
        };
        let candidates = |read: &Read| match read.is_known() {
            true => vec![read.source],
            false => self.problem.all_candidates(read).collect::<Vec<u32>>(),
        };
        let all = (0..self.problem.reads.len()).filter(is_open);
        let all = all.map(|id| (id, candidates(&self.problem.reads[id])));
        let mut all: Vec<_> = all.filter(|(_, candidates)| candidates.len() <= SPLIT_MAX).collect();
        all.sort_by_key(|(_, candidates)| candidates.len());
        all
    }

    fn supposition(&self, read: &Read, candidate: u32) -> Supposition {
        let write = (candidate != INITIAL).then(|| self.write_op(candidate));
        Supposition::Source { read: read.op, key: KeyId(read.key), write }
    }

    /// What contradicts that a read saw a version, by conclusions alone.
    fn why_not(&self, id: usize, candidate: u32) -> Option<Argument> {
        if self.problem.is_out(candidate) {
            return self.why_out(self.writer(candidate));
        }
        let mut branch = self.branch();
        branch.saw(id, candidate);
        let argument = branch.deduce()?;
        Some(branch.finish(argument))
    }

    /// Why somebody of unknown outcome did not take effect, whatever others did.
    fn why_out(&self, txn: Txn) -> Option<Argument> {
        let certain = [self.id(txn)];
        if self.history.transaction(certain[0]).is_committed() {
            return None;
        }
        match self.asked.observe_unsettled(self.history, self.options, &certain) {
            Err(Refusal::Contradiction(found)) => {
                let argument = of_contradiction_but(self.history, &found, self.level, self.options, &certain);
                (argument != Argument::default()).then_some(argument)
            }
            _ => None,
        }
    }

    /// Looks for a read of which all candidates but one, or all, cannot be what it saw. The outer `None`: there is none;
    /// the inner one: one candidate was left, and is known now.
    fn strike(&mut self) -> Option<Option<Argument>> {
        for (id, candidates) in self.ambiguous() {
            let read = self.problem.reads[id];
            let mut left = Vec::new();
            let mut struck = Vec::new();
            for candidate in candidates {
                match self.why_not(id, candidate) {
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
                    self.saw(id, only);
                    return Some(None);
                }
                _ => {}
            }
        }
        None
    }

    /// Takes a read with few candidates apart: each of them is refuted by itself.
    fn split(&self, depth: usize) -> Option<Argument> {
        self.ambiguous().into_iter().find_map(|(id, candidates)| {
            let read = self.problem.reads[id];
            let mut cases = Vec::new();
            for candidate in candidates {
                let argument = match self.problem.is_out(candidate) {
                    true => self.why_not(id, candidate)?,
                    false => {
                        let mut branch = self.branch();
                        branch.saw(id, candidate);
                        branch.refute(depth)?
                    }
                };
                cases.push(Case { suppose: self.supposition(&read, candidate), argument });
            }
            Some(all_struck(self.history, cases))
        })
    }

    fn cycle(&self) -> Option<Vec<Edge>> {
        let cycles = (0..self.problem.len() as Txn).filter_map(|txn| self.path(txn, txn, |_| true));
        cycles.min_by_key(Vec::len)
    }

    /// One round over all reads; a cycle if some read misses what it must see.
    fn conclude(&mut self) -> Option<Vec<Edge>> {
        let mut best: Option<Vec<Edge>> = None;
        for (id, read) in self.problem.reads.iter().enumerate() {
            let Some(source) = self.sources[id].filter(|_| self.is_in[read.txn as usize]) else { continue };
            let writer = if source == INITIAL { NONE } else { self.writer(source) };
            for &(_, other) in self.problem.versions_of_key(read.key) {
                let seen = self.writer(other);
                let is_live = self.is_in[seen as usize];
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
                        let because = Arc::new(Argument::new(because, Vec::new()));
                        self.add_ww(other, source, Reason::Otherwise { because });
                    }
                    (None, Some(behind)) if self.is_strict(id) && !self.has(read.txn, seen) => {
                        self.show_behind(writer, seen, read.key, behind);
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
            // An order that was inferred is reported with what it follows from.
            let inferred = |edge: &Edge| matches!(edge.reason, Reason::Otherwise { .. });
            self.support.extend(because.into_iter().filter(inferred));
        } else {
            let (from, to) = (Some(self.id(writer)), self.id(seen));
            let reason = Reason::Otherwise { because: Arc::new(Argument::new(because, Vec::new())) };
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
    fn suppose(&mut self, depth: usize) -> bool {
        for (first, second) in self.open_questions() {
            let mut supposed = self.branch();
            supposed.add_ww(first, second, Reason::Supposed);
            if let Some(because) = supposed.refute(depth - 1) {
                self.add_ww(second, first, Reason::Otherwise { because: Arc::new(because) });
                return true;
            }
            if self.effort.is_spent() {
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
                .filter(|&version| self.is_in[self.writer(version) as usize])
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
