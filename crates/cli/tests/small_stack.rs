//! No command recurses over what it reads: deeply nested and long inputs end in an answer or an error, on a small stack.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Deeper than any stack, if each level took a frame.
const DEPTH: usize = 100_000;
/// Of the main thread, in kilobytes, and of all others, in bytes.
const STACKS: (&str, &str) = ("1024", "524288");

fn taipan(arguments: &[&str], folder: &Path) -> Output {
    Command::new("sh")
        .args(["-c", &format!("ulimit -s {}; exec \"$@\"", STACKS.0), "sh", env!("CARGO_BIN_EXE_taipan")])
        .args(arguments)
        .current_dir(folder)
        .env("RUST_MIN_STACK", STACKS.1)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn nested(open: &str, inner: &str, close: &str) -> String {
    open.repeat(DEPTH) + inner + &close.repeat(DEPTH)
}

/// Files that are nested deeply, each in another place of another format.
fn deep() -> Vec<(&'static str, String)> {
    let list = nested("[", "1", "]");
    let object = nested("{\"a\":", "1", "}");
    let query = |condition: &str| {
        format!("{{\"session\":1,\"ops\":[{{\"op\":\"query\",\"where\":{condition},\"rows\":[]}}]}}\n")
    };
    vec![
        (
            "list.jsonl",
            format!("{{\"session\":1,\"ops\":[{{\"op\":\"write\",\"key\":\"x\",\"value\":{list}}}]}}\n"),
        ),
        (
            "row.jsonl",
            format!("{{\"session\":1,\"ops\":[{{\"op\":\"write\",\"key\":\"x\",\"value\":{object}}}]}}\n"),
        ),
        ("unknown.jsonl", format!("{{\"session\":1,\"zz\":{list},\"ops\":[]}}\n")),
        ("header.jsonl", format!("{{\"history\":1,\"zz\":{object}}}\n{{\"session\":1,\"ops\":[]}}\n")),
        ("not.jsonl", query(&nested("{\"not\":", "{\"value\":1}", "}"))),
        ("or.jsonl", query(&nested("{\"or\":[", "{\"value\":1}", "]}"))),
        ("whole.json", list.clone()),
        ("elle.json", format!("[{{\"type\":\"ok\",\"f\":\"txn\",\"process\":0,\"value\":{list}}}]")),
        ("value.edn", format!("{{:type :invoke, :f :txn, :value {list}, :process 0}}\n")),
        ("map.edn", nested("{:a ", "1", "}")),
        ("tags.edn", "#a ".repeat(DEPTH) + "1"),
        ("skipped.edn", "#_".repeat(DEPTH) + "1"),
        ("value.hist", format!("a: w(x,{list})\n")),
        ("group.hist", format!("a: {}\n", nested("(", "", ")"))),
        ("level.toml", format!("a = {list}\n")),
        ("certificate", format!("{{\"file\":\"h.hist\",\"level\":\"serializable\",\"x\":{list}}}\n")),
        ("results.json", format!("{{\"file\":\"h\",\"level\":{list}}}\n")),
    ]
}

#[test]
fn deep_inputs_overflow_no_stack() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::write(at.join("h.hist"), "a: w(x,1)\nb: r(x,1) w(x,2)\nc: r(x,1) w(x,3)\n").unwrap();
    for (name, text) in deep() {
        fs::write(at.join(name), text).unwrap();
        for arguments in [
            &["check", name][..],
            &["check", "--lenient", "--all-levels", name],
            &["check", "--format", "jepsen", name],
            &["check", "--report", "r.html", name],
            &["check", "--levels", name, "h.hist"],
            &["check", "--baseline", name, "h.hist"],
            &["check", "--remarks", name, "h.hist"],
            &["explain", name],
            &["stats", name],
            &["smt", name],
            &["convert", name, "o.tph"],
            &["diff", name, "h.hist"],
            &["certify", "h.hist", name],
            &["hunt", "sqlite:", "--replay", name],
            &["watch", name],
        ] {
            let output = taipan(arguments, at);
            let said = String::from_utf8_lossy(&output.stderr);
            // A signal has no code.
            assert!(
                matches!(output.status.code(), Some(0..=3)),
                "{arguments:?}: {:?}: {said}",
                output.status
            );
            assert!(!said.contains("panicked") && !said.contains("overflow"), "{arguments:?}: {said}");
        }
    }
}

/// Transactions in a long row, each of which sees the one before and none of which is known to have committed.
#[test]
fn long_chains_overflow_no_stack() {
    let folder = tempfile::tempdir().unwrap();
    let count = 20_000;
    let mut text = "s0: w(k0,1)?\n".to_owned();
    for n in 1..count {
        let last = if n == count - 1 { " w(z,1)" } else { "" };
        text += &format!("s{n}: r(k{},{n}) w(k{n},{}){last}?\n", n - 1, n + 1);
    }
    text += "R: r(z,1) w(m,1)\nC: r(m,1) w(z,1)\n";
    fs::write(folder.path().join("chain.hist"), text).unwrap();
    for level in ["causal", "read-committed", "snapshot-isolation", "serializable", "read-atomic"] {
        let output = taipan(&["check", "--level", level, "chain.hist"], folder.path());
        assert_eq!(output.status.code(), Some(0), "{level}: {output:?}");
    }
}
