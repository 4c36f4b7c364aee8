//! Levels of the user's own against the exhaustive oracle, which counts the same edges among its orders.

use evidence::check;
use history::formats::{ReadOptions, notation, read_stream};
use history::{History, Id, KeyId, Operation, Status, Transaction, ValueId};
use isolation::{
    Additions, Claim, Definition, Evidence, KeyOrder, Level, Linearizable, Module, Options, Rule, Verdict,
    parse_levels,
};
use oracle::oracle;
use oracle::tiny::{Shape, shrink};
use std::collections::HashSet;

#[path = "../../../examples/levels/module.rs"]
#[allow(dead_code, reason = "its main is run by hand")]
mod example;

const RULES: [Rule; 8] = [
    Rule::ReadUncommitted,
    Rule::ReadCommitted,
    Rule::CursorStability,
    Rule::MonotonicView,
    Rule::ConsistentView,
    Rule::RepeatableRead,
    Rule::SnapshotIsolation,
    Rule::Serializable,
];

/// Orders some transactions as their numbers have it, whatever happened.
#[derive(Debug)]
struct Arbitrary;

impl Module for Arbitrary {
    fn name(&self) -> &str {
        "arbitrary"
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        let ids: Vec<_> = history.transactions().map(|it| it.id()).collect();
        for &first in &ids {
            for &second in &ids {
                // Mostly against the order of the file, and free of cycles.
                let is_pair = (first.index() * 7 + second.index() * 3) % 4 == 0;
                if is_pair && (first.index() * 5) % 7 > (second.index() * 5) % 7 {
                    additions.before.push((first, second));
                }
            }
        }
        Ok(())
    }
}

/// Calls the reverse of the file likely, which it seldom is.
#[derive(Debug)]
struct Unlikely;

impl Module for Unlikely {
    fn name(&self) -> &str {
        "unlikely"
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        additions.likely = history.transactions().map(|it| it.id()).collect();
        additions.likely.reverse();
        Ok(())
    }
}

fn fault(history: &History, level: Level, as_by: Level) -> Option<String> {
    let options = Options::default();
    let expected = match oracle(history, as_by, &options) {
        Ok(Verdict::Undecided(_)) | Err(_) => return None,
        Ok(verdict) => verdict,
    };
    let found = check(history, level, &options).verdict;
    if let Verdict::Violated(evidence) = &found
        && !is_circle(evidence)
    {
        return Some(format!("its argument is none: {evidence:?}"));
    }
    let differs = expected.name() != found.name();
    differs.then(|| format!("the oracle says {}, the pipeline {}", expected.name(), found.name()))
}

fn is_circle(evidence: &Evidence) -> bool {
    let edges = &evidence.edges;
    let next = |place: usize| edges[(place + 1) % edges.len()].from;
    edges.len() < 2
        || evidence.anomaly.name == "incompatible-order"
        || (0..edges.len()).all(|place| Some(edges[place].to) == next(place))
}

fn compare(shape: &Shape, seeds: u64, levels: &[(Level, Level)]) {
    for seed in 0..seeds {
        let history = shape.history(seed);
        for &(level, as_by) in levels {
            if fault(&history, level, as_by).is_some() {
                let small = shrink(&history, |smaller| fault(smaller, level, as_by).is_some());
                let what = fault(&small, level, as_by);
                panic!("seed {seed} at {level}: {what:?}\n{}", notation::to_string(&small));
            }
        }
    }
}

fn level(name: &str, rule: Rule, session: bool, module: impl Module + 'static) -> Level {
    let mut definition = Definition::new(&format!("{name} {rule:?} {session}"), rule).with(module);
    definition.session = session;
    definition.level().expect("the definition is right")
}

#[test]
fn edges_of_a_module_count_at_every_rule() {
    let all = RULES.into_iter().flat_map(|rule| [(rule, false), (rule, true)]);
    let levels: Vec<(Level, Level)> = all
        .map(|(rule, session)| level("arbitrary", rule, session, Arbitrary))
        .map(|level| (level, level))
        .collect();
    compare(&Shape { unknown: 15, ..Shape::registers() }, 250, &levels);
    compare(&Shape::lists(), 100, &levels);
    compare(&Shape::ranges(), 60, &levels);
}

#[test]
fn what_is_likely_changes_no_verdict() {
    let levels: Vec<(Level, Level)> = RULES
        .into_iter()
        .map(|rule| (level("unlikely", rule, false, Unlikely), Level::new(rule, false, false)))
        .collect();
    compare(&Shape::registers(), 200, &levels);
}

#[test]
fn orders_that_the_table_does_not_combine() {
    let row = |name: &str, rule: Rule, session: bool, realtime: bool| {
        let definition = Definition { session, realtime, ..Definition::new(name, rule) };
        let level = definition.level().expect("the definition is right");
        (level, Level::new(rule, session, realtime))
    };
    let levels = [
        row("session-read-uncommitted", Rule::ReadUncommitted, true, false),
        row("session-repeatable-read", Rule::RepeatableRead, true, false),
        row("session-cursor-stability", Rule::CursorStability, true, false),
        row("session-monotonic-view", Rule::MonotonicView, true, false),
        row("realtime-serializable", Rule::Serializable, false, true),
        row("realtime-snapshot-isolation", Rule::SnapshotIsolation, false, true),
        row("realtime-monotonic-view", Rule::MonotonicView, false, true),
    ];
    compare(&Shape { clocks: 100, ..Shape::registers() }, 250, &levels);
    compare(&Shape { clocks: 100, ..Shape::lists() }, 80, &levels);
}

/// Orders the only reader of each of two keys before the only writer of the other.
#[derive(Debug)]
struct Crossed;

impl Module for Crossed {
    fn name(&self) -> &str {
        "crossed"
    }

    fn add(&self, history: &History, additions: &mut Additions) -> Result<(), String> {
        let ids: Vec<_> = history.transactions().map(|it| it.id()).collect();
        additions.before.extend([(ids[1], ids[2]), (ids[3], ids[0])]);
        Ok(())
    }
}

/// What shares no key and no session is explained apart where it is large, unless a module ties it together.
#[test]
fn a_module_ties_parts_together() {
    let keys = 0..1_200;
    let text: String = keys.map(|key| format!("w{key}: w(k{key},1)\nr{key}: r(k{key},1)\n")).collect();
    let history = notation::parse(&text).expect("it is a history");
    let options = Options::default();
    assert!(matches!(check(&history, Level::SERIALIZABLE, &options).verdict, Verdict::Accepted(_)));
    for rule in [Rule::Serializable, Rule::SnapshotIsolation] {
        let level = level("crossed", rule, false, Crossed);
        match check(&history, level, &options).verdict {
            Verdict::Violated(evidence) => {
                assert!(evidence.transactions.iter().all(|txn| txn.index() < 4), "{evidence:?}");
            }
            other => panic!("{level}: {other:?}"),
        }
    }
}

#[test]
fn some_keys_are_linearizable() {
    let keys = vec!["x".to_owned()];
    let levels: Vec<(Level, Level)> = [Rule::Serializable, Rule::SnapshotIsolation, Rule::ConsistentView]
        .into_iter()
        .map(|rule| level("linearizable", rule, false, Linearizable { keys: keys.clone(), clock_skew: 0 }))
        .map(|level| (level, level))
        .collect();
    compare(&Shape { clocks: 100, ..Shape::registers() }, 300, &levels);
}

/// The pairs of the module, closed, are all pairs that touch the key and do not overlap.
#[test]
fn no_pair_of_a_linearizable_key_is_forgotten() {
    let shape = Shape { clocks: 100, unknown: 10, ..Shape::registers() };
    for seed in 0..500 {
        let history = shape.history(seed);
        let mut additions = Additions::default();
        let module = Linearizable { keys: vec!["x".to_owned(), "y".to_owned()], clock_skew: 1 };
        module.add(&history, &mut additions).expect("clocks are all it needs");
        let mut closed = additions.before.clone();
        let mut next = 0;
        while let Some(&(first, middle)) = closed.get(next) {
            for &(_, last) in additions.before.iter().filter(|(from, _)| *from == middle) {
                if !closed.contains(&(first, last)) {
                    closed.push((first, last));
                }
            }
            next += 1;
        }
        let touch = |it: &history::Transaction<'_>, name: &str| {
            it.ops().any(|(_, op)| op.key().is_some_and(|key| history.keys().get(key).to_string() == name))
        };
        for one in history.transactions().filter(|it| it.is_committed()) {
            for other in history.transactions().filter(|it| it.status() != history::Status::Aborted) {
                let ended = one.client().zip(other.client()).is_some_and(|(a, b)| a.end + 1 < b.begin);
                let both = ["x", "y"].iter().any(|name| touch(&one, name) && touch(&other, name));
                if ended && both {
                    assert!(closed.contains(&(one.id(), other.id())), "seed {seed}");
                }
            }
        }
        for (first, second) in additions.before {
            let (one, other) = (history.transaction(first), history.transaction(second));
            assert!(one.client().zip(other.client()).is_some_and(|(a, b)| a.end + 1 < b.begin));
        }
    }
}

#[test]
fn ctx_orders_transactions() {
    let toml = r#"
        [[level]]
        name = "by-version"
        edges = ["ww", "wr", "rw"]
        ctx = { versions = "v" }

        [[level]]
        name = "by-cause"
        edges = ["ww", "wr"]
        ctx = { after = "after" }

        [[level]]
        name = "by-commit"
        edges = ["ww", "wr", "rw"]
        ctx = { commit = "lsn" }

        [[level]]
        name = "by-hint"
        edges = ["ww", "wr", "rw"]
        ctx = { likely = "lsn" }
    "#;
    let levels = parse_levels(toml).expect("the file is right");
    let verdict = |text: &str, name: &str| {
        let loaded = read_stream("a test", text.trim().as_bytes(), &ReadOptions::default());
        let history = loaded.expect("the history is right").history;
        let level = levels.iter().copied().find(|it| it.name() == name).expect("it was defined");
        check(&history, level, &Options::default()).verdict
    };
    // b wrote version 1 and a version 2, so a reader of b's after a's is stale only if it also saw a.
    let text = r#"
{"session":1,"id":"a","ops":[{"op":"write","key":"x","value":1}],"ctx":{"v":{"x":2},"lsn":2}}
{"session":2,"id":"b","ops":[{"op":"write","key":"x","value":2},{"op":"write","key":"y","value":1}],"ctx":{"v":{"x":1},"lsn":1}}
{"session":3,"id":"c","ops":[{"op":"read","key":"y","value":null},{"op":"read","key":"x","value":1}],"ctx":{"after":["b"]}}
"#;
    assert_eq!(verdict(text, "by-version").name(), "violated");
    assert_eq!(verdict(text, "by-commit").name(), "violated");
    assert_eq!(verdict(text, "by-hint").name(), "accepted");
    assert_eq!(verdict(text, "by-cause").name(), "accepted");
    let Verdict::Violated(evidence) = verdict(text, "by-version") else { unreachable!("just seen") };
    assert!(evidence.edges.iter().any(|edge| edge.kind.name() == "added"), "{evidence:?}");
    let broken = r#"{"session":1,"ops":[],"ctx":{"v":7}}"#;
    assert_eq!(verdict(broken, "by-version").name(), "undecided");
}

#[test]
fn the_examples_do_what_they_say() {
    assert_eq!(example::verdict(example::FRESH), "accepted");
    assert_eq!(example::verdict(example::STALE), "violated");
    let levels =
        parse_levels(include_str!("../../../examples/levels/own.toml")).expect("the example is right");
    assert!(levels[1].row().is_some_and(|row| row.is_called("balances")), "it has another name, too");
    let text = include_str!("../../../examples/levels/stale.jsonl");
    let history = read_stream("stale.jsonl", text.as_bytes(), &ReadOptions::default());
    let history = history.expect("the example is right").history;
    let found: Vec<(&str, &str)> = levels
        .into_iter()
        .map(|level| (level.name(), check(&history, level, &Options::default()).verdict.name()))
        .collect();
    let expected = [
        ("session-repeatable-read", "accepted"),
        ("linearizable-balances", "violated"),
        ("serializable-by-versions", "violated"),
    ];
    assert_eq!(found, expected);
    assert_eq!(check(&history, Level::SERIALIZABLE, &Options::default()).verdict.name(), "accepted");
}

/// Registers whose values are written once, with clocks.
fn clocked_registers() -> Shape {
    Shape { unique_values: 100, clocks: 100, hidden: 0, unknown: 15, spoiled: 40, ..Shape::registers() }
}

/// Whether a value of a key is written twice, or is also the initial one: then it is open which version a read saw.
fn has_repeats(history: &History) -> bool {
    let mut seen: HashSet<(KeyId, ValueId)> = HashSet::new();
    history.transactions().filter(|txn| txn.status() != Status::Aborted).any(|txn| {
        let mut own: Vec<(KeyId, ValueId)> = Vec::new();
        for (_, operation) in txn.ops() {
            let (key, value) = match operation {
                Operation::Write { key, value } => (key, value),
                Operation::Delete { key } => (key, ValueId::ABSENT),
                _ => continue,
            };
            own.push((key, value));
        }
        own.sort_unstable();
        own.dedup();
        own.iter().any(|&(key, value)| history.initial_value(key) == value || !seen.insert((key, value)))
    })
}

/// Whether a history can be decided under an assumption.
fn takes(history: &History, order: KeyOrder) -> bool {
    !has_repeats(history) && (order == KeyOrder::Sequential || history.has_client_clocks())
}

#[test]
fn orders_of_versions_count_at_every_rule() {
    for order in KeyOrder::ALL {
        for rule in RULES.into_iter().filter(|&rule| rule != Rule::ReadUncommitted) {
            let level = Level::new(rule, false, false).assuming(&[order], 0).expect("it can be assumed");
            let differs = |history: &History| takes(history, order) && fault(history, level, level).is_some();
            for seed in 0..250 {
                let history = clocked_registers().history(seed);
                if differs(&history) {
                    let small = shrink(&history, differs);
                    let what = fault(&small, level, level);
                    panic!("seed {seed} at {level}: {what:?}\n{}", notation::to_string(&small));
                }
            }
        }
    }
}

/// Whether some serial order explains the history and keeps to the assumption, by trying all.
fn has_order(history: &History, order: Option<KeyOrder>) -> bool {
    let all: Vec<Transaction<'_>> =
        history.transactions().filter(|it| it.status() != Status::Aborted).collect();
    let unknown: Vec<usize> = (0..all.len()).filter(|&place| !all[place].is_committed()).collect();
    (0..1_u32 << unknown.len()).any(|chosen| {
        let is_left_out =
            |place: usize| unknown.iter().zip(0..).any(|(&it, bit)| it == place && chosen >> bit & 1 == 0);
        let effective: Vec<Transaction<'_>> =
            (0..all.len()).filter(|&place| !is_left_out(place)).map(|place| all[place]).collect();
        permuted(effective.len()).iter().any(|places| {
            let serial: Vec<Transaction<'_>> = places.iter().map(|&place| effective[place]).collect();
            explains(history, &serial, order)
        })
    })
}

fn permuted(len: usize) -> Vec<Vec<usize>> {
    (0..len).fold(vec![Vec::new()], |shorter, new| {
        let longer =
            |one: Vec<usize>| (0..=one.len()).map(move |at| [&one[..at], &[new], &one[at..]].concat());
        shorter.into_iter().flat_map(longer).collect()
    })
}

/// What a transaction finds of a key and leaves: the number of the version, 0 for the initial one.
type Touched = Vec<(KeyId, usize, usize)>;

/// Notes a write.
fn left(own: &mut Touched, key: KeyId, version: usize) {
    match own.iter_mut().find(|touch| touch.0 == key) {
        Some(touch) => touch.2 = version,
        None => own.push((key, version, version)),
    }
}

fn explains(history: &History, serial: &[Transaction<'_>], order: Option<KeyOrder>) -> bool {
    let mut newest: Vec<usize> = vec![0; history.keys().len()];
    let mut values: Vec<ValueId> = history.keys().ids().map(|key| history.initial_value(key)).collect();
    let mut touched: Vec<Touched> = Vec::new();
    for (place, txn) in serial.iter().enumerate() {
        let mut own: Touched = Vec::new();
        for (_, operation) in txn.ops() {
            match operation {
                Operation::Read { key, value, .. } => {
                    if values[key.index()] != value {
                        return false;
                    }
                    if txn.is_committed() && own.iter().all(|touch| touch.0 != key) {
                        own.push((key, newest[key.index()], newest[key.index()]));
                    }
                }
                Operation::Write { key, value } => {
                    values[key.index()] = value;
                    newest[key.index()] = place + 1;
                    left(&mut own, key, place + 1);
                }
                Operation::Delete { key } => {
                    values[key.index()] = ValueId::ABSENT;
                    newest[key.index()] = place + 1;
                    left(&mut own, key, place + 1);
                }
                other => unreachable!("{} in a history of registers", other.name()),
            }
        }
        touched.push(own);
    }
    let precedes = |first: &Transaction<'_>, second: &Transaction<'_>| {
        first.is_committed()
            && match order {
                None => false,
                Some(KeyOrder::Sequential) => {
                    first.session() == second.session() && first.position() < second.position()
                }
                Some(KeyOrder::Linearizable) => {
                    first.client().zip(second.client()).is_some_and(|(one, other)| one.end < other.begin)
                }
            }
    };
    serial.iter().zip(&touched).all(|(first, left)| {
        serial.iter().zip(&touched).filter(|(second, _)| precedes(first, second)).all(|(_, found)| {
            left.iter().all(|one| found.iter().all(|other| one.0 != other.0 || one.2 <= other.1))
        })
    })
}

#[test]
fn orders_of_versions_are_what_they_are_defined_as() {
    for order in KeyOrder::ALL {
        let level = Level::SERIALIZABLE.assuming(&[order], 0).expect("it can be assumed");
        let (mut accepted, mut narrower) = (0, 0);
        for seed in 0..1200 {
            let history = clocked_registers().history(seed);
            if !takes(&history, order) {
                continue;
            }
            let found = check(&history, level, &Options::default()).verdict;
            let expected = has_order(&history, Some(order));
            let text = || notation::to_string(&history);
            match found {
                Verdict::Accepted(_) => assert!(expected, "seed {seed}, {order}: accepted\n{}", text()),
                Verdict::Violated(_) => assert!(!expected, "seed {seed}, {order}: violated\n{}", text()),
                Verdict::Undecided(why) => panic!("seed {seed}, {order}: {why:?}\n{}", text()),
            }
            accepted += u32::from(expected);
            narrower += u32::from(!expected && has_order(&history, None));
        }
        assert!(accepted > 100 && narrower > 20, "{order}: {accepted} accepted, {narrower} only without it");
    }
}

/// Two that saw the same version may come in any order; `strong-session-` levels order them.
#[test]
fn orders_of_versions_do_not_order_transactions() {
    let text = "init: x=0 y=0\ns1: r(x,0) r(y,1) | r(x,0) r(y,0)\ns2: w(y,1)\n";
    let history = notation::parse(text).expect("a history");
    let name = |level: Level| check(&history, level, &Options::default()).verdict.name();
    assert_eq!(name(Level::SERIALIZABLE), "accepted");
    let sequential = Level::SERIALIZABLE.assuming(&[KeyOrder::Sequential], 0).expect("it can be assumed");
    assert_eq!(name(sequential), "violated");
    let text = "init: x=0 y=0 z=0\ns1: r(x,0) r(y,1) | r(x,0) r(z,0)\ns2: w(y,1) w(z,1)\n";
    let history = notation::parse(text).expect("a history");
    let name = |level: Level| check(&history, level, &Options::default()).verdict.name();
    assert_eq!(name(sequential), "accepted");
    assert_eq!(name(Level::new(Rule::Serializable, true, false)), "violated");
}

/// Values that are written twice leave open which version a read saw.
#[test]
fn orders_of_versions_need_values_that_are_written_once() {
    let text = "s1: w(x,1) | r(x,1)\ns2: w(x,1)\n";
    let history = notation::parse(text).expect("a history");
    let level = Level::SERIALIZABLE.assuming(&[KeyOrder::Sequential], 0).expect("it can be assumed");
    assert_eq!(check(&history, level, &Options::default()).verdict.name(), "undecided");
}

/// An assumption is about the database: a transaction that asked for the level asked for enough.
#[test]
fn no_transaction_asks_for_an_assumption() {
    let history =
        notation::parse("s1: w(x,1) ~serializable\ns2: r(x,1) ~read-committed\n").expect("a history");
    let assuming = |level: Level| level.assuming(&[KeyOrder::Sequential], 0).expect("it can be assumed");
    let asked = |level: Level| {
        Claim::new(level).unpromised(&history, |name| Level::parse(name).ok()).map(|(_, asked)| asked)
    };
    assert_eq!(asked(assuming(Level::parse("read-committed").expect("a level"))), None);
    assert_eq!(asked(assuming(Level::SERIALIZABLE)), Some("read-committed"));
    assert_eq!(assuming(Level::SERIALIZABLE).assumed(), (Level::SERIALIZABLE, vec![KeyOrder::Sequential]));
    assert_eq!(Level::SERIALIZABLE.assumed(), (Level::SERIALIZABLE, Vec::new()));
}
