//! Timestamps become ranks: who commits after whom, and how many commits each transaction sees.
//!
//! **What.** Committed transactions in the order of their commit timestamps; a transaction's place there
//! is its *rank*. A snapshot is a number: a transaction whose snapshot is `s` sees exactly the ranks
//! below `s`. After this file nothing compares timestamps any more.
//!
//! **Equal timestamps.** Commits come before starts (Chronos and Aion, Li et al., ICDE 2025, Definition 6 has `≤`), so at one
//! instant: first the writers that started earlier, then writers that start and commit at this instant,
//! one after the other, then transactions that only read. Whatever is still equal goes by start, by the
//! session's name and by the place in the session: by nothing that depends on the order of a file.
//!
//! **Cost.** One comparison a transaction where the file is sorted by commit, a sort otherwise; the
//! snapshot is found by galloping back from the transaction's own rank, `O(log w)` for `w` commits during
//! the transaction. Memory: 8 bytes a transaction, 16 while it is made.

use history::{History, Id, NameRef, Status, Timestamp, TxnId};
use isolation::{Event, Witness};
use std::cmp::Ordering;

/// How many ranks share one entry of [`Order::floor`].
const BLOCK: usize = 1024;

/// The commit order, and what each transaction sees of it.
pub(super) struct Order {
    /// The transactions by rank.
    pub(super) by_rank: Vec<TxnId>,
    /// By rank: how many ranks the transaction sees.
    pub(super) snapshot: Vec<u32>,
    /// For each block of ranks the smallest snapshot in this block or a later one.
    floor: Vec<u32>,
    /// Transactions that commit before they start: no place in the order is theirs.
    pub(super) backwards: Vec<TxnId>,
}

/// What decides the rank; see the module's words on equal timestamps.
#[derive(Clone, Copy)]
struct Entry {
    commit: Timestamp,
    txn: TxnId,
}

impl Order {
    /// The order of all committed transactions. With `serial`, a transaction sees all lower ranks.
    ///
    /// Every committed transaction must have timestamps.
    pub(super) fn new(history: &History, serial: bool) -> Self {
        let mut entries: Vec<Entry> = Vec::with_capacity(history.len());
        let mut backwards = Vec::new();
        for txn in history.transactions() {
            if let (Status::Committed, Some((start, commit))) = (txn.status(), txn.db()) {
                if start > commit {
                    backwards.push(txn.id());
                    continue;
                }
                entries.push(Entry { commit, txn: txn.id() });
            }
        }
        let compare =
            |a: &Entry, b: &Entry| a.commit.cmp(&b.commit).then_with(|| break_tie(history, a.txn, b.txn));
        if !entries.is_sorted_by(|a, b| compare(a, b).is_le()) {
            entries.sort_unstable_by(compare);
        }
        let by_rank: Vec<TxnId> = entries.iter().map(|entry| entry.txn).collect();
        let snapshot: Vec<u32> = if serial {
            (0..by_rank.len() as u32).collect()
        } else {
            (0..entries.len()).map(|rank| snapshot_of(history, &entries, rank)).collect()
        };
        Self { backwards, ..Self::of(by_rank, snapshot) }
    }

    /// An order of transactions, each with how many ranks it sees.
    pub(super) fn of(by_rank: Vec<TxnId>, snapshot: Vec<u32>) -> Self {
        let floor = floor_of(&snapshot);
        Self { by_rank, snapshot, floor, backwards: Vec::new() }
    }

    /// The witness that the order is.
    pub(super) fn witness(&self, serial: bool) -> Witness {
        if serial {
            return Witness { order: self.by_rank.iter().copied().map(Event::Whole).collect() };
        }
        let mut by_start: Vec<u32> = (0..self.by_rank.len() as u32).collect();
        by_start.sort_by_key(|&rank| self.snapshot[rank as usize]);
        let mut starts = by_start.into_iter().peekable();
        let mut order = Vec::with_capacity(2 * self.by_rank.len());
        for (rank, &txn) in self.by_rank.iter().enumerate() {
            while let Some(started) =
                starts.next_if(|&started| self.snapshot[started as usize] == rank as u32)
            {
                order.push(Event::Begin(self.by_rank[started as usize]));
            }
            order.push(Event::Commit(txn));
        }
        Witness { order }
    }

    /// No transaction of this rank or a later one has a smaller snapshot.
    #[inline]
    pub(super) fn floor(&self, rank: usize) -> u32 {
        self.floor.get(rank / BLOCK).copied().unwrap_or(u32::MAX)
    }

    /// Whether a new block of ranks begins here, so that [`Order::floor`] may have risen.
    #[inline]
    pub(super) fn floor_may_rise(rank: usize) -> bool {
        rank.is_multiple_of(BLOCK)
    }
}

fn floor_of(snapshot: &[u32]) -> Vec<u32> {
    let mut floor: Vec<u32> =
        snapshot.chunks(BLOCK).map(|block| block.iter().copied().min().unwrap_or(u32::MAX)).collect();
    for index in (0..floor.len().saturating_sub(1)).rev() {
        floor[index] = floor[index].min(floor[index + 1]);
    }
    floor
}

/// How many commits the transaction of this rank sees: those at or before its start, and at one instant
/// those that come before its own.
fn snapshot_of(history: &History, entries: &[Entry], rank: usize) -> u32 {
    let entry = entries[rank];
    let start = history.transaction(entry.txn).db().map_or(entry.commit, |(start, _)| start);
    if start >= entry.commit {
        return rank as u32;
    }
    // Gallop back to a commit at or before the start, then search the stretch in between.
    let (mut high, mut step) = (rank, 1);
    let low = loop {
        let low = high.saturating_sub(step);
        if low == 0 || entries[low].commit <= start {
            break low;
        }
        high = low;
        step *= 2;
    };
    (low + entries[low..high].partition_point(|other| other.commit <= start)) as u32
}

/// The order of two transactions with the same commit timestamp.
pub(super) fn break_tie(history: &History, a: TxnId, b: TxnId) -> Ordering {
    let key = |id: TxnId| {
        let txn = history.transaction(id);
        let (start, commit) = txn.db().unwrap_or((Timestamp::from(0), Timestamp::from(0)));
        let name: NameRef<'_> = history.sessions().get(txn.session());
        (at_once(is_read_only(history, id), start, commit), name, txn.position(), id.index())
    };
    key(a).cmp(&key(b))
}

/// What comes first of what commits at once, before names and places decide: see the module's words on equal timestamps.
pub(super) fn at_once(is_read_only: bool, start: Timestamp, commit: Timestamp) -> (bool, bool, Timestamp) {
    (is_read_only, start >= commit, start)
}

/// Whether a transaction has no operation that could write.
pub(super) fn is_read_only(history: &History, id: TxnId) -> bool {
    history.transaction(id).primitives().all(|(_, it)| it.is_read())
}
