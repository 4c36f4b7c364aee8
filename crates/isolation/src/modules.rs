//! Modules: what a level of the user's own adds to every explanation.
//!
//! *What*: a [`Module`] reads a history, most often the `ctx` objects of its transactions, and says which transactions
//! must come before which ([`Additions::before`]), or which order is likely ([`Additions::likely`]). The first count
//! like session order: among the dependencies of the level. The second never change a verdict: a history that they
//! explain is explained, and one that they do not is looked at as if nobody had said anything.
//!
//! *Invariant*: an edge of a module is in every explanation in which both transactions took effect, so the oracle with
//! the same edges among its orders decides the same.
//!
//! The modules here: [`Linearizable`] (per-key guarantees), [`VersionOrders`], [`HappenedBefore`] and
//! [`CommitOrder`], all of which can also be asked for in a file of levels ([`crate::Definition`]).

use crate::levels::Level;
use crate::module::{Additions, Module};
use history::{History, Id, KeyId, NameRef, Status, Transaction, TxnId};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Real-time order between the transactions that touch certain keys: each of these keys is linearizable.
///
/// With serializability below it, this is "serializable overall, linearizable on these keys": the serial order, restricted
/// to the transactions that touch a key, extends the order in which they ended and began.
#[derive(Clone, Debug)]
pub struct Linearizable {
    /// The keys, as they are written.
    pub keys: Vec<String>,
    /// Clients' clocks may differ by this much.
    pub clock_skew: i64,
}

impl Module for Linearizable {
    fn name(&self) -> &str {
        "linearizable"
    }

    fn unmatched(&self, history: &History) -> Vec<String> {
        let all = || history.keys().ids().map(|key| history.keys().get(key));
        let missing = self.keys.iter().filter(|wanted| !all().any(|name| is_named(name, wanted)));
        missing.map(|wanted| format!("no key is called {wanted:?}")).collect()
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        for key in history.keys().ids() {
            let name = history.keys().get(key);
            if self.keys.iter().any(|wanted| is_named(name, wanted)) {
                self.add_key(history, key, additions);
            }
        }
        Ok(())
    }
}

impl Linearizable {
    /// The order of the intervals of those that touch a key. What follows through a third one is left out.
    fn add_key(&self, history: &History, key: KeyId, additions: &mut Additions) {
        let touch = |it: &Transaction<'_>| {
            it.status() != Status::Aborted
                && it.primitives().any(|(_, operation)| touches(history, &operation, key))
        };
        let touching = history.transactions().filter(touch);
        additions.before.extend(neighbours_in_time(touching, self.clock_skew));
    }
}

/// The order of the intervals of some transactions. What follows through a third one is left out; nothing is ordered after a
/// transaction of unknown outcome.
pub fn neighbours_in_time<'h>(
    transactions: impl Iterator<Item = Transaction<'h>>,
    clock_skew: i64,
) -> Vec<(TxnId, TxnId)> {
    let mut spans: Vec<(i64, i64, TxnId)> = Vec::new();
    let mut by_end: Vec<(i64, i64, TxnId)> = Vec::new();
    for transaction in transactions {
        let Some(client) = transaction.client() else { continue };
        let end = client.end.saturating_add(clock_skew);
        spans.push((client.begin, end, transaction.id()));
        if transaction.is_committed() {
            by_end.push((end, client.begin, transaction.id()));
        }
    }
    by_end.sort_unstable();
    let mut latest_begin = Vec::with_capacity(by_end.len());
    let mut latest = i64::MIN;
    for &(_, begin, _) in &by_end {
        latest = latest.max(begin);
        latest_begin.push(latest);
    }
    let mut pairs = Vec::new();
    for &(begin, _, txn) in &spans {
        let count = by_end.partition_point(|&(end, _, _)| end < begin);
        let Some(last) = count.checked_sub(1) else { continue };
        // What ended before another one began that ended before this one began follows through that one.
        let first = by_end[..count].partition_point(|&(end, _, _)| end < latest_begin[last]);
        pairs.extend(by_end[first..count].iter().map(|&(_, _, before)| (before, txn)));
    }
    pairs
}

fn touches(history: &History, operation: &history::Primitive<'_>, key: KeyId) -> bool {
    match operation.key() {
        Some(at) => at == key,
        // A range or a predicate touches every key that it may show.
        None => match operation {
            history::Primitive::Show { area: history::Area::Range { range, .. }, .. } => {
                let place = |key: KeyId| history.keys().get(key);
                range.from.is_none_or(|from| place(from) <= place(key))
                    && range.to.is_none_or(|to| place(key) < place(to))
            }
            _ => true,
        },
    }
}

fn is_named(name: NameRef<'_>, wanted: &str) -> bool {
    match name {
        NameRef::Str(name) => name == wanted,
        other => other.to_string() == wanted,
    }
}

/// The order of versions, from `ctx`: `{"versions":{"x":3}}` says that the transaction wrote version 3 of x.
#[derive(Clone, Debug)]
pub struct VersionOrders {
    /// The field of `ctx`.
    pub field: String,
}

impl Module for VersionOrders {
    fn name(&self) -> &str {
        "version order"
    }

    fn unmatched(&self, history: &History) -> Vec<String> {
        lacking(history, &self.field)
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        let mut by_key: FxHashMap<String, Vec<(Rank, TxnId)>> = FxHashMap::default();
        for (transaction, value) in fields(history, &self.field)? {
            let Value::Object(versions) = value else {
                return Err(wrong(&transaction, &self.field, "an object of keys and version numbers"));
            };
            for (key, version) in versions {
                let rank = Rank::of(&version).ok_or_else(|| {
                    wrong(&transaction, &self.field, "an object of keys and version numbers")
                })?;
                by_key.entry(key).or_default().push((rank, transaction.id()));
            }
        }
        for versions in by_key.values_mut() {
            in_order(versions, &mut additions.before);
        }
        Ok(())
    }
}

/// What a transaction is known to follow, from `ctx`: `{"after":["1:0"]}` names transactions that happened before.
#[derive(Clone, Debug)]
pub struct HappenedBefore {
    /// The field of `ctx`.
    pub field: String,
}

impl Module for HappenedBefore {
    fn name(&self) -> &str {
        "happened before"
    }

    fn unmatched(&self, history: &History) -> Vec<String> {
        lacking(history, &self.field)
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        let mut by_name: FxHashMap<String, TxnId> = FxHashMap::default();
        for transaction in history.transactions() {
            by_name.insert(transaction.name().to_string(), transaction.id());
        }
        for (transaction, value) in fields(history, &self.field)? {
            let Value::Array(names) = value else {
                return Err(wrong(&transaction, &self.field, "a list of transactions' ids"));
            };
            for name in names {
                let name = match name {
                    Value::String(name) => name,
                    other => other.to_string(),
                };
                let before = *by_name.get(&name).ok_or_else(|| {
                    format!(
                        "transaction {}: ctx.{} names {name}, which is none",
                        transaction.name(),
                        self.field
                    )
                })?;
                additions.before.push((before, transaction.id()));
            }
        }
        Ok(())
    }
}

/// The order of commits, from `ctx`: `{"commit":17}`. Trusted, it is in every explanation; else it is where the search
/// begins.
#[derive(Clone, Debug)]
pub struct CommitOrder {
    /// The field of `ctx`.
    pub field: String,
    /// Whether an explanation must keep to it.
    pub trusted: bool,
}

impl Module for CommitOrder {
    fn name(&self) -> &str {
        "commit order"
    }

    fn unmatched(&self, history: &History) -> Vec<String> {
        lacking(history, &self.field)
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        let mut ranks: Vec<(Rank, TxnId)> = Vec::new();
        for (transaction, value) in fields(history, &self.field)? {
            let rank = Rank::of(&value)
                .ok_or_else(|| wrong(&transaction, &self.field, "a number, or a list of numbers"))?;
            ranks.push((rank, transaction.id()));
        }
        if self.trusted {
            in_order(&mut ranks, &mut additions.before);
        } else {
            ranks.sort_unstable();
            additions.likely.extend(ranks.into_iter().map(|(_, txn)| txn));
        }
        Ok(())
    }
}

/// A place in an order: an integer, or several compared from the left (a hybrid clock).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank(Vec<i64>);

impl Rank {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Number(number) => number.as_i64().map(|number| Self(vec![number])),
            Value::Array(parts) => parts.iter().map(Value::as_i64).collect::<Option<_>>().map(Self),
            _ => None,
        }
    }
}

/// Adds that each rank precedes the next higher one; equal ones are not ordered.
fn in_order(ranks: &mut [(Rank, TxnId)], before: &mut Vec<(TxnId, TxnId)>) {
    ranks.sort_unstable();
    let groups: Vec<&[(Rank, TxnId)]> = ranks.chunk_by(|one, other| one.0 == other.0).collect();
    for pair in groups.windows(2) {
        for (_, first) in pair[0] {
            before.extend(pair[1].iter().map(|(_, second)| (*first, *second)));
        }
    }
}

/// The transactions that did not abort and have a field in their `ctx`.
fn fields<'h>(history: &'h History, field: &str) -> Result<Vec<(Transaction<'h>, Value)>, String> {
    let mut found = Vec::new();
    for transaction in history.transactions().filter(|it| it.status() != Status::Aborted) {
        let Some(ctx) = transaction.ctx() else { continue };
        let ctx: Value = serde_json::from_str(ctx)
            .map_err(|error| format!("transaction {}: its ctx: {error}", transaction.name()))?;
        if let Some(value) = ctx.get(field) {
            found.push((transaction, value.clone()));
        }
    }
    Ok(found)
}

/// That no transaction has a field in its `ctx`, if so.
fn lacking(history: &History, field: &str) -> Vec<String> {
    match fields(history, field) {
        Ok(found) if found.is_empty() => vec![format!("no transaction has ctx.{field}")],
        _ => Vec::new(),
    }
}

fn wrong(transaction: &Transaction<'_>, field: &str, expected: &str) -> String {
    format!("transaction {}: ctx.{field} is not {expected}", transaction.name())
}

/// All that the modules of a level add: which transaction comes before which, and which module says so. Nothing follows
/// a transaction of unknown outcome; what it leads to follows what leads to it.
pub fn additions(history: &History, level: Level) -> Result<Vec<(TxnId, TxnId, u32)>, String> {
    let mut edges: Vec<(u32, u32, u32)> = Vec::new();
    let mut versions: Vec<(u32, u32, u32)> = Vec::new();
    for (module, by) in level.modules().iter().zip(0..) {
        let mut additions = Additions::default();
        module.add(history, &mut additions)?;
        let likely = additions.likely.windows(2).map(|pair| (pair[0], pair[1]));
        let before = additions.before.iter().copied().chain(likely.filter(|_| level.is_hinted()));
        for (first, second) in before {
            if first == second || first.index().max(second.index()) >= history.len() {
                return Err(format!("{}: {first:?} and {second:?} are not two transactions", module.name()));
            }
            edges.push((first.0, second.0, by));
        }
        versions.extend(additions.versions.iter().map(|&(first, second)| (first.0, second.0, by)));
    }
    let is_settled = |txn: u32| history.transaction(TxnId(txn)).is_committed();
    let is_unknown = |txn: u32| history.transaction(TxnId(txn)).status() == Status::Unknown;
    let mut all = through(&edges, history.len(), is_settled);
    if edges.iter().any(|&(_, second, _)| is_unknown(second)) {
        // Once more for those that follow and are followed by nothing.
        let onto = through(&edges, history.len(), |txn| is_settled(txn) || is_unknown(txn));
        let last = onto.into_iter().filter(|&(first, second, _)| is_settled(first) && is_unknown(second));
        all.extend(last);
    }
    all.extend(versions);
    Ok(all.into_iter().map(|(first, second, by)| (TxnId(first), TxnId(second), by)).collect())
}

/// Whether some module says what is likely.
pub fn has_hints(history: &History, level: Level) -> bool {
    level.modules().iter().any(|module| {
        let mut additions = Additions::default();
        module.add(history, &mut additions).is_ok() && !additions.likely.is_empty()
    })
}

/// The order of the nodes that are kept, also where it leads through others.
pub fn through(edges: &[(u32, u32, u32)], nodes: usize, keep: impl Fn(u32) -> bool) -> Vec<(u32, u32, u32)> {
    if edges.iter().all(|&(first, second, _)| keep(first) && keep(second)) {
        return edges.to_vec();
    }
    let mut after: FxHashMap<u32, Vec<(u32, u32)>> = FxHashMap::default();
    for &(first, second, by) in edges {
        after.entry(first).or_default().push((second, by));
    }
    let mut found = Vec::new();
    let mut seen = vec![u32::MAX; nodes];
    for first in (0..nodes as u32).filter(|&node| keep(node) && after.contains_key(&node)) {
        let mut work = vec![first];
        while let Some(node) = work.pop() {
            for &(next, by) in after.get(&node).into_iter().flatten() {
                if std::mem::replace(&mut seen[next as usize], first) == first {
                    continue;
                }
                // Nothing comes before itself: such a circle is left to those that are on it.
                if keep(next) && next != first {
                    found.push((first, next, by));
                } else if !keep(next) {
                    work.push(next);
                }
            }
        }
    }
    found
}
