//! PolySI's induced graph: snapshot isolation with one node a transaction.
//!
//! *What*: a history satisfies snapshot isolation iff (so ∪ wr ∪ ww) ; rw? can be made acyclic. Dependencies are edges
//! by themselves; an anti-dependency b → c counts only behind a dependency a → b, as the edge a → c.
//!
//! ```text
//!   a ──dep──▶ b ──rw──▶ c          a ───▶ c
//! ```
//!
//! If the dependency is known, the edge belongs to the literal of the anti-dependency, and the other way round; if
//! both are open, it is a question of its own, tied to both by a clause.
//!
//! *Cost*: dependencies · anti-dependencies at every transaction. *Source*: PolySI (Huang et al., VLDB 2023, §3.2 and
//! §4.4). Pruning happened before, on begins and commits, where the same alternatives close the same cycles.

use crate::constraints::{Constraints, Edge, QUESTIONS_MAX, index};
use crate::questions::{certain_readers, initial_reads, live_versions};
use crate::reach::topological;
use crate::whole::{Answer, search};
use crate::{Found, Strategy};
use history::History;
use isolation::{Budget, Level, Options, Rule, Stats, Undecided};
use rustc_hash::FxHashMap;
use search::constrain::Known;
use search::problem::{Problem, Txn};
use solver::{Graph, Lit, Node, Var};

/// Decides by the induced graph; `pruned` are the constraints on begins and commits, and give the witness.
pub(super) fn decide(
    history: &History,
    problem: &Problem,
    pruned: &Constraints,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Found {
    let serial = Level { rule: Rule::Serializable, ..level };
    let known = Known::new(history, problem, serial, options.clock_skew);
    let Some(induced) = Induced::of(problem, &known, pruned, &options.budget) else {
        if let Some(why) = options.budget.exhausted() {
            return Found::Open(why);
        }
        return Found::Open(Undecided::Unsupported(format!(
            "{} would have to ask more than {QUESTIONS_MAX} questions at once",
            Strategy::EagerPolysi
        )));
    };
    match search(&induced, options.passes.polarity, &options.budget, stats) {
        Answer::Order { holds, .. } => {
            // The same answers on begins and commits have an order.
            let mut edges = pruned.known.clone();
            for var in pruned.vars().filter(|var| pruned.settled[var.0 as usize].is_none()) {
                let lit = if holds[index(var.positive())] { var.positive() } else { var.negative() };
                edges.extend_from_slice(pruned.edges_of(lit));
            }
            let position = topological(&Graph::new(pruned.nodes, &edges));
            let position =
                position.expect("what is acyclic in the induced graph is so on begins and commits");
            Found::Explained { position, effective: Vec::new() }
        }
        Answer::Nothing => Found::Impossible,
        Answer::GaveUp(why) => Found::Open(why),
    }
}

/// An edge and whether it holds: always, or with a literal.
type Conditional = (Node, Option<Lit>);

struct Induced<'a> {
    problem: &'a Problem,
    /// Dependencies into each node, and anti-dependencies out of it.
    into: Vec<Vec<Conditional>>,
    out: Vec<Vec<Conditional>>,
    known: Vec<Edge>,
    edges: Vec<Vec<Edge>>,
    both: FxHashMap<(Lit, Lit), Vec<Edge>>,
}

impl<'a> Induced<'a> {
    /// The constraints of the induced graph: first the questions of `pruned` in their order, then pairs of them.
    fn of(problem: &'a Problem, known: &Known, pruned: &Constraints, budget: &Budget) -> Option<Constraints> {
        let nodes = known.node_count(problem);
        let mut induced = Self {
            problem,
            into: vec![Vec::new(); nodes],
            out: vec![Vec::new(); nodes],
            known: Vec::new(),
            edges: vec![Vec::new(); pruned.len() * 2],
            both: FxHashMap::default(),
        };
        for (from, to) in known.edges(problem) {
            induced.depends(from, to, None);
        }
        let readers = certain_readers(problem);
        for &(first, second, lit) in &pruned.pairs {
            for (first, second, lit) in [(first, second, lit), (second, first, !lit)] {
                induced.overwrites(pruned, &readers[first as usize], first, second, lit);
            }
        }
        for read in initial_reads(problem) {
            for version in live_versions(problem, read.key) {
                let writer = problem.versions[version as usize].txn;
                if writer != read.txn {
                    induced.out[read.txn as usize].push((writer, None));
                }
            }
        }
        induced.compose(budget)?;
        Some(induced.finish(nodes, pruned))
    }

    fn depends(&mut self, from: Node, to: Node, condition: Option<Lit>) {
        self.into[to as usize].push((from, condition));
        match condition {
            None => self.known.push((from, to)),
            Some(lit) => self.edges[index(lit)].push((from, to)),
        }
    }

    /// `second` overwrites `first` if the literal holds.
    fn overwrites(&mut self, pruned: &Constraints, readers: &[Txn], first: u32, second: u32, lit: Lit) {
        let condition = match pruned.settled_value(lit) {
            Some(false) => return,
            Some(true) => None,
            None => Some(lit),
        };
        let txn = |version: u32| self.problem.versions[version as usize].txn;
        let (one, two) = (txn(first), txn(second));
        self.depends(one, two, condition);
        for &reader in readers.iter().filter(|&&reader| reader != two) {
            self.out[reader as usize].push((two, condition));
        }
    }

    /// Dependencies, each followed by an anti-dependency; none if there are too many.
    fn compose(&mut self, budget: &Budget) -> Option<()> {
        let meter = budget.meter();
        let mut count = 0;
        for node in 0..self.into.len() {
            meter.steps(1 + self.into[node].len() * self.out[node].len()).ok()?;
            count += self.into[node].len() * self.out[node].len();
            if count > QUESTIONS_MAX * 4 || self.both.len() > QUESTIONS_MAX {
                return None;
            }
            for &(from, dependency) in &self.into[node] {
                for &(to, anti) in &self.out[node] {
                    match (dependency, anti) {
                        (None, None) => self.known.push((from, to)),
                        (Some(lit), None) | (None, Some(lit)) => self.edges[index(lit)].push((from, to)),
                        (Some(one), Some(two)) if one == two => self.edges[index(one)].push((from, to)),
                        (Some(one), Some(two)) if one == !two => {}
                        (Some(one), Some(two)) => {
                            self.both.entry((one.min(two), one.max(two))).or_default().push((from, to));
                        }
                    }
                }
            }
        }
        Some(())
    }

    fn finish(self, nodes: usize, pruned: &Constraints) -> Constraints {
        let mut constraints = Constraints::new(nodes, self.known);
        for var in pruned.vars() {
            let (yes, no) = (&self.edges[index(var.positive())], &self.edges[index(var.negative())]);
            let same: Var = constraints.ask(yes, no, true);
            debug_assert_eq!(same, var);
            constraints.settled[var.0 as usize] = pruned.settled[var.0 as usize];
        }
        let mut both: Vec<_> = self.both.into_iter().collect();
        both.sort_unstable_by_key(|&(pair, _)| pair);
        for ((one, two), edges) in both {
            let together = constraints.ask(&edges, &[], false).positive();
            constraints.clause(&[!one, !two, together]);
        }
        constraints
    }
}
