//! Which transactions may have taken effect, and which must precede which.

use history::{History, Status, Transaction, TxnId};
use isolation::{Level, modules};

/// A set of transactions, by their place in [`Effective::transactions`].
pub(super) type Set = u32;

/// The transactions that did or may have taken effect, and the orders that count between them.
pub(super) struct Effective {
    /// Committed and unknown ones, in the order of the file.
    pub(super) transactions: Vec<TxnId>,
    /// Those that certainly took effect.
    pub(super) committed: Set,
    /// For each, those that must precede it by the orders that the level counts.
    pub(super) before: Vec<Set>,
}

impl Effective {
    /// Collects them.
    pub(super) fn new(history: &History, level: Level, clock_skew: i64) -> Self {
        let all: Vec<Transaction<'_>> =
            history.transactions().filter(|txn| txn.status() != Status::Aborted).collect();
        let transactions: Vec<TxnId> = all.iter().map(Transaction::id).collect();
        let set = |holds: &dyn Fn(&Transaction<'_>) -> bool| {
            // Sets are only used below the limits of `admit`; what is above them is cut off here.
            let places = all.iter().take(Set::BITS as usize).enumerate();
            places.filter(|(_, txn)| holds(txn)).fold(0, |set, (place, _)| set | 1 << place)
        };
        let committed = set(&|txn| txn.is_committed());
        // What modules refuse is refused before.
        let added = modules::additions(history, level).unwrap_or_default();
        let adds = |earlier: &Transaction<'_>, later: &Transaction<'_>| {
            added.iter().any(|&(first, second, _)| (first, second) == (earlier.id(), later.id()))
        };
        let before = all
            .iter()
            .map(|later| {
                set(&|earlier| {
                    level.session && session_order(earlier, later)
                        || level.realtime && realtime_order(earlier, later, clock_skew)
                        || adds(earlier, later)
                })
            })
            .collect();
        Self { transactions, committed, before }
    }

    pub(super) fn len(&self) -> usize {
        self.transactions.len()
    }
}

/// Nothing follows a transaction of unknown outcome.
pub(super) fn session_order(earlier: &Transaction<'_>, later: &Transaction<'_>) -> bool {
    earlier.is_committed() && earlier.session() == later.session() && earlier.position() < later.position()
}

/// The earlier one's answer had come, by more than the skew, before the later one was sent.
pub(super) fn realtime_order(earlier: &Transaction<'_>, later: &Transaction<'_>, clock_skew: i64) -> bool {
    let (Some(first), Some(second)) = (earlier.client(), later.client()) else { return false };
    // In 128 bits, because a clock may be anywhere in 64.
    earlier.is_committed() && i128::from(first.end) + i128::from(clock_skew) < i128::from(second.begin)
}
