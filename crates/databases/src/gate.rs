//! A gate between transactions: whoever closes it finds no transaction open.
//!
//! **Invariant.** While work runs in [`Gate::hold`], every session is between two transactions, or gone.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Shared by the sessions of a run and whoever wants to look at a quiet database.
#[derive(Debug, Default)]
pub struct Gate {
    is_closed: AtomicBool,
    /// Sessions that may have a transaction open.
    working: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    /// Closes the gate, waits until no transaction is open, does the work, and opens it again.
    pub fn hold<T>(&self, work: impl FnOnce() -> T) -> T {
        self.is_closed.store(true, Ordering::SeqCst);
        let mut working = self.working();
        while *working > 0 {
            working = self.changed.wait(working).unwrap_or_else(PoisonError::into_inner);
        }
        let result = work();
        self.is_closed.store(false, Ordering::SeqCst);
        drop(working);
        self.changed.notify_all();
        result
    }

    /// A session comes in.
    pub(crate) fn enter(&self) -> Inside<'_> {
        self.wait_for_opening();
        Inside { gate: self }
    }

    fn wait_for_opening(&self) {
        let mut working = self.working();
        while self.is_closed.load(Ordering::SeqCst) {
            working = self.changed.wait(working).unwrap_or_else(PoisonError::into_inner);
        }
        *working += 1;
    }

    fn leave(&self) {
        *self.working() -= 1;
        self.changed.notify_all();
    }

    fn working(&self) -> MutexGuard<'_, usize> {
        self.working.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that may have a transaction open; it leaves when dropped.
pub(crate) struct Inside<'a> {
    gate: &'a Gate,
}

impl Inside<'_> {
    /// Call between two transactions: waits while the gate is closed.
    pub(crate) fn pass(&self) {
        if self.gate.is_closed.load(Ordering::SeqCst) {
            self.gate.leave();
            self.gate.wait_for_opening();
        }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.gate.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::thread;

    #[test]
    fn nobody_is_open_while_the_gate_is_held() {
        let (gate, open, held) = (Gate::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let inside = gate.enter();
                    while held.load(Ordering::SeqCst) < 50 {
                        inside.pass();
                        open.fetch_add(1, Ordering::SeqCst);
                        thread::yield_now();
                        open.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
            while held.load(Ordering::SeqCst) < 50 {
                gate.hold(|| assert_eq!(open.load(Ordering::SeqCst), 0));
                held.fetch_add(1, Ordering::SeqCst);
            }
        });
    }
}
