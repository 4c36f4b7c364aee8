//! The smallest violated part of a history, in words: how small it is, what falls with it, what would have been allowed.

use crate::phrase;
use crate::shorten::Lens;
use evidence::{Closer, Reduced};
use history::formats::notation;
use history::{History, OpId};
use isolation::{Level, VerdictKind};
use serde::Serialize;

/// What is reported about the smallest violated part.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// How many transactions it has.
    pub transactions: usize,
    /// How many operations.
    pub operations: usize,
    /// Whether nothing more can go; else the time was up.
    pub is_minimal: bool,
    /// It in the one-line notation.
    pub notation: String,
    /// The weakest levels it violates.
    pub weakest: Vec<Level>,
    /// What every level comes to in it.
    pub marks: Vec<(Level, VerdictKind)>,
    /// What reads could have returned instead.
    pub instead: Vec<Alternative>,
}

/// A read and what it could have returned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alternative {
    /// The transaction's name.
    pub transaction: String,
    /// What it did, and what came back.
    pub seen: String,
    /// The same with results that would have been allowed.
    pub allowed: Vec<String>,
}

impl Part {
    /// Puts a closer look at what is left into words.
    pub fn new(reduced: &Reduced, closer: &Closer) -> Self {
        let history = &reduced.history;
        let mut instead: Vec<(OpId, Alternative)> = Vec::new();
        for other in &closer.instead {
            let allowed = told(&other.changed, other.op);
            match instead.iter_mut().find(|(op, _)| *op == other.op) {
                Some((_, known)) => known.allowed.push(allowed),
                None => instead.push((other.op, Alternative::new(history, other.op, allowed))),
            }
        }
        Self {
            transactions: history.len(),
            operations: history.op_count(),
            is_minimal: reduced.is_minimal,
            notation: notation::to_string(history),
            weakest: closer.weakest.clone(),
            marks: closer.marks.clone(),
            instead: instead.into_iter().map(|(_, it)| it).collect(),
        }
    }

    /// The names of levels with a mark, in the order of the table.
    pub(crate) fn levels(&self, mark: VerdictKind) -> Vec<&'static str> {
        self.marks.iter().filter(|(_, it)| *it == mark).map(|(level, _)| level.name()).collect()
    }

    /// The strongest levels that still allow it, and whether they imply others.
    pub(crate) fn strongest_allowed(&self) -> (Vec<&'static str>, bool) {
        let accepted = self.marks.iter().filter(|(_, mark)| *mark == VerdictKind::Accepted);
        let accepted: Vec<Level> = accepted.map(|(level, _)| *level).collect();
        let follows =
            |level: Level| accepted.iter().any(|&other| other != level && checker::implies(other, level));
        let strongest = accepted.iter().filter(|&&level| !follows(level));
        let strongest: Vec<&str> = strongest.map(|level| level.name()).collect();
        let has_weaker = strongest.len() < accepted.len();
        (strongest, has_weaker)
    }

    /// Levels that fall with the weakest.
    pub(crate) fn also_broken(&self) -> Vec<&'static str> {
        let weakest: Vec<&str> = self.weakest.iter().map(|level| level.name()).collect();
        self.levels(VerdictKind::Violated).into_iter().filter(|name| !weakest.contains(name)).collect()
    }
}

impl Alternative {
    fn new(history: &History, op: OpId, allowed: String) -> Self {
        Self {
            transaction: history.transaction(history.owner(op)).name().to_string(),
            seen: told(history, op),
            allowed: vec![allowed],
        }
    }
}

/// An operation of a tiny history, with what differs among its values visible.
fn told(history: &History, op: OpId) -> String {
    let lens = Lens::of(history, history.transactions().map(|txn| txn.id()));
    phrase::focused(history, history.operation(op), &lens, None)
}
