//! A part of a history, as each shard needs to know it.
//!
//! **Steps.** For each committed transaction: what it first saw from outside and last wrote of every key (later results are
//! compared on the spot: INT), each to the shard where the key lives. Beside that: which keys no shard can settle, the
//! ends of sessions, and from when to when the part commits.

use super::super::order::is_read_only;
use super::super::step::{Deeds, Interned, Read, Rules};
use super::label::{Literal, Numbered, home};
use super::sessions::{Ends, Moment, ends};
use super::{Label, Suspects, Whole, takes_part};
use history::{History, Id, KeyId, PointKind, Timestamp, Transaction, ValueId};
use isolation::{Level, Rule, Ryow};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// What transactions of a part did to the keys of one shard.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Digest {
    /// The shard.
    pub home: u32,
    /// The place of the part in the history.
    pub order: u64,
    pub(super) keys: Vec<Label>,
    pub(super) sessions: Vec<Label>,
    pub(super) literals: Vec<Literal>,
    /// Initial values: key and value.
    pub(super) initial: Vec<(u32, u32)>,
    /// In the order of commits.
    pub(super) txns: Vec<Entry>,
    pub(super) deeds: Vec<Deed>,
}

/// One transaction.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) moment: Moment,
    pub(super) session: u32,
    /// Its place in the part: in a session, later ones have larger numbers.
    pub(super) place: u32,
    /// Where its deeds begin; they end where those of the next begin.
    pub(super) deeds: u32,
}

/// What a transaction did to a key: raw value ids, those that are not inline as places in the literals.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Deed {
    pub(super) key: u32,
    /// What it saw from outside; [`NOTHING`] if it did not look.
    pub(super) seen: u32,
    /// What it left behind; [`NOTHING`] if it did not write.
    pub(super) wrote: u32,
}

/// No value: nobody writes or judges a result that is not known.
pub(super) const NOTHING: u32 = ValueId::UNKNOWN.0;

/// A part in digests.
#[derive(Debug)]
pub struct Digested {
    /// One for each shard.
    pub digests: Vec<Digest>,
    /// The ends of its sessions, where session order counts.
    pub ends: Vec<Ends>,
    /// What no shard can settle.
    pub suspects: Suspects,
    /// The first and the last commit; none if nothing is committed.
    pub commits: Option<(Timestamp, Timestamp)>,
    /// How many transactions are committed.
    pub committed: u64,
}

/// Makes digests of a part; `order` is its place in the history.
pub fn digest(part: &History, order: u64, shards: usize, level: Level) -> Digested {
    let mut work = Work::new(part, order, shards);
    work.session = level.session;
    if level.realtime && part.has_client_clocks() {
        work.suspects.whole = Some(Whole::RealTime);
    }
    let txns = work.in_order();
    for &(commit, txn) in &txns {
        work.transaction(part.transaction(txn), commit);
    }
    work.initial();
    let committed = part.transactions().filter(|txn| txn.is_committed()).count() as u64;
    let commits = txns.first().zip(txns.last()).map(|(first, last)| (first.0, last.0));
    let mut suspects = work.suspects;
    let serial = level.rule == Rule::Serializable;
    let ends = if level.session { ends(part, order, serial, &mut suspects) } else { Vec::new() };
    let digests = work.writers.into_iter().map(Writer::finish).collect();
    Digested { digests, ends, suspects, commits, committed }
}

struct Work<'h> {
    part: &'h History,
    homes: Vec<u32>,
    deeds: Deeds,
    writers: Vec<Writer>,
    suspects: Suspects,
    /// Whether session order counts.
    session: bool,
}

impl<'h> Work<'h> {
    fn new(part: &'h History, order: u64, shards: usize) -> Self {
        let writer = |home: usize| Writer::new(part, (home as u32, shards), order);
        let mut deeds = Deeds::default();
        deeds.begin_part(part.keys().len());
        Self {
            part,
            homes: part.keys().ids().map(|id| home(part.keys().get(id), shards) as u32).collect(),
            deeds,
            writers: (0..shards).map(writer).collect(),
            suspects: Suspects::default(),
            session: false,
        }
    }

    /// The committed transactions by commit. What did not commit for certain makes suspects.
    fn in_order(&mut self) -> Vec<(Timestamp, history::TxnId)> {
        let mut txns = Vec::with_capacity(self.part.len());
        for txn in self.part.transactions() {
            match (txn.status(), txn.db()) {
                (status, Some((start, commit))) if takes_part(status) && start > commit => {
                    self.may_have_written(txn);
                }
                (status, Some((_, commit))) if takes_part(status) => txns.push((commit, txn.id())),
                (status, None) if takes_part(status) => self.suspects.whole = Some(Whole::NoTimestamps),
                (history::Status::Unknown, _) if !is_read_only(self.part, txn.id()) => {
                    self.may_have_written(txn);
                }
                _ => {}
            }
        }
        if !txns.is_sorted() {
            txns.sort_unstable();
        }
        txns
    }

    /// When it took effect, if it did, is decided for all its keys at once, and with its session where that counts.
    fn may_have_written(&mut self, txn: Transaction<'_>) {
        for (_, operation) in txn.primitives() {
            match operation.key() {
                Some(key) => self.suspect(key),
                None => self.suspects.whole = Some(Whole::Ranges),
            }
        }
        // One that commits before it starts is reported, whatever it did.
        if self.session || txn.is_committed() {
            self.suspects.sessions.insert(Label::from(self.part.sessions().get(txn.session())));
        }
    }

    #[cold]
    fn suspect(&mut self, key: KeyId) {
        self.suspects.keys.insert(Label::from(self.part.keys().get(key)));
    }

    fn transaction(&mut self, txn: Transaction<'h>, commit: Timestamp) {
        self.deeds.begin();
        let rules = Rules { values: Interned { values: self.part.values() }, ryow: Ryow::Must };
        for op in txn.op_ids() {
            let Some(point) = self.part.point(op) else {
                self.suspects.whole = Some(Whole::Ranges);
                continue;
            };
            let read = self.deeds.add(0, point, rules);
            // What contradicts itself is reported where everything is gathered, and so is what becomes of lists.
            if point.kind == PointKind::Append || matches!(read, Read::Wrong(_) | Read::Open) {
                self.suspect(point.key);
            }
        }
        let start = txn.db().map_or(commit, |(start, _)| start);
        let writes = self.deeds.all().iter().any(|deed| deed.writes > 0);
        // Asked only where commits may be equal or looks are at once; cheap to say always.
        let is_read_only = !writes && is_read_only(self.part, txn.id());
        let moment = Moment { start, commit, is_read_only };
        for deed in self.deeds.all() {
            let seen = deed.look.map_or(ValueId::UNKNOWN, |(seen, _)| seen);
            let wrote = deed.value().unwrap_or(ValueId::UNKNOWN);
            if seen.is_known() || wrote.is_known() {
                let home = self.homes[deed.key.index()] as usize;
                self.writers[home].deed(self.part, txn, moment, (deed.key, seen, wrote));
            }
        }
    }

    fn initial(&mut self) {
        for row in self.part.initial() {
            self.writers[self.homes[row.key.index()] as usize].initial(self.part, row.key, row.value);
        }
    }
}

/// A digest while it is made.
struct Writer {
    digest: Digest,
    keys: Numbered,
    sessions: Numbered,
    literals: FxHashMap<ValueId, u32>,
    last: Option<history::TxnId>,
}

impl Writer {
    fn new(part: &History, (home, homes): (u32, usize), order: u64) -> Self {
        // Not much more than its share: a column that grows is copied. Parts are of about the same size, and so are blocks
        // then: with sizes that all differ a little, an allocator held twice the memory.
        let share = part.op_count() / homes.max(1);
        let share = share + share / 8;
        let digest = Digest {
            home,
            order,
            keys: Vec::with_capacity(part.keys().len() / homes.max(1) / 8 * 9),
            literals: vec![Literal::Absent],
            txns: Vec::with_capacity(share.min(part.len())),
            deeds: Vec::with_capacity(share),
            ..Digest::default()
        };
        Self {
            digest,
            keys: Numbered::new(part.keys().len()),
            sessions: Numbered::new(part.sessions().len()),
            literals: FxHashMap::default(),
            last: None,
        }
    }

    /// Digests wait for others, so they hold not much more memory than they need.
    fn finish(self) -> Digest {
        let mut digest = self.digest;
        shrink(&mut digest.keys);
        shrink(&mut digest.literals);
        shrink(&mut digest.txns);
        shrink(&mut digest.deeds);
        digest
    }

    fn key(&mut self, part: &History, key: KeyId) -> u32 {
        let keys = &mut self.digest.keys;
        self.keys.of(key, keys.len(), || keys.push(Label::from(part.keys().get(key))))
    }

    #[inline]
    fn value(&mut self, part: &History, value: ValueId) -> u32 {
        if value.as_inline().is_some() || value == ValueId::ABSENT || !value.is_known() {
            return value.0;
        }
        let literals = &mut self.digest.literals;
        *self.literals.entry(value).or_insert_with(|| {
            literals.push(Literal::of(part.values(), value));
            literals.len() as u32 - 1
        })
    }

    fn deed(
        &mut self,
        part: &History,
        txn: Transaction<'_>,
        moment: Moment,
        (key, seen, wrote): (KeyId, ValueId, ValueId),
    ) {
        if self.last != Some(txn.id()) {
            self.last = Some(txn.id());
            let sessions = &mut self.digest.sessions;
            let session = self.sessions.of(txn.session(), sessions.len(), || {
                sessions.push(Label::from(part.sessions().get(txn.session())));
            });
            let deeds = self.digest.deeds.len() as u32;
            self.digest.txns.push(Entry { moment, session, place: txn.id().0, deeds });
        }
        let key = self.key(part, key);
        let (seen, wrote) = (self.value(part, seen), self.value(part, wrote));
        self.digest.deeds.push(Deed { key, seen, wrote });
    }

    fn initial(&mut self, part: &History, key: KeyId, value: ValueId) {
        let pair = (self.key(part, key), self.value(part, value));
        self.digest.initial.push(pair);
    }
}

/// Gives back memory if much of it is not in use.
fn shrink<T>(column: &mut Vec<T>) {
    if column.len() < column.capacity() / 4 * 3 {
        column.shrink_to_fit();
    }
}

impl Digest {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.txns.is_empty() && self.initial.is_empty()
    }

    /// How many transactions it speaks of.
    pub fn len(&self) -> usize {
        self.txns.len()
    }

    /// About how many bytes it takes on the wire.
    pub fn bytes(&self) -> usize {
        let name = |label: &Label| match label {
            Label::Int(_) => 12,
            Label::Text(text) => 12 + text.len(),
        };
        self.keys.iter().chain(&self.sessions).map(name).sum::<usize>()
            + self.txns.len() * Entry::BYTES
            + self.deeds.len() * size_of::<Deed>()
            + self.literals.len() * 16
            + self.initial.len() * 8
    }
}

impl Entry {
    /// Two timestamps, a flag, and three numbers.
    const BYTES: usize = 2 * 12 + 1 + 3 * 4;
}
