//! `taipan-soak`: random cases of every kind, for as long as one likes.
//!
//! *What*: every campaign makes one case from a seed and says how many things it compared, or what was wrong. Campaigns
//! take turns on all cores until the time is up; then a table tells how many cases ran. A failure is shown with the seed
//! that brings it back, its history is saved, and the exit status is 1.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for people prints")]

/// The comparison of budgets is shared with the tests of that crate, which know it by its full name.
extern crate checker as taipan_checker;

mod budgets;
mod campaign;
mod certificates;
mod flags;
mod formats;
mod levels;
mod online;
mod scripts;
mod simulated;
mod strategies;
mod unknown;

use campaign::{Campaign, Failure, Tally, attempt};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Everything that is compared.
const CAMPAIGNS: [Campaign; 9] = [
    Campaign {
        name: "levels",
        about: "tiny histories: every level against the exhaustive oracle",
        case: levels::case,
    },
    Campaign {
        name: "strategies",
        about: "simulated histories with and without planted bugs: strategies against each other",
        case: strategies::case,
    },
    Campaign {
        name: "certificates",
        about: "verdicts are certified; what is still certified after bytes were changed is true",
        case: certificates::case,
    },
    Campaign {
        name: "formats",
        about: "round trips through every format; files with changed bytes are refused or read, never worse",
        case: formats::case,
    },
    Campaign {
        name: "online",
        about: "arrivals in any order with restarts in between: the online checker against the offline one",
        case: online::case,
    },
    Campaign {
        name: "unknown",
        about: "unknown outcomes: correct stores are accepted by results, by timestamps and online; bugs are found",
        case: unknown::case,
    },
    Campaign {
        name: "flags",
        about: "one claim, one answer: the program with random flags and commands against the search",
        case: flags::case,
    },
    Campaign {
        name: "budgets",
        about: "work that is ended at any place: what is said without a limit, or undecided",
        case: budgets::case,
    },
    Campaign {
        name: "scripts",
        about: "random SQL: what is written to a case file is read back",
        case: scripts::case,
    },
];

/// Compares everything with everything else on random cases, and says how many it tried.
///
/// Examples:
///   taipan-soak --for 10m                    all campaigns in turn
///   taipan-soak levels strategies --for 1h   two of them
///   taipan-soak levels --seed 4711 --cases 1 a failure again
#[derive(Parser)]
#[command(version, verbatim_doc_comment)]
struct Flags {
    /// Campaigns to run: levels, strategies, certificates, formats, online, unknown, flags, budgets, scripts. All if none is named.
    names: Vec<String>,
    /// How long: 90s, 10m, 2h.
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = time)]
    time: Duration,
    /// The first seed; each case takes the next one.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// At most so many cases a campaign.
    #[arg(long)]
    cases: Option<u64>,
    /// How many threads; one a core if not given.
    #[arg(long)]
    jobs: Option<usize>,
    /// Where failing histories go.
    #[arg(long, value_name = "FOLDER", default_value = "soak-failures")]
    save: PathBuf,
}

/// A length of time with a unit.
fn time(text: &str) -> Result<Duration, String> {
    let bad = || format!("{text:?} is no length of time; 90s, 10m and 2h are");
    let (number, unit) = text.split_at(text.find(|it: char| !it.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| bad())?;
    let seconds = match unit {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(bad()),
    };
    Ok(Duration::from_secs(number * seconds))
}

fn main() -> ExitCode {
    let flags = Flags::parse();
    let known = |name: &String| CAMPAIGNS.iter().any(|it| it.name == *name);
    if let Some(unknown) = flags.names.iter().find(|name| !known(name)) {
        eprintln!("there is no campaign {unknown:?}; there are");
        CAMPAIGNS.iter().for_each(|it| eprintln!("  {:<13} {}", it.name, it.about));
        return ExitCode::from(3);
    }
    let wanted = |it: &&Campaign| flags.names.is_empty() || flags.names.iter().any(|name| name == it.name);
    let campaigns: Vec<&Campaign> = CAMPAIGNS.iter().filter(wanted).collect();
    // What panics is reported as a failure of its case.
    std::panic::set_hook(Box::new(|_| {}));
    let each = flags.time / campaigns.len().max(1) as u32;
    let mut failed = false;
    println!(
        "| campaign | cases | comparisons | seconds | slowest case | failures |\n|---|---|---|---|---|---|"
    );
    for campaign in campaigns {
        let started = Instant::now();
        let tally = run(campaign, each, &flags);
        let seconds = started.elapsed().as_secs();
        let Tally { cases, comparisons, failures, slowest: (took, seed) } = &tally;
        let slowest = format!("{:.1} s (seed {seed})", took.as_secs_f64());
        println!(
            "| {} | {cases} | {comparisons} | {seconds} | {slowest} | {} |",
            campaign.name,
            failures.len()
        );
        for failure in failures {
            failed = true;
            tell(campaign, failure, &flags.save);
        }
    }
    ExitCode::from(u8::from(failed))
}

/// Nothing recurses over a history: in debug builds, whose frames are large, threads have little stack.
const STACK_LEN: usize = if cfg!(debug_assertions) { 1 << 20 } else { 2 << 20 };

/// A campaign that has failed so often ends.
const FAILURES_MAX: usize = 5;

/// Runs a campaign on all threads until its time is up.
fn run(campaign: &Campaign, time: Duration, flags: &Flags) -> Tally {
    let jobs = flags.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let end = Instant::now() + time;
    let next = AtomicU64::new(0);
    let tally = Mutex::new(Tally::default());
    let cases = flags.cases.unwrap_or(u64::MAX);
    let work = || {
        while Instant::now() < end {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= cases {
                break;
            }
            let (seed, started) = (flags.seed.wrapping_add(number), Instant::now());
            let result = attempt(campaign, seed);
            let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.add(seed, started.elapsed(), result);
            if tally.failures.len() >= FAILURES_MAX {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let thread = std::thread::Builder::new().stack_size(STACK_LEN);
            thread.spawn_scoped(scope, work).expect("a thread of this size starts");
        }
    });
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn tell(campaign: &Campaign, failure: &Failure, folder: &Path) {
    let name = campaign.name;
    eprintln!("{name}, seed {}: {}", failure.seed, failure.what);
    eprintln!("  again: taipan-soak {name} --seed {} --cases 1", failure.seed);
    if let Some(text) = &failure.history {
        let file = folder.join(format!("{name}-{}.hist", failure.seed));
        let saved = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, text));
        match saved {
            Ok(()) => eprintln!("  saved: {}", file.display()),
            Err(error) => eprintln!("  {}: {error}\n{text}", file.display()),
        }
    }
}
