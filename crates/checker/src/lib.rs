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
mod answer;
mod closer;
mod constrain;
mod contents;
mod core;
mod demand;
mod eager;
mod explain;
mod fragment;
mod instead;
mod inventory;
mod lanes;
mod lists;
mod logical;
mod looked_at;
mod naming;
mod observe;
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
mod solving;
pub mod spread;
mod survey;
pub mod timestamped;
mod weak;

pub use ::{certify, oracle};
pub use answer::{Answer, answer, answer_sharing, hint, subject};
pub use closer::{Closer, allowed, look_closer};
pub use eager::smt;
pub use fragment::Fragment;
pub use instead::{Instead, instead};
pub use inventory::{Inventory, Kind, ROUNDS_MAX, inventory};
pub use isolation::{
    Additions, Anomaly, Argument, BadDefinition, BlindSpot, Budget, By, Case, Cases, Claim, CommitOrder,
    Coverage, Definition, ELLE_DEFAULT, Edge, EdgeKind, Event, Evidence, HappenedBefore, Implication,
    Impossible, KeyOrder, Level, LevelRow, Linearizable, Module, Options, Orders, Outcome, Own, Passes,
    Reason, Rule, Ryow, Stats, Strategy, Supposition, TABLE, UNDECIDED, Undecided, UndecidedLevel,
    UnknownLevel, UnknownName, Vendor, Verdict, VerdictKind, VersionOrders, Witness, coverage,
    coverage_within, elle_models, forbidding, implications, implies, meaning_here, parse_levels,
};
pub use logical::{let_go as let_go_by_halves, split as split_into_logical};
pub use looked_at::LookedAt;
pub use pigeonhole::Crowd;
pub use pipeline::{check, check_sharing};
pub use prove::add_proof;
pub use reduce::{Reduced, reduce};
pub use survey::{Survey, survey};
