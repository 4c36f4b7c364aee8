//! A transaction that only reads and writes single keys, taken apart before any snapshot is known.
//!
//! What is left of it is one [`Deed`] for each key: the first look at the outside, which the snapshot must show, and what it
//! leaves behind. Everything else contradicts the transaction itself or nothing, whatever the snapshot holds.

use super::super::Content;
use super::local::{Local, Read, Rules, Wrote};
use super::representation::{Interned, Look};
use history::{Id, KeyId, Point, PointKind, ValueId};

/// What a transaction saw of a key and left there.
#[derive(Debug)]
pub(crate) struct Deed {
    pub(crate) key: KeyId,
    /// The first look at the outside, and the place of the operation.
    pub(crate) look: Option<(ValueId, u32)>,
    /// Whether it was read before it was written.
    pub(crate) is_read: bool,
    /// How often it was written or appended to.
    pub(crate) writes: u32,
    local: Local<ValueId, Look>,
}

impl Deed {
    fn new(key: KeyId) -> Self {
        Self { key, look: None, is_read: false, writes: 0, local: Local::default() }
    }

    /// What it wrote, and what it appended to that.
    #[inline]
    pub(crate) fn wrote(&self) -> (&Wrote<ValueId>, &[ValueId]) {
        self.local.wrote()
    }

    /// The value that it wrote last, if it did.
    #[inline]
    pub(crate) fn value(&self) -> Option<ValueId> {
        match self.local.wrote() {
            (Wrote::Value(value), []) => Some(*value),
            _ => None,
        }
    }
}

/// The deeds of one transaction of a part, in the order in which it touched their keys. Space is used again for the next.
#[derive(Debug, Default)]
pub(crate) struct Deeds {
    /// By key of the part: the place of its deed, valid if the stamp is this transaction's.
    marks: Vec<(u32, u32)>,
    stamp: u32,
    deeds: Vec<Deed>,
    used: usize,
}

impl Deeds {
    /// Another part begins.
    pub(crate) fn begin_part(&mut self, keys: usize) {
        self.marks.clear();
        self.marks.resize(keys, (0, 0));
        self.stamp = 0;
    }

    /// Another transaction begins.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.stamp += 1;
        self.used = 0;
    }

    /// The deeds of the transaction.
    #[inline]
    pub(crate) fn all(&self) -> &[Deed] {
        &self.deeds[..self.used]
    }

    /// The deed of a key.
    #[inline]
    pub(crate) fn of(&mut self, key: KeyId) -> &mut Deed {
        let mark = &mut self.marks[key.index()];
        if mark.0 != self.stamp {
            *mark = (self.stamp, self.used as u32);
            self.used += 1;
            match self.deeds.get_mut(mark.1 as usize) {
                Some(deed) => {
                    deed.key = key;
                    deed.look = None;
                    (deed.is_read, deed.writes) = (false, 0);
                    deed.local.clear();
                }
                None => self.deeds.push(Deed::new(key)),
            }
        }
        &mut self.deeds[mark.1 as usize]
    }

    /// The next operation of the transaction, the one at `place`.
    #[inline]
    pub(crate) fn add(
        &mut self,
        place: u32,
        Point { kind, key, value }: Point,
        rules: Rules<Interned<'_>>,
    ) -> Read<Content> {
        let deed = self.of(key);
        if kind == PointKind::Read {
            deed.is_read |= deed.writes == 0;
            let read = deed.local.read(&value, rules);
            if let Read::First = read {
                deed.look = Some((value, place));
            }
            return read;
        }
        deed.writes += 1;
        match kind {
            PointKind::Append => deed.local.append(value),
            _ => deed.local.write(value),
        }
        Read::Right
    }
}
