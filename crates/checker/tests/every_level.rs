//! Every level against the exhaustive oracle, on random tiny histories of every shape that the pipeline takes.
//! `TAIPAN_LONG=1` runs twenty times as many; `TAIPAN_SEED=N` starts at another seed.

mod cases;

use cases::{expect_no_fault, least, seeds};
use evidence::{Fragment, check};
use history::formats::notation;
use history::{History, TxnId};
use isolation::{Edge, EdgeKind, Evidence, Level, Options, Rule, Ryow, Verdict};
use oracle::oracle;
use oracle::tiny::{Mix, Random, Shape, shrink};

/// What is wrong with the verdict on a history, if anything.
fn fault(history: &History, level: Level, options: &Options) -> Option<String> {
    let expected = match oracle(history, level, options) {
        Ok(Verdict::Undecided(_)) | Err(_) => return None,
        Ok(verdict) => verdict,
    };
    let found = check(history, level, options).verdict;
    if let Verdict::Violated(evidence) = &found
        && !is_argument(evidence)
    {
        return Some(format!("its argument is none: {evidence:?}"));
    }
    let differs = expected.name() != found.name();
    differs.then(|| format!("the oracle says {}, the pipeline {}", expected.name(), found.name()))
}

/// Whether the edges lead in a circle, where there are several, and stay within the core.
fn is_argument(evidence: &Evidence) -> bool {
    let edges = &evidence.edges;
    let next = |place: usize| edges[(place + 1) % edges.len()].from;
    let is_cycle = (0..edges.len()).all(|place| Some(edges[place].to) == next(place));
    let within = |edge: &Edge| evidence.transactions.contains(&edge.to);
    let speaks_for_itself = edges.len() < 2 || evidence.anomaly.name == "incompatible-order";
    !evidence.transactions.is_empty() && edges.iter().all(within) && (is_cycle || speaks_for_itself)
}

fn compare(shape: &Shape, seeds: std::ops::Range<u64>, options: &Options) {
    expect_no_fault(shape, seeds, &Level::all().collect::<Vec<_>>(), |history, level| {
        fault(history, level, options)
    });
}

#[test]
fn registers() {
    compare(&Shape::registers(), seeds(1_000), &Options::default());
}

#[test]
fn unique_values() {
    let shape = Shape { unique_values: 100, unknown: 4, ..Shape::registers() };
    compare(&shape, seeds(1_000), &Options::default());
}

#[test]
fn duplicates_and_unknown_outcomes() {
    let shape = Shape { unique_values: 0, unknown: 30, transactions: (3, 6), ..Shape::registers() };
    compare(&shape, seeds(700), &Options::default());
}

#[test]
fn deletes_and_absent_keys() {
    let mix = Mix { read: 5, write: 3, delete: 3, ..Mix::default() };
    compare(&Shape { mix, ..Shape::registers() }, seeds(700), &Options::default());
}

#[test]
fn lists() {
    compare(&Shape::lists(), seeds(1_000), &Options::default());
}

/// Lists that show elements of others behind or between own ones, too few, or in another order, beside outcomes that
/// nobody knows.
#[test]
fn mixed_up_lists() {
    let scans = Mix { read: 2, append: 4, scan: 2, iterate: 1, ..Mix::default() };
    let shape = Shape {
        unique_values: 100,
        unknown: 30,
        mixed_up: 80,
        keys_max: 2,
        ops_max: 5,
        transactions: (2, 5),
        ..Shape::lists()
    };
    for ryow in [Ryow::Must, Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..shape.clone() }, seeds(150), &options);
        compare(&Shape { ryow, mix: scans, ..shape.clone() }, seeds(100), &options);
    }
}

/// Whatever the level, the core of mixed-up lists is violated without the others, too. (Whoever contradicts itself, whatever
/// others did, is a core of one.)
#[test]
fn cores_of_mixed_up_lists() {
    let shape = Shape {
        unknown: 30,
        initial: 0,
        mixed_up: 80,
        unique_values: 100,
        keys_max: 2,
        ops_max: 5,
        ..Shape::lists()
    };
    for ryow in [Ryow::Must, Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        let levels: Vec<Level> = Level::all().filter(|level| level.rule != Rule::ReadUncommitted).collect();
        let shape = Shape { ryow, ..shape.clone() };
        expect_no_fault(&shape, seeds(200), &levels, |history, level| {
            let Verdict::Violated(evidence) = check(history, level, &options).verdict else { return None };
            let core = Fragment::new(history, &evidence.transactions);
            let stands = evidence.transactions.len() == 1 || core.violates(level, &options).is_some();
            (!stands).then(|| format!("{ryow:?}: {:?} has an explanation", evidence.transactions))
        });
    }
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

/// Two lists show two orders of the same writers: whoever reads the finding sees both.
#[test]
fn orders_that_lists_show_are_argued_with() {
    let text = "1: a(x,1) a(y,1)\n2: a(x,2) a(y,2)\n3: r(x,[1 2])\n4: r(y,[2 1])\n";
    for level in ["RC", "PL-2+", "causal"] {
        let (history, evidence) = evidence(text, level);
        let edges = evidence.edges.iter().map(|edge| (edge.kind, edge.from, names(&history, &[edge.to])));
        let edges: Vec<_> = edges.map(|(kind, from, to)| (kind, from.is_some(), to)).collect();
        let ww = |to: &str| (EdgeKind::Ww, true, vec![to.to_owned()]);
        assert_eq!(edges, [ww("2:0"), ww("1:0")], "{level}: {evidence:?}");
    }
}

/// Somebody of unknown outcome took effect, for its append was seen, and read a list that another one contradicts. That is
/// told, and not that the append came from nowhere.
#[test]
fn lists_that_somebody_of_unknown_outcome_read_are_argued_with() {
    let text = "1: a(x,1)\n2: a(x,2)\n3: r(x,[1 2])\n4: r(x,[2]) a(y,1)?\n5: r(y,[1])\n";
    for level in ["SER", "SI", "RC"] {
        let (history, evidence) = evidence(text, level);
        assert_eq!(evidence.anomaly.name, "incompatible-order", "{level}: {evidence:?}");
        assert!(names(&history, &evidence.transactions).contains(&"5:0".to_owned()), "{level}: {evidence:?}");
    }
}

/// Read uncommitted forbids little: what a scan showed from nowhere is reported with the scan and by its name.
#[test]
fn what_a_scan_showed_from_nowhere_is_told() {
    let (history, evidence) = evidence("1: w(x,1)\n2: scan(..)=[x:1 y:7]\n3: r(x,1)\n", "RU");
    assert_eq!(names(&history, &evidence.transactions), ["2:0"]);
    assert_eq!(evidence.anomaly.name, "thin-air", "{evidence:?}");
    assert_eq!(evidence.edges.len(), 1, "{evidence:?}");
}

/// A write by predicate that says how many rows it changed, and not which: that alone is the core.
#[test]
fn a_wrong_count_needs_nobody_else() {
    let text = "init: x=1 y=1\n1: u(value=1 -> 2)=1\n2: w(z,5)\n3: r(z,5) w(z,6)\n4: r(z,6)\n";
    let (history, evidence) = evidence(text, "SER");
    assert_eq!(names(&history, &evidence.transactions), ["1:0"]);
}

/// Lists that are overwritten, deleted, start as scalars, hold an element twice, or were read by nobody who is certain.
#[test]
fn lists_that_do_not_show_their_order() {
    let mix = Mix { read: 5, append: 4, write: 1, delete: 1, ..Mix::default() };
    let shape =
        Shape { mix, unique_values: 30, unknown: 20, keys_max: 2, transactions: (2, 5), ..Shape::lists() };
    compare(&shape, seeds(600), &Options::default());
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..shape.clone() }, seeds(150), &options);
    }
}

#[test]
fn lists_beside_predicates() {
    let mix =
        Mix { read: 3, append: 4, write: 1, scan: 1, query: 2, update: 1, delete_where: 1, ..Mix::default() };
    let shape = Shape {
        mix,
        unique_values: 50,
        row_values: 5,
        keys_max: 2,
        ops_max: 3,
        transactions: (2, 5),
        ..Shape::lists()
    };
    compare(&shape, seeds(200), &Options::default());
}

#[test]
fn long_transactions_on_few_keys() {
    let shape = Shape { ops_max: 6, keys_max: 2, transactions: (2, 5), ..Shape::registers() };
    compare(&shape, seeds(600), &Options::default());
    let shape = Shape { ops_max: 6, keys_max: 2, transactions: (2, 5), ..Shape::lists() };
    compare(&shape, seeds(400), &Options::default());
}

/// A lock or two that clients find free and take, find taken and let go, or only look at; what they return is drawn, not played.
/// And whether more certainly replaced a value than there can have been versions of it.
fn locks(seed: u64) -> (History, bool) {
    let mut random = Random::new(seed);
    // By lock and state: how often it may have been there, and how often it was replaced.
    let mut there = [[1, 0]; 2];
    let mut replaced = [[0; 2]; 2];
    let mut text = "init: k0=0 k1=0\n".to_owned();
    for place in 0..4 + random.below(2) {
        let (key, state) = (random.below(10) / 9, random.below(10) / 7);
        let outcome = if place > 0 && random.below(10) == 0 { "?" } else { "" };
        let transaction = match random.below(8) {
            0 => format!("r(k{key},{state})"),
            1 => {
                there[key][state] += 1;
                format!("w(k{key},{state})")
            }
            _ => {
                there[key][1 - state] += 1;
                replaced[key][state] += usize::from(outcome.is_empty());
                format!("r(k{key},{state}) w(k{key},{})", 1 - state)
            }
        };
        // One session has two of them.
        text += &match place {
            0 => format!("s0: {transaction}"),
            1 => format!(" | {transaction}{outcome}\n"),
            _ => format!("s{place}: {transaction}{outcome}\n"),
        };
    }
    let is_crowd = (0..4).any(|it| replaced[it / 2][it % 2] > there[it / 2][it % 2]);
    (notation::parse(&text).expect("the notation is right"), is_crowd)
}

/// Whoever looked at a range and saw nothing did not read what it then replaced, below repeatable read.
#[test]
fn what_a_range_did_not_show_is_not_counted() {
    let text = "0: r(x,_) d(x)\n1: scan(..)=[] a(x,2) | r(x,_) w(x,1)\n2: r(x,_) d(x)\n";
    let history = notation::parse(text).expect("the notation is right");
    for level in Level::all() {
        assert_eq!(fault(&history, level, &Options::default()), None, "{level}");
    }
}

/// More take a lock than it was free, or just as many.
#[test]
fn locks_and_other_values_that_come_back() {
    let options = Options::default();
    let (mut crowds, mut others) = (0, 0);
    for seed in seeds(600) {
        let (history, is_crowd) = locks(seed);
        let verdict = check(&history, Level::SERIALIZABLE, &options).verdict;
        assert!(!is_crowd || verdict.name() == "violated", "seed {seed}: {}", notation::to_string(&history));
        *(if is_crowd { &mut crowds } else { &mut others }) += 1;
        for level in Level::all() {
            if let Some(why) = fault(&history, level, &options) {
                panic!("seed {seed}, {level}: {why}\n{}", notation::to_string(&history));
            }
        }
    }
    assert!(crowds * 10 > others, "{crowds} crowds, {others} others");
}

/// Just as often as it was taken a lock was free, and whoever let it go did not look: none of these writes may be
/// overwritten before somebody took it.
#[test]
fn locks_that_are_let_go_blindly() {
    let let_go = (0..99).map(|session| format!("g{session}: w(lock,0)\n"));
    let took = (0..100).map(|session| format!("t{session}: r(lock,0) w(lock,1)\n"));
    let text: String = ["init: lock=0\n".to_owned()].into_iter().chain(let_go).chain(took).collect();
    let history = notation::parse(&text).expect("the notation is right");
    for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION] {
        assert_eq!(check(&history, level, &Options::default()).verdict.name(), "accepted", "{level}");
    }
}

#[test]
fn clocks_with_a_skew() {
    let options = Options { clock_skew: 2, ..Options::default() };
    compare(&Shape { clocks: 100, ..Shape::registers() }, seeds(400), &options);
}

#[test]
fn own_writes_by_every_policy() {
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..Shape::registers() }, seeds(200), &options);
        compare(&Shape { ryow, ..Shape::lists() }, seeds(200), &options);
    }
}

#[test]
fn ranges_and_predicates() {
    compare(&Shape::ranges(), seeds(150), &Options::default());
    compare(&Shape::predicates(), seeds(100), &Options::default());
}

#[test]
fn compare_and_set() {
    compare(&Shape::swaps(), seeds(600), &Options::default());
    compare(&Shape::swaps_and_everything(), seeds(100), &Options::default());
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..Shape::swaps() }, seeds(150), &options);
    }
}

/// Nothing but predicate writes, few keys, many that did not take effect.
#[test]
fn predicate_writes_that_read_uncommitted_saw() {
    let mix = Mix { read: 4, write: 2, query: 1, update: 4, delete_where: 2, ..Mix::default() };
    let shape =
        Shape { mix, unknown: 15, keys_max: 3, transactions: (2, 5), ops_max: 3, ..Shape::predicates() };
    let level = Level::parse("RU").expect("a name of the table");
    let options = Options::default();
    let mut violated = 0;
    for seed in seeds(600) {
        let history = shape.history(seed);
        let fails = |history: &History| fault(history, level, &options);
        if fails(&history).is_some() {
            let small = shrink(&history, |smaller| fails(smaller).is_some());
            panic!("seed {seed}: {:?}\n{}", fails(&small), notation::to_string(&small));
        }
        violated += usize::from(matches!(check(&history, level, &options).verdict, Verdict::Violated(_)));
    }
    assert!(violated > least(30), "{violated} were violated");
}

#[test]
fn a_mix_of_one_level_is_that_level() {
    let options = Options::default();
    let mixed = Options { mixed: true, ..options.clone() };
    for seed in seeds(400) {
        for shape in [Shape::registers(), Shape::lists(), Shape::ranges(), Shape::predicates()] {
            let history = shape.history(seed);
            for name in ["RU", "RC", "RR", "SER"] {
                let level = Level::parse(name).expect("a name of the table");
                let plain = check(&history, level, &options).verdict;
                let found = check(&history, level, &mixed).verdict;
                let is_beyond = matches!(found, Verdict::Undecided(_));
                let text = notation::to_string(&history);
                assert!(is_beyond || plain.name() == found.name(), "seed {seed} at {level}:\n{text}");
            }
        }
    }
}

#[test]
fn ranges_and_predicates_by_every_policy() {
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..Shape::ranges() }, seeds(100), &options);
        compare(&Shape { ryow, ..Shape::predicates() }, seeds(60), &options);
    }
}
