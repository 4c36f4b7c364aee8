//! What came of a transaction: the steps as they were issued, and what came back.

use crate::bugs::Bug;
use crate::keys::Key;
use crate::plan::{Filter, Piece, Value};
use history::{Lock, Span, Status};

/// One operation and its result. A missing result is not known to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A point read.
    Read {
        /// Where.
        key: Key,
        /// What was there.
        value: Option<Value>,
        /// Whether it locked.
        lock: Lock,
    },
    /// Insert or overwrite.
    Write {
        /// Where.
        key: Key,
        /// What.
        value: Value,
    },
    /// Physical deletion.
    Delete {
        /// Where.
        key: Key,
    },
    /// One more element of a list.
    Append {
        /// Where.
        key: Key,
        /// What.
        element: i64,
    },
    /// All keys of a range.
    Scan {
        /// The first key.
        from: Option<Key>,
        /// The first key beyond.
        to: Option<Key>,
        /// A piece of [`Executed::rows`].
        rows: Option<Piece>,
    },
    /// The first keys of a range.
    Iterate {
        /// The first key.
        from: Key,
        /// The first key beyond.
        to: Key,
        /// From the end.
        reverse: bool,
        /// Whether the end was reported.
        exhausted: bool,
        /// A piece of [`Executed::rows`].
        rows: Option<Piece>,
    },
    /// All rows that satisfy a filter.
    Query {
        /// Which.
        filter: Filter,
        /// A piece of [`Executed::rows`].
        rows: Option<Piece>,
    },
    /// A predicate write.
    Update {
        /// Which.
        filter: Filter,
        /// What.
        set: Value,
        /// A piece of [`Executed::keys`].
        keys: Option<Piece>,
    },
    /// A predicate delete.
    DeleteWhere {
        /// Which.
        filter: Filter,
        /// A piece of [`Executed::keys`].
        keys: Option<Piece>,
    },
}

/// A finished transaction.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The session's number, from 0.
    pub session: u32,
    /// Its place among the recorded transactions of the session, from 0.
    pub position: u64,
    /// What the client learnt of its outcome.
    pub status: Status,
    /// The client's clock, in nanoseconds.
    pub client: Span,
    /// The database's start and commit timestamps, where it took effect and the client learnt so.
    pub db: Option<(u64, u64)>,
    /// The operations.
    pub ops: Vec<Done>,
    /// The client's clock around each operation, where the simulation keeps it.
    pub times: Vec<Span>,
    /// Rows that scans, iterators and queries returned.
    pub rows: Vec<(Key, Value)>,
    /// Elements of lists that were read.
    pub elements: Vec<i64>,
    /// Keys that predicate writes reported.
    pub keys: Vec<Key>,
    /// The bug that it is a part of, if it is.
    pub planted: Option<Bug>,
}

impl Executed {
    pub(crate) fn new() -> Self {
        Self {
            session: 0,
            position: 0,
            status: Status::Committed,
            client: Span { begin: 0, end: 0 },
            db: None,
            ops: Vec::new(),
            times: Vec::new(),
            rows: Vec::new(),
            elements: Vec::new(),
            keys: Vec::new(),
            planted: None,
        }
    }

    /// Makes it ready for the next transaction; memory is kept.
    pub(crate) fn reset(&mut self, session: u32, begin: i64) {
        self.session = session;
        self.status = Status::Committed;
        self.client = Span { begin, end: begin };
        self.db = None;
        self.ops.clear();
        self.times.clear();
        self.rows.clear();
        self.elements.clear();
        self.keys.clear();
        self.planted = None;
    }

    /// How much there is to record, roughly.
    pub(crate) fn items(&self) -> usize {
        self.ops.len() + self.rows.len() + self.elements.len() + self.keys.len()
    }

    /// The number that was last read at a key; an absent key counts as 0.
    pub(crate) fn last_number(&self, key: Key) -> i64 {
        let read = self.ops.iter().rev().find_map(|op| match op {
            Done::Read { key: read, value, .. } if *read == key => Some(*value),
            _ => None,
        });
        match read {
            Some(Some(Value::Int(number))) => number,
            _ => 0,
        }
    }

    /// Forgets the result of the last operation.
    pub(crate) fn lose_last_result(&mut self) {
        match self.ops.last_mut() {
            Some(Done::Read { value, .. }) => *value = None,
            Some(Done::Scan { rows, .. } | Done::Query { rows, .. }) => *rows = None,
            Some(Done::Iterate { rows, exhausted, .. }) => {
                *rows = None;
                *exhausted = false;
            }
            Some(Done::Update { keys, .. } | Done::DeleteWhere { keys, .. }) => *keys = None,
            Some(Done::Write { .. } | Done::Delete { .. } | Done::Append { .. }) | None => {}
        }
    }
}
