//! What predicates say of the keys that they did not return, on demand.
//!
//! *What*: a query over ten thousand keys says something about every one of them: most of it is true in any order that
//! anybody would think of. So an order is found without what predicates say of keys that a transaction did not touch
//! otherwise; then the history is played in that order, with an index by column, and whatever a predicate found that it
//! should not have found, or missed, becomes a claim of the problem.
//!
//! *Invariant*: fewer claims only allow more. What is impossible with some of them is impossible; an order that plays
//! without a fault explains everything.
//!
//! *Cost*: the rows returned and the versions written, for every round; rounds are few where the first order is good.
//! *Source*: the same idea as `refine`'s, one level up (algorithms.md §3); vbox.txt §3.1 makes all of them at once.

use crate::constrain::Known;
use crate::contents::Contents;
use crate::problem::{Problem, Standing, Txn};
use crate::rows::{Claim, Interval, Test, number_in};
use crate::verdict::Ryow;
use history::{ColumnId, History, Id, KeyId, Operation, Predicate, Row, Status, TxnId, ValueId, Values};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// A transaction and a key about which its predicates are not right as things stand.
pub(crate) type Missing = (Txn, KeyId);

/// One predicate does not ask for more in one round.
const EACH_MAX: usize = 64;
/// All together do not ask for more in one round.
const ALL_MAX: usize = 200_000;

/// Whether what predicates say can wait: they ask for numbers between two others, writes reported their keys, no
/// transaction scans as well.
pub(crate) fn can_wait(history: &History, contents: &Contents<'_>, ryow: Ryow) -> bool {
    if ryow != Ryow::Must || contents.has_open_lists() {
        return false;
    }
    let mut some = false;
    // What was aborted left nothing, and what it was told does not count.
    for transaction in history.transactions().filter(|it| it.status() != Status::Aborted) {
        let (mut asks, mut scans) = (false, false);
        for (_, operation) in transaction.ops() {
            match operation {
                Operation::Query { predicate, .. }
                | Operation::Update { predicate, keys: Some(_), .. }
                | Operation::DeleteWhere { predicate, keys: Some(_), .. } => {
                    asks = true;
                    if Interval::of(history.values(), predicate).is_none() {
                        return false;
                    }
                }
                Operation::Update { .. } | Operation::DeleteWhere { .. } => return false,
                Operation::Scan { .. } | Operation::Iterate { .. } => scans = true,
                _ => {}
            }
        }
        if asks && scans {
            return false;
        }
        some |= asks;
    }
    some
}

/// What an operation with a predicate says: the keys it returned or wrote, and whether it wrote them.
fn asked<'h>(operation: &Operation<'h>) -> Option<(&'h Predicate, Vec<KeyId>, bool)> {
    let keys_of = |rows: &[Row]| rows.iter().map(|row| row.key).collect();
    match *operation {
        Operation::Query { predicate, rows: Some(rows) } => Some((predicate, keys_of(rows), false)),
        Operation::Update { predicate, keys: Some(keys), .. }
        | Operation::DeleteWhere { predicate, keys: Some(keys), .. } => {
            Some((predicate, keys.to_vec(), true))
        }
        _ => None,
    }
}

/// What a transaction's predicates say of a key that it did not touch otherwise.
pub(crate) fn claims_on(history: &History, txn: TxnId, key: KeyId) -> Vec<Claim<'_>> {
    let mut claims = Vec::new();
    for (op, operation) in history.transaction(txn).ops() {
        if let Some((predicate, keys, wrote)) = asked(&operation) {
            let truth = keys.contains(&key);
            claims.push(Claim { test: Test::Where(predicate), truth, op });
            if truth && wrote {
                break; // from here on it finds what it wrote
            }
        }
    }
    claims
}

/// Where an order does not keep to what predicates say; ascending.
pub(crate) fn missing(
    history: &History,
    problem: &Problem,
    known: &Known,
    position: &[u32],
    effective: &[Txn],
) -> Vec<Missing> {
    let mut play = Play::new(history, problem);
    for node in in_order(position) {
        let txn = known.nodes.txn(node);
        let is_there = match problem.standing.get(txn as usize) {
            Some(Standing::In) => true,
            Some(Standing::Maybe) => effective.binary_search(&txn).is_ok(),
            Some(Standing::Out) | None => false,
        };
        if !is_there {
            continue;
        }
        if node == known.nodes.begin(txn) {
            play.ask(txn);
        }
        if node == known.nodes.commit(txn) {
            for version in problem.versions_of(txn) {
                play.set(version.key, version.value);
            }
        }
        if play.missing.len() > ALL_MAX {
            break;
        }
    }
    play.missing.sort_unstable();
    play.missing.dedup();
    play.missing
}

/// The nodes by their positions.
fn in_order(position: &[u32]) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..position.len() as u32).collect();
    nodes.sort_unstable_by_key(|&node| position[node as usize]);
    nodes
}

/// What the store holds as the history is played.
struct Play<'h, 'p> {
    history: &'h History,
    problem: &'p Problem,
    contents: Contents<'h>,
    holds: Vec<ValueId>,
    columns: FxHashMap<ColumnId, Index>,
    missing: Vec<Missing>,
}

impl<'h, 'p> Play<'h, 'p> {
    fn new(history: &'h History, problem: &'p Problem) -> Self {
        let contents = Contents::of(history, Ryow::Must);
        let mut ids: Vec<ValueId> = problem.versions.iter().map(|version| version.value).collect();
        ids.extend(&problem.initial);
        ids.sort_unstable();
        ids.dedup();
        let mut columns = FxHashMap::default();
        for (_, operation) in history.transactions().flat_map(|it| it.ops()) {
            if let Some((predicate, ..)) = asked(&operation)
                && let Some(interval) = Interval::of(history.values(), predicate)
            {
                columns
                    .entry(interval.column)
                    .or_insert_with(|| Index::new(history.values(), &ids, interval.column, problem.keys()));
            }
        }
        let mut play = Self {
            history,
            problem,
            contents,
            holds: vec![ValueId::ABSENT; problem.keys()],
            columns,
            missing: Vec::new(),
        };
        for key in 0..problem.keys() as u32 {
            play.set(key, problem.initial[key as usize]);
        }
        play
    }

    fn set(&mut self, key: u32, value: ValueId) {
        self.holds[key as usize] = value;
        for index in self.columns.values_mut() {
            index.set(key, value);
        }
    }

    /// Compares what a transaction's predicates find with what they said.
    fn ask(&mut self, txn: Txn) {
        let mut earlier: Vec<KeyId> = Vec::new();
        for (_, operation) in self.history.transaction(self.problem.txns[txn as usize]).ops() {
            if let Some((predicate, mut keys, wrote)) = asked(&operation) {
                keys.sort_unstable();
                self.ask_one(txn, (predicate, &keys, wrote), &earlier);
                earlier.append(&mut keys);
            }
            // A read whose result is not known said nothing of its key.
            if !matches!(operation, Operation::Read { value, .. } if !value.is_known()) {
                earlier.extend(operation.key());
            }
        }
    }

    fn ask_one(
        &mut self,
        txn: Txn,
        (predicate, keys, wrote): (&Predicate, &[KeyId], bool),
        earlier: &[KeyId],
    ) {
        let values = self.history.values();
        let Some(interval) = Interval::of(values, predicate) else { return };
        let mut found: Vec<KeyId> = Vec::new();
        self.columns[&interval.column].between(values, &interval, |key| {
            // What the transaction touched otherwise was claimed from the beginning.
            let key = KeyId(key);
            if found.len() < EACH_MAX
                && keys.binary_search(&key).is_err()
                && self.contents.holds(predicate, self.holds[key.index()])
                && !self.touches(txn, key)
            {
                found.push(key);
            }
        });
        if wrote {
            let lacks = |key: &&KeyId| {
                !self.contents.holds(predicate, self.holds[key.index()]) && !earlier.contains(key)
            };
            let lacking = keys.iter().filter(lacks).filter(|&&key| !self.reads(txn, key));
            found.extend(lacking.take(EACH_MAX));
        }
        self.missing.extend(found.into_iter().map(|key| (txn, key)));
    }

    fn touches(&self, txn: Txn, key: KeyId) -> bool {
        self.problem.versions_of(txn).iter().any(|version| version.key == key.0) || self.reads(txn, key)
    }

    fn reads(&self, txn: Txn, key: KeyId) -> bool {
        self.problem.reads_of(txn).iter().any(|read| read.key == key.0)
    }
}

/// The keys by the number in a column.
struct Index {
    /// The numbers that ever are in the column, ascending.
    numbers: Vec<ValueId>,
    /// Where a content's number is among them.
    rank: FxHashMap<ValueId, u32>,
    /// The keys with each number now.
    keys: Vec<Vec<u32>>,
    /// For each key its number's rank and its place there.
    place: Vec<Option<(u32, u32)>>,
}

impl Index {
    fn new(values: &Values, contents: &[ValueId], column: ColumnId, keys: usize) -> Self {
        let mut found: Vec<(ValueId, ValueId)> = contents
            .iter()
            .filter_map(|&content| Some((number_in(values, content, column)?, content)))
            .collect();
        found.sort_by(|a, b| values.compare(a.0, b.0).unwrap_or(Ordering::Equal));
        let mut index = Self {
            numbers: Vec::new(),
            rank: FxHashMap::default(),
            keys: Vec::new(),
            place: vec![None; keys],
        };
        for (number, content) in found {
            let is_new = (index.numbers.last())
                .is_none_or(|&last| values.compare(last, number) != Some(Ordering::Equal));
            if is_new {
                index.numbers.push(number);
                index.keys.push(Vec::new());
            }
            index.rank.insert(content, index.numbers.len() as u32 - 1);
        }
        index
    }

    fn set(&mut self, key: u32, content: ValueId) {
        if let Some((rank, place)) = self.place[key as usize].take() {
            let keys = &mut self.keys[rank as usize];
            keys.swap_remove(place as usize);
            if let Some(&moved) = keys.get(place as usize) {
                self.place[moved as usize] = Some((rank, place));
            }
        }
        if let Some(&rank) = self.rank.get(&content) {
            let keys = &mut self.keys[rank as usize];
            self.place[key as usize] = Some((rank, keys.len() as u32));
            keys.push(key);
        }
    }

    fn between(&self, values: &Values, interval: &Interval, mut each: impl FnMut(u32)) {
        let is_before = |number: ValueId| {
            interval.from.is_some_and(|from| values.compare(number, from) == Some(Ordering::Less))
        };
        let is_behind = |number: ValueId| {
            interval.to.is_some_and(|to| values.compare(number, to) == Some(Ordering::Greater))
        };
        let start = self.numbers.partition_point(|&number| is_before(number));
        for (number, keys) in self.numbers.iter().zip(&self.keys).skip(start) {
            if is_behind(*number) {
                return;
            }
            keys.iter().for_each(|&key| each(key));
        }
    }
}
