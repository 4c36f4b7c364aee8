//! What an encoding is made of: known edges, questions with an edge set for either answer, clauses over answers.
//!
//! A question is a variable; its positive literal brings one set of edges, its negative one the other. A *must*
//! question is one of which either set holds in every explanation (the order of two writers); of the others only what
//! clauses ask for has to hold. Asked is an answer to every must question, and to as many others as the clauses need,
//! such that all edges together form no cycle.

use isolation::{Budget, Undecided};
use search::problem::{Problem, Txn};
use solver::{Lit, Node, Var};
use std::cell::Cell;

pub(super) type Edge = (Node, Node);

/// More questions or clauses than this are not written: the lazy strategy is there for such histories.
pub(super) const QUESTIONS_MAX: usize = 4_000_000;

/// Why there are no constraints.
#[derive(Debug)]
pub(super) enum Unwritten {
    /// Two transactions overwrote the same version after reading it.
    Contradiction,
    /// There would be more than this.
    TooLarge { questions: usize },
    /// The budget is used up.
    Open(Undecided),
}

/// Known edges, questions and clauses.
#[derive(Clone, Debug, Default)]
pub(super) struct Constraints {
    pub(super) nodes: usize,
    pub(super) known: Vec<Edge>,
    /// Edge sets, one a literal.
    edge_end: Vec<u32>,
    edges: Vec<Edge>,
    must: Vec<bool>,
    /// Answers that passes found; their edges are among the known ones.
    pub(super) settled: Vec<Option<bool>>,
    clause_end: Vec<u32>,
    lits: Vec<Lit>,
    /// The literal that a transaction of unknown outcome took effect.
    pub(super) effect: Vec<(Txn, Lit)>,
    /// What a question is about: two versions, the first before the second if it is answered by yes.
    pub(super) pairs: Vec<(u32, u32, Lit)>,
    /// What may be used to write them, and how often it was not asked.
    budget: Budget,
    unasked: Cell<u32>,
}

/// How often writing goes on before the budget is asked.
const UNASKED_MAX: u32 = 64;

/// A literal as a place in an array.
pub(super) fn index(lit: Lit) -> usize {
    lit.var().0 as usize * 2 + usize::from(!lit.is_positive())
}

impl Constraints {
    pub(super) fn new(nodes: usize, known: Vec<Edge>) -> Self {
        Self { nodes, known, ..Self::default() }
    }

    /// The same, written within a budget.
    pub(super) fn within(self, budget: &Budget) -> Self {
        Self { budget: budget.clone(), ..self }
    }

    /// How many questions there are.
    pub(super) fn len(&self) -> usize {
        self.must.len()
    }

    pub(super) fn clause_count(&self) -> usize {
        self.clause_end.len()
    }

    /// How many questions have no answer yet.
    pub(super) fn open(&self) -> usize {
        self.settled.iter().filter(|answer| answer.is_none()).count()
    }

    pub(super) fn ask(&mut self, yes: &[Edge], no: &[Edge], must: bool) -> Var {
        let var = Var(self.must.len() as u32);
        for edges in [yes, no] {
            self.edges.extend_from_slice(edges);
            self.edge_end.push(self.edges.len() as u32);
        }
        self.must.push(must);
        self.settled.push(None);
        var
    }

    pub(super) fn clause(&mut self, lits: &[Lit]) {
        self.lits.extend_from_slice(lits);
        self.clause_end.push(self.lits.len() as u32);
    }

    /// What is too large is refused while it is being written.
    pub(super) fn fits(&self) -> Result<(), Unwritten> {
        let count = self.len().max(self.clause_count()).max(self.known.len() / 4).max(self.edges.len() / 4);
        if count > QUESTIONS_MAX {
            return Err(Unwritten::TooLarge { questions: QUESTIONS_MAX });
        }
        self.unasked.set(self.unasked.get() + 1);
        if self.unasked.get() < UNASKED_MAX.min(self.budget.stride()) {
            return Ok(());
        }
        self.unasked.set(0);
        self.budget.check().map_err(Unwritten::Open)
    }

    /// The edges that a literal brings.
    pub(super) fn edges_of(&self, lit: Lit) -> &[Edge] {
        let place = index(lit);
        let start = place.checked_sub(1).map_or(0, |before| self.edge_end[before]);
        &self.edges[start as usize..self.edge_end[place] as usize]
    }

    pub(super) fn clause_at(&self, place: usize) -> &[Lit] {
        let start = place.checked_sub(1).map_or(0, |before| self.clause_end[before]);
        &self.lits[start as usize..self.clause_end[place] as usize]
    }

    pub(super) fn clauses(&self) -> impl Iterator<Item = &[Lit]> {
        (0..self.clause_count()).map(|place| self.clause_at(place))
    }

    pub(super) fn vars(&self) -> impl Iterator<Item = Var> + use<> {
        (0..self.must.len() as u32).map(Var)
    }

    pub(super) fn is_must(&self, var: Var) -> bool {
        self.must[var.0 as usize]
    }

    /// What passes found of a literal.
    pub(super) fn settled_value(&self, lit: Lit) -> Option<bool> {
        self.settled[lit.var().0 as usize].map(|answer| answer == lit.is_positive())
    }

    /// Transactions of unknown outcome that took effect, ascending.
    pub(super) fn effective(&self, problem: &Problem, holds: impl Fn(Lit) -> bool) -> Vec<Txn> {
        let taken = self.effect.iter().filter(|&&(_, lit)| holds(lit)).map(|&(txn, _)| txn);
        let mut effective: Vec<Txn> = taken.filter(|&txn| (txn as usize) < problem.len()).collect();
        effective.sort_unstable();
        effective
    }
}
