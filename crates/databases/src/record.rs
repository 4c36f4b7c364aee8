//! Envelope tracing: what a client asked and what came back, noted before and after every call.
//!
//! A [`Recorder`] belongs to a history, a [`Tracer`] to a session. A tracer keeps the transaction in
//! flight to itself; when the transaction ends, its line goes to the file with one `write` under one
//! lock, before the session does anything else. So a crash of the client program loses at most the
//! transactions in flight, and lines of a session stand in session order (boomslang.txt §4.1).
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
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
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
                write!(f, "cannot record to {}: {error}; what was recorded before is whole", path.display())
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
    sink: Mutex<Sink>,
}

struct Sink {
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
    /// Told of every transaction.
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
        let sink = Sink { file, memory, listener: sinks.listener, stamps, times: Vec::new(), lost: 0 };
        let shared =
            Shared { start: Instant::now(), detail: sinks.detail, is_off: false, sink: Mutex::new(sink) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Records nothing, and reads no clock: for measuring what recording costs.
    pub fn off() -> Self {
        let sink =
            Sink { file: None, memory: None, listener: None, stamps: None, times: Vec::new(), lost: 0 };
        let detail = Detail { statements: false, operation_clocks: false };
        let shared = Shared { start: Instant::now(), detail, is_off: true, sink: Mutex::new(sink) };
        Self { shared: Arc::new(shared) }
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
        Tracer { shared: Arc::clone(&self.shared), session, open: None }
    }

    /// How many transactions ended and could not be written down. If there are any, others may have read
    /// what they wrote, and a check of the file would blame the database.
    pub fn lost(&self) -> u64 {
        self.shared.sink().lost
    }

    /// The history recorded so far; empty if nothing was kept in memory.
    pub fn finish(self) -> Result<History, RecordError> {
        let memory = self.shared.sink().memory.take();
        match memory {
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
    /// A poisoned lock only means that another session panicked; the sink is whole between lines.
    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

/// Notes what one session does.
pub struct Tracer {
    shared: Arc<Shared>,
    session: Name,
    open: Option<TxnRecord>,
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

    /// Writes the transaction down. After this it cannot be lost.
    pub fn write(&mut self, status: Status) -> Result<(), RecordError> {
        let Some(mut record) = self.open.take() else { return Ok(()) };
        record.status = status;
        if self.shared.is_off {
            return Ok(());
        }
        let detail = self.shared.detail;
        let text = line::transaction(&record, detail);
        let mut sink = self.shared.sink();
        let written = sink.file.as_mut().map_or(Ok(Written::Fine), |file| file.write(&text));
        if written.is_err() {
            sink.lost += 1;
        }
        let written = written?;
        if let Some(memory) = &mut sink.memory {
            memory.add(&record, detail)?;
        }
        if let Some(listener) = &mut sink.listener {
            listener(&record);
        }
        if let Some(stamps) = &mut sink.stamps {
            stamps.push((status, record.stamp.take()));
        }
        match (written, &sink.file) {
            (Written::Last(error), Some(file)) => Err(file.full(error)),
            _ => Ok(()),
        }
    }

    fn open(&mut self) -> &mut TxnRecord {
        if self.open.is_none() {
            self.begin();
        }
        self.open.as_mut().expect("begin() has just opened a transaction")
    }
}
