//! Drives real databases and records what their clients see.
//!
//! The nouns:
//!
//! * [`Database`] and [`Session`] — the one trait behind which every vendor stands, one file a vendor.
//!   A [`Failure`] says what an error means for the transaction, so that outcomes are honest.
//! * [`Recorder`] and [`Tracer`] — envelope tracing: into a [`history::History`] and, line by line as
//!   it happens, into a file of the native format.
//! * [`Plan`] and [`run`] — a workload, and the threads that carry it out.
//!
//! This crate is the only one that names vendors, and it never judges results.

mod dialect;
mod driver;
mod fjall;
mod intern;
mod isolation;
mod line;
mod mariadb;
mod postgres;
mod record;
mod redb;
mod request;
mod run;
mod server;
mod sql;
mod sqlite;
mod store;
mod target;

pub use driver::{Access, Database, Failure, Fault, Session, Stamp};
pub use fjall::{Fjall, Probe};
pub use isolation::Isolation;
pub use mariadb::MariaDb;
pub use postgres::Postgres;
pub use record::{Detail, Header, Listener, OpRecord, RecordError, Recorder, Sinks, Tracer, TxnRecord};
pub use redb::Redb;
pub use request::{
    Column, Condition, KeyRange, Kind, LIST_COLUMN, Request, Response, SCALAR_COLUMN, Schema, Value,
};
pub use run::{Client, Counts, Plan, Progress, RunError, RunOptions, Step, Summary, run};
pub use sqlite::Sqlite;
pub use target::{TARGETS, TargetForm, open};
