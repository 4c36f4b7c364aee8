//! Our search and CaDiCaL's on the same random problems, from tiny to a hundred variables.

mod draw;

use draw::Random;
use taipan_solver::cadical::{self, EdgeSets};
use taipan_solver::{Graph, Lit, Node, Progress, Solver, Var};

struct Problem {
    nodes: usize,
    known: Vec<(Node, Node)>,
    vars: Vec<EdgeSets>,
    clauses: Vec<Vec<Lit>>,
}

impl Problem {
    fn random(seed: u64) -> Self {
        let mut random = Random(seed);
        let nodes = 2 + random.below(if seed.is_multiple_of(4) { 40 } else { 8 });
        let edge = |random: &mut Random| loop {
            let (from, to) = (random.below(nodes) as Node, random.below(nodes) as Node);
            if from != to {
                return (from, to);
            }
        };
        let known = (0..random.below(nodes))
            .map(|_| edge(&mut random))
            .map(|(from, to)| (from.min(to), from.max(to)))
            .collect();
        let count = 1 + random.below(2 * nodes);
        let vars = (0..count)
            .map(|_| [0, 1].map(|_| (0..random.below(3)).map(|_| edge(&mut random)).collect()))
            .collect();
        let clauses = (0..random.below(2 * count))
            .map(|_| {
                let lit = |random: &mut Random| {
                    let var = Var(random.below(count) as u32);
                    if random.below(2) == 0 { var.positive() } else { var.negative() }
                };
                (0..1 + random.below(4)).map(|_| lit(&mut random)).collect()
            })
            .collect();
        Self { nodes, known, vars, clauses }
    }

    fn graph(&self) -> Graph {
        Graph::new(self.nodes, &self.known)
    }

    fn ours(&self) -> bool {
        let position: Vec<u32> = (0..self.nodes as u32).collect();
        let mut solver = Solver::new(self.graph(), &position);
        for [yes, no] in &self.vars {
            solver.new_var(yes, no);
        }
        for clause in &self.clauses {
            solver.add_clause(clause, 0);
        }
        solver.solve() == Progress::Consistent && solver.complete() == Progress::Consistent
    }

    /// Whether an assignment is a solution: the edges are taken away from their sources until none is left.
    fn is_solved_by(&self, values: &[bool]) -> bool {
        let holds = |lit: &Lit| values[lit.var().0 as usize] == lit.is_positive();
        let mut edges = self.known.clone();
        for (value, sets) in values.iter().zip(&self.vars) {
            edges.extend(&sets[usize::from(!value)]);
        }
        loop {
            let before = edges.len();
            let targets: Vec<Node> = edges.iter().map(|&(_, to)| to).collect();
            edges.retain(|(from, _)| targets.contains(from));
            if edges.len() == before {
                return edges.is_empty() && self.clauses.iter().all(|clause| clause.iter().any(holds));
            }
        }
    }
}

#[test]
fn both_searches_agree() {
    let mut counts = [0, 0];
    for seed in 0..4_000 {
        let problem = Problem::random(seed);
        let position: Vec<u32> = (0..problem.nodes as u32).collect();
        let theirs = cadical::decide(problem.graph(), &position, &problem.vars, &problem.clauses);
        assert_eq!(theirs.is_some(), problem.ours(), "seed {seed}");
        if let Some(values) = &theirs {
            assert!(problem.is_solved_by(values), "seed {seed}: {values:?}");
        }
        counts[usize::from(theirs.is_some())] += 1;
    }
    assert!(counts[0] > 400 && counts[1] > 400, "{} without a solution, {} with one", counts[0], counts[1]);
}
