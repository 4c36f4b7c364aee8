//! The exhaustive oracle: decides tiny histories at every level, slowly and obviously.
//!
//! **What.** [`oracle`] answers whether a history is possible under a level by trying everything. It is
//! what every clever algorithm of the project is compared with, so it shares nothing with them: at
//! serializability and snapshot isolation it *replays* (no graph, no solver), at the other levels it
//! enumerates explanations and applies the level's definition as it is written.
//!
//! **Invariant.** The answer is exact: `Accepted` if and only if some explanation exists. What is too
//! large is refused with [`TooLarge`], never guessed.
//!
//! **Steps.**
//! 1. `orders`: which transactions may have taken effect, and what session and real-time order say.
//! 2. Serializable and its variants (`serial`): depth first over serial orders of the committed
//!    transactions and any subset of the unknown ones; `replay` runs every operation against a plain map.
//! 3. Snapshot isolation and its variants (`snapshot`): depth first over interleavings of begins and
//!    commits; a transaction is replayed on the state at its begin; of two transactions that write a
//!    common key, one commits before the other begins.
//! 4. Every other level of the dependency-graph family (`definition`; read uncommitted: `dirty`): all
//!    explanations; the axiomatic family (`axioms`): all commit orders. Both start from `scenario`.
//!
//! **Cost.** Exponential; sets of transactions and states that were tried before are not tried again.
//!
//! ```
//! use history::formats::notation;
//! use isolation::{Level, Options, Verdict};
//! use taipan_oracle::oracle;
//!
//! // Each of two transactions misses what the other writes: write skew.
//! let history = notation::parse("s1: r(x,_) w(y,1)\ns2: r(y,_) w(x,1)\n")?;
//! let verdict = |level| oracle(&history, level, &Options::default());
//! assert!(matches!(verdict(Level::SNAPSHOT_ISOLATION)?, Verdict::Accepted(_)));
//! assert!(matches!(verdict(Level::SERIALIZABLE)?, Verdict::Violated(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What operations mean
//! The same for all of the project; `content` is the code of the first three points.
//! * A key holds nothing, a value, or a list. An empty list is the same as nothing: reading `[]` is
//!   reading *absent*, a scan does not show it, and a recorded row whose value is `[]` or `null` says only
//!   that the key was absent. Writing `null` is deleting.
//! * `append` makes `[x]` of nothing, `[v, x]` of a value `v`, and adds to the end of a list.
//! * An absent key satisfies no predicate.
//! * A delete is a write of *absent*, also where nothing was there. A predicate write writes exactly the
//!   keys it matched; one that matched nothing wrote nothing.
//! * A scan shows every present key of its range, ascending. An iterator that was not exhausted says
//!   nothing about keys beyond its last row. A query shows every key that satisfies it, in any order.
//! * A result that is not known constrains nothing. Locks are ignored. The operations of aborted
//!   transactions are ignored.
//! * Read-your-own-writes, by key: where the transaction wrote the key before, a read sees that write
//!   (`must`), either that or what it would see without it (`may`, for each key of a scan independently),
//!   or what it would see without it (`never`). Appends and predicate writes always build on the
//!   transaction's own earlier writes, whatever the policy is: it is a policy on *reads*.
//! * A transaction of unknown outcome took effect or did not. If it did, its recorded results count. It
//!   follows the earlier committed transactions of its session (where session order counts) and those that
//!   ended before it began (where real time counts); nothing follows it.

mod axioms;
mod content;
mod definition;
mod dirty;
mod naming;
mod orders;
mod replay;
mod rules;
mod scenario;
mod serial;
mod snapshot;
pub mod tiny;
mod versions;

use history::History;
use isolation::{Evidence, Level, Meter, Options, Rule, Undecided, Verdict, Witness};
use std::fmt;

/// Decides whether `history` is possible under `level`, by trying everything.
pub fn oracle(history: &History, level: Level, options: &Options) -> Result<Verdict, TooLarge> {
    let mut effort = Effort::new(options);
    let found = match level.rule {
        Rule::Serializable => serial::search(history, level, options, &mut effort),
        Rule::SnapshotIsolation => snapshot::search(history, level, options, &mut effort),
        _ if level.is_axiomatic() => axioms::search(history, level, options, &mut effort),
        _ => definition::search(history, level, options, &mut effort),
    };
    answer(history, level, options, found)
}

/// As [`oracle`], but by the definition in terms of dependency graphs at every level, also where [`oracle`]
/// replays. The two must agree; a test compares them.
pub fn oracle_by_definition(history: &History, level: Level, options: &Options) -> Result<Verdict, TooLarge> {
    let mut effort = Effort::new(options);
    let found = if level.is_axiomatic() {
        axioms::search(history, level, options, &mut effort)
    } else {
        definition::search(history, level, options, &mut effort)
    };
    answer(history, level, options, found)
}

/// What to call a violation that [`oracle`] found: the simplest anomaly that the history has, as far as
/// trying weaker rules by definition shows it. The evidence in [`oracle`]'s own verdict is named for the
/// level alone, because comparisons of verdicts should not pay for this.
pub fn evidence(history: &History, level: Level, options: &Options) -> Evidence {
    naming::evidence(history, level, options, |weaker| {
        let mut effort = Effort::new(options);
        matches!(definition::search(history, weaker, options, &mut effort), Ok(None))
    })
}

fn answer(history: &History, level: Level, options: &Options, found: Found) -> Result<Verdict, TooLarge> {
    match found {
        Ok(Some(witness)) => Ok(Verdict::Accepted(witness)),
        Ok(None) => {
            let quick = |_| false;
            Ok(Verdict::Violated(Box::new(naming::evidence(history, level, options, quick))))
        }
        Err(Stop::TooLarge(too_large)) => Err(too_large),
        Err(Stop::Undecided(why)) => Ok(Verdict::Undecided(why)),
    }
}

/// The history is beyond what trying everything can decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLarge {
    /// Too many transactions that may have taken effect.
    Transactions {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// Too many keys for explanations to be enumerated.
    Keys {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// Too many operations for explanations to be enumerated.
    Operations {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// The search itself grew too long.
    Steps {
        /// How many steps there may be.
        max: u64,
    },
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transactions { count, max } => write!(
                f,
                "{count} transactions may have taken effect; exhaustive checking goes up to {max} at this level"
            ),
            Self::Keys { count, max } => {
                write!(f, "{count} keys; exhaustive checking goes up to {max} at this level")
            }
            Self::Operations { count, max } => {
                write!(f, "{count} operations; exhaustive checking goes up to {max} at this level")
            }
            Self::Steps { max } => {
                write!(f, "exhaustive checking gave up after {max} steps; the history is too large for it")
            }
        }
    }
}

impl std::error::Error for TooLarge {}

/// What a search returns: a witness, proof that there is none, or a reason to stop.
type Found = Result<Option<Witness>, Stop>;

/// Why a search ends without an answer.
enum Stop {
    TooLarge(TooLarge),
    Undecided(Undecided),
}

/// Counts the steps of a search and says when it must stop.
struct Effort<'o> {
    meter: Meter<'o>,
    steps: u64,
}

/// A search that takes more steps than this is refused: some seconds.
const STEPS_MAX: u64 = 3_000_000;

impl<'o> Effort<'o> {
    fn new(options: &'o Options) -> Self {
        Self { meter: options.budget.meter(), steps: 0 }
    }

    fn step(&mut self) -> Result<(), Stop> {
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(Stop::TooLarge(TooLarge::Steps { max: STEPS_MAX }));
        }
        self.meter.step().map_err(Stop::Undecided)
    }
}

/// Refuses more transactions than `max`.
fn admit(count: usize, max: usize) -> Result<(), Stop> {
    if count > max { Err(Stop::TooLarge(TooLarge::Transactions { count, max })) } else { Ok(()) }
}
