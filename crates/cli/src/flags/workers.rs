//! Who works.

use super::values::Offered;
use super::{BoundFlags, ReadingFlags, count};
use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use history::formats::Format;
use std::path::PathBuf;

/// Who works: threads of a dataflow, and other processes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Workers (never change a verdict)")]
pub(crate) struct CrewFlags {
    /// Number of dataflow workers
    ///
    /// Default: no dataflow.
    #[arg(long, hide_short_help = true, value_name = "N", value_parser = count::<u16>(1..=1024, "2"))]
    pub(crate) workers: Option<u16>,

    /// Work together with the processes listed in HOSTS.txt
    ///
    /// The file has one `host:port` per line and is the same for every process. Each process has --workers workers.
    #[arg(long, value_name = "HOSTS.txt", requires = "process", hide_short_help = true)]
    pub(crate) cluster: Option<PathBuf>,

    /// The line of HOSTS.txt that is this process, counted from 0
    ///
    /// Process 0 reports the results.
    #[arg(long, value_name = "K", requires = "cluster", hide_short_help = true, value_parser = count::<usize>(0.., "0"))]
    pub(crate) process: Option<usize>,

    /// Wait this many seconds for the other processes
    #[arg(long, hide_short_help = true, value_name = "SECS", default_value_t = 60, requires = "cluster", value_parser = count::<u64>(0.., "60"))]
    pub(crate) wait: u64,

    /// Print each worker's progress to stderr every SECS seconds
    #[arg(long, hide_short_help = true, value_name = "SECS", num_args = 0..=1, default_missing_value = "2", value_parser = count::<u64>(0.., "2"))]
    pub(crate) monitor: Option<u64>,
}

impl CrewFlags {
    /// Whether several are to work.
    pub(crate) fn are_set(&self) -> bool {
        self.workers.is_some() || self.cluster.is_some()
    }
}

/// Who works on a check, and on what.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Workers (never change a verdict)")]
pub(crate) struct WorkerFlags {
    #[command(flatten)]
    pub(crate) crew: CrewFlags,

    /// Whether processes share the input files
    #[arg(long, hide_short_help = true, value_name = "WHOSE", default_value = "shared")]
    pub(crate) shards: Whose,
}

/// Whether processes share the input files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Whose {
    /// Every process sees the same files and reads its part of them
    #[default]
    Shared,
    /// Every process has its own shards and reads all of them
    Own,
}

/// Split a history into shards for several machines
///
/// Every transaction goes to one shard: `shard-0000.jsonl` and so on in a folder, which every command reads as one
/// history. Give each machine some of the shards and use `--shards own`, or put the folder on a shared disk.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  # each session in one shard
  taipan split day.jsonl day/ --shards 16
  taipan split day.jsonl day/ --shards 16 --by time --to binary
  # on this machine
  taipan check --level SI --workers 2 day/
  # as the first of several machines
  taipan check --level SI --cluster hosts.txt --process 0 day/")]
pub(crate) struct SplitFlags {
    /// The history
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The folder to create
    #[arg(value_name = "OUT_FOLDER")]
    pub(crate) folder: PathBuf,

    /// Number of shards
    #[arg(long, value_name = "N", value_parser = count::<u16>(1..=1000, "16"))]
    pub(crate) shards: u16,

    /// Assign transactions to shards by session or by time
    #[arg(long, value_name = "WHAT", default_value = "session")]
    pub(crate) by: Axis,

    /// Format of the shards
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = shard_formats())]
    pub(crate) to: Format,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// What decides where a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Axis {
    /// By session
    Session,
    /// By commit time; by place in the file if there are no clocks
    Time,
}

/// A format that shards can have.
fn shard_formats() -> Offered<Format> {
    Offered::new(
        |name| match Format::from_name(name) {
            Some(format @ (Format::Jsonl | Format::Binary)) => Ok(format),
            _ => Err("shards are jsonl or binary".to_owned()),
        },
        || ["jsonl", "binary"].map(PossibleValue::new).into(),
    )
}
