//! The core as a history of its own.
//!
//! *What*: keeps some transactions of a history and weakens what they saw to what the others cannot have caused, such
//! that **if the whole has an explanation, so has the part**, at serializability, snapshot isolation and their
//! variants. A part without an explanation therefore proves the whole violated.
//!
//! *Why it is sound*: take an order that explains the whole (at snapshot isolation, of begins and commits) and strike
//! out the transactions that are not kept. Session order, real-time order and "no two overlapping writers" speak of
//! pairs, so they still hold. A read finds in a key
//!
//! ```text
//!   whole   … W:x=1 … (no write of x) … T:r(x,1) …      W kept:     T still finds 1
//!   part    … W:x=1 ……………………………………………… T:r(x,1) …      W not kept: T may find anything
//! ```
//!
//! so a result may stay if every transaction that can have left it is kept; the initial state always is.
//!
//! *Rules*, for what a kept transaction saw in a key:
//! 1. If the transaction contradicts itself whatever it started from, it is in no explanation of the whole
//!    ([`contradicts_itself`]); it stays as it is. One of unknown outcome that does so, or read what nobody can have left, and is not
//!    kept left nothing.
//! 2. A value that is no list, or any value of a key that is only overwritten: it stays unless a transaction that is
//!    not kept can have left it. What a transaction overwrites itself nobody else sees, so only last writes count.
//! 3. A list on a key that is only appended to: elements of transactions that are not kept are struck out; an element
//!    that both a kept and another one appended makes the result unknown; the initial elements stay.
//! 4. A list on a key that is both: it stays if everybody who wrote the key is kept. Any list stays if nothing explains
//!    it: one of its elements was written by nobody at all, or its last one is in the middle of what its transaction
//!    wrote and the reader wrote nothing there.
//! 5. A scan or iterator says of each key it passed what a read of that key would say, and becomes those reads; of a
//!    query the rows do.
//! 6. A predicate write that reported its keys wrote exactly those, and becomes writes of them. One that did not may
//!    have left its value anywhere; it is dropped, and nobody is known to have left that value.
//! 7. What every order of the part gives (an initial value that nobody kept changes) need not be asked.
//! 8. If everybody who can have taken effect is kept, everything stays as it is.
//!
//! *Cost*: one pass over the history for the keys that the kept transactions read. *Independence*: the pipeline cuts
//! parts too, to shrink its cores; this is separate code, tested against the oracle by itself.

use super::content::{Content, Seen};
use super::doom::contradicts_itself;
use super::ranges::Passed;
use history::{
    Builder, Column, Copier, History, KeyId, Lock, Primitive, Row, Status, Test, Transaction, TxnId, ValueId,
    WriteIf,
};
use isolation::Ryow;
use rustc_hash::FxHashSet;

/// A part of a history.
pub(super) struct Part {
    pub(super) history: History,
    /// For each of its transactions the one in the whole.
    pub(super) txns: Vec<TxnId>,
}

/// The part made of some transactions; aborted ones are left out.
pub(super) fn part(history: &History, keep: &[TxnId], ryow: Ryow) -> Part {
    let is_effective = |txn: &TxnId| history.transaction(*txn).status() != Status::Aborted;
    let mut txns: Vec<TxnId> = keep.iter().copied().filter(is_effective).collect();
    txns.sort_unstable();
    txns.dedup();
    let effective = history.transactions().filter(|txn| txn.status() != Status::Aborted).count();
    let passed = Passed::new(history);
    let others = (txns.len() < effective).then(|| Others::of(history, &txns, ryow, &passed));
    let (copier, builder) = (Copier::new(history), Builder::new());
    let mut cut = Cut { history, copier, ryow, others, passed, builder };
    for row in history.initial().iter().filter(|row| cut.matters(row.key)).copied().collect::<Vec<Row>>() {
        let (key, value) = (cut.key(row.key), cut.value(row.value));
        cut.builder.initial(key, value);
    }
    for &txn in &txns {
        cut.transaction(history.transaction(txn));
    }
    let history = cut.builder.finish().expect("transactions without ids have different names");
    Part { history, txns }
}

/// What the transactions that are not kept can have left, for the keys that matter.
struct Others {
    keys: Column<KeyId, KeyUse>,
    /// Last writes, for keys that are only overwritten. Empty lists count as absent.
    values: FxHashSet<(KeyId, ValueId)>,
    /// Appended elements, and those that kept transactions appended.
    elements: FxHashSet<(KeyId, ValueId)>,
    kept_elements: FxHashSet<(KeyId, ValueId)>,
    /// Elements of lists that were written as a whole, and values that were written, by whomever.
    in_writes: FxHashSet<(KeyId, ValueId)>,
    /// Elements that some transaction's writes of the key can have ended with.
    last: FxHashSet<(KeyId, ValueId)>,
    /// Values that predicate writes may have left in any key, whoever did them.
    anywhere: Vec<ValueId>,
}

/// How a key is used by the transactions that can have taken effect.
#[derive(Clone, Copy, Debug, Default)]
struct KeyUse {
    /// Whether a kept transaction read it: only then the rest is known.
    matters: bool,
    appended: bool,
    overwritten: bool,
    /// Whether somebody who is kept wrote it, and whether somebody else did.
    by_kept: bool,
    by_others: bool,
}

impl Others {
    fn of(history: &History, keep: &[TxnId], ryow: Ryow, passed: &Passed<'_>) -> Self {
        let mut others = Self {
            keys: Column::filled(KeyUse::default(), history.keys().len()),
            values: FxHashSet::default(),
            elements: FxHashSet::default(),
            kept_elements: FxHashSet::default(),
            in_writes: FxHashSet::default(),
            last: FxHashSet::default(),
            anywhere: Vec::new(),
        };
        for &txn in keep {
            for (_, operation) in history.transaction(txn).primitives() {
                passed.results(operation, |key, _| others.keys[key].matters = true);
                if let Primitive::WriteIf(WriteIf { key: Some(key), .. }) = operation {
                    others.keys[key].matters = true;
                }
            }
        }
        let mut ever: Option<FxHashSet<(KeyId, ValueId)>> = None;
        let mut later = Later::default();
        for transaction in history.transactions().filter(|txn| txn.status() != Status::Aborted) {
            let is_kept = keep.binary_search(&transaction.id()).is_ok();
            if !is_kept && transaction.status() == Status::Unknown {
                let ever = ever.get_or_insert_with(|| ever_left(history));
                if contradicts_itself(history, transaction, ryow, passed)
                    || is_baseless(history, transaction, passed, ever)
                {
                    continue; // nobody saw anything of it
                }
            }
            later.overwritten.clear();
            later.written.clear();
            // From the last operation to the first, to know what is overwritten later.
            for op in transaction.op_ids().rev() {
                others.note(history, history.primitive(op), is_kept, &mut later);
            }
        }
        others
    }

    /// Whether nothing can have left a list to somebody who wrote nothing there.
    fn is_unfinished(&self, history: &History, key: KeyId, elements: &[ValueId]) -> bool {
        let Some(last) = elements.last() else { return false };
        let ends = |value: ValueId| Content::of(history.values(), value).elements().last() == Some(last);
        !self.last.contains(&(key, *last))
            && !ends(history.initial_value(key))
            && !self.anywhere.iter().any(|&value| ends(value))
    }

    /// Whether some write can have brought an element into a list of the key.
    fn provided(&self, history: &History, key: KeyId, element: ValueId) -> bool {
        let holds = |value: ValueId| Content::of(history.values(), value).elements().contains(&element);
        self.elements.contains(&(key, element))
            || self.kept_elements.contains(&(key, element))
            || self.in_writes.contains(&(key, element))
            || holds(history.initial_value(key))
            || self.anywhere.iter().any(|&value| holds(value))
    }

    fn note(&mut self, history: &History, operation: Primitive<'_>, is_kept: bool, later: &mut Later) {
        match operation {
            Primitive::Append { key, value } => {
                let used = &mut self.keys[key];
                if !used.matters {
                    return;
                }
                used.appended = true;
                used.by_kept |= is_kept;
                used.by_others |= !is_kept;
                let elements = if is_kept { &mut self.kept_elements } else { &mut self.elements };
                elements.insert((key, value));
                if later.written.insert(key) {
                    self.last.insert((key, value));
                }
            }
            _ => match written(history, operation) {
                Written::Nothing => {}
                Written::Key(key, value) => self.overwrite(history, key, value, is_kept, later),
                Written::Keys(keys, value) => {
                    keys.iter().for_each(|&key| self.overwrite(history, key, value, is_kept, later));
                }
                Written::Somewhere(value) => self.anywhere.push(value),
            },
        }
    }

    fn overwrite(&mut self, history: &History, key: KeyId, value: ValueId, is_kept: bool, later: &mut Later) {
        let used = &mut self.keys[key];
        if !used.matters {
            return;
        }
        used.overwritten = true;
        used.by_kept |= is_kept;
        used.by_others |= !is_kept;
        let content = Content::of(history.values(), value);
        self.in_writes.extend(content.elements().iter().map(|&element| (key, element)));
        if later.written.insert(key)
            && let Some(&last) = content.elements().last()
        {
            self.last.insert((key, last));
        }
        if later.overwritten.insert(key) && !is_kept {
            self.values.insert((key, value));
        }
    }
}

/// Everything that a transaction can have left to others; [`ValueId::UNKNOWN`] at keys where more may have been.
fn ever_left(history: &History) -> FxHashSet<(KeyId, ValueId)> {
    let mut ever = FxHashSet::default();
    let mut anywhere = false;
    let mut later: FxHashSet<KeyId> = FxHashSet::default();
    for transaction in history.transactions().filter(|txn| txn.status() != Status::Aborted) {
        later.clear();
        for operation in transaction.op_ids().rev().map(|op| history.primitive(op)) {
            let mut leave = |key: KeyId, value: ValueId| {
                if later.insert(key) {
                    ever.insert((key, value));
                }
            };
            match (operation, written(history, operation)) {
                (Primitive::Append { key, .. }, _) => drop(ever.insert((key, ValueId::UNKNOWN))),
                (_, Written::Nothing) => {}
                (_, Written::Key(key, value)) => leave(key, value),
                (_, Written::Keys(keys, value)) => keys.iter().for_each(|&key| leave(key, value)),
                (_, Written::Somewhere(_)) => anywhere = true,
            }
        }
    }
    if anywhere {
        ever.extend(history.keys().ids().map(|key| (key, ValueId::UNKNOWN)));
    }
    ever
}

/// Whether a transaction read what nobody can have left to it: then it took no effect.
fn is_baseless(
    history: &History,
    transaction: Transaction<'_>,
    passed: &Passed<'_>,
    ever: &FxHashSet<(KeyId, ValueId)>,
) -> bool {
    let wrote_itself = |key: KeyId, value: ValueId| {
        transaction.primitives().any(|(_, operation)| match written(history, operation) {
            Written::Key(at, it) => at == key && it == value,
            Written::Keys(keys, it) => keys.contains(&key) && it == value,
            Written::Nothing | Written::Somewhere(_) => false,
        })
    };
    let mut is_baseless = false;
    for (_, operation) in transaction.primitives() {
        passed.results(operation, |key, value| {
            let value = normal(history, value);
            is_baseless |= value != normal(history, history.initial_value(key))
                && !ever.contains(&(key, value))
                && !ever.contains(&(key, ValueId::UNKNOWN))
                && !wrote_itself(key, value);
        });
    }
    is_baseless
}

/// What a transaction does after the operation that is looked at.
#[derive(Default)]
struct Later {
    overwritten: FxHashSet<KeyId>,
    /// Or appended to.
    written: FxHashSet<KeyId>,
}

/// What an operation overwrites, as far as its record tells. Empty lists are absent.
enum Written<'h> {
    Nothing,
    Key(KeyId, ValueId),
    Keys(&'h [KeyId], ValueId),
    /// Nobody knows which keys.
    Somewhere(ValueId),
}

fn written<'h>(history: &History, operation: Primitive<'h>) -> Written<'h> {
    match operation {
        Primitive::Write { key, value } => Written::Key(key, normal(history, value)),
        Primitive::WriteIf(WriteIf { set, keys: Some(keys), .. }) => {
            Written::Keys(keys, normal(history, set))
        }
        Primitive::WriteIf(WriteIf { count: Some(0), .. }) => Written::Nothing,
        Primitive::WriteIf(WriteIf { set, .. }) => Written::Somewhere(normal(history, set)),
        Primitive::Read { .. } | Primitive::Append { .. } | Primitive::Show { .. } => Written::Nothing,
    }
}

/// An empty list is the same as nothing.
fn normal(history: &History, value: ValueId) -> ValueId {
    match Seen::of(history.values(), value) {
        Seen::Absent => ValueId::ABSENT,
        _ => value,
    }
}

struct Cut<'h> {
    history: &'h History,
    copier: Copier<'h>,
    ryow: Ryow,
    /// `None` if nobody is left out.
    others: Option<Others>,
    passed: Passed<'h>,
    builder: Builder,
}

impl Cut<'_> {
    /// Whether anything is asked of a key.
    fn matters(&self, key: KeyId) -> bool {
        self.others.as_ref().is_none_or(|others| others.keys[key].matters)
    }

    fn transaction(&mut self, transaction: Transaction<'_>) {
        let session = self.builder.session(self.history.sessions().get(transaction.session()));
        self.builder.begin(session);
        self.builder.set_status(transaction.status());
        if let Some(span) = transaction.client() {
            self.builder.set_client(span).expect("the whole has it in order");
        }
        let as_it_is =
            self.others.is_none() || contradicts_itself(self.history, transaction, self.ryow, &self.passed);
        for (op, operation) in transaction.ops() {
            match self.history.primitive(op) {
                Primitive::Write { .. } | Primitive::Append { .. } => {
                    self.copier.operation(operation, &mut self.builder);
                }
                _ if as_it_is => self.copier.operation(operation, &mut self.builder),
                weaker => self.weaken(transaction.id(), weaker),
            }
        }
        self.builder.end().expect("a part is no longer than the whole and names no transaction");
    }

    /// What is left of an operation when others are left out.
    fn weaken(&mut self, txn: TxnId, operation: Primitive<'_>) {
        match operation {
            Primitive::Write { .. } | Primitive::Append { .. } => {}
            Primitive::WriteIf(write) => {
                // What a single key was found to hold is a read where reads see own writes; else it is let go.
                if let WriteIf { key: Some(key), test: Test::Is(expected), keys: Some([_]), .. } = write
                    && self.ryow == Ryow::Must
                    && let Some(found) = self.seen(key, expected)
                {
                    let key = self.key(key);
                    self.builder.read(key, found, Lock::None);
                }
                let value = self.value(normal(self.history, write.set));
                for &key in write.keys.unwrap_or_default() {
                    let key = self.key(key);
                    self.builder.write(key, value);
                }
            }
            Primitive::Read { .. } | Primitive::Show { .. } => {
                let mut results = Vec::new();
                self.passed.results(operation, |key, value| results.push((key, value)));
                for (key, value) in results {
                    let seen = match self.is_impossible(txn, key, value) {
                        true => Some(self.value(value)),
                        false => self.seen(key, value),
                    };
                    if let Some(seen) = seen {
                        let key = self.key(key);
                        self.builder.read(key, seen, Lock::None);
                    }
                }
            }
        }
    }

    /// Rule 4: a list that nothing explains.
    fn is_impossible(&self, txn: TxnId, key: KeyId, value: ValueId) -> bool {
        let Some(others) = &self.others else { return false };
        let Seen::List(elements) = Seen::of(self.history.values(), value) else { return false };
        let nobody = |element: &ValueId| !others.provided(self.history, key, *element);
        let can_have_written = |operation: Primitive<'_>| match operation {
            Primitive::Append { key: at, .. } => at == key,
            _ => match written(self.history, operation) {
                Written::Nothing => false,
                Written::Key(at, _) => at == key,
                Written::Keys(keys, _) => keys.contains(&key),
                Written::Somewhere(_) => true,
            },
        };
        let wrote_itself =
            || self.history.transaction(txn).primitives().any(|(_, operation)| can_have_written(operation));
        elements.iter().any(nobody) || others.is_unfinished(self.history, key, elements) && !wrote_itself()
    }

    /// What a read of a key may still claim to have seen, if anything.
    fn seen(&mut self, key: KeyId, value: ValueId) -> Option<ValueId> {
        let Some(others) = &self.others else { return Some(self.value(value)) };
        let seen = normal(self.history, value);
        let used = others.keys[key];
        if !used.by_kept && seen == normal(self.history, self.history.initial_value(key)) {
            // Nobody in the part changes the key: every order gives this.
            return None;
        }
        let overwritten = used.overwritten || !others.anywhere.is_empty();
        let left_by_others = || others.values.contains(&(key, seen)) || others.anywhere.contains(&seen);
        let stays = match Seen::of(self.history.values(), seen) {
            Seen::List(elements) if used.appended && !overwritten => {
                return self.seen_list(key, value, elements);
            }
            Seen::List(_) if used.appended => !used.by_others && others.anywhere.is_empty(),
            _ => !left_by_others(),
        };
        stays.then(|| self.value(value))
    }

    /// Rule 3: what is left of a list.
    fn seen_list(&mut self, key: KeyId, value: ValueId, elements: &[ValueId]) -> Option<ValueId> {
        let others = self.others.as_ref()?;
        let initial = self.history.initial_value(key);
        let before = Content::of(self.history.values(), initial);
        let appended = match elements.strip_prefix(before.elements()) {
            // What was there at first, or nothing that appends make.
            None | Some([]) => return Some(self.value(value)),
            Some(appended) => appended,
        };
        let is_kept = |it: &ValueId| others.kept_elements.contains(&(key, *it));
        let is_other = |it: &ValueId| others.elements.contains(&(key, *it));
        if appended.iter().any(|it| is_kept(it) && is_other(it)) {
            return None;
        }
        let left: Vec<ValueId> = appended.iter().copied().filter(is_kept).collect();
        Some(self.list(initial, before.elements(), &left))
    }

    /// The initial content with elements added.
    fn list(&mut self, initial: ValueId, before: &[ValueId], added: &[ValueId]) -> ValueId {
        if added.is_empty() {
            return self.value(initial);
        }
        let elements: Vec<ValueId> = before.iter().chain(added).map(|&element| self.value(element)).collect();
        self.builder.list(&elements)
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
    use isolation::{Level, Options, Rule, Verdict};
    use oracle::oracle;
    use oracle::tiny::{Datum, Random, Shape, Sketch, SketchOp, shrink};

    fn levels() -> [Level; 4] {
        let level = |rule, (session, realtime)| Level::new(rule, session, realtime);
        [
            level(Rule::Serializable, (false, false)),
            level(Rule::Serializable, (true, true)),
            level(Rule::SnapshotIsolation, (true, false)),
            level(Rule::SnapshotIsolation, (true, true)),
        ]
    }

    fn accepts(history: &History, level: Level, options: &Options) -> bool {
        match oracle(history, level, options) {
            Ok(Verdict::Accepted(_)) => true,
            Ok(Verdict::Violated(_)) => false,
            other => panic!("a tiny history is always decided, not {other:?}"),
        }
    }

    /// The transactions of a set of bits.
    fn chosen(history: &History, set: u64) -> Vec<TxnId> {
        history.transactions().map(|txn| txn.id()).filter(|txn| set >> txn.0 & 1 == 1).collect()
    }

    fn part_is_lost(history: &History, set: u64, level: Level, options: &Options) -> bool {
        let part = part(history, &chosen(history, set), options.ryow);
        accepts(history, level, options) && !accepts(&part.history, level, options)
    }

    /// A history has an explanation, and a part of it has none: never.
    fn every_part_is_sound(shape: &Shape, seeds: u64) {
        let seeds = 0..seeds * if std::env::var_os("TAIPAN_LONG").is_some() { 20 } else { 1 };
        for ryow in [Ryow::Must, Ryow::May, Ryow::Never] {
            let options = Options { ryow, ..Options::default() };
            let shape = shape.clone().with_ryow(ryow);
            for seed in seeds.clone() {
                let mut random = Random::new(seed);
                let history = with_lists_everywhere(shape.sketch(seed), &mut random).build();
                for level in levels() {
                    if !accepts(&history, level, &options) {
                        continue;
                    }
                    let sets = (0..4)
                        .map(|_| random.bits())
                        .find(|&set| part_is_lost(&history, set, level, &options));
                    if sets.is_some() {
                        fail(&history, level, &options, seed);
                    }
                }
            }
        }
    }

    fn fail(history: &History, level: Level, options: &Options, seed: u64) {
        let lost = |history: &History| {
            (0..1 << history.len()).find(|&set| part_is_lost(history, set, level, options))
        };
        let small = shrink(history, |smaller| lost(smaller).is_some());
        let keep = chosen(&small, lost(&small).unwrap_or_default());
        let part = part(&small, &keep, options.ryow);
        panic!(
            "seed {seed} at {level}, {:?}: the part {keep:?} of\n{}has no explanation:\n{}",
            options.ryow,
            notation::to_string(&small),
            notation::to_string(&part.history)
        );
    }

    /// Empty lists where nothing is, and lists among initial and written values.
    fn with_lists_everywhere(mut sketch: Sketch, random: &mut Random) -> Sketch {
        for (_, value) in &mut sketch.initial {
            if random.chance(20) {
                *value = Datum::List(vec![value.clone()]);
            }
        }
        for operation in sketch.transactions.iter_mut().flat_map(|txn| &mut txn.ops) {
            match operation {
                SketchOp::Read { value, .. } if *value == Datum::Absent && random.chance(30) => {
                    *value = Datum::List(Vec::new());
                }
                SketchOp::Write { value, .. } if random.chance(3) => {
                    *value = Datum::List(vec![value.clone()])
                }
                _ => {}
            }
        }
        sketch
    }

    #[test]
    fn of_registers() {
        every_part_is_sound(&Shape { initial: 60, ..Shape::registers() }, 600);
        every_part_is_sound(&Shape { unique_values: 0, keys_max: 2, ..Shape::registers() }, 600);
    }

    #[test]
    fn of_lists() {
        every_part_is_sound(&Shape { initial: 60, ..Shape::lists() }, 600);
        every_part_is_sound(&Shape { unique_values: 0, keys_max: 2, initial: 60, ..Shape::lists() }, 600);
    }

    #[test]
    fn of_every_kind_of_operation() {
        for shape in [Shape::ranges(), Shape::predicates(), Shape::everything()] {
            every_part_is_sound(&shape, 400);
        }
    }

    /// Whoever contradicts itself is a core of its own; with everybody kept nothing changes.
    #[test]
    fn parts_still_say_something() {
        let mut alone = 0;
        for (seed, shape) in
            (0..400).flat_map(|seed| [(seed, Shape::registers()), (seed, Shape::everything())])
        {
            let history = shape.history(seed);
            let all: Vec<TxnId> = history.transactions().map(|txn| txn.id()).collect();
            let options = Options::default();
            for level in levels() {
                let whole = part(&history, &all, options.ryow);
                assert_eq!(accepts(&history, level, &options), accepts(&whole.history, level, &options));
            }
            let single = |txn: &TxnId| {
                let part = part(&history, &[*txn], options.ryow);
                !accepts(&part.history, Level::SNAPSHOT_ISOLATION, &options)
            };
            alone += all.iter().filter(|txn| single(txn)).count();
        }
        assert!(alone > 100, "only {alone} transactions are a core of their own");
    }
}
