//! What is asked of a history, and the one place that chooses the engine that answers.
//!
//! **What.** A [`Claim`] is a level, what the order of transactions is judged by, and the policies. [`Claim::check`]
//! answers it. Every command, the library and the workers ask here.
//!
//! **Invariant.** The verdict is a function of the history and the claim. [`Options`] say how the answer is looked for
//! and when to give up; they can make it undecided and never turn one verdict into the other.
//!
//! **Steps, by results.** Where the database recorded timestamps, their order is tried first, because it nearly always
//! explains the results: a replay in that order costs one pass. If it does not explain them, the search decides, and the
//! [`Answer`] says what the timestamps refuse. A level that timestamps do not decide is tried at the weakest level
//! that implies it and that they do decide. What is accepted though the history has none of the order that the level asks
//! for was not tested: it is undecided.
//!
//! **Cost.** The replay, and the search only where the replay did not accept.

use crate::looked_at::LookedAt;
use crate::timestamped::{self, Finding};
use crate::untested::Orders;
use crate::verdict::{Options, Outcome, Ryow, Verdict};
use crate::{Level, Strategy, implies, pipeline};
use history::{History, Transaction};
use std::borrow::Cow;
use std::fmt;

/// What is asked of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The isolation level.
    pub level: Level,
    /// What the order of transactions is judged by.
    pub by: By,
    /// What a read must see of its own transaction's earlier writes.
    pub ryow: Ryow,
    /// Real-time order holds only between transactions further apart than this.
    pub clock_skew: i64,
    /// Whether each transaction is held to the level it asked for, and to `level` only if it asked for none.
    pub mixed: bool,
    /// The database whose own level is meant, where a profile was asked for.
    pub vendor: Option<Vendor>,
}

/// What the order of transactions is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum By {
    /// What clients saw: any order that explains it will do. Timestamps are a hint.
    #[default]
    Results,
    /// The database's own start and commit timestamps: they must explain every result.
    Timestamps,
}

impl By {
    /// The way it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Results => "results",
            Self::Timestamps => "timestamps",
        }
    }
}

/// A database's own isolation level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor {
    /// The database.
    pub database: &'static str,
    /// Its name for the level.
    pub level: &'static str,
    /// Whether plain reads see a snapshot while locking reads and writes see the newest state, so that each transaction
    /// is judged as logical sub-transactions.
    pub logical: bool,
}

impl Vendor {
    /// What the database's level is judged as: a level of the table, of whole transactions or of their halves.
    pub fn judged_as(&self, level: Level) -> String {
        match self.logical {
            true => format!("{level} of plain reads separately from locking reads and writes"),
            false => level.to_string(),
        }
    }
}

/// The answer to a claim.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict, and what it cost.
    pub outcome: Outcome,
    /// Every violation, where the claim is judged by timestamps.
    pub findings: Option<Vec<Finding>>,
    /// What the database's timestamps refuse first, where results accept the history.
    pub timestamps_refuse: Option<Finding>,
}

impl Claim {
    /// A level by results, with the default policies.
    pub fn new(level: Level) -> Self {
        Self { level, by: By::Results, ryow: Ryow::default(), clock_skew: 0, mixed: false, vendor: None }
    }

    /// Serializable isolation by results: some order of the transactions, one at a time, explains every result.
    pub fn serializable() -> Self {
        Self::new(Level::SERIALIZABLE)
    }

    /// A transaction that asked for a level which does not promise this one, and that level; `find` knows the names of
    /// levels. Where levels are mixed there is none.
    pub fn unpromised<'h>(
        &self,
        history: &'h History,
        find: impl Fn(&str) -> Option<Level>,
    ) -> Option<(Transaction<'h>, &'h str)> {
        if self.mixed {
            return None;
        }
        let plain = |level: Level| Level { session: false, realtime: false, ..level };
        // What is assumed of the database, no transaction asks for.
        let (claimed, _) = self.level.assumed();
        let promises = |asked: &str| {
            self.vendor.is_some_and(|vendor| vendor.level == asked)
                || find(asked).is_some_and(|level| implies(plain(level), plain(claimed)))
        };
        let mut asked = history.transactions().filter_map(|txn| Some((txn, txn.level()?)));
        asked.find(|(_, asked)| !promises(asked))
    }

    /// The same, judged by this.
    pub fn by(self, by: By) -> Self {
        Self { by, ..self }
    }

    /// The same claim about another level.
    pub fn at(self, level: Level) -> Self {
        Self { level, ..self }
    }

    /// The name of what was asked for: the database's own where a profile was asked for, else the level's.
    pub fn level_name(&self) -> String {
        match self.vendor {
            Some(vendor) => format!("{} {}", vendor.database, vendor.level),
            None => self.level.name().to_owned(),
        }
    }

    /// The history that the claim is about: `history` itself, or its logical sub-transactions.
    pub fn subject<'h>(&self, history: &'h History) -> Cow<'h, History> {
        match self.vendor {
            Some(Vendor { logical: true, .. }) => Cow::Owned(crate::split_into_logical(history)),
            _ => Cow::Borrowed(history),
        }
    }

    /// Decides the claim. `subject` is what [`Claim::subject`] gave.
    pub fn check(&self, subject: &History, options: &Options) -> Answer {
        self.check_sharing(subject, options, None)
    }

    /// As [`Claim::check`], for a history of which several levels are asked.
    pub fn check_sharing(&self, subject: &History, options: &Options, shared: Option<&LookedAt>) -> Answer {
        let options = &self.options(options);
        let mut answer = match self.by {
            By::Timestamps => self.by_timestamps(subject, options),
            By::Results => self.by_results(subject, options, shared),
        };
        if matches!(answer.outcome.verdict, Verdict::Accepted(_))
            && let Some(lack) = Orders::of(subject).lack(self.level)
        {
            answer.outcome.verdict = Verdict::Undecided(lack);
        }
        answer
    }

    /// How to look for the answer, with the claim's policies.
    pub fn options(&self, options: &Options) -> Options {
        Options { ryow: self.ryow, clock_skew: self.clock_skew, mixed: self.mixed, ..options.clone() }
    }

    /// The level to replay by timestamps before the search: one that implies the claim. None where the order of the
    /// timestamps is not worth trying.
    pub fn hint(&self, options: &Options) -> Option<Level> {
        let is_plain = self.level.own.is_none() && !self.mixed;
        if !is_plain || !options.passes.timestamps || options.strategy != Strategy::Lazy {
            return None;
        }
        match timestamped::decides(self.level) {
            true => Some(self.level),
            false => timestamped::shards::stronger(self.level),
        }
    }

    fn by_timestamps(&self, subject: &History, options: &Options) -> Answer {
        let (outcome, findings) = timestamped::judge(subject, self.level, options);
        Answer { outcome, findings: Some(findings), timestamps_refuse: None }
    }

    fn by_results(&self, subject: &History, options: &Options, shared: Option<&LookedAt>) -> Answer {
        let hint = self.hint(options).filter(|&level| timestamped::applies(subject, level));
        let hinted = hint.map(|level| (level, timestamped::judge(subject, level, options)));
        let refused = match hinted {
            Some((_, (outcome, _))) if matches!(outcome.verdict, Verdict::Accepted(_)) => {
                return Answer { outcome, findings: None, timestamps_refuse: None };
            }
            Some((level, (_, findings))) => findings.into_iter().next().filter(|_| level == self.level),
            None => None,
        };
        let outcome = match shared {
            Some(shared) => pipeline::check_sharing(subject, self.level, options, shared),
            None => pipeline::check(subject, self.level, options),
        };
        let is_accepted = matches!(outcome.verdict, Verdict::Accepted(_));
        Answer { outcome, findings: None, timestamps_refuse: refused.filter(|_| is_accepted) }
    }
}

/// As it is named in every output: `snapshot-isolation by timestamps`.
impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.level_name())?;
        if self.by == By::Timestamps {
            f.write_str(" by timestamps")?;
        }
        if self.mixed {
            f.write_str(", mixed")?;
        }
        if self.ryow != Ryow::default() {
            write!(f, ", own writes {}", self.ryow.name())?;
        }
        if self.clock_skew != 0 {
            write!(f, ", clock skew {}", self.clock_skew)?;
        }
        Ok(())
    }
}
