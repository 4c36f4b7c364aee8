//! The solver against brute force on tens of thousands of tiny random problems, driven both ways:
//! by its own search and by a caller that adds clauses in between; and every proof re-checked.

mod draw;

use draw::Random;
use taipan_solver::{Graph, Lit, Node, Progress, ProofStep, Solver, Var};

#[derive(Debug)]
struct Problem {
    nodes: usize,
    known: Vec<(Node, Node)>,
    vars: Vec<[Vec<(Node, Node)>; 2]>,
    clauses: Vec<Vec<(usize, bool)>>,
}

impl Problem {
    fn random(random: &mut Random) -> Self {
        let nodes = 2 + random.below(6);
        let edge = |random: &mut Random| (random.below(nodes) as Node, random.below(nodes) as Node);
        // Known edges lead forward in the identity order, so that it is a legal start.
        let known = (0..random.below(5))
            .map(|_| edge(random))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| (from.min(to), from.max(to)))
            .collect();
        let edges = |random: &mut Random| {
            (0..random.below(3)).map(|_| edge(random)).filter(|(from, to)| from != to).collect::<Vec<_>>()
        };
        let vars: Vec<_> = (0..1 + random.below(7)).map(|_| [edges(random), edges(random)]).collect();
        let clauses = (0..random.below(10))
            .map(|_| {
                (0..1 + random.below(3)).map(|_| (random.below(vars.len()), random.below(2) == 0)).collect()
            })
            .collect();
        Self { nodes, known, vars, clauses }
    }

    fn acyclic(&self, assignment: u32) -> bool {
        let mut edges = self.known.clone();
        for (index, sets) in self.vars.iter().enumerate() {
            edges.extend(&sets[usize::from(assignment >> index & 1 == 0)]);
        }
        // Kahn: take away sources until none is left.
        let mut left: Vec<Node> = (0..self.nodes as Node).collect();
        loop {
            let before = left.len();
            let present = left.clone();
            left.retain(|&node| edges.iter().any(|&(from, to)| to == node && present.contains(&from)));
            match left.len() {
                0 => return true,
                now if now == before => return false,
                _ => {}
            }
        }
    }

    fn satisfied(&self, assignment: u32) -> bool {
        self.clauses
            .iter()
            .all(|clause| clause.iter().any(|&(var, positive)| (assignment >> var & 1 == 1) == positive))
    }

    fn solvable(&self) -> bool {
        (0..1 << self.vars.len()).any(|assignment| self.satisfied(assignment) && self.acyclic(assignment))
    }
}

fn lit(clause: (usize, bool)) -> Lit {
    let var = Var(clause.0 as u32);
    if clause.1 { var.positive() } else { var.negative() }
}

fn solver_for(problem: &Problem) -> Solver {
    let start: Vec<u32> = (0..problem.nodes as u32).collect();
    let mut solver = Solver::new(Graph::new(problem.nodes, &problem.known), &start);
    solver.log_proof();
    for [when_true, when_false] in &problem.vars {
        solver.new_var(when_true, when_false);
    }
    solver
}

#[test]
fn agrees_with_brute_force() {
    for seed in 0..30_000 {
        let mut random = Random(seed);
        let problem = Problem::random(&mut random);
        let mut solver = solver_for(&problem);
        // Some clauses before the search, some in the middle of it, after random decisions.
        let late = random.below(problem.clauses.len() + 1);
        for (tag, clause) in problem.clauses[..late].iter().enumerate() {
            solver.add_clause(&clause.iter().map(|&it| lit(it)).collect::<Vec<_>>(), tag as u32);
        }
        for (tag, clause) in problem.clauses.iter().enumerate().skip(late) {
            if solver.propagate() == Progress::Consistent {
                let choice = lit((random.below(problem.vars.len()), random.below(2) == 0));
                if solver.value(choice).is_none() {
                    solver.decide(choice);
                    solver.propagate();
                }
            }
            solver.add_clause(&clause.iter().map(|&it| lit(it)).collect::<Vec<_>>(), tag as u32);
        }
        let progress = match solver.solve() {
            Progress::Consistent => solver.complete(),
            other => other,
        };
        match progress {
            Progress::Consistent => {
                let assignment = (0..problem.vars.len())
                    .filter(|&var| solver.value(lit((var, true))) == Some(true))
                    .fold(0, |bits, var| bits | 1 << var);
                assert!(problem.satisfied(assignment), "seed {seed}: a clause is not satisfied: {problem:?}");
                assert!(problem.acyclic(assignment), "seed {seed}: there is a cycle: {problem:?}");
                for &(from, to) in &problem.known {
                    assert!(solver.position(from) < solver.position(to), "seed {seed}");
                }
            }
            Progress::Unsatisfiable => {
                assert!(!problem.solvable(), "seed {seed}: called unsatisfiable: {problem:?}");
                check_proof(&problem, &solver, seed);
                let tags = solver.core().tags;
                let kept = tags.iter().map(|&tag| problem.clauses[tag as usize].clone()).collect();
                let core = Problem { clauses: kept, ..problem };
                assert!(!core.solvable(), "seed {seed}: the core is satisfiable: {core:?}");
            }
            Progress::Interrupted => unreachable!("nobody interrupts"),
        }
    }
}

/// Every lemma's cycle exists; every learnt clause follows by unit propagation; so does the end.
fn check_proof(problem: &Problem, solver: &Solver, seed: u64) {
    let mut clauses: Vec<Vec<Lit>> = Vec::new();
    for step in solver.proof().expect("it was asked for") {
        match step {
            ProofStep::Input { lits, tag } => {
                let mut input: Vec<Lit> = problem.clauses[*tag as usize].iter().map(|&it| lit(it)).collect();
                input.sort_unstable();
                input.dedup();
                let mut lits = lits.clone();
                lits.sort_unstable();
                assert_eq!(lits, input, "seed {seed}");
                clauses.push(lits);
            }
            ProofStep::Cycle { lits, nodes } => {
                assert_cycle(problem, lits, nodes, seed);
                clauses.push(lits.clone());
            }
            ProofStep::Learnt { lits } => {
                assert!(refutes(&clauses, lits), "seed {seed}: {lits:?} does not follow");
                clauses.push(lits.clone());
            }
        }
    }
    assert!(refutes(&clauses, &[]), "seed {seed}: the proof does not end in a contradiction");
}

fn assert_cycle(problem: &Problem, lits: &[Lit], nodes: &[Node], seed: u64) {
    let available = |from: Node, to: Node| {
        problem.known.contains(&(from, to))
            || lits.iter().any(|&it| {
                let sets = &problem.vars[it.var().0 as usize];
                // The clause holds the negations of the literals whose edges are used.
                sets[usize::from(it.is_positive())].contains(&(from, to))
            })
    };
    assert!(!nodes.is_empty(), "seed {seed}: {lits:?} without a cycle");
    let mut each = lits.to_vec();
    each.sort_unstable();
    each.dedup();
    assert_eq!(each.len(), lits.len(), "seed {seed}: {lits:?} says something twice");
    for (index, &from) in nodes.iter().enumerate() {
        let to = nodes[(index + 1) % nodes.len()];
        assert!(available(from, to), "seed {seed}: {from} → {to} is no edge of {lits:?} in {problem:?}");
    }
}

/// Whether supposing all of `lits` false leads to a falsified clause by unit propagation.
fn refutes(clauses: &[Vec<Lit>], lits: &[Lit]) -> bool {
    let mut truths: Vec<Lit> = lits.iter().map(|&it| !it).collect();
    loop {
        let mut grew = false;
        for clause in clauses {
            if clause.iter().any(|it| truths.contains(it)) {
                continue;
            }
            let open: Vec<Lit> = clause.iter().copied().filter(|&it| !truths.contains(&!it)).collect();
            match open[..] {
                [] => return true,
                [unit] => {
                    truths.push(unit);
                    grew = true;
                }
                _ => {}
            }
        }
        if !grew {
            return false;
        }
    }
}

/// Whoever keeps something in the order hears of every node that changed its place in it.
#[test]
fn what_moved_is_told() {
    let mut moves = 0;
    for seed in 0..3_000 {
        let mut random = Random(seed);
        let problem = Problem::random(&mut random);
        let graph = Graph::new(problem.nodes, &problem.known);
        let position: Vec<u32> = (0..problem.nodes as u32).collect();
        let mut solver = Solver::new(graph, &position);
        assert_eq!(solver.nodes(), problem.nodes);
        let places = |solver: &Solver| -> Vec<u32> {
            (0..problem.nodes as Node).map(|node| solver.position(node)).collect()
        };
        let mut before = places(&solver);
        let mut moved = Vec::new();
        for [yes, no] in &problem.vars {
            let var = solver.new_var(yes, no);
            if solver.propagate() != Progress::Consistent {
                break;
            }
            if solver.value(var.positive()).is_none() {
                solver.decide(if random.below(2) == 0 { var.positive() } else { var.negative() });
            }
            let progress = solver.propagate();
            moved.clear();
            solver.take_moved(&mut moved);
            let now = places(&solver);
            for node in (0..problem.nodes).filter(|&node| now[node] != before[node]) {
                assert!(moved.contains(&(node as Node)), "seed {seed}: {node} moved and nobody said so");
                moves += 1;
            }
            before = now;
            if progress != Progress::Consistent {
                break;
            }
        }
    }
    assert!(moves > 500, "{moves} moves");
}
