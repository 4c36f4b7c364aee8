//! Files, directories, pipes and standard input, read until a limit is passed.

use super::{Guard, Patient, opened};
use crate::{Error, History, Level, refusal};
use checker::{Orders, Undecided};
use history::Interrupt;
use history::formats::{Loaded, ReadError, ReadOptions, read_parts, read_path, read_stream};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Reads a file within the limits of a guard.
///
/// # Errors
/// If there is no such file, it holds no history, or a limit is passed.
pub fn read(file: &Path, reading: &ReadOptions, guard: &Guard) -> Result<Loaded, Error> {
    let started = Instant::now();
    read_until(file, reading, guard.interrupt()).map_err(|error| match error {
        ReadError::Interrupted { transactions, operations, sessions, bytes, level, .. } => {
            let size = (transactions, operations, sessions);
            let name = file.display().to_string();
            Error::Ended(Box::new(opened::ended(name, level, bytes, size, guard, started)))
        }
        error => error.into(),
    })
}

/// Reads a file, a directory, or standard input, until an interrupt is due; a stream in which nothing comes is left then,
/// too.
///
/// # Errors
/// If there is no such file, it holds no history, or the interrupt is due.
pub fn read_until(file: &Path, reading: &ReadOptions, interrupt: Interrupt) -> Result<Loaded, ReadError> {
    let options = ReadOptions { interrupt: interrupt.clone(), ..reading.clone() };
    if is_standard_stream(file) {
        return read_stream("standard input", Patient::new(|| Ok(io::stdin()), interrupt), &options);
    }
    let is_stream = std::fs::metadata(file).is_ok_and(|meta| !meta.is_file() && !meta.is_dir());
    if !is_stream {
        return read_path(file, &options);
    }
    let path = file.to_owned();
    read_stream(&file.to_string_lossy(), Patient::new(|| File::open(path), interrupt), &options)
}

/// What an accepted level asks for that files, which are parts of one history, do not have: session order or client clocks.
/// They are read until that is known.
///
/// # Errors
/// If one of them cannot be read, or is of another model.
pub fn lacking_orders(
    files: &[PathBuf],
    reading: &ReadOptions,
    level: Level,
) -> Result<Option<Undecided>, Error> {
    let mut orders = Orders::default();
    let mut model = Ok(());
    let (is_read, is_enough) = (Cell::new(false), Cell::new(false));
    let mut look = |part: &History| {
        is_read.set(true);
        model = refusal::is_checkable(part);
        orders.take(part);
        is_enough.set(model.is_err() || orders.are_enough(level));
        !is_enough.get()
    };
    for file in files {
        is_read.set(false);
        let is_whole = !file.is_dir() && read_parts(file, reading, |part| look(&part))?;
        if !is_whole && !is_read.get() {
            // The format can only be read in one piece.
            look(&read_until(file, reading, Interrupt::default())?.history);
        }
        if is_enough.get() {
            break;
        }
    }
    model?;
    Ok(orders.lack(level))
}

/// Whether a file name stands for standard input or output: `-`.
pub fn is_standard_stream(file: &Path) -> bool {
    file.as_os_str() == "-"
}
