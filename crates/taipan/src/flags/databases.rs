//! What the user can type for commands that drive a database.

use super::seconds;
use clap::{Args, ValueEnum};
use databases::Fault;
use std::time::Duration;

/// How the workload is run on a real database.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "On a real database")]
pub(crate) struct LoadFlags {
    /// How long a session waits between two transactions, in seconds
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "0")]
    pub(crate) think: Duration,

    /// One transaction in four waits before each operation, at random up to so many seconds: it stays open while
    /// others begin and commit
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "0")]
    pub(crate) pause: Duration,

    /// Spread the keys over their whole range, so that those in use at the same time lie on different pages
    #[arg(long)]
    pub(crate) spread_keys: bool,

    /// Make the point reads of transactions that write locking reads
    #[arg(long, value_name = "LOCK", default_value = "none")]
    pub(crate) lock_reads: LockReads,

    /// Disturb the database: NAME@SECS; may be given several times
    #[arg(long, value_name = "FAULT", value_parser = fault)]
    pub(crate) fault: Vec<(Duration, Fault)>,

    /// Leave out the statements' texts
    #[arg(long)]
    pub(crate) no_statements: bool,

    /// Leave out the clock around each operation
    #[arg(long)]
    pub(crate) no_operation_clocks: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LockReads {
    /// Plain reads
    #[default]
    None,
    /// FOR SHARE
    Share,
    /// FOR UPDATE
    Update,
}

impl From<LockReads> for history::Lock {
    fn from(lock: LockReads) -> Self {
        match lock {
            LockReads::None => Self::None,
            LockReads::Share => Self::Share,
            LockReads::Update => Self::Update,
        }
    }
}

/// The targets that are live databases, a line each.
pub(super) fn targets() -> String {
    let rows: Vec<String> =
        ::databases::TARGETS.iter().map(|row| format!("  {:30} {}", row.form, row.meaning)).collect();
    format!("Targets:\n{}", rows.join("\n"))
}

/// `NAME@SECS`.
fn fault(text: &str) -> Result<(Duration, Fault), String> {
    let names = || Fault::ALL.map(|(name, _)| name).join(", ");
    let (name, when) = text.split_once('@').ok_or("expected NAME@SECS, such as kill-server@10")?;
    let known = Fault::ALL.iter().find(|(known, _)| *known == name);
    let (_, fault) = known.ok_or_else(|| format!("there is no fault {name:?}; there are {}", names()))?;
    Ok((seconds(when)?, *fault))
}
