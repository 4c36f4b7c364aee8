//! What the solver and a check tell each other: when to stop, and what it cost.

use isolation::{Budget, Stats};
use solver::{Counters, Solver};

/// Makes a solver stop when the budget is used up.
pub fn interrupt(solver: &mut Solver, budget: &Budget) {
    let stop = budget.clone();
    solver.set_interrupt(move || stop.exhausted().is_some());
    if budget.steps_left().is_some() {
        solver.set_interrupt_every(1);
    }
}

/// Records what a search did.
pub fn record_search(stats: &mut Stats, counters: &Counters) {
    let Counters { variables, decisions, propagations, conflicts, exclusions, visited, edges, cycles } =
        *counters;
    let [one, two, three, more] = cycles;
    for (name, count) in [
        ("known_edges", edges),
        ("questions", variables),
        ("decisions", decisions),
        ("propagations", propagations),
        ("exclusions", exclusions),
        ("conflicts", conflicts),
        ("cycles_of_width_1", one),
        ("cycles_of_width_2", two),
        ("cycles_of_width_3", three),
        ("cycles_wider", more),
        ("visited", visited),
    ] {
        stats.record(name, count as f64);
    }
}
