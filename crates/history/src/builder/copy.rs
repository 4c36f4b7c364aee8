//! Transactions of one history into another.
//!
//! What: copies transactions, whole, into a builder, so that a part of a history is a history of its own.
//! Invariant: what is copied means the same there as here: keys, sessions and values are interned by what they are.
//! Cost: one table look-up an id, one hash look-up the first time that an id occurs.

use super::Builder;
use crate::{
    BuildError, Cell, History, Id, KeyId, NameRef, OpId, Operation, Predicate, Range, Row, SessionId, Status,
    TxnId, ValueId, ValueRef,
};
use rustc_hash::FxHashMap;

/// Copies transactions of one history into one builder.
#[derive(Debug)]
pub struct Copier<'h> {
    history: &'h History,
    keys: Vec<Option<KeyId>>,
    sessions: Vec<Option<SessionId>>,
    values: FxHashMap<ValueId, ValueId>,
}

impl<'h> Copier<'h> {
    /// A copier from a history; everything it copies goes into the same builder.
    pub fn new(history: &'h History) -> Self {
        Self {
            history,
            keys: vec![None; history.keys().len()],
            sessions: vec![None; history.sessions().len()],
            values: FxHashMap::default(),
        }
    }

    /// Copies the level, initial values of keys that `keep` wants, and what else the header holds.
    pub fn header(&mut self, builder: &mut Builder, keep: impl Fn(KeyId) -> bool) {
        builder.begin_header();
        if let Some(level) = self.history.level() {
            builder.set_level(level);
        }
        if let Some(extra) = self.history.header_extra() {
            builder.set_header_extra(extra);
        }
        for row in self.history.initial().iter().filter(|row| keep(row.key)) {
            let (key, value) = (self.key(row.key, builder), self.value(row.value, builder));
            builder.initial(key, value);
        }
    }

    /// Copies a transaction; `id` names it if it has no id of its own.
    pub fn transaction(
        &mut self,
        txn: TxnId,
        id: Option<&str>,
        builder: &mut Builder,
    ) -> Result<TxnId, BuildError> {
        let it = self.history.transaction(txn);
        let session = self.session(it.session(), builder);
        builder.begin(session);
        builder.set_status(it.status());
        if let Some(id) = it.explicit_id().or(id.map(NameRef::Str)) {
            builder.set_id(id)?;
        }
        if let Some(span) = it.client() {
            builder.set_client(span)?;
        }
        if let Some((start, commit)) = it.db() {
            builder.set_db(start, commit)?;
        }
        if let Some(level) = it.level() {
            builder.set_txn_level(level);
        }
        if let Some(ctx) = it.ctx() {
            builder.set_ctx(ctx);
        }
        if let Some(extra) = it.extra_fields() {
            builder.set_txn_extra(extra);
        }
        for (op, operation) in it.ops() {
            self.operation(operation, builder);
            if let Some(at) = self.history.operation_at(op) {
                builder.set_op_at(at)?;
            }
            if let Some(extra) = self.history.operation_extra(op) {
                builder.set_op_extra(extra);
            }
        }
        builder.end()
    }

    /// Copies what a transaction did as far as `keep` wants it: its session and those operations, and nothing else of it.
    pub fn operations(
        &mut self,
        txn: TxnId,
        status: Status,
        builder: &mut Builder,
        keep: impl Fn(OpId) -> bool,
    ) -> Result<TxnId, BuildError> {
        let it = self.history.transaction(txn);
        let session = self.session(it.session(), builder);
        builder.begin(session);
        builder.set_status(status);
        for (_, operation) in it.ops().filter(|(op, _)| keep(*op)) {
            self.operation(operation, builder);
        }
        builder.end()
    }

    /// Copies a transaction without its names: its session, its outcome, the database's timestamps, and what it did.
    pub fn timed(&mut self, txn: TxnId, builder: &mut Builder) -> Result<TxnId, BuildError> {
        let it = self.history.transaction(txn);
        let session = self.session(it.session(), builder);
        builder.begin(session);
        builder.set_status(it.status());
        if let Some((start, commit)) = it.db() {
            builder.set_db(start, commit)?;
        }
        for (_, operation) in it.ops() {
            self.operation(operation, builder);
        }
        builder.end()
    }

    /// Copies a session.
    pub fn session(&mut self, session: SessionId, builder: &mut Builder) -> SessionId {
        let history = self.history;
        *self.sessions[session.index()]
            .get_or_insert_with(|| builder.session(history.sessions().get(session)))
    }

    /// Copies a key.
    pub fn key(&mut self, key: KeyId, builder: &mut Builder) -> KeyId {
        let history = self.history;
        *self.keys[key.index()].get_or_insert_with(|| builder.key(history.keys().get(key)))
    }

    /// Copies a value, with all that is in it.
    pub fn value(&mut self, value: ValueId, builder: &mut Builder) -> ValueId {
        if value == ValueId::ABSENT || !value.is_known() || value.as_inline().is_some() {
            return value;
        }
        if let Some(&copied) = self.values.get(&value) {
            return copied;
        }
        let copied = match self.history.values().get(value) {
            ValueRef::List(elements) => {
                let elements: Vec<ValueId> = elements.iter().map(|&it| self.value(it, builder)).collect();
                builder.list(&elements)
            }
            ValueRef::Row(cells) => {
                let history = self.history;
                let columns = history.values().columns();
                let copy = |cell: &Cell| Cell {
                    column: builder.column(&columns.get(cell.column).to_string()),
                    value: self.value(cell.value, builder),
                };
                let mut cells: Vec<Cell> = cells.iter().map(copy).collect();
                builder.row(&mut cells)
            }
            scalar => builder.interned.values.intern(scalar),
        };
        self.values.insert(value, copied);
        copied
    }

    fn rows(&mut self, rows: Option<&[Row]>, builder: &mut Builder) -> Option<Vec<Row>> {
        let copy = |row: &Row| Row { key: self.key(row.key, builder), value: self.value(row.value, builder) };
        rows.map(|rows| rows.iter().map(copy).collect())
    }

    fn listed(&mut self, keys: Option<&[KeyId]>, builder: &mut Builder) -> Option<Vec<KeyId>> {
        keys.map(|keys| keys.iter().map(|&key| self.key(key, builder)).collect())
    }

    fn range(&mut self, range: Range, builder: &mut Builder) -> Range {
        Range {
            from: range.from.map(|key| self.key(key, builder)),
            to: range.to.map(|key| self.key(key, builder)),
        }
    }

    fn predicate(&mut self, predicate: &Predicate, builder: &mut Builder) -> Predicate {
        predicate.translate(&mut |column, constant| {
            let name = self.history.values().columns().get(*column).to_string();
            (builder.column(&name), self.value(*constant, builder))
        })
    }

    /// Copies an operation into the open transaction.
    pub fn operation(&mut self, operation: Operation<'_>, builder: &mut Builder) {
        match operation {
            Operation::Read { key, value, lock } => {
                let (key, value) = (self.key(key, builder), self.value(value, builder));
                builder.read(key, value, lock);
            }
            Operation::Write { key, value } => {
                let (key, value) = (self.key(key, builder), self.value(value, builder));
                builder.write(key, value);
            }
            Operation::Delete { key } => {
                let key = self.key(key, builder);
                builder.delete(key);
            }
            Operation::Append { key, value } => {
                let (key, value) = (self.key(key, builder), self.value(value, builder));
                builder.append(key, value);
            }
            Operation::Cas { key, expect, write, ok } => {
                let (key, expect) = (self.key(key, builder), self.value(expect, builder));
                let write = self.value(write, builder);
                builder.cas(key, expect, write, ok);
            }
            Operation::Scan { range, rows } => {
                let (range, rows) = (self.range(range, builder), self.rows(rows, builder));
                builder.scan(range, rows.as_deref());
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                let (range, rows) = (self.range(range, builder), self.rows(rows, builder));
                builder.iterate(range, reverse, exhausted, rows.as_deref());
            }
            Operation::Query { predicate, rows } => {
                let (predicate, rows) = (self.predicate(predicate, builder), self.rows(rows, builder));
                builder.query(predicate, rows.as_deref());
            }
            Operation::Update { predicate, set, count, keys } => {
                let (predicate, set) = (self.predicate(predicate, builder), self.value(set, builder));
                let keys = self.listed(keys, builder);
                builder.update(predicate, set, count, keys.as_deref());
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                let (predicate, keys) = (self.predicate(predicate, builder), self.listed(keys, builder));
                builder.delete_where(predicate, count, keys.as_deref());
            }
        }
    }
}
