//! Predicates over values: what `query`, `update` and `delete-where` filter by.

use crate::{ColumnId, ValueId, ValueRef, Values};
use std::cmp::Ordering;

/// A condition on one value. An absent key satisfies nothing, whatever the condition says.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Every part holds (no part: everything that is present).
    All(Vec<Predicate>),
    /// Some part holds.
    Any(Vec<Predicate>),
    /// The part does not hold.
    Not(Box<Predicate>),
    /// A column compared with a constant. A scalar answers to the column `value`.
    Compare {
        /// The column.
        column: ColumnId,
        /// How.
        with: Comparison,
        /// The constant.
        constant: ValueId,
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

    /// The way it is written.
    pub fn symbol(self) -> &'static str {
        Self::ALL.iter().find(|(_, with)| *with == self).map_or("=", |(symbol, _)| symbol)
    }
}

/// The column that a scalar value answers to.
pub(crate) const SCALAR_COLUMN: &str = "value";

impl Predicate {
    /// Whether a key whose value is `value` satisfies it.
    pub fn holds(&self, values: &Values, value: ValueId) -> bool {
        value != ValueId::ABSENT && value.is_known() && self.evaluate(values, value)
    }

    fn evaluate(&self, values: &Values, value: ValueId) -> bool {
        match self {
            Self::All(parts) => parts.iter().all(|part| part.evaluate(values, value)),
            Self::Any(parts) => parts.iter().any(|part| part.evaluate(values, value)),
            Self::Not(part) => !part.evaluate(values, value),
            Self::Compare { column, with, constant } => {
                let Some(found) = column_of(values, value, *column) else { return false };
                let order = || values.compare(found, *constant);
                match with {
                    Comparison::Equal => found == *constant,
                    Comparison::NotEqual => found != *constant,
                    Comparison::Less => order() == Some(Ordering::Less),
                    Comparison::LessOrEqual => order().is_some_and(Ordering::is_le),
                    Comparison::Greater => order() == Some(Ordering::Greater),
                    Comparison::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
                }
            }
        }
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
        _ => (values.columns().get(column) == crate::NameRef::Str(SCALAR_COLUMN)).then_some(value),
    }
}
