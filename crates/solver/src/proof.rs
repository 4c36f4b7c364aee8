//! Where every clause comes from, so that a contradiction can be traced to what was put in.
//!
//! Each clause keeps its origin: the caller's tag, the nodes of the cycle that proves it, or the clauses
//! it was resolved from. [`Solver::core`] walks back from the final conflict. With [`Solver::log_proof`]
//! the clauses themselves are kept too, in order; each learnt one follows from the earlier ones by unit
//! propagation (RUP), each lemma from its cycle.

use crate::graph::Node;
use crate::search::{Lit, Solver};

#[derive(Clone, Debug)]
pub(crate) enum Origin {
    Input { tag: u32 },
    Cycle { nodes: Vec<Node> },
    Learnt { from: Vec<u32> },
}

/// One clause of a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProofStep {
    /// The caller's clause.
    Input {
        /// Its literals.
        lits: Vec<Lit>,
        /// Its tag.
        tag: u32,
    },
    /// The edges of these literals' negations close a cycle through these nodes.
    Cycle {
        /// Its literals.
        lits: Vec<Lit>,
        /// The cycle.
        nodes: Vec<Node>,
    },
    /// Follows from earlier clauses by unit propagation.
    Learnt {
        /// Its literals.
        lits: Vec<Lit>,
    },
}

/// What a contradiction rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Core {
    /// Tags of the clauses that were needed, ascending.
    pub tags: Vec<u32>,
    /// Nodes on the cycles that were needed, ascending.
    pub nodes: Vec<Node>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Proof {
    origins: Vec<Origin>,
    steps: Option<Vec<ProofStep>>,
    conclusion: Vec<u32>,
}

impl Proof {
    pub(crate) fn keep_steps(&mut self) {
        self.steps.get_or_insert_default();
    }

    pub(crate) fn add(&mut self, id: u32, origin: Origin, lits: &[Lit]) {
        debug_assert_eq!(id as usize, self.origins.len());
        if let Some(steps) = &mut self.steps {
            let lits = lits.to_vec();
            steps.push(match &origin {
                Origin::Input { tag } => ProofStep::Input { lits, tag: *tag },
                Origin::Cycle { nodes } => ProofStep::Cycle { lits, nodes: nodes.clone() },
                Origin::Learnt { .. } => ProofStep::Learnt { lits },
            });
        }
        self.origins.push(origin);
    }

    pub(crate) fn conclude(&mut self, clauses: Vec<u32>) {
        self.conclusion = clauses;
    }
}

impl Solver {
    /// After [`crate::Progress::Unsatisfiable`]: the input clauses and the cycles it rests on.
    pub fn core(&self) -> Core {
        let mut core = Core::default();
        let mut seen = vec![false; self.proof.origins.len()];
        let mut stack = self.proof.conclusion.clone();
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            match &self.proof.origins[id as usize] {
                Origin::Input { tag } => core.tags.push(*tag),
                Origin::Cycle { nodes } => core.nodes.extend(nodes),
                Origin::Learnt { from } => stack.extend(from),
            }
        }
        core.tags.sort_unstable();
        core.tags.dedup();
        core.nodes.sort_unstable();
        core.nodes.dedup();
        core
    }

    /// The clauses of the search in order, if [`Solver::log_proof`] was called before it.
    pub fn proof(&self) -> Option<&[ProofStep]> {
        self.proof.steps.as_deref()
    }
}
