//! Whether a graph has a cycle, and a short one if it has.
//!
//! *Steps*: strike out nodes that nothing leads to until none is left (Kahn); what remains holds a cycle.
//! Walk backwards among the remaining until a node comes again; then breadth first from it to itself.
//! *Cost*: O(nodes + edges).

use solver::{Graph, Node};
use std::collections::VecDeque;

/// All nodes in an order in which every edge leads forward; or the nodes of a cycle in order. Edges are listed from within
/// and only where they lead is kept, unless there is a cycle.
pub fn sort<I: Iterator<Item = (Node, Node)>>(
    nodes: usize,
    edges: impl Fn() -> I,
) -> Result<Vec<Node>, Vec<Node>> {
    let mut waits = vec![0u32; nodes];
    let mut end = vec![0u32; nodes];
    edges().for_each(|(from, to)| {
        end[from as usize] += 1;
        waits[to as usize] += 1;
    });
    let mut count = 0;
    for end in &mut end {
        count += std::mem::replace(end, count);
    }
    let mut successors = vec![0; count as usize];
    edges().for_each(|(from, to)| {
        let place = &mut end[from as usize];
        successors[*place as usize] = to;
        *place += 1;
    });
    let start = |node: Node| node.checked_sub(1).map_or(0, |before| end[before as usize]);
    let mut order: Vec<Node> = Vec::with_capacity(nodes);
    order.extend((0..nodes as Node).filter(|&node| waits[node as usize] == 0));
    let mut next = 0;
    while let Some(&node) = order.get(next) {
        next += 1;
        for &after in &successors[start(node) as usize..end[node as usize] as usize] {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                order.push(after);
            }
        }
    }
    if order.len() < nodes {
        return Err(shortest(&Graph::from_edges(nodes, edges), &waits));
    }
    Ok(order)
}

fn shortest(graph: &Graph, waits: &[u32]) -> Vec<Node> {
    let is_left = |node: Node| waits[node as usize] > 0;
    let start = (0..graph.len() as Node).find(|&node| is_left(node));
    let mut node = start.expect("some node was not sorted");
    let mut seen = vec![false; graph.len()];
    while !std::mem::replace(&mut seen[node as usize], true) {
        let before = graph.predecessors(node).iter().copied().find(|&before| is_left(before));
        node = before.expect("a node that waits has one before it that waits");
    }
    let mut via = vec![Node::MAX; graph.len()];
    let mut queue = VecDeque::from([node]);
    'search: while let Some(at) = queue.pop_front() {
        for &after in graph.successors(at) {
            if after == node {
                via[node as usize] = at;
                break 'search;
            }
            if is_left(after) && via[after as usize] == Node::MAX {
                via[after as usize] = at;
                queue.push_back(after);
            }
        }
    }
    let mut cycle = vec![node];
    let mut at = via[node as usize];
    while at != node {
        cycle.push(at);
        at = via[at as usize];
    }
    cycle.reverse();
    cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_or_a_cycle() {
        let sort = |nodes, edges: &[(Node, Node)]| sort(nodes, || edges.iter().copied());
        let order = sort(4, &[(3, 1), (1, 0), (0, 2)]).expect("there is no cycle");
        assert_eq!(order, [3, 1, 0, 2]);
        let mut cycle = sort(5, &[(4, 0), (0, 1), (1, 2), (2, 0), (2, 3)]).expect_err("0 1 2");
        let smallest = cycle.iter().position(|&node| node == 0).expect("0 is on it");
        cycle.rotate_left(smallest);
        assert_eq!(cycle, [0, 1, 2]);
    }
}
