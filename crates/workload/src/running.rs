//! One open transaction: how its steps are executed on the store and what is recorded of them.
//!
//! Changes stay with the transaction until commit. A read sees the transaction's own changes, else what its
//! snapshot holds; what it saw is claimed, so that certification can ask about it.

use crate::claims::{Change, Claims};
use crate::executed::{Done, Executed};
use crate::keys::Key;
use crate::plan::{Filter, Piece, Rule, Step, Template, Value};
use crate::simulation::Fate;
use crate::store::Store;
use history::Lock;
use std::ops::ControlFlow;

/// A transaction while it is open, and until it is handed out.
pub(crate) struct Running {
    pub(crate) template: Template,
    pub(crate) next_step: usize,
    pub(crate) has_snapshot: bool,
    /// When the client had the answer to the last request.
    pub(crate) answered: i64,
    pub(crate) fate: Fate,
    pub(crate) claims: Claims,
    pub(crate) executed: Executed,
    /// What the last filter found.
    pub(crate) matched: Vec<(Key, Value)>,
}

impl Running {
    /// Executes one step and records what came back.
    pub(crate) fn execute(&mut self, store: &Store, step: Step) {
        match step {
            Step::Read { key, lock } => {
                let value = Some(self.read(store, key));
                if lock != Lock::None {
                    self.claims.held.push((key, store.last_write(key)));
                }
                self.executed.ops.push(Done::Read { key, value, lock });
            }
            Step::Write { key, value } => {
                let value = match value {
                    Rule::Put(value) => value,
                    Rule::Plus(more) => Value::Int(self.executed.last_number(key) + more),
                };
                self.claims.changes.push(key, Change::Put(value));
                self.executed.ops.push(Done::Write { key, value });
            }
            Step::Delete { key } => {
                self.claims.changes.push(key, Change::Put(Value::Absent));
                self.executed.ops.push(Done::Delete { key });
            }
            Step::Append { key, element } => {
                self.claims.changes.push(key, Change::Append(element));
                self.executed.ops.push(Done::Append { key, element });
            }
            Step::Scan { from, to } => {
                self.claims.ranges.push((from, to));
                let rows = Some(self.collect(store.keys(from, to), store, usize::MAX));
                self.executed.ops.push(Done::Scan { from, to, rows });
            }
            Step::Iterate { from, to, reverse, rows_max } => self.iterate(store, from, to, reverse, rows_max),
            Step::Query { filter } => {
                let rows = Some(self.collect_where(store, filter));
                self.executed.ops.push(Done::Query { filter, rows });
            }
            Step::Update { filter, set } => {
                let keys = Some(self.change_where(store, filter, set));
                self.executed.ops.push(Done::Update { filter, set, keys });
            }
            Step::DeleteWhere { filter } => {
                let keys = Some(self.change_where(store, filter, Value::Absent));
                self.executed.ops.push(Done::DeleteWhere { filter, keys });
            }
            Step::Require { key, at_least } => {
                if self.executed.last_number(key) < at_least {
                    self.next_step = self.template.steps.len();
                }
            }
        }
    }

    /// A point read: the transaction's own change, else what its snapshot holds.
    fn read(&mut self, store: &Store, key: Key) -> Value {
        match self.claims.changes.last(key) {
            Some(Change::Put(value)) => value,
            Some(Change::Append(_)) => {
                self.claims.reads.push(key);
                self.claims.held.push((key, store.last_write(key)));
                self.visible(store, key)
            }
            None => {
                self.claims.reads.push(key);
                self.visible(store, key)
            }
        }
    }

    /// What the transaction sees at a key; the elements of a list go to its arena.
    #[inline]
    fn visible(&mut self, store: &Store, key: Key) -> Value {
        let change = self.claims.changes.last_if_any(key);
        if let Some(Change::Put(value)) = change {
            return value;
        }
        let value = store.value(key, self.claims.snapshot);
        let prefix = match value {
            Value::List(piece) => piece.len,
            _ if change.is_none() => return value,
            _ => 0,
        };
        let elements = &mut self.executed.elements;
        let start = elements.len();
        elements.extend_from_slice(store.elements(key, prefix));
        elements.extend(self.claims.changes.appended(key));
        Value::List(Piece { start: start as u32, len: (elements.len() - start) as u32 })
    }

    /// The first rows at the given keys.
    fn collect(&mut self, mut keys: impl Iterator<Item = Key>, store: &Store, rows_max: usize) -> Piece {
        let start = self.executed.rows.len();
        // An iterator of two regions is walked faster by itself than by its caller.
        let _ = keys.try_for_each(|key| {
            if self.executed.rows.len() - start == rows_max {
                return ControlFlow::Break(());
            }
            let value = self.visible(store, key);
            if value != Value::Absent {
                self.executed.rows.push((key, value));
            }
            ControlFlow::Continue(())
        });
        Piece { start: start as u32, len: (self.executed.rows.len() - start) as u32 }
    }

    /// An iterator whose client stops after `rows_max` rows. It has read the range up to its last row, or
    /// all of it if the end was reported.
    fn iterate(&mut self, store: &Store, from: Key, to: Key, reverse: bool, rows_max: u32) {
        let keys = store.keys(Some(from), Some(to));
        let rows = match reverse {
            false => self.collect(keys, store, rows_max as usize),
            true => self.collect(keys.rev(), store, rows_max as usize),
        };
        let exhausted = rows.len < rows_max;
        let last = rows.of(&self.executed.rows).last().map(|(key, _)| *key);
        let range = match last {
            Some(last) if !exhausted && reverse => (Some(last), Some(to)),
            Some(last) if !exhausted => (Some(from), Some(Key(last.0 + 1))),
            _ => (Some(from), Some(to)),
        };
        self.claims.ranges.push(range);
        self.executed.ops.push(Done::Iterate { from, to, reverse, exhausted, rows: Some(rows) });
    }

    fn collect_where(&mut self, store: &Store, filter: Filter) -> Piece {
        let start = self.executed.rows.len();
        self.match_rows(store, filter);
        self.executed.rows.extend_from_slice(&self.matched);
        Piece { start: start as u32, len: (self.executed.rows.len() - start) as u32 }
    }

    fn change_where(&mut self, store: &Store, filter: Filter, set: Value) -> Piece {
        let start = self.executed.keys.len();
        self.match_rows(store, filter);
        for &(key, _) in &self.matched {
            self.executed.keys.push(key);
            self.claims.changes.push(key, Change::Put(set));
        }
        Piece { start: start as u32, len: (self.executed.keys.len() - start) as u32 }
    }

    /// Everything the transaction sees that satisfies a filter, ascending by key, into `matched`. Only rows and
    /// numbers can.
    fn match_rows(&mut self, store: &Store, filter: Filter) {
        let Self { claims, matched, .. } = self;
        claims.filters.push(filter);
        matched.clear();
        store.matching(&filter, claims.snapshot, matched);
        if !claims.changes.is_empty() {
            let own = |key| match claims.changes.last(key) {
                Some(Change::Put(value)) => Some(value),
                Some(Change::Append(_)) | None => None,
            };
            matched.retain(|(key, _)| own(*key).is_none());
            let changed = claims.changes.iter().filter_map(|(key, _)| Some((key, own(key)?)));
            matched.extend(changed.filter(|(_, value)| filter.holds(*value)));
        }
        matched.sort_unstable_by_key(|(key, _)| *key);
        matched.dedup_by_key(|(key, _)| *key);
    }
}
