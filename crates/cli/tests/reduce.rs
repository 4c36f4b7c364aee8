//! What `taipan explain --save` writes is a violated history again, in every format that can hold it; and the same
//! input gives the same output, however many threads there are.

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
        // What both say is wrong has one name.
        let named = |command: &str| {
            let said = taipan(&[command, "--output", "json", &whole]).stdout;
            let line = String::from_utf8(said).expect("text");
            let (_, rest) = line.split_once("\"anomaly\":\"").expect("it is violated");
            rest.split('"').next().map(str::to_owned)
        };
        assert_eq!(named("check"), named("explain"), "{bug}");
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

#[test]
fn the_same_input_gives_the_same_output() {
    let folder = tempfile::tempdir().expect("a folder for the files");
    let place = |name: &str| folder.path().join(name).display().to_string();
    let [skew, fork] = ["write-skew", "long-fork"].map(|bug| {
        let path = place(&format!("{bug}.jsonl"));
        let made =
            taipan(&["generate", "--target", &format!("sim:serializable?bug={bug}"), "-n", "2000", &path]);
        assert_eq!(made.status.code(), Some(0), "{made:?}");
        path
    });
    let said = |arguments: &[&str], threads: &str| {
        let output = taipan(&[arguments, &["--threads", threads, &skew, &fork]].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    // JUnit asks for times; they are words of their own.
    let is_time = |word: &str| word.starts_with("time=") || word.starts_with("timestamp=");
    let without_times =
        |text: String| text.split_inclusive(' ').filter(|word| !is_time(word)).collect::<String>();
    for form in ["sarif", "markdown", "junit"] {
        let once = |threads| said(&["check", "--all-levels", "--output", form], threads);
        let (first, second) = (once("1"), once("2"));
        match form {
            "junit" => assert_eq!(without_times(first), without_times(second)),
            _ => assert_eq!(first, second, "{form}"),
        }
    }
    for form in ["svg", "dot", "mermaid", "notation", "jsonl"] {
        for path in [&skew, &fork] {
            let once = |threads| taipan(&["explain", "--output", form, "--threads", threads, path]).stdout;
            let (first, second) = (once("1"), once("2"));
            assert!(!first.is_empty() && first == second, "{form} of {path}");
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
        assert!(said.contains("not snapshot-isolation") && said.contains(anomaly), "{said}");
    }
}

fn transactions(path: &Path) -> u64 {
    let stats = taipan(&["stats", "--output", "json", &path.display().to_string()]);
    let stats: serde_json::Value = serde_json::from_slice(&stats.stdout).expect("one JSON object");
    stats["transactions"].as_u64().expect("a number")
}
