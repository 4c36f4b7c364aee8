//! Runs on real servers: honest outcomes, faults, and nothing left behind.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may")]

mod support;

use history::{History, Status};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use support::plans::Counters;
use taipan_databases::{
    Access, Database, Fault, Header, Isolation, KeyRange, Plan, Recorder, Request, Response, RunOptions,
    Summary, run,
};

fn isolation(database: &dyn Database, name: &str) -> Isolation {
    *database.isolations().iter().find(|isolation| isolation.name == name).expect("the vendor has it")
}

fn record(database: &dyn Database, plan: &dyn Plan, options: &RunOptions) -> (History, Summary) {
    database.create(&plan.schema(), &plan.initial()).unwrap();
    let header = Header { initial: plan.initial(), ..Header::default() };
    let recorder = Recorder::in_memory(&header).unwrap();
    let summary = run(database, plan, &recorder, options).unwrap();
    (recorder.finish().unwrap(), summary)
}

fn total(database: &dyn Database, plan: &dyn Plan) -> i64 {
    let mut session = database.connect(&plan.schema()).unwrap();
    session.begin(database.isolations().last().unwrap(), Access::ReadWrite).unwrap();
    match session.execute(&Request::Scan { range: KeyRange::default() }).unwrap() {
        Response::Rows { rows, .. } => rows.iter().filter_map(|(_, value)| value.as_int()).sum(),
        other => panic!("a scan answered {other:?}"),
    }
}

fn count(history: &History, status: Status) -> i64 {
    history.transactions().filter(|txn| txn.status() == status).count() as i64
}

/// Every committed increment is there, and none that was aborted.
fn counts_exactly(database: &dyn Database, level: &str) {
    let plan = Counters { keys: 4 };
    let isolation = Some(isolation(database, level));
    let options = RunOptions { sessions: 8, transactions: Some(800), isolation, ..RunOptions::default() };
    let (history, _) = record(database, &plan, &options);
    assert_eq!(count(&history, Status::Unknown), 0, "no connection was lost");
    let committed = count(&history, Status::Committed);
    assert!(committed > 0, "none of 800 committed");
    assert_eq!(total(database, &plan), committed, "{} at {level}", database.name());
    let alone = RunOptions { sessions: 1, transactions: Some(50), isolation, ..RunOptions::default() };
    let (history, _) = record(database, &plan, &alone);
    assert_eq!(count(&history, Status::Committed), 50, "one session has nobody to give way to");
}

#[test]
fn postgres_counts_exactly() {
    let Some(database) = support::postgres(&[("fsync", "off")]) else { return };
    assert!(database.name().starts_with("PostgreSQL "), "{}", database.name());
    counts_exactly(&database, "repeatable-read");
    counts_exactly(&database, "serializable");
}

#[test]
fn mariadb_counts_exactly() {
    let settings = [("innodb_snapshot_isolation", "ON"), ("innodb_flush_log_at_trx_commit", "2")];
    let Some(database) = support::mariadb(&settings) else { return };
    assert!(database.name().starts_with("MariaDB 1"), "{}", database.name());
    counts_exactly(&database, "repeatable-read");
    counts_exactly(&database, "serializable");
}

/// With connections cut and servers killed under load, what is committed is there; what is unknown may be.
fn survives(database: &dyn Database, faults: &[Fault]) {
    let plan = Counters { keys: 50 };
    let faults: Vec<_> = faults
        .iter()
        .enumerate()
        .map(|(n, fault)| (Duration::from_millis(200 + 300 * n as u64), *fault))
        .collect();
    let options = RunOptions {
        sessions: 8,
        transactions: None,
        duration: Some(Duration::from_millis(400 + 400 * faults.len() as u64)),
        faults: faults.clone(),
        ..RunOptions::default()
    };
    let (history, summary) = record(database, &plan, &options);
    assert_eq!(summary.faults.len(), faults.len(), "all faults were inflicted: {:?}", summary.faults);
    let (committed, unknown) = (count(&history, Status::Committed), count(&history, Status::Unknown));
    let total = total(database, &plan);
    assert!(
        (committed..=committed + unknown).contains(&total),
        "{total} increments are there, {committed} committed, {unknown} unknown"
    );
    let failures = history.transactions().filter_map(|txn| txn.ctx().map(str::to_owned));
    assert!(failures.into_iter().any(|ctx| ctx.contains("connection lost")), "a fault was felt");
}

const ALL_FAULTS: [Fault; 6] = [
    Fault::KillConnection,
    Fault::KillServer,
    Fault::KillConnection,
    Fault::RestartServer,
    Fault::PauseServer,
    Fault::KillServer,
];

#[test]
fn postgres_survives_faults() {
    let Some(database) = support::postgres(&[]) else { return };
    survives(&database, &ALL_FAULTS);
}

#[test]
fn mariadb_survives_faults() {
    let Some(database) = support::mariadb(&[]) else { return };
    survives(&database, &ALL_FAULTS);
}

#[test]
fn a_url_connects_to_a_running_server_or_says_why_not() {
    let refused = taipan_databases::open("postgres://taipan@127.0.0.1:1/x").err().unwrap().to_string();
    assert!(refused.contains("refused"), "{refused}");
    let refused = taipan_databases::open("mysql://taipan@127.0.0.1:1/x").err().unwrap().to_string();
    assert!(refused.contains("refused"), "{refused}");
}

#[test]
fn a_setting_that_does_not_exist_is_reported_in_the_servers_words() {
    if support::postgres(&[]).is_none() {
        return;
    }
    let failure = taipan_databases::open("postgres:temp?no_such_setting=1").err().unwrap().to_string();
    assert!(failure.contains("no_such_setting"), "{failure}");
}

/// Started by the next test in a process of its own, which is then killed.
#[test]
fn hold_a_server() {
    let Ok(vendor) = std::env::var("TAIPAN_TEST_HOLD") else { return };
    let held = taipan_databases::open(&vendor).unwrap();
    println!("holding {}", held.name());
    std::thread::sleep(Duration::from_secs(600));
}

/// The folders of throw-away servers that a process (by its janitors) answers for.
fn folders_of(pid: u32) -> Vec<String> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let arguments: Vec<String> =
            command.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        if parent == Some(&pid.to_string()) && arguments.iter().any(|word| word == "taipan-janitor") {
            folders.extend(arguments.iter().filter(|word| word.contains("/taipan-")).cloned());
        }
    }
    folders
}

fn leaves_nothing_when_killed(target: &str) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hold_a_server", "--nocapture"])
        .env("TAIPAN_TEST_HOLD", target)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let held = lines.map_while(Result::ok).any(|line| line.contains("holding"));
    assert!(held, "the server started");
    let folders = folders_of(child.id());
    assert_eq!(folders.len(), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    for _ in 0..3000 {
        if !Path::new(&folders[0]).exists() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{} is still there", folders[0]);
}

#[test]
fn nothing_is_left_of_a_postgres_whose_owner_was_killed() {
    if support::postgres(&[]).is_some() {
        leaves_nothing_when_killed("postgres:temp");
    }
}

#[test]
fn nothing_is_left_of_a_mariadb_whose_owner_was_killed() {
    if support::mariadb(&[]).is_some() {
        leaves_nothing_when_killed("mariadb:temp");
    }
}
