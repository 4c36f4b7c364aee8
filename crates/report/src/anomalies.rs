//! The names of anomalies: one table for every command.
//!
//! A row is one anomaly with all of its names: Elle's and Adya's, ANSI's (P0 to P4, A1 to A5B), hermitage's, and the common
//! ones. Each name leads to one row. The row names the book's page, or says in a sentence what the anomaly is where a page
//! would show nothing new.

use crate::book::{Page, page, plain};
use std::fmt;

/// One anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnomalyRow {
    /// Elle's or Adya's name, where there is one.
    pub name: &'static str,
    /// The common name.
    pub common: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Its page in the book, or what it is.
    pub about: About,
}

/// Where an anomaly is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// On this page of the book.
    Page(&'static str),
    /// In this sentence.
    Sentence(&'static str),
}
use About::{Page as OnPage, Sentence};

const fn row(
    name: &'static str,
    common: &'static str,
    aliases: &'static [&'static str],
    about: About,
) -> AnomalyRow {
    AnomalyRow { name, common, aliases, about }
}

/// Every anomaly.
pub const ANOMALIES: &[AnomalyRow] = &[
    row("G0", "dirty write", &["P0", "write cycle", "interleaved writes"], OnPage("dirty-write")),
    row("G1a", "aborted read", &["dirty read", "P1", "A1"], OnPage("aborted-read")),
    row("G1b", "intermediate read", &[], OnPage("intermediate-read")),
    row(
        "G1c",
        "circular information flow",
        &["cyclic information flow"],
        OnPage("circular-information-flow"),
    ),
    row(
        "G1",
        "aborted, intermediate or circular read",
        &["G1 (Adya)"],
        Sentence(
            "G1 is any of G1a (aborted read), G1b (intermediate read) and G1c (circular information flow).",
        ),
    ),
    row("thin-air", "value from nowhere", &["garbage read", "out of thin air"], OnPage("thin-air")),
    row("internal", "internal inconsistency", &["own write missed", "INT"], OnPage("internal")),
    row("future-read", "read of a later own write", &[], OnPage("future-read")),
    row(
        "lost-update",
        "lost update",
        &["P4", "P4C", "cursor lost update", "G-cursor"],
        OnPage("lost-update"),
    ),
    row("lost-append", "lost append", &[], OnPage("lost-append")),
    row("G2-item", "write skew", &["A5B", "item anti-dependency cycle"], OnPage("write-skew")),
    row(
        "G2",
        "predicate write skew",
        &["write skew by predicate", "anti-dependency cycle", "predicate anti-dependency cycle"],
        OnPage("write-skew-by-predicate"),
    ),
    row(
        "G-single",
        "read skew",
        &[
            "G-single-item",
            "A5A",
            "fractured read",
            "fractured reads",
            "G-single-write",
            "single anti-dependency cycle",
        ],
        OnPage("fractured-read"),
    ),
    row(
        "fractured-read-across-two-transactions",
        "fractured read across two transactions",
        &[],
        OnPage("fractured-read-across-two-transactions"),
    ),
    row("G-nonadjacent", "long fork", &["G-nonadjacent-item", "long forks"], OnPage("long-fork")),
    row(
        "non-repeatable-read",
        "fuzzy read",
        &["P2", "A2", "unrepeatable read", "nonrepeatable read"],
        OnPage("non-repeatable-read"),
    ),
    row(
        "phantom",
        "phantom read",
        &["P3", "A3", "phantom row", "phantoms", "G-single-pred"],
        OnPage("phantom"),
    ),
    row(
        "PMP",
        "predicate-many-preceders",
        &["PMP-write", "predicate-many-preceders, PMP"],
        OnPage("predicate-many-preceders"),
    ),
    row("deleted-row", "read of a deleted row", &[], OnPage("read-of-a-deleted-row")),
    row(
        "missed-row",
        "predicate write that missed a row",
        &[],
        OnPage("a-predicate-write-that-missed-a-row"),
    ),
    row("causality-violation", "causality violation", &["causal violation"], OnPage("causality-violation")),
    row(
        "OTV",
        "observed transaction vanishes",
        &["non-monotonic read", "monotonic atomic view violation"],
        OnPage("observed-transaction-vanishes"),
    ),
    row(
        "G-single-realtime",
        "stale read",
        &["G-single-item-realtime", "GSIb", "G-SIb", "stale read in real time", "missed effects"],
        OnPage("stale-read-in-real-time"),
    ),
    row(
        "G-single-process",
        "stale read in a session",
        &["G-single-item-process", "read-your-writes violation"],
        OnPage("stale-read-in-a-session"),
    ),
    row("duplicate-elements", "duplicate elements", &["duplicate element"], OnPage("duplicate-elements")),
    row(
        "duplicate-rows",
        "key returned twice",
        &["a key twice", "duplicate key", "duplicate row"],
        OnPage("duplicate-rows"),
    ),
    row("impossible-count", "impossible row count", &[], OnPage("impossible-count")),
    row("impossible-order", "rows out of order", &[], OnPage("impossible-order")),
    row("impossible-row", "row outside the query", &[], OnPage("impossible-row")),
    row("impossible-read", "value the key cannot have held", &[], OnPage("impossible-read")),
    row("incompatible-order", "incompatible order", &["inconsistent order"], OnPage("incompatible-order")),
    row("cycle-of-three", "a cycle of three", &[], OnPage("a-cycle-of-three")),
    row(
        "inferred-order",
        "an order that had to be inferred",
        &[],
        OnPage("an-order-that-had-to-be-inferred"),
    ),
    row(
        "unknown-outcome",
        "a transaction of unknown outcome",
        &[],
        OnPage("a-transaction-of-unknown-outcome"),
    ),
    row("no-order", "no order explains these transactions", &["no order at all"], OnPage("no-order")),
    row(
        "G-monotonic",
        "non-monotonic view",
        &[],
        Sentence(
            "A transaction sees one effect of another transaction, and a later operation misses another effect of it, or \
             of a transaction that it depends on. monotonic-view forbids it; see OTV for the simplest case.",
        ),
    ),
    row(
        "G-update",
        "update conflict miss",
        &["no-update-conflict-misses"],
        Sentence(
            "A dependency cycle with at most one read-only transaction: the writers alone are not serializable, \
             or a read-only transaction sees a state that never existed between them. update-serializable forbids it.",
        ),
    ),
    row(
        "read-only",
        "read-only transaction anomaly",
        &["read-only anomaly"],
        Sentence(
            "A read-only transaction sees a state that no serial order of the writers produces, although the writers \
             alone are serializable. Snapshot isolation allows it; update-serializable and serializable forbid it.",
        ),
    ),
    row(
        "G-SIa",
        "interference",
        &["GSIa"],
        Sentence(
            "A transaction depends on one that had not committed when it began. Snapshot isolation forbids it; results \
             alone do not show when a transaction began, so only --by timestamps decides it.",
        ),
    ),
    row(
        "G-SI",
        "snapshot isolation anomaly",
        &["GSI"],
        Sentence("G-SI is any of G-SIa (interference) and G-SIb (missed effects)."),
    ),
    row(
        "G-MSR",
        "non-monotonic snapshot read",
        &[],
        Sentence(
            "The snapshots of two reads of one transaction go back in time. Adya's PL-MSR forbids it, which is not \
             decided here; see OTV.",
        ),
    ),
    row(
        "dirty-update",
        "update of aborted data",
        &[],
        Sentence(
            "A committed transaction built on what an aborted one had written: a list holds an aborted element below a \
             committed one. read-committed forbids it.",
        ),
    ),
    row(
        "cyclic-versions",
        "cyclic version order",
        &["versions in a circle"],
        Sentence(
            "The reads put the versions of one key in a cyclic order. This is Elle's name; Taipan reports it as G0, G1c, \
             internal or incompatible-order, and under this name only where assumptions or modules order the versions.",
        ),
    ),
    row(
        "cycle-exists",
        "cycle without a name",
        &[
            "PL-1-cycle-exists",
            "PL-2-cycle-exists",
            "PL-2.99-cycle-exists",
            "PL-3-cycle-exists",
            "PL-SI-cycle-exists",
            "PL-SS-cycle-exists",
            "strong-PL-1-cycle-exists",
            "strong-PL-2-cycle-exists",
            "strong-session-PL-1-cycle-exists",
            "strong-session-PL-2-cycle-exists",
            "strong-session-serializable-cycle-exists",
            "strong-session-snapshot-isolation-cycle-exists",
            "strong-snapshot-isolation-cycle-exists",
        ],
        Sentence(
            "Elle found that the level forbids a dependency cycle in the history, but ran out of time before it found the \
             cycle. Taipan names every cycle by its shape.",
        ),
    ),
    row(
        "predicate-read-miss",
        "row missed by every version",
        &[],
        Sentence(
            "A query did not return a row although every version of it matches. This is Elle's name; Taipan reports it \
             as a phantom or thin-air.",
        ),
    ),
];

impl AnomalyRow {
    /// All of its names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        let of_page = self.page().map(|page| page.slug);
        [self.name, self.common].into_iter().chain(self.aliases.iter().copied()).chain(of_page)
    }

    /// The common name, as a heading.
    pub fn title(&self) -> String {
        crate::sarif::capitalized(self.common)
    }

    /// The book's page on it.
    pub fn page(&self) -> Option<&'static Page> {
        match self.about {
            OnPage(slug) => page(slug),
            Sentence(_) => None,
        }
    }

    /// Other anomalies of the same shape: what Elle calls `G-single` has pages for phantoms and fuzzy reads, too.
    pub fn kin(&self) -> Vec<&'static AnomalyRow> {
        let shape = |row: &AnomalyRow| row.page().and_then(Page::shape);
        let is_of_shape =
            |row: &&AnomalyRow| *row != self && shape(row).is_some_and(|it| it == plain(self.name));
        ANOMALIES.iter().filter(is_of_shape).collect()
    }
}

/// An anomaly that was asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What it is.
    pub row: &'static AnomalyRow,
    /// Which order beside the dependencies the name asks for.
    pub order: Option<&'static str>,
}

/// The orders that Elle's names end in.
const ORDERS: [(&str, &str); 2] = [("process", "session order"), ("realtime", "real-time order")];

/// A name that no anomaly has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAnomaly {
    /// What was asked for.
    pub name: String,
    /// The names that it is likely a misspelling of, the nearest first; often none.
    pub nearest: Vec<&'static str>,
}

impl fmt::Display for UnknownAnomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown anomaly {:?}; ", self.name)?;
        match self.nearest.split_last() {
            None => {
                let names: Vec<&str> = ANOMALIES.iter().map(|row| row.name).collect();
                write!(f, "expected one of: {}", names.join(", "))
            }
            Some((only, [])) => write!(f, "did you mean {only}?"),
            Some((last, others)) => write!(f, "did you mean {} or {last}?", others.join(", ")),
        }
    }
}

impl std::error::Error for UnknownAnomaly {}

/// The anomaly of a name; else the names that it may be a misspelling of.
pub fn anomaly(name: &str) -> Result<Asked, UnknownAnomaly> {
    let wanted = plain(name);
    let find = |wanted: &str| ANOMALIES.iter().find(|row| row.names().any(|known| plain(known) == wanted));
    if let Some(row) = find(&wanted) {
        return Ok(Asked { row, order: None });
    }
    for (ending, order) in ORDERS {
        if let Some(row) = wanted.strip_suffix(ending).and_then(find) {
            return Ok(Asked { row, order: Some(order) });
        }
    }
    Err(UnknownAnomaly { name: name.to_owned(), nearest: nearest(&wanted) })
}

/// How many suggestions an unknown name gets.
const NEAREST_MAX: usize = 3;
/// Names this short are codes, which differ in a letter: none is taken for another.
const CODE_LEN_MAX: usize = 3;

fn nearest(wanted: &str) -> Vec<&'static str> {
    let distance = |name: &str| strsim::damerau_levenshtein(wanted, &plain(name));
    let nearest_name = |row: &AnomalyRow| {
        row.names().map(|name| (distance(name), name)).min_by_key(|(distance, _)| *distance)
    };
    let mut names: Vec<(usize, &'static str)> = ANOMALIES.iter().filter_map(nearest_name).collect();
    names.sort_by_key(|&(distance, _)| distance);
    names.retain(|&(distance, _)| {
        wanted.len() > CODE_LEN_MAX && history::suggest::is_close(distance, wanted.len())
    });
    names.truncate(NEAREST_MAX);
    names.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::pages;
    use std::collections::HashMap;

    #[test]
    fn every_name_leads_to_one_anomaly() {
        let mut seen: HashMap<String, &str> = HashMap::new();
        for row in ANOMALIES {
            for name in row.names() {
                let other = seen.insert(plain(name), row.name);
                assert!(other.is_none_or(|other| other == row.name), "{name}: {other:?} and {}", row.name);
                for written in
                    [name.to_owned(), name.to_uppercase().replace(['-', ' '], "_"), format!(":{name}")]
                {
                    assert_eq!(anomaly(&written), Ok(Asked { row, order: None }), "{written}");
                }
            }
        }
    }

    #[test]
    fn every_page_belongs_to_one_anomaly() {
        for page in pages() {
            let rows: Vec<&AnomalyRow> = ANOMALIES.iter().filter(|row| row.page() == Some(page)).collect();
            let [row] = rows[..] else { panic!("{}: {rows:?}", page.slug) };
            assert_eq!(anomaly(page.name()).map(|asked| asked.row), Ok(row), "{}", page.name());
        }
        for row in ANOMALIES {
            assert!(row.page().is_some() || matches!(row.about, Sentence(_)), "{} has no page", row.name);
        }
    }

    /// What arguments are called leads to a page, too.
    #[test]
    fn names_in_verdicts_are_known() {
        for level in isolation::TABLE {
            assert!(anomaly(level.anomaly).is_ok(), "{} is broken by {}", level.name, level.anomaly);
        }
        for name in [
            "G0",
            "G1a",
            "G1b",
            "G1c",
            "G-single",
            "G-single-item",
            "G-nonadjacent",
            "G-nonadjacent-item",
            "G2-item",
            "G2",
            "internal",
            "dirty-update",
            "lost-update",
            "duplicate-elements",
            "duplicate-rows",
            "impossible-count",
            "impossible-order",
            "impossible-row",
            "impossible-read",
            "incompatible-order",
            "future-read",
            "thin-air",
            "no-order",
        ] {
            for order in ["", "-process", "-realtime"] {
                assert!(anomaly(&format!("{name}{order}")).is_ok(), "{name}{order}");
            }
        }
    }

    #[test]
    fn names_that_people_write() {
        for (written, name) in [
            ("dirty read", "G1a"),
            ("P1", "G1a"),
            ("aborted-read", "G1a"),
            ("A5A", "G-single"),
            ("read skew", "G-single"),
            ("Write Skew", "G2-item"),
            ("P4", "lost-update"),
            ("P2", "non-repeatable-read"),
            ("Fuzzy Read", "non-repeatable-read"),
            ("phantom", "phantom"),
            ("otv", "OTV"),
            ("G2-item-realtime", "G2-item"),
            ("G-single-realtime", "G-single-realtime"),
        ] {
            assert_eq!(anomaly(written).map(|asked| asked.row.name), Ok(name), "{written}");
        }
        assert_eq!(anomaly("G2-realtime").map(|asked| asked.order), Ok(Some("real-time order")));
        assert_eq!(anomaly("wrte skew").map_err(|unknown| unknown.nearest[0]), Err("write skew"));
        assert!(anomaly("").is_err() && anomaly("process").is_err());
    }

    #[test]
    fn the_kin_of_an_anomaly_have_its_shape() {
        let row = |name| anomaly(name).expect("a name of the table").row;
        let kin: Vec<&str> = row("G-single").kin().iter().map(|row| row.name).collect();
        assert!(kin.contains(&"phantom") && kin.contains(&"non-repeatable-read"), "{kin:?}");
        assert!(row("G0").kin().is_empty());
    }
}
