//! What was not tested is not accepted, a closed pipe changes no exit status, and no name acts on what shows it.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn taipan(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap()
}

/// The exit status and all that was printed.
fn said(arguments: &[&str], folder: &Path) -> (i32, String) {
    let output = taipan(arguments, folder);
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (output.status.code().unwrap(), text.into_owned())
}

/// A folder with these files.
fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

const FINE: (&str, &str) = ("fine.hist", "a: w(x,1)\nb: r(x,1)\n");
const LOST: (&str, &str) = ("lost.hist", "a: r(x,_) w(x,1)\nb: r(x,_) w(x,2)\n");

#[test]
fn a_level_that_needs_clocks_is_undecided_without_any() {
    let folder = folder(&[
        FINE,
        LOST,
        ("clocks.hist", "a: w(x,1) @1..2\nb: r(x,1) @3..4\n"),
        ("sessions.hist", "a: w(x,1) | w(y,1)\nb: r(x,1)\n"),
    ]);
    let clocks = "no client clocks recorded";
    let sessions = "each session ran one transaction";
    for (file, level, exit, reason) in [
        ("fine.hist", "strict-serializable", 2, clocks),
        ("fine.hist", "strong-SI", 2, clocks),
        ("fine.hist", "serializable", 0, "accepted"),
        ("fine.hist", "strong-session-SER", 2, sessions),
        ("fine.hist", "causal", 0, "accepted"),
        ("sessions.hist", "strong-session-SER", 0, "accepted"),
        ("sessions.hist", "strict-serializable", 2, clocks),
        ("clocks.hist", "strict-serializable", 0, "accepted"),
        ("lost.hist", "strict-serializable", 1, "violated"),
        ("lost.hist", "strong-session-SI", 1, "violated"),
    ] {
        for more in [&[][..], &["--workers", "2"], &["--output", "json"], &["--output", "markdown"]] {
            let found = said(&[&["check", "--level", level, file], more].concat(), folder.path());
            let reason = match (reason, more.contains(&"--output")) {
                ("accepted", false) => "✔ ",
                ("violated", false) => "✘ ",
                _ => reason,
            };
            assert!(found.0 == exit && found.1.contains(reason), "{file} at {level}, {more:?}: {found:?}");
        }
    }
    let (exit, text) = said(&["check", "--all-levels", "fine.hist"], folder.path());
    assert!(exit == 2 && text.contains(": serializable  (") && text.contains(clocks), "{text}");
}

#[test]
fn a_history_that_tests_too_little_is_undecided_where_more_is_required() {
    let folder = folder(&[FINE, LOST]);
    for (required, exit) in [
        ("coverage=100", 0),
        ("transactions=2", 0),
        ("transactions=3", 2),
        ("coverage=100,transactions=3", 2),
        ("coverage=0.5", 3),
        ("keys=1", 3),
    ] {
        let (found, text) = said(&["check", "--require", required, "fine.hist"], folder.path());
        assert_eq!(found, exit, "{required}: {text}");
        assert!(
            exit != 2
                || text.contains("undecided at serializable: tests too little: 2 committed transactions"),
            "{text}"
        );
    }
    let (exit, text) = said(&["check", "--require", "transactions=9", "lost.hist"], folder.path());
    assert!(exit == 1 && text.contains("not serializable"), "{text}");
    for form in ["json", "junit", "sarif", "markdown", "html"] {
        let asked = ["check", "--require", "transactions=9", "--output", form, "fine.hist"];
        let (exit, text) = said(&asked, folder.path());
        assert!(exit == 2 && text.contains("tests too little"), "{form}: {text}");
    }
    let run = ["run", "sim:serializable", "-n", "20", "--require", "transactions=1000"];
    let (exit, text) = said(&run, folder.path());
    assert!(exit == 2 && text.contains("tests too little"), "{text}");
}

#[test]
fn transactions_of_weaker_levels_are_not_held_to_a_stronger_one() {
    let line = |session: u32, level: &str| {
        format!(
            "{{\"session\":{session},\"level\":\"{level}\",\"ops\":[{{\"op\":\"write\",\"key\":\"x\",\"value\":{session}}}]}}\n"
        )
    };
    let mixed = line(1, "serializable") + &line(2, "read-committed");
    let folder = folder(&[("mixed.jsonl", &mixed), ("same.jsonl", &line(1, "serializable"))]);
    let (exit, text) = said(&["check", "mixed.jsonl"], folder.path());
    assert!(exit == 3 && text.contains("2:0 asked for read-committed") && text.contains("--mixed"), "{text}");
    // Whoever reads it.
    for more in [&["--level", "SER"][..], &["--level", "SI", "--by", "timestamps"], &["--level", "causal"]] {
        let (exit, text) = said(&[&["check", "--workers", "2", "mixed.jsonl"], more].concat(), folder.path());
        // Of several it is any.
        let is_said =
            text.contains("asked for") && text.contains("does not promise") && text.contains("--mixed");
        assert!(exit == 3 && is_said, "{more:?}: {exit}: {text}");
    }
    let (exit, text) = said(&["watch", "--level", "SI", "mixed.jsonl"], folder.path());
    assert!(exit == 3 && text.contains("session 2 asked for read-committed"), "{exit}: {text}");
    let (exit, text) =
        said(&["check", "--workers", "2", "--require", "transactions=1", "same.jsonl"], folder.path());
    assert!(exit == 3 && text.contains("workers hold parts"), "{exit}: {text}");
    assert_eq!(said(&["check", "--mixed", "mixed.jsonl"], folder.path()).0, 0);
    assert_eq!(said(&["check", "--level", "RC", "mixed.jsonl"], folder.path()).0, 0);
    assert_eq!(said(&["check", "same.jsonl"], folder.path()).0, 0);
}

#[test]
fn what_says_nothing_of_isolation_is_refused() {
    let op = |kind: &str, f: &str, value: &str, index: usize| {
        format!("{{:type :{kind}, :f :{f}, :value {value}, :process 0, :time {index}, :index {index}}}\n")
    };
    let pair = |f: &str, asked: &str, answer: &str, index: usize| {
        op("invoke", f, asked, index) + &op("ok", f, answer, index + 1)
    };
    let counter = pair("add", "1", "1", 0) + &pair("read", "nil", "1", 2);
    let move_it = "{:from 0 :to 1 :amount 5}";
    let bank = pair("transfer", move_it, move_it, 0) + &pair("read", "nil", "{0 5, 1 15}", 2);
    let folder = folder(&[("counter.edn", &counter), ("bank.edn", &bank), ("empty.jsonl", "")]);
    for file in ["counter.edn", "bank.edn"] {
        for more in [&[][..], &["--workers", "2"], &["--all-levels"]] {
            let (exit, text) = said(&[&["check", file], more].concat(), folder.path());
            assert!(exit == 3 && text.contains("no isolation level can be decided"), "{file}: {text}");
        }
        // It can still be converted, and is no more an isolation history then.
        assert_eq!(said(&["convert", file, "native.jsonl"], folder.path()).0, 0);
        assert_eq!(said(&["check", "native.jsonl"], folder.path()).0, 3);
    }
}

#[test]
fn a_watch_that_understood_nothing_and_a_diff_of_nothing_in_common_are_errors() {
    let result = |file: &str, level: &str| {
        format!(
            "{{\"file\":\"{file}\",\"level\":\"{level}\",\"verdict\":\"accepted\",\"stats\":{{\"transactions\":1,\
             \"operations\":1,\"sessions\":1}}}}\n"
        )
    };
    let txn = "{\"session\":1,\"db\":{\"start\":1,\"commit\":2},\"ops\":[]}\n";
    let folder = folder(&[
        ("garbage.txt", "hello\nworld\n"),
        ("nothing.txt", ""),
        ("good.jsonl", txn),
        ("a.json", &result("h", "causal")),
        ("b.json", &result("h", "prefix")),
    ]);
    for file in ["garbage.txt", "nothing.txt"] {
        let (exit, text) = said(&["watch", file], folder.path());
        assert!(exit == 3 && text.contains("nothing was checked"), "{file}: {text}");
    }
    assert_eq!(said(&["watch", "good.jsonl"], folder.path()).0, 0);
    let (exit, text) = said(&["diff", "a.json", "b.json"], folder.path());
    assert!(exit == 3 && text.contains("nothing was compared"), "{text}");
    assert_eq!(said(&["diff", "a.json", "a.json"], folder.path()).0, 0);
}

#[test]
fn a_fault_that_cannot_be_injected_is_refused_before_the_run() {
    let folder = folder(&[]);
    let run = ["run", "sqlite:db", "-n", "10", "--fault", "kill-server@0", "--record", "h.jsonl"];
    let (exit, text) = said(&run, folder.path());
    assert!(exit == 3 && text.contains("--fault kill-server"), "{text}");
    assert!(!folder.path().join("h.jsonl").exists(), "nothing was run");
}

/// A pipe that nothing reads any more.
fn closed_pipe() -> std::io::PipeWriter {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer
}

#[test]
fn a_closed_pipe_changes_no_exit_status() {
    let lines = "{\"session\":1,\"db\":{\"start\":9,\"commit\":2},\"ops\":[]}\n";
    let folder = folder(&[FINE, LOST, ("bad.jsonl", lines)]);
    for (arguments, exit) in [
        (&["check", "lost.hist"][..], 1),
        (&["check", "fine.hist", "lost.hist"], 1),
        (&["check", "fine.hist", "fine.hist"], 0),
        (&["check", "--output", "html", "lost.hist"], 1),
        (&["check", "--level", "strict-serializable", "fine.hist"], 2),
        (&["explain", "lost.hist"], 1),
        (&["diff", "fine.hist", "lost.hist"], 1),
        (&["levels"], 0),
        (&["generate", "-n", "5000", "--to", "jsonl", "-"], 0),
        (&["watch", "--told", "bad.jsonl"], 1),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_taipan"));
        command.args(arguments).current_dir(folder.path()).stdin(Stdio::null());
        let output = command.stdout(closed_pipe()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(exit), "{arguments:?}: {text}");
        assert!(!text.contains("pipe") && !text.contains("panic"), "{arguments:?}: {text}");
    }
}

#[test]
fn names_act_on_nothing_that_shows_them() {
    let odd = "i\u{1b}[5m\r\n```\n\n# All good\u{202e}\u{7}";
    let line = |session: &str, id: &str, value: u32| {
        let ops = serde_json::json!([
            {"op": "read", "key": odd, "value": null},
            {"op": "write", "key": odd, "value": value},
        ]);
        serde_json::json!({"session": session, "id": id, "ops": ops}).to_string() + "\n"
    };
    let text = line(odd, odd, 1) + &line("b", "x\nodd.jsonl: serializable: accepted", 2);
    let name = "o\u{1b}[31m\ndd.jsonl";
    let folder = folder(&[(name, &text), ("lost.hist", LOST.1)]);
    let is_odd = |letter: char| (letter.is_control() && letter != '\n') || letter == '\u{202e}';
    for form in ["text", "markdown", "html", "sarif", "junit", "json"] {
        for command in ["check", "explain"] {
            if command == "explain" && !["text", "html", "json"].contains(&form) {
                continue;
            }
            let output = taipan(&[command, "--color", "never", "--output", form, name], folder.path());
            assert_eq!(output.status.code(), Some(1));
            let out = String::from_utf8(output.stdout).unwrap();
            // In JSON a name is what it is; a parser undoes the escapes.
            assert!(
                !out.contains(|letter: char| is_odd(letter)
                    && (!["json", "sarif"].contains(&form) || letter != '\u{202e}')),
                "{out:?}"
            );
            assert!(
                !out.lines().any(|line| line.starts_with("# All good") || line.starts_with("odd.jsonl:")),
                "{out}"
            );
        }
    }
    for form in ["dot", "mermaid", "svg"] {
        let (_, out) = said(&["explain", "--output", form, name], folder.path());
        assert!(!out.contains(is_odd), "{form}: {out:?}");
    }
    for missing in [&["check", "no\u{1b}[31m\u{202e}such"][..], &["stats", "no\u{1b}[31m\u{202e}such"]] {
        let output = taipan(missing, folder.path());
        assert_eq!(output.status.code(), Some(3));
        assert!(!String::from_utf8_lossy(&output.stderr).contains(is_odd));
    }
}

/// A page without the column of times.
fn without_times(page: &str) -> String {
    let cells: Vec<&str> = page.split("<td class=\"number\">").collect();
    cells.iter().map(|cell| cell.split_once("</td>").map_or(*cell, |(_, rest)| rest)).collect()
}

#[test]
fn the_same_input_gives_the_same_page() {
    let folder = folder(&[]);
    let target = "sim:serializable?bug=write-skew";
    assert_eq!(said(&["generate", "-n", "3000", "--target", target, "h.jsonl"], folder.path()).0, 0);
    let pages: Vec<String> = (0..3)
        .map(|number| {
            let page = format!("{number}.html");
            assert_eq!(said(&["check", "--report", &page, "h.jsonl"], folder.path()).0, 1);
            without_times(&std::fs::read_to_string(folder.path().join(page)).unwrap())
        })
        .collect();
    assert!(pages[0].contains("h.jsonl") && pages.windows(2).all(|pair| pair[0] == pair[1]));
}

/// A level of the user's own whose module speaks of nothing in the file.
#[test]
fn a_module_that_matches_nothing_is_refused() {
    let levels = |key: &str| {
        format!("[[level]]\nname = \"mine\"\nedges = [\"ww\", \"wr\", \"rw\"]\nlinearizable = [\"{key}\"]\n")
    };
    let folder = folder(&[FINE, ("x.toml", &levels("x")), ("z.toml", &levels("z"))]);
    let check =
        |levels: &str| said(&["check", "--levels", levels, "--level", "mine", "fine.hist"], folder.path());
    let (exit, text) = check("z.toml");
    assert!(exit == 3 && text.contains("no key is called \"z\""), "{exit}: {text}");
    assert_ne!(check("x.toml").0, 3, "{}", check("x.toml").1);
}

/// What a profile lets go is counted.
#[test]
fn what_a_profile_does_not_judge_is_said() {
    let line = r#"{"session":1,"ops":[{"op":"write","key":"x","value":1},{"op":"query","where":{"value":{">":0}},"rows":[["x",1]]}]}"#;
    let folder = folder(&[("h.jsonl", line)]);
    let arguments = ["check", "--profile", "mariadb", "--level", "REPEATABLE READ", "h.jsonl"];
    let (_, text) = said(&arguments, folder.path());
    assert!(text.contains("1 operation is not checked"), "{text}");
}
