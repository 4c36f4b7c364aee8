//! What the tests of all drivers use.

#![allow(dead_code, unreachable_pub, clippy::print_stderr, reason = "each test binary uses its part")]

pub mod model;
pub mod plans;

use databases::{Database, Failure, MariaDb, Postgres};

/// A throw-away PostgreSQL server, or `None`, aloud, where PostgreSQL is not installed.
pub fn postgres(settings: &[(&str, &str)]) -> Option<Postgres> {
    unless_missing(Postgres::temporary(None, &owned(settings)))
}

/// A throw-away MariaDB server, or `None`, aloud, where MariaDB is not installed.
pub fn mariadb(settings: &[(&str, &str)]) -> Option<MariaDb> {
    unless_missing(MariaDb::temporary(None, &owned(settings)))
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn unless_missing<D: Database>(started: Result<D, Failure>) -> Option<D> {
    match started {
        Ok(database) => Some(database),
        Err(failure) if failure.to_string().contains("server is installed") => {
            eprintln!("SKIPPED: {failure} (scripts/setup installs it)");
            None
        }
        Err(failure) => panic!("{failure}"),
    }
}

/// A small generator of random numbers, so that tests are the same on every run (splitmix64).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    pub fn int(&mut self, bound: u64) -> i64 {
        self.below(bound) as i64
    }
}
