//! A large file as histories, one after the other: each a run of consecutive transactions, so that memory does not
//! grow with the file.

use super::read::Reading;
use super::{Format, Input, ReadError, ReadOptions};
use crate::{History, IdSet, Name};
use std::path::Path;

/// A part is handed out when it holds this many operations, or transactions.
pub(super) const PART_LEN: usize = 1 << 18;

/// Reads a file of lines or frames in parts and gives each to `each`, until that wants no more. True if everything was
/// read; false if `each` wanted no more, or the file is of another format, which can only be read whole.
///
/// Sessions go on from part to part, and a transaction id that comes twice is refused as when the file is read
/// whole; but ids that are no numbers, and do not end in one, cost some bytes each ([`IdSet`]).
pub fn read_parts(
    path: &Path,
    options: &ReadOptions,
    each: impl FnMut(History) -> bool,
) -> Result<bool, ReadError> {
    read(path, options, |reading| reading.remember_ids(), each)
}

/// Reads a file once more, to refuse the first of these ids that is there twice.
pub(super) fn look_again(path: &Path, options: &ReadOptions, suspected: Vec<Name>) -> Result<(), ReadError> {
    let remember = |reading: &mut Reading<'_>| reading.builder.remember_ids(IdSet::about(suspected));
    read(path, options, remember, |_| true).map(|_| ())
}

fn read(
    path: &Path,
    options: &ReadOptions,
    remember: impl FnOnce(&mut Reading<'_>),
    mut each: impl FnMut(History) -> bool,
) -> Result<bool, ReadError> {
    let mut reading = Reading::new(path, options);
    let format: Format = reading.open(path)?;
    if !matches!(format.row().input, Input::Lines(_) | Input::Frames(..)) {
        return Ok(false);
    }
    remember(&mut reading);
    let mut more = true;
    while more {
        more = reading.step(format)?;
        if more && !reading.has_part() {
            continue;
        }
        if !each(reading.take_part()?) {
            return Ok(false);
        }
    }
    reading.finish()?;
    Ok(true)
}
