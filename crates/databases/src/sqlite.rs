//! SQLite, in process: several real connections to one file in write-ahead-log mode.

use crate::dialect::{Answer, SQLITE, Statement};
use crate::driver::{Database, Failure, Session};
use crate::grammar::{self, Grammar};
use crate::isolation::{self, Isolation};
use crate::matrix::{Console, Scripted};
use crate::schema::Schema;
use crate::scratch::Scratch;
use crate::sql::{Connection, SqlSession, fill};
use crate::target::{self, Vendor};
use history::Name;
use record::Value;
use rusqlite::types::ValueRef;
use rusqlite::{ErrorCode, ffi};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A SQLite file, private and temporary or named.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    /// Removes the file with its folder when the database is dropped.
    folder: Option<Scratch>,
}

/// How long a writer waits for another one before it gives up.
const BUSY_WAIT: Duration = Duration::from_secs(10);

pub(crate) const VENDOR: Vendor = Vendor {
    schemes: &["sqlite"],
    forms: &[
        target::sql("sqlite:", "SQLite in a temporary folder, as sqlite:temp"),
        target::sql("sqlite:PATH", "a SQLite file"),
    ],
    open: |target| match target.is_temporary() {
        true => Ok(Box::new(Sqlite::temporary()?)),
        false => Ok(Box::new(Sqlite::at(target.rest))),
    },
};

impl Sqlite {
    /// A new database in a temporary folder, removed with the value.
    pub fn temporary() -> Result<Self, Failure> {
        let folder = Scratch::new("taipan-sqlite-")?;
        Ok(Self { path: folder.path().join("taipan.db"), folder: Some(folder) })
    }

    /// A database file; made if it is not there.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), folder: None }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn open(&self) -> Result<SqliteConnection, Failure> {
        let failed = |error: rusqlite::Error| {
            Failure::mistake(format!("cannot open the SQLite file {}: {error}", self.path.display()))
        };
        let connection = rusqlite::Connection::open(&self.path).map_err(failed)?;
        connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
        connection.pragma_update(None, "journal_mode", "wal").map_err(failed)?;
        connection.pragma_update(None, "synchronous", "normal").map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(256);
        Ok(SqliteConnection { connection })
    }
}

impl Database for Sqlite {
    fn name(&self) -> String {
        format!("SQLite {}", rusqlite::version())
    }

    fn isolations(&self) -> &'static [Isolation] {
        &isolation::SQLITE
    }

    fn create(&self, schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure> {
        let connection = self.open()?;
        for sql in SQLITE.create_table(schema) {
            connection.connection.execute_batch(&sql).map_err(failure)?;
        }
        let mut session = SqlSession::new(connection, &SQLITE, schema.clone());
        fill(&mut session, self.isolations(), initial)
    }

    fn connect(&self, schema: &Schema) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(SqlSession::new(self.open()?, &SQLITE, schema.clone())))
    }

    fn scripted(&self) -> Option<&dyn Scripted> {
        Some(self)
    }
}

/// A scripted session does not wait for another one: it is refused at once.
impl Scripted for Sqlite {
    fn console(&self) -> Result<Box<dyn Console>, Failure> {
        let connection = self.open()?;
        connection.connection.busy_timeout(Duration::ZERO).map_err(failure)?;
        Ok(Box::new(connection))
    }

    fn is_waiting(&self, _observer: &mut dyn Console, _id: i64) -> Result<bool, Failure> {
        Ok(false)
    }

    fn grammar(&self) -> &'static Grammar {
        &grammar::SQLITE
    }

    fn hurry(&self, console: &mut dyn Console) {
        if self.folder.is_some() {
            // A setting that is refused costs time only.
            let _ = console.send("PRAGMA synchronous = OFF");
        }
    }

    fn waits(&self) -> bool {
        false
    }
}

impl Console for SqliteConnection {
    fn id(&self) -> i64 {
        0
    }

    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        self.run(isolation.ask)
    }

    fn send(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        let rows = self.connection.prepare_cached(sql).map_err(failure)?.column_count() > 0;
        match Connection::send(self, &Statement { sql: sql.to_owned(), params: Vec::new(), rows })? {
            Answer::Rows(rows) => Ok(rows),
            Answer::Count(_) => Ok(Vec::new()),
        }
    }
}

struct SqliteConnection {
    connection: rusqlite::Connection,
}

impl Connection for SqliteConnection {
    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        self.run(isolation.ask)
    }

    fn send(&mut self, statement: &Statement) -> Result<Answer, Failure> {
        let mut prepared = self.connection.prepare_cached(&statement.sql).map_err(failure)?;
        let params = rusqlite::params_from_iter(statement.params.iter().map(Param));
        if !statement.rows {
            return prepared.execute(params).map(|count| Answer::Count(count as u64)).map_err(failure);
        }
        let mut found = prepared.query(params).map_err(failure)?;
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failure)? {
            // Asked of the row: a statement that was prepared before its table was made anew has learnt since.
            let width = row.as_ref().column_count();
            rows.push((0..width).map(|column| cell(row, column)).collect::<Result<_, _>>()?);
        }
        Ok(Answer::Rows(rows))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.run("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.run("ROLLBACK")
    }
}

impl SqliteConnection {
    fn run(&self, sql: &str) -> Result<(), Failure> {
        self.connection.prepare_cached(sql).and_then(|mut s| s.execute([])).map(drop).map_err(failure)
    }
}

fn cell(row: &rusqlite::Row<'_>, column: usize) -> Result<Value, Failure> {
    match row.get_ref(column).map_err(failure)? {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(value) => Ok(Value::Int(value)),
        ValueRef::Real(value) => Ok(Value::Float(value)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Ok(Value::Text(String::from_utf8_lossy(bytes).into_owned()))
        }
    }
}

struct Param<'a>(&'a Value);

impl rusqlite::ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        match self.0 {
            Value::Int(value) => value.to_sql(),
            Value::Float(value) => value.to_sql(),
            Value::Text(text) => text.to_sql(),
            _ => rusqlite::types::Null.to_sql(),
        }
    }
}

/// What an error means for the transaction.
fn failure(error: rusqlite::Error) -> Failure {
    let rusqlite::Error::SqliteFailure(code, ref message) = error else {
        return Failure::mistake(format!("SQLite: {error}"));
    };
    let message = message.clone().unwrap_or_else(|| code.to_string());
    match code.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            let name = match code.extended_code {
                ffi::SQLITE_BUSY_SNAPSHOT => "SQLITE_BUSY_SNAPSHOT",
                ffi::SQLITE_BUSY => "SQLITE_BUSY",
                ffi::SQLITE_LOCKED => "SQLITE_LOCKED",
                _ => "SQLITE_BUSY_*",
            };
            Failure::aborted(name, message)
        }
        ErrorCode::ConstraintViolation => Failure::aborted("SQLITE_CONSTRAINT", message),
        // Whether the commit record reached the file is not known.
        ErrorCode::SystemIoFailure => Failure::lost(message),
        _ => Failure::mistake(format!("SQLite: {message}")),
    }
}
