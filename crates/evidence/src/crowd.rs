//! More transactions replaced a value than there were versions of it, told of a history; [`search::pigeonhole`] counts.

use crate::back::Back;
use crate::naming;
use history::{History, Id, OpId, Primitive, TxnId};
use isolation::{Evidence, Level, Options, Ryow};
use rustc_hash::FxHashSet;
use search::observe::observe;
use search::pigeonhole::{applies, find};
use search::problem::Txn;
use search::restrict::restrict;

/// More transactions replaced a value than there were versions of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The reads, one of each transaction: all returned the same value of the same key, which all of them replaced.
    pub reads: Vec<OpId>,
    /// Who wrote the value.
    pub writers: Vec<TxnId>,
    /// Whether it was there from the start.
    pub from_start: bool,
}

impl Crowd {
    /// What counting shows of the core of some evidence, where there is no other argument.
    pub fn shown_by(evidence: &Evidence, history: &History) -> Option<Self> {
        let is_counted = evidence.edges.is_empty() && evidence.anomaly == naming::lost_update();
        is_counted.then(|| of(history, &evidence.transactions, Ryow::Must)).flatten()
    }

    /// Whether one transaction less would be none: it speaks of all of them. That the others are not a crowd does not mean that they
    /// have an explanation, but to look for one is a search that counting saves.
    pub(crate) fn needs_all(&self, history: &History, txns: &[TxnId]) -> bool {
        let of_it = self.transactions(history);
        txns.iter().all(|txn| of_it.contains(txn))
    }

    /// What it rests on: the reads, and what their transactions and the writers left in the key.
    pub(crate) fn operations(&self, history: &History) -> FxHashSet<OpId> {
        let key = self.reads.first().and_then(|&read| history.primitive(read).key());
        let is_write = |&op: &OpId| {
            matches!(history.primitive(op), Primitive::Write { .. }) && history.primitive(op).key() == key
        };
        let last_write = |txn: TxnId| history.transaction(txn).op_ids().rev().find(is_write);
        let left = self.transactions(history).into_iter().filter_map(last_write);
        self.reads.iter().copied().chain(left).collect()
    }

    fn transactions(&self, history: &History) -> FxHashSet<TxnId> {
        self.reads.iter().map(|&read| history.owner(read)).chain(self.writers.iter().copied()).collect()
    }
}

/// What a set of transactions shows by counting alone, if it does and the level forbids it.
pub(crate) fn crowd(history: &History, txns: &[TxnId], level: Level, options: &Options) -> Option<Crowd> {
    (applies(level) && !options.mixed).then(|| of(history, txns, options.ryow)).flatten()
}

fn of(history: &History, txns: &[TxnId], ryow: Ryow) -> Option<Crowd> {
    let part = restrict(history, txns);
    let options = Options { ryow, ..Options::default() };
    let problem = observe(&part.history, &options).ok()?;
    let found = find(&problem, &options.budget).ok()??;
    let origin = |txn: Txn| part.txns[problem.txns[txn as usize].index()];
    let back = Back { part: &part.history, txns: &part.txns, whole: history, ryow };
    Some(Crowd {
        reads: found.readers.iter().map(|&read| back.op(problem.reads[read as usize].op)).collect(),
        writers: found.writers.into_iter().map(origin).collect(),
        from_start: found.from_start,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    fn of(text: &str) -> Option<(usize, usize, bool)> {
        let history = notation::parse(text).expect("the notation is right");
        let all: Vec<TxnId> = history.transactions().map(|txn| txn.id()).collect();
        super::of(&history, &all, Ryow::Must).map(|it| (it.reads.len(), it.writers.len(), it.from_start))
    }

    #[test]
    fn each_version_is_replaced_once() {
        let lock = |sessions: usize| -> String {
            (0..sessions).map(|session| format!("s{session}: r(m,0) w(m,1)\n")).collect()
        };
        // There from the start, and after one release.
        let twice = format!("init: m=0\nt: r(m,1) w(m,0)\n{}", lock(2));
        assert_eq!(of(&twice), None);
        assert_eq!(of(&format!("{twice}u: r(m,0) w(m,1)\n")), Some((3, 1, true)));
        // Who may have taken effect may have released it; whoever is not known to have taken it may not have.
        assert_eq!(of(&format!("{twice}u: r(m,0) w(m,1)\nv: w(m,0)?\n")), None);
        assert_eq!(of(&format!("{twice}u: r(m,0) w(m,1)?\n")), None);
        // Whoever only looked replaced nothing.
        assert_eq!(of(&format!("{twice}u: r(m,0)\n")), None);
    }
}
