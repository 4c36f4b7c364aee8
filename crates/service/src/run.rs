//! A sorted file of versions: one piece of the spill.
//!
//! ```text
//! file   = blocks, index, filter, foot
//! block  = records in order, about [`BLOCK_LEN`] bytes
//! record = length of the key: u32, key, time: 12 bytes, length of the content: u32, content
//! index  = for each block: length of its first key: u32, that key, offset: u64, length: u32, XXH3-64 of the block: u64
//! filter = bits, eight bytes at a time
//! foot   = offset of the index: u64, offset of the filter: u64, records: u64, XXH3-64 of everything from the index on: u64
//! ```
//!
//! Every byte is under a sum that is looked at before the byte counts: what a damaged file would say is an error.
//!
//! Records are in the order of keys and of each key in the order of times; at equal times, the one that was put
//! last is last. A file is written once and never changed. In memory: the first key of each block, and a filter
//! (about [`FILTER_BITS`] bits a key) that tells most absent keys without a look at the disk.

use replay::online::{ColdKey, ColdRecord, ColdTime};
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
    sum: u64,
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

const REMEDY: &str =
    "without it findings could be wrong: restore it from a backup, or start with another state folder";

fn damaged(path: &Path) -> io::Error {
    let told = format!("{}: this file of spilled versions is damaged; {REMEDY}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, told)
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
        let too_long =
            |_| io::Error::new(io::ErrorKind::InvalidInput, "a key or a value of 4 GiB cannot be spilled");
        let key_len = u32::try_from(key.len()).map_err(too_long)?;
        let content_len = u32::try_from(content.len()).map_err(too_long)?;
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
        self.block.extend_from_slice(&content_len.to_le_bytes());
        self.block.extend_from_slice(content);
        self.records += 1;
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.out.write_all(&self.block)?;
        let len = u32::try_from(self.block.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "a block of 4 GiB cannot be spilled"))?;
        let (first, sum) = (std::mem::take(&mut self.first), xxh3_64(&self.block));
        self.blocks.push(Block { first, offset: self.offset, len, sum });
        self.offset += u64::from(len);
        self.block.clear();
        Ok(())
    }

    /// Completes the file. It need not be on disk when this returns.
    pub(crate) fn finish(mut self) -> io::Result<Run> {
        self.end_block()?;
        let mut tail = Vec::new();
        for block in &self.blocks {
            tail.extend_from_slice(&(block.first.len() as u32).to_le_bytes());
            tail.extend_from_slice(&block.first);
            tail.extend_from_slice(&block.offset.to_le_bytes());
            tail.extend_from_slice(&block.len.to_le_bytes());
            tail.extend_from_slice(&block.sum.to_le_bytes());
        }
        let filter_at = self.offset + tail.len() as u64;
        let filter = filter_of(&self.hashes);
        for word in &filter {
            tail.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.offset, filter_at, self.records] {
            tail.extend_from_slice(&word.to_le_bytes());
        }
        let sum = xxh3_64(&tail);
        tail.extend_from_slice(&sum.to_le_bytes());
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
    let key_len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let key = bytes.get(4..4 + key_len)?;
    let at = 4 + key_len;
    let time = ColdTime(bytes.get(at..at + 12)?.try_into().ok()?);
    let len = u32::from_le_bytes(bytes.get(at + 12..at + 16)?.try_into().ok()?) as usize;
    let content = bytes.get(at + 16..at + 16 + len)?;
    Some((Entry { key, time, content }, at + 16 + len))
}

impl Run {
    /// Opens a finished file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}; {REMEDY}", path.display()))
        })?;
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
        // All but the sum itself.
        let mut tail = vec![0; (bytes - 8 - index_at) as usize];
        file.read_exact_at(&mut tail, index_at)?;
        if xxh3_64(&tail) != sum {
            return Err(damaged(path));
        }
        tail.truncate((foot_at - index_at) as usize);
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
        match self.file.read_exact_at(into, block.offset) {
            Ok(()) if xxh3_64(into) == block.sum => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => Err(error),
            _ => Err(damaged(&self.path)),
        }
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
            while !rest.is_empty() {
                let (entry, len) = entry(rest).ok_or_else(|| damaged(&self.path))?;
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
        let rest = &self.block[self.at..];
        self.at += match entry(rest) {
            Some((_, len)) => len,
            None if rest.is_empty() => 0,
            None => return Err(damaged(&self.run.path)),
        };
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
        let len = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
        let first = bytes.get(4..4 + len)?.into();
        let rest = bytes.get(4 + len..24 + len)?;
        let offset = u64::from_le_bytes(rest[..8].try_into().ok()?);
        let block_len = u32::from_le_bytes(rest[8..12].try_into().ok()?);
        let sum = u64::from_le_bytes(rest[12..].try_into().ok()?);
        blocks.push(Block { first, offset, len: block_len, sum });
        bytes = &bytes[24 + len..];
    }
    Some(blocks)
}
