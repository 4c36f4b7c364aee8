//! Which transactions a contradiction speaks of: where the shrinking of a core begins.

use crate::constrain::Known;
use crate::problem::{Problem, Standing, Txn};
use crate::refusal::Contradiction;
use history::{History, OpId, Primitive, Status, TxnId};
use std::collections::VecDeque;

/// The transactions that a contradiction without an order speaks of.
pub fn of_contradiction(history: &History, contradiction: &Contradiction) -> Vec<TxnId> {
    match *contradiction {
        Contradiction::Internal { op, .. } | Contradiction::BadRows { op } => vec![history.owner(op)],
        Contradiction::NonRepeatable { first, second } => with_writers(history, &[first, second]),
        Contradiction::NoSource { op, .. } => with_writers(history, &[op]),
        // Which appenders matter is left to the shrinking: all of them are a start.
        Contradiction::BrokenList { op, .. } => with_appenders(history, &[op]),
        Contradiction::IncompatibleLists { first, second, .. } => with_appenders(history, &[first, second]),
    }
}

/// Reads and whoever wrote what they returned, be it only for a while.
fn with_writers(history: &History, reads: &[OpId]) -> Vec<TxnId> {
    let mut txns: Vec<TxnId> = reads.iter().map(|&op| history.owner(op)).collect();
    for &read in reads {
        let Primitive::Read { key, value, .. } = history.primitive(read) else { continue };
        let last = history.values_of(value).last().copied();
        let writers = history.transactions().filter(|transaction| {
            transaction.status() != Status::Aborted
                && transaction.primitives().any(|(_, operation)| match operation {
                    Primitive::Write { key: at, value: wrote } => at == key && wrote == value,
                    Primitive::Append { key: at, value: wrote } => at == key && Some(wrote) == last,
                    _ => false,
                })
        });
        txns.extend(writers.map(|transaction| transaction.id()));
    }
    txns.sort_unstable();
    txns.dedup();
    txns
}

fn with_appenders(history: &History, reads: &[OpId]) -> Vec<TxnId> {
    let keys: Vec<_> = reads.iter().filter_map(|&op| history.primitive(op).key()).collect();
    let appends = history.transactions().filter(|transaction| {
        transaction
            .primitives()
            .any(|(_, operation)| matches!(operation, Primitive::Append { key, .. } if keys.contains(&key)))
    });
    let mut txns: Vec<TxnId> = appends.map(|transaction| transaction.id()).collect();
    txns.extend(reads.iter().map(|&op| history.owner(op)));
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
