//! Checks whether a database keeps its isolation promises.
//!
//! A *history* is what clients of a database saw: transactions, their operations, and what came back. Taipan decides
//! whether a correct database could have produced it at an isolation level, and says why not.
//!
//! ```
//! # fn main() -> Result<(), taipan::Error> {
//! let history = taipan::parse("s1: r(x,_) w(x,1)\ns2: r(x,1) w(x,2)\n")?;
//! let outcome = taipan::check(&history, &taipan::Claim::serializable(), &Default::default());
//! assert!(outcome.is_accepted(), "{}", outcome.explain(&history));
//! # Ok(())
//! # }
//! ```
//!
//! The nouns:
//!
//! * [`History`] — what clients saw: [`read`] a file of any known format, or [`parse`] text.
//! * [`Claim`] — what is asked: an isolation level, and what the order is judged by. [`Policy`] makes claims with more
//!   assumptions.
//! * [`Outcome`] — the answer: accepted, violated or undecided, with evidence and an explanation.
//! * [`record`] — recording a history in a program that uses a database.
//! * [`files`] — checking files within limits on time and memory.
//! * [`Error`] — why there is no history to check. A violation is never an error.

mod error;
pub mod files;
mod outcome;
mod policy;
mod refusal;

pub use checker::{By, Claim, Level, Options, Ryow, Vendor, Verdict, VerdictKind};
pub use error::Error;
pub use history::History;
pub use outcome::Outcome;
pub use policy::{Asked, Assumption, BadClaim, LevelNames, Policy};
/// Recording what the clients of a database see: [`Recorder`](record::Recorder) and [`Tracer`](record::Tracer).
pub use record;

use history::formats::{ReadOptions, read_bytes, read_path};
use std::path::Path;

/// Reads a history from a file, or from a directory where the format is one. The format is found from the content; gzip
/// and zstd are undone.
///
/// # Errors
/// If there is no such file, or it holds no history; the message says where and why.
pub fn read(path: impl AsRef<Path>) -> Result<History, Error> {
    Ok(read_path(path.as_ref(), &ReadOptions::default())?.history)
}

/// Reads a history from text or bytes, in any of the formats.
///
/// # Errors
/// If it is no history; the message says where and why.
pub fn parse(content: impl AsRef<[u8]>) -> Result<History, Error> {
    Ok(read_bytes("history", content.as_ref(), &ReadOptions::default())?.history)
}

/// Decides whether a correct database could have produced the history.
pub fn check(history: &History, claim: &Claim, options: &Options) -> Outcome {
    Outcome::of(history, claim, options)
}

/// The front page, so that its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
