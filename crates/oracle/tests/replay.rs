//! The replaying half of the oracle: random histories of every shape at serializability, snapshot isolation
//! and their variants.

use history::History;
use isolation::{Event, Level, Options, Rule, Ryow, Verdict};
use taipan_oracle::oracle;
use taipan_oracle::tiny::{Shape, Sketch, shrink};

fn shapes() -> Vec<(&'static str, Shape)> {
    vec![
        ("registers", Shape::registers()),
        ("lists", Shape::lists()),
        ("ranges", Shape::ranges()),
        ("predicates", Shape::predicates()),
        ("everything", Shape::everything()),
        ("compare and set", Shape::swaps()),
    ]
}

fn level(rule: Rule, session: bool, realtime: bool) -> Level {
    Level::new(rule, session, realtime)
}

fn accepts(history: &History, level: Level, options: &Options) -> bool {
    match oracle(history, level, options) {
        Ok(Verdict::Accepted(_)) => true,
        Ok(Verdict::Violated(_)) => false,
        other => panic!("a tiny history is always decided, not {other:?}"),
    }
}

#[test]
fn both_verdicts_occur_often_in_every_shape() {
    for (name, shape) in shapes() {
        for rule in [Rule::Serializable, Rule::SnapshotIsolation] {
            for session in [false, true] {
                let level = level(rule, session, false);
                let accepted = (0..600)
                    .filter(|&seed| accepts(&shape.history(seed), level, &Options::default()))
                    .count();
                assert!((90..=510).contains(&accepted), "{name} at {level}: {accepted} of 600 accepted");
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for (_, shape) in shapes() {
        let sketch = shape.sketch(42);
        assert_eq!(sketch, shape.sketch(42));
        assert_eq!(Sketch::of(&sketch.build()), sketch);
    }
}

/// More orders never help, and a serial order is an interleaving.
#[test]
fn stronger_levels_accept_less() {
    let chain = [
        level(Rule::Serializable, true, true),
        level(Rule::Serializable, true, false),
        level(Rule::Serializable, false, false),
        level(Rule::SnapshotIsolation, false, false),
    ];
    let side = [
        level(Rule::Serializable, true, true),
        level(Rule::SnapshotIsolation, true, true),
        level(Rule::SnapshotIsolation, true, false),
        level(Rule::SnapshotIsolation, false, false),
    ];
    for ryow in [Ryow::Must, Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        for (name, shape) in shapes() {
            let shape = shape.with_ryow(ryow);
            for seed in 0..400 {
                let history = shape.history(seed);
                for chain in [chain, side] {
                    let ordered = |history: &History| {
                        chain.is_sorted_by_key(|&level| accepts(history, level, &options))
                    };
                    if !ordered(&history) {
                        let small = shrink(&history, |history| !ordered(history));
                        panic!("{name}, seed {seed}, {ryow:?}:\n{}", Sketch::of(&small));
                    }
                }
            }
        }
    }
}

/// `may` accepts what `must` and what `never` accept.
#[test]
fn may_is_the_weakest_policy() {
    for (name, shape) in shapes() {
        for seed in 0..400 {
            let history = shape.history(seed);
            for rule in [Rule::Serializable, Rule::SnapshotIsolation] {
                let accepts = |ryow| {
                    accepts(&history, level(rule, false, false), &Options { ryow, ..Options::default() })
                };
                let strict = accepts(Ryow::Must) || accepts(Ryow::Never);
                assert!(!strict || accepts(Ryow::May), "{name}, seed {seed}:\n{}", Sketch::of(&history));
            }
        }
    }
}

/// A witness names every committed transaction once, no aborted one, and begins before it commits.
#[test]
fn witnesses_are_complete() {
    for (name, shape) in shapes() {
        for seed in 0..300 {
            let history = shape.history(seed);
            for rule in [Rule::Serializable, Rule::SnapshotIsolation] {
                let Ok(Verdict::Accepted(witness)) =
                    oracle(&history, level(rule, true, true), &Options::default())
                else {
                    continue;
                };
                for txn in history.transactions() {
                    let at = |event: Event| witness.order.iter().filter(|&&other| other == event).count();
                    let whole = at(Event::Whole(txn.id()));
                    let (begins, commits) = (at(Event::Begin(txn.id())), at(Event::Commit(txn.id())));
                    let times = if rule == Rule::Serializable { whole } else { commits };
                    assert_eq!(begins, commits);
                    match txn.status() {
                        history::Status::Committed => assert_eq!(times, 1, "{name}, seed {seed}"),
                        history::Status::Aborted => assert_eq!(times, 0, "{name}, seed {seed}"),
                        history::Status::Unknown => assert!(times <= 1, "{name}, seed {seed}"),
                    }
                }
            }
        }
    }
}

#[test]
fn shrinking_keeps_the_failure_and_only_what_matters() {
    let serializable = |history: &History| accepts(history, Level::SERIALIZABLE, &Options::default());
    let snapshot = |history: &History| accepts(history, Level::SNAPSHOT_ISOLATION, &Options::default());
    let write_skew = |history: &History| snapshot(history) && !serializable(history);
    let mut found = 0;
    for seed in 0..3000 {
        let history = Shape::registers().history(seed);
        if write_skew(&history) {
            let small = shrink(&history, write_skew);
            assert!(write_skew(&small));
            assert!(small.len() <= 5, "seed {seed}:\n{}", Sketch::of(&small));
            assert!(small.op_count() <= history.op_count());
            found += 1;
        }
    }
    assert!(found >= 5, "only {found} histories allowed by snapshot isolation and not serializable");
}

#[test]
fn large_histories_are_refused_politely() {
    let mut many_transactions = Shape::registers().with_transactions_max(200);
    many_transactions.transactions.0 = 200;
    let mut many_operations = Shape::registers().with_transactions_max(2);
    many_operations.ops_max = 5000;
    let mut many_keys = Shape::registers().with_transactions_max(2);
    (many_keys.ops_max, many_keys.keys_max) = (400, 4000);
    let mut many_aborted = Shape::lists().with_transactions_max(3000);
    (many_aborted.transactions.0, many_aborted.aborted) = (3000, 100);
    for shape in [many_transactions, many_operations, many_keys, many_aborted] {
        let history = shape.history(3);
        for level in Level::all() {
            if let Err(refused) = oracle(&history, level, &Options::default()) {
                let message = refused.to_string();
                assert!(message.contains("up to") || message.contains("gave up"), "{message}");
            }
        }
    }
}
