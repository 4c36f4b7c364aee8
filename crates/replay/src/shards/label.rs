//! Names and values that mean the same on every machine.

use super::super::datum::Datum;
use history::{Id, Name, NameRef, ValueId, ValueRef, Values};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a key or a session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Label {
    /// An integer; before all texts.
    Int(i64),
    /// A text.
    Text(Box<str>),
}

impl From<NameRef<'_>> for Label {
    fn from(name: NameRef<'_>) -> Self {
        match name {
            NameRef::Int(number) => Self::Int(number),
            NameRef::Str(text) => Self::Text(text.into()),
        }
    }
}

impl From<&Label> for Name {
    fn from(label: &Label) -> Self {
        label.as_name().to_owned()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_name().fmt(f)
    }
}

impl Label {
    /// As a name of a history.
    pub fn as_name(&self) -> NameRef<'_> {
        match self {
            Self::Int(number) => NameRef::Int(*number),
            Self::Text(text) => NameRef::Str(text),
        }
    }
}

/// Where a name lives among `homes`, the same on every machine.
pub fn home(name: NameRef<'_>, homes: usize) -> usize {
    let hash = match name {
        NameRef::Int(number) => mix(number as u64),
        NameRef::Str(text) => xxhash_rust::xxh3::xxh3_64(text.as_bytes()),
    };
    // The upper half of a product is a fair share without a division.
    ((u128::from(hash) * homes.max(1) as u128) >> 64) as usize
}

/// The finalizer of splitmix64: neighbouring keys live apart.
fn mix(number: u64) -> u64 {
    let mut hash = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// A value that is no small integer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the kinds of values, by their names")]
pub enum Literal {
    Absent,
    Int(i64),
    Bool(bool),
    UInt(u64),
    Float(f64),
    Text(Box<str>),
    Row(Vec<(Box<str>, Literal)>),
    List(Vec<Literal>),
}

impl Literal {
    /// The value of an id.
    pub fn of(values: &Values, id: ValueId) -> Self {
        if let Some(number) = id.as_inline() {
            return Self::Int(number);
        }
        match values.get(id) {
            ValueRef::Null => Self::Absent,
            ValueRef::Int(value) => Self::Int(value),
            ValueRef::Bool(value) => Self::Bool(value),
            ValueRef::UInt(value) => Self::UInt(value),
            ValueRef::Float(value) => Self::Float(value),
            ValueRef::Str(text) => Self::Text(text.into()),
            ValueRef::List(elements) => Self::List(elements.iter().map(|&it| Self::of(values, it)).collect()),
            ValueRef::Row(cells) => {
                let cell = |cell: &history::Cell| {
                    (values.columns().get(cell.column).to_string().into(), Self::of(values, cell.value))
                };
                Self::Row(cells.iter().map(cell).collect())
            }
        }
    }

    /// The same as the online checker keeps it.
    pub fn datum(&self) -> Datum {
        match self {
            Self::Absent => Datum::Absent,
            Self::Int(value) => Datum::Int(*value),
            Self::Bool(value) => Datum::from(*value),
            Self::UInt(value) => Datum::from(*value),
            Self::Float(value) => Datum::from(*value),
            Self::Text(text) => Datum::from(&**text),
            Self::Row(cells) => {
                Datum::row(cells.iter().map(|(name, value)| (name.clone(), value.datum())).collect())
            }
            Self::List(elements) => Datum::list(elements.iter().map(Self::datum).collect()),
        }
    }
}

/// Numbers of names that are known. Integers, as most keys are, lie apart: an entry is half as large and found without a second
/// look.
#[derive(Debug, Default)]
pub struct Numbers {
    integers: FxHashMap<i64, u32>,
    texts: FxHashMap<Box<str>, u32>,
}

impl Numbers {
    /// The number of a name.
    #[inline]
    pub fn get(&self, label: &Label) -> Option<u32> {
        match label {
            Label::Int(number) => self.integers.get(number).copied(),
            Label::Text(text) => self.texts.get(text).copied(),
        }
    }

    /// Gives a name a number.
    pub fn insert(&mut self, label: &Label, number: u32) {
        match label {
            Label::Int(integer) => self.integers.insert(*integer, number),
            Label::Text(text) => self.texts.insert(text.clone(), number),
        };
    }

    /// All names with their numbers.
    pub fn into_labels(self) -> impl Iterator<Item = (Label, u32)> {
        let integers = self.integers.into_iter().map(|(integer, number)| (Label::Int(integer), number));
        integers.chain(self.texts.into_iter().map(|(text, number)| (Label::Text(text), number)))
    }
}

/// The names of some ids of a part, by their place in a list that grows as they occur.
#[derive(Debug)]
pub struct Numbered {
    number: Vec<u32>,
}

impl Numbered {
    const NONE: u32 = u32::MAX;

    /// For so many ids, none of which has a number.
    pub fn new(count: usize) -> Self {
        Self { number: vec![Self::NONE; count] }
    }

    /// The number of an id; `add` is called for those that are new.
    #[inline(always)]
    pub fn of(&mut self, id: impl Id, next: usize, add: impl FnOnce()) -> u32 {
        let number = &mut self.number[id.index()];
        if *number == Self::NONE {
            *number = next as u32;
            add();
        }
        *number
    }
}
