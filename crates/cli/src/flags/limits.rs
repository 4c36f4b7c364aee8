//! What the user can type about time and memory.

use super::{bytes, count, seconds};
use clap::Args;
use std::time::Duration;

/// What a check may use.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Limits (per file and level; --all-levels counts as one)")]
pub(crate) struct LimitFlags {
    #[command(flatten)]
    pub(crate) bounds: BoundFlags,

    /// Number of threads; 0 = one per core
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

    /// Answer `undecided` above this much memory [default: 80 % of the machine]
    ///
    /// K, M, G and T are powers of 1024.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) max_memory: Option<u64>,
}
