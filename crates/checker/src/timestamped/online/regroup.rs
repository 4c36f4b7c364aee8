//! A state for another number of workers: what one checker holds, dealt out to workers, and gathered again.
//!
//! **What.** [`split`] makes of one checker where transactions arrive and the workers with its keys; [`join`] makes one checker
//! of those. A run that is restarted with another number of workers goes through both.
//!
//! **Steps.** Keys move as they are, to where they live; numbers of transactions and keys are those of the new place. A
//! transaction has a record wherever a version, a reader or an open verdict speaks of it, and the same arrival everywhere,
//! by which it becomes one again. Who holds it is counted anew. A program has a part wherever it names a key,
//! and everywhere if it speaks of keys that it does not name. How many keys a predicate write matched adds up over
//! workers, so the first has it all.
//!
//! **Cost.** Linear in the state; only at a restart.

use super::keys::{Key, KeyNo};
use super::program::{Act, Program, Rows};
use super::save::in_order;
use super::stamp::Stamp;
use super::timeline::{Timed, Timeline};
use super::txns::{NOBODY, Touch, Txn, TxnNo};
use super::watch::Watcher;
use super::{Counters, Online, Settings};
use crate::timestamped::Refusal;
use crate::timestamped::shards::home;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A checker that is being filled.
struct Filled {
    online: Online,
    /// By arrival.
    txns: FxHashMap<u64, TxnNo>,
    looks: Vec<(Stamp, TxnNo)>,
    commits: Vec<(Stamp, TxnNo)>,
    /// Who is in which queue already.
    queued: FxHashSet<(TxnNo, bool)>,
    watchers: BTreeMap<TxnNo, Watcher>,
}

/// Where the keys of a checker went.
type Moves = FxHashMap<KeyNo, (usize, KeyNo)>;

impl Filled {
    fn new(settings: &Settings, like: &Online) -> Result<Self, Refusal> {
        let mut online = Online::new(settings.clone())?;
        online.watermark = like.watermark;
        online.horizon = like.horizon;
        online.newest = like.newest;
        online.txns.sessions.clone_from(&like.txns.sessions);
        Ok(Self {
            online,
            txns: FxHashMap::default(),
            looks: Vec::new(),
            commits: Vec::new(),
            queued: FxHashSet::default(),
            watchers: BTreeMap::new(),
        })
    }

    /// The record of a transaction, which nobody holds yet.
    fn txn(&mut self, from: &Online, txn: TxnNo) -> TxnNo {
        if txn == NOBODY {
            return NOBODY;
        }
        let record = from.txns.get(txn);
        let txns = &mut self.online.txns;
        *self.txns.entry(record.arrival).or_insert_with(|| {
            txns.insert(Txn { holders: 0, queues: 0, touched: Vec::new(), ..record.clone() })
        })
    }

    fn key(&mut self, from: &Online, key: KeyNo) -> KeyNo {
        let Key { name, versions, readers, before, first_is_cold, is_fresh, is_here: _, pins } =
            from.keys.get(key);
        let number = self.online.keys.insert(name.clone());
        let versions = moved(versions, |version| {
            version.txn = self.txn(from, version.txn);
            self.online.txns.hold(version.txn);
        });
        let readers = readers
            .as_ref()
            .map(|readers| Box::new(moved(readers, |reader| reader.txn = self.txn(from, reader.txn))));
        let slot = self.online.keys.get_mut(number);
        (slot.versions, slot.readers) = (versions, readers);
        (slot.before, slot.first_is_cold) = (*before, *first_is_cold);
        (slot.is_fresh, slot.pins) = (*is_fresh, *pins);
        number
    }

    /// A transaction waits in a queue, once.
    fn wait(&mut self, txn: TxnNo, stamp: Stamp, for_look: bool) {
        if self.queued.insert((txn, for_look)) {
            self.online.txns.hold(txn);
            self.online.txns.get_mut(txn).queues += 1;
            if for_look { &mut self.looks } else { &mut self.commits }.push((stamp, txn));
        }
    }

    fn finish(mut self) -> Online {
        let online = &mut self.online;
        for (queue, into) in [(&mut self.looks, &mut online.looks), (&mut self.commits, &mut online.commits)]
        {
            queue.sort_by_key(|(stamp, txn)| (*stamp, online.txns.get(*txn).arrival));
            *into = in_order(std::mem::take(queue));
        }
        let mut order: Vec<_> = self.watchers.values().map(|watcher| watcher.look).collect();
        order.sort_by(|&a, &b| online.txns.compare(a, b));
        online.watch.order = in_order(order);
        online.watch.by_txn = self.watchers.into_iter().collect();
        let readers = online.keys.all().filter_map(|key| online.keys.get(key).readers.as_deref());
        let wrong_reads = readers.flat_map(Timeline::iter).filter(|reader| !reader.is_right).count();
        let watchers = online.watch.by_txn.values();
        let wrong_results: usize = watchers.flat_map(|it| it.wrong.values()).map(Vec::len).sum();
        online.counters.provisional = (wrong_reads + wrong_results) as u64;
        online.count_what_is_held();
        self.online
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

/// Adds all that a checker holds of keys to others.
fn carry(from: &Online, into: &mut [Filled]) {
    let workers = into.len();
    let mut moves: Moves = FxHashMap::default();
    for key in from.keys.all() {
        let to = home(from.keys.get(key).name.as_ref(), workers);
        moves.insert(key, (to, into[to].key(from, key)));
    }
    carry_queues(from, into, &moves);
    carry_watchers(from, into, &moves);
    for (to, key) in from.empty.iter().filter_map(|key| moves.get(key)) {
        into[*to].online.empty.push(*key);
    }
}

fn carry_queues(from: &Online, into: &mut [Filled], moves: &Moves) {
    for (queue, for_look) in [(&from.looks, true), (&from.commits, false)] {
        for &(stamp, txn) in queue.iter().filter(|(_, txn)| *txn != NOBODY) {
            for touch in &from.txns.get(txn).touched {
                let Some(&(to, key)) = moves.get(&touch.key) else { continue };
                if !(if for_look { touch.read } else { touch.wrote }) {
                    continue;
                }
                let number = into[to].txn(from, txn);
                into[to].wait(number, stamp, for_look);
                let touched = &mut into[to].online.txns.get_mut(number).touched;
                if !touched.iter().any(|other| other.key == key) {
                    touched.push(Touch { key, ..*touch });
                }
            }
        }
    }
}

/// The part of a program for a worker; `None` if there is none.
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

fn carry_watchers(from: &Online, into: &mut [Filled], moves: &Moves) {
    for (&txn, watcher) in &from.watch.by_txn {
        for (to, filled) in into.iter_mut().enumerate() {
            let Some(program) = part(&watcher.program, to, moves) else { continue };
            let number = filled.txn(from, txn);
            filled.wait(number, watcher.look.stamp, true);
            if program.writes_anywhere() {
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

/// Two parts of one program, of different workers.
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

/// Deals the keys of a checker out to workers. The first of what comes back is where transactions arrive.
pub(super) fn split(whole: Online, workers: usize) -> Result<(Online, Vec<Online>), Refusal> {
    let mut filled = Vec::with_capacity(workers);
    for _ in 0..workers {
        filled.push(Filled::new(&whole.settings, &whole)?);
    }
    carry(&whole, &mut filled);
    let mut front = Filled::new(&whole.settings, &whole)?.finish();
    front.next_number = whole.next_number;
    front.counters = Counters { provisional: 0, ..whole.counters.clone() };
    let mut last: BTreeMap<u64, Stamp> = BTreeMap::new();
    for (stamp, txn) in whole.looks.iter().chain(whole.commits.iter()) {
        let last = last.entry(whole.txns.get(*txn).arrival).or_insert(*stamp);
        *last = (*last).max(*stamp);
    }
    let mut last: Vec<Stamp> = last.into_values().collect();
    last.sort_unstable();
    front.commits = in_order(last.into_iter().map(|stamp| (stamp, NOBODY)).collect());
    front.sessions.all = whole.sessions.all;
    front.clock = whole.clock;
    front.delivered = whole.delivered;
    front.log = whole.log;
    front.count_what_is_held();
    Ok((front, filled.into_iter().map(Filled::finish).collect()))
}

/// One checker of where transactions arrive, and workers.
pub(super) fn join(front: Online, workers: &[Online]) -> Result<Online, Refusal> {
    let mut filled = [Filled::new(&front.settings, &front)?];
    for worker in workers {
        carry(worker, &mut filled);
    }
    let [filled] = filled;
    let mut whole = filled.finish();
    whole.next_number = front.next_number;
    let sum = |count: fn(&Counters) -> u64| {
        count(&front.counters) + workers.iter().map(|worker| count(&worker.counters)).sum::<u64>()
    };
    let open: FxHashSet<TxnNo> =
        whole.looks.iter().chain(whole.commits.iter()).map(|(_, txn)| *txn).collect();
    let pending = front.commits.len();
    whole.counters = Counters {
        provisional: whole.counters.provisional,
        flips: sum(|counters| counters.flips),
        rechecks: sum(|counters| counters.rechecks),
        evicted: sum(|counters| counters.evicted),
        fetched: sum(|counters| counters.fetched),
        // Of those that wait for nothing any more, nobody will say so.
        settled: front.counters.settled + pending.saturating_sub(open.len()) as u64,
        ..front.counters
    };
    whole.sessions.all = front.sessions.all;
    whole.clock = front.clock;
    whole.delivered = front.delivered;
    whole.log = front.log;
    whole.count_what_is_held();
    Ok(whole)
}
