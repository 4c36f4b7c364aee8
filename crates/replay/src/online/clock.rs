//! How far the database's clock is: the newest commit that others bear out. One wrong timestamp moves no watermark.
//!
//! **What.** Timestamps have no unit that is known here: microseconds, counters, places in a log. So how far is too far follows
//! from the stream itself. Of the last [`RECENT`] commits that arrived the lower half is believed; going up from there, a
//! commit is believed unless it lies further ahead of the one below it than [`FAR`] times what those below it span, the
//! lowest fifth left aside.
//! [`Clock::newest`] is the highest that is believed. Of fewer than [`ENOUGH`] commits all are.
//!
//! ```text
//!   recent    990 1001 1003 1007 1010 1012 1020 ……………………………… 9000000
//!             └── believed ────────────────┘  ↑ newest          ↑ not yet
//! ```
//!
//! When a stream really jumps (traffic after an idle night), commits up there are believed as soon as they are the
//! majority of the last [`RECENT`]. Until then no watermark passes them: they are judged a little later, and nothing is reported.
//!
//! **A clock-jump** is reported about a commit only when it is certain that others did not follow: the watermark has reached what
//! was the newest when it arrived, so whatever committed before it has arrived too; at least [`RECENT`] commits came after it;
//! and it is still further ahead than is believed.
//!
//! **Cost.** A few comparisons a commit.

use super::codec::{Input, Output, invalid};
use super::rank::{get_named, put_named};
use super::stamp::Stamp;
use super::txns::Named;
use super::{Found, Kind, Online};
use std::collections::VecDeque;
use std::io;

/// So many commits are looked at: a wrong clock has to have most of them to be believed.
const RECENT: usize = 15;
/// Of fewer commits than this nothing is concluded.
const ENOUGH: usize = 8;
/// How much further ahead than what is believed spans is too far.
const FAR: u128 = 16;
/// So many commits are suspected at once; more are not reported one by one.
const SUSPECTS_MAX: usize = 1_000;

/// A commit that is further ahead than is believed.
#[derive(Clone, Debug, PartialEq)]
struct Suspect {
    named: Named,
    commit: Stamp,
    /// The newest believed commit when it arrived.
    newest: Stamp,
    /// How many commits had arrived.
    arrival: u64,
}

/// The commits that arrived last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Clock {
    /// In the order of arrival.
    recent: VecDeque<Stamp>,
    /// The same in the order of timestamps.
    sorted: Vec<Stamp>,
    arrived: u64,
    suspects: VecDeque<Suspect>,
}

/// As a number, to subtract.
fn value(stamp: Stamp) -> u128 {
    let [high, low, logical] = stamp.words().map(u128::from);
    high << 64 | low << 32 | logical
}

impl Clock {
    /// A commit arrives.
    pub(super) fn arrived(&mut self, commit: Stamp) {
        self.arrived += 1;
        if self.recent.len() == RECENT
            && let Some(oldest) = self.recent.pop_front()
            && let Ok(place) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(place);
        }
        self.recent.push_back(commit);
        self.sorted.insert(self.sorted.partition_point(|other| *other < commit), commit);
    }

    /// A transaction that commits at this moment has arrived, when `before` was the newest commit that was believed. What
    /// that is now.
    pub(super) fn clock_in(&mut self, commit: Stamp, before: Stamp, named: impl FnOnce() -> Named) -> Stamp {
        self.arrived(commit);
        let newest = self.newest();
        // Of the first ones it turns out later.
        if commit > newest || self.arrived <= ENOUGH as u64 {
            let suspect = Suspect { named: named(), commit, newest: before, arrival: self.arrived };
            if self.suspects.len() == SUSPECTS_MAX {
                self.suspects.pop_front();
            }
            self.suspects.push_back(suspect);
        }
        newest
    }

    /// The newest commit that is believed; the least timestamp if there is none.
    pub(super) fn newest(&self) -> Stamp {
        let Some(last) = self.sorted.last() else { return Stamp::MIN };
        if self.sorted.len() < ENOUGH {
            return *last;
        }
        let middle = (self.sorted.len() - 1) / 2;
        let gap = self.sorted[middle..].windows(2).find(|pair| self.is_far(pair[0], pair[1]));
        gap.map_or(*last, |pair| pair[0])
    }

    /// Whether a later commit lies too far ahead of a recent one.
    fn is_far(&self, from: Stamp, to: Stamp) -> bool {
        // Those that are far behind say nothing of how close the others are.
        let first = self.sorted.get(self.sorted.len() / 5).copied().unwrap_or(from).min(from);
        // Where all are equal they still span one unit.
        let span = (value(from) - value(first)).max(1 << 32);
        value(to).saturating_sub(value(from)) > FAR * span
    }

    pub(super) fn put(&self, out: &mut Output<'_>) -> io::Result<()> {
        out.list(self.recent.len(), &self.recent, |out, stamp| out.stamp(*stamp))?;
        out.number(self.arrived)?;
        out.list(self.suspects.len(), &self.suspects, |out, suspect| {
            put_named(out, &suspect.named)?;
            out.stamp(suspect.commit)?;
            out.stamp(suspect.newest)?;
            out.number(suspect.arrival)
        })
    }

    pub(super) fn get(input: &mut Input<'_>) -> io::Result<Self> {
        let recent: VecDeque<Stamp> = input.list(Input::stamp)?.into();
        if recent.len() > RECENT {
            return Err(invalid("a clock"));
        }
        let mut sorted: Vec<Stamp> = recent.iter().copied().collect();
        sorted.sort_unstable();
        let arrived = input.number()?;
        let suspects = input.list(|input| {
            Ok(Suspect {
                named: get_named(input)?,
                commit: input.stamp()?,
                newest: input.stamp()?,
                arrival: input.number()?,
            })
        })?;
        Ok(Self { recent, sorted, arrived, suspects: suspects.into() })
    }
}

impl Online {
    /// The watermark has moved: what is still too far ahead is reported.
    pub(super) fn tell_jumps(&mut self) {
        if self.clock.suspects.is_empty() {
            return;
        }
        let (newest, arrived, watermark) = (self.newest, self.clock.arrived, self.watermark);
        // At the end of a stream no other can follow any more.
        let is_over = watermark == Stamp::MAX;
        let mut told = Vec::new();
        let mut suspects = std::mem::take(&mut self.clock.suspects);
        suspects.retain_mut(|suspect| {
            // What was believed then may not be any more.
            suspect.newest = suspect.newest.min(newest);
            let is_early = arrived < suspect.arrival + RECENT as u64;
            if is_early || !self.clock.is_far(newest, suspect.commit) {
                return is_early && !is_over;
            }
            let is_certain = suspect.newest <= watermark;
            if is_certain {
                told.push(suspect.named.clone());
            }
            !is_certain
        });
        self.clock.suspects = suspects;
        for named in told {
            self.tell(Found::about(Kind::ClockJump, named));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Timestamp;

    fn after(commits: impl IntoIterator<Item = i64>) -> Option<i64> {
        let mut clock = Clock::default();
        commits.into_iter().for_each(|commit| clock.arrived(Timestamp::from(commit).into()));
        (clock.newest() != Stamp::MIN).then(|| Timestamp::from(clock.newest()).physical)
    }

    #[test]
    fn the_newest_is_the_one_that_others_bear_out() {
        assert_eq!(after([]), None);
        assert_eq!(after([5]), Some(5));
        assert_eq!(after([5, 1_000]), Some(1_000), "of two nothing is concluded");
        assert_eq!(after(0..100), Some(99));
        assert_eq!(after((0..100).map(|it| it * 1_000_000)), Some(99_000_000), "whatever the unit");
        assert_eq!(after((0..100).chain([1 << 50])), Some(99));
        assert_eq!(after((0..100).chain([1 << 50; 7])), Some(99), "a minority");
        assert_eq!(after((0..100).chain([i64::MAX, i64::MIN])), Some(99));
        assert_eq!(after([1 << 50].into_iter().chain(0..8)), Some(7), "also if it came first");
        assert_eq!(after((0..100).chain([1 << 50]).chain(100..120)), Some(119));
        assert_eq!(after((0..20).rev()), Some(14), "of the last ones");
        assert_eq!(after([7; 30]), Some(7));
        assert_eq!(after([7; 30].into_iter().chain([8])), Some(8), "coarse clocks go one by one");
    }

    #[test]
    fn a_stream_that_jumps_is_believed_soon() {
        for few in 1..8 {
            assert_eq!(after((0..100).chain((0..few).map(|it| (1 << 40) + it))), Some(99), "{few}");
        }
        assert_eq!(after((0..100).chain((0..8).map(|it| (1 << 40) + it))), Some((1 << 40) + 7));
    }
}
