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
//! *Source*: the same idea as `refine`'s, one level up; Vbox §3.1 makes all of them at once.

use crate::constrain::Known;
use crate::contents::Contents;
use crate::problem::{NONE, Problem, Standing, Txn};
use crate::rows::{self, Claim, Interval, number_in};
use history::{
    Area, ColumnId, History, Id, KeyId, Predicate, Primitive, Status, Test, TxnId, ValueId, Values,
};
use isolation::{Budget, Meter, Ryow, Undecided};
use std::cmp::Ordering;
use std::ops::Range;

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
        for (_, operation) in transaction.primitives() {
            if operation.is_open_write() {
                return false;
            }
            if let Some(predicate) = rows::predicate_of(&operation) {
                asks = true;
                if Interval::of(history.values(), predicate).is_none() {
                    return false;
                }
            }
            scans |= matches!(operation, Primitive::Show { area: Area::Range { .. }, .. });
        }
        if asks && scans {
            return false;
        }
        some |= asks;
    }
    some
}

/// What an operation with a predicate says: the keys it returned or wrote, and whether it wrote them.
fn asked<'h>(operation: &Primitive<'h>) -> Option<(&'h Predicate, Vec<KeyId>, bool)> {
    let predicate = rows::predicate_of(operation)?;
    let has_result = !matches!(operation, Primitive::Show { rows: None, .. }) && !operation.is_open_write();
    has_result.then(|| (predicate, rows::named(operation), !operation.is_read()))
}

/// What a transaction's predicates say of a key that it did not touch otherwise.
pub(crate) fn claims_on(history: &History, txn: TxnId, key: KeyId) -> Vec<Claim<'_>> {
    let mut claims = Vec::new();
    for (op, operation) in history.transaction(txn).primitives() {
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

/// What predicates say, ready to be compared with one order after the other.
pub(crate) struct Demand<'h> {
    pub contents: Contents<'h>,
    columns: Vec<Numbers>,
    asked: Vec<Asked<'h>>,
    /// For each transaction its first, and one more.
    first: Vec<u32>,
}

/// What one operation said.
struct Asked<'h> {
    predicate: &'h Predicate,
    /// The keys it returned or wrote, ascending.
    keys: Vec<KeyId>,
    /// The keys it wrote that its transaction had not touched before.
    written: Vec<KeyId>,
    /// Which numbers of which column it asked for, by their ranks.
    column: usize,
    ranks: Range<u32>,
}

/// The numbers in a column.
struct Numbers {
    column: ColumnId,
    /// All that there ever are, ascending.
    numbers: Vec<ValueId>,
    /// The rank of what each version holds, and of what each key holds at first; [`NONE`] without a number.
    of_version: Vec<u32>,
    of_initial: Vec<u32>,
}

impl<'h> Demand<'h> {
    /// Reads what the predicates of a problem's transactions say; its versions stay as they are.
    pub(crate) fn new(history: &'h History, problem: &Problem, budget: &Budget) -> Result<Self, Undecided> {
        let meter = budget.meter();
        let mut made = Self {
            contents: Contents::of(history, Ryow::Must, budget)?,
            columns: Vec::new(),
            asked: Vec::new(),
            first: vec![0],
        };
        for txn in 0..problem.len() {
            if problem.standing[txn] != Standing::Out {
                made.read(history, problem, problem.txns[txn], &meter)?;
            }
            made.first.push(made.asked.len() as u32);
        }
        Ok(made)
    }

    fn read(
        &mut self,
        history: &'h History,
        problem: &Problem,
        txn: TxnId,
        meter: &Meter<'_>,
    ) -> Result<(), Undecided> {
        let mut earlier: Vec<KeyId> = Vec::new();
        for (_, operation) in history.transaction(txn).primitives() {
            meter.step()?;
            if let Some((predicate, mut keys, wrote)) = asked(&operation) {
                meter.steps(keys.len() * if wrote { 1 + earlier.len() } else { 1 })?;
                keys.sort_unstable();
                let written = keys.iter().copied().filter(|key| wrote && !earlier.contains(key)).collect();
                earlier.extend(&keys);
                if let Some(interval) = Interval::of(history.values(), predicate) {
                    let column = self.column(history.values(), problem, interval.column);
                    let ranks = self.columns[column].between(history.values(), &interval);
                    self.asked.push(Asked { predicate, keys, written, column, ranks });
                }
            }
            // A read whose result is not known said nothing of its key.
            if !matches!(operation, Primitive::Read { value, .. } if !value.is_known()) {
                earlier.extend(operation.key());
            }
        }
        Ok(())
    }

    /// The place of a column, which is new if nobody asked for it before.
    fn column(&mut self, values: &Values, problem: &Problem, column: ColumnId) -> usize {
        let found = self.columns.iter().position(|it| it.column == column);
        found.unwrap_or_else(|| {
            self.columns.push(Numbers::new(values, problem, column));
            self.columns.len() - 1
        })
    }

    /// Where an order does not keep to what predicates say; ascending.
    pub(crate) fn missing(
        &self,
        problem: &Problem,
        known: &Known,
        position: &[u32],
        effective: &[Txn],
        budget: &Budget,
    ) -> Result<Vec<Missing>, Undecided> {
        let meter = budget.meter();
        let mut play = Play::new(self, problem);
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
                play.ask(txn, &meter)?;
            }
            meter.step()?;
            if node == known.nodes.commit(txn) {
                problem.version_ids(txn).for_each(|version| play.write(version));
            }
            if play.missing.len() > ALL_MAX {
                break;
            }
        }
        play.missing.sort_unstable();
        play.missing.dedup();
        Ok(play.missing)
    }
}

/// The nodes by their positions.
fn in_order(position: &[u32]) -> Vec<u32> {
    let mut nodes: Vec<u32> = (0..position.len() as u32).collect();
    nodes.sort_unstable_by_key(|&node| position[node as usize]);
    nodes
}

impl Numbers {
    fn new(values: &Values, problem: &Problem, column: ColumnId) -> Self {
        let written = problem.versions.iter().map(|version| version.value);
        let contents = written.chain(problem.initial.iter().copied()).zip(0u32..);
        let mut found: Vec<(ValueId, u32)> = contents
            .filter_map(|(content, place)| Some((number_in(values, content, column)?, place)))
            .collect();
        found.sort_by(|a, b| values.compare(a.0, b.0).unwrap_or(Ordering::Equal));
        let mut numbers: Vec<ValueId> = Vec::new();
        let mut ranks = vec![NONE; problem.versions.len() + problem.initial.len()];
        for (number, place) in found {
            let is_new =
                numbers.last().is_none_or(|&last| values.compare(last, number) != Some(Ordering::Equal));
            if is_new {
                numbers.push(number);
            }
            ranks[place as usize] = numbers.len() as u32 - 1;
        }
        let of_initial = ranks.split_off(problem.versions.len());
        Self { column, numbers, of_version: ranks, of_initial }
    }

    /// The ranks of the numbers in an interval, or some more.
    fn between(&self, values: &Values, interval: &Interval) -> Range<u32> {
        let compare =
            |number: ValueId, with: Option<ValueId>| with.and_then(|with| values.compare(number, with));
        let start =
            self.numbers.partition_point(|&number| compare(number, interval.from) == Some(Ordering::Less));
        let end =
            self.numbers.partition_point(|&number| compare(number, interval.to) != Some(Ordering::Greater));
        start as u32..end as u32
    }
}

/// What the store holds as the history is played.
struct Play<'d, 'p> {
    demand: &'d Demand<'d>,
    problem: &'p Problem,
    holds: Vec<ValueId>,
    indices: Vec<Index>,
    missing: Vec<Missing>,
}

impl<'d, 'p> Play<'d, 'p> {
    fn new(demand: &'d Demand<'d>, problem: &'p Problem) -> Self {
        let indices = demand.columns.iter().map(Index::new).collect();
        Self { demand, problem, holds: problem.initial.clone(), indices, missing: Vec::new() }
    }

    fn write(&mut self, version: u32) {
        let it = self.problem.versions[version as usize];
        self.holds[it.key as usize] = it.value;
        for (index, numbers) in self.indices.iter_mut().zip(&self.demand.columns) {
            index.set(it.key, numbers.of_version[version as usize]);
        }
    }

    /// Compares what a transaction's predicates find with what they said.
    fn ask(&mut self, txn: Txn, meter: &Meter<'_>) -> Result<(), Undecided> {
        let first = &self.demand.first[txn as usize..];
        for asked in &self.demand.asked[first[0] as usize..first[1] as usize] {
            let holds = |key: KeyId| {
                self.demand.contents.holds(Test::Where(asked.predicate), self.holds[key.index()])
            };
            // What the transaction touched otherwise was claimed from the beginning.
            let is_new = |key: &KeyId| {
                asked.keys.binary_search(key).is_err() && holds(*key) && !self.touches(txn, *key)
            };
            let mut missing: Vec<Missing> = Vec::new();
            meter.steps(asked.ranks.len())?;
            for key in self.indices[asked.column].keys(asked.ranks.clone()).map(KeyId) {
                meter.step()?;
                if missing.len() < EACH_MAX && is_new(&key) {
                    missing.push((txn, key));
                }
            }
            let lacks = |key: &&KeyId| !holds(**key) && !self.reads(txn, **key);
            missing.extend(asked.written.iter().filter(lacks).take(EACH_MAX).map(|&key| (txn, key)));
            self.missing.append(&mut missing);
        }
        Ok(())
    }

    fn touches(&self, txn: Txn, key: KeyId) -> bool {
        self.problem.versions_of(txn).iter().any(|version| version.key == key.0) || self.reads(txn, key)
    }

    fn reads(&self, txn: Txn, key: KeyId) -> bool {
        self.problem.reads_of(txn).iter().any(|read| read.key == key.0)
    }
}

/// The keys by the rank of their number in a column: for each rank a list that runs through the keys.
struct Index {
    first: Vec<u32>,
    next: Vec<u32>,
    previous: Vec<u32>,
    rank: Vec<u32>,
}

impl Index {
    fn new(numbers: &Numbers) -> Self {
        let keys = numbers.of_initial.len();
        let none = |len: usize| vec![NONE; len];
        let mut index = Self {
            first: none(numbers.numbers.len()),
            next: none(keys),
            previous: none(keys),
            rank: none(keys),
        };
        (0u32..).zip(&numbers.of_initial).for_each(|(key, &rank)| index.set(key, rank));
        index
    }

    fn set(&mut self, key: u32, rank: u32) {
        let at = key as usize;
        let old = std::mem::replace(&mut self.rank[at], rank);
        if old == rank {
            return;
        }
        if old != NONE {
            let (previous, next) = (self.previous[at], self.next[at]);
            match previous {
                NONE => self.first[old as usize] = next,
                previous => self.next[previous as usize] = next,
            }
            if next != NONE {
                self.previous[next as usize] = previous;
            }
        }
        if rank != NONE {
            let next = std::mem::replace(&mut self.first[rank as usize], key);
            (self.previous[at], self.next[at]) = (NONE, next);
            if next != NONE {
                self.previous[next as usize] = key;
            }
        }
    }

    /// The keys whose numbers have these ranks.
    fn keys(&self, ranks: Range<u32>) -> impl Iterator<Item = u32> {
        let firsts = self.first[ranks.start as usize..(ranks.end as usize).max(ranks.start as usize)].iter();
        let some = |key: u32| (key != NONE).then_some(key);
        firsts.flat_map(move |&first| {
            std::iter::successors(some(first), move |&key| some(self.next[key as usize]))
        })
    }
}
