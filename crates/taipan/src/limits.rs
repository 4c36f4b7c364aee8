//! Limits on time and memory, kept by a watcher beside the work.
//!
//! **What.** A [`Guard`] is alive while a file is read or checked. It owns the work's [`Budget`]; a thread looks at
//! the process's memory every few milliseconds and at the clock, and makes the budget give up.
//!
//! **Invariant.** Work that asks its budget at least every few milliseconds ends soon after a limit is passed; the
//! memory taken between two looks is what a check can allocate in that time.
//!
//! Time needs no watcher: the budget holds its own deadline.

use checker::Budget;
use history::Interrupt;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a check of one file at one level may use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// From the first byte read to the verdict.
    pub(crate) time: Option<Duration>,
    /// Resident memory of the process, in bytes.
    pub(crate) memory: Option<u64>,
}

/// How often the watcher looks.
const LOOK_EVERY: Duration = Duration::from_millis(3);

/// Keeps the limits while it is alive.
pub(crate) struct Guard {
    budget: Budget,
    memory: Option<u64>,
    watcher: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Limits {
    /// Whether there is any.
    pub(crate) fn are_set(self) -> bool {
        self.time.is_some() || self.memory.is_some()
    }

    /// Starts to watch; `since` is when the file's time began to run.
    pub(crate) fn guard(self, since: Instant) -> Guard {
        let budget = match self.time {
            Some(time) => Budget::unlimited().with_timeout(time.saturating_sub(since.elapsed())),
            None => Budget::unlimited(),
        };
        // The first look is taken here: what is over its limit now does not begin.
        let watcher = self.memory.map(|memory_max| {
            look(&budget, memory_max, 0);
            watch(budget.clone(), memory_max)
        });
        Guard { budget, memory: self.memory, watcher }
    }
}

fn watch(budget: Budget, memory_max: u64) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = mpsc::channel();
    let watcher = std::thread::spawn(move || {
        loop {
            if look(&budget, memory_max, 0) {
                return;
            }
            if stopped.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    });
    (stop, watcher)
}

/// Makes the budget give up if so many bytes more would be too many; whether they would.
fn look(budget: &Budget, memory_max: u64, ahead: u64) -> bool {
    let is_over = resident_bytes().is_some_and(|bytes| bytes.saturating_add(ahead) > memory_max);
    if is_over {
        budget.run_out_of_memory();
    }
    is_over
}

impl Guard {
    /// Ends the reading of a file when a limit is passed, or is about to be by what is read at once.
    pub(crate) fn interrupt(&self) -> Interrupt {
        let (budget, memory) = (self.budget(), self.memory);
        Interrupt::when(move |ahead| {
            if let Some(memory_max) = memory.filter(|_| ahead > 0) {
                look(&budget, memory_max, ahead);
            }
            budget.exhausted().is_some()
        })
    }

    /// The budget of the work.
    pub(crate) fn budget(&self) -> Budget {
        self.budget.clone()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((stop, watcher)) = self.watcher.take() {
            drop(stop);
            let _ = watcher.join();
        }
    }
}

/// The memory the process has now.
pub(crate) fn resident_bytes() -> Option<u64> {
    kilobytes_of("VmRSS:")
}

/// The most memory the process has had; 0 where the system does not tell.
pub(crate) fn peak_bytes() -> u64 {
    kilobytes_of("VmHWM:").unwrap_or(0)
}

/// Whether the system tells how much memory the process has.
pub(crate) fn can_watch_memory() -> bool {
    resident_bytes().is_some()
}

fn kilobytes_of(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
