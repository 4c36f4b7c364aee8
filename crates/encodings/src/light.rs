//! The lightest contradictions: few transactions that wait for each other.
//!
//! *What*: the search that decides takes the first contradiction that it meets, which may speak of many. Here contradictions are
//! looked for by how many transactions they need, those included that inferred edges rest on. What is found is a proposal:
//! whoever asked has it judged as a history of its own.
//!
//! *Steps*: (1) questions are pruned in rounds, as in `crate::passes`; an edge that a round infers remembers the answer that was
//! impossible. (2) When inferred edges close cycles, strongly connected components are what lies on them. (3) There the
//! lightest cycle is looked for: a transaction weighs one, and so does every one that an inferred edge rests on, the ends of the impossible
//! answer's edge and the lightest path that leads back along it:
//!
//! ```text
//!   ¬(V before W), because R read V, and  W ─▶ … ─▶ R:     W → V weighs V, W, R and the path
//! ```
//!
//! (4) Small groups on cycles come first, and the weight that is looked for grows.
//!
//! *Cost*: that of pruning, and shortest paths within bounds, up to `WORK_MAX`. Contradictions that only a case
//! distinction shows are not found.

use crate::constraints::{Constraints, Edge};
use crate::questions::{self, Readers};
use crate::reach::Reach;
use history::{History, TxnId};
use isolation::{Level, Options, Rule};
use rustc_hash::FxHashMap;
use search::constrain::{Known, Nodes};
use search::observe::observe;
use search::problem::{NONE, Problem, Txn};
use solver::{Graph, Lit, Node, Var};

/// What cycles may weigh.
const LIMITS: [u32; 5] = [3, 5, 8, 11, 16];
/// How often conclusions are drawn from conclusions.
const ROUNDS_MAX: usize = 16;
/// How many bytes the closures of all rounds may take.
const ROOM_MAX: usize = 256 << 20;
/// How many edges shortest paths go over.
const WORK_MAX: usize = 100_000_000;
/// How many proposals are made.
const PROPOSALS_MAX: usize = 4;
/// On how many an inferred edge may rest at all.
const SUPPORT_MAX: u32 = 24;

/// Few transactions that have no explanation, the fewest first, as far as that is seen soon.
pub fn proposals(history: &History, level: Level, options: &Options) -> Vec<Vec<TxnId>> {
    let is_order = matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation);
    if !is_order || options.mixed {
        return Vec::new();
    }
    let Ok(problem) = observe(history, options) else { return Vec::new() };
    let known = Known::new(history, &problem, level, options.clock_skew);
    let Ok(constraints) = questions::write(&problem, &known, Readers::Carried, &options.budget) else {
        return Vec::new();
    };
    let rounds = Rounds::of(&problem, &known, &constraints, options);
    let cycles = rounds.cycles();
    let mut scales = Scales {
        nodes: known.nodes,
        constraints: &constraints,
        writers: constraints.pairs.iter().map(|&(one, two, lit)| (lit.var(), [one, two])).collect(),
        problem: &problem,
        rounds,
        weighed: FxHashMap::default(),
        spare: Vec::new(),
        work: 0,
    };
    let mut found: Vec<Vec<Txn>> = Vec::new();
    for group in groups(&problem, &known, &cycles) {
        for limit in LIMITS {
            let lightest = found.iter().map(|cycle| cycle.len() as u32).min().unwrap_or(limit);
            for &txn in &group {
                let is_open = scales.work < WORK_MAX && options.budget.exhausted().is_none();
                if is_open && !found.iter().any(|cycle| cycle.contains(&txn)) {
                    found.extend(scales.cycle(known.nodes.commit(txn), limit.min(lightest), &cycles));
                }
            }
            if lightest < limit {
                break;
            }
        }
    }
    found.sort_by_key(Vec::len);
    found.truncate(PROPOSALS_MAX);
    let names = |txns: Vec<Txn>| txns.into_iter().map(|txn| problem.txns[txn as usize]).collect();
    found.into_iter().map(names).collect()
}

/// The transactions that lie on cycles together. Small groups come first: there is less to weigh.
fn groups(problem: &Problem, known: &Known, cycles: &[u32]) -> Vec<Vec<Txn>> {
    let mut groups: FxHashMap<u32, Vec<Txn>> = FxHashMap::default();
    for txn in 0..problem.len() as Txn {
        groups.entry(cycles[known.nodes.commit(txn) as usize]).or_default().push(txn);
    }
    groups.remove(&NONE);
    let mut groups: Vec<Vec<Txn>> = groups.into_values().collect();
    groups.sort_by_key(|group| (group.len(), group[0]));
    groups
}

/// What is known, and what rounds of conclusions inferred from it.
struct Rounds {
    /// What was known; besides, a node for what comes later in a session: there it is reached without those between.
    known: Graph,
    /// By node: where inferred edges lead, and in which round, from one.
    inferred: Vec<Vec<(Node, usize)>>,
    /// The answers that are impossible, by the edges of their opposites.
    reasons: FxHashMap<Edge, Vec<Lit>>,
    /// Who reached whom before each round.
    reached: Vec<Reach>,
}

impl Rounds {
    /// Concludes until there is a cycle, or nothing more.
    fn of(problem: &Problem, known: &Known, constraints: &Constraints, options: &Options) -> Self {
        let mut edges = constraints.known.clone();
        let graph = graph(problem, known, constraints.nodes, &edges);
        let inferred = vec![Vec::new(); graph.len()];
        let mut rounds = Self { known: graph, inferred, reasons: FxHashMap::default(), reached: Vec::new() };
        let mut open: Vec<Var> = constraints.vars().filter(|&var| constraints.is_must(var)).collect();
        // A closure takes at most so much; see [`crate::reach`].
        let room = constraints.nodes.saturating_mul(constraints.nodes) / 16;
        for round in (1..=ROUNDS_MAX).take_while(|round| round * room <= ROOM_MAX) {
            let Ok(reach) = Reach::of(constraints.nodes, &edges, &options.budget) else { break };
            let before = edges.len();
            let closes = |&(from, to): &Edge| reach.reaches(to, from);
            open.retain(|var| {
                let mut is_open = true;
                for lit in [var.positive(), var.negative()] {
                    // Writers come first. Their order is inferred from readers, in the next round that of other readers from it.
                    let (impossible, known) = (constraints.edges_of(lit), constraints.edges_of(!lit));
                    let inferred = match impossible.iter().position(closes) {
                        Some(0) => &known[1..],
                        Some(_) => &known[..1],
                        None => continue,
                    };
                    is_open &= inferred.len() == 1;
                    rounds.infer(inferred, lit, round, &mut edges);
                }
                is_open
            });
            rounds.reached.push(reach);
            if edges.len() == before || options.budget.exhausted().is_some() {
                break;
            }
        }
        rounds
    }

    /// Edges that hold because an answer is impossible.
    fn infer(&mut self, inferred: &[Edge], impossible: Lit, round: usize, edges: &mut Vec<Edge>) {
        for &(from, to) in inferred {
            if self.known.successors(from).contains(&to) {
                continue;
            }
            let inferred = &mut self.inferred[from as usize];
            match inferred.iter().find(|&&(other, _)| other == to) {
                Some(&(_, earlier)) if earlier < round => {}
                Some(_) => self.reasons.entry((from, to)).or_default().push(impossible),
                None => {
                    inferred.push((to, round));
                    self.reasons.insert((from, to), vec![impossible]);
                    edges.push((from, to));
                }
            }
        }
    }

    /// For each node the number of the cycles that it lies on, together with others.
    fn cycles(&self) -> Vec<u32> {
        let after = |node: Node| {
            let inferred = self.inferred[node as usize].iter().map(|&(to, _)| to);
            self.known.successors(node).iter().copied().chain(inferred)
        };
        let nodes = self.known.len();
        let all = Graph::from_edges(nodes, || {
            (0..nodes as Node).flat_map(|from| after(from).map(move |to| (from, to)))
        });
        let mut number = vec![NONE; nodes];
        for (place, group) in (0..).zip(all.cycles()) {
            group.into_iter().for_each(|node| number[node as usize] = place);
        }
        number
    }
}

fn graph(problem: &Problem, known: &Known, nodes: usize, edges: &[Edge]) -> Graph {
    let later = move |txn: Txn| nodes as Node + txn;
    let txns = if known.session { problem.len() as Txn } else { 0 };
    Graph::from_edges(nodes + txns as usize, || {
        let followers = (0..txns).filter(|&txn| problem.previous[txn as usize] != NONE);
        let sessions = followers.flat_map(move |txn| {
            let previous = problem.previous[txn as usize];
            let done = known.nodes.commit(previous);
            [(done, later(txn)), (later(previous), later(txn)), (later(txn), known.nodes.begin(txn))]
        });
        edges.iter().copied().chain(sessions)
    })
}

/// What was weighed of an edge.
enum Weighed {
    /// It rests on these.
    On(Vec<Txn>),
    /// It rests on more than this.
    Beyond(u32),
}

/// How a node was reached, by the search that did.
#[derive(Clone, Copy, Default)]
struct Step {
    search: u32,
    distance: u32,
    from: Node,
    is_inferred: bool,
}

/// Room for a search.
#[derive(Default)]
struct Steps {
    search: u32,
    steps: Vec<Step>,
}

struct Scales<'p> {
    problem: &'p Problem,
    nodes: Nodes,
    constraints: &'p Constraints,
    /// The two versions that a question is about.
    writers: FxHashMap<Var, [u32; 2]>,
    rounds: Rounds,
    weighed: FxHashMap<Edge, Weighed>,
    spare: Vec<Steps>,
    work: usize,
}

impl Scales<'_> {
    fn txn(&self, node: Node) -> Option<Txn> {
        let txn = self.nodes.txn(node);
        ((txn as usize) < self.problem.len()).then_some(txn)
    }

    /// The lightest cycle through a node, if it does not weigh more than the limit: whom it speaks of.
    fn cycle(&mut self, start: Node, limit: u32, cycles: &[u32]) -> Option<Vec<Txn>> {
        self.lightest(start, start, usize::MAX, limit, |scales, edge, left| {
            let is_on = cycles[edge.1 as usize] == cycles[start as usize];
            is_on.then(|| scales.weight(edge, left)).flatten()
        })
    }

    /// What an inferred edge weighs, if that is not more than so much: its end, and whom it rests on.
    fn weight(&mut self, edge: Edge, limit: u32) -> Option<u32> {
        Some(self.support(edge, limit.checked_sub(1)?)?.len() as u32 + 1)
    }

    /// Whom an inferred edge rests on besides its ends, if these are not more than so many.
    fn support(&mut self, edge: Edge, limit: u32) -> Option<Vec<Txn>> {
        match self.weighed.get(&edge) {
            Some(Weighed::On(txns)) => return (txns.len() as u32 <= limit).then(|| txns.clone()),
            Some(&Weighed::Beyond(least)) if limit <= least => return None,
            _ => {}
        }
        let &(_, round) = self.rounds.inferred[edge.0 as usize].iter().find(|&&(to, _)| to == edge.1)?;
        let ends = [self.txn(edge.0), self.txn(edge.1)];
        let mut best: Option<Vec<Txn>> = None;
        for lit in self.rounds.reasons.get(&edge)?.clone() {
            for (from, to) in self.constraints.edges_of(lit).to_vec() {
                if !self.rounds.reached[round - 1].reaches(to, from) {
                    continue;
                }
                let most = best.as_ref().map_or(limit, |best| (best.len() as u32).saturating_sub(1));
                // One end of the edge may be on the path.
                let path = self.lightest(to, from, round, most + 1, Self::weight);
                let Some(mut txns) = path else { continue };
                let written = self.writers.get(&lit.var()).copied().unwrap_or_default();
                txns.extend(written.map(|version| self.problem.versions[version as usize].txn));
                txns.sort_unstable();
                txns.dedup();
                txns.retain(|&txn| !ends.contains(&Some(txn)));
                if txns.len() as u32 <= most {
                    best = Some(txns);
                }
            }
        }
        self.weighed.insert(edge, best.clone().map_or(Weighed::Beyond(limit), Weighed::On));
        best
    }

    /// The lightest path over what was inferred before a round: whom it speaks of, ends included. Of an inferred edge it is
    /// asked what it weighs, if that is not more than so much.
    fn lightest(
        &mut self,
        start: Node,
        end: Node,
        round: usize,
        limit: u32,
        mut weigh: impl FnMut(&mut Self, Edge, u32) -> Option<u32>,
    ) -> Option<Vec<Txn>> {
        let mut room = self.spare.pop().unwrap_or_default();
        room.steps.resize(self.rounds.known.len(), Step::default());
        room.search += 1;
        let found = self.search(&mut room, start, end, round, limit, &mut weigh);
        let txns = found.and_then(|last| self.unwind(&room, start, last));
        self.spare.push(room);
        txns
    }

    /// Goes on until the end is reached: how it was.
    fn search(
        &mut self,
        room: &mut Steps,
        start: Node,
        end: Node,
        round: usize,
        limit: u32,
        weigh: &mut impl FnMut(&mut Self, Edge, u32) -> Option<u32>,
    ) -> Option<(Node, Step)> {
        let search = room.search;
        let mut waiting: Vec<Vec<Node>> = vec![Vec::new(); limit as usize + 1];
        waiting[0].push(start);
        room.steps[start as usize] = Step { search, distance: 0, from: start, is_inferred: false };
        // A way back to the start is none before it is the shortest.
        let mut back: Option<Step> = None;
        for distance in 0..=limit {
            if let Some(step) = back.filter(|step| step.distance == distance) {
                return Some((start, step));
            }
            let mut place = 0;
            while let Some(&node) = waiting[distance as usize].get(place)
                && self.work <= WORK_MAX
            {
                place += 1;
                if room.steps[node as usize].distance < distance {
                    continue;
                }
                if node == end && start != end {
                    return Some((node, room.steps[node as usize]));
                }
                let mut reach = |to: Node, weight: u32, is_inferred: bool| {
                    let step = Step { search, distance: distance + weight, from: node, is_inferred };
                    if to == start {
                        let is_way = start == end && step.distance > 0 && step.distance <= limit;
                        if is_way && back.is_none_or(|back| step.distance < back.distance) {
                            back = Some(step);
                        }
                        return;
                    }
                    let old = &mut room.steps[to as usize];
                    if step.distance <= limit && (old.search != search || old.distance > step.distance) {
                        *old = step;
                        waiting[step.distance as usize].push(to);
                    }
                };
                let of = self.txn(node);
                self.work += self.rounds.known.successors(node).len();
                for &to in self.rounds.known.successors(node).iter().filter(|&&to| self.leads(to, end, round))
                {
                    reach(to, u32::from(self.txn(to).is_some_and(|txn| of != Some(txn))), false);
                }
                for place in 0..self.rounds.inferred[node as usize].len() {
                    let (to, of_round) = self.rounds.inferred[node as usize][place];
                    self.work += 1;
                    if of_round < round
                        && self.leads(to, end, round)
                        && let Some(weight) = weigh(self, (node, to), limit - distance)
                    {
                        reach(to, weight, true);
                    }
                }
            }
        }
        back.map(|step| (start, step))
    }

    /// Whether a node can lie on a path to another one over what was known before a round.
    fn leads(&self, node: Node, end: Node, round: usize) -> bool {
        let Some(reached) = self.rounds.reached.get(round - 1) else { return true };
        // What comes later in a session than a transaction comes no later than the transaction itself.
        let first_later = self.constraints.nodes as Node;
        let node = if node < first_later { node } else { self.nodes.begin(node - first_later) };
        reached.reaches(node, end)
    }

    /// Whom a path speaks of.
    fn unwind(&mut self, room: &Steps, start: Node, (end, last): (Node, Step)) -> Option<Vec<Txn>> {
        let mut txns: Vec<Txn> = [start, end].into_iter().filter_map(|node| self.txn(node)).collect();
        let (mut node, mut step) = (end, last);
        while step.distance > 0 || step.from != node {
            if step.is_inferred {
                txns.extend(self.support((step.from, node), SUPPORT_MAX)?);
            }
            node = step.from;
            txns.extend(self.txn(node));
            if node == start {
                break;
            }
            step = room.steps[node as usize];
        }
        txns.sort_unstable();
        txns.dedup();
        Some(txns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;
    use isolation::Stats;
    use oracle::tiny::Shape;
    use search::Decision;
    use search::restrict::restrict_for;

    /// What is proposed has no explanation by itself, where values tell who wrote them.
    #[test]
    fn proposals_are_violated() {
        let options = Options::default();
        let levels: Vec<Level> = Level::all().collect();
        let mut proposed = 0;
        for seed in 0..400 {
            let shape = Shape { transactions: (3, 8), unique_values: 100, unknown: 0, ..Shape::registers() };
            let history = shape.history(seed);
            for &level in &levels {
                for txns in proposals(&history, level, &options) {
                    proposed += 1;
                    let part = restrict_for(&history, &txns, level);
                    let decision = search::decide(&part.history, level, &options, &mut Stats::default());
                    let text = || notation::to_string(&history);
                    assert!(
                        matches!(decision, Decision::Impossible(_)),
                        "seed {seed}, {level}: {txns:?}\n{}",
                        text()
                    );
                }
            }
        }
        assert!(proposed > 500, "only {proposed} were proposed");
    }

    /// Two transactions that miss each other's writes are lighter than those that a search may find first.
    #[test]
    fn the_lightest_is_proposed_first() {
        let ring = |first: usize, len: usize| -> String {
            let one = |place: usize| {
                let (own, next) = (first + place, first + (place + 1) % len);
                format!("s{own}: r(k{own},0) w(k{next},{own})\n")
            };
            (0..len).map(one).collect()
        };
        let keys: String = (0..20).map(|key| format!(" k{key}=0")).collect();
        let history = notation::parse(&format!("init:{keys}\n{}{}{}", ring(0, 9), ring(9, 3), ring(12, 6)));
        let history = history.expect("the notation is right");
        let found = proposals(&history, Level::SERIALIZABLE, &Options::default());
        let sizes: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(sizes, [3]);
    }

    #[test]
    fn whoever_lies_between_in_a_session_is_not_needed() {
        let text = "init: x=0\ns: w(x,1) | w(a,1) | w(b,1) | w(c,1) | w(y,1)\nt: r(y,1) r(x,0)\n";
        let history = notation::parse(text).expect("the notation is right");
        let level = Level::new(Rule::Serializable, true, false);
        let found = proposals(&history, level, &Options::default());
        let names = |txns: &Vec<TxnId>| -> Vec<String> {
            txns.iter().map(|&txn| history.transaction(txn).name().to_string()).collect()
        };
        assert_eq!(found.iter().map(names).collect::<Vec<_>>(), [["s:0", "s:4", "t:0"]]);
    }
}
