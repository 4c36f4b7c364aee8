//! Independent parts, on all cores.
//!
//! *What*: transactions that share no key, directly or through others, and no session cannot contradict each other: a
//! problem falls into parts that are explained one by one, and any explanations of the parts, one after the other, are
//! one of the whole. Parts are gathered into as many bundles as there are threads, evenly by the work in them.
//!
//! *Invariant*: whoever can have written what a transaction saw is in its bundle, so a bundle says all that the whole says
//! of its transactions. *Cost*: one visit a read and a version. *Source*: Boomslang (Zhang, Mu and Tan 2026) §6.

use crate::problem::{NONE, Problem, Standing, Txn};

/// Bundles below this share of the work are not worth a copy of the problem.
const WORTH: f64 = 0.1;

/// Bundles of independent parts, ascending transactions each; empty if the problem hangs together.
pub(crate) fn bundles(problem: &Problem, threads: usize) -> Vec<Vec<Txn>> {
    if threads < 2 || problem.len() < 2 {
        return Vec::new();
    }
    let part_of = parts(problem);
    let mut work: Vec<(u64, u32)> = vec![(0, 0); problem.len()];
    for (txn, &part) in (0..).zip(&part_of) {
        work[part as usize].1 = part;
        work[part as usize].0 += 1 + (problem.reads_of(txn).len() + problem.versions_of(txn).len()) as u64;
    }
    let all: u64 = work.iter().map(|&(work, _)| work).sum();
    work.retain(|&(work, _)| work > 0);
    work.sort_unstable_by(|a, b| b.cmp(a));
    // The largest first, each to whoever has least.
    let mut loads = vec![0u64; threads.min(work.len())];
    let mut bundle_of = vec![0u32; problem.len()];
    for (work, part) in work {
        let least = (0..loads.len()).min_by_key(|&bundle| loads[bundle]).unwrap_or(0);
        loads[least] += work;
        bundle_of[part as usize] = least as u32;
    }
    let largest = loads.iter().copied().max().unwrap_or(all);
    if ((all - largest) as f64) < all as f64 * WORTH {
        return Vec::new();
    }
    let mut bundles = vec![Vec::new(); loads.len()];
    for txn in 0..problem.len() as Txn {
        bundles[bundle_of[part_of[txn as usize] as usize] as usize].push(txn);
    }
    bundles
}

/// For each transaction a transaction that stands for its part.
fn parts(problem: &Problem) -> Vec<Txn> {
    let mut parent: Vec<Txn> = (0..problem.len() as Txn).collect();
    let mut toucher = vec![NONE; problem.keys()];
    for txn in 0..problem.len() as Txn {
        if problem.standing[txn as usize] == Standing::Out {
            continue;
        }
        let previous = problem.previous[txn as usize];
        if previous != NONE {
            unite(&mut parent, previous, txn);
        }
        let versions = problem.versions_of(txn).iter().map(|version| version.key);
        for key in versions.chain(problem.reads_of(txn).iter().map(|read| read.key)) {
            let other = std::mem::replace(&mut toucher[key as usize], txn);
            if other != NONE {
                unite(&mut parent, other, txn);
            }
        }
    }
    (0..problem.len() as Txn).map(|txn| find(&mut parent, txn)).collect()
}

fn find(parent: &mut [Txn], mut txn: Txn) -> Txn {
    while parent[txn as usize] != txn {
        let above = parent[parent[txn as usize] as usize];
        parent[txn as usize] = above;
        txn = above;
    }
    txn
}

fn unite(parent: &mut [Txn], one: Txn, other: Txn) {
    let (one, other) = (find(parent, one), find(parent, other));
    // The smaller number stands for both: sessions come in order, so trees stay shallow.
    parent[one.max(other) as usize] = one.min(other);
}
