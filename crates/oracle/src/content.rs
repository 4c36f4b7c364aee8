//! What a key holds, and what operations make of it.
//!
//! Values of a history are interned, but a replay makes lists that no client ever saw; so the oracle has a
//! plain value of its own. Two contents are equal exactly if a read could not tell them apart.

use history::{Comparison, History, KeyId, NameRef, Predicate, ValueId, ValueRef, Values};

/// What a key holds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Content {
    /// Nothing; also the empty list.
    Absent,
    /// A scalar or a row.
    Single(ValueId),
    /// A list of one element or more.
    List(Vec<ValueId>),
}

impl Content {
    /// The content that a recorded value stands for. A write of an unknown value makes a content that no
    /// known result equals and no predicate holds of.
    pub(super) fn of(values: &Values, value: ValueId) -> Self {
        if !value.is_known() {
            return Self::Single(value);
        }
        match values.get(value) {
            ValueRef::Null => Self::Absent,
            ValueRef::List([]) => Self::Absent,
            ValueRef::List(elements) => Self::List(elements.to_vec()),
            _ => Self::Single(value),
        }
    }

    /// The content after an append.
    pub(super) fn append(&self, element: ValueId) -> Self {
        match self {
            Self::Absent => Self::List(vec![element]),
            Self::Single(value) => Self::List(vec![*value, element]),
            Self::List(elements) => {
                let mut longer = elements.clone();
                longer.push(element);
                Self::List(longer)
            }
        }
    }

    pub(super) fn is_present(&self) -> bool {
        *self != Self::Absent
    }

    /// Whether a key with this content satisfies a predicate.
    pub(super) fn satisfies(&self, values: &Values, predicate: &Predicate) -> bool {
        match self {
            Self::Absent => false,
            Self::Single(value) => predicate.holds(values, *value),
            Self::List(_) => self.list_satisfies(values, predicate),
        }
    }

    /// A list answers to the column `value`; it can be equal to a constant, and has no order.
    fn list_satisfies(&self, values: &Values, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::All(parts) => parts.iter().all(|part| self.list_satisfies(values, part)),
            Predicate::Any(parts) => parts.iter().any(|part| self.list_satisfies(values, part)),
            Predicate::Not(part) => !self.list_satisfies(values, part),
            Predicate::Compare { column, with, constant } => {
                let equal = *self == Self::of(values, *constant);
                values.columns().get(*column) == NameRef::Str("value")
                    && match with {
                        Comparison::Equal => equal,
                        Comparison::NotEqual => !equal,
                        _ => false,
                    }
            }
        }
    }
}

/// What every key holds, by key id.
pub(super) type Store = Vec<Content>;

/// The state before the first transaction.
pub(super) fn initial_store(history: &History) -> Store {
    history.keys().ids().map(|key: KeyId| Content::of(history.values(), history.initial_value(key))).collect()
}
