//! Runs over several real connections, and what is recorded of them.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use history::{Operation, Status, ValueRef};
use support::plans::{Blind, Counters};
use taipan_databases::{
    Access, Database, Detail, Header, KeyRange, Plan, Recorder, Request, Response, RunOptions, Sinks, Sqlite,
    run,
};

fn record(database: &dyn Database, plan: &dyn Plan, options: &RunOptions) -> history::History {
    database.create(&plan.schema(), &plan.initial()).unwrap();
    let header = Header { initial: plan.initial(), ..Header::default() };
    let recorder = Recorder::in_memory(&header).unwrap();
    run(database, plan, &recorder, options).unwrap();
    recorder.finish().unwrap()
}

fn counts_exactly(target: &str, transactions: u64) {
    let database = taipan_databases::open(target).unwrap();
    let plan = Counters { keys: 3 };
    let options = RunOptions { sessions: 6, transactions: Some(transactions), ..RunOptions::default() };
    let history = record(&*database, &plan, &options);
    assert_eq!(history.len() as u64, transactions);
    assert_eq!(history.sessions().len(), 6);
    let committed = history.transactions().filter(|txn| txn.is_committed()).count();
    let mut session = database.connect(&plan.schema()).unwrap();
    session.begin(database.isolations().last().unwrap(), Access::ReadOnly).unwrap();
    let Response::Rows { rows, .. } = session.execute(&Request::Scan { range: KeyRange::default() }).unwrap()
    else {
        panic!("a scan answers with rows")
    };
    let total: i64 = rows.iter().filter_map(|(_, value)| value.as_int()).sum();
    assert_eq!(total, committed as i64, "the counters hold one for every committed transaction");
    // How many give way to each other depends on the machine; that some get through does not, and neither does that
    // nobody gives way who is alone.
    assert!(committed > 0, "none of {transactions} committed");
    let alone = RunOptions { sessions: 1, transactions: Some(30), ..RunOptions::default() };
    let history = record(&*database, &plan, &alone);
    assert!(history.transactions().all(|txn| txn.is_committed()), "one session has nobody to give way to");
}

#[test]
fn sqlite_loses_no_increment() {
    counts_exactly("sqlite:", 600);
}

#[test]
fn fjall_loses_no_increment() {
    counts_exactly("fjall:", 3000);
}

#[test]
fn redb_loses_no_increment() {
    counts_exactly("redb:", 120);
}

#[test]
fn a_history_holds_what_happened() {
    let database = Sqlite::temporary().unwrap();
    let plan = Blind { keys: 20, operations: 5 };
    let options = RunOptions { sessions: 4, transactions: Some(400), ..RunOptions::default() };
    let history = record(&database, &plan, &options);
    let mut statuses = [0; 3];
    for txn in history.transactions() {
        statuses[txn.status() as usize] += 1;
        let span = txn.client().expect("every transaction has clocks");
        let mut last = span.begin;
        for (id, op) in txn.ops() {
            let at = history.operation_at(id).expect("every operation has clocks");
            assert!(last <= at.begin && at.begin <= at.end && at.end <= span.end);
            last = at.end;
            if let Operation::Read { value, .. } = op
                && txn.is_committed()
            {
                assert!(matches!(history.values().get(value), ValueRef::Int(_)));
            }
        }
        assert!(txn.status() != Status::Committed || txn.ops().len() == 5);
        if txn.ops().len() > 0 {
            let ctx = txn.ctx().expect("statements are kept");
            assert!(ctx.contains("SELECT") || ctx.contains("INSERT"), "{ctx}");
        }
    }
    assert_eq!(statuses[Status::Unknown as usize], 0, "nothing was lost in process");
    assert!(statuses[Status::Aborted as usize] > 0, "some gave up on purpose");
}

#[test]
fn every_line_is_in_the_file_as_soon_as_its_transaction_ended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let header = Header { level: Some("snapshot".into()), ..Header::default() };
    let recorder = Recorder::to_file(&header, &path).unwrap();
    let mut tracer = recorder.tracer(1.into());
    for n in 0..3 {
        tracer.begin();
        tracer.call(Request::write("x", n));
        tracer.answer(Response::Done);
        tracer.end(Status::Committed).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count() as i64, n + 2, "a header and a line a transaction");
        assert!(text.ends_with("}\n"));
    }
    let mut abandoned = recorder.tracer(2.into());
    abandoned.begin();
    abandoned.call(Request::write("x", 9));
    drop(abandoned);
    drop(tracer);
    assert_eq!(recorder.finish().unwrap().len(), 3, "a transaction that never ended is not recorded");
}

#[test]
fn the_file_and_the_memory_hold_the_same_transactions() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let database = Sqlite::temporary().unwrap();
    let plan = Blind { keys: 10, operations: 3 };
    database.create(&plan.schema(), &plan.initial()).unwrap();
    let header = Header { initial: plan.initial(), ..Header::default() };
    let seen = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counter = seen.clone();
    let sinks = Sinks {
        file: Some(path.clone()),
        memory: true,
        listener: Some(Box::new(move |_| {
            counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        })),
        stamps: false,
        detail: Detail { statements: false, operation_clocks: false },
    };
    let recorder = Recorder::new(&header, sinks).unwrap();
    let options = RunOptions { sessions: 3, transactions: Some(100), ..RunOptions::default() };
    run(&database, &plan, &recorder, &options).unwrap();
    let history = recorder.finish().unwrap();
    assert_eq!(seen.load(std::sync::atomic::Ordering::Relaxed), 100);
    let native = history::formats::Format::Jsonl;
    let in_memory = history::formats::write_string(&history, native).unwrap();
    let read = history::formats::read_path(&path, &history::formats::ReadOptions::default()).unwrap();
    assert_eq!(history::formats::write_string(&read.history, native).unwrap(), in_memory);
}

#[test]
fn a_full_disk_is_a_sentence_that_names_the_file() {
    let error = Recorder::to_file(&Header::default(), "/dev/full").err().expect("no space is left there");
    assert!(error.to_string().contains("/dev/full"), "{error}");
}

#[test]
fn a_run_can_be_stopped() {
    let database = Sqlite::temporary().unwrap();
    let plan = Blind { keys: 10, operations: 2 };
    database.create(&plan.schema(), &plan.initial()).unwrap();
    let options = RunOptions { sessions: 2, transactions: None, ..RunOptions::default() };
    let progress = options.progress.clone();
    let recorder = Recorder::new(
        &Header::default(),
        Sinks {
            memory: true,
            listener: Some(Box::new({
                let mut left = 50;
                move |_| {
                    left -= 1;
                    if left == 0 {
                        progress.stop();
                    }
                }
            })),
            ..Sinks::default()
        },
    )
    .unwrap();
    let summary = run(&database, &plan, &recorder, &options).unwrap();
    let counts = summary.counts;
    assert!((50..=52).contains(&(counts.committed + counts.aborted)), "{counts:?}");
}
