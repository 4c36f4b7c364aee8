//! What tests of several crates share: the labelled histories that they compare with, and addresses to listen on.
//!
//! Two nouns: a [`Loopback`] is an address of this machine that belongs to one test; a [`Labelled`] history is a file or
//! directory with the counts and verdicts that others gave it.
//! The corpus itself is not part of this repository; tests that need it skip, aloud, where it is not there.
//!
//! Beside them: what tests [need](needs()) of the machine, and what happens where that is missing.
//!
//! This crate is never part of the program.

mod loopback;
mod needs;

pub use loopback::Loopback;
pub use needs::{browser, missing, needs, server};

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The bundles, each under its own name.
pub const BUNDLES: [&str; 6] = ["cobra", "dbcop", "elle", "polysi", "small-formats", "veristrong"];

/// One row of a bundle's `labels.csv`.
#[derive(Clone, Debug)]
pub struct Labelled {
    /// The bundle it belongs to.
    pub bundle: &'static str,
    /// The file, or the directory where the format is one.
    pub path: PathBuf,
    /// The label's word for its format.
    pub format: String,
    /// Sessions, where the label counts them.
    pub sessions: Option<usize>,
    /// Transactions, where the label counts them.
    pub transactions: Option<usize>,
    /// Aborted ones, where the label counts them.
    pub aborted: Option<usize>,
    /// Operations, where the label counts them.
    pub operations: Option<usize>,
    /// What the label says of each column of [`VERDICTS`].
    pub verdicts: [Label; 5],
}

/// The columns that hold verdicts, weakest first. Session order counts in all of them.
pub const VERDICTS: [&str; 5] = ["verdict_rc", "verdict_ra", "verdict_cc", "verdict_si", "verdict_ser"];

/// A verdict that somebody else gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// Possible.
    Accept,
    /// Impossible.
    Reject,
    /// Nobody knows.
    Unknown,
}

/// Why there are no labelled histories.
#[derive(Debug)]
pub enum Missing {
    /// No corpus is there; the sentence says how to name one.
    Corpus(String),
    /// It is there, but cannot be used.
    Broken(PathBuf, io::Error),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Corpus(sentence) => f.write_str(sentence),
            Self::Broken(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Missing {}

/// The histories of all bundles. `named` is the folder that the environment names, if it does; packed bundles are
/// unpacked into `scratch`, once.
pub fn labelled(named: Option<PathBuf>, scratch: &Path) -> Result<Vec<Labelled>, Missing> {
    let root = find(named)?;
    let mut all = Vec::new();
    for bundle in BUNDLES {
        let folder =
            unpacked(&root, bundle, scratch).map_err(|error| Missing::Broken(root.join(bundle), error))?;
        let labels = folder.join("labels.csv");
        let text = std::fs::read_to_string(&labels).map_err(|error| Missing::Broken(labels, error))?;
        let mut rows = csv(&text).into_iter();
        let names = rows.next().unwrap_or_default();
        for row in rows {
            let fields: BTreeMap<&str, &str> =
                names.iter().map(String::as_str).zip(row.iter().map(String::as_str)).collect();
            all.push(Labelled::of(bundle, &folder, &fields));
        }
    }
    Ok(all)
}

impl Labelled {
    fn of(bundle: &'static str, folder: &Path, fields: &BTreeMap<&str, &str>) -> Self {
        let field = |name: &str| fields.get(name).copied().unwrap_or_default();
        let count = |name: &str| field(name).parse().ok();
        Self {
            bundle,
            path: folder.join(field("file_in_bundle")),
            format: field("format").to_owned(),
            sessions: count("sessions"),
            transactions: count("txns"),
            aborted: count("aborted"),
            operations: count("ops"),
            verdicts: VERDICTS.map(|name| match field(name) {
                "accept" => Label::Accept,
                "reject" => Label::Reject,
                _ => Label::Unknown,
            }),
        }
    }
}

/// The folder that was named, else `../shared/corpus` beside the workspace.
fn find(named: Option<PathBuf>) -> Result<PathBuf, Missing> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = named.unwrap_or_else(beside);
    let there = BUNDLES
        .iter()
        .all(|bundle| folder.join(bundle).is_dir() || folder.join(format!("{bundle}.tar.zst")).is_file());
    match there {
        true => Ok(folder),
        false => Err(Missing::Corpus(format!(
            "no corpus in {}; set TAIPAN_CORPUS to a folder of bundles, packed (*.tar.zst) or not",
            folder.display()
        ))),
    }
}

/// The folder of a bundle; a packed one is unpacked once, into the folder for the tests' own files.
fn unpacked(root: &Path, bundle: &str, scratch: &Path) -> io::Result<PathBuf> {
    let folder = root.join(bundle);
    if folder.is_dir() {
        return Ok(folder);
    }
    let packed = root.join(format!("{bundle}.tar.zst"));
    let len = std::fs::metadata(&packed)?.len();
    let folder = scratch.join(format!("corpus-{bundle}-{len}"));
    if folder.is_dir() {
        return Ok(folder.join(bundle));
    }
    let unfinished = folder.with_extension(format!("{}.unfinished", std::process::id()));
    let mut decoder = zstd::stream::read::Decoder::new(File::open(&packed)?)?;
    // The bundles were packed with a window of 128 MiB.
    decoder.window_log_max(27)?;
    tar::Archive::new(decoder).unpack(&unfinished)?;
    if std::fs::rename(&unfinished, &folder).is_err() {
        // Another test was faster.
        std::fs::remove_dir_all(&unfinished)?;
    }
    Ok(folder.join(bundle))
}

/// Rows of fields; quotes around fields, doubled inside them.
fn csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        let row = rows.last_mut().expect("there is one row from the start");
        let field = row.last_mut().expect("one field a row from the start");
        match ch {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(String::new()),
            '\n' if !quoted => rows.push(vec![String::new()]),
            '\r' if !quoted => {}
            ch => field.push(ch),
        }
    }
    rows.retain(|row| row.len() > 1);
    rows
}

#[cfg(test)]
mod tests {
    use super::csv;

    #[test]
    fn quotes_hold_commas_quotes_and_lines() {
        let rows = csv("a,b\r\n1,\"x, \"\"y\"\"\nz\"\n");
        assert_eq!(rows, [["a", "b"], ["1", "x, \"y\"\nz"]]);
    }
}
