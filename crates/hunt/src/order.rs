//! Cycles, and random topological orders (TxCheck, Jiang et al., OSDI 2023, §3.3, Figure 8 and Algorithm 1).
//!
//! Cycles are found as strongly connected components; orders by taking, again and again, a random statement that nothing
//! left has to precede. Both are linear in the graph.

use crate::graph::{Graph, Node};
use workload::Random;

/// The groups of statements that lie on cycles together.
pub fn cycles(graph: &Graph) -> Vec<Vec<Node>> {
    let edges: Vec<(u32, u32)> = graph.edges.keys().map(|&(from, to)| (from.0, to.0)).collect();
    let groups = solver::Graph::new(graph.nodes.len(), &edges).cycles();
    groups.into_iter().map(|group| group.into_iter().map(Node).collect()).collect()
}

/// A random order in which every edge leads forward; `None` if there is a cycle.
pub fn topological(graph: &Graph, random: &mut Random) -> Option<Vec<Node>> {
    let successors = graph.successors();
    let mut before = vec![0u32; successors.len()];
    graph.edges.keys().for_each(|(_, to)| before[to.index()] += 1);
    let mut ready: Vec<Node> =
        (0..before.len()).filter(|&node| before[node] == 0).map(|node| Node(node as u32)).collect();
    let mut order = Vec::with_capacity(before.len());
    while !ready.is_empty() {
        let node = ready.swap_remove(usize::try_from(random.below(ready.len() as u64)).unwrap_or(0));
        order.push(node);
        for next in &successors[node.index()] {
            before[next.index()] -= 1;
            if before[next.index()] == 0 {
                ready.push(*next);
            }
        }
    }
    (order.len() == before.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::StepNo;
    use crate::graph::Dependency;

    fn graph(count: u32, edges: &[(u32, u32)]) -> Graph {
        Graph {
            nodes: (0..count).map(StepNo).collect(),
            edges: edges.iter().map(|&(a, b)| ((Node(a), Node(b)), vec![Dependency::ItemRead])).collect(),
            ambiguous: Vec::new(),
        }
    }

    #[test]
    fn cycles_are_the_components_of_more_than_one() {
        let graph = graph(7, &[(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 3), (4, 5), (6, 5)]);
        let mut groups: Vec<Vec<u32>> =
            cycles(&graph).iter().map(|group| group.iter().map(|node| node.0).collect()).collect();
        groups.iter_mut().for_each(|group| group.sort_unstable());
        groups.sort();
        assert_eq!(groups, [vec![0, 1, 2], vec![3, 4]]);
        assert_eq!(topological(&graph, &mut Random::new(1)), None);
    }

    #[test]
    fn orders_keep_edges_and_differ() {
        let graph = graph(6, &[(0, 3), (3, 5), (1, 5), (4, 2)]);
        assert!(cycles(&graph).is_empty());
        let orders: Vec<Vec<Node>> =
            (0..20).filter_map(|seed| topological(&graph, &mut Random::new(seed))).collect();
        assert_eq!(orders.len(), 20);
        let place = |order: &[Node], node: Node| order.iter().position(|other| *other == node);
        for order in &orders {
            assert!(graph.edges.keys().all(|(from, to)| place(order, *from) < place(order, *to)));
        }
        assert!(orders.iter().any(|order| order != &orders[0]));
    }
}
