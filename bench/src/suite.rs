//! Everything in one run: inputs are made or found, every benchmark runs, and what came out is compared with the
//! recorded baseline and written down as Markdown, as pictures and as one page.
//!
//! The nouns: a [`Case`] is one measurement, a process of its own where it can be; a [`Run`] collects them; `baseline`
//! keeps cases from one run to the next; `plot` draws them and `page` writes them down.
//!
//! *Ratios*: seconds belong to a machine and to its load. What is compared is a case's CPU time divided by that of merely
//! reading the same file in the same process.

mod baseline;
mod cases;
mod page;
mod plot;
mod process;
pub(crate) mod rivals;

use crate::checks::machine;
use crate::flags::SuiteFlags;
use isolation::VerdictKind;
use rivals::Rival;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use process::measure_one;

/// One measurement.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Case {
    /// The benchmark it belongs to.
    pub(crate) benchmark: String,
    /// Whose line it is in a picture: a level, a strategy, a program.
    pub(crate) series: String,
    /// On what it was measured.
    pub(crate) input: String,
    /// How large that is.
    pub(crate) transactions: usize,
    /// What came out.
    pub(crate) verdict: String,
    /// CPU seconds to merely read the input.
    pub(crate) read_s: f64,
    /// CPU seconds in all, reading included.
    pub(crate) cpu_s: f64,
    /// Seconds on the clock.
    pub(crate) wall_s: f64,
    /// The most memory the process had.
    pub(crate) peak_mb: f64,
    /// How much longer the slowest of several runs took than the best, of its CPU time.
    pub(crate) spread: f64,
    /// Milliseconds of stages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) stages: Vec<(String, f64)>,
    /// What was seen in the course of it: how much was done, and megabytes then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) samples: Vec<(f64, f64)>,
}

impl Case {
    /// CPU time as a multiple of reading.
    pub(crate) fn ratio(&self) -> f64 {
        self.cpu_s / self.read_s.max(1e-4)
    }

    /// By what it is found again.
    fn key(&self) -> (&str, &str, &str) {
        (&self.benchmark, &self.series, &self.input)
    }

    /// Whether there was an answer.
    pub(crate) fn is_decided(&self) -> bool {
        !self.verdict.starts_with(VerdictKind::Undecided.name())
    }
}

/// What a run has come to so far.
pub(crate) struct Run {
    /// Where inputs are made.
    scratch: tempfile::TempDir,
    /// Histories of the corpus, if it is there.
    corpus: Vec<PathBuf>,
    /// Sizes are divided by this.
    divisor: usize,
    rivals: Vec<Rival>,
    cases: Vec<Case>,
    /// What older benchmarks print, by title.
    printed: Vec<(String, String)>,
}

impl Run {
    fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    fn size(&self, transactions: usize) -> usize {
        (transactions / self.divisor).max(100)
    }

    fn add(&mut self, case: Case) {
        println!(
            "{:<12} {:<28} {:<34} {:>9} {:<10} {:>8.3} s {:>7.1}× {:>7.0} MB",
            case.benchmark,
            case.series,
            case.input,
            case.transactions,
            case.verdict,
            case.cpu_s,
            case.ratio(),
            case.peak_mb
        );
        self.cases.push(case);
    }
}

/// A benchmark.
struct Benchmark {
    name: &'static str,
    about: &'static str,
    run: fn(&mut Run) -> Result<(), Box<dyn Error>>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark { name: "growth", about: "How checks grow with the history", run: cases::growth },
    Benchmark { name: "stages", about: "What the stages of a check take", run: cases::stages },
    Benchmark { name: "every-level", about: "Every level", run: cases::every_level },
    Benchmark { name: "workloads", about: "Every workload", run: cases::workloads },
    Benchmark { name: "corpus", about: "Histories of papers and other tools", run: cases::corpus },
    Benchmark { name: "side-by-side", about: "Strategies beside each other", run: cases::side_by_side },
    Benchmark { name: "ablations", about: "What single passes are worth", run: cases::ablations },
    Benchmark { name: "online", about: "The online checker", run: cases::online },
    Benchmark { name: "rivals", about: "Other programs on the same files", run: rivals::run },
    Benchmark { name: "printed", about: "The tables of the other commands", run: cases::printed },
];

/// The names of the benchmarks, and what they measure.
pub(crate) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    BENCHMARKS.iter().map(|it| (it.name, it.about))
}

/// Draws the picture of the README from the recorded baseline.
pub(crate) fn chart(results: &Path) -> Result<(), Box<dyn Error>> {
    let cases = baseline::load(&results.join("baseline.jsonl"))?;
    let file = results.join("rivals.svg");
    std::fs::write(&file, page::rivals_picture(&cases))?;
    println!("written: {}", file.display());
    Ok(())
}

/// Runs one benchmark, or all, and writes down what came out.
pub(crate) fn run(name: &str, flags: SuiteFlags) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let scratch = tempfile::tempdir()?;
    let corpus = crate::checks::inputs::corpus(scratch.path()).unwrap_or_else(|missing| {
        eprintln!("without the corpus: {missing}");
        Vec::new()
    });
    let mut run = Run {
        scratch,
        corpus,
        divisor: if flags.small { 10 } else { 1 },
        rivals: flags.peer,
        cases: Vec::new(),
        printed: Vec::new(),
    };
    for benchmark in BENCHMARKS.iter().filter(|it| name == "all" || it.name == name) {
        let begun = Instant::now();
        (benchmark.run)(&mut run)?;
        println!("== {}: {:.0} s\n", benchmark.name, begun.elapsed().as_secs_f64());
    }
    std::fs::create_dir_all(&flags.results)?;
    let recorded = flags.results.join("baseline.jsonl");
    let changes = baseline::compare(&baseline::load(&recorded)?, &run.cases);
    println!("{}", changes.summary());
    if flags.record {
        baseline::save(&recorded, &run.cases)?;
    }
    let told = page::Told {
        machine: machine::describe(),
        load: machine::load(),
        minutes: started.elapsed().as_secs_f64() / 60.0,
        cases: &run.cases,
        printed: &run.printed,
        changes: &changes,
        is_baseline: flags.record,
    };
    told.write(&flags.results)?;
    println!("written: {}", flags.results.display());
    Ok(())
}
