//! Proofs for certificates: why a core that is too large to try all orders of has no explanation.
//!
//! *What*: writes down what must hold of the core with one variable for every two events that matter — which comes
//! first — and lets the solver find the contradiction, keeping every clause it learns. The cycles and learnt clauses,
//! in order, are the proof; [`crate::certify`] checks it with code of its own and works out for itself what must hold.
//!
//! *Cost*: the search, with nothing known beforehand: cores are small. *Source*: algorithms.md §8.

use crate::certify::{Atom, Certificate, Lemma};
use crate::eager::{Refutable, refute};
use crate::levels::{Level, Rule};
use crate::observe::{INITIAL, NONE, Problem, Read, Standing, Txn, observe};
use crate::verdict::Options;
use history::History;
use rustc_hash::FxHashMap;
use solver::{Lit, Node, ProofStep, Var};

/// Cores up to this size are tried in all orders; that needs no proof.
const TRIED_MAX: usize = 12;

/// Gives the certificate of a violation a proof, if its core is large and of a kind that proofs cover.
pub fn add_proof(certificate: &mut Certificate<'_>, history: &History, options: &Options) {
    let Some(part) = certificate.part(history).filter(|part| part.len() > TRIED_MAX) else { return };
    if let Some(proof) = prove(&part, certificate.level, options) {
        certificate.set_proof(proof);
    }
}

fn prove(part: &History, level: Level, options: &Options) -> Option<Vec<Lemma>> {
    let problem = observe(part, options.ryow).ok()?;
    let is_covered = problem.matches.is_empty()
        && problem.chains.is_empty()
        && problem.standing.iter().all(|&it| it == Standing::In);
    if !is_covered || problem.len() != part.len() {
        return None;
    }
    let mut question = Question {
        part,
        problem: &problem,
        snapshots: level.rule == Rule::SnapshotIsolation,
        refutable: Refutable::new(),
        before: FxHashMap::default(),
        atoms: Vec::new(),
    };
    question.orders(level, options.clock_skew);
    question.writers();
    for read in &problem.reads {
        question.read(read);
    }
    let nodes = problem.len() * if question.snapshots { 2 } else { 1 };
    let steps = refute(question.refutable, nodes, &options.budget)?;
    let lemmas = steps.iter().filter_map(|step| match step {
        ProofStep::Input { .. } => None,
        ProofStep::Cycle { nodes, .. } => Some(Lemma::Cycle(nodes.clone())),
        ProofStep::Learnt { lits } => {
            Some(Lemma::Clause(lits.iter().map(|&lit| atom(&question.atoms, lit)).collect()))
        }
    });
    Some(lemmas.collect())
}

fn atom(atoms: &[Atom], lit: Lit) -> Atom {
    match (atoms[lit.var().0 as usize], lit.is_positive()) {
        (atom, true) => atom,
        (Atom::Before(first, second), false) => Atom::Before(second, first),
        (Atom::Saw(txn, op, source) | Atom::Missed(txn, op, source), false) => Atom::Missed(txn, op, source),
    }
}

struct Question<'a> {
    part: &'a History,
    problem: &'a Problem,
    snapshots: bool,
    refutable: Refutable,
    before: FxHashMap<(Node, Node), Var>,
    /// What each variable says.
    atoms: Vec<Atom>,
}

impl Question<'_> {
    fn begin(&self, txn: Txn) -> Node {
        if self.snapshots { txn * 2 } else { txn }
    }

    fn commit(&self, txn: Txn) -> Node {
        if self.snapshots { txn * 2 + 1 } else { txn }
    }

    fn before(&mut self, first: Node, second: Node) -> Lit {
        let pair = (first.min(second), first.max(second));
        let (refutable, atoms) = (&mut self.refutable, &mut self.atoms);
        let var = *self.before.entry(pair).or_insert_with(|| {
            atoms.push(Atom::Before(pair.0, pair.1));
            refutable.ask(&[pair], &[(pair.1, pair.0)])
        });
        if first < second { var.positive() } else { var.negative() }
    }

    fn precedes(&mut self, first: Txn, second: Txn) -> Lit {
        self.before(self.commit(first), self.begin(second))
    }

    fn orders(&mut self, level: Level, clock_skew: i64) {
        let count = self.problem.len() as Txn;
        for txn in 0..if self.snapshots { count } else { 0 } {
            let lit = self.before(self.begin(txn), self.commit(txn));
            self.refutable.clause(&[lit]);
        }
        let previous = self.problem.previous.clone();
        for (txn, &earlier) in previous.iter().enumerate() {
            if (level.session || level.realtime) && earlier != NONE {
                let lit = self.precedes(earlier, txn as Txn);
                self.refutable.clause(&[lit]);
            }
        }
        if !level.realtime {
            return;
        }
        let spans: Vec<_> = self.part.transactions().map(|transaction| transaction.client()).collect();
        for (first, one) in spans.iter().enumerate() {
            for (second, two) in spans.iter().enumerate() {
                if let (Some(one), Some(two)) = (one, two)
                    && first != second
                    && one.end.saturating_add(clock_skew) < two.begin
                {
                    let lit = self.precedes(first as Txn, second as Txn);
                    self.refutable.clause(&[lit]);
                }
            }
        }
    }

    fn versions(&self, key: u32) -> Vec<(u32, Txn)> {
        let versions = self.problem.versions_of_key(key).iter();
        versions.map(|&(_, version)| (version, self.problem.versions[version as usize].txn)).collect()
    }

    /// Writers of one key do not overlap.
    fn writers(&mut self) {
        let keys = if self.snapshots { self.problem.keys() as u32 } else { 0 };
        for key in 0..keys {
            let versions = self.versions(key);
            for (place, &(_, second)) in versions.iter().enumerate() {
                for &(_, first) in &versions[..place] {
                    let either = [self.precedes(first, second), self.precedes(second, first)];
                    self.refutable.clause(&either);
                }
            }
        }
    }

    fn read(&mut self, read: &Read) {
        let sources: Vec<u32> =
            if read.is_known() { vec![read.source] } else { self.problem.candidates(read).collect() };
        let first_op = self.part.transaction(self.problem.txns[read.txn as usize]).first_op();
        let op = read.op.0 - first_op.0;
        let versions = self.versions(read.key);
        let mut some = Vec::new();
        for source in sources {
            let writer = (source != INITIAL).then(|| self.problem.versions[source as usize].txn);
            self.atoms.push(Atom::Saw(read.txn, op, writer));
            let saw = self.refutable.ask(&[], &[]).positive();
            some.push(saw);
            if let Some(writer) = writer {
                let precedes = self.precedes(writer, read.txn);
                self.refutable.clause(&[!saw, precedes]);
            }
            for &(_, other) in &versions {
                if Some(other) == writer || other == read.txn {
                    continue;
                }
                let mut clause = vec![!saw, self.before(self.begin(read.txn), self.commit(other))];
                if let Some(writer) = writer {
                    clause.push(self.before(self.commit(other), self.commit(writer)));
                }
                self.refutable.clause(&clause);
            }
        }
        self.refutable.clause(&some);
    }
}
