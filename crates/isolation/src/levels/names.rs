//! How people name levels: spellings, names that mean several things, and names that are not decided.
//!
//! **Spelling.** `REPEATABLE READ`, `Read_Committed`, `:strict-serializable`, `transaction isolation level serializable`
//! and `serialisable` are found as well as the names of the table.
//!
//! **What is refused.** Every name of Elle's lattice and of the common literature is either in the table or in
//! [`UNDECIDED`], with the reason.

use super::{LevelRow, TABLE};
use std::fmt;

/// A level that people ask for and that is not decided here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UndecidedLevel {
    /// Its name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Why it is not decided, and what to check instead.
    pub why: &'static str,
}

const SESSION_GUARANTEE: &str =
    "it is a guarantee about single operations of one session; causal is decided, and implies it";

/// Levels that are known and not decided.
pub const UNDECIDED: &[UndecidedLevel] = &[
    UndecidedLevel {
        name: "linearizable",
        aliases: &["linearizability", "atomic-consistency"],
        why: "it is about single operations on single objects: record each operation as a transaction and check \
              strict-serializable, which is the same there",
    },
    UndecidedLevel {
        name: "sequential",
        aliases: &["sequential-consistency", "sequentially-consistent"],
        why: "it is about single operations: record each operation as a transaction and check \
              strong-session-serializable, which is the same there",
    },
    UndecidedLevel {
        name: "PRAM",
        aliases: &["pipelined-RAM", "FIFO-consistency"],
        why: "it is about single operations, which every session may see in a different order; causal is decided, and implies it",
    },
    UndecidedLevel { name: "monotonic-reads", aliases: &["MR"], why: SESSION_GUARANTEE },
    UndecidedLevel { name: "monotonic-writes", aliases: &["MW"], why: SESSION_GUARANTEE },
    UndecidedLevel {
        name: "read-your-writes",
        aliases: &["RYW", "read-my-writes", "read-your-own-writes"],
        why: SESSION_GUARANTEE,
    },
    UndecidedLevel {
        name: "writes-follow-reads",
        aliases: &["WFR", "session-causality"],
        why: SESSION_GUARANTEE,
    },
    UndecidedLevel {
        name: "monotonic-snapshot-read",
        aliases: &["PL-MSR", "MSR", "monotonic-snapshot-reads"],
        why: "Adya defines it by the moment at which the database began each read, which histories do not record; \
              snapshot-isolation implies it, and it implies read-committed",
    },
    UndecidedLevel {
        name: "update-atomic",
        aliases: &["UA", "update-atomicity", "ROLA"],
        why: "it is read-atomic and also lets only one of two transactions that do not see each other write a key, which \
              no level here says; parallel-snapshot-isolation implies it, and it implies monotonic-atomic-view",
    },
    UndecidedLevel {
        name: "eventual-consistency",
        aliases: &["eventual", "eventually-consistent", "strong-eventual-consistency"],
        why: "every finite history satisfies it",
    },
    UndecidedLevel {
        name: "non-monotonic-snapshot-isolation",
        aliases: &["NMSI"],
        why: "it allows snapshots that fit no order of commits; parallel-snapshot-isolation is decided, and implies it",
    },
];

/// Names that mean different things in different places, and what they mean here.
const AMBIGUOUS: &[(&str, &str)] = &[
    ("repeatable-read", "Adya's PL-2.99: only phantoms are possible"),
    ("RR", "Adya's PL-2.99: only phantoms are possible"),
];

/// Elle's names of models, and for each a level of the table: a history that breaks the level breaks the model. The first
/// name of a level is the one that Elle prints. Elle's read-atomic, causal-cerone, prefix and parallel-snapshot-isolation
/// count no session order, so levels that do are not among these.
const ELLE_MODELS: &[(&str, &str)] = &[
    ("read-uncommitted", "read-uncommitted"),
    ("read-committed", "read-committed"),
    ("monotonic-snapshot-read", "read-committed"),
    ("monotonic-atomic-view", "monotonic-atomic-view"),
    ("read-atomic", "monotonic-atomic-view"),
    ("causal-cerone", "monotonic-atomic-view"),
    ("prefix", "monotonic-atomic-view"),
    ("update-atomic", "monotonic-atomic-view"),
    ("cursor-stability", "cursor-stability"),
    ("monotonic-view", "monotonic-view"),
    ("consistent-view", "consistent-view"),
    ("parallel-snapshot-isolation", "consistent-view"),
    ("forward-consistent-view", "forward-consistent-view"),
    ("repeatable-read", "repeatable-read"),
    ("snapshot-isolation", "snapshot-isolation"),
    ("update-serializable", "update-serializable"),
    ("serializable", "serializable"),
    ("view-serializable", "serializable"),
    ("1SR", "serializable"),
    ("strong-session-read-uncommitted", "strong-session-read-uncommitted"),
    ("strong-session-read-committed", "strong-session-read-committed"),
    ("strong-session-snapshot-isolation", "strong-session-snapshot-isolation"),
    ("strong-session-serializable", "strong-session-serializable"),
    ("session-serializable", "strong-session-serializable"),
    ("strong-read-uncommitted", "strong-read-uncommitted"),
    ("strong-read-committed", "strong-read-committed"),
    ("strong-snapshot-isolation", "strong-snapshot-isolation"),
    ("strict-serializable", "strict-serializable"),
];

/// The model that Elle's command line expects where none is named.
pub const ELLE_DEFAULT: &str = "strict-serializable";

/// Elle's names of anomalies, and the weakest level of the table that forbids each.
const ELLE_ANOMALIES: &[(&str, &[&str])] = &[
    ("read-uncommitted", &["G0", "PL-1-cycle-exists"]),
    ("strong-session-read-uncommitted", &["G0-process", "strong-session-PL-1-cycle-exists"]),
    ("strong-read-uncommitted", &["G0-realtime", "strong-PL-1-cycle-exists"]),
    (
        "read-committed",
        &[
            "G1",
            "G1a",
            "G1b",
            "G1c",
            "internal",
            "dirty-update",
            "incompatible-order",
            "future-read",
            "duplicate-elements",
            "cyclic-versions",
            "PL-2-cycle-exists",
        ],
    ),
    ("strong-session-read-committed", &["G1-process", "G1c-process", "strong-session-PL-2-cycle-exists"]),
    ("strong-read-committed", &["G1-realtime", "G1c-realtime", "strong-PL-2-cycle-exists"]),
    ("cursor-stability", &["G-cursor", "lost-update"]),
    ("monotonic-view", &["G-monotonic"]),
    ("consistent-view", &["G-single", "G-single-item"]),
    ("parallel-snapshot-isolation", &["G-single-process", "G-single-item-process"]),
    ("forward-consistent-view", &["G-SIb"]),
    ("repeatable-read", &["G2-item", "PL-2.99-cycle-exists"]),
    ("snapshot-isolation", &["G-nonadjacent", "G-nonadjacent-item", "PL-SI-cycle-exists"]),
    ("update-serializable", &["G-update"]),
    ("serializable", &["G2", "write-skew", "predicate-read-miss", "PL-3-cycle-exists"]),
    (
        "strong-session-snapshot-isolation",
        &[
            "G-nonadjacent-process",
            "G-nonadjacent-item-process",
            "strong-session-snapshot-isolation-cycle-exists",
        ],
    ),
    (
        "strong-snapshot-isolation",
        &[
            "G-nonadjacent-realtime",
            "G-nonadjacent-item-realtime",
            "G-single-realtime",
            "G-single-item-realtime",
            "G-SI",
            "strong-snapshot-isolation-cycle-exists",
        ],
    ),
    (
        "strong-session-serializable",
        &["G2-process", "G2-item-process", "strong-session-serializable-cycle-exists"],
    ),
    ("strict-serializable", &["G2-realtime", "G2-item-realtime", "PL-SS-cycle-exists"]),
];

/// Elle's names of models with the level that breaks each.
pub fn elle_models() -> impl Iterator<Item = (&'static str, super::Level)> {
    let level = |name| find(name).expect("a name of the table").level;
    ELLE_MODELS.iter().map(move |&(model, name)| (model, level(name)))
}

/// The weakest level that forbids an anomaly of Elle's.
pub fn forbidding(anomaly: &str) -> Option<super::Level> {
    let wanted = normal(anomaly);
    let is_here = |names: &[&str]| names.iter().any(|known| normal(known) == wanted);
    let (level, _) = ELLE_ANOMALIES.iter().find(|(_, names)| is_here(names))?;
    find(level).map(|row| row.level)
}

/// What an ambiguous name means here; none if everybody means the same by it.
pub fn meaning_here(name: &str) -> Option<&'static str> {
    let wanted = normal(name);
    AMBIGUOUS.iter().find(|(known, _)| normal(known) == wanted).map(|&(_, meaning)| meaning)
}

/// The row of a name or alias.
pub(super) fn find(name: &str) -> Option<&'static LevelRow> {
    TABLE.iter().find(|row| row.is_called(name))
}

/// A name that no level has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownLevel {
    /// What was asked for.
    pub name: String,
    /// The names that it is likely a misspelling of, the nearest first; often none.
    pub nearest: Vec<&'static str>,
    /// Why it is not decided, if it is known.
    pub undecided: Option<&'static UndecidedLevel>,
}

impl UnknownLevel {
    pub(super) fn new(name: &str) -> Self {
        let wanted = normal(name);
        let is_called = |row: &&UndecidedLevel| {
            std::iter::once(&row.name).chain(row.aliases).any(|known| normal(known) == wanted)
        };
        Self { name: name.to_owned(), nearest: nearest(&wanted), undecided: UNDECIDED.iter().find(is_called) }
    }
}

impl fmt::Display for UnknownLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(undecided) = self.undecided {
            return write!(f, "{} is not decided: {}", undecided.name, undecided.why);
        }
        write!(f, "unknown isolation level {:?}; ", self.name)?;
        match self.nearest.split_last() {
            None => {
                let names: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
                write!(f, "expected one of: {}", names.join(", "))
            }
            Some((only, [])) => write!(f, "did you mean {only}?"),
            Some((last, others)) => write!(f, "did you mean {} or {last}?", others.join(", ")),
        }
    }
}

impl std::error::Error for UnknownLevel {}

/// A name without what people write differently.
pub(super) fn normal(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric() || *letter == '+');
    let name = letters.flat_map(char::to_lowercase).collect::<String>().replace("serialis", "serializ");
    // As drivers and SQL say it: TRANSACTION_READ_COMMITTED, isolation level read committed.
    let bare = ["transactionisolationlevel", "isolationlevel", "transactionread", "transactionserializable"];
    match bare.into_iter().find_map(|words| name.strip_prefix(words).map(|rest| (words, rest))) {
        Some(("transactionread", rest)) => format!("read{rest}"),
        Some(("transactionserializable", rest)) => format!("serializable{rest}"),
        Some((_, rest)) if !rest.is_empty() => rest.to_owned(),
        _ => name,
    }
}

/// How many suggestions an unknown name gets.
const NEAREST_MAX: usize = 3;
/// Longer names are not compared.
const COMPARED_LEN_MAX: usize = 64;
/// A name that differs in so few letters is the one that was meant.
const TYPO_MAX: usize = 2;

/// Names this short are codes, which differ in a letter: none is taken for another.
const CODE_LEN_MAX: usize = 3;

/// The names that it is likely a misspelling of: one if it is a typo, else the nearest few that are close.
fn nearest(wanted: &str) -> Vec<&'static str> {
    let wanted: String = wanted.chars().take(COMPARED_LEN_MAX).collect();
    let distance_to_row = |row: &LevelRow| {
        row.names()
            .map(|name| strsim::damerau_levenshtein(&wanted, &normal(name)))
            .min()
            .unwrap_or(usize::MAX)
    };
    let mut rows: Vec<_> = TABLE.iter().map(|row| (distance_to_row(row), row.name)).collect();
    rows.sort_by_key(|&(distance, _)| distance);
    let is_typo = wanted.len() > 3 * TYPO_MAX && rows[0].0 <= TYPO_MAX && rows[0].0 < rows[1].0;
    rows.retain(|&(distance, _)| {
        wanted.len() > CODE_LEN_MAX && history::suggest::is_close(distance, wanted.len())
    });
    rows.truncate(if is_typo { 1 } else { NEAREST_MAX });
    rows.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Level;
    use std::collections::HashSet;

    #[test]
    fn every_name_and_alias_leads_to_one_row() {
        let mut seen = HashSet::new();
        for row in TABLE {
            for name in row.names() {
                assert!(seen.insert(normal(name)), "{name} is used twice");
                let spellings =
                    [name.to_owned(), name.to_uppercase().replace('-', "_"), name.replace('-', " ")];
                for written in
                    spellings.into_iter().chain([format!(":{name}"), format!("Isolation Level {name}")])
                {
                    assert_eq!(Level::parse(&written), Ok(row.level), "{written}");
                }
            }
            assert_eq!(row.level.name(), row.name);
        }
        let levels: HashSet<_> = Level::all().collect();
        assert_eq!(levels.len(), TABLE.len(), "two rows are the same level");
        for row in UNDECIDED {
            for name in std::iter::once(&row.name).chain(row.aliases) {
                assert!(seen.insert(normal(name)), "{name} is used twice");
                let unknown = Level::parse(&name.to_uppercase()).expect_err("not decided");
                assert_eq!(unknown.undecided, Some(row), "{name}");
                assert!(unknown.to_string().contains(row.why));
            }
        }
    }

    /// Elle's consistency_model.clj, every name of its lattice: decided, or refused with the reason.
    #[test]
    fn every_name_of_elles_lattice_is_known() {
        let decided = [
            ("PL-1", "read-uncommitted"),
            ("PL-2", "read-committed"),
            ("PL-CS", "cursor-stability"),
            ("PL-2L", "monotonic-view"),
            ("PL-2+", "consistent-view"),
            ("PL-FCV", "forward-consistent-view"),
            ("PL-2.99", "repeatable-read"),
            ("PL-SI", "snapshot-isolation"),
            ("PL-3U", "update-serializable"),
            ("PL-3", "serializable"),
            ("PL-SS", "strict-serializable"),
            ("conflict-serializable", "serializable"),
            ("view-serializable", "serializable"),
            ("1SR", "serializable"),
            ("session-serializable", "strong-session-serializable"),
            ("strong-serializable", "strict-serializable"),
            ("strong-session-PL-1", "strong-session-read-uncommitted"),
            ("strong-session-read-uncommitted", "strong-session-read-uncommitted"),
            ("strong-session-PL-2", "strong-session-read-committed"),
            ("strong-session-read-committed", "strong-session-read-committed"),
            ("strong-PL-1", "strong-read-uncommitted"),
            ("strong-read-uncommitted", "strong-read-uncommitted"),
            ("strong-PL-2", "strong-read-committed"),
            ("strong-read-committed", "strong-read-committed"),
            ("strong-session-serializable", "strong-session-serializable"),
            ("strong-session-snapshot-isolation", "strong-session-snapshot-isolation"),
            ("strong-snapshot-isolation", "strong-snapshot-isolation"),
            ("monotonic-atomic-view", "monotonic-atomic-view"),
            ("parallel-snapshot-isolation", "parallel-snapshot-isolation"),
            ("read-atomic", "read-atomic"),
            ("prefix", "prefix"),
            ("causal", "causal"),
            ("causal-cerone", "causal"),
        ];
        for (name, row) in decided {
            assert_eq!(Level::parse(name).map(Level::name), Ok(row), "{name}");
        }
        let undecided = [
            "PL-MSR",
            "monotonic-snapshot-read",
            "update-atomic",
            "PRAM",
            "monotonic-reads",
            "monotonic-writes",
            "read-your-writes",
            "writes-follow-reads",
            "sequential",
            "linearizable",
        ];
        for name in undecided {
            assert!(Level::parse(name).is_err_and(|unknown| unknown.undecided.is_some()), "{name}");
        }
    }

    #[test]
    fn elles_names_are_decided_by_levels_of_the_table() {
        let mut seen = HashSet::new();
        for (model, level) in elle_models() {
            assert!(seen.insert(model), "{model} is there twice");
            assert!(level.row().is_some());
            let known = Level::parse(model);
            assert!(known.is_ok() || known.is_err_and(|unknown| unknown.undecided.is_some()), "{model}");
        }
        let mut anomalies = HashSet::new();
        for (level, names) in ELLE_ANOMALIES {
            for name in *names {
                assert!(anomalies.insert(normal(name)), "{name} is there twice");
                assert_eq!(forbidding(&format!(":{name}")), Level::parse(level).ok(), "{name}");
            }
        }
        assert_eq!(forbidding("GSIa"), None);
    }

    #[test]
    fn names_that_people_write() {
        for (written, name) in [
            ("pl-2", "read-committed"),
            ("PL3", "serializable"),
            (":strict-serializable", "strict-serializable"),
            ("Strong Session SI", "strong-session-snapshot-isolation"),
            ("tcc", "causal"),
            ("PSI", "parallel-snapshot-isolation"),
            ("strong-session-consistent-view", "parallel-snapshot-isolation"),
            ("PL-2+", "consistent-view"),
            ("pl-2.99", "repeatable-read"),
            ("committed-read", "axiomatic-read-committed"),
            ("READ COMMITTED", "read-committed"),
            ("READ_UNCOMMITTED", "read-uncommitted"),
            ("RepeatableRead", "repeatable-read"),
            ("TRANSACTION_READ_COMMITTED", "read-committed"),
            ("TRANSACTION_SERIALIZABLE", "serializable"),
            ("serialisable", "serializable"),
            ("SNAPSHOT", "snapshot-isolation"),
        ] {
            assert_eq!(Level::parse(written).map(Level::name), Ok(name), "{written}");
        }
    }

    #[test]
    fn unknown_names_are_refused_with_the_nearest() {
        for (written, expected) in [
            ("serializble", "did you mean serializable?"),
            ("snapshot-isolaton", "did you mean snapshot-isolation?"),
            ("repeatable-reads", "did you mean repeatable-read?"),
            ("READ COMITTED", "did you mean read-committed?"),
            ("PL-4", "expected one of: read-uncommitted, read-committed"),
            ("nonsense", "expected one of: read-uncommitted"),
            ("", "unknown isolation level"),
        ] {
            let unknown = Level::parse(written).expect_err("not a level");
            assert!(unknown.to_string().contains(expected), "{written}: {unknown}");
        }
    }

    #[test]
    fn ambiguous_names_are_names_of_the_table() {
        for (name, _) in AMBIGUOUS {
            assert!(Level::parse(name).is_ok(), "{name}");
        }
        assert!(meaning_here("REPEATABLE READ").is_some() && meaning_here("PL-2.99").is_none());
    }
}
