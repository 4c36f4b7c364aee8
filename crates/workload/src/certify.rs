//! Whether a transaction may commit.
//!
//! **Read-committed.** If nobody has changed a key that it holds: one read with a lock, or a list read
//! together with its own elements. (A locking database would have made the others wait; this one refuses.)
//!
//! **Snapshot isolation.** If nobody has committed a write to a key that it wrote or holds since its
//! snapshot.
//!
//! **Serializable by commit order** (backward validation: Kung and Robinson, *On Optimistic Methods for
//! Concurrency Control*, 1981). If it only read; or if all that it read, by key, range or filter, would be
//! read again now. So a transaction that changes something happens at its commit, one that only reads at
//! its snapshot, and commit timestamps are a serial order.
//!
//! **Serializable by conflicts** (Cahill, Röhm and Fekete, *Serializable Isolation for Snapshot
//! Databases*, 2008; the rule on commit order and readers from Ports and Grittner, *Serializable Snapshot
//! Isolation in PostgreSQL*, 2012). As snapshot isolation; and no transaction may be a *pivot*:
//!
//! ```text
//!    R --rw--> T --rw--> S        S committed first of the three
//! ```
//!
//! Every cycle of a snapshot-isolated history has one. With S committed, either R commits before T: T is
//! refused, for it overwrites what a committed R read and misses what S wrote. Or T commits before R: R is
//! refused, for it misses what T wrote and T has missed S; if R only reads, only where S had committed
//! before R's snapshot. Serial order and commit order differ here: such histories are harder to explain.
//!
//! **Cost.** A look-up for each key read or written; ranges are walked, filters are evaluated on what was
//! written since the snapshot.

use crate::claims::{Change, Claims};
use crate::keys::Key;
use crate::plan::{Filter, Value};
use crate::simulation::{Certification, Config, Strength};
use crate::store::{Stamp, Store};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Decides on commits, and remembers of them what later decisions need.
#[derive(Debug)]
pub(crate) struct Certifier {
    rule: Rule,
    conflicts: Conflicts,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    ReadCommitted,
    FirstCommitter,
    CommitOrder,
    Conflicts,
}

/// What certification by conflicts remembers of committed transactions.
#[derive(Debug, Default)]
struct Conflicts {
    /// When a key was last read by a transaction that committed.
    read_at: FxHashMap<Key, Stamp>,
    /// Ranges and filters read by transactions that committed, by the time of their commit.
    scanned: VecDeque<Scanned>,
    /// Committed transactions that missed a write, and the first commit that they missed.
    missed: FxHashMap<Stamp, Stamp>,
}

#[derive(Debug)]
struct Scanned {
    at: Stamp,
    ranges: Vec<(Option<Key>, Option<Key>)>,
    filters: Vec<Filter>,
}

impl Certifier {
    pub(crate) fn new(config: &Config) -> Self {
        let rule = match (config.strength, config.certification) {
            (Strength::ReadCommitted, _) => Rule::ReadCommitted,
            (Strength::SnapshotIsolation, _) => Rule::FirstCommitter,
            (Strength::Serializable | Strength::Strict, Certification::CommitOrder) => Rule::CommitOrder,
            (Strength::Serializable | Strength::Strict, Certification::Conflicts) => Rule::Conflicts,
        };
        Self { rule, conflicts: Conflicts::default() }
    }

    /// Whether a transaction that wants to commit now may.
    pub(crate) fn allows(&self, claims: &Claims, store: &Store) -> bool {
        match self.rule {
            Rule::ReadCommitted => held_are_unchanged(claims, store),
            Rule::FirstCommitter => is_first_committer(claims, store),
            Rule::CommitOrder if claims.reads_only() => is_first_committer(claims, store),
            Rule::CommitOrder => !has_missed(claims, store),
            Rule::Conflicts => is_first_committer(claims, store) && !self.makes_a_pivot(claims, store),
        }
    }

    /// Remembers a commit. `now` is its own stamp, or the last one given out if it changed nothing.
    pub(crate) fn committed(&mut self, claims: &Claims, store: &Store, now: Stamp) {
        if self.rule == Rule::Conflicts {
            self.remember_reads(claims, store, now);
        }
    }

    /// Forgets what no open transaction overlaps with.
    pub(crate) fn forget(&mut self, horizon: Stamp) {
        let conflicts = &mut self.conflicts;
        while conflicts.scanned.front().is_some_and(|scanned| scanned.at < horizon) {
            conflicts.scanned.pop_front();
        }
        conflicts.missed.retain(|committed, _| *committed > horizon);
    }

    /// The commits since the snapshot that changed something the transaction read.
    fn missed<'a>(&'a self, claims: &'a Claims, store: &'a Store) -> impl Iterator<Item = Stamp> + 'a {
        let snapshot = claims.snapshot;
        let keys = claims.reads.iter().copied();
        let in_ranges = claims.ranges.iter().flat_map(|&(from, to)| store.keys(from, to));
        let by_key = keys.chain(in_ranges).flat_map(move |key| store.newer(key, snapshot));
        by_key.chain(store.missed_by(&claims.filters, snapshot))
    }

    /// Whether, with this commit, some transaction would be a pivot whose successor committed first.
    fn makes_a_pivot(&self, claims: &Claims, store: &Store) -> bool {
        let mut misses = false;
        for missed in self.missed(claims, store) {
            misses = true;
            let Some(&first) = self.conflicts.missed.get(&missed) else { continue };
            if !claims.reads_only() || first < claims.snapshot {
                return true;
            }
        }
        misses && self.overwrites_a_reader(claims, store)
    }

    /// Whether a transaction that overlapped and committed has read what this one changes.
    fn overwrites_a_reader(&self, claims: &Claims, store: &Store) -> bool {
        let read_at = |key| self.conflicts.read_at.get(&key).copied().unwrap_or_default();
        claims.changes.iter().any(|(key, change)| {
            read_at(key) >= claims.snapshot || self.overwrites_a_scan(key, change, claims.snapshot, store)
        })
    }

    fn overwrites_a_scan(&self, key: Key, change: Change, snapshot: Stamp, store: &Store) -> bool {
        let before = store.value(key, Stamp::LATEST);
        let after = match change {
            Change::Put(value) => value,
            Change::Append(_) => Value::Absent,
        };
        let overlapping = self.conflicts.scanned.iter().rev().take_while(|scanned| scanned.at >= snapshot);
        overlapping.into_iter().any(|scanned| {
            scanned.ranges.iter().any(|range| contains(*range, key))
                || scanned.filters.iter().any(|filter| filter.holds(before) || filter.holds(after))
        })
    }

    fn remember_reads(&mut self, claims: &Claims, store: &Store, now: Stamp) {
        if !claims.reads_only() {
            // Its own changes are in the store already, with the stamp of this commit.
            let first = self.missed(claims, store).filter(|missed| *missed != now).min();
            if let Some(first) = first {
                self.conflicts.missed.insert(now, first);
            }
        }
        let conflicts = &mut self.conflicts;
        conflicts.read_at.extend(claims.reads.iter().map(|key| (*key, now)));
        if !claims.ranges.is_empty() || !claims.filters.is_empty() {
            let (ranges, filters) = (claims.ranges.clone(), claims.filters.clone());
            conflicts.scanned.push_back(Scanned { at: now, ranges, filters });
        }
    }
}

/// Whether any commit since the snapshot changed something that the transaction read.
fn has_missed(claims: &Claims, store: &Store) -> bool {
    let snapshot = claims.snapshot;
    claims.reads.iter().any(|&key| store.last_write(key) > snapshot)
        || claims.ranges.iter().any(|&(from, to)| {
            store
                .keys(from, to)
                .try_for_each(|key| if store.last_write(key) > snapshot { Err(()) } else { Ok(()) })
                .is_err()
        })
        || store.missed_by(&claims.filters, snapshot).next().is_some()
}

fn held_are_unchanged(claims: &Claims, store: &Store) -> bool {
    claims.held.iter().all(|&(key, write)| store.last_write(key) == write)
}

fn is_first_committer(claims: &Claims, store: &Store) -> bool {
    let changed = claims.changes.iter().map(|(key, _)| key);
    let held = claims.held.iter().map(|(key, _)| *key);
    changed.chain(held).all(|key| store.last_write(key) <= claims.snapshot)
}

fn contains((from, to): (Option<Key>, Option<Key>), key: Key) -> bool {
    from.is_none_or(|from| from <= key) && to.is_none_or(|to| key < to)
}
