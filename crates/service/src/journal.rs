//! What arrived, on disk before anything else happens to it.
//!
//! ```text
//! file   = records, one after the other
//! record = length of the payload: u32, kind: u32, XXH3-64 of kind and payload: u64, payload
//! kind 1 = a batch: length of the source's name: u32 (0: none), name, two u64; then the lines
//! kind 2 = a watermark: i64, u32; is there a horizon: u32; i64, u32
//! ```
//!
//! All numbers are little-endian. **Invariant.** What [`Journal::sync`] has returned for is read back by
//! [`read`]; what a crash cut off at the end is not a record, and is cut off for good when the file is opened.

use crate::intake::Place;
use history::Timestamp;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const BATCH: u32 = 1;
const ADVANCE: u32 = 2;
const HEAD_LEN: usize = 16;

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
    /// Records that are not written yet.
    held: Vec<u8>,
    len: u64,
    is_dirty: bool,
}

impl Journal {
    /// Opens a journal behind its last whole record.
    pub(crate) fn open(path: &Path, whole: u64) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).read(true).open(path)?;
        file.set_len(whole)?;
        let mut journal = Self { file, held: Vec::new(), len: whole, is_dirty: false };
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
        self.held.extend_from_slice(&len.to_le_bytes());
        self.held.extend_from_slice(&kind.to_le_bytes());
        let sum_at = self.held.len();
        self.held.extend_from_slice(&[0; 8]);
        self.held.extend_from_slice(head);
        self.held.extend_from_slice(rest);
        let sum = xxh3_64_with_seed(&self.held[sum_at + 8..], u64::from(kind));
        self.held[sum_at..sum_at + 8].copy_from_slice(&sum.to_le_bytes());
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

    /// The file, for whoever sees to it that what was written so far comes to disk.
    pub(crate) fn handle(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns when everything is on disk.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.is_dirty {
            self.file.sync_data()?;
            self.is_dirty = false;
        }
        Ok(())
    }
}

/// Gives every whole record, and returns how many bytes they are.
pub(crate) fn read(path: &Path, mut each: impl FnMut(Record) -> io::Result<()>) -> io::Result<u64> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut at = 0;
    while let Some((record, len)) = record(&bytes[at..]) {
        each(record)?;
        at += len;
    }
    Ok(at as u64)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn record(bytes: &[u8]) -> Option<(Record, usize)> {
    let (len, kind, sum) = (u32_at(bytes, 0)? as usize, u32_at(bytes, 4)?, u64_at(bytes, 8)?);
    let payload = bytes.get(HEAD_LEN..HEAD_LEN + len)?;
    if xxh3_64_with_seed(payload, u64::from(kind)) != sum {
        return None;
    }
    let record = match kind {
        BATCH => {
            let name_len = u32_at(payload, 0)? as usize;
            let name = payload.get(4..4 + name_len)?;
            let at = (u64_at(payload, 4 + name_len)?, u64_at(payload, 12 + name_len)?);
            let place = (name_len > 0)
                .then(|| Some(Place { source: String::from_utf8(name.to_vec()).ok()?, at }))
                .flatten();
            Record::Batch { place, bytes: payload.get(20 + name_len..)?.to_vec() }
        }
        ADVANCE => {
            let horizon = (u32_at(payload, 12)? == 1).then(|| time_at(payload, 16)).flatten();
            Record::Advance(time_at(payload, 0)?, horizon)
        }
        _ => return None,
    };
    Some((record, HEAD_LEN + len))
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

    fn records(path: &Path) -> (Vec<Record>, u64) {
        let mut records = Vec::new();
        let len = read(path, |record| {
            records.push(record);
            Ok(())
        })
        .expect("the file can be read");
        (records, len)
    }

    #[test]
    fn what_a_crash_cut_off_is_gone_and_the_rest_is_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("journal");
        let place = Place { source: "stream".to_owned(), at: (7, 1) };
        let time = Timestamp { physical: -3, logical: 2 };
        let mut journal = Journal::open(&path, 0).expect("a new file");
        journal.add_batch(Some(&place), b"one\n").expect("small");
        journal.add_advance(time, Some(5.into())).expect("small");
        journal.add_batch(None, b"").expect("small");
        journal.sync().expect("there is room");
        let written = std::fs::read(&path).expect("it is there");
        let all = [
            Record::Batch { place: Some(place), bytes: b"one\n".to_vec() },
            Record::Advance(time, Some(5.into())),
            Record::Batch { place: None, bytes: Vec::new() },
        ];
        assert_eq!(records(&path), (all.to_vec(), written.len() as u64));
        for len in 0..written.len() {
            std::fs::write(&path, &written[..len]).expect("there is room");
            let (found, whole) = records(&path);
            assert!(found.len() < all.len() && found == all[..found.len()], "{len}");
            let mut journal = Journal::open(&path, whole).expect("it is there");
            journal.add_advance(time, None).expect("small");
            journal.sync().expect("there is room");
            let (after, _) = records(&path);
            assert_eq!(after.len(), found.len() + 1);
            assert_eq!(after.last(), Some(&Record::Advance(time, None)));
        }
    }
}
