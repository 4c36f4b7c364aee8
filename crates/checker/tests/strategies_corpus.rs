//! Every strategy on labelled histories of the corpus: its label, or a word why not. By default small ones, a sample;
//! `TAIPAN_LONG=1` takes all.
#![allow(clippy::print_stderr, reason = "a test says aloud what it skips and what it counted")]

use corpus::{Label, Labelled};
use evidence::check;
use history::formats::{ReadOptions, read_path};
use isolation::{Budget, Level, Options, Strategy, Undecided, Verdict};
use std::path::Path;
use std::time::Duration;

/// The levels that the last two columns of the labels speak of; they count session order.
const LEVELS: [(usize, &str); 2] =
    [(3, "strong-session-snapshot-isolation"), (4, "strong-session-serializable")];

fn is_long() -> bool {
    std::env::var_os("TAIPAN_LONG").is_some()
}

fn sample(all: &[Labelled]) -> Vec<&Labelled> {
    let (size_max, every) = if is_long() { (usize::MAX, 1) } else { (300, 40) };
    let small = all.iter().filter(|one| one.transactions.is_some_and(|count| count <= size_max));
    let small = small.filter(|one| LEVELS.iter().any(|&(column, _)| one.verdicts[column] != Label::Unknown));
    small.step_by(every).collect()
}

/// What a strategy says, in as many seconds.
fn answer(history: &history::History, level: Level, strategy: Strategy) -> Verdict {
    let budget = Budget::unlimited().with_timeout(Duration::from_secs(5));
    check(history, level, &Options { budget, strategy, ..Options::default() }).verdict
}

/// What the strategies said of some histories.
struct Tally {
    /// A strategy, how many of its verdicts are the label, and how many it did not give.
    counts: [(Strategy, usize, usize); Strategy::ALL.len()],
    wrong: Vec<String>,
}

impl Tally {
    fn of(some: &[&Labelled]) -> Self {
        let counts = Strategy::ALL.map(|strategy| (strategy, 0, 0));
        let mut tally = Self { counts, wrong: Vec::new() };
        for labelled in some {
            let Ok(loaded) = read_path(&labelled.path, &ReadOptions::default()) else { continue };
            for (column, name) in LEVELS {
                if labelled.verdicts[column] != Label::Unknown {
                    tally.compare(labelled, &loaded.history, name, labelled.verdicts[column]);
                }
            }
        }
        tally
    }

    fn compare(&mut self, labelled: &Labelled, history: &history::History, name: &str, label: Label) {
        let level = Level::parse(name).expect("a level of the table");
        for (strategy, agreed, open) in &mut self.counts {
            match (answer(history, level, *strategy), label) {
                (Verdict::Accepted(_), Label::Accept) | (Verdict::Violated(_), Label::Reject) => *agreed += 1,
                (
                    Verdict::Undecided(Undecided::Unsupported(_) | Undecided::Timeout | Undecided::Memory),
                    _,
                ) => {
                    *open += 1;
                }
                (verdict, _) => self.wrong.push(format!(
                    "{}: {name}, {strategy}: labelled {label:?}, {}",
                    labelled.path.display(),
                    verdict.name()
                )),
            }
        }
    }

    fn add(&mut self, other: Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts) {
            mine.1 += theirs.1;
            mine.2 += theirs.2;
        }
        self.wrong.extend(other.wrong);
    }
}

#[test]
fn every_strategy_gives_the_label() {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let all = match corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(all) => all,
        Err(missing) => return corpus::missing("corpus", &missing),
    };
    let sample = sample(&all);
    let (even, odd): (Vec<_>, Vec<_>) = sample.iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let of = |half: Vec<(usize, &&Labelled)>| {
        Tally::of(&half.into_iter().map(|(_, one)| *one).collect::<Vec<_>>())
    };
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| of(odd));
        let mut tally = of(even);
        tally.add(other.join().expect("a half that was compared"));
        tally
    });
    for (strategy, agreed, open) in tally.counts {
        eprintln!("{strategy}: {agreed} verdicts agree with their labels, {open} are undecided");
        assert!(agreed > 0, "{strategy} decided nothing");
    }
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
}
