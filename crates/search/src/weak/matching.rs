//! Predicate writes whose keys nobody reported: which way each went.
//!
//! *What*: what such a transaction did to a key is one of several alternatives ([`crate::scripts`]); each has reads
//! that count, and a version that is there, only if it is the true one ([`crate::alternatives`]).
//!
//! *Steps*: a match of which none is true is supposed to have gone as the order of the moment has it; where the
//! database told how many keys matched, that is compared once everything else is settled.
//! *Cost*: a variable an alternative. *Source*: Boomslang (Zhang, Mu and Tan 2026) §5 (superpositions), asked for as they come up.

use super::search::Search;
use crate::alternatives::{Alternatives, recount};
use crate::problem::{INITIAL, NONE, Problem};
use rustc_hash::FxHashMap;
use solver::{Lit, Var};

/// The alternatives that were asked about.
#[derive(Default)]
pub(super) struct Matching {
    alternatives: Alternatives,
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
        let of = self.alternatives.match_of(problem, var)?;
        Some(problem.matches[of as usize].key)
    }
}

impl Search<'_> {
    /// Whether an alternative, or [`NONE`], is true as things stand.
    pub(super) fn is_true(&self, alternative: u32) -> bool {
        alternative == NONE || {
            let lit = self.matching.alternatives.literal(alternative);
            lit.is_some_and(|lit| self.solver.value(lit) == Some(true))
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
            let Some(otherwise) = recount(problem, count, |it| self.is_true(it)) else { continue };
            let mut lits: Vec<Lit> = self.unless_effective(count.txn).into_iter().collect();
            for (alternative, is_true) in otherwise {
                let lit = self.came_true(alternative);
                lits.push(if is_true { lit } else { !lit });
            }
            self.add_clause(&lits, vec![count.txn]);
            fit = false;
        }
        fit
    }

    /// The literal that an alternative is the true one.
    fn came_true(&mut self, alternative: u32) -> Lit {
        if let Some(lit) = self.matching.alternatives.literal(alternative) {
            return lit;
        }
        let of = self.problem.alternatives[alternative as usize].of;
        let it = self.problem.matches[of as usize];
        let unless = self.unless_effective(it.txn);
        for clause in self.matching.alternatives.introduce(self.problem, &mut self.solver, it, unless) {
            self.add_clause(&clause, vec![it.txn]);
        }
        self.matching.alternatives.literal(alternative).expect("all of a match are introduced together")
    }
}
