//! Transactions that are kept as programs: whatever changes in a key before their look is run again.

use super::WrongByKey;
use super::keys::KeyNo;
use super::program::{Outcome, Program};
use super::timeline::Timeline;
use super::txns::{Moment, TxnNo};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// One of them.
#[derive(Clone, Debug)]
pub(super) struct Watcher {
    pub(super) look: Moment,
    pub(super) program: Program,
    /// Its results that are wrong as things stand; each key is pinned.
    pub(super) wrong: WrongByKey,
    /// How many keys each predicate write matches as things stand.
    pub(super) matched: BTreeMap<u32, u64>,
    /// The keys it names, each pinned.
    pub(super) pinned: Vec<KeyNo>,
}

impl Watcher {
    /// The predicate writes that one more key satisfied.
    pub(super) fn count_matches(&mut self, outcome: &Outcome) {
        for op in &outcome.matched {
            *self.matched.entry(*op).or_default() += 1;
        }
    }
}

/// All of them, by look.
#[derive(Debug, Default)]
pub(super) struct Watchers {
    pub(super) order: Timeline<Moment>,
    pub(super) by_txn: FxHashMap<TxnNo, Watcher>,
    pub(super) acts: usize,
}

impl Watchers {
    pub(super) fn is_empty(&self) -> bool {
        self.by_txn.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.by_txn.len() * 256 + self.acts * 96
    }
}
