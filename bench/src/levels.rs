//! How long each level takes, the reading of a text file included where it says so, in CPU time of one core.
//!
//! Three tables: the levels without a search on transactions of fifteen operations, beside their targets; every level on
//! a history of a tenth of the size, beside `serializable`; and all levels at once, beside `serializable` alone, on
//! histories of stores of every strength.

use checker::{Level, Options, Verdict, check, survey};
use cpu_time::ProcessTime;
use history::formats::{Format, ReadOptions, read_path, write_path};
use history::{Builder, History};
use std::error::Error;
use workload::{Config, Fields, Settings, Simulation, Strength, Workload};

/// Seconds that reading and checking a hundred thousand transactions of fifteen operations may take.
const TARGETS: [(&str, f64); 3] = [("axiomatic-read-committed", 0.5), ("read-atomic", 0.5), ("causal", 0.8)];
/// All levels may take this much longer than one.
const SURVEY_TARGET: f64 = 3.0;

pub(crate) fn run(transactions: usize) -> Result<(), Box<dyn Error>> {
    without_search(transactions)?;
    every_level(transactions / 10)?;
    all_at_once(transactions / 10)
}

fn without_search(transactions: usize) -> Result<(), Box<dyn Error>> {
    let history = simulated("blind-writes", Strength::Serializable, transactions, 15)?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.txt");
    write_path(&history, Format::Text, &path)?;
    drop(history);
    println!(
        "{transactions} transactions of 15 operations, from a text file; seconds of CPU time, best of three"
    );
    println!("{:<28} {:>8} {:>8} {:>8} {:>10}", "level", "read", "check", "both", "of target");
    for (name, target) in TARGETS {
        let level = Level::parse(name)?;
        let mut best: Option<(f64, f64)> = None;
        for _ in 0..3 {
            let (read, loaded) = timed(|| read_path(&path, &ReadOptions::default()));
            let loaded = loaded?;
            let (checked, outcome) = timed(|| check(&loaded.history, level, &Options::default()));
            expect(&outcome.verdict, true, name)?;
            if best.is_none_or(|(a, b)| read + checked < a + b) {
                best = Some((read, checked));
            }
        }
        let (read, checked) = best.unwrap_or_default();
        let both = read + checked;
        println!("{name:<28} {read:>8.3} {checked:>8.3} {both:>8.3} {:>9.2}×", target / both);
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
            let options = || Options {
                budget: checker::Budget::unlimited().with_timeout(std::time::Duration::from_secs(10)),
                ..Options::default()
            };
            let (serial, _) = timed(|| check(&history, Level::SERIALIZABLE, &options()));
            let mut checks = 0;
            let (all, _) = timed(|| {
                survey(
                    &history,
                    |level| {
                        checks += 1;
                        Ok::<_, std::convert::Infallible>(check(&history, level, &options()).verdict)
                    },
                    |level, fragment| {
                        let evidence = fragment.violates(level, &options());
                        Ok(evidence.map(|evidence| Verdict::Violated(Box::new(evidence))))
                    },
                    |verdict| verdict,
                )
            });
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

fn expect(verdict: &Verdict, accepted: bool, level: &str) -> Result<(), Box<dyn Error>> {
    match matches!(verdict, Verdict::Accepted(_)) == accepted {
        true => Ok(()),
        false => Err(format!("{level}: {}", verdict.name()).into()),
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
