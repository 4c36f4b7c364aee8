//! Checks by timestamps: offline from JSON lines and from the binary form, online with late arrivals, and the service
//! over a socket.
//!
//! The database is a small one that keeps snapshot isolation: 24 sessions, keys by Zipf's law (0.99), half of the
//! operations writes; a transaction whose key was overwritten since its start is aborted and left out. Arrivals are
//! late by up to 4000 transactions, in batches of 500, as in Chronos and Aion (Li et al., ICDE 2025) §VI.

use crate::flags::TimestampsPart;
use cpu_time::ProcessTime;
use history::formats::{Format, Part, ReadOptions, Writing, read_parts, read_path};
use history::{Builder, History, Lock, Timestamp, ValueId};
use isolation::{Level, Options};
use replay::Streamed;
use replay::online::{Online, Settings};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SESSIONS: usize = 24;
const BATCH: usize = 500;
const JITTER: u64 = 4000;
/// How many transactions later a verdict is final.
const WINDOW: usize = 100_000;

struct Txn {
    session: usize,
    start: i64,
    commit: i64,
    /// Is it a write; the key; the value.
    ops: Vec<(bool, u32, u32)>,
}

/// The database.
struct Database {
    random: u64,
    keys: Zipf,
    ops: usize,
    /// Of each key the value and when it was written.
    current: Vec<(u32, i64)>,
    clock: i64,
    next_value: u32,
    open: Vec<Txn>,
    free: Vec<usize>,
}

/// Zipf's law over many keys by Gray's method ("Quickly generating billion-record synthetic databases", 1994).
struct Zipf {
    keys: f64,
    zeta: f64,
    eta: f64,
}

const SKEW: f64 = 0.99;

impl Zipf {
    fn new(keys: usize) -> Self {
        let sum = |count: usize| (1..=count).map(|key| (key as f64).powf(-SKEW)).sum::<f64>();
        let zeta = sum(keys);
        let eta = (1.0 - (2.0 / keys as f64).powf(1.0 - SKEW)) / (1.0 - sum(2) / zeta);
        Self { keys: keys as f64, zeta, eta }
    }

    fn key(&self, chance: f64) -> usize {
        let scaled = chance * self.zeta;
        if scaled < 1.0 {
            0
        } else if scaled < 1.0 + 0.5f64.powf(SKEW) {
            1
        } else {
            let place = self.keys * (self.eta * chance - self.eta + 1.0).powf(1.0 / (1.0 - SKEW));
            (place as usize).min(self.keys as usize - 1)
        }
    }
}

impl Database {
    fn new(keys: usize, ops: usize) -> Self {
        Self {
            random: 1,
            keys: Zipf::new(keys),
            ops,
            current: vec![(0, 0); keys],
            clock: 0,
            next_value: 0,
            open: Vec::new(),
            free: (0..SESSIONS).collect(),
        }
    }

    fn random(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random
    }

    fn chance(&mut self) -> f64 {
        (self.random() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn tick(&mut self) -> i64 {
        self.clock += 1;
        self.clock
    }

    fn begin(&mut self, session: usize) -> Txn {
        let mut txn = Txn { session, start: self.tick(), commit: 0, ops: Vec::with_capacity(self.ops) };
        for _ in 0..self.ops {
            let chance = self.chance();
            let key = self.keys.key(chance);
            if self.random().is_multiple_of(2) {
                self.next_value += 1;
                txn.ops.push((true, key as u32, self.next_value));
            } else {
                let own = txn.ops.iter().rev().find(|op| op.0 && op.1 == key as u32);
                let value = own.map_or(self.current[key].0, |op| op.2);
                txn.ops.push((false, key as u32, value));
            }
        }
        txn
    }

    /// The next transaction that commits.
    fn next(&mut self) -> Txn {
        loop {
            while let Some(session) = self.free.pop() {
                let txn = self.begin(session);
                self.open.push(txn);
            }
            let index = self.random() as usize % self.open.len();
            let mut txn = self.open.swap_remove(index);
            self.free.push(txn.session);
            let is_beaten = |op: &&(bool, u32, u32)| op.0 && self.current[op.1 as usize].1 > txn.start;
            if txn.ops.iter().find(is_beaten).is_some() {
                continue;
            }
            txn.commit = self.tick();
            for &(writes, key, value) in &txn.ops {
                if writes {
                    self.current[key as usize] = (value, txn.commit);
                }
            }
            return txn;
        }
    }
}

/// Adds a transaction to a history.
fn add(builder: &mut Builder, txn: &Txn) -> Result<(), Box<dyn Error>> {
    let session = builder.session((txn.session as i64).into());
    builder.begin(session);
    for &(writes, key, value) in &txn.ops {
        let key = builder.key(i64::from(key).into());
        let value = if value == 0 { ValueId::ABSENT } else { builder.int(i64::from(value)) };
        match writes {
            true => builder.write(key, value),
            false => builder.read(key, value, Lock::None),
        };
    }
    builder.set_db(txn.start.into(), txn.commit.into())?;
    builder.end()?;
    Ok(())
}

/// All parts but the one that takes as long as it is let, or one.
pub(crate) fn run(transactions: usize, part: Option<TimestampsPart>) -> Result<(), Box<dyn Error>> {
    match part {
        None => {
            offline(transactions)?;
            online(transactions)?;
            socket(transactions)
        }
        Some(TimestampsPart::Offline) => offline(transactions),
        Some(TimestampsPart::Online) => online(transactions),
        Some(TimestampsPart::Sustained) => sustained(transactions),
        Some(TimestampsPart::Socket) => socket(transactions),
    }
}

pub(crate) fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// Forgets the peak, where the system lets us.
pub(crate) fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

fn timed<T>(work: impl FnOnce() -> Result<T, Box<dyn Error>>) -> Result<(T, f64), Box<dyn Error>> {
    let started = ProcessTime::now();
    let result = work()?;
    Ok((result, started.elapsed().as_secs_f64()))
}

fn offline(transactions: usize) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let (json, binary) = (folder.path().join("h.jsonl"), folder.path().join("h.tph"));
    write(transactions, Format::Jsonl, &json)?;
    write(transactions, Format::Binary, &binary)?;
    println!(
        "offline, {transactions} transactions of 15 operations, sorted by commit; snapshot isolation; CPU seconds"
    );
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>14} {:>10}",
        "from", "MB", "read", "check", "checked M/s", "peak MB"
    );
    for (name, path) in [("JSON lines", &json), ("binary", &binary)] {
        reset_peak();
        let (history, read) = timed(|| Ok(read_path(path, &ReadOptions::default())?.history))?;
        let (report, check) =
            timed(|| Ok(replay::check(&history, Level::SNAPSHOT_ISOLATION, &Options::default())?))?;
        if !report.findings.is_empty() {
            return Err("the history is valid, and something was found".into());
        }
        let megabytes = std::fs::metadata(path)?.len() as f64 / 1e6;
        let rate = transactions as f64 / check / 1e6;
        println!(
            "{name:<22} {megabytes:>8.0} {read:>8.2} {check:>8.2} {rate:>14.2} {:>10}",
            peak_megabytes()
        );
    }
    for (name, path) in [("JSON lines, in parts", &json), ("binary, in parts", &binary)] {
        reset_peak();
        let mut streamed = Streamed::new(Level::SNAPSHOT_ISOLATION)?;
        let mut check = 0.0;
        let (is_clean, all) = timed(|| {
            let mut is_clean = true;
            read_parts(path, &ReadOptions::default(), |part| {
                let started = ProcessTime::now();
                is_clean &= streamed.take(&part).is_ok();
                check += started.elapsed().as_secs_f64();
                is_clean
            })?;
            Ok(is_clean)
        })?;
        if !is_clean {
            return Err("the history is valid, and was not accepted".into());
        }
        let megabytes = std::fs::metadata(path)?.len() as f64 / 1e6;
        let (read, rate) = (all - check, transactions as f64 / check / 1e6);
        println!(
            "{name:<22} {megabytes:>8.0} {read:>8.2} {check:>8.2} {rate:>14.2} {:>10}",
            peak_megabytes()
        );
    }
    Ok(())
}

fn write(transactions: usize, format: Format, path: &Path) -> Result<(), Box<dyn Error>> {
    write_history(transactions, 1000, 15, format, path)
}

/// Writes what the database does to a file, in the order of commits.
pub(crate) fn write_history(
    transactions: usize,
    keys: usize,
    ops: usize,
    format: Format,
    path: &Path,
) -> Result<(), Box<dyn Error>> {
    let mut database = Database::new(keys, ops);
    let mut builder = Builder::new();
    let mut writing = Writing::create(path)?;
    let mut part = Part { last: false, ..Part::WHOLE };
    for number in 1..=transactions {
        add(&mut builder, &database.next())?;
        if number % PART == 0 || number == transactions {
            let history = builder.take_part()?;
            part.last = number == transactions;
            writing.part(&history, format, part)?;
            part.index += 1;
            part.transactions_before += history.len() as u64;
            part.operations_before += history.op_count() as u64;
        }
    }
    writing.finish()?;
    Ok(())
}

/// How many transactions a part of a file holds.
const PART: usize = 50_000;

/// Transactions in the order of arrival.
struct Arrivals {
    database: Database,
    late: BinaryHeap<Reverse<(u64, usize)>>,
    waiting: Vec<Option<Txn>>,
    holes: Vec<usize>,
    made: u64,
    left: usize,
}

impl Arrivals {
    fn new(keys: usize, count: usize) -> Self {
        Self {
            database: Database::new(keys, 8),
            late: BinaryHeap::new(),
            waiting: Vec::new(),
            holes: Vec::new(),
            made: 0,
            left: count,
        }
    }
}

impl Iterator for Arrivals {
    type Item = Txn;

    fn next(&mut self) -> Option<Txn> {
        while self.left > 0 && self.late.len() < 2 * JITTER as usize {
            let txn = self.database.next();
            let slot = self.holes.pop().unwrap_or_else(|| {
                self.waiting.push(None);
                self.waiting.len() - 1
            });
            self.waiting[slot] = Some(txn);
            let delay = self.database.random() % JITTER;
            self.late.push(Reverse((self.made + delay, slot)));
            self.made += 1;
            self.left -= 1;
        }
        let Reverse((_, slot)) = self.late.pop()?;
        self.holes.push(slot);
        self.waiting[slot].take()
    }
}

fn online(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!(
        "\nonline, one core, transactions of 8 operations, verdicts final after {WINDOW} transactions; only the checker's time"
    );
    println!(
        "{:<34} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "", "thousand/s", "ratio", "state MB", "spill MB", "peak MB"
    );
    let mut base = None;
    for (name, keys, memory, window) in [
        ("1000 keys", 1000, None, WINDOW),
        ("1000 keys, 64 MB", 1000, Some(64 << 20), 20_000),
        ("10 million keys", 10_000_000, None, WINDOW),
        ("10 million keys, 64 MB", 10_000_000, Some(64 << 20), 20_000),
    ] {
        reset_peak();
        let Followed { rate, state, spill, .. } = follow(transactions, keys, memory, window)?;
        let base = *base.get_or_insert(rate);
        println!(
            "{name:<34} {:>12.0} {:>9.2}× {:>10.0} {:>10.0} {:>10}",
            rate / 1e3,
            rate / base,
            state as f64 / 1e6,
            spill as f64 / 1e6,
            peak_megabytes()
        );
    }
    Ok(())
}

/// A long stream of few keys: does it stay as fast, and memory as small?
fn sustained(transactions: usize) -> Result<(), Box<dyn Error>> {
    reset_peak();
    let Followed { rate, state, .. } = follow(transactions, 1000, None, WINDOW)?;
    println!(
        "online, one core, {transactions} transactions of 8 operations, 1000 keys: {:.0} thousand/s of the checker's time, state {:.0} MB, peak {} MB",
        rate / 1e3,
        state as f64 / 1e6,
        peak_megabytes()
    );
    Ok(())
}

/// What following a stream took.
pub(crate) struct Followed {
    /// Transactions a second of the checker's own time.
    rate: f64,
    /// The most bytes of its state.
    pub(crate) state: usize,
    /// Bytes on disk.
    spill: u64,
    /// CPU seconds of making transactions and putting them into batches, and of the checker.
    pub(crate) build_s: f64,
    pub(crate) check_s: f64,
    pub(crate) wall_s: f64,
    /// In the course of it: transactions received, and megabytes of state then.
    pub(crate) samples: Vec<(f64, f64)>,
}

/// How often the state is looked at, in batches.
const SAMPLED_EVERY: usize = 10;

pub(crate) fn follow(
    transactions: usize,
    keys: usize,
    memory: Option<usize>,
    window: usize,
) -> Result<Followed, Box<dyn Error>> {
    let (all, clock) = (ProcessTime::now(), Instant::now());
    let folder = tempfile::tempdir()?;
    let spill = service::Spill::create(folder.path(), false)?;
    let settings =
        Settings { memory_max: memory.map(|bytes| bytes / 2), ..Settings::new(Level::SNAPSHOT_ISOLATION) };
    let mut online = Online::new(settings)?.with_cold(Box::new(spill.clone()));
    let mut arrivals = Arrivals::new(keys, transactions);
    let (mut newest, mut past) = (0, VecDeque::new());
    let (mut spent, mut received, mut state) = (0.0, 0, 0);
    let mut samples = Vec::new();
    loop {
        let mut builder = Builder::new();
        for txn in arrivals.by_ref().take(BATCH) {
            newest = newest.max(txn.commit);
            add(&mut builder, &txn)?;
        }
        let part: History = builder.finish()?;
        if part.is_empty() {
            break;
        }
        received += part.len();
        past.push_back(newest);
        let passed = if past.len() > window / BATCH { past.pop_front() } else { None };
        let ((), seconds) = timed(|| {
            online.receive(&part)?;
            if let Some(watermark) = passed {
                let horizon = Timestamp::from(watermark - 2 * SESSIONS as i64);
                online.advance(watermark.into(), Some(horizon))?;
            }
            Ok(())
        })?;
        spent += seconds;
        state = state.max(online.size().bytes);
        if (received / BATCH).is_multiple_of(SAMPLED_EVERY) {
            samples.push((received as f64, online.size().bytes as f64 / 1e6));
        }
    }
    let ((), seconds) = timed(|| Ok(online.finish()?))?;
    if let Some(found) = online.findings()?.first() {
        return Err(format!("the stream is valid, and something was found: {found:?}").into());
    }
    let check_s = spent + seconds;
    Ok(Followed {
        rate: received as f64 / check_s,
        state,
        spill: spill.disk(),
        build_s: all.elapsed().as_secs_f64() - check_s,
        check_s,
        wall_s: clock.elapsed().as_secs_f64(),
        samples,
    })
}

fn line(out: &mut Vec<u8>, txn: &Txn) -> std::io::Result<()> {
    write!(
        out,
        "{{\"session\":{},\"db\":{{\"start\":{},\"commit\":{}}},\"ops\":[",
        txn.session, txn.start, txn.commit
    )?;
    for (index, &(writes, key, value)) in txn.ops.iter().enumerate() {
        let op = if writes { "write" } else { "read" };
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}{{\"op\":\"{op}\",\"key\":{key},\"value\":")?;
        match value {
            0 => write!(out, "null}}")?,
            value => write!(out, "{value}}}")?,
        }
    }
    writeln!(out, "]}}")
}

/// The service with a state folder, over TCP: as fast as they are accepted, then at 50,000 a second.
fn socket(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!(
        "\nservice over TCP with a state folder, two cores, transactions of 8 operations, 1000 keys; wall time"
    );
    for (name, pace, checkpoint_s) in [
        ("as fast as they are accepted", None, 60),
        ("at 50,000 a second", Some(50_000.0), 60),
        ("the same, checkpoint every 2 s", Some(50_000.0), 2),
    ] {
        let count = if pace.is_some() { transactions.min(500_000) } else { transactions };
        let mut batches: Vec<Vec<u8>> = Vec::new();
        let mut arrivals = Arrivals::new(1000, count).peekable();
        let size = if pace.is_some() { 100 } else { BATCH };
        while arrivals.peek().is_some() {
            let mut lines = Vec::new();
            for txn in arrivals.by_ref().take(size) {
                line(&mut lines, &txn)?;
            }
            batches.push(lines);
        }
        let folder = tempfile::tempdir()?;
        let service = service::Service::start(service::Options {
            engine: service::EngineOptions {
                settings: Settings::new(Level::SNAPSHOT_ISOLATION),
                pace: service::Pace::Window { transactions: 20_000, longest: 20_000 },
                state: Some(folder.path().to_owned()),
                spill: None,
                journal_max: 1 << 30,
                joiner: None,
                workers: None,
            },
            sources: vec![service::Source::Tcp { address: "127.0.0.1:0".parse()?, token: None }],
            outlets: service::Outlets::default(),
            checkpoint_every: Duration::from_secs(checkpoint_s),
            memory_max: None,
            notes: Box::new(|_| {}),
        })?;
        let mut stream = TcpStream::connect(service.bound[0])?;
        let answers = BufReader::new(stream.try_clone()?);
        let listener = std::thread::spawn(move || {
            let last = format!("{{\"durable\":{count}}}");
            answers.lines().map_while(Result::ok).any(|line| line == last)
        });
        let (started, cpu) = (Instant::now(), ProcessTime::now());
        for (index, lines) in batches.iter().enumerate() {
            if let Some(rate) = pace {
                let due = started + Duration::from_secs_f64((index * size) as f64 / rate);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            stream.write_all(lines)?;
        }
        if !listener.join().is_ok_and(|all| all) {
            return Err("not everything was acknowledged".into());
        }
        let seconds = started.elapsed().as_secs_f64();
        let cpu = cpu.elapsed().as_secs_f64();
        let delays = service.delays();
        service.switch().store(true, Ordering::Relaxed);
        let ended = service.wait()?;
        if ended.status.violations > 0 {
            return Err("the stream is valid, and something was found".into());
        }
        println!(
            "{name:<34} {:>8.0} thousand/s, {:.1} µs of CPU each, sender included; arrival to provisional verdict: {} of transactions within 50 ms, 99 % within {:.0} ms",
            count as f64 / seconds / 1e3,
            1e6 * cpu / count as f64,
            format_args!("{:.2} %", 100.0 * delays.share_within(0.05)),
            1e3 * delays.quantile(0.99)
        );
    }
    Ok(())
}
