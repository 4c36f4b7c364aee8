//! The edges of an argument, held against the history.
//!
//! The claim of a violation rests on its core alone; edges are there to be read. They are only compared with what can
//! be seen at once: the transactions exist, sessions and clocks say what an edge says they say, whoever is said to
//! have written or read a key can have, and whoever is said to have seen a write returned its value.

use super::refusal::Refusal;
use super::{Names, Step};
use history::{History, KeyId, Primitive, Test, Transaction, TxnId, ValueId, ValueRef, WriteIf};
use isolation::EdgeKind;

/// What is wrong with a step.
pub(super) enum Wrong {
    Mention(Refusal),
    Said(&'static str),
}

impl Wrong {
    /// The refusal of the certificate that has the step at a place.
    pub(super) fn at(self, place: usize) -> Refusal {
        match self {
            Self::Mention(refusal) => refusal,
            Self::Said(why) => Refusal::Edge { place, why },
        }
    }
}

impl From<Refusal> for Wrong {
    fn from(refusal: Refusal) -> Self {
        Self::Mention(refusal)
    }
}

/// Whether a step can be so.
pub(super) fn examine(names: &Names<'_>, step: &Step<'_>, clock_skew: i64) -> Result<(), Wrong> {
    let history = names.history;
    let from = step.from.as_ref().map(|from| names.resolve(from)).transpose()?;
    let to = names.resolve(&step.to)?;
    let kind =
        ALL.into_iter().find(|kind| kind.name() == step.edge).ok_or(Wrong::Said("no such kind of edge"))?;
    let key = match &step.key {
        None => None,
        Some(name) => Some(key_named(history, name).ok_or(Wrong::Said("the history has no such key"))?),
    };
    let from_writes = || from.is_none_or(|from| writes(history, from, key));
    let from_reads = || from.is_some_and(|from| reads(history, from, key));
    let holds = match kind {
        EdgeKind::Ww => from_writes() && writes(history, to, key),
        EdgeKind::Wr => from_writes() && from.is_none_or(|from| saw(history, from, to, key)),
        EdgeKind::Rw => from_reads() && writes(history, to, key),
        EdgeKind::So => from.is_some_and(|from| in_session_order(history, from, to)),
        EdgeKind::Rt => from.is_some_and(|from| in_real_time_order(history, from, to, clock_skew)),
        // What modules add is known to them alone.
        EdgeKind::Added => false,
        EdgeKind::Ts => from.is_some_and(|from| has_timestamps(history, from) && has_timestamps(history, to)),
    };
    if holds { Ok(()) } else { Err(Wrong::Said("the history says otherwise")) }
}

const ALL: [EdgeKind; 6] =
    [EdgeKind::Ww, EdgeKind::Wr, EdgeKind::Rw, EdgeKind::So, EdgeKind::Rt, EdgeKind::Ts];

fn key_named(history: &History, name: &str) -> Option<KeyId> {
    history.keys().ids().find(|&key| history.keys().get(key).to_string() == *name)
}

/// Whether a transaction can have written a key (any key, where none is named).
fn writes(history: &History, txn: TxnId, key: Option<KeyId>) -> bool {
    history.transaction(txn).primitives().any(|(_, it)| match key {
        Some(key) => it.may_have_written(key),
        None => !it.is_read(),
    })
}

/// Whether a transaction can have seen what a key holds. Appends and conditional writes build on what is there.
fn reads(history: &History, txn: TxnId, key: Option<KeyId>) -> bool {
    let is_here = |it: &Primitive<'_>| key.is_none() || it.key().is_none() || it.key() == key;
    history
        .transaction(txn)
        .primitives()
        .any(|(_, it)| !matches!(it, Primitive::Write { .. }) && is_here(&it))
}

/// Whether a transaction can have seen another one's write: a point read returned the value, or a list with the element.
/// What operations on many keys saw is not taken apart here, and appends say nothing of what was there.
fn saw(history: &History, writer: TxnId, reader: TxnId, key: Option<KeyId>) -> bool {
    let wrote = |at: KeyId, seen: ValueId| {
        history.transaction(writer).primitives().any(|(_, operation)| match operation {
            Primitive::Append { key, value } => key == at && history.values_of(seen).contains(&value),
            Primitive::WriteIf(WriteIf { key: None, .. }) => true,
            it => {
                let is_same = |value: ValueId| value == seen || is_nothing(history, value, seen);
                it.may_have_written(at) && it.written_value().is_some_and(is_same)
            }
        })
    };
    history.transaction(reader).primitives().any(|(_, operation)| {
        let is_here = key.is_none() || operation.key().is_none() || operation.key() == key;
        is_here
            && match operation {
                Primitive::Read { key: at, value } => !value.is_known() || wrote(at, value),
                Primitive::WriteIf(WriteIf {
                    key: Some(at), test: Test::Is(value), keys: Some([_]), ..
                }) => wrote(at, value),
                Primitive::Write { .. } => false,
                Primitive::Append { .. } | Primitive::Show { .. } | Primitive::WriteIf(_) => true,
            }
    })
}

/// Whether both mean that there is nothing: an absent key is an empty list.
fn is_nothing(history: &History, one: ValueId, other: ValueId) -> bool {
    let empty = |value: ValueId| {
        value == ValueId::ABSENT
            || value.is_known() && matches!(history.values().get(value), ValueRef::List([]))
    };
    empty(one) && empty(other)
}

fn in_session_order(history: &History, from: TxnId, to: TxnId) -> bool {
    let (from, to) = (history.transaction(from), history.transaction(to));
    from.session() == to.session() && from.position() < to.position()
}

fn in_real_time_order(history: &History, from: TxnId, to: TxnId, clock_skew: i64) -> bool {
    let client = |txn: TxnId| Transaction::client(&history.transaction(txn));
    match (client(from), client(to)) {
        (Some(from), Some(to)) => i128::from(from.end) + i128::from(clock_skew) < i128::from(to.begin),
        _ => false,
    }
}

fn has_timestamps(history: &History, txn: TxnId) -> bool {
    history.transaction(txn).db().is_some()
}
