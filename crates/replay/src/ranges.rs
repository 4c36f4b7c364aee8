//! Operations on many keys: scans, iterators, queries, predicate writes.
//!
//! Each is decided key by key. For every key that the operation speaks of, the snapshot and the
//! transaction's own view say what it had to contribute: its value if it is there (and satisfies the
//! predicate), nothing otherwise. A key that contributed something else is a finding.
//!
//! * a scan speaks of every key of its range;
//! * an iterator speaks of the keys from its beginning to the last row it returned, and of the whole
//!   range if it reported the end;
//! * a query and a predicate write speak of every key of the history.
//!
//! A row of a key that the operation does not speak of is a finding too.
//!
//! **Cost.** The keys of the range; all keys for queries and predicate writes.

use super::replay::{Replay, wrong};
use super::step::{Matched, Misfit};
use super::{Axiom, Content, Finding};
use history::{Area, History, Id, KeyId, OpId, Primitive, Range, Row, Test, TxnId, ValueId, WriteIf};
use rustc_hash::{FxHashMap, FxHashSet};

/// The order in which rows come back.
#[derive(Clone, Copy)]
enum Direction {
    Ascending,
    Descending,
}

/// The keys in the order of their names.
pub(super) struct KeyOrder {
    rank: Vec<u32>,
    sorted: Vec<KeyId>,
}

impl KeyOrder {
    fn new(history: &History) -> Self {
        let rank = history.keys().ranks();
        let mut sorted = vec![KeyId(0); rank.len()];
        for (index, &place) in rank.iter().enumerate() {
            sorted[place as usize] = KeyId::new(index);
        }
        Self { rank, sorted }
    }

    fn rank(&self, key: KeyId) -> usize {
        self.rank[key.index()] as usize
    }

    /// The places of a range's keys.
    fn places(&self, range: Range) -> std::ops::Range<usize> {
        let start = range.from.map_or(0, |key| self.rank(key));
        let end = range.to.map_or(self.sorted.len(), |key| self.rank(key));
        start..end.max(start)
    }

    /// The places of the keys that an iterator speaks of.
    fn places_visited(
        &self,
        range: Range,
        reverse: bool,
        exhausted: bool,
        rows: &[Row],
    ) -> std::ops::Range<usize> {
        let whole = self.places(range);
        let visited = rows.iter().map(|row| self.rank(row.key));
        if exhausted {
            return whole;
        }
        if reverse {
            visited.min().map_or(whole.end..whole.end, |last| last.clamp(whole.start, whole.end)..whole.end)
        } else {
            visited.max().map_or(whole.start..whole.start, |last| {
                whole.start..(last + 1).clamp(whole.start, whole.end)
            })
        }
    }
}

/// The rows of the operation being replayed, by key; used again and again.
#[derive(Default)]
pub(super) struct RowsSeen {
    by_key: FxHashMap<KeyId, ValueId>,
}

impl RowsSeen {
    fn fill(&mut self, rows: &[Row]) {
        self.by_key.clear();
        self.by_key.extend(rows.iter().map(|row| (row.key, row.value)));
    }

    fn take(&mut self, key: KeyId) -> ValueId {
        self.by_key.remove(&key).unwrap_or(ValueId::ABSENT)
    }

    /// What nobody took, by key.
    fn rest(&mut self) -> Vec<(KeyId, ValueId)> {
        let mut rest: Vec<_> = self.by_key.drain().collect();
        rest.sort_unstable_by_key(|(key, _)| *key);
        rest
    }
}

impl<'h, F: FnMut(Finding)> Replay<'h, F> {
    pub(super) fn observe_range(&mut self, txn: TxnId, op: OpId, operation: Primitive<'h>, snapshot: u32) {
        match operation {
            Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
                let keys = self.key_order();
                let places = keys.places_visited(range, reverse, to_the_end, rows);
                let keys: Vec<KeyId> = keys.sorted[places].to_vec();
                let direction = if reverse { Direction::Descending } else { Direction::Ascending };
                self.compare(txn, op, &keys, None, rows, snapshot, Some(direction));
            }
            Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
                let keys: Vec<KeyId> = self.history.keys().ids().collect();
                self.compare(txn, op, &keys, Some(Test::Where(predicate)), rows, snapshot, None);
            }
            Primitive::WriteIf(write) => self.write_if(txn, op, &write, snapshot),
            _ => {}
        }
    }

    fn key_order(&mut self) -> &KeyOrder {
        self.key_order.get_or_insert_with(|| KeyOrder::new(self.history))
    }

    /// Compares what came back with what the keys had to contribute.
    #[expect(clippy::too_many_arguments, reason = "the fields of the operation")]
    fn compare(
        &mut self,
        txn: TxnId,
        op: OpId,
        keys: &[KeyId],
        test: Option<Test<'h>>,
        rows: &[Row],
        snapshot: u32,
        ordered: Option<Direction>,
    ) {
        if !self.goes_on(keys.len() + rows.len()) {
            return;
        }
        self.rows.fill(rows);
        self.compare_shape(txn, op, rows, ordered);
        for &key in keys {
            let seen = self.rows.take(key);
            if let Some((axiom, other, expected)) = self.differs(key, test, seen, snapshot) {
                self.broken.push(wrong(axiom, txn, op, key, other, expected, seen));
            }
        }
        for (key, seen) in self.rows.rest() {
            let expected = Content::Value(ValueId::ABSENT);
            self.broken.push(wrong(Axiom::External, txn, op, key, None, expected, seen));
        }
    }

    /// A row that comes twice or out of order contradicts the rows before it, whatever the snapshot is.
    fn compare_shape(&mut self, txn: TxnId, op: OpId, rows: &[Row], ordered: Option<Direction>) {
        let mut before: FxHashSet<KeyId> = FxHashSet::default();
        for (index, row) in rows.iter().enumerate() {
            let again = !before.insert(row.key);
            let after = index.checked_sub(1).map(|index| rows[index].key);
            let astray = ordered.zip(after).is_some_and(|(direction, after)| {
                let order = self.key_order();
                let rank = |key| order.rank(key);
                match direction {
                    Direction::Ascending => rank(after) > rank(row.key),
                    Direction::Descending => rank(after) < rank(row.key),
                }
            });
            if again || astray {
                let expected = Content::Value(ValueId::ABSENT);
                self.broken.push(wrong(Axiom::Internal, txn, op, row.key, None, expected, row.value));
            }
        }
    }

    /// What is wrong with what a key contributed, and whose version is to be named.
    fn differs(
        &self,
        key: KeyId,
        test: Option<Test<'h>>,
        seen: ValueId,
        snapshot: u32,
    ) -> Option<(Axiom, Option<TxnId>, Content)> {
        let (outside, writer) = self.state.seen(key, snapshot);
        let local = self.locals.get(key, &self.state).unwrap_or(&self.untouched);
        let Misfit { axiom, expected, names_writer } =
            local.row(&seen, test.as_ref(), outside, self.rules)?;
        Some((axiom, writer.filter(|_| names_writer), expected))
    }

    /// A conditional write: judges what the database reported, and writes.
    fn write_if(&mut self, txn: TxnId, op: OpId, write: &WriteIf<'h>, snapshot: u32) {
        let reported = write.keys.map(|keys| {
            let mut keys = keys.to_vec();
            keys.sort_unstable();
            keys.dedup();
            keys
        });
        let (mut matching, mut missing, mut surplus) = (Vec::new(), Vec::new(), Vec::new());
        let keys = match write.key {
            Some(key) => key.index()..key.index() + 1,
            None => 0..self.history.keys().len(),
        };
        if !self.goes_on(keys.len()) {
            return;
        }
        for key in keys.map(KeyId::new) {
            let (outside, other) = self.state.seen(key, snapshot);
            let local = self.locals.get(key, &self.state).unwrap_or(&self.untouched);
            let is_reported = reported.as_ref().map(|keys| keys.binary_search(&key).is_ok());
            let Matched { is_match, misreported } =
                local.find(&write.test, is_reported, outside, self.rules.values);
            if is_match {
                matching.push(key);
            }
            // The value in question stands on the side that has it.
            if let Some(value) = misreported {
                let (all, expected, seen) = match (is_match, write.test) {
                    (true, _) => (&mut missing, value, Content::Value(ValueId::ABSENT)),
                    (false, Test::Is(found)) => (&mut surplus, value, Content::Value(found)),
                    (false, _) => (&mut surplus, Content::Value(ValueId::ABSENT), value),
                };
                let (op, key) = (Some(op), Some(key));
                all.push(Finding { axiom: Axiom::External, txn, op, key, other, expected, seen });
            }
        }
        if let Some(count) = write.count.filter(|&count| count != matching.len() as u64) {
            self.broken.push(Finding {
                axiom: Axiom::External,
                txn,
                op: Some(op),
                key: None,
                other: None,
                expected: Content::Count(matching.len() as u64),
                seen: Content::Count(count),
            });
        }
        self.broken.extend(missing.into_iter().chain(surplus));
        for key in reported.unwrap_or(matching) {
            self.locals.entry(key, &mut self.state).write(write.set);
        }
    }
}
