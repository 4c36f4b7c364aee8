//! Transactions that a violation does not need, whatever they wrote.
//!
//! *What*: an aborted transaction took no effect, so no explanation needs it; it stays only where it is what the violation is
//! called after. And at levels at which a transaction sees one state, one whose own results contradict each other is in no
//! explanation whatsoever: of the others those stay that the argument names and those that wrote what it read.
//!
//! *Invariant*: what is left has an explanation if the whole has one: the aborted are in no explanation, and a whole with a
//! committed transaction that contradicts itself has none.

use super::Reducing;
use super::observed::Observed;
use certify::contradicts_itself;
use history::{History, Id, Status, TxnId};
use isolation::{Rule, Ryow};
use oracle::tiny::{Sketch, SketchOp, SketchTxn};

impl Reducing<'_> {
    /// Leaves out what was aborted, all at once or each by itself.
    pub(super) fn drop_aborted(&mut self) {
        self.drop_where(|txn| txn.status == Status::Aborted);
    }

    /// Leaves out everything that the argument does not name, beside a transaction that contradicts itself.
    pub(super) fn drop_bystanders(&mut self) {
        let (level, options) = (self.question.level, self.question.options);
        let sees_one_state = matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation);
        if !sees_one_state || options.mixed || !level.modules().is_empty() {
            return;
        }
        let history = self.best.build();
        let Some(alone) = impossible_alone(&history, &self.evidence.transactions, options.ryow) else {
            return;
        };
        let mut named = vec![alone];
        named.extend(self.evidence.edges.iter().flat_map(|edge| edge.from.into_iter().chain([edge.to])));
        named.extend(self.evidence.supposed_writers(&history));
        let names: Vec<Option<String>> =
            named.iter().map(|txn| self.best.transactions[txn.index()].id.clone()).collect();
        if !names.iter().all(Option::is_some) {
            return;
        }
        // Without whoever wrote what it read, it would read values from nowhere: another fault, at other levels.
        let mut seen = Observed::default();
        self.best.transactions[alone.index()].ops.iter().for_each(|operation| seen.note(operation));
        let wrote_it = |operation: &SketchOp| {
            matches!(operation, SketchOp::Write { .. } | SketchOp::Append { .. }) && !seen.misses(operation)
        };
        self.drop_where(|txn| !names.contains(&txn.id) && !txn.ops.iter().any(wrote_it));
    }

    /// Leaves out some transactions, all at once if that can be, else one after the other.
    fn drop_where(&mut self, goes: impl Fn(&SketchTxn) -> bool) {
        let mut all = self.best.clone();
        all.transactions.retain(|txn| !goes(txn));
        if all == self.best || self.attempt(all) {
            return;
        }
        for place in (0..self.best.transactions.len()).rev() {
            if goes(&self.best.transactions[place]) {
                let mut one: Sketch = self.best.clone();
                one.transactions.remove(place);
                self.attempt(one);
            }
        }
    }
}

/// A committed transaction whose results contradict each other.
fn impossible_alone(history: &History, among: &[TxnId], ryow: Ryow) -> Option<TxnId> {
    let is_committed = |txn: &TxnId| history.transaction(*txn).is_committed();
    among.iter().copied().filter(is_committed).find(|&txn| contradicts_itself(history, txn, ryow))
}
