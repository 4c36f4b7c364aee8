//! Known edges: what every explanation has.
//!
//! *What*: maps transactions to nodes of a graph and lists the edges that no choice can change. At a
//! serial level a transaction is one node. At snapshot isolation it is two, begin → commit; whatever
//! becomes visible does so commit → begin, whatever must not be visible begin → commit. A cycle there is
//! exactly a cycle without two adjacent anti-dependencies (viper: Zhang et al., EuroSys 2023),
//! so one solver serves both.
//!
//! ```text
//!   serial        S ───────────▶ T          snapshot   S.begin   S.commit ──▶ T.begin   T.commit
//!                 ww wr so rt                                    ww wr so rt
//!                 T ───────────▶ S                     T.begin ──────────────────────▶ S.commit
//!                 rw                                   rw
//! ```
//!
//! Real time would be n² edges; a chain of *time nodes*, one a transaction that ended, makes it 3n.

use crate::problem::{INITIAL, NONE, Problem, Standing, Txn};
use history::{History, Status};
use isolation::{Level, Rule};
use solver::{Graph, Node};

/// How transactions become nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nodes {
    /// 1 at serial levels, 2 where begin and commit are apart.
    pub points: u32,
}

impl Nodes {
    /// The nodes that a level needs.
    pub fn of(level: Level) -> Self {
        Self { points: if level.rule == Rule::SnapshotIsolation { 2 } else { 1 } }
    }

    /// Where a transaction reads.
    #[inline]
    pub fn begin(self, txn: Txn) -> Node {
        txn * self.points
    }

    /// Where its writes become visible.
    #[inline]
    pub fn commit(self, txn: Txn) -> Node {
        txn * self.points + self.points - 1
    }

    /// The transaction of a node; beyond the last one for time nodes.
    #[inline]
    pub fn txn(self, node: Node) -> Txn {
        node / self.points
    }
}

/// The real-time order, in linear space.
#[derive(Clone, Debug, Default)]
pub struct RealTime {
    /// Transactions that ended, ascending by their end: the time nodes.
    pub ended: Vec<Txn>,
    /// For each transaction how many of `ended` came before it.
    pub after: Vec<u32>,
}

impl RealTime {
    /// S before T if S's end plus the skew is before T's begin, and S's outcome is known.
    pub fn of(history: &History, problem: &Problem, skew: i64) -> Self {
        let span = |txn: Txn| history.transaction(problem.txns[txn as usize]).client();
        let mut ends: Vec<(i64, Txn)> = (0..problem.len() as Txn)
            .filter(|&txn| {
                history.transaction(problem.txns[txn as usize]).status() == Status::Committed
                    && problem.standing[txn as usize] == Standing::In
            })
            .filter_map(|txn| span(txn).map(|span| (span.end.saturating_add(skew), txn)))
            .collect();
        ends.sort_unstable();
        let after = (0..problem.len() as Txn)
            .map(|txn| span(txn).map_or(0, |span| ends.partition_point(|&(end, _)| end < span.begin) as u32))
            .collect();
        Self { ended: ends.into_iter().map(|(_, txn)| txn).collect(), after }
    }
}

/// The nodes and edges that every explanation has.
#[derive(Clone, Debug)]
pub struct Known {
    /// The nodes of transactions.
    pub nodes: Nodes,
    /// Whether session order counts.
    pub session: bool,
    pub(crate) real_time: RealTime,
    /// What was derived from the rest: the first commits before the second begins.
    pub(crate) derived: Vec<(Txn, Txn)>,
    /// Orders of nodes that are known from outside the history's results, such as those of timestamps.
    pub fixed: Vec<(Node, Node)>,
}

impl Known {
    /// The order that every explanation has at a level.
    pub fn new(history: &History, problem: &Problem, level: Level, skew: i64) -> Self {
        let real_time =
            if level.realtime { RealTime::of(history, problem, skew) } else { RealTime::default() };
        Self {
            nodes: Nodes::of(level),
            session: level.session,
            real_time,
            derived: Vec::new(),
            fixed: Vec::new(),
        }
    }

    /// The time node of a rank in `ended`.
    pub(crate) fn time_node(&self, problem: &Problem, rank: usize) -> Node {
        problem.len() as Node * self.nodes.points + rank as Node
    }

    /// How many nodes there are, those of real time included.
    pub fn node_count(&self, problem: &Problem) -> usize {
        problem.len() * self.nodes.points as usize + self.real_time.ended.len()
    }

    /// All of it as a graph.
    pub fn graph(&self, problem: &Problem) -> Graph {
        Graph::from_edges(self.node_count(problem), || self.edges(problem))
    }

    /// All of them.
    pub fn edges<'a>(&'a self, problem: &'a Problem) -> impl Iterator<Item = (Node, Node)> + 'a {
        self.edges_from(problem, move |txn| {
            // What a transaction saw that may not have taken effect is known only if it did.
            let is_in = problem.standing[txn as usize] == Standing::In;
            let reads = problem.reads_of(txn).iter();
            let reads = reads.filter(move |read| is_in && read.is_known() && read.source < INITIAL);
            reads.map(move |read| problem.versions[read.source as usize].txn)
        })
    }

    /// All of them, where it is reported whom each transaction saw.
    pub(crate) fn edges_from<'a, I: Iterator<Item = Txn> + 'a>(
        &'a self,
        problem: &'a Problem,
        seen: impl Fn(Txn) -> I + Copy + 'a,
    ) -> impl Iterator<Item = (Node, Node)> + 'a {
        let nodes = self.nodes;
        let txns = (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] != Standing::Out);
        let of_txn = move |txn: Txn| {
            let begin = nodes.begin(txn);
            let own = (nodes.points == 2).then(|| (begin, nodes.commit(txn)));
            let previous = problem.previous[txn as usize];
            let session = (self.session && previous != NONE).then(|| (nodes.commit(previous), begin));
            let seen = seen(txn).map(move |writer| (nodes.commit(writer), begin));
            let count = self.real_time.after.get(txn as usize).copied().unwrap_or(0);
            let time = (count > 0).then(|| (self.time_node(problem, count as usize - 1), begin));
            own.into_iter().chain(session).chain(time).chain(seen)
        };
        let orders =
            self.orders(problem).map(move |(first, second)| (nodes.commit(first), nodes.begin(second)));
        let times = self.real_time.ended.iter().enumerate().flat_map(move |(rank, &txn)| {
            let node = self.time_node(problem, rank);
            let next = (rank + 1 < self.real_time.ended.len()).then_some((node, node + 1));
            std::iter::once((nodes.commit(txn), node)).chain(next)
        });
        txns.flat_map(of_txn).chain(orders).chain(times).chain(self.fixed.iter().copied())
    }

    /// Transactions whose order lists show, or that was derived.
    pub fn orders<'a>(&'a self, problem: &'a Problem) -> impl Iterator<Item = (Txn, Txn)> + 'a {
        let writer = |version: u32| problem.versions[version as usize].txn;
        let live = |txn: Txn| problem.standing[txn as usize] != Standing::Out;
        (problem.chains.iter())
            .map(move |&(first, second)| (writer(first), writer(second)))
            .filter(move |&(first, second)| live(first) && live(second))
            .chain(self.derived.iter().copied())
            .chain(
                problem
                    .added
                    .iter()
                    .map(|&(first, second, _)| (first, second))
                    .filter(move |&(first, second)| live(first) && live(second)),
            )
    }
}
