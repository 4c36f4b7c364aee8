//! Values that live as long as somebody holds them.
//!
//! A history interns its values for ever; a stream that runs for weeks cannot. A [`Datum`] is 16 bytes:
//! integers are inside, everything else is shared and goes when its last version and reader go.
//!
//! **Lists** are chains: an append makes a node that holds the new elements and points to the list
//! before. Versions share what they have in common, and an append costs its own length. Every node knows
//! the length and a hash of the whole list, so that different lists are told apart at once.
//!
//! **Invariant.** There is no empty list: it is [`Datum::Absent`] (see [`oracle`](mod@oracle)). Equal values
//! have equal hashes, however a list is cut into nodes.

use super::Content;
use history::{Predicate, Test, ValueId, ValueRef, Values};
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// A value.
#[derive(Clone, Default)]
pub enum Datum {
    /// The key is absent.
    #[default]
    Absent,
    /// The result is not known.
    Unknown,
    /// An integer.
    Int(i64),
    /// Anything else.
    Shared(Arc<Shared>),
}

/// A value that is not an integer.
pub struct Shared {
    hash: u64,
    form: Form,
}

pub(crate) enum Form {
    Bool(bool),
    UInt(u64),
    Float(f64),
    Text(Box<str>),
    /// Columns by name.
    Row(Box<[(Box<str>, Datum)]>),
    List(List),
}

/// The last piece of a list.
pub(crate) struct List {
    /// What comes before it: a list, or nothing.
    before: Option<Arc<Shared>>,
    last: Box<[Datum]>,
    len: usize,
}

const LIST_SEED: u64 = 0x51ce_b00d;

fn mix(hash: u64, more: u64) -> u64 {
    (hash.rotate_left(5) ^ more).wrapping_mul(0x517c_c1b7_2722_0a95)
}

fn hash_bytes(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        hash = mix(hash, u64::from_le_bytes(word));
    }
    for &byte in chunks.remainder() {
        hash = mix(hash, u64::from(byte));
    }
    mix(hash, bytes.len() as u64)
}

impl Datum {
    /// A value of a history.
    pub fn of(values: &Values, id: ValueId) -> Self {
        if let Some(value) = id.as_inline() {
            return Self::Int(value);
        }
        if !id.is_known() {
            return Self::Unknown;
        }
        match values.get(id) {
            ValueRef::Null => Self::Absent,
            ValueRef::Int(value) => Self::Int(value),
            ValueRef::Bool(value) => Self::share(Form::Bool(value)),
            ValueRef::UInt(value) => Self::share(Form::UInt(value)),
            ValueRef::Float(value) => Self::share(Form::Float(value)),
            ValueRef::Str(text) => Self::share(Form::Text(text.into())),
            ValueRef::List(elements) => Self::list(elements.iter().map(|&id| Self::of(values, id)).collect()),
            ValueRef::Row(cells) => {
                let columns = values.columns();
                let cell = |cell: &history::Cell| {
                    (columns.get(cell.column).to_string().into_boxed_str(), Self::of(values, cell.value))
                };
                Self::row(cells.iter().map(cell).collect())
            }
        }
    }

    /// What was expected or seen, if it is a value.
    pub(crate) fn of_content(values: &Values, content: &Content) -> Option<Self> {
        match content {
            Content::Value(id) => Some(Self::of(values, *id)),
            Content::List(ids) => Some(Self::list(ids.iter().map(|&id| Self::of(values, id)).collect())),
            Content::Count(_) | Content::Time(_) | Content::Clock(_) => None,
        }
    }

    /// A list; the empty one is [`Datum::Absent`].
    pub fn list(elements: Vec<Datum>) -> Self {
        if elements.is_empty() {
            return Self::Absent;
        }
        let len = elements.len();
        Self::share(Form::List(List { before: None, last: elements.into(), len }))
    }

    /// A row.
    pub fn row(mut cells: Vec<(Box<str>, Datum)>) -> Self {
        cells.sort_by(|a, b| a.0.cmp(&b.0));
        Self::share(Form::Row(cells.into()))
    }

    pub(crate) fn share(form: Form) -> Self {
        let hash = match &form {
            Form::Bool(value) => mix(1, u64::from(*value)),
            Form::UInt(value) => mix(2, *value),
            Form::Float(value) => mix(3, value.to_bits()),
            Form::Text(text) => hash_bytes(4, text.as_bytes()),
            Form::Row(cells) => cells
                .iter()
                .fold(5, |hash, (name, value)| mix(hash_bytes(hash, name.as_bytes()), value.hash())),
            Form::List(list) => {
                let before = list.before.as_ref().map_or(LIST_SEED, |before| before.hash);
                list.last.iter().fold(before, |hash, element| mix(hash, element.hash()))
            }
        };
        Self::Shared(Arc::new(Shared { hash, form }))
    }

    /// Equal values have equal hashes.
    pub fn hash(&self) -> u64 {
        match self {
            Self::Absent => 7,
            Self::Unknown => 8,
            Self::Int(value) => mix(9, *value as u64),
            Self::Shared(shared) => shared.hash,
        }
    }

    pub(crate) fn form(&self) -> Option<&Form> {
        match self {
            Self::Shared(shared) => Some(&shared.form),
            _ => None,
        }
    }

    fn as_list(&self) -> Option<&List> {
        match self.form() {
            Some(Form::List(list)) => Some(list),
            _ => None,
        }
    }

    /// Whether the key is there at all.
    pub fn is_present(&self) -> bool {
        !matches!(self, Self::Absent)
    }

    /// Whether it is neither absent nor a list, and known.
    pub(crate) fn is_plain(&self) -> bool {
        self.is_present() && self.is_known() && self.as_list().is_none()
    }

    /// Whether the result was recorded.
    pub fn is_known(&self) -> bool {
        !matches!(self, Self::Unknown)
    }

    /// The value after appending elements, which are not none.
    pub(crate) fn append(&self, elements: Box<[Datum]>) -> Self {
        if !self.is_known() {
            return Self::Unknown;
        }
        let before = match self {
            Self::Absent => None,
            Self::Shared(shared) if matches!(shared.form, Form::List(_)) => Some(shared.clone()),
            single => match Self::list(vec![single.clone()]) {
                Self::Shared(shared) => Some(shared),
                _ => None,
            },
        };
        let len = elements.len() + self.len_as_list();
        Self::share(Form::List(List { before, last: elements, len }))
    }

    /// How many elements it has as the base of an append.
    fn len_as_list(&self) -> usize {
        match (self, self.as_list()) {
            (Self::Absent, _) => 0,
            (_, Some(list)) => list.len,
            _ => 1,
        }
    }

    /// What the last append added.
    pub(crate) fn last_piece(&self) -> Option<Box<[Datum]>> {
        self.as_list().map(|list| list.last.clone())
    }

    /// The elements of a list, in order; a scalar is a list of itself, absent is none.
    pub fn elements(&self) -> Vec<Datum> {
        let Some(mut list) = self.as_list() else {
            return if self.is_present() { vec![self.clone()] } else { vec![] };
        };
        let mut reversed: Vec<Datum> = Vec::with_capacity(list.len);
        loop {
            reversed.extend(list.last.iter().rev().cloned());
            match list.before.as_ref().map(|before| &before.form) {
                Some(Form::List(before)) => list = before,
                _ => break,
            }
        }
        reversed.reverse();
        reversed
    }

    /// A list without its last elements, if those are `suffix`.
    pub(crate) fn strip_suffix(&self, suffix: &[Datum]) -> Option<Datum> {
        self.as_list()?;
        let mut elements = self.elements();
        if !elements.ends_with(suffix) {
            return None;
        }
        elements.truncate(elements.len() - suffix.len());
        Some(Self::list(elements))
    }

    /// Whether the two are the same as the base of an append: a scalar looks like a list of itself.
    pub(crate) fn same_as_list(&self, other: &Datum) -> bool {
        if self.as_list().is_some() == other.as_list().is_some() {
            return self == other;
        }
        self.len_as_list() == other.len_as_list() && self.elements() == other.elements()
    }

    /// About how many bytes it holds on the heap, beside what it shares with the list before.
    pub(crate) fn heap_bytes(&self) -> usize {
        const NODE: usize = 64;
        match self.form() {
            None => 0,
            Some(Form::Text(text)) => NODE + text.len(),
            Some(Form::Row(cells)) => {
                NODE + cells.iter().map(|(name, value)| 48 + name.len() + value.heap_bytes()).sum::<usize>()
            }
            Some(Form::List(list)) => {
                NODE + list.last.iter().map(|element| 16 + element.heap_bytes()).sum::<usize>()
            }
            Some(_) => NODE,
        }
    }

    /// How two values compare with `<` and its kin; `None` between different types.
    fn compare(&self, other: &Datum) -> Option<Ordering> {
        if let (Self::Int(a), Self::Int(b)) = (self, other) {
            return Some(a.cmp(b));
        }
        match (self.form(), other.form()) {
            (Some(Form::UInt(_)), None) if matches!(other, Self::Int(_)) => Some(Ordering::Greater),
            (None, Some(Form::UInt(_))) if matches!(self, Self::Int(_)) => Some(Ordering::Less),
            (Some(Form::Bool(a)), Some(Form::Bool(b))) => Some(a.cmp(b)),
            (Some(Form::Text(a)), Some(Form::Text(b))) => Some(a.cmp(b)),
            (Some(Form::UInt(a)), Some(Form::UInt(b))) => Some(a.cmp(b)),
            _ => self.as_number()?.partial_cmp(&other.as_number()?),
        }
    }

    fn as_number(&self) -> Option<f64> {
        match (self, self.form()) {
            (Self::Int(value), _) => Some(*value as f64),
            (_, Some(Form::UInt(value))) => Some(*value as f64),
            (_, Some(Form::Float(value))) => Some(*value),
            _ => None,
        }
    }
}

impl From<bool> for Datum {
    fn from(value: bool) -> Self {
        Self::share(Form::Bool(value))
    }
}

/// An integer above `i64::MAX`; smaller ones are [`Datum::Int`].
impl From<u64> for Datum {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or_else(|_| Self::share(Form::UInt(value)), Self::Int)
    }
}

impl From<f64> for Datum {
    fn from(value: f64) -> Self {
        Self::share(Form::Float(value))
    }
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::share(Form::Text(text.into()))
    }
}

impl PartialEq for Datum {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Absent, Self::Absent) | (Self::Unknown, Self::Unknown) => true,
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::Shared(a), Self::Shared(b)) => Arc::ptr_eq(a, b) || same_form(a, b),
            _ => false,
        }
    }
}

fn same_form(a: &Shared, b: &Shared) -> bool {
    if a.hash != b.hash {
        return false;
    }
    match (&a.form, &b.form) {
        (Form::Bool(a), Form::Bool(b)) => a == b,
        (Form::UInt(a), Form::UInt(b)) => a == b,
        (Form::Float(a), Form::Float(b)) => a.to_bits() == b.to_bits(),
        (Form::Text(a), Form::Text(b)) => a == b,
        (Form::Row(a), Form::Row(b)) => a == b,
        (Form::List(a), Form::List(b)) => a.len == b.len && backwards(a).eq(backwards(b)),
        _ => false,
    }
}

/// The elements from the last to the first, without copying.
fn backwards(list: &List) -> impl Iterator<Item = &Datum> {
    let mut next = Some(list);
    std::iter::from_fn(move || {
        let list = next?;
        next = match list.before.as_ref().map(|before| &before.form) {
            Some(Form::List(before)) => Some(before),
            _ => None,
        };
        Some(list.last.iter().rev())
    })
    .flatten()
}

/// A chain of lists is taken apart link by link: one inside the other would need a stack as deep as the
/// list is long.
impl Drop for List {
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(node) = next {
            next = match Arc::into_inner(node).map(|shared| shared.form) {
                Some(Form::List(mut list)) => list.before.take(),
                _ => None,
            };
        }
    }
}

impl fmt::Debug for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As in the notation: `_` is written out as `absent`.
impl fmt::Display for Datum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent => return f.write_str("absent"),
            Self::Unknown => return f.write_str("unknown"),
            Self::Int(value) => return write!(f, "{value}"),
            Self::Shared(_) => {}
        }
        match self.form() {
            Some(Form::Bool(value)) => write!(f, "{value}"),
            Some(Form::UInt(value)) => write!(f, "{value}"),
            Some(Form::Float(value)) => write!(f, "{value}"),
            Some(Form::Text(text)) => write!(f, "{text:?}"),
            Some(Form::Row(cells)) => {
                f.write_str("{")?;
                for (index, (name, value)) in cells.iter().enumerate() {
                    write!(f, "{}{name}:{value}", if index == 0 { "" } else { " " })?;
                }
                f.write_str("}")
            }
            Some(Form::List(_)) => {
                f.write_str("[")?;
                for (index, element) in self.elements().iter().enumerate() {
                    write!(f, "{}{element}", if index == 0 { "" } else { " " })?;
                }
                f.write_str("]")
            }
            None => Ok(()),
        }
    }
}

/// A predicate that outlives the history it came from.
pub(crate) type Condition = Predicate<Box<str>, Datum>;

pub(crate) fn condition_of(values: &Values, predicate: &Predicate) -> Condition {
    predicate.translate(&mut |column, constant| {
        (values.columns().get(*column).to_string().into(), Datum::of(values, *constant))
    })
}

/// Whether a key with this value satisfies a predicate.
pub(crate) fn satisfies(condition: &Condition, value: &Datum) -> bool {
    value.is_present()
        && value.is_known()
        && condition.holds_if(&|column, with, constant| {
            let found = cell(value, column);
            found.is_some_and(|found| with.holds(found == constant, || found.compare(constant)))
        })
}

/// A test that outlives the history it came from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Question {
    Where(Condition),
    /// Whether it is exactly this.
    Is(Datum),
}

impl Question {
    pub(super) fn of(values: &Values, test: Test<'_>) -> Self {
        match test {
            Test::Present => Self::Where(Predicate::All(Vec::new())),
            Test::Where(predicate) => Self::Where(condition_of(values, predicate)),
            Test::Is(expected) => Self::Is(Datum::of(values, expected)),
        }
    }

    /// Whether it holds of a key with this value.
    pub(super) fn holds(&self, value: &Datum) -> bool {
        match self {
            Self::Where(condition) => satisfies(condition, value),
            Self::Is(expected) => expected == value,
        }
    }
}

/// The value of a column; a scalar or a list answers to `value`.
fn cell<'a>(value: &'a Datum, column: &str) -> Option<&'a Datum> {
    match value.form() {
        Some(Form::Row(cells)) => {
            let place = cells.binary_search_by(|(name, _)| (**name).cmp(column)).ok()?;
            Some(&cells[place].1).filter(|value| value.is_present())
        }
        _ => (column == "value").then_some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ints(values: &[i64]) -> Datum {
        Datum::list(values.iter().map(|&value| Datum::Int(value)).collect())
    }

    fn boxed(values: &[i64]) -> Box<[Datum]> {
        values.iter().map(|&value| Datum::Int(value)).collect()
    }

    #[test]
    fn lists_are_equal_however_they_grew() {
        let grown = Datum::Absent.append(boxed(&[1])).append(boxed(&[2, 3]));
        assert_eq!(grown, ints(&[1, 2, 3]));
        assert_ne!(grown, ints(&[1, 2]));
        assert_ne!(grown, ints(&[1, 3, 2]));
        assert_eq!(Datum::Int(7).append(boxed(&[8])), ints(&[7, 8]));
        assert_eq!(grown.strip_suffix(&boxed(&[3])), Some(ints(&[1, 2])));
        assert_eq!(grown.strip_suffix(&boxed(&[1])), None);
        assert_eq!(grown.last_piece(), Some(boxed(&[2, 3])));
        assert_eq!(format!("{grown}"), "[1 2 3]");
    }

    #[test]
    fn a_long_chain_can_be_dropped() {
        let mut list = Datum::Absent;
        for value in 0..300_000 {
            list = list.append(boxed(&[value]));
        }
        assert_eq!(list.elements().len(), 300_000);
        drop(list);
    }

    #[test]
    fn a_scalar_is_the_base_of_a_list() {
        assert!(Datum::Int(1).same_as_list(&ints(&[1])));
        assert!(!Datum::Int(1).same_as_list(&ints(&[1, 2])));
        assert!(Datum::Absent.same_as_list(&Datum::Absent));
    }
}
