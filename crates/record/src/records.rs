//! Transactions as their clients saw them, before anything is interned.

use crate::request::{Request, Response, Value};
use history::{Name, Span, Status};

/// What stands before the first transaction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Header {
    /// The level the history is to be checked at, by the checker's name.
    pub level: Option<String>,
    /// Values before the first transaction.
    pub initial: Vec<(Name, Value)>,
    /// Further fields, e.g. the database and the workload.
    pub notes: Vec<(String, String)>,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct TxnRecord {
    /// The connection.
    pub session: Name,
    /// Whether it took effect.
    pub status: Status,
    /// The client's clock, in nanoseconds since the recording began.
    pub client: Span,
    /// The level it asked for, where it differs from the history's.
    pub level: Option<String>,
    /// Its operations in the order issued.
    pub ops: Vec<OpRecord>,
    /// What the database said of its place among the others.
    pub stamp: Option<Stamp>,
    /// Why it did not commit.
    pub failure: Option<String>,
}

/// An operation as its client saw it.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRecord {
    /// What was asked.
    pub request: Request,
    /// What came back; `None` if nothing did.
    pub response: Option<Response>,
    /// The client's clock around it.
    pub at: Span,
    /// The text that was sent.
    pub statement: Option<String>,
}

/// How much is kept beside the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Detail {
    /// Statement texts, in `ctx`.
    pub statements: bool,
    /// The clock around each operation, in `at`.
    pub operation_clocks: bool,
}

impl Default for Detail {
    fn default() -> Self {
        Self { statements: true, operation_clocks: true }
    }
}

/// What a session learnt about a transaction's place in the database's own order, in the vendor's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The snapshot it read from.
    pub snapshot: String,
    /// The name under which it committed; `None` if it wrote nothing.
    pub commit: Option<String>,
}
