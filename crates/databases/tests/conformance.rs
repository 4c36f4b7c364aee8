//! Every driver answers every kind of operation as a plain map would.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod support;

use support::model;
use taipan_databases::{Database, Sqlite};

#[test]
fn sqlite_answers_as_a_map_would() {
    let database = Sqlite::temporary().unwrap();
    model::conforms(&database, 400);
}

#[test]
fn fjall_answers_as_a_map_would() {
    for target in ["fjall:", "fjall:?probe=size"] {
        let database = taipan_databases::open(target).unwrap();
        model::conforms(&*database, 400);
        model::rolls_back(&*database);
    }
}

#[test]
fn redb_answers_as_a_map_would() {
    let database = taipan_databases::open("redb:").unwrap();
    model::conforms(&*database, 100);
    model::rolls_back(&*database);
}

#[test]
fn postgres_answers_as_a_map_would() {
    let Some(database) = support::postgres(&[("fsync", "off")]) else { return };
    model::conforms(&database, 400);
    model::rolls_back(&database);
}

#[test]
fn mariadb_answers_as_a_map_would() {
    let Some(database) = support::mariadb(&[("innodb_flush_log_at_trx_commit", "2")]) else { return };
    model::conforms(&database, 400);
    model::rolls_back(&database);
}

#[test]
fn a_rolled_back_transaction_leaves_nothing() {
    let database = Sqlite::temporary().unwrap();
    model::rolls_back(&database);
}

#[test]
fn an_unknown_folder_is_a_sentence() {
    let database = Sqlite::at("/nonexistent/folder/x.db");
    let error = database.create(&taipan_databases::Schema::integers(), &[]).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/folder/x.db"), "{error}");
}
