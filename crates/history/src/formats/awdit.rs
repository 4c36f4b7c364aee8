//! AWDIT's hand-written test histories.
//!
//! `w key value` and `r key value`, one a line; a line of dashes ends a transaction, a line of equals signs a
//! session. Keys have no value before the first write: a history that reads initial values writes them in a first
//! transaction. Everything committed. Sessions are numbered from 1.

use super::plain::{Content, Plain, Room, Start};
use super::text::{lines, note_open_end, take_integer};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History, Lock, NameRef, Operation, ValueId};
use std::io;

const EXPECTED: &str = "`w key value` or `r key value` with integers, a line of dashes (next transaction) or of equals signs (next session)";

/// Recognises a first line of the form.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let mut lines = lines(probe.text().as_bytes()).map(|(_, line)| line);
    match lines.find(|line| !is_rule(line, b'-') && !is_rule(line, b'=')) {
        Some(line) if parse(line).is_ok() => Likeness::Certain,
        _ => Likeness::No,
    }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut number = 1;
    let mut open = None;
    let mut is_used = false;
    let too_many =
        |offset| move |error: crate::BuildError| Fault::new(offset, error.to_string(), "a smaller history");
    for (offset, line) in lines(bytes) {
        let ends_session = is_rule(line, b'=');
        if ends_session || is_rule(line, b'-') {
            if open.take().is_some() {
                builder.end().map_err(too_many(offset))?;
                is_used = true;
            }
            // Sessions without transactions are none.
            if ends_session {
                number += i64::from(std::mem::take(&mut is_used));
            }
            continue;
        }
        match parse(line) {
            Ok((is_write, key, value)) => {
                open.get_or_insert_with(|| {
                    let session = builder.session(NameRef::Int(number));
                    builder.begin(session);
                });
                let (key, value) = (builder.key(NameRef::Int(key)), builder.int(value));
                if is_write {
                    builder.write(key, value);
                } else {
                    builder.read(key, value, Lock::None);
                }
            }
            Err((at, problem)) => warnings.refuse(Fault::new(offset + at, problem, EXPECTED))?,
        }
    }
    note_open_end(bytes, warnings);
    if open.is_some() {
        builder.end().map_err(too_many(bytes.len()))?;
    }
    Ok(())
}

/// A line of nothing but one sign.
fn is_rule(line: &[u8], sign: u8) -> bool {
    line.iter().all(|&byte| byte == sign)
}

fn parse(line: &[u8]) -> Result<(bool, i64, i64), (usize, String)> {
    let is_write = match line {
        [b'r', b' ' | b'\t', ..] => false,
        [b'w', b' ' | b'\t', ..] => true,
        _ => return Err((0, "a line that is not an operation".into())),
    };
    let mut at = 1;
    let mut integers = [0; 2];
    for integer in &mut integers {
        while matches!(line.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        *integer = take_integer(line, &mut at).map_err(|problem| (at, problem))?;
    }
    if at != line.len() {
        return Err((at, "something after the value".into()));
    }
    Ok((is_write, integers[0], integers[1]))
}

/// Writes a committed history of reads and writes of integers that reads no initial values.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let room =
        Room { format: Format::Awdit, aborted: false, unknown: false, appends: false, start: Start::Own };
    let content = Content::new(history, room)?;
    refuse_initial_reads(&content)?;
    let mut is_first_session = true;
    for session in history.sessions().ids() {
        let mut before = if std::mem::take(&mut is_first_session) { "" } else { "=====\n" };
        for &txn in history.of_session(session) {
            let txn = history.transaction(txn);
            for op in content.operations(txn) {
                let (kind, key, value) = match op? {
                    Plain::Read(key, value) => ('r', key, value),
                    Plain::Write(key, value) | Plain::Append(key, value) => ('w', key, value),
                };
                let (key, value) = (content.integer_key(txn, key)?, content.integer_value(txn, value)?);
                writeln!(out, "{before}{kind} {key} {value}")?;
                before = "";
            }
            if before.is_empty() {
                before = "-----\n";
            }
        }
    }
    Ok(())
}

/// A read of an initial value would look like a read of something nobody wrote.
fn refuse_initial_reads(content: &Content<'_>) -> Result<(), WriteError> {
    for txn in content.history.transactions() {
        for (_, op) in txn.ops() {
            if let Operation::Read { key, value, .. } = op {
                let initial = content.history.initial_value(key);
                if value == ValueId::ABSENT || (value == initial && value.is_known()) {
                    return Err(content.no("reads of a key's value before its first write", txn));
                }
            }
        }
    }
    Ok(())
}
