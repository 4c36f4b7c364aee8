//! What a transaction and an operation cost in memory, and what a conversion costs that holds no history.

use crate::workloads::{Shape, history};
use history::formats::{Format, Origin, ReadOptions, Target, convert, write_path};
use std::error::Error;
use std::path::Path;
use std::process::Command;

const TRANSACTION_MAX: f64 = 64.0;
const OPERATION_MAX: f64 = 16.0;

pub(crate) fn run(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!("{transactions} transactions of 8 operations; bytes on the heap of a loaded history");
    println!(
        "{:<24} {:>16} {:>16} {:>32}",
        "workload", "a transaction", "an operation", "names and values, an operation"
    );
    for (name, shape) in Shape::MEASURED {
        let history = history(shape, transactions);
        let footprint = history.footprint();
        let ops = history.op_count() as f64;
        let beside =
            |bytes: f64, target: f64| format!("{bytes:.1}{}", if bytes > target { " over" } else { "" });
        println!(
            "{name:<24} {:>16} {:>16} {:>32.1}",
            beside(footprint.transactions as f64 / history.len() as f64, TRANSACTION_MAX),
            beside(footprint.operations as f64 / ops, OPERATION_MAX),
            footprint.names_and_values as f64 / ops,
        );
    }
    println!(
        "targets: at most {TRANSACTION_MAX} a transaction and {OPERATION_MAX} an operation. An operation is 12 bytes; \
         one with a clock of its own is over where clocks tick finely and operations are long."
    );
    println!();
    conversions(transactions)
}

/// The peak of memory during conversions of files of growing size.
fn conversions(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!("conversions in parts; the most memory that the converting process held");
    println!("{:<24} {:>14} {:>12} {:>12}", "conversion", "transactions", "input MB", "peak MB");
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    for factor in [1, 2, 4] {
        let count = transactions * factor;
        write_path(&history(Shape::Registers, count), Format::Jsonl, &path("in.jsonl"))?;
        let steps = [("in.jsonl", "out.tph"), ("out.tph", "out.jsonl.zst"), ("out.jsonl.zst", "out.hist")];
        for (from, to) in steps {
            let peak = peak_of(&path(from), &path(to))?;
            let megabytes = std::fs::metadata(path(from))?.len() as f64 / 1e6;
            println!("{:<24} {count:>14} {megabytes:>12.1} {peak:>12}", format!("{from} → {to}"));
        }
    }
    Ok(())
}

/// The peak of a process that only converts.
fn peak_of(from: &Path, to: &Path) -> Result<String, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).arg("convert").args([from, to]).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Converts a file and prints the peak of memory in MB, or a dash where the system does not tell.
pub(crate) fn convert_and_measure(from: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let format = to.to_str().and_then(Format::from_file_name).ok_or("no format has that name")?;
    convert(Origin::Path(from), &ReadOptions::default(), Target::Path(to), format)?;
    println!("{}", resident_peak().map_or("-".to_owned(), |bytes| format!("{:.1}", bytes / 1e6)));
    Ok(())
}

pub(crate) fn resident_peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}
