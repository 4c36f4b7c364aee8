//! Every vendor's isolation levels: what they are called, how they are asked for, and which level of
//! the checker their documentation promises. Strongest last. Nothing here is matched on: names are data.

/// One isolation level of a vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// The vendor's name, in lower case with dashes.
    pub name: &'static str,
    /// The way it is asked for, in the vendor's language.
    pub ask: &'static str,
    /// The level the vendor documents it to keep, by the checker's name.
    pub promises: &'static str,
    /// The level that its logical sub-transactions keep, where plain reads see a snapshot, and locking reads and writes
    /// the newest state.
    pub logical: Option<&'static str>,
}

const fn row(name: &'static str, ask: &'static str, promises: &'static str) -> Isolation {
    Isolation { name, ask, promises, logical: None }
}

/// SQLite has one level. An immediate transaction is the writer from its start; a deferred one takes its
/// snapshot at its first statement and becomes the writer at its first write, if nobody wrote since.
pub(crate) const SQLITE: [Isolation; 2] = [
    row("immediate", "BEGIN IMMEDIATE", "serializable"),
    row("serializable", "BEGIN DEFERRED", "serializable"),
];

/// DuckDB has one level, and documents it as snapshot isolation.
pub(crate) const DUCKDB: [Isolation; 1] =
    [row("snapshot-isolation", "BEGIN TRANSACTION", "snapshot-isolation")];

/// PostgreSQL runs READ UNCOMMITTED as READ COMMITTED; its REPEATABLE READ is snapshot isolation.
pub(crate) const POSTGRES: [Isolation; 3] = [
    row("read-committed", "BEGIN ISOLATION LEVEL READ COMMITTED", "read-committed"),
    row("repeatable-read", "BEGIN ISOLATION LEVEL REPEATABLE READ", "snapshot-isolation"),
    row("serializable", "BEGIN ISOLATION LEVEL SERIALIZABLE", "serializable"),
];

/// MariaDB and MySQL: at REPEATABLE READ plain reads see the transaction's snapshot, while writes and
/// locking reads see the newest committed state, so that no level of the literature above
/// READ COMMITTED is kept; taken apart into those halves, transactions are serializable. With `innodb_snapshot_isolation` it is snapshot isolation.
pub(crate) const MARIADB: [Isolation; 4] = [
    row("read-uncommitted", "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "read-uncommitted"),
    row("read-committed", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "read-committed"),
    Isolation {
        logical: Some("strong-session-serializable"),
        ..row("repeatable-read", "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "read-committed")
    },
    row("serializable", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "serializable"),
];

/// MariaDB with `innodb_snapshot_isolation=ON`.
pub(crate) const MARIADB_SNAPSHOT: [Isolation; 4] =
    [MARIADB[0], MARIADB[1], row("repeatable-read", MARIADB[2].ask, "snapshot-isolation"), MARIADB[3]];

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
    /// Other names that it takes, and the level that it runs for each.
    pub also: &'static [(&'static str, &'static str)],
}

/// Every profile.
pub const PROFILES: [Profile; 5] = [
    Profile { name: "postgres", levels: &POSTGRES, also: &[("read-uncommitted", "read-committed")] },
    Profile { name: "mariadb", levels: &MARIADB, also: &[] },
    Profile { name: "mysql", levels: &MARIADB, also: &[] },
    Profile {
        name: "sqlite",
        levels: &SQLITE,
        also: &[("deferred", "serializable"), ("exclusive", "immediate")],
    },
    Profile { name: "duckdb", levels: &DUCKDB, also: &[] },
];

impl Profile {
    /// The profile of a vendor.
    pub fn of(vendor: &str) -> Option<Self> {
        PROFILES.into_iter().find(|profile| profile.name == vendor.to_ascii_lowercase())
    }

    /// What a level is promised to be, by the vendor's name for it.
    pub fn level(&self, name: &str) -> Option<&'static Isolation> {
        let also = self.also.iter().find(|(other, _)| *other == name).map(|(_, level)| *level);
        self.levels.iter().find(|level| level.name == also.unwrap_or(name))
    }
}
