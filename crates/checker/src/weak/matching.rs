//! Predicate writes whose keys nobody reported: which way each went.
//!
//! *What*: what such a transaction did to a key is one of several alternatives ([`crate::scripts`]); each has reads
//! that count, and a version that is there, only if it is the true one. The solver knows an alternative as a variable,
//! and that exactly one of a match is true if the transaction took effect.
//!
//! *Steps*: a match of which none is true is supposed to have gone as the order of the moment has it; where the
//! database told how many keys matched, that is compared once everything else is settled.
//! *Cost*: a variable an alternative. *Source*: boomslang.txt §5 (superpositions), asked for as they come up.

use super::search::Search;
use crate::observe::{INITIAL, NONE, Problem};
use rustc_hash::FxHashMap;
use solver::{Lit, Var};
use std::cmp::Ordering;

/// The alternatives that were asked about.
#[derive(Default)]
pub(super) struct Matching {
    vars: FxHashMap<u32, Var>,
    alternative_of: FxHashMap<Var, u32>,
    /// The reads of each alternative.
    reads: FxHashMap<u32, Vec<u32>>,
}

impl Matching {
    pub(super) fn of(problem: &Problem) -> Self {
        let mut reads: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (read, &alternative) in problem.read_alternative.iter().enumerate() {
            if alternative != NONE {
                reads.entry(alternative).or_default().push(read as u32);
            }
        }
        Self { reads, ..Self::default() }
    }

    /// The key whose versions a variable decides on.
    pub(super) fn key_of(&self, problem: &Problem, var: Var) -> Option<u32> {
        let alternative = self.alternative_of.get(&var)?;
        let of = problem.alternatives[*alternative as usize].of;
        Some(problem.matches[of as usize].key)
    }
}

impl Search<'_> {
    /// Whether an alternative, or [`NONE`], is true as things stand.
    pub(super) fn is_true(&self, alternative: u32) -> bool {
        alternative == NONE || {
            let var = self.matching.vars.get(&alternative);
            var.is_some_and(|var| self.solver.value(var.positive()) == Some(true))
        }
    }

    /// The literal that an alternative is not the true one; none for [`NONE`].
    pub(super) fn unless_true(&mut self, alternative: u32) -> Option<Lit> {
        (alternative != NONE).then(|| !self.came_true(alternative))
    }

    /// Whether it is settled which way a match went; if not, one is supposed.
    pub(super) fn examine_match(&mut self, of: u32) -> bool {
        let it = self.problem.matches[of as usize];
        if !self.in_effect(it.txn) || (it.first..it.end).any(|index| self.is_true(index)) {
            return true;
        }
        let lits: Vec<(u32, Lit)> = (it.first..it.end).map(|index| (index, self.came_true(index))).collect();
        let lane = &self.lanes[it.key as usize];
        let before = self.position(it.txn);
        let count = lane.partition_point(|&version| self.position(self.writer(version)) < before);
        let found = count.checked_sub(1).map_or(INITIAL, |last| lane[last]);
        let fits = |index: u32| {
            let reads = self.matching.reads.get(&index).into_iter().flatten();
            reads.into_iter().all(|&read| self.problem.fits(&self.problem.reads[read as usize], found))
        };
        let open = |lit: Lit| self.solver.value(lit).is_none();
        let choice = lits.iter().find(|&&(index, lit)| open(lit) && fits(index));
        if let Some(&(_, lit)) = choice.or_else(|| lits.iter().find(|&&(_, lit)| open(lit))) {
            self.decide(lit);
        }
        false
    }

    /// Whether predicate writes matched as many keys as they reported; else says so to the solver.
    pub(super) fn counts_fit(&mut self) -> bool {
        let problem = self.problem;
        let mut fit = true;
        for count in &problem.counts {
            if !self.in_effect(count.txn) {
                continue;
            }
            let came_true: Vec<u32> =
                count.matched.iter().copied().filter(|&index| self.is_true(index)).collect();
            let wanted = count.count as usize;
            let mut lits: Vec<Lit> = self.unless_effective(count.txn).into_iter().collect();
            match came_true.len().cmp(&wanted) {
                Ordering::Equal => continue,
                Ordering::Greater => {
                    for &index in &came_true[..=wanted] {
                        lits.push(!self.came_true(index));
                    }
                }
                Ordering::Less => {
                    // Of these not all can have failed to match.
                    let of = |index: u32| problem.alternatives[index as usize].of;
                    let mut all: Vec<u32> = count.matched.iter().map(|&index| of(index)).collect();
                    all.dedup();
                    let failed = all.iter().filter(|&&it| !came_true.iter().any(|&index| of(index) == it));
                    let some: Vec<u32> = failed.copied().take(all.len() + 1 - wanted).collect();
                    for &index in count.matched.iter().filter(|&&index| some.contains(&of(index))) {
                        lits.push(self.came_true(index));
                    }
                }
            }
            self.add_clause(&lits, vec![count.txn]);
            fit = false;
        }
        fit
    }

    /// The literal that an alternative is the true one.
    fn came_true(&mut self, alternative: u32) -> Lit {
        if let Some(var) = self.matching.vars.get(&alternative) {
            return var.positive();
        }
        let of = self.problem.alternatives[alternative as usize].of;
        let it = self.problem.matches[of as usize];
        let mut lits = Vec::new();
        for index in it.first..it.end {
            let var = self.solver.new_var(&[], &[]);
            self.solver.watch(var);
            self.matching.vars.insert(index, var);
            self.matching.alternative_of.insert(var, index);
            if self.problem.alternatives[index as usize].is_possible {
                lits.push(var.positive());
            } else {
                self.add_clause(&[var.negative()], vec![it.txn]);
            }
        }
        for (place, &one) in lits.iter().enumerate() {
            for &other in &lits[place + 1..] {
                self.add_clause(&[!one, !other], vec![it.txn]);
            }
        }
        lits.extend(self.unless_effective(it.txn));
        self.add_clause(&lits, vec![it.txn]);
        self.matching.vars[&alternative].positive()
    }
}
