//! What a caller who drives the search relies on: that every conclusion is drawn, that changes are reported, that what was
//! learnt and forgotten changes no answer.

mod draw;

use draw::Random;
use taipan_solver::{Graph, Lit, Node, Progress, ProofStep, Solver, Var};

/// Variables without edges.
fn plain(vars: usize) -> Solver {
    let mut solver = Solver::new(Graph::new(1, &[]), &[0]);
    for _ in 0..vars {
        solver.new_var(&[], &[]);
    }
    solver
}

fn random_clauses(random: &mut Random, vars: usize, clauses: usize, len: usize) -> Vec<Vec<Lit>> {
    let lit = |random: &mut Random| {
        let var = Var(random.below(vars) as u32);
        if random.below(2) == 0 { var.positive() } else { var.negative() }
    };
    (0..clauses).map(|_| (0..len).map(|_| lit(random)).collect()).collect()
}

/// Whether a clause holds, or leaves a choice.
fn is_at_rest(solver: &Solver, clause: &[Lit]) -> bool {
    let mut open: Vec<Lit> = clause.iter().copied().filter(|&lit| solver.value(lit).is_none()).collect();
    open.sort_unstable();
    open.dedup();
    open.len() > 1 || clause.iter().any(|&lit| solver.value(lit) == Some(true))
}

/// After propagation no clause is falsified and none has only one literal left, whatever was decided, undone and learnt.
#[test]
fn every_conclusion_is_drawn() {
    let (mut conflicts, mut looks) = (0, 0);
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let vars = 10 + random.below(20);
        let len = 3 + random.below(3);
        let clauses = random_clauses(&mut random, vars, 3 * vars, len);
        let mut solver = plain(vars);
        clauses.iter().for_each(|clause| solver.add_clause(clause, 0));
        while solver.propagate() == Progress::Consistent {
            assert!(solver.is_settled(), "seed {seed}");
            for clause in &clauses {
                assert!(is_at_rest(&solver, clause), "seed {seed}: {clause:?} was not followed");
                looks += 1;
            }
            let open: Vec<u32> =
                (0..vars as u32).filter(|&var| solver.value(Var(var).positive()).is_none()).collect();
            let Some(&var) = open.get(random.below(open.len().max(1))) else { break };
            solver.decide(if random.below(2) == 0 { Var(var).positive() } else { Var(var).negative() });
            assert!(!solver.is_settled(), "seed {seed}");
        }
        conflicts += solver.counters().conflicts;
    }
    assert!(conflicts > 1_000 && looks > 100_000, "{conflicts} conflicts, {looks} looks");
}

/// Whoever follows a variable hears of it whenever it got or lost its value.
#[test]
fn what_changed_is_told() {
    let mut changes = 0;
    for seed in 0..1_000 {
        let mut random = Random(seed);
        let vars = 6 + random.below(10);
        let clauses = random_clauses(&mut random, vars, 3 * vars, 3);
        let mut solver = plain(vars);
        let followed: Vec<Var> = (0..vars as u32).step_by(2).map(Var).collect();
        followed.iter().for_each(|&var| solver.watch(var));
        clauses.iter().for_each(|clause| solver.add_clause(clause, 0));
        let mut told = Vec::new();
        let mut before = vec![None; followed.len()];
        while solver.propagate() == Progress::Consistent {
            told.clear();
            solver.take_changed(&mut told);
            assert!(told.iter().all(|var| followed.contains(var)), "seed {seed}: {told:?}");
            for (&var, before) in followed.iter().zip(&mut before) {
                let now = solver.value(var.positive());
                assert!(
                    now == *before || told.contains(&var),
                    "seed {seed}: {var:?} changed and nobody said so"
                );
                changes += usize::from(now != *before);
                *before = now;
            }
            told.clear();
            solver.take_changed(&mut told);
            assert_eq!(told, [], "seed {seed}: told twice");
            let open = (0..vars as u32).map(Var).find(|var| solver.value(var.positive()).is_none());
            let Some(var) = open else { break };
            solver.decide(if random.below(2) == 0 { var.positive() } else { var.negative() });
        }
    }
    assert!(changes > 5_000, "{changes} changes");
}

/// So many pigeons, one hole too few: no short proof, so thousands of clauses are learnt, and half of them forgotten.
fn pigeons(holes: usize) -> (usize, Vec<Vec<Lit>>) {
    let sits = |pigeon: usize, hole: usize| Var((pigeon * holes + hole) as u32);
    let mut clauses: Vec<Vec<Lit>> =
        (0..=holes).map(|it| (0..holes).map(|hole| sits(it, hole).positive()).collect()).collect();
    for hole in 0..holes {
        for one in 0..=holes {
            clauses.extend((0..one).map(|two| vec![sits(one, hole).negative(), sits(two, hole).negative()]));
        }
    }
    ((holes + 1) * holes, clauses)
}

#[test]
fn forgetting_changes_no_answer() {
    let (vars, clauses) = pigeons(10);
    let mut solver = plain(vars);
    clauses.iter().for_each(|clause| solver.add_clause(clause, 0));
    assert_eq!(solver.solve(), Progress::Unsatisfiable);
    let conflicts = solver.counters().conflicts;
    assert!(conflicts > 4_000, "{conflicts} conflicts: nothing was forgotten");

    for seed in 0..6 {
        let mut random = Random(seed);
        let vars = 170;
        let planted: Vec<bool> = (0..vars).map(|_| random.below(2) == 0).collect();
        let holds = |lit: &Lit| planted[lit.var().0 as usize] == lit.is_positive();
        let clauses: Vec<Vec<Lit>> = random_clauses(&mut random, vars, 5 * vars, 3)
            .into_iter()
            .filter(|clause| clause.iter().any(holds))
            .collect();
        let mut solver = plain(vars);
        clauses.iter().for_each(|clause| solver.add_clause(clause, 0));
        assert_eq!(solver.solve(), Progress::Consistent, "seed {seed}");
        let is_true = |lit: &Lit| solver.value(*lit) == Some(true);
        assert!(clauses.iter().all(|clause| clause.iter().any(is_true)), "seed {seed}");
    }
}

/// What is learnt follows from the clauses, so it holds wherever they do; also once half of it was forgotten: what
/// is the reason of something is kept. A history would be called violated for what does not follow.
#[test]
fn what_is_learnt_after_forgetting_follows() {
    let mut most = 0;
    for seed in 0..16 {
        let mut random = Random(seed);
        let vars = 200;
        let planted: Vec<bool> = (0..vars).map(|_| random.below(2) == 0).collect();
        let holds = |lit: &Lit| planted[lit.var().0 as usize] == lit.is_positive();
        // Clauses that hold in several literals tell where the answer is: most are left out.
        let clauses: Vec<Vec<Lit>> = random_clauses(&mut random, vars, 8 * vars, 3)
            .into_iter()
            .filter(|clause| match clause.iter().filter(|lit| holds(lit)).count() {
                0 => false,
                1 => true,
                _ => random.below(4) == 0,
            })
            .collect();
        let mut solver = plain(vars);
        solver.log_proof();
        clauses.iter().for_each(|clause| solver.add_clause(clause, 0));
        assert_eq!(solver.solve(), Progress::Consistent, "seed {seed}");
        for step in solver.proof().expect("it was asked for") {
            if let ProofStep::Learnt { lits } = step {
                assert!(lits.iter().any(holds), "seed {seed}: {lits:?}");
            }
        }
        most = most.max(solver.counters().conflicts);
    }
    assert!(most > 12_000, "{most} conflicts: nothing was forgotten");
}

#[test]
fn who_is_asked_to_stop_stops_and_can_go_on() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    // A question is not asked at every step, so nothing small is interrupted.
    let last = 2_000;
    let mut solver = plain(last as usize + 1);
    let stop = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&stop);
    solver.set_interrupt(move || asked.load(Ordering::Relaxed));
    for var in 0..last {
        solver.add_clause(&[Var(var).negative(), Var(var + 1).positive()], 0);
    }
    solver.decide(Var(0).positive());
    assert_eq!(solver.propagate(), Progress::Interrupted);
    assert!(!solver.is_settled() && solver.value(Var(last).positive()).is_none());
    stop.store(false, Ordering::Relaxed);
    assert_eq!(solver.propagate(), Progress::Consistent);
    assert_eq!(solver.value(Var(last).positive()), Some(true));
}

#[test]
fn a_clause_without_literals_is_the_end() {
    let mut solver = plain(1);
    solver.add_clause(&[Var(0).positive()], 3);
    solver.add_clause(&[], 7);
    assert_eq!(solver.solve(), Progress::Unsatisfiable);
    assert!(!solver.is_settled());
    assert_eq!(solver.core().tags, [7]);
}

/// 2 → 3 is known and stands behind 0 → 1. The edge 3 → 0 turns them round; 1 → 2 would then close a circle.
#[test]
fn an_edge_that_would_close_a_cycle_is_excluded() {
    let mut solver = Solver::new(Graph::new(4, &[(0, 1), (2, 3)]), &[0, 1, 2, 3]);
    let turn = solver.new_var(&[(3, 0)], &[]);
    let close = solver.new_var(&[(1, 2)], &[]);
    let far = solver.new_var(&[(2, 1)], &[]);
    assert!(!solver.agrees(turn.positive()) && solver.agrees(turn.negative()));
    assert!(solver.agrees(close.positive()) && !solver.agrees(far.positive()));
    solver.decide(turn.positive());
    assert_eq!(solver.propagate(), Progress::Consistent);
    assert_eq!(solver.value(close.positive()), Some(false));
    assert_eq!(solver.value(far.positive()), None);
    assert!(
        solver.agrees(turn.positive()) && !solver.agrees(close.positive()) && solver.agrees(far.positive())
    );
    let counters = solver.counters();
    assert_eq!((counters.variables, counters.decisions, counters.exclusions), (3, 1, 1));
    solver.decide(far.positive());
    assert_eq!(solver.propagate(), Progress::Consistent);
    assert_eq!((solver.counters().decisions, solver.counters().propagations), (2, 1));
    assert_eq!(solver.counters().conflicts, 0);
    // Forward from 0: 0, 1. Backward from 3: 3, 2.
    assert_eq!(counters.visited, 4);
}

/// The edge 3 → 0 closes two circles; the one told is the one that rests on fewer decisions.
#[test]
fn the_cycle_with_the_fewest_literals_is_told() {
    for swapped in [false, true] {
        let mut solver = Solver::new(Graph::new(4, &[(0, 1), (1, 2)]), &[0, 1, 2, 3]);
        solver.log_proof();
        let mut var = |edge: (Node, Node)| solver.new_var(&[edge], &[]);
        let two = [var((0, 2)), var((2, 3))];
        let short = var((2, 3));
        let last = var((3, 0));
        let order = if swapped { [short, two[1], two[0], last] } else { [two[0], two[1], short, last] };
        for (tag, var) in order.into_iter().enumerate() {
            solver.add_clause(&[var.positive()], tag as u32);
        }
        assert_eq!(solver.solve(), Progress::Unsatisfiable);
        let cycles: Vec<&ProofStep> = solver
            .proof()
            .into_iter()
            .flatten()
            .filter(|step| matches!(step, ProofStep::Cycle { .. }))
            .collect();
        let [ProofStep::Cycle { lits, nodes }] = cycles[..] else { panic!("{cycles:?}") };
        assert_eq!((lits.len(), nodes.len()), (2, 4), "{lits:?} {nodes:?}");
        let core = solver.core();
        assert_eq!(core.tags.len(), 2, "{core:?}");
    }
}

/// What a core says is in order, each once, however often it was used.
#[test]
fn a_core_is_in_order() {
    let mut cores = 0;
    for seed in 0..500 {
        let mut random = Random(seed);
        let nodes = 5;
        let mut solver = Solver::new(Graph::new(nodes, &[]), &[4, 2, 0, 1, 3]);
        for _ in 0..6 {
            let mut edge = || {
                let from = random.below(nodes);
                (from as Node, ((from + 1 + random.below(nodes - 1)) % nodes) as Node)
            };
            let sets = [vec![edge(), edge()], vec![edge(), edge()]];
            solver.new_var(&sets[0], &sets[1]);
        }
        for (tag, clause) in random_clauses(&mut random, 6, 12, 3).iter().enumerate() {
            solver.add_clause(clause, 100 - tag as u32 / 2);
        }
        if solver.solve() == Progress::Consistent && solver.complete() == Progress::Consistent {
            continue;
        }
        let core = solver.core();
        assert!(core.tags.is_sorted_by(|one, two| one < two), "seed {seed}: {core:?}");
        assert!(core.nodes.is_sorted_by(|one, two| one < two), "seed {seed}: {core:?}");
        cores += 1;
    }
    assert!(cores > 100, "{cores} cores");
}
