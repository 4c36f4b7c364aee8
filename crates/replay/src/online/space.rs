//! The keys of one shard: their versions, who looked at them, and the verdicts that are open.
//!
//! **What.** A [`KeySpace`] takes pieces of transactions ([`KeySpace::admit`]) and follows the watermark
//! ([`KeySpace::advance_to`]). What it finds waits in order, to be told by whoever owns it ([`KeySpace::take_told`]). It knows
//! nothing of sessions' order, of lines that come again, and of transactions of unknown outcome: those are kept where
//! transactions arrive.

use super::cold::Cold;
use super::keys::{self, KeyNo, Keys};
use super::rank::{Rank, Ranked};
use super::stamp::Stamp;
use super::timeline::Timeline;
use super::txns::{TxnNo, Txns};
use super::watch::Watchers;
use super::{Found, Settings, Size};
use isolation::{Rule, Ryow};

/// What a shard counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) provisional: u64,
    pub(super) flips: u64,
    pub(super) rechecks: u64,
    pub(super) evicted: u64,
    pub(super) fetched: u64,
}

/// How much a shard holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Load {
    pub(super) versions: usize,
    /// Of these, those whose value is not known.
    pub(super) unknown_versions: usize,
    pub(super) open_results: usize,
    /// Bytes of values and names that versions and readers hold.
    pub(super) bytes: usize,
}

/// What does not fit into memory.
#[derive(Default)]
pub(super) struct Spilled {
    pub(super) store: Option<Box<dyn Cold>>,
    /// Whether anything may be there.
    pub(super) is_used: bool,
    /// The slot at which the search for keys to evict goes on.
    pub(super) hand: usize,
}

/// The keys of one shard.
pub(super) struct KeySpace {
    pub(super) serial: bool,
    pub(super) ryow: Ryow,
    pub(super) memory_max: Option<usize>,
    pub(super) txns: Txns,
    pub(super) keys: Keys,
    /// Transactions whose results, and whose writes, wait for the watermark.
    pub(super) looks: Timeline<(Stamp, TxnNo)>,
    pub(super) commits: Timeline<(Stamp, TxnNo)>,
    pub(super) watch: Watchers,
    pub(super) watermark: Stamp,
    pub(super) horizon: Stamp,
    /// Keys whose old versions may be dropped.
    pub(super) written: Vec<KeyNo>,
    /// Keys that may be forgotten.
    pub(super) empty: Vec<KeyNo>,
    pub(super) spilled: Spilled,
    pub(super) load: Load,
    pub(super) counts: Counts,
    told: Told,
}

/// What was found and not yet taken.
enum Told {
    /// In the order in which it is reported.
    InOrder(Vec<Found>),
    /// To be put into order among what others found; see [`super::rank`].
    Ranked(Box<Ranked>),
}

impl KeySpace {
    /// Every key is absent.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            serial: settings.level.rule == Rule::Serializable,
            ryow: settings.ryow,
            memory_max: settings.memory_max,
            txns: Txns::default(),
            keys: Keys::default(),
            looks: Timeline::Empty,
            commits: Timeline::Empty,
            watch: Watchers::default(),
            watermark: Stamp::MIN,
            horizon: Stamp::MIN,
            written: Vec::new(),
            empty: Vec::new(),
            spilled: Spilled::default(),
            load: Load::default(),
            counts: Counts::default(),
            told: Told::InOrder(Vec::new()),
        }
    }

    /// One of several: what it finds has a rank among what all find.
    pub(super) fn ranking(mut self) -> Self {
        self.told = Told::Ranked(Box::default());
        self
    }

    pub(super) fn tell(&mut self, found: Found) {
        match &mut self.told {
            Told::InOrder(told) => told.push(found),
            Told::Ranked(ranked) => ranked.told.push((ranked.now.clone(), found)),
        }
    }

    /// What was found since the last call, where it is reported in order.
    pub(super) fn take_told(&mut self) -> Vec<Found> {
        match &mut self.told {
            Told::InOrder(told) => std::mem::take(told),
            Told::Ranked(_) => Vec::new(),
        }
    }

    /// The ranks of what is found, where it has one.
    pub(super) fn ranked(&self) -> Option<&Ranked> {
        match &self.told {
            Told::InOrder(_) => None,
            Told::Ranked(ranked) => Some(ranked),
        }
    }

    /// The same, to change it.
    pub(super) fn ranked_mut(&mut self) -> Option<&mut Ranked> {
        match &mut self.told {
            Told::InOrder(_) => None,
            Told::Ranked(ranked) => Some(ranked),
        }
    }

    /// What is found from now on has this rank.
    pub(super) fn set_rank(&mut self, rank: Rank) {
        if let Some(ranked) = self.ranked_mut() {
            ranked.now = rank;
        }
    }

    pub(super) fn size(&self) -> Size {
        let Load { versions, open_results, bytes, .. } = self.load;
        let bytes = self.keys.bytes()
            + versions * (size_of::<keys::Version>() + 8)
            + open_results * (size_of::<keys::Reader>() + 8)
            + self.txns.len() * Txns::BYTES
            + (self.looks.len() + self.commits.len()) * 24
            + bytes
            + self.watch.bytes();
        Size { keys: self.keys.len(), versions, open_results, transactions: self.txns.len(), bytes }
    }

    /// Restores what follows from the rest.
    pub(super) fn count_what_is_held(&mut self) {
        self.watch.acts = self.watch.by_txn.values().map(|watcher| watcher.program.acts.len()).sum();
        let mut load = Load::default();
        for key in self.keys.all() {
            let key = self.keys.get(key);
            load.versions += key.versions.len();
            load.unknown_versions += key.versions.iter().filter(|version| !version.value.is_known()).count();
            load.bytes += key.versions.iter().map(|version| version.value.heap_bytes()).sum::<usize>();
            for reader in key.readers.iter().flat_map(|readers| readers.iter()) {
                load.open_results += 1;
                load.bytes += reader.seen.heap_bytes();
            }
        }
        self.load = load;
    }
}
