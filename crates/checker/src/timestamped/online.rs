//! Checking by timestamps while the database runs: transactions come late and out of order, memory is
//! bounded, and a verdict that was given stays.
//!
//! **What.** [`Online::receive`] takes transactions as they arrive, in any order; [`Online::advance`] is
//! told that no more will arrive up to a commit timestamp (the *watermark*); [`Online::findings`] gives
//! what is certain. No clock, no file, no socket: those are the caller's.
//!
//! **The idea** (Chronos and Aion, Li et al., ICDE 2025, §III-C, Algorithm 3), with other structures: of each key the versions in
//! the order of commits, and the readers whose verdict is open in the order of their looks.
//!
//! ```text
//!   key x    versions   v1 ───────── v2 ─────────────── v3
//!            readers        r1  r2        r3   r4             r5
//!                                     ^
//!                                     a version arrives late: only r3 and r4 look again
//! ```
//!
//! A late transaction costs the readers of its keys between its commit and the next version; Aion visits
//! every later event. What a transaction does decomposes by key, so this holds for scans, queries and
//! predicate writes too (`program`).
//!
//! **Certainty.** Up to the watermark everything has arrived. A look at or before it is final: its wrong
//! results are told, once, and never change. Before that they are *provisional*; when a late version
//! rights or wrongs one, a flip is counted. A transaction that commits at or before the watermark and
//! arrives only now is itself a finding; what it wrote counts for looks that are still open.
//!
//! **The same findings as offline**, whatever the order of arrival, for transactions that are not late
//! ([`super::check`]).
//!
//! **Memory.** Versions that no look can see are dropped: a transaction that starts before the *horizon*
//! will not come. Everything else at or before the watermark may go to a [`Cold`] store when memory is
//! short, and is fetched when somebody asks. [`Online::save`] and [`Online::restore`] carry the whole
//! state over a restart.
//!
//! **Cost.** A hash and a few comparisons an operation; `O(log n)` more for what is late.
//!
//! **Several workers.** What a key holds and who looked at it is nobody else's business, so keys can be dealt out to
//! workers: [`Sharded`] is the same checker with its keys elsewhere, with the same findings.

mod clock;
mod codec;
mod cold;
mod delivered;
mod finish;
mod forgotten;
mod keys;
mod post;
mod program;
mod rank;
mod receive;
mod regroup;
mod save;
mod sessions;
mod settle;
mod shard;
mod sharded;
mod slab;
mod stamp;
mod timeline;
mod txns;
mod unknown;
mod watch;

pub use super::datum::Datum;
pub use cold::{Cold, ColdKey, ColdRecord, ColdTime, MemoryCold};
pub use save::Damaged;
pub use shard::Shard;
pub use sharded::{Here, Sharded, Standing, Workers};
pub use txns::Named;

use super::{Axiom, Refusal, decides};
use history::{Name, Timestamp};
use isolation::{Level, Rule, Ryow};
use keys::Keys;
use sessions::Sessions;
use stamp::Stamp;
use std::collections::BTreeMap;
use std::io;
use timeline::Timeline;
use txns::{TxnNo, Txns};

/// What is checked, and within what limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Snapshot isolation or serializability, with or without session order.
    pub level: Level,
    /// What a read must see of its own transaction's earlier writes.
    pub ryow: Ryow,
    /// The most bytes to keep in memory, if a [`Cold`] store takes the rest.
    pub memory_max: Option<usize>,
}

impl Settings {
    /// The usual ones for a level.
    pub fn new(level: Level) -> Self {
        Self { level, ryow: Ryow::Must, memory_max: None }
    }
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A violation.
    Broken(Axiom),
    /// A transaction arrived after the watermark had passed its commit. Its own results are not judged.
    Late,
    /// Transactions of a session never arrived.
    Lost,
    /// A transaction arrived twice; the second is left out.
    Duplicate,
    /// Two transactions have the same id, or the same session and times, and differ.
    Conflict,
    /// A result could not be judged: its snapshot lies before the horizon.
    Unjudged,
    /// A committed transaction has no timestamps; it is left out.
    Timeless,
    /// A transaction committed so far ahead of all others that its clock must be wrong: the watermark does not follow it.
    ClockJump,
    /// A wrong result that transactions of unknown outcome may explain, and it cannot be decided whether they do.
    Undecided,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 14] = [
        Kind::Broken(Axiom::TimestampOrder),
        Kind::Broken(Axiom::Session),
        Kind::Broken(Axiom::RealTime),
        Kind::Broken(Axiom::Internal),
        Kind::Broken(Axiom::External),
        Kind::Broken(Axiom::NoConflict),
        Kind::Late,
        Kind::Lost,
        Kind::Duplicate,
        Kind::Conflict,
        Kind::Unjudged,
        Kind::Timeless,
        Kind::ClockJump,
        Kind::Undecided,
    ];

    /// The way it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Broken(axiom) => axiom.name(),
            Self::Late => "late",
            Self::Lost => "lost",
            Self::Duplicate => "duplicate",
            Self::Conflict => "conflict",
            Self::Unjudged => "unjudged",
            Self::Timeless => "timeless",
            Self::ClockJump => "clock-jump",
            Self::Undecided => "undecided",
        }
    }

    /// Whether the database broke its promise; the others are about the stream.
    pub fn is_violation(self) -> bool {
        matches!(self, Self::Broken(_))
    }

    fn index(self) -> usize {
        Self::ALL.iter().position(|&kind| kind == self).unwrap_or(0)
    }
}

/// One finding, independent of the state it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Its number, from 0: the same for the same input, also over a restart.
    pub number: u64,
    /// What it is about.
    pub kind: Kind,
    /// The transaction that breaks the axiom.
    pub txn: Named,
    /// The place of the operation whose result is wrong.
    pub op: Option<u32>,
    /// The key it is about.
    pub key: Option<Name>,
    /// The transaction that wrote what had to be seen, that was overwritten unseen, or that had to be
    /// visible.
    pub other: Option<Named>,
    /// What had to be seen.
    pub expected: Option<Datum>,
    /// What was seen.
    pub seen: Option<Datum>,
    /// How many keys a predicate write had to change, and how many it did.
    pub counts: Option<(u64, u64)>,
    /// The sequence numbers that are missing, first and last.
    pub missing: Option<(u64, u64)>,
    /// Why it is undecided.
    pub doubt: Option<Box<str>>,
}

/// What there is to count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Transactions that arrived, of any status.
    pub received: u64,
    /// Transactions whose verdict is final.
    pub settled: u64,
    /// Operations that arrived.
    pub operations: u64,
    /// Results that are wrong so far, but not final.
    pub provisional: u64,
    /// How often a provisional verdict changed.
    pub flips: u64,
    /// How often a result was looked at again because of a late version.
    pub rechecks: u64,
    /// Final findings, by [`Kind::ALL`].
    pub found: [u64; Kind::ALL.len()],
    /// Transactions of unknown outcome that took effect, as far as has been decided.
    pub took_effect: u64,
    /// Keys that went to the cold store.
    pub evicted: u64,
    /// Fetches from the cold store.
    pub fetched: u64,
}

/// How large the state is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// Keys in memory.
    pub keys: usize,
    /// Versions in memory.
    pub versions: usize,
    /// Results without a final verdict.
    pub open_results: usize,
    /// Transactions that something speaks of.
    pub transactions: usize,
    /// About how many bytes all that takes.
    pub bytes: usize,
}

/// The online checker.
pub struct Online {
    settings: Settings,
    serial: bool,
    txns: Txns,
    keys: Keys,
    sessions: Sessions,
    /// Transactions whose results, and whose writes, wait for the watermark.
    looks: Timeline<(Stamp, TxnNo)>,
    commits: Timeline<(Stamp, TxnNo)>,
    watch: watch::Watchers,
    clock: clock::Clock,
    delivered: delivered::Delivered,
    log: unknown::Log,
    watermark: Stamp,
    horizon: Stamp,
    newest: Stamp,
    cold: Option<Box<dyn Cold>>,
    hand: usize,
    /// Keys whose old versions may be dropped.
    written: Vec<keys::KeyNo>,
    /// Keys that may be forgotten.
    empty: Vec<keys::KeyNo>,
    found: Vec<Found>,
    next_number: u64,
    counters: Counters,
    versions: usize,
    /// Of these, those whose value is not known.
    unknown_versions: usize,
    open_results: usize,
    /// Entries of the queues.
    waiting: usize,
    /// Bytes of values and names that versions and readers hold.
    held_bytes: usize,
    scratch: receive::Scratch,
    /// Whether anything may be in the cold store.
    is_cold: bool,
    /// Where pieces of transactions go whose keys live elsewhere; see [`sharded`].
    posts: Option<Box<post::Posts>>,
    /// Findings are put into order, and numbered, by somebody else; see [`rank`].
    ranked: Option<Box<rank::Ranked>>,
}

impl Online {
    /// Nothing has arrived yet, every key is absent.
    pub fn new(settings: Settings) -> Result<Self, Refusal> {
        if !decides(settings.level) || settings.level.realtime {
            return Err(Refusal::Level);
        }
        let serial = settings.level.rule == Rule::Serializable;
        Ok(Self {
            serial,
            settings,
            txns: Txns::default(),
            keys: Keys::default(),
            sessions: Sessions::default(),
            looks: Timeline::Empty,
            commits: Timeline::Empty,
            watch: watch::Watchers::default(),
            clock: clock::Clock::default(),
            delivered: delivered::Delivered::default(),
            log: unknown::Log::default(),
            watermark: Stamp::MIN,
            horizon: Stamp::MIN,
            newest: Stamp::MIN,
            cold: None,
            hand: 0,
            written: Vec::new(),
            empty: Vec::new(),
            found: Vec::new(),
            next_number: 0,
            counters: Counters::default(),
            versions: 0,
            unknown_versions: 0,
            open_results: 0,
            waiting: 0,
            held_bytes: 0,
            scratch: receive::Scratch::default(),
            is_cold: false,
            posts: None,
            ranked: None,
        })
    }

    /// Gives it a store for what does not fit into memory.
    pub fn with_cold(mut self, cold: Box<dyn Cold>) -> Self {
        self.cold = Some(cold);
        self
    }

    /// The store for what does not fit into memory.
    pub fn cold(&mut self) -> Option<&mut (dyn Cold + 'static)> {
        self.cold.as_deref_mut()
    }

    /// What is checked.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// From now on at most so many bytes are kept in memory, as far as [`Size::bytes`] knows. It is no part of a saved
    /// state, and no verdict depends on it.
    pub fn set_memory_max(&mut self, bytes: Option<usize>) {
        self.settings.memory_max = bytes;
    }

    /// What is certain since the last call, in order.
    pub fn findings(&mut self) -> Vec<Found> {
        std::mem::take(&mut self.found)
    }

    /// What there is to count.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many findings have been made, those given by [`Online::findings`] included.
    pub fn finding_count(&self) -> u64 {
        self.next_number
    }

    /// Up to where everything has arrived.
    pub fn watermark(&self) -> Option<Timestamp> {
        (self.watermark != Stamp::MIN).then(|| self.watermark.into())
    }

    /// The latest commit timestamp that others bear out.
    pub fn newest(&self) -> Option<Timestamp> {
        (self.newest != Stamp::MIN).then(|| self.newest.into())
    }

    /// How large the state is.
    pub fn size(&self) -> Size {
        let bytes = self.keys.bytes()
            + self.versions * (size_of::<keys::Version>() + 8)
            + self.open_results * (size_of::<keys::Reader>() + 8)
            + self.txns.len() * Txns::BYTES
            + self.waiting * 24
            + self.held_bytes
            + self.watch.bytes()
            + self.log.bytes()
            + self.delivered.bytes()
            + self.sessions.bytes();
        Size {
            keys: self.keys.len(),
            versions: self.versions,
            open_results: self.open_results,
            transactions: self.txns.len(),
            bytes,
        }
    }

    /// Results that are wrong as things stand, at most `max` of them: what would be told if the watermark
    /// passed now.
    pub fn provisional(&self, max: usize) -> Vec<Found> {
        let mut found = Vec::new();
        for key in self.keys.all() {
            let Some(readers) = self.keys.get(key).readers.as_deref() else { continue };
            for reader in readers.iter().filter(|reader| !reader.is_right) {
                if found.len() >= max {
                    return found;
                }
                found.push(self.wrong_read(key, reader));
            }
        }
        found
    }

    fn tell(&mut self, found: Found) {
        match &mut self.ranked {
            Some(ranked) => ranked.told.push((ranked.now.clone(), found)),
            None => self.number_unless_held(found, self.tick()),
        }
    }

    fn number(&mut self, mut found: Found) {
        found.number = self.next_number;
        self.next_number += 1;
        self.counters.found[found.kind.index()] += 1;
        self.found.push(found);
    }

    /// A finding about a transaction, to be completed.
    fn about(&self, kind: Kind, txn: Named) -> Found {
        Found {
            number: 0,
            kind,
            txn,
            op: None,
            key: None,
            other: None,
            expected: None,
            seen: None,
            counts: None,
            missing: None,
            doubt: None,
        }
    }
}

/// Why the online checker could not go on: the cold store failed.
pub type ColdResult<T> = io::Result<T>;

/// Wrong results of a program, by key.
type WrongByKey = BTreeMap<keys::KeyNo, Vec<program::Wrong>>;
