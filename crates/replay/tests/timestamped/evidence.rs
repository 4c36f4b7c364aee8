//! Findings told as evidence: one history a line of argument.

use history::formats::notation;
use isolation::{EdgeKind, Level, Options, Rule, Verdict};
use taipan_replay::Axiom;

fn level(rule: Rule) -> Level {
    Level::new(rule, true, true)
}

/// Checks a history written by hand; `expected` is the anomaly and the edges, `accepted` if there is none.
fn check(rule: Rule, text: &str, expected: &str) {
    let history = notation::parse(text).expect("the notation is right");
    let outcome = taipan_replay::outcome(&history, level(rule), &Options::default());
    let name = |txn| history.transaction(txn).name().to_string();
    let found = match outcome.verdict {
        Verdict::Accepted(witness) => format!("accepted {}", witness.order.len()),
        Verdict::Violated(evidence) => {
            let edges = evidence.edges.iter().map(|edge| {
                let from = edge.from.map_or("init".to_owned(), name);
                format!(" {from} -{}-> {}", edge.kind.name(), name(edge.to))
            });
            format!("{}{}", evidence.anomaly.name, edges.collect::<String>())
        }
        Verdict::Undecided(why) => format!("undecided {why:?}"),
    };
    assert_eq!(found, expected, "\n{text}");
}

fn si(text: &str, expected: &str) {
    check(Rule::SnapshotIsolation, text, expected);
}

fn ser(text: &str, expected: &str) {
    check(Rule::Serializable, text, expected);
}

#[test]
fn each_way_to_be_wrong_has_its_argument() {
    si("1: w(x,1) @@1..2\n2: r(x,1) @@2..2\n", "accepted 4");
    si("1: w(x,1) @@1..2\n2: r(x,_) @@3..3\n", "G-single 1:0 -ts-> 2:0 2:0 -rw-> 1:0");
    si("1: w(x,1) @@1..5\n2: r(x,1) @@3..6\n", "future-read 1:0 -wr-> 2:0 2:0 -ts-> 1:0");
    si("1: w(x,1) @@1..4\n2: w(x,2) @@3..6\n", "lost-update 1:0 -ww-> 2:0 2:0 -ts-> 1:0");
    si("1: w(x,1) @@1..2\n2: r(x,7) @@3..3\n", "thin-air init -wr-> 2:0");
    si("1: w(x,1)! | w(x,2) @@1..2\n2: r(x,1) @@3..3\n", "G1a 1:0 -wr-> 2:0");
    si("1: w(x,1) w(x,2) @@1..2\n2: r(x,1) @@3..3\n", "G1b 1:0 -wr-> 2:0");
    si("1: w(x,1) r(x,2) @@1..2\n", "internal 1:0 -rw-> 1:0");
    si("1: w(x,1) @@4..5 | r(y,_) @@3..6\n", "session-order 1:0 -so-> 1:1 1:1 -ts-> 1:0");
    si("1: w(x,1) @1..2 @@4..5\n2: r(y,_) @3..4 @@4..6\n", "real-time-order 1:0 -rt-> 2:0 2:0 -ts-> 1:0");
}

#[test]
fn lists_are_told_by_their_elements() {
    si("1: a(l,1) @@1..2\n2: a(l,2) @@3..4\n3: r(l,[1 2]) @@5..5\n", "accepted 6");
    si("1: a(l,1) @@1..2\n2: a(l,2) @@3..4\n3: r(l,[1]) @@5..5\n", "G-single 2:0 -ts-> 3:0 3:0 -rw-> 2:0");
    si(
        "1: a(l,1) @@1..2\n2: a(l,2) @@3..9\n3: r(l,[1 2]) @@5..5\n",
        "future-read 2:0 -wr-> 3:0 3:0 -ts-> 2:0",
    );
    si("1: a(l,1) @@1..2\n2: a(l,2)!\n3: r(l,[1 2]) @@5..5\n", "G1a 2:0 -wr-> 3:0");
}

#[test]
fn ranges_and_predicates_are_told() {
    si("1: w(b,1) @@1..2\n2: scan(a..c)=[b:1] q(value=1)=[b:1] @@3..3\n", "accepted 4");
    si("1: w(b,1) @@1..2\n2: scan(a..c)=[] @@3..3\n", "G-single 1:0 -ts-> 2:0 2:0 -rw-> 1:0");
    si("1: w(b,1) @@1..2\n2: u(value=1 -> 2)=1[b] @@3..4\n3: q(value=2)=[b:2] @@5..5\n", "accepted 6");
    si(
        "1: w(b,1) @@1..2\n2: u(value=1 -> 2) @@3..4\n3: r(b,1) @@5..5\n",
        "G-single 2:0 -ts-> 3:0 3:0 -rw-> 2:0",
    );
}

#[test]
fn serial_levels_look_at_the_commit_alone() {
    // Write skew: each misses the other's write.
    let skew = "1: r(x,0) w(y,1) @@1..3\n2: r(y,0) w(x,1) @@2..4\n";
    si(&format!("init: x=0 y=0\n{skew}"), "accepted 4");
    ser(&format!("init: x=0 y=0\n{skew}"), "G-single 1:0 -ts-> 2:0 2:0 -rw-> 1:0");
    ser("1: w(x,1) @@1..9\n2: r(x,1) w(x,2) @@2..10\n", "accepted 2");
}

/// Three transactions commit one after the other, the third on a snapshot without the second: another order
/// explains it, but it is not the order that happened (Chronos and Aion, Li et al., ICDE 2025, Fig. 11).
#[test]
fn the_papers_example_fails_by_timestamps_only() {
    let text = "1: w(x,1) @@1..2\n2: r(x,1) w(x,2) @@3..4\n3: r(x,1) @@5..6\n";
    si(text, "G-single 2:0 -ts-> 3:0 3:0 -rw-> 2:0");
    let history = notation::parse(text).expect("the notation is right");
    let level = Level::new(Rule::SnapshotIsolation, false, false);
    let verdict = oracle::oracle(&history, level, &Options::default()).expect("three transactions");
    assert!(matches!(verdict, Verdict::Accepted(_)));
}

#[test]
fn what_cannot_be_decided_is_refused_with_a_reason() {
    let history = notation::parse("1: w(x,1) | w(x,2) @@1..2\n").expect("the notation is right");
    let refusal = taipan_replay::check(&history, level(Rule::Serializable), &Options::default())
        .expect_err("the first transaction has no timestamps");
    assert!(refusal.sentence(&history).contains("the first is 1:0"), "{}", refusal.sentence(&history));
    let refusal = taipan_replay::check(&history, level(Rule::Causal), &Options::default());
    assert_eq!(refusal, Err(taipan_replay::Refusal::Level));
}

#[test]
fn transactions_of_unknown_outcome_take_effect_when_they_are_seen() {
    si("1: w(x,1)?\n2: r(x,_) @@1..1 | r(x,1) @@2..2 | r(x,1) @@3..3\n", "accepted 8");
    si("1: w(x,1)?\n2: r(x,1) @@1..1 | r(x,_) @@2..2\n", "G-single 1:0 -ts-> 2:1 2:1 -rw-> 1:0");
    si("1: w(x,1)?\n2: r(x,_) @@1..1\n", "accepted 2");
}

#[test]
fn every_axiom_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<&str> = Axiom::ALL.iter().map(|axiom| axiom.name()).collect();
    assert_eq!(names.len(), Axiom::ALL.len());
    assert_eq!(EdgeKind::Ts.name(), "ts");
}

/// Only the first finding is argued; how many there are of each kind is counted.
#[test]
fn findings_are_counted_by_kind() {
    let text = "1: w(x,1) @@1..4\n2: w(x,2) @@2..5\n3: r(x,7) r(y,8) @@6..7\n4: w(y,1) r(y,3) @@8..9\n";
    let history = notation::parse(text).expect("the notation is right");
    let outcome = taipan_replay::outcome(&history, level(Rule::SnapshotIsolation), &Options::default());
    let counted: Vec<(&str, f64)> =
        outcome.stats.entries.into_iter().filter(|(name, _)| name.ends_with("_findings")).collect();
    assert_eq!(counted, [("int_findings", 1.0), ("ext_findings", 2.0), ("noconflict_findings", 1.0)]);
}
