//! The history itself: columns of small integers, and borrowed views of a row.
//!
//! Cost, beside the interned keys and values: 12 bytes an operation, where clients kept clocks around single
//! operations 3 to 10 more (see `clocks.rs`: 7 for milliseconds in nanoseconds); 21 bytes a transaction, 16 more where clients kept clocks, 16 more where the
//! database gave timestamps (24 if they are hybrid). Rare things (row sets of scans, `ctx`) live in side tables and
//! cost only where they occur.

use crate::clocks::OpClocks;
use crate::{Column, Id, KeyId, Names, OpId, Predicate, SessionId, TxnId, ValueId, Values};
use bytemuck::{Pod, Zeroable};
use std::fmt;

/// Whether a transaction took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Status {
    /// It did.
    Committed = 0,
    /// It did not.
    Aborted = 1,
    /// The client never learnt.
    Unknown = 2,
}

impl Status {
    pub(crate) fn from_u8(value: u8) -> Option<Self> {
        [Self::Committed, Self::Aborted, Self::Unknown].get(usize::from(value)).copied()
    }

    /// The way it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Aborted => "aborted",
            Self::Unknown => "unknown",
        }
    }
}

/// A stretch of the client's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Span {
    /// When the client sent the request.
    pub begin: i64,
    /// When the answer came.
    pub end: i64,
}

/// A timestamp of the database: an integer, or a hybrid of a physical and a logical part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// The integer, or the physical part.
    pub physical: i64,
    /// The logical part; 0 for a plain integer.
    pub logical: u32,
}

impl From<i64> for Timestamp {
    fn from(physical: i64) -> Self {
        Self { physical, logical: 0 }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.logical {
            0 => write!(f, "{}", self.physical),
            logical => write!(f, "{}.{logical}", self.physical),
        }
    }
}

/// Whether a read locked what it read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Lock {
    /// A plain read.
    #[default]
    None,
    /// `SELECT … FOR SHARE`.
    Share,
    /// `SELECT … FOR UPDATE`.
    Update,
}

/// A range of keys, `[from, to)`; a missing bound is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first key of the range.
    pub from: Option<KeyId>,
    /// The first key after the range.
    pub to: Option<KeyId>,
}

/// A key and the value seen there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct Row {
    /// The key.
    pub key: KeyId,
    /// Its value.
    pub value: ValueId,
}

/// One operation and what came back. `None` where a result is optional means: not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operation<'h> {
    /// A point read. The value may be [`ValueId::ABSENT`] or [`ValueId::UNKNOWN`].
    Read {
        /// What was read.
        key: KeyId,
        /// What came back.
        value: ValueId,
        /// Whether it locked.
        lock: Lock,
    },
    /// Insert or overwrite. Writing `ABSENT` is a delete.
    Write {
        /// Where.
        key: KeyId,
        /// What.
        value: ValueId,
    },
    /// Physical deletion.
    Delete {
        /// Where.
        key: KeyId,
    },
    /// Adds one element to the list at `key`.
    Append {
        /// Where.
        key: KeyId,
        /// What.
        value: ValueId,
    },
    /// Compare and set: writes if the key holds exactly what is expected.
    Cas {
        /// Where.
        key: KeyId,
        /// What it must hold; [`ValueId::ABSENT`]: nothing.
        expect: ValueId,
        /// What is written then; `ABSENT` deletes.
        write: ValueId,
        /// Whether it wrote. If it did not, the key held something else.
        ok: Option<bool>,
    },
    /// All keys of a range, ascending.
    Scan {
        /// The range.
        range: Range,
        /// What came back.
        rows: Option<&'h [Row]>,
    },
    /// The first keys of a range in iteration order.
    Iterate {
        /// The range.
        range: Range,
        /// From the end of the range to its beginning.
        reverse: bool,
        /// Whether the iterator reported the end after the rows.
        exhausted: bool,
        /// What came back.
        rows: Option<&'h [Row]>,
    },
    /// All rows that satisfy a predicate, in any order.
    Query {
        /// The predicate.
        predicate: &'h Predicate,
        /// What came back.
        rows: Option<&'h [Row]>,
    },
    /// Every row that satisfies the predicate gets the value.
    Update {
        /// The predicate.
        predicate: &'h Predicate,
        /// The new value.
        set: ValueId,
        /// How many rows the database said it changed.
        count: Option<u64>,
        /// Which ones.
        keys: Option<&'h [KeyId]>,
    },
    /// Every row that satisfies the predicate is deleted.
    DeleteWhere {
        /// The predicate.
        predicate: &'h Predicate,
        /// How many rows the database said it deleted.
        count: Option<u64>,
        /// Which ones.
        keys: Option<&'h [KeyId]>,
    },
}

impl Operation<'_> {
    /// The key, for operations on one key.
    #[inline]
    pub fn key(&self) -> Option<KeyId> {
        match *self {
            Self::Read { key, .. }
            | Self::Write { key, .. }
            | Self::Delete { key }
            | Self::Append { key, .. }
            | Self::Cas { key, .. } => Some(key),
            _ => None,
        }
    }

    /// The way it is written in the native format.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Delete { .. } => "delete",
            Self::Append { .. } => "append",
            Self::Cas { .. } => "cas",
            Self::Scan { .. } => "scan",
            Self::Iterate { .. } => "iterate",
            Self::Query { .. } => "query",
            Self::Update { .. } => "update",
            Self::DeleteWhere { .. } => "delete-where",
        }
    }
}

/// An operation on one key, without what few need to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// What it does.
    pub kind: PointKind,
    /// Where.
    pub key: KeyId,
    /// What came back, or what is written; [`ValueId::ABSENT`] for a delete.
    pub value: ValueId,
}

/// What an operation on one key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointKind {
    /// Reads.
    Read,
    /// Inserts, overwrites or deletes.
    Write,
    /// Adds one element to a list.
    Append,
}

/// An operation as it is stored: its kind, and two ids that mean what the kind says.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct PackedOp {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) unused: u16,
    /// The key; for operations on many keys the index into `compounds`.
    pub(crate) a: u32,
    /// The value; what a compare and set expects.
    pub(crate) b: u32,
}

pub(crate) mod kind {
    pub(crate) const READ: u8 = 0;
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const DELETE: u8 = 2;
    pub(crate) const APPEND: u8 = 3;
    pub(crate) const SCAN: u8 = 4;
    pub(crate) const ITERATE: u8 = 5;
    pub(crate) const QUERY: u8 = 6;
    pub(crate) const UPDATE: u8 = 7;
    pub(crate) const DELETE_WHERE: u8 = 8;
    /// Holds its key as `from`, and the key as the one that it changed, if it wrote; `b` is what it expects.
    pub(crate) const CAS: u8 = 9;
}

pub(crate) mod flag {
    /// Reads: locks for share.
    pub(crate) const SHARE: u8 = 1;
    /// Reads: locks for update.
    pub(crate) const UPDATE: u8 = 2;
    /// Iterators: from the end.
    pub(crate) const REVERSE: u8 = 4;
    /// Iterators: the end was reported.
    pub(crate) const EXHAUSTED: u8 = 8;
}

/// What an operation on many keys holds beside its kind.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Compound {
    /// Bounds as key ids, [`NO_ID`] where open.
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Index into the predicates, [`NO_ID`] where there is none.
    pub(crate) predicate: u32,
    /// The piece of `rows` (or of `key_lists`) that came back; `rows_len` is [`NO_ID`] if unknown.
    pub(crate) rows_start: u32,
    pub(crate) rows_len: u32,
    /// The new value of an update.
    pub(crate) set: ValueId,
    /// The reported count, [`NO_COUNT`] if unknown.
    pub(crate) count: u64,
}

pub(crate) const NO_ID: u32 = u32::MAX;
pub(crate) const NO_COUNT: u64 = u64::MAX;

/// Everything clients saw. Made by a [`crate::Builder`], then immutable.
#[derive(Clone, Debug, Default)]
pub struct History {
    // One row a transaction.
    pub(crate) session: Column<TxnId, SessionId>,
    pub(crate) position: Column<TxnId, u32>,
    pub(crate) status: Column<TxnId, u8>,
    /// Explicit ids as an index into `ids`, [`NO_ID`] for the default.
    pub(crate) id: Column<TxnId, u32>,
    /// Where each transaction's operations begin; one entry more than there are transactions.
    pub(crate) first_op: Vec<u32>,
    /// Empty, or one entry a transaction; a transaction without clocks has `begin > end`.
    pub(crate) client: Vec<Span>,
    /// Empty, or one entry a transaction; a transaction without timestamps has `begin > end`.
    pub(crate) db: Vec<Span>,
    /// Empty, or the logical parts of `db`.
    pub(crate) db_logical: Vec<[u32; 2]>,
    // One row an operation.
    pub(crate) ops: Column<OpId, PackedOp>,
    // Side tables.
    pub(crate) compounds: Vec<Compound>,
    pub(crate) rows: Vec<Row>,
    pub(crate) key_lists: Vec<KeyId>,
    pub(crate) predicates: Vec<Predicate>,
    /// Clocks of single operations.
    pub(crate) op_clocks: OpClocks,
    pub(crate) op_extra: Vec<(OpId, Box<str>)>,
    pub(crate) txn_extra: Vec<(TxnId, TxnExtra)>,
    // Names and values.
    pub(crate) keys: Names<KeyId>,
    pub(crate) sessions: Names<SessionId>,
    pub(crate) ids: Names<TxnId>,
    pub(crate) values: Values,
    // The state before the first transaction, ascending by key id.
    pub(crate) initial: Vec<Row>,
    pub(crate) header: Header,
    /// Transactions by session, in session order; `session_start` delimits them.
    pub(crate) by_session: Vec<TxnId>,
    pub(crate) session_start: Vec<u32>,
}

/// Rare fields of a transaction, as JSON text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TxnExtra {
    /// The level this transaction asked for.
    pub(crate) level: Option<Box<str>>,
    /// The `ctx` object.
    pub(crate) ctx: Option<Box<str>>,
    /// An object of the fields the format does not define.
    pub(crate) unknown: Option<Box<str>>,
}

/// What the header said beside the initial values.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Header {
    pub(crate) level: Option<Box<str>>,
    /// An object of the other fields, as JSON text.
    pub(crate) extra: Option<Box<str>>,
}

/// No clocks were recorded: the one span that no client can have seen.
pub(crate) const NO_SPAN: Span = Span { begin: i64::MAX, end: i64::MIN };

impl History {
    /// How many transactions there are, of any status.
    #[inline]
    pub fn len(&self) -> usize {
        self.session.len()
    }

    /// Whether there is no transaction at all.
    pub fn is_empty(&self) -> bool {
        self.session.is_empty()
    }

    /// How many operations there are.
    pub fn op_count(&self) -> usize {
        self.ops.len()
    }

    /// All transactions in the order of the file.
    pub fn transactions(&self) -> impl DoubleEndedIterator<Item = Transaction<'_>> + ExactSizeIterator {
        (0..self.len()).map(|index| self.transaction(TxnId::new(index)))
    }

    /// One transaction.
    #[inline]
    pub fn transaction(&self, id: TxnId) -> Transaction<'_> {
        Transaction { history: self, id }
    }

    /// One operation.
    #[inline]
    pub fn operation(&self, id: OpId) -> Operation<'_> {
        let op = self.ops[id];
        match op.kind {
            kind::READ => Operation::Read { key: KeyId(op.a), value: ValueId(op.b), lock: lock_of(op.flags) },
            kind::WRITE => Operation::Write { key: KeyId(op.a), value: ValueId(op.b) },
            kind::DELETE => Operation::Delete { key: KeyId(op.a) },
            kind::APPEND => Operation::Append { key: KeyId(op.a), value: ValueId(op.b) },
            _ => self.compound_operation(op),
        }
    }

    fn compound_operation(&self, op: PackedOp) -> Operation<'_> {
        let it = self.compounds[op.a as usize];
        let bound = |id: u32| (id != NO_ID).then_some(KeyId(id));
        let range = Range { from: bound(it.from), to: bound(it.to) };
        let piece = (it.rows_len != NO_ID)
            .then(|| it.rows_start as usize..it.rows_start as usize + it.rows_len as usize);
        let rows = || piece.clone().map(|piece| &self.rows[piece]);
        let keys = || piece.clone().map(|piece| &self.key_lists[piece]);
        let count = (it.count != NO_COUNT).then_some(it.count);
        let predicate = || &self.predicates[it.predicate as usize];
        match op.kind {
            kind::SCAN => Operation::Scan { range, rows: rows() },
            kind::ITERATE => Operation::Iterate {
                range,
                reverse: op.flags & flag::REVERSE != 0,
                exhausted: op.flags & flag::EXHAUSTED != 0,
                rows: rows(),
            },
            kind::QUERY => Operation::Query { predicate: predicate(), rows: rows() },
            kind::UPDATE => Operation::Update { predicate: predicate(), set: it.set, count, keys: keys() },
            kind::DELETE_WHERE => Operation::DeleteWhere { predicate: predicate(), count, keys: keys() },
            kind::CAS => Operation::Cas {
                key: KeyId(it.from),
                expect: ValueId(op.b),
                write: it.set,
                ok: keys().map(|keys| !keys.is_empty()),
            },
            other => unreachable!(
                "operation kind {other}: the builder and the binary reader admit only known kinds"
            ),
        }
    }

    /// The keys that a conditional write says it changed.
    pub(crate) fn changed_by(&self, id: OpId) -> Option<&[KeyId]> {
        let it = self.compounds[self.ops[id].a as usize];
        (it.rows_len != NO_ID)
            .then(|| &self.key_lists[it.rows_start as usize..it.rows_start as usize + it.rows_len as usize])
    }

    /// The transaction that an operation belongs to.
    pub fn owner(&self, op: OpId) -> TxnId {
        // The last transaction whose operations begin at or before it; empty ones begin there too.
        TxnId::new(self.first_op.partition_point(|&first| first <= op.0) - 1)
    }

    /// One operation, if it is on one key: the fast way for loops over millions of them.
    #[inline]
    pub fn point(&self, id: OpId) -> Option<Point> {
        let op = self.ops[id];
        let kind = match op.kind {
            kind::READ => PointKind::Read,
            kind::WRITE | kind::DELETE => PointKind::Write,
            kind::APPEND => PointKind::Append,
            _ => return None,
        };
        Some(Point { kind, key: KeyId(op.a), value: ValueId(op.b) })
    }

    /// The client's clock around one operation, where it was recorded.
    pub fn operation_at(&self, id: OpId) -> Option<Span> {
        self.op_clocks.get(id)
    }

    /// Fields of an operation that the format does not define, as a JSON object.
    pub fn operation_extra(&self, id: OpId) -> Option<&str> {
        self.op_extra.binary_search_by_key(&id, |(op, _)| *op).ok().map(|place| &*self.op_extra[place].1)
    }

    /// The keys, in the order they were first seen.
    pub fn keys(&self) -> &Names<KeyId> {
        &self.keys
    }

    /// The id of a key, by name. A walk over all keys.
    pub fn find_key(&self, name: crate::NameRef<'_>) -> Option<KeyId> {
        self.keys.ids().find(|&key| self.keys.get(key) == name)
    }

    /// The elements of a list value; none for any other value.
    pub fn values_of(&self, value: ValueId) -> &[ValueId] {
        if value.is_known() { self.values.elements(value) } else { &[] }
    }

    /// The ids that transactions were given, as their names are in the history.
    pub fn explicit_ids(&self) -> &Names<TxnId> {
        &self.ids
    }

    /// The sessions, in the order they were first seen.
    pub fn sessions(&self) -> &Names<SessionId> {
        &self.sessions
    }

    /// The values.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The transactions of a session, in session order.
    pub fn of_session(&self, session: SessionId) -> &[TxnId] {
        let start = self.session_start[session.index()] as usize;
        let end = self.session_start[session.index() + 1] as usize;
        &self.by_session[start..end]
    }

    /// The state before the first transaction, ascending by key id. Keys not listed are absent.
    pub fn initial(&self) -> &[Row] {
        &self.initial
    }

    /// The value of a key before the first transaction.
    pub fn initial_value(&self, key: KeyId) -> ValueId {
        match self.initial.binary_search_by_key(&key, |row| row.key) {
            Ok(place) => self.initial[place].value,
            Err(_) => ValueId::ABSENT,
        }
    }

    /// The level that the header asks for.
    pub fn level(&self) -> Option<&str> {
        self.header.level.as_deref()
    }

    /// Header fields that the format does not define, as a JSON object.
    pub fn header_extra(&self) -> Option<&str> {
        self.header.extra.as_deref()
    }

    /// Whether any transaction carries client clocks.
    pub fn has_client_clocks(&self) -> bool {
        !self.client.is_empty()
    }

    /// Whether any transaction carries database timestamps.
    pub fn has_db_timestamps(&self) -> bool {
        !self.db.is_empty()
    }

    /// Heap bytes by what they are for.
    pub fn footprint(&self) -> Footprint {
        let plain = |len: usize, size: usize| len * size;
        Footprint {
            transactions: self.session.bytes()
                + self.position.bytes()
                + self.status.bytes()
                + self.id.bytes()
                + plain(self.first_op.capacity(), 4)
                + plain(self.client.capacity() + self.db.capacity(), size_of::<Span>())
                + plain(self.db_logical.capacity(), 8)
                + plain(self.by_session.capacity(), 4),
            operations: self.ops.bytes()
                + plain(self.compounds.capacity(), size_of::<Compound>())
                + plain(self.rows.capacity(), size_of::<Row>())
                + plain(self.key_lists.capacity(), 4)
                + self.op_clocks.heap_bytes(),
            names_and_values: self.keys.bytes()
                + self.sessions.bytes()
                + self.ids.bytes()
                + self.values.bytes()
                + plain(self.initial.capacity(), size_of::<Row>()),
        }
    }
}

/// Heap bytes of a history; see [`History::footprint`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Columns of transactions.
    pub transactions: usize,
    /// Columns and side tables of operations.
    pub operations: usize,
    /// Interned keys, sessions, ids and values.
    pub names_and_values: usize,
}

fn lock_of(flags: u8) -> Lock {
    match flags & (flag::SHARE | flag::UPDATE) {
        flag::SHARE => Lock::Share,
        flag::UPDATE => Lock::Update,
        _ => Lock::None,
    }
}

/// One transaction, borrowed from its history.
#[derive(Clone, Copy)]
pub struct Transaction<'h> {
    history: &'h History,
    id: TxnId,
}

impl<'h> Transaction<'h> {
    /// Its history.
    #[inline]
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// Its number.
    #[inline]
    pub fn id(&self) -> TxnId {
        self.id
    }

    /// The connection that issued it.
    #[inline]
    pub fn session(&self) -> SessionId {
        self.history.session[self.id]
    }

    /// Its place in its session, from 0.
    #[inline]
    pub fn position(&self) -> u32 {
        self.history.position[self.id]
    }

    /// Whether it took effect.
    #[inline]
    pub fn status(&self) -> Status {
        Status::from_u8(self.history.status[self.id]).unwrap_or(Status::Unknown)
    }

    /// Whether it certainly took effect.
    #[inline]
    pub fn is_committed(&self) -> bool {
        self.status() == Status::Committed
    }

    /// The client's clock from begin to the answer to commit.
    #[inline]
    pub fn client(&self) -> Option<Span> {
        self.history.client.get(self.id.index()).copied().filter(|span| span.begin <= span.end)
    }

    /// The database's start and commit timestamps.
    pub fn db(&self) -> Option<(Timestamp, Timestamp)> {
        let span = *self.history.db.get(self.id.index())?;
        if span == NO_SPAN {
            return None;
        }
        let [start, commit] = self.history.db_logical.get(self.id.index()).copied().unwrap_or_default();
        Some((
            Timestamp { physical: span.begin, logical: start },
            Timestamp { physical: span.end, logical: commit },
        ))
    }

    /// The id of its first operation; of the next transaction's if it has none.
    pub fn first_op(&self) -> OpId {
        OpId(self.history.first_op[self.id.index()])
    }

    /// Its operations in the order issued.
    #[inline]
    pub fn ops(&self) -> Operations<'h> {
        let start = self.history.first_op[self.id.index()];
        let end = self.history.first_op[self.id.index() + 1];
        Operations { history: self.history, next: start, end }
    }

    /// The ids of its operations.
    #[inline]
    pub fn op_ids(&self) -> impl DoubleEndedIterator<Item = OpId> + ExactSizeIterator + use<> {
        let start = self.history.first_op[self.id.index()];
        let end = self.history.first_op[self.id.index() + 1];
        (start..end).map(OpId)
    }

    fn extra(&self) -> Option<&'h TxnExtra> {
        let extra = &self.history.txn_extra;
        extra.binary_search_by_key(&self.id, |(id, _)| *id).ok().map(|place| &extra[place].1)
    }

    /// The level it asked for, where a history mixes them.
    pub fn level(&self) -> Option<&'h str> {
        self.extra().and_then(|extra| extra.level.as_deref())
    }

    /// Hints and debug fields, as a JSON object.
    pub fn ctx(&self) -> Option<&'h str> {
        self.extra().and_then(|extra| extra.ctx.as_deref())
    }

    /// Fields that the format does not define, as a JSON object.
    pub fn extra_fields(&self) -> Option<&'h str> {
        self.extra().and_then(|extra| extra.unknown.as_deref())
    }

    /// The id it was given, if it was.
    pub fn explicit_id(&self) -> Option<crate::NameRef<'h>> {
        let id = self.history.id[self.id];
        (id != NO_ID).then(|| self.history.ids.get(TxnId(id)))
    }

    /// Its name for people and reports: the id it was given, else `SESSION:N`.
    pub fn name(&self) -> impl fmt::Display + use<'h> {
        TxnName(*self)
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name(), self.ops().map(|(_, op)| op).collect::<Vec<_>>())
    }
}

struct TxnName<'h>(Transaction<'h>);

impl fmt::Display for TxnName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.explicit_id() {
            Some(id) => id.fmt(f),
            None => write!(f, "{}:{}", self.0.history.sessions.get(self.0.session()), self.0.position()),
        }
    }
}

/// The operations of a transaction with their ids.
#[derive(Clone)]
pub struct Operations<'h> {
    history: &'h History,
    next: u32,
    end: u32,
}

impl<'h> Iterator for Operations<'h> {
    type Item = (OpId, Operation<'h>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        let id = OpId(self.next);
        self.next += 1;
        Some((id, self.history.operation(id)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.end - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Operations<'_> {}
