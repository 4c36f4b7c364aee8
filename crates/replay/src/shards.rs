//! The replay in shards: every key is checked where it lives, so that no machine needs the whole history.
//!
//! **What.** A part of a history becomes one [`Digest`] for each shard: of every transaction that touches keys of the shard,
//! what it first saw and last wrote of each. A [`Shard`] replays digests in the order of commits, as far as the caller
//! says that nothing earlier will come. [`Ends`] of sessions are compared wherever a session's parts meet ([`Sessions`]).
//!
//! ```text
//!   part ──> digest for shard 0 ──> Shard 0 ──┐
//!        ──> digest for shard 1 ──> Shard 1 ──┼──> Suspects ──> their transactions ──> conclude
//!        ──> ends of sessions  ──> Sessions ──┘    (mostly none)
//! ```
//!
//! **A shard only ever accepts.** Whatever it cannot settle — a result that does not fit, a key that is appended to or that
//! a transaction of unknown outcome read or wrote, a look further back than versions are kept — makes the key, or the
//! session, a *suspect*. [`Suspects::pick`] names the transactions that have to do with it; gathered in one place, in the order of
//! the history, they are all that [`conclude`] needs to find exactly what [`super::judge`] finds in the whole.
//!
//! **Why that is all.** EXT, INT and NOCONFLICT of a key depend on the transactions that touch the key, their
//! timestamps, and nothing else (Chronos and Aion, Li et al., ICDE 2025, §II-B; equal timestamps go by what `order` says, which is in
//! the digest). SESSION depends on neighbours in a session. So a key that fits in its shard fits in the whole, and all
//! findings about a suspect show in the transactions that touch it.
//!
//! **Cost.** As the replay; memory for the keys of the shard, and for versions back to four times the longest transaction
//! seen. A digest is 12 bytes for each key of a transaction and 48 a transaction.

mod digest;
mod label;
mod sessions;
mod shard;

pub use digest::{Digest, Digested, digest};
pub use label::{Label, Literal, Numbered, Numbers, home};

pub use sessions::{Ends, Sessions};
pub use shard::Shard;

use super::{Axiom, Finding, decides, evidence};
use history::{History, Id, Status, TxnId};
use isolation::{Level, Options, Outcome, Rule, Ryow, implications};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

/// Why nothing can be settled in shards.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whole {
    /// The level is none that timestamps decide.
    Level,
    /// Real-time order counts, and there are clients' clocks.
    RealTime,
    /// Reads of one's own writes are not held to the usual policy.
    Policy,
    /// Committed transactions have no timestamps.
    NoTimestamps,
    /// There are operations on many keys.
    Ranges,
}

impl Whole {
    /// As a sentence without a full stop.
    pub fn why(&self) -> &'static str {
        match self {
            Self::Level => "timestamps do not decide this level",
            Self::RealTime => "real-time order is one order of all transactions",
            Self::Policy => "--ryow may and never look at whole transactions",
            Self::NoTimestamps => "some committed transactions have no database timestamps",
            Self::Ranges => "scans and predicates speak of keys everywhere",
        }
    }
}

/// Whether shards can settle anything at this level, as far as that shows without the history.
pub fn applies(level: Level, options: &Options) -> Result<(), Whole> {
    if !decides(level) || level.own.is_some() || options.mixed {
        return Err(Whole::Level);
    }
    if options.ryow != Ryow::Must {
        return Err(Whole::Policy);
    }
    Ok(())
}

/// The weakest level that shards decide and that implies another one: a history that they accept there is accepted here,
/// too.
pub fn stronger(level: Level) -> Option<Level> {
    if level.own.is_some() {
        return None;
    }
    let mut above = vec![level];
    let mut at = 0;
    while let Some(&weaker) = above.get(at) {
        for implication in implications().iter().filter(|it| it.weaker == weaker && !it.without_predicates) {
            if !above.contains(&implication.stronger) {
                above.push(implication.stronger);
            }
        }
        at += 1;
    }
    let order = [Rule::SnapshotIsolation, Rule::Serializable];
    let mut decided =
        order.iter().flat_map(|&rule| [false, true].map(|session| Level::new(rule, session, false)));
    decided.find(|level| above.contains(level))
}

/// What was not settled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Suspects {
    /// Keys.
    pub keys: FxHashSet<Label>,
    /// Sessions.
    pub sessions: FxHashSet<Label>,
    /// Why nothing was, if so.
    pub whole: Option<Whole>,
}

impl Suspects {
    /// Whether everything was settled.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.sessions.is_empty() && self.whole.is_none()
    }

    /// Those of another shard, too.
    pub fn extend(&mut self, other: Self) {
        self.keys.extend(other.keys);
        self.sessions.extend(other.sessions);
        self.whole = self.whole.take().or(other.whole);
    }

    /// The transactions of a part that have to do with suspects.
    pub fn pick(&self, part: &History) -> Vec<TxnId> {
        if self.whole.is_some() {
            return part.transactions().map(|txn| txn.id()).collect();
        }
        let keys = self.keys_of(part);
        let sessions: Vec<bool> = (part.sessions().ids())
            .map(|id| self.sessions.contains(&Label::from(part.sessions().get(id))))
            .collect();
        let picked = part.transactions().filter(|txn| {
            sessions[txn.session().index()]
                || txn.primitives().any(|(_, operation)| match operation.key() {
                    Some(key) => keys[key.index()],
                    // Only what did not take effect is here; it may have written what somebody saw.
                    None => true,
                })
        });
        picked.map(|txn| txn.id()).collect()
    }

    /// For each key of a part whether it is suspect.
    pub fn keys_of(&self, part: &History) -> Vec<bool> {
        let is_suspect = |id| self.whole.is_some() || self.keys.contains(&Label::from(part.keys().get(id)));
        part.keys().ids().map(is_suspect).collect()
    }
}

/// Decides what shards did not settle, from the transactions that were picked, in the order of the history: the outcome,
/// and all findings, are those of [`super::judge`] on the whole.
pub fn conclude(
    picked: &History,
    level: Level,
    options: &Options,
    suspects: &Suspects,
) -> (Outcome, Vec<Finding>) {
    let keys = suspects.keys_of(picked);
    // Other keys of these transactions were settled, from transactions that are not here.
    let counts = |finding: &Finding| match (finding.axiom, finding.key) {
        (Axiom::Internal | Axiom::External | Axiom::NoConflict, Some(key)) => keys[key.index()],
        _ => true,
    };
    evidence::judge_only(picked, level, options, counts)
}

/// What of a transaction a shard needs to know.
fn takes_part(status: Status) -> bool {
    status == Status::Committed
}
