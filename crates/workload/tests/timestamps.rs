//! The database timestamps of simulated histories are exact: a naive replay of everything, by nothing but
//! the timestamps, gives every result again. This also covers sizes that trying everything cannot.

use history::{
    Builder, Comparison, History, KeyId, NameRef, Operation, Predicate, Range, Row, Status, ValueId,
};
use std::collections::BTreeMap;
use taipan_workload::{Bug, Certification, Config, Fields, Plant, Settings, Simulation, Strength, Workload};

/// A whole state: keys by name, so that ranges are ranges.
type State = BTreeMap<i64, ValueId>;

fn simulate(config: &Config) -> History {
    let mut builder = Builder::new();
    let simulation = Simulation::new(config.clone()).expect("valid settings");
    simulation.run(Fields::default(), &mut builder).expect("recorded");
    builder.finish().expect("a history")
}

struct Replay<'h> {
    history: &'h History,
    /// Lists by what they hold: interned ids of lists that reads returned are compared by content.
    wrong: Vec<String>,
}

impl<'h> Replay<'h> {
    fn name(&self, key: KeyId) -> i64 {
        match self.history.keys().get(key) {
            NameRef::Int(name) => name,
            NameRef::Str(_) => panic!("plans use numbers"),
        }
    }

    fn initial(&self) -> State {
        self.history.initial().iter().map(|row| (self.name(row.key), row.value)).collect()
    }

    fn in_range<'s>(
        &self,
        state: &'s State,
        range: Range,
    ) -> impl DoubleEndedIterator<Item = (i64, ValueId)> + 's {
        let from = range.from.map_or(i64::MIN, |key| self.name(key));
        let to = range.to.map_or(i64::MAX, |key| self.name(key));
        let (from, to) = (from.min(to), to);
        state.range(from..to).map(|(key, value)| (*key, *value))
    }

    fn named(&self, rows: &[Row]) -> Vec<(i64, ValueId)> {
        rows.iter().map(|row| (self.name(row.key), row.value)).collect()
    }

    fn expect<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, got: T, expected: T) {
        if got != expected {
            self.wrong.push(format!("{what}: got {got:?}, expected {expected:?}"));
        }
    }

    /// Runs one operation on the state that the transaction sees; writes go there and to `writes`.
    fn operation(&mut self, op: Operation<'h>, state: &mut State, writes: &mut BTreeMap<i64, ValueId>) {
        match op {
            Operation::Read { key, value, .. } => {
                let expected = state.get(&self.name(key)).copied().unwrap_or(ValueId::ABSENT);
                self.expect("read", value, expected);
            }
            Operation::Write { key, value } => put(self.name(key), value, state, writes),
            Operation::Delete { key } => put(self.name(key), ValueId::ABSENT, state, writes),
            Operation::Append { .. } => panic!("lists are replayed on their own"),
            Operation::Cas { key, expect, write, ok } => {
                let found = state.get(&self.name(key)).copied().unwrap_or(ValueId::ABSENT);
                self.expect("cas", ok, Some(found == expect));
                if found == expect {
                    put(self.name(key), write, state, writes);
                }
            }
            Operation::Scan { range, rows } => {
                let expected: Vec<_> = self.in_range(state, range).collect();
                let got = self.named(rows.expect("committed results are known"));
                self.expect("scan", got, expected);
            }
            Operation::Iterate { range, reverse, exhausted, rows } => {
                let got = self.named(rows.expect("committed results are known"));
                let mut all: Vec<_> = self.in_range(state, range).collect();
                if reverse {
                    all.reverse();
                }
                self.expect("end of the iterator", exhausted && got.len() < all.len(), false);
                all.truncate(got.len());
                self.expect("iterate", got, all);
            }
            Operation::Query { predicate, rows } => {
                let expected = self.matching(predicate, state);
                let mut got = self.named(rows.expect("committed results are known"));
                got.sort_by_key(|(key, _)| *key);
                self.expect("query", got, expected);
            }
            Operation::Update { predicate, set, count, keys } => {
                self.predicate_write(predicate, set, count, keys, state, writes);
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                self.predicate_write(predicate, ValueId::ABSENT, count, keys, state, writes);
            }
        }
    }

    fn predicate_write(
        &mut self,
        predicate: &Predicate,
        set: ValueId,
        count: Option<u64>,
        keys: Option<&[KeyId]>,
        state: &mut State,
        writes: &mut BTreeMap<i64, ValueId>,
    ) {
        let matching: Vec<i64> = self.matching(predicate, state).into_iter().map(|(key, _)| key).collect();
        let got: Vec<i64> = keys.expect("reported").iter().map(|&key| self.name(key)).collect();
        self.expect("count", count, Some(matching.len() as u64));
        self.expect("keys", got, matching.clone());
        for key in matching {
            put(key, set, state, writes);
        }
    }

    /// By hand, not by [`Predicate::holds`]: the simulator's filters are ranges of one column.
    fn matching(&self, predicate: &Predicate, state: &State) -> Vec<(i64, ValueId)> {
        let Predicate::All(parts) = predicate else { panic!("filters are ranges") };
        let values = self.history.values();
        let number = |id| match values.get(id) {
            history::ValueRef::Int(number) => Some(number),
            _ => None,
        };
        let holds = |value: ValueId| {
            parts.iter().all(|part| {
                let Predicate::Compare { column, with, constant } = part else {
                    panic!("filters are ranges")
                };
                let found = match values.get(value) {
                    history::ValueRef::Row(cells) => {
                        cells.iter().find(|cell| cell.column == *column).and_then(|cell| number(cell.value))
                    }
                    history::ValueRef::Int(number) => Some(number),
                    _ => None,
                };
                let constant = number(*constant).expect("filters compare with numbers");
                found.is_some_and(|found| match with {
                    Comparison::GreaterOrEqual => found >= constant,
                    Comparison::Less => found < constant,
                    other => panic!("{other:?} is not used"),
                })
            })
        };
        state.iter().filter(|(_, value)| holds(**value)).map(|(key, value)| (*key, *value)).collect()
    }
}

fn put(key: i64, value: ValueId, state: &mut State, writes: &mut BTreeMap<i64, ValueId>) {
    writes.insert(key, value);
    if value == ValueId::ABSENT {
        state.remove(&key);
    } else {
        state.insert(key, value);
    }
}

/// Replays serially in the order of commit timestamps; a transaction that only read comes at its start.
fn wrong_in_commit_order(history: &History) -> Vec<String> {
    let mut replay = Replay { history, wrong: Vec::new() };
    let mut state = replay.initial();
    let mut order: Vec<_> = history.transactions().filter(|txn| txn.status() == Status::Committed).collect();
    order.sort_by_key(|txn| txn.db().expect("committed transactions have timestamps").1);
    for txn in order {
        for (_, op) in txn.ops() {
            replay.operation(op, &mut state, &mut BTreeMap::new());
        }
    }
    replay.wrong
}

/// Replays every transaction on the state at its start timestamp, and looks for overlapping writers.
fn wrong_by_snapshots(history: &History) -> Vec<String> {
    let mut replay = Replay { history, wrong: Vec::new() };
    let mut states = vec![(i64::MIN, replay.initial())];
    let mut last_write: BTreeMap<i64, i64> = BTreeMap::new();
    let mut order: Vec<_> = history.transactions().filter(|txn| txn.status() == Status::Committed).collect();
    order.sort_by_key(|txn| txn.db().expect("committed transactions have timestamps").1);
    for txn in order {
        let (start, commit) = txn.db().expect("checked above");
        let place = states.partition_point(|(committed, _)| *committed <= start.physical) - 1;
        let mut seen = states[place].1.clone();
        let mut writes = BTreeMap::new();
        for (_, op) in txn.ops() {
            replay.operation(op, &mut seen, &mut writes);
        }
        if writes.is_empty() {
            continue;
        }
        let mut state = states.last().expect("the initial state is there").1.clone();
        for (key, value) in writes {
            let before = last_write.insert(key, commit.physical).unwrap_or(i64::MIN);
            replay.expect("a writer that overlaps", before > start.physical, false);
            put(key, value, &mut state, &mut BTreeMap::new());
        }
        states.push((commit.physical, state));
        if states.len() > 2000 {
            states.drain(..1000);
        }
    }
    replay.wrong
}

/// Replays lists, in commit order or by snapshots.
fn wrong_lists(history: &History, by_snapshot: bool) -> usize {
    let mut versions: BTreeMap<KeyId, Vec<(i64, ValueId)>> = BTreeMap::new();
    let mut order: Vec<_> = history.transactions().filter(|txn| txn.status() == Status::Committed).collect();
    order.sort_by_key(|txn| txn.db().expect("committed transactions have timestamps").1);
    let mut wrong = 0;
    for txn in order {
        let (start, commit) = txn.db().expect("checked above");
        let until = if by_snapshot { start.physical } else { commit.physical };
        let mut own: Vec<(KeyId, ValueId)> = Vec::new();
        for (_, op) in txn.ops() {
            match op {
                Operation::Append { key, value } => own.push((key, value)),
                Operation::Read { key, value, .. } => {
                    let log = versions.get(&key).map_or(&[][..], |log| log);
                    let seen =
                        log.iter().filter(|(committed, _)| *committed <= until).map(|(_, value)| *value);
                    let mine = own.iter().filter(|(changed, _)| *changed == key).map(|(_, value)| *value);
                    let expected: Vec<ValueId> = seen.chain(mine).collect();
                    wrong += usize::from(history.values().elements(value) != expected);
                }
                other => panic!("{other:?} in a workload of lists"),
            }
        }
        for (key, value) in own {
            versions.entry(key).or_default().push((commit.physical, value));
        }
    }
    wrong
}

#[test]
fn lists_replay_too() {
    for seed in 0..5 {
        let of = |strength| config(Workload::ListAppend, strength, 4000, seed);
        assert_eq!(wrong_lists(&simulate(&of(Strength::Serializable)), false), 0);
        assert_eq!(wrong_lists(&simulate(&of(Strength::SnapshotIsolation)), true), 0);
        let by_conflicts = Config { certification: Certification::Conflicts, ..of(Strength::Serializable) };
        assert_eq!(wrong_lists(&simulate(&by_conflicts), true), 0);
        let planted =
            Config { bugs: vec![(Bug::StaleRead, Plant::Exactly(3))], ..of(Strength::Serializable) };
        assert_eq!(wrong_lists(&simulate(&planted), false), 3);
    }
}

fn config(workload: Workload, strength: Strength, transactions: u64, seed: u64) -> Config {
    let plan = Settings { seed, sessions: 8, keys: 60, range_max: 12, hits_max: 8, ..workload.settings() };
    Config { abort_rate: 0.05, ..Config::new(plan, strength, transactions) }
}

fn with_registers() -> impl Iterator<Item = Workload> {
    Workload::ALL.into_iter().filter(|workload| *workload != Workload::ListAppend)
}

#[test]
fn serializable_histories_replay_in_commit_order() {
    for strength in [Strength::Serializable, Strength::Strict] {
        for workload in with_registers() {
            let history = simulate(&config(workload, strength, 4000, 1));
            assert_eq!(wrong_in_commit_order(&history), [""; 0], "{strength:?} {workload:?}");
        }
    }
}

#[test]
fn certification_by_conflicts_keeps_snapshots_and_leaves_commit_order() {
    for workload in with_registers() {
        let base = config(workload, Strength::Serializable, 2000, 5);
        let history = simulate(&Config { certification: Certification::Conflicts, ..base });
        assert_eq!(wrong_by_snapshots(&history), [""; 0], "{workload:?}");
        // Transactions that change what they read, or all that others read, have nothing to reorder.
        // In applications it is a matter of chance.
        let reorders = match workload {
            Workload::BlindWrites | Workload::Bank => false,
            Workload::Tpcc | Workload::Rubis | Workload::Twitter | Workload::Retwis => continue,
            _ => true,
        };
        assert_eq!(!wrong_in_commit_order(&history).is_empty(), reorders, "{workload:?}");
    }
}

#[test]
fn snapshot_histories_replay_by_their_snapshots() {
    for workload in with_registers() {
        let history = simulate(&config(workload, Strength::SnapshotIsolation, 2000, 2));
        assert_eq!(wrong_by_snapshots(&history), [""; 0], "{workload:?}");
    }
}

#[test]
fn old_snapshots_are_exact_too() {
    for workload in with_registers() {
        let base = config(workload, Strength::SnapshotIsolation, 1500, 3);
        let history = simulate(&Config { lag: 0.3, lag_max: 40, ..base });
        assert_eq!(wrong_by_snapshots(&history), [""; 0], "{workload:?}");
        let base = config(workload, Strength::Serializable, 4000, 3);
        let history = simulate(&Config { lag: 0.3, lag_max: 200, ..base });
        assert_eq!(wrong_in_commit_order(&history), [""; 0], "{workload:?}");
    }
}

#[test]
fn planted_bugs_show_in_the_replay_and_nothing_else_does() {
    for bug in Bug::all() {
        for workload in with_registers() {
            let mut config = config(workload, Strength::Serializable, 600, 4);
            config.bugs.push((bug, Plant::Exactly(7)));
            // Wrong results of one script: how many of its reads do not fit the commit order.
            let each = match bug {
                Bug::LongFork => 2,
                _ => 1,
            };
            let wrong = wrong_in_commit_order(&simulate(&config));
            assert_eq!(wrong.len(), 7 * each, "{bug:?} {workload:?}: {wrong:?}");
        }
    }
}
