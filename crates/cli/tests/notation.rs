//! Every file that `generate` and `run` write can be converted to the notation, and comes back from it the same: the same
//! lines, and the same verdict at every level.

#![allow(clippy::unwrap_used, reason = "a test may")]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;
use workload::Workload;

/// Runs a command in a folder; what it printed, unless it ended with an error.
fn taipan(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_taipan")).args(arguments).current_dir(folder).output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code().is_some_and(|code| code < 3), "taipan {}: {error}", arguments.join(" "));
    String::from_utf8(output.stdout).unwrap()
}

/// The header and the transactions, in an order that does not depend on how a file interleaves sessions.
fn content(file: &Path) -> (Vec<Value>, Vec<String>) {
    let text = fs::read_to_string(file).unwrap();
    let (mut headers, mut transactions) = (Vec::new(), Vec::new());
    for line in text.lines() {
        if line.starts_with("{\"history\"") {
            let mut header: Value = serde_json::from_str(line).unwrap();
            if let Some(Value::Array(initial)) = header.get_mut("initial") {
                initial.sort_by_key(Value::to_string);
            }
            headers.push(header);
        } else {
            transactions.push(line.to_owned());
        }
    }
    transactions.sort();
    (headers, transactions)
}

/// The verdict at every level.
fn verdicts(folder: &Path, file: &str) -> Vec<(String, String)> {
    let text = taipan(folder, &["check", "--all-levels", "--output", "json", file]);
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["level"].to_string(), line["verdict"].to_string())
    };
    let mut all: Vec<_> = text.lines().map(line).collect();
    all.sort();
    assert!(all.len() > 20, "{text}");
    all
}

/// Converts there and back.
fn comes_back(folder: &Path, file: &str, what: &str) {
    for (from, to) in [(file, "first.jsonl"), ("first.jsonl", "h.hist"), ("h.hist", "second.jsonl")] {
        taipan(folder, &["convert", from, to]);
    }
    let [first, second] = ["first.jsonl", "second.jsonl"].map(|name| content(&folder.join(name)));
    assert_eq!(first, second, "{what}");
    assert!(!first.1.is_empty(), "{what}");
    assert_eq!(verdicts(folder, file), verdicts(folder, "h.hist"), "{what}");
}

#[test]
fn every_workload_of_generate_goes_through_the_notation() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in Workload::names() {
        let options = ["-n", "40", "--sessions", "6", "--bug", "lost-update:2", "--mark-planted"];
        let target = ["--target", "sim:snapshot-isolation?op-clocks=yes&abort-rate=0.1&unknown-rate=0.1"];
        taipan(
            folder.path(),
            &[&["generate", "h.jsonl", "--workload", name], &options[..], &target].concat(),
        );
        comes_back(folder.path(), "h.jsonl", name);
    }
}

#[test]
fn every_recording_goes_through_the_notation() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in Workload::names() {
        for target in ["sqlite:", "sim:read-committed"] {
            let options = ["-n", "40", "--sessions", "4", "--no-check", "--record", "h.jsonl"];
            taipan(folder.path(), &[&["run", target, "--workload", name], &options[..]].concat());
            comes_back(folder.path(), "h.jsonl", &format!("{name} on {target}"));
        }
    }
}
