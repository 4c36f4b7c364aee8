//! The engine over restarts: whatever the order of arrival and wherever it is stopped, what is reported is the same, once.

use isolation::{Level, Rule};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use replay::online::{Cold, Here, Settings, Workers};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;
use taipan_service::{Batch, Crew, Engine, EngineOptions, Pace, Told};

const SI: Level = Level::new(Rule::SnapshotIsolation, true, false);

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Transactions of three sessions on a few keys, some of whose reads are wrong; in the order of commits.
fn transactions(seed: u64, count: u64, keys: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut values = vec![0; keys as usize];
    let mut seqs = [0; 3];
    (0..count)
        .map(|number| {
            let (start, commit) = (10 * number + 1, 10 * number + 5);
            let session = random.below(3) as usize;
            let mut ops = Vec::new();
            for _ in 0..=random.below(3) {
                let key = random.below(keys) as usize;
                if random.below(2) == 0 {
                    // Now and then a read that its snapshot does not hold.
                    let value = if random.below(12) == 0 { 7 } else { values[key] };
                    ops.push(format!(r#"{{"op":"read","key":{key},"value":{value}}}"#));
                } else {
                    values[key] = 100 + commit;
                    ops.push(format!(r#"{{"op":"write","key":{key},"value":{}}}"#, values[key]));
                }
            }
            seqs[session] += 1;
            format!(
                r#"{{"session":{session},"seq":{},"db":{{"start":{start},"commit":{commit}}},"ops":[{}]}}"#,
                seqs[session],
                ops.join(",")
            )
        })
        .collect()
}

fn header(keys: u64) -> String {
    let initial: Vec<String> = (0..keys).map(|key| format!(r#""{key}":0"#)).collect();
    format!(r#"{{"history":1,"initial":{{{}}}}}"#, initial.join(","))
}

/// Moves transactions by fewer than `jitter` places.
fn shuffled(mut lines: Vec<String>, jitter: u64, random: &mut Random) -> Vec<String> {
    let mut keyed: Vec<(u64, String)> = lines
        .drain(..)
        .enumerate()
        .map(|(place, line)| (place as u64 + random.below(jitter), line))
        .collect();
    keyed.sort_by_key(|(place, _)| *place);
    keyed.into_iter().map(|(_, line)| line).collect()
}

fn options(state: Option<&Path>, window: u64, memory_max: Option<usize>) -> EngineOptions {
    EngineOptions {
        settings: Settings { memory_max, ..Settings::new(SI) },
        pace: Pace::Window { transactions: window, longest: 10 },
        state: state.map(Path::to_owned),
        spill: None,
        journal_max: u64::MAX,
        joiner: None,
        workers: None,
    }
}

/// Keys on so many workers; 0 for none.
fn crew(workers: usize) -> Option<Crew> {
    (workers > 0).then(|| {
        Crew::new(move |spill| {
            let cold = move || spill.clone().map(|spill| Box::new(spill) as Box<dyn Cold>);
            Ok(Box::new(Here::new(workers, cold)) as Box<dyn Workers>)
        })
    })
}

/// What a finding is about, without its number: numbers depend on when watermarks pass.
fn content(line: &str) -> String {
    let mut value: serde_json::Value = serde_json::from_str(line).expect("findings are JSON");
    value.as_object_mut().expect("an object").remove("number");
    value.to_string()
}

fn told(engine: &mut Engine, batch: &[String]) -> Vec<String> {
    let bytes = (batch.join("\n") + "\n").into_bytes();
    let told: Told = engine.take(vec![Batch::new(bytes)], Instant::now()).expect("the engine takes it");
    assert!(told.refused.is_empty(), "{:?}", told.refused);
    told.lines
}

/// In one go and in order.
fn at_once(lines: &[String], keys: u64) -> BTreeSet<String> {
    let (mut engine, _) = Engine::open(options(None, 1000, None)).expect("no state is needed");
    told(&mut engine, &[header(keys)]);
    let mut all = told(&mut engine, lines);
    all.extend(engine.finish().expect("nothing is in the way").lines);
    all.iter().map(|line| content(line)).collect()
}

/// What was written down and may not have gone out comes again, until somebody says that it did.
#[test]
fn what_may_not_have_gone_out_is_told_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Engine::open(options(Some(folder.path()), 12, None)).expect("the state can be read");
    let (mut engine, first) = open();
    assert!(first.again.is_empty());
    let mut lines = told(&mut engine, &[header(8)]);
    lines.extend(told(&mut engine, &transactions(1, 120, 8)));
    assert!(!lines.is_empty(), "something was found");
    drop(engine);
    // Nobody said that they went out, and a crash later nobody has either.
    for _ in 0..2 {
        let (_, told) = open();
        assert_eq!((told.again.as_slice(), told.lines.len()), (lines.as_slice(), 0));
    }
    let (mut engine, _) = open();
    engine.went_out().expect("there is room");
    let more = engine.finish().expect("nothing is in the way").lines;
    assert!(!more.is_empty(), "the end makes more of it certain");
    drop(engine);
    let (mut engine, told) = open();
    assert_eq!(told.again, more);
    engine.went_out().expect("there is room");
    drop(engine);
    assert!(open().1.again.is_empty());
    // A damaged mark is no reason to keep silent.
    std::fs::write(folder.path().join("told"), "00").expect("it can be written");
    assert_eq!(open().1.again, [lines, more].concat());
}

/// A checkpoint that cannot be used is named, with what to do.
#[test]
fn a_checkpoint_that_is_no_good_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = || options(Some(folder.path()), 12, None);
    let (mut engine, _) = Engine::open(settings()).expect("it is empty");
    told(&mut engine, &transactions(1, 40, 8));
    engine.checkpoint().expect("there is room");
    drop(engine);
    let refusal = |options: EngineOptions| match Engine::open(options) {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    };
    let mut other = settings();
    other.settings.level = isolation::Level::SERIALIZABLE;
    let said = refusal(other);
    assert!(said.contains("journal-1: ") && said.contains("use that level"), "{said}");
    let checkpoint = folder.path().join("checkpoint-1");
    let whole = std::fs::read(&checkpoint).expect("it is there");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    for damaged in [&[], &whole[..9], &whole[..whole.len() / 2], &whole[..whole.len() - 1], &changed] {
        std::fs::write(&checkpoint, damaged).expect("it can be written");
        let said = refusal(settings());
        assert!(said.contains("checkpoint-1: ") && said.contains("from a backup"), "{said}");
        assert!(said.contains("findings.jsonl"), "{said}");
    }
    std::fs::write(&checkpoint, &whole).expect("it can be written");
    assert!(Engine::open(settings()).is_ok());
}

/// With crashes: the engine is dropped without a word after any batch, its journal loses its end, and whoever sends
/// goes on where it last heard that things were durable. None if what was open did not fit into memory: then verdicts
/// become final earlier, and late arrivals change what is reported.
fn with_crashes(
    lines: &[String],
    keys: u64,
    random: &mut Random,
    memory_max: Option<usize>,
    workers: usize,
) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let open = |random: &mut Random| {
        // With workers, after a crash there may be more or fewer of them, or none.
        let workers = if workers > 0 { crew(random.below(workers as u64 + 1) as usize) } else { None };
        let options = EngineOptions { workers, ..options(Some(folder.path()), 12, memory_max) };
        Engine::open(options).expect("the state can be read")
    };
    let (mut engine, _) = open(random);
    told(&mut engine, &[header(keys)]);
    let mut at = 0;
    while at < lines.len() {
        let len = (1 + random.below(7) as usize).min(lines.len() - at);
        told(&mut engine, &lines[at..at + len]);
        at += len;
        match random.below(6) {
            0 => drop(engine.checkpoint().expect("there is room")),
            1 | 2 => {
                if engine.hurried() > 0 {
                    return None;
                }
                drop(engine);
                if random.below(2) == 0 {
                    add_garbage(folder.path(), random);
                }
                (engine, _) = open(random);
            }
            _ => {}
        }
    }
    if engine.hurried() > 0 {
        return None;
    }
    assert!(memory_max.is_none() || engine.online().counters().evicted > 0, "versions went to disk");
    engine.finish().expect("nothing is in the way");
    drop(engine);
    let (_, again) = open(random);
    assert!(again.lines.is_empty(), "everything was told before: {:?}", again.lines);
    let told = std::fs::read_to_string(folder.path().join("findings.jsonl")).expect("it is there");
    Some(told.lines().map(str::to_owned).collect())
}

/// What a write that was cut off leaves behind the last whole record, and behind the last whole finding.
fn add_garbage(folder: &Path, random: &mut Random) {
    use std::io::Write;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("a file").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if name.starts_with("journal-") || name == "findings.jsonl" {
            let mut file = std::fs::OpenOptions::new().append(true).open(path).expect("it is there");
            let garbage: Vec<u8> = (0..random.below(30)).map(|_| b'a' + random.below(20) as u8).collect();
            file.write_all(&garbage).expect("there is room");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_global_rejects: 8, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/engine.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn crashes_and_orders_of_arrival_change_nothing(seed in 0u64..1_000_000, tight in any::<bool>(), workers in 0usize..4) {
        let keys = if tight { 400 } else { 5 };
        let lines = transactions(seed, if tight { 300 } else { 120 }, keys);
        let expected = at_once(&lines, keys);
        prop_assume!(!expected.is_empty());
        let mut random = Random(seed + 1);
        let arrived = shuffled(lines, 8, &mut random);
        let memory_max = tight.then_some(90_000);
        let found = with_crashes(&arrived, keys, &mut random, memory_max, workers);
        // Rare: proptest draws another case, and gives up if there are many.
        prop_assume!(found.is_some());
        let found = found.unwrap_or_default();
        let numbers: Vec<u64> = found
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON")["number"].as_u64().expect("a number"))
            .collect();
        prop_assert_eq!(numbers, (0..found.len() as u64).collect::<Vec<_>>(), "every finding once, in order");
        let found: BTreeSet<String> = found.iter().map(|line| content(line)).collect();
        let differing: Vec<&String> = found.symmetric_difference(&expected).collect();
        prop_assert!(differing.is_empty(), "{:#?}", differing);
    }
}

#[test]
fn lost_and_doubled_transactions_are_told_as_such() {
    let (mut engine, _) = Engine::open(options(None, 2, None)).expect("no state is needed");
    let line = |seq: u64| {
        format!(
            r#"{{"session":1,"seq":{seq},"db":{{"start":{},"commit":{}}},"ops":[]}}"#,
            10 * seq,
            10 * seq + 1
        )
    };
    let mut lines = Vec::new();
    for seq in [1, 2, 2, 3, 6, 7, 8, 9, 10, 11] {
        lines.extend(told(&mut engine, &[line(seq)]));
    }
    let kinds: Vec<(String, String)> = lines
        .iter()
        .map(|line| {
            let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
            (value["kind"].as_str().expect("a kind").to_owned(), value["missing"].to_string())
        })
        .collect();
    let expected = [("duplicate", "null"), ("lost", "[4,5]")];
    assert_eq!(kinds, expected.map(|(kind, missing)| (kind.to_owned(), missing.to_owned())));
    assert_eq!(engine.violations(), 0);
}

/// Without numbers, too: at once, late, and after a restart; also twice in one batch, by its id.
#[test]
fn what_is_delivered_again_is_left_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Engine::open(options(Some(folder.path()), 2, None)).expect("the state can be read").0;
    let line = |number: u64| {
        let (start, commit) = (10 * number, 10 * number + 1);
        let id = if number.is_multiple_of(2) { format!(r#""id":"t{number}","#) } else { String::new() };
        let op = format!(r#"{{"op":"append","key":"x","value":{number}}}"#);
        format!(r#"{{{id}"session":1,"db":{{"start":{start},"commit":{commit}}},"ops":[{op}]}}"#)
    };
    let mut engine = open();
    let mut lines = told(&mut engine, &(0..4).map(line).chain([line(2), line(3)]).collect::<Vec<_>>());
    lines.extend(told(&mut engine, &(4..20).map(line).collect::<Vec<_>>()));
    lines.extend(told(&mut engine, &[line(1), line(2)]));
    engine.checkpoint().expect("there is room");
    lines.extend(told(&mut engine, &[line(5)]));
    drop(engine);
    let mut engine = open();
    lines.extend(told(&mut engine, &[line(1), line(2), line(5), line(19)]));
    let read =
        r#"{"session":2,"db":{"start":300,"commit":300},"ops":[{"op":"read","key":"x","value":LIST}]}"#;
    let list = format!("{:?}", (0..20).collect::<Vec<_>>());
    lines.extend(told(&mut engine, &[read.replace("LIST", &list)]));
    lines.extend(engine.finish().expect("nothing is in the way").lines);
    assert!(lines.iter().all(|line| line.contains(r#""kind":"duplicate""#)), "{lines:?}");
    assert_eq!(lines.len(), 9);
    let status = engine.online().counters();
    assert_eq!((status.received, status.settled), (30, 30));
}

/// What asked for less than is checked is refused before it is taken: a restart does not meet it again.
#[test]
fn a_weaker_transaction_is_refused_and_not_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Engine::open(options(Some(folder.path()), 2, None)).expect("the state can be read").0;
    let line = |level: &str| {
        format!(r#"{{"id":"t","session":1,"level":"{level}","db":{{"start":1,"commit":2}},"ops":[]}}"#)
    };
    let mut engine = open();
    let batch = Batch::new(line("read-committed").into_bytes());
    let said = engine.take(vec![batch], Instant::now()).expect_err("it is refused").to_string();
    assert!(said.contains("transaction t asked for read-committed, which does not promise"), "{said}");
    drop(engine);
    let mut engine = open();
    assert_eq!(engine.online().counters().received, 0);
    assert!(told(&mut engine, &[line("serializable")]).is_empty());
}

#[test]
fn two_processes_do_not_share_a_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let (_engine, _) = Engine::open(options(Some(folder.path()), 2, None)).expect("a new state");
    let second = Engine::open(options(Some(folder.path()), 2, None)).map(|_| ());
    assert!(second.expect_err("the first holds it").to_string().contains("another process"));
}

/// Transactions of five sessions, as [`wrong_clocks`] wants them: each reads what the last one left in its key.
fn clocked(number: u64, base: u64, commit: Option<u64>) -> String {
    let (session, seq, start) = (number % 5, number / 5, base + 10 * number);
    let commit = commit.unwrap_or(start + 5);
    let key = number % 7;
    // Whose clock is wrong writes elsewhere, so that nobody misses it.
    let ops = match (number, commit == start + 5) {
        (_, false) => r#"{"op":"write","key":"z","value":1}"#.to_owned(),
        (150, _) => r#"{"op":"read","key":"never","value":77777}"#.to_owned(),
        _ => format!(r#"{{"op":"append","key":{key},"value":{number}}}"#),
    };
    format!(
        r#"{{"session":{session},"seq":{seq},"id":"t{number}","db":{{"start":{start},"commit":{commit}}},"ops":[{ops}]}}"#
    )
}

/// What is reported about a stream, restarted now and then: kinds and transactions, in order.
fn live(lines: &[String], workers: usize, restarts: usize) -> Vec<(String, String)> {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let settings = Settings::new(Level::SNAPSHOT_ISOLATION);
        let options =
            EngineOptions { settings, workers: crew(workers), ..options(Some(folder.path()), 20, None) };
        Engine::open(options).expect("the state can be read").0
    };
    let mut engine = open();
    let mut all = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        all.extend(told(&mut engine, std::slice::from_ref(line)));
        if restarts > 0 && number % restarts == restarts - 1 {
            let checkpoint = engine.checkpoint().expect("there is room");
            all.extend(checkpoint.lines);
            drop(engine);
            engine = open();
        }
    }
    all.extend(engine.checkpoint().expect("there is room").lines);
    let words = |line: &String| {
        let value: serde_json::Value = serde_json::from_str(line).expect("findings are JSON");
        let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        (word(&value["kind"]), word(&value["transaction"]["name"]))
    };
    all.iter().map(words).collect()
}

/// Clocks that are wrong are reported, and blind nobody: whatever is wrong after them is found, also after a restart.
#[test]
fn wrong_clocks() {
    let far = 1_000_000_000_000_000;
    let none: &[(u64, u64)] = &[];
    let cases = [
        none,
        &[(50, far)][..],
        &[(0, far)],
        &[(3, far), (5, far + 7)],
        &[(50, far), (51, far), (53, far + 1), (60, u64::MAX / 4)],
        &[(50, 1)],
    ];
    for (workers, restarts) in [(0, 0), (0, 37), (2, 0), (2, 37)] {
        for skewed in cases {
            let commit = |number| skewed.iter().find(|(at, _)| *at == number).map(|(_, commit)| *commit);
            let lines: Vec<String> = (0..200).map(|number| clocked(number, 1_000, commit(number))).collect();
            let found = live(&lines, workers, restarts);
            let mut told = vec![("ext".to_owned(), "t150".to_owned())];
            for (number, commit) in skewed {
                // Behind its start, that is what is wrong with it.
                let kind = if *commit == 1 { "timestamp-order" } else { "clock-jump" };
                told.push((kind.to_owned(), format!("t{number}")));
            }
            let sorted = |mut all: Vec<(String, String)>| {
                all.sort();
                all
            };
            assert_eq!(sorted(found), sorted(told), "{skewed:?}, {workers} workers, restarts {restarts}");
        }
    }
}

/// After an idle night timestamps are far ahead of all before: they are believed, and no clock is told to be wrong.
#[test]
fn a_stream_may_jump() {
    for unit in [1, 1_000, 1_000_000_000] {
        for (workers, restarts) in [(0, 0), (2, 37)] {
            let base = |number: u64| 1_000 + unit * 1_000_000 * (number / 60);
            let lines: Vec<String> = (0..200).map(|number| clocked(number, base(number), None)).collect();
            let found = live(&lines, workers, restarts);
            assert_eq!(found, [("ext".to_owned(), "t150".to_owned())], "unit {unit}, {workers} workers");
        }
    }
}
