//! Who reaches whom by known edges, in as little room as their order allows.
//!
//! *What*: nodes are numbered by a topological order. A node reaches nobody before it and, where real time orders most
//! of the others, everybody from some place on: only what lies between is kept, a bit for each node.
//!
//! ```text
//!   place     0 1 2 3 4 5 6 7 8 9
//!   node 2    . . # 0 1 0 1 # # #      bits for 3 to 6; everything from 7 on is reached
//! ```
//!
//! *Steps*: from the end of the order backwards, the union of what successors reach (Purdom's algorithm). A new edge
//! from u to v gives whoever reaches u what v reaches (Italiano's); only those can change whose gap v lies in. An edge
//! against the order asks for another order, and the closure is made anew.
//!
//! *Cost*: edges times the width of the gap; without clocks the gap is all that follows, n² / 16 bytes. An edge more: the
//! gaps that it falls into. *Source*: the compact closure of Vbox §3.4, read off the graph instead of the clocks, so
//! that it holds with and without them; VeriStrong (Cai et al., PVLDB 2026) §6.3. There is no matrix of paths: whoever needs a path is the
//! solver, which finds it in the part of its order that an edge disturbs.

use crate::constraints::Edge;
use isolation::Budget;
use solver::{Graph, Node};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// Beyond this many words (200 MB) the closure is given up.
const WORDS_MAX: usize = 25_000_000;

/// The places of nodes in a topological order that keeps to their numbers where it can; none if there is a cycle.
pub(super) fn topological(graph: &Graph) -> Option<Vec<u32>> {
    let nodes = graph.len();
    let mut waits: Vec<u32> = (0..nodes as Node).map(|node| graph.predecessors(node).len() as u32).collect();
    let mut ready: BinaryHeap<Reverse<Node>> =
        (0..nodes as Node).filter(|&node| waits[node as usize] == 0).map(Reverse).collect();
    let mut position = vec![u32::MAX; nodes];
    let mut next = 0;
    while let Some(Reverse(node)) = ready.pop() {
        position[node as usize] = next;
        next += 1;
        for &after in graph.successors(node) {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                ready.push(Reverse(after));
            }
        }
    }
    (next as usize == nodes).then_some(position)
}

/// The transitive closure.
pub(super) struct Reach {
    position: Vec<u32>,
    /// By position: from where on everything is reached, and where its bits begin.
    rows: Vec<(u32, u32)>,
    /// The bits of a row start with the word that its own position is in.
    bits: Vec<u64>,
}

/// Why there is no closure.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoClosure {
    Cycle,
    TooLarge,
    /// The budget was used up.
    GaveUp,
}

impl Reach {
    pub(super) fn of(nodes: usize, edges: &[Edge], budget: &Budget) -> Result<Self, NoClosure> {
        let meter = budget.meter();
        let graph = Graph::new(nodes, edges);
        let position = topological(&graph).ok_or(NoClosure::Cycle)?;
        let mut order = vec![0; nodes];
        for (node, &place) in position.iter().enumerate() {
            order[place as usize] = node as Node;
        }
        let mut reach = Self { position, rows: vec![(0, 0); nodes], bits: Vec::new() };
        let mut row: Vec<u64> = Vec::new();
        for place in (0..nodes as u32).rev() {
            let after: Vec<u32> = graph
                .successors(order[place as usize])
                .iter()
                .map(|&it| reach.position[it as usize])
                .collect();
            let until = reach.unite(place, &after, &mut row);
            meter.steps((1 + after.len()) * row.len()).map_err(|_| NoClosure::GaveUp)?;
            if reach.bits.len() + row.len() > WORDS_MAX {
                return Err(NoClosure::TooLarge);
            }
            reach.rows[place as usize] = (until, reach.bits.len() as u32);
            // Page by page: doubling takes memory faster than anybody can watch.
            if reach.bits.capacity() - reach.bits.len() < row.len() {
                reach.bits.reserve_exact(row.len() + reach.bits.len() / 16);
            }
            reach.bits.extend_from_slice(&row);
        }
        Ok(reach)
    }

    /// What a place reaches by its successors: leaves the bits in `row`, returns from where on everything is reached.
    fn unite(&self, place: u32, after: &[u32], row: &mut Vec<u64>) -> u32 {
        let nodes = self.rows.len() as u32;
        let mut until = after.iter().map(|&it| self.rows[it as usize].0).min().unwrap_or(nodes);
        let first = place / 64;
        row.clear();
        row.resize((until.max(place + 1).div_ceil(64) - first) as usize, 0);
        let has = |row: &[u64], at: u32| row[(at / 64 - first) as usize] >> (at % 64) & 1 == 1;
        for &next in after.iter().filter(|&&next| next < until) {
            // What is reached another way already brings nothing new.
            if has(row, next) {
                continue;
            }
            let (_, start) = self.rows[next as usize];
            let skip = (next / 64 - first) as usize;
            for (word, bits) in row[skip..].iter_mut().zip(&self.bits[start as usize..]) {
                *word |= bits;
            }
            row[skip] |= 1 << (next % 64);
        }
        while until > place + 1 && has(row, until - 1) {
            until -= 1;
        }
        let words = until.max(place + 1).div_ceil(64) - first;
        row.truncate(words as usize);
        // Beyond that bits say nothing.
        if let (Some(last), 1..) = (row.last_mut(), until % 64) {
            *last &= (1 << (until % 64)) - 1;
        }
        until
    }

    /// Adds edges; false if they close a cycle.
    pub(super) fn insert(&mut self, edges: &[Edge]) -> bool {
        // The farthest that anybody up to a place keeps bits: before, nobody has a gap that a later place lies in.
        let farthest: Vec<u32> = (self.rows.iter())
            .scan(0, |farthest, &(until, _)| {
                *farthest = until.max(*farthest);
                Some(*farthest)
            })
            .collect();
        for &(from, to) in edges {
            if self.reaches(to, from) {
                return false;
            }
            if self.reaches(from, to) {
                continue;
            }
            let (from, to) = (self.position[from as usize], self.position[to as usize]);
            let first = farthest.partition_point(|&until| until <= to) as u32;
            for place in first..=from {
                if !self.has(place, to) && self.has(place, from) {
                    self.reach_too(place, to);
                }
            }
        }
        true
    }

    /// Whether all edges lead forward in the order.
    pub(super) fn is_forward(&self, edges: &[Edge]) -> bool {
        edges.iter().all(|&(from, to)| self.position[from as usize] < self.position[to as usize])
    }

    /// What a place reaches, another one before it reaches too.
    fn reach_too(&mut self, place: u32, next: u32) {
        let ((until, start), (all_from, from)) = (self.rows[place as usize], self.rows[next as usize]);
        let skip = next / 64 - place / 64;
        let (row, end) = (start + skip, start + until.max(place + 1).div_ceil(64) - place / 64);
        let words = (end - row).min(all_from.max(next + 1).div_ceil(64) - next / 64);
        for word in 0..words {
            self.bits[(row + word) as usize] |= self.bits[(from + word) as usize];
        }
        self.bits[row as usize] |= 1 << (next % 64);
        // Bits beyond the gap may be set on the way: they say nothing.
        let mut at = all_from.max(next + 1);
        while at < until {
            self.bits[(start + at / 64 - place / 64) as usize] |= u64::MAX << (at % 64);
            at = (at / 64 + 1) * 64;
        }
        let mut gap = until;
        while gap > place + 1
            && self.bits[(start + (gap - 1) / 64 - place / 64) as usize] >> ((gap - 1) % 64) & 1 == 1
        {
            gap -= 1;
        }
        self.rows[place as usize].0 = gap;
    }

    /// Whether there is a path; a node reaches itself.
    #[inline]
    pub(super) fn reaches(&self, from: Node, to: Node) -> bool {
        self.has(self.position[from as usize], self.position[to as usize])
    }

    /// Whether a place reaches another one.
    #[inline]
    fn has(&self, from: u32, to: u32) -> bool {
        let (until, start) = self.rows[from as usize];
        match to.cmp(&from) {
            Ordering::Less => false,
            Ordering::Equal => true,
            Ordering::Greater => {
                to >= until || self.bits[(start + to / 64 - from / 64) as usize] >> (to % 64) & 1 == 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolation::Undecided;
    use oracle::tiny::Random;

    #[test]
    fn paths_are_those_of_a_search() {
        let mut inserted = 0;
        for seed in 0..300 {
            let mut random = Random::new(seed);
            let nodes = 1 + random.below(200);
            let near = 1 + random.below(nodes);
            // Edges go up; some graphs have chains that order nearly everything.
            let mut edges: Vec<Edge> = Vec::new();
            for from in 0..nodes {
                for _ in 0..random.below(3) {
                    let to = from + 1 + random.below(near);
                    if to < nodes {
                        edges.push((from as Node, to as Node));
                    }
                }
                if seed % 3 == 0 && from + 7 < nodes {
                    edges.push((from as Node, from as Node + 7));
                    edges.push((from as Node, from as Node + 5));
                }
            }
            // Some of the edges come later.
            let (late, early): (Vec<Edge>, Vec<Edge>) = edges.iter().partition(|_| random.below(4) == 0);
            let mut reach =
                Reach::of(nodes, &early, &Budget::unlimited()).expect("edges that go up make no cycle");
            let forward: Vec<Edge> = late.iter().copied().filter(|edge| reach.is_forward(&[*edge])).collect();
            inserted += forward.len();
            assert!(reach.insert(&forward), "edges that go up make no cycle");
            if let Some(&(from, to)) = early.first() {
                assert!(!reach.insert(&[(to, from)]), "seed {seed}: a way back closes a cycle");
            }
            let edges: Vec<Edge> = early.into_iter().chain(forward).collect();
            let graph = Graph::new(nodes, &edges);
            for from in 0..nodes as Node {
                let mut seen = vec![false; nodes];
                let mut work = vec![from];
                while let Some(at) = work.pop() {
                    if !std::mem::replace(&mut seen[at as usize], true) {
                        work.extend(graph.successors(at));
                    }
                }
                for to in 0..nodes as Node {
                    assert_eq!(reach.reaches(from, to), seen[to as usize], "seed {seed}: {from} to {to}");
                }
            }
        }
        assert!(inserted > 2_000, "only {inserted} edges came later");
        assert_eq!(Reach::of(2, &[(0, 1), (1, 0)], &Budget::unlimited()).err(), Some(NoClosure::Cycle));
        let spent = Budget::unlimited().with_steps(1, Undecided::Timeout);
        assert_eq!(Reach::of(3, &[(0, 1), (1, 2)], &spent).err(), Some(NoClosure::GaveUp));
    }
}
