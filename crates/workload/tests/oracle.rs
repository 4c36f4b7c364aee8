//! Small simulated histories against the exhaustive oracle: healthy ones keep what the database promises,
//! planted bugs break exactly what they are said to break.

use history::{Builder, History};
use isolation::{Level, Options, Verdict, implications};
use oracle::oracle;
use std::collections::HashSet;
use taipan_workload::{
    Bug, Certification, Config, Fields, Plant, Settings, Simulation, Strength, Summary, Workload,
};

fn run(config: &Config) -> (History, Summary) {
    let mut builder = Builder::new();
    let simulation = Simulation::new(config.clone()).expect("valid settings");
    let summary = simulation.run(Fields::default(), &mut builder).expect("recorded");
    (builder.finish().expect("a history"), summary)
}

fn level(name: &str) -> Level {
    Level::parse(name).expect("a level of the table")
}

/// Settings small enough for trying everything.
fn tiny(workload: Workload, seed: u64) -> Settings {
    Settings {
        seed,
        sessions: 3,
        keys: 4,
        ops: 2,
        values: 3,
        range_max: 3,
        iterate_max: 2,
        hits_max: 3,
        refresh: 1,
        appends_per_key: 6,
        ..workload.settings()
    }
}

/// `None` if the oracle does not decide.
fn accepts(history: &History, level: Level, skew: i64) -> Option<bool> {
    let options = Options { clock_skew: skew, ..Options::default() };
    match oracle(history, level, &options) {
        Ok(Verdict::Accepted(_)) => Some(true),
        Ok(Verdict::Violated(_)) => Some(false),
        Ok(Verdict::Undecided(_)) | Err(_) => None,
    }
}

/// All levels that imply one of `weakest`.
fn implying(weakest: &[&str], with_predicates: bool) -> HashSet<Level> {
    let mut broken: HashSet<Level> = weakest.iter().map(|name| level(name)).collect();
    let all = implications();
    loop {
        let before = broken.len();
        for implication in all {
            let counts = !(implication.without_predicates && with_predicates);
            if counts && broken.contains(&implication.weaker) {
                broken.insert(implication.stronger);
            }
        }
        if broken.len() == before {
            return broken;
        }
    }
}

/// What a strength keeps when no snapshot is old: session order and real time too.
fn kept(strength: Strength) -> &'static [&'static str] {
    match strength {
        Strength::ReadCommitted => &["read-committed", "strong-read-committed"],
        Strength::SnapshotIsolation => {
            &["snapshot-isolation", "strong-session-snapshot-isolation", "strong-snapshot-isolation"]
        }
        Strength::Serializable | Strength::Strict => {
            &["serializable", "strong-session-serializable", "strict-serializable"]
        }
    }
}

/// Checks a history at every level in `names`; how many of them the oracle decided.
fn expect_accepted(config: &Config, names: &[&str]) -> usize {
    let (history, _) = run(config);
    let mut decided = 0;
    for name in names {
        let verdict = accepts(&history, level(name), config.clock_skew);
        assert_ne!(verdict, Some(false), "violates {name}: {config:?}");
        decided += usize::from(verdict.is_some());
    }
    decided
}

fn with_all_statuses(plan: Settings, strength: Strength) -> Config {
    let config = Config::new(plan, strength, 8);
    Config { abort_rate: 0.1, unknown_rate: 0.2, clock_skew: 500, ..config }
}

#[test]
fn healthy_histories_keep_the_promise_and_more() {
    let mut decided = 0;
    for strength in Strength::ALL {
        for workload in Workload::ALL {
            for seed in 0..30 {
                let config = with_all_statuses(tiny(workload, seed), strength);
                decided += expect_accepted(&config, kept(strength));
            }
        }
    }
    assert!(decided > 1000, "the oracle decided only {decided}");
}

#[test]
fn certification_by_conflicts_is_serializable_too() {
    let mut decided = 0;
    for workload in Workload::ALL {
        for seed in 100..200 {
            let config = with_all_statuses(tiny(workload, seed), Strength::Serializable);
            let config = Config { certification: Certification::Conflicts, ..config };
            decided += expect_accepted(&config, kept(Strength::Serializable));
        }
    }
    assert!(decided > 1500, "the oracle decided only {decided}");
}

#[test]
fn locking_reads_prevent_lost_updates_at_read_committed() {
    for workload in [Workload::ReadModifyWrite, Workload::Bank] {
        for seed in 0..30 {
            let plan = Settings { locking: 1.0, read_share: 0.0, ..tiny(workload, seed) };
            let config = with_all_statuses(plan, Strength::ReadCommitted);
            expect_accepted(&config, &["read-committed", "cursor-stability"]);
        }
    }
}

#[test]
fn old_snapshots_keep_the_plain_level_only() {
    for (strength, plain, session) in [
        (Strength::SnapshotIsolation, "snapshot-isolation", "strong-session-snapshot-isolation"),
        (Strength::Serializable, "serializable", "strong-session-serializable"),
    ] {
        for certification in [Certification::CommitOrder, Certification::Conflicts] {
            let mut broken = 0;
            for workload in Workload::ALL {
                for seed in 0..20 {
                    let config = with_all_statuses(tiny(workload, seed), strength);
                    let config = Config { lag: 0.5, lag_max: 10, certification, ..config };
                    expect_accepted(&config, &[plain]);
                    let (history, _) = run(&config);
                    broken += usize::from(accepts(&history, level(session), 0) == Some(false));
                }
            }
            assert!(broken > 20, "{strength:?} {certification:?}: only {broken} miss their own session");
        }
    }
}

#[test]
fn planted_bugs_break_what_they_say_and_nothing_weaker() {
    for bug in Bug::all() {
        let mut decided = 0;
        for workload in Workload::ALL {
            for seed in 0..5 {
                let plan = Settings { sessions: 4, ..tiny(workload, seed) };
                let mut config = Config::new(plan, Strength::Serializable, 8);
                config.clock_skew = 300;
                config.bugs.push((bug, Plant::Exactly(1)));
                let (history, summary) = run(&config);
                assert_eq!(summary.planted.len(), 1);
                let broken = implying(bug.breaks(), bug == Bug::Phantom);
                for strength in Strength::ALL {
                    let forbidden = broken.contains(&level(strength.promise()));
                    assert_eq!(forbidden, strength >= bug.broken_from(), "{bug:?} at {strength:?}");
                }
                for level in Level::all() {
                    let verdict = accepts(&history, level, config.clock_skew);
                    let Some(accepted) = verdict else { continue };
                    decided += 1;
                    assert_eq!(
                        accepted,
                        !broken.contains(&level),
                        "{bug:?} in {workload:?} seed {seed} at {level}"
                    );
                }
            }
        }
        assert!(decided >= 5 * 10 * 6, "{bug:?}: the oracle decided only {decided}");
    }
}
