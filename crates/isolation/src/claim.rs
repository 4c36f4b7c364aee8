//! What is asked of a history: a level, what the order of transactions is judged by, and the policies.
//!
//! **Invariant.** The verdict is a function of the history and the claim. [`Options`] say how the answer is looked for
//! and when to give up; they can make it undecided and never turn one verdict into the other.

use crate::levels::{Level, implies};
use crate::verdict::{Options, Ryow};
use history::{History, Transaction};
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
    /// The same, as its vendor writes it.
    pub product: &'static str,
    /// Its name for the level.
    pub level: &'static str,
    /// Whether plain reads see a snapshot while locking reads and writes see the newest state, so that each transaction
    /// is judged as logical sub-transactions.
    pub logical: bool,
}

impl Vendor {
    /// The level as its vendor writes it, with the product.
    pub fn title(&self) -> String {
        format!("{}'s {}", self.product, self.level.replace('-', " ").to_uppercase())
    }

    /// What the database's level is judged as: a level of the table, of whole transactions or of their halves.
    pub fn judged_as(&self, level: Level) -> String {
        match self.logical {
            true => format!("{level} of plain reads separately from locking reads and writes"),
            false => level.to_string(),
        }
    }
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

    /// How to look for the answer, with the claim's policies.
    pub fn options(&self, options: &Options) -> Options {
        Options { ryow: self.ryow, clock_skew: self.clock_skew, mixed: self.mixed, ..options.clone() }
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
