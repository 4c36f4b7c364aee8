//! A real server is followed: its change stream and what traced clients saw make a history in which every read is
//! explained.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may")]

mod support;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use taipan_databases::{
    Database, FollowOptions, Follower, Header, Join, Matched, Patience, Plan, Postgres, Recorder, RunOptions,
    Sinks, WorkloadPlan, run,
};
use workload::{Settings, Workload};

const NO_SLOT: FollowOptions = FollowOptions { tables: Vec::new(), slot: None, resume: None };

/// Takes everything up to a boundary that sees what has happened so far.
fn drain(follower: &mut Follower, join: &mut Join) -> Vec<u8> {
    let mut out = Vec::new();
    for _ in 0..20 {
        out.extend(poll(follower, join));
        std::thread::sleep(Duration::from_millis(20));
    }
    out
}

fn poll(follower: &mut Follower, join: &mut Join) -> Vec<u8> {
    let changes = follower.poll().unwrap();
    assert!(changes.troubles.is_empty(), "{:?}", changes.troubles);
    let joined = join.take_changes(&changes.lines);
    assert!(joined.refused.is_empty(), "{:?}", joined.refused);
    follower.confirm(changes.place).unwrap();
    joined.lines
}

/// A join that waits for `finish`.
fn patient() -> Join {
    Join::new(Patience { grace_ms: 3_600_000, longest_ms: 3_600_000 }, None).unwrap()
}

/// Runs a workload while it is followed; of each hundred traced transactions so many are told to the join.
fn followed(
    database: &mut Postgres,
    settings: Settings,
    transactions: u64,
    told: usize,
) -> (Vec<u8>, Matched) {
    let isolation = database.isolations()[1];
    let plan = WorkloadPlan::new(settings.clone()).unwrap();
    database.create(&plan.schema(), &plan.initial()).unwrap();
    database.enable_timestamps(&isolation).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.jsonl");
    let sinks = Sinks { file: Some(path.clone()), ..Sinks::default() };
    let recorder = Recorder::new(&Header::default(), sinks).unwrap();
    let options = RunOptions {
        sessions: settings.sessions as usize,
        transactions: Some(transactions),
        isolation: Some(isolation),
        ..RunOptions::default()
    };
    let mut follower = database.follow(NO_SLOT).unwrap();
    let mut join = patient();
    let mut out = poll(&mut follower, &mut join);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let following = scope.spawn(|| {
            let mut out = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                out.extend(poll(&mut follower, &mut join));
            }
            out.extend(drain(&mut follower, &mut join));
            out
        });
        run(database, &plan, &recorder, &options).unwrap();
        is_over.store(true, Ordering::Relaxed);
        out.extend(following.join().unwrap());
    });
    out.extend(join.take_traced(&chosen(&path, told)).lines);
    out.extend(join.finish().lines);
    (out, join.matched())
}

fn chosen(path: &Path, told: usize) -> Vec<u8> {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().enumerate().filter(|(number, _)| number * 7 % 100 < told);
    lines.flat_map(|(_, line)| format!("{line}\n").into_bytes()).collect()
}

/// Holds every read against the newest version committed before its start. Returns how many there were.
fn explains_every_read(lines: &[u8]) -> usize {
    let text = String::from_utf8(lines.to_vec()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let placed = || lines.iter().filter(|line| line["db"].is_object());
    let empty = Vec::new();
    let ops = |line: &serde_json::Value| line["ops"].as_array().unwrap_or(&empty).clone();
    let mut versions: HashMap<String, Vec<(i64, serde_json::Value)>> = HashMap::new();
    for line in placed() {
        let mut last: HashMap<String, serde_json::Value> = HashMap::new();
        for op in ops(line) {
            match op["op"].as_str().unwrap() {
                "write" => drop(last.insert(op["key"].to_string(), op["value"].clone())),
                "delete" => drop(last.insert(op["key"].to_string(), serde_json::Value::Null)),
                _ => {}
            }
        }
        for (key, value) in last {
            versions.entry(key).or_default().push((line["db"]["commit"].as_i64().unwrap(), value));
        }
    }
    versions.values_mut().for_each(|versions| versions.sort_by_key(|(commit, _)| *commit));
    let mut reads = 0;
    for line in placed() {
        let start = line["db"]["start"].as_i64().unwrap();
        let mut own: HashMap<String, serde_json::Value> = HashMap::new();
        for op in ops(line) {
            let key = op["key"].to_string();
            match op["op"].as_str().unwrap() {
                "write" => drop(own.insert(key, op["value"].clone())),
                "delete" => drop(own.insert(key, serde_json::Value::Null)),
                "read" => {
                    reads += 1;
                    let versions = versions.get(&key).map(Vec::as_slice).unwrap_or_default();
                    let seen = versions.iter().rev().find(|(commit, _)| *commit < start);
                    let expected =
                        own.get(&key).or(seen.map(|(_, value)| value)).cloned().unwrap_or_default();
                    assert_eq!(op["value"], expected, "{key} in {line}");
                }
                _ => {}
            }
        }
    }
    reads
}

#[test]
fn every_read_of_a_followed_server_is_explained() {
    let Some(mut database) = support::postgres(&[("fsync", "on")]) else { return };
    let settings = Settings { sessions: 12, keys: 200, ops: 8, ..Workload::BlindWrites.settings() };
    let (lines, matched) = followed(&mut database, settings, 3000, 100);
    let reads = explains_every_read(&lines);
    println!("{reads} reads, {matched:?}");
    assert!(reads >= 10_000, "{reads} reads");
    assert_eq!((matched.unplaced, matched.late, matched.untraced), (0, 0, 0), "{matched:?}");
}

#[test]
fn what_no_client_tells_of_is_known_from_the_log() {
    let Some(mut database) = support::postgres(&[("fsync", "off"), ("synchronous_commit", "off")]) else {
        return;
    };
    let settings = Settings { sessions: 8, keys: 40, ops: 6, ..Workload::ReadModifyWrite.settings() };
    let (lines, matched) = followed(&mut database, settings, 2000, 50);
    let reads = explains_every_read(&lines);
    println!("{reads} reads, {matched:?}");
    assert!(matched.untraced > 100 && matched.placed > 100, "{matched:?}");
}

/// Rows of any shape have keys and values as the documentation says; a slot that stays tells everything once.
#[test]
fn rows_are_keys_and_a_slot_goes_on_where_it_was() {
    let Some(database) = support::postgres(&[("fsync", "off")]) else { return };
    let sql = |text: &str| {
        let mut console = taipan_databases::Database::scripted(&database).unwrap().console().unwrap();
        console.answer(text).unwrap();
    };
    sql("CREATE TABLE stock (id bigint PRIMARY KEY, amount integer)");
    sql("CREATE TABLE \"Odd: name\" (a text, b integer, n numeric, t boolean, PRIMARY KEY (b, a))");
    sql("CREATE TABLE heap (x integer)");
    sql("INSERT INTO stock VALUES (1, 10), (2, NULL)");
    let options = FollowOptions { slot: Some("followed".to_owned()), ..NO_SLOT };
    let mut follower = database.follow(options.clone()).unwrap();
    assert_eq!(follower.tables(), ["\"public\".\"Odd: name\"", "\"public\".\"stock\""]);
    let mut join = patient();
    let mut out = poll(&mut follower, &mut join);
    sql("INSERT INTO \"Odd: name\" VALUES ('it''s', 3, 1.5, true); INSERT INTO heap VALUES (1)");
    sql("UPDATE stock SET id = 3 WHERE id = 1");
    out.extend(drain(&mut follower, &mut join));
    let place = follower.poll().unwrap().place;
    drop(follower);
    sql(
        "BEGIN; DELETE FROM stock WHERE id = 3; SAVEPOINT s; UPDATE stock SET amount = 7 WHERE id = 2; COMMIT",
    );
    let failure = database.follow(options.clone()).err().unwrap().to_string();
    assert!(failure.contains("already"), "{failure}");
    let mut follower = database.follow(FollowOptions { resume: Some(place), ..options.clone() }).unwrap();
    out.extend(drain(&mut follower, &mut join));
    out.extend(join.finish().lines);
    let text = String::from_utf8(out).unwrap();
    let ops: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["ops"].to_string())
        .filter(|ops| ops != "null")
        .collect();
    assert_eq!(
        ops,
        [
            r#"[{"key":"stock/1","op":"write","value":10},{"key":"stock/2","op":"delete"}]"#,
            r#"[{"key":"Odd: name/3/it's","op":"write","value":{"n":"1.5","t":true}}]"#,
            r#"[{"key":"stock/1","op":"delete"},{"key":"stock/3","op":"write","value":10}]"#,
            r#"[{"key":"stock/3","op":"delete"},{"key":"stock/2","op":"write","value":7}]"#,
        ]
    );
    drop(follower);
    sql("SELECT pg_drop_replication_slot('followed')");
    let failure =
        database.follow(FollowOptions { resume: Some(place), ..options }).err().unwrap().to_string();
    assert!(failure.contains("no longer exists"), "{failure}");
    let tables = vec!["stock".to_owned(), "nowhere".to_owned()];
    let failure = database.follow(FollowOptions { tables, ..NO_SLOT }).err().unwrap().to_string();
    assert!(failure.contains("nowhere"), "{failure}");
}
