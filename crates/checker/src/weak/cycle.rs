//! Whether a graph has a cycle, and a short one if it has.
//!
//! *Steps*: strike out nodes that nothing leads to until none is left (Kahn); what remains holds a cycle.
//! Walk backwards among the remaining until a node comes again; then breadth first from it to itself.
//! *Cost*: O(nodes + edges).

use solver::{Graph, Node};
use std::collections::VecDeque;

/// An order of all nodes in which every edge leads forward, as places; or the nodes of a cycle in order.
pub(super) fn sort(graph: &Graph) -> Result<Vec<u32>, Vec<Node>> {
    let count = graph.len();
    let mut waits: Vec<u32> = (0..count as Node).map(|node| graph.predecessors(node).len() as u32).collect();
    let mut queue: Vec<Node> = (0..count as Node).filter(|&node| waits[node as usize] == 0).collect();
    let mut next = 0;
    while let Some(&node) = queue.get(next) {
        next += 1;
        for &after in graph.successors(node) {
            waits[after as usize] -= 1;
            if waits[after as usize] == 0 {
                queue.push(after);
            }
        }
    }
    if queue.len() < count {
        return Err(shortest(graph, &waits));
    }
    let mut place = vec![0; count];
    for (at, &node) in queue.iter().enumerate() {
        place[node as usize] = at as u32;
    }
    Ok(place)
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
        let order = sort(&Graph::new(4, &[(3, 1), (1, 0), (0, 2)])).expect("there is no cycle");
        assert_eq!(order, [2, 1, 3, 0]);
        let mut cycle = sort(&Graph::new(5, &[(4, 0), (0, 1), (1, 2), (2, 0), (2, 3)])).expect_err("0 1 2");
        let smallest = cycle.iter().position(|&node| node == 0).expect("0 is on it");
        cycle.rotate_left(smallest);
        assert_eq!(cycle, [0, 1, 2]);
    }
}
