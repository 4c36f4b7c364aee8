//! Interned names: keys, sessions, columns, transaction ids. A name is an integer or a string.

use crate::Id;
use crate::integers::IntegerTable;
use crate::room::Room;
use crate::slots::{Slots, first_double};
use bytemuck::{Pod, Zeroable};
use prefetch_index::prefetch_index;
use rustc_hash::FxHasher;
use std::fmt;
use std::hash::Hasher;
use std::marker::PhantomData;

/// An owned name, as it is written in a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// An integer.
    Int(i64),
    /// A string.
    Str(String),
}

/// A borrowed name. Ordered as the format says: all integers before all strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NameRef<'a> {
    /// An integer.
    Int(i64),
    /// A string.
    Str(&'a str),
}

impl Name {
    /// Borrows it.
    pub fn as_ref(&self) -> NameRef<'_> {
        match self {
            Self::Int(value) => NameRef::Int(*value),
            Self::Str(text) => NameRef::Str(text),
        }
    }
}

impl NameRef<'_> {
    /// Makes it owned.
    pub fn to_owned(self) -> Name {
        match self {
            Self::Int(value) => Name::Int(value),
            Self::Str(text) => Name::Str(text.to_owned()),
        }
    }
}

impl fmt::Display for NameRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Str(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

impl From<i64> for Name {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self::Str(text.to_owned())
    }
}

impl From<i64> for NameRef<'_> {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl<'a> From<&'a str> for NameRef<'a> {
    fn from(text: &'a str) -> Self {
        Self::Str(text)
    }
}

/// One interned name: an integer, or a piece of the text arena.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct NameEntry {
    /// The integer, or the offset into the text.
    pub(crate) data: u64,
    /// The length of the text.
    pub(crate) len: u32,
    /// 1 for text, 0 for an integer.
    pub(crate) is_text: u32,
}

/// A table of interned names.
#[derive(Clone, Debug)]
pub struct Names<I> {
    pub(crate) entries: Vec<NameEntry>,
    pub(crate) text: String,
    by: PhantomData<fn(I)>,
}

impl<I: Id> Names<I> {
    pub(crate) fn from_parts(entries: Vec<NameEntry>, text: String) -> Self {
        Self { entries, text, by: PhantomData }
    }

    /// The name of an id.
    #[inline]
    pub fn get(&self, id: I) -> NameRef<'_> {
        self.at(id.index())
    }

    fn at(&self, index: usize) -> NameRef<'_> {
        let entry = self.entries[index];
        if entry.is_text == 0 {
            NameRef::Int(entry.data as i64)
        } else {
            let start = entry.data as usize;
            NameRef::Str(&self.text[start..start + entry.len as usize])
        }
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All ids in the order they were first seen.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I> {
        (0..self.entries.len()).map(I::new)
    }

    /// Every id's place in the order of names (integers first, then strings).
    pub fn ranks(&self) -> Vec<u32> {
        let mut sorted: Vec<u32> = (0..self.entries.len() as u32).collect();
        sorted.sort_unstable_by_key(|&index| self.at(index as usize));
        let mut ranks = vec![0; sorted.len()];
        for (rank, &index) in sorted.iter().enumerate() {
            ranks[index as usize] = rank as u32;
        }
        ranks
    }

    /// The first name, by its place, that is there for the second time.
    pub(crate) fn first_double(&self) -> Option<usize> {
        let is_counted = |pair: &[NameEntry]| {
            pair[0].is_text == 0 && pair[1].is_text == 0 && (pair[0].data as i64) < pair[1].data as i64
        };
        if self.entries.windows(2).all(is_counted) {
            return None;
        }
        let hash = |place| match self.at(place) {
            NameRef::Int(value) => fold((value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            NameRef::Str(text) => hash_text(text),
        };
        let hashes: Vec<u32> = (0..self.len()).map(hash).collect();
        let same = |a: u32, b: u32| self.at(a as usize) == self.at(b as usize);
        first_double(&hashes, same).map(|place| place as usize)
    }

    /// Heap bytes in use.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<NameEntry>() + self.text.capacity()
    }
}

impl<I: Id> Default for Names<I> {
    fn default() -> Self {
        Self::from_parts(Vec::new(), String::new())
    }
}

/// Small integers find their id in a plain vector; this is where "small" ends.
const DIRECT_MAX: i64 = 1 << 22;
const NONE: u32 = u32::MAX;

/// Interns names while a history is built. A name that does not fit gets the first name's id, and `room` notes it.
#[derive(Debug)]
pub(crate) struct NameIndex<I: Id> {
    pub(crate) names: Names<I>,
    pub(crate) room: Room,
    direct: Vec<u32>,
    integers: IntegerTable,
    strings: Slots,
}

impl<I: Id> Default for NameIndex<I> {
    fn default() -> Self {
        Self {
            names: Names::default(),
            room: Room::IDS,
            direct: Vec::new(),
            integers: IntegerTable::default(),
            strings: Slots::default(),
        }
    }
}

impl<I: Id> NameIndex<I> {
    /// The id of a name, made if it is new.
    #[inline]
    pub(crate) fn intern(&mut self, name: NameRef<'_>) -> I {
        match name {
            NameRef::Int(value) => self.intern_int(value),
            NameRef::Str(text) => self.intern_str(text),
        }
    }

    #[inline]
    fn intern_int(&mut self, value: i64) -> I {
        if (0..DIRECT_MAX).contains(&value) {
            let place = value as usize;
            if let Some(&id) = self.direct.get(place) {
                if id != NONE {
                    return I::new(id as usize);
                }
            } else {
                self.direct.resize((place + 1).next_power_of_two(), NONE);
            }
            let Some(id) = self.next() else { return I::new(0) };
            self.direct[place] = id;
            self.names.entries.push(NameEntry { data: value as u64, len: 0, is_text: 0 });
            return I::new(id as usize);
        }
        if self.room.is_full(self.names.entries.len())
            && let Some(id) = self.integers.get(value)
        {
            return I::new(id as usize);
        }
        let Some(next) = self.next() else { return I::new(0) };
        let id = self.integers.get_or_insert(value, next);
        if id == next {
            self.names.entries.push(NameEntry { data: value as u64, len: 0, is_text: 0 });
        }
        I::new(id as usize)
    }

    /// The id of the next new name.
    #[inline]
    fn next(&mut self) -> Option<u32> {
        self.room.place(self.names.entries.len(), 1, "names")
    }

    /// Asks for the memory that interning this integer will need.
    #[inline]
    pub(crate) fn prefetch_int(&self, value: i64) {
        if (0..DIRECT_MAX).contains(&value) {
            // Beyond the end it asks for nothing that matters; the hint cannot fail.
            prefetch_index(&self.direct, value as usize);
        } else {
            self.integers.prefetch(value);
        }
    }

    fn intern_str(&mut self, text: &str) -> I {
        let hash = hash_text(text);
        let names = &self.names;
        if let Some(id) = self.strings.find(hash, |id| names.at(id as usize) == NameRef::Str(text)) {
            return I::new(id as usize);
        }
        let (Some(id), Some(len)) = (self.next(), self.room.len(text.len(), "bytes in a name")) else {
            return I::new(0);
        };
        let start = self.names.text.len() as u64;
        self.names.text.push_str(text);
        self.names.entries.push(NameEntry { data: start, len, is_text: 1 });
        self.strings.insert(hash, id);
        I::new(id as usize)
    }

    /// Indexes a table; refuses the first name that is there for the second time, by its place.
    pub(crate) fn of(names: Names<I>) -> Result<Self, usize> {
        let mut index = Self { names, ..Self::default() };
        for place in 0..index.names.entries.len() {
            let id = place as u32;
            let is_new = match index.names.at(place) {
                NameRef::Int(value) if (0..DIRECT_MAX).contains(&value) => {
                    let value = value as usize;
                    if value >= index.direct.len() {
                        index.direct.resize((value + 1).next_power_of_two(), NONE);
                    }
                    std::mem::replace(&mut index.direct[value], id) == NONE
                }
                NameRef::Int(value) => index.integers.get_or_insert(value, id) == id,
                NameRef::Str(text) => {
                    let (hash, names) = (hash_text(text), &index.names);
                    let found = index.strings.find(hash, |id| names.at(id as usize) == NameRef::Str(text));
                    index.strings.insert(hash, id);
                    found.is_none()
                }
            };
            if !is_new {
                return Err(place);
            }
        }
        Ok(index)
    }

    /// Forgets the name that was made last.
    pub(crate) fn forget_last(&mut self) {
        let Some(last) = self.names.entries.len().checked_sub(1) else { return };
        match self.names.at(last) {
            NameRef::Int(value) if (0..DIRECT_MAX).contains(&value) => self.direct[value as usize] = NONE,
            NameRef::Int(value) => self.integers.remove(value),
            NameRef::Str(text) => {
                let hash = hash_text(text);
                self.strings.remove(hash, last as u32);
            }
        }
        let entry = self.names.entries.pop().expect("there is a last entry");
        if entry.is_text != 0 {
            self.names.text.truncate(entry.data as usize);
        }
    }

    /// The id of a name that has been seen, if it has.
    pub(crate) fn find(&self, name: NameRef<'_>) -> Option<I> {
        let id = match name {
            NameRef::Int(value) if (0..DIRECT_MAX).contains(&value) => {
                self.direct.get(value as usize).copied().filter(|&id| id != NONE)
            }
            NameRef::Int(value) => self.integers.get(value),
            NameRef::Str(text) => self.strings.find(hash_text(text), |id| self.names.at(id as usize) == name),
        };
        id.map(|id| I::new(id as usize))
    }
}

fn hash_text(text: &str) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(text.as_bytes());
    fold(hasher.finish())
}

/// All 64 bits of a hash in 32.
#[inline]
pub(crate) fn fold(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}
