//! A sequence that is kept sorted, grows mostly at its end and shrinks mostly at its beginning.
//!
//! **What.** Versions and readers of a key arrive nearly in order and leave in order. One entry costs
//! nothing but itself; a few are one ring; many are a ring of rings of bounded size, so that an entry that
//! comes late moves at most [`PIECE_MAX`] others, however many there are.
//!
//! **Invariant.** No piece is empty, and each knows the timestamp of its first entry. Entries are in the
//! order of their timestamps; where those are equal, the caller says what comes first.
//!
//! **Cost.** `O(log n)` to find a place, among timestamps that lie side by side; insertion and removal move
//! at most half a piece. 0 bytes on the heap for up to one entry.

use super::stamp::Stamp;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// The most entries of a piece.
const PIECE_MAX: usize = 64;

/// What has a place in time.
pub(super) trait Timed {
    fn stamp(&self) -> Stamp;
}

/// A sorted sequence.
#[derive(Clone, Debug, Default)]
pub(super) enum Timeline<T> {
    #[default]
    Empty,
    One(T),
    Few(VecDeque<T>),
    Many(VecDeque<Piece<T>>),
}

/// A part of a long sequence.
#[derive(Clone, Debug)]
pub(super) struct Piece<T> {
    /// The timestamp of the first entry.
    first: Stamp,
    entries: VecDeque<T>,
}

impl<T: Timed> Piece<T> {
    fn new(entries: VecDeque<T>) -> Self {
        let first = entries.front().map_or(Stamp::MIN, Timed::stamp);
        Self { first, entries }
    }
}

/// Where an entry is, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    piece: usize,
    offset: usize,
}

impl Place {
    const fn new(piece: usize, offset: usize) -> Self {
        Self { piece, offset }
    }
}

impl<T: Timed> Timeline<T> {
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(_) => 1,
            Self::Few(few) => few.len(),
            Self::Many(many) => many.iter().map(|piece| piece.entries.len()).sum(),
        }
    }

    /// The place after all entries with a smaller timestamp, and after those with the same one that are
    /// `before`: a prefix of them.
    #[inline]
    pub(super) fn find(&self, stamp: Stamp, mut before: impl FnMut(&T) -> bool) -> Place {
        let mut before = |entry: &T| match entry.stamp().cmp(&stamp) {
            Ordering::Less => true,
            Ordering::Equal => before(entry),
            Ordering::Greater => false,
        };
        match self {
            Self::Empty => Place::new(0, 0),
            Self::One(one) => Place::new(0, usize::from(before(one))),
            Self::Few(few) => Place::new(0, find_in(few, &mut before)),
            Self::Many(many) => {
                // Mostly the last piece.
                let piece = find_piece(many, stamp, &mut before);
                Place::new(piece, find_in(&many[piece].entries, &mut before))
            }
        }
    }

    pub(super) fn get(&self, place: Place) -> Option<&T> {
        match self {
            Self::Empty => None,
            Self::One(one) => (place.offset == 0).then_some(one),
            Self::Few(few) => few.get(place.offset),
            Self::Many(many) => many.get(place.piece)?.entries.get(place.offset),
        }
    }

    pub(super) fn get_mut(&mut self, place: Place) -> Option<&mut T> {
        match self {
            Self::Empty => None,
            Self::One(one) => (place.offset == 0).then_some(one),
            Self::Few(few) => few.get_mut(place.offset),
            Self::Many(many) => many.get_mut(place.piece)?.entries.get_mut(place.offset),
        }
    }

    /// The place after this one.
    pub(super) fn next(&self, place: Place) -> Place {
        match self {
            Self::Many(many)
                if many.get(place.piece).is_none_or(|piece| place.offset + 1 >= piece.entries.len()) =>
            {
                if place.piece + 1 < many.len() {
                    Place::new(place.piece + 1, 0)
                } else {
                    Place::new(place.piece, place.offset + 1)
                }
            }
            _ => Place::new(place.piece, place.offset + 1),
        }
    }

    /// The place before this one.
    pub(super) fn previous(&self, place: Place) -> Option<Place> {
        if place.offset > 0 {
            return Some(Place::new(place.piece, place.offset - 1));
        }
        match self {
            Self::Many(many) if place.piece > 0 => {
                Some(Place::new(place.piece - 1, many[place.piece - 1].entries.len() - 1))
            }
            _ => None,
        }
    }

    /// The entry at a place that [`Timeline::find`] gave, or the next one if that is an end of a piece.
    pub(super) fn settle(&self, place: Place) -> Place {
        match self {
            Self::Many(many)
                if many.get(place.piece).is_some_and(|piece| place.offset >= piece.entries.len())
                    && place.piece + 1 < many.len() =>
            {
                Place::new(place.piece + 1, 0)
            }
            _ => place,
        }
    }

    /// Puts an entry before the one at a place.
    pub(super) fn insert(&mut self, place: Place, entry: T) {
        match self {
            Self::Empty => *self = Self::One(entry),
            Self::One(_) => {
                let mut few = VecDeque::with_capacity(4);
                if let Self::One(one) = std::mem::take(self) {
                    few.push_back(one);
                }
                few.insert(place.offset, entry);
                *self = Self::Few(few);
            }
            Self::Few(few) => {
                few.insert(place.offset, entry);
                if few.len() > PIECE_MAX {
                    let mut first = std::mem::take(few);
                    let second = first.split_off(PIECE_MAX * 3 / 4);
                    *self = Self::Many(VecDeque::from([Piece::new(first), Piece::new(second)]));
                }
            }
            Self::Many(many) => {
                let piece = &mut many[place.piece];
                if place.offset == 0 {
                    piece.first = entry.stamp();
                }
                piece.entries.insert(place.offset, entry);
                if piece.entries.len() > PIECE_MAX {
                    // At the end pieces are left nearly full, as nothing much comes before them.
                    let last = place.piece + 1 == many.len();
                    let cut = if last { PIECE_MAX * 3 / 4 } else { PIECE_MAX / 2 };
                    let rest = many[place.piece].entries.split_off(cut);
                    many.insert(place.piece + 1, Piece::new(rest));
                }
            }
        }
    }

    /// Takes an entry out.
    pub(super) fn remove(&mut self, place: Place) -> Option<T> {
        match self {
            Self::Empty => None,
            Self::One(_) if place.offset == 0 => match std::mem::take(self) {
                Self::One(one) => Some(one),
                _ => None,
            },
            Self::One(_) => None,
            Self::Few(few) => {
                let entry = few.remove(place.offset);
                self.shrink_few();
                entry
            }
            Self::Many(many) => {
                let piece = many.get_mut(place.piece)?;
                let entry = if place.offset == 0 {
                    let entry = piece.entries.pop_front();
                    piece.first = piece.entries.front().map_or(Stamp::MIN, Timed::stamp);
                    entry
                } else {
                    piece.entries.remove(place.offset)
                };
                if piece.entries.is_empty() {
                    many.remove(place.piece);
                }
                if many.len() == 1
                    && let Some(piece) = many.pop_front()
                {
                    *self = Self::Few(piece.entries);
                    self.shrink_few();
                }
                entry
            }
        }
    }

    fn shrink_few(&mut self) {
        let Self::Few(few) = self else { return };
        match few.len() {
            0 => *self = Self::Empty,
            1 => {
                if let Some(one) = few.pop_front() {
                    *self = Self::One(one);
                }
            }
            // A ring that was long and is short again gives memory back.
            len if few.capacity() > 64 && len * 8 < few.capacity() => few.shrink_to(len * 2),
            _ => {}
        }
    }

    /// The entry after the first.
    pub(super) fn second(&self) -> Option<&T> {
        match self {
            Self::Few(few) => few.get(1),
            Self::Many(_) => self.get(self.next(Place::new(0, 0))),
            _ => None,
        }
    }

    pub(super) fn first(&self) -> Option<&T> {
        self.get(Place::new(0, 0))
    }

    /// Takes the first entry out.
    pub(super) fn pop_first(&mut self) -> Option<T> {
        self.remove(Place::new(0, 0))
    }

    pub(super) fn last(&self) -> Option<&T> {
        match self {
            Self::Empty => None,
            Self::One(one) => Some(one),
            Self::Few(few) => few.back(),
            Self::Many(many) => many.back()?.entries.back(),
        }
    }

    /// All entries in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut place = Place::new(0, 0);
        std::iter::from_fn(move || {
            let entry = self.get(place)?;
            place = self.next(place);
            Some(entry)
        })
    }
}

/// The last piece whose first entry is `before`, or the first: galloping back from the end, where most
/// places are.
fn find_piece<T>(many: &VecDeque<Piece<T>>, stamp: Stamp, before: &mut impl FnMut(&T) -> bool) -> usize {
    let mut begins_before = |piece: usize| {
        let Piece { first, entries } = &many[piece];
        *first < stamp || *first == stamp && entries.front().is_some_and(&mut *before)
    };
    let (mut high, mut step) = (many.len(), 1);
    // Pieces from `high` on begin too late; the one at `low` does not, or is the first.
    let mut low = loop {
        let low = high.saturating_sub(step);
        if low == 0 || begins_before(low) {
            break low;
        }
        high = low;
        step *= 2;
    };
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if begins_before(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

fn find_in<T>(ring: &VecDeque<T>, before: &mut impl FnMut(&T) -> bool) -> usize {
    // Mostly the end: try it first.
    if ring.back().is_none_or(&mut *before) {
        return ring.len();
    }
    ring.partition_point(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oracle::tiny::Random;

    impl Timed for usize {
        fn stamp(&self) -> Stamp {
            history::Timestamp::from(*self as i64 / 4).into()
        }
    }

    /// Random insertions and removals against a sorted vector.
    #[test]
    fn it_is_a_sorted_vector() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let mut timeline: Timeline<usize> = Timeline::default();
            let mut model: Vec<usize> = Vec::new();
            for step in 0..4000 {
                let grow = step % 2000 < 1200;
                if random.chance(if grow { 70 } else { 30 }) {
                    let late = if random.chance(5) { 3000 } else { 30 };
                    let item = step * 10 - random.below(late).min(step * 10);
                    timeline.insert(timeline.find(item.stamp(), |other| *other <= item), item);
                    model.insert(model.partition_point(|other| *other <= item), item);
                } else if random.chance(80) {
                    let first = if model.is_empty() { None } else { Some(model.remove(0)) };
                    assert_eq!(timeline.pop_first(), first);
                } else if !model.is_empty() {
                    let item = model.remove(random.below(model.len()));
                    let place = timeline.settle(timeline.find(item.stamp(), |other| *other < item));
                    assert_eq!(timeline.remove(place), Some(item));
                }
                assert_eq!(timeline.len(), model.len());
                assert_eq!(timeline.first(), model.first());
                assert_eq!(timeline.last(), model.last());
                if step % 50 == 0 {
                    assert!(timeline.iter().eq(model.iter()));
                    let middle = model.get(model.len() / 2).copied().unwrap_or(0);
                    let place = timeline.find(middle.stamp(), |other| *other < middle);
                    let before = timeline.previous(place).and_then(|place| timeline.get(place));
                    let expected = model.partition_point(|other| *other < middle).checked_sub(1);
                    assert_eq!(before, expected.map(|place| &model[place]));
                }
            }
        }
    }
}
