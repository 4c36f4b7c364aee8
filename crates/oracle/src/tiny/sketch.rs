//! An editable copy of a history: owned names and values, vectors one can remove from.
//!
//! A sketch keeps what a verdict can depend on: sessions, statuses, client clocks, database timestamps,
//! operations, results, initial values. Transaction ids, `ctx` and unknown fields are left behind; an id can be given.

use history::formats::notation;
use history::{
    Builder, Cell, History, Id, KeyId, Lock, Name, Operation, Predicate, Range, Row, Span, Status, Timestamp,
    Transaction, ValueId, ValueRef,
};
use std::fmt;

/// An owned value.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// The result is not known.
    Unknown,
    /// The key is absent.
    Absent,
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer above `i64::MAX`.
    UInt(u64),
    /// A number that is no integer.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Datum>),
    /// A row with columns.
    Row(Vec<(String, Datum)>),
}

/// An owned predicate.
pub type Condition = Predicate<String, Datum>;

/// Rows that came back: key and value.
pub type Rows = Vec<(Name, Datum)>;

/// An owned operation. `None` where a result is optional means: not known.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of history::Operation")]
pub enum SketchOp {
    /// See [`Operation::Read`].
    Read { key: Name, value: Datum, lock: Lock },
    /// See [`Operation::Write`].
    Write { key: Name, value: Datum },
    /// See [`Operation::Delete`].
    Delete { key: Name },
    /// See [`Operation::Append`].
    Append { key: Name, value: Datum },
    /// See [`Operation::Cas`].
    Cas { key: Name, expect: Datum, write: Datum, ok: Option<bool> },
    /// See [`Operation::Scan`].
    Scan { from: Option<Name>, to: Option<Name>, rows: Option<Rows> },
    /// See [`Operation::Iterate`].
    Iterate { from: Option<Name>, to: Option<Name>, reverse: bool, exhausted: bool, rows: Option<Rows> },
    /// See [`Operation::Query`].
    Query { condition: Condition, rows: Option<Rows> },
    /// See [`Operation::Update`].
    Update { condition: Condition, set: Datum, count: Option<u64>, keys: Option<Vec<Name>> },
    /// See [`Operation::DeleteWhere`].
    DeleteWhere { condition: Condition, count: Option<u64>, keys: Option<Vec<Name>> },
}

/// An owned transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct SketchTxn {
    /// Its id, if it is to have one of its own. None of another transaction, by whatever name.
    pub id: Option<String>,
    /// The connection that issued it.
    pub session: Name,
    /// Whether it took effect.
    pub status: Status,
    /// The client's clock.
    pub client: Option<Span>,
    /// The database's timestamps.
    pub db: Option<(Timestamp, Timestamp)>,
    /// Its operations.
    pub ops: Vec<SketchOp>,
}

impl SketchTxn {
    /// Copies a transaction with those of its operations that are wanted.
    pub fn of(history: &History, txn: Transaction<'_>, wanted: impl Fn(&SketchOp) -> bool) -> Self {
        let copy = Copier { history };
        Self {
            id: None,
            session: history.sessions().get(txn.session()).to_owned(),
            status: txn.status(),
            client: txn.client(),
            db: txn.db(),
            ops: txn.ops().map(|(_, operation)| copy.operation(operation)).filter(wanted).collect(),
        }
    }
}

/// An editable copy of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sketch {
    /// The level that its header is to name.
    pub level: Option<String>,
    /// Values before the first transaction.
    pub initial: Vec<(Name, Datum)>,
    /// The transactions; those of one session in session order.
    pub transactions: Vec<SketchTxn>,
}

impl Sketch {
    /// Copies what was there before the first transaction.
    pub fn of_initial(history: &History) -> Self {
        Self { initial: Copier { history }.rows(history.initial()), ..Self::default() }
    }

    /// Copies a history.
    pub fn of(history: &History) -> Self {
        Self {
            transactions: history.transactions().map(|txn| SketchTxn::of(history, txn, |_| true)).collect(),
            ..Self::of_initial(history)
        }
    }

    /// Makes the history that it is a sketch of.
    pub fn build(&self) -> History {
        let mut make = Maker { builder: Builder::new() };
        if let Some(level) = &self.level {
            make.builder.set_level(level);
        }
        for (key, value) in &self.initial {
            let (key, value) = (make.key(key), make.value(value));
            make.builder.initial(key, value);
        }
        for txn in &self.transactions {
            let session = make.builder.session(txn.session.as_ref());
            make.builder.begin(session);
            make.builder.set_status(txn.status);
            if let Some(id) = &txn.id {
                make.builder.set_id(id.as_str().into()).expect("a sketch's ids are unique");
            }
            if let Some(span) = txn.client {
                make.builder.set_client(span).expect("a sketch's clocks run forwards");
            }
            if let Some((start, commit)) = txn.db {
                make.builder.set_db(start, commit).expect("a sketch's timestamps run forwards");
            }
            for operation in &txn.ops {
                make.operation(operation);
            }
            make.builder.end().expect("a sketch names no transaction, so none twice");
        }
        make.builder.finish().expect("a sketch names no transaction, so none twice")
    }
}

struct Copier<'h> {
    history: &'h History,
}

impl Copier<'_> {
    fn key(&self, key: KeyId) -> Name {
        self.history.keys().get(key).to_owned()
    }

    fn value(&self, value: ValueId) -> Datum {
        if !value.is_known() {
            return Datum::Unknown;
        }
        match self.history.values().get(value) {
            ValueRef::Null => Datum::Absent,
            ValueRef::Bool(value) => Datum::Bool(value),
            ValueRef::Int(value) => Datum::Int(value),
            ValueRef::UInt(value) => Datum::UInt(value),
            ValueRef::Float(value) => Datum::Float(value),
            ValueRef::Str(text) => Datum::Text(text.to_owned()),
            ValueRef::List(elements) => {
                Datum::List(elements.iter().map(|&value| self.value(value)).collect())
            }
            ValueRef::Row(cells) => {
                let columns = self.history.values().columns();
                let cell = |cell: &Cell| (columns.get(cell.column).to_string(), self.value(cell.value));
                Datum::Row(cells.iter().map(cell).collect())
            }
        }
    }

    fn rows(&self, rows: &[Row]) -> Rows {
        rows.iter().map(|row| (self.key(row.key), self.value(row.value))).collect()
    }

    fn keys(&self, keys: Option<&[KeyId]>) -> Option<Vec<Name>> {
        keys.map(|keys| keys.iter().map(|&key| self.key(key)).collect())
    }

    fn condition(&self, predicate: &Predicate) -> Condition {
        let columns = self.history.values().columns();
        predicate.translate(&mut |column, constant| (columns.get(*column).to_string(), self.value(*constant)))
    }

    fn operation(&self, operation: Operation<'_>) -> SketchOp {
        let bound = |key: Option<KeyId>| key.map(|key| self.key(key));
        let rows = |rows: Option<&[Row]>| rows.map(|rows| self.rows(rows));
        match operation {
            Operation::Read { key, value, lock } => {
                SketchOp::Read { key: self.key(key), value: self.value(value), lock }
            }
            Operation::Write { key, value } => {
                SketchOp::Write { key: self.key(key), value: self.value(value) }
            }
            Operation::Delete { key } => SketchOp::Delete { key: self.key(key) },
            Operation::Append { key, value } => {
                SketchOp::Append { key: self.key(key), value: self.value(value) }
            }
            Operation::Cas { key, expect, write, ok } => {
                let (expect, write) = (self.value(expect), self.value(write));
                SketchOp::Cas { key: self.key(key), expect, write, ok }
            }
            Operation::Scan { range, rows: shown } => {
                SketchOp::Scan { from: bound(range.from), to: bound(range.to), rows: rows(shown) }
            }
            Operation::Iterate { range, reverse, exhausted, rows: shown } => SketchOp::Iterate {
                from: bound(range.from),
                to: bound(range.to),
                reverse,
                exhausted,
                rows: rows(shown),
            },
            Operation::Query { predicate, rows: shown } => {
                SketchOp::Query { condition: self.condition(predicate), rows: rows(shown) }
            }
            Operation::Update { predicate, set, count, keys } => SketchOp::Update {
                condition: self.condition(predicate),
                set: self.value(set),
                count,
                keys: self.keys(keys),
            },
            Operation::DeleteWhere { predicate, count, keys } => {
                SketchOp::DeleteWhere { condition: self.condition(predicate), count, keys: self.keys(keys) }
            }
        }
    }
}

struct Maker {
    builder: Builder,
}

impl Maker {
    fn key(&mut self, key: &Name) -> KeyId {
        self.builder.key(key.as_ref())
    }

    fn value(&mut self, datum: &Datum) -> ValueId {
        match datum {
            Datum::Unknown => ValueId::UNKNOWN,
            Datum::Absent => ValueId::ABSENT,
            Datum::Bool(value) => self.builder.boolean(*value),
            Datum::Int(value) => self.builder.int(*value),
            Datum::UInt(value) => self.builder.uint(*value),
            Datum::Float(value) => self.builder.float(*value),
            Datum::Text(text) => self.builder.text(text),
            Datum::List(elements) => {
                let elements: Vec<ValueId> = elements.iter().map(|element| self.value(element)).collect();
                self.builder.list(&elements)
            }
            Datum::Row(cells) => {
                let mut cells: Vec<Cell> = cells
                    .iter()
                    .map(|(column, value)| Cell {
                        column: self.builder.column(column),
                        value: self.value(value),
                    })
                    .collect();
                self.builder.row(&mut cells)
            }
        }
    }

    fn rows(&mut self, rows: Option<&Rows>) -> Option<Vec<Row>> {
        let rows = rows?;
        Some(rows.iter().map(|(key, value)| Row { key: self.key(key), value: self.value(value) }).collect())
    }

    fn keys(&mut self, keys: Option<&Vec<Name>>) -> Option<Vec<KeyId>> {
        keys.map(|keys| keys.iter().map(|key| self.key(key)).collect())
    }

    fn range(&mut self, from: Option<&Name>, to: Option<&Name>) -> Range {
        Range { from: from.map(|key| self.key(key)), to: to.map(|key| self.key(key)) }
    }

    fn predicate(&mut self, condition: &Condition) -> Predicate {
        condition.translate(&mut |column, constant| (self.builder.column(column), self.value(constant)))
    }

    fn operation(&mut self, operation: &SketchOp) {
        match operation {
            SketchOp::Read { key, value, lock } => {
                let (key, value) = (self.key(key), self.value(value));
                self.builder.read(key, value, *lock);
            }
            SketchOp::Write { key, value } => {
                let (key, value) = (self.key(key), self.value(value));
                self.builder.write(key, value);
            }
            SketchOp::Delete { key } => {
                let key = self.key(key);
                self.builder.delete(key);
            }
            SketchOp::Append { key, value } => {
                let (key, value) = (self.key(key), self.value(value));
                self.builder.append(key, value);
            }
            SketchOp::Cas { key, expect, write, ok } => {
                let (key, expect, write) = (self.key(key), self.value(expect), self.value(write));
                self.builder.cas(key, expect, write, *ok);
            }
            SketchOp::Scan { from, to, rows } => {
                let range = self.range(from.as_ref(), to.as_ref());
                let rows = self.rows(rows.as_ref());
                self.builder.scan(range, rows.as_deref());
            }
            SketchOp::Iterate { from, to, reverse, exhausted, rows } => {
                let range = self.range(from.as_ref(), to.as_ref());
                let rows = self.rows(rows.as_ref());
                self.builder.iterate(range, *reverse, *exhausted, rows.as_deref());
            }
            SketchOp::Query { condition, rows } => {
                let predicate = self.predicate(condition);
                let rows = self.rows(rows.as_ref());
                self.builder.query(predicate, rows.as_deref());
            }
            SketchOp::Update { condition, set, count, keys } => {
                let predicate = self.predicate(condition);
                let (set, keys) = (self.value(set), self.keys(keys.as_ref()));
                self.builder.update(predicate, set, *count, keys.as_deref());
            }
            SketchOp::DeleteWhere { condition, count, keys } => {
                let predicate = self.predicate(condition);
                let keys = self.keys(keys.as_ref());
                self.builder.delete_where(predicate, *count, keys.as_deref());
            }
        }
    }
}

impl fmt::Display for Sketch {
    /// In the one-line notation, one session a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&notation::to_string(&self.build()))
    }
}

/// The name of the `index`-th key of a tiny history: `x`, `y`, `z`, `z3`, …
pub(super) fn key_name(index: usize) -> Name {
    match ["x", "y", "z"].get(index) {
        Some(name) => Name::Str((*name).to_owned()),
        None => Name::Str(format!("z{index}")),
    }
}

/// Which key of a tiny history has this name: the inverse of [`key_name`].
pub(super) fn key_place(name: &Name) -> usize {
    let Name::Str(text) = name else { return 0 };
    let short = ["x", "y", "z"].iter().position(|short| short == text);
    short.or_else(|| text.strip_prefix('z')?.parse().ok()).unwrap_or(0)
}

/// The name of the `index`-th session.
pub(super) fn session_name(index: usize) -> Name {
    Name::Int(history::SessionId::new(index).0.into())
}
