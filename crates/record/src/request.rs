//! What a client asks of a database and what comes back, before anything is interned.

use history::{Comparison, Lock, Name, Predicate};
use std::cmp::Ordering;

/// A value on its way to or from a database.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL's NULL; as a read's result, the key was absent.
    Null,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number that is no integer.
    Float(f64),
    /// Text.
    Text(String),
    /// A list of scalars.
    List(Vec<Value>),
    /// A row: column names with scalars.
    Row(Vec<(String, Value)>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Value {
    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }
}

/// A range of keys, `[from, to)`; a missing bound is open.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRange {
    /// The first key of the range.
    pub from: Option<Name>,
    /// The first key after the range.
    pub to: Option<Name>,
}

impl KeyRange {
    /// Whether a key lies in it.
    pub fn contains(&self, key: &Name) -> bool {
        self.from.as_ref().is_none_or(|from| from <= key) && self.to.as_ref().is_none_or(|to| key < to)
    }
}

/// A condition on a value; means what the native format says of `where`.
pub type Condition = Predicate<String, Value>;

/// Whether a present value satisfies a condition.
pub fn satisfies(condition: &Condition, value: &Value) -> bool {
    condition.holds_if(&|column, with, constant| {
        let found = column_of(value, column).filter(|found| **found != Value::Null);
        found.is_some_and(|found| compare(found, with, constant))
    })
}

fn column_of<'v>(value: &'v Value, column: &str) -> Option<&'v Value> {
    match value {
        Value::Row(cells) => cells.iter().find(|(name, _)| name == column).map(|(_, value)| value),
        scalar => (column == SCALAR_COLUMN).then_some(scalar),
    }
}

fn compare(found: &Value, with: Comparison, constant: &Value) -> bool {
    let order = match (found, constant) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Float(b)) => (*a as f64).partial_cmp(b),
        (Value::Float(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        _ => None,
    };
    with.holds(order.map_or(found == constant, Ordering::is_eq), || order)
}

/// As JSON; a row is an object.
impl From<&Value> for serde_json::Value {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Text(text) => text.as_str().into(),
            Value::List(elements) => elements.iter().map(Self::from).collect(),
            Value::Row(cells) => {
                Self::Object(cells.iter().map(|(name, value)| (name.clone(), Self::from(value))).collect())
            }
        }
    }
}

/// The column that holds scalars.
pub const SCALAR_COLUMN: &str = "value";
/// The column that holds lists.
pub const LIST_COLUMN: &str = "list";

/// One operation to be issued.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// A point read.
    Read {
        /// What to read.
        key: Name,
        /// Whether to lock it.
        lock: Lock,
    },
    /// Insert or overwrite.
    Write {
        /// Where.
        key: Name,
        /// What.
        value: Value,
    },
    /// Physical deletion.
    Delete {
        /// Where.
        key: Name,
    },
    /// Adds one element to the list at a key.
    Append {
        /// Where.
        key: Name,
        /// What.
        value: Value,
    },
    /// All keys of a range, ascending.
    Scan {
        /// The range.
        range: KeyRange,
    },
    /// The first keys of a range in iteration order.
    Iterate {
        /// The range.
        range: KeyRange,
        /// From the end of the range to its beginning.
        reverse: bool,
        /// How many keys to ask for.
        limit: u32,
    },
    /// All rows that satisfy a condition.
    Query {
        /// The condition.
        condition: Condition,
    },
    /// Every row that satisfies the condition gets the value.
    Update {
        /// The condition.
        condition: Condition,
        /// The new value.
        set: Value,
    },
    /// Every row that satisfies the condition is deleted.
    DeleteWhere {
        /// The condition.
        condition: Condition,
    },
}

impl Request {
    /// A plain point read.
    pub fn read(key: impl Into<Name>) -> Self {
        Self::Read { key: key.into(), lock: Lock::None }
    }

    /// An insert or overwrite.
    pub fn write(key: impl Into<Name>, value: impl Into<Value>) -> Self {
        Self::Write { key: key.into(), value: value.into() }
    }

    /// An append to a list.
    pub fn append(key: impl Into<Name>, value: impl Into<Value>) -> Self {
        Self::Append { key: key.into(), value: value.into() }
    }
}

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The value of a point read; of a delete, if the database said that nothing was there: `Null`.
    Value(Value),
    /// A write, delete or append went through.
    Done,
    /// The rows of a scan, iteration or query.
    Rows {
        /// Keys with values, in the order they came.
        rows: Vec<(Name, Value)>,
        /// Whether the end of the range was reported (for iterations).
        exhausted: bool,
    },
    /// What a predicate write or delete changed, as far as the database says.
    Changed {
        /// How many rows.
        count: Option<u64>,
        /// Which ones.
        keys: Option<Vec<Name>>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_mean_what_the_format_says() {
        let row = Value::Row(vec![("v1".into(), Value::Int(3)), ("v2".into(), Value::Null)]);
        let compare = |column: &str, with, value: Value| Condition::compare(column, with, value);
        assert!(satisfies(&compare("v1", Comparison::Equal, Value::Int(3)), &row));
        assert!(
            satisfies(&compare("v1", Comparison::Equal, Value::Float(3.0)), &row),
            "numbers compare as numbers"
        );
        assert!(satisfies(&compare("v1", Comparison::NotEqual, "3".into()), &row), "types differ: unequal");
        assert!(!satisfies(&compare("v1", Comparison::Less, "4".into()), &row), "types differ: not less");
        assert!(
            !satisfies(&compare("v2", Comparison::NotEqual, Value::Int(3)), &row),
            "a null column is missing"
        );
        assert!(!satisfies(&compare("v9", Comparison::NotEqual, Value::Int(3)), &row), "a missing column");
        let not = Condition::Not(Box::new(compare("v9", Comparison::Equal, Value::Int(3))));
        assert!(satisfies(&not, &row), "the negation of a false comparison holds");
        assert!(satisfies(&compare("value", Comparison::GreaterOrEqual, Value::Int(3)), &Value::Int(3)));
        assert!(satisfies(&Condition::All(vec![]), &row));
        assert!(!satisfies(&Condition::Any(vec![]), &row));
    }

    #[test]
    fn ranges_are_half_open_and_integers_come_first() {
        let range = KeyRange { from: Some(Name::Int(3)), to: Some(Name::Str("b".into())) };
        let inside = |key: Name| range.contains(&key);
        assert!(inside(Name::Int(3)) && inside(Name::Int(900)) && inside(Name::Str("a".into())));
        assert!(!inside(Name::Int(2)) && !inside(Name::Str("b".into())));
    }
}
