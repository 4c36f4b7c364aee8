//! What can go wrong, as types with sentences.

use history::formats::ReadError;
use std::fmt;

/// Why there is no answer. A violation is an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The history could not be read.
    Read(ReadError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Read(error) => Some(error),
        }
    }
}

impl From<ReadError> for Error {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}
