//! Makes a history, one transaction after the other, and refuses what no client can have seen.

mod copy;
mod earlier;
mod finish;
mod identity;
mod initial;
mod operations;
mod parts;
#[cfg(test)]
mod tests;

pub use copy::Copier;

pub(crate) use initial::{canonical_integer, initial_meanings};
pub(crate) use parts::Indexed;

use crate::model::{NO_ID, NO_SPAN, TxnExtra, kind};
use crate::names::NameIndex;
use crate::room::Room;
use crate::values::{TextHash, ValueIndex};
use crate::{
    Cell, ColumnId, History, Id, Interrupt, KeyId, NameRef, OpId, SessionId, Span, Status, Timestamp, TxnId,
    ValueId, ValueRef,
};
use identity::Identity;
use initial::Initial;
use std::fmt;

/// Why a builder refused something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildError {
    /// `client.begin` is after `client.end`.
    ClientBackwards(Span),
    /// `db` is the pair of times that stands for no timestamps at all.
    DbOutOfRange,
    /// Two transactions have the same id.
    DuplicateId(String),
    /// More of something than ids and offsets of 32 bits can tell apart.
    TooMany(&'static str),
    /// Whoever waits for the history has asked to stop; see [`Builder::set_interrupt`].
    Interrupted,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientBackwards(span) => {
                write!(
                    f,
                    "client.begin {} is after client.end {}: a transaction cannot end before it began",
                    span.begin, span.end
                )
            }
            Self::DbOutOfRange => f.write_str(
                "db.start is the largest and db.commit the smallest time there is: \
                 a transaction without timestamps has no `db`",
            ),
            Self::DuplicateId(id) => {
                write!(f, "transaction id {id} is used twice: ids must be unique in a history")
            }
            Self::TooMany(what) => write!(f, "more {what} than 32-bit numbers can count: split the history"),
            Self::Interrupted => f.write_str("reading was interrupted"),
        }
    }
}

impl std::error::Error for BuildError {}

/// Builds a [`History`].
///
/// ```
/// use taipan_history::{Builder, Lock, Status};
///
/// let mut builder = Builder::new();
/// let (x, one) = (builder.key("x".into()), builder.int(1));
/// let session = builder.session(1.into());
/// builder.begin(session);
/// builder.write(x, one);
/// builder.end().unwrap();
/// builder.begin(session);
/// builder.read(x, one, Lock::None);
/// builder.set_status(Status::Unknown);
/// builder.end().unwrap();
/// let history = builder.finish().unwrap();
/// assert_eq!(history.len(), 2);
/// assert_eq!(history.transactions().last().unwrap().name().to_string(), "1:1");
/// ```
#[derive(Debug, Default)]
pub struct Builder {
    history: History,
    interned: Interned,
    /// Room in the history's own tables.
    room: Room,
    /// The transaction that is open, if one is.
    open: Option<Open>,
    /// Whether a header, a transaction or a part has been seen: too late for a header.
    started: bool,
    initial: Initial,
    lengths: Lengths,
    identity: Identity,
    /// Transactions and operations of parts already taken.
    taken: (u64, u64),
    interrupt: Interrupt,
    /// How many operations and transactions may come before the interrupt is asked.
    unasked: usize,
}

/// Names and values, each once, with the means to find them again.
#[derive(Debug, Default)]
pub(crate) struct Interned {
    pub(crate) keys: NameIndex<KeyId>,
    pub(crate) sessions: NameIndex<SessionId>,
    pub(crate) ids: NameIndex<TxnId>,
    pub(crate) values: ValueIndex,
}

impl Interned {
    /// Fails if a name or a value did not fit.
    #[inline]
    fn check(&self) -> Result<(), BuildError> {
        self.keys.room.check()?;
        self.sessions.room.check()?;
        self.ids.room.check()?;
        self.values.room.check()?;
        self.values.columns.room.check()
    }
}

/// How many transactions each session has so far.
#[derive(Debug, Default)]
struct Lengths {
    of: Vec<u32>,
    /// Sessions of parts already taken, and how many transactions they had.
    carried: NameIndex<SessionId>,
    carried_len: Vec<u32>,
}

/// How much work lies between two questions: some microseconds.
const UNASKED_MAX: usize = 1024;

#[derive(Debug)]
struct Open {
    session: SessionId,
    status: Status,
    id: u32,
    /// Whether no other transaction has the id.
    is_new_id: bool,
    client: Span,
    db: Option<(Timestamp, Timestamp)>,
    extra: TxnExtra,
}

impl Builder {
    /// An empty history.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty piece of a history whose sessions began before it. Default ids, which count from the beginning of the
    /// session, are then not known here, and not compared with ids that transactions were given.
    pub fn piece() -> Self {
        let mut builder = Self::default();
        builder.identity.is_piece = true;
        builder
    }

    /// An empty piece of a stream that may deliver a transaction more than once: ids may be the same.
    pub fn stream() -> Self {
        let mut builder = Self::piece();
        builder.identity.has_repeats = true;
        builder
    }

    /// Makes room for that many operations more. The caller must know that they will come: a number that a file
    /// merely claims is no reason to ask for memory.
    pub fn reserve_operations(&mut self, count: usize) {
        self.history.ops.reserve(count);
    }

    /// Asks for the memory that an integer key and an integer value will need soon. Readers of formats with hashed
    /// keys do so for a batch of operations before they add them: the batch then waits for memory once, not
    /// once an operation. Cobra's logs of a million transactions with hashed keys take 1.2 times as long to read with plain
    /// loads instead, to which a processor holds on until they are done, and 1.6 times with neither.
    #[inline]
    pub(crate) fn prefetch_integers(&self, key: i64, value: i64) {
        self.interned.keys.prefetch_int(key);
        self.interned.values.prefetch_int(value);
    }

    pub(crate) fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// From now on [`Self::end`] fails soon after the interrupt is due.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = interrupt;
    }

    /// Notes that some work was done, and fails if it is to stop. For readers that gather operations before they
    /// build transactions of them; [`Self::end`] does it by itself.
    #[inline]
    pub fn worked(&mut self, steps: usize) -> Result<(), BuildError> {
        match self.unasked.checked_sub(steps) {
            Some(left) => {
                self.unasked = left;
                Ok(())
            }
            None => self.ask(),
        }
    }

    #[cold]
    fn ask(&mut self) -> Result<(), BuildError> {
        if self.interrupt.is_due(0) {
            return Err(BuildError::Interrupted);
        }
        self.unasked = UNASKED_MAX;
        Ok(())
    }

    /// Gives operations of the open transaction their values, which are texts. Texts are
    /// looked up at random places of large tables: a batch of them waits for memory once, not once a text.
    pub(crate) fn settle_texts<'t>(
        &mut self,
        texts: impl Iterator<Item = (OpId, &'t str, TextHash)> + Clone,
    ) {
        self.interned.values.touch_texts(texts.clone().map(|(_, _, hash)| hash));
        for (op, text, hash) in texts {
            self.history.ops[op].b = self.interned.values.hashed_text(text, hash).0;
        }
    }

    // ---- names and values ----

    /// The id of a key.
    #[inline]
    pub fn key(&mut self, name: NameRef<'_>) -> KeyId {
        self.interned.keys.intern(name)
    }

    /// The id of a session.
    #[inline]
    pub fn session(&mut self, name: NameRef<'_>) -> SessionId {
        let id = self.interned.sessions.intern(name);
        if id.index() == self.lengths.of.len() {
            let before = self.lengths.carried.find(name).map_or(0, |id| self.lengths.carried_len[id.index()]);
            self.lengths.of.push(before);
        }
        id
    }

    /// The id of an integer.
    #[inline]
    pub fn int(&mut self, value: i64) -> ValueId {
        self.interned.values.int(value)
    }

    /// The id of an unsigned integer.
    pub fn uint(&mut self, value: u64) -> ValueId {
        self.interned.values.uint(value)
    }

    /// The id of a number; `1.0` is `1`.
    pub fn float(&mut self, value: f64) -> ValueId {
        self.interned.values.float(value)
    }

    /// The id of a text.
    pub fn text(&mut self, text: &str) -> ValueId {
        self.interned.values.intern(ValueRef::Str(text))
    }

    /// The id of a truth value.
    pub fn boolean(&mut self, value: bool) -> ValueId {
        self.interned.values.intern(ValueRef::Bool(value))
    }

    /// The id of a list of values.
    pub fn list(&mut self, elements: &[ValueId]) -> ValueId {
        self.interned.values.intern(ValueRef::List(elements))
    }

    /// The id of a row; of two cells of one column the last counts.
    pub fn row(&mut self, cells: &mut Vec<Cell>) -> ValueId {
        self.interned.values.row(cells)
    }

    /// The id of a column name.
    pub fn column(&mut self, name: &str) -> ColumnId {
        self.interned.values.column(name)
    }

    /// The name of a column.
    pub fn column_name(&self, column: ColumnId) -> NameRef<'_> {
        self.interned.values.columns.names.get(column)
    }

    /// A value seen so far.
    pub fn value(&self, id: ValueId) -> ValueRef<'_> {
        self.interned.values.values.get(id)
    }

    // ---- the header ----

    /// Whether any transaction has been opened, in this part or an earlier one.
    pub fn has_transactions(&self) -> bool {
        self.total_transactions() > 0 || self.open.is_some()
    }

    /// Whether a header or a transaction has been seen.
    pub(crate) fn has_header(&self) -> bool {
        self.started
    }

    /// Whether a header may still come; after this call, or the first transaction, it may not.
    pub fn begin_header(&mut self) -> bool {
        !std::mem::replace(&mut self.started, true)
    }

    /// The level that the header asks for.
    pub fn set_level(&mut self, level: &str) {
        self.history.header.level = Some(level.into());
    }

    /// Header fields that the format does not define, as a JSON object.
    pub fn set_header_extra(&mut self, json: &str) {
        self.history.header.extra = Some(json.into());
    }

    // ---- transactions ----

    /// Opens a transaction; a transaction that was open is dropped.
    pub fn begin(&mut self, session: SessionId) {
        if self.open.is_some() {
            self.abandon();
        }
        self.started = true;
        self.open = Some(Open {
            session,
            status: Status::Committed,
            id: NO_ID,
            is_new_id: false,
            client: NO_SPAN,
            db: None,
            extra: TxnExtra::default(),
        });
    }

    /// Drops the open transaction and its operations.
    pub fn abandon(&mut self) {
        let first = self.history.first_op.last().copied().unwrap_or(0);
        self.truncate_ops(first as usize);
        if self.open.take().is_some_and(|open| open.is_new_id) {
            self.interned.ids.forget_last();
        }
    }

    fn open(&mut self) -> &mut Open {
        self.open.as_mut().expect("begin() opens a transaction before anything is said of it")
    }

    /// Moves the open transaction to another session (for formats where the session is known last).
    pub fn set_session(&mut self, session: SessionId) {
        self.open().session = session;
    }

    /// Sets the status of the open transaction.
    pub fn set_status(&mut self, status: Status) {
        self.open().status = status;
    }

    /// Names the open transaction.
    pub fn set_id(&mut self, id: NameRef<'_>) -> Result<(), BuildError> {
        debug_assert!(self.open().id == NO_ID, "a transaction is named once");
        let next = self.interned.ids.names.len();
        if self.is_default_id(id) || self.came_before(id) {
            return Err(BuildError::DuplicateId(id.to_string()));
        }
        let number = self.interned.ids.intern(id).index();
        self.interned.ids.room.check()?;
        if number != next && !self.identity.has_repeats {
            return Err(BuildError::DuplicateId(id.to_string()));
        }
        let open = self.open();
        (open.id, open.is_new_id) = (number as u32, number == next);
        Ok(())
    }

    /// Sets the client's clock around the open transaction.
    pub fn set_client(&mut self, span: Span) -> Result<(), BuildError> {
        if span.begin > span.end {
            return Err(BuildError::ClientBackwards(span));
        }
        self.open().client = span;
        Ok(())
    }

    /// Sets the database's timestamps of the open transaction. A start after the commit is kept as it is: the database
    /// reported it, and it is for a check to judge.
    pub fn set_db(&mut self, start: Timestamp, commit: Timestamp) -> Result<(), BuildError> {
        if (Span { begin: start.physical, end: commit.physical }) == NO_SPAN {
            return Err(BuildError::DbOutOfRange);
        }
        self.open().db = Some((start, commit));
        Ok(())
    }

    /// Sets the level that the open transaction asked for.
    pub fn set_txn_level(&mut self, level: &str) {
        let level = self.field(level);
        self.open().extra.level = level;
    }

    /// Keeps a field of the open transaction as text.
    fn field(&mut self, text: &str) -> Option<Box<str>> {
        self.room.len(text.len(), "bytes in a field").map(|_| text.into())
    }

    /// Sets the `ctx` of the open transaction, a JSON object.
    pub fn set_ctx(&mut self, json: &str) {
        let json = self.field(json);
        self.open().extra.ctx = json;
    }

    /// Sets the fields of the open transaction that the format does not define, a JSON object.
    pub fn set_txn_extra(&mut self, json: &str) {
        let json = self.field(json);
        self.open().extra.unknown = json;
    }

    /// Closes the open transaction. One that is refused is dropped.
    pub fn end(&mut self) -> Result<TxnId, BuildError> {
        let open = self.open.take().expect("end() closes a transaction that begin() opened");
        let ops = self.history.ops.len() - self.history.first_op.last().map_or(0, |&first| first as usize);
        let refused = if let Err(interrupted) = self.worked(ops + 1) {
            Some(interrupted)
        } else if let Err(full) = self.check_room_for(&open) {
            Some(full)
        } else if open.id == NO_ID {
            let position = self.lengths.of[open.session.index()];
            self.default_id_is_taken(open.session, position).map(BuildError::DuplicateId)
        } else {
            None
        };
        match refused {
            None => Ok(self.push_transaction(open)),
            Some(error) => {
                self.open = Some(open);
                self.abandon();
                Err(error)
            }
        }
    }

    /// Whether one more transaction fits, and whether everything that came so far did.
    fn check_room_for(&mut self, open: &Open) -> Result<(), BuildError> {
        self.room.place(self.history.len(), 1, "transactions");
        self.room.place(self.lengths.of[open.session.index()] as usize, 1, "transactions in a session");
        self.check_room()
    }

    /// Fails if something did not fit.
    fn check_room(&self) -> Result<(), BuildError> {
        self.interned.check()?;
        self.room.check()
    }

    fn push_transaction(&mut self, open: Open) -> TxnId {
        let history = &mut self.history;
        let count = history.len();
        if history.first_op.is_empty() {
            history.first_op.push(0);
        }
        let txn = history.session.push(open.session);
        history.position.push(self.lengths.of[open.session.index()]);
        self.lengths.of[open.session.index()] += 1;
        history.status.push(open.status as u8);
        history.id.push(open.id);
        history.first_op.push(history.ops.len() as u32);
        if open.client != NO_SPAN || !history.client.is_empty() {
            history.client.resize(count, NO_SPAN);
            history.client.push(open.client);
        }
        if open.db.is_some() || !history.db.is_empty() {
            history.db.resize(count, NO_SPAN);
            history.db.push(
                open.db
                    .map_or(NO_SPAN, |(start, commit)| Span { begin: start.physical, end: commit.physical }),
            );
            let logical = open.db.map_or([0, 0], |(start, commit)| [start.logical, commit.logical]);
            if logical != [0, 0] || !history.db_logical.is_empty() {
                history.db_logical.resize(count, [0, 0]);
                history.db_logical.push(logical);
            }
        }
        if open.extra != TxnExtra::default() {
            history.txn_extra.push((txn, open.extra));
        }
        txn
    }

    // ---- the end ----

    /// How many transactions are complete.
    pub fn len(&self) -> usize {
        self.history.len()
    }

    /// Whether no transaction is complete.
    pub fn is_empty(&self) -> bool {
        self.history.is_empty()
    }

    /// How many operations there are, those of an open transaction included.
    pub fn op_count(&self) -> usize {
        self.history.op_count()
    }

    /// How many transactions are complete, those of parts already taken included.
    pub fn total_transactions(&self) -> u64 {
        self.taken.0 + self.len() as u64
    }

    /// How many operations there are, those of parts already taken included.
    pub fn total_operations(&self) -> u64 {
        self.taken.1 + self.op_count() as u64
    }

    /// How many sessions have been seen.
    pub(crate) fn session_count(&self) -> usize {
        self.interned.sessions.names.len()
    }

    /// The level that the header asked for.
    pub(crate) fn level(&self) -> Option<&str> {
        self.history.header.level.as_deref()
    }

    /// How many keys have been seen; their ids are 0, 1, ….
    pub fn key_count(&self) -> usize {
        self.interned.keys.names.len()
    }

    /// Corrects what a read gave, for formats where that is known only later.
    pub(crate) fn set_read_value(&mut self, op: OpId, value: ValueId) {
        debug_assert_eq!(self.history.ops[op].kind, kind::READ, "only reads give values");
        self.history.ops[op].b = value.0;
    }
}
