//! The tracers that the book shows for other languages write histories that can be checked.
//!
//! Each records, by hand, a lost update of `x`, which is 0 at first, and a transaction with every other operation. A
//! language that is not installed is skipped aloud.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../docs/book/src/databases/recording.md");

/// What a program writes first.
const HEADER: &str = r#"{"history":1,"initial":{"x":0,"y":5}}"#;

/// The first block of the page in this language.
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
    assert!(exit == Some(0) && text.contains("4 transactions"), "{text}");
}

#[test]
fn python() {
    let program = r#"
class Lost:
    """Does not learn what became of its commits."""
    def commit(self):
        raise ConnectionError("connection reset")

with open("history.jsonl", "w") as file:
    file.write(HEADER + "\n")
    a, b, c = Tracer(file, 1), Tracer(file, 2), Tracer(file, 3)
    for tracer in (a, b):
        tracer.begin()
    for tracer in (a, b):
        assert tracer.call({"op": "read", "key": "x"}, lambda: 0, "value") == 0
    for value, tracer in enumerate((a, b)):
        tracer.call({"op": "write", "key": "x", "value": value + 1}, lambda: None)
        tracer.end("committed")
    c.begin()
    answers = iter([2, None, None, None, [1], [["x", 1]]])
    example(c, lambda sql: next(answers))
    c.end("committed")
    try:
        c.transaction(Lost(), lambda t: t.call({"op": "write", "key": "z", "value": 9}, lambda: None), lambda error: False)
        raise AssertionError("the error is raised again")
    except ConnectionError:
        pass

statuses = [json.loads(line).get("status") for line in open("history.jsonl")]
assert statuses == [None, "committed", "committed", "committed", "unknown"], statuses
"#;
    let usage = PAGE.split("```python\n").nth(2).expect("the page shows how it is used");
    let usage = usage.split_once("```").expect("a block ends").0;
    let program = [shown("python"), usage, &program.replace("HEADER", &format!("'{HEADER}'"))].concat();
    records_a_lost_update(&[("main.py", program)], &["python3 main.py"]);
}

#[test]
fn javascript() {
    let program = r#"
(async () => {
  const file = fs.openSync("history.jsonl", "w");
  fs.writeSync(file, HEADER + "\n");
  const [a, b, c] = [1, 2, 3].map((session) => new Tracer(file, session));
  for (const t of [a, b]) t.begin();
  for (const t of [a, b]) await t.call({ op: "read", key: "x" }, async () => 0, "value");
  for (const [index, t] of [a, b].entries()) {
    await t.call({ op: "write", key: "x", value: index + 1 }, async () => {});
    t.end("committed");
  }
  c.begin();
  await c.call({ op: "delete", key: "y" }, async () => {});
  await c.call({ op: "append", key: "l", value: 1 }, async () => {});
  await c.call({ op: "read", key: "l" }, async () => [1], "value");
  await c.call({ op: "scan", from: "m", to: "z" }, async () => [["x", 2]], "rows");
  c.end("committed");
  c.begin();
  await c.call({ op: "read", key: "x" }, async () => { throw new Error("lost"); }, "value").catch(() => {});
  c.end("aborted");
})();
"#;
    let program = shown("js").to_owned() + &program.replace("HEADER", &format!("'{HEADER}'"));
    records_a_lost_update(&[("main.js", program)], &["node main.js"]);
}

#[test]
fn go() {
    let program = r#"
func main() {
	file, err := os.Create("history.jsonl")
	if err != nil {
		panic(err)
	}
	file.WriteString(`HEADER` + "\n")
	a, b, c := &Tracer{Out: file, Session: 1}, &Tracer{Out: file, Session: 2}, &Tracer{Out: file, Session: 3}
	a.Begin()
	b.Begin()
	for value, t := range []*Tracer{a, b} {
		op := t.Call(Op{"op": "read", "key": "x"})
		op["value"] = 0
		t.Call(Op{"op": "write", "key": "x", "value": value + 1})
	}
	end := func(t *Tracer, status string) {
		if err := t.End(status); err != nil {
			panic(err)
		}
	}
	end(a, "committed")
	end(b, "committed")
	c.Begin()
	c.Call(Op{"op": "delete", "key": "y"})
	c.Call(Op{"op": "append", "key": "l", "value": 1})
	c.Call(Op{"op": "read", "key": "l"})["value"] = []int{1}
	c.Call(Op{"op": "scan", "from": "m", "to": "z"})["rows"] = [][]any{{"x", 2}}
	end(c, "committed")
	c.Begin()
	c.Call(Op{"op": "read", "key": "x"})
	end(c, "aborted")
}
"#;
    let tracer = shown("go").replace("package tracer", "package main").replace("\"io\"", "\"io\"\n\t\"os\"");
    records_a_lost_update(&[("main.go", tracer + &program.replace("HEADER", HEADER))], &["go run main.go"]);
}

#[test]
fn java() {
    let program = r#"
final class Main {
    public static void main(String[] args) throws java.io.IOException {
        try (var out = new java.io.FileWriter("history.jsonl")) {
            out.write(HEADER + "\n");
            var a = new Tracer(out, 1);
            var b = new Tracer(out, 2);
            var c = new Tracer(out, 3);
            for (var t : new Tracer[] {a, b}) t.begin();
            int value = 0;
            for (var t : new Tracer[] {a, b}) {
                t.call("{\"op\":\"read\",\"key\":\"x\"}");
                t.answer("value", "0");
                t.call("{\"op\":\"write\",\"key\":\"x\",\"value\":" + ++value + "}");
            }
            a.end("committed");
            b.end("committed");
            c.begin();
            c.call("{\"op\":\"delete\",\"key\":\"y\"}");
            c.call("{\"op\":\"append\",\"key\":\"l\",\"value\":1}");
            c.call("{\"op\":\"read\",\"key\":\"l\"}");
            c.answer("value", "[1]");
            c.call("{\"op\":\"scan\",\"from\":\"m\",\"to\":\"z\"}");
            c.answer("rows", "[[\"x\",2]]");
            c.end("committed");
            c.begin();
            c.call("{\"op\":\"read\",\"key\":\"x\"}");
            c.end("aborted");
        }
    }
}
"#;
    let program = program.replace("HEADER", &format!("{HEADER:?}"));
    let files = [("Tracer.java", shown("java").to_owned()), ("Main.java", program)];
    records_a_lost_update(&files, &["javac Tracer.java Main.java", "java -cp . Main"]);
}
