//! Several workers: what the dataflow costs beside the plain check, what a second worker gains, and how many bytes would
//! move between machines.

use crate::flags::ScalePart;
use crate::timestamps::{peak_megabytes, write_history};
use cluster::spread::{self, Digested, Plan};
use cluster::{Cluster, Job, Monitor, Setup, Share};
use cpu_time::ProcessTime;
use evidence::check;
use history::formats::{Format, ReadOptions, SplitBy, read_parts, read_path, split};
use isolation::{By, Claim, Level, Options, Passes, Rule, Verdict, VerdictKind};
use replay::Streamed;
use replay::shards::digest;
use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

const LEVEL: Level = Level::SNAPSHOT_ISOLATION;

/// What is measured.
struct Measured {
    level: Level,
    by: By,
    said: &'static str,
}

const TIMESTAMPS: Measured =
    Measured { level: LEVEL, by: By::Timestamps, said: "snapshot isolation by timestamps" };
/// Results alone: all sessions and keys hang together.
const RESULTS: [Measured; 3] = [
    Measured {
        level: Level::new(Rule::Causal, true, false),
        by: By::Results,
        said: "causal by results, one component",
    },
    Measured {
        level: Level::new(Rule::ReadAtomic, true, false),
        by: By::Results,
        said: "read-atomic by results, one component",
    },
    Measured {
        level: Level::new(Rule::AxiomaticReadCommitted, true, false),
        by: By::Results,
        said: "axiomatic-read-committed by results, one component",
    },
];

/// Keys and operations of a transaction.
const KEYS: usize = 100_000;
const OPS: usize = 8;

/// By results one process holds everything.
const RESULTS_MAX: usize = 2_000_000;

pub(crate) fn run(transactions: usize, part: Option<ScalePart>) -> Result<(), Box<dyn Error>> {
    if part.is_none_or(|part| part == ScalePart::Checks) {
        checks(transactions, &TIMESTAMPS)?;
    }
    if part.is_none_or(|part| part == ScalePart::Results) {
        for measured in &RESULTS {
            println!();
            checks(transactions.min(RESULTS_MAX), measured)?;
        }
    }
    if part == Some(ScalePart::Causal) {
        checks(transactions, &RESULTS[0])?;
    }
    if part.is_none_or(|part| part == ScalePart::Volumes) {
        volumes(transactions.min(1_000_000))?;
    }
    Ok(())
}

fn checks(transactions: usize, measured: &Measured) -> Result<(), Box<dyn Error>> {
    println!(
        "{transactions} transactions of {OPS} operations on {KEYS} keys, sorted by commit; {}; reading included",
        measured.said
    );
    println!(
        "{:<12} {:<16} {:>8} {:>8} {:>22} {:>14} {:>10}",
        "from", "by", "wall s", "CPU s", "of the busiest worker", "plain / that", "peak MB"
    );
    let folder = tempfile::tempdir()?;
    let mut forms = vec![("JSON lines", Format::Jsonl, false), ("binary", Format::Binary, false)];
    if measured.by == By::Results {
        // The order of the files is not that of commits: clocks are needed.
        forms.push(("by session", Format::Binary, true));
    }
    for (name, format, is_by_session) in forms {
        let mut path = folder.path().join("history");
        write_history(transactions, KEYS, OPS, format, &path)?;
        if is_by_session {
            let shards = folder.path().join("shards");
            split(&path, &ReadOptions::default(), &shards, 4, SplitBy::Session, format)?;
            std::fs::remove_file(std::mem::replace(&mut path, shards))?;
        }
        let mut plain = 0.0;
        for (processes, workers) in [(1, 0), (1, 1), (1, 2), (2, 1)] {
            let Cost { wall, cpu, busiest, peak } = in_a_process(&path, processes, workers, measured)?;
            if workers == 0 {
                plain = cpu;
            }
            let by = match (processes, workers) {
                (_, 0) => "the plain check".to_owned(),
                (1, 1) => "1 worker".to_owned(),
                (1, workers) => format!("{workers} workers"),
                (processes, _) => format!("{processes} processes"),
            };
            println!(
                "{name:<12} {by:<16} {wall:>8.2} {cpu:>8.2} {busiest:>22.2} {:>14.2} {peak:>10.0}",
                plain / busiest,
            );
        }
        if is_by_session { std::fs::remove_dir_all(&path)? } else { std::fs::remove_file(&path)? }
    }
    Ok(())
}

/// What a check took: seconds, and megabytes.
struct Cost {
    wall: f64,
    cpu: f64,
    busiest: f64,
    peak: f64,
}

/// Measures a check in a process of its own: what an earlier one has left in memory would count as its peak.
fn in_a_process(
    path: &Path,
    processes: usize,
    workers: usize,
    measured: &Measured,
) -> Result<Cost, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?)
        .arg("scale-one")
        .arg(path)
        .args([processes.to_string(), workers.to_string(), measured.said.to_owned()])
        .output()?;
    let told = String::from_utf8(output.stdout)?;
    let numbers: Vec<f64> = told.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [wall, cpu, busiest, peak] if output.status.success() => Ok(Cost { wall, cpu, busiest, peak }),
        _ => Err(String::from_utf8_lossy(&output.stderr).into()),
    }
}

/// The process that is measured.
pub(crate) fn measure_one(
    path: &Path,
    processes: usize,
    workers: usize,
    said: &str,
) -> Result<(), Box<dyn Error>> {
    let mut all = std::iter::once(&TIMESTAMPS).chain(&RESULTS);
    let measured = all.find(|it| it.said == said).ok_or("nothing is measured under that name")?;
    let (started, cpu) = (Instant::now(), ProcessTime::now());
    let busiest = match workers {
        0 if measured.by == By::Results => whole(path, measured.level).map(|()| None)?,
        0 => in_parts(path).map(|()| None)?,
        _ => Some(on_workers(path, processes, workers, measured)?),
    };
    let (wall, cpu) = (started.elapsed().as_secs_f64(), cpu.elapsed().as_secs_f64());
    println!("{wall} {cpu} {} {}", busiest.unwrap_or(cpu), peak_megabytes());
    Ok(())
}

fn in_parts(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut streamed = Streamed::new(LEVEL)?;
    let mut is_clean = true;
    read_parts(path, &ReadOptions::default(), |part| {
        is_clean &= streamed.take(&part).is_ok();
        is_clean
    })?;
    if is_clean { Ok(()) } else { Err("the history is valid, and was not accepted".into()) }
}

fn whole(path: &Path, level: Level) -> Result<(), Box<dyn Error>> {
    let history = read_path(path, &ReadOptions::default())?.history;
    let options = Options { threads: 1, ..Options::default() };
    let outcome = check(&history, level, &options);
    if matches!(outcome.verdict, Verdict::Accepted(_)) {
        Ok(())
    } else {
        Err("the history is valid, and was not accepted".into())
    }
}

/// Also the CPU seconds of the busiest worker: what the wall time is where every worker has a core. Processes are threads of
/// this one that know nothing of each other but their addresses.
fn on_workers(
    path: &Path,
    processes: usize,
    workers: usize,
    measured: &Measured,
) -> Result<f64, Box<dyn Error>> {
    let ports: Vec<TcpListener> =
        (0..processes).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let addresses: Vec<String> =
        ports.iter().map(|port| Ok(port.local_addr()?.to_string())).collect::<Result<_, std::io::Error>>()?;
    drop(ports);
    let patience = Duration::from_secs(30);
    let setup = |process| Setup {
        workers,
        cluster: (processes > 1).then(|| Cluster { addresses: addresses.clone(), process, patience }),
    };
    let check = |process| {
        let monitor = Monitor::new(workers, workers * process);
        let passes = Passes { timestamps: measured.by == By::Timestamps, ..Passes::default() };
        let job = Job {
            setup: setup(process),
            paths: vec![path.to_owned()],
            share: Share::All,
            claim: Claim::new(measured.level).by(measured.by),
            own_levels: Vec::new(),
            options: Options { passes, ..Options::default() },
            reading: ReadOptions::default(),
            monitor: monitor.clone(),
        };
        let busiest = |monitor: &Monitor| {
            monitor.standings().iter().map(|standing| standing.cpu_seconds()).fold(0.0, f64::max)
        };
        cluster::check(job).map(|answer| (answer, busiest(&monitor)))
    };
    let check = &check;
    let answers: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..processes).map(|process| scope.spawn(move || check(process))).collect();
        running.into_iter().map(|it| it.join()).collect()
    });
    let mut busiest = 0.0f64;
    for answer in answers {
        let (answer, spent) = answer.map_err(|_| "a process panicked")??;
        let is_settled = answer.found.is_none_or(|found| match measured.by {
            By::Results => found.note.is_none_or(|note| note.starts_with("decided by")),
            _ => found.outcome.is_none(),
        });
        if answer.verdict != VerdictKind::Accepted || !is_settled {
            return Err("the history is valid, and was not accepted by all workers together".into());
        }
        busiest = busiest.max(spent);
    }
    Ok(busiest)
}

/// What would move between machines: every part is digested for so many shards, and nothing is sent.
fn volumes(transactions: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("history.tph");
    write_history(transactions, KEYS, OPS, Format::Binary, &path)?;
    println!(
        "\nbytes of digests, {transactions} transactions of {OPS} operations on {KEYS} keys; what goes to other machines, \
         and the fullest shard beside the mean"
    );
    println!(
        "{:<10} {:>18} {:>22} {:>24} {:>16}",
        "machines", "bytes a txn", "of them to others", "GB for 10^9 a machine", "fullest / mean"
    );
    for machines in MACHINES {
        let mut by_home = vec![0u64; machines];
        read_parts(&path, &ReadOptions::default(), |part| {
            for digest in digest(&part, 0, machines, LEVEL).digests {
                by_home[digest.home as usize] += digest.bytes() as u64;
            }
            true
        })?;
        tell_volume(machines, transactions, &by_home, 0);
    }
    println!(
        "\nthe same for causal by results: digests, sources that go back, and of each transaction the largest number that \
         precedes it, which all are told"
    );
    let plan =
        Plan::of(RESULTS[0].level, &Options::default()).ok_or("causal is decided by all workers together")?;
    for machines in MACHINES {
        let mut by_home = vec![0u64; machines];
        let mut told = 0;
        read_parts(&path, &ReadOptions::default(), |part| {
            let Ok(Digested { digests, kept, .. }) = spread::digest(&part, 0, 0, machines, plan) else {
                return false;
            };
            for digest in digests {
                by_home[digest.home as usize] += digest.bytes() as u64 + 4 * digest.reads() as u64;
            }
            told += 4 * kept.len() as u64 * (machines as u64 - 1);
            true
        })?;
        tell_volume(machines, transactions, &by_home, told);
    }
    Ok(())
}

const MACHINES: [usize; 6] = [1, 2, 4, 8, 16, 32];

/// What goes to homes of keys, and what goes to others in any case.
fn tell_volume(machines: usize, transactions: usize, by_home: &[u64], told: u64) {
    let to_homes: u64 = by_home.iter().sum();
    let told = told as f64 / transactions as f64;
    let each = to_homes as f64 / transactions as f64;
    let others = each * (machines - 1) as f64 / machines as f64 + told;
    let fullest = by_home.iter().max().copied().unwrap_or(0) as f64;
    println!(
        "{machines:<10} {:>18.0} {others:>22.0} {:>24.1} {:>16.2}",
        each + told,
        others / machines as f64,
        fullest * machines as f64 / to_homes as f64
    );
}
