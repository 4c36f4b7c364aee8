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
mod rivals;

use crate::checks::machine;
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
    run: fn(&mut Run) -> Result<(), Box<dyn Error>>,
}

const BENCHMARKS: &[Benchmark] = &[
    Benchmark { name: "growth", run: cases::growth },
    Benchmark { name: "stages", run: cases::stages },
    Benchmark { name: "every-level", run: cases::every_level },
    Benchmark { name: "workloads", run: cases::workloads },
    Benchmark { name: "corpus", run: cases::corpus },
    Benchmark { name: "side-by-side", run: cases::side_by_side },
    Benchmark { name: "ablations", run: cases::ablations },
    Benchmark { name: "online", run: cases::online },
    Benchmark { name: "rivals", run: rivals::run },
    Benchmark { name: "printed", run: cases::printed },
];

/// The names of the benchmarks of a run.
pub(crate) fn names() -> Vec<&'static str> {
    BENCHMARKS.iter().map(|it| it.name).collect()
}

/// What was asked for.
struct Request {
    wanted: Vec<&'static Benchmark>,
    results: PathBuf,
    rivals: Vec<Rival>,
    divisor: usize,
    is_baseline: bool,
}

impl Request {
    fn parse(name: &str, mut arguments: &[&str]) -> Result<Self, Box<dyn Error>> {
        let wanted: Vec<&Benchmark> =
            BENCHMARKS.iter().filter(|it| name == "all" || it.name == name).collect();
        let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("results");
        let mut request = Self { wanted, results, rivals: Vec::new(), divisor: 1, is_baseline: false };
        loop {
            arguments = match arguments {
                [] => return Ok(request),
                ["--peer", given, rest @ ..] => {
                    request.rivals.push(given.parse()?);
                    rest
                }
                ["--results", folder, rest @ ..] => {
                    request.results = PathBuf::from(folder);
                    rest
                }
                ["--small", rest @ ..] => {
                    request.divisor = 10;
                    rest
                }
                ["--record", rest @ ..] => {
                    request.is_baseline = true;
                    rest
                }
                _ => return Err(crate::USAGE.into()),
            };
        }
    }
}

/// Draws the picture of the README from the recorded baseline.
pub(crate) fn chart(results: &str) -> Result<(), Box<dyn Error>> {
    let results = Path::new(results);
    let cases = baseline::load(&results.join("baseline.jsonl"))?;
    let file = results.join("rivals.svg");
    std::fs::write(&file, page::rivals_picture(&cases))?;
    println!("written: {}", file.display());
    Ok(())
}

/// Runs one benchmark, or all, and writes down what came out.
pub(crate) fn run(name: &str, arguments: &[&str]) -> Result<(), Box<dyn Error>> {
    let request = Request::parse(name, arguments)?;
    let started = Instant::now();
    let scratch = tempfile::tempdir()?;
    let corpus = crate::checks::inputs::corpus(scratch.path()).unwrap_or_else(|missing| {
        eprintln!("without the corpus: {missing}");
        Vec::new()
    });
    let mut run = Run {
        scratch,
        corpus,
        divisor: request.divisor,
        rivals: request.rivals,
        cases: Vec::new(),
        printed: Vec::new(),
    };
    for benchmark in &request.wanted {
        let begun = Instant::now();
        (benchmark.run)(&mut run)?;
        println!("== {}: {:.0} s\n", benchmark.name, begun.elapsed().as_secs_f64());
    }
    std::fs::create_dir_all(&request.results)?;
    let recorded = request.results.join("baseline.jsonl");
    let changes = baseline::compare(&baseline::load(&recorded)?, &run.cases);
    println!("{}", changes.summary());
    if request.is_baseline {
        baseline::save(&recorded, &run.cases)?;
    }
    let told = page::Told {
        machine: machine::describe(),
        load: machine::load(),
        minutes: started.elapsed().as_secs_f64() / 60.0,
        cases: &run.cases,
        printed: &run.printed,
        changes: &changes,
        is_baseline: request.is_baseline,
    };
    told.write(&request.results)?;
    println!("written: {}", request.results.display());
    Ok(())
}
