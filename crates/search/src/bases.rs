//! What a transaction's reads of its own appends show: the version that its own builds on.
//!
//! *What*: T appends 5 and reads `[1 2 5]`; then its version comes right after the one that holds `[1 2]`,
//! and every other version of the key that is not before that one comes after T's. Snapshot isolation and above
//! need no word on it, because there the version a transaction reads is the one it overwrites; weaker levels let
//! a transaction read one version and build on a later one.
//!
//! *Cost*: the versions of the keys concerned. *Invariant*: afterwards [`Problem::chains`] alone says all that lists
//! show; a contradiction among them is a cycle of chains.

use crate::problem::{INITIAL, Problem, Standing};
use isolation::{Budget, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};

/// Adds to the chains that nothing lies between a version and the one that is known to build on it.
pub(crate) fn adjoin(problem: &mut Problem, budget: &Budget) -> Result<(), Undecided> {
    if problem.bases.is_empty() {
        return Ok(());
    }
    let meter = budget.meter();
    let mut after: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    let mut is_second: FxHashSet<u32> = FxHashSet::default();
    for &(first, second) in &problem.chains {
        after.entry(first).or_default().push(second);
        is_second.insert(second);
    }
    let mut found: FxHashSet<(u32, u32)> = FxHashSet::default();
    for &id in &problem.bases {
        meter.step()?;
        let read = problem.reads[id as usize];
        if problem.standing[read.txn as usize] != Standing::In || problem.is_open_base(id) {
            continue; // the search asks for these where the transaction takes effect
        }
        let Some(own) = problem.version_by(read.txn, read.key) else { continue };
        let heads: Vec<u32>;
        let next: &[u32] = if read.source == INITIAL {
            meter.steps(problem.versions_of_key(read.key).len())?;
            let versions = problem.versions_of_key(read.key).iter().map(|&(_, version)| version);
            heads = versions.filter(|version| !is_second.contains(version)).collect();
            &heads
        } else {
            after.get(&read.source).map_or(&[], Vec::as_slice)
        };
        // Whatever comes next is the transaction's own version, or comes after it.
        meter.steps(next.len())?;
        found.extend(next.iter().filter(|&&other| other != own).map(|&other| (own, other)));
        if read.source < INITIAL {
            found.insert((read.source, own));
        }
    }
    let mut found: Vec<(u32, u32)> = found.into_iter().collect();
    found.sort_unstable();
    problem.chains.extend(found);
    Ok(())
}
