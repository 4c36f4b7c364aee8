//! A sorted file of versions: one piece of the spill.
//!
//! ```text
//! file   = blocks, index, filter, foot
//! block  = records in order, about [`BLOCK_LEN`] bytes
//! record = length of the key: u16, key, time: 12 bytes, length of the content: u32, content
//! index  = for each block: length of its first key: u16, that key, offset: u64, length: u32
//! filter = bits, eight bytes at a time
//! foot   = offset of the index: u64, offset of the filter: u64, records: u64, XXH3-64 of index and filter: u64
//! ```
//!
//! Records are in the order of keys and of each key in the order of times; at equal times, the one that was put
//! last is last. A file is written once and never changed. In memory: the first key of each block, and a filter
//! (about [`FILTER_BITS`] bits a key) that tells most absent keys without a look at the disk.

use checker::timestamped::online::{ColdKey, ColdRecord, ColdTime};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

const BLOCK_LEN: usize = 4096;
const FILTER_BITS: usize = 10;
const FILTER_PROBES: u64 = 6;
const FOOT_LEN: u64 = 32;

struct Block {
    first: Box<[u8]>,
    offset: u64,
    len: u32,
}

/// A finished file.
pub(crate) struct Run {
    pub(crate) path: PathBuf,
    file: File,
    blocks: Vec<Block>,
    filter: Vec<u64>,
    /// Its length.
    pub(crate) bytes: u64,
    pub(crate) records: u64,
}

/// A file being written.
pub(crate) struct RunWriter {
    path: PathBuf,
    out: io::BufWriter<File>,
    block: Vec<u8>,
    first: Box<[u8]>,
    blocks: Vec<Block>,
    offset: u64,
    hashes: Vec<u64>,
    records: u64,
}

fn damaged(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: the spill file is damaged", path.display()))
}

impl RunWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            out: io::BufWriter::with_capacity(1 << 18, File::create(path)?),
            block: Vec::with_capacity(2 * BLOCK_LEN),
            first: Box::default(),
            blocks: Vec::new(),
            offset: 0,
            hashes: Vec::new(),
            records: 0,
        })
    }

    /// Adds the next record in order.
    pub(crate) fn add(&mut self, key: &[u8], time: &ColdTime, content: &[u8]) -> io::Result<()> {
        let key_len = u16::try_from(key.len()).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidInput, "a key of 64 KiB or more cannot be spilled")
        })?;
        if self.block.len() >= BLOCK_LEN {
            self.end_block()?;
        }
        if self.block.is_empty() {
            self.first = key.into();
        }
        let hash = xxh3_64(key);
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
        self.block.extend_from_slice(&key_len.to_le_bytes());
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(&time.0);
        self.block.extend_from_slice(&(content.len() as u32).to_le_bytes());
        self.block.extend_from_slice(content);
        self.records += 1;
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.out.write_all(&self.block)?;
        let len = self.block.len() as u32;
        self.blocks.push(Block { first: std::mem::take(&mut self.first), offset: self.offset, len });
        self.offset += u64::from(len);
        self.block.clear();
        Ok(())
    }

    /// Completes the file. It need not be on disk when this returns.
    pub(crate) fn finish(mut self) -> io::Result<Run> {
        self.end_block()?;
        let mut tail = Vec::new();
        for block in &self.blocks {
            tail.extend_from_slice(&(block.first.len() as u16).to_le_bytes());
            tail.extend_from_slice(&block.first);
            tail.extend_from_slice(&block.offset.to_le_bytes());
            tail.extend_from_slice(&block.len.to_le_bytes());
        }
        let filter_at = self.offset + tail.len() as u64;
        let filter = filter_of(&self.hashes);
        for word in &filter {
            tail.extend_from_slice(&word.to_le_bytes());
        }
        let sum = xxh3_64(&tail);
        for word in [self.offset, filter_at, self.records, sum] {
            tail.extend_from_slice(&word.to_le_bytes());
        }
        self.out.write_all(&tail)?;
        drop(self.out.into_inner().map_err(io::IntoInnerError::into_error)?);
        let bytes = self.offset + tail.len() as u64;
        let file = File::open(&self.path)?;
        Ok(Run { path: self.path, file, blocks: self.blocks, filter, bytes, records: self.records })
    }
}

fn filter_of(hashes: &[u64]) -> Vec<u64> {
    let mut filter = vec![0u64; (hashes.len() * FILTER_BITS).div_ceil(64).max(1)];
    let bits = filter.len() as u64 * 64;
    for &hash in hashes {
        for bit in probes(hash, bits) {
            filter[(bit / 64) as usize] |= 1 << (bit % 64);
        }
    }
    filter
}

fn probes(hash: u64, bits: u64) -> impl Iterator<Item = u64> {
    let step = hash.rotate_left(32) | 1;
    (0..FILTER_PROBES).map(move |probe| hash.wrapping_add(probe.wrapping_mul(step)) % bits)
}

/// A record inside a block.
#[derive(Clone, Copy)]
pub(crate) struct Entry<'a> {
    pub(crate) key: &'a [u8],
    pub(crate) time: ColdTime,
    pub(crate) content: &'a [u8],
}

fn entry(bytes: &[u8]) -> Option<(Entry<'_>, usize)> {
    let key_len = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) as usize;
    let key = bytes.get(2..2 + key_len)?;
    let at = 2 + key_len;
    let time = ColdTime(bytes.get(at..at + 12)?.try_into().ok()?);
    let len = u32::from_le_bytes(bytes.get(at + 12..at + 16)?.try_into().ok()?) as usize;
    let content = bytes.get(at + 16..at + 16 + len)?;
    Some((Entry { key, time, content }, at + 16 + len))
}

impl Run {
    /// Opens a finished file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        let bytes = file.metadata()?.len();
        let foot_at = bytes.checked_sub(FOOT_LEN).ok_or_else(|| damaged(path))?;
        let mut foot = [0; FOOT_LEN as usize];
        file.read_exact_at(&mut foot, foot_at)?;
        let word = |index: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&foot[8 * index..8 * index + 8]);
            u64::from_le_bytes(word)
        };
        let (index_at, filter_at, records, sum) = (word(0), word(1), word(2), word(3));
        if index_at > filter_at || filter_at > foot_at {
            return Err(damaged(path));
        }
        let mut tail = vec![0; (foot_at - index_at) as usize];
        file.read_exact_at(&mut tail, index_at)?;
        if xxh3_64(&tail) != sum {
            return Err(damaged(path));
        }
        let (index, filter) = tail.split_at((filter_at - index_at) as usize);
        let blocks = index_of(index).ok_or_else(|| damaged(path))?;
        let filter =
            filter.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().unwrap_or_default()));
        Ok(Self { path: path.to_owned(), file, blocks, filter: filter.collect(), bytes, records })
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        self.filter.len() * 8 + self.blocks.iter().map(|block| block.first.len() + 40).sum::<usize>()
    }

    fn block(&self, index: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let block = &self.blocks[index];
        into.clear();
        into.resize(block.len as usize, 0);
        self.file.read_exact_at(into, block.offset)
    }

    /// The newest version of a key at or before a time.
    pub(crate) fn newest(
        &self,
        key: &[u8],
        until: ColdTime,
        space: &mut Vec<u8>,
    ) -> io::Result<Option<ColdRecord>> {
        let bits = self.filter.len() as u64 * 64;
        let holds = |bit: u64| self.filter[(bit / 64) as usize] >> (bit % 64) & 1 == 1;
        if !probes(xxh3_64(key), bits).all(holds) {
            return Ok(None);
        }
        // The last block that begins at or before the key, and before it those that begin with the key itself.
        let mut index = self.blocks.partition_point(|block| &*block.first <= key);
        while let Some(before) = index.checked_sub(1) {
            index = before;
            self.block(index, space)?;
            let mut found: Option<Entry<'_>> = None;
            let mut rest: &[u8] = space;
            while let Some((entry, len)) = entry(rest) {
                if entry.key > key {
                    break;
                }
                if entry.key == key && entry.time <= until {
                    found = Some(entry);
                }
                rest = &rest[len..];
            }
            if let Some(Entry { time, content, .. }) = found {
                return Ok(Some(ColdRecord { key: ColdKey(key.into()), time, content: content.into() }));
            }
            if *self.blocks[index].first < *key {
                break;
            }
        }
        Ok(None)
    }

    /// Reads all records from a key on.
    pub(crate) fn from<'a>(&'a self, key: Option<&[u8]>) -> io::Result<Cursor<'a>> {
        let index =
            key.map_or(0, |key| self.blocks.partition_point(|block| &*block.first < key).saturating_sub(1));
        let mut cursor = Cursor { run: self, index, block: Vec::new(), at: 0 };
        if index < self.blocks.len() {
            self.block(index, &mut cursor.block)?;
        }
        while let (Some(key), Some(entry)) = (key, cursor.get()) {
            if entry.key >= key {
                break;
            }
            cursor.step()?;
        }
        Ok(cursor)
    }
}

/// A place in a run, on its way through all records.
pub(crate) struct Cursor<'a> {
    run: &'a Run,
    index: usize,
    block: Vec<u8>,
    at: usize,
}

impl Cursor<'_> {
    /// The record it is at.
    pub(crate) fn get(&self) -> Option<Entry<'_>> {
        entry(&self.block[self.at..]).map(|(entry, _)| entry)
    }

    /// Goes to the next.
    pub(crate) fn step(&mut self) -> io::Result<()> {
        self.at += entry(&self.block[self.at..]).map_or(0, |(_, len)| len);
        if self.at >= self.block.len() && self.index + 1 < self.run.blocks.len() {
            self.index += 1;
            self.at = 0;
            self.run.block(self.index, &mut self.block)?;
        }
        Ok(())
    }
}

fn index_of(mut bytes: &[u8]) -> Option<Vec<Block>> {
    let mut blocks = Vec::new();
    while !bytes.is_empty() {
        let len = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?) as usize;
        let first = bytes.get(2..2 + len)?.into();
        let offset = u64::from_le_bytes(bytes.get(2 + len..10 + len)?.try_into().ok()?);
        let block_len = u32::from_le_bytes(bytes.get(10 + len..14 + len)?.try_into().ok()?);
        blocks.push(Block { first, offset, len: block_len });
        bytes = &bytes[14 + len..];
    }
    Some(blocks)
}
