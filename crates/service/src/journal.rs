//! What arrived, on disk before anything else happens to it.
//!
//! ```text
//! file   = records, one after the other, the first of kind 3
//! record = mark: u32, length of the payload: u32, kind: u32, number: u64, XXH3-64 of all that and the payload: u64, payload
//! kind 1 = a batch: length of the source's name: u32 (0: none), name, two u64; then the lines
//! kind 2 = a watermark: i64, u32; is there a horizon: u32; i64, u32
//! kind 3 = the beginning: what is checked, and which checkpoint it follows, as JSON
//! ```
//!
//! All numbers are little-endian. Records of one state are numbered one by one, also from one file to the next.
//! **Invariant.** What [`Synced::sync`] has returned for is read back by [`load`]: how many records those are is written
//! beside the journal. Only a last record that was never brought to disk can be left out, and that is said. Whatever else
//! is not as it was written is an error.

use crate::intake::Place;
use history::Timestamp;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

const BATCH: u32 = 1;
const ADVANCE: u32 = 2;
const BEGIN: u32 = 3;
const MARK: &[u8; 4] = b"TPJ2";
const HEAD_LEN: usize = 28;

/// How a journal begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// The number of the checkpoint that it follows.
    pub(crate) epoch: u64,
    /// What is checked.
    pub(crate) asked: String,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Record {
    /// Lines arrived.
    Batch { place: Option<Place>, bytes: Vec<u8> },
    /// A watermark was reached.
    Advance(Timestamp, Option<Timestamp>),
}

/// A file that records are added to.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    /// How many records are on disk for certain.
    mark: File,
    /// Records that are not written yet.
    held: Vec<u8>,
    len: u64,
    /// The number of the next record.
    pub(crate) next: u64,
    is_dirty: bool,
}

/// A journal up to some record, for a thread that brings it to disk.
#[derive(Debug)]
pub struct Synced {
    journal: File,
    mark: File,
    records: u64,
}

impl Synced {
    /// Returns when everything up to there is on disk.
    pub fn sync(&self) -> io::Result<()> {
        self.journal.sync_data()?;
        self.mark.write_all_at(mark_text(self.records).as_bytes(), 0)
    }
}

/// Of always the same length, so that a killed process leaves the old number or the new one.
fn mark_text(records: u64) -> String {
    format!("{records:020}\n")
}

/// How many records are on disk at least.
pub(crate) fn marked(path: &Path) -> io::Result<u64> {
    match std::fs::read(path) {
        Ok(text) => {
            let number = text.get(..mark_text(0).len()).and_then(|text| std::str::from_utf8(text).ok());
            Ok(number.and_then(|it| it.trim_end().parse().ok()).unwrap_or(0))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

impl Journal {
    /// Begins a new journal, and returns when its beginning is on disk.
    pub(crate) fn create(path: &Path, mark: &Path, begin: &Begin, next: u64) -> io::Result<Self> {
        // What stands there belongs to a checkpoint that never came to be.
        File::create(path)?;
        let mut journal = Self::open(path, mark, 0, next)?;
        journal.add(BEGIN, &serde_json::to_vec(begin)?, &[])?;
        journal.sync()?;
        Ok(journal)
    }

    /// Opens a journal behind its last whole record.
    pub(crate) fn open(path: &Path, mark: &Path, whole: u64, next: u64) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).read(true).open(path)?;
        file.set_len(whole)?;
        let mark = OpenOptions::new().create(true).truncate(false).write(true).open(mark)?;
        let mut journal = Self { file, mark, held: Vec::new(), len: whole, next, is_dirty: false };
        io::Seek::seek(&mut journal.file, io::SeekFrom::End(0))?;
        Ok(journal)
    }

    /// How long it is.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Lines arrived.
    pub(crate) fn add_batch(&mut self, place: Option<&Place>, lines: &[u8]) -> io::Result<()> {
        let mut head = Vec::with_capacity(64);
        let name = place.map_or("", |place| place.source.as_str());
        head.extend_from_slice(&(name.len() as u32).to_le_bytes());
        head.extend_from_slice(name.as_bytes());
        let (a, b) = place.map_or((0, 0), |place| place.at);
        head.extend_from_slice(&a.to_le_bytes());
        head.extend_from_slice(&b.to_le_bytes());
        self.add(BATCH, &head, lines)
    }

    /// A watermark was reached.
    pub(crate) fn add_advance(&mut self, watermark: Timestamp, horizon: Option<Timestamp>) -> io::Result<()> {
        let mut payload = Vec::with_capacity(28);
        put_time(&mut payload, watermark);
        payload.extend_from_slice(&u32::from(horizon.is_some()).to_le_bytes());
        put_time(&mut payload, horizon.unwrap_or(Timestamp { physical: 0, logical: 0 }));
        self.add(ADVANCE, &payload, &[])
    }

    fn add(&mut self, kind: u32, head: &[u8], rest: &[u8]) -> io::Result<()> {
        let len = u32::try_from(head.len() + rest.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a batch of 4 GiB or more"))?;
        let from = self.held.len();
        self.held.extend_from_slice(MARK);
        self.held.extend_from_slice(&len.to_le_bytes());
        self.held.extend_from_slice(&kind.to_le_bytes());
        self.held.extend_from_slice(&self.next.to_le_bytes());
        let mut sum = Xxh3::new();
        for part in [&self.held[from..], head, rest] {
            sum.update(part);
        }
        self.held.extend_from_slice(&sum.digest().to_le_bytes());
        self.held.extend_from_slice(head);
        self.held.extend_from_slice(rest);
        self.next += 1;
        Ok(())
    }

    /// Writes what is held.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.held.is_empty() {
            self.file.write_all(&self.held)?;
            self.len += self.held.len() as u64;
            self.held.clear();
            self.is_dirty = true;
        }
        Ok(())
    }

    /// What was written so far, for a thread that brings it to disk.
    pub(crate) fn handle(&self) -> io::Result<Synced> {
        Ok(Synced { journal: self.file.try_clone()?, mark: self.mark.try_clone()?, records: self.next })
    }

    /// Returns when everything is on disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.is_dirty {
            self.handle()?.sync()?;
            self.is_dirty = false;
        }
        Ok(())
    }
}

/// A journal as it was found.
#[derive(Debug)]
pub(crate) struct Loaded {
    bytes: Vec<u8>,
    /// How it begins, and the number of that record; none if that is not whole.
    pub(crate) begin: Option<(Begin, u64)>,
    /// Where each whole record lies behind that.
    places: Vec<std::ops::Range<usize>>,
    /// How many bytes are whole records.
    pub(crate) whole: usize,
    /// The number of the record behind them.
    pub(crate) next: u64,
    /// The number of a whole record somewhere behind, if there is one.
    pub(crate) later: Option<u64>,
}

impl Loaded {
    /// What stands behind the last whole record.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.whole..]
    }

    /// Whether nothing happened in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.later.is_none()
    }

    /// Gives every whole record.
    pub(crate) fn each(&self, mut each: impl FnMut(Record) -> io::Result<()>) -> io::Result<()> {
        for place in &self.places {
            if let Some(raw) = raw(&self.bytes[place.clone()])
                && let Some(record) = parsed(&raw)
            {
                each(record)?;
            }
        }
        Ok(())
    }
}

/// Reads a journal; none if there is no such file.
pub(crate) fn load(path: &Path) -> io::Result<Option<Loaded>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut loaded = Loaded { bytes, begin: None, places: Vec::new(), whole: 0, next: 0, later: None };
    if let Some(first) = raw(&loaded.bytes).filter(|first| first.kind == BEGIN)
        && let Ok(begin) = serde_json::from_slice(first.payload)
    {
        loaded.begin = Some((begin, first.number));
        (loaded.whole, loaded.next) = (first.len(), first.number + 1);
        while let Some(record) = raw(&loaded.bytes[loaded.whole..])
            && record.number == loaded.next
            && parsed(&record).is_some()
        {
            let end = loaded.whole + record.len();
            loaded.places.push(loaded.whole..end);
            (loaded.whole, loaded.next) = (end, loaded.next + 1);
        }
    }
    let rest = loaded.rest();
    loaded.later = memmem::find_iter(rest, MARK).find_map(|at| Some(raw(&rest[at..])?.number));
    Ok(Some(loaded))
}

/// A record whose sum is right.
struct Raw<'a> {
    kind: u32,
    number: u64,
    payload: &'a [u8],
}

impl Raw<'_> {
    fn len(&self) -> usize {
        HEAD_LEN + self.payload.len()
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn raw(bytes: &[u8]) -> Option<Raw<'_>> {
    let head = bytes.get(..HEAD_LEN - 8).filter(|head| head.starts_with(MARK))?;
    let (len, kind, number) = (u32_at(bytes, 4)? as usize, u32_at(bytes, 8)?, u64_at(bytes, 12)?);
    let payload = bytes.get(HEAD_LEN..HEAD_LEN.checked_add(len)?)?;
    let mut sum = Xxh3::new();
    sum.update(head);
    sum.update(payload);
    (sum.digest() == u64_at(bytes, HEAD_LEN - 8)?).then_some(Raw { kind, number, payload })
}

fn parsed(raw: &Raw<'_>) -> Option<Record> {
    let payload = raw.payload;
    Some(match raw.kind {
        BATCH => {
            let name_len = u32_at(payload, 0)? as usize;
            let name = payload.get(4..4 + name_len)?;
            let at = (u64_at(payload, 4 + name_len)?, u64_at(payload, 12 + name_len)?);
            let source = String::from_utf8(name.to_vec()).ok()?;
            let place = (name_len > 0).then_some(Place { source, at });
            Record::Batch { place, bytes: payload.get(20 + name_len..)?.to_vec() }
        }
        ADVANCE => {
            let horizon = (u32_at(payload, 12)? == 1).then(|| time_at(payload, 16)).flatten();
            Record::Advance(time_at(payload, 0)?, horizon)
        }
        _ => return None,
    })
}

fn put_time(out: &mut Vec<u8>, time: Timestamp) {
    out.extend_from_slice(&time.physical.to_le_bytes());
    out.extend_from_slice(&time.logical.to_le_bytes());
}

fn time_at(bytes: &[u8], at: usize) -> Option<Timestamp> {
    Some(Timestamp { physical: u64_at(bytes, at)? as i64, logical: u32_at(bytes, at + 8)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(loaded: &Loaded) -> Vec<Record> {
        let mut records = Vec::new();
        let each = |record| {
            records.push(record);
            Ok(())
        };
        loaded.each(each).expect("nothing fails here");
        records
    }

    /// Wherever it is cut off, what is whole is found, and it goes on from there; whatever byte is changed, what lies behind
    /// is seen.
    #[test]
    fn whole_records_are_found_and_damage_is_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, mark) = (folder.path().join("journal"), folder.path().join("durable"));
        let place = Place { source: "stream".to_owned(), at: (7, 1) };
        let time = Timestamp { physical: -3, logical: 2 };
        let begin = Begin { epoch: 3, asked: "SI".to_owned() };
        let mut journal = Journal::create(&path, &mark, &begin, 40).expect("a new file");
        let begin_len = journal.len() as usize;
        journal.add_batch(Some(&place), b"one\n").expect("small");
        journal.add_advance(time, Some(5.into())).expect("small");
        journal.add_batch(None, b"").expect("small");
        journal.sync().expect("there is room");
        assert_eq!(marked(&mark).expect("it is there"), 44);
        let written = std::fs::read(&path).expect("it is there");
        let all = [
            Record::Batch { place: Some(place), bytes: b"one\n".to_vec() },
            Record::Advance(time, Some(5.into())),
            Record::Batch { place: None, bytes: Vec::new() },
        ];
        let load = || load(&path).expect("it can be read").expect("it is there");
        let whole = load();
        assert_eq!((records(&whole), whole.whole, whole.next), (all.to_vec(), written.len(), 44));
        assert_eq!(whole.begin, Some((begin, 40)));
        for len in 0..written.len() {
            std::fs::write(&path, &written[..len]).expect("there is room");
            let cut = load();
            let found = records(&cut);
            assert!(found.len() < all.len() && found == all[..found.len()], "{len}");
            assert_eq!((cut.later, cut.begin.is_some()), (None, len >= begin_len), "{len}");
            if cut.begin.is_some() {
                let mut journal =
                    Journal::open(&path, &mark, cut.whole as u64, cut.next).expect("it is there");
                journal.add_advance(time, None).expect("small");
                journal.sync().expect("there is room");
                let after = records(&load());
                assert_eq!(
                    (after.len(), after.last()),
                    (found.len() + 1, Some(&Record::Advance(time, None)))
                );
            }
        }
        let last = written.len() - HEAD_LEN - 20;
        for place in 0..written.len() {
            let mut changed = written.clone();
            changed[place] ^= 0x10;
            std::fs::write(&path, &changed).expect("there is room");
            let damaged = load();
            let found = records(&damaged);
            assert!(found.len() < all.len() && found == all[..found.len()], "{place}");
            assert_eq!(damaged.later.is_some(), place < last, "{place}");
        }
    }
}
