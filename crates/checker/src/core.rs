//! The core: the smallest set of transactions found that already has no explanation.
//!
//! *What*: starts from the transactions that a contradiction speaks of and takes away whatever can go:
//! larger pieces first, then one by one, each time asking the pipeline whether the part that is left
//! ([`crate::restrict`]) is still impossible. What remains is minimal: without any one of it there is an
//! explanation.
//!
//! *Cost*: checks of tiny histories. *Source*: Zeller's delta debugging.

use crate::constrain::Known;
use crate::levels::Level;
use crate::observe::{Contradiction, Problem, Standing, Txn};
use crate::pipeline::{Decision, decide};
use crate::restrict::restrict;
use crate::verdict::{Anomaly, Evidence, Options, Stats};
use history::{History, OpId, TxnId};
use std::collections::VecDeque;

/// The transactions that a contradiction without an order speaks of.
pub(crate) fn of_contradiction(history: &History, contradiction: &Contradiction) -> Vec<TxnId> {
    match *contradiction {
        Contradiction::Internal { op }
        | Contradiction::NonRepeatable { second: op, .. }
        | Contradiction::NoSource { op } => vec![owner(history, op)],
        // Which appenders matter is left to the shrinking: all of them are a start.
        Contradiction::BrokenList { op } => with_appenders(history, &[op]),
        Contradiction::IncompatibleLists { first, second } => with_appenders(history, &[first, second]),
    }
}

/// The transaction an operation belongs to.
pub(crate) fn owner(history: &History, op: OpId) -> TxnId {
    history.owner(op)
}

fn with_appenders(history: &History, reads: &[OpId]) -> Vec<TxnId> {
    let keys: Vec<_> = reads.iter().filter_map(|&op| history.operation(op).key()).collect();
    let appends = history.transactions().filter(|transaction| {
        transaction.ops().any(|(_, operation)| {
            matches!(operation, history::Operation::Append { key, .. } if keys.contains(&key))
        })
    });
    let mut txns: Vec<TxnId> = appends.map(|transaction| transaction.id()).collect();
    txns.extend(reads.iter().map(|&op| owner(history, op)));
    txns.sort_unstable();
    txns.dedup();
    txns
}

/// A short cycle of known edges among transactions that wait for each other.
pub(crate) fn known_cycle(problem: &Problem, known: &Known, stuck: &[Txn]) -> Vec<Txn> {
    let graph = known.graph(problem);
    let nodes = known.nodes;
    let mut is_stuck = vec![true; graph.len()];
    for txn in 0..problem.len() as Txn {
        let waits = stuck.binary_search(&txn).is_ok() && problem.standing[txn as usize] != Standing::Out;
        is_stuck[nodes.begin(txn) as usize] = waits;
        is_stuck[nodes.commit(txn) as usize] = waits;
    }
    // Walk backwards among the stuck until a node comes again: it lies on a cycle.
    let mut seen = vec![false; graph.len()];
    let Some(&first) = stuck.first() else { return Vec::new() };
    let mut node = nodes.begin(first);
    while !std::mem::replace(&mut seen[node as usize], true) {
        let waiting = graph.predecessors(node).iter().find(|&&before| is_stuck[before as usize]);
        match waiting {
            Some(&before) => node = before,
            None => return stuck.to_vec(),
        }
    }
    // Then the shortest way from it to itself.
    let mut via = vec![u32::MAX; graph.len()];
    let mut queue = VecDeque::from([node]);
    'search: while let Some(at) = queue.pop_front() {
        for &next in graph.successors(at) {
            if next == node {
                via[node as usize] = at;
                break 'search;
            }
            if is_stuck[next as usize] && via[next as usize] == u32::MAX {
                via[next as usize] = at;
                queue.push_back(next);
            }
        }
    }
    let mut cycle = vec![nodes.txn(node)];
    let mut at = via[node as usize];
    while at != node {
        cycle.push(nodes.txn(at));
        at = via[at as usize];
    }
    cycle.retain(|&txn| (txn as usize) < problem.len());
    cycle.sort_unstable();
    cycle.dedup();
    cycle
}

/// Shrinks a set of transactions without an explanation and says what is wrong with it.
pub(crate) fn evidence(history: &History, level: Level, options: &Options, start: Vec<TxnId>) -> Evidence {
    let txns = shrink(history, level, options, start);
    Evidence {
        anomaly: Anomaly { name: "unexplained".into(), common: None },
        transactions: txns,
        edges: Vec::new(),
        support: Vec::new(),
    }
}

fn impossible(history: &History, level: Level, options: &Options) -> bool {
    matches!(decide(history, level, options, &mut Stats::default()), Decision::Impossible(_))
}

fn shrink(whole: &History, level: Level, options: &Options, start: Vec<TxnId>) -> Vec<TxnId> {
    // The first part is cut from the whole once; all further ones are cut from it.
    let mut part = restrict(whole, &start);
    if !impossible(&part.history, level, options) {
        // The part says less than the proof needed; the proof's own set stands.
        return part.txns;
    }
    let mut piece = part.txns.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < part.txns.len() && part.txns.len() > 1 {
            let len = part.history.len();
            let keep: Vec<TxnId> = (part.history.transactions().map(|it| it.id()))
                .filter(|txn| !(from..from + piece).contains(&history::Id::index(*txn)))
                .collect();
            let smaller = restrict(&part.history, &keep);
            if !keep.is_empty() && impossible(&smaller.history, level, options) {
                part.txns = smaller.txns.iter().map(|&txn| part.txns[history::Id::index(txn)]).collect();
                part.history = smaller.history;
                debug_assert!(part.history.len() < len);
            } else {
                from += piece;
            }
            if options.budget.exhausted().is_some() {
                return part.txns;
            }
        }
        if piece == 1 {
            return part.txns;
        }
        piece = piece.div_ceil(2);
    }
}
