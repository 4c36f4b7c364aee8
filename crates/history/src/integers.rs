//! A table from 64-bit integers to ids, for interning what is too large to be its own index.
//!
//! Logs of hashed keys look up every key and value here, millions of times, at random places: what counts is one
//! cache line a look-up and little code around it, so that several look-ups are under way at once. Hence open
//! addressing with linear probing, key and id side by side, a multiplication for a hash. Against a general hash
//! map (control bytes apart from entries) reading Cobra logs of hashed keys became about a quarter faster.
//!
//! Invariant: from the home of a key to its slot no slot is empty.
//! Cost: 16 bytes a slot, at most five slots of eight in use.

use bytemuck::{Pod, Zeroable};
use prefetch_index::prefetch_index;

/// Integers with their ids, which are below `u32::MAX`.
#[derive(Debug, Default)]
pub(crate) struct IntegerTable {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    len: usize,
}

/// All zeros is an empty slot, so that a fresh table is memory that the system hands out zeroed.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Slot {
    key: i64,
    /// The id and one; 0 if the slot is empty.
    id_and_one: u32,
    unused: u32,
}

impl Slot {
    #[inline]
    fn new(key: i64, id: u32) -> Self {
        Self { key, id_and_one: id + 1, unused: 0 }
    }

    #[inline]
    fn id(self) -> Option<u32> {
        self.id_and_one.checked_sub(1)
    }
}

const CAPACITY_MIN: usize = 16;
/// Below this a table grows fourfold, to be moved less often.
const CAPACITY_SMALL: usize = 1 << 16;

impl IntegerTable {
    /// The id of a key.
    #[inline]
    pub(crate) fn get(&self, key: i64) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.find(key)].id()
    }

    /// Asks for the memory in which a key will be looked for soon.
    #[inline]
    pub(crate) fn prefetch(&self, key: i64) {
        if !self.slots.is_empty() {
            prefetch_index(&self.slots, self.home(key));
        }
    }

    /// The id of a key; a new key gets `id`.
    #[inline]
    pub(crate) fn get_or_insert(&mut self, key: i64, id: u32) -> u32 {
        debug_assert!(id < u32::MAX);
        if self.len * 8 >= self.slots.len() * 5 {
            self.grow();
        }
        let place = self.find(key);
        let slot = &mut self.slots[place];
        if let Some(id) = slot.id() {
            return id;
        }
        *slot = Slot::new(key, id);
        self.len += 1;
        id
    }

    /// Forgets a key.
    pub(crate) fn remove(&mut self, key: i64) {
        if self.get(key).is_none() {
            return;
        }
        let mask = self.slots.len() - 1;
        let mut hole = self.find(key);
        self.len -= 1;
        // What follows up to the next empty slot moves up if the hole lies between its home and its slot.
        let mut place = hole;
        loop {
            place = (place + 1) & mask;
            let slot = self.slots[place];
            if slot.id().is_none() {
                break;
            }
            let from_home = place.wrapping_sub(self.home(slot.key)) & mask;
            let from_hole = place.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.slots[hole] = slot;
                hole = place;
            }
        }
        self.slots[hole] = Slot::zeroed();
    }

    /// Where a key would be if no other were in its way.
    #[inline]
    fn home(&self, key: i64) -> usize {
        // The golden ratio's fraction; the product's upper bits depend on all bits of the key.
        let product = (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (product >> (64 - self.slots.len().trailing_zeros())) as usize
    }

    /// The slot of a key, or the empty one where it belongs. There must be slots.
    #[inline]
    fn find(&self, key: i64) -> usize {
        let mask = self.slots.len() - 1;
        let mut place = self.home(key);
        loop {
            let slot = self.slots[place & mask];
            if slot.id_and_one == 0 || slot.key == key {
                return place & mask;
            }
            place += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        let factor = if self.slots.len() < CAPACITY_SMALL { 4 } else { 2 };
        let capacity = (self.slots.len() * factor).max(CAPACITY_MIN);
        let old = std::mem::replace(&mut self.slots, bytemuck::zeroed_vec(capacity));
        for slot in old.into_iter().filter(|slot| slot.id().is_some()) {
            let place = self.find(slot.key);
            self.slots[place] = slot;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::IntegerTable;
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use std::collections::HashMap;

    /// Keys from few places, so that they meet.
    fn key() -> impl Strategy<Value = i64> {
        prop_oneof![0..40i64, (0..40i64).prop_map(|key| key << 58), any::<i64>()]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/integers.txt"))), ..ProptestConfig::default() })]

        #[test]
        fn behaves_like_a_map(steps in prop::collection::vec((key(), any::<bool>()), 0..300)) {
            let (mut table, mut model) = (IntegerTable::default(), HashMap::new());
            for (number, (key, insert)) in steps.into_iter().enumerate() {
                if insert {
                    let id = number as u32;
                    prop_assert_eq!(table.get_or_insert(key, id), *model.entry(key).or_insert(id));
                } else {
                    table.remove(key);
                    model.remove(&key);
                }
                prop_assert_eq!(table.len, model.len());
                prop_assert_eq!(table.get(key), model.get(&key).copied());
            }
            for (key, id) in model {
                prop_assert_eq!(table.get(key), Some(id));
            }
        }
    }
}
