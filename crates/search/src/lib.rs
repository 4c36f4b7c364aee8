//! Decides whether a history is possible under an isolation level, by what clients saw.
//!
//! The nouns:
//!
//! * [`Problem`](problem::Problem) — what each read can have seen: versions, reads, sources, open alternatives.
//! * [`Known`](constrain::Known) — the order that every explanation has.
//! * [`Decision`] — the answer: a witness, or transactions that already have no explanation.
//!
//! [`decide`] is the whole pipeline. Why a core has no explanation is not said here: evidence asks this crate about
//! parts of a history, so it is above it.
//!
//! ```
//! use history::formats::notation;
//! use isolation::{Level, Options, Stats};
//! use taipan_search::{Decision, decide};
//!
//! let history = notation::parse("s1: r(x,_) w(x,1)\ns2: r(x,_) w(x,2)\n")?;
//! let decision = decide(&history, Level::SERIALIZABLE, &Options::default(), &mut Stats::default());
//! assert!(matches!(decision, Decision::Impossible(core) if core.len() == 2));
//! # Ok::<(), history::formats::Fault>(())
//! ```

mod alternatives;
mod bases;
pub mod blame;
pub mod constrain;
pub mod contents;
mod decision;
mod demand;
mod first_order;
mod lanes;
pub mod lists;
mod looked_at;
pub mod observe;
mod parts;
pub mod pigeonhole;
mod pipeline;
pub mod problem;
pub mod refine;
pub mod refusal;
mod resolve;
pub mod restrict;
pub mod rows;
mod saturate;
pub mod schedule;
mod scripts;
pub mod settle;
pub mod solving;
pub mod weak;

pub use decision::Decision;
pub use looked_at::LookedAt;
pub use pipeline::{decide, decide_problem, decide_sharing, ordered, witness};
