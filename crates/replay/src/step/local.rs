//! One key of one transaction: what it saw of the outside, and what it wrote on top.
//!
//! Both together decide what its next operation on the key must return. The first read of the outside is compared with the
//! snapshot (EXT); every later one with the first, or with what the transaction wrote (INT). After a wrong read the view is
//! what it was before.

use super::super::Axiom;
use super::representation::Representation;
use isolation::Ryow;

/// How values are kept, and what a read must see of its own transaction's writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules<R> {
    pub(crate) values: R,
    pub(crate) ryow: Ryow,
}

/// What a transaction wrote to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrote<V> {
    /// Nothing.
    Nothing,
    /// This value (absent: a delete), then the appended elements.
    Value(V),
    /// Only the appended elements, on top of the outside value.
    Appended,
}

/// What a transaction saw of a key and did to it so far.
#[derive(Clone, Debug)]
pub(crate) struct Local<V, L> {
    first_look: Option<L>,
    wrote: Wrote<V>,
    appended: Vec<V>,
}

/// A read, as far as it can be judged without the snapshot.
pub(crate) enum Read<C> {
    /// It is right, or says nothing.
    Right,
    /// It is the first look at the outside: the snapshot must hold exactly what it showed.
    First,
    /// It contradicts what the transaction saw or wrote before: this.
    Wrong(C),
    /// It shows what the transaction appended to: [`Local::read_over`] judges it.
    Open,
}

/// A result that is not what it had to be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Misfit<C> {
    pub(crate) axiom: Axiom,
    pub(crate) expected: C,
    /// Whether the writer of the version in the snapshot is to be named.
    pub(crate) names_writer: bool,
}

impl<C> Misfit<C> {
    pub(crate) fn internal(expected: C) -> Self {
        Self { axiom: Axiom::Internal, expected, names_writer: false }
    }

    pub(crate) fn external(expected: C) -> Self {
        Self { axiom: Axiom::External, expected, names_writer: true }
    }
}

/// What a conditional write had to do with a key.
pub(crate) struct Matched<C> {
    /// Whether the test holds of the key.
    pub(crate) is_match: bool,
    /// The value in question, if the database reported the opposite.
    pub(crate) misreported: Option<C>,
}

impl<V, L> Default for Local<V, L> {
    fn default() -> Self {
        Self { first_look: None, wrote: Wrote::Nothing, appended: Vec::new() }
    }
}

impl<V: Clone, L: Clone> Local<V, L> {
    /// Forgets everything, to be used for another key.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.first_look = None;
        self.wrote = Wrote::Nothing;
        self.appended.clear();
    }

    /// What it wrote: a value, then elements that it appended.
    #[inline]
    pub(crate) fn wrote(&self) -> (&Wrote<V>, &[V]) {
        (&self.wrote, &self.appended)
    }

    #[inline]
    pub(crate) fn write(&mut self, value: V) {
        self.wrote = Wrote::Value(value);
        self.appended.clear();
    }

    pub(crate) fn append(&mut self, value: V) {
        if matches!(self.wrote, Wrote::Nothing) {
            self.wrote = Wrote::Appended;
        }
        self.appended.push(value);
    }

    /// What the key holds for the transaction, given what it holds outside.
    pub(crate) fn over<'a, R>(&'a self, outside: R::Held<'a>, values: R) -> R::Held<'a>
    where
        R: Representation<Value = V, Look = L> + 'a,
    {
        match &self.wrote {
            Wrote::Nothing => outside,
            Wrote::Value(value) if self.appended.is_empty() => values.held(value),
            Wrote::Value(value) => values.append(values.held(value), &self.appended),
            Wrote::Appended => values.append(outside, &self.appended),
        }
    }

    /// A read of the key. What is not known is right.
    #[inline]
    pub(crate) fn read<R: Representation<Value = V, Look = L>>(
        &mut self,
        seen: &V,
        rules: Rules<R>,
    ) -> Read<R::Content> {
        if !rules.values.is_known(seen) {
            return Read::Right;
        }
        if matches!(self.wrote, Wrote::Nothing) && self.first_look.is_none() {
            // The usual case: the first operation on the key.
            self.first_look = Some(rules.values.look(seen));
            return Read::First;
        }
        self.read_again(seen, rules)
    }

    #[cold]
    fn read_again<R: Representation<Value = V, Look = L>>(
        &mut self,
        seen: &V,
        rules: Rules<R>,
    ) -> Read<R::Content> {
        let values = rules.values;
        match (&self.wrote, rules.ryow) {
            (Wrote::Nothing, _) | (_, Ryow::Never) => {}
            (Wrote::Appended, _) => return Read::Open,
            (Wrote::Value(_), ryow) => {
                let own = self.over(values.absent(), values);
                if values.same(&own, &values.held(seen)) {
                    return Read::Right;
                }
                if ryow == Ryow::Must {
                    return Read::Wrong(values.content(own));
                }
            }
        }
        match &self.first_look {
            None => {
                self.first_look = Some(values.look(seen));
                Read::First
            }
            Some(first) if values.same(&values.shown(first), &values.held(seen)) => Read::Right,
            Some(first) => Read::Wrong(values.content(values.shown(first))),
        }
    }

    /// A read that was left [`Read::Open`], given what the snapshot holds.
    #[cold]
    pub(crate) fn read_over<R: Representation<Value = V, Look = L>>(
        &mut self,
        seen: &V,
        outside: R::Held<'_>,
        rules: Rules<R>,
    ) -> Option<Misfit<R::Content>> {
        let first_look = self.first_look.clone();
        let misfit = self.read_appended(seen, outside.clone(), rules.values)?;
        if rules.ryow != Ryow::May {
            return Some(misfit);
        }
        // With what it appended it does not fit; without, it may.
        self.first_look = first_look;
        let whole = rules.values.look(seen);
        let misfit = self.misfit(&whole, &[], outside, rules.values);
        self.first_look.get_or_insert(whole);
        misfit
    }

    /// A read that has to show what the transaction appended.
    fn read_appended<R: Representation<Value = V, Look = L>>(
        &mut self,
        seen: &V,
        outside: R::Held<'_>,
        values: R,
    ) -> Option<Misfit<R::Content>> {
        match values.look_before(seen, &self.appended) {
            Some(before) => {
                let misfit = self.misfit(&before, &self.appended, outside, values);
                self.first_look.get_or_insert(before);
                misfit
            }
            None => {
                let expected = self.expect_appended(outside, values);
                Some(Misfit { names_writer: self.first_look.is_none(), ..Misfit::internal(expected) })
            }
        }
    }

    fn expect_appended<R: Representation<Value = V, Look = L>>(
        &self,
        outside: R::Held<'_>,
        values: R,
    ) -> R::Content {
        let below = match &self.first_look {
            Some(first) => values.shown(first),
            None => values.shorten(outside),
        };
        values.content(values.append(below, &self.appended))
    }

    /// What is wrong with what a read shows of the outside, below elements that the transaction appended: against the first
    /// look, or, if this is the first, against the snapshot.
    fn misfit<R: Representation<Value = V, Look = L>>(
        &self,
        look: &L,
        appended: &[V],
        outside: R::Held<'_>,
        values: R,
    ) -> Option<Misfit<R::Content>> {
        let expected = match &self.first_look {
            Some(first) => values.shown(first),
            None => values.shorten(outside),
        };
        let shown = values.shown(look);
        let content = match appended {
            [] if values.same(&expected, &shown) => return None,
            [] => values.content(expected),
            _ if values.same_below(&expected, &shown) => return None,
            _ => values.content(values.append(expected, appended)),
        };
        Some(match self.first_look {
            Some(_) => Misfit::internal(content),
            None => Misfit::external(content),
        })
    }

    /// What is wrong with what the key contributed to a scan, an iterator or a query.
    pub(crate) fn row<R: Representation<Value = V, Look = L>>(
        &self,
        seen: &V,
        test: Option<&R::Test>,
        outside: R::Held<'_>,
        rules: Rules<R>,
    ) -> Option<Misfit<R::Content>> {
        let values = rules.values;
        // A row whose value is not known says that there is one.
        let fits = |held: &R::Held<'_>| match values.is_known(seen) {
            true => values.same(held, &values.held(seen)),
            false => values.is_present(held),
        };
        let is_own = !matches!(self.wrote, Wrote::Nothing) && rules.ryow != Ryow::Never;
        let inside = is_own.then(|| self.over(values.shorten(outside.clone()), values));
        let inside = inside.map(|inside| contributed(inside, test, values));
        let outside = contributed(values.shorten(outside), test, values);
        let (is_fitting, expected) = match inside {
            Some(inside) => (fits(&inside) || rules.ryow == Ryow::May && fits(&outside), inside),
            None => (fits(&outside), outside),
        };
        if is_fitting {
            return None;
        }
        let expected = values.content(expected);
        Some(match is_own && matches!(self.wrote, Wrote::Value(_)) {
            true => Misfit::internal(expected),
            false => Misfit::external(expected),
        })
    }

    /// Whether the test of a conditional write holds of the key, and whether that is what the database reported, if it did.
    pub(crate) fn find<R: Representation<Value = V, Look = L>>(
        &self,
        test: &R::Test,
        reported: Option<bool>,
        outside: R::Held<'_>,
        values: R,
    ) -> Matched<R::Content> {
        let held = self.over(values.shorten(outside), values);
        let is_match = values.satisfies(&held, test);
        let is_misreported = reported.is_some_and(|reported| reported != is_match);
        Matched { is_match, misreported: is_misreported.then(|| values.content(held)) }
    }
}

/// What a key that holds this contributes to an operation with a test.
fn contributed<'a, R: Representation + 'a>(
    held: R::Held<'a>,
    test: Option<&R::Test>,
    values: R,
) -> R::Held<'a> {
    match test {
        Some(test) if !values.satisfies(&held, test) => values.absent(),
        _ => held,
    }
}
