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

mod answer;

pub use ::{certify, oracle};
pub use answer::{Answer, answer, answer_sharing, hint, subject};
pub use encodings::smt;
pub use evidence::{
    Closer, Crowd, Fragment, Instead, Inventory, Kind, ROUNDS_MAX, Reduced, Survey, add_proof, allowed,
    check, check_sharing, instead, inventory, look_closer, reduce, survey,
};
pub use isolation::logical::{let_go as let_go_by_halves, split as split_into_logical};
pub use isolation::{
    Additions, Anomaly, Argument, BadDefinition, BlindSpot, Budget, By, Case, Cases, Claim, CommitOrder,
    Coverage, Definition, ELLE_DEFAULT, Edge, EdgeKind, Event, Evidence, HappenedBefore, Implication,
    Impossible, KeyOrder, Level, LevelRow, Linearizable, Module, Options, Orders, Outcome, Own, Passes,
    Reason, Rule, Ryow, Stats, Strategy, Supposition, TABLE, UNDECIDED, Undecided, UndecidedLevel,
    UnknownLevel, UnknownName, Vendor, Verdict, VerdictKind, VersionOrders, Witness, coverage,
    coverage_within, elle_models, forbidding, implications, implies, meaning_here, parse_levels,
};
pub use search::LookedAt;
