//! What the user can type. The texts here are the help.

mod color;
mod databases;
mod elle;
mod hunting;
mod installing;
mod limits;
mod numbers;
mod recording;
mod requiring;
mod values;
mod watch;
mod workers;

pub(crate) use color::Color;
pub(crate) use databases::{LoadFlags, MatrixFlags, MatrixOutput};
pub(crate) use elle::{ElleFlags, ElleOutput, HistoryFormat, Model};
pub(crate) use hunting::{HuntFlags, HuntOutput, WritesSee};
pub(crate) use installing::{CompletionsFlags, ManFlags};
pub(crate) use limits::{BoundFlags, LimitFlags};
pub(crate) use recording::{GenerateFlags, RunFlags, WorkloadFlags};
pub(crate) use requiring::RequireFlags;
pub(crate) use watch::WatchFlags;
#[cfg(feature = "cluster")]
pub(crate) use workers::Whose;
pub(crate) use workers::{Axis, CrewFlags, SplitFlags, WorkerFlags};

use checker::{Level, Passes, Strategy};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use history::formats::Format;
use numbers::count;
use std::path::PathBuf;
use values::{bytes, formats, levels, profiles, seconds};

/// Checks whether a database keeps its isolation promises.
///
/// A history records what clients sent in each transaction and what came back. Taipan tells you whether the database
/// could have produced it at the isolation level it claims, with evidence: a serial order that explains every result, or
/// a minimal set of transactions that no order explains.
#[derive(Debug, Parser)]
#[command(name = "taipan", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "\
Exit status: 0 accepted, 1 violated, 2 undecided, 3 usage or input error.

`taipan help COMMAND` shows all options of a command, with examples.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Color text: auto, always or never
    ///
    /// `auto` colors on a terminal, unless NO_COLOR is set.
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true,
        help_heading = "Global options"
    )]
    pub(crate) color: Color,

    /// Hide progress on stderr
    #[arg(short, long, global = true, help_heading = "Global options")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoFlags),
    Check(CheckFlags),
    Explain(ExplainFlags),
    Diff(DiffFlags),
    Elle(ElleFlags),
    Certify(CertifyFlags),
    Smt(SmtFlags),
    Run(Box<RunFlags>),
    Matrix(MatrixFlags),
    Hunt(Box<HuntFlags>),
    Watch(Box<WatchFlags>),
    Convert(ConvertFlags),
    Split(SplitFlags),
    Stats(StatsFlags),
    Generate(GenerateFlags),
    Levels(LevelsFlags),
    Completions(CompletionsFlags),
    Man(ManFlags),
}

/// Output form of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// Human-readable text
    Text,
    /// One JSON object per line, one per file and level, in the order given
    Json,
    /// JUnit XML: one suite per file, one case per level
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Markdown, for the summary page of a CI service
    Markdown,
    /// One self-contained HTML page
    Html,
}

/// Output form of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
}

/// Output form of an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
    /// One self-contained HTML page
    Html,
    /// A graph of the violating transactions
    Svg,
    /// The graph for Graphviz
    Dot,
    /// The graph for Mermaid
    Mermaid,
    /// The minimal violating history, in the one-line notation
    Notation,
    /// The minimal violating history as JSON lines
    Jsonl,
}

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

impl OrderFlags {
    /// What was asked for.
    pub(crate) fn by(&self) -> checker::By {
        self.by.unwrap_or_default().into()
    }
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

/// Write the check as SMT-LIB 2, for any SMT solver
///
/// Each transaction is an integer, its position in the order (two at snapshot isolation: begin and commit). Each open
/// question is a Boolean. `sat` means that the level allows the history, `unsat` that it is violated. The size grows with
/// the square of the number of writers per key.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  taipan smt history.jsonl | z3 -in
  # two answers, in this order
  taipan smt --level SI,SER history.jsonl | z3 -in")]
pub(crate) struct SmtFlags {
    /// The history
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// Explain why a history violates a level
///
/// Finds a minimal violating history and argues about it step by step. It can be saved as a history of its own, small
/// enough for a bug report. Reads of values that removed transactions wrote are removed, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: same as `taipan check`.
More options and examples: taipan help explain")]
#[command(after_long_help = "\
Exit status: same as `taipan check`; with --anomaly 0, or 3 if the name is unknown.

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

/// Compare two histories or two saved results
///
/// A and B are histories, which are checked, or saved results of `taipan check --output json`. Reports which levels,
/// anomalies and coverage differ. Files within results are matched by name, unless each has only one.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 no difference, 1 they differ, 3 usage or input error.
More options and examples: taipan help diff")]
#[command(after_long_help = "\
Exit status:
  0  the same verdicts and anomalies wherever both were checked
  1  they differ
  3  usage or input error, also if they have nothing in common

Examples:
  # at all levels
  taipan diff before.jsonl after.jsonl
  taipan diff --level SI,SER before.jsonl after.jsonl
  # saved results
  taipan check --output json logs/*.jsonl > today.json
  taipan diff yesterday.json today.json")]
pub(crate) struct DiffFlags {
    /// A history or saved results
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,

    /// What to compare it with
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,

    /// Isolation level (repeatable) [default: all]
    #[arg(long, value_name = "LEVEL", value_parser = levels(), hide_possible_values = true, value_delimiter = ',')]
    pub(crate) level: Vec<Level>,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ListOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Re-check certificates with independent code
///
/// CERT is a file that `taipan check --certificate CERT FILE` wrote. A witness order is replayed against the history, a
/// small core is tried in all orders, and the proof of a large core is checked step by step. This shares no code with the
/// graph and the solver that found the verdict. Certificates of other histories are skipped, with a note.
///
/// A certificate must answer the question asked here. One of another level or policy than the flags say (default: what
/// `taipan check FILE` asks) is refused, even if it is true.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: 0 certified, 1 refused, 2 beyond the certifier, 3 input error.
More options and examples: taipan help certify")]
#[command(after_long_help = "\
Exit status:
  0  every question has a certificate, and every claim about FILE is certified
  1  at least one is refused: its evidence is wrong, or it is about another
     history or question
  2  none is refused, at least one is beyond the certifier
  3  usage or input error, including a line that is not a certificate

Examples:
  taipan check --level SER,SI --certificate proof.jsonl history.jsonl
  taipan certify --level SER,SI history.jsonl proof.jsonl")]
pub(crate) struct CertifyFlags {
    /// The history
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The certificates
    #[arg(value_name = "CERT")]
    pub(crate) certificate: PathBuf,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// Assume that the clients' clocks are accurate
    ///
    /// `realtime` enforces session order and real-time order at every level, as in `taipan check`.
    #[arg(long, value_name = "WHAT")]
    pub(crate) assume: Vec<Assumption>,

    /// Largest difference between two clients' clocks
    ///
    /// In the history's own unit of time.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<i64>(0.., "1000"))]
    pub(crate) clock_skew: i64,

    /// Read-your-own-writes policy
    #[arg(long, value_name = "POLICY", default_value = "must")]
    pub(crate) ryow: Ryow,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ListOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// Which levels.
#[derive(Debug, Args)]
pub(crate) struct LevelFlags {
    /// Isolation level, by name or alias (repeatable)
    ///
    /// Default: the level in the history's header, else serializable. `taipan levels` lists all levels. LEVEL may be a
    /// list: SI,SER.
    #[arg(long, value_name = "LEVEL", value_parser = levels(), hide_possible_values = true, value_delimiter = ',')]
    pub(crate) level: Vec<Level>,
}

/// How files are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingFlags {
    /// Input format [default: detect]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true, long_help = values::format_help("Input format [default: detect]"))]
    pub(crate) format: Option<Format>,

    /// Skip and count malformed transactions
    ///
    /// Without this flag, a file with a malformed transaction is refused.
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Accept histories with no committed transaction
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_empty: bool,
}

/// What counts.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    /// Assume more than the level says (repeatable)
    ///
    /// `realtime`: the clients' clocks are accurate, so session order and real-time order count at every level.
    /// `sequential-keys`, `linearizable-keys` and `wfr-keys` are Elle's options for registers: versions of each key follow
    /// session order, the clients' clocks, or what a transaction read before it wrote. They need values that are written
    /// once.
    #[arg(long, value_name = "WHAT")]
    pub(crate) assume: Vec<Assumption>,

    /// Largest difference between two clients' clocks
    ///
    /// In the history's own unit of time.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<i64>(0.., "1000"))]
    pub(crate) clock_skew: i64,

    /// Read-your-own-writes policy
    #[arg(long, value_name = "POLICY", default_value = "must", hide_short_help = true)]
    pub(crate) ryow: Ryow,

    /// Check each transaction at the level in its `level` field
    ///
    /// Transactions without the field are checked at --level.
    #[arg(long)]
    pub(crate) mixed: bool,

    /// Read --level as this database's own level name
    ///
    /// Checks what the database's documentation promises at that level. Databases: postgres, mariadb, mysql, sqlite,
    /// duckdb.
    #[arg(long, value_name = "DATABASE", value_parser = profiles(), hide_possible_values = true)]
    pub(crate) profile: Option<::databases::Profile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Assumption {
    /// The clients' clocks are accurate
    Realtime,
    /// Each session sees versions of each key in their order
    SequentialKeys,
    /// Versions of each key follow the clients' clocks
    LinearizableKeys,
    /// A transaction's write of a key follows the version that it read
    WfrKeys,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ryow {
    /// A read sees the earlier writes of its own transaction
    #[default]
    Must,
    /// A read may miss them
    May,
    /// A read never sees them
    Never,
}

impl From<Ryow> for checker::Ryow {
    fn from(ryow: Ryow) -> Self {
        match ryow {
            Ryow::Must => Self::Must,
            Ryow::May => Self::May,
            Ryow::Never => Self::Never,
        }
    }
}

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
    pub(crate) levels: Vec<Level>,

    /// Also list custom level definitions
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: LevelsOutput,
}

/// Output form of the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelsOutput {
    /// Human-readable text
    Text,
    /// One JSON object per line
    Json,
    /// The lattice: all levels and what implies what
    Svg,
    /// The lattice and a table as one HTML page
    Html,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// Lines of a terminal that help is written for.
    const LINES_MAX: usize = 50;
    const COLUMNS_MAX: usize = 80;

    #[test]
    fn the_flags_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn short_help_fits_on_a_screen() {
        let mut cli = Cli::command();
        // With the global options.
        cli.build();
        for command in cli.get_subcommands() {
            let help = command.clone().term_width(COLUMNS_MAX).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= LINES_MAX, "taipan {} -h has {lines} lines:\n{help}", command.get_name());
        }
    }

    /// A wrapped example reads as two commands.
    #[test]
    fn examples_do_not_wrap() {
        for command in Cli::command().get_subcommands() {
            for text in [command.get_after_help(), command.get_after_long_help()].into_iter().flatten() {
                for line in text.to_string().lines() {
                    let width = line.chars().count();
                    assert!(width <= COLUMNS_MAX, "taipan {}: {width} columns: {line}", command.get_name());
                }
            }
        }
    }

    #[test]
    fn completions_know_the_values() {
        let mut script = Vec::new();
        clap_complete::generate(clap_complete::Shell::Bash, &mut Cli::command(), "taipan", &mut script);
        let script = String::from_utf8(script).expect("a script is text");
        for value in [
            "strong-session-snapshot-isolation",
            "list-append",
            "write-skew",
            "elle-edn",
            "mariadb",
            "kill-server@",
            "postgres:temp",
            "equal-update=",
        ] {
            assert!(script.contains(value), "{value}");
        }
    }
}
