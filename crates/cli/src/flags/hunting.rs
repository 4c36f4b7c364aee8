//! What the user can type for `taipan hunt`.

use super::databases::sql_table;
use super::values::{Offered, sql_targets};
use super::{count, seconds};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use history::suggest;
use std::path::PathBuf;
use std::time::Duration;

/// Fuzz a SQL engine for transaction bugs
///
/// Runs random SQL in interleaved transactions over random schemas and rows. Reads around each statement show which
/// statement depends on which. The statements are then run again one by one, outside transactions, in other orders that
/// keep the dependencies, on the same rows. Any difference is a bug. Findings are reduced and saved as one SQL file each.
/// Drops and creates tables named hunt0, hunt1, … and views named huntv0, …; they are dropped again when hunt ends, also if
/// it is killed.
#[derive(Debug, Args)]
#[command(after_help = "\
Drops and creates tables hunt0, hunt1, … and views huntv0, … on the server.
Exit status: 0 nothing found, 1 at least one bug found, 3 error.
Targets, weights and examples: taipan help hunt")]
#[command(after_long_help = help())]
pub(crate) struct HuntFlags {
    /// The database
    #[arg(value_name = "TARGET", value_parser = sql_targets(), hide_possible_values = true)]
    pub(crate) target: ::databases::Address,

    /// Isolation level, by the database's name (repeatable) [default: all]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) isolation: Vec<String>,

    /// Random seed; the same seed gives the same cases
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stop after N cases
    #[arg(long, value_name = "N")]
    pub(crate) cases: Option<u64>,

    /// Stop after SECS seconds [default: 60, none with --cases]
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) time: Option<Duration>,

    /// Stop after N distinct findings
    #[arg(long, value_name = "N")]
    pub(crate) findings: Option<usize>,

    /// Transactions per case
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = count::<u32>(1..=100, "4"))]
    pub(crate) transactions: u32,

    /// Statements per transaction
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<u32>(1..=100, "5"))]
    pub(crate) statements: u32,

    /// Most tables per schema
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count::<u32>(1..=20, "3"))]
    pub(crate) tables: u32,

    /// Most rows per table at the start
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<u32>(1..=1000, "10"))]
    pub(crate) rows: u32,

    /// Deepest nesting of expressions and subqueries
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count::<u32>(0..=8, "3"))]
    pub(crate) depth: u32,

    /// Serial orders to compare each case with
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count::<u32>(1.., "2"))]
    pub(crate) orders: u32,

    /// Change a weight, such as update=40 (repeatable)
    #[arg(long, value_name = "NAME=N", value_parser = weights(), hide_possible_values = true)]
    pub(crate) weight: Vec<(String, u64)>,

    /// Rows that writes are expected to see at REPEATABLE READ
    ///
    /// For MariaDB and MySQL, whose writes see newer rows than plain reads do.
    #[arg(long, value_name = "STATE", default_value = "newest")]
    pub(crate) writes_see: WritesSee,

    /// Do not also check the isolation level
    #[arg(long)]
    pub(crate) no_levels: bool,

    /// Time to reduce a finding, in seconds
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "30")]
    pub(crate) reduce: Duration,

    /// Longest time a statement may take, in seconds
    ///
    /// A statement that takes longer without waiting for a lock counts as hung, and so does a server that does not answer.
    /// Both are findings. A temporary server is replaced.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "30")]
    pub(crate) patience: Duration,

    /// Folder for findings
    #[arg(long, value_name = "DIR", default_value = "taipan-hunt")]
    pub(crate) save: PathBuf,

    /// Run a saved case again
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: HuntOutput,
}

/// What writes are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WritesSee {
    /// What the database documents: the newest committed rows
    Newest,
    /// The snapshot of their transaction, which plain reads see, too
    Snapshot,
}

/// Output form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HuntOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line: each finding, then the summary
    Json,
}

/// `NAME=N`.
fn weights() -> Offered<(String, u64)> {
    Offered::new(
        |text| {
            let (name, weight) = text.split_once('=').ok_or("expected NAME=N, such as update=40")?;
            let weight = weight.parse().map_err(|_| format!("expected a whole number, not {weight:?}"))?;
            match hunt::Weights::default().set(name, weight) {
                true => Ok((name.to_owned(), weight)),
                false => Err(suggest::unknown("weight", name, hunt::Choice::ALL.map(|(_, name, _)| name))),
            }
        },
        || hunt::Choice::ALL.map(|(_, name, _)| PossibleValue::new(format!("{name}="))).into(),
    )
}

fn help() -> String {
    let weights = hunt::Choice::ALL.map(|(_, name, weight)| format!("  {name:15} {weight}\n")).concat();
    sql_table()
        + &format!(
            "
Weights:
{weights}
Exit status: 0 nothing found, 1 at least one bug found, 3 usage or input error.

Examples:
  taipan hunt sqlite: --time 600
  taipan hunt postgres:temp --isolation serializable --transactions 8
  taipan hunt mariadb:temp --isolation repeatable-read --findings 3
  taipan hunt mariadb:temp --replay taipan-hunt/1.sql"
        )
}
