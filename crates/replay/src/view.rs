//! The value of a key as a transaction sees it, without making new values.
//!
//! A history's values are interned and never change, but a list that grew by appends during the replay
//! may be a value that nobody read: it has no id. A [`View`] is either an id or the pieces of a list.
//!
//! What operations mean is said once, at [`oracle`](mod@oracle): an absent key and an empty list are the same,
//! and appending to a scalar makes a list of both.

use history::{Test, ValueId, ValueRef, Values};

/// The value of a key, borrowed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View<'a> {
    /// A value that has an id, or [`ValueId::ABSENT`].
    Value(ValueId),
    /// A list in pieces.
    List(Pieces<'a>),
}

/// The elements of a list: what it grew from if that was a scalar, what was there, what was added.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pieces<'a> {
    pub(crate) first: Option<ValueId>,
    pub(crate) body: &'a [ValueId],
    pub(crate) tail: &'a [ValueId],
}

impl<'a> Pieces<'a> {
    pub(crate) fn len(self) -> usize {
        usize::from(self.first.is_some()) + self.body.len() + self.tail.len()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = ValueId> + use<'a> {
        self.first.into_iter().chain(self.body.iter().copied()).chain(self.tail.iter().copied())
    }
}

impl<'a> View<'a> {
    /// Whether a reader cannot tell the two apart.
    #[inline]
    pub(crate) fn same(self, other: View<'_>, values: &Values) -> bool {
        match (self, other) {
            (View::Value(a), View::Value(b)) if a == b => true,
            // Interned values with different ids differ, except that the empty list is absent.
            (View::Value(a), View::Value(b)) if a != ValueId::ABSENT && b != ValueId::ABSENT => false,
            _ => self.same_list(other, values),
        }
    }

    #[cold]
    fn same_list(self, other: View<'_>, values: &Values) -> bool {
        let (Some(a), Some(b)) = (self.list(values), other.list(values)) else { return false };
        a.len() == b.len() && a.iter().eq(b.iter())
    }

    /// The elements, if it is a list or absent.
    pub(crate) fn list(self, values: &'a Values) -> Option<Pieces<'a>> {
        match self {
            View::List(pieces) => Some(pieces),
            View::Value(ValueId::ABSENT) => Some(Pieces::default()),
            View::Value(id) if !id.is_known() => None,
            View::Value(id) => match values.get(id) {
                ValueRef::List(body) => Some(Pieces { body, ..Pieces::default() }),
                _ => None,
            },
        }
    }

    /// What an append builds on.
    pub(crate) fn elements(self, values: &'a Values) -> Pieces<'a> {
        match (self.list(values), self) {
            (Some(pieces), _) | (None, View::List(pieces)) => pieces,
            (None, View::Value(id)) => Pieces { first: Some(id), ..Pieces::default() },
        }
    }

    /// The value after appending; a value of the state or of the history, which has no tail yet.
    pub(crate) fn with(self, tail: &'a [ValueId], values: &'a Values) -> View<'a> {
        let pieces = self.elements(values);
        debug_assert!(pieces.tail.is_empty(), "only a value that is not yet appended to is appended to");
        View::List(Pieces { tail, ..pieces })
    }

    /// Whether the key is there at all.
    pub(crate) fn is_present(self, values: &Values) -> bool {
        self.list(values).is_none_or(|list| list.len() > 0)
    }

    /// Whether a test holds of a key with this value.
    pub(crate) fn satisfies(self, test: Test<'_>, values: &Values) -> bool {
        match self {
            _ if !self.is_present(values) => test.holds(values, ValueId::ABSENT),
            View::Value(id) => test.holds(values, id),
            View::List(_) => test.holds_of_list(values, |constant| self.same(View::Value(constant), values)),
        }
    }
}
