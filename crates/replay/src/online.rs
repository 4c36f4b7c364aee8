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
//! results are reported, once, and never change. Before that they are *provisional*; when a late version
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
//! **Shards.** What a key holds and who looked at it is nobody else's business, so keys can be dealt out. [`Online`] is where
//! transactions arrive and findings are reported; the keys are in shards (`space`): one that is here ([`Online::new`]), or
//! several at workers ([`Online::on`]), with the same findings.

mod admit;
mod away;
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
mod slab;
mod space;
mod stamp;
mod timeline;
mod txns;
mod unknown;
mod watch;

pub use super::datum::Datum;
pub use away::{Here, Standing, Workers};
pub use cold::{Cold, ColdKey, ColdRecord, ColdTime, MemoryCold};
pub use save::Damaged;
pub use shard::Shard;
pub use txns::Named;

use super::{Axiom, Refusal, decides};
use history::{Name, Timestamp};
use isolation::{Level, Rule, Ryow};
use rank::{Phase, Rank};
use sessions::Sessions;
use space::{Counts, KeySpace};
use stamp::Stamp;
use std::collections::BTreeMap;
use std::io;
use timeline::Timeline;

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

/// The online checker: where transactions arrive and findings are reported, and the shards that have the keys.
pub struct Online {
    settings: Settings,
    /// Names of sessions, by number.
    names: Vec<Name>,
    sessions: Sessions,
    clock: clock::Clock,
    delivered: delivered::Delivered,
    log: unknown::Log,
    watermark: Stamp,
    horizon: Stamp,
    newest: Stamp,
    /// When the verdict on each transaction that waits for one will be final.
    pending: Timeline<Stamp>,
    found: Vec<Found>,
    next_number: u64,
    counters: Counters,
    scratch: receive::Scratch,
    shards: Shards,
}

/// Where the keys are.
enum Shards {
    /// All in one shard, here.
    Here(Box<KeySpace>),
    /// Dealt out to workers.
    Away(Box<away::Away>),
}

impl Shards {
    fn count(&self) -> usize {
        match self {
            Self::Here(_) => 1,
            Self::Away(away) => away.count(),
        }
    }
}

impl Online {
    /// Nothing has arrived yet, every key is absent.
    pub fn new(settings: Settings) -> Result<Self, Refusal> {
        if !decides(settings.level) || settings.level.realtime {
            return Err(Refusal::Level);
        }
        Ok(Self {
            shards: Shards::Here(Box::new(KeySpace::new(&settings))),
            settings,
            names: Vec::new(),
            sessions: Sessions::default(),
            clock: clock::Clock::default(),
            delivered: delivered::Delivered::default(),
            log: unknown::Log::default(),
            watermark: Stamp::MIN,
            horizon: Stamp::MIN,
            newest: Stamp::MIN,
            pending: Timeline::Empty,
            found: Vec::new(),
            next_number: 0,
            counters: Counters::default(),
            scratch: receive::Scratch::default(),
        })
    }

    /// Gives it a store for what does not fit into memory. Workers have stores of their own.
    pub fn with_cold(mut self, cold: Box<dyn Cold>) -> Self {
        if let Shards::Here(space) = &mut self.shards {
            space.spilled.store = Some(cold);
        }
        self
    }

    /// The store for what does not fit into memory.
    pub fn cold(&mut self) -> Option<&mut (dyn Cold + 'static)> {
        match &mut self.shards {
            Shards::Here(space) => space.spilled.store.as_deref_mut(),
            Shards::Away(_) => None,
        }
    }

    /// What is checked.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn serial(&self) -> bool {
        self.settings.level.rule == Rule::Serializable
    }

    /// From now on at most so many bytes are kept in memory, as far as [`Size::bytes`] knows. It is no part of a saved
    /// state, and no verdict depends on it.
    pub fn set_memory_max(&mut self, bytes: Option<usize>) {
        // Shards hear of it before they next make room.
        self.settings.memory_max = bytes;
    }

    /// What each shard may keep in memory, beside what is kept where transactions arrive.
    fn memory_share(&self) -> Option<usize> {
        let max = self.settings.memory_max?;
        Some((max.saturating_sub(self.bytes()) / self.shards.count()).max(1))
    }

    /// Moves what does not fit into memory elsewhere. Workers do that by themselves.
    fn make_room(&mut self) -> io::Result<()> {
        let share = self.memory_share();
        let Shards::Here(space) = &mut self.shards else { return Ok(()) };
        space.memory_max = share;
        space.make_room()
    }

    // ---- the watermark ----

    /// No transaction that commits at or before `watermark` will arrive any more, nor one that precedes
    /// such a transaction in its session; and none that starts before `horizon`. Neither ever goes back.
    pub fn advance(&mut self, watermark: Timestamp, horizon: Option<Timestamp>) -> io::Result<()> {
        self.advance_to(watermark.into(), horizon.map(Stamp::from))
    }

    /// No transaction will arrive any more: every verdict is final, and told.
    pub fn finish(&mut self) -> io::Result<()> {
        self.advance_to(Stamp::MAX, None)?;
        self.catch_up()
    }

    fn advance_to(&mut self, watermark: Stamp, horizon: Option<Stamp>) -> io::Result<()> {
        self.next_tick();
        self.watermark = self.watermark.max(watermark);
        if let Some(horizon) = horizon {
            self.horizon = self.horizon.max(horizon.min(self.watermark));
        }
        self.advance_shards()?;
        while self.pending.first().is_some_and(|last| *last <= self.watermark) {
            self.pending.pop_first();
            self.counters.settled += 1;
        }
        if let Shards::Away(away) = &mut self.shards {
            away.now = Rank::new(away.now.tick, Phase::Sessions);
        }
        self.tell_lost();
        self.tell_jumps();
        if self.may_decide_unknown() {
            self.catch_up()?;
        }
        self.decide_unknown();
        self.make_room()
    }

    fn advance_shards(&mut self) -> io::Result<()> {
        let advanced = match &mut self.shards {
            Shards::Here(space) => space.advance_to(self.watermark, self.horizon),
            Shards::Away(away) => away.posts.advance(away.now.tick, self.watermark, self.horizon),
        };
        self.tell_here();
        advanced
    }

    // ---- telling ----

    /// Something happens: a transaction arrives, or the watermark moves.
    fn next_tick(&mut self) {
        if let Shards::Away(away) = &mut self.shards {
            away.now = Rank::new(away.now.tick + 1, Phase::Arrived);
        }
    }

    /// How many things have happened; where all keys are here, everything is reported at once, and nobody counts.
    fn tick(&self) -> u64 {
        match &self.shards {
            Shards::Here(_) => 0,
            Shards::Away(away) => away.now.tick,
        }
    }

    fn tell(&mut self, found: Found) {
        match &mut self.shards {
            Shards::Here(_) => self.number_unless_held(found, 0),
            Shards::Away(away) => away.told.push((away.now.clone(), found)),
        }
    }

    /// Tells what the shard here has found.
    fn tell_here(&mut self) {
        let Shards::Here(space) = &mut self.shards else { return };
        for found in space.take_told() {
            self.number_unless_held(found, 0);
        }
    }

    fn number(&mut self, mut found: Found) {
        found.number = self.next_number;
        self.next_number += 1;
        self.counters.found[found.kind.index()] += 1;
        self.found.push(found);
    }

    /// What is certain since the last call, in order, as far as shards have said; sends what waits to them.
    pub fn findings(&mut self) -> io::Result<Vec<Found>> {
        self.send(self.tick())?;
        while self.hear(false)? {}
        if let Shards::Away(away) = &self.shards
            && away.is_idle()
        {
            self.tell_until(self.tick());
        }
        Ok(std::mem::take(&mut self.found))
    }

    // ---- what there is to know ----

    /// What there is to count; of workers, what they last said.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters.clone();
        let mut add = |counts: &Counts| {
            counters.provisional += counts.provisional;
            counters.flips += counts.flips;
            counters.rechecks += counts.rechecks;
            counters.evicted += counts.evicted;
            counters.fetched += counts.fetched;
        };
        match &self.shards {
            Shards::Here(space) => add(&space.counts),
            Shards::Away(away) => away.counts().for_each(add),
        }
        counters
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

    /// About how many bytes are kept where transactions arrive.
    fn bytes(&self) -> usize {
        self.pending.len() * 24 + self.log.bytes() + self.delivered.bytes() + self.sessions.bytes()
    }

    /// How large the state is; of workers, as they last said.
    pub fn size(&self) -> Size {
        let mut size = Size { bytes: self.bytes(), ..Size::default() };
        let mut add = |shard: Size| {
            size.keys += shard.keys;
            size.versions += shard.versions;
            size.open_results += shard.open_results;
            size.transactions += shard.transactions;
            size.bytes += shard.bytes;
        };
        match &self.shards {
            Shards::Here(space) => add(space.size()),
            Shards::Away(away) => {
                away.sizes().for_each(&mut add);
                size.bytes += away.posts.bytes();
            }
        }
        size
    }

    /// Results of keys that are here that are wrong as things stand, at most `max` of them: what would be reported if the
    /// watermark passed now.
    pub fn provisional(&self, max: usize) -> Vec<Found> {
        match &self.shards {
            Shards::Here(space) => space.wrong_reads().take(max).collect(),
            Shards::Away(_) => Vec::new(),
        }
    }
}

impl Found {
    /// A finding about a transaction, to be completed.
    fn about(kind: Kind, txn: Named) -> Self {
        Self {
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
