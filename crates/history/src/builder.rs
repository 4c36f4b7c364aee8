//! Makes a history, one transaction after the other, and refuses what no client can have seen.

mod copy;
mod earlier;
mod parts;

pub use copy::Copier;

pub(crate) use parts::Indexed;

use crate::model::{Compound, NO_COUNT, NO_ID, NO_SPAN, PackedOp, TxnExtra, flag, kind};
use crate::names::NameIndex;
use crate::values::{TextHash, ValueIndex};
use crate::{
    Cell, ColumnId, History, Id, Interrupt, KeyId, Lock, NameRef, OpId, Predicate, Range, Row, SessionId,
    Span, Status, Timestamp, TxnId, ValueId, ValueRef,
};
use rustc_hash::FxHashSet;
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
    /// More than 2³² − 2 of something.
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
            Self::TooMany(what) => write!(f, "more than 4,294,967,294 {what}: split the history"),
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
    keys: NameIndex<KeyId>,
    sessions: NameIndex<SessionId>,
    ids: NameIndex<TxnId>,
    values: ValueIndex,
    /// How many transactions each session has so far.
    session_len: Vec<u32>,
    /// The transaction that is open, if one is.
    open: Option<Open>,
    initial_seen: Vec<Row>,
    /// Initial values of names that may be an integer or a string; see [`Self::initial_named`].
    initial_named: Vec<(String, ValueId)>,
    /// Whether a header, a transaction or a part has been seen: too late for a header.
    started: bool,
    /// Whether an explicit id could be taken for another transaction's default id.
    has_colon_ids: bool,
    /// Whether this is a piece of a history, and places in sessions count from its beginning; see [`Self::piece`].
    is_piece: bool,
    /// Whether transactions may have the same id; see [`Self::stream`].
    has_repeats: bool,
    /// Transactions with default ids, made when the first explicit id looks like one.
    defaults: Option<FxHashSet<(SessionId, u32)>>,
    /// Sessions of parts already taken, and how many transactions they had.
    carried: NameIndex<SessionId>,
    carried_len: Vec<u32>,
    /// Their ids, where those are to be unique across parts.
    earlier: Option<Box<earlier::Earlier>>,
    /// Transactions and operations of parts already taken.
    taken: (u64, u64),
    interrupt: Interrupt,
    /// How many operations and transactions may come before the interrupt is asked.
    unasked: usize,
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
        Self { is_piece: true, ..Self::default() }
    }

    /// An empty piece of a stream that may deliver a transaction more than once: ids may be the same.
    pub fn stream() -> Self {
        Self { has_repeats: true, ..Self::piece() }
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
        self.keys.prefetch_int(key);
        self.values.prefetch_int(value);
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
        self.values.touch_texts(texts.clone().map(|(_, _, hash)| hash));
        for (op, text, hash) in texts {
            self.history.ops[op].b = self.values.hashed_text(text, hash).0;
        }
    }

    // ---- names and values ----

    /// The id of a key.
    #[inline]
    pub fn key(&mut self, name: NameRef<'_>) -> KeyId {
        self.keys.intern(name)
    }

    /// The id of a session.
    #[inline]
    pub fn session(&mut self, name: NameRef<'_>) -> SessionId {
        let id = self.sessions.intern(name);
        if id.index() == self.session_len.len() {
            let before = self.carried.find(name).map_or(0, |id| self.carried_len[id.index()]);
            self.session_len.push(before);
        }
        id
    }

    /// The id of an integer.
    #[inline]
    pub fn int(&mut self, value: i64) -> ValueId {
        self.values.int(value)
    }

    /// The id of an unsigned integer.
    pub fn uint(&mut self, value: u64) -> ValueId {
        self.values.uint(value)
    }

    /// The id of a number; `1.0` is `1`.
    pub fn float(&mut self, value: f64) -> ValueId {
        self.values.float(value)
    }

    /// The id of a text.
    pub fn text(&mut self, text: &str) -> ValueId {
        self.values.intern(ValueRef::Str(text))
    }

    /// The id of a truth value.
    pub fn boolean(&mut self, value: bool) -> ValueId {
        self.values.intern(ValueRef::Bool(value))
    }

    /// The id of a list of values.
    pub fn list(&mut self, elements: &[ValueId]) -> ValueId {
        self.values.intern(ValueRef::List(elements))
    }

    /// The id of a row; of two cells of one column the last counts.
    pub fn row(&mut self, cells: &mut Vec<Cell>) -> ValueId {
        self.values.row(cells)
    }

    /// The id of a column name.
    pub fn column(&mut self, name: &str) -> ColumnId {
        self.values.column(name)
    }

    /// The name of a column.
    pub fn column_name(&self, column: ColumnId) -> NameRef<'_> {
        self.values.columns.names.get(column)
    }

    /// A value seen so far.
    pub fn value(&self, id: ValueId) -> ValueRef<'_> {
        self.values.values.get(id)
    }

    // ---- the header ----

    /// Sets the value of a key before the first transaction; the last call for a key counts.
    pub fn initial(&mut self, key: KeyId, value: ValueId) {
        self.initial_seen.push(Row { key, value });
    }

    /// Sets the initial value of a key of which only the text is known, as in a JSON object, where `"1"` may be
    /// the integer or the string. It means the one that the transactions use; see `initial_meanings`.
    pub fn initial_named(&mut self, name: &str, value: ValueId) {
        if canonical_integer(name).is_some() {
            self.initial_named.push((name.to_owned(), value));
        } else {
            let key = self.key(NameRef::Str(name));
            self.initial(key, value);
        }
    }

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
            self.ids.forget_last();
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
        let next = self.ids.names.len();
        if self.is_default_id(id) || self.came_before(id) {
            return Err(BuildError::DuplicateId(id.to_string()));
        }
        let number = self.ids.intern(id).index();
        if number != next && !self.has_repeats {
            return Err(BuildError::DuplicateId(id.to_string()));
        }
        let open = self.open();
        (open.id, open.is_new_id) = (number as u32, number == next);
        Ok(())
    }

    /// Whether an explicit id is another transaction's `SESSION:N`.
    fn is_default_id(&mut self, id: NameRef<'_>) -> bool {
        let NameRef::Str(text) = id else { return false };
        let Some((session, position)) = text.rsplit_once(':').filter(|_| !self.is_piece) else {
            return false;
        };
        let Some(position) = canonical_integer(position).and_then(|n| u32::try_from(n).ok()) else {
            return false;
        };
        self.has_colon_ids = true;
        let number = canonical_integer(session).map(NameRef::Int);
        let names = std::iter::once(NameRef::Str(session)).chain(number);
        if names.clone().any(|session| self.was_default(session, position)) {
            return true;
        }
        let history = &self.history;
        names.filter_map(|session| self.sessions.find(session)).any(|session| {
            let defaults = || {
                let unnamed = history.session.ids().filter(|&txn| history.id[txn] == NO_ID);
                unnamed.map(|txn| (history.session[txn], history.position[txn])).collect()
            };
            self.session_len[session.index()] > position
                && self.defaults.get_or_insert_with(defaults).contains(&(session, position))
        })
    }

    /// Whether the default id of the transaction to be closed is another one's explicit id.
    fn default_id_is_taken(&mut self, session: SessionId, position: u32) -> Option<String> {
        if let Some(defaults) = &mut self.defaults {
            defaults.insert((session, position));
        }
        if self.is_piece || !self.has_colon_ids && !self.earlier_has_defaults() {
            return None;
        }
        let name = format!("{}:{position}", self.sessions.names.get(session));
        let id = NameRef::Str(&name);
        (self.ids.find(id).is_some() || self.came_before(id)).then_some(name)
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
        self.open().extra.level = Some(level.into());
    }

    /// Sets the `ctx` of the open transaction, a JSON object.
    pub fn set_ctx(&mut self, json: &str) {
        self.open().extra.ctx = Some(json.into());
    }

    /// Sets the fields of the open transaction that the format does not define, a JSON object.
    pub fn set_txn_extra(&mut self, json: &str) {
        self.open().extra.unknown = Some(json.into());
    }

    /// Closes the open transaction. One that is refused is dropped.
    pub fn end(&mut self) -> Result<TxnId, BuildError> {
        let open = self.open.take().expect("end() closes a transaction that begin() opened");
        let ops = self.history.ops.len() - self.history.first_op.last().map_or(0, |&first| first as usize);
        let refused = if let Err(interrupted) = self.worked(ops + 1) {
            Some(interrupted)
        } else if self.history.len() >= NO_ID as usize - 1 {
            Some(BuildError::TooMany("transactions"))
        } else if self.history.ops.len() >= NO_ID as usize - 1 {
            Some(BuildError::TooMany("operations"))
        } else if open.id == NO_ID {
            let position = self.session_len[open.session.index()];
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

    fn push_transaction(&mut self, open: Open) -> TxnId {
        let history = &mut self.history;
        let count = history.len();
        if history.first_op.is_empty() {
            history.first_op.push(0);
        }
        let txn = history.session.push(open.session);
        history.position.push(self.session_len[open.session.index()]);
        self.session_len[open.session.index()] += 1;
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

    // ---- operations of the open transaction ----

    #[inline]
    fn push(&mut self, kind: u8, flags: u8, a: u32, b: u32) -> OpId {
        debug_assert!(self.open.is_some(), "operations belong to an open transaction");
        self.history.ops.push(PackedOp { kind, flags, unused: 0, a, b })
    }

    /// A point read; the value may be `ABSENT` or `UNKNOWN`.
    #[inline]
    pub fn read(&mut self, key: KeyId, value: ValueId, lock: Lock) -> OpId {
        let flags = match lock {
            Lock::None => 0,
            Lock::Share => flag::SHARE,
            Lock::Update => flag::UPDATE,
        };
        self.push(kind::READ, flags, key.0, value.0)
    }

    /// Insert or overwrite.
    #[inline]
    pub fn write(&mut self, key: KeyId, value: ValueId) -> OpId {
        self.push(kind::WRITE, 0, key.0, value.0)
    }

    /// A read or a write, without a branch: in logs of both no processor foresees which comes next.
    #[inline]
    pub(crate) fn read_or_write(&mut self, is_read: bool, key: KeyId, value: ValueId) -> OpId {
        const { assert!(kind::READ == 0 && kind::WRITE == 1) };
        self.push(u8::from(!is_read), 0, key.0, value.0)
    }

    /// Physical deletion.
    pub fn delete(&mut self, key: KeyId) -> OpId {
        self.push(kind::DELETE, 0, key.0, ValueId::ABSENT.0)
    }

    /// Adds one element to the list at `key`.
    #[inline]
    pub fn append(&mut self, key: KeyId, value: ValueId) -> OpId {
        self.push(kind::APPEND, 0, key.0, value.0)
    }

    /// All keys of a range.
    pub fn scan(&mut self, range: Range, rows: Option<&[Row]>) -> OpId {
        let (rows_start, rows_len) = self.push_rows(rows);
        self.push_compound(kind::SCAN, 0, range, NO_ID, (rows_start, rows_len), ValueId::ABSENT, None)
    }

    /// The first keys of a range.
    pub fn iterate(&mut self, range: Range, reverse: bool, exhausted: bool, rows: Option<&[Row]>) -> OpId {
        let piece = self.push_rows(rows);
        let flags = if reverse { flag::REVERSE } else { 0 } | if exhausted { flag::EXHAUSTED } else { 0 };
        self.push_compound(kind::ITERATE, flags, range, NO_ID, piece, ValueId::ABSENT, None)
    }

    /// All rows that satisfy a predicate.
    pub fn query(&mut self, predicate: Predicate, rows: Option<&[Row]>) -> OpId {
        let piece = self.push_rows(rows);
        let predicate = self.push_predicate(predicate);
        self.push_compound(kind::QUERY, 0, OPEN_RANGE, predicate, piece, ValueId::ABSENT, None)
    }

    /// A predicate write.
    pub fn update(
        &mut self,
        predicate: Predicate,
        set: ValueId,
        count: Option<u64>,
        keys: Option<&[KeyId]>,
    ) -> OpId {
        let piece = self.push_keys(keys);
        let predicate = self.push_predicate(predicate);
        self.push_compound(kind::UPDATE, 0, OPEN_RANGE, predicate, piece, set, count)
    }

    /// A predicate delete.
    pub fn delete_where(&mut self, predicate: Predicate, count: Option<u64>, keys: Option<&[KeyId]>) -> OpId {
        let piece = self.push_keys(keys);
        let predicate = self.push_predicate(predicate);
        self.push_compound(kind::DELETE_WHERE, 0, OPEN_RANGE, predicate, piece, ValueId::ABSENT, count)
    }

    /// Sets the client's clock around the last operation.
    pub fn set_op_at(&mut self, span: Span) -> Result<(), BuildError> {
        if span.begin > span.end {
            return Err(BuildError::ClientBackwards(span));
        }
        let op = self.last_op();
        self.history.op_clocks.push(op, span);
        Ok(())
    }

    /// Keeps fields of the last operation that the format does not define, a JSON object.
    pub fn set_op_extra(&mut self, json: &str) {
        let op = self.last_op();
        self.history.op_extra.push((op, json.into()));
    }

    fn last_op(&self) -> OpId {
        OpId::new(self.history.ops.len() - 1)
    }

    fn push_rows(&mut self, rows: Option<&[Row]>) -> (u32, u32) {
        let start = self.history.rows.len() as u32;
        let Some(rows) = rows else { return (start, NO_ID) };
        self.history.rows.extend_from_slice(rows);
        (start, rows.len() as u32)
    }

    fn push_keys(&mut self, keys: Option<&[KeyId]>) -> (u32, u32) {
        let start = self.history.key_lists.len() as u32;
        let Some(keys) = keys else { return (start, NO_ID) };
        self.history.key_lists.extend_from_slice(keys);
        (start, keys.len() as u32)
    }

    fn push_predicate(&mut self, predicate: Predicate) -> u32 {
        self.history.predicates.push(predicate);
        self.history.predicates.len() as u32 - 1
    }

    #[expect(clippy::too_many_arguments, reason = "one call a kind of operation, all in this file")]
    fn push_compound(
        &mut self,
        kind: u8,
        flags: u8,
        range: Range,
        predicate: u32,
        (rows_start, rows_len): (u32, u32),
        set: ValueId,
        count: Option<u64>,
    ) -> OpId {
        let index = self.history.compounds.len() as u32;
        let bound = |key: Option<KeyId>| key.map_or(NO_ID, |key| key.0);
        self.history.compounds.push(Compound {
            from: bound(range.from),
            to: bound(range.to),
            predicate,
            rows_start,
            rows_len,
            set,
            count: count.unwrap_or(NO_COUNT),
        });
        self.push(kind, flags, index, 0)
    }

    fn truncate_ops(&mut self, len: usize) {
        let history = &mut self.history;
        if history.ops.len() == len {
            return;
        }
        let mut ops = std::mem::take(&mut history.ops).into_vec();
        ops.truncate(len);
        history.ops = ops.into();
        history.op_clocks.truncate(len);
        history.op_extra.retain(|(op, _)| op.index() < len);
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
        self.sessions.names.len()
    }

    /// The level that the header asked for.
    pub(crate) fn level(&self) -> Option<&str> {
        self.history.header.level.as_deref()
    }

    /// How many keys have been seen; their ids are 0, 1, ….
    pub fn key_count(&self) -> usize {
        self.keys.names.len()
    }

    /// Corrects what a read gave, for formats where that is known only later.
    pub(crate) fn set_read_value(&mut self, op: OpId, value: ValueId) {
        debug_assert_eq!(self.history.ops[op].kind, kind::READ, "only reads give values");
        self.history.ops[op].b = value.0;
    }

    /// The transactions so far as a history of their own; the builder goes on with what follows them. Sessions
    /// keep counting, keys and values are forgotten, so that memory does not grow with the number of parts.
    /// Equal transaction ids are only noticed within a part; readers of files have a builder that remembers more.
    pub fn take_part(&mut self) -> Result<History, BuildError> {
        self.abandon();
        let mut next =
            Self { started: true, is_piece: self.is_piece, has_repeats: self.has_repeats, ..Self::default() };
        next.interrupt = self.interrupt.clone();
        next.taken = (self.total_transactions(), self.total_operations());
        next.carried = std::mem::take(&mut self.carried);
        next.carried_len = std::mem::take(&mut self.carried_len);
        let mut carried = Vec::with_capacity(self.session_len.len());
        for (session, &len) in self.sessions.names.ids().zip(&self.session_len) {
            let id = next.carried.intern(self.sessions.names.get(session));
            if id.index() == next.carried_len.len() {
                next.carried_len.push(0);
            }
            carried.push((id, std::mem::replace(&mut next.carried_len[id.index()], len)));
        }
        self.remember_part(&carried);
        next.earlier = self.earlier.take();
        std::mem::replace(self, next).finish()
    }

    /// The finished history; a transaction still open is dropped.
    pub fn finish(mut self) -> Result<History, BuildError> {
        self.abandon();
        self.settle_initial_names();
        let mut history = self.history;
        if history.first_op.is_empty() {
            history.first_op.push(0);
        }
        // Columns that some transactions filled are complete for all.
        let count = history.session.len();
        if !history.client.is_empty() {
            history.client.resize(count, NO_SPAN);
        }
        if !history.db.is_empty() {
            history.db.resize(count, NO_SPAN);
        }
        if !history.db_logical.is_empty() {
            history.db_logical.resize(count, [0, 0]);
        }
        self.initial_seen.reverse();
        self.initial_seen.sort_by_key(|row| row.key);
        self.initial_seen.dedup_by_key(|row| row.key);
        history.initial = self.initial_seen;
        history.keys = self.keys.names;
        history.sessions = self.sessions.names;
        history.ids = self.ids.names;
        history.values = self.values.finish();
        history.index_sessions();
        history.shrink();
        Ok(history)
    }

    fn settle_initial_names(&mut self) {
        let named = std::mem::take(&mut self.initial_named);
        let names: Vec<&str> = named.iter().map(|(name, _)| name.as_str()).collect();
        let meanings = initial_meanings(&names, |name| self.keys.find(name).is_some());
        for (name, (_, value)) in meanings.into_iter().zip(&named) {
            let key = self.key(name);
            self.initial(key, *value);
        }
    }
}

/// An integer as it is written without need: no plus sign, no leading zeros.
pub(crate) fn canonical_integer(text: &str) -> Option<i64> {
    let value = text.parse::<i64>().ok()?;
    let plain = match text.strip_prefix('-').unwrap_or(text).as_bytes() {
        [b'0'] => value == 0 && text.len() == 1,
        [first, ..] => (b'1'..=b'9').contains(first),
        [] => false,
    };
    plain.then_some(value)
}

/// What names that are written as strings but look like integers mean: the string, if the history uses that
/// string and not the integer; the integer, if it uses that, or both; and if it uses neither, what the others
/// mean, where they agree, else the integer.
pub(crate) fn initial_meanings<'a>(
    names: &[&'a str],
    is_used: impl Fn(NameRef<'_>) -> bool,
) -> Vec<NameRef<'a>> {
    let integer = |name: &str| NameRef::Int(canonical_integer(name).unwrap_or(0));
    let used: Vec<(bool, bool)> =
        names.iter().map(|name| (is_used(integer(name)), is_used(NameRef::Str(name)))).collect();
    let only_strings = used.iter().any(|&(_, string)| string) && used.iter().all(|&(integer, _)| !integer);
    let is_string = |&(integer, string): &(bool, bool)| !integer && (string || only_strings);
    let meaning = |(used, name): (&(bool, bool), &&'a str)| {
        if is_string(used) { NameRef::Str(name) } else { NameRef::Int(canonical_integer(name).unwrap_or(0)) }
    };
    used.iter().zip(names).map(meaning).collect()
}

const OPEN_RANGE: Range = Range { from: None, to: None };

impl History {
    /// Gives transactions the database's timestamps after the fact: some databases tell the order of
    /// commits only when all is over. What `times` does not know stays without.
    pub fn set_db_timestamps(
        &mut self,
        mut times: impl FnMut(TxnId) -> Option<(Timestamp, Timestamp)>,
    ) -> Result<(), BuildError> {
        let mut spans = Vec::with_capacity(self.len());
        let mut logical = Vec::with_capacity(self.len());
        for txn in self.session.ids() {
            let Some((start, commit)) = times(txn) else {
                spans.push(NO_SPAN);
                logical.push([0, 0]);
                continue;
            };
            let span = Span { begin: start.physical, end: commit.physical };
            if span == NO_SPAN {
                return Err(BuildError::DbOutOfRange);
            }
            spans.push(span);
            logical.push([start.logical, commit.logical]);
        }
        let is_hybrid = logical.iter().any(|parts| *parts != [0, 0]);
        self.db = if spans.iter().all(|span| *span == NO_SPAN) { Vec::new() } else { spans };
        self.db_logical = if is_hybrid { logical } else { Vec::new() };
        Ok(())
    }

    /// Gives back memory that is not in use.
    fn shrink(&mut self) {
        self.session.shrink();
        self.position.shrink();
        self.status.shrink();
        self.id.shrink();
        self.first_op.shrink_to_fit();
        self.client.shrink_to_fit();
        self.db.shrink_to_fit();
        self.db_logical.shrink_to_fit();
        self.ops.shrink();
        self.compounds.shrink_to_fit();
        self.rows.shrink_to_fit();
        self.key_lists.shrink_to_fit();
        self.predicates.shrink_to_fit();
        self.op_clocks.shrink();
        self.op_extra.shrink_to_fit();
        self.txn_extra.shrink_to_fit();
    }

    /// Gives transactions their places in their sessions, counted from the first that is here.
    pub(crate) fn number_within(&mut self) {
        let mut lens = vec![0u32; self.sessions.len()];
        self.position.reserve(self.session.len());
        for session in self.session.iter() {
            let len = &mut lens[session.index()];
            self.position.push(*len);
            *len += 1;
        }
        self.index_sessions();
    }

    /// Fills `by_session` from `session`: a counting sort that keeps the order of the file.
    pub(crate) fn index_sessions(&mut self) {
        let mut start = vec![0u32; self.sessions.len() + 1];
        for &session in self.session.iter() {
            start[session.index() + 1] += 1;
        }
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        let mut next = start.clone();
        let mut by_session = vec![TxnId(0); self.session.len()];
        for txn in self.session.ids() {
            let place = &mut next[self.session[txn].index()];
            by_session[*place as usize] = txn;
            *place += 1;
        }
        self.by_session = by_session;
        self.session_start = start;
    }
}
