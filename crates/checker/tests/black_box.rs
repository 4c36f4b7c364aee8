//! The black-box pipeline against the exhaustive oracle, on random tiny histories of every shape, at every
//! level it decides. `TAIPAN_LONG=1` runs twenty times as many.

mod cases;

use cases::{expect_no_fault, seeds, strong_levels};
use evidence::check;
use history::formats::notation;
use history::{History, OpId};
use isolation::{Budget, Level, Options, Reason, Ryow, Undecided, Verdict};
use oracle::oracle;
use oracle::tiny::{Mix, Shape};

/// What is wrong with the verdict on a history, if anything.
fn fault(history: &History, level: Level, options: &Options) -> Option<String> {
    let expected = match oracle(history, level, options) {
        Ok(verdict) => verdict,
        Err(_) => return None,
    };
    let found = check(history, level, options).verdict;
    match (&expected, &found) {
        (Verdict::Accepted(_), Verdict::Accepted(_)) | (Verdict::Violated(_), Verdict::Violated(_)) => None,
        (Verdict::Undecided(_), _) => None,
        _ => Some(format!("the oracle says {}, the pipeline {}", expected.name(), found.name())),
    }
}

fn compare(shape: &Shape, seeds: std::ops::Range<u64>, options: &Options) {
    expect_no_fault(shape, seeds, &strong_levels(), |history, level| fault(history, level, options));
}

#[test]
fn registers() {
    compare(&Shape::registers(), seeds(2_000), &Options::default());
}

#[test]
fn lists() {
    compare(&Shape::lists(), seeds(2_000), &Options::default());
}

#[test]
fn ranges() {
    compare(&Shape::ranges(), seeds(1_500), &Options::default());
}

#[test]
fn predicates() {
    compare(&Shape::predicates(), seeds(1_500), &Options::default());
}

#[test]
fn compare_and_set() {
    compare(&Shape::swaps(), seeds(3_000), &Options::default());
    compare(&Shape::swaps_and_everything(), seeds(800), &Options::default());
    let crowded =
        Shape { transactions: (3, 7), keys_max: 2, unknown: 25, unique_values: 0, ..Shape::swaps() };
    compare(&crowded, seeds(800), &Options::default());
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..Shape::swaps() }, seeds(400), &options);
    }
}

#[test]
fn everything_at_once() {
    compare(&Shape::everything(), seeds(1_000), &Options::default());
}

#[test]
fn more_transactions_on_fewer_keys() {
    let shape = Shape { transactions: (4, 8), keys_max: 2, ..Shape::registers() };
    compare(&shape, seeds(800), &Options::default());
}

#[test]
fn duplicates_and_unknown_outcomes() {
    let shape = Shape { unique_values: 0, unknown: 30, transactions: (3, 7), ..Shape::registers() };
    compare(&shape, seeds(1_200), &Options::default());
}

#[test]
fn own_writes_by_every_policy() {
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..Shape::registers() }, seeds(400), &options);
        compare(&Shape { ryow, ..Shape::lists() }, seeds(400), &options);
        compare(&Shape { ryow, ..Shape::ranges() }, seeds(200), &options);
        compare(&Shape { ryow, ..Shape::predicates() }, seeds(200), &options);
    }
}

/// Lists that are overwritten, deleted, start as scalars, hold an element twice, or were read by nobody who is certain.
#[test]
fn lists_that_do_not_show_their_order() {
    let mix = Mix { read: 5, append: 4, write: 1, delete: 1, ..Mix::default() };
    let shape = Shape { mix, unique_values: 30, unknown: 20, keys_max: 2, ..Shape::lists() };
    compare(&shape, seeds(2_000), &Options::default());
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..shape.clone() }, seeds(400), &options);
    }
}

/// Lists beside scans, queries and predicate writes.
#[test]
fn lists_beside_predicates() {
    let mix =
        Mix { read: 3, append: 4, write: 1, scan: 1, query: 2, update: 1, delete_where: 1, ..Mix::default() };
    let shape = Shape { mix, unique_values: 50, row_values: 5, keys_max: 2, ops_max: 3, ..Shape::lists() };
    compare(&shape, seeds(1_500), &Options::default());
}

/// A predicate write may overwrite a list.
#[test]
fn lists_under_predicate_writes() {
    let history = notation::parse("1: scan(..)=[x:1] | a(x,1) u(* -> 1)\n").expect("it is a history");
    for level in strong_levels() {
        assert_eq!(fault(&history, level, &Options::default()), None, "{level}");
    }
}

/// What a predicate said is asked late, and whether its transaction took effect is asked again then.
#[test]
fn unknown_outcomes_under_predicates() {
    let history = notation::parse(
        "init: x=3\n1: w(y,1) q(value=3)=[x:3]\n0: u(value>=1 -> 2)=[x]? | q(value>=1)=[x:2 y:1] | w(x,2)\n",
    )
    .expect("it is a history");
    for level in strong_levels() {
        assert_eq!(fault(&history, level, &Options::default()), None, "{level}");
    }
}

/// Somebody of unknown outcome changed a row that nobody can have written: whoever saw the change saw somebody else's, or
/// nobody's. It comes up together with a question about another key.
#[test]
fn unknown_outcomes_that_found_what_nobody_wrote() {
    let late = "a: r(y,_) w(z,8) w(k,1)\nb: r(k,1) q(value>=7)=[]\nu: u(value>=5 -> 2)=[x]?\n";
    for (rest, expected) in [
        ("c: r(x,2) w(y,1)\nd: r(y,1) w(x,2)\ne: w(z,1)\n", "violated"),
        ("c: r(x,2) w(y,1)\nd: r(y,1) w(x,2)\ne: w(z,1)\nf: w(x,3)\ng: w(x,4)\n", "violated"),
        ("c: r(x,2) w(y,1)\nd: w(x,2)\ne: w(z,1)\n", "accepted"),
        ("c: r(x,2) w(y,1)\nd: r(y,1) w(x,2)\ne: w(z,1) | w(x,6)\n", "accepted"),
    ] {
        let history = notation::parse(&format!("{late}{rest}")).expect("it is a history");
        for level in strong_levels() {
            assert_eq!(fault(&history, level, &Options::default()), None, "{late}{rest} at {level}");
            assert_eq!(
                check(&history, level, &Options::default()).verdict.name(),
                expected,
                "{rest} at {level}"
            );
        }
    }
}

/// Several predicates in one transaction, some of whose results contradict each other.
#[test]
fn predicates_that_contradict_each_other() {
    let mix = Mix { read: 1, write: 2, query: 4, update: 3, delete_where: 2, ..Mix::default() };
    let shape = Shape { mix, transactions: (1, 3), keys_max: 2, spoiled: 80, ..Shape::predicates() };
    compare(&shape, seeds(2_000), &Options::default());
    // Nothing has the value, and then something is changed that has it: no snapshot is like that.
    for writer in ["u(value=1 -> 3)=1[x]", "dw(value=1)=1[x]"] {
        let text = format!("init: x=1\n0: w(x,2)\n1: q(value=1)=[] {writer}\n");
        let history = notation::parse(&text).expect("it is a history");
        for level in strong_levels() {
            assert_eq!(fault(&history, level, &Options::default()), None, "{text} at {level}");
            let verdict = check(&history, level, &Options::default()).verdict;
            assert!(matches!(verdict, Verdict::Violated(_)), "{text} at {level}: {verdict:?}");
        }
    }
}

/// A read whose result nobody knows says nothing of its key: what a predicate says of it still counts.
#[test]
fn predicates_beside_results_that_are_not_known() {
    let mix = Mix { read: 3, write: 2, query: 3, update: 3, delete_where: 1, ..Mix::default() };
    let shape =
        Shape { mix, transactions: (1, 3), keys_max: 2, hidden: 30, spoiled: 60, ..Shape::predicates() };
    compare(&shape, seeds(2_000), &Options::default());
    // Nothing is there to be changed.
    let history = notation::parse("0: r(x) u(value<3 -> 3)=[x]\n").expect("it is a history");
    for level in strong_levels() {
        let verdict = check(&history, level, &Options::default()).verdict;
        assert!(matches!(verdict, Verdict::Violated(_)), "{level}: {verdict:?}");
    }
}

/// Numbers between two others, said in two parts.
#[test]
fn predicates_of_two_parts() {
    let predicates = ["value>=1 & value<3", "value<3 & value>=1", "value>1 & value>0", "value=2 & value<=2"];
    for (place, predicate) in predicates.into_iter().enumerate() {
        for rows in ["", "x:1", "x:2", "y:2", "x:1 y:2", "x:2 y:2", "x:3"] {
            let text = format!("0: w(x,1) | w(x,2)\n1: w(y,2) w(x,3)\n2: q({predicate})=[{rows}]\n");
            let history = notation::parse(&text).expect("it is a history");
            for level in strong_levels() {
                assert_eq!(fault(&history, level, &Options::default()), None, "{place}: {text} at {level}");
            }
        }
    }
}

/// Numbers in two columns: what one part says of its column says nothing of the other.
#[test]
fn predicates_on_two_columns() {
    for predicate in ["a>=1 & b<=2", "b<=2 & a>=1", "a>=3 & b>=1 & a<=5"] {
        for rows in ["", "x:{a:5 b:1}", "x:{a:5 b:4}", "x:{a:4 b:2}", "x:{a:0 b:1}"] {
            let writes = "0: w(x,{a:5 b:1}) | w(x,{a:5 b:4})\n1: w(x,{a:4 b:2}) w(y,1) | w(x,{a:0 b:1})\n";
            let among = format!("{writes}2: r(y,1) q({predicate})=[{rows}]\n3: q({predicate})=[]\n");
            let alone = format!("init: x={{a:5 b:1}}\n2: q({predicate})=[{rows}]\n3: w(y,1)\n");
            for text in [among, alone] {
                let history = notation::parse(&text).expect("it is a history");
                for level in strong_levels() {
                    assert_eq!(fault(&history, level, &Options::default()), None, "{text} at {level}");
                }
            }
        }
    }
}

/// When the memory is used up there is no verdict, and that is said.
#[test]
fn what_is_used_up_is_said() {
    let history = notation::parse("0: r(x,_) w(y,1)\n1: r(y,_) w(x,1)\n").expect("it is a history");
    let budget = Budget::unlimited();
    budget.clone().run_out_of_memory();
    budget.cancel(); // the first reason stays
    assert_eq!(budget.exhausted(), Some(Undecided::Memory));
    let options = Options { budget, ..Options::default() };
    let verdict = check(&history, Level::SERIALIZABLE, &options).verdict;
    assert!(!matches!(verdict, Verdict::Accepted(_)), "{verdict:?}");
}

/// What contradicts an own write is reported with that write, not with another.
#[test]
fn a_read_is_told_with_the_own_write_that_it_contradicts() {
    let history = notation::parse("0: w(x,1) w(y,1) r(x,2)\n1: w(x,2)\n").expect("it is a history");
    let verdict = check(&history, Level::SERIALIZABLE, &Options::default()).verdict;
    let Verdict::Violated(evidence) = verdict else { panic!("{verdict:?}") };
    let told: Vec<&Reason> = evidence.edges.iter().map(|edge| &edge.reason).collect();
    assert_eq!(told, [&Reason::Missed { read: OpId(2), write: OpId(0) }]);
}

/// Writers that were apart for a while, and overlap again.
#[test]
fn overlaps_that_come_back() {
    let history =
        notation::parse("0: r(y,_) r(x,1)\n3: w(x,1)\n2: r(x,_) w(z,2) w(y,3)\n1: r(y,_) w(y,4) | r(z,_)\n")
            .expect("it is a history");
    for level in strong_levels() {
        assert_eq!(fault(&history, level, &Options::default()), None, "{level}");
    }
}

/// What contradicts itself before it appends has still appended, as far as others can tell.
#[test]
fn an_append_behind_a_contradiction() {
    let text = "2: d(y) r(x,[2]) r(x,_) a(x,2)? | r(x,[2]) a(y,3)\n";
    let history = notation::parse(text).expect("it is a history");
    for level in Level::all() {
        assert_eq!(fault(&history, level, &Options::default()), None, "{level}");
    }
    let verdict = check(&history, Level::SERIALIZABLE, &Options::default()).verdict;
    assert!(matches!(verdict, Verdict::Violated(_)), "{verdict:?}");
}
