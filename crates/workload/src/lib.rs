//! Transactions to run, and a simulated database to run them on.
//!
//! The nouns:
//!
//! * [`Settings`] and [`SessionPlan`] — what clients want: for every session a deterministic stream of
//!   transaction [`Template`]s. Plans do not know who executes them.
//! * [`Simulation`] — a seeded database in memory: sessions interleave at random on a multi-version store
//!   that promises read-committed, snapshot isolation, serializability or strictness, and keeps it, except
//!   where a [`Bug`] is planted.
//! * [`Executed`] — what came of a transaction; a [`Recorder`] turns it into history.
//! * [`Target`] — `sim:snapshot-isolation?bug=lost-update`, parsed.
//!
//! ```
//! use taipan_workload::{Bug, Config, Fields, Plant, Simulation, Strength, Workload};
//!
//! let mut config = Config::new(Workload::ReadModifyWrite.settings(), Strength::SnapshotIsolation, 1000);
//! config.bugs.push((Bug::LostUpdate, Plant::Exactly(1)));
//! let mut builder = history::Builder::new();
//! let summary = Simulation::new(config).unwrap().run(Fields::default(), &mut builder).unwrap();
//! assert_eq!(summary.planted.len(), 1);
//! assert_eq!(builder.finish().unwrap().len(), 1000);
//! ```
//!
//! This crate talks to no server and judges nothing.

mod applications;
mod bugs;
mod certify;
mod claims;
mod columns;
mod executed;
mod keys;
mod plan;
mod planting;
mod random;
mod record;
mod running;
mod simulation;
mod store;
mod target;
mod workloads;

pub use bugs::{Bug, UnknownBug};
pub use executed::{Done, Executed};
pub use keys::{Distribution, Key};
pub use plan::{
    Column, Filter, Piece, RESERVED_FROM, Rule, SessionPlan, Settings, SettingsError, Step, Template, Value,
};
pub use planting::{Plant, Planted};
pub use random::{Random, Zipf};
pub use record::{Fields, Recorder, RunError};
pub use simulation::{Certification, Config, Simulation, Strength, Summary};
pub use target::{Target, TargetError};
pub use workloads::{UnknownWorkload, Workload};

/// The page of the book, so that its code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/workloads.md")]
struct Book;
