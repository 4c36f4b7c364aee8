//! The oracle: the statements of the graph in another order, without transactions, must give the same results
//! (TxCheck, Jiang et al., OSDI 2023, §3.3, Algorithm 1 and Theorem 1).
//!
//! Compared are the answers of queries, what writes were about to overwrite and what they installed, and the tables
//! at the end. The theorem holds for every topological order, so several random ones are tried.

use crate::case::{Case, Instrumented, StepNo, TableNo};
use crate::compare::same;
use crate::execute::{Alone, Observed, Run, Stage, Trouble, items};
use crate::graph::Graph;
use crate::order::topological;
use crate::sessions::Rows;
use databases::Failure;
use std::collections::HashMap;
use workload::Random;

/// A result that differs between the transactions and the order without them.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Where.
    pub place: Place,
    /// What it was in the transactions.
    pub in_transactions: Rows,
    /// What it was without them.
    pub alone: Result<Rows, Failure>,
    /// The order without them.
    pub order: Vec<StepNo>,
}

/// Where results are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// The answer of a query.
    Answer(StepNo),
    /// What a write was about to overwrite.
    Before(StepNo),
    /// What a write installed.
    After(StepNo),
    /// A statement that only goes through in its transaction.
    Refusal(StepNo),
    /// A table at the end.
    Table(TableNo),
}

/// Tries `orders` random orders; the first difference.
pub fn check(
    stage: &mut Stage<'_>,
    case: &Case,
    run: &Run,
    graph: &Graph,
    orders: u32,
    random: &mut Random,
) -> Result<Option<Difference>, Trouble> {
    for _ in 0..orders {
        let Some(order) = topological(graph, random) else { return Ok(None) };
        let order: Vec<StepNo> = order.iter().map(|node| graph.nodes[node.index()]).collect();
        if let Some(difference) = check_order(stage, case, run, &order)? {
            return Ok(Some(difference));
        }
    }
    Ok(None)
}

/// Executes one order without transactions and compares.
pub fn check_order(
    stage: &mut Stage<'_>,
    case: &Case,
    run: &Run,
    order: &[StepNo],
) -> Result<Option<Difference>, Trouble> {
    let alone = stage.serial(case, &sequence(case, order))?;
    Ok(compare(case, run, order, alone))
}

/// The statements of an order.
fn sequence<'c>(case: &'c Case, order: &[StepNo]) -> Vec<&'c Instrumented> {
    let statements: HashMap<StepNo, &Instrumented> =
        case.statements().map(|(step, statement)| (step.number, statement)).collect();
    order.iter().filter_map(|step| statements.get(step).copied()).collect()
}

/// Compares an execution with what the statements gave without transactions, in `order`.
pub fn compare(case: &Case, run: &Run, order: &[StepNo], alone: Alone) -> Option<Difference> {
    let found = |place, in_transactions: &Rows, alone| {
        Some(Difference { place, in_transactions: in_transactions.clone(), alone, order: order.to_vec() })
    };
    for ((step, statement), answer) in order.iter().zip(sequence(case, order)).zip(alone.answers) {
        let Some(seen) = run.observed.get(step) else { continue };
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return found(Place::Refusal(*step), &seen.output, Err(failure)),
        };
        if let Some((place, rows, alone)) = differs(*step, statement, seen, answer) {
            return found(place, &rows, Ok(alone));
        }
    }
    for (table, (then, now)) in run.finals.iter().zip(alone.finals).enumerate() {
        if !same(then, &now, false) {
            return found(Place::Table(TableNo::of(table)), then, Ok(now));
        }
    }
    None
}

fn differs(
    step: StepNo,
    statement: &Instrumented,
    seen: &Observed,
    alone: Observed,
) -> Option<(Place, Rows, Rows)> {
    if !same(&seen.before, &alone.before, false) {
        return Some((Place::Before(step), seen.before.clone(), alone.before));
    }
    if !same(&seen.output, &alone.output, statement.ordered) {
        return Some((Place::Answer(step), seen.output.clone(), alone.output));
    }
    let (then, now) = (installed(statement, seen), installed(statement, &alone));
    (!same(&then, &now, false)).then_some((Place::After(step), then, now))
}

/// What a statement installed. Of a version that others install as well, only the rows that this one matched: its
/// read afterwards looks at a snapshot, where it need not see the rest.
fn installed(statement: &Instrumented, seen: &Observed) -> Rows {
    if !statement.shared {
        return seen.after.clone();
    }
    let matched = items(&seen.before);
    let keys = items(&seen.after);
    let is_own = |key: i64| matched.iter().any(|(known, _)| *known == key);
    seen.after.iter().zip(keys).filter(|(_, (key, _))| is_own(*key)).map(|(row, _)| row.clone()).collect()
}
