//! The constraints as SMT-LIB 2, so that any solver can decide them again.
//!
//! *What*: every transaction is an integer, its place in the order (at snapshot isolation two: begin and commit); an
//! edge is `<`; a question is a Boolean that implies its edges; clauses are disjunctions. The logic is `QF_IDL`.
//! `sat` means that the history is possible, `unsat` that it is not.
//!
//! The encoding is that of [`Strategy::EagerPairs`](crate::Strategy::EagerPairs): every question by itself, nothing
//! reduced.

use crate::constraints::{Constraints, Unwritten};
use crate::questions::{self, Readers};
use history::History;
use isolation::{Level, Options, Rule, Undecided};
use search::constrain::Known;
use search::observe::observe;
use search::problem::Problem;
use search::refusal::Refusal;
use solver::{Lit, Node};
use std::fmt;
use std::io;

/// Why nothing is written.
#[derive(Debug)]
pub enum Unwritable {
    /// The level or the history is beyond what is encoded; the sentence says why.
    Beyond(String),
    /// A limit ended the work.
    Open(Undecided),
    /// The output failed.
    Io(io::Error),
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beyond(why) => f.write_str(why),
            Self::Open(why) => why.fmt(f),
            Self::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unwritable {}

impl From<io::Error> for Unwritable {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes what must hold if a history is possible under a level.
pub fn write(
    history: &History,
    level: Level,
    options: &Options,
    out: &mut dyn io::Write,
) -> Result<(), Unwritable> {
    if !matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation) {
        return Err(Unwritable::Beyond(format!(
            "only serializability, snapshot isolation and their variants are written as SMT-LIB, not {level}"
        )));
    }
    writeln!(out, "; Is there an order of the transactions that explains what clients saw, under {level}?")?;
    writeln!(out, "; sat: yes. unsat: no.")?;
    writeln!(out, "(set-logic QF_IDL)")?;
    match observe(history, options) {
        Err(Refusal::Open(why)) => return Err(Unwritable::Open(why)),
        Err(Refusal::Unsupported(what)) => return Err(Unwritable::Beyond(format!("beyond SMT-LIB: {what}"))),
        Err(Refusal::Contradiction(_)) => {
            writeln!(out, "; Some result is impossible in any order.")?;
            writeln!(out, "(assert false)")?;
        }
        Ok(problem) if !problem.matches.is_empty() => {
            let what = "predicate writes that do not report their keys";
            return Err(Unwritable::Beyond(format!("beyond SMT-LIB: {what}")));
        }
        Ok(problem) => {
            let known = Known::new(history, &problem, level, options.clock_skew);
            match questions::write(&problem, &known, Readers::Apart, &options.budget) {
                Ok(constraints) => {
                    Script { history, problem: &problem, known: &known, out }.write(&constraints)?
                }
                Err(Unwritten::Contradiction) => writeln!(out, "(assert false)")?,
                Err(Unwritten::Open(why)) => return Err(Unwritable::Open(why)),
                Err(Unwritten::TooLarge { questions }) => {
                    return Err(Unwritable::Beyond(format!("there are more than {questions} questions")));
                }
            }
        }
    }
    writeln!(out, "(check-sat)")?;
    Ok(())
}

struct Script<'a> {
    history: &'a History,
    problem: &'a Problem,
    known: &'a Known,
    out: &'a mut dyn io::Write,
}

impl Script<'_> {
    fn write(&mut self, constraints: &Constraints) -> io::Result<()> {
        for node in 0..constraints.nodes as Node {
            let txn = self.known.nodes.txn(node) as usize;
            let name = self.name(node);
            match self.problem.txns.get(txn) {
                Some(&txn) => {
                    let shown = format!("{:?}", self.history.transaction(txn).name().to_string());
                    writeln!(self.out, "(declare-const {name} Int) ; {shown}")?;
                }
                None => writeln!(self.out, "(declare-const {name} Int) ; a point in time")?,
            }
        }
        writeln!(self.out, "; What every explanation has.")?;
        for &edge in &constraints.known {
            writeln!(self.out, "(assert {})", self.edge(edge))?;
        }
        writeln!(self.out, "; Questions, and what either answer brings.")?;
        for var in constraints.vars() {
            writeln!(self.out, "(declare-const q{} Bool)", var.0)?;
            for lit in [var.positive(), var.negative()] {
                for &edge in constraints.edges_of(lit) {
                    writeln!(self.out, "(assert (=> {} {}))", literal(lit), self.edge(edge))?;
                }
            }
        }
        writeln!(self.out, "; What answers must hold together.")?;
        for lits in constraints.clauses() {
            let lits: Vec<String> = lits.iter().map(|&lit| literal(lit)).collect();
            writeln!(self.out, "(assert (or false {}))", lits.join(" "))?;
        }
        Ok(())
    }

    fn edge(&self, (from, to): (Node, Node)) -> String {
        format!("(< {} {})", self.name(from), self.name(to))
    }

    fn name(&self, node: Node) -> String {
        let nodes = self.known.nodes;
        let txn = nodes.txn(node);
        if txn as usize >= self.problem.len() {
            format!("time{node}")
        } else if nodes.points == 1 {
            format!("t{txn}")
        } else if node == nodes.begin(txn) {
            format!("begin{txn}")
        } else {
            format!("commit{txn}")
        }
    }
}

fn literal(lit: Lit) -> String {
    let name = format!("q{}", lit.var().0);
    if lit.is_positive() { name } else { format!("(not {name})") }
}
