//! Random histories with timestamps, and faults to plant in them.

use history::{Name, Status, Timestamp};
use oracle::tiny::{Random, Shape, Sketch};
use std::collections::BTreeMap;

/// How timestamps are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// How far apart they are on average; small numbers make them equal often.
    pub(crate) spread: usize,
    /// How many transactions keep to the order of their session, in percent of histories.
    pub(crate) in_session: u32,
    /// How many have a logical part, in percent of histories.
    pub(crate) hybrid: u32,
}

impl Times {
    pub(crate) const CROWDED: Self = Self { spread: 1, in_session: 70, hybrid: 30 };
    pub(crate) const APART: Self = Self { spread: 1000, in_session: 100, hybrid: 0 };
}

/// A random sketch with timestamps.
pub(crate) fn sketch(shape: &Shape, times: Times, seed: u64) -> Sketch {
    let mut random = Random::new(seed ^ 0x7157);
    random.bits();
    let mut sketch = shape.sketch(seed);
    give_times(&mut sketch, times, &mut random);
    sketch
}

fn give_times(sketch: &mut Sketch, times: Times, random: &mut Random) {
    let count = sketch.transactions.len();
    let range = (count * times.spread).max(1);
    let in_session = random.chance(times.in_session);
    let hybrid = random.chance(times.hybrid);
    let mut last: BTreeMap<Name, usize> = BTreeMap::new();
    let stamp = |at: usize| match hybrid {
        true => Timestamp { physical: (at / 3) as i64, logical: (at % 3) as u32 },
        false => Timestamp::from(at as i64),
    };
    for (place, txn) in sketch.transactions.iter_mut().enumerate() {
        let earliest = last.get(&txn.session).copied().filter(|_| in_session).unwrap_or(0);
        // Mostly in the order of the sketch, so that its results are often right.
        let around = (place * times.spread + random.below(3 * times.spread + 1)).min(range);
        let start = if random.chance(80) { around.max(earliest) } else { earliest + random.below(range) };
        let commit = start + random.below(4 * times.spread + 1);
        let known = txn.status == Status::Committed || random.chance(50);
        txn.db = known.then(|| (stamp(start), stamp(commit)));
        if txn.status == Status::Committed {
            last.insert(txn.session.clone(), commit);
        }
    }
}
