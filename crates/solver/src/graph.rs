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
