//! Lines into transactions.

mod cas;

use super::super::json::{self, Cursor, Kind, Number};
use super::super::meaning::{WHOLE_VALUE, lost_column};
use super::super::{Fault, Likeness, Probe, Warnings};
use super::fields::{self, OpKind, Owner};
use super::predicate;
use super::value::{room_for, value};
use crate::builder::canonical_integer;
use crate::values::TextHash;
use crate::{
    Builder, Cell, KeyId, Lock, NameRef, OpId, Predicate, Range, Row, SessionId, Span, Status, Timestamp,
    ValueId,
};
use std::borrow::Cow;

/// Recognises the format: a first line that is an object with `session` and `ops`, or with `history`.
pub fn detect(probe: &Probe<'_>) -> Likeness {
    let text = probe.text().trim_start();
    if !text.starts_with('{') || probe.is_directory() {
        return Likeness::No;
    }
    let names = first_line_fields(text.lines().next().unwrap_or(""));
    let has = |name: &str| names.iter().any(|field| field == name);
    if has("history") || (has("session") && has("ops")) {
        Likeness::Certain
    } else if has("session") || has("ops") {
        Likeness::Possible
    } else {
        Likeness::No
    }
}

/// The field names of an object, as far as it can be read.
pub(in super::super) fn first_line_fields(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = Cursor::new(line);
    let mut walk = || -> Result<(), Fault> {
        cursor.take(b'{', "{")?;
        while cursor.more(names.is_empty(), b'}')? {
            names.push(cursor.field()?.into_owned());
            cursor.skip()?;
        }
        Ok(())
    };
    // A line that is truncated or damaged still shows its first fields.
    let _ = walk();
    names
}

/// Reads lines.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut scratch = Scratch { ignores: warnings.ignores_fields(), ..Scratch::default() };
    let mut start = 0;
    while start < bytes.len() {
        let ended = memchr::memchr(b'\n', &bytes[start..]).map(|len| start + len);
        let end = ended.unwrap_or(bytes.len());
        if let Err(mut fault) = line(&bytes[start..end], builder, &mut scratch) {
            builder.abandon();
            explain_end(&mut fault, &bytes[start..end], ended.is_some());
            fault.offset += start as u64;
            warnings.refuse(fault)?;
        }
        if let Some((count, mut fault)) = scratch.ignored.take() {
            fault.offset += start as u64;
            warnings.ignore(count, fault);
        }
        start = end + 1;
    }
    Ok(())
}

/// Says why a line may end too early: the file is truncated, or the line goes on in the next.
#[cold]
fn explain_end(fault: &mut Fault, line: &[u8], is_ended: bool) {
    let at_end = fault.offset as usize >= line.trim_ascii_end().len();
    let in_string = fault.problem == json::STRING_WITHOUT_END;
    let rest = usize::try_from(fault.offset).ok().and_then(|at| line.get(at..)).unwrap_or(&[]);
    let in_word = [&b"null"[..], b"true", b"false"].iter().any(|word| word.starts_with(rest));
    if !is_ended && (at_end || in_string || in_word) {
        fault.expected.push_str(" (the file ends in the middle of this line: was it cut off?)");
    } else if at_end {
        fault.expected.push_str(" (one transaction per line: it cannot go on in the next)");
    }
}

fn line(bytes: &[u8], builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        Fault::new(at, format!("the byte 0x{:02x} is no UTF-8", bytes[at]), "text in UTF-8")
    })?;
    let mut cursor = Cursor::new(text).until(builder.interrupt());
    if cursor.is_done() {
        return Ok(());
    }
    if builder.begin_header() && is_header(text) {
        header(&mut cursor, builder, scratch)?;
    } else {
        transaction(&mut cursor, builder, scratch)?;
    }
    if !cursor.is_done() {
        return Err(cursor.expected("the end of the line: one transaction per line"));
    }
    Ok(())
}

fn is_header(text: &str) -> bool {
    let names = first_line_fields(text);
    names.iter().any(|name| name == "history") && !names.iter().any(|name| name == "ops")
}

/// Buffers that are used again and again.
#[derive(Default)]
pub(super) struct Scratch {
    rows: Vec<Row>,
    keys: Vec<KeyId>,
    /// Elements of the lists that are open, innermost last.
    pub(super) elements: Vec<ValueId>,
    pub(super) cells: Vec<Cell>,
    /// Values of the open transaction that are texts and not interned yet.
    texts: Vec<LateText>,
    /// Fields of the operation, and of the transaction or header, that are only kept: the inside of a JSON object.
    op_extra: String,
    extra: String,
    /// Whether unknown fields are ignored; how many of the line were, and the first of them.
    ignores: bool,
    ignored: Option<(u64, Fault)>,
}

/// A text of the line that an operation's value will be.
#[derive(Clone, Copy)]
struct LateText {
    op: OpId,
    start: usize,
    end: usize,
    hash: TextHash,
}

/// Which fields of an object have been seen: one bit each, so that a second one is refused.
#[derive(Default)]
struct Seen(u32);

impl Seen {
    #[inline]
    fn add(&mut self, bit: u32, at: usize, name: &str) -> Result<(), Fault> {
        if self.0 & (1 << bit) != 0 {
            return Err(twice(at, name));
        }
        self.0 |= 1 << bit;
        Ok(())
    }

    #[inline]
    fn has(&self, bit: u32) -> bool {
        self.0 & (1 << bit) != 0
    }
}

#[cold]
pub(super) fn twice(at: usize, name: &str) -> Fault {
    Fault::new(at, format!("the field `{name}` is given twice"), "each field once")
}

#[cold]
fn missing(at: usize, what: &str, name: &str, expected: &str) -> Fault {
    Fault::new(at, format!("{what} has no `{name}`"), expected)
}

/// Refuses a field that the format does not define, or notes that it was ignored.
#[cold]
fn unknown_field(
    cursor: &mut Cursor<'_>,
    scratch: &mut Scratch,
    owner: Owner,
    at: usize,
    name: &str,
) -> Result<(), Fault> {
    if let Some(fault) = fields::unsupported(owner, at, name) {
        return Err(fault);
    }
    if !scratch.ignores {
        return Err(fields::unknown(owner, at, name));
    }
    scratch.ignored.get_or_insert_with(|| (0, fields::unknown(owner, at, name))).0 += 1;
    cursor.skip().map(|_| ())
}

/// Keeps the hints of an operation.
fn op_ctx(cursor: &mut Cursor<'_>, scratch: &mut Scratch, at: usize) -> Result<(), Fault> {
    if cursor.peek()? != Kind::Object {
        return Err(cursor.expected("an object of hints"));
    }
    keep_field(&mut scratch.op_extra, cursor, at)
}

/// Adds a field that is only kept to an object under construction.
fn keep_field(extra: &mut String, cursor: &mut Cursor<'_>, at: usize) -> Result<(), Fault> {
    cursor.skip()?;
    let end = cursor.offset();
    if !extra.is_empty() {
        extra.push(',');
    }
    extra.push_str(cursor.raw(at, end));
    Ok(())
}

fn as_object(inside: &mut String) -> &str {
    inside.insert(0, '{');
    inside.push('}');
    inside
}

// ---- the header ----

fn header(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    scratch.extra.clear();
    cursor.take(b'{', "the header, a JSON object")?;
    let mut seen = Seen::default();
    let mut first = true;
    while cursor.more(first, b'}')? {
        first = false;
        let at = cursor.here();
        let name = cursor.field()?;
        match &*name {
            "history" => {
                seen.add(0, at, &name)?;
                let at = cursor.here();
                let version = cursor.int("the version of the format")?;
                if version != 1 {
                    return Err(Fault::new(at, format!("version {version} of the format is not known"), "1"));
                }
            }
            "initial" => {
                seen.add(1, at, &name)?;
                initial(cursor, builder, scratch)?;
            }
            "level" => {
                seen.add(2, at, &name)?;
                let level = cursor.string()?;
                builder.set_level(&level);
            }
            _ => keep_field(&mut scratch.extra, cursor, at)?,
        }
    }
    if !scratch.extra.is_empty() {
        builder.set_header_extra(as_object(&mut scratch.extra));
    }
    Ok(())
}

/// Initial values: an object, or a list of `[key, value]` where the keys are not all strings.
fn initial(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    if cursor.peek()? == Kind::List {
        rows(cursor, builder, scratch)?;
        for row in &scratch.rows {
            builder.initial(row.key, row.value);
        }
        return Ok(());
    }
    cursor.take(b'{', "an object of keys and their initial values")?;
    let mut first = true;
    while cursor.more(first, b'}')? {
        first = false;
        let name = cursor.field()?;
        let value = value(cursor, builder, scratch, 0)?;
        builder.initial_named(&name, value);
    }
    Ok(())
}

// ---- transactions ----

const SESSION: u32 = 0;
const OPS: u32 = 1;
const ID: u32 = 2;
const STATUS: u32 = 3;
const CLIENT: u32 = 4;
const DB: u32 = 5;
const LEVEL: u32 = 6;
const CTX: u32 = 7;
const SEQ: u32 = 8;

fn transaction(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    scratch.extra.clear();
    let start = cursor.here();
    cursor.take(b'{', "a transaction, {\"session\":…,\"ops\":[…]}")?;
    builder.begin(SessionId::default());
    let mut seen = Seen::default();
    let mut status = Status::Committed;
    let (mut client, mut db) = (None, None);
    let mut first = true;
    while cursor.more(first, b'}')? {
        first = false;
        let at = cursor.here();
        let name = cursor.field()?;
        match &*name {
            "session" => {
                seen.add(SESSION, at, &name)?;
                let session = with_name(cursor, "a session", |name| builder.session(name))?;
                builder.set_session(session);
            }
            "ops" => {
                seen.add(OPS, at, &name)?;
                operations(cursor, builder, scratch)?;
            }
            "id" => {
                seen.add(ID, at, &name)?;
                let at = cursor.here();
                let result = with_name(cursor, "a transaction's id", |name| builder.set_id(name))?;
                result.map_err(|error| Fault::new(at, error.to_string(), "another id, or none at all"))?;
            }
            "status" => {
                seen.add(STATUS, at, &name)?;
                status = status_of(cursor)?;
                builder.set_status(status);
            }
            "client" => {
                seen.add(CLIENT, at, &name)?;
                client = Some(clock(cursor)?);
            }
            "db" => {
                seen.add(DB, at, &name)?;
                db = Some(timestamps(cursor)?);
            }
            "level" => {
                seen.add(LEVEL, at, &name)?;
                let level = cursor.string()?;
                builder.set_txn_level(&level);
            }
            "ctx" => {
                seen.add(CTX, at, &name)?;
                if cursor.peek()? != Kind::Object {
                    return Err(cursor.expected("an object of hints"));
                }
                builder.set_ctx(cursor.skip()?);
            }
            "seq" => {
                seen.add(SEQ, at, &name)?;
                sequence_number(cursor)?;
                cursor.seek(at);
                cursor.field()?;
                keep_field(&mut scratch.extra, cursor, at)?;
            }
            "history" if !seen.has(SESSION) && !seen.has(OPS) => {
                return Err(Fault::new(
                    start,
                    "a header comes too late",
                    "the header in the first line, and only there",
                ));
            }
            _ => unknown_field(cursor, scratch, Owner::Transaction, at, &name)?,
        }
    }
    if !seen.has(SESSION) {
        let expected = "\"session\": an integer or a string, the connection that issued it";
        return Err(missing(start, "the transaction", "session", expected));
    }
    if !seen.has(OPS) {
        return Err(missing(start, "the transaction", "ops", "\"ops\": the list of its operations"));
    }
    if let Some(clock) = client {
        let span = clock.span(status, "client.begin", "client.end")?;
        builder.set_client(span).map_err(|error| Fault::new(clock.at, error.to_string(), "begin ≤ end"))?;
    }
    if let Some((at, first, last)) = db {
        let last = match last {
            None if status == Status::Committed => {
                return Err(missing(at, "a committed transaction's `db`", "commit", "its commit timestamp"));
            }
            None => NEVER,
            Some(last) => last,
        };
        builder
            .set_db(first, last)
            .map_err(|error| Fault::new(at, error.to_string(), "timestamps within 64 bits"))?;
    }
    if !scratch.extra.is_empty() {
        builder.set_txn_extra(as_object(&mut scratch.extra));
    }
    builder.end().map_err(|error| Fault::new(start, error.to_string(), "another id"))?;
    Ok(())
}

/// Which transaction of its session it is, where a stream counts them.
fn sequence_number(cursor: &mut Cursor<'_>) -> Result<(), Fault> {
    let at = cursor.here();
    match cursor.int("a number that counts the transactions of the session")? {
        0.. => Ok(()),
        negative => Err(Fault::new(at, format!("{negative} is negative"), "a number that counts from 0")),
    }
}

fn status_of(cursor: &mut Cursor<'_>) -> Result<Status, Fault> {
    let at = cursor.here();
    let text = cursor.string()?;
    let known = [Status::Committed, Status::Aborted, Status::Unknown];
    known.into_iter().find(|status| status.name() == text).ok_or_else(|| {
        Fault::new(at, format!("unknown status {text:?}"), "\"committed\", \"aborted\" or \"unknown\"")
    })
}

/// Takes a name — an integer or a string — and passes it on.
#[inline]
fn with_name<T>(
    cursor: &mut Cursor<'_>,
    what: &str,
    pass: impl FnOnce(NameRef<'_>) -> T,
) -> Result<T, Fault> {
    match cursor.peek()? {
        Kind::String => Ok(pass(NameRef::Str(&cursor.string()?))),
        Kind::Number => Ok(pass(NameRef::Int(cursor.int(what)?))),
        other => Err(Fault::new(
            cursor.here(),
            format!("{what} cannot be {}", other.name()),
            "an integer or a string",
        )),
    }
}

// ---- clocks ----

/// The answer never came: later than every other time.
const NEVER: Timestamp = Timestamp { physical: i64::MAX, logical: u32::MAX };

struct Clock {
    at: usize,
    begin: i64,
    end: Option<i64>,
}

impl Clock {
    /// The span; only what was not committed may lack its end.
    fn span(&self, status: Status, begin: &str, end: &str) -> Result<Span, Fault> {
        let last = match self.end {
            None if status == Status::Committed => {
                return Err(missing(self.at, "a committed transaction", end, "the time of the answer"));
            }
            None => i64::MAX,
            Some(last) => last,
        };
        if self.begin > last {
            let problem = format!("{begin} {} is after {end} {last}", self.begin);
            return Err(Fault::new(self.at, problem, "begin ≤ end, both on the client's clock"));
        }
        Ok(Span { begin: self.begin, end: last })
    }
}

fn clock(cursor: &mut Cursor<'_>) -> Result<Clock, Fault> {
    let at = cursor.here();
    let read = |cursor: &mut Cursor<'_>| cursor.int("a time; no fraction, use a finer unit");
    let (begin, end) = pair(cursor, ["begin", "end"], read)?;
    Ok(Clock { at, begin, end })
}

fn timestamps(cursor: &mut Cursor<'_>) -> Result<(usize, Timestamp, Option<Timestamp>), Fault> {
    let at = cursor.here();
    let (first, last) = pair(cursor, ["start", "commit"], timestamp)?;
    Ok((at, first, last))
}

/// An object of two times, of which the second may be missing.
fn pair<T>(
    cursor: &mut Cursor<'_>,
    names: [&str; 2],
    read: impl Fn(&mut Cursor<'_>) -> Result<T, Fault>,
) -> Result<(T, Option<T>), Fault> {
    let at = cursor.here();
    let expected = format!("{{\"{}\":N,\"{}\":N}}", names[0], names[1]);
    cursor.take(b'{', &expected)?;
    let (mut begin, mut end) = (None, None);
    let mut first = true;
    while cursor.more(first, b'}')? {
        first = false;
        let at = cursor.here();
        let name = cursor.field()?;
        let place = match names.iter().position(|known| *known == name) {
            Some(0) => &mut begin,
            Some(_) => &mut end,
            None => return Err(Fault::new(at, format!("unknown field `{name}`"), expected)),
        };
        if place.is_some() {
            return Err(twice(at, &name));
        }
        *place = Some(read(cursor)?);
    }
    let begin = begin.ok_or_else(|| missing(at, "the object", names[0], &expected))?;
    Ok((begin, end))
}

fn timestamp(cursor: &mut Cursor<'_>) -> Result<Timestamp, Fault> {
    let what = "a timestamp: an integer or [physical, logical]";
    match cursor.peek()? {
        Kind::Number => Ok(cursor.int(what)?.into()),
        Kind::List => {
            cursor.take(b'[', what)?;
            let physical = cursor.int(what)?;
            cursor.take(b',', "a comma and the logical part")?;
            let at = cursor.here();
            let logical = u32::try_from(cursor.int(what)?).map_err(|_| {
                Fault::new(at, "the logical part does not fit 32 bits", "an integer from 0 to 4294967295")
            })?;
            cursor.take(b']', "] after the logical part")?;
            Ok(Timestamp { physical, logical })
        }
        _ => Err(cursor.expected(what)),
    }
}

// ---- operations ----

fn operations(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    cursor.take(b'[', "the list of operations")?;
    scratch.texts.clear();
    let mut first = true;
    while cursor.more(first, b']')? {
        first = false;
        operation(cursor, builder, scratch)?;
        if scratch.texts.len() == TEXTS_MAX {
            settle_texts(cursor, builder, scratch);
        }
    }
    settle_texts(cursor, builder, scratch);
    Ok(())
}

/// How many texts wait at most: enough that their look-ups overlap, few enough that what they bring into the cache is
/// still there.
const TEXTS_MAX: usize = 32;

fn settle_texts(cursor: &Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) {
    if !scratch.texts.is_empty() {
        let text = |late: &LateText| (late.op, cursor.raw(late.start, late.end), late.hash);
        builder.settle_texts(scratch.texts.iter().map(text));
        scratch.texts.clear();
    }
}

#[inline]
fn operation(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    let start = cursor.here();
    cursor.take(b'{', "an operation, {\"op\":…}")?;
    let (kind, op_is_taken) = find_op(cursor, start)?;
    scratch.op_extra.clear();
    let at = match kind {
        OpKind::Read | OpKind::Write | OpKind::Delete | OpKind::Append => {
            on_one_key(cursor, builder, scratch, kind, start, op_is_taken)?
        }
        OpKind::Cas => cas::read(cursor, builder, scratch, start, op_is_taken)?,
        _ => on_many_keys(cursor, builder, scratch, kind, start, op_is_taken)?,
    };
    if let Some(clock) = at {
        let span = clock.span(Status::Unknown, "at.begin", "at.end")?;
        builder.set_op_at(span).map_err(|error| Fault::new(clock.at, error.to_string(), "begin ≤ end"))?;
    }
    if !scratch.op_extra.is_empty() {
        builder.set_op_extra(as_object(&mut scratch.op_extra));
    }
    Ok(())
}

/// What the operation is. If `op` is its first field, that field is taken; else the cursor stays where it is.
#[inline]
fn find_op(cursor: &mut Cursor<'_>, start: usize) -> Result<(OpKind, bool), Fault> {
    let body = cursor.here();
    let mut first = true;
    while cursor.more(first, b'}')? {
        let name = cursor.field()?;
        if name != "op" {
            cursor.skip()?;
            first = false;
            continue;
        }
        let at = cursor.here();
        let name = cursor.string()?;
        let kind = OpKind::from_name(&name).ok_or_else(|| unknown_op(at, &name))?;
        if !first {
            cursor.seek(body);
        }
        return Ok((kind, first));
    }
    Err(missing(start, "the operation", "op", KNOWN_OPS))
}

const KNOWN_OPS: &str =
    "\"op\": one of read, write, delete, append, scan, iterate, query, update, delete-where, cas";

#[cold]
fn unknown_op(at: usize, name: &str) -> Fault {
    Fault::new(at, format!("unknown operation {name:?}"), KNOWN_OPS)
}

const KEY: u32 = 0;
const VALUE: u32 = 1;
const LOCK: u32 = 2;
const AT: u32 = 3;
const OP: u32 = 4;
const OP_CTX: u32 = 14;

#[inline]
fn on_one_key(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    kind: OpKind,
    start: usize,
    op_is_taken: bool,
) -> Result<Option<Clock>, Fault> {
    let mut seen = Seen(u32::from(op_is_taken) << OP);
    let mut found_key = KeyId::default();
    let mut found = ValueId::UNKNOWN;
    let mut late = None;
    let mut lock = Lock::None;
    let mut clocked = None;
    let mut first = !op_is_taken;
    while cursor.more(first, b'}')? {
        first = false;
        let at = cursor.here();
        let name = cursor.field()?;
        match &*name {
            "key" => {
                seen.add(KEY, at, &name)?;
                found_key = key(cursor, builder)?;
            }
            "value" if kind != OpKind::Delete => {
                seen.add(VALUE, at, &name)?;
                if cursor.peek()? == Kind::String {
                    match cursor.string()? {
                        Cow::Borrowed(text) => {
                            let end = cursor.offset() - 1;
                            late = Some((end - text.len(), end, TextHash::of(text)));
                        }
                        Cow::Owned(text) => found = builder.text(&text),
                    }
                } else {
                    found = value(cursor, builder, scratch, 0)?;
                }
            }
            "op" => {
                seen.add(OP, at, &name)?;
                cursor.string()?;
            }
            "lock" if kind == OpKind::Read => {
                seen.add(LOCK, at, &name)?;
                lock = lock_of(cursor)?;
            }
            "at" => {
                seen.add(AT, at, &name)?;
                clocked = Some(clock(cursor)?);
            }
            "ctx" => {
                seen.add(OP_CTX, at, &name)?;
                op_ctx(cursor, scratch, at)?;
            }
            _ => unknown_field(cursor, scratch, Owner::Operation(kind), at, &name)?,
        }
    }
    if !seen.has(KEY) {
        return Err(missing(start, "the operation", "key", "\"key\": an integer or a string"));
    }
    if !seen.has(VALUE) && matches!(kind, OpKind::Write | OpKind::Append) {
        return Err(missing(start, "the operation", "value", "\"value\": what was written"));
    }
    let op = match kind {
        OpKind::Write => builder.write(found_key, found),
        OpKind::Append => builder.append(found_key, found),
        OpKind::Delete => builder.delete(found_key),
        _ => builder.read(found_key, found, lock),
    };
    scratch.texts.extend(late.map(|(start, end, hash)| LateText { op, start, end, hash }));
    Ok(clocked)
}

fn lock_of(cursor: &mut Cursor<'_>) -> Result<Lock, Fault> {
    let at = cursor.here();
    match &*cursor.string()? {
        "update" => Ok(Lock::Update),
        "share" => Ok(Lock::Share),
        other => Err(Fault::new(at, format!("unknown lock {other:?}"), "\"update\" or \"share\"")),
    }
}

#[derive(Default)]
struct Draft {
    from: Option<KeyId>,
    to: Option<KeyId>,
    predicate: Option<Predicate>,
    set: Option<ValueId>,
    set_at: usize,
    has_rows: bool,
    has_keys: bool,
    count: Option<u64>,
    reverse: bool,
    exhausted: bool,
    clock: Option<Clock>,
}

fn on_many_keys(
    cursor: &mut Cursor<'_>,
    builder: &mut Builder,
    scratch: &mut Scratch,
    kind: OpKind,
    start: usize,
    op_is_taken: bool,
) -> Result<Option<Clock>, Fault> {
    let ranged = matches!(kind, OpKind::Scan | OpKind::Iterate);
    let iterates = kind == OpKind::Iterate;
    let writes = matches!(kind, OpKind::Update | OpKind::DeleteWhere);
    let mut seen = Seen(u32::from(op_is_taken) << OP);
    let mut draft = Draft::default();
    let mut first = !op_is_taken;
    while cursor.more(first, b'}')? {
        first = false;
        let at = cursor.here();
        let name = cursor.field()?;
        let mut once = |bit: u32| seen.add(bit, at, &name);
        match &*name {
            "from" if ranged => {
                once(5)?;
                draft.from = bound(cursor, builder)?;
            }
            "to" if ranged => {
                once(6)?;
                draft.to = bound(cursor, builder)?;
            }
            "rows" if !writes => {
                once(7)?;
                rows(cursor, builder, scratch)?;
                draft.has_rows = true;
            }
            "reverse" if iterates => {
                once(8)?;
                draft.reverse = cursor.boolean()?;
            }
            "exhausted" if iterates => {
                once(9)?;
                draft.exhausted = cursor.boolean()?;
            }
            "where" if !ranged => {
                once(10)?;
                draft.predicate = Some(predicate::read(cursor, builder, scratch)?);
            }
            "set" if kind == OpKind::Update => {
                once(11)?;
                draft.set_at = cursor.here();
                draft.set = Some(value(cursor, builder, scratch, 0)?);
            }
            "count" if writes => {
                once(12)?;
                draft.count = Some(count(cursor)?);
            }
            "keys" if writes => {
                once(13)?;
                keys(cursor, builder, scratch)?;
                draft.has_keys = true;
            }
            "at" => {
                once(AT)?;
                draft.clock = Some(clock(cursor)?);
            }
            "op" => {
                once(OP)?;
                cursor.string()?;
            }
            "ctx" => {
                once(OP_CTX)?;
                op_ctx(cursor, scratch, at)?;
            }
            _ => unknown_field(cursor, scratch, Owner::Operation(kind), at, &name)?,
        }
    }
    finish_many(builder, scratch, kind, start, draft)
}

fn finish_many(
    builder: &mut Builder,
    scratch: &Scratch,
    kind: OpKind,
    start: usize,
    draft: Draft,
) -> Result<Option<Clock>, Fault> {
    let range = Range { from: draft.from, to: draft.to };
    let rows = draft.has_rows.then_some(&scratch.rows[..]);
    let keys = draft.has_keys.then_some(&scratch.keys[..]);
    let predicate = match (kind, draft.predicate) {
        (OpKind::Scan | OpKind::Iterate, _) => Predicate::All(Vec::new()),
        (_, Some(predicate)) => predicate,
        (_, None) => {
            return Err(missing(start, "the operation", "where", "\"where\": the predicate, an object"));
        }
    };
    match kind {
        OpKind::Scan => builder.scan(range, rows),
        OpKind::Iterate => builder.iterate(range, draft.reverse, draft.exhausted, rows),
        OpKind::Query => builder.query(predicate, rows),
        OpKind::DeleteWhere => builder.delete_where(predicate, draft.count, keys),
        _ => {
            let set = draft.set.ok_or_else(|| {
                missing(start, "the operation", "set", "\"set\": the value that the rows get")
            })?;
            if let Some(column) = lost_column(builder, &predicate, set) {
                let problem =
                    format!("`set` has no column `{}`, which `where` names", builder.column_name(column));
                return Err(Fault::new(draft.set_at, problem, WHOLE_VALUE));
            }
            builder.update(predicate, set, draft.count, keys)
        }
    };
    Ok(draft.clock)
}

/// A bound of a range; `null` is the same as a missing one.
fn bound(cursor: &mut Cursor<'_>, builder: &mut Builder) -> Result<Option<KeyId>, Fault> {
    if cursor.peek()? == Kind::Null {
        return cursor.null().map(|()| None);
    }
    key(cursor, builder).map(Some)
}

fn count(cursor: &mut Cursor<'_>) -> Result<u64, Fault> {
    let at = cursor.here();
    let bad = |problem: String| Fault::new(at, problem, "a number of rows, an integer from 0");
    if cursor.peek()? != Kind::Number {
        return Err(cursor.expected("a number of rows"));
    }
    match cursor.number()? {
        Number::Int(value) => u64::try_from(value).map_err(|_| bad(format!("{value} is negative"))),
        // The last one stands for a count that is not known.
        Number::UInt(value) if value < u64::MAX => Ok(value),
        Number::UInt(value) => Err(bad(format!("{value} is too large for a number of rows"))),
        Number::Float(value) => Err(bad(format!("{value} is not an integer"))),
    }
}

// ---- keys and values ----

#[inline]
fn key(cursor: &mut Cursor<'_>, builder: &mut Builder) -> Result<KeyId, Fault> {
    with_name(cursor, "a key", |name| builder.key(name))
}

fn keys(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    scratch.keys.clear();
    cursor.take(b'[', "a list of keys")?;
    while cursor.more(scratch.keys.is_empty(), b']')? {
        let key = key(cursor, builder)?;
        scratch.keys.push(key);
    }
    room_for::<KeyId>(scratch.keys.len(), cursor, builder)
}

/// Rows into `scratch.rows`.
fn rows(cursor: &mut Cursor<'_>, builder: &mut Builder, scratch: &mut Scratch) -> Result<(), Fault> {
    scratch.rows.clear();
    cursor.take(b'[', "a list of rows, [[key, value], …]")?;
    while cursor.more(scratch.rows.is_empty(), b']')? {
        cursor.take(b'[', "a row, [key, value]")?;
        let key = key(cursor, builder)?;
        cursor.take(b',', "a comma and the row's value")?;
        let value = value(cursor, builder, scratch, 0)?;
        cursor.take(b']', "] after the row's value")?;
        scratch.rows.push(Row { key, value });
    }
    room_for::<Row>(scratch.rows.len(), cursor, builder)
}

/// Whether a name in `initial` could be an integer key.
pub(super) fn looks_like_integer(name: &str) -> bool {
    canonical_integer(name).is_some()
}
