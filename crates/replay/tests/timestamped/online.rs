//! The online checker tells what the offline one tells, whatever the order of arrival, with restarts and a
//! cold store in between.

use crate::drawn::{self, Times};
use crate::naive;
use history::formats::{Format, ReadOptions, read_bytes, write_string};
use history::{History, Id, Status, Timestamp, Transaction};
use isolation::{Level, Options, Rule, Ryow};
use oracle::tiny::{Random, Shape, Sketch};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use taipan_replay::online::{
    Cold, ColdKey, ColdRecord, ColdTime, Datum, Found, Kind, MemoryCold, Online, Settings,
};
use taipan_replay::{Axiom, Content, Finding};

const fn level(rule: Rule, session: bool) -> Level {
    Level::new(rule, session, false)
}

pub(crate) const LEVELS: [Level; 4] = [
    level(Rule::SnapshotIsolation, false),
    level(Rule::SnapshotIsolation, true),
    level(Rule::Serializable, false),
    level(Rule::Serializable, true),
];

/// A cold store that outlives the checker, as a file does.
#[derive(Clone, Default)]
pub(crate) struct Kept(Arc<Mutex<MemoryCold>>);

impl Kept {
    fn with<T>(&self, work: impl FnOnce(&mut MemoryCold) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Cold for Kept {
    fn put(&mut self, records: Vec<ColdRecord>) -> io::Result<()> {
        self.with(|cold| cold.put(records))
    }

    fn newest(&mut self, key: &ColdKey, until: ColdTime) -> io::Result<Option<ColdRecord>> {
        self.with(|cold| cold.newest(key, until))
    }

    fn keys(&mut self, from: Option<&ColdKey>, to: Option<&ColdKey>) -> io::Result<Vec<ColdKey>> {
        self.with(|cold| cold.keys(from, to))
    }

    fn forget(&mut self, until: ColdTime) -> io::Result<()> {
        self.with(|cold| cold.forget(until))
    }

    fn bytes(&self) -> u64 {
        self.with(|cold| cold.bytes())
    }
}

/// A history as lines: the header if there is one, then one transaction per line with its sequence number.
pub(crate) fn lines(history: &History) -> (Option<String>, Vec<String>) {
    let text = write_string(history, Format::Jsonl).expect("JSON lines hold everything");
    let mut header = None;
    let mut lines = Vec::new();
    let mut transactions = history.transactions();
    for line in text.lines() {
        if line.starts_with("{\"history\"") {
            header = Some(line.to_owned());
            continue;
        }
        let position = transactions.next().expect("a line a transaction").position();
        lines.push(format!("{{\"seq\":{position},{}", &line[1..]));
    }
    (header, lines)
}

pub(crate) fn part(lines: &[String]) -> History {
    let text = lines.join("\n");
    let options = ReadOptions { format: Some(Format::Jsonl), ..ReadOptions::default() };
    read_bytes("part", text.as_bytes(), &options).expect("what was written can be read").history
}

/// What matters of a finding, in words.
type Words = (String, String, Option<usize>, Option<String>, Option<String>, String, String);

fn online_words(found: &Found) -> Words {
    let show = |datum: &Option<Datum>| datum.as_ref().map(Datum::to_string);
    let (expected, seen) = match found.counts {
        Some((expected, seen)) => (Some(expected.to_string()), Some(seen.to_string())),
        None => (show(&found.expected), show(&found.seen)),
    };
    (
        found.kind.name().to_owned(),
        found.txn.name.clone(),
        found.op.map(|op| op as usize),
        found.key.as_ref().map(ToString::to_string),
        found.other.as_ref().map(|other| other.name.clone()),
        expected.unwrap_or_default(),
        seen.unwrap_or_default(),
    )
}

fn offline_words(history: &History, finding: &Finding) -> Words {
    let values = history.values();
    let show = |content: &Content| match content {
        Content::Value(id) => Datum::of(values, *id).to_string(),
        Content::List(elements) => {
            Datum::list(elements.iter().map(|&id| Datum::of(values, id)).collect()).to_string()
        }
        Content::Count(count) => count.to_string(),
        Content::Time(_) | Content::Clock(_) => String::new(),
    };
    let first = history.transaction(finding.txn).op_ids().next().map_or(0, Id::index);
    (
        finding.axiom.name().to_owned(),
        history.transaction(finding.txn).name().to_string(),
        finding.op.map(|op| op.index() - first),
        finding.key.map(|key| history.keys().get(key).to_string()),
        finding.other.map(|txn| history.transaction(txn).name().to_string()),
        show(&finding.expected),
        show(&finding.seen),
    )
}

fn offline(history: &History, level: Level, ryow: Ryow) -> Vec<Words> {
    let options = Options { ryow, ..Options::default() };
    let report = taipan_replay::check(history, level, &options).expect("every transaction has timestamps");
    let mut words: Vec<Words> =
        report.findings.iter().map(|finding| offline_words(history, finding)).collect();
    words.sort();
    words
}

/// How a stream is fed to the checker.
#[derive(Clone, Copy, Debug)]
struct Feed {
    seed: u64,
    /// How far out of order transactions arrive.
    jitter: usize,
    /// Percent of steps after which the state is saved and restored.
    restarts: u32,
    /// The most bytes in memory; the rest is cold.
    memory_max: Option<usize>,
    /// Whether the checker is told that nothing old will come.
    horizon: bool,
    ryow: Ryow,
}

/// When transactions arrive: roughly by commit, as far out of order as `jitter` says.
fn arrivals(history: &History, feed: Feed, random: &mut Random) -> Vec<usize> {
    let mut order: Vec<(usize, usize)> = Vec::new();
    let mut by_commit: Vec<usize> = (0..history.len()).collect();
    by_commit.sort_by_key(|&txn| history.transaction(Id::new(txn)).db().map(|(_, commit)| commit));
    for (place, txn) in by_commit.into_iter().enumerate() {
        order.push((place + random.below(feed.jitter + 1), txn));
    }
    order.sort();
    order.into_iter().map(|(_, txn)| txn).collect()
}

/// Runs a stream through the online checker and returns all findings.
fn online(history: &History, level: Level, feed: Feed) -> (Vec<Words>, Online) {
    let mut random = Random::new(feed.seed);
    let (header, lines) = lines(history);
    let order = arrivals(history, feed, &mut random);
    let settings = Settings { memory_max: feed.memory_max, ryow: feed.ryow, ..Settings::new(level) };
    let kept = Kept::default();
    let mut online =
        Online::new(settings.clone()).expect("the level is decided").with_cold(Box::new(kept.clone()));
    let mut found = Vec::new();
    if let Some(header) = header {
        online.receive(&part(&[header])).expect("the cold store works");
    }
    let has_unknown = history.transactions().any(|txn| txn.status() == Status::Unknown);
    let mut next = 0;
    while next < order.len() {
        let count = random.between(1, 3).min(order.len() - next);
        let batch: Vec<String> = order[next..next + count].iter().map(|&txn| lines[txn].clone()).collect();
        online.receive(&part(&batch)).expect("the cold store works");
        next += count;
        if random.chance(60)
            && let Some((watermark, horizon)) = safe_watermark(history, &order[next..], has_unknown)
        {
            online.advance(watermark, feed.horizon.then_some(horizon)).expect("the cold store works");
        }
        found.extend(online.findings().expect("the store works"));
        if random.chance(feed.restarts) {
            let mut state = Vec::new();
            online.save(&mut state).expect("a vector takes everything");
            online = Online::restore(settings.clone(), &mut state.as_slice())
                .expect("what was saved can be restored")
                .with_cold(Box::new(kept.clone()));
            let mut again = Vec::new();
            online.save(&mut again).expect("a vector takes everything");
            assert!(state == again, "a restored state is the same state");
        }
    }
    online.finish().expect("the cold store works");
    found.extend(online.findings().expect("the store works"));
    for (number, found) in found.iter().enumerate() {
        assert_eq!(found.number, number as u64, "findings are numbered without gaps");
    }
    let mut words: Vec<Words> = found.iter().map(online_words).collect();
    words.sort();
    (words, online)
}

/// The latest watermark that no transaction still to come is behind, and the same for starts.
pub(crate) fn safe_watermark(
    history: &History,
    coming: &[usize],
    has_unknown: bool,
) -> Option<(Timestamp, Timestamp)> {
    let coming: Vec<_> = coming.iter().map(|&txn| history.transaction(Id::new(txn))).collect();
    if coming.iter().any(|txn| txn.status() == Status::Unknown) {
        return None;
    }
    let times = || coming.iter().filter(|txn| txn.is_committed()).filter_map(|txn| txn.db());
    let (start, commit) = (times().map(|(start, _)| start).min()?, times().map(|(_, commit)| commit).min()?);
    // What has arrived before its predecessor in the session must wait for it.
    let followed = |txn: &Transaction<'_>| {
        coming.iter().any(|other| other.session() == txn.session() && other.position() < txn.position())
    };
    let waiting = history.transactions().filter(|txn| txn.is_committed() && followed(txn));
    let waiting = waiting.filter_map(|txn| txn.db()).map(|(_, commit)| commit).min();
    // One before: what is coming must lie behind the watermark, not on it.
    let limit = if has_unknown { start.min(commit) } else { commit };
    let limit = waiting.map_or(limit, |waiting| waiting.min(limit));
    let before = match limit.logical {
        0 => Timestamp { physical: limit.physical - 1, logical: u32::MAX },
        logical => Timestamp { logical: logical - 1, ..limit },
    };
    Some((before, start))
}

pub(crate) fn shapes() -> Vec<Shape> {
    [
        Shape::registers(),
        Shape::lists(),
        Shape::ranges(),
        Shape::predicates(),
        Shape::everything(),
        Shape::swaps(),
    ]
    .map(|shape| Shape { transactions: (1, 14), sessions_max: 4, keys_max: 4, ops_max: 5, ..shape })
    .to_vec()
}

fn compare(sketch: &Sketch, level: Level, feed: Feed) -> Result<usize, String> {
    let history = sketch.build();
    let has_unknown = history.transactions().any(|txn| txn.status() == Status::Unknown);
    if has_unknown || !taipan_replay::applies(&history, level) {
        return Ok(0);
    }
    // Behind the horizon a key that was deleted is forgotten, and with it who deleted it.
    let nameless = |words: &mut Words| {
        if feed.horizon && words.0 != Axiom::NoConflict.name() {
            words.4 = None;
        }
    };
    let mut expected = offline(&history, level, feed.ryow);
    expected.iter_mut().for_each(nameless);
    let (mut found, online) = online(&history, level, feed);
    found.iter_mut().for_each(nameless);
    let size = online.size();
    if size.open_results != 0 || online.counters().provisional != 0 {
        return Err(format!("verdicts are open at the end: {size:?} {:?}", online.counters()));
    }
    if found == expected {
        return Ok(found.len());
    }
    let lines = |words: &[Words]| words.iter().map(|words| format!("\n  {words:?}")).collect::<String>();
    Err(format!("online:{}\noffline:{}", lines(&found), lines(&expected)))
}

fn agree(shape: &Shape, times: Times, feed: Feed, level: Level) -> usize {
    let sketch = drawn::sketch(&shape.clone().with_ryow(feed.ryow), times, feed.seed);
    match compare(&sketch, level, feed) {
        Ok(found) => found,
        Err(_) => {
            let differs = |history: &History| compare(&Sketch::of(history), level, feed).is_err();
            let small = Sketch::of(&oracle::tiny::shrink(&sketch.build(), differs));
            let why = compare(&small, level, feed).expect_err("shrinking keeps the difference");
            panic!("{feed:?}, {level:?}:\n{small}\n{why}");
        }
    }
}

#[test]
fn arrivals_in_any_order_give_the_offline_findings() {
    let mut found = 0;
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 0..150 {
                for (place, level) in LEVELS.into_iter().enumerate() {
                    let jitter = [0, 3, 8, 100][(seed as usize + place) % 4];
                    let ryow = [Ryow::Must, Ryow::Must, Ryow::May, Ryow::Never][seed as usize / 4 % 4];
                    let feed =
                        Feed { seed, jitter, restarts: 0, memory_max: None, horizon: seed % 2 == 0, ryow };
                    found += agree(&shape, times, feed, level);
                }
            }
        }
    }
    assert!(found > 3000, "{found} findings");
}

#[test]
fn restarts_and_cold_keys_change_nothing() {
    let mut found = 0;
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 1000..1100 {
                for level in LEVELS {
                    let feed = Feed {
                        seed,
                        jitter: 6,
                        restarts: 40,
                        memory_max: [None, Some(1), Some(3000)][seed as usize % 3],
                        horizon: seed % 4 == 0,
                        ryow: Ryow::Must,
                    };
                    found += agree(&shape, times, feed, level);
                }
            }
        }
    }
    assert!(found > 2000, "{found} findings");
}

#[test]
fn what_is_late_lost_or_doubled_is_told_as_such() {
    let line = |session: u32, seq: u32, start: u32, commit: u32, ops: &str| {
        format!(
            "{{\"session\":{session},\"seq\":{seq},\"db\":{{\"start\":{start},\"commit\":{commit}}},\"ops\":[{ops}]}}"
        )
    };
    let write = |key: &str, value: u32| format!("{{\"op\":\"write\",\"key\":\"{key}\",\"value\":{value}}}");
    let read = |key: &str, value: u32| format!("{{\"op\":\"read\",\"key\":\"{key}\",\"value\":{value}}}");
    let mut online = Online::new(Settings::new(level(Rule::SnapshotIsolation, true))).expect("decided");
    let feed = |online: &mut Online, lines: &[String]| online.receive(&part(lines)).expect("no cold store");
    feed(&mut online, &[line(1, 0, 1, 2, &write("x", 1)), line(1, 2, 5, 6, &write("x", 3))]);
    feed(&mut online, &[line(1, 0, 1, 2, &write("x", 1))]);
    online.advance(Timestamp::from(6), None).expect("no cold store");
    let words: Vec<_> = online
        .findings()
        .expect("the store works")
        .iter()
        .map(|found| (found.kind, found.txn.name.clone(), found.missing))
        .collect();
    assert_eq!(
        words,
        [(Kind::Duplicate, "1:0".to_owned(), None), (Kind::Lost, "1:1".to_owned(), Some((1, 1)))]
    );
    // The lost one comes after all: late, but what it wrote counts for those that look later.
    feed(&mut online, &[line(1, 1, 3, 4, &write("y", 2)), line(2, 0, 7, 7, &read("y", 2))]);
    online.finish().expect("no cold store");
    let words: Vec<_> = online
        .findings()
        .expect("the store works")
        .iter()
        .map(|found| (found.kind, found.txn.name.clone()))
        .collect();
    assert_eq!(words, [(Kind::Late, "1:1".to_owned())]);
    assert_eq!(online.counters().settled, 5);
}

#[test]
fn a_provisional_finding_can_be_righted_and_counts_as_a_flip() {
    let mut online = Online::new(Settings::new(level(Rule::SnapshotIsolation, false))).expect("decided");
    let reader = r#"{"session":2,"db":{"start":5,"commit":5},"ops":[{"op":"read","key":"x","value":1}]}"#;
    let writer = r#"{"session":1,"db":{"start":1,"commit":2},"ops":[{"op":"write","key":"x","value":1}]}"#;
    online.receive(&part(&[reader.to_owned()])).expect("no cold store");
    assert_eq!((online.counters().provisional, online.counters().flips), (1, 0));
    let provisional = online.provisional(10);
    assert_eq!(provisional.len(), 1);
    assert_eq!(provisional[0].kind, Kind::Broken(Axiom::External));
    online.receive(&part(&[writer.to_owned()])).expect("no cold store");
    assert_eq!((online.counters().provisional, online.counters().flips), (0, 1));
    online.finish().expect("no cold store");
    assert_eq!(online.findings().expect("the store works"), []);
}

/// Whatever byte of a saved state is changed or missing, it is refused and nothing panics.
#[test]
fn a_damaged_state_is_refused() {
    let shape = Shape { transactions: (14, 14), ..Shape::everything() };
    let history =
        naive::make_true(&drawn::sketch(&Shape { unknown: 0, ..shape }, Times::APART, 3), false).build();
    let settings = Settings::new(level(Rule::SnapshotIsolation, true));
    let mut online = Online::new(settings.clone()).expect("decided");
    let (_, lines) = lines(&history);
    online.receive(&part(&lines)).expect("no cold store");
    online.findings().expect("the store works");
    let mut state = Vec::new();
    online.save(&mut state).expect("a vector takes everything");
    for place in 0..state.len() {
        let mut damaged = state.clone();
        damaged[place] ^= 1 << (place % 8);
        assert!(Online::restore(settings.clone(), &mut damaged.as_slice()).is_err(), "byte {place}");
        assert!(Online::restore(settings.clone(), &mut &state[..place]).is_err(), "cut at {place}");
    }
}
