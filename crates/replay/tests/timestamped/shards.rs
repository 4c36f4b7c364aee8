//! Shards against the whole: whatever the cut and the number of shards, the same outcome with the same argument.

use crate::drawn::{self, Times};
use history::formats::notation;
use history::{Builder, Copier, History, Id, TxnId};
use isolation::{Level, Options, Outcome, Rule, Verdict};
use oracle::tiny::{Random, Shape};
use taipan_replay::Finding;
use taipan_replay::shards::{Sessions, Shard, Suspects, Whole, applies, conclude, digest, stronger};

const LEVELS: [Level; 5] = [
    Level::new(Rule::SnapshotIsolation, false, false),
    Level::new(Rule::SnapshotIsolation, true, false),
    Level::new(Rule::SnapshotIsolation, true, true),
    Level::new(Rule::Serializable, false, false),
    Level::new(Rule::Serializable, true, false),
];

/// Consecutive transactions as histories of their own, which know nothing of those before.
fn cut(history: &History, random: &mut Random) -> Vec<History> {
    let mut parts = Vec::new();
    let mut from = 0;
    while from < history.len() || parts.is_empty() {
        let to = (from + 1 + random.below(4)).min(history.len());
        let mut builder = Builder::new();
        let mut copier = Copier::new(history);
        if from == 0 {
            copier.header(&mut builder, |_| true);
        }
        for txn in (from..to).map(TxnId::new) {
            copier.transaction(txn, None, &mut builder).expect("a transaction of the whole");
        }
        parts.push(builder.finish().expect("a part"));
        from = to;
    }
    parts
}

/// What is not settled; the frontier moves with what is certain.
fn suspects(parts: &[History], level: Level, shards: usize, random: &mut Random) -> Suspects {
    let mut suspects = Suspects::default();
    let mut all: Vec<Shard> = (0..shards).map(|_| Shard::new(level)).collect();
    let mut sessions = Sessions::new(level);
    let digested: Vec<_> =
        parts.iter().enumerate().map(|(order, part)| digest(part, order as u64, shards, level)).collect();
    for (part, digested) in parts.iter().zip(&digested) {
        let committed = part.transactions().filter(|txn| txn.is_committed()).count();
        assert_eq!(digested.committed, committed as u64, "whatever their timestamps");
    }
    let mut first_after = vec![i64::MAX; parts.len() + 1];
    for (number, part) in digested.iter().enumerate().rev() {
        let first = part.commits.map_or(i64::MAX, |(first, _)| first.physical);
        first_after[number] = first.min(first_after[number + 1]);
    }
    for (number, part) in digested.into_iter().enumerate() {
        suspects.extend(part.suspects);
        part.ends.into_iter().for_each(|ends| sessions.receive(ends));
        for digest in part.digests {
            all[digest.home as usize].receive(digest);
        }
        if random.chance(60) {
            all.iter_mut().for_each(|shard| shard.settle(Some(first_after[number + 1])));
        }
    }
    sessions.finish(&mut suspects);
    for mut shard in all {
        shard.settle(None);
        assert!(!shard.is_disordered(), "the frontier was right");
        shard.finish(&mut suspects);
    }
    suspects
}

fn gather(history: &History, parts: &[History], suspects: &Suspects) -> History {
    let mut builder = Builder::new();
    let mut before = 0;
    for part in parts {
        let mut copier = Copier::new(part);
        if before == 0 {
            let keys = suspects.keys_of(part);
            copier.header(&mut builder, |key| keys[key.index()]);
        }
        for txn in suspects.pick(part) {
            let name = history.transaction(TxnId::new(before + txn.index())).name().to_string();
            copier.transaction(txn, Some(&name), &mut builder).expect("names are unique");
        }
        before += part.len();
    }
    builder.finish().expect("a history")
}

/// All that is reported about an outcome, by names.
fn told(history: &History, (outcome, findings): &(Outcome, Vec<Finding>)) -> Vec<String> {
    let name = |txn: Option<TxnId>| txn.map(|txn| history.transaction(txn).name().to_string());
    let mut told = vec![outcome.verdict.name().to_owned()];
    if let Verdict::Violated(evidence) = &outcome.verdict {
        told.push(format!("{:?}", evidence.anomaly));
        told.extend(evidence.names(history));
        for edge in &evidence.edges {
            let key = edge.key.map(|key| history.keys().get(key).to_string());
            told.push(format!("{:?} {:?} {:?} {key:?}", name(edge.from), name(Some(edge.to)), edge.kind));
        }
    }
    for finding in findings {
        let op = finding.op.map(|op| op.index() - history.transaction(finding.txn).first_op().index());
        let key = finding.key.map(|key| history.keys().get(key).to_string());
        let (txn, other) = (name(Some(finding.txn)), name(finding.other));
        told.push(format!("{:?} {txn:?} {op:?} {key:?} {other:?}", finding.axiom));
    }
    told
}

fn compare(shape: &Shape, times: Times, seeds: std::ops::Range<u64>) -> [usize; 3] {
    let mut counts = [0; 3];
    for seed in seeds {
        let mut random = Random::new(seed ^ 0x5a4d);
        let history = drawn::sketch(shape, times, seed).build();
        let parts = cut(&history, &mut random);
        for level in LEVELS {
            let options = Options::default();
            applies(level, &options).expect("timestamps decide it");
            let whole = taipan_replay::judge(&history, level, &options);
            let shards = 1 + random.below(4);
            let suspects = suspects(&parts, level, shards, &mut random);
            let expected = told(&history, &whole);
            if suspects.is_empty() {
                assert_eq!(expected, ["accepted"], "seed {seed} at {level}, {shards} shards: {history:?}");
                counts[0] += 1;
                continue;
            }
            let picked = gather(&history, &parts, &suspects);
            let concluded = conclude(&picked, level, &options, &suspects);
            assert_eq!(told(&picked, &concluded), expected, "seed {seed} at {level}, {shards} shards");
            counts[if suspects.whole.is_some() { 2 } else { 1 }] += 1;
        }
    }
    counts
}

#[test]
fn registers_in_shards_are_the_whole() {
    let shape = Shape { transactions: (1, 14), keys_max: 5, sessions_max: 4, ..Shape::registers() };
    for times in [Times::CROWDED, Times::APART] {
        let [settled, gathered, whole] = compare(&shape, times, 0..1_500);
        assert!(settled > 300 && gathered > 1_500, "{settled} settled, {gathered} gathered, {whole} whole");
    }
}

#[test]
fn lists_and_ranges_are_gathered() {
    for shape in [Shape::lists(), Shape::ranges()] {
        let shape = Shape { transactions: (1, 10), ..shape };
        let [_, gathered, whole] = compare(&shape, Times::CROWDED, 0..600);
        assert!(gathered + whole > 1_000, "{gathered} gathered, {whole} whole");
    }
}

#[test]
fn what_comes_after_it_was_said_not_to_is_noticed() {
    let level = LEVELS[0];
    let shape = Shape { transactions: (4, 4), aborted: 0, unknown: 0, ..Shape::registers() };
    let history = drawn::sketch(&shape, Times::APART, 7).build();
    let digested = digest(&history, 0, 1, level);
    let mut shard = Shard::new(level);
    shard.settle(Some(i64::MAX - 1));
    digested.digests.into_iter().for_each(|digest| shard.receive(digest));
    assert!(shard.is_disordered());
    let causal = Level::new(Rule::Causal, true, false);
    assert_eq!(stronger(causal), Some(Level::new(Rule::SnapshotIsolation, true, false)));
    assert_eq!(stronger(Level::STRICT_SERIALIZABLE), None);
    assert_eq!(applies(causal, &Options::default()), Err(Whole::Level));
}

/// A history is refused as empty only if nothing in it committed.
#[test]
fn what_committed_is_counted_without_timestamps_too() {
    for text in ["s1: w(x,1)", "s1: w(x,1)@@5..2"] {
        let part = notation::parse(text).expect("the notation is right");
        assert_eq!(digest(&part, 0, 2, LEVELS[0]).committed, 1, "{text}");
    }
}
