//! DuckDB, in process: several connections to one database.
//!
//! The crate binds to the library's C interface; which library is found at build time (`DUCKDB_LIB_DIR`).

use crate::dialect::{Answer, DUCKDB, Statement};
use crate::driver::{Database, Failure, Session};
use crate::grammar::{self, Grammar};
use crate::isolation::{self, Isolation};
use crate::matrix::{Console, Scripted};
use crate::schema::Schema;
use crate::scratch::Scratch;
use crate::sql::{Connection, SqlSession, fill};
use crate::target::{self, Vendor};
use duckdb::types::{ToSqlOutput, ValueRef};
use history::Name;
use record::Value;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A DuckDB file, private and temporary or named. A file has one owner, of which all connections are made.
pub struct DuckDb {
    owner: Mutex<duckdb::Connection>,
    path: PathBuf,
    version: String,
    /// Removes the file with its folder when the database is dropped.
    _folder: Option<Scratch>,
}

pub(crate) const VENDOR: Vendor = Vendor {
    schemes: &["duckdb"],
    forms: &[
        target::sql("duckdb:", "DuckDB in a temporary folder"),
        target::sql("duckdb:PATH", "a DuckDB file"),
    ],
    open: |target| match target.is_temporary() {
        true => Ok(Box::new(DuckDb::temporary()?)),
        false => Ok(Box::new(DuckDb::at(Path::new(target.rest))?)),
    },
};

impl DuckDb {
    /// A new database in a temporary folder, removed with the value.
    pub fn temporary() -> Result<Self, Failure> {
        let folder = Scratch::new("taipan-duckdb-")?;
        let path = folder.path().join("taipan.duckdb");
        Self::open(&path, Some(folder))
    }

    /// A database file; made if it is not there.
    pub fn at(path: &Path) -> Result<Self, Failure> {
        Self::open(path, None)
    }

    fn open(path: &Path, folder: Option<Scratch>) -> Result<Self, Failure> {
        let failed = |error: duckdb::Error| {
            Failure::mistake(format!("cannot open the DuckDB file {}: {error}", path.display()))
        };
        let owner = duckdb::Connection::open(path).map_err(failed)?;
        let version = owner.query_row("SELECT version()", [], |row| row.get(0)).map_err(failed)?;
        Ok(Self { owner: Mutex::new(owner), path: path.to_owned(), version, _folder: folder })
    }

    fn connection(&self) -> Result<DuckDbConnection, Failure> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = owner.try_clone().map_err(failure)?;
        Ok(DuckDbConnection { connection, is_open: false })
    }
}

impl std::fmt::Debug for DuckDb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DuckDb").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Database for DuckDb {
    fn name(&self) -> String {
        format!("DuckDB {}", self.version)
    }

    fn isolations(&self) -> &'static [Isolation] {
        &isolation::DUCKDB
    }

    fn create(&self, schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure> {
        let connection = self.connection()?;
        for sql in DUCKDB.create_table(schema) {
            connection.connection.execute_batch(&sql).map_err(failure)?;
        }
        let mut session = SqlSession::new(connection, &DUCKDB, schema.clone());
        fill(&mut session, self.isolations(), initial)
    }

    fn connect(&self, schema: &Schema) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(SqlSession::new(self.connection()?, &DUCKDB, schema.clone())))
    }

    fn scripted(&self) -> Option<&dyn Scripted> {
        Some(self)
    }
}

/// A session does not wait for another one: a conflict is refused at once.
impl Scripted for DuckDb {
    fn console(&self) -> Result<Box<dyn Console>, Failure> {
        Ok(Box::new(self.connection()?))
    }

    fn is_waiting(&self, _observer: &mut dyn Console, _id: i64) -> Result<bool, Failure> {
        Ok(false)
    }

    fn grammar(&self) -> &'static Grammar {
        &grammar::DUCKDB
    }

    fn waits(&self) -> bool {
        false
    }
}

struct DuckDbConnection {
    connection: duckdb::Connection,
    /// Whether a transaction is open.
    is_open: bool,
}

impl Console for DuckDbConnection {
    fn id(&self) -> i64 {
        0
    }

    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        Connection::begin(self, isolation)
    }

    fn send(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        // Everything answers with rows here; those of a write are its count, which nobody asked for.
        let first = sql.trim_start_matches('(').split_whitespace().next().unwrap_or_default();
        let rows = ["SELECT", "WITH", "VALUES"].iter().any(|word| first.eq_ignore_ascii_case(word));
        let sent = Connection::send(self, &Statement { sql: sql.to_owned(), params: Vec::new(), rows })?;
        if first.eq_ignore_ascii_case("COMMIT")
            || first.eq_ignore_ascii_case("ROLLBACK") && !sql.contains(" TO ")
        {
            self.is_open = false;
        }
        match sent {
            Answer::Rows(rows) => Ok(rows),
            Answer::Count(_) => Ok(Vec::new()),
        }
    }
}

impl Connection for DuckDbConnection {
    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        self.connection.execute_batch(isolation.ask).map_err(failure)?;
        self.is_open = true;
        Ok(())
    }

    fn send(&mut self, statement: &Statement) -> Result<Answer, Failure> {
        let mut prepared = self.connection.prepare(&statement.sql).map_err(failure)?;
        let params = duckdb::params_from_iter(statement.params.iter().map(Param));
        if !statement.rows {
            return prepared.execute(params).map(|count| Answer::Count(count as u64)).map_err(failure);
        }
        let mut found = prepared.query(params).map_err(failure)?;
        let width = found.as_ref().map_or(0, |statement| statement.column_count());
        let mut rows = Vec::new();
        while let Some(row) = found.next().map_err(failure)? {
            rows.push((0..width).map(|column| cell(row, column)).collect::<Result<_, _>>()?);
        }
        Ok(Answer::Rows(rows))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.is_open = false;
        self.connection.execute_batch("COMMIT").map_err(failure)
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if !std::mem::replace(&mut self.is_open, false) {
            return Ok(());
        }
        self.connection.execute_batch("ROLLBACK").map_err(failure)
    }
}

fn cell(row: &duckdb::Row<'_>, column: usize) -> Result<Value, Failure> {
    let int = |value: i128| match i64::try_from(value) {
        Ok(value) => Value::Int(value),
        Err(_) => Value::Text(value.to_string()),
    };
    Ok(match row.get_ref(column).map_err(failure)? {
        ValueRef::Null => Value::Null,
        ValueRef::Boolean(value) => Value::Int(value.into()),
        ValueRef::TinyInt(value) => Value::Int(value.into()),
        ValueRef::SmallInt(value) => Value::Int(value.into()),
        ValueRef::Int(value) => Value::Int(value.into()),
        ValueRef::BigInt(value) => Value::Int(value),
        ValueRef::HugeInt(value) => int(value),
        ValueRef::UTinyInt(value) => Value::Int(value.into()),
        ValueRef::USmallInt(value) => Value::Int(value.into()),
        ValueRef::UInt(value) => Value::Int(value.into()),
        ValueRef::UBigInt(value) => int(value.into()),
        ValueRef::Float(value) => Value::Float(value.into()),
        ValueRef::Double(value) => Value::Float(value),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Value::Text(String::from_utf8_lossy(bytes).into_owned())
        }
        other => Value::Text(format!("{other:?}")),
    })
}

struct Param<'a>(&'a Value);

impl duckdb::ToSql for Param<'_> {
    fn to_sql(&self) -> duckdb::Result<ToSqlOutput<'_>> {
        match self.0 {
            Value::Int(value) => value.to_sql(),
            Value::Float(value) => value.to_sql(),
            Value::Text(text) => text.to_sql(),
            _ => duckdb::types::Null.to_sql(),
        }
    }
}

/// What an error means for the transaction. The library tells its kinds apart by the first words only.
fn failure(error: duckdb::Error) -> Failure {
    let message = error.to_string();
    let says = |words: &str| message.contains(words);
    if says("TransactionContext Error") || says("Transaction conflict") || says("Conflict on") {
        Failure::aborted("conflict", message)
    } else if says("Constraint Error") {
        Failure::aborted("constraint", message)
    } else if says("FATAL Error") || says("IO Error") || says("INTERNAL Error") {
        Failure::lost(message)
    } else {
        Failure::mistake(format!("DuckDB: {message}"))
    }
}
