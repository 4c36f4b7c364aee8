//! The flags of `taipan check`.

use super::{LevelFlags, LimitFlags, Output, PolicyFlags, ReadingFlags, RequireFlags, WorkerFlags};
use checker::{Passes, Strategy};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Check histories against isolation levels
///
/// Checks every file at every level. FILE may be `-` (stdin) or a directory for directory formats; .gz and .zst are
/// decompressed. The format is detected from the content.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 accepted, 1 violated, 2 undecided, 3 usage or input error.
More options (workers, search) and examples: taipan help check")]
#[command(after_long_help = "\
Exit status:
  0  every verdict is `accepted`
  1  at least one is `violated`
  2  none is `violated`, at least one is `undecided`
  3  usage or input error; the other files are still checked and reported

Examples:
  # at the level in the file's header, else serializable
  taipan check history.jsonl
  # a Jepsen history at two levels
  taipan check --level SI --level SER run.edn
  # the strongest levels that hold, the weakest that are violated
  taipan check --all-levels history.jsonl
  # one JSON object per file and level
  taipan check --output json logs/*.jsonl | jq .
  # answer `undecided` instead of using more time or memory
  taipan check --timeout 60 --max-memory 4G big.tph
  # fail only on violations that an earlier `--output json` did not report
  taipan check --baseline known.jsonl h.jsonl
  # the summary page of a GitHub workflow
  taipan check --output markdown h.jsonl >> $GITHUB_STEP_SUMMARY
  # every result that contradicts its snapshot
  taipan check --by timestamps --level SI h.jsonl
  # answer `undecided` if less than 60 % of the writes were read by others
  taipan check --require coverage=60 h.jsonl
  # a certificate for `taipan certify h.jsonl proof.jsonl`
  taipan check --certificate proof.jsonl h.jsonl
  zstdcat h.jsonl.zst | taipan check -
  # eight workers; `taipan split` makes shards for several machines
  taipan check --workers 8 --level SI huge.jsonl")]
pub(crate) struct CheckFlags {
    /// Histories; `-` is stdin
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// Load custom level definitions
    ///
    /// --level then knows them by name.
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// Check all levels
    ///
    /// Reports the strongest levels that hold and the weakest that are violated. The others are inferred from these and
    /// listed after them.
    #[arg(long, conflicts_with = "level")]
    pub(crate) all_levels: bool,

    /// List every kind of anomaly, not only the simplest
    #[arg(long)]
    pub(crate) anomalies: bool,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Output,

    /// Ignore violations recorded in FILE
    ///
    /// FILE is a saved `taipan check --output json`. A violation with the same fingerprint (level, kind and shape of the
    /// argument) in the same file is reported as known and does not fail the run.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Also write an HTML report
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// Extra events to show on the report's timeline
    ///
    /// One JSON object per line with `text`, `at` and, if the event lasts, `until`; times are by the clients' clocks.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) remarks: Option<PathBuf>,

    /// Write a machine-checkable certificate per verdict
    ///
    /// `taipan certify` re-checks it. Available for serializability, snapshot isolation and their session and real-time
    /// variants, by results.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,

    #[command(flatten)]
    pub(crate) require: RequireFlags,

    #[command(flatten)]
    pub(crate) search: SearchFlags,

    #[command(flatten)]
    pub(crate) order: OrderFlags,

    #[command(flatten)]
    pub(crate) workers: WorkerFlags,
}

impl CheckFlags {
    /// What the order of transactions is judged by.
    pub(crate) fn by(&self) -> checker::By {
        self.order.by.unwrap_or_default().into()
    }
}

/// Where the order of transactions comes from.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Order")]
pub(crate) struct OrderFlags {
    /// Where the order of transactions comes from [default: results]
    #[arg(long, value_name = "SOURCE")]
    by: Option<By>,

    /// Check by both and report where they differ
    #[arg(long, conflicts_with_all = ["by", "certificate", "mixed"])]
    pub(crate) compare: bool,
}

/// What decides the order of transactions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    /// What clients saw: any order that explains it is accepted; timestamps only speed up the search
    #[default]
    Results,
    /// The database's own start and commit timestamps must explain every result; all violations are reported
    Timestamps,
}

impl From<By> for checker::By {
    fn from(by: By) -> Self {
        match by {
            By::Results => Self::Results,
            By::Timestamps => Self::Timestamps,
        }
    }
}

/// How the answer is looked for.
#[derive(Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Search (never changes a verdict)")]
pub(crate) struct SearchFlags {
    /// Search strategy: the default, or an encoding of a paper
    #[arg(long, value_name = "STRATEGY", default_value = "lazy", value_parser = strategies(), hide_short_help = true)]
    pub(crate) strategy: Strategy,

    /// Disable one optimization (for ablation studies)
    #[arg(long, value_name = "PASS", value_delimiter = ',', value_parser = PossibleValuesParser::new(Passes::NAMES), hide_short_help = true)]
    pub(crate) without: Vec<String>,
}

fn strategies() -> impl TypedValueParser<Value = Strategy> {
    let names = Strategy::ALL.map(|strategy| PossibleValue::new(strategy.name()).help(strategy.about()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Strategy>())
}
