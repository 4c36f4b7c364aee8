//! Faults planted in true histories: each is found, and nothing else is.

use crate::drawn::{self, Times};
use crate::naive;
use history::{History, Id, Name, Status, Timestamp};
use isolation::{Level, Options, Rule};
use oracle::tiny::{Datum, Random, Shape, Sketch, SketchOp};
use taipan_replay::{Axiom, Finding};

const SI: Level = Level::new(Rule::SnapshotIsolation, true, false);

fn findings(history: &History) -> Vec<Finding> {
    taipan_replay::check(history, SI, &Options::default()).expect("every transaction has timestamps").findings
}

/// A history that a correct database made: what conflicts was aborted, every result is true.
fn true_history(seed: u64) -> Sketch {
    let shape = Shape {
        transactions: (10, 30),
        sessions_max: 4,
        keys_max: 5,
        ops_max: 5,
        unique_values: 100,
        row_values: 0,
        aborted: 5,
        unknown: 0,
        hidden: 0,
        ..Shape::registers()
    };
    let mut sketch = drawn::sketch(&shape, Times::APART, seed);
    loop {
        let fixed = naive::make_true(&sketch, false);
        let found = findings(&fixed.build());
        let Some(broken) = found.first() else { return fixed };
        assert!(matches!(broken.axiom, Axiom::NoConflict | Axiom::Session), "true answers fit: {broken:?}");
        sketch.transactions[broken.txn.index()].status = Status::Aborted;
    }
}

/// Places of committed reads whose key the transaction touches only once: transaction, operation, key, value.
fn reads(sketch: &Sketch) -> Vec<(usize, usize, Name, Datum)> {
    let mut found = Vec::new();
    for (txn, it) in sketch.transactions.iter().enumerate().filter(|(_, it)| it.status == Status::Committed) {
        for (op, operation) in it.ops.iter().enumerate() {
            let SketchOp::Read { key, value, .. } = operation else { continue };
            let touches = |other: &&SketchOp| matches!(other, SketchOp::Read { key: at, .. } | SketchOp::Write { key: at, .. } if at == key);
            // Values are unique, except that several transactions may have deleted the key.
            if *value != Datum::Absent && it.ops.iter().filter(touches).count() == 1 {
                found.push((txn, op, key.clone(), value.clone()));
            }
        }
    }
    found
}

/// The values that committed transactions left in a key, with the writer, in the order of commits.
fn versions(sketch: &Sketch, key: &Name) -> Vec<(usize, Timestamp, Datum)> {
    let mut found = Vec::new();
    for (txn, it) in sketch.transactions.iter().enumerate().filter(|(_, it)| it.status == Status::Committed) {
        let last = it.ops.iter().rev().find_map(|operation| match operation {
            SketchOp::Write { key: at, value } if at == key => Some(value.clone()),
            _ => None,
        });
        if let (Some(value), Some((_, commit))) = (last, it.db) {
            found.push((txn, commit, value));
        }
    }
    found.sort_by_key(|(_, commit, _)| *commit);
    found
}

fn set_read(sketch: &mut Sketch, txn: usize, op: usize, new: Datum) {
    if let SketchOp::Read { value, .. } = &mut sketch.transactions[txn].ops[op] {
        *value = new;
    }
}

#[test]
fn a_stale_or_fractured_read_is_the_one_finding() {
    let mut planted = 0;
    for seed in 0..300 {
        let mut sketch = true_history(seed);
        let mut random = Random::new(seed);
        let candidates: Vec<_> = reads(&sketch)
            .into_iter()
            .filter_map(|(txn, op, key, value)| {
                let versions = versions(&sketch, &key);
                let place = versions.iter().position(|(_, _, other)| *other == value)?;
                // The version before, or that there was none: what a stale replica shows.
                let older = place.checked_sub(1).map_or_else(
                    || {
                        sketch
                            .initial
                            .iter()
                            .find(|(at, _)| *at == key)
                            .map_or(Datum::Absent, |it| it.1.clone())
                    },
                    |place| versions[place].2.clone(),
                );
                (older != value).then_some((txn, op, key, older, versions[place].0))
            })
            .collect();
        if candidates.is_empty() {
            continue;
        }
        let (txn, op, key, older, writer) = random.pick(&candidates).clone();
        set_read(&mut sketch, txn, op, older);
        let history = sketch.build();
        let found = findings(&history);
        assert_eq!(found.len(), 1, "seed {seed}: {found:?}\n{sketch}");
        let first_op = history.transaction(found[0].txn).op_ids().next().expect("it has operations").index();
        assert_eq!(found[0].axiom, Axiom::External);
        assert_eq!((found[0].txn.index(), found[0].op.map(|op| op.index() - first_op)), (txn, Some(op)));
        assert_eq!(found[0].key.map(|key| history.keys().get(key).to_owned()), Some(key));
        assert_eq!(found[0].other.map(Id::index), Some(writer));
        planted += 1;
    }
    assert!(planted > 100, "{planted} faults were planted");
}

/// A transaction starts before the version it overwrites is committed; everything else stays true.
#[test]
fn a_lost_update_is_a_conflict_and_nothing_else() {
    let mut planted = 0;
    for seed in 0..300 {
        let mut sketch = true_history(seed);
        let mut pairs = Vec::new();
        for key in naive::all_keys(&sketch) {
            for pair in versions(&sketch, &key).windows(2) {
                pairs.push((pair[0].0, pair[0].1, pair[1].0, key.clone()));
            }
        }
        if pairs.is_empty() {
            continue;
        }
        let (first, commit, second, key) = Random::new(seed).pick(&pairs).clone();
        let Some((_, end)) = sketch.transactions[second].db else { continue };
        let before = Timestamp::from(commit.physical - 1);
        sketch.transactions[second].db = Some((before, end));
        let history = naive::make_true(&sketch, false).build();
        let found = findings(&history);
        let named = |finding: &Finding| {
            finding.key.map(|key| history.keys().get(key).to_owned()) == Some(key.clone())
                && finding.other.map(Id::index) == Some(first)
        };
        assert!(found.iter().any(named), "seed {seed}: {found:?}\n{sketch}");
        for finding in &found {
            assert_eq!(finding.txn.index(), second, "seed {seed}: {finding:?}\n{sketch}");
            assert!(matches!(finding.axiom, Axiom::NoConflict | Axiom::Session), "{finding:?}");
        }
        planted += 1;
    }
    assert!(planted > 100, "{planted} faults were planted");
}

/// A clock that runs ahead: one commit timestamp is too late. Whoever saw the transaction before that saw the
/// future, and whoever wrote its keys before that conflicts with it.
#[test]
fn a_skewed_commit_is_found_where_somebody_noticed() {
    let (mut planted, mut noticed) = (0, 0);
    for seed in 0..300 {
        let mut sketch = true_history(seed);
        let writers: Vec<usize> = naive::all_keys(&sketch)
            .iter()
            .flat_map(|key| versions(&sketch, key))
            .map(|(txn, _, _)| txn)
            .collect();
        if writers.is_empty() {
            continue;
        }
        let skewed = *Random::new(seed).pick(&writers);
        let Some((start, commit)) = sketch.transactions[skewed].db else { continue };
        let late = Timestamp::from(commit.physical + 3500);
        sketch.transactions[skewed].db = Some((start, late));
        let wrote: Vec<Name> = naive::all_keys(&sketch)
            .into_iter()
            .filter(|key| versions(&sketch, key).iter().any(|(txn, _, _)| *txn == skewed))
            .collect();
        let history = sketch.build();
        let found = findings(&history);
        for finding in &found {
            let about_its_keys =
                finding.key.is_some_and(|key| wrote.contains(&history.keys().get(key).to_owned()));
            let about_itself = finding.other.map(Id::index) == Some(skewed) || finding.txn.index() == skewed;
            assert!(about_its_keys || about_itself, "seed {seed}: {finding:?}\n{sketch}");
        }
        // Who read its writes although it commits later now?
        for (txn, op, key, value) in reads(&sketch) {
            let its_value =
                versions(&sketch, &key).iter().any(|(writer, _, it)| *writer == skewed && *it == value);
            let (begun, _) = sketch.transactions[txn].db.expect("committed transactions have timestamps");
            if its_value && begun < late {
                let told = found.iter().any(|finding| {
                    finding.txn.index() == txn && finding.axiom == Axiom::External && finding.op.is_some()
                });
                assert!(told, "seed {seed}: operation {op} of {txn} saw the future\n{sketch}");
                noticed += 1;
            }
        }
        planted += 1;
    }
    assert!(planted > 100 && noticed > 50, "{planted} faults were planted, {noticed} reads noticed");
}
