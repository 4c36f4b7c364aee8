//! What the user can type for `taipan hunt`.

use super::databases::sql_targets;
use super::{count, seconds};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Look for transactional bugs: random SQL in interleaved transactions, compared with the same statements without them
///
/// Random schemas, rows and interleaved transactions are executed; which statement depends on which is found out from
/// reads around each of them; the statements are executed again one by one, in other orders that keep the dependencies,
/// on the same rows. Any difference is a bug of the database. What is found is reduced and saved as one SQL file.
/// Tables named hunt0, hunt1, … and views named huntv0, … are dropped and made anew.
#[derive(Debug, Args)]
#[command(after_help = help())]
pub(crate) struct HuntFlags {
    /// The database; see below
    #[arg(value_name = "TARGET")]
    pub(crate) target: ::databases::Address,

    /// Only at this level, by the database's own name; may be given several times [default: all in turns]
    #[arg(long, value_name = "LEVEL")]
    pub(crate) isolation: Vec<String>,

    /// Where randomness starts: the same seed gives the same cases
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Stop after so many cases
    #[arg(long, value_name = "N")]
    pub(crate) cases: Option<u64>,

    /// Stop after so many seconds [default: 60, if no number of cases is given]
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) time: Option<Duration>,

    /// Stop after so many distinct findings
    #[arg(long, value_name = "N")]
    pub(crate) findings: Option<usize>,

    /// Transactions of a case
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = count::<u32>(1..=100, "4"))]
    pub(crate) transactions: u32,

    /// Statements of a transaction
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<u32>(1..=100, "5"))]
    pub(crate) statements: u32,

    /// Tables of a schema, at most
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count::<u32>(1..=20, "3"))]
    pub(crate) tables: u32,

    /// Rows of a table at the start, at most
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<u32>(1..=1000, "10"))]
    pub(crate) rows: u32,

    /// How deep expressions and sub-queries go
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = count::<u32>(0..=8, "3"))]
    pub(crate) depth: u32,

    /// Orders without transactions that each case is compared with
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count::<u32>(1.., "2"))]
    pub(crate) orders: u32,

    /// How often something is generated, such as update=40; may be given several times
    #[arg(long, value_name = "NAME=N", value_parser = weight)]
    pub(crate) weight: Vec<(String, u64)>,

    /// What writes are held to where they look at newer rows than plain reads do (MariaDB's and MySQL's repeatable read)
    #[arg(long, value_name = "STATE", default_value = "newest")]
    pub(crate) writes_see: WritesSee,

    /// Do not hold executions to the level's promise as well
    #[arg(long)]
    pub(crate) no_levels: bool,

    /// How long to reduce a finding, in seconds
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "30")]
    pub(crate) reduce: Duration,

    /// A statement that takes so many seconds without waiting for a lock hangs, which is a finding; so does a server
    /// that does not answer. A throw-away server is replaced
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "30")]
    pub(crate) patience: Duration,

    /// Where findings are saved
    #[arg(long, value_name = "DIR", default_value = "taipan-hunt")]
    pub(crate) save: PathBuf,

    /// Execute a saved case again instead, and tell what it shows
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,

    /// How to print the report
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: HuntOutput,
}

/// What writes are held to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WritesSee {
    /// What the database documents: the newest committed rows
    Newest,
    /// The snapshot of their transaction, as plain reads are
    Snapshot,
}

/// How the report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HuntOutput {
    /// For people
    Text,
    /// One JSON object a line: each finding, then the summary
    Json,
}

/// `NAME=N`.
fn weight(text: &str) -> Result<(String, u64), String> {
    let names = || hunt::Choice::ALL.map(|(_, name, _)| name).join(", ");
    let (name, weight) = text.split_once('=').ok_or("expected NAME=N, such as update=40")?;
    let weight = weight.parse().map_err(|_| format!("{weight:?} is no weight"))?;
    if !hunt::Weights::default().set(name, weight) {
        return Err(format!("there is no {name:?}; there are {}", names()));
    }
    Ok((name.to_owned(), weight))
}

fn help() -> String {
    let weights = hunt::Choice::ALL.map(|(_, name, weight)| format!("{name}={weight}")).join(", ");
    sql_targets()
        + &format!(
            "

Weights: {weights}

Exit status: 0 if nothing was found, 1 if something was, 3 for errors.

Examples:
  taipan hunt sqlite: --time 600
  taipan hunt postgres:temp --isolation serializable --transactions 8
  taipan hunt mariadb:temp --isolation repeatable-read --findings 3
  taipan hunt mariadb:temp --replay taipan-hunt/1.sql"
        )
}
