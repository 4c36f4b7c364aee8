//! Transactions of unknown outcome: exactly what every placement decides.

use crate::drawn::{self, Times};
use crate::naive::{self, Asked};
use crate::placements;
use history::{History, Status, Timestamp};
use isolation::{Level, Options, Rule, Undecided, Verdict};
use oracle::tiny::{Random, Shape, Sketch, shrink};
use taipan_replay::Axiom;

pub(crate) const LEVELS: [(Level, Asked); 6] = [
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

pub(crate) fn shapes() -> Vec<Shape> {
    [
        Shape::registers(),
        Shape::lists(),
        Shape::ranges(),
        Shape::predicates(),
        Shape::everything(),
        Shape::swaps(),
    ]
    .map(|shape| Shape {
        transactions: (2, 6),
        sessions_max: 3,
        keys_max: 3,
        ops_max: 3,
        unknown: 30,
        ..shape
    })
    .to_vec()
}

/// A small history with unknown outcomes whose results are often those of some placement.
pub(crate) fn drawn(shape: &Shape, times: Times, seed: u64, serial: bool) -> Sketch {
    let mut random = Random::new(seed ^ 0x0c0de);
    let mut sketch = drawn::sketch(shape, times, seed);
    // Some took effect: the results are those of a history in which they did, at a time of their own.
    let mut hidden = Vec::new();
    for (place, txn) in sketch.transactions.iter_mut().enumerate() {
        if txn.status == Status::Unknown && hidden.len() < 2 {
            let at = 1 + random.below(6 * times.spread) as i64;
            let (start, commit) = txn.db.unwrap_or((Timestamp::from(at), Timestamp::from(at + 1)));
            hidden.push((place, random.below(4)));
            txn.status = Status::Committed;
            txn.db = Some((start, commit));
        } else if txn.status == Status::Unknown {
            txn.status = Status::Aborted;
        }
    }
    if random.chance(80) {
        sketch = naive::make_true(&sketch, serial);
    }
    for (place, keeps) in hidden {
        let txn = &mut sketch.transactions[place];
        txn.status = Status::Unknown;
        let never = Timestamp { physical: i64::MAX, logical: u32::MAX };
        txn.db = match keeps {
            0 => txn.db,
            1 => txn.db.map(|(start, _)| (start, never)),
            _ => None,
        };
    }
    sketch
}

/// `None` where a transaction of unknown outcome read a list longer than any other, which is not always decided.
pub(crate) fn is_accepted(history: &History, level: Level) -> Option<bool> {
    let (outcome, findings) = taipan_replay::judge(history, level, &Options::default());
    match outcome.verdict {
        Verdict::Accepted(_) => Some(findings.is_empty()),
        Verdict::Violated(_) => {
            assert!(!findings.is_empty(), "a violation is told");
            Some(false)
        }
        Verdict::Undecided(Undecided::Unsupported(_)) => None,
        Verdict::Undecided(why) => panic!("{why:?}"),
    }
}

fn differs(history: &History, level: Level, asked: Asked) -> bool {
    taipan_replay::applies(history, level)
        && placements::explained(&Sketch::of(history), asked)
            .is_some_and(|explained| is_accepted(history, level).is_some_and(|it| it != explained))
}

#[test]
fn exactly_what_no_placement_explains_is_violated() {
    let seeds = if std::env::var_os("TAIPAN_QUICK").is_some() { 100 } else { 400 };
    let (mut accepted, mut violated, mut needed, mut open) = (0, 0, 0, 0);
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 0..seeds {
                for (level, asked) in LEVELS {
                    let history = drawn(&shape, times, seed, asked.serial).build();
                    if !taipan_replay::applies(&history, level) {
                        continue;
                    }
                    let sketch = Sketch::of(&history);
                    let Some(explained) = placements::explained(&sketch, asked) else { continue };
                    let Some(is_accepted) = is_accepted(&history, level) else {
                        open += 1;
                        continue;
                    };
                    if explained != is_accepted {
                        let small = shrink(&history, |history| differs(history, level, asked));
                        let sketch = Sketch::of(&small);
                        let explained = placements::explained(&sketch, asked);
                        panic!(
                            "seed {seed}, {level}: some placement explains it: {explained:?}\n{sketch}\n{sketch:?}"
                        );
                    }
                    match explained {
                        true => accepted += 1,
                        false => violated += 1,
                    }
                    needed += usize::from(explained && !naive::findings(&sketch, asked).is_empty());
                }
            }
        }
    }
    assert!(accepted > 500 && violated > 500, "both occur: {accepted} accepted, {violated} violated");
    assert!(open * 50 < accepted, "{open} were not decided");
    assert!(needed > 100, "in {needed} somebody of unknown outcome has to have taken effect");
}

/// Which timestamp is wrong nobody knows, so whoever saw the transaction, or did not, is not to blame.
#[test]
fn a_commit_before_the_start_is_told_of_the_transaction_that_has_it_alone() {
    for (text, name) in [
        ("a: w(x,1) @@10..5\nb: r(x,1) @@15..16", "SI"),
        ("a: w(x,1) @@10..5\nb: r(x,1) @@15..16", "SER"),
        ("a: w(x,1) @@10..5\nb: r(x,_) @@7..7", "SI"),
        ("a: w(x,1) @@10..5\nb: r(x,1) @@7..7", "SI"),
        ("a: w(x,1) @@10..5\nb: r(x,_) @@15..16", "SER"),
        ("a: r(y,3) w(x,1) @@10..5 | r(x,1) @@20..21\nb: r(x,_) @@15..16\nc: w(x,2) @@22..23", "sessions"),
        ("a: r(y,3) @@10..5\nb: r(x,_) @@15..16", "SI"),
    ] {
        let history = history::formats::notation::parse(text).expect("the notation is right");
        let session = Level::new(Rule::SnapshotIsolation, true, false);
        let level = Level::parse(name).unwrap_or(session);
        let report = taipan_replay::check(&history, level, &Options::default()).expect("it has timestamps");
        let told: Vec<_> = report.findings.iter().map(|it| (it.axiom, it.txn)).collect();
        assert_eq!(told, [(Axiom::TimestampOrder, history::TxnId(0))], "{text}");
    }
}

#[test]
fn what_it_took_to_go_wrong_before() {
    for (text, level, expected) in [
        ("u: w(x,1) w(y,1)?\nc: w(y,2) @@4..5\nr: r(x,1) r(y,2) @@6..6", "SI", "accepted"),
        ("u: w(x,1)? @@1..\nr: r(x,1) @@5..5", "SI", "accepted"),
        ("u: w(x,1)? @@6..\nr: r(x,1) @@5..5", "SI", "violated"),
        ("u: w(x,1)? @@1..4\nr: r(x,_) @@5..5\ns: r(x,1) @@6..6", "SI", "violated"),
        ("u: w(x,1)? @@1..5\nr: r(x,_) @@4..4\ns: r(x,1) @@6..6", "SI", "accepted"),
        ("u: r(z,7) w(x,1)?\nr: r(x,1) @@5..5", "SI", "violated"),
        ("u: w(x,1)?\nc: w(x,2) @@4..5\nr: r(x,1) @@6..6\ns: r(x,2) @@7..7", "SER", "violated"),
    ] {
        let history = history::formats::notation::parse(text).expect("the notation is right");
        let level = Level::parse(level).expect("a level");
        let outcome = taipan_replay::outcome(&history, level, &Options::default());
        assert_eq!(outcome.verdict.name(), expected, "{text}");
    }
}
