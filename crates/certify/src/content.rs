//! What a key holds while a witness is replayed.
//!
//! Lists grow in place: a transaction that appends keeps only its own elements beside the content it builds on, so a
//! replay costs as much as what it appends and what it compares, however long the lists become. The meaning of
//! values is that of [`oracle`](mod@oracle); the code is not shared with it.

use history::{Comparison, NameRef, Predicate, ValueId, ValueRef, Values};

/// What a key holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Content {
    /// Nothing; also the empty list.
    #[default]
    Absent,
    /// A scalar or a row; [`ValueId::UNKNOWN`] where a write's value was not recorded: no result equals it.
    Single(ValueId),
    /// A list of one element or more.
    List(Vec<ValueId>),
}

impl Content {
    /// What a written value leaves.
    pub(super) fn of(values: &Values, value: ValueId) -> Self {
        match Seen::of(values, value) {
            Seen::Absent => Self::Absent,
            Seen::Single(value) => Self::Single(value),
            Seen::List(elements) => Self::List(elements.to_vec()),
        }
    }

    /// Adds elements at the end.
    pub(super) fn extend(&mut self, added: &[ValueId]) {
        if added.is_empty() {
            return;
        }
        match self {
            Self::List(elements) => elements.extend_from_slice(added),
            Self::Absent => *self = Self::List(added.to_vec()),
            Self::Single(value) => *self = Self::List([&[*value], added].concat()),
        }
    }

    /// The elements that appends build on.
    pub(super) fn elements(&self) -> &[ValueId] {
        match self {
            Self::Absent => &[],
            Self::Single(value) => std::slice::from_ref(value),
            Self::List(elements) => elements,
        }
    }

    /// It alone.
    pub(super) fn view(&self) -> View<'_> {
        View { base: self, added: &[] }
    }
}

/// A value as a result shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen<'h> {
    /// `null` and `[]`.
    Absent,
    /// A scalar or a row.
    Single(ValueId),
    /// A list of one element or more.
    List(&'h [ValueId]),
}

impl<'h> Seen<'h> {
    /// What a recorded value says.
    #[inline]
    pub(super) fn of(values: &'h Values, value: ValueId) -> Self {
        if value.as_inline().is_some() || !value.is_known() {
            return Self::Single(value);
        }
        match values.get(value) {
            ValueRef::Null | ValueRef::List([]) => Self::Absent,
            ValueRef::List(elements) => Self::List(elements),
            _ => Self::Single(value),
        }
    }
}

/// What a transaction finds in a key: a content, and elements it added to it itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct View<'a> {
    pub(super) base: &'a Content,
    pub(super) added: &'a [ValueId],
}

impl View<'_> {
    /// Whether there is anything.
    pub(super) fn is_present(self) -> bool {
        *self.base != Content::Absent || !self.added.is_empty()
    }

    /// Whether a result shows exactly this.
    #[inline]
    pub(super) fn equals(self, seen: Seen<'_>) -> bool {
        if self.added.is_empty() {
            return match (self.base, seen) {
                (Content::Absent, Seen::Absent) => true,
                (Content::Single(held), Seen::Single(seen)) => *held == seen,
                (Content::List(held), Seen::List(seen)) => held == seen,
                _ => false,
            };
        }
        let Seen::List(seen) = seen else { return false };
        let base = self.base.elements();
        seen.len() == base.len() + self.added.len()
            && seen.starts_with(base)
            && seen[base.len()..] == *self.added
    }

    /// Whether a key that holds this satisfies a predicate.
    pub(super) fn satisfies(self, values: &Values, predicate: &Predicate) -> bool {
        match self.base {
            Content::Absent if self.added.is_empty() => false,
            Content::Single(value) if self.added.is_empty() => predicate.holds(values, *value),
            _ => self.list_satisfies(values, predicate),
        }
    }

    /// A list is one value of the column `value`: equal to a constant or not, and without an order.
    fn list_satisfies(self, values: &Values, predicate: &Predicate) -> bool {
        match predicate {
            Predicate::All(parts) => parts.iter().all(|part| self.list_satisfies(values, part)),
            Predicate::Any(parts) => parts.iter().any(|part| self.list_satisfies(values, part)),
            Predicate::Not(part) => !self.list_satisfies(values, part),
            Predicate::Compare { column, with, constant } => {
                let is_value = values.columns().get(*column) == NameRef::Str("value");
                let equal = || self.equals(Seen::of(values, *constant));
                match with {
                    Comparison::Equal => is_value && equal(),
                    Comparison::NotEqual => is_value && !equal(),
                    _ => false,
                }
            }
        }
    }

    /// As a person would write it.
    pub(super) fn show(self, values: &Values) -> String {
        let one = |value: &ValueId| values.show(*value).to_string();
        match self.base {
            Content::Absent if self.added.is_empty() => "absent".to_owned(),
            Content::Single(value) if self.added.is_empty() => one(value),
            base => {
                let elements: Vec<String> = base.elements().iter().chain(self.added).map(one).collect();
                format!("[{}]", elements.join(" "))
            }
        }
    }
}
