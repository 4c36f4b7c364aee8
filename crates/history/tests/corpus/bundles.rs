//! Where the labelled histories are, and what their labels say.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The bundles, each under its own name.
pub(crate) const BUNDLES: [&str; 6] = ["cobra", "dbcop", "elle", "polysi", "small-formats", "veristrong"];

/// One row of a bundle's `labels.csv`.
pub(crate) struct Labelled {
    /// The file, or the directory where the format is one.
    pub(crate) path: PathBuf,
    pub(crate) format: String,
    /// Counts where the label gives them.
    pub(crate) sessions: Option<usize>,
    pub(crate) transactions: Option<usize>,
    pub(crate) aborted: Option<usize>,
    pub(crate) operations: Option<usize>,
}

/// The histories of all bundles; `None`, said aloud, if there is no corpus.
pub(crate) fn labelled() -> Option<Vec<Labelled>> {
    let root = corpus()?;
    let mut all = Vec::new();
    for bundle in BUNDLES {
        let folder = unpacked(&root, bundle);
        let labels = std::fs::read_to_string(folder.join("labels.csv")).expect("a bundle has labels.csv");
        let mut rows = csv(&labels).into_iter();
        let names = rows.next().expect("labels.csv has a head");
        for row in rows {
            let fields: BTreeMap<&str, &str> =
                names.iter().map(String::as_str).zip(row.iter().map(String::as_str)).collect();
            let count = |name: &str| fields[name].parse().ok();
            all.push(Labelled {
                path: folder.join(fields["file_in_bundle"]),
                format: fields["format"].to_owned(),
                sessions: count("sessions"),
                transactions: count("txns"),
                aborted: count("aborted"),
                operations: count("ops"),
            });
        }
    }
    Some(all)
}

/// `TAIPAN_CORPUS`, else `../shared/corpus` beside the workspace.
fn corpus() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let folder = std::env::var_os("TAIPAN_CORPUS").map_or_else(beside, PathBuf::from);
    let there = BUNDLES
        .iter()
        .all(|bundle| folder.join(bundle).is_dir() || folder.join(format!("{bundle}.tar.zst")).is_file());
    if !there {
        eprintln!(
            "SKIPPED: no corpus in {}; set TAIPAN_CORPUS to a folder of bundles, packed (*.tar.zst) or not",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

/// The folder of a bundle; a packed one is unpacked once, into the folder for the tests' own files.
fn unpacked(root: &Path, bundle: &str) -> PathBuf {
    let folder = root.join(bundle);
    if folder.is_dir() {
        return folder;
    }
    let packed = root.join(format!("{bundle}.tar.zst"));
    let len = std::fs::metadata(&packed).expect("the bundle is there").len();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("corpus-{bundle}-{len}"));
    if folder.is_dir() {
        return folder.join(bundle);
    }
    let unfinished = folder.with_extension(format!("{}.unfinished", std::process::id()));
    let mut decoder =
        zstd::stream::read::Decoder::new(File::open(&packed).expect("it can be opened")).expect("zstd");
    decoder.window_log_max(27).expect("a window of 128 MiB");
    tar::Archive::new(decoder).unpack(&unfinished).expect("a tar archive");
    if std::fs::rename(&unfinished, &folder).is_err() {
        // Another test was faster.
        std::fs::remove_dir_all(&unfinished).expect("what was just made can be removed");
    }
    folder.join(bundle)
}

/// Rows of fields; quotes around fields, doubled inside them.
fn csv(text: &str) -> Vec<Vec<String>> {
    let mut rows = vec![vec![String::new()]];
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(ch) = chars.next() {
        let row = rows.last_mut().expect("one row from the start");
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
