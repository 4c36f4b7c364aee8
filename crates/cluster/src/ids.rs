//! Ids that two transactions have, whoever read them.
//!
//! **What.** A history in which an id comes twice is refused, as when one process reads it, with the same sentence.
//!
//! **Steps.** Every worker keeps the ids of what it reads as a set ([`IdSet`]: mostly a few intervals). When everything
//! is read, the sets are compared: counters at the home of what is counted, hashes of odd ids at the home of the hash. A
//! hash that two workers have, or one worker twice, is only suspected: then all look into their stretches again, and
//! say where names with such a hash are. Only names that are equal are refused.
//!
//! ```text
//!   sets ── intervals ── home of the prefix ──┐
//!        ── hashes ───── home of the hash ────┴─> suspects ── told to all ──> places ── told to all ──> refused, or not
//! ```
//!
//! A name like `3:7` may be what a transaction without a name is called by default, and that depends on everything of its
//! session that comes before. Only if there are such names and also transactions without one, all are counted first and
//! then compared by their hashes.
//!
//! **Invariant.** All workers take every step or none, and come to the same end.
//!
//! **Cost.** Nothing if there are no names; some bytes if they are counted; 8 bytes to another worker and some 30 held for an
//! odd one. What is suspected costs another reading.

use crate::exchange::{everybody, exchange, stream};
use crate::gather::{Before, Census};
use crate::job::Job;
use crate::setup::Failure;
use crate::source::{Dealt, PARTS_MAX, of_process};
use history::formats::ReadError;
use history::{BuildError, History, Id, IdSet, NameRef, Transaction, counter_of, hash_of, with_name};
use replay::shards::{Label, home};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::rc::Rc;
use timely::worker::Worker;

/// The ids of what a worker has read.
#[derive(Debug)]
pub(crate) struct Ids {
    set: IdSet,
    /// Hashes of those that came twice, or may have.
    suspects: Vec<u64>,
    has_unnamed: bool,
    are_unique: bool,
}

impl Default for Ids {
    fn default() -> Self {
        Self { set: IdSet::hashed(), suspects: Vec::new(), has_unnamed: false, are_unique: false }
    }
}

/// So many are looked for; one that is there is enough.
const SUSPECTS_MAX: usize = 1 << 10;
/// How many hashes are sent at once, and how many parcels of a worker may be under way.
const HASHES_AT_ONCE: usize = 1 << 14;
const UNDER_WAY: u64 = 4;

/// What a worker says of its ids.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Summary {
    has_names: bool,
    has_odd: bool,
    has_overflowed: bool,
    has_defaults: bool,
    has_unnamed: bool,
}

/// Counters: what comes before the number, and intervals.
type Counters = Vec<(Option<Box<str>>, Vec<(i64, i64)>)>;

impl Ids {
    /// Everything is about to be read.
    pub(crate) fn begin(&mut self) {
        *self = Self { are_unique: self.are_unique, ..Self::default() };
    }

    /// A part was read.
    pub(crate) fn take(&mut self, part: &History) {
        if self.are_unique {
            return;
        }
        let names = part.explicit_ids();
        self.has_unnamed |= names.len() < part.len();
        let suspects = &mut self.suspects;
        self.set.admit(names, |name, _| {
            if suspects.len() < SUSPECTS_MAX {
                suspects.push(hash_of(name));
            }
        });
    }

    /// Everything was read, by everybody: refuses it if an id came twice.
    pub(crate) fn unite(&mut self, worker: &mut Worker, job: &Job, dealt: &[Dealt]) -> Result<(), Failure> {
        if self.are_unique {
            return Ok(());
        }
        let mine = std::mem::take(self);
        // 1. Is there anything to compare?
        let summary = everybody(worker, mine.summary());
        let any = |has: fn(&Summary) -> bool| summary.iter().any(has);
        let mut suspects = mine.suspects;
        if worker.peers() > 1 && any(|it| it.has_names) {
            // 2. Counters, and what is odd. A counter that had no room at one worker may be kept by another.
            let overflowed = any(|it| it.has_overflowed);
            if overflowed || any(|it| it.has_odd) {
                suspects.extend(compared(worker, |send| send_hashes(&mine.set, overflowed, send)));
            }
            suspects.extend(overlaps(worker, &mine.set));
        }
        // 3. Names that others have by default.
        let mut before = FxHashMap::default();
        if any(|it| it.has_defaults) && any(|it| it.has_unnamed) {
            before = Census::before(everybody(worker, Census::of(job, dealt)));
            suspects.extend(defaults(worker, job, dealt, &before));
        }
        drop(mine.set);
        suspects.truncate(SUSPECTS_MAX);
        let suspects: FxHashSet<u64> = everybody(worker, suspects).into_iter().flatten().collect();
        // 4. Whether they are there, and where.
        if !suspects.is_empty() {
            let places = find(worker.index(), job, dealt, &suspects, &before);
            let places = everybody(worker, places).into_iter().flatten().collect();
            if let Some((first, second)) = earliest(places) {
                return Err(refusal(worker, job, dealt, &first, &second));
            }
        }
        self.are_unique = true;
        Ok(())
    }

    fn summary(&self) -> Summary {
        Summary {
            has_names: !self.set.is_empty(),
            has_odd: self.set.hashes().next().is_some(),
            has_overflowed: self.set.has_overflowed(),
            has_defaults: self.set.has_defaults(),
            has_unnamed: self.has_unnamed,
        }
    }
}

/// Names that several workers counted, by their hashes.
fn overlaps(worker: &mut Worker, set: &IdSet) -> Vec<u64> {
    let peers = worker.peers();
    let mut by_home: Vec<Counters> = vec![Vec::new(); peers];
    for (prefix, intervals) in set.counters().filter(|(_, intervals)| !intervals.is_empty()) {
        by_home[home(NameRef::Str(prefix.unwrap_or("")), peers)]
            .push((prefix.map(Into::into), intervals.to_vec()));
    }
    let own = worker.index() as u64;
    let came = exchange(worker, by_home.into_iter().enumerate().map(|(to, counters)| (to, own, counters)));
    let mut all: FxHashMap<Option<Box<str>>, Vec<(i64, i64)>> = FxHashMap::default();
    for (prefix, intervals) in came.into_iter().flat_map(|(_, counters)| counters) {
        all.entry(prefix).or_default().extend(intervals);
    }
    let mut found = Vec::new();
    for (prefix, mut intervals) in all {
        intervals.sort_unstable();
        let mut end = None;
        for (first, last) in intervals {
            let common = end.is_some_and(|end| first <= end);
            if common && found.len() < SUSPECTS_MAX {
                found.push(with_name(prefix.as_deref(), first, hash_of));
            }
            end = end.max(Some(last));
        }
    }
    found
}

/// Hashes of odd names, or of all.
fn send_hashes(set: &IdSet, all: bool, send: &mut dyn FnMut(u64, Kind)) {
    set.hashes().for_each(|hash| send(hash, Kind::Name));
    for (prefix, intervals) in set.counters().filter(|_| all) {
        for &(first, last) in intervals {
            (first..=last).for_each(|number| send(with_name(prefix, number, hash_of), Kind::Name));
        }
    }
}

/// Whose hash it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Kind {
    /// A name that was given.
    Name,
    /// A name by default: others may have it by default, too.
    Default,
}

/// Sends hashes to their homes; those that came there from several, not all of them by default.
fn compared(worker: &mut Worker, make: impl FnOnce(&mut dyn FnMut(u64, Kind))) -> Vec<u64> {
    let peers = worker.peers();
    let (names, by_default) =
        (Rc::<RefCell<FxHashSet<u64>>>::default(), Rc::<RefCell<FxHashSet<u64>>>::default());
    let found = Rc::<RefCell<Vec<u64>>>::default();
    let (at, other, into) = (names.clone(), by_default.clone(), found.clone());
    stream(
        worker,
        |worker, sender| {
            let mut waiting: Vec<[Vec<u64>; 2]> = vec![Default::default(); peers];
            make(&mut |hash, kind| {
                let to = ((u128::from(hash) * peers as u128) >> 64) as usize;
                let hashes = &mut waiting[to][kind as usize];
                hashes.push(hash);
                if hashes.len() >= HASHES_AT_ONCE {
                    sender.send(worker, [(to, (kind, std::mem::take(hashes)))]);
                    sender.wait(worker, UNDER_WAY);
                }
            });
            for (to, [named, by_default]) in waiting.into_iter().enumerate() {
                sender.send(worker, [(to, (Kind::Name, named)), (to, (Kind::Default, by_default))]);
            }
        },
        move |(kind, hashes): (Kind, Vec<u64>)| {
            let (mut names, mut by_default) = (at.borrow_mut(), other.borrow_mut());
            for hash in hashes {
                let is_common = match kind {
                    Kind::Name => !names.insert(hash) || by_default.contains(&hash),
                    Kind::Default => {
                        by_default.insert(hash);
                        names.contains(&hash)
                    }
                };
                if is_common && into.borrow().len() < SUSPECTS_MAX {
                    into.borrow_mut().push(hash);
                }
            }
        },
    );
    found.take()
}

/// Names by default that others were given, by their hashes.
fn defaults(worker: &mut Worker, job: &Job, dealt: &[Dealt], before: &Before) -> Vec<u64> {
    compared(worker, |send| {
        each_part(job, dealt, |_, dealt, part| {
            for txn in part.transactions() {
                match txn.explicit_id() {
                    None => send(
                        hash_of(NameRef::Str(&default_name(part, txn, dealt.order, before))),
                        Kind::Default,
                    ),
                    Some(name) if is_default(name) => send(hash_of(name), Kind::Name),
                    Some(_) => {}
                }
            }
        });
    })
}

/// Whether a name could be one by default.
fn is_default(name: NameRef<'_>) -> bool {
    matches!(counter_of(name), Some((Some(prefix), _)) if prefix.ends_with(':'))
}

fn default_name(part: &History, txn: Transaction<'_>, stretch: u64, before: &Before) -> String {
    let session = part.sessions().get(txn.session());
    let earlier = Census::earlier(before, session, stretch);
    format!("{session}:{}", txn.position() + earlier)
}

/// Gives all parts of a worker to `each`, with their place in the history. What cannot be read was told before.
fn each_part(job: &Job, dealt: &[Dealt], mut each: impl FnMut(u64, &Dealt, &History)) {
    for dealt in dealt {
        let mut number = 0;
        let _ = dealt.stretch.read(&job.reading, |part| {
            each(dealt.order + number % PARTS_MAX, dealt, &part);
            number += 1;
            true
        });
    }
}

/// Where a name is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Found {
    /// The part, and the transaction in it.
    order: u64,
    transaction: u32,
    name: Label,
    by_default: bool,
    /// Who read it.
    worker: usize,
    path: String,
}

/// Where names with these hashes are.
fn find(worker: usize, job: &Job, dealt: &[Dealt], suspects: &FxHashSet<u64>, before: &Before) -> Vec<Found> {
    let mut found = Vec::new();
    each_part(job, dealt, |order, dealt, part| {
        for txn in part.transactions() {
            let by_default;
            let name = match txn.explicit_id() {
                Some(name) => name,
                None if before.is_empty() => continue,
                None => {
                    by_default = default_name(part, txn, dealt.order, before);
                    NameRef::Str(&by_default)
                }
            };
            if suspects.contains(&hash_of(name)) {
                found.push(Found {
                    order,
                    transaction: txn.id().index() as u32,
                    name: name.into(),
                    by_default: txn.explicit_id().is_none(),
                    worker,
                    path: dealt.stretch.path.display().to_string(),
                });
            }
        }
    });
    found
}

/// The first name that comes a second time, and where it came before.
fn earliest(mut places: Vec<Found>) -> Option<(Found, Found)> {
    places.sort_unstable();
    let mut first: FxHashMap<Label, Found> = FxHashMap::default();
    for place in places {
        match first.get(&place.name) {
            Some(before) if before.by_default && place.by_default => {}
            Some(before) => return Some((before.clone(), place)),
            None => {
                first.insert(place.name.clone(), place);
            }
        }
    }
    None
}

/// Says what one process would say.
fn refusal(worker: &mut Worker, job: &Job, dealt: &[Dealt], first: &Found, second: &Found) -> Failure {
    let file = |found: &Found| (found.order / PARTS_MAX) >> 24;
    let mut said = None;
    if worker.index() == second.worker
        && let Some(dealt) =
            dealt.iter().find(|dealt| dealt.stretch.path.display().to_string() == second.path)
    {
        let path = &dealt.stretch.path;
        let error = BuildError::DuplicateId(second.name.to_string());
        let error = ReadError::Build { path: path.clone(), error };
        // Within one file, with the line.
        said =
            Some(if file(first) == file(second) { job.plain_error(path, &error) } else { error.to_string() });
    }
    let said = everybody(worker, said).into_iter().flatten().next().unwrap_or_default();
    let mut said = of_process(job, second.worker / job.setup.workers.max(1), &said);
    if job.reading.lenient {
        said += "; without --workers and --cluster, --lenient skips it";
    }
    Failure::Input(said)
}

#[cfg(test)]
mod tests {
    use super::{Found, earliest};
    use replay::shards::Label;

    fn found(order: u64, name: i64, by_default: bool) -> Found {
        let name = Label::Int(name);
        Found { order, transaction: 0, name, by_default, worker: 0, path: String::new() }
    }

    #[test]
    fn the_first_that_comes_again_is_told() {
        let earliest = |places: &[(u64, i64, bool)]| {
            let places = places.iter().map(|&(order, name, by_default)| found(order, name, by_default));
            earliest(places.collect()).map(|(first, second)| (first.order, second.order))
        };
        assert_eq!(earliest(&[(9, 7, false), (1, 7, false), (5, 8, false), (2, 8, false)]), Some((2, 5)));
        // Other names with the same hash, and defaults that are alike, are no reason.
        assert_eq!(earliest(&[(1, 7, false), (2, 8, false)]), None);
        assert_eq!(earliest(&[(1, 7, true), (2, 7, true)]), None);
        assert_eq!(earliest(&[(1, 7, true), (2, 7, true), (3, 7, false)]), Some((1, 3)));
    }
}
