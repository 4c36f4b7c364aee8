//! What one session does.

use crate::intern;
use crate::recorder::{Ended, IDLE, Shared};
use crate::{OpRecord, RecordError, Request, Response, Stamp, TxnRecord};
use history::{Name, Span, Status};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    pub(crate) fn new(shared: Arc<Shared>, session: Name, committing: Arc<AtomicU64>) -> Self {
        Self { shared, session, open: None, committing }
    }

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
        self.open();
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
    pub fn operations(&self) -> u64 {
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
        // One that was never begun begins now.
        self.open();
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
        let line = intern::line(&record, detail)?;
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
