//! Alternatives as variables of the solver.
//!
//! *What*: what a transaction did to a key, where nobody reported it, is one of several alternatives of a match
//! ([`crate::scripts`]). Each is a variable from when it is first spoken of.
//!
//! *Invariant*: of the alternatives of a match that are possible exactly one comes true, if its transaction took effect.
//!
//! *Source*: Boomslang (Zhang, Mu and Tan 2026) §5 (superpositions), asked for as they come up.

use crate::problem::{Count, Match, Problem};
use rustc_hash::FxHashMap;
use solver::{Lit, Solver, Var};
use std::cmp::Ordering;

/// The alternatives that were spoken of.
#[derive(Default)]
pub(crate) struct Alternatives {
    vars: FxHashMap<u32, Var>,
    of: FxHashMap<Var, u32>,
}

impl Alternatives {
    /// The literal that an alternative came true, if it was spoken of.
    pub(crate) fn literal(&self, alternative: u32) -> Option<Lit> {
        Some(self.vars.get(&alternative)?.positive())
    }

    /// The match that a variable decides on.
    pub(crate) fn match_of(&self, problem: &Problem, var: Var) -> Option<u32> {
        let alternative = self.of.get(&var)?;
        Some(problem.alternatives[*alternative as usize].of)
    }

    /// Speaks of a match for the first time: the clauses that keep the invariant. `unless` holds if its transaction did
    /// not take effect.
    pub(crate) fn introduce(
        &mut self,
        problem: &Problem,
        solver: &mut Solver,
        it: Match,
        unless: Option<Lit>,
    ) -> Vec<Vec<Lit>> {
        let mut clauses = Vec::new();
        let mut possible = Vec::new();
        for alternative in it.first..it.end {
            let var = solver.new_var(&[], &[]);
            solver.watch(var);
            self.vars.insert(alternative, var);
            self.of.insert(var, alternative);
            if problem.alternatives[alternative as usize].is_possible {
                possible.push(var.positive());
            } else {
                clauses.push(vec![var.negative()]);
            }
        }
        for (place, &one) in possible.iter().enumerate() {
            clauses.extend(possible[place + 1..].iter().map(|&other| vec![!one, !other]));
        }
        possible.extend(unless);
        clauses.push(possible);
        clauses
    }
}

/// Compares how many keys a predicate write matched with what it reported. Where that differs, the alternatives of which
/// at least one must have come true, or not.
pub(crate) fn recount(
    problem: &Problem,
    count: &Count,
    is_true: impl Fn(u32) -> bool,
) -> Option<Vec<(u32, bool)>> {
    let came_true: Vec<u32> = count.matched.iter().copied().filter(|&it| is_true(it)).collect();
    let wanted = count.count as usize;
    match came_true.len().cmp(&wanted) {
        Ordering::Equal => None,
        Ordering::Greater => Some(came_true[..=wanted].iter().map(|&it| (it, false)).collect()),
        Ordering::Less => {
            // Of these matches not all can have failed.
            let of = |alternative: u32| problem.alternatives[alternative as usize].of;
            let mut all: Vec<u32> = count.matched.iter().map(|&it| of(it)).collect();
            all.dedup();
            let failed =
                all.iter().copied().filter(|&it| !came_true.iter().any(|&true_one| of(true_one) == it));
            let some: Vec<u32> = failed.take(all.len() + 1 - wanted).collect();
            let matched = count.matched.iter().copied().filter(|&it| some.contains(&of(it)));
            Some(matched.map(|it| (it, true)).collect())
        }
    }
}
