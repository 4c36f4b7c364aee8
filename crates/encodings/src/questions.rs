//! Every question of a problem: who wrote first, who was read, who took effect.
//!
//! *What*: for each key and each two of its versions a question `V before W`; for each read that several versions
//! explain a question a version; for each transaction of unknown outcome whether it took effect. A reader T of W
//! precedes whatever overwrites W:
//!
//! ```text
//!   T saw W, W before S   ⇒   T → S          (begin of T → commit of S at snapshot isolation)
//! ```
//!
//! Where it is certain who was read, either the question `W before S` carries that edge along
//! ([`Readers::Carried`]: Vbox eq. 1 and 2), or the edge is a question by itself, tied by a clause
//! ([`Readers::Apart`]: polygraphs; VeriStrong (Cai et al., PVLDB 2026) §4.1).
//!
//! *Why transactions without effect do no harm*: nothing has to follow one, so there is always an order with all of
//! them at the end, where every edge into them holds.
//!
//! *Cost*: Σ over keys of versions² questions and reads · versions clauses.

use crate::constraints::{Constraints, Edge, Unwritten};
use isolation::Budget;
use rustc_hash::FxHashMap;
use search::constrain::{Known, Nodes};
use search::problem::{INITIAL, Problem, Read, Standing, Txn};
use solver::{Lit, Var};

/// How anti-dependencies of certain reads are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// With the order of the two writers, under one variable.
    Carried,
    /// As variables of their own.
    Apart,
}

/// Writes all constraints of a problem.
pub(super) fn write(
    problem: &Problem,
    known: &Known,
    readers: Readers,
    budget: &Budget,
) -> Result<Constraints, Unwritten> {
    let constraints =
        Constraints::new(known.node_count(problem), known.edges(problem).collect()).within(budget);
    let mut writer = Writer {
        problem,
        nodes: known.nodes,
        readers,
        constraints,
        certain: certain_readers(problem),
        before: FxHashMap::default(),
        misses: FxHashMap::default(),
        effect: FxHashMap::default(),
    };
    writer.effects();
    for key in 0..problem.keys() as u32 {
        writer.pairs(key)?;
    }
    for txn in 0..problem.len() as Txn {
        if problem.standing[txn as usize] != Standing::Out {
            for read in problem.reads_of(txn) {
                writer.read(read)?;
            }
        }
    }
    Ok(writer.constraints)
}

/// For each version the transactions that certainly took effect and certainly read it.
pub(super) fn certain_readers(problem: &Problem) -> Vec<Vec<Txn>> {
    let mut readers = vec![Vec::new(); problem.versions.len()];
    for read in problem.reads.iter().filter(|read| read.is_known() && read.source < INITIAL) {
        if problem.standing[read.txn as usize] == Standing::In {
            readers[read.source as usize].push(read.txn);
        }
    }
    readers
}

/// Reads of transactions that certainly took effect that certainly saw the initial state.
pub(super) fn initial_reads(problem: &Problem) -> impl Iterator<Item = &Read> {
    let is_certain = |read: &&Read| {
        read.is_known() && read.source == INITIAL && problem.standing[read.txn as usize] == Standing::In
    };
    problem.reads.iter().filter(is_certain)
}

/// The versions of a key whose transactions can have taken effect.
pub(super) fn live_versions(problem: &Problem, key: u32) -> Vec<u32> {
    let versions = problem.versions_of_key(key).iter().map(|&(_, version)| version);
    let is_live =
        |version: &u32| problem.standing[problem.versions[*version as usize].txn as usize] != Standing::Out;
    let mut versions: Vec<u32> = versions.filter(is_live).collect();
    versions.sort_unstable();
    versions
}

struct Writer<'a> {
    problem: &'a Problem,
    nodes: Nodes,
    readers: Readers,
    constraints: Constraints,
    certain: Vec<Vec<Txn>>,
    before: FxHashMap<(u32, u32), Var>,
    misses: FxHashMap<(Txn, Txn), Var>,
    effect: FxHashMap<Txn, Var>,
}

impl Writer<'_> {
    fn writer(&self, version: u32) -> Txn {
        self.problem.versions[version as usize].txn
    }

    fn is_in(&self, txn: Txn) -> bool {
        self.problem.standing[txn as usize] == Standing::In
    }

    fn effects(&mut self) {
        for txn in 0..self.problem.len() as Txn {
            if self.problem.standing[txn as usize] == Standing::Maybe {
                let var = self.constraints.ask(&[], &[], false);
                self.effect.insert(txn, var);
                self.constraints.effect.push((txn, var.positive()));
            }
        }
    }

    /// "The transaction took effect", where that is in question.
    fn effect(&self, txn: Txn) -> Option<Lit> {
        self.effect.get(&txn).map(|var| var.positive())
    }

    fn pairs(&mut self, key: u32) -> Result<(), Unwritten> {
        let versions = live_versions(self.problem, key);
        for (index, &second) in versions.iter().enumerate() {
            for &first in &versions[..index] {
                let (yes, no) = (self.order(first, second), self.order(second, first));
                let var = self.constraints.ask(&yes, &no, true);
                self.constraints.pairs.push((first, second, var.positive()));
                self.before.insert((first, second), var);
            }
            self.constraints.fits()?;
        }
        Ok(())
    }

    /// The edges of "`first` is overwritten by `second`".
    fn order(&self, first: u32, second: u32) -> Vec<Edge> {
        let (one, two) = (self.writer(first), self.writer(second));
        let mut edges = vec![(self.nodes.commit(one), self.nodes.begin(two))];
        if self.readers == Readers::Carried {
            let readers = self.certain[first as usize].iter().filter(|&&reader| reader != two);
            edges.extend(readers.map(|&reader| (self.nodes.begin(reader), self.nodes.commit(two))));
        }
        edges
    }

    /// The literal that one version is overwritten by the other.
    fn before(&self, first: u32, second: u32) -> Lit {
        match self.before.get(&(first, second)) {
            Some(var) => var.positive(),
            None => self.before[&(second, first)].negative(),
        }
    }

    /// The literal that a transaction reads before another's writes are visible.
    fn misses(&mut self, reader: Txn, writer: Txn) -> Lit {
        let edge = (self.nodes.begin(reader), self.nodes.commit(writer));
        let constraints = &mut self.constraints;
        let var =
            *self.misses.entry((reader, writer)).or_insert_with(|| constraints.ask(&[edge], &[], false));
        var.positive()
    }

    fn read(&mut self, read: &Read) -> Result<(), Unwritten> {
        let versions = live_versions(self.problem, read.key);
        if read.is_known() {
            // Without a condition for whoever certainly took effect.
            let condition = self.effect(read.txn);
            self.saw(read, read.source, condition, &versions);
        } else {
            let mut some: Vec<Lit> = self.effect(read.txn).map(|lit| !lit).into_iter().collect();
            for source in self.problem.candidates(read).collect::<Vec<u32>>() {
                let picked = self.constraints.ask(&[], &[], false).positive();
                some.push(picked);
                self.saw(read, source, Some(picked), &versions);
            }
            self.constraints.clause(&some);
        }
        self.constraints.fits()
    }

    /// What follows if a read saw a version, under a condition.
    fn saw(&mut self, read: &Read, source: u32, condition: Option<Lit>, versions: &[u32]) {
        let unless: Vec<Lit> = condition.map(|lit| !lit).into_iter().collect();
        if source < INITIAL {
            let writer = self.writer(source);
            let edge = (self.nodes.commit(writer), self.nodes.begin(read.txn));
            // Known edges hold what is certain already.
            if let Some(condition) = condition {
                let seen = self.constraints.ask(&[edge], &[], false).positive();
                self.constraints.clause(&[!condition, seen]);
                if let Some(effect) = self.effect(writer) {
                    self.constraints.clause(&[!condition, effect]);
                }
            }
        }
        for &other in versions {
            let overwriter = self.writer(other);
            if other == source || overwriter == read.txn {
                continue;
            }
            let is_certain = condition.is_none() && self.is_in(read.txn);
            if source == INITIAL {
                if is_certain {
                    let edge = (self.nodes.begin(read.txn), self.nodes.commit(overwriter));
                    self.constraints.known.push(edge);
                } else {
                    let misses = self.misses(read.txn, overwriter);
                    self.constraints.clause(&[&unless[..], &[misses]].concat());
                }
                continue;
            }
            if is_certain && self.readers == Readers::Carried {
                continue;
            }
            let overwritten = self.before(source, other);
            let misses = self.misses(read.txn, overwriter);
            self.constraints.clause(&[&unless[..], &[!overwritten, misses]].concat());
        }
    }
}
