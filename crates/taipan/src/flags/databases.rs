//! What the user can type for commands that drive a database.

use super::{count, seconds};
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

    /// Keep sessions together: none is more than so many transactions ahead of the slowest
    #[arg(long, value_name = "N")]
    pub(crate) lead: Option<u64>,

    /// Spread the keys over their whole range, so that those in use at the same time lie on different pages
    #[arg(long)]
    pub(crate) spread_keys: bool,

    /// Make the point reads of transactions that write locking reads
    #[arg(long, value_name = "LOCK", default_value = "none")]
    pub(crate) lock_reads: LockReads,

    /// Disturb the database: NAME@SECS; may be given several times
    #[arg(long, value_name = "FAULT", value_parser = fault)]
    pub(crate) fault: Vec<(Duration, Fault)>,

    /// A server that does not answer for so many seconds hangs: a throw-away server is replaced, with another one the
    /// run ends. A statement that waits for a lock as long is given up, too
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "100")]
    pub(crate) patience: Duration,

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

/// The anomaly matrix of a live database: which anomalies occur at which level, against what is known
///
/// Each of the scripted schedules of hermitage is played at each isolation level of the database.
#[derive(Debug, Args)]
#[command(after_help = matrix_help())]
pub(crate) struct MatrixFlags {
    /// The database; see below
    #[arg(value_name = "TARGET")]
    pub(crate) target: ::databases::Address,

    /// How to print it
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: MatrixOutput,

    /// Show every step and its answer, of this anomaly or of all
    #[arg(long, value_name = "ANOMALY", num_args = 0..=1, default_missing_value = "")]
    pub(crate) trace: Option<String>,

    /// Play everything so many times; every run must agree
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<u32>(1.., "1"))]
    pub(crate) runs: u32,

    /// A server that does not answer for so many seconds hangs: a throw-away server is replaced, with another one the
    /// matrix ends
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "30")]
    pub(crate) patience: Duration,
}

/// How the matrix is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatrixOutput {
    /// For people
    Text,
    /// One JSON object a line, for every anomaly and level
    Json,
    /// One self-contained page
    Html,
}

/// The targets that are live databases, a line each.
pub(super) fn targets() -> String {
    table(|_| true)
}

/// Those of them that speak SQL.
pub(super) fn sql_targets() -> String {
    table(::databases::TargetForm::speaks_sql)
}

fn table(is_wanted: impl Fn(&::databases::TargetForm) -> bool) -> String {
    let rows = ::databases::TARGETS.iter().filter(|row| is_wanted(row));
    let rows: Vec<String> = rows.map(|row| format!("  {:30} {}", row.form, row.meaning)).collect();
    format!("Targets:\n{}", rows.join("\n"))
}

fn matrix_help() -> String {
    sql_targets()
        + "

Exit status: 0 if all is as expected, 1 if something is not, 3 for errors.

Examples:
  taipan matrix postgres:temp
  taipan matrix 'mariadb:temp?innodb_snapshot_isolation=ON' --output html > matrix.html
  taipan matrix mariadb:temp --trace P4"
}

/// `NAME@SECS`.
fn fault(text: &str) -> Result<(Duration, Fault), String> {
    let names = || Fault::ALL.map(|(name, _)| name).join(", ");
    let (name, when) = text.split_once('@').ok_or("expected NAME@SECS, such as kill-server@10")?;
    let known = Fault::ALL.iter().find(|(known, _)| *known == name);
    let (_, fault) = known.ok_or_else(|| format!("there is no fault {name:?}; there are {}", names()))?;
    Ok((seconds(when)?, *fault))
}
