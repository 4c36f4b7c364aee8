//! How fast the peers' formats are read, in megabytes of their own files a second of CPU time, beside a plain copy of
//! the same bytes into fresh memory: what no reader can beat by much.

use crate::formats::best;
use crate::workloads::{Shape, history};
use history::formats::{Format, ReadOptions, read_path, write_path};
use history::{Builder, History, NameRef, Operation, Timestamp, ValueRef};
use std::error::Error;
use std::path::{Path, PathBuf};

/// The formats, and whether their keys and values are hashes.
const ROWS: [(&str, Format, bool); 9] = [
    ("dbcop", Format::DbcopBincode, false),
    ("cobra", Format::Cobra, false),
    ("cobra, hashed", Format::Cobra, true),
    ("text", Format::Text, false),
    ("viper", Format::Viper, false),
    ("elle-edn", Format::ElleEdn, false),
    ("elle-json", Format::ElleJson, false),
    ("dbcop-json", Format::DbcopJson, false),
    ("timekiller", Format::Timekiller, false),
];

pub(crate) fn run(transactions: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    println!("{transactions} transactions of 8 operations; CPU time, best of several");
    println!(
        "{:<14} {:>9} {:>12} {:>12} {:>12} {:>8}",
        "format", "MB", "read MB/s", "copy MB/s", "ns/operation", "ratio"
    );
    let plain = history(Shape::Registers, transactions);
    for (name, format, hashed) in ROWS {
        let path = folder.path().join(name);
        write_path(&recast(&plain, hashed, format == Format::Timekiller)?, format, &path)?;
        let bytes = bytes_of(&path)?;
        let megabytes = bytes.len() as f64 / 1e6;
        let read = best(|| Ok(read_path(&path, &ReadOptions::default())?))?;
        let copy = best(|| Ok(bytes.clone()))?;
        println!(
            "{name:<14} {megabytes:>9.1} {:>12.0} {:>12.0} {:>12.1} {:>7.2}×",
            megabytes / read,
            megabytes / copy,
            read * 1e9 / plain.op_count() as f64,
            copy / read,
        );
    }
    Ok(())
}

/// The same for histories of one's own.
pub(crate) fn read(paths: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    println!("{:>9} {:>12} {:>12}  history", "MB", "read MB/s", "ns/operation");
    for path in paths {
        let mut operations = 0;
        let read = best(|| {
            let loaded = read_path(path, &ReadOptions::default())?;
            operations = loaded.history.op_count();
            Ok(loaded)
        })?;
        let megabytes = bytes_of(path)?.len() as f64 / 1e6;
        println!(
            "{megabytes:>9.1} {:>12.0} {:>12.1}  {}",
            megabytes / read,
            read * 1e9 / operations as f64,
            path.display()
        );
    }
    Ok(())
}

/// The bytes of a file, or of all files of a directory.
fn bytes_of(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    if path.is_file() {
        return Ok(std::fs::read(path)?);
    }
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(path)? {
        bytes.extend(std::fs::read(entry?.path())?);
    }
    Ok(bytes)
}

/// The same history with keys and values spread over all 64-bit integers, or with timestamps.
fn recast(plain: &History, hashed: bool, timed: bool) -> Result<History, Box<dyn Error>> {
    let spread = |value: i64| if hashed { (value + 1).wrapping_mul(0x5851_f42d_4c95_7f2d) } else { value };
    let mut builder = Builder::new();
    for txn in plain.transactions() {
        let session = builder.session(plain.sessions().get(txn.session()));
        builder.begin(session);
        for (_, op) in txn.ops() {
            let (key, value) = match op {
                Operation::Read { key, value, .. } | Operation::Write { key, value } => (key, value),
                _ => continue,
            };
            let key = match plain.keys().get(key) {
                NameRef::Int(key) => builder.key(spread(key).into()),
                text => builder.key(text),
            };
            let value = match plain.values().get(value) {
                ValueRef::Int(value) => builder.int(spread(value)),
                _ => history::ValueId::ABSENT,
            };
            match op {
                Operation::Write { .. } => builder.write(key, value),
                _ => builder.read(key, value, history::Lock::None),
            };
        }
        if timed {
            let start = Timestamp::from(10 * i64::from(txn.id().0));
            builder.set_db(start, Timestamp { physical: start.physical + 5, logical: 0 })?;
        }
        builder.end()?;
    }
    Ok(builder.finish()?)
}
