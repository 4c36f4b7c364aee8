//! What the SQL of each vendor can say, for programs that write statements of their own.
//!
//! A grammar is a row of data: the reader of the row knows no vendor. What a statement *sees* is part of it,
//! because a program that reasons about statements must know which state each of them looks at.

use crate::dialect::{self, Upsert};

/// What a vendor's SQL can say, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grammar {
    /// Column types: integers of 64 bits, floating point of 64 bits, short text that can be indexed.
    pub integer: &'static str,
    /// See [`Grammar::integer`].
    pub real: &'static str,
    /// See [`Grammar::integer`].
    pub text: &'static str,
    /// The same types where a value is cast.
    pub cast_integer: &'static str,
    /// See [`Grammar::cast_integer`].
    pub cast_real: &'static str,
    /// See [`Grammar::cast_integer`].
    pub cast_text: &'static str,
    /// What follows the closing parenthesis of CREATE TABLE.
    pub table_options: &'static str,
    /// What stands between the rows to insert and the assignments for rows that are there already, with
    /// `{key}` for the key's column.
    pub upsert: &'static str,
    /// What ends a SELECT that locks what it finds against writers, and against everybody who locks.
    pub for_share: Option<&'static str>,
    /// See [`Grammar::for_share`].
    pub for_update: Option<&'static str>,
    /// The operator that holds NULL equal to NULL.
    pub same: &'static str,
    /// Whether `a || b` joins texts; else `CONCAT(a, b)` does.
    pub bars_concatenate: bool,
    /// Whether an index may cover the rows of a condition only.
    pub partial_indexes: bool,
    /// Whether queries may begin with WITH.
    pub with: bool,
    /// Whether INTERSECT and EXCEPT are known.
    pub intersect: bool,
    /// Whether window functions are known.
    pub windows: bool,
    /// Whether a transaction may go back to a place inside it.
    pub savepoints: bool,
    /// Whether the sub-queries of UPDATE and DELETE may read the table that is written.
    pub write_reads_target: bool,
    /// The same for the sub-queries among the values of an INSERT.
    pub insert_reads_target: bool,
}

impl Grammar {
    /// What nearly every vendor understands.
    pub const PLAIN: Self = SQLITE;
}

/// Which committed state a statement looks at; its own transaction's writes are on top of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum View {
    /// The state when the statement begins.
    Statement,
    /// The state when the transaction's first statement began.
    Transaction,
}

/// What the statements of a level look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sight {
    /// Plain reads.
    pub reads: View,
    /// Writes and locking reads.
    pub writes: View,
}

impl Sight {
    /// Everything looks at the newest committed state.
    pub const NEWEST: Self = Self { reads: View::Statement, writes: View::Statement };
    /// Everything looks at one snapshot.
    pub const SNAPSHOT: Self = Self { reads: View::Transaction, writes: View::Transaction };
    /// Plain reads look at a snapshot, everything else at the newest state.
    pub const SPLIT: Self = Self { reads: View::Transaction, writes: View::Statement };
}

/// The words between the rows and the assignments.
const fn upsert_words(upsert: Upsert) -> &'static str {
    match upsert {
        Upsert::OnConflict => "ON CONFLICT ({key}) DO UPDATE SET",
        Upsert::OnDuplicateKey => "ON DUPLICATE KEY UPDATE",
    }
}

pub(crate) const SQLITE: Grammar = Grammar {
    integer: "INTEGER",
    real: "REAL",
    text: "TEXT",
    cast_integer: "INTEGER",
    cast_real: "REAL",
    cast_text: "TEXT",
    table_options: "",
    upsert: upsert_words(dialect::SQLITE.upsert),
    for_share: dialect::SQLITE.for_share,
    for_update: dialect::SQLITE.for_update,
    same: "IS",
    bars_concatenate: true,
    partial_indexes: true,
    with: true,
    intersect: true,
    windows: true,
    savepoints: true,
    write_reads_target: true,
    insert_reads_target: true,
};

#[cfg(feature = "duckdb")]
pub(crate) const DUCKDB: Grammar = Grammar {
    integer: "BIGINT",
    real: "DOUBLE",
    text: "VARCHAR",
    cast_integer: "BIGINT",
    cast_real: "DOUBLE",
    cast_text: "VARCHAR",
    same: "IS NOT DISTINCT FROM",
    partial_indexes: false,
    savepoints: false,
    ..SQLITE
};

pub(crate) const POSTGRES: Grammar = Grammar {
    integer: "BIGINT",
    real: "DOUBLE PRECISION",
    text: "TEXT COLLATE \"C\"",
    cast_integer: "BIGINT",
    cast_real: "DOUBLE PRECISION",
    cast_text: "TEXT",
    table_options: "",
    upsert: upsert_words(dialect::POSTGRES.upsert),
    for_share: dialect::POSTGRES.for_share,
    for_update: dialect::POSTGRES.for_update,
    same: "IS NOT DISTINCT FROM",
    bars_concatenate: true,
    partial_indexes: true,
    with: true,
    intersect: true,
    windows: true,
    savepoints: true,
    write_reads_target: true,
    insert_reads_target: true,
};

pub(crate) const MARIADB: Grammar = Grammar {
    integer: "BIGINT",
    real: "DOUBLE",
    text: "VARCHAR(64)",
    cast_integer: "SIGNED",
    cast_real: "DOUBLE",
    cast_text: "CHAR",
    table_options: "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
    upsert: upsert_words(dialect::MARIADB.upsert),
    for_share: dialect::MARIADB.for_share,
    for_update: dialect::MARIADB.for_update,
    same: "<=>",
    bars_concatenate: false,
    partial_indexes: false,
    with: true,
    intersect: true,
    windows: true,
    savepoints: true,
    write_reads_target: true,
    insert_reads_target: false,
};

/// MySQL before 8.0: no WITH, no windows, and a write never reads its own table.
pub(crate) const OLD_MYSQL: Grammar = Grammar {
    cast_real: "DECIMAL(20,4)",
    with: false,
    intersect: false,
    windows: false,
    write_reads_target: false,
    ..MARIADB
};

/// MySQL from 8.0 on; INTERSECT came later.
pub(crate) const MYSQL: Grammar = Grammar { with: true, windows: true, cast_real: "DOUBLE", ..OLD_MYSQL };
