//! The versions of one key, as far back as somebody may still look.
//!
//! **Invariant.** Versions are ascending by when they can be seen; the newest is apart, since most looks end there. What
//! is dropped lies below a floor that the caller knows of.

use super::datum::Datum;
use std::collections::VecDeque;

/// A value of a key, visible to looks of at least `at`.
#[derive(Clone, Debug)]
pub(super) struct Version<T> {
    pub(super) at: T,
    pub(super) value: Datum,
    /// Whether somebody else is known to have read it.
    pub(super) is_read: bool,
}

/// All versions of a key that are kept.
#[derive(Debug)]
pub(super) struct Versions<T> {
    pub(super) newest: Version<T>,
    older: Older<T>,
}

/// Versions that were overwritten, ascending. Of most keys there is one, which lies beside the newest: a queue each took
/// three times the memory of all the rest, and a way through it that was in no cache.
#[derive(Debug)]
enum Older<T> {
    None,
    One(Version<T>),
    Many(VecDeque<Version<T>>),
}

impl<T: Copy + Ord> Versions<T> {
    /// A key that no transaction wrote yet.
    pub(super) fn starting(at: T) -> Self {
        Self { newest: Version { at, value: Datum::Absent, is_read: true }, older: Older::None }
    }

    /// What a look sees; none if that was dropped.
    #[inline]
    pub(super) fn seen(&mut self, look: T) -> Option<&mut Version<T>> {
        if self.newest.at <= look {
            return Some(&mut self.newest);
        }
        match &mut self.older {
            Older::None => None,
            Older::One(version) => Some(version).filter(|version| version.at <= look),
            // Mostly one of the last.
            Older::Many(versions) => versions.iter_mut().rev().find(|version| version.at <= look),
        }
    }

    /// The key is written by somebody whom all earlier versions precede.
    #[inline]
    pub(super) fn write(&mut self, version: Version<T>) -> Version<T> {
        std::mem::replace(&mut self.newest, version)
    }

    /// Keeps a version that was overwritten, and drops those that no look from `floor` on sees.
    #[inline]
    pub(super) fn keep(&mut self, old: Version<T>, floor: T) {
        match &mut self.older {
            Older::None => self.older = Older::One(old),
            Older::One(version) if old.at <= floor => *version = old,
            Older::One(_) => self.keep_both(old),
            Older::Many(versions) => {
                versions.push_back(old);
                while versions.get(1).is_some_and(|second| second.at <= floor) {
                    versions.pop_front();
                }
            }
        }
    }

    #[cold]
    fn keep_both(&mut self, old: Version<T>) {
        if let Older::One(version) = std::mem::replace(&mut self.older, Older::None) {
            self.older = Older::Many(VecDeque::from([version, old]));
        }
    }

    /// Gives up what no look from `floor` on sees, and the queue if it is no longer needed.
    pub(super) fn tidy(&mut self, floor: T) {
        if self.newest.at <= floor {
            self.older = Older::None;
        }
        let Older::Many(versions) = &mut self.older else { return };
        while versions.get(1).is_some_and(|second| second.at <= floor) {
            versions.pop_front();
        }
        if versions.len() < 2 {
            self.older = versions.pop_front().map_or(Older::None, Older::One);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Datum, Version, Versions};
    use oracle::tiny::Random;

    /// Against a plain list of all versions, wherever a look is not below the floor.
    #[test]
    fn sees_what_a_list_of_all_shows() {
        let mut random = Random::new(1);
        let mut below = |bound: usize| random.below(bound) as u64;
        for _ in 0..400 {
            let mut versions = Versions::starting(0u64);
            let mut all = vec![(0, Datum::Absent)];
            let (mut at, mut floor) = (0, 0);
            for _ in 0..60 {
                at += 1 + below(3);
                floor = at.saturating_sub(below(6)).max(floor);
                let value = Datum::Int(at as i64);
                let old = versions.write(Version { at, value: value.clone(), is_read: false });
                versions.keep(old, floor);
                if below(5) == 0 {
                    versions.tidy(floor);
                }
                all.push((at, value));
                let look = floor + below(8);
                let expected = all.iter().rev().find(|(at, _)| *at <= look).map(|(_, value)| value);
                assert_eq!(versions.seen(look).map(|version| &version.value), expected);
            }
        }
    }
}
