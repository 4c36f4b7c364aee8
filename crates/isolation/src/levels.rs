//! The levels table: what each isolation level forbids, where the definition comes from, what follows.
//!
//! **What.** [`TABLE`] is the one place where levels have names. A row is data: a [`Rule`] on
//! explanations, and whether session order and real-time order count beside it. Everything else in the
//! project speaks of [`Level`], never of names.
//!
//! **How a name is found.** Case, `-`, `_`, spaces and a leading `:` (as Elle's keywords have it) do not
//! matter. A name that is not in the table is refused with the nearest ones, or with the reason why that level
//! is not decided ([`names`]).
//!
//! **One rule, several orders.** The `strong-session-` and `strong-` rows are the same rules with session
//! order, or session and real-time order, among the dependencies. Two names that come to the same are one
//! level: `strong-session-consistent-view` is `parallel-snapshot-isolation` (Cerone and Gotsman, PODC
//! 2016), `forward-consistent-view` is consistent view with real-time order.
//!
//! **Sources.** Adya, *Weak Consistency* (thesis, MIT 1999), chapters 3 and 4; Biswas and Enea, *On the
//! Complexity of Checking Transactional Consistency* (OOPSLA 2019), the axioms; Cerone and Gotsman,
//! *Analysing Snapshot Isolation* (PODC 2016); Daudjee and Salem (ICDE 2004, VLDB 2006) for the session
//! and strong variants.

pub(crate) mod names;

use crate::module::Module;
use names::{UnknownLevel, normal};
use std::fmt;
use std::sync::LazyLock;

/// An isolation level: a rule on explanations, and the orders that count beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Level {
    /// What the dependency graph must not contain.
    pub rule: Rule,
    /// Whether session order counts.
    pub session: bool,
    /// Whether the clients' real-time order counts.
    pub realtime: bool,
    /// Which of the user's own levels it is, if it is none of the table.
    pub own: Option<Own>,
}

/// A level of the user's own; two of the same name are the same.
#[derive(Clone, Copy, Debug)]
pub struct Own {
    definition: &'static Custom,
    /// Whether what is likely is taken for certain.
    hinted: bool,
}

/// Its row and its modules.
#[derive(Debug)]
pub(crate) struct Custom {
    pub(crate) row: LevelRow,
    pub(crate) modules: Vec<Box<dyn Module>>,
}

impl Own {
    pub(crate) fn new(definition: &'static Custom) -> Self {
        Self { definition, hinted: false }
    }

    fn key(&self) -> (&'static str, bool) {
        (self.definition.row.name, self.hinted)
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Own {}

impl std::hash::Hash for Own {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl PartialOrd for Own {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Own {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// The rule of a level, without session and real-time order. D is `ww ∪ wr` and the orders that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// No cycle of `ww`; reads may see any value that was written.
    ReadUncommitted,
    /// No cycle of D.
    ReadCommitted,
    /// And no cycle on one key with one item `rw` and otherwise `ww`.
    CursorStability,
    /// And no operation misses what an earlier one of its transaction already depends on.
    MonotonicView,
    /// No cycle with at most one `rw`.
    ConsistentView,
    /// No cycle without a predicate `rw`.
    RepeatableRead,
    /// Begins and commits interleave; reads see the snapshot at begin; first committer wins.
    SnapshotIsolation,
    /// No cycle with at most one read-only transaction.
    UpdateSerializable,
    /// A serial order explains everything.
    Serializable,
    /// Commit order: what an earlier read of the transaction saw must be seen.
    AxiomaticReadCommitted,
    /// Commit order: what directly precedes by session order or reading must be seen.
    ReadAtomic,
    /// Commit order: what causally precedes must be seen.
    Causal,
    /// Commit order: a prefix of it is seen.
    Prefix,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct LevelRow {
    /// The name that output uses.
    pub name: &'static str,
    /// Other names that mean the same.
    pub aliases: &'static [&'static str],
    /// What it means.
    pub level: Level,
    /// What it forbids, in words.
    pub forbids: &'static str,
    /// The anomaly that breaks it, by the name people search for.
    pub anomaly: &'static str,
    /// Where the definition comes from.
    pub source: &'static str,
}

const PLAIN: (bool, bool) = (false, false);
const SESSION: (bool, bool) = (true, false);
const REALTIME: (bool, bool) = (false, true);
const BOTH: (bool, bool) = (true, true);

const fn level(rule: Rule, (session, realtime): (bool, bool)) -> Level {
    Level::new(rule, session, realtime)
}

/// Every level, the plain ones from weak to strong, then the derived ones, then the axiomatic family.
pub const TABLE: &[LevelRow] = &[
    LevelRow {
        name: "read-uncommitted",
        aliases: &["PL-1", "RU", "uncommitted-read"],
        level: level(Rule::ReadUncommitted, PLAIN),
        forbids: "cycles of ww, and values that no transaction wrote",
        anomaly: "G0",
        source: "Adya 1999, chapter 3",
    },
    LevelRow {
        name: "read-committed",
        aliases: &["PL-2", "RC"],
        level: level(Rule::ReadCommitted, PLAIN),
        forbids: "cycles of ww and wr, and aborted or intermediate reads",
        anomaly: "G1c",
        source: "Adya 1999, chapter 3",
    },
    LevelRow {
        name: "cursor-stability",
        aliases: &["PL-CS", "CS"],
        level: level(Rule::CursorStability, PLAIN),
        forbids: "what read-committed forbids, and cycles on one key with one item rw and otherwise ww",
        anomaly: "G-cursor",
        source: "Adya 1999, chapter 4",
    },
    LevelRow {
        name: "monotonic-view",
        aliases: &["PL-2L"],
        level: level(Rule::MonotonicView, PLAIN),
        forbids: "what read-committed forbids, and operations that miss an effect of S, or of what S depends on, after an \
                  earlier operation of their transaction depended on S",
        anomaly: "G-monotonic",
        source: "Adya 1999, chapter 4",
    },
    LevelRow {
        name: "consistent-view",
        aliases: &["PL-2+", "basic-consistency"],
        level: level(Rule::ConsistentView, PLAIN),
        forbids: "cycles of ww, wr and at most one rw",
        anomaly: "G-single",
        source: "Adya 1999, chapter 4",
    },
    LevelRow {
        name: "forward-consistent-view",
        aliases: &["PL-FCV", "FCV"],
        level: level(Rule::ConsistentView, REALTIME),
        forbids: "cycles of ww, wr, real-time order and at most one rw",
        anomaly: "G-SIb",
        source: "Adya 1999, chapter 4",
    },
    LevelRow {
        name: "repeatable-read",
        aliases: &["PL-2.99", "RR"],
        level: level(Rule::RepeatableRead, PLAIN),
        forbids: "cycles without a predicate rw",
        anomaly: "G2-item",
        source: "Adya 1999, chapter 3",
    },
    LevelRow {
        name: "snapshot-isolation",
        aliases: &["PL-SI", "SI", "snapshot", "generalized-snapshot-isolation", "GSI"],
        level: level(Rule::SnapshotIsolation, PLAIN),
        forbids: "cycles in which no two rw are adjacent",
        anomaly: "G-nonadjacent",
        source: "Adya 1999, chapter 4; Cerone and Gotsman 2016",
    },
    LevelRow {
        name: "update-serializable",
        aliases: &["PL-3U"],
        level: level(Rule::UpdateSerializable, PLAIN),
        forbids: "cycles with at most one read-only transaction",
        anomaly: "G-update",
        source: "Adya 1999, chapter 4",
    },
    LevelRow {
        name: "serializable",
        aliases: &[
            "PL-3",
            "SER",
            "conflict-serializable",
            "view-serializable",
            "1SR",
            "one-copy-serializable",
            "serializability",
            "SSI",
            "serializable-snapshot-isolation",
        ],
        level: level(Rule::Serializable, PLAIN),
        forbids: "dependency cycles",
        anomaly: "G2",
        source: "Adya 1999, chapter 3",
    },
    LevelRow {
        name: "strong-session-read-uncommitted",
        aliases: &["strong-session-PL-1", "strong-session-RU"],
        level: level(Rule::ReadUncommitted, SESSION),
        forbids: "cycles of ww and session order, and values that no transaction wrote",
        anomaly: "G0-process",
        source: "read-uncommitted with session order",
    },
    LevelRow {
        name: "strong-session-read-committed",
        aliases: &["strong-session-PL-2", "strong-session-RC"],
        level: level(Rule::ReadCommitted, SESSION),
        forbids: "cycles of ww, wr and session order",
        anomaly: "G1c-process",
        source: "read-committed with session order",
    },
    LevelRow {
        name: "parallel-snapshot-isolation",
        aliases: &["PSI", "strong-session-consistent-view", "strong-session-PL-2+"],
        level: level(Rule::ConsistentView, SESSION),
        forbids: "cycles of ww, wr, session order and at most one rw",
        anomaly: "G-single-process",
        source: "Cerone and Gotsman 2016; Sovran et al. 2011",
    },
    LevelRow {
        name: "strong-session-snapshot-isolation",
        aliases: &[
            "strong-session-PL-SI",
            "strong-session-SI",
            "session-snapshot-isolation",
            "prefix-consistent-snapshot-isolation",
            "PCSI",
        ],
        level: level(Rule::SnapshotIsolation, SESSION),
        forbids: "cycles of ww, wr, session order and rw in which no two rw are adjacent",
        anomaly: "G-nonadjacent-process",
        source: "Daudjee and Salem 2006",
    },
    LevelRow {
        name: "strong-session-serializable",
        aliases: &["strong-session-PL-3", "strong-session-SER", "session-serializable", "strong-session-1SR"],
        level: level(Rule::Serializable, SESSION),
        forbids: "cycles of ww, wr, rw and session order",
        anomaly: "G2-process",
        source: "Daudjee and Salem 2004",
    },
    LevelRow {
        name: "strong-read-uncommitted",
        aliases: &["strong-PL-1", "strong-RU"],
        level: level(Rule::ReadUncommitted, BOTH),
        forbids: "cycles of ww, session and real-time order, and values that no transaction wrote",
        anomaly: "G0-realtime",
        source: "read-uncommitted with session and real-time order",
    },
    LevelRow {
        name: "strong-read-committed",
        aliases: &["strong-PL-2", "strong-RC"],
        level: level(Rule::ReadCommitted, BOTH),
        forbids: "cycles of ww, wr, session and real-time order",
        anomaly: "G1c-realtime",
        source: "read-committed with session and real-time order",
    },
    LevelRow {
        name: "strong-snapshot-isolation",
        aliases: &["strong-PL-SI", "strong-SI", "strict-snapshot-isolation"],
        level: level(Rule::SnapshotIsolation, BOTH),
        forbids: "cycles of ww, wr, session and real-time order and rw in which no two rw are adjacent",
        anomaly: "G-nonadjacent-realtime",
        source: "Daudjee and Salem 2006",
    },
    LevelRow {
        name: "strict-serializable",
        aliases: &[
            "PL-SS",
            "SSER",
            "strict-SER",
            "strong-serializable",
            "strong-SER",
            "strong-PL-3",
            "strict-serializability",
            "strong-1SR",
            "external-consistency",
        ],
        level: level(Rule::Serializable, BOTH),
        forbids: "cycles of ww, wr, rw, session and real-time order",
        anomaly: "G2-realtime",
        source: "Adya 1999, chapter 4; Papadimitriou 1979",
    },
    LevelRow {
        name: "monotonic-atomic-view",
        aliases: &["MAV"],
        level: level(Rule::AxiomaticReadCommitted, PLAIN),
        forbids: "reads of x that miss a writer of x that an earlier read of the same transaction had read from, in every \
                  commit order that contains wr",
        anomaly: "OTV",
        source: "Bailis et al. 2014, Highly Available Transactions",
    },
    LevelRow {
        name: "axiomatic-read-committed",
        aliases: &["axiomatic-RC", "committed-read"],
        level: level(Rule::AxiomaticReadCommitted, SESSION),
        forbids: "reads of x that miss a writer of x that an earlier read of the same transaction had read from, in every \
                  commit order that contains session order and wr",
        anomaly: "non-monotonic read",
        source: "Biswas and Enea 2019, axiom Read Committed; what AWDIT, Plume and dbcop call read committed",
    },
    LevelRow {
        name: "read-atomic",
        aliases: &["RA", "atomic-read"],
        level: level(Rule::ReadAtomic, SESSION),
        forbids: "reads of x that miss a writer of x that precedes the reader in its session or that the reader reads from, \
                  in every commit order that contains session order and wr",
        anomaly: "fractured read",
        source: "Biswas and Enea 2019, axiom Read Atomic",
    },
    LevelRow {
        name: "causal",
        aliases: &[
            "CC",
            "TCC",
            "causal-consistency",
            "transactional-causal-consistency",
            "causal-cerone",
            "transactional-causal",
        ],
        level: level(Rule::Causal, SESSION),
        forbids: "reads of x that miss a writer of x that precedes the reader by session order and wr, in every commit \
                  order that contains both",
        anomaly: "causality violation",
        source: "Biswas and Enea 2019, axiom Causal",
    },
    LevelRow {
        name: "prefix",
        aliases: &["PC", "prefix-consistency", "consistent-prefix"],
        level: level(Rule::Prefix, SESSION),
        forbids: "reads of x that miss a writer of x that commits no later than a transaction that precedes the reader by \
                  session order or wr, in every commit order that contains both",
        anomaly: "long fork",
        source: "Biswas and Enea 2019, axiom Prefix",
    },
];

/// "Whatever satisfies the stronger level satisfies the weaker one."
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Implication {
    /// The level that implies.
    pub stronger: Level,
    /// The level that is implied.
    pub weaker: Level,
    /// Whether it holds only for histories without scans, iterators, queries and predicate writes.
    pub without_predicates: bool,
}

/// The direct implications by name: stronger, then weaker ones. What follows by transitivity is left out.
const IMPLIES: &[(&str, &[&str])] = &[
    ("strict-serializable", &["strong-session-serializable", "strong-snapshot-isolation"]),
    ("strong-session-serializable", &["serializable", "strong-session-snapshot-isolation"]),
    ("serializable", &["snapshot-isolation", "repeatable-read", "update-serializable"]),
    ("update-serializable", &["consistent-view"]),
    ("snapshot-isolation", &["consistent-view"]),
    ("forward-consistent-view", &["consistent-view"]),
    ("consistent-view", &["cursor-stability", "monotonic-view"]),
    ("repeatable-read", &["cursor-stability"]),
    ("cursor-stability", &["read-committed"]),
    ("monotonic-view", &["monotonic-atomic-view"]),
    ("monotonic-atomic-view", &["read-committed"]),
    ("read-committed", &["read-uncommitted"]),
    (
        "strong-snapshot-isolation",
        &["strong-session-snapshot-isolation", "strong-read-committed", "forward-consistent-view"],
    ),
    ("strong-session-snapshot-isolation", &["snapshot-isolation", "parallel-snapshot-isolation", "prefix"]),
    ("parallel-snapshot-isolation", &["causal", "consistent-view", "strong-session-read-committed"]),
    ("strong-read-committed", &["strong-session-read-committed", "strong-read-uncommitted"]),
    ("strong-session-read-committed", &["read-committed", "strong-session-read-uncommitted"]),
    ("strong-read-uncommitted", &["strong-session-read-uncommitted"]),
    ("strong-session-read-uncommitted", &["read-uncommitted"]),
    ("prefix", &["causal"]),
    ("causal", &["read-atomic"]),
    ("read-atomic", &["axiomatic-read-committed"]),
    ("axiomatic-read-committed", &["monotonic-atomic-view"]),
];

/// Those that hold only where a history has no predicates.
const IMPLIES_WITHOUT_PREDICATES: &[(&str, &[&str])] = &[("repeatable-read", &["consistent-view"])];

/// All direct implications between levels, as data; see [`Implication`].
pub fn implications() -> &'static [Implication] {
    static ALL: LazyLock<Vec<Implication>> = LazyLock::new(|| {
        let always = IMPLIES.iter().map(|row| (row, false));
        let sometimes = IMPLIES_WITHOUT_PREDICATES.iter().map(|row| (row, true));
        let mut all = Vec::new();
        for ((stronger, weaker), without_predicates) in always.chain(sometimes) {
            let stronger = named(stronger);
            all.extend(weaker.iter().map(|name| Implication {
                stronger,
                weaker: named(name),
                without_predicates,
            }));
        }
        all
    });
    &ALL
}

/// Whether every history that keeps one level keeps the other.
pub fn implies(stronger: Level, weaker: Level) -> bool {
    let mut known = vec![stronger];
    let mut next = 0;
    while let Some(&level) = known.get(next) {
        next += 1;
        let follow = implications().iter().filter(|one| one.stronger == level && !one.without_predicates);
        for one in follow {
            if !known.contains(&one.weaker) {
                known.push(one.weaker);
            }
        }
    }
    known.contains(&weaker)
}

fn named(name: &str) -> Level {
    Level::parse(name).expect("the lists of implications use names of the table")
}

impl Level {
    /// Plain serializability.
    pub const SERIALIZABLE: Self = level(Rule::Serializable, PLAIN);
    /// Plain snapshot isolation.
    pub const SNAPSHOT_ISOLATION: Self = level(Rule::SnapshotIsolation, PLAIN);
    /// Serializability with session and real-time order.
    pub const STRICT_SERIALIZABLE: Self = level(Rule::Serializable, BOTH);

    /// All levels, in the order of the table.
    pub fn all() -> impl DoubleEndedIterator<Item = Level> + ExactSizeIterator + Clone {
        TABLE.iter().map(|row| row.level)
    }

    /// The level of a name or alias.
    pub fn parse(name: &str) -> Result<Self, UnknownLevel> {
        names::find(name).map(|row| row.level).ok_or_else(|| UnknownLevel::new(name))
    }

    /// A rule with the orders that count beside it.
    pub const fn new(rule: Rule, session: bool, realtime: bool) -> Self {
        Self { rule, session, realtime, own: None }
    }

    /// What a level of the user's own adds to every explanation.
    pub fn modules(self) -> &'static [Box<dyn Module>] {
        self.own.map_or(&[], |own| &own.definition.modules)
    }

    /// The same, taking what its modules call likely for certain; none if that is what it is, or nothing is.
    pub fn hinted(self) -> Option<Self> {
        let own = self.own.filter(|own| !own.hinted && !own.definition.modules.is_empty())?;
        Some(Self { own: Some(Own { hinted: true, ..own }), ..self })
    }

    /// Whether what is likely is taken for certain.
    pub fn is_hinted(self) -> bool {
        self.own.is_some_and(|own| own.hinted)
    }

    /// Its row, if it has one of its own or the table has one for this rule with these orders.
    pub fn row(self) -> Option<&'static LevelRow> {
        if let Some(own) = self.own {
            return Some(&own.definition.row);
        }
        TABLE.iter().find(|row| row.level == self)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().map_or("unnamed", |row| row.name)
    }

    /// The definition in one sentence, with its source.
    pub fn definition(self) -> String {
        match self.row() {
            Some(row) => format!("{} forbids {} ({})", row.name, row.forbids, row.source),
            None => format!("{self:?}"),
        }
    }

    /// What it promises, in plain words.
    pub fn promise(self) -> String {
        let promise = match self.rule {
            Rule::ReadUncommitted => "two transactions never interleave their writes",
            Rule::ReadCommitted => {
                "no transaction reads data of an aborted one, or values that their writer overwrote before committing"
            }
            Rule::CursorStability => {
                "no transaction reads data of an aborted one, and no update of a key that was read is lost"
            }
            Rule::MonotonicView => {
                "once a transaction has seen a write of another one, it sees all its writes from then on"
            }
            Rule::ConsistentView => {
                "every transaction sees a consistent state: all of another transaction or nothing of it, and never one without those it depends on"
            }
            Rule::RepeatableRead => {
                "transactions behave as if run one at a time, except that queries may see rows appear or disappear"
            }
            Rule::SnapshotIsolation => {
                "every transaction reads one snapshot, and two overlapping transactions never both write the same key"
            }
            Rule::UpdateSerializable => {
                "transactions that write behave as if run one at a time, and each read-only transaction sees a state in between"
            }
            Rule::Serializable => "transactions behave as if run one at a time",
            Rule::AxiomaticReadCommitted => {
                "a read never misses a write of a transaction that an earlier read of its transaction saw"
            }
            Rule::ReadAtomic => "a transaction sees all writes of another one, or none",
            Rule::Causal => "a transaction that sees another one also sees everything that it depends on",
            Rule::Prefix => "transactions commit in one order, and every transaction sees a prefix of it",
        };
        let orders = match (self.session, self.realtime) {
            (false, false) => "",
            (true, false) => "; transactions of a session take effect in their order",
            (false, true) => "; a transaction sees everything that committed before it began",
            (true, true) => {
                "; a transaction sees everything that committed before it began, and transactions of a session take effect in their order"
            }
        };
        format!("{promise}{orders}")
    }

    /// What it allows that serializability in real time does not, in words.
    pub fn allows(self) -> &'static str {
        match (self.rule, self.session, self.realtime) {
            (Rule::ReadUncommitted, ..) => "dirty reads, lost updates, phantoms and write skew are possible",
            (Rule::ReadCommitted | Rule::AxiomaticReadCommitted, ..) => {
                "non-repeatable reads, phantoms, lost updates and write skew are possible"
            }
            (Rule::CursorStability, ..) => "non-repeatable reads, phantoms and write skew are possible",
            (Rule::MonotonicView, ..) => "non-repeatable reads, lost updates and write skew are possible",
            (Rule::ReadAtomic, ..) => "lost updates, write skew and causality violations are possible",
            (Rule::Causal | Rule::Prefix, ..) => "lost updates and write skew are possible",
            (Rule::ConsistentView, ..) => "long forks and write skew are possible",
            (Rule::RepeatableRead, ..) => "phantoms are possible",
            (Rule::SnapshotIsolation, ..) => "write skew is possible",
            (Rule::UpdateSerializable, ..) => {
                "transactions that only read may see updates in different orders"
            }
            (Rule::Serializable, false, false) => "only stale reads are possible",
            (Rule::Serializable, _, false) => "only stale reads of what other sessions wrote are possible",
            (Rule::Serializable, _, true) => "no anomaly is possible",
        }
    }

    /// Whether it belongs to the family that is defined by axioms on a commit order.
    pub fn is_axiomatic(self) -> bool {
        matches!(self.rule, Rule::AxiomaticReadCommitted | Rule::ReadAtomic | Rule::Causal | Rule::Prefix)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, UnknownLevel> {
        Self::parse(name)
    }
}

impl LevelRow {
    /// Its name and its aliases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        std::iter::once(self.name).chain(self.aliases.iter().copied())
    }

    /// Whether it is called that, however people write it.
    pub fn is_called(&self, name: &str) -> bool {
        let wanted = normal(name);
        self.names().any(|known| normal(known) == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn implications_are_acyclic_and_reach_every_level() {
        let all = implications();
        let mut levels: HashSet<Level> = HashSet::new();
        for implication in all {
            assert_ne!(implication.stronger, implication.weaker);
            levels.insert(implication.stronger);
            levels.insert(implication.weaker);
        }
        assert_eq!(levels.len(), TABLE.len());
        // Remove levels that nothing implies until none is left.
        let mut left: Vec<Level> = Level::all().collect();
        while !left.is_empty() {
            let before = left.len();
            let implied: HashSet<Level> = all
                .iter()
                .filter(|implication| left.contains(&implication.stronger))
                .map(|implication| implication.weaker)
                .collect();
            left.retain(|level| implied.contains(level));
            assert!(left.len() < before, "a cycle among {left:?}");
        }
    }

    #[test]
    fn definitions_name_the_pattern_and_the_source() {
        let definition = Level::SNAPSHOT_ISOLATION.definition();
        assert!(definition.contains("no two rw are adjacent"), "{definition}");
        assert!(definition.contains("Adya 1999"), "{definition}");
    }
}
