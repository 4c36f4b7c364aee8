//! Interned values: scalars, lists and rows.

use crate::integers::IntegerTable;
use crate::names::{NameIndex, fold};
use crate::room::Room;
use crate::slots::{Slots, first_double};
use crate::{ColumnId, NameRef, Names, ValueId};
use bytemuck::{Pod, Zeroable};
use rustc_hash::FxHasher;
use std::cmp::Ordering;
use std::fmt;
use std::hash::Hasher;

/// A value, borrowed from its table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueRef<'a> {
    /// JSON's `null`; as a read's value, the key was absent.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A number that is no integer.
    Float(f64),
    /// Text.
    Str(&'a str),
    /// A list, for keys that are appended to.
    List(&'a [ValueId]),
    /// A row: columns ascending by name id, each once.
    Row(&'a [Cell]),
}

/// One column of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Cell {
    /// The column's name.
    pub column: ColumnId,
    /// Its value, a scalar.
    pub value: ValueId,
}

#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct ValueEntry {
    /// The scalar's bits, or the offset into the arena of its kind.
    pub(crate) data: u64,
    /// How long the piece of the arena is.
    pub(crate) len: u32,
    pub(crate) tag: u32,
}

pub(crate) mod tag {
    pub(crate) const NULL: u32 = 0;
    pub(crate) const BOOL: u32 = 1;
    pub(crate) const INT: u32 = 2;
    pub(crate) const UINT: u32 = 3;
    pub(crate) const FLOAT: u32 = 4;
    pub(crate) const STR: u32 = 5;
    pub(crate) const LIST: u32 = 6;
    pub(crate) const ROW: u32 = 7;
}

/// A table of interned values.
#[derive(Clone, Debug)]
pub struct Values {
    pub(crate) entries: Vec<ValueEntry>,
    pub(crate) text: String,
    pub(crate) elements: Vec<ValueId>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) columns: Names<ColumnId>,
}

impl Values {
    /// The value of an id. An unknown result has no value; asking for it is a mistake of the caller
    /// and answers `Null`.
    #[inline]
    pub fn get(&self, id: ValueId) -> ValueRef<'_> {
        if let Some(value) = id.as_inline() {
            return ValueRef::Int(value);
        }
        debug_assert!(id.is_known(), "an unknown result has no value");
        match self.entries.get(id.table_index()) {
            Some(&entry) => self.decode(entry),
            None => ValueRef::Null,
        }
    }

    fn decode(&self, entry: ValueEntry) -> ValueRef<'_> {
        let start = entry.data as usize;
        match entry.tag {
            tag::BOOL => ValueRef::Bool(entry.data != 0),
            tag::INT => ValueRef::Int(entry.data as i64),
            tag::UINT => ValueRef::UInt(entry.data),
            tag::FLOAT => ValueRef::Float(f64::from_bits(entry.data)),
            tag::STR => ValueRef::Str(&self.text[start..start + entry.len as usize]),
            tag::LIST => ValueRef::List(&self.elements[start..start + entry.len as usize]),
            tag::ROW => ValueRef::Row(&self.cells[start..start + entry.len as usize]),
            _ => ValueRef::Null,
        }
    }

    /// The hash of an entry, which is well-formed.
    #[inline]
    pub(crate) fn hash_of(&self, entry: &ValueEntry) -> u32 {
        match entry.tag {
            // As bytes: whoever asks knows that it is a piece of the text.
            tag::STR => {
                let start = entry.data as usize;
                hash_text(&self.text.as_bytes()[start..start + entry.len as usize])
            }
            _ => hash_value(self.decode(*entry)),
        }
    }

    /// The elements of a list; an absent key is the empty list; a scalar is a list of itself.
    pub fn elements(&self, id: ValueId) -> &[ValueId] {
        match self.get(id) {
            ValueRef::List(elements) => elements,
            _ => &[],
        }
    }

    /// Every row that has a table entry.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &[Cell]> {
        self.entries.iter().filter(|entry| entry.tag == tag::ROW).filter_map(|entry| {
            match self.decode(*entry) {
                ValueRef::Row(cells) => Some(cells),
                _ => None,
            }
        })
    }

    /// The column names of rows.
    pub fn columns(&self) -> &Names<ColumnId> {
        &self.columns
    }

    /// How many values have a table entry.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no value has a table entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How two values compare with `<` and its kin; `None` between different types.
    pub fn compare(&self, a: ValueId, b: ValueId) -> Option<Ordering> {
        match (self.get(a), self.get(b)) {
            (ValueRef::Bool(a), ValueRef::Bool(b)) => Some(a.cmp(&b)),
            (ValueRef::Str(a), ValueRef::Str(b)) => Some(a.cmp(b)),
            (a, b) => compare_numbers(a, b),
        }
    }

    /// Heap bytes in use.
    pub fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<ValueEntry>()
            + self.text.capacity()
            + self.elements.capacity() * size_of::<ValueId>()
            + self.cells.capacity() * size_of::<Cell>()
            + self.columns.bytes()
    }

    /// A value as a person would write it: JSON, with `_` for absent.
    pub fn show(&self, id: ValueId) -> ShowValue<'_> {
        ShowValue { values: self, id }
    }
}

impl Default for Values {
    fn default() -> Self {
        Self {
            entries: vec![ValueEntry { data: 0, len: 0, tag: tag::NULL }],
            text: String::new(),
            elements: Vec::new(),
            cells: Vec::new(),
            columns: Names::default(),
        }
    }
}

fn compare_numbers(a: ValueRef<'_>, b: ValueRef<'_>) -> Option<Ordering> {
    use ValueRef::{Float, Int, UInt};
    match (a, b) {
        (Int(a), Int(b)) => Some(a.cmp(&b)),
        (UInt(a), UInt(b)) => Some(a.cmp(&b)),
        (Int(_), UInt(_)) => Some(Ordering::Less),
        (UInt(_), Int(_)) => Some(Ordering::Greater),
        (Float(a), Float(b)) => a.partial_cmp(&b),
        (Float(a), Int(b)) => a.partial_cmp(&(b as f64)),
        (Int(a), Float(b)) => (a as f64).partial_cmp(&b),
        (Float(a), UInt(b)) => a.partial_cmp(&(b as f64)),
        (UInt(a), Float(b)) => (a as f64).partial_cmp(&b),
        _ => None,
    }
}

/// Displays a value; see [`Values::show`].
#[derive(Clone, Copy, Debug)]
pub struct ShowValue<'a> {
    values: &'a Values,
    id: ValueId,
}

impl fmt::Display for ShowValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.id.is_known() {
            return f.write_str("unknown");
        }
        let show = |id| self.values.show(id);
        match self.values.get(self.id) {
            ValueRef::Null => f.write_str("absent"),
            ValueRef::Bool(value) => write!(f, "{value}"),
            ValueRef::Int(value) => write!(f, "{value}"),
            ValueRef::UInt(value) => write!(f, "{value}"),
            ValueRef::Float(value) => write!(f, "{value}"),
            ValueRef::Str(text) => write!(f, "{text:?}"),
            ValueRef::List(elements) => {
                f.write_str("[")?;
                for (index, &element) in elements.iter().enumerate() {
                    let space = if index == 0 { "" } else { " " };
                    write!(f, "{space}{}", show(element))?;
                }
                f.write_str("]")
            }
            ValueRef::Row(cells) => {
                f.write_str("{")?;
                for (index, cell) in cells.iter().enumerate() {
                    let space = if index == 0 { "" } else { " " };
                    write!(f, "{space}{}:{}", self.values.columns.get(cell.column), show(cell.value))?;
                }
                f.write_str("}")
            }
        }
    }
}

/// The hash of a text value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextHash(u32);

impl TextHash {
    #[inline]
    pub(crate) fn of(text: &str) -> Self {
        Self(hash_value(ValueRef::Str(text)))
    }
}

/// Interns values while a history is built. A value that does not fit is absent, and `room` notes it.
#[derive(Debug)]
pub(crate) struct ValueIndex {
    pub(crate) values: Values,
    pub(crate) room: Room,
    pub(crate) columns: NameIndex<ColumnId>,
    table: Slots,
    /// Integers that are not their own id.
    integers: IntegerTable,
    /// Whether the values were taken over and are in no table yet.
    is_behind: bool,
}

impl Default for ValueIndex {
    fn default() -> Self {
        Self {
            values: Values::default(),
            room: Room::VALUES,
            columns: NameIndex::default(),
            table: Slots::default(),
            integers: IntegerTable::default(),
            is_behind: false,
        }
    }
}

impl ValueIndex {
    /// Takes over a table with the hash of each value; refuses the first value that is there for the second time, by its
    /// place.
    pub(crate) fn of(values: Values, hashes: &[u32], columns: NameIndex<ColumnId>) -> Result<Self, usize> {
        let at = |id: u32| values.decode(values.entries[id as usize]);
        match first_double(hashes, |a, b| same_value(at(a), at(b))) {
            Some(place) => Err(place as usize),
            // Whether anything will be looked up is not known yet: the tables wait for that.
            None => Ok(Self { values, columns, is_behind: true, ..Self::default() }),
        }
    }

    /// Brings the tables up to date. The first entry is null, which needs no look-up.
    #[cold]
    fn catch_up(&mut self) {
        self.is_behind = false;
        for place in 1..self.values.entries.len() {
            match self.values.decode(self.values.entries[place]) {
                ValueRef::Int(value) => drop(self.integers.get_or_insert(value, place as u32)),
                value => self.table.insert(hash_value(value), place as u32),
            }
        }
    }

    #[inline]
    pub(crate) fn int(&mut self, value: i64) -> ValueId {
        match ValueId::inline(value) {
            Some(id) => id,
            None => self.large_int(value),
        }
    }

    /// Asks for the memory that interning this integer will need.
    #[inline]
    pub(crate) fn prefetch_int(&self, value: i64) {
        if ValueId::inline(value).is_none() {
            self.integers.prefetch(value);
        }
    }

    #[inline]
    fn large_int(&mut self, value: i64) -> ValueId {
        if self.is_behind {
            self.catch_up();
        }
        if self.room.is_full(self.values.entries.len())
            && let Some(id) = self.integers.get(value)
        {
            return ValueId(id);
        }
        let Some(next) = self.next() else { return ValueId::ABSENT };
        let id = self.integers.get_or_insert(value, next);
        if id == next {
            self.values.entries.push(ValueEntry { data: value as u64, len: 0, tag: tag::INT });
        }
        ValueId(id)
    }

    /// The id of the next new value.
    #[inline]
    fn next(&mut self) -> Option<u32> {
        self.room.place(self.values.entries.len(), 1, "values")
    }

    /// Touches the memory that interning texts of these hashes will need: a slot of the table, the entry it names, the
    /// text that stands for. Each is done for all texts before the next, in a loop so short that the look-ups overlap.
    pub(crate) fn touch_texts(&self, hashes: impl Iterator<Item = TextHash> + Clone) {
        let last = self.values.entries.len() - 1;
        let entry =
            |TextHash(hash): TextHash| self.values.entries[(self.table.touch(hash) as usize).min(last)];
        let mut seen = hashes.clone().fold(0, |seen, TextHash(hash)| seen ^ self.table.touch(hash));
        seen = hashes.clone().fold(seen, |seen, hash| seen ^ entry(hash).len);
        let text = self.values.text.as_bytes();
        if let Some(last) = text.len().checked_sub(1) {
            // What stands for no text gives some other place, at no harm.
            seen =
                hashes.fold(seen, |seen, hash| seen ^ u32::from(text[(entry(hash).data as usize).min(last)]));
        }
        std::hint::black_box(seen);
    }

    /// The id of a text of which the hash is known.
    pub(crate) fn hashed_text(&mut self, text: &str, TextHash(hash): TextHash) -> ValueId {
        if self.is_behind {
            self.catch_up();
        }
        self.intern_hashed(ValueRef::Str(text), hash)
    }

    /// A number; one without a fraction is the integer it equals, so that `1` and `1.0` are one value.
    pub(crate) fn float(&mut self, value: f64) -> ValueId {
        // All bounds are exact in f64; the upper ones are excluded because i64::MAX and u64::MAX are not.
        if value.fract() == 0.0 && value >= i64::MIN as f64 && value < i64::MAX as f64 {
            self.int(value as i64)
        } else if value.fract() == 0.0 && value > 0.0 && value < u64::MAX as f64 {
            self.uint(value as u64)
        } else {
            self.intern(ValueRef::Float(value))
        }
    }

    pub(crate) fn uint(&mut self, value: u64) -> ValueId {
        match i64::try_from(value) {
            Ok(value) => self.int(value),
            Err(_) => self.intern(ValueRef::UInt(value)),
        }
    }

    /// The id of a value, made if it is new. Lists and rows must hold ids of this table.
    pub(crate) fn intern(&mut self, value: ValueRef<'_>) -> ValueId {
        match value {
            ValueRef::Null => return ValueId::ABSENT,
            ValueRef::Int(value) => return self.int(value),
            _ => {}
        }
        if self.is_behind {
            self.catch_up();
        }
        self.intern_hashed(value, hash_value(value))
    }

    #[inline]
    fn intern_hashed(&mut self, value: ValueRef<'_>, hash: u32) -> ValueId {
        let values = &self.values;
        let at = |id: u32| values.decode(values.entries[id as usize]);
        if let Some(id) = self.table.find(hash, |id| same_value(at(id), value)) {
            return ValueId(id);
        }
        let len = match value {
            ValueRef::Str(text) => self.room.len(text.len(), "bytes in a value"),
            ValueRef::List(elements) => self.room.len(elements.len(), "elements in a list"),
            ValueRef::Row(cells) => self.room.len(cells.len(), "columns in a row"),
            _ => Some(0),
        };
        let (Some(id), Some(len)) = (self.next(), len) else { return ValueId::ABSENT };
        let (tag, data) = match value {
            ValueRef::Null => (tag::NULL, 0),
            ValueRef::Bool(value) => (tag::BOOL, u64::from(value)),
            ValueRef::Int(value) => (tag::INT, value as u64),
            ValueRef::UInt(value) => (tag::UINT, value),
            ValueRef::Float(value) => (tag::FLOAT, value.to_bits()),
            ValueRef::Str(text) => {
                let start = self.values.text.len() as u64;
                self.values.text.push_str(text);
                (tag::STR, start)
            }
            ValueRef::List(elements) => {
                let start = self.values.elements.len() as u64;
                self.values.elements.extend_from_slice(elements);
                (tag::LIST, start)
            }
            ValueRef::Row(cells) => {
                let start = self.values.cells.len() as u64;
                self.values.cells.extend_from_slice(cells);
                (tag::ROW, start)
            }
        };
        self.values.entries.push(ValueEntry { data, len, tag });
        self.table.insert(hash, id);
        ValueId(id)
    }

    /// A row from cells in any order; of two cells of one column the last counts.
    pub(crate) fn row(&mut self, cells: &mut Vec<Cell>) -> ValueId {
        cells.sort_by_key(|cell| cell.column);
        cells.reverse();
        cells.dedup_by_key(|cell| cell.column);
        cells.reverse();
        self.intern(ValueRef::Row(cells))
    }

    pub(crate) fn column(&mut self, name: &str) -> ColumnId {
        self.columns.intern(NameRef::Str(name))
    }

    pub(crate) fn finish(mut self) -> Values {
        self.values.columns = self.columns.names;
        self.values.entries.shrink_to_fit();
        self.values.text.shrink_to_fit();
        self.values.elements.shrink_to_fit();
        self.values.cells.shrink_to_fit();
        self.values
    }
}

/// Equality of representation: what the table means by "the same value".
fn same_value(a: ValueRef<'_>, b: ValueRef<'_>) -> bool {
    match (a, b) {
        (ValueRef::Float(a), ValueRef::Float(b)) => a.to_bits() == b.to_bits(),
        // As bytes: one memory comparison instead of one an element.
        (ValueRef::List(a), ValueRef::List(b)) => {
            bytemuck::cast_slice::<_, u8>(a) == bytemuck::cast_slice::<_, u8>(b)
        }
        (a, b) => a == b,
    }
}

#[inline]
fn hash_text(text: &[u8]) -> u32 {
    let mut hasher = FxHasher::default();
    hasher.write(text);
    fold(hasher.finish())
}

fn hash_value(value: ValueRef<'_>) -> u32 {
    let mut hasher = FxHasher::default();
    match value {
        ValueRef::Null => hasher.write_u32(tag::NULL),
        ValueRef::Bool(value) => hasher.write_u8(u8::from(value)),
        ValueRef::Int(value) => hasher.write_i64(value),
        ValueRef::UInt(value) => hasher.write_u64(value),
        ValueRef::Float(value) => hasher.write_u64(value.to_bits()),
        ValueRef::Str(text) => return hash_text(text.as_bytes()),
        ValueRef::List(elements) => hasher.write(bytemuck::cast_slice(elements)),
        ValueRef::Row(cells) => hasher.write(bytemuck::cast_slice(cells)),
    }
    fold(hasher.finish())
}
