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
    /// A table that need not grow for so many ids.
    fn with_room(count: usize) -> Self {
        Self { slots: vec![FREE; (count * 4 / 3 + 1).next_power_of_two()], len: 0 }
    }

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
/// Faster than putting all of them into a table, because little is looked at twice: a bit for every hash, in few enough
/// bytes for the caches, tells the few things that come where another was before; only these are looked for.
pub(crate) fn first_double(hashes: &[u32], same: impl Fn(u32, u32) -> bool) -> Option<u32> {
    // 1. Whatever is there for the second time finds its bit set; about one in twenty finds that of another.
    let mut seen = Bits::new(hashes.len() * 8);
    let places = || (0..).zip(hashes.iter().copied());
    let later: Vec<(u32, u32)> = places().filter(|(_, hash)| seen.insert(*hash)).collect();
    // 2. Each of these is looked for by all that have its hash; those of one hash are met in their order.
    let mut wanted = Bits::new(later.len() * 32);
    let mut table = Slots::with_room(later.len());
    for (id, hash) in later {
        wanted.insert(hash);
        table.insert(hash, id);
    }
    let is_wanted = |(_, hash): &(u32, u32)| wanted.contains(*hash);
    let double = |(id, hash): (u32, u32)| table.find(hash, |later| id < later && same(id, later));
    places().filter(is_wanted).filter_map(double).min()
}

/// A set of hashes that may take one for another.
struct Bits(Vec<u64>);

impl Bits {
    /// A set in which about `count` hashes are told apart.
    fn new(count: usize) -> Self {
        Self(vec![0; count.next_power_of_two().div_ceil(64)])
    }

    #[inline]
    fn place(&self, hash: u32) -> (usize, u32) {
        let place = (u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
        ((place >> 6) as usize & (self.0.len() - 1), place & 63)
    }

    #[inline]
    fn contains(&self, hash: u32) -> bool {
        let (word, bit) = self.place(hash);
        self.0[word] >> bit & 1 == 1
    }

    /// Adds a hash; was it there?
    #[inline]
    fn insert(&mut self, hash: u32) -> bool {
        let (word, bit) = self.place(hash);
        let was = self.0[word];
        self.0[word] = was | 1 << bit;
        was >> bit & 1 == 1
    }
}

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
