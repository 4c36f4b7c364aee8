//! A history into a file or a stream.

use super::compression::{Compression, Encoder};
use super::{Format, Output, WriteDirectory};
use crate::History;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// Which part of a history a writer is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// From 0. The first part carries the header: initial values, level.
    pub index: u64,
    /// Whether no other part follows.
    pub last: bool,
    /// How many transactions the parts before it hold.
    pub transactions_before: u64,
    /// How many operations the parts before it hold.
    pub operations_before: u64,
}

impl Part {
    /// The whole history in one part.
    pub const WHOLE: Self = Self { index: 0, last: true, transactions_before: 0, operations_before: 0 };

    /// Whether it is the first part.
    pub fn is_first(self) -> bool {
        self.index == 0
    }
}

/// Why a history could not be written.
#[derive(Debug)]
pub enum WriteError {
    /// The format has no way to say this.
    CannotHold {
        /// The format.
        format: Format,
        /// What it cannot hold, as a noun phrase: "deletes", "client clocks".
        what: String,
        /// The name of the first transaction that has it; empty if it concerns the whole history.
        transaction: String,
    },
    /// The format is only read.
    NotWritable {
        /// The format.
        format: Format,
    },
    /// The format is a directory of files, which no stream can hold.
    NeedsDirectory {
        /// The format.
        format: Format,
    },
    /// The file could not be written.
    Io {
        /// The file, or the name of the stream.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl WriteError {
    /// A format that cannot hold something a transaction has.
    pub fn cannot_hold(format: Format, what: impl Into<String>, transaction: impl fmt::Display) -> Self {
        Self::CannotHold { format, what: what.into(), transaction: transaction.to_string() }
    }

    fn at(self, place: &Path) -> Self {
        match self {
            Self::Io { source, .. } => Self::Io { path: place.to_owned(), source },
            other => other,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(source: io::Error) -> Self {
        Self::Io { path: PathBuf::new(), source }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotHold { format, what, transaction } if transaction.is_empty() => {
                write!(f, "the format {format} cannot hold {what}; jsonl can hold every history")
            }
            Self::CannotHold { format, what, transaction } => write!(
                f,
                "the format {format} cannot hold {what} (first in transaction {transaction}); \
                 jsonl can hold every history"
            ),
            Self::NotWritable { format } => {
                let writable: Vec<_> = Format::ALL
                    .iter()
                    .filter(|other| other.is_writable())
                    .map(|other| other.name())
                    .collect();
                write!(
                    f,
                    "the format {format} can be read but not written; choose one of {}",
                    writable.join(", ")
                )
            }
            Self::NeedsDirectory { format } => {
                write!(
                    f,
                    "the format {format} is a directory of files: give the path of a directory to create"
                )
            }
            Self::Io { path, source } if source.kind() == io::ErrorKind::StorageFull => {
                write!(f, "{}: the disk is full", path.display())
            }
            Self::Io { path, source } => write!(f, "cannot write {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Writes a history to a file, compressed if its name ends in `.gz` or `.zst`. The file appears when it is
/// complete: a failed write leaves nothing behind and an older file untouched. Where the format is a directory,
/// the path is one that does not exist yet, or is empty.
pub fn write_path(history: &History, format: Format, path: &Path) -> Result<(), WriteError> {
    if let Output::Directory(write) = format.row().output {
        return write_directory(history, write, path);
    }
    let mut writing = Writing::create(path)?;
    writing.part(history, format, Part::WHOLE)?;
    writing.finish()
}

/// Writes the files of a directory beside its place and puts them there when all are complete.
fn write_directory(history: &History, write: WriteDirectory, path: &Path) -> Result<(), WriteError> {
    let unfinished = unfinished_path(path);
    let failed = |source| WriteError::Io { path: path.to_owned(), source };
    std::fs::create_dir(&unfinished).map_err(failed)?;
    let result =
        write(history, &mut |name, bytes| std::fs::write(unfinished.join(name), bytes).map_err(failed))
            .and_then(|()| std::fs::rename(&unfinished, path).map_err(failed));
    if result.is_err() {
        // What cannot be removed is left; the error that brought us here is the one to report.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    result
}

fn unfinished_path(path: &Path) -> PathBuf {
    // A path that ends in a separator names the same directory without it.
    let mut unfinished = path.components().as_path().as_os_str().to_owned();
    unfinished.push(format!(".{}.unfinished", std::process::id()));
    PathBuf::from(unfinished)
}

/// Writes a history to a stream, not compressed.
pub fn write_stream(history: &History, format: Format, out: &mut dyn io::Write) -> Result<(), WriteError> {
    match format.row().output {
        Output::No => Err(WriteError::NotWritable { format }),
        Output::Directory(_) => Err(WriteError::NeedsDirectory { format }),
        Output::Whole(write) | Output::Parts(write) => write(history, Part::WHOLE, out),
    }
}

/// Writes a history of a text format as a string.
pub fn write_string(history: &History, format: Format) -> Result<String, WriteError> {
    let mut bytes = Vec::new();
    write_stream(history, format, &mut bytes)?;
    let no_text = |error| WriteError::from(io::Error::new(io::ErrorKind::InvalidData, error));
    String::from_utf8(bytes).map_err(no_text)
}

/// A file while it is written, part by part. It appears under its name when [`Writing::finish`] is called;
/// dropped before that, it leaves nothing behind and an older file untouched.
pub struct Writing<'a> {
    out: Encoder<'a>,
    /// What messages call it.
    path: PathBuf,
    /// Where the bytes go until the file is complete.
    unfinished: Option<PathBuf>,
}

const BUFFER_LEN: usize = 256 * 1024;

impl<'a> Writing<'a> {
    /// A file, compressed if its name ends in `.gz` or `.zst`.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let failed = |source| WriteError::Io { path: path.to_owned(), source };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        // A device or a pipe is written in place; a regular file is replaced when all is well.
        let in_place = std::fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        let unfinished = (!in_place).then(|| unfinished_path(path));
        let file = File::create(unfinished.as_deref().unwrap_or(path)).map_err(failed)?;
        let mut writing = Self { out: Encoder::Closed, path: path.to_owned(), unfinished };
        let buffered = BufWriter::with_capacity(BUFFER_LEN, Box::new(file) as Box<dyn io::Write>);
        writing.out = Compression::from_file_name(name).encoder(buffered).map_err(failed)?;
        Ok(writing)
    }

    /// A stream, not compressed, and what messages call it.
    pub fn over(name: &str, out: Box<dyn io::Write + 'a>) -> Self {
        let out = Encoder::Plain(BufWriter::with_capacity(BUFFER_LEN, out));
        Self { out, path: PathBuf::from(name), unfinished: None }
    }

    /// Writes the next part. A format that is not written in parts takes one, [`Part::WHOLE`].
    pub fn part(&mut self, history: &History, format: Format, part: Part) -> Result<(), WriteError> {
        let Some(out) = self.out.writer() else { return Ok(()) };
        let result = match format.row().output {
            Output::No => Err(WriteError::NotWritable { format }),
            Output::Directory(_) => Err(WriteError::NeedsDirectory { format }),
            Output::Whole(write) | Output::Parts(write) => write(history, part, out),
        };
        result.map_err(|error| error.at(&self.path))
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<(), WriteError> {
        let failed = |source| WriteError::Io { path: self.path.clone(), source };
        let out = std::mem::replace(&mut self.out, Encoder::Closed);
        if !out.finish().map_err(failed)? {
            return Ok(());
        }
        if let Some(unfinished) = self.unfinished.take() {
            std::fs::rename(&unfinished, &self.path).map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let Some(unfinished) = &self.unfinished {
            // What cannot be removed is left; the error that brought us here is the one to report.
            let _ = std::fs::remove_file(unfinished);
        }
    }
}
