//! Parts of a history, one after the other, into one.
//!
//! What: appends a history to the one that is being built.
//! Invariant: afterwards the builder is as if it had been given the part's transactions one by one.
//! Steps: a builder that holds nothing yet takes the part's columns over as they are; else the part's names and values
//! are interned, and its columns are copied with ids translated.
//! Cost: nothing for the first part; for the others one hash look-up a name and value and one table look-up an id.

use super::{Builder, Interned, canonical_integer};
use crate::model::{Compound, NO_ID, NO_SPAN, PackedOp, kind};
use crate::{
    BuildError, Cell, ColumnId, History, Id, KeyId, NameRef, Names, OpId, Predicate, Row, SessionId, TxnId,
    ValueId, ValueRef,
};

/// A history whose names and values are known to be there once each. Its tables of names and values, positions and
/// order by session are still empty.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) history: History,
    pub(crate) interned: Interned,
}

impl Builder {
    /// Appends a part; a transaction that was open is dropped.
    pub(crate) fn append_part(&mut self, part: Indexed) -> Result<(), BuildError> {
        self.abandon();
        self.started = true;
        let is_blank = self.history.is_empty()
            && self.interned.keys.names.is_empty()
            && self.interned.sessions.names.is_empty()
            && self.interned.values.values.len() == 1
            && self.interned.values.columns.names.is_empty();
        self.refuse_earlier(&part.interned.ids.names)?;
        let first = self.history.len();
        if is_blank {
            self.adopt(part);
        } else {
            self.merge(part)?;
        }
        self.number_from(first)?;
        self.check_default_ids()
    }

    fn adopt(&mut self, part: Indexed) {
        let Indexed { mut history, interned } = part;
        self.initial.seen.append(&mut history.initial);
        self.history = history;
        self.interned = interned;
        self.lengths.of.clear();
        let sessions = &self.interned.sessions.names;
        for id in sessions.ids() {
            let carried = self.lengths.carried.find(sessions.get(id));
            self.lengths.of.push(carried.map_or(0, |id| self.lengths.carried_len[id.index()]));
        }
    }

    /// Gives the transactions from `first` on their places in their sessions.
    fn number_from(&mut self, first: usize) -> Result<(), BuildError> {
        for txn in (first..self.history.len()).map(TxnId::new) {
            let len = &mut self.lengths.of[self.history.session[txn].index()];
            self.room.place(*len as usize, 1, "transactions in a session");
            self.history.position.push(*len);
            *len = len.saturating_add(1);
        }
        self.room.check()
    }

    /// Whether an explicit id is the default id of another transaction.
    fn check_default_ids(&mut self) -> Result<(), BuildError> {
        self.identity.defaults = None;
        self.identity.has_colon_ids = false;
        if self.identity.is_piece {
            return Ok(());
        }
        for id in self.interned.ids.names.ids() {
            let NameRef::Str(text) = self.interned.ids.names.get(id) else { continue };
            let Some((session, position)) = text.rsplit_once(':') else { continue };
            let Some(position) = canonical_integer(position) else { continue };
            self.identity.has_colon_ids = true;
            let Ok(position) = u32::try_from(position) else { continue };
            let number = canonical_integer(session).map(NameRef::Int);
            let mut names = std::iter::once(NameRef::Str(session)).chain(number);
            if names.any(|session| self.was_default(session, position)) {
                return Err(BuildError::DuplicateId(text.to_owned()));
            }
        }
        if !self.identity.has_colon_ids && !self.earlier_has_defaults() {
            return Ok(());
        }
        for txn in self.history.session.ids().filter(|&txn| self.history.id[txn] == NO_ID).collect::<Vec<_>>()
        {
            let session = self.interned.sessions.names.get(self.history.session[txn]);
            let name = format!("{session}:{}", self.history.position[txn]);
            if self.interned.ids.find(NameRef::Str(&name)).is_some() || self.came_before(NameRef::Str(&name))
            {
                return Err(BuildError::DuplicateId(name));
            }
        }
        Ok(())
    }

    fn merge(&mut self, part: Indexed) -> Result<(), BuildError> {
        let (history, more) = (&self.history, &part.history);
        for (before, more, what) in [
            (history.len(), more.len(), "transactions"),
            (history.op_count(), more.op_count(), "operations"),
            (history.compounds.len(), more.compounds.len(), "operations on many keys"),
            (history.rows.len(), more.rows.len(), "rows"),
            (history.key_lists.len(), more.key_lists.len(), "keys of predicate writes"),
            (history.predicates.len(), more.predicates.len(), "predicates"),
        ] {
            self.room.place(before, more, what);
        }
        self.room.check()?;
        let translation = self.translation(&part)?;
        self.interned.check()?;
        self.merge_transactions(&part.history, &translation);
        self.merge_operations(&part.history, &translation);
        let row = |row: &Row| translation.row(*row);
        self.initial.seen.extend(part.history.initial.iter().map(row));
        Ok(())
    }

    /// Interns everything that the part names.
    fn translation(&mut self, part: &Indexed) -> Result<Translation, BuildError> {
        let keys = map_names(&part.interned.keys.names, |name| self.key(name));
        let sessions = map_names(&part.interned.sessions.names, |name| self.session(name));
        let columns = map_names(&part.interned.values.columns.names, |name| match name {
            NameRef::Str(text) => self.column(text),
            NameRef::Int(_) => unreachable!("columns are interned as text"),
        });
        let mut ids = Vec::with_capacity(part.interned.ids.names.len());
        for id in part.interned.ids.names.ids() {
            let name = part.interned.ids.names.get(id);
            let next = self.interned.ids.names.len();
            let number = self.interned.ids.intern(name).index();
            self.interned.ids.room.check()?;
            if number != next && !self.identity.has_repeats {
                return Err(BuildError::DuplicateId(name.to_string()));
            }
            ids.push(number as u32);
        }
        let mut translation = Translation { keys, sessions, columns, ids, values: Vec::new() };
        for index in 0..part.interned.values.values.len() {
            let value =
                self.translate_value(part.interned.values.values.get(ValueId(index as u32)), &translation);
            translation.values.push(value);
        }
        Ok(translation)
    }

    /// Elements and cells come before the lists and rows that hold them.
    fn translate_value(&mut self, value: ValueRef<'_>, translation: &Translation) -> ValueId {
        match value {
            ValueRef::List(elements) => {
                let elements: Vec<ValueId> = elements.iter().map(|&id| translation.value(id)).collect();
                self.list(&elements)
            }
            ValueRef::Row(cells) => {
                let translate = |cell: &Cell| Cell {
                    column: translation.columns[cell.column.index()],
                    value: translation.value(cell.value),
                };
                self.row(&mut cells.iter().map(translate).collect())
            }
            scalar => self.interned.values.intern(scalar),
        }
    }

    fn merge_transactions(&mut self, part: &History, translation: &Translation) {
        let history = &mut self.history;
        let before = history.len();
        let total = before + part.len();
        let ops_before = history.ops.len() as u32;
        for txn in part.session.ids() {
            history.session.push(translation.sessions[part.session[txn].index()]);
            history.status.push(part.status[txn]);
            let id = part.id[txn];
            history.id.push(if id == NO_ID { NO_ID } else { translation.ids[id as usize] });
        }
        if history.first_op.is_empty() {
            history.first_op.push(0);
        }
        history.first_op.extend(part.first_op.iter().skip(1).map(|&op| op + ops_before));
        extend(&mut history.client, &part.client, NO_SPAN, before, total);
        extend(&mut history.db, &part.db, NO_SPAN, before, total);
        extend(&mut history.db_logical, &part.db_logical, [0, 0], before, total);
        let extra = part.txn_extra.iter();
        history.txn_extra.extend(extra.map(|(txn, extra)| (TxnId::new(txn.index() + before), extra.clone())));
    }

    fn merge_operations(&mut self, part: &History, translation: &Translation) {
        let history = &mut self.history;
        let ops_before = history.ops.len();
        let rows_before = history.rows.len() as u32;
        let keys_before = history.key_lists.len() as u32;
        let predicates_before = history.predicates.len() as u32;
        history.rows.extend(part.rows.iter().map(|&row| translation.row(row)));
        history.key_lists.extend(part.key_lists.iter().map(|key| translation.keys[key.index()]));
        history.predicates.extend(part.predicates.iter().map(|predicate| translation.predicate(predicate)));
        for op in part.ops.iter() {
            if op.kind < kind::SCAN {
                let a = translation.keys[op.a as usize].0;
                history.ops.push(PackedOp { a, b: translation.value(ValueId(op.b)).0, ..*op });
                continue;
            }
            let it = part.compounds[op.a as usize];
            let writes = matches!(op.kind, kind::UPDATE | kind::DELETE_WHERE | kind::CAS);
            let bound = |key: u32| if key == NO_ID { NO_ID } else { translation.keys[key as usize].0 };
            let a = history.compounds.len() as u32;
            history.compounds.push(Compound {
                from: bound(it.from),
                to: bound(it.to),
                predicate: if it.predicate == NO_ID { NO_ID } else { it.predicate + predicates_before },
                rows_start: it.rows_start.wrapping_add(if writes { keys_before } else { rows_before }),
                set: translation.value(it.set),
                ..it
            });
            history.ops.push(PackedOp { a, b: translation.value(ValueId(op.b)).0, ..*op });
        }
        let shift = |op: OpId| OpId::new(op.index() + ops_before);
        part.op_clocks.iter().for_each(|(op, span)| history.op_clocks.push(shift(op), span));
        history.op_extra.extend(part.op_extra.iter().map(|(op, text)| (shift(*op), text.clone())));
    }
}

/// Extends a column that is empty where it says nothing.
fn extend<T: Copy>(column: &mut Vec<T>, more: &[T], nothing: T, before: usize, total: usize) {
    if column.is_empty() && more.is_empty() {
        return;
    }
    column.resize(before, nothing);
    column.extend_from_slice(more);
    column.resize(total, nothing);
}

fn map_names<I: Id, T>(names: &Names<I>, mut intern: impl FnMut(NameRef<'_>) -> T) -> Vec<T> {
    names.ids().map(|id| intern(names.get(id))).collect()
}

/// The ids of a part in terms of the whole.
struct Translation {
    keys: Vec<KeyId>,
    sessions: Vec<SessionId>,
    columns: Vec<ColumnId>,
    ids: Vec<u32>,
    values: Vec<ValueId>,
}

impl Translation {
    #[inline]
    fn value(&self, id: ValueId) -> ValueId {
        if id.as_inline().is_some() || !id.is_known() { id } else { self.values[id.table_index()] }
    }

    fn row(&self, row: Row) -> Row {
        Row { key: self.keys[row.key.index()], value: self.value(row.value) }
    }

    fn predicate(&self, predicate: &Predicate) -> Predicate {
        predicate.translate(&mut |column, constant| (self.columns[column.index()], self.value(*constant)))
    }
}
