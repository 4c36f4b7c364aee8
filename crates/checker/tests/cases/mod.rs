//! Random tiny histories at several levels, and what is wrong with one of them.
#![allow(dead_code, reason = "every test uses its part")]

pub(crate) mod mutants;

use history::History;
use history::formats::notation;
use isolation::{Level, Rule};
use oracle::tiny::{Shape, shrink};
use std::ops::Range;

/// Serializability and snapshot isolation, with and without session and real-time order.
pub(crate) fn strong_levels() -> Vec<Level> {
    let mut levels = Vec::new();
    for rule in [Rule::Serializable, Rule::SnapshotIsolation] {
        for (session, realtime) in [(false, false), (true, false), (true, true)] {
            levels.push(Level::new(rule, session, realtime));
        }
    }
    levels
}

/// So many seeds; `TAIPAN_LONG=1` takes twenty times as many, `TAIPAN_QUICK=1` a quarter, `TAIPAN_SEED=N` begins
/// elsewhere.
pub(crate) fn seeds(normal: u64) -> Range<u64> {
    let first = std::env::var("TAIPAN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let times = if std::env::var_os("TAIPAN_LONG").is_some() { 20 } else { 1 };
    first..first + (normal * times).div_ceil(share())
}

/// What so many seeds bring at least, or the share of them that is tried.
pub(crate) fn least(normal: usize) -> usize {
    normal / share() as usize
}

fn share() -> u64 {
    if std::env::var_os("TAIPAN_QUICK").is_some() { 4 } else { 1 }
}

/// Fails with the smallest history at fault, if there is one.
pub(crate) fn expect_no_fault(
    shape: &Shape,
    seeds: Range<u64>,
    levels: &[Level],
    fault: impl Fn(&History, Level) -> Option<String>,
) {
    for seed in seeds {
        let history = shape.history(seed);
        for &level in levels {
            if fault(&history, level).is_some() {
                let small = shrink(&history, |smaller| fault(smaller, level).is_some());
                let what = fault(&small, level).unwrap_or_default();
                panic!("seed {seed} at {level}: {what}\n{}", notation::to_string(&small));
            }
        }
    }
}
