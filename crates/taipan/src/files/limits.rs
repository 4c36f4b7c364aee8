//! Limits on time and memory, kept by a watcher beside the work.
//!
//! **What.** A [`Guard`] is alive while a file is read or checked. It owns the work's [`Budget`]; a thread looks at
//! the process's memory, the more often the less room is left, and makes the budget give up.
//!
//! **Invariant.** Work that asks its budget at least every few milliseconds ends soon after a limit is passed; the
//! memory taken between two looks is what a check can allocate in that time.
//!
//! Time needs no watcher: the budget holds its own deadline. Without a limit on memory, four fifths of what the machine
//! or the control group has is one: an answer `undecided` is better than the kernel's.

use checker::{Budget, Undecided};
use history::Interrupt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a check of one file at one level may use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// From the first byte read to the verdict.
    pub time: Option<Duration>,
    /// Resident memory of the process, in bytes, if it is limited.
    pub memory: Option<u64>,
}

/// How fast memory is taken at most, in bytes per millisecond.
const TAKEN_MAX: u64 = 4 << 20;
/// How often the watcher looks: the shortest and the longest wait, in milliseconds.
const LOOK_EVERY: (u64, u64) = (1, 50);

/// Keeps the limits while it is alive.
pub struct Guard {
    budget: Budget,
    memory: Option<u64>,
    watcher: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Limits {
    /// Whether a limit on memory can be kept: on systems with `/proc`.
    pub fn can_watch_memory() -> bool {
        resident_bytes().is_some()
    }

    /// Whether any was asked for.
    pub fn are_set(self) -> bool {
        self.time.is_some() || self.memory.is_some()
    }

    /// When the time is up that began to run then; never without a limit.
    pub fn end(self, since: Instant) -> Option<Instant> {
        since.checked_add(self.time?)
    }

    /// Starts to watch; `since` is when the time began to run.
    pub fn guard(self, since: Instant) -> Guard {
        self.guard_until(self.end(since))
    }

    /// Starts to watch; the time is up then.
    pub fn guard_until(self, end: Option<Instant>) -> Guard {
        let budget = match end {
            Some(end) => Budget::unlimited().with_timeout(end.saturating_duration_since(Instant::now())),
            None => Budget::unlimited(),
        };
        let memory = self.memory.or_else(share_of_the_machine);
        // The first look is taken here: what is over its limit now does not begin.
        let watcher = memory.map(|memory_max| {
            look(&budget, memory_max, 0);
            watch(budget.clone(), memory_max)
        });
        Guard { budget, memory, watcher }
    }
}

/// Four fifths of the memory that this process can have; `None` where the system does not say.
fn share_of_the_machine() -> Option<u64> {
    static SHARE: OnceLock<Option<u64>> = OnceLock::new();
    *SHARE.get_or_init(|| Some(memory_of_the_machine()? / 5 * 4).filter(|_| Limits::can_watch_memory()))
}

/// The machine's memory, or less if a control group has less.
fn memory_of_the_machine() -> Option<u64> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let total = kilobytes_in(&read(Path::new("/proc/meminfo"))?, "MemTotal:")?;
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        // Every group above has its say. In a container the path may be that of the host: then the root is meant.
        let within = Path::new(path.trim_start_matches('/')).ancestors();
        within.filter_map(|group| read(&Path::new(root).join(group).join(file))).collect::<Vec<_>>()
    });
    let limits = limits.filter_map(|limit| limit.trim().parse::<u64>().ok());
    limits.chain([total]).min()
}

fn watch(budget: Budget, memory_max: u64) -> (mpsc::Sender<()>, JoinHandle<()>) {
    let (stop, stopped) = mpsc::channel();
    let watcher = std::thread::spawn(move || {
        loop {
            if look(&budget, memory_max, 0) {
                return;
            }
            let room = memory_max.saturating_sub(resident_bytes().unwrap_or(0));
            let wait = (room / TAKEN_MAX / 2).clamp(LOOK_EVERY.0, LOOK_EVERY.1);
            if stopped.recv_timeout(Duration::from_millis(wait)) != Err(RecvTimeoutError::Timeout) {
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
    pub fn interrupt(&self) -> Interrupt {
        let (budget, memory) = (self.budget(), self.memory);
        Interrupt::when(move |ahead| {
            if let Some(memory_max) = memory.filter(|_| ahead > 0) {
                look(&budget, memory_max, ahead);
            }
            budget.exhausted().is_some()
        })
    }

    /// What ended the work, in words.
    pub fn why(&self) -> &'static str {
        match self.budget.exhausted() {
            Some(Undecided::Memory) => "out of memory",
            _ => "timed out",
        }
    }

    /// The budget of the work.
    pub fn budget(&self) -> Budget {
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
pub fn resident_bytes() -> Option<u64> {
    kilobytes_of("VmRSS:")
}

/// The most memory the process has had; 0 where the system does not tell.
pub fn peak_bytes() -> u64 {
    kilobytes_of("VmHWM:").unwrap_or(0)
}

fn kilobytes_of(field: &str) -> Option<u64> {
    kilobytes_in(&std::fs::read_to_string("/proc/self/status").ok()?, field)
}

/// A field of `/proc`, which counts in kilobytes, in bytes.
fn kilobytes_in(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_there_is_one_below_what_the_machine_has() {
        let text = "MemTotal:       24555332 kB\nMemFree: 1 kB\n";
        assert_eq!(kilobytes_in(text, "MemTotal:"), Some(24_555_332 * 1024));
        if let Some(share) = share_of_the_machine() {
            let all = memory_of_the_machine().expect("a share of something");
            assert!(share < all && share > all / 2, "{share} of {all}");
            assert!(!Limits::default().guard(Instant::now()).interrupt().is_due(0));
            assert!(Limits::default().guard(Instant::now()).interrupt().is_due(all));
        }
    }
}
