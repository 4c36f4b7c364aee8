//! The checker of an engine: with its keys here, or on workers.

use crate::spill::Spill;
use replay::online::{Damaged, Online, Settings, Workers};
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

type Hire = dyn Fn(Option<Spill>) -> io::Result<Box<dyn Workers>> + Send + Sync;

/// Starts the workers of a checker, who may share a store for what does not fit into memory.
#[derive(Clone)]
pub struct Crew(Arc<Hire>);

impl Crew {
    /// By a function of that store.
    pub fn new(hire: impl Fn(Option<Spill>) -> io::Result<Box<dyn Workers>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hire))
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Crew")
    }
}

fn invalid(kind: io::ErrorKind, why: impl fmt::Display) -> io::Error {
    io::Error::new(kind, why.to_string())
}

fn refused(damaged: Damaged) -> io::Error {
    match damaged {
        // A worker that is gone is no damage of the state.
        Damaged::Io(error) if error.kind() == io::ErrorKind::Other => error,
        Damaged::OtherSettings(_) => invalid(io::ErrorKind::InvalidInput, damaged),
        damaged => invalid(io::ErrorKind::InvalidData, damaged),
    }
}

/// A new checker, or one that was saved. The store has what it held then.
pub(crate) fn open(
    settings: &Settings,
    crew: Option<&Crew>,
    saved: Option<&mut dyn Read>,
    spill: Option<&Spill>,
) -> io::Result<Online> {
    let settings = settings.clone();
    if let Some(Crew(hire)) = crew {
        let workers = hire(spill.cloned())?;
        return match saved {
            None => {
                Online::on(settings, workers).map_err(|refusal| invalid(io::ErrorKind::InvalidInput, refusal))
            }
            Some(input) => Online::restore_on(settings, input, workers).map_err(refused),
        };
    }
    let online = match saved {
        None => Online::new(settings).map_err(|refusal| invalid(io::ErrorKind::InvalidInput, refusal))?,
        Some(input) => Online::restore(settings, input).map_err(refused)?,
    };
    Ok(match spill.cloned() {
        Some(spill) => online.with_cold(Box::new(spill)),
        None => online,
    })
}
