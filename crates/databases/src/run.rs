//! Runs a workload against a database from many sessions and records what they see.
//!
//! One thread a session. Each transaction is begin, the plan's operations one after the other, commit;
//! what happens on a failure follows from its kind alone:
//!
//! ```text
//!                     before commit was sent     in commit
//!   Aborted           aborted                    aborted
//!   Lost, Silent      aborted, reconnect         unknown, reconnect
//!   Mistake           the run stops              the run stops
//! ```
//!
//! A connection that is lost before COMMIT was sent leaves no effect: the server rolls back. A server that gave no answer
//! and takes no connection either hangs: a throw-away server is replaced, with its data, and the run goes on; any other
//! ends the run.

use crate::driver::{Access, Database, Failure, Fault, Session};
use crate::gate::Gate;
use crate::isolation::Isolation;
use crate::schema::Schema;
use history::{Lock, Name, Status};
use record::{RecordError, Recorder, Tracer};
use record::{Request, Response, Value};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use workload::Random;

/// A workload: a table, its first contents, and what each session does.
pub trait Plan: Sync {
    /// How many sessions it has something to do for.
    fn sessions_max(&self) -> usize {
        usize::MAX
    }
    /// The table it needs.
    fn schema(&self) -> Schema;
    /// The values before the first transaction.
    fn initial(&self) -> Vec<(Name, Value)>;
    /// What the session of this number does, from 0.
    fn client(&self, session: usize) -> Box<dyn Client + '_>;
}

/// What one session does: transactions, step by step, so that later operations can depend on answers.
pub trait Client: Send {
    /// Goes on to the next transaction; `false` if there is none left.
    fn next_transaction(&mut self) -> bool;
    /// What this transaction intends.
    fn access(&self) -> Access {
        Access::ReadWrite
    }
    /// The next step, given the answer to the last one of this transaction.
    fn step(&mut self, last: Option<&Response>) -> Step;
}

/// The next thing to do in a transaction.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Issue an operation.
    Call(Request),
    /// Commit.
    Commit,
    /// Give up on purpose.
    Rollback,
}

/// How to run a workload.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How many connections.
    pub sessions: usize,
    /// How many transactions to attempt, over all sessions; `None`: until the time is up.
    pub transactions: Option<u64>,
    /// When to stop. Time in which a fault kept the server down does not count.
    pub duration: Option<Duration>,
    /// The level to ask for; `None`: the strongest.
    pub isolation: Option<Isolation>,
    /// How long a session waits between transactions.
    pub think: Duration,
    /// One transaction in four waits before each of its operations, at random up to this long: it stays
    /// open while others begin and commit.
    pub pause: Duration,
    /// How many transactions a session may be ahead of the slowest; `None`: as far as it gets. Workloads
    /// that move from keys to keys as they go on meet only if sessions stay together.
    pub lead_max: Option<u64>,
    /// Disturbances, each at its time after the start.
    pub faults: Vec<(Duration, Fault)>,
    /// How long to try to connect again after a connection was lost.
    pub reconnect: Duration,
    /// Counters to watch, and the switch that stops the run.
    pub progress: Arc<Progress>,
    /// Lets somebody look at the database while no transaction is open.
    pub gate: Arc<Gate>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            sessions: 8,
            transactions: Some(1000),
            duration: None,
            isolation: None,
            think: Duration::ZERO,
            pause: Duration::ZERO,
            lead_max: None,
            faults: Vec::new(),
            reconnect: Duration::from_secs(30),
            progress: Arc::default(),
            gate: Arc::default(),
        }
    }
}

/// How far a run is. Shared with whoever draws the progress bar.
#[derive(Debug, Default)]
pub struct Progress {
    committed: AtomicU64,
    aborted: AtomicU64,
    unknown: AtomicU64,
    operations: AtomicU64,
    stop: AtomicBool,
    notes: Mutex<Vec<String>>,
}

impl Progress {
    /// Ends the run after the transactions in flight.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked for the end.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// What is to be reported about the run since the last call.
    pub fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn note(&self, note: String) {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).push(note);
    }

    /// The counters now.
    pub fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            committed: get(&self.committed),
            aborted: get(&self.aborted),
            unknown: get(&self.unknown),
            operations: get(&self.operations),
        }
    }

    fn count(&self, status: Status, operations: u64) {
        let counter = match status {
            Status::Committed => &self.committed,
            Status::Aborted => &self.aborted,
            Status::Unknown => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        self.operations.fetch_add(operations, Ordering::Relaxed);
    }
}

/// Transactions by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// That took effect.
    pub committed: u64,
    /// That did not.
    pub aborted: u64,
    /// Nobody knows.
    pub unknown: u64,
    /// Operations of all of them.
    pub operations: u64,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Transactions by outcome.
    pub counts: Counts,
    /// How long the sessions worked.
    pub elapsed: Duration,
    /// Disturbances that were really inflicted.
    pub faults: Vec<Fault>,
}

/// Why a run stopped before its end. What was recorded until then stays.
#[derive(Debug)]
pub enum RunError {
    /// A session could not go on.
    Session(Failure),
    /// The history could not be recorded.
    Record(RecordError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(failure) => write!(f, "the run stopped: {failure}"),
            Self::Record(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Failure> for RunError {
    fn from(failure: Failure) -> Self {
        Self::Session(failure)
    }
}

impl From<RecordError> for RunError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// Runs a workload. The table must have been made with [`Database::create`].
pub fn run(
    database: &dyn Database,
    plan: &dyn Plan,
    recorder: &Recorder,
    options: &RunOptions,
) -> Result<Summary, RunError> {
    let clock = Clock { start: Instant::now(), down_ns: AtomicU64::new(0) };
    let replaced: Mutex<Option<Instant>> = Mutex::new(None);
    let first_error: Mutex<Option<RunError>> = Mutex::new(None);
    let schema = plan.schema();
    let isolation = isolation(database, options)?;
    if options.sessions > plan.sessions_max() {
        let message = format!(
            "{} sessions for a plan of {}: ask the plan for as many",
            options.sessions,
            plan.sessions_max()
        );
        return Err(Failure::mistake(message).into());
    }
    let pace = Pace::new(options);
    let inflicted = thread::scope(|scope| {
        let workers: Vec<_> = (0..options.sessions)
            .map(|session| {
                let worker = Worker {
                    database,
                    schema: &schema,
                    isolation,
                    options,
                    clock: &clock,
                    replaced: &replaced,
                    place: pace.join(session),
                    left: options.transactions.map(|all| share(all, options.sessions, session)),
                    tracer: recorder.tracer(Name::Int(session as i64 + 1)),
                    random: Random::new(session as u64),
                };
                let client = plan.client(session);
                let first_error = &first_error;
                scope.spawn(move || {
                    if let Err(error) = worker.work(client) {
                        options.progress.stop();
                        first_error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                })
            })
            .collect();
        let done = || workers.iter().all(thread::ScopedJoinHandle::is_finished);
        inflict_faults(database, options, &clock, done)
    });
    let elapsed = clock.start.elapsed();
    match first_error.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(Summary { counts: options.progress.counts(), elapsed, faults: inflicted? }),
    }
}

fn isolation(database: &dyn Database, options: &RunOptions) -> Result<Isolation, Failure> {
    options
        .isolation
        .or_else(|| database.isolations().last().copied())
        .ok_or_else(|| Failure::mistake(format!("{} offers no isolation level", database.name())))
}

/// The part of `all` that falls to one of several sessions.
fn share(all: u64, sessions: usize, session: usize) -> u64 {
    let (sessions, session) = (sessions as u64, session as u64);
    all / sessions + u64::from(session < all % sessions)
}

fn inflict_faults(
    database: &dyn Database,
    options: &RunOptions,
    clock: &Clock,
    done: impl Fn() -> bool,
) -> Result<Vec<Fault>, Failure> {
    let mut inflicted = Vec::new();
    let mut faults = options.faults.clone();
    faults.sort_by_key(|(when, _)| *when);
    for (when, fault) in faults {
        while clock.elapsed() < when {
            if done() || options.progress.stopped() {
                return Ok(inflicted);
            }
            thread::sleep(Duration::from_millis(5).min(when.saturating_sub(clock.elapsed())));
        }
        match clock.paused(|| database.inflict(fault)) {
            Ok(true) => inflicted.push(fault),
            Ok(false) => {}
            Err(failure) => {
                options.progress.stop();
                return Err(failure);
            }
        }
    }
    Ok(inflicted)
}

/// The time of a run, without the time in which the server was down.
struct Clock {
    start: Instant,
    down_ns: AtomicU64,
}

impl Clock {
    fn elapsed(&self) -> Duration {
        let down = Duration::from_nanos(self.down_ns.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(down)
    }

    fn paused<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let took = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.down_ns.fetch_add(took, Ordering::Relaxed);
        result
    }
}

/// Keeps sessions together: how many transactions each has done.
struct Pace {
    lead_max: Option<u64>,
    done: Vec<AtomicU64>,
}

impl Pace {
    fn new(options: &RunOptions) -> Self {
        let done = (0..options.sessions).map(|_| AtomicU64::new(0)).collect();
        Self { lead_max: options.lead_max, done }
    }

    fn join(&self, session: usize) -> Place<'_> {
        Place { pace: self, session, done: 0 }
    }

    fn slowest(&self) -> u64 {
        self.done.iter().map(|done| done.load(Ordering::Relaxed)).min().unwrap_or(u64::MAX)
    }
}

/// One session's place among the others. Whoever leaves is waited for no longer.
struct Place<'a> {
    pace: &'a Pace,
    session: usize,
    done: u64,
}

impl Place<'_> {
    /// Waits until the slowest session is near enough.
    fn wait(&self, stopped: impl Fn() -> bool) {
        let Some(lead_max) = self.pace.lead_max else { return };
        while self.done > self.pace.slowest().saturating_add(lead_max) && !stopped() {
            thread::sleep(Duration::from_micros(200));
        }
    }

    fn advance(&mut self) {
        self.done += 1;
        self.pace.done[self.session].store(self.done, Ordering::Relaxed);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.pace.done[self.session].store(u64::MAX, Ordering::Relaxed);
    }
}

/// One session's thread.
struct Worker<'a> {
    database: &'a dyn Database,
    schema: &'a Schema,
    isolation: Isolation,
    options: &'a RunOptions,
    clock: &'a Clock,
    /// When the server was replaced last because it hung.
    replaced: &'a Mutex<Option<Instant>>,
    place: Place<'a>,
    left: Option<u64>,
    tracer: Tracer,
    random: Random,
}

/// How a transaction ended, before it is written down.
struct Ending {
    status: Status,
    /// Whether the connection is still good.
    connected: bool,
    /// What stops the run.
    mistake: Option<Failure>,
}

impl Worker<'_> {
    fn work(mut self, mut client: Box<dyn Client + '_>) -> Result<(), RunError> {
        let inside = self.options.gate.enter();
        let mut session = self.database.connect(self.schema)?;
        while self.goes_on() && client.next_transaction() {
            inside.pass();
            self.place.wait(|| {
                inside.pass();
                self.options.progress.stopped()
            });
            let ending = self.transaction(&mut *session, &mut *client);
            let operations = self.tracer.operations();
            self.tracer.write(ending.status)?;
            self.options.progress.count(ending.status, operations);
            if let Some(failure) = ending.mistake {
                return Err(failure.into());
            }
            if !ending.connected {
                session = self.reconnect()?;
            }
            if !self.options.think.is_zero() {
                thread::sleep(self.options.think);
            }
            self.place.advance();
        }
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        if self.options.progress.stopped()
            || self.options.duration.is_some_and(|end| self.clock.elapsed() >= end)
        {
            return false;
        }
        match &mut self.left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    fn transaction(&mut self, session: &mut dyn Session, client: &mut dyn Client) -> Ending {
        self.tracer.begin();
        let ending = match self.operations(session, client) {
            Ok(Step::Commit) => {
                self.tracer.committing();
                match session.commit() {
                    Ok(()) => Ending { status: Status::Committed, connected: true, mistake: None },
                    Err(failure) => self.failed(session, failure, true),
                }
            }
            Ok(_) => match session.rollback() {
                Ok(()) => Ending { status: Status::Aborted, connected: true, mistake: None },
                Err(failure) => self.failed(session, failure, false),
            },
            Err(failure) => self.failed(session, failure, false),
        };
        self.tracer.note_end();
        if ending.connected {
            self.tracer.stamp(session.stamp());
        }
        ending
    }

    /// Begins and issues the plan's operations, up to its decision.
    fn operations(&mut self, session: &mut dyn Session, client: &mut dyn Client) -> Result<Step, Failure> {
        let pauses = !self.options.pause.is_zero() && self.random.chance(0.25);
        session.begin(&self.isolation, client.access())?;
        let mut last: Option<Response> = None;
        loop {
            let mut request = match client.step(last.as_ref()) {
                Step::Call(request) => request,
                decision => return Ok(decision),
            };
            if let Request::Read { lock, .. } = &mut request
                && !session.locks()
            {
                *lock = Lock::None;
            }
            if pauses {
                let pause_us = u64::try_from(self.options.pause.as_micros()).unwrap_or(u64::MAX - 1);
                thread::sleep(Duration::from_micros(self.random.below(pause_us + 1)));
            }
            self.tracer.call(request.clone());
            let answer = session.execute(&request);
            if let Ok(answer) = &answer {
                self.tracer.answer(answer.clone());
            }
            self.tracer.statement(session.statement());
            last = Some(answer?);
        }
    }

    fn failed(&mut self, session: &mut dyn Session, failure: Failure, in_commit: bool) -> Ending {
        self.tracer.failed(&failure);
        let unanswered = if in_commit { Status::Unknown } else { Status::Aborted };
        match failure {
            Failure::Lost { .. } | Failure::Silent { .. } | Failure::Unreachable { .. } => {
                Ending { status: unanswered, connected: false, mistake: None }
            }
            Failure::Aborted { .. } => {
                let connected = session.rollback().is_ok();
                Ending { status: Status::Aborted, connected, mistake: None }
            }
            mistake => Ending { status: unanswered, connected: false, mistake: Some(mistake) },
        }
    }

    /// Connects again; a server that is being restarted gets some time.
    fn reconnect(&self) -> Result<Box<dyn Session>, Failure> {
        let mut give_up = Instant::now() + self.options.reconnect;
        let mut wait = Duration::from_millis(5);
        loop {
            let asked = Instant::now();
            match self.database.connect(self.schema) {
                Ok(session) => return Ok(session),
                Err(failure @ Failure::Silent { .. }) => {
                    self.replace(asked, failure)?;
                    give_up = Instant::now() + self.options.reconnect;
                }
                Err(failure) if Instant::now() >= give_up || self.options.progress.stopped() => {
                    return Err(failure);
                }
                Err(_) => thread::sleep(wait),
            }
            wait = (wait * 2).min(Duration::from_millis(250));
        }
    }

    /// Replaces a server that hangs, if it is ours: one session does, the others wait for that.
    fn replace(&self, asked: Instant, hangs: Failure) -> Result<(), Failure> {
        let mut replaced = self.replaced.lock().unwrap_or_else(PoisonError::into_inner);
        if replaced.is_some_and(|when| when >= asked) {
            return Ok(());
        }
        if self.options.progress.stopped()
            || !self.clock.paused(|| self.database.inflict(Fault::KillServer))?
        {
            return Err(hangs);
        }
        *replaced = Some(Instant::now());
        self.options.progress.note(format!("{hangs} to a new connection: the server hung and was replaced"));
        Ok(())
    }
}
