//! What could have been read instead: results that would have made a violated history possible.
//!
//! *What*: takes a tiny history without an explanation, changes the result of one read at a time, and keeps the changes
//! after which it has one. That is what the database could have answered.
//!
//! *Steps*: for a read of one key every value that somebody writes there, the initial one, and that the key is absent; for
//! a list every arrangement of a few elements, or the beginnings of the lists that were read; for an operation on many
//! keys every row changed, left out or added by itself, and for a predicate write that told whom it changed every key.
//! Each is judged like the history itself.
//!
//! *Invariant*: what is returned was judged and found possible; nothing is guessed. It speaks of the history it was asked
//! of: with more transactions around it, fewer results may be left.
//!
//! *Cost*: at most [`JUDGED_MAX`] checks of a tiny history.

use history::{History, Name, OpId};
use isolation::{Options, Verdict};
use oracle::tiny::{Datum, Rows, Sketch, SketchOp};
use std::collections::BTreeMap;

/// How many results are tried in all.
const JUDGED_MAX: usize = 400;
/// Up to so many elements of a list are arranged in every way.
const ARRANGED_MAX: usize = 4;

/// A result that would have been possible.
#[derive(Clone, Debug)]
pub struct Instead {
    /// The operation whose result is another.
    pub op: OpId,
    /// The history with that result: the same operations in the same places.
    pub changed: History,
}

/// Every result of one read that would have made a violated history possible. `judge` says what a changed one comes to.
pub fn instead(history: &History, options: &Options, judge: impl Fn(&History) -> Verdict) -> Vec<Instead> {
    let sketch = Sketch::of(history);
    let written = Written::of(&sketch);
    let mut found = Vec::new();
    let mut judged = 0;
    for (txn, transaction) in history.transactions().enumerate() {
        for (place, (op, _)) in transaction.ops().enumerate() {
            let seen = &sketch.transactions[txn].ops[place];
            for other in written.results_of(seen) {
                if other == *seen {
                    continue;
                }
                if judged >= JUDGED_MAX || options.budget.exhausted().is_some() {
                    return found;
                }
                judged += 1;
                let mut changed = sketch.clone();
                changed.transactions[txn].ops[place] = other;
                let changed = changed.build();
                if matches!(judge(&changed), Verdict::Accepted(_)) {
                    found.push(Instead { op, changed });
                }
            }
        }
    }
    found
}

/// What somebody wrote, by key.
#[derive(Default)]
struct Written {
    /// Whole values, and lists that were read.
    values: BTreeMap<Name, Vec<Datum>>,
    /// Elements that were appended.
    elements: BTreeMap<Name, Vec<Datum>>,
    /// What predicate writes set, which may be the value of any key.
    anywhere: Vec<Datum>,
}

impl Written {
    fn of(sketch: &Sketch) -> Self {
        let mut written = Self::default();
        for (key, value) in &sketch.initial {
            written.value(key, value);
        }
        for operation in sketch.transactions.iter().flat_map(|txn| &txn.ops) {
            match operation {
                SketchOp::Write { key, value } => written.value(key, value),
                SketchOp::Append { key, value } => {
                    push(written.elements.entry(key.clone()).or_default(), value)
                }
                SketchOp::Read { key, value: value @ Datum::List(_), .. } => written.value(key, value),
                SketchOp::Read { key, .. } | SketchOp::Delete { key } => written.value(key, &Datum::Absent),
                SketchOp::Update { set, .. } => push(&mut written.anywhere, set),
                SketchOp::Scan { rows: Some(rows), .. }
                | SketchOp::Iterate { rows: Some(rows), .. }
                | SketchOp::Query { rows: Some(rows), .. } => {
                    rows.iter().for_each(|(key, value)| written.value(key, value));
                }
                _ => {}
            }
        }
        written
    }

    fn value(&mut self, key: &Name, value: &Datum) {
        push(self.values.entry(key.clone()).or_default(), value);
    }

    /// Results that a read might have had, whether possible or not.
    fn results_of(&self, operation: &SketchOp) -> Vec<SketchOp> {
        let rows_of = |rows: &Rows, reverse: bool| self.rows_instead(rows, reverse);
        match operation {
            SketchOp::Read { value: Datum::Unknown, .. } => Vec::new(),
            SketchOp::Read { key, lock, .. } => {
                let read = |value| SketchOp::Read { key: key.clone(), value, lock: *lock };
                self.values_at(key).into_iter().map(read).collect()
            }
            SketchOp::Scan { from, to, rows: Some(rows) } => {
                let scan = |rows| SketchOp::Scan { from: from.clone(), to: to.clone(), rows: Some(rows) };
                rows_of(rows, false).into_iter().map(scan).collect()
            }
            SketchOp::Iterate { from, to, reverse, exhausted, rows: Some(rows) } => {
                let iterate = |rows| SketchOp::Iterate {
                    from: from.clone(),
                    to: to.clone(),
                    reverse: *reverse,
                    exhausted: *exhausted,
                    rows: Some(rows),
                };
                rows_of(rows, *reverse).into_iter().map(iterate).collect()
            }
            SketchOp::Query { condition, rows: Some(rows) } => {
                let query = |rows| SketchOp::Query { condition: condition.clone(), rows: Some(rows) };
                rows_of(rows, false).into_iter().map(query).collect()
            }
            SketchOp::Update { condition, set, count, keys: Some(keys) } => {
                let update = |keys: Vec<Name>| SketchOp::Update {
                    condition: condition.clone(),
                    set: set.clone(),
                    count: count.map(|_| keys.len() as u64),
                    keys: Some(keys),
                };
                self.keys_instead(keys).into_iter().map(update).collect()
            }
            SketchOp::DeleteWhere { condition, count, keys: Some(keys) } => {
                let delete = |keys: Vec<Name>| SketchOp::DeleteWhere {
                    condition: condition.clone(),
                    count: count.map(|_| keys.len() as u64),
                    keys: Some(keys),
                };
                self.keys_instead(keys).into_iter().map(delete).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The keys that a predicate write changed, with one left out or added.
    fn keys_instead(&self, keys: &[Name]) -> Vec<Vec<Name>> {
        let toggled = |key: &Name| match keys.contains(key) {
            true => keys.iter().filter(|&other| other != key).cloned().collect(),
            false => {
                let mut more = keys.to_vec();
                more.insert(more.partition_point(|other| other < key), key.clone());
                more
            }
        };
        let named = self.values.keys().chain(keys.iter().filter(|key| !self.values.contains_key(key)));
        named.map(toggled).collect()
    }

    fn values_at(&self, key: &Name) -> Vec<Datum> {
        let mut all = Vec::new();
        if let Some(elements) = self.elements.get(key) {
            if elements.len() <= ARRANGED_MAX {
                arrange(elements, &mut Vec::new(), &mut all);
            }
            for list in self.values.get(key).into_iter().flatten() {
                let Datum::List(list) = list else { continue };
                (0..=list.len()).for_each(|len| push(&mut all, &list_of(&list[..len])));
            }
            return all;
        }
        let whole = self.values.get(key).into_iter().flatten().chain(&self.anywhere);
        whole.chain([&Datum::Absent]).for_each(|value| push(&mut all, value));
        all
    }

    /// The rows with one of them changed, left out or added.
    fn rows_instead(&self, rows: &Rows, reverse: bool) -> Vec<Rows> {
        let mut all = Vec::new();
        for key in self.values.keys().chain(self.elements.keys()) {
            for value in self.values_at(key) {
                let mut other: Rows = rows.iter().filter(|(at, _)| at != key).cloned().collect();
                if value != Datum::Absent {
                    let after = |(at, _): &(Name, Datum)| if reverse { at > key } else { at < key };
                    other.insert(other.partition_point(after), (key.clone(), value));
                }
                if !all.contains(&other) {
                    all.push(other);
                }
            }
        }
        all
    }
}

fn push(all: &mut Vec<Datum>, value: &Datum) {
    if *value != Datum::Unknown && !all.contains(value) {
        all.push(value.clone());
    }
}

/// An empty list is an absent key.
fn list_of(elements: &[Datum]) -> Datum {
    if elements.is_empty() { Datum::Absent } else { Datum::List(elements.to_vec()) }
}

/// Every list of different elements; as deep as [`ARRANGED_MAX`].
fn arrange(elements: &[Datum], so_far: &mut Vec<Datum>, all: &mut Vec<Datum>) {
    push(all, &list_of(so_far));
    for element in elements {
        if !so_far.contains(element) {
            so_far.push(element.clone());
            arrange(elements, so_far, all);
            so_far.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check;
    use history::formats::notation;
    use isolation::Level;
    use oracle::oracle;
    use oracle::tiny::Shape;

    fn said(level: &str, text: &str) -> Vec<String> {
        let history = notation::parse(text).expect("well written");
        let (level, options) = (Level::parse(level).expect("a level"), Options::default());
        let found = instead(&history, &options, |changed| check(changed, level, &options).verdict);
        found.iter().map(|it| notation::to_string(&it.changed).trim_end().replace('\n', " / ")).collect()
    }

    #[test]
    fn what_could_have_been_read() {
        assert_eq!(said("serializable", "s1: w(x,1)!\ns2: r(x,1)"), ["s1: w(x,1)! / s2: r(x,_)"]);
        // Either read may have been the later one.
        assert_eq!(
            said("serializable", "init: x=0\ns1: r(x,0) w(x,1)\ns2: r(x,0) w(x,2)"),
            [
                "init: x=0 / s1: r(x,2) w(x,1) / s2: r(x,0) w(x,2)",
                "init: x=0 / s1: r(x,0) w(x,1) / s2: r(x,1) w(x,2)"
            ]
        );
        assert_eq!(
            said("serializable", "s1: a(x,1)\ns2: r(x,[1 1])"),
            ["s1: a(x,1) / s2: r(x,_)", "s1: a(x,1) / s2: r(x,[1])"]
        );
        assert_eq!(
            said("serializable", "s1: scan(a..c)=[] scan(a..c)=[b:1]\ns2: w(b,1)"),
            [
                "s1: scan(a..c)=[b:1] scan(a..c)=[b:1] / s2: w(b,1)",
                "s1: scan(a..c)=[] scan(a..c)=[] / s2: w(b,1)"
            ]
        );
    }

    /// What is said to be possible is possible, by the exhaustive oracle as well.
    #[test]
    fn what_is_said_to_be_possible_is() {
        let (level, options) = (Level::SERIALIZABLE, Options::default());
        let mut found = 0;
        for shape in [Shape::registers(), Shape::lists(), Shape::ranges(), Shape::predicates()] {
            for seed in 0..40 {
                let history = shape.history(seed);
                let judge = |changed: &History| check(changed, level, &options).verdict;
                if !matches!(judge(&history), Verdict::Violated(_)) {
                    continue;
                }
                for it in instead(&history, &options, judge) {
                    let verdict = oracle(&it.changed, level, &options);
                    assert!(
                        matches!(verdict, Ok(Verdict::Accepted(_))),
                        "{}",
                        notation::to_string(&it.changed)
                    );
                    assert_ne!(notation::to_string(&it.changed), notation::to_string(&history));
                    found += 1;
                }
            }
        }
        assert!(found > 20, "only {found} results were found");
    }
}
