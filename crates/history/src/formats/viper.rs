//! Viper's logs: a directory of `J<n>.log`, one file a session, one transaction per line.
//!
//! ```text
//! {"value": [["w", key, value, success], ["r", key, value, dead], …]}
//! ```
//! # Operations
//! | | meaning |
//! |---|---|
//! | `["r", k, v, dead]` | a read; `null` or `"nil"` is absent |
//! | `["w", k, v, success]` | a write; without success it is dropped |
//! | `["i", k, v, seen, dead, success]`, `["d", …]` | an insert, a delete: a read of `seen`, then a write of `v` |
//! | `["range", from, to, [{"id", "val"}, …], [dead rows]]` | a scan of `from..=to`; `null` or `"nil"` is open |
//! | `["append", k, v]` | an append |
//!
//! Viper deletes by writing a tombstone, which later reads see and mark *dead*: a version like any other, and so
//! it is here. All transactions committed.
//!
//! # Initial values
//! A line with `"isInitial": true` gives the state before the first transaction. Without it, a value that is read
//! from a key and that no transaction wrote there is what the key started with. (Should a key have two such values, one of
//! them came from nowhere: the first counts as initial, and checking will say so.) Any other key starts absent.

use super::cobra::numbered;
use super::json::Cursor;
use super::json_tree::{self, text_of};
use super::plain::{Content, Plain, Room, Start, push_name, push_value, session_numbers};
use super::text::lines;
use super::tree::{Form, Node, Tree};
use super::{Directory, Fault, FileFault, Format, Likeness, Probe, PutFile, Warnings, WriteError};
use crate::{Builder, History, KeyId, Lock, Name, NameRef, Range, Row, SessionId, ValueId, ValueRef};
use rustc_hash::FxHashSet;
use std::io::Write as _;

const EXPECTED: &str = r#"{"value": [["w", key, value, true], ["r", key, value, false]]}"#;

/// Recognises a directory with a file `J<n>.log`.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    match probe.files {
        Some(files) if files.iter().any(|name| numbered(name, "J").is_some()) => Likeness::Certain,
        _ => Likeness::No,
    }
}

/// Reads a directory of logs.
pub fn read(files: &Directory, builder: &mut Builder, warnings: &mut Warnings) -> Result<(), FileFault> {
    let mut logs = Logs::default();
    for (file, name) in files.names().iter().enumerate() {
        let Some(number) = numbered(name, "J") else { continue };
        warnings.in_file(file);
        let in_file = |fault| FileFault { file, fault };
        let bytes = files.bytes_of(file).map_err(in_file)?;
        logs.session(number, &bytes, builder, warnings).map_err(in_file)?;
    }
    logs.finish(builder);
    Ok(())
}

/// The sessions of a history, read one by one.
#[derive(Debug, Default)]
pub(super) struct Logs {
    written: FxHashSet<(KeyId, ValueId)>,
    /// Reads in the order of the files, each once.
    read: Vec<(KeyId, ValueId)>,
    read_seen: FxHashSet<(KeyId, ValueId)>,
    /// What the open transaction read and wrote; it may yet be refused.
    open_read: Vec<(KeyId, ValueId)>,
    open_written: Vec<(KeyId, ValueId)>,
    /// A state before the first transaction was given.
    initial_given: bool,
}

impl Logs {
    /// Reads one session's log.
    pub(super) fn session(
        &mut self,
        number: i64,
        bytes: &[u8],
        builder: &mut Builder,
        warnings: &mut Warnings,
    ) -> Result<(), Fault> {
        let text = text_of(bytes)?;
        let mut tree = Tree::default();
        let mut session = None;
        let mut open_array = None;
        for (offset, line) in lines(bytes) {
            tree.clear();
            let mut json = Cursor::new(text);
            json.seek(offset);
            // Some tools put the lines of a file into one array.
            if matches!(line, b"[" | b"]") {
                open_array = (line == b"[").then_some(offset);
                continue;
            }
            let parsed = json_tree::form(&mut json, &mut tree).and_then(|node| {
                let end = offset + line.len();
                let rest = &bytes[json.offset().min(end)..end];
                if rest.is_empty() || rest == b"," {
                    return Ok(node);
                }
                Err(Fault::new(json.offset(), "something after the transaction", "one transaction per line"))
            });
            let built = parsed.and_then(|node| self.line(node, number, &mut session, &tree, builder));
            if let Err(fault) = built {
                builder.abandon();
                warnings.refuse(fault)?;
            }
        }
        if open_array.is_some() {
            let problem = "the array of transactions does not end: was the file cut off?";
            warnings.refuse(Fault::new(bytes.len(), problem, "`]` after the last transaction"))?;
        }
        Ok(())
    }

    fn line<'a>(
        &mut self,
        node: Node<'a>,
        number: i64,
        session: &mut Option<SessionId>,
        tree: &Tree<'a>,
        builder: &mut Builder,
    ) -> Result<(), Fault> {
        let operations = tree.entry(node, "value").filter(|value| matches!(value.form, Form::List(_)));
        let operations =
            operations.ok_or_else(|| Fault::new(node.offset, "a line without a list `value`", EXPECTED))?;
        if tree.entry(node, "isInitial").is_some_and(|flag| flag.form == Form::Bool(true)) {
            self.initial_given = true;
            return initial_state(operations, tree, builder);
        }
        let session = *session.get_or_insert_with(|| builder.session(NameRef::Int(number)));
        builder.begin(session);
        self.open_read.clear();
        self.open_written.clear();
        for &operation in tree.children(operations) {
            self.operation(operation, tree, builder)?;
        }
        builder.end().map_err(|error| Fault::new(node.offset, error.to_string(), "a smaller history"))?;
        self.written.extend(self.open_written.drain(..));
        for read in self.open_read.drain(..) {
            if self.read_seen.insert(read) {
                self.read.push(read);
            }
        }
        Ok(())
    }

    fn operation<'a>(&mut self, node: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) -> Result<(), Fault> {
        let parts = tree.children(node);
        let kind = parts.first().and_then(|kind| tree.text(*kind)).unwrap_or_default();
        let is_true = |place: usize| parts.get(place).is_none_or(|flag| flag.form != Form::Bool(false));
        match (kind, parts) {
            ("r", &[_, key, value, ..]) => {
                let (key, value) = (tree.key(key, builder), seen_value(value, tree, builder));
                self.note_read(key, value);
                builder.read(key, value, Lock::None);
            }
            ("w", &[_, key, value, ..]) => {
                if is_true(3) {
                    self.write(key, value, tree, builder);
                }
            }
            ("i" | "d", &[_, key, value, seen, ..]) => {
                let id = tree.key(key, builder);
                let seen = seen_value(seen, tree, builder);
                self.note_read(id, seen);
                builder.read(id, seen, Lock::None);
                if is_true(5) {
                    self.write(key, value, tree, builder);
                }
            }
            ("append", &[_, key, value, ..]) => {
                let (key, value) = (tree.key(key, builder), tree.value(value, builder));
                builder.append(key, value);
            }
            ("range", &[_, from, to, alive, dead, ..]) => {
                let range = range_of(from, to, tree, builder)?;
                let rows = rows_of(&[alive, dead], tree, builder)?;
                rows.iter().for_each(|row| self.note_read(row.key, row.value));
                builder.scan(range, Some(&rows));
            }
            _ => {
                return Err(Fault::new(
                    node.offset,
                    format!("an operation \"{kind}\" that is unknown or incomplete"),
                    "an operation r, w, i, d, range or append with its key and value",
                ));
            }
        }
        Ok(())
    }

    fn write<'a>(&mut self, key: Node<'a>, value: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) {
        let (key, value) = (tree.key(key, builder), tree.value(value, builder));
        self.open_written.push((key, value));
        builder.write(key, value);
    }

    fn note_read(&mut self, key: KeyId, value: ValueId) {
        if value != ValueId::ABSENT {
            self.open_read.push((key, value));
        }
    }

    /// What is read and was never written is initial.
    pub(super) fn finish(self, builder: &mut Builder) {
        if self.initial_given {
            return;
        }
        let mut settled = FxHashSet::default();
        for &(key, value) in &self.read {
            let is_list = matches!(builder.value(value), ValueRef::List(_));
            if !is_list && !self.written.contains(&(key, value)) && settled.insert(key) {
                builder.initial(key, value);
            }
        }
    }
}

/// A value that was read; the empty list is what an absent key holds.
fn seen_value<'a>(node: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) -> ValueId {
    let is_empty_list = matches!(node.form, Form::List(_)) && tree.children(node).is_empty();
    if is_nil(node, tree) || is_empty_list { ValueId::ABSENT } else { tree.value(node, builder) }
}

fn is_nil<'a>(node: Node<'a>, tree: &Tree<'a>) -> bool {
    node.form == Form::Nil || tree.text(node) == Some("nil")
}

/// Viper's bounds are both inclusive.
fn range_of<'a>(
    from: Node<'a>,
    to: Node<'a>,
    tree: &Tree<'a>,
    builder: &mut Builder,
) -> Result<Range, Fault> {
    let from = (!is_nil(from, tree)).then(|| tree.key(from, builder));
    let to = match to.form {
        _ if is_nil(to, tree) => None,
        // The empty text is the first key after all integers.
        Form::Int(i64::MAX) => Some(builder.key(NameRef::Str(""))),
        Form::Int(to) => Some(builder.key(NameRef::Int(to + 1))),
        _ => {
            let text = tree.text(to).ok_or_else(|| {
                Fault::new(to.offset, "a bound that is neither integer nor text", "a key or null")
            })?;
            Some(builder.key(NameRef::Str(&format!("{text}\0"))))
        }
    };
    Ok(Range { from, to })
}

/// Rows `{"id": k, "val": v}` of several lists, in key order.
fn rows_of<'a>(lists: &[Node<'a>], tree: &Tree<'a>, builder: &mut Builder) -> Result<Vec<Row>, Fault> {
    let mut rows = Vec::new();
    for row in lists.iter().flat_map(|&list| tree.children(list)) {
        let (Some(id), Some(value)) = (tree.entry(*row, "id"), tree.entry(*row, "val")) else {
            return Err(Fault::new(
                row.offset,
                "a row without `id` or `val`",
                r#"{"id": key, "val": value}"#,
            ));
        };
        let name = match (id.form, tree.text(id)) {
            (Form::Int(value), _) => Name::Int(value),
            (_, Some(text)) => Name::Str(text.to_owned()),
            _ => Name::Str(tree.json(id)),
        };
        rows.push((name, Row { key: tree.key(id, builder), value: tree.value(value, builder) }));
    }
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

/// The operations of a line that is no transaction but the state before all.
fn initial_state<'a>(operations: Node<'a>, tree: &Tree<'a>, builder: &mut Builder) -> Result<(), Fault> {
    for &operation in tree.children(operations) {
        match (tree.children(operation).first().and_then(|kind| tree.text(*kind)), tree.children(operation)) {
            (Some("w"), &[_, key, value, ..]) => {
                let (key, value) = (tree.key(key, builder), tree.value(value, builder));
                builder.initial(key, value);
            }
            (Some("range"), &[_, _, _, alive, dead, ..]) => {
                for row in rows_of(&[alive, dead], tree, builder)? {
                    builder.initial(row.key, row.value);
                }
            }
            _ => {
                return Err(Fault::new(
                    operation.offset,
                    "an operation that gives no initial value",
                    "writes, or one range over all keys",
                ));
            }
        }
    }
    Ok(())
}

/// Writes a committed history of reads, writes and appends as one log a session.
pub fn write(history: &History, put: &mut PutFile<'_>) -> Result<(), WriteError> {
    let room =
        Room { format: Format::Viper, aborted: false, unknown: false, appends: true, start: Start::Own };
    let content = Content::new(history, room)?;
    refuse_misread_initials(&content)?;
    for (session, number) in history.sessions().ids().zip(session_numbers(history)) {
        let mut log = Vec::new();
        for &txn in history.of_session(session) {
            let txn = history.transaction(txn);
            log.extend(b"{\"value\": [");
            for (index, op) in content.operations(txn).enumerate() {
                log.extend(if index == 0 { "" } else { ", " }.bytes());
                let (kind, key, value, tail) = match op? {
                    Plain::Read(key, value) => ("r", key, value, ", false]"),
                    Plain::Write(key, value) => ("w", key, value, ", true]"),
                    Plain::Append(key, value) => ("append", key, value, "]"),
                };
                _ = write!(log, "[\"{kind}\", ");
                push_name(history.keys().get(key), &mut log);
                log.extend(b", ");
                if !push_value(history, value, "null", &mut log) {
                    return Err(content.no("values that are rows or nested", txn));
                }
                log.extend(tail.bytes());
            }
            log.extend(b"]}\n");
        }
        put(&format!("J{number}.log"), &log)?;
    }
    Ok(())
}

/// Initial values show by being read and never written; what does not show that way cannot be written.
fn refuse_misread_initials(content: &Content<'_>) -> Result<(), WriteError> {
    let history = content.history;
    let mut written = FxHashSet::default();
    for txn in history.transactions() {
        for op in content.operations(txn) {
            if let Plain::Write(key, value) = op? {
                written.insert((key, value));
            }
        }
    }
    for txn in history.transactions() {
        for op in content.operations(txn) {
            let Plain::Read(key, value) = op? else { continue };
            let is_initial = value == history.initial_value(key);
            let is_list = matches!(history.values().get(value), ValueRef::List(_));
            let misread = match (is_initial, value == ValueId::ABSENT) {
                (true, true) => false,
                (true, false) => written.contains(&(key, value)),
                (false, true) => true,
                (false, false) => !is_list && !written.contains(&(key, value)),
            };
            if misread {
                let what = format!(
                    "a read of {} from key {}: it counts as the initial value only if no transaction writes it",
                    history.values().show(value),
                    history.keys().get(key)
                );
                return Err(content.no(&what, txn));
            }
        }
    }
    Ok(())
}
