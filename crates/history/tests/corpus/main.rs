//! The peers' labelled histories: every file is recognised and read, counts agree with the labels, and a history
//! survives the way through the native format and back.
//!
//! Reading covers all files. The round trip covers every tenth history of a bundle, and all with `TAIPAN_LONG=1`.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]
#![allow(clippy::print_stderr, reason = "a test says aloud what it skips")]

#[path = "../same/mod.rs"]
mod same;

use corpus::Labelled;
use std::path::Path;
use taipan_history::formats::{Format, Loaded, ReadOptions, read_path, write_path};
use taipan_history::{History, Status};

/// The histories of all bundles; `None`, said aloud, if there is no corpus.
fn labelled() -> Option<Vec<Labelled>> {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let found = corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR")));
    found.map_err(|missing| corpus::missing("corpus", &missing)).ok()
}

fn read(path: &Path) -> Loaded {
    read_path(path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The format that a label's word stands for.
fn format_of(label: &str) -> Format {
    match label {
        "dbcop-bincode" => Format::DbcopBincode,
        "text" => Format::Text,
        "awdit-test" => Format::Awdit,
        "viper-json-lines" => Format::Viper,
        label if label.starts_with("cobra-log") => Format::Cobra,
        label if label.starts_with("elle-edn") => Format::ElleEdn,
        label if label.starts_with("elle-json") => Format::ElleJson,
        label if label.starts_with("timekiller") => Format::Timekiller,
        other => panic!("a label with an unknown format {other}"),
    }
}

fn count(history: &History, status: Status) -> usize {
    history.transactions().filter(|txn| txn.status() == status).count()
}

/// Checks one count; the label may not give it.
fn agrees(label: &Labelled, what: &str, counted: usize, labelled: Option<usize>) -> Option<String> {
    let wrong = labelled.is_some_and(|labelled| labelled != counted);
    wrong.then(|| format!("{}: {counted} {what}, labelled {labelled:?}", label.path.display()))
}

#[test]
fn every_file_is_recognised_read_and_counted() {
    let Some(labels) = labelled() else { return };
    let mut wrong = Vec::new();
    for label in &labels {
        let loaded = read(&label.path);
        assert_eq!(loaded.format, format_of(&label.format), "{}", label.path.display());
        let history = &loaded.history;
        let committed = count(history, Status::Committed);
        let aborted = count(history, Status::Aborted);
        let is_elle = label.format.starts_with("elle");
        let transactions = if is_elle { committed } else { committed + aborted };
        wrong.extend(agrees(label, "transactions", transactions, label.transactions));
        wrong.extend(agrees(label, "sessions", history.sessions().len(), label.sessions));
        wrong.extend(agrees(label, "aborted", aborted, label.aborted));
        // Labels count the operations that took effect; those of Elle's histories count all, once in the
        // invocation and once in the completion.
        let took_effect = || history.transactions().filter(|txn| txn.is_committed());
        let operations =
            if is_elle { 2 * history.op_count() } else { took_effect().map(|txn| txn.ops().len()).sum() };
        wrong.extend(agrees(label, "operations", operations, label.operations));
    }
    let shown: Vec<_> = wrong.iter().take(20).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), labels.len(), shown.join("\n"));
}

/// Elle's models that are no transactions: what their operations mean has no way back into theirs.
fn is_one_way(label: &str) -> bool {
    ["bank", "comments", "counter", "mutex", "set", "set-full"].iter().any(|model| label.ends_with(model))
}

/// Writes a history into a format and reads it again, the format being recognised.
fn through(history: &History, format: Format, scratch: &Path) -> History {
    let again = if matches!(format, Format::Cobra | Format::Viper) {
        write_path(history, format, scratch).unwrap();
        let again = read(scratch);
        std::fs::remove_dir_all(scratch).unwrap();
        again
    } else {
        write_path(history, format, scratch).unwrap();
        let again = read(scratch);
        std::fs::remove_file(scratch).unwrap();
        again
    };
    assert_eq!(again.format, format);
    again.history
}

#[test]
fn a_history_survives_the_native_format_and_its_own() {
    let Some(labels) = labelled() else { return };
    let stride = if std::env::var_os("TAIPAN_LONG").is_some() { 1 } else { 10 };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("round-trip-{}", std::process::id()));
    let mut seen = std::collections::BTreeMap::new();
    for label in labels {
        // Of every format at least the first histories.
        let number = seen.entry(label.format.clone()).or_insert(0);
        *number += 1;
        if *number > 3 && *number % stride != 0 {
            continue;
        }
        let place = label.path.display();
        let loaded = read(&label.path);
        let native = through(&loaded.history, Format::Jsonl, &scratch);
        assert_eq!(same::difference(&loaded.history, &native), None, "{place} through jsonl");
        if is_one_way(&label.format) {
            continue;
        }
        let back = through(&native, loaded.format, &scratch);
        assert_eq!(
            same::difference(&loaded.history, &back),
            None,
            "{place} through jsonl and {}",
            loaded.format
        );
    }
}
