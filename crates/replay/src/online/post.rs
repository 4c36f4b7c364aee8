//! Where transactions arrive: their pieces go to the workers at which their keys live.
//!
//! **What.** Steps 1 and 2 of [`super::receive`] need no key: sessions, what is late, and what a transaction contradicts by
//! itself. What is left of it for a key is a piece: what it first saw there, and what it leaves there; or the part of its
//! program that names the key. [`Posts`] writes pieces, initial values and watermarks into a message for each worker, in
//! the order of arrival; [`super::shard`] reads them.
//!
//! **Format.** A message is how many names of sessions are new and those names, then orders: a byte that says which, and
//! its fields as in a saved state. A key is a number; the first time in a message, its name follows.
//!
//! **Invariant.** A worker gets orders in the order in which they were written. A key has the same number for all
//! transactions of one history, and a message ends only between histories.

use super::Settings;
use super::admit::Piece;
use super::codec::Output;
use super::keys::KeyNo;
use super::program::{Own, Program};
use super::save::{put_identity, put_program};
use super::space::KeySpace;
use super::stamp::Stamp;
use super::txns::Txn;
use crate::datum::Datum;
use crate::shards::home;
use history::{History, Id, KeyId, Name, NameRef};
use std::io;

pub(super) const BEGIN: u8 = 1;
pub(super) const RESTORE: u8 = 2;
pub(super) const INITIAL: u8 = 3;
pub(super) const POINTS: u8 = 4;
pub(super) const PROGRAM: u8 = 5;
pub(super) const ADVANCE: u8 = 6;
pub(super) const SAVE: u8 = 7;
pub(super) const MEMORY: u8 = 8;

const UNSET: u32 = u32::MAX;

/// What waits to be sent to one worker.
#[derive(Debug, Default)]
struct Outbox {
    orders: Vec<u8>,
    /// How many keys the message has named.
    keys: u32,
    /// How many names of sessions the worker has.
    sessions: usize,
    /// The keys of the transaction at hand, and how many.
    pieces: Vec<u8>,
    count: u64,
}

/// The messages to all workers.
#[derive(Debug)]
pub(super) struct Posts {
    boxes: Vec<Outbox>,
    /// By key of the history being received: where it lives, and its number in the message.
    places: Vec<(u32, u32)>,
}

/// The number of a key in a message, and its name if it is new there.
fn put_key(
    out: &mut Output<'_>,
    keys: &mut u32,
    place: &mut (u32, u32),
    name: NameRef<'_>,
) -> io::Result<()> {
    let is_new = place.1 == UNSET;
    if is_new {
        place.1 = *keys;
        *keys += 1;
    }
    out.number(u64::from(place.1))?;
    if is_new { out.name(&name.to_owned()) } else { Ok(()) }
}

fn put_own(out: &mut Output<'_>, own: &Own) -> io::Result<()> {
    match own {
        Own::Nothing => out.byte(0),
        Own::Value(value) => {
            out.byte(1)?;
            out.datum(value)
        }
        Own::Appended(more) => {
            out.byte(2)?;
            out.list(more.len(), more, Output::datum)
        }
    }
}

fn put_txn(out: &mut Output<'_>, tick: u64, txn: &Txn) -> io::Result<()> {
    out.number(tick)?;
    put_identity(out, txn)
}

impl Posts {
    pub(super) fn new(workers: usize) -> Self {
        Self { boxes: (0..workers.max(1)).map(|_| Outbox::default()).collect(), places: Vec::new() }
    }

    /// How many bytes wait.
    pub(super) fn bytes(&self) -> usize {
        self.boxes.iter().map(|it| it.orders.len()).sum()
    }

    /// The messages; nothing waits from here on. `sessions` are all names of sessions.
    pub(super) fn take(&mut self, sessions: &[Name]) -> io::Result<Vec<Vec<u8>>> {
        self.places.clear();
        let mut messages = Vec::with_capacity(self.boxes.len());
        for it in &mut self.boxes {
            let orders = std::mem::take(&mut it.orders);
            if orders.is_empty() {
                messages.push(Vec::new());
                continue;
            }
            let new = &sessions[it.sessions.min(sessions.len())..];
            let mut message = Vec::with_capacity(orders.len() + 8 + new.len() * 16);
            Output::unsummed(&mut message).list(new.len(), new, Output::name)?;
            message.extend_from_slice(&orders);
            it.sessions = sessions.len();
            it.keys = 0;
            it.orders = Vec::with_capacity(orders.len());
            messages.push(message);
        }
        Ok(messages)
    }

    /// Another history is received.
    pub(super) fn begin(&mut self, keys: usize) {
        self.places.clear();
        self.places.resize(keys, (UNSET, UNSET));
    }

    fn home(&mut self, part: &History, key: KeyNo) -> usize {
        let place = &mut self.places[key as usize];
        if place.0 == UNSET {
            place.0 = home(part.keys().get(KeyId::new(key as usize)), self.boxes.len()) as u32;
        }
        place.0 as usize
    }

    pub(super) fn initial(&mut self, part: &History, key: KeyId, value: &Datum) -> io::Result<()> {
        let number = key.index() as KeyNo;
        let home = self.home(part, number);
        let Outbox { orders, keys, .. } = &mut self.boxes[home];
        let mut out = Output::unsummed(orders);
        out.byte(INITIAL)?;
        put_key(&mut out, keys, &mut self.places[key.index()], part.keys().get(key))?;
        out.datum(value)
    }

    /// What a transaction does to single keys, to the workers that have them. Of one that is late only what it writes counts.
    pub(super) fn points(
        &mut self,
        part: &History,
        tick: u64,
        txn: &Txn,
        pieces: &[Piece],
        is_late: bool,
    ) -> io::Result<()> {
        for piece in pieces {
            let look = piece.look.as_ref().filter(|_| !is_late);
            if look.is_some() || piece.own != Own::Nothing {
                self.piece(part, piece, look)?;
            }
        }
        for it in self.boxes.iter_mut().filter(|it| it.count > 0) {
            let mut out = Output::unsummed(&mut it.orders);
            out.byte(POINTS)?;
            put_txn(&mut out, tick, txn)?;
            out.number(it.count)?;
            it.orders.append(&mut it.pieces);
            it.count = 0;
        }
        Ok(())
    }

    fn piece(&mut self, part: &History, piece: &Piece, look: Option<&(Datum, u32)>) -> io::Result<()> {
        let home = self.home(part, piece.key);
        let Outbox { pieces, keys, count, .. } = &mut self.boxes[home];
        *count += 1;
        let mut out = Output::unsummed(pieces);
        let name = part.keys().get(KeyId::new(piece.key as usize));
        put_key(&mut out, keys, &mut self.places[piece.key as usize], name)?;
        out.option(look, |out, (seen, op)| {
            out.number(u64::from(*op))?;
            out.datum(seen)
        })?;
        put_own(&mut out, &piece.own)
    }

    /// The part of a program for each worker that has to do with it.
    pub(super) fn program(
        &mut self,
        part: &History,
        tick: u64,
        txn: &Txn,
        program: &Program,
    ) -> io::Result<()> {
        let named = program.named_keys();
        for &key in &named {
            self.home(part, key);
        }
        for worker in 0..self.boxes.len() {
            let own: Vec<KeyNo> =
                named.iter().copied().filter(|&key| self.places[key as usize].0 as usize == worker).collect();
            if own.is_empty() && !program.is_wide() {
                continue;
            }
            let Outbox { orders, keys, .. } = &mut self.boxes[worker];
            let mut out = Output::unsummed(orders);
            out.byte(PROGRAM)?;
            put_txn(&mut out, tick, txn)?;
            out.number(own.len() as u64)?;
            for key in own {
                let name = part.keys().get(KeyId::new(key as usize));
                put_key(&mut out, keys, &mut self.places[key as usize], name)?;
            }
            let places = &self.places;
            let piece = program.part(&mut |key| {
                let (home, number) = places[key as usize];
                (home as usize == worker).then_some(number)
            });
            put_program(&mut out, &piece)?;
        }
        Ok(())
    }

    fn give_all(&mut self, order: impl Fn(&mut Output<'_>) -> io::Result<()>) -> io::Result<()> {
        self.boxes.iter_mut().try_for_each(|it| order(&mut Output::unsummed(&mut it.orders)))
    }

    /// A new checker, of these settings.
    pub(super) fn new_checker(&mut self, settings: &Settings) -> io::Result<()> {
        self.give_all(|out| {
            out.byte(BEGIN)?;
            put_settings(out, settings)
        })
    }

    /// A checker that was saved.
    pub(super) fn restore(&mut self, worker: usize, settings: &Settings, space: &KeySpace) -> io::Result<()> {
        let it = &mut self.boxes[worker];
        let mut out = Output::unsummed(&mut it.orders);
        out.byte(RESTORE)?;
        put_settings(&mut out, settings)?;
        space.save(&mut it.orders)
    }

    /// Workers that were restored have the names of this many sessions.
    pub(super) fn know_sessions(&mut self, sessions: usize) {
        self.boxes.iter_mut().for_each(|it| it.sessions = sessions);
    }

    pub(super) fn save(&mut self, worker: usize) {
        self.boxes[worker].orders.push(SAVE);
    }

    pub(super) fn memory_max(&mut self, bytes: Option<usize>) -> io::Result<()> {
        self.give_all(|out| {
            out.byte(MEMORY)?;
            out.option(bytes.map(|bytes| bytes as u64), Output::number)
        })
    }

    pub(super) fn advance(&mut self, tick: u64, watermark: Stamp, horizon: Stamp) -> io::Result<()> {
        self.give_all(|out| {
            out.byte(ADVANCE)?;
            out.number(tick)?;
            out.stamp(watermark)?;
            out.stamp(horizon)
        })
    }
}

fn put_settings(out: &mut Output<'_>, settings: &Settings) -> io::Result<()> {
    out.text(settings.level.name())?;
    out.text(&format!("{:?}", settings.ryow))?;
    out.option(settings.memory_max.map(|bytes| bytes as u64), Output::number)
}
