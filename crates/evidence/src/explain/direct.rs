//! Contradictions that need no order: what one operation returned cannot be, whatever came before what.
//!
//! *What*: looks at the operation itself and at everyone who can have made what it returned, in the whole history,
//! aborted transactions and those of unknown outcome included. So a value from an aborted writer is reported with its
//! writer, and *from nowhere* is said of what no transaction wrote only.
//!
//! *Cost*: once over the history.

use history::{
    Area, History, Id, KeyId, OpId, Primitive, Range, Row, Status, Transaction, TxnId, ValueId, WriteIf,
};
use isolation::{Argument, Case, Edge, EdgeKind, Impossible, Reason, Ryow, Supposition};
use search::lists::{self, normal};
use search::refusal::Contradiction;
use search::rows;

/// What an operation left at a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Value(ValueId),
    Element(ValueId),
}

/// What an operation left at a key, or may have left.
fn made(history: &History, operation: &Primitive<'_>, key: KeyId) -> Option<Made> {
    if !operation.may_have_written(key) {
        return None;
    }
    match *operation {
        Primitive::Append { value, .. } => Some(Made::Element(value)),
        _ => operation.written_value().map(|value| Made::Value(normal(history, value))),
    }
}

/// Whether what an operation says of a key is true of a value.
fn fits(history: &History, operation: &Primitive<'_>, key: KeyId, value: ValueId) -> bool {
    let is_row = |rows: &[Row], matches: &dyn Fn() -> bool, otherwise: bool| match rows
        .iter()
        // A row without a value says as much as no row.
        .find(|row| row.key == key && normal(history, row.value) != ValueId::ABSENT)
    {
        Some(row) if row.value.is_known() => normal(history, row.value) == value,
        Some(_) => matches(),
        None => otherwise,
    };
    let is_there = value != ValueId::ABSENT;
    match operation {
        Primitive::Read { value: seen, .. } => normal(history, *seen) == value,
        Primitive::Show { area: Area::Range { .. }, rows: Some(rows) } => {
            is_row(rows, &|| is_there, !is_there)
        }
        Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
            let holds = predicate.holds(history.values(), value);
            is_row(rows, &|| holds, !holds)
        }
        Primitive::WriteIf(it @ WriteIf { test, .. }) => it
            .changed(key)
            .is_none_or(|changed| !it.is_about(key) || changed == test.holds(history.values(), value)),
        _ => true,
    }
}

/// The value that an operation returned of a key.
fn returned(operation: &Primitive<'_>, key: KeyId) -> ValueId {
    match *operation {
        Primitive::Read { value, .. } => value,
        _ => rows::row_of(operation, key),
    }
}

/// How far the clients' clocks let a reader have seen a writer: 0 where they overlap or do not say, 1 where the writer was
/// done before, 2 where it began too late.
pub(crate) fn plausibility(writer: Transaction<'_>, reader: Transaction<'_>) -> u8 {
    match (writer.client(), reader.client()) {
        (Some(writer), Some(reader)) if writer.begin > reader.end => 2,
        (Some(writer), Some(reader)) if writer.end < reader.begin => 1,
        _ => 0,
    }
}

/// Who can have made what an operation saw at a key.
#[derive(Default)]
pub(crate) struct Sources {
    /// Whether it can have been there before the first transaction.
    pub(crate) initial: bool,
    /// Last writes of other transactions that committed or may have.
    pub(crate) fair: Vec<OpId>,
    /// Writes of others that they overwrote themselves.
    pub(crate) intermediate: Vec<OpId>,
    pub(crate) aborted: Vec<OpId>,
    /// Its own, before and afterwards.
    pub(crate) own_earlier: Option<OpId>,
    pub(crate) own_later: Vec<OpId>,
    /// An element that it holds twice.
    pub(crate) has_twice: bool,
}

impl Sources {
    /// Of what an operation says of a key.
    pub(crate) fn of(history: &History, read: OpId, key: KeyId) -> Self {
        let operation = history.primitive(read);
        let mut sources =
            Self { initial: fits(history, &operation, key, initial(history, key)), ..Self::default() };
        sources.add(history, read, key, |made| match made {
            Made::Value(value) => fits(history, &operation, key, value),
            Made::Element(_) => false,
        });
        let elements = lists::elements(history, returned(&operation, key)).unwrap_or_default();
        let is_whole = sources.initial || !sources.fair.is_empty();
        if is_whole || elements.is_empty() || !is_appended_to(history, key) {
            return sources;
        }
        Self::of_list(history, read, key, elements).unwrap_or(sources)
    }

    /// Of the elements of a list: those of the first that nobody can have appended for good, else of the last.
    fn of_list(history: &History, read: OpId, key: KeyId, elements: &[ValueId]) -> Option<Self> {
        let mut sorted = elements.to_vec();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Some(Self { has_twice: true, ..Self::default() });
        }
        let own = history.transaction(history.owner(read)).primitives().take_while(|&(op, _)| op < read);
        let own: Vec<Made> = own.filter_map(|(_, it)| made(history, &it, key)).collect();
        // Behind what others appended stand the reader's own elements.
        let end = elements.iter().rposition(|&it| !own.contains(&Made::Element(it)));
        let mut of_last = None;
        for (place, &element) in elements.iter().enumerate() {
            let sources = Self::of_element(history, read, key, element);
            // An element in the middle of a list is none that was seen too early.
            let within = end.is_some_and(|end| place < end);
            let is_fair = sources.initial || !sources.fair.is_empty() || sources.own_earlier.is_some();
            if !is_fair && (!within || sources.intermediate.is_empty()) {
                return Some(sources);
            }
            of_last = Some(sources);
        }
        of_last
    }

    /// Of one element of a list.
    fn of_element(history: &History, read: OpId, key: KeyId, element: ValueId) -> Self {
        let at_first = lists::elements(history, initial(history, key)).unwrap_or_default();
        let mut sources = Self { initial: at_first.contains(&element), ..Self::default() };
        sources.add(history, read, key, |made| match made {
            Made::Element(it) => it == element,
            Made::Value(list) => lists::elements(history, list).is_some_and(|list| list.contains(&element)),
        });
        sources
    }

    /// Of everything that an operation saw at a key and somebody made by itself: the value, or each element of a list.
    pub(crate) fn of_parts(history: &History, read: OpId, key: KeyId) -> Vec<Self> {
        let whole = Self::of(history, read, key);
        let elements = lists::elements(history, returned(&history.primitive(read), key)).unwrap_or_default();
        if elements.is_empty() || !is_appended_to(history, key) {
            return vec![whole];
        }
        elements.iter().map(|&element| Self::of_element(history, read, key, element)).collect()
    }

    fn add(&mut self, history: &History, read: OpId, key: KeyId, fits: impl Fn(Made) -> bool) {
        let reader = history.owner(read);
        for transaction in history.transactions() {
            for (op, operation) in transaction.primitives() {
                let Some(made) = made(history, &operation, key).filter(|&made| fits(made)) else { continue };
                let is_list = matches!(made, Made::Element(_));
                let overwrites = |other: &Primitive<'_>| match other {
                    Primitive::Append { .. } => other.key() == Some(key),
                    _ => !is_list && other.certainly_wrote(key),
                };
                let is_last =
                    || !transaction.primitives().any(|(later, other)| later > op && overwrites(&other));
                match transaction.status() {
                    _ if transaction.id() == reader && op > read => {
                        self.own_later.push(op);
                    }
                    _ if op == read => {}
                    _ if transaction.id() == reader => self.own_earlier = Some(op),
                    Status::Aborted => self.aborted.push(op),
                    _ if is_last() => self.fair.push(op),
                    _ => self.intermediate.push(op),
                }
            }
        }
        let how_plausible =
            |op: &OpId| plausibility(history.transaction(history.owner(*op)), history.transaction(reader));
        for ops in [&mut self.fair, &mut self.intermediate, &mut self.aborted] {
            ops.sort_by_key(how_plausible);
        }
    }

    /// Whether no transaction at all wrote it.
    fn is_nobody(&self) -> bool {
        let has_own = self.own_earlier.is_some() || !self.own_later.is_empty();
        !self.initial && self.fair.is_empty() && self.foul().next().is_none() && !has_own && !self.has_twice
    }

    /// Those of others that it must not have come from.
    fn foul(&self) -> impl Iterator<Item = OpId> {
        self.aborted.iter().chain(&self.intermediate).copied()
    }
}

fn initial(history: &History, key: KeyId) -> ValueId {
    normal(history, history.initial_value(key))
}

fn is_appended_to(history: &History, key: KeyId) -> bool {
    let mut all = history.transactions().flat_map(|it| it.primitives());
    all.any(|(_, it)| matches!(it, Primitive::Append { key: at, .. } if at == key))
}

/// The argument of a contradiction; `None` where what was seen has a fair source and the reason lies elsewhere.
pub(crate) fn of_contradiction(
    history: &History,
    contradiction: &Contradiction,
    ryow: Ryow,
) -> Option<Argument> {
    match *contradiction {
        Contradiction::Internal { op, key } => Some(internal(history, op, key)),
        Contradiction::NoSource { op, key } => no_source(history, op, key, ryow),
        Contradiction::BadRows { op } => Some(bad_rows(history, op)),
        Contradiction::BrokenList { op, key } => {
            Some(no_source(history, op, key, ryow).unwrap_or_else(|| unordered(history, op, key)))
        }
        Contradiction::IncompatibleLists { first, second, key } => {
            let of = |op| saw(history, op, key, last_appender(history, op, key));
            Some(told(vec![of(first), of(second)]))
        }
        Contradiction::NonRepeatable { .. } => None,
    }
}

fn told(edges: Vec<Edge>) -> Argument {
    Argument::new(edges, Vec::new())
}

/// A step that shows what an operation saw at a key, and whose it was.
pub(crate) fn saw(history: &History, read: OpId, key: KeyId, write: Option<OpId>) -> Edge {
    let from = write.map(|write| history.owner(write));
    let predicate = super::is_by_predicate(history, read, key);
    let reason = Reason::Saw { read, write };
    Edge { from, to: history.owner(read), kind: EdgeKind::Wr, key: Some(key), predicate, reason }
}

fn impossible(history: &History, op: OpId, why: Impossible) -> Argument {
    let key = match why {
        Impossible::Row(key) | Impossible::Own(key) | Impossible::Read(key) | Impossible::Differs(_, key) => {
            Some(key)
        }
        Impossible::Order | Impossible::Count => None,
    };
    let reason = Reason::Impossible { op, why };
    let edge = Edge { from: None, to: history.owner(op), kind: EdgeKind::Wr, key, predicate: false, reason };
    told(vec![edge])
}

/// A key of which nothing that was ever there fits what both of two operations on many keys saw.
pub(crate) fn differing(history: &History, first: OpId, second: OpId) -> Option<KeyId> {
    let operations = [history.primitive(first), history.primitive(second)];
    let mut keys: Vec<KeyId> = operations.iter().flat_map(rows::named).collect();
    keys.sort_unstable();
    keys.dedup();
    // What it wrote itself, the second sees rather than what the first saw.
    let own =
        history.transaction(history.owner(first)).primitives().take_while(|&(op, _)| op < first.max(second));
    let own: Vec<Primitive<'_>> = own.map(|(_, it)| it).collect();
    keys.retain(|&key| !own.iter().any(|it| it.certainly_wrote(key)));
    let fit = |key: KeyId, value: ValueId| {
        operations
            .iter()
            .all(|it| !(is_listed(it, key) || is_asked(history, it, key)) || fits(history, it, key, value))
    };
    let differs = |&key: &KeyId| {
        let mut all =
            history.transactions().filter(|it| it.status() != Status::Aborted).flat_map(|it| it.primitives());
        let left = |(_, it): (OpId, Primitive<'_>)| match made(history, &it, key) {
            Some(Made::Value(value)) => fit(key, value),
            _ => false,
        };
        !fit(key, initial(history, key)) && !all.any(left)
    };
    let first = keys.iter().copied().find(differs);
    first.or_else(|| {
        keys.into_iter().find(|&key| rows::row_of(&operations[0], key) != rows::row_of(&operations[1], key))
    })
}

fn is_listed(operation: &Primitive<'_>, key: KeyId) -> bool {
    rows::named(operation).contains(&key)
}

/// What fits nothing that a key can have held, or that the transaction itself did there.
pub(crate) fn unfit(history: &History, op: OpId, key: KeyId) -> Argument {
    impossible(history, op, Impossible::Own(key))
}

/// Two operations of one transaction that no state of a key fits.
pub(crate) fn different(history: &History, first: OpId, second: OpId, key: KeyId) -> Argument {
    impossible(history, second.max(first), Impossible::Differs(first.min(second), key))
}

/// A list that is in no order that its appends allow, or what has no source at all.
pub(crate) fn unordered(history: &History, op: OpId, key: KeyId) -> Argument {
    match last_appender(history, op, key).filter(|_| is_appended_to(history, key)) {
        Some(append) => told(vec![saw(history, op, key, Some(append))]),
        None => unexplained(history, op, key),
    }
}

/// A read that shows that a transaction took effect: of what it read, only that can be the source.
pub(crate) fn effect(history: &History, txn: TxnId) -> Option<Edge> {
    let committed = history.transactions().filter(|it| it.is_committed() && it.id() != txn);
    let reads = committed
        .flat_map(|it| it.primitives())
        .flat_map(|(op, it)| rows::returned(&it).map(|(key, value)| (op, key, value)).collect::<Vec<_>>());
    let own: Vec<Primitive<'_>> = history.transaction(txn).primitives().map(|(_, it)| it).collect();
    let may_show = |&(_, key, value): &(OpId, KeyId, ValueId)| {
        let value = normal(history, value);
        let elements = lists::elements(history, value).unwrap_or_default();
        own.iter().any(|it| match made(history, it, key) {
            Some(Made::Value(it)) => it == value,
            Some(Made::Element(it)) => elements.contains(&it),
            None => false,
        })
    };
    let shows = |(op, key, _): (OpId, KeyId, ValueId)| {
        let parts = Sources::of_parts(history, op, key);
        let only = parts.iter().filter(|it| !it.initial && it.own_earlier.is_none());
        let mut writes = only.filter_map(|it| if let [only] = it.fair[..] { Some(only) } else { None });
        let write = writes.find(|&write| history.owner(write) == txn)?;
        Some(saw(history, op, key, Some(write)))
    };
    reads.filter(may_show).take(EFFECTS_MAX).find_map(shows)
}

/// Up to how many reads are looked at for the one that shows that a transaction took effect.
const EFFECTS_MAX: usize = 16;

/// What has no source: an argument that says nothing but that.
pub(crate) fn unexplained(history: &History, op: OpId, key: KeyId) -> Argument {
    impossible(history, op, Impossible::Read(key))
}

/// The operation that missed what its own transaction wrote before.
fn internal(history: &History, read: OpId, key: KeyId) -> Argument {
    let txn = history.owner(read);
    let own = history.transaction(txn).primitives().take_while(|&(op, _)| op < read);
    let write = own.filter(|(_, it)| it.certainly_wrote(key)).last();
    let Some((write, _)) = write else { return impossible(history, read, Impossible::Own(key)) };
    let reason = Reason::Missed { read, write };
    let predicate = super::is_by_predicate(history, read, key);
    told(vec![Edge { from: Some(txn), to: txn, kind: EdgeKind::Rw, key: Some(key), predicate, reason }])
}

/// Somebody saw what it must not have seen, or what nobody wrote.
pub(crate) fn no_source(history: &History, read: OpId, key: KeyId, ryow: Ryow) -> Option<Argument> {
    let operation = history.primitive(read);
    if operation.is_open_write() || matches!(operation, Primitive::Append { .. }) {
        return Some(own_operations(history, read, key, ryow));
    }
    let sources = Sources::of(history, read, key);
    if sources.has_twice {
        return Some(told(vec![saw(history, read, key, last_appender(history, read, key))]));
    }
    if sources.initial || !sources.fair.is_empty() {
        return None;
    }
    let own_earlier = sources.own_earlier.filter(|_| ryow == Ryow::Never);
    let own = own_earlier.map_or_else(|| sources.own_later.clone(), |earlier| vec![earlier]);
    let all: Vec<OpId> = sources.foul().chain(own).collect();
    match all[..] {
        [] if sources.own_earlier.is_some() => None,
        [] => Some(told(vec![saw(history, read, key, None)])),
        [only] => Some(told(vec![saw(history, read, key, Some(only))])),
        _ => {
            let case = |write| Case {
                suppose: Supposition::Source { read, key, write: Some(write) },
                argument: told(vec![saw(history, read, key, Some(write))]),
            };
            Some(super::split(history, all.into_iter().map(case).collect()))
        }
    }
}

/// What a transaction did to a key where that depends on what it found, and nothing fits: one of its results has no source,
/// or they contradict each other.
fn own_operations(history: &History, op: OpId, key: KeyId, ryow: Ryow) -> Argument {
    let txn = history.transaction(history.owner(op));
    let reads = txn.primitives().filter(|&(other, ref it)| {
        other != op && (it.key() == Some(key) || rows::is_about_many(it)) && returned(it, key).is_known()
    });
    for (read, _) in reads {
        let sources = Sources::of(history, read, key);
        if sources.own_earlier.is_none()
            && let Some(argument) = no_source(history, read, key, ryow)
        {
            return argument;
        }
    }
    impossible(history, op, Impossible::Own(key))
}

/// Who appended the last element of the list that an operation returned, but for its own at the end; a transaction that
/// took effect rather than one that did not.
fn last_appender(history: &History, read: OpId, key: KeyId) -> Option<OpId> {
    let elements = history.values_of(returned(&history.primitive(read), key));
    let appender = |element: &ValueId| {
        let all = history
            .transactions()
            .flat_map(|it| it.primitives().map(move |(op, deed)| (it.status(), op, deed)));
        let appends = all.filter(|(_, _, it)| made(history, it, key) == Some(Made::Element(*element)));
        appends.min_by_key(|&(status, op, _)| (status == Status::Aborted, op)).map(|(_, op, _)| op)
    };
    let is_foreign = |op: &OpId| history.owner(*op) != history.owner(read);
    let last = elements.last().and_then(appender);
    elements.iter().rev().find_map(|it| appender(it).filter(is_foreign)).or(last)
}

/// Rows that no store returns, or a number of rows that no state gives.
fn bad_rows(history: &History, op: OpId) -> Argument {
    let operation = history.primitive(op);
    if let Some(key) = rows::twice(&operation) {
        let txn = history.owner(op);
        let own = history.transaction(txn).primitives().take_while(|&(other, _)| other < op);
        let write = own.filter(|(_, it)| it.certainly_wrote(key)).last().map(|(write, _)| write);
        return told(vec![saw(history, op, key, write)]);
    }
    let why = match &operation {
        Primitive::Show { area: Area::Range { range, .. }, rows: Some(rows) } => {
            let outside = rows.iter().find(|row| !is_inside(history, *range, row.key));
            outside.map_or(Impossible::Order, |row| Impossible::Row(row.key))
        }
        Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
            let holds = |row: &&Row| !row.value.is_known() || predicate.holds(history.values(), row.value);
            let wrong = rows.iter().find(|row| !holds(row));
            wrong.map_or(Impossible::Order, |row| Impossible::Row(row.key))
        }
        _ => Impossible::Count,
    };
    impossible(history, op, why)
}

/// Two lists of one key, read by transactions that committed, of which neither is the beginning of the other. What a
/// transaction appended itself stands at the end of its lists, so they count as they are.
pub(crate) fn incompatible_lists(history: &History, ryow: Ryow) -> Option<Argument> {
    if ryow != Ryow::Must {
        return None;
    }
    let committed = history.transactions().filter(|it| it.is_committed()).flat_map(|it| it.primitives());
    let mut lists: Vec<(KeyId, OpId, &[ValueId])> = Vec::new();
    for (op, operation) in committed {
        for (key, value) in rows::returned(&operation) {
            let elements = lists::elements(history, value).unwrap_or_default();
            if !elements.is_empty() {
                lists.push((key, op, elements));
            }
        }
    }
    lists.sort_unstable_by_key(|&(key, op, elements)| (key, std::cmp::Reverse(elements.len()), op));
    for of_key in lists.chunk_by(|one, other| one.0 == other.0) {
        let (key, first, longest) = of_key[0];
        let other = of_key.iter().find(|(_, _, list)| !longest.starts_with(list));
        let Some(&(_, second, list)) = other.filter(|_| is_only_appended_to(history, key)) else { continue };
        let all_appended =
            [longest, list].into_iter().flatten().all(|&element| is_element(history, key, element));
        if all_appended {
            let of = |op| saw(history, op, key, last_appender(history, op, key));
            return Some(told(vec![of(first), of(second)]));
        }
    }
    None
}

/// Whether a key is appended to, and nothing else is written there, nor an element twice.
fn is_only_appended_to(history: &History, key: KeyId) -> bool {
    let mut elements: Vec<ValueId> =
        lists::elements(history, initial(history, key)).unwrap_or_default().to_vec();
    for (_, operation) in history.transactions().flat_map(|it| it.primitives()) {
        match made(history, &operation, key) {
            Some(Made::Value(_)) => return false,
            Some(Made::Element(element)) => elements.push(element),
            None => {}
        }
    }
    elements.sort_unstable();
    lists::elements(history, initial(history, key)).is_some() && elements.windows(2).all(|it| it[0] != it[1])
}

/// Whether an element of a list was there from the start, or appended by somebody who may have committed.
fn is_element(history: &History, key: KeyId, element: ValueId) -> bool {
    let at_first = lists::elements(history, initial(history, key)).unwrap_or_default();
    let effective = history.transactions().filter(|it| it.status() != Status::Aborted);
    at_first.contains(&element)
        || effective
            .flat_map(|it| it.primitives())
            .any(|(_, it)| made(history, &it, key) == Some(Made::Element(element)))
}

/// What a transaction that committed returned and nobody at all wrote, or what no store returns.
pub(crate) fn unexplained_value(history: &History) -> Option<Argument> {
    let mut committed = history.transactions().filter(|it| it.is_committed()).map(|it| it.id());
    committed.find_map(|txn| unexplained_by(history, txn)).or_else(|| incompatible_lists(history, Ryow::Must))
}

/// As [`unexplained_value`], of one transaction.
pub(crate) fn unexplained_by(history: &History, txn: TxnId) -> Option<Argument> {
    let mut operations = history.transaction(txn).primitives();
    operations.find_map(|(op, operation)| {
        if is_malformed(history, &operation) {
            return Some(bad_rows(history, op));
        }
        let nowhere = |&key: &KeyId| Sources::of(history, op, key).is_nobody();
        let row = rows::returned(&operation).map(|(key, _)| key).find(nowhere);
        // What was not there matters where there is little to look at.
        let is_many = rows::is_about_many(&operation) && history.keys().len() <= KEYS_MAX;
        let absent = || {
            history
                .keys()
                .ids()
                .filter(|_| is_many)
                .find(|key| is_asked(history, &operation, *key) && nowhere(key))
        };
        row.or_else(absent).map(|key| told(vec![saw(history, op, key, None)]))
    })
}

/// Up to how many keys are asked one by one whether an operation could miss them.
const KEYS_MAX: usize = 256;

/// Whether an operation on many keys says something of a key.
fn is_asked(history: &History, operation: &Primitive<'_>, key: KeyId) -> bool {
    match operation {
        Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
            let ranks = history.keys().ranks();
            let rank = |key: KeyId| ranks[key.index()];
            let is_passed = |last: &Row| (rank(key) > rank(last.key)) == *reverse;
            is_inside(history, *range, key) && (*to_the_end || rows.last().is_some_and(is_passed))
        }
        Primitive::Show { area: Area::Where(_), rows } => rows.is_some(),
        Primitive::WriteIf(it) => it.keys.is_some() && it.is_about(key),
        _ => false,
    }
}

fn is_inside(history: &History, range: Range, key: KeyId) -> bool {
    let ranks = history.keys().ranks();
    let rank = |key: KeyId| ranks[key.index()];
    range.from.is_none_or(|from| rank(from) <= rank(key)) && range.to.is_none_or(|to| rank(key) < rank(to))
}

/// Whether no store returns such rows, or reports such keys.
fn is_malformed(history: &History, operation: &Primitive<'_>) -> bool {
    let ranks = history.keys().ranks();
    let goes_back = |rows: &[Row], reverse: bool| {
        rows.windows(2).any(|it| (ranks[it[0].key.index()] < ranks[it[1].key.index()]) == reverse)
    };
    let is_wrong = |area: &Area<'_>, row: &Row| match area {
        Area::Range { range, .. } => !is_inside(history, *range, row.key),
        Area::Where(predicate) => row.value.is_known() && !predicate.holds(history.values(), row.value),
    };
    rows::twice(operation).is_some()
        || match operation {
            Primitive::Show { area, rows: Some(rows) } => {
                let is_backwards =
                    |area| matches!(area, &Area::Range { reverse, .. } if goes_back(rows, reverse));
                is_backwards(area) || rows.iter().any(|row| is_wrong(area, row))
            }
            Primitive::WriteIf(WriteIf { count: Some(count), keys: Some(keys), .. }) => {
                *count != keys.len() as u64
            }
            _ => false,
        }
}
