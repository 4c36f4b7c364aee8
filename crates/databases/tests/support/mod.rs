//! What the tests of all drivers use.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

pub mod model;
pub mod plans;

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
