//! A history that arrives in parts, in the order of commits: accepted in memory that does not grow with it.
//!
//! **What.** The replay of [`super::replay`] without the history: of each key the newest version, and older ones only
//! for the last [`WINDOW`] commits. It says *yes*, or it stops: at the first thing that does not fit, and at
//! anything it does not know (operations on many keys, appends, unknown outcomes, equal commit timestamps, a
//! transaction longer than the window, a part out of order). Whoever asks then loads the history whole; only that
//! check tells what is wrong. That ids are unique across parts is for whoever reads them to see, as
//! [`history::formats::read_parts`] does.
//!
//! **Invariant.** Every version that a snapshot within the window sees is kept. Values are compared as [`Datum`], since the
//! ids of one part mean nothing in another.
//!
//! **Cost.** As the replay, one comparison and one hash of each key a part more; memory for the keys, the sessions and the
//! versions of the window.

use super::datum::Datum;
use super::step::{Deeds, Interned, Read, Rules};
use super::versions::{Version, Versions};
use super::{Refusal, decides};
use history::{History, Id, Name, NameRef, PointKind, Status, Timestamp};
use isolation::coverage::{Coverage, Habits, Use};
use isolation::{Level, Rule, Ryow};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How many commits back a snapshot may lie. Versions of four times as many do not fit into a core's cache, and took a
/// third more time.
const WINDOW: usize = 1 << 14;

/// Why it stopped: the history has to be looked at as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// Something does not fit.
    Violated,
    /// Something is not known here.
    Beyond,
}

struct Key {
    /// By how many commits there were with a version's own.
    versions: Versions<u64>,
    used: Use,
}

/// A replay of parts.
pub struct Streamed {
    serial: bool,
    session: bool,
    names: FxHashMap<Name, u32>,
    keys: Vec<Key>,
    /// Of each session the last commit.
    sessions: FxHashMap<Name, u32>,
    last_of_session: Vec<Option<Timestamp>>,
    /// The last commits; `before` came before them.
    commits: VecDeque<Timestamp>,
    before: u64,
    deeds: Deeds,
    part_keys: Vec<u32>,
    part_sessions: Vec<u32>,
    transactions: u64,
    operations: u64,
    habits: Habits,
    counted: Coverage,
}

impl Streamed {
    /// Nothing has arrived yet.
    pub fn new(level: Level) -> Result<Self, Refusal> {
        if !decides(level) || level.realtime {
            return Err(Refusal::Level);
        }
        Ok(Self {
            serial: level.rule == Rule::Serializable,
            session: level.session,
            names: FxHashMap::default(),
            keys: Vec::new(),
            sessions: FxHashMap::default(),
            last_of_session: Vec::new(),
            commits: VecDeque::with_capacity(2 * WINDOW),
            before: 0,
            deeds: Deeds::default(),
            part_keys: Vec::new(),
            part_sessions: Vec::new(),
            transactions: 0,
            operations: 0,
            habits: Habits::default(),
            counted: Coverage::default(),
        })
    }

    /// How many transactions, operations and sessions there were.
    pub fn size(&self) -> (u64, u64, usize) {
        (self.transactions, self.operations, self.sessions.len())
    }

    /// What it tested so far.
    pub fn coverage(&self) -> Coverage {
        let used = || self.keys.iter().map(|key| &key.used);
        Coverage {
            keys: used().filter(|it| it.is_used()).count(),
            unshared: used().filter(|it| it.is_used() && !it.is_shared).count(),
            blind_spots: self.habits.blind_spots(used()),
            ..self.counted.clone()
        }
    }

    /// Whether any transaction was committed.
    pub fn has_committed(&self) -> bool {
        !self.commits.is_empty()
    }

    /// Replays the next part.
    pub fn take(&mut self, part: &History) -> Result<(), Stopped> {
        self.translate(part);
        self.habits.clocks |= part.has_client_clocks();
        for row in part.initial() {
            let key = &mut self.keys[self.part_keys[row.key.index()] as usize];
            // Only the first part may say what there was before.
            if self.transactions > 0 {
                return Err(Stopped::Beyond);
            }
            key.versions.newest.value = Datum::of(part.values(), row.value);
        }
        for txn in part.transactions() {
            self.transactions += 1;
            self.operations += txn.op_ids().len() as u64;
            match (txn.status(), txn.db()) {
                (Status::Aborted, _) => {
                    let writes = |op| part.point(op).is_some_and(|point| point.kind != PointKind::Read);
                    self.habits.aborted_writes = self.habits.aborted_writes || txn.op_ids().any(writes);
                }
                (Status::Committed, Some((start, commit))) => {
                    let session = self.part_sessions[txn.session().index()];
                    self.replay(part, txn, session, start, commit)?;
                }
                _ => return Err(Stopped::Beyond),
            }
        }
        Ok(())
    }

    /// The keys and sessions of a part as ours.
    fn translate(&mut self, part: &History) {
        self.deeds.begin_part(part.keys().len());
        self.part_keys.clear();
        for id in part.keys().ids() {
            let name: NameRef<'_> = part.keys().get(id);
            let next = self.keys.len() as u32;
            let number = *self.names.entry(name.to_owned()).or_insert(next);
            if number == next {
                self.keys.push(Key { versions: Versions::starting(0), used: Use::default() });
            }
            self.part_keys.push(number);
        }
        self.part_sessions.clear();
        for id in part.sessions().ids() {
            let next = self.last_of_session.len() as u32;
            let number = *self.sessions.entry(part.sessions().get(id).to_owned()).or_insert(next);
            if number == next {
                self.last_of_session.push(None);
            }
            self.part_sessions.push(number);
        }
    }

    fn replay(
        &mut self,
        part: &History,
        txn: history::Transaction<'_>,
        session: u32,
        start: Timestamp,
        commit: Timestamp,
    ) -> Result<(), Stopped> {
        if self.commits.back().is_some_and(|&last| last >= commit) {
            return Err(Stopped::Beyond);
        }
        if start > commit {
            return Err(Stopped::Violated);
        }
        let rank = self.before + self.commits.len() as u64;
        let snapshot = self.snapshot(start, commit, rank)?;
        let last = self.last_of_session[session as usize].replace(commit);
        if self.session && !self.serial && start < commit && last.is_some_and(|last| last > start) {
            return Err(Stopped::Violated);
        }
        self.habits.two_in_a_session |= last.is_some();
        self.take_apart(part, txn)?;
        self.habits.overwrites_itself |= self.deeds.all().iter().any(|deed| deed.writes > 1);
        let written = self.deeds.all().iter().filter(|deed| deed.writes > 0).count();
        self.habits.writes_two += usize::from(written > 1);
        let read = self.deeds.all().iter().filter(|deed| deed.is_read).count();
        self.habits.reads_two += usize::from(read > 1);
        self.counted.writes += written;
        self.counted.unread += written;
        for deed in self.deeds.all() {
            let key = &mut self.keys[self.part_keys[deed.key.index()] as usize];
            key.used.touch(session + 1);
            key.used.note(deed.is_read, deed.writes > 0, written > 0);
            if let Some((seen, _)) = deed.look {
                let version = key.versions.seen(snapshot).ok_or(Stopped::Beyond)?;
                if version.value != Datum::of(part.values(), seen) {
                    return Err(Stopped::Violated);
                }
                let is_first = !std::mem::replace(&mut version.is_read, true);
                self.counted.unread -= usize::from(is_first);
            }
            let Some(value) = deed.value() else { continue };
            if !self.serial && key.versions.newest.at > snapshot {
                return Err(Stopped::Violated);
            }
            let version = Version { at: rank + 1, value: Datum::of(part.values(), value), is_read: false };
            let old = key.versions.write(version);
            if !self.serial {
                key.versions.keep(old, self.before);
            }
        }
        self.commits.push_back(commit);
        if self.commits.len() >= 2 * WINDOW {
            self.commits.drain(..WINDOW);
            self.before += WINDOW as u64;
        }
        Ok(())
    }

    /// How many commits a transaction sees.
    fn snapshot(&self, start: Timestamp, commit: Timestamp, rank: u64) -> Result<u64, Stopped> {
        if self.serial || start >= commit {
            return Ok(rank);
        }
        // Gallop back to a commit at or before the start.
        let (mut high, mut step) = (self.commits.len(), 1);
        let low = loop {
            let low = high.saturating_sub(step);
            if low == 0 || self.commits[low] <= start {
                break low;
            }
            high = low;
            step *= 2;
        };
        let (mut from, mut to) = (low, high);
        while from < to {
            let middle = (from + to) / 2;
            if self.commits[middle] <= start { from = middle + 1 } else { to = middle }
        }
        if from == 0 && self.before > 0 {
            return Err(Stopped::Beyond);
        }
        Ok(self.before + from as u64)
    }

    /// What a transaction saw and did, key by key.
    fn take_apart(&mut self, part: &History, txn: history::Transaction<'_>) -> Result<(), Stopped> {
        let rules = Rules { values: Interned { values: part.values() }, ryow: Ryow::Must };
        self.deeds.begin();
        for op in txn.op_ids() {
            let point = part.point(op).filter(|point| point.kind != PointKind::Append);
            let point = point.ok_or(Stopped::Beyond)?;
            self.counted.reads += usize::from(point.kind == PointKind::Read && point.value.is_known());
            match self.deeds.add(0, point, rules) {
                Read::Right | Read::First => {}
                Read::Wrong(_) => return Err(Stopped::Violated),
                Read::Open => return Err(Stopped::Beyond),
            }
        }
        Ok(())
    }
}
