//! Arrival: a transaction of a history becomes readers and versions.
//!
//! **Steps.**
//! 1. Whether it has been here before ([`super::delivered`]), and its place in the session; duplicates end here.
//! 2. What it does by itself: for each key, what it first saw of the outside, and what it leaves there.
//!    Reads that contradict its own earlier operations are told at once: nothing that arrives later can
//!    change that.
//! 3. Its looks are compared with the versions that are here, and wait in the keys' timelines.
//! 4. Its writes become versions, and later looks at those keys are compared again ([`super::settle`]).
//!
//! A transaction that does more than that (ranges, predicates, reads of what it appended to) is kept as a
//! [`Program`] instead.

use super::delivered::Delivery;
use super::keys::{KeyNo, Reader, Seen, Version, VersionKind};
use super::program::{Act, Own, Program, Region, Rows, Visited};
use super::sessions::Arrival;
use super::stamp::Stamp;
use super::timeline::Timeline;
use super::txns::{Class, Moment, NOBODY, Named, Touch, Txn, TxnNo};
use super::watch::Watcher;
use super::{Found, Kind, Online};
use crate::timestamped::Axiom;
use crate::timestamped::datum::{Datum, Question};
use crate::timestamped::step::{Deeds, Interned, Read, Rules};
use history::{
    Area, History, Id, KeyId, Name, Primitive, Row, SessionId, Status, Test, Timestamp, Transaction, ValueId,
    WriteIf,
};
use std::collections::BTreeMap;
use std::io;

const UNSET: u32 = u32::MAX;

/// Space that is used again for every transaction.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The keys and sessions of the history being received.
    keys: Vec<KeyNo>,
    sessions: Vec<u32>,
    deeds: Deeds,
    pub(super) pieces: Vec<Piece>,
    broken: Vec<Broken>,
}

/// What a transaction saw of a key and left there.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) key: KeyNo,
    /// The first look at the outside, and which operation it was.
    pub(super) look: Option<(Datum, u32)>,
    pub(super) own: Own,
}

/// A read that contradicts the transaction itself.
#[derive(Debug)]
struct Broken {
    op: u32,
    key: KeyId,
    expected: Datum,
    seen: Datum,
}

/// A transaction that needs to be kept as a program.
struct NeedsProgram;

impl Online {
    /// Takes all transactions of a history, in its order, and its initial values.
    pub fn receive(&mut self, part: &History) -> io::Result<()> {
        self.scratch.keys.clear();
        self.scratch.keys.resize(part.keys().len(), UNSET);
        self.scratch.sessions.clear();
        self.scratch.sessions.resize(part.sessions().len(), UNSET);
        self.scratch.deeds.begin_part(part.keys().len());
        if let Some(posts) = &mut self.posts {
            posts.begin(part.keys().len());
        }
        for &Row { key, value } in part.initial() {
            self.start_with(part, key, value)?;
        }
        for txn in part.transactions() {
            self.receive_one(part, txn)?;
        }
        self.log.take(part, self.newest);
        self.make_room()
    }

    fn start_with(&mut self, part: &History, key: KeyId, value: ValueId) -> io::Result<()> {
        let value = Datum::of(part.values(), value);
        if let Some(posts) = &mut self.posts {
            return posts.initial(part, key, &value);
        }
        let key = self.key_of(part, key)?;
        self.begin_with(key, value);
        Ok(())
    }

    /// What a key holds before everything, unless that is known.
    pub(super) fn begin_with(&mut self, key: KeyNo, value: Datum) {
        let at_beginning = |version: &Version| version.txn == NOBODY;
        if self.keys.get(key).versions.first().is_some_and(at_beginning) {
            return;
        }
        let version = Version { commit: Stamp::MIN, txn: NOBODY, value, kind: VersionKind::Set };
        self.insert_version(key, version);
    }

    /// The key of a history's key. Its slot stays until the history has been received. Where keys live elsewhere, it is
    /// the number that the history has for it.
    fn key_of(&mut self, part: &History, key: KeyId) -> io::Result<KeyNo> {
        if self.posts.is_some() {
            return Ok(key.index() as KeyNo);
        }
        let known = self.scratch.keys[key.index()];
        if known != UNSET {
            return Ok(known);
        }
        let number = self.key(part.keys().get(key))?;
        self.scratch.keys[key.index()] = number;
        Ok(number)
    }

    fn session_of(&mut self, part: &History, session: SessionId) -> u32 {
        let known = self.scratch.sessions[session.index()];
        if known != UNSET {
            return known;
        }
        let number = self.session(part.sessions().get(session));
        self.scratch.sessions[session.index()] = number;
        number
    }

    fn receive_one(&mut self, part: &History, txn: Transaction<'_>) -> io::Result<()> {
        self.next_tick();
        self.counters.received += 1;
        self.counters.operations += txn.op_ids().len() as u64;
        let session = self.session_of(part, txn.session());
        let seq = sequence_number(txn.extra_fields());
        let id = || txn.explicit_id().map(|id| id.to_owned());
        let delivery = self.delivery(part, txn, seq.is_some());
        if delivery != Delivery::First {
            let kind = if delivery == Delivery::Again { Kind::Duplicate } else { Kind::Conflict };
            self.tell_delivered(kind, session, txn, seq);
            if delivery != (Delivery::Conflict { is_left_out: false }) {
                self.counters.settled += 1;
                return Ok(());
            }
        }
        let (position, seq) = match self.arrival(session, seq) {
            Arrival::InOrder(position) => (position, Some(seq)),
            Arrival::GivenUp(position) => (position, None),
            Arrival::Again(position) => {
                self.tell_delivered(Kind::Duplicate, session, txn, Some(position));
                self.counters.settled += 1;
                return Ok(());
            }
        };
        match (txn.status(), txn.db()) {
            (Status::Committed, Some((start, commit))) if start > commit => {
                let named = self.name_of(session, position, id().as_ref());
                let named = Named { start: Some(start), commit: Some(commit), ..named };
                self.tell(self.about(Kind::Broken(Axiom::TimestampOrder), named));
                self.log_floating(part, txn, position);
            }
            (Status::Committed, Some(times)) => {
                let number = self.record(part, txn, session, position, times);
                // Without sequence numbers, and where session order does not count, there is nothing to do; nor is
                // there for what comes late: the order of arrival says nothing then.
                let is_late = Stamp::from(times.1) <= self.watermark;
                let joins = |seq: &Option<u64>| seq.is_some() || self.settings.level.session && !is_late;
                if let Some(seq) = seq.filter(joins) {
                    let (member, patience) = (self.member(number), self.newest);
                    self.join_session(session, seq, Some(member), patience);
                }
                return self.admit(part, txn, number);
            }
            (Status::Committed, None) => {
                let named = self.name_of(session, position, id().as_ref());
                self.tell(self.about(Kind::Timeless, named));
            }
            (Status::Unknown, _) => self.log_floating(part, txn, position),
            (Status::Aborted, _) => {}
        }
        if let Some(seq) = seq {
            // It has no timestamp that the watermark could pass: a later one of its session must.
            self.join_session(session, seq, None, Stamp::MAX);
        }
        self.counters.settled += 1;
        Ok(())
    }

    /// A transaction that has been here before. Without a number it has no place; it is named by its id, or by its session.
    fn tell_delivered(&mut self, kind: Kind, session: u32, txn: Transaction<'_>, seq: Option<u64>) {
        let id = txn.explicit_id().map(|id| id.to_owned());
        let named = match (id, seq) {
            (None, None) => {
                let session = self.txns.sessions[session as usize].clone();
                Named {
                    name: format!("a transaction of session {session}"),
                    session,
                    start: None,
                    commit: None,
                }
            }
            (id, seq) => self.name_of(session, seq.unwrap_or(0), id.as_ref()),
        };
        let (start, commit) = txn.db().unzip();
        self.tell(self.about(kind, Named { start, commit, ..named }));
    }

    /// A record of a committed transaction, held once.
    fn record(
        &mut self,
        part: &History,
        txn: Transaction<'_>,
        session: u32,
        position: u64,
        (start, commit): (Timestamp, Timestamp),
    ) -> TxnNo {
        let reads_only = super::super::order::is_read_only(part, txn.id());
        let number = self.txns.insert(Txn {
            start: start.into(),
            commit: commit.into(),
            session,
            position,
            arrival: self.counters.received,
            id: txn.explicit_id().map(|id| Box::new(id.to_owned())),
            class: if reads_only { Class::Reader } else { Class::Writer },
            holders: 1,
            queues: 0,
            touched: Vec::new(),
        });
        self.clock_in(commit.into(), |online| online.txns.named(number));
        number
    }

    fn admit(&mut self, part: &History, txn: Transaction<'_>, number: TxnNo) -> io::Result<()> {
        let record = self.txns.get(number);
        let is_late = record.commit <= self.watermark;
        self.log.known(part, txn, record.position, is_late, self.tick());
        if is_late {
            self.tell(self.about(Kind::Late, self.txns.named(number)));
        }
        match self.take_apart(part, txn)? {
            Ok(()) => {
                self.tell_broken(part, number);
                match self.posts.is_some() {
                    true => self.post_points(part, number, is_late)?,
                    false => self.admit_points(number, is_late)?,
                }
            }
            Err(NeedsProgram) => {
                let program = self.program(part, txn, number)?;
                match self.posts.is_some() {
                    true => self.post_program(part, number, &program, is_late)?,
                    false => self.admit_program(number, program, is_late)?,
                }
            }
        }
        if self.txns.get(number).queues == 0 {
            self.counters.settled += 1;
        }
        self.txns.release(number);
        Ok(())
    }

    /// Step 2, for transactions that only read and write single keys: fills `scratch.pieces`.
    fn take_apart(&mut self, part: &History, txn: Transaction<'_>) -> io::Result<Result<(), NeedsProgram>> {
        let rules = Rules { values: Interned { values: part.values() }, ryow: self.settings.ryow };
        let datum = |id: &ValueId| Datum::of(part.values(), *id);
        self.scratch.broken.clear();
        self.scratch.deeds.begin();
        for (place, op) in txn.op_ids().enumerate() {
            let Some(point) = part.point(op) else { return Ok(Err(NeedsProgram)) };
            match self.scratch.deeds.add(place as u32, point, rules) {
                Read::Right | Read::First => {}
                Read::Wrong(expected) => {
                    let expected = Datum::of_content(part.values(), &expected).unwrap_or_default();
                    let (op, key, seen) = (place as u32, point.key, datum(&point.value));
                    self.scratch.broken.push(Broken { op, key, expected, seen });
                }
                Read::Open => return Ok(Err(NeedsProgram)),
            }
        }
        let deeds = std::mem::take(&mut self.scratch.deeds);
        self.scratch.pieces.clear();
        for deed in deeds.all() {
            let key = self.key_of(part, deed.key)?;
            let look = deed.look.map(|(seen, op)| (datum(&seen), op));
            self.scratch.pieces.push(Piece { key, look, own: Own::of(deed.wrote(), datum) });
        }
        self.scratch.deeds = deeds;
        Ok(Ok(()))
    }

    fn tell_broken(&mut self, part: &History, txn: TxnNo) {
        for broken in std::mem::take(&mut self.scratch.broken) {
            let mut found = self.about(Kind::Broken(Axiom::Internal), self.txns.named(txn));
            found.op = Some(broken.op);
            found.key = Some(part.keys().get(broken.key).to_owned());
            found.expected = Some(broken.expected);
            found.seen = Some(broken.seen);
            self.tell(found);
        }
    }

    /// Steps 3 and 4 for single keys.
    pub(super) fn admit_points(&mut self, txn: TxnNo, is_late: bool) -> io::Result<()> {
        let look = self.txns.look_moment(txn, self.serial);
        let is_open = look.stamp > self.watermark;
        let mut pieces = std::mem::take(&mut self.scratch.pieces);
        let mut touched = Vec::with_capacity(pieces.len());
        let mut judged = Vec::new();
        let (mut reads, mut writes) = (false, false);
        for Piece { key, look: seen, own } in pieces.drain(..) {
            let mut touch = Touch { key, read: false, wrote: false };
            if let Some((seen, op)) = seen.filter(|_| !is_late) {
                if is_open {
                    self.open_read(key, look, op, seen);
                    touch.read = true;
                } else {
                    judged.extend(self.judge_now(key, look, op, &seen)?);
                }
            }
            if own != Own::Nothing {
                touch.wrote = self.write(key, txn, own) && !is_late;
            }
            if touch.read || touch.wrote {
                self.keys.get_mut(key).pins += 1;
                touched.push(touch);
            }
            reads |= touch.read;
            writes |= touch.wrote;
        }
        self.scratch.pieces = pieces;
        self.tell_in_order(judged);
        self.txns.get_mut(txn).touched = touched;
        self.wait(txn, look, reads, writes);
        Ok(())
    }

    /// Queues a transaction for the verdicts that are open.
    fn wait(&mut self, txn: TxnNo, look: Moment, reads: bool, writes: bool) {
        self.txns.get_mut(txn).queues = u8::from(reads) + u8::from(writes);
        if reads {
            self.txns.hold(txn);
            enqueue(&mut self.looks, look.stamp, txn);
            self.waiting += 1;
        }
        if writes {
            self.txns.hold(txn);
            enqueue(&mut self.commits, self.txns.get(txn).commit, txn);
            self.waiting += 1;
        }
    }

    fn open_read(&mut self, key: KeyNo, look: Moment, op: u32, seen: Datum) {
        let is_right = self.keys.get(key).shows(&seen, look, &self.txns);
        self.counters.provisional += u64::from(!is_right);
        self.open_results += 1;
        self.held_bytes += seen.heap_bytes();
        let reader = Reader { at: look.stamp, after: look.after, is_right, op, txn: look.txn, seen };
        let txns = &self.txns;
        let readers = self.keys.get_mut(key).readers.get_or_insert_default();
        let place = readers.find(look.stamp, |other| txns.compare(other.moment(), look).is_lt());
        readers.insert(place, reader);
    }

    /// A look at or before the watermark: what it had to see is certain.
    fn judge_now(&mut self, key: KeyNo, look: Moment, op: u32, seen: &Datum) -> io::Result<Option<Found>> {
        let mut wrong = None;
        let Some((expected, writer)) = self.certain_value(key, look)? else {
            return Ok(Some(self.unjudged(key, look.txn, op, seen)));
        };
        if !expected.is_known() {
            self.txns.release(writer);
            return Ok(Some(self.unjudged(key, look.txn, op, seen)));
        }
        if expected != *seen {
            let mut found = self.about(Kind::Broken(Axiom::External), self.txns.named(look.txn));
            found.op = Some(op);
            found.key = Some(self.keys.get(key).name.clone());
            found.other = (writer != NOBODY).then(|| self.txns.named(writer));
            found.expected = Some(expected);
            found.seen = Some(seen.clone());
            wrong = Some(found);
        }
        self.txns.release(writer);
        Ok(wrong)
    }

    pub(super) fn unjudged(&self, key: KeyNo, txn: TxnNo, op: u32, seen: &Datum) -> Found {
        let mut found = self.about(Kind::Unjudged, self.txns.named(txn));
        found.op = Some(op);
        found.key = Some(self.keys.get(key).name.clone());
        found.seen = Some(seen.clone());
        found
    }

    /// What a look at or before the watermark sees, with the writer held once; `None` if that lies before
    /// the horizon.
    pub(super) fn certain_value(&mut self, key: KeyNo, look: Moment) -> io::Result<Option<(Datum, TxnNo)>> {
        match self.keys.get(key).seen(look, &self.txns) {
            Seen::Version(value, writer) => {
                self.txns.hold(writer);
                Ok(Some((value, writer)))
            }
            Seen::Gone if look.stamp < self.horizon => Ok(None),
            Seen::Gone => match self.fetch(key, look.stamp)? {
                Some(version) => Ok(Some((version.value, version.txn))),
                None => Ok(Some((Datum::Absent, NOBODY))),
            },
        }
    }

    // ---- programs ----

    /// A transaction as a program. Results that contradict themselves are told.
    fn program(&mut self, part: &History, txn: Transaction<'_>, tells: TxnNo) -> io::Result<Program> {
        let mut program = Program::default();
        let datum = |id: ValueId| Datum::of(part.values(), id);
        for (place, (_, operation)) in txn.primitives().enumerate() {
            let op = place as u32;
            let act = match operation {
                Primitive::Read { key, value, .. } => {
                    Act::Read { key: self.key_of(part, key)?, seen: datum(value) }
                }
                Primitive::Write { key, value } => {
                    Act::Write { key: self.key_of(part, key)?, value: datum(value) }
                }
                Primitive::Append { key, value } => {
                    Act::Append { key: self.key_of(part, key)?, value: datum(value) }
                }
                Primitive::Show { rows: None, .. } => continue,
                Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
                    let region = region(part, range, visited(part, reverse, to_the_end, rows));
                    self.check_shape(part, tells, op, rows, Some(reverse), Some(&region));
                    Act::Range { region, rows: self.rows(part, rows)? }
                }
                Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
                    self.check_shape(part, tells, op, rows, None, None);
                    Act::Query {
                        question: Question::of(part.values(), Test::Where(predicate)),
                        rows: self.rows(part, rows)?,
                    }
                }
                Primitive::WriteIf(write) => self.write_if(part, &write)?,
            };
            program.acts.push((op, act));
        }
        Ok(program)
    }

    fn rows(&mut self, part: &History, rows: &[Row]) -> io::Result<Rows> {
        let mut seen = Vec::with_capacity(rows.len());
        for row in rows {
            seen.push((self.key_of(part, row.key)?, Datum::of(part.values(), row.value)));
        }
        Ok(Rows::new(seen))
    }

    fn write_if(&mut self, part: &History, write: &WriteIf<'_>) -> io::Result<Act> {
        let mut reported = None;
        if let Some(keys) = write.keys {
            let mut numbers = Vec::with_capacity(keys.len());
            for &key in keys {
                numbers.push(self.key_of(part, key)?);
            }
            reported = Some(numbers);
        }
        let only = write.key.map(|key| self.key_of(part, key)).transpose()?;
        let question = Question::of(part.values(), write.test);
        let set = Datum::of(part.values(), write.set);
        Ok(Act::WriteIf { only, question, set, count: write.count, keys: reported })
    }

    /// Rows that come twice or out of order, or that the operation does not speak of: wrong whatever the
    /// snapshot is. `reverse` is `None` where rows have no order.
    fn check_shape(
        &mut self,
        part: &History,
        txn: TxnNo,
        op: u32,
        rows: &[Row],
        reverse: Option<bool>,
        region: Option<&Region>,
    ) {
        let name = |key: KeyId| part.keys().get(key);
        let mut wrong: Vec<(Axiom, KeyId, ValueId)> = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            let again = rows[..place].iter().any(|other| other.key == row.key);
            let astray = reverse.zip(place.checked_sub(1)).is_some_and(|(reverse, before)| {
                let before = name(rows[before].key);
                if reverse { before < name(row.key) } else { before > name(row.key) }
            });
            if again || astray {
                wrong.push((Axiom::Internal, row.key, row.value));
            }
        }
        if let Some(region) = region {
            let last: BTreeMap<KeyId, ValueId> = rows.iter().map(|row| (row.key, row.value)).collect();
            let outside = last.iter().filter(|(key, _)| !region.contains(&name(**key).to_owned()));
            wrong.extend(outside.map(|(&key, &value)| (Axiom::External, key, value)));
        }
        for (axiom, key, value) in wrong {
            let mut found = self.about(Kind::Broken(axiom), self.txns.named(txn));
            found.op = Some(op);
            found.key = Some(name(key).to_owned());
            found.expected = Some(Datum::Absent);
            found.seen = Some(Datum::of(part.values(), value));
            self.tell(found);
        }
    }

    /// Steps 3 and 4 for programs.
    pub(super) fn admit_program(&mut self, txn: TxnNo, program: Program, is_late: bool) -> io::Result<()> {
        let look = self.txns.look_moment(txn, self.serial);
        let is_open = look.stamp > self.watermark;
        let keys = self.keys_of(&program)?;
        let pinned = self.pin_named(&program);
        let mut watcher = Watcher { look, program, wrong: BTreeMap::new(), matched: BTreeMap::new(), pinned };
        let mut writes = false;
        for key in keys {
            let value = if is_open {
                match self.keys.get(key).seen(look, &self.txns) {
                    Seen::Version(value, _) => value,
                    Seen::Gone => Datum::Absent,
                }
            } else {
                match self.certain_value(key, look)? {
                    Some((value, writer)) => {
                        self.txns.release(writer);
                        value
                    }
                    None => Datum::Unknown,
                }
            };
            let name = self.keys.get(key).name.clone();
            let outcome = watcher.program.run(key, &name, &value, self.settings.ryow);
            for op in &outcome.matched {
                *watcher.matched.entry(*op).or_default() += 1;
            }
            if !outcome.wrong.is_empty() && !is_late {
                self.counters.provisional += outcome.wrong.len() as u64;
                watcher.wrong.insert(key, outcome.wrong);
                self.keys.get_mut(key).pins += 1;
            }
            if outcome.own != Own::Nothing && self.write(key, txn, outcome.own) && !is_late {
                self.touch_written(txn, key);
                writes = true;
            }
        }
        self.watch.acts += watcher.program.acts.len();
        let may_write = writes || watcher.program.writes_anywhere();
        if is_open && !is_late {
            let txns = &self.txns;
            let place = self.watch.order.find(look.stamp, |other| txns.compare(*other, look).is_lt());
            self.watch.order.insert(place, look);
            self.watch.by_txn.insert(txn, watcher);
            self.wait(txn, look, true, may_write);
        } else {
            self.finish_watcher(txn, watcher, !is_late)?;
            self.wait(txn, look, false, may_write && !is_late);
        }
        Ok(())
    }

    /// The keys that a program may have something to say of.
    pub(super) fn keys_of(&mut self, program: &Program) -> io::Result<Vec<KeyNo>> {
        if !program.is_wide() {
            return Ok(program.named_keys());
        }
        for (_, act) in &program.acts {
            match act {
                Act::Range { region, .. } => self.fetch_range(region.from.as_ref(), region.to.as_ref())?,
                Act::Query { .. } | Act::WriteIf { only: None, .. } => self.fetch_range(None, None)?,
                _ => {}
            }
        }
        let named = program.named_keys();
        // By name, so that nothing depends on the order of arrival.
        let ordered = self.keys.ordered();
        let concerned = |(name, key): (&Name, &KeyNo)| {
            (named.binary_search(key).is_ok() || program.concerns(name)).then_some(*key)
        };
        Ok(ordered.iter().filter_map(concerned).collect())
    }

    pub(super) fn pin_named(&mut self, program: &Program) -> Vec<KeyNo> {
        let named = program.named_keys();
        for &key in &named {
            self.keys.get_mut(key).pins += 1;
        }
        named
    }

    /// Remembers that a transaction wrote a key, so that the conflict is judged.
    pub(super) fn touch_written(&mut self, txn: TxnNo, key: KeyNo) {
        let record = self.txns.get_mut(txn);
        if !record.touched.iter().any(|touch| touch.key == key && touch.wrote) {
            record.touched.push(Touch { key, read: false, wrote: true });
            self.keys.get_mut(key).pins += 1;
        }
    }
}

/// Puts a transaction into a queue for the watermark.
pub(super) fn enqueue(queue: &mut Timeline<(Stamp, TxnNo)>, stamp: Stamp, txn: TxnNo) {
    let place = queue.find(stamp, |(other, _)| *other <= stamp);
    queue.insert(place, (stamp, txn));
}

fn region(part: &History, range: history::Range, visited: Visited) -> Region {
    let bound = |key: Option<KeyId>| key.map(|key| part.keys().get(key).to_owned());
    Region { from: bound(range.from), to: bound(range.to), visited }
}

fn visited(part: &History, reverse: bool, exhausted: bool, rows: &[Row]) -> Visited {
    if exhausted {
        return Visited::All;
    }
    let names = rows.iter().map(|row| part.keys().get(row.key));
    let last = if reverse { names.min() } else { names.max() };
    match last.map(|name| name.to_owned()) {
        None => Visited::Nothing,
        Some(last) if reverse => Visited::DownTo(last),
        Some(last) => Visited::UpTo(last),
    }
}

/// The field `seq` of a transaction's extra fields, a JSON object.
fn sequence_number(extra: Option<&str>) -> Option<u64> {
    let text = extra?;
    let mut depth = 0;
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let end = string_end(after)?;
                let (name, next) = (&after[..end], &after[end + 1..]);
                let value = next.trim_ascii_start().strip_prefix(b":");
                if let (1, b"seq", Some(value)) = (depth, name, value) {
                    let value = value.trim_ascii_start();
                    let digits = value.iter().take_while(|byte| byte.is_ascii_digit()).count();
                    return std::str::from_utf8(&value[..digits]).ok()?.parse().ok();
                }
                rest = next;
                continue;
            }
            _ => {}
        }
        rest = after;
    }
    None
}

/// Where a JSON string ends whose opening quote has been taken off.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut escaped = false;
    bytes.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

#[cfg(test)]
mod tests {
    use super::sequence_number;

    #[test]
    fn sequence_numbers_are_found_at_the_top() {
        assert_eq!(sequence_number(Some(r#"{"seq":7}"#)), Some(7));
        assert_eq!(sequence_number(Some(r#"{"a":{"seq":1},"b":"\"seq\":2","seq" : 12 }"#)), Some(12));
        assert_eq!(sequence_number(Some(r#"{"a":["seq",3]}"#)), None);
        assert_eq!(sequence_number(Some(r#"{"seq":"x"}"#)), None);
        assert_eq!(sequence_number(None), None);
    }
}
