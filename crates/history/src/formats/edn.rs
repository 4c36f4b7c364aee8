//! EDN, form by form: what Clojure programs such as Jepsen print.
//!
//! An own reader rather than the `clojure-reader` crate: that one reads 22 MB/s on two-core machines and builds
//! a tree of owned strings; this one fills the same [`Tree`] as JSON does, keeps byte offsets for messages and
//! is bounded in depth.
//!
//! Understood: maps, vectors, lists, sets, strings, numbers (also `1N`, `1.5M`, ratios as text), keywords,
//! symbols, characters, `nil`, `true`, `false`; commas are white space, `;` begins a comment, `#_` drops the
//! form after it, `#tag form` is the form (so `#jepsen.history.Op{…}` is a map), `^meta form` is the form.

use super::Fault;
use super::tree::{Form, FrameKind, Node, Tree};

/// A place in EDN text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edn<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Between two calls a character boundary.
    at: usize,
}

impl<'a> Edn<'a> {
    /// The beginning of some text.
    pub(super) fn new(text: &'a str) -> Self {
        Self::at(text, 0)
    }

    /// The same text from another place on.
    pub(super) fn at(text: &'a str, at: usize) -> Self {
        Self { text, bytes: text.as_bytes(), at }
    }

    /// The text between two places, which are at ASCII characters or the end.
    #[inline]
    fn piece(&self, start: usize, end: usize) -> Result<&'a str, Fault> {
        let cut = || Fault::new(start, "a character that is cut in two", "whole characters");
        self.text.get(start..end).ok_or_else(cut)
    }

    /// Takes one byte.
    pub(super) fn skip(&mut self) {
        self.at += 1;
    }

    /// The next byte that is neither white space nor comment, which stays.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b',' | b'\t'..=b'\r' => self.at += 1,
                b';' => {
                    let rest = &self.bytes[self.at..];
                    self.at += rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len());
                }
                _ => return Some(byte),
            }
        }
        None
    }

    /// What stands here is not what was expected.
    pub(super) fn surprise(&mut self, expected: &str) -> Fault {
        let problem = match self.peek() {
            None => "the text ends here".to_owned(),
            Some(byte @ 0x21..=0x7e) => format!("`{}` does not fit here", char::from(byte)),
            Some(byte) => format!("byte 0x{byte:02x} does not fit here"),
        };
        Fault::new(self.at, problem, expected)
    }

    /// Parses the next form, if one follows before the end of the text (or, inside a bracket that the caller
    /// opened, before a closing bracket, which stays).
    pub(super) fn form(&mut self, tree: &mut Tree<'a>) -> Result<Option<Node<'a>>, Fault> {
        loop {
            // 1. Whatever begins here.
            let Some(byte) = self.peek() else {
                return match tree.frame() {
                    None => Ok(None),
                    Some(frame) => Err(Fault::new(
                        self.at,
                        format!("the text ends inside what was opened at byte {}", frame.offset),
                        "the rest of it: the file may have been cut off",
                    )),
                };
            };
            let offset = self.at;
            let form = match byte {
                b'{' => self.open(FrameKind::Map, 1, tree)?,
                b'[' | b'(' => self.open(FrameKind::List, 1, tree)?,
                b'}' | b']' | b')' => {
                    let Some(frame) = tree.frame() else { return Ok(None) };
                    self.close(byte, frame.kind, tree)?;
                    None
                }
                b'#' => self.dispatch(tree)?,
                b'^' => self.open(FrameKind::Discard, 1, tree)?,
                b'"' => Some(self.string(tree)?),
                b'\\' => Some(self.character()?),
                _ => Some(self.atom()?),
            };
            match form {
                Some(form) => tree.push(Node { offset, form }),
                None if !matches!(byte, b'}' | b']' | b')') => continue,
                None => {}
            }
            // 2. Prefixes that waited for this form: a tag becomes it, a discard swallows it.
            while let Some(frame) = tree.frame() {
                match frame.kind {
                    FrameKind::Tag => tree.dissolve(),
                    FrameKind::Discard => {
                        tree.pop();
                        tree.dissolve();
                        break;
                    }
                    _ => break,
                }
            }
            if tree.frame().is_none() {
                match tree.pop() {
                    Some(node) => return Ok(Some(node)),
                    None => continue,
                }
            }
        }
    }

    fn open(&mut self, kind: FrameKind, len: usize, tree: &mut Tree<'a>) -> Result<Option<Form<'a>>, Fault> {
        tree.open(kind, self.at)?;
        self.at += len;
        Ok(None)
    }

    /// A closing bracket: the innermost open one must be its own.
    fn close(&mut self, byte: u8, kind: FrameKind, tree: &mut Tree<'a>) -> Result<(), Fault> {
        let open = tree.frame().map_or(0, |frame| frame.offset);
        let fits = match kind {
            FrameKind::Map => byte == b'}',
            FrameKind::Set => byte == b'}',
            FrameKind::List => byte == if self.bytes[open] == b'(' { b')' } else { b']' },
            FrameKind::Discard | FrameKind::Tag => false,
        };
        if !fits {
            return Err(Fault::new(
                self.at,
                format!("`{}` does not close what was opened at byte {open}", char::from(byte)),
                "brackets that match, and a form after every `#` and `^`",
            ));
        }
        if kind == FrameKind::Map && tree.held() % 2 == 1 {
            return Err(Fault::new(self.at, "a map with a key but no value", "a value before `}`"));
        }
        self.at += 1;
        let node = tree.close()?;
        tree.push(node);
        Ok(())
    }

    /// What begins with `#`.
    fn dispatch(&mut self, tree: &mut Tree<'a>) -> Result<Option<Form<'a>>, Fault> {
        match self.bytes.get(self.at + 1) {
            Some(b'{') => self.open(FrameKind::Set, 2, tree),
            Some(b'_') => self.open(FrameKind::Discard, 2, tree),
            Some(b'#') => {
                // Symbolic numbers: ##Inf, ##-Inf, ##NaN.
                let start = self.at;
                self.at += 2;
                let name = self.token()?;
                let value = match name {
                    "Inf" => f64::INFINITY,
                    "-Inf" => f64::NEG_INFINITY,
                    "NaN" => f64::NAN,
                    _ => {
                        return Err(Fault::new(
                            start,
                            format!("`##{name}` is nothing"),
                            "##Inf, ##-Inf or ##NaN",
                        ));
                    }
                };
                Ok(Some(Form::Float(value)))
            }
            Some(&byte) if byte.is_ascii_alphabetic() || byte == b':' || byte >= 0x80 => {
                tree.open(FrameKind::Tag, self.at)?;
                self.at += 1;
                self.token()?;
                Ok(None)
            }
            _ => Err(Fault::new(self.at, "`#` begins nothing that EDN knows", "`#{`, `#_` or a tag")),
        }
    }

    /// A run of bytes up to white space, a bracket, a quote or a comment.
    fn token(&mut self) -> Result<&'a str, Fault> {
        let start = self.at;
        let ends = |&byte: &u8| {
            matches!(
                byte,
                b'\t'..=b'\r' | b' ' | b',' | b';' | b'"' | b'(' | b')' | b'[' | b']' | b'{' | b'}'
            )
        };
        let rest = &self.bytes[start..];
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
        self.piece(start, self.at)
    }

    fn atom(&mut self) -> Result<Form<'a>, Fault> {
        let start = self.at;
        let byte = self.bytes[start];
        if byte == b':' {
            self.at += 1;
            let word = self.token()?;
            if word.is_empty() {
                return Err(Fault::new(start, "a lone `:`", "a keyword such as `:ok`"));
            }
            return Ok(Form::Word(word));
        }
        // Most atoms of a history are small integers.
        if let Some(value) = self.small_integer() {
            return Ok(Form::Int(value));
        }
        let token = self.token()?;
        let signed = token.strip_prefix(['-', '+']).unwrap_or(token);
        if signed.as_bytes().first().is_some_and(u8::is_ascii_digit) {
            return edn_number(token)
                .ok_or_else(|| Fault::new(start, format!("`{token}` is not a number"), "an EDN number"));
        }
        match token {
            "nil" => Ok(Form::Nil),
            "true" => Ok(Form::Bool(true)),
            "false" => Ok(Form::Bool(false)),
            "" => {
                self.at = start;
                Err(self.surprise("an EDN form"))
            }
            symbol => Ok(Form::Word(symbol)),
        }
    }

    /// Up to eighteen digits with nothing attached.
    #[inline]
    fn small_integer(&mut self) -> Option<i64> {
        let mut value: i64 = 0;
        let mut at = self.at;
        while let Some(digit) =
            self.bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            if at - self.at == 18 {
                return None;
            }
            value = value * 10 + i64::from(digit);
            at += 1;
        }
        let ends = matches!(
            self.bytes.get(at),
            None | Some(b' ' | b',' | b']' | b'}' | b')' | b'\t'..=b'\r' | b'[' | b'{' | b'(' | b'"' | b';')
        );
        let plain = at > self.at && ends && (at - self.at == 1 || self.bytes[self.at] != b'0');
        if plain {
            self.at = at;
        }
        plain.then_some(value)
    }

    fn string(&mut self, tree: &mut Tree<'a>) -> Result<Form<'a>, Fault> {
        let start = self.at;
        let end = scan_string(self.bytes, start + 1);
        if self.bytes.get(end) == Some(&b'"') {
            self.at = end + 1;
            return Ok(Form::Text(self.piece(start + 1, end)?));
        }
        self.at = start + 1;
        tree.unescape(start, |out| {
            loop {
                let end = scan_string(self.bytes, self.at);
                out.push_str(self.piece(self.at, end)?);
                self.at = end + 1;
                match self.bytes.get(end) {
                    Some(b'"') => return Ok(()),
                    Some(_) => out.push(self.escape(end)?),
                    None => return Err(unclosed_string(start)),
                }
            }
        })
    }

    fn escape(&mut self, place: usize) -> Result<char, Fault> {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.at += 1;
        let ch = match byte {
            b'"' | b'\\' | b'\'' => Some(char::from(byte)),
            b'n' => Some('\n'),
            b'r' => Some('\r'),
            b't' => Some('\t'),
            b'b' => Some('\u{8}'),
            b'f' => Some('\u{c}'),
            b'u' => self.bytes.get(self.at..self.at + 4).and_then(|digits| {
                self.at += 4;
                let digits = std::str::from_utf8(digits).ok()?;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)
            }),
            _ => None,
        };
        ch.ok_or_else(|| {
            Fault::new(place, "an escape that EDN does not know", "`\\\"`, `\\\\`, `\\n` or the like")
        })
    }

    /// `\a`, `\newline`: kept as the text after the backslash.
    fn character(&mut self) -> Result<Form<'a>, Fault> {
        let start = self.at + 1;
        // The character itself may be a bracket; a name goes on to the next delimiter.
        let len = self.text.get(start..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        if len == 0 {
            return Err(Fault::new(self.at, "a lone backslash", "a character such as `\\a`"));
        }
        self.at = start + len;
        if self.bytes[start].is_ascii_alphanumeric() {
            self.token()?;
        }
        Ok(Form::Text(self.piece(start, self.at)?))
    }
}

/// The place of the next quote or backslash; line breaks may stand in strings.
fn scan_string(bytes: &[u8], from: usize) -> usize {
    let from = from.min(bytes.len());
    memchr::memchr2(b'"', b'\\', &bytes[from..]).map_or(bytes.len(), |found| from + found)
}

fn unclosed_string(start: usize) -> Fault {
    Fault::new(start, "the string that begins here does not end", "a closing double quote")
}

/// A number with what EDN adds to JSON's: a leading `+`, the suffixes `N` and `M`, ratios, leading zeros.
fn edn_number(token: &str) -> Option<Form<'_>> {
    let token = token.strip_prefix('+').unwrap_or(token);
    if let Some((above, below)) = token.split_once('/') {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = digits(above.strip_prefix('-').unwrap_or(above)) && digits(below);
        return fits.then_some(Form::Big(token));
    }
    let plain = token.strip_suffix('N').or_else(|| token.strip_suffix('M')).unwrap_or(token);
    let plain = plain.strip_suffix('.').unwrap_or(plain);
    let digits = plain.strip_prefix('-').unwrap_or(plain);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(match (plain.parse::<i64>(), plain.parse::<u64>()) {
            (Ok(value), _) => Form::Int(value),
            (_, Ok(value)) => Form::UInt(value),
            _ => Form::Big(plain),
        });
    }
    let value: f64 = plain.parse().ok()?;
    Some(if value.is_finite() { Form::Float(value) } else { Form::Big(plain) })
}
