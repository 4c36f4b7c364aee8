//! The multi-version store: for every key its versions, newest first, as far back as any snapshot can ask.
//!
//! **Invariant.** Versions of a key are strictly descending by commit stamp; all versions newer than the
//! horizon are kept, and the newest one at or below it.
//!
//! **Layout.** The newest version of a key lies in a dense vector; older ones in a pool of linked nodes
//! that are used again when the horizon has passed them. A list is an append-only log per key; a version
//! of it is the length of a prefix.
//!
//! **Cost.** A read walks over the versions newer than its snapshot, of which there are few; memory is
//! bounded by the keys and the versions that open snapshots can see. Where transactions filter by column, an
//! index finds the newest rows that satisfy a filter, and a log of the writes since the horizon those that a
//! snapshot sees in an older version.

use crate::columns::ColumnIndex;
use crate::keys::Key;
use crate::plan::{Filter, Piece, Value};
use crate::workloads::LIST_KEYS_MAX;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The database's logical time: every snapshot and every commit has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Stamp(pub(crate) u64);

impl Stamp {
    /// A snapshot that is always the newest state.
    pub(crate) const LATEST: Self = Self(u64::MAX);

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Version {
    committed: Stamp,
    value: Value,
    /// The next older version in the pool, or [`NONE`].
    older: u32,
}

const NONE: u32 = u32::MAX;
const NEVER_WRITTEN: Version = Version { committed: Stamp(0), value: Value::Absent, older: NONE };

#[derive(Debug, Default)]
pub(crate) struct Store {
    /// The newest versions of keys below [`LIST_KEYS_MAX`], then of those above.
    newest: Vec<Version>,
    newest_high: Vec<Version>,
    pool: Vec<Version>,
    free: Vec<u32>,
    lists: FxHashMap<Key, Vec<i64>>,
    filtered: Option<Filtered>,
    /// Snapshots below this are never asked for again.
    horizon: Stamp,
}

/// What filters need.
#[derive(Debug)]
struct Filtered {
    columns: ColumnIndex,
    /// Writes above the horizon, oldest first; one for each version.
    recent: VecDeque<Written>,
}

/// A version, and what it replaced.
#[derive(Clone, Copy, Debug)]
struct Written {
    committed: Stamp,
    replaced: Stamp,
    key: Key,
    before: Value,
    after: Value,
}

impl Filtered {
    fn note(&mut self, key: Key, committed: Stamp, after: Value, newest: Version) {
        self.columns.change(key, after);
        if newest.committed == committed {
            let same = |written: &&mut Written| written.key == key;
            if let Some(written) = self.recent.iter_mut().rev().find(same) {
                written.after = after;
            }
            return;
        }
        let (replaced, before) = (newest.committed, newest.value);
        self.recent.push_back(Written { committed, replaced, key, before, after });
    }

    /// The versions since a snapshot, newest first.
    fn since(&self, snapshot: Stamp) -> impl Iterator<Item = &Written> {
        self.recent.iter().rev().take_while(move |written| written.committed > snapshot)
    }
}

impl Store {
    /// A store of the keys `0..keys`; more come into being when they are written. Only keys that have come
    /// into being are scanned, so a transaction's own new keys must be among the first.
    pub(crate) fn new(keys: u32, initial: impl Iterator<Item = (Key, Value)>) -> Self {
        let mut store = Self { newest: vec![NEVER_WRITTEN; keys as usize], ..Self::default() };
        for (key, value) in initial {
            *store.slot(key) = Version { value, ..NEVER_WRITTEN };
        }
        store
    }

    /// Prepares the store for filters on columns that mostly hold values below `column_size`.
    pub(crate) fn index_columns(&mut self, column_size: u32) {
        let mut columns = ColumnIndex::new(self.newest.len() as u32, column_size);
        self.each(Stamp::LATEST, |key, value| columns.change(key, value));
        self.filtered = Some(Filtered { columns, recent: VecDeque::new() });
    }

    fn slot(&mut self, key: Key) -> &mut Version {
        let (versions, place) = if key.0 < LIST_KEYS_MAX {
            (&mut self.newest, key.0 as usize)
        } else {
            (&mut self.newest_high, (key.0 - LIST_KEYS_MAX) as usize)
        };
        if place >= versions.len() {
            versions.resize((place + 1).next_power_of_two(), NEVER_WRITTEN);
        }
        &mut versions[place]
    }

    #[inline]
    fn newest(&self, key: Key) -> Version {
        let found = if key.0 < LIST_KEYS_MAX {
            self.newest.get(key.0 as usize)
        } else {
            self.newest_high.get((key.0 - LIST_KEYS_MAX) as usize)
        };
        found.copied().unwrap_or(NEVER_WRITTEN)
    }

    /// When the key was last written.
    #[inline]
    pub(crate) fn last_write(&self, key: Key) -> Stamp {
        self.newest(key).committed
    }

    /// The value that a snapshot sees.
    #[inline]
    pub(crate) fn value(&self, key: Key, snapshot: Stamp) -> Value {
        debug_assert!(snapshot >= self.horizon, "snapshots below the horizon are gone");
        let mut version = self.newest(key);
        while version.committed > snapshot {
            let Some(older) = self.pool.get(version.older as usize) else { return Value::Absent };
            version = *older;
        }
        version.value
    }

    /// When the versions that are newer than the snapshot were committed, newest first.
    pub(crate) fn newer(&self, key: Key, snapshot: Stamp) -> impl Iterator<Item = Stamp> + '_ {
        let mut version = self.newest(key);
        std::iter::from_fn(move || {
            let committed = version.committed;
            version = self.pool.get(version.older as usize).copied().unwrap_or(NEVER_WRITTEN);
            (committed > snapshot).then_some(committed)
        })
    }

    /// The elements of a list whose version is a prefix of `len`.
    pub(crate) fn elements(&self, key: Key, len: u32) -> &[i64] {
        self.lists.get(&key).map_or(&[], |log| &log[..len as usize])
    }

    /// Makes `value` the newest version.
    pub(crate) fn install(&mut self, key: Key, committed: Stamp, value: Value) {
        let before = self.newest(key);
        if let Some(filtered) = &mut self.filtered {
            filtered.note(key, committed, value, before);
        }
        if before.committed == committed {
            // The second write of one transaction to a key: nobody sees the first.
            self.slot(key).value = value;
            return;
        }
        debug_assert!(before.committed < committed, "versions are installed in commit order");
        let older = if before.committed <= self.horizon && before.value == Value::Absent {
            self.release(before.older);
            NONE
        } else {
            let place = self.keep(before);
            self.trim(place);
            place
        };
        *self.slot(key) = Version { committed, value, older };
    }

    /// Adds an element to the list at the key.
    pub(crate) fn append(&mut self, key: Key, committed: Stamp, element: i64) {
        let log = self.lists.entry(key).or_default();
        log.push(element);
        let len = log.len() as u32;
        self.install(key, committed, Value::List(Piece { start: 0, len }));
    }

    fn keep(&mut self, version: Version) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.pool[place as usize] = version;
                place
            }
            None => {
                self.pool.push(version);
                self.pool.len() as u32 - 1
            }
        }
    }

    /// Gives back what lies under the newest version at or below the horizon.
    fn trim(&mut self, start: u32) {
        let mut place = start;
        while let Some(version) = self.pool.get(place as usize) {
            if version.committed <= self.horizon {
                let older = version.older;
                self.pool[place as usize].older = NONE;
                self.release(older);
                return;
            }
            place = version.older;
        }
    }

    fn release(&mut self, mut place: u32) {
        while let Some(version) = self.pool.get(place as usize) {
            self.free.push(place);
            place = version.older;
        }
    }

    /// Promises that no snapshot below `horizon` is asked for again.
    pub(crate) fn raise_horizon(&mut self, horizon: Stamp) {
        self.horizon = self.horizon.max(horizon);
        if let Some(Filtered { recent, .. }) = &mut self.filtered {
            while recent.front().is_some_and(|written| written.committed <= horizon) {
                recent.pop_front();
            }
        }
    }

    /// Forgets the lists of keys below `first`, which nobody asks for again.
    pub(crate) fn forget_lists_below(&mut self, first: Key) {
        self.lists.retain(|key, _| *key >= first);
    }

    /// All keys of `[from, to)` that have come into being, ascending; a missing bound is open.
    pub(crate) fn keys(
        &self,
        from: Option<Key>,
        to: Option<Key>,
    ) -> impl DoubleEndedIterator<Item = Key> + use<> {
        let from = from.map_or(0, |key| key.0);
        let to = to.map_or(u32::MAX, |key| key.0);
        let high_end = LIST_KEYS_MAX + self.newest_high.len() as u32;
        let low = from..to.min(self.newest.len() as u32);
        let high = from.max(LIST_KEYS_MAX)..to.min(high_end);
        low.chain(high).map(Key)
    }

    /// Every key that has come into being with the value that a snapshot sees, ascending.
    pub(crate) fn each(&self, snapshot: Stamp, mut see: impl FnMut(Key, Value)) {
        for (versions, first) in [(&self.newest, 0), (&self.newest_high, LIST_KEYS_MAX)] {
            for (place, version) in versions.iter().enumerate() {
                let key = Key(first + place as u32);
                let value =
                    if version.committed <= snapshot { version.value } else { self.value(key, snapshot) };
                see(key, value);
            }
        }
    }

    /// The commits since a snapshot, newest first, that changed what some filter finds.
    pub(crate) fn missed_by<'a>(
        &'a self,
        filters: &'a [Filter],
        snapshot: Stamp,
    ) -> impl Iterator<Item = Stamp> + 'a {
        let filtered = self.filtered.iter().filter(|_| !filters.is_empty());
        let since = filtered.flat_map(move |filtered| filtered.since(snapshot));
        let matters =
            |written: &Written, filter: &Filter| filter.holds(written.before) || filter.holds(written.after);
        since
            .filter(move |written| filters.iter().any(|filter| matters(written, filter)))
            .map(|written| written.committed)
    }

    /// Adds all rows that satisfy a filter in a snapshot, in any order.
    pub(crate) fn matching(&self, filter: &Filter, snapshot: Stamp, found: &mut Vec<(Key, Value)>) {
        let mut see = |key, value| {
            if filter.holds(value) {
                found.push((key, value));
            }
        };
        let Some((filtered, near)) =
            self.filtered.as_ref().and_then(|filtered| Some((filtered, filtered.columns.near(filter)?)))
        else {
            return self.each(snapshot, see);
        };
        for key in near {
            let newest = self.newest(key);
            if newest.committed <= snapshot {
                see(key, newest.value);
            }
        }
        // The first version after the snapshot replaced what the snapshot sees.
        for written in filtered.since(snapshot).filter(|written| written.replaced <= snapshot) {
            see(written.key, written.before);
        }
    }

    /// How many versions are kept beside the newest ones.
    #[cfg(test)]
    fn kept(&self) -> usize {
        self.pool.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Column;

    #[test]
    fn a_snapshot_sees_what_was_committed_until_then() {
        let x = Key(3);
        let mut store = Store::new(1, [(x, Value::Int(7))].into_iter());
        store.install(x, Stamp(5), Value::Int(8));
        store.install(x, Stamp(9), Value::Absent);
        store.install(x, Stamp(12), Value::Int(9));
        for (snapshot, value) in [
            (Stamp(4), Value::Int(7)),
            (Stamp(5), Value::Int(8)),
            (Stamp(11), Value::Absent),
            (Stamp(12), Value::Int(9)),
            (Stamp::LATEST, Value::Int(9)),
        ] {
            assert_eq!(store.value(x, snapshot), value, "{snapshot:?}");
        }
        assert_eq!(store.value(Key(1000), Stamp(1)), Value::Absent);
    }

    #[test]
    fn versions_below_the_horizon_are_given_back() {
        let x = Key(0);
        let mut store = Store::new(0, std::iter::empty());
        for stamp in 1..=10_000 {
            store.raise_horizon(Stamp(stamp - stamp.min(10)));
            store.install(x, Stamp(stamp), Value::Int(stamp as i64));
            assert_eq!(
                store.value(x, Stamp(stamp - stamp.min(10))),
                match stamp {
                    1..=10 => Value::Absent,
                    _ => Value::Int(stamp as i64 - 10),
                }
            );
        }
        assert!(store.kept() <= 12, "{}", store.kept());
    }

    #[test]
    fn a_list_is_a_prefix_of_its_log() {
        let l = Key(2);
        let mut store = Store::new(0, std::iter::empty());
        store.append(l, Stamp(1), 10);
        store.append(l, Stamp(1), 11);
        store.append(l, Stamp(4), 12);
        let seen = |store: &Store, snapshot| match store.value(l, snapshot) {
            Value::List(piece) => store.elements(l, piece.len).to_vec(),
            _ => Vec::new(),
        };
        assert_eq!(seen(&store, Stamp(0)), []);
        assert_eq!(seen(&store, Stamp(3)), [10, 11]);
        assert_eq!(seen(&store, Stamp(4)), [10, 11, 12]);
    }

    #[test]
    fn newer_versions_come_newest_first() {
        let x = Key(0);
        let mut store = Store::new(1, [(x, Value::Int(1))].into_iter());
        store.install(x, Stamp(5), Value::Int(2));
        store.install(x, Stamp(7), Value::Absent);
        let newer = |snapshot| store.newer(x, snapshot).collect::<Vec<_>>();
        assert_eq!(newer(Stamp(4)), [Stamp(7), Stamp(5)]);
        assert_eq!(newer(Stamp(5)), [Stamp(7)]);
        assert_eq!(newer(Stamp(7)), []);
    }

    /// A filter has missed a commit that made a row satisfy it, or no longer; a value that its own
    /// transaction replaced counts for nothing.
    #[test]
    fn filters_know_what_they_missed() {
        let row = |v1| Value::Row { v1, v2: 0 };
        let mut store = Store::new(3, [(Key(0), row(10))].into_iter());
        store.index_columns(100);
        store.install(Key(0), Stamp(1), row(50));
        store.install(Key(1), Stamp(2), row(50));
        store.install(Key(2), Stamp(3), row(10));
        store.install(Key(2), Stamp(3), row(60));
        store.install(Key(1), Stamp(4), row(11));
        let filters = [Filter { column: Column::V1, low: 10, high: 20 }];
        let missed = |snapshot| store.missed_by(&filters, snapshot).collect::<Vec<_>>();
        assert_eq!(missed(Stamp(0)), [Stamp(4), Stamp(1)]);
        assert_eq!(missed(Stamp(1)), [Stamp(4)]);
        assert_eq!(missed(Stamp(4)), []);
        assert_eq!(store.missed_by(&[], Stamp(0)).count(), 0);
    }

    /// Against a walk over all keys, at every snapshot above the horizon.
    #[test]
    fn filters_find_what_a_walk_finds() {
        let mut random = crate::random::Random::stream(5, 5);
        let mut row = || Value::Row { v1: random.below(100) as i32, v2: random.below(100) as i32 };
        let initial: Vec<(Key, Value)> = (0..10).map(|key| (Key(key), row())).collect();
        let mut store = Store::new(20, initial.into_iter());
        store.index_columns(100);
        for stamp in 1..=400u64 {
            for key in [stamp * 7 % 23, stamp * 5 % 11] {
                let value = if stamp % 9 == 0 { Value::Absent } else { row() };
                store.install(Key(key as u32), Stamp(stamp), value);
            }
            let horizon = stamp.saturating_sub(15);
            store.raise_horizon(Stamp(horizon));
            for snapshot in (horizon..=stamp).map(Stamp).chain([Stamp::LATEST]) {
                let low = (stamp % 80) as i64;
                for column in [Column::V1, Column::V2, Column::Value] {
                    let filter = Filter { column, low, high: low + 25 };
                    let (mut found, mut all) = (Vec::new(), Vec::new());
                    store.matching(&filter, snapshot, &mut found);
                    store.each(snapshot, |key, value| {
                        if filter.holds(value) {
                            all.push((key, value));
                        }
                    });
                    found.sort_by_key(|(key, _)| *key);
                    assert_eq!(found, all, "{stamp} {snapshot:?} {filter:?}");
                }
            }
        }
    }

    #[test]
    fn keys_of_both_regions_come_in_order() {
        let mut store = Store::new(1, [(Key(1), Value::Int(1))].into_iter());
        store.install(Key(LIST_KEYS_MAX), Stamp(1), Value::Int(2));
        let present = |from, to| {
            let keys = store.keys(from, to);
            keys.filter(|&key| store.value(key, Stamp::LATEST) != Value::Absent).collect::<Vec<_>>()
        };
        assert_eq!(present(None, None), [Key(1), Key(LIST_KEYS_MAX)]);
        assert_eq!(present(Some(Key(1)), Some(Key(2))), [Key(1)]);
        assert_eq!(present(Some(Key(2)), None), [Key(LIST_KEYS_MAX)]);
        assert_eq!(present(Some(Key(LIST_KEYS_MAX)), Some(Key(LIST_KEYS_MAX + 1))), [Key(LIST_KEYS_MAX)]);
    }
}
