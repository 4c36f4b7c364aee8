//! How much fits into tables whose ids and offsets have 32 bits.
//!
//! What: hands out the places of a table. What does not fit is noted here, and the builder refuses the transaction at
//! hand and everything after it.
//! Invariant: no id, offset or length wraps around.
//! Cost: one comparison per new entry.

use crate::{BuildError, ValueId};

/// How much fits into the tables of one owner, and what did not.
#[derive(Clone, Debug)]
pub(crate) struct Room {
    /// The most entries of a table.
    entries: usize,
    /// The greatest length of a piece of a table.
    len: usize,
    lacking: Option<&'static str>,
}

impl Default for Room {
    fn default() -> Self {
        Self::IDS
    }
}

impl Room {
    /// Room for all ids below the one that stands for none.
    pub(crate) const IDS: Self = Self::new(u32::MAX as usize - 1);
    /// Room for all values below the one that is not known.
    pub(crate) const VALUES: Self = Self::new(ValueId::UNKNOWN.0 as usize);

    const fn new(entries: usize) -> Self {
        Self { entries, len: u32::MAX as usize - 1, lacking: None }
    }

    /// The place of `more` entries behind `before` others, if they fit.
    #[inline]
    pub(crate) fn place(&mut self, before: usize, more: usize, what: &'static str) -> Option<u32> {
        if before <= self.entries && more <= self.entries - before {
            Some(before as u32)
        } else {
            self.lack(what)
        }
    }

    /// Whether a table of so many entries can take no more.
    #[inline]
    pub(crate) fn is_full(&self, entries: usize) -> bool {
        entries >= self.entries
    }

    /// The length of a piece, if it fits.
    #[inline]
    pub(crate) fn len(&mut self, len: usize, what: &'static str) -> Option<u32> {
        if len <= self.len { Some(len as u32) } else { self.lack(what) }
    }

    #[cold]
    fn lack(&mut self, what: &'static str) -> Option<u32> {
        self.lacking.get_or_insert(what);
        None
    }

    /// Fails if something did not fit.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        self.lacking.map_or(Ok(()), |what| Err(BuildError::TooMany(what)))
    }

    /// Room for so much, to see what happens when it is used up.
    #[cfg(test)]
    pub(crate) fn limit(&mut self, most: usize) {
        (self.entries, self.len) = (most, most);
    }
}
