//! The acceptance run: `taipan check` on every labelled history, compared with its labels.
//!
//! One process a bundle. By default a sample that ends in seconds; `TAIPAN_LONG=1` takes every history
//! (`scripts/corpus` does that with a release build). A verdict that contradicts a label fails; an undecided one is
//! counted, and fails only where the level is decided at any size.
#![allow(clippy::print_stderr, reason = "a test says aloud what it skips and what it counted")]

use corpus::{BUNDLES, Label, Labelled, VERDICTS};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// The levels that the columns speak of, and whether histories of any size are decided there.
const LEVELS: [(&str, bool); 5] = [
    ("axiomatic-read-committed", true),
    ("read-atomic", true),
    ("causal", true),
    ("strong-session-snapshot-isolation", true),
    ("strong-session-serializable", true),
];

/// Histories of the sample: small ones with a label, and of a large bundle not all.
const SAMPLE_TRANSACTIONS_MAX: usize = 2000;
const SAMPLE_OF_A_BUNDLE: usize = 40;

#[test]
fn verdicts_agree_with_the_labels() {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let all = match corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(all) => all,
        Err(missing) => return corpus::missing("corpus", &missing),
    };
    let mut wrong = Vec::new();
    for bundle in BUNDLES {
        let mine: Vec<&Labelled> = all.iter().filter(|history| history.bundle == bundle).collect();
        wrong.extend(check_bundle(bundle, &sample(mine)));
    }
    assert!(wrong.is_empty(), "{} verdicts contradict their label:\n{}", wrong.len(), wrong.join("\n"));
}

fn sample(mine: Vec<&Labelled>) -> Vec<&Labelled> {
    // Files of other models are refused and have no labels.
    let is_isolation =
        |history: &&Labelled| !["-bank", "-counter"].iter().any(|model| history.format.ends_with(model));
    let mine: Vec<&Labelled> = mine.into_iter().filter(is_isolation).collect();
    if std::env::var_os("TAIPAN_LONG").is_some() {
        return mine;
    }
    let is_small = |history: &&Labelled| {
        history.transactions.is_none_or(|count| count <= SAMPLE_TRANSACTIONS_MAX)
            && history.verdicts.iter().any(|&label| label != Label::Unknown)
    };
    let small: Vec<&Labelled> = mine.into_iter().filter(is_small).collect();
    let every = small.len().div_ceil(SAMPLE_OF_A_BUNDLE).max(1);
    small.into_iter().step_by(every).collect()
}

/// Checks the histories of a bundle in one process; returns what is wrong.
fn check_bundle(bundle: &str, histories: &[&Labelled]) -> Vec<String> {
    let started = Instant::now();
    let levels = LEVELS.map(|(name, _)| name).join(",");
    let output = Command::new(env!("CARGO_BIN_EXE_taipan"))
        .args(["check", "--quiet", "--output", "json", "--timeout", "20", "--level", &levels])
        .args(histories.iter().map(|history| &history.path))
        .output()
        .expect("the program can be started");
    let mut verdicts: HashMap<(String, String), Value> = HashMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let object: Value = serde_json::from_str(line).expect("one JSON object a line");
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        verdicts.insert((text("file"), text("level")), object);
    }
    let mut wrong = Vec::new();
    let has_read_all = matches!(output.status.code(), Some(0..=2));
    if !has_read_all && !histories.is_empty() {
        wrong.push(format!("{bundle}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr)));
    }
    let mut tally: BTreeMap<(usize, Label, String), usize> = BTreeMap::new();
    for history in histories {
        let file = history.path.display().to_string();
        for (column, (level, at_any_size)) in LEVELS.into_iter().enumerate() {
            let label = history.verdicts[column];
            let said = verdicts.get(&(file.clone(), level.to_owned()));
            let verdict = said.and_then(|said| said["verdict"].as_str()).unwrap_or("not checked").to_owned();
            // Labels count an order without pairs as kept; only what is not known is said of it here.
            let reason = said.and_then(|said| said["reason"].as_str()).unwrap_or_default();
            let is_untested = reason.starts_with("session order was not tested");
            let contradicts = match (label, verdict.as_str()) {
                (Label::Accept, "undecided") if is_untested => false,
                (_, "not checked") | (Label::Accept, "violated") | (Label::Reject, "accepted") => true,
                (Label::Accept | Label::Reject, "undecided") => at_any_size,
                _ => false,
            };
            if contradicts {
                wrong.push(format!("{file}: {level}: labelled {label:?}, {verdict}"));
            }
            *tally.entry((column, label, verdict)).or_default() += 1;
        }
    }
    eprintln!("{bundle}: {} histories in {:.1} s", histories.len(), started.elapsed().as_secs_f64());
    for ((column, label, verdict), count) in tally {
        eprintln!("  {:11} {:7} {verdict:9} {count}", VERDICTS[column], format!("{label:?}"));
    }
    wrong
}
