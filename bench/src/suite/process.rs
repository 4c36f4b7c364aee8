//! One measurement in a process of its own: it reads, checks, and prints what that took.

use super::Case;
use cpu_time::ProcessTime;
use history::formats::{ReadOptions, read_path};
use isolation::{Budget, Level, Options, Verdict, VerdictKind};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// How an answer is looked for.
#[derive(Clone, Debug)]
pub(crate) struct How<'a> {
    pub(crate) level: &'a str,
    /// A strategy's name, or [`BY_TIMESTAMPS`].
    pub(crate) strategy: &'a str,
    /// A pass to be left out.
    pub(crate) without: Option<&'a str>,
    pub(crate) limit_s: u64,
}

/// Not by a strategy, but by the database's timestamps.
pub(crate) const BY_TIMESTAMPS: &str = "timestamps";
/// Shorter checks are repeated, and the best one counts.
pub(super) const REPEATED_UNDER_S: f64 = 1.0;
pub(super) const REPEATS: usize = 3;

#[derive(Serialize, Deserialize)]
struct Said {
    transactions: usize,
    verdict: String,
    read_s: f64,
    cpu_s: f64,
    wall_s: f64,
    peak_mb: f64,
    stages: Vec<(String, f64)>,
}

/// Measures a check of a file, best of several where it is short.
pub(crate) fn measure(file: &Path, how: &How<'_>) -> Result<Case, Box<dyn Error>> {
    let mut best: Option<Said> = None;
    let mut slowest: f64 = 0.0;
    for _ in 0..REPEATS {
        let said = once(file, how)?;
        slowest = slowest.max(said.cpu_s);
        let enough = said.cpu_s > REPEATED_UNDER_S;
        if best.as_ref().is_none_or(|best| said.cpu_s < best.cpu_s) {
            best = Some(said);
        }
        if enough {
            break;
        }
    }
    let Said { transactions, verdict, read_s, cpu_s, wall_s, peak_mb, stages } =
        best.ok_or("nothing was measured")?;
    let spread = slowest / cpu_s - 1.0;
    Ok(Case { transactions, verdict, read_s, cpu_s, wall_s, peak_mb, spread, stages, ..Case::default() })
}

fn once(file: &Path, how: &How<'_>) -> Result<Said, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .arg("measure-one")
        .arg(file)
        .args([how.level, how.strategy, how.without.unwrap_or("-"), &how.limit_s.to_string()])
        .output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The process that is measured.
pub(crate) fn measure_one(
    file: &Path,
    level: &str,
    strategy: &str,
    without: &str,
    limit_s: u64,
) -> Result<(), Box<dyn Error>> {
    let (started, clock) = (ProcessTime::now(), Instant::now());
    let loaded = read_path(file, &ReadOptions { lenient: true, ..ReadOptions::default() })?;
    let read_s = started.elapsed().as_secs_f64();
    let history = &loaded.history;
    let level = Level::parse(level).map_err(|unknown| unknown.to_string())?;
    let budget = Budget::unlimited().with_timeout(Duration::from_secs(limit_s));
    let mut options = Options { budget, ..Options::default() };
    let (verdict, stages) = if strategy == BY_TIMESTAMPS {
        let report = replay::check(history, level, &options)?;
        let is_accepted = report.findings.is_empty();
        let verdict = if is_accepted { VerdictKind::Accepted } else { VerdictKind::Violated };
        (verdict.to_string(), Vec::new())
    } else {
        options.strategy = strategy.parse()?;
        if without != "-" {
            options.passes = options.passes.without(without)?;
        }
        let outcome = evidence::check(history, level, &options);
        let verdict = match &outcome.verdict {
            Verdict::Undecided(why) => format!("undecided: {why}"),
            other => other.name().to_owned(),
        };
        let stages = outcome.stats.entries.iter();
        let stages = stages.filter_map(|&(name, value)| Some((name.strip_suffix("_ms")?.to_owned(), value)));
        (verdict, stages.collect())
    };
    let (cpu_s, wall_s) = (started.elapsed().as_secs_f64(), clock.elapsed().as_secs_f64());
    let peak_mb = crate::memory::resident_peak().unwrap_or_default() / 1e6;
    let said = Said { transactions: history.len(), verdict, read_s, cpu_s, wall_s, peak_mb, stages };
    println!("{}", serde_json::to_string(&said)?);
    // Giving the memory back is no part of a check.
    std::mem::forget(loaded);
    Ok(())
}
