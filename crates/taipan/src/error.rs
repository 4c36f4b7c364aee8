//! What can go wrong, as types with sentences.

use crate::ended::Ended;
use crate::policy::BadClaim;
use history::formats::{Located, ReadError, WriteError};
use std::fmt;

/// What went wrong. A violation is no error but an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The history could not be read.
    Read(ReadError),
    /// The history could not be written.
    Write(WriteError),
    /// A limit ended the reading.
    Ended(Box<Ended>),
    /// Nothing in the history is committed, so that every level would hold.
    NothingCommitted {
        /// How many transactions there are.
        transactions: u64,
    },
    /// The history is of another model, whose operations say nothing of isolation; the sentence says why.
    OtherModel(String),
    /// What was asked does not exist.
    Claim(BadClaim),
    /// A transaction asked for a level that promises less than what the history is checked for.
    Unpromised {
        /// The transaction.
        transaction: String,
        /// The level it asked for.
        asked: String,
        /// The level that is checked.
        level: String,
    },
    /// A level of the user's own speaks of something that the history does not have; the sentence says of what.
    Unmatched(String),
}

impl Error {
    /// Where in the file, from 1: the line, and the column in it, as far as they are known.
    pub fn place(&self) -> (Option<u64>, Option<u64>) {
        let place = match self {
            Self::Read(error) => error.located(),
            _ => None,
        };
        (place.and_then(Located::line), place.and_then(Located::column))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::Write(error) => error.fmt(f),
            Self::Ended(ended) => f.write_str(&ended.reason),
            Self::NothingCommitted { transactions } => {
                f.write_str("contains ")?;
                match transactions {
                    0 => f.write_str("no transactions")?,
                    1 => f.write_str("1 transaction")?,
                    many => write!(f, "{many} transactions")?,
                }
                f.write_str(", none of them committed, so a verdict would be empty")
            }
            Self::OtherModel(why) => write!(
                f,
                "{why}: no isolation level can be decided; record reads and writes of absolute values, or transactions"
            ),
            Self::Claim(bad) => bad.fmt(f),
            Self::Unpromised { transaction, asked, level } => {
                write!(f, "transaction {transaction} asked for {asked}, which does not promise {level}")
            }
            Self::Unmatched(what) => write!(f, "{what}; nothing would be tested"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
            Self::Write(error) => Some(error),
            Self::Claim(bad) => Some(bad),
            _ => None,
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl From<WriteError> for Error {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

impl From<BadClaim> for Error {
    fn from(bad: BadClaim) -> Self {
        Self::Claim(bad)
    }
}
