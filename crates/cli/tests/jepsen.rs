//! `examples/jepsen/taipan.clj`, with a stub of what it needs of Jepsen. Where `clojure` is not installed, its command line is
//! still compared with the flags that the program knows.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/jepsen").join(name)
}

fn taipan(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_taipan")).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_checker_uses_flags_that_exist() {
    let text = std::fs::read_to_string(example("taipan.clj")).unwrap();
    let (status, help) = taipan(&["elle", "--help"]);
    assert_eq!(status, Some(0));
    let flags: Vec<&str> = text.split('"').filter(|word| word.starts_with("--")).collect();
    assert!(flags.len() >= 6, "{flags:?}");
    for flag in flags {
        assert!(
            help.contains(&format!("{flag} ")) || help.contains(&format!("{flag}\n")),
            "{flag} is not in the help"
        );
    }
}

#[test]
fn clojure_gets_the_result_map() {
    let folder = tempfile::tempdir().unwrap();
    let (stub, checker) = (example("stub.clj"), example("taipan.clj"));
    let arguments = [
        stub.as_os_str(),
        checker.as_os_str(),
        env!("CARGO_BIN_EXE_taipan").as_ref(),
        folder.path().as_ref(),
    ];
    let output = match Command::new("clojure").args(arguments).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("clojure: {error}"),
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        said.starts_with("{:valid? true}\n{:valid? false, :anomaly-types [:G-single-item-realtime], :not #{"),
        "{output:?}"
    );
    assert!(output.status.success(), "{output:?}");
    assert!(folder.path().join("taipan/G-single-item-realtime.svg").is_file());
}
