//! What an open transaction has seen and what it wants to change: all that certification asks about.

use crate::keys::Key;
use crate::plan::{Filter, Value};
use crate::store::Stamp;
use rustc_hash::FxHashMap;

/// A change that is not committed yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The key gets this value; absent deletes it.
    Put(Value),
    /// The list gets this element.
    Append(i64),
}

/// The changes of a transaction in the order made.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    all: Vec<(Key, Change)>,
    /// The last change of each key, once there are too many to walk over.
    last: FxHashMap<Key, u32>,
}

/// Up to so many changes are walked over; more are looked up.
const WALKED_MAX: usize = 16;

impl Changes {
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.last.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, Change)> {
        self.all.iter().copied()
    }

    pub(crate) fn push(&mut self, key: Key, change: Change) {
        let place = self.all.len();
        self.all.push((key, change));
        if place == WALKED_MAX {
            self.last.extend(self.all.iter().enumerate().map(|(place, (key, _))| (*key, place as u32)));
        } else if place > WALKED_MAX {
            self.last.insert(key, place as u32);
        }
    }

    /// The last change of a key.
    #[inline]
    pub(crate) fn last(&self, key: Key) -> Option<Change> {
        if self.all.len() <= WALKED_MAX {
            return self.all.iter().rev().find(|(changed, _)| *changed == key).map(|(_, change)| *change);
        }
        self.last.get(&key).map(|&place| self.all[place as usize].1)
    }

    /// The same, at no cost where nothing was changed.
    #[inline]
    pub(crate) fn last_if_any(&self, key: Key) -> Option<Change> {
        if self.all.is_empty() { None } else { self.last(key) }
    }

    /// The elements appended to a list, in order.
    pub(crate) fn appended(&self, key: Key) -> impl Iterator<Item = i64> {
        self.all.iter().filter_map(move |(changed, change)| match change {
            Change::Append(element) if *changed == key => Some(*element),
            _ => None,
        })
    }
}

/// What an open transaction has seen and changed.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// The state it reads.
    pub(crate) snapshot: Stamp,
    /// Keys read one by one.
    pub(crate) reads: Vec<Key>,
    /// Ranges read as a whole.
    pub(crate) ranges: Vec<(Option<Key>, Option<Key>)>,
    /// Filters evaluated over all keys.
    pub(crate) filters: Vec<Filter>,
    /// Keys that must not change until commit, with their last write when that began: those read with a
    /// lock, and lists read after an append of its own.
    pub(crate) held: Vec<(Key, Stamp)>,
    pub(crate) changes: Changes,
}

impl Claims {
    pub(crate) fn clear(&mut self) {
        self.reads.clear();
        self.ranges.clear();
        self.filters.clear();
        self.held.clear();
        self.changes.clear();
    }

    /// Whether nothing was changed.
    pub(crate) fn reads_only(&self) -> bool {
        self.changes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_change_of_a_key_counts_few_or_many() {
        let mut changes = Changes::default();
        for number in 0..100 {
            changes.push(Key(number % 7), Change::Put(Value::Int(i64::from(number))));
            assert_eq!(changes.last(Key(number % 7)), Some(Change::Put(Value::Int(i64::from(number)))));
            let earlier = number.checked_sub(3).map(|earlier| Change::Put(Value::Int(i64::from(earlier))));
            assert_eq!(changes.last(Key((number + 4) % 7)), earlier, "{number}");
        }
        assert_eq!(changes.last(Key(9)), None);
    }
}
