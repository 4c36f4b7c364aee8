//! The keys: what versions they have, and who looked at them.
//!
//! **What.** A table from names to slots. Of each key: its versions in the order of commits, the readers
//! whose verdict is still open in the order of their looks, and what lies before the first version kept.
//!
//! **Invariant.** Every version that a look after the watermark can see is here; so is, of the versions at
//! or before the watermark, the newest. A slot stays the same while anything pins it.

use super::slab::Slab;
use super::stamp::Stamp;
use super::timeline::{Timed, Timeline};
use super::txns::{Moment, TxnNo, Txns};
use crate::datum::Datum;
use hashbrown::HashTable;
use history::{Name, NameRef};
use rustc_hash::FxHasher;
use std::collections::BTreeMap;
use std::hash::Hasher;

/// A place in the table of keys.
pub(super) type KeyNo = u32;

/// One version of a key.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub(super) commit: Stamp,
    pub(super) txn: TxnNo,
    pub(super) value: Datum,
    pub(super) kind: VersionKind,
}

/// How a version came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VersionKind {
    /// The value does not depend on the version before.
    Set,
    /// It is the version before, with a last piece more.
    Append,
}

impl Timed for Version {
    #[inline]
    fn stamp(&self) -> Stamp {
        self.commit
    }
}

impl Timed for Reader {
    #[inline]
    fn stamp(&self) -> Stamp {
        self.at
    }
}

impl Version {
    pub(super) fn moment(&self) -> Moment {
        Moment { stamp: self.commit, after: false, txn: self.txn }
    }
}

/// An open verdict: a transaction saw this, and it may yet turn out right or wrong.
#[derive(Clone, Debug)]
pub(super) struct Reader {
    pub(super) at: Stamp,
    pub(super) after: bool,
    pub(super) is_right: bool,
    pub(super) op: u32,
    pub(super) txn: TxnNo,
    pub(super) seen: Datum,
}

impl Reader {
    pub(super) fn moment(&self) -> Moment {
        Moment { stamp: self.at, after: self.after, txn: self.txn }
    }
}

/// What lies before the first version that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    /// Nothing: the key was absent.
    Nothing,
    /// Versions that were dropped, because nobody could ask for them.
    Dropped,
    /// Versions in the cold store.
    Cold,
}

/// One key.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub(super) name: Name,
    pub(super) versions: Timeline<Version>,
    pub(super) readers: Option<Box<Timeline<Reader>>>,
    pub(super) before: Before,
    /// The first version is in the cold store too.
    pub(super) first_is_cold: bool,
    /// Used since the last look for keys to evict.
    pub(super) is_fresh: bool,
    /// The slot is in use.
    pub(super) is_here: bool,
    /// Who speaks of the slot beside its own versions and readers.
    pub(super) pins: u32,
}

/// What a look finds.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    /// This value, written by this transaction.
    Version(Datum, TxnNo),
    /// A version that is no longer here.
    Gone,
}

impl Key {
    fn new(name: Name) -> Self {
        Self {
            name,
            versions: Timeline::Empty,
            readers: None,
            before: Before::Nothing,
            first_is_cold: false,
            is_fresh: true,
            is_here: true,
            pins: 0,
        }
    }

    /// The version that a look at this moment finds, if it is here.
    #[inline]
    pub(super) fn version_at(&self, look: Moment, txns: &Txns) -> Option<&Version> {
        // Mostly the last version.
        let is_seen = |version: &Version| txns.compare(version.moment(), look).is_lt();
        let newest = self.versions.last().filter(|version| is_seen(version));
        newest.or_else(|| {
            let place = self.versions.find(look.stamp, is_seen);
            self.versions.previous(place).and_then(|place| self.versions.get(place))
        })
    }

    /// Whether a look at this moment, which is after the watermark, finds this value.
    #[inline]
    pub(super) fn shows(&self, seen: &Datum, look: Moment, txns: &Txns) -> bool {
        match self.version_at(look, txns) {
            Some(version) => version.value == *seen || !version.value.is_known(),
            None => !seen.is_present(),
        }
    }

    /// What a look at this moment finds.
    pub(super) fn seen(&self, look: Moment, txns: &Txns) -> Seen {
        match (self.version_at(look, txns), self.before) {
            (Some(version), _) => Seen::Version(version.value.clone(), version.txn),
            (None, Before::Nothing) => Seen::Version(Datum::Absent, super::txns::NOBODY),
            (None, _) => Seen::Gone,
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.pins == 0 && self.readers.is_none()
    }
}

/// All keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    table: HashTable<KeyNo>,
    slots: Slab<Key>,
    free: Vec<KeyNo>,
    /// By name, made when the first range is looked at.
    ordered: Option<BTreeMap<Name, KeyNo>>,
    /// Bytes of names on the heap.
    name_bytes: usize,
}

fn hash_name(name: NameRef<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    match name {
        NameRef::Int(value) => hasher.write_i64(value),
        NameRef::Str(text) => hasher.write(text.as_bytes()),
    }
    hasher.finish()
}

impl Keys {
    #[inline]
    pub(super) fn find(&self, name: NameRef<'_>) -> Option<KeyNo> {
        self.table.find(hash_name(name), |&key| self.slots.get(key as usize).name.as_ref() == name).copied()
    }

    /// Makes a key that is not there.
    pub(super) fn insert(&mut self, name: Name) -> KeyNo {
        if let Name::Str(text) = &name {
            self.name_bytes += text.capacity();
        }
        let hash = hash_name(name.as_ref());
        let ordered = self.ordered.is_some().then(|| name.clone());
        let key = Key::new(name);
        let number = match self.free.pop() {
            Some(number) => {
                *self.slots.get_mut(number as usize) = key;
                number
            }
            None => self.slots.push(key) as KeyNo,
        };
        let slots = &self.slots;
        self.table.insert_unique(hash, number, |&key| hash_name(slots.get(key as usize).name.as_ref()));
        if let (Some(all), Some(name)) = (&mut self.ordered, ordered) {
            all.insert(name, number);
        }
        number
    }

    /// Takes a key out of the table; nothing may speak of its slot.
    pub(super) fn remove(&mut self, number: KeyNo) -> Key {
        let slot = self.slots.get_mut(number as usize);
        let key = std::mem::replace(slot, Key::new(Name::Int(0)));
        slot.is_here = false;
        let hash = hash_name(key.name.as_ref());
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
        if let Some(all) = &mut self.ordered {
            all.remove(&key.name);
        }
        if let Name::Str(text) = &key.name {
            self.name_bytes -= text.capacity();
        }
        self.free.push(number);
        key
    }

    #[inline]
    pub(super) fn get(&self, key: KeyNo) -> &Key {
        self.slots.get(key as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, key: KeyNo) -> &mut Key {
        self.slots.get_mut(key as usize)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    /// All keys, in no particular order.
    pub(super) fn all(&self) -> impl Iterator<Item = KeyNo> + '_ {
        (0..self.slots.len() as KeyNo).filter(|&key| self.slots.get(key as usize).is_here)
    }

    /// All keys by name, from the table's beginning.
    pub(super) fn ordered(&mut self) -> &BTreeMap<Name, KeyNo> {
        let slots = &self.slots;
        self.ordered.get_or_insert_with(|| {
            let here = |number: &KeyNo| slots.get(*number as usize).is_here;
            (0..slots.len() as KeyNo)
                .filter(here)
                .map(|key| (slots.get(key as usize).name.clone(), key))
                .collect()
        })
    }

    /// About how many bytes the table takes, without versions and readers.
    pub(super) fn bytes(&self) -> usize {
        let ordered = if self.ordered.is_some() { 48 } else { 0 };
        self.len() * (size_of::<Key>() + ordered) + self.table.capacity() * 5 + self.name_bytes
    }

    /// Gives back memory of slots at the end of the table that are not in use.
    pub(super) fn shrink(&mut self) {
        while self.slots.last().is_some_and(|key| !key.is_here) {
            self.slots.pop();
        }
        let slots = self.slots.len() as KeyNo;
        self.free.retain(|&key| key < slots);
        let slots = &self.slots;
        if self.table.capacity() > 4 * self.table.len() + 1024 {
            self.table.shrink_to(self.table.len(), |&key| hash_name(slots.get(key as usize).name.as_ref()));
        }
    }

    /// Puts keys back at their slots.
    pub(super) fn restore(keys: Vec<(KeyNo, Key)>, slots: usize) -> Self {
        let mut restored = Self::default();
        for _ in 0..slots {
            let mut empty = Key::new(Name::Int(0));
            empty.is_here = false;
            restored.slots.push(empty);
        }
        for (number, key) in keys {
            if let Name::Str(text) = &key.name {
                restored.name_bytes += text.capacity();
            }
            let hash = hash_name(key.name.as_ref());
            *restored.slots.get_mut(number as usize) = key;
            let slots = &restored.slots;
            restored
                .table
                .insert_unique(hash, number, |&key| hash_name(slots.get(key as usize).name.as_ref()));
        }
        let slots_in_use = &restored.slots;
        restored.free =
            (0..slots as KeyNo).rev().filter(|&key| !slots_in_use.get(key as usize).is_here).collect();
        restored
    }
}
