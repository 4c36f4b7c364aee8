//! Damaged files: whatever is done to a history's bytes, a reader answers with a history or a fault, never with a
//! panic, and what it accepted can be walked, written and read again. Writing may rename what a format has its own
//! names for (initial values, ids, sessions), but only once: written again, the history is the same.
//!
//! Samples are mutated at random from a fixed seed: a thousand times each, or, with `TAIPAN_LONG=1`, a hundred thousand.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod same;

use std::path::{Path, PathBuf};
use taipan_history::formats::{Format, ReadOptions, read_bytes, read_path, write_path, write_stream};
use taipan_history::{History, Operation};

/// A small generator of random numbers (xorshift64*), so that a seed always means the same damage.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Pieces that mean something in one of the formats.
const PIECES: &[&[u8]] = &[
    b"[",
    b"]",
    b"{",
    b"}",
    b"(",
    b")",
    b"\"",
    b"\\",
    b":",
    b",",
    b";",
    b"#",
    b"#_",
    b"^",
    b"#{",
    b"-",
    b"-1",
    b"0",
    b"18446744073709551615",
    b"-9223372036854775808",
    b"1e400",
    b"nil",
    b"null",
    b"true",
    b"\n",
    b" ",
    b"\0",
    b"\xff",
    b"\xc3",
    b"=====\n",
    b"-----\n",
    b":=",
    b"==?",
    b"!",
    b"r",
    b"w",
    b"append",
    b":process nil",
    b":type :info",
    b":f :read",
    b":f :add",
    b":f :transfer",
    b":f :cas",
    b":f :acquire",
    b":value #{1 2}",
    b":value {0 5}",
    b"\"isInitial\": true,",
    b"\xbe\xbe\xeb\xee",
    b"\xde\xad\xbe\xef",
    b"\xab\xdd\xef\xee",
    b"S",
    b"C",
    b"R",
    b"W",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\0",
    b"//",
    b"\xef\xbb\xbf",
];

fn mutate(original: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len() + 1);
        let len = random.below(40).min(bytes.len() - at);
        match random.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(at..at + len)),
            3 => bytes.truncate(at),
            4 => {
                let copy = bytes[at..at + len].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            5 => {
                let from = random.below(other.len() + 1);
                let to = from + random.below(60).min(other.len() - from);
                bytes.splice(at..at + len, other[from..to].iter().copied());
            }
            _ => {
                let piece = PIECES[random.below(PIECES.len())];
                let replaced = if random.below(2) == 0 { 0 } else { piece.len().min(bytes.len() - at) };
                bytes.splice(at..at + replaced, piece.iter().copied());
            }
        }
    }
    bytes
}

/// Looks at everything that a history holds.
fn walk(history: &History) {
    for txn in history.transactions() {
        assert!(txn.name().to_string().len() < 1 << 20);
        for (_, op) in txn.ops() {
            let value = match op {
                Operation::Read { value, .. }
                | Operation::Write { value, .. }
                | Operation::Append { value, .. } => value,
                _ => continue,
            };
            let key = op.key().map(|key| history.keys().get(key));
            assert!(key.is_some() && !history.values().show(value).to_string().is_empty());
        }
    }
}

fn rounds() -> usize {
    if std::env::var_os("TAIPAN_LONG").is_some() { 100_000 } else { 1_000 }
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A history written and read again; `None` if the format cannot hold it.
fn through(history: &History, format: Format, options: &ReadOptions) -> Option<History> {
    let mut written = Vec::new();
    write_stream(history, format, &mut written).ok()?;
    let again = read_bytes("again", &written, options);
    Some(again.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&written))).history)
}

#[track_caller]
fn survives(format: Format, samples: &[&str]) {
    let samples: Vec<Vec<u8>> =
        samples.iter().map(|name| std::fs::read(data().join(name)).unwrap()).collect();
    let mut random = Random(0x7a19_a000 + format as u64 + 1);
    let mut accepted = 0;
    for round in 0..rounds() {
        let bytes =
            mutate(&samples[random.below(samples.len())], &samples[random.below(samples.len())], &mut random);
        let lenient = round % 2 == 1;
        let options =
            ReadOptions { format: Some(format), lenient, allow_empty: true, ..ReadOptions::default() };
        let Ok(loaded) = read_bytes("damaged", &bytes, &options) else { continue };
        accepted += 1;
        walk(&loaded.history);
        let Some(once) = through(&loaded.history, format, &options) else { continue };
        let twice = through(&once, format, &options).expect("what was written once can be written again");
        assert_eq!(once.len(), loaded.history.len(), "{}", String::from_utf8_lossy(&bytes));
        let difference = same::difference(&once, &twice);
        assert_eq!(difference, None, "\n--- damaged:\n{}", String::from_utf8_lossy(&bytes));
    }
    assert!(accepted > rounds() / 100, "{accepted} of {} were histories: the damage is too great", rounds());
}

#[test]
fn elle_edn() {
    survives(Format::ElleEdn, &["append.edn", "models.edn"]);
}

#[test]
fn elle_json() {
    survives(Format::ElleJson, &["register.json", "completions.jsonl"]);
}

#[test]
fn timekiller() {
    survives(Format::Timekiller, &["timekiller-kv.json", "timekiller-list.json"]);
}

#[test]
fn dbcop_json() {
    survives(Format::DbcopJson, &["dbcop.json"]);
}

#[test]
fn dbcop_hist() {
    survives(Format::DbcopHist, &["dbcop.hist"]);
}

#[test]
fn dbcop_binary() {
    survives(Format::DbcopBincode, &["history.bincode"]);
}

#[test]
fn text() {
    survives(Format::Text, &["polysi.txt", "isovista.txt"]);
}

#[test]
fn awdit() {
    survives(Format::Awdit, &["awdit.txt"]);
}

/// The same for a directory of logs, one of which is damaged.
fn survives_as_directory(format: Format, samples: &[&str], damaged: &str) {
    let originals: Vec<Vec<u8>> =
        samples.iter().map(|name| std::fs::read(data().join(name)).unwrap()).collect();
    let scratch =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{format}-{}", std::process::id()));
    let (folder, copy) = (scratch.join("damaged"), scratch.join("copy"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut random = Random(0x7a19_a000 + format as u64 + 1);
    for round in 0..rounds() / 10 {
        let bytes = mutate(
            &originals[random.below(originals.len())],
            &originals[random.below(originals.len())],
            &mut random,
        );
        std::fs::write(folder.join(damaged), &bytes).unwrap();
        let options = ReadOptions { lenient: round % 2 == 1, ..ReadOptions::default() };
        let Ok(loaded) = read_path(&folder, &options) else { continue };
        walk(&loaded.history);
        if loaded.history.is_empty() || write_path(&loaded.history, format, &copy).is_err() {
            continue;
        }
        let again = read_path(&copy, &options).unwrap_or_else(|error| panic!("{error}: {bytes:02x?}"));
        assert_eq!(same::difference(&loaded.history, &again.history), None, "{bytes:02x?}");
        std::fs::remove_dir_all(&copy).unwrap();
    }
    std::fs::remove_dir_all(&scratch).unwrap();
}

#[test]
fn cobra() {
    survives_as_directory(Format::Cobra, &["cobra/T2.log", "cobra/T10.log", "cobra-values/T1.log"], "T1.log");
}

#[test]
fn viper() {
    survives_as_directory(Format::Viper, &["viper/J0.log", "viper/J1.log"], "J1.log");
}

/// What fuzzing found, kept: `tests/data/fuzz/FORMAT/WHAT`, each read as its format and as any.
#[test]
fn what_fuzzing_found() {
    let mut count = 0;
    for folder in std::fs::read_dir(data().join("fuzz")).unwrap().map(Result::unwrap) {
        let format = Format::from_name(folder.file_name().to_str().unwrap());
        for file in std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap) {
            let bytes = std::fs::read(file.path()).unwrap();
            for format in [None, Some(format.expect("folders are named after formats"))] {
                for lenient in [false, true] {
                    let options = ReadOptions { format, lenient, ..ReadOptions::default() };
                    match read_bytes("found", &bytes, &options) {
                        Ok(loaded) => {
                            walk(&loaded.history);
                            if let Some(again) = through(&loaded.history, loaded.format, &options) {
                                assert_eq!(again.len(), loaded.history.len(), "{}", file.path().display());
                            }
                        }
                        Err(error) => assert!(!error.to_string().is_empty()),
                    }
                }
            }
            count += 1;
        }
    }
    assert!(count > 0);
}
