//! The keys of the transaction being replayed, each with what the transaction saw of it and did to it.

use super::state::State;
use super::step::{Local, Look, Wrote};
use history::{KeyId, TxnId, ValueId, Values};

/// One key of the transaction.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: KeyId,
    pub(super) local: Local<ValueId, Look>,
}

impl Entry {
    /// Whether the transaction wrote the key.
    #[inline]
    pub(super) fn writes(&self) -> bool {
        !matches!(self.local.wrote().0, Wrote::Nothing)
    }

    /// Makes what the transaction wrote the newest version. `at` is its rank plus one.
    pub(super) fn install(&self, state: &mut State, at: u32, writer: TxnId, values: &Values) {
        match self.local.wrote() {
            (Wrote::Nothing, _) => {}
            (&Wrote::Value(value), []) => state.write(self.key, value, at, writer),
            (&Wrote::Value(value), appended) => {
                state.write_list(self.key, value, appended, at, writer, values)
            }
            (Wrote::Appended, appended) => state.append(self.key, appended, at, writer, values),
        }
    }
}

/// All keys of the transaction being replayed, in the order it touched them. Entries are used again, so
/// that a replay does not allocate.
#[derive(Debug, Default)]
pub(super) struct Locals {
    entries: Vec<Entry>,
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
    pub(super) fn entry(&mut self, key: KeyId, state: &mut State) -> &mut Local<ValueId, Look> {
        let place = match state.mark(key) {
            Some(place) => place,
            None => {
                let place = self.push(key);
                state.set_mark(key, place);
                place
            }
        };
        &mut self.entries[place].local
    }

    #[inline]
    fn push(&mut self, key: KeyId) -> usize {
        let place = self.used;
        self.used += 1;
        if let Some(entry) = self.entries.get_mut(place) {
            entry.key = key;
            entry.local.clear();
        } else {
            self.entries.push(Entry { key, local: Local::default() });
        }
        place
    }

    /// The entry of a key, if the transaction touched it.
    #[inline]
    pub(super) fn get(&self, key: KeyId, state: &State) -> Option<&Local<ValueId, Look>> {
        state.mark(key).map(|place| &self.entries[place].local)
    }

    /// As [`Locals::get`], to go on.
    pub(super) fn get_mut(&mut self, key: KeyId, state: &State) -> Option<&mut Local<ValueId, Look>> {
        state.mark(key).map(|place| &mut self.entries[place].local)
    }

    /// All entries.
    #[inline]
    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries[..self.used]
    }
}
