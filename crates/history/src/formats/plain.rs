//! What the simple formats can hold: reads, writes and perhaps appends of single keys.
//!
//! Every writer of such a format asks [`Content`] for the operations of a transaction. It refuses what the format
//! has no word for, and settles the one thing that differs between formats though all have it: the value of a
//! key before the first write. A format has one such value for all keys (`nil`, 0, a marker); a history may have
//! another. Reads of a key's initial value are written as the format's, as long as neither of the two values is
//! ever written to that key: then both files say exactly the same. Otherwise the history is refused.
//!
//! Left out without a word, since no operation hangs on them: locks of reads, ids, levels, `ctx`, clocks and
//! timestamps where the format has no place for them, and reads whose result is not known.

use super::json::push_string;
use super::{Format, WriteError};
use crate::{History, Id, KeyId, NameRef, Operation, SessionId, Status, Transaction, ValueId, ValueRef};
use std::io::Write as _;

/// An operation that simple formats have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Read(KeyId, ValueId),
    Write(KeyId, ValueId),
    Append(KeyId, ValueId),
}

/// What a format has room for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) format: Format,
    pub(super) aborted: bool,
    pub(super) unknown: bool,
    pub(super) appends: bool,
    pub(super) start: Start,
}

/// What keys start with in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Start {
    /// All with this.
    All(ValueId),
    /// A key that is read as 0 but never set to 0 starts at 0, any other absent.
    ZeroOrAbsent,
    /// The writer looks after it.
    Own,
}

/// A history on its way into a simple format.
#[derive(Debug)]
pub(super) struct Content<'h> {
    pub(super) history: &'h History,
    room: Room,
    /// Keys to which their own or the format's initial value is written.
    start_is_written: Vec<bool>,
    /// Keys that start absent, whatever others do.
    starts_absent: Vec<bool>,
}

impl<'h> Content<'h> {
    pub(super) fn new(history: &'h History, room: Room) -> Result<Self, WriteError> {
        let mut start_is_written = vec![false; history.keys().len()];
        for txn in history.transactions() {
            match txn.status() {
                Status::Aborted if !room.aborted => {
                    return Err(WriteError::cannot_hold(room.format, "aborted transactions", txn.name()));
                }
                Status::Unknown if !room.unknown => {
                    return Err(WriteError::cannot_hold(
                        room.format,
                        "transactions whose outcome is unknown",
                        txn.name(),
                    ));
                }
                _ => {}
            }
            for (_, op) in txn.ops() {
                if let Operation::Write { key, value } = op {
                    let start = if let Start::All(start) = room.start { start } else { ValueId::ZERO };
                    start_is_written[key.index()] |= value == start || value == history.initial_value(key);
                }
            }
        }
        let starts_absent = vec![false; history.keys().len()];
        Ok(Self { history, room, start_is_written, starts_absent })
    }

    /// Says that the file will show a key to start absent.
    pub(super) fn start_absent(&mut self, key: KeyId) {
        self.starts_absent[key.index()] = true;
    }

    /// An operation as the format has it; `None` if it says nothing.
    pub(super) fn plain(&self, txn: Transaction<'h>, op: Operation<'h>) -> Result<Option<Plain>, WriteError> {
        match op {
            Operation::Read { value, .. } if !value.is_known() => Ok(None),
            Operation::Read { key, value, .. } => {
                self.read_value(txn, key, value).map(|value| Some(Plain::Read(key, value)))
            }
            Operation::Write { key, value } if value != ValueId::ABSENT => Ok(Some(Plain::Write(key, value))),
            Operation::Append { key, value } if self.room.appends => {
                self.starts_empty(txn, key).map(|()| Some(Plain::Append(key, value)))
            }
            Operation::Write { .. } | Operation::Delete { .. } => Err(self.no("deletes", txn)),
            other => Err(self.no(&format!("operations of the kind `{}`", other.name()), txn)),
        }
    }

    /// A transaction's operations as the format has them.
    pub(super) fn operations(&self, txn: Transaction<'h>) -> impl Iterator<Item = Result<Plain, WriteError>> {
        txn.ops().filter_map(move |(_, op)| self.plain(txn, op).transpose())
    }

    /// Appends build on what was there first, and lists of these formats start empty.
    fn starts_empty(&self, txn: Transaction<'h>, key: KeyId) -> Result<(), WriteError> {
        let initial = self.history.initial_value(key);
        match self.history.values().get(initial) {
            ValueRef::Null | ValueRef::List([]) => Ok(()),
            _ => {
                let (key, initial) = (self.history.keys().get(key), self.history.values().show(initial));
                let what = format!(
                    "an append to key {key}, which starts as {initial}: lists of this format start empty"
                );
                Err(self.no(&what, txn))
            }
        }
    }

    /// What a read gave, in the format's words.
    fn read_value(&self, txn: Transaction<'h>, key: KeyId, value: ValueId) -> Result<ValueId, WriteError> {
        let initial = self.history.initial_value(key);
        let is_written = self.start_is_written[key.index()];
        let (start, is_clear) = match self.room.start {
            Start::Own => return Ok(value),
            _ if self.starts_absent[key.index()] => (ValueId::ABSENT, initial == ValueId::ABSENT),
            Start::All(start) => (start, initial == start || !is_written),
            Start::ZeroOrAbsent if initial == ValueId::ZERO => (ValueId::ZERO, !is_written),
            Start::ZeroOrAbsent if initial == ValueId::ABSENT && value == ValueId::ZERO && is_written => {
                return Ok(value);
            }
            Start::ZeroOrAbsent => (ValueId::ABSENT, initial == ValueId::ABSENT || !is_written),
        };
        if value == initial && is_clear {
            return Ok(start);
        }
        let is_misread = value == start || (self.room.start == Start::ZeroOrAbsent && value == ValueId::ZERO);
        if value == initial || value == ValueId::ABSENT || is_misread {
            let show = |value| self.history.values().show(value);
            let what = format!(
                "a read of {} from key {}, which starts as {}: keys of this format start as {}, and a reader of the file \
                 would see another history",
                show(value),
                self.history.keys().get(key),
                show(initial),
                show(start),
            );
            return Err(self.no(&what, txn));
        }
        Ok(value)
    }

    /// A refusal.
    pub(super) fn no(&self, what: &str, txn: Transaction<'_>) -> WriteError {
        WriteError::cannot_hold(self.room.format, what, txn.name())
    }

    /// A key that must be an integer.
    pub(super) fn integer_key(&self, txn: Transaction<'_>, key: KeyId) -> Result<i64, WriteError> {
        match self.history.keys().get(key) {
            NameRef::Int(value) => Ok(value),
            NameRef::Str(_) => Err(self.no("keys that are not integers", txn)),
        }
    }

    /// A key that must be a non-negative integer. Keys above `i64::MAX` are kept as text by the readers.
    pub(super) fn unsigned_key(&self, txn: Transaction<'_>, key: KeyId) -> Result<u64, WriteError> {
        let number = match self.history.keys().get(key) {
            NameRef::Int(value) => u64::try_from(value).ok(),
            NameRef::Str(text) => text
                .parse::<u64>()
                .ok()
                .filter(|&value| i64::try_from(value).is_err() && value.to_string() == text),
        };
        number.ok_or_else(|| self.no("keys that are not integers from 0 up", txn))
    }

    /// A value that must be an integer.
    pub(super) fn integer_value(&self, txn: Transaction<'_>, value: ValueId) -> Result<i64, WriteError> {
        match self.history.values().get(value) {
            ValueRef::Int(value) => Ok(value),
            _ => Err(self.no("values that are not integers", txn)),
        }
    }

    /// A value that must be a non-negative integer.
    pub(super) fn unsigned_value(&self, txn: Transaction<'_>, value: ValueId) -> Result<u64, WriteError> {
        match self.history.values().get(value) {
            ValueRef::Int(value) if value >= 0 => Ok(value as u64),
            ValueRef::UInt(value) => Ok(value),
            _ => Err(self.no("values that are not integers from 0 up", txn)),
        }
    }
}

/// A number for every session: its name where all names are integers from 0 up, else its place from 1 on.
pub(super) fn session_numbers(history: &History) -> Vec<u64> {
    let names = history.sessions();
    let number = |id: SessionId| match names.get(id) {
        NameRef::Int(value) => u64::try_from(value).ok(),
        NameRef::Str(_) => None,
    };
    let named: Option<Vec<u64>> = names.ids().map(number).collect();
    named.unwrap_or_else(|| (1..=names.len() as u64).collect())
}

/// A key that a format writes as an unsigned integer: what does not fit a name's integer is kept as text.
pub(super) fn unsigned_name(value: u64, text: &mut String) -> NameRef<'_> {
    match i64::try_from(value) {
        Ok(value) => NameRef::Int(value),
        Err(_) => {
            *text = value.to_string();
            NameRef::Str(text)
        }
    }
}

/// Writes a name as JSON and EDN do.
pub(super) fn push_name(name: NameRef<'_>, out: &mut Vec<u8>) {
    match name {
        NameRef::Int(value) => _ = write!(out, "{value}"),
        NameRef::Str(text) => push_string(out, text),
    }
}

/// Writes a scalar or a list of scalars the way JSON and EDN share, with the word for absence that they do not;
/// false if it is neither.
pub(super) fn push_value(history: &History, value: ValueId, nil: &str, out: &mut Vec<u8>) -> bool {
    match history.values().get(value) {
        ValueRef::Null => out.extend(nil.bytes()),
        ValueRef::Bool(value) => _ = write!(out, "{value}"),
        ValueRef::Int(value) => _ = write!(out, "{value}"),
        ValueRef::UInt(value) => _ = write!(out, "{value}"),
        ValueRef::Float(value) if value.is_finite() => _ = write!(out, "{value:?}"),
        ValueRef::Str(text) => push_string(out, text),
        ValueRef::List(elements) => {
            out.push(b'[');
            for (index, &element) in elements.iter().enumerate() {
                out.extend(if index == 0 { "" } else { ", " }.bytes());
                let nested = matches!(history.values().get(element), ValueRef::List(_) | ValueRef::Row(_));
                if nested || !push_value(history, element, nil, out) {
                    return false;
                }
            }
            out.push(b']');
        }
        ValueRef::Float(_) | ValueRef::Row(_) => return false,
    }
    true
}
