//! Certificates into a file, line by line.

use crate::console::Stop;
use checker::certify::Certificate;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A file of certificates that is being written.
pub(crate) struct Certificates {
    path: PathBuf,
    out: BufWriter<File>,
}

impl Certificates {
    /// Creates the file; what was there before is gone.
    pub(crate) fn create(path: &Path) -> Result<Self, Stop> {
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        Ok(Self { path: path.to_owned(), out: BufWriter::new(file) })
    }

    /// Adds a line.
    pub(crate) fn write(&mut self, certificate: &Certificate<'_>) -> Result<(), Stop> {
        // Flushed, so that what was found so far survives whatever comes next.
        certificate
            .write(&mut self.out)
            .and_then(|()| self.out.flush())
            .map_err(|error| failed(&self.path, &error))
    }

    /// Nothing is left to be written.
    pub(crate) fn finish(mut self) -> Result<(), Stop> {
        self.out.flush().map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> Stop {
    Stop::Error(format!("{}: cannot be written: {error}", path.display()))
}
