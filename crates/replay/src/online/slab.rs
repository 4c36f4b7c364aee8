//! A vector that never moves what is in it: it grows by pieces, so that growing costs no copy and no
//! second vector beside the first.

const PIECE: usize = 1 << 12;

/// A vector in pieces.
#[derive(Clone, Debug)]
pub(super) struct Slab<T> {
    pieces: Vec<Vec<T>>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn len(&self) -> usize {
        match self.pieces.split_last() {
            Some((last, full)) => full.len() * PIECE + last.len(),
            None => 0,
        }
    }

    pub(super) fn push(&mut self, item: T) -> usize {
        if self.pieces.last().is_none_or(|last| last.len() == PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let place = self.len();
        if let Some(last) = self.pieces.last_mut() {
            last.push(item);
        }
        place
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.pieces.last_mut()?.pop();
        if self.pieces.last().is_some_and(Vec::is_empty) {
            self.pieces.pop();
        }
        item
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.pieces.last()?.last()
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> &T {
        &self.pieces[place / PIECE][place % PIECE]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: usize) -> &mut T {
        &mut self.pieces[place / PIECE][place % PIECE]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pieces.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECE, Slab};

    #[test]
    fn what_was_last_is_last_again_when_a_piece_is_empty() {
        let mut slab = Slab::default();
        (0..=PIECE).for_each(|number| assert_eq!(slab.push(number), number));
        assert_eq!(slab.pop(), Some(PIECE));
        assert_eq!((slab.last(), slab.len()), (Some(&(PIECE - 1)), PIECE));
        assert_eq!(slab.pop(), Some(PIECE - 1));
        assert_eq!(slab.push(7), PIECE - 1);
    }
}
