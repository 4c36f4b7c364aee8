//! `examples/certify.py` on histories as large as people have them: it says what `taipan certify` says. Needs `python3`.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).current_dir(folder).env("NO_COLOR", "1").output().unwrap()
}

fn taipan(folder: &Path, arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_taipan"), folder, arguments)
}

fn stand_alone(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/certify.py");
    let output = run("python3", folder, &[&[program.to_str().unwrap()], arguments].concat());
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn certificates_of_generated_histories_are_certified() {
    let folder = tempfile::tempdir().unwrap();
    let workloads = ["read-modify-write", "bank", "list-append", "range", "everything"];
    let bugs = [None, Some("lost-update"), Some("write-skew"), Some("aborted-read"), Some("fractured-read")];
    let mut certified = [0, 0];
    for (place, (workload, bug)) in workloads.iter().flat_map(|it| bugs.map(|bug| (it, bug))).enumerate() {
        let name = ["h.jsonl", "h.jsonl.gz"][place % 2];
        let target = format!("sim:serializable{}", bug.map_or(String::new(), |bug| format!("?bug={bug}")));
        let made = ["generate", "--workload", workload, "--target", &target, "-n", "300", name];
        let made = taipan(folder.path(), &made);
        assert!(made.status.success(), "{made:?}");
        let level = ["SER,SI", "strict-serializable", "strong-snapshot-isolation"][place % 3];
        let checked = taipan(folder.path(), &["check", name, "--level", level, "--certificate", "c"]);
        assert!(matches!(checked.status.code(), Some(0 | 1)), "{checked:?}");
        let (status, said) = stand_alone(folder.path(), &["--level", level, name, "c"]);
        let ours = taipan(folder.path(), &["certify", "--level", level, name, "c"]);
        assert_eq!((status, ours.status.code()), (Some(0), Some(0)), "{workload} {bug:?}: {said}{ours:?}");
        let violated = said.contains("violated");
        certified[usize::from(violated)] += 1;
    }
    assert!(certified[0] >= 5 && certified[1] >= 5, "{certified:?}");
}

#[test]
fn it_refuses_what_was_not_asked_and_does_not_guess() {
    let folder = tempfile::tempdir().unwrap();
    let ring: String = (0..14).map(|it| format!("s{it}: r(k{it},_) w(k{},1)\n", (it + 1) % 14)).collect();
    fs::write(folder.path().join("ring.hist"), ring).unwrap();
    taipan(folder.path(), &["convert", "ring.hist", "ring.jsonl"]);
    let checked = taipan(folder.path(), &["check", "ring.jsonl", "--certificate", "c"]);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    for (flags, expected, word) in [
        (&[][..], 2, "not checked: 14 transactions"),
        (&["--core", "14"], 0, "certified"),
        (&["--level", "SI"], 1, "another question"),
        (&["--ryow", "may"], 1, "another question"),
        (&["--clock-skew", "1"], 1, "no certificate"),
        (&["--assume", "realtime"], 1, "another question"),
        (&["--level", "causal"], 3, ""),
    ] {
        let (status, said) = stand_alone(folder.path(), &[flags, &["ring.jsonl", "c"]].concat());
        assert!(status == Some(expected) && said.contains(word), "{flags:?}: {status:?}: {said}");
    }
    fs::write(folder.path().join("c"), "{\"certificate\":1,\"certificate\":1}\n").unwrap();
    assert_eq!(stand_alone(folder.path(), &["ring.jsonl", "c"]).0, Some(3));
    fs::write(folder.path().join("ring.jsonl"), "{\"session\":1,\"ops\":[{\"op\":\"read\",\"kee\":1}]}\n")
        .unwrap();
    assert_eq!(stand_alone(folder.path(), &["ring.jsonl", "c"]).0, Some(3));
}
