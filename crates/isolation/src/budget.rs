//! When to give up: deadlines, switches and steps.
//!
//! *What*: a [`Budget`] says whether a check may go on, a [`Meter`] counts the work of one loop and asks it now and then.
//!
//! *Invariant*: a budget that has said no says no from then on, and to every copy. Running out is never an answer: whoever
//! hears it returns [`Undecided`].
//!
//! *Cost*: a counter per step of work, a clock reading per [`STRIDE`] steps.

use crate::undecided::Undecided;
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When to give up: a deadline, and a switch that can be turned from outside. Copies share the switch.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    deadline: Option<Instant>,
    /// Why every copy is to give up: one of [`switch`].
    switch: Arc<AtomicU8>,
    steps: Option<Arc<Steps>>,
}

/// So many times more the answer is to go on.
#[derive(Debug)]
struct Steps {
    left: AtomicU64,
    then: Undecided,
}

/// The positions of a budget's switch.
mod switch {
    pub(super) const ON: u8 = 0;
    pub(super) const CANCELLED: u8 = 1;
    pub(super) const OUT_OF_MEMORY: u8 = 2;
}

/// How much work a [`Meter`] counts between two looks at its budget: some tens of microseconds.
const STRIDE: u32 = 1024;

impl Budget {
    /// No limit.
    pub fn unlimited() -> Self {
        Self::default()
    }

    /// Gives up after `time`.
    pub fn with_timeout(self, time: Duration) -> Self {
        Self { deadline: Instant::now().checked_add(time), ..self }
    }

    /// Gives up when it has been asked so many times, for the reason given. Every loop then asks at every step: tests
    /// end a check at each place where it can end, without a clock.
    pub fn with_steps(self, count: u64, then: Undecided) -> Self {
        Self { steps: Some(Arc::new(Steps { left: AtomicU64::new(count), then })), ..self }
    }

    /// How many of the steps it was given are left.
    pub fn steps_left(&self) -> Option<u64> {
        self.steps.as_ref().map(|steps| steps.left.load(Ordering::Relaxed))
    }

    /// Makes every copy give up soon.
    pub fn cancel(&self) {
        self.switch_to(switch::CANCELLED);
    }

    /// Makes every copy give up soon, because the memory is used up: called by what watches the process.
    pub fn run_out_of_memory(&self) {
        self.switch_to(switch::OUT_OF_MEMORY);
    }

    /// The first reason stays.
    fn switch_to(&self, position: u8) {
        let _ = self.switch.compare_exchange(switch::ON, position, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether it is time to give up. Costs a clock reading: loops count with a `Meter`.
    pub fn exhausted(&self) -> Option<Undecided> {
        match self.switch.load(Ordering::Relaxed) {
            switch::ON => {}
            switch::OUT_OF_MEMORY => return Some(Undecided::Memory),
            _ => return Some(Undecided::Cancelled),
        }
        if let Some(steps) = &self.steps {
            let took =
                steps.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if took.is_err() {
                return Some(steps.then.clone());
            }
        }
        self.deadline.filter(|&deadline| Instant::now() >= deadline).map(|_| Undecided::Timeout)
    }

    /// As [`exhausted`](Self::exhausted), for the question mark.
    pub fn check(&self) -> Result<(), Undecided> {
        self.exhausted().map_or(Ok(()), Err)
    }

    /// Counts the work of a loop.
    pub fn meter(&self) -> Meter<'_> {
        Meter { budget: self, left: Cell::new(self.stride()) }
    }

    /// How many steps there are between two looks.
    pub fn stride(&self) -> u32 {
        if self.steps.is_some() { 1 } else { STRIDE }
    }
}

/// Counts the work of a loop and asks a budget now and then.
#[derive(Debug)]
pub struct Meter<'b> {
    budget: &'b Budget,
    left: Cell<u32>,
}

impl Meter<'_> {
    /// A step of work was done.
    #[inline]
    pub fn step(&self) -> Result<(), Undecided> {
        self.steps(1)
    }

    /// So many steps of work were done, or are about to be.
    #[inline]
    pub fn steps(&self, count: usize) -> Result<(), Undecided> {
        match self.left.get().checked_sub(count.try_into().unwrap_or(u32::MAX)) {
            Some(left) if left > 0 => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.left.set(self.budget.stride());
                self.budget.check()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_counted_and_used_up_for_good() {
        let budget = Budget::unlimited().with_steps(2, Undecided::Memory);
        let copy = budget.clone();
        assert_eq!([budget.exhausted(), copy.exhausted()], [None, None]);
        assert_eq!(copy.steps_left(), Some(0));
        assert_eq!(
            [budget.exhausted(), copy.exhausted()],
            [Some(Undecided::Memory), Some(Undecided::Memory)]
        );
    }

    #[test]
    fn a_meter_asks_at_every_step_if_steps_are_counted_and_now_and_then_if_not() {
        let budget = Budget::unlimited().with_steps(3, Undecided::Timeout);
        let meter = budget.meter();
        let counted = (0..10).take_while(|_| meter.step().is_ok()).count();
        assert_eq!(counted, 3);
        let budget = Budget::unlimited();
        budget.cancel();
        let meter = budget.meter();
        let counted = (0..10 * STRIDE).take_while(|_| meter.step().is_ok()).count() as u32;
        assert_eq!(counted, STRIDE - 1);
        assert_eq!(meter.steps(usize::MAX), Err(Undecided::Cancelled));
    }
}
