//! From one format into another.
//!
//! What: where the input comes in pieces (lines, frames) and the output can be written in parts, transactions
//! flow through a builder that hands out a part whenever it holds enough; else the history is held whole.
//! Invariant: the parts, one after the other, are the history: a session's transactions keep their numbers
//! across parts, because the builder carries each session's count on.
//! Cost: memory for one part and one count a session, whatever the size of the file, and what it takes to refuse an id
//! that comes twice (see [`IdSet`](crate::IdSet): little where ids are counted). A header's initial key `"1"` is
//! taken for the integer or the string by what the first part uses (see
//! [`Builder::initial_named`](crate::Builder::initial_named)).

use super::read::{Loaded, Reading, Warned};
use super::source::Stream;
use super::write::{Part, WriteError, Writing, write_path};
use super::{Format, Input, Output, ReadError, ReadOptions};
use std::fmt;
use std::io;
use std::path::Path;

/// What a conversion did.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The format of the input.
    pub from: Format,
    /// The format of the output.
    pub to: Format,
    /// How many transactions there are.
    pub transactions: u64,
    /// How many operations.
    pub operations: u64,
    /// In how many parts they were written.
    pub parts: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
    /// What was refused and left out, where that was allowed.
    pub warnings: Warned,
}

/// Why a conversion failed.
#[derive(Debug)]
pub enum ConvertError {
    /// The input could not be read.
    Read(ReadError),
    /// The output could not be written.
    Write(WriteError),
}

impl fmt::Display for ConvertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ConvertError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Write(error) => Some(error),
        }
    }
}

impl From<ReadError> for ConvertError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<WriteError> for ConvertError {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

/// Where a conversion reads.
pub enum Origin<'a> {
    /// A file, or a directory where the format is one.
    Path(&'a Path),
    /// A stream and what messages call it.
    Stream(&'a str, Box<dyn io::Read + 'a>),
}

/// Where a conversion writes.
pub enum Target<'a> {
    /// A file, compressed if its name ends in `.gz` or `.zst`.
    Path(&'a Path),
    /// A stream, not compressed, and what messages call it.
    Stream(&'a str, Box<dyn io::Write + 'a>),
}

impl<'a> Target<'a> {
    fn open(self) -> Result<Writing<'a>, WriteError> {
        match self {
            Self::Path(path) => Writing::create(path),
            Self::Stream(name, out) => Ok(Writing::over(name, out)),
        }
    }
}

/// Converts a history.
pub fn convert(
    origin: Origin<'_>,
    options: &ReadOptions,
    target: Target<'_>,
    to: Format,
) -> Result<Converted, ConvertError> {
    if !to.is_writable() {
        return Err(WriteError::NotWritable { format: to }.into());
    }
    let in_parts = matches!(to.row().output, Output::Parts(_));
    let (mut reading, from) = match origin {
        Origin::Path(path) if path.is_dir() => {
            return convert_whole(super::read_path(path, options)?, target, to);
        }
        Origin::Path(path) => {
            let mut reading = Reading::new(path, options);
            let from = reading.open(path)?;
            (reading, from)
        }
        Origin::Stream(name, stream) => {
            let mut reading = Reading::new(Path::new(name), options);
            let from = reading.attach(Stream::new(stream))?;
            (reading, from)
        }
    };
    if in_parts && matches!(from.row().input, Input::Lines(_) | Input::Frames(..)) {
        return convert_parts(reading, from, target, to);
    }
    reading.all(from)?;
    convert_whole(reading.finish()?, target, to)
}

fn convert_whole(loaded: Loaded, target: Target<'_>, to: Format) -> Result<Converted, ConvertError> {
    match target {
        Target::Path(path) => write_path(&loaded.history, to, path)?,
        Target::Stream(..) => {
            let mut writing = target.open()?;
            writing.part(&loaded.history, to, Part::WHOLE)?;
            writing.finish()?;
        }
    }
    Ok(Converted {
        from: loaded.format,
        to,
        transactions: loaded.history.len() as u64,
        operations: loaded.history.op_count() as u64,
        parts: 1,
        bytes: loaded.bytes,
        warnings: loaded.warnings,
    })
}

fn convert_parts(
    mut reading: Reading<'_>,
    from: Format,
    target: Target<'_>,
    to: Format,
) -> Result<Converted, ConvertError> {
    reading.remember_ids();
    let mut writing = target.open()?;
    let (mut transactions, mut operations, mut parts) = (0, 0, 0);
    let mut more = true;
    while more {
        more = reading.step(from)?;
        if more && !reading.has_part() {
            continue;
        }
        let history = reading.take_part()?;
        let part = Part {
            index: parts,
            last: !more,
            transactions_before: transactions,
            operations_before: operations,
        };
        writing.part(&history, to, part)?;
        transactions += history.len() as u64;
        operations += history.op_count() as u64;
        parts += 1;
    }
    let Loaded { bytes, warnings, .. } = reading.finish()?;
    writing.finish()?;
    Ok(Converted { from, to, transactions, operations, parts, bytes, warnings })
}
