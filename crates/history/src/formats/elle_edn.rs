//! Jepsen and Elle histories as EDN: operation maps one after the other, or all in one vector or list.
//!
//! What the operations mean is in `jepsen`.

use super::edn::Edn;
use super::jepsen::{self, Operations, Syntax};
use super::json_tree::text_of;
use super::tree::{Form, Node, Tree};
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History};
use std::io;

/// Recognises a first form that is a map with the key `:type`, or a vector of such.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let text = probe.text();
    let mut edn = Edn::new(text);
    if matches!(edn.peek(), Some(b'[' | b'(')) {
        edn.skip();
    }
    let starts_map = matches!(edn.peek(), Some(b'{' | b'#'));
    let mut tree = Tree::default();
    match edn.form(&mut tree) {
        Ok(Some(node)) if starts_map => {
            let has = |wanted: &str| {
                tree.entries(node).any(|(name, _)| matches!(name.form, Form::Word(word) if word == wanted))
            };
            if has("type") { Likeness::Certain } else { Likeness::No }
        }
        // The first operation is longer than what could be looked at.
        Err(_) if starts_map && !probe.complete && text.contains(":type") => Likeness::Possible,
        _ => Likeness::No,
    }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let text = text_of(bytes)?;
    let mut edn = Edn::new(text);
    let mut operations = Operations::new(text, form_at);
    let mut tree = Tree::default();
    let close = match edn.peek() {
        Some(b'[') => Some(b']'),
        Some(b'(') => Some(b')'),
        _ => None,
    };
    if close.is_some() {
        edn.skip();
    }
    loop {
        tree.clear();
        let Some(node) = edn.form(&mut tree)? else { break };
        if let Err(fault) = operations.add(node, &tree, builder) {
            warnings.refuse(fault)?;
        }
    }
    if let Some(close) = close {
        if edn.peek() != Some(close) {
            return Err(edn.surprise(&format!("`{}` at the end of the operations", char::from(close))));
        }
        edn.skip();
    }
    if edn.peek().is_some() {
        return Err(edn.surprise("the end of the file"));
    }
    operations.finish(builder, warnings)
}

fn form_at<'a>(text: &'a str, at: usize, tree: &mut Tree<'a>) -> Option<Node<'a>> {
    Edn::at(text, at).form(tree).ok().flatten()
}

/// Writes a history, one operation a line.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    jepsen::write(history, Format::ElleEdn, Syntax::Edn, out)
}
