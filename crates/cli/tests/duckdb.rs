//! DuckDB as a target: its histories keep snapshot isolation, its matrix is as expected, a hunt finds nothing.
//! Only with the feature; `./test duckdb` fetches the library and runs this.

use std::process::{Command, Output};

fn taipan(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taipan")).args(args).output().expect("it starts")
}

/// Everything a program said, for the message of a failed test.
fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).join("\n")
}

#[test]
fn histories_keep_snapshot_isolation() {
    for workload in ["list-append", "blind-writes", "read-modify-write", "predicate"] {
        let size = ["--transactions", "600", "--sessions", "6"];
        let output =
            taipan(&[&["run", "duckdb:", "--workload", workload, "--level", "SI"], &size[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{workload}: {}", said(&output));
        assert!(said(&output).contains("accepted"), "{workload}: {}", said(&output));
    }
}

#[test]
fn the_matrix_is_as_expected() {
    let output = taipan(&["matrix", "duckdb:"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}

#[test]
fn a_hunt_finds_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let save = folder.path().to_str().expect("it is UTF-8");
    let output = taipan(&["hunt", "duckdb:", "--cases", "60", "--save", save]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
}
