//! What every fuzz target does: read whatever comes as one format, strictly and leniently, and if it is a history,
//! walk it, write it and read it again. Nothing of that may panic. What was found is kept in
//! `crates/history/tests/data/fuzz` and read by the tests.
//!
//! Three targets do something else: [`certificate`] reads and judges certificates, [`verdict`] compares the checker with the
//! exhaustive oracle, [`watch`] is the input of `taipan watch`.
//!
//! ```text
//! cargo +nightly fuzz run elle-edn fuzz/corpus/elle-edn crates/history/tests/data -- -max_total_time=180
//! cargo +nightly fuzz run binary fuzz/corpus/binary fuzz/seeds/binary -- -max_total_time=180
//! cargo +nightly fuzz run certificate fuzz/corpus/certificate fuzz/seeds/certificate -- -max_total_time=180
//! cargo +nightly fuzz run verdict fuzz/corpus/verdict fuzz/seeds/verdict fuzz/seeds/notation -- -max_total_time=180
//! cargo +nightly fuzz run watch fuzz/corpus/watch fuzz/seeds/watch -- -max_total_time=180
//! ```

mod certificates;
mod verdicts;
mod watch;

pub use certificates::certificate;
pub use verdicts::verdict;
pub use watch::watch;

use history::formats::{Format, Loaded, ReadOptions, read_bytes, read_path, write_path, write_stream};
use history::{History, Operation};
use std::path::PathBuf;

fn format(name: &str) -> Format {
    Format::from_name(name).expect("targets are named after formats")
}

fn options(format: Format, lenient: bool) -> ReadOptions {
    ReadOptions { format: Some(format), lenient, ..ReadOptions::default() }
}

/// A format that is one file.
pub fn bytes(name: &str, bytes: &[u8]) {
    let format = format(name);
    for lenient in [false, true] {
        let options = options(format, lenient);
        // Without a format the content is recognised first.
        if !lenient {
            drop(read_bytes("any", bytes, &ReadOptions::default()).map_err(|error| error.to_string()));
        }
        let Some(Loaded { history, .. }) = accepted(read_bytes("fuzz", bytes, &options)) else { continue };
        walk(&history);
        let mut written = Vec::new();
        if !history.is_empty() && write_stream(&history, format, &mut written).is_ok() {
            let again = read_bytes("again", &written, &options).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again.history.len(), history.len());
        }
    }
}

/// A binary history whose checksums fit, so that what they protect is looked at too.
pub fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 16;
    while let Some(len) = bytes.get(at + 8..at + 16) {
        let len = u64::from_le_bytes(len.try_into().expect("eight bytes"));
        let end = usize::try_from(len).ok().and_then(|len| (at + 24).checked_add(len));
        let Some((end, payload)) = end.and_then(|end| Some((end, bytes.get(at + 24..end)?))) else { break };
        let checksum = xxhash_rust::xxh3::xxh3_64(payload).to_le_bytes();
        bytes[at + 16..at + 24].copy_from_slice(&checksum);
        at = end;
    }
    bytes
}

/// A format that is a directory: the bytes are one of two files.
pub fn files(name: &str, bytes: &[u8]) {
    let format = format(name);
    let scratch = scratch();
    let folder = scratch.join(name);
    std::fs::create_dir_all(&folder).expect("a folder for scratch files");
    let prefix = if format == Format::Cobra { 'T' } else { 'J' };
    let (first, second) = bytes.split_at(bytes.iter().position(|&byte| byte == 0xfe).unwrap_or(bytes.len()));
    for (number, part) in [first, second.get(1..).unwrap_or(&[])].into_iter().enumerate() {
        std::fs::write(folder.join(format!("{prefix}{number}.log")), part).expect("a scratch file");
    }
    for lenient in [false, true] {
        let options = options(format, lenient);
        let Some(Loaded { history, .. }) = accepted(read_path(&folder, &options)) else { continue };
        walk(&history);
        let copy = scratch.join(format!("{name}-copy"));
        if !history.is_empty() && write_path(&history, format, &copy).is_ok() {
            let again = read_path(&copy, &options).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(again.history.len(), history.len());
            std::fs::remove_dir_all(&copy).expect("a scratch folder can be removed");
        }
    }
}

/// In memory where the system has such a folder.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let base = if memory.is_dir() { memory } else { std::env::temp_dir() };
    base.join(format!("taipan-fuzz-{}", std::process::id()))
}

/// What was read; a refusal must have something to say.
fn accepted(result: Result<Loaded, history::formats::ReadError>) -> Option<Loaded> {
    result.map_err(|error| assert!(!error.to_string().is_empty())).ok()
}

fn walk(history: &History) {
    for txn in history.transactions() {
        assert!(!txn.name().to_string().is_empty() || txn.explicit_id().is_some());
        for (_, op) in txn.ops() {
            if let Some(key) = op.key() {
                drop(history.keys().get(key).to_string());
            }
            if let Operation::Read { value, .. }
            | Operation::Write { value, .. }
            | Operation::Append { value, .. } = op
            {
                drop(history.values().show(value).to_string());
            }
        }
    }
}
