//! Strategies against each other, and what one level says against what another does.

use crate::campaign::Wrong;
use crate::simulated;
use certify::{Certificate, Ruling, certify};
use evidence::check;
use isolation::{Budget, Level, Options, Strategy, Verdict, implications};
use oracle::tiny::Random;
use std::time::Duration;

/// What takes longer is left undecided.
const TIME_MAX: Duration = Duration::from_secs(1);

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0x57a7e6);
    let (history, made) = simulated::history(&mut random, (20, 300));
    let options = || Options { budget: Budget::unlimited().with_timeout(TIME_MAX), ..Options::default() };
    let mut comparisons = 0;
    for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION, Level::STRICT_SERIALIZABLE] {
        let mut first: Option<(Strategy, &'static str)> = None;
        for strategy in Strategy::ALL {
            let options = Options { strategy, ..options() };
            let verdict = check(&history, level, &options).verdict;
            if let Verdict::Undecided(_) = verdict {
                continue;
            }
            let certificate = Certificate::new("soak", &history, level, &options, &verdict);
            if let Ruling::Refused(refusal) = certify(&history, &certificate, &options.budget) {
                return Err(Wrong::with(format!("{level} by {strategy}: {refusal:?}; {made}"), &history));
            }
            comparisons += 1;
            let (other, expected) = *first.get_or_insert((strategy, verdict.name()));
            if expected != verdict.name() {
                let what = format!("{level}: {other} says {expected}, {strategy} {}; {made}", verdict.name());
                return Err(Wrong::with(what, &history));
            }
        }
    }
    // What a level accepts, weaker ones do.
    let verdicts: Vec<(Level, Verdict)> =
        Level::all().map(|level| (level, check(&history, level, &options()).verdict)).collect();
    let of = |level: Level| verdicts.iter().find(|(other, _)| *other == level).map(|(_, verdict)| verdict);
    for it in implications().iter().filter(|it| !it.without_predicates) {
        if let (Some(Verdict::Accepted(_)), Some(Verdict::Violated(_))) = (of(it.stronger), of(it.weaker)) {
            let what = format!("{} is accepted and {} violated; {made}", it.stronger, it.weaker);
            return Err(Wrong::with(what, &history));
        }
        comparisons += 1;
    }
    Ok(comparisons)
}
