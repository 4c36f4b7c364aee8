//! Dependency graphs of tiny histories, and the rules of the levels on them, as `levels` words them.
//!
//! Every rule forbids some pattern, so a graph with more edges is never allowed where one with fewer is
//! not. The search relies on that: a forbidden part of a graph is not completed, and of two graphs of which
//! one contains the other the larger is forgotten.

use super::orders::Set;
use isolation::Rule;

/// The most transactions of a graph.
pub(super) const NODES_MAX: usize = 8;

/// A relation between transactions: for each, the ones it leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Relation {
    to: [Set; NODES_MAX],
}

impl Relation {
    pub(super) fn add(&mut self, from: usize, to: usize) {
        self.to[from] |= 1 << to;
    }

    pub(super) fn has(&self, from: usize, to: usize) -> bool {
        self.to[from] & 1 << to != 0
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self { to: std::array::from_fn(|from| self.to[from] | other.to[from]) }
    }

    fn is_subset(&self, of: &Self) -> bool {
        self.to.iter().zip(&of.to).all(|(own, other)| own & !other == 0)
    }

    /// First along this relation, then along the other.
    fn then(&self, other: &Self) -> Self {
        let follow = |set: Set| {
            (0..NODES_MAX).filter(|via| set & 1 << via != 0).fold(0, |found, via| found | other.to[via])
        };
        Self { to: self.to.map(follow) }
    }

    /// One step or more.
    pub(super) fn closure(&self) -> Self {
        let mut closed = *self;
        loop {
            let longer = closed.union(&closed.then(&closed));
            if longer == closed {
                return closed;
            }
            closed = longer;
        }
    }

    fn is_acyclic(&self) -> bool {
        let closed = self.closure();
        (0..NODES_MAX).all(|node| !closed.has(node, node))
    }

    /// Only the edges between nodes of a set.
    fn within(&self, nodes: Set) -> Self {
        Self {
            to: std::array::from_fn(|from| if nodes & 1 << from != 0 { self.to[from] & nodes } else { 0 }),
        }
    }
}

/// The direct dependencies between transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Graph {
    pub(super) ww: Relation,
    pub(super) wr: Relation,
    pub(super) rw_item: Relation,
    pub(super) rw_predicate: Relation,
    /// Whether some key alone has a cycle of one item rw and otherwise ww. Kept for cursor stability only.
    pub(super) lost_update: bool,
    /// The dependencies of single operations, ascending. Kept for monotonic view only.
    pub(super) steps: Vec<Step>,
}

/// One operation's dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) txn: usize,
    pub(super) op: usize,
    /// Whether the operation missed `other` (an rw to it) or depends on it (a ww or wr from it).
    pub(super) missed: bool,
    pub(super) other: usize,
}

impl Graph {
    pub(super) fn union(&self, other: &Self) -> Self {
        let mut steps = [self.steps.as_slice(), &other.steps].concat();
        steps.sort_unstable();
        steps.dedup();
        Self {
            ww: self.ww.union(&other.ww),
            wr: self.wr.union(&other.wr),
            rw_item: self.rw_item.union(&other.rw_item),
            rw_predicate: self.rw_predicate.union(&other.rw_predicate),
            lost_update: self.lost_update || other.lost_update,
            steps,
        }
    }

    fn is_contained_in(&self, other: &Self) -> bool {
        self.ww.is_subset(&other.ww)
            && self.wr.is_subset(&other.wr)
            && self.rw_item.is_subset(&other.rw_item)
            && self.rw_predicate.is_subset(&other.rw_predicate)
            && self.lost_update <= other.lost_update
            && self.steps.iter().all(|step| other.steps.contains(step))
    }

    /// Without the edges that a rule does not look at.
    fn seen_by(self, rule: Rule) -> Self {
        let sees_items = !matches!(
            rule,
            Rule::ReadUncommitted | Rule::ReadCommitted | Rule::CursorStability | Rule::MonotonicView
        );
        let sees_predicates = sees_items && rule != Rule::RepeatableRead;
        Self {
            rw_item: if sees_items { self.rw_item } else { Relation::default() },
            rw_predicate: if sees_predicates { self.rw_predicate } else { Relation::default() },
            ..self
        }
    }

    /// Adds a graph to a list unless one in the list is contained in it; forgets those that contain it.
    pub(super) fn add_minimal(self, list: &mut Vec<Graph>) {
        if !list.iter().any(|other| other.is_contained_in(&self)) {
            list.retain(|other| !self.is_contained_in(other));
            list.push(self);
        }
    }
}

/// What the rules look at beside the graph.
pub(super) struct Frame {
    pub(super) rule: Rule,
    /// Session and real-time order, as far as they count.
    pub(super) orders: Relation,
    pub(super) nodes: usize,
    /// Transactions that wrote nothing.
    pub(super) read_only: Set,
}

impl Frame {
    /// Adds what the rule sees of a graph to a list, unless it is forbidden or one in the list is as good.
    pub(super) fn keep(&self, graph: Graph, list: &mut Vec<Graph>) {
        let graph = graph.seen_by(self.rule);
        if self.allows(&graph) {
            graph.add_minimal(list);
        }
    }

    /// Whether the level allows a graph.
    pub(super) fn allows(&self, graph: &Graph) -> bool {
        let d = graph.ww.union(&graph.wr).union(&self.orders);
        let rw = graph.rw_item.union(&graph.rw_predicate);
        match self.rule {
            Rule::ReadUncommitted => graph.ww.union(&self.orders).is_acyclic(),
            Rule::ReadCommitted => d.is_acyclic(),
            Rule::CursorStability => d.is_acyclic() && !graph.lost_update,
            Rule::MonotonicView => d.is_acyclic() && self.is_monotonic(&d, &graph.steps),
            Rule::ConsistentView => {
                let closed = d.closure();
                let no_one_rw = (0..self.nodes).all(|node| !closed.then(&rw).has(node, node));
                d.is_acyclic() && no_one_rw
            }
            Rule::RepeatableRead => d.union(&graph.rw_item).is_acyclic(),
            // Every rw is preceded by an edge of D: no two are adjacent.
            Rule::SnapshotIsolation => d.union(&d.then(&rw)).is_acyclic(),
            Rule::UpdateSerializable => self.updates_and_one_reader(&d.union(&rw)),
            Rule::Serializable => d.union(&rw).is_acyclic(),
            Rule::AxiomaticReadCommitted | Rule::ReadAtomic | Rule::Causal | Rule::Prefix => {
                unreachable!("levels defined by a commit order are decided in `axioms`")
            }
        }
    }

    /// No operation misses what an earlier one of its transaction depends on, directly or not.
    fn is_monotonic(&self, d: &Relation, steps: &[Step]) -> bool {
        let closed = d.closure();
        let broken = |saw: &Step, missed: &Step| {
            !saw.missed
                && missed.missed
                && saw.txn == missed.txn
                && saw.op < missed.op
                && (missed.other == saw.other || closed.has(missed.other, saw.other))
        };
        !steps.iter().any(|saw| steps.iter().any(|missed| broken(saw, missed)))
    }

    /// No cycle among the updating transactions, nor among them and any single one that only reads.
    fn updates_and_one_reader(&self, all: &Relation) -> bool {
        let updates = ((1 << self.nodes) - 1) & !self.read_only;
        let readers = (0..self.nodes).map(|node| 1 << node).filter(|reader| self.read_only & reader != 0);
        all.within(updates).is_acyclic()
            && readers.into_iter().all(|reader| all.within(updates | reader).is_acyclic())
    }
}
