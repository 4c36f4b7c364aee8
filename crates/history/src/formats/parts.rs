//! A large file as histories, one after the other: each a run of consecutive transactions, so that memory does not
//! grow with the file.

use super::read::{Mapping, Reading};
use super::{Format, Input, ReadError, ReadOptions};
use crate::History;
use std::path::Path;

/// A part is handed out when it holds this many operations, or transactions.
pub(super) const PART_LEN: usize = 1 << 18;

/// Reads a file of lines or frames in parts and gives each to `each`, until that wants no more. True if everything was
/// read; false if `each` wanted no more, or the file is of another format, which can only be read whole.
///
/// Sessions go on from part to part; equal transaction ids are only noticed within a part.
pub fn read_parts(
    path: &Path,
    options: &ReadOptions,
    mut each: impl FnMut(History) -> bool,
) -> Result<bool, ReadError> {
    let mut reading = Reading::new(path, options);
    let format: Format = reading.open(path, Mapping::No)?;
    if !matches!(format.row().input, Input::Lines(_) | Input::Frames(..)) {
        return Ok(false);
    }
    let mut more = true;
    while more {
        more = reading.step(format)?;
        let full = reading.builder.len() >= PART_LEN || reading.builder.op_count() >= PART_LEN;
        if more && !full {
            continue;
        }
        let part = reading.builder.take_part().map_err(|error| reading.build_error(error))?;
        if !each(part) {
            return Ok(false);
        }
    }
    reading.finish()?;
    Ok(true)
}
