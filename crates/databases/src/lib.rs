//! Drives real databases and records what their clients see.
//!
//! The nouns:
//!
//! * [`Database`] and [`Session`] — the one trait behind which every vendor stands, one file a vendor.
//!   A [`Failure`] says what an error means for the transaction, so that outcomes are honest.
//! * [`Recorder`] and [`Tracer`] — envelope tracing, which is the crate `record`; here with the database's own
//!   timestamps ([`finish_timestamped`]).
//! * [`Plan`] and [`run`] — a workload, and the threads that carry it out; a [`WorkloadPlan`] is any plan
//!   of the `workload` crate.
//! * [`matrix`](matrix()) — which anomalies a database shows in scripted schedules, level by level.
//! * [`Follower`] and [`Join`] — a running server's change stream, joined with what traced clients read.
//! * [`open`] — a target as people write it, e.g. `postgres:temp`, as a database.
//!
//! ```
//! use taipan_databases::{Header, Plan, Recorder, RunOptions, WorkloadPlan, open, run};
//!
//! let database = open("sqlite:").unwrap();
//! let plan = WorkloadPlan::new(workload::Workload::ListAppend.settings()).unwrap();
//! database.create(&plan.schema(), &plan.initial()).unwrap();
//! let recorder = Recorder::in_memory(&Header { initial: plan.initial(), ..Header::default() }).unwrap();
//! let options = RunOptions { sessions: 4, transactions: Some(200), ..RunOptions::default() };
//! let summary = run(&*database, &plan, &recorder, &options).unwrap();
//! assert_eq!(recorder.finish().unwrap().len(), 200);
//! assert!(summary.counts.committed > 0);
//! ```
//!
//! This crate is the only one that names vendors, and it never judges results. Each vendor is a feature; all but DuckDB
//! are on by default.

#![cfg_attr(
    not(all(
        feature = "postgres",
        feature = "mysql",
        feature = "sqlite",
        feature = "fjall",
        feature = "redb"
    )),
    allow(dead_code, reason = "what only the vendors that were left out need")
)]

mod dialect;
mod driver;
#[cfg(feature = "duckdb")]
mod duckdb;
#[cfg(feature = "fjall")]
mod fjall;
#[cfg(feature = "postgres")]
mod follow;
mod gate;
mod grammar;
mod isolation;
#[cfg(feature = "mysql")]
mod mariadb;
mod matrix;
mod passwords;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redb")]
mod redb;
mod run;
mod schema;
mod scratch;
mod secret;
mod server;
mod sql;
#[cfg(feature = "sqlite")]
mod sqlite;
mod stamped;
mod store;
mod target;
mod timestamps;
#[cfg(any(feature = "mysql", feature = "postgres"))]
mod tls;
mod workloads;

pub use driver::{Access, Database, Failure, Fault, Limit, Session};
#[cfg(feature = "duckdb")]
pub use duckdb::DuckDb;
#[cfg(feature = "fjall")]
pub use fjall::{Fjall, Probe};
#[cfg(feature = "postgres")]
pub use follow::{Changes, FollowOptions, Follower, Join, Joined, Matched, Patience};
pub use gate::Gate;
pub use grammar::{Grammar, Sight, View};
pub use isolation::{Isolation, PROFILES, Profile};
#[cfg(feature = "mysql")]
pub use mariadb::MariaDb;
pub use matrix::{
    Cell, Console, MATRIX_LEFTOVER, Matrix, MatrixNews, MatrixRow, SCHEDULES, Schedule, Scripted, TraceLine,
    cell, matrix,
};
pub use passwords::Passwords;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use record::{
    Condition, Detail, Header, KeyRange, LIST_COLUMN, Listener, OpRecord, RecordError, Recorder, Request,
    Response, SCALAR_COLUMN, Sinks, Stamp, Tracer, TxnRecord, Value, satisfies,
};
#[cfg(feature = "redb")]
pub use redb::Redb;
pub use run::{Client, Counts, Plan, Progress, RunError, RunOptions, Step, Summary, run};
pub use schema::{Column, Kind, Schema};
pub use scratch::Scratch;
pub use secret::{Address, Secret, with_passwords, without_password};
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use stamped::{Batch, finish_timestamped, take_timestamped};
pub use target::{TargetForm, is_lasting, open, open_with, targets};
pub use workloads::{Naming, WorkloadPlan};
