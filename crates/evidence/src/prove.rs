//! Proofs for certificates: why a core that is too large to try all orders of has no explanation.
//!
//! *What*: writes down what must hold of the core with one variable for every two events that matter — which comes
//! first — and lets the solver find the contradiction, keeping every clause it learns. The cycles and learnt clauses,
//! in order, are the proof; [`certify`](mod@certify) checks it with code of its own and works out for itself what must hold.
//!
//! *Cost*: the search, with nothing known beforehand: cores are small.

use certify::{Atom, Certificate, Lemma};
use encodings::{Refutable, refute};
use history::{History, Id, KeyId, Primitive, ValueId};
use isolation::{Level, Options, Rule, Ryow};
use rustc_hash::FxHashMap;
use search::lists::normal;
use search::observe::observe;
use search::pigeonhole;
use search::problem::{INITIAL, NONE, Problem, Read, Txn};
use solver::{Lit, Node, ProofStep, Var};

/// Cores up to this size are tried in all orders; that needs no proof.
pub(crate) const TRIED_MAX: usize = 12;

/// Gives the certificate of a violation a proof, if its core is large and of a kind that proofs cover.
pub fn add_proof(certificate: &mut Certificate<'_>, history: &History, options: &Options) {
    let Some(part) = certificate.part(history).filter(|part| part.len() > TRIED_MAX) else { return };
    if let Some(proof) = prove(&part, certificate.level, options) {
        certificate.set_proof(proof);
    }
}

fn prove(part: &History, level: Level, options: &Options) -> Option<Vec<Lemma>> {
    let problem = observe(part, options).ok()?;
    if !problem.alternatives.is_empty() || problem.len() != part.len() {
        return None;
    }
    if let Some(crowd) = pigeonhole::find(&problem, &options.budget).ok()? {
        return Some(vec![Lemma::Crowd(crowd.readers(&problem).collect())]);
    }
    let mut question = Question {
        part,
        problem: &problem,
        snapshots: level.rule == Rule::SnapshotIsolation,
        refutable: Refutable::default(),
        before: FxHashMap::default(),
        happened: FxHashMap::default(),
        atoms: Vec::new(),
    };
    question.orders(level, options.clock_skew);
    question.writers();
    let is_list = |key: u32| problem.versions_of_key(key).iter().any(|(value, _)| !value.is_known());
    for read in problem.reads.iter().filter(|read| !is_list(read.key)) {
        question.read(read);
    }
    question.lists(options.ryow);
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
        (Atom::Happened(txn) | Atom::Failed(txn), false) => Atom::Failed(txn),
    }
}

struct Question<'a> {
    part: &'a History,
    problem: &'a Problem,
    snapshots: bool,
    refutable: Refutable,
    before: FxHashMap<(Node, Node), Var>,
    happened: FxHashMap<Txn, Var>,
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

    /// The literal that a transaction did not take effect; none if it certainly did.
    fn failed(&mut self, txn: Txn) -> Option<Lit> {
        if self.part.transaction(self.problem.txns[txn as usize]).is_committed() {
            return None;
        }
        let (refutable, atoms) = (&mut self.refutable, &mut self.atoms);
        let var = self.happened.entry(txn).or_insert_with(|| {
            atoms.push(Atom::Happened(txn));
            refutable.ask(&[], &[])
        });
        Some(var.negative())
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
        let mut certain = vec![NONE; self.part.sessions().len()];
        for (txn, transaction) in (0..).zip(self.part.transactions()) {
            let earlier = &mut certain[transaction.session().index()];
            if (level.session || level.realtime) && *earlier != NONE {
                let lit = self.precedes(*earlier, txn);
                self.refutable.clause(&[lit]);
            }
            if transaction.is_committed() {
                *earlier = txn;
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
                    && self.failed(first as Txn).is_none()
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
                    let mut either = vec![self.precedes(first, second), self.precedes(second, first)];
                    either.extend(self.failed(first));
                    either.extend(self.failed(second));
                    self.refutable.clause(&either);
                }
            }
        }
    }

    fn read(&mut self, read: &Read) {
        // Whoever was ruled out on the way is a candidate here: why is for the proof to say.
        let Primitive::Read { value, .. } = self.part.primitive(read.op) else { return };
        let value = normal(self.part, value);
        let has_value = |&&(it, version): &&(ValueId, u32)| {
            it == value && self.problem.versions[version as usize].txn != read.txn
        };
        let written = self.problem.versions_of_key(read.key).iter().filter(has_value);
        let initial = (self.problem.initial[read.key as usize] == value).then_some(INITIAL);
        let sources: Vec<u32> = written.map(|&(_, version)| version).chain(initial).collect();
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
                if let Some(failed) = self.failed(writer) {
                    self.refutable.clause(&[!saw, !failed]);
                }
            }
            for &(_, other) in &versions {
                if Some(other) == writer || other == read.txn {
                    continue;
                }
                let mut clause = vec![!saw, self.before(self.begin(read.txn), self.commit(other))];
                if let Some(writer) = writer {
                    clause.push(self.before(self.commit(other), self.commit(writer)));
                }
                clause.extend(self.failed(other));
                self.refutable.clause(&clause);
            }
        }
        some.extend(self.failed(read.txn));
        self.refutable.clause(&some);
    }

    /// A list was read after those who appended its elements, which they did in that order, and before all others.
    fn lists(&mut self, ryow: Ryow) {
        let mut owners: FxHashMap<(KeyId, ValueId), Txn> = FxHashMap::default();
        let mut appenders: FxHashMap<KeyId, Vec<Txn>> = FxHashMap::default();
        for (txn, transaction) in (0..).zip(self.part.transactions()) {
            for (_, operation) in transaction.primitives() {
                if let Primitive::Append { key, value } = operation {
                    owners.insert((key, value), txn);
                    appenders.entry(key).or_default().push(txn);
                }
            }
        }
        appenders.values_mut().for_each(Vec::dedup);
        for (txn, transaction) in (0..).zip(self.part.transactions()) {
            let mut own: FxHashMap<KeyId, usize> = FxHashMap::default();
            for (_, operation) in transaction.primitives() {
                match operation {
                    Primitive::Append { key, .. } => *own.entry(key).or_default() += 1,
                    Primitive::Read { key, value, .. }
                        if value.is_known() && appenders.contains_key(&key) =>
                    {
                        let mine = own.get(&key).copied().unwrap_or(0);
                        if mine > 0 && ryow != Ryow::Must {
                            continue;
                        }
                        let elements = self.part.values().elements(value);
                        let outside = &elements[..elements.len().saturating_sub(mine)];
                        let seen: Option<Vec<Txn>> =
                            outside.iter().map(|&element| owners.get(&(key, element)).copied()).collect();
                        if let Some(seen) = seen {
                            self.list(txn, &seen, &appenders[&key]);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn list(&mut self, reader: Txn, seen: &[Txn], appenders: &[Txn]) {
        let failed = self.failed(reader);
        for pair in seen.windows(2).filter(|pair| pair[0] != pair[1]) {
            let lit = self.before(self.commit(pair[0]), self.commit(pair[1]));
            let clause: Vec<Lit> = [lit].into_iter().chain(failed).collect();
            self.refutable.clause(&clause);
        }
        for &other in appenders.iter().filter(|&&other| other != reader) {
            let (begin, commit) = (self.begin(reader), self.commit(other));
            let unless = self.failed(other);
            let clause: Vec<Lit> = if !seen.contains(&other) {
                let lit = self.before(begin, commit);
                [lit].into_iter().chain(unless).chain(failed).collect()
            } else {
                if let Some(unless) = unless {
                    let happened: Vec<Lit> = [!unless].into_iter().chain(failed).collect();
                    self.refutable.clause(&happened);
                }
                let lit = self.before(commit, begin);
                [lit].into_iter().chain(failed).collect()
            };
            self.refutable.clause(&clause);
        }
    }
}
