//! Learning from conflicts: the first unique implication point.
//!
//! *What*: from a falsified clause, resolve backwards along the trail until one literal of the last
//! decision level is left; its negation, with what remains of earlier levels, is a clause that follows
//! from the problem and excludes the mistake. Then drop literals that the others imply.
//!
//! *Cost*: the clauses of one level's implications. *Source*: Marques-Silva and Sakallah; the
//! minimisation is Sörensson and Biere's local one.

use crate::search::{Lit, NO_CLAUSE, Solver};
use smallvec::SmallVec;

/// A clause that a conflict taught.
pub(crate) struct Learnt {
    /// The asserting literal first.
    pub(crate) lits: SmallVec<[Lit; 4]>,
    /// Where it is unit.
    pub(crate) level: u32,
    /// The clauses it was resolved from.
    pub(crate) from: Vec<u32>,
}

impl Solver {
    /// Learns from a clause all of whose literals are false, the last at the current level.
    pub(crate) fn analyze(&mut self, conflict: u32) -> Learnt {
        let mut lits: SmallVec<[Lit; 4]> = SmallVec::new();
        let mut from = Vec::new();
        let mut open = 0;
        let mut clause = conflict;
        let mut place = self.trail.len();
        let mut touched: Vec<Lit> = Vec::new();
        let asserting = loop {
            from.push(clause);
            for index in 0..self.clauses[clause as usize].lits.len() {
                let lit = self.clauses[clause as usize].lits[index];
                let var = lit.var().0 as usize;
                // The literal being resolved upon is true; all others are false.
                if self.value(lit) == Some(true) || self.seen[var] {
                    continue;
                }
                self.seen[var] = true;
                touched.push(lit);
                if self.level[var] == 0 {
                    continue; // its reason is collected below
                }
                if self.level[var] == self.decision_level() {
                    open += 1;
                } else {
                    lits.push(lit);
                }
            }
            let lit = loop {
                place -= 1;
                let lit = self.trail[place];
                if self.seen[lit.var().0 as usize] {
                    break lit;
                }
            };
            open -= 1;
            if open == 0 {
                break !lit;
            }
            clause = self.reason[lit.var().0 as usize];
            debug_assert_ne!(clause, NO_CLAUSE, "only the decision itself has no reason, and it comes last");
        };
        self.minimise(&mut lits, &mut from);
        self.collect_level_zero(&touched, &mut from);
        for lit in touched {
            self.seen[lit.var().0 as usize] = false;
        }
        let level = lits.iter().map(|&lit| self.level_of(lit)).max().unwrap_or(0);
        lits.insert(0, asserting);
        Learnt { lits, level, from }
    }

    /// Drops literals whose reason consists of literals that stay (or hold from the start).
    fn minimise(&mut self, lits: &mut SmallVec<[Lit; 4]>, from: &mut Vec<u32>) {
        let mut kept: SmallVec<[Lit; 4]> = SmallVec::new();
        for &lit in lits.iter() {
            let reason = self.reason[lit.var().0 as usize];
            let implied = reason != NO_CLAUSE
                && self.clauses[reason as usize].lits.iter().all(|&other| {
                    other == !lit || (self.seen[other.var().0 as usize] && self.level_of(other) > 0)
                });
            if implied {
                from.push(reason);
            } else {
                kept.push(lit);
            }
        }
        *lits = kept;
    }

    /// Literals false from the start drop out of learnt clauses; the proof still needs their reasons.
    fn collect_level_zero(&self, touched: &[Lit], from: &mut Vec<u32>) {
        for lit in touched {
            let var = lit.var().0 as usize;
            if self.level[var] == 0 && self.reason[var] != NO_CLAUSE {
                from.push(self.reason[var]);
            }
        }
    }

    /// Records why a clause false from the start is false: the reasons of its literals.
    pub(crate) fn explain_level_zero(&mut self, conflict: u32) {
        let reasons =
            self.clauses[conflict as usize].lits.iter().map(|lit| self.reason[lit.var().0 as usize]);
        let from = std::iter::once(conflict).chain(reasons.filter(|&reason| reason != NO_CLAUSE)).collect();
        self.proof.conclude(from);
    }
}
