//! Executes a case: interleaved in transactions, or one statement after the other without.
//!
//! Interleaved (TxCheck, Jiang et al., OSDI 2023, §4, *Transaction Execution*):
//!
//! 1. Send the next step to its transaction's session; put it into that session's queue if an earlier one waits.
//!    A statement goes as one batch with the reads around it, so that nothing comes between.
//! 2. Wait until the session has answered, or the server says that it waits for a lock. Never a time-out.
//! 3. Look at the waiting sessions again; one that has answered gets the steps from its queue.
//! 4. A refusal for the sake of others (deadlock, serialization failure) ends the transaction: that is its outcome.
//!    A statement that is no good by itself ends it, too, and is listed as failed.
//! 5. When all steps are through, read every table.
//!
//! Invariant: between two steps every session has either answered or waits for a lock.

use crate::case::{Act, Case, Instrumented, Step, StepNo, TableNo, TxnNo};
use crate::sessions::{Answers, Order, Rows, Session};
use databases::{Console, Failure, Isolation, Scripted, Value};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::time::{Duration, Instant};

/// What an interleaved execution showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What each statement and the reads around it saw, if they came to their end.
    pub observed: HashMap<StepNo, Observed>,
    /// What became of each transaction.
    pub fates: Vec<Fate>,
    /// The steps in the order in which they were completed.
    pub order: Vec<StepNo>,
    /// Steps that had to wait for another session.
    pub blocked: Vec<StepNo>,
    /// Statements that are no good by themselves.
    pub failed: Vec<(StepNo, Failure)>,
    /// Statements that a return to a savepoint undid.
    pub undone: Vec<StepNo>,
    /// The tables at the end.
    pub finals: Vec<Rows>,
}

/// What a statement and the reads around it saw.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// When: the number of steps completed before it.
    pub at: u32,
    /// Keys and versions of every table it refers to.
    pub versions: Vec<(TableNo, Vec<(i64, i64)>)>,
    /// What it was about to overwrite.
    pub before: Rows,
    /// Its own answer.
    pub output: Rows,
    /// What it installed.
    pub after: Rows,
}

/// What an execution without transactions showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Alone {
    /// What each statement saw, in their order.
    pub answers: Vec<Result<Observed, Failure>>,
    /// The tables at the end.
    pub finals: Vec<Rows>,
}

/// What became of a transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fate {
    /// It committed, after so many completed steps.
    Committed(u32),
    /// It has no effect; by itself, or for this reason.
    Aborted(Option<Failure>),
    /// It never began.
    #[default]
    Absent,
}

/// What keeps a case from being executed; some of it is a finding by itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Trouble {
    /// A connection broke while this was sent: the server crashed, or threw the session out.
    Lost {
        /// The statement.
        sql: String,
        /// The driver's words.
        message: String,
    },
    /// A statement neither ended nor waited for a lock.
    Hang {
        /// The statement.
        sql: String,
    },
    /// The server went on, but says in its log that something of its own is broken.
    Complaint {
        /// The line.
        line: String,
    },
    /// The case cannot even be set up.
    Setup(Failure),
}

impl Trouble {
    /// What a failure at a statement comes to, where the statement itself is not to blame.
    fn of(sql: impl Into<String>, failure: Failure) -> Self {
        match failure {
            Failure::Lost { message } => Self::Lost { sql: sql.into(), message },
            failure @ Failure::Unreachable { .. } => {
                Self::Lost { sql: sql.into(), message: failure.to_string() }
            }
            Failure::Silent { .. } => Self::Hang { sql: sql.into() },
            failure => Self::Setup(failure),
        }
    }

    /// Whether the server must be brought back.
    pub fn is_down(&self) -> bool {
        !matches!(self, Self::Complaint { .. })
    }
}

/// What servers write into their logs about themselves when something of their own is broken.
const COMPLAINTS: [&str; 8] = [
    "PANIC:",
    "TRAP:",
    "Assertion fail",
    "assertion fail",
    "[ERROR] InnoDB",
    "Incorrect key file",
    "could not read block",
    "corrupt",
];

/// The first complaint in a piece of a log. Statements that are logged are not the server's own words.
fn complaint(log: &str) -> Option<&str> {
    let own = log.lines().filter(|line| !line.contains("STATEMENT:") && !line.starts_with('\t'));
    own.into_iter().find(|line| COMPLAINTS.iter().any(|words| line.contains(words)))
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost { sql, message } => write!(f, "connection lost ({message}) in: {sql}"),
            Self::Complaint { line } => write!(f, "the server logged an internal error: {line}"),
            Self::Hang { sql } => write!(f, "a statement hangs without waiting for a lock: {sql}"),
            Self::Setup(failure) => write!(f, "cannot set up the case: {failure}"),
        }
    }
}

impl std::error::Error for Trouble {}

/// A statement that takes longer than this without waiting for a lock hangs, unless told otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A database with open connections, on which cases are executed.
pub struct Stage<'d> {
    database: &'d dyn Scripted,
    isolation: Isolation,
    observer: Box<dyn Console>,
    sessions: Vec<Session>,
    /// The schema that is in the database now.
    schema: Vec<String>,
    in_server: Duration,
    patience: Duration,
    /// How far the server's log has been read.
    log_place: u64,
}

impl<'d> Stage<'d> {
    /// Opens the first connection.
    pub fn open(database: &'d dyn Scripted, isolation: Isolation) -> Result<Self, Failure> {
        let mut observer = database.console()?;
        database.hurry(&mut *observer);
        let (_, log_place) = database.log_from(0);
        Ok(Self {
            log_place,
            database,
            isolation,
            observer,
            sessions: Vec::new(),
            schema: Vec::new(),
            in_server: Duration::ZERO,
            patience: PATIENCE,
        })
    }

    /// The level of transactions from now on.
    pub fn set_isolation(&mut self, isolation: Isolation) {
        self.isolation = isolation;
    }

    /// How long a statement may take without waiting for a lock.
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The level of transactions.
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// The database.
    pub fn database(&self) -> &'d dyn Scripted {
        self.database
    }

    /// How long the server had work to do for us.
    pub fn in_server(&self) -> Duration {
        self.in_server
    }

    /// Closes all connections and opens them again, after trouble.
    pub fn reopen(&mut self) -> Result<(), Failure> {
        self.sessions.clear();
        self.schema.clear();
        self.observer = self.database.console()?;
        (_, self.log_place) = self.database.log_from(self.log_place);
        Ok(())
    }

    /// Reads what is new in the server's log: an error if it complains of itself.
    pub(crate) fn listen(&mut self) -> Result<(), Trouble> {
        let (log, place) = self.database.log_from(self.log_place);
        self.log_place = place;
        match complaint(&log) {
            Some(line) => Err(Trouble::Complaint { line: line.trim().to_owned() }),
            None => Ok(()),
        }
    }

    /// Takes what cases made out of the database again.
    pub fn clear(&mut self) {
        let schema = std::mem::take(&mut self.schema);
        let views =
            named(&schema, "CREATE VIEW ").into_iter().rev().map(|view| format!("VIEW IF EXISTS {view}"));
        let tables =
            named(&schema, "CREATE TABLE ").into_iter().map(|table| format!("TABLE IF EXISTS {table}"));
        for what in views.chain(tables) {
            // A server that does not answer will not answer the next one either.
            if matches!(
                self.observe(&format!("DROP {what}")),
                Err(Failure::Silent { .. } | Failure::Lost { .. } | Failure::Unreachable { .. })
            ) {
                return;
            }
        }
    }

    /// Executes the steps as they are interleaved.
    pub fn interleaved(&mut self, case: &Case) -> Result<Run, Trouble> {
        self.reset(case)?;
        while self.sessions.len() < case.transactions() {
            let console = self.database.console();
            let mut console = console.map_err(|failure| Trouble::of("(opening a connection)", failure))?;
            self.database.hurry(&mut *console);
            console.be_patient();
            self.sessions.push(Session::new(console, self.database.waits()));
        }
        let mut play = Play::new(self, case);
        for step in &case.steps {
            play.step(step)?;
        }
        play.end()
    }

    /// Executes statements one after the other, each by itself; the answers are in the order of the statements.
    pub fn serial(&mut self, case: &Case, statements: &[&Instrumented]) -> Result<Alone, Trouble> {
        self.reset(case)?;
        let mut answers = Vec::new();
        for statement in statements {
            let answer = self.alone(statement);
            match answer {
                Err(
                    failure @ (Failure::Lost { .. } | Failure::Silent { .. } | Failure::Unreachable { .. }),
                ) => {
                    return Err(Trouble::of(&statement.sql, failure));
                }
                answer => answers.push(answer),
            }
        }
        let finals = self.finals(case)?;
        Ok(Alone { answers, finals })
    }

    fn alone(&mut self, statement: &Instrumented) -> Result<Observed, Failure> {
        let mut observed = Observed::default();
        if let Some(before) = &statement.before {
            observed.before = self.observe(before)?;
        }
        observed.output = self.observe(&statement.sql)?;
        if let Some(after) = &statement.after {
            observed.after = self.observe(after)?;
        }
        Ok(observed)
    }

    fn observe(&mut self, sql: &str) -> Result<Rows, Failure> {
        let began = Instant::now();
        let rows = self.observer.answer(sql);
        self.in_server += began.elapsed();
        rows
    }

    /// Brings the database to the state in which the case begins. Tables that fit are emptied and filled, others
    /// made anew.
    fn reset(&mut self, case: &Case) -> Result<(), Trouble> {
        if self.schema != case.schema {
            // Later views may read earlier ones.
            let views = named(&self.schema, "CREATE VIEW ");
            for view in views.iter().rev().chain(case.views.iter().rev()) {
                self.set_up(&format!("DROP VIEW IF EXISTS {view}"))?;
            }
            for table in case.tables.iter().cloned().chain(named(&self.schema, "CREATE TABLE ")) {
                self.set_up(&format!("DROP TABLE IF EXISTS {table}"))?;
            }
            for sql in &case.schema {
                self.set_up(sql)?;
            }
            self.schema.clone_from(&case.schema);
        }
        self.set_up("BEGIN")?;
        for table in &case.tables {
            self.set_up(&format!("DELETE FROM {table}"))?;
        }
        for sql in &case.rows {
            self.set_up(sql)?;
        }
        self.set_up("COMMIT")
    }

    fn set_up(&mut self, sql: &str) -> Result<(), Trouble> {
        match self.observe(sql) {
            Ok(_) => Ok(()),
            Err(failure @ (Failure::Lost { .. } | Failure::Silent { .. } | Failure::Unreachable { .. })) => {
                Err(Trouble::of(sql, failure))
            }
            Err(failure) => {
                self.schema.clear();
                let _ = self.observe("ROLLBACK");
                Err(Trouble::Setup(failure))
            }
        }
    }

    fn finals(&mut self, case: &Case) -> Result<Vec<Rows>, Trouble> {
        let read = |table: &String| {
            let sql = format!("SELECT * FROM {table}");
            self.observe(&sql).map_err(|failure| Trouble::of(sql, failure))
        };
        case.tables.iter().map(read).collect()
    }
}

/// The names that statements of one kind make.
fn named(schema: &[String], words: &str) -> Vec<String> {
    let name = |sql: &String| Some(sql.strip_prefix(words)?.split(' ').next()?.to_owned());
    schema.iter().filter_map(name).collect()
}

/// What the scheduler knows of a transaction.
#[derive(Default)]
struct Actor<'c> {
    fate: Fate,
    is_open: bool,
    waiting: Option<&'c Step>,
    queue: VecDeque<&'c Step>,
    /// Statements since each savepoint that is still there.
    marks: Vec<(&'c str, Vec<StepNo>)>,
}

struct Play<'s, 'd, 'c> {
    stage: &'s mut Stage<'d>,
    case: &'c Case,
    actors: Vec<Actor<'c>>,
    run: Run,
}

impl<'s, 'd, 'c> Play<'s, 'd, 'c> {
    fn new(stage: &'s mut Stage<'d>, case: &'c Case) -> Self {
        let actors = (0..case.transactions()).map(|_| Actor::default()).collect();
        Self { stage, case, actors, run: Run::default() }
    }

    fn step(&mut self, step: &'c Step) -> Result<(), Trouble> {
        let actor = &mut self.actors[step.txn.index()];
        if actor.waiting.is_some() {
            actor.queue.push_back(step);
            return Ok(());
        }
        self.send(step)?;
        self.settle()
    }

    fn send(&mut self, step: &'c Step) -> Result<(), Trouble> {
        let actor = &mut self.actors[step.txn.index()];
        let order = match &step.act {
            Act::Begin => Order::Begin(self.stage.isolation),
            _ if !actor.is_open => return Ok(()),
            Act::Commit => Order::Send(vec!["COMMIT".to_owned()]),
            Act::Rollback => Order::Send(vec!["ROLLBACK".to_owned()]),
            Act::Savepoint(name) => Order::Send(vec![format!("SAVEPOINT {name}")]),
            Act::RollbackTo(name) => Order::Send(vec![format!("ROLLBACK TO SAVEPOINT {name}")]),
            Act::Statement(statement) => Order::Send(batch(statement)),
        };
        actor.waiting = Some(step);
        let began = Instant::now();
        let told = self.stage.sessions[step.txn.index()].tell(order);
        self.stage.in_server += began.elapsed();
        match told {
            true => Ok(()),
            false => Err(Trouble::Lost { sql: text(step), message: "the session ended".to_owned() }),
        }
    }

    /// Waits until every session has answered or waits for a lock; gives those that woke their queued steps.
    fn settle(&mut self) -> Result<(), Trouble> {
        loop {
            for txn in 0..self.actors.len() {
                self.wait_for(txn)?;
            }
            let awake = |actor: &Actor<'_>| actor.waiting.is_none() && !actor.queue.is_empty();
            let Some(txn) = self.actors.iter().position(awake) else { return Ok(()) };
            if let Some(step) = self.actors[txn].queue.pop_front() {
                self.send(step)?;
            }
        }
    }

    fn wait_for(&mut self, txn: usize) -> Result<(), Trouble> {
        let give_up = Instant::now() + self.stage.patience;
        let mut pause = Duration::from_millis(1);
        while let Some(step) = self.actors[txn].waiting {
            let began = Instant::now();
            let heard = self.stage.sessions[txn].hear(pause);
            self.stage.in_server += began.elapsed();
            if let Ok(answers) = heard {
                return self.answered(step, answers);
            }
            if self.is_waiting(txn)? {
                if !self.run.blocked.contains(&step.number) {
                    self.run.blocked.push(step.number);
                }
                return Ok(());
            }
            if Instant::now() >= give_up {
                return Err(Trouble::Hang { sql: text(step) });
            }
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        Ok(())
    }

    /// A session that answers at the same moment does not wait: ask twice.
    fn is_waiting(&mut self, txn: usize) -> Result<bool, Trouble> {
        let id = self.stage.sessions[txn].id();
        let mut ask = || {
            let asked = self.stage.database.is_waiting(&mut *self.stage.observer, id);
            asked.map_err(|failure| Trouble::of("(asking who waits)", failure))
        };
        Ok(ask()? && ask()?)
    }

    fn answered(&mut self, step: &'c Step, mut answers: Answers) -> Result<(), Trouble> {
        self.actors[step.txn.index()].waiting = None;
        if answers.last().is_some_and(Result::is_err)
            && let Some(Err(failure)) = answers.pop()
        {
            return self.refused(step, failure);
        }
        let at = u32::try_from(self.run.order.len()).unwrap_or(u32::MAX);
        self.run.order.push(step.number);
        let actor = &mut self.actors[step.txn.index()];
        match &step.act {
            Act::Begin => actor.is_open = true,
            Act::Commit => (actor.is_open, actor.fate) = (false, Fate::Committed(at)),
            Act::Rollback => (actor.is_open, actor.fate) = (false, Fate::Aborted(None)),
            Act::Savepoint(name) => actor.marks.push((name, Vec::new())),
            Act::RollbackTo(name) => {
                let from = actor.marks.iter().position(|(mark, _)| mark == name).unwrap_or(actor.marks.len());
                let undone = actor.marks[from..].iter_mut().flat_map(|(_, steps)| std::mem::take(steps));
                self.run.undone.extend(undone);
                actor.marks.truncate(from + 1);
            }
            Act::Statement(statement) => {
                if let Some((_, steps)) = actor.marks.last_mut() {
                    steps.push(step.number);
                }
                let rows: Vec<Rows> = answers.into_iter().flatten().collect();
                self.run.observed.insert(step.number, observed(statement, at, rows));
            }
        }
        Ok(())
    }

    fn refused(&mut self, step: &'c Step, failure: Failure) -> Result<(), Trouble> {
        if matches!(failure, Failure::Lost { .. } | Failure::Silent { .. } | Failure::Unreachable { .. }) {
            return Err(Trouble::of(text(step), failure));
        }
        let actor = &mut self.actors[step.txn.index()];
        actor.is_open = false;
        let is_own_fault = failure.is_constraint() || matches!(failure, Failure::Mistake { .. });
        if is_own_fault {
            self.run.failed.push((step.number, failure.clone()));
        }
        actor.fate = Fate::Aborted(Some(failure));
        // Whatever is left of the transaction goes; a database that has rolled back already says so or nothing.
        self.roll_back(step.txn.index());
        Ok(())
    }

    /// A session that does not answer is noticed by whatever is asked next.
    fn roll_back(&mut self, txn: usize) {
        let session = &mut self.stage.sessions[txn];
        if session.tell(Order::Send(vec!["ROLLBACK".to_owned()])) {
            let _ = session.hear(self.stage.patience);
        }
    }

    /// Ends what is still open, lets sessions that wait for each other be told apart, reads the tables.
    fn end(mut self) -> Result<Run, Trouble> {
        let give_up = Instant::now() + self.stage.patience;
        loop {
            self.settle()?;
            for actor in 0..self.actors.len() {
                if self.actors[actor].is_open && self.actors[actor].waiting.is_none() {
                    self.roll_back(actor);
                    self.actors[actor].is_open = false;
                    self.actors[actor].fate = Fate::Aborted(None);
                }
            }
            let Some(step) = self.actors.iter().find_map(|actor| actor.waiting) else { break };
            if Instant::now() >= give_up {
                return Err(Trouble::Hang { sql: text(step) });
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.run.fates = self.actors.into_iter().map(|actor| actor.fate).collect();
        self.run.finals = self.stage.finals(self.case)?;
        Ok(self.run)
    }
}

fn batch(statement: &Instrumented) -> Vec<String> {
    let versions = statement.versions.iter().map(|(_, sql)| sql.clone());
    let before = statement.before.iter().cloned();
    let after = statement.after.iter().cloned();
    versions.chain(before).chain([statement.sql.clone()]).chain(after).collect()
}

fn text(step: &Step) -> String {
    match &step.act {
        Act::Statement(statement) => statement.sql.clone(),
        act => format!("{act:?}").to_uppercase(),
    }
}

/// The answers of a batch, told apart.
fn observed(statement: &Instrumented, at: u32, rows: Vec<Rows>) -> Observed {
    let mut rows = rows.into_iter();
    let mut next = || rows.next().unwrap_or_default();
    let versions = statement.versions.iter().map(|(table, _)| (*table, items(&next()))).collect();
    let before = statement.before.as_ref().map(|_| next()).unwrap_or_default();
    let output = next();
    let after = statement.after.as_ref().map(|_| next()).unwrap_or_default();
    Observed { at, versions, before, output, after }
}

/// The first two columns: keys and versions.
pub(crate) fn items(rows: &Rows) -> Vec<(i64, i64)> {
    rows.iter().filter_map(|row| Some((integer(row.first()?)?, integer(row.get(1)?)?))).collect()
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Text(text) => text.parse().ok(),
        _ => None,
    }
}

impl Run {
    /// Whether a transaction committed.
    pub fn committed(&self, txn: TxnNo) -> bool {
        matches!(self.fates.get(txn.index()), Some(Fate::Committed(_)))
    }
}
