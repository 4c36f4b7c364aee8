//! The flags of `taipan elle`: those of elle-cli.

use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Check Jepsen histories with elle-cli's flags, and print its results
///
/// Prints `FILE \t true`, `false` or `unknown` per file, or with --verbose Elle's result map. The default model is
/// strict-serializable. The exit status is that of `taipan check`: 0 if all are true, 1 if one is false, 2 if one is unknown,
/// 3 on errors (elle-cli: 0, 1, 0, 255).
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan elle --model list-append history.edn
  taipan elle -m rw-register -c snapshot-isolation --verbose store/latest
  taipan elle -m list-append -c read-committed -a G-single history.json")]
pub(crate) struct ElleFlags {
    /// Histories in EDN or JSON, or Jepsen store folders
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// Kind of history: list-append, rw-register, cas-register or mutex
    ///
    /// list-append and rw-register are the same here: the operations in the file decide.
    #[arg(short, long, value_name = "MODEL", default_value = "list-append", value_parser = model)]
    pub(crate) model: Model,

    /// Input format [default: detect]
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) format: Option<HistoryFormat>,

    /// Models that the history is expected to satisfy, by Elle's names
    #[arg(short, long, value_name = "MODELS", value_delimiter = ',', default_value = checker::ELLE_DEFAULT)]
    pub(crate) consistency_models: Vec<String>,

    /// Anomalies to look for as well: each adds the weakest level that forbids it
    #[arg(short, long, value_name = "ANOMALIES", value_delimiter = ',', default_value = "G0")]
    pub(crate) anomalies: Vec<String>,

    /// Print the result map
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Format of the result map
    #[arg(long, value_name = "FORM", default_value = "edn")]
    pub(crate) output: ElleOutput,

    /// Answer `unknown` after this many milliseconds per file and model [default: no limit]
    #[arg(short = 's', long, value_name = "MS")]
    pub(crate) cycle_search_timeout: Option<u64>,

    /// Write each anomaly into this folder: an explanation and a picture
    #[arg(short, long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,

    /// Picture format: svg
    #[arg(short, long, value_name = "FORMAT", default_value = "svg", value_parser = plot_format, hide_short_help = true)]
    pub(crate) plot_format: String,

    /// Assume that a transaction's write follows what it read: no effect from read-committed on
    #[arg(long)]
    pub(crate) wfr_keys: bool,

    /// Assume that each session sees versions of each key in their order
    #[arg(long)]
    pub(crate) sequential_keys: bool,

    /// Assume that versions of each key follow the clients' clocks
    #[arg(long)]
    pub(crate) linearizable_keys: bool,

    /// Accepted for compatibility; has no effect
    #[arg(short = 't', long, value_name = "MS", default_value_t = 5000, hide_short_help = true)]
    pub(crate) plot_timeout: u64,

    /// Leave out pictures whose graph takes more than this many bytes of DOT
    #[arg(short = 'b', long, value_name = "BYTES", default_value_t = 65536, hide_short_help = true)]
    pub(crate) max_plot_bytes: usize,
}

/// A model of elle-cli that can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Model {
    /// Transactions of reads and appends, or of reads and writes.
    Transactions,
    /// Single operations on one object, which must be linearizable.
    Linearizable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum HistoryFormat {
    Edn,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ElleOutput {
    /// As Elle prints it
    Edn,
    /// As elle-cli --verbose prints it, on one line
    Json,
}

/// Models of elle-cli that are about something else, with the reason.
const REFUSED: &[(&str, &str)] = &[
    (
        "bank",
        "transfers are relative, and that totals stay the same is an invariant of the application, not of an isolation level",
    ),
    ("counter", "increments are relative: no read says which of them it saw"),
    ("set", "it asks for lost elements only; `taipan check` reads such a history and holds it to a level"),
    (
        "set-full",
        "it asks when elements appear and vanish; `taipan check` reads such a history and holds it to a level",
    ),
    ("long-fork", "it looks for one anomaly; `taipan check --level snapshot-isolation` finds it, and others"),
    ("comments", "it looks for one anomaly; `taipan check --level strict-serializable` finds it, and others"),
    (
        "sequential",
        "it looks for one anomaly; `taipan check --level strong-session-serializable` finds it, and others",
    ),
];

fn model(name: &str) -> Result<Model, String> {
    match name {
        "list-append" | "rw-register" => return Ok(Model::Transactions),
        "cas-register" | "mutex" => return Ok(Model::Linearizable),
        _ => {}
    }
    match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, why)) => Err(format!("{name} cannot be checked: {why}")),
        None => Err("there are list-append, rw-register, cas-register and mutex".to_owned()),
    }
}

fn plot_format(name: &str) -> Result<String, String> {
    match name {
        "svg" => Ok(name.to_owned()),
        "png" => {
            Err("pictures are SVG; every browser shows them, and rsvg-convert makes PNGs of them".to_owned())
        }
        _ => Err("there is svg".to_owned()),
    }
}
