//! Histories through every format, and files with changed bytes.

use crate::campaign::Wrong;
use crate::certificates::mutate;
use crate::levels::shape;
use evidence::check;
use history::History;
use history::formats::{Format, ReadOptions, read_bytes, write_stream};
use isolation::{Level, Options};
use oracle::tiny::{Random, Sketch};

/// How often one file is changed.
const CHANGES: usize = 16;

/// Formats that hold everything that a sketch does.
const WHOLE: [Format; 2] = [Format::Jsonl, Format::Binary];

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0xf04a7);
    let (shape, _) = shape(&mut random);
    let history = shape.history(seed);
    let mut comparisons = 0;
    for &format in Format::ALL.iter().filter(|format| format.is_writable()) {
        let mut bytes = Vec::new();
        // What a format cannot hold it refuses.
        if write_stream(&history, format, &mut bytes).is_err() {
            continue;
        }
        let back = match read(&bytes, Some(format)) {
            Ok(back) => back,
            Err(error) => return Err(Wrong::with(format!("{format}: {error}"), &history)),
        };
        same(&history, &back, format)?;
        comparisons += 1;
        for _ in 0..CHANGES {
            let mut changed = bytes.clone();
            for _ in 0..random.between(1, 4) {
                mutate(&mut changed, &mut random);
            }
            let forced = random.chance(50).then_some(format);
            // Refused or read; what was read can be written and read again.
            if let Ok(read_once) = read(&changed, forced) {
                let mut again = Vec::new();
                let written = write_stream(&read_once, Format::Jsonl, &mut again);
                written.map_err(|error| Wrong::with(format!("{format}, changed: {error}"), &read_once))?;
                if let Err(error) = read(&again, Some(Format::Jsonl)) {
                    return Err(Wrong::with(format!("{format}, changed: {error}"), &read_once));
                }
            }
            comparisons += 1;
        }
    }
    Ok(comparisons)
}

fn read(bytes: &[u8], format: Option<Format>) -> Result<History, String> {
    let options = ReadOptions { format, allow_empty: true, ..ReadOptions::default() };
    read_bytes("soak", bytes, &options).map(|loaded| loaded.history).map_err(|error| error.to_string())
}

/// What comes back is the same, or at least says the same.
fn same(history: &History, back: &History, format: Format) -> Result<(), Wrong> {
    if WHOLE.contains(&format) && Sketch::of(history).transactions != Sketch::of(back).transactions {
        return Err(Wrong::with(format!("{format}: another history came back"), history));
    }
    let of = |history: &History| check(history, Level::SERIALIZABLE, &Options::default()).verdict.name();
    let (before, after) = (of(history), of(back));
    if before != after {
        return Err(Wrong::with(format!("{format}: {before} became {after}"), history));
    }
    Ok(())
}
