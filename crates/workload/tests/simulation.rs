//! What a simulation promises beside isolation: repeatability, counts, clocks, and what it says it planted.

use history::formats::{Format, write_string};
use history::{Builder, History, Operation, Status, ValueRef};
use std::collections::HashMap;
use taipan_workload::{
    Bug, Certification, Config, Fields, Plant, RunError, Settings, Simulation, Strength, Summary, Workload,
};

fn run_with(config: &Config, fields: Fields) -> (History, Summary) {
    let mut builder = Builder::new();
    let simulation = Simulation::new(config.clone()).expect("valid settings");
    let summary = simulation.run(fields, &mut builder).expect("recorded");
    (builder.finish().expect("a history"), summary)
}

fn run(config: &Config) -> (History, Summary) {
    run_with(config, Fields::default())
}

/// Everything switched on, small.
fn eventful(workload: Workload, seed: u64) -> Config {
    let plan = Settings { seed, sessions: 6, keys: 40, locking: 0.3, ..workload.settings() };
    Config {
        abort_rate: 0.1,
        unknown_rate: 0.1,
        clock_skew: 3000,
        op_clocks: true,
        bugs: vec![(Bug::LostUpdate, Plant::Exactly(2)), (Bug::Phantom, Plant::Rate(0.01))],
        ..Config::new(plan, Strength::Serializable, 500)
    }
}

fn text(history: &History) -> String {
    write_string(history, Format::from_name("jsonl").expect("the native format")).expect("written")
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for workload in Workload::ALL {
        for certification in [Certification::CommitOrder, Certification::Conflicts] {
            let config = Config { certification, ..eventful(workload, 11) };
            let (first, first_summary) = run(&config);
            let (second, second_summary) = run(&config);
            assert_eq!(first_summary, second_summary, "{workload:?}");
            assert_eq!(text(&first), text(&second), "{workload:?}");
            let (other, _) = run(&Config { certification, ..eventful(workload, 12) });
            assert_ne!(text(&first), text(&other), "{workload:?}");
        }
    }
}

#[test]
fn parts_are_the_whole() {
    let format = Format::from_name("jsonl").expect("the native format");
    let history::formats::Output::Parts(write) = format.row().output else { panic!("lines come in parts") };
    for (workload, transactions) in [(Workload::BlindWrites, 16_000), (Workload::Everything, 8_000)] {
        let plan = Settings { seed: 3, keys: 200, ops: 20, ..workload.settings() };
        let config = Config::new(plan, Strength::SnapshotIsolation, transactions);
        let (mut bytes, mut parts) = (Vec::new(), 0);
        let simulation = Simulation::new(config.clone()).expect("valid settings");
        let summary = simulation.run_in_parts(Fields::default(), |history, part| {
            assert_eq!(part.index, parts);
            parts += 1;
            write(history, part, &mut bytes).expect("written");
            Ok::<_, RunError>(())
        });
        let (whole, whole_summary) = run(&config);
        assert_eq!(summary, Ok(whole_summary));
        assert!(parts > 1, "{workload:?} came in one part");
        // The header may spell initial values differently where keys are not used yet; lines are the same.
        let parts = String::from_utf8(bytes).expect("text");
        let whole = text(&whole);
        let same = parts.lines().skip(1).eq(whole.lines().skip(1));
        assert!(same, "{workload:?}");
    }
}

#[test]
fn summaries_count_what_is_recorded() {
    for workload in Workload::ALL {
        let (history, summary) = run(&eventful(workload, 5));
        let count = |status| history.transactions().filter(|txn| txn.status() == status).count() as u64;
        assert_eq!(history.len(), 500, "{workload:?}");
        assert_eq!(count(Status::Committed), summary.committed, "{workload:?}");
        assert_eq!(count(Status::Aborted), summary.aborted + summary.conflicts, "{workload:?}");
        assert_eq!(count(Status::Unknown), summary.unknown, "{workload:?}");
        assert!(summary.unknown > 20 && summary.aborted > 20, "{summary:?}");
        assert!(summary.unknown_effective > 0 && summary.unknown_effective < summary.unknown, "{summary:?}");
    }
}

#[test]
fn aborted_transactions_can_be_left_out() {
    let config = Config { record_aborted: false, bugs: Vec::new(), ..eventful(Workload::Duplicates, 6) };
    let (history, summary) = run(&config);
    assert_eq!(history.len(), 500);
    assert!(summary.aborted > 0);
    assert!(history.transactions().all(|txn| txn.status() != Status::Aborted));
}

#[test]
fn bugs_are_planted_as_often_as_asked_and_named_rightly() {
    for bug in Bug::all() {
        for workload in Workload::ALL {
            let config = Config { bugs: vec![(bug, Plant::Exactly(5))], ..eventful(workload, 7) };
            let fields = Fields { planted: true, ..Fields::default() };
            let (history, summary) = run_with(&config, fields);
            assert_eq!(summary.planted.len(), 5, "{bug:?} {workload:?}");
            let mut marked: HashMap<String, bool> = HashMap::new();
            for txn in history.transactions().filter(|txn| txn.ctx().is_some()) {
                assert_eq!(txn.ctx(), Some(&*format!(r#"{{"planted":"{}"}}"#, bug.name())));
                marked.insert(txn.name().to_string(), false);
            }
            for planted in &summary.planted {
                assert_eq!(planted.bug, bug);
                assert_eq!(planted.transactions.len() as u64, bug.transactions());
                for (session, position) in &planted.transactions {
                    let name = format!("{}:{position}", session + 1);
                    let seen = marked.get_mut(&name).unwrap_or_else(|| panic!("{name} is not marked"));
                    assert!(!std::mem::replace(seen, true), "{name} twice");
                }
            }
            assert!(marked.values().all(|seen| *seen), "{bug:?} {workload:?}");
        }
    }
}

#[test]
fn rates_are_kept_and_places_are_spread() {
    let config = Config {
        bugs: vec![(Bug::NonRepeatableRead, Plant::Rate(0.01))],
        ..Config::new(Workload::BlindWrites.settings(), Strength::SnapshotIsolation, 20_000)
    };
    let (history, summary) = run_with(&config, Fields { planted: true, ..Fields::default() });
    assert!((199..=201).contains(&summary.planted.len()), "{}", summary.planted.len());
    let places: Vec<usize> = history
        .transactions()
        .enumerate()
        .filter(|(_, txn)| txn.ctx().is_some())
        .map(|(place, _)| place)
        .collect();
    for quarter in 0..4 {
        let there = places.iter().filter(|place| **place / 5000 == quarter).count();
        assert!(there > 75, "only {there} transactions in quarter {quarter}");
    }
}

#[test]
fn clocks_are_those_of_clients() {
    for workload in Workload::ALL {
        let config = eventful(workload, 8);
        let (history, _) = run(&config);
        for session in history.sessions().ids() {
            let mut before = i64::MIN;
            for &txn in history.of_session(session) {
                let txn = history.transaction(txn);
                let span = txn.client().expect("clocks are kept");
                assert!(before < span.begin && span.begin < span.end, "{workload:?} {}", txn.name());
                before = span.end;
                let mut last = span.begin;
                for (op, _) in txn.ops() {
                    let at = history.operation_at(op).expect("clocks of operations are kept");
                    assert!(last <= at.begin && at.begin <= at.end && at.end <= span.end, "{}", txn.name());
                    last = at.end;
                }
            }
        }
        // The clocks differ: some session's first transaction begins much later than it could.
        let firsts = history.sessions().ids().map(|session| history.of_session(session)[0]);
        let begins: Vec<i64> =
            firsts.filter_map(|txn| Some(history.transaction(txn).client()?.begin)).collect();
        assert_eq!(begins.len(), 6);
    }
}

#[test]
fn fields_that_are_not_wanted_are_not_there() {
    let fields = Fields { client: false, db: false, planted: false };
    let (history, _) = run_with(&Config { op_clocks: false, ..eventful(Workload::Bank, 1) }, fields);
    assert!(!history.has_client_clocks() && !history.has_db_timestamps());
}

#[test]
fn the_bank_neither_wins_nor_loses() {
    for strength in [Strength::SnapshotIsolation, Strength::Serializable, Strength::Strict] {
        let plan = Settings { keys: 8, sessions: 10, ..Workload::Bank.settings() };
        let (history, summary) = run(&Config::new(plan, strength, 5000));
        assert!(summary.conflicts > 100, "{summary:?}");
        let mut audits = 0;
        for txn in history.transactions().filter(|txn| txn.ops().len() == 8 && txn.is_committed()) {
            let balances = txn.ops().map(|(_, op)| match op {
                Operation::Read { value, .. } => match history.values().get(value) {
                    ValueRef::Int(balance) => balance,
                    other => panic!("{other:?} is no balance"),
                },
                other => panic!("an audit only reads, not {other:?}"),
            });
            let balances: Vec<i64> = balances.collect();
            assert!(balances.iter().all(|balance| *balance >= 0));
            assert_eq!(balances.iter().sum::<i64>(), 800, "{strength:?} {}", txn.name());
            audits += 1;
        }
        assert!(audits > 1000);
    }
}

#[test]
fn few_sessions_at_a_time_conflict_less() {
    let plan = Settings { keys: 50, ..Workload::ReadModifyWrite.settings() };
    let crowded = Config::new(plan, Strength::SnapshotIsolation, 3000);
    let calm = Config { concurrency: 2, ..crowded.clone() };
    let (crowded, calm) = (run(&crowded).1, run(&calm).1);
    assert!(calm.conflicts * 3 < crowded.conflicts, "{} {}", calm.conflicts, crowded.conflicts);
    // All sessions take part all the same, also when bugs make them wait for each other.
    let plan = Settings { keys: 50, ..Workload::ReadModifyWrite.settings() };
    let bugs = vec![(Bug::CausalityViolation, Plant::Exactly(20))];
    let config = Config { concurrency: 1, bugs, ..Config::new(plan, Strength::Serializable, 2000) };
    let (history, summary) = run(&config);
    assert_eq!((history.len(), history.sessions().len(), summary.planted.len()), (2000, 24, 20));
}

#[test]
fn extremes_run_to_the_end() {
    for workload in Workload::ALL {
        let usual = Config::new(workload.settings(), Strength::Serializable, 300);
        let plan = |plan: Settings| Config { plan, ..usual.clone() };
        let settings = || workload.settings();
        let least = if workload == Workload::Bank { 2 } else { 1 };
        let cases = [
            Config { transactions: 0, ..usual.clone() },
            Config { transactions: 1, ..usual.clone() },
            Config { abort_rate: 1.0, ..usual.clone() },
            Config { unknown_rate: 1.0, ..usual.clone() },
            Config { concurrency: 1, ..usual.clone() },
            Config { clock_skew: 1_000_000_000_000, ..usual.clone() },
            Config { strength: Strength::SnapshotIsolation, lag: 1.0, lag_max: u64::MAX, ..usual.clone() },
            Config { strength: Strength::SnapshotIsolation, lag: 1.0, lag_max: 0, ..usual.clone() },
            plan(Settings { sessions: 1, ..settings() }),
            plan(Settings { sessions: 1000, ..settings() }),
            plan(Settings { keys: least, ..settings() }),
            plan(Settings { ops: 1, keys: least, range_max: 1, iterate_max: 1, hits_max: 1, ..settings() }),
            plan(Settings {
                keys: 3,
                range_max: 1 << 30,
                iterate_max: 1 << 30,
                hits_max: 1 << 30,
                ..settings()
            }),
            plan(Settings { read_share: 0.0, locking: 1.0, ..settings() }),
            plan(Settings { read_share: 1.0, populated: 1.0, ..settings() }),
            plan(Settings { appends_per_key: 1, keys: 2, refresh: 0, ..settings() }),
        ];
        for config in cases {
            let (history, _) = run(&config);
            assert_eq!(history.len() as u64, config.transactions, "{config:?}");
        }
    }
}
