//! What the user can type. The texts here are the help.

mod color;
mod databases;
mod elle;
mod hunting;
mod installing;
mod limits;
mod numbers;
mod requiring;
mod watch;
mod workers;

pub(crate) use color::Color;
pub(crate) use databases::{LoadFlags, MatrixFlags, MatrixOutput};
pub(crate) use elle::{ElleFlags, ElleOutput, HistoryFormat, Model};
pub(crate) use hunting::{HuntFlags, HuntOutput, WritesSee};
pub(crate) use installing::{CompletionsFlags, ManFlags};
pub(crate) use limits::{BoundFlags, LimitFlags};
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
use std::time::Duration;

/// Checks whether a database keeps its isolation promises.
///
/// A history is what clients sent inside which transactions, and what came back. Taipan decides whether any
/// execution that the isolation level allows explains it, and gives evidence: an order that explains everything, or
/// the smallest part that nothing explains.
#[derive(Debug, Parser)]
#[command(name = "taipan", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = "`taipan help COMMAND` explains a command, with examples.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// When to colour text
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Global options")]
    pub(crate) color: Color,

    /// Show no progress on standard error
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

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Text,
    /// One JSON object a line, for every file and level in the order given
    Json,
    /// JUnit XML, one test case for every file and level
    Junit,
    /// SARIF 2.1.0, for code scanning
    Sarif,
    /// Markdown, for the summary that a continuous-integration service shows beside a run
    Markdown,
    /// One self-contained page
    Html,
}

/// How a list is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ListOutput {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// How an explanation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExplainOutput {
    /// For people
    Text,
    /// One JSON object a line
    Json,
    /// One self-contained page
    Html,
    /// A picture of the violating transactions
    Svg,
    /// The same for Graphviz
    Dot,
    /// The same for issue trackers that draw Mermaid
    Mermaid,
    /// The smallest violated sub-history, in the one-line notation
    Notation,
    /// The same as JSON lines
    Jsonl,
}

/// Check histories against isolation levels
///
/// Every file is checked at every level asked for. A file may be `-` (standard input) or a directory where the
/// format is one; gzip and zstd are undone. The format is detected from the content.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0  every verdict is `accepted`
  1  at least one is `violated`
  2  none is violated, at least one is `undecided`
  3  usage or input error; the other files are still checked and printed

Examples:
  taipan check history.jsonl                      at the level in its header, else serializable
  taipan check --level SI --level SER run.edn     a Jepsen history at two levels
  taipan check --all-levels history.jsonl         the strongest that hold, the weakest that are violated
  taipan check --output json logs/*.jsonl | jq .  one object for every file and level
  taipan check --timeout 60 --max-memory 4G big.tph
  taipan check --baseline known.jsonl h.jsonl     fails only on what an earlier run with --output json did not say
  taipan check --output markdown h.jsonl >> $GITHUB_STEP_SUMMARY
  taipan check --by timestamps --level SI h.jsonl every result that its snapshot does not hold
  taipan check --require coverage=60 h.jsonl      undecided where fewer writes were read by another transaction
  taipan check --certificate proof.jsonl h.jsonl  to be re-checked with `taipan certify h.jsonl proof.jsonl`
  zstdcat h.jsonl.zst | taipan check -
  taipan check --workers 8 --level SI huge.jsonl  on eight workers; `taipan split` makes shards for several machines")]
pub(crate) struct CheckFlags {
    /// Histories
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// A file of levels of one's own, which `--level` then knows by name
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// Report the strongest levels that hold, the weakest that are violated, and what follows for all others
    #[arg(long, conflicts_with = "level")]
    pub(crate) all_levels: bool,

    /// List every kind of anomaly found, not only the simplest
    #[arg(long)]
    pub(crate) anomalies: bool,

    /// How to print results
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Output,

    /// What was wrong before does not count: FILE is what `taipan check --output json` printed then. A violation of the
    /// same kind in the same file at the same level is marked and leaves the exit status alone
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Also write one self-contained page
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    /// What else happened, for the page: one JSON object a line with `at`, perhaps `until` (both by the clients' clocks),
    /// and `text`
    #[arg(long, value_name = "FILE")]
    pub(crate) remarks: Option<PathBuf>,

    /// Write a certificate for every file and level, which `taipan certify` re-checks; for serializability, snapshot
    /// isolation and their session and real-time variants, by results
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
    /// What the order of transactions is judged by [default: results]
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,

    /// Decide both ways and say where they differ
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
    /// What clients saw: any order that explains it will do. Database timestamps only make the search faster
    #[default]
    Results,
    /// The database's own start and commit timestamps: they must explain every result; all violations are reported
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
#[command(next_help_heading = "Search; verdicts do not depend on it")]
pub(crate) struct SearchFlags {
    /// Which encoding of the question is searched
    #[arg(long, value_name = "STRATEGY", default_value = "lazy", value_parser = strategies())]
    pub(crate) strategy: Strategy,

    /// Leave a pass out, to see what it is worth
    #[arg(long, value_name = "PASS", value_delimiter = ',', value_parser = PossibleValuesParser::new(Passes::NAMES))]
    pub(crate) without: Vec<String>,
}

fn strategies() -> impl TypedValueParser<Value = Strategy> {
    let names = Strategy::ALL.map(|strategy| PossibleValue::new(strategy.name()).help(strategy.about()));
    PossibleValuesParser::new(names).try_map(|name| name.parse::<Strategy>())
}

/// Write what must hold of a history as SMT-LIB 2, for any SMT solver to decide
///
/// Every transaction is an integer, its place in the order (two at snapshot isolation: begin and commit); whatever is
/// open is a Boolean. `sat` means that the history is possible under the level, `unsat` that it is violated. The
/// question is written whole, pair by pair, so it grows with the square of the writers of a key.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan smt history.jsonl | z3 -in
  taipan smt --level SI,SER history.jsonl | z3 -in   two answers, in this order")]
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

/// Explain why a history violates a level: the smallest violating part, edge by edge
///
/// The smallest sub-history that is still violated can be saved: a history of its own, small enough for a bug report, that
/// anybody can check again. What its transactions saw of those left out is left out, too.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status: as of `taipan check`; with --anomaly 0, or 3 if the book has no such page.

Examples:
  taipan explain history.jsonl
  taipan explain --save small.jsonl --save small.hist history.jsonl
  taipan explain --output notation history.jsonl
  taipan explain --level SI --output html history.jsonl > why.html
  taipan explain --output dot history.jsonl | dot -Tpdf > why.pdf
  taipan explain --anomaly G-single               what the name means, with an example")]
pub(crate) struct ExplainFlags {
    /// The history
    #[arg(value_name = "FILE", required_unless_present = "anomaly")]
    pub(crate) file: Option<PathBuf>,

    /// Print the book's page on an anomaly, by any of its names
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "save", "level"])]
    pub(crate) anomaly: Option<String>,

    /// Save the smallest violated sub-history, in the format that the name tells; may be given several times
    #[arg(long, value_name = "OUT")]
    pub(crate) save: Vec<PathBuf>,

    /// What happened beside the transactions, for the page, as of `taipan check`
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) remarks: Option<PathBuf>,

    /// What decides the order of transactions [default: as of `taipan check`]
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<By>,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// A file of levels of one's own, which `--level` then knows by name
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// How to print it
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ExplainOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Compare two histories, or two runs: levels, anomalies, and how much was tested
///
/// A and B are histories, which are checked, or what `taipan check --output json` printed of some. Histories of runs are
/// matched by name, unless each has only one.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0  the same verdicts and anomalies, wherever both were checked
  1  they differ
  3  usage or input error, also if they have nothing in common

Examples:
  taipan diff before.jsonl after.jsonl             at all levels
  taipan diff --level SI,SER before.jsonl after.jsonl
  taipan check --output json logs/*.jsonl > today.json; taipan diff yesterday.json today.json")]
pub(crate) struct DiffFlags {
    /// A history, or results
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,

    /// Another one
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,

    /// A level by name or alias, for histories; may be given several times [default: all]
    #[arg(long, value_name = "LEVEL", value_parser = level, value_delimiter = ',')]
    pub(crate) level: Vec<Level>,

    /// How to print
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ListOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// Re-check a verdict's certificate with independent code
///
/// CERT is what `taipan check --certificate CERT FILE` wrote. A witness order is replayed against the history, a small
/// core is tried in all orders, the proof of a large one is checked step by step; neither the graph nor the solver that found the verdict has a part in it. Lines about other
/// histories are passed over, and said to be.
///
/// Certified means: what was asked here is true of FILE. A certificate of another level or policy than the flags say
/// (by default, what `taipan check FILE` asks) is refused, whether or not it is true.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0  every question has its certificate, and every claim about FILE is certified
  1  at least one is refused: its evidence does not hold, or the certificate is about another history or question
  2  none is refused, at least one is beyond the certifier
  3  usage or input error, also a line that is no certificate

Examples:
  taipan check --level SER,SI --certificate proof.jsonl history.jsonl
  taipan certify --level SER,SI history.jsonl proof.jsonl")]
pub(crate) struct CertifyFlags {
    /// The history
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The certificate
    #[arg(value_name = "CERT")]
    pub(crate) certificate: PathBuf,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// Count the clients' clocks and session order at every level, as `taipan check --assume realtime` does
    #[arg(long, value_name = "WHAT")]
    pub(crate) assume: Vec<Assumption>,

    /// How far the clients' clocks may differ, in the history's own unit
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<i64>(0.., "1000"))]
    pub(crate) clock_skew: i64,

    /// Read-your-own-writes policy
    #[arg(long, value_name = "POLICY", default_value = "must")]
    pub(crate) ryow: Ryow,

    /// How to print
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
    /// A level by name or alias; may be given several times [default: the one in the history's header, else
    /// serializable]
    #[arg(long, value_name = "LEVEL", value_parser = level, value_delimiter = ',')]
    pub(crate) level: Vec<Level>,
}

/// How files are read.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading")]
pub(crate) struct ReadingFlags {
    /// The format, if it is not to be detected
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) format: Option<Format>,

    /// Leave out transactions that cannot be understood, and count them, instead of refusing the file
    #[arg(long)]
    pub(crate) lenient: bool,

    /// Take a history without a committed transaction for a valid one instead of an error
    #[arg(long)]
    pub(crate) allow_empty: bool,
}

/// What counts.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Policy")]
pub(crate) struct PolicyFlags {
    /// What to take for granted: `realtime` counts the clients' clocks and session order at every level
    #[arg(long, value_name = "WHAT")]
    pub(crate) assume: Vec<Assumption>,

    /// Clients' clocks may differ by this much, in the history's own unit
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<i64>(0.., "1000"))]
    pub(crate) clock_skew: i64,

    /// Whether a read must, may or never does see its own transaction's earlier writes
    #[arg(long, value_name = "POLICY", default_value = "must")]
    pub(crate) ryow: Ryow,

    /// Hold each transaction to the level in its `level` field, and to --level only if it has none
    #[arg(long)]
    pub(crate) mixed: bool,

    /// Levels are named as this database names them; what its documentation promises is checked
    #[arg(long, value_name = "DATABASE", value_parser = profile)]
    pub(crate) profile: Option<::databases::Profile>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Assumption {
    /// The clients' clocks are right
    Realtime,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ryow {
    #[default]
    Must,
    May,
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

/// Convert a history into another format
///
/// OUT's name tells the format (h.jsonl, h.tph, h.hist, …, also with .gz or .zst), or --to does. `-` is standard
/// input or output.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan convert run.edn run.jsonl            a Jepsen history into the native format
  taipan convert run.jsonl run.tph            into the compact binary form
  taipan convert --to notation run.jsonl -    to look at")]
pub(crate) struct ConvertFlags {
    /// The history to read
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The file to write
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    /// The format to write, if OUT's name does not tell
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Option<Format>,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// Say what is in a history
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan stats history.jsonl
  taipan stats --output json logs/*.jsonl")]
pub(crate) struct StatsFlags {
    /// Histories
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// How to print
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: ListOutput,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// Generate a synthetic history from a simulated database
///
/// The simulated database keeps its promise, except where a bug is planted. The same seed gives the same history.
#[derive(Debug, Args)]
#[command(after_help = generate_help())]
pub(crate) struct GenerateFlags {
    /// The file to write; `-` is standard output
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) plan: WorkloadFlags,

    /// What the database promises, and options: sim:LEVEL?NAME=VALUE&…
    #[arg(long, value_name = "TARGET", default_value = "sim:serializable")]
    pub(crate) target: workload::Target,

    /// Plant a bug: NAME, NAME:COUNT or NAME:RATE (with a point); may be given several times
    #[arg(long, value_name = "BUG")]
    pub(crate) bug: Vec<String>,

    /// Leave out the clients' clocks
    #[arg(long)]
    pub(crate) no_client_clocks: bool,

    /// Leave out the database's timestamps
    #[arg(long)]
    pub(crate) no_db_timestamps: bool,

    /// Say in `ctx` which transactions belong to a planted bug
    #[arg(long)]
    pub(crate) mark_planted: bool,

    /// The format to write, if OUT's name does not tell
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    pub(crate) to: Option<Format>,
}

/// What clients do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadFlags {
    /// What clients do
    #[arg(long, value_name = "WORKLOAD", default_value = "read-modify-write")]
    pub(crate) workload: String,

    /// How many transactions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10_000, value_parser = count::<u64>(0.., "10000"))]
    pub(crate) transactions: u64,

    /// How many clients [default: 8 on a real database, 24 on a simulated one]
    #[arg(long, value_name = "N", value_parser = count::<u32>(0.., "8"))]
    pub(crate) sessions: Option<u32>,

    /// The same seed gives the same transactions
    #[arg(long, value_name = "N", value_parser = count::<u64>(0.., "7"))]
    pub(crate) seed: Option<u64>,

    /// Change a setting; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
}

/// Show what Taipan does: a real database checked, a planted bug found and explained
///
/// Needs no set-up and ends in a few seconds. Writes two histories and a report into a temporary folder.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan demo                                     then open the page that it names in a browser")]
pub(crate) struct DemoFlags {}

/// Run a workload on a database, record what clients see, and check it
///
/// The database is checked at the level that it promises, unless --level says otherwise. Ctrl-C ends the workload
/// and checks what was recorded so far.
#[derive(Debug, Args)]
#[command(after_help = run_help())]
pub(crate) struct RunFlags {
    /// The database
    #[arg(value_name = "TARGET")]
    pub(crate) target: ::databases::Address,

    #[command(flatten)]
    pub(crate) plan: WorkloadFlags,

    /// The isolation level to ask the database for, by its own name [default: the weakest that promises the
    /// levels asked for, else the strongest]
    #[arg(long, value_name = "NAME")]
    pub(crate) isolation: Option<String>,

    /// Ask the database for its own start and commit timestamps
    #[arg(long)]
    pub(crate) timestamps: bool,

    /// Check snapshot isolation while the database runs, by its own timestamps; the usual check follows
    #[arg(long)]
    pub(crate) live: bool,

    /// Run for this many seconds instead of a number of transactions
    #[arg(long, value_name = "SECS", value_parser = seconds, conflicts_with = "transactions")]
    pub(crate) duration: Option<Duration>,

    /// Keep the history in a file, written as it happens; memory then stays flat however long the run is
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) require: RequireFlags,

    /// Do not check what was recorded
    #[arg(long, requires = "record")]
    pub(crate) no_check: bool,

    #[command(flatten)]
    pub(crate) load: LoadFlags,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// How to print results
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Output,

    /// Also write one self-contained page
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// The targets, and examples.
fn run_help() -> String {
    let simulated =
        format!("  {:30} {}", "sim:LEVEL?NAME=VALUE&…", "a simulated database; see `taipan help generate`");
    format!(
        "{}\n{simulated}\n\n\
Exit status: as of `taipan check`.

Examples:
  taipan run sqlite:
  taipan run postgres:temp --workload list-append --isolation repeatable-read --record h.jsonl
  taipan run postgres:temp --level SI --workload blind-writes --timestamps
  taipan run mariadb:temp --isolation repeatable-read --level SI
  taipan run postgres:temp --duration 60 --fault kill-server@20 --fault kill-connection@40
  taipan run 'sim:snapshot-isolation?bug=lost-update' --level SI",
        databases::targets()
    )
}

/// The tables of the simulated database, and examples.
fn generate_help() -> String {
    let table = |title: &str, rows: &mut dyn Iterator<Item = (&str, &str)>| {
        let rows: Vec<String> = rows.map(|(name, about)| format!("  {name:20} {about}")).collect();
        format!("{title}:\n{}\n\n", rows.join("\n"))
    };
    let mut help = table("Workloads", &mut workload::Workload::names());
    help += &table("Bugs", &mut workload::Bug::all().map(|bug| (bug.name(), bug.about())));
    help += &table("Settings", &mut workload::Config::settings());
    help + "\
Examples:
  taipan generate h.jsonl
  taipan generate -n 1000000 --workload list-append --target sim:snapshot-isolation h.jsonl.zst
  taipan generate --bug lost-update --seed 7 --set keys=100 h.jsonl && taipan check h.jsonl"
}

/// List the isolation levels: what they forbid, other names, sources, implications
///
/// Without LEVEL, all levels in one line each. With LEVEL, everything about it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan levels                      all levels
  taipan levels SI                   what snapshot isolation forbids and implies
  taipan levels --output json        the table for a program")]
pub(crate) struct LevelsFlags {
    /// Levels by name or alias
    #[arg(value_name = "LEVEL", value_parser = level)]
    pub(crate) levels: Vec<Level>,

    /// A file of levels of one's own, which are listed, too
    #[arg(long = "levels", value_name = "FILE.toml")]
    pub(crate) levels_file: Option<PathBuf>,

    /// How to print
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: LevelsOutput,
}

/// How the levels are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LevelsOutput {
    /// For people
    Text,
    /// One JSON object a line
    Json,
    /// All levels and what follows from what, as a picture
    Svg,
    /// The picture and the table as a page
    Html,
}

/// A level by any of its names.
fn level(name: &str) -> Result<Level, String> {
    crate::own_levels::find(name).map_err(|unknown| format!("{unknown} (`taipan levels` lists all)"))
}

/// A database whose names of levels are known.
fn profile(name: &str) -> Result<::databases::Profile, String> {
    ::databases::Profile::of(name).ok_or_else(|| {
        let known = ::databases::PROFILES.map(|profile| profile.name);
        format!("there is no profile of that name; there are {}", known.join(", "))
    })
}

/// A format by name.
fn format(name: &str) -> Result<Format, String> {
    Format::from_name(name).ok_or_else(|| {
        let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
        format!("there is no format of that name; there are {}", known.join(", "))
    })
}

/// `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE, such as keys=100")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// A time in seconds, with a fraction if need be.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "expected a number of seconds, such as 60 or 0.5".to_owned())?;
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| "expected a number of seconds that is not negative".to_owned())
}

/// A size in bytes: `500000000`, `500M`, `4G`, `1.5GiB`.
fn bytes(text: &str) -> Result<u64, String> {
    let expected = || "expected a number of bytes, such as 500000000, 500M or 4G".to_owned();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_uppercase();
    let power = match unit.trim_end_matches('B').trim_end_matches('I') {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return Err(expected()),
    };
    let number: f64 = digits.parse().map_err(|_| expected())?;
    let bytes = number * 1024f64.powi(power);
    if bytes.is_finite() && bytes >= 0.0 { Ok(bytes as u64) } else { Err(expected()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_fit_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_that_people_write() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("1000", Ok(1000)),
            ("4K", Ok(4096)),
            ("1.5k", Ok(1536)),
            ("2M", Ok(2 << 20)),
            ("2MiB", Ok(2 << 20)),
            ("3GB", Ok(3 << 30)),
            ("1t", Ok(1 << 40)),
            ("-1", Err(())),
            ("lots", Err(())),
            ("4X", Err(())),
            ("", Err(())),
        ] {
            assert_eq!(bytes(text).map_err(|_| ()), expected, "{text}");
        }
    }

    #[test]
    fn times_that_people_write() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        for wrong in ["-1", "NaN", "inf", "soon", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}
