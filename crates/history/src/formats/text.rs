//! The text format of PolySI, Plume and IsoVista: one operation a line, `r(key,value,session,transaction)`.
//!
//! # Meaning
//! Integers only. Transaction ids are unique in the file; a session's order is the order in which its
//! transactions first appear, and the lines of a transaction need not be adjacent. Transaction -1 marks an
//! operation of some aborted transaction: its writes are kept, those of a session up to its next transaction as
//! one aborted transaction, its reads are not (Plume and AWDIT keep only writes, too).
//!
//! Every key starts at 0, except those that an explicit first transaction sets to 0: IsoVista's bug histories
//! begin with `w(k,0,0,0)` for all keys, and a key that is created that way was absent before.
//!
//! # Steps
//! Lines are parsed into 16 bytes each, with the number of their transaction; a counting sort brings the lines of
//! a transaction together; transactions are built in the order in which they first appeared.

use super::plain::{Content, Plain, Room, Start, session_numbers};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History, Id, KeyId, Lock, NameRef, SessionId, Status, Transaction, ValueId};
use rustc_hash::FxHashMap;
use std::io;

const EXPECTED: &str = "r(key,value,session,transaction) or w(key,value,session,transaction), all integers";
const ABORTED: i64 = -1;

/// Recognises a first line of the form.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let Some(line) = probe.text().lines().find(|line| !line.trim().is_empty()) else { return Likeness::No };
    if parse(line.trim().as_bytes()).is_ok() { Likeness::Certain } else { Likeness::No }
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Line {
    is_write: bool,
    key: i64,
    value: i64,
    session: i64,
    transaction: i64,
}

/// An operation and the transaction it belongs to.
#[derive(Clone, Copy, Debug)]
struct Operation {
    is_write: bool,
    key: KeyId,
    value: ValueId,
    transaction: u32,
}

#[derive(Clone, Copy, Debug)]
struct Gathered {
    session: SessionId,
    /// The id in the file.
    id: i64,
    operations: u32,
    /// Where its first line is.
    offset: usize,
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut gathered = Gathering::default();
    for (offset, line) in lines(bytes) {
        let added = parse(line)
            .map_err(|(at, problem)| Fault::new(offset + at, problem, EXPECTED))
            .and_then(|line| gathered.add(offset, line, builder));
        if let Err(fault) = added {
            warnings.refuse(fault)?;
        }
    }
    note_open_end(bytes, warnings);
    gathered.build(builder)
}

/// These formats have no sign for the end of the last transaction: a file that was cut off looks like a shorter one. A line
/// without its end is the only hint.
pub(super) fn note_open_end(bytes: &[u8], warnings: &mut Warnings) {
    if bytes.last().is_some_and(|&byte| byte != b'\n') {
        warnings.note(
            "the last line has no line feed: if the file was cut off, the last transaction is incomplete",
        );
    }
}

/// The lines that hold something, each with its offset, without white space around it.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut offset = 0;
    bytes.split(|&byte| byte == b'\n').filter_map(move |line| {
        let start = offset + (line.len() - line.trim_ascii_start().len());
        offset += line.len() + 1;
        let line = line.trim_ascii();
        (!line.is_empty()).then_some((start, line))
    })
}

/// Parses a line, or says at which of its bytes what is wrong.
fn parse(line: &[u8]) -> Result<Line, (usize, String)> {
    let is_write = match line.first() {
        Some(b'r') => false,
        Some(b'w') => true,
        _ => return Err((0, "a line that is not an operation".into())),
    };
    if line.get(1) != Some(&b'(') {
        return Err((1.min(line.len()), "no `(` after the kind of operation".into()));
    }
    let mut at = 2;
    let mut integers = [0; 4];
    for (index, integer) in integers.iter_mut().enumerate() {
        while line.get(at) == Some(&b' ') {
            at += 1;
        }
        *integer = take_integer(line, &mut at).map_err(|problem| (at, problem))?;
        while line.get(at) == Some(&b' ') {
            at += 1;
        }
        let close = if index == 3 { b')' } else { b',' };
        if line.get(at) != Some(&close) {
            return Err((at, format!("no `{}` here", char::from(close))));
        }
        at += 1;
    }
    if at != line.len() {
        return Err((at, "something after the closing bracket".into()));
    }
    let [key, value, session, transaction] = integers;
    Ok(Line { is_write, key, value, session, transaction })
}

/// A decimal integer at a place, which moves behind it.
pub(super) fn take_integer(line: &[u8], at: &mut usize) -> Result<i64, String> {
    let start = *at;
    let mut end = start + usize::from(line.get(start) == Some(&b'-'));
    let digits = end;
    while line.get(end).is_some_and(u8::is_ascii_digit) {
        end += 1;
    }
    if end == digits {
        return Err("no integer here".into());
    }
    let text = std::str::from_utf8(&line[start..end]).expect("digits are ASCII");
    let value = text.parse().map_err(|_| format!("{text} does not fit 64 bits"))?;
    *at = end;
    Ok(value)
}

/// The lines of a file, with their transactions numbered as they appear.
#[derive(Debug, Default)]
struct Gathering {
    operations: Vec<Operation>,
    transactions: Vec<Gathered>,
    numbers: FxHashMap<i64, u32>,
    /// For every session whose last transaction is an aborted one: that transaction's number.
    aborted: FxHashMap<SessionId, u32>,
}

impl Gathering {
    fn add(&mut self, offset: usize, line: Line, builder: &mut Builder) -> Result<(), Fault> {
        builder.worked(1).map_err(|error| Fault::new(offset, error.to_string(), "more time"))?;
        if line.transaction == ABORTED && !line.is_write {
            return Ok(());
        }
        let session = builder.session(NameRef::Int(line.session));
        let next = self.transactions.len() as u32;
        let number = if line.transaction == ABORTED {
            *self.aborted.entry(session).or_insert(next)
        } else {
            *self.numbers.entry(line.transaction).or_insert(next)
        };
        if number == next {
            if next == u32::MAX - 1 {
                return Err(Fault::new(offset, "more than four billion transactions", "a smaller history"));
            }
            if line.transaction != ABORTED {
                self.aborted.remove(&session);
            }
            self.transactions.push(Gathered { session, id: line.transaction, operations: 0, offset });
        }
        let transaction = &mut self.transactions[number as usize];
        if transaction.session != session {
            return Err(Fault::new(
                offset,
                format!(
                    "transaction {} in session {}, after lines in another session",
                    line.transaction, line.session
                ),
                "transaction ids that are unique in the file",
            ));
        }
        transaction.operations += 1;
        let (key, value) = (builder.key(NameRef::Int(line.key)), builder.int(line.value));
        self.operations.push(Operation { is_write: line.is_write, key, value, transaction: number });
        Ok(())
    }

    fn build(self, builder: &mut Builder) -> Result<(), Fault> {
        // 1. A counting sort by transaction.
        let mut starts = Vec::with_capacity(self.transactions.len() + 1);
        let mut start = 0;
        for transaction in &self.transactions {
            starts.push(start);
            start += transaction.operations as usize;
        }
        let mut order = vec![0u32; self.operations.len()];
        let mut next = starts.clone();
        for (index, operation) in self.operations.iter().enumerate() {
            let place = &mut next[operation.transaction as usize];
            order[*place] = index as u32;
            *place += 1;
        }
        starts.push(start);
        // 2. Initial values.
        let zero = builder.int(0);
        let mut created = vec![false; builder.key_count()];
        if let Some(first) = self.transactions.first().filter(|first| first.id == 0) {
            let operations =
                || order[..first.operations as usize].iter().map(|&index| self.operations[index as usize]);
            let is_session_0 = builder.session(NameRef::Int(0)) == first.session;
            if is_session_0 && operations().all(|it| it.is_write && it.value == zero) {
                operations().for_each(|it| created[it.key.index()] = true);
            }
        }
        for (key, _) in created.iter().enumerate().filter(|&(_, &created)| !created) {
            builder.initial(KeyId::new(key), zero);
        }
        // 3. The transactions.
        for (number, transaction) in self.transactions.iter().enumerate() {
            let refused =
                |error: crate::BuildError| Fault::new(transaction.offset, error.to_string(), EXPECTED);
            builder.begin(transaction.session);
            if transaction.id == ABORTED {
                builder.set_status(Status::Aborted);
            } else {
                builder.set_id(NameRef::Int(transaction.id)).map_err(refused)?;
            }
            for &index in &order[starts[number]..starts[number + 1]] {
                let operation = self.operations[index as usize];
                if operation.is_write {
                    builder.write(operation.key, operation.value);
                } else {
                    builder.read(operation.key, operation.value, Lock::None);
                }
            }
            builder.end().map_err(refused)?;
        }
        Ok(())
    }
}

/// Writes a history of reads and writes of integers; of aborted transactions only the writes.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let start = Start::All(ValueId::ZERO);
    let room = Room { format: Format::Text, aborted: true, unknown: false, appends: false, start };
    let mut content = Content::new(history, room)?;
    let sessions = session_numbers(history);
    let creator = creator(history, &sessions);
    for key in creator.into_iter().flat_map(|txn| txn.ops()).filter_map(|(_, op)| op.key()) {
        content.start_absent(key);
    }
    let ids = transaction_ids(history, creator);
    let others = history.transactions().filter(|txn| creator.is_none_or(|creator| creator.id() != txn.id()));
    for txn in creator.into_iter().chain(others) {
        let session = sessions[txn.session().index()];
        let aborted = txn.status() == Status::Aborted;
        let id = if aborted { ABORTED } else { ids[txn.id().index()] };
        for op in content.operations(txn) {
            let (kind, key, value) = match op? {
                Plain::Read(..) if aborted => continue,
                Plain::Read(key, value) => ('r', key, value),
                Plain::Write(key, value) | Plain::Append(key, value) => ('w', key, value),
            };
            let (key, value) = (content.integer_key(txn, key)?, content.integer_value(txn, value)?);
            writeln!(out, "{kind}({key},{value},{session},{id})")?;
        }
    }
    Ok(())
}

/// The transaction that readers take for the one that creates its keys, if the history has it: number 0, first of
/// session 0, that only writes zeros, and to keys that start absent.
fn creator<'h>(history: &'h History, sessions: &[u64]) -> Option<Transaction<'h>> {
    let creates = |op: crate::Operation<'_>| {
        let crate::Operation::Write { key, value: ValueId::ZERO } = op else { return false };
        history.initial_value(key) == ValueId::ABSENT
    };
    history.transactions().find(|txn| {
        txn.explicit_id() == Some(NameRef::Int(0))
            && sessions[txn.session().index()] == 0
            && txn.position() == 0
            && txn.is_committed()
            && txn.ops().all(|(_, op)| creates(op))
    })
}

/// The transactions' own ids where all have one that fits, else numbers from 1 on. A transaction 0 that only writes
/// zeros must be the one that creates keys, lest it be taken for that.
fn transaction_ids(history: &History, creator: Option<Transaction<'_>>) -> Vec<i64> {
    let is_zero =
        |op: crate::Operation<'_>| matches!(op, crate::Operation::Write { value: ValueId::ZERO, .. });
    let is_taken_for_creator = |txn: Transaction<'_>| {
        creator.is_none_or(|creator| creator.id() != txn.id()) && txn.ops().all(|(_, op)| is_zero(op))
    };
    let fitting = |txn: Transaction<'_>| match txn.explicit_id() {
        _ if txn.status() == Status::Aborted => Some(ABORTED),
        Some(NameRef::Int(0)) if is_taken_for_creator(txn) => None,
        Some(NameRef::Int(id)) if id >= 0 => Some(id),
        _ => None,
    };
    let own: Option<Vec<i64>> = history.transactions().map(fitting).collect();
    own.unwrap_or_else(|| (1..=history.len() as i64).collect())
}
