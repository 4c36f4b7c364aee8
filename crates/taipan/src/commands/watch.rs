//! `taipan watch`: the online checker as a process.

use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::WatchFlags;
use crate::following;
use checker::Rule;
use checker::timestamped::online::Settings;
use service::{Ended, EngineOptions, HttpOptions, Options, Outlets, Pace, Service, Source, Webhook};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// With less memory nothing useful can be done.
const MEMORY_MIN_BYTES: u64 = 32 << 20;
/// A journal longer than this is a reason for a checkpoint.
const JOURNAL_MAX_BYTES: u64 = 1 << 30;

pub(crate) fn run(flags: &WatchFlags, console: &mut Console) -> Outcome {
    let spill = tempfile::tempdir().map_err(|error| Stop::Error(error.to_string()))?;
    let said = |error: String| Stop::Error(error);
    if flags.max_memory.is_some_and(|bytes| bytes < MEMORY_MIN_BYTES) {
        return Err(said("--max-memory must be 32M or more".to_owned()));
    }
    let note = |note: String| {
        use io::Write;
        let _ = writeln!(anstream::stderr(), "taipan: {note}");
    };
    let (mut sources, mut joiner) = (sources(flags).map_err(said)?, None);
    if let Some(url) = database(flags).map_err(said)? {
        let (feed, join) = following::follow(url, flags, note);
        sources.push(Source::Feed(feed));
        joiner = Some(join);
    }
    let engine = EngineOptions {
        settings: Settings { ryow: flags.ryow.into(), ..Settings::new(flags.level) },
        pace: if joiner.is_some() { Pace::Told } else { pace(flags) },
        state: flags.state.clone(),
        spill: Some(spill.path().to_owned()),
        journal_max: JOURNAL_MAX_BYTES,
        joiner,
    };
    let webhook = flags.webhook.as_deref().map(Webhook::new).transpose().map_err(said)?;
    let outlets = Outlets { stream: Some(Box::new(io::stdout())), webhook };
    let options = Options {
        engine,
        sources,
        outlets,
        checkpoint_every: flags.checkpoint,
        memory_max: flags.max_memory,
        notes: Box::new(note),
    };
    let service = Service::start(options).map_err(|trouble| Stop::Error(trouble.to_string()))?;
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
    while !service.is_over() && !switch.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let ended = service.wait().map_err(|trouble| match trouble.error.kind() {
        io::ErrorKind::BrokenPipe => Stop::Output(trouble.error),
        _ => Stop::Error(trouble.to_string()),
    })?;
    summarise(&ended, console);
    Ok(if ended.status.violations > 0 { Exit::Violated } else { Exit::Accepted })
}

fn pace(flags: &WatchFlags) -> Pace {
    match flags.window {
        _ if flags.told => Pace::Told,
        Some(transactions) => Pace::Window { transactions, longest: transactions },
        None => Pace::Grace { grace: flags.grace, longest: flags.longest },
    }
}

/// The database to follow, if there is one.
fn database(flags: &WatchFlags) -> Result<Option<&str>, String> {
    let names = flags.files.iter().filter_map(|path| path.to_str());
    let urls: Vec<&str> = names.filter(|name| following::is_database(name)).collect();
    match urls.as_slice() {
        [] if flags.slot.is_some() || !flags.table.is_empty() => {
            Err("--table and --slot belong to a database that is followed: postgres://USER@HOST/DATABASE".to_owned())
        }
        [] => Ok(None),
        _ if flags.level.rule != Rule::SnapshotIsolation => Err(
            "a followed database is checked at snapshot isolation: the order of commits is not that of a serializable \
             execution"
                .to_owned(),
        ),
        _ if flags.window.is_some() || flags.told => {
            Err("for a followed database --grace and --longest say when verdicts become final".to_owned())
        }
        [url] => Ok(Some(url)),
        _ => Err("one database can be followed at a time".to_owned()),
    }
}

fn sources(flags: &WatchFlags) -> Result<Vec<Source>, String> {
    let mut sources: Vec<Source> = Vec::new();
    let is_file = |path: &&PathBuf| !path.to_str().is_some_and(following::is_database);
    for path in flags.files.iter().filter(is_file) {
        let stream: Box<dyn io::Read + Send> = match path.as_os_str() == "-" {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(path).map_err(|error| format!("{}: {error}", path.display()))?),
        };
        sources.push(Source::Stream(stream));
    }
    sources.extend(flags.tcp.iter().map(|&address| Source::Tcp(address)));
    sources.extend(flags.unix.iter().map(|path| Source::Unix(path.clone())));
    sources.extend(flags.http.map(|address| {
        Source::Http(HttpOptions { address, token: flags.token.clone(), body_max: flags.max_body })
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
    let rest =
        if ended.is_final || open == 0 { String::new() } else { format!("; {open} are not final yet") };
    console.note(format_args!("{} transactions arrived, found {found}{rest}", status.received));
    if let Some(joined) = &ended.joined {
        console.note(format_args!("{joined}"));
    }
}
