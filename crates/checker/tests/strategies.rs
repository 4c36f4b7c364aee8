//! Every strategy against the exhaustive oracle, on random tiny histories: one verdict, and a witness that replays.
//! What a strategy does not cover it names. `TAIPAN_LONG=1` runs twenty times as many.

mod cases;

use cases::{least, seeds, strong_levels};
use certify::{Certificate, Ruling, certify};
use evidence::check;
use history::History;
use history::formats::notation;
use isolation::{Budget, Level, Options, Passes, Ryow, Strategy, Undecided, Verdict};
use oracle::oracle;
use oracle::tiny::{Shape, shrink};

/// All strategies as they are, and each without one of its passes.
fn variants() -> Vec<(Strategy, Passes)> {
    let without = |name| Passes::default().without(name).expect("it is a pass");
    let mut variants: Vec<(Strategy, Passes)> =
        Strategy::ALL.into_iter().map(|strategy| (strategy, Passes::default())).collect();
    variants.extend([
        (Strategy::Lazy, without("saturate")),
        (Strategy::EagerPairs, without("polarity")),
        (Strategy::EagerCobra, without("combine")),
        (Strategy::EagerCobra, without("prune")),
        (Strategy::EagerVbox, without("consolidate")),
        (Strategy::EagerVbox, without("prune")),
        (Strategy::EagerVeristrong, without("prune")),
        (Strategy::EagerVeristrong, without("two-width")),
        (Strategy::EagerViper, without("combine")),
        (Strategy::EagerPolysi, without("prune")),
    ]);
    variants
}

/// What is wrong with a strategy's verdict, if anything; whether it gave one.
fn fault(history: &History, level: Level, options: &Options, expected: &Verdict) -> Result<bool, String> {
    let found = check(history, level, options).verdict;
    match (expected, &found) {
        (Verdict::Violated(_), Verdict::Violated(_)) => Ok(true),
        (Verdict::Accepted(_), Verdict::Accepted(_)) => {
            let certificate = Certificate::new("h", history, level, options, &found);
            match certify(history, &certificate, &Budget::unlimited()) {
                Ruling::Certified => Ok(true),
                other => Err(format!("its witness does not replay: {other:?}")),
            }
        }
        (_, Verdict::Undecided(Undecided::Unsupported(why))) if why.contains(options.strategy.name()) => {
            Ok(false)
        }
        (Verdict::Undecided(_), _) => Ok(false),
        _ => Err(format!("the oracle says {}, the strategy {}", expected.name(), found.name())),
    }
}

/// Compares all strategies; how many verdicts each gave.
fn compare(shape: &Shape, seeds: std::ops::Range<u64>, options: &Options) -> Vec<(Strategy, usize)> {
    let variants = variants();
    let mut counts: Vec<(Strategy, usize)> =
        Strategy::ALL.into_iter().map(|strategy| (strategy, 0)).collect();
    for seed in seeds {
        let history = shape.history(seed);
        for level in strong_levels() {
            let Ok(expected) = oracle(&history, level, options) else { continue };
            for &(strategy, passes) in &variants {
                let options = Options { strategy, passes, ..options.clone() };
                match fault(&history, level, &options, &expected) {
                    Ok(decided) => {
                        let count = counts.iter_mut().find(|(other, _)| *other == strategy);
                        count.expect("all strategies are counted").1 += usize::from(decided);
                    }
                    Err(what) => fail(&history, level, &options, &what, seed),
                }
            }
        }
    }
    counts
}

fn fail(history: &History, level: Level, options: &Options, what: &str, seed: u64) {
    let is_faulty = |smaller: &History| {
        oracle(smaller, level, options)
            .is_ok_and(|expected| fault(smaller, level, options, &expected).is_err())
    };
    let small = shrink(history, is_faulty);
    panic!(
        "seed {seed} at {level}, {}, {:?}: {what}\n{}",
        options.strategy,
        options.passes,
        notation::to_string(&small)
    );
}

/// Nobody refuses everything.
fn assert_decided(counts: &[(Strategy, usize)], normal: usize) {
    for &(strategy, count) in counts {
        assert!(count >= least(normal), "{strategy} decided only {count}");
    }
}

/// Who compares strategies, or a strategy with and without a pass, compares what the names say: some questions are answered
/// before the search where a strategy prunes, and none where it does not.
#[test]
fn who_prunes_answers_questions_before_the_search() {
    let shape = Shape { unique_values: 100, unknown: 0, transactions: (4, 8), ..Shape::registers() };
    let level = Level { session: true, ..Level::SERIALIZABLE };
    let prunes = [Strategy::EagerCobra, Strategy::EagerVeristrong];
    let none = Passes::default().without("prune").expect("it is a pass");
    let cases = prunes.iter().flat_map(|&strategy| [(strategy, Passes::default()), (strategy, none)]);
    for (strategy, passes) in cases.chain([(Strategy::EagerPairs, Passes::default())]) {
        let (mut questions, mut open) = (0.0, 0.0);
        for seed in seeds(100) {
            let options = Options { strategy, passes, ..Options::default() };
            let stats = check(&shape.history(seed), level, &options).stats;
            let number = |name: &str| stats.entries.iter().find(|it| it.0 == name).map(|it| it.1);
            // Where a contradiction is found on the way nothing is left to count.
            if let (Some(all), Some(left)) = (number("questions"), number("open")) {
                (questions, open) = (questions + all, open + left);
            }
        }
        let is_pruned = passes == Passes::default() && prunes.contains(&strategy);
        assert!(questions > 0.0 && (open < questions) == is_pruned, "{strategy}: {open} of {questions}");
    }
}

#[test]
fn registers() {
    assert_decided(&compare(&Shape::registers(), seeds(400), &Options::default()), 300);
}

#[test]
fn registers_with_unique_values_and_known_outcomes() {
    let shape = Shape { unique_values: 100, unknown: 0, transactions: (3, 7), ..Shape::registers() };
    assert_decided(&compare(&shape, seeds(400), &Options::default()), 1_200);
}

#[test]
fn lists() {
    assert_decided(&compare(&Shape::lists(), seeds(400), &Options::default()), 300);
}

#[test]
fn contended_keys() {
    let shape =
        Shape { transactions: (4, 8), keys_max: 2, unknown: 0, unique_values: 100, ..Shape::registers() };
    assert_decided(&compare(&shape, seeds(250), &Options::default()), 700);
}

#[test]
fn duplicates_and_unknown_outcomes() {
    let shape = Shape { unique_values: 0, unknown: 30, transactions: (3, 7), ..Shape::registers() };
    let counts = compare(&shape, seeds(300), &Options::default());
    assert!(counts.iter().filter(|(_, count)| *count > least(1_500)).count() >= 4, "{counts:?}");
}

#[test]
fn ranges_and_predicates() {
    for shape in [Shape::ranges(), Shape::predicates()] {
        let counts = compare(&shape, seeds(100), &Options::default());
        assert!(counts.iter().filter(|(_, count)| *count > least(100)).count() >= 4, "{counts:?}");
    }
}

#[test]
fn own_writes_by_every_policy() {
    for ryow in [Ryow::May, Ryow::Never] {
        let options = Options { ryow, ..Options::default() };
        compare(&Shape { ryow, ..Shape::registers() }, seeds(100), &options);
        compare(&Shape { ryow, ..Shape::lists() }, seeds(100), &options);
    }
}

#[test]
fn clock_skew() {
    let options = Options { clock_skew: 8, ..Options::default() };
    compare(&Shape { clocks: 100, ..Shape::registers() }, seeds(100), &options);
}

#[test]
fn what_is_not_covered_is_named() {
    let says = |text: &str, strategy, level, sentence: &str| {
        let history = notation::parse(text).expect("the notation is right");
        let options = Options { strategy, ..Options::default() };
        match check(&history, level, &options).verdict {
            Verdict::Undecided(why) => assert_eq!(why.to_string(), sentence),
            other => panic!("{strategy}: {}", other.name()),
        }
    };
    let plain = "s1: w(x,1)\ns2: r(x,1)\n";
    let twice = "s1: w(x,1)\ns2: w(x,1)\ns3: r(x,1)\n";
    let unknown = "s1: w(x,1)?\ns2: w(x,1)\ns3: r(x,1)\n";
    let (ser, si) = (Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION);
    says(plain, Strategy::EagerCobra, si, "eager-cobra decides only serializable levels");
    says(plain, Strategy::EagerViper, ser, "eager-viper decides only levels of snapshot isolation");
    says(plain, Strategy::EagerPolysi, ser, "eager-polysi decides only levels of snapshot isolation");
    let causal = Level::parse("causal").expect("it is a level");
    let weaker = "eager-vbox decides serializability, snapshot isolation and their variants, not causal";
    says(plain, Strategy::EagerVbox, causal, weaker);
    let ambiguous = "needs reads whose writer is known; a value was written twice";
    says(twice, Strategy::EagerCobra, ser, &format!("eager-cobra {ambiguous}"));
    says(twice, Strategy::EagerPolysi, si, &format!("eager-polysi {ambiguous}"));
    says(unknown, Strategy::EagerViper, si, &format!("eager-viper {ambiguous}"));
}

#[test]
fn names_are_read_back() {
    for strategy in Strategy::ALL {
        assert_eq!(strategy.name().parse(), Ok(strategy));
    }
    let unknown = "eager".parse::<Strategy>().expect_err("it is no strategy").to_string();
    assert!(unknown.contains("eager-pairs, eager-cobra"), "{unknown}");
    for name in Passes::NAMES {
        assert_ne!(Passes::default().without(name), Ok(Passes::default()));
    }
    assert!(Passes::default().without("nothing").is_err());
}
