//! Where bytes come from: mapped files, streams, directories; compressed or not.

use super::error::ReadError;
use super::map;
use super::{Fault, ReadOptions};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};

/// All bytes of a file, mapped or read.
#[derive(Debug)]
pub struct Bytes(Inner);

#[derive(Debug)]
enum Inner {
    Mapped(memmap2::Mmap),
    Read(Vec<u8>),
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Inner::Mapped(map) => map,
            Inner::Read(bytes) => bytes,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Inner::Read(bytes))
    }
}

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip.
    Gzip,
    /// Zstandard.
    Zstd,
}

impl Compression {
    /// What a file's first bytes say.
    pub fn from_head(head: &[u8]) -> Self {
        match head {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// What a file's name asks for.
    pub fn from_file_name(name: &str) -> Self {
        match name {
            name if name.ends_with(".gz") => Self::Gzip,
            name if name.ends_with(".zst") => Self::Zstd,
            _ => Self::None,
        }
    }
}

/// A stream of decompressed bytes that can be looked at before it is taken.
///
/// Bytes wait in `buffer[taken..]`; the buffer grows only when a reader asks for more at once than it holds.
pub(super) struct Stream<'a> {
    reader: Box<dyn Read + 'a>,
    buffer: Vec<u8>,
    taken: usize,
    at_end: bool,
    /// How much is read next: little at first, for most files are small.
    block_len: usize,
    pub(super) compression: Compression,
}

/// How much is read at once, at first and at most.
const BLOCK_LEN_MIN: usize = 16 * 1024;
const BLOCK_LEN_MAX: usize = 256 * 1024;

impl<'a> Stream<'a> {
    /// A stream over a reader; compression is seen from its first bytes and undone.
    pub(super) fn new(reader: Box<dyn Read + 'a>) -> io::Result<Self> {
        let mut plain = Self::over(reader, Compression::None);
        plain.fill_to(4)?;
        let compression = Compression::from_head(plain.waiting());
        let rest = io::Cursor::new(plain.waiting().to_vec()).chain(plain.reader);
        let reader: Box<dyn Read + 'a> = match compression {
            Compression::None => Box::new(rest),
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(rest)),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(rest)?),
        };
        Ok(Self::over(reader, compression))
    }

    fn over(reader: Box<dyn Read + 'a>, compression: Compression) -> Self {
        Self { reader, buffer: Vec::new(), taken: 0, at_end: false, block_len: BLOCK_LEN_MIN, compression }
    }

    /// The bytes that wait.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// Whether no more bytes will come than those that wait.
    pub(super) fn is_at_end(&self) -> bool {
        self.at_end
    }

    /// Takes bytes away from the front.
    pub(super) fn take(&mut self, len: usize) {
        self.taken += len;
    }

    /// Reads one block more.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        self.buffer.drain(..self.taken);
        self.taken = 0;
        let start = self.buffer.len();
        self.buffer.resize(start + self.block_len, 0);
        self.block_len = (self.block_len * 2).min(BLOCK_LEN_MAX);
        let mut filled = start;
        let result = loop {
            match self.reader.read(&mut self.buffer[filled..]) {
                Ok(0) => {
                    self.at_end = filled < self.buffer.len();
                    break Ok(());
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        self.buffer.truncate(filled);
        result
    }

    /// Reads until that many bytes wait, or the end.
    pub(super) fn fill_to(&mut self, len: usize) -> io::Result<()> {
        while self.waiting().len() < len && !self.at_end {
            self.fill()?;
        }
        Ok(())
    }
}

/// The files of a directory, in natural order (`T2` before `T10`), without those in folders below it.
#[derive(Debug)]
pub struct Directory {
    options: ReadOptions,
    path: PathBuf,
    names: Vec<String>,
}

impl Directory {
    pub(super) fn open(path: &Path, options: &ReadOptions) -> Result<Self, ReadError> {
        let list = || -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(path)? {
                let entry = entry?;
                let is_file = std::fs::metadata(entry.path()).is_ok_and(|meta| meta.is_file());
                if let (true, Ok(name)) = (is_file, entry.file_name().into_string()) {
                    names.push(name);
                }
            }
            Ok(names)
        };
        let mut names = list().map_err(|source| ReadError::open(path, source))?;
        names.sort_by_cached_key(|name| natural_key(name));
        Ok(Self { options: options.clone(), path: path.to_owned(), names })
    }

    /// The files' names.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The path of one of the files.
    pub fn path_of(&self, file: usize) -> PathBuf {
        self.path.join(&self.names[file])
    }

    /// How many bytes the files hold together, as they lie on the disk.
    pub fn len_bytes(&self) -> u64 {
        let len = |file| std::fs::metadata(self.path_of(file)).map_or(0, |meta| meta.len());
        (0..self.names.len()).map(len).sum()
    }

    /// All bytes of one of the files, decompressed.
    pub fn bytes_of(&self, file: usize) -> Result<Bytes, Fault> {
        let unreadable =
            |error: io::Error| Fault::new(0, format!("cannot be read: {error}"), "a readable file");
        let path = self.path_of(file);
        let opened = File::open(&path).map_err(unreadable)?;
        whole_file(opened, &self.options).map_err(unreadable)
    }
}

/// Splits a name into text and numbers, so that numbers compare as numbers.
fn natural_key(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0u64)];
    let mut in_number = false;
    for ch in name.chars() {
        let last = parts.last_mut().expect("a part is pushed before the loop");
        match ch.to_digit(10) {
            Some(digit) => {
                last.1 = last.1.saturating_mul(10).saturating_add(u64::from(digit));
                in_number = true;
            }
            None if in_number => {
                parts.push((ch.to_string(), 0));
                in_number = false;
            }
            None => last.0.push(ch),
        }
    }
    parts
}

/// A file as one piece: mapped if it is plain and regular, else read, up to a limit.
pub(super) fn whole_file(file: File, options: &ReadOptions) -> io::Result<Bytes> {
    let meta = file.metadata()?;
    if meta.is_file() && meta.len() > 0 {
        let map = map::map(&file)?;
        if Compression::from_head(&map) == Compression::None {
            return Ok(Bytes(Inner::Mapped(map)));
        }
    }
    let mut stream = Stream::new(Box::new(file))?;
    rest_of(&mut stream, options).map(Bytes::from)
}

/// All that a stream still holds, up to a limit.
pub(super) fn rest_of(stream: &mut Stream<'_>, options: &ReadOptions) -> io::Result<Vec<u8>> {
    let len_max = options.decompressed_max;
    let mut bytes = stream.waiting().to_vec();
    loop {
        let read = stream.reader.by_ref().take(REST_LEN).read_to_end(&mut bytes)? as u64;
        if bytes.len() as u64 > len_max {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it holds more than {len_max} bytes, and this format must be read as a whole"),
            ));
        }
        if read < REST_LEN {
            return Ok(bytes);
        }
        if options.interrupt.is_due(REST_LEN) {
            return Err(io::Error::other("reading was interrupted"));
        }
    }
}

/// How much of the rest is read between two questions whether to go on.
const REST_LEN: u64 = 4 << 20;
