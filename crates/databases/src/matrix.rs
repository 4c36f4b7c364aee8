//! The anomaly matrix: scripted schedules, each at each level of a live database, seen against expected.
//!
//! The schedules are those that hermitage made known (github.com/ept/hermitage), run by a machine. Each has
//! two or three sessions and one order of steps. A session that waits for a lock is recognised from what
//! the server itself says of it, never from a time-out, and after every step all waiting sessions are looked
//! at again, until each has either answered or is said to wait still. Without that the matrix flickers.
//!
//! Steps of the one scheduling thread:
//!
//! 1. Make the table, open the sessions (one thread each), begin their transactions.
//! 2. Send the next step to its session. If that session still waits for an earlier one, put the step into
//!    its queue instead.
//! 3. Wait until it has answered or waits for a lock.
//! 4. Look at the waiting sessions again; one that has answered gets the steps from its queue.
//! 5. A step that fails ends its session's transaction.
//! 6. At the end read the table; the schedule's own rule says whether the anomaly occurred.

mod schedules;

pub use schedules::{SCHEDULES, Schedule};

use crate::driver::{Database, Failure, Fault, Limit};
use crate::grammar::Grammar;
use crate::isolation::Isolation;
use record::Value;
use schedules::{Act, Step};
use std::collections::VecDeque;
use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A database whose sessions can be scripted in its own language.
pub trait Scripted {
    /// How long the server may take to answer.
    fn limit(&self) -> Limit {
        Limit::default()
    }

    /// Opens a connection that takes statements as they are.
    fn console(&self) -> Result<Box<dyn Console>, Failure>;

    /// Whether the session of this id waits for a lock now; `observer` is another connection.
    fn is_waiting(&self, observer: &mut dyn Console, id: i64) -> Result<bool, Failure>;

    /// What follows the closing parenthesis of CREATE TABLE.
    fn table_options(&self) -> &'static str {
        self.grammar().table_options
    }

    /// What statements may say.
    fn grammar(&self) -> &'static Grammar;

    /// Makes a connection prefer speed to durability, where nobody's data is at stake.
    fn hurry(&self, console: &mut dyn Console) {
        let _ = console;
    }

    /// What the server wrote into its log from a place on, and where it ends now. Nothing where the log is not ours.
    fn log_from(&self, place: u64) -> (String, u64) {
        (String::new(), place)
    }

    /// Whether a statement may wait for another session. If not, sessions need no threads.
    fn waits(&self) -> bool {
        true
    }
}

/// A connection that takes statements as they are.
pub trait Console: Send {
    /// The name of the connection in the server's own lists.
    fn id(&self) -> i64;
    /// Begins a transaction.
    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure>;
    /// Sends a statement; the answer is its rows, none for statements that have none.
    fn send(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure>;

    /// From now on statements may take as long as they do: the sender watches them.
    fn be_patient(&mut self) {}

    /// The same for statements of any kind: values of types that have no [`Value`] of their own come as text.
    fn answer(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        self.send(sql)
    }
}

/// Which anomalies a database showed, level by level.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The product and its version.
    pub database: String,
    /// The levels, weakest first: one column each.
    pub levels: Vec<Isolation>,
    /// One row a schedule.
    pub rows: Vec<MatrixRow>,
}

/// One schedule at every level.
#[derive(Clone, Debug)]
pub struct MatrixRow {
    /// The schedule.
    pub schedule: &'static Schedule,
    /// What happened, level by level.
    pub cells: Vec<Cell>,
}

/// One schedule at one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// Whether the anomaly occurred.
    pub seen: bool,
    /// Whether it is known to occur there.
    pub expected: bool,
    /// Every step and what came of it, in the order in which they were sent.
    pub trace: Vec<TraceLine>,
}

impl Cell {
    /// Whether the database did something else than expected.
    pub fn is_surprising(&self) -> bool {
        self.expected != self.seen
    }
}

/// A step and what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceLine {
    /// The session, from 1.
    pub session: usize,
    /// What was sent.
    pub sent: String,
    /// Whether it had to wait for another session.
    pub waited: bool,
    /// The rows that came back, or the failure.
    pub outcome: Result<Vec<Vec<Value>>, Failure>,
}

impl fmt::Display for TraceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T{}: {}", self.session, self.sent)?;
        if self.waited {
            f.write_str("  [waits]")?;
        }
        match &self.outcome {
            Ok(rows) if rows.is_empty() => Ok(()),
            Ok(rows) => {
                f.write_str("  → ")?;
                for (index, row) in rows.iter().enumerate() {
                    let cells: Vec<String> = row.iter().map(show).collect();
                    write!(f, "{}{}", if index > 0 { ", " } else { "" }, cells.join(" => "))?;
                }
                Ok(())
            }
            Err(failure) => write!(f, "  → {failure}"),
        }
    }
}

fn show(value: &Value) -> String {
    match value {
        Value::Int(value) => value.to_string(),
        Value::Text(text) => text.clone(),
        other => format!("{other:?}"),
    }
}

impl Matrix {
    /// The cells that are not as expected, with their schedule and level.
    pub fn surprises(&self) -> impl Iterator<Item = (&'static Schedule, &Isolation, &Cell)> {
        self.rows.iter().flat_map(|row| {
            let cells = row.cells.iter().zip(&self.levels);
            cells.filter(|(cell, _)| cell.is_surprising()).map(|(cell, level)| (row.schedule, level, cell))
        })
    }
}

/// What becomes known while a matrix is filled in.
#[derive(Clone, Debug)]
pub enum MatrixNews {
    /// So many schedules of so many are done.
    Done(usize, usize),
    /// The server hung or went away, for this reason, and was replaced; the schedule is played again.
    Replaced(Failure),
}

/// Runs every schedule at every level. A throw-away server that hangs or goes away is replaced.
pub fn matrix(database: &dyn Database, mut tell: impl FnMut(MatrixNews)) -> Result<Matrix, Failure> {
    let scripted = database.scripted().ok_or_else(|| {
        Failure::mistake(format!(
            "{} does not speak SQL; `taipan matrix` needs a SQL database",
            database.name()
        ))
    })?;
    let levels = database.isolations().to_vec();
    let all = SCHEDULES.len() * levels.len();
    let mut rows = Vec::new();
    for schedule in SCHEDULES {
        let mut cells = Vec::new();
        for isolation in &levels {
            tell(MatrixNews::Done(rows.len() * levels.len() + cells.len(), all));
            cells.push(cell_again(database, scripted, schedule, isolation, &mut tell)?);
        }
        rows.push(MatrixRow { schedule, cells });
    }
    tell(MatrixNews::Done(all, all));
    // What is seen stands, whether or not the table goes.
    let _ = scripted.console().and_then(|mut console| console.send(MATRIX_LEFTOVER));
    Ok(Matrix { database: database.name(), levels, rows })
}

const TABLE: &str = "taipan_matrix";
/// The statement that takes away what the matrix leaves in a database.
pub const MATRIX_LEFTOVER: &str = "DROP TABLE IF EXISTS taipan_matrix";
/// How often a server is replaced for one schedule.
const REPLACED_MAX: usize = 2;

/// Runs one schedule at one level; again, if the server had to be replaced.
fn cell_again(
    database: &dyn Database,
    scripted: &dyn Scripted,
    schedule: &Schedule,
    isolation: &Isolation,
    tell: &mut impl FnMut(MatrixNews),
) -> Result<Cell, Failure> {
    let mut replaced = 0;
    loop {
        match cell(scripted, schedule, isolation) {
            Err(failure @ (Failure::Silent { .. } | Failure::Lost { .. } | Failure::Unreachable { .. }))
                if replaced < REPLACED_MAX =>
            {
                replaced += 1;
                if !database.inflict(Fault::KillServer)? {
                    return Err(failure);
                }
                tell(MatrixNews::Replaced(failure));
            }
            done => return done,
        }
    }
}

/// Runs one schedule at one level.
pub fn cell(scripted: &dyn Scripted, schedule: &Schedule, isolation: &Isolation) -> Result<Cell, Failure> {
    let mut observer = scripted.console()?;
    let options = scripted.table_options();
    observer.send(MATRIX_LEFTOVER)?;
    observer.send(&format!("CREATE TABLE {TABLE} (id INT PRIMARY KEY, value INT NOT NULL) {options}"))?;
    observer.send(&format!("INSERT INTO {TABLE} VALUES (1, 10), (2, 20)"))?;
    let count = schedule.steps.iter().map(|step| step.session).max().unwrap_or(0);
    let sessions = (0..count).map(|_| Actor::start(scripted, isolation)).collect::<Result<_, _>>()?;
    let patience = scripted.limit().statement.unwrap_or(STEP_MAX);
    let mut play = Play { scripted, observer, sessions, patience, trace: Vec::new() };
    for step in schedule.steps {
        play.step(step)?;
    }
    let (observed, trace) = play.end()?;
    let expected = isolation.is_known_to_show(schedule.name);
    Ok(Cell { seen: (schedule.occurred)(&observed), expected, trace })
}

/// What a schedule's rule judges by.
#[derive(Debug)]
pub(crate) struct Observed {
    /// Which sessions committed.
    committed: Vec<bool>,
    /// The rows of each session's reads, in order, as id and value.
    reads: Vec<Vec<Rows>>,
    /// The table at the end.
    last: Rows,
}

/// Ids with values, ascending.
type Rows = Vec<(i64, i64)>;

impl Observed {
    fn committed(&self, session: usize) -> bool {
        self.committed[session - 1]
    }

    /// The `number`-th read of a session, from 0; nothing if it did not come to that.
    fn read(&self, session: usize, number: usize) -> Option<&Rows> {
        self.reads[session - 1].get(number)
    }

    /// The value at an id, in the `number`-th read of a session.
    fn value(&self, session: usize, number: usize, id: i64) -> Option<i64> {
        value_in(self.read(session, number)?, id)
    }
}

fn value_in(rows: &Rows, id: i64) -> Option<i64> {
    rows.iter().find(|(other, _)| *other == id).map(|(_, value)| *value)
}

type Reply = Result<Vec<Vec<Value>>, Failure>;

/// A session's thread and what the scheduler knows of it.
struct Actor {
    id: i64,
    send: Sender<String>,
    replies: Receiver<Reply>,
    thread: JoinHandle<()>,
    state: State,
    /// The trace line of the step that has not answered.
    waiting: Option<usize>,
    queue: VecDeque<&'static Step>,
    reads: Vec<Rows>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    Committed,
    Aborted,
}

impl Actor {
    fn start(scripted: &dyn Scripted, isolation: &Isolation) -> Result<Self, Failure> {
        let mut console = scripted.console()?;
        let id = console.id();
        // A database may refuse a second writer from the start: its session takes no part then.
        let state = match console.begin(isolation) {
            Ok(()) => State::Running,
            Err(Failure::Aborted { .. }) => State::Aborted,
            Err(failure) => return Err(failure),
        };
        let (send, orders) = channel::<String>();
        let (answer, replies) = channel();
        console.be_patient();
        let thread = thread::spawn(move || {
            while let Ok(sql) = orders.recv() {
                if answer.send(console.send(&sql)).is_err() {
                    break;
                }
            }
        });
        let queue = VecDeque::new();
        Ok(Self { id, send, replies, thread, state, waiting: None, queue, reads: Vec::new() })
    }
}

/// A schedule being played.
struct Play<'s> {
    scripted: &'s dyn Scripted,
    observer: Box<dyn Console>,
    sessions: Vec<Actor>,
    patience: Duration,
    trace: Vec<TraceLine>,
}

/// No step takes longer than this, unless it waits for a lock.
const STEP_MAX: Duration = Duration::from_secs(60);

impl Play<'_> {
    fn step(&mut self, step: &'static Step) -> Result<(), Failure> {
        let session = step.session - 1;
        if self.sessions[session].waiting.is_some() {
            self.sessions[session].queue.push_back(step);
            return Ok(());
        }
        self.send(session, step)?;
        self.settle()
    }

    fn send(&mut self, session: usize, step: &Step) -> Result<(), Failure> {
        if self.sessions[session].state != State::Running {
            return Ok(());
        }
        let sql = step.sql();
        let line =
            TraceLine { session: session + 1, sent: sql.clone(), waited: false, outcome: Ok(Vec::new()) };
        self.trace.push(line);
        let actor = &mut self.sessions[session];
        actor.waiting = Some(self.trace.len() - 1);
        actor.send.send(sql).map_err(|_| gone())
    }

    /// Waits until every session has answered or waits for a lock; gives sessions that woke their queued
    /// steps, and begins again if there were any.
    fn settle(&mut self) -> Result<(), Failure> {
        loop {
            for session in 0..self.sessions.len() {
                self.await_session(session)?;
            }
            let awake = |actor: &Actor| actor.waiting.is_none() && !actor.queue.is_empty();
            let Some(session) = self.sessions.iter().position(awake) else { return Ok(()) };
            if let Some(step) = self.sessions[session].queue.pop_front() {
                self.send(session, step)?;
            }
        }
    }

    fn await_session(&mut self, session: usize) -> Result<(), Failure> {
        let give_up = Instant::now() + self.patience;
        let mut pause = Duration::from_micros(500);
        while let Some(line) = self.sessions[session].waiting {
            if let Ok(reply) = self.sessions[session].replies.recv_timeout(pause) {
                return self.answered(session, line, reply);
            }
            if self.is_waiting(session)? {
                self.trace[line].waited = true;
                return Ok(());
            }
            if Instant::now() >= give_up {
                let message = format!("{} hangs without waiting for a lock", self.trace[line].sent);
                return Err(Failure::Silent { message });
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        Ok(())
    }

    /// A session that answers at the same moment does not wait: ask twice, with a look at its answer between.
    fn is_waiting(&mut self, session: usize) -> Result<bool, Failure> {
        let id = self.sessions[session].id;
        Ok(self.scripted.is_waiting(&mut *self.observer, id)?
            && self.scripted.is_waiting(&mut *self.observer, id)?)
    }

    fn answered(&mut self, session: usize, line: usize, reply: Reply) -> Result<(), Failure> {
        if let Err(failure @ (Failure::Lost { .. } | Failure::Silent { .. } | Failure::Unreachable { .. })) =
            reply
        {
            return Err(failure);
        }
        let actor = &mut self.sessions[session];
        actor.waiting = None;
        let sent = &self.trace[line].sent;
        match &reply {
            Ok(_) if sent == COMMIT => actor.state = State::Committed,
            Ok(_) if sent == ROLLBACK => actor.state = State::Aborted,
            Ok(rows) if sent.starts_with("SELECT") => actor.reads.push(as_rows(rows)),
            Ok(_) => {}
            Err(_) => {
                actor.state = State::Aborted;
                actor.queue.clear();
                // The answer is of no interest; the thread sends nothing else any more.
                let _ = actor.send.send(ROLLBACK.to_owned());
                let _ = actor.replies.recv_timeout(self.patience);
            }
        }
        self.trace[line].outcome = reply;
        Ok(())
    }

    /// Ends what is still running, and reads the table.
    fn end(mut self) -> Result<(Observed, Vec<TraceLine>), Failure> {
        self.settle()?;
        for session in 0..self.sessions.len() {
            let is_open =
                self.sessions[session].state == State::Running && self.sessions[session].waiting.is_none();
            if is_open {
                self.send(session, &Step { session: session + 1, act: Act::Rollback })?;
                self.settle()?;
            }
        }
        // Sessions that wait for each other are told apart by the server, in its own time.
        let give_up = Instant::now() + self.patience.max(STEP_MAX);
        while self.sessions.iter().any(|actor| actor.waiting.is_some()) && Instant::now() < give_up {
            thread::sleep(Duration::from_millis(5));
            self.settle()?;
        }
        if self.sessions.iter().any(|actor| actor.waiting.is_some()) {
            return Err(Failure::Silent { message: "the sessions wait for each other forever".to_owned() });
        }
        let last = as_rows(&self.observer.send(&format!("SELECT id, value FROM {TABLE} ORDER BY id"))?);
        let committed = self.sessions.iter().map(|actor| actor.state == State::Committed).collect();
        let close = |actor: Actor| {
            // The connection closes with its thread, before the next schedule begins.
            drop(actor.send);
            let _ = actor.thread.join();
            actor.reads
        };
        let reads = self.sessions.into_iter().map(close).collect();
        Ok((Observed { committed, reads, last }, self.trace))
    }
}

const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";

fn gone() -> Failure {
    Failure::lost("lost a session of the matrix")
}

fn as_rows(rows: &[Vec<Value>]) -> Rows {
    let mut rows: Rows =
        rows.iter().filter_map(|row| Some((row.first()?.as_int()?, row.get(1)?.as_int()?))).collect();
    rows.sort_unstable();
    rows
}
