//! Checks histories by the database's own timestamps: no search, one pass.
//!
//! Where the database tells when each transaction started and committed, the order is known. What is left is to replay it:
//! at snapshot isolation every transaction reads the state as of its start and writes at its commit; at a serial level it
//! does both at its commit. Every result that the replay does not produce is a [`Finding`]; all are reported, not the first.
//!
//! One *step* (the module `step`) says what a transaction does to a key, given what its snapshot holds there. What differs
//! is how transactions come to it:
//!
//! | | what comes | what it says | appends, ranges, predicates | unknown outcomes |
//! |---|---|---|---|---|
//! | [`check`], [`judge`] | a whole history | every finding | replayed | placed by a search |
//! | [`Streamed`] | parts in the order of commits | accepted, or that it has to be looked at whole | left to [`check`] | left to [`check`] |
//! | [`shards`] | keys of a history on several machines | accepted, or which keys and sessions have to be looked at | left to [`check`] | left to [`check`] |
//! | [`online::Online`] | transactions while the database runs, late and out of order | every finding once it is final | replayed | placed by the same search |
//!
//! ```
//! use history::formats::notation;
//! use isolation::{Level, Options};
//!
//! let history = notation::parse("s1: r(x,_) w(x,1) @@1..3\ns2: r(x,_) w(x,2) @@2..4\n")?;
//! let report = taipan_replay::check(&history, Level::SNAPSHOT_ISOLATION, &Options::default())?;
//! assert_eq!(report.findings[0].axiom, taipan_replay::Axiom::NoConflict);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **The axioms** (Chronos and Aion, Li et al., ICDE 2025, §II-B and Algorithm 2), with what one finding is about:
//!
//! | axiom | holds if | a finding is about |
//! |---|---|---|
//! | [`Axiom::TimestampOrder`] | start ≤ commit | a transaction |
//! | [`Axiom::Session`] | its predecessor in the session is visible to a transaction | a transaction |
//! | [`Axiom::RealTime`] | what ended before it began is visible to a transaction | a transaction |
//! | [`Axiom::Internal`] | a read agrees with the transaction's own earlier write or read of the key | an operation and a key |
//! | [`Axiom::External`] | any other result is what the snapshot holds | an operation and a key |
//! | [`Axiom::NoConflict`] | the version that a transaction overwrites is in its snapshot | a transaction and a key |
//!
//! Session and real-time order count where the level says so. A serial level has no `NoConflict` and
//! needs no start timestamps.
//!
//! **Where we differ from the paper.**
//! * `NoConflict` is reported once for each write, by the transaction that committed later, and names the
//!   version right before; the paper tells every pair. A write is in some pair exactly if it is reported.
//! * After a wrong read the transaction's view is what it was before; the paper continues with the wrong
//!   value.
//! * Lists: an append adds to the list as it is at the commit. Scans, iterators, queries and predicate
//!   writes are decided key by key: the snapshot says what each key had to contribute.
//! * A predicate write whose keys the database reported writes those keys, right or wrong; otherwise
//!   those that the snapshot says.
//! * An aborted transaction takes no part. One of unknown outcome took effect at any moment between its timestamps, as
//!   far as it has any, or not at all: only what no such moments explain is a finding (`unknown`).
//! * A transaction that commits before it starts is reported for that, and may otherwise have taken effect at any moment:
//!   whoever saw it, or did not, is not blamed.
//!
//! **Cost.** `O(n log n + m)` for `n` transactions and `m` operations, `O(n + m)` if the file is sorted by
//! commit; a scan or query costs the keys of its range.

mod datum;
mod evidence;
mod local;
pub mod online;
mod order;
mod ranges;
mod replay;
mod sessions;
pub mod shards;
mod state;
mod step;
mod streamed;
mod unknown;
mod versions;
mod view;

pub use evidence::{evidence, judge, outcome, witness};
pub use streamed::{Stopped, Streamed};

use history::{History, KeyId, OpId, Status, Timestamp, TxnId, ValueId};
use isolation::{Level, Options, Rule, Undecided, Witness};
use std::fmt;

/// What a transaction broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axiom {
    /// start ≤ commit.
    TimestampOrder,
    /// SESSION: it sees what its session did before.
    Session,
    /// It sees what had ended before it began.
    RealTime,
    /// INT: its reads agree with its own earlier operations.
    Internal,
    /// EXT: its other results are those of its snapshot.
    External,
    /// NOCONFLICT: nobody else wrote the key between its start and its commit.
    NoConflict,
}

impl Axiom {
    /// All axioms.
    pub const ALL: [Axiom; 6] = [
        Axiom::TimestampOrder,
        Axiom::Session,
        Axiom::RealTime,
        Axiom::Internal,
        Axiom::External,
        Axiom::NoConflict,
    ];

    /// The way it is written: the paper's names, in small letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::TimestampOrder => "timestamp-order",
            Self::Session => "session",
            Self::RealTime => "real-time",
            Self::Internal => "int",
            Self::External => "ext",
            Self::NoConflict => "noconflict",
        }
    }
}

/// One violation, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// What is broken.
    pub axiom: Axiom,
    /// The transaction that breaks it.
    pub txn: TxnId,
    /// The operation whose result is wrong; none where the timestamps alone are.
    pub op: Option<OpId>,
    /// The key it is about.
    pub key: Option<KeyId>,
    /// `External`: the writer of the version that had to be seen (`None`: the initial state).
    /// `NoConflict`: the writer of the version that was overwritten unseen. `Session` and `RealTime`: the
    /// transaction that had to be visible.
    pub other: Option<TxnId>,
    /// What had to be.
    pub expected: Content,
    /// What was.
    pub seen: Content,
}

/// What was expected or seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A value; absent, if the key had to be absent or was.
    Value(ValueId),
    /// A list that no operation of the history holds as a value.
    List(Box<[ValueId]>),
    /// How many keys a predicate write changed.
    Count(u64),
    /// A timestamp. Expected: this or a later one.
    Time(Timestamp),
    /// The client's clock. Expected: this or an earlier one.
    Clock(i64),
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// All violations, by the transaction's place in the commit order; first those that need no replay.
    pub findings: Vec<Finding>,
    /// Transactions of unknown outcome that somebody saw.
    pub took_effect: Vec<TxnId>,
    /// How many committed transactions were replayed.
    pub replayed: usize,
    /// The order that explains the rest, where it is not that of the commits alone.
    pub witness: Option<Witness>,
}

/// Why timestamps cannot decide.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Committed transactions have no timestamps.
    NoTimestamps {
        /// The first of them.
        first: TxnId,
        /// How many there are.
        count: usize,
    },
    /// Timestamps decide snapshot isolation and serializability with their variants only.
    Level,
    /// The budget is used up.
    GaveUp(Undecided),
}

impl Refusal {
    /// The sentence a person needs.
    pub fn sentence(&self, history: &History) -> String {
        match self {
            Self::NoTimestamps { first, count } => format!(
                "{count} committed transactions have no database timestamps, the first is {}: \
                 timestamps decide only histories where every committed transaction has `db`",
                history.transaction(*first).name()
            ),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTimestamps { count, .. } => {
                write!(f, "{count} committed transactions have no database timestamps")
            }
            Self::Level => f.write_str(
                "timestamps decide snapshot isolation and serializability, each with or without session and \
                 real-time order; no other level",
            ),
            Self::GaveUp(reason) => write!(f, "gave up: {reason:?}"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Whether timestamps alone decide this level of this history.
pub fn applies(history: &History, level: Level) -> bool {
    decides(level) && history.has_db_timestamps() && timestamps_missing(history).is_none()
}

/// Whether timestamps decide a level at all.
pub fn decides(level: Level) -> bool {
    matches!(level.rule, Rule::SnapshotIsolation | Rule::Serializable) && level.modules().is_empty()
}

/// Replays a history by its timestamps and reports every violation.
pub fn check(history: &History, level: Level, options: &Options) -> Result<Report, Refusal> {
    let mut findings = Vec::new();
    let facts = check_each(history, level, options, |finding| findings.push(finding))?;
    Ok(Report { findings, ..facts })
}

/// As [`check`], giving each violation to `found` instead of keeping it.
pub fn check_each(
    history: &History,
    level: Level,
    options: &Options,
    found: impl FnMut(Finding),
) -> Result<Report, Refusal> {
    check_counting(history, level, options, |_| true, found)
}

/// As [`check_each`], of those violations that count.
fn check_counting(
    history: &History,
    level: Level,
    options: &Options,
    counts: impl Fn(&Finding) -> bool,
    mut found: impl FnMut(Finding),
) -> Result<Report, Refusal> {
    let mut found = |finding: Finding| {
        if counts(&finding) {
            found(finding);
        }
    };
    if !decides(level) {
        return Err(Refusal::Level);
    }
    if let Some(refusal) = timestamps_missing(history) {
        return Err(refusal);
    }
    let serial = level.rule == Rule::Serializable;
    // 1. Ranks instead of timestamps.
    let order = order::Order::new(history, serial);
    // 2. What the timestamps alone break.
    sessions::timestamp_order(history, &order.backwards, &mut found);
    sessions::check(history, level, options, &mut found);
    // 3. Replay.
    let replayed = order.by_rank.len() + order.backwards.len();
    let mut report = Report { replayed, ..Report::default() };
    let Some(floating) = unknown::Floating::new(history, &order.backwards) else {
        replay(history, options, serial, &order, &mut found)?;
        return Ok(report);
    };
    // 4. Who has no place in the order is given one.
    let backwards = order.backwards.clone();
    let mut findings = Vec::new();
    replay(history, options, serial, &order, |finding| {
        findings.extend(Some(finding).filter(|it| counts(it)))
    })?;
    let placed = match findings.is_empty() {
        true => None,
        false => unknown::explain(history, level, options, &order, &floating, &findings),
    };
    match placed {
        None => {
            report.witness = Some(order.witness(serial));
            findings.into_iter().for_each(&mut found);
        }
        Some(unknown::Outcome { gave_up: Some(why), .. }) => return Err(Refusal::GaveUp(why)),
        Some(unknown::Outcome { order, took_effect, unsure, is_violated, .. }) => {
            report.took_effect = took_effect;
            report.witness = Some(order.witness(serial));
            let mut findings = Vec::new();
            replay(history, options, serial, &order, |finding| {
                findings.extend(Some(finding).filter(|it| counts(it)))
            })?;
            if let Some(why) = unsure.filter(|_| !findings.is_empty()) {
                return Err(Refusal::GaveUp(why));
            }
            debug_assert!(!is_violated || !findings.is_empty(), "who is to blame is told");
            // Of a transaction that commits before it starts nothing else is reported.
            findings.retain(|finding| backwards.binary_search(&finding.txn).is_err());
            findings.into_iter().for_each(&mut found);
        }
    }
    Ok(report)
}

fn replay(
    history: &History,
    options: &Options,
    serial: bool,
    order: &order::Order,
    found: impl FnMut(Finding),
) -> Result<(), Refusal> {
    replay::Replay::new(history, options, serial, !serial, found).by_commit(order).map_err(Refusal::GaveUp)
}

fn timestamps_missing(history: &History) -> Option<Refusal> {
    let missing = |txn: &history::Transaction<'_>| txn.status() == Status::Committed && txn.db().is_none();
    let first = history.transactions().find(missing)?;
    Some(Refusal::NoTimestamps { first: first.id(), count: history.transactions().filter(missing).count() })
}
