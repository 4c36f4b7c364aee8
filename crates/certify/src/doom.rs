//! Transactions that contradict themselves.
//!
//! *What*: at serializability and snapshot isolation a transaction sees one state, changed by its own writes only. For
//! each key, the results say which contents it can have started from; if none is left, the transaction took effect in
//! no explanation whatsoever: a read that contradicts an own write, a key read twice with different values, a scan
//! that shows rows outside its range.
//!
//! *Invariant*: only what no starting content explains counts. After a predicate write that does not say what it
//! matched, nothing is concluded of a key until the transaction overwrites it.
//!
//! *Cost*: its operations.

use super::content::{Content, Seen};
use super::ranges::Passed;
use history::{Area, History, KeyId, Primitive, Transaction, ValueId, Values, WriteIf};
use isolation::Ryow;
use rustc_hash::FxHashMap;

/// Whether no state that the transaction can have started from gives its results.
pub(super) fn contradicts_itself(
    history: &History,
    transaction: Transaction<'_>,
    ryow: Ryow,
    passed: &Passed<'_>,
) -> bool {
    let mut keys = Keys::default();
    for (_, operation) in transaction.primitives() {
        if passed.is_malformed(operation) {
            return true;
        }
        let mut contradiction = false;
        passed.results(operation, |key, value| {
            let seen = Seen::of(history.values(), value);
            contradiction |= !keys.of(key).sees(seen, ryow);
        });
        if contradiction {
            return true;
        }
        let mut set = |key: KeyId, value: ValueId| {
            keys.of(key).own = Own::Exactly(Content::of(history.values(), value));
        };
        match operation {
            Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
                let satisfies = |value: ValueId| is_row_of(history.values(), value, predicate);
                if rows.iter().any(|row| !satisfies(row.value)) {
                    return true;
                }
            }
            Primitive::Write { key, value } => set(key, value),
            Primitive::Append { key, value } => keys.of(key).own.append(value),
            Primitive::WriteIf(WriteIf { set: value, keys: Some(changed), .. }) => {
                changed.iter().for_each(|&key| set(key, value));
            }
            Primitive::WriteIf(WriteIf { count: Some(0), .. }) => {}
            Primitive::WriteIf(WriteIf { key: Some(key), .. }) => keys.of(key).own = Own::Unsure,
            Primitive::WriteIf(_) => keys.blur(),
            _ => {}
        }
    }
    false
}

/// Whether a row can be one of a query: it satisfies it, or says nothing of what is there.
fn is_row_of(values: &Values, value: ValueId, predicate: &history::Predicate) -> bool {
    if !value.is_known() {
        return true;
    }
    match Content::of(values, value) {
        Content::Absent => true,
        content => content.view().satisfies(values, predicate),
    }
}

/// What a transaction's results say of every key.
#[derive(Default)]
struct Keys {
    of: FxHashMap<KeyId, Key>,
    /// Whether a predicate write may have changed keys that are not in the map.
    blurred: bool,
}

impl Keys {
    fn of(&mut self, key: KeyId) -> &mut Key {
        let own = if self.blurred { Own::Unsure } else { Own::Nothing };
        self.of.entry(key).or_insert(Key { own, start: None })
    }

    /// Any key may have been overwritten.
    fn blur(&mut self) {
        self.blurred = true;
        self.of.values_mut().for_each(|key| key.own = Own::Unsure);
    }
}

/// What a transaction's results say of one key.
struct Key {
    own: Own,
    /// What it can have started from; `None` while that may be anything.
    start: Option<Vec<Content>>,
}

/// What a transaction itself did to a key.
enum Own {
    Nothing,
    /// Nobody knows.
    Unsure,
    /// Left exactly this.
    Exactly(Content),
    /// Added elements to what was there.
    Added(Vec<ValueId>),
}

impl Own {
    fn append(&mut self, element: ValueId) {
        match self {
            Self::Nothing => *self = Self::Added(vec![element]),
            Self::Unsure => {}
            Self::Exactly(content) => content.extend(&[element]),
            Self::Added(added) => added.push(element),
        }
    }

    /// What must have been there for this to be seen with the own writes; `None` if it does not matter.
    fn start_of(&self, seen: Seen<'_>) -> Option<Vec<Content>> {
        match self {
            Self::Nothing => Some(vec![content(seen)]),
            Self::Unsure => None,
            Self::Exactly(own) => (!own.view().equals(seen)).then(Vec::new),
            Self::Added(added) => {
                let Seen::List(elements) = seen else { return Some(Vec::new()) };
                Some(match elements.strip_suffix(added.as_slice()) {
                    None => Vec::new(),
                    Some([]) => vec![Content::Absent],
                    Some([one]) => vec![Content::Single(*one), Content::List(vec![*one])],
                    Some(more) => vec![Content::List(more.to_vec())],
                })
            }
        }
    }
}

fn content(seen: Seen<'_>) -> Content {
    match seen {
        Seen::Absent => Content::Absent,
        Seen::Single(value) => Content::Single(value),
        Seen::List(elements) => Content::List(elements.to_vec()),
    }
}

impl Key {
    /// A read of the key; false if no start is left.
    fn sees(&mut self, seen: Seen<'_>, ryow: Ryow) -> bool {
        let without = || Some(vec![content(seen)]);
        let with = || self.own.start_of(seen);
        let starts = match ryow {
            Ryow::Must => with(),
            Ryow::Never => without(),
            Ryow::May => with().map(|with| [with, vec![content(seen)]].concat()),
        };
        match (&mut self.start, starts) {
            (_, None) => {}
            (None, Some(starts)) => self.start = Some(starts),
            (Some(before), Some(starts)) => before.retain(|content| starts.contains(content)),
        }
        self.start.as_ref().is_none_or(|left| !left.is_empty())
    }
}
