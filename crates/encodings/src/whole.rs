//! The search over whole constraints.
//!
//! *Steps*: propagate; find the first clause in which nothing holds and decide one of its literals; when all hold,
//! decide the first open must question; when there is none, the solver's order is the answer. After a conflict start
//! from the beginning, because answers were taken back. *Polarity*: what the current order has already is preferred
//! (VeriStrong, Cai et al., PVLDB 2026, §6.2).

use crate::constraints::Constraints;
use crate::reach::topological;
use isolation::{Budget, Stats, Undecided};
use search::solving::{interrupt, record_search};
use solver::{Graph, Lit, Node, Progress, ProofStep, Solver, Var};

/// How a search ended.
pub(super) enum Answer {
    /// An order of the nodes, and which literals hold, by [`index`](crate::constraints::index).
    Order {
        position: Vec<u32>,
        holds: Vec<bool>,
    },
    /// There is none.
    Nothing,
    GaveUp(Undecided),
}

/// Questions and clauses that are expected to have no answer.
#[derive(Default)]
pub struct Refutable(Constraints);

impl Refutable {
    /// A question, and the edges that either answer brings.
    pub fn ask(&mut self, yes: &[(Node, Node)], no: &[(Node, Node)]) -> Var {
        self.0.ask(yes, no, false)
    }

    /// One of these literals holds.
    pub fn clause(&mut self, lits: &[Lit]) {
        self.0.clause(lits);
    }
}

/// The proof that there is no answer, if there is none and it is found in time.
pub fn refute(refutable: Refutable, nodes: usize, budget: &Budget) -> Option<Vec<ProofStep>> {
    let mut constraints = refutable.0;
    constraints.nodes = nodes;
    let position: Vec<u32> = (0..nodes as u32).collect();
    let mut solver = Solver::new(Graph::new(nodes, &[]), &position);
    solver.log_proof();
    fill(&mut solver, &constraints, budget);
    match run(&mut solver, &constraints, true, budget) {
        Answer::Nothing => solver.proof().map(<[ProofStep]>::to_vec),
        _ => None,
    }
}

pub(super) fn search(
    constraints: &Constraints,
    polarity: bool,
    budget: &Budget,
    stats: &mut Stats,
) -> Answer {
    if let Some(why) = budget.exhausted() {
        return Answer::GaveUp(why);
    }
    let graph = Graph::new(constraints.nodes, &constraints.known);
    let Some(position) = topological(&graph) else { return Answer::Nothing };
    let mut solver = Solver::new(graph, &position);
    fill(&mut solver, constraints, budget);
    let answer = run(&mut solver, constraints, polarity, budget);
    record_search(stats, &solver.counters());
    answer
}

/// Hands the constraints to the solver.
fn fill(solver: &mut Solver, constraints: &Constraints, budget: &Budget) {
    interrupt(solver, budget);
    for var in constraints.vars() {
        match constraints.settled[var.0 as usize] {
            None => {
                let (yes, no) = (var.positive(), var.negative());
                solver.new_var(constraints.edges_of(yes), constraints.edges_of(no))
            }
            Some(answer) => {
                // Its edges are known by now.
                let var = solver.new_var(&[], &[]);
                solver.add_clause(&[if answer { var.positive() } else { var.negative() }], 0);
                var
            }
        };
    }
    for lits in constraints.clauses() {
        solver.add_clause(lits, 0);
    }
}

fn run(solver: &mut Solver, constraints: &Constraints, polarity: bool, budget: &Budget) -> Answer {
    let (mut clause, mut question, mut conflicts) = (0, 0, 0);
    let meter = budget.meter();
    loop {
        match solver.propagate() {
            Progress::Consistent => {}
            Progress::Unsatisfiable => return Answer::Nothing,
            Progress::Interrupted => {
                return Answer::GaveUp(budget.exhausted().unwrap_or(Undecided::Cancelled));
            }
        }
        if let Err(why) = meter.step() {
            return Answer::GaveUp(why);
        }
        let seen = solver.counters().conflicts;
        if seen != conflicts {
            (clause, question, conflicts) = (0, 0, seen);
        }
        if let Some(lit) = next(solver, constraints, polarity, &mut clause, &mut question) {
            solver.decide(lit);
        } else {
            let position = (0..constraints.nodes as u32).map(|node| solver.position(node)).collect();
            let lits = constraints.vars().flat_map(|var| [var.positive(), var.negative()]);
            let holds = lits.map(|lit| solver.value(lit) == Some(true)).collect();
            return Answer::Order { position, holds };
        }
    }
}

/// What to decide next.
fn next(
    solver: &Solver,
    constraints: &Constraints,
    polarity: bool,
    clause: &mut usize,
    question: &mut u32,
) -> Option<Lit> {
    while *clause < constraints.clause_count() {
        let lits = constraints.clause_at(*clause);
        if lits.iter().any(|&lit| solver.value(lit) == Some(true)) {
            *clause += 1;
            continue;
        }
        let open = || lits.iter().copied().filter(|&lit| solver.value(lit).is_none());
        let agreed = open().find(|&lit| polarity && solver.agrees(lit));
        return agreed.or_else(|| open().next());
    }
    while (*question as usize) < constraints.len() {
        let var = Var(*question);
        if !constraints.is_must(var) || solver.value(var.positive()).is_some() {
            *question += 1;
            continue;
        }
        let is_no = polarity && !solver.agrees(var.positive());
        return Some(if is_no { var.negative() } else { var.positive() });
    }
    None
}
