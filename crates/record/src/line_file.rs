//! A file that only ever holds whole lines, and has room for the last ones.
//!
//! **Invariant.** Up to `whole` the file consists of whole lines; behind it there is nothing.
//!
//! When the disk is full, the transactions in flight have already taken effect in the database, and others
//! may have read what they wrote: a history without them would look like a fault of the database. So space
//! is set aside at the beginning, in a file without a name that vanishes with the process. The first write
//! that fails gives it back, is tried again, and says that it was the last that should come.

use crate::error::RecordError;
use history::formats::jsonl;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

/// Room for the last transactions of some dozens of sessions.
const RESERVE_BYTES: usize = 1 << 20;

/// How a line was written.
#[derive(Debug)]
pub(crate) enum Written {
    /// There is room for more.
    Fine,
    /// It went into the reserve: there is no room for more than a few others.
    Last(io::Error),
}

pub(crate) struct LineFile {
    path: PathBuf,
    file: File,
    /// Bytes of whole lines; everything behind is cut off after a failed write.
    whole: u64,
    /// Space that is given back when there is no other.
    reserve: Option<File>,
}

impl LineFile {
    pub(crate) fn create(path: PathBuf, first: &str) -> Result<Self, RecordError> {
        let opened = File::create(&path).and_then(|_| {
            // Appending, so that a line after one that was cut off leaves no gap.
            let file = OpenOptions::new().append(true).open(&path)?;
            // A device or a pipe has no folder to keep space in, and does not run full like a disk.
            let reserve = if file.metadata()?.is_file() { Some(reserve(&path)?) } else { None };
            Ok((file, reserve))
        });
        let (file, reserve) = match opened {
            Ok(opened) => opened,
            Err(error) => return Err(RecordError::File { path, error }),
        };
        let mut this = Self { path, file, whole: 0, reserve };
        match this.write(first)? {
            Written::Fine => Ok(this),
            Written::Last(error) => Err(this.full(error)),
        }
    }

    pub(crate) fn write(&mut self, line: &str) -> Result<Written, RecordError> {
        let Err(error) = self.append(line) else { return Ok(Written::Fine) };
        // Closing it gives its space back.
        if self.reserve.take().is_none() {
            return Err(RecordError::File { path: self.path.clone(), error });
        }
        match self.append(line) {
            Ok(()) => Ok(Written::Last(error)),
            Err(error) => Err(RecordError::File { path: self.path.clone(), error }),
        }
    }

    fn append(&mut self, line: &str) -> io::Result<()> {
        let result = self.file.write_all(line.as_bytes());
        match result {
            Ok(()) => self.whole += line.len() as u64,
            // If even this fails the reader still refuses only the last, broken line.
            Err(_) => _ = self.file.set_len(self.whole),
        }
        result
    }

    /// What to say when a line was the last.
    pub(crate) fn full(&self, error: io::Error) -> RecordError {
        RecordError::Full { path: self.path.clone(), error }
    }

    /// Writes the file anew, with timestamps in its transactions' lines, and puts it in the old one's place.
    pub(crate) fn insert_timestamps(self, times: &[Option<(i64, i64)>]) -> Result<(), RecordError> {
        let new_path = self.path.with_extension("timestamped");
        let result =
            self.copy_with_timestamps(&new_path, times).and_then(|()| std::fs::rename(&new_path, &self.path));
        if result.is_err() {
            let _ = std::fs::remove_file(&new_path);
        }
        result.map_err(|error| RecordError::File { path: self.path.clone(), error })
    }

    fn copy_with_timestamps(
        &self,
        new_path: &std::path::Path,
        times: &[Option<(i64, i64)>],
    ) -> io::Result<()> {
        let old = io::BufReader::new(File::open(&self.path)?);
        let mut new = io::BufWriter::new(File::create(new_path)?);
        for (index, line) in old.lines().enumerate() {
            let line = line?;
            let time = index.checked_sub(1).and_then(|txn| times.get(txn).copied().flatten());
            match time {
                Some((start, commit)) => {
                    writeln!(new, "{}", jsonl::with_timestamps(&line, start.into(), commit.into()))?;
                }
                None => writeln!(new, "{line}")?,
            }
        }
        new.flush()
    }
}

fn reserve(path: &std::path::Path) -> io::Result<File> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = tempfile::tempfile_in(folder.unwrap_or(std::path::Path::new(".")))?;
    file.write_all(&vec![0; RESERVE_BYTES])?;
    Ok(file)
}
