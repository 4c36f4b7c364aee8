//! What checks cost: CPU time, wall time and peak memory of a process that reads one history and checks it at one
//! level, and how that compares with merely reading the file.
//!
//! The histories are those that papers and other checkers measure with, where the corpus is there (`TAIPAN_CORPUS`,
//! else `../shared/corpus` beside the workspace), and generated ones: repeated values, a million transactions valid
//! and with one violation planted, growth from small to large, heavy contention. Every measurement is a process of
//! its own, best of several where it is short.

pub(crate) mod inputs;
pub(crate) mod machine;

use crate::flags::ChecksFlags;
use clap::ValueEnum;
use cpu_time::ProcessTime;
use history::formats::{ReadOptions, read_path};
use inputs::{Input, Place};
use isolation::{Budget, Level, Options, Strategy, Verdict};
use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Extent {
    /// The corpus and generated histories of up to 100k transactions; well under a minute.
    Short,
    /// Also a million transactions.
    Full,
}

/// What one process took.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    transactions: usize,
    pub(crate) verdict: String,
    core: Option<usize>,
    pub(crate) read_s: f64,
    pub(crate) cpu_s: f64,
    wall_s: f64,
    pub(crate) peak_mb: Option<f64>,
}

/// Shorter checks are repeated, and the best one counts.
const REPEATED_UNDER_S: f64 = 1.0;
const REPEATS: usize = 3;

pub(crate) fn run(flags: &ChecksFlags) -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let corpus = inputs::corpus(scratch.path());
    if let Err(missing) = &corpus {
        eprintln!("without the corpus: {missing}");
    }
    let corpus = corpus.unwrap_or_default();
    let machine = machine::describe();
    println!("{machine}");
    println!("{}", row(&HEADERS.map(str::to_owned)));
    let mut table = format!(
        "# What checks cost\n\n{machine}\n\n| {} |\n|{}\n",
        HEADERS.join(" | "),
        "---|".repeat(HEADERS.len())
    );
    for input in inputs::all() {
        let chosen = flags.only.as_ref().is_none_or(|only| input.name.contains(only.as_str()));
        if input.extent > flags.extent || !chosen {
            continue;
        }
        let Some(file) = locate(&input, &corpus, scratch.path())? else { continue };
        for &strategy in &flags.strategies.0 {
            let columns = match measure(&file, &input, strategy, flags.limit) {
                Ok(measured) => cells(&input, strategy, &measured),
                Err(error) => {
                    eprintln!("{}: {error}", input.name);
                    continue;
                }
            };
            println!("{}", row(&columns));
            writeln!(table, "| {} |", columns.join(" | "))?;
        }
        if matches!(input.place, Place::Generated(_)) && input.is_last_use {
            std::fs::remove_file(&file)?;
        }
    }
    if let Some(path) = &flags.table {
        std::fs::write(path, table)?;
    }
    Ok(())
}

/// The file of an input; none if the corpus does not have it.
fn locate(input: &Input, corpus: &[PathBuf], scratch: &Path) -> Result<Option<PathBuf>, Box<dyn Error>> {
    match &input.place {
        Place::Corpus(ending) => {
            let is_it = |path: &&PathBuf| path.to_string_lossy().trim_end_matches('/').ends_with(ending);
            Ok(corpus.iter().find(is_it).cloned())
        }
        Place::Generated(generated) => {
            let path = scratch.join(format!("{}.jsonl", generated.file));
            if !path.exists() {
                generated.write(&path)?;
            }
            Ok(Some(path))
        }
    }
}

fn measure(file: &Path, input: &Input, strategy: Strategy, limit_s: u64) -> Result<Measured, Box<dyn Error>> {
    let mut best: Option<Measured> = None;
    for _ in 0..REPEATS {
        let measured = in_a_process(file, input.level, strategy, limit_s)?;
        let enough = measured.cpu_s > REPEATED_UNDER_S;
        if best.as_ref().is_none_or(|best| measured.cpu_s < best.cpu_s) {
            best = Some(measured);
        }
        if enough {
            break;
        }
    }
    best.ok_or_else(|| "nothing was measured".into())
}

pub(crate) fn in_a_process(
    file: &Path,
    level: &str,
    strategy: Strategy,
    limit_s: u64,
) -> Result<Measured, Box<dyn Error>> {
    let started = Instant::now();
    let output = Command::new(std::env::current_exe()?)
        .arg("check-one")
        .arg(file)
        .args([level, &limit_s.to_string(), strategy.name()])
        .output()?;
    let wall_s = started.elapsed().as_secs_f64();
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    let line = String::from_utf8(output.stdout)?;
    let fields: Vec<&str> = line.trim().splitn(6, ' ').collect();
    let [transactions, core, read_s, cpu_s, peak_mb, verdict] = fields[..] else {
        return Err(format!("cannot read {line:?}").into());
    };
    Ok(Measured {
        transactions: transactions.parse()?,
        verdict: verdict.to_owned(),
        core: core.parse().ok(),
        read_s: read_s.parse()?,
        cpu_s: cpu_s.parse()?,
        wall_s,
        peak_mb: peak_mb.parse().ok(),
    })
}

/// The process that is measured: reads, checks, prints one line.
pub(crate) fn check_one(
    file: &Path,
    level: &str,
    limit_s: u64,
    strategy: Strategy,
) -> Result<(), Box<dyn Error>> {
    let started = ProcessTime::now();
    let loaded = read_path(file, &ReadOptions { lenient: true, ..ReadOptions::default() })?;
    let read_s = started.elapsed().as_secs_f64();
    let budget = Budget::unlimited().with_timeout(Duration::from_secs(limit_s));
    let options = Options { budget, strategy, ..Options::default() };
    let level = Level::parse(level).map_err(|unknown| unknown.to_string())?;
    let outcome = evidence::check(&loaded.history, level, &options);
    let cpu_s = started.elapsed().as_secs_f64();
    let core = match &outcome.verdict {
        Verdict::Violated(evidence) => evidence.transactions.len().to_string(),
        _ => "-".to_owned(),
    };
    let verdict = match &outcome.verdict {
        Verdict::Undecided(why) => format!("undecided: {why}"),
        other => other.name().to_owned(),
    };
    let peak = crate::memory::resident_peak().map_or("-".to_owned(), |bytes| format!("{:.1}", bytes / 1e6));
    println!("{} {core} {read_s:.4} {cpu_s:.4} {peak} {verdict}", loaded.history.len());
    // Giving the memory back is no part of a check.
    std::mem::forget((loaded, outcome));
    Ok(())
}

const HEADERS: [&str; 11] = [
    "history",
    "level",
    "strategy",
    "transactions",
    "verdict",
    "core",
    "read s",
    "in all s",
    "× reading",
    "wall s",
    "peak MB",
];

fn cells(input: &Input, strategy: Strategy, measured: &Measured) -> [String; 11] {
    let level = input
        .level
        .strip_prefix("strong-session-")
        .map_or(input.level.to_owned(), |base| format!("{base}, sessions"));
    [
        input.name.to_owned(),
        level,
        strategy.to_string(),
        measured.transactions.to_string(),
        measured.verdict.clone(),
        measured.core.map_or("–".to_owned(), |core| core.to_string()),
        format!("{:.3}", measured.read_s),
        format!("{:.3}", measured.cpu_s),
        format!("{:.1}", measured.cpu_s / measured.read_s.max(1e-4)),
        format!("{:.3}", measured.wall_s),
        measured.peak_mb.map_or("–".to_owned(), |peak| format!("{peak:.0}")),
    ]
}

fn row(columns: &[String; 11]) -> String {
    let mut line = format!(
        "{:<28} {:<28} {:<16} {:>12} {:>10}",
        columns[0], columns[1], columns[2], columns[3], columns[4]
    );
    for column in &columns[5..] {
        let _ = write!(line, " {column:>9}");
    }
    line
}
