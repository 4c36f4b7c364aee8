//! Constraints between chains of writes: Cobra's encoding, and Viper's on begins and commits.
//!
//! *What*: a transaction that reads a version and overwrites it comes right behind its writer, so such versions form
//! chains whose inside is known. Of two chains of a key one comes before the other as a whole: one question, with all
//! edges of either order.
//!
//! ```text
//!   chain A   W ─▶ T ─▶ U ◀─ readers of U            A before B:  U → first of B, readers of U → first of B
//!   chain B   X ─▶ Y       ◀─ readers of Y           B before A:  Y → W,          readers of Y → W
//! ```
//!
//! *Invariant*: every two versions of a key are ordered by their chain, by the question of their two chains, or
//! because one chain starts from the initial state. *Cost*: the square of a key's chains. *Source*: Cobra (Tan et al.,
//! OSDI 2020, §3.2 combining writes, §3.3 coalescing constraints); Viper (Zhang et al., EuroSys 2023, §3).

use crate::constraints::{Constraints, Edge, Unwritten};
use crate::questions::{certain_readers, initial_reads, live_versions};
use isolation::Budget;
use rustc_hash::{FxHashMap, FxHashSet};
use search::constrain::{Known, Nodes};
use search::problem::{INITIAL, Problem, Txn};

/// Versions that follow each other directly, oldest first; `from_initial` if the first one overwrote the initial state.
struct Chain {
    versions: Vec<u32>,
    from_initial: bool,
}

/// Writes the constraints of a problem in which every read's writer and every outcome is known.
pub(super) fn write(
    problem: &Problem,
    known: &Known,
    combine: bool,
    budget: &Budget,
) -> Result<Constraints, Unwritten> {
    let constraints =
        Constraints::new(known.node_count(problem), known.edges(problem).collect()).within(budget);
    let mut initial_readers = vec![Vec::new(); problem.keys()];
    for read in initial_reads(problem) {
        initial_readers[read.key as usize].push(read.txn);
    }
    let readers = certain_readers(problem);
    let mut writer = Writer { problem, nodes: known.nodes, readers, initial_readers, constraints };
    for key in 0..problem.keys() as u32 {
        let chains = writer.chains(key, combine)?;
        writer.inside(key, &chains);
        writer.between(&chains)?;
    }
    Ok(writer.constraints)
}

struct Writer<'a> {
    problem: &'a Problem,
    nodes: Nodes,
    readers: Vec<Vec<Txn>>,
    initial_readers: Vec<Vec<Txn>>,
    constraints: Constraints,
}

impl Writer<'_> {
    fn txn(&self, version: u32) -> Txn {
        self.problem.versions[version as usize].txn
    }

    fn chains(&self, key: u32, combine: bool) -> Result<Vec<Chain>, Unwritten> {
        let versions = live_versions(self.problem, key);
        // Who overwrote what it had read.
        let mut next: FxHashMap<u32, u32> = FxHashMap::default();
        for &version in versions.iter().filter(|_| combine) {
            let mut reads = self.problem.reads_of(self.txn(version)).iter();
            if let Some(read) = reads.find(|read| read.key == key)
                && next.insert(read.source, version).is_some()
            {
                return Err(Unwritten::Contradiction);
            }
        }
        let followers: FxHashSet<u32> = next.values().copied().collect();
        let first = next.get(&INITIAL).copied();
        let heads = versions.iter().copied().filter(|version| !followers.contains(version));
        let mut chains = Vec::new();
        for (head, from_initial) in
            first.map(|head| (head, true)).into_iter().chain(heads.map(|it| (it, false)))
        {
            let mut versions = vec![head];
            let mut at = head;
            // A circle of read-modify-writes has no head, and is a cycle of known edges.
            while let Some(&after) = next.get(&at) {
                versions.push(after);
                at = after;
            }
            chains.push(Chain { versions, from_initial });
        }
        Ok(chains)
    }

    /// What is known inside of chains and behind the initial state.
    fn inside(&mut self, key: u32, chains: &[Chain]) {
        let mut edges = Vec::new();
        for chain in chains {
            for pair in chain.versions.windows(2) {
                self.readers_before(&self.readers[pair[0] as usize], pair[1], &mut edges);
            }
            self.readers_before(&self.initial_readers[key as usize], chain.versions[0], &mut edges);
        }
        self.constraints.known.extend(edges);
    }

    fn between(&mut self, chains: &[Chain]) -> Result<(), Unwritten> {
        for (place, second) in chains.iter().enumerate() {
            for first in &chains[..place] {
                let (yes, no) = (self.order(first, second), self.order(second, first));
                if first.from_initial {
                    self.constraints.known.extend(yes);
                } else {
                    self.constraints.ask(&yes, &no, true);
                }
            }
            self.constraints.fits()?;
        }
        Ok(())
    }

    /// The edges of one chain before another.
    fn order(&self, first: &Chain, second: &Chain) -> Vec<Edge> {
        let (Some(&tail), Some(&head)) = (first.versions.last(), second.versions.first()) else {
            return Vec::new();
        };
        let mut edges = vec![(self.nodes.commit(self.txn(tail)), self.nodes.begin(self.txn(head)))];
        self.readers_before(&self.readers[tail as usize], head, &mut edges);
        edges
    }

    fn readers_before(&self, readers: &[Txn], version: u32, edges: &mut Vec<Edge>) {
        let overwriter = self.txn(version);
        let others = readers.iter().filter(|&&reader| reader != overwriter);
        edges.extend(others.map(|&reader| (self.nodes.begin(reader), self.nodes.commit(overwriter))));
    }
}
