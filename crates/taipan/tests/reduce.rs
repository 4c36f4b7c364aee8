//! What `taipan explain --save` writes is a violated history again, in every format that can hold it.

use std::path::Path;
use std::process::{Command, Output};

fn taipan(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taipan"))
        .args(arguments)
        .env("NO_COLOR", "1")
        .output()
        .expect("the program can be started")
}

#[test]
fn saved_parts_are_violated_and_small() {
    let folder = tempfile::tempdir().expect("a folder for the files");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let whole = place("whole.jsonl");
    for bug in ["lost-update", "write-skew", "long-fork", "aborted-read", "fractured-read"] {
        let generated =
            taipan(&["generate", "--target", &format!("sim:serializable?bug={bug}"), "-n", "2000", &whole]);
        assert_eq!(generated.status.code(), Some(0), "{generated:?}");
        let names = ["part.jsonl", "part.hist", "part.tph"].map(place);
        let explained =
            taipan(&["explain", "--save", &names[0], "--save", &names[1], "--save", &names[2], &whole]);
        assert_eq!(explained.status.code(), Some(1), "{bug}: {explained:?}");
        for name in &names {
            // Without --level: its header names the level.
            let checked = taipan(&["check", name]);
            assert_eq!(checked.status.code(), Some(1), "{bug}: {name}: {checked:?}");
            let transactions = transactions(Path::new(name));
            // A long fork: two writers, two readers, and whoever wrote what was there before.
            assert!((1..=5).contains(&transactions), "{bug}: {transactions} transactions are left");
        }
    }
}

/// What was left of runs on real servers, as the book keeps it.
#[test]
fn the_histories_that_the_book_keeps_are_violated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/databases");
    for (name, anomaly) in
        [("postgresql-one-key-twice", "duplicate-rows"), ("mariadb-equal-values", "G-single-item")]
    {
        let path = folder.join(format!("{name}.hist"));
        let checked = taipan(&["check", &path.display().to_string()]);
        assert_eq!(checked.status.code(), Some(1), "{name}: {checked:?}");
        let said = String::from_utf8_lossy(&checked.stdout);
        assert!(said.contains("snapshot-isolation: violated") && said.contains(anomaly), "{said}");
    }
}

fn transactions(path: &Path) -> u64 {
    let stats = taipan(&["stats", "--output", "json", &path.display().to_string()]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("one JSON object");
    stats["transactions"].as_u64().expect("a number")
}
