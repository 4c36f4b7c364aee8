//! Which keys transactions touch.

use crate::random::{Random, Zipf};

/// A key of a plan: a number from 0. Whoever executes the plan decides what it is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u32);

/// How keys are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every key alike.
    Uniform,
    /// Few keys often: the key of rank r with a weight of `r^-θ`.
    Zipf {
        /// θ: 0.5 is mild, 1.5 is steep.
        theta: f64,
    },
    /// A share of the accesses goes to the first keys.
    Hotspot {
        /// How much of the key space is hot.
        keys: f64,
        /// How many of the accesses go there.
        share: f64,
    },
}

/// Draws keys of `0..count` by a distribution.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    count: u32,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Uniform,
    Zipf(Zipf),
    Hotspot { hot: u32, share: f64 },
}

impl Keys {
    pub(crate) fn new(count: u32, distribution: Distribution) -> Self {
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Zipf { theta } => Kind::Zipf(Zipf::new(u64::from(count), theta)),
            Distribution::Hotspot { keys, share } => {
                Kind::Hotspot { hot: ((f64::from(count) * keys) as u32).clamp(1, count), share }
            }
        };
        Self { count, kind }
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    #[inline]
    pub(crate) fn draw(&self, random: &mut Random) -> Key {
        let number = match &self.kind {
            Kind::Uniform => random.below(u64::from(self.count)),
            Kind::Zipf(zipf) => zipf.sample(random),
            Kind::Hotspot { hot, share } => {
                let bound = if random.chance(*share) { *hot } else { self.count };
                random.below(u64::from(bound))
            }
        };
        Key(number as u32)
    }

    /// A key other than `first`, where there is one.
    pub(crate) fn draw_other(&self, random: &mut Random, first: Key) -> Key {
        let second = self.draw(random);
        if second != first { second } else { Key((first.0 + 1) % self.count) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_of_first(distribution: Distribution, first: u32) -> f64 {
        let keys = Keys::new(1000, distribution);
        let mut random = Random::new(1);
        let hits = (0..100_000).filter(|_| keys.draw(&mut random).0 < first).count();
        hits as f64 / 100_000.0
    }

    #[test]
    fn distributions_differ_as_they_say() {
        assert!((share_of_first(Distribution::Uniform, 100) - 0.1).abs() < 0.01);
        // 90 % on the hot tenth, and its part of the rest.
        let hot = share_of_first(Distribution::Hotspot { keys: 0.1, share: 0.9 }, 100);
        assert!((hot - 0.91).abs() < 0.01, "{hot}");
        assert!(share_of_first(Distribution::Zipf { theta: 1.0 }, 100) > 0.6);
    }

    #[test]
    fn another_key_is_another_key() {
        let keys = Keys::new(2, Distribution::Zipf { theta: 2.0 });
        let mut random = Random::new(1);
        for _ in 0..100 {
            let first = keys.draw(&mut random);
            assert_ne!(keys.draw_other(&mut random, first), first);
        }
    }
}
