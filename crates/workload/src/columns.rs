//! Which keys hold a row whose column lies in a range: an index over the newest versions.
//!
//! **What.** For each of the two columns the keys are kept in buckets, a bucket for a stretch of values; a
//! range is answered from the buckets that it meets. What a bucket at the edge holds beyond the range is the
//! caller's to sort out, and so are snapshots: the index knows the newest version only.
//!
//! **Invariant.** A key with a row is in exactly one bucket of each column, at the place that `places` says;
//! a key without one is in none.
//!
//! **Cost.** A change is constant work: the last key of a bucket moves into the hole. A range costs what its
//! buckets hold. Where values are spread a bucket holds about four rows: fewer would make more buckets to visit.

use crate::keys::Key;
use crate::plan::{Column, Filter, Value};

#[derive(Debug)]
pub(crate) struct ColumnIndex {
    /// A bucket holds `1 << shift` values; the last one all that are beyond the others.
    shift: u32,
    buckets: [Vec<Vec<Key>>; 2],
    /// For each key its bucket and the place in it, in both columns.
    places: Vec<[Place; 2]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    bucket: u32,
    at: u32,
}

const NOWHERE: Place = Place { bucket: u32::MAX, at: 0 };

impl ColumnIndex {
    /// An index for about `rows` rows whose columns are mostly below `column_size`.
    pub(crate) fn new(rows: u32, column_size: u32) -> Self {
        let shift = (column_size / rows.max(1)).max(1).ilog2() + 2;
        let count = (column_size >> shift) as usize + 2;
        Self { shift, buckets: [vec![Vec::new(); count], vec![Vec::new(); count]], places: Vec::new() }
    }

    /// The value of a key has changed.
    pub(crate) fn change(&mut self, key: Key, after: Value) {
        let columns = match after {
            Value::Row { v1, v2 } => Some([v1, v2]),
            _ => None,
        };
        let index = key.0 as usize;
        if index >= self.places.len() {
            if columns.is_none() {
                return;
            }
            self.places.resize((index + 1).next_power_of_two(), [NOWHERE; 2]);
        }
        for column in 0..2 {
            let old = self.places[index][column];
            let new = columns.map(|columns| self.bucket_of(i64::from(columns[column])));
            if new == Some(old.bucket) {
                continue;
            }
            if old != NOWHERE {
                self.remove(column, old);
            }
            self.places[index][column] = match new {
                Some(bucket) => self.insert(column, bucket, key),
                None => NOWHERE,
            };
        }
    }

    fn bucket_of(&self, value: i64) -> u32 {
        let last = self.buckets[0].len() as i64 - 1;
        (value >> self.shift).clamp(0, last) as u32
    }

    fn insert(&mut self, column: usize, bucket: u32, key: Key) -> Place {
        let keys = &mut self.buckets[column][bucket as usize];
        keys.push(key);
        Place { bucket, at: keys.len() as u32 - 1 }
    }

    fn remove(&mut self, column: usize, place: Place) {
        let keys = &mut self.buckets[column][place.bucket as usize];
        keys.swap_remove(place.at as usize);
        if let Some(moved) = keys.get(place.at as usize) {
            self.places[moved.0 as usize][column] = place;
        }
    }

    /// All keys whose newest row satisfies the filter, and some more; `None` if the filter is on no column of
    /// rows.
    pub(crate) fn near(&self, filter: &Filter) -> Option<impl Iterator<Item = Key> + '_> {
        let column = match filter.column {
            Column::V1 => 0,
            Column::V2 => 1,
            Column::Value => return None,
        };
        let first = self.bucket_of(filter.low) as usize;
        let last = self.bucket_of(filter.high - 1) as usize;
        let met = if filter.low < filter.high { first..last + 1 } else { 0..0 };
        Some(self.buckets[column][met].iter().flatten().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Against a walk over all rows, while rows come, change and go.
    #[test]
    fn finds_what_a_walk_finds() {
        let mut random = Random::stream(3, 1);
        for (rows, size) in [(1, 16), (7, 16), (50, 500), (50, 20)] {
            let mut index = ColumnIndex::new(rows, size);
            let mut values = vec![Value::Absent; rows as usize + 5];
            for step in 0..2_000 {
                let key = random.below(values.len() as u64) as u32;
                // Some values lie far beyond the usual ones.
                let beyond = if random.chance(0.1) { 1_000_000 } else { 0 };
                let mut column = || (random.below(u64::from(size)) + beyond) as i32;
                let value = Value::Row { v1: column(), v2: column() };
                let value = if random.chance(0.2) { Value::Absent } else { value };
                index.change(Key(key), value);
                values[key as usize] = value;
                let low = random.below(u64::from(size)) as i64;
                let width = random.below(u64::from(size)) as i64;
                let high = if random.chance(0.1) { 2_000_000 } else { low + width };
                for column in [Column::V1, Column::V2] {
                    let filter = Filter { column, low, high };
                    let holds = |key: &Key| filter.holds(values[key.0 as usize]);
                    let mut found: Vec<Key> = index.near(&filter).expect("a column").filter(holds).collect();
                    found.sort();
                    let all = (0..values.len() as u32).map(Key).filter(holds);
                    assert_eq!(found, all.collect::<Vec<_>>(), "step {step}, {filter:?}");
                }
            }
        }
    }
}
