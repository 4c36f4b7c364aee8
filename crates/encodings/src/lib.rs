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
//! | `eager-vbox` | all | pairs of writers with their readers as edge sets | consolidate, prune | Vbox §3.3, §3.5 |
//! | `eager-veristrong` | all | as `eager-pairs`, reads-from as clauses | prune (1-width), 2-width clauses, polarity | VeriStrong (Cai et al., PVLDB 2026) §4, §6 |
//! | `eager-viper` | snapshot isolation | pairs of chains on begins and commits | combine, polarity | Viper (Zhang et al., EuroSys 2023) |
//! | `eager-polysi` | snapshot isolation | pairs of writers on the induced graph (so ∪ wr ∪ ww) ; rw? | prune | PolySI (Huang et al., VLDB 2023) |
//!
//! *Invariant*: a strategy decides exactly what the level means, or says what it does not cover. *Steps*: write the
//! `Constraints`, run the passes, search. *Cost*: quadratic in the writers of a key, at
//! best; what would be too large is refused before it is built. *Where we differ*: all of them search with our solver
//! and its order; snapshot isolation is begins and commits for all but PolySI.
//!
//! [`decide`] answers as `search::decide` does, [`smt::write`] writes the questions for other solvers. The same questions
//! serve evidence: [`refute`] proves that a large core has no explanation, [`light`] proposes contradictions of few
//! transactions.
//!
//! ```
//! use history::formats::notation;
//! use isolation::{Level, Options, Stats, Strategy};
//! use search::Decision;
//!
//! let history = notation::parse("s1: r(x,_) w(x,1)\ns2: r(x,_) w(x,2)\n")?;
//! let options = Options { strategy: Strategy::EagerPairs, ..Options::default() };
//! let decision = taipan_encodings::decide(&history, Level::SERIALIZABLE, &options, &mut Stats::default());
//! assert!(matches!(decision, Decision::Impossible(_)));
//! # Ok::<(), history::formats::Fault>(())
//! ```

mod chains;
mod constraints;
mod induced;
pub mod light;
mod passes;
mod questions;
mod reach;
pub mod smt;
mod whole;

pub use whole::{Refutable, refute};

use constraints::Constraints;
use history::History;
use isolation::{Level, Options, Rule, Stats, Strategy, Undecided, modules};
use search::Decision;
use search::blame;
use search::constrain::Known;
use search::observe::observe;
use search::problem::{Problem, Standing, Txn, adopt};
use search::refusal::Refusal;
use std::time::Instant;
use whole::Answer;

/// Decides whether a history is possible under a level, by the strategy that the options name. Which transactions are to
/// blame is no question of encodings: the search says that.
pub fn decide(history: &History, level: Level, options: &Options, stats: &mut Stats) -> Decision {
    // What is likely is tried as if it were certain: if that explains the history, it is explained.
    if let Some(hinted) = level.hinted().filter(|_| modules::has_hints(history, level))
        && let Decision::Possible(witness) = decide(history, hinted, options, stats)
    {
        return Decision::Possible(witness);
    }
    let Some(level) = search::ordered(history, level) else {
        return Decision::Open(Undecided::Unsupported(format!(
            "{} decides serializability, snapshot isolation and their variants, not {}",
            options.strategy,
            level.name()
        )));
    };
    let started = Instant::now();
    let mut problem = match observe(history, options) {
        Ok(problem) => problem,
        Err(Refusal::Contradiction(contradiction)) => {
            return Decision::Impossible(blame::of_contradiction(history, &contradiction));
        }
        Err(Refusal::Unsupported(what)) => return Decision::NotHere(what),
        Err(Refusal::Open(why)) => return Decision::Open(why),
    };
    adopt(history, level, &mut problem);
    stats.record("observe_ms", milliseconds(started));
    problem.measure(stats);
    let known = Known::new(history, &problem, level, options.clock_skew);
    match decide_problem(history, &problem, &known, level, options, stats) {
        Found::Explained { position, effective } => {
            Decision::Possible(search::witness(&problem, &known, &position, &effective))
        }
        Found::Open(why) => Decision::Open(why),
        Found::Impossible => match search::decide(history, level, options, &mut Stats::default()) {
            Decision::Impossible(core) => Decision::Impossible(core),
            _ => Decision::Impossible(problem.txns.clone()),
        },
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
fn decide_problem(
    history: &History,
    problem: &Problem,
    known: &Known,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Found {
    let strategy = options.strategy;
    if let Some(refusal) = refusal(strategy, problem, level) {
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
        found(problem, &constraints, whole::search(&constraints, passes.polarity, &options.budget, stats))
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

/// What of the problem a strategy does not cover.
fn refusal(strategy: Strategy, problem: &Problem, level: Level) -> Option<String> {
    let what = match strategy {
        _ if !problem.matches.is_empty() => {
            "needs to know which keys predicate writes matched; not all reported them"
        }
        Strategy::EagerCobra if level.rule != Rule::Serializable => "decides only serializable levels",
        Strategy::EagerViper | Strategy::EagerPolysi if level.rule != Rule::SnapshotIsolation => {
            "decides only levels of snapshot isolation"
        }
        Strategy::EagerCobra | Strategy::EagerViper | Strategy::EagerPolysi => {
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
    Some(format!("{} {what}", strategy.name()))
}
