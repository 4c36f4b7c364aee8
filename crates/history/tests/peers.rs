//! The peers' formats: hand-written samples of each, and what they come to in the one-line notation.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod same;

use std::path::{Path, PathBuf};
use taipan_history::formats::{
    Format, ReadOptions, notation, read_bytes, read_path, write_path, write_string,
};
use taipan_history::{Builder, History, Lock, NameRef, Timestamp};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A sample is recognised as `format` and is the history in the notation.
#[track_caller]
fn reads(name: &str, format: Format, expected: &str) -> History {
    let loaded = read_path(&sample(name), &ReadOptions::default()).unwrap();
    assert_eq!(loaded.format, format);
    is(&loaded.history, expected);
    loaded.history
}

/// Some text is recognised as `format` and is the history in the notation.
#[track_caller]
fn reads_text(text: &str, format: Format, expected: &str) -> History {
    let loaded = read_bytes("sample", text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(loaded.format, format);
    is(&loaded.history, expected);
    loaded.history
}

#[track_caller]
fn is(history: &History, expected: &str) {
    let (is, expected) =
        (notation::to_string(history), notation::to_string(&notation::parse(expected).unwrap()));
    assert_eq!(is, expected, "\n--- is:\n{is}\n--- expected:\n{expected}");
}

/// The message of a refusal contains these pieces.
#[track_caller]
fn refused(text: &[u8], format: Format, pieces: &[&str]) {
    let options = ReadOptions { format: Some(format), ..ReadOptions::default() };
    let error = read_bytes("bad", text, &options).unwrap_err().to_string();
    for piece in pieces {
        assert!(error.contains(piece), "{error:?} does not say {piece:?}");
    }
}

/// A history in the notation is written as this text, and read from it as the same.
#[track_caller]
fn writes(history: &str, format: Format, expected: &str) {
    let history = notation::parse(history).unwrap();
    let text = write_string(&history, format).unwrap();
    assert_eq!(text, expected);
    let again = read_bytes("again", text.as_bytes(), &ReadOptions::default()).unwrap();
    assert_eq!(again.format, format);
    assert_eq!(same::difference(&history, &again.history), None);
}

/// A history in the notation cannot be written, for this reason.
#[track_caller]
fn cannot_hold(history: &str, format: Format, reason: &str) {
    let history = notation::parse(history).unwrap();
    let error = write_string(&history, format).unwrap_err().to_string();
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
}

#[test]
fn edn_lists_with_every_outcome() {
    reads(
        "append.edn",
        Format::ElleEdn,
        "0: a(x,1) r(y,_)@10..20 | r(x,[1 0])@30..40
         1: a(x,0)?@12..22
         3: r(x,?) a(y,7)!@50..60
         4: a(y,8) r(x,?)?@70..",
    );
}

#[test]
fn json_registers_by_place_in_the_file() {
    // No times: the order of the file is the order in which things happened.
    let history = reads("register.json", Format::ElleJson, "1: r(x,_)@1..2\n0: w(x,1) r(y,two)@0..3");
    assert_eq!(history.header_extra(), Some(r#"{"jepsen":{"clock":"place"}}"#));
}

#[test]
fn completions_alone_claim_no_time() {
    reads("completions.jsonl", Format::ElleJson, "0: a(1,5)\n1: r(1,[5])");
}

#[test]
fn operations_without_a_process_are_sessions_of_their_own() {
    // Overlapping invocations are told apart by what they do.
    reads_text(
        "[{:type :invoke :value [[:w 1 1]]} {:type :invoke :value [[:w 2 2]]}
          {:type :ok :value [[:w 1 1]]} {:type :ok :value [[:w 2 2]]}]",
        Format::ElleEdn,
        "0: w(1,1)@0..2\n1: w(2,2)@1..3",
    );
}

#[test]
fn an_indeterminate_read_counts_only_if_the_completion_filled_it_in() {
    reads_text(
        "{:type :invoke :process 0 :value [[:r 1 nil] [:r 2 nil] [:r 3 9]]}
         {:type :info :process 0 :value [[:r 1 5] [:r 2 nil] [:r 3 9]]}",
        Format::ElleEdn,
        "0: r(1,5) r(2,?) r(3,?)?@0..1",
    );
}

#[test]
fn a_completion_without_a_value_leaves_results_open() {
    reads_text(
        "{:type :invoke :process 0 :value [[:w 1 5] [:r 2 nil]]} {:type :ok :process 0 :value nil}
         {:type :invoke :process 0 :value [[:w 1 6]]} {:type :fail :process 0 :value :conflict}",
        Format::ElleEdn,
        "0: w(1,5) r(2,?)@0..1 | w(1,6)!@2..3",
    );
}

#[test]
fn a_register_with_compare_and_set() {
    reads_text(
        "({:process 1 :type :invoke :f :write :value 3} {:process 1 :type :ok :f :write :value 3}
          {:process 1 :type :invoke :f :cas :value [3 4]} {:process 1 :type :ok :f :cas :value [3 4]}
          {:process 2 :type :invoke :f :cas :value [0 1]} {:process 2 :type :fail :f :cas :value [0 1]}
          {:process 2 :type :invoke :f :read :value nil} {:process 2 :type :ok :f :read :value 4}
          {:process 3 :type :invoke :f :read :value 9})",
        Format::ElleEdn,
        "1: w(register,3)@0..1 | r(register,3) w(register,4)@2..3
         2: r(register,0) w(register,1)!@4..5 | r(register,4)@6..7
         3: r(register,?)?@8..",
    );
}

#[test]
fn a_mutex_is_a_register_that_starts_free() {
    reads_text(
        "[{:process 1 :type :invoke :f :acquire} {:process 1 :type :ok :f :acquire}
          {:process 1 :type :invoke :f :release} {:process 1 :type :info :f :release}]",
        Format::ElleEdn,
        "init: mutex=0\n1: r(mutex,0) w(mutex,1)@0..1 | r(mutex,1) w(mutex,0)?@2..3",
    );
}

#[test]
fn a_set_is_one_key_an_element() {
    reads_text(
        "{:process 1 :type :ok :f :add :value 5} {:process 1 :type :ok :f :add :value 3}
         {:process 2 :type :ok :f :read :value #{5 3 8}} {:process 3 :type :info :f :read :value nil}",
        Format::ElleEdn,
        "1: w(5,5) | w(3,3)\n2: scan(..)=[3:3 5:5 8:8]\n3: scan(..)=??",
    );
}

#[test]
fn comments_nobody_wrote_were_there_before() {
    reads_text(
        "{:type :ok :f :write :value 5 :process 1} {:type :ok :f :read :value #{2 5} :process 2}",
        Format::ElleEdn,
        "init: 2=2\n1: w(5,5)\n2: scan(..)=[2:2 5:5]",
    );
}

#[test]
fn balances_of_a_bank_without_transfers() {
    reads_text(
        r#"[{"type":"ok","f":"read","process":0,"value":{"0":10,"1":-1}},
            {"type":"ok","f":"read","process":0,"value":{"0":11,"1":-1}}]"#,
        Format::ElleJson,
        "init: 0=10 1=-1\n0: r(0,10) r(1,-1) | r(0,11) r(1,-1)",
    );
}

#[test]
fn balances_are_not_checked_where_transfers_may_have_happened() {
    let text = "{:type :ok :f :transfer :value {:from 0 :to 1 :amount 5} :process 0}
                {:type :ok :f :read :value {0 5, 1 5} :process 0}";
    let history = reads_text(text, Format::ElleEdn, "0: () | r(0,?) r(1,?)");
    let kept: Vec<_> = history.transactions().map(|txn| txn.ctx().unwrap().to_owned()).collect();
    assert_eq!(
        kept,
        [r#"{"f":"transfer","value":{"from":0,"to":1,"amount":5}}"#, r#"{"f":"read","value":{"0":5,"1":5}}"#]
    );
    assert!(history.header_extra().unwrap().contains("relative"));
}

#[test]
fn what_cannot_be_checked_is_said() {
    let noted = |text: &str| {
        let loaded = read_bytes("noted", text.as_bytes(), &ReadOptions::default()).unwrap();
        loaded.warnings.notes.join("; ")
    };
    assert!(noted("{:type :ok :f :add :value 1 :process 0}").contains("counter"));
    assert!(noted("{:type :info :f :transfer :value {:from 0 :to 1 :amount 5} :process 0}").contains("bank"));
    assert_eq!(noted("{:type :ok :f :txn :value [] :process 0}"), "");
    let loaded = read_path(&sample("history.bincode"), &ReadOptions::default()).unwrap();
    assert!(loaded.warnings.notes[0].starts_with("1 committed transactions hold operations that failed"));
}

#[test]
fn a_counter_is_not_checked() {
    let text = "{:type :ok :f :add :value 1 :process 0} {:type :ok :f :read :value 1 :process 0}";
    let history = reads_text(text, Format::ElleEdn, "0: () | r(counter,?)");
    assert!(history.header_extra().unwrap().contains("counter"));
}

#[test]
fn long_fork_reads_are_transactions() {
    reads_text(
        "[{:type :invoke, :f :read, :value [[:r 0 nil] [:r 1 nil]]},
          {:type :ok, :f :read, :value [[:r 0 1] [:r 1 nil]]}]",
        Format::ElleEdn,
        "0: r(0,1) r(1,_)@0..1",
    );
}

#[test]
fn edn_in_all_its_forms() {
    reads_text(
        "; a comment\n#jepsen.history.Op {:type :ok,,, :process 0 :f :txn\n :value [[:w \"a b\" \"q\\\"\\u0041\"]
         [:w [1 2] 1.5] [:w 3N -7] [:w \\a nil] [:w :k/n true] [:r {:a 1} [1 [2 3] #{4}]] #_[:boom]] ^:meta :x 1/2}",
        Format::ElleEdn,
        r#"0: w("a b","q\"A") w("[1,2]",1.5) w(3,-7) w(a,_) w(k/n,true) r("{\"a\":1}",[1 "[2,3]" "[4]"])"#,
    );
}

#[test]
fn bad_operations_are_refused_in_place() {
    refused(
        b"{:type :ok, :process 0, :value [[:inc 1 2]]}",
        Format::ElleEdn,
        &["bad:1:34", ":inc", "[:append key"],
    );
    refused(b"{:process 0, :value [[:r 1 2]]}", Format::ElleEdn, &["bad:1:1", "without a :type"]);
    refused(b"{:type :ok :f :enqueue :value 1}", Format::ElleEdn, &["bad:1:15", ":enqueue"]);
    refused(
        b"{:type :ok :f :txn :value 1}",
        Format::ElleEdn,
        &["bad:1:27", "not a list of micro-operations"],
    );
    refused(b"[{:type :ok}", Format::ElleEdn, &["bad:1:13", "`]` at the end"]);
    refused(b"{:type :ok]", Format::ElleEdn, &["bad:1:11", "does not close"]);
    refused(b"{:type :ok :x}", Format::ElleEdn, &["bad:1:14", "no value"]);
    refused(b"{:type :ok \"abc}", Format::ElleEdn, &["bad:1:12", "does not end"]);
    refused(b"[{\"type\":\"ok\"},]", Format::ElleJson, &["bad:1:16"]);
    refused("[".repeat(100_000).as_bytes(), Format::ElleEdn, &["nest"]);
    refused("[".repeat(100_000).as_bytes(), Format::ElleJson, &["nest"]);
    refused(
        b"{:type :invoke :process 0 :time 9 :value []} {:type :ok :process 0 :time 3 :value []}",
        Format::ElleEdn,
        &["after client.end"],
    );
}

#[test]
fn bad_operations_are_left_out_if_that_is_allowed() {
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let text = b"{:type :ok :process 0 :value [[:w 1 1]]} {:type :ok :process 0 :value [[:inc 1]]}";
    let loaded = read_bytes("lenient", text, &options).unwrap();
    is(&loaded.history, "0: w(1,1)");
    assert_eq!(loaded.warnings.count, 1);
}

#[test]
fn elle_writes_what_elle_reads() {
    writes(
        "0: a(x,1) r(y,_)@10..20 | r(x,[1 0])@30..40\n1: a(x,0)?@12..22\n3: r(x,?) a(y,7)!@15..60\n4: a(y,8) r(x,?)?@70..",
        Format::ElleEdn,
        "{:index 0, :type :invoke, :process 0, :f :txn, :value [[:append \"x\" 1] [:r \"y\" nil]], :time 10}
{:index 1, :type :invoke, :process 1, :f :txn, :value [[:append \"x\" 0]], :time 12}
{:index 2, :type :invoke, :process 3, :f :txn, :value [[:r \"x\" nil] [:append \"y\" 7]], :time 15}
{:index 3, :type :ok, :process 0, :f :txn, :value [[:append \"x\" 1] [:r \"y\" []]], :time 20}
{:index 4, :type :info, :process 1, :f :txn, :value [[:append \"x\" 0]], :time 22}
{:index 5, :type :invoke, :process 0, :f :txn, :value [[:r \"x\" nil]], :time 30}
{:index 6, :type :ok, :process 0, :f :txn, :value [[:r \"x\" [1, 0]]], :time 40}
{:index 7, :type :fail, :process 3, :f :txn, :value [[:r \"x\" nil] [:append \"y\" 7]], :time 60}
{:index 8, :type :invoke, :process 4, :f :txn, :value [[:append \"y\" 8] [:r \"x\" nil]], :time 70}
",
    );
    writes(
        "0: w(1,\"a\")\n1: r(1,\"a\") r(2,_)",
        Format::ElleJson,
        r#"[{"index":0,"type":"ok","process":0,"f":"txn","value":[["w",1,"a"]]},
{"index":1,"type":"ok","process":1,"f":"txn","value":[["r",1,"a"],["r",2,null]]}]
"#,
    );
}

#[test]
fn elle_refuses_what_it_has_no_word_for() {
    cannot_hold("s: d(x)", Format::ElleEdn, "deletes (first in transaction s:0)");
    cannot_hold("s: a(x,1) | w(y,2)", Format::ElleEdn, "both appends and writes");
    cannot_hold("s: scan(a..b)=[]", Format::ElleJson, "`scan`");
    cannot_hold("init: x=0\ns: r(x,0) | w(x,0)", Format::ElleEdn, "a read of 0 from key x");
    cannot_hold("init: x=1\ns: a(x,2)", Format::ElleEdn, "lists of this format start empty");
    cannot_hold("s: r(x,_) w(y,1)?", Format::ElleEdn, "reads of absent keys");
    cannot_hold("s: r(x,[]) a(y,1)?", Format::ElleJson, "reads of absent keys");
    cannot_hold("s: w(x,{a:1})", Format::ElleEdn, "rows");
}

#[test]
fn timekiller_key_value() {
    let history = reads(
        "timekiller-kv.json",
        Format::Timekiller,
        "init: 1=0 2=0\n7: [1] w(1,10) r(2,0)@@100..110.2\nc: [two] r(1,10)@@110.2..120",
    );
    let (start, _) = history.transactions().last().unwrap().db().unwrap();
    assert_eq!(start, Timestamp { physical: 110, logical: 2 });
}

#[test]
fn timekiller_lists() {
    reads(
        "timekiller-list.json",
        Format::Timekiller,
        "1: [1] a(1,10) r(2,_) r(3,_)@@1..2 | [2] r(1,[10])@@3..3.1",
    );
}

#[test]
fn timekiller_keys_start_absent_if_any_read_says_so() {
    reads_text(
        r#"[{"tid":1,"sid":1,"sts":{"p":1,"l":0},"cts":{"p":2,"l":0},"ops":[{"t":"r","k":1,"v":null},{"t":"w","k":2,"v":3}]}]"#,
        Format::Timekiller,
        "1: [1] r(1,_) w(2,3)@@1..2",
    );
}

#[test]
fn timekiller_refusals() {
    let txn =
        |rest: &str| format!(r#"[{{"tid":1,"sid":1,"sts":{{"p":5,"l":0}},"cts":{{"p":6,"l":0}},{rest}}}]"#);
    let bad = |text: &str, piece: &str| refused(text.as_bytes(), Format::Timekiller, &[piece]);
    bad(&txn(r#""ops":[{"t":"x","k":1}]"#), "an operation of type \"x\"");
    bad(&txn(r#""ops":[{"t":"w","k":1}]"#), "a write without a value");
    bad(&txn(r#""ops":[{"t":"r","v":1}]"#), "without a key");
    bad(&txn(r#""nops":[]"#), "without `ops`");
    reads_text(
        r#"[{"tid":1,"sid":1,"sts":{"p":7,"l":0},"cts":{"p":6,"l":0},"ops":[{"t":"w","k":1,"v":2}]}]"#,
        Format::Timekiller,
        "init: 1=0\n1: [1] w(1,2)@@7..6",
    );
    bad(r#"[{"tid":1,"sid":1,"sts":{"p":7,"l":-1},"cts":{"p":8,"l":0},"ops":[]}]"#, "a logical time of -1");
    cannot_hold("1: w(x,1)", Format::Timekiller, "without database timestamps");
    cannot_hold("1: w(1,1)!@@1..2", Format::Timekiller, "aborted transactions");
    writes(
        "init: 1=0\n1: [5] w(1,10)@@100..110.2\nc: [two] r(1,10)@@110..120",
        Format::Timekiller,
        "[\n{\"tid\": 5, \"sid\": 1, \"sts\": {\"p\": 100, \"l\": 0}, \"cts\": {\"p\": 110, \"l\": 2}, \"ops\": [{\"t\": \"w\", \"k\": 1, \"v\": 10}]},\n{\"tid\": \"two\", \"sid\": \"c\", \"sts\": {\"p\": 110, \"l\": 0}, \"cts\": {\"p\": 120, \"l\": 0}, \"ops\": [{\"t\": \"r\", \"k\": 1, \"v\": 10}]}\n]\n",
    );
}

#[test]
fn dbcop_json_with_both_kinds_of_initial_read() {
    let history =
        reads("dbcop.json", Format::DbcopJson, "init: 0=0\n1: w(0,1) r(1,_)\n2: r(0,0) w(1,2)! | r(0,0)");
    assert!(history.header_extra().unwrap().contains(r#""info":"by hand""#));
    let text = write_string(&history, Format::DbcopJson).unwrap();
    assert!(text.contains(r#""params":{"id":3,"n_node":2,"#), "{text}");
}

#[test]
fn dbcop_json_bare_sessions_and_old_events() {
    reads_text(r#"[[{"events":[["w",1,5]],"committed":true}],[]]"#, Format::DbcopJson, "1: w(1,5)");
    let old = r#"[[{"events":[{"write":true,"variable":1,"value":5,"success":true},
                             {"write":false,"variable":2,"value":0,"success":false}],"success":true}]]"#;
    let history = reads_text(old, Format::DbcopJson, "init: 1=0\n1: w(1,5)");
    assert_eq!(history.transactions().next().unwrap().ctx(), Some(r#"{"failed_operations":1}"#));
}

#[test]
fn dbcop_text() {
    reads(
        "dbcop.hist",
        Format::DbcopHist,
        "init: z=0\n1: w(x,1) r(y,_) | w(y,2)!\n2: r(x,1) w(7,3) | r(z,0) r(z,0)",
    );
    writes(
        "init: z=0\n1: w(x,1) r(y,_) | w(y,2)!\n2: r(x,1) w(7,3) | r(z,0)",
        Format::DbcopHist,
        "[x:=1 y==?]\n[y:=2]!\n---\n[x==1 7:=3]\n[z==0]\n",
    );
    refused(b"[x:=1 y=2]", Format::DbcopHist, &["bad:1:8", "`:=` for a write"]);
    refused(b"[x:=1\n", Format::DbcopHist, &["bad:1:6", "`]`"]);
    refused(b"[x:=-1]\n", Format::DbcopHist, &["bad:1:5", "a version"]);
    refused(b"oops\n", Format::DbcopHist, &["bad:1:1", "a transaction"]);
    cannot_hold("1: w(\"a b\",1)", Format::DbcopHist, "keys that are neither words");
    cannot_hold("1: r(x,0)", Format::DbcopHist, "a read of 0 from key x");
    cannot_hold("1: w(x,1)?", Format::DbcopHist, "outcome is unknown");
}

#[test]
fn polysi_text() {
    reads(
        "polysi.txt",
        Format::Text,
        "init: 1=0 2=0\n1: [1] w(1,10) w(2,20) | [4] r(2,20)\n2: [2] r(2,0) | [3] r(1,10) | w(1,11)!",
    );
    // Keys that an explicit first transaction creates are absent before it; the others start at 0.
    reads("isovista.txt", Format::Text, "init: 3=0\n0: [0] w(1,0) w(2,0)\n1: [1] r(1,0) r(3,0)");
    writes(
        "init: 1=0\n1: [7] w(1,5) r(1,5)\n2: [9] r(1,0) | w(1,6)!",
        Format::Text,
        "w(1,5,1,7)\nr(1,5,1,7)\nr(1,0,2,9)\nw(1,6,2,-1)\n",
    );
    refused(b"w(1,2,3,4)\nr(1,2,3)\n", Format::Text, &["bad:2:8", "no `,` here"]);
    refused(b"w(1,2,3,4)\nw(1,x,3,4)\n", Format::Text, &["bad:2:5", "no integer here"]);
    refused(b"w(1,2,3,4)\nw(1,2,9,4)\n", Format::Text, &["bad:2:1", "transaction 4 in session 9"]);
    refused(b"w(99999999999999999999,2,3,4)\n", Format::Text, &["bad:1:3", "does not fit 64 bits"]);
    cannot_hold("1: w(x,1)", Format::Text, "keys that are not integers");
    cannot_hold("1: w(1,0) | r(1,0)", Format::Text, "a read of 0 from key 1, which starts as absent");
}

#[test]
fn awdit_text() {
    reads("awdit.txt", Format::Awdit, "1: w(1,0) | w(1,5)\n2: r(1,5) | r(1,0)");
    writes("1: w(1,0) | w(1,5)\n2: r(1,5)", Format::Awdit, "w 1 0\n-----\nw 1 5\n=====\nr 1 5\n");
    refused(b"w 1 2\nr 1\n", Format::Awdit, &["bad:2:4", "no integer here"]);
    refused(b"w 1 2 3\n", Format::Awdit, &["bad:1:6", "after the value"]);
    cannot_hold("1: r(1,_)", Format::Awdit, "before its first write");
    cannot_hold("init: 1=0\n1: r(1,0)", Format::Awdit, "before its first write");
}

#[test]
fn dbcop_binary() {
    let history = reads(
        "history.bincode",
        Format::DbcopBincode,
        "init: 0=0 1=0 2=0\n1: w(0,1) r(1,0) | w(1,5)!\n2: r(0,1) w(2,18446744073709551615)",
    );
    let failed: Vec<_> = history.transactions().map(|txn| txn.ctx()).collect();
    assert_eq!(failed, [None, None, Some(r#"{"failed_operations":1}"#)]);
    let mut bytes = Vec::new();
    taipan_history::formats::write_stream(&history, Format::DbcopBincode, &mut bytes).unwrap();
    let original = std::fs::read(sample("history.bincode")).unwrap();
    // The same file but for the failed read, which is not kept.
    assert_eq!(bytes.len(), original.len() - 18);
    assert_eq!(bytes[..60], original[..60]);
    let again = read_bytes("again", &bytes, &ReadOptions::default()).unwrap();
    assert_eq!(same::difference(&history, &again.history), None);
}

#[test]
fn dbcop_binary_that_lies_about_its_length_costs_nothing() {
    let original = std::fs::read(sample("history.bincode")).unwrap();
    let bad = |bytes: &[u8], piece: &str| refused(bytes, Format::DbcopBincode, &["byte", piece]);
    for len in 0..original.len() {
        let options =
            ReadOptions { format: Some(Format::DbcopBincode), allow_empty: true, ..ReadOptions::default() };
        let cut = read_bytes("cut", &original[..len], &options);
        assert!(cut.is_err() || len == 0, "cut off at {len}");
    }
    let mut longer = original.clone();
    longer.push(0);
    bad(&longer, "bytes after the last session");
    let sessions = 40 + 8 + 7 + 2 * (8 + 25);
    let mut many = original.clone();
    many[sessions..sessions + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    bad(&many, "18446744073709551615 sessions are announced");
    let mut flag = original;
    let last = flag.len() - 1;
    flag[last] = 2;
    bad(&flag, "2 for the transaction's success");
}

#[test]
fn cobra_with_write_ids() {
    let history =
        reads("cobra", Format::Cobra, "2: [11] w(-7,501) r(8,_) | [12] r(-7,501)\n10: [13] r(8,_) r(8,999)");
    there_and_back(&history, Format::Cobra);
}

#[test]
fn cobra_by_value() {
    let history = reads("cobra-values", Format::Cobra, "1: [1] w(5,50) r(6,60) | [2] w(5,50) r(5,_)");
    there_and_back(&history, Format::Cobra);
}

#[test]
fn cobra_with_times_and_without_ids() {
    let mut builder = Builder::new();
    let session = builder.session(NameRef::Int(0));
    let (key, value) = (builder.key(NameRef::Int(4)), builder.int(9));
    builder.begin(session);
    builder.write(key, value);
    builder.read(key, value, Lock::None);
    builder.set_client(taipan_history::Span { begin: 5, end: 8 }).unwrap();
    builder.set_id(NameRef::Int(77)).unwrap();
    builder.end().unwrap();
    there_and_back(&builder.finish().unwrap(), Format::Cobra);
}

#[test]
fn cobra_refusals() {
    let integers = |values: &[i64]| values.iter().flat_map(|value| value.to_be_bytes()).collect::<Vec<u8>>();
    let folder = scratch("cobra-bad");
    let bad = |parts: &[&[u8]], piece: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("T1.log"), parts.concat()).unwrap();
        let error = read_path(&folder, &ReadOptions::default()).unwrap_err().to_string();
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(error.contains(piece) && error.contains("T1.log"), "{error:?} does not say {piece:?}");
    };
    let begin: &[u8] = &[b"S".as_slice(), &integers(&[1])].concat();
    let commit: &[u8] = &[b"C".as_slice(), &integers(&[1])].concat();
    bad(&[begin, b"C", &integers(&[2])], "a commit of transaction 2 while 1 is open");
    bad(&[begin, commit, begin, commit], "transaction id 1 is used twice");
    bad(&[begin, b"W", &integers(&[1, 2])], "ends inside a write");
    bad(&[begin, b"W", &integers(&[1, 2, 3])], "ends inside the transaction");
    bad(&[begin, commit, b"A", &integers(&[1])], "an abort");
    let mixed = [b"W".as_slice(), &integers(&[5, 2, 3]), b"W", &integers(&[0xabdd_efee, 2, 3])].concat();
    bad(&[begin, &mixed, commit], "a value-only operation");
    cannot_hold_directory("1: w(1,2)!", Format::Cobra, "aborted");
    cannot_hold_directory("1: w(x,2)", Format::Cobra, "keys that are not integers");
}

#[test]
fn viper_logs_tell_initial_values_by_reads() {
    reads(
        "viper",
        Format::Viper,
        "init: 1=100 2=7
         0: r(1,100) w(1,101) | r(3,_)
         1: r(1,101) scan(1..4)=[1:101 2:7] | r(1,101) w(1,102) r(4,_) w(4,400)",
    );
    let plain = notation::parse("init: 1=100\n3: r(1,100) w(1,5) a(9,1)\n4: r(1,5) r(2,_) r(9,[1])").unwrap();
    there_and_back(&plain, Format::Viper);
    cannot_hold_directory(
        "init: 1=5\n1: r(1,5) | w(1,5)",
        Format::Viper,
        "counts as the initial value only if no transaction writes it",
    );
    cannot_hold_directory("1: r(1,5)", Format::Viper, "a read of 5 from key 1");
}

#[test]
fn a_directory_is_not_written_over_one_with_files() {
    let history = notation::parse("1: w(1,2)").unwrap();
    let folder = scratch("occupied");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mine"), "kept").unwrap();
    assert!(write_path(&history, Format::Cobra, &folder).is_err());
    assert_eq!(std::fs::read(folder.join("mine")).unwrap(), b"kept");
    std::fs::remove_dir_all(&folder).unwrap();
    let error = write_string(&history, Format::Cobra).unwrap_err().to_string();
    assert!(error.contains("directory"), "{error}");
}

fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{name}-{}", std::process::id()))
}

/// A history written as a directory and read again is the same.
#[track_caller]
fn there_and_back(history: &History, format: Format) {
    let folder = scratch(&format!("{format}-{}", history.op_count()));
    write_path(history, format, &folder).unwrap();
    let again = read_path(&folder, &ReadOptions::default()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(again.format, format);
    assert_eq!(same::difference(history, &again.history), None);
}

#[track_caller]
fn cannot_hold_directory(history: &str, format: Format, reason: &str) {
    let history = notation::parse(history).unwrap();
    let folder = scratch("refused");
    let error = write_path(&history, format, &folder).unwrap_err().to_string();
    assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    assert!(!folder.exists(), "nothing is left of a history that was refused");
}
