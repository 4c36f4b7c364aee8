//! What is asked of a history, and how it is read.

use super::values::{self, formats, levels, profiles};
use super::{LevelName, count};
use clap::{Args, ValueEnum};
use history::formats::Format;
use taipan::files::Requirement;

/// Which levels.
#[derive(Debug, Args)]
pub(crate) struct LevelFlags {
    /// Isolation level, by name or alias (repeatable)
    ///
    /// Default: the level in the history's header, else serializable. `taipan levels` lists all levels. LEVEL may be a
    /// list: SI,SER.
    #[arg(long, value_name = "LEVEL", value_parser = levels(), hide_possible_values = true, value_delimiter = ',')]
    pub(crate) level: Vec<LevelName>,
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
    #[arg(long, value_name = "WHAT", hide_possible_values = true)]
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

/// How much a history must test for its acceptance to count.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct RequireFlags {
    /// Accept only if enough was tested, else `undecided` (repeatable)
    ///
    /// `coverage=PERCENT`: this share of the writes was read by another transaction. `transactions=N`: N transactions
    /// committed.
    #[arg(long, value_name = "WHAT=N", value_delimiter = ',')]
    pub(crate) require: Vec<Requirement>,
}
