//! Brings the journal to disk beside the engine, and then tells whoever waits.
//!
//! A disk takes milliseconds, and under the load of others much longer. The checker does not wait for it: it goes on with
//! what arrives, while one sync after the other makes durable, and acknowledges, what was written meanwhile. What is on
//! its way is bounded: when the disk does not keep up at all, the engine waits, and with it the sources.

use crate::intake::Acknowledge;
use crate::journal::Synced;
use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// How many steps of the engine may wait for the disk.
const WAITING_MAX: usize = 64;

/// A journal as it stands, and who waits for it.
type Due = (Synced, Vec<Box<dyn Acknowledge>>);

pub(crate) struct Syncer {
    sender: Option<SyncSender<Due>>,
    thread: Option<JoinHandle<()>>,
    error: Arc<Mutex<Option<io::Error>>>,
}

impl Syncer {
    pub(crate) fn start() -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        let error: Arc<Mutex<Option<io::Error>>> = Arc::default();
        let failed = Arc::clone(&error);
        let thread = std::thread::Builder::new().name("syncer".to_owned()).spawn(move || {
            if let Err(error) = work(&receiver) {
                failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        })?;
        Ok(Self { sender: Some(sender), thread: Some(thread), error })
    }

    /// Those who wait hear when the journal is on disk as it is now.
    pub(crate) fn put(&self, journal: Synced, waiting: Vec<Box<dyn Acknowledge>>) -> io::Result<()> {
        let Some(sender) = &self.sender else { return Ok(()) };
        sender.send((journal, waiting)).map_err(|_| self.failure())
    }

    fn failure(&self) -> io::Error {
        let error = self.error.lock().unwrap_or_else(PoisonError::into_inner).take();
        error.unwrap_or_else(|| io::Error::other("the journal can no longer be written to disk"))
    }

    /// Returns when nobody waits any more.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        match self.error.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn work(receiver: &Receiver<Due>) -> io::Result<()> {
    while let Ok((mut journal, mut waiting)) = receiver.recv() {
        let mut next = receiver.try_recv().ok();
        while let Some((later, more)) = next {
            // A journal that another one follows was synced by the checkpoint between them.
            journal = later;
            waiting.extend(more);
            next = receiver.try_recv().ok();
        }
        journal.sync()?;
        waiting.into_iter().for_each(|waiting| waiting.done());
    }
    Ok(())
}
