//! The tracers that the book shows for other languages write histories that can be checked.
//!
//! Each records a lost update, by hand. A language that is not installed is told aloud and left out.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/book/src/databases/recording.md");

/// The block of the page in this language.
fn shown(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("```{language}\n")).expect("the page shows it");
    rest.split_once("```").expect("a block ends").0
}

/// Runs a command in a folder; `false` if there is no such program.
fn succeeds(folder: &Path, command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap();
    if !corpus::needs(if program == "python3" { "python" } else { program }) {
        return false;
    }
    let output =
        Command::new(program).args(words).current_dir(folder).env("GOCACHE", folder.join("cache")).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command}: {text}");
    true
}

/// Writes the files, runs the commands, and checks `history.jsonl`.
fn records_a_lost_update(files: &[(&str, String)], commands: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    if !commands.iter().all(|command| succeeds(folder.path(), command)) {
        return;
    }
    let check = |level: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_taipan"))
            .args(["check", "history.jsonl", "--level", level])
            .current_dir(folder.path())
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (exit, text) = check("serializable");
    assert!(exit == Some(1) && text.contains("lost update"), "{text}");
    let (exit, text) = check("read-committed");
    assert!(exit == Some(0) && text.contains("2 transactions"), "{text}");
}

#[test]
fn python() {
    let program = r#"
with open("history.jsonl", "w") as file:
    a, b = Tracer(file, 1), Tracer(file, 2)
    for tracer in (a, b):
        tracer.begin()
    for tracer in (a, b):
        assert tracer.read("x", lambda: None) is None
    for value, tracer in enumerate((a, b)):
        tracer.write("x", value, lambda: None)
        tracer.end("committed")
"#;
    records_a_lost_update(&[("main.py", shown("python").to_owned() + program)], &["python3 main.py"]);
}

#[test]
fn go() {
    let program = r#"
func main() {
	file, err := os.Create("history.jsonl")
	if err != nil {
		panic(err)
	}
	a, b := &Tracer{Out: file, Session: 1}, &Tracer{Out: file, Session: 2}
	a.Begin()
	b.Begin()
	for value, t := range []*Tracer{a, b} {
		op := t.Call(Op{"op": "read", "key": "x"})
		op["value"] = nil
		t.Call(Op{"op": "write", "key": "x", "value": value})
	}
	for _, t := range []*Tracer{a, b} {
		if err := t.End("committed"); err != nil {
			panic(err)
		}
	}
}
"#;
    let tracer = shown("go").replace("package tracer", "package main").replace("\"io\"", "\"io\"\n\t\"os\"");
    records_a_lost_update(&[("main.go", tracer + program)], &["go run main.go"]);
}

#[test]
fn java() {
    let program = r#"
final class Main {
    public static void main(String[] args) throws java.io.IOException {
        try (var out = new java.io.FileWriter("history.jsonl")) {
            var a = new Tracer(out, 1);
            var b = new Tracer(out, 2);
            a.begin();
            b.begin();
            a.read("x", "null");
            b.read("x", "null");
            a.write("x", "1");
            b.write("x", "\"2\"");
            a.end("committed");
            b.end("committed");
        }
    }
}
"#;
    let files = [("Tracer.java", shown("java").to_owned()), ("Main.java", program.to_owned())];
    records_a_lost_update(&files, &["javac Tracer.java Main.java", "java -cp . Main"]);
}
