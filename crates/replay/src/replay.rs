//! The replay itself: every transaction looks at its snapshot, then writes.
//!
//! **Steps**, for each transaction in the commit order ([`Replay::by_commit`]):
//! 1. its operations, in the order issued, against its snapshot and its own view ([`Replay::observe`]);
//! 2. its writes become the newest versions; at snapshot isolation, a version that it overwrites without
//!    having seen it is a conflict ([`Replay::commit`]).
//!
//! A transaction looks at the moment it commits, at versions kept for it ([`super::state`]): its
//! operations are visited once.

use super::local::{Entry, Locals};
use super::order::Order;
use super::state::State;
use super::step::{Interned, Local, Look, Misfit, Read, Rules};
use super::view::View;
use super::{Axiom, Content, Finding};
use history::{History, KeyId, OpId, Point, PointKind, Timestamp, TxnId, ValueId};
use isolation::{Meter, Options, Undecided};

/// A replay in progress.
pub(super) struct Replay<'h, F> {
    pub(super) history: &'h History,
    pub(super) rules: Rules<Interned<'h>>,
    /// Counts operations, and keys of operations on many of them.
    meter: Meter<'h>,
    /// The budget was used up within a transaction.
    gave_up: Option<Undecided>,
    serial: bool,
    pub(super) state: State,
    pub(super) locals: Locals,
    /// What it did to keys that are not among them.
    pub(super) untouched: Local<ValueId, Look>,
    /// What the transaction being replayed broke.
    pub(super) broken: Vec<Finding>,
    pub(super) key_order: Option<super::ranges::KeyOrder>,
    pub(super) rows: super::ranges::RowsSeen,
    found: F,
}

impl<'h, F: FnMut(Finding)> Replay<'h, F> {
    pub(super) fn new(
        history: &'h History,
        options: &'h Options,
        serial: bool,
        keep_old: bool,
        found: F,
    ) -> Self {
        Self {
            history,
            rules: Rules { values: Interned { values: history.values() }, ryow: options.ryow },
            meter: options.budget.meter(),
            gave_up: None,
            serial,
            state: State::new(history, keep_old),
            locals: Locals::default(),
            untouched: Local::default(),
            broken: Vec::new(),
            key_order: None,
            rows: Default::default(),
            found,
        }
    }

    /// Replays all transactions, each at the moment of its commit.
    pub(super) fn by_commit(&mut self, order: &Order) -> Result<(), Undecided> {
        for (rank, &txn) in order.by_rank.iter().enumerate() {
            if Order::floor_may_rise(rank) {
                self.state.drop_below(order.floor(rank));
            }
            let snapshot = order.snapshot[rank];
            self.observe(txn, snapshot);
            self.goes_on(1);
            if let Some(why) = self.gave_up.take() {
                return Err(why);
            }
            self.commit(txn, rank, snapshot, order);
            self.tell();
        }
        Ok(())
    }

    /// So many steps more; whether the budget allows them.
    pub(super) fn goes_on(&mut self, steps: usize) -> bool {
        if self.gave_up.is_none() {
            self.gave_up = self.meter.steps(steps).err();
        }
        self.gave_up.is_none()
    }

    fn tell(&mut self) {
        for finding in self.broken.drain(..) {
            (self.found)(finding);
        }
    }

    /// The operations of a transaction against its snapshot; fills `locals` with its view and `broken`
    /// with what does not fit.
    pub(super) fn observe(&mut self, txn: TxnId, snapshot: u32) {
        self.locals.clear(&mut self.state);
        for op in self.history.transaction(txn).op_ids() {
            let Some(Point { kind, key, value }) = self.history.point(op) else {
                self.observe_range(txn, op, self.history.primitive(op), snapshot);
                continue;
            };
            match kind {
                PointKind::Read => self.read(txn, op, key, value, snapshot),
                PointKind::Write => self.locals.entry(key, &mut self.state).write(value),
                PointKind::Append => self.locals.entry(key, &mut self.state).append(value),
            }
        }
    }

    #[inline]
    fn read(&mut self, txn: TxnId, op: OpId, key: KeyId, seen: ValueId, snapshot: u32) {
        let local = self.locals.entry(key, &mut self.state);
        match local.read(&seen, self.rules) {
            Read::Right => {}
            Read::First => {
                let (expected, writer) = self.state.seen(key, snapshot);
                if !expected.same(View::Value(seen), self.rules.values.values) {
                    let expected = content(expected);
                    self.broken.push(wrong(Axiom::External, txn, op, key, writer, expected, seen));
                }
            }
            Read::Wrong(expected) => {
                self.broken.push(wrong(Axiom::Internal, txn, op, key, None, expected, seen));
            }
            Read::Open => self.read_over(txn, op, key, seen, snapshot),
        }
    }

    /// A read of what the transaction appended to.
    #[cold]
    fn read_over(&mut self, txn: TxnId, op: OpId, key: KeyId, seen: ValueId, snapshot: u32) {
        let (outside, writer) = self.state.seen(key, snapshot);
        let Some(local) = self.locals.get_mut(key, &self.state) else { return };
        if let Some(Misfit { axiom, expected, names_writer }) = local.read_over(&seen, outside, self.rules) {
            let other = writer.filter(|_| names_writer);
            self.broken.push(wrong(axiom, txn, op, key, other, expected, seen));
        }
    }

    /// Its writes become the newest versions.
    fn commit(&mut self, txn: TxnId, rank: usize, snapshot: u32, order: &Order) {
        let locals = std::mem::take(&mut self.locals);
        for entry in locals.entries() {
            self.install(entry, txn, rank, snapshot, order);
        }
        self.locals = locals;
    }

    #[inline]
    fn install(&mut self, entry: &Entry, txn: TxnId, rank: usize, snapshot: u32, order: &Order) {
        if !entry.writes() {
            return;
        }
        if !self.serial
            && let Some(unseen) = self.state.committed_since(entry.key, snapshot)
        {
            self.conflict(txn, entry.key, order.by_rank[unseen as usize]);
        }
        entry.install(&mut self.state, rank as u32 + 1, txn, self.history.values());
    }

    #[cold]
    fn conflict(&mut self, txn: TxnId, key: KeyId, other: TxnId) {
        // Of one whose outcome is unknown the timestamps may be, too.
        let db = |txn| self.history.transaction(txn).db();
        let start = db(txn).map_or(Timestamp::from(0), |(start, _)| start);
        self.broken.push(Finding {
            axiom: Axiom::NoConflict,
            txn,
            op: None,
            key: Some(key),
            other: Some(other),
            expected: Content::Time(db(other).map_or(start, |(_, commit)| commit)),
            seen: Content::Time(start),
        });
    }
}

/// A view as data.
pub(super) fn content(view: View<'_>) -> Content {
    match view {
        View::Value(id) => Content::Value(id),
        View::List(pieces) => Content::List(pieces.iter().collect()),
    }
}

#[cold]
pub(super) fn wrong(
    axiom: Axiom,
    txn: TxnId,
    op: OpId,
    key: KeyId,
    other: Option<TxnId>,
    expected: Content,
    seen: ValueId,
) -> Finding {
    Finding { axiom, txn, op: Some(op), key: Some(key), other, expected, seen: Content::Value(seen) }
}
