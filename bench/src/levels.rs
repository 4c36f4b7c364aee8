//! How long each level takes, in CPU time of one core; reading the file is included where it says so.
//!
//! Tables: what has a target, each line a process of its own; every level on a history of a tenth of the size, beside
//! `serializable`; all levels at once, beside `serializable` alone, on histories of stores of every strength; and, where
//! the program is given, the published `adya` beside the same check of the same file.

use crate::checks::{Measured, in_a_process};
use cpu_time::ProcessTime;
use evidence::{check, check_sharing, survey};
use history::formats::{Format, ReadOptions, read_path, write_path};
use history::{Builder, History};
use isolation::{Level, Options, Strategy, Verdict};
use search::LookedAt;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use workload::{Config, Fields, Settings, Simulation, Strength, Workload};

/// All levels may take this much longer than one.
const SURVEY_TARGET: f64 = 3.0;
/// How long a check may take at most.
const LIMIT_S: u64 = 60;

pub(crate) fn run(transactions: usize, adya: Option<&Path>) -> Result<(), Box<dyn Error>> {
    with_targets(transactions)?;
    every_level(transactions / 10)?;
    all_at_once(transactions / 10)?;
    match adya {
        Some(program) => beside(program, transactions),
        None => Ok(()),
    }
}

/// A level, on what it is measured, and what it may take, reading included.
struct Target {
    level: &'static str,
    workload: &'static str,
    store: Strength,
    /// Times the transactions that were asked for.
    scale: (usize, usize),
    ops: u32,
    seconds: f64,
    megabytes: f64,
}

impl Target {
    const fn new(level: &'static str, scale: (usize, usize), ops: u32, seconds: f64) -> Self {
        let (workload, store) = ("blind-writes", Strength::Serializable);
        Self { level, workload, store, scale, ops, seconds, megabytes: f64::INFINITY }
    }

    const fn of_fifteen(level: &'static str, seconds: f64) -> Self {
        Self { megabytes: 300.0, ..Self::new(level, (1, 1), 15, seconds) }
    }

    const fn on(self, workload: &'static str, store: Strength) -> Self {
        Self { workload, store, ..self }
    }
}

/// Those of a hundred thousand transactions of fifteen operations are a hundred thousand if that is asked for.
const TARGETS: [Target; 8] = [
    Target::of_fifteen("axiomatic-read-committed", 0.5),
    Target::of_fifteen("read-atomic", 0.5),
    Target::of_fifteen("causal", 0.8),
    Target::new("causal", (20, 3), 15, 10.0),
    Target::new("consistent-view", (1, 10), 15, 10.0),
    Target::new("consistent-view", (1, 10), 15, 10.0).on("read-modify-write", Strength::SnapshotIsolation),
    Target::new("consistent-view", (1, 10), 15, 10.0).on("read-modify-write", Strength::ReadCommitted),
    Target::new("update-serializable", (1, 1), 15, 10.0),
];

fn with_targets(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!("from a text file; seconds of CPU time, best of three");
    println!(
        "{:<26} {:<18} {:<20} {:>12} {:>4} {:<9} {:>7} {:>7} {:>10} {:>8} {:>10}",
        "level",
        "workload",
        "store",
        "transactions",
        "ops",
        "verdict",
        "read",
        "in all",
        "of target",
        "peak MB",
        "of target"
    );
    let folder = tempfile::tempdir()?;
    let mut made: Option<(String, usize)> = None;
    let path = folder.path().join("history.txt");
    for it in &TARGETS {
        let count = transactions * it.scale.0 / it.scale.1;
        let what = format!("{} {:?} {}", it.workload, it.store, it.ops);
        if made.as_ref() != Some(&(what.clone(), count)) {
            write_path(&simulated(it.workload, it.store, count, it.ops)?, Format::Text, &path)?;
            made = Some((what, count));
        }
        let repeats = if count > 200_000 { 1 } else { 3 };
        let mut best: Option<Measured> = None;
        for _ in 0..repeats {
            let measured = in_a_process(&path, it.level, Strategy::Lazy, LIMIT_S)?;
            if best.as_ref().is_none_or(|best| measured.cpu_s < best.cpu_s) {
                best = Some(measured);
            }
        }
        let Some(measured) = best else { continue };
        let peak = measured.peak_mb.unwrap_or(f64::NAN);
        let of_peak = match it.megabytes {
            limit if limit.is_finite() => format!("{:.2}×", limit / peak),
            _ => "–".to_owned(),
        };
        println!(
            "{:<26} {:<18} {:<20} {count:>12} {:>4} {:<9} {:>7.3} {:>7.3} {:>9.2}× {peak:>8.0} {of_peak:>10}",
            it.level,
            it.workload,
            it.store.promise(),
            it.ops,
            measured.verdict,
            measured.read_s,
            measured.cpu_s,
            it.seconds / measured.cpu_s,
        );
    }
    Ok(())
}

fn every_level(transactions: usize) -> Result<(), Box<dyn Error>> {
    let history = simulated("blind-writes", Strength::Serializable, transactions, 8)?;
    println!(
        "\n{transactions} transactions of 8 operations, checked in memory; milliseconds of CPU time, best of three"
    );
    let once = |level: Level| {
        let times = (0..3).map(|_| timed(|| check(&history, level, &Options::default())));
        times.min_by(|one, two| one.0.total_cmp(&two.0))
    };
    let serial = once(Level::SERIALIZABLE).map_or(f64::NAN, |(time, _)| time);
    for level in Level::all() {
        if let Some((time, outcome)) = once(level) {
            let name = level.name();
            println!(
                "{name:<36} {:<10} {:>9.1} {:>7.2}× serializable",
                outcome.verdict.name(),
                time * 1e3,
                time / serial
            );
        }
    }
    Ok(())
}

fn all_at_once(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!("\nall levels at once, {transactions} transactions; milliseconds of CPU time");
    println!(
        "{:<20} {:<22} {:>8} {:>12} {:>8} {:>10}",
        "workload", "store", "checks", "serializable", "all", "of target"
    );
    for name in ["blind-writes", "read-modify-write", "list-append"] {
        for strength in [Strength::Serializable, Strength::SnapshotIsolation, Strength::ReadCommitted] {
            let history = simulated(name, strength, transactions, 8)?;
            let (serial, checks) = surveyed(&history);
            let all: f64 = checks.iter().map(|(_, time)| time).sum();
            let checks = checks.iter().filter(|(of, _)| !of.starts_with(PARTS)).count();
            println!(
                "{name:<20} {:<22} {checks:>8} {:>12.1} {:>8.1} {:>9.2}×",
                strength.promise(),
                serial * 1e3,
                all * 1e3,
                SURVEY_TARGET * serial / all
            );
        }
    }
    Ok(())
}

fn timed<T>(run: impl FnOnce() -> T) -> (f64, T) {
    let start = ProcessTime::now();
    let result = run();
    (start.elapsed().as_secs_f64(), result)
}

/// What the rest of a survey is called.
const PARTS: &str = "(";

/// What `serializable` takes alone, and what each check of all levels at once takes.
fn surveyed(history: &History) -> (f64, Vec<(String, f64)>) {
    let options = || Options {
        budget: isolation::Budget::unlimited().with_timeout(std::time::Duration::from_secs(10)),
        ..Options::default()
    };
    let (serial, _) = timed(|| check(history, Level::SERIALIZABLE, &options()));
    let shared = LookedAt::default();
    let mut checks = Vec::new();
    let (all, _) = timed(|| {
        survey(
            history,
            |level| {
                let (time, outcome) = timed(|| check_sharing(history, level, &options(), &shared));
                checks.push((format!("{level}, {}", outcome.verdict.name()), time));
                Ok::<_, std::convert::Infallible>(outcome.verdict)
            },
            |level, fragment| {
                let evidence = fragment.violates(level, &options());
                Ok(evidence.map(|evidence| Verdict::Violated(Box::new(evidence))))
            },
            |verdict| verdict,
        )
    });
    let rest = all - checks.iter().map(|(_, time)| time).sum::<f64>();
    checks.push((format!("{PARTS}parts at all levels)"), rest));
    (serial, checks)
}

/// What all levels of histories of one's own take.
pub(crate) fn survey_files(paths: &[PathBuf]) -> Result<(), Box<dyn Error>> {
    for path in paths {
        let (read, loaded) = timed(|| read_path(path, &ReadOptions::default()));
        let (serial, checks) = surveyed(&loaded?.history);
        let all: f64 = checks.iter().map(|(_, time)| time).sum();
        println!(
            "{}: read {read:.3} s, serializable {serial:.3} s, all levels {all:.3} s of CPU time",
            path.display()
        );
        println!("  with reading {:.2} times as much", (read + all) / (read + serial));
        for (what, time) in checks {
            println!("  {what:<48} {:>8.1} ms", time * 1e3);
        }
    }
    Ok(())
}

/// Lists of a serializable store, checked by both programs from the same file.
fn beside(program: &Path, transactions: usize) -> Result<(), Box<dyn Error>> {
    println!(
        "\n{transactions} transactions of lists, from a file of Elle's; seconds of CPU time, best of three"
    );
    println!("{:<22} {:>18} {:>8} {:>8} {:>8}", "store", "level", "ours", "adya", "ratio");
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.edn");
    for store in [Strength::Serializable, Strength::SnapshotIsolation] {
        write_path(&simulated("list-append", store, transactions, 4)?, Format::ElleEdn, &path)?;
        for level in ["serializable", "snapshot-isolation"] {
            let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..3 {
                ours = ours.min(in_a_process(&path, level, Strategy::Lazy, LIMIT_S)?.cpu_s);
                theirs = theirs.min(spent(
                    Command::new(program).args(["check", "-m", "list-append", "-c", level]).arg(&path),
                )?);
            }
            println!("{:<22} {level:>18} {ours:>8.3} {theirs:>8.3} {:>7.1}×", store.promise(), theirs / ours);
        }
    }
    Ok(())
}

/// The CPU time of processes that ended, where the system tells: in hundredths of a second.
pub(crate) fn children_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // Behind the name, which is in brackets: the fourteenth and fifteenth are what children took.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The CPU time that a program of somebody else takes.
fn spent(command: &mut Command) -> Result<f64, Box<dyn Error>> {
    let before = children_s();
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    match status.code() {
        Some(0..=2) => Ok(children_s() - before),
        _ => Err(format!("{command:?}: {status}").into()),
    }
}

fn simulated(
    name: &str,
    strength: Strength,
    transactions: usize,
    ops: u32,
) -> Result<History, Box<dyn Error>> {
    let settings = Settings { seed: 1, ops, ..Workload::named(name)? };
    let config = Config::new(settings, strength, transactions as u64);
    let mut builder = Builder::new();
    Simulation::new(config)?.run(Fields { client: false, db: false, ..Fields::default() }, &mut builder)?;
    Ok(builder.finish()?)
}
