//! The eager strategies: the encodings of the papers, whole, before the search begins.
//!
//! *What*: where the lazy strategy asks only the questions that a replay raises, these write down every question that
//! a history has, reduce what they can, and hand the rest to the same solver. They are here to be compared: with the
//! lazy strategy, for the same verdict; with each other, for what an encoding costs on the same input.
//!
//! | strategy | levels | questions | passes | source |
//! |---|---|---|---|---|
//! | `eager-pairs` | all | every pair of writers of a key, every anti-dependency by itself | none | Papadimitriou's polygraphs as clauses |
//! | `eager-cobra` | serializable | pairs of chains of read-modify-writes, one edge set each | combine, prune | Cobra (Tan et al., OSDI 2020, §3) |
//! | `eager-vbox` | all | pairs of writers with their readers as edge sets | consolidate, prune | vbox.txt §3.3, §3.5 |
//! | `eager-veristrong` | all | as `eager-pairs`, reads-from as clauses | prune (1-width), 2-width clauses, polarity | veristrong.txt §4, §6 |
//! | `eager-viper` | snapshot isolation | pairs of chains on begins and commits | combine, polarity | Viper (Zhang et al., EuroSys 2023) |
//! | `eager-polysi` | snapshot isolation | pairs of writers on the induced graph (so ∪ wr ∪ ww) ; rw? | prune | PolySI (Huang et al., VLDB 2023) |
//!
//! *Invariant*: a strategy decides exactly what the level means, or says what it does not cover. *Steps*: write the
//! [`Constraints`](constraints::Constraints), run the passes, search. *Cost*: quadratic in the writers of a key, at
//! best; what would be too large is refused before it is built. *Where we differ*: all of them search with our solver
//! and its order; snapshot isolation is begins and commits for all but PolySI.

mod chains;
mod constraints;
mod induced;
pub(crate) mod light;
mod passes;
mod questions;
mod reach;
mod search;
pub mod smt;

pub(crate) use search::{Refutable, refute};

use crate::constrain::Known;
use crate::levels::{Level, Rule};
use crate::observe::{Problem, Standing, Txn};
use crate::verdict::{Options, Stats, Undecided};
use constraints::Constraints;
use history::History;
use search::Answer;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

/// How the answer is looked for. All strategies give the same verdicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Schedule, replay, blame, refine: only questions that matter are asked.
    #[default]
    Lazy,
    /// Every pairwise question, as clauses.
    EagerPairs,
    /// Cobra's constraints between chains of writes.
    EagerCobra,
    /// Vbox's edge sets, consolidated and pruned.
    EagerVbox,
    /// VeriStrong's pruning and clauses of small-width cycles.
    EagerVeristrong,
    /// Viper's graph of begins and commits.
    EagerViper,
    /// PolySI's induced graph.
    EagerPolysi,
}

impl Strategy {
    /// All of them, the default first.
    pub const ALL: [Self; 7] = [
        Self::Lazy,
        Self::EagerPairs,
        Self::EagerCobra,
        Self::EagerVbox,
        Self::EagerVeristrong,
        Self::EagerViper,
        Self::EagerPolysi,
    ];

    /// The way it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lazy => "lazy",
            Self::EagerPairs => "eager-pairs",
            Self::EagerCobra => "eager-cobra",
            Self::EagerVbox => "eager-vbox",
            Self::EagerVeristrong => "eager-veristrong",
            Self::EagerViper => "eager-viper",
            Self::EagerPolysi => "eager-polysi",
        }
    }

    /// What it does, in a line.
    pub fn about(self) -> &'static str {
        match self {
            Self::Lazy => "Ask only what a replay of the best order so far raises",
            Self::EagerPairs => "Every pairwise question, each edge by itself",
            Self::EagerCobra => "Cobra: constraints between chains of writes, pruned (serializable levels)",
            Self::EagerVbox => "Vbox: edge sets under one variable, consolidated and pruned",
            Self::EagerVeristrong => "VeriStrong: 1-width pruning, 2-width clauses, duplicate values",
            Self::EagerViper => "Viper: begins and commits, chains of writes (snapshot isolation)",
            Self::EagerPolysi => "PolySI: the induced graph (snapshot isolation)",
        }
    }

    /// What of the problem it does not cover.
    fn refuses(self, problem: &Problem, level: Level) -> Option<String> {
        let what = match self {
            _ if !problem.matches.is_empty() => {
                "needs to know which keys predicate writes matched; not all reported them"
            }
            Self::EagerCobra if level.rule != Rule::Serializable => "decides only serializable levels",
            Self::EagerViper | Self::EagerPolysi if level.rule != Rule::SnapshotIsolation => {
                "decides only levels of snapshot isolation"
            }
            Self::EagerCobra | Self::EagerViper | Self::EagerPolysi => {
                let is_live = |txn: Txn| problem.standing[txn as usize] != Standing::Out;
                if problem.reads.iter().any(|read| !read.is_known() && is_live(read.txn)) {
                    "needs reads whose writer is known; a value was written twice"
                } else if problem.standing.contains(&Standing::Maybe) {
                    "needs transactions whose outcome is known"
                } else {
                    return None;
                }
            }
            _ => return None,
        };
        Some(format!("{} {what}", self.name()))
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no strategy or pass has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName(String);

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UnknownName {}

impl FromStr for Strategy {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        Self::ALL.into_iter().find(|strategy| strategy.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            UnknownName(format!("unknown strategy {name:?}; expected one of: {names}"))
        })
    }
}

/// Which passes run. Each can be left out, to see what it is worth; verdicts do not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Passes {
    /// Lazy: the order of the database's timestamps is tried before the search.
    pub timestamps: bool,
    /// Lazy: what sessions and known reads settle is settled before the search.
    pub saturate: bool,
    /// Lazy: parts that share no key and no session are explained apart, on all cores.
    pub parts: bool,
    /// Lazy: where session order does not count, an order that keeps to it is looked for first.
    pub sessions: bool,
    /// Cobra, Viper: read-modify-writes join writers into chains.
    pub combine: bool,
    /// Vbox: questions that share an edge are one.
    pub consolidate: bool,
    /// Cobra, Vbox, VeriStrong, PolySI: alternatives that close a cycle of known edges are excluded.
    pub prune: bool,
    /// VeriStrong: pairs of alternatives that close a cycle together are excluded by a clause.
    pub two_width: bool,
    /// All eager ones: the search prefers what its current order has.
    pub polarity: bool,
}

impl Default for Passes {
    fn default() -> Self {
        Self {
            timestamps: true,
            saturate: true,
            parts: true,
            sessions: true,
            combine: true,
            consolidate: true,
            prune: true,
            two_width: true,
            polarity: true,
        }
    }
}

impl Passes {
    /// The names of all passes.
    pub const NAMES: [&'static str; 9] = [
        "timestamps",
        "saturate",
        "parts",
        "sessions",
        "combine",
        "consolidate",
        "prune",
        "two-width",
        "polarity",
    ];

    /// The same without one pass.
    pub fn without(mut self, name: &str) -> Result<Self, UnknownName> {
        let pass = match name {
            "timestamps" => &mut self.timestamps,
            "saturate" => &mut self.saturate,
            "parts" => &mut self.parts,
            "sessions" => &mut self.sessions,
            "combine" => &mut self.combine,
            "consolidate" => &mut self.consolidate,
            "prune" => &mut self.prune,
            "two-width" => &mut self.two_width,
            "polarity" => &mut self.polarity,
            _ => {
                let names = Self::NAMES.join(", ");
                return Err(UnknownName(format!("unknown pass {name:?}; expected one of: {names}")));
            }
        };
        *pass = false;
        Ok(self)
    }
}

/// What an eager strategy found.
#[derive(Debug)]
pub(crate) enum Found {
    /// This order of nodes explains everything; these transactions of unknown outcome took effect.
    Explained { position: Vec<u32>, effective: Vec<Txn> },
    /// Nothing does.
    Impossible,
    /// The budget is used up, or it is beyond this strategy.
    Open(Undecided),
}

/// Decides a problem by the strategy that the options name.
pub(crate) fn decide(
    history: &History,
    problem: &Problem,
    known: &Known,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Found {
    let strategy = options.strategy;
    if let Some(refusal) = strategy.refuses(problem, level) {
        return Found::Open(Undecided::Unsupported(refusal));
    }
    let passes = options.passes;
    let started = Instant::now();
    // 1. Every question.
    let written = match strategy {
        Strategy::EagerCobra | Strategy::EagerViper => {
            chains::write(problem, known, passes.combine, &options.budget)
        }
        Strategy::EagerVbox => questions::write(problem, known, questions::Readers::Carried, &options.budget),
        Strategy::EagerPolysi => {
            questions::write(problem, known, questions::Readers::Carried, &options.budget)
        }
        Strategy::Lazy | Strategy::EagerPairs | Strategy::EagerVeristrong => {
            questions::write(problem, known, questions::Readers::Apart, &options.budget)
        }
    };
    let mut constraints = match written {
        Ok(constraints) => constraints,
        Err(refusal) => return refused(strategy, refusal),
    };
    stats.record("constraints", constraints.len() as f64);
    stats.record("clauses", constraints.clause_count() as f64);
    stats.record("encode_ms", milliseconds(started));
    // 2. What can be said of them before the search.
    let started = Instant::now();
    if strategy == Strategy::EagerVbox && passes.consolidate {
        constraints = passes::consolidate(&constraints);
        stats.record("consolidated", constraints.len() as f64);
    }
    let prunes = !matches!(strategy, Strategy::EagerPairs | Strategy::EagerViper);
    if prunes && passes.prune && !passes::prune(&mut constraints, &options.budget) {
        return Found::Impossible;
    }
    if strategy == Strategy::EagerVeristrong && passes.two_width {
        stats.record("two_width_clauses", passes::two_width(&mut constraints, &options.budget) as f64);
    }
    stats.record("open", constraints.open() as f64);
    stats.record("passes_ms", milliseconds(started));
    // 3. The search.
    let started = Instant::now();
    let found = if strategy == Strategy::EagerPolysi {
        induced::decide(history, problem, &constraints, level, options, stats)
    } else {
        found(problem, &constraints, search::search(&constraints, passes.polarity, &options.budget, stats))
    };
    stats.record("search_ms", milliseconds(started));
    found
}

fn found(problem: &Problem, constraints: &Constraints, answer: Answer) -> Found {
    match answer {
        Answer::Order { position, holds } => {
            let effective = constraints.effective(problem, |lit| holds[constraints::index(lit)]);
            Found::Explained { position, effective }
        }
        Answer::Nothing => Found::Impossible,
        Answer::GaveUp(why) => Found::Open(why),
    }
}

fn refused(strategy: Strategy, refusal: constraints::Unwritten) -> Found {
    match refusal {
        constraints::Unwritten::Contradiction => Found::Impossible,
        constraints::Unwritten::Open(why) => Found::Open(why),
        constraints::Unwritten::TooLarge { questions } => Found::Open(Undecided::Unsupported(format!(
            "{strategy} would have to ask more than {questions} questions at once"
        ))),
    }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
