//! Limits hold while a file is read: the answer is `undecided`, and says how far reading had come.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn taipan(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taipan")).args(arguments).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_file_that_takes_too_long_to_read_is_undecided() {
    let folder = tempfile::tempdir().unwrap();
    let made = taipan(&["generate", "--transactions", "20000", "h.jsonl"], folder.path());
    assert!(made.status.success(), "{made:?}");
    for file in ["h.tph", "h.jsonl.gz"] {
        assert!(taipan(&["convert", "h.jsonl", file], folder.path()).status.success());
    }
    for file in ["h.jsonl", "h.tph", "h.jsonl.gz"] {
        let output = taipan(&["check", "--timeout", "0", "--output", "json", file], folder.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains("the time is up while the file is read"), "{}", said(&output));
        let output = taipan(&["check", "--max-memory", "1M", file], folder.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains("the memory is used up while the file is read"), "{}", said(&output));
    }
    let output = taipan(&["explain", "--timeout", "0", "h.jsonl"], folder.path());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    // Without a limit the same file is decided, and one file's limit is not another's.
    assert_eq!(taipan(&["check", "h.jsonl"], folder.path()).status.code(), Some(0));
    let output = taipan(&["check", "--timeout", "0", "nothing.jsonl", "h.jsonl"], folder.path());
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(said(&output).contains("undecided"), "{output:?}");
}

/// Would wait for ever if the limit did not hold.
#[test]
fn a_pipe_in_which_nothing_comes_is_left() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_taipan"))
        .args(["check", "--timeout", "0.3", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"session\":1,\"ops\":[]}\n").unwrap();
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.stdout.take().unwrap(), &mut said).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(2), "{said}");
    assert!(said.contains("the time is up while the file is read"), "{said}");
    drop(stdin);
}
