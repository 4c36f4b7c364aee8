//! `taipan watch`: the online checker as a process.

use crate::console::{Console, Outcome, Stop};
use crate::crew;
use crate::exit::Exit;
use crate::flags::WatchFlags;
use crate::names::Names;
use checker::{Level, Rule};
use databases::{Address, Scratch};
use replay::online::{Kind, Settings};
use service::{
    Ended, EngineOptions, HttpOptions, Joiner, OpenFeed, Options, Outlets, Pace, Service, Source, Status,
    Trouble, Webhook,
};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use taipan::files::resident_bytes;

/// With less memory nothing useful can be done.
const MEMORY_MIN_BYTES: u64 = 32 << 20;
/// A journal longer than this is a reason for a checkpoint.
const JOURNAL_MAX_BYTES: u64 = 1 << 30;

pub(crate) fn run(flags: &WatchFlags, console: &mut Console) -> Outcome {
    if let Some(served) = crew::serve(&flags.crew, console) {
        return served;
    }
    let spill = Scratch::new("taipan-watch-").map_err(|failure| Stop::Error(failure.to_string()))?;
    let said = |error: String| Stop::Error(error);
    let level = Names::default().level(&flags.level, "--level <LEVEL>")?;
    if flags.max_memory.is_some_and(|bytes| bytes < MEMORY_MIN_BYTES) {
        return Err(said("--max-memory must be at least 32M".to_owned()));
    }
    let note = |note: String| {
        use io::Write;
        let _ = writeln!(anstream::stderr(), "taipan: {note}");
    };
    let (mut sources, mut joiner) = (sources(flags).map_err(said)?, None);
    if let Some(url) = database(flags, level).map_err(said)? {
        let (feed, join) = follow(url, flags, note)?;
        sources.push(Source::Feed(feed));
        joiner = Some(join);
    }
    let engine = EngineOptions {
        settings: Settings { ryow: flags.ryow.into(), ..Settings::new(level) },
        pace: if joiner.is_some() { Pace::Told } else { pace(flags) },
        state: flags.state.clone(),
        spill: Some(spill.path().to_owned()),
        journal_max: JOURNAL_MAX_BYTES,
        joiner,
        workers: crew::hired(&flags.crew, flags.max_memory.is_some()).map_err(said)?,
    };
    let webhook = flags.webhook.as_ref().map(|url| Webhook::new(url.expose())).transpose().map_err(said)?;
    let outlets = Outlets { stream: Some(Box::new(io::stdout())), webhook };
    let options = Options {
        engine,
        sources,
        outlets,
        checkpoint_every: flags.checkpoint,
        memory_max: flags.max_memory,
        notes: Box::new(note),
    };
    let service = match Service::start(options) {
        Ok(service) => service,
        Err(trouble) => return ended_early(&trouble, console),
    };
    for address in &service.bound {
        console.note(format_args!("listening on {address}"));
    }
    let switch = service.switch();
    for signal in [SIGINT, SIGTERM] {
        let switch = Arc::clone(&switch);
        // A second signal ends the process at once.
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&switch))
            .and_then(|_| signal_hook::flag::register(signal, switch))
            .map_err(|error| Stop::Error(error.to_string()))?;
    }
    let mut monitor = flags.crew.monitor.map(Monitor::new);
    while !service.is_over() && !switch.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        if let Some(monitor) = &mut monitor {
            monitor.look(|| service.status(), console);
        }
    }
    let violations = service.status().violations;
    let ended = match service.wait() {
        Ok(ended) => ended,
        // The reader of the findings has seen enough: what was found until then counts.
        Err(trouble) if trouble.error.kind() == io::ErrorKind::BrokenPipe => {
            return Ok(if violations > 0 { Exit::Violated } else { Exit::Accepted });
        }
        Err(trouble) => return ended_early(&trouble, console),
    };
    if let Some(monitor) = &mut monitor {
        monitor.say(&ended.status, console);
    }
    summarise(&ended, console);
    if let Some(why) = nothing_checked(&ended) {
        return Err(Stop::Error(why));
    }
    let is_undecided =
        ended.status.found.iter().any(|&(name, count)| name == Kind::Undecided.name() && count > 0);
    Ok(match ended.status.violations {
        0 if is_undecided => Exit::Undecided,
        0 => Exit::Accepted,
        _ => Exit::Violated,
    })
}

/// Why a watch that found no violation says nothing, if it does.
fn nothing_checked(ended: &Ended) -> Option<String> {
    let Status { received, refused, violations, .. } = ended.status;
    match (received, refused) {
        _ if violations > 0 => None,
        (0, 1..) => Some(format!("nothing was checked: none of {refused} lines is a transaction")),
        (0, 0) if ended.is_final => Some("nothing was checked: no transactions arrived".to_owned()),
        _ => None,
    }
}

/// Without a worker there is no verdict on its keys; anything else is an error.
fn ended_early(trouble: &Trouble, console: &mut Console) -> Outcome {
    if !crew::is_gone(&trouble.error) {
        return Err(Stop::Error(trouble.to_string()));
    }
    console.error(format_args!("{trouble}; findings reported before stand"));
    Ok(Exit::Undecided)
}

/// Says how far workers are.
struct Monitor {
    every: Duration,
    said: Instant,
    received: u64,
}

impl Monitor {
    fn new(seconds: u64) -> Self {
        Self { every: Duration::from_secs(seconds.max(1)), said: Instant::now(), received: 0 }
    }

    fn look(&mut self, status: impl FnOnce() -> Status, console: &mut Console) {
        if self.said.elapsed() >= self.every {
            self.say(&status(), console);
        }
    }

    fn say(&mut self, status: &Status, console: &mut Console) {
        let seconds = self.said.elapsed().as_secs_f64().max(1e-3);
        let rate = status.received.saturating_sub(self.received) as f64 / seconds;
        (self.said, self.received) = (Instant::now(), status.received);
        for worker in &status.workers {
            console.note(worker);
        }
        let memory = resident_bytes().unwrap_or(0) >> 20;
        console.note(format_args!("{} transactions, {rate:.0}/s, {memory} MB in total", status.received));
        let most = status.workers.iter().max_by_key(|worker| worker.pieces);
        let all: u64 = status.workers.iter().map(|worker| worker.pieces).sum();
        if let Some(most) = most.filter(|most| most.pieces * status.workers.len() as u64 > 2 * all) {
            console.note(format_args!("worker {} has much more to do than the others", most.worker));
        }
    }
}

fn pace(flags: &WatchFlags) -> Pace {
    match flags.window {
        _ if flags.explicit_watermarks => Pace::Told,
        Some(transactions) => Pace::Window { transactions, longest: transactions },
        None => Pace::Grace { grace: flags.grace, longest: flags.longest },
    }
}

/// The database to follow, if there is one.
fn database(flags: &WatchFlags, level: Level) -> Result<Option<Address>, String> {
    let names = flags.files.iter().filter_map(|path| path.to_str());
    let urls: Vec<&str> = names.filter(|name| is_database(name)).collect();
    match urls.as_slice() {
        [] if flags.slot.is_some() || !flags.table.is_empty() => {
            Err("--table and --slot need a database to follow: postgres://USER@HOST/DATABASE".to_owned())
        }
        [] => Ok(None),
        _ if level.rule != Rule::SnapshotIsolation => Err(
            "a followed database can only be checked at snapshot isolation: its commit order need not be a serial order"
                .to_owned(),
        ),
        _ if flags.window.is_some() || flags.explicit_watermarks => {
            Err("with a followed database, only --grace and --longest decide when verdicts become final: remove --window or --explicit-watermarks".to_owned())
        }
        [url] => Ok(Some(Address::from(*url))),
        _ => Err("only one database can be followed".to_owned()),
    }
}

/// A database's change stream, and what joins it with the other sources.
fn follow(
    url: Address,
    flags: &WatchFlags,
    note: impl Fn(String) + Send + 'static,
) -> Result<(OpenFeed, Joiner), Stop> {
    #[cfg(feature = "postgres")]
    return Ok(crate::following::follow(url, flags, note));
    #[cfg(not(feature = "postgres"))]
    {
        let _ = (flags, note);
        Err(Stop::Error(format!(
            "{url}: this build of taipan has no PostgreSQL; build it with --features postgres"
        )))
    }
}

/// Whether what is to be watched is a database.
fn is_database(name: &str) -> bool {
    name.starts_with("postgres://") || name.starts_with("postgresql://")
}

fn sources(flags: &WatchFlags) -> Result<Vec<Source>, String> {
    let mut sources: Vec<Source> = Vec::new();
    let is_file = |path: &&PathBuf| !path.to_str().is_some_and(is_database);
    for path in flags.files.iter().filter(is_file) {
        let stream: Box<dyn io::Read + Send> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).map_err(|error| format!("{}: {error}", path.display()))?),
        };
        sources.push(Source::Stream(stream));
    }
    let token = || flags.token.clone();
    sources.extend(flags.tcp.iter().map(|&address| Source::Tcp { address, token: token() }));
    sources.extend(flags.unix.iter().map(|path| Source::Unix(path.clone())));
    sources.extend(flags.http.map(|address| {
        let patience = HttpOptions::PATIENCE;
        Source::Http(HttpOptions { address, token: token(), body_max: flags.max_body, patience })
    }));
    sources.extend(flags.broker.iter().cloned().map(Source::Broker));
    if flags.stdin || sources.is_empty() {
        sources.push(Source::Stream(Box::new(io::stdin())));
    }
    Ok(sources)
}

fn summarise(ended: &Ended, console: &mut Console) {
    let status = &ended.status;
    let kinds: Vec<String> = status
        .found
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{count} × {name}"))
        .collect();
    let found = if kinds.is_empty() { "nothing".to_owned() } else { kinds.join(", ") };
    let open = status.received - status.checked;
    let rest = if ended.is_final || open == 0 { String::new() } else { format!("; {open} not final yet") };
    console.note(format_args!("{} transactions arrived, found {found}{rest}", status.received));
    if let Some(joined) = &ended.joined {
        console.note(format_args!("{joined}"));
    }
}
