//! Certificates into a file, line by line.

use crate::console::Stop;
use crate::flags::PolicyFlags;
use checker::Level;
use checker::certify::{Certificate, has_certifier};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Whether certificates prove what is asked; why not, if they do not. Nothing is written that would prove something else.
pub(crate) fn serve(policy: &PolicyFlags, asked: &[Level]) -> Result<(), String> {
    if policy.mixed {
        return Err("--certificate does not support --mixed: remove one of them".to_owned());
    }
    if let Some(profile) = policy.profile {
        return Err(format!(
            "--certificate does not support --profile {}: name a level without --profile, or remove --certificate",
            profile.name
        ));
    }
    match asked.iter().find(|&&level| !has_certifier(level)) {
        Some(&level) => Err(no_certifier(level)),
        None => Ok(()),
    }
}

/// Why a level has no certificates.
pub(crate) fn no_certifier(level: Level) -> String {
    format!(
        "--certificate does not support {level}, only serializability, snapshot isolation and their session and real-time variants"
    )
}

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
    Stop::Error(format!("cannot write {}: {error}", path.display()))
}
