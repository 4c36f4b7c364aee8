//! A database whose plain reads see a snapshot and whose writes see the newest state, simulated: taken apart, its histories
//! are serializable, and its bugs are not.

use evidence::check;
use history::formats::notation;
use history::{Builder, History, KeyId, Lock};
use isolation::{Level, Options, Verdict, logical::split};
use oracle::tiny::Random;
use std::collections::BTreeMap;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    /// A row that is set to the value it has already stays as the snapshot shows it (MDEV-26642).
    EqualWrites,
    /// Plain reads see the newest state.
    NoSnapshot,
}

/// A transaction that is under way.
#[derive(Default)]
struct Open {
    snapshot: Option<BTreeMap<KeyId, i64>>,
    own: BTreeMap<KeyId, i64>,
    hidden: Vec<KeyId>,
    ops: Vec<(KeyId, i64, Option<Lock>)>,
    left: usize,
}

const SESSIONS: usize = 3;

fn history(seed: u64, bug: Bug) -> History {
    let mut random = Random::new(seed);
    let mut builder = Builder::new();
    let keys = ["x", "y", "z"].map(|name| builder.key(name.into()));
    let mut committed: BTreeMap<KeyId, i64> = keys.map(|key| (key, 0)).into();
    for &key in &keys {
        let zero = builder.int(0);
        builder.initial(key, zero);
    }
    let mut locks: BTreeMap<KeyId, usize> = BTreeMap::new();
    let mut open: Vec<Option<Open>> = (0..SESSIONS).map(|_| None).collect();
    let mut value = 0;
    let mut done = 0;
    while done < 14 {
        let session = random.below(SESSIONS);
        let txn = open[session].get_or_insert_with(|| Open { left: 2 + random.below(6), ..Open::default() });
        if txn.left == 0 {
            let txn = open[session].take().expect("it is open");
            committed.extend(&txn.own);
            locks.retain(|_, owner| *owner != session);
            let name = builder.session((session as i64).into());
            builder.begin(name);
            for (key, value, lock) in txn.ops {
                let value = builder.int(value);
                match lock {
                    Some(lock) => builder.read(key, value, lock),
                    None => builder.write(key, value),
                };
            }
            builder.end().expect("it is short");
            done += 1;
            continue;
        }
        let key = keys[random.below(3)];
        let kind = random.below(5);
        let is_locked = locks.get(&key).is_some_and(|&owner| owner != session);
        if kind >= 2 && is_locked {
            // It would wait; it ends instead, so that nobody waits for ever.
            txn.left = 0;
            continue;
        }
        txn.left -= 1;
        match kind {
            0 | 1 => {
                let snapshot = txn.snapshot.get_or_insert_with(|| committed.clone());
                let own = txn.own.get(&key).filter(|_| !txn.hidden.contains(&key));
                let outside = if bug == Bug::NoSnapshot { committed[&key] } else { snapshot[&key] };
                txn.ops.push((key, own.copied().unwrap_or(outside), Some(Lock::None)));
            }
            2 => {
                locks.insert(key, session);
                let seen = txn.own.get(&key).copied().unwrap_or(committed[&key]);
                txn.ops.push((key, seen, Some(Lock::Update)));
            }
            _ => {
                locks.insert(key, session);
                value += 1;
                // Every other write repeats what is there.
                let wrote = if random.below(2) == 0 { value } else { committed[&key] };
                if bug == Bug::EqualWrites && wrote == committed[&key] && !txn.own.contains_key(&key) {
                    txn.hidden.push(key);
                } else {
                    txn.hidden.retain(|it| *it != key);
                }
                txn.own.insert(key, wrote);
                txn.ops.push((key, wrote, None));
            }
        }
    }
    builder.finish().expect("names are given")
}

fn verdict(history: &History, level: &str) -> Verdict {
    let level = Level::parse(level).expect("a name of the table");
    check(history, level, &Options::default()).verdict
}

#[test]
fn what_is_by_design_is_accepted() {
    let mut beyond = 0;
    for seed in 0..1_500 {
        let history = history(seed, Bug::None);
        let split = split(&history);
        let found = verdict(&split, "strong-session-serializable");
        assert_eq!(found.name(), "accepted", "seed {seed}:\n{}", notation::to_string(&split));
        beyond += usize::from(verdict(&history, "SI").name() == "violated");
    }
    assert!(beyond > 50, "only {beyond} of the histories are beyond snapshot isolation");
}

#[test]
fn bugs_are_caught() {
    for bug in [Bug::EqualWrites, Bug::NoSnapshot] {
        let caught = (0..600).filter(|&seed| {
            let split = split(&history(seed, bug));
            verdict(&split, "strong-session-serializable").name() == "violated"
        });
        let count = caught.count();
        assert!(count > 10, "{count} caught");
    }
}

#[test]
fn scans_are_cut_at_own_keys() {
    let text = "init: a=1 b=1 c=1\ns: w(b,2) scan(a..z)=[a:1 b:2 c:1]\n";
    let history = notation::parse(text).expect("the notation is right");
    let halves = split(&history);
    let text = notation::to_string(&halves);
    assert_eq!(verdict(&halves, "strong-session-serializable").name(), "accepted", "{text}");
    assert!(text.contains("w(b,2) r(b,2)"), "{text}");
    // The end of a range is not in it.
    let ends = notation::parse("init: a=1 b=1\ns: w(b,2) scan(a..b)=[a:1]\n").expect("the notation is right");
    let text = notation::to_string(&split(&ends));
    assert!(text.contains("scan(a..b)=[a:1]") && !text.contains("r(b"), "{text}");
    let stale = "init: a=1 b=1 c=1\ns: w(b,2) scan(a..z)=[a:1 b:1 c:1]\n";
    let stale = split(&notation::parse(stale).expect("the notation is right"));
    assert_eq!(verdict(&stale, "strong-session-serializable").name(), "violated");
}
