//! Arrival: a transaction of a history becomes readers and versions.
//!
//! **Steps.**
//! 1. Whether it has been here before ([`super::delivered`]), and its place in the session; duplicates end here.
//! 2. What it does by itself: for each key, what it first saw of the outside, and what it leaves there.
//!    Reads that contradict its own earlier operations are reported at once: nothing that arrives later can
//!    change that.
//! 3. Its looks are compared with the versions that are here, and wait in the keys' timelines.
//! 4. Its writes become versions, and later looks at those keys are compared again ([`super::settle`]).
//!
//! A transaction that does more than that (ranges, predicates, reads of what it appended to) is kept as a
//! [`Program`] instead.

use super::admit::Piece;
use super::delivered::Delivery;
use super::keys::KeyNo;
use super::program::{Act, Own, Program, Region, Rows, Visited};
use super::sessions::{Arrival, Member};
use super::stamp::Stamp;
use super::txns::{Class, Named, Txn};
use super::{Found, Kind, Online, Shards};
use crate::Axiom;
use crate::datum::{Datum, Question};
use crate::step::{Deeds, Interned, Read, Rules};
use history::{
    Area, History, Id, KeyId, Primitive, Row, SessionId, Status, Test, Timestamp, Transaction, ValueId,
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
        if let Shards::Away(away) = &mut self.shards {
            away.posts.begin(part.keys().len());
        }
        for &Row { key, value } in part.initial() {
            self.start_with(part, key, value)?;
        }
        for txn in part.transactions() {
            self.receive_one(part, txn)?;
        }
        self.log.take(part, self.newest);
        self.make_room()?;
        self.send_if_much()
    }

    fn start_with(&mut self, part: &History, key: KeyId, value: ValueId) -> io::Result<()> {
        let value = Datum::of(part.values(), value);
        let number = self.key_of(part, key)?;
        match &mut self.shards {
            Shards::Here(space) => space.begin_with(number, value),
            Shards::Away(away) => away.posts.initial(part, key, &value)?,
        }
        Ok(())
    }

    /// The key of a history's key. Its slot stays until the history has been received. Where keys live elsewhere, it is
    /// the number that the history has for it.
    fn key_of(&mut self, part: &History, key: KeyId) -> io::Result<KeyNo> {
        let Shards::Here(space) = &mut self.shards else { return Ok(key.index() as KeyNo) };
        let known = self.scratch.keys[key.index()];
        if known != UNSET {
            return Ok(known);
        }
        let number = space.key(part.keys().get(key))?;
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
                self.tell(Found::about(Kind::Broken(Axiom::TimestampOrder), named));
                self.log_floating(part, txn, position);
            }
            (Status::Committed, Some(times)) => {
                let record = self.record(part, txn, session, position, times);
                // Without sequence numbers, and where session order does not count, there is nothing to do; nor is
                // there for what comes late: the order of arrival says nothing then.
                let is_late = Stamp::from(times.1) <= self.watermark;
                let joins = |seq: &Option<u64>| seq.is_some() || self.settings.level.session && !is_late;
                if let Some(seq) = seq.filter(joins) {
                    self.join_session(session, seq, Some(Member::from(&record)), self.newest);
                }
                return self.admit(part, txn, record);
            }
            (Status::Committed, None) => {
                let named = self.name_of(session, position, id().as_ref());
                self.tell(Found::about(Kind::Timeless, named));
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
                let session = self.names[session as usize].clone();
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
        self.tell(Found::about(kind, Named { start, commit, ..named }));
    }

    /// A record of a committed transaction, held once.
    fn record(
        &mut self,
        part: &History,
        txn: Transaction<'_>,
        session: u32,
        position: u64,
        (start, commit): (Timestamp, Timestamp),
    ) -> Txn {
        let reads_only = super::super::order::is_read_only(part, txn.id());
        let record = Txn {
            start: start.into(),
            commit: commit.into(),
            session,
            position,
            arrival: self.counters.received,
            id: txn.explicit_id().map(|id| Box::new(id.to_owned())),
            class: if reads_only { Class::Reader } else { Class::Writer },
            holders: 1,
            touched: Vec::new(),
        };
        let newest = self.newest;
        self.newest = self.clock.clock_in(commit.into(), newest, || record.named(&self.names));
        record
    }

    /// What a transaction does goes to its keys.
    fn admit(&mut self, part: &History, txn: Transaction<'_>, record: Txn) -> io::Result<()> {
        let is_late = record.commit <= self.watermark;
        self.log.known(part, txn, record.position, is_late, self.tick());
        if is_late {
            self.tell(Found::about(Kind::Late, record.named(&self.names)));
        }
        let (look, commit) = (record.look(self.serial()), record.commit);
        let (reads, writes) = match self.take_apart(part, txn)? {
            Ok(()) => {
                self.tell_broken(part, &record);
                self.admit_points(part, record, is_late)?
            }
            Err(NeedsProgram) => {
                let program = self.program(part, txn, &record)?;
                let writes = program.may_write();
                self.admit_program(part, record, program)?;
                (true, writes)
            }
        };
        // The verdict on it is final when the watermark passes this.
        let last = if writes { Some(commit) } else { reads.then_some(look) };
        match last.filter(|last| !is_late && *last > self.watermark) {
            Some(last) => self.pending.insert(self.pending.find(last, |other| *other <= last), last),
            None => self.counters.settled += 1,
        }
        Ok(())
    }

    /// The pieces of a transaction that only reads and writes single keys: `scratch.pieces`. Whether it reads, and writes.
    fn admit_points(&mut self, part: &History, record: Txn, is_late: bool) -> io::Result<(bool, bool)> {
        let mut pieces = std::mem::take(&mut self.scratch.pieces);
        let reads = pieces.iter().any(|piece| piece.look.is_some());
        let writes = pieces.iter().any(|piece| piece.own != Own::Nothing);
        let tick = self.tick();
        let admitted = match &mut self.shards {
            Shards::Here(space) => space.admit_points(record, &mut pieces),
            Shards::Away(away) => away.posts.points(part, tick, &record, &pieces, is_late),
        };
        pieces.clear();
        self.scratch.pieces = pieces;
        self.tell_here();
        admitted.map(|()| (reads, writes))
    }

    fn admit_program(&mut self, part: &History, record: Txn, program: Program) -> io::Result<()> {
        let tick = self.tick();
        let admitted = match &mut self.shards {
            Shards::Here(space) => space.admit_program(record, program),
            Shards::Away(away) => away.posts.program(part, tick, &record, &program),
        };
        self.tell_here();
        admitted
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

    fn tell_broken(&mut self, part: &History, record: &Txn) {
        for broken in std::mem::take(&mut self.scratch.broken) {
            let mut found = Found::about(Kind::Broken(Axiom::Internal), record.named(&self.names));
            found.op = Some(broken.op);
            found.key = Some(part.keys().get(broken.key).to_owned());
            found.expected = Some(broken.expected);
            found.seen = Some(broken.seen);
            self.tell(found);
        }
    }

    // ---- programs ----

    /// A transaction as a program. Results that contradict themselves are reported.
    fn program(&mut self, part: &History, txn: Transaction<'_>, record: &Txn) -> io::Result<Program> {
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
                    self.check_shape(part, record, op, rows, Some(reverse), Some(&region));
                    Act::Range { region, rows: self.rows(part, rows)? }
                }
                Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
                    self.check_shape(part, record, op, rows, None, None);
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
        record: &Txn,
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
            let mut found = Found::about(Kind::Broken(axiom), record.named(&self.names));
            found.op = Some(op);
            found.key = Some(name(key).to_owned());
            found.expected = Some(Datum::Absent);
            found.seen = Some(Datum::of(part.values(), value));
            self.tell(found);
        }
    }
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
