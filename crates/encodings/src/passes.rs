//! What can be said of constraints before the search: consolidation, pruning, clauses of two.
//!
//! *Consolidation* (Vbox §3.3): two must questions that share an edge have the same answer. If the edge u → v is
//! in `m before n`, it is m → n itself or a reader of m before n; the opposite, n before m, then closes a cycle with
//! it, by m's own edge to its reader. So whoever has the edge has `m before n`, for both questions.
//!
//! *Pruning* (Cobra §3.4; Vbox Algorithm 1; VeriStrong (Cai et al., PVLDB 2026) §6.1.1): an alternative of which some edge leads back
//! along known edges is impossible, so the other one is known, and its edges join the known ones; clauses with one
//! literal left settle that one. Until nothing changes.
//!
//! *Clauses of two* (VeriStrong, Cai et al., PVLDB 2026, §6.1.2): two alternatives whose edges close a cycle with known paths exclude each
//! other.
//!
//! ```text
//!    a ──x──▶ b ⇝ c ──y──▶ d ⇝ a      ¬x ∨ ¬y
//! ```
//!
//! *Cost*: pruning, a transitive closure, and what new edges change in it; clauses of two, the square of the open edges, so only up to
//! [`TWO_WIDTH_EDGES_MAX`] of them.

use crate::constraints::{Constraints, Edge, index};
use crate::reach::{NoClosure, Reach};
use isolation::Budget;
use rustc_hash::{FxHashMap, FxHashSet};
use solver::{Lit, Var};

/// Beyond so many open edges their pairs are not looked at.
const TWO_WIDTH_EDGES_MAX: usize = 20_000;

/// The closure is made anew where more than this share of its edges is new.
const UPDATE_ONE_IN: usize = 10;

// ---- consolidation ----

/// The same constraints with fewer questions.
pub(super) fn consolidate(constraints: &Constraints) -> Constraints {
    let groups = Groups::of(constraints);
    let mut merged = Constraints::new(constraints.nodes, constraints.known.clone());
    let mut edges: FxHashMap<u32, [Vec<Edge>; 2]> = FxHashMap::default();
    for var in constraints.vars() {
        let to = groups.of_lit(var.positive());
        let sides = edges.entry(to.var().0).or_default();
        for (lit, target) in [(var.positive(), to), (var.negative(), !to)] {
            sides[index(target) & 1].extend_from_slice(constraints.edges_of(lit));
        }
    }
    let mut renamed: FxHashMap<u32, Var> = FxHashMap::default();
    for var in constraints.vars() {
        if let Some(mut sides) = edges.remove(&var.0) {
            for side in &mut sides {
                side.sort_unstable();
                side.dedup();
            }
            let [yes, no] = &sides;
            renamed.insert(var.0, merged.ask(yes, no, constraints.is_must(var)));
        }
    }
    let rename = |lit: Lit| {
        let to = groups.of_lit(lit);
        let var = renamed[&to.var().0];
        if to.is_positive() { var.positive() } else { var.negative() }
    };
    for lits in constraints.clauses() {
        merged.clause(&lits.iter().map(|&lit| rename(lit)).collect::<Vec<Lit>>());
    }
    merged.effect = constraints.effect.iter().map(|&(txn, lit)| (txn, rename(lit))).collect();
    merged.pairs =
        constraints.pairs.iter().map(|&(first, second, lit)| (first, second, rename(lit))).collect();
    merged
}

/// Questions with the same answer, or with opposite ones.
struct Groups {
    /// A literal of the same group, nearer to its root, for the positive literal of each variable.
    parent: Vec<Lit>,
}

impl Groups {
    fn of(constraints: &Constraints) -> Self {
        let mut groups = Self { parent: constraints.vars().map(Var::positive).collect() };
        let mut first: FxHashMap<Edge, Lit> = FxHashMap::default();
        for var in constraints.vars().filter(|&var| constraints.is_must(var)) {
            for lit in [var.positive(), var.negative()] {
                for &edge in constraints.edges_of(lit) {
                    let same = *first.entry(edge).or_insert(lit);
                    groups.join(same, lit);
                }
            }
        }
        groups
    }

    fn of_lit(&self, lit: Lit) -> Lit {
        let mut at = lit;
        loop {
            let up = self.parent[at.var().0 as usize];
            if up.var() == at.var() {
                return at;
            }
            at = if at.is_positive() { up } else { !up };
        }
    }

    fn join(&mut self, one: Lit, two: Lit) {
        let (one, two) = (self.of_lit(one), self.of_lit(two));
        // The same literal already; or opposite ones, which the search will find to be impossible.
        if one.var() == two.var() {
            return;
        }
        self.parent[two.var().0 as usize] = if two.is_positive() { one } else { !one };
    }
}

// ---- pruning ----

/// Settles what known edges and clauses settle; false if that is a contradiction.
pub(super) fn prune(constraints: &mut Constraints, budget: &Budget) -> bool {
    let mut reach = None;
    loop {
        if budget.exhausted().is_some() {
            return true;
        }
        let anew = || Reach::of(constraints.nodes, &constraints.known, budget);
        let closure = match reach.take().map_or_else(anew, Ok) {
            Ok(closure) => closure,
            Err(NoClosure::Cycle) => return false,
            Err(NoClosure::TooLarge | NoClosure::GaveUp) => return true,
        };
        let mut found = Vec::new();
        let meter = budget.meter();
        for var in constraints.vars().filter(|var| constraints.settled[var.0 as usize].is_none()) {
            if meter.step().is_err() {
                return true;
            }
            let closes =
                |lit: Lit| constraints.edges_of(lit).iter().any(|&(from, to)| closure.reaches(to, from));
            match (closes(var.positive()), closes(var.negative())) {
                (true, true) => return false,
                (true, false) => found.push(var.negative()),
                (false, true) => found.push(var.positive()),
                (false, false) => {}
            }
        }
        let before = constraints.known.len();
        if !settle(constraints, found.clone()) {
            return false;
        }
        let Some(forced) = propagate(constraints) else { return false };
        if found.is_empty() && forced == 0 {
            return true;
        }
        // A few edges more are added to the closure; for many it is made anew.
        let added = &constraints.known[before..];
        if added.len() <= constraints.known.len() / UPDATE_ONE_IN && closure.is_forward(added) {
            let mut closure = closure;
            if !closure.insert(added) {
                return false;
            }
            reach = Some(closure);
        }
    }
}

/// Makes literals known, with their edges; false if one is known to be false.
fn settle(constraints: &mut Constraints, lits: Vec<Lit>) -> bool {
    for lit in lits {
        match constraints.settled_value(lit) {
            Some(true) => continue,
            Some(false) => return false,
            None => {}
        }
        constraints.settled[lit.var().0 as usize] = Some(lit.is_positive());
        let edges = constraints.edges_of(lit).to_vec();
        constraints.known.extend(edges);
    }
    true
}

/// Settles the last open literal of every clause in which nothing else can hold; how many, or none at a contradiction.
fn propagate(constraints: &mut Constraints) -> Option<usize> {
    let mut count = 0;
    loop {
        let mut units = Vec::new();
        for lits in constraints.clauses() {
            if lits.iter().any(|&lit| constraints.settled_value(lit) == Some(true)) {
                continue;
            }
            let mut open = lits.iter().filter(|&&lit| constraints.settled_value(lit).is_none());
            match (open.next(), open.next()) {
                (None, _) => return None,
                (Some(&only), None) => units.push(only),
                _ => {}
            }
        }
        if units.is_empty() {
            return Some(count);
        }
        count += units.len();
        if !settle(constraints, units) {
            return None;
        }
    }
}

// ---- clauses of two ----

/// Excludes pairs of alternatives that close a cycle together; how many clauses that took.
pub(super) fn two_width(constraints: &mut Constraints, budget: &Budget) -> usize {
    let open = constraints.vars().filter(|var| constraints.settled[var.0 as usize].is_none());
    let lits = open.flat_map(|var| [var.positive(), var.negative()]);
    let edges: Vec<(Edge, Lit)> =
        lits.flat_map(|lit| constraints.edges_of(lit).iter().map(move |&edge| (edge, lit))).collect();
    if edges.len() > TWO_WIDTH_EDGES_MAX {
        return 0;
    }
    let Ok(reach) = Reach::of(constraints.nodes, &constraints.known, budget) else { return 0 };
    let mut pairs: FxHashSet<(Lit, Lit)> = FxHashSet::default();
    let meter = budget.meter();
    for (place, &((from, to), lit)) in edges.iter().enumerate() {
        if meter.steps(place).is_err() {
            break;
        }
        for &((other_from, other_to), other) in &edges[..place] {
            if other.var() != lit.var() && reach.reaches(to, other_from) && reach.reaches(other_to, from) {
                pairs.insert((lit.min(other), lit.max(other)));
            }
        }
    }
    let mut pairs: Vec<(Lit, Lit)> = pairs.into_iter().collect();
    pairs.sort_unstable();
    for &(one, two) in &pairs {
        constraints.clause(&[!one, !two]);
    }
    pairs.len()
}
