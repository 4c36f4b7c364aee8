//! A cursor over one piece of JSON text.
//!
//! What: hands out strings, numbers and raw pieces, and refuses what is no JSON with the exact place.
//! Invariant: the cursor only ever moves forward, and `at` is a character boundary between two of its calls.
//! Steps: every call skips white space, looks at one byte, and takes one token; objects and lists are walked by
//! their caller, pieces that nobody asked for are skipped without recursion.
//! Cost: one pass, no tree; a string without escapes is borrowed, one with escapes is decoded once.

use super::Fault;
use crate::Interrupt;
use std::borrow::Cow;

/// How deep lists and objects may nest.
pub(crate) const DEPTH_MAX: usize = 64;

/// What is said of a string that is still open at the end of the text.
pub(crate) const STRING_WITHOUT_END: &str = "the string that begins here does not end in this line";

/// A place in JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    watch: Option<Watch>,
}

/// Asks whether to stop, once per [`STEPS_UNASKED`] entries.
#[derive(Clone, Debug)]
struct Watch {
    interrupt: Interrupt,
    left: u32,
}

/// Texts from this length on are worth stopping within: some milliseconds.
const LONG: usize = 1 << 20;
const STEPS_UNASKED: u32 = 1024;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Int(i64),
    /// Above `i64::MAX`.
    UInt(u64),
    Float(f64),
}

/// The kind of the next value, from its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Null,
    Bool,
    Number,
    String,
    List,
    Object,
}

impl Kind {
    /// With its article.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a truth value",
            Self::Number => "a number",
            Self::String => "a string",
            Self::List => "a list",
            Self::Object => "an object",
        }
    }
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, watch: None }
    }

    /// The same; a long text is left soon after the interrupt is due.
    pub(crate) fn until(mut self, interrupt: &Interrupt) -> Self {
        if self.text.len() >= LONG {
            self.watch = Some(Watch { interrupt: interrupt.clone(), left: STEPS_UNASKED });
        }
        self
    }

    /// Counts an entry.
    #[inline]
    fn go_on(&mut self) -> Result<(), Fault> {
        let Some(watch) = &mut self.watch else { return Ok(()) };
        watch.left -= 1;
        if watch.left > 0 {
            return Ok(());
        }
        watch.left = STEPS_UNASKED;
        if watch.interrupt.is_due(0) { Err(Fault::interrupted(self.at)) } else { Ok(()) }
    }

    /// The byte offset of what comes next, white space skipped.
    #[inline]
    pub(crate) fn here(&mut self) -> usize {
        self.skip_space();
        self.at
    }

    /// The byte offset right after what was taken last.
    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// Goes back (or forward) to an offset that [`Self::here`] gave.
    pub(crate) fn seek(&mut self, at: usize) {
        self.at = at;
    }

    /// The text between two offsets.
    pub(crate) fn raw(&self, from: usize, to: usize) -> &'a str {
        &self.text[from..to]
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// A fault at what comes next.
    #[cold]
    pub(crate) fn expected(&mut self, expected: impl Into<String>) -> Fault {
        self.skip_space();
        let rest = &self.text[self.at..];
        let problem = match rest.chars().next() {
            None => "the text ends here, in the middle of a value".to_owned(),
            Some('"') => "a string is out of place here".to_owned(),
            Some(ch) if ch.is_control() => format!("the control character {:?} is no JSON", ch),
            Some(ch) => format!("{ch:?} is out of place here"),
        };
        Fault::new(self.at, problem, expected)
    }

    /// Whether nothing but white space is left.
    pub(crate) fn is_done(&mut self) -> bool {
        self.skip_space();
        self.at == self.text.len()
    }

    /// The kind of the next value.
    #[inline]
    pub(crate) fn peek(&mut self) -> Result<Kind, Fault> {
        self.skip_space();
        match self.byte() {
            Some(b'"') => Ok(Kind::String),
            Some(b'0'..=b'9' | b'-') => Ok(Kind::Number),
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::List),
            Some(b'n') => Ok(Kind::Null),
            Some(b't' | b'f') => Ok(Kind::Bool),
            _ => Err(self.expected("a JSON value")),
        }
    }

    /// Takes one punctuation byte.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8, expected: &str) -> Result<(), Fault> {
        self.skip_space();
        if self.byte() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.expected(expected))
        }
    }

    /// Inside an object or list, after its opening byte or an entry: whether another entry follows. `first` is
    /// whether none has been taken yet.
    #[inline]
    pub(crate) fn more(&mut self, first: bool, close: u8) -> Result<bool, Fault> {
        self.go_on()?;
        self.skip_space();
        match self.byte() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
                if self.byte() == Some(close) {
                    return Err(self.expected("another entry after the comma"));
                }
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ => Err(self.expected(if close == b'}' { "a comma or }" } else { "a comma or ]" })),
        }
    }

    /// Takes an object's next field name and the colon after it.
    #[inline]
    pub(crate) fn field(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.skip_space();
        if self.byte() != Some(b'"') {
            return Err(self.expected("a field name in double quotes"));
        }
        let name = self.string()?;
        self.take(b':', "a colon after the field name")?;
        Ok(name)
    }

    /// Takes a string.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, Fault> {
        self.take(b'"', "a string in double quotes")?;
        let start = self.at;
        let end = start + plain_len(&self.text.as_bytes()[start..]);
        self.at = end;
        match self.byte() {
            Some(b'"') => {
                self.at += 1;
                Ok(Cow::Borrowed(&self.text[start..end]))
            }
            Some(b'\\') => self.escaped_string(start).map(Cow::Owned),
            _ => Err(self.unfinished_string(start)),
        }
    }

    #[cold]
    fn unfinished_string(&mut self, start: usize) -> Fault {
        match self.byte() {
            None => Fault::new(start - 1, STRING_WITHOUT_END, "a closing double quote"),
            Some(byte) => Fault::new(
                self.at,
                format!("the control character 0x{byte:02x} stands unescaped in a string"),
                format!("\\u{byte:04x} or another escape"),
            ),
        }
    }

    /// The rest of a string whose first backslash is at `self.at`.
    fn escaped_string(&mut self, start: usize) -> Result<String, Fault> {
        let mut decoded = String::from(&self.text[start..self.at]);
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(decoded);
                }
                Some(b'\\') => decoded.push(self.escape()?),
                Some(0..=0x1f) | None => return Err(self.unfinished_string(start)),
                Some(_) => {
                    let from = self.at;
                    self.at += plain_len(&self.text.as_bytes()[from..]);
                    decoded.push_str(&self.text[from..self.at]);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        self.at += 2;
        let simple = match self.text.as_bytes().get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(start),
            _ => {
                self.at = start;
                return Err(Fault::new(
                    start,
                    "unknown escape",
                    "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u1234",
                ));
            }
        };
        Ok(simple)
    }

    fn unicode_escape(&mut self, start: usize) -> Result<char, Fault> {
        let bad = || {
            Fault::new(start, "bad unicode escape", "\\u and four hexadecimal digits, in pairs above \\uffff")
        };
        let first = self.hex4().ok_or_else(bad)?;
        let code = match first {
            0xd800..=0xdbff => {
                if !self.text[self.at..].starts_with("\\u") {
                    return Err(bad());
                }
                self.at += 2;
                let second = self.hex4().filter(|code| (0xdc00..=0xdfff).contains(code)).ok_or_else(bad)?;
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            code => code,
        };
        char::from_u32(code).ok_or_else(bad)
    }

    fn hex4(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }

    /// Takes a number.
    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number, Fault> {
        self.skip_space();
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut at = start;
        let mut value: u64 = 0;
        // Up to 19 digits cannot overflow u64; what follows decides whether it is that simple.
        while let Some(digit) = bytes.get(at).map(|byte| byte.wrapping_sub(b'0')).filter(|&digit| digit < 10)
        {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
        let digits = at - start;
        let plain = !matches!(bytes.get(at), Some(b'.' | b'e' | b'E')) && (1..=18).contains(&digits);
        if plain && (digits == 1 || bytes[start] != b'0') {
            self.at = at;
            return Ok(Number::Int(value as i64));
        }
        self.any_number()
    }

    /// Takes a number the long way: sign, leading zero, fraction, exponent, size.
    #[cold]
    fn any_number(&mut self) -> Result<Number, Fault> {
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        let first = self.at;
        let digits = self.digits();
        if digits == 0 || (digits > 1 && self.text.as_bytes()[first] == b'0') {
            self.at = first;
            return Err(self.expected("a number: digits without a leading zero"));
        }
        let mut is_integer = true;
        if self.byte() == Some(b'.') {
            self.at += 1;
            is_integer = false;
            if self.digits() == 0 {
                return Err(self.expected("a digit after the decimal point"));
            }
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            is_integer = false;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return Err(self.expected("a digit in the exponent"));
            }
        }
        let text = &self.text[start..self.at];
        if is_integer {
            return integer(text).ok_or_else(|| too_large(start, text));
        }
        text.parse::<f64>()
            .ok()
            .filter(|value| value.is_finite())
            .map(Number::Float)
            .ok_or_else(|| too_large(start, text))
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at - start
    }

    /// Takes an integer that fits 64 bits with a sign.
    #[inline]
    pub(crate) fn int(&mut self, what: &str) -> Result<i64, Fault> {
        let start = self.here();
        if self.peek()? != Kind::Number {
            return Err(self.expected(format!("an integer ({what})")));
        }
        match self.number()? {
            Number::Int(value) => Ok(value),
            Number::UInt(value) => Err(Fault::new(
                start,
                format!("{value} is too large for {what}"),
                "an integer up to 9223372036854775807",
            )),
            Number::Float(value) => {
                Err(Fault::new(start, format!("{value} is not an integer"), format!("an integer ({what})")))
            }
        }
    }

    /// Takes `true` or `false`.
    pub(crate) fn boolean(&mut self) -> Result<bool, Fault> {
        self.skip_space();
        if self.literal("true") {
            Ok(true)
        } else if self.literal("false") {
            Ok(false)
        } else {
            Err(self.expected("true or false"))
        }
    }

    /// Takes `null`.
    pub(crate) fn null(&mut self) -> Result<(), Fault> {
        self.skip_space();
        if self.literal("null") { Ok(()) } else { Err(self.expected("null")) }
    }

    fn literal(&mut self, word: &str) -> bool {
        let found = self.text[self.at..].starts_with(word);
        self.at += if found { word.len() } else { 0 };
        found
    }

    /// Skips one value of any kind, checking that it is JSON, and returns its text.
    pub(crate) fn skip(&mut self) -> Result<&'a str, Fault> {
        let start = self.here();
        // The closing bytes of what is open, innermost last.
        let mut open: Vec<u8> = Vec::new();
        loop {
            let mut entered = false;
            match self.peek()? {
                Kind::Null => self.null()?,
                Kind::Bool => drop(self.boolean()?),
                Kind::Number => drop(self.number()?),
                Kind::String => drop(self.string()?),
                kind @ (Kind::List | Kind::Object) => {
                    if open.len() == DEPTH_MAX {
                        return Err(self.too_deep());
                    }
                    self.at += 1;
                    open.push(if kind == Kind::List { b']' } else { b'}' });
                    entered = true;
                }
            }
            // Leave what ends here; stop before the next entry.
            loop {
                let Some(&close) = open.last() else { return Ok(&self.text[start..self.at]) };
                if self.more(entered, close)? {
                    if close == b'}' {
                        self.field()?;
                    }
                    break;
                }
                open.pop();
                entered = false;
            }
        }
    }

    /// A fault for what nests too deep.
    #[cold]
    pub(crate) fn too_deep(&mut self) -> Fault {
        Fault::new(
            self.here(),
            format!("lists and objects nest more than {DEPTH_MAX} deep here"),
            "a flatter value",
        )
    }
}

/// How many bytes come before the first quote, backslash or control character. Eight bytes are looked at in one go:
/// `x - 01…01 & !x & 80…80` has its lowest bit at the lowest zero byte of `x`.
#[inline]
fn plain_len(bytes: &[u8]) -> usize {
    const LOW: u64 = u64::MAX / 255;
    const HIGH: u64 = LOW << 7;
    let zero_bytes = |x: u64| x.wrapping_sub(LOW) & !x & HIGH;
    let mut len = 0;
    while let Some(&eight) = bytes[len..].first_chunk::<8>() {
        let word = u64::from_le_bytes(eight);
        let quote = zero_bytes(word ^ (LOW * u64::from(b'"')));
        let backslash = zero_bytes(word ^ (LOW * u64::from(b'\\')));
        let control = word.wrapping_sub(LOW * 0x20) & !word & HIGH;
        let special = quote | backslash | control;
        if special != 0 {
            return len + special.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let rest = bytes[len..].iter().position(|&byte| byte < 0x20 || byte == b'"' || byte == b'\\');
    rest.map_or(bytes.len(), |place| len + place)
}

fn integer(text: &str) -> Option<Number> {
    if let Ok(value) = text.parse::<i64>() {
        return Some(Number::Int(value));
    }
    text.parse::<u64>().ok().map(Number::UInt)
}

#[cold]
fn too_large(at: usize, text: &str) -> Fault {
    let shown = if text.len() > 40 { format!("{}…", &text[..40]) } else { text.to_owned() };
    Fault::new(
        at,
        format!("the number {shown} does not fit 64 bits"),
        "integers from -9223372036854775808 to 18446744073709551615, or a string",
    )
}

/// Appends a string as JSON, quoted and escaped.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = plain_len(rest);
        out.extend_from_slice(&rest[..plain]);
        let Some(&special) = rest.get(plain) else { break };
        match special {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
        rest = &rest[plain + 1..];
    }
    out.push(b'"');
}
