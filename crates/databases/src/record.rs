//! Envelope tracing: what a client asked and what came back, noted before and after every call.
//!
//! A [`Recorder`] belongs to a history, a [`Tracer`] to a session. A tracer keeps the transaction in
//! flight to itself. Lines stand in the order in which commits were sent, so a line waits for those of earlier commits that
//! are still under way. Whoever saw something sent its own commit after the one that it saw: so wherever the file ends when
//! the client program is killed, it holds nothing of which it lacks the cause, and no check of it blames the
//! database. It lacks what was in flight, and what waited for that. Lines of a session stand in session order
//! (boomslang.txt §4.1).
//!
//! Cost: one clock reading before and one after each call, one line formatted a transaction.
//! A full disk stops the recording; the transactions in flight still get their lines, from space that was
//! set aside at the beginning. Without them the history would hold reads of what nobody in it wrote.
//!
//! ```
//! use databases::{Recorder, Request, Response, Header};
//! use history::Status;
//!
//! let recorder = Recorder::in_memory(&Header::default()).unwrap();
//! let mut tracer = recorder.tracer(1.into());
//! tracer.begin();
//! tracer.call(Request::write("x", 1));   // before the call
//! tracer.answer(Response::Done);         // after it
//! tracer.end(Status::Committed).unwrap();
//! drop(tracer);
//! let history = recorder.finish().unwrap();
//! assert_eq!(history.len(), 1);
//! ```

use crate::driver::{Database, Stamp};
use crate::intern::Interner;
use crate::line;
use crate::line_file::{LineFile, Written};
use crate::request::{Request, Response, Value};
use crate::run::RunError;
use crate::timestamps;
use history::{BuildError, History, Id, Name, Span, Status};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What stands before the first transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The level the history is to be checked at, by the checker's name.
    pub level: Option<String>,
    /// Values before the first transaction.
    pub initial: Vec<(Name, Value)>,
    /// Further fields, e.g. the database and the workload.
    pub notes: Vec<(String, String)>,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnRecord {
    /// The connection.
    pub session: Name,
    /// Whether it took effect.
    pub status: Status,
    /// The client's clock, in nanoseconds since the recording began.
    pub client: Span,
    /// The level it asked for, where it differs from the history's.
    pub level: Option<String>,
    /// Its operations in the order issued.
    pub ops: Vec<OpRecord>,
    /// What the database said of its place among the others.
    pub stamp: Option<Stamp>,
    /// Why it did not commit.
    pub failure: Option<String>,
}

/// An operation as its client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRecord {
    /// What was asked.
    pub request: Request,
    /// What came back; `None` if nothing did.
    pub response: Option<Response>,
    /// The client's clock around it.
    pub at: Span,
    /// The text that was sent.
    pub statement: Option<String>,
}

/// How much is kept beside the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Statement texts, in `ctx`.
    pub statements: bool,
    /// The clock around each operation, in `at`.
    pub operation_clocks: bool,
}

impl Default for Detail {
    fn default() -> Self {
        Self { statements: true, operation_clocks: true }
    }
}

/// Why recording stopped.
#[derive(Debug)]
pub enum RecordError {
    /// The file could not be written. What stood there before is whole, but something is missing.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no more space. Everything up to here was written.
    Full {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The history refused a transaction.
    History(BuildError),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => {
                write!(
                    f,
                    "cannot record to {}: {error}; what was recorded before that is intact",
                    path.display()
                )
            }
            Self::Full { path, error } => write!(
                f,
                "the run stopped, for nothing more can be recorded to {}: {error}; what was recorded is whole",
                path.display()
            ),
            Self::History(error) => write!(f, "the recorded history is impossible: {error}"),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<BuildError> for RecordError {
    fn from(error: BuildError) -> Self {
        Self::History(error)
    }
}

/// Called with every finished transaction, in the order of the file.
pub type Listener = Box<dyn FnMut(&TxnRecord) + Send>;

/// Collects the transactions of all sessions. Copies record into the same history.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

struct Shared {
    start: Instant,
    detail: Detail,
    is_off: bool,
    /// The number of the next commit.
    next: AtomicU64,
    sink: Mutex<Sink>,
}

/// A session whose commit is not under way.
const IDLE: u64 = u64::MAX;

/// So many transactions wait for a commit that does not end; a crash may then separate some from what they saw.
const WAITING_MAX: usize = 1 << 14;

/// A transaction that has ended, with its line.
struct Ended {
    record: TxnRecord,
    line: String,
}

#[derive(Default)]
struct Sink {
    /// The number of each session's commit that is under way, or [`IDLE`].
    committing: Vec<Arc<AtomicU64>>,
    /// What has ended while earlier commits were under way, by number.
    waiting: BTreeMap<u64, Ended>,
    file: Option<LineFile>,
    memory: Option<Interner>,
    listener: Option<Listener>,
    /// Outcome and stamp of every transaction, in the order of the file, if they are kept.
    stamps: Option<Vec<(Status, Option<Stamp>)>>,
    /// Timestamps of transactions that were taken from memory, for the file.
    times: Vec<Option<(i64, i64)>>,
    /// Transactions that ended and could not be written down.
    lost: u64,
}

/// Where a recorder keeps what it is told.
#[derive(Default)]
pub struct Sinks {
    /// A file in the native format, written as it happens.
    pub file: Option<PathBuf>,
    /// Whether [`Recorder::finish`] returns the history; without it memory stays flat on long runs.
    pub memory: bool,
    /// Told of every transaction as it ends.
    pub listener: Option<Listener>,
    /// Whether what the database says of transactions' places is kept, for
    /// [`Recorder::finish_timestamped`].
    pub stamps: bool,
    /// How much is kept.
    pub detail: Detail,
}

impl Recorder {
    /// Records to the sinks given.
    pub fn new(header: &Header, sinks: Sinks) -> Result<Self, RecordError> {
        let file = match sinks.file {
            None => None,
            Some(path) => Some(LineFile::create(path, &line::header(header))?),
        };
        let memory = sinks.memory.then(|| Interner::new(header));
        let stamps = sinks.stamps.then(Vec::new);
        let sink = Sink { file, memory, listener: sinks.listener, stamps, ..Sink::default() };
        Ok(Self { shared: Arc::new(Shared::new(sinks.detail, false, sink)) })
    }

    /// Records nothing, and reads no clock: for measuring what recording costs.
    pub fn off() -> Self {
        let detail = Detail { statements: false, operation_clocks: false };
        Self { shared: Arc::new(Shared::new(detail, true, Sink::default())) }
    }

    /// Records in memory only.
    pub fn in_memory(header: &Header) -> Result<Self, RecordError> {
        Self::new(header, Sinks { memory: true, ..Sinks::default() })
    }

    /// Records to a file and in memory.
    pub fn to_file(header: &Header, path: impl AsRef<Path>) -> Result<Self, RecordError> {
        let file = Some(path.as_ref().to_owned());
        Self::new(header, Sinks { file, memory: true, ..Sinks::default() })
    }

    /// A tracer for one session.
    pub fn tracer(&self, session: Name) -> Tracer {
        let committing = Arc::new(AtomicU64::new(IDLE));
        self.shared.sink().committing.push(Arc::clone(&committing));
        Tracer { shared: Arc::clone(&self.shared), session, open: None, committing }
    }

    /// How many transactions ended and could not be written down. If there are any, others may have read
    /// what they wrote, and a check of the file would blame the database.
    pub fn lost(&self) -> u64 {
        self.shared.sink().lost
    }

    /// The history recorded so far; empty if nothing was kept in memory.
    pub fn finish(self) -> Result<History, RecordError> {
        let mut sink = self.shared.sink();
        sink.pass_on(IDLE, self.shared.detail)?;
        match sink.memory.take() {
            Some(memory) => Ok(memory.finish()?),
            None => Ok(History::default()),
        }
    }

    /// The history with the database's own timestamps; the file gets them, too. Transactions that did not
    /// commit, as far as their clients know, have none.
    pub fn finish_timestamped(self, database: &dyn Database) -> Result<History, RunError> {
        let history = self.take_timestamped(database)?.history;
        let (file, times) = {
            let mut sink = self.shared.sink();
            (sink.file.take(), std::mem::take(&mut sink.times))
        };
        if let Some(file) = file {
            file.insert_timestamps(&times)?;
        }
        Ok(history)
    }

    /// What was recorded in memory since the last call, with the database's own timestamps. No transaction
    /// may be open: see [`crate::Gate`]. If it fails, nothing is taken.
    pub fn take_timestamped(&self, database: &dyn Database) -> Result<Batch, RunError> {
        let mut sink = self.shared.sink();
        sink.pass_on(IDLE, self.shared.detail)?;
        let mut times = match &sink.stamps {
            None => Vec::new(),
            Some(stamps) => {
                let stamps: Vec<Option<Stamp>> = stamps.iter().map(|(_, stamp)| stamp.clone()).collect();
                database.timestamps(&stamps)?
            }
        };
        let stamps = sink.stamps.as_mut().map(std::mem::take).unwrap_or_default();
        for (time, (status, stamp)) in times.iter_mut().zip(&stamps) {
            let has_committed = match status {
                Status::Committed => true,
                Status::Aborted => false,
                // The log knows what the client never learnt, if the client knew what to look for.
                Status::Unknown => stamp.as_ref().is_some_and(|stamp| stamp.commit.is_some()),
            };
            if !has_committed {
                *time = None;
            }
        }
        let memory = sink.memory.as_mut().map(|memory| std::mem::replace(memory, Interner::empty()));
        let mut history =
            memory.map_or_else(|| Ok(History::default()), Interner::finish).map_err(RecordError::from)?;
        history
            .set_db_timestamps(|txn| {
                let time = times.get(txn.index()).copied().flatten();
                time.map(|(start, commit)| (start.into(), commit.into()))
            })
            .map_err(RecordError::from)?;
        let settled = times.iter().flatten().map(|&(_, commit)| timestamps::settled(commit)).max();
        if sink.file.is_some() {
            sink.times.extend(times);
        }
        Ok(Batch { history, settled })
    }
}

/// A part of a history that ended while no transaction was open.
#[derive(Debug)]
pub struct Batch {
    /// The transactions.
    pub history: History,
    /// All later transactions start and commit after this timestamp; `None` if there were no transactions
    /// with timestamps.
    pub settled: Option<i64>,
}

impl Shared {
    fn new(detail: Detail, is_off: bool, sink: Sink) -> Self {
        Self { start: Instant::now(), detail, is_off, next: AtomicU64::new(0), sink: Mutex::new(sink) }
    }

    /// A poisoned lock only means that another session panicked; the sink is whole between lines.
    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

impl Sink {
    /// The number of the earliest commit that is under way.
    fn earliest(&self) -> u64 {
        self.committing.iter().map(|number| number.load(Ordering::SeqCst)).min().unwrap_or(IDLE)
    }

    /// Keeps what was sent before a commit, in that order.
    fn pass_on(&mut self, before: u64, detail: Detail) -> Result<(), RecordError> {
        let mut result = Ok(());
        while let Some(first) = self.waiting.first_entry()
            && (*first.key() < before || self.waiting.len() > WAITING_MAX)
            && let Some((_, Ended { record, line })) = self.waiting.pop_first()
        {
            result = result.and(self.keep(record, &line, detail));
        }
        result
    }

    fn keep(&mut self, mut record: TxnRecord, line: &str, detail: Detail) -> Result<(), RecordError> {
        let written = self.file.as_mut().map_or(Ok(Written::Fine), |file| file.write(line));
        if written.is_err() {
            self.lost += 1;
        }
        let written = written?;
        if let Some(memory) = &mut self.memory {
            memory.add(&record, detail)?;
        }
        if let Some(stamps) = &mut self.stamps {
            stamps.push((record.status, record.stamp.take()));
        }
        match (written, &self.file) {
            (Written::Last(error), Some(file)) => Err(file.full(error)),
            _ => Ok(()),
        }
    }
}

/// Notes what one session does.
pub struct Tracer {
    shared: Arc<Shared>,
    session: Name,
    open: Option<TxnRecord>,
    /// The number of its commit while that is under way, for the others.
    committing: Arc<AtomicU64>,
}

impl Drop for Tracer {
    /// Nobody waits for a transaction that is never told of. What cannot be written now is counted as lost.
    fn drop(&mut self) {
        let mut sink = self.shared.sink();
        sink.committing.retain(|number| !Arc::ptr_eq(number, &self.committing));
        let earliest = sink.earliest();
        let _ = sink.pass_on(earliest, self.shared.detail);
    }
}

impl Tracer {
    /// Call before sending BEGIN. A transaction still open is dropped.
    pub fn begin(&mut self) {
        let now = self.shared.now();
        self.open = Some(TxnRecord {
            session: self.session.clone(),
            status: Status::Unknown,
            client: Span { begin: now, end: now },
            level: None,
            ops: Vec::new(),
            stamp: None,
            failure: None,
        });
    }

    /// Call before sending an operation.
    pub fn call(&mut self, request: Request) {
        if self.shared.is_off {
            return;
        }
        let now = self.shared.now();
        let op = OpRecord { request, response: None, at: Span { begin: now, end: now }, statement: None };
        self.open().ops.push(op);
    }

    /// Call when its answer is there.
    pub fn answer(&mut self, response: Response) {
        if self.shared.is_off {
            return;
        }
        self.answered();
        if let Some(op) = self.open().ops.last_mut() {
            op.response = Some(response);
        }
    }

    /// How many operations the open transaction has.
    pub(crate) fn operations(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.ops.len() as u64)
    }

    /// The clock after the call, unless it was read already.
    fn answered(&mut self) {
        let now = self.shared.now();
        if let Some(op) = self.open().ops.last_mut().filter(|op| op.response.is_none()) {
            op.at.end = now;
        }
    }

    /// Call instead when it failed; the operation was issued, its result is not known.
    pub fn failed(&mut self, why: impl fmt::Display) {
        self.answered();
        self.open().failure = Some(why.to_string());
    }

    /// The text that the last operation sent.
    pub fn statement(&mut self, text: Option<&str>) {
        if !self.shared.detail.statements {
            return;
        }
        if let Some(op) = self.open().ops.last_mut() {
            op.statement = text.map(str::to_owned);
        }
    }

    /// The level of this transaction, where it differs from the history's.
    pub fn level(&mut self, level: &str) {
        self.open().level = Some(level.to_owned());
    }

    /// What the database said of the transaction's place among the others.
    pub fn stamp(&mut self, stamp: Option<Stamp>) {
        self.open().stamp = stamp;
    }

    /// Call before sending COMMIT.
    pub fn committing(&mut self) {
        self.committing.store(self.shared.next.fetch_add(1, Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Call when the answer to COMMIT or ROLLBACK is there, or will never come.
    pub fn end(&mut self, status: Status) -> Result<(), RecordError> {
        self.note_end();
        self.write(status)
    }

    /// The clock at the end, for callers that still ask the database things before [`Tracer::write`].
    pub fn note_end(&mut self) {
        let now = self.shared.now();
        self.open().client.end = now;
    }

    /// Writes the transaction down, as soon as no earlier commit is under way.
    pub fn write(&mut self, status: Status) -> Result<(), RecordError> {
        let Some(mut record) = self.open.take() else { return Ok(()) };
        record.status = status;
        if self.shared.is_off {
            return Ok(());
        }
        let detail = self.shared.detail;
        let line = line::transaction(&record, detail);
        let mut sink = self.shared.sink();
        if let Some(listener) = &mut sink.listener {
            listener(&record);
        }
        let number = match self.committing.swap(IDLE, Ordering::SeqCst) {
            IDLE => self.shared.next.fetch_add(1, Ordering::SeqCst),
            number => number,
        };
        sink.waiting.insert(number, Ended { record, line });
        let earliest = sink.earliest();
        sink.pass_on(earliest, detail)
    }

    fn open(&mut self) -> &mut TxnRecord {
        if self.open.is_none() {
            self.begin();
        }
        self.open.as_mut().expect("begin() has just opened a transaction")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

    use super::*;

    /// A recorder and what its file says of sessions, line by line.
    fn recording() -> (Recorder, impl Fn() -> String, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("h.jsonl");
        let sinks = Sinks { file: Some(path.clone()), ..Sinks::default() };
        let recorder = Recorder::new(&Header::default(), sinks).unwrap();
        let sessions = move || {
            let text = std::fs::read_to_string(&path).unwrap();
            let session = |line: &str| line.split("\"session\":").nth(1).and_then(|rest| rest.chars().next());
            text.lines().filter_map(session).collect()
        };
        (recorder, sessions, folder)
    }

    /// What ended may have seen what is still committing: its line must not be there without the other's.
    #[test]
    fn nothing_is_written_before_what_it_may_have_seen() {
        let (recorder, sessions, _folder) = recording();
        let [mut one, mut two, mut three] = [1, 2, 3].map(|it| recorder.tracer(it.into()));
        one.begin();
        one.call(Request::write("x", 1));
        one.answer(Response::Done);
        one.committing();
        two.begin();
        two.call(Request::read("x"));
        two.answer(Response::Value(1.into()));
        two.end(Status::Committed).unwrap();
        assert_eq!(sessions(), "", "the first may have written what the second read");
        three.begin();
        three.committing();
        one.end(Status::Committed).unwrap();
        assert_eq!(sessions(), "12", "the third sent its commit later, so neither can have seen it");
        three.end(Status::Committed).unwrap();
        assert_eq!(sessions(), "123");
        two.begin();
        three.begin();
        three.end(Status::Aborted).unwrap();
        assert_eq!(sessions(), "1233", "who does not commit is waited for by nobody");
    }

    #[test]
    fn nobody_waits_for_who_is_gone() {
        let (recorder, sessions, _folder) = recording();
        let [mut one, mut two] = [1, 2].map(|it| recorder.tracer(it.into()));
        one.begin();
        one.committing();
        two.end(Status::Committed).unwrap();
        assert_eq!(sessions(), "");
        drop(one);
        assert_eq!(sessions(), "2");
        let mut open = recorder.tracer(3.into());
        open.committing();
        two.end(Status::Aborted).unwrap();
        assert_eq!(sessions(), "2");
        recorder.finish().unwrap();
        assert_eq!(sessions(), "22", "the end of the recording waits for nobody");
    }
}
