//! The lines of a file on which transactions stand.
//!
//! What: a history does not keep where its transactions came from; for the few that a report points at, the file is
//! read once more.
//! Steps: the file's own reader is given one line at a time; the transactions that the builder has afterwards and did
//! not have before stand on that line. Reading ends at the last one that was asked for.
//! Cost: one pass up to that line; memory is bounded as in [`super::read_parts`].

use super::read::Reading;
use super::{Input, ReadError, ReadOptions};
use std::path::Path;

/// The lines, from 1, of the transactions at these places of the history that the file holds; `None` for a format whose
/// transactions do not stand on lines. The options are those with which the history was read.
pub fn transaction_lines(
    path: &Path,
    options: &ReadOptions,
    places: &[usize],
) -> Result<Option<Vec<u64>>, ReadError> {
    let mut reading = Reading::new(path, options).line_by_line();
    let format = reading.open(path)?;
    if !matches!(format.row().input, Input::Lines(_)) {
        return Ok(None);
    }
    // The places in ascending order, and where each was asked for.
    let mut wanted: Vec<(u64, usize)> =
        places.iter().enumerate().map(|(index, &place)| (place as u64, index)).collect();
    wanted.sort_unstable();
    let mut lines = vec![0; places.len()];
    let mut found = 0;
    while found < wanted.len() {
        let line = reading.lines_read() + 1;
        let goes_on = reading.step(format)?;
        while found < wanted.len() && wanted[found].0 < reading.builder.total_transactions() {
            lines[wanted[found].1] = line;
            found += 1;
        }
        if !goes_on {
            break;
        }
        if reading.has_part() {
            reading.take_part()?;
        }
    }
    // A file that changed since has fewer transactions.
    Ok((found == wanted.len()).then_some(lines))
}
