//! Timestamps of real servers are exact: a replay by them explains every read.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may")]

mod support;

use history::{History, KeyId, Operation, Status, Timestamp, ValueId};
use std::collections::HashMap;
use taipan_databases::{Database, Header, Plan, Recorder, RunOptions, Sinks, WorkloadPlan, run};
use workload::{Settings, Workload};

/// What a replay found.
#[derive(Debug, Default)]
struct Replay {
    reads: usize,
    wrong: Vec<String>,
}

/// Holds every read of a committed transaction against the newest version committed before its start.
fn replay(history: &History) -> Replay {
    let mut versions: HashMap<KeyId, Vec<(Timestamp, ValueId)>> = HashMap::new();
    for txn in history.transactions().filter(|txn| txn.is_committed()) {
        let (_, commit) = txn.db().expect("every committed transaction has timestamps");
        let mut last: HashMap<KeyId, ValueId> = HashMap::new();
        for (_, op) in txn.ops() {
            if let Operation::Write { key, value } = op {
                last.insert(key, value);
            }
        }
        for (key, value) in last {
            versions.entry(key).or_default().push((commit, value));
        }
    }
    for versions in versions.values_mut() {
        versions.sort();
        assert!(
            versions.windows(2).all(|pair| pair[0].0 < pair[1].0),
            "two commits of one key have one timestamp"
        );
    }
    let mut replay = Replay::default();
    for txn in history.transactions().filter(|txn| txn.is_committed()) {
        let (start, _) = txn.db().expect("every committed transaction has timestamps");
        let mut own: HashMap<KeyId, ValueId> = HashMap::new();
        for (_, op) in txn.ops() {
            match op {
                Operation::Write { key, value } => {
                    own.insert(key, value);
                }
                Operation::Read { key, value, .. } => {
                    replay.reads += 1;
                    let versions = versions.get(&key).map(Vec::as_slice).unwrap_or_default();
                    let place = versions.partition_point(|(commit, _)| *commit < start);
                    let committed =
                        place.checked_sub(1).map_or(history.initial_value(key), |place| versions[place].1);
                    let expected = own.get(&key).copied().unwrap_or(committed);
                    if value != expected {
                        let seen = history.values().show(value).to_string();
                        let expected = history.values().show(expected).to_string();
                        replay.wrong.push(format!("{} at {start}: {seen}, not {expected}", txn.name()));
                    }
                }
                _ => {}
            }
        }
    }
    replay
}

fn record(database: &mut dyn Database, level: &str, settings: Settings, transactions: u64) -> History {
    let isolation = *database.isolations().iter().find(|isolation| isolation.name == level).unwrap();
    let sessions = settings.sessions as usize;
    let plan = WorkloadPlan::new(settings).unwrap();
    database.create(&plan.schema(), &plan.initial()).unwrap();
    database.enable_timestamps(&isolation).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let header = Header { initial: plan.initial(), ..Header::default() };
    let sinks = Sinks { file: Some(path.clone()), memory: true, stamps: true, ..Sinks::default() };
    let recorder = Recorder::new(&header, sinks).unwrap();
    let options = RunOptions {
        sessions,
        transactions: Some(transactions),
        isolation: Some(isolation),
        ..RunOptions::default()
    };
    run(database, &plan, &recorder, &options).unwrap();
    let history = taipan_databases::finish_timestamped(recorder, database).unwrap();
    let unknown = history.transactions().filter(|txn| txn.status() == Status::Unknown).count();
    assert_eq!(unknown, 0, "no connection was lost");
    let read = history::formats::read_path(&path, &history::formats::ReadOptions::default()).unwrap();
    for (recorded, read) in history.transactions().zip(read.history.transactions()) {
        assert_eq!(recorded.db(), read.db(), "the file has the timestamps, too");
    }
    history
}

/// Long transactions on few keys from many sessions: commits overtake each other all the time.
fn settings(workload: Workload) -> Settings {
    Settings { sessions: 12, keys: 200, ops: 8, ..workload.settings() }
}

fn explains_every_read(database: &mut dyn Database, level: &str, workload: Workload, transactions: u64) {
    let history = record(database, level, settings(workload), transactions);
    let replay = replay(&history);
    println!(
        "{} {level} {workload:?}: {} reads, {} wrong",
        database.name(),
        replay.reads,
        replay.wrong.len()
    );
    assert_eq!(
        replay.wrong.len(),
        0,
        "of {} reads: {:#?}",
        replay.reads,
        &replay.wrong[..replay.wrong.len().min(5)]
    );
    assert!(replay.reads >= 10_000, "{} reads", replay.reads);
}

#[test]
fn postgres_repeatable_read_with_fsync() {
    let Some(mut database) = support::postgres(&[("fsync", "on")]) else { return };
    explains_every_read(&mut database, "repeatable-read", Workload::BlindWrites, 4000);
}

#[test]
fn postgres_serializable() {
    let Some(mut database) = support::postgres(&[("fsync", "off")]) else { return };
    explains_every_read(&mut database, "serializable", Workload::ReadModifyWrite, 5000);
}

#[test]
fn mariadb_repeatable_read() {
    let Some(mut database) = support::mariadb(&[("innodb_snapshot_isolation", "ON")]) else { return };
    explains_every_read(&mut database, "repeatable-read", Workload::BlindWrites, 4000);
}

#[test]
fn where_there_are_no_timestamps_the_reason_is_given() {
    let mut database = taipan_databases::open("sqlite:").unwrap();
    let isolation = *database.isolations().last().unwrap();
    let failure = database.enable_timestamps(&isolation).unwrap_err().to_string();
    assert!(failure.contains("SQLite"), "{failure}");
    let Some(mut database) = support::postgres(&[("fsync", "off")]) else { return };
    let isolation = database.isolations()[0];
    let failure = database.enable_timestamps(&isolation).unwrap_err().to_string();
    assert!(failure.contains("its own snapshot"), "{failure}");
}
