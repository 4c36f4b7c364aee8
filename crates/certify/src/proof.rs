//! The proof of a core that is too large to try all orders of.
//!
//! *What*: a proof is a list of lemmas about any order that would explain the core, and ends in a contradiction. Its
//! atoms are "event a comes before event b" — an event is a transaction, or at snapshot isolation its begin or its
//! commit — "this read saw that write" and "this transaction of unknown outcome took effect". What holds of every explanation (the *facts*) is worked out here from the
//! part that was cut out of the history; a lemma is one of
//!
//! * a *cycle*: the events of a circle do not all come before the next one. True of any order whatsoever;
//! * a *clause*: follows from the facts and the lemmas before it by unit propagation alone (RUP);
//! * a *crowd*: transactions that all read one value of one key and wrote the key, more than there were versions with that
//!   value. Each replaced the version it read, and nobody else did that: a contradiction already.
//!
//! *Invariant*: every lemma accepted is true of every explanation, so a contradiction means that there is none.
//!
//! *Facts*: begin before commit; session order and real time where they count; of two writers of a key one commits
//! before the other begins (snapshot isolation); a read saw one of the writes with its value, which commits before
//! it begins, and no other write of the key comes between; on a key that is only appended to, every element once, a
//! list was read after those who appended its elements, which they did in that order, and before all others.
//!
//! *Cost*: the clauses that unit propagation visits. *Source*: RUP (Goldberg and Novikov 2003), as the proof checkers
//! of SAT solvers do it.

mod facts;
mod units;

use facts::Facts;
use history::History;
use isolation::{Budget, Level, Ryow};
use serde::{Deserialize, Serialize};
use units::Units;

/// A step of a proof. Events and transactions are numbers: the core's transactions count from 0 in the order of the
/// file; at snapshot isolation transaction t begins at event 2t and commits at event 2t + 1, else it is event t.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Lemma {
    /// Not each of these events comes before the next, and the last before the first.
    Cycle(Vec<u32>),
    /// One of these holds.
    Clause(Vec<Atom>),
    /// These transactions replaced more versions than there are.
    Crowd(Vec<u32>),
}

/// What may hold of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Atom {
    /// The first event comes before the second.
    Before(u32, u32),
    /// What a transaction (first) read with an operation (second, from 0) is what a transaction wrote; `None`: what
    /// was there from the start.
    Saw(u32, u32, Option<u32>),
    /// It is not.
    Missed(u32, u32, Option<u32>),
    /// A transaction of unknown outcome took effect.
    Happened(u32),
    /// It did not.
    Failed(u32),
}

/// Why a proof does not count.
pub(super) enum Flaw {
    /// A lemma does not follow; `None`: the contradiction at the end.
    Lemma(Option<usize>),
    /// The core is of a kind that proofs do not speak of.
    Beyond(String),
}

/// Whether a proof shows that a part has no explanation.
pub(super) fn examine(
    part: &History,
    level: Level,
    ryow: Ryow,
    clock_skew: i64,
    proof: &[Lemma],
    budget: &Budget,
) -> Result<(), Flaw> {
    let mut facts = Facts::of(part, level, ryow, clock_skew).map_err(Flaw::Beyond)?;
    let mut units = Units::default();
    for clause in std::mem::take(&mut facts.clauses) {
        units.add(&clause);
    }
    let meter = budget.meter();
    for (place, lemma) in proof.iter().enumerate() {
        meter.step().map_err(|why| Flaw::Beyond(why.to_string()))?;
        let is_true = match lemma {
            Lemma::Cycle(events) => circle(events, facts.events).is_some_and(|clause| {
                units.add(&clause);
                true
            }),
            Lemma::Crowd(txns) if facts.are_a_crowd(txns) => return Ok(()),
            Lemma::Crowd(_) => false,
            Lemma::Clause(atoms) => {
                units.follows(atoms) && {
                    units.add(atoms);
                    true
                }
            }
        };
        if !is_true {
            return Err(Flaw::Lemma(Some(place)));
        }
    }
    if units.follows(&[]) { Ok(()) } else { Err(Flaw::Lemma(None)) }
}

/// Some event of a circle comes before the one that leads to it. None if it is no circle of events.
fn circle(events: &[u32], count: u32) -> Option<Vec<Atom>> {
    let next = events.iter().cycle().skip(1);
    let pairs: Vec<(u32, u32)> = events.iter().copied().zip(next.copied()).collect();
    let fits = pairs.len() > 1 && pairs.iter().all(|&(from, to)| from != to && from < count);
    fits.then(|| pairs.into_iter().map(|(from, to)| Atom::Before(to, from)).collect())
}
