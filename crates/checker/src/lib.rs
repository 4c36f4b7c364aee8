//! Decides whether a history is possible under an isolation level, with evidence.
//!
//! The nouns:
//!
//! * [`Claim`] — what is asked: a [`Level`] (a row of the levels table), what the order is judged by, and policies.
//! * [`Options`] — how the answer is looked for, and when to give up.
//! * [`Verdict`] — the answer: [`Verdict::Accepted`] with a witness, [`Verdict::Violated`] with
//!   evidence, or [`Verdict::Undecided`] with the reason. A violation is never an error.
//! * [`certify::Certificate`] — the answer in a form that separate code can re-check.
//!
//! This crate does not print, read files or know a database by name.

mod alternatives;
mod budget;
pub mod certify;
mod claim;
mod closer;
mod constrain;
mod contents;
mod core;
mod coverage;
mod custom;
mod demand;
mod eager;
mod explain;
mod fragment;
mod gallop;
mod instead;
mod inventory;
mod key_orders;
mod lanes;
mod levels;
mod lists;
mod logical;
mod looked_at;
mod modules;
mod naming;
mod observe;
pub mod oracle;
mod parts;
mod pigeonhole;
mod pipeline;
mod problem;
mod prove;
mod reduce;
mod refine;
mod resolve;
mod restrict;
mod rows;
mod saturate;
mod schedule;
mod scripts;
mod settle;
mod shown;
mod simpler;
pub mod spread;
mod survey;
pub mod timestamped;
mod untested;
mod verdict;
mod weak;

pub use claim::{Answer, By, Claim, Vendor};
pub use closer::{Closer, allowed, look_closer};
pub use coverage::{BlindSpot, Coverage, coverage, coverage_within};
pub use custom::{BadDefinition, Definition, parse_levels};
pub use eager::{Passes, Strategy, UnknownName, smt};
pub use fragment::Fragment;
pub use instead::{Instead, instead};
pub use inventory::{Inventory, Kind, ROUNDS_MAX, inventory};
pub use key_orders::KeyOrder;
pub use levels::names::{
    ELLE_DEFAULT, UNDECIDED, UndecidedLevel, UnknownLevel, elle_models, forbidding, meaning_here,
};
pub use levels::{Implication, Level, LevelRow, Own, Rule, TABLE, implications, implies};
pub use logical::{let_go as let_go_by_halves, split as split_into_logical};
pub use looked_at::LookedAt;
pub use modules::{Additions, CommitOrder, HappenedBefore, Linearizable, Module, VersionOrders};
pub use pigeonhole::Crowd;
pub use pipeline::{check, check_sharing};
pub use prove::add_proof;
pub use reduce::{Reduced, reduce};
pub use survey::{Survey, survey};
pub use untested::Orders;
pub use verdict::{
    Anomaly, Argument, Budget, Case, Cases, Edge, EdgeKind, Event, Evidence, Impossible, Options, Outcome,
    Reason, Ryow, Stats, Supposition, Undecided, Verdict, VerdictKind, Witness,
};
