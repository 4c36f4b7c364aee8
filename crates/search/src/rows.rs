//! Operations on many keys, key by key.
//!
//! *What*: a scan, an iterator or a query says something about every key that it visited: the row it returned, or
//! that there was none. A predicate write whose keys were reported says which keys satisfied its predicate. Taken
//! apart like that, they are reads of single keys, some of which only *claim* something about the value they saw,
//! and everything behind this stage knows nothing else.
//!
//! ```text
//!   scan(a..d)=[b:3]        a absent        b = 3         c absent
//!   q(v>=2)=[b:3]           a not v>=2      b = 3         c not v>=2
//!   u(v>=2 -> 0) on b       a not v>=2      b v>=2, then b := 0
//! ```
//!
//! *Invariant*: a key about which nothing is said could not have satisfied the predicate, whatever happened.
//!
//! *Cost*: the keys visited; for a predicate, the values that satisfy it and the keys that may ever hold them.
//! *Source*: Vbox §3.1 (predicate reads as truths about keys); Boomslang (Zhang, Mu and Tan 2026) §A.4 (iterators).

use crate::contents::Contents;
use history::{
    Area, ColumnId, Comparison, History, Id, KeyId, NameRef, OpId, Predicate, Primitive, Range, Row, Status,
    Test, ValueId, ValueRef, Values, WriteIf,
};
use isolation::{Budget, Meter, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Ordering;

/// What an operation says about a value that it did not return.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'h> {
    /// What is said of the keys.
    pub test: Test<'h>,
    pub(crate) truth: bool,
    /// The operation that says it.
    pub op: OpId,
}

impl Claim<'_> {
    /// Whether an item was read: a key was asked for by name, or its row satisfied the test.
    pub fn is_shown(&self) -> bool {
        self.truth || self.is_of_item()
    }

    /// Whether a key was asked for by name: some version of it was read, even if any would do.
    pub fn is_of_item(&self) -> bool {
        matches!(self.test, Test::Is(_))
    }

    /// Whether a value is as claimed. The value of an append is unknown, and present.
    pub fn accepts(&self, contents: &Contents<'_>, value: ValueId) -> bool {
        contents.holds(self.test, value) == self.truth
    }
}

/// Whether an operation is about many keys.
pub fn is_about_many(operation: &Primitive<'_>) -> bool {
    operation.key().is_none()
}

/// Whether some operation is more than a read, a write or an append of one key: it may say something of values that it
/// did not return.
pub fn has_claims(history: &History) -> bool {
    history.transactions().flat_map(|it| it.op_ids()).any(|op| history.point(op).is_none())
}

/// What an operation on many keys saw at a key: [`ValueId::ABSENT`] if there is no row.
pub fn row_of(operation: &Primitive<'_>, key: KeyId) -> ValueId {
    match operation {
        Primitive::Show { rows: Some(rows), .. } => {
            rows.iter().find(|row| row.key == key).map_or(ValueId::ABSENT, |row| row.value)
        }
        _ => ValueId::UNKNOWN,
    }
}

/// The keys and values that an operation returned.
pub fn returned<'h>(operation: &Primitive<'h>) -> impl Iterator<Item = (KeyId, ValueId)> + use<'h> {
    let one = match *operation {
        Primitive::Read { key, value } => Some((key, value)),
        Primitive::WriteIf(WriteIf { key: Some(key), test: Test::Is(value), keys: Some([_]), .. }) => {
            Some((key, value))
        }
        _ => None,
    };
    let rows = operation.rows().iter().map(|row| (row.key, row.value));
    one.into_iter().chain(rows).filter(|(_, value)| value.is_known())
}

/// A key of which an operation on many keys returned two rows, or which it changed twice.
pub fn twice(operation: &Primitive<'_>) -> Option<KeyId> {
    let mut keys = named(operation);
    keys.sort_unstable();
    keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

/// The keys that an operation on many keys returned or changed.
pub fn named(operation: &Primitive<'_>) -> Vec<KeyId> {
    match *operation {
        Primitive::Show { rows: Some(rows), .. } => rows.iter().map(|row| row.key).collect(),
        Primitive::WriteIf(WriteIf { keys: Some(keys), .. }) => keys.to_vec(),
        _ => Vec::new(),
    }
}

/// The predicate of an operation that asks every key.
pub fn predicate_of<'h>(operation: &Primitive<'h>) -> Option<&'h Predicate> {
    match *operation {
        Primitive::Show { area: Area::Where(predicate), .. }
        | Primitive::WriteIf(WriteIf { key: None, test: Test::Where(predicate), .. }) => Some(predicate),
        _ => None,
    }
}

/// The keys of a history in their order, and what they may ever hold.
pub(crate) struct Universe {
    sorted: Vec<KeyId>,
    ranks: Vec<u32>,
    /// Whether it is known which key may hold what.
    says_who: bool,
    /// The keys that may ever hold each value.
    holders: Vec<(ValueId, Vec<KeyId>)>,
    /// For each column that predicates compare with numbers: the numbers there, ascending, and whose they are.
    columns: FxHashMap<ColumnId, Vec<(ValueId, u32)>>,
}

impl Universe {
    /// `None` where every operation is a point. Where it does not `say_who`, every key may hold anything.
    pub(crate) fn of(
        history: &History,
        contents: &Contents<'_>,
        say_who: bool,
        budget: &Budget,
    ) -> Result<Option<Self>, Undecided> {
        if !has_claims(history) {
            return Ok(None);
        }
        let operations =
            || history.transactions().flat_map(|it| it.primitives()).map(|(_, operation)| operation);
        let ranks = history.keys().ranks();
        let mut sorted: Vec<KeyId> = history.keys().ids().collect();
        sorted.sort_unstable_by_key(|key| ranks[key.index()]);
        let asks = |it: Primitive<'_>| predicate_of(&it).is_some() || it.is_open_write();
        let by_predicate = say_who && operations().any(asks);
        let holders = if by_predicate { holders(history, contents, budget)? } else { Vec::new() };
        let mut columns = FxHashMap::default();
        let meter = budget.meter();
        for operation in operations() {
            meter.step()?;
            if let Some(predicate) = predicate_of(&operation)
                && let Some(Interval { column, .. }) = Interval::of(history.values(), predicate)
            {
                columns.entry(column).or_insert_with(|| numbers(history.values(), &holders, column));
            }
        }
        Ok(Some(Self { sorted, ranks, says_who: say_who, holders, columns }))
    }

    /// The values that may satisfy a predicate, by their place in `holders`.
    fn candidates(&self, values: &Values, predicate: &Predicate) -> Vec<u32> {
        let Some(interval) = Interval::of(values, predicate) else {
            return (0..self.holders.len() as u32).collect();
        };
        let Some(numbers) = self.columns.get(&interval.column) else { return Vec::new() };
        let is_before = |number: ValueId| {
            let from = interval.from.map(|from| values.compare(number, from));
            from.is_some_and(|order| order == Some(Ordering::Less))
        };
        let is_behind = |number: ValueId| {
            let to = interval.to.map(|to| values.compare(number, to));
            to.is_some_and(|order| order == Some(Ordering::Greater))
        };
        let start = numbers.partition_point(|&(number, _)| is_before(number));
        let end = numbers.partition_point(|&(number, _)| !is_behind(number)).max(start);
        numbers[start..end].iter().map(|&(_, place)| place).collect()
    }

    fn rank(&self, key: KeyId) -> u32 {
        self.ranks[key.index()]
    }

    /// What rows of a range say about each key visited, in the order of keys; `None` if no store returns such rows.
    pub(crate) fn visited(
        &self,
        range: Range,
        reverse: bool,
        to_the_end: bool,
        rows: &[Row],
    ) -> Option<Vec<(KeyId, ValueId)>> {
        let start = range.from.map_or(0, |from| self.rank(from) as usize);
        let end = range.to.map_or(self.sorted.len(), |to| self.rank(to) as usize).max(start);
        let ascending = |pair: &[Row]| (self.rank(pair[0].key) < self.rank(pair[1].key)) != reverse;
        let inside = |row: &Row| (start..end).contains(&(self.rank(row.key) as usize));
        if !rows.iter().all(inside) || !rows.windows(2).all(ascending) {
            return None;
        }
        // An iterator that was left before its end says nothing about what lies behind its last row.
        let (start, end) = match (to_the_end, rows.last().map(|row| self.rank(row.key) as usize)) {
            (true, _) => (start, end),
            (false, None) => (start, start),
            (false, Some(last)) if reverse => (last, end),
            (false, Some(last)) => (start, last + 1),
        };
        let mut found: Vec<(KeyId, ValueId)> =
            self.sorted[start..end].iter().map(|&key| (key, ValueId::ABSENT)).collect();
        for row in rows {
            found[self.rank(row.key) as usize - start].1 = row.value;
        }
        Some(found)
    }

    /// What each key may ever hold, beside nothing.
    pub(crate) fn contents(&self) -> Vec<Vec<ValueId>> {
        let mut contents = vec![Vec::new(); self.sorted.len()];
        for (value, keys) in &self.holders {
            for key in keys {
                contents[key.index()].push(*value);
            }
        }
        contents
    }

    /// The keys that may ever satisfy a predicate, and `more`; each once.
    pub(crate) fn concerned(
        &self,
        history: &History,
        contents: &Contents<'_>,
        predicate: &Predicate,
        more: impl Iterator<Item = KeyId>,
        meter: &Meter<'_>,
    ) -> Result<Vec<KeyId>, Undecided> {
        if !self.says_who {
            meter.steps(self.sorted.len())?;
            return Ok(self.sorted.clone());
        }
        // Many values that satisfy a predicate may be held by the same few keys.
        let mut is_in = vec![false; self.sorted.len()];
        let mut keys: Vec<KeyId> = Vec::new();
        let mut add = |key: KeyId| {
            if !std::mem::replace(&mut is_in[key.index()], true) {
                keys.push(key);
            }
        };
        for place in self.candidates(history.values(), predicate) {
            let (value, holders) = &self.holders[place as usize];
            meter.step()?;
            if contents.holds(Test::Where(predicate), *value) {
                meter.steps(holders.len())?;
                holders.iter().copied().for_each(&mut add);
            }
        }
        more.for_each(add);
        keys.sort_unstable();
        Ok(keys)
    }
}

/// Numbers between which a column must lie for a predicate to hold; both belong to it.
pub(crate) struct Interval {
    pub column: ColumnId,
    pub from: Option<ValueId>,
    pub to: Option<ValueId>,
}

impl Interval {
    /// `None` if the predicate does not ask for such.
    pub(crate) fn of(values: &Values, predicate: &Predicate) -> Option<Self> {
        match predicate {
            Predicate::Compare { column, with, constant } if is_number(values, *constant) => {
                let (from, to) = match with {
                    Comparison::Equal => (Some(*constant), Some(*constant)),
                    Comparison::Less | Comparison::LessOrEqual => (None, Some(*constant)),
                    Comparison::Greater | Comparison::GreaterOrEqual => (Some(*constant), None),
                    Comparison::NotEqual => return None,
                };
                Some(Self { column: *column, from, to })
            }
            Predicate::All(parts) => {
                let mut intervals = parts.iter().filter_map(|part| Self::of(values, part));
                let mut interval = intervals.next()?;
                for other in intervals.filter(|other| other.column == interval.column).collect::<Vec<_>>() {
                    interval.from = interval.from.or(other.from);
                    interval.to = interval.to.or(other.to);
                }
                Some(interval)
            }
            _ => None,
        }
    }
}

fn is_number(values: &Values, value: ValueId) -> bool {
    matches!(values.get(value), ValueRef::Int(_) | ValueRef::UInt(_))
        || matches!(values.get(value), ValueRef::Float(number) if !number.is_nan())
}

/// The number in a column of a content.
pub(crate) fn number_in(values: &Values, content: ValueId, column: ColumnId) -> Option<ValueId> {
    let is_scalar_column = || values.columns().get(column) == NameRef::Str("value");
    let cell = match values.get(Some(content).filter(|content| content.is_known())?) {
        ValueRef::Row(cells) => cells.iter().find(|cell| cell.column == column).map(|cell| cell.value),
        _ => is_scalar_column().then_some(content),
    };
    cell.filter(|&number| is_number(values, number))
}

/// The numbers in a column, ascending.
fn numbers(values: &Values, holders: &[(ValueId, Vec<KeyId>)], column: ColumnId) -> Vec<(ValueId, u32)> {
    let mut numbers: Vec<(ValueId, u32)> = (holders.iter().zip(0..))
        .filter_map(|((value, _), place)| Some((number_in(values, *value, column)?, place)))
        .collect();
    numbers.sort_by(|a, b| values.compare(a.0, b.0).unwrap_or(Ordering::Equal));
    numbers
}

/// Whatever was written to a key, or was there at first, it may hold; and what a predicate write sets, if its
/// predicate holds of something that the key may hold.
fn holders(
    history: &History,
    contents: &Contents<'_>,
    budget: &Budget,
) -> Result<Vec<(ValueId, Vec<KeyId>)>, Undecided> {
    let meter = budget.meter();
    let mut keys_of: FxHashMap<ValueId, FxHashSet<KeyId>> = FxHashMap::default();
    let mut open: Vec<(Test<'_>, ValueId)> = Vec::new();
    let mut add = |value: ValueId, key: KeyId| {
        let value = contents.written(value);
        if value != ValueId::ABSENT {
            keys_of.entry(value).or_default().insert(key);
        }
    };
    for row in history.initial() {
        add(row.value, row.key);
    }
    for transaction in history.transactions().filter(|it| it.status() != Status::Aborted) {
        for (_, operation) in transaction.primitives() {
            meter.step()?;
            match operation {
                Primitive::Write { key, value } => add(value, key),
                Primitive::WriteIf(WriteIf { set, keys: Some(keys), .. }) => {
                    keys.iter().for_each(|&key| add(set, key));
                }
                Primitive::WriteIf(WriteIf { key: Some(key), set, .. }) => add(set, key),
                Primitive::WriteIf(WriteIf { test, set, .. }) => open.push((test, contents.written(set))),
                _ => {}
            }
        }
    }
    for (key, lists) in contents.open_keys() {
        for &list in lists {
            keys_of.entry(list).or_default().insert(key);
        }
    }
    open.retain(|(_, set)| *set != ValueId::ABSENT);
    loop {
        let mut grown = false;
        for &(test, set) in &open {
            let mut holders = keys_of.remove(&set).unwrap_or_default();
            let before = holders.len();
            for (&value, keys) in &keys_of {
                meter.step()?;
                if contents.holds(test, value) {
                    meter.steps(keys.len())?;
                    holders.extend(keys);
                }
            }
            grown |= holders.len() > before;
            if !holders.is_empty() {
                keys_of.insert(set, holders);
            }
        }
        if !grown {
            break;
        }
    }
    let mut holders: Vec<(ValueId, Vec<KeyId>)> = Vec::with_capacity(keys_of.len());
    for (value, keys) in keys_of {
        let mut keys: Vec<KeyId> = keys.into_iter().collect();
        keys.sort_unstable();
        holders.push((value, keys));
    }
    holders.sort_unstable_by_key(|&(value, _)| value);
    Ok(holders)
}
