//! Random tiny histories from a sloppy simulated store.
//!
//! Purely random results are nearly always impossible, results of a correct store are always possible; a
//! comparison of checkers needs both, and the cases close to the border. So a history is made by running
//! transactions on a simulated multi-version store that is correct, or wrong in one of several ways
//! ([`Sloppiness`]), and then changing a result or two in some of them.
//!
//! A part of them is made from textbook anomalies instead (`plant`).
//!
//! Steps: draw the operations; run them one transaction after the other, keeping every state (`log`);
//! fill in the results from the states that the sloppiness allows; spoil some; hide some; shuffle some.

use super::plant::plant;
use super::random::Random;
use super::sketch::{Condition, Datum, Rows, Sketch, SketchOp, SketchTxn, key_name, key_place, session_name};
use history::{Comparison, History, Lock, Name, Span, Status};
use isolation::Ryow;
use std::collections::{BTreeMap, BTreeSet};

/// How often each kind of operation occurs, as weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "one field a kind of operation")]
pub struct Mix {
    pub read: u32,
    pub write: u32,
    pub delete: u32,
    pub append: u32,
    pub scan: u32,
    pub iterate: u32,
    pub query: u32,
    pub update: u32,
    pub delete_where: u32,
    pub cas: u32,
}

impl Mix {
    fn only_reads(self) -> Self {
        Self { read: self.read, scan: self.scan, iterate: self.iterate, query: self.query, ..Self::default() }
    }

    fn only_writes(self) -> Self {
        Self { read: 0, scan: 0, iterate: 0, query: 0, ..self }
    }

    fn weights(self) -> [u32; 10] {
        [
            self.read,
            self.write,
            self.delete,
            self.append,
            self.scan,
            self.iterate,
            self.query,
            self.update,
            self.delete_where,
            self.cas,
        ]
    }
}

/// What random histories look like. Sizes are upper bounds; rates are in percent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The fewest and the most transactions.
    pub transactions: (usize, usize),
    /// The most sessions.
    pub sessions_max: usize,
    /// The most keys.
    pub keys_max: usize,
    /// The most operations of a transaction.
    pub ops_max: usize,
    /// The kinds of operations.
    pub mix: Mix,
    /// How many histories write no value twice.
    pub unique_values: u32,
    /// How many histories have rows with columns instead of numbers.
    pub row_values: u32,
    /// How many keys have a value before the first transaction.
    pub initial: u32,
    /// How many transactions abort.
    pub aborted: u32,
    /// How many transactions have an unknown outcome.
    pub unknown: u32,
    /// How many results are not known.
    pub hidden: u32,
    /// How many histories have client clocks.
    pub clocks: u32,
    /// How many histories are made from a textbook anomaly.
    pub planted: u32,
    /// How many histories get a result or two changed at the end.
    pub spoiled: u32,
    /// How many histories get lists that show other elements of their key than they should, or in another order.
    pub mixed_up: u32,
    /// What reads of own writes show.
    pub ryow: Ryow,
}

impl Shape {
    /// Reads and writes of single keys, statuses and clocks.
    pub fn registers() -> Self {
        Self {
            transactions: (1, 6),
            sessions_max: 3,
            keys_max: 3,
            ops_max: 4,
            mix: Mix { read: 5, write: 4, ..Mix::default() },
            unique_values: 60,
            row_values: 0,
            initial: 30,
            aborted: 8,
            unknown: 10,
            hidden: 3,
            clocks: 50,
            planted: 20,
            spoiled: 25,
            mixed_up: 0,
            ryow: Ryow::Must,
        }
    }

    /// Reads of lists and appends.
    pub fn lists() -> Self {
        Self { mix: Mix { read: 5, append: 5, ..Mix::default() }, initial: 10, ..Self::registers() }
    }

    /// Reads, writes, deletes, scans and iterators.
    pub fn ranges() -> Self {
        let mix = Mix { read: 3, write: 4, delete: 2, scan: 3, iterate: 3, ..Mix::default() };
        Self { mix, ops_max: 3, ..Self::registers() }
    }

    /// Reads, writes, deletes, queries and predicate writes.
    pub fn predicates() -> Self {
        let mix =
            Mix { read: 3, write: 4, delete: 1, query: 3, update: 2, delete_where: 1, ..Mix::default() };
        Self { mix, ops_max: 3, unique_values: 30, row_values: 20, ..Self::registers() }
    }

    /// Compare and set beside reads, writes and deletes.
    pub fn swaps() -> Self {
        let mix = Mix { read: 3, write: 2, delete: 1, cas: 5, ..Mix::default() };
        Self { mix, ops_max: 3, unique_values: 30, ..Self::registers() }
    }

    /// Compare and set beside every other kind of operation.
    pub fn swaps_and_everything() -> Self {
        let everything = Self::everything();
        Self { mix: Mix { cas: 6, ..everything.mix }, ..everything }
    }

    /// Every other kind of operation.
    pub fn everything() -> Self {
        let mix = Mix {
            read: 6,
            write: 5,
            delete: 2,
            append: 2,
            scan: 2,
            iterate: 2,
            query: 2,
            update: 1,
            delete_where: 1,
            ..Mix::default()
        };
        Self { mix, ops_max: 3, unique_values: 50, row_values: 10, ..Self::registers() }
    }

    /// At most this many transactions.
    pub fn with_transactions_max(self, max: usize) -> Self {
        Self { transactions: (self.transactions.0.min(max), max), ..self }
    }

    /// With another policy on reads of own writes.
    pub fn with_ryow(self, ryow: Ryow) -> Self {
        Self { ryow, ..self }
    }

    /// The history of a seed.
    pub fn history(&self, seed: u64) -> History {
        self.sketch(seed).build()
    }

    /// The history of a seed, still editable.
    pub fn sketch(&self, seed: u64) -> Sketch {
        let mut random = Random::new(seed);
        // Neighbouring seeds give unrelated histories only after a first step.
        random.bits();
        Simulation::new(self, random).run()
    }
}

/// In what way the simulated store is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sloppiness {
    /// It is not: transactions run one after the other.
    Serial,
    /// Transactions run on an older state; those that would overwrite a newer write run on the newest.
    Snapshot,
    /// Transactions run on an older state and lose updates.
    LostUpdates,
    /// Every operation sees a state of its own.
    OwnState,
    /// Every key that is read may come from any state, also a later one.
    Chaos,
    /// Every transaction sees some of the earlier ones, and all that those saw: effects arrive at
    /// different places in different orders.
    Replicas,
    /// Every transaction sees any of the earlier ones.
    Holes,
}

type State = BTreeMap<usize, Datum>;

struct Simulation<'s> {
    shape: &'s Shape,
    random: Random,
    sloppiness: Sloppiness,
    keys: usize,
    sessions: usize,
    unique: bool,
    rows: bool,
    /// Whether transactions have roles: some only read many keys, some only write one or two.
    roles: bool,
    /// How many transactions there will be, and how many there are.
    count: usize,
    ran: usize,
    next_value: i64,
    /// The state after each commit; the first is the initial one.
    log: Vec<State>,
    /// What each commit wrote and which commits it saw, by place in the log; the first is empty.
    commits: Vec<Commit>,
    /// Every value that was ever written, for spoiling.
    pool: Vec<Datum>,
}

#[derive(Clone, Default)]
struct Commit {
    session: usize,
    writes: State,
    /// Places in the log, itself included.
    saw: BTreeSet<usize>,
}

/// A transaction that ran: its results are filled in at the end.
struct Ran {
    ops: Vec<SketchOp>,
    /// Its own writes before each operation.
    own: Vec<State>,
    session: usize,
    /// The newest state it may have run on, as a place in the log.
    at: usize,
    /// The state it ran on.
    snapshot: State,
    status: Status,
}

impl<'s> Simulation<'s> {
    fn new(shape: &'s Shape, mut random: Random) -> Self {
        let sloppiness = [
            Sloppiness::Serial,
            Sloppiness::Snapshot,
            Sloppiness::LostUpdates,
            Sloppiness::OwnState,
            Sloppiness::Chaos,
            Sloppiness::Replicas,
            Sloppiness::Holes,
        ][random.weighted(&[10, 20, 10, 20, 15, 15, 10])];
        let keys = random.rather_large(1, shape.keys_max.max(1));
        let sessions = random.rather_large(1, shape.sessions_max.max(1));
        let unique = random.chance(shape.unique_values);
        let rows = random.chance(shape.row_values);
        let forks = matches!(sloppiness, Sloppiness::Replicas | Sloppiness::Holes);
        let roles = random.chance(if forks { 80 } else { 30 });
        Self {
            shape,
            random,
            sloppiness,
            keys,
            sessions,
            unique,
            rows,
            roles,
            count: 0,
            ran: 0,
            next_value: 1,
            log: Vec::new(),
            commits: vec![Commit::default()],
            pool: vec![Datum::Absent],
        }
    }

    fn run(mut self) -> Sketch {
        let planted = self.random.chance(self.shape.planted);
        let mut sketch = if planted { self.plant() } else { self.simulate() };
        if self.random.chance(if planted { self.shape.spoiled / 2 } else { self.shape.spoiled }) {
            for _ in 0..self.random.between(1, 2) {
                self.spoil(&mut sketch);
            }
        }
        if self.shape.mixed_up > 0 && self.random.chance(self.shape.mixed_up) {
            self.mix_up(&mut sketch);
        }
        self.hide(&mut sketch);
        if self.random.chance(25) {
            self.shuffle(&mut sketch);
        }
        sketch
    }

    fn plant(&mut self) -> Sketch {
        let mut sketch = plant(&mut self.random, self.shape.mix, self.shape.transactions.1);
        self.pool.extend((1..=3).map(Datum::Int));
        if self.random.chance(self.shape.clocks) {
            for (place, txn) in sketch.transactions.iter_mut().enumerate() {
                txn.client = (!self.random.chance(10)).then(|| self.clock(place));
            }
        }
        sketch
    }

    fn simulate(&mut self) -> Sketch {
        let mut initial = State::new();
        for key in 0..self.keys {
            if self.random.chance(self.shape.initial) {
                let value = self.value();
                initial.insert(key, value);
            }
        }
        let shown_initial = initial.iter().map(|(&key, value)| (key_name(key), value.clone())).collect();
        self.log.push(initial);
        let (low, high) = self.shape.transactions;
        self.count = self.random.rather_large(low, high);
        let ran: Vec<Ran> = (0..self.count).map(|_| self.run_transaction()).collect();
        let clocks = self.random.chance(self.shape.clocks);
        let mut transactions = Vec::new();
        for (place, ran) in ran.into_iter().enumerate() {
            let session = session_name(ran.session);
            let status = ran.status;
            let ops = self.results(ran);
            let client = (clocks && !self.random.chance(10)).then(|| self.clock(place));
            transactions.push(SketchTxn { id: None, session, status, client, db: None, ops });
        }
        Sketch { level: None, initial: shown_initial, transactions }
    }

    // ---- drawing operations ----

    fn value(&mut self) -> Datum {
        let number = if self.unique { self.next_value } else { self.random.between(1, 3) as i64 };
        self.next_value += 1;
        let value = if self.rows {
            Datum::Row(vec![("a".to_owned(), Datum::Int(number)), ("b".to_owned(), Datum::Int(number % 2))])
        } else {
            Datum::Int(number)
        };
        self.pool.push(value.clone());
        value
    }

    fn condition(&mut self) -> Condition {
        let column = match (self.rows, self.random.chance(50)) {
            (false, _) => "value",
            (true, false) => "a",
            (true, true) => "b",
        };
        let with = *self.random.pick(&[
            Comparison::Equal,
            Comparison::NotEqual,
            Comparison::Less,
            Comparison::GreaterOrEqual,
        ]);
        let high = self.next_value.clamp(1, 6) as usize;
        let constant = self.random.between(1, high) as i64;
        let simple = Condition::compare(column, with, Datum::Int(constant));
        match self.random.below(12) {
            0 => Condition::Not(Box::new(simple)),
            1 => Condition::Any(vec![simple, self.condition()]),
            2 => Condition::All(vec![]),
            _ => simple,
        }
    }

    fn bounds(&mut self) -> (Option<Name>, Option<Name>) {
        let from = self.random.chance(30).then(|| key_name(self.random.below(self.keys)));
        let to = self.random.chance(30).then(|| key_name(self.random.below(self.keys)));
        (from, to)
    }

    fn operations(&mut self) -> Vec<SketchOp> {
        let all = self.shape.mix;
        let count = self.random.rather_large(1, self.shape.ops_max.max(1));
        // Writers come rather early and readers rather late.
        let early = self.ran * 2 < self.count;
        let kinds = match self.random.weighted(if early { &[1, 5, 1] } else { &[1, 1, 5] }) {
            _ if !self.roles => vec![all; count],
            0 => vec![all.only_reads(), all.only_writes()],
            1 => vec![all.only_writes(); self.random.between(1, count.min(2))],
            _ => vec![all.only_reads(); count.max(self.keys.min(self.shape.ops_max))],
        };
        let mut ops = Vec::new();
        let first_key = self.random.below(self.keys);
        for (place, mix) in kinds.into_iter().enumerate() {
            let mix = if mix == Mix::default() { all } else { mix };
            // In roles, one key after the other; otherwise any.
            let key = if self.roles { (first_key + place) % self.keys } else { self.random.below(self.keys) };
            ops.push(self.operation(mix, key_name(key)));
        }
        if self.random.chance(50) {
            // Reads that come before all writes see other transactions, not their own.
            ops.sort_by_key(writes);
        }
        ops
    }

    fn operation(&mut self, mix: Mix, key: Name) -> SketchOp {
        match self.random.weighted(&mix.weights()) {
            0 => SketchOp::Read {
                key,
                value: Datum::Unknown,
                lock: *self.random.pick(&[Lock::None, Lock::None, Lock::None, Lock::Update]),
            },
            1 if self.random.chance(2) => SketchOp::Write { key, value: Datum::Absent },
            1 => SketchOp::Write { key, value: self.value() },
            2 => SketchOp::Delete { key },
            3 => SketchOp::Append { key, value: self.value() },
            4 => {
                let (from, to) = self.bounds();
                SketchOp::Scan { from, to, rows: None }
            }
            5 => {
                let (from, to) = self.bounds();
                let (reverse, exhausted) = (self.random.chance(40), self.random.chance(40));
                SketchOp::Iterate { from, to, reverse, exhausted, rows: None }
            }
            6 => SketchOp::Query { condition: self.condition(), rows: None },
            7 => {
                let condition = self.condition();
                SketchOp::Update { condition, set: self.value(), count: None, keys: None }
            }
            8 => SketchOp::DeleteWhere { condition: self.condition(), count: None, keys: None },
            _ => {
                // What it finds, something that is there or was, or anything.
                let expect = match self.random.below(4) {
                    0 | 1 => Datum::Unknown,
                    _ => self.random.pick(&self.pool).clone(),
                };
                let write = if self.random.chance(8) { Datum::Absent } else { self.value() };
                SketchOp::Cas { key, expect, write, ok: None }
            }
        }
    }

    // ---- running ----

    fn run_transaction(&mut self) -> Ran {
        let ops = self.operations();
        self.ran += 1;
        let session = self.random.below(self.sessions);
        let newest = self.log.len() - 1;
        let stale = match self.sloppiness {
            Sloppiness::Serial => 0,
            _ => self.random.weighted(&[3, 4, 2, 1]).min(newest),
        };
        let mut saw: BTreeSet<usize> = match self.sloppiness {
            Sloppiness::Replicas | Sloppiness::Holes => self.some_commits(session),
            _ => (1..=newest - stale).collect(),
        };
        let mut snapshot = self.state_of(&saw);
        let mut ran = execute(ops, session, newest - stale, snapshot.clone());
        let written = ran.own.last().cloned().unwrap_or_default();
        let overwrites_newer = written.keys().any(|key| self.log[newest].get(key) != snapshot.get(key));
        let careful = match self.sloppiness {
            Sloppiness::Snapshot => true,
            Sloppiness::Replicas => self.random.chance(70),
            _ => false,
        };
        if careful && overwrites_newer {
            saw = (1..=newest).collect();
            snapshot = self.log[newest].clone();
            ran = execute(ran.ops, session, newest, snapshot);
        }
        ran.status = match self.random.below(100) as u32 {
            dice if dice < self.shape.aborted => Status::Aborted,
            dice if dice < self.shape.aborted + self.shape.unknown => Status::Unknown,
            _ => Status::Committed,
        };
        let took_effect = match ran.status {
            Status::Committed => true,
            Status::Aborted => false,
            Status::Unknown => self.random.chance(60),
        };
        if took_effect {
            let writes = ran.own.last().cloned().unwrap_or_default();
            let mut next = self.log[newest].clone();
            next.extend(writes.clone());
            self.log.push(next);
            saw.insert(newest + 1);
            self.commits.push(Commit { session, writes, saw });
        }
        ran
    }

    /// Commits that a transaction sees: some of all, and with replicas also what those saw.
    fn some_commits(&mut self, session: usize) -> BTreeSet<usize> {
        let mut saw = BTreeSet::new();
        for place in 1..self.commits.len() {
            let same_session =
                self.commits[place].session == session && self.sloppiness == Sloppiness::Replicas;
            if same_session || self.random.chance(55) {
                saw.insert(place);
                if self.sloppiness == Sloppiness::Replicas {
                    saw.extend(&self.commits[place].saw);
                }
            }
        }
        saw
    }

    fn state_of(&self, commits: &BTreeSet<usize>) -> State {
        let mut state = self.log[0].clone();
        for &place in commits {
            state.extend(self.commits[place].writes.clone());
        }
        state
    }

    // ---- results ----

    /// The state that the `place`-th operation of a transaction sees.
    fn seen_state(&mut self, ran: &Ran, place: usize) -> State {
        let mut state = match self.sloppiness {
            Sloppiness::OwnState => {
                let high = (ran.at + 2).min(self.log.len() - 1);
                self.log[self.random.between(ran.at.saturating_sub(1), high)].clone()
            }
            Sloppiness::Chaos => {
                let mut mixed = State::new();
                for key in 0..self.keys {
                    let at = if self.random.chance(60) { ran.at } else { self.random.below(self.log.len()) };
                    if let Some(value) = self.log[at].get(&key) {
                        mixed.insert(key, value.clone());
                    }
                }
                mixed
            }
            _ => ran.snapshot.clone(),
        };
        for (&key, value) in &ran.own[place] {
            let shows_own = match self.shape.ryow {
                Ryow::Must => true,
                Ryow::May => self.random.chance(50),
                Ryow::Never => false,
            };
            if shows_own {
                state.insert(key, value.clone());
            }
        }
        state
    }

    fn results(&mut self, ran: Ran) -> Vec<SketchOp> {
        let mut filled = ran.ops.clone();
        for (place, operation) in filled.iter_mut().enumerate() {
            let state = self.seen_state(&ran, place);
            match operation {
                SketchOp::Read { key, value, .. } => *value = lookup(&state, key),
                SketchOp::Scan { from, to, rows } => *rows = Some(range_rows(&state, from, to)),
                SketchOp::Iterate { from, to, reverse, exhausted, rows } => {
                    let mut all = range_rows(&state, from, to);
                    if *reverse {
                        all.reverse();
                    }
                    if !*exhausted {
                        all.truncate(self.random.between(0, all.len()));
                    }
                    *rows = Some(all);
                }
                SketchOp::Query { condition, rows } => {
                    let mut all = range_rows(&state, &None, &None);
                    all.retain(|(_, value)| holds(condition, value));
                    if self.random.chance(50) {
                        all.reverse();
                    }
                    *rows = Some(all);
                }
                SketchOp::Update { count, keys, .. } | SketchOp::DeleteWhere { count, keys, .. } => {
                    // What it matched when it ran was noted there; only how much is reported is drawn here.
                    match self.random.below(4) {
                        0 => *keys = None,
                        1 => *count = None,
                        2 => (*count, *keys) = (None, None),
                        _ => {}
                    }
                }
                SketchOp::Cas { ok, .. } if self.random.chance(20) => *ok = None,
                SketchOp::Write { .. }
                | SketchOp::Delete { .. }
                | SketchOp::Append { .. }
                | SketchOp::Cas { .. } => {}
            }
        }
        filled
    }

    fn clock(&mut self, place: usize) -> Span {
        let point = if self.random.chance(10) { self.random.below(6) } else { place } as i64 * 10;
        let reach = *self.random.pick(&[0, 4, 12, 25]);
        let (early, late) = (self.random.below(reach + 1) as i64, self.random.below(reach + 1) as i64);
        Span { begin: point - early, end: point + late }
    }

    // ---- spoiling, hiding, shuffling ----

    fn some_value(&mut self) -> Datum {
        if self.random.chance(3) {
            return Datum::Int(77);
        }
        self.random.pick(&self.pool).clone()
    }

    /// Changes one result.
    fn spoil(&mut self, sketch: &mut Sketch) {
        let mut places = Vec::new();
        for (txn, transaction) in sketch.transactions.iter().enumerate() {
            for (op, operation) in transaction.ops.iter().enumerate() {
                if has_result(operation) {
                    places.push((txn, op));
                }
            }
        }
        if places.is_empty() {
            return;
        }
        let (txn, op) = *self.random.pick(&places);
        let other = self.some_value();
        match &mut sketch.transactions[txn].ops[op] {
            SketchOp::Read { value: Datum::List(elements), .. } => match self.random.below(3) {
                0 => drop(elements.pop()),
                1 => elements.reverse(),
                _ => elements.push(other),
            },
            SketchOp::Read { value, .. } => *value = other,
            SketchOp::Scan { rows: Some(rows), .. }
            | SketchOp::Iterate { rows: Some(rows), .. }
            | SketchOp::Query { rows: Some(rows), .. } => {
                if rows.is_empty() {
                    rows.push((key_name(self.random.below(self.keys)), other));
                } else if self.random.chance(50) {
                    rows.remove(self.random.below(rows.len()));
                } else {
                    let place = self.random.below(rows.len());
                    rows[place].1 = other;
                }
            }
            SketchOp::Update { count, keys, .. } | SketchOp::DeleteWhere { count, keys, .. } => {
                *keys = None;
                *count = Some(self.random.below(self.keys + 1) as u64);
            }
            SketchOp::Cas { ok: Some(ok), .. } if self.random.chance(50) => *ok = !*ok,
            SketchOp::Cas { expect, .. } => *expect = other,
            _ => {}
        }
    }

    /// Lists with an element of their key more, mostly at the end, with one less, or in another order: among them are
    /// those that show what others appended behind, or between, what the transaction itself had appended.
    fn mix_up(&mut self, sketch: &mut Sketch) {
        let operations = sketch.transactions.iter().flat_map(|txn| &txn.ops);
        let appended: Vec<(Name, Datum)> = operations
            .filter_map(|operation| match operation {
                SketchOp::Append { key, value } => Some((key.clone(), value.clone())),
                _ => None,
            })
            .collect();
        for operation in sketch.transactions.iter_mut().flat_map(|txn| &mut txn.ops) {
            match operation {
                SketchOp::Read { key, value, .. } => self.mix_up_list(&appended, key, value),
                SketchOp::Scan { rows: Some(rows), .. } | SketchOp::Iterate { rows: Some(rows), .. } => {
                    rows.iter_mut().for_each(|(key, value)| self.mix_up_list(&appended, key, value));
                }
                _ => {}
            }
        }
    }

    fn mix_up_list(&mut self, appended: &[(Name, Datum)], key: &Name, value: &mut Datum) {
        let Datum::List(elements) = value else { return };
        if elements.is_empty() || !self.random.chance(30) {
            return;
        }
        let missing: Vec<&Datum> = (appended.iter())
            .filter(|(at, element)| at == key && !elements.contains(element))
            .map(|(_, element)| element)
            .collect();
        let place = self.random.below(elements.len());
        match self.random.below(6) {
            0 => elements.swap(0, place),
            1 if elements.len() > 1 => drop(elements.remove(place)),
            2 if !missing.is_empty() => elements.insert(place, (*self.random.pick(&missing)).clone()),
            _ if !missing.is_empty() => elements.push((*self.random.pick(&missing)).clone()),
            _ => {}
        }
    }

    fn hide(&mut self, sketch: &mut Sketch) {
        for operation in sketch.transactions.iter_mut().flat_map(|txn| &mut txn.ops) {
            if !self.random.chance(self.shape.hidden) {
                continue;
            }
            match operation {
                SketchOp::Read { value, .. } => *value = Datum::Unknown,
                SketchOp::Scan { rows, .. }
                | SketchOp::Iterate { rows, .. }
                | SketchOp::Query { rows, .. } => *rows = None,
                SketchOp::Update { count, keys, .. } | SketchOp::DeleteWhere { count, keys, .. } => {
                    (*count, *keys) = (None, None);
                }
                SketchOp::Cas { ok, .. } => *ok = None,
                _ => {}
            }
        }
    }

    /// Puts two transactions in each other's place: session order and commit order part ways.
    fn shuffle(&mut self, sketch: &mut Sketch) {
        let count = sketch.transactions.len();
        if count > 1 {
            let (one, other) = (self.random.below(count), self.random.below(count));
            sketch.transactions.swap(one, other);
        }
    }
}

/// Runs operations on a state; notes own writes and what predicate writes matched.
fn execute(mut ops: Vec<SketchOp>, session: usize, at: usize, snapshot: State) -> Ran {
    let mut own = vec![State::new()];
    for operation in &mut ops {
        let mut after = own.last().cloned().unwrap_or_default();
        let mut state = snapshot.clone();
        state.extend(after.clone());
        match operation {
            SketchOp::Write { key, value } => drop(after.insert(key_place(key), value.clone())),
            SketchOp::Delete { key } => drop(after.insert(key_place(key), Datum::Absent)),
            SketchOp::Append { key, value } => {
                let longer = match lookup(&state, key) {
                    Datum::Absent => vec![value.clone()],
                    Datum::List(mut elements) => {
                        elements.push(value.clone());
                        elements
                    }
                    single => vec![single, value.clone()],
                };
                after.insert(key_place(key), Datum::List(longer));
            }
            SketchOp::Update { condition, set, count, keys } => {
                let matched = matching(&state, condition);
                after.extend(matched.iter().map(|key| (key_place(key), set.clone())));
                (*count, *keys) = (Some(matched.len() as u64), Some(matched));
            }
            SketchOp::DeleteWhere { condition, count, keys } => {
                let matched = matching(&state, condition);
                after.extend(matched.iter().map(|key| (key_place(key), Datum::Absent)));
                (*count, *keys) = (Some(matched.len() as u64), Some(matched));
            }
            SketchOp::Cas { key, expect, write, ok } => {
                let found = lookup(&state, key);
                if *expect == Datum::Unknown {
                    *expect = found.clone();
                }
                *ok = Some(found == *expect);
                if found == *expect {
                    after.insert(key_place(key), write.clone());
                }
            }
            SketchOp::Read { .. }
            | SketchOp::Scan { .. }
            | SketchOp::Iterate { .. }
            | SketchOp::Query { .. } => {}
        }
        own.push(after);
    }
    Ran { ops, own, session, at, snapshot, status: Status::Aborted }
}

fn writes(operation: &SketchOp) -> bool {
    !matches!(
        operation,
        SketchOp::Read { .. } | SketchOp::Scan { .. } | SketchOp::Iterate { .. } | SketchOp::Query { .. }
    )
}

fn has_result(operation: &SketchOp) -> bool {
    !matches!(operation, SketchOp::Write { .. } | SketchOp::Delete { .. } | SketchOp::Append { .. })
}

fn lookup(state: &State, key: &Name) -> Datum {
    state.get(&key_place(key)).cloned().unwrap_or(Datum::Absent)
}

fn range_rows(state: &State, from: &Option<Name>, to: &Option<Name>) -> Rows {
    let mut rows: Rows = state
        .iter()
        .filter(|(_, value)| **value != Datum::Absent)
        .map(|(&key, value)| (key_name(key), value.clone()))
        .filter(|(key, _)| from.as_ref().is_none_or(|from| key >= from))
        .filter(|(key, _)| to.as_ref().is_none_or(|to| key < to))
        .collect();
    rows.sort_by(|(one, _), (other, _)| one.cmp(other));
    rows
}

fn matching(state: &State, condition: &Condition) -> Vec<Name> {
    let mut rows = range_rows(state, &None, &None);
    rows.retain(|(_, value)| holds(condition, value));
    rows.into_iter().map(|(key, _)| key).collect()
}

/// Whether a present value satisfies a condition, for the conditions drawn here.
fn holds(condition: &Condition, value: &Datum) -> bool {
    condition.holds_if(&|column, with, constant| {
        let cell = match value {
            Datum::Row(cells) => cells.iter().find(|(name, _)| name == column).map(|(_, cell)| cell),
            single => (column == "value").then_some(single),
        };
        match (cell, constant) {
            (Some(Datum::Int(left)), Datum::Int(right)) => {
                with.holds(left == right, || Some(left.cmp(right)))
            }
            (Some(_), _) => with == Comparison::NotEqual,
            (None, _) => false,
        }
    })
}
