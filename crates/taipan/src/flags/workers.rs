//! Who works.

use super::{BoundFlags, ReadingFlags, count};
use clap::{Args, ValueEnum};
use history::formats::Format;
use std::path::PathBuf;

/// Who works: threads of a dataflow, and other processes.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Workers; what is found does not depend on them")]
pub(crate) struct CrewFlags {
    /// Deal the work out to this many workers of a dataflow [default: one thread, and no dataflow]
    #[arg(long, value_name = "N", value_parser = count::<u16>(1..=1024, "2"))]
    pub(crate) workers: Option<u16>,

    /// Also to other processes: the file has one `host:port` a line, and every process gets the same. Each has --workers
    /// workers
    #[arg(long, value_name = "HOSTS.txt", requires = "process")]
    pub(crate) cluster: Option<PathBuf>,

    /// Which line of HOSTS.txt this process is, from 0; process 0 tells what is found
    #[arg(long, value_name = "K", requires = "cluster", value_parser = count::<usize>(0.., "0"))]
    pub(crate) process: Option<usize>,

    /// Wait this many seconds for the other processes
    #[arg(long, value_name = "SECS", default_value_t = 60, requires = "cluster", value_parser = count::<u64>(0.., "60"))]
    pub(crate) wait: u64,

    /// Say on standard error every SECS seconds how far each worker is
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = "2", value_parser = count::<u64>(0.., "2"))]
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
#[command(next_help_heading = "Workers; what is found does not depend on them")]
pub(crate) struct WorkerFlags {
    #[command(flatten)]
    pub(crate) crew: CrewFlags,

    /// Whose files they are; each worker reads some of them, or its part of one
    #[arg(long, value_name = "WHOSE", default_value = "shared")]
    pub(crate) shards: Whose,
}

/// Whose files they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Whose {
    /// Every process sees the same files, and reads its part of them
    #[default]
    Shared,
    /// Every process has shards of its own, and reads all of them
    Own,
}

/// Split a history into shards for several machines
///
/// Every transaction goes into one shard, `shard-0000.jsonl` and so on in a folder, which every command takes for the
/// history. Give each machine some of the shards and say `--shards own`, or put the folder where all machines see it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  taipan split day.jsonl day/ --shards 16                 sessions stay whole
  taipan split day.jsonl day/ --shards 16 --by time --to binary
  taipan check --level SI --workers 2 day/                on this machine
  taipan check --level SI --cluster hosts.txt --process 0 day/")]
pub(crate) struct SplitFlags {
    /// The history
    #[arg(value_name = "IN")]
    pub(crate) input: PathBuf,

    /// The folder to make
    #[arg(value_name = "OUT_FOLDER")]
    pub(crate) folder: PathBuf,

    /// How many shards
    #[arg(long, value_name = "N", value_parser = count::<u16>(1..=1000, "16"))]
    pub(crate) shards: u16,

    /// What decides where a transaction goes
    #[arg(long, value_name = "WHAT", default_value = "session")]
    pub(crate) by: Axis,

    /// The format of the shards
    #[arg(long, value_name = "FORMAT", default_value = "jsonl", value_parser = written)]
    pub(crate) to: Format,

    #[command(flatten)]
    pub(crate) reading: ReadingFlags,

    #[command(flatten)]
    pub(crate) bounds: BoundFlags,
}

/// What decides where a transaction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Axis {
    /// Its session
    Session,
    /// When it committed; its place in the file, if no clock tells
    Time,
}

/// A format that shards can have.
fn written(name: &str) -> Result<Format, String> {
    match Format::from_name(name) {
        Some(format @ (Format::Jsonl | Format::Binary)) => Ok(format),
        _ => Err("shards are jsonl or binary".to_owned()),
    }
}
