//! A database's change stream beside the transactions that clients tell of.
//!
//! A [`Feed`] is a source that tells what the database did; a [`Join`] puts that together with what clients saw, and
//! what comes out of it is checked. The journal holds what came in, from both; a join is a function of that, so a
//! restart comes to where it was: its state is part of the checkpoint.

use crate::intake::{Batch, Intake, Place};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Lines that go to the checker, and what was not understood.
#[derive(Debug, Default)]
pub struct Output {
    /// Transactions with timestamps, and watermarks.
    pub lines: Vec<u8>,
    /// A sentence each.
    pub refused: Vec<String>,
}

/// Puts two streams together. A function of what goes in.
pub trait Join: Send {
    /// Lines of the feed.
    fn take_changes(&mut self, lines: &[u8]) -> Output;
    /// Lines of clients.
    fn take_traced(&mut self, lines: &[u8]) -> Output;
    /// Nothing more will come.
    fn finish(&mut self) -> Output;
    /// Everything it holds.
    fn save(&self) -> String;
    /// What it did so far, in a few words.
    fn summary(&self) -> String;
}

type Open = dyn Fn(Option<&str>) -> io::Result<Box<dyn Join>> + Send + Sync;

/// Makes a [`Join`], new or from what [`Join::save`] gave.
#[derive(Clone)]
pub struct Joiner(Arc<Open>);

impl Joiner {
    /// By a function of what was saved.
    pub fn new(open: impl Fn(Option<&str>) -> io::Result<Box<dyn Join>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    pub(crate) fn open(&self, saved: Option<&str>) -> io::Result<Box<dyn Join>> {
        (self.0)(saved)
    }
}

impl fmt::Debug for Joiner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Joiner")
    }
}

/// What a feed told.
#[derive(Debug, Default)]
pub struct News {
    /// Lines for [`Join::take_changes`].
    pub lines: Vec<u8>,
    /// Up to where they tell.
    pub place: u64,
    /// What is to be noted.
    pub notes: Vec<String>,
    /// Whether there is more to be had at once.
    pub is_more: bool,
}

/// A change stream that can be asked.
pub trait Feed: Send {
    /// What has happened since the last call. An error ends the service.
    fn poll(&mut self) -> io::Result<News>;
    /// Everything up to this place is in the journal.
    fn confirm(&mut self, place: u64) -> io::Result<()>;
}

/// Opens a feed where an earlier process left off, if there was one.
pub type OpenFeed = Box<dyn FnOnce(Option<u64>) -> io::Result<Box<dyn Feed>> + Send>;

/// The name under which the journal knows the feed.
pub(crate) const FEED: &str = "feed";
/// How long a feed rests between two looks at least. A look that took long is followed by a long rest.
const REST: Duration = Duration::from_millis(100);
/// How often a waiting feed looks whether shutting down.
const PATIENCE: Duration = Duration::from_millis(20);

/// Why a feed ended, if it did.
pub(crate) type Failed = Arc<Mutex<Option<io::Error>>>;

/// Asks a feed again and again.
pub(crate) fn follow(
    mut feed: Box<dyn Feed>,
    intake: Intake,
    stop: Arc<AtomicBool>,
    failed: Failed,
    notes: Arc<dyn Fn(String) + Send + Sync>,
) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("feed".to_owned()).spawn(move || {
        if let Err(error) = ask(&mut *feed, &intake, &stop, &*notes) {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            stop.store(true, Ordering::Relaxed);
        }
    })
}

fn ask(
    feed: &mut dyn Feed,
    intake: &Intake,
    stop: &AtomicBool,
    notes: &(dyn Fn(String) + Send + Sync),
) -> io::Result<()> {
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let news = feed.poll()?;
        news.notes.into_iter().for_each(notes);
        let (place, is_more) = (news.place, news.is_more);
        let (sender, taken) = sync_channel(1);
        let mut batch = Batch::unparsed(news.lines);
        batch.place = Some(Place { source: FEED.to_owned(), at: (place, 0) });
        // The engine may be gone when it is taken; then nobody needs to know.
        let tell = move || {
            let _ = sender.send(());
        };
        if !intake.put(batch.waited_for(tell)) {
            return Ok(());
        }
        loop {
            match taken.recv_timeout(PATIENCE) {
                Ok(()) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        feed.confirm(place)?;
        let rest = Instant::now() + if is_more { Duration::ZERO } else { REST.max(started.elapsed()) };
        while Instant::now() < rest && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(PATIENCE.min(rest.saturating_duration_since(Instant::now())));
        }
    }
    Ok(())
}
