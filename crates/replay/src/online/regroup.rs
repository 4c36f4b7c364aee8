//! The same keys on another number of shards: what shards hold, dealt out anew.
//!
//! **What.** [`deal`] makes of the shards of a saved state as many as there are now.
//!
//! **Steps.** Keys move as they are, to where they live; numbers of transactions and keys are those of the new place. A
//! transaction has a record wherever a version, a reader or an open verdict speaks of it, and the same arrival everywhere,
//! by which it becomes one again. Who holds it is counted anew. A program has a part wherever it names a key,
//! and everywhere if it speaks of keys that it does not name. How many keys a predicate write matched adds up over
//! shards, so the first has it all.
//!
//! **Cost.** Linear in the state; only at a restart.

use super::Settings;
use super::keys::{Key, KeyNo};
use super::program::{Act, Program, Rows};
use super::save::in_order;
use super::space::KeySpace;
use super::stamp::Stamp;
use super::timeline::{Timed, Timeline};
use super::txns::{NOBODY, Touch, Txn, TxnNo};
use super::watch::Watcher;
use crate::shards::home;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A shard that is being filled.
struct Filled {
    space: KeySpace,
    /// By arrival.
    txns: FxHashMap<u64, TxnNo>,
    looks: Vec<(Stamp, TxnNo)>,
    commits: Vec<(Stamp, TxnNo)>,
    /// Who is in which queue already.
    queued: FxHashSet<(TxnNo, bool)>,
    watchers: BTreeMap<TxnNo, Watcher>,
}

/// Where the keys of a shard went.
type Moves = FxHashMap<KeyNo, (usize, KeyNo)>;

impl Filled {
    fn new(settings: &Settings, like: &KeySpace) -> Self {
        let mut space = KeySpace::new(settings);
        space.watermark = like.watermark;
        space.horizon = like.horizon;
        space.txns.sessions.clone_from(&like.txns.sessions);
        Self {
            space,
            txns: FxHashMap::default(),
            looks: Vec::new(),
            commits: Vec::new(),
            queued: FxHashSet::default(),
            watchers: BTreeMap::new(),
        }
    }

    /// The record of a transaction, which nobody holds yet.
    fn txn(&mut self, from: &KeySpace, txn: TxnNo) -> TxnNo {
        if txn == NOBODY {
            return NOBODY;
        }
        let record = from.txns.get(txn);
        let txns = &mut self.space.txns;
        *self
            .txns
            .entry(record.arrival)
            .or_insert_with(|| txns.insert(Txn { holders: 0, touched: Vec::new(), ..record.clone() }))
    }

    fn key(&mut self, from: &KeySpace, key: KeyNo) -> KeyNo {
        let Key { name, versions, readers, before, first_is_cold, is_fresh, is_here: _, pins } =
            from.keys.get(key);
        let number = self.space.keys.insert(name.clone());
        let versions = moved(versions, |version| {
            version.txn = self.txn(from, version.txn);
            self.space.txns.hold(version.txn);
        });
        let readers = readers
            .as_ref()
            .map(|readers| Box::new(moved(readers, |reader| reader.txn = self.txn(from, reader.txn))));
        let slot = self.space.keys.get_mut(number);
        (slot.versions, slot.readers) = (versions, readers);
        (slot.before, slot.first_is_cold) = (*before, *first_is_cold);
        (slot.is_fresh, slot.pins) = (*is_fresh, *pins);
        number
    }

    /// A transaction waits in a queue, once.
    fn wait(&mut self, txn: TxnNo, stamp: Stamp, for_look: bool) {
        if self.queued.insert((txn, for_look)) {
            self.space.txns.hold(txn);
            if for_look { &mut self.looks } else { &mut self.commits }.push((stamp, txn));
        }
    }

    fn finish(mut self) -> KeySpace {
        let space = &mut self.space;
        for (queue, into) in [(&mut self.looks, &mut space.looks), (&mut self.commits, &mut space.commits)] {
            queue.sort_by_key(|(stamp, txn)| (*stamp, space.txns.get(*txn).arrival));
            *into = in_order(std::mem::take(queue));
        }
        let mut order: Vec<_> = self.watchers.values().map(|watcher| watcher.look).collect();
        order.sort_by(|&a, &b| space.txns.compare(a, b));
        space.watch.order = in_order(order);
        space.watch.by_txn = self.watchers.into_iter().collect();
        let readers = space.keys.all().filter_map(|key| space.keys.get(key).readers.as_deref());
        let wrong_reads = readers.flat_map(Timeline::iter).filter(|reader| !reader.is_right).count();
        let watchers = space.watch.by_txn.values();
        let wrong_results: usize = watchers.flat_map(|it| it.wrong.values()).map(Vec::len).sum();
        space.counts.provisional = (wrong_reads + wrong_results) as u64;
        space.count_what_is_held();
        self.space
    }
}

fn moved<T: Timed + Clone>(from: &Timeline<T>, mut change: impl FnMut(&mut T)) -> Timeline<T> {
    in_order(
        from.iter()
            .map(|item| {
                let mut item = item.clone();
                change(&mut item);
                item
            })
            .collect(),
    )
}

/// Adds all that a shard holds to others.
fn carry(from: &KeySpace, into: &mut [Filled]) {
    let workers = into.len();
    let mut moves: Moves = FxHashMap::default();
    for key in from.keys.all() {
        let to = home(from.keys.get(key).name.as_ref(), workers);
        moves.insert(key, (to, into[to].key(from, key)));
    }
    carry_queues(from, into, &moves);
    carry_watchers(from, into, &moves);
    for (to, key) in from.empty.iter().filter_map(|key| moves.get(key)) {
        into[*to].space.empty.push(*key);
    }
}

fn carry_queues(from: &KeySpace, into: &mut [Filled], moves: &Moves) {
    for (queue, for_look) in [(&from.looks, true), (&from.commits, false)] {
        for &(stamp, txn) in queue.iter() {
            for touch in &from.txns.get(txn).touched {
                let Some(&(to, key)) = moves.get(&touch.key) else { continue };
                if !(if for_look { touch.read } else { touch.wrote }) {
                    continue;
                }
                let number = into[to].txn(from, txn);
                into[to].wait(number, stamp, for_look);
                let touched = &mut into[to].space.txns.get_mut(number).touched;
                if !touched.iter().any(|other| other.key == key) {
                    touched.push(Touch { key, ..*touch });
                }
            }
        }
    }
}

/// The part of a program for a shard; `None` if there is none.
fn part(program: &Program, to: usize, moves: &Moves) -> Option<Program> {
    let piece = program.part(&mut |key| {
        let &(home, number) = moves.get(&key)?;
        (home == to).then_some(number)
    });
    (!piece.acts.is_empty()).then_some(piece)
}

fn numbers(keys: &[KeyNo], to: usize, moves: &Moves) -> Vec<KeyNo> {
    let here = keys.iter().filter_map(|key| moves.get(key)).filter(|(home, _)| *home == to);
    let mut keys: Vec<KeyNo> = here.map(|(_, key)| *key).collect();
    keys.sort_unstable();
    keys
}

fn carry_watchers(from: &KeySpace, into: &mut [Filled], moves: &Moves) {
    for (&txn, watcher) in &from.watch.by_txn {
        for (to, filled) in into.iter_mut().enumerate() {
            let Some(program) = part(&watcher.program, to, moves) else { continue };
            let number = filled.txn(from, txn);
            filled.wait(number, watcher.look.stamp, true);
            if program.may_come_to_write() {
                filled.wait(number, from.txns.get(txn).commit, false);
            }
            let mut piece = Watcher {
                look: super::txns::Moment { txn: number, ..watcher.look },
                program,
                wrong: BTreeMap::new(),
                matched: BTreeMap::new(),
                pinned: numbers(&watcher.pinned, to, moves),
            };
            for (key, wrong) in &watcher.wrong {
                if let Some(&(_, key)) = moves.get(key).filter(|(home, _)| *home == to) {
                    piece.wrong.insert(key, wrong.clone());
                }
            }
            // Of the parts that it has everywhere, the first knows how many keys matched.
            if to == 0 {
                piece.matched.clone_from(&watcher.matched);
            }
            match filled.watchers.entry(number) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(piece);
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => unite(entry.get_mut(), piece),
            }
        }
    }
}

/// Two parts of one program, of different shards.
fn unite(one: &mut Watcher, other: Watcher) {
    unite_programs(&mut one.program, other.program);
    one.wrong.extend(other.wrong);
    one.pinned.extend(other.pinned);
    one.pinned.sort_unstable();
    for (op, count) in other.matched {
        let sum = one.matched.entry(op).or_default();
        *sum = sum.wrapping_add(count);
    }
}

fn unite_programs(one: &mut Program, other: Program) {
    for (op, act) in other.acts {
        let place = one.acts.partition_point(|(other, _)| *other < op);
        let same = one.acts.get_mut(place).filter(|(other, _)| *other == op);
        match (same.map(|(_, act)| act), act) {
            (
                Some(Act::Range { rows, .. } | Act::Query { rows, .. }),
                Act::Range { rows: more, .. } | Act::Query { rows: more, .. },
            ) => {
                *rows = Rows::new(rows.iter().chain(more.iter()).cloned().collect());
            }
            (Some(Act::WriteIf { keys, .. }), Act::WriteIf { keys: more, .. }) => {
                if let Some(keys) = keys {
                    keys.extend(more.into_iter().flatten());
                }
            }
            (_, act) => one.acts.insert(place, (op, act)),
        }
    }
}

/// Deals the keys of shards out to so many.
pub(super) fn deal(from: Vec<KeySpace>, shards: usize, settings: &Settings) -> Vec<KeySpace> {
    let Some(like) = from.first().filter(|_| from.len() != shards) else { return from };
    let mut filled: Vec<Filled> = (0..shards).map(|_| Filled::new(settings, like)).collect();
    for space in &from {
        carry(space, &mut filled);
        if let Some(Filled { space: first, .. }) = filled.first_mut() {
            let (sum, more) = (&mut first.counts, space.counts);
            sum.flips += more.flips;
            sum.rechecks += more.rechecks;
            sum.evicted += more.evicted;
            sum.fetched += more.fetched;
        }
    }
    let is_used = from.iter().any(|space| space.spilled.is_used);
    let mut spaces: Vec<KeySpace> = filled.into_iter().map(Filled::finish).collect();
    spaces.iter_mut().for_each(|space| space.spilled.is_used = is_used);
    spaces
}
