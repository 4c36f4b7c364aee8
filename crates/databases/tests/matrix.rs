//! The matrix of real databases is the one that is known.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use taipan_databases::{Database, matrix};

/// Runs the whole matrix `times` times; every run must be as expected.
fn is_as_expected(database: &dyn Database, times: usize) {
    for run in 1..=times {
        let matrix = matrix(database, |_| {}).unwrap();
        assert_eq!(matrix.levels, database.isolations());
        if let Some((schedule, level, cell)) = matrix.surprises().next() {
            let trace: Vec<String> = cell.trace.iter().map(ToString::to_string).collect();
            let seen = if cell.seen { "occurs" } else { "does not occur" };
            let (name, level) = (schedule.name, level.name);
            panic!("run {run}: {name} {seen} in {} at {level}:\n{}", matrix.database, trace.join("\n"));
        }
    }
}

#[test]
fn postgres_shows_the_known_anomalies() {
    let Some(database) = support::postgres(&[("fsync", "off")]) else { return };
    is_as_expected(&database, 2);
}

#[test]
fn mariadb_shows_the_known_anomalies() {
    let Some(database) = support::mariadb(&[("innodb_flush_log_at_trx_commit", "2")]) else { return };
    is_as_expected(&database, 2);
}

#[test]
fn mariadb_with_snapshot_isolation_shows_fewer() {
    let settings = [("innodb_snapshot_isolation", "ON"), ("innodb_flush_log_at_trx_commit", "2")];
    let Some(database) = support::mariadb(&settings) else { return };
    is_as_expected(&database, 2);
}

#[test]
fn sqlite_shows_none() {
    is_as_expected(&*taipan_databases::open("sqlite:").unwrap(), 1);
}

#[test]
fn a_store_without_a_language_says_so() {
    let failure = matrix(&*taipan_databases::open("redb:").unwrap(), |_| {}).unwrap_err().to_string();
    assert!(failure.contains("redb"), "{failure}");
}
