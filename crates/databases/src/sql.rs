//! A session of any SQL database: requests become statements, answers become responses.

use crate::dialect::{Answer, Dialect, Statement};
use crate::driver::{Access, Failure, Session};
use crate::isolation::Isolation;
use crate::schema::Schema;
use history::Name;
use record::{Request, Response, Stamp, Value};

/// What a vendor's file provides: a connection that sends statements.
pub(crate) trait Connection: Send {
    /// Begins a transaction.
    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure>;
    /// Sends a statement and waits for all of its answer.
    fn send(&mut self, statement: &Statement) -> Result<Answer, Failure>;
    /// Commits.
    fn commit(&mut self) -> Result<(), Failure>;
    /// Rolls back; without a transaction, nothing.
    fn rollback(&mut self) -> Result<(), Failure>;
    /// See [`Session::stamp`].
    fn stamp(&mut self) -> Option<Stamp> {
        None
    }
}

/// A [`Session`] over a vendor's connection.
pub(crate) struct SqlSession<C> {
    connection: C,
    dialect: &'static Dialect,
    schema: Schema,
    sent: Option<Statement>,
}

impl<C: Connection> SqlSession<C> {
    pub(crate) fn new(connection: C, dialect: &'static Dialect, schema: Schema) -> Self {
        Self { connection, dialect, schema, sent: None }
    }
}

impl<C: Connection> Session for SqlSession<C> {
    /// Servers do not learn it: most programs never announce that they only read.
    fn begin(&mut self, isolation: &Isolation, _access: Access) -> Result<(), Failure> {
        self.connection.begin(isolation)
    }

    fn execute(&mut self, request: &Request) -> Result<Response, Failure> {
        let statement = self.sent.insert(self.dialect.statement(&self.schema, request)?);
        let answer = self.connection.send(statement)?;
        self.dialect.response(&self.schema, request, answer)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.connection.commit()
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.connection.rollback()
    }

    fn statement(&self) -> Option<&str> {
        self.sent.as_ref().map(|statement| statement.sql.as_str())
    }

    fn locks(&self) -> bool {
        self.dialect.for_update.is_some()
    }

    fn stamp(&mut self) -> Option<Stamp> {
        self.connection.stamp()
    }
}

/// Writes the initial values over an open session, a few hundred rows per transaction.
pub(crate) fn fill(
    session: &mut dyn Session,
    levels: &[Isolation],
    initial: &[(Name, Value)],
) -> Result<(), Failure> {
    let isolation = levels.iter().find(|level| level.sight.is_some());
    let isolation = isolation.ok_or_else(|| Failure::mistake("no level reads only what is committed"))?;
    for rows in initial.chunks(500) {
        session.begin(isolation, Access::ReadWrite)?;
        for (key, value) in rows {
            session.execute(&Request::Write { key: key.clone(), value: value.clone() })?;
        }
        session.commit()?;
    }
    Ok(())
}
