//! The flags of commands that hold verdicts against others: another solver, another run, the certifier.

use super::values::levels;
use super::{
    Assumption, BoundFlags, LevelFlags, LevelName, LimitFlags, ListOutput, PolicyFlags, ReadingFlags, Ryow,
    count,
};
use clap::Args;
use std::path::PathBuf;

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
    pub(crate) level: Vec<LevelName>,

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
