//! The versions of one key, as far back as somebody may still look.
//!
//! **Invariant.** Versions are ascending by when they can be seen; the newest is apart, since most looks end there. What
//! is dropped lies below a floor that the caller knows of.

use super::online::Datum;
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
    /// Ascending.
    older: VecDeque<Version<T>>,
}

impl<T: Copy + Ord> Versions<T> {
    /// A key that nobody wrote yet.
    pub(super) fn starting(at: T) -> Self {
        Self { newest: Version { at, value: Datum::Absent, is_read: true }, older: VecDeque::new() }
    }

    /// What a look sees; none if that was dropped.
    #[inline]
    pub(super) fn seen(&mut self, look: T) -> Option<&mut Version<T>> {
        if self.newest.at <= look {
            return Some(&mut self.newest);
        }
        // Mostly one of the last.
        self.older.iter_mut().rev().find(|version| version.at <= look)
    }

    /// The key is written by somebody whom all earlier versions precede.
    #[inline]
    pub(super) fn write(&mut self, version: Version<T>) -> Version<T> {
        std::mem::replace(&mut self.newest, version)
    }

    /// Keeps a version that was overwritten, and drops those that no look from `floor` on sees.
    #[inline]
    pub(super) fn keep(&mut self, old: Version<T>, floor: T) {
        self.older.push_back(old);
        while self.older.get(1).is_some_and(|second| second.at <= floor) {
            self.older.pop_front();
        }
    }
}
