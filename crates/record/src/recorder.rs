//! Envelope tracing: what a client asked and what came back, noted before and after every call.
//!
//! A [`Recorder`] belongs to a history, a [`Tracer`] to a session. A tracer keeps the transaction in
//! flight to itself. Lines stand in the order in which commits were sent, so a line waits for those of earlier commits that
//! are still under way. Whoever saw something sent its own commit after the one that it saw: so wherever the file ends when
//! the client program is killed, it holds nothing of which it lacks the cause, and no check of it blames the
//! database. It lacks what was in flight, and what waited for that. Lines of a session stand in session order
//! (Boomslang, Zhang, Mu and Tan 2026, §4.1).
//!
//! Cost: one clock reading before and one after each call, one line formatted a transaction.
//! A full disk stops the recording; the transactions in flight still get their lines, from space that was
//! set aside at the beginning. Without them the history would hold reads of what nobody in it wrote.
//!
//! ```
//! use taipan_record::{Header, Recorder, Request, Response, Status};
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

use crate::error::RecordError;
use crate::intern::{self, Interner};
use crate::line_file::{LineFile, Written};
use crate::records::{Detail, Header, Stamp, TxnRecord};
use crate::tracer::Tracer;
use history::{History, Id, Name, Status};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Called with every finished transaction, in the order of the file.
pub type Listener = Box<dyn FnMut(&TxnRecord) + Send>;

/// Collects the transactions of all sessions. Copies record into the same history.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    start: Instant,
    pub(crate) detail: Detail,
    pub(crate) is_off: bool,
    /// The number of the next commit.
    pub(crate) next: AtomicU64,
    sink: Mutex<Sink>,
}

/// A session whose commit is not under way.
pub(crate) const IDLE: u64 = u64::MAX;

/// So many transactions wait for a commit that does not end; a crash may then separate some from what they saw.
const WAITING_MAX: usize = 1 << 14;

/// A transaction that has ended, with its line.
pub(crate) struct Ended {
    pub(crate) record: TxnRecord,
    pub(crate) line: String,
}

#[derive(Default)]
pub(crate) struct Sink {
    /// The number of each session's commit that is under way, or [`IDLE`].
    pub(crate) committing: Vec<Arc<AtomicU64>>,
    /// What has ended while earlier commits were under way, by number.
    pub(crate) waiting: BTreeMap<u64, Ended>,
    file: Option<LineFile>,
    memory: Option<Interner>,
    pub(crate) listener: Option<Listener>,
    /// Outcome and stamp of every transaction, in the order of the file, if they are kept.
    stamps: Option<Vec<(Status, Option<Stamp>)>>,
    /// Timestamps of transactions that were taken from memory, for the file.
    times: Vec<Option<(i64, i64)>>,
    /// Transactions that ended and could not be written down.
    lost: u64,
}

/// Where a recorder keeps what it receives.
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
            Some(path) => Some(LineFile::create(path, &intern::header(header)?)?),
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
        Tracer::new(Arc::clone(&self.shared), session, committing)
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

    /// The history with the database's own timestamps, start and commit for each stamp; the file gets them, too.
    /// Transactions that did not commit, as far as their clients know, have none.
    pub fn finish_timestamped<E: From<RecordError>>(
        self,
        times: impl FnOnce(&[Option<Stamp>]) -> Result<Vec<Option<(i64, i64)>>, E>,
    ) -> Result<History, E> {
        let history = self.take_timestamped(times)?.history;
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
    /// may be open. If it fails, nothing is taken.
    pub fn take_timestamped<E: From<RecordError>>(
        &self,
        times: impl FnOnce(&[Option<Stamp>]) -> Result<Vec<Option<(i64, i64)>>, E>,
    ) -> Result<Batch, E> {
        let mut sink = self.shared.sink();
        sink.pass_on(IDLE, self.shared.detail)?;
        let mut times = match &sink.stamps {
            None => Vec::new(),
            Some(stamps) => {
                let stamps: Vec<Option<Stamp>> = stamps.iter().map(|(_, stamp)| stamp.clone()).collect();
                times(&stamps)?
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
        let last_commit = times.iter().flatten().map(|&(_, commit)| commit).max();
        if sink.file.is_some() {
            sink.times.extend(times);
        }
        Ok(Batch { history, last_commit })
    }
}

/// A part of a history that ended while no transaction was open.
#[derive(Debug)]
pub struct Batch {
    /// The transactions.
    pub history: History,
    /// The largest commit timestamp; `None` if there were no transactions with timestamps.
    pub last_commit: Option<i64>,
}

impl Shared {
    fn new(detail: Detail, is_off: bool, sink: Sink) -> Self {
        Self { start: Instant::now(), detail, is_off, next: AtomicU64::new(0), sink: Mutex::new(sink) }
    }

    /// A poisoned lock only means that another session panicked; the sink is whole between lines.
    pub(crate) fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn now(&self) -> i64 {
        i64::try_from(self.start.elapsed().as_nanos()).unwrap_or(i64::MAX)
    }
}

impl Sink {
    /// The number of the earliest commit that is under way.
    pub(crate) fn earliest(&self) -> u64 {
        self.committing.iter().map(|number| number.load(Ordering::SeqCst)).min().unwrap_or(IDLE)
    }

    /// Keeps what was sent before a commit, in that order.
    pub(crate) fn pass_on(&mut self, before: u64, detail: Detail) -> Result<(), RecordError> {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

    use super::*;
    use crate::{Request, Response};

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
