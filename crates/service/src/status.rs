//! How things stand, for people and for Prometheus.

use replay::online::{Kind, Standing};
use serde::Serialize;
use std::collections::VecDeque;
use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is known of the process at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Status {
    /// The level that is checked.
    pub level: String,
    /// Seconds since the process began.
    pub up_seconds: f64,
    /// Transactions that arrived.
    pub received: u64,
    /// Transactions whose verdict is final.
    pub checked: u64,
    /// Operations that arrived.
    pub operations: u64,
    /// Lines that were rejected.
    pub refused: u64,
    /// Results that are wrong so far, but not final.
    pub provisional: u64,
    /// How often a provisional verdict changed.
    pub flips: u64,
    /// Final findings, by kind.
    pub found: Vec<(&'static str, u64)>,
    /// Final findings that are violations.
    pub violations: u64,
    /// The longest time from arrival to provisional verdict in the last second.
    pub lag_seconds: f64,
    /// Batches that are queued.
    pub queue: usize,
    /// Up to where verdicts are final.
    pub watermark: Option<String>,
    /// The newest commit that arrived.
    pub newest: Option<String>,
    /// Bytes of memory the process takes.
    pub memory_bytes: u64,
    /// Bytes of memory that open and recent transactions take.
    pub state_bytes: u64,
    /// Bytes of versions on disk.
    pub spill_bytes: u64,
    /// Keys that were moved to disk, and fetched from there.
    pub evicted: u64,
    /// The same for fetches.
    pub fetched: u64,
    /// Transactions, keys and open results in memory.
    pub transactions: usize,
    /// Keys in memory.
    pub keys: usize,
    /// Results without a final verdict.
    pub open_results: usize,
    /// How often the watermark had to hurry because memory was short.
    pub hurried: u64,
    /// Findings that the webhook did not accept.
    pub webhook_given_up: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// How far each worker is, if there are several.
    pub workers: Vec<WorkerStatus>,
}

/// How far a worker is, as it last said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WorkerStatus {
    /// Its number.
    pub worker: usize,
    /// Pieces of transactions it has taken.
    pub pieces: u64,
    /// Keys it has in memory.
    pub keys: usize,
    /// Results there whose verdict is open.
    pub open_results: usize,
    /// Bytes of memory that its part of the state takes.
    pub state_bytes: u64,
    /// Bytes sent to it.
    pub sent_bytes: u64,
}

impl WorkerStatus {
    pub(crate) fn new((worker, standing): (usize, &Standing)) -> Self {
        Self {
            worker,
            pieces: standing.pieces,
            keys: standing.size.keys,
            open_results: standing.size.open_results,
            state_bytes: standing.size.bytes as u64,
            sent_bytes: standing.bytes_sent,
        }
    }
}

/// `worker 0: 1200000 pieces of transactions, 50000 keys, 310 open results, 24 MB, 96 MB sent to it`.
impl std::fmt::Display for WorkerStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { worker, pieces, keys, open_results, state_bytes, sent_bytes } = self;
        let (state, sent) = (state_bytes >> 20, sent_bytes >> 20);
        write!(
            f,
            "worker {worker}: {pieces} pieces of transactions, {keys} keys, {open_results} open results, {state} MB, \
             {sent} MB sent to it"
        )
    }
}

/// What the plots show: one a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Seconds since the process began.
    pub at: f64,
    /// Transactions a second.
    pub rate: f64,
    /// Seconds from arrival to provisional verdict.
    pub lag: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes on disk.
    pub spill: u64,
}

/// How many samples are kept: a quarter of an hour.
const SAMPLES_MAX: usize = 900;
/// How many bytes of transactions the page can ask for.
const TRANSACTIONS_LEN_MAX: usize = 4 << 20;
/// How many findings the page can ask for.
pub(crate) const FINDINGS_MAX: usize = 20_000;

/// Upper bounds of the buckets of the delay, in seconds.
const BOUNDS: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

#[derive(Default)]
struct Inner {
    status: Status,
    samples: VecDeque<Sample>,
    /// The last findings as lines, and the number of the first of them.
    findings: VecDeque<String>,
    findings_from: u64,
    /// The transactions of the newest findings, by their numbers, and how many bytes those are.
    transactions: VecDeque<(u64, Vec<String>)>,
    transactions_len: usize,
    delays: [u64; BOUNDS.len() + 1],
    delay_sum: f64,
    /// The longest delay since the last sample.
    delay_max: f64,
}

/// How long transactions took from arrival to provisional verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Delays {
    counts: [u64; BOUNDS.len() + 1],
}

impl Delays {
    fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The share of transactions that took at most so many seconds, rounded down to a bucket.
    pub fn share_within(&self, seconds: f64) -> f64 {
        let within = BOUNDS.iter().zip(self.counts).filter(|(bound, _)| **bound <= seconds);
        within.map(|(_, count)| count).sum::<u64>() as f64 / self.total().max(1) as f64
    }

    /// So many seconds were enough for this share, rounded up to a bucket.
    pub fn quantile(&self, share: f64) -> f64 {
        BOUNDS.into_iter().find(|&bound| self.share_within(bound) >= share).unwrap_or(f64::INFINITY)
    }
}

/// What threads tell each other about how things stand.
#[derive(Clone, Default)]
pub(crate) struct Board {
    inner: Arc<Mutex<Inner>>,
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.lock().status);
    }

    pub(crate) fn status(&self) -> Status {
        self.lock().status.clone()
    }

    /// Transactions had their provisional verdicts so long after they arrived.
    pub(crate) fn delayed(&self, transactions: u64, delay: Duration) {
        let seconds = delay.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        let mut inner = self.lock();
        inner.delays[bucket] += transactions;
        inner.delay_sum += seconds * transactions as f64;
        inner.delay_max = inner.delay_max.max(seconds);
    }

    /// Adds a sample; its lag is the longest delay since the last.
    pub(crate) fn sample(&self, mut sample: Sample) {
        let mut inner = self.lock();
        sample.lag = std::mem::take(&mut inner.delay_max);
        inner.status.lag_seconds = sample.lag;
        inner.samples.push_back(sample);
        if inner.samples.len() > SAMPLES_MAX {
            inner.samples.pop_front();
        }
    }

    pub(crate) fn delays(&self) -> Delays {
        Delays { counts: self.lock().delays }
    }

    pub(crate) fn samples(&self) -> Vec<Sample> {
        self.lock().samples.iter().copied().collect()
    }

    pub(crate) fn tell(&self, lines: &[String]) {
        let mut inner = self.lock();
        inner.findings.extend(lines.iter().cloned());
        let excess = inner.findings.len().saturating_sub(FINDINGS_MAX);
        inner.findings.drain(..excess);
        inner.findings_from += excess as u64;
    }

    /// The transactions of findings, which are kept for the newest.
    pub(crate) fn tell_transactions(&self, transactions: &[(u64, Vec<String>)]) {
        let mut inner = self.lock();
        for (number, lines) in transactions {
            let len: usize = lines.iter().map(String::len).sum();
            if lines.is_empty() || len > TRANSACTIONS_LEN_MAX / 16 {
                continue;
            }
            inner.transactions_len += len;
            inner.transactions.push_back((*number, lines.clone()));
        }
        while inner.transactions_len > TRANSACTIONS_LEN_MAX
            && let Some((_, lines)) = inner.transactions.pop_front()
        {
            inner.transactions_len -= lines.iter().map(String::len).sum::<usize>();
        }
    }

    /// The transactions of a finding as lines of JSON; none if they are not kept.
    pub(crate) fn transactions_of(&self, number: u64) -> Vec<String> {
        let inner = self.lock();
        let place = inner.transactions.binary_search_by_key(&number, |(number, _)| *number);
        place.map_or_else(|_| Vec::new(), |place| inner.transactions[place].1.clone())
    }

    /// Where the kept findings begin: the number of the first that will be reported.
    pub(crate) fn begin_findings(&self, from: u64) {
        self.lock().findings_from = from;
    }

    /// Findings from a number on, at most `max`, and but for the first at most `bytes_max`; and the number of the first
    /// that is kept, and of the next to come.
    pub(crate) fn findings(&self, from: u64, max: usize, bytes_max: usize) -> (Vec<String>, u64, u64) {
        let inner = self.lock();
        let skip = from.saturating_sub(inner.findings_from) as usize;
        let mut bytes = 0;
        let fits = |line: &&String| {
            let is_first = bytes == 0;
            bytes += line.len();
            is_first || bytes <= bytes_max
        };
        let lines = inner.findings.iter().skip(skip).take(max).take_while(fits).cloned().collect();
        (lines, inner.findings_from, inner.findings_from + inner.findings.len() as u64)
    }

    /// The text that Prometheus asks for.
    pub(crate) fn prometheus(&self) -> String {
        let inner = self.lock();
        let status = &inner.status;
        let mut out = String::with_capacity(4096);
        for (name, kind, help, value) in METRICS {
            // Writing into a string cannot fail.
            let _ = writeln!(
                out,
                "# HELP taipan_{name} {help}\n# TYPE taipan_{name} {kind}\ntaipan_{name} {}",
                value(status)
            );
        }
        let _ = writeln!(
            out,
            "# HELP taipan_findings_total Final findings by kind.\n# TYPE taipan_findings_total counter"
        );
        for (name, count) in &status.found {
            let violation = Kind::ALL.iter().any(|kind| kind.name() == *name && kind.is_violation());
            let _ =
                writeln!(out, "taipan_findings_total{{kind=\"{name}\",violation=\"{violation}\"}} {count}");
        }
        if !status.workers.is_empty() {
            worker_metrics(&mut out, &status.workers);
        }
        let _ = writeln!(
            out,
            "# HELP taipan_delay_seconds From arrival to provisional verdict, by transaction.\n# TYPE taipan_delay_seconds histogram"
        );
        let mut sum = 0;
        for (bound, count) in BOUNDS.iter().zip(inner.delays) {
            sum += count;
            let _ = writeln!(out, "taipan_delay_seconds_bucket{{le=\"{bound}\"}} {sum}");
        }
        sum += inner.delays[BOUNDS.len()];
        let _ = writeln!(out, "taipan_delay_seconds_bucket{{le=\"+Inf\"}} {sum}");
        let _ =
            writeln!(out, "taipan_delay_seconds_sum {}\ntaipan_delay_seconds_count {sum}", inner.delay_sum);
        out
    }
}

/// A number for Prometheus: its name, what kind it is, what it means, and where it comes from.
type Metric<T> = (&'static str, &'static str, &'static str, fn(&T) -> f64);

const METRICS: [Metric<Status>; 17] = [
    ("received_total", "counter", "Transactions that arrived.", |it| it.received as f64),
    ("checked_total", "counter", "Transactions whose verdict is final.", |it| it.checked as f64),
    ("operations_total", "counter", "Operations that arrived.", |it| it.operations as f64),
    ("refused_total", "counter", "Lines that were rejected.", |it| it.refused as f64),
    (
        "lag_seconds",
        "gauge",
        "The longest time from arrival to provisional verdict in the last second.",
        |it| it.lag_seconds,
    ),
    ("queue_batches", "gauge", "Batches that are queued.", |it| it.queue as f64),
    ("provisional", "gauge", "Results that are wrong so far, but not final.", |it| it.provisional as f64),
    ("flips_total", "counter", "How often a provisional verdict changed.", |it| it.flips as f64),
    ("memory_bytes", "gauge", "Memory of the process.", |it| it.memory_bytes as f64),
    ("state_bytes", "gauge", "Memory of open and recent transactions.", |it| it.state_bytes as f64),
    ("spill_bytes", "gauge", "Versions on disk.", |it| it.spill_bytes as f64),
    ("evicted_total", "counter", "Keys moved to disk.", |it| it.evicted as f64),
    ("fetched_total", "counter", "Fetches from disk.", |it| it.fetched as f64),
    ("open_results", "gauge", "Results without a final verdict.", |it| it.open_results as f64),
    ("hurried_total", "counter", "Watermarks advanced early because memory was short.", |it| {
        it.hurried as f64
    }),
    ("webhook_given_up_total", "counter", "Findings that the webhook did not accept.", |it| {
        it.webhook_given_up as f64
    }),
    ("checkpoints_total", "counter", "Checkpoints written.", |it| it.checkpoints as f64),
];

const OF_WORKERS: [Metric<WorkerStatus>; 5] = [
    ("pieces_total", "counter", "Pieces of transactions a worker took.", |it| it.pieces as f64),
    ("keys", "gauge", "Keys a worker has in memory.", |it| it.keys as f64),
    ("open_results", "gauge", "Results at a worker whose verdict is open.", |it| it.open_results as f64),
    ("state_bytes", "gauge", "Memory of a worker's part of the state.", |it| it.state_bytes as f64),
    ("sent_bytes_total", "counter", "Bytes sent to a worker.", |it| it.sent_bytes as f64),
];

fn worker_metrics(out: &mut String, workers: &[WorkerStatus]) {
    for (name, kind, help, value) in OF_WORKERS {
        let _ = writeln!(out, "# HELP taipan_worker_{name} {help}\n# TYPE taipan_worker_{name} {kind}");
        for worker in workers {
            let _ = writeln!(out, "taipan_worker_{name}{{worker=\"{}\"}} {}", worker.worker, value(worker));
        }
    }
}

/// Bytes of memory that this process takes, where the system says.
pub(crate) fn memory_bytes() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    let pages = text.split_ascii_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or(0) * rustix::param::page_size() as u64
}
