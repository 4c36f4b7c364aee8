//! A field name that is misspelt never changes what a line means: it is refused, or counted.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

#[allow(dead_code, reason = "other tests use the rest")]
mod random;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use serde_json::{Map, Value};
use taipan_history::formats::{Format, ReadOptions, Stretch, Warnings, jsonl, read_bytes, write_string};
use taipan_history::{Builder, History};

/// Every place of the line where a field name of the format stands: a path of names and positions, and the name.
fn places(line: &Value) -> Vec<(Vec<String>, String)> {
    let mut places = Vec::new();
    let Value::Object(txn) = line else { return places };
    let mut all = |path: &[&str], object: &Value| {
        let names = object.as_object().into_iter().flat_map(Map::keys);
        let path: Vec<String> = path.iter().map(|&step| step.to_owned()).collect();
        places.extend(names.map(|name| (path.clone(), name.clone())));
    };
    all(&[], line);
    for clock in ["client", "db"] {
        txn.get(clock).into_iter().for_each(|object| all(&[clock], object));
    }
    for (index, op) in txn["ops"].as_array().unwrap().iter().enumerate() {
        all(&["ops", &index.to_string()], op);
        op.get("at").into_iter().for_each(|object| all(&["ops", &index.to_string(), "at"], object));
    }
    places
}

/// The line with another name at a place.
fn renamed(line: &Value, (path, name): &(Vec<String>, String), new: &str) -> String {
    let mut line = line.clone();
    let mut object = &mut line;
    for step in path {
        object = match object {
            Value::Array(list) => &mut list[step.parse::<usize>().unwrap()],
            other => &mut other[step],
        };
    }
    let Value::Object(fields) = object else { panic!("a path leads to an object") };
    let value = fields.remove(name).unwrap();
    fields.insert(new.to_owned(), value);
    line.to_string()
}

/// Names that somebody might write instead.
fn misspelt(name: &str, how: usize) -> String {
    let letters: Vec<char> = name.chars().collect();
    let place = how % letters.len();
    match how / 7 % 6 {
        0 => letters.iter().enumerate().filter(|(at, _)| *at != place).map(|(_, letter)| letter).collect(),
        1 => format!("{name}{}", letters[place]),
        2 => name.to_uppercase(),
        3 => {
            let mut letters = letters;
            let len = letters.len();
            letters.swap(place, (place + 1) % len);
            letters.into_iter().collect()
        }
        4 => format!("_{name}"),
        _ => ["value", "result", "key", "rows", "status", "ops", "ctx", "limit", "count"][how % 9].to_owned(),
    }
}

fn read(text: &str, lenient: bool) -> Result<(History, u64), String> {
    let options =
        ReadOptions { lenient, format: Some(Format::Jsonl), allow_empty: true, ..ReadOptions::default() };
    let loaded = read_bytes("h", text.as_bytes(), &options).map_err(|error| error.to_string())?;
    Ok((loaded.history, loaded.warnings.count + loaded.warnings.ignored))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/fields.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn a_misspelt_field_is_never_read_silently(
        history in random::history(),
        line in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        how in 0usize..1000,
    ) {
        let text = write_string(&history, Format::Jsonl).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let lines: Vec<Value> = lines.into_iter().filter(|line: &Value| line.get("session").is_some()).collect();
        prop_assume!(!lines.is_empty());
        let line = line.get(&lines);
        let places = places(line);
        let place = place.get(&places);
        let new = misspelt(&place.1, how);
        let changed = renamed(line, place, &new);
        prop_assume!(new != place.1 && !line.to_string().contains(&format!("{new:?}")));
        // Another field of the format is another line, and a line that means the same is no misspelt one.
        let Ok((history, _)) = read(&changed, false) else {
            // On every path; where reading is lenient, with a warning.
            let (_, warned) = read(&changed, true).unwrap_or((History::default(), 1));
            prop_assert!(warned > 0, "{changed}");
            let mut builder = Builder::piece();
            let mut warnings = Warnings::line_by_line();
            jsonl::read(changed.as_bytes(), &mut builder, &mut warnings).unwrap();
            prop_assert!(warnings.count() == 1 && builder.finish().unwrap().is_empty(), "{changed}");
            return Ok(());
        };
        let known = |name: &str| {
            ["session", "id", "seq", "status", "client", "db", "level", "ops", "ctx", "op", "key", "value", "lock",
             "at", "from", "to", "rows", "reverse", "exhausted", "where", "set", "count", "keys"].contains(&name)
        };
        prop_assert!(known(&new), "read silently: {changed}\nas {}", write_string(&history, Format::Jsonl).unwrap());
    }
}

/// Where a file is cut for several readers, each of them refuses.
#[test]
fn stretches_refuse_unknown_fields() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.jsonl");
    let good = "{\"session\":1,\"ops\":[]}\n".repeat(1000);
    std::fs::write(&path, good + "{\"session\":1,\"op\":[],\"ops\":[]}\n").unwrap();
    let options = ReadOptions::default();
    let stretches = taipan_history::formats::stretches(&path, &options, 10_000).unwrap();
    assert_eq!(stretches.len(), 3);
    let read = |stretch: &Stretch| stretch.read(&options, |_| true);
    read(&stretches[0]).unwrap();
    let said = read(&stretches[2]).unwrap_err().to_string();
    assert!(said.contains("a transaction has no field `op`"), "{said}");
    let said = taipan_history::formats::read_parts(&path, &options, |_| true).unwrap_err().to_string();
    assert!(said.contains("1001:14: a transaction has no field `op`"), "{said}");
}
