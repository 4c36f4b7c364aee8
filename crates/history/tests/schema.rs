//! The JSON Schema of the native format and the reader take and refuse the same lines.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[allow(dead_code, reason = "other tests use the rest")]
mod random;

use jsonschema::Validator;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use taipan_history::formats::{Format, ReadOptions, read_bytes, write_string};

const SCHEMA: &str = include_str!("../../../docs/schema/history.schema.json");
const PAGE: &str = include_str!("../../../docs/book/src/formats/native.md");

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn validator() -> Validator {
    jsonschema::draft202012::new(&schema()).unwrap()
}

/// What the schema says against a line.
fn errors(validator: &Validator, line: &Value) -> Vec<String> {
    match validator.validate(line) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.map(|error| error.to_string()).collect(),
    }
}

/// Why the reader refuses a line, if it does.
fn refusal(line: &Value) -> Option<String> {
    let options = ReadOptions { format: Some(Format::Jsonl), allow_empty: true, ..ReadOptions::default() };
    read_bytes("line.jsonl", line.to_string().as_bytes(), &options).err().map(|error| error.to_string())
}

/// The examples of operations in the book.
fn examples() -> Vec<Value> {
    let quoted = PAGE.split('`').filter(|text| text.starts_with("{\"op\":"));
    quoted.map(|text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))).collect()
}

/// Valid operations, every field of every one among them.
fn operations() -> Vec<Value> {
    let mut all = vec![
        json!({"op": "read", "key": 1}),
        json!({"op": "read", "key": "x", "value": null, "lock": "update", "at": {"begin": 5, "end": 7}}),
        json!({"op": "read", "key": "x", "value": [1, [2.5, "a"], true], "lock": "share", "at": {"begin": 5}}),
        json!({"op": "write", "key": -1, "value": {"a": 1, "b": null}, "ctx": {"sql": "INSERT", "n": [{}]}}),
        json!({"op": "write", "key": "", "value": 18_446_744_073_709_551_615_u64}),
        json!({"op": "delete", "key": "x"}),
        json!({"op": "append", "key": "l", "value": [1]}),
        json!({"op": "scan"}),
        json!({"op": "scan", "from": 1, "to": null, "rows": [[1, 2], ["x", {"a": 1}]]}),
        json!({"op": "iterate", "from": "a", "to": "b", "reverse": true, "rows": [], "exhausted": false}),
        json!({"op": "query", "where": {}}),
        json!({"op": "query", "where": {"a": 1, "b": {">=": 1, "<": 9}, "c": [1], "or": [{"d": null}, {}]}, "rows": [[1, 2]]}),
        json!({"op": "query", "where": {"not": {"not": {"or": []}}}}),
        json!({"op": "query", "where": {"not": 1, "or": 2}}),
        json!({"op": "query", "where": {"not": [{"a": 1}], "or": {"=": {"a": 1}}}}),
        json!({"op": "update", "where": {"value": {"!=": 1}}, "set": 2, "count": 3, "keys": [1, "x"]}),
        json!({"op": "delete-where", "where": {"value": 1}, "count": 0, "keys": []}),
    ];
    all.extend(examples());
    all
}

/// Valid lines.
fn lines() -> Vec<Value> {
    let mut lines = vec![
        json!({"history": 1}),
        json!({"history": 1, "initial": {"x": 0, "1": [1, {"a": 2}]}, "level": "serializable", "note": {"any": [1]}}),
        json!({"history": 1, "initial": [[1, 0], ["1", {"a": null}]]}),
        json!({"session": 1, "ops": []}),
        json!({
            "session": "s", "id": "t", "seq": 0, "status": "committed", "client": {"begin": 5, "end": 7},
            "db": {"start": 5, "commit": [7, 4_294_967_295_u32]}, "level": "RC", "ops": [], "ctx": {"a": {"b": []}}
        }),
        json!({"session": 1, "status": "aborted", "client": {"begin": 5}, "db": {"start": [5, 0]}, "ops": []}),
        json!({"session": 1, "status": "unknown", "client": {"begin": 5, "end": 7}, "ops": []}),
    ];
    lines.extend(operations().into_iter().map(|op| json!({"session": 1, "ops": [op]})));
    lines
}

/// A path from the line to one of its parts.
type Path = Vec<String>;

/// Every object and list that the format defines: what `ctx` and further fields of a header hold is free.
fn containers(line: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    let mut open = vec![(Path::new(), line)];
    while let Some((path, value)) = open.pop() {
        let inside = |step: String| [path.clone(), vec![step]].concat();
        match value {
            Value::Object(fields) => {
                let free = |name: &str| matches!(name, "ctx" | "note");
                open.extend(
                    fields
                        .iter()
                        .filter(|(name, _)| !free(name))
                        .map(|(name, it)| (inside(name.clone()), it)),
                );
            }
            Value::Array(list) => {
                open.extend(list.iter().enumerate().map(|(index, it)| (inside(index.to_string()), it)));
            }
            _ => continue,
        }
        found.push(path);
    }
    found
}

fn part<'a>(line: &'a mut Value, path: &[String]) -> &'a mut Value {
    path.iter().fold(line, |value, step| match value {
        Value::Array(list) => &mut list[step.parse::<usize>().unwrap()],
        other => &mut other[step],
    })
}

/// What a part is replaced with. Times stay in order: 6 lies between all of them.
fn replacements() -> Vec<Value> {
    vec![
        json!(null),
        json!(true),
        json!(6),
        json!(1.5),
        json!("zz"),
        json!([]),
        json!({}),
        json!([[]]),
        json!([6]),
        json!([[6, 6]]),
        json!([6, -6]),
        json!({"a": 6}),
        json!({"a": {}}),
        json!({"a": {"<": 6}}),
        json!({"a": [{}]}),
        json!({"begin": 6}),
        json!({"key": 6}),
        json!([{}]),
        json!([{"op": "read"}]),
        json!({"end": 6}),
        json!({"=": {"a": {}}}),
        json!({"or": [6]}),
        json!({"not": {"a": {}}}),
        json!(9_223_372_036_854_775_808_u64),
    ]
}

/// All lines that differ from this one in one place.
fn mutations(line: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for path in containers(line) {
        let mut change = |what: String, change: &dyn Fn(&mut Value)| {
            let mut line = line.clone();
            change(part(&mut line, &path));
            all.push((format!("{} {what}", path.join(".")), line));
        };
        let mut original = line.clone();
        let steps: Vec<String> = match part(&mut original, &path) {
            Value::Object(fields) => fields.keys().cloned().collect(),
            Value::Array(list) => (0..list.len()).map(|index| index.to_string()).collect(),
            _ => unreachable!("containers are objects and lists"),
        };
        change("with a field more".into(), &|value| match value {
            Value::Object(fields) => _ = fields.insert("unknown".into(), json!({"a": 1})),
            Value::Array(list) => list.push(json!({"unknown": {}})),
            _ => {}
        });
        for step in steps {
            change(format!("without {step}"), &|value| match value {
                Value::Object(fields) => _ = fields.remove(&step),
                Value::Array(list) => _ = list.remove(step.parse().unwrap()),
                _ => {}
            });
            for new in replacements() {
                // A row that lacks the column which `where` names; rows of different shapes: beyond a schema.
                if step == "set" && new.is_object() {
                    continue;
                }
                change(format!("with {step} = {new}"), &|value| {
                    *part(value, std::slice::from_ref(&step)) = new.clone()
                });
            }
        }
    }
    all
}

#[test]
fn valid_lines_are_taken_by_both() {
    let validator = validator();
    for line in lines() {
        assert_eq!(refusal(&line), None, "{line}");
        let errors = errors(&validator, &line);
        assert!(errors.is_empty(), "{line}\n{errors:#?}");
    }
}

#[test]
fn changed_lines_are_taken_or_refused_by_both() {
    let validator = validator();
    let (mut taken, mut refused) = (0, 0);
    let mut differences = Vec::new();
    for line in lines() {
        for (what, changed) in mutations(&line) {
            let reader = refusal(&changed);
            match (validator.is_valid(&changed), &reader) {
                (true, None) => taken += 1,
                (false, Some(_)) => refused += 1,
                (valid, _) => {
                    differences.push(format!("{what}: schema {valid}, reader {reader:?}\n  {changed}"))
                }
            }
        }
    }
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
    assert!(taken > 500 && refused > 1000, "{taken} taken, {refused} refused");
}

/// The table of the book, the schema and the samples name the same operations, with the same fields.
#[test]
fn the_book_shows_every_operation_and_every_field() {
    let schema = schema();
    let names: BTreeSet<&str> = schema["$defs"]["operation"]["properties"]["op"]["enum"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(names.len(), 10);
    let shown: BTreeSet<String> = examples().iter().map(|op| op["op"].as_str().unwrap().to_owned()).collect();
    assert_eq!(shown, names.iter().map(|&name| name.to_owned()).collect());
    for name in names {
        let row = PAGE
            .lines()
            .find(|line| line.starts_with(&format!("| {name} |")))
            .unwrap_or_else(|| panic!("{name}"));
        let description = row.split('|').nth(2).unwrap();
        for field in schema["$defs"][name]["properties"].as_object().unwrap().keys() {
            let is_shared = ["op", "at", "ctx"].contains(&field.as_str());
            assert!(is_shared || description.contains(&format!("`{field}`")), "{name} has `{field}`: {row}");
        }
        let all: BTreeSet<String> = operations()
            .iter()
            .filter(|op| op["op"] == name)
            .flat_map(|op| op.as_object().unwrap().keys().cloned().collect::<Vec<_>>())
            .collect();
        let missing: Vec<&String> = schema["$defs"][name]["properties"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|field| !all.contains(*field) && !["at", "ctx"].contains(&field.as_str()))
            .collect();
        assert!(missing.is_empty(), "no sample of {name} has {missing:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/schema.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_valid(history in random::history()) {
        let validator = validator();
        for line in write_string(&history, Format::Jsonl).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let errors = errors(&validator, &line);
            prop_assert!(errors.is_empty(), "{line}\n{errors:#?}");
        }
    }
}
