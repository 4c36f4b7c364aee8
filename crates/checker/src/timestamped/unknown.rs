//! Transactions whose outcome the client never learnt: dormant until somebody sees them.
//!
//! **Rule.** A transaction of unknown outcome takes effect right before the first transaction (by start)
//! that saw what it wrote and cannot have seen it otherwise. That is the latest moment that explains the
//! reader, so nobody who started earlier is contradicted. If its own commit timestamp is known, it does
//! not take effect earlier.

use super::order::Order;
use history::{History, Id, KeyId, Operation, Status, TxnId};
use rustc_hash::FxHashMap;

/// Those that have not taken effect, by what they may have written.
pub(super) struct Dormant {
    /// All of them by session and place in it: independent of the order of the file, as everything here.
    /// The maps below hold places in this list.
    ordered: Vec<TxnId>,
    by_key: FxHashMap<KeyId, Vec<usize>>,
    /// Those with predicate writes, which may have written anything.
    anywhere: Vec<usize>,
}

impl Dormant {
    /// All transactions of unknown outcome that may have written; `None` if there are none.
    pub(super) fn new(history: &History) -> Option<Self> {
        let mut ordered: Vec<TxnId> = history
            .transactions()
            .filter(|txn| txn.status() == Status::Unknown)
            .map(|txn| txn.id())
            .collect();
        ordered.sort_by_key(|&id| {
            let txn = history.transaction(id);
            (history.sessions().get(txn.session()), txn.position())
        });
        let mut dormant = Self { ordered, by_key: FxHashMap::default(), anywhere: Vec::new() };
        for place in 0..dormant.ordered.len() {
            dormant.insert(history, place);
        }
        let none = dormant.by_key.is_empty() && dormant.anywhere.is_empty();
        (!none).then_some(dormant)
    }

    fn insert(&mut self, history: &History, place: usize) {
        let mut anywhere = false;
        for (_, operation) in history.transaction(self.ordered[place]).ops() {
            match operation {
                Operation::Write { key, .. } | Operation::Delete { key } | Operation::Append { key, .. } => {
                    let writers = self.by_key.entry(key).or_default();
                    if writers.last() != Some(&place) {
                        writers.push(place);
                    }
                }
                Operation::Update { .. } | Operation::DeleteWhere { .. } => anywhere = true,
                _ => {}
            }
        }
        if anywhere {
            self.anywhere.push(place);
        }
    }

    /// Those that may have written the key by the time `reader` looked.
    pub(super) fn writers_of(&self, history: &History, key: KeyId, reader: TxnId) -> Vec<TxnId> {
        let looked = history.transaction(reader).db().map(|(start, _)| start);
        let known = self.by_key.get(&key).into_iter().flatten();
        let mut places: Vec<usize> = known.chain(&self.anywhere).copied().collect();
        places.sort_unstable();
        places.dedup();
        let early = |id: TxnId| match (history.transaction(id).db(), looked) {
            (Some((_, commit)), Some(looked)) => commit <= looked,
            _ => true,
        };
        places.into_iter().map(|place| self.ordered[place]).filter(|&id| early(id)).collect()
    }

    /// It has taken effect.
    pub(super) fn remove(&mut self, id: TxnId) {
        let stays = |place: &usize| self.ordered[*place] != id;
        for writers in self.by_key.values_mut() {
            writers.retain(stays);
        }
        self.anywhere.retain(stays);
    }
}

/// The ranks of all transactions in the order they start.
pub(super) fn by_start(history: &History, order: &Order) -> Vec<u32> {
    let mut ranks: Vec<u32> = (0..order.by_rank.len() as u32).collect();
    ranks.sort_by_key(|&rank| {
        let txn = history.transaction(order.by_rank[rank as usize]);
        let start = txn.db().map(|(start, _)| start);
        let name = history.sessions().get(txn.session());
        (order.snapshot[rank as usize], start, name, txn.position(), txn.id().index())
    });
    ranks
}
