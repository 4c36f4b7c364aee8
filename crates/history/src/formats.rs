//! Every file format, as one table.

use crate::Builder;
use std::fmt;

/// Where and why a reader stopped. The place is a byte offset; the caller, who knows the file, turns it
/// into line and column and shows the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The byte at which the input stops making sense.
    pub offset: u64,
    /// What is wrong, as a sentence without a full stop.
    pub problem: String,
    /// What was expected there, and what to do.
    pub expected: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: {}; expected {}", self.offset, self.problem, self.expected)
    }
}

impl std::error::Error for Fault {}

/// The signature of every reader: all bytes of a file (mapped or decompressed) into a builder.
/// With `lenient`, a refusal of one transaction becomes an entry in `warnings` and reading goes on.
pub type Read = fn(bytes: &[u8], builder: &mut Builder, warnings: &mut Warnings) -> Result<(), Fault>;

/// Refusals that `--lenient` turned into warnings.
#[derive(Clone, Debug, Default)]
pub struct Warnings {
    /// Whether refusals become warnings at all.
    pub lenient: bool,
    /// What was refused, in order.
    pub faults: Vec<Fault>,
}
