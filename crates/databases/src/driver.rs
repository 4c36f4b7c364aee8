//! The one trait that every database stands behind.
//!
//! A [`Database`] hands out [`Session`]s; a session runs one transaction at a time, with blocking calls,
//! from one thread. What goes wrong is a [`Failure`], and which of its three kinds it is decides the
//! recorded outcome: the runner never looks at vendors' codes.

use crate::isolation::Isolation;
use crate::matrix::Scripted;
use crate::schema::Schema;
use history::Name;
use record::{Request, Response, Stamp, Value};
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A database that can be connected to any number of times.
pub trait Database: Send + Sync {
    /// The product and its version, for people.
    fn name(&self) -> String;

    /// The isolation levels it offers, strongest last.
    fn isolations(&self) -> &'static [Isolation];

    /// Makes an empty table for the workload (dropping an older one) and fills in the initial values.
    fn create(&self, schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure>;

    /// Opens a connection.
    fn connect(&self, schema: &Schema) -> Result<Box<dyn Session>, Failure>;

    /// Makes sessions opened from now on ask for the database's own timestamps at this level. Fails with
    /// the reason where the database or the level cannot give them.
    fn enable_timestamps(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        let _ = isolation;
        Err(Failure::mistake(format!("{} does not report timestamps to clients", self.name())))
    }

    /// Turns what sessions were told into start and commit timestamps, when all of them are done; in the
    /// order of `stamps`.
    fn timestamps(&self, stamps: &[Option<Stamp>]) -> Result<Vec<Option<(i64, i64)>>, Failure> {
        Ok(vec![None; stamps.len()])
    }

    /// The same database for scripts in its own language, if it has one.
    fn scripted(&self) -> Option<&dyn Scripted> {
        None
    }

    /// How long the server may take to answer from now on. What runs in this process answers.
    fn set_limit(&mut self, limit: Limit) {
        let _ = limit;
    }

    /// Statements that take away what this program would leave in the database if it were killed now.
    fn leftovers(&self) -> Vec<String> {
        Vec::new()
    }

    /// The last lines that the server wrote into its log, where it is ours.
    fn log_end(&self) -> Option<String> {
        None
    }

    /// Whether a fault can be inflicted at all.
    fn can_suffer(&self, fault: Fault) -> bool {
        let _ = fault;
        false
    }

    /// Disturbs the database, where it can be: see [`Fault`]. Answers whether the fault was inflicted.
    fn inflict(&self, fault: Fault) -> Result<bool, Failure> {
        let _ = fault;
        Ok(false)
    }
}

/// How long a server may take to answer before it is taken to hang.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// A statement, with what it waits for locks; `None`: as long as it takes.
    pub(crate) statement: Option<Duration>,
    /// A new connection.
    pub(crate) connect: Duration,
    /// Once this is set, neither is waited for longer than [`HURRY`].
    hurry: Option<&'static AtomicBool>,
}

/// How long an answer may take when the program is to end: what a server at work needs to end what is open.
const HURRY: Duration = Duration::from_millis(500);
/// How often one who waits looks whether that is so.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A hundred seconds: longer than servers let a statement wait for a lock.
const PATIENCE: Duration = Duration::from_secs(100);

impl Limit {
    /// Both within so much time, one after the other: a session that gave up a statement asks by a new connection whether
    /// the server is there at all.
    pub fn within(patience: Duration) -> Self {
        let connect = (patience / 4).min(Duration::from_secs(20));
        Self { statement: Some(patience - connect), connect, hurry: None }
    }

    /// The same until this is set; then half a second is enough.
    pub fn hurried_by(self, flag: &'static AtomicBool) -> Self {
        Self { hurry: Some(flag), ..self }
    }

    /// The same without a limit on statements.
    pub(crate) fn for_connecting(self) -> Self {
        Self { statement: None, ..self }
    }

    /// Waits for an answer.
    pub(crate) async fn wait<T>(
        self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match (self.statement, self.hurry) {
            (None, None) => answer.await,
            (time, _) => self.patiently(time.unwrap_or(Duration::MAX), answer).await,
        }
    }

    /// Waits for a connection.
    pub(crate) async fn connecting<T>(
        self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        self.patiently(self.connect, answer).await
    }

    async fn patiently<T>(
        self,
        time: Duration,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let Some(hurry) = self.hurry else {
            return tokio::time::timeout(time, answer).await.unwrap_or_else(|_| Err(Failure::silent(time)));
        };
        let mut answer = pin!(answer);
        let (began, mut hurried) = (Instant::now(), None);
        loop {
            let left = time.saturating_sub(began.elapsed()).min(LOOK_EVERY);
            if let Ok(answer) = tokio::time::timeout(left, &mut answer).await {
                return answer;
            }
            if hurried.is_none() && hurry.load(Ordering::Relaxed) {
                hurried = Some(Instant::now());
            }
            let is_over = hurried.is_some_and(|since: Instant| since.elapsed() >= HURRY);
            if is_over || began.elapsed() >= time {
                return Err(Failure::silent(began.elapsed()));
            }
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::within(PATIENCE)
    }
}

/// What a transaction intends to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only to read.
    ReadOnly,
    /// Perhaps to write, too.
    #[default]
    ReadWrite,
}

/// A connection.
pub trait Session: Send {
    /// Begins a transaction. `access` is what the client intends; databases that begin both kinds alike
    /// may ignore it.
    fn begin(&mut self, isolation: &Isolation, access: Access) -> Result<(), Failure>;

    /// Issues one operation inside the transaction.
    fn execute(&mut self, request: &Request) -> Result<Response, Failure>;

    /// Commits.
    fn commit(&mut self) -> Result<(), Failure>;

    /// Rolls back, also after a failure; a session without a transaction stays as it is.
    fn rollback(&mut self) -> Result<(), Failure>;

    /// What was sent last, in the vendor's language; `None` for stores without one.
    fn statement(&self) -> Option<&str> {
        None
    }

    /// Whether a lock that a read asks for is really taken.
    fn locks(&self) -> bool {
        false
    }

    /// What the database said of the transaction that just ended and its place among the others;
    /// kept with the transaction until the run is over and places can be turned into timestamps.
    fn stamp(&mut self) -> Option<Stamp> {
        None
    }
}

/// A way to disturb a database in mid-run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Cuts one connection from the server's side.
    KillConnection,
    /// Kills the server with SIGKILL and starts it again.
    KillServer,
    /// Stops the server and starts it again.
    RestartServer,
    /// Suspends the server for a moment.
    PauseServer,
}

impl Fault {
    /// All faults with the way they are written.
    pub const ALL: [(&'static str, Self); 4] = [
        ("kill-connection", Self::KillConnection),
        ("kill-server", Self::KillServer),
        ("restart-server", Self::RestartServer),
        ("pause-server", Self::PauseServer),
    ];

    /// The way it is written.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, fault)| *fault == self).map_or("", |(name, _)| name)
    }
}

/// Tries for a second or so, until it worked.
pub(crate) fn try_repeatedly(mut attempt: impl FnMut() -> Result<bool, Failure>) -> Result<bool, Failure> {
    for _ in 0..100 {
        if attempt()? {
            return Ok(true);
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(false)
}

/// Why an operation did not go through, by what it means for the transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The database refused, and said so: the transaction has no effect. Serialization failures,
    /// deadlocks, lock time-outs, unique violations.
    Aborted {
        /// The vendor's code.
        code: String,
        /// The vendor's words.
        message: String,
    },
    /// The connection broke. A commit may or may not have taken effect.
    Lost {
        /// The vendor's words.
        message: String,
    },
    /// The server gave no answer in time: it hangs, or the statement waits for a lock. The connection is given up; in a
    /// commit, it is not known whether it took effect.
    Silent {
        /// What was not answered, and how long that was waited for.
        message: String,
    },
    /// No connection could be made.
    Unreachable {
        /// The server: `127.0.0.1:5432`, or the path of a socket.
        server: String,
        /// Why.
        cause: String,
    },
    /// A mistake that trying again does not cure: wrong SQL, no such user, no space left.
    Mistake {
        /// What is wrong, and what to do about it.
        message: String,
    },
}

impl Failure {
    /// A mistake, said in a sentence.
    pub fn mistake(message: impl Into<String>) -> Self {
        Self::Mistake { message: message.into() }
    }

    /// A lost connection.
    pub fn lost(message: impl Into<String>) -> Self {
        Self::Lost { message: message.into() }
    }

    /// No answer in so much time.
    pub(crate) fn silent(time: Duration) -> Self {
        Self::Silent { message: format!("the server gave no answer in {:.1} s", time.as_secs_f64()) }
    }

    /// A connection attempt to a server that failed.
    pub(crate) fn unreachable(server: String, error: &(dyn std::error::Error + 'static)) -> Self {
        let causes = || std::iter::successors(Some(error), |error| error.source());
        let mut said: Vec<String> = causes().map(ToString::to_string).collect();
        said.dedup();
        // The kind says it without the number: "connection refused".
        let io = causes().filter_map(|error| error.downcast_ref::<std::io::Error>()).last();
        let is_known = |error: &&std::io::Error| error.raw_os_error().is_some();
        let mut cause = io.filter(is_known).map_or_else(|| said.join(": "), |error| error.kind().to_string());
        // Wrapped errors repeat what wraps them, and only the last part says what is wrong.
        if let Some(at) = cause.find("failed to lookup address information") {
            cause = format!("unknown host name ({})", cause.split_off(at));
        }
        Self::Unreachable { server, cause }
    }

    /// Whether it is a refusal for the sake of a constraint, which trying again meets again; other refusals
    /// are for the sake of other transactions.
    pub fn is_constraint(&self) -> bool {
        match self {
            Self::Aborted { code, .. } => {
                code.starts_with("23") || code == "1062" || code == "SQLITE_CONSTRAINT"
            }
            _ => false,
        }
    }

    /// A refusal.
    pub fn aborted(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Aborted { code: code.into(), message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Aborted { code, message } => write!(f, "aborted by the database ({code}): {message}"),
            Self::Lost { message } => write!(f, "connection lost: {message}"),
            Self::Unreachable { server, cause } => write!(f, "cannot connect to {server}: {cause}"),
            Self::Silent { message } | Self::Mistake { message } => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}
