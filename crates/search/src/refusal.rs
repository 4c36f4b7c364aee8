//! Why there is no problem to solve: the history is violated already, or cannot be taken apart.

use history::{KeyId, OpId};
use isolation::Undecided;

/// A contradiction that needs no order to see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "every case is about operations and the key at which they were done")]
pub enum Contradiction {
    /// A read that contradicts its transaction's own write.
    Internal { op: OpId, key: KeyId },
    /// Two outside reads of one key in one transaction differ.
    NonRepeatable { first: OpId, second: OpId },
    /// No version carries the value that was seen at the key.
    NoSource { op: OpId, key: KeyId },
    /// Rows that no store returns, whatever it holds.
    BadRows { op: OpId },
    /// A list that no order of whole transactions' appends makes.
    BrokenList { op: OpId, key: KeyId },
    /// Two lists of which neither is the beginning of the other.
    IncompatibleLists { first: OpId, second: OpId, key: KeyId },
}

/// Why there is no problem to solve.
#[derive(Clone, Debug)]
pub enum Refusal {
    /// It is violated already.
    Contradiction(Contradiction),
    /// It holds an operation that this stage does not know.
    Unsupported(String),
    /// The budget is used up.
    Open(Undecided),
}

impl From<Contradiction> for Refusal {
    fn from(contradiction: Contradiction) -> Self {
        Self::Contradiction(contradiction)
    }
}

impl From<Undecided> for Refusal {
    fn from(why: Undecided) -> Self {
        Self::Open(why)
    }
}
