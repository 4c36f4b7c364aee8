//! What an operation does, whatever it is called: five primitives that every operation lowers to.
//!
//! *What*: clients have many operations, a store does five things. A delete is a write of "absent"; a scan, an iterator
//! and a query show the rows of an area; an update and a delete by predicate write where a test holds.
//!
//! ```text
//!   d(x)                 write x := absent
//!   scan(a..m)=[b:3]     show  a..m, to the end: [b:3]
//!   u(v>=2 -> 0)=[b]     write 0 where v>=2, on every key; b was changed
//! ```
//!
//! *Invariant*: nothing that checks a history matches on [`Operation`]: an operation that lowers to primitives is
//! decided at every level. Operations are for who reads, writes and shows histories.

use crate::{
    History, KeyId, OpId, Operation, Point, PointKind, Predicate, Range, Row, Transaction, ValueId, ValueRef,
    Values,
};

/// A question about a key's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Test<'h> {
    /// Whether anything is there.
    Present,
    /// Whether it satisfies a predicate.
    Where(&'h Predicate),
    /// Whether it is exactly this; [`ValueId::ABSENT`]: whether nothing is there.
    Is(ValueId),
}

impl<'h> Test<'h> {
    /// Whether it holds of a key whose value is `value`.
    pub fn holds(self, values: &Values, value: ValueId) -> bool {
        match self {
            Self::Present => value != ValueId::ABSENT,
            Self::Where(predicate) => predicate.holds(values, value),
            Self::Is(expected) => normal(values, expected) == value,
        }
    }

    /// As [`Test::holds`], for a list that has no id and is not empty; `is` says which values it equals.
    pub fn holds_of_list(self, values: &Values, is: impl Fn(ValueId) -> bool) -> bool {
        match self {
            Self::Present => true,
            Self::Where(predicate) => predicate.holds_of_list(values, &is),
            Self::Is(expected) => is(expected),
        }
    }

    /// The values that it compares with.
    pub fn constants(self) -> impl Iterator<Item = ValueId> + use<'h> {
        let (predicate, expected) = match self {
            Self::Present => (None, None),
            Self::Where(predicate) => (Some(predicate), None),
            Self::Is(expected) => (None, Some(expected)),
        };
        let compared = predicate.into_iter().flat_map(Predicate::comparisons).map(|(_, constant)| *constant);
        compared.chain(expected)
    }
}

/// `[]` and absent are one thing: what appends start from.
fn normal(values: &Values, value: ValueId) -> ValueId {
    if value.as_inline().is_none() && value.is_known() && values.get(value) == ValueRef::List(&[]) {
        ValueId::ABSENT
    } else {
        value
    }
}

/// The keys whose rows an operation shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Area<'h> {
    /// Those of a range, from one end on.
    Range {
        /// The range.
        range: Range,
        /// From the end of the range to its beginning.
        reverse: bool,
        /// All of them; else up to the last row that was shown.
        to_the_end: bool,
    },
    /// Those that satisfy a predicate.
    Where(&'h Predicate),
}

/// A write where a test holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteIf<'h> {
    /// The one key that it is about; none: every key.
    pub key: Option<KeyId>,
    /// What has to hold of the value before.
    pub test: Test<'h>,
    /// What it writes; [`ValueId::ABSENT`] for a delete.
    pub set: ValueId,
    /// How many keys the database said it changed.
    pub count: Option<u64>,
    /// Which ones.
    pub keys: Option<&'h [KeyId]>,
}

impl WriteIf<'_> {
    /// Whether it is about a key at all.
    pub fn is_about(&self, key: KeyId) -> bool {
        self.key.is_none_or(|only| only == key)
    }

    /// Whether it changed a key, if that is known.
    pub fn changed(&self, key: KeyId) -> Option<bool> {
        match self.keys {
            Some(keys) => Some(keys.contains(&key)),
            None => (!self.is_about(key)).then_some(false),
        }
    }
}

/// An operation, reduced to what it does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Primitive<'h> {
    /// Reads a key. The value may be [`ValueId::ABSENT`] or [`ValueId::UNKNOWN`].
    Read {
        /// What was read.
        key: KeyId,
        /// What came back.
        value: ValueId,
    },
    /// Writes a key; [`ValueId::ABSENT`] deletes it.
    Write {
        /// Where.
        key: KeyId,
        /// What.
        value: ValueId,
    },
    /// Adds one element to the list at a key.
    Append {
        /// Where.
        key: KeyId,
        /// What.
        value: ValueId,
    },
    /// Shows the rows of an area.
    Show {
        /// The area.
        area: Area<'h>,
        /// What came back.
        rows: Option<&'h [Row]>,
    },
    /// Writes where a test holds.
    WriteIf(WriteIf<'h>),
}

impl<'h> Primitive<'h> {
    /// The key, if it is about one.
    #[inline]
    pub fn key(&self) -> Option<KeyId> {
        match *self {
            Self::Read { key, .. } | Self::Write { key, .. } | Self::Append { key, .. } => Some(key),
            Self::Show { .. } => None,
            Self::WriteIf(it) => it.key,
        }
    }

    /// Whether it only reads.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Show { .. })
    }

    /// Whether what it writes depends on what it finds, and nobody reported what came of it.
    pub fn is_open_write(&self) -> bool {
        matches!(self, Self::WriteIf(WriteIf { keys: None, .. }))
    }

    /// Whether it wrote a key: certainly, certainly not, or none if that is not known.
    pub fn wrote(&self, key: KeyId) -> Option<bool> {
        match self {
            Self::Write { key: at, .. } | Self::Append { key: at, .. } => Some(*at == key),
            Self::Read { .. } | Self::Show { .. } => Some(false),
            Self::WriteIf(it) => it.changed(key),
        }
    }

    /// Whether it certainly wrote a key.
    pub fn certainly_wrote(&self, key: KeyId) -> bool {
        self.wrote(key) == Some(true)
    }

    /// Whether it may have written a key.
    pub fn may_have_written(&self, key: KeyId) -> bool {
        self.wrote(key) != Some(false)
    }

    /// The keys that it certainly wrote.
    pub fn written_keys(&self) -> impl Iterator<Item = KeyId> + use<'h> {
        let (one, more) = match *self {
            Self::Write { key, .. } | Self::Append { key, .. } => (Some(key), None),
            Self::Read { .. } | Self::Show { .. } => (None, None),
            Self::WriteIf(it) => (None, it.keys),
        };
        one.into_iter().chain(more.into_iter().flatten().copied())
    }

    /// The value that it writes where it writes one.
    pub fn written_value(&self) -> Option<ValueId> {
        match *self {
            Self::Write { value, .. } => Some(value),
            Self::WriteIf(it) => Some(it.set),
            Self::Read { .. } | Self::Append { .. } | Self::Show { .. } => None,
        }
    }

    /// The rows of an area that it showed.
    pub fn rows(&self) -> &'h [Row] {
        match *self {
            Self::Show { rows: Some(rows), .. } => rows,
            _ => &[],
        }
    }
}

impl History {
    /// One operation as what it does.
    #[inline]
    pub fn primitive(&self, id: OpId) -> Primitive<'_> {
        if let Some(Point { kind, key, value }) = self.point(id) {
            return match kind {
                PointKind::Read => Primitive::Read { key, value },
                PointKind::Write => Primitive::Write { key, value },
                PointKind::Append => Primitive::Append { key, value },
            };
        }
        match self.operation(id) {
            Operation::Read { .. }
            | Operation::Write { .. }
            | Operation::Delete { .. }
            | Operation::Append { .. } => {
                unreachable!("it is a point")
            }
            Operation::Scan { range, rows } => {
                Primitive::Show { area: Area::Range { range, reverse: false, to_the_end: true }, rows }
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                Primitive::Show { area: Area::Range { range, reverse, to_the_end: exhausted }, rows }
            }
            Operation::Query { predicate, rows } => Primitive::Show { area: Area::Where(predicate), rows },
            Operation::Cas { key, expect, write, .. } => Primitive::WriteIf(WriteIf {
                key: Some(key),
                test: Test::Is(expect),
                set: write,
                count: None,
                keys: self.changed_by(id),
            }),
            Operation::Update { predicate, set, count, keys } => {
                Primitive::WriteIf(WriteIf { key: None, test: Test::Where(predicate), set, count, keys })
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                let test = Test::Where(predicate);
                Primitive::WriteIf(WriteIf { key: None, test, set: ValueId::ABSENT, count, keys })
            }
        }
    }
}

impl<'h> Transaction<'h> {
    /// What its operations do, in the order issued.
    #[inline]
    pub fn primitives(
        &self,
    ) -> impl DoubleEndedIterator<Item = (OpId, Primitive<'h>)> + ExactSizeIterator + use<'h> {
        let history = self.history();
        self.op_ids().map(move |op| (op, history.primitive(op)))
    }
}
