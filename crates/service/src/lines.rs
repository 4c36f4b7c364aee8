//! Bytes into batches: whole lines, parsed; and the lines that speak to the checker itself.
//!
//! A line `{"watermark":TS}` (with `"horizon":TS` if wanted) says that no transaction will arrive any more that
//! commits at or before that timestamp (or, for the horizon, starts before that one). It counts at its place in
//! the stream.

use history::formats::{Warnings, jsonl};
use history::{Builder, History, Timestamp};
use memchr::memmem;
use serde::Deserialize;

/// How a line to the checker itself begins.
const CONTROL: &[u8] = b"{\"watermark\"";

/// What a piece of a stream holds.
#[derive(Debug)]
pub struct Parsed {
    /// Its transactions.
    pub history: History,
    /// Lines that could not be understood, a sentence each.
    pub refused: Vec<String>,
    /// What it says at its end: a watermark and a horizon.
    pub told: Option<(Timestamp, Option<Timestamp>)>,
}

/// Parses whole lines. At most one of them speaks to the checker, and it is the last.
pub fn parse(bytes: &[u8]) -> Parsed {
    let (lines, control) = match control_line(bytes) {
        Some(at) => bytes.split_at(at),
        None => (bytes, &[][..]),
    };
    // Sessions began before these lines: which default names are taken is not known here.
    let mut builder = Builder::stream();
    let mut warnings = Warnings::line_by_line();
    let mut refused = Vec::new();
    if let Err(fault) = jsonl::read(lines, &mut builder, &mut warnings) {
        refused.push(fault.to_string());
    }
    refused.extend(warnings.kept().iter().map(|kept| kept.fault.to_string()));
    let more = warnings.count().saturating_sub(warnings.kept().len() as u64);
    refused.extend((0..more).map(|_| "one more line".to_owned()));
    let told = match serde_json::from_slice::<Control>(control) {
        _ if control.trim_ascii().is_empty() => None,
        Ok(control) => Some((control.watermark.into(), control.horizon.map(Into::into))),
        Err(error) => {
            refused.push(format!("invalid watermark: {error}"));
            None
        }
    };
    match builder.finish() {
        Ok(history) => Parsed { history, refused, told },
        Err(error) => {
            refused.push(error.to_string());
            Parsed { history: History::default(), refused, told }
        }
    }
}

/// Where the first line to the checker begins.
fn control_line(bytes: &[u8]) -> Option<usize> {
    if bytes.starts_with(CONTROL) {
        return Some(0);
    }
    memmem::find_iter(bytes, CONTROL).find(|&at| bytes[at - 1] == b'\n')
}

#[derive(Deserialize)]
struct Control {
    watermark: Stamp,
    #[serde(default)]
    horizon: Option<Stamp>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Stamp {
    Plain(i64),
    Hybrid(i64, u32),
}

impl From<Stamp> for Timestamp {
    fn from(stamp: Stamp) -> Self {
        match stamp {
            Stamp::Plain(physical) => Timestamp { physical, logical: 0 },
            Stamp::Hybrid(physical, logical) => Timestamp { physical, logical },
        }
    }
}

/// A stream cut into pieces of whole lines, none of which goes on after a line to the checker.
#[derive(Debug)]
pub struct Lines {
    held: Vec<u8>,
    line_max: usize,
}

/// A line is longer than lines may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

impl Lines {
    /// Refuses lines longer than this.
    pub fn new(line_max: usize) -> Self {
        Self { held: Vec::new(), line_max }
    }

    /// Takes more bytes and gives the pieces that are complete now.
    pub fn push(&mut self, bytes: &[u8], mut piece: impl FnMut(Vec<u8>)) -> Result<(), TooLong> {
        let Some(end) = memchr::memrchr(b'\n', bytes) else {
            self.held.extend_from_slice(bytes);
            return if self.held.len() > self.line_max { Err(TooLong) } else { Ok(()) };
        };
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(&bytes[..=end]);
        self.held.extend_from_slice(&bytes[end + 1..]);
        cut(whole, &mut piece);
        Ok(())
    }

    /// How many bytes wait for the rest of their line.
    pub(crate) fn held(&self) -> usize {
        self.held.capacity()
    }

    /// What is left when the stream has ended: a last line without a line end.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.held);
        (!rest.trim_ascii().is_empty()).then_some(rest)
    }
}

/// Cuts after every line to the checker.
pub(crate) fn cut(mut whole: Vec<u8>, piece: &mut impl FnMut(Vec<u8>)) {
    while let Some(at) = control_line(&whole) {
        let end = memchr::memchr(b'\n', &whole[at..]).map_or(whole.len(), |len| at + len + 1);
        let rest = whole.split_off(end);
        piece(whole);
        whole = rest;
    }
    if !whole.trim_ascii().is_empty() {
        piece(whole);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_end_where_lines_do() {
        let mut lines = Lines::new(100);
        let mut pieces = Vec::new();
        let mut push = |lines: &mut Lines, text: &str| {
            lines.push(text.as_bytes(), |piece| pieces.push(String::from_utf8(piece).expect("text")))
        };
        push(&mut lines, "a\nb").expect("short");
        push(&mut lines, "c\n{\"watermark\":1}\nd\n{\"wat").expect("short");
        push(&mut lines, "ermark\":2}\n\n").expect("short");
        push(&mut lines, "tail").expect("short");
        assert_eq!(push(&mut lines, &"x".repeat(200)), Err(TooLong));
        assert_eq!(pieces, ["a\n", "bc\n{\"watermark\":1}\n", "d\n", "{\"watermark\":2}\n"]);
    }

    #[test]
    fn what_a_piece_holds() {
        let parsed = parse(
            b"{\"session\":1,\"db\":{\"start\":1,\"commit\":2},\"ops\":[]}\n{\"session\":2}\n{\"watermark\":[7,1],\"horizon\":3}\n",
        );
        assert_eq!(parsed.history.len(), 1);
        assert_eq!(parsed.refused.len(), 1, "{:?}", parsed.refused);
        assert_eq!(parsed.told, Some((Timestamp { physical: 7, logical: 1 }, Some(3.into()))));
        assert!(parse(b"{\"watermark\":\"x\"}").told.is_none());
    }
}
