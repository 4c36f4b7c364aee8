//! Every placement of every transaction whose outcome is unknown, one after the other: the definition of what such a
//! history may be.
//!
//! The moments of all others are a list, in order: looks and commits. A transaction of unknown outcome is left out, or its
//! look and its commit are put into the list at any two places that its timestamps allow. The history is explained if some
//! list plays through without a finding.

use crate::naive::{self, Asked, Effects, Run, all_keys, commit_order, normal, snapshots};
use history::{Name, Status, Timestamp};
use oracle::tiny::{Datum, Sketch};
use std::collections::BTreeMap;

/// So many placements are tried.
const TRIES_MAX: usize = 200_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Look,
    /// The look of a transaction that starts and commits at once.
    LookAtOnce,
    Commit,
}

#[derive(Clone, Copy, Debug)]
struct Event {
    /// None for those whose place is tried.
    at: Option<Timestamp>,
    kind: Kind,
    txn: usize,
}

/// Whether some placement explains the history; `None` if there are too many to try.
pub(crate) fn explained(sketch: &Sketch, asked: Asked) -> Option<bool> {
    // Whether timestamps alone break something has nothing to do with placements.
    if !naive::orders(sketch, asked).is_empty() {
        return Some(false);
    }
    let order = commit_order(sketch);
    let snapshot = snapshots(&order, asked.serial);
    let mut events = Vec::new();
    for rank in 0..order.len() {
        if !asked.serial {
            let mut looks: Vec<usize> = (0..order.len())
                .filter(|&other| snapshot[other] == rank && order[other].start < order[other].commit)
                .collect();
            looks.sort_by_key(|&other| order[other].start);
            for other in looks {
                events.push(Event { at: Some(order[other].start), kind: Kind::Look, txn: order[other].txn });
            }
        }
        let at = Some(order[rank].commit);
        if asked.serial || order[rank].start >= order[rank].commit {
            events.push(Event { at, kind: Kind::LookAtOnce, txn: order[rank].txn });
        }
        events.push(Event { at, kind: Kind::Commit, txn: order[rank].txn });
    }
    let unknown: Vec<usize> = (0..sketch.transactions.len())
        .filter(|&txn| sketch.transactions[txn].status == Status::Unknown)
        .filter(|&txn| !naive::is_read_only(&sketch.transactions[txn]))
        .collect();
    let search = Search { sketch, asked, keys: all_keys(sketch), unknown };
    let mut tries = 0;
    let found = search.place(&events, 0, &mut tries);
    (found || tries < TRIES_MAX).then_some(found)
}

struct Search<'s> {
    sketch: &'s Sketch,
    asked: Asked,
    keys: Vec<Name>,
    unknown: Vec<usize>,
}

impl Search<'_> {
    fn place(&self, events: &[Event], next: usize, tries: &mut usize) -> bool {
        let Some(&txn) = self.unknown.get(next) else {
            *tries += 1;
            return self.plays(events);
        };
        if self.place(events, next + 1, tries) {
            return true;
        }
        for look in 0..=events.len() {
            for commit in look..=events.len() {
                if *tries >= TRIES_MAX {
                    return false;
                }
                if self.asked.serial && look != commit || !self.may_be(events, txn, look, commit) {
                    continue;
                }
                let mut with = events.to_vec();
                with.insert(commit, Event { at: None, kind: Kind::Commit, txn });
                with.insert(look, Event { at: None, kind: Kind::Look, txn });
                if self.place(&with, next + 1, tries) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether the timestamps of a transaction, its session and its client's clock allow these places.
    fn may_be(&self, events: &[Event], txn: usize, look: usize, commit: usize) -> bool {
        let own = &self.sketch.transactions[txn];
        let (before_look, after_look) = events.split_at(look);
        let (before, after) = events.split_at(commit);
        // A serial place is one place: nobody stands between a look and its commit.
        let between = |event: &Event| self.asked.serial && event.kind == Kind::LookAtOnce;
        if before.last().is_some_and(between) {
            return false;
        }
        if let Some((start, end)) = own.db {
            let commits = |event: &&Event| event.kind == Kind::Commit;
            let too_early = after.iter().any(|event| event.at.is_some_and(|at| at < start));
            let sees_too_little =
                after_look.iter().filter(commits).any(|event| event.at.is_some_and(|at| at < start));
            let sees_too_much =
                before_look.iter().filter(commits).any(|event| event.at.is_some_and(|at| at > start));
            let too_late = end >= start
                && before.iter().any(|event| {
                    event.at.is_some_and(|at| at > end || at == end && event.kind == Kind::Look)
                });
            if too_early || too_late || !self.asked.serial && (sees_too_little || sees_too_much) {
                return false;
            }
        }
        // What it has to see.
        after_look.iter().filter(|event| event.kind == Kind::Commit).all(|event| {
            let other = &self.sketch.transactions[event.txn];
            let is_known = other.status == Status::Committed;
            let in_session = self.asked.session && other.session == own.session && event.txn < txn;
            let ended = self.asked.realtime
                && other.client.zip(own.client).is_some_and(|(first, second)| first.end < second.begin);
            !(is_known && (in_session || ended))
        })
    }

    /// Plays the events; whether everything fits.
    fn plays(&self, events: &[Event]) -> bool {
        let initial = self.sketch.initial.iter().map(|(key, datum)| (key.clone(), normal(datum)));
        let mut state: BTreeMap<Name, Datum> = initial.filter(|(_, datum)| *datum != Datum::Absent).collect();
        let mut open: BTreeMap<usize, (usize, Effects)> = BTreeMap::new();
        let mut written: BTreeMap<Name, usize> = BTreeMap::new();
        for (place, event) in events.iter().enumerate() {
            if event.kind != Kind::Commit {
                let run = Run::new(&self.keys, &state).all(&self.sketch.transactions[event.txn]);
                if !run.told.is_empty() {
                    return false;
                }
                open.insert(event.txn, (place, run.own));
                continue;
            }
            let (looked, effects) = open.remove(&event.txn).expect("it looked before");
            for key in effects.keys() {
                let last = written.insert(key.clone(), place);
                if !self.asked.serial && last.is_some_and(|last| last > looked) {
                    return false;
                }
            }
            naive::apply(&mut state, &effects);
        }
        true
    }
}
