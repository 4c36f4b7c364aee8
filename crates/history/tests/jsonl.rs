//! The native format: what is read, what is written back, what is refused and how that is said.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]
use taipan_history::formats::{Format, ReadOptions, read_bytes, write_string};

fn options() -> ReadOptions {
    ReadOptions { format: Some(Format::Jsonl), ..ReadOptions::default() }
}

/// What is read is written back as the same text.
#[track_caller]
fn same(text: &str) {
    let loaded = read_bytes("h.jsonl", text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(loaded.format, Format::Jsonl);
    assert_eq!(write_string(&loaded.history, Format::Jsonl).unwrap(), text);
}

/// The whole message.
#[track_caller]
fn refused(text: &str, message: &str) {
    let error = read_bytes("h.jsonl", text.as_bytes(), &options()).unwrap_err().to_string();
    assert_eq!(error, message, "\n--- said:\n{error}\n--- wanted:\n{message}");
}

#[test]
fn every_operation_and_field_comes_back() {
    same(concat!(
        r#"{"history":1,"initial":{"x":0,"7":[1,2]},"level":"serializable","note":"kept","by":{"a":[1]}}"#,
        "\n",
        r#"{"session":1,"ops":[{"op":"write","key":"x","value":1},{"op":"read","key":7,"value":null}]}"#,
        "\n",
        r#"{"session":"s 2","id":"t7","status":"aborted","client":{"begin":100,"end":180},"db":{"start":7,"commit":[9,2]},"level":"read-committed","ops":[{"op":"read","key":"x"},{"op":"read","key":"x","value":1,"lock":"update"},{"op":"read","key":"x","value":1,"lock":"share","at":{"begin":1,"end":2},"ctx":{"why":[true]}},{"op":"delete","key":-5}],"ctx":{"host":"a"},"seq":3}"#,
        "\n",
        r#"{"session":1,"status":"unknown","client":{"begin":5},"db":{"start":[3,4]},"ops":[{"op":"append","key":"l","value":{"a":1,"b":null}},{"op":"scan","from":"a","to":"m","rows":[["b",3],["c",4]]},{"op":"scan"},{"op":"iterate","from":1,"reverse":true,"rows":[],"exhausted":true},{"op":"iterate","to":2,"rows":[]}]}"#,
        "\n",
        r#"{"session":1,"ops":[{"op":"query","where":{"v1":3,"or":[{"value":{">=":10,"<":20}},{"not":{"a":"x"}}]},"rows":[["b",{"v1":3}]]},{"op":"update","where":{},"set":1.5e0,"count":3,"keys":["a",1]},{"op":"delete-where","where":{"or":[]}}]}"#,
        "\n",
    ));
}

#[test]
fn faults_point_at_the_place() {
    refused(
        "{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":[{\"op\":\"wirte\",\"key\":\"x\"}]}\n",
        r#"h.jsonl:2:27: unknown operation "wirte"
  |
2 | {"session":1,"ops":[{"op":"wirte","key":"x"}]}
  |                           ^
  = expected "op": one of read, write, delete, append, scan, iterate, query, update, delete-where, cas"#,
    );
}
