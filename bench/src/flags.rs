//! What the user can type.

use crate::checks::Extent;
use crate::suite;
use crate::suite::rivals::Rival;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand, ValueEnum};
use isolation::Strategy;
use std::path::PathBuf;

/// What is measured.
#[derive(Debug)]
pub(crate) enum Asked {
    /// A benchmark of the suite, or all.
    Suite(String, SuiteFlags),
    /// A table of its own.
    Table(Table),
}

/// How the suite runs.
#[derive(Clone, Debug, Args)]
pub(crate) struct SuiteFlags {
    /// Measure with a tenth of the transactions
    #[arg(long)]
    pub(crate) small: bool,

    /// Make what is measured the new baseline
    #[arg(long)]
    pub(crate) record: bool,

    /// Where results are written
    #[arg(long, value_name = "FOLDER", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/results"))]
    pub(crate) results: PathBuf,

    /// Another program that checks the same files (repeatable)
    #[arg(long, value_name = "NAME=PATH", value_parser = peer)]
    pub(crate) peer: Vec<Rival>,
}

fn peer(given: &str) -> Result<Rival, String> {
    given.parse().map_err(|error: Box<dyn std::error::Error>| error.to_string())
}

/// How many transactions a history has.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Size<const USUAL: usize> {
    /// Number of transactions
    #[arg(value_name = "TRANSACTIONS", default_value_t = USUAL)]
    pub(crate) transactions: usize,
}

/// Tables that are printed. The last four are the processes that others measure.
#[derive(Debug, Subcommand)]
pub(crate) enum Table {
    /// Draw the picture of the README from the baseline
    Chart {
        /// Where the baseline is
        #[arg(value_name = "FOLDER", default_value = "bench/results")]
        results: PathBuf,
    },
    /// Read and write the native formats
    Formats(Size<200_000>),
    /// Read the formats of other tools
    Peers(Size<200_000>),
    /// Read files of any format
    Read {
        /// Histories
        #[arg(value_name = "HISTORY", required = true)]
        paths: Vec<PathBuf>,
    },
    /// Memory of histories and of conversions
    Memory(Size<200_000>),
    /// Generate histories
    Generate(Size<200_000>),
    /// Every level beside its target
    Levels {
        #[command(flatten)]
        size: Size<100_000>,
        /// Compare with the program adya
        #[arg(long, value_name = "PROGRAM")]
        adya: Option<PathBuf>,
    },
    /// Survey all levels of files
    Survey {
        /// Histories
        #[arg(value_name = "HISTORY", required = true)]
        paths: Vec<PathBuf>,
    },
    /// Checks by timestamps
    Timestamps {
        #[command(flatten)]
        size: Size<1_000_000>,
        /// Only this part [default: all but sustained]
        part: Option<TimestampsPart>,
    },
    /// Several workers
    Scale {
        #[command(flatten)]
        size: Size<1_000_000>,
        /// Only this part [default: all but causal]
        part: Option<ScalePart>,
    },
    /// Checks by results
    Checks(ChecksFlags),
    #[command(hide = true)]
    Convert { from: PathBuf, to: PathBuf },
    #[command(hide = true)]
    CheckOne { file: PathBuf, level: String, limit_s: u64, strategy: Strategy },
    #[command(hide = true)]
    ScaleOne { path: PathBuf, processes: usize, workers: usize, said: String },
    #[command(hide = true)]
    MeasureOne { file: PathBuf, level: String, strategy: String, without: String, limit_s: u64 },
}

/// Parts of `timestamps`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TimestampsPart {
    Offline,
    Online,
    Sustained,
    Socket,
}

/// Parts of `scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScalePart {
    Checks,
    Results,
    Causal,
    Volumes,
}

/// How much `checks` measures.
#[derive(Debug, Args)]
pub(crate) struct ChecksFlags {
    /// How much is measured
    #[arg(default_value = "short")]
    pub(crate) extent: Extent,

    /// Only inputs whose name holds this
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Option<String>,

    /// Where the table goes, as Markdown
    #[arg(long, value_name = "FILE.md")]
    pub(crate) table: Option<PathBuf>,

    /// A check is given up after so long
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub(crate) limit: u64,

    /// How the answer is looked for: `all`, or names
    #[arg(long, value_name = "NAME,…", default_value = "lazy", value_parser = strategies)]
    pub(crate) strategies: Strategies,
}

/// Several strategies.
#[derive(Clone, Debug)]
pub(crate) struct Strategies(pub(crate) Vec<Strategy>);

fn strategies(names: &str) -> Result<Strategies, String> {
    let all = match names {
        "all" => Ok(Strategy::ALL.to_vec()),
        names => names.split(',').map(str::parse::<Strategy>).collect::<Result<_, _>>(),
    };
    all.map(Strategies).map_err(|unknown| unknown.to_string())
}

/// The command line.
pub(crate) fn command() -> Command {
    let about = "Measures Taipan, as ratios within one run";
    let command = Command::new("taipan-bench").about(about).subcommand_required(true);
    let suite = std::iter::once(("all", "Every benchmark of the suite")).chain(suite::names());
    let suite = suite.map(|(name, about)| SuiteFlags::augment_args(Command::new(name).about(about)));
    Table::augment_subcommands(command.subcommands(suite))
}

/// What was typed.
pub(crate) fn asked(matches: &ArgMatches) -> Result<Asked, clap::Error> {
    if let Some((name, of_suite)) = matches.subcommand()
        && (name == "all" || suite::names().any(|(known, _)| known == name))
    {
        return Ok(Asked::Suite(name.to_owned(), SuiteFlags::from_arg_matches(of_suite)?));
    }
    Ok(Asked::Table(Table::from_arg_matches(matches)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_fit_together() {
        command().debug_assert();
        for line in ["all --small --record", "growth --results x", "timestamps 100 offline", "levels"] {
            let words = std::iter::once("taipan-bench").chain(line.split(' '));
            let matches = command().try_get_matches_from(words).expect("it is understood");
            assert!(asked(&matches).is_ok(), "{line}");
        }
        assert!(command().try_get_matches_from(["taipan-bench", "nothing"]).is_err());
    }
}
