//! What predicate writes found, at read uncommitted.
//!
//! *What*: a predicate write saw of every key some content that it ever had; on the keys where it held it left its value,
//! which is a content, too. Where nobody reported the keys, which ones is open, and a count may limit them. Everything
//! that was seen is a *need*: the key must once have held something that fits.
//!
//! ```text
//!   u(v>=2 -> 0) = 1 row     on x, which held 2 or 3, or on y, which held 1 and 4: one of the two once held 0
//! ```
//!
//! *Invariant*: more contents never hurt. So a write that nobody counted held wherever it can have held, and only counts
//! leave something to choose.
//!
//! *Steps*, key by key: (1) what is certain to have been there; (2) the writes that can have held, largest set first,
//! striking out those that nothing bears out; a write may be borne out by what it left itself, because reads of own
//! writes are not judged here; (3) a need that even this does not meet is a violation; (4) keys where all needs are met
//! whatever counted writes did are only counted; the others become questions to the solver, with the counts.
//!
//! *Cost*: keys times predicate writes times contents. *Source*: Adya 1999 §3.2 (PL-1) with §4.3's predicate reads.

use super::Written;
use crate::contents::Contents;
use crate::rows::Claim;
use crate::scripts::Seen;
use crate::solving::interrupt;
use history::{History, Id, KeyId, OpId, Primitive, Status, Test, TxnId, ValueId, WriteIf};
use isolation::{Budget, Meter, Undecided};
use rustc_hash::FxHashMap;
use solver::{Graph, Lit, Progress, Solver, Var};

/// How it ended.
pub(super) enum Answer {
    /// Everything that was seen can have been there.
    Explained,
    /// These operations saw what cannot have been there together.
    Impossible(Vec<OpId>),
}

/// A predicate write.
#[derive(Clone, Copy)]
struct Write<'h> {
    op: OpId,
    /// The one key that it is about; none: every key.
    key: Option<KeyId>,
    test: Test<'h>,
    set: ValueId,
    count: Option<u64>,
}

impl Write<'_> {
    /// Whether it can have held on a key with this content.
    fn holds(&self, known: &Contents<'_>, key: usize, content: ValueId) -> bool {
        self.key.is_none_or(|only| only.index() == key) && known.holds(self.test, content)
    }
}

/// What was written by predicate, and what was seen.
pub(super) struct Found<'a, 'h> {
    known: &'a Contents<'h>,
    /// What each key certainly held at some time.
    contents: Vec<Vec<ValueId>>,
    /// Those that took effect and did not report their keys.
    open: Vec<Write<'h>>,
    needs: Vec<Vec<Seen<'h>>>,
    budget: &'a Budget,
    meter: Meter<'a>,
}

impl<'a, 'h> Found<'a, 'h> {
    pub(super) fn of(
        history: &'h History,
        known: &'a Contents<'h>,
        written: &Written,
        seen: &[(KeyId, Seen<'h>)],
        budget: &'a Budget,
    ) -> Result<Self, Undecided> {
        let keys = history.keys().len();
        let mut it = Self {
            known,
            contents: vec![Vec::new(); keys],
            open: Vec::new(),
            needs: vec![Vec::new(); keys],
            budget,
            meter: budget.meter(),
        };
        for &(key, value) in &written.values {
            it.contents[key.index()].push(value);
        }
        seen.iter().for_each(|(key, seen)| it.needs[key.index()].push(*seen));
        let mut ghosts: Vec<Write<'h>> = Vec::new();
        // What conditional writes set: of any key, and of one only.
        let mut all: Vec<ValueId> = Vec::new();
        let mut at_key: Vec<Vec<ValueId>> = vec![Vec::new(); keys];
        for transaction in history.transactions() {
            for (op, operation) in transaction.primitives() {
                let Primitive::WriteIf(write) = operation else { continue };
                let WriteIf { key, test, count, keys, .. } = write;
                let set = known.written(write.set);
                match key {
                    Some(key) => at_key[key.index()].push(set),
                    None => all.push(set),
                }
                let write = Write { op, key, test, set, count };
                match keys {
                    _ if transaction.status() != Status::Committed => ghosts.push(write),
                    Some(keys) => keys.iter().for_each(|key| it.contents[key.index()].push(set)),
                    None => it.open.push(write),
                }
            }
        }
        it.add_ghosts(&ghosts, &all, &at_key)?;
        for contents in &mut it.contents {
            contents.sort_unstable();
            contents.dedup();
        }
        Ok(it)
    }

    /// What did not take effect may have been anywhere where it can have held: nobody asks what it found.
    fn add_ghosts(
        &mut self,
        ghosts: &[Write<'h>],
        all: &[ValueId],
        at_key: &[Vec<ValueId>],
    ) -> Result<(), Undecided> {
        let mut left: Vec<(usize, ValueId)> = Vec::new();
        for ghost in ghosts {
            if let Some(key) = ghost.key {
                left.push((key.index(), ghost.set));
                continue;
            }
            self.meter.steps(1 + all.len())?;
            let anywhere = all.iter().any(|&value| self.known.holds(ghost.test, value));
            for (key, contents) in self.contents.iter().enumerate() {
                self.meter.steps(if anywhere { 1 } else { 1 + contents.len() })?;
                if anywhere || contents.iter().chain(&at_key[key]).any(|&it| self.known.holds(ghost.test, it))
                {
                    left.push((key, ghost.set));
                }
            }
        }
        left.into_iter().for_each(|(key, set)| self.contents[key].push(set));
        Ok(())
    }

    /// Which of some writes can have held on a key, and all that it can have held then.
    fn largest(
        &self,
        key: usize,
        some: impl Fn(&Write<'h>) -> bool,
    ) -> Result<(Vec<bool>, Vec<ValueId>), Undecided> {
        let mut held: Vec<bool> = self.open.iter().map(some).collect();
        loop {
            let left = self.open.iter().zip(&held).filter(|(_, held)| **held).map(|(write, _)| write.set);
            let mut contents: Vec<ValueId> = self.contents[key].iter().copied().chain(left).collect();
            contents.sort_unstable();
            contents.dedup();
            let mut is_stable = true;
            for (held, write) in held.iter_mut().zip(&self.open) {
                self.meter.steps(1 + contents.len())?;
                if *held && !contents.iter().any(|&it| write.holds(self.known, key, it)) {
                    *held = false;
                    is_stable = false;
                }
            }
            if is_stable {
                return Ok((held, contents));
            }
        }
    }

    fn meets(&self, contents: &[ValueId], need: &Seen<'h>) -> bool {
        contents.iter().any(|&content| need.accepts(self.known, content))
    }

    /// An operation, of those asked for, that saw what was never there, whatever predicate writes found.
    pub(super) fn unmet(&self, asked: impl Fn(OpId) -> bool) -> Result<Option<OpId>, Undecided> {
        let mut first: Option<OpId> = None;
        for key in 0..self.needs.len() {
            let needs = self.needs[key].iter().filter(|need| asked(need.op()));
            let mut needs = needs.peekable();
            if needs.peek().is_none() {
                continue;
            }
            let (_, contents) = self.largest(key, |_| true)?;
            let unmet = needs.find(|need| !self.meets(&contents, need)).map(Seen::op);
            first = first.into_iter().chain(unmet).min();
        }
        Ok(first)
    }

    /// Whether everything that was seen can have been there.
    pub(super) fn explain(&self) -> Result<Answer, Undecided> {
        let mut counting = Counting::new(self);
        for key in 0..self.needs.len() {
            let (held, contents) = self.largest(key, |_| true)?;
            self.meter.steps(1 + self.needs[key].len() * contents.len())?;
            if let Some(need) = self.needs[key].iter().find(|need| !self.meets(&contents, need)) {
                return Ok(Answer::Impossible(vec![need.op()]));
            }
            counting.add(key, &held, &contents)?;
        }
        counting.settle()
    }
}

/// What counted writes leave to choose.
struct Counting<'f, 'a, 'h> {
    found: &'f Found<'a, 'h>,
    /// For each write: on how many keys that are only counted it must have held, and may have.
    counted: Vec<(u64, u64)>,
    /// Whether each write held on a key, where that is a question.
    questions: Vec<Vec<Var>>,
    solver: Solver,
    /// The operations that a clause speaks of.
    about: Vec<Vec<OpId>>,
}

impl<'f, 'a, 'h> Counting<'f, 'a, 'h> {
    fn new(found: &'f Found<'a, 'h>) -> Self {
        Self {
            found,
            counted: vec![(0, 0); found.open.len()],
            questions: vec![Vec::new(); found.open.len()],
            solver: Solver::new(Graph::new(0, &[]), &[]),
            about: Vec::new(),
        }
    }

    /// Adds a key: the writes that can have held there, and all it can have held.
    fn add(&mut self, key: usize, held: &[bool], contents: &[ValueId]) -> Result<(), Undecided> {
        let found = self.found;
        if found.open.iter().all(|write| write.count.is_none()) {
            return Ok(());
        }
        let (_, certain) = found.largest(key, |write| write.count.is_none())?;
        found.meter.steps((1 + found.open.len() + found.needs[key].len()) * contents.len())?;
        let holds = |write: &Write<'h>, value: ValueId| write.holds(found.known, key, value);
        let is_quiet = found.needs[key].iter().all(|need| found.meets(&certain, need))
            && found.open.iter().zip(held).filter(|(write, held)| write.count.is_some() && **held).all(
                |(write, _)| {
                    let is_borne_out = holds(write, write.set) || certain.iter().any(|&it| holds(write, it));
                    let may_fail = certain.iter().any(|&it| !holds(write, it));
                    is_borne_out && (may_fail || contents.iter().all(|&it| holds(write, it)))
                },
            );
        if !is_quiet {
            self.ask(key, held);
            return Ok(());
        }
        for (index, write) in found.open.iter().enumerate().filter(|&(index, _)| held[index]) {
            let must = contents.iter().all(|&it| holds(write, it));
            self.counted[index].0 += u64::from(must);
            self.counted[index].1 += 1;
        }
        Ok(())
    }

    /// Makes a key a question to the solver.
    fn ask(&mut self, key: usize, held: &[bool]) {
        let found = self.found;
        let mut vars: FxHashMap<usize, Var> = FxHashMap::default();
        for index in (0..found.open.len()).filter(|&index| held[index]) {
            let var = self.solver.new_var(&[], &[]);
            vars.insert(index, var);
            self.questions[index].push(var);
        }
        let mut writes: Vec<(usize, Var)> = vars.into_iter().collect();
        writes.sort_unstable();
        let claim = |index: usize, truth| {
            let Write { op, test, .. } = found.open[index];
            Seen::Found(Claim { test, truth, op })
        };
        let given = found.needs[key].iter().map(|need| (*need, None));
        let own = writes.iter().flat_map(|&(index, var)| {
            [(claim(index, true), Some(var.negative())), (claim(index, false), Some(var.positive()))]
        });
        for (need, unless) in given.chain(own) {
            if found.meets(&found.contents[key], &need) {
                continue;
            }
            let left = writes.iter().filter(|(index, _)| need.accepts(found.known, found.open[*index].set));
            let left: Vec<(usize, Var)> = left.copied().collect();
            let lits: Vec<Lit> = left.iter().map(|(_, var)| var.positive()).chain(unless).collect();
            let about = left.iter().map(|&(index, _)| found.open[index].op).chain([need.op()]).collect();
            self.clause(&lits, about);
        }
    }

    fn clause(&mut self, lits: &[Lit], about: Vec<OpId>) {
        let tag = self.about.len() as u32;
        self.about.push(about);
        self.solver.add_clause(lits, tag);
    }

    /// Whether all counts can be right.
    fn settle(mut self) -> Result<Answer, Undecided> {
        let budget = self.found.budget;
        interrupt(&mut self.solver, budget);
        loop {
            match self.solver.complete() {
                Progress::Consistent if self.counts_fit() => return Ok(Answer::Explained),
                Progress::Consistent => {}
                Progress::Unsatisfiable => {
                    let core = self.solver.core();
                    let about = core.tags.iter().flat_map(|&tag| self.about[tag as usize].iter().copied());
                    let mut ops: Vec<OpId> = about.collect();
                    ops.sort_unstable();
                    ops.dedup();
                    return Ok(Answer::Impossible(ops));
                }
                Progress::Interrupted => return Err(budget.exhausted().unwrap_or(Undecided::Cancelled)),
            }
        }
    }

    /// Whether every count is right as things stand; else the solver hears of it.
    fn counts_fit(&mut self) -> bool {
        let mut fit = true;
        for index in 0..self.questions.len() {
            let Write { op, count: Some(count), .. } = self.found.open[index] else { continue };
            let (must, may) = self.counted[index];
            let (held, failed): (Vec<Var>, Vec<Var>) = (self.questions[index].iter())
                .partition(|var| self.solver.value(var.positive()) == Some(true));
            let too_many = must + held.len() as u64 > count;
            let too_few = may + (held.len() as u64) < count;
            if !too_many && !too_few {
                continue;
            }
            fit = false;
            let lits: Vec<Lit> = if too_many {
                // Of one more than there is room for, one did not hold.
                let beyond = (count + 1).saturating_sub(must) as usize;
                held.iter().take(beyond).map(|var| var.negative()).collect()
            } else {
                // Of one more than may be missing, one held.
                let all = self.questions[index].len() as u64;
                let wanted = count - may;
                let missing = (all + 1).saturating_sub(wanted) as usize;
                failed.iter().take(missing).map(|var| var.positive()).collect()
            };
            self.clause(&lits, vec![op]);
        }
        fit
    }
}

/// Who did some operations.
pub(super) fn owners(history: &History, ops: &[OpId]) -> Vec<TxnId> {
    let mut txns: Vec<TxnId> = ops.iter().map(|&op| history.owner(op)).collect();
    txns.sort_unstable();
    txns.dedup();
    txns
}
