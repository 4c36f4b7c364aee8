//! What the user can type for commands that record a workload: on a simulated database, or on a real one.

use super::values::{self, bugs, formats, seconds, settings, simulated, targets, workloads};
use super::{LevelFlags, LimitFlags, LoadFlags, Output, PolicyFlags, RequireFlags, count};
use clap::Args;
use history::formats::Format;
use std::path::PathBuf;
use std::time::Duration;

/// Generate a history with a simulated database
///
/// The simulated database keeps its isolation level except where a bug is planted. The same seed gives the same history.
#[derive(Debug, Args)]
#[command(after_help = "Workloads, bugs, settings and examples: taipan help generate")]
#[command(after_long_help = generate_help())]
pub(crate) struct GenerateFlags {
    /// The file to write; `-` is stdout
    #[arg(value_name = "OUT")]
    pub(crate) output: PathBuf,

    /// The simulated database: sim:LEVEL?NAME=VALUE&…
    #[arg(long, value_name = "TARGET", default_value = "sim:serializable", value_parser = simulated(), hide_possible_values = true)]
    pub(crate) target: workload::Target,

    /// Plant a bug: NAME, NAME:COUNT or NAME:RATE (repeatable)
    ///
    /// RATE is a fraction of the transactions, with a decimal point.
    #[arg(long, value_name = "BUG", value_parser = bugs(), hide_possible_values = true)]
    pub(crate) bug: Vec<String>,

    /// Leave out the clients' clocks
    #[arg(long)]
    pub(crate) no_client_clocks: bool,

    /// Leave out the database's timestamps
    #[arg(long)]
    pub(crate) no_db_timestamps: bool,

    /// Mark transactions of planted bugs in `ctx`
    #[arg(long)]
    pub(crate) mark_planted: bool,

    /// Output format [default: by the name of OUT]
    #[arg(long, value_name = "FORMAT", value_parser = formats(), hide_possible_values = true, long_help = values::format_help("Output format [default: by the name of OUT]"))]
    pub(crate) to: Option<Format>,

    #[command(flatten)]
    pub(crate) plan: WorkloadFlags,
}

/// What clients do.
#[derive(Debug, Args)]
#[command(next_help_heading = "Workload")]
pub(crate) struct WorkloadFlags {
    /// What transactions do
    ///
    /// `taipan help generate` lists the workloads.
    #[arg(long, value_name = "WORKLOAD", default_value = "read-modify-write", value_parser = workloads(), hide_possible_values = true)]
    pub(crate) workload: String,

    /// Number of transactions
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10_000, value_parser = count::<u64>(0.., "10000"))]
    pub(crate) transactions: u64,

    /// Number of clients [default: 8, simulated: 24]
    #[arg(long, value_name = "N", value_parser = count::<u32>(0.., "8"))]
    pub(crate) sessions: Option<u32>,

    /// Random seed
    ///
    /// The same seed gives the same transactions.
    #[arg(long, value_name = "N", value_parser = count::<u64>(0.., "7"))]
    pub(crate) seed: Option<u64>,

    /// Change a setting of the workload (repeatable)
    ///
    /// `taipan help generate` lists the settings.
    #[arg(long, value_name = "NAME=VALUE", value_parser = settings(), hide_possible_values = true)]
    pub(crate) set: Vec<(String, String)>,
}

/// Run a workload on a database, record it and check it
///
/// Checks the level that the database promises, unless --level says otherwise. Ctrl-C ends the workload and checks what
/// was recorded so far. On a running server, drops and creates the table taipan_kv; it is not removed at the end.
#[derive(Debug, Args)]
#[command(after_help = "\
Targets: sqlite:, postgres:temp, mariadb:temp, mysql:temp, fjall:, redb:,
sim:LEVEL, or the URL of a running server (drops and creates table taipan_kv)
Exit status: same as `taipan check`.
More options, targets and examples: taipan help run")]
#[command(after_long_help = run_help())]
#[command(mut_arg("assume", |arg| arg.hide_short_help(true)))]
#[command(mut_arg("clock_skew", |arg| arg.hide_short_help(true)))]
#[command(mut_arg("ryow", |arg| arg.hide_short_help(true)))]
#[command(mut_arg("mixed", |arg| arg.hide_short_help(true)))]
#[command(mut_arg("profile", |arg| arg.hide_short_help(true)))]
pub(crate) struct RunFlags {
    /// The database
    #[arg(value_name = "TARGET", value_parser = targets(), hide_possible_values = true)]
    pub(crate) target: ::databases::Address,

    /// Isolation level, by the database's name
    ///
    /// Default: the weakest that promises the levels of --level, else the strongest.
    #[arg(long, value_name = "NAME")]
    pub(crate) isolation: Option<String>,

    /// Record the database's start and commit timestamps
    #[arg(long)]
    pub(crate) timestamps: bool,

    /// Also check snapshot isolation during the run
    ///
    /// By the database's timestamps. The usual check follows.
    #[arg(long)]
    pub(crate) live: bool,

    /// Run for SECS seconds instead of N transactions
    #[arg(long, value_name = "SECS", value_parser = seconds, conflicts_with = "transactions")]
    pub(crate) duration: Option<Duration>,

    /// Write the history to FILE during the run
    ///
    /// Memory use then does not grow with the length of the run.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) require: RequireFlags,

    /// Only record, do not check
    #[arg(long, requires = "record")]
    pub(crate) no_check: bool,

    #[command(flatten)]
    pub(crate) levels: LevelFlags,

    /// Output format
    #[arg(long, value_name = "FORM", default_value = "text")]
    pub(crate) output: Output,

    /// Also write an HTML report
    #[arg(long, value_name = "FILE.html")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) plan: WorkloadFlags,

    #[command(flatten)]
    pub(crate) load: LoadFlags,

    #[command(flatten)]
    pub(crate) policy: PolicyFlags,

    #[command(flatten)]
    pub(crate) limits: LimitFlags,
}

/// The targets, and examples.
fn run_help() -> String {
    let simulated =
        super::databases::target_row("sim:LEVEL?NAME=VALUE&…", "simulated; see `taipan help generate`");
    format!(
        "{}{simulated}\n\
Exit status: same as `taipan check`.

Examples:
  taipan run sqlite:
  taipan run postgres:temp --workload list-append --record h.jsonl
  taipan run postgres:temp --level SI --workload blind-writes --timestamps
  taipan run mariadb:temp --isolation repeatable-read --level SI
  taipan run postgres:temp --duration 60 --fault kill-server@20
  taipan run 'sim:snapshot-isolation?bug=lost-update' --level SI",
        super::databases::targets()
    )
}

/// The tables of the simulated database, and examples.
fn generate_help() -> String {
    let table = |title: &str, rows: &mut dyn Iterator<Item = (&str, &str)>| {
        let rows: String = rows.map(|(name, about)| values::row(20, name, about)).collect();
        format!("{title}:\n{rows}\n")
    };
    let mut help = table("Workloads", &mut workload::Workload::names());
    help += &table("Bugs", &mut workload::Bug::all().map(|bug| (bug.name(), bug.about())));
    help += &table("Settings", &mut workload::Config::settings());
    help + "\
Examples:
  taipan generate h.jsonl
  taipan generate -n 1000000 --workload list-append h.jsonl.zst
  taipan generate --bug lost-update --seed 7 --set keys=100 h.jsonl
  taipan check h.jsonl"
}
