//! A first order of the known edges, which all levels share that count the same orders.

use crate::blame;
use crate::constrain::Known;
use crate::problem::{Problem, Txn};
use crate::schedule::{self, Scheduled};
use history::History;
use isolation::{Budget, Undecided};
use solver::Graph;

/// The known edges, and a first order of them: the same for all levels that count the same orders.
#[derive(Debug)]
pub(crate) struct FirstOrder {
    pub(crate) graph: Graph,
    /// Places by node; or transactions whose known edges form a cycle.
    pub(crate) position: Result<Vec<u32>, Vec<Txn>>,
}

impl FirstOrder {
    pub(crate) fn of(
        history: &History,
        problem: &Problem,
        known: &Known,
        budget: &Budget,
    ) -> Result<Self, Undecided> {
        let position = match schedule::schedule(history, problem, known, budget)? {
            Scheduled::Order { position, .. } => Ok(position),
            Scheduled::Stuck(stuck) => Err(blame::known_cycle(problem, known, &stuck)),
        };
        budget.check()?;
        Ok(Self { graph: known.graph(problem), position })
    }
}
