//! Anomalies that every textbook has, each with its verdict at every level.
//!
//! A case lists the weakest levels that reject it. Every level that implies one of those must reject it too,
//! every other level must accept it: so each case is a statement about all levels.

use evidence::check;
use history::formats::notation;
use history::{History, Operation};
use isolation::{Level, Options, Rule, Ryow, Verdict, implications};
use oracle::{evidence, oracle};
use std::collections::HashSet;

struct Case {
    name: &'static str,
    history: &'static str,
    weakest_rejecting: &'static [&'static str],
}

const fn case(name: &'static str, history: &'static str, weakest_rejecting: &'static [&'static str]) -> Case {
    Case { name, history, weakest_rejecting }
}

const CASES: &[Case] = &[
    // ---- single reads ----
    case("nothing at all", "s1: ()", &[]),
    case("a value from nowhere", "s1: r(x,7)", &["read-uncommitted"]),
    case("a list element from nowhere", "s1: a(x,1) | r(x,[1 2])", &["read-uncommitted"]),
    case("aborted read", "s1: w(x,1)!\ns2: r(x,1)", &["read-committed"]),
    case("aborted append", "s1: a(x,1)!\ns2: r(x,[1])", &["read-committed"]),
    case("intermediate read", "s1: w(x,1) w(x,2)\ns2: r(x,1)", &["read-committed"]),
    case("intermediate list", "s1: a(x,1) a(x,2)\ns2: r(x,[1])", &["read-committed"]),
    case("own write unseen", "s1: w(x,1) r(x,2)\ns2: w(x,2)", &["read-committed"]),
    case("own append unseen", "s1: a(x,1) r(x,[])", &["read-committed"]),
    // No order of the two appends ever holds [2] alone and [1 2] later.
    case(
        "own append seen alone and second",
        "s1: a(x,1)\ns2: a(x,2) r(x,[2])\ns3: r(x,[1 2])",
        &["read-uncommitted"],
    ),
    case("an append on an aborted one", "s1: a(x,1)!\ns2: a(x,2)\ns3: r(x,[1 2])", &["read-committed"]),
    case("a value that two wrote", "s1: w(x,1)\ns2: w(x,1)!\ns3: r(x,1)", &[]),
    case("empty list and absent are one", "s1: a(x,1)\ns2: r(x,[])\ns3: r(x,_)", &[]),
    case("append makes a list of a value", "init: x=1\ns1: a(x,2)\ns2: r(x,[1 2])", &[]),
    // ---- cycles of ww and wr ----
    case(
        "dirty write",
        "s1: a(x,1) a(y,1)\ns2: a(x,2) a(y,2)\ns3: r(x,[1 2]) r(y,[2 1])",
        &["read-uncommitted"],
    ),
    case(
        "one list in two orders",
        "s1: a(x,1)\ns2: a(x,2)\ns3: r(x,[1 2])\ns4: r(x,[2 1])",
        &["read-uncommitted"],
    ),
    case("circular information flow", "s1: w(x,1) r(y,1)\ns2: w(y,1) r(x,1)", &["read-committed"]),
    // ---- one rw ----
    case("lost update", "init: x=0\ns1: r(x,0) w(x,1)\ns2: r(x,0) w(x,2)", &["cursor-stability"]),
    case("lost delete", "init: x=1\ns1: r(x,1) d(x)\ns2: r(x,1) d(x)", &["cursor-stability"]),
    case(
        "lost update by predicate writes",
        "init: x=1\ns1: u(value=1 -> 2)=1\ns2: u(value=1 -> 3)=1",
        &["cursor-stability"],
    ),
    case(
        "read skew, old then new",
        "init: x=0 y=0\ns1: w(x,1) w(y,1)\ns2: r(x,0) r(y,1)",
        &["consistent-view", "repeatable-read", "read-atomic"],
    ),
    case(
        "read skew, new then old",
        "init: x=0 y=0\ns1: w(x,1) w(y,1)\ns2: r(y,1) r(x,0)",
        &["repeatable-read", "monotonic-atomic-view"],
    ),
    case(
        "non-repeatable read",
        "s1: w(x,1)\ns2: r(x,_) r(x,1)",
        &["consistent-view", "repeatable-read", "read-atomic"],
    ),
    case(
        "causality violation",
        "s1: w(x,1)\ns2: r(x,1) w(y,1)\ns3: r(y,1) r(x,_)",
        &["monotonic-view", "repeatable-read", "causal"],
    ),
    // ---- two rw and more ----
    case(
        "write skew",
        "init: x=0 y=0\ns1: r(x,0) r(y,0) w(x,1)\ns2: r(x,0) r(y,0) w(y,1)",
        &["repeatable-read", "update-serializable"],
    ),
    case(
        "long fork",
        "s1: w(x,1)\ns2: w(y,1)\ns3: r(x,1) r(y,_)\ns4: r(y,1) r(x,_)",
        &["repeatable-read", "snapshot-isolation", "prefix"],
    ),
    case(
        "the read-only anomaly of Fekete, O'Neil and O'Neil",
        "init: x=0 y=0\ns1: r(y,0) w(y,20)\ns2: r(x,0) r(y,0) w(x,-11)\ns3: r(x,0) r(y,20)",
        &["repeatable-read", "update-serializable"],
    ),
    // ---- predicates ----
    case("phantom write skew", "s1: scan(..)=[] w(x,1)\ns2: scan(..)=[] w(y,1)", &["update-serializable"]),
    case(
        "phantom write skew by queries",
        "s1: q(value>0)=[] w(x,1)\ns2: q(value>0)=[] w(y,1)",
        &["update-serializable"],
    ),
    case("an insert that no query wants", "s1: q(value>5)=[] w(x,1)\ns2: q(value>5)=[] w(y,1)", &[]),
    case(
        "phantom, then the row",
        "s1: w(x,1) w(y,1)\ns2: scan(x..y)=[] r(y,1)",
        &["consistent-view", "read-atomic"],
    ),
    case(
        "the row, then a phantom",
        "s1: w(x,1) w(y,1)\ns2: r(y,1) scan(x..y)=[]",
        &["monotonic-atomic-view"],
    ),
    case(
        "a scan that saw half a transaction",
        "s1: w(x,1) w(y,1)\ns2: scan(..)=[x:1]",
        &["consistent-view", "read-atomic"],
    ),
    case(
        "an iterator that saw a delete and not the write beside it",
        "init: x=1 y=2\ns1: d(x) w(y,3)\ns2: iter(..)=[y:2]",
        &["consistent-view", "repeatable-read", "read-atomic"],
    ),
    case("an iterator that stopped in time", "init: x=1 y=2\ns1: d(x) w(y,3)\ns2: iter(..)=[x:1]", &[]),
    case("a scan out of order", "init: x=1 y=2\ns1: scan(..)=[y:2 x:1]", &["read-uncommitted"]),
    case("a scan with a row that never was", "init: x=1\ns1: scan(..)=[x:1 y:2]", &["read-uncommitted"]),
    case("a count that cannot be", "init: x=1\ns1: u(value=1 -> 2)=2", &["read-uncommitted"]),
    case("a predicate delete seen by a query", "init: x=1 y=2\ns1: dw(value>=1)=2\ns2: q(value>=1)=[]", &[]),
    case(
        "predicate write skew",
        "init: x=1 y=1\ns1: q(value>=1)=[x:1 y:1] w(x,0)\ns2: q(value>=1)=[x:1 y:1] w(y,0)",
        &["repeatable-read", "update-serializable"],
    ),
    case(
        "predicate-many-preceders, by a query",
        "init: x=1\ns1: q(value=3)=[] q(value=3)=[y:3]\ns2: w(y,3)",
        &["consistent-view", "read-atomic"],
    ),
    case(
        "predicate-many-preceders, by predicate writes",
        "init: x=10 y=20\ns1: u(value>=0 -> 30)=[x y]\ns2: dw(value=20)=[y]",
        &["cursor-stability"],
    ),
    case("a row deleted twice", "init: x=1\ns1: dw(value=1)=[x]\ns2: dw(value=1)=[x]", &["cursor-stability"]),
    case(
        "lost update between a query and a write",
        "init: x=1\ns1: q(value=1)=[x:1] w(x,2)\ns2: q(value=1)=[x:1] w(x,3)",
        &["cursor-stability"],
    ),
    case(
        "a query that saw half a transaction",
        "init: x=0 y=0\ns1: w(x,1) w(y,1)\ns2: q(value=0)=[x:0]",
        &["consistent-view", "repeatable-read", "read-atomic"],
    ),
    case(
        "long fork by queries",
        "init: x=0 y=0\ns1: w(x,1)\ns2: w(y,1)\ns3: q(value=1)=[x:1]\ns4: q(value=1)=[y:1]",
        &["snapshot-isolation", "prefix"],
    ),
    case(
        "causality violation by a query",
        "init: x=0 y=0\ns1: w(x,1)\ns2: q(value=1)=[x:1] w(y,1)\ns3: r(y,1) q(value=1)=[y:1]",
        &["monotonic-view", "causal"],
    ),
    case(
        "an aborted predicate write seen by a query",
        "init: x=0\ns1: u(value=0 -> 5)=[x]!\ns2: q(value=5)=[x:5]",
        &["read-committed"],
    ),
    case(
        "a predicate delete seen in part",
        "init: x=1 y=1\ns1: dw(value=1)=[x y]\ns2: q(value=1)=[x:1]",
        &["consistent-view", "repeatable-read", "read-atomic"],
    ),
    case(
        "a predicate write that missed a row",
        "init: x=1 y=1\ns1: u(value=1 -> 2)=[x]",
        &["read-uncommitted"],
    ),
    case(
        "step write skew",
        "init: x=0 y=0 z=0\ns1: r(x,0) w(y,1)\ns2: r(y,0) w(z,1)\ns3: r(z,0) w(x,1)",
        &["repeatable-read", "update-serializable"],
    ),
    // Vbox, Figure 1: the predicate write changed both rows or none, and the query saw one of them changed.
    case(
        "a predicate write between two versions",
        "s1: w(x,1) w(y,1)\ns2: w(x,2) w(y,2)\ns3: u(value=2 -> 3)\ns4: q(value=2)=[x:2]",
        &["consistent-view", "read-atomic"],
    ),
    // Boomslang (Zhang, Mu and Tan 2026) §5.1: was it never there, or is it gone again?
    case("phantom ambiguity", "s1: w(y,1)\ns2: d(y)\ns3: scan(x..z)=[]\ns4: r(y,1)", &[]),
    case(
        "phantom ambiguity, resolved",
        "s1: w(y,1)\ns2: r(y,1) w(z,1)\ns3: r(z,1) scan(x..z)=[]",
        &["monotonic-view", "causal"],
    ),
    // Boomslang (Zhang, Mu and Tan 2026) §5.1: whose 9 is it?
    case("read lineage uncertainty", "s1: w(x,9)\ns2: w(x,9)\ns3: r(x,9)", &[]),
    case(
        "read lineage, resolved",
        "s1: w(x,9) w(y,1)\ns2: w(x,9) w(y,2)\ns3: r(x,9) r(y,_)",
        &["repeatable-read", "monotonic-atomic-view"],
    ),
    // ---- session order ----
    case("stale read in a session", "s1: w(x,1) | r(x,_)", &["parallel-snapshot-isolation", "read-atomic"]),
    case("a session's writes seen in the wrong order", "s1: w(x,1) | w(y,1)\ns2: r(y,1) r(x,_)", &["causal"]),
    case(
        "a session that saw its own future",
        "s1: r(x,1) | w(y,1)\ns2: r(y,1) w(x,1)",
        &["strong-session-read-committed", "axiomatic-read-committed"],
    ),
    case(
        "reads of a session go back",
        "s1: w(x,1)\ns2: r(x,1) | r(x,_)",
        &["parallel-snapshot-isolation", "causal"],
    ),
    // ---- real time ----
    case("stale read in real time", "s1: w(x,1) @0..10\ns2: r(x,_) @20..30", &["forward-consistent-view"]),
    case(
        "a read from the future",
        "s1: r(x,1) @0..10\ns2: w(x,1) @20..30",
        &["forward-consistent-view", "strong-read-committed"],
    ),
    case("touching is not before", "s1: w(x,1) @0..10\ns2: r(x,_) @10..30", &[]),
    // ---- unknown outcomes ----
    case(
        "an unknown write that had effect late",
        "s1: w(x,1)? @0..10\ns2: r(x,_) @20..30 | r(x,1) @40..50",
        &[],
    ),
    case("nothing follows an unknown transaction", "s1: w(x,1)? | r(x,_)", &[]),
    case(
        "it follows its session",
        "s1: r(x,1) | w(x,1)?",
        &["strong-session-read-committed", "axiomatic-read-committed"],
    ),
    case(
        "it follows what ended before it began",
        "s1: r(x,1) @0..10\ns2: w(x,1)? @20..30",
        &["forward-consistent-view", "strong-read-committed"],
    ),
    case("its results count if it took effect", "s1: r(y,7) w(x,1)?\ns2: r(x,1)", &["read-committed"]),
    case("its results do not count if it did not", "s1: r(y,7) w(x,1)?\ns2: r(x,_)", &[]),
    case("an aborted transaction's reads do not count", "s1: r(y,7)!\ns2: r(x,_)", &[]),
];

#[test]
fn every_case_at_every_level() {
    let mut wrong = Vec::new();
    for case in CASES {
        let history = notation::parse(case.history).unwrap_or_else(|fault| panic!("{}: {fault}", case.name));
        let expected = rejecting(case, &history);
        for level in Level::all() {
            let rejects = !accepts(&history, level, &Options::default());
            if rejects != expected.contains(&level) {
                let verb = if rejects { "rejects" } else { "accepts" };
                wrong.push(format!("{level} {verb} {:?}", case.name));
            }
            let found = check(&history, level, &Options::default()).verdict;
            if matches!(found, Verdict::Violated(_)) != rejects || matches!(found, Verdict::Undecided(_)) {
                wrong.push(format!("the pipeline finds {:?} {} at {level}", case.name, found.name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn accepts(history: &History, level: Level, options: &Options) -> bool {
    match oracle(history, level, options) {
        Ok(Verdict::Accepted(_)) => true,
        Ok(Verdict::Violated(_)) => false,
        other => panic!("undecided: {other:?}"),
    }
}

/// The levels that a case lists and all that imply them.
fn rejecting(case: &Case, history: &History) -> HashSet<Level> {
    let parse = |name: &&str| Level::parse(name).unwrap_or_else(|unknown| panic!("{unknown}"));
    let mut rejecting: HashSet<Level> = case.weakest_rejecting.iter().map(parse).collect();
    let predicates = history.transactions().flat_map(|txn| txn.ops()).any(|(_, operation)| {
        !matches!(
            operation,
            Operation::Read { .. }
                | Operation::Write { .. }
                | Operation::Delete { .. }
                | Operation::Append { .. }
        )
    });
    loop {
        let before = rejecting.len();
        for implication in implications() {
            if rejecting.contains(&implication.weaker) && !(implication.without_predicates && predicates) {
                rejecting.insert(implication.stronger);
            }
        }
        if rejecting.len() == before {
            return rejecting;
        }
    }
}

/// (history, must, may, never) at serializability.
const OWN_WRITES: &[(&str, bool, bool, bool)] = &[
    ("s1: w(x,1) r(x,1)", true, true, false),
    ("s1: w(x,1) r(x,_)", false, true, true),
    ("s1: w(x,1) r(x,_) r(x,1)", false, true, false),
    ("s1: a(x,1) r(x,[1])", true, true, false),
    ("init: x=5\ns1: a(x,1) r(x,5)", false, true, true),
    ("s1: w(x,1) w(y,1) scan(..)=[x:1 y:1]", true, true, false),
    ("s1: w(x,1) w(y,1) scan(..)=[x:1]", false, true, false),
    ("s1: w(x,1) w(y,1) scan(..)=[]", false, true, true),
    ("s1: w(x,1) q(value=1)=[]", false, true, true),
    // A policy on reads: predicate writes always build on the transaction's own writes.
    ("s1: w(x,1) u(value=1 -> 2)=1 | r(x,2)", true, true, true),
    ("s1: w(x,1) u(value=1 -> 2)=0 | r(x,1)", false, false, false),
];

#[test]
fn reads_of_own_writes_follow_the_policy() {
    for &(text, must, may, never) in OWN_WRITES {
        let history = notation::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        for level in Level::all().filter(|level| level.rule != Rule::ReadUncommitted) {
            for (ryow, expected) in [(Ryow::Must, must), (Ryow::May, may), (Ryow::Never, never)] {
                let accepted = accepts(&history, level, &Options { ryow, ..Options::default() });
                assert_eq!(accepted, expected, "{text} with {ryow:?} at {level}");
            }
        }
    }
}

#[test]
fn clocks_may_be_off_by_the_skew() {
    let history = notation::parse("s1: w(x,1) @0..10\ns2: r(x,_) @20..30").expect("well formed");
    for (clock_skew, expected) in [(0, false), (9, false), (10, true), (i64::MAX, true)] {
        let options = Options { clock_skew, ..Options::default() };
        assert_eq!(accepts(&history, Level::STRICT_SERIALIZABLE, &options), expected, "skew {clock_skew}");
    }
}

#[test]
fn violations_are_named() {
    for (text, name) in [
        ("s1: r(x,7)", "thin-air"),
        ("s1: w(x,1)!\ns2: r(x,1)", "G1a"),
        ("s1: w(x,1) w(x,2)\ns2: r(x,1)", "G1b"),
        ("s1: a(x,1) a(x,2)\ns2: r(x,[1])", "G1b"),
        ("s1: w(x,1) r(x,2)\ns2: w(x,2)", "internal"),
        ("s1: a(x,1) a(y,1)\ns2: a(x,2) a(y,2)\ns3: r(x,[1 2]) r(y,[2 1])", "G0"),
        ("s1: w(x,1) r(y,1)\ns2: w(y,1) r(x,1)", "G1c"),
        ("init: x=0\ns1: r(x,0) w(x,1)\ns2: r(x,0) w(x,2)", "G-single"),
        ("s1: w(x,1)\ns2: w(y,1)\ns3: r(x,1) r(y,_)\ns4: r(y,1) r(x,_)", "G-nonadjacent"),
        ("init: x=0 y=0\ns1: r(x,0) r(y,0) w(x,1)\ns2: r(x,0) r(y,0) w(y,1)", "G2-item"),
        ("s1: scan(..)=[] w(x,1)\ns2: scan(..)=[] w(y,1)", "G2"),
        ("s1: w(x,1) | r(x,_)", "G-single-process"),
        ("s1: r(x,1) @0..10\ns2: w(x,1) @20..30", "G1c-realtime"),
    ] {
        let history = notation::parse(text).expect("well formed");
        let level = Level::STRICT_SERIALIZABLE;
        assert!(!accepts(&history, level, &Options::default()), "{text}");
        assert_eq!(evidence(&history, level, &Options::default()).anomaly.name, name, "{text}");
    }
}
