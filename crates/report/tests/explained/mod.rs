//! A tiny history as `taipan explain` tells it.

use evidence::{check, look_closer, reduce};
use history::formats::notation;
use isolation::{Level, Options, Verdict};
use taipan_report::{Cost, Finding, Part};

/// What is found in a history at a level, with its smallest violated part.
pub(crate) fn explained(file: &str, level: &str, text: &str) -> Finding {
    let history = notation::parse(text).expect("the examples are well written");
    let level = Level::parse(level).expect("the examples name levels");
    let options = Options::default();
    let judge = |part: &history::History| check(part, level, &options).verdict;
    let verdict = judge(&history);
    let finding = Finding::new(file, isolation::Claim::new(level), &history, &verdict, Cost::default());
    let Verdict::Violated(evidence) = verdict else { panic!("it is {}: {text}", finding.verdict) };
    let reduced =
        reduce(&history, level, &options, &evidence, judge).expect("the core is violated by itself");
    let closer = look_closer(&reduced.history, &options, judge);
    finding.retold(&history, &reduced).with_part(Part::new(&reduced, &closer))
}
