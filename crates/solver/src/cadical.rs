//! A second back end: CaDiCaL does the search, an external propagator keeps the graph acyclic.
//!
//! *What*: decides a whole problem at once, to cross-check [`Solver`](crate::Solver). The two share the topological
//! order (`order.rs`) and nothing of the search: propagation, learning, decisions and restarts are CaDiCaL's
//! (Biere et al., CAV 2024), through the interface of Fazekas et al., "IPASIR-UP: User Propagators for CDCL" (SAT 2023).
//!
//! *Invariant*: the edges in the order are those of `trail[..inserted]`, in that order; a conflict found is handed out
//! as a clause before anything else is inserted.
//!
//! *Steps*: assignments only lengthen the trail; when CaDiCaL asks for a clause or shows a model, the edges of what is
//! new are inserted, and the first that closes a cycle gives the clause that excludes it; backtracking shortens the
//! trail and takes its edges back.
//!
//! Behind the feature `cadical`, because it compiles CaDiCaL from its sources.

use crate::graph::{Graph, Node};
use crate::order::Order;
use crate::search::{Lit, Var};
use cadical_sys::{CaDiCal, ExternalPropagator, Status};

/// The edges that the two values of a variable bring: true, false.
pub type EdgeSets = [Vec<(Node, Node)>; 2];

/// An assignment of all variables under which all clauses hold and all edges form no cycle; none if there is none.
/// `position` is as for [`Solver::new`](crate::Solver::new); variables count from 0.
pub fn decide(graph: Graph, position: &[u32], vars: &[EdgeSets], clauses: &[Vec<Lit>]) -> Option<Vec<bool>> {
    let mut search = CaDiCal::new();
    search.declare_more_variables(vars.len() as i32);
    search.connect_external_propagator(Acyclic {
        order: Order::new(graph, position),
        edges: vars.to_vec(),
        trail: Vec::new(),
        marks: Vec::new(),
        levels: Vec::new(),
        clause: Vec::new(),
        is_handing_out: false,
    });
    for var in 1..=vars.len() as i32 {
        search.add_observed_var(var);
    }
    for lits in clauses {
        for &lit in lits {
            search.add(number(lit));
        }
        search.add(0);
    }
    match search.solve() {
        Status::SATISFIABLE => Some((1..=vars.len() as i32).map(|var| search.val(var) > 0).collect()),
        Status::UNSATISFIABLE => None,
        Status::UNKNOWN => unreachable!("nothing interrupts it"),
    }
}

/// CaDiCaL's number of a literal.
fn number(lit: Lit) -> i32 {
    let var = lit.var().0 as i32 + 1;
    if lit.is_positive() { var } else { -var }
}

fn literal(number: i32) -> Lit {
    let var = Var(number.unsigned_abs() - 1);
    if number > 0 { var.positive() } else { var.negative() }
}

/// Keeps the edges of assigned literals acyclic.
struct Acyclic {
    order: Order,
    edges: Vec<EdgeSets>,
    trail: Vec<Lit>,
    /// The order's mark before each literal whose edges are inserted.
    marks: Vec<usize>,
    /// The trail's length before each decision level.
    levels: Vec<usize>,
    /// What is still to be handed out of a clause, last literal first.
    clause: Vec<i32>,
    is_handing_out: bool,
}

impl Acyclic {
    /// Inserts what is new; false if that closes a cycle, and then the clause is ready.
    fn catch_up(&mut self) -> bool {
        while let Some(&lit) = self.trail.get(self.marks.len()) {
            let mark = self.order.mark();
            let edges = &self.edges[lit.var().0 as usize][usize::from(!lit.is_positive())];
            for &(from, to) in edges {
                if let Err(cycle) = self.order.insert(from, to, lit, |_| false, &mut Vec::new()) {
                    self.order.undo_to(mark);
                    self.clause = cycle.lits.iter().map(|&lit| -number(lit)).collect();
                    return false;
                }
            }
            self.marks.push(mark);
        }
        true
    }
}

impl ExternalPropagator for Acyclic {
    fn notify_assignment(&mut self, lits: &[i32]) {
        self.trail.extend(lits.iter().map(|&lit| literal(lit)));
    }

    fn notify_new_decision_level(&mut self) {
        self.levels.push(self.trail.len());
    }

    fn notify_backtrack(&mut self, new_level: usize) {
        let Some(&len) = self.levels.get(new_level) else { return };
        self.levels.truncate(new_level);
        self.trail.truncate(len);
        if let Some(&mark) = self.marks.get(len) {
            self.order.undo_to(mark);
            self.marks.truncate(len);
        }
        // What was found may not be so any more; if it is, it will be found again.
        if !self.is_handing_out {
            self.clause.clear();
        }
    }

    fn cb_check_found_model(&mut self, _model: &[i32]) -> bool {
        self.clause.is_empty() && self.catch_up()
    }

    fn cb_has_external_clause(&mut self, is_forgettable: &mut bool) -> bool {
        *is_forgettable = false;
        !self.clause.is_empty() || !self.catch_up()
    }

    fn cb_add_external_clause_lit(&mut self) -> i32 {
        let lit = self.clause.pop();
        self.is_handing_out = lit.is_some();
        lit.unwrap_or(0)
    }
}
