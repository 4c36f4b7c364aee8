//! From a target and a workload to a recorded history.

use crate::console::Progress;
use crate::flags::WorkloadFlags;
use checker::Level;
use databases::{Counts, Database, Header, Isolation, Plan, Recorder, RunOptions, Sinks, WorkloadPlan};
use history::{Builder, History};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use workload::{Config, Fields, Planted, Settings, Simulation, Strength, Workload};

/// A history and where it came from.
pub(crate) struct Recorded {
    pub(crate) history: History,
    /// What the database promised.
    pub(crate) level: Level,
    /// The database, for people.
    pub(crate) database: String,
    /// Bugs that were planted.
    pub(crate) planted: Vec<Planted>,
    /// How long it took.
    pub(crate) time: Duration,
}

/// How to record from a live database.
pub(crate) struct Session<'a> {
    /// The isolation level to ask for, by the database's name; the strongest if none is given.
    pub(crate) isolation: Option<&'a str>,
    /// Whether to ask for the database's own timestamps.
    pub(crate) timestamps: bool,
    /// When to stop, if not after the number of transactions.
    pub(crate) duration: Option<Duration>,
    /// A file in the native format, written as it happens.
    pub(crate) file: Option<PathBuf>,
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
        self.apply(&mut config)?;
        Ok(config.plan)
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
    Ok(Recorded { history, level, database, planted: summary.planted, time: started.elapsed() })
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
    let isolation = isolation(database, session.isolation)?;
    let level = Level::parse(isolation.promises).map_err(said)?;
    if session.timestamps {
        database.enable_timestamps(&isolation).map_err(said)?;
    }
    let plan = WorkloadPlan::new(settings).map_err(said)?;
    let header = Header {
        level: Some(level.name().to_owned()),
        initial: plan.initial(),
        notes: vec![
            ("database".to_owned(), name.clone()),
            ("isolation".to_owned(), isolation.name.to_owned()),
            ("workload".to_owned(), plan.settings().workload.name().to_owned()),
            ("seed".to_owned(), plan.settings().seed.to_string()),
        ],
    };
    database.create(&plan.schema(), &header.initial).map_err(said)?;
    let sinks = Sinks { file: session.file, memory: true, ..Sinks::default() };
    let recorder = Recorder::new(&header, sinks).map_err(said)?;
    let options = RunOptions {
        sessions: plan.sessions_max(),
        transactions: session.duration.is_none().then_some(transactions),
        duration: session.duration,
        isolation: Some(isolation),
        ..RunOptions::default()
    };
    let summary = watched(&options, progress, || databases::run(database, &plan, &recorder, &options))?;
    let history = match session.timestamps {
        true => recorder.finish_timestamped(database).map_err(said)?,
        false => recorder.finish().map_err(said)?,
    };
    Ok(Recorded { history, level, database: name, planted: Vec::new(), time: summary.elapsed })
}

fn isolation(database: &dyn Database, wanted: Option<&str>) -> Result<Isolation, String> {
    let offered = database.isolations();
    let found = match wanted {
        None => offered.last(),
        Some(wanted) => offered.iter().find(|isolation| isolation.name == wanted),
    };
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|isolation| isolation.name).collect();
        format!(
            "{} has no isolation level {:?}; it has {}",
            database.name(),
            wanted.unwrap_or_default(),
            names.join(", ")
        )
    })
}

/// Runs a workload while another thread tells the progress bar how far it is.
fn watched<T>(
    options: &RunOptions,
    progress: &Progress,
    run: impl FnOnce() -> Result<T, databases::RunError>,
) -> Result<T, String> {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let Counts { committed, aborted, unknown, .. } = options.progress.counts();
                progress.at(committed + aborted + unknown);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
        let result = run();
        done.store(true, Ordering::Relaxed);
        result.map_err(said)
    })
}

/// Writes a history in the native format, or the one that the file's name tells.
pub(crate) fn save(history: &History, file: &Path) -> Result<(), String> {
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
