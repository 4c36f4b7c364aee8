//! Transactions whose outcome the client never learnt: dormant until somebody sees them.
//!
//! The rule is that of [`super::super::unknown`]: one takes effect right before the first transaction, by
//! look, that saw what it wrote and cannot have seen it otherwise. Verdicts become final in the order of
//! looks, so the first to be final and wrong is the one to ask.
//!
//! One that nobody saw could be seen at any time, so it is kept; of more than [`SLEEPERS_MAX`] those that
//! have slept longest are given up.

use super::keys::KeyNo;
use super::program::Program;
use super::stamp::Stamp;
use history::Name;

/// How many are kept.
pub(super) const SLEEPERS_MAX: usize = 10_000;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sleeper {
    pub(super) session: u32,
    pub(super) position: u64,
    pub(super) id: Option<Name>,
    /// It does not take effect before this, if the database said so.
    pub(super) commit: Option<Stamp>,
    pub(super) program: Program,
    pub(super) pinned: Vec<KeyNo>,
    /// How many transactions had arrived when it did.
    pub(super) arrival: u64,
}

/// All of them, by session and place in it.
#[derive(Debug, Default)]
pub(super) struct Dormant {
    pub(super) sleepers: Vec<Sleeper>,
    /// How many took effect.
    pub(super) placed: u64,
}

impl Dormant {
    pub(super) fn is_empty(&self) -> bool {
        self.sleepers.is_empty()
    }

    pub(super) fn bytes(&self) -> usize {
        self.sleepers.len() * 512
    }
}
