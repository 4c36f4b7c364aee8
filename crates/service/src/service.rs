//! The threads around the engine.

use crate::broker::{Broker, BrokerAddress};
use crate::engine::{Engine, EngineOptions, Told};
use crate::feed::{self, FEED, Failed, OpenFeed};
use crate::http::{self, HttpOptions};
use crate::intake::{self, Intake, Outflow};
use crate::outlet::Outlets;
use crate::sockets;
use crate::status::{Board, Delays, FINDINGS_MAX, Sample, Status, WorkerStatus, memory_bytes};
use crate::syncer::Syncer;
use replay::online::Kind;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Where transactions come from.
pub enum Source {
    /// A stream of lines that ends. When every source has ended, so does the service, with all verdicts final.
    Stream(Box<dyn Read + Send>),
    /// Connections over TCP.
    Tcp {
        /// Where it listens.
        address: SocketAddr,
        /// What connections have to show; needed unless the address is a loopback one.
        token: Option<String>,
    },
    /// Connections over a unix socket.
    Unix(PathBuf),
    /// Requests over HTTP.
    Http(HttpOptions),
    /// A stream of a broker.
    Broker(BrokerAddress),
    /// The change stream of a database; the engine needs a [`crate::Joiner`].
    Feed(OpenFeed),
}

/// How a service works.
pub struct Options {
    /// The checker.
    pub engine: EngineOptions,
    /// Where transactions come from.
    pub sources: Vec<Source>,
    /// Where findings go.
    pub outlets: Outlets,
    /// At least one checkpoint in this time, if anything happened.
    pub checkpoint_every: Duration,
    /// The most bytes the process is to take.
    pub memory_max: Option<u64>,
    /// Hears what is no finding.
    pub notes: Box<dyn Fn(String) + Send + Sync>,
}

/// How a service ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Ended {
    /// How things stood.
    pub status: Status,
    /// Whether all verdicts are final: every source had ended.
    pub is_final: bool,
    /// How a change stream was joined with what clients saw, if there was one.
    pub joined: Option<String>,
}

/// Why a service cannot go on.
#[derive(Debug)]
pub struct Trouble {
    /// What it was doing.
    pub doing: String,
    /// What went wrong.
    pub error: io::Error,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.doing, self.error)
    }
}

impl std::error::Error for Trouble {}

fn while_doing(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Trouble {
    let doing = doing.into();
    move |error| Trouble { doing, error }
}

/// How many batches wait at most; fewer where memory is short, one for each of these many bytes of state.
const QUEUE_MAX: usize = 32;
const QUEUE_MIN: usize = 4;
const STATE_BYTES_PER_BATCH: usize = 4 << 20;
/// How many bytes are taken from the queue at once, for each batch that may wait. No more than a few milliseconds' work
/// together: what is taken at once has its verdict at once, and not before the last of it.
const GULP: usize = 8 << 10;
/// How often the memory of the process is looked at.
const MEMORY_INTERVAL: Duration = Duration::from_millis(50);
/// What a process takes beside the checker's state: the program, its threads, and what is on its way.
const OVERHEAD_BYTES: u64 = 20 << 20;
/// The smallest state that is of any use.
const STATE_MIN_BYTES: usize = 2 << 20;

/// How much of the memory the checker's state may take at first.
fn first_share(memory_max: u64) -> usize {
    let share = memory_max.saturating_sub(OVERHEAD_BYTES) / 4;
    usize::try_from(share).unwrap_or(usize::MAX).max(STATE_MIN_BYTES)
}

/// How long sources may take to end.
const SOURCES_END: Duration = Duration::from_millis(400);
/// How long what has arrived is still taken when the service is to end. What is left is not acknowledged.
const LAST_BATCHES: Duration = Duration::from_millis(300);

/// How long the engine waits for something to arrive before it looks at the clock.
const TICK: Duration = Duration::from_millis(20);

/// A running service.
pub struct Service {
    stop: Arc<AtomicBool>,
    board: Board,
    engine: JoinHandle<Result<Ended, Trouble>>,
    /// Addresses that were bound, in the order of the sources that have one.
    pub bound: Vec<SocketAddr>,
}

impl Service {
    /// Opens the state and the sources, and begins.
    pub fn start(options: Options) -> Result<Self, Trouble> {
        let Options { mut engine, sources, outlets, checkpoint_every, memory_max, notes } = options;
        if let Some(max) = memory_max {
            engine.settings.memory_max = Some(first_share(max));
        }
        let (level, state_max) = (engine.settings.level.name().to_owned(), engine.settings.memory_max);
        let (engine, found) = Engine::open(engine).map_err(while_doing("starting"))?;
        found.notes.iter().for_each(|note| notes(note.clone()));
        let board = Board::default();
        board.update(|status| status.level = level);
        show_old_findings(&engine, &board, &found)?;
        let stop = Arc::new(AtomicBool::new(false));
        let fitting = |bytes: usize| (bytes / STATE_BYTES_PER_BATCH).clamp(QUEUE_MIN, QUEUE_MAX);
        let batches_max = state_max.map_or(QUEUE_MAX, fitting);
        let (intake, outflow) = intake::queue(batches_max);
        let notes: Arc<dyn Fn(String) + Send + Sync> = Arc::from(notes);
        let mut threads =
            Threads { all: Vec::new(), bound: Vec::new(), streams_only: true, failed: Failed::default() };
        for source in sources {
            threads.add(source, &intake, &stop, &board, &engine, &notes)?;
        }
        drop(intake);
        let given_up = outlets.webhook.as_ref().map(|webhook| webhook.given_up());
        let Threads { all, bound, streams_only, failed } = threads;
        let worker = Worker {
            engine,
            syncer: Syncer::start().map_err(while_doing("starting"))?,
            outflow,
            outlets,
            board: board.clone(),
            stop: Arc::clone(&stop),
            checkpoint_every,
            notes,
            given_up,
            started: Instant::now(),
            refused: 0,
            checkpoints: 0,
            streams_only,
            failed,
            gulp: GULP * batches_max,
            memory_max,
            memory_minded: Instant::now(),
        };
        let engine = std::thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || worker.work(&found, all))
            .map_err(while_doing("starting"))?;
        Ok(Self { stop, board, engine, bound })
    }

    /// A switch that makes it end: sources first, then what has arrived, then the state is written down.
    pub fn switch(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// How things stand.
    pub fn status(&self) -> Status {
        self.board.status()
    }

    /// How long transactions took from arrival to provisional verdict.
    pub fn delays(&self) -> Delays {
        self.board.delays()
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.engine.is_finished()
    }

    /// Waits until it has ended.
    pub fn wait(self) -> Result<Ended, Trouble> {
        self.engine.join().unwrap_or_else(|_| {
            Err(Trouble {
                doing: "checking".to_owned(),
                error: io::Error::other("internal error in the checker; this is a bug in Taipan"),
            })
        })
    }
}

/// The page shows what earlier processes found, too.
fn show_old_findings(engine: &Engine, board: &Board, found: &Told) -> Result<(), Trouble> {
    let total = engine.online().finding_count();
    let told = total - found.lines.len() as u64;
    let mut old = engine.last_told(FINDINGS_MAX).map_err(while_doing("reading earlier findings"))?;
    old.truncate(old.len().saturating_sub(found.lines.len()));
    board.begin_findings(told - old.len() as u64);
    board.tell(&old);
    Ok(())
}

struct Threads {
    all: Vec<JoinHandle<()>>,
    bound: Vec<SocketAddr>,
    streams_only: bool,
    failed: Failed,
}

impl Threads {
    fn add(
        &mut self,
        source: Source,
        intake: &Intake,
        stop: &Arc<AtomicBool>,
        board: &Board,
        engine: &Engine,
        notes: &Arc<dyn Fn(String) + Send + Sync>,
    ) -> Result<(), Trouble> {
        let (intake, stop) = (intake.clone(), Arc::clone(stop));
        self.streams_only &= matches!(source, Source::Stream(_));
        let thread = match source {
            Source::Stream(stream) => {
                let notes = Arc::clone(notes);
                let thread = std::thread::Builder::new().name("stream".to_owned()).spawn(move || {
                    if let Err(error) = sockets::read_lines(stream, &intake, &stop) {
                        notes(format!("the stream ended early: {error}"));
                    }
                });
                // A read from standard input cannot be woken up: nobody waits for this thread.
                thread.map(drop).map_err(while_doing("reading a stream"))?;
                return Ok(());
            }
            Source::Tcp { address, token } => {
                let doing = format!("listening on {address}");
                let (bound, thread) =
                    sockets::tcp(address, token, intake, stop).map_err(while_doing(doing))?;
                self.bound.push(bound);
                thread
            }
            Source::Unix(path) => {
                let doing = format!("listening on {}", path.display());
                sockets::unix(&path, intake, stop).map_err(while_doing(doing))?
            }
            Source::Http(options) => {
                let doing = format!("listening on http://{}", options.address);
                let (bound, thread) =
                    http::listen(options, intake, board.clone(), stop).map_err(while_doing(doing))?;
                self.bound.push(bound);
                thread
            }
            Source::Feed(open) => {
                let doing = "following the database";
                let feed = engine.place(FEED).map(|(place, _)| place);
                let feed = open(feed).map_err(while_doing(doing))?;
                let (failed, notes) = (Arc::clone(&self.failed), Arc::clone(notes));
                feed::follow(feed, intake, stop, failed, notes).map_err(while_doing(doing))?
            }
            Source::Broker(address) => {
                let place = engine.place(&Broker::source(&address));
                let (doing, notes) = (format!("reading {address}"), Arc::clone(notes));
                let opened = Broker::open(address, intake, stop, place);
                let (broker, client) = opened.map_err(while_doing(doing.clone()))?;
                std::thread::Builder::new()
                    .name("broker".to_owned())
                    .spawn(move || broker.run(client, &|note| notes(note)))
                    .map_err(while_doing(doing))?
            }
        };
        self.all.push(thread);
        Ok(())
    }
}

/// The engine's thread.
struct Worker {
    engine: Engine,
    syncer: Syncer,
    outflow: Outflow,
    outlets: Outlets,
    board: Board,
    stop: Arc<AtomicBool>,
    checkpoint_every: Duration,
    notes: Arc<dyn Fn(String) + Send + Sync>,
    given_up: Option<Arc<AtomicU64>>,
    started: Instant,
    refused: u64,
    checkpoints: u64,
    streams_only: bool,
    failed: Failed,
    gulp: usize,
    memory_max: Option<u64>,
    memory_minded: Instant,
}

impl Worker {
    fn work(mut self, found: &Told, sources: Vec<JoinHandle<()>>) -> Result<Ended, Trouble> {
        let result = self.run(found);
        let synced = self.syncer.finish().map_err(while_doing("writing the journal"));
        let result = result.and_then(|ended| synced.map(|()| ended));
        // Sources that wait for room must not wait for ever.
        self.stop.store(true, Ordering::Relaxed);
        let Self { outflow, outlets, .. } = self;
        drop(outflow);
        // One that waits for another machine is left behind: what it was sent is not acknowledged.
        let until = Instant::now() + SOURCES_END;
        for source in sources {
            while !source.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(2));
            }
            if source.is_finished() {
                let _ = source.join();
            }
        }
        outlets.finish();
        result
    }

    fn run(&mut self, found: &Told) -> Result<Ended, Trouble> {
        self.outlets.tell(&found.again).map_err(while_doing("writing findings"))?;
        self.tell(found)?;
        let mut sampled = (Instant::now(), self.engine.online().counters().received);
        let mut saved = Instant::now();
        let mut asked = None;
        let is_final = loop {
            let Some(batches) = self.outflow.take(TICK, self.gulp) else { break true };
            if self.is_to_end(&batches, &mut asked) {
                break false;
            }
            self.step(batches)?;
            let due = saved.elapsed() > self.checkpoint_every || self.engine.checkpoint_is_due();
            if due {
                self.checkpoint()?;
                saved = Instant::now();
            }
            let since = sampled.0.elapsed();
            if since >= Duration::from_secs(1) {
                sampled = self.sample(sampled.1, since);
            }
        };
        if is_final && self.streams_only && !self.stop.load(Ordering::Relaxed) {
            let told = self.engine.finish().map_err(while_doing("finishing"))?;
            self.tell(&told)?;
        } else {
            let told = self.engine.finish_join().map_err(while_doing("finishing"))?;
            self.tell(&told)?;
            self.checkpoint()?;
        }
        self.show();
        if let Some(error) = self.failed.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(Trouble { doing: "following the database".to_owned(), error });
        }
        Ok(Ended { status: self.board.status(), is_final, joined: self.engine.join_summary() })
    }

    /// Whether this is the end. Sources may bring more as fast as it is taken, so not everything is waited for.
    fn is_to_end(&self, batches: &[crate::Batch], asked: &mut Option<Instant>) -> bool {
        if !self.stop.load(Ordering::Relaxed) {
            return false;
        }
        let since = asked.get_or_insert_with(Instant::now).elapsed();
        if batches.is_empty() || since < LAST_BATCHES {
            return batches.is_empty();
        }
        let left = batches.len() + self.outflow.len();
        (self.notes)(format!(
            "{left} batches had arrived but were not checked; they were not acknowledged to their senders"
        ));
        true
    }

    /// Compares what the process takes with what it may, and lets the checker keep less or more. What the checker
    /// knows of its size is an estimate; this is the truth.
    fn mind_memory(&mut self) {
        let (Some(max), Some(state)) = (self.memory_max, self.engine.state_max()) else { return };
        if self.memory_minded.elapsed() < MEMORY_INTERVAL {
            return;
        }
        self.memory_minded = Instant::now();
        let taken = memory_bytes();
        if taken > max / 100 * 80 {
            self.engine.set_state_max((state / 8 * 7).max(STATE_MIN_BYTES));
        } else if taken < max / 100 * 65 {
            let most = usize::try_from(max / 2).unwrap_or(usize::MAX);
            self.engine.set_state_max((state + state / 32).min(most));
        }
    }

    fn step(&mut self, batches: Vec<crate::Batch>) -> Result<(), Trouble> {
        self.mind_memory();
        let now = Instant::now();
        let arrivals: Vec<(Instant, u64)> =
            batches.iter().map(|batch| (batch.arrived, batch.parsed.history.len() as u64)).collect();
        let mut told = match batches.is_empty() {
            true => self.engine.tick(now),
            false => self.engine.take(batches, now),
        }
        .map_err(while_doing("checking"))?;
        let done = Instant::now();
        for (arrived, count) in arrivals {
            self.board.delayed(count, done - arrived);
        }
        let waiting = std::mem::take(&mut told.waiting);
        match told.journal.take() {
            Some(journal) => self.syncer.put(journal, waiting).map_err(while_doing("writing the journal"))?,
            None => waiting.into_iter().for_each(|waiting| waiting.done()),
        }
        self.tell(&told)?;
        for refused in &told.refused {
            if self.refused < NOTES_MAX {
                (self.notes)(format!("rejected a line: {refused}"));
            }
            self.refused += 1;
        }
        self.show();
        Ok(())
    }

    fn tell(&mut self, told: &Told) -> Result<(), Trouble> {
        self.board.tell(&told.lines);
        self.board.tell_transactions(&told.transactions);
        if !told.lines.is_empty() {
            // What was found counts even if no one reads it any more.
            self.show();
        }
        self.outlets.tell(&told.lines).map_err(while_doing("writing findings"))?;
        self.engine.went_out().map_err(while_doing("recording reported findings"))
    }

    fn checkpoint(&mut self) -> Result<(), Trouble> {
        let told = self.engine.checkpoint().map_err(while_doing("writing a checkpoint"))?;
        self.tell(&told)?;
        self.checkpoints += 1;
        Ok(())
    }

    fn show(&self) {
        let online = self.engine.online();
        let (counters, size) = (online.counters(), online.size());
        let (spill_bytes, spill_memory) = self.engine.spilled();
        self.board.update(|status| {
            status.up_seconds = self.started.elapsed().as_secs_f64();
            status.received = counters.received;
            status.checked = counters.settled;
            status.operations = counters.operations;
            status.refused = self.refused;
            status.provisional = counters.provisional;
            status.flips = counters.flips;
            status.found =
                Kind::ALL.iter().zip(counters.found).map(|(kind, count)| (kind.name(), count)).collect();
            status.violations = self.engine.violations();
            status.queue = self.outflow.len();
            status.watermark = online.watermark().map(|time| time.to_string());
            status.newest = online.newest().map(|time| time.to_string());
            status.state_bytes = (size.bytes + spill_memory) as u64;
            status.spill_bytes = spill_bytes;
            status.evicted = counters.evicted;
            status.fetched = counters.fetched;
            status.transactions = size.transactions;
            status.keys = size.keys;
            status.open_results = size.open_results;
            status.hurried = self.engine.hurried();
            status.webhook_given_up = self.given_up.as_ref().map_or(0, |count| count.load(Ordering::Relaxed));
            status.checkpoints = self.checkpoints;
            status.workers = online.standings().iter().enumerate().map(WorkerStatus::new).collect();
        });
    }

    fn sample(&self, received_before: u64, since: Duration) -> (Instant, u64) {
        let memory = memory_bytes();
        self.board.update(|status| status.memory_bytes = memory);
        let status = self.board.status();
        self.board.sample(Sample {
            at: status.up_seconds,
            rate: (status.received - received_before) as f64 / since.as_secs_f64(),
            lag: 0.0,
            memory,
            spill: status.spill_bytes,
        });
        (Instant::now(), status.received)
    }
}

/// How many refused lines are noted one by one.
const NOTES_MAX: u64 = 20;
