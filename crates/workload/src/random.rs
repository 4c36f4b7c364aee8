//! Seeded randomness that never changes: the same seed gives the same history in every later version.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, *Scrambled Linear Pseudorandom Number Generators*,
//! 2021), seeded through SplitMix64. It is written out here because general-purpose crates reserve the
//! right to change theirs.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        let state = [(); 4].map(|()| split_mix(&mut mix));
        Self { state }
    }

    /// An independent stream of the same seed: one a session, so that what a session does never
    /// depends on how sessions happen to interleave.
    pub fn stream(seed: u64, number: u64) -> Self {
        let mut mix = number ^ 0x6a09_e667_f3bc_c908;
        Self::new(seed ^ split_mix(&mut mix))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// A number in `0..bound`; 0 if the bound is 0. The bias is below 2⁻³² for bounds below 2³².
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        debug_assert!(low <= high, "a range that holds something");
        low + self.below(high - low + 1)
    }

    /// A number in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with the given probability.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        // Drawn even where the answer is certain, so that streams stay aligned between settings.
        self.unit() < probability
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// Zipf's distribution over `0..n`: rank `r` has a weight of `(r + 1)^-θ`.
///
/// Sampled by rejection-inversion (Hörmann and Derflinger, *Rejection-inversion to generate variates from
/// monotone discrete distributions*, 1996): no table, constant time, every θ > 0 including 1.
#[derive(Clone, Debug)]
pub struct Zipf {
    n: u64,
    theta: f64,
    /// The integral of the weight up to the first and the last rank.
    first: f64,
    last: f64,
    /// Closer to a rank than this, no rejection test is needed.
    squeeze: f64,
}

impl Zipf {
    /// The distribution over `0..n` with the exponent `theta`.
    pub fn new(n: u64, theta: f64) -> Self {
        let mut zipf = Self { n: n.max(1), theta, first: 0.0, last: 0.0, squeeze: 0.0 };
        zipf.first = zipf.integral(1.5) - 1.0;
        zipf.last = zipf.integral(zipf.n as f64 + 0.5);
        zipf.squeeze = 2.0 - zipf.integral_inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// A rank.
    pub fn sample(&self, random: &mut Random) -> u64 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let x = self.integral_inverse(area);
            let rank = x.round().clamp(1.0, self.n as f64);
            if rank - x <= self.squeeze || area >= self.integral(rank + 0.5) - self.weight(rank) {
                return rank as u64 - 1;
            }
        }
    }

    fn weight(&self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    /// `∫ t^-θ dt`, written so that it is exact at θ = 1 too.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        expm1_over(log * (1.0 - self.theta)) * log
    }

    fn integral_inverse(&self, area: f64) -> f64 {
        let t = (area * (1.0 - self.theta)).max(-1.0);
        (log1p_over(t) * area).exp()
    }
}

/// `(e^x − 1) / x`, and 1 at 0.
fn expm1_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.exp_m1() / x } else { 1.0 + x / 2.0 }
}

/// `ln(1 + x) / x`, and 1 at 0.
fn log1p_over(x: f64) -> f64 {
    if x.abs() > 1e-8 { x.ln_1p() / x } else { 1.0 - x / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_is_fixed() {
        // If this fails, every seed that anybody wrote down means another history.
        let mut random = Random::new(1);
        assert_eq!([(); 3].map(|()| random.bits()), FIRST_OF_SEED_1);
    }

    const FIRST_OF_SEED_1: [u64; 3] = [14971601782005023387, 13781649495232077965, 1847458086238483744];

    #[test]
    fn zipf_has_the_shares_it_should() {
        for theta in [0.5, 1.0, 1.5] {
            let (n, draws) = (100u64, 200_000);
            let zipf = Zipf::new(n, theta);
            let mut random = Random::new(7);
            let mut seen = vec![0u32; n as usize];
            for _ in 0..draws {
                seen[zipf.sample(&mut random) as usize] += 1;
            }
            let total: f64 = (1..=n).map(|rank| (rank as f64).powf(-theta)).sum();
            for rank in [1u64, 2, 5, 50] {
                let expected = f64::from(draws) * (rank as f64).powf(-theta) / total;
                let got = f64::from(seen[rank as usize - 1]);
                assert!(
                    (got - expected).abs() < 6.0 * expected.sqrt(),
                    "θ {theta}, rank {rank}: {got} {expected}"
                );
            }
        }
    }

    #[test]
    fn zipf_over_one_rank_is_that_rank() {
        let mut random = Random::new(3);
        for theta in [0.5, 1.0, 2.5] {
            assert_eq!(Zipf::new(1, theta).sample(&mut random), 0);
        }
    }
}
