//! Tiny random histories, and how to make a failing one smaller.
//!
//! Three nouns:
//! * [`Shape`] — what random histories look like: sizes, operation kinds, statuses, clocks.
//!   [`Shape::history`] makes one from a seed, the same for the same seed for ever.
//! * [`Sketch`] — an editable copy of a history.
//! * [`shrink`] — the smallest history it can find that still fails.
//!
//! A property test looks like this:
//! ```
//! use taipan_oracle::{oracle, tiny::{Shape, shrink}};
//! use isolation::{Level, Options, Verdict};
//!
//! let accepted = |history: &history::History, level| {
//!     matches!(oracle(history, level, &Options::default()), Ok(Verdict::Accepted(_)))
//! };
//! let broken = |history: &history::History| {
//!     accepted(history, Level::SERIALIZABLE) && !accepted(history, Level::SNAPSHOT_ISOLATION)
//! };
//! for seed in 0..200 {
//!     let history = Shape::everything().history(seed);
//!     if broken(&history) {
//!         panic!("seed {seed}:\n{}", taipan_oracle::tiny::Sketch::of(&shrink(&history, broken)));
//!     }
//! }
//! ```

mod plant;
mod random;
mod shrink;
mod sketch;
mod store;

pub use random::Random;
pub use shrink::shrink;
pub use sketch::{Condition, Datum, Rows, Sketch, SketchOp, SketchTxn};
pub use store::{Mix, Shape};
