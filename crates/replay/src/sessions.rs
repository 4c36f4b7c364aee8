//! What timestamps break by themselves, before anything is replayed: start ≤ commit, session order,
//! real-time order.
//!
//! A transaction that commits before it starts is reported for that and takes no part in the other two: which of its timestamps
//! is wrong, nobody knows.
//!
//! A predecessor must be *visible*: at snapshot isolation it commits no later than the transaction
//! starts, at a serial level no later than it commits; at equal timestamps the order of [`super::order`]
//! decides. In a session, only the predecessor is compared:
//! if every neighbour is visible, so are all earlier ones. Real-time order has no neighbours: a
//! transaction is compared with the latest commit among all that had ended before it began, found by
//! walking begins and ends in the order of the clients' clocks, `O(n log n)`.

use super::order::break_tie;
use super::{Axiom, Content, Finding};
use history::{History, Timestamp, Transaction, TxnId};
use isolation::{Level, Options, Rule};

pub(super) fn check(history: &History, level: Level, options: &Options, found: &mut impl FnMut(Finding)) {
    let serial = level.rule == Rule::Serializable;
    if level.session {
        session_order(history, serial, found);
    }
    if level.realtime && history.has_client_clocks() {
        real_time_order(history, serial, options.clock_skew, found);
    }
}

/// The timestamps of a transaction that certainly took effect. One that commits before it starts has none that could
/// be compared.
pub(super) fn times(txn: Transaction<'_>) -> Option<(Timestamp, Timestamp)> {
    txn.db().filter(|(start, commit)| txn.is_committed() && start <= commit)
}

/// From when on a transaction sees nothing more.
fn looks_at((start, commit): (Timestamp, Timestamp), serial: bool) -> Timestamp {
    if serial { commit } else { start }
}

/// Whether `other` is in what `own` sees; both certainly took effect.
fn is_visible(history: &History, other: TxnId, own: TxnId, serial: bool) -> bool {
    let times = |id| times(history.transaction(id)).expect("only transactions with timestamps are compared");
    let ((_, commit), (start, own_commit)) = (times(other), times(own));
    if serial || start >= own_commit {
        commit < own_commit || commit == own_commit && break_tie(history, other, own).is_lt()
    } else {
        commit <= start
    }
}

/// Transactions that commit before they start.
pub(super) fn timestamp_order(history: &History, backwards: &[TxnId], found: &mut impl FnMut(Finding)) {
    for &txn in backwards {
        if let Some((start, commit)) = history.transaction(txn).db() {
            found(of_times(Axiom::TimestampOrder, txn, None, start, commit));
        }
    }
}

fn session_order(history: &History, serial: bool, found: &mut impl FnMut(Finding)) {
    for session in history.sessions().ids() {
        let mut before: Option<(TxnId, Timestamp)> = None;
        for &id in history.of_session(session) {
            let Some(own) = times(history.transaction(id)) else { continue };
            let looks_at = looks_at(own, serial);
            if let Some((other, commit)) =
                before.filter(|(other, _)| !is_visible(history, *other, id, serial))
            {
                found(of_times(Axiom::Session, id, Some(other), commit, looks_at));
            }
            before = Some((id, own.1));
        }
    }
}

fn real_time_order(history: &History, serial: bool, skew: i64, found: &mut impl FnMut(Finding)) {
    let clocked = || history.transactions().filter(|txn| txn.client().is_some() && times(*txn).is_some());
    let clock = |txn: &Transaction<'_>| txn.client().expect("only transactions with clocks are walked");
    let mut by_begin: Vec<Transaction<'_>> = clocked().collect();
    let mut by_end = by_begin.clone();
    by_begin.sort_by_key(|txn| clock(txn).begin);
    by_end.sort_by_key(|txn| clock(txn).end);
    let mut ended = by_end.into_iter().peekable();
    let mut latest: Option<(TxnId, Timestamp)> = None;
    for txn in by_begin {
        let begin = clock(&txn).begin;
        while let Some(over) = ended.next_if(|other| clock(other).end.saturating_add(skew) < begin) {
            let (_, commit) = times(over).expect("only transactions with timestamps are walked");
            let later =
                |(other, at)| at < commit || at == commit && break_tie(history, other, over.id()).is_lt();
            if latest.is_none_or(later) {
                latest = Some((over.id(), commit));
            }
        }
        let looks_at = looks_at(times(txn).expect("only transactions with timestamps are walked"), serial);
        if let Some((other, commit)) =
            latest.filter(|(other, _)| !is_visible(history, *other, txn.id(), serial))
        {
            found(of_times(Axiom::RealTime, txn.id(), Some(other), commit, looks_at));
        }
    }
}

fn of_times(axiom: Axiom, txn: TxnId, other: Option<TxnId>, expected: Timestamp, seen: Timestamp) -> Finding {
    Finding {
        axiom,
        txn,
        op: None,
        key: None,
        other,
        expected: Content::Time(expected),
        seen: Content::Time(seen),
    }
}
