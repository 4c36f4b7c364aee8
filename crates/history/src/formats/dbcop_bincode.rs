//! dbcop's binary histories (`history.bincode`), as dbcop wrote them in 2019 and as PolySI, VeriStrong and AWDIT
//! read them.
//!
//! # Layout
//! bincode 1 with default options: integers little-endian of fixed width, a string or vector is a `u64` length and
//! its parts.
//! ```text
//! u64 id, u64 n_node, u64 n_variable, u64 n_transaction, u64 n_event      what was asked for, not totals
//! str info, str start, str end                                            RFC 3339 times
//! u64 sessions; each: u64 transactions; each: u64 events; each 18 bytes:  u8 write, u64 key, u64 value, u8 success
//!                                             u8 success, after its events
//! ```
//! Nothing follows.
//!
//! # Meaning
//! Every key starts at 0. A transaction without success is aborted. An event without success is dropped, as dbcop
//! does; the transaction then carries `{"failed_operations": n}` as `ctx`, since servers that failed an operation
//! may have rolled all of it back and still answered the commit.
//!
//! # Cost
//! One pass, no allocation by any length the file claims: a length is first compared with the bytes that are left.

use super::dbcop_header::Header;
use super::plain::{Content, Plain, Room, Start, unsigned_name};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History, Id, KeyId, Lock, NameRef, Status, ValueId};
use std::io;

const EVENT_LEN: usize = 18;

/// Recognises the header by its two times.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let is_time = |text: &str| text.contains('T') && text.starts_with(|ch: char| ch.is_ascii_digit());
    match (Input { bytes: probe.head, at: 0 }).header() {
        Ok(header) if is_time(&header.start) && is_time(&header.end) => Likeness::Certain,
        _ => Likeness::No,
    }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut input = Input { bytes, at: 0 };
    let header = input.header()?;
    builder.set_header_extra(&header.native());
    let mut failing = 0;
    builder.reserve_operations(bytes.len() / EVENT_LEN);
    let sessions = input.count(8, "sessions")?;
    for number in 0..sessions {
        let session = builder.session(NameRef::Int(number as i64 + 1));
        let transactions = input.count(9, "transactions")?;
        for _ in 0..transactions {
            builder.begin(session);
            let place = input.at;
            let failed = input.events(builder)?;
            if failed > 0 {
                builder.set_ctx(&failed_operations(failed));
            }
            if input.flag("the transaction's success")? {
                failing += u64::from(failed > 0);
            } else {
                builder.set_status(Status::Aborted);
            }
            builder.end().map_err(|error| Fault::new(place, error.to_string(), "a smaller history"))?;
        }
    }
    for key in 0..builder.key_count() {
        builder.initial(KeyId::new(key), ValueId::ZERO);
    }
    if input.at != bytes.len() {
        return Err(Fault::new(input.at, "bytes after the last session", "the end of the file"));
    }
    note_failing(failing, warnings);
    Ok(())
}

/// The `ctx` of a transaction with operations that failed.
pub(super) fn failed_operations(count: u64) -> String {
    format!("{{\"failed_operations\":{count}}}")
}

/// Says that committed transactions hold operations that failed: a violation among them may be none.
pub(super) fn note_failing(transactions: u64, warnings: &mut Warnings) {
    if transactions > 0 {
        warnings.note(format!(
            "{transactions} committed transactions hold operations that failed, which are left out; the database may \
             have rolled such a transaction back though its commit was answered"
        ));
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, len: usize, what: &str) -> Result<&'a [u8], Fault> {
        let piece = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let piece = piece.ok_or_else(|| {
            Fault::new(
                self.bytes.len(),
                format!("the file ends inside {what}"),
                "the rest: it may have been cut off",
            )
        })?;
        self.at += len;
        Ok(piece)
    }

    fn u64(&mut self, what: &str) -> Result<u64, Fault> {
        let piece = self.take(8, what)?;
        Ok(u64::from_le_bytes(piece.try_into().expect("eight bytes were taken")))
    }

    /// A number of things of at least `len_min` bytes each, which must fit what is left of the file.
    fn count(&mut self, len_min: usize, what: &str) -> Result<usize, Fault> {
        let place = self.at;
        let count = self.u64(what)?;
        let room = (self.bytes.len() - self.at) / len_min;
        usize::try_from(count).ok().filter(|&count| count <= room).ok_or_else(|| {
            Fault::new(
                place,
                format!("{count} {what} are announced, but the bytes that are left hold {room} at most"),
                "a dbcop history that is complete",
            )
        })
    }

    fn flag(&mut self, what: &str) -> Result<bool, Fault> {
        match self.take(1, what)?[0] {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(Fault::new(self.at - 1, format!("{other} for {what}"), "0 or 1")),
        }
    }

    fn str(&mut self, what: &str) -> Result<String, Fault> {
        let len = self.count(1, "characters")?;
        let place = self.at;
        let bytes = self.take(len, what)?;
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
            Fault::new(place + error.valid_up_to(), format!("{what} is not UTF-8"), "a dbcop header")
        })
    }

    fn header(&mut self) -> Result<Header, Fault> {
        let mut parameters = [0; 5];
        for parameter in &mut parameters {
            *parameter = self.u64("the header")?;
        }
        Ok(Header { parameters, info: self.str("info")?, start: self.str("start")?, end: self.str("end")? })
    }

    /// The events of one transaction; how many of them failed.
    fn events(&mut self, builder: &mut Builder) -> Result<u64, Fault> {
        let count = self.count(EVENT_LEN, "events")?;
        let events = self.take(count * EVENT_LEN, "events")?;
        let mut failed = 0;
        for (index, event) in events.chunks_exact(EVENT_LEN).enumerate() {
            let [write, middle @ .., success] = event else { continue };
            let (key, value) = middle.split_at(8);
            let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
            if *write > 1 || *success > 1 {
                let place = self.at - events.len() + index * EVENT_LEN;
                return Err(Fault::new(
                    if *write > 1 { place } else { place + EVENT_LEN - 1 },
                    format!("{} for a flag of an event", if *write > 1 { write } else { success }),
                    "0 or 1",
                ));
            }
            if *success == 0 {
                failed += 1;
                continue;
            }
            let key = number(key);
            let key = match i64::try_from(key) {
                Ok(key) => builder.key(NameRef::Int(key)),
                Err(_) => builder.key(unsigned_name(key, &mut String::new())),
            };
            let value = builder.uint(number(value));
            if *write == 1 {
                builder.write(key, value);
            } else {
                builder.read(key, value, Lock::None);
            }
        }
        Ok(failed)
    }
}

/// Writes a history of reads and writes of unsigned integers.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let room = Room {
        format: Format::DbcopBincode,
        aborted: true,
        unknown: false,
        appends: false,
        start: Start::All(ValueId::ZERO),
    };
    let content = Content::new(history, room)?;
    let mut bytes = Vec::new();
    let header = Header::of(history);
    for parameter in header.parameters {
        bytes.extend(parameter.to_le_bytes());
    }
    for text in [&header.info, &header.start, &header.end] {
        bytes.extend((text.len() as u64).to_le_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes.extend((history.sessions().len() as u64).to_le_bytes());
    for session in history.sessions().ids() {
        let transactions = history.of_session(session);
        bytes.extend((transactions.len() as u64).to_le_bytes());
        for &txn in transactions {
            let txn = history.transaction(txn);
            let count_place = bytes.len();
            bytes.extend([0; 8]);
            for op in content.operations(txn) {
                let (write, key, value) = match op? {
                    Plain::Read(key, value) => (0, key, value),
                    Plain::Write(key, value) | Plain::Append(key, value) => (1, key, value),
                };
                bytes.push(write);
                bytes.extend(content.unsigned_key(txn, key)?.to_le_bytes());
                bytes.extend(content.unsigned_value(txn, value)?.to_le_bytes());
                bytes.push(1);
            }
            let count = (bytes.len() - count_place - 8) / EVENT_LEN;
            bytes[count_place..count_place + 8].copy_from_slice(&(count as u64).to_le_bytes());
            bytes.push(u8::from(txn.is_committed()));
            if bytes.len() > 1 << 20 {
                out.write_all(&bytes)?;
                bytes.clear();
            }
        }
    }
    out.write_all(&bytes)?;
    Ok(())
}
