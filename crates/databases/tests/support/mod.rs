//! What the tests of all drivers use.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

pub mod model;
pub mod plans;

use taipan_databases::{MariaDb, Postgres};

/// A throw-away PostgreSQL server, or `None` where PostgreSQL is not installed.
pub fn postgres(settings: &[(&str, &str)]) -> Option<Postgres> {
    corpus::server("postgres", Postgres::temporary(None, &owned(settings)))
}

/// A throw-away MariaDB server, or `None` where MariaDB is not installed.
pub fn mariadb(settings: &[(&str, &str)]) -> Option<MariaDb> {
    corpus::server("mariadb", MariaDb::temporary(None, &owned(settings)))
}

fn owned(settings: &[(&str, &str)]) -> Vec<(String, String)> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
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
