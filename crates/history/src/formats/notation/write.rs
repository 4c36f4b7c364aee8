//! Transactions into lines of the notation.

use super::super::json::push_string;
use super::super::{Part, WriteError};
use super::read::{RESERVED, is_word, number_of};
use crate::{
    ColumnId, History, KeyId, Lock, NameRef, OpId, Operation, Predicate, Range, Row, Status, Transaction,
    ValueId, ValueRef,
};
use std::io::{self, Write as _};

/// Writes a history, or a part of one: one line per session.
pub fn write(history: &History, part: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let mut writer = Writer { history, out: Vec::new(), keeps_notes: true };
    if part.is_first() {
        writer.header();
    }
    for session in history.sessions().ids() {
        writer.session(session);
        out.write_all(&writer.out)?;
        writer.out.clear();
    }
    out.write_all(&writer.out)?;
    Ok(())
}

/// The whole history, without notes: `ctx`, `seq` and further fields of the header.
pub(super) fn to_string(history: &History) -> String {
    let mut writer = Writer { history, out: Vec::new(), keeps_notes: false };
    writer.header();
    for session in history.sessions().ids() {
        writer.session(session);
    }
    String::from_utf8(writer.out).expect("the writer writes text")
}

struct Writer<'h> {
    history: &'h History,
    out: Vec<u8>,
    /// Whether to write what no check looks at.
    keeps_notes: bool,
}

impl<'h> Writer<'h> {
    fn header(&mut self) {
        if let Some(fields) = self.note(self.history.header_extra()) {
            self.text("header: ");
            self.json(fields);
            self.text("\n");
        }
        if !self.history.initial().is_empty() {
            self.text("init:");
            for row in self.history.initial() {
                self.text(" ");
                self.key(row.key);
                self.text("=");
                self.value(row.value);
            }
            self.text("\n");
        }
        if let Some(level) = self.history.level() {
            self.text("level: ");
            self.name(NameRef::Str(level));
            self.text("\n");
        }
    }

    fn session(&mut self, session: crate::SessionId) {
        if self.history.of_session(session).is_empty() {
            return;
        }
        match self.history.sessions().get(session) {
            NameRef::Str(name) if RESERVED.contains(&name) => push_string(&mut self.out, name),
            name => self.name(name),
        }
        self.text(":");
        for (index, &txn) in self.history.of_session(session).iter().enumerate() {
            self.text(if index == 0 { " " } else { " | " });
            self.transaction(self.history.transaction(txn));
        }
        self.text("\n");
    }

    fn transaction(&mut self, txn: Transaction<'h>) {
        if let Some(id) = txn.explicit_id() {
            self.text("[");
            self.name(id);
            self.text("] ");
        }
        for (index, (id, op)) in txn.ops().enumerate() {
            self.text(if index == 0 { "" } else { " " });
            self.operation(id, op);
        }
        if txn.ops().len() == 0 {
            self.text("()");
        }
        match txn.status() {
            Status::Committed => {}
            Status::Aborted => self.text("!"),
            Status::Unknown => self.text("?"),
        }
        self.marks(txn);
        self.notes_of(txn);
    }

    /// `ctx` and the other fields that are only kept, as one object.
    fn notes_of(&mut self, txn: Transaction<'h>) {
        let ctx = self.note(txn.ctx());
        let others = self.note(txn.extra_fields()).map(inside_of).filter(|fields| !fields.is_empty());
        if ctx.is_none() && others.is_none() {
            return;
        }
        self.text(" %%{");
        if let Some(ctx) = ctx {
            self.text("\"ctx\":");
            self.json(ctx);
        }
        if let Some(fields) = others {
            self.text(if ctx.is_some() { "," } else { "" });
            self.json(fields);
        }
        self.text("}");
    }

    fn note(&self, json: Option<&'h str>) -> Option<&'h str> {
        json.filter(|_| self.keeps_notes)
    }

    /// JSON as it is, in one line: a line end in JSON is always mere space.
    fn json(&mut self, json: &str) {
        self.out.extend(json.bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
    }

    fn marks(&mut self, txn: Transaction<'h>) {
        let is_open = txn.status() != Status::Committed;
        if let Some(span) = txn.client() {
            self.show(format_args!(" @{}..", span.begin));
            if span.end != i64::MAX || !is_open {
                self.show(format_args!("{}", span.end));
            }
        }
        if let Some((start, commit)) = txn.db() {
            self.show(format_args!(" @@{start}.."));
            if (commit.physical, commit.logical) != (i64::MAX, u32::MAX) || !is_open {
                self.show(format_args!("{commit}"));
            }
        }
        if let Some(level) = txn.level() {
            self.text(" ~");
            self.name(NameRef::Str(level));
        }
    }

    fn operation(&mut self, id: OpId, op: Operation<'h>) {
        match op {
            Operation::Read { key, value, lock } => {
                self.text(match lock {
                    Lock::None => "r(",
                    Lock::Update => "ru(",
                    Lock::Share => "rs(",
                });
                self.key(key);
                if value.is_known() {
                    self.text(",");
                    self.value(value);
                }
                self.text(")");
            }
            Operation::Write { key, value } => self.key_and_value("w(", key, value),
            Operation::Append { key, value } => self.key_and_value("a(", key, value),
            Operation::Delete { key } => {
                self.text("d(");
                self.key(key);
                self.text(")");
            }
            Operation::Cas { key, expect, write, ok } => {
                self.text("cas(");
                self.key(key);
                self.text(",");
                self.value(expect);
                self.text(" -> ");
                self.value(write);
                self.text(")");
                self.text(match ok {
                    Some(true) => "=ok",
                    Some(false) => "=no",
                    None => "",
                });
            }
            Operation::Scan { range, rows } => {
                self.text("scan(");
                self.range(range);
                self.text(")");
                self.rows(rows, false);
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                self.text("iter(");
                self.range(range);
                self.text(if reverse { " desc)" } else { ")" });
                self.rows(rows, exhausted);
            }
            Operation::Query { predicate, rows } => {
                self.text("q(");
                self.predicate(predicate, Context::Top);
                self.text(")");
                self.rows(rows, false);
            }
            Operation::Update { predicate, set, count, keys } => {
                self.text("u(");
                self.predicate(predicate, Context::Top);
                self.text(" -> ");
                self.value(set);
                self.text(")");
                self.reported(count, keys);
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                self.text("dw(");
                self.predicate(predicate, Context::Top);
                self.text(")");
                self.reported(count, keys);
            }
        }
        if let Some(span) = self.history.operation_at(id) {
            self.show(format_args!("^{}..", span.begin));
            if span.end != i64::MAX {
                self.show(format_args!("{}", span.end));
            }
        }
        if let Some(fields) = self.note(self.history.operation_extra(id)) {
            self.text("%");
            self.json(fields);
        }
    }

    fn key_and_value(&mut self, name: &str, key: KeyId, value: ValueId) {
        self.text(name);
        self.key(key);
        self.text(",");
        self.value(value);
        self.text(")");
    }

    fn range(&mut self, range: Range) {
        if let Some(from) = range.from {
            self.key(from);
        }
        self.text("..");
        match range.to.map(|to| self.history.keys().get(to)) {
            None => {}
            Some(NameRef::Str(name @ "desc")) => push_string(&mut self.out, name),
            Some(name) => self.name(name),
        }
    }

    fn rows(&mut self, rows: Option<&[Row]>, exhausted: bool) {
        let Some(rows) = rows else {
            self.text(if exhausted { "=[? end]" } else { "" });
            return;
        };
        self.text("=[");
        for (index, row) in rows.iter().enumerate() {
            self.text(if index == 0 { "" } else { " " });
            self.key(row.key);
            self.text(":");
            self.value(row.value);
        }
        self.text(match (exhausted, rows.is_empty()) {
            (false, _) => "]",
            (true, true) => "end]",
            (true, false) => " end]",
        });
    }

    fn reported(&mut self, count: Option<u64>, keys: Option<&[KeyId]>) {
        if count.is_none() && keys.is_none() {
            return;
        }
        self.text("=");
        if let Some(count) = count {
            self.show(format_args!("{count}"));
        }
        if let Some(keys) = keys {
            self.text("[");
            for (index, &key) in keys.iter().enumerate() {
                self.text(if index == 0 { "" } else { " " });
                self.key(key);
            }
            self.text("]");
        }
    }

    fn predicate(&mut self, predicate: &Predicate, context: Context) {
        match predicate {
            Predicate::All(parts) => match parts.as_slice() {
                [] => self.text("*"),
                [only] => self.predicate(only, context),
                parts => self.joined(parts, " & ", Context::And, context > Context::Or),
            },
            Predicate::Any(parts) => match parts.as_slice() {
                [] => self.text("none"),
                [only] => self.predicate(only, context),
                parts => self.joined(parts, " or ", Context::Or, context > Context::Top),
            },
            Predicate::Not(part) => {
                self.text("not ");
                self.predicate(part, Context::Not);
            }
            Predicate::Compare { column, with, constant } => {
                self.column(*column);
                self.text(with.symbol());
                self.value(*constant);
            }
        }
    }

    fn joined(&mut self, parts: &[Predicate], between: &str, inside: Context, grouped: bool) {
        self.text(if grouped { "(" } else { "" });
        for (index, part) in parts.iter().enumerate() {
            self.text(if index == 0 { "" } else { between });
            self.predicate(part, inside);
        }
        self.text(if grouped { ")" } else { "" });
    }

    fn column(&mut self, column: ColumnId) {
        self.column_name(self.history.values().columns().get(column));
    }

    fn column_name(&mut self, name: NameRef<'_>) {
        match name {
            NameRef::Str(name @ ("not" | "or" | "none")) => push_string(&mut self.out, name),
            name => self.name(name),
        }
    }

    fn key(&mut self, key: KeyId) {
        self.name(self.history.keys().get(key));
    }

    fn name(&mut self, name: NameRef<'_>) {
        match name {
            NameRef::Str(text) if !is_word(name) => push_string(&mut self.out, text),
            name => self.show(format_args!("{name}")),
        }
    }

    fn value(&mut self, id: ValueId) {
        if !id.is_known() {
            return self.text("?");
        }
        match self.history.values().get(id) {
            ValueRef::Null => self.text("_"),
            ValueRef::Bool(value) => self.show(format_args!("{value}")),
            ValueRef::Int(value) => self.show(format_args!("{value}")),
            ValueRef::UInt(value) => self.show(format_args!("{value}")),
            ValueRef::Float(value) => self.float(value),
            ValueRef::Str(text) => self.text_value(text),
            ValueRef::List(elements) => {
                self.text("[");
                for (index, &element) in elements.iter().enumerate() {
                    self.text(if index == 0 { "" } else { " " });
                    self.value(element);
                }
                self.text("]");
            }
            ValueRef::Row(cells) => {
                self.text("{");
                for (index, cell) in cells.iter().enumerate() {
                    self.text(if index == 0 { "" } else { " " });
                    self.name(self.history.values().columns().get(cell.column));
                    self.text(":");
                    self.value(cell.value);
                }
                self.text("}");
            }
        }
    }

    /// The shortest way to write a float that does not look like an integer.
    fn float(&mut self, value: f64) {
        let plain = format!("{value}");
        if plain.contains('.') && plain.len() < 20 {
            self.text(&plain)
        } else {
            self.show(format_args!("{value:e}"))
        }
    }

    fn text_value(&mut self, text: &str) {
        let is_other = matches!(text, "true" | "false" | "null") || !matches!(number_of(text, 0), Ok(None));
        if is_other || !is_word(NameRef::Str(text)) {
            push_string(&mut self.out, text);
        } else {
            self.text(text);
        }
    }

    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn show(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.out.write_fmt(arguments).expect("a vector takes every byte");
    }
}

/// What a JSON object holds, without its braces.
fn inside_of(object: &str) -> &str {
    let inside = object.trim().strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    inside.unwrap_or("").trim()
}

/// What a predicate stands in, from the loosest to the tightest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Context {
    Top,
    Or,
    And,
    Not,
}
