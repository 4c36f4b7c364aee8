//! Predicates over values: what `query`, `update` and `delete-where` filter by.

use crate::{ColumnId, NameRef, ValueId, ValueRef, Values};
use std::cmp::Ordering;

/// A condition on one value. An absent key satisfies nothing, whatever the condition says.
///
/// In a history columns and constants are ids; where a predicate outlives its history, names and owned values.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate<C = ColumnId, V = ValueId> {
    /// Every part holds (no part: everything that is present).
    All(Vec<Predicate<C, V>>),
    /// Some part holds.
    Any(Vec<Predicate<C, V>>),
    /// The part does not hold.
    Not(Box<Predicate<C, V>>),
    /// A column compared with a constant. A scalar answers to the column `value`.
    Compare {
        /// The column.
        column: C,
        /// How.
        with: Comparison,
        /// The constant.
        constant: V,
    },
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `=`: equal; values of different types are not.
    Equal,
    /// `!=`: not equal; also true between different types.
    NotEqual,
    /// `<`: false between different types, as the next three.
    Less,
    /// `<=`.
    LessOrEqual,
    /// `>`.
    Greater,
    /// `>=`.
    GreaterOrEqual,
}

impl Comparison {
    /// All operators with the way they are written.
    pub const ALL: [(&'static str, Comparison); 6] = [
        ("=", Self::Equal),
        ("!=", Self::NotEqual),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("<", Self::Less),
        (">", Self::Greater),
    ];

    /// Whether it holds between two values that are equal or not, and ordered like this if they are of one type.
    pub fn holds(self, equal: bool, order: impl FnOnce() -> Option<Ordering>) -> bool {
        match self {
            Self::Equal => equal,
            Self::NotEqual => !equal,
            Self::Less => order() == Some(Ordering::Less),
            Self::LessOrEqual => order().is_some_and(Ordering::is_le),
            Self::Greater => order() == Some(Ordering::Greater),
            Self::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        }
    }

    /// The way it is written.
    pub fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(_, with)| *with == self).map_or("=", |(symbol, _)| symbol)
    }
}

/// The column that a scalar value answers to.
pub(crate) const SCALAR_COLUMN: &str = "value";

impl<C, V> Predicate<C, V> {
    /// A column compared with a constant.
    pub fn compare(column: impl Into<C>, with: Comparison, constant: impl Into<V>) -> Self {
        Self::Compare { column: column.into(), with, constant: constant.into() }
    }

    /// Whether it holds of a present value, given which comparisons do.
    pub fn holds_if(&self, compare: &impl Fn(&C, Comparison, &V) -> bool) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.holds_if(compare)),
            Self::Any(parts) => parts.iter().any(|part| part.holds_if(compare)),
            Self::Not(part) => !part.holds_if(compare),
            Self::Compare { column, with, constant } => compare(column, *with, constant),
        }
    }

    /// The same predicate in terms of other columns and constants.
    pub fn translate<D, W>(&self, terms: &mut impl FnMut(&C, &V) -> (D, W)) -> Predicate<D, W> {
        match self {
            Self::All(parts) => Predicate::All(parts.iter().map(|part| part.translate(terms)).collect()),
            Self::Any(parts) => Predicate::Any(parts.iter().map(|part| part.translate(terms)).collect()),
            Self::Not(part) => Predicate::Not(Box::new(part.translate(terms))),
            Self::Compare { column, with, constant } => {
                let (column, constant) = terms(column, constant);
                Predicate::Compare { column, with: *with, constant }
            }
        }
    }

    /// Every column that it compares, with the constant.
    pub fn comparisons(&self) -> impl Iterator<Item = (&C, &V)> {
        let mut open = vec![self];
        std::iter::from_fn(move || {
            while let Some(part) = open.pop() {
                match part {
                    Self::All(parts) | Self::Any(parts) => open.extend(parts),
                    Self::Not(part) => open.push(part),
                    Self::Compare { column, constant, .. } => return Some((column, constant)),
                }
            }
            None
        })
    }
}

impl Predicate {
    /// Whether a key whose value is `value` satisfies it.
    pub fn holds(&self, values: &Values, value: ValueId) -> bool {
        value != ValueId::ABSENT
            && value.is_known()
            && self.holds_if(&|column, with, constant| {
                let found = column_of(values, value, *column);
                found.is_some_and(|found| with.holds(found == *constant, || values.compare(found, *constant)))
            })
    }

    /// As [`Predicate::holds`], for a list that has no id: it answers to the column of scalars, equals the constants that
    /// `is` says, and is neither less nor greater than anything.
    pub fn holds_of_list(&self, values: &Values, is: &impl Fn(ValueId) -> bool) -> bool {
        self.holds_if(&|column, with, constant| {
            values.columns().get(*column) == NameRef::Str(SCALAR_COLUMN) && with.holds(is(*constant), || None)
        })
    }
}

/// The value of a row's column, if the row has it and it is not null.
fn column_of(values: &Values, value: ValueId, column: ColumnId) -> Option<ValueId> {
    match values.get(value) {
        ValueRef::Row(cells) => {
            let place = cells.binary_search_by_key(&column, |cell| cell.column).ok()?;
            Some(cells[place].value).filter(|&value| value != ValueId::ABSENT)
        }
        ValueRef::Null => None,
        _ => (values.columns().get(column) == NameRef::Str(SCALAR_COLUMN)).then_some(value),
    }
}
