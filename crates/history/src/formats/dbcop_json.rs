//! dbcop's JSON histories, as dbcop writes them since 2025 (and as its first version would have).
//!
//! Either an object with the sessions under `data` beside `params`, `info`, `start` and `end`, or the sessions
//! alone: an array of sessions, each an array of transactions `{"events": […], "committed": true}`. An event is
//! `{"Read": {"variable": 0, "version": 1}}`, `{"Write": {…}}`, the short `["r", 0, 1]`, `["w", 0, 1]`, or the
//! first version's `{"write": true, "variable": 0, "value": 1, "success": true}` in a transaction with `success`.
//! Sessions are numbered from 1.
//!
//! # Initial values
//! dbcop takes two things for a read of a key before its first write: version `null`, and version 0 if nobody
//! writes 0 to that key. So a key that is read as 0 and never set to 0 starts at 0, and its `null` reads are reads
//! of that 0; any other key starts absent. In the first version's events every key starts at 0.

use super::dbcop_bincode::{failed_operations, note_failing};
use super::dbcop_header::Header;
use super::json::{Cursor, Kind};
use super::json_tree::{self, text_of};
use super::plain::{Content, Plain, Room, Start};
use super::tree::{Form, Node, Tree};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History, Id, KeyId, Lock, NameRef, OpId, Status, ValueId};
use std::io;

const EXPECTED_EVENT: &str =
    r#"{"Read": {"variable": 0, "version": 1}}, {"Write": …}, ["r", 0, 1] or ["w", 0, 1]"#;

/// Recognises the object with `params` and `data`, or nested arrays down to `events`.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let text = probe.text();
    let start: String = text.chars().filter(|ch| !ch.is_whitespace()).take(200).collect();
    let bare = start.trim_start_matches("[]").trim_start_matches(',');
    let is_object = start.starts_with('{') && text.contains("\"params\"") && text.contains("\"n_node\"");
    let is_array = start.starts_with("[[")
        && (bare.contains("[{\"events\"")
            || bare.contains("[{\"committed\"")
            || bare.contains("[{\"success\""));
    match is_object || is_array {
        true => Likeness::Certain,
        false if start == "[]" || start == "[[]]" => Likeness::Possible,
        false => Likeness::No,
    }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut json = Cursor::new(text_of(bytes)?).until(builder.interrupt());
    let mut reading = Reading::default();
    if json.peek()? == Kind::List {
        reading.sessions(&mut json, builder, warnings)?;
    } else {
        reading.object(&mut json, builder, warnings)?;
    }
    if !json.is_done() {
        return Err(json.expected("the end of the file"));
    }
    reading.initials.settle(builder);
    note_failing(reading.failing, warnings);
    if reading.is_first_version {
        let zero = builder.int(0);
        for key in 0..builder.key_count() {
            builder.initial(KeyId::new(key), zero);
        }
    }
    Ok(())
}

#[derive(Default)]
struct Reading<'a> {
    tree: Tree<'a>,
    initials: Initials,
    is_first_version: bool,
    /// Committed transactions with operations that failed.
    failing: u64,
}

impl<'a> Reading<'a> {
    fn object(
        &mut self,
        json: &mut Cursor<'a>,
        builder: &mut Builder,
        warnings: &mut Warnings,
    ) -> Result<(), Fault> {
        let place = json.here();
        json.take(b'{', "a dbcop history: an object with `params` and `data`, or an array of sessions")?;
        let mut is_first = true;
        let mut found = false;
        // The small fields are collected into an object of their own, for the header.
        let mut fields = String::from("{");
        while json.more(std::mem::take(&mut is_first), b'}')? {
            self.tree.clear();
            let name = json.field()?;
            if name == "data" {
                found = true;
                self.sessions(json, builder, warnings)?;
                continue;
            }
            let node = json_tree::form(json, &mut self.tree)?;
            if ["params", "info", "start", "end"].contains(&&*name) {
                let comma = if fields.len() > 1 { "," } else { "" };
                fields.push_str(&format!("{comma}\"{name}\":{}", self.tree.json(node)));
            }
        }
        if !found {
            return Err(Fault::new(place, "an object without `data`", "the sessions under `data`"));
        }
        fields.push('}');
        if let Some(header) = header_of(&fields) {
            builder.set_header_extra(&header.native());
        }
        Ok(())
    }

    fn sessions(
        &mut self,
        json: &mut Cursor<'a>,
        builder: &mut Builder,
        warnings: &mut Warnings,
    ) -> Result<(), Fault> {
        json.take(b'[', "an array of sessions")?;
        let (mut number, mut is_first) = (0, true);
        while json.more(std::mem::take(&mut is_first), b']')? {
            number += 1;
            let session = builder.session(NameRef::Int(number));
            json.take(b'[', "a session: an array of transactions")?;
            let mut is_first = true;
            while json.more(std::mem::take(&mut is_first), b']')? {
                let place = json.here();
                self.tree.clear();
                let node = json_tree::form(json, &mut self.tree)?;
                builder.begin(session);
                let (checkpoint, was_first_version) = (self.initials.len(), self.is_first_version);
                let built = self.transaction(node, builder).and_then(|()| {
                    builder.end().map_err(|error| Fault::new(place, error.to_string(), "a smaller history"))
                });
                if let Err(fault) = built {
                    builder.abandon();
                    self.initials.truncate(checkpoint);
                    self.is_first_version = was_first_version;
                    warnings.refuse(fault)?;
                }
            }
        }
        Ok(())
    }

    fn transaction(&mut self, node: Node<'a>, builder: &mut Builder) -> Result<(), Fault> {
        let tree = &self.tree;
        let events = tree.entry(node, "events").filter(|events| matches!(events.form, Form::List(_)));
        let events = events.ok_or_else(|| {
            Fault::new(node.offset, "a transaction without `events`", r#"{"events": […], "committed": true}"#)
        })?;
        let outcome = tree.entry(node, "committed").or(tree.entry(node, "success"));
        match outcome.map(|outcome| outcome.form) {
            Some(Form::Bool(true)) => {}
            Some(Form::Bool(false)) => builder.set_status(Status::Aborted),
            _ => {
                let place = outcome.unwrap_or(node).offset;
                return Err(Fault::new(
                    place,
                    "a transaction without `committed`",
                    "`committed`: true or false",
                ));
            }
        }
        let mut failed = 0;
        for &event in tree.children(events) {
            let Some(event) = event_of(event, tree, builder, &mut self.is_first_version)? else {
                failed += 1;
                continue;
            };
            match event {
                Plain::Read(key, value) => {
                    let op = builder.read(key, value, Lock::None);
                    self.initials.read(op, key, value);
                }
                Plain::Write(key, value) | Plain::Append(key, value) => {
                    builder.write(key, value);
                    self.initials.write(key, value);
                }
            }
        }
        if failed > 0 {
            builder.set_ctx(&failed_operations(failed));
            self.failing += u64::from(outcome.is_some_and(|outcome| outcome.form == Form::Bool(true)));
        }
        Ok(())
    }
}

fn header_of(fields: &str) -> Option<Header> {
    let mut tree = Tree::default();
    let node = json_tree::form(&mut Cursor::new(fields), &mut tree).ok()?;
    Header::from_object(node, &tree)
}

/// An event; `None` if it failed.
fn event_of<'a>(
    node: Node<'a>,
    tree: &Tree<'a>,
    builder: &mut Builder,
    is_first_version: &mut bool,
) -> Result<Option<Plain>, Fault> {
    let fault = |place: Node<'a>, problem: &str| Fault::new(place.offset, problem, EXPECTED_EVENT);
    let (is_write, key, value) = match (node.form, tree.children(node)) {
        (Form::List(_), &[kind, key, value]) => match tree.text(kind) {
            Some("r") => (false, key, value),
            Some("w") => (true, key, value),
            _ => return Err(fault(kind, "an event that is neither \"r\" nor \"w\"")),
        },
        (Form::Map(_), &[kind, fields]) => {
            let is_write = match tree.text(kind) {
                Some("Read") => false,
                Some("Write") => true,
                _ => return Err(fault(kind, "an event that is neither `Read` nor `Write`")),
            };
            let (Some(key), Some(value)) = (tree.entry(fields, "variable"), tree.entry(fields, "version"))
            else {
                return Err(fault(fields, "an event without `variable` or `version`"));
            };
            (is_write, key, value)
        }
        (Form::Map(_), _) => {
            let field = |name| {
                tree.entry(node, name).ok_or_else(|| fault(node, &format!("an event without `{name}`")))
            };
            *is_first_version = true;
            if field("success")?.form == Form::Bool(false) {
                return Ok(None);
            }
            (field("write")?.form == Form::Bool(true), field("variable")?, field("value")?)
        }
        _ => return Err(fault(node, "not an event")),
    };
    if is_write && value.form == Form::Nil {
        return Err(fault(value, "a write without a version"));
    }
    let is_scalar = |node: Node<'a>| !matches!(node.form, Form::List(_) | Form::Map(_));
    if !is_scalar(key) || !is_scalar(value) || key.form == Form::Nil {
        return Err(fault(node, "a variable or a version that is neither a number nor text"));
    }
    let (key, value) = (tree.key(key, builder), tree.value(value, builder));
    Ok(Some(if is_write { Plain::Write(key, value) } else { Plain::Read(key, value) }))
}

/// Which keys start at 0 and which start absent; see the head of this file.
#[derive(Debug, Default)]
pub(super) struct Initials {
    /// Keys to which 0 is written, and reads of `null` or 0, in the order of the file.
    seen: Vec<Seen>,
}

#[derive(Clone, Copy, Debug)]
enum Seen {
    ZeroWritten(KeyId),
    ZeroRead(KeyId),
    NothingRead(OpId, KeyId),
}

impl Initials {
    pub(super) fn write(&mut self, key: KeyId, value: ValueId) {
        if value == ValueId::ZERO {
            self.seen.push(Seen::ZeroWritten(key));
        }
    }

    pub(super) fn read(&mut self, op: OpId, key: KeyId, value: ValueId) {
        match value {
            ValueId::ZERO => self.seen.push(Seen::ZeroRead(key)),
            ValueId::ABSENT => self.seen.push(Seen::NothingRead(op, key)),
            _ => {}
        }
    }

    fn len(&self) -> usize {
        self.seen.len()
    }

    fn truncate(&mut self, len: usize) {
        self.seen.truncate(len);
    }

    /// Sets the initial values, and turns reads of nothing into reads of them.
    pub(super) fn settle(self, builder: &mut Builder) {
        let mut starts_at_zero = vec![false; builder.key_count()];
        for seen in &self.seen {
            if let Seen::ZeroRead(key) = seen {
                starts_at_zero[key.index()] = true;
            }
        }
        for seen in &self.seen {
            if let Seen::ZeroWritten(key) = seen {
                starts_at_zero[key.index()] = false;
            }
        }
        for (key, _) in starts_at_zero.iter().enumerate().filter(|&(_, &starts_at_zero)| starts_at_zero) {
            builder.initial(KeyId::new(key), ValueId::ZERO);
        }
        for seen in &self.seen {
            if let Seen::NothingRead(op, key) = *seen
                && starts_at_zero[key.index()]
            {
                builder.set_read_value(op, ValueId::ZERO);
            }
        }
    }
}

/// What dbcop's new forms have room for. Where a key starts at 0 or absent, the file says so by how it is read.
pub(super) fn room(format: Format) -> Room {
    Room { format, aborted: true, unknown: false, appends: false, start: Start::ZeroOrAbsent }
}

/// Writes a history of reads and writes of unsigned integers.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let content = Content::new(history, room(Format::DbcopJson))?;
    let header = Header::of(history);
    let mut text = Vec::from(b"{\"params\":");
    header.push_parameters(&mut text);
    text.push(b',');
    header.push_texts(&mut text);
    text.extend(b",\"data\":[");
    out.write_all(&text)?;
    for (index, session) in history.sessions().ids().enumerate() {
        out.write_all(if index == 0 { b"\n[" } else { b"],\n[" })?;
        for (index, &txn) in history.of_session(session).iter().enumerate() {
            let txn = history.transaction(txn);
            write!(out, "{}{{\"events\":[", if index == 0 { "" } else { ",\n " })?;
            for (index, op) in content.operations(txn).enumerate() {
                let (kind, key, value) = match op? {
                    Plain::Read(key, value) => ("Read", key, value),
                    Plain::Write(key, value) | Plain::Append(key, value) => ("Write", key, value),
                };
                let comma = if index == 0 { "" } else { "," };
                let key = content.unsigned_key(txn, key)?;
                write!(out, "{comma}{{\"{kind}\":{{\"variable\":{key},\"version\":")?;
                match value {
                    ValueId::ABSENT => out.write_all(b"null}}")?,
                    value => write!(out, "{}}}}}", content.unsigned_value(txn, value)?)?,
                }
            }
            write!(out, "],\"committed\":{}}}", txn.is_committed())?;
        }
    }
    out.write_all(if history.sessions().is_empty() { b"]}\n" } else { b"]]}\n" })?;
    Ok(())
}
