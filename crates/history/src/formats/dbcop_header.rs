//! What dbcop's binary and JSON files say of themselves: how the history was made, and when.
//!
//! It is kept as the field `dbcop` of the native header, so that a history that came from dbcop goes back with it.

use super::json::{Cursor, push_string};
use super::json_tree;
use super::tree::{Form, Node, Tree};
use crate::History;
use std::io::Write as _;

/// The header of a dbcop history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// In the order of [`PARAMETERS`]: what the generator was asked for, not totals.
    pub(super) parameters: [u64; 5],
    pub(super) info: String,
    /// RFC 3339.
    pub(super) start: String,
    /// RFC 3339.
    pub(super) end: String,
}

/// The names of the parameters.
pub(super) const PARAMETERS: [&str; 5] = ["id", "n_node", "n_variable", "n_transaction", "n_event"];

impl Header {
    /// As an object with one field `dbcop`, for the native header.
    pub(super) fn native(&self) -> String {
        let mut out = Vec::from(b"{\"dbcop\":{\"params\":");
        self.push_parameters(&mut out);
        out.push(b',');
        self.push_texts(&mut out);
        out.extend(b"}}");
        String::from_utf8(out).expect("JSON is written from text")
    }

    /// `{"id":0,…}`.
    pub(super) fn push_parameters(&self, out: &mut Vec<u8>) {
        for (index, (name, value)) in PARAMETERS.iter().zip(self.parameters).enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            _ = write!(out, "{before}\"{name}\":{value}");
        }
        out.push(b'}');
    }

    /// `"info":"…","start":"…","end":"…"`.
    pub(super) fn push_texts(&self, out: &mut Vec<u8>) {
        for (index, (name, text)) in
            [("info", &self.info), ("start", &self.start), ("end", &self.end)].into_iter().enumerate()
        {
            _ = write!(out, "{}\"{name}\":", if index == 0 { "" } else { "," });
            push_string(out, text);
        }
    }

    /// The header that a history came with, else one that says what is in it.
    pub(super) fn of(history: &History) -> Self {
        history.header_extra().and_then(Self::from_native).unwrap_or_else(|| Self::describing(history))
    }

    fn from_native(json: &str) -> Option<Self> {
        let mut tree = Tree::default();
        let root = json_tree::form(&mut Cursor::new(json), &mut tree).ok()?;
        let dbcop = tree.entry(root, "dbcop")?;
        Self::from_object(dbcop, &tree)
    }

    /// From an object with the fields `params`, `info`, `start` and `end`; `None` if one is missing.
    pub(super) fn from_object<'a>(object: Node<'a>, tree: &Tree<'a>) -> Option<Self> {
        let given = tree.entry(object, "params")?;
        let mut parameters = [0; 5];
        for (name, parameter) in PARAMETERS.iter().zip(&mut parameters) {
            *parameter = match tree.entry(given, name)?.form {
                Form::Int(value) => u64::try_from(value).ok()?,
                Form::UInt(value) => value,
                _ => return None,
            };
        }
        let text = |name| Some(tree.text(tree.entry(object, name)?)?.to_owned());
        Some(Self { parameters, info: text("info")?, start: text("start")?, end: text("end")? })
    }

    fn describing(history: &History) -> Self {
        let sessions = history.sessions();
        let transactions = sessions.ids().map(|session| history.of_session(session).len()).max();
        let events = history.transactions().map(|txn| txn.ops().len()).max();
        let never = "1970-01-01T00:00:00+00:00".to_owned();
        let parameters =
            [0, sessions.len(), history.keys().len(), transactions.unwrap_or(0), events.unwrap_or(0)];
        Self {
            parameters: parameters.map(|value| value as u64),
            info: "converted".into(),
            start: never.clone(),
            end: never,
        }
    }
}
