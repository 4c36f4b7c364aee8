//! The known edges: compressed adjacency in both directions.

/// A node of the graph, from 0.
pub type Node = u32;

/// Nodes and known edges. Eight bytes an edge, eight bytes a node.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    out_start: Vec<u32>,
    out: Vec<Node>,
    in_start: Vec<u32>,
    into: Vec<Node>,
}

impl Graph {
    /// A graph of `nodes` nodes. Parallel edges do no harm.
    pub fn new(nodes: usize, edges: &[(Node, Node)]) -> Self {
        Self::from_edges(nodes, || edges.iter().copied())
    }

    /// As [`Graph::new`], from edges that are cheaper to list twice than to keep. They are listed from within
    /// (`for_each`), which is several times faster than a loop where they come from several places.
    pub fn from_edges<I: Iterator<Item = (Node, Node)>>(nodes: usize, edges: impl Fn() -> I) -> Self {
        let mut out_start = vec![0u32; nodes + 1];
        let mut in_start = vec![0u32; nodes + 1];
        edges().for_each(|(from, to)| {
            out_start[from as usize + 1] += 1;
            in_start[to as usize + 1] += 1;
        });
        let count = starts(&mut out_start);
        starts(&mut in_start);
        let (mut out, mut into) = (vec![0; count], vec![0; count]);
        edges().for_each(|(from, to)| {
            put(&mut out_start, &mut out, from, to);
            put(&mut in_start, &mut into, to, from);
        });
        back(&mut out_start);
        back(&mut in_start);
        Self { out_start, out, in_start, into }
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.out_start.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many known edges there are.
    pub fn edges(&self) -> usize {
        self.out.len()
    }

    /// Where the known edges of a node lead.
    #[inline]
    pub fn successors(&self, node: Node) -> &[Node] {
        &self.out[self.out_start[node as usize] as usize..self.out_start[node as usize + 1] as usize]
    }

    /// Where the known edges into a node come from.
    #[inline]
    pub fn predecessors(&self, node: Node) -> &[Node] {
        &self.into[self.in_start[node as usize] as usize..self.in_start[node as usize + 1] as usize]
    }

    /// The groups of nodes that lie on cycles together: strongly connected components of more than one, by Tarjan's
    /// algorithm, kept iterative.
    pub fn cycles(&self) -> Vec<Vec<Node>> {
        const NONE: u32 = u32::MAX;
        let (mut index, mut low) = (vec![NONE; self.len()], vec![0; self.len()]);
        let mut on_stack = vec![false; self.len()];
        let (mut stack, mut next, mut found) = (Vec::new(), 0, Vec::new());
        for root in 0..self.len() as Node {
            if index[root as usize] != NONE {
                continue;
            }
            let mut walk: Vec<(Node, usize)> = vec![(root, 0)];
            while let Some(&mut (node, ref mut edge)) = walk.last_mut() {
                let at = node as usize;
                if *edge == 0 && index[at] == NONE {
                    (index[at], low[at]) = (next, next);
                    next += 1;
                    stack.push(node);
                    on_stack[at] = true;
                }
                if let Some(&child) = self.successors(node).get(*edge) {
                    *edge += 1;
                    if index[child as usize] == NONE {
                        walk.push((child, 0));
                    } else if on_stack[child as usize] {
                        low[at] = low[at].min(index[child as usize]);
                    }
                    continue;
                }
                walk.pop();
                if let Some(&(parent, _)) = walk.last() {
                    low[parent as usize] = low[parent as usize].min(low[at]);
                }
                if low[at] == index[at] {
                    let from = stack.iter().rposition(|&other| other == node).unwrap_or(0);
                    let group: Vec<Node> = stack.drain(from..).collect();
                    group.iter().for_each(|&member| on_stack[member as usize] = false);
                    if group.len() > 1 {
                        found.push(group);
                    }
                }
            }
        }
        found
    }
}

/// Turns the number of each node's edges, one place on, into where they start; returns how many there are.
fn starts(counts: &mut [u32]) -> usize {
    let mut sum = 0;
    for count in counts {
        sum += *count;
        *count = sum;
    }
    sum as usize
}

/// Puts an edge behind the others of its node, which moves its start towards its end.
#[inline]
fn put(starts: &mut [u32], room: &mut [Node], from: Node, to: Node) {
    let place = &mut starts[from as usize];
    room[*place as usize] = to;
    *place += 1;
}

/// Moves the starts back from the ends.
fn back(starts: &mut [u32]) {
    let last = starts.len() - 1;
    starts.copy_within(..last, 1);
    starts[0] = 0;
}
