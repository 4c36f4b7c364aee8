//! Every level against the exhaustive oracle.

use crate::campaign::Wrong;
use evidence::check;
use history::History;
use isolation::{Level, Options, Ryow, Verdict};
use oracle::oracle;
use oracle::tiny::{Mix, Random, Shape, shrink};

/// A shape of tiny histories, drawn with a policy on own writes.
pub(crate) fn shape(random: &mut Random) -> (Shape, Options) {
    let ryow = *random.pick(&[Ryow::Must, Ryow::Must, Ryow::Must, Ryow::May, Ryow::Never]);
    let open = Mix { read: 5, append: 4, write: 1, delete: 1, ..Mix::default() };
    let updates = Mix { read: 4, write: 2, query: 1, update: 4, delete_where: 2, ..Mix::default() };
    let asks = Mix { read: 1, write: 2, query: 4, update: 3, delete_where: 2, ..Mix::default() };
    let scans = Mix { read: 3, append: 4, scan: 2, iterate: 1, ..Mix::default() };
    let shapes = [
        Shape::registers(),
        Shape::lists(),
        Shape::ranges(),
        Shape::predicates(),
        Shape::everything(),
        Shape { unique_values: 0, unknown: 30, ..Shape::registers() },
        Shape { transactions: (4, 6), keys_max: 2, ..Shape::registers() },
        Shape { ops_max: 6, keys_max: 2, ..Shape::lists() },
        Shape { mix: open, unique_values: 30, unknown: 20, keys_max: 2, ..Shape::lists() },
        Shape { mix: updates, unknown: 15, keys_max: 3, ops_max: 3, ..Shape::predicates() },
        Shape { clocks: 100, ..Shape::registers() },
        Shape { mix: asks, transactions: (1, 3), keys_max: 2, spoiled: 80, ..Shape::predicates() },
        Shape { mix: asks, transactions: (1, 3), keys_max: 2, hidden: 30, ..Shape::predicates() },
        Shape { mix: scans, keys_max: 2, spoiled: 50, ..Shape::lists() },
        Shape { mix: scans, keys_max: 2, mixed_up: 80, ops_max: 5, ..Shape::lists() },
        Shape { mix: scans, keys_max: 2, mixed_up: 80, unique_values: 100, unknown: 40, ..Shape::lists() },
    ];
    let shape = random.pick(&shapes).clone();
    let (least, most) = shape.transactions;
    let shape = Shape { transactions: (least.min(5), most.min(5)), ..shape };
    let skew = if random.chance(10) { 3 } else { 0 };
    (shape.with_ryow(ryow), Options { ryow, clock_skew: skew, ..Options::default() })
}

fn differs(history: &History, level: Level, options: &Options) -> Option<String> {
    let expected = match oracle(history, level, options) {
        Ok(Verdict::Undecided(_)) | Err(_) => return None,
        Ok(verdict) => verdict,
    };
    let found = check(history, level, options).verdict;
    let same = expected.name() == found.name();
    (!same).then(|| {
        format!(
            "{level}, {:?}: the oracle says {}, the checker {}",
            options.ryow,
            expected.name(),
            found.name()
        )
    })
}

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0x1e7e15);
    let (shape, options) = shape(&mut random);
    let history = shape.history(seed);
    let mut comparisons = 0;
    for level in Level::all() {
        if let Some(what) = differs(&history, level, &options) {
            let small = shrink(&history, |smaller| differs(smaller, level, &options).is_some());
            return Err(Wrong::with(what, &small));
        }
        comparisons += 1;
    }
    Ok(comparisons)
}
