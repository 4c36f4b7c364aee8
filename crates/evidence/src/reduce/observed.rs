//! Which writes somebody can have seen.
//!
//! *What*: everything that the results in a history show, by key. A write that is not among it was found by no read in any
//! order that explains the history.
//!
//! *Rules*: a read shows its value, and every element of a list; an absent key is a value, too. A scan or iterator shows
//! its rows, and that any other key of its range may be absent. A query shows its rows, and of any other key that its value does not
//! match: that can be any value. So does a predicate write, of every key.

use history::Name;
use oracle::tiny::{Datum, Sketch, SketchOp};
use std::collections::HashSet;

/// What results show.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Keys with values or elements, as text: numbers that are no integers have no order and no hash.
    shown: HashSet<String>,
    /// Keys that a query shows, and whether there is one: every write to other keys may have been seen.
    queried: Option<HashSet<Name>>,
    /// Ranges in which some scan or iterator may have seen that a key is absent.
    absences: Vec<Bounds>,
    /// Whether a predicate write may have seen anything.
    everything: bool,
}

/// From a key to before another.
type Bounds = (Option<Name>, Option<Name>);

fn is_inside((from, to): &Bounds, key: &Name) -> bool {
    from.as_ref().is_none_or(|from| from <= key) && to.as_ref().is_none_or(|to| key < to)
}

/// Whether an operation changes something.
pub(super) fn is_write(operation: &SketchOp) -> bool {
    use SketchOp::{Append, Cas, Delete, DeleteWhere, Update, Write};
    matches!(
        operation,
        Write { .. }
            | Delete { .. }
            | Append { .. }
            | Update { .. }
            | DeleteWhere { .. }
            | Cas { ok: None | Some(true), .. }
    )
}

impl Observed {
    pub(super) fn of(sketch: &Sketch) -> Self {
        let mut observed = Self::default();
        sketch.transactions.iter().flat_map(|txn| &txn.ops).for_each(|operation| observed.note(operation));
        observed
    }

    /// The keys that operations on one key name.
    pub(super) fn keys(sketch: &Sketch) -> HashSet<&Name> {
        sketch.transactions.iter().flat_map(|txn| &txn.ops).filter_map(key).collect()
    }

    /// Notes what an operation shows.
    pub(super) fn note(&mut self, operation: &SketchOp) {
        match operation {
            SketchOp::Read { key, value, .. } => self.show(key, value),
            SketchOp::Scan { from, to, rows: Some(rows) }
            | SketchOp::Iterate { from, to, rows: Some(rows), .. } => {
                self.absences.push((from.clone(), to.clone()));
                rows.iter().for_each(|(key, value)| self.show(key, value));
            }
            SketchOp::Query { rows: Some(rows), .. } => {
                rows.iter().for_each(|(key, value)| self.show(key, value));
                let keys: HashSet<Name> = rows.iter().map(|(key, _)| key.clone()).collect();
                // With two queries only what both list is known.
                self.queried = Some(match self.queried.take() {
                    None => keys,
                    Some(before) => &before & &keys,
                });
            }
            SketchOp::Update { .. } | SketchOp::DeleteWhere { .. } | SketchOp::Cas { .. } => {
                self.everything = true
            }
            _ => {}
        }
    }

    fn show(&mut self, key: &Name, value: &Datum) {
        self.shown.insert(entry(key, value));
        if let Datum::List(elements) = value {
            if elements.is_empty() {
                self.shown.insert(entry(key, &Datum::Absent));
            }
            elements.iter().for_each(|element| self.show(key, element));
        }
    }

    /// Whether an operation on many keys may say something about a key.
    pub(super) fn may_show(&self, key: &Name) -> bool {
        self.everything || self.queried.is_some() || self.absences.iter().any(|bounds| is_inside(bounds, key))
    }

    /// Whether nobody can have seen a write.
    pub(super) fn misses(&self, operation: &SketchOp) -> bool {
        if self.everything {
            return false;
        }
        let (key, value) = match operation {
            SketchOp::Write { key, value } | SketchOp::Append { key, value } => (key, value),
            SketchOp::Delete { key } => (key, &Datum::Absent),
            _ => return false,
        };
        let absent = *value == Datum::Absent || *value == Datum::List(Vec::new());
        let elements = match value {
            Datum::List(elements) => &elements[..],
            _ => &[],
        };
        !self.shown.contains(&entry(key, value))
            && !elements.iter().any(|element| self.shown.contains(&entry(key, element)))
            && !(absent
                && (self.absences.iter().any(|bounds| is_inside(bounds, key))
                    || self.shown.contains(&entry(key, &Datum::Absent))))
            && self.queried.as_ref().is_none_or(|keys| keys.contains(key))
    }
}

/// The key of an operation on one key.
fn key(operation: &SketchOp) -> Option<&Name> {
    match operation {
        SketchOp::Read { key, .. }
        | SketchOp::Write { key, .. }
        | SketchOp::Delete { key }
        | SketchOp::Append { key, .. }
        | SketchOp::Cas { key, .. } => Some(key),
        _ => None,
    }
}

fn entry(key: &Name, value: &Datum) -> String {
    format!("{key:?} {value:?}")
}
