//! Transactions into lines.

use super::super::json::push_string;
use super::super::{Part, WriteError};
use super::{predicate, read::looks_like_integer};
use crate::builder::initial_meanings;
use crate::{
    History, Id, KeyId, Lock, NameRef, OpId, Operation, Range, Row, Span, Status, Timestamp, Transaction,
    ValueId, ValueRef,
};
use rustc_hash::FxHashSet;
use std::io;

/// Bytes are collected up to this many before they are passed on.
const BLOCK_LEN: usize = 64 * 1024;

/// Writes a history, or a part of one.
pub fn write(history: &History, part: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let mut buffer = Vec::with_capacity(2 * BLOCK_LEN);
    if part.is_first() && !is_headless(history) {
        push_header(&mut buffer, history, part);
        buffer.push(b'\n');
    }
    for txn in history.transactions() {
        push_transaction(&mut buffer, history, txn)?;
        buffer.push(b'\n');
        if buffer.len() >= BLOCK_LEN {
            out.write_all(&buffer)?;
            buffer.clear();
        }
    }
    out.write_all(&buffer)?;
    Ok(())
}

/// The line of one transaction, without its end.
pub fn transaction_line(history: &History, txn: Transaction<'_>) -> Result<String, WriteError> {
    let mut line = Vec::new();
    push_transaction(&mut line, history, txn)?;
    Ok(text(line))
}

/// The header of a history, without its end. Files of histories that have none need no such line.
pub fn header_line(history: &History, part: Part) -> String {
    let mut line = Vec::new();
    push_header(&mut line, history, part);
    text(line)
}

/// The line of a transaction that has no timestamps, with these.
pub fn with_timestamps(line: &str, start: Timestamp, commit: Timestamp) -> String {
    let Some(rest) = line.strip_prefix('{') else { return line.to_owned() };
    let mut out = vec![b'{'];
    push_timestamps(&mut out, start, commit, false);
    out.push(b',');
    out.extend_from_slice(rest.as_bytes());
    text(out)
}

fn text(written: Vec<u8>) -> String {
    String::from_utf8(written).expect("the writer writes text")
}

fn is_headless(history: &History) -> bool {
    history.initial().is_empty() && history.level().is_none() && history.header_extra().is_none()
}

fn push_header(out: &mut Vec<u8>, history: &History, part: Part) {
    out.extend_from_slice(b"{\"history\":1");
    if !history.initial().is_empty() {
        out.extend_from_slice(b",\"initial\":");
        if names_are_clear(history, part) {
            push_initial_object(out, history);
        } else {
            push_rows(out, history, history.initial());
        }
    }
    if let Some(level) = history.level() {
        out.extend_from_slice(b",\"level\":");
        push_string(out, level);
    }
    push_fields(out, history.header_extra());
    out.push(b'}');
}

/// Whether the keys of the initial values, written as names of an object, will be read as what they are.
///
/// A part that others follow does not know what they use.
fn names_are_clear(history: &History, part: Part) -> bool {
    let names: Vec<(NameRef<'_>, String)> = history
        .initial()
        .iter()
        .map(|row| history.keys().get(row.key))
        .map(|name| (name, name.to_string()))
        .filter(|(_, text)| looks_like_integer(text))
        .collect();
    if names.is_empty() || !part.last {
        return names.is_empty();
    }
    let texts: Vec<&str> = names.iter().map(|(_, text)| text.as_str()).collect();
    let used = keys_of_operations(history);
    let meanings = initial_meanings(&texts, |name| used.contains(&name.to_owned()));
    names.iter().zip(meanings).all(|((name, _), meaning)| *name == meaning)
}

/// The keys that a reader sees before it settles what the initial names mean.
fn keys_of_operations(history: &History) -> FxHashSet<crate::Name> {
    let mut is_used = vec![false; history.keys().len()];
    let mut mark = |key: KeyId| is_used[key.index()] = true;
    for (_, op) in history.transactions().flat_map(|txn| txn.ops()) {
        match op {
            Operation::Read { key, .. }
            | Operation::Write { key, .. }
            | Operation::Delete { key }
            | Operation::Append { key, .. }
            | Operation::Cas { key, .. } => mark(key),
            Operation::Scan { range, rows } | Operation::Iterate { range, rows, .. } => {
                range.from.into_iter().chain(range.to).for_each(&mut mark);
                rows.into_iter().flatten().for_each(|row| mark(row.key));
            }
            Operation::Query { rows, .. } => rows.into_iter().flatten().for_each(|row| mark(row.key)),
            Operation::Update { keys, .. } | Operation::DeleteWhere { keys, .. } => {
                keys.into_iter().flatten().for_each(|&key| mark(key));
            }
        }
    }
    let used = history.keys().ids().filter(|key| is_used[key.index()]);
    used.map(|key| history.keys().get(key).to_owned()).collect()
}

fn push_initial_object(out: &mut Vec<u8>, history: &History) {
    out.push(b'{');
    for (index, row) in history.initial().iter().enumerate() {
        comma(out, index);
        match history.keys().get(row.key) {
            NameRef::Str(text) => push_string(out, text),
            NameRef::Int(value) => push_string(out, &value.to_string()),
        }
        out.push(b':');
        push_value(out, history, row.value);
    }
    out.push(b'}');
}

fn push_transaction(out: &mut Vec<u8>, history: &History, txn: Transaction<'_>) -> Result<(), WriteError> {
    out.extend_from_slice(b"{\"session\":");
    push_name(out, history.sessions().get(txn.session()));
    if let Some(id) = txn.explicit_id() {
        out.extend_from_slice(b",\"id\":");
        push_name(out, id);
    }
    let status = txn.status();
    if status != Status::Committed {
        out.extend_from_slice(b",\"status\":");
        push_string(out, status.name());
    }
    if let Some(span) = txn.client() {
        out.extend_from_slice(b",\"client\":");
        push_span(out, span, status != Status::Committed);
    }
    if let Some((start, commit)) = txn.db() {
        out.push(b',');
        push_timestamps(out, start, commit, status != Status::Committed);
    }
    if let Some(level) = txn.level() {
        out.extend_from_slice(b",\"level\":");
        push_string(out, level);
    }
    out.extend_from_slice(b",\"ops\":[");
    for (index, (id, op)) in txn.ops().enumerate() {
        comma(out, index);
        push_operation(out, history, id, op).map_err(|error| in_transaction(error, txn))?;
    }
    out.push(b']');
    if let Some(ctx) = txn.ctx() {
        out.extend_from_slice(b",\"ctx\":");
        push_json(out, ctx);
    }
    push_fields(out, txn.extra_fields());
    out.push(b'}');
    Ok(())
}

fn in_transaction(error: WriteError, txn: Transaction<'_>) -> WriteError {
    match error {
        WriteError::CannotHold { format, what, .. } => WriteError::cannot_hold(format, what, txn.name()),
        other => other,
    }
}

/// A clock; an end that never came is left out where a reader allows that.
fn push_span(out: &mut Vec<u8>, span: Span, may_lack_end: bool) {
    out.extend_from_slice(b"{\"begin\":");
    push_int(out, span.begin);
    if span.end != i64::MAX || !may_lack_end {
        out.extend_from_slice(b",\"end\":");
        push_int(out, span.end);
    }
    out.push(b'}');
}

fn push_timestamps(out: &mut Vec<u8>, start: Timestamp, commit: Timestamp, may_lack_commit: bool) {
    out.extend_from_slice(b"\"db\":{\"start\":");
    push_timestamp(out, start);
    let never = Timestamp { physical: i64::MAX, logical: u32::MAX };
    if commit != never || !may_lack_commit {
        out.extend_from_slice(b",\"commit\":");
        push_timestamp(out, commit);
    }
    out.push(b'}');
}

fn push_timestamp(out: &mut Vec<u8>, timestamp: Timestamp) {
    if timestamp.logical == 0 {
        return push_int(out, timestamp.physical);
    }
    out.push(b'[');
    push_int(out, timestamp.physical);
    out.push(b',');
    push_int(out, i64::from(timestamp.logical));
    out.push(b']');
}

fn push_operation(
    out: &mut Vec<u8>,
    history: &History,
    id: OpId,
    op: Operation<'_>,
) -> Result<(), WriteError> {
    out.extend_from_slice(b"{\"op\":\"");
    out.extend_from_slice(op.name().as_bytes());
    out.push(b'"');
    match op {
        Operation::Read { key, value, lock } => {
            push_key(out, history, key);
            if value.is_known() {
                field_value(out, history, "value", value);
            }
            match lock {
                Lock::None => {}
                Lock::Share => out.extend_from_slice(b",\"lock\":\"share\""),
                Lock::Update => out.extend_from_slice(b",\"lock\":\"update\""),
            }
        }
        Operation::Write { key, value } | Operation::Append { key, value } => {
            push_key(out, history, key);
            field_value(out, history, "value", value);
        }
        Operation::Delete { key } => push_key(out, history, key),
        Operation::Cas { key, expect, write, ok } => {
            push_key(out, history, key);
            field_value(out, history, "expect", expect);
            field_value(out, history, "write", write);
            match ok {
                Some(true) => out.extend_from_slice(b",\"ok\":true"),
                Some(false) => out.extend_from_slice(b",\"ok\":false"),
                None => {}
            }
        }
        Operation::Scan { range, rows } => {
            push_range(out, history, range);
            push_rows_field(out, history, rows);
        }
        Operation::Iterate { range, reverse, exhausted, rows } => {
            push_range(out, history, range);
            if reverse {
                out.extend_from_slice(b",\"reverse\":true");
            }
            push_rows_field(out, history, rows);
            if exhausted {
                out.extend_from_slice(b",\"exhausted\":true");
            }
        }
        Operation::Query { predicate, rows } => {
            out.extend_from_slice(b",\"where\":");
            predicate::write(out, history, predicate)?;
            push_rows_field(out, history, rows);
        }
        Operation::Update { predicate, set, count, keys } => {
            out.extend_from_slice(b",\"where\":");
            predicate::write(out, history, predicate)?;
            field_value(out, history, "set", set);
            push_reported(out, history, count, keys);
        }
        Operation::DeleteWhere { predicate, count, keys } => {
            out.extend_from_slice(b",\"where\":");
            predicate::write(out, history, predicate)?;
            push_reported(out, history, count, keys);
        }
    }
    if let Some(span) = history.operation_at(id) {
        out.extend_from_slice(b",\"at\":");
        push_span(out, span, true);
    }
    push_fields(out, history.operation_extra(id));
    out.push(b'}');
    Ok(())
}

fn push_key(out: &mut Vec<u8>, history: &History, key: KeyId) {
    out.extend_from_slice(b",\"key\":");
    push_name(out, history.keys().get(key));
}

fn push_range(out: &mut Vec<u8>, history: &History, range: Range) {
    for (name, bound) in [("from", range.from), ("to", range.to)] {
        if let Some(key) = bound {
            field(out, name);
            push_name(out, history.keys().get(key));
        }
    }
}

fn push_rows_field(out: &mut Vec<u8>, history: &History, rows: Option<&[Row]>) {
    if let Some(rows) = rows {
        field(out, "rows");
        push_rows(out, history, rows);
    }
}

fn push_rows(out: &mut Vec<u8>, history: &History, rows: &[Row]) {
    out.push(b'[');
    for (index, row) in rows.iter().enumerate() {
        comma(out, index);
        out.push(b'[');
        push_name(out, history.keys().get(row.key));
        out.push(b',');
        push_value(out, history, row.value);
        out.push(b']');
    }
    out.push(b']');
}

fn push_reported(out: &mut Vec<u8>, history: &History, count: Option<u64>, keys: Option<&[KeyId]>) {
    if let Some(count) = count {
        field(out, "count");
        out.extend_from_slice(count.to_string().as_bytes());
    }
    if let Some(keys) = keys {
        field(out, "keys");
        out.push(b'[');
        for (index, &key) in keys.iter().enumerate() {
            comma(out, index);
            push_name(out, history.keys().get(key));
        }
        out.push(b']');
    }
}

fn field(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

fn field_value(out: &mut Vec<u8>, history: &History, name: &str, value: ValueId) {
    field(out, name);
    push_value(out, history, value);
}

/// The fields of a JSON object, each after a comma.
fn push_fields(out: &mut Vec<u8>, object: Option<&str>) {
    let inside = object.map(str::trim).and_then(|text| text.strip_prefix('{')?.strip_suffix('}'));
    if let Some(inside) = inside.map(str::trim).filter(|inside| !inside.is_empty()) {
        out.push(b',');
        push_json(out, inside);
    }
}

/// JSON as it is, in one line: a line end in JSON is always mere space.
fn push_json(out: &mut Vec<u8>, json: &str) {
    out.extend(json.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
}

fn push_name(out: &mut Vec<u8>, name: NameRef<'_>) {
    match name {
        NameRef::Int(value) => push_int(out, value),
        NameRef::Str(text) => push_string(out, text),
    }
}

/// Appends a value.
pub(super) fn push_value(out: &mut Vec<u8>, history: &History, id: ValueId) {
    match history.values().get(id) {
        ValueRef::Null => out.extend_from_slice(b"null"),
        ValueRef::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        ValueRef::Int(value) => push_int(out, value),
        ValueRef::UInt(value) => out.extend_from_slice(value.to_string().as_bytes()),
        // With an exponent a float never looks like an integer, and the shortest form reads back as the same.
        ValueRef::Float(value) => out.extend_from_slice(format!("{value:e}").as_bytes()),
        ValueRef::Str(text) => push_string(out, text),
        ValueRef::List(elements) => {
            out.push(b'[');
            for (index, &element) in elements.iter().enumerate() {
                comma(out, index);
                push_value(out, history, element);
            }
            out.push(b']');
        }
        ValueRef::Row(cells) => {
            out.push(b'{');
            for (index, cell) in cells.iter().enumerate() {
                comma(out, index);
                match history.values().columns().get(cell.column) {
                    NameRef::Str(text) => push_string(out, text),
                    NameRef::Int(value) => push_string(out, &value.to_string()),
                }
                out.push(b':');
                push_value(out, history, cell.value);
            }
            out.push(b'}');
        }
    }
}

fn push_int(out: &mut Vec<u8>, value: i64) {
    // Two digits at a time: half the divisions.
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    while rest >= 10 {
        let two = (rest % 100) as u8;
        rest /= 100;
        start -= 2;
        digits[start] = b'0' + two / 10;
        digits[start + 1] = b'0' + two % 10;
    }
    if rest > 0 || start == digits.len() {
        start -= 1;
        digits[start] = b'0' + rest as u8;
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[start..]);
}

fn comma(out: &mut Vec<u8>, index: usize) {
    if index > 0 {
        out.push(b',');
    }
}

#[cfg(test)]
mod tests {
    use super::push_int;

    #[test]
    fn integers_are_written_as_they_are() {
        let mut values: Vec<i64> = vec![i64::MIN, i64::MAX, 0];
        let mut power = 1i64;
        for _ in 0..19 {
            values.extend([power - 1, power, power + 1, -power]);
            power = power.saturating_mul(10);
        }
        for value in values {
            let mut out = b"x".to_vec();
            push_int(&mut out, value);
            assert_eq!(String::from_utf8(out).ok(), Some(format!("x{value}")));
        }
    }
}
