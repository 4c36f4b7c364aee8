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
//! * [`Outcome`] — the answer: accepted, violated or undecided, with an explanation, a smallest part and a certificate, which
//!   [`certify`](certify()) checks.
//! * [`record`] — recording a history in a program that uses a database.
//! * [`files`] — checking files within limits on time and memory.
//! * [`Error`] — why there is no history to check. A violation is never an error.

mod ended;
mod error;
pub mod files;
mod outcome;
mod policy;
mod refusal;
mod witness;

#[doc(inline)]
pub use certify::{Malformed, Refusal, Ruling};
#[doc(inline)]
pub use checker::{
    Budget, By, Claim, Evidence, Level, Options, Ryow, Undecided, Vendor, Verdict, VerdictKind, Witness,
};
pub use error::Error;
#[doc(inline)]
pub use history::History;
pub use outcome::Outcome;
pub use policy::{Asked, Assumption, BadClaim, LevelNames, Policy};
/// Recording what the clients of a database see: [`Recorder`](record::Recorder) and [`Tracer`](record::Tracer).
#[doc(inline)]
pub use record;

use certify::{Certificate, Question};
use history::formats::{Format, ReadOptions, read_bytes, read_path, write_path};
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

/// Writes a history into a file, in the format that the file's name tells: `.jsonl`, `.hist` or `.tph`, also with `.gz` or
/// `.zst`; any other name means the native format, JSON lines.
///
/// # Errors
/// If the file cannot be written, or the format cannot hold the history.
pub fn write(history: &History, path: impl AsRef<Path>) -> Result<(), Error> {
    let name = path.as_ref().file_name().unwrap_or_default().to_string_lossy();
    let format = Format::from_file_name(&name).unwrap_or(Format::Jsonl);
    Ok(write_path(history, format, path.as_ref())?)
}

/// Decides whether a correct database could have produced the history.
///
/// What would say less than it seems to is undecided: a history in which nothing is committed, or of a model without
/// isolation levels, and a transaction that itself asked for less than the claim.
pub fn check(history: &History, claim: &Claim, options: &Options) -> Outcome {
    Outcome::of(history, claim, options)
}

/// Checks the certificate of an answer with code that shares nothing with the search that found the answer.
///
/// # Errors
/// If it is no certificate.
pub fn certify(history: &History, claim: &Claim, certificate: &str) -> Result<Ruling, Malformed> {
    let certificate = Certificate::parse(certificate.trim_end())?;
    let asked = Question { level: claim.level, ryow: claim.ryow, clock_skew: claim.clock_skew };
    Ok(match certificate.answers(asked) {
        Ok(()) => ::certify::certify(history, &certificate, &Budget::unlimited()),
        Err(refusal) => Ruling::Refused(refusal),
    })
}

/// The book's chapter, so that its examples are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/book/src/library.md")]
struct Chapter;

/// The front page, so that its example is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
