//! Certificates of true verdicts hold; what still holds after bytes were changed is true.

use crate::campaign::Wrong;
use crate::levels::shape;
use certify::{Certificate, Claim, Ruling, certify};
use evidence::check;
use history::History;
use isolation::{Budget, Level, Options, Verdict};
use oracle::oracle;
use oracle::tiny::{Random, shrink};

/// How often one certificate is changed.
const CHANGES: usize = 24;

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0xce47);
    let (shape, options) = shape(&mut random);
    let history = shape.history(seed);
    let level = *random.pick(&[Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION, Level::STRICT_SERIALIZABLE]);
    let verdict = check(&history, level, &options).verdict;
    if let Some(refusal) = refused(&history, level, &options) {
        let small = shrink(&history, |smaller| refused(smaller, level, &options).is_some());
        return Err(Wrong::with(format!("{level}, {:?}: {refusal}", options.ryow), &small));
    }
    let certificate = Certificate::new("soak", &history, level, &options, &verdict);
    let mut line = Vec::new();
    certificate.write(&mut line).map_err(|error| Wrong::new(error.to_string()))?;
    let mut comparisons = 1;
    for _ in 0..CHANGES {
        let mut changed = line.clone();
        for _ in 0..random.between(1, 3) {
            mutate(&mut changed, &mut random);
        }
        let Ok(text) = std::str::from_utf8(&changed) else { continue };
        let Ok(read) = Certificate::parse(text) else { continue };
        comparisons += 1;
        if certify(&history, &read, &Budget::unlimited()) == Ruling::Certified && !is_true(&history, &read) {
            return Err(Wrong::with(format!("certified and not true: {text}"), &history));
        }
    }
    Ok(comparisons)
}

/// Why the certificate of a verdict does not hold, if it does not.
fn refused(history: &History, level: Level, options: &Options) -> Option<String> {
    let verdict = check(history, level, options).verdict;
    let certificate = Certificate::new("soak", history, level, options, &verdict);
    match certify(history, &certificate, &Budget::unlimited()) {
        Ruling::Certified => None,
        other => Some(format!("{other:?}")),
    }
}

fn is_true(history: &History, certificate: &Certificate<'_>) -> bool {
    let Certificate { ryow, clock_skew, .. } = *certificate;
    let options = Options { ryow, clock_skew, ..Options::default() };
    let verdict = oracle(history, certificate.level, &options);
    match &certificate.claim {
        Claim::Accepted { .. } => matches!(verdict, Ok(Verdict::Accepted(_))),
        Claim::Violated { .. } => matches!(verdict, Ok(Verdict::Violated(_))),
        Claim::Undecided { .. } => true,
    }
}

/// Changes, drops, repeats or moves some bytes.
pub(crate) fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        bytes.push(random.bits() as u8);
        return;
    }
    let at = random.below(bytes.len());
    let to = (at + random.between(1, 12)).min(bytes.len());
    match random.below(6) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[at] = *random.pick(b"0123456789\"{}[],:-_.eE\\ \n\t\0\xff"),
        2 => drop(bytes.drain(at..to)),
        3 => {
            let piece = bytes[at..to].to_vec();
            bytes.splice(at..at, piece);
        }
        4 => {
            let piece: Vec<u8> = bytes.drain(at..to).collect();
            let place = random.below(bytes.len() + 1);
            bytes.splice(place..place, piece);
        }
        _ => bytes.truncate(at),
    }
}
