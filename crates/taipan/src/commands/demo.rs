//! `taipan demo`: the main job with no set-up.

use crate::checking::{Checked, Checking};
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{LimitFlags, LoadFlags, PolicyFlags};
use crate::limits::Limits;
use crate::recording::{self, Recorded, Session};
use checker::Verdict;
use report::Told;
use std::io::{self, Write};
use std::path::Path;
use workload::{Bug, Config, Plant, Settings, Strength, Workload};

/// Large enough that nobody finds the bug by hand, small enough for a few seconds on a slow disk.
const TRANSACTIONS: u64 = 2000;
const SESSIONS: u32 = 6;
const KEYS: u32 = 50;

pub(crate) fn run(console: &mut Console) -> Outcome {
    let folder = tempfile::Builder::new()
        .prefix("taipan-demo-")
        .tempdir()
        .map_err(|error| Stop::Error(format!("no temporary folder: {error}")))?
        .keep();
    let (policy, limits) = (PolicyFlags::default(), LimitFlags::default());
    let checking = Checking::new(&policy, &limits).map_err(Stop::Error)?;
    let mut told = Told::default();

    let real = real_database(&folder.join("real.jsonl"), console)?;
    let first = present("real.jsonl", real, &checking, &folder, console)?;
    told.findings.push(first.finding);
    writeln!(console.out())?;

    let simulated = simulated_database(&folder.join("simulated.jsonl"), console)?;
    let second = present("simulated.jsonl", simulated, &checking, &folder, console)?;
    told.findings.push(second.finding);

    let page = folder.join("report.html");
    std::fs::write(&page, report::html(&told))
        .map_err(|error| Stop::Error(format!("{}: cannot be written: {error}", page.display())))?;
    what_next(console.out(), &folder)?;
    // The demo shows what it promises, or it fails.
    let as_promised =
        matches!((&first.verdict, &second.verdict), (Verdict::Accepted(_), Verdict::Violated(_)));
    Ok(if as_promised { Exit::Accepted } else { Exit::Violated })
}

/// A real database on disk, several connections in threads.
fn real_database(file: &Path, console: &mut Console) -> Result<Recorded, Stop> {
    let mut database = databases::open("sqlite:").map_err(|failure| Stop::Error(failure.to_string()))?;
    writeln!(
        console.out(),
        "1. {} on disk: {SESSIONS} connections, {TRANSACTIONS} transactions that read and write {KEYS} keys.",
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
        "2. A simulated database that promises the same, with a bug planted once among {TRANSACTIONS} \
         transactions:\n   {}: {}.",
        bug.name(),
        bug.about()
    )?;
    console.out().flush()?;
    let mut config = Config::new(settings(), Strength::Serializable, TRANSACTIONS);
    config.bugs.push((bug, Plant::Exactly(1)));
    let recorded = recording::simulated(config).map_err(Stop::Error)?;
    recorded.save(file).map_err(Stop::Error)?;
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
    checking: &Checking<'_>,
    folder: &Path,
    console: &mut Console,
) -> Result<Checked, Stop> {
    let Recorded { kept, level, time, planted, .. } = recorded;
    let opened = kept.open(name.to_owned(), checking)?;
    writeln!(
        console.out(),
        "   Recorded {} in {:.1} s: {}",
        opened.counts(),
        time.as_secs_f64(),
        folder.join(name).display()
    )?;
    let checked = {
        let progress = console.progress(1);
        progress.say("checking");
        let claim = checking.claim(level).map_err(Stop::Error)?;
        checking.check(&opened, claim).map_err(Stop::Error)?
    };
    let palette = console.palette();
    for line in report::text(&checked.finding, palette).lines() {
        writeln!(console.out(), "   {line}")?;
    }
    for planted in planted {
        writeln!(console.out(), "   (What was planted: {}.)", recording::place(&planted))?;
    }
    Ok(checked)
}

fn what_next(out: &mut impl Write, folder: &Path) -> io::Result<()> {
    let file = |name: &str| folder.join(name).display().to_string();
    writeln!(out, "\nThe report, for a browser: {}", file("report.html"))?;
    writeln!(out, "\nTry next:")?;
    for (command, what) in [
        (format!("taipan check --all-levels {}", file("simulated.jsonl")), "which levels still hold"),
        (format!("taipan stats {}", file("real.jsonl")), "what a history holds"),
        ("taipan run sqlite: --workload list-append".to_owned(), "another workload on a real database"),
        ("taipan generate --bug write-skew h.jsonl".to_owned(), "a history with another bug"),
        ("taipan check YOUR-HISTORY".to_owned(), "Jepsen, Elle, dbcop, Cobra, … or your own JSON lines"),
    ] {
        writeln!(out, "  {command}\n      {what}")?;
    }
    Ok(())
}
