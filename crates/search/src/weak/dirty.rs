//! Read uncommitted: everything read was written by somebody, and writes are not interleaved in circles.
//!
//! *What*: reads may see what never committed and what was half done, so on keys that are only overwritten
//! nothing but a value from nowhere can go wrong: any order of the writers will do. Lists show more. Every
//! content that was read lies in a tree of contents; transactions that took effect lie on one path of it, each whole
//! before anything builds on it; those that did not (ghosts: aborted and unknown ones) may branch off anywhere and
//! may have been left half-way.
//!
//! ```text
//!   [ ] ── A ── [1 2] ── B ── [1 2 5]         A, B took effect: ww A → B → whoever was not seen
//!            └─ g ── [1 2 9]                  g did not
//! ```
//!
//! Scans, iterators and queries saw of every key some content that it ever had; so did predicate writes ([`found`]).
//!
//! *Steps*: collect what was written; look every read up; for lists, put what was read into the tree, one place a
//! transaction; the transactions with effect must form a path; all paths together must be free of cycles.
//!
//! *Why unknown ones are ghosts*: whatever one with effect allows, a ghost in its place allows too.
//! *Cost*: the operations and the elements read. *Source*: Adya 1999 §3.2 (PL-1); Elle §4 for what lists show.

mod found;

use super::cycle;
use crate::contents::Contents;
use crate::decision::Decision;
use crate::lists::normal;
use crate::rows::{Claim, Universe};
use crate::scripts::Seen;
use found::{Answer, Found};
use history::{
    Area, History, Id, KeyId, OpId, Predicate, Primitive, Row, Status, Test, Transaction, TxnId, ValueId,
    ValueRef, WriteIf,
};
use isolation::{Budget, Level, Meter, Ryow, Undecided, Witness, modules};
use rustc_hash::{FxHashMap, FxHashSet};

/// Decides a history.
pub(super) fn decide(history: &History, level: Level, skew: i64, budget: &Budget) -> Decision {
    let written = match Written::of(history) {
        Ok(written) => written,
        Err(what) => return Decision::NotHere(what),
    };
    let known = match Contents::of(history, Ryow::default(), budget) {
        Ok(known) => known,
        Err(why) => return Decision::Open(why),
    };
    let seen = match seen(history, &known, &written, budget) {
        Ok(seen) => seen,
        Err(Unseen::Never(txn)) => return Decision::Impossible(vec![txn]),
        Err(Unseen::NotHere(what)) => return Decision::NotHere(what),
        Err(Unseen::Open(why)) => return Decision::Open(why),
    };
    match explain(history, &known, &written, &seen, budget) {
        Ok(Answer::Explained) => {}
        Ok(Answer::Impossible(ops)) => return Decision::Impossible(found::owners(history, &ops)),
        Err(why) => return Decision::Open(why),
    }
    let meter = budget.meter();
    let mut lists: FxHashMap<KeyId, Tree> = FxHashMap::default();
    for &(op, key, value) in &seen.lists {
        if let Err(why) = meter.steps(1 + history.values_of(value).len()) {
            return Decision::Open(why);
        }
        let tree = lists.entry(key).or_insert_with(|| Tree::new(written.initial_list(history, key)));
        if let Err(mut core) = tree.insert(history, &written, key, value) {
            core.push(history.owner(op));
            return Decision::Impossible(core);
        }
    }
    let clocks = Clocks::of(history, level, skew);
    let mut edges = orders(history, level);
    edges.extend(clocks.edges(history));
    if let Some(why) = budget.exhausted() {
        return Decision::Open(why);
    }
    for (&key, tree) in &lists {
        match tree.path(history) {
            Ok(path) => written.add_edges(history, key, &path, &mut edges),
            Err(core) => return Decision::Impossible(with_readers(history, key, core)),
        }
    }
    match cycle::sort(history.len() + clocks.ends.len(), || edges.iter().copied()) {
        Ok(_) => Decision::Possible(Witness::default()),
        Err(cycle) => {
            let txns = cycle.into_iter().filter(|&node| (node as usize) < history.len());
            let mut core: Vec<TxnId> = txns.map(TxnId).collect();
            for &key in lists.keys() {
                core = with_readers(history, key, core);
            }
            Decision::Impossible(core)
        }
    }
}

/// The first operation of a transaction, on one key or many, that saw what nobody wrote. Lists are not looked at.
pub fn from_nowhere(history: &History, txn: TxnId) -> Option<OpId> {
    let written = Written::of(history).ok()?;
    let budget = Budget::unlimited();
    let known = Contents::of(history, Ryow::default(), &budget).ok()?;
    let seen = seen(history, &known, &written, &budget).ok()?;
    if written.by_predicate {
        let found = Found::of(history, &known, &written, &seen.singles, &budget).ok()?;
        return found.unmet(|op| history.owner(op) == txn).ok()?;
    }
    let ever = Ever::of(&known, &written, &seen);
    let of_txn = seen.singles.iter().filter(|(_, it)| history.owner(it.op()) == txn);
    of_txn.filter(|(key, it)| !ever.held(*key, it)).map(|(_, it)| it.op()).min()
}

/// What was seen, key by key.
#[derive(Default)]
struct AllSeen<'h> {
    lists: Vec<(OpId, KeyId, ValueId)>,
    singles: Vec<(KeyId, Seen<'h>)>,
}

/// Why there is nothing to look up.
enum Unseen {
    /// No store returns such rows, whatever it holds.
    Never(TxnId),
    NotHere(String),
    Open(Undecided),
}

impl From<Undecided> for Unseen {
    fn from(why: Undecided) -> Self {
        Self::Open(why)
    }
}

/// What transactions with effect saw.
fn seen<'h>(
    history: &'h History,
    known: &Contents<'h>,
    written: &Written,
    budget: &Budget,
) -> Result<AllSeen<'h>, Unseen> {
    let universe = Universe::of(history, known, true, budget)?;
    let meter = budget.meter();
    let mut all = AllSeen::default();
    for transaction in history.transactions().filter(|it| it.status() == Status::Committed) {
        for (op, operation) in transaction.primitives() {
            meter.step()?;
            if let Primitive::Read { key, value, .. } = operation {
                let value = normal(history, value);
                match written.is_list(key) {
                    _ if !value.is_known() => {}
                    true => all.lists.push((op, key, value)),
                    false => all.singles.push((key, Seen::Value { op, value })),
                }
            } else if let Some(universe) = &universe {
                let many = Many { history, known, universe, meter: &meter };
                let shown = many.shown(op, &operation)?.ok_or(Unseen::Never(transaction.id()))?;
                if let Some((key, _)) = shown.iter().find(|(key, _)| written.is_list(*key)) {
                    let what = "is appended to and read together with others";
                    return Err(Unseen::NotHere(refusal(history, *key, what)));
                }
                meter.steps(shown.len())?;
                all.singles.extend(shown);
            }
        }
    }
    Ok(all)
}

/// Whether everything that was seen of keys that are no lists was there at some time.
fn explain<'h>(
    history: &'h History,
    known: &Contents<'h>,
    written: &Written,
    seen: &AllSeen<'h>,
    budget: &Budget,
) -> Result<Answer, Undecided> {
    if written.by_predicate {
        return Found::of(history, known, written, &seen.singles, budget)?.explain();
    }
    let ever = Ever::of(known, written, seen);
    let meter = budget.meter();
    for (key, it) in &seen.singles {
        meter.steps(1 + ever.count(*key, it))?;
        if !ever.held(*key, it) {
            return Ok(Answer::Impossible(vec![it.op()]));
        }
    }
    Ok(Answer::Explained)
}

/// What keys ever held, where nobody writes by predicate.
struct Ever<'a, 'h> {
    known: &'a Contents<'h>,
    written: &'a Written,
    /// By key, where somebody asked for more than a value.
    of_key: FxHashMap<KeyId, Vec<ValueId>>,
}

impl<'a, 'h> Ever<'a, 'h> {
    fn of(known: &'a Contents<'h>, written: &'a Written, seen: &AllSeen<'h>) -> Self {
        let mut of_key: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        if seen.singles.iter().any(|(_, it)| !matches!(it, Seen::Value { .. })) {
            for &(key, value) in &written.values {
                of_key.entry(key).or_default().push(value);
            }
        }
        Self { known, written, of_key }
    }

    /// How many contents are looked at.
    fn count(&self, key: KeyId, seen: &Seen<'h>) -> usize {
        match seen {
            Seen::Value { .. } => 1,
            _ => self.of_key.get(&key).map_or(0, Vec::len),
        }
    }

    fn held(&self, key: KeyId, seen: &Seen<'h>) -> bool {
        match *seen {
            Seen::Value { value, .. } => self.written.values.contains(&(key, value)),
            _ => {
                let contents = self.of_key.get(&key).into_iter().flatten();
                contents.into_iter().any(|&content| seen.accepts(self.known, content))
            }
        }
    }
}

/// What operations on many keys saw.
struct Many<'a, 'h> {
    history: &'h History,
    known: &'a Contents<'h>,
    universe: &'a Universe,
    meter: &'a Meter<'a>,
}

/// What an operation says of each key; `None`: no store returns that.
type Shown<'h> = Result<Option<Vec<(KeyId, Seen<'h>)>>, Undecided>;

impl<'h> Many<'_, 'h> {
    /// What an operation says of each key; `None`: no store returns that.
    fn shown(&self, op: OpId, operation: &Primitive<'h>) -> Shown<'h> {
        match *operation {
            Primitive::Show { area: Area::Range { range, reverse, to_the_end }, rows: Some(rows) } => {
                let visited = self.universe.visited(range, reverse, to_the_end, rows);
                Ok(visited.map(|visited| self.of_range(op, visited)))
            }
            Primitive::Show { area: Area::Where(predicate), rows: Some(rows) } => {
                self.of_query(op, predicate, rows)
            }
            Primitive::WriteIf(write @ WriteIf { keys: Some(keys), .. }) => self.of_write(op, &write, keys),
            _ => Ok(Some(Vec::new())),
        }
    }

    fn of_range(&self, op: OpId, visited: Vec<(KeyId, ValueId)>) -> Vec<(KeyId, Seen<'h>)> {
        let present = Seen::Claim(Claim { test: Test::Present, truth: true, op });
        let seen = |value: ValueId| match value.is_known() {
            true => Seen::Value { op, value: normal(self.history, value) },
            false => present,
        };
        visited.into_iter().map(|(key, value)| (key, seen(value))).collect()
    }

    fn of_query(&self, op: OpId, predicate: &'h Predicate, rows: &[Row]) -> Shown<'h> {
        let Some(keys) = distinct(rows.iter().map(|row| row.key)) else { return Ok(None) };
        let mut all = Vec::new();
        let keys = keys.into_iter();
        for key in self.universe.concerned(self.history, self.known, predicate, keys, self.meter)? {
            self.meter.steps(1 + rows.len())?;
            let row = rows.iter().find(|row| row.key == key);
            let value = row.map_or(ValueId::ABSENT, |row| normal(self.history, row.value));
            let claim = |truth| Seen::Claim(Claim { test: Test::Where(predicate), truth, op });
            let seen = match value {
                ValueId::ABSENT => claim(false),
                value if !value.is_known() => claim(true),
                value if self.known.holds(Test::Where(predicate), value) => Seen::Value { op, value },
                _ => return Ok(None),
            };
            all.push((key, seen));
        }
        Ok(Some(all))
    }

    /// A predicate write that reported its keys.
    fn of_write(&self, op: OpId, write: &WriteIf<'h>, keys: &[KeyId]) -> Shown<'h> {
        let WriteIf { key, test, count, .. } = *write;
        let Some(sorted) = distinct(keys.iter().copied()) else { return Ok(None) };
        if count.is_some_and(|count| count != keys.len() as u64) {
            return Ok(None);
        }
        let named = sorted.iter().copied();
        let concerned = match (key, test) {
            (Some(key), _) => vec![key],
            (None, Test::Where(predicate)) => {
                self.universe.concerned(self.history, self.known, predicate, named, self.meter)?
            }
            (None, _) => self.history.keys().ids().collect(),
        };
        let claim = |key: &KeyId| {
            let truth = sorted.binary_search(key).is_ok();
            Seen::Found(Claim { test, truth, op })
        };
        Ok(Some(concerned.iter().map(|key| (*key, claim(key))).collect()))
    }
}

/// Keys, ascending; `None` if one is there twice.
fn distinct(keys: impl Iterator<Item = KeyId>) -> Option<Vec<KeyId>> {
    let mut keys: Vec<KeyId> = keys.collect();
    keys.sort_unstable();
    keys.windows(2).all(|pair| pair[0] != pair[1]).then_some(keys)
}

/// The orders that count: between transactions with effect.
fn orders(history: &History, level: Level) -> Vec<(u32, u32)> {
    let added = modules::additions(history, level).unwrap_or_default();
    let is_in = |txn: TxnId| history.transaction(txn).is_committed();
    let added = added.into_iter().filter(|&(first, second, _)| is_in(first) && is_in(second));
    let mut edges: Vec<(u32, u32)> = added.map(|(first, second, _)| (first.0, second.0)).collect();
    let mut last: Vec<Option<TxnId>> = vec![None; history.sessions().len()];
    for transaction in history.transactions().filter(|it| level.session && it.is_committed()) {
        let last = &mut last[transaction.session().index()];
        edges.extend(last.map(|last| (last.0, transaction.id().0)));
        *last = Some(transaction.id());
    }
    edges
}

/// Real-time order in linear space: a node for each end, after the transactions, in the order of time.
struct Clocks {
    /// When transactions with effect ended, ascending.
    ends: Vec<(i64, TxnId)>,
}

impl Clocks {
    fn of(history: &History, level: Level, skew: i64) -> Self {
        let committed = history.transactions().filter(|it| level.realtime && it.is_committed());
        let end = |it: Transaction<'_>| Some((it.client()?.end.saturating_add(skew), it.id()));
        let mut ends: Vec<(i64, TxnId)> = committed.filter_map(end).collect();
        ends.sort_unstable();
        Self { ends }
    }

    /// From each transaction to its end, from end to end, and from the last end before a begin to the transaction.
    fn edges(&self, history: &History) -> Vec<(u32, u32)> {
        let node = |rank: usize| (history.len() + rank) as u32;
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (rank, &(_, txn)) in self.ends.iter().enumerate() {
            edges.push((txn.0, node(rank)));
            edges.extend(rank.checked_sub(1).map(|before| (node(before), node(rank))));
            let begin = history.transaction(txn).client().map_or(i64::MIN, |span| span.begin);
            let ended = self.ends.partition_point(|&(end, _)| end < begin);
            edges.extend(ended.checked_sub(1).map(|last| (node(last), txn.0)));
        }
        edges
    }
}

/// The transactions, and those with effect that read a key.
fn with_readers(history: &History, key: KeyId, mut core: Vec<TxnId>) -> Vec<TxnId> {
    let reads = |operation: Primitive<'_>| matches!(operation, Primitive::Read { key: at, .. } if at == key);
    let readers = history.transactions().filter(|it| it.is_committed());
    core.extend(
        readers.filter(|it| it.primitives().any(|(_, operation)| reads(operation))).map(|it| it.id()),
    );
    core
}

/// One appended element.
#[derive(Clone, Copy)]
struct Append {
    txn: TxnId,
    /// Its place among the transaction's appends to the key.
    place: u32,
}

/// Everything that anybody wrote.
struct Written {
    /// Values of keys that are overwritten, the initial ones included.
    values: FxHashSet<(KeyId, ValueId)>,
    appends: FxHashMap<(KeyId, ValueId), Append>,
    /// How often each transaction appended to a key.
    counts: FxHashMap<(KeyId, TxnId), u32>,
    /// Who appended to each list, with effect or not.
    lists: FxHashMap<KeyId, Vec<TxnId>>,
    /// Whether somebody writes by predicate.
    by_predicate: bool,
}

impl Written {
    fn of(history: &History) -> Result<Self, String> {
        let mut it = Self {
            values: FxHashSet::default(),
            appends: FxHashMap::default(),
            counts: FxHashMap::default(),
            lists: FxHashMap::default(),
            by_predicate: false,
        };
        let mut overwritten: FxHashSet<KeyId> = FxHashSet::default();
        for transaction in history.transactions() {
            for (_, operation) in transaction.primitives() {
                match operation {
                    Primitive::Read { .. } | Primitive::Show { .. } => {}
                    Primitive::Write { key, value } => {
                        it.values.insert((key, normal(history, value)));
                        overwritten.insert(key);
                    }
                    Primitive::Append { key, value } => {
                        let count = it.counts.entry((key, transaction.id())).or_default();
                        if *count == 0 {
                            it.lists.entry(key).or_default().push(transaction.id());
                        }
                        let append = Append { txn: transaction.id(), place: *count };
                        *count += 1;
                        if it.appends.insert((key, value), append).is_some() {
                            return Err(refusal(history, key, "has an element that is appended twice"));
                        }
                    }
                    Primitive::WriteIf(WriteIf { key, .. }) => {
                        it.by_predicate = true;
                        overwritten.extend(key);
                    }
                }
            }
        }
        for key in history.keys().ids() {
            let initial = normal(history, history.initial_value(key));
            it.values.insert((key, initial));
            if !it.lists.contains_key(&key) {
                continue;
            }
            if it.by_predicate {
                return Err(refusal(history, key, "is appended to beside writes by predicate"));
            }
            if overwritten.contains(&key) {
                return Err(refusal(history, key, "is both appended to and overwritten"));
            }
            let Some(elements) = elements(history, initial) else {
                return Err(refusal(history, key, "starts as a scalar and is appended to"));
            };
            if elements.iter().any(|&element| it.appends.contains_key(&(key, element))) {
                return Err(refusal(history, key, "has an element that is appended twice"));
            }
        }
        Ok(it)
    }

    fn is_list(&self, key: KeyId) -> bool {
        self.lists.contains_key(&key)
    }

    fn initial_list<'h>(&self, history: &'h History, key: KeyId) -> &'h [ValueId] {
        elements(history, normal(history, history.initial_value(key))).unwrap_or_default()
    }

    /// The order that a path shows, then everybody who was not seen.
    fn add_edges(&self, history: &History, key: KeyId, path: &[TxnId], edges: &mut Vec<(u32, u32)>) {
        edges.extend(path.windows(2).map(|pair| (pair[0].0, pair[1].0)));
        let Some(&last) = path.last() else { return };
        let on_path: FxHashSet<TxnId> = path.iter().copied().collect();
        let appenders = self.lists.get(&key).into_iter().flatten().copied();
        let unseen =
            appenders.filter(|txn| history.transaction(*txn).is_committed() && !on_path.contains(txn));
        edges.extend(unseen.map(|txn| (last.0, txn.0)));
    }
}

fn refusal(history: &History, key: KeyId, what: &str) -> String {
    format!("key {} {what}", history.keys().get(key))
}

fn elements(history: &History, value: ValueId) -> Option<&[ValueId]> {
    match history.values().get(value) {
        ValueRef::Null => Some(&[]),
        ValueRef::List(elements) => Some(elements),
        _ => None,
    }
}

/// A content; 0 is the initial one.
type Node = u32;

/// The contents of one list key that were seen.
struct Tree<'h> {
    initial: &'h [ValueId],
    next: FxHashMap<(Node, ValueId), Node>,
    /// For each content: how long it is, and the last transaction with effect in it.
    last: Vec<Option<TxnId>>,
    /// What each transaction builds on, in the order they were met.
    bases: Vec<(TxnId, Node)>,
    place: FxHashMap<TxnId, usize>,
    /// The longest list so far: nearly all others are beginnings of it.
    longest: &'h [ValueId],
}

impl<'h> Tree<'h> {
    fn new(initial: &'h [ValueId]) -> Self {
        Self {
            initial,
            next: FxHashMap::default(),
            last: vec![None],
            bases: Vec::new(),
            place: FxHashMap::default(),
            longest: initial,
        }
    }

    /// Adds a list that was read. `Err`: it cannot be, because of these transactions.
    fn insert(
        &mut self,
        history: &'h History,
        written: &Written,
        key: KeyId,
        value: ValueId,
    ) -> Result<(), Vec<TxnId>> {
        let Some(list) = elements(history, value) else { return Err(Vec::new()) };
        let start = self.initial.len();
        if list.len() < start || list[..start] != *self.initial {
            return Err(Vec::new());
        }
        if self.longest.starts_with(list) {
            return Ok(());
        }
        let mut node = 0;
        let mut run: Option<Append> = None;
        let mut met: FxHashSet<TxnId> = FxHashSet::default();
        for &element in &list[start..] {
            let Some(&append) = written.appends.get(&(key, element)) else { return Err(Vec::new()) };
            let goes_on = run.is_some_and(|run| run.txn == append.txn && run.place + 1 == append.place);
            if !goes_on {
                let whole = run.is_none_or(|run| {
                    let is_ghost = !history.transaction(run.txn).is_committed();
                    is_ghost || written.counts[&(key, run.txn)] == run.place + 1
                });
                if !whole || append.place != 0 || !met.insert(append.txn) {
                    return Err([Some(append), run].into_iter().flatten().map(|it| it.txn).collect());
                }
                self.build_on(append.txn, node)?;
            }
            node = self.step(history, node, element, append.txn);
            run = Some(append);
        }
        if list.len() > self.longest.len() {
            self.longest = list;
        }
        Ok(())
    }

    /// A transaction builds on one content only.
    fn build_on(&mut self, txn: TxnId, node: Node) -> Result<(), Vec<TxnId>> {
        match self.place.get(&txn) {
            Some(&place) if self.bases[place].1 == node => Ok(()),
            Some(_) => Err(self.bases.iter().map(|&(txn, _)| txn).collect()),
            None => {
                self.place.insert(txn, self.bases.len());
                self.bases.push((txn, node));
                Ok(())
            }
        }
    }

    fn step(&mut self, history: &History, node: Node, element: ValueId, txn: TxnId) -> Node {
        let new = self.last.len() as Node;
        let next = *self.next.entry((node, element)).or_insert(new);
        if next == new {
            let is_ghost = !history.transaction(txn).is_committed();
            self.last.push(if is_ghost { self.last[node as usize] } else { Some(txn) });
        }
        next
    }

    /// The transactions with effect, in order. `Err`: they branch.
    fn path(&self, history: &History) -> Result<Vec<TxnId>, Vec<TxnId>> {
        let mut after: FxHashMap<Option<TxnId>, TxnId> = FxHashMap::default();
        let with_effect = self.bases.iter().filter(|(txn, _)| history.transaction(*txn).is_committed());
        for &(txn, base) in with_effect {
            let before = self.last[base as usize];
            if let Some(other) = after.insert(before, txn) {
                return Err(before.into_iter().chain([other, txn]).collect());
            }
        }
        let mut path = Vec::with_capacity(after.len());
        let mut at = after.get(&None);
        while let Some(&txn) = at {
            path.push(txn);
            at = after.get(&Some(txn));
        }
        Ok(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    fn check(text: &str, accepted: bool) {
        let history = notation::parse(text).expect("the notation is right");
        let level = Level::parse("RU").expect("a name of the table");
        assert_eq!(
            matches!(decide(&history, level, 0, &Budget::unlimited()), Decision::Possible(_)),
            accepted,
            "{text}"
        );
    }

    #[test]
    fn values_come_from_somebody() {
        check("a: w(x,1)!\nb: r(x,1)\n", true);
        check("a: w(x,1) w(x,2)\nb: r(x,1)\n", true);
        check("a: w(x,1)\nb: r(x,2)\n", false);
    }

    #[test]
    fn ranges_and_predicates_show_what_was_ever_there() {
        check("a: w(x,1)! | w(y,2)\nb: scan(x..z)=[x:1] | q(value>0)=[x:1 y:2]\n", true);
        check("a: w(x,1)\nb: scan(x..z)=[x:2]\n", false);
        check("init: x=1\na: w(x,2)\nb: q(value=1)=[x:1] | q(value=2)=[]\n", true);
        // It was never gone.
        check("init: x=1\na: w(x,2)\nb: scan(w..z)=[]\n", false);
        check("init: x=1\na: d(x)!\nb: scan(w..z)=[]\n", true);
    }

    #[test]
    fn lists_show_the_order_of_what_took_effect() {
        check("a: a(x,1) a(x,2)\nb: a(x,3)\nc: r(x,[1 2 3]) r(x,[1])\n", true);
        // b builds on half of a.
        check("a: a(x,1) a(x,2)\nb: a(x,3)\nc: r(x,[1 3])\n", false);
        check("a: a(x,1) a(x,2)!\nb: a(x,3)\nc: r(x,[1 3])\n", true);
        // Two that took effect branch.
        check("a: a(x,1)\nb: a(x,2)\nc: r(x,[1]) r(x,[2])\n", false);
        check("a: a(x,1)!\nb: a(x,2)\nc: r(x,[1]) r(x,[2])\n", true);
        // a before b on x, b before a on y.
        check("a: a(x,1) a(y,1)\nb: a(x,2) a(y,2)\nc: r(x,[1 2]) r(y,[2 1])\n", false);
    }
}
