//! The offline check against the definition, the exhaustive oracle, and planted faults.

use crate::drawn::{self, Times};
use crate::naive::{self, Asked, Told};
use history::{History, Id, Status, ValueId, ValueRef};
use isolation::{Level, Options, Rule, Undecided, Verdict};
use oracle::oracle;
use oracle::tiny::{Datum, Shape, Sketch, shrink};
use taipan_replay::{Content, Finding};

const LEVELS: [(Level, Asked); 6] = [
    level(Rule::SnapshotIsolation, false, false),
    level(Rule::SnapshotIsolation, true, false),
    level(Rule::SnapshotIsolation, true, true),
    level(Rule::Serializable, false, false),
    level(Rule::Serializable, true, false),
    level(Rule::Serializable, true, true),
];

const fn level(rule: Rule, session: bool, realtime: bool) -> (Level, Asked) {
    let serial = matches!(rule, Rule::Serializable);
    (Level::new(rule, session, realtime), Asked { serial, session, realtime })
}

fn datum(history: &History, id: ValueId) -> Datum {
    if !id.is_known() {
        return Datum::Unknown;
    }
    match history.values().get(id) {
        ValueRef::Null => Datum::Absent,
        ValueRef::Int(value) => Datum::Int(value),
        ValueRef::List(elements) => {
            naive::normal(&Datum::List(elements.iter().map(|&id| datum(history, id)).collect()))
        }
        ValueRef::Row(cells) => {
            let columns = history.values().columns();
            let mut cells: Vec<(String, Datum)> = cells
                .iter()
                .map(|cell| (columns.get(cell.column).to_string(), datum(history, cell.value)))
                .collect();
            cells.sort_by(|a, b| a.0.cmp(&b.0));
            Datum::Row(cells)
        }
        other => panic!("the sketches hold no {other:?}"),
    }
}

/// A finding in the words of the definition.
fn told(history: &History, finding: &Finding) -> Told {
    let expected = match &finding.expected {
        Content::Value(id) => naive::show(&datum(history, *id)),
        Content::List(elements) => {
            naive::show(&Datum::List(elements.iter().map(|&id| datum(history, id)).collect()))
        }
        Content::Count(count) => count.to_string(),
        Content::Time(time) => time.to_string(),
        Content::Clock(clock) => clock.to_string(),
    };
    let first_op = history.transaction(finding.txn).ops().next().map_or(0, |(op, _)| op.index());
    Told {
        axiom: finding.axiom,
        txn: finding.txn.index(),
        op: finding.op.map(|op| op.index() - first_op),
        key: finding.key.map(|key| history.keys().get(key).to_owned()),
        other: finding.other.map(Id::index),
        expected,
    }
}

fn sorted(mut told: Vec<Told>) -> Vec<String> {
    told.sort_by_key(|told| (told.txn, told.axiom, told.op, told.key.clone()));
    told.iter().map(|told| format!("{told:?}")).collect()
}

fn findings(history: &History, level: Level) -> Vec<String> {
    let report = match taipan_replay::check(history, level, &Options::default()) {
        // A transaction of unknown outcome read a list longer than any other.
        Err(taipan_replay::Refusal::GaveUp(Undecided::Unsupported(why))) => return vec![why],
        report => report.expect("every transaction has timestamps"),
    };
    sorted(report.findings.iter().map(|finding| told(history, finding)).collect())
}

fn agrees(history: &History, (level, asked): (Level, Asked)) -> Result<usize, String> {
    if !taipan_replay::applies(history, level) {
        return Ok(0);
    }
    let sketch = Sketch::of(history);
    let expected = sorted(naive::findings(&sketch, asked));
    let found = findings(history, level);
    if has_floating(&sketch) {
        // What exactly is reported then is a matter of placements; whether anything is, is not.
        return match found.is_empty() || !expected.is_empty() {
            true => Ok(found.len()),
            false => Err(format!("found without any: {found:?}")),
        };
    }
    if found == expected {
        return Ok(found.len());
    }
    Err(format!("found:\n  {}\nexpected:\n  {}", found.join("\n  "), expected.join("\n  ")))
}

/// Whether somebody who may have written has no place in the order.
fn has_floating(sketch: &Sketch) -> bool {
    sketch.transactions.iter().any(|txn| {
        let is_backwards = txn.db.is_some_and(|(start, commit)| start > commit);
        let is_floating = txn.status == Status::Unknown || txn.status == Status::Committed && is_backwards;
        is_floating && !naive::is_read_only(txn)
    })
}

fn shapes() -> Vec<Shape> {
    [
        Shape::registers(),
        Shape::lists(),
        Shape::ranges(),
        Shape::predicates(),
        Shape::everything(),
        Shape::swaps(),
    ]
    .map(|shape| Shape { transactions: (1, 12), sessions_max: 4, keys_max: 4, ops_max: 5, ..shape })
    .to_vec()
}

#[test]
fn findings_are_those_of_the_definition() {
    let (mut clean, mut broken) = (0, 0);
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 0..400 {
                for asked in LEVELS {
                    let history = drawn::sketch(&shape, times, seed).build();
                    match agrees(&history, asked) {
                        Ok(0) => clean += 1,
                        Ok(_) => broken += 1,
                        Err(_) => {
                            let small = shrink(&history, |history| agrees(history, asked).is_err());
                            let why = agrees(&small, asked).expect_err("shrinking keeps the difference");
                            panic!("seed {seed}, {asked:?}:\n{}\n{why}", Sketch::of(&small));
                        }
                    }
                }
            }
        }
    }
    assert!(clean > 500 && broken > 5000, "both outcomes occur: {clean} clean, {broken} broken");
}

#[test]
fn true_histories_have_no_findings() {
    for shape in shapes() {
        let shape = Shape { aborted: 10, unknown: 0, ..shape };
        for (times, level) in [(Times::CROWDED, LEVELS[3]), (Times::APART, LEVELS[3])] {
            for seed in 0..300 {
                let sketch = naive::make_true(&drawn::sketch(&shape, times, seed), true);
                assert_eq!(
                    findings(&sketch.build(), level.0),
                    Vec::<String>::new(),
                    "seed {seed}:\n{sketch}"
                );
            }
        }
    }
}

/// Timestamps that explain a history are an explanation: trying everything must find one too.
#[test]
fn what_timestamps_accept_has_an_explanation() {
    let mut accepted = 0;
    for shape in shapes() {
        let shape = Shape { transactions: (1, 5), ops_max: 3, ..shape };
        for seed in 0..300 {
            for (level, asked) in LEVELS {
                let drawn = drawn::sketch(&shape, Times::CROWDED, seed);
                let no_unknown = drawn.transactions.iter().all(|txn| txn.status != Status::Unknown);
                let sketch =
                    if seed % 2 == 0 && no_unknown { naive::make_true(&drawn, asked.serial) } else { drawn };
                let history = sketch.build();
                if !findings(&history, level).is_empty() {
                    continue;
                }
                accepted += 1;
                let verdict =
                    oracle(&history, level, &Options::default()).expect("tiny histories are decided");
                assert!(matches!(verdict, Verdict::Accepted(_)), "seed {seed}, {level:?}:\n{sketch}");
            }
        }
    }
    assert!(accepted > 1000, "{accepted} histories were accepted");
}
