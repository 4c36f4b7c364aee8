//! "Still allowed by": the levels at which the transactions of a violation are possible, against the exhaustive oracle.

mod cases;

use cases::{expect_no_fault, least, seeds};
use history::{History, Status};
use isolation::{Level, Options, Verdict, implies};
use oracle::oracle;
use oracle::tiny::Shape;
use std::cell::Cell;
use taipan_checker::{allowed, check};

/// What was compared.
#[derive(Default)]
struct Seen {
    /// Levels that allow all of a history.
    whole: Cell<usize>,
    /// Levels that the oracle accepts the whole at, where some of its transactions violate another.
    kept: Cell<usize>,
}

/// What is wrong with the levels that are said to allow a violation of this one.
fn fault(history: &History, level: Level, seen: &Seen) -> Option<String> {
    let options = Options::default();
    let Verdict::Violated(evidence) = check(history, level, &options).verdict else { return None };
    let found = allowed(history, level, &evidence.transactions, &options);
    if let Some(stronger) = found.iter().find(|&&other| other == level || implies(other, level)) {
        return Some(format!("{stronger} implies {level} and is said to allow what violates it"));
    }
    if found.is_empty() {
        return None;
    }
    // Without an aborted transaction nothing is left of what it wrote.
    let is_clean = history.transactions().all(|it| it.status() != Status::Aborted);
    let others = history.transactions().filter(|it| it.status() != Status::Aborted);
    let is_whole = others.map(|it| it.id()).all(|it| evidence.transactions.contains(&it));
    for other in Level::all() {
        let said = found.contains(&other);
        match oracle(history, other, &options) {
            // What the whole is possible at, a part of it is.
            Ok(Verdict::Accepted(_)) if !said && is_clean => {
                return Some(format!("{other} allows all of it, and is not said to allow a part"));
            }
            Ok(Verdict::Accepted(_)) => seen.kept.set(seen.kept.get() + 1),
            Ok(Verdict::Violated(_)) if said && is_whole => {
                return Some(format!("{other} is said to allow all of it"));
            }
            _ => {}
        }
        seen.whole.set(seen.whole.get() + usize::from(said && is_whole));
    }
    None
}

#[test]
fn levels_that_allow_a_violation_are_those_of_the_oracle() {
    let seen = Seen::default();
    let levels = [
        Level::SERIALIZABLE,
        Level::SNAPSHOT_ISOLATION,
        Level::STRICT_SERIALIZABLE,
        Level::parse("causal").expect("a level"),
        Level::parse("read-committed").expect("a level"),
    ];
    for shape in [
        Shape::registers(),
        Shape::lists(),
        Shape::ranges(),
        Shape::predicates(),
        Shape::everything(),
        Shape { unique_values: 0, unknown: 30, ..Shape::registers() },
        Shape { transactions: (4, 5), keys_max: 2, ..Shape::registers() },
    ] {
        expect_no_fault(&shape, seeds(400), &levels, |history, level| fault(history, level, &seen));
    }
    let (whole, kept) = (seen.whole.get(), seen.kept.get());
    assert!(whole > least(4_000) && kept > least(4_000), "{whole} of whole histories, {kept} of parts");
}
