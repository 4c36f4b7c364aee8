//! Some of a frame's transactions, without the others.
//!
//! What: a frame as slices, each a run of its transactions, that different threads or machines read apart. Whoever reads a
//! slice holds its transactions, and of the frame's tables the names and values that they use: not the frame.
//! Invariant: the slices of a frame hold its transactions, and one of them [verifies](Slice::verifies) it: if all can be
//! read, so can the frame. A slice that does not verify is checked for all that could do harm here (ids lie within their
//! tables, pieces within their texts), but only together they are known to be what was written.
//! Steps: columns of transactions and operations are read from where the slice lies → checked → names and values in use
//! are marked, numbered anew in the order of the tables, and picked from these, a few at a time. Whoever
//! verifies first reads the whole frame through a small buffer for its checksum, and then each table for doubles.
//! Cost: every byte of the frame is read twice, once for the checksum; tables of names once more a slice. A mark of 4 bytes for
//! each name and value of the frame.
//!
//! Only frames of points are cut: where operations have clocks or unknown fields, where there are scans, predicates, lists or
//! rows, what belongs to a slice lies in tables that have to be read whole, and the frame is left as it is.

use super::super::Fault;
use super::checks::{self, Tables, is_good_in_itself, is_good_on_one_key};
use super::sections::{Columns, Place, Places, damaged, u32_at, u64_at, unsound};
use super::{FRAME_HEADER_LEN, PART_FRAME, section};
use crate::model::{NO_ID, PackedOp, kind};
use crate::names::{NameEntry, NameIndex};
use crate::values::{ValueEntry, tag};
use crate::{History, Id, KeyId, Names, SessionId, TxnId, ValueId, Values};
use bytemuck::Pod;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use xxhash_rust::xxh3::Xxh3;

/// Some transactions of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    first: usize,
    end: usize,
    /// Whether whoever reads it looks at what concerns the whole frame.
    pub verifies: bool,
}

/// What a frame may hold that is cut.
const CUT: &[u32] = &[
    section::SESSION,
    section::STATUS,
    section::ID,
    section::FIRST_OP,
    section::CLIENT,
    section::DB,
    section::DB_LOGICAL,
    section::OPS,
    section::KEYS,
    section::KEYS + 1,
    section::SESSIONS,
    section::SESSIONS + 1,
    section::IDS,
    section::IDS + 1,
    section::VALUES,
    section::VALUE_TEXT,
    section::INITIAL,
    section::LEVEL,
    section::HEADER_EXTRA,
];

/// The slices, of about `len` bytes each, of the frame that begins at a place of a file; `number` counts the file's frames, so
/// that it is not always the first who verifies. None if it is better read as a whole, as a frame is that is damaged.
pub fn slices(file: &File, frame: Range<u64>, number: usize, len: u64) -> Vec<Slice> {
    let count = (frame.end - frame.start).div_ceil(len.max(1));
    let Ok(on_disk) = OnDisk::open(file, frame) else { return Vec::new() };
    let transactions = on_disk.place(section::SESSION).len;
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(transactions);
    let is_plain = on_disk.places.numbers().all(|number| CUT.contains(&number));
    if count < 2 || !is_plain || on_disk.place(section::FIRST_OP).len != transactions + 1 {
        return Vec::new();
    }
    let cut = |slice: usize| (slice as u128 * transactions as u128 / count as u128) as usize;
    let slice = |index| Slice { first: cut(index), end: cut(index + 1), verifies: index == number % count };
    (0..count).map(slice).collect()
}

/// Reads a slice of a frame.
pub fn read_slice(file: &File, frame: Range<u64>, slice: Slice) -> Result<History, Fault> {
    let frame = OnDisk::open(file, frame)?;
    if slice.verifies {
        frame.verify()?;
    }
    let window = Window { frame: &frame, slice };
    let mut history = History::default();
    let (first_op, ops) = window.first_op()?;
    let mut used = window.operations(ops, &mut history)?;
    let counts = (window.place(section::SESSIONS).len, window.place(section::IDS).len);
    checks::transactions(&window, first_op, counts, &mut history)?;
    window.header(&mut history, &mut used)?;
    window.rename(&mut history, used)?;
    history.number_within();
    Ok(history)
}

/// A frame in a file.
struct OnDisk<'f> {
    file: &'f File,
    start: u64,
    len: usize,
    checksum: u64,
    places: Places,
}

/// How much is read at once for the checksum, and how many entries of a table.
const BLOCK_LEN: usize = 128 << 10;
const ENTRIES_AT_ONCE: usize = 4 << 10;

/// A little more room than is needed, so that blocks of slices that are about the same are the same: what one slice gave
/// back, the next one fits into.
fn roomy(count: usize) -> usize {
    count.next_multiple_of((count.next_power_of_two() / 16).max(1))
}

fn unreadable(error: &io::Error) -> Fault {
    Fault::new(0, format!("cannot be read: {error}"), "a readable file")
}

impl<'f> OnDisk<'f> {
    fn open(file: &'f File, Range { start, end }: Range<u64>) -> Result<Self, Fault> {
        let len = usize::try_from(end - start).map_err(|_| damaged(0, "the frame is too long"))?;
        let mut head = vec![0; len.min(FRAME_HEADER_LEN + Places::LIST_LEN_MAX)];
        read_at(file, start, &mut head)?;
        let is_part = (u32_at(&head, 0), u32_at(&head, 4)) == (Some(PART_FRAME), Some(0));
        let payload = u64_at(&head, 8).and_then(|payload| payload.checked_add(FRAME_HEADER_LEN as u64));
        let Some(checksum) = u64_at(&head, 16).filter(|_| is_part && payload == Some(len as u64)) else {
            return Err(damaged(0, "the frame's head is damaged"));
        };
        let places = Places::new(&head, FRAME_HEADER_LEN, len)?;
        Ok(Self { file, start, len, checksum, places })
    }

    fn read(&self, offset: usize, into: &mut [u8]) -> Result<(), Fault> {
        read_at(self.file, self.start + offset as u64, into)
    }

    /// Some elements of a section; all of them are there.
    fn elements<T: Pod>(&self, number: u32, range: Range<usize>) -> Result<Vec<T>, Fault> {
        let place = self.places.of_width(number, size_of::<T>())?;
        if range.end > place.len {
            return Err(place.fault(0, "the section is too short"));
        }
        let mut elements: Vec<T> = Vec::with_capacity(roomy(range.len()));
        elements.resize(range.len(), T::zeroed());
        self.read(place.offset + range.start * size_of::<T>(), bytemuck::cast_slice_mut(&mut elements))?;
        Ok(elements)
    }

    /// Whether everything is there as it was written, and once.
    fn verify(&self) -> Result<(), Fault> {
        let mut checksum = Xxh3::new();
        let mut block = vec![0; BLOCK_LEN];
        for offset in (FRAME_HEADER_LEN..self.len).step_by(BLOCK_LEN) {
            let len = BLOCK_LEN.min(self.len - offset);
            self.read(offset, &mut block[..len])?;
            checksum.update(&block[..len]);
        }
        if checksum.digest() != self.checksum {
            return Err(unsound());
        }
        drop(block);
        checks::check_names::<KeyId>(self, section::KEYS, "key")?;
        checks::check_names::<SessionId>(self, section::SESSIONS, "session")?;
        checks::check_names::<TxnId>(self, section::IDS, "transaction id")?;
        checks::values(self, NameIndex::default())?;
        let ids: Vec<u32> = self.column(section::ID)?;
        checks::check_ids(&self.place(section::ID), &ids, self.place(section::IDS).len)
    }
}

fn read_at(mut file: &File, offset: u64, into: &mut [u8]) -> Result<(), Fault> {
    file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(into)).map_err(|error| unreadable(&error))
}

impl Columns for OnDisk<'_> {
    fn place(&self, number: u32) -> Place {
        self.places.get(number)
    }

    fn column<T: Pod>(&self, number: u32) -> Result<Vec<T>, Fault> {
        self.elements(number, 0..self.place(number).len)
    }
}

/// A frame as if it held nothing but the transactions of a slice; its tables are the frame's.
struct Window<'f> {
    frame: &'f OnDisk<'f>,
    slice: Slice,
}

impl Columns for Window<'_> {
    fn place(&self, number: u32) -> Place {
        self.frame.place(number)
    }

    fn column<T: Pod>(&self, number: u32) -> Result<Vec<T>, Fault> {
        let Slice { first, end, .. } = self.slice;
        match number {
            section::SESSION | section::STATUS => self.frame.elements(number, first..end),
            section::ID | section::CLIENT | section::DB | section::DB_LOGICAL => {
                let transactions = self.place(section::SESSION).len;
                match self.place(number) {
                    Place { len: 0, .. } => Ok(Vec::new()),
                    Place { len, .. } if len == transactions => self.frame.elements(number, first..end),
                    place => Err(place.fault(0, "the columns of transactions differ in length")),
                }
            }
            _ => self.frame.column(number),
        }
    }
}

/// What of the frame's tables is in use.
struct Used {
    keys: Marks,
    values: Marks,
}

impl Window<'_> {
    /// Where operations of each transaction begin, counted from those of the first; and where that lies in the frame.
    fn first_op(&self) -> Result<(Vec<u32>, Range<usize>), Fault> {
        let Slice { first, end, .. } = self.slice;
        let (place, all) = (self.place(section::FIRST_OP), self.place(section::OPS).len);
        let mut first_op: Vec<u32> = self.frame.elements(section::FIRST_OP, first..end + 1)?;
        let ops = first_op[0]..first_op[end - first];
        let begins = first > 0 || ops.start == 0;
        let ends = end + 1 < place.len || ops.end as usize == all;
        if !begins || !ends || first_op.iter().any(|op| !(ops.start..=ops.end).contains(op)) {
            return Err(place.fault(first, "the transactions do not divide up the operations"));
        }
        first_op.iter_mut().for_each(|op| *op -= ops.start);
        Ok((first_op, ops.start as usize..ops.end as usize))
    }

    /// Reads and checks operations, and marks what they use.
    fn operations(&self, range: Range<usize>, history: &mut History) -> Result<Used, Fault> {
        let ops: Vec<PackedOp> = self.frame.elements(section::OPS, range)?;
        let len = |number| self.place(number).len;
        let tables = Tables { keys: len(section::KEYS), columns: 0, values: len(section::VALUES) };
        let mut used = Used { keys: Marks::new(tables.keys), values: Marks::new(tables.values) };
        // The first value is null, whoever uses it.
        if tables.values == 0 {
            return Err(self.place(section::VALUES).fault(0, "the first value is not null"));
        }
        used.values.mark(0);
        for (index, op) in ops.iter().enumerate() {
            if op.kind >= kind::SCAN || !is_good_on_one_key(op, &tables) {
                let place = self.place(section::OPS);
                return Err(place.fault(index, format!("the operation {index} is not well-formed")));
            }
            used.keys.mark(op.a);
            used.values.mark_value(ValueId(op.b));
        }
        history.ops = ops.into();
        Ok(used)
    }

    /// What the history begins with belongs to the first slice.
    fn header(&self, history: &mut History, used: &mut Used) -> Result<(), Fault> {
        if self.slice.first > 0 {
            return Ok(());
        }
        let tables = Tables { keys: used.keys.0.len(), columns: 0, values: used.values.0.len() };
        history.initial = checks::initial(self, &tables)?;
        for row in &history.initial {
            used.keys.mark(row.key.0);
            used.values.mark_value(row.value);
        }
        history.header = checks::header(self)?;
        Ok(())
    }

    /// From ids of the frame to ids of the slice, and the tables that these mean.
    fn rename(&self, history: &mut History, used: Used) -> Result<(), Fault> {
        let (keys, count) = used.keys.numbers();
        history.keys = self.names(section::KEYS, "key", &keys, count)?;
        let (values, count) = used.values.numbers();
        history.values = self.values(&values, count)?;
        let value = |id: ValueId| match id.as_inline().is_some() || !id.is_known() {
            true => id,
            false => ValueId(values[id.table_index()]),
        };
        let mut ops = std::mem::take(&mut history.ops).into_vec();
        for op in &mut ops {
            op.a = keys[op.a as usize];
            op.b = value(ValueId(op.b)).0;
        }
        history.ops = ops.into();
        for row in &mut history.initial {
            *row = crate::Row { key: KeyId(keys[row.key.index()]), value: value(row.value) };
        }

        let mut used = Marks::new(self.place(section::SESSIONS).len);
        history.session.iter().for_each(|session| used.mark(session.0));
        let (sessions, count) = used.numbers();
        history.sessions = self.names(section::SESSIONS, "session", &sessions, count)?;
        let renamed = history.session.iter().map(|session| SessionId(sessions[session.index()]));
        history.session = renamed.collect::<Vec<_>>().into();

        let mut used = Marks::new(self.place(section::IDS).len);
        history.id.iter().filter(|id| **id != NO_ID).for_each(|&id| used.mark(id));
        let (ids, count) = used.numbers();
        history.ids = self.names(section::IDS, "transaction id", &ids, count)?;
        let renamed = history.id.iter().map(|&id| if id == NO_ID { NO_ID } else { ids[id as usize] });
        history.id = renamed.collect::<Vec<_>>().into();
        Ok(())
    }

    /// The entries of a table that have numbers, in the order of these.
    fn picked<T: Pod>(&self, number: u32, numbers: &[u32], count: usize) -> Result<Vec<T>, Fault> {
        let mut picked = Vec::with_capacity(roomy(count));
        for start in (0..numbers.len()).step_by(ENTRIES_AT_ONCE) {
            let range = start..numbers.len().min(start + ENTRIES_AT_ONCE);
            let some = &numbers[range.clone()];
            if some.iter().any(|&number| number != NO_ID) {
                let entries: Vec<T> = self.frame.elements(number, range)?;
                let in_use = entries.into_iter().zip(some).filter(|(_, number)| **number != NO_ID);
                picked.extend(in_use.map(|(entry, _)| entry));
            }
        }
        Ok(picked)
    }

    fn names<I: Id>(
        &self,
        number: u32,
        what: &str,
        numbers: &[u32],
        count: usize,
    ) -> Result<Names<I>, Fault> {
        let mut entries: Vec<NameEntry> = self.picked(number, numbers, count)?;
        let is_text = |entry: &&mut NameEntry| entry.is_text == 1;
        let pieces = entries.iter_mut().filter(is_text).map(|entry| (&mut entry.data, entry.len));
        let text = self.pieces(number + 1, pieces)?;
        if entries.iter().any(|entry| entry.is_text > 1 || entry.is_text == 0 && entry.len != 0) {
            return Err(self.place(number).fault(0, format!("a {what} is not well-formed")));
        }
        Ok(Names::from_parts(entries, text))
    }

    fn values(&self, numbers: &[u32], count: usize) -> Result<Values, Fault> {
        let mut entries: Vec<ValueEntry> = self.picked(section::VALUES, numbers, count)?;
        let is_good = |(index, entry): (usize, &ValueEntry)| match entry.tag {
            tag::STR => true,
            // An empty one.
            tag::LIST | tag::ROW => entry.data == 0 && entry.len == 0,
            _ => is_good_in_itself(index, entry),
        };
        if entries[0].tag != tag::NULL || !entries.iter().enumerate().all(is_good) {
            return Err(self.place(section::VALUES).fault(0, "a value is not well-formed"));
        }
        let is_text = |entry: &&mut ValueEntry| entry.tag == tag::STR;
        let pieces = entries.iter_mut().filter(is_text).map(|entry| (&mut entry.data, entry.len));
        let text = self.pieces(section::VALUE_TEXT, pieces)?;
        Ok(Values { entries, text, ..Values::default() })
    }

    /// Pieces of a text, one after the other; each gets its new place.
    fn pieces<'p>(
        &self,
        number: u32,
        pieces: impl Iterator<Item = (&'p mut u64, u32)>,
    ) -> Result<String, Fault> {
        let mut pieces: Vec<(&mut u64, u32)> = pieces.collect();
        let place = self.place(number);
        let outside = || place.fault(0, "a piece lies outside its text");
        let mut all = place.len..0;
        let mut len = 0;
        for (start, piece) in &pieces {
            let start =
                usize::try_from(**start).ok().filter(|&start| start <= place.len).ok_or_else(outside)?;
            let end =
                start.checked_add(*piece as usize).filter(|&end| end <= place.len).ok_or_else(outside)?;
            all = all.start.min(start)..all.end.max(end);
            len += *piece as usize;
        }
        if pieces.is_empty() || all.is_empty() {
            pieces.iter_mut().for_each(|(start, _)| **start = 0);
            return Ok(String::new());
        }
        let bytes: Vec<u8> = self.frame.elements(number, all.clone())?;
        let text = std::str::from_utf8(&bytes).map_err(|_| place.fault(0, "the text is not UTF-8"))?;
        let mut picked = String::with_capacity(len);
        for (start, piece) in pieces {
            let from = *start as usize - all.start;
            let piece = text.get(from..from + piece as usize).ok_or_else(outside)?;
            *start = picked.len() as u64;
            picked.push_str(piece);
        }
        Ok(picked)
    }
}

/// Which entries of a table are in use.
struct Marks(Vec<u32>);

impl Marks {
    fn new(count: usize) -> Self {
        let mut marks = Vec::with_capacity(roomy(count));
        marks.resize(count, NO_ID);
        Self(marks)
    }

    #[inline]
    fn mark(&mut self, id: u32) {
        self.0[id as usize] = 0;
    }

    #[inline]
    fn mark_value(&mut self, value: ValueId) {
        if value.as_inline().is_none() && value.is_known() {
            self.0[value.table_index()] = 0;
        }
    }

    /// For each entry its number among those in use, [`NO_ID`] for the others; and how many those are.
    fn numbers(mut self) -> (Vec<u32>, usize) {
        let mut next = 0;
        for number in self.0.iter_mut().filter(|number| **number != NO_ID) {
            *number = next;
            next += 1;
        }
        (self.0, next as usize)
    }
}
