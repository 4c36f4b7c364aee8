//! What is asked of a history and what is answered: isolation levels, claims and verdicts.
//!
//! The nouns:
//!
//! * [`Claim`] — what is asked: a [`Level`] (a row of the [table of levels](TABLE), or a level of the user's own), what the
//!   order is judged by, and policies.
//! * [`Options`] — how the answer is looked for, and a [`Budget`] that says when to give up.
//! * [`Verdict`] — the answer: [`Verdict::Accepted`] with a witness, [`Verdict::Violated`] with
//!   evidence, or [`Verdict::Undecided`] with the reason. A violation is never an error.
//! * [`Coverage`] — what an accepted history tested, and what it could not have shown.
//!
//! Nothing is decided here; the engines that decide depend on this crate and not on each other.
//!
//! ```
//! use taipan_isolation::{Claim, Level, implies};
//!
//! let level = Level::parse("snapshot isolation")?;
//! assert!(implies(Level::SERIALIZABLE, level));
//! assert_eq!(Claim::new(level).to_string(), "snapshot-isolation");
//! # Ok::<(), taipan_isolation::UnknownLevel>(())
//! ```

mod budget;
mod claim;
pub mod coverage;
mod custom;
mod gallop;
mod key_orders;
mod levels;
pub mod logical;
mod module;
pub mod modules;
mod strategy;
mod undecided;
mod untested;
mod verdict;

pub use budget::{Budget, Meter};
pub use claim::{By, Claim, Vendor};
pub use coverage::{BlindSpot, Coverage, coverage, coverage_within};
pub use custom::{BadDefinition, Definition, parse_levels};
pub use gallop::gallop;
pub use key_orders::KeyOrder;
pub use levels::names::{
    ELLE_DEFAULT, UNDECIDED, UndecidedLevel, UnknownLevel, elle_models, forbidding, meaning_here,
};
pub use levels::{Implication, Level, LevelRow, Own, Rule, TABLE, implications, implies};
pub use module::{Additions, Module};
pub use modules::{CommitOrder, HappenedBefore, Linearizable, VersionOrders};
pub use strategy::{Passes, Strategy, UnknownName};
pub use undecided::Undecided;
pub use untested::Orders;
pub use verdict::{
    Anomaly, Argument, Case, Cases, Edge, EdgeKind, Event, Evidence, Impossible, Options, Outcome, Reason,
    Ryow, Stats, Supposition, Verdict, VerdictKind, Witness,
};
