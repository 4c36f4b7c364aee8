//! What one transaction has seen and done so far: its own view on top of its snapshot.
//!
//! For every key it touched: what it saw of the outside, and what it wrote on top. Both together decide
//! what its next read of that key must return (INT, chronos-aion.txt §II-B), without the snapshot.

use super::state::State;
use super::view::{Pieces, View};
use history::{KeyId, TxnId, ValueId, Values};

/// What a transaction saw of a key's outside value: a value, or the first `len` elements of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outside {
    pub(super) value: ValueId,
    /// `None`: the whole value.
    pub(super) len: Option<u32>,
}

impl Outside {
    pub(super) fn view<'a>(self, values: &'a Values) -> View<'a> {
        match self.len {
            None => View::Value(self.value),
            Some(len) => {
                View::List(Pieces { body: &values.elements(self.value)[..len as usize], ..Pieces::default() })
            }
        }
    }
}

/// What a transaction wrote to a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Own {
    /// Nothing.
    Nothing,
    /// This value (absent: a delete), then the appended elements.
    Value(ValueId),
    /// Only the appended elements, on top of the outside value.
    Appended,
}

/// One key of the transaction.
#[derive(Debug)]
pub(super) struct Local {
    pub(super) key: KeyId,
    pub(super) outside: Option<Outside>,
    pub(super) own: Own,
    pub(super) appended: Vec<ValueId>,
}

impl Local {
    /// The key's value inside the transaction, given its outside value.
    pub(super) fn over<'a>(&'a self, outside: View<'a>, values: &'a Values) -> View<'a> {
        match self.own {
            Own::Nothing => outside,
            Own::Value(value) if self.appended.is_empty() => View::Value(value),
            Own::Value(value) => View::Value(value).with(&self.appended, values),
            Own::Appended => outside.with(&self.appended, values),
        }
    }

    /// Whether the value does not depend on the outside.
    pub(super) fn is_own(&self) -> bool {
        matches!(self.own, Own::Value(_))
    }

    pub(super) fn write(&mut self, value: ValueId) {
        self.own = Own::Value(value);
        self.appended.clear();
    }

    pub(super) fn append(&mut self, value: ValueId) {
        if self.own == Own::Nothing {
            self.own = Own::Appended;
        }
        self.appended.push(value);
    }

    /// Makes what the transaction wrote the newest version. `at` is its rank plus one.
    pub(super) fn install(&self, state: &mut State, at: u32, writer: TxnId, values: &Values) {
        match self.own {
            Own::Nothing => {}
            Own::Value(value) if self.appended.is_empty() => state.write(self.key, value, at, writer),
            Own::Value(value) => state.write_list(self.key, value, &self.appended, at, writer, values),
            Own::Appended => state.append(self.key, &self.appended, at, writer, values),
        }
    }
}

/// All keys of the transaction being replayed, in the order it touched them. Entries are used again, so
/// that a replay does not allocate.
#[derive(Debug, Default)]
pub(super) struct Locals {
    entries: Vec<Local>,
    used: usize,
}

impl Locals {
    /// Starts the next transaction.
    #[inline]
    pub(super) fn clear(&mut self, state: &mut State) {
        self.used = 0;
        state.clear_marks();
    }

    /// The entry of a key, made if the transaction touches it for the first time.
    #[inline]
    pub(super) fn entry(&mut self, key: KeyId, state: &mut State) -> &mut Local {
        let place = match state.mark(key) {
            Some(place) => place,
            None => {
                let place = self.push(key);
                state.set_mark(key, place);
                place
            }
        };
        &mut self.entries[place]
    }

    #[inline]
    fn push(&mut self, key: KeyId) -> usize {
        let place = self.used;
        self.used += 1;
        if let Some(entry) = self.entries.get_mut(place) {
            entry.key = key;
            entry.outside = None;
            entry.own = Own::Nothing;
            entry.appended.clear();
        } else {
            self.entries.push(Local { key, outside: None, own: Own::Nothing, appended: Vec::new() });
        }
        place
    }

    /// The entry of a key, if the transaction touched it.
    #[inline]
    pub(super) fn get(&self, key: KeyId, state: &State) -> Option<&Local> {
        state.mark(key).map(|place| &self.entries[place])
    }

    /// All entries.
    #[inline]
    pub(super) fn entries(&self) -> &[Local] {
        &self.entries[..self.used]
    }
}
