//! Records as rows of a [`History`]: the same content as their lines, without the detour by text.

use crate::line;
use crate::record::{Detail, Header, TxnRecord};
use crate::request::{Condition, KeyRange, Request, Response, Value};
use history::{BuildError, Builder, Cell, History, KeyId, Lock, Name, Predicate, Range, Row, ValueId};

pub(crate) struct Interner {
    builder: Builder,
}

impl Interner {
    /// Nothing yet, and no header: what follows what was taken before.
    pub(crate) fn empty() -> Self {
        Self { builder: Builder::new() }
    }

    pub(crate) fn new(header: &Header) -> Self {
        let mut this = Self { builder: Builder::new() };
        for (key, value) in &header.initial {
            let (key, value) = (this.key(key), this.value(value));
            this.builder.initial(key, value);
        }
        if let Some(level) = &header.level {
            this.builder.set_level(level);
        }
        if !header.notes.is_empty() {
            let notes: serde_json::Map<String, serde_json::Value> =
                header.notes.iter().map(|(name, note)| (name.clone(), note.as_str().into())).collect();
            this.builder.set_header_extra(&serde_json::Value::Object(notes).to_string());
        }
        this
    }

    pub(crate) fn finish(self) -> Result<History, BuildError> {
        self.builder.finish()
    }

    pub(crate) fn add(&mut self, record: &TxnRecord, detail: Detail) -> Result<(), BuildError> {
        let session = self.builder.session(record.session.as_ref());
        self.builder.begin(session);
        self.builder.set_status(record.status);
        self.builder.set_client(record.client)?;
        if let Some(level) = &record.level {
            self.builder.set_txn_level(level);
        }
        if let Some(ctx) = line::ctx(record, detail) {
            self.builder.set_ctx(&ctx);
        }
        for op in &record.ops {
            self.operation(&op.request, op.response.as_ref());
            if detail.operation_clocks {
                self.builder.set_op_at(op.at)?;
            }
        }
        self.builder.end().map(drop)
    }

    fn operation(&mut self, request: &Request, response: Option<&Response>) {
        match request {
            Request::Read { key, lock } => self.read(key, *lock, response),
            Request::Write { key, value } => {
                let (key, value) = (self.key(key), self.value(value));
                self.builder.write(key, value);
            }
            Request::Append { key, value } => {
                let (key, value) = (self.key(key), self.value(value));
                self.builder.append(key, value);
            }
            // A delete that found nothing wrote nothing.
            Request::Delete { key } if matches!(response, Some(Response::Value(_))) => {
                self.read(key, Lock::Update, response);
            }
            Request::Delete { key } => {
                let key = self.key(key);
                self.builder.delete(key);
            }
            Request::Scan { range } => {
                let range = self.range(range);
                let rows = self.rows(response);
                self.builder.scan(range, rows.as_deref());
            }
            Request::Iterate { range, reverse, .. } => {
                let range = self.range(range);
                let rows = self.rows(response);
                let exhausted = matches!(response, Some(Response::Rows { exhausted: true, .. }));
                self.builder.iterate(range, *reverse, exhausted, rows.as_deref());
            }
            Request::Query { condition } => {
                let predicate = self.predicate(condition);
                let rows = self.rows(response);
                self.builder.query(predicate, rows.as_deref());
            }
            Request::Update { condition, set } => {
                let predicate = self.predicate(condition);
                let set = self.value(set);
                let (count, keys) = self.changed(response);
                self.builder.update(predicate, set, count, keys.as_deref());
            }
            Request::DeleteWhere { condition } => {
                let predicate = self.predicate(condition);
                let (count, keys) = self.changed(response);
                self.builder.delete_where(predicate, count, keys.as_deref());
            }
        }
    }

    fn read(&mut self, key: &Name, lock: Lock, response: Option<&Response>) {
        let key = self.key(key);
        let value = match response {
            Some(Response::Value(value)) => self.value(value),
            _ => ValueId::UNKNOWN,
        };
        self.builder.read(key, value, lock);
    }

    fn key(&mut self, key: &Name) -> KeyId {
        self.builder.key(key.as_ref())
    }

    fn value(&mut self, value: &Value) -> ValueId {
        match value {
            Value::Null => ValueId::ABSENT,
            Value::Bool(value) => self.builder.boolean(*value),
            Value::Int(value) => self.builder.int(*value),
            Value::Float(value) => self.builder.float(*value),
            Value::Text(text) => self.builder.text(text),
            Value::List(elements) => {
                let elements: Vec<ValueId> = elements.iter().map(|element| self.value(element)).collect();
                self.builder.list(&elements)
            }
            Value::Row(columns) => {
                let mut cells: Vec<Cell> = columns
                    .iter()
                    .map(|(name, value)| Cell { column: self.builder.column(name), value: self.value(value) })
                    .collect();
                self.builder.row(&mut cells)
            }
        }
    }

    fn range(&mut self, range: &KeyRange) -> Range {
        Range {
            from: range.from.as_ref().map(|key| self.key(key)),
            to: range.to.as_ref().map(|key| self.key(key)),
        }
    }

    fn rows(&mut self, response: Option<&Response>) -> Option<Vec<Row>> {
        let Some(Response::Rows { rows, .. }) = response else { return None };
        Some(rows.iter().map(|(key, value)| Row { key: self.key(key), value: self.value(value) }).collect())
    }

    fn changed(&mut self, response: Option<&Response>) -> (Option<u64>, Option<Vec<KeyId>>) {
        let Some(Response::Changed { count, keys }) = response else { return (None, None) };
        let keys = keys.as_ref().map(|keys| keys.iter().map(|key| self.key(key)).collect());
        (*count, keys)
    }

    fn predicate(&mut self, condition: &Condition) -> Predicate {
        match condition {
            Condition::All(parts) => Predicate::All(parts.iter().map(|part| self.predicate(part)).collect()),
            Condition::Any(parts) => Predicate::Any(parts.iter().map(|part| self.predicate(part)).collect()),
            Condition::Not(part) => Predicate::Not(Box::new(self.predicate(part))),
            Condition::Compare(column, with, constant) => Predicate::Compare {
                column: self.builder.column(column),
                with: *with,
                constant: self.value(constant),
            },
        }
    }
}
