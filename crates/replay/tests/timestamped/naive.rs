//! The definition, executed: one map of the whole database, starts and commits one after the other.
//!
//! Shares nothing with the checker but the words. Works on sketches, with owned names and values; the
//! state is a plain map that is copied whenever that is simpler.

use history::{Name, Status, Timestamp};
use oracle::tiny::{Condition, Datum, Rows, Sketch, SketchOp, SketchTxn};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use taipan_replay::Axiom;

/// A violation, with transactions as places in the sketch and operations as places in the transaction.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) axiom: Axiom,
    pub(crate) txn: usize,
    pub(crate) op: Option<usize>,
    pub(crate) key: Option<Name>,
    pub(crate) other: Option<usize>,
    pub(crate) expected: String,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) serial: bool,
    pub(crate) session: bool,
    pub(crate) realtime: bool,
}

type State = BTreeMap<Name, Datum>;

#[derive(Clone, Debug)]
pub(crate) enum Effect {
    Set(Datum),
    Append(Vec<Datum>),
}

pub(crate) type Effects = BTreeMap<Name, Effect>;

/// Nothing and the empty list are the same.
pub(crate) fn normal(datum: &Datum) -> Datum {
    match datum {
        Datum::List(elements) if elements.is_empty() => Datum::Absent,
        other => other.clone(),
    }
}

/// A value in words, independent of the order of columns.
pub(crate) fn show(datum: &Datum) -> String {
    match normal(datum) {
        Datum::Row(mut cells) => {
            cells.sort_by(|a, b| a.0.cmp(&b.0));
            format!("{cells:?}")
        }
        Datum::List(elements) => elements.iter().map(show).collect::<Vec<_>>().join(" "),
        other => format!("{other:?}"),
    }
}

fn appended(base: &Datum, more: &[Datum]) -> Datum {
    let mut elements = match base {
        Datum::Absent => vec![],
        Datum::List(elements) => elements.clone(),
        single => vec![single.clone()],
    };
    elements.extend_from_slice(more);
    normal(&Datum::List(elements))
}

fn get(state: &State, key: &Name) -> Datum {
    state.get(key).cloned().unwrap_or(Datum::Absent)
}

fn over(effects: &Effects, state: &State, key: &Name) -> Datum {
    match effects.get(key) {
        None => get(state, key),
        Some(Effect::Set(datum)) => normal(datum),
        Some(Effect::Append(more)) => appended(&get(state, key), more),
    }
}

pub(crate) fn apply(state: &mut State, effects: &Effects) {
    for key in effects.keys() {
        let datum = over(effects, state, key);
        if datum == Datum::Absent {
            state.remove(key);
        } else {
            state.insert(key.clone(), datum);
        }
    }
}

fn column(datum: &Datum, name: &str) -> Option<Datum> {
    match datum {
        Datum::Row(cells) => cells
            .iter()
            .find(|(column, _)| column == name)
            .map(|(_, value)| value.clone())
            .filter(|value| *value != Datum::Absent),
        other => (name == "value").then(|| other.clone()),
    }
}

fn compare(a: &Datum, b: &Datum) -> Option<Ordering> {
    match (a, b) {
        (Datum::Int(a), Datum::Int(b)) => Some(a.cmp(b)),
        (Datum::Bool(a), Datum::Bool(b)) => Some(a.cmp(b)),
        (Datum::Text(a), Datum::Text(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

pub(crate) fn holds(condition: &Condition, datum: &Datum) -> bool {
    if matches!(datum, Datum::Absent | Datum::Unknown) {
        return false;
    }
    condition.holds_if(&|name, with, constant| {
        let found = column(datum, name);
        found.is_some_and(|found| with.holds(found == *constant, || compare(&found, constant)))
    })
}

/// All keys that the sketch mentions.
pub(crate) fn all_keys(sketch: &Sketch) -> Vec<Name> {
    let mut keys: Vec<Name> = sketch.initial.iter().map(|(key, _)| key.clone()).collect();
    let rows =
        |rows: &Option<Rows>| -> Vec<Name> { rows.iter().flatten().map(|(key, _)| key.clone()).collect() };
    for op in sketch.transactions.iter().flat_map(|txn| &txn.ops) {
        match op {
            SketchOp::Read { key, .. }
            | SketchOp::Write { key, .. }
            | SketchOp::Delete { key }
            | SketchOp::Append { key, .. }
            | SketchOp::Cas { key, .. } => keys.push(key.clone()),
            SketchOp::Scan { from, to, rows: seen } | SketchOp::Iterate { from, to, rows: seen, .. } => {
                keys.extend(from.iter().chain(to).cloned());
                keys.extend(rows(seen));
            }
            SketchOp::Query { rows: seen, .. } => keys.extend(rows(seen)),
            SketchOp::Update { keys: seen, .. } | SketchOp::DeleteWhere { keys: seen, .. } => {
                keys.extend(seen.iter().flatten().cloned());
            }
        }
    }
    keys.sort();
    keys.dedup();
    keys
}

/// One transaction on a snapshot.
pub(crate) struct Run<'s> {
    pub(crate) keys: &'s [Name],
    pub(crate) state: &'s State,
    pub(crate) own: Effects,
    outside: BTreeMap<Name, Datum>,
    /// Axiom, operation, key, what was expected, and whether the version's writer is to be named.
    pub(crate) told: Vec<(Axiom, usize, Option<Name>, String, bool)>,
}

impl<'s> Run<'s> {
    pub(crate) fn new(keys: &'s [Name], state: &'s State) -> Self {
        Self { keys, state, own: Effects::new(), outside: BTreeMap::new(), told: Vec::new() }
    }

    pub(crate) fn all(mut self, txn: &SketchTxn) -> Self {
        for (place, op) in txn.ops.iter().enumerate() {
            self.step(place, op);
        }
        self
    }

    pub(crate) fn view(&self, key: &Name) -> Datum {
        over(&self.own, self.state, key)
    }

    /// The keys between two bounds.
    pub(crate) fn range(&self, from: &Option<Name>, to: &Option<Name>) -> Vec<Name> {
        let inside = |key: &&Name| {
            from.as_ref().is_none_or(|from| *key >= from) && to.as_ref().is_none_or(|to| *key < to)
        };
        self.keys.iter().filter(inside).cloned().collect()
    }

    pub(crate) fn matching(&self, condition: &Condition) -> Vec<Name> {
        self.keys.iter().filter(|key| holds(condition, &self.view(key))).cloned().collect()
    }

    pub(crate) fn set(&mut self, key: &Name, datum: Datum) {
        self.own.insert(key.clone(), Effect::Set(datum));
    }

    fn tell(&mut self, axiom: Axiom, op: usize, key: &Name, expected: &Datum, name_writer: bool) {
        self.told.push((axiom, op, Some(key.clone()), show(expected), name_writer));
    }

    pub(crate) fn step(&mut self, place: usize, op: &SketchOp) {
        match op {
            SketchOp::Read { value: Datum::Unknown, .. } => {}
            SketchOp::Read { key, value, .. } => self.read(place, key, &normal(value)),
            SketchOp::Write { key, value } => self.set(key, value.clone()),
            SketchOp::Delete { key } => self.set(key, Datum::Absent),
            SketchOp::Append { key, value } => match self.own.get_mut(key) {
                None => {
                    self.own.insert(key.clone(), Effect::Append(vec![value.clone()]));
                }
                Some(Effect::Append(more)) => more.push(value.clone()),
                Some(Effect::Set(datum)) => *datum = appended(&normal(datum), std::slice::from_ref(value)),
            },
            SketchOp::Scan { from, to, rows: Some(rows) } => {
                let keys = self.range(from, to);
                self.order(place, rows, false);
                self.rows(place, &keys, rows, |_| true);
            }
            SketchOp::Iterate { from, to, reverse, exhausted, rows: Some(rows) } => {
                let mut keys = self.range(from, to);
                let first = rows.iter().map(|(key, _)| key).min();
                let last = rows.iter().map(|(key, _)| key).max();
                if !exhausted {
                    keys.retain(|key| match reverse {
                        true => first.is_some_and(|first| key >= first),
                        false => last.is_some_and(|last| key <= last),
                    });
                }
                self.order(place, rows, *reverse);
                self.rows(place, &keys, rows, |_| true);
            }
            SketchOp::Query { condition, rows: Some(rows) } => {
                let keys = self.keys.to_vec();
                self.twice(place, rows);
                self.rows(place, &keys, rows, |datum| holds(condition, datum));
            }
            SketchOp::Cas { key, expect, write, ok } => {
                let (found, wanted) = (normal(&self.view(key)), normal(expect));
                let holds = found == wanted;
                if ok.is_some_and(|ok| ok != holds) {
                    self.tell(Axiom::External, place, key, &found, true);
                }
                if ok.unwrap_or(holds) {
                    self.set(key, write.clone());
                }
            }
            SketchOp::Update { condition, set, count, keys } => {
                self.write_where(place, condition, set.clone(), count, keys);
            }
            SketchOp::DeleteWhere { condition, count, keys } => {
                self.write_where(place, condition, Datum::Absent, count, keys);
            }
            _ => {}
        }
    }

    fn read(&mut self, place: usize, key: &Name, seen: &Datum) {
        let mut outside = seen.clone();
        let mut more = vec![];
        match self.own.get(key) {
            None => {}
            Some(Effect::Set(datum)) => {
                let expected = normal(datum);
                if expected != *seen {
                    self.tell(Axiom::Internal, place, key, &expected, false);
                }
                return;
            }
            Some(Effect::Append(own)) => {
                more = own.clone();
                let before = match seen {
                    Datum::List(elements) => elements.strip_suffix(more.as_slice()),
                    _ => None,
                };
                let Some(before) = before else {
                    let first = self.outside.get(key).cloned();
                    let known = first.is_some();
                    let expected = appended(&first.unwrap_or(get(self.state, key)), &more);
                    self.tell(Axiom::Internal, place, key, &expected, !known);
                    return;
                };
                outside = normal(&Datum::List(before.to_vec()));
            }
        }
        // A scalar under appends looks like a list of one.
        let grown = |datum: &Datum| if more.is_empty() { datum.clone() } else { appended(datum, &more) };
        let same = |datum: &Datum| match more.is_empty() {
            true => *datum == outside,
            false => appended(datum, &[]) == outside,
        };
        match self.outside.get(key).cloned() {
            Some(first) if !same(&first) => {
                self.tell(Axiom::Internal, place, key, &grown(&first), false);
            }
            Some(_) => {}
            None => {
                let expected = get(self.state, key);
                if !same(&expected) {
                    self.tell(Axiom::External, place, key, &grown(&expected), true);
                }
                self.outside.insert(key.clone(), outside);
            }
        }
    }

    fn twice(&mut self, place: usize, rows: &Rows) {
        for (index, (key, _)) in rows.iter().enumerate() {
            if rows[..index].iter().any(|(other, _)| other == key) {
                self.tell(Axiom::Internal, place, key, &Datum::Absent, false);
            }
        }
    }

    fn order(&mut self, place: usize, rows: &Rows, reverse: bool) {
        for (index, (key, _)) in rows.iter().enumerate() {
            let again = rows[..index].iter().any(|(other, _)| other == key);
            let astray = index > 0
                && match reverse {
                    false => rows[index - 1].0 > *key,
                    true => rows[index - 1].0 < *key,
                };
            if again || astray {
                self.tell(Axiom::Internal, place, key, &Datum::Absent, false);
            }
        }
    }

    fn rows(&mut self, place: usize, keys: &[Name], rows: &Rows, wanted: impl Fn(&Datum) -> bool) {
        for key in keys {
            let view = self.view(key);
            let expected = if wanted(&view) { view } else { Datum::Absent };
            // Of rows with the same key, the last counts.
            let seen = rows.iter().rfind(|(other, _)| other == key).map(|(_, datum)| normal(datum));
            let fits = match seen.unwrap_or(Datum::Absent) {
                Datum::Unknown => expected != Datum::Absent,
                seen => seen == expected,
            };
            if !fits {
                let own = matches!(self.own.get(key), Some(Effect::Set(_)));
                let axiom = if own { Axiom::Internal } else { Axiom::External };
                self.tell(axiom, place, key, &expected, !own);
            }
        }
        let mut astray: Vec<&Name> =
            rows.iter().map(|(key, _)| key).filter(|key| !keys.contains(key)).collect();
        astray.sort();
        astray.dedup();
        for key in astray {
            self.tell(Axiom::External, place, key, &Datum::Absent, false);
        }
    }

    fn write_where(
        &mut self,
        place: usize,
        condition: &Condition,
        set: Datum,
        count: &Option<u64>,
        reported: &Option<Vec<Name>>,
    ) {
        let matching = self.matching(condition);
        if count.is_some_and(|count| count != matching.len() as u64) {
            self.told.push((Axiom::External, place, None, matching.len().to_string(), false));
        }
        if let Some(reported) = reported {
            for key in self.keys {
                let view = self.view(key);
                match (matching.contains(key), reported.contains(key)) {
                    (true, false) => self.tell(Axiom::External, place, key, &view, true),
                    (false, true) => self.tell(Axiom::External, place, key, &Datum::Absent, true),
                    _ => {}
                }
            }
        }
        for key in reported.as_ref().unwrap_or(&matching) {
            self.set(key, set.clone());
        }
    }
}

/// A transaction that is replayed.
pub(crate) struct Timed {
    pub(crate) txn: usize,
    pub(crate) start: Timestamp,
    pub(crate) commit: Timestamp,
    position: usize,
}

pub(crate) fn is_read_only(txn: &SketchTxn) -> bool {
    txn.ops.iter().all(|op| {
        matches!(
            op,
            SketchOp::Read { .. } | SketchOp::Scan { .. } | SketchOp::Iterate { .. } | SketchOp::Query { .. }
        )
    })
}

fn position(sketch: &Sketch, txn: usize) -> usize {
    let session = &sketch.transactions[txn].session;
    sketch.transactions[..txn].iter().filter(|other| other.session == *session).count()
}

/// Committed transactions in the order of commits.
pub(crate) fn commit_order(sketch: &Sketch) -> Vec<Timed> {
    let mut order: Vec<Timed> = Vec::new();
    for (place, txn) in sketch.transactions.iter().enumerate() {
        if let (Status::Committed, Some((start, commit))) = (txn.status, txn.db) {
            if start > commit {
                continue;
            }
            order.push(Timed { txn: place, start, commit, position: position(sketch, place) });
        }
    }
    order.sort_by_key(|timed| {
        let txn = &sketch.transactions[timed.txn];
        let at_once = timed.start >= timed.commit;
        (timed.commit, is_read_only(txn), at_once, timed.start, txn.session.clone(), timed.position)
    });
    order
}

/// How many of the ordered transactions each one sees.
pub(crate) fn snapshots(order: &[Timed], serial: bool) -> Vec<usize> {
    (0..order.len())
        .map(|rank| {
            let own = &order[rank];
            if serial || own.start >= own.commit {
                rank
            } else {
                order.iter().filter(|other| other.commit <= own.start).count()
            }
        })
        .collect()
}

/// The machine: calls `start` with each transaction and the state it sees, and applies what it returns at
/// the commit. Also returns the state's writers to `start`.
fn machine(
    sketch: &Sketch,
    serial: bool,
    mut start: impl FnMut(usize, &State, &BTreeMap<Name, usize>) -> Effects,
    mut commit: impl FnMut(usize, &Effects, &dyn Fn(&Name) -> Option<usize>),
) {
    let order = commit_order(sketch);
    let snapshot = snapshots(&order, serial);
    let mut state: State = sketch
        .initial
        .iter()
        .map(|(key, datum)| (key.clone(), normal(datum)))
        .filter(|(_, datum)| *datum != Datum::Absent)
        .collect();
    let mut writers: BTreeMap<Name, usize> = BTreeMap::new();
    // By key: the rank of the last transaction that certainly wrote it.
    let mut last: BTreeMap<Name, usize> = BTreeMap::new();
    let mut open: Vec<Effects> = vec![Effects::new(); order.len()];
    for rank in 0..order.len() {
        let mut starting: Vec<usize> = (0..order.len()).filter(|&other| snapshot[other] == rank).collect();
        starting.sort_by_key(|&other| {
            let timed = &order[other];
            (timed.start, sketch.transactions[timed.txn].session.clone(), timed.position)
        });
        for other in starting {
            open[other] = start(order[other].txn, &state, &writers);
        }
        let effects = open[rank].clone();
        let txn = order[rank].txn;
        let unseen = |key: &Name| {
            last.get(key).copied().filter(|&other| other >= snapshot[rank]).map(|other| order[other].txn)
        };
        commit(txn, &effects, &unseen);
        apply(&mut state, &effects);
        for key in effects.keys() {
            writers.insert(key.clone(), txn);
            last.insert(key.clone(), rank);
        }
    }
}

/// Every violation, of the transactions that have a place in the order: nobody else took effect.
pub(crate) fn findings(sketch: &Sketch, asked: Asked) -> Vec<Told> {
    let mut told = orders(sketch, asked);
    let keys = all_keys(sketch);
    let (mut at_start, mut at_commit) = (Vec::new(), Vec::new());
    machine(
        sketch,
        asked.serial,
        |txn, state, writers| {
            let run = Run::new(&keys, state).all(&sketch.transactions[txn]);
            for (axiom, op, key, expected, name_writer) in run.told {
                let other = key.as_ref().filter(|_| name_writer).and_then(|key| writers.get(key).copied());
                at_start.push(Told { axiom, txn, op: Some(op), key, other, expected });
            }
            run.own
        },
        |txn, effects, unseen| {
            for key in effects.keys().filter(|_| !asked.serial) {
                if let Some(other) = unseen(key) {
                    let commit = sketch.transactions[other].db.expect("it was replayed").1;
                    at_commit.push(Told {
                        axiom: Axiom::NoConflict,
                        txn,
                        op: None,
                        key: Some(key.clone()),
                        other: Some(other),
                        expected: commit.to_string(),
                    });
                }
            }
        },
    );
    told.extend(at_start);
    told.extend(at_commit);
    told
}

pub(crate) fn orders(sketch: &Sketch, asked: Asked) -> Vec<Told> {
    let order = commit_order(sketch);
    let snapshot = snapshots(&order, asked.serial);
    let rank = |txn: usize| order.iter().position(|timed| timed.txn == txn);
    let mut told = Vec::new();
    for (txn, it) in sketch.transactions.iter().enumerate() {
        if let (Status::Committed, Some((start, commit))) = (it.status, it.db)
            && start > commit
        {
            let expected = start.to_string();
            let axiom = Axiom::TimestampOrder;
            told.push(Told { axiom, txn, op: None, key: None, other: None, expected });
        }
    }
    let mut tell = |axiom, own: usize, other: usize| {
        let (txn, named) = (order[own].txn, order[other].txn);
        let expected = order[other].commit.to_string();
        told.push(Told { axiom, txn, op: None, key: None, other: Some(named), expected });
    };
    for own in 0..order.len() {
        let txn = order[own].txn;
        let SketchTxn { session, client, .. } = &sketch.transactions[txn];
        let same_session =
            |other: &usize| sketch.transactions[*other].session == *session && rank(*other).is_some();
        let before = (0..txn).rev().find(same_session).and_then(rank);
        if let Some(other) = before.filter(|&other| asked.session && other >= snapshot[own]) {
            tell(Axiom::Session, own, other);
        }
        if let Some(client) = client.filter(|_| asked.realtime) {
            let ended = |other: &usize| {
                let other = &sketch.transactions[order[*other].txn];
                other.client.is_some_and(|other| other.end < client.begin)
            };
            let latest = (0..order.len()).rev().find(ended);
            if let Some(other) = latest.filter(|&other| other >= snapshot[own]) {
                tell(Axiom::RealTime, own, other);
            }
        }
    }
    told
}

/// Replaces every known result by what the timestamps say it had to be.
pub(crate) fn make_true(sketch: &Sketch, serial: bool) -> Sketch {
    let keys = all_keys(sketch);
    let mut fixed = sketch.clone();
    machine(
        sketch,
        serial,
        |txn, state, _| {
            let mut run = Run::new(&keys, state);
            for (place, op) in fixed.transactions[txn].ops.iter_mut().enumerate() {
                answer(&run, op);
                run.step(place, op);
            }
            assert!(run.told.is_empty(), "true answers fit: {:?}", run.told);
            run.own
        },
        |_, _, _| {},
    );
    fixed
}

/// Fills in the result of an operation.
fn answer(run: &Run<'_>, op: &mut SketchOp) {
    let present = |keys: Vec<Name>| -> Rows {
        keys.into_iter()
            .map(|key| (key.clone(), run.view(&key)))
            .filter(|(_, datum)| *datum != Datum::Absent)
            .collect()
    };
    match op {
        SketchOp::Read { key, value, .. } if *value != Datum::Unknown => *value = run.view(key),
        SketchOp::Scan { from, to, rows: Some(rows) } => *rows = present(run.range(from, to)),
        SketchOp::Iterate { from, to, reverse, exhausted, rows: Some(rows) } => {
            let wanted = rows.len();
            *rows = present(run.range(from, to));
            if *reverse {
                rows.reverse();
            }
            if !*exhausted {
                rows.truncate(wanted);
            }
        }
        SketchOp::Query { condition, rows: Some(rows) } => *rows = present(run.matching(condition)),
        SketchOp::Update { condition, count, keys, .. }
        | SketchOp::DeleteWhere { condition, count, keys } => {
            let matching = run.matching(condition);
            if let Some(count) = count {
                *count = matching.len() as u64;
            }
            if let Some(keys) = keys {
                *keys = matching;
            }
        }
        SketchOp::Cas { key, expect, ok: Some(ok), .. } => *ok = normal(&run.view(key)) == normal(expect),
        _ => {}
    }
}
