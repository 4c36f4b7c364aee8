//! What the database holds while its history is replayed: the newest version of every key, and of the
//! older ones only those that a transaction still to come can see.
//!
//! **Invariant.** A version is kept while some transaction that is not yet replayed has a snapshot in
//! which it is the newest. Overwritten versions wait in one queue, in the order in which they were
//! overwritten; since that order is the commit order, what nobody can see any more is always in front.
//!
//! ```text
//!  key x   newest ──> old ──> old
//!                      │       │
//!  queue   [ x  y  x   y  x    x  z ]   in the order of overwriting; dropped from the left
//! ```
//!
//! **Lists.** A list that only grows is one vector; a version of it is a length. Views of old versions are
//! prefixes, and an append costs one push.
//!
//! **Cost.** 28 bytes a key, 24 a version in the window; every step is a constant number of accesses.

use super::view::{Pieces, View};
use history::{History, Id, KeyId, TxnId, ValueId, Values};
use std::collections::VecDeque;

/// No version, no writer, or "not a list".
const NONE: u32 = u32::MAX;

/// One version of a key.
#[derive(Clone, Copy)]
struct Version {
    /// Its writer's rank plus one; 0 for the initial state. Visible to snapshots of at least this.
    at: u32,
    /// The transaction that wrote it, [`NONE`] for the initial state.
    writer: u32,
    /// The value, or for a list the index into [`State::lists`].
    value: u32,
    /// [`NONE`] for a value, for a list its length.
    len: u32,
}

#[derive(Clone, Copy)]
struct KeyState {
    newest: Version,
    /// The version before, as a number of the queue; [`NONE`] if there is none or nobody can ask for it.
    previous: u32,
    /// What the transaction being replayed did to the key: an index, valid if the stamp is its own.
    stamp: u32,
    mark: u32,
}

/// A version that was overwritten.
struct Old {
    version: Version,
    previous: u32,
    /// The rank plus one of the writer that overwrote it: snapshots from there on do not see it.
    until: u32,
    /// The list that can go when this version goes, [`NONE`] if none.
    last_of_list: u32,
}

/// The replayed database.
pub(super) struct State {
    keys: Vec<KeyState>,
    queue: VecDeque<Old>,
    /// The number of the first version in the queue.
    queue_start: u32,
    lists: Vec<Vec<ValueId>>,
    lists_free: Vec<u32>,
    /// Whether old versions are of any use: not where every transaction sees all earlier ones.
    keep_old: bool,
    stamp: u32,
}

impl State {
    pub(super) fn new(history: &History, keep_old: bool) -> Self {
        let absent = Version { at: 0, writer: NONE, value: ValueId::ABSENT.0, len: NONE };
        let key = KeyState { newest: absent, previous: NONE, stamp: 0, mark: 0 };
        let mut keys = vec![key; history.keys().len()];
        for row in history.initial() {
            keys[row.key.index()].newest.value = row.value.0;
        }
        Self {
            keys,
            queue: VecDeque::new(),
            queue_start: 0,
            lists: Vec::new(),
            lists_free: Vec::new(),
            keep_old,
            stamp: 0,
        }
    }

    // ---- marks of the transaction being replayed ----

    /// Forgets all marks.
    #[inline]
    pub(super) fn clear_marks(&mut self) {
        self.stamp += 1;
    }

    /// The mark of a key, if it has one.
    #[inline]
    pub(super) fn mark(&self, key: KeyId) -> Option<usize> {
        let key = &self.keys[key.index()];
        (key.stamp == self.stamp).then_some(key.mark as usize)
    }

    /// Marks a key.
    #[inline]
    pub(super) fn set_mark(&mut self, key: KeyId, mark: usize) {
        let key = &mut self.keys[key.index()];
        key.stamp = self.stamp;
        key.mark = mark as u32;
    }

    // ---- looking ----

    /// The value of a key in a snapshot, and who wrote it.
    #[inline]
    pub(super) fn seen(&self, key: KeyId, snapshot: u32) -> (View<'_>, Option<TxnId>) {
        let key = &self.keys[key.index()];
        let version = if key.newest.at <= snapshot { key.newest } else { self.older(key.previous, snapshot) };
        (self.view(version), (version.writer != NONE).then_some(TxnId(version.writer)))
    }

    fn older(&self, mut number: u32, snapshot: u32) -> Version {
        loop {
            let old = &self.queue[number.wrapping_sub(self.queue_start) as usize];
            if old.version.at <= snapshot {
                return old.version;
            }
            number = old.previous;
        }
    }

    #[inline]
    fn view(&self, version: Version) -> View<'_> {
        match version.len {
            NONE => View::Value(ValueId(version.value)),
            len => {
                let body = &self.lists[version.value as usize][..len as usize];
                View::List(Pieces { body, ..Pieces::default() })
            }
        }
    }

    /// The writer of the newest version, if it committed outside the snapshot.
    #[inline]
    pub(super) fn committed_since(&self, key: KeyId, snapshot: u32) -> Option<u32> {
        let at = self.keys[key.index()].newest.at;
        (at > snapshot).then(|| at - 1)
    }

    // ---- changing ----

    /// The transaction of `rank` writes a value. `at` is its rank plus one.
    #[inline]
    pub(super) fn write(&mut self, key: KeyId, value: ValueId, at: u32, writer: TxnId) {
        self.install(key, Version { at, writer: writer.0, value: value.0, len: NONE });
    }

    /// It appends to whatever is there now.
    pub(super) fn append(
        &mut self,
        key: KeyId,
        elements: &[ValueId],
        at: u32,
        writer: TxnId,
        values: &Values,
    ) {
        let newest = self.keys[key.index()].newest;
        let list =
            if newest.len == NONE { self.new_list(ValueId(newest.value), values) } else { newest.value };
        let content = &mut self.lists[list as usize];
        content.extend_from_slice(elements);
        let len = content.len() as u32;
        self.install(key, Version { at, writer: writer.0, value: list, len });
    }

    /// As [`State::append`], to a value of its own.
    pub(super) fn write_list(
        &mut self,
        key: KeyId,
        base: ValueId,
        elements: &[ValueId],
        at: u32,
        writer: TxnId,
        values: &Values,
    ) {
        let list = self.new_list(base, values);
        let content = &mut self.lists[list as usize];
        content.extend_from_slice(elements);
        let len = content.len() as u32;
        self.install(key, Version { at, writer: writer.0, value: list, len });
    }

    fn new_list(&mut self, base: ValueId, values: &Values) -> u32 {
        let list = self.lists_free.pop().unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() as u32 - 1
        });
        self.lists[list as usize].extend(View::Value(base).elements(values).iter());
        list
    }

    #[inline]
    fn install(&mut self, key: KeyId, version: Version) {
        let state = &mut self.keys[key.index()];
        let old = state.newest;
        let leaves_list = old.len != NONE && (version.len == NONE || version.value != old.value);
        let last_of_list = if leaves_list { old.value } else { NONE };
        state.newest = version;
        if self.keep_old {
            let number = self.queue_start.wrapping_add(self.queue.len() as u32);
            let previous = std::mem::replace(&mut state.previous, number);
            self.queue.push_back(Old { version: old, previous, until: version.at, last_of_list });
        } else if last_of_list != NONE {
            self.free_list(last_of_list);
        }
    }

    fn free_list(&mut self, list: u32) {
        self.lists[list as usize].clear();
        self.lists_free.push(list);
    }

    /// Drops what no snapshot of at least `floor` sees.
    pub(super) fn drop_below(&mut self, floor: u32) {
        while self.queue.front().is_some_and(|old| old.until <= floor) {
            let old = self.queue.pop_front().expect("the queue was just seen not to be empty");
            self.queue_start = self.queue_start.wrapping_add(1);
            if old.last_of_list != NONE {
                self.free_list(old.last_of_list);
            }
        }
    }
}
