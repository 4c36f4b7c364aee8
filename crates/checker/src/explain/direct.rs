//! Contradictions that need no order: what one operation returned cannot be, whatever came before what.
//!
//! *What*: looks at the operation itself and at everyone who can have made what it returned, in the whole history,
//! aborted transactions and those of unknown outcome included. So a value from an aborted writer is told with its
//! writer, and *from nowhere* is said of what no transaction wrote only.
//!
//! *Cost*: once over the history.

use crate::lists;
use crate::observe::{Contradiction, normal};
use crate::rows;
use crate::verdict::{Argument, Case, Edge, EdgeKind, Impossible, Reason, Ryow, Supposition};
use history::{History, Id, KeyId, OpId, Operation, Range, Row, Status, Transaction, TxnId, ValueId};

/// What an operation left at a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Made {
    Value(ValueId),
    Element(ValueId),
}

/// What an operation left at a key, or may have left.
fn made(history: &History, operation: &Operation<'_>, key: KeyId) -> Option<Made> {
    let is_here = |keys: Option<&[KeyId]>| keys.is_none_or(|keys| keys.contains(&key));
    match *operation {
        Operation::Write { key: at, value } if at == key => Some(Made::Value(normal(history, value))),
        Operation::Delete { key: at } if at == key => Some(Made::Value(ValueId::ABSENT)),
        Operation::Append { key: at, value } if at == key => Some(Made::Element(value)),
        Operation::Update { set, keys, .. } if is_here(keys) => Some(Made::Value(normal(history, set))),
        Operation::DeleteWhere { keys, .. } if is_here(keys) => Some(Made::Value(ValueId::ABSENT)),
        _ => None,
    }
}

/// Whether an operation certainly wrote a key.
fn certainly_wrote(operation: &Operation<'_>, key: KeyId) -> bool {
    match operation {
        Operation::Update { keys, .. } | Operation::DeleteWhere { keys, .. } => {
            keys.is_some_and(|keys| keys.contains(&key))
        }
        _ => super::is_write(operation) && operation.key() == Some(key),
    }
}

/// Whether what an operation says of a key is true of a value.
fn fits(history: &History, operation: &Operation<'_>, key: KeyId, value: ValueId) -> bool {
    let is_row = |rows: &[Row], matches: &dyn Fn() -> bool, otherwise: bool| match rows
        .iter()
        .find(|row| row.key == key)
    {
        Some(row) if row.value.is_known() => normal(history, row.value) == value,
        Some(_) => matches(),
        None => otherwise,
    };
    let is_there = value != ValueId::ABSENT;
    match operation {
        Operation::Read { value: seen, .. } => normal(history, *seen) == value,
        Operation::Scan { rows: Some(rows), .. } | Operation::Iterate { rows: Some(rows), .. } => {
            is_row(rows, &|| is_there, !is_there)
        }
        Operation::Query { predicate, rows: Some(rows) } => {
            let holds = predicate.holds(history.values(), value);
            is_row(rows, &|| holds, !holds)
        }
        Operation::Update { predicate, keys: Some(keys), .. }
        | Operation::DeleteWhere { predicate, keys: Some(keys), .. } => {
            predicate.holds(history.values(), value) == keys.contains(&key)
        }
        _ => true,
    }
}

/// The value that an operation returned of a key.
fn returned(operation: &Operation<'_>, key: KeyId) -> ValueId {
    match *operation {
        Operation::Read { value, .. } => value,
        _ => rows::row_of(operation, key),
    }
}

/// How far the clients' clocks let a reader have seen a writer: 0 where they overlap or do not say, 1 where the writer was
/// done before, 2 where it began too late.
fn plausibility(writer: Transaction<'_>, reader: Transaction<'_>) -> u8 {
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
    pub(crate) own_later: Option<OpId>,
    /// An element that it holds twice.
    pub(crate) has_twice: bool,
}

impl Sources {
    /// Of what an operation says of a key.
    pub(crate) fn of(history: &History, read: OpId, key: KeyId) -> Self {
        let operation = history.operation(read);
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
        let at_first = lists::elements(history, initial(history, key)).unwrap_or_default();
        let mut of_last = None;
        for &element in elements {
            let mut sources = Self { initial: at_first.contains(&element), ..Self::default() };
            sources.add(history, read, key, |made| match made {
                Made::Element(it) => it == element,
                Made::Value(list) => {
                    lists::elements(history, list).is_some_and(|list| list.contains(&element))
                }
            });
            // An element in the middle of a list is none that was seen too early.
            let within = element != *elements.last()?;
            let is_fair = sources.initial || !sources.fair.is_empty() || sources.own_earlier.is_some();
            if !is_fair && (!within || sources.intermediate.is_empty()) {
                return Some(sources);
            }
            of_last = Some(sources);
        }
        of_last
    }

    fn add(&mut self, history: &History, read: OpId, key: KeyId, fits: impl Fn(Made) -> bool) {
        let reader = history.owner(read);
        for transaction in history.transactions() {
            for (op, operation) in transaction.ops() {
                let Some(made) = made(history, &operation, key).filter(|&made| fits(made)) else { continue };
                let is_list = matches!(made, Made::Element(_));
                let overwrites = |other: &Operation<'_>| match other {
                    Operation::Append { .. } => other.key() == Some(key),
                    _ => !is_list && certainly_wrote(other, key),
                };
                let is_last = || !transaction.ops().any(|(later, other)| later > op && overwrites(&other));
                match transaction.status() {
                    _ if transaction.id() == reader && op > read => {
                        self.own_later.get_or_insert(op);
                    }
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
        let own = self.own_earlier.or(self.own_later);
        !self.initial
            && self.fair.is_empty()
            && self.foul().next().is_none()
            && own.is_none()
            && !self.has_twice
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
    let mut all = history.transactions().flat_map(|it| it.ops());
    all.any(|(_, it)| matches!(it, Operation::Append { key: at, .. } if at == key))
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
            Some(no_source(history, op, key, ryow).unwrap_or_else(|| match last_appender(history, op, key) {
                Some(append) => told(vec![saw(history, op, key, Some(append))]),
                None => unexplained(history, op, key),
            }))
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
        Impossible::Row(key) | Impossible::Own(key) | Impossible::Read(key) => Some(key),
        Impossible::Order | Impossible::Count => None,
    };
    let reason = Reason::Impossible { op, why };
    let edge = Edge { from: None, to: history.owner(op), kind: EdgeKind::Wr, key, predicate: false, reason };
    told(vec![edge])
}

/// What has no source: an argument that says nothing but that.
pub(crate) fn unexplained(history: &History, op: OpId, key: KeyId) -> Argument {
    impossible(history, op, Impossible::Read(key))
}

/// The operation that missed what its own transaction wrote before.
fn internal(history: &History, read: OpId, key: KeyId) -> Argument {
    let txn = history.owner(read);
    let own = history.transaction(txn).ops().take_while(|&(op, _)| op < read);
    let write = own.filter(|(_, it)| certainly_wrote(it, key)).last();
    let Some((write, _)) = write else { return impossible(history, read, Impossible::Own(key)) };
    let reason = Reason::Missed { read, write };
    let predicate = super::is_by_predicate(history, read, key);
    told(vec![Edge { from: Some(txn), to: txn, kind: EdgeKind::Rw, key: Some(key), predicate, reason }])
}

/// Somebody saw what it must not have seen, or what nobody wrote.
fn no_source(history: &History, read: OpId, key: KeyId, ryow: Ryow) -> Option<Argument> {
    if let Operation::Update { keys: None, .. }
    | Operation::DeleteWhere { keys: None, .. }
    | Operation::Append { .. } = history.operation(read)
    {
        return Some(own_operations(history, read, key, ryow));
    }
    let sources = Sources::of(history, read, key);
    if sources.has_twice {
        return Some(told(vec![saw(history, read, key, last_appender(history, read, key))]));
    }
    if sources.initial || !sources.fair.is_empty() {
        return None;
    }
    let own = sources.own_earlier.filter(|_| ryow == Ryow::Never).or(sources.own_later);
    let foul: Vec<OpId> = sources.foul().collect();
    match (&foul[..], own, sources.own_earlier) {
        ([], None, None) => Some(told(vec![saw(history, read, key, None)])),
        ([], None, Some(_)) => None,
        ([], Some(own), _) => Some(told(vec![saw(history, read, key, Some(own))])),
        ([only], None, _) => Some(told(vec![saw(history, read, key, Some(*only))])),
        _ => {
            let all = foul.iter().copied().chain(own);
            let case = |write| Case {
                suppose: Supposition::Source { read, key, write: Some(write) },
                argument: told(vec![saw(history, read, key, Some(write))]),
            };
            Some(super::split(all.map(case).collect()))
        }
    }
}

/// What a transaction did to a key where that depends on what it found, and nothing fits: one of its results has no source,
/// or they contradict each other.
fn own_operations(history: &History, op: OpId, key: KeyId, ryow: Ryow) -> Argument {
    let txn = history.transaction(history.owner(op));
    let reads = txn.ops().filter(|&(other, ref it)| {
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

/// Who appended the last element of the list that an operation returned; whoever took effect rather than not.
fn last_appender(history: &History, read: OpId, key: KeyId) -> Option<OpId> {
    let last = *history.values_of(returned(&history.operation(read), key)).last()?;
    let all = history.transactions().flat_map(|it| it.ops().map(move |(op, deed)| (it.status(), op, deed)));
    let appends = all.filter(|(_, _, it)| made(history, it, key) == Some(Made::Element(last)));
    appends.min_by_key(|&(status, op, _)| (status == Status::Aborted, op)).map(|(_, op, _)| op)
}

/// Rows that no store returns, or a number of rows that no state gives.
fn bad_rows(history: &History, op: OpId) -> Argument {
    let operation = history.operation(op);
    if let Some(key) = rows::twice(&operation) {
        let txn = history.owner(op);
        let own = history.transaction(txn).ops().take_while(|&(other, _)| other < op);
        let write = own.filter(|(_, it)| certainly_wrote(it, key)).last().map(|(write, _)| write);
        return told(vec![saw(history, op, key, write)]);
    }
    let why = match &operation {
        Operation::Scan { range, rows: Some(rows) } | Operation::Iterate { range, rows: Some(rows), .. } => {
            let outside = rows.iter().find(|row| !is_inside(history, *range, row.key));
            outside.map_or(Impossible::Order, |row| Impossible::Row(row.key))
        }
        Operation::Query { predicate, rows: Some(rows) } => {
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
    let committed = history.transactions().filter(|it| it.is_committed()).flat_map(|it| it.ops());
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
    for (_, operation) in history.transactions().flat_map(|it| it.ops()) {
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
            .flat_map(|it| it.ops())
            .any(|(_, it)| made(history, &it, key) == Some(Made::Element(element)))
}

/// What a transaction that committed returned and nobody at all wrote, or what no store returns.
pub(crate) fn unexplained_value(history: &History) -> Option<Argument> {
    let mut committed = history.transactions().filter(|it| it.is_committed()).map(|it| it.id());
    committed.find_map(|txn| unexplained_by(history, txn)).or_else(|| incompatible_lists(history, Ryow::Must))
}

/// As [`unexplained_value`], of one transaction.
pub(crate) fn unexplained_by(history: &History, txn: TxnId) -> Option<Argument> {
    let mut operations = history.transaction(txn).ops();
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
fn is_asked(history: &History, operation: &Operation<'_>, key: KeyId) -> bool {
    match operation {
        Operation::Scan { range, rows: Some(_) }
        | Operation::Iterate { range, exhausted: true, rows: Some(_), .. } => is_inside(history, *range, key),
        Operation::Query { rows: Some(_), .. }
        | Operation::Update { keys: Some(_), .. }
        | Operation::DeleteWhere { keys: Some(_), .. } => true,
        _ => false,
    }
}

fn is_inside(history: &History, range: Range, key: KeyId) -> bool {
    let ranks = history.keys().ranks();
    let rank = |key: KeyId| ranks[key.index()];
    range.from.is_none_or(|from| rank(from) <= rank(key)) && range.to.is_none_or(|to| rank(key) < rank(to))
}

/// Whether no store returns such rows, or reports such keys.
fn is_malformed(history: &History, operation: &Operation<'_>) -> bool {
    let ranks = history.keys().ranks();
    let goes_back = |rows: &[Row], reverse: bool| {
        rows.windows(2).any(|it| (ranks[it[0].key.index()] < ranks[it[1].key.index()]) == reverse)
    };
    let is_wrong = |row: &Row| match operation {
        Operation::Scan { range, .. } | Operation::Iterate { range, .. } => {
            !is_inside(history, *range, row.key)
        }
        Operation::Query { predicate, .. } => {
            row.value.is_known() && !predicate.holds(history.values(), row.value)
        }
        _ => false,
    };
    rows::twice(operation).is_some()
        || match *operation {
            Operation::Scan { rows: Some(rows), .. } => goes_back(rows, false) || rows.iter().any(is_wrong),
            Operation::Iterate { rows: Some(rows), reverse, .. } => {
                goes_back(rows, reverse) || rows.iter().any(is_wrong)
            }
            Operation::Query { rows: Some(rows), .. } => rows.iter().any(is_wrong),
            Operation::Update { count: Some(count), keys: Some(keys), .. }
            | Operation::DeleteWhere { count: Some(count), keys: Some(keys), .. } => {
                count != keys.len() as u64
            }
            _ => false,
        }
}
