//! Who reaches whom by known edges: a bit for every two nodes.
//!
//! *Steps*: a topological order, then from its end backwards the union of what successors reach (Purdom's algorithm;
//! veristrong.txt §6.3, vbox.txt §3.4.2). *Cost*: edges · nodes / 64 steps, nodes² / 8 bytes, so only up to
//! [`NODES_MAX`].

use super::constraints::Edge;
use solver::{Graph, Node};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Beyond this the matrix would take more than 200 MB.
pub(super) const NODES_MAX: usize = 40_000;

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
    words: usize,
    bits: Vec<u64>,
}

impl Reach {
    /// None if the edges form a cycle.
    pub(super) fn of(nodes: usize, edges: &[Edge]) -> Option<Self> {
        debug_assert!(nodes <= NODES_MAX, "the matrix would not fit");
        let graph = Graph::new(nodes, edges);
        let position = topological(&graph)?;
        let mut order = vec![0; nodes];
        for (node, &place) in position.iter().enumerate() {
            order[place as usize] = node;
        }
        let words = nodes.div_ceil(64);
        let mut bits = vec![0u64; nodes * words];
        for &node in order.iter().rev() {
            bits[node * words + node / 64] |= 1 << (node % 64);
            for &after in graph.successors(node as Node) {
                let after = after as usize;
                // What is reached another way already brings nothing new.
                if bits[node * words + after / 64] >> (after % 64) & 1 == 1 {
                    continue;
                }
                for word in 0..words {
                    bits[node * words + word] |= bits[after * words + word];
                }
            }
        }
        Some(Self { words, bits })
    }

    /// Whether there is a path; a node reaches itself.
    #[inline]
    pub(super) fn reaches(&self, from: Node, to: Node) -> bool {
        self.bits[from as usize * self.words + to as usize / 64] >> (to % 64) & 1 == 1
    }
}
