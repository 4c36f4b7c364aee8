//! A number that stands for everything in a history that a verdict can depend on.
//!
//! *What*: XXH3 (128 bits) over a canonical form of the history: initial values, then every transaction in the order
//! of the file with its session, name, status, level, clocks, timestamps, operations and results. Keys and values
//! enter as they are written, never as the numbers they are interned as, so a history has the same fingerprint in
//! every format that keeps its content and its order. `ctx`, clocks of single operations and fields that the format
//! does not define are left out.
//!
//! *What it is for*: telling that a certificate belongs to another history. It is no proof of anything: the certifier
//! replays the history it is given, whatever the fingerprint says.
//!
//! *Invariant*: the canonical form can be read back unambiguously (every text and list carries its length, every
//! choice a tag), so different contents have different forms.
//!
//! *Cost*: the size of the history.

use history::{
    Cell, Comparison, History, KeyId, Lock, NameRef, Operation, Predicate, Range, Row, Transaction, ValueId,
    ValueRef,
};
use std::fmt;
use xxhash_rust::xxh3::Xxh3;

/// A history's fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub u128);

impl Fingerprint {
    /// The fingerprint of a history.
    pub fn of(history: &History) -> Self {
        let mut form = Form { history, hash: Xxh3::new(), pending: Vec::with_capacity(2 * PENDING_LEN_MAX) };
        form.number(history.initial().len() as u64);
        let mut initial: Vec<&Row> = history.initial().iter().collect();
        initial.sort_by_key(|row| history.keys().get(row.key));
        for row in initial {
            form.row(row);
        }
        for transaction in history.transactions() {
            form.transaction(transaction);
        }
        form.finish()
    }

    /// The fingerprint that a text of 32 hexadecimal digits stands for.
    pub fn parse(text: &str) -> Option<Self> {
        let is_written_so =
            text.len() == 32 && text.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'));
        if !is_written_so {
            return None;
        }
        u128::from_str_radix(text, 16).ok().map(Self)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The hash is fed in pieces of about this size.
const PENDING_LEN_MAX: usize = 1 << 14;

/// The canonical form on its way into the hash.
struct Form<'h> {
    history: &'h History,
    hash: Xxh3,
    pending: Vec<u8>,
}

impl Form<'_> {
    fn finish(mut self) -> Fingerprint {
        self.hash.update(&self.pending);
        self.pending.clear();
        Fingerprint(self.hash.digest128())
    }

    fn tag(&mut self, tag: u8) {
        self.pending.push(tag);
    }

    fn number(&mut self, number: u64) {
        self.pending.extend_from_slice(&number.to_le_bytes());
    }

    fn signed(&mut self, number: i64) {
        self.number(number as u64);
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.pending.extend_from_slice(text.as_bytes());
    }

    fn name(&mut self, name: NameRef<'_>) {
        match name {
            NameRef::Int(value) => {
                self.tag(0);
                self.signed(value);
            }
            NameRef::Str(text) => {
                self.tag(1);
                self.text(text);
            }
        }
    }

    fn key(&mut self, key: KeyId) {
        self.name(self.history.keys().get(key));
    }

    /// A part that may be missing.
    fn optional<T>(&mut self, part: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.tag(u8::from(part.is_some()));
        if let Some(part) = part {
            write(self, part);
        }
    }

    fn value(&mut self, value: ValueId) {
        if !value.is_known() {
            return self.tag(8);
        }
        let history = self.history;
        match history.values().get(value) {
            ValueRef::Null => self.tag(0),
            ValueRef::Bool(value) => self.pending.extend_from_slice(&[1, u8::from(value)]),
            ValueRef::Int(value) => {
                self.tag(2);
                self.signed(value);
            }
            ValueRef::UInt(value) => {
                self.tag(3);
                self.number(value);
            }
            ValueRef::Float(value) => {
                self.tag(4);
                self.number(value.to_bits());
            }
            ValueRef::Str(text) => {
                self.tag(5);
                self.text(text);
            }
            ValueRef::List(elements) => {
                self.tag(6);
                self.number(elements.len() as u64);
                elements.iter().for_each(|&element| self.value(element));
            }
            ValueRef::Row(cells) => {
                self.tag(7);
                self.number(cells.len() as u64);
                // Ids of columns depend on which was seen first; names do not.
                let columns = history.values().columns();
                let mut cells: Vec<&Cell> = cells.iter().collect();
                cells.sort_by_key(|cell| columns.get(cell.column));
                for cell in cells {
                    self.name(columns.get(cell.column));
                    self.value(cell.value);
                }
            }
        }
    }

    fn row(&mut self, row: &Row) {
        self.key(row.key);
        self.value(row.value);
    }

    fn rows(&mut self, rows: Option<&[Row]>) {
        self.optional(rows, |form, rows| {
            form.number(rows.len() as u64);
            rows.iter().for_each(|row| form.row(row));
        });
    }

    fn transaction(&mut self, transaction: Transaction<'_>) {
        if self.pending.len() > PENDING_LEN_MAX {
            self.hash.update(&self.pending);
            self.pending.clear();
        }
        self.name(self.history.sessions().get(transaction.session()));
        self.optional(transaction.explicit_id(), Self::name);
        self.tag(transaction.status() as u8);
        self.optional(transaction.level(), Self::text);
        self.optional(transaction.client(), |form, span| {
            form.signed(span.begin);
            form.signed(span.end);
        });
        self.optional(transaction.db(), |form, (start, commit)| {
            for timestamp in [start, commit] {
                form.signed(timestamp.physical);
                form.number(timestamp.logical.into());
            }
        });
        self.number(transaction.ops().len() as u64);
        for (_, operation) in transaction.ops() {
            self.operation(operation);
        }
    }

    fn operation(&mut self, operation: Operation<'_>) {
        match operation {
            Operation::Read { key, value, lock } => {
                self.tag(match lock {
                    Lock::None => 0,
                    Lock::Share => 1,
                    Lock::Update => 2,
                });
                self.key(key);
                self.value(value);
            }
            Operation::Write { key, value } => {
                self.tag(3);
                self.key(key);
                self.value(value);
            }
            Operation::Delete { key } => {
                self.tag(4);
                self.key(key);
            }
            Operation::Append { key, value } => {
                self.tag(5);
                self.key(key);
                self.value(value);
            }
            Operation::Cas { key, expect, write, ok } => {
                self.tag(11);
                self.key(key);
                self.value(expect);
                self.value(write);
                self.tag(ok.map_or(2, u8::from));
            }
            Operation::Scan { range, rows } => {
                self.tag(6);
                self.range(range);
                self.rows(rows);
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                self.tag(7);
                self.range(range);
                self.pending.extend_from_slice(&[u8::from(reverse), u8::from(exhausted)]);
                self.rows(rows);
            }
            Operation::Query { predicate, rows } => {
                self.tag(8);
                self.predicate(predicate);
                self.rows(rows);
            }
            Operation::Update { predicate, set, count, keys } => {
                self.tag(9);
                self.value(set);
                self.predicate_write(predicate, count, keys);
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                self.tag(10);
                self.predicate_write(predicate, count, keys);
            }
        }
    }

    fn range(&mut self, range: Range) {
        self.optional(range.from, Self::key);
        self.optional(range.to, Self::key);
    }

    fn predicate_write(&mut self, predicate: &Predicate, count: Option<u64>, keys: Option<&[KeyId]>) {
        self.predicate(predicate);
        self.optional(count, Self::number);
        self.optional(keys, |form, keys| {
            form.number(keys.len() as u64);
            keys.iter().for_each(|&key| form.key(key));
        });
    }

    fn predicate(&mut self, predicate: &Predicate) {
        let mut parts = |tag: u8, parts: &[Predicate]| {
            self.tag(tag);
            self.number(parts.len() as u64);
            parts.iter().for_each(|part| self.predicate(part));
        };
        match predicate {
            Predicate::All(all) => parts(0, all),
            Predicate::Any(any) => parts(1, any),
            Predicate::Not(part) => parts(2, std::slice::from_ref(part)),
            Predicate::Compare { column, with, constant } => {
                self.tag(3);
                self.name(self.history.values().columns().get(*column));
                let place = Comparison::ALL.iter().position(|(_, comparison)| comparison == with);
                self.number(place.unwrap_or(Comparison::ALL.len()) as u64);
                self.value(*constant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Status;
    use oracle::tiny::{Datum, Shape, Sketch, SketchOp};
    use std::collections::HashMap;

    #[test]
    fn different_histories_have_different_fingerprints() {
        let mut seen: HashMap<Fingerprint, Sketch> = HashMap::new();
        for seed in 0..3000 {
            let sketch = Shape::everything().sketch(seed);
            let fingerprint = Fingerprint::of(&sketch.build());
            assert_eq!(fingerprint, Fingerprint::of(&sketch.build()));
            if let Some(other) = seen.insert(fingerprint, sketch.clone()) {
                assert_eq!(sketch, other, "one fingerprint, two histories");
            }
        }
    }

    #[test]
    fn every_change_that_a_verdict_can_depend_on_shows() {
        let sketch = Shape::registers().sketch(3);
        let before = Fingerprint::of(&sketch.build());
        let edits: [fn(&mut Sketch); 7] = [
            |it| it.transactions[0].status = Status::Unknown,
            |it| it.transactions[0].session = "another".into(),
            |it| it.transactions[0].client = Some(history::Span { begin: -3, end: 9000 }),
            |it| it.transactions[0].ops.push(SketchOp::Delete { key: "x".into() }),
            |it| drop(it.transactions[0].ops.pop()),
            |it| it.initial.push(("a new key".into(), Datum::Int(4))),
            |it| drop(it.transactions.pop()),
        ];
        for (place, edit) in edits.into_iter().enumerate() {
            let mut edited = sketch.clone();
            edit(&mut edited);
            assert_ne!(edited, sketch);
            assert_ne!(Fingerprint::of(&edited.build()), before, "edit {place}");
        }
    }

    /// One field or one operation after the other is another one: all of these are different histories.
    #[test]
    fn no_two_of_these_are_taken_for_each_other() {
        let transactions = [
            r#""ops":[]"#,
            r#""id":"t","ops":[]"#,
            r#""status":"unknown","ops":[]"#,
            r#""status":"aborted","ops":[]"#,
            r#""level":"serializable","ops":[]"#,
            r#""client":{"begin":1,"end":2},"ops":[]"#,
            r#""client":{"begin":1,"end":3},"ops":[]"#,
            r#""client":{"begin":0,"end":2},"ops":[]"#,
            r#""db":{"start":1,"commit":2},"ops":[]"#,
            r#""db":{"start":1,"commit":3},"ops":[]"#,
            r#""db":{"start":0,"commit":2},"ops":[]"#,
            r#""db":{"start":1,"commit":[2,1]},"ops":[]"#,
            r#""db":{"start":[1,1],"commit":2},"ops":[]"#,
        ];
        let operations = [
            r#"{"op":"read","key":"x","value":1}"#,
            r#"{"op":"read","key":"x","value":2}"#,
            r#"{"op":"read","key":"x","value":"1"}"#,
            r#"{"op":"read","key":"x","value":1.5}"#,
            r#"{"op":"read","key":"x","value":true}"#,
            r#"{"op":"read","key":"x","value":null}"#,
            r#"{"op":"read","key":"x","value":[]}"#,
            r#"{"op":"read","key":"x","value":[1]}"#,
            r#"{"op":"read","key":"x","value":[1,2]}"#,
            r#"{"op":"read","key":"x","value":{"a":1}}"#,
            r#"{"op":"read","key":"x","value":{"b":1}}"#,
            r#"{"op":"read","key":"x","value":{"a":1,"b":1}}"#,
            r#"{"op":"read","key":"x"}"#,
            r#"{"op":"read","key":"y","value":1}"#,
            r#"{"op":"read","key":1,"value":1}"#,
            r#"{"op":"read","key":"1","value":1}"#,
            r#"{"op":"read","key":"x","value":1,"lock":"share"}"#,
            r#"{"op":"read","key":"x","value":1,"lock":"update"}"#,
            r#"{"op":"write","key":"x","value":1}"#,
            r#"{"op":"write","key":"x","value":2}"#,
            r#"{"op":"write","key":"y","value":1}"#,
            r#"{"op":"append","key":"x","value":1}"#,
            r#"{"op":"append","key":"x","value":2}"#,
            r#"{"op":"delete","key":"x"}"#,
            r#"{"op":"delete","key":"y"}"#,
            r#"{"op":"scan"}"#,
            r#"{"op":"scan","rows":[]}"#,
            r#"{"op":"scan","from":"a","rows":[]}"#,
            r#"{"op":"scan","to":"a","rows":[]}"#,
            r#"{"op":"scan","rows":[["x",1]]}"#,
            r#"{"op":"scan","rows":[["x",1],["y",1]]}"#,
            r#"{"op":"iterate"}"#,
            r#"{"op":"iterate","rows":[]}"#,
            r#"{"op":"iterate","rows":[],"reverse":true}"#,
            r#"{"op":"iterate","rows":[],"exhausted":true}"#,
            r#"{"op":"iterate","from":"a","rows":[]}"#,
            r#"{"op":"query","where":{"value":1},"rows":[]}"#,
            r#"{"op":"query","where":{"value":2},"rows":[]}"#,
            r#"{"op":"query","where":{"other":1},"rows":[]}"#,
            r#"{"op":"query","where":{"value":{">":1}},"rows":[]}"#,
            r#"{"op":"query","where":{"value":{">=":1}},"rows":[]}"#,
            r#"{"op":"query","where":{"not":{"value":1}},"rows":[]}"#,
            r#"{"op":"query","where":{"or":[{"value":1},{"value":2}]},"rows":[]}"#,
            r#"{"op":"query","where":{"value":1,"other":2},"rows":[]}"#,
            r#"{"op":"query","where":{"value":1},"rows":[["x",1]]}"#,
            r#"{"op":"update","where":{"value":1},"set":2}"#,
            r#"{"op":"update","where":{"value":1},"set":3}"#,
            r#"{"op":"update","where":{"value":1},"set":2,"count":0}"#,
            r#"{"op":"update","where":{"value":1},"set":2,"count":1}"#,
            r#"{"op":"update","where":{"value":1},"set":2,"keys":["x"]}"#,
            r#"{"op":"update","where":{"value":1},"set":2,"keys":["y"]}"#,
            r#"{"op":"update","where":{"value":1},"set":2,"keys":["x","y"]}"#,
            r#"{"op":"delete-where","where":{"value":1}}"#,
            r#"{"op":"delete-where","where":{"value":1},"count":1}"#,
            r#"{"op":"delete-where","where":{"value":2}}"#,
        ];
        let of_transactions = transactions.iter().map(|it| format!("{{\"session\":1,{it}}}\n"));
        let of_operations =
            operations.iter().map(|operation| format!("{{\"session\":1,\"ops\":[{operation}]}}\n"));
        let others = [
            "{\"session\":\"1\",\"ops\":[]}\n",
            "{\"history\":1,\"initial\":{\"x\":0}}\n{\"session\":1,\"ops\":[]}\n",
            "{\"history\":1,\"initial\":{\"x\":1}}\n{\"session\":1,\"ops\":[]}\n",
            "{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":[]}\n",
            // The same bytes, cut elsewhere.
            "{\"session\":\"ab\",\"id\":\"c\",\"ops\":[]}\n",
            "{\"session\":\"a\",\"id\":\"bc\",\"ops\":[]}\n",
            // The same operations, dealt to transactions otherwise.
            "{\"session\":1,\"ops\":[{\"op\":\"delete\",\"key\":1}]}\n{\"session\":1,\"ops\":[]}\n",
            "{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":[{\"op\":\"delete\",\"key\":1}]}\n",
        ];
        let mut seen: HashMap<Fingerprint, String> = HashMap::new();
        for text in of_transactions.chain(of_operations).chain(others.map(str::to_owned)) {
            let loaded = history::formats::read_bytes("h.jsonl", text.as_bytes(), &Default::default());
            let history = loaded.unwrap_or_else(|error| panic!("{text}: {error}")).history;
            if let Some(other) = seen.insert(Fingerprint::of(&history), text.clone()) {
                panic!("one fingerprint, two histories:\n{other}{text}");
            }
        }
    }

    #[test]
    fn the_text_form_is_read_back_and_nothing_else_is() {
        let fingerprint = Fingerprint(0x00ab_cdef);
        assert_eq!(Fingerprint::parse(&fingerprint.to_string()), Some(fingerprint));
        for wrong in ["", "abc", "00000000000000000000000000ABCDEF", "+0000000000000000000000000abcdef"] {
            assert_eq!(Fingerprint::parse(wrong), None, "{wrong}");
        }
    }
}
