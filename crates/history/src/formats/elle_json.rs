//! Jepsen and Elle histories as JSON: an array of operation objects, as elle-cli takes them, or one object a line.
//!
//! Keywords of the EDN form are strings here. What the operations mean is in `jepsen`.

use super::jepsen::{self, Operations, Syntax};
use super::json::{Cursor, Kind};
use super::json_tree::{self, text_of};
use super::tree::{Node, Tree};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History};
use std::io;

/// Recognises a first object with `type` one of Jepsen's.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let text = probe.text();
    let mut json = Cursor::new(text);
    let in_array = matches!(json.peek(), Ok(Kind::List)) && json.take(b'[', "").is_ok();
    if probe.is_directory() || !matches!(json.peek(), Ok(Kind::Object)) {
        let is_empty = in_array && matches!(json.more(true, b']'), Ok(false)) && json.is_done();
        return if is_empty { Likeness::Possible } else { Likeness::No };
    }
    let mut tree = Tree::default();
    match json_tree::form(&mut json, &mut tree) {
        Ok(node) => {
            let kind = tree.entry(node, "type").and_then(|kind| tree.text(kind));
            let is_jepsen = matches!(kind, Some("invoke" | "ok" | "fail" | "info"));
            if is_jepsen { Likeness::Certain } else { Likeness::No }
        }
        Err(_) if !probe.complete && text.contains("\"invoke\"") => Likeness::Possible,
        Err(_) => Likeness::No,
    }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let text = text_of(bytes)?;
    let mut json = Cursor::new(text).until(builder.interrupt());
    let mut operations = Operations::new(text, form_at);
    let mut tree = Tree::default();
    let in_array = !json.is_done() && json.peek()? == Kind::List;
    if in_array {
        json.take(b'[', "an array of operations")?;
    }
    let mut is_first = true;
    while if in_array { json.more(std::mem::take(&mut is_first), b']')? } else { !json.is_done() } {
        tree.clear();
        let node = json_tree::form(&mut json, &mut tree)?;
        if let Err(fault) = operations.add(node, &tree, builder) {
            warnings.refuse(fault)?;
        }
    }
    if !json.is_done() {
        return Err(json.expected("the end of the file"));
    }
    operations.finish(builder, warnings)
}

fn form_at<'a>(text: &'a str, at: usize, tree: &mut Tree<'a>) -> Option<Node<'a>> {
    let mut json = Cursor::new(text);
    json.seek(at);
    json_tree::form(&mut json, tree).ok()
}

/// Writes a history as one array, one operation a line.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    jepsen::write(history, Format::ElleJson, Syntax::Json, out)
}
