//! Session order and gaps: who came before whom in a session, what never arrived, what arrived twice.
//!
//! **Sequence numbers.** Where transactions carry `seq`, a number that counts the transactions of their
//! session one by one, whatever their status, the session's order is theirs: arrivals may be out of order,
//! a number that never comes is a *lost* transaction, one that comes again a *duplicate*. Without `seq`
//! the order of a session is the order of its arrivals, and nothing can be missed.
//!
//! **Invariant.** Up to `next` the session is complete (or what is missing has been reported); what arrived
//! beyond waits in `early`. Only neighbours are compared: if every neighbour is visible, so are all
//! earlier ones ([`super::super::sessions`]).

use super::stamp::Stamp;
use super::txns::{Named, Tie, Txn};
use super::{Found, Kind, Online, Shards};
use crate::Axiom;
use history::{Name, NameRef};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A transaction as its session remembers it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Member {
    /// The id it was given.
    pub(super) id: Option<Box<Name>>,
    pub(super) start: Stamp,
    pub(super) commit: Stamp,
    pub(super) tie: Tie,
}

impl From<&Txn> for Member {
    fn from(txn: &Txn) -> Self {
        Self { id: txn.id.clone(), start: txn.start, commit: txn.commit, tie: txn.tie() }
    }
}

/// What arrived ahead of its turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Early {
    /// Committed transactions only: others order nothing.
    pub(super) member: Option<Member>,
    /// When the watermark passes this, the newest commit when it arrived, what is missing before it is lost.
    pub(super) patience: Stamp,
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Session {
    /// How many transactions arrived without a sequence number.
    pub(super) arrived: u64,
    /// The sequence number whose turn it is; unknown before the watermark has passed the first.
    pub(super) next: Option<u64>,
    pub(super) early: BTreeMap<u64, Early>,
    /// Numbers that were told to be lost, first and last; the latest [`LOST_MAX`] of them.
    pub(super) lost: Vec<(u64, u64)>,
    /// The last committed transaction of the complete part.
    pub(super) last: Option<Box<Member>>,
}

/// How many gaps a session remembers.
const LOST_MAX: usize = 64;

/// What a sequence number means when it arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It takes its place in the session.
    InOrder(u64),
    /// It was given up; it counts, but takes no place any more.
    GivenUp(u64),
    /// It has been here before.
    Again(u64),
}

/// All sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    pub(super) by_name: FxHashMap<Name, u32>,
    pub(super) all: Vec<Session>,
    /// Sessions with transactions ahead of their turn.
    pub(super) waiting: Vec<u32>,
    pub(super) early_count: usize,
}

impl Sessions {
    pub(super) fn bytes(&self) -> usize {
        self.all.len() * (size_of::<Session>() + 200) + self.early_count * 200
    }
}

impl Online {
    pub(super) fn session(&mut self, name: NameRef<'_>) -> u32 {
        let name = name.to_owned();
        if let Some(&session) = self.sessions.by_name.get(&name) {
            return session;
        }
        let session = self.sessions.all.len() as u32;
        self.sessions.all.push(Session::default());
        self.names.push(name.clone());
        if let Shards::Here(space) = &mut self.shards {
            space.txns.sessions.push(name.clone());
        }
        self.sessions.by_name.insert(name, session);
        session
    }

    /// The place of a transaction that arrives.
    pub(super) fn arrival(&mut self, session: u32, seq: Option<u64>) -> Arrival {
        let record = &mut self.sessions.all[session as usize];
        let Some(seq) = seq else {
            record.arrived += 1;
            return Arrival::InOrder(record.arrived - 1);
        };
        if record.next.is_none_or(|next| seq >= next) {
            let again = record.early.contains_key(&seq);
            return if again { Arrival::Again(seq) } else { Arrival::InOrder(seq) };
        }
        let Some(gap) = record.lost.iter().position(|&(first, last)| (first..=last).contains(&seq)) else {
            return Arrival::Again(seq);
        };
        let (first, last) = record.lost.remove(gap);
        let around = [(first, seq.wrapping_sub(1)), (seq + 1, last)];
        record.lost.extend(around.into_iter().filter(|(first, last)| first <= last && *last != u64::MAX));
        Arrival::GivenUp(seq)
    }

    /// A transaction takes its place in the session: `member` if it is committed.
    pub(super) fn join_session(
        &mut self,
        session: u32,
        seq: Option<u64>,
        member: Option<Member>,
        patience: Stamp,
    ) {
        let Some(seq) = seq else {
            if let Some(member) = member {
                self.follow(session, member);
            }
            return;
        };
        let record = &mut self.sessions.all[session as usize];
        if record.early.is_empty() {
            self.sessions.waiting.push(session);
        }
        record.early.insert(seq, Early { member, patience });
        self.sessions.early_count += 1;
        self.follow_up(session);
    }

    /// Lets those follow whose turn it is.
    fn follow_up(&mut self, session: u32) {
        loop {
            let record = &mut self.sessions.all[session as usize];
            let Some(next) = record.next else { return };
            let Some(early) = record.early.remove(&next) else { return };
            record.next = Some(next + 1);
            self.sessions.early_count -= 1;
            if let Some(member) = early.member {
                self.follow(session, member);
            }
        }
    }

    /// A committed transaction follows the last one of its session.
    fn follow(&mut self, session: u32, member: Member) {
        let record = &mut self.sessions.all[session as usize];
        let before = record.last.take();
        if let Some(before) = before.filter(|_| self.settings.level.session)
            && !self.is_visible(&before, &member)
        {
            let mut found = Found::about(Kind::Broken(Axiom::Session), self.named_member(session, &member));
            found.other = Some(self.named_member(session, &before));
            self.tell(found);
        }
        self.sessions.all[session as usize].last = Some(Box::new(member));
    }

    fn is_visible(&self, before: &Member, own: &Member) -> bool {
        if !self.serial() && own.start < own.commit {
            return before.commit <= own.start;
        }
        let key = |member: &Member| {
            let tie = &member.tie;
            let session = self.names.get(tie.session as usize).cloned();
            (member.commit, tie.class, tie.at_once, tie.start, session, tie.position)
        };
        key(before) < key(own)
    }

    /// The watermark has moved: what did not come until now does not come.
    pub(super) fn tell_lost(&mut self) {
        let waiting = std::mem::take(&mut self.sessions.waiting);
        for session in waiting {
            self.give_up(session);
            if !self.sessions.all[session as usize].early.is_empty() {
                self.sessions.waiting.push(session);
            }
        }
    }

    fn give_up(&mut self, session: u32) {
        loop {
            self.follow_up(session);
            let watermark = self.watermark;
            let record = &mut self.sessions.all[session as usize];
            // The numbers are complete up to the last one that the watermark has passed.
            let passed = record.early.values().any(|early| early.patience <= watermark);
            let Some((&first, _)) = record.early.first_key_value().filter(|_| passed) else { return };
            let missing = record.next.map(|next| (next, first - 1));
            record.next = Some(first);
            if let Some(missing) = missing {
                if record.lost.len() == LOST_MAX {
                    record.lost.remove(0);
                }
                record.lost.push(missing);
                let name = self.names[session as usize].clone();
                let named =
                    Named { name: format!("{name}:{}", missing.0), session: name, start: None, commit: None };
                let mut found = Found::about(Kind::Lost, named);
                found.missing = Some(missing);
                self.tell(found);
            }
        }
    }

    /// A finding about a transaction that has no record.
    pub(super) fn name_of(&self, session: u32, position: u64, id: Option<&Name>) -> Named {
        let session = self.names[session as usize].clone();
        let name = id.map_or_else(|| format!("{session}:{position}"), Name::to_string);
        Named { name, session, start: None, commit: None }
    }

    fn named_member(&self, session: u32, member: &Member) -> Named {
        let named = self.name_of(session, member.tie.position, member.id.as_deref());
        Named { start: Some(member.start.into()), commit: Some(member.commit.into()), ..named }
    }
}
