//! Records what the clients of a database see, so that it can be checked.
//!
//! A program calls a [`Tracer`] per connection before and after each operation. A [`Recorder`] collects the transactions
//! of all connections into a [`History`] and, as they end, into a file of the native format.
//!
//! ```
//! use taipan_record::{Header, Recorder, Request, Response, Status};
//!
//! let header = Header { initial: vec![("x".into(), 0.into())], ..Header::default() };
//! let recorder = Recorder::in_memory(&header)?;
//! let mut tracer = recorder.tracer(1.into());
//! tracer.begin();
//! tracer.call(Request::read("x"));
//! tracer.answer(Response::Value(0.into()));
//! tracer.call(Request::write("x", 1));
//! tracer.answer(Response::Done);
//! tracer.committing();
//! tracer.end(Status::Committed)?;
//! let history = recorder.finish()?;
//! assert_eq!(history.op_count(), 2);
//! # Ok::<(), taipan_record::RecordError>(())
//! ```
//!
//! The nouns:
//!
//! * [`Recorder`] and [`Sinks`]: a history that is being recorded, and where it goes.
//! * [`Tracer`]: one connection, which calls it before and after everything that it does.
//! * [`Request`], [`Response`] and [`Value`]: an operation, its answer, and the values in both.
//! * [`TxnRecord`] and [`OpRecord`]: a transaction as its client saw it.
//!
//! This crate contains no database drivers: tracing a program adds none to its build.

mod error;
mod intern;
mod line_file;
mod recorder;
mod records;
mod request;
mod tracer;

pub use error::RecordError;
pub use history::{Comparison, History, Lock, Name, Span, Status};
pub use recorder::{Batch, Listener, Recorder, Sinks};
pub use records::{Detail, Header, OpRecord, Stamp, TxnRecord};
pub use request::{Condition, KeyRange, LIST_COLUMN, Request, Response, SCALAR_COLUMN, Value, satisfies};
pub use tracer::Tracer;
