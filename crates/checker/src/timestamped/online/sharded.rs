//! The online checker on several workers: keys live apart, one watermark, one place where findings are told.
//!
//! **What.** [`Sharded`] takes transactions and watermarks as [`Online`] does, and gives the same findings with the same
//! numbers. How messages reach workers is the business of [`Workers`]: here in one thread ([`Here`]), or by a dataflow.
//!
//! ```text
//!   transactions ──> sessions, INT ──┬── pieces by key ──> worker 0  versions and readers of its keys ──┐
//!   watermarks ──────────────────────┼───────────────────> worker 1                                     ├──> by rank,
//!                                    └───────────────────> worker 2  …                                  ┘    numbered
//! ```
//!
//! **One watermark.** It is decided where transactions arrive and travels in the same messages, in order. A worker that
//! follows it has seen every piece that was sent before; so what is final there is final.
//!
//! **Transactions of unknown outcome** do not fall apart by key. They stay where transactions arrive, with what arrived
//! around them, and so do wrong results that one of them may explain ([`super::unknown`]); workers know nothing of them.
//!
//! **A saved state** is that of where transactions arrive, then that of each worker. It can be restored on any number of
//! workers, and by [`Online::restore`] ([`super::regroup`]).
//!
//! **Cost.** Every transaction is written once for each worker that has one of its keys: some 40 bytes, and 10 a key.

use super::post::Posts;
use super::rank::{Phase, Rank, Ranked, Share, share_key};
use super::regroup;
use super::save::Damaged;
use super::shard::{Answer, Shard};
use super::stamp::Stamp;
use super::{Cold, Counters, Found, Kind, Online, Settings, Size};
use crate::timestamped::{Axiom, Refusal};
use history::{History, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};

/// Those who have the keys, and how messages reach them.
pub trait Workers: Send {
    /// How many there are.
    fn count(&self) -> usize;
    /// Sends each its message; an empty one is none. Every worker follows messages in the order of sending.
    fn send(&mut self, messages: Vec<Vec<u8>>) -> io::Result<()>;
    /// The answers to the oldest messages that were sent together and not asked for, by worker, empty where there was no
    /// message; with `wait`, as soon as they are there. `None` if they are not, or if nothing was sent.
    fn answers(&mut self, wait: bool) -> io::Result<Option<Vec<Vec<u8>>>>;
}

/// Workers in the thread that asks them.
#[derive(Debug)]
pub struct Here {
    shards: Vec<Shard>,
    answers: VecDeque<Vec<Vec<u8>>>,
}

impl Here {
    /// So many, each with the cold store that `cold` gives it.
    pub fn new(workers: usize, cold: impl Fn() -> Option<Box<dyn Cold>>) -> Self {
        let shards = (0..workers.max(1)).map(|worker| Shard::new(worker, workers.max(1), cold())).collect();
        Self { shards, answers: VecDeque::new() }
    }
}

impl Workers for Here {
    fn count(&self) -> usize {
        self.shards.len()
    }

    fn send(&mut self, messages: Vec<Vec<u8>>) -> io::Result<()> {
        let answer = |(shard, message): (&mut Shard, Vec<u8>)| match message.is_empty() {
            true => Vec::new(),
            false => shard.take(&message),
        };
        self.answers.push_back(self.shards.iter_mut().zip(messages).map(answer).collect());
        Ok(())
    }

    fn answers(&mut self, _: bool) -> io::Result<Option<Vec<Vec<u8>>>> {
        Ok(self.answers.pop_front())
    }
}

/// How far a worker is, as it last said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Pieces of transactions it has taken.
    pub pieces: u64,
    /// How large its part of the state is.
    pub size: Size,
    /// How often a result was looked at again because of a late version.
    pub rechecks: u64,
    /// Bytes of messages sent to it.
    pub bytes_sent: u64,
}

/// How many messages may be under way to each worker: it never waits for the next, and memory is bounded.
const UNDER_WAY_MAX: usize = 4;
/// Messages are sent when this many bytes wait.
const MESSAGE_BYTES: usize = 256 << 10;

const MAGIC: &[u8; 14] = b"taipan-shards\n";
const VERSION: u64 = 1;

/// The online checker with its keys on workers.
pub struct Sharded {
    front: Online,
    workers: Box<dyn Workers>,
    /// Of messages under way: everything up to this tick will have been told once they are answered.
    under_way: VecDeque<u64>,
    /// Everything up to this tick has been told.
    told_until: u64,
    told: Vec<(Rank, Found)>,
    shares: Vec<(Rank, Share)>,
    counters: Vec<Counters>,
    standings: Vec<Standing>,
    state: Option<Vec<u8>>,
    /// What each worker was told to keep in memory at most.
    share: Option<usize>,
}

fn refused(refusal: Refusal) -> Damaged {
    Damaged::OtherSettings(refusal.to_string())
}

/// What a saved state holds.
enum Saved {
    One(Online),
    /// Where transactions arrive, and the state of each worker.
    Several(Online, Vec<Vec<u8>>),
}

impl Saved {
    fn read(settings: &Settings, input: &mut dyn Read) -> Result<Self, Damaged> {
        let mut magic = [0; 14];
        input.read_exact(&mut magic)?;
        if magic != *MAGIC {
            let one = Online::restore_one(settings.clone(), &mut magic.as_slice().chain(input))?;
            return Ok(Self::One(one));
        }
        let mut number = || -> io::Result<u64> {
            let mut bytes = [0; 8];
            input.read_exact(&mut bytes)?;
            Ok(u64::from_le_bytes(bytes))
        };
        if number()? != VERSION {
            return Err(Damaged::NotAState);
        }
        let count = number()?;
        let front = Online::restore_one(settings.clone(), input)?;
        let mut states = Vec::new();
        for _ in 0..count {
            let mut len = [0; 8];
            input.read_exact(&mut len)?;
            let len = u64::from_le_bytes(len);
            let mut state = Vec::new();
            if input.take(len).read_to_end(&mut state)? as u64 != len {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            states.push(state);
        }
        Ok(Self::Several(front, states))
    }

    fn into_one(self, settings: &Settings) -> Result<Online, Damaged> {
        let (front, states) = match self {
            Self::One(one) => return Ok(one),
            Self::Several(front, states) => (front, states),
        };
        let mut workers = Vec::with_capacity(states.len());
        for state in states {
            workers.push(Online::restore_one(settings.clone(), &mut state.as_slice())?);
        }
        regroup::join(front, &workers).map_err(refused)
    }

    /// For so many workers.
    fn into_several(self, settings: &Settings, count: usize) -> Result<(Online, Vec<Vec<u8>>), Damaged> {
        match self {
            Self::Several(front, states) if states.len() == count => Ok((front, states)),
            saved => {
                let (front, workers) = regroup::split(saved.into_one(settings)?, count).map_err(refused)?;
                let mut states = Vec::with_capacity(count);
                for worker in workers {
                    let mut state = Vec::new();
                    worker.save(&mut state)?;
                    states.push(state);
                }
                Ok((front, states))
            }
        }
    }
}

impl Online {
    /// Reads a state that [`Online::save`] or [`Sharded::save`] wrote with the same settings. A cold store must be given
    /// with what it held then.
    pub fn restore(settings: Settings, input: &mut dyn Read) -> Result<Self, Damaged> {
        Saved::read(&settings, input)?.into_one(&settings)
    }
}

impl Sharded {
    /// Nothing has arrived yet, every key is absent.
    pub fn new(settings: Settings, workers: Box<dyn Workers>) -> Result<Self, Refusal> {
        let mut sharded = Self::around(Online::new(settings)?, workers);
        let settings = sharded.of_worker();
        if let Some(posts) = &mut sharded.front.posts {
            // Writing into a vector cannot fail.
            let _ = posts.new_checker(&settings);
        }
        Ok(sharded)
    }

    fn around(mut front: Online, workers: Box<dyn Workers>) -> Self {
        let count = workers.count().max(1);
        front.posts = Some(Box::new(Posts::new(count)));
        front.ranked = Some(Box::new(Ranked::default()));
        Self {
            front,
            workers,
            under_way: VecDeque::new(),
            told_until: 0,
            told: Vec::new(),
            shares: Vec::new(),
            counters: vec![Counters::default(); count],
            standings: vec![Standing::default(); count],
            state: None,
            share: None,
        }
    }

    /// Reads a state that [`Online::save`] or [`Sharded::save`] wrote with the same settings, on however many workers.
    pub fn restore(
        settings: Settings,
        input: &mut dyn Read,
        workers: Box<dyn Workers>,
    ) -> Result<Self, Damaged> {
        let count = workers.count().max(1);
        let (front, states) = Saved::read(&settings, input)?.into_several(&settings, count)?;
        let mut sharded = Self::around(front, workers);
        sharded.front.settings.memory_max = settings.memory_max;
        let sessions = sharded.front.txns.sessions.len();
        let settings = sharded.of_worker();
        if let Some(posts) = &mut sharded.front.posts {
            posts.know_sessions(sessions);
        }
        for (worker, state) in states.into_iter().enumerate() {
            if let Some(posts) = &mut sharded.front.posts {
                posts.restore(worker, &settings, &state)?;
            }
            sharded.send(0)?;
        }
        sharded.catch_up()?;
        Ok(sharded)
    }

    /// The settings of one worker: its part of the memory.
    fn of_worker(&mut self) -> Settings {
        self.share = self.memory_share();
        Settings { memory_max: self.share, ..self.front.settings.clone() }
    }

    /// What each worker may keep in memory, beside what is kept here.
    fn memory_share(&self) -> Option<usize> {
        let max = self.front.settings.memory_max?;
        Some((max.saturating_sub(self.front.size().bytes) / self.standings.len()).max(1))
    }

    /// Tells workers when that has changed.
    fn share_memory(&mut self) -> io::Result<()> {
        let share = self.memory_share();
        let is_close = |(new, old): (usize, usize)| new.abs_diff(old) <= old / 32;
        if share == self.share || share.zip(self.share).is_some_and(is_close) {
            return Ok(());
        }
        self.share = share;
        self.front.posts.as_mut().map_or(Ok(()), |posts| posts.memory_max(share))
    }

    /// Takes all transactions of a history, in its order, and its initial values.
    pub fn receive(&mut self, part: &History) -> io::Result<()> {
        self.front.receive(part)?;
        match self.front.posts.as_ref().map_or(0, |posts| posts.bytes()) >= MESSAGE_BYTES {
            true => self.send(self.front.tick()),
            false => Ok(()),
        }
    }

    /// As [`Online::advance`].
    pub fn advance(&mut self, watermark: Timestamp, horizon: Option<Timestamp>) -> io::Result<()> {
        self.advance_to(watermark.into(), horizon.map(Stamp::from))
    }

    /// No transaction will arrive any more: every verdict is final, and told.
    pub fn finish(&mut self) -> io::Result<()> {
        self.advance_to(Stamp::MAX, None)?;
        self.catch_up()
    }

    fn advance_to(&mut self, watermark: Stamp, horizon: Option<Stamp>) -> io::Result<()> {
        self.front.next_tick();
        self.front.raise(watermark, horizon);
        let (tick, watermark, horizon) = (self.front.tick(), self.front.watermark, self.front.horizon);
        if let Some(posts) = &mut self.front.posts {
            posts.advance(tick, watermark, horizon)?;
        }
        while self.front.commits.first().is_some_and(|(last, _)| *last <= watermark) {
            self.front.commits.pop_first();
            self.front.waiting -= 1;
            self.front.counters.settled += 1;
        }
        self.front.set_rank(Rank::new(tick, Phase::Sessions));
        self.front.tell_lost();
        self.front.tell_jumps();
        if self.front.may_decide_unknown() {
            self.catch_up()?;
        }
        self.front.decide_unknown();
        Ok(())
    }

    /// Sends what waits; everything up to a tick will have been told when it is answered.
    fn send(&mut self, until: u64) -> io::Result<()> {
        self.share_memory()?;
        let Some(posts) = &mut self.front.posts else { return Ok(()) };
        if posts.bytes() == 0 {
            return Ok(());
        }
        let messages = posts.take(&self.front.txns.sessions)?;
        while self.under_way.len() >= UNDER_WAY_MAX {
            self.hear(true)?;
        }
        for (standing, message) in self.standings.iter_mut().zip(&messages) {
            standing.bytes_sent += message.len() as u64;
        }
        self.workers.send(messages)?;
        self.under_way.push_back(until);
        Ok(())
    }

    /// Takes the next answers. False if there are none yet.
    fn hear(&mut self, wait: bool) -> io::Result<bool> {
        if self.under_way.is_empty() {
            return Ok(false);
        }
        let Some(answers) = self.workers.answers(wait)? else { return Ok(false) };
        let until = self.under_way.pop_front().unwrap_or(0);
        for (worker, bytes) in answers.into_iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            let Answer { progress, told, shares, state } = Answer::get(&bytes)
                .map_err(|error| io::Error::new(error.kind(), format!("worker {worker}: {error}")))?;
            self.told.extend(told);
            self.shares.extend(shares);
            self.state = state.or(self.state.take());
            if let (Some(standing), Some(counters)) =
                (self.standings.get_mut(worker), self.counters.get_mut(worker))
            {
                standing.pieces = progress.pieces;
                standing.size = progress.size;
                standing.rechecks = progress.counters.rechecks;
                *counters = progress.counters;
            }
        }
        self.tell(until);
        Ok(true)
    }

    /// Everything up to a tick is here: it is told in order.
    fn tell(&mut self, until: u64) {
        self.told_until = self.told_until.max(until);
        let Some(ranked) = &mut self.front.ranked else { return };
        self.told.append(&mut ranked.told);
        let is_ready = |rank: &Rank| rank.tick <= until;
        if !self.told.iter().any(|(rank, _)| is_ready(rank)) && self.shares.is_empty() {
            return;
        }
        let mut ready: Vec<(Rank, Found)> = self.told.extract_if(.., |(rank, _)| is_ready(rank)).collect();
        let shares: Vec<(Rank, Share)> = self.shares.extract_if(.., |(rank, _)| is_ready(rank)).collect();
        ready.extend(self.wrong_counts(shares));
        ready.sort_by(|a, b| self.front.compare_told(a, b));
        for (rank, found) in ready {
            self.front.number_unless_held(found, rank.tick);
        }
    }

    /// How many keys predicate writes changed at all workers, where the database told something else.
    fn wrong_counts(&self, shares: Vec<(Rank, Share)>) -> Vec<(Rank, Found)> {
        let mut sums: BTreeMap<(u64, u64, u32), (Rank, Share)> = BTreeMap::new();
        for share in shares {
            match sums.get_mut(&share_key(&share)) {
                Some((_, sum)) => sum.matched = sum.matched.wrapping_add(share.1.matched),
                None => {
                    sums.insert(share_key(&share), share);
                }
            }
        }
        let wrong = sums.into_values().filter(|(_, sum)| sum.matched != sum.told);
        wrong
            .map(|(rank, Share { txn, op, matched, told })| {
                let mut found = self.front.about(Kind::Broken(Axiom::External), txn);
                found.op = Some(op);
                found.counts = Some((matched, told));
                (rank, found)
            })
            .collect()
    }

    fn catch_up_with_sent(&mut self) -> io::Result<()> {
        while !self.under_way.is_empty() {
            self.hear(true)?;
        }
        Ok(())
    }

    /// Waits until everything that has arrived has been followed by all workers: nothing is under way.
    pub fn catch_up(&mut self) -> io::Result<()> {
        self.send(self.front.tick())?;
        self.catch_up_with_sent()?;
        self.tell(self.front.tick());
        Ok(())
    }

    /// What is certain since the last call, in order, as far as workers have said; sends what waits to them.
    pub fn findings(&mut self) -> io::Result<Vec<Found>> {
        self.send(self.front.tick())?;
        while self.hear(false)? {}
        if self.under_way.is_empty() {
            self.tell(self.front.tick());
        }
        Ok(std::mem::take(&mut self.front.found))
    }

    /// As [`Online::transactions_of`].
    pub fn transactions_of(&self, findings: &[Found]) -> Vec<Vec<String>> {
        self.front.transactions_of(findings)
    }

    /// What there is to count; of workers, what they last said.
    pub fn counters(&self) -> Counters {
        let sum = |count: fn(&Counters) -> u64| {
            count(&self.front.counters) + self.counters.iter().map(count).sum::<u64>()
        };
        Counters {
            provisional: sum(|counters| counters.provisional),
            flips: sum(|counters| counters.flips),
            rechecks: sum(|counters| counters.rechecks),
            evicted: sum(|counters| counters.evicted),
            fetched: sum(|counters| counters.fetched),
            ..self.front.counters.clone()
        }
    }

    /// How many findings have been made, those given by [`Sharded::findings`] included.
    pub fn finding_count(&self) -> u64 {
        self.front.finding_count()
    }

    /// Up to where everything has arrived.
    pub fn watermark(&self) -> Option<Timestamp> {
        self.front.watermark()
    }

    /// The latest commit timestamp seen.
    pub fn newest(&self) -> Option<Timestamp> {
        self.front.newest()
    }

    /// How large the state is, as workers last said.
    pub fn size(&self) -> Size {
        let mut size = self.front.size();
        size.bytes += self.front.posts.as_ref().map_or(0, |posts| posts.bytes());
        for worker in &self.standings {
            size.keys += worker.size.keys;
            size.versions += worker.size.versions;
            size.open_results += worker.size.open_results;
            size.transactions += worker.size.transactions;
            size.bytes += worker.size.bytes;
        }
        size
    }

    /// How far each worker is.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// As [`Online::set_memory_max`], for all workers together.
    pub fn set_memory_max(&mut self, bytes: Option<usize>) {
        // Workers hear of it with the next message.
        self.front.set_memory_max(bytes);
    }

    /// Writes the whole state, one worker after the other. Findings must have been taken after [`Sharded::catch_up`].
    pub fn save(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.catch_up()?;
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let count = self.standings.len();
        out.write_all(&(count as u64).to_le_bytes())?;
        self.front.save(out)?;
        for worker in 0..count {
            if let Some(posts) = &mut self.front.posts {
                posts.save(worker);
            }
            self.send(self.front.tick())?;
            self.catch_up_with_sent()?;
            let state = self.state.take();
            let state = state.ok_or_else(|| io::Error::other(format!("worker {worker} gave no state")))?;
            out.write_all(&(state.len() as u64).to_le_bytes())?;
            out.write_all(&state)?;
        }
        Ok(())
    }
}
