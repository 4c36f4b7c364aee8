//! What is known to happen, vendor by vendor: the anomalies that occur at each level.
//!
//! Taken from runs on the servers and held against their documentation. A row lists the levels, by their
//! place in the vendor's table of levels, at which the anomaly occurs.

use super::Schedule;
use crate::isolation::Isolation;

/// The levels, by place, at which each anomaly occurs; an anomaly that is not listed never does.
pub(crate) type Expected = &'static [(&'static [&'static str], &'static [usize])];

/// Levels: read committed 0, repeatable read 1, serializable 2.
pub(crate) const POSTGRES: Expected = &[
    (&["PMP", "PMP-write", "P4", "G-single", "G-single-pred", "G-single-write", "fuzzy-read"], &[0]),
    (&["G2-item", "G2", "read-only"], &[0, 1]),
];

/// Levels: read uncommitted 0, read committed 1, repeatable read 2, serializable 3.
pub(crate) const MARIADB: Expected = &[
    (&["G1a", "G1b", "G1c", "OTV"], &[0]),
    (&["PMP", "G-single", "G-single-pred"], &[0, 1]),
    (&["PMP-write"], &[1, 2]),
    (&["P4", "G-single-write", "fuzzy-read", "G2-item", "G2", "read-only"], &[0, 1, 2]),
];

/// The same with `innodb_snapshot_isolation`.
pub(crate) const MARIADB_SNAPSHOT: Expected = &[
    (&["G1a", "G1b", "G1c", "OTV"], &[0]),
    (&["PMP", "G-single", "G-single-pred"], &[0, 1]),
    (&["PMP-write"], &[1]),
    (&["P4", "G-single-write", "fuzzy-read"], &[0, 1]),
    (&["G2-item", "G2", "read-only"], &[0, 1, 2]),
];

/// Snapshot isolation, the one level.
#[cfg(feature = "duckdb")]
pub(crate) const DUCKDB: Expected = &[(&["G2-item", "G2", "read-only"], &[0])];

/// A database that is serializable at every level.
pub(crate) const NOTHING: Expected = &[];

/// Whether the table expects the anomaly; `None` if the level is not one of the vendor's.
pub(crate) fn expects(
    expected: Expected,
    levels: &[Isolation],
    schedule: &Schedule,
    isolation: &Isolation,
) -> Option<bool> {
    let level = levels.iter().position(|level| level == isolation)?;
    let row = expected.iter().find(|(names, _)| names.contains(&schedule.name));
    Some(row.is_some_and(|(_, levels)| levels.contains(&level)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::SCHEDULES;

    #[test]
    fn every_name_in_the_tables_is_a_schedule_and_stands_once() {
        for table in [POSTGRES, MARIADB, MARIADB_SNAPSHOT] {
            let mut names: Vec<&str> = table.iter().flat_map(|(names, _)| names.iter().copied()).collect();
            assert!(names.iter().all(|name| SCHEDULES.iter().any(|schedule| schedule.name == *name)));
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
