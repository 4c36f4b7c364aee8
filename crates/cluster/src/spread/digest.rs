//! A part of a history: what each home needs to know of it, and what stays with whoever read it.

use super::graph::{Layout, Piece};
use super::{DOUBTFUL, NONE, Open, Plan};
use history::{History, Id, KeyId, Point, PointKind, SessionId, Status, Transaction, ValueId};
use replay::online::Datum;
use replay::shards::{Label, Literal, Numbered, home};
use rustc_hash::FxHashMap;
use search::weak::Sight;
use serde::{Deserialize, Serialize};

/// What the transactions of a part did to the keys of one home.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Digest {
    /// The home.
    pub home: u32,
    /// Who read the part.
    pub from: u32,
    /// The place of the part in the history.
    pub order: u64,
    pub(super) keys: Vec<Label>,
    pub(super) literals: Vec<Literal>,
    /// Key and value.
    pub(super) initial: Vec<(u32, u32)>,
    /// Reads from outside, in the order of the part.
    pub(super) reads: Vec<Deed>,
    /// Where it matters: of each read, how many reads of its transaction come before it.
    pub(super) earlier: Vec<u32>,
    /// The last write of each key of each transaction.
    pub(super) writes: Vec<Deed>,
}

/// A read or a write. Values are raw ids, those that are not inline as places in the literals.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Deed {
    pub(super) txn: u32,
    pub(super) key: u32,
    pub(super) value: u32,
}

impl Digest {
    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty() && self.initial.is_empty()
    }

    /// How many reads wait for an answer.
    pub fn reads(&self) -> usize {
        self.reads.len()
    }

    /// About how many bytes it takes on the wire.
    pub fn bytes(&self) -> usize {
        let name = |label: &Label| match label {
            Label::Int(_) => 12,
            Label::Text(text) => 12 + text.len(),
        };
        self.keys.iter().map(name).sum::<usize>()
            + (self.reads.len() + self.writes.len()) * size_of::<Deed>()
            + self.earlier.len() * 4
            + self.literals.len() * 16
            + self.initial.len() * 8
    }
}

/// What stays with whoever read a part, until homes have answered.
#[derive(Debug)]
pub struct Kept {
    /// The place of the part in the history.
    pub order: u64,
    /// The sessions of the part.
    pub sessions: Vec<Label>,
    /// Of each transaction its session, by its number among those.
    session: Vec<u32>,
    first_read: Vec<u32>,
    /// Of each read the home of its key.
    homes: Vec<u16>,
    /// Transactions of unknown outcome.
    unknown: Vec<u32>,
}

impl Kept {
    /// How many transactions count.
    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// Of each session with a committed transaction, the last of these.
    pub(super) fn ends(&self) -> Vec<(u32, u32)> {
        let mut last = vec![NONE; self.sessions.len()];
        let mut unknown = self.unknown.iter().peekable();
        for (txn, &session) in (0..).zip(&self.session) {
            if unknown.next_if_eq(&&txn).is_none() {
                last[session as usize] = txn;
            }
        }
        (0..).zip(last).filter(|&(_, last)| last != NONE).collect()
    }

    /// The piece of the graph, from what all homes answered, by home.
    pub fn piece(self, layout: &Layout, replies: &[Vec<u32>]) -> Result<Piece, Open> {
        let (base, sessions, mut last) = layout.of_part(self.order, &self.sessions);
        let (mut chain, mut previous) =
            (Vec::with_capacity(self.session.len()), Vec::with_capacity(self.session.len()));
        let mut of_unknown = Vec::with_capacity(self.unknown.len());
        let mut unknown = self.unknown.iter().peekable();
        for (txn, &session) in (base..).zip(&self.session) {
            previous.push(last[session as usize]);
            if unknown.next_if(|&&it| it + base == txn).is_some() {
                chain.push(NONE);
                of_unknown.push((txn, sessions[session as usize]));
            } else {
                chain.push(sessions[session as usize]);
                last[session as usize] = txn;
            }
        }
        let mut next = vec![0; replies.len()];
        let mut sources = Vec::with_capacity(self.homes.len());
        for &home in &self.homes {
            let place = &mut next[home as usize];
            sources.push(replies[home as usize].get(*place).copied().unwrap_or(DOUBTFUL));
            *place += 1;
        }
        let mut unknown = self.unknown.iter().peekable();
        let mut is_forward = true;
        for txn in 0..self.session.len() as u32 {
            let reads = self.first_read[txn as usize] as usize..self.first_read[txn as usize + 1] as usize;
            let of_txn = &sources[reads];
            let is_unknown = unknown.next_if_eq(&&txn).is_some();
            if !is_unknown && of_txn.contains(&DOUBTFUL) {
                return Err(Open::Sources);
            }
            is_forward &= of_txn.iter().all(|&source| source == NONE || source < base + txn);
        }
        Ok(Piece { base, chain, previous, first_read: self.first_read, sources, of_unknown, is_forward })
    }
}

/// A part in digests.
#[derive(Debug)]
pub struct Digested {
    /// One for each home.
    pub digests: Vec<Digest>,
    /// What stays.
    pub kept: Kept,
    /// How many transactions are committed.
    pub committed: u64,
}

/// Makes digests of a part; `order` is its place in the history, `from` the number of whoever read it.
pub fn digest(part: &History, order: u64, from: usize, homes: usize, plan: Plan) -> Result<Digested, Open> {
    if plan.realtime && part.has_client_clocks() {
        return Err(Open::RealTime);
    }
    if homes > usize::from(u16::MAX) {
        return Err(Open::Size);
    }
    let mut work = Work::new(part, order, from, homes, plan.sight == Sight::EarlierReads);
    let mut committed = 0;
    for txn in part.transactions() {
        match txn.status() {
            Status::Aborted => continue,
            Status::Unknown => work.kept.unknown.push(work.kept.session.len() as u32),
            Status::Committed => committed += 1,
        }
        work.transaction(txn)?;
    }
    for row in part.initial() {
        if !row.value.is_known() {
            return Err(Open::Internal);
        }
        work.writers[work.homes[row.key.index()] as usize].initial(part, row.key, row.value);
    }
    let Work { writers, mut kept, .. } = work;
    kept.first_read.push(kept.homes.len() as u32);
    Ok(Digested { digests: writers.into_iter().map(|writer| writer.digest).collect(), kept, committed })
}

struct Work<'h> {
    part: &'h History,
    homes: Vec<u16>,
    /// For each key the transaction that last wrote it, and where in `own`.
    stamps: Vec<(u32, u32)>,
    own: Vec<(KeyId, ValueId)>,
    writers: Vec<Writer>,
    counts_earlier: bool,
    kept: Kept,
}

impl<'h> Work<'h> {
    fn new(part: &'h History, order: u64, from: usize, homes: usize, counts_earlier: bool) -> Self {
        let sessions = part.sessions().ids().map(|id: SessionId| Label::from(part.sessions().get(id)));
        Self {
            part,
            homes: part.keys().ids().map(|id| home(part.keys().get(id), homes) as u16).collect(),
            stamps: vec![(NONE, 0); part.keys().len()],
            own: Vec::new(),
            writers: (0..homes).map(|home| Writer::new(part, (home, homes), from, order)).collect(),
            counts_earlier,
            kept: Kept {
                order,
                sessions: sessions.collect(),
                session: Vec::with_capacity(part.len()),
                first_read: Vec::with_capacity(part.len() + 1),
                homes: Vec::new(),
                unknown: Vec::new(),
            },
        }
    }

    fn transaction(&mut self, txn: Transaction<'h>) -> Result<(), Open> {
        let number = self.kept.session.len() as u32;
        let first_read = self.kept.homes.len();
        self.kept.session.push(txn.session().index() as u32);
        self.kept.first_read.push(first_read as u32);
        self.own.clear();
        for op in txn.op_ids() {
            let Some(Point { kind, key, value }) = self.part.point(op) else { return Err(Open::Operations) };
            let (stamp, place) = self.stamps[key.index()];
            match kind {
                PointKind::Append => return Err(Open::Operations),
                PointKind::Write if !value.is_known() => return Err(Open::Internal),
                PointKind::Write if stamp == number => self.own[place as usize].1 = value,
                PointKind::Write => {
                    self.stamps[key.index()] = (number, self.own.len() as u32);
                    self.own.push((key, value));
                }
                PointKind::Read if !value.is_known() => {}
                PointKind::Read if stamp == number => {
                    let own = self.own[place as usize].1;
                    if own != value && differ(self.part, own, value) {
                        return Err(Open::Internal);
                    }
                }
                PointKind::Read => {
                    let home = self.homes[key.index()];
                    let earlier = (self.kept.homes.len() - first_read) as u32;
                    self.kept.homes.push(home);
                    let writer = &mut self.writers[home as usize];
                    let deed = writer.deed(self.part, number, key, value);
                    writer.digest.reads.push(deed);
                    if self.counts_earlier {
                        writer.digest.earlier.push(earlier);
                    }
                }
            }
        }
        for &(key, value) in &self.own {
            let writer = &mut self.writers[self.homes[key.index()] as usize];
            let deed = writer.deed(self.part, number, key, value);
            writer.digest.writes.push(deed);
        }
        Ok(())
    }
}

/// Different ids may still be the same to a reader: an empty list is absent.
#[cold]
fn differ(part: &History, one: ValueId, other: ValueId) -> bool {
    Datum::of(part.values(), one) != Datum::of(part.values(), other)
}

/// A digest while it is made.
struct Writer {
    digest: Digest,
    keys: Numbered,
    literals: FxHashMap<ValueId, u32>,
}

impl Writer {
    fn new(part: &History, (home, homes): (usize, usize), from: usize, order: u64) -> Self {
        // About half of the operations are reads; a column that grows is copied.
        let share = part.op_count() / homes.max(1) / 8 * 5;
        let digest = Digest {
            home: home as u32,
            from: from as u32,
            order,
            keys: Vec::with_capacity(part.keys().len() / homes.max(1) / 8 * 9),
            reads: Vec::with_capacity(share),
            writes: Vec::with_capacity(share),
            literals: vec![Literal::Absent],
            ..Digest::default()
        };
        Self { digest, keys: Numbered::new(part.keys().len()), literals: FxHashMap::default() }
    }

    #[inline]
    fn deed(&mut self, part: &History, txn: u32, key: KeyId, value: ValueId) -> Deed {
        Deed { txn, key: self.key(part, key), value: self.value(part, value) }
    }

    #[inline]
    fn key(&mut self, part: &History, key: KeyId) -> u32 {
        let keys = &mut self.digest.keys;
        self.keys.of(key, keys.len(), || keys.push(Label::from(part.keys().get(key))))
    }

    #[inline]
    fn value(&mut self, part: &History, value: ValueId) -> u32 {
        if value.as_inline().is_some() || value == ValueId::ABSENT {
            return value.0;
        }
        let literals = &mut self.digest.literals;
        *self.literals.entry(value).or_insert_with(|| {
            literals.push(Literal::of(part.values(), value));
            literals.len() as u32 - 1
        })
    }

    fn initial(&mut self, part: &History, key: KeyId, value: ValueId) {
        let pair = (self.key(part, key), self.value(part, value));
        self.digest.initial.push(pair);
    }
}
