//! Why recording stopped.

use history::BuildError;
use history::formats::WriteError;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why recording stopped.
#[derive(Debug)]
pub enum RecordError {
    /// The file could not be written. What stood there before is whole, but something is missing.
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no more space. Everything up to here was written.
    Full {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The history refused a transaction.
    History(BuildError),
    /// The native format cannot hold a transaction.
    Line(WriteError),
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, error } => {
                write!(
                    f,
                    "cannot record to {}: {error}; what was recorded before that is intact",
                    path.display()
                )
            }
            Self::Full { path, error } => write!(
                f,
                "the run stopped, for nothing more can be recorded to {}: {error}; what was recorded is whole",
                path.display()
            ),
            Self::History(error) => write!(f, "the recorded history is impossible: {error}"),
            Self::Line(error) => write!(f, "cannot write down a transaction: {error}"),
        }
    }
}

impl std::error::Error for RecordError {}

impl From<BuildError> for RecordError {
    fn from(error: BuildError) -> Self {
        Self::History(error)
    }
}
