//! What the user can type about time and memory.

use super::{bytes, count, seconds};
use clap::Args;
use std::time::Duration;

/// What a check may use.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Limits, for every file and level; --all-levels is one question")]
pub(crate) struct LimitFlags {
    #[command(flatten)]
    pub(crate) bounds: BoundFlags,

    /// Use this many threads; 0 is one a core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = count::<usize>(0.., "4"))]
    pub(crate) threads: usize,
}

/// Time and memory.
#[derive(Clone, Copy, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct BoundFlags {
    /// Answer `undecided` after this many seconds
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(crate) timeout: Option<Duration>,

    /// Answer `undecided` above this much memory; K, M, G and T are powers of 1024 [default: four fifths of what the
    /// machine has]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_memory: Option<u64>,
}
