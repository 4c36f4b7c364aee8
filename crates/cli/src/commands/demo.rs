//! `taipan demo`: the main job with no set-up.

use crate::checking::Checking;
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{LoadFlags, Output};
use crate::names::Names;
use crate::output::Sink;
use crate::recording::{self, Recorded, Session};
use history::formats::ReadOptions;
use std::io::{self, Write};
use std::path::Path;
use taipan::files::{Checker, Limits};
use workload::{Bug, Config, Plant, Settings, Strength, Workload};

/// Large enough that nobody finds the bug by hand, small enough for a few seconds on a slow disk.
const TRANSACTIONS: u64 = 2000;
const SESSIONS: u32 = 6;
const KEYS: u32 = 50;

pub(crate) fn run(console: &mut Console) -> Outcome {
    let folder = tempfile::Builder::new()
        .prefix("taipan-demo-")
        .tempdir()
        .map_err(|error| Stop::Error(format!("cannot create a temporary folder: {error}")))?
        .keep();
    let checking = Checking::new(Checker::default(), Names::default(), ReadOptions::default());
    let page = folder.join("report.html");
    let mut sink = Sink::new(Output::Text, Some(page.clone()));

    let real = real_database(&folder.join("real.jsonl"), console)?;
    let first = present("real.jsonl", real, &checking, &folder, &mut sink, console)?;
    writeln!(console.out())?;

    let simulated = simulated_database(&folder.join("simulated.jsonl"), console)?;
    let second = present("simulated.jsonl", simulated, &checking, &folder, &mut sink, console)?;
    sink.write_page()?;
    what_next(console.out(), &folder)?;
    // The demo shows what it promises, or it fails.
    let as_promised = matches!((first, second), (Exit::Accepted, Exit::Violated));
    Ok(if as_promised { Exit::Accepted } else { Exit::Violated })
}

/// A real database on disk, several connections in threads.
fn real_database(file: &Path, console: &mut Console) -> Result<Recorded, Stop> {
    let mut database = databases::open("sqlite:").map_err(|failure| Stop::Error(failure.to_string()))?;
    writeln!(
        console.out(),
        "1. {} on disk: {SESSIONS} connections run {TRANSACTIONS} transactions that read and write {KEYS} keys.",
        database.name()
    )?;
    console.out().flush()?;
    let progress = console.progress(TRANSACTIONS);
    progress.say("running");
    let session = Session {
        isolation: None,
        levels: &[],
        timestamps: false,
        live: false,
        duration: None,
        file: Some(file.to_owned()),
        target: "sqlite:",
        limits: Limits::default(),
        load: &LoadFlags::default(),
    };
    recording::live(&mut *database, settings(), TRANSACTIONS, session, &progress).map_err(Stop::Error)
}

/// A simulated database with a bug.
fn simulated_database(file: &Path, console: &mut Console) -> Result<Recorded, Stop> {
    let bug = Bug::LostUpdate;
    writeln!(
        console.out(),
        "2. A simulated database, with one bug planted among {TRANSACTIONS} transactions:\n   {}: {}.",
        bug.name(),
        bug.about()
    )?;
    console.out().flush()?;
    let mut config = Config::new(settings(), Strength::Serializable, TRANSACTIONS);
    config.bugs.push((bug, Plant::Exactly(1)));
    let recorded = recording::simulated(config)?;
    recorded.save(file)?;
    Ok(recorded)
}

/// What the clients do: mostly reads, so that not too many writers meet.
fn settings() -> Settings {
    let mut settings = Workload::ReadModifyWrite.settings();
    settings.sessions = SESSIONS;
    settings.keys = KEYS;
    settings.ops = 4;
    settings.read_share = 0.8;
    settings
}

/// Checks what was recorded and shows the verdict.
fn present(
    name: &str,
    recorded: Recorded,
    checking: &Checking,
    folder: &Path,
    sink: &mut Sink,
    console: &mut Console,
) -> Result<Exit, Stop> {
    let Recorded { kept, level, time, planted, .. } = recorded;
    let opened = kept.open(name.to_owned(), checking)?;
    let file = folder.join(name);
    let (counts, seconds) = (opened.counts(), time.as_secs_f64());
    writeln!(console.out(), "Recorded {counts} in {seconds:.1} s: {}\n", file.display())?;
    let progress = console.progress(1);
    progress.say("checking");
    let claim = checking.claim(level)?;
    let checked = checking.check(&opened, claim)?;
    let exit = Exit::of(checked.verdict.kind());
    sink.history(name, &opened.history);
    let part = checking.checker.with_part(&opened, checked.clone()).finding;
    let brief = checking.in_context(&opened, Some(&file), checked);
    sink.shown(brief, part, console, &progress)?;
    for planted in planted {
        writeln!(console.out(), "  (planted: {})", recording::place(&planted))?;
    }
    Ok(exit)
}

fn what_next(out: &mut impl Write, folder: &Path) -> io::Result<()> {
    let file = |name: &str| folder.join(name).display().to_string();
    writeln!(out, "\nThe report (open it in a browser): {}", file("report.html"))?;
    writeln!(out, "\nTry next:")?;
    for (command, what) in [
        (format!("taipan check --all-levels {}", file("simulated.jsonl")), "which levels still hold"),
        (format!("taipan stats {}", file("real.jsonl")), "a summary of a history"),
        ("taipan run sqlite: --workload list-append".to_owned(), "another workload on a real database"),
        ("taipan generate --bug write-skew h.jsonl".to_owned(), "a history with another bug"),
        ("taipan check YOUR-HISTORY".to_owned(), "Jepsen, Elle, dbcop, Cobra, … or your own JSON lines"),
    ] {
        writeln!(out, "  {command}\n      {what}")?;
    }
    Ok(())
}
