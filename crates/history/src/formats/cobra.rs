//! Cobra's logs: a directory of `T<n>.log`, one file a session, as Cobra's clients record them and as PolySI and
//! VeriStrong read them.
//!
//! # Layout
//! Records without framing; all integers are signed, of 8 bytes, big-endian.
//! ```text
//! 'S' txnid [time]                     begin
//! 'W' writeid keyhash valuehash        a write
//! 'R' wtxnid writeid keyhash value     a read, and whose write it saw
//! 'C' txnid [time]                     commit of the transaction that is open
//! ```
//! The times are there if Cobra ran with TIME_ORDER_ON; whether they are shows after the first begin.
//!
//! # Meaning
//! A version is (key, writeid), so the value of a write is its write id. In *value-only* logs every write id is
//! the constant 0xabddefee; there the value is the value. A read of the initial version carries 0xbebeebee, of an
//! absent key 0xdeadbeef, in place of the writer; both are reads of the key before any write: absent. There is no
//! abort record: aborted transactions are not in the logs.
//!
//! Keys and values are hashes, so most operations cost two look-ups in hash tables; see `bench` for what that
//! comes to.

use super::plain::{Content, Plain, Room, Start, session_numbers};
use super::{Directory, Fault, FileFault, Format, Likeness, Probe, PutFile, Warnings, WriteError};
use crate::{Builder, History, NameRef, SessionId, Span, Transaction, TxnId, ValueId};
use rustc_hash::FxHashMap;

/// Write id of the initial version.
const INITIAL: i64 = 0xbebe_ebee;
/// Write id of a key that is not there.
const ABSENT: i64 = 0xdead_beef;
/// Write id of all writes of a value-only log.
const VALUE_ONLY: i64 = 0xabdd_efee;
/// Write ids of Cobra's garbage collection.
const COLLECTED: [i64; 2] = [0x2333_2333, 0x6666_6666];

/// Recognises a directory with a file `T<n>.log`.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let is_log = |name: &String| session_of(name).is_some();
    match probe.files {
        Some(files) if files.iter().any(is_log) => Likeness::Certain,
        _ => Likeness::No,
    }
}

/// The number in `T<n>.log`.
fn session_of(name: &str) -> Option<i64> {
    numbered(name, "T")
}

/// The number in `<prefix><n>.log`, which may also be compressed.
pub(super) fn numbered(name: &str, prefix: &str) -> Option<i64> {
    let name = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let digits = name.strip_prefix(prefix)?.strip_suffix(".log")?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

/// Reads a directory of logs.
pub fn read(files: &Directory, builder: &mut Builder, warnings: &mut Warnings) -> Result<(), FileFault> {
    let mut logs = Logs::default();
    builder.reserve_operations(usize::try_from(files.len_bytes() / 33).unwrap_or(0));
    for (file, name) in files.names().iter().enumerate() {
        let Some(number) = session_of(name) else { continue };
        warnings.in_file(file);
        let in_file = |fault| FileFault { file, fault };
        let bytes = files.bytes_of(file).map_err(in_file)?;
        logs.session(number, &bytes, builder).map_err(in_file)?;
    }
    Ok(())
}

/// Reads the sessions of a history one by one. What differs between logs must not differ within a history.
#[derive(Debug, Default)]
pub(super) struct Logs {
    /// Whether versions are named by write id or by value; known after the first write or read of one.
    by_value: Option<bool>,
    /// Whether begins and commits carry times; known after the first begin.
    timed: Option<bool>,
}

impl Logs {
    /// Reads one session's log.
    pub(super) fn session(&mut self, number: i64, bytes: &[u8], builder: &mut Builder) -> Result<(), Fault> {
        let session = builder.session(NameRef::Int(number));
        let mut log = Log { bytes, at: 0 };
        while log.at < bytes.len() {
            self.transaction(session, &mut log, builder)?;
        }
        Ok(())
    }

    fn transaction(
        &mut self,
        session: SessionId,
        log: &mut Log<'_>,
        builder: &mut Builder,
    ) -> Result<(), Fault> {
        // 1. The begin.
        let start = log.at;
        let [id] = match log.bytes[start] {
            b'S' => log.record("a begin")?,
            other => return Err(unexpected(start, other, "`S`, the begin of a transaction")),
        };
        let refused = |error: crate::BuildError| {
            Fault::new(start, error.to_string(), "logs of one run, each transaction once")
        };
        let timed =
            *self.timed.get_or_insert_with(|| !matches!(log.bytes.get(log.at), Some(b'R' | b'W' | b'C')));
        let begin = if timed { log.integer("the time of a begin")? } else { 0 };
        builder.begin(session);
        builder.set_id(NameRef::Int(id)).map_err(refused)?;
        // 2. Its operations, up to the commit.
        let mut ahead = log.at;
        loop {
            let place = log.at;
            if place >= ahead {
                ahead = log.look_ahead(self.by_value == Some(true), builder);
            }
            match log.bytes.get(place).copied() {
                Some(b'R' | b'W') => {
                    let Some(record) = log.operation(place) else {
                        let what = if log.bytes[place] == b'R' { "a read" } else { "a write" };
                        return Err(cut_off(log.bytes.len(), what));
                    };
                    let version = self.version(place, &record, builder)?;
                    let key = builder.key(NameRef::Int(record.key));
                    builder.read_or_write(record.is_read, key, version);
                    log.at = record.end;
                }
                Some(b'C') => break,
                Some(other) => return Err(unexpected(place, other, "`R`, `W` or `C`")),
                None => {
                    return Err(Fault::new(
                        place,
                        format!("the log ends inside the transaction begun at byte {start}"),
                        "its commit: the log may have been cut off",
                    ));
                }
            }
        }
        // 3. The commit.
        let place = log.at;
        let [committed] = log.record("a commit")?;
        if committed != id {
            return Err(Fault::new(
                place + 1,
                format!("a commit of transaction {committed} while {id} is open"),
                format!("the commit of {id}"),
            ));
        }
        if timed {
            let end = log.integer("the time of a commit")?;
            builder.set_client(Span { begin, end }).map_err(refused)?;
        }
        builder.end().map_err(refused)?;
        Ok(())
    }

    /// What names a version: its write id, or its value in value-only logs.
    #[inline]
    fn version(&mut self, place: usize, record: &Record, builder: &mut Builder) -> Result<ValueId, Fault> {
        let Record { is_read, write, value, .. } = *record;
        if write == INITIAL || write == ABSENT {
            if is_read {
                return Ok(ValueId::ABSENT);
            }
            return Err(Fault::new(place, "a write of the initial version", "a write id of its own"));
        }
        let by_value = write == VALUE_ONLY;
        if *self.by_value.get_or_insert(by_value) != by_value {
            return Err(Fault::new(
                place,
                "a value-only operation in a log with write ids, or the other way round",
                "logs of one kind",
            ));
        }
        Ok(builder.int(if by_value { value } else { write }))
    }
}

fn unexpected(place: usize, byte: u8, expected: &str) -> Fault {
    let problem = match byte {
        b'A' => "an abort, which Cobra's logs do not hold".to_owned(),
        0x21..=0x7e => format!("a record of kind `{}`", char::from(byte)),
        _ => format!("a record of kind 0x{byte:02x}"),
    };
    Fault::new(place, problem, expected)
}

#[derive(Debug)]
struct Log<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A read or a write.
struct Record {
    is_read: bool,
    write: i64,
    key: i64,
    value: i64,
    /// Where the next record begins.
    end: usize,
}

/// How many operations are looked at ahead: enough that their look-ups overlap, few enough that what they bring
/// into the cache is still there when they are added.
const BATCH_LEN: usize = 32;

impl Log<'_> {
    /// Asks for the memory that the next operations need; where the first one lies for which it did not.
    #[inline]
    fn look_ahead(&self, by_value: bool, builder: &Builder) -> usize {
        let mut at = self.at;
        for _ in 0..BATCH_LEN {
            let Some(b'R' | b'W') = self.bytes.get(at) else { break };
            let Some(record) = self.operation(at) else { break };
            builder.prefetch_integers(record.key, if by_value { record.value } else { record.write });
            at = record.end;
        }
        at
    }

    /// The read or write at a place, if all of it is there. Which of the two it is decides no branch.
    #[inline]
    fn operation(&self, place: usize) -> Option<Record> {
        let is_read = self.bytes[place] == b'R';
        let start = place + 1 + 8 * usize::from(is_read);
        let piece: &[u8; 24] = self.bytes.get(start..start + 24)?.try_into().ok()?;
        let integer = |at: usize| i64::from_be_bytes(piece[at..at + 8].try_into().expect("eight bytes"));
        Some(Record { is_read, write: integer(0), key: integer(8), value: integer(16), end: start + 24 })
    }

    #[inline]
    fn integer_at(&self, place: usize) -> Option<i64> {
        let bytes = self.bytes.get(place..place + 8)?;
        Some(i64::from_be_bytes(bytes.try_into().expect("eight bytes")))
    }

    /// The integers of a record, after its kind.
    #[inline]
    fn record<const N: usize>(&mut self, what: &str) -> Result<[i64; N], Fault> {
        let Some(piece) = self.bytes.get(self.at + 1..self.at + 1 + 8 * N) else {
            return Err(cut_off(self.bytes.len(), what));
        };
        self.at += 1 + 8 * N;
        let mut integers = [0; N];
        for (integer, bytes) in integers.iter_mut().zip(piece.chunks_exact(8)) {
            *integer = i64::from_be_bytes(bytes.try_into().expect("chunks of eight bytes"));
        }
        Ok(integers)
    }

    fn integer(&mut self, what: &str) -> Result<i64, Fault> {
        let integer = self.integer_at(self.at).ok_or_else(|| cut_off(self.bytes.len(), what))?;
        self.at += 8;
        Ok(integer)
    }
}

fn cut_off(end: usize, what: &str) -> Fault {
    Fault::new(end, format!("the log ends inside {what}"), "the rest of it: the log may have been cut off")
}

/// Writes a history as one log a session. Versions get write ids where every value is written once to a key, else
/// the logs are value-only.
pub fn write(history: &History, put: &mut PutFile<'_>) -> Result<(), WriteError> {
    let room = Room {
        format: Format::Cobra,
        aborted: false,
        unknown: false,
        appends: false,
        start: Start::All(ValueId::ABSENT),
    };
    let content = Content::new(history, room)?;
    let writers = writers(&content)?;
    let timed = history.transactions().all(|txn| txn.client().is_some()) && !history.is_empty();
    let ids = transaction_ids(history);
    for (session, number) in history.sessions().ids().zip(session_numbers(history)) {
        let mut log = Vec::new();
        for &txn in history.of_session(session) {
            write_transaction(&content, history.transaction(txn), &ids, writers.as_ref(), timed, &mut log)?;
        }
        put(&format!("T{number}.log"), &log)?;
    }
    Ok(())
}

/// Who wrote each version; `None` if some value is written twice to a key.
type Writers = FxHashMap<(i64, i64), TxnId>;

fn writers(content: &Content<'_>) -> Result<Option<Writers>, WriteError> {
    let mut writers = Writers::default();
    let mut unique = true;
    for txn in content.history.transactions() {
        for op in content.operations(txn) {
            let (is_write, key, value) = match op? {
                Plain::Read(key, value) => (false, key, value),
                Plain::Write(key, value) | Plain::Append(key, value) => (true, key, value),
            };
            if value == ValueId::ABSENT {
                continue;
            }
            let (key, id) = (content.integer_key(txn, key)?, content.integer_value(txn, value)?);
            if [INITIAL, ABSENT, VALUE_ONLY].contains(&id) || COLLECTED.contains(&id) {
                unique = false;
            }
            if is_write {
                unique &= writers.insert((key, id), txn.id()).is_none();
            }
        }
    }
    Ok(unique.then_some(writers))
}

/// Explicit ids where all transactions have integers, else numbers from 1 on.
fn transaction_ids(history: &History) -> Vec<i64> {
    let explicit = |txn: Transaction<'_>| match txn.explicit_id() {
        Some(NameRef::Int(id)) => Some(id),
        _ => None,
    };
    let all: Option<Vec<i64>> = history.transactions().map(explicit).collect();
    all.unwrap_or_else(|| (1..=history.len() as i64).collect())
}

fn write_transaction(
    content: &Content<'_>,
    txn: Transaction<'_>,
    ids: &[i64],
    writers: Option<&Writers>,
    timed: bool,
    log: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let mut record = |kind: Option<u8>, integers: &[i64]| {
        log.extend(kind);
        for integer in integers {
            log.extend(integer.to_be_bytes());
        }
    };
    let id = ids[crate::Id::index(txn.id())];
    let span = txn.client().filter(|_| timed);
    record(Some(b'S'), &[id]);
    span.inspect(|span| record(None, &[span.begin]));
    for op in content.operations(txn) {
        match op? {
            Plain::Read(key, ValueId::ABSENT) => {
                record(Some(b'R'), &[INITIAL, INITIAL, content.integer_key(txn, key)?, 0]);
            }
            Plain::Read(key, value) => {
                let (key, value) = (content.integer_key(txn, key)?, content.integer_value(txn, value)?);
                match writers {
                    Some(writers) => {
                        // A value that no transaction wrote has no writer to name; 0 is no transaction's id.
                        let writer = writers.get(&(key, value)).map_or(0, |txn| ids[crate::Id::index(*txn)]);
                        record(Some(b'R'), &[writer, value, key, value]);
                    }
                    None => record(Some(b'R'), &[VALUE_ONLY, VALUE_ONLY, key, value]),
                }
            }
            Plain::Write(key, value) | Plain::Append(key, value) => {
                let (key, value) = (content.integer_key(txn, key)?, content.integer_value(txn, value)?);
                record(Some(b'W'), &[if writers.is_some() { value } else { VALUE_ONLY }, key, value]);
            }
        }
    }
    record(Some(b'C'), &[id]);
    span.inspect(|span| record(None, &[span.end]));
    Ok(())
}
