//! The bounded queue between sources and the engine.
//!
//! A source that finds it full waits, and with it whoever sends to the source: that is the back-pressure. Every
//! batch carries who is to hear when it is durable.

use crate::lines::{Parsed, parse};
use history::History;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

/// A place in a source that remembers what it sent: entries up to it are in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The source's name.
    pub source: String,
    /// Two numbers that grow.
    pub at: (u64, u64),
}

/// Hears that a batch is durable and has been checked, or that it never will be.
pub trait Acknowledge: Send {
    /// It is.
    fn done(self: Box<Self>);
}

impl<F: FnOnce() + Send> Acknowledge for F {
    fn done(self: Box<Self>) {
        (*self)();
    }
}

/// Whole lines from one source.
pub struct Batch {
    /// As they came.
    pub bytes: Vec<u8>,
    /// As they were understood.
    pub parsed: Parsed,
    /// When they came.
    pub arrived: Instant,
    /// Where in the source they end, if the source can go back.
    pub place: Option<Place>,
    /// Who waits.
    pub waiting: Option<Box<dyn Acknowledge>>,
}

impl Batch {
    /// Parses lines.
    pub fn new(bytes: Vec<u8>) -> Self {
        let arrived = Instant::now();
        let parsed = parse(&bytes);
        Self { bytes, parsed, arrived, place: None, waiting: None }
    }

    /// Lines that only a [`Join`](crate::Join) understands.
    pub(crate) fn unparsed(bytes: Vec<u8>) -> Self {
        let parsed = Parsed { history: History::default(), refused: Vec::new(), told: None };
        Self { bytes, parsed, arrived: Instant::now(), place: None, waiting: None }
    }

    /// With somebody who waits.
    pub fn waited_for(self, waiting: impl Acknowledge + 'static) -> Self {
        Self { waiting: Some(Box::new(waiting)), ..self }
    }
}

/// The way into the queue; every source has one.
#[derive(Clone)]
pub struct Intake {
    sender: SyncSender<Batch>,
    waiting: Arc<AtomicUsize>,
}

/// Why a batch was not taken.
pub(crate) enum NotTaken {
    /// The queue is full.
    Full(Box<Batch>),
    /// The service ends.
    Closed,
}

/// The way out of the queue.
pub(crate) struct Outflow {
    receiver: Receiver<Batch>,
    waiting: Arc<AtomicUsize>,
}

/// A queue of at most this many batches.
pub(crate) fn queue(batches_max: usize) -> (Intake, Outflow) {
    let (sender, receiver) = sync_channel(batches_max);
    let waiting = Arc::new(AtomicUsize::new(0));
    (Intake { sender, waiting: Arc::clone(&waiting) }, Outflow { receiver, waiting })
}

impl Intake {
    /// Waits for room. False if shutting down.
    pub fn put(&self, batch: Batch) -> bool {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.sender.send(batch).is_ok()
    }

    /// Takes it if there is room now.
    pub(crate) fn try_put(&self, batch: Box<Batch>) -> Result<(), NotTaken> {
        match self.sender.try_send(*batch) {
            Ok(()) => {
                self.waiting.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(TrySendError::Disconnected(_)) => Err(NotTaken::Closed),
            Err(TrySendError::Full(batch)) => Err(NotTaken::Full(Box::new(batch))),
        }
    }
}

impl Outflow {
    /// What there is, at most about `bytes_max`; waits until there is something or the time is over. `None` once
    /// every source is gone and nothing is left.
    pub(crate) fn take(&self, wait: Duration, bytes_max: usize) -> Option<Vec<Batch>> {
        let first = match self.receiver.recv_timeout(wait) {
            Ok(batch) => batch,
            Err(RecvTimeoutError::Timeout) => return Some(Vec::new()),
            Err(RecvTimeoutError::Disconnected) => return None,
        };
        let mut bytes = first.bytes.len();
        let mut batches = vec![first];
        while bytes < bytes_max {
            let Ok(batch) = self.receiver.try_recv() else { break };
            bytes += batch.bytes.len();
            batches.push(batch);
        }
        self.waiting.fetch_sub(batches.len(), Ordering::Relaxed);
        Some(batches)
    }

    /// How many batches wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }
}
