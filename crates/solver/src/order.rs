//! A topological order that follows the graph as edges come and go.
//!
//! *What*: keeps `position`, a total order of the nodes in which every edge leads forward, or finds the
//! cycle that a new edge closes.
//!
//! *Invariant*: for every edge from → to that is present, `position[from] < position[to]`. Taking edges
//! away keeps it, so backtracking costs nothing and the order remembers what the search had found.
//!
//! *Steps* for a new edge from → to that leads backward (Pearce and Kelly, 2006): search forward from
//! `to` among nodes placed before `from`, backward from `from` among nodes placed after `to`; if the
//! searches meet there is a cycle; else give the two sets the same places, the backward set first.
//!
//! ```text
//!   position   …  to   a   b   from  …        to ⇝ a, b ⇝ from
//!                 └─────────────┘  new edge from → to
//!   becomes    …  b  from  to   a    …
//! ```
//!
//! *Cost*: the edges of the nodes between the two places. Where the start order is near the truth this
//! is a handful.
//!
//! On a cycle a second search finds one that uses the fewest *literals* (known edges are free), because
//! the clause learnt from it is as strong as it is short.

use crate::graph::{Graph, Node};
use crate::search::Lit;
use std::collections::VecDeque;

/// An edge that a literal brought.
#[derive(Clone, Copy, Debug)]
struct DynamicEdge {
    from: Node,
    to: Node,
    lit: Lit,
    next_out: u32,
    next_in: u32,
}

const NONE: u32 = u32::MAX;

/// A cycle: its nodes in order, and the literals whose edges it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) nodes: Vec<Node>,
    pub(crate) lits: Vec<Lit>,
}

/// A literal that would close a cycle now, and the cycle.
#[derive(Clone, Debug)]
pub(crate) struct Excluded {
    pub(crate) lit: Lit,
    pub(crate) cycle: Cycle,
}

/// An edge that some unassigned literal would bring.
#[derive(Clone, Copy, Debug)]
struct Potential {
    to: Node,
    lit: Lit,
    next: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Order {
    graph: Graph,
    position: Vec<u32>,
    edges: Vec<DynamicEdge>,
    first_out: Vec<u32>,
    first_in: Vec<u32>,
    potentials: Vec<Potential>,
    first_potential: Vec<u32>,
    /// Which search saw a node last: odd numbers forward, even ones backward.
    seen: Vec<u32>,
    /// How the search came to a node: the node before it and the literal of the edge.
    via: Vec<(Node, Lit)>,
    search: u32,
    forward: Vec<Node>,
    backward: Vec<Node>,
    places: Vec<u32>,
    moved: Vec<Node>,
    /// Nodes visited by searches, for budgets and statistics.
    pub(crate) visited: u64,
}

impl Order {
    /// `position` must put every known edge forward.
    pub(crate) fn new(graph: Graph, position: &[u32]) -> Self {
        let nodes = graph.len();
        assert_eq!(position.len(), nodes, "every node has a position");
        debug_assert!(
            (0..nodes as Node).all(|from| graph
                .successors(from)
                .iter()
                .all(|&to| position[from as usize] < position[to as usize])),
            "the start order is topological"
        );
        Self {
            graph,
            position: position.to_vec(),
            edges: Vec::new(),
            first_out: vec![NONE; nodes],
            first_in: vec![NONE; nodes],
            potentials: Vec::new(),
            first_potential: vec![NONE; nodes],
            seen: vec![0; nodes],
            via: vec![(0, Lit::NONE); nodes],
            search: 0,
            forward: Vec::new(),
            backward: Vec::new(),
            places: Vec::new(),
            moved: Vec::new(),
            visited: 0,
        }
    }

    #[inline]
    pub(crate) fn position(&self, node: Node) -> u32 {
        self.position[node as usize]
    }

    pub(crate) fn nodes(&self) -> usize {
        self.position.len()
    }

    /// Nodes that changed place since the last call.
    pub(crate) fn take_moved(&mut self, into: &mut Vec<Node>) {
        into.append(&mut self.moved);
    }

    /// How many literal edges there are: a mark to come back to.
    pub(crate) fn mark(&self) -> usize {
        self.edges.len()
    }

    /// Takes away the edges that came after a mark.
    pub(crate) fn undo_to(&mut self, mark: usize) {
        while self.edges.len() > mark {
            let edge = self.edges.pop().expect("there are edges beyond the mark");
            self.first_out[edge.from as usize] = edge.next_out;
            self.first_in[edge.to as usize] = edge.next_in;
        }
    }

    /// Says that `lit` would bring this edge, so that it can be excluded early.
    pub(crate) fn announce(&mut self, from: Node, to: Node, lit: Lit) {
        let next = self.first_potential[from as usize];
        self.first_potential[from as usize] = self.potentials.len() as u32;
        self.potentials.push(Potential { to, lit, next });
    }

    /// Adds an edge. `Err` is a cycle through it. Literals for which `open` holds and that the searches
    /// happened to show impossible are added to `excluded`.
    pub(crate) fn insert(
        &mut self,
        from: Node,
        to: Node,
        lit: Lit,
        open: impl Fn(Lit) -> bool,
        excluded: &mut Vec<Excluded>,
    ) -> Result<(), Cycle> {
        if from == to {
            return Err(Cycle { nodes: vec![from], lits: vec![lit] });
        }
        if self.position(from) > self.position(to) {
            if !self.search_forward(from, to) {
                return Err(self.shortest_cycle(from, to, lit));
            }
            self.search_backward(from, to);
            self.find_excluded(from, to, lit, open, excluded);
            self.reorder();
        }
        let edge = DynamicEdge {
            from,
            to,
            lit,
            next_out: self.first_out[from as usize],
            next_in: self.first_in[to as usize],
        };
        self.first_out[from as usize] = self.edges.len() as u32;
        self.first_in[to as usize] = self.edges.len() as u32;
        self.edges.push(edge);
        Ok(())
    }

    /// Collects what `to` reaches before `from`'s place; false if it reaches `from`.
    fn search_forward(&mut self, from: Node, to: Node) -> bool {
        self.next_search();
        let limit = self.position(from);
        self.forward.clear();
        self.forward.push(to);
        self.seen[to as usize] = self.search;
        let mut next = 0;
        while let Some(&node) = self.forward.get(next) {
            next += 1;
            self.visited += 1;
            for index in 0..self.graph.successors(node).len() {
                let successor = self.graph.successors(node)[index];
                if !self.see_forward(node, successor, Lit::NONE, limit, from) {
                    return false;
                }
            }
            let mut edge = self.first_out[node as usize];
            while edge != NONE {
                let it = self.edges[edge as usize];
                if !self.see_forward(node, it.to, it.lit, limit, from) {
                    return false;
                }
                edge = it.next_out;
            }
        }
        true
    }

    #[inline]
    fn see_forward(&mut self, node: Node, successor: Node, lit: Lit, limit: u32, from: Node) -> bool {
        if successor == from {
            return false;
        }
        if self.position(successor) < limit && self.seen[successor as usize] != self.search {
            self.seen[successor as usize] = self.search;
            self.via[successor as usize] = (node, lit);
            self.forward.push(successor);
        }
        true
    }

    /// Collects what reaches `from` after `to`'s place. The searches cannot meet: forward saw no cycle.
    fn search_backward(&mut self, from: Node, to: Node) {
        self.next_search();
        let limit = self.position(to);
        self.backward.clear();
        self.backward.push(from);
        self.seen[from as usize] = self.search;
        let mut next = 0;
        while let Some(&node) = self.backward.get(next) {
            next += 1;
            self.visited += 1;
            for index in 0..self.graph.predecessors(node).len() {
                let predecessor = self.graph.predecessors(node)[index];
                self.see_backward(node, predecessor, Lit::NONE, limit);
            }
            let mut edge = self.first_in[node as usize];
            while edge != NONE {
                let it = self.edges[edge as usize];
                self.see_backward(node, it.from, it.lit, limit);
                edge = it.next_in;
            }
        }
    }

    #[inline]
    fn see_backward(&mut self, node: Node, predecessor: Node, lit: Lit, limit: u32) {
        if self.position(predecessor) > limit && self.seen[predecessor as usize] != self.search {
            self.seen[predecessor as usize] = self.search;
            self.via[predecessor as usize] = (node, lit);
            self.backward.push(predecessor);
        }
    }

    fn next_search(&mut self) {
        if self.search == u32::MAX - 1 {
            self.seen.fill(0);
            self.search = 0;
        }
        self.search += 1;
    }

    /// Unassigned literals with an edge from what `to` reaches to what reaches `from`: with the new edge
    /// they close a cycle (the unit-edge propagation of order-theory solvers).
    fn find_excluded(
        &mut self,
        from: Node,
        to: Node,
        lit: Lit,
        open: impl Fn(Lit) -> bool,
        excluded: &mut Vec<Excluded>,
    ) {
        for index in 0..self.forward.len() {
            let node = self.forward[index];
            let mut potential = self.first_potential[node as usize];
            while potential != NONE {
                let it = self.potentials[potential as usize];
                if self.seen[it.to as usize] == self.search && open(it.lit) {
                    let cycle = self.cycle_through(from, to, lit, node, it.to);
                    excluded.push(Excluded { lit: it.lit, cycle });
                }
                potential = it.next;
            }
        }
    }

    /// The cycle `back ⇝ from → to ⇝ node → back`, without the last edge's literal.
    fn cycle_through(&self, from: Node, to: Node, lit: Lit, node: Node, back: Node) -> Cycle {
        let mut cycle = Cycle::default();
        let mut at = node;
        while at != to {
            let (before, lit) = self.via[at as usize];
            cycle.nodes.push(at);
            cycle.lits.push(lit);
            at = before;
        }
        cycle.nodes.push(to);
        cycle.lits.push(lit);
        cycle.nodes.reverse();
        let mut backward = Vec::new();
        let mut at = back;
        while at != from {
            let (after, lit) = self.via[at as usize];
            backward.push(at);
            cycle.lits.push(lit);
            at = after;
        }
        backward.push(from);
        backward.append(&mut cycle.nodes);
        cycle.nodes = backward;
        cycle.tidy();
        cycle
    }

    /// Gives the places of both sets to the backward set first, then the forward set.
    fn reorder(&mut self) {
        let position = &self.position;
        self.forward.sort_unstable_by_key(|&node| position[node as usize]);
        self.backward.sort_unstable_by_key(|&node| position[node as usize]);
        self.places.clear();
        self.places.extend(self.forward.iter().chain(&self.backward).map(|&node| position[node as usize]));
        self.places.sort_unstable();
        for (&node, &place) in self.backward.iter().chain(&self.forward).zip(&self.places) {
            if self.position[node as usize] != place {
                self.position[node as usize] = place;
                self.moved.push(node);
            }
        }
    }

    /// A path `to ⇝ from` with the fewest literal edges (0-1 breadth-first), closed by the new edge.
    fn shortest_cycle(&mut self, from: Node, to: Node, lit: Lit) -> Cycle {
        let limit = self.position(from);
        self.next_search();
        let mut distance: std::collections::HashMap<Node, u32> = Default::default();
        let mut queue = VecDeque::from([to]);
        distance.insert(to, 0);
        'search: while let Some(node) = queue.pop_front() {
            if self.seen[node as usize] == self.search {
                continue;
            }
            self.seen[node as usize] = self.search;
            let reached = distance[&node];
            let mut relax = |via: &mut Vec<(Node, Lit)>, next: Node, lit: Lit, cost: u32| {
                let better = distance.get(&next).is_none_or(|&old| reached + cost < old);
                if better {
                    distance.insert(next, reached + cost);
                    via[next as usize] = (node, lit);
                    if cost == 0 { queue.push_front(next) } else { queue.push_back(next) }
                }
            };
            if node == from {
                break 'search;
            }
            for &next in self.graph.successors(node) {
                if self.position[next as usize] <= limit && self.seen[next as usize] != self.search {
                    relax(&mut self.via, next, Lit::NONE, 0);
                }
            }
            let mut edge = self.first_out[node as usize];
            while edge != NONE {
                let it = self.edges[edge as usize];
                if self.position[it.to as usize] <= limit && self.seen[it.to as usize] != self.search {
                    relax(&mut self.via, it.to, it.lit, 1);
                }
                edge = it.next_out;
            }
        }
        let mut cycle = Cycle { nodes: Vec::new(), lits: vec![lit] };
        let mut at = from;
        while at != to {
            let (before, lit) = self.via[at as usize];
            cycle.nodes.push(at);
            cycle.lits.push(lit);
            at = before;
        }
        cycle.nodes.push(to);
        cycle.nodes.reverse();
        cycle.tidy();
        cycle
    }
}

impl Cycle {
    /// Each literal once, known edges not at all.
    fn tidy(&mut self) {
        self.lits.retain(|&lit| lit != Lit::NONE);
        self.lits.sort_unstable();
        self.lits.dedup();
    }
}
