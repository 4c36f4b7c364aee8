//! Records as rows of a [`History`], and through one as lines of the native format.

use crate::error::RecordError;
use crate::records::{Detail, Header, TxnRecord};
use crate::request::{Condition, KeyRange, Request, Response, Value};
use history::formats::{Part, jsonl};
use history::{BuildError, Builder, Cell, History, KeyId, Lock, Name, Predicate, Range, Row, ValueId};
use serde_json::{Map, Value as Json};

/// The first line of a file, with its end.
pub(crate) fn header(header: &Header) -> Result<String, RecordError> {
    let history = Interner::new(header).finish()?;
    Ok(jsonl::header_line(&history, Part { last: false, ..Part::WHOLE }) + "\n")
}

/// The line of a transaction, with its end.
pub(crate) fn line(record: &TxnRecord, detail: Detail) -> Result<String, RecordError> {
    let mut one = Interner::empty();
    one.add(record, detail)?;
    let history = one.finish()?;
    let mut line = String::new();
    for txn in history.transactions() {
        line += &jsonl::transaction_line(&history, txn).map_err(RecordError::Line)?;
        line.push('\n');
    }
    Ok(line)
}

/// Hints and debug fields of a transaction, as a JSON object: statements, stamp, why it failed.
fn ctx(record: &TxnRecord, detail: Detail) -> Option<String> {
    let mut fields = Map::new();
    if detail.statements && record.ops.iter().any(|op| op.statement.is_some()) {
        let sql: Vec<Json> = record.ops.iter().map(|op| op.statement.as_deref().into()).collect();
        fields.insert("sql".into(), sql.into());
    }
    if let Some(stamp) = &record.stamp {
        fields.insert("snapshot".into(), stamp.snapshot.as_str().into());
        if let Some(commit) = &stamp.commit {
            fields.insert("commit".into(), commit.as_str().into());
        }
    }
    if let Some(failure) = &record.failure {
        fields.insert("failure".into(), failure.as_str().into());
    }
    (!fields.is_empty()).then(|| Json::Object(fields).to_string())
}

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
            let notes: Map<String, Json> =
                header.notes.iter().map(|(name, note)| (name.clone(), note.as_str().into())).collect();
            this.builder.set_header_extra(&Json::Object(notes).to_string());
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
        if let Some(ctx) = ctx(record, detail) {
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
        condition.translate(&mut |column, constant| (self.builder.column(column), self.value(constant)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

    use super::*;
    use crate::records::OpRecord;
    use history::formats::{ReadOptions, read_bytes};
    use history::{Comparison, Span, Status};

    fn op(request: Request, response: Option<Response>) -> OpRecord {
        OpRecord { request, response, at: Span { begin: 6, end: 7 }, statement: None }
    }

    fn record(ops: Vec<OpRecord>) -> TxnRecord {
        TxnRecord {
            session: Name::Int(2),
            status: Status::Committed,
            client: Span { begin: 5, end: 9 },
            level: None,
            ops,
            stamp: None,
            failure: None,
        }
    }

    #[test]
    fn a_line_holds_what_the_client_saw_and_nothing_it_did_not() {
        let read = Request::Read { key: "x".into(), lock: Lock::Update };
        let seen =
            OpRecord { statement: Some("SELECT 1".into()), ..op(read, Some(Response::Value(Value::Null))) };
        let unanswered = op(Request::read(7), None);
        let record = TxnRecord {
            status: Status::Unknown,
            failure: Some("gone".into()),
            ..record(vec![seen, unanswered])
        };
        assert_eq!(
            line(&record, Detail::default()).unwrap(),
            concat!(
                r#"{"session":2,"status":"unknown","client":{"begin":5,"end":9},"ops":["#,
                r#"{"op":"read","key":"x","value":null,"lock":"update","at":{"begin":6,"end":7}},"#,
                r#"{"op":"read","key":7,"at":{"begin":6,"end":7}}],"#,
                r#""ctx":{"failure":"gone","sql":["SELECT 1",null]}}"#,
                "\n"
            )
        );
    }

    /// What is written and read back is what is kept in memory.
    #[test]
    fn lines_and_memory_hold_the_same() {
        let header = Header {
            level: Some("serializable".into()),
            initial: vec![("x".into(), Value::List(vec![1.into(), 2.into()])), (Name::Int(3), "text".into())],
            notes: vec![("database".into(), "a \"quoted\" name".into())],
        };
        let compare = |column: &str, with| Condition::compare(column, with, Value::Float(0.1));
        let condition = Condition::All(vec![
            compare("a", Comparison::NotEqual),
            Condition::Any(vec![
                compare("a", Comparison::Less),
                Condition::Not(Box::new(Condition::All(vec![]))),
            ]),
            compare("a", Comparison::NotEqual),
        ]);
        let row = Value::Row(vec![("b".into(), Value::Bool(true)), ("a".into(), Value::Null)]);
        let range = KeyRange { from: Some(Name::Int(i64::MIN)), to: None };
        let rows = |exhausted| Response::Rows { rows: vec![("é\n".into(), row.clone())], exhausted };
        let changed = Response::Changed { count: Some(1), keys: Some(vec!["x".into()]) };
        let all = record(vec![
            op(Request::append("x", 3), Some(Response::Done)),
            op(Request::Delete { key: 4.into() }, Some(Response::Value(Value::Null))),
            op(Request::Delete { key: 4.into() }, Some(Response::Done)),
            op(Request::Scan { range: range.clone() }, Some(rows(true))),
            op(Request::Iterate { range, reverse: true, limit: 2 }, Some(rows(true))),
            op(Request::Query { condition: condition.clone() }, Some(rows(false))),
            op(Request::Update { condition: condition.clone(), set: row.clone() }, Some(changed.clone())),
            op(Request::DeleteWhere { condition }, Some(changed)),
        ]);
        let mut memory = Interner::new(&header);
        memory.add(&all, Detail::default()).unwrap();
        let kept = jsonl_of(&memory.finish().unwrap());
        let text = super::header(&header).unwrap() + &line(&all, Detail::default()).unwrap();
        let read = read_bytes("recorded.jsonl", text.as_bytes(), &ReadOptions::default()).unwrap().history;
        assert_eq!(jsonl_of(&read), kept);
    }

    #[test]
    fn a_header_that_says_nothing_is_a_line() {
        assert_eq!(super::header(&Header::default()).unwrap(), "{\"history\":1}\n");
    }

    fn jsonl_of(history: &History) -> String {
        let mut bytes = Vec::new();
        jsonl::write(history, Part::WHOLE, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }
}
