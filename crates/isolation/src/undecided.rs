//! Why there is no answer.

use std::fmt;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecided {
    /// The time is up.
    Timeout,
    /// The memory is used up.
    Memory,
    /// Somebody cancelled it.
    Cancelled,
    /// The history is beyond what this checker decides; the sentence says why.
    Unsupported(String),
    /// The history does not test what was asked; the sentence says what is missing.
    Untested(String),
}

/// As a sentence without a full stop.
impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("timed out"),
            Self::Memory => f.write_str("out of memory"),
            Self::Cancelled => f.write_str("the check was cancelled"),
            Self::Unsupported(why) | Self::Untested(why) => f.write_str(why),
        }
    }
}
