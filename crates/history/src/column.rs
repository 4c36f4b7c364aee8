//! A vector indexed by a typed id.

use crate::Id;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};

/// A `Vec<T>` that only an `I` can index.
#[derive(Clone, Debug)]
pub struct Column<I, T> {
    items: Vec<T>,
    by: PhantomData<fn(I)>,
}

impl<I: Id, T> Column<I, T> {
    /// An empty column.
    pub fn new() -> Self {
        Self { items: Vec::new(), by: PhantomData }
    }

    /// A column of `len` copies of `item`.
    pub fn filled(item: T, len: usize) -> Self
    where
        T: Clone,
    {
        Self { items: vec![item; len], by: PhantomData }
    }

    /// Appends an item and returns its id.
    #[inline]
    pub fn push(&mut self, item: T) -> I {
        let id = I::new(self.items.len());
        self.items.push(item);
        id
    }

    /// Makes room for that many items more.
    pub fn reserve(&mut self, count: usize) {
        self.items.reserve(count);
    }

    /// How many items there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// All ids, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + ExactSizeIterator + use<I, T> {
        (0..self.items.len()).map(I::new)
    }

    /// All items, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.items.iter()
    }

    /// The items as a plain slice.
    #[inline]
    pub fn as_slice(&self) -> &[T] {
        &self.items
    }

    /// The items as a plain vector.
    pub fn into_vec(self) -> Vec<T> {
        self.items
    }

    /// Heap bytes in use.
    pub fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<T>()
    }

    /// Gives back memory that is not in use.
    pub fn shrink(&mut self) {
        self.items.shrink_to_fit();
    }
}

impl<I: Id, T> Default for Column<I, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<I: Id, T> From<Vec<T>> for Column<I, T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, by: PhantomData }
    }
}

impl<I: Id, T> Index<I> for Column<I, T> {
    type Output = T;
    #[inline]
    fn index(&self, id: I) -> &T {
        &self.items[id.index()]
    }
}

impl<I: Id, T> IndexMut<I> for Column<I, T> {
    #[inline]
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.index()]
    }
}
