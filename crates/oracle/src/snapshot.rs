//! Snapshot isolation by trying interleavings of begins and commits.
//!
//! **What.** Looks for a sequence of begins and commits in which each transaction, run on the state at its
//! begin, gives exactly the recorded results, and no transaction commits a write to a key that another
//! one wrote and committed since its begin (first committer wins).
//!
//! **Invariant.** A point of the search is which transactions have committed, what they left behind, and
//! the writes of the open ones; nothing else matters for what can follow, so no point is visited twice.
//! A transaction that begins must commit: one of unknown outcome that had no effect never begins.
//!
//! **Steps.** A transaction is replayed as a whole when it begins, because everything it sees is fixed
//! then. One that writes nothing commits at once: waiting would change nothing for anybody.
//!
//! **Cost.** At most 3ⁿ ways to be unborn, open or committed, times the states left behind.

use super::content::{Store, initial_store};
use super::orders::{Effective, Set};
use super::replay::{Replay, Writes};
use super::{Effort, Found, Stop, admit};
use history::History;
use isolation::{Event, Level, Options, Witness};
use std::collections::{BTreeMap, HashSet};

/// The largest history that is tried.
const TRANSACTIONS_MAX: usize = 16;

pub(super) fn search(history: &History, level: Level, options: &Options, effort: &mut Effort<'_>) -> Found {
    let effective = Effective::new(history, level, options.clock_skew);
    admit(effective.len(), TRANSACTIONS_MAX)?;
    let mut search = Search {
        effective,
        replay: Replay::new(history, options.ryow),
        failed: HashSet::new(),
        order: Vec::new(),
        effort,
    };
    let start = Point { committed: 0, store: initial_store(history), open: BTreeMap::new() };
    let found = search.extend(&start)?;
    Ok(found.then_some(Witness { order: search.order }))
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Point {
    committed: Set,
    /// What the committed ones left behind.
    store: Store,
    /// What the open ones will write.
    open: BTreeMap<usize, Writes>,
}

impl Point {
    /// The point after `txn` commits; `None` if that dooms an open transaction, which must commit too.
    fn after_commit(&self, txn: usize) -> Option<Point> {
        let mut after = self.clone();
        let writes = after.open.remove(&txn)?;
        let clash = |other: &Writes| writes.keys().any(|key| other.contains_key(key));
        if after.open.values().any(clash) {
            return None;
        }
        for (key, content) in writes {
            after.store[key.0 as usize] = content;
        }
        after.committed |= 1 << txn;
        Some(after)
    }
}

struct Search<'h, 'e, 'o> {
    effective: Effective,
    replay: Replay<'h>,
    /// Points from which no sequence goes on to the end.
    failed: HashSet<Point>,
    order: Vec<Event>,
    effort: &'e mut Effort<'o>,
}

impl Search<'_, '_, '_> {
    fn extend(&mut self, point: &Point) -> Result<bool, Stop> {
        if self.effective.committed & !point.committed == 0 && point.open.is_empty() {
            return Ok(true);
        }
        if self.failed.contains(point) {
            return Ok(false);
        }
        for txn in 0..self.effective.len() {
            self.effort.step()?;
            let has_committed = point.committed & 1 << txn != 0;
            let found = if point.open.contains_key(&txn) {
                self.commit(point, txn)?
            } else {
                !has_committed && self.begin(point, txn)?
            };
            if found {
                return Ok(true);
            }
        }
        self.failed.insert(point.clone());
        Ok(false)
    }

    fn commit(&mut self, point: &Point, txn: usize) -> Result<bool, Stop> {
        let Some(after) = point.after_commit(txn) else { return Ok(false) };
        self.order.push(Event::Commit(self.effective.transactions[txn]));
        let found = self.extend(&after)?;
        if !found {
            self.order.pop();
        }
        Ok(found)
    }

    fn begin(&mut self, point: &Point, txn: usize) -> Result<bool, Stop> {
        if self.effective.before[txn] & !point.committed != 0 {
            return Ok(false);
        }
        let id = self.effective.transactions[txn];
        let Some(writes) = self.replay.run(id, &point.store) else { return Ok(false) };
        let only_reads = writes.is_empty();
        let mut after = point.clone();
        after.open.insert(txn, writes);
        self.order.push(Event::Begin(id));
        let found = if only_reads { self.commit(&after, txn)? } else { self.extend(&after)? };
        if !found {
            self.order.pop();
        }
        Ok(found)
    }
}
