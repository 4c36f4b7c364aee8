//! Lists show their own version order.
//!
//! *What*: on a key that is only appended to, with every element appended once, a list read tells which
//! transactions wrote before it and in what order. All lists read from a key must be beginnings of the
//! longest one; that one's order is known, and whoever appended but is not in it comes after it.
//!
//! ```text
//!   longest list  [ 1 2 | 5 | 3 4 ]      one segment a transaction: A, B, C
//!   known         A → B → C → every other appender
//!   a read [1 2]  saw A's version;  a read [1] saw an unfinished transaction
//! ```
//!
//! *Cost*: the elements read. *Source*: Elle (Kingsbury and Alvaro, VLDB 2020, §4.2.1), where the prefix
//! order of lists makes histories recoverable.

use crate::problem::{INITIAL, NONE, Problem, Standing, Txn};
use crate::refusal::{Contradiction, Refusal};
use history::{History, KeyId, OpId, ValueId, ValueRef};
use isolation::{Budget, Meter, Undecided};
use std::collections::HashMap;

/// One appended element.
#[derive(Clone, Copy, Debug)]
pub struct Append {
    /// The key.
    pub key: u32,
    /// The transaction.
    pub txn: Txn,
    /// What was appended.
    pub element: ValueId,
}

/// A list read from outside.
#[derive(Clone, Copy, Debug)]
pub struct ListRead {
    /// The key.
    pub key: u32,
    /// The transaction.
    pub txn: Txn,
    /// What was read.
    pub value: ValueId,
    /// How many elements at the end are the transaction's own.
    pub(crate) trim: u32,
    /// The operation.
    pub op: OpId,
    /// Its place in `Problem::reads`.
    pub slot: u32,
}

/// `[]` and absent are one thing: what appends start from.
pub fn normal(history: &History, value: ValueId) -> ValueId {
    if value.as_inline().is_some() || value == ValueId::ABSENT || !value.is_known() {
        return value;
    }
    match history.values().get(value) {
        ValueRef::List([]) => ValueId::ABSENT,
        _ => value,
    }
}

/// The elements of a list; an absent key is the empty list; a scalar is no list.
pub fn elements(history: &History, value: ValueId) -> Option<&[ValueId]> {
    if !value.is_known() {
        return None;
    }
    match history.values().get(value) {
        ValueRef::Null => Some(&[]),
        ValueRef::List(elements) => Some(elements),
        _ => None,
    }
}

/// What a list read saw from outside.
pub fn outside<'h>(history: &'h History, read: &ListRead) -> &'h [ValueId] {
    let elements = elements(history, read.value).unwrap_or_default();
    &elements[..elements.len() - read.trim as usize]
}

/// What a transaction, the last so far, has appended to a key.
pub fn own_appends(appends: &[Append], txn: Txn, key: u32, count: usize) -> Vec<ValueId> {
    let mut own: Vec<ValueId> = appends
        .iter()
        .rev()
        .take_while(|append| append.txn == txn)
        .filter(|append| append.key == key)
        .take(count)
        .map(|append| append.element)
        .collect();
    own.reverse();
    own
}

/// The order that a key's lists show.
#[derive(Debug, Default)]
struct Chain {
    /// The longest list read from outside, and who read it.
    longest: Option<ListRead>,
    reads: Vec<ListRead>,
    appends: Vec<u32>,
}

/// Looks the list reads up and adds the version orders they show.
pub fn resolve(
    history: &History,
    problem: &mut Problem,
    appends: &[Append],
    reads: &[ListRead],
    budget: &Budget,
) -> Result<(), Refusal> {
    let meter = budget.meter();
    let mut owner: HashMap<(u32, ValueId), u32, rustc_hash::FxBuildHasher> = HashMap::default();
    let mut chains: HashMap<u32, Chain, rustc_hash::FxBuildHasher> = HashMap::default();
    for (index, append) in appends.iter().enumerate() {
        meter.step()?;
        let twice = owner.insert((append.key, append.element), index as u32);
        debug_assert!(twice.is_none(), "keys with an element twice were refused before");
        chains.entry(append.key).or_default().appends.push(index as u32);
    }
    for read in reads {
        chains.entry(read.key).or_default().reads.push(*read);
    }
    promote(history, problem, appends, reads, &owner, &meter)?;
    let mut keys: Vec<u32> = chains.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let chain = chains.get_mut(&key).expect("the key is one of the map's");
        Lists { history, problem, appends, owner: &owner, key, meter: &meter }.resolve(chain)?;
    }
    Ok(())
}

/// Transactions of unknown outcome that somebody who is in must have seen are in, and what they saw.
fn promote(
    history: &History,
    problem: &mut Problem,
    appends: &[Append],
    reads: &[ListRead],
    owner: &HashMap<(u32, ValueId), u32, rustc_hash::FxBuildHasher>,
    meter: &Meter<'_>,
) -> Result<(), Undecided> {
    if !problem.standing.contains(&Standing::Maybe) {
        return Ok(());
    }
    let mut work: Vec<Txn> =
        (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] == Standing::In).collect();
    while let Some(txn) = work.pop() {
        let first = reads.partition_point(|read| read.txn < txn);
        let lists = reads[first..].iter().take_while(|read| read.txn == txn);
        let elements = lists.flat_map(|read| outside(history, read).iter().map(|&it| (read.key, it)));
        let appenders = elements.filter_map(|it| owner.get(&it)).map(|&append| appends[append as usize].txn);
        let known = problem.reads_of(txn).iter().filter(|read| read.is_known() && read.source < INITIAL);
        let writers = known.map(|read| problem.versions[read.source as usize].txn);
        for seen in appenders.chain(writers).collect::<Vec<_>>() {
            meter.step()?;
            if problem.standing[seen as usize] == Standing::Maybe {
                problem.standing[seen as usize] = Standing::In;
                problem.forced.push((seen, txn));
                work.push(seen);
            }
        }
    }
    Ok(())
}

/// The lists of one key.
struct Lists<'a> {
    history: &'a History,
    problem: &'a mut Problem,
    appends: &'a [Append],
    owner: &'a HashMap<(u32, ValueId), u32, rustc_hash::FxBuildHasher>,
    key: u32,
    meter: &'a Meter<'a>,
}

impl Lists<'_> {
    fn resolve(&mut self, chain: &mut Chain) -> Result<(), Refusal> {
        let initial = elements(self.history, self.problem.initial[self.key as usize]).unwrap_or_default();
        // 1. The longest list of a transaction that is in.
        chain.longest = self.longest(&chain.reads);
        let longest: Vec<ValueId> =
            chain.longest.map_or(initial, |read| outside(self.history, &read)).to_vec();
        // 2. Its segments: who wrote what, whole and in one piece.
        let ends = match chain.longest {
            Some(read) => self.segments(&longest, initial.len(), &read).map_err(Refusal::Contradiction)?,
            None => vec![INITIAL; initial.len() + 1],
        };
        // 3. Every other list is a beginning of it and ends between two segments.
        for read in &chain.reads {
            self.meter.steps(1 + outside(self.history, read).len())?;
            self.look_up(read, &longest, &ends, chain.longest.as_ref())?;
        }
        // 4. The order of the segments, then everybody else.
        let mut order: Vec<u32> = ends.into_iter().filter(|&version| version < INITIAL).collect();
        order.dedup();
        self.problem.chains.extend(order.windows(2).map(|pair| (pair[0], pair[1])));
        if let Some(&last) = order.last() {
            order.sort_unstable();
            let mut others: Vec<u32> = (chain.appends.iter())
                .map(|&append| self.version_of(self.appends[append as usize].txn))
                .filter(|version| order.binary_search(version).is_err())
                .collect();
            others.dedup();
            self.problem.chains.extend(others.into_iter().map(|version| (last, version)));
        }
        Ok(())
    }

    fn longest(&self, reads: &[ListRead]) -> Option<ListRead> {
        reads
            .iter()
            .filter(|read| self.problem.standing[read.txn as usize] == Standing::In)
            .max_by_key(|read| outside(self.history, read).len())
            .copied()
    }

    /// For every length a list of this order can have: the version it ends with, or [`NONE`] within a
    /// transaction's elements.
    fn segments(
        &mut self,
        list: &[ValueId],
        initial: usize,
        read: &ListRead,
    ) -> Result<Vec<u32>, Contradiction> {
        let broken = Contradiction::BrokenList { op: read.op, key: KeyId(read.key) };
        let start = elements(self.history, self.problem.initial[self.key as usize]).unwrap_or_default();
        if list.len() < initial || list[..initial] != *start {
            return Err(broken);
        }
        let mut ends = vec![NONE; list.len() + 1];
        ends[initial] = INITIAL;
        let mut at = initial;
        while at < list.len() {
            let Some(&first) = self.owner.get(&(self.key, list[at])) else {
                return Err(Contradiction::NoSource { op: read.op, key: KeyId(read.key) });
            };
            let txn = self.appends[first as usize].txn;
            let mine = self.appends_of(txn);
            if list.len() - at < mine.len() || list[at..at + mine.len()] != mine[..] {
                return Err(broken);
            }
            at += mine.len();
            ends[at] = self.version_of(txn);
            // Somebody saw it: it took effect.
            match self.problem.standing[txn as usize] {
                Standing::In => {}
                Standing::Maybe => self.problem.standing[txn as usize] = Standing::In,
                Standing::Out => return Err(Contradiction::NoSource { op: read.op, key: KeyId(read.key) }),
            }
        }
        // An element twice would have appeared in a segment that is already complete.
        let mut versions: Vec<u32> = ends.iter().copied().filter(|&version| version < INITIAL).collect();
        let count = versions.len();
        versions.sort_unstable();
        versions.dedup();
        if versions.len() == count { Ok(ends) } else { Err(broken) }
    }

    fn look_up(
        &mut self,
        read: &ListRead,
        longest: &[ValueId],
        ends: &[u32],
        by: Option<&ListRead>,
    ) -> Result<(), Refusal> {
        let list = outside(self.history, read);
        let standing = self.problem.standing[read.txn as usize];
        let found = if list.len() > longest.len() {
            // Only a transaction that may not have taken effect can have read more.
            return Err(Refusal::Unsupported(
                "a transaction of unknown outcome read a list longer than any other".into(),
            ));
        } else if *list != longest[..list.len()] {
            let key = KeyId(read.key);
            let initial = elements(self.history, self.problem.initial[self.key as usize]).unwrap_or_default();
            let is_written = |it: &ValueId| initial.contains(it) || self.owner.contains_key(&(self.key, *it));
            match by.filter(|_| list.iter().all(is_written)) {
                Some(by) => Err(Contradiction::IncompatibleLists { first: by.op, second: read.op, key }),
                None => Err(Contradiction::NoSource { op: read.op, key }),
            }
        } else {
            match ends[list.len()] {
                NONE => Err(Contradiction::BrokenList { op: read.op, key: KeyId(read.key) }),
                version => Ok(version),
            }
        };
        // A transaction cannot have seen its own element before it appended it.
        let own = self.problem.version_by(read.txn, self.key).is_some() && {
            let mine = self.appends_of(read.txn);
            list.iter().any(|element| mine.contains(element))
        };
        let found =
            if own { Err(Contradiction::BrokenList { op: read.op, key: KeyId(read.key) }) } else { found };
        match (found, standing) {
            (Ok(source), _) => self.problem.reads[read.slot as usize].source = source,
            (Err(contradiction), Standing::In) => return Err(Refusal::Contradiction(contradiction)),
            (Err(_), _) => self.problem.standing[read.txn as usize] = Standing::Out,
        }
        Ok(())
    }

    fn appends_of(&self, txn: Txn) -> Vec<ValueId> {
        // A transaction's appends are consecutive; its first one is found by bisection.
        let first = self.appends.partition_point(|append| append.txn < txn);
        self.appends[first..]
            .iter()
            .take_while(|append| append.txn == txn)
            .filter(|append| append.key == self.key)
            .map(|append| append.element)
            .collect()
    }

    fn version_of(&self, txn: Txn) -> u32 {
        self.problem.version_by(txn, self.key).expect("an append leaves a version of its key")
    }
}
