//! What readers refuse, and in which words; what no input can make them do.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]
#![allow(clippy::print_stderr, reason = "a test says aloud what it skips")]

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use taipan_history::formats::{Format, ReadError, ReadOptions, read_bytes, read_path, read_stream};
use taipan_history::{Builder, Interrupt};

fn forced(format: Format) -> ReadOptions {
    ReadOptions { format: Some(format), ..ReadOptions::default() }
}

fn message(text: &[u8], options: &ReadOptions) -> String {
    match read_bytes("h", text, options) {
        Ok(loaded) => panic!("was read: {:?}", loaded.history),
        Err(error) => error.to_string(),
    }
}

/// Checks each case: the input, then the message without its excerpt: `line:column: problem = expected …`.
#[track_caller]
fn check(format: Format, cases: &[(&str, &str)]) {
    let mut wrong = String::new();
    for (input, wanted) in cases {
        let said = message(input.as_bytes(), &forced(format));
        let lines: Vec<&str> = said.lines().collect();
        let short = match lines[..] {
            [first, _, _, _, last] => {
                format!(
                    "{} = {}",
                    first.strip_prefix("h:").unwrap_or(first),
                    last.trim_start_matches([' ', '='])
                )
            }
            _ => said.clone(),
        };
        if short != *wanted {
            wrong += &format!("({input:?},\n {short:?}),\n");
        }
    }
    assert!(wrong.is_empty(), "said instead:\n{wrong}");
}

#[test]
fn json_lines() {
    check(
        Format::Jsonl,
        &[
            // Malformed JSON.
            (
                "hello\n",
                "1:1: 'h' is out of place here = expected a transaction, {\"session\":…,\"ops\":[…]}",
            ),
            ("[1]\n", "1:1: '[' is out of place here = expected a transaction, {\"session\":…,\"ops\":[…]}"),
            (
                "{\"session\":1,\"ops\":[]} {}\n",
                "1:24: '{' is out of place here = expected the end of the line: one transaction per line",
            ),
            ("{\"session\":1 \"ops\":[]}\n", "1:14: a string is out of place here = expected a comma or }"),
            (
                "{\"session\":1,\"ops\":[],}\n",
                "1:23: '}' is out of place here = expected another entry after the comma",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":\"x}]}\n",
                "1:40: the string that begins here does not end in this line = expected a closing double quote",
            ),
            (
                "{\"session\":1,\n\"ops\":[]}\n",
                "1:14: the text ends here, in the middle of a value = expected a field name in double quotes (one transaction per line: it cannot go on in the next)",
            ),
            (
                "{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":[{\"op\":\"re",
                "2:27: the string that begins here does not end in this line = expected a closing double quote (the file ends in the middle of this line: was it cut off?)",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":\"a\\x\"}]}\n",
                "1:42: unknown escape = expected one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u1234",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":\"\\ud800\"}]}\n",
                "1:41: bad unicode escape = expected \\u and four hexadecimal digits, in pairs above \\uffff",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":\"a\tb\"}]}\n",
                "1:42: the control character 0x09 stands unescaped in a string = expected \\u0009 or another escape",
            ),
            (
                "{\"session\":01,\"ops\":[]}\n",
                "1:12: '0' is out of place here = expected a number: digits without a leading zero",
            ),
            (
                "{\"session\":1.,\"ops\":[]}\n",
                "1:14: ',' is out of place here = expected a digit after the decimal point",
            ),
            (
                "{\"session\":1,\"ops\":[tru]}\n",
                "1:21: 't' is out of place here = expected an operation, {\"op\":…}",
            ),
            (
                "{\"session\":1,\"session\":1,\"ops\":[]}\n",
                "1:14: the field `session` is given twice = expected each field once",
            ),
            // Missing or wrong fields of a transaction.
            (
                "{\"ops\":[]}\n",
                "1:1: the transaction has no `session` = expected \"session\": an integer or a string, the connection that issued it",
            ),
            (
                "{\"session\":1}\n",
                "1:1: the transaction has no `ops` = expected \"ops\": the list of its operations",
            ),
            (
                "{\"session\":null,\"ops\":[]}\n",
                "1:12: a session cannot be null = expected an integer or a string",
            ),
            (
                "{\"session\":1.5,\"ops\":[]}\n",
                "1:12: 1.5 is not an integer = expected an integer (a session)",
            ),
            (
                "{\"session\":1,\"ops\":{}}\n",
                "1:20: '{' is out of place here = expected the list of operations",
            ),
            (
                "{\"session\":1,\"status\":\"comitted\",\"ops\":[]}\n",
                "1:23: unknown status \"comitted\" = expected \"committed\", \"aborted\" or \"unknown\"",
            ),
            (
                "{\"session\":1,\"ctx\":[],\"ops\":[]}\n",
                "1:20: '[' is out of place here = expected an object of hints",
            ),
            (
                "{\"session\":1,\"id\":[],\"ops\":[]}\n",
                "1:19: a transaction's id cannot be a list = expected an integer or a string",
            ),
            (
                "{\"session\":1,\"client\":{\"begin\":5,\"end\":3},\"ops\":[]}\n",
                "1:23: client.begin 5 is after client.end 3 = expected begin ≤ end, both on the client's clock",
            ),
            (
                "{\"session\":1,\"client\":{\"begin\":5},\"ops\":[]}\n",
                "1:23: a committed transaction has no `client.end` = expected the time of the answer",
            ),
            (
                "{\"session\":1,\"client\":{\"end\":5},\"ops\":[]}\n",
                "1:23: the object has no `begin` = expected {\"begin\":N,\"end\":N}",
            ),
            (
                "{\"session\":1,\"client\":{\"begin\":1.5,\"end\":2},\"ops\":[]}\n",
                "1:32: 1.5 is not an integer = expected an integer (a time; no fraction, use a finer unit)",
            ),
            (
                "{\"session\":1,\"client\":{\"begin\":1,\"finish\":2},\"ops\":[]}\n",
                "1:34: unknown field `finish` = expected {\"begin\":N,\"end\":N}",
            ),
            (
                "{\"session\":1,\"db\":{\"start\":9223372036854775807,\"commit\":-9223372036854775808},\"ops\":[]}\n",
                "1:19: db.start is the largest and db.commit the smallest time there is: a transaction without timestamps has no `db` = expected timestamps within 64 bits",
            ),
            (
                "{\"session\":1,\"db\":{\"start\":[7,-1],\"commit\":8},\"ops\":[]}\n",
                "1:31: the logical part does not fit 32 bits = expected an integer from 0 to 4294967295",
            ),
            (
                "{\"session\":1,\"id\":\"a\",\"ops\":[]}\n{\"session\":2,\"id\":\"a\",\"ops\":[]}\n",
                "2:19: transaction id a is used twice: ids must be unique in a history = expected another id, or none at all",
            ),
            (
                "{\"session\":1,\"ops\":[]}\n{\"session\":2,\"id\":\"1:0\",\"ops\":[]}\n",
                "2:19: transaction id 1:0 is used twice: ids must be unique in a history = expected another id, or none at all",
            ),
            (
                "{\"session\":2,\"id\":\"1:0\",\"ops\":[]}\n{\"session\":1,\"ops\":[]}\n",
                "2:1: transaction id 1:0 is used twice: ids must be unique in a history = expected another id",
            ),
            // The header.
            ("{\"history\":2}\n", "1:12: version 2 of the format is not known = expected 1"),
            (
                "{\"history\":1,\"initial\":[1]}\n",
                "1:25: '1' is out of place here = expected a row, [key, value]",
            ),
            (
                "{\"history\":1}\n{\"history\":1}\n",
                "2:1: a header comes too late = expected the header in the first line, and only there",
            ),
            // Operations.
            (
                "{\"session\":1,\"ops\":[{\"key\":1}]}\n",
                "1:21: the operation has no `op` = expected \"op\": one of read, write, delete, append, scan, iterate, query, update, delete-where, cas",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"wirte\",\"key\":1}]}\n",
                "1:27: unknown operation \"wirte\" = expected \"op\": one of read, write, delete, append, scan, iterate, query, update, delete-where, cas",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\"}]}\n",
                "1:21: the operation has no `key` = expected \"key\": an integer or a string",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":[1]}]}\n",
                "1:40: a key cannot be a list = expected an integer or a string",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":{\"a\":1}}]}\n",
                "1:40: a key cannot be an object = expected an integer or a string",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":true}]}\n",
                "1:40: a key cannot be a truth value = expected an integer or a string",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":18446744073709551615}]}\n",
                "1:40: 18446744073709551615 is too large for a key = expected an integer up to 9223372036854775807",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"key\":2}]}\n",
                "1:42: the field `key` is given twice = expected each field once",
            ),
            (
                "{\"session\":1,\"ops\":[{\"key\":1,\"op\":\"read\",\"op\":\"read\"}]}\n",
                "1:42: the field `op` is given twice = expected each field once",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1}]}\n",
                "1:21: the operation has no `value` = expected \"value\": what was written",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":18446744073709551616}]}\n",
                "1:51: the number 18446744073709551616 does not fit 64 bits = expected integers from -9223372036854775808 to 18446744073709551615, or a string",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":1e999}]}\n",
                "1:51: the number 1e999 does not fit 64 bits = expected integers from -9223372036854775808 to 18446744073709551615, or a string",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":{\"a\":[1]}}]}\n",
                "1:56: a column's value cannot be a list = expected a flat row: a scalar in every column",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":{\"a\":1,\"a\":2}}]}\n",
                "1:51: the row has a column twice = expected each column once",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"lock\":\"row\"}]}\n",
                "1:49: unknown lock \"row\" = expected \"update\" or \"share\"",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"at\":{\"begin\":2,\"end\":1}}]}\n",
                "1:47: at.begin 2 is after at.end 1 = expected begin ≤ end, both on the client's clock",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"scan\",\"rows\":[[1]]}]}\n",
                "1:44: ']' is out of place here = expected a comma and the row's value",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"scan\",\"rows\":{}}]}\n",
                "1:41: '{' is out of place here = expected a list of rows, [[key, value], …]",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"rows\":[]}]}\n",
                "1:21: the operation has no `where` = expected \"where\": the predicate, an object",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"where\":[]}]}\n",
                "1:43: '[' is out of place here = expected a predicate, an object of columns and conditions",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"where\":{\"a\":{\"~\":1}}}]}\n",
                "1:49: unknown comparison `~` = expected comparisons: =, !=, <, <=, >, >= and a constant each",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"where\":{\"a\":{}}}]}\n",
                "1:49: the column has no condition = expected comparisons: =, !=, <, <=, >, >= and a constant each",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"update\",\"where\":{}}]}\n",
                "1:21: the operation has no `set` = expected \"set\": the value that the rows get",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"update\",\"where\":{},\"set\":1,\"count\":-1}]}\n",
                "1:63: -1 is negative = expected a number of rows, an integer from 0",
            ),
        ],
    );
}

/// A field that a transaction or an operation does not have; and those that would change what it means.
#[test]
fn fields_that_are_not_there() {
    check(
        Format::Jsonl,
        &[
            (
                "{\"session\":1,\"statuss\":\"aborted\",\"ops\":[]}\n",
                "1:14: a transaction has no field `statuss` = expected `status` (a transaction has `session`, `id`, `seq`, `status`, `client`, `db`, `level`, `ops` and `ctx`; anything else goes into `ctx`)",
            ),
            (
                "{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":[],\"note\":{\"a\":[1]}}\n",
                "2:23: a transaction has no field `note` = expected `session`, `id`, `seq`, `status`, `client`, `db`, `level`, `ops` and `ctx`; anything else goes into `ctx`",
            ),
            (
                "{\"session\":1,\"seq\":-1,\"ops\":[]}\n",
                "1:20: -1 is negative = expected a number that counts from 0",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"val\":2}]}\n",
                "1:42: a read has no field `val` = expected `value` (a read has `key`, `value`, `lock`, `op`, `at` and `ctx`; anything else goes into `ctx`)",
            ),
            (
                "{\"session\":1,\"ops\":[{\"val\":2,\"op\":\"write\",\"key\":1,\"value\":2}]}\n",
                "1:22: a write has no field `val` = expected `value` (a write has `key`, `value`, `op`, `at` and `ctx`; anything else goes into `ctx`)",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"delete\",\"key\":1,\"value\":null}]}\n",
                "1:44: a delete has no field `value` = expected `key`, `op`, `at` and `ctx`; anything else goes into `ctx`",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"scan\",\"result\":[]}]}\n",
                "1:34: a scan has no field `result` = expected `rows` (a scan has `from`, `to`, `rows`, `op`, `at` and `ctx`; anything else goes into `ctx`)",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"scan\",\"limit\":2,\"rows\":[]}]}\n",
                "1:34: `limit` on a scan is not supported = expected an `iterate` for the first rows of a range; a scan holds all of them",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"where\":{},\"order\":\"value\",\"rows\":[]}]}\n",
                "1:46: `order` on a query is not supported = expected the result of the whole query",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"scan\",\"where\":{\"value\":1},\"rows\":[]}]}\n",
                "1:34: `where` on a scan is not supported = expected a `query` for rows that satisfy a predicate",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"scan\",\"lock\":\"update\",\"rows\":[]}]}\n",
                "1:34: `lock` on a scan is not supported = expected a lock on reads of one key only; no other operation can have one",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"where\":{},\"count\":2}]}\n",
                "1:46: `count` on a query is not supported = expected `rows`: the rows themselves, not their number",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"column\":\"a\",\"value\":2}]}\n",
                "1:42: `column` on a read is not supported = expected the whole value: a row is read and written with all its columns",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"query\",\"where\":{\"not\":{\"key\":{\">\":1}}}}]}\n",
                "1:51: a predicate on `key` is not supported: predicates are about columns of the value = expected a `scan` for a range of keys, or a column of another name",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"update\",\"where\":{\"b\":1},\"set\":{\"a\":1}}]}\n",
                "1:58: `set` has no column `b`, which `where` names = expected the whole new value: a `set` of single columns is not supported",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":{\"a\":1,\"b\":1}},{\"op\":\"update\",\"where\":{},\"set\":{\"a\":1}}]}\n",
                "h: transaction 1:0: an update's `set` has no column `b`, which other rows have; expected the whole new value: a `set` of single columns is not supported",
            ),
            (
                "{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"ctx\":1}]}\n",
                "1:48: '1' is out of place here = expected an object of hints",
            ),
        ],
    );
    check(
        Format::Notation,
        &[
            (
                "s1: q(key=1)=[x:1]",
                "1:7: a predicate on `key` is not supported: predicates are about columns of the value = expected a `scan` for a range of keys, or a column of another name",
            ),
            (
                "s1: u(b=1 -> {a:1})",
                "1:14: the new row has no column `b`, which the predicate names = expected the whole new value: a `set` of single columns is not supported",
            ),
        ],
    );
}

/// A Jepsen history whose processes do not do one thing after the other, or complete what they did not invoke.
#[test]
fn processes_of_jepsen() {
    let another = "expected the same function, keys and written values; only results are filled in";
    check(
        Format::ElleEdn,
        &[
            (
                "{:process 0 :type :invoke :value [[:w :x 1]]}\n{:process 0 :type :invoke :value [[:w :x 2]]}\n{:process 0 :type :fail :value [[:w :x 1]]}\n",
                "2:1: process 0 invokes an operation while the one of line 1 is still open = expected its completion first, or another process: a process does one thing at a time",
            ),
            (
                "{:process 0 :type :invoke :value [[:w :x 1]]}\n\n{:process 0 :type :ok :value [[:w :x 2]]}\n",
                &format!(
                    "3:1: process 0 completes a different operation than it invoked in line 1 = {another}"
                ),
            ),
            (
                "{:process 0 :type :invoke :value [[:r :x nil]]}\n{:process 0 :type :ok :value [[:r :y 1]]}\n",
                &format!(
                    "2:1: process 0 completes a different operation than it invoked in line 1 = {another}"
                ),
            ),
            (
                "{:process 0 :type :invoke :value [[:r :x nil]]}\n{:process 0 :type :info :value [[:r :x nil] [:w :x 1]]}\n",
                &format!(
                    "2:1: process 0 completes a different operation than it invoked in line 1 = {another}"
                ),
            ),
            (
                "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :read :value 1}\n",
                &format!(
                    "2:1: process 0 completes a different operation than it invoked in line 1 = {another}"
                ),
            ),
            (
                "{:process 0 :type :invoke :f :write :value 1}\n{:process 0 :type :ok :f :write :value 2}\n",
                &format!(
                    "2:1: process 0 completes a different operation than it invoked in line 1 = {another}"
                ),
            ),
            (
                "{:process 0 :type :invoke :value [[:w :x 1]]}\n{:process 0 :type :ok :value [[:w :x 1]]}\n{:process 0 :type :ok :value [[:w :x 2]]}\n",
                "3:1: process 0 completes an operation that it has not invoked = expected an invocation of the same process before every completion",
            ),
        ],
    );
    check(
        Format::ElleJson,
        &[(
            "[{\"process\":0,\"type\":\"invoke\",\"value\":[[\"w\",1,1]]},\n{\"process\":0,\"type\":\"ok\",\"value\":[[\"w\",1,2]]}]",
            &format!("2:1: process 0 completes a different operation than it invoked in line 1 = {another}"),
        )],
    );
    // Reasons for failing, results that are filled in, and completions alone are what they were.
    for text in [
        "{:process 0 :type :invoke :value [[:w :x 1]]}\n{:process 0 :type :info :value :timed-out}\n",
        "{:process 0 :type :invoke :value [[:r :x nil]]}\n{:process 0 :type :ok :value [[:r :x [1 2]]]}\n",
        "{:process 0 :type :invoke :f :read}\n{:process 0 :type :ok :f :read :value 4}\n",
        "{:process 0 :type :ok :value [[:w :x 1]]}\n{:process 0 :type :ok :value [[:r :x 1]]}\n",
        "{:process 0 :type :invoke :f :cas :value [1 2]}\n{:process 0 :type :fail :f :cas :value nil}\n",
    ] {
        read_bytes("h", text.as_bytes(), &forced(Format::ElleEdn)).unwrap();
    }
    // Where refusals are warnings, the outcome of what was invoked is unknown, and the rest is left out.
    let text = "{:process 0 :type :invoke :value [[:w :x 1]]}\n{:process 0 :type :ok :value [[:w :x 2]]}\n";
    let lenient = ReadOptions { lenient: true, ..forced(Format::ElleEdn) };
    let loaded = read_bytes("h", text.as_bytes(), &lenient).unwrap();
    assert_eq!((loaded.history.len(), loaded.warnings.count), (1, 1));
    assert_eq!(loaded.history.transactions().next().unwrap().status(), taipan_history::Status::Unknown);
}

/// Unknown fields are ignored and counted where reading is lenient; those that change the meaning cost the transaction.
#[test]
fn lenient_reading_counts_unknown_fields() {
    let text = b"{\"session\":1,\"note\":1,\"ops\":[{\"op\":\"read\",\"key\":1,\"val\":1,\"a\":[{}]}]}\n{\"session\":1,\"ops\":[{\"op\":\"scan\",\"limit\":1,\"rows\":[]}]}\n";
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let loaded = read_bytes("h.jsonl", text, &options).unwrap();
    assert_eq!((loaded.history.len(), loaded.history.op_count()), (1, 1));
    assert_eq!((loaded.warnings.count, loaded.warnings.ignored), (1, 3));
    let first = loaded.warnings.first_ignored.unwrap();
    assert_eq!((first.line(), first.column()), (Some(1), Some(14)));
}

#[test]
fn the_notation() {
    check(
        Format::Notation,
        &[
            (
                "s1: w(x,1)%{\"sql\":1}",
                "1:13: no field `sql` can stand here = expected %{\"ctx\":{…}} after the operation",
            ),
            ("s1: w(x,1) %%{\"ctx\":1}", "1:21: '1' is out of place here = expected an object of hints"),
            ("s1: w(x,1) %%{\"seq\":-1}", "1:21: -1 is no place in a session = expected a number from 0"),
            (
                "s1: w(x,1) %%{\"seq\":1,\"seq\":1}",
                "1:23: the field `seq` is given twice = expected each field once",
            ),
            ("s1: w(x,1) %%{} %%{}", "1:17: the transaction has this mark already = expected each mark once"),
            (
                "header: x",
                "1:9: 'x' is out of place here = expected a JSON object of the header's other fields",
            ),
            (
                "header: {\"level\":\"x\"}",
                "1:10: `level` is not written here = expected init: for initial values, level: for the level",
            ),
            (
                "s1: w(x,1)\nheader: {}",
                "2:1: header comes after a transaction = expected header: before the first session; a session of that name is written \"header\":",
            ),
            ("hello", "1:6: the line ends here = expected a session's name and a colon, as in s1: w(x,1)"),
            (
                "s1 w(x,1)",
                "1:4: 'w' is out of place here = expected a session's name and a colon, as in s1: w(x,1)",
            ),
            (
                "s1:",
                "1:4: the line ends here = expected an operation: r(x,1), w(x,1), a(l,1), d(x), scan(a..m)=[b:1], iter(a..m)=[b:1], q(value=1)=[x:1], u(value=1 -> 2), dw(value=1), cas(x,1 -> 2)=ok",
            ),
            (
                "s1: w(x,1) |",
                "1:13: the line ends here = expected an operation: r(x,1), w(x,1), a(l,1), d(x), scan(a..m)=[b:1], iter(a..m)=[b:1], q(value=1)=[x:1], u(value=1 -> 2), dw(value=1), cas(x,1 -> 2)=ok",
            ),
            (
                "s1: | w(x,1)",
                "1:5: '|' is out of place here = expected an operation: r(x,1), w(x,1), a(l,1), d(x), scan(a..m)=[b:1], iter(a..m)=[b:1], q(value=1)=[x:1], u(value=1 -> 2), dw(value=1), cas(x,1 -> 2)=ok",
            ),
            ("s1: w(x)", "1:8: ')' is out of place here = expected a comma and the value"),
            ("s1: w(x,?)", "1:9: what was written is always known = expected a value"),
            (
                "s1: x(1)",
                "1:5: 'x' is out of place here = expected an operation: r(x,1), w(x,1), a(l,1), d(x), scan(a..m)=[b:1], iter(a..m)=[b:1], q(value=1)=[x:1], u(value=1 -> 2), dw(value=1), cas(x,1 -> 2)=ok",
            ),
            ("s1: r(x,1", "1:10: the line ends here = expected ) at the end of the operation"),
            ("s1: r(_,1)", "1:7: _ means absent and is no key = expected a key; \"_\" if it is called so"),
            (
                "s1: r(x,1)! w(x,2)",
                "1:13: 'w' is out of place here = expected another operation, a mark (! ? @ @@ ~ %%), or | and the next transaction",
            ),
            ("s1: r(x,1)!?", "1:12: the transaction has this mark already = expected each mark once"),
            (
                "s1: r(x,1) @5..3",
                "1:12: client.begin 5 is after client.end 3: a transaction cannot end before it began = expected begin ≤ end",
            ),
            (
                "s1: r(x,1) @5..",
                "1:12: a committed transaction has an end = expected a time after .., or ! or ? before the times",
            ),
            ("s1: r(x,1) @5", "1:14: the line ends here = expected .. and the end"),
            (
                "s1: r(x,[1",
                "1:11: the line ends here = expected a value: _, true, false, a number, a word, a string in quotes, [list] or {row}",
            ),
            ("s1: r(x,{a:1 a:2})", "1:9: the row has a column twice = expected each column once"),
            (
                "s1: r(x,{a:[1]})",
                "1:12: '[' is out of place here = expected a value: _, true, false, a number, a word, a string in quotes, [list] or {row}",
            ),
            (
                "s1: r(x,99999999999999999999)",
                "1:9: the number 99999999999999999999 does not fit 64 bits = expected integers from -9223372036854775808 to 18446744073709551615, or a string",
            ),
            (
                "s1: r(\"x,1)",
                "1:7: the string that begins here does not end in this line = expected a closing double quote",
            ),
            (
                "s1: scan(a)=[b:1]",
                "1:11: ')' is out of place here = expected .. between the bounds, as in a..m",
            ),
            ("s1: scan(a..m)=[b]", "1:18: ']' is out of place here = expected a colon and the row's value"),
            ("s1: scan(a..m)=[b:?]", "1:19: a row that came back has a value = expected a value, or _"),
            ("s1: q(value)", "1:12: ')' is out of place here = expected a comparison: = != < <= > >="),
            ("s1: q(value=1 or)", "1:17: ')' is out of place here = expected a condition, as in value>=2"),
            ("s1: u(value=1)", "1:14: ')' is out of place here = expected -> and the new value"),
            ("s1: u(value=1 -> ?)", "1:18: what was written is always known = expected a value"),
            (
                "s1: w(x,1)\ninit: x=0",
                "2:1: init comes after a transaction = expected init: before the first session; a session of that name is written \"init\":",
            ),
            ("init: x", "1:8: the line ends here = expected = and the initial value"),
            (
                "s1: [a] w(x,1) | [a] w(x,2)",
                "1:18: transaction id a is used twice: ids must be unique in a history = expected another name, or none",
            ),
            (
                "s1: r(x,1) ; r(y,1)",
                "1:12: ';' is out of place here = expected another operation, a mark (! ? @ @@ ~ %%), or | and the next transaction",
            ),
        ],
    );
}

#[test]
fn a_fault_is_shown_in_its_line() {
    let text = "{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":[{\"op\":\"wirte\",\"key\":\"x\"}]}\n";
    assert_eq!(
        message(text.as_bytes(), &ReadOptions::default()),
        r#"h:2:27: unknown operation "wirte"
  |
2 | {"session":1,"ops":[{"op":"wirte","key":"x"}]}
  |                           ^
  = expected "op": one of read, write, delete, append, scan, iterate, query, update, delete-where, cas"#,
    );
}

#[test]
fn a_long_line_is_shortened_around_the_fault_and_columns_count_characters() {
    let many = "{\"op\":\"write\",\"key\":\"é\",\"value\":1},".repeat(50);
    let text = format!("{{\"session\":1,\"ops\":[{many}{{\"op\":\"wirte\"}},{many}]}}\n");
    let said = message(text.as_bytes(), &ReadOptions::default());
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], format!("h:1:{}: unknown operation \"wirte\"", 20 + 50 * 35 + 7));
    assert_eq!(
        lines[2],
        "1 | …ey\":\"é\",\"value\":1},{\"op\":\"write\",\"key\":\"é\",\"value\":1},{\"op\":\"wirte\"},{\"op\":\"write\",\"key\":\"é\",\"value\"…"
    );
    assert_eq!(
        lines[3].chars().position(|ch| ch == '^'),
        lines[2].chars().collect::<String>().find("\"wirte").map(|at| lines[2][..at].chars().count())
    );
}

#[test]
fn text_that_is_not_utf8() {
    let said = message(
        b"{\"session\":1,\"ops\":[]}\n{\"session\":\"caf\xe9\",\"ops\":[]}\n",
        &ReadOptions::default(),
    );
    assert!(said.starts_with("h:2:16: the byte 0xe9 is no UTF-8\n"), "{said}");
    let utf16: Vec<u8> =
        "\u{feff}{\"session\":1,\"ops\":[]}\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let said = message(&utf16, &ReadOptions::default());
    assert!(said.starts_with("h: unknown history format: it is UTF-16 text; histories are UTF-8"), "{said}");
    let said = message(&utf16[2..], &ReadOptions::default());
    assert!(said.starts_with("h: unknown history format: it looks like UTF-16 text"), "{said}");
}

#[test]
fn a_byte_order_mark_is_no_fault() {
    let text = b"\xef\xbb\xbf{\"session\":1,\"ops\":[]}\n{\"session\":1,\"ops\":3}\n";
    assert_eq!(read_bytes("h", &text[..26], &ReadOptions::default()).unwrap().history.len(), 1);
    assert!(message(text, &ReadOptions::default()).starts_with("h:2:20:"));
}

#[test]
fn empty_and_unrecognised_content() {
    assert!(message(b"", &ReadOptions::default()).starts_with("h: is empty"));
    assert!(message(b" \n\n", &forced(Format::Jsonl)).starts_with("h: is empty"));
    let garbage: Vec<u8> = (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    assert!(message(&garbage, &ReadOptions::default()).starts_with("h: unknown history format: binary data"));
    let allowed = ReadOptions { allow_empty: true, ..ReadOptions::default() };
    assert!(read_bytes("h.jsonl", b"", &allowed).unwrap().history.is_empty());
}

#[test]
fn files_that_cannot_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("nothing.jsonl");
    let error = read_path(&missing, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, ReadError::Open { .. }));
    assert!(error.to_string().ends_with("no such file"), "{error}");
    let error = read_path(folder.path(), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("is a directory"), "{error}");
    let error = read_path(folder.path(), &forced(Format::Jsonl)).unwrap_err();
    assert!(error.to_string().ends_with("is a directory, but a jsonl history is one file"), "{error}");
}

/// Jepsen keeps a run in store/TEST/TIME: the history, the same for people, results, logs.
#[test]
fn store_folders_of_jepsen() {
    let store = tempfile::tempdir().unwrap();
    let run = store.path().join("append").join("20240101T120000.000Z");
    std::fs::create_dir_all(&run).unwrap();
    let history = "{:type :invoke, :process 0, :f :txn, :value [[:w 1 2]]}\n{:type :ok, :process 0, :f :txn, :value [[:w 1 2]]}\n";
    for (name, content) in [
        ("history.edn", history),
        ("history.txt", "0\t:invoke\t:txn\t[[:w 1 2]]\n"),
        ("results.edn", "{:valid? true}\n"),
        ("jepsen.log", "2024-01-01 INFO\n"),
    ] {
        std::fs::write(run.join(name), content).unwrap();
    }
    let loaded = read_path(&run, &ReadOptions::default()).unwrap();
    assert_eq!((loaded.history.len(), loaded.format), (1, Format::ElleEdn));
    for above in [store.path(), run.parent().unwrap()] {
        let error = read_path(above, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.ends_with(&format!("did you mean {}?", run.join("history.edn").display())), "{error}");
    }
    // Two histories: it says so instead of choosing one.
    std::fs::write(run.join("history.jsonl"), "").unwrap();
    let error = read_path(&run, &ReadOptions::default()).unwrap_err();
    assert!(matches!(error, ReadError::Directory { .. }), "{error}");
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret.jsonl");
    std::fs::write(&path, "{}").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    if std::fs::File::open(&path).is_ok() {
        return corpus::missing("plain-user", &"this user may read every file");
    }
    let error = read_path(&path, &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("permission denied"), "{error}");
}

#[test]
fn a_line_without_end_is_refused_before_memory_runs_out() {
    for start in ["{\"session\":1,\"ops\":[", "s1: w(x,1) "] {
        let endless = start.as_bytes().chain(std::io::repeat(b' ')).take(1 << 30);
        let error = read_stream("h", endless, &ReadOptions::default()).unwrap_err().to_string();
        assert!(error.starts_with("h:1:1: the line is longer than 256 MiB"), "{error}");
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "[".repeat(1 << 20);
    for field in ["\"value\":", "\"ctx\":{\"more\":"] {
        let text = format!("{{\"session\":1,\"ops\":[{{\"op\":\"read\",\"key\":1,{field}{deep}");
        let said = message(text.as_bytes(), &forced(Format::Jsonl));
        assert!(said.contains("lists and objects nest more than 64 deep here"), "{said}");
    }
    let nots = "{\"not\":".repeat(1 << 16);
    let text = format!("{{\"session\":1,\"ops\":[{{\"op\":\"query\",\"where\":{nots}");
    assert!(message(text.as_bytes(), &forced(Format::Jsonl)).contains("nest more than 64 deep"));
    for text in [
        format!("s1: r(x,{deep}"),
        format!("s1: q({}", "(".repeat(1 << 16)),
        format!("s1: q({}", "not ".repeat(1 << 16)),
    ] {
        assert!(message(text.as_bytes(), &forced(Format::Notation)).contains("nest more than 64 deep"));
    }
}

#[test]
fn lenient_reading_counts_what_it_leaves_out() {
    let text = b"{\"session\":1,\"id\":1,\"ops\":[]}\n{\"session\":1,\"id\":1,\"ops\":[]}\nnonsense\n\xff\n{\"session\":1,\"id\":2,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":1},{\"op\":\"x\"}]}\n{\"session\":1,\"id\":2,\"ops\":[]}\n";
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let loaded = read_bytes("h.jsonl", text, &options).unwrap();
    assert_eq!(loaded.history.len(), 2);
    assert_eq!(loaded.history.op_count(), 0);
    assert_eq!(loaded.warnings.count, 4);
    let lines: Vec<u64> = loaded.warnings.first.iter().filter_map(|located| located.line()).collect();
    assert_eq!(lines, [2, 3, 4, 5]);
}

#[test]
fn warnings_are_kept_in_bounded_memory() {
    let text = "{\"session\":1,\"ops\":[]}\n".to_owned() + &"nonsense\n".repeat(100_000);
    let options = ReadOptions { lenient: true, ..ReadOptions::default() };
    let loaded = read_bytes("h.jsonl", text.as_bytes(), &options).unwrap();
    assert_eq!(loaded.warnings.count, 100_000);
    assert_eq!(loaded.warnings.first.len(), 1000);
    assert_eq!(loaded.warnings.first[999].line(), Some(1001));
}

#[test]
fn compressed_input() {
    let text = b"{\"session\":1,\"ops\":[]}\n".repeat(1000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&text[..], 1).unwrap();
    for whole in [gzip, zstd] {
        assert_eq!(read_bytes("h", &whole, &ReadOptions::default()).unwrap().history.len(), 1000);
        let said = message(&whole[..whole.len() - 9], &ReadOptions::default());
        assert!(said.contains("reading failed") || said.contains("cut off"), "{said}");
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle..].iter_mut().for_each(|byte| *byte ^= 0x5a);
        let said = message(&damaged, &ReadOptions::default());
        assert!(said.contains("reading failed"), "{said}");
    }
}

#[test]
fn every_truncation_of_a_file_is_refused_or_ends_with_a_line() {
    let text = "{\"history\":1,\"initial\":{\"x\":0}}\n{\"session\":1,\"ops\":[{\"op\":\"read\",\"key\":\"é\",\"value\":[1,{}]}]}\n";
    for len in 1..text.len() {
        let result = read_bytes("h.jsonl", &text.as_bytes()[..len], &forced(Format::Jsonl));
        let ends_with_line = text.as_bytes()[len] == b'\n' || text.as_bytes()[len - 1] == b'\n';
        assert_eq!(result.is_ok(), ends_with_line, "{len}: {result:?}");
        if let Err(error) = result {
            assert!(Path::new("h.jsonl") == error.located().unwrap().path);
        }
    }
}

/// Wherever a file is truncated, it is refused, or what is read are whole transactions of it. (Jepsen's invocations may have
/// no completion, and PolySI's and AWDIT's text has no sign for the end of a transaction: there only a line is whole.)
#[test]
fn a_file_that_ends_inside_a_transaction_is_refused() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for (name, format) in [
        ("completions.jsonl", Format::ElleJson),
        ("dbcop.hist", Format::DbcopHist),
        ("dbcop.json", Format::DbcopJson),
        ("history.bincode", Format::DbcopBincode),
        ("register.json", Format::ElleJson),
        ("timekiller-kv.json", Format::Timekiller),
        ("timekiller-list.json", Format::Timekiller),
        ("append.edn", Format::ElleEdn),
        ("polysi.txt", Format::Text),
        ("awdit.txt", Format::Awdit),
    ] {
        let whole = std::fs::read(data.join(name)).unwrap();
        let shown = |bytes: &[u8]| {
            let loaded = read_bytes("h", bytes, &forced(format)).ok()?;
            let mut shown = Vec::new();
            for txn in loaded.history.transactions() {
                let ops = txn.ops().map(|(_, op)| format!("{op:?}"));
                shown.push((txn.name().to_string(), txn.status(), ops.collect::<Vec<_>>()));
            }
            Some((shown, loaded.warnings.notes))
        };
        let (all, _) = shown(&whole).unwrap_or_else(|| panic!("{name} is read"));
        for len in 1..whole.len() {
            let Some((part, notes)) = shown(&whole[..len]) else { continue };
            let hint = notes.iter().any(|note| note.contains("if the file was cut off"));
            let (cut, kept): (Vec<_>, Vec<_>) = part.into_iter().partition(|txn| !all.contains(txn));
            let allowed = match format {
                Format::ElleEdn | Format::ElleJson => {
                    cut.iter().all(|(_, status, _)| *status == taipan_history::Status::Unknown)
                }
                Format::Text | Format::Awdit => hint || (whole[len - 1] == b'\n' && cut.len() <= 1),
                // `!` is the last sign of an aborted one.
                Format::DbcopHist => hint || cut.is_empty(),
                _ => cut.is_empty(),
            };
            assert!(allowed, "{name} cut at {len}: {cut:?} beside {kept:?}");
        }
    }
    // An array of Viper's lines that does not end.
    let folder = tempfile::tempdir().unwrap();
    let text = "[\n{\"value\": [[\"w\", 1, 2, true]]},\n";
    std::fs::write(folder.path().join("J0.log"), text).unwrap();
    let said = read_path(folder.path(), &forced(Format::Viper)).unwrap_err().to_string();
    assert!(said.contains("the array of transactions does not end"), "{said}");
    std::fs::write(folder.path().join("J0.log"), format!("{text}]\n")).unwrap();
    read_path(folder.path(), &forced(Format::Viper)).unwrap();
}

/// A small file that unpacks to a large one is refused at the limit, not when memory is used up.
#[test]
fn what_unpacks_to_too_much_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // A format that must be read as a whole, and 64 MiB of blanks behind its first bytes.
    let mut text = b"[".to_vec();
    text.resize(64 << 20, b' ');
    let packed = zstd::stream::encode_all(&text[..], 1).unwrap();
    assert!(packed.len() < 100_000, "{} bytes", packed.len());
    let path = folder.path().join("bomb.json.zst");
    std::fs::write(&path, packed).unwrap();
    let options = ReadOptions { decompressed_max: 1 << 20, ..forced(Format::ElleJson) };
    let said = read_path(&path, &options).unwrap_err().to_string();
    assert!(said.contains("more than 1048576 bytes"), "{said}");
}

/// Whoever cuts a file off while it is read is reported, whatever the format; nothing worse happens.
#[test]
fn a_file_that_becomes_shorter_while_it_is_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Builder::new();
    let session = builder.session(1.into());
    for count in 0..100_000 {
        builder.begin(session);
        let (key, value) = (builder.key((count % 100).into()), builder.int(count));
        builder.write(key, value);
        builder.end().unwrap();
    }
    let history = builder.finish().unwrap();
    for format in [Format::Jsonl, Format::Binary, Format::Text, Format::ElleEdn, Format::Cobra] {
        let mut path = folder.path().join(format.name());
        taipan_history::formats::write_path(&history, format, &path).unwrap();
        let whole = path.clone();
        if format == Format::Cobra {
            path.push("T1.log");
        }
        let is_cut = AtomicBool::new(false);
        let cut = {
            let path = path.clone();
            move |_| {
                if !is_cut.swap(true, Ordering::Relaxed) {
                    let file = std::fs::File::options().write(true).open(&path).unwrap();
                    file.set_len(file.metadata().unwrap().len() - 1000).unwrap();
                }
                false
            }
        };
        let options = ReadOptions { interrupt: Interrupt::when(cut), ..forced(format) };
        let said = read_path(&whole, &options).unwrap_err().to_string();
        assert!(said.starts_with(path.to_str().unwrap()), "{said}");
        assert!(said.contains("the file became shorter while it was read: 1000 bytes are missing"), "{said}");
    }
}

/// The same where parts of a file are read apart.
#[test]
fn a_stretch_that_is_gone_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.jsonl");
    std::fs::write(&path, "{\"session\":1,\"ops\":[]}\n".repeat(1000)).unwrap();
    let options = ReadOptions::default();
    let stretches = taipan_history::formats::stretches(&path, &options, 10_000).unwrap();
    assert_eq!(stretches.len(), 3);
    std::fs::File::options().write(true).open(&path).unwrap().set_len(15_000).unwrap();
    let read = |stretch: &taipan_history::formats::Stretch| stretch.read(&options, |_| true);
    read(&stretches[0]).unwrap();
    let said = read(&stretches[1]).unwrap_err().to_string();
    assert!(said.starts_with(path.to_str().unwrap()) && said.contains("the file is truncated"), "{said}");
}
