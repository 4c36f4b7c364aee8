//! Transactions that something still speaks of, and the order of their moments.
//!
//! **What.** A slab of records; a version, a reader and the queues of open verdicts hold a number of it.
//! A record goes when nothing holds it.
//!
//! **Moments.** Everything is ordered by moments: a version at its writer's commit, a look at the snapshot
//! (the start, or for a transaction that starts and commits at once, and at serial levels, its own place
//! among the commits). A look sees exactly the versions before it. The rules on equal timestamps are those
//! of [`super::super::order`].

use super::slab::Slab;
use super::stamp::Stamp;
use super::timeline::Timed;
use history::{Name, Timestamp};
use std::cmp::Ordering;

/// A number of the slab.
pub(super) type TxnNo = u32;

/// No transaction: the initial state.
pub(super) const NOBODY: TxnNo = u32::MAX;

/// What is known of a transaction.
#[derive(Clone, Debug)]
pub(super) struct Txn {
    pub(super) start: Stamp,
    pub(super) commit: Stamp,
    pub(super) session: u32,
    /// Its place in the session.
    pub(super) position: u64,
    /// How many transactions had arrived when it did: no other has this number.
    pub(super) arrival: u64,
    /// The id it was given.
    pub(super) id: Option<Box<Name>>,
    pub(super) class: Class,
    pub(super) holders: u32,
    /// The keys it waits for a verdict on; see [`Touch`].
    pub(super) touched: Vec<Touch>,
}

/// How transactions with the same commit timestamp are ordered, before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    /// It may write.
    Writer,
    /// It only reads.
    Reader,
}

/// The place of a transaction among those with the same commit timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tie {
    pub(super) class: Class,
    pub(super) at_once: bool,
    pub(super) start: Stamp,
    pub(super) session: u32,
    pub(super) position: u64,
}

/// A key that a transaction read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) key: u32,
    pub(super) read: bool,
    pub(super) wrote: bool,
}

/// A moment; see the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) stamp: Stamp,
    /// After all commits of this timestamp.
    pub(super) after: bool,
    pub(super) txn: TxnNo,
}

impl Timed for Moment {
    fn stamp(&self) -> Stamp {
        self.stamp
    }
}

impl Timed for Stamp {
    #[inline]
    fn stamp(&self) -> Stamp {
        *self
    }
}

impl Timed for (Stamp, TxnNo) {
    #[inline]
    fn stamp(&self) -> Stamp {
        self.0
    }
}

impl Moment {
    /// Before everything.
    pub(super) const BEGINNING: Self = Self { stamp: Stamp::MIN, after: false, txn: NOBODY };
}

/// All records.
#[derive(Debug, Default)]
pub(super) struct Txns {
    slots: Slab<Txn>,
    free: Vec<TxnNo>,
    /// Names of sessions, by number.
    pub(super) sessions: Vec<Name>,
}

impl Txns {
    pub(super) fn insert(&mut self, txn: Txn) -> TxnNo {
        match self.free.pop() {
            Some(number) => {
                *self.slots.get_mut(number as usize) = txn;
                number
            }
            None => self.slots.push(txn) as TxnNo,
        }
    }

    #[inline]
    pub(super) fn get(&self, number: TxnNo) -> &Txn {
        self.slots.get(number as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, number: TxnNo) -> &mut Txn {
        self.slots.get_mut(number as usize)
    }

    #[inline]
    pub(super) fn hold(&mut self, number: TxnNo) {
        if number != NOBODY {
            self.slots.get_mut(number as usize).holders += 1;
        }
    }

    #[inline]
    pub(super) fn release(&mut self, number: TxnNo) {
        if number == NOBODY {
            return;
        }
        let txn = self.slots.get_mut(number as usize);
        txn.holders -= 1;
        if txn.holders == 0 {
            txn.id = None;
            txn.touched = Vec::new();
            self.free.push(number);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// About how many bytes one record takes.
    pub(super) const BYTES: usize = size_of::<Txn>() + 8 * size_of::<Touch>();

    /// The records in use, with their numbers.
    pub(super) fn all(&self) -> impl Iterator<Item = (TxnNo, &Txn)> {
        self.slots
            .iter()
            .enumerate()
            .filter(|(_, txn)| txn.holders > 0)
            .map(|(number, txn)| (number as TxnNo, txn))
    }

    /// Puts records back at their numbers.
    pub(super) fn restore(&mut self, records: Vec<(TxnNo, Txn)>, slots: usize) {
        let empty = Txn {
            start: Stamp::MIN,
            commit: Stamp::MIN,
            session: 0,
            position: 0,
            arrival: 0,
            id: None,
            class: Class::Reader,
            holders: 0,
            touched: Vec::new(),
        };
        self.slots = Slab::default();
        for _ in 0..slots {
            self.slots.push(empty.clone());
        }
        for (number, txn) in records {
            *self.slots.get_mut(number as usize) = txn;
        }
        self.free = (0..slots as TxnNo).rev().filter(|&number| self.get(number).holders == 0).collect();
    }

    pub(super) fn slot_count(&self) -> usize {
        self.slots.len()
    }

    // ---- order ----

    /// When its writes become visible.
    pub(super) fn commit_moment(&self, txn: TxnNo) -> Moment {
        if txn == NOBODY {
            return Moment::BEGINNING;
        }
        Moment { stamp: self.get(txn).commit, after: false, txn }
    }

    /// When it looks.
    pub(super) fn look_moment(&self, txn: TxnNo, serial: bool) -> Moment {
        let record = self.get(txn);
        if serial || record.start >= record.commit {
            return self.commit_moment(txn);
        }
        Moment { stamp: record.start, after: true, txn }
    }

    #[inline]
    pub(super) fn compare(&self, a: Moment, b: Moment) -> Ordering {
        match a.stamp.cmp(&b.stamp) {
            Ordering::Equal => self.break_tie(a, b),
            order => order,
        }
    }

    #[cold]
    fn break_tie(&self, a: Moment, b: Moment) -> Ordering {
        if a.after != b.after || a.txn == b.txn {
            return a.after.cmp(&b.after);
        }
        if a.txn == NOBODY || b.txn == NOBODY {
            return (a.txn != NOBODY).cmp(&(b.txn != NOBODY));
        }
        let key = |number: TxnNo| {
            let tie = self.tie(number);
            let session = self.sessions.get(tie.session as usize);
            let arrival = self.get(number).arrival;
            (tie.class, tie.at_once, tie.start, session, tie.position, arrival)
        };
        key(a.txn).cmp(&key(b.txn))
    }

    /// Its place among those with the same commit timestamp.
    pub(super) fn tie(&self, number: TxnNo) -> Tie {
        self.get(number).tie()
    }
}

impl Txn {
    /// Its place among those with the same commit timestamp.
    pub(super) fn tie(&self) -> Tie {
        Tie {
            class: self.class,
            at_once: self.start >= self.commit,
            start: self.start,
            session: self.session,
            position: self.position,
        }
    }

    /// When it looks: at its start, or, if it starts and commits at once and at serial levels, at its commit.
    pub(super) fn look(&self, serial: bool) -> Stamp {
        if serial || self.start >= self.commit { self.commit } else { self.start }
    }

    /// For people and reports, given the names of sessions.
    pub(super) fn named(&self, sessions: &[Name]) -> Named {
        let session = sessions[self.session as usize].clone();
        let name = match &self.id {
            Some(id) => id.to_string(),
            None => format!("{session}:{}", self.position),
        };
        Named { name, session, start: Some(self.start.into()), commit: Some(self.commit.into()) }
    }
}

/// A transaction, for people and reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The id it was given, else `SESSION:N`.
    pub name: String,
    /// The connection that issued it.
    pub session: Name,
    /// When it started.
    pub start: Option<Timestamp>,
    /// When it committed.
    pub commit: Option<Timestamp>,
}

impl Txns {
    pub(super) fn named(&self, number: TxnNo) -> Named {
        self.get(number).named(&self.sessions)
    }
}
