//! What keys may hold, also what no client ever saw.
//!
//! *What*: most contents of keys are values of the history. Two kinds are not: a value that was written and not recorded,
//! and a list that appends built and nobody read. They get ids behind those of the history's values, so that everything
//! behind this stage compares ids and nothing else.
//!
//! ```text
//!   read [1 2 3]     absent -1-> [1] -2-> [1 2] -3-> [1 2 3]        [1] and [1 2] are contents, too
//!   whatever else appends build is the one list that nobody saw; appending to it changes nothing
//! ```
//!
//! *Invariant*: the contents of an open list key are closed under taking the last element off, so a list outside them
//! never grows into one that was seen.
//!
//! *Cost*: the elements of the lists read, for keys whose lists do not show their own order ([`ListKind::Open`]).
//! *Source*: Boomslang (Zhang, Mu and Tan 2026) §5 (what cannot be inferred is an open question).

use crate::lists::{self, normal};
use history::{Area, History, Id, KeyId, Primitive, Row, Status, Test, ValueId, ValueRef, WriteIf};
use isolation::{Budget, Ryow, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};

/// How a key's lists are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListKind {
    /// Nothing is appended to it.
    None,
    /// It is only appended to, every element once: the longest list shows the order ([`crate::lists`]).
    Plain,
    /// What an append built is an open question.
    Open,
}

/// What keys may hold.
pub struct Contents<'h> {
    history: &'h History,
    kinds: Vec<ListKind>,
    /// Whether some key's lists are open for another reason than that nobody certain read the longest.
    has_rebuilt_lists: bool,
    /// What appending an element makes of a key's content.
    longer: FxHashMap<(KeyId, ValueId, ValueId), ValueId>,
    /// What an open list key may hold, beside nothing and what it started with.
    of_key: FxHashMap<u32, Vec<ValueId>>,
    /// The first id that is no value of the history: what was written and not recorded.
    hidden: u32,
    next: u32,
}

impl<'h> Contents<'h> {
    /// What the keys of a history hold.
    pub fn of(history: &'h History, ryow: Ryow, budget: &Budget) -> Result<Self, Undecided> {
        let hidden = history.values().len() as u32;
        let (kinds, has_rebuilt_lists) = kinds(history, ryow, budget)?;
        let mut contents = Self {
            history,
            kinds,
            has_rebuilt_lists,
            longer: FxHashMap::default(),
            of_key: FxHashMap::default(),
            hidden,
            next: hidden + 2,
        };
        contents.insert_lists(budget)?;
        Ok(contents)
    }

    /// What kind of list a key holds.
    #[inline]
    pub fn kind(&self, key: KeyId) -> ListKind {
        self.kinds[key.index()]
    }

    /// Whether some key's lists are an open question.
    pub(crate) fn has_open_lists(&self) -> bool {
        !self.of_key.is_empty()
    }

    /// Whether some key is appended to that is also overwritten, starts with a single value, or gets an element twice.
    pub fn has_rebuilt_lists(&self) -> bool {
        self.has_rebuilt_lists
    }

    /// What an open list key may hold, beside nothing and what it started with.
    pub fn of_key(&self, key: KeyId) -> &[ValueId] {
        self.of_key.get(&key.0).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn open_keys(&self) -> impl Iterator<Item = (KeyId, &[ValueId])> {
        self.of_key.iter().map(|(&key, contents)| (KeyId(key), contents.as_slice()))
    }

    /// The content that a write leaves.
    pub fn written(&self, value: ValueId) -> ValueId {
        if value.is_known() { normal(self.history, value) } else { ValueId(self.hidden) }
    }

    /// The list that nobody saw.
    fn unseen(&self) -> ValueId {
        ValueId(self.hidden + 1)
    }

    /// What appending an element makes of a key's content.
    pub fn append(&self, key: KeyId, content: ValueId, element: ValueId) -> ValueId {
        self.longer.get(&(key, content, element)).copied().unwrap_or(self.unseen())
    }

    /// Whether a test holds of a key with this content.
    pub fn holds(&self, test: Test<'_>, content: ValueId) -> bool {
        if content.as_inline().is_some() || content.0 < self.hidden || !content.is_known() {
            return test.holds(self.history.values(), content);
        }
        match test {
            Test::Present => true,
            // Such a content is none of the values that anybody names; but a list that was asked for has an id here.
            Test::Is(_) => false,
            Test::Where(_) => content.0 > self.hidden && holds_of_unseen(self.history, test),
        }
    }

    /// Every list that a client saw, wrote or asked for on an open key, and its beginnings.
    fn insert_lists(&mut self, budget: &Budget) -> Result<(), Undecided> {
        if !self.kinds.contains(&ListKind::Open) {
            return Ok(());
        }
        let meter = budget.meter();
        let mut lists: Vec<(KeyId, ValueId)> = Vec::new();
        let mut written: Vec<(KeyId, ValueId)> = Vec::new();
        let mut set: Vec<ValueId> = vec![self.unseen()];
        let mut constants: FxHashSet<ValueId> = FxHashSet::default();
        let mut add = |key: KeyId, value: ValueId| {
            if self.kinds[key.index()] == ListKind::Open && is_list(self.history, value) {
                lists.push((key, value));
            }
        };
        self.history.initial().iter().for_each(|row| add(row.key, row.value));
        for operation in effective(self.history) {
            meter.step()?;
            match operation {
                Primitive::Read { key, value, .. } => add(key, value),
                Primitive::Write { key, value } => {
                    add(key, value);
                    written.push((key, self.written(value)));
                }
                Primitive::Append { .. } => {}
                Primitive::Show { area, .. } => {
                    operation.rows().iter().for_each(|row: &Row| add(row.key, row.value));
                    if let Area::Where(predicate) = area {
                        constants.extend(Test::Where(predicate).constants());
                    }
                }
                Primitive::WriteIf(WriteIf { key: Some(key), test, set, .. }) => {
                    test.constants().chain([set]).for_each(|value| add(key, value));
                    written.push((key, self.written(set)));
                }
                Primitive::WriteIf(WriteIf { key: None, test, set: value, .. }) => {
                    constants.extend(test.constants());
                    if value != ValueId::ABSENT {
                        constants.insert(value);
                        set.push(self.written(value));
                    }
                }
            }
        }
        constants.retain(|&constant| is_list(self.history, constant));
        let open = (0..self.kinds.len() as u32).filter(|&key| self.kinds[key as usize] == ListKind::Open);
        for key in open.map(KeyId) {
            meter.steps(1 + constants.len() + set.len())?;
            lists.extend(constants.iter().map(|&constant| (key, constant)));
            self.of_key.insert(key.0, set.clone());
        }
        for (key, content) in written {
            self.of_key.entry(key.0).and_modify(|contents| contents.push(content));
        }
        // Shorter lists first: the end of a list is not yet there as the beginning of another.
        lists.sort_unstable_by_key(|&(key, value)| (self.history.values().elements(value).len(), key, value));
        lists.dedup();
        for (key, list) in lists {
            meter.steps(self.history.values().elements(list).len())?;
            self.insert_list(key, list);
        }
        for contents in self.of_key.values_mut() {
            meter.steps(contents.len())?;
            contents.sort_unstable();
            contents.dedup();
        }
        Ok(())
    }

    fn insert_list(&mut self, key: KeyId, list: ValueId) {
        let elements = self.history.values().elements(list);
        let mut at = ValueId::ABSENT;
        for (place, &element) in elements.iter().enumerate() {
            let is_last = place + 1 == elements.len();
            at = *self.longer.entry((key, at, element)).or_insert_with(|| {
                if is_last {
                    return list;
                }
                self.next += 1;
                ValueId(self.next - 1)
            });
            // A scalar that is appended to becomes the first element.
            if place == 1 && is_scalar(self.history, elements[0]) {
                self.longer.insert((key, elements[0], element), at);
            }
            if let Some(contents) = self.of_key.get_mut(&key.0) {
                contents.push(at);
            }
        }
    }
}

fn effective(history: &History) -> impl Iterator<Item = Primitive<'_>> {
    let effective = history.transactions().filter(|it| it.status() != Status::Aborted);
    effective.flat_map(|transaction| transaction.primitives()).map(|(_, operation)| operation)
}

fn is_list(history: &History, value: ValueId) -> bool {
    value.is_known() && !history.values().elements(value).is_empty()
}

fn is_scalar(history: &History, value: ValueId) -> bool {
    value.is_known() && !matches!(history.values().get(value), ValueRef::Null | ValueRef::List(_))
}

/// Whether a test holds of a list that equals none of its constants.
fn holds_of_unseen(history: &History, test: Test<'_>) -> bool {
    test.holds_of_list(history.values(), |_| false)
}

/// Whether a test may hold of some list.
fn may_hold_of_lists(history: &History, test: Test<'_>) -> bool {
    holds_of_unseen(history, test) || test.constants().any(|constant| is_list(history, constant))
}

/// How the lists of each key are looked at: those show their order that are only appended to, every element once, and
/// of which a transaction that certainly took effect read the longest. Whether some are open for another reason than this
/// last one, too.
fn kinds(history: &History, ryow: Ryow, budget: &Budget) -> Result<(Vec<ListKind>, bool), Undecided> {
    let meter = budget.meter();
    let mut kinds = vec![ListKind::None; history.keys().len()];
    let mut seen: FxHashSet<(KeyId, ValueId)> = FxHashSet::default();
    for operation in effective(history) {
        meter.step()?;
        let Primitive::Append { key, value } = operation else { continue };
        let kind = &mut kinds[key.index()];
        if *kind == ListKind::None {
            *kind = match lists::elements(history, normal(history, history.initial_value(key))) {
                Some(elements) => {
                    seen.extend(elements.iter().map(|&element| (key, element)));
                    ListKind::Plain
                }
                None => ListKind::Open,
            };
        }
        if !seen.insert((key, value)) {
            *kind = ListKind::Open;
        }
    }
    if seen.is_empty() {
        let is_rebuilt = kinds.contains(&ListKind::Open);
        return Ok((kinds, is_rebuilt));
    }
    let open = |kind: &mut ListKind| {
        if *kind == ListKind::Plain {
            *kind = ListKind::Open;
        }
    };
    for operation in effective(history) {
        match operation {
            Primitive::Write { key, .. } | Primitive::WriteIf(WriteIf { key: Some(key), .. }) => {
                open(&mut kinds[key.index()]);
            }
            Primitive::Show { area: Area::Where(predicate), .. }
                if may_hold_of_lists(history, Test::Where(predicate)) =>
            {
                meter.steps(kinds.len())?;
                kinds.iter_mut().for_each(open);
            }
            Primitive::WriteIf(WriteIf { test, .. }) if may_hold_of_lists(history, test) => {
                meter.steps(kinds.len())?;
                kinds.iter_mut().for_each(open);
            }
            Primitive::WriteIf(WriteIf { keys: Some(keys), .. }) => {
                keys.iter().for_each(|key| open(&mut kinds[key.index()]));
            }
            _ => {}
        }
    }
    let is_rebuilt = kinds.contains(&ListKind::Open);
    for key in longest_is_doubtful(history, ryow) {
        open(&mut kinds[key.index()]);
    }
    budget.check()?;
    Ok((kinds, is_rebuilt))
}

/// The keys of which a transaction of unknown outcome may have read a longer list than any other.
fn longest_is_doubtful(history: &History, ryow: Ryow) -> Vec<KeyId> {
    if history.transactions().all(|it| it.status() != Status::Unknown) {
        return Vec::new();
    }
    let mut certain: FxHashMap<KeyId, usize> = FxHashMap::default();
    let mut doubtful: FxHashMap<KeyId, usize> = FxHashMap::default();
    for transaction in history.transactions().filter(|it| it.status() != Status::Aborted) {
        let is_certain = transaction.status() == Status::Committed;
        let mut own: FxHashMap<KeyId, usize> = FxHashMap::default();
        let mut note = |key: KeyId, value: ValueId, own: &FxHashMap<KeyId, usize>| {
            if !value.is_known() {
                return;
            }
            let len = history.values().elements(value).len();
            let mine = own.get(&key).copied().unwrap_or(0);
            let (longest, len) = match is_certain {
                true => (&mut certain, len.saturating_sub(mine)),
                false if ryow == Ryow::Must => (&mut doubtful, len.saturating_sub(mine)),
                false => (&mut doubtful, len),
            };
            let longest = longest.entry(key).or_default();
            *longest = len.max(*longest);
        };
        for (_, operation) in transaction.primitives() {
            match operation {
                Primitive::Append { key, .. } => *own.entry(key).or_default() += 1,
                Primitive::Read { key, value, .. } => note(key, value, &own),
                Primitive::Show { area: Area::Range { .. }, rows: Some(rows) } => {
                    rows.iter().for_each(|row| note(row.key, row.value, &own));
                }
                _ => {}
            }
        }
    }
    let longest = |key: &KeyId| certain.get(key).copied().unwrap_or(0);
    doubtful.iter().filter(|(key, len)| **len > longest(key)).map(|(&key, _)| key).collect()
}
