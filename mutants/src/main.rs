//! `taipan-mutants`: what the tests of a crate would not notice.
//!
//! *What*: plants small faults into a copy of a crate ([`plant`]), builds it once ([`tree`]), learns which test reaches
//! which fault and how long it takes, and then switches the faults on one at a time. A fault is noticed if a test that
//! reaches it fails, or does not end; the quickest are run first.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people prints")]

mod plant;
mod tree;

use clap::Parser;
use plant::Mutant;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tree::{Planted, Problem, Test, Tree};

/// A fault may use this much memory, in KiB: one that never stops collecting is noticed, too.
const MEMORY_MAX: u64 = 4 << 20;

/// Plants small faults into a crate, one at a time, and says which of them its tests do not notice.
///
/// Examples:
///   taipan-mutants solver                    every fault of crates/solver
///   taipan-mutants checker --sample 200      two hundred of crates/checker
///   taipan-mutants checker --in saturate.rs  those of one file
///   taipan-mutants checker --again REPORT    those that an earlier report names: what new tests notice of them
#[derive(Parser)]
#[command(version, verbatim_doc_comment)]
struct Flags {
    /// The crate: a folder below `crates`.
    name: String,
    /// Only so many, drawn at random; all if not given.
    #[arg(long)]
    sample: Option<usize>,
    /// Begin none after so many minutes: those that were tried by then are a sample, too.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<u64>,
    /// Which ones are drawn.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only files whose path contains this; may be given several times.
    #[arg(long = "in", value_name = "TEXT")]
    files: Vec<String>,
    /// Only those that this file names, line by line, as an earlier run told them; where code has moved, the nearest one
    /// of the same kind in the same function.
    #[arg(long, value_name = "REPORT")]
    again: Option<PathBuf>,
    /// Features of the crate to build with, with commas in between.
    #[arg(long, default_value = "")]
    features: String,
    /// How many at a time; one a core if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Where the copy and what is built of it lie.
    #[arg(long, default_value = "target/mutants")]
    work: PathBuf,
}

/// What became of a fault.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    Failed,
    TimedOut,
    Survived,
    NotReached,
}

/// A test with what it took with all faults off.
struct Timed {
    test: Test,
    took: Duration,
}

fn main() -> ExitCode {
    match run(&Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(flags: &Flags) -> Result<(), Problem> {
    let work = std::path::absolute(flags.work.join(&flags.name)).map_err(|error| error.to_string())?;
    let tree = Tree::copy(&work, &flags.name, &flags.features)?;
    let planted = tree.plant()?;
    let tests = tree.tests()?;
    let jobs = flags.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    eprintln!("{} tests, with all faults off", tests.len());
    let reach = Reach::learn(tests, &work, jobs)?;
    let chosen = choose(again(planted, flags)?, flags);
    let done = AtomicUsize::new(0);
    let end = flags.minutes.map(|minutes| Instant::now() + Duration::from_secs(60 * minutes));
    let fates = in_parallel(&chosen, jobs, end, |planted| {
        let fate = reach.fate(planted.mutant.number);
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        eprintln!("{done} of {}: {}: {}", chosen.len(), told(planted), name(fate));
        fate
    });
    let mut tried: Vec<(Planted, Fate)> = chosen.into_iter().zip(fates).collect();
    tried.sort_by_key(|(planted, _)| planted.mutant.number);
    report(&tried);
    Ok(())
}

fn name(fate: Fate) -> &'static str {
    match fate {
        Fate::Failed => "a test failed",
        Fate::TimedOut => "a test did not end",
        Fate::Survived => "NOT NOTICED",
        Fate::NotReached => "NOT REACHED",
    }
}

fn told(planted: &Planted) -> String {
    let Planted { file, mutant } = planted;
    format!("{file}:{}: in `{}", mutant.line, kind(mutant))
}

/// Function and fault: what stays the same when lines move.
fn kind(mutant: &Mutant) -> String {
    format!("{}`: {}", mutant.function, mutant.what)
}

/// Does something with one item after the other, several at a time, until the end; the results of those at the front.
fn in_parallel<T: Sync, R: Send>(
    items: &[T],
    jobs: usize,
    end: Option<Instant>,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let goes_on = || end.is_none_or(|end| Instant::now() < end);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(|| {
                while goes_on()
                    && let place = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(place)
                {
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).push((place, result));
                }
            });
        }
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|&(place, _)| place);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Which tests reach which faults.
struct Reach {
    timed: Vec<Timed>,
    /// For each fault that is reached the tests that do, the quickest first.
    tests: FxHashMap<u32, Vec<usize>>,
}

impl Reach {
    /// Runs every test with all faults off: how long it takes and which faults it reaches.
    fn learn(tests: Vec<Test>, work: &Path, jobs: usize) -> Result<Self, Problem> {
        let folder = work.join("traces");
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let numbered: Vec<(usize, Test)> = tests.into_iter().enumerate().collect();
        let ran = in_parallel(&numbered, jobs, None, |(number, test)| {
            let trace = folder.join(number.to_string());
            let _ = fs::remove_file(&trace);
            let begin = Instant::now();
            let mut command = command(test);
            command.env("MUTANT_TRACE", &trace);
            match ended(command, Duration::from_secs(600)) {
                Some(true) => Ok((begin.elapsed(), fs::read_to_string(trace).unwrap_or_default())),
                _ => Err(format!("`{}` fails with all faults off", test.name)),
            }
        });
        let mut reach = Self { timed: Vec::new(), tests: FxHashMap::default() };
        for ((number, test), ran) in numbered.into_iter().zip(ran) {
            let (took, trace) = ran?;
            for mutant in trace.lines().filter_map(|line| line.parse().ok()) {
                reach.tests.entry(mutant).or_default().push(number);
            }
            reach.timed.push(Timed { test, took });
        }
        for tests in reach.tests.values_mut() {
            tests.sort_by_key(|&test| reach.timed[test].took);
        }
        Ok(reach)
    }

    /// Switches a fault on.
    fn fate(&self, number: u32) -> Fate {
        let Some(tests) = self.tests.get(&number) else { return Fate::NotReached };
        for &test in tests {
            let Timed { test, took } = &self.timed[test];
            let mut command = command(test);
            command.env("MUTANT", number.to_string());
            match ended(command, *took * 5 + Duration::from_secs(5)) {
                Some(true) => {}
                Some(false) => return Fate::Failed,
                None => return Fate::TimedOut,
            }
        }
        Fate::Survived
    }
}

fn command(test: &Test) -> Command {
    let mut command = Command::new("sh");
    let script = format!("ulimit -v {MEMORY_MAX}; exec \"$0\" \"$@\"");
    command.args(["-c", &script]).arg(&test.binary).args(["--exact", &test.name]);
    command.current_dir(&test.cwd).env("CARGO_MANIFEST_DIR", &test.cwd);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Whether a program ended well; none if it did not end in time.
fn ended(mut command: Command, limit: Duration) -> Option<bool> {
    let Ok(mut child) = command.spawn() else { return Some(false) };
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if begin.elapsed() < limit => std::thread::sleep(Duration::from_millis(3)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// The faults that an earlier report names; all if there is none.
fn again(planted: Vec<Planted>, flags: &Flags) -> Result<Vec<Planted>, Problem> {
    let Some(report) = &flags.again else { return Ok(planted) };
    let text = fs::read_to_string(report).map_err(|error| format!("{}: {error}", report.display()))?;
    let mut wanted = FxHashSet::default();
    for (file, line, fault) in text.lines().filter_map(named) {
        let is_same = |it: &&Planted| it.file == file && fault.starts_with(&kind(&it.mutant));
        match planted.iter().filter(is_same).min_by_key(|it| it.mutant.line.abs_diff(line)) {
            Some(found) => drop(wanted.insert(found.mutant.number)),
            None => eprintln!("is no longer there: {file}:{line}: {fault}"),
        }
    }
    Ok(planted.into_iter().filter(|it| wanted.contains(&it.mutant.number)).collect())
}

/// File, line, and the rest of what a line of a report says about a fault.
fn named(told: &str) -> Option<(&str, usize, &str)> {
    let (place, fault) = told[told.find("crates/")?..].split_once(": in `")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?, fault))
}

/// The faults to try.
fn choose(planted: Vec<Planted>, flags: &Flags) -> Vec<Planted> {
    let is_wanted = |planted: &Planted| {
        flags.files.is_empty() || flags.files.iter().any(|text| planted.file.contains(text))
    };
    let mut chosen: Vec<Planted> = planted.into_iter().filter(is_wanted).collect();
    chosen.sort_by_key(|planted| mixed(flags.seed ^ u64::from(planted.mutant.number)));
    chosen.truncate(flags.sample.unwrap_or(usize::MAX));
    chosen
}

/// SplitMix64: a number that looks drawn at random.
fn mixed(number: u64) -> u64 {
    let mut it = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}

/// A table by file, and whoever got away.
fn report(tried: &[(Planted, Fate)]) {
    let mut files: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    let mut total = [0; 4];
    for &(ref planted, fate) in tried {
        files.entry(&planted.file).or_default()[fate as usize] += 1;
        total[fate as usize] += 1;
    }
    println!("| file | tried | a test failed | did not end | not noticed | not reached |");
    println!("|---|---:|---:|---:|---:|---:|");
    for (file, fates) in files.into_iter().chain([("in all", total)]) {
        let [failed, timed_out, survived, not_reached] = fates;
        let tried: usize = fates.iter().sum();
        println!("| {file} | {tried} | {failed} | {timed_out} | {survived} | {not_reached} |");
    }
    println!();
    for &(ref planted, fate) in tried {
        if matches!(fate, Fate::Survived | Fate::NotReached) {
            println!("- {}: {}", told(planted), name(fate));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

    use super::{Mutant, Planted, kind, named, told};

    #[test]
    fn what_a_run_tells_is_found_again() {
        let what = "without `self.put(a: b, c);`".to_owned();
        let mutant = Mutant { number: 7, line: 12, what, function: "put_all".to_owned() };
        let planted = Planted { file: "crates/checker/src/core.rs".to_owned(), mutant };
        for line in [told(&planted), format!("3 of 9: {}: a test failed", told(&planted))] {
            let (file, number, fault) = named(&line).unwrap();
            assert_eq!((file, number), ("crates/checker/src/core.rs", 12));
            assert!(fault.starts_with(&kind(&planted.mutant)), "{fault}");
        }
        assert!(named("| crates/checker/src/core.rs | 3 | 3 |").is_none());
    }
}
