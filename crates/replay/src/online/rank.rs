//! When a finding is reported, among those of all workers: the order in which one checker would tell them.
//!
//! **What.** One checker tells findings in the order of what happens to it: transactions arrive, and the watermark
//! moves; when it moves, looks become final in their order, then writes in the order of commits, then sessions say what
//! is lost. Workers do these things side by side. Each of their findings carries its [`Rank`], and whoever gathers them
//! sorts by it; so findings and their numbers do not depend on how many worked.
//!
//! **Invariant.** Of two findings of different ranks, one checker tells the one of the smaller rank first; of the same
//! rank, the one with the smaller operation and key, or, for what is reported where transactions arrive, as they come.

use super::codec::{Input, Output, invalid};
use super::save::{axiom_number, get_tie, put_tie};
use super::space::KeySpace;
use super::stamp::Stamp;
use super::txns::{Named, Tie, TxnNo};
use super::{Found, Kind};
use crate::Axiom;
use history::{Name, Timestamp};
use std::cmp::Ordering;
use std::io;

/// What is being done when a finding is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// A transaction has arrived: what is known without any key.
    Arrived,
    /// What is certain of it at once.
    Judged,
    /// A look becomes final.
    Looks,
    /// A write becomes final.
    Writes,
    /// Sessions say what is lost.
    Sessions,
}

impl Phase {
    const ALL: [Self; 5] = [Self::Arrived, Self::Judged, Self::Looks, Self::Writes, Self::Sessions];
}

/// A place in the order of telling.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rank {
    /// Counts arrivals and moves of the watermark.
    pub(super) tick: u64,
    pub(super) phase: Phase,
    pub(super) stamp: Stamp,
    pub(super) after: bool,
    /// Of looks among the commits.
    pub(super) tie: Option<Tie>,
    pub(super) session: u32,
    pub(super) position: u64,
    pub(super) arrival: u64,
}

impl Rank {
    pub(super) const fn new(tick: u64, phase: Phase) -> Self {
        let stamp = Stamp::MIN;
        Self { tick, phase, stamp, after: false, tie: None, session: 0, position: 0, arrival: 0 }
    }

    pub(super) fn put(&self, out: &mut Output<'_>) -> io::Result<()> {
        out.number(self.tick)?;
        out.byte(self.phase as u8)?;
        out.stamp(self.stamp)?;
        out.flag(self.after)?;
        out.option(self.tie.as_ref(), put_tie)?;
        out.number(u64::from(self.session))?;
        out.number(self.position)?;
        out.number(self.arrival)
    }

    pub(super) fn get(input: &mut Input<'_>) -> io::Result<Self> {
        Ok(Self {
            tick: input.number()?,
            phase: *Phase::ALL.get(usize::from(input.byte()?)).ok_or_else(|| invalid("a rank"))?,
            stamp: input.stamp()?,
            after: input.flag()?,
            tie: input.option(get_tie)?,
            session: input.small()?,
            position: input.number()?,
            arrival: input.number()?,
        })
    }
}

/// How many keys a predicate write changed at one worker; the count that the database reported is of all.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) txn: Named,
    pub(super) op: u32,
    /// Modulo 2⁶⁴: only the sum over all workers means something.
    pub(super) matched: u64,
    pub(super) told: u64,
}

/// What was told, to be put into order by whoever gathers it.
#[derive(Debug)]
pub(super) struct Ranked {
    /// What is being done.
    pub(super) now: Rank,
    pub(super) told: Vec<(Rank, Found)>,
    pub(super) shares: Vec<(Rank, Share)>,
}

impl Default for Ranked {
    fn default() -> Self {
        Self { now: Rank::new(0, Phase::Arrived), told: Vec::new(), shares: Vec::new() }
    }
}

impl KeySpace {
    /// A look becomes final.
    #[inline]
    pub(super) fn rank_look(&mut self, txn: TxnNo) {
        let Some(tick) = self.ranked().map(|ranked| ranked.now.tick) else { return };
        let record = self.txns.get(txn);
        let look = self.txns.look_moment(txn, self.serial);
        self.set_rank(Rank {
            stamp: look.stamp,
            after: look.after,
            tie: (!look.after).then(|| self.txns.tie(txn)),
            session: record.session,
            position: record.position,
            arrival: record.arrival,
            ..Rank::new(tick, Phase::Looks)
        });
    }

    /// A write becomes final.
    #[inline]
    pub(super) fn rank_write(&mut self, txn: TxnNo) {
        let Some(tick) = self.ranked().map(|ranked| ranked.now.tick) else { return };
        let record = self.txns.get(txn);
        let rank = Rank::new(tick, Phase::Writes);
        self.set_rank(Rank { stamp: record.commit, arrival: record.arrival, ..rank });
    }
}

/// The order of ranks, given the names of sessions.
fn compare_ranks(names: &[Name], a: &Rank, b: &Rank) -> Ordering {
    let name = |session: u32| names.get(session as usize);
    let first = (a.tick, a.phase, a.stamp, a.after).cmp(&(b.tick, b.phase, b.stamp, b.after));
    first
        .then_with(|| match (&a.tie, &b.tie) {
            (Some(a), Some(b)) => {
                let key = |tie: &Tie| (tie.class, tie.at_once, tie.start);
                key(a)
                    .cmp(&key(b))
                    .then_with(|| name(a.session).cmp(&name(b.session)))
                    .then(a.position.cmp(&b.position))
            }
            _ => name(a.session).cmp(&name(b.session)).then(a.position.cmp(&b.position)),
        })
        .then(a.arrival.cmp(&b.arrival))
}

/// The order of telling, given the names of sessions.
pub(super) fn compare_told(names: &[Name], a: &(Rank, Found), b: &(Rank, Found)) -> Ordering {
    compare_ranks(names, &a.0, &b.0).then_with(|| match a.0.phase {
        Phase::Arrived | Phase::Sessions => Ordering::Equal,
        _ => (a.1.op, &a.1.key).cmp(&(b.1.op, &b.1.key)),
    })
}

// ---- findings as bytes ----

pub(super) fn put_named(out: &mut Output<'_>, named: &Named) -> io::Result<()> {
    out.text(&named.name)?;
    out.name(&named.session)?;
    for time in [named.start, named.commit] {
        out.option(time, |out, time| out.stamp(time.into()))?;
    }
    Ok(())
}

pub(super) fn get_named(input: &mut Input<'_>) -> io::Result<Named> {
    let time = |input: &mut Input<'_>| input.option(|input| Ok(Timestamp::from(input.stamp()?)));
    Ok(Named { name: input.text()?, session: input.name()?, start: time(input)?, commit: time(input)? })
}

/// A finding that has no number yet.
pub(super) fn put_found(out: &mut Output<'_>, found: &Found) -> io::Result<()> {
    let Found { number: _, kind, txn, op, key, other, expected, seen, counts, missing, doubt } = found;
    match kind {
        Kind::Broken(axiom) => out.byte(axiom_number(*axiom))?,
        kind => out.byte(0x80 | kind.index() as u8)?,
    }
    put_named(out, txn)?;
    out.option(op.map(u64::from), Output::number)?;
    out.option(key.as_ref(), Output::name)?;
    out.option(other.as_ref(), put_named)?;
    out.option(expected.as_ref(), Output::datum)?;
    out.option(seen.as_ref(), Output::datum)?;
    for pair in [counts, missing] {
        out.option(*pair, |out, (a, b)| {
            out.number(a)?;
            out.number(b)
        })?;
    }
    out.option(doubt.as_deref(), Output::text)
}

pub(super) fn get_found(input: &mut Input<'_>) -> io::Result<Found> {
    let kind = match input.byte()? {
        kind if kind & 0x80 != 0 => Kind::ALL.get(usize::from(kind & 0x7f)).copied(),
        axiom => Axiom::ALL.get(usize::from(axiom)).map(|&axiom| Kind::Broken(axiom)),
    };
    let pair = |input: &mut Input<'_>| input.option(|input| Ok((input.number()?, input.number()?)));
    Ok(Found {
        number: 0,
        kind: kind.ok_or_else(|| invalid("a finding"))?,
        txn: get_named(input)?,
        op: input.option(Input::small)?,
        key: input.option(Input::name)?,
        other: input.option(get_named)?,
        expected: input.option(Input::datum)?,
        seen: input.option(Input::datum)?,
        counts: pair(input)?,
        missing: pair(input)?,
        doubt: input.option(Input::text)?.map(String::into_boxed_str),
    })
}

pub(super) fn put_share(out: &mut Output<'_>, share: &Share) -> io::Result<()> {
    put_named(out, &share.txn)?;
    out.number(u64::from(share.op))?;
    out.number(share.matched)?;
    out.number(share.told)
}

pub(super) fn get_share(input: &mut Input<'_>) -> io::Result<Share> {
    Ok(Share { txn: get_named(input)?, op: input.small()?, matched: input.number()?, told: input.number()? })
}

/// A key for sums of [`Share`]s: who, and which operation.
pub(super) fn share_key((rank, share): &(Rank, Share)) -> (u64, u64, u32) {
    (rank.tick, rank.arrival, share.op)
}
