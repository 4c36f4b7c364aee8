//! A hash table over an arena: it holds ids, the arena holds what they stand for.
//!
//! What: finds the id of a thing by its hash, where the caller compares things.
//! Invariant: a slot lies at or after the place its hash asks for, with no free slot in between; at least a quarter of
//! the slots are free, so every search ends.
//! Steps: linear probing over a power of two of slots; the upper hash bits choose the place.
//! Cost: a slot is 8 bytes and holds the hash beside the id, so a search that fails touches one cache line, mostly, and
//! growing the table does not touch the arena. For interning many distinct texts, where every look-up misses the
//! caches, this was measured a fifth faster than `hashbrown::HashTable`, whose control bytes are a second miss.

/// A hash table over an arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slots {
    /// Empty, or a power of two.
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    id: u32,
}

const FREE: Slot = Slot { hash: 0, id: u32::MAX };
const LEN_MIN: usize = 16;

impl Slots {
    /// Where a search for a hash begins.
    #[inline]
    fn home(&self, hash: u32) -> usize {
        // The multiplication brings every bit of the hash into the upper half.
        let spread = u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        spread as usize & (self.slots.len() - 1)
    }

    /// The id of the thing that has this hash and is the same, if it is there.
    #[inline]
    pub(crate) fn find(&self, hash: u32, same: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mut place = self.home(hash);
        loop {
            let slot = self.slots[place];
            if slot.id == FREE.id {
                return None;
            }
            if slot.hash == hash && same(slot.id) {
                return Some(slot.id);
            }
            place = (place + 1) & (self.slots.len() - 1);
        }
    }

    /// What is in the slot where a search for a hash begins: most often the id that is looked for, if it is there at
    /// all. No branch depends on it, so that whoever touches many slots waits for none.
    #[inline]
    pub(crate) fn touch(&self, hash: u32) -> u32 {
        if self.slots.is_empty() { 0 } else { self.slots[self.home(hash)].id }
    }

    /// Adds an id that is not there.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, id: u32) {
        if (self.len + 1) * 4 > self.slots.len() * 3 {
            self.resize((self.slots.len() * 2).max(LEN_MIN));
        }
        self.len += 1;
        self.place(Slot { hash, id });
    }

    fn place(&mut self, slot: Slot) {
        let mut place = self.home(slot.hash);
        while self.slots[place].id != FREE.id {
            place = (place + 1) & (self.slots.len() - 1);
        }
        self.slots[place] = slot;
    }

    fn resize(&mut self, len: usize) {
        let old = std::mem::replace(&mut self.slots, vec![FREE; len]);
        old.into_iter().filter(|slot| slot.id != FREE.id).for_each(|slot| self.place(slot));
    }

    /// Removes an id that is there.
    pub(crate) fn remove(&mut self, hash: u32, id: u32) {
        if self.find(hash, |other| other == id).is_none() {
            return;
        }
        let last = self.slots.len() - 1;
        let mut hole = self.home(hash);
        while self.slots[hole].id != id {
            hole = (hole + 1) & last;
        }
        self.len -= 1;
        // Slots after the hole move into it unless they would then lie before their home.
        let mut place = hole;
        loop {
            place = (place + 1) & last;
            let slot = self.slots[place];
            if slot.id == FREE.id {
                break;
            }
            let distance = place.wrapping_sub(self.home(slot.hash)) & last;
            if distance >= (place.wrapping_sub(hole) & last) {
                self.slots[hole] = slot;
                hole = place;
            }
        }
        self.slots[hole] = FREE;
    }
}

/// The first thing, by its place, that is the same as an earlier one.
///
/// Faster than putting all of them into a table, because little is looked at twice: marks for every hash, in few enough
/// bytes for the caches, tell the few things that share a mark with another; only these are compared.
pub(crate) fn first_double(hashes: &[u32], same: impl Fn(u32, u32) -> bool) -> Option<u32> {
    // 1. Two bits a mark: seen, and seen again. About one thing in five shares a mark.
    let marks = (hashes.len().max(32) * MARKS_A_HASH).next_power_of_two();
    let place = |hash: u32| {
        let mark = (u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (marks - 1);
        (mark / 32, mark % 32 * 2)
    };
    let mut seen = vec![0u64; marks / 32];
    for &hash in hashes {
        let (word, shift) = place(hash);
        seen[word] |= (1 | (seen[word] >> shift & 1) << 1) << shift;
    }
    // 2. Compare what shares a mark, in order.
    let is_shared = |hash: u32| {
        let (word, shift) = place(hash);
        seen[word] >> shift & 2 != 0
    };
    let mut table = Slots::default();
    for (id, &hash) in hashes.iter().enumerate().filter(|(_, hash)| is_shared(**hash)) {
        let id = id as u32;
        if table.find(hash, |other| same(other, id)).is_some() {
            return Some(id);
        }
        table.insert(hash, id);
    }
    None
}

const MARKS_A_HASH: usize = 8;

#[cfg(test)]
mod tests {
    use super::{Slots, first_double};
    use std::collections::BTreeSet;

    /// Against a set: few hashes, so that searches run into each other.
    #[test]
    fn holds_what_a_set_holds() {
        let mut slots = Slots::default();
        let mut set = BTreeSet::new();
        let mut state = 1u64;
        for step in 0..20_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let id = (state >> 33) as u32 % 200;
            let hash = id % 7;
            if set.insert(id) {
                slots.insert(hash, id);
            } else if step % 2 == 0 {
                set.remove(&id);
                slots.remove(hash, id);
            }
            for other in 0..200 {
                let found = slots.find(other % 7, |id| id == other);
                assert_eq!(found.is_some(), set.contains(&other), "step {step}, id {other}");
            }
        }
    }

    #[test]
    fn finds_the_first_double() {
        for count in [0, 1, 2, 100, 5_000, 100_000u32] {
            let things: Vec<u32> = (0..count).map(|n| n.wrapping_mul(2_654_435_761)).collect();
            let same = |a: u32, b: u32| things[a as usize] == things[b as usize];
            assert_eq!(first_double(&things, same), None);
        }
        let mut things: Vec<u32> = (0..10_000).map(|n| n / 3 * 17).collect();
        things[0] = u32::MAX;
        let same = |a: u32, b: u32| things[a as usize] == things[b as usize];
        let hashes: Vec<u32> = things.iter().map(|thing| thing % 64).collect();
        assert_eq!(first_double(&hashes, same), Some(2));
    }
}
