//! The replay itself: every transaction looks at its snapshot, then writes.
//!
//! **Steps**, for each transaction in the commit order ([`Replay::by_commit`]):
//! 1. its operations, in the order issued, against its snapshot and its own view ([`Replay::observe`]);
//! 2. its writes become the newest versions; at snapshot isolation, a version that it overwrites without
//!    having seen it is a conflict ([`Replay::commit`]).
//!
//! A transaction looks at the moment it commits, at versions kept for it ([`super::state`]): its
//! operations are visited once.

use super::local::{Local, Locals, Outside, Own};
use super::order::Order;
use super::state::State;
use super::view::View;
use super::{Axiom, Content, Finding};
use history::{History, KeyId, OpId, Point, PointKind, Timestamp, TxnId, ValueId, Values};
use isolation::{Options, Ryow, Undecided};

/// How many transactions pass between two looks at the budget.
const PATIENCE: usize = 4096;

/// A replay in progress.
pub(super) struct Replay<'h, F> {
    pub(super) history: &'h History,
    pub(super) values: &'h Values,
    pub(super) ryow: Ryow,
    options: &'h Options,
    serial: bool,
    pub(super) state: State,
    pub(super) locals: Locals,
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
            values: history.values(),
            ryow: options.ryow,
            options,
            serial,
            state: State::new(history, keep_old),
            locals: Locals::default(),
            broken: Vec::new(),
            key_order: None,
            rows: Default::default(),
            found,
        }
    }

    /// Replays all transactions, each at the moment of its commit.
    pub(super) fn by_commit(&mut self, order: &Order) -> Result<(), Undecided> {
        for (rank, &txn) in order.by_rank.iter().enumerate() {
            if rank.is_multiple_of(PATIENCE) {
                self.options.budget.exhausted().map_or(Ok(()), Err)?;
            }
            if Order::floor_may_rise(rank) {
                self.state.drop_below(order.floor(rank));
            }
            let snapshot = order.snapshot[rank];
            self.observe(txn, snapshot);
            self.commit(txn, rank, snapshot, order);
            self.tell();
        }
        Ok(())
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
                self.observe_range(txn, op, self.history.operation(op), snapshot);
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
    fn read(&mut self, txn: TxnId, op: OpId, key: KeyId, value: ValueId, snapshot: u32) {
        if !value.is_known() {
            return;
        }
        let local = self.locals.entry(key, &mut self.state);
        if local.own == Own::Nothing && local.outside.is_none() {
            // The usual case: the first operation on the key.
            local.outside = Some(Outside { value, len: None });
            let (expected, writer) = self.state.seen(key, snapshot);
            if !expected.same(View::Value(value), self.values) {
                let expected = content(expected);
                self.broken.push(wrong(Axiom::External, txn, op, key, writer, expected, value));
            }
            return;
        }
        let verdict = judge_again(local, value, &self.state, snapshot, self.ryow, self.values);
        if let Some((axiom, writer, expected)) = verdict {
            self.broken.push(wrong(axiom, txn, op, key, writer, expected, value));
        }
    }

    /// Its writes become the newest versions.
    fn commit(&mut self, txn: TxnId, rank: usize, snapshot: u32, order: &Order) {
        let locals = std::mem::take(&mut self.locals);
        for local in locals.entries() {
            self.install(local, txn, rank, snapshot, order);
        }
        self.locals = locals;
    }

    #[inline]
    fn install(&mut self, local: &Local, txn: TxnId, rank: usize, snapshot: u32, order: &Order) {
        if local.own == Own::Nothing {
            return;
        }
        if !self.serial
            && let Some(unseen) = self.state.committed_since(local.key, snapshot)
        {
            self.conflict(txn, local.key, order.by_rank[unseen as usize]);
        }
        local.install(&mut self.state, rank as u32 + 1, txn, self.values);
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

/// Judges a read of a key that the transaction has read or written before.
#[cold]
fn judge_again(
    local: &mut Local,
    value: ValueId,
    state: &State,
    snapshot: u32,
    ryow: Ryow,
    values: &Values,
) -> Option<(Axiom, Option<TxnId>, Content)> {
    let seen = View::Value(value);
    if local.own == Own::Nothing || ryow == Ryow::Never {
        return judge_outside(local, Outside { value, len: None }, &[], state, snapshot, values);
    }
    if let Own::Value(_) = local.own {
        let expected = local.over(View::Value(ValueId::ABSENT), values);
        return match (expected.same(seen, values), ryow) {
            (true, _) => None,
            (false, Ryow::May) => {
                judge_outside(local, Outside { value, len: None }, &[], state, snapshot, values)
            }
            (false, _) => Some((Axiom::Internal, None, content(expected))),
        };
    }
    let appended = std::mem::take(&mut local.appended);
    let first_look = local.outside;
    let verdict = match seen.list(values).and_then(|list| list.body.strip_suffix(&*appended)) {
        Some(before) => {
            let outside = Outside { value, len: Some(before.len() as u32) };
            judge_outside(local, outside, &appended, state, snapshot, values)
        }
        None => {
            let (outside, writer) = match local.outside {
                Some(outside) => (outside.view(values), None),
                None => state.seen(local.key, snapshot),
            };
            Some((Axiom::Internal, writer, content(outside.with(&appended, values))))
        }
    };
    let verdict = match verdict {
        Some(_) if ryow == Ryow::May => {
            // With what it appended it does not fit; without, it may.
            local.outside = first_look;
            judge_outside(local, Outside { value, len: None }, &[], state, snapshot, values)
        }
        verdict => verdict,
    };
    local.appended = appended;
    verdict
}

/// Judges what a read shows of the outside: against the first look, or, if this is the first, against the
/// snapshot.
fn judge_outside(
    local: &mut Local,
    outside: Outside,
    appended: &[ValueId],
    state: &State,
    snapshot: u32,
    values: &Values,
) -> Option<(Axiom, Option<TxnId>, Content)> {
    let (axiom, (expected, writer)) = match local.outside {
        Some(first) => (Axiom::Internal, (first.view(values), None)),
        None => (Axiom::External, state.seen(local.key, snapshot)),
    };
    if local.outside.is_none() {
        local.outside = Some(outside);
    }
    let shown = outside.view(values);
    if appended.is_empty() {
        return (!expected.same(shown, values)).then(|| (axiom, writer, content(expected)));
    }
    // Under appends a scalar looks like a list of itself.
    let same = View::List(expected.elements(values)).same(View::List(shown.elements(values)), values);
    (!same).then(|| (axiom, writer, content(expected.with(appended, values))))
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
