//! How far each worker of this process is, for whoever wants to watch.
//!
//! Workers say what they read and replay. How busy they are, and how many messages they exchange, Timely's own log says.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use timely::logging::{StartStop, TimelyEvent, TimelyEventBuilder};
use timely::worker::Worker;

/// The workers of one process.
#[derive(Clone, Debug)]
pub struct Monitor {
    first: usize,
    standings: Arc<[Standing]>,
    /// Whether Timely's log is listened to.
    listens: bool,
}

/// How far a worker is.
#[derive(Clone, Debug)]
pub struct Standing(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    worker: usize,
    since: Instant,
    transactions: AtomicU64,
    operations: AtomicU64,
    bytes_sent: AtomicU64,
    replayed: AtomicU64,
    keys: AtomicU64,
    waiting: AtomicU64,
    has_read: AtomicBool,
    /// Nanoseconds in dataflows, and messages sent, by Timely's log.
    busy: AtomicU64,
    messages: AtomicU64,
    /// Nanoseconds on a core.
    cpu: AtomicU64,
}

impl Monitor {
    /// Of a process whose workers are numbered from `first`.
    pub fn new(workers: usize, first: usize) -> Self {
        let standing = |number: usize| {
            Standing(Arc::new(Counts {
                worker: first + number,
                since: Instant::now(),
                transactions: AtomicU64::new(0),
                operations: AtomicU64::new(0),
                bytes_sent: AtomicU64::new(0),
                replayed: AtomicU64::new(0),
                keys: AtomicU64::new(0),
                waiting: AtomicU64::new(0),
                has_read: AtomicBool::new(false),
                busy: AtomicU64::new(0),
                messages: AtomicU64::new(0),
                cpu: AtomicU64::new(0),
            }))
        };
        Self { first, standings: (0..workers.max(1)).map(standing).collect(), listens: false }
    }

    /// The same, listening to Timely's log, too.
    pub fn listening(self) -> Self {
        Self { listens: true, ..self }
    }

    /// Listens to the log of a worker, if that is wanted.
    pub(crate) fn listen(&self, worker: &Worker) {
        let (true, Some(mut register)) = (self.listens, worker.log_register()) else { return };
        let standing = self.standing(worker.index());
        // Operators are scheduled inside their dataflows: only the outermost counts.
        let (mut depth, mut since) = (0u32, Duration::ZERO);
        register.insert::<TimelyEventBuilder, _>("timely", move |_, events| {
            for (time, event) in events.iter().flat_map(|events| events.iter()) {
                match event {
                    TimelyEvent::Schedule(event) if event.start_stop == StartStop::Start => {
                        if depth == 0 {
                            since = *time;
                        }
                        depth += 1;
                    }
                    TimelyEvent::Schedule(_) => {
                        depth = depth.saturating_sub(1);
                        if depth == 0 {
                            let spent = time.saturating_sub(since).as_nanos();
                            standing.0.busy.fetch_add(u64::try_from(spent).unwrap_or(u64::MAX), Relaxed);
                        }
                    }
                    TimelyEvent::Messages(event) if event.is_send => {
                        standing.0.messages.fetch_add(1, Relaxed);
                    }
                    _ => {}
                }
            }
        });
    }

    pub(crate) fn standing(&self, worker: usize) -> Standing {
        self.standings[worker.saturating_sub(self.first) % self.standings.len()].clone()
    }

    /// All workers of the process.
    pub fn standings(&self) -> &[Standing] {
        &self.standings
    }

    /// The worker that is furthest behind the others, if it is far: it has read less than half of what the first has.
    pub fn straggler(&self) -> Option<&Standing> {
        let busy = self.standings.iter().filter(|standing| !standing.0.has_read.load(Relaxed));
        let last = busy.min_by_key(|standing| standing.transactions())?;
        let most = self.standings.iter().map(Standing::transactions).max()?;
        (last.transactions() * 2 < most).then_some(last)
    }
}

impl Standing {
    /// The number of the worker.
    pub fn worker(&self) -> usize {
        self.0.worker
    }

    /// How many transactions it has read.
    pub fn transactions(&self) -> u64 {
        self.0.transactions.load(Relaxed)
    }

    /// How many bytes of digests it has sent, to itself included.
    pub fn bytes_sent(&self) -> u64 {
        self.0.bytes_sent.load(Relaxed)
    }

    /// How many seconds it was on a core, when its part of the check was over; 0 where the system does not tell.
    pub fn cpu_seconds(&self) -> f64 {
        self.0.cpu.load(Relaxed) as f64 / 1e9
    }

    /// Its part is over; called by the worker's own thread.
    pub(crate) fn is_done(&self) {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let spent = told.split_whitespace().next().and_then(|spent| spent.parse().ok());
        self.0.cpu.store(spent.unwrap_or(0), Relaxed);
    }

    pub(crate) fn read(&self, transactions: usize, operations: usize) {
        self.0.transactions.fetch_add(transactions as u64, Relaxed);
        self.0.operations.fetch_add(operations as u64, Relaxed);
    }

    pub(crate) fn sent(&self, bytes: usize) {
        self.0.bytes_sent.fetch_add(bytes as u64, Relaxed);
    }

    pub(crate) fn shard(&self, (replayed, keys, waiting): (u64, usize, usize)) {
        self.0.replayed.store(replayed, Relaxed);
        self.0.keys.store(keys as u64, Relaxed);
        self.0.waiting.store(waiting as u64, Relaxed);
    }

    pub(crate) fn has_read(&self) {
        self.0.has_read.store(true, Relaxed);
    }
}

/// `worker 0: 1200000 transactions read, 310000/s, 1180000 replayed, 100000 keys, 3 digests waiting, 96 MB sent in 420
/// messages, 61 % of the time in dataflows`.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = &*self.0;
        let read = it.transactions.load(Relaxed);
        let seconds = it.since.elapsed().as_secs_f64().max(1e-3);
        write!(
            f,
            "worker {}: {read} transactions read{}, {:.0}/s, {} replayed, {} keys, {} digests waiting, {} MB sent",
            it.worker,
            if it.has_read.load(Relaxed) { ", all" } else { "" },
            read as f64 / seconds,
            it.replayed.load(Relaxed),
            it.keys.load(Relaxed),
            it.waiting.load(Relaxed),
            it.bytes_sent.load(Relaxed) >> 20,
        )?;
        match it.messages.load(Relaxed) {
            0 => Ok(()),
            messages => {
                let busy = it.busy.load(Relaxed) as f64 / 1e7 / seconds;
                write!(f, " in {messages} messages, {busy:.0} % of the time in dataflows")
            }
        }
    }
}
