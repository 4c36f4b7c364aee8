//! What goes into a check and what comes out: options, verdict, evidence.

use crate::budget::Budget;
use crate::strategy::{Passes, Strategy};
use crate::undecided::Undecided;
use history::{History, KeyId, OpId, TxnId};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How to check.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// When to give up.
    pub budget: Budget,
    /// What a read must see of its own transaction's earlier writes.
    pub ryow: Ryow,
    /// Real-time order holds only between transactions further apart than this.
    pub clock_skew: i64,
    /// Whether each transaction is held to the level it asked for, and to the level of the check only if it asked for
    /// none.
    pub mixed: bool,
    /// How many threads may be used; 0: as many as there are cores.
    pub threads: usize,
    /// How the answer is looked for.
    pub strategy: Strategy,
    /// Which passes run.
    pub passes: Passes,
}

impl Options {
    /// How many threads to use.
    pub fn cores(&self) -> usize {
        match self.threads {
            0 => std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            threads => threads,
        }
    }
}

/// The policy on reads of what the transaction itself wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ryow {
    /// A read sees the transaction's own earlier write.
    #[default]
    Must,
    /// A read sees either its own transaction's earlier write or what it would see without it.
    May,
    /// A read never sees its own transaction's writes.
    Never,
}

impl Ryow {
    /// `must`, `may` or `never`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::May => "may",
            Self::Never => "never",
        }
    }
}

/// The answer, and what it cost.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer.
    pub verdict: Verdict,
    /// What it cost, by name, in the order of the pipeline.
    pub stats: Stats,
}

/// The answer to "is this history possible under this level?".
#[derive(Clone, Debug)]
pub enum Verdict {
    /// Yes: here is an order that explains every result.
    Accepted(Witness),
    /// No: here is a part that no order explains.
    Violated(Box<Evidence>),
    /// Not known.
    Undecided(Undecided),
}

/// An order that explains the whole history.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Committed transactions, and those of unknown outcome that took effect. At a serial level every
    /// transaction is one [`Event::Whole`]; at snapshot isolation a [`Event::Begin`] and, later, a
    /// [`Event::Commit`]. Empty for levels whose witness is not an order.
    pub order: Vec<Event>,
}

/// A step of a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    /// The transaction happens at once.
    Whole(TxnId),
    /// It takes its snapshot.
    Begin(TxnId),
    /// Its writes become visible.
    Commit(TxnId),
}

/// A part of the history that has no explanation, and the argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What went wrong, by Elle's names.
    pub anomaly: Anomaly,
    /// The core: transactions that already have no explanation.
    pub transactions: Vec<TxnId>,
    /// The argument. For a cycle: its edges in order, each leading to the next. Where it is a case distinction: how the
    /// first case ends.
    pub edges: Vec<Edge>,
    /// Edges that others were inferred from and that are not on the cycle themselves.
    pub support: Vec<Edge>,
    /// The argument, where it is a case distinction. `edges` then hold in its first case only.
    pub cases: Option<Arc<Cases>>,
}

/// Why something cannot be: a cycle or a direct contradiction, or cases that all end in one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Argument {
    /// The cycle, in order; none where there are cases.
    pub edges: Vec<Edge>,
    /// Edges that others were inferred from and that are not on the cycle themselves.
    pub support: Vec<Edge>,
    /// What may be, and why each of it cannot be.
    pub cases: Option<Arc<Cases>>,
}

/// A case distinction: one of the cases must be so, and none can be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cases {
    /// The cases that are reported, each with its contradiction.
    pub told: Vec<Case>,
    /// How many more there are. Each was refuted, too.
    pub left_out: usize,
}

/// Something that may be, and why it cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Case {
    /// What is supposed.
    pub suppose: Supposition,
    /// What contradicts it.
    pub argument: Argument,
}

/// What is supposed in a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Supposition {
    /// What an operation saw at a key came from this write.
    Source {
        /// The reading operation.
        read: OpId,
        /// The key.
        key: KeyId,
        /// The writing one; `None` for the initial value.
        write: Option<OpId>,
    },
    /// A predicate write, or an append, changed a key, or did not.
    Changed {
        /// The operation.
        op: OpId,
        /// The key.
        key: KeyId,
        /// Whether it did.
        changed: bool,
    },
}

/// What went wrong. The name is Elle's, because people search for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Anomaly {
    /// E.g. `G-single`, `lost-update`, `thin-air`.
    pub name: String,
    /// The common name where one fits, e.g. `read skew`.
    pub common: Option<&'static str>,
}

/// One step of the argument: `from` must come before `to`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The earlier transaction; `None` stands for the initial state.
    pub from: Option<TxnId>,
    /// The later one.
    pub to: TxnId,
    /// The kind of dependency.
    pub kind: EdgeKind,
    /// The key it is about, where it is about one.
    pub key: Option<KeyId>,
    /// Whether it comes from a predicate's evaluation (scan, iterator, query, predicate write).
    pub predicate: bool,
    /// Why it exists.
    pub reason: Reason,
}

/// Adya's direct dependencies and the two orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EdgeKind {
    /// `to` overwrites what `from` wrote.
    Ww,
    /// `to` reads what `from` wrote.
    Wr,
    /// `to` overwrites what `from` read.
    Rw,
    /// Session order.
    So,
    /// Real-time order.
    Rt,
    /// The order of the database's timestamps.
    Ts,
    /// What a module of the level adds.
    Added,
}

impl EdgeKind {
    /// The way it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ww => "ww",
            Self::Wr => "wr",
            Self::Rw => "rw",
            Self::So => "so",
            Self::Rt => "rt",
            Self::Ts => "ts",
            Self::Added => "added",
        }
    }
}

/// Why an edge exists: data first, so that text, pages and certificates all speak from the same facts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// `read` saw the value that `write` wrote.
    Saw {
        /// The reading operation.
        read: OpId,
        /// The writing one; `None` for the initial value.
        write: Option<OpId>,
    },
    /// `read` saw a version older than the one `write` made.
    Missed {
        /// The reading operation.
        read: OpId,
        /// The writing one.
        write: OpId,
    },
    /// `first` was overwritten by `second`: a list or a read of the same transaction shows it.
    Overwrote {
        /// The earlier write; `None` for the initial value.
        first: Option<OpId>,
        /// The later write.
        second: OpId,
        /// The operation that returned a list that shows it.
        shown: Option<OpId>,
    },
    /// The other way round is impossible: it would close the cycle given here.
    Otherwise {
        /// The edges that lead back, given the opposite of this edge; what they rest on; or the cases that the opposite
        /// leaves.
        because: Arc<Argument>,
    },
    /// The opposite of what is shown by it, for as long as that takes.
    Supposed,
    /// No state of any store gives what the operation returned.
    Impossible {
        /// The operation.
        op: OpId,
        /// What is impossible about it.
        why: Impossible,
    },
    /// The session issued them in this order.
    Session,
    /// The first had ended before the second began.
    Clock,
    /// The database's timestamps say so.
    Timestamps,
    /// A module of the level says so.
    Module {
        /// What it is called.
        name: &'static str,
    },
}

/// What is impossible about a result, whatever the store held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Impossible {
    /// The rows are not in the order of their keys, or an iterator went back.
    Order,
    /// A row lies outside the range, or does not satisfy the predicate.
    Row(KeyId),
    /// So many rows cannot have been changed.
    Count,
    /// Whatever the key held before, the transaction's own operations on it contradict each other.
    Own(KeyId),
    /// What was seen at the key was written, but by no transaction that can have taken effect that way.
    Read(KeyId),
    /// Nothing that the key can have held fits both this and another operation, which see one state.
    Differs(OpId, KeyId),
}

/// Counters and times, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Name and number, in the order they were recorded; `docs/schema/check-output.schema.json` says what they mean.
    pub entries: Vec<(&'static str, f64)>,
}

impl Stats {
    /// Records a number: it is added to the one of that name.
    pub fn record(&mut self, name: &'static str, value: f64) {
        match self.entries.iter_mut().find(|(other, _)| *other == name) {
            Some((_, sum)) => *sum += value,
            None => self.entries.push((name, value)),
        }
    }

    /// Records all numbers of others.
    pub fn record_all(&mut self, others: Self) {
        for (name, value) in others.entries {
            self.record(name, value);
        }
    }
}

impl Verdict {
    /// Which of the three it is.
    pub fn kind(&self) -> VerdictKind {
        match self {
            Self::Accepted(_) => VerdictKind::Accepted,
            Self::Violated(_) => VerdictKind::Violated,
            Self::Undecided(_) => VerdictKind::Undecided,
        }
    }

    /// `accepted`, `violated` or `undecided`.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }
}

/// A verdict without its evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "&'static str", try_from = "String")]
pub enum VerdictKind {
    /// The history is possible at the level.
    Accepted,
    /// It is not.
    Violated,
    /// There is no answer.
    Undecided,
}

impl VerdictKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Accepted, Self::Violated, Self::Undecided];

    /// `accepted`, `violated` or `undecided`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Violated => "violated",
            Self::Undecided => "undecided",
        }
    }
}

impl fmt::Display for VerdictKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// By its word. The error is the message.
impl FromStr for VerdictKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == word);
        found.ok_or_else(|| format!("unknown verdict {word:?}: expected accepted, violated or undecided"))
    }
}

impl From<VerdictKind> for &'static str {
    fn from(kind: VerdictKind) -> Self {
        kind.name()
    }
}

impl TryFrom<String> for VerdictKind {
    type Error = String;

    fn try_from(word: String) -> Result<Self, Self::Error> {
        word.parse()
    }
}

impl Argument {
    /// A cycle or a direct contradiction, and what it rests on.
    pub fn new(edges: Vec<Edge>, support: Vec<Edge>) -> Self {
        Self { edges, support, cases: None }
    }

    /// How it ends: where there are cases, how the first of them does.
    pub fn end(&self) -> &Self {
        let mut it = self;
        while let Some(case) = it.cases.as_ref().and_then(|cases| cases.told.first()) {
            it = &case.argument;
        }
        it
    }

    /// All arguments within it, itself included. What several steps share is there once.
    pub fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut seen: FxHashSet<*const Self> = FxHashSet::default();
        let mut next = 0;
        while let Some(&it) = all.get(next) {
            next += 1;
            all.extend(it.parts().filter(|&part| seen.insert(std::ptr::from_ref(part))));
        }
        all
    }

    /// The arguments that it is made of.
    fn parts(&self) -> impl Iterator<Item = &Self> {
        let because = |edge| match edge {
            &Edge { reason: Reason::Otherwise { ref because }, .. } => Some(&**because),
            _ => None,
        };
        let inferred = self.edges.iter().chain(&self.support).filter_map(because);
        inferred.chain(self.cases.iter().flat_map(|cases| &cases.told).map(|case| &case.argument))
    }

    /// How many steps it has when everything is written out, up to `most`.
    pub fn steps(&self, most: usize) -> usize {
        let mut steps = 0;
        let mut open = vec![self];
        while let Some(it) = open.pop() {
            steps += it.edges.len() + it.support.len();
            if steps + open.len() >= most {
                return most;
            }
            open.extend(it.parts());
        }
        steps
    }

    /// The read that is impossible wherever its value came from, if that is what the argument says.
    pub fn impossible_read(&self) -> Option<(OpId, KeyId)> {
        if let Some(cases) = &self.cases {
            let mut reads = cases.told.iter().map(|case| case.argument.impossible_read());
            let first = reads.next()??;
            return reads.all(|it| it == Some(first)).then_some(first);
        }
        match self.edges[..] {
            [Edge { reason: Reason::Saw { read, .. }, key: Some(key), .. }] => Some((read, key)),
            _ => None,
        }
    }

    /// Every edge in it.
    pub fn every_edge(&self) -> impl Iterator<Item = &Edge> {
        self.all().into_iter().flat_map(|it| it.edges.iter().chain(&it.support))
    }

    /// Every transaction that it names, ascending.
    pub fn transactions(&self) -> Vec<TxnId> {
        let mut txns: Vec<TxnId> =
            self.every_edge().flat_map(|edge| edge.from.into_iter().chain([edge.to])).collect();
        txns.sort_unstable();
        txns.dedup();
        txns
    }
}

impl Evidence {
    /// An argument by its name, and the transactions it is about.
    pub fn new(anomaly: Anomaly, transactions: Vec<TxnId>, argument: Argument) -> Self {
        let edges = argument.end().edges.clone();
        Self { anomaly, transactions, edges, support: argument.support, cases: argument.cases }
    }

    /// The whole argument.
    pub fn argument(&self) -> Argument {
        let edges = if self.cases.is_some() { Vec::new() } else { self.edges.clone() };
        Argument { edges, support: self.support.clone(), cases: self.cases.clone() }
    }

    /// Who wrote what is supposed to have been seen in the case that is shown first.
    pub fn supposed_writers(&self, history: &History) -> Vec<TxnId> {
        let mut writers = Vec::new();
        let mut at = self.cases.as_ref();
        while let Some(case) = at.and_then(|cases| cases.told.first()) {
            if let Supposition::Source { write: Some(write), .. } = case.suppose {
                writers.push(history.owner(write));
            }
            at = case.argument.cases.as_ref();
        }
        writers
    }

    /// The names of the core's transactions, as they are written in reports.
    pub fn names(&self, history: &History) -> Vec<String> {
        self.transactions.iter().map(|&txn| history.transaction(txn).name().to_string()).collect()
    }
}
