//! How values are kept: as ids of one history, or each on its own.

use super::super::datum::{Datum, Question};
use super::super::view::{Pieces, View};
use super::super::{Content, replay::content};
use history::{Test, ValueId, Values};

/// How values are kept, and what has to be known of them to judge results.
pub(crate) trait Representation: Copy {
    /// What an operation says: a result, or something to write.
    type Value: Clone;
    /// What a read shows of the value outside the transaction.
    type Look: Clone;
    /// What a key holds.
    type Held<'a>: Clone
    where
        Self: 'a;
    /// A question about values.
    type Test;
    /// A value as evidence.
    type Content;

    /// Whether a result was recorded.
    fn is_known(self, value: &Self::Value) -> bool;
    /// A value of an operation as what a key holds.
    fn held<'a>(self, value: &'a Self::Value) -> Self::Held<'a>
    where
        Self: 'a;
    /// A key that is not there.
    fn absent<'a>(self) -> Self::Held<'a>
    where
        Self: 'a;
    /// A look that shows the whole value.
    fn look(self, value: &Self::Value) -> Self::Look;
    /// A look that shows a list without its last elements; `None` if it does not end with them.
    fn look_before(self, value: &Self::Value, last: &[Self::Value]) -> Option<Self::Look>;
    /// What a look showed.
    fn shown<'a>(self, look: &'a Self::Look) -> Self::Held<'a>
    where
        Self: 'a;
    /// The value after appending.
    fn append<'a>(self, held: Self::Held<'a>, more: &'a [Self::Value]) -> Self::Held<'a>
    where
        Self: 'a;
    /// The same for a shorter time.
    fn shorten<'s, 'l: 's>(self, held: Self::Held<'l>) -> Self::Held<'s>
    where
        Self: 'l;
    /// Whether a reader cannot tell the two apart.
    fn same(self, one: &Self::Held<'_>, other: &Self::Held<'_>) -> bool;
    /// Whether the two are the same below an append: there a scalar looks like a list of itself.
    fn same_below(self, one: &Self::Held<'_>, other: &Self::Held<'_>) -> bool;
    /// Whether the key is there at all.
    fn is_present(self, held: &Self::Held<'_>) -> bool;
    /// Whether a test holds of a key that holds this.
    fn satisfies(self, held: &Self::Held<'_>, test: &Self::Test) -> bool;
    /// The value as evidence.
    fn content(self, held: Self::Held<'_>) -> Self::Content;
}

/// Values are ids of one history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interned<'h> {
    pub(crate) values: &'h Values,
}

/// What a read of interned values showed: a value, or the first `len` elements of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) value: ValueId,
    /// `None`: the whole value.
    pub(crate) len: Option<u32>,
}

impl<'h> Representation for Interned<'h> {
    type Value = ValueId;
    type Look = Look;
    type Held<'a>
        = View<'a>
    where
        Self: 'a;
    type Test = Test<'h>;
    type Content = Content;

    #[inline]
    fn is_known(self, value: &ValueId) -> bool {
        value.is_known()
    }

    #[inline]
    fn held<'a>(self, value: &'a ValueId) -> View<'a>
    where
        Self: 'a,
    {
        View::Value(*value)
    }

    #[inline]
    fn absent<'a>(self) -> View<'a>
    where
        Self: 'a,
    {
        View::Value(ValueId::ABSENT)
    }

    #[inline]
    fn look(self, value: &ValueId) -> Look {
        Look { value: *value, len: None }
    }

    fn look_before(self, value: &ValueId, last: &[ValueId]) -> Option<Look> {
        let before = View::Value(*value).list(self.values)?.body.strip_suffix(last)?;
        Some(Look { value: *value, len: Some(before.len() as u32) })
    }

    #[inline]
    fn shown<'a>(self, look: &'a Look) -> View<'a>
    where
        Self: 'a,
    {
        match look.len {
            None => View::Value(look.value),
            Some(len) => {
                let body = &self.values.elements(look.value)[..len as usize];
                View::List(Pieces { body, ..Pieces::default() })
            }
        }
    }

    fn append<'a>(self, held: View<'a>, more: &'a [ValueId]) -> View<'a>
    where
        Self: 'a,
    {
        held.with(more, self.values)
    }

    #[inline]
    fn shorten<'s, 'l: 's>(self, held: View<'l>) -> View<'s>
    where
        Self: 'l,
    {
        held
    }

    #[inline]
    fn same(self, one: &View<'_>, other: &View<'_>) -> bool {
        one.same(*other, self.values)
    }

    fn same_below(self, one: &View<'_>, other: &View<'_>) -> bool {
        let (one, other) = (one.elements(self.values), other.elements(self.values));
        View::List(one).same(View::List(other), self.values)
    }

    fn is_present(self, held: &View<'_>) -> bool {
        View::is_present(*held, self.values)
    }

    fn satisfies(self, held: &View<'_>, test: &Test<'h>) -> bool {
        View::satisfies(*held, *test, self.values)
    }

    fn content(self, held: View<'_>) -> Content {
        content(held)
    }
}

/// Values outlive the history they came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standalone;

impl Representation for Standalone {
    type Value = Datum;
    type Look = Datum;
    type Held<'a> = Datum;
    type Test = Question;
    type Content = Datum;

    fn is_known(self, value: &Datum) -> bool {
        value.is_known()
    }

    fn held<'a>(self, value: &'a Datum) -> Datum
    where
        Self: 'a,
    {
        value.clone()
    }

    fn absent<'a>(self) -> Datum
    where
        Self: 'a,
    {
        Datum::Absent
    }

    fn look(self, value: &Datum) -> Datum {
        value.clone()
    }

    fn look_before(self, value: &Datum, last: &[Datum]) -> Option<Datum> {
        value.strip_suffix(last)
    }

    fn shown<'a>(self, look: &'a Datum) -> Datum
    where
        Self: 'a,
    {
        look.clone()
    }

    fn append<'a>(self, held: Datum, more: &'a [Datum]) -> Datum
    where
        Self: 'a,
    {
        held.append(more.into())
    }

    fn shorten<'s, 'l: 's>(self, held: Datum) -> Datum
    where
        Self: 'l,
    {
        held
    }

    fn same(self, one: &Datum, other: &Datum) -> bool {
        one == other
    }

    fn same_below(self, one: &Datum, other: &Datum) -> bool {
        one.same_as_list(other)
    }

    fn is_present(self, held: &Datum) -> bool {
        held.is_present()
    }

    fn satisfies(self, held: &Datum, test: &Question) -> bool {
        test.holds(held)
    }

    fn content(self, held: Datum) -> Datum {
        held
    }
}
