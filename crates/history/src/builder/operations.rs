//! Operations of the open transaction.

use super::Builder;
use crate::model::{Compound, NO_COUNT, NO_ID, PackedOp, flag, kind};
use crate::room::Room;
use crate::{BuildError, Id, KeyId, Lock, OpId, Predicate, Range, Row, Span, ValueId};

const OPEN_RANGE: Range = Range { from: None, to: None };

impl Builder {
    #[inline]
    fn push(&mut self, kind: u8, flags: u8, a: u32, b: u32) -> OpId {
        debug_assert!(self.open.is_some(), "operations belong to an open transaction");
        match self.room.place(self.history.ops.len(), 1, "operations") {
            Some(_) => self.history.ops.push(PackedOp { kind, flags, unused: 0, a, b }),
            None => OpId(0),
        }
    }

    /// A point read; the value may be `ABSENT` or `UNKNOWN`.
    #[inline]
    pub fn read(&mut self, key: KeyId, value: ValueId, lock: Lock) -> OpId {
        let flags = match lock {
            Lock::None => 0,
            Lock::Share => flag::SHARE,
            Lock::Update => flag::UPDATE,
        };
        self.push(kind::READ, flags, key.0, value.0)
    }

    /// Insert or overwrite.
    #[inline]
    pub fn write(&mut self, key: KeyId, value: ValueId) -> OpId {
        self.push(kind::WRITE, 0, key.0, value.0)
    }

    /// A read or a write, without a branch: in logs of both no processor foresees which comes next.
    #[inline]
    pub(crate) fn read_or_write(&mut self, is_read: bool, key: KeyId, value: ValueId) -> OpId {
        const { assert!(kind::READ == 0 && kind::WRITE == 1) };
        self.push(u8::from(!is_read), 0, key.0, value.0)
    }

    /// Physical deletion.
    pub fn delete(&mut self, key: KeyId) -> OpId {
        self.push(kind::DELETE, 0, key.0, ValueId::ABSENT.0)
    }

    /// Adds one element to the list at `key`.
    #[inline]
    pub fn append(&mut self, key: KeyId, value: ValueId) -> OpId {
        self.push(kind::APPEND, 0, key.0, value.0)
    }

    /// All keys of a range.
    pub fn scan(&mut self, range: Range, rows: Option<&[Row]>) -> OpId {
        let (rows_start, rows_len) = self.push_rows(rows);
        self.push_compound(kind::SCAN, 0, range, NO_ID, (rows_start, rows_len), ValueId::ABSENT, None)
    }

    /// The first keys of a range.
    pub fn iterate(&mut self, range: Range, reverse: bool, exhausted: bool, rows: Option<&[Row]>) -> OpId {
        let piece = self.push_rows(rows);
        let flags = if reverse { flag::REVERSE } else { 0 } | if exhausted { flag::EXHAUSTED } else { 0 };
        self.push_compound(kind::ITERATE, flags, range, NO_ID, piece, ValueId::ABSENT, None)
    }

    /// All rows that satisfy a predicate.
    pub fn query(&mut self, predicate: Predicate, rows: Option<&[Row]>) -> OpId {
        let piece = self.push_rows(rows);
        let predicate = self.push_predicate(predicate);
        self.push_compound(kind::QUERY, 0, OPEN_RANGE, predicate, piece, ValueId::ABSENT, None)
    }

    /// A predicate write.
    pub fn update(
        &mut self,
        predicate: Predicate,
        set: ValueId,
        count: Option<u64>,
        keys: Option<&[KeyId]>,
    ) -> OpId {
        let piece = self.push_keys(keys);
        let predicate = self.push_predicate(predicate);
        self.push_compound(kind::UPDATE, 0, OPEN_RANGE, predicate, piece, set, count)
    }

    /// A predicate delete.
    pub fn delete_where(&mut self, predicate: Predicate, count: Option<u64>, keys: Option<&[KeyId]>) -> OpId {
        let piece = self.push_keys(keys);
        let predicate = self.push_predicate(predicate);
        self.push_compound(kind::DELETE_WHERE, 0, OPEN_RANGE, predicate, piece, ValueId::ABSENT, count)
    }

    /// Compare and set; `ok` says whether it wrote.
    pub fn cas(&mut self, key: KeyId, expect: ValueId, write: ValueId, ok: Option<bool>) -> OpId {
        let changed = ok.map(|ok| if ok { std::slice::from_ref(&key) } else { &[] });
        let piece = self.push_keys(changed);
        let range = Range { from: Some(key), to: None };
        let op = self.push_compound(kind::CAS, 0, range, NO_ID, piece, write, None);
        if let Some(op) = self.last_op() {
            self.history.ops[op].b = expect.0;
        }
        op
    }

    /// Sets the client's clock around the last operation.
    pub fn set_op_at(&mut self, span: Span) -> Result<(), BuildError> {
        if span.begin > span.end {
            return Err(BuildError::ClientBackwards(span));
        }
        if let Some(op) = self.last_op() {
            self.history.op_clocks.push(op, span);
        }
        Ok(())
    }

    /// Keeps fields of the last operation that the format does not define, a JSON object.
    pub fn set_op_extra(&mut self, json: &str) {
        let json = self.field(json);
        if let (Some(op), Some(json)) = (self.last_op(), json) {
            self.history.op_extra.push((op, json));
        }
    }

    /// The last operation, unless operations did not fit: then it is not the one that is meant.
    fn last_op(&self) -> Option<OpId> {
        self.room.check().ok().map(|()| OpId::new(self.history.ops.len() - 1))
    }

    fn push_rows(&mut self, rows: Option<&[Row]>) -> (u32, u32) {
        piece(&mut self.room, &mut self.history.rows, rows, "rows")
    }

    fn push_keys(&mut self, keys: Option<&[KeyId]>) -> (u32, u32) {
        piece(&mut self.room, &mut self.history.key_lists, keys, "keys of predicate writes")
    }

    fn push_predicate(&mut self, predicate: Predicate) -> u32 {
        let place = self.room.place(self.history.predicates.len(), 1, "predicates");
        self.history.predicates.extend(place.map(|_| predicate));
        place.unwrap_or(NO_ID)
    }

    #[expect(clippy::too_many_arguments, reason = "one call a kind of operation, all in this file")]
    fn push_compound(
        &mut self,
        kind: u8,
        flags: u8,
        range: Range,
        predicate: u32,
        (rows_start, rows_len): (u32, u32),
        set: ValueId,
        count: Option<u64>,
    ) -> OpId {
        let Some(index) = self.room.place(self.history.compounds.len(), 1, "operations on many keys") else {
            return OpId(0);
        };
        let bound = |key: Option<KeyId>| key.map_or(NO_ID, |key| key.0);
        self.history.compounds.push(Compound {
            from: bound(range.from),
            to: bound(range.to),
            predicate,
            rows_start,
            rows_len,
            set,
            count: count.unwrap_or(NO_COUNT),
        });
        self.push(kind, flags, index, 0)
    }

    pub(super) fn truncate_ops(&mut self, len: usize) {
        let history = &mut self.history;
        if history.ops.len() == len {
            return;
        }
        let mut ops = std::mem::take(&mut history.ops).into_vec();
        ops.truncate(len);
        history.ops = ops.into();
        history.op_clocks.truncate(len);
        history.op_extra.retain(|(op, _)| op.index() < len);
    }
}

/// Appends a piece to a table: where it begins, and its length, [`NO_ID`] if there is none.
fn piece<T: Copy>(
    room: &mut Room,
    table: &mut Vec<T>,
    items: Option<&[T]>,
    what: &'static str,
) -> (u32, u32) {
    let items_or_none = items.unwrap_or_default();
    let (Some(start), Some(len)) =
        (room.place(table.len(), items_or_none.len(), what), room.len(items_or_none.len(), what))
    else {
        return (0, NO_ID);
    };
    table.extend_from_slice(items_or_none);
    (start, if items.is_some() { len } else { NO_ID })
}
