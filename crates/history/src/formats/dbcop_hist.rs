//! dbcop's text histories (`.hist`), as dbcop reads and prints them since 2025.
//!
//! ```text
//! // session 1
//! [x:=1 y:=2] [y==2 x:=3]!
//! ---
//! [x==? y:=4]
//! ```
//! `:=` writes, `==` reads, `==?` reads a key before its first write; `[…]!` is a transaction that did not commit;
//! a line of dashes begins the next session; `//` begins a comment. Keys are words, a key of digits is an integer.
//! Sessions are numbered from 1.
//!
//! Initial values are those of the JSON form: see `dbcop_json`.

use super::dbcop_json::{Initials, room};
use super::json_tree::text_of;
use super::plain::{Content, Plain};
use super::text::note_open_end;
use super::{Fault, Format, Likeness, Part, Probe, Warnings, WriteError};
use crate::{Builder, History, Lock, NameRef, Status, ValueId};
use std::io;

/// Recognises a transaction or a rule of dashes after comments.
pub(super) fn detect(probe: &Probe<'_>) -> Likeness {
    let mut input = Text { bytes: probe.text().as_bytes(), at: 0 };
    loop {
        match input.next() {
            Some(b'[') => {
                input.at += 1;
                input.blanks();
                let word = input.word();
                let operator = input.bytes.get(input.at..input.at + 2);
                let is_event = !word.is_empty() && matches!(operator, Some(b":=" | b"=="));
                return if is_event { Likeness::Certain } else { Likeness::No };
            }
            Some(b'-') => input.at += 1,
            _ => return Likeness::No,
        }
    }
}

/// Reads a history.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    text_of(bytes)?;
    let mut input = Text { bytes, at: 0 };
    let mut number = 1;
    let mut session = builder.session(NameRef::Int(number));
    let mut initials = Initials::default();
    while let Some(byte) = input.next() {
        match byte {
            b'-' => {
                while bytes.get(input.at) == Some(&b'-') {
                    input.at += 1;
                }
                number += 1;
                session = builder.session(NameRef::Int(number));
            }
            b'[' => {
                let place = input.at;
                builder.begin(session);
                input.transaction(builder, &mut initials)?;
                if input.bytes.get(input.at) == Some(&b'!') {
                    input.at += 1;
                    builder.set_status(Status::Aborted);
                }
                builder.end().map_err(|error| Fault::new(place, error.to_string(), "a smaller history"))?;
            }
            _ => return Err(input.surprise("a transaction `[…]`, a line of dashes or a comment `//`")),
        }
    }
    // The `!` of an aborted transaction may be missing.
    note_open_end(bytes, warnings);
    initials.settle(builder);
    Ok(())
}

struct Text<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Text<'a> {
    /// The next byte that is neither white space nor comment.
    fn next(&mut self) -> Option<u8> {
        loop {
            let &byte = self.bytes.get(self.at)?;
            if byte.is_ascii_whitespace() {
                self.at += 1;
            } else if self.bytes[self.at..].starts_with(b"//") {
                let rest = &self.bytes[self.at..];
                self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
            } else {
                return Some(byte);
            }
        }
    }

    fn blanks(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn word(&mut self) -> &'a str {
        let start = self.at;
        while self
            .bytes
            .get(self.at)
            .is_some_and(|&byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80)
        {
            self.at += 1;
        }
        std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default()
    }

    fn surprise(&self, expected: &str) -> Fault {
        let problem = match self.bytes.get(self.at) {
            None => "the text ends here".to_owned(),
            Some(byte @ 0x21..=0x7e) => format!("`{}` does not fit here", char::from(*byte)),
            Some(byte) => format!("byte 0x{byte:02x} does not fit here"),
        };
        Fault::new(self.at, problem, expected)
    }

    /// From `[` to `]`.
    fn transaction(&mut self, builder: &mut Builder, initials: &mut Initials) -> Result<(), Fault> {
        self.at += 1;
        loop {
            self.blanks();
            if self.bytes.get(self.at) == Some(&b']') {
                self.at += 1;
                return Ok(());
            }
            let word = self.word();
            if word.is_empty() {
                return Err(self.surprise("a key, or `]`"));
            }
            let key = builder.key(key_name(word));
            let operator = self.bytes.get(self.at..self.at + 2);
            let is_write = match operator {
                Some(b":=") => true,
                Some(b"==") => false,
                _ => return Err(self.surprise("`:=` for a write or `==` for a read")),
            };
            self.at += 2;
            let value = if !is_write && self.bytes.get(self.at) == Some(&b'?') {
                self.at += 1;
                ValueId::ABSENT
            } else {
                let start = self.at;
                while self.bytes.get(self.at).is_some_and(u8::is_ascii_digit) {
                    self.at += 1;
                }
                let digits = std::str::from_utf8(&self.bytes[start..self.at]).unwrap_or_default();
                let version: u64 = digits.parse().map_err(|_| {
                    self.at = start;
                    self.surprise("a version, an integer from 0 up")
                })?;
                builder.uint(version)
            };
            if is_write {
                builder.write(key, value);
                initials.write(key, value);
            } else {
                let op = builder.read(key, value, Lock::None);
                initials.read(op, key, value);
            }
        }
    }
}

/// A key of digits is an integer, if it is written as integers are.
fn key_name(word: &str) -> NameRef<'_> {
    match word.parse::<i64>() {
        Ok(value) if value.to_string() == word => NameRef::Int(value),
        _ => NameRef::Str(word),
    }
}

/// Writes a history of reads and writes of unsigned integers whose keys are words.
pub fn write(history: &History, _: Part, out: &mut dyn io::Write) -> Result<(), WriteError> {
    let content = Content::new(history, room(Format::DbcopHist))?;
    for (index, session) in history.sessions().ids().enumerate() {
        if index > 0 {
            out.write_all(b"---\n")?;
        }
        for &txn in history.of_session(session) {
            let txn = history.transaction(txn);
            out.write_all(b"[")?;
            for (index, op) in content.operations(txn).enumerate() {
                let (key, operator, value) = match op? {
                    Plain::Read(key, value) => (key, "==", value),
                    Plain::Write(key, value) | Plain::Append(key, value) => (key, ":=", value),
                };
                let name = history.keys().get(key);
                if !is_word(name) {
                    return Err(content.no("keys that are neither words nor integers from 0 up", txn));
                }
                write!(out, "{}{name}{operator}", if index == 0 { "" } else { " " })?;
                match value {
                    ValueId::ABSENT => out.write_all(b"?")?,
                    value => write!(out, "{}", content.unsigned_value(txn, value)?)?,
                }
            }
            out.write_all(if txn.is_committed() { b"]\n" } else { b"]!\n" })?;
        }
    }
    Ok(())
}

fn is_word(name: NameRef<'_>) -> bool {
    match name {
        NameRef::Int(value) => value >= 0,
        NameRef::Str(text) => {
            !text.is_empty()
                && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                && key_name(text) == name
        }
    }
}
