//! Parts in the order of commits, against the whole.

use history::{Builder, History, Lock, Timestamp, ValueId};
use isolation::{Level, Options, Rule};
use oracle::tiny::Random;
use taipan_replay::{Stopped, Streamed};

/// One transaction: session, start, commit, and operations (is it a write, key, value).
type Txn = (i64, i64, i64, Vec<(bool, i64, i64)>);

/// Transactions in the order of commits, which mostly keep snapshot isolation.
fn transactions(random: &mut Random) -> Vec<Txn> {
    let mut versions: Vec<Vec<(i64, i64)>> = vec![vec![(0, 0)]; 4];
    let mut commit = 0;
    (0..2 + random.below(12))
        .map(|number| {
            commit += 1 + random.below(5) as i64;
            let start = commit - random.below(8) as i64;
            let mut own: Vec<Option<i64>> = vec![None; 4];
            let ops = (0..random.below(4))
                .map(|place| {
                    let key = random.below(4);
                    if random.chance(40) {
                        let value = if random.chance(20) { 0 } else { (10 * number + place) as i64 };
                        own[key] = Some(value);
                        return (true, key as i64, value);
                    }
                    let seen =
                        versions[key].iter().rfind(|(at, _)| *at <= start).map_or(0, |(_, value)| *value);
                    let wrong = if random.chance(5) { 7 } else { 0 };
                    (false, key as i64, own[key].unwrap_or(seen) + wrong)
                })
                .collect();
            for (key, value) in own.iter().enumerate().filter_map(|(key, own)| Some((key, (*own)?))) {
                versions[key].push((commit, value));
            }
            (random.below(3) as i64, start, commit, ops)
        })
        .collect()
}

/// Zero stands for an absent key.
fn add(builder: &mut Builder, (session, start, commit, ops): &Txn) {
    let session = builder.session((*session).into());
    builder.begin(session);
    // Some have names.
    if commit % 2 == 0 {
        builder.set_id((*commit).into()).expect("commits differ");
    }
    for &(writes, key, value) in ops {
        let key = builder.key(key.into());
        let value = match value {
            0 => ValueId::ABSENT,
            value if value % 3 == 0 => builder.text(&format!("v{value}")),
            value => builder.int(value),
        };
        match writes {
            true => builder.write(key, value),
            false => builder.read(key, value, Lock::None),
        };
    }
    let time = |at: i64| Timestamp::from(at);
    builder.set_db(time(*start), time(*commit)).expect("start is not after commit");
    builder.end().expect("a transaction");
}

fn whole(txns: &[Txn]) -> History {
    let mut builder = Builder::new();
    txns.iter().for_each(|txn| add(&mut builder, txn));
    builder.finish().expect("a history")
}

#[test]
fn parts_are_accepted_exactly_if_the_whole_is() {
    let (mut accepted, mut violated, mut covered) = (0, 0, 0);
    for seed in 0..3_000 {
        let mut random = Random::new(seed);
        let txns = transactions(&mut random);
        for rule in [Rule::SnapshotIsolation, Rule::Serializable] {
            for session in [false, true] {
                let level = Level::new(rule, session, false);
                let report = taipan_replay::check(&whole(&txns), level, &Options::default());
                let is_clean = report.expect("every transaction has timestamps").findings.is_empty();
                let mut streamed = Streamed::new(level).expect("timestamps decide it");
                let mut builder = Builder::new();
                let mut result = Ok(());
                for (number, txn) in txns.iter().enumerate() {
                    add(&mut builder, txn);
                    if random.chance(30) || number + 1 == txns.len() {
                        let part = builder.take_part().expect("a part");
                        result = result.and_then(|()| streamed.take(&part));
                    }
                }
                assert_ne!(result, Err(Stopped::Beyond), "seed {seed}");
                assert_eq!(result.is_ok(), is_clean, "seed {seed} at {level}: {txns:?}");
                if is_clean {
                    accepted += 1
                } else {
                    violated += 1
                }
                // Where no value was written twice, results tell who was read as well as timestamps do.
                let tested = isolation::coverage(&whole(&txns));
                if is_clean && tested.ambiguous == 0 {
                    assert_eq!(streamed.coverage(), tested, "seed {seed} at {level}: {txns:?}");
                    covered += 1;
                }
            }
        }
    }
    assert!(accepted > 1_000 && violated > 1_000, "{accepted} accepted, {violated} violated");
    assert!(covered > 500, "what {covered} tested was compared");
}

#[test]
fn what_is_out_of_order_is_left_to_others() {
    let level = Level::SNAPSHOT_ISOLATION;
    for txns in [[(1, 1, 5, vec![]), (2, 1, 5, vec![])], [(1, 1, 5, vec![]), (2, 1, 4, vec![])]] {
        let mut streamed = Streamed::new(level).expect("timestamps decide it");
        assert_eq!(streamed.take(&whole(&txns)), Err(Stopped::Beyond));
    }
    assert!(Streamed::new(Level { rule: Rule::Causal, ..level }).is_err());
}
