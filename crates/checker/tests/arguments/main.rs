//! Every argument is true: a judge that knows nothing of how arguments are made holds each step of thousands of them
//! against the history.
//!
//! `TAIPAN_LONG=1` runs twenty times as many; `TAIPAN_SEED=N` starts at another seed.

#[path = "../cases/mod.rs"]
mod cases;
mod judge;

use cases::{expect_no_fault, seeds};
use evidence::check;
use history::formats::notation;
use history::{History, TxnId};
use isolation::{Anomaly, Case, Evidence, Level, Options, Rule, Verdict};
use judge::Judge;
use oracle::tiny::{Mix, Shape};
use std::cell::Cell;
use std::sync::Arc;

fn levels() -> Vec<Level> {
    let names = [
        "SER",
        "SI",
        "strong-session-SER",
        "strong-session-SI",
        "strict-serializable",
        "RC",
        "cursor-stability",
        "monotonic-view",
        "consistent-view",
        "repeatable-read",
        "update-serializable",
        "read-atomic",
        "causal",
        "prefix",
        "RU",
    ];
    names.map(|name| Level::parse(name).expect("a name of the table")).to_vec()
}

/// Judges the argument of every violation among random histories.
fn examine(shape: &Shape, count: u64) {
    let (told, silent) = (Cell::new(0_usize), Cell::new(0_usize));
    expect_no_fault(shape, seeds(count), &levels(), |history, level| {
        let Verdict::Violated(evidence) = check(history, level, &Options::default()).verdict else {
            return None;
        };
        let counter = if evidence.edges.is_empty() { &silent } else { &told };
        counter.set(counter.get() + 1);
        Judge::new(history, level).examine(&evidence).err().map(|why| format!("{why}\n{evidence:#?}"))
    });
    let (told, silent) = (told.get(), silent.get());
    assert!(told > 5 * silent, "{told} arguments, and none for {silent} violations");
}

#[test]
fn registers() {
    examine(&Shape::registers(), 800);
}

#[test]
fn repeated_values_and_unknown_outcomes() {
    let shape = Shape { unique_values: 0, unknown: 25, aborted: 15, ..Shape::registers() };
    examine(&shape, 800);
}

#[test]
fn repeated_values_of_few_keys() {
    let shape =
        Shape { unique_values: 0, keys_max: 2, transactions: (3, 6), spoiled: 60, ..Shape::registers() };
    examine(&shape, 600);
}

#[test]
fn deletes() {
    let mix = Mix { read: 5, write: 3, delete: 3, ..Mix::default() };
    examine(&Shape { mix, aborted: 15, ..Shape::registers() }, 500);
}

#[test]
fn lists() {
    examine(&Shape { aborted: 15, unknown: 15, spoiled: 50, ..Shape::lists() }, 700);
}

#[test]
fn mixed_up_lists() {
    let scans = Mix { read: 2, append: 4, scan: 2, iterate: 1, ..Mix::default() };
    let shape =
        Shape { unique_values: 100, unknown: 25, mixed_up: 80, keys_max: 2, ops_max: 5, ..Shape::lists() };
    examine(&shape, 300);
    examine(&Shape { mix: scans, ..shape }, 200);
}

#[test]
fn ranges() {
    examine(&Shape { aborted: 15, spoiled: 50, ..Shape::ranges() }, 300);
}

#[test]
fn predicates() {
    examine(&Shape { aborted: 15, spoiled: 50, ..Shape::predicates() }, 250);
}

fn evidence(text: &str, level: &str) -> (History, Evidence) {
    let history = notation::parse(text).expect("it is a history");
    let level = Level::parse(level).expect("a name of the table");
    match check(&history, level, &Options::default()).verdict {
        Verdict::Violated(evidence) => (history, *evidence),
        other => panic!("{text}{other:?}"),
    }
}

fn names(history: &History, txns: &[TxnId]) -> Vec<String> {
    txns.iter().map(|&txn| history.transaction(txn).name().to_string()).collect()
}

/// What is found at a level, its name and whom it names.
fn found(text: &str, level: &str) -> (String, Vec<String>) {
    let (history, evidence) = evidence(text, level);
    let all = names(&history, &evidence.argument().transactions());
    let Anomaly { name, .. } = evidence.anomaly;
    (name, all)
}

#[test]
fn operations_are_named_for_what_they_did() {
    let cases = [
        ("s1: a(l,1)!\ns2: a(l,2)\ns3: r(l,[1 2])\n", "G1a", vec!["s1:0", "s3:0"]),
        ("init: a=1 c=3\ns1: w(b,2) scan(a..z)=[a:1 c:3]\n", "internal", vec!["s1:0"]),
        ("s1: w(b,2) q(value>=2)=[]\n", "internal", vec!["s1:0"]),
        ("s1: w(b,2)!\ns2: scan(a..z)=[b:2]\n", "G1a", vec!["s1:0", "s2:0"]),
        ("s1: w(b,2)!\ns2: q(value>=1)=[b:2]\n", "G1a", vec!["s1:0", "s2:0"]),
        ("s1: w(b,2) w(b,3)\ns2: scan(a..z)=[b:2]\n", "G1b", vec!["s1:0", "s2:0"]),
        ("init: b=1\ns1: d(b)!\ns2: scan(a..z)=[]\n", "G1a", vec!["s1:0", "s2:0"]),
        ("init: b=1\ns2: scan(a..z)=[]\n", "thin-air", vec!["s2:0"]),
        ("init: a=1 b=1\ns1: scan(a..z)=[b:1 a:1]\n", "impossible-order", vec!["s1:0"]),
        ("init: a=1\ns1: scan(b..z)=[a:1]\n", "impossible-row", vec!["s1:0"]),
        ("init: a=1\ns1: q(value>=2)=[a:1]\n", "impossible-row", vec!["s1:0"]),
        ("init: a=1 b=1\ns1: u(value=1 -> 2)=3\n", "impossible-count", vec!["s1:0"]),
        ("s1: a(l,1) a(l,2)\ns2: r(l,[1])\n", "G1b", vec!["s1:0", "s2:0"]),
        (
            "s1: a(l,1) | a(l,2)\ns2: r(l,[1 2])\ns3: a(l,3) r(l,[1 3])\n",
            "incompatible-order",
            vec!["s1:1", "s2:0", "s3:0"],
        ),
    ];
    for (text, name, txns) in cases {
        for level in ["SER", "SI", "RC"] {
            let (history, evidence) = evidence(text, level);
            assert_eq!(evidence.anomaly.name, name, "{level}: {text}{evidence:?}");
            assert_eq!(names(&history, &evidence.argument().transactions()), txns, "{level}: {text}");
        }
    }
}

/// x = 1 was written twice: whom it was read from is a case distinction.
#[test]
fn two_possible_writers_are_two_cases() {
    let text = "s1: w(x,1) w(y,1)\ns2: w(x,1) w(y,2)\ns3: r(x,1) w(z,1)\ns4: r(z,1) r(y,_)\n";
    for level in ["SER", "SI", "causal"] {
        let (history, evidence) = evidence(text, level);
        let cases = evidence.cases.as_ref().unwrap_or_else(|| panic!("{level}: {evidence:?}"));
        assert_eq!((cases.told.len(), cases.left_out), (2, 0), "{level}: {evidence:?}");
        for case in &cases.told {
            assert_eq!(case.argument.edges.len(), 3, "{level}: {case:?}");
        }
        let judged = Judge::new(&history, Level::parse(level).expect("a name")).examine(&evidence);
        assert_eq!(judged, Ok(()), "{level}: {evidence:?}");
    }
}

fn cases_of(evidence: &mut Evidence) -> &mut Vec<Case> {
    let cases = evidence.cases.as_mut().expect("it has cases");
    &mut Arc::make_mut(cases).told
}

/// The judge itself: what is not so is found.
#[test]
fn the_judge_refuses_what_is_not_so() {
    let text = "s1: w(x,1) w(y,1)\ns2: w(x,1) w(y,2)\ns3: r(x,1) w(z,1)\ns4: r(z,1) r(y,_)\n";
    let level = Level::new(Rule::Serializable, false, false);
    let (history, evidence) = evidence(text, "SER");
    let judge = Judge::new(&history, level);
    assert_eq!(judge.examine(&evidence), Ok(()));
    // The first case as a fact.
    let first = Evidence { cases: None, ..evidence.clone() };
    assert!(judge.examine(&first).is_err());
    // One case only.
    let mut one = evidence.clone();
    cases_of(&mut one).truncate(1);
    assert!(judge.examine(&one).is_err());
    // A step less.
    let mut open = evidence.clone();
    cases_of(&mut open)[1].argument.edges.pop();
    assert!(judge.examine(&open).is_err());
    // Another name.
    let other = Evidence { anomaly: Anomaly { name: "thin-air".to_owned(), common: None }, ..evidence };
    assert!(judge.examine(&other).is_err());
    assert_eq!(found(text, "SER").1.len(), 4);
}
