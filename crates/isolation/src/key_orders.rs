//! Orders of versions that are assumed for every key by itself: Elle's `sequential-keys?` and `linearizable-keys?`.
//!
//! *What*: what a transaction leaves of a key is its last write of it, or, if it only reads, what its first read saw; what
//! it finds is what its first read saw, or, if it writes first, its write. If two transactions of a session (sequential
//! keys), or one that ended before the other began (linearizable keys), both touch a key, then the version that the first
//! leaves is the one that the second finds, or comes before it.
//!
//! *Invariant*: the assumption orders versions of one key, never the transactions themselves: two that saw the same version
//! may come in any order. From read committed on, every version that was read has a writer that took effect, and a write
//! follows what its transaction read of the key; so it is enough to order neighbours.
//!
//! *Steps*: the writer of each version that a read saw, by value; per key the neighbours in session or real-time order;
//! each pair of different writers is an edge, and a pair that ends at the initial value a contradiction.
//!
//! *Cost*: one look-up per operation, and a sort per key for real time.

use crate::custom::Definition;
use crate::levels::{Level, Rule};
use crate::module::{Additions, Module};
use crate::modules::neighbours_in_time;
use history::{History, KeyId, Primitive, SessionId, Status, Transaction, TxnId, ValueId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// An order that versions of every key are assumed to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyOrder {
    /// The order of each session.
    Sequential,
    /// The clients' real-time order.
    Linearizable,
}

impl fmt::Display for KeyOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sequential => "sequential-keys",
            Self::Linearizable => "linearizable-keys",
        })
    }
}

impl KeyOrder {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sequential, Self::Linearizable];
}

/// A level, what is assumed with it, by how much clocks may differ, and the level that this comes to.
type Assumed = (Level, Vec<KeyOrder>, i64, Level);

/// Levels with assumptions that were asked for: each is made once and kept.
static KNOWN: Mutex<Vec<Assumed>> = Mutex::new(Vec::new());

impl Level {
    /// The level with assumptions on versions of keys. Clients' clocks may differ by `clock_skew`.
    pub fn assuming(self, orders: &[KeyOrder], clock_skew: i64) -> Result<Self, String> {
        if orders.is_empty() {
            return Ok(self);
        }
        if self.own.is_some() {
            return Err(format!(
                "{self}: a custom level takes no assumption on keys; its file can name modules"
            ));
        }
        if self.rule == Rule::ReadUncommitted {
            return Err(format!("{self} does not count what reads saw, so it takes no assumption on keys"));
        }
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |it: &&Assumed| (it.0, &it.1[..], it.2) == (self, orders, clock_skew);
        if let Some(it) = known.iter().find(is_same) {
            return Ok(it.3);
        }
        let names: Vec<String> = orders.iter().map(ToString::to_string).collect();
        let mut definition = Definition::new(&format!("{self}+{}", names.join("+")), self.rule);
        definition.session = self.session;
        definition.realtime = self.realtime;
        definition.source = "a level of the table with an assumption".to_owned();
        for &order in orders {
            definition =
                definition.with(KeyOrders { order, clock_skew, is_read_order: counts_reads(self.rule) });
        }
        let level = definition.level().map_err(|bad| bad.to_string())?;
        known.push((self, orders.to_vec(), clock_skew, level));
        Ok(level)
    }
}

impl Level {
    /// The level without assumptions on keys, and these assumptions.
    pub fn assumed(self) -> (Self, Vec<KeyOrder>) {
        let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        match known.iter().find(|it| it.3 == self && self.own.is_some()) {
            Some((level, orders, ..)) => (*level, orders.clone()),
            None => (self, Vec::new()),
        }
    }
}

/// The module of an assumption.
#[derive(Clone, Copy, Debug)]
struct KeyOrders {
    order: KeyOrder,
    clock_skew: i64,
    /// Whether it is a contradiction that a transaction which saw a version comes after those that overwrote it.
    is_read_order: bool,
}

/// Whether a cycle with one anti-dependency is forbidden.
fn counts_reads(rule: Rule) -> bool {
    matches!(rule, Rule::ConsistentView | Rule::RepeatableRead | Rule::SnapshotIsolation | Rule::Serializable)
}

impl Module for KeyOrders {
    fn name(&self) -> &str {
        match self.order {
            KeyOrder::Sequential => "sequential keys",
            KeyOrder::Linearizable => "linearizable keys",
        }
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        if self.order == KeyOrder::Linearizable && !history.has_client_clocks() {
            return Err(
                "linearizable-keys needs the clients' clocks (`client`), which the history does not have"
                    .to_owned(),
            );
        }
        let touched = Touched::of(history)?;
        let mut keys: Vec<(KeyId, Vec<Touch>)> = touched.by_key.into_iter().collect();
        keys.sort_unstable_by_key(|&(key, _)| key);
        let mut pairs: FxHashSet<(TxnId, TxnId)> = FxHashSet::default();
        for (key, touches) in &keys {
            let neighbours = match self.order {
                KeyOrder::Sequential => in_sessions(history, touches),
                KeyOrder::Linearizable => in_time(history, touches, self.clock_skew),
            };
            for (first, second) in neighbours {
                let left = touched.writers.version(history, *key, first.left)?;
                let found = touched.writers.version(history, *key, second.found)?;
                match (left, found) {
                    (Version::By(left), Version::By(found)) if left != found => {
                        pairs.insert((left, found));
                    }
                    // A later version first and the initial one then: no order of versions has both. The reader of the
                    // initial one precedes the writer; where that does not count, the order itself contradicts itself.
                    (Version::By(left), Version::Initial) if self.is_read_order && left != second.txn => {
                        pairs.insert((left, second.txn));
                    }
                    (Version::By(_), Version::Initial) => {
                        pairs.extend([(first.txn, second.txn), (second.txn, first.txn)]);
                    }
                    _ => {}
                }
            }
        }
        let mut pairs: Vec<(TxnId, TxnId)> = pairs.into_iter().collect();
        pairs.sort_unstable();
        additions.versions.extend(pairs);
        Ok(())
    }
}

/// What a transaction did to a key, seen from outside.
#[derive(Clone, Copy, Debug)]
struct Touch {
    txn: TxnId,
    found: Seen,
    left: Seen,
}

/// A version, as far as the transaction itself shows it.
#[derive(Clone, Copy, Debug)]
enum Seen {
    /// The value that a read returned.
    Read(ValueId, TxnId),
    /// What the transaction wrote.
    Written(TxnId),
}

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Initial,
    By(TxnId),
    /// A value that no transaction wrote which took effect.
    Nowhere,
}

struct Touched {
    by_key: FxHashMap<KeyId, Vec<Touch>>,
    writers: Writers,
}

/// Who wrote what.
#[derive(Default)]
struct Writers {
    /// The writer of a value, and another one if there is one.
    of: FxHashMap<(KeyId, ValueId), (TxnId, Option<TxnId>)>,
}

impl Touched {
    fn of(history: &History) -> Result<Self, String> {
        let mut lists: FxHashSet<KeyId> = FxHashSet::default();
        let mut writers = Writers::default();
        let mut by_key: FxHashMap<KeyId, Vec<Touch>> = FxHashMap::default();
        for txn in history.transactions().filter(|txn| txn.status() != Status::Aborted) {
            let mut own: FxHashMap<KeyId, Touch> = FxHashMap::default();
            for (op, operation) in txn.primitives() {
                match operation {
                    Primitive::Read { key, value, .. } if value.is_known() && txn.is_committed() => {
                        let seen = Seen::Read(value, txn.id());
                        own.entry(key).or_insert(Touch { txn: txn.id(), found: seen, left: seen });
                    }
                    Primitive::Read { .. } => {}
                    Primitive::Write { key, value } => writes(&mut writers, &mut own, &txn, key, value),
                    Primitive::Append { key, .. } => _ = lists.insert(key),
                    Primitive::Show { .. } | Primitive::WriteIf(_) => {
                        return Err(format!(
                            "transaction {}: assumptions on keys are about reads and writes of single keys, not \
                             about {}",
                            txn.name(),
                            history.operation(op).name()
                        ));
                    }
                }
            }
            for (key, touch) in own {
                by_key.entry(key).or_default().push(touch);
            }
        }
        // Lists show the order of their versions themselves.
        by_key.retain(|key, _| !lists.contains(key));
        Ok(Self { by_key, writers })
    }
}

fn writes(
    writers: &mut Writers,
    own: &mut FxHashMap<KeyId, Touch>,
    txn: &Transaction<'_>,
    key: KeyId,
    value: ValueId,
) {
    let seen = Seen::Written(txn.id());
    own.entry(key).or_insert(Touch { txn: txn.id(), found: seen, left: seen }).left = seen;
    let known = writers.of.entry((key, value)).or_insert((txn.id(), None));
    if known.0 != txn.id() {
        known.1 = Some(txn.id());
    }
}

impl Writers {
    /// The version that was seen.
    fn version(&self, history: &History, key: KeyId, seen: Seen) -> Result<Version, String> {
        let (value, reader) = match seen {
            Seen::Written(txn) => return Ok(Version::By(txn)),
            Seen::Read(value, reader) => (value, reader),
        };
        let writers = match self.of.get(&(key, value)) {
            None => [None, None],
            Some(&(one, other)) => [Some(one), other].map(|txn| txn.filter(|&txn| txn != reader)),
        };
        let is_initial = history.initial_value(key) == value;
        match (writers, is_initial) {
            ([None, None], true) => Ok(Version::Initial),
            ([None, None], false) => Ok(Version::Nowhere),
            ([Some(txn), None] | [None, Some(txn)], false) => Ok(Version::By(txn)),
            _ => Err(format!(
                "assumptions on keys need values that are written once: key {} = {} was written more than once, or \
                 was also the initial value",
                history.keys().get(key),
                history.values().show(value)
            )),
        }
    }
}

/// Neighbours in a session. Nothing follows a transaction of unknown outcome.
fn in_sessions(history: &History, touches: &[Touch]) -> Vec<(Touch, Touch)> {
    let mut last: FxHashMap<SessionId, Touch> = FxHashMap::default();
    let mut pairs = Vec::new();
    // Transactions of a session are in its order.
    for &touch in touches {
        let txn = history.transaction(touch.txn);
        if let Some(&before) = last.get(&txn.session()) {
            pairs.push((before, touch));
        }
        if txn.is_committed() {
            last.insert(txn.session(), touch);
        }
    }
    pairs
}

/// Neighbours in real time.
fn in_time(history: &History, touches: &[Touch], clock_skew: i64) -> Vec<(Touch, Touch)> {
    let by_txn: FxHashMap<TxnId, Touch> = touches.iter().map(|&touch| (touch.txn, touch)).collect();
    let transactions = touches.iter().map(|touch| history.transaction(touch.txn));
    let pairs = neighbours_in_time(transactions, clock_skew);
    pairs.into_iter().map(|(first, second)| (by_txn[&first], by_txn[&second])).collect()
}
