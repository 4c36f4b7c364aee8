//! `taipan hunt`: random SQL in transactions against the same statements without.

use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::flags::{HuntFlags, HuntOutput, WritesSee};
use crate::input::passwords;
use crate::recording::Interrupt;
use crate::sweeper::Sweeper;
use ::hunt::{CampaignOptions, Examination, Finding, Group, Settings, Stage, Summary, Weights};
use databases::{Database, Failure, Fault, Isolation, Limit, Scripted};
use serde_json::json;
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(crate) fn run(flags: &HuntFlags, console: &mut Console) -> Outcome {
    match &flags.replay {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Stop::Error(format!("{}: {error}", file.display())))?;
            replay(flags, &text, console)
        }
        None => search(flags, console),
    }
}

fn said(error: impl Display) -> Stop {
    Stop::Error(error.to_string())
}

fn scripted(database: &dyn Database) -> Result<&dyn Scripted, Stop> {
    database.scripted().ok_or_else(|| {
        Stop::Error(format!("{} does not speak SQL; `taipan hunt` needs a SQL database", database.name()))
    })
}

fn search(flags: &HuntFlags, console: &mut Console) -> Outcome {
    let progress = console.progress(0);
    progress.say(format_args!("opening {}", flags.target));
    let mut database = databases::open_with(&flags.target, &passwords()).map_err(said)?;
    database.set_limit(Limit::within(flags.patience));
    let scripted = scripted(&*database)?;
    let options = options(flags, &*database)?;
    let _sweeper = Sweeper::start(flags.target.expose(), &::hunt::leftovers(flags.tables))?;
    let interrupt = Interrupt::watch().map_err(said)?;
    let watched = Arc::new(Watched::default());
    Watched::end_promptly(&watched, interrupt.flag(), flags.save.display().to_string());
    let mut saver = Saver { folder: &flags.save, files: Vec::new(), trouble: None };
    let mut watch = |summary: &Summary| {
        show(summary, &progress);
        for group in &summary.groups[saver.files.len()..] {
            if saver.save(group) {
                progress.pause(|| {
                    console.note(format_args!("found: {}; saved as {}", group.signature, saver.last()))
                });
            }
        }
        watched.found.store(saver.files.len(), Ordering::Relaxed);
        !interrupt.is_asked() && saver.trouble.is_none()
    };
    let mut bring_back = || {
        progress.pause(|| drop(writeln!(anstream::stderr(), "taipan: lost the server, or it hangs")));
        revive(&*database)
    };
    let result = ::hunt::campaign(scripted, &options, &mut bring_back, &mut watch);
    watched.is_over.store(true, Ordering::Relaxed);
    interrupt.is_over();
    drop(progress);
    let summary = result.map_err(said)?;
    let files = saver.finish(&summary)?;
    match flags.output {
        HuntOutput::Text => text(&summary, &files, &*database, &options, console)?,
        HuntOutput::Json => lines(&summary, &files, &*database, console)?,
    }
    Ok(if summary.groups.is_empty() { Exit::Accepted } else { Exit::Violated })
}

/// How far a campaign is, for the thread that ends the program where Ctrl-C finds it waiting for a server.
#[derive(Default)]
struct Watched {
    is_over: AtomicBool,
    /// How many findings are saved.
    found: AtomicUsize,
}

/// How long the case that is under way may take after Ctrl-C.
const LAST_CASE: Duration = Duration::from_millis(1000);

impl Watched {
    /// A server that hangs does not answer, and threads that wait for it cannot be woken; what was found is saved.
    fn end_promptly(watched: &Arc<Self>, asked: &'static AtomicBool, folder: String) {
        let watched = Arc::clone(watched);
        std::thread::spawn(move || {
            let look = || std::thread::sleep(Duration::from_millis(20));
            let is_over = || watched.is_over.load(Ordering::Relaxed);
            while !asked.load(Ordering::Relaxed) && !is_over() {
                look();
            }
            let give_up = Instant::now() + LAST_CASE;
            while Instant::now() < give_up && !is_over() {
                look();
            }
            if is_over() {
                return;
            }
            let (found, exit) = match watched.found.load(Ordering::Relaxed) {
                0 => ("nothing was found".to_owned(), 0),
                1 => (format!("1 finding is saved in {folder}"), 1),
                found => (format!("{found} findings are saved in {folder}"), 1),
            };
            let _ = writeln!(
                anstream::stderr(),
                "\ntaipan: interrupted while the server did not answer; the case under way is left out; {found}"
            );
            std::process::exit(exit);
        });
    }
}

fn options(flags: &HuntFlags, database: &dyn Database) -> Result<CampaignOptions, Stop> {
    let mut weights = Weights::default();
    for (name, weight) in &flags.weight {
        weights.set(name, *weight);
    }
    let supported = ::hunt::levels(database.isolations());
    let levels = match flags.isolation.is_empty() {
        true => supported,
        false => flags.isolation.iter().map(|name| level(name, &supported)).collect::<Result<_, _>>()?,
    };
    Ok(CampaignOptions {
        settings: Settings {
            transactions: flags.transactions,
            statements: flags.statements,
            tables: flags.tables,
            rows: flags.rows,
            depth: flags.depth,
            weights,
        },
        examination: examination(flags),
        levels,
        seed: flags.seed,
        cases: flags.cases,
        time: flags.time.or_else(|| flags.cases.is_none().then_some(Duration::from_secs(60))),
        reduction: flags.reduce,
        patience: flags.patience,
        writes_see_snapshot: flags.writes_see == WritesSee::Snapshot,
        findings_max: flags.findings,
    })
}

fn examination(flags: &HuntFlags) -> Examination {
    Examination { orders: flags.orders, levels: !flags.no_levels, ..Examination::default() }
}

fn level(name: &str, supported: &[Isolation]) -> Result<Isolation, Stop> {
    let found = supported.iter().find(|level| level.is_called(name)).copied();
    found.ok_or_else(|| {
        let names: Vec<&str> = supported.iter().map(|level| level.name).collect();
        Stop::Error(format!("unknown level {name:?}; expected one of: {}", names.join(", ")))
    })
}

/// Brings the server back after a crash; the end of its log says what happened.
fn revive(database: &dyn Database) -> Result<Option<String>, Failure> {
    let log = database.log_end();
    if !database.inflict(Fault::KillServer)? {
        // A server that is not ours may come back by itself.
        std::thread::sleep(Duration::from_secs(2));
    }
    Ok(log)
}

fn show(summary: &Summary, progress: &Progress) {
    let Summary { cases, tally, groups, .. } = summary;
    progress.say(format_args!(
        "{cases} cases ({:.1}/s), {} statements ({:.1} % accepted, {} of {} SQL features), {} transactions \
         committed, {} aborted, {} findings",
        rate(summary),
        tally.statements,
        accepted(summary),
        summary.features.len(),
        ::hunt::FEATURES.len(),
        tally.committed,
        tally.aborted,
        groups.len()
    ));
}

fn rate(summary: &Summary) -> f64 {
    summary.cases as f64 / summary.elapsed.as_secs_f64().max(1e-9)
}

fn accepted(summary: &Summary) -> f64 {
    let tally = &summary.tally;
    100.0 * (1.0 - tally.refused as f64 / tally.statements.max(1) as f64)
}

fn in_server(summary: &Summary) -> f64 {
    100.0 * summary.in_server.as_secs_f64() / summary.elapsed.as_secs_f64().max(1e-9)
}

/// Writes one file a finding as it comes, under numbers that are free.
struct Saver<'f> {
    folder: &'f Path,
    files: Vec<PathBuf>,
    trouble: Option<String>,
}

impl Saver<'_> {
    fn save(&mut self, group: &Group) -> bool {
        match self.create(&group.discovery.script) {
            Ok(file) => self.files.push(file),
            Err(error) => self.trouble = Some(format!("{}: {error}", self.folder.display())),
        }
        self.trouble.is_none()
    }

    fn create(&self, script: &str) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(self.folder)?;
        let mut number = self.files.len();
        loop {
            number += 1;
            let file = self.folder.join(format!("{number}.sql"));
            match std::fs::OpenOptions::new().write(true).create_new(true).open(&file) {
                Ok(mut out) => return out.write_all(script.as_bytes()).map(|()| file),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn last(&self) -> String {
        self.files.last().map(|file| file.display().to_string()).unwrap_or_default()
    }

    /// Writes again what has become smaller since.
    fn finish(self, summary: &Summary) -> Result<Vec<String>, Stop> {
        if let Some(trouble) = self.trouble {
            return Err(Stop::Error(trouble));
        }
        for (group, file) in summary.groups.iter().zip(&self.files) {
            std::fs::write(file, &group.discovery.script)
                .map_err(|error| Stop::Error(format!("{}: {error}", file.display())))?;
        }
        Ok(self.files.iter().map(|file| file.display().to_string()).collect())
    }
}

fn text(
    summary: &Summary,
    files: &[String],
    database: &dyn Database,
    options: &CampaignOptions,
    console: &mut Console,
) -> Result<(), Stop> {
    let out = console.out();
    let tally = &summary.tally;
    let levels: Vec<&str> = options.levels.iter().map(|level| level.name).collect();
    writeln!(out, "{} at {}", database.name(), levels.join(", "))?;
    writeln!(
        out,
        "{} cases in {:.1} s ({:.1}/s, {:.0} % of the time in the database), seed {}",
        summary.cases,
        summary.elapsed.as_secs_f64(),
        rate(summary),
        in_server(summary),
        options.seed
    )?;
    writeln!(
        out,
        "{} statements ({:.2} % accepted), {} transactions committed, {} aborted",
        tally.statements,
        accepted(summary),
        tally.committed,
        tally.aborted
    )?;
    writeln!(
        out,
        "{} statements compared in {} runs (skipped: {} that waited for locks, {} on cycles; {} cases given up)",
        tally.compared, tally.rounds, tally.blocked, tally.cyclic, tally.abandoned
    )?;
    let unseen: Vec<&str> =
        ::hunt::FEATURES.into_iter().filter(|name| !summary.features.contains_key(name)).collect();
    writeln!(out, "{} of {} SQL features used", summary.features.len(), ::hunt::FEATURES.len())?;
    if !unseen.is_empty() {
        writeln!(out, "not used: {}", unseen.join(", "))?;
    }
    let mut refusals: Vec<_> = summary.refusals.iter().collect();
    refusals.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
    for (why, (count, example)) in refusals.into_iter().take(3) {
        let why: Vec<&str> = why.split_whitespace().collect();
        writeln!(out, "{count} rejected: {}; for example {example}", why.join(" "))?;
    }
    if summary.fleeting > 0 {
        writeln!(out, "{} findings could not be reproduced and are left out", summary.fleeting)?;
    }
    if summary.groups.is_empty() {
        writeln!(out, "nothing found")?;
    }
    for (group, file) in summary.groups.iter().zip(files) {
        writeln!(out, "\n{} × {} at {}", group.count, group.signature, group.discovery.isolation.name)?;
        for line in told(group) {
            writeln!(out, "  {line}")?;
        }
        writeln!(out, "  saved as {file}")?;
    }
    Ok(())
}

fn told(group: &Group) -> Vec<String> {
    let examined = &group.discovery.examined;
    examined.finding.iter().flat_map(|finding| ::hunt::describe(finding, &examined.case)).collect()
}

fn lines(
    summary: &Summary,
    files: &[String],
    database: &dyn Database,
    console: &mut Console,
) -> Result<(), Stop> {
    for (group, file) in summary.groups.iter().zip(files) {
        let line = json!({
            "signature": group.signature,
            "count": group.count,
            "isolation": group.discovery.isolation.name,
            "case": group.discovery.case,
            "told": told(group),
            "file": file,
        });
        writeln!(console.out(), "{line}")?;
    }
    let tally = &summary.tally;
    let line = json!({
        "database": database.name(),
        "cases": summary.cases,
        "seconds": summary.elapsed.as_secs_f64(),
        "cases_a_second": rate(summary),
        "percent_in_database": in_server(summary),
        "statements": tally.statements,
        "percent_accepted": accepted(summary),
        "committed": tally.committed,
        "aborted": tally.aborted,
        "executions": tally.rounds,
        "blocked": tally.blocked,
        "cyclic": tally.cyclic,
        "compared": tally.compared,
        "given_up": tally.abandoned,
        "fleeting": summary.fleeting,
        "revived": summary.revived,
        "refusals": summary.refusals,
        "features": summary.features,
        "findings": summary.groups.len(),
    });
    writeln!(console.out(), "{line}")?;
    Ok(())
}

/// Orders that a saved case is compared with at least: it is small, and only some of them may show the difference.
const REPLAY_ORDERS: u32 = 20;

/// Executes a saved case and tells what it shows.
fn replay(flags: &HuntFlags, file: &str, console: &mut Console) -> Outcome {
    let script = ::hunt::script::parse(file).map_err(said)?;
    let mut database = databases::open_with(&flags.target, &passwords()).map_err(said)?;
    database.set_limit(Limit::within(flags.patience));
    let case = &script.case;
    let drop_all = |kind: &str, names: &[String]| -> Vec<String> {
        names.iter().rev().map(|name| format!("DROP {kind} IF EXISTS {name}")).collect()
    };
    let leftovers = [drop_all("VIEW", &case.views), drop_all("TABLE", &case.tables)].concat();
    let _sweeper = Sweeper::start(flags.target.expose(), &leftovers)?;
    let scripted = scripted(&*database)?;
    let supported = ::hunt::levels(database.isolations());
    let name = flags.isolation.first().unwrap_or(&script.isolation);
    let isolation = level(name, &supported)?;
    let mut stage = Stage::open(scripted, isolation).map_err(said)?;
    stage.set_patience(flags.patience);
    let mut random = workload::Random::new(flags.seed);
    let how = Examination { orders: flags.orders.max(REPLAY_ORDERS), ..examination(flags) };
    let examined = ::hunt::examine(&mut stage, &script.case, &how, &mut random).map_err(said)?;
    stage.clear();
    let out = console.out();
    writeln!(out, "{} at {}", database.name(), isolation.name)?;
    let taken = script.case.steps.len() - examined.case.steps.len();
    if taken > 0 {
        writeln!(out, "{taken} statements skipped (rejected, waited for locks, or on cycles)")?;
    }
    match &examined.finding {
        None => writeln!(out, "nothing found")?,
        Some(finding) => {
            for line in ::hunt::describe(finding, &examined.case) {
                writeln!(out, "{line}")?;
            }
        }
    }
    let lost = matches!(examined.finding, Some(Finding::Trouble(_)));
    if let Some(log) = database.log_end().filter(|_| lost) {
        writeln!(out, "the server's log:\n{}", ::hunt::last_words(&log).join("\n"))?;
    }
    Ok(if examined.finding.is_some() { Exit::Violated } else { Exit::Accepted })
}
