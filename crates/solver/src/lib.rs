//! SAT search with a graph that must stay acyclic (CDCL(T)).
//!
//! A problem is a graph of *known edges* and a set of Boolean variables; either value of a variable
//! brings a set of further edges. Asked is an assignment under which the clauses hold and all edges
//! together form no cycle — or a proof that there is none. The crate knows nothing of what the nodes
//! stand for.
//!
//! The nouns:
//!
//! * [`Graph`] — nodes and known edges, compact and immutable.
//! * [`Solver`] — variables, clauses, the trail, and a *topological order* of all edges that hold at
//!   the moment. The order is the heart: it is repaired locally as edges come, it is never undone, and
//!   it is the model. A variable that nobody decided is as the order has it.
//! * [`Lit`] — a variable or its negation.
//!
//! Two ways to use it. [`Solver::solve`] searches by itself until every clause is satisfied. A caller
//! who can judge an order better than any clause can — who can *replay* it — drives the search: look at
//! [`Solver::position`], add the variables and clauses that speak of what is wrong with it, call
//! [`Solver::decide`] and [`Solver::propagate`], and stop when nothing is wrong any more. Only what was
//! ever wrong is encoded, and only what is wrong now is decided.
//!
//! With the feature `cadical` there is a second search over the same problems, CaDiCaL's, to cross-check this one with.
//!
//! ```
//! use taipan_solver::{Graph, Progress, Solver};
//!
//! // 0 → 1 is known. Either 1 → 2 or 2 → 0; and 0 → 2 if not x.
//! let mut solver = Solver::new(Graph::new(3, &[(0, 1)]), &[0, 1, 2]);
//! let x = solver.new_var(&[(1, 2)], &[(2, 0)]);
//! let y = solver.new_var(&[(2, 1)], &[]);
//! solver.add_clause(&[x.positive(), y.positive()], 0);
//! assert_eq!(solver.solve(), Progress::Consistent);
//! let twice = [x.positive(), y.positive()];
//! solver.add_clause(&twice[..1], 1);
//! solver.add_clause(&twice[1..], 2);
//! assert_eq!(solver.solve(), Progress::Unsatisfiable); // 1 → 2 → 1
//! assert_eq!(solver.core().tags, [1, 2]);
//! ```

mod analyze;
#[cfg(feature = "cadical")]
pub mod cadical;
mod graph;
mod order;
mod proof;
mod search;

pub use graph::{Graph, Node};
pub use proof::{Core, ProofStep};
pub use search::{Counters, Lit, Progress, Solver, Var};
