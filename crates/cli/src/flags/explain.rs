//! The flags of `taipan explain`.

use super::{By, ExplainOutput, LevelFlags, LimitFlags, PolicyFlags, ReadingFlags};
use clap::Args;
use std::path::PathBuf;

/// Explain why a history violates a level
///
/// Finds a minimal violating history and argues about it step by step. It can be saved as a history of its own, small
/// enough for a bug report. Reads of values that removed transactions wrote are removed, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: same as `taipan check`.
More options and examples: taipan help explain")]
#[command(after_long_help = "\
Exit status: same as `taipan check`; with --anomaly 0, or 3 if the name
is unknown.

Examples:
  taipan explain history.jsonl
  # save the minimal violating history in two formats
  taipan explain --save small.jsonl --save small.hist history.jsonl
  taipan explain --output notation history.jsonl
  taipan explain --level SI --output html history.jsonl > why.html
  taipan explain --output dot history.jsonl | dot -Tpdf > why.pdf
  # what an anomaly is, with an example
  taipan explain --anomaly G-single")]
pub(crate) struct ExplainFlags {
    /// The history
    #[arg(value_name = "FILE", required_unless_present = "anomaly")]
    pub(crate) file: Option<PathBuf>,

    /// Describe an anomaly, by any of its names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "save", "level"])]
    pub(crate) anomaly: Option<String>,

    /// Save the minimal violating history (repeatable)
    ///
    /// The file name decides the format.
    #[arg(long, value_name = "OUT")]
    pub(crate) save: Vec<PathBuf>,

    /// Extra events to show on the report's timeline
    ///
    /// The format is described in `taipan help check`.
    #[arg(long, value_name = "FILE.jsonl", hide_short_help = true)]
    pub(crate) remarks: Option<PathBuf>,

    /// Where the order of transactions comes from [default: results]
    #[arg(long, value_name = "SOURCE")]
    pub(crate) by: Option<By>,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// Load custom level definitions
    ///
    /// --level then knows them by name.
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ExplainOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}
