//! How far everything has arrived: from the moments of arrival to watermarks and horizons.
//!
//! Databases do not say when all is there. What is known is how late things can be: a transaction arrives at
//! most `grace` after others that committed with it, and takes at most `longest`. So what was the newest commit
//! `grace` ago is the watermark, and what it was `grace + longest` ago is the horizon. The same with numbers of
//! transactions instead of times, for streams that are played back. The newest commit is the newest that others bear out,
//! as [`replay::online`] sees it; when it turns out that one was ahead of all others, it was not the newest.
//!
//! Memory: at most about [`ENTRIES_MAX`] entries, however much is looked back on.

use history::Timestamp;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// When verdicts become final.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pace {
    /// After so much time; no transaction takes longer than `longest`.
    Grace {
        /// How late a transaction may be.
        grace: Duration,
        /// How long one may take.
        longest: Duration,
    },
    /// After so many further transactions.
    Window {
        /// How late a transaction may be.
        transactions: u64,
        /// How many may commit while one is open.
        longest: u64,
    },
    /// When the stream says so.
    Told,
}

/// How many entries the time that is looked back on is cut into, at most.
const ENTRIES_MAX: u32 = 1024;

/// A watermark and a horizon.
pub(crate) type Reached = (Timestamp, Option<Timestamp>);

#[derive(Debug)]
pub(crate) struct Pacer {
    pace: Pace,
    /// The newest commit at a moment.
    past: VecDeque<(Moment, Timestamp)>,
    watermark: Option<Timestamp>,
    horizon: Option<Timestamp>,
    received: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Moment {
    Time(Instant),
    Count(u64),
}

impl Pacer {
    pub(crate) fn new(pace: Pace) -> Self {
        Self { pace, past: VecDeque::new(), watermark: None, horizon: None, received: 0 }
    }

    /// Transactions arrived, and this is the newest commit that is believed.
    pub(crate) fn arrived(&mut self, count: u64, newest: Option<Timestamp>, now: Instant) {
        self.received += count;
        let Some(newest) = newest else { return };
        for (_, before) in self.past.iter_mut().rev().take_while(|(_, before)| *before > newest) {
            *before = newest;
        }
        let (moment, is_close) = match self.pace {
            Pace::Grace { grace, longest } => {
                let step = (grace + longest) / ENTRIES_MAX;
                let is_close = |before| matches!(before, Moment::Time(at) if now.duration_since(at) < step);
                (Moment::Time(now), self.before_last().is_some_and(is_close))
            }
            Pace::Window { transactions, longest } => {
                let (received, step) = (self.received, (transactions + longest) / u64::from(ENTRIES_MAX));
                let is_close = |before| matches!(before, Moment::Count(at) if received - at < step);
                (Moment::Count(received), self.before_last().is_some_and(is_close))
            }
            Pace::Told => return,
        };
        match self.past.back_mut() {
            Some((_, last)) if *last == newest => {}
            // The entry moves on: what it says becomes known a little later than need be, never too early.
            Some(last) if is_close => *last = (moment, newest),
            _ => self.past.push_back((moment, newest)),
        }
    }

    fn before_last(&self) -> Option<Moment> {
        self.past.len().checked_sub(2).map(|index| self.past[index].0)
    }

    /// What has been reached by now, if that is more than before.
    pub(crate) fn reached(&mut self, now: Instant) -> Option<Reached> {
        let (old, oldest) = match self.pace {
            Pace::Grace { grace, longest } => {
                (now.checked_sub(grace).map(Moment::Time), now.checked_sub(grace + longest).map(Moment::Time))
            }
            Pace::Window { transactions, longest } => (
                self.received.checked_sub(transactions).map(Moment::Count),
                self.received.checked_sub(transactions + longest).map(Moment::Count),
            ),
            Pace::Told => return None,
        };
        let mut changed = false;
        if let Some(newest) = old.and_then(|old| self.newest_at(old)).filter(|it| self.watermark < Some(*it))
        {
            self.watermark = Some(newest);
            changed = true;
        }
        if let Some(newest) = oldest.and_then(|old| self.newest_at(old)).filter(|it| self.horizon < Some(*it))
        {
            self.horizon = Some(newest);
            changed = true;
        }
        if let Some(oldest) = oldest {
            while self.past.len() > 1 && self.past[1].0.is_at_or_before(oldest) {
                self.past.pop_front();
            }
        }
        self.watermark.filter(|_| changed).map(|watermark| (watermark, self.horizon))
    }

    /// A watermark that is given up early because memory is short: that of the middle of what is open.
    pub(crate) fn hurry(&mut self) -> Option<Reached> {
        let open = self.past.iter().position(|(_, newest)| self.watermark < Some(*newest))?;
        let (_, newest) = self.past[open + (self.past.len() - open) / 2];
        self.watermark = Some(newest);
        Some((newest, self.horizon))
    }

    fn newest_at(&self, moment: Moment) -> Option<Timestamp> {
        let after = self.past.partition_point(|(at, _)| at.is_at_or_before(moment));
        after.checked_sub(1).map(|index| self.past[index].1)
    }
}

impl Moment {
    fn is_at_or_before(self, other: Self) -> bool {
        match (self, other) {
            (Self::Time(a), Self::Time(b)) => a <= b,
            (Self::Count(a), Self::Count(b)) => a <= b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(commit: i64) -> Option<Timestamp> {
        Some(commit.into())
    }

    #[test]
    fn what_was_newest_some_time_ago_is_the_watermark() {
        let start = Instant::now() + Duration::from_secs(1000);
        let second = Duration::from_secs(1);
        let mut pacer = Pacer::new(Pace::Grace { grace: 2 * second, longest: 3 * second });
        pacer.arrived(1, at(10), start);
        pacer.arrived(1, at(20), start + second);
        assert_eq!(pacer.reached(start + second), None);
        assert_eq!(pacer.reached(start + 2 * second), Some((10.into(), None)));
        assert_eq!(pacer.reached(start + 2 * second), None, "told once");
        assert_eq!(pacer.reached(start + 3 * second), Some((20.into(), None)));
        assert_eq!(pacer.reached(start + 5 * second), Some((20.into(), at(10))));
        assert_eq!(pacer.reached(start + 6 * second), Some((20.into(), at(20))));
    }

    #[test]
    fn numbers_of_transactions_do_as_well() {
        let now = Instant::now();
        let mut pacer = Pacer::new(Pace::Window { transactions: 2, longest: 1 });
        let reached: Vec<Option<Reached>> = (1..=5)
            .map(|commit| {
                pacer.arrived(1, at(commit * 10), now);
                pacer.reached(now)
            })
            .collect();
        let told = |watermark: i64, horizon: Option<Timestamp>| Some((watermark.into(), horizon));
        assert_eq!(reached, [None, None, told(10, None), told(20, at(10)), told(30, at(20))]);
    }

    #[test]
    fn what_is_not_believed_any_more_moves_no_watermark() {
        let start = Instant::now() + Duration::from_secs(1000);
        let second = Duration::from_secs(1);
        let mut pacer = Pacer::new(Pace::Grace { grace: 2 * second, longest: 3 * second });
        pacer.arrived(1, at(i64::MAX), start);
        pacer.arrived(1, at(20), start + second);
        assert_eq!(pacer.reached(start + 2 * second), Some((20.into(), None)));
        pacer.arrived(1, at(10), start + 3 * second);
        assert_eq!(pacer.reached(start + 4 * second), None, "a watermark does not go back");
        pacer.arrived(1, at(30), start + 5 * second);
        assert_eq!(pacer.reached(start + 7 * second), Some((30.into(), at(10))));
    }

    #[test]
    fn memory_does_not_grow_with_the_stream() {
        let start = Instant::now();
        let mut pacer = Pacer::new(Pace::Window { transactions: 100_000, longest: 100_000 });
        for commit in 0..1_000_000 {
            pacer.arrived(1, at(commit), start);
            if let Some((watermark, _)) = pacer.reached(start) {
                let lag = commit - watermark.physical;
                assert!((100_000..=100_400).contains(&lag), "{lag}");
            }
        }
        assert!(pacer.past.len() < 2 * ENTRIES_MAX as usize, "{}", pacer.past.len());
    }
}
