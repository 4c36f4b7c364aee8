//! Columns into a history, checked against each other.
//!
//! Every check that the builder makes or implies is made here on whole columns: ids lie within their tables, pieces
//! within their arenas, order where order is promised, no name and no value twice.

use super::super::Fault;
use super::super::json::{Cursor, Kind};
use super::super::jsonl;
use super::predicates;
use super::section;
use super::sections::{Columns, Place, damaged};
use crate::builder::{Indexed, Interned};
use crate::clocks::OpClocks;
use crate::model::{Compound, Header, NO_ID, NO_SPAN, PackedOp, TxnExtra, flag, kind};
use crate::names::{NameEntry, NameIndex};
use crate::values::{ValueEntry, ValueIndex, tag};
use crate::{Cell, ColumnId, History, Id, KeyId, Names, OpId, Row, Span, Status, TxnId, ValueId, Values};

/// Lists in lists: as deep as readers admit, shallow enough for the stack.
const LIST_DEPTH_MAX: u8 = 128;

/// What ids are checked against: how many there are.
pub(super) struct Tables {
    pub(super) keys: usize,
    pub(super) columns: usize,
    pub(super) values: usize,
}

impl Tables {
    fn is_key(&self, key: u32) -> bool {
        (key as usize) < self.keys
    }

    fn is_key_or_open(&self, key: u32) -> bool {
        key == NO_ID || self.is_key(key)
    }

    pub(super) fn is_column(&self, column: ColumnId) -> bool {
        column.index() < self.columns
    }

    /// Whether it is a value; not the mark of an unknown result.
    #[inline]
    pub(super) fn is_known_value(&self, value: ValueId) -> bool {
        value.as_inline().is_some() || (value.0 as usize) < self.values
    }
}

/// One part as a history whose names and values are indexed.
pub(super) fn part(sections: &impl Columns) -> Result<Indexed, Fault> {
    let keys = names::<KeyId>(sections, section::KEYS, "key")?;
    let columns = names::<ColumnId>(sections, section::COLUMNS, "column")?;
    let sessions = names(sections, section::SESSIONS, "session")?;
    let ids = names(sections, section::IDS, "transaction id")?;
    let values = values(sections, columns)?;
    let tables =
        Tables { keys: keys.names.len(), columns: values.columns.names.len(), values: values.values.len() };
    let mut history = History::default();
    operations(sections, &tables, &mut history)?;
    let mut first_op: Vec<u32> = sections.column(section::FIRST_OP)?;
    if first_op.is_empty() {
        first_op.push(0);
    }
    transactions(sections, first_op, (sessions.names.len(), ids.names.len()), &mut history)?;
    extras(sections, &mut history)?;
    history.initial = initial(sections, &tables)?;
    history.header = header(sections)?;
    Ok(Indexed { history, interned: Interned { keys, sessions, ids, values } })
}

fn names<I: Id>(sections: &impl Columns, number: u32, what: &str) -> Result<NameIndex<I>, Fault> {
    NameIndex::of(table(sections, number, what)?).map_err(|index| listed_twice(sections, number, index, what))
}

/// Whether a table of names is as it should be.
pub(super) fn check_names<I: Id>(sections: &impl Columns, number: u32, what: &str) -> Result<(), Fault> {
    match table::<I>(sections, number, what)?.first_double() {
        None => Ok(()),
        Some(index) => Err(listed_twice(sections, number, index, what)),
    }
}

fn listed_twice(sections: &impl Columns, number: u32, index: usize, what: &str) -> Fault {
    sections.place(number).fault(index, format!("the {what} is listed twice"))
}

/// A table of names that may be there twice.
fn table<I: Id>(sections: &impl Columns, number: u32, what: &str) -> Result<Names<I>, Fault> {
    let place = sections.place(number);
    let entries: Vec<NameEntry> = sections.column(number)?;
    let text = sections.text(number + 1)?;
    for (index, entry) in entries.iter().enumerate() {
        let good = match entry.is_text {
            0 => entry.len == 0,
            1 => is_piece_of_text(&text, entry.data, entry.len),
            _ => false,
        };
        if !good {
            return Err(place.fault(index, format!("the {what} lies outside its text")));
        }
    }
    if let Some(column) =
        entries.iter().position(|entry| entry.is_text == 0).filter(|_| number == section::COLUMNS)
    {
        return Err(place.fault(column, "a column's name is an integer"));
    }
    fits_ids(&place)?;
    Ok(Names::from_parts(entries, text))
}

fn is_piece_of_text(text: &str, start: u64, len: u32) -> bool {
    let piece = usize::try_from(start).ok().and_then(|start| Some(start..start.checked_add(len as usize)?));
    piece.is_some_and(|piece| text.get(piece).is_some())
}

fn is_piece(arena: usize, start: u64, len: u32) -> bool {
    start.checked_add(u64::from(len)).is_some_and(|end| end <= arena as u64)
}

/// A table must leave room for the ids that mean something else.
fn fits_ids(place: &Place) -> Result<(), Fault> {
    if place.len < ValueId::UNKNOWN.0 as usize {
        Ok(())
    } else {
        Err(place.fault(0, "the table has more entries than there are ids"))
    }
}

// ---- values ----

pub(super) fn values(sections: &impl Columns, columns: NameIndex<ColumnId>) -> Result<ValueIndex, Fault> {
    let place = sections.place(section::VALUES);
    let entries: Vec<ValueEntry> = sections.column(section::VALUES)?;
    let text = sections.text(section::VALUE_TEXT)?;
    let elements: Vec<ValueId> = sections.column(section::ELEMENTS)?;
    let cells: Vec<Cell> = sections.column(section::CELLS)?;
    fits_ids(&place)?;
    if entries.first().is_none_or(|entry| entry.tag != tag::NULL) {
        return Err(place.fault(0, "the first value is not null"));
    }
    let values = Values { entries, text, elements, cells, columns: Names::default() };
    // Every place of such a text is between two characters.
    let is_ascii = values.text.is_ascii();
    // How deep lists nest, for lists only; empty as long as there is none.
    let mut depth: Vec<u8> = Vec::new();
    let mut hashes = Vec::with_capacity(values.entries.len());
    for (index, entry) in values.entries.iter().enumerate() {
        let piece = || entry.data as usize..entry.data as usize + entry.len as usize;
        let good = match entry.tag {
            tag::STR if is_ascii => is_piece(values.text.len(), entry.data, entry.len),
            tag::STR => is_piece_of_text(&values.text, entry.data, entry.len),
            tag::LIST => {
                is_piece(values.elements.len(), entry.data, entry.len)
                    && list_depth(&mut depth, &values.elements[piece()], index).is_some()
            }
            tag::ROW => {
                is_piece(values.cells.len(), entry.data, entry.len)
                    && is_proper_row(&values.cells[piece()], &values.entries[..index], columns.names.len())
            }
            _ => is_good_in_itself(index, entry),
        };
        if !good {
            return Err(place.fault(index, format!("the value {index} is not well-formed")));
        }
        hashes.push(values.hash_of(entry));
    }
    ValueIndex::of(values, &hashes, columns).map_err(|index| place.fault(index, "the value is listed twice"))
}

/// Whether a value that is no piece of something is well-formed.
#[inline]
pub(super) fn is_good_in_itself(index: usize, entry: &ValueEntry) -> bool {
    let good = match entry.tag {
        tag::NULL => index == 0 && entry.data == 0,
        tag::BOOL => entry.data <= 1,
        tag::INT => ValueId::inline(entry.data as i64).is_none(),
        tag::UINT => i64::try_from(entry.data).is_err(),
        tag::FLOAT => is_proper_float(f64::from_bits(entry.data)),
        _ => false,
    };
    good && entry.len == 0
}

/// A float that is not written as an integer.
fn is_proper_float(value: f64) -> bool {
    value.is_finite() && (value.fract() != 0.0 || value < i64::MIN as f64 || value >= u64::MAX as f64)
}

/// The depth of a list, if its elements come before it and it is not too deep.
fn list_depth(depth: &mut Vec<u8>, elements: &[ValueId], index: usize) -> Option<()> {
    let mut deepest = 0;
    for element in elements.iter().filter(|element| element.as_inline().is_none()) {
        if element.0 as usize >= index {
            return None;
        }
        deepest = deepest.max(depth.get(element.0 as usize).copied().unwrap_or(0));
    }
    depth.resize(index, 0);
    depth.push(deepest + 1);
    (deepest < LIST_DEPTH_MAX).then_some(())
}

/// Columns ascending, each once; scalars only, listed before.
fn is_proper_row(cells: &[Cell], before: &[ValueEntry], columns: usize) -> bool {
    let is_scalar = |value: ValueId| {
        value.as_inline().is_some() || before.get(value.0 as usize).is_some_and(|entry| entry.tag <= tag::STR)
    };
    cells.windows(2).all(|pair| pair[0].column < pair[1].column)
        && cells.iter().all(|cell| cell.column.index() < columns && is_scalar(cell.value))
}

// ---- operations ----

fn operations(sections: &impl Columns, tables: &Tables, history: &mut History) -> Result<(), Fault> {
    let place = sections.place(section::OPS);
    let ops: Vec<PackedOp> = sections.column(section::OPS)?;
    let compounds: Vec<Compound> = sections.column(section::COMPOUNDS)?;
    let words: Vec<u32> = sections.column(section::PREDICATES)?;
    history.rows = rows(sections, section::ROWS, tables)?;
    history.key_lists = sections.column(section::KEY_LISTS)?;
    if let Some(index) = history.key_lists.iter().position(|key| !tables.is_key(key.0)) {
        return Err(sections.place(section::KEY_LISTS).fault(index, "the key is not listed"));
    }
    history.predicates = predicates::read(&words, tables).map_err(|word| {
        sections.place(section::PREDICATES).fault(word, "the predicate is not well-formed")
    })?;
    let many = Many { tables, compounds: &compounds, history };
    for (index, op) in ops.iter().enumerate() {
        let good = match op.kind {
            kind::READ | kind::WRITE | kind::DELETE | kind::APPEND => is_good_on_one_key(op, tables),
            _ => op.unused == 0 && many.is_good(op),
        };
        if !good {
            return Err(place.fault(index, format!("the operation {index} is not well-formed")));
        }
    }
    history.ops = ops.into();
    history.compounds = compounds;
    Ok(())
}

/// Whether an operation on one key is well-formed. Kinds come in no order that a processor could foresee, so there is
/// no branch on them: on histories of points this halved the time that the checks take.
#[inline]
pub(super) fn is_good_on_one_key(op: &PackedOp, tables: &Tables) -> bool {
    let flags_max = if op.kind == kind::READ { flag::UPDATE } else { 0 };
    let is_inline = op.b >> 31 == 1;
    let is_value = is_inline | ((op.b as usize) < tables.values);
    let is_unknown = (op.kind == kind::READ) & (op.b == ValueId::UNKNOWN.0);
    let is_no_value = (op.kind != kind::DELETE) | (op.b == 0);
    (op.unused == 0) & (op.flags <= flags_max) & tables.is_key(op.a) & (is_value | is_unknown) & is_no_value
}

/// What operations on many keys are checked against.
struct Many<'a> {
    tables: &'a Tables,
    compounds: &'a [Compound],
    history: &'a History,
}

impl Many<'_> {
    fn is_good(&self, op: &PackedOp) -> bool {
        let Some(it) = self.compounds.get(op.a as usize) else { return false };
        let allowed = if op.kind == kind::ITERATE { flag::REVERSE | flag::EXHAUSTED } else { 0 };
        let is_range = self.tables.is_key_or_open(it.from) && self.tables.is_key_or_open(it.to);
        let has_predicate = (it.predicate as usize) < self.history.predicates.len();
        let fits = |len: usize| it.rows_len == NO_ID || is_piece(len, u64::from(it.rows_start), it.rows_len);
        let came_back = match op.kind {
            kind::SCAN | kind::ITERATE => is_range && fits(self.history.rows.len()),
            kind::QUERY => has_predicate && fits(self.history.rows.len()),
            kind::UPDATE | kind::DELETE_WHERE => has_predicate && fits(self.history.key_lists.len()),
            kind::CAS => {
                self.tables.is_key(it.from) && fits(self.history.key_lists.len()) && self.is_good_cas(it)
            }
            _ => false,
        };
        let is_good_value =
            if op.kind == kind::CAS { self.tables.is_known_value(ValueId(op.b)) } else { op.b == 0 };
        came_back && op.flags & !allowed == 0 && is_good_value && self.tables.is_known_value(it.set)
    }
}

impl Many<'_> {
    /// Whether what a compare and set changed is its key, or nothing.
    fn is_good_cas(&self, it: &Compound) -> bool {
        let changed = (it.rows_len != NO_ID)
            .then(|| &self.history.key_lists[it.rows_start as usize..][..it.rows_len as usize]);
        it.to == NO_ID
            && it.predicate == NO_ID
            && changed.is_none_or(|keys| keys.is_empty() || keys == [KeyId(it.from)])
    }
}

fn rows(sections: &impl Columns, number: u32, tables: &Tables) -> Result<Vec<Row>, Fault> {
    let rows: Vec<Row> = sections.column(number)?;
    let is_bad = |row: &Row| !tables.is_key(row.key.0) || !tables.is_known_value(row.value);
    match rows.iter().position(is_bad) {
        None => Ok(rows),
        Some(index) => Err(sections.place(number).fault(index, "the row's key or value is not listed")),
    }
}

pub(super) fn initial(sections: &impl Columns, tables: &Tables) -> Result<Vec<Row>, Fault> {
    let rows = rows(sections, section::INITIAL, tables)?;
    match rows.windows(2).position(|pair| pair[0].key >= pair[1].key) {
        None => Ok(rows),
        Some(index) => {
            Err(sections.place(section::INITIAL).fault(index, "the initial values are out of order"))
        }
    }
}

// ---- transactions ----

/// The columns of transactions whose operations are in the history; `first_op` is where each one's begin.
pub(super) fn transactions(
    sections: &impl Columns,
    first_op: Vec<u32>,
    (session_count, id_count): (usize, usize),
    history: &mut History,
) -> Result<(), Fault> {
    let find = |number: u32| sections.place(number);
    let session: Vec<crate::SessionId> = sections.column(section::SESSION)?;
    let count = session.len();
    if let Some(index) = session.iter().position(|session| session.index() >= session_count) {
        return Err(find(section::SESSION).fault(index, "the session is not listed"));
    }
    let status: Vec<u8> = sections.column(section::STATUS)?;
    if let Some(index) = status.iter().position(|&status| Status::from_u8(status).is_none()) {
        return Err(find(section::STATUS).fault(index, "the status is not known"));
    }
    let mut id: Vec<u32> = sections.column(section::ID)?;
    check_ids(&find(section::ID), &id, id_count)?;
    if id.is_empty() {
        id.resize(count, NO_ID);
    }
    let ends = (first_op.first().copied(), first_op.last().map(|&last| last as usize));
    if ends != (Some(0), Some(history.ops.len())) || first_op.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(find(section::FIRST_OP).fault(0, "the transactions do not divide up the operations"));
    }
    history.client = sections.column(section::CLIENT)?;
    history.db = sections.column(section::DB)?;
    history.db_logical = sections.column(section::DB_LOGICAL)?;
    let is_full = |len: usize| len == 0 || len == count;
    let lens = [history.client.len(), history.db.len(), history.db_logical.len()];
    let fits = status.len() == count && id.len() == count && first_op.len() == count + 1;
    if !fits || !lens.into_iter().all(is_full) || (history.db.is_empty() && !history.db_logical.is_empty()) {
        return Err(find(section::SESSION).fault(0, "the columns of transactions differ in length"));
    }
    check_clocks(&find(section::CLIENT), &history.client)?;
    check_timestamps(&find(section::DB), &history.db, &history.db_logical)?;
    history.session = session.into();
    history.status = status.into();
    history.id = id.into();
    history.first_op = first_op;
    Ok(())
}

/// Each explicit id belongs to one transaction.
pub(super) fn check_ids(place: &Place, ids: &[u32], count: usize) -> Result<(), Fault> {
    let mut is_used = vec![false; count];
    for (index, &id) in ids.iter().enumerate().filter(|(_, id)| **id != NO_ID) {
        match is_used.get_mut(id as usize) {
            Some(used) if !*used => *used = true,
            Some(_) => return Err(place.fault(index, "two transactions have the same id")),
            None => return Err(place.fault(index, "the transaction's id is not listed")),
        }
    }
    Ok(())
}

fn check_clocks(place: &Place, spans: &[Span]) -> Result<(), Fault> {
    match spans.iter().position(|span| span.begin > span.end && *span != NO_SPAN) {
        None => Ok(()),
        Some(index) => Err(place.fault(index, "the transaction begins after its end")),
    }
}

fn check_timestamps(place: &Place, spans: &[Span], logical: &[[u32; 2]]) -> Result<(), Fault> {
    for (index, span) in spans.iter().enumerate() {
        let [start, commit] = logical.get(index).copied().unwrap_or_default();
        if *span == NO_SPAN && [start, commit] != [0, 0] {
            return Err(place.fault(index, "a logical part without a timestamp"));
        }
    }
    Ok(())
}

// ---- rare fields ----

fn extras(sections: &impl Columns, history: &mut History) -> Result<(), Fault> {
    let masks: Vec<u16> = sections.column(section::CLOCK_MASKS)?;
    let clocks = sections.column(section::CLOCKS)?;
    history.op_clocks = OpClocks::from_parts(&masks, clocks, history.ops.len()).map_err(|place| {
        sections.place(section::CLOCKS).fault(place, "the clock of an operation is none, or runs backwards")
    })?;

    let lens: Vec<[u32; 2]> = sections.column(section::OP_EXTRA)?;
    ascending(&sections.place(section::OP_EXTRA), lens.iter().map(|[op, _]| *op), history.ops.len())?;
    let mut texts = Texts::new(sections, section::OP_EXTRA_TEXT)?;
    for [op, len] in lens {
        history.op_extra.push((OpId(op), texts.fields(len, "ctx")?));
    }
    texts.finish()?;

    let lens: Vec<[u32; 4]> = sections.column(section::TXN_EXTRA)?;
    let count = history.session.len();
    ascending(&sections.place(section::TXN_EXTRA), lens.iter().map(|[txn, ..]| *txn), count)?;
    let mut texts = Texts::new(sections, section::TXN_EXTRA_TEXT)?;
    for [txn, level, ctx, unknown] in lens {
        let optional = |len: u32| (len != NO_ID).then_some(len);
        let level = optional(level).map(|len| texts.next(len)).transpose()?;
        let ctx = optional(ctx).map(|len| texts.object(len)).transpose()?;
        let unknown = optional(unknown).map(|len| texts.fields(len, "seq")).transpose()?;
        history.txn_extra.push((TxnId(txn), TxnExtra { level, ctx, unknown }));
    }
    texts.finish()
}

fn ascending(place: &Place, ids: impl Iterator<Item = u32>, count: usize) -> Result<(), Fault> {
    let mut next = 0u64;
    for (index, id) in ids.enumerate() {
        if u64::from(id) < next || id as usize >= count {
            return Err(place.fault(index, "the place is out of order or not there"));
        }
        next = u64::from(id) + 1;
    }
    Ok(())
}

/// Texts that lie one after the other in a section.
struct Texts {
    place: Place,
    text: String,
    at: usize,
}

impl Texts {
    fn new(sections: &impl Columns, number: u32) -> Result<Self, Fault> {
        Ok(Self { place: sections.place(number), text: sections.text(number)?, at: 0 })
    }

    fn next(&mut self, len: u32) -> Result<Box<str>, Fault> {
        let end = self.at + len as usize;
        let piece = self
            .text
            .get(self.at..end)
            .ok_or_else(|| self.place.fault(self.at, "the text ends too early"))?;
        self.at = end;
        Ok(piece.into())
    }

    /// The next text, which is a JSON object.
    fn object(&mut self, len: u32) -> Result<Box<str>, Fault> {
        let at = self.at;
        let text = self.next(len)?;
        if is_object(&text) {
            Ok(text)
        } else {
            Err(self.place.fault(at, "the fields are not a JSON object"))
        }
    }

    /// The next text, an object that has one field only.
    fn fields(&mut self, len: u32, only: &str) -> Result<Box<str>, Fault> {
        let at = self.at;
        let text = self.object(len)?;
        match jsonl::first_line_fields(&text).iter().find(|name| *name != only) {
            Some(other) => Err(self.place.fault(at, format!("the field `{other}` is not known"))),
            None => Ok(text),
        }
    }

    fn finish(&self) -> Result<(), Fault> {
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.place.fault(self.at, "the text goes on after its last piece"))
        }
    }
}

fn is_object(text: &str) -> bool {
    let mut cursor = Cursor::new(text);
    cursor.peek() == Ok(Kind::Object) && cursor.skip().is_ok() && cursor.is_done()
}

pub(super) fn header(sections: &impl Columns) -> Result<Header, Fault> {
    let level = sections.text(section::LEVEL)?;
    let extra = sections.text(section::HEADER_EXTRA)?;
    if !extra.is_empty() && !is_object(&extra) {
        let offset = sections.place(section::HEADER_EXTRA).offset;
        return Err(damaged(offset, "the header's fields are not a JSON object"));
    }
    let some = |text: String| (!text.is_empty()).then(|| text.into_boxed_str());
    Ok(Header { level: some(level), extra: some(extra) })
}
