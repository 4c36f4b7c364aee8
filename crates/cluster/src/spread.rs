//! The polynomial levels by several hands: read committed, read atomic and causal, accepted piece by piece.
//!
//! **What.** Where every read has one source, the obligations of `weak`'s saturation are known, and a level holds if
//! and only if they, session order and wr form no cycle. Here the work is cut so that no hand needs the whole history:
//!
//! ```text
//!   part ──> digest for home 0 ──> Home 0 ── who wrote what each read saw ──> back to whoever read the part
//!        ──> digest for home 1 ──> Home 1 ──┘                                          │
//!                       of each transaction the largest number that directly precedes it │ told to all
//!              is every read clear?  accepted  <───────────────────────────────────────────┤
//!              clocks, each hand some columns  <── else: pieces of the graph, told to all ─┘
//!                        │ rows of doubtful readers and their sources
//!              obligations, each home those of its keys ──> which of them lead backward?
//! ```
//!
//! **Clear reads.** What makes no cycle is first tried without clocks: see [`Lanes::are_clear`].
//!
//! **Clocks by column.** A clock says of each session the last transaction that precedes. Entry `s` of a clock is the
//! largest of entry `s` in the clocks of what directly precedes, and depends on no other entry: whoever knows the graph
//! computes the columns of some sessions for all transactions, and never asks anybody for clocks on the way.
//!
//! **Obligations by key.** That S commits before W because a read of x from W must see S speaks of writers of x: whoever has
//! the reads and the writers of a key, and the columns of some sessions, finds all obligations from those sessions. With
//! all keys and all columns dealt out, in whatever way, every obligation is found by somebody.
//!
//! **No cycle.** Edges that all lead forward in one order make none. The order of the file mostly is one, because
//! files are mostly written as transactions end. Where some edges lead backward, a cycle lies within the stretches that these
//! span ([`Regions`]); only there edges are brought together and sorted.
//!
//! **Only ever accepts.** Lists, ranges, results with no source or several, and whatever else is not this plain case is an
//! [`Open`] question; so is a cycle. Then the usual check decides, and its argument is the argument.
//!
//! **Transactions of unknown outcome** took effect if somebody saw them who did; each is a chain of its own, as nothing
//! follows it. One that nobody saw may be left out of an explanation, so it is.
//!
//! **Cost.** 12 bytes an operation at the home of its key until it is joined, then 8 a read and 4 a write; the graph, 12
//! bytes a transaction and 4 a read, once a process; clocks, 4 bytes a transaction and column.
//!
//! **Source.** AWDIT (Møldrup et al., PLDI 2025), algorithms 1 to 3, on session clocks; the cut by columns and keys is ours.

mod clocks;
mod digest;
mod graph;
mod home;
mod lanes;

pub use clocks::Columns;
pub use digest::{Digest, Digested, Kept, digest};
pub use graph::{Graph, Layout, Piece, Regions, Tally};
pub use home::{Home, Replies};
pub use lanes::{Doubts, Edges, Lanes};

use isolation::{Level, Options, Rule, Ryow, Strategy};
use search::weak::Sight;
use serde::{Deserialize, Serialize};

/// No transaction: the initial state, or nothing before.
pub(crate) const NONE: u32 = u32::MAX;
/// A source that is not known, or not one.
const DOUBTFUL: u32 = u32::MAX - 1;
/// More transactions have no numbers.
const NODES_MAX: u64 = (u32::MAX - 2) as u64;

/// Why nothing was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Open {
    /// There are clients' clocks, and they count.
    RealTime,
    /// There are operations on many keys, or on lists.
    Operations,
    /// A transaction contradicts its own writes, or wrote what was not recorded.
    Internal,
    /// A read has no source, or several.
    Sources,
    /// Something must be seen that the initial state does not show.
    Initial,
    /// Orders and obligations make a cycle.
    Cycle,
    /// There are too many transactions.
    Size,
}

impl Open {
    /// As a sentence without a full stop.
    pub fn why(&self) -> &'static str {
        match self {
            Self::RealTime => "real-time order is one order of all transactions",
            Self::Operations => "there are lists, ranges or predicates",
            Self::Internal => "a transaction's own writes tell something else, or were not recorded",
            Self::Sources => "a result has no writer, or several that it may have come from",
            Self::Initial => "something is missing where the initial state was seen",
            Self::Cycle => "orders and obligations make a cycle",
            Self::Size => "there are too many transactions",
        }
    }
}

/// What is asked of every piece.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    sight: Sight,
    session: bool,
    realtime: bool,
}

impl Plan {
    /// `None` if the level is not decided in this way.
    pub fn of(level: Level, options: &Options) -> Option<Self> {
        let is_plain = level.own.is_none() && !options.mixed && options.strategy == Strategy::Lazy;
        let (sight, is_axiomatic) = match level.rule {
            Rule::ReadCommitted => (Sight::Nothing, false),
            Rule::AxiomaticReadCommitted => (Sight::EarlierReads, true),
            Rule::ReadAtomic => (Sight::Direct, true),
            Rule::Causal => (Sight::Causes, true),
            _ => return None,
        };
        let is_decided = is_plain && options.ryow == Ryow::Must && (level.session || !is_axiomatic);
        is_decided.then_some(Self { sight, session: level.session, realtime: level.realtime })
    }

    /// Whether obligations are looked for at all: if not, orders that lead forward are enough.
    pub fn obliges(self) -> bool {
        self.sight != Sight::Nothing
    }

    /// Whether clocks are needed.
    pub fn needs_clocks(self) -> bool {
        self.sight == Sight::Causes
    }
}
