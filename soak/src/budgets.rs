//! Work that a budget ends at any place says what it says without a budget, or nothing.

#[path = "../../crates/checker/tests/budgets/compare.rs"]
mod compare;

use crate::campaign::Wrong;
use crate::levels::shape;
use crate::simulated;
use compare::Comparison;
use isolation::{Level, Options};
use oracle::tiny::Random;

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0xb0d9e7);
    let levels: Vec<Level> = Level::all().collect();
    let level = *random.pick(&levels);
    // Tiny ones end at any place as larger ones do, and a thousand times sooner.
    let (history, options, made) = if random.chance(96) {
        let (shape, options) = shape(&mut random);
        (shape.history(seed), options, String::new())
    } else {
        let (history, made) = simulated::history(&mut random, (5, 60));
        (history, Options::default(), made)
    };
    // Whatever tries every order of the larger ones would not end.
    let what = random.below(if made.is_empty() { 40 } else { 31 });
    let mut comparison = Comparison { places: 8, random: &mut random, cases: 0 };
    let strong = [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION, Level::STRICT_SERIALIZABLE];
    let compared = match what {
        0 => comparison.survey(&history, &options),
        1..=4 => {
            let level = *comparison.random.pick(&strong);
            comparison.strategies(&history, level, &options)
        }
        5..=30 => comparison.verdicts(&history, level, &options),
        _ => comparison.everything(&history, level, &options),
    };
    compared.map_err(|what| Wrong::with(format!("{level}, {:?}: {what}; {made}", options.ryow), &history))?;
    Ok(comparison.cases)
}
