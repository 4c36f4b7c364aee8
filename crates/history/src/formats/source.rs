//! Where bytes come from: files, streams, directories; compressed or not.
//!
//! Files are read, never mapped: a file that is truncated while it is read is an error, where a map would end the process.

use super::compression::Compression;
use super::error::ReadError;
use super::{Fault, ReadOptions};
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

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
    /// How many bytes are still to come at least, where that is known: a regular file told its length.
    promised: u64,
}

/// How much is read at once, at first and at most.
const BLOCK_LEN_MIN: usize = 16 * 1024;
const BLOCK_LEN_MAX: usize = 256 * 1024;

impl<'a> Stream<'a> {
    /// A stream over a reader; compression is seen from its first bytes and undone.
    pub(super) fn new(reader: Box<dyn Read + 'a>) -> io::Result<Self> {
        Self::of_length(reader, 0)
    }

    /// A stream over a file.
    pub(super) fn of_file(file: File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Self::of_length(Box::new(file), if meta.is_file() { meta.len() } else { 0 })
    }

    fn of_length(reader: Box<dyn Read + 'a>, len: u64) -> io::Result<Self> {
        let mut plain = Self::over(reader, len);
        plain.fill_to(4)?;
        let compression = Compression::from_head(plain.waiting());
        if compression == Compression::None {
            return Ok(plain);
        }
        let rest = io::Cursor::new(plain.buffer).chain(plain.reader);
        Ok(Self::over(compression.decoder(rest)?, 0))
    }

    fn over(reader: Box<dyn Read + 'a>, promised: u64) -> Self {
        Self { reader, buffer: Vec::new(), taken: 0, at_end: false, block_len: BLOCK_LEN_MIN, promised }
    }

    /// The bytes that wait.
    pub(super) fn waiting(&self) -> &[u8] {
        &self.buffer[self.taken..]
    }

    /// How many bytes wait or are known to come.
    pub(super) fn sure(&self) -> u64 {
        self.waiting().len() as u64 + self.promised
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
        let len = self.waiting().len() + self.block_len;
        self.block_len = (self.block_len * 2).min(BLOCK_LEN_MAX);
        self.fill_to(len)
    }

    /// Reads until that many bytes wait, or the end.
    pub(super) fn fill_to(&mut self, len: usize) -> io::Result<()> {
        let missing = len.saturating_sub(self.waiting().len()) as u64;
        if missing == 0 || self.at_end {
            return Ok(());
        }
        self.buffer.drain(..self.taken);
        self.taken = 0;
        // What is not promised may never come, however much somebody asks for.
        self.buffer.try_reserve_exact(usize::try_from(missing.min(self.promised)).unwrap_or(usize::MAX))?;
        let came = self.reader.by_ref().take(missing).read_to_end(&mut self.buffer)? as u64;
        self.came(came, came < missing)
    }

    /// Notes how many bytes came, and whether they were the last.
    fn came(&mut self, len: u64, at_end: bool) -> io::Result<()> {
        self.promised = self.promised.saturating_sub(len);
        self.at_end |= at_end;
        if self.at_end && self.promised > 0 {
            return Err(io::Error::other(format!(
                "the file became shorter while it was read: {} bytes are missing",
                self.promised
            )));
        }
        Ok(())
    }

    /// All that waits and is still to come, up to a limit; a plain file may be as long as it is.
    pub(super) fn rest(mut self, options: &ReadOptions) -> io::Result<Vec<u8>> {
        let len_max = options.decompressed_max.max(self.waiting().len() as u64 + self.promised);
        self.buffer.try_reserve_exact(usize::try_from(self.promised).unwrap_or(usize::MAX))?;
        loop {
            self.fill_to(self.waiting().len() + REST_LEN)?;
            if self.waiting().len() as u64 > len_max {
                return Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    format!("it holds more than {len_max} bytes, and this format must be read as a whole"),
                ));
            }
            if self.at_end {
                self.buffer.drain(..self.taken);
                return Ok(self.buffer);
            }
            if options.interrupt.is_due(REST_LEN as u64) {
                return Err(io::Error::other("reading was interrupted"));
            }
        }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let waiting = self.waiting();
        if !waiting.is_empty() {
            let len = waiting.len().min(into.len());
            into[..len].copy_from_slice(&waiting[..len]);
            self.take(len);
            return Ok(len);
        }
        let len = if self.at_end { 0 } else { self.reader.read(into)? };
        self.came(len as u64, len == 0 && !into.is_empty())?;
        Ok(len)
    }
}

/// The bytes of one frame, as they come.
pub struct FrameBytes<'a> {
    reader: &'a mut dyn Read,
    len: u64,
    left: u64,
    sure: u64,
}

impl fmt::Debug for FrameBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrameBytes({} of {} left)", self.left, self.len)
    }
}

/// Why a frame cannot be read.
#[derive(Debug)]
pub enum FrameError {
    /// It is not what the format says.
    Fault(Fault),
    /// Its bytes stopped coming.
    Broken(io::Error),
}

impl From<Fault> for FrameError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<io::Error> for FrameError {
    fn from(error: io::Error) -> Self {
        Self::Broken(error)
    }
}

impl<'a> FrameBytes<'a> {
    /// A frame of `len` bytes that a reader begins with; `sure` of the bytes are known to be there.
    pub fn new(reader: &'a mut dyn Read, len: u64, sure: u64) -> Self {
        Self { reader, len, left: len, sure }
    }

    /// How many bytes it has.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many bytes are left.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// How many of them are known to come: a regular file told its length.
    pub fn sure(&self) -> u64 {
        self.sure.min(self.left)
    }

    /// The next bytes.
    pub fn take(&mut self, into: &mut [u8]) -> Result<(), FrameError> {
        let mut came = 0;
        while came < into.len() {
            let wanted = (into.len() - came).min(usize::try_from(self.left).unwrap_or(usize::MAX));
            let now = match self.reader.read(&mut into[came..came + wanted]) {
                Ok(0) => return Err(self.cut_off().into()),
                Ok(now) => now,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            came += now;
            self.left -= now as u64;
            self.sure = self.sure.saturating_sub(now as u64);
        }
        Ok(())
    }

    #[cold]
    fn cut_off(&self) -> Fault {
        let there = self.len - self.left;
        Fault::new(
            0,
            format!("the frame holds {} bytes, but {there} are there: the file is truncated", self.len),
            "all of it; copy or convert the original again",
        )
    }
}

/// How much of the rest is read between two questions whether to go on.
const REST_LEN: usize = 4 << 20;

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
    pub fn bytes_of(&self, file: usize) -> Result<Vec<u8>, Fault> {
        let unreadable =
            |error: io::Error| Fault::new(0, format!("cannot be read: {error}"), "a readable file");
        let opened = File::open(self.path_of(file)).map_err(unreadable)?;
        Stream::of_file(opened).and_then(|stream| stream.rest(&self.options)).map_err(unreadable)
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
