//! Runs one transaction on a plain map and compares every known result.

use super::content::{Content, Store};
use history::{History, KeyId, Operation, Predicate, Range, Row, TxnId};
use isolation::Ryow;
use std::collections::BTreeMap;

/// What a transaction leaves in the keys it wrote.
pub(super) type Writes = BTreeMap<KeyId, Content>;

/// Replays transactions of one history.
pub(super) struct Replay<'h> {
    history: &'h History,
    ryow: Ryow,
    /// Every key's place in the order of keys.
    ranks: Vec<u32>,
}

/// What one transaction sees: the state it started from, and its own writes so far.
struct View<'v> {
    before: &'v Store,
    own: Writes,
    ryow: Ryow,
}

impl View<'_> {
    /// The content including the transaction's own writes: what its writes build on.
    fn current(&self, key: KeyId) -> &Content {
        self.own.get(&key).unwrap_or(&self.before[key.0 as usize])
    }

    /// Whether a read of `key` may see something that `expected` accepts.
    fn may_see(&self, key: KeyId, expected: impl Fn(&Content) -> bool) -> bool {
        let without = &self.before[key.0 as usize];
        match (self.own.get(&key), self.ryow) {
            (None, _) | (Some(_), Ryow::Never) => expected(without),
            (Some(own), Ryow::Must) => expected(own),
            (Some(own), Ryow::May) => expected(own) || expected(without),
        }
    }
}

impl<'h> Replay<'h> {
    pub(super) fn new(history: &'h History, ryow: Ryow) -> Self {
        Self { history, ryow, ranks: history.keys().ranks() }
    }

    /// What the transaction writes when it starts from `before`; `None` if one of its results does not fit.
    pub(super) fn run(&self, txn: TxnId, before: &Store) -> Option<Writes> {
        let mut view = View { before, own: Writes::new(), ryow: self.ryow };
        for (_, operation) in self.history.transaction(txn).ops() {
            if !self.step(&mut view, operation) {
                return None;
            }
        }
        Some(view.own)
    }

    /// One operation; false if its result does not fit.
    fn step(&self, view: &mut View<'_>, operation: Operation<'h>) -> bool {
        let values = self.history.values();
        match operation {
            Operation::Read { key, value, .. } => {
                !value.is_known() || view.may_see(key, |seen| *seen == Content::of(values, value))
            }
            Operation::Write { key, value } => {
                view.own.insert(key, Content::of(values, value));
                true
            }
            Operation::Delete { key } => {
                view.own.insert(key, Content::Absent);
                true
            }
            Operation::Append { key, value } => {
                let longer = view.current(key).append(value);
                view.own.insert(key, longer);
                true
            }
            Operation::Cas { key, expect, write, ok } => {
                let wrote = *view.current(key) == Content::of(values, expect);
                if wrote {
                    view.own.insert(key, Content::of(values, write));
                }
                ok.is_none_or(|ok| ok == wrote)
            }
            Operation::Scan { range, rows } => {
                rows.is_none_or(|rows| self.range_fits(view, range, false, true, rows))
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                rows.is_none_or(|rows| self.range_fits(view, range, reverse, exhausted, rows))
            }
            Operation::Query { predicate, rows } => {
                rows.is_none_or(|rows| self.query_fits(view, predicate, rows))
            }
            Operation::Update { predicate, set, count, keys } => {
                self.predicate_write(view, predicate, &Content::of(values, set), count, keys)
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                self.predicate_write(view, predicate, &Content::Absent, count, keys)
            }
        }
    }

    /// Whether `rows` are what the range shows: all of it, or its beginning up to the last row.
    fn range_fits(
        &self,
        view: &View<'_>,
        range: Range,
        reverse: bool,
        to_the_end: bool,
        rows: &[Row],
    ) -> bool {
        let rank = |key: KeyId| self.ranks[key.0 as usize];
        let in_range = |key: KeyId| {
            range.from.is_none_or(|from| rank(key) >= rank(from))
                && range.to.is_none_or(|to| rank(key) < rank(to))
        };
        let comes_before = |a: KeyId, b: KeyId| if reverse { rank(a) > rank(b) } else { rank(a) < rank(b) };
        if !rows.iter().all(|row| in_range(row.key))
            || !rows.windows(2).all(|pair| comes_before(pair[0].key, pair[1].key))
        {
            return false;
        }
        let visited = |key: KeyId| {
            in_range(key) && (to_the_end || rows.last().is_some_and(|last| !comes_before(last.key, key)))
        };
        self.history
            .keys()
            .ids()
            .filter(|&key| visited(key))
            .all(|key| self.row_fits(view, key, rows, |_| true))
    }

    /// Whether `rows` are exactly what satisfies the predicate.
    fn query_fits(&self, view: &View<'_>, predicate: &Predicate, rows: &[Row]) -> bool {
        let twice = |row: &Row| rows.iter().filter(|other| other.key == row.key).count() > 1;
        let satisfies = |seen: &Content| seen.satisfies(self.history.values(), predicate);
        !rows.iter().any(twice)
            && self.history.keys().ids().all(|key| self.row_fits(view, key, rows, satisfies))
    }

    /// Whether the row of `key`, or that there is none, fits; only contents that are `wanted` give rows.
    fn row_fits(&self, view: &View<'_>, key: KeyId, rows: &[Row], wanted: impl Fn(&Content) -> bool) -> bool {
        let values = self.history.values();
        let shown = |seen: &Content| seen.is_present() && wanted(seen);
        match rows.iter().find(|row| row.key == key) {
            Some(row) if !row.value.is_known() => view.may_see(key, shown),
            Some(row) if Content::of(values, row.value).is_present() => {
                view.may_see(key, |seen| shown(seen) && *seen == Content::of(values, row.value))
            }
            // No row, or a row that says that nothing is there.
            _ => view.may_see(key, |seen| !shown(seen)),
        }
    }

    /// Writes `set` into every key that satisfies the predicate; false if the report does not fit.
    fn predicate_write(
        &self,
        view: &mut View<'_>,
        predicate: &Predicate,
        set: &Content,
        count: Option<u64>,
        keys: Option<&[KeyId]>,
    ) -> bool {
        let values = self.history.values();
        let matched: Vec<KeyId> =
            self.history.keys().ids().filter(|&key| view.current(key).satisfies(values, predicate)).collect();
        let reported = keys.map(|keys| {
            let mut sorted = keys.to_vec();
            sorted.sort();
            sorted
        });
        let fits = count.is_none_or(|count| count == matched.len() as u64)
            && reported.is_none_or(|keys| keys == matched);
        view.own.extend(matched.into_iter().map(|key| (key, set.clone())));
        fits
    }
}
