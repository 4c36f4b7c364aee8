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

    /// As [`Graph::new`], from edges that are cheaper to list twice than to keep.
    pub fn from_edges<I: Iterator<Item = (Node, Node)>>(nodes: usize, edges: impl Fn() -> I) -> Self {
        let (out_start, out) = adjacency(nodes, edges());
        let (in_start, into) = adjacency(nodes, edges().map(|(from, to)| (to, from)));
        let mut graph = Self { out_start, out, in_start, into };
        fill(&mut graph.out_start, &mut graph.out, edges());
        fill(&mut graph.in_start, &mut graph.into, edges().map(|(from, to)| (to, from)));
        graph
    }

    /// How many nodes there are.
    pub fn len(&self) -> usize {
        self.out_start.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
}

/// Where each node's edges begin, and room for them.
fn adjacency(nodes: usize, edges: impl Iterator<Item = (Node, Node)>) -> (Vec<u32>, Vec<Node>) {
    let mut start = vec![0u32; nodes + 1];
    let mut count = 0;
    for (from, _) in edges {
        start[from as usize + 1] += 1;
        count += 1;
    }
    for index in 1..start.len() {
        start[index] += start[index - 1];
    }
    (start, vec![0; count])
}

/// Puts the edges into their room, moving each start to its end and back.
fn fill(start: &mut [u32], room: &mut [Node], edges: impl Iterator<Item = (Node, Node)>) {
    for (from, to) in edges {
        let place = &mut start[from as usize];
        room[*place as usize] = to;
        *place += 1;
    }
    for index in (1..start.len()).rev() {
        start[index] = start[index - 1];
    }
    start[0] = 0;
}
