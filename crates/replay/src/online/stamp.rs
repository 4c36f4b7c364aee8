//! A timestamp in 12 bytes that compares word by word.

use history::Timestamp;

/// A database timestamp. The words are those of the physical part, with its sign turned so that they
/// compare without it, and the logical part.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Stamp {
    high: u32,
    low: u32,
    logical: u32,
}

const SIGN: u64 = 1 << 63;

impl Stamp {
    /// Before all others.
    pub(super) const MIN: Self = Self { high: 0, low: 0, logical: 0 };
    /// After all others.
    pub(super) const MAX: Self = Self { high: u32::MAX, low: u32::MAX, logical: u32::MAX };

    pub(super) fn words(self) -> [u32; 3] {
        [self.high, self.low, self.logical]
    }

    pub(super) fn from_words([high, low, logical]: [u32; 3]) -> Self {
        Self { high, low, logical }
    }
}

impl Ord for Stamp {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let physical = |stamp: &Self| u64::from(stamp.high) << 32 | u64::from(stamp.low);
        physical(self).cmp(&physical(other)).then(self.logical.cmp(&other.logical))
    }
}

impl PartialOrd for Stamp {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl From<Timestamp> for Stamp {
    #[inline]
    fn from(time: Timestamp) -> Self {
        let bits = time.physical as u64 ^ SIGN;
        Self { high: (bits >> 32) as u32, low: bits as u32, logical: time.logical }
    }
}

impl From<Stamp> for Timestamp {
    fn from(stamp: Stamp) -> Self {
        let bits = (u64::from(stamp.high) << 32 | u64::from(stamp.low)) ^ SIGN;
        Timestamp { physical: bits as i64, logical: stamp.logical }
    }
}

impl std::fmt::Debug for Stamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", Timestamp::from(*self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_compare_as_timestamps_do() {
        let times = [i64::MIN, -5, -1, 0, 1, 1 << 33, i64::MAX];
        let all: Vec<Timestamp> = times
            .iter()
            .flat_map(|&physical| [0, 7, u32::MAX].map(|logical| Timestamp { physical, logical }))
            .collect();
        for a in &all {
            assert_eq!(Timestamp::from(Stamp::from(*a)), *a);
            for b in &all {
                assert_eq!(Stamp::from(*a).cmp(&Stamp::from(*b)), a.cmp(b), "{a} {b}");
            }
        }
    }
}
