//! TimeKiller's histories: a JSON array of transactions with the database's own timestamps.
//!
//! ```text
//! [{"tid": 67, "sid": 19, "sts": {"p": 1691420095436341, "l": 61}, "cts": {"p": "1691420095659914", "l": 18},
//!   "ops": [{"t": "w", "k": 7, "v": 2}, {"t": "r", "k": 8, "v": 3}]}, …]
//! ```
//! Timestamps are hybrid: physical `p` (an integer, also as text) and logical `l`, compared in that order. At equal
//! timestamps a commit comes before a start. All transactions committed; lines of a session are in its order.
//!
//! # Kinds
//! * *key–value*: `t` is `r`, `w`, `read` or `write`. Every key starts at 0; if any read of the file gives `null`
//!   (or nothing), every key starts absent.
//! * *list*: `t` is `a`, `r`, `append` or `read`; a read gives a list, where `null`, nothing and `[]` are the same.
//!   Every key starts absent, which is the empty list.
//!
//! A file is of the list kind if any operation of it appends or gives a list.

use super::json::Cursor;
use super::json_tree::{self, text_of};
use super::plain::{Content, Plain, Room, Start, push_name, push_value};
use super::tree::{Form, Node, Tree};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{
    Builder, History, Id, KeyId, Lock, NameRef, Operation, Timestamp, Transaction, ValueId, ValueRef,
};
use std::io::{self, Write as _};

const EXPECTED: &str = r#"{"tid": 1, "sid": 1, "sts": {"p": 5, "l": 0}, "cts": {"p": 6, "l": 0}, "ops": [{"t": "r", "k": 7, "v": 2}]}"#;

/// Recognises the timestamps of the first transaction.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let text = probe.text();
    let begins = text.trim_start().strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with('{'));
    let has = |name: &str| text.contains(name);
    if begins && has("\"sts\"") && has("\"cts\"") { Likeness::Certain } else { Likeness::No }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut json = Cursor::new(text_of(bytes)?).until(builder.interrupt());
    let mut tree = Tree::default();
    let mut kind = Kind::default();
    json.take(b'[', "an array of transactions")?;
    let mut is_first = true;
    while json.more(std::mem::take(&mut is_first), b']')? {
        tree.clear();
        let node = json_tree::form(&mut json, &mut tree)?;
        let mut seen = kind;
        match transaction(node, &tree, builder, &mut seen) {
            Ok(()) => kind = seen,
            Err(fault) => {
                builder.abandon();
                warnings.refuse(fault)?;
            }
        }
    }
    if !json.is_done() {
        return Err(json.expected("the end of the file"));
    }
    if !kind.is_list && !kind.reads_nothing {
        for key in 0..builder.key_count() {
            builder.initial(KeyId::new(key), ValueId::ZERO);
        }
    }
    Ok(())
}

/// What the operations of a file show of its kind.
#[derive(Clone, Copy, Debug, Default)]
struct Kind {
    is_list: bool,
    reads_nothing: bool,
}

fn transaction<'a>(
    node: Node<'a>,
    tree: &Tree<'a>,
    builder: &mut Builder,
    kind: &mut Kind,
) -> Result<(), Fault> {
    let field = |name: &str| {
        tree.entry(node, name)
            .ok_or_else(|| Fault::new(node.offset, format!("a transaction without `{name}`"), EXPECTED))
    };
    let refused = |error: crate::BuildError| {
        Fault::new(node.offset, error.to_string(), "unique `tid`s, and `sts` not after `cts`")
    };
    let session = name_of(field("sid")?, tree)?;
    let session = builder.session(session);
    builder.begin(session);
    builder.set_id(name_of(field("tid")?, tree)?).map_err(refused)?;
    let (start, commit) = (timestamp(field("sts")?, tree)?, timestamp(field("cts")?, tree)?);
    builder.set_db(start, commit).map_err(refused)?;
    for &operation in tree.children(field("ops")?) {
        add_operation(operation, tree, builder, kind)?;
    }
    builder.end().map_err(refused)?;
    Ok(())
}

fn name_of<'t, 'a>(node: Node<'a>, tree: &'t Tree<'a>) -> Result<NameRef<'t>, Fault> {
    match (node.form, tree.text(node)) {
        (Form::Int(value), _) => Ok(NameRef::Int(value)),
        (_, Some(text)) => Ok(NameRef::Str(text)),
        _ => Err(Fault::new(node.offset, "an id that is neither integer nor text", EXPECTED)),
    }
}

fn timestamp<'a>(node: Node<'a>, tree: &Tree<'a>) -> Result<Timestamp, Fault> {
    let part = |name: &str| {
        let part = tree.entry(node, name);
        let value = part.and_then(|part| match (part.form, tree.text(part)) {
            (Form::Int(value), _) => Some(value),
            (_, Some(text)) => text.parse().ok(),
            _ => None,
        });
        value.ok_or_else(|| {
            Fault::new(
                part.unwrap_or(node).offset,
                format!("a timestamp without an integer `{name}`"),
                EXPECTED,
            )
        })
    };
    let (physical, logical) = (part("p")?, part("l")?);
    let logical = u32::try_from(logical).map_err(|_| {
        Fault::new(node.offset, format!("a logical time of {logical}"), "`l` between 0 and 4294967295")
    })?;
    Ok(Timestamp { physical, logical })
}

fn add_operation<'a>(
    node: Node<'a>,
    tree: &Tree<'a>,
    builder: &mut Builder,
    kind: &mut Kind,
) -> Result<(), Fault> {
    let expected = r#"{"t": "r", "k": 7, "v": 2} with t one of r, w, a, read, write, append"#;
    let key =
        tree.entry(node, "k").filter(|key| matches!(key.form, Form::Int(_)) || tree.text(*key).is_some());
    let key = key.ok_or_else(|| Fault::new(node.offset, "an operation without a key `k`", expected))?;
    let key = tree.key(key, builder);
    let value = tree.entry(node, "v").filter(|value| value.form != Form::Nil);
    let is_list = value.is_some_and(|value| matches!(value.form, Form::List(_)));
    let written = || {
        value
            .filter(|_| !is_list)
            .ok_or_else(|| Fault::new(node.offset, "a write without a value `v`", expected))
    };
    let name = tree.entry(node, "t").and_then(|name| tree.text(name)).unwrap_or_default();
    let is = |names: [&str; 2]| names.iter().any(|it| it.eq_ignore_ascii_case(name));
    if is(["r", "read"]) {
        kind.is_list |= is_list;
        kind.reads_nothing |= value.is_none();
        let is_empty = is_list && value.is_some_and(|value| tree.children(value).is_empty());
        let value = value.filter(|_| !is_empty).map_or(ValueId::ABSENT, |value| tree.value(value, builder));
        builder.read(key, value, Lock::None);
    } else if is(["w", "write"]) {
        let value = tree.value(written()?, builder);
        builder.write(key, value);
    } else if is(["a", "append"]) {
        kind.is_list = true;
        let value = tree.value(written()?, builder);
        builder.append(key, value);
    } else {
        return Err(Fault::new(node.offset, format!("an operation of type \"{name}\""), expected));
    }
    Ok(())
}

/// Writes a committed history whose transactions all have database timestamps.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let content = Content::new(history, room(history))?;
    out.write_all(b"[")?;
    for (index, txn) in history.transactions().enumerate() {
        let mut text = Vec::from(if index == 0 { "\n" } else { ",\n" });
        push_transaction(&content, txn, &mut text)?;
        out.write_all(&text)?;
    }
    out.write_all(b"\n]\n")?;
    Ok(())
}

fn room(history: &History) -> Room {
    let mut is_list = false;
    let mut reads_nothing = false;
    for (_, op) in history.transactions().flat_map(|txn| txn.ops()) {
        match op {
            Operation::Append { .. } => is_list = true,
            Operation::Read { value, .. } if value.is_known() => {
                is_list |= matches!(history.values().get(value), ValueRef::List(_));
                reads_nothing |= value == ValueId::ABSENT;
            }
            _ => {}
        }
    }
    let start = if is_list || reads_nothing { ValueId::ABSENT } else { ValueId::ZERO };
    Room {
        format: Format::Timekiller,
        aborted: false,
        unknown: false,
        appends: true,
        start: Start::All(start),
    }
}

fn push_transaction(
    content: &Content<'_>,
    txn: Transaction<'_>,
    out: &mut Vec<u8>,
) -> Result<(), WriteError> {
    let history = content.history;
    let Some((start, commit)) = txn.db() else {
        return Err(content.no("transactions without database timestamps", txn));
    };
    out.extend(b"{\"tid\": ");
    match txn.explicit_id() {
        Some(id) => push_name(id, out),
        None => push_name(NameRef::Str(&txn.name().to_string()), out),
    }
    out.extend(b", \"sid\": ");
    push_name(history.sessions().get(txn.session()), out);
    for (name, time) in [("sts", start), ("cts", commit)] {
        write!(out, ", \"{name}\": {{\"p\": {}, \"l\": {}}}", time.physical, time.logical)?;
    }
    out.extend(b", \"ops\": [");
    for (index, op) in content.operations(txn).enumerate() {
        let (kind, key, value) = match op? {
            Plain::Read(key, value) => ("r", key, value),
            Plain::Write(key, value) => ("w", key, value),
            Plain::Append(key, value) => ("a", key, value),
        };
        out.extend(if index == 0 { "" } else { ", " }.bytes());
        write!(out, "{{\"t\": \"{kind}\", \"k\": ")?;
        push_name(history.keys().get(key), out);
        out.extend(b", \"v\": ");
        if !push_value(history, value, "null", out) {
            return Err(content.no("values that are rows or nested", txn));
        }
        out.push(b'}');
    }
    out.extend(b"]}");
    Ok(())
}
