//! Shards on several workers: keys live apart, one watermark, one place where findings are reported.
//!
//! **What.** [`Online`] deals pieces of transactions to the shards that have their keys. With one shard that is a call; with
//! several, messages to [`Workers`]: here in one thread ([`Here`]), or by a dataflow. The findings and their numbers are the same.
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
//! **Cost.** Every transaction is written once for each worker that has one of its keys: some 40 bytes, and 10 a key.

use super::post::Posts;
use super::rank::{Phase, Rank, Share, compare_told, share_key};
use super::save::Damaged;
use super::shard::{Answer, Shard};
use super::space::{Counts, KeySpace};
use super::{Cold, Found, Kind, Online, Settings, Shards, Size};
use crate::{Axiom, Refusal};
use history::Name;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Write};

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

/// Shards that are elsewhere, and what is under way to them and back.
pub(super) struct Away {
    pub(super) posts: Posts,
    workers: Box<dyn Workers>,
    /// Of messages under way: everything up to this tick will have been reported once they are answered.
    under_way: VecDeque<u64>,
    /// The rank of what is found where transactions arrive.
    pub(super) now: Rank,
    /// What was found, there and by workers, and is not yet reported.
    pub(super) told: Vec<(Rank, Found)>,
    shares: Vec<(Rank, Share)>,
    counts: Vec<Counts>,
    standings: Vec<Standing>,
    /// What a worker was asked for last.
    state: Option<Vec<u8>>,
    /// What each worker was told to keep in memory at most.
    memory: Option<usize>,
}

impl Away {
    pub(super) fn new(workers: Box<dyn Workers>) -> Self {
        let count = workers.count().max(1);
        Self {
            posts: Posts::new(count),
            workers,
            under_way: VecDeque::new(),
            now: Rank::new(0, Phase::Arrived),
            told: Vec::new(),
            shares: Vec::new(),
            counts: vec![Counts::default(); count],
            standings: vec![Standing::default(); count],
            state: None,
            memory: None,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.standings.len()
    }

    pub(super) fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// What workers counted, as they last said.
    pub(super) fn counts(&self) -> impl Iterator<Item = &Counts> {
        self.counts.iter()
    }

    /// How large they are, as they last said.
    pub(super) fn sizes(&self) -> impl Iterator<Item = Size> {
        self.standings.iter().map(|standing| standing.size)
    }

    /// Whether nothing waits for an answer.
    pub(super) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Tells workers how much each may keep in memory, if that has changed.
    fn share_memory(&mut self, share: Option<usize>) -> io::Result<()> {
        let is_close = |(new, old): (usize, usize)| new.abs_diff(old) <= old / 32;
        if share == self.memory || share.zip(self.memory).is_some_and(is_close) {
            return Ok(());
        }
        self.memory = share;
        self.posts.memory_max(share)
    }

    /// Sends messages; everything up to a tick will have been reported when they are answered.
    fn send(&mut self, messages: Vec<Vec<u8>>, until: u64) -> io::Result<()> {
        for (standing, message) in self.standings.iter_mut().zip(&messages) {
            standing.bytes_sent += message.len() as u64;
        }
        self.workers.send(messages)?;
        self.under_way.push_back(until);
        Ok(())
    }

    /// Takes the next answers. Up to which tick everything is here then; none if there are no answers yet.
    fn hear(&mut self, wait: bool) -> io::Result<Option<u64>> {
        if self.under_way.is_empty() {
            return Ok(None);
        }
        let Some(answers) = self.workers.answers(wait)? else { return Ok(None) };
        let until = self.under_way.pop_front().unwrap_or(0);
        for (worker, bytes) in answers.into_iter().enumerate().filter(|(_, bytes)| !bytes.is_empty()) {
            let answer = Answer::get(&bytes)
                .map_err(|error| io::Error::new(error.kind(), format!("worker {worker}: {error}")))?;
            self.take(worker, answer);
        }
        Ok(Some(until))
    }

    fn take(&mut self, worker: usize, Answer { progress, told, shares, state }: Answer) {
        self.told.extend(told);
        self.shares.extend(shares);
        self.state = state.or(self.state.take());
        if let (Some(standing), Some(counts)) = (self.standings.get_mut(worker), self.counts.get_mut(worker))
        {
            standing.pieces = progress.pieces;
            standing.size = progress.size;
            standing.rechecks = progress.counts.rechecks;
            *counts = progress.counts;
        }
    }

    /// What was found up to a tick, in the order of telling.
    fn ready(&mut self, until: u64, names: &[Name]) -> Vec<(Rank, Found)> {
        let is_ready = |rank: &Rank| rank.tick <= until;
        if !self.told.iter().any(|(rank, _)| is_ready(rank)) && self.shares.is_empty() {
            return Vec::new();
        }
        let mut ready: Vec<(Rank, Found)> = self.told.extract_if(.., |(rank, _)| is_ready(rank)).collect();
        let shares: Vec<(Rank, Share)> = self.shares.extract_if(.., |(rank, _)| is_ready(rank)).collect();
        ready.extend(wrong_counts(shares));
        ready.sort_by(|a, b| compare_told(names, a, b));
        ready
    }
}

/// How many keys predicate writes changed at all workers, where the database reported something else.
fn wrong_counts(shares: Vec<(Rank, Share)>) -> Vec<(Rank, Found)> {
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
            let mut found = Found::about(Kind::Broken(Axiom::External), txn);
            found.op = Some(op);
            found.counts = Some((matched, told));
            (rank, found)
        })
        .collect()
}

impl Online {
    /// As [`Online::new`], with its keys on workers.
    pub fn on(settings: Settings, workers: Box<dyn Workers>) -> Result<Self, Refusal> {
        let mut online = Self::new(settings)?;
        online.shards = Shards::Away(Box::new(Away::new(workers)));
        let settings = online.of_worker();
        if let Shards::Away(away) = &mut online.shards {
            // Writing into a vector cannot fail.
            let _ = away.posts.new_checker(&settings);
        }
        Ok(online)
    }

    /// Gives each worker its shard.
    pub(super) fn hand_over(
        &mut self,
        spaces: Vec<KeySpace>,
        workers: Box<dyn Workers>,
    ) -> Result<(), Damaged> {
        self.shards = Shards::Away(Box::new(Away::new(workers)));
        let settings = self.of_worker();
        if let Shards::Away(away) = &mut self.shards {
            away.posts.know_sessions(self.names.len());
        }
        for (worker, space) in spaces.into_iter().enumerate() {
            if let Shards::Away(away) = &mut self.shards {
                away.posts.restore(worker, &settings, &space)?;
            }
            self.send(0)?;
        }
        Ok(self.catch_up()?)
    }

    /// The settings of one worker: its part of the memory.
    fn of_worker(&mut self) -> Settings {
        let memory_max = self.memory_share();
        if let Shards::Away(away) = &mut self.shards {
            away.memory = memory_max;
        }
        Settings { memory_max, ..self.settings.clone() }
    }

    /// Sends what waits, if that is much.
    pub(super) fn send_if_much(&mut self) -> io::Result<()> {
        match &self.shards {
            Shards::Away(away) if away.posts.bytes() >= MESSAGE_BYTES => self.send(self.tick()),
            _ => Ok(()),
        }
    }

    /// Sends what waits; everything up to a tick will have been reported when it is answered.
    pub(super) fn send(&mut self, until: u64) -> io::Result<()> {
        let share = self.memory_share();
        let Shards::Away(away) = &mut self.shards else { return Ok(()) };
        away.share_memory(share)?;
        if away.posts.bytes() == 0 {
            return Ok(());
        }
        let messages = away.posts.take(&self.names)?;
        while let Shards::Away(away) = &self.shards
            && away.under_way.len() >= UNDER_WAY_MAX
        {
            self.hear(true)?;
        }
        match &mut self.shards {
            Shards::Here(_) => Ok(()),
            Shards::Away(away) => away.send(messages, until),
        }
    }

    /// Takes the next answers. False if there are none yet.
    pub(super) fn hear(&mut self, wait: bool) -> io::Result<bool> {
        let Shards::Away(away) = &mut self.shards else { return Ok(false) };
        let Some(until) = away.hear(wait)? else { return Ok(false) };
        self.tell_until(until);
        Ok(true)
    }

    /// Everything up to a tick is here: it is reported in order.
    pub(super) fn tell_until(&mut self, until: u64) {
        let Shards::Away(away) = &mut self.shards else { return };
        for (rank, found) in away.ready(until, &self.names) {
            self.number_unless_held(found, rank.tick);
        }
    }

    /// Waits until everything that has arrived has been followed by all workers: what is certain is known here.
    pub fn catch_up(&mut self) -> io::Result<()> {
        self.send(self.tick())?;
        while self.hear(true)? {}
        self.tell_until(self.tick());
        Ok(())
    }

    /// How far each worker is; none if all keys are here.
    pub fn standings(&self) -> &[Standing] {
        match &self.shards {
            Shards::Here(_) => &[],
            Shards::Away(away) => away.standings(),
        }
    }

    /// Asks one worker after the other for its state.
    pub(super) fn save_away(&mut self, out: &mut dyn Write) -> io::Result<()> {
        for worker in 0..self.shards.count() {
            if let Shards::Away(away) = &mut self.shards {
                away.posts.save(worker);
            }
            self.catch_up()?;
            let Shards::Away(away) = &mut self.shards else { return Ok(()) };
            let state = away.state.take();
            out.write_all(&state.ok_or_else(|| io::Error::other(format!("worker {worker} gave no state")))?)?;
        }
        Ok(())
    }
}
