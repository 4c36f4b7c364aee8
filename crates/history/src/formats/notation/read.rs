//! Lines of the notation into transactions.

use super::super::json::{Cursor, DEPTH_MAX, Kind, Number};
use super::super::meaning::{KEY, WHOLE_VALUE, about_keys, lost_column};
use super::super::{Fault, Likeness, Probe, Warnings};
use crate::builder::canonical_integer;
use crate::{
    Builder, Cell, Comparison, KeyId, Lock, Name, NameRef, Predicate, Range, Row, SessionId, Span, Status,
    Timestamp, ValueId,
};

/// Recognises the format: a first line `init:`, `header: {`, or a name, a colon and an operation.
pub fn detect(probe: &Probe<'_>) -> Likeness {
    let lines = probe.text().lines().map(str::trim);
    let is_plain = |line: &&str| !line.is_empty() && !line.starts_with('#') && !line.starts_with("level:");
    let Some(line) = lines.clone().find(is_plain) else {
        return Likeness::No;
    };
    let mut reader = Line { text: line, at: 0 };
    let Ok(Some(name)) = reader.name() else { return Likeness::No };
    if !reader.take(":") {
        return Likeness::No;
    }
    if name == Name::Str("init".into()) || (name == Name::Str("header".into()) && reader.peek("{")) {
        return Likeness::Certain;
    }
    if reader.take("[") && !(matches!(reader.name(), Ok(Some(_))) && reader.take("]")) {
        return Likeness::No;
    }
    reader.space();
    let is_empty = reader.peek("()");
    let is_operation = reader.word().is_some_and(|word| op_of(word).is_some()) && reader.take("(");
    if is_operation || is_empty { Likeness::Certain } else { Likeness::No }
}

/// Reads lines.
pub fn read(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault> {
    let mut start = 0;
    while start < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[start..]).map_or(bytes.len(), |len| start + len);
        let result = std::str::from_utf8(&bytes[start..end])
            .map_err(|error| {
                let at = error.valid_up_to();
                Fault::new(at, format!("the byte 0x{:02x} is no UTF-8", bytes[start + at]), "text in UTF-8")
            })
            .and_then(|text| Line { text, at: 0 }.read(builder));
        if let Err(mut fault) = result {
            builder.abandon();
            fault.offset += start as u64;
            warnings.refuse(fault)?;
        }
        start = end + 1;
    }
    Ok(())
}

/// Names that begin a line of their own kind; a session that is called so is written in quotes.
pub(super) const RESERVED: [&str; 3] = ["init", "level", "header"];

/// One line and how far it has been read.
struct Line<'a> {
    text: &'a str,
    at: usize,
}

/// What is only kept, as JSON text.
#[derive(Default)]
struct Notes<'a> {
    ctx: Option<&'a str>,
    seq: Option<&'a str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Op {
    Read(Lock),
    Write,
    Append,
    Delete,
    Scan,
    Iterate,
    Query,
    Update,
    DeleteWhere,
    Cas,
}

fn op_of(word: &str) -> Option<Op> {
    Some(match word {
        "r" | "read" => Op::Read(Lock::None),
        "ru" => Op::Read(Lock::Update),
        "rs" => Op::Read(Lock::Share),
        "w" | "write" => Op::Write,
        "a" | "append" => Op::Append,
        "d" | "delete" => Op::Delete,
        "scan" => Op::Scan,
        "iter" | "iterate" => Op::Iterate,
        "q" | "query" => Op::Query,
        "u" | "update" => Op::Update,
        "dw" | "delete-where" => Op::DeleteWhere,
        "cas" => Op::Cas,
        _ => return None,
    })
}

const OPERATIONS: &str = "an operation: r(x,1), w(x,1), a(l,1), d(x), scan(a..m)=[b:1], iter(a..m)=[b:1], \
                          q(value=1)=[x:1], u(value=1 -> 2), dw(value=1), cas(x,1 -> 2)=ok";

impl<'a> Line<'a> {
    fn read(mut self, builder: &mut Builder) -> Result<(), Fault> {
        if self.is_done() {
            return Ok(());
        }
        let start = self.at;
        let is_quoted = self.text[start..].starts_with('"');
        let expected = "a session's name and a colon, as in s1: w(x,1)";
        let Some(name) = self.name()? else { return Err(self.fault(expected)) };
        self.need(":", expected)?;
        match &name {
            Name::Str(word) if word == "init" && !is_quoted => self.init(builder, start),
            Name::Str(word) if word == "level" && !is_quoted => self.level(builder, start),
            Name::Str(word) if word == "header" && !is_quoted => self.header(builder, start),
            _ => {
                let session = builder.session(name.as_ref());
                self.transactions(builder, session)
            }
        }
    }

    fn init(&mut self, builder: &mut Builder, start: usize) -> Result<(), Fault> {
        too_late(builder, start, "init")?;
        while !self.is_done() {
            let key = self.key(builder)?;
            self.need("=", "= and the initial value")?;
            let value = self.value(builder, 0)?;
            if !value.is_known() {
                return Err(self.fault_at(self.at - 1, "an initial value must be known", "a value, or _"));
            }
            builder.initial(key, value);
            self.take(",");
        }
        Ok(())
    }

    fn level(&mut self, builder: &mut Builder, start: usize) -> Result<(), Fault> {
        too_late(builder, start, "level")?;
        let name = self.name()?.ok_or_else(|| self.fault("the name of a level"))?;
        builder.set_level(&name.to_string());
        if self.is_done() { Ok(()) } else { Err(self.fault("the end of the line")) }
    }

    fn header(&mut self, builder: &mut Builder, start: usize) -> Result<(), Fault> {
        too_late(builder, start, "header")?;
        let mut cursor = self.json_here("a JSON object of the header's other fields")?;
        let at = cursor.here();
        let fields = cursor.skip()?;
        let mut walk = Cursor::new(fields);
        let mut names: Vec<String> = Vec::new();
        walk.take(b'{', "a JSON object")?;
        while walk.more(names.is_empty(), b'}')? {
            let place = at + walk.here();
            let name = walk.field()?.into_owned();
            if matches!(name.as_str(), "history" | "initial" | "level") {
                let problem = format!("`{name}` is not written here");
                return Err(self.fault_at(place, problem, "init: for initial values, level: for the level"));
            }
            walk.skip()?;
            names.push(name);
        }
        self.at = cursor.offset();
        if !names.is_empty() {
            builder.set_header_extra(fields);
        }
        if self.is_done() { Ok(()) } else { Err(self.fault("the end of the line")) }
    }

    // ---- notes: JSON objects that are only kept ----

    /// A cursor at the object that comes next.
    fn json_here(&mut self, expected: &str) -> Result<Cursor<'a>, Fault> {
        if !self.peek("{") {
            return Err(self.fault(expected));
        }
        let mut cursor = Cursor::new(self.text);
        cursor.seek(self.at);
        Ok(cursor)
    }

    /// The fields of `{"ctx":{…}}` or `{"ctx":{…},"seq":0}`, as they are written.
    fn notes(&mut self, known: &[&str], expected: &str) -> Result<Notes<'a>, Fault> {
        let mut cursor = self.json_here(expected)?;
        let mut notes = Notes::default();
        cursor.take(b'{', expected)?;
        let mut first = true;
        while cursor.more(first, b'}')? {
            first = false;
            let at = cursor.here();
            let name = cursor.field()?;
            let place = match &*name {
                name if !known.contains(&name) => {
                    return Err(self.fault_at(at, format!("no field `{name}` can stand here"), expected));
                }
                "ctx" if cursor.peek()? != Kind::Object => {
                    return Err(cursor.expected("an object of hints"));
                }
                "ctx" => &mut notes.ctx,
                _ => &mut notes.seq,
            };
            let here = cursor.here();
            let value = cursor.skip()?;
            if name == "seq" && !value.parse::<i64>().is_ok_and(|number| number >= 0) {
                return Err(self.fault_at(
                    here,
                    format!("{value} is no place in a session"),
                    "a number from 0",
                ));
            }
            if place.replace(value).is_some() {
                return Err(self.fault_at(
                    at,
                    format!("the field `{name}` is given twice"),
                    "each field once",
                ));
            }
        }
        self.at = cursor.offset();
        Ok(notes)
    }

    // ---- transactions ----

    fn transactions(&mut self, builder: &mut Builder, session: SessionId) -> Result<(), Fault> {
        loop {
            self.transaction(builder, session)?;
            if self.is_done() {
                return Ok(());
            }
            self.need("|", "another operation, a mark (! ? @ @@ ~ %%), or | and the next transaction")?;
        }
    }

    fn transaction(&mut self, builder: &mut Builder, session: SessionId) -> Result<(), Fault> {
        builder.begin(session);
        self.space();
        let start = self.at;
        if self.take("[") {
            let name = self.name()?.ok_or_else(|| self.fault("the transaction's name"))?;
            self.need("]", "] after the transaction's name")?;
            let result = builder.set_id(name.as_ref());
            result.map_err(|error| self.fault_at(start, error.to_string(), "another name, or none"))?;
        }
        if !self.take("()") {
            self.operation(builder)?;
            while self.starts_operation() {
                self.operation(builder)?;
            }
        }
        self.marks(builder)?;
        let result = builder.end();
        result.map_err(|error| self.fault_at(start, error.to_string(), "another name"))?;
        Ok(())
    }

    fn starts_operation(&mut self) -> bool {
        self.space();
        self.text[self.at..].chars().next().is_some_and(char::is_alphabetic)
    }

    fn marks(&mut self, builder: &mut Builder) -> Result<(), Fault> {
        let (mut status, mut client, mut db, mut level, mut notes) = (None, None, None, None, None);
        loop {
            self.space();
            let at = self.at;
            let is_second = if self.take("!") {
                status.replace(Status::Aborted).is_some()
            } else if self.take("?") {
                status.replace(Status::Unknown).is_some()
            } else if self.take("@@") {
                db.replace((at, self.span(Self::timestamp)?)).is_some()
            } else if self.take("@") {
                client.replace((at, self.span(Self::integer)?)).is_some()
            } else if self.take("~") {
                let name = self.name()?.ok_or_else(|| self.fault("the name of a level"))?;
                level.replace(name.to_string()).is_some()
            } else if self.take("%%") {
                notes
                    .replace(self.notes(&["ctx", "seq"], "%%{\"ctx\":{…},\"seq\":0}, either field")?)
                    .is_some()
            } else {
                break;
            };
            if is_second {
                return Err(self.fault_at(at, "the transaction has this mark already", "each mark once"));
            }
        }
        let status = status.unwrap_or(Status::Committed);
        builder.set_status(status);
        if let Some((at, (begin, end))) = client {
            let end = self.end_of(at, status, end, i64::MAX)?;
            let result = builder.set_client(Span { begin, end });
            result.map_err(|error| self.fault_at(at, error.to_string(), "begin ≤ end"))?;
        }
        if let Some((at, (start, commit))) = db {
            let never = Timestamp { physical: i64::MAX, logical: u32::MAX };
            let commit = self.end_of(at, status, commit, never)?;
            let result = builder.set_db(start, commit);
            result.map_err(|error| self.fault_at(at, error.to_string(), "timestamps within 64 bits"))?;
        }
        if let Some(level) = level {
            builder.set_txn_level(&level);
        }
        let notes: Notes<'_> = notes.unwrap_or_default();
        if let Some(ctx) = notes.ctx {
            builder.set_ctx(ctx);
        }
        if let Some(seq) = notes.seq {
            builder.set_txn_extra(&format!("{{\"seq\":{seq}}}"));
        }
        Ok(())
    }

    fn end_of<T>(&self, at: usize, status: Status, end: Option<T>, never: T) -> Result<T, Fault> {
        match end {
            None if status == Status::Committed => Err(self.fault_at(
                at,
                "a committed transaction has an end",
                "a time after .., or ! or ? before the times",
            )),
            None => Ok(never),
            Some(end) => Ok(end),
        }
    }

    fn span<T>(&mut self, read: impl Fn(&mut Self) -> Result<T, Fault>) -> Result<(T, Option<T>), Fault> {
        let begin = read(self)?;
        if !self.take("..") {
            return Err(self.fault(".. and the end"));
        }
        let has_end = matches!(self.text.as_bytes().get(self.at), Some(b'0'..=b'9' | b'-'));
        Ok((begin, if has_end { Some(read(self)?) } else { None }))
    }

    fn integer(&mut self) -> Result<i64, Fault> {
        self.space();
        let rest = &self.text[self.at..];
        let sign = usize::from(rest.starts_with('-'));
        let digits = rest[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let value = rest[..sign + digits].parse::<i64>().map_err(|_| self.fault("an integer of 64 bits"))?;
        self.at += sign + digits;
        Ok(value)
    }

    fn timestamp(&mut self) -> Result<Timestamp, Fault> {
        let physical = self.integer()?;
        let rest = &self.text.as_bytes()[self.at..];
        if !matches!(rest, [b'.', b'0'..=b'9', ..]) {
            return Ok(physical.into());
        }
        self.at += 1;
        let at = self.at;
        let logical = u32::try_from(self.integer()?)
            .map_err(|_| self.fault_at(at, "the logical part does not fit 32 bits", "up to 4294967295"))?;
        Ok(Timestamp { physical, logical })
    }

    // ---- operations ----

    fn operation(&mut self, builder: &mut Builder) -> Result<(), Fault> {
        self.space();
        let start = self.at;
        let Some(op) = self.word().and_then(op_of) else {
            self.at = start;
            return Err(self.fault(OPERATIONS));
        };
        self.need("(", "( after the name of the operation")?;
        match op {
            Op::Read(lock) => {
                let key = self.key(builder)?;
                let value = if self.take(",") { self.value(builder, 0)? } else { ValueId::UNKNOWN };
                self.close()?;
                builder.read(key, value, lock);
            }
            Op::Write | Op::Append => {
                let key = self.key(builder)?;
                self.need(",", "a comma and the value")?;
                self.space();
                let at = self.at;
                let value = self.value(builder, 0)?;
                self.close()?;
                if !value.is_known() {
                    return Err(self.fault_at(at, "what was written is always known", "a value"));
                }
                if op == Op::Write {
                    builder.write(key, value)
                } else {
                    builder.append(key, value)
                };
            }
            Op::Delete => {
                let key = self.key(builder)?;
                self.close()?;
                builder.delete(key);
            }
            Op::Cas => self.cas(builder)?,
            Op::Scan | Op::Iterate => self.ranged(builder, op)?,
            Op::Query | Op::Update | Op::DeleteWhere => self.filtered(builder, op)?,
        }
        if self.take("^") {
            let at = self.at - 1;
            let (begin, end) = self.span(Self::integer)?;
            let span = Span { begin, end: end.unwrap_or(i64::MAX) };
            let result = builder.set_op_at(span);
            result.map_err(|error| self.fault_at(at, error.to_string(), "begin ≤ end"))?;
        }
        if !self.peek("%%") && self.take("%") {
            let notes = self.notes(&["ctx"], "%{\"ctx\":{…}} after the operation")?;
            if let Some(ctx) = notes.ctx {
                builder.set_op_extra(&format!("{{\"ctx\":{ctx}}}"));
            }
        }
        Ok(())
    }

    fn cas(&mut self, builder: &mut Builder) -> Result<(), Fault> {
        let key = self.key(builder)?;
        self.need(",", "a comma and the value that is expected")?;
        let expect = self.known_value(builder)?;
        self.need("->", "-> and the value that is written")?;
        let write = self.known_value(builder)?;
        self.close()?;
        let ok = if self.take("=") {
            let expected = "ok if it wrote, no if the key held something else";
            self.space();
            let at = self.at;
            match self.word() {
                Some("ok") => Some(true),
                Some("no") => Some(false),
                _ => return Err(self.fault_at(at, "the result of a cas", expected)),
            }
        } else {
            None
        };
        builder.cas(key, expect, write, ok);
        Ok(())
    }

    fn known_value(&mut self, builder: &mut Builder) -> Result<ValueId, Fault> {
        self.space();
        let at = self.at;
        let value = self.value(builder, 0)?;
        if value.is_known() {
            Ok(value)
        } else {
            Err(self.fault_at(at, "what a cas compares and writes is known", "a value"))
        }
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.need(")", ") at the end of the operation")
    }

    fn ranged(&mut self, builder: &mut Builder, op: Op) -> Result<(), Fault> {
        let from = if self.take("..") {
            None
        } else {
            let from = self.key(builder)?;
            self.need("..", ".. between the bounds, as in a..m")?;
            Some(from)
        };
        let reverse_at_once = self.take_desc(op);
        let is_open = reverse_at_once || self.peek(")");
        let to = if is_open { None } else { Some(self.key(builder)?) };
        let reverse = reverse_at_once || self.take_desc(op);
        self.close()?;
        let range = Range { from, to };
        let (rows, exhausted) = self.rows(builder, op)?;
        match op {
            Op::Scan => builder.scan(range, rows.as_deref()),
            _ => builder.iterate(range, reverse, exhausted, rows.as_deref()),
        };
        Ok(())
    }

    /// Takes `desc`, for iterators; a key of that name stands in quotes.
    fn take_desc(&mut self, op: Op) -> bool {
        op == Op::Iterate && self.take_word("desc")
    }

    fn filtered(&mut self, builder: &mut Builder, op: Op) -> Result<(), Fault> {
        let predicate = self.predicate(builder, 0)?;
        if op == Op::Query {
            self.close()?;
            let (rows, _) = self.rows(builder, op)?;
            builder.query(predicate, rows.as_deref());
            return Ok(());
        }
        if op == Op::DeleteWhere {
            self.close()?;
            let (count, keys) = self.reported(builder)?;
            builder.delete_where(predicate, count, keys.as_deref());
            return Ok(());
        }
        self.need("->", "-> and the new value")?;
        self.space();
        let at = self.at;
        let set = self.value(builder, 0)?;
        if !set.is_known() {
            return Err(self.fault_at(at, "what was written is always known", "a value"));
        }
        self.close()?;
        if let Some(column) = lost_column(builder, &predicate, set) {
            let problem = format!(
                "the new row has no column `{}`, which the predicate names",
                builder.column_name(column)
            );
            return Err(self.fault_at(at, problem, WHOLE_VALUE));
        }
        let (count, keys) = self.reported(builder)?;
        builder.update(predicate, set, count, keys.as_deref());
        Ok(())
    }

    /// The rows that came back, and whether the iterator was exhausted.
    fn rows(&mut self, builder: &mut Builder, op: Op) -> Result<(Option<Vec<Row>>, bool), Fault> {
        if !self.take("=") || self.take("?") {
            return Ok((None, false));
        }
        self.need("[", "the rows, as in [b:3 c:4]")?;
        let mut rows = Vec::new();
        let mut known = true;
        loop {
            if self.take("]") {
                return Ok((known.then_some(rows), false));
            }
            if op == Op::Iterate && rows.is_empty() && self.take("?") {
                known = false;
            }
            if op == Op::Iterate && self.ends_rows() {
                return Ok((known.then_some(rows), true));
            }
            if !known {
                return Err(self.fault("end] after the unknown rows"));
            }
            let key = self.key(builder)?;
            self.need(":", "a colon and the row's value")?;
            self.space();
            let at = self.at;
            let value = self.value(builder, 0)?;
            if !value.is_known() {
                return Err(self.fault_at(at, "a row that came back has a value", "a value, or _"));
            }
            rows.push(Row { key, value });
            self.take(",");
        }
    }

    /// Takes `end ]`; a key called `end` has a colon after it.
    fn ends_rows(&mut self) -> bool {
        let before = self.at;
        let ends = self.take_word("end") && self.take("]");
        if !ends {
            self.at = before;
        }
        ends
    }

    fn reported(&mut self, builder: &mut Builder) -> Result<(Option<u64>, Option<Vec<KeyId>>), Fault> {
        if !self.take("=") || self.take("?") {
            return Ok((None, None));
        }
        self.space();
        let at = self.at;
        let count = if self.peek("[") {
            None
        } else {
            let digits = self.text[at..].bytes().take_while(u8::is_ascii_digit).count();
            let count = self.text[at..at + digits].parse::<u64>().ok().filter(|&count| count < u64::MAX);
            self.at += digits;
            Some(count.ok_or_else(|| self.fault_at(at, "this is no number of rows", "an integer from 0"))?)
        };
        if !self.take("[") {
            return Ok((count, None));
        }
        let mut keys = Vec::new();
        while !self.take("]") {
            keys.push(self.key(builder)?);
            self.take(",");
        }
        Ok((count, Some(keys)))
    }

    // ---- predicates ----

    fn predicate(&mut self, builder: &mut Builder, depth: usize) -> Result<Predicate, Fault> {
        let mut parts = vec![self.conjunction(builder, depth)?];
        while self.take_word("or") {
            parts.push(self.conjunction(builder, depth)?);
        }
        Ok(single_or(parts, Predicate::Any))
    }

    fn conjunction(&mut self, builder: &mut Builder, depth: usize) -> Result<Predicate, Fault> {
        let mut parts = vec![self.condition(builder, depth)?];
        while self.take("&") {
            parts.push(self.condition(builder, depth)?);
        }
        Ok(single_or(parts, Predicate::All))
    }

    fn condition(&mut self, builder: &mut Builder, depth: usize) -> Result<Predicate, Fault> {
        if depth == DEPTH_MAX {
            return Err(self.too_deep());
        }
        if self.take("*") {
            return Ok(Predicate::All(Vec::new()));
        }
        if self.take_word("none") {
            return Ok(Predicate::Any(Vec::new()));
        }
        if self.take_word("not") {
            return Ok(Predicate::Not(Box::new(self.condition(builder, depth + 1)?)));
        }
        if self.take("(") {
            let inside = self.predicate(builder, depth + 1)?;
            self.need(")", ") at the end of the group")?;
            return Ok(inside);
        }
        self.space();
        let start = self.at;
        let name = self.name()?.ok_or_else(|| self.fault("a condition, as in value>=2"))?;
        if name.as_ref() == NameRef::Str(KEY) {
            return Err(about_keys(start));
        }
        let column = builder.column(&name.to_string());
        let with = Comparison::ALL.iter().find(|(symbol, _)| self.take(symbol)).map(|(_, with)| *with);
        let with = with.ok_or_else(|| self.fault("a comparison: = != < <= > >="))?;
        self.space();
        let at = self.at;
        let constant = self.value(builder, 0)?;
        if !constant.is_known() {
            return Err(self.fault_at(at, "a constant is always known", "a value"));
        }
        Ok(Predicate::Compare { column, with, constant })
    }

    // ---- keys and values ----

    fn key(&mut self, builder: &mut Builder) -> Result<KeyId, Fault> {
        self.space();
        let start = self.at;
        let name =
            self.name()?.ok_or_else(|| self.fault("a key: a word, an integer or a string in quotes"))?;
        if &self.text[start..self.at] == "_" {
            return Err(self.fault_at(
                start,
                "_ means absent and is no key",
                "a key; \"_\" if it is called so",
            ));
        }
        Ok(builder.key(name.as_ref()))
    }

    fn value(&mut self, builder: &mut Builder, depth: usize) -> Result<ValueId, Fault> {
        if depth > DEPTH_MAX {
            return Err(self.too_deep());
        }
        if self.take("?") {
            return Ok(ValueId::UNKNOWN);
        }
        if self.take("[") {
            return self.list(builder, depth);
        }
        if self.take("{") {
            return self.row(builder);
        }
        self.scalar(builder)
    }

    fn list(&mut self, builder: &mut Builder, depth: usize) -> Result<ValueId, Fault> {
        let mut elements = Vec::new();
        while !self.take("]") {
            self.space();
            let at = self.at;
            let element = self.value(builder, depth + 1)?;
            if !element.is_known() {
                return Err(self.fault_at(at, "an element of a list must be known", "a value"));
            }
            elements.push(element);
            self.take(",");
        }
        Ok(builder.list(&elements))
    }

    fn row(&mut self, builder: &mut Builder) -> Result<ValueId, Fault> {
        let start = self.at - 1;
        let mut cells = Vec::new();
        while !self.take("}") {
            let name = self.name()?.ok_or_else(|| self.fault("a column's name, or }"))?;
            self.need(":", "a colon and the column's value")?;
            let column = builder.column(&name.to_string());
            let value = self.scalar(builder)?;
            cells.push(Cell { column, value });
            self.take(",");
        }
        let given = cells.len();
        let row = builder.row(&mut cells);
        if cells.len() != given {
            return Err(self.fault_at(start, "the row has a column twice", "each column once"));
        }
        Ok(row)
    }

    fn scalar(&mut self, builder: &mut Builder) -> Result<ValueId, Fault> {
        const EXPECTED: &str =
            "a value: _, true, false, a number, a word, a string in quotes, [list] or {row}";
        self.space();
        let start = self.at;
        if self.text[start..].starts_with('"') {
            return Ok(builder.text(&self.quoted()?));
        }
        match self.word().ok_or_else(|| self.fault(EXPECTED))? {
            "_" | "null" => Ok(ValueId::ABSENT),
            "true" => Ok(builder.boolean(true)),
            "false" => Ok(builder.boolean(false)),
            word => match number_of(word, start)? {
                Some(Number::Int(value)) => Ok(builder.int(value)),
                Some(Number::UInt(value)) => Ok(builder.uint(value)),
                Some(Number::Float(value)) => Ok(builder.float(value)),
                None => Ok(builder.text(word)),
            },
        }
    }

    /// A name: an integer, another word, or a string in quotes; `None` if none of them comes next.
    fn name(&mut self) -> Result<Option<Name>, Fault> {
        self.space();
        if self.text[self.at..].starts_with('"') {
            return Ok(Some(Name::Str(self.quoted()?)));
        }
        let Some(word) = self.word() else { return Ok(None) };
        Ok(Some(match canonical_integer(word) {
            Some(value) => Name::Int(value),
            None => Name::Str(word.to_owned()),
        }))
    }

    fn quoted(&mut self) -> Result<String, Fault> {
        let mut cursor = Cursor::new(self.text);
        cursor.seek(self.at);
        let text = cursor.string()?.into_owned();
        self.at = cursor.offset();
        Ok(text)
    }

    // ---- characters ----

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Whether only space and a comment are left.
    fn is_done(&mut self) -> bool {
        self.space();
        let rest = &self.text[self.at..];
        rest.is_empty() || rest.starts_with('#')
    }

    fn peek(&mut self, token: &str) -> bool {
        self.space();
        self.text[self.at..].starts_with(token)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek(token);
        self.at += if found { token.len() } else { 0 };
        found
    }

    fn need(&mut self, token: &str, expected: &str) -> Result<(), Fault> {
        if self.take(token) { Ok(()) } else { Err(self.fault(expected)) }
    }

    fn word(&mut self) -> Option<&'a str> {
        let rest = &self.text[self.at..];
        let len = word_len(rest);
        self.at += len;
        (len > 0).then_some(&rest[..len])
    }

    /// Takes a word that stands alone.
    fn take_word(&mut self, word: &str) -> bool {
        self.space();
        let found = &self.text[self.at..][..word_len(&self.text[self.at..])] == word;
        self.at += if found { word.len() } else { 0 };
        found
    }

    fn fault_at(&self, at: usize, problem: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault::new(at, problem, expected)
    }

    #[cold]
    fn fault(&mut self, expected: impl Into<String>) -> Fault {
        let done = self.is_done();
        let problem = match self.text[self.at..].chars().next() {
            Some(ch) if !done => format!("{ch:?} is out of place here"),
            _ => "the line ends here".to_owned(),
        };
        Fault::new(self.at, problem, expected)
    }

    #[cold]
    fn too_deep(&mut self) -> Fault {
        let problem = format!("brackets nest more than {DEPTH_MAX} deep here");
        Fault::new(self.at, problem, "something flatter")
    }
}

fn too_late(builder: &Builder, at: usize, what: &str) -> Result<(), Fault> {
    if builder.has_transactions() {
        return Err(Fault::new(
            at,
            format!("{what} comes after a transaction"),
            format!("{what}: before the first session; a session of that name is written \"{what}\":"),
        ));
    }
    Ok(())
}

/// A list of one is that one.
fn single_or(mut parts: Vec<Predicate>, many: impl Fn(Vec<Predicate>) -> Predicate) -> Predicate {
    match (parts.len(), parts.pop()) {
        (1, Some(only)) => only,
        (_, last) => {
            parts.extend(last);
            many(parts)
        }
    }
}

/// How long the word is that a text begins with.
pub(super) fn word_len(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((place, ch)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        let belongs = match ch {
            '.' => place > 0 && next.is_some_and(is_plain),
            '-' => next != Some('>'),
            ch => is_plain(ch),
        };
        if !belongs {
            return place;
        }
    }
    text.len()
}

fn is_plain(ch: char) -> bool {
    ch.is_alphanumeric() || matches!(ch, '_' | '-' | '/' | '$')
}

/// The number that a word is, if it is one.
pub(super) fn number_of(word: &str, at: usize) -> Result<Option<Number>, Fault> {
    let first = word.strip_prefix('-').unwrap_or(word).as_bytes().first();
    if !first.is_some_and(u8::is_ascii_digit) {
        return Ok(None);
    }
    let mut cursor = Cursor::new(word);
    match cursor.number() {
        Ok(number) if cursor.offset() == word.len() => Ok(Some(number)),
        Err(mut fault) if cursor.offset() == word.len() => {
            fault.offset = at as u64;
            Err(fault)
        }
        _ => Ok(None),
    }
}

/// Whether a name stands for itself as a word: it reads back as the same name.
pub(super) fn is_word(name: NameRef<'_>) -> bool {
    match name {
        NameRef::Int(_) => true,
        NameRef::Str(text) => {
            let ends_well =
                text.ends_with(|ch: char| ch.is_alphanumeric() || ch == '_' || ch == '/' || ch == '$');
            text != "_" && ends_well && word_len(text) == text.len() && canonical_integer(text).is_none()
        }
    }
}
