//! The flags of commands that show or convert without a verdict.

use super::values::{self, formats, levels};
use super::{BoundFlags, LevelName, LevelsOutput, ListOutput, ReadingFlags};
use clap::Args;
use history::formats::Format;
use std::path::PathBuf;

/// Convert a history to another format
///
/// The name of OUT decides the format (h.jsonl, h.tph, h.hist, also with .gz or .zst), or --to does. `-` is stdin or
/// stdout.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  # a Jepsen history to the native format
  taipan convert run.edn run.jsonl
  # to the compact binary format
  taipan convert run.jsonl run.tph
  # readable, on stdout
  taipan convert --to notation run.jsonl -")]
pub(crate) struct ConvertFlags {
    /// The history to read
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    /// Output format [default: by the name of OUT]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true, long_help = values::format_help("Output format [default: by the name of OUT]"))]
    pub(crate) to: Option<Format>,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// Summarize histories
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  taipan stats history.jsonl
  taipan stats --output json logs/*.jsonl")]
pub(crate) struct StatsFlags {
    /// Histories; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ListOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// Check a real database, then find and explain a planted bug
///
/// Needs no setup and takes a few seconds. Writes two histories and an HTML report to a temporary folder.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  # then open the page that it names in a browser
  taipan demo")]
pub(crate) struct DemoFlags {}

/// List the isolation levels
///
/// Without LEVEL, lists all levels, one per line. With LEVEL, shows what it forbids, its other names, its sources and
/// what it implies.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  taipan levels
  # what snapshot isolation forbids and implies
  taipan levels SI
  taipan levels --output json")]
pub(crate) struct LevelsFlags {
    /// Levels, by name or alias
    #[arg(value_name = "LEVEL", value_parser = levels(), hide_possible_values = true)]
    pub(crate) levels: Vec<LevelName>,

    /// Also list custom level definitions
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: LevelsOutput,
}
