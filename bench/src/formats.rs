//! How fast the native formats are read and written, in megabytes of JSON a second of CPU time.

use crate::workloads::{Shape, history};
use cpu_time::ProcessTime;
use history::formats::{Format, Loaded, ReadOptions, read_path, write_path};
use std::error::Error;
use std::path::Path;

const REPEATS: usize = 5;

pub(crate) fn run(transactions: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    println!(
        "{transactions} transactions of 8 operations; CPU time, best of {REPEATS}; MB are those of the JSON lines"
    );
    println!(
        "{:<10} {:>9} {:>12} {:>12} {:>12} {:>12} {:>12} {:>14}",
        "workload",
        "JSON MB",
        "read MB/s",
        "write MB/s",
        "binary MB",
        "read MB/s",
        "write MB/s",
        "binary : JSON"
    );
    for (name, shape) in Shape::ALL {
        let history = history(shape, transactions);
        let json = folder.path().join("h.jsonl");
        let binary = folder.path().join("h.tph");
        let write_json = best(|| Ok(write_path(&history, Format::Jsonl, &json)?))?;
        let write_binary = best(|| Ok(write_path(&history, Format::Binary, &binary)?))?;
        drop(history);
        let read_json = best(|| read(&json))?;
        let read_binary = best(|| read(&binary))?;
        let megabytes = std::fs::metadata(&json)?.len() as f64 / 1e6;
        println!(
            "{name:<10} {megabytes:>9.1} {:>12.0} {:>12.0} {:>12.1} {:>12.0} {:>12.0} {:>13.1}×",
            megabytes / read_json,
            megabytes / write_json,
            std::fs::metadata(&binary)?.len() as f64 / 1e6,
            megabytes / read_binary,
            megabytes / write_binary,
            read_json / read_binary,
        );
    }
    Ok(())
}

fn read(path: &Path) -> Result<Loaded, Box<dyn Error>> {
    Ok(read_path(path, &ReadOptions::default())?)
}

/// The least CPU seconds of several runs; giving back what they made is not counted.
pub(crate) fn best<T>(mut run: impl FnMut() -> Result<T, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut least = f64::INFINITY;
    for _ in 0..REPEATS {
        let start = ProcessTime::now();
        let made = std::hint::black_box(run()?);
        least = least.min(start.elapsed().as_secs_f64());
        drop(made);
    }
    Ok(least)
}
