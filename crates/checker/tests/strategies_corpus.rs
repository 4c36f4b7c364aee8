//! Every strategy on labelled histories of the corpus: its label, or a word why not. By default small ones, a sample;
//! `TAIPAN_LONG=1` takes all up to two thousand transactions.
#![allow(clippy::print_stderr, reason = "a test says aloud what it skips and what it counted")]

use checker::{Budget, Level, Options, Strategy, Undecided, Verdict, check};
use corpus::{Label, Labelled};
use history::formats::{ReadOptions, read_path};
use std::path::Path;
use std::time::Duration;

/// The levels that the last two columns of the labels speak of; they count session order.
const LEVELS: [(usize, &str); 2] =
    [(3, "strong-session-snapshot-isolation"), (4, "strong-session-serializable")];

fn is_long() -> bool {
    std::env::var_os("TAIPAN_LONG").is_some()
}

fn sample(all: &[Labelled]) -> Vec<&Labelled> {
    let (size_max, every) = if is_long() { (2_000, 1) } else { (300, 40) };
    let small = all.iter().filter(|one| one.transactions.is_some_and(|count| count <= size_max));
    let small = small.filter(|one| LEVELS.iter().any(|&(column, _)| one.verdicts[column] != Label::Unknown));
    small.step_by(every).collect()
}

/// What a strategy says, in as many seconds.
fn answer(history: &history::History, level: Level, strategy: Strategy) -> Verdict {
    let budget = Budget::unlimited().with_timeout(Duration::from_secs(5));
    check(history, level, &Options { budget, strategy, ..Options::default() }).verdict
}

#[test]
fn every_strategy_gives_the_label() {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let all = match corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(all) => all,
        Err(missing) => return eprintln!("SKIPPED: {missing}"),
    };
    let mut wrong = Vec::new();
    let mut counts = Strategy::ALL.map(|strategy| (strategy, 0, 0));
    for labelled in sample(&all) {
        let Ok(loaded) = read_path(&labelled.path, &ReadOptions::default()) else { continue };
        for (column, name) in LEVELS {
            let label = labelled.verdicts[column];
            if label == Label::Unknown {
                continue;
            }
            let level = Level::parse(name).expect("a level of the table");
            for (strategy, agreed, open) in &mut counts {
                match (answer(&loaded.history, level, *strategy), label) {
                    (Verdict::Accepted(_), Label::Accept) | (Verdict::Violated(_), Label::Reject) => {
                        *agreed += 1
                    }
                    (Verdict::Undecided(Undecided::Unsupported(_) | Undecided::Timeout), _) => *open += 1,
                    (verdict, _) => wrong.push(format!(
                        "{}: {name}, {strategy}: labelled {label:?}, {}",
                        labelled.path.display(),
                        verdict.name()
                    )),
                }
            }
        }
    }
    for (strategy, agreed, open) in counts {
        eprintln!("{strategy}: {agreed} verdicts agree with their labels, {open} are undecided");
        assert!(agreed > 0, "{strategy} decided nothing");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
