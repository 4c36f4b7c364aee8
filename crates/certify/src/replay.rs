//! One replay of a witness against the history.
//!
//! *What*: runs the transactions in the order that a witness gives, as a database would, and compares every recorded
//! result. A transaction runs as a whole when it begins: everything it sees is fixed then, and the state at that
//! moment *is* its snapshot. What it wrote waits until it commits. A serial order is the special case in which every
//! transaction commits where it begins.
//!
//! *Invariant*: the store holds exactly what the transactions committed so far left behind. Whoever commits a key
//! that somebody else committed since it began is refused (first committer wins), so what waits can always be put on
//! top of what is there; lists grow in place.
//!
//! *Steps*, for each mention of a transaction:
//! 1. its first mention (at a serial level, its only one) begins it: it is not aborted; its session's earlier
//!    committed transactions, and those that ended before it began, have committed, where the level counts that; each
//!    of its results fits;
//! 2. its second mention commits it: nobody else wrote its keys meanwhile;
//! 3. at the end every committed transaction has committed, and none is left open.
//!
//! *Orders in linear time*: the committed transactions of a session commit in session order, so counting them is
//! enough. For real time they are sorted by their end once; the first of them that has not committed yet is the
//! earliest end that anybody who begins now may have to wait for.
//!
//! *Cost*: one visit an operation, O(n log n) for the sort. A scan or an iterator costs the rows it shows and a bit
//! for each key of its range; a query or a predicate write looks at every key that is there.

use super::Objection;
use super::content::{Content, Seen, View};
use super::refusal::Refusal;
use history::{
    Column, History, Id, KeyId, Operation, Predicate, Range, Row, SessionId, Status, Transaction, TxnId,
    ValueId,
};
use isolation::{Budget, Level, Rule, Ryow};
use rustc_hash::FxHashMap;

/// Whether an order explains the whole history at a level that is defined by an order.
pub(super) fn replay(
    history: &History,
    level: Level,
    ryow: Ryow,
    clock_skew: i64,
    order: &[TxnId],
    budget: &Budget,
) -> Result<(), Objection> {
    let mut replay = Replay::new(history, level, ryow, clock_skew);
    let meter = budget.meter();
    // An operation on many keys may look at all of them.
    let work = |txn: TxnId| {
        let ops = history.transaction(txn).ops();
        let keys = ops.map(|(_, it)| if it.key().is_some() { 1 } else { history.keys().len() });
        keys.sum::<usize>()
    };
    for (place, &txn) in order.iter().enumerate() {
        meter.steps(1 + work(txn)).map_err(|why| Objection::Beyond(why.to_string()))?;
        // Places count from 1: 0 stands for the time before the first event.
        replay.mention(txn, place as u32 + 1)?;
    }
    Ok(replay.finish()?)
}

/// How far a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Unborn,
    Open,
    Committed,
}

/// What a transaction does to a key.
#[derive(Clone, Debug)]
enum Effect {
    /// Leaves this there, whatever was there before.
    Set(Content),
    /// Adds elements to what was there.
    Extend(Vec<ValueId>),
}

/// What a transaction that has begun will leave behind.
struct Pending {
    begun: u32,
    effects: Vec<(KeyId, Effect)>,
}

struct Replay<'h> {
    history: &'h History,
    serial: bool,
    ryow: Ryow,
    sessions: Option<Sessions>,
    clocks: Option<Clocks>,
    stage: Column<TxnId, Stage>,
    pending: FxHashMap<TxnId, Pending>,
    store: Column<KeyId, Content>,
    /// Where the last commit of each key is.
    written: Column<KeyId, u32>,
    /// Which keys are there, by name; kept only if some operation asks for more than one key.
    present: Option<Present>,
    own: Own,
}

impl<'h> Replay<'h> {
    fn new(history: &'h History, level: Level, ryow: Ryow, clock_skew: i64) -> Self {
        let keys = history.keys().len();
        let mut replay = Self {
            history,
            serial: level.rule == Rule::Serializable,
            ryow,
            sessions: level.session.then(|| Sessions::of(history)),
            clocks: level.realtime.then(|| Clocks::of(history, clock_skew)),
            stage: Column::filled(Stage::Unborn, history.len()),
            pending: FxHashMap::default(),
            store: Column::filled(Content::Absent, keys),
            written: Column::filled(0, keys),
            present: asks_for_many(history).then(|| Present::of(history)),
            own: Own { slot: Column::filled((0, 0), keys), now: 0, effects: Vec::new() },
        };
        for row in history.initial() {
            replay.put(row.key, Effect::Set(Content::of(history.values(), row.value)));
        }
        replay
    }

    /// The transaction is mentioned at a place of the witness.
    fn mention(&mut self, txn: TxnId, place: u32) -> Result<(), Refusal> {
        match self.stage[txn] {
            Stage::Unborn => {
                self.begin(txn)?;
                let effects = std::mem::take(&mut self.own.effects);
                if self.serial {
                    self.commit(txn, Pending { begun: place, effects }, place)?;
                } else {
                    self.pending.insert(txn, Pending { begun: place, effects });
                    self.stage[txn] = Stage::Open;
                }
                Ok(())
            }
            Stage::Open => {
                let pending = self.pending.remove(&txn).expect("an open transaction has something pending");
                self.commit(txn, pending, place)
            }
            Stage::Committed => Err(Refusal::Repeated { txn: self.name(txn) }),
        }
    }

    /// Runs a transaction on the store as it is; its effects are in `own` afterwards.
    fn begin(&mut self, txn: TxnId) -> Result<(), Refusal> {
        let transaction = self.history.transaction(txn);
        if transaction.status() == Status::Aborted {
            return Err(Refusal::Aborted { txn: self.name(txn) });
        }
        if self.sessions.as_ref().is_some_and(|sessions| !sessions.may_begin(transaction)) {
            return Err(Refusal::SessionOrder { txn: self.name(txn) });
        }
        if let Some(clocks) = &mut self.clocks
            && let Some(earlier) = clocks.too_early_for(transaction, &self.stage)
        {
            return Err(Refusal::RealTime { txn: self.name(txn), earlier: self.name(earlier) });
        }
        self.own.clear();
        for (place, (_, operation)) in transaction.ops().enumerate() {
            if !self.step(operation) {
                return Err(Refusal::Result {
                    txn: self.name(txn),
                    operation: place,
                    why: self.objection(operation),
                });
            }
        }
        Ok(())
    }

    fn commit(&mut self, txn: TxnId, pending: Pending, place: u32) -> Result<(), Refusal> {
        for (key, effect) in pending.effects {
            if self.written[key] > pending.begun {
                let key = self.history.keys().get(key).to_string();
                return Err(Refusal::Overlap { txn: self.name(txn), key });
            }
            self.put(key, effect);
            self.written[key] = place;
        }
        self.stage[txn] = Stage::Committed;
        if let Some(sessions) = &mut self.sessions {
            sessions.committed(self.history.transaction(txn));
        }
        Ok(())
    }

    fn put(&mut self, key: KeyId, effect: Effect) {
        let content = &mut self.store[key];
        match effect {
            Effect::Set(set) => *content = set,
            Effect::Extend(added) => content.extend(&added),
        }
        if let Some(present) = &mut self.present {
            present.set(key, *content != Content::Absent);
        }
    }

    /// Everything that had to happen has happened.
    fn finish(&self) -> Result<(), Refusal> {
        for transaction in self.history.transactions() {
            let txn = transaction.id();
            match self.stage[txn] {
                Stage::Open => return Err(Refusal::NeverCommits { txn: self.name(txn) }),
                Stage::Unborn if transaction.is_committed() => {
                    return Err(Refusal::Missing { txn: self.name(txn) });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn name(&self, txn: TxnId) -> String {
        self.history.transaction(txn).name().to_string()
    }

    // ---- one operation ----

    /// One operation; false if its result does not fit.
    #[inline]
    fn step(&mut self, operation: Operation<'h>) -> bool {
        let values = self.history.values();
        match operation {
            Operation::Read { key, value, .. } => {
                !value.is_known() || self.may_see(key, |view| view.equals(Seen::of(values, value)))
            }
            Operation::Write { key, value } => {
                self.own.set(key, Content::of(values, value));
                true
            }
            Operation::Delete { key } => {
                self.own.set(key, Content::Absent);
                true
            }
            Operation::Append { key, value } => {
                self.own.append(key, value);
                true
            }
            Operation::Cas { key, expect, write, ok } => {
                let wrote = self.current(key).equals(Seen::of(values, expect));
                if wrote {
                    self.own.set(key, Content::of(values, write));
                }
                ok.is_none_or(|ok| ok == wrote)
            }
            Operation::Scan { range, rows } => {
                rows.is_none_or(|rows| self.range_fits(range, false, true, rows))
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                rows.is_none_or(|rows| self.range_fits(range, reverse, exhausted, rows))
            }
            Operation::Query { predicate, rows } => rows.is_none_or(|rows| self.query_fits(predicate, rows)),
            Operation::Update { predicate, set, count, keys } => {
                self.predicate_write(predicate, &Content::of(values, set), count, keys)
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                self.predicate_write(predicate, &Content::Absent, count, keys)
            }
        }
    }

    /// What the key holds for the transaction's own writes: its own effect on what it started from.
    #[inline]
    fn current(&self, key: KeyId) -> View<'_> {
        match self.own.effect(key) {
            None => self.store[key].view(),
            Some(Effect::Set(content)) => content.view(),
            Some(Effect::Extend(added)) => View { base: &self.store[key], added },
        }
    }

    /// Whether a read of the key may show something that `fits`.
    #[inline]
    fn may_see(&self, key: KeyId, fits: impl Fn(View<'_>) -> bool) -> bool {
        let without = || fits(self.store[key].view());
        match (self.own.effect(key), self.ryow) {
            (None, _) | (_, Ryow::Never) => without(),
            (Some(_), Ryow::Must) => fits(self.current(key)),
            (Some(_), Ryow::May) => fits(self.current(key)) || without(),
        }
    }

    fn present(&self) -> &Present {
        self.present.as_ref().expect("a history that asks for many keys knows which are there")
    }

    /// Whether the rows are what the range shows: all of it, or its beginning up to the last row.
    fn range_fits(&self, range: Range, reverse: bool, to_the_end: bool, rows: &[Row]) -> bool {
        let present = self.present();
        let whole = present.interval(range);
        let rank = |row: &Row| present.rank[row.key];
        let in_order =
            |pair: &[Row]| (rank(&pair[0]) < rank(&pair[1])) != reverse && pair[0].key != pair[1].key;
        if !rows.iter().all(|row| whole.contains(&rank(row))) || !rows.windows(2).all(in_order) {
            return false;
        }
        let visited = match rows.last() {
            _ if to_the_end => whole,
            None => 0..0,
            Some(last) if reverse => rank(last)..whole.end,
            Some(last) => whole.start..rank(last) + 1,
        };
        let has_row = |key: KeyId| {
            let found = rows.binary_search_by(|row| {
                let order = rank(row).cmp(&present.rank[key]);
                if reverse { order.reverse() } else { order }
            });
            found.is_ok()
        };
        let hides = |key: KeyId| self.may_see(key, |view| !view.is_present());
        rows.iter().all(|row| self.row_fits(row, |_| true))
            && self.own.keys().all(|key| !visited.contains(&present.rank[key]) || has_row(key) || hides(key))
            && present.keys(visited.clone()).all(|key| has_row(key) || hides(key))
    }

    /// Whether the rows are exactly what satisfies the predicate.
    fn query_fits(&self, predicate: &Predicate, rows: &[Row]) -> bool {
        let mut keys: Vec<KeyId> = rows.iter().map(|row| row.key).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|pair| pair[0] == pair[1]) {
            return false;
        }
        let satisfies = |view: View<'_>| view.satisfies(self.history.values(), predicate);
        let hides =
            |key: KeyId| keys.binary_search(&key).is_ok() || self.may_see(key, |view| !satisfies(view));
        rows.iter().all(|row| self.row_fits(row, satisfies))
            && self.own.keys().all(hides)
            && self.present().all_keys().all(hides)
    }

    /// Whether a row fits, where only contents that are `wanted` give rows. A row that holds nothing says that
    /// the key is not shown.
    fn row_fits(&self, row: &Row, wanted: impl Fn(View<'_>) -> bool) -> bool {
        let shown = |view: View<'_>| view.is_present() && wanted(view);
        if !row.value.is_known() {
            return self.may_see(row.key, shown);
        }
        match Seen::of(self.history.values(), row.value) {
            Seen::Absent => self.may_see(row.key, |view| !shown(view)),
            seen => self.may_see(row.key, |view| shown(view) && view.equals(seen)),
        }
    }

    /// Writes `set` into every key that satisfies the predicate; false if what was reported does not fit.
    fn predicate_write(
        &mut self,
        predicate: &Predicate,
        set: &Content,
        count: Option<u64>,
        keys: Option<&[KeyId]>,
    ) -> bool {
        let values = self.history.values();
        let candidates = self.present().all_keys().chain(self.own.keys());
        let mut matched: Vec<KeyId> =
            candidates.filter(|&key| self.current(key).satisfies(values, predicate)).collect();
        matched.sort_unstable();
        matched.dedup();
        for &key in &matched {
            self.own.set(key, set.clone());
        }
        let mut reported = keys.map(<[KeyId]>::to_vec);
        if let Some(reported) = &mut reported {
            reported.sort_unstable();
        }
        count.is_none_or(|count| count == matched.len() as u64)
            && reported.is_none_or(|reported| reported == matched)
    }

    /// What is wrong with an operation that does not fit.
    fn objection(&self, operation: Operation<'_>) -> String {
        match operation {
            Operation::Read { key, value, .. } => {
                let values = self.history.values();
                let visible = match self.ryow {
                    Ryow::Never => self.store[key].view(),
                    Ryow::Must | Ryow::May => self.current(key),
                };
                format!(
                    "it read {} = {}, and the order gives {}",
                    self.history.keys().get(key),
                    values.show(value),
                    visible.show(values)
                )
            }
            other => format!("the order does not give the result of its {}", other.name()),
        }
    }
}

/// Whether some operation asks for more than one key.
fn asks_for_many(history: &History) -> bool {
    let effective = history.transactions().filter(|txn| txn.status() != Status::Aborted);
    effective.flat_map(|txn| txn.op_ids()).any(|op| history.point(op).is_none())
}

/// What the transaction that runs has done so far.
struct Own {
    /// For each key the transaction that touched it last, and where in `effects`.
    slot: Column<KeyId, (u32, u32)>,
    now: u32,
    effects: Vec<(KeyId, Effect)>,
}

impl Own {
    /// Another transaction runs.
    fn clear(&mut self) {
        self.now += 1;
        self.effects.clear();
    }

    #[inline]
    fn effect(&self, key: KeyId) -> Option<&Effect> {
        let (touched, place) = self.slot[key];
        (touched == self.now).then(|| &self.effects[place as usize].1)
    }

    fn keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.effects.iter().map(|&(key, _)| key)
    }

    fn add(&mut self, key: KeyId, effect: Effect) {
        self.slot[key] = (self.now, self.effects.len() as u32);
        self.effects.push((key, effect));
    }

    fn effect_mut(&mut self, key: KeyId) -> Option<&mut Effect> {
        let (touched, place) = self.slot[key];
        (touched == self.now).then(|| &mut self.effects[place as usize].1)
    }

    fn set(&mut self, key: KeyId, content: Content) {
        match self.effect_mut(key) {
            Some(effect) => *effect = Effect::Set(content),
            None => self.add(key, Effect::Set(content)),
        }
    }

    fn append(&mut self, key: KeyId, element: ValueId) {
        match self.effect_mut(key) {
            Some(Effect::Set(content)) => content.extend(&[element]),
            Some(Effect::Extend(added)) => added.push(element),
            None => self.add(key, Effect::Extend(vec![element])),
        }
    }
}

/// Session order: how many committed transactions must precede each one, and how many have committed.
struct Sessions {
    before: Column<TxnId, u32>,
    committed: Column<SessionId, u32>,
}

impl Sessions {
    fn of(history: &History) -> Self {
        let mut before = Column::filled(0, history.len());
        for session in history.sessions().ids() {
            let mut count = 0;
            for &txn in history.of_session(session) {
                before[txn] = count;
                count += u32::from(history.transaction(txn).is_committed());
            }
        }
        Self { before, committed: Column::filled(0, history.sessions().len()) }
    }

    /// Nobody commits before those that precede it have, so those that have committed are the first ones.
    fn may_begin(&self, transaction: Transaction<'_>) -> bool {
        self.committed[transaction.session()] >= self.before[transaction.id()]
    }

    /// Nothing waits for a transaction of unknown outcome.
    fn committed(&mut self, transaction: Transaction<'_>) {
        self.committed[transaction.session()] += u32::from(transaction.is_committed());
    }
}

/// Real-time order.
struct Clocks {
    skew: i64,
    /// The committed transactions with clocks, by their end.
    by_end: Vec<(i64, TxnId)>,
    /// All before this one have committed.
    next: usize,
}

impl Clocks {
    fn of(history: &History, skew: i64) -> Self {
        let committed = history.transactions().filter(Transaction::is_committed);
        let mut by_end: Vec<(i64, TxnId)> =
            committed.filter_map(|txn| Some((txn.client()?.end, txn.id()))).collect();
        by_end.sort_unstable();
        Self { skew, by_end, next: 0 }
    }

    /// A transaction that ended before this one began and has not committed yet.
    fn too_early_for(&mut self, transaction: Transaction<'_>, stage: &Column<TxnId, Stage>) -> Option<TxnId> {
        let begin = transaction.client()?.begin;
        while self.by_end.get(self.next).is_some_and(|&(_, txn)| stage[txn] == Stage::Committed) {
            self.next += 1;
        }
        let &(end, earlier) = self.by_end.get(self.next)?;
        (i128::from(end) + i128::from(self.skew) < i128::from(begin)).then_some(earlier)
    }
}

/// Which keys are there, in the order of their names.
struct Present {
    rank: Column<KeyId, u32>,
    by_rank: Vec<KeyId>,
    /// A bit for each rank.
    bits: Vec<u64>,
}

impl Present {
    fn of(history: &History) -> Self {
        let rank = history.keys().ranks();
        let mut by_rank = vec![KeyId::default(); rank.len()];
        for key in history.keys().ids() {
            by_rank[rank[key.index()] as usize] = key;
        }
        let bits = vec![0; rank.len().div_ceil(64)];
        Self { rank: rank.into(), by_rank, bits }
    }

    fn set(&mut self, key: KeyId, is_present: bool) {
        let rank = self.rank[key];
        let (word, bit) = (&mut self.bits[rank as usize / 64], 1 << (rank % 64));
        if is_present { *word |= bit } else { *word &= !bit }
    }

    /// The ranks of a range; empty if it is turned round.
    fn interval(&self, range: Range) -> std::ops::Range<u32> {
        let start = range.from.map_or(0, |key| self.rank[key]);
        let end = range.to.map_or(self.by_rank.len() as u32, |key| self.rank[key]);
        start..end.max(start)
    }

    fn all_keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.keys(0..self.by_rank.len() as u32)
    }

    /// The keys that are there, of these ranks.
    fn keys(&self, ranks: std::ops::Range<u32>) -> impl Iterator<Item = KeyId> + '_ {
        let words = ranks.start / 64..ranks.end.div_ceil(64);
        let set_bits = words.flat_map(|word| {
            let mut left = self.bits[word as usize];
            std::iter::from_fn(move || {
                if left == 0 {
                    return None;
                }
                let bit = left.trailing_zeros();
                left &= left - 1;
                Some(word * 64 + bit)
            })
        });
        set_bits.filter(move |rank| ranks.contains(rank)).map(|rank| self.by_rank[rank as usize])
    }
}
