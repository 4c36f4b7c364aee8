//! A part of a history that stands on its own.
//!
//! *What*: keeps some transactions and weakens what they saw to what the others cannot have caused, such
//! that **if the whole has an explanation, so has the part** — whatever the level. So a part without one
//! proves the whole violated, and it is a history like any other: it can be checked, shrunk, written to a
//! file, replayed exhaustively.
//!
//! *Rules*: a read keeps its result if every transaction that can have written it is kept (or the
//! initial state, or nobody); else its result becomes unknown. A list keeps the elements whose appenders
//! are kept: leaving transactions out of an order leaves their elements out of its lists. Results of
//! operations on many keys become unknown, or, where all that counts is what came before, those of ranges become
//! reads of the keys that they passed ([`restrict_to_reads`]). Aborted transactions stay only where they are asked for.
//!
//! *Why that is sound*: take an order that explains the whole and strike out the transactions not kept.
//! A read whose source is kept still finds it, because what came between came between before.

use crate::contents::Contents;
use crate::rows::Universe;
use history::{
    Area, Builder, Copier, History, Id, KeyId, Lock, OpId, Operation, Primitive, Row, Status, TxnId, ValueId,
    ValueRef, WriteIf,
};
use isolation::{Budget, Level, Ryow};
use rustc_hash::{FxHashMap, FxHashSet};

/// A part, and where its transactions come from.
#[derive(Debug)]
pub struct Part {
    /// The part; its transactions keep their names and their order.
    pub history: History,
    /// For each of its transactions the one in the whole.
    pub txns: Vec<TxnId>,
}

/// The part of a history made of some transactions.
pub fn restrict(history: &History, keep: &[TxnId]) -> Part {
    restrict_with(history, keep, false, None)
}

/// As [`restrict`], with scans and iterators as reads of the keys that they passed. For serializability and snapshot
/// isolation, at which a transaction sees one state: operations do not stay in their places.
pub fn restrict_to_reads(history: &History, keep: &[TxnId], ryow: Ryow) -> Part {
    // It takes as long as going over the history.
    let budget = Budget::unlimited();
    let contents = Contents::of(history, ryow, &budget);
    let universe = contents.and_then(|contents| Universe::of(history, &contents, false, &budget));
    let universe = universe.ok().flatten();
    restrict_with(history, keep, false, universe)
}

/// As [`restrict`], for levels at which it matters whom a read saw, not only what came before: there a list whose last
/// appender is not kept shows nothing.
pub fn restrict_for(history: &History, keep: &[TxnId], level: Level) -> Part {
    restrict_with(history, keep, level.is_axiomatic(), None)
}

fn restrict_with(history: &History, keep: &[TxnId], keeps_sources: bool, universe: Option<Universe>) -> Part {
    let mut keep = keep.to_vec();
    keep.sort_unstable();
    keep.dedup();
    let writers = Writers::of(history, &keep, universe.as_ref());
    let (copier, builder) = (Copier::new(history), Builder::new());
    Restrictor { history, copier, keep, keeps_sources, universe, writers, builder }.run()
}

/// What a scan or an iterator says of every key that it passed; `None` of any other operation, and of rows that no store
/// returns.
fn passed(universe: &Universe, operation: &Primitive<'_>) -> Option<Vec<(KeyId, ValueId)>> {
    match *operation {
        Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
            universe.visited(range, reverse, to_the_end, rows)
        }
        _ => None,
    }
}

/// Who can have written what, for the keys that matter.
struct Writers {
    /// Transactions that wrote a value to a key as a whole.
    values: FxHashMap<(KeyId, ValueId), Vec<TxnId>>,
    /// Transactions that appended an element to a key.
    elements: FxHashMap<(KeyId, ValueId), Vec<TxnId>>,
    /// Keys that are appended to, and keys that are overwritten.
    appended: FxHashSet<KeyId>,
    overwritten: FxHashSet<KeyId>,
    /// Keys that some transaction writes that is not kept.
    partly: FxHashSet<KeyId>,
    /// Keys that a write may have changed or not.
    doubtful: FxHashSet<KeyId>,
    /// Whether some transaction writes by predicate: then nobody knows who wrote what.
    by_predicate: bool,
}

impl Writers {
    fn of(history: &History, keep: &[TxnId], universe: Option<&Universe>) -> Self {
        let mut matters = vec![false; history.keys().len()];
        for &txn in keep {
            for (_, operation) in history.transaction(txn).primitives() {
                if let Primitive::Read { key, .. } | Primitive::WriteIf(WriteIf { key: Some(key), .. }) =
                    operation
                {
                    matters[key.index()] = true;
                }
                let passed = universe.and_then(|universe| passed(universe, &operation));
                for (key, _) in passed.into_iter().flatten() {
                    matters[key.index()] = true;
                }
            }
        }
        let mut writers = Self {
            values: FxHashMap::default(),
            elements: FxHashMap::default(),
            appended: FxHashSet::default(),
            overwritten: FxHashSet::default(),
            partly: FxHashSet::default(),
            doubtful: FxHashSet::default(),
            by_predicate: false,
        };
        let effective = history.transactions().filter(|it| it.status() != Status::Aborted);
        for transaction in effective {
            let is_kept = keep.binary_search(&transaction.id()).is_ok();
            for (_, operation) in transaction.primitives() {
                let (key, value) = match operation {
                    Primitive::Write { key, value } => (key, value),
                    Primitive::Append { key, value } => (key, value),
                    Primitive::WriteIf(WriteIf { key: None, .. }) => {
                        writers.by_predicate = true;
                        continue;
                    }
                    Primitive::WriteIf(WriteIf { key: Some(key), keys: None, .. }) => {
                        writers.doubtful.insert(key);
                        continue;
                    }
                    Primitive::WriteIf(WriteIf { key: Some(key), set, .. })
                        if operation.certainly_wrote(key) =>
                    {
                        (key, set)
                    }
                    Primitive::Read { .. } | Primitive::Show { .. } | Primitive::WriteIf(_) => continue,
                };
                if !matters[key.index()] {
                    continue;
                }
                if !is_kept {
                    writers.partly.insert(key);
                }
                let by_value = if let Primitive::Append { .. } = operation {
                    writers.appended.insert(key);
                    &mut writers.elements
                } else {
                    writers.overwritten.insert(key);
                    &mut writers.values
                };
                by_value.entry((key, value)).or_default().push(transaction.id());
            }
        }
        writers
    }
}

struct Restrictor<'h> {
    history: &'h History,
    copier: Copier<'h>,
    keep: Vec<TxnId>,
    keeps_sources: bool,
    /// Where ranges become reads.
    universe: Option<Universe>,
    writers: Writers,
    builder: Builder,
}

impl Restrictor<'_> {
    fn run(mut self) -> Part {
        for &Row { key, value } in self.history.initial() {
            let (key, value) = (self.key(key), self.value(value));
            self.builder.initial(key, value);
        }
        for index in 0..self.keep.len() {
            self.transaction(self.keep[index]);
        }
        let history = self.builder.finish().expect("names were unique in the whole");
        Part { history, txns: self.keep }
    }

    fn transaction(&mut self, txn: TxnId) {
        let transaction = self.history.transaction(txn);
        let session = self.copier.session(transaction.session(), &mut self.builder);
        self.builder.begin(session);
        self.builder.set_status(transaction.status());
        let name = transaction.name().to_string();
        self.builder.set_id(name.as_str().into()).expect("names were unique in the whole");
        if let Some(span) = transaction.client() {
            self.builder.set_client(span).expect("the whole has it in order");
        }
        if let Some((start, commit)) = transaction.db() {
            self.builder.set_db(start, commit).expect("the whole has it in order");
        }
        if let Some(level) = transaction.level() {
            self.builder.set_txn_level(level);
        }
        if let Some(ctx) = transaction.ctx() {
            self.builder.set_ctx(ctx);
        }
        for (op, operation) in transaction.ops() {
            self.operation(txn, op, operation);
        }
        self.builder.end().expect("a part is no longer than the whole");
    }

    fn operation(&mut self, txn: TxnId, op: OpId, operation: Operation<'_>) {
        let does = self.history.primitive(op);
        match (does, operation) {
            (Primitive::Show { area: Area::Range { .. }, rows: Some(_) }, _) if self.universe.is_some() => {
                self.range(txn, &does, operation);
            }
            (Primitive::Read { key, value }, Operation::Read { lock, .. }) => {
                let seen = self.seen(txn, key, value);
                let key = self.key(key);
                self.builder.read(key, seen, lock);
            }
            (Primitive::Write { .. } | Primitive::Append { .. }, _) => {
                self.copier.operation(operation, &mut self.builder);
            }
            (Primitive::WriteIf(write @ WriteIf { key: Some(key), .. }), _) => {
                self.write_if(txn, &write, key, operation);
            }
            // An operation on many keys whose result is unknown constrains nothing.
            _ => self.nothing(),
        }
    }

    /// A read of nothing known keeps the place of an operation that is let go.
    fn nothing(&mut self) {
        let key = self.builder.key("".into());
        self.builder.read(key, ValueId::UNKNOWN, Lock::None);
    }

    /// A conditional write of one key: as it is, or without what it found.
    fn write_if(&mut self, txn: TxnId, write: &WriteIf<'_>, key: KeyId, operation: Operation<'_>) {
        let is_certain = !self.writers.by_predicate && !self.writers.doubtful.contains(&key);
        let finds_it = write.changed(key) == Some(true)
            && write.test.constants().all(|expected| {
                let seen = self.seen(txn, key, expected);
                seen.is_known() && seen == self.value(expected)
            });
        if is_certain && (finds_it || !self.writers.partly.contains(&key)) {
            self.copier.operation(operation, &mut self.builder);
        } else if write.changed(key) == Some(true) {
            let (key, set) = (self.key(key), self.value(write.set));
            self.builder.write(key, set);
        } else {
            self.nothing();
        }
    }

    /// A scan or an iterator, key by key; as it is where no store returns such rows: that needs nobody else.
    fn range(&mut self, txn: TxnId, does: &Primitive<'_>, operation: Operation<'_>) {
        let passed = self.universe.as_ref().and_then(|universe| passed(universe, does));
        let Some(passed) = passed else {
            self.copier.operation(operation, &mut self.builder);
            return;
        };
        for (key, value) in passed {
            let seen = self.seen(txn, key, value);
            let key = self.key(key);
            self.builder.read(key, seen, Lock::None);
        }
    }

    /// What a read may still claim to have seen.
    fn seen(&mut self, txn: TxnId, key: KeyId, value: ValueId) -> ValueId {
        if !value.is_known() || self.writers.by_predicate || self.writers.doubtful.contains(&key) {
            return ValueId::UNKNOWN;
        }
        match (self.writers.appended.contains(&key), self.writers.overwritten.contains(&key)) {
            (true, true) => {
                // Any mix of writers may stand behind such a value.
                if self.writers.partly.contains(&key) { ValueId::UNKNOWN } else { self.value(value) }
            }
            (true, false) => self.seen_list(key, value),
            _ => {
                let sources = self.writers.values.get(&(key, value)).map_or(&[][..], |it| &it[..]);
                let kept = |source: &TxnId| *source == txn || self.keep.binary_search(source).is_ok();
                if sources.iter().all(kept) { self.value(value) } else { ValueId::UNKNOWN }
            }
        }
    }

    fn seen_list(&mut self, key: KeyId, value: ValueId) -> ValueId {
        let elements = match self.history.values().get(value) {
            ValueRef::Null => &[],
            ValueRef::List(elements) => elements,
            _ => return self.value(value),
        };
        let initial = self.history.initial_value(key);
        let from_the_start = |element: ValueId| match self.history.values().get(initial) {
            ValueRef::List(elements) => elements.contains(&element),
            _ => element == initial,
        };
        let mut left = Vec::new();
        for &element in elements {
            let appenders = self.writers.elements.get(&(key, element)).map_or(&[][..], |it| &it[..]);
            let kept = appenders.iter().filter(|txn| self.keep.binary_search(txn).is_ok()).count();
            let is_last = elements.last() == Some(&element);
            match (kept, appenders.len()) {
                // Nobody knows whether this one was appended or there from the start.
                (kept, all) if kept < all && from_the_start(element) => return ValueId::UNKNOWN,
                (0, 1..) if is_last && self.keeps_sources => return ValueId::UNKNOWN,
                (0, 1..) => {}
                (kept, all) if kept == all => left.push(element),
                _ => return ValueId::UNKNOWN,
            }
        }
        if left.len() == elements.len() {
            return self.value(value);
        }
        if left == [initial] {
            // Nothing was appended to what was no list.
            return self.value(initial);
        }
        let left: Vec<ValueId> = left.into_iter().map(|element| self.value(element)).collect();
        if left.is_empty() { ValueId::ABSENT } else { self.builder.list(&left) }
    }

    fn key(&mut self, key: KeyId) -> KeyId {
        self.copier.key(key, &mut self.builder)
    }

    fn value(&mut self, value: ValueId) -> ValueId {
        self.copier.value(value, &mut self.builder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;
    use isolation::{Options, Verdict};
    use oracle::oracle;
    use oracle::tiny::{Mix, Random, Shape};

    fn accepts(history: &History, level: Level, options: &Options) -> bool {
        matches!(oracle(history, level, options), Ok(Verdict::Accepted(_)))
    }

    /// A history has an explanation, and a part of it as reads has none: never. And parts say something.
    #[test]
    fn ranges_as_reads_say_no_more_than_the_ranges() {
        let lists = Mix { read: 2, append: 4, scan: 3, iterate: 2, ..Mix::default() };
        let rebuilt = Mix { write: 1, delete: 1, ..lists };
        let shapes = [
            Shape { unknown: 20, ..Shape::ranges() },
            Shape { mix: lists, unknown: 20, keys_max: 2, mixed_up: 30, ..Shape::lists() },
            Shape { mix: rebuilt, keys_max: 2, ..Shape::lists() },
        ];
        let (mut kept, mut lost) = (0, 0);
        for (seed, shape) in (0..250).flat_map(|seed| shapes.iter().map(move |shape| (seed, shape))) {
            for ryow in [Ryow::Must, Ryow::May, Ryow::Never] {
                let options = Options { ryow, ..Options::default() };
                let history = shape.clone().with_ryow(ryow).history(seed);
                let mut random = Random::new(seed);
                let keep: Vec<TxnId> = (history.transactions().filter(|it| it.status() != Status::Aborted))
                    .map(|it| it.id())
                    .filter(|_| random.chance(70))
                    .collect();
                let part = restrict_to_reads(&history, &keep, ryow).history;
                for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION] {
                    match (accepts(&history, level, &options), accepts(&part, level, &options)) {
                        (true, true) => kept += 1,
                        (false, false) => lost += 1,
                        (false, true) => {}
                        (true, false) => panic!(
                            "seed {seed} at {level}, {ryow:?}: {keep:?} of\n{}has no explanation:\n{}",
                            notation::to_string(&history),
                            notation::to_string(&part)
                        ),
                    }
                }
            }
        }
        assert!(kept > 1000 && lost > 300, "{kept} explained, {lost} not");
    }
}
