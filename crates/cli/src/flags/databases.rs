//! What the user can type for commands that drive a database.

use super::values::{self, Offered, sql_targets};
use super::{count, seconds};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use databases::{Fault, SCHEDULES};
use history::suggest;
use std::time::Duration;

/// How the workload is run on a real database.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "On a real database")]
pub(crate) struct LoadFlags {
    /// Pause between transactions, in seconds
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "0")]
    pub(crate) think: Duration,

    /// Keep some transactions open longer
    ///
    /// A quarter of them sleep up to SECS, at random, before each operation, so that they stay open while others begin and commit.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "0")]
    pub(crate) pause: Duration,

    /// Keep sessions within N transactions of the slowest
    #[arg(long, value_name = "N")]
    pub(crate) lead: Option<u64>,

    /// Spread keys so that they lie on different pages
    #[arg(long)]
    pub(crate) spread_keys: bool,

    /// Use locking reads in transactions that write
    #[arg(long, value_name = "LOCK", default_value = "none", hide_short_help = true)]
    pub(crate) lock_reads: LockReads,

    /// Inject a fault at a time: NAME@SECS (repeatable)
    ///
    /// Faults: kill-connection, kill-server, restart-server, pause-server.
    #[arg(long, value_name = "FAULT", value_parser = faults(), hide_possible_values = true)]
    pub(crate) fault: Vec<(Duration, Fault)>,

    /// Longest time a server may take to answer, in seconds
    ///
    /// A server that takes longer counts as hung: a temporary server is replaced; with any other server the run ends. A
    /// statement that waits that long for a lock is canceled, too.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "100", hide_short_help = true)]
    pub(crate) patience: Duration,

    /// Do not record the text of statements
    #[arg(long, hide_short_help = true)]
    pub(crate) no_statements: bool,

    /// Do not record the times of single operations
    #[arg(long, hide_short_help = true)]
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

/// Show which anomalies a database allows at which level
///
/// Runs the schedules of hermitage at each isolation level and compares the outcome with what is known of the database. On
/// a running server, drops and creates the table taipan_matrix, which is removed at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Targets: sqlite:, postgres:temp, mariadb:temp, mysql:temp, or the URL of a
running server (drops and creates table taipan_matrix)
Exit status: 0 as expected, 1 unexpected, 3 usage or connection error.
Examples: taipan help matrix")]
#[command(after_long_help = matrix_help())]
pub(crate) struct MatrixFlags {
    /// The database
    #[arg(value_name = "TARGET", value_parser = sql_targets(), hide_possible_values = true)]
    pub(crate) target: ::databases::Address,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: MatrixOutput,

    /// Show every step and its answer [default: of all anomalies]
    #[arg(long, value_name = "ANOMALY", num_args = 0..=1, default_missing_value = "", value_parser = schedules(), hide_possible_values = true)]
    pub(crate) trace: Option<String>,

    /// Repeat N times; all runs must agree
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<u32>(1.., "1"))]
    pub(crate) runs: u32,

    /// Longest time a server may take to answer, in seconds
    ///
    /// A server that takes longer counts as hung: a temporary server is replaced; with any other server the matrix ends.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "30")]
    pub(crate) patience: Duration,
}

/// Output form of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MatrixOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line, one per anomaly and level
    Json,
    /// One self-contained HTML page
    Html,
}

/// The targets that are live databases, one per line.
pub(super) fn targets() -> String {
    table(|_| true)
}

/// Those of them that speak SQL.
pub(super) fn sql_table() -> String {
    table(|row| row.sql)
}

fn table(is_wanted: impl Fn(&::databases::TargetForm) -> bool) -> String {
    let rows = ::databases::targets().filter(|row| is_wanted(row));
    format!("Targets:\n{}", rows.map(|row| target_row(row.form, row.meaning)).collect::<String>())
}

pub(super) fn target_row(form: &str, meaning: &str) -> String {
    values::row(29, form, meaning)
}

fn matrix_help() -> String {
    sql_table()
        + "
Exit status: 0 as expected, 1 unexpected, 3 usage or connection error.

Examples:
  taipan matrix postgres:temp
  taipan matrix mariadb:temp --output html > matrix.html
  taipan matrix 'mariadb:temp?innodb_snapshot_isolation=ON'
  taipan matrix mariadb:temp --trace P4"
}

/// `NAME@SECS`.
fn faults() -> Offered<(Duration, Fault)> {
    Offered::new(
        |text| {
            let (name, when) = text.split_once('@').ok_or("expected NAME@SECS, such as kill-server@10")?;
            let known = Fault::ALL.iter().find(|(known, _)| *known == name);
            let names = Fault::ALL.map(|(name, _)| name);
            let (_, fault) = known.ok_or_else(|| suggest::unknown("fault", name, names))?;
            Ok((seconds(when)?, *fault))
        },
        || Fault::ALL.map(|(name, _)| PossibleValue::new(format!("{name}@"))).into(),
    )
}

/// An anomaly of the matrix; empty: all.
fn schedules() -> Offered<String> {
    Offered::new(
        |name| Ok(name.to_owned()),
        || SCHEDULES.iter().map(|schedule| PossibleValue::new(schedule.name)).collect(),
    )
}
