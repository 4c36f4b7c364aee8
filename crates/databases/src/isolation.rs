//! Every vendor's isolation levels: what they are called, how they are asked for, which level of the checker their
//! documentation promises, what statements look at, and which anomalies occur. Strongest last. Nothing here is
//! matched on: names are data.

use crate::grammar::Sight;

/// One isolation level of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The vendor's name, in lower case with dashes.
    pub name: &'static str,
    /// Other names for which the vendor runs this level.
    pub also: &'static [&'static str],
    /// The way it is asked for, in the vendor's language.
    pub ask: &'static str,
    /// The level the vendor documents it to keep, by the checker's name.
    pub promises: &'static str,
    /// The level that its logical sub-transactions keep, where plain reads see a snapshot, and locking reads and writes
    /// the newest state.
    pub logical: Option<&'static str>,
    /// What statements look at; `None` where they may look at what is not committed.
    pub sight: Option<Sight>,
    /// The schedules of the matrix whose anomaly occurs, as seen on the servers and held against their documentation.
    pub shows: &'static [&'static str],
}

/// A level that shows no anomaly, with one snapshot for each transaction.
const fn row(name: &'static str, ask: &'static str, promises: &'static str) -> Isolation {
    Isolation { name, also: &[], ask, promises, logical: None, sight: Some(Sight::SNAPSHOT), shows: &[] }
}

/// What snapshot isolation shows.
const WRITE_SKEW: &[&str] = &["G2-item", "G2", "read-only"];
/// What PostgreSQL, MariaDB and MySQL show at READ COMMITTED.
const READ_COMMITTED: &[&str] = &[
    "PMP",
    "PMP-write",
    "P4",
    "G-single",
    "G-single-pred",
    "G-single-write",
    "fuzzy-read",
    "G2-item",
    "G2",
    "read-only",
];

impl Isolation {
    /// Whether the vendor calls it so, in any case and spelling: `READ COMMITTED`, `Read_Committed`, `read-committed`.
    pub fn is_called(&self, name: &str) -> bool {
        let wanted = plain(name);
        let bare = ["transactionisolationlevel", "isolationlevel", "transaction", "begin"]
            .into_iter()
            .find_map(|words| wanted.strip_prefix(words));
        let names = std::iter::once(&self.name).chain(self.also);
        names.map(|known| plain(known)).any(|known| known == wanted || Some(known.as_str()) == bare)
    }

    /// Whether the anomaly of a schedule is known to occur.
    pub(crate) fn is_known_to_show(&self, schedule: &str) -> bool {
        self.shows.contains(&schedule)
    }

    /// The name as the vendor's documentation writes it.
    pub fn title(&self) -> String {
        self.name.replace('-', " ").to_uppercase()
    }
}

/// A name without what people write differently.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// SQLite has one level. An immediate transaction is the writer from its start; a deferred one takes its
/// snapshot at its first statement and becomes the writer at its first write, if nobody wrote since.
pub(crate) const SQLITE: [Isolation; 2] = [
    Isolation { also: &["exclusive"], ..row("immediate", "BEGIN IMMEDIATE", "serializable") },
    Isolation { also: &["deferred"], ..row("serializable", "BEGIN DEFERRED", "serializable") },
];

/// DuckDB has one level, and documents it as snapshot isolation.
pub(crate) const DUCKDB: [Isolation; 1] = [Isolation {
    also: &["snapshot"],
    shows: WRITE_SKEW,
    ..row("snapshot-isolation", "BEGIN TRANSACTION", "snapshot-isolation")
}];

/// PostgreSQL runs READ UNCOMMITTED as READ COMMITTED; its REPEATABLE READ is snapshot isolation.
pub(crate) const POSTGRES: [Isolation; 3] = [
    Isolation {
        also: &["read-uncommitted"],
        sight: Some(Sight::NEWEST),
        shows: READ_COMMITTED,
        ..row("read-committed", "BEGIN ISOLATION LEVEL READ COMMITTED", "read-committed")
    },
    Isolation {
        shows: WRITE_SKEW,
        ..row("repeatable-read", "BEGIN ISOLATION LEVEL REPEATABLE READ", "snapshot-isolation")
    },
    row("serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE", "serializable"),
];

/// MariaDB and MySQL: at REPEATABLE READ plain reads see the transaction's snapshot, while writes and
/// locking reads see the newest committed state, so that no level of the literature above
/// READ COMMITTED is kept; taken apart into those halves, transactions are serializable. With `innodb_snapshot_isolation` it is snapshot isolation.
pub(crate) const MARIADB: [Isolation; 4] = [
    Isolation {
        sight: None,
        shows: &[
            "G1a",
            "G1b",
            "G1c",
            "OTV",
            "PMP",
            "P4",
            "G-single",
            "G-single-pred",
            "G-single-write",
            "fuzzy-read",
            "G2-item",
            "G2",
            "read-only",
        ],
        ..row(
            "read-uncommitted",
            "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
            "read-uncommitted",
        )
    },
    Isolation {
        sight: Some(Sight::NEWEST),
        shows: READ_COMMITTED,
        ..row("read-committed", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "read-committed")
    },
    Isolation {
        logical: Some("strong-session-serializable"),
        sight: Some(Sight::SPLIT),
        shows: &["PMP-write", "P4", "G-single-write", "fuzzy-read", "G2-item", "G2", "read-only"],
        ..row("repeatable-read", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "read-committed")
    },
    Isolation {
        sight: Some(Sight::NEWEST),
        ..row("serializable", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "serializable")
    },
];

/// MariaDB with `innodb_snapshot_isolation=ON`.
pub(crate) const MARIADB_SNAPSHOT: [Isolation; 4] = [
    MARIADB[0],
    MARIADB[1],
    Isolation { shows: WRITE_SKEW, ..row("repeatable-read", MARIADB[2].ask, "snapshot-isolation") },
    MARIADB[3],
];

/// fjall's optimistic transactions are documented as serializable.
pub(crate) const FJALL: [Isolation; 1] = [row("serializable", "write_tx", "serializable")];

/// redb has one writer at a time; readers see the last commit before they began.
pub(crate) const REDB: [Isolation; 1] = [row("serializable", "begin_write", "serializable")];

/// What a vendor's names of levels mean, for histories whose database is not at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The vendor.
    pub name: &'static str,
    /// Its levels.
    pub levels: &'static [Isolation],
    /// How its name is written.
    pub title: &'static str,
}

/// Every profile.
pub const PROFILES: [Profile; 5] = [
    Profile { name: "postgres", title: "PostgreSQL", levels: &POSTGRES },
    Profile { name: "mariadb", title: "MariaDB", levels: &MARIADB },
    Profile { name: "mysql", title: "MySQL", levels: &MARIADB },
    Profile { name: "sqlite", title: "SQLite", levels: &SQLITE },
    Profile { name: "duckdb", title: "DuckDB", levels: &DUCKDB },
];

impl Profile {
    /// The profile of a vendor.
    pub fn of(vendor: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name == vendor.to_ascii_lowercase())
    }

    /// What a level is promised to be, by the vendor's name for it.
    pub fn level(&self, name: &str) -> Option<&'static Isolation> {
        self.levels.iter().find(|level| level.is_called(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::SCHEDULES;

    #[test]
    fn every_anomaly_of_a_level_is_a_schedule_and_stands_once() {
        for level in PROFILES.iter().flat_map(|profile| profile.levels).chain(&MARIADB_SNAPSHOT) {
            let mut names = level.shows.to_vec();
            assert!(names.iter().all(|name| SCHEDULES.iter().any(|schedule| schedule.name == *name)));
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), level.shows.len(), "{}", level.name);
        }
    }

    #[test]
    fn names_are_found_in_every_spelling() {
        for profile in PROFILES {
            for level in profile.levels {
                for name in std::iter::once(&level.name).chain(level.also) {
                    for written in [
                        (*name).to_owned(),
                        name.replace('-', " ").to_uppercase(),
                        name.replace('-', "_"),
                        format!("TRANSACTION_{}", name.replace('-', "_").to_uppercase()),
                        format!("isolation level {}", name.replace('-', " ")),
                    ] {
                        let called: Vec<&str> = profile
                            .levels
                            .iter()
                            .filter(|it| it.is_called(&written))
                            .map(|it| it.name)
                            .collect();
                        assert_eq!(called, [level.name], "{} {written}", profile.name);
                    }
                }
            }
        }
        let postgres = Profile::of("postgres").expect("a profile");
        assert_eq!(postgres.level("Read Uncommitted").map(|level| level.name), Some("read-committed"));
        assert_eq!(postgres.level("READ"), None);
    }
}
