//! The oracle against itself: replay against definition, and the lattice of levels, on random histories.

use history::{History, Operation};
use isolation::{Level, Options, Rule, Ryow, Verdict, implications};
use std::collections::HashMap;
use taipan_oracle::tiny::{Shape, Sketch, shrink};
use taipan_oracle::{TooLarge, oracle, oracle_by_definition};

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

/// `None` for the few histories that are too large for the oracle.
fn accepted(verdict: Result<Verdict, TooLarge>) -> Option<bool> {
    match verdict {
        Ok(Verdict::Accepted(_)) => Some(true),
        Ok(Verdict::Violated(_)) => Some(false),
        Ok(Verdict::Undecided(why)) => panic!("no budget was set, and yet {why:?}"),
        Err(_) => None,
    }
}

fn seeds(default: u64) -> u64 {
    std::env::var("TAIPAN_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Serial orders and interleavings on one side, acyclic dependency graphs on the other.
#[test]
fn replay_agrees_with_the_definition() {
    for (name, shape) in shapes() {
        for ryow in [Ryow::Must, Ryow::May, Ryow::Never] {
            let shape = shape.clone().with_ryow(ryow);
            for skew in [0, 7] {
                let options = Options { ryow, clock_skew: skew, ..Options::default() };
                for level in Level::all()
                    .filter(|level| matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation))
                {
                    let differs = |history: &History| {
                        let replayed = accepted(oracle(history, level, &options));
                        let defined = accepted(oracle_by_definition(history, level, &options));
                        replayed.is_some() && defined.is_some() && replayed != defined
                    };
                    for seed in 0..seeds(60) {
                        let history = shape.history(seed);
                        if differs(&history) {
                            let small = shrink(&history, differs);
                            let verdict = oracle(&small, level, &options).map(|verdict| verdict.name());
                            panic!(
                                "{name}, seed {seed}, {ryow:?}, {level}: replay says {verdict:?}\n{}",
                                Sketch::of(&small)
                            );
                        }
                    }
                }
            }
        }
    }
}

fn has_predicates(history: &History) -> bool {
    history.transactions().flat_map(|txn| txn.ops()).any(|(_, operation)| {
        matches!(
            operation,
            Operation::Scan { .. }
                | Operation::Iterate { .. }
                | Operation::Query { .. }
                | Operation::Update { .. }
                | Operation::DeleteWhere { .. }
        )
    })
}

/// A stronger level accepted and a weaker one rejected is a bug.
#[test]
fn the_lattice_of_levels_holds() {
    let options = Options::default();
    let (mut decided, mut refused) = (0, 0);
    for (name, shape) in shapes() {
        for seed in 0..seeds(250) {
            let history = shape.history(seed + 5_000_000);
            let verdicts: HashMap<Level, Option<bool>> =
                Level::all().map(|level| (level, accepted(oracle(&history, level, &options)))).collect();
            decided += verdicts.values().flatten().count();
            refused += verdicts.values().filter(|verdict| verdict.is_none()).count();
            for implication in implications() {
                let (stronger, weaker) = (implication.stronger, implication.weaker);
                let broken = |history: &History| {
                    !(implication.without_predicates && has_predicates(history))
                        && accepted(oracle(history, stronger, &options)) == Some(true)
                        && accepted(oracle(history, weaker, &options)) == Some(false)
                };
                let suspect = verdicts[&stronger] == Some(true) && verdicts[&weaker] == Some(false);
                if suspect && broken(&history) {
                    let small = shrink(&history, broken);
                    panic!("{name}, seed {seed}: {stronger} but not {weaker}\n{}", Sketch::of(&small));
                }
            }
        }
    }
    assert!(refused * 100 < decided, "{refused} refused, {decided} decided");
}
