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
//! *Steps*: from the end of the order backwards, the union of what successors reach (Purdom's algorithm). *Cost*: edges
//! times the width of that gap; without clocks the gap is all that follows, n² / 16 bytes. *Source*: the compact closure
//! of vbox.txt §3.4, read off the graph instead of the clocks, so that it holds with and without them; veristrong.txt
//! §6.3.

use super::constraints::Edge;
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
}

impl Reach {
    pub(super) fn of(nodes: usize, edges: &[Edge]) -> Result<Self, NoClosure> {
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
            if reach.bits.len() + row.len() > WORDS_MAX {
                return Err(NoClosure::TooLarge);
            }
            reach.rows[place as usize] = (until, reach.bits.len() as u32);
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

    /// Whether there is a path; a node reaches itself.
    #[inline]
    pub(super) fn reaches(&self, from: Node, to: Node) -> bool {
        let (from, to) = (self.position[from as usize], self.position[to as usize]);
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
    use crate::oracle::tiny::Random;

    #[test]
    fn paths_are_those_of_a_search() {
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
            let reach = Reach::of(nodes, &edges).expect("edges that go up make no cycle");
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
        assert_eq!(Reach::of(2, &[(0, 1), (1, 0)]).err(), Some(NoClosure::Cycle));
    }
}
