//! The checker of an engine: alone, or with its keys on workers.

use crate::spill::Spill;
use checker::timestamped::online::{
    Counters, Damaged, Found, Online, Settings, Sharded, Size, Standing, Workers,
};
use history::{History, Timestamp};
use std::fmt;
use std::io::{self, Read, Write};
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

/// The online checker. What workers do is known as they last said, until it catches up.
pub enum Checker {
    /// In the engine's thread.
    One(Box<Online>),
    /// On workers.
    Several(Box<Sharded>),
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

impl Checker {
    /// A new checker, or one that was saved. The store has what it held then.
    pub(crate) fn open(
        settings: &Settings,
        crew: Option<&Crew>,
        saved: Option<&mut dyn Read>,
        spill: Option<&Spill>,
    ) -> io::Result<Self> {
        let settings = settings.clone();
        if let Some(Crew(hire)) = crew {
            let workers = hire(spill.cloned())?;
            let sharded = match saved {
                None => Sharded::new(settings, workers)
                    .map_err(|refusal| invalid(io::ErrorKind::InvalidInput, refusal))?,
                Some(input) => Sharded::restore(settings, input, workers).map_err(refused)?,
            };
            return Ok(Self::Several(Box::new(sharded)));
        }
        let online = match saved {
            None => Online::new(settings).map_err(|refusal| invalid(io::ErrorKind::InvalidInput, refusal))?,
            Some(input) => Online::restore(settings, input).map_err(refused)?,
        };
        Ok(Self::One(Box::new(match spill.cloned() {
            Some(spill) => online.with_cold(Box::new(spill)),
            None => online,
        })))
    }

    pub(crate) fn receive(&mut self, part: &History) -> io::Result<()> {
        match self {
            Self::One(online) => online.receive(part),
            Self::Several(sharded) => sharded.receive(part),
        }
    }

    pub(crate) fn advance(&mut self, watermark: Timestamp, horizon: Option<Timestamp>) -> io::Result<()> {
        match self {
            Self::One(online) => online.advance(watermark, horizon),
            Self::Several(sharded) => sharded.advance(watermark, horizon),
        }
    }

    /// What is certain since the last call and known here.
    pub(crate) fn findings(&mut self) -> io::Result<Vec<Found>> {
        match self {
            Self::One(online) => Ok(online.findings()),
            Self::Several(sharded) => sharded.findings(),
        }
    }

    /// The transactions of findings, as far as they are kept.
    pub(crate) fn transactions_of(&self, findings: &[Found]) -> Vec<Vec<String>> {
        match self {
            Self::One(online) => online.transactions_of(findings),
            Self::Several(sharded) => sharded.transactions_of(findings),
        }
    }

    /// Waits until all workers have followed everything: what is certain is known here.
    pub(crate) fn catch_up(&mut self) -> io::Result<()> {
        match self {
            Self::One(_) => Ok(()),
            Self::Several(sharded) => sharded.catch_up(),
        }
    }

    pub(crate) fn save(&mut self, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::One(online) => online.save(out),
            Self::Several(sharded) => sharded.save(out),
        }
    }

    pub(crate) fn set_memory_max(&mut self, bytes: usize) {
        match self {
            Self::One(online) => online.set_memory_max(Some(bytes)),
            Self::Several(sharded) => sharded.set_memory_max(Some(bytes)),
        }
    }

    /// What there is to count.
    pub fn counters(&self) -> Counters {
        match self {
            Self::One(online) => online.counters().clone(),
            Self::Several(sharded) => sharded.counters(),
        }
    }

    /// How many findings have been made.
    pub fn finding_count(&self) -> u64 {
        match self {
            Self::One(online) => online.finding_count(),
            Self::Several(sharded) => sharded.finding_count(),
        }
    }

    /// Up to where everything has arrived.
    pub fn watermark(&self) -> Option<Timestamp> {
        match self {
            Self::One(online) => online.watermark(),
            Self::Several(sharded) => sharded.watermark(),
        }
    }

    /// The latest commit timestamp seen.
    pub fn newest(&self) -> Option<Timestamp> {
        match self {
            Self::One(online) => online.newest(),
            Self::Several(sharded) => sharded.newest(),
        }
    }

    /// How large the state is.
    pub fn size(&self) -> Size {
        match self {
            Self::One(online) => online.size(),
            Self::Several(sharded) => sharded.size(),
        }
    }

    /// How far each worker is; none if the checker is alone.
    pub fn standings(&self) -> &[Standing] {
        match self {
            Self::One(_) => &[],
            Self::Several(sharded) => sharded.standings(),
        }
    }
}
