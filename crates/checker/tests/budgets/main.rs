//! A limit never creates a verdict: a check that is ended at any place is undecided, or says what it says without a limit.
//!
//! A budget of steps ends a check at each place where it asks whether to go on, one after the other; no clock is involved.

mod compare;

use compare::Comparison;
use history::History;
use history::formats::notation;
use isolation::{Budget, Level, Options, Ryow, Undecided};
use oracle::tiny::{Mix, Random, Shape};

/// A quarter of the random histories where time is short.
fn seeds(count: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("TAIPAN_QUICK").is_some() { count / 4 } else { count }
}

/// Compares a history at some levels, at that many places.
fn compare(history: &History, levels: &[Level], places: u64, seed: u64, about: &str) -> u64 {
    let mut random = Random::new(seed);
    let mut comparison = Comparison { places, random: &mut random, cases: 0 };
    for ryow in [Ryow::Must, Ryow::May] {
        let options = Options { ryow, ..Options::default() };
        for &level in levels {
            let result = comparison.everything(history, level, &options);
            result.unwrap_or_else(|what| {
                panic!("{about} at {level}, {ryow:?}: {what}\n{}", notation::to_string(history))
            });
        }
    }
    let options = Options::default();
    for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION] {
        let result = comparison.strategies(history, level, &options);
        result.unwrap_or_else(|what| panic!("{about} at {level}: {what}\n{}", notation::to_string(history)));
    }
    let result = comparison.survey(history, &options);
    result.unwrap_or_else(|what| panic!("{about}: {what}\n{}", notation::to_string(history)));
    comparison.cases
}

#[test]
fn tiny_histories_at_every_level() {
    let levels: Vec<Level> = Level::all().collect();
    let open = Mix { read: 5, append: 4, write: 1, delete: 1, ..Mix::default() };
    let shapes = [
        Shape { unique_values: 0, unknown: 30, ..Shape::registers() },
        Shape { mix: open, unique_values: 30, unknown: 20, keys_max: 2, ..Shape::lists() },
        Shape::predicates(),
        Shape::everything(),
    ];
    let mut cases = 0;
    for seed in seeds(40) {
        let shape = &shapes[seed as usize % shapes.len()];
        cases += compare(&shape.history(seed), &levels, 3, seed, &format!("seed {seed}"));
    }
    assert!(cases > 1_000, "{cases} checks were ended");
}

/// Session order does not count at these levels, and no order that keeps to it explains the results: each session's later
/// transactions read older states.
#[test]
fn histories_that_only_an_order_against_sessions_explains() {
    let stale = |parts: usize| {
        let line = |it: usize| {
            format!(
                "w{it}: w(x{it},1) w(y{it},1) | w(x{it},2) w(y{it},2)\nr{it}: r(x{it},2) r(y{it},2) | r(x{it},1) r(y{it},1)\n"
            )
        };
        (0..parts).map(line).collect::<String>()
    };
    let listed = |parts: usize| {
        let line = |it: usize| {
            format!("w{it}: a(l{it},1) | a(l{it},2)\nr{it}: r(l{it},[1 2]) | r(l{it},[1]) | r(l{it},_)\n")
        };
        (0..parts).map(line).collect::<String>()
    };
    let levels =
        ["serializable", "snapshot-isolation", "repeatable-read", "update-serializable", "consistent-view"];
    let levels: Vec<Level> =
        levels.iter().map(|name| Level::parse(name).expect("a level of the table")).collect();
    for parts in 1..4 {
        for text in [stale(parts), listed(parts)] {
            let history = notation::parse(&text).expect("the notation is right");
            compare(&history, &levels, 40, parts as u64, &text);
        }
    }
}

/// An operation on many keys takes as long as there are keys: a replay asks at each, not now and then.
#[test]
fn a_replay_asks_whenever_it_looks_at_many_keys() {
    let write = "s0: w(a,1) w(b,2) w(c,3)@@1..2\n".to_owned();
    for operation in ["scan(a..d)=[a:1 b:2 c:3]", "q(value>=2)=[b:2 c:3]", "u(value=9 -> 4)"] {
        let line = |it: usize| format!("s{it}: {operation}@@{}..{}\n", 10 * it, 10 * it + 1);
        let history = notation::parse(&(write.clone() + &(1..=50).map(line).collect::<String>()));
        let history = history.expect("the notation is right");
        let budget = Budget::unlimited().with_steps(u64::MAX, Undecided::Timeout);
        let options = Options { budget: budget.clone(), ..Options::default() };
        let verdict = replay::judge(&history, Level::SERIALIZABLE, &options).0.verdict;
        assert_eq!(verdict.name(), "accepted", "{operation}");
        let asked = u64::MAX - budget.steps_left().expect("they are counted");
        assert!(asked >= 50, "{operation}: asked {asked} times");
    }
}
