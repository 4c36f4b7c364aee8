//! Limits hold in every stage and command, from the first byte read: the answer is `undecided`.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

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
        assert!(said(&output).contains("timed out while reading"), "{}", said(&output));
        let output = taipan(&["check", "--max-memory", "1M", file], folder.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains("out of memory while reading"), "{}", said(&output));
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
    assert!(said.contains("timed out while reading"), "{said}");
    drop(stdin);
}

/// What `check --output json` says of its memory, in bytes.
fn peak(text: &str) -> u64 {
    let line = text.lines().next().unwrap();
    let json: serde_json::Value = serde_json::from_str(line).unwrap();
    json["stats"]["peak_rss_bytes"].as_u64().unwrap()
}

/// One transaction that writes many keys, then many that each do one operation on all of them.
fn many_keys(operation: &str) -> String {
    let writes = (0..30_000).map(|key| format!(r#"{{"op":"write","key":{key},"value":{key}}}"#));
    let first = format!("{{\"session\":0,\"ops\":[{}]}}\n", writes.collect::<Vec<_>>().join(","));
    let rest = (0..600).map(|number| format!("{{\"session\":{},\"ops\":[{operation}]}}\n", number % 40 + 1));
    first + &rest.collect::<String>()
}

/// Histories that are each slow or large in another stage.
fn slow_histories() -> Vec<(&'static str, String)> {
    let crowd = |n| {
        format!(
            "{{\"session\":{n},\"ops\":[{{\"op\":\"read\",\"key\":\"x\",\"value\":1}},{{\"op\":\"write\",\"key\":\"x\",\"value\":1}}]}}\n"
        )
    };
    let predicates = |n: u32| {
        let value = n % 4;
        format!(
            "{{\"session\":{},\"ops\":[{{\"op\":\"delete-where\",\"where\":{{\"not\":{{\"value\":{value}}}}}}},\
             {{\"op\":\"write\",\"key\":{},\"value\":{value}}},\
             {{\"op\":\"update\",\"where\":{{\"or\":[{{\"value\":{value}}},{{\"value\":{{\">\":2}}}}]}},\"set\":{value}}}]}}\n",
            n % 40,
            n * 7 % 50
        )
    };
    vec![
        ("updates", many_keys(r#"{"op":"update","where":{"value":{">":5}},"set":3}"#)),
        ("queries", many_keys(r#"{"op":"query","where":{"value":{">":5}}}"#)),
        ("scans", many_keys(r#"{"op":"scan","rows":[]}"#)),
        ("deletes", many_keys(r#"{"op":"delete-where","where":{"value":{">":5}}}"#)),
        ("crowd", (0..30_000).map(crowd).collect()),
        ("predicates", (0..1200).map(predicates).collect()),
    ]
}

/// What a loaded machine may add to a limit before a test fails. Without the limits these take minutes and gigabytes.
const SLACK: Duration = Duration::from_secs(20);

#[test]
fn every_stage_keeps_to_time_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ["--timeout", "1", "--max-memory", "80M", "--output", "json"];
    for (name, text) in slow_histories() {
        let file = format!("{name}.jsonl");
        std::fs::write(folder.path().join(&file), text).unwrap();
        for more in [
            &["--level", "serializable"][..],
            &["--level", "read-committed"],
            &["--level", "snapshot-isolation", "--anomalies"],
            &["--level", "causal"],
            &["--level", "serializable", "--strategy", "eager-pairs"],
            &["--level", "serializable", "--certificate", "c"],
            &["--all-levels"],
        ] {
            let started = Instant::now();
            let output = taipan(&[&["check", &file][..], more, &limits].concat(), folder.path());
            let (took, said) = (started.elapsed(), said(&output));
            assert!(
                output.status.code() == Some(0) || output.status.code() == Some(2),
                "{file} {more:?}: {output:?}"
            );
            assert!(took < SLACK, "{file} {more:?} took {took:?}");
            let peak = said.lines().map(|_| peak(&said)).max().unwrap_or(0);
            assert!(peak < 96 << 20, "{file} {more:?} took {peak} bytes");
        }
    }
}

/// Every command has the limits, not only those that check.
#[test]
fn every_command_that_reads_keeps_to_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    assert!(taipan(&["generate", "--transactions", "3000", "h.jsonl"], at).status.success());
    assert!(taipan(&["check", "--certificate", "c", "h.jsonl"], at).status.success());
    for command in [
        &["stats", "h.jsonl"][..],
        &["convert", "h.jsonl", "o.jsonl"],
        &["convert", "h.jsonl", "o.hist"],
        &["split", "h.jsonl", "shards", "--shards", "2"],
        &["smt", "h.jsonl"],
        &["certify", "h.jsonl", "c"],
        &["diff", "h.jsonl", "h.jsonl"],
        &["explain", "h.jsonl"],
        &["check", "h.jsonl"],
    ] {
        for (limit, value, said) in [("--timeout", "0", "timed out"), ("--max-memory", "1M", "out of memory")]
        {
            let output = taipan(&[command, &[limit, value]].concat(), at);
            let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{command:?} {limit}: {text}");
            assert!(text.contains(said), "{command:?} {limit}: {text}");
            let _ = std::fs::remove_dir_all(at.join("shards"));
        }
    }
}

/// One line of 36 MB, whatever is long in it, takes no more than a small multiple of itself before a limit ends it.
#[test]
fn a_long_line_keeps_to_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    let repeat = |part: &str| part.repeat((36 << 20) / part.len());
    let numbered = |part: fn(usize) -> String| (0..2_250_000).map(part).collect::<String>();
    for (name, text) in [
        (
            "list",
            format!(
                "{{\"session\":1,\"ops\":[{{\"op\":\"write\",\"key\":\"x\",\"value\":[1{}]}}]}}\n",
                repeat(",1")
            ),
        ),
        (
            "initial",
            format!("{{\"history\":1,\"initial\":{{\"x\":1{}}}}}\n", numbered(|n| format!(",\"a{n:x}\":1"))),
        ),
        (
            "rows",
            format!(
                "{{\"session\":1,\"ops\":[{{\"op\":\"scan\",\"rows\":[[\"x\",1]{}]}}]}}\n",
                numbered(|n| format!(",[\"{n:x}\",1]"))
            ),
        ),
        (
            "where",
            format!(
                "{{\"session\":1,\"ops\":[{{\"op\":\"query\",\"where\":{{\"or\":[{{\"a\":1}}{}]}},\"rows\":[]}}]}}\n",
                repeat(",{\"a\":1}")
            ),
        ),
        (
            "header",
            format!("{{\"history\":1,\"note\":[1{}]}}\n{{\"session\":1,\"ops\":[]}}\n", repeat(",[]")),
        ),
    ] {
        let file = format!("{name}.jsonl");
        std::fs::write(folder.path().join(&file), text).unwrap();
        let started = Instant::now();
        let arguments = ["check", "--timeout", "2", "--max-memory", "120M", "--output", "json", &file];
        let output = taipan(&arguments, folder.path());
        assert!(started.elapsed() < SLACK, "{file} took {:?}", started.elapsed());
        let is_refused = output.status.code() == Some(3);
        // A history of the initial state alone has no transactions.
        assert!(
            matches!(output.status.code(), Some(0 | 2)) || is_refused && name == "initial",
            "{file}: {output:?}"
        );
        if !is_refused {
            assert!(peak(&said(&output)) < 132 << 20, "{file}: {}", said(&output));
        }
    }
}

/// The check of what `run` recorded has the limits of `check`, also where the recording is read from its file.
#[test]
fn the_check_of_a_run_keeps_to_its_limits() {
    let folder = tempfile::tempdir().unwrap();
    for more in [&[][..], &["--record", "h.jsonl"]] {
        let run = ["run", "sim:serializable", "-n", "3000", "--timeout", "0"];
        let output = taipan(&[&run, more].concat(), folder.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let run = ["run", "sqlite:temp", "-n", "200", "--timeout", "0"];
        let output = taipan(&[&run, more].concat(), folder.path());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let _ = std::fs::remove_file(folder.path().join("h.jsonl"));
    }
    assert!(!folder.path().join("temp").exists(), "sqlite:temp is a temporary folder");
}
