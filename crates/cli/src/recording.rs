//! From a target and a workload to a recorded history.

use crate::checking::Checking;
use crate::console::Progress;
use crate::failure::Failure;
use crate::flags::{LoadFlags, WorkloadFlags};
use crate::live::Live;
use crate::sweeper::Sweeper;
use checker::Level;
use checker::implies;
use databases::{
    Counts, Database, Detail, Fault, Header, Isolation, Limit, Naming, Plan, Recorder, RunOptions, Scratch,
    Sinks, WorkloadPlan,
};
use history::formats::{Format, ReadOptions};
use history::{Builder, History};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fmt::Display;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use taipan::files::{Guard, Limits, Opened};
use workload::{Config, Fields, Planted, Settings, Simulation, Strength, Workload};

/// A history and where it came from.
pub(crate) struct Recorded {
    pub(crate) kept: Kept,
    /// What the database promised.
    pub(crate) level: Level,
    /// The database's own level that it ran at.
    pub(crate) isolation: Option<Isolation>,
    /// The database, for people.
    pub(crate) database: String,
    /// Bugs that were planted.
    pub(crate) planted: Vec<Planted>,
    /// How long it took.
    pub(crate) time: Duration,
    /// Why the run ended before its time.
    pub(crate) trouble: Option<String>,
    /// What was seen while it ran.
    pub(crate) live: Option<Live>,
}

/// Where a recorded history is.
pub(crate) enum Kept {
    /// In memory.
    Here(Box<History>),
    /// In a file of the native format; the folder is its own where the file was not asked for.
    File(PathBuf, Option<Scratch>),
}

impl Recorded {
    /// Writes what is in memory into a file.
    pub(crate) fn save(&self, file: &Path) -> Result<(), String> {
        match &self.kept {
            Kept::Here(history) => save(history, file),
            Kept::File(..) => Ok(()),
        }
    }
}

impl Kept {
    /// The history, within the limits of checking.
    pub(crate) fn open(self, name: String, checking: &Checking) -> Result<Opened, Failure> {
        match self {
            Self::Here(history) => Ok(Opened::new(name, *history)),
            Self::File(file, _folder) => {
                let format = Some(Format::Jsonl);
                let reading = ReadOptions { format, allow_empty: true, ..ReadOptions::default() };
                Ok(checking.open_as(&file, &reading)?.called(name))
            }
        }
    }
}

/// How to record from a live database.
pub(crate) struct Session<'a> {
    /// The isolation level to ask for, by the database's name.
    pub(crate) isolation: Option<&'a str>,
    /// The levels that will be checked; without a name, the weakest isolation level that promises them all is
    /// asked for, else the strongest.
    pub(crate) levels: &'a [Level],
    /// Whether to ask for the database's own timestamps.
    pub(crate) timestamps: bool,
    /// Whether the online checker looks on.
    pub(crate) live: bool,
    /// When to stop, if not after the number of transactions.
    pub(crate) duration: Option<Duration>,
    /// A file in the native format, written as it happens. The history is then read from it afterwards.
    pub(crate) file: Option<PathBuf>,
    /// The database, as it was typed.
    pub(crate) target: &'a str,
    /// What recording may use.
    pub(crate) limits: Limits,
    /// Everything else.
    pub(crate) load: &'a LoadFlags,
}

impl WorkloadFlags {
    /// The simulation of these flags on a simulated database.
    pub(crate) fn config(&self, target: &workload::Target) -> Result<Config, String> {
        let settings = Workload::named(&self.workload).map_err(said)?;
        let mut config = target.config(settings, self.transactions).map_err(said)?;
        self.apply(&mut config)?;
        Ok(config)
    }

    /// What clients do, whoever answers them.
    pub(crate) fn plan(&self) -> Result<Settings, String> {
        let settings = Workload::named(&self.workload).map_err(said)?;
        let mut config = Config::new(settings, Strength::Serializable, self.transactions);
        config.plan.sessions = LIVE_SESSIONS;
        let simulated = config.clone();
        self.apply(&mut config)?;
        // What is not part of the plan is a property of the simulated database.
        let plan = std::mem::replace(&mut config.plan, simulated.plan.clone());
        match config == simulated {
            true => Ok(plan),
            false => {
                Err("--set: on a real database, only settings of the workload can be changed".to_owned())
            }
        }
    }

    fn apply(&self, config: &mut Config) -> Result<(), String> {
        let mut set = |name: &str, value: &str| config.set(name, value).map_err(said);
        if let Some(seed) = self.seed {
            set("seed", &seed.to_string())?;
        }
        if let Some(sessions) = self.sessions {
            set("sessions", &sessions.to_string())?;
        }
        self.set.iter().try_for_each(|(name, value)| set(name, value))
    }
}

/// Connections to a live database, unless somebody says otherwise.
const LIVE_SESSIONS: u32 = 8;

/// Records from a simulated database.
pub(crate) fn simulated(config: Config) -> Result<Recorded, String> {
    let started = Instant::now();
    let level = Level::parse(config.strength.promise()).map_err(said)?;
    let database = format!("a simulated database that promises {level}");
    let mut builder = Builder::new();
    let simulation = Simulation::new(config).map_err(said)?;
    let summary = simulation.run(Fields::default(), &mut builder).map_err(said)?;
    let history = builder.finish().map_err(said)?;
    Ok(Recorded {
        kept: Kept::Here(Box::new(history)),
        level,
        isolation: None,
        database,
        planted: summary.planted,
        time: started.elapsed(),
        trouble: None,
        live: None,
    })
}

/// Records from a live database.
pub(crate) fn live(
    database: &mut dyn Database,
    settings: Settings,
    transactions: u64,
    session: Session<'_>,
    progress: &Progress,
) -> Result<Recorded, String> {
    let name = database.name();
    let isolation = isolation(database, session.isolation, session.levels)?;
    let level = Level::parse(isolation.promises).map_err(said)?;
    for (_, fault) in &session.load.fault {
        if !database.can_suffer(*fault) {
            return Err(impossible(*fault, &name));
        }
    }
    let interrupt = Interrupt::watch().map_err(said)?;
    // A server that hangs is not waited for when the run is to end.
    database.set_limit(Limit::within(session.load.patience).hurried_by(interrupt.flag()));
    let plan = plan(settings, session.load)?;
    let header = header(&name, &isolation, level, &plan);
    database.create(&plan.schema(), &header.initial).map_err(said)?;
    let timestamps = session.timestamps || session.live;
    if timestamps {
        database.enable_timestamps(&isolation).map_err(said)?;
    }
    let sweeper = Sweeper::start(session.target, &database.leftovers())?;
    let repeats = plan.settings().duplicate_keys > 0.0;
    let live = || live_level(level, session.levels).and_then(|level| Live::new(level, repeats));
    let mut live = session.live.then(live).transpose()?;
    // What the online checker takes from memory is read from a file afterwards.
    let scratch = (session.live && session.file.is_none()).then(|| Scratch::new("taipan-run-"));
    let scratch = scratch.transpose().map_err(said)?;
    let in_scratch = || scratch.as_ref().map(|folder| folder.path().join("history.jsonl"));
    let file = session.file.or_else(in_scratch);
    let sinks = Sinks {
        memory: file.is_none() || session.live,
        file: file.clone(),
        stamps: timestamps,
        detail: session.load.detail(),
        ..Sinks::default()
    };
    let recorder = Recorder::new(&header, sinks).map_err(said)?;
    let options = RunOptions {
        sessions: plan.sessions_max(),
        transactions: session.duration.is_none().then_some(transactions),
        duration: session.duration,
        isolation: Some(isolation),
        think: session.load.think,
        pause: session.load.pause,
        lead_max: session.load.lead,
        faults: session.load.fault.clone(),
        ..RunOptions::default()
    };
    let started = Instant::now();
    // Time is for the check; memory for what is recorded, too.
    let guard = Limits { time: None, ..session.limits }.guard(started);
    let database: &dyn Database = database;
    let run = || databases::run(database, &plan, &recorder, &options);
    let tick = || {
        let live = live.as_mut()?;
        live.tick(&options.gate, &recorder, database);
        Some(live.standing())
    };
    let result = watched(&options, progress, &interrupt, &guard, tick, run);
    let time = started.elapsed();
    // A run that stopped early, by a full disk or a server that went away, left a history that is whole.
    let trouble = match result {
        Ok(_) => None,
        Err(error) if options.progress.counts() == Counts::default() => return Err(said(error)),
        Err(error) => Some(said(error)),
    };
    if let (lost @ 1.., Some(trouble)) = (recorder.lost(), &trouble) {
        return Err(format!(
            "{trouble}; {lost} committed transactions are missing from the recording, so it is not checked"
        ));
    }
    if let Some(live) = &mut live {
        live.finish(&recorder, database)?;
    }
    let history = match timestamps {
        true => databases::finish_timestamped(recorder, database).map_err(said)?,
        false => recorder.finish().map_err(said)?,
    };
    interrupt.is_over();
    drop(sweeper);
    let kept = match file {
        None => Kept::Here(Box::new(history)),
        Some(file) => Kept::File(file, scratch),
    };
    let isolation = Some(isolation);
    Ok(Recorded { kept, level, isolation, database: name, planted: Vec::new(), time, trouble, live })
}

/// Why a fault is refused.
fn impossible(fault: Fault, database: &str) -> String {
    let needs = match fault {
        Fault::KillConnection => "a server (PostgreSQL, MariaDB or MySQL)",
        Fault::KillServer | Fault::RestartServer | Fault::PauseServer => {
            "a temporary server, such as postgres:temp or mariadb:temp"
        }
    };
    format!("--fault {}: {database} does not support this fault; it needs {needs}", fault.name())
}

/// The level that is checked while the database runs: by timestamps, so without the orders that another
/// level may allow.
fn live_level(promised: Level, asked: &[Level]) -> Result<Level, String> {
    let snapshot_isolation = Level::SNAPSHOT_ISOLATION;
    let levels = if asked.is_empty() { &[promised] } else { asked };
    match levels.iter().any(|level| implies(*level, snapshot_isolation)) {
        true => Ok(snapshot_isolation),
        false => {
            Err("--live checks snapshot isolation, which this run neither promises nor checks: use --level or --isolation".to_owned())
        }
    }
}

impl LoadFlags {
    fn detail(&self) -> Detail {
        Detail { statements: !self.no_statements, operation_clocks: !self.no_operation_clocks }
    }
}

fn plan(settings: Settings, load: &LoadFlags) -> Result<WorkloadPlan, String> {
    let naming = if load.spread_keys { Naming::Spread } else { Naming::InOrder };
    let plan = WorkloadPlan::new(settings).map_err(said)?;
    Ok(plan.with_locking_reads(load.lock_reads.into()).with_naming(naming))
}

fn header(database: &str, isolation: &Isolation, level: Level, plan: &WorkloadPlan) -> Header {
    let settings = plan.settings();
    let note = |name: &str, value: &dyn Display| (name.to_owned(), value.to_string());
    Header {
        level: Some(level.name().to_owned()),
        initial: plan.initial(),
        notes: vec![
            note("database", &database),
            note("isolation", &isolation.name),
            note("workload", &settings.workload.name()),
            note("seed", &settings.seed),
            note("sessions", &settings.sessions),
            note("keys", &settings.keys),
        ],
    }
}

/// The isolation level to ask for.
fn isolation(database: &dyn Database, wanted: Option<&str>, levels: &[Level]) -> Result<Isolation, String> {
    let offered = database.isolations();
    let promises_all = |isolation: &&Isolation| {
        let promised = Level::parse(isolation.promises);
        promised.is_ok_and(|promised| levels.iter().all(|asked| implies(promised, *asked)))
    };
    let found = match (wanted, levels) {
        (None, []) => offered.last(),
        (None, _) => offered.iter().find(promises_all).or(offered.last()),
        (Some(wanted), _) => offered.iter().find(|isolation| isolation.is_called(wanted)),
    };
    found.copied().ok_or_else(|| no_such_level(&database.name(), wanted.unwrap_or_default(), offered))
}

/// That a database has no level of a name, and which one was likely meant.
pub(crate) fn no_such_level(database: &str, wanted: &str, offered: &[Isolation]) -> String {
    let names: Vec<&str> = offered.iter().map(|isolation| isolation.name).collect();
    // A level of the literature, which the database calls something else.
    let meant = Level::parse(wanted).ok();
    let same = offered.iter().find(|it| meant.is_some() && Level::parse(it.promises).ok() == meant);
    let hint = same.map(|it| format!(" ({} is its {wanted})", it.name)).unwrap_or_default();
    format!("{database} has no isolation level {wanted:?}; it has {}{hint}", names.join(", "))
}

/// What a database guarantees at a level, and what can go wrong: one sentence.
pub(crate) fn guarantee(database: &str, isolation: &Isolation) -> String {
    let vendor = database.split(' ').next().unwrap_or(database);
    let title = isolation.title();
    let Ok(promised) = Level::parse(isolation.promises) else { return String::new() };
    let possible = promised.allows();
    match isolation.logical {
        Some(_) => format!(
            "{vendor}'s {title} matches no level of the literature: plain reads see a snapshot, locking reads and writes the \
             newest rows; {possible}."
        ),
        None => format!("{vendor}'s {title} is {}: {possible}.", promised.name().replace('-', " ")),
    }
}

/// The same for a simulated database, which keeps its promise except where a bug is planted.
pub(crate) fn simulated_guarantee(level: Level, planted: usize) -> String {
    let (name, possible) = (level.name().replace('-', " "), level.allows());
    match planted {
        0 => format!("This simulated database keeps {name}: {possible}."),
        1 => format!("This simulated database promises {name} ({possible}); 1 planted bug breaks that."),
        bugs => {
            format!("This simulated database promises {name} ({possible}); {bugs} planted bugs break that.")
        }
    }
}

/// Ctrl-C ends the workload; a second one, or one after the workload, ends the program.
pub(crate) struct Interrupt {
    /// Watched as long as the program runs.
    asked: &'static AtomicBool,
}

impl Interrupt {
    pub(crate) fn watch() -> std::io::Result<Self> {
        let asked: &'static Arc<AtomicBool> = Box::leak(Box::default());
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, Arc::clone(asked))?;
            signal_hook::flag::register(signal, Arc::clone(asked))?;
        }
        Ok(Self { asked })
    }

    /// What Ctrl-C sets.
    pub(crate) fn flag(&self) -> &'static AtomicBool {
        self.asked
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub(crate) fn is_over(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}

/// Runs a workload while another thread tells the progress bar how far it is, and looks for Ctrl-C.
fn watched<T: Send>(
    options: &RunOptions,
    progress: &Progress,
    interrupt: &Interrupt,
    guard: &Guard,
    mut tick: impl FnMut() -> Option<String> + Send,
    run: impl FnOnce() -> Result<T, databases::RunError>,
) -> Result<T, databases::RunError> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut rate = Rate::new();
            let tell = |what: &str| {
                progress.pause(|| drop(writeln!(anstream::stderr(), "taipan: {what}")));
            };
            while !done.load(Ordering::Relaxed) {
                rate.show(options.progress.counts(), tick().as_deref(), progress);
                options.progress.take_notes().iter().for_each(|note| tell(note));
                if interrupt.is_asked() && !options.progress.stopped() {
                    options.progress.stop();
                    tell("ends after the transactions that are open; Ctrl-C again ends at once");
                }
                if guard.budget().exhausted().is_some() && !options.progress.stopped() {
                    options.progress.stop();
                    tell("out of memory: the run ends here; --record keeps the history in a file");
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            options.progress.take_notes().iter().for_each(|note| tell(note));
        });
        let result = run();
        done.store(true, Ordering::Relaxed);
        result
    })
}

/// Transactions a second, over the last second or so.
struct Rate {
    since: Instant,
    before: u64,
    a_second: f64,
}

impl Rate {
    fn new() -> Self {
        Self { since: Instant::now(), before: 0, a_second: 0.0 }
    }

    fn show(&mut self, counts: Counts, standing: Option<&str>, progress: &Progress) {
        let Counts { committed, aborted, unknown, .. } = counts;
        let all = committed + aborted + unknown;
        progress.at(all);
        let passed = self.since.elapsed().as_secs_f64();
        if passed < 0.5 {
            return;
        }
        self.a_second = (all - self.before) as f64 / passed;
        (self.since, self.before) = (Instant::now(), all);
        let share = 100.0 * aborted as f64 / all.max(1) as f64;
        let unknown = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
        let standing = standing.map(|standing| format!("; {standing}")).unwrap_or_default();
        progress.say(format_args!("{:.0}/s, {share:.0} % aborted{unknown}{standing}", self.a_second));
    }
}

/// Writes a history in the native format, or the one that the file's name tells.
fn save(history: &History, file: &Path) -> Result<(), String> {
    let format = crate::input::target_format(file, None)?;
    history::formats::write_path(history, format, file).map_err(said)
}

/// Where a bug was planted: `lost-update: transactions 1:3, 2:5 on keys 7`.
pub(crate) fn place(planted: &Planted) -> String {
    // The recorder names sessions from 1.
    let names: Vec<String> =
        planted.transactions.iter().map(|(session, place)| format!("{}:{place}", session + 1)).collect();
    let keys: Vec<String> = planted.keys.iter().map(|key| key.0.to_string()).collect();
    let plural = if keys.len() == 1 { "" } else { "s" };
    format!("{}: transactions {} on key{plural} {}", planted.bug.name(), names.join(", "), keys.join(", "))
}

fn said(error: impl Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_level_implies() {
        let level = |name| Level::parse(name).expect("a name of the table");
        let (ser, si, rc) = (level("SER"), level("SI"), level("RC"));
        assert!(implies(ser, ser) && implies(ser, si) && implies(ser, rc) && implies(si, rc));
        assert!(!implies(si, ser) && !implies(rc, si));
    }
}
