//! What has arrived before: sources deliver lines again, after a lost connection or a restart.
//!
//! **What.** A line is the same as an earlier one if it has the same `seq` in its session ([`super::sessions`]); the same id;
//! or, without a `seq`, the same session and times. It is a *duplicate* if it also says the same: it is left out.
//!
//! | same                                    | and                     | then                              |
//! |-----------------------------------------|-------------------------|-----------------------------------|
//! | id                                      | all else                | duplicate, left out               |
//! | id                                      | other content           | conflict; left out at equal times |
//! | session, start and later commit, writes | the same content        | duplicate, left out               |
//! | session, start and later commit, writes | the same writes         | conflict, left out                |
//! | session, start and later commit, writes | other writes, no two ids | conflict, checked                |
//! | session and times                       | all else                | duplicate, left out               |
//!
//! A session does one transaction at a time, so two that write have the same start and the same later commit only where
//! clocks are coarse. Two that only read, or that start and commit at once, may well: their lines must be the same in all fields.
//! Two that share their times and write something else may be two transactions, so both are checked.
//!
//! **Memory.** What the watermark has not passed is known for certain; of what it has passed the last [`KEPT_MAX`] lines.
//! One that is older is late: its own results are not judged, it takes no place in its session, and what it wrote
//! counts only where that is not there already ([`super::settle`]).

use super::Online;
use super::codec::{Input, Output, invalid};
use super::stamp::Stamp;
use crate::datum::{Datum, condition_of};
use history::{History, KeyId, NameRef, Operation, Range, Row, Transaction, ValueId};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::io;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

/// So many lines that the watermark has passed are known.
const KEPT_MAX: usize = 1 << 17;
/// About how many bytes one takes.
const ENTRY_BYTES: usize = 128;

/// What makes a line the same as another.
type Mark = u128;

/// What an earlier line said.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Was {
    content: u64,
    writes: u64,
    times: u64,
    has_id: bool,
    /// When the watermark has passed this, it may be forgotten.
    until: Stamp,
}

/// What an arrival is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    First,
    Again,
    /// It is the same as one that said something else.
    Conflict {
        is_left_out: bool,
    },
}

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Delivered {
    known: FxHashMap<Mark, Was>,
    /// In the order of arrival; those that the watermark has not passed are put back.
    order: VecDeque<Mark>,
    bytes: Vec<u8>,
}

/// Of a line, what is compared.
struct Line {
    id: Option<Mark>,
    by_times: Option<Mark>,
    /// Times say who it is, whatever else it says.
    is_alone: bool,
    was: Was,
}

impl Delivered {
    pub(super) fn bytes(&self) -> usize {
        self.known.len() * ENTRY_BYTES
    }

    /// What a line is, which is known from now on.
    fn take(&mut self, line: &Line, watermark: Stamp, most: usize) -> Delivery {
        let delivery = self.compare(line);
        if delivery == Delivery::Again {
            return delivery;
        }
        for mark in [line.id, line.by_times].into_iter().flatten() {
            if self.known.insert(mark, line.was).is_none() {
                self.order.push_back(mark);
            }
        }
        // Some more than came, so that it ends.
        for _ in 0..4 {
            if self.known.len() <= most {
                break;
            }
            let Some(mark) = self.order.pop_front() else { break };
            match self.known.get(&mark) {
                Some(was) if was.until > watermark => self.order.push_back(mark),
                _ => drop(self.known.remove(&mark)),
            }
        }
        delivery
    }

    fn compare(&self, line: &Line) -> Delivery {
        let now = &line.was;
        let known = |mark: Option<Mark>| mark.and_then(|mark| self.known.get(&mark));
        if let Some(was) = known(line.id) {
            return match was.content == now.content {
                true => Delivery::Again,
                false => Delivery::Conflict { is_left_out: was.times == now.times },
            };
        }
        match known(line.by_times) {
            Some(was) if was.content == now.content => Delivery::Again,
            Some(was) if line.is_alone && was.writes == now.writes => {
                Delivery::Conflict { is_left_out: true }
            }
            Some(was) if line.is_alone && !(was.has_id && now.has_id) => {
                Delivery::Conflict { is_left_out: false }
            }
            _ => Delivery::First,
        }
    }

    // ---- a saved state ----

    pub(super) fn put(&self, out: &mut Output<'_>) -> io::Result<()> {
        out.list(self.order.len(), &self.order, |out, mark| {
            let was = self.known.get(mark).ok_or_else(|| invalid("what has arrived"))?;
            out.bytes(&mark.to_le_bytes())?;
            for hash in [was.content, was.writes, was.times] {
                out.bytes(&hash.to_le_bytes())?;
            }
            out.flag(was.has_id)?;
            out.stamp(was.until)
        })
    }

    pub(super) fn get(input: &mut Input<'_>) -> io::Result<Self> {
        let mut delivered = Self::default();
        let all = input.list(|input| {
            let mark = u128::from_le_bytes(input.bytes()?);
            let mut hash = || input.bytes().map(u64::from_le_bytes);
            let (content, writes, times) = (hash()?, hash()?, hash()?);
            Ok((mark, Was { content, writes, times, has_id: input.flag()?, until: input.stamp()? }))
        })?;
        for (mark, was) in all {
            delivered.known.insert(mark, was);
            delivered.order.push_back(mark);
        }
        Ok(delivered)
    }
}

impl Online {
    /// Whether a transaction has arrived before.
    pub(super) fn delivery(&mut self, part: &History, txn: Transaction<'_>, has_seq: bool) -> Delivery {
        if has_seq && txn.explicit_id().is_none() {
            return Delivery::First;
        }
        let mut bytes = std::mem::take(&mut self.delivered.bytes);
        // Writing into a vector cannot fail.
        let line = line(part, txn, has_seq, self.newest, &mut bytes).ok().flatten();
        self.delivered.bytes = bytes;
        let Some(line) = line else { return Delivery::First };
        let most = self.settings.memory_max.map_or(KEPT_MAX, |max| (max / 8 / ENTRY_BYTES).min(KEPT_MAX));
        self.delivered.take(&line, self.watermark, most)
    }
}

/// What tells a transaction with times from others, as far as lines do.
pub(super) fn sameness(part: &History, txn: Transaction<'_>) -> Option<(u64, u64)> {
    let line = line(part, txn, false, Stamp::MIN, &mut Vec::new()).ok().flatten()?;
    Some((line.was.times, line.was.content))
}

/// What is compared of a transaction; none if nothing tells it apart from others.
fn line(
    part: &History,
    txn: Transaction<'_>,
    has_seq: bool,
    newest: Stamp,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<Line>> {
    bytes.clear();
    put_name(bytes, part.sessions().get(txn.session()));
    bytes.push(txn.status() as u8);
    if let Some((start, commit)) = txn.db() {
        let mut out = Output::unsummed(bytes);
        out.stamp(start.into())?;
        out.stamp(commit.into())?;
    }
    let times_len = bytes.len();
    let same_times = xxh3_128(bytes);
    if let Some(span) = txn.client() {
        bytes.extend_from_slice(&span.begin.to_le_bytes());
        bytes.extend_from_slice(&span.end.to_le_bytes());
    }
    let has_times = bytes.len() > times_len || txn.db().is_some();
    let start = bytes.len();
    for (_, operation) in txn.ops().filter(|(_, operation)| is_write(operation)) {
        put_operation(part, operation, bytes)?;
    }
    let writes = xxh3_64(&bytes[start..]);
    let is_writer = bytes.len() > start;
    for (_, operation) in txn.ops().filter(|(_, operation)| !is_write(operation)) {
        put_operation(part, operation, bytes)?;
    }
    let content = xxh3_64(bytes);
    // What the format does not define tells lines apart that say the same.
    for more in [txn.ctx(), txn.extra_fields()] {
        bytes.extend_from_slice(more.unwrap_or_default().as_bytes());
    }
    let all = xxh3_128(bytes);
    let commits_later = txn.db().filter(|(start, commit)| txn.is_committed() && start < commit);
    let is_alone = is_writer && commits_later.is_some();
    let id = txn.explicit_id().map(|id| {
        let mut named = vec![b'i'];
        put_name(&mut named, id);
        xxh3_128(&named)
    });
    let by_times = match is_alone {
        _ if has_seq => None,
        true => Some(same_times),
        // Those that differ in their ids are two.
        false => (has_times && id.is_none()).then_some(all),
    };
    if id.is_none() && by_times.is_none() {
        return Ok(None);
    }
    let until = match txn.db() {
        Some((_, commit)) if txn.is_committed() => commit.into(),
        _ => newest,
    };
    let times = same_times as u64;
    let was = Was { content, writes, times, has_id: id.is_some(), until };
    Ok(Some(Line { id, by_times, is_alone, was }))
}

fn is_write(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::Write { .. }
            | Operation::Delete { .. }
            | Operation::Append { .. }
            | Operation::Update { .. }
            | Operation::DeleteWhere { .. }
            | Operation::Cas { .. }
    )
}

fn put_name(out: &mut Vec<u8>, name: NameRef<'_>) {
    match name {
        NameRef::Int(value) => {
            out.push(0);
            out.extend_from_slice(&value.to_le_bytes());
        }
        NameRef::Str(text) => {
            out.push(1);
            out.extend_from_slice(&(text.len() as u64).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }
}

/// An operation by names and values, the same in every part of a stream.
fn put_operation(part: &History, operation: Operation<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(operation.name().as_bytes());
    let key = |out: &mut Vec<u8>, key: KeyId| put_name(out, part.keys().get(key));
    let datum = |out: &mut Vec<u8>, value: ValueId| match value.as_inline() {
        Some(value) => {
            out.push(u8::MAX);
            out.extend_from_slice(&value.to_le_bytes());
            Ok(())
        }
        None => Output::unsummed(out).datum(&Datum::of(part.values(), value)),
    };
    let range = |out: &mut Vec<u8>, range: Range| {
        for bound in [range.from, range.to] {
            out.push(u8::from(bound.is_some()));
            bound.into_iter().for_each(|bound| key(out, bound));
        }
    };
    let rows = |out: &mut Vec<u8>, rows: Option<&[Row]>| {
        out.push(u8::from(rows.is_some()));
        out.extend_from_slice(&(rows.map_or(0, <[Row]>::len) as u64).to_le_bytes());
        rows.into_iter().flatten().try_for_each(|row| {
            key(out, row.key);
            datum(out, row.value)
        })
    };
    let condition = |out: &mut Vec<u8>, predicate| {
        out.extend_from_slice(format!("{:?}", condition_of(part.values(), predicate)).as_bytes());
    };
    let changed = |out: &mut Vec<u8>, count: Option<u64>, keys: Option<&[KeyId]>| {
        out.extend_from_slice(format!("{count:?} {:?}", keys.map(<[KeyId]>::len)).as_bytes());
        keys.into_iter().flatten().for_each(|&it| key(out, it));
    };
    match operation {
        Operation::Read { key: at, value, .. } => {
            key(out, at);
            datum(out, value)?;
        }
        Operation::Write { key: at, value } | Operation::Append { key: at, value } => {
            key(out, at);
            datum(out, value)?;
        }
        Operation::Delete { key: at } => key(out, at),
        Operation::Cas { key: at, expect, write, ok } => {
            key(out, at);
            datum(out, expect)?;
            datum(out, write)?;
            out.push(ok.map_or(2, u8::from));
        }
        Operation::Scan { range: over, rows: seen } => {
            range(out, over);
            rows(out, seen)?;
        }
        Operation::Iterate { range: over, reverse, exhausted, rows: seen } => {
            out.push(u8::from(reverse) | u8::from(exhausted) << 1);
            range(out, over);
            rows(out, seen)?;
        }
        Operation::Query { predicate, rows: seen } => {
            condition(out, predicate);
            rows(out, seen)?;
        }
        Operation::Update { predicate, set, count, keys } => {
            condition(out, predicate);
            datum(out, set)?;
            changed(out, count, keys);
        }
        Operation::DeleteWhere { predicate, count, keys } => {
            condition(out, predicate);
            changed(out, count, keys);
        }
    }
    Ok(())
}
