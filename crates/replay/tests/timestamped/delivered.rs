//! Lines that are delivered again change no verdict: in order, late, after a restart, and when the first time is forgotten.

use history::formats::{Warnings, jsonl};
use history::{Builder, History, Name, Timestamp};
use isolation::Level;
use oracle::tiny::Random;
use std::collections::BTreeMap;
use taipan_replay::online::{Found, Kind, Online, Settings};

fn part(lines: &[String]) -> History {
    let mut builder = Builder::stream();
    jsonl::read(lines.join("\n").as_bytes(), &mut builder, &mut Warnings::new(false))
        .expect("they are lines");
    builder.finish().expect("it is a history")
}

/// What a key holds.
type State = BTreeMap<usize, Vec<i64>>;

/// A line, and the newest commit when it was written.
struct Written {
    line: String,
    newest: i64,
}

/// The lines of a store that keeps to snapshot isolation, but for a read now and then; in the order of commits.
fn written(seed: u64, count: usize) -> Vec<Written> {
    const KEYS: usize = 6;
    let mut random = Random::new(seed);
    let mut states: Vec<(i64, State)> = vec![(0, State::new())];
    let mut last = [0; 4];
    let mut all = Vec::new();
    let mut now = 0;
    for number in 0..count {
        let session = random.below(last.len());
        let is_reader = random.chance(40);
        let is_unknown = random.chance(5);
        // Whoever writes sees the newest, so there are no conflicts.
        let start = match is_reader {
            true => now.max(last[session]) - random.below(3) as i64,
            false => now,
        };
        let start = start.max(last[session]);
        let mut state = states.iter().rev().find(|(at, _)| *at <= start).expect("the first").1.clone();
        let mut ops = Vec::new();
        for _ in 0..random.between(1, 4) {
            let key = random.below(KEYS);
            let is_list = key >= KEYS / 2;
            let held = state.entry(key).or_default();
            if is_reader || random.chance(30) {
                let seen = if random.chance(7) { vec![-1] } else { held.clone() };
                let seen = match seen.as_slice() {
                    [] => "null".to_owned(),
                    [one] if !is_list => one.to_string(),
                    many => format!("{many:?}"),
                };
                ops.push(format!(r#"{{"op":"read","key":{key},"value":{seen}}}"#));
            } else if random.chance(20) {
                held.clear();
                ops.push(format!(r#"{{"op":"delete","key":{key}}}"#));
            } else {
                let value = 10 * number as i64 + ops.len() as i64;
                let op = if is_list { "append" } else { "write" };
                if !is_list {
                    held.clear();
                }
                held.push(value);
                ops.push(format!(r#"{{"op":"{op}","key":{key},"value":{value}}}"#));
            }
        }
        let (mut id, mut rest) = (String::new(), String::new());
        if is_unknown || random.chance(30) {
            id = format!(r#""id":"t{number}","#);
        }
        if is_reader {
            rest = format!(r#""db":{{"start":{start},"commit":{start}}},"ctx":{{"n":{number}}},"#);
            last[session] = start;
        } else if is_unknown {
            rest += r#""status":"unknown","#;
        } else {
            now += 3;
            rest = format!(r#""db":{{"start":{start},"commit":{now}}},"#);
            last[session] = now;
        }
        if !is_reader && (!is_unknown || random.chance(50)) {
            now += i64::from(is_unknown);
            states.push((now, state));
        }
        let line = format!(r#"{{{id}"session":{session},{rest}"ops":[{}]}}"#, ops.join(","));
        all.push(Written { line, newest: now });
    }
    all
}

/// Which lines come again, by the line that they come with or behind.
fn again(count: usize, percent: u32, random: &mut Random) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); count];
    for number in 0..count {
        while random.chance(percent) {
            let delay = [0, 1, 5, 40, count][random.below(5)];
            all[(number + random.below(delay + 1)).min(count - 1)].push(number);
        }
    }
    all
}

struct Ran {
    found: Vec<Found>,
    again: u64,
}

fn run(written: &[Written], level: Level, memory_max: Option<usize>, percent: u32, seed: u64) -> Ran {
    let mut random = Random::new(seed);
    let settings = Settings { memory_max, ..Settings::new(level) };
    let mut online = Online::new(settings.clone()).expect("the level is decided");
    let mut ran = Ran { found: Vec::new(), again: 0 };
    for (number, again) in again(written.len(), percent, &mut random).into_iter().enumerate() {
        ran.again += again.len() as u64;
        let numbers = std::iter::once(number).chain(again);
        let lines: Vec<String> = numbers.map(|number| written[number].line.clone()).collect();
        for together in lines.chunks(if random.chance(50) { lines.len() } else { 1 }) {
            online.receive(&part(together)).expect("there is no store");
        }
        // Reads are of snapshots up to two ticks old.
        let newest = written[number].newest;
        let horizon = Some(Timestamp::from(newest - 40));
        online.advance(Timestamp::from(newest - 30), horizon).expect("there is no store");
        ran.found.extend(online.findings().expect("there is no store"));
        if percent > 0 && random.chance(8) {
            let mut state = Vec::new();
            online.save(&mut state).expect("a vector takes everything");
            online = Online::restore(settings.clone(), &mut state.as_slice()).expect("it was just saved");
        }
    }
    online.finish().expect("there is no store");
    ran.found.extend(online.findings().expect("there is no store"));
    ran
}

/// Findings of these kinds, without their numbers.
fn only(found: &[Found], is_wanted: impl Fn(&Found) -> bool) -> Vec<Found> {
    let wanted = found.iter().filter(|found| is_wanted(found));
    let mut wanted: Vec<Found> = wanted.map(|found| Found { number: 0, ..found.clone() }).collect();
    wanted.sort_by_key(|found| format!("{found:?}"));
    wanted
}

/// Whose result is wrong, and which. A default name says which arrival of its session a transaction was, so it does not say
/// who it is; and what had to be seen depends on which transactions of unknown outcome took effect.
fn whose(found: &Found) -> (Kind, &Name, Option<Timestamp>, Option<u32>, Option<&Name>) {
    (found.kind, &found.txn.session, found.txn.commit, found.op, found.key.as_ref())
}

fn cases() -> u64 {
    if std::env::var_os("TAIPAN_QUICK").is_some() { 30 } else { 120 }
}

const LEVELS: [&str; 4] = ["SI", "strong-session-SI", "SER", "strong-session-SER"];

#[test]
fn lines_that_come_again_change_no_verdict() {
    let (mut wrong, mut duplicates) = (0, 0);
    for seed in 0..cases() {
        let written = written(seed, 80);
        for level in LEVELS {
            let level = Level::parse(level).expect("a level");
            let once = run(&written, level, None, 0, seed);
            let often = run(&written, level, None, 25, seed);
            let other = |found: &Found| found.kind != Kind::Duplicate;
            assert_eq!(only(&often.found, other), only(&once.found, other), "seed {seed}, {level}");
            let told = often.found.iter().filter(|found| found.kind == Kind::Duplicate).count() as u64;
            assert_eq!(told, often.again, "seed {seed}, {level}: each is told once");
            assert!(once.found.iter().all(other), "seed {seed}, {level}: {:?}", once.found);
            wrong += once.found.iter().filter(|found| found.kind.is_violation()).count();
            duplicates += told;
        }
    }
    assert!(wrong > 200 && duplicates > 1500, "{wrong} violations, {duplicates} duplicates");
}

/// What the watermark has passed is forgotten at once: lines that come again are late then, and blame nobody.
#[test]
fn lines_that_come_again_after_they_were_forgotten_are_late() {
    let (mut wrong, mut late) = (0, 0);
    for seed in 0..cases() {
        let written = written(1_000 + seed, 80);
        for level in LEVELS {
            let level = Level::parse(level).expect("a level");
            let once = run(&written, level, Some(1), 0, seed);
            let often = run(&written, level, Some(1), 25, seed);
            let is_wrong = |found: &Found| found.kind.is_violation();
            let (expected, found) = (only(&once.found, is_wrong), only(&often.found, is_wrong));
            for violation in &found {
                let is_known = expected.iter().any(|other| whose(other) == whose(violation));
                assert!(is_known, "seed {seed}, {level}: {violation:?}");
            }
            let open = |found: &&Found| matches!(found.kind, Kind::Unjudged | Kind::Undecided);
            let open = often.found.iter().filter(open).count();
            assert!(found.len() + open >= expected.len(), "seed {seed}, {level}: {open} are open");
            wrong += expected.len();
            late += often.found.iter().filter(|found| found.kind == Kind::Late).count();
        }
    }
    assert!(wrong > 200 && late > 200, "{wrong} violations, {late} late");
}

fn told(level: &str, lines: &[&str]) -> Vec<(&'static str, String)> {
    let mut online = Online::new(Settings::new(Level::parse(level).expect("a level"))).expect("decided");
    for line in lines {
        online.receive(&part(&[(*line).to_owned()])).expect("there is no store");
    }
    online.finish().expect("there is no store");
    online
        .findings()
        .expect("there is no store")
        .into_iter()
        .map(|found| (found.kind.name(), found.txn.name))
        .collect()
}

#[test]
fn what_is_the_same_and_what_is_not() {
    let write = r#"{"session":1,"db":{"start":1,"commit":2},"ops":[{"op":"write","key":"x","value":1}]}"#;
    let other = r#"{"session":1,"db":{"start":1,"commit":2},"ops":[{"op":"write","key":"y","value":1}]}"#;
    let more = r#"{"session":1,"db":{"start":1,"commit":2},"ops":[{"op":"read","key":"y","value":null},{"op":"write","key":"x","value":1}]}"#;
    let read = r#"{"session":1,"db":{"start":2,"commit":2},"ops":[{"op":"read","key":"x","value":1}]}"#;
    let read_other =
        r#"{"session":1,"db":{"start":2,"commit":2},"ops":[{"op":"read","key":"y","value":null}]}"#;
    let named =
        r#"{"id":"t","session":1,"db":{"start":1,"commit":2},"ops":[{"op":"write","key":"x","value":1}]}"#;
    let named_else =
        r#"{"id":"t","session":2,"db":{"start":3,"commit":4},"ops":[{"op":"write","key":"x","value":2}]}"#;
    let look = r#"{"session":3,"db":{"start":5,"commit":5},"ops":[{"op":"read","key":"x","value":2}]}"#;
    let unknown = r#"{"id":"u","session":1,"status":"unknown","ops":[{"op":"write","key":"x","value":2}]}"#;
    let duplicate = || ("duplicate", "a transaction of session 1".to_owned());
    let conflict = || ("conflict", "a transaction of session 1".to_owned());
    assert_eq!(told("strong-session-SI", &[write, write, read, read]), [duplicate(), duplicate()]);
    assert_eq!(told("strong-session-SI", &[write, read, write]), [duplicate()]);
    assert_eq!(told("strong-session-SI", &[write, read, read_other]), [], "two that read are two");
    assert_eq!(told("strong-session-SI", &[write, more]), [conflict()], "it says the same of what it wrote");
    assert_eq!(told("SI", &[write, other]), [conflict()], "both are checked");
    assert_eq!(told("SI", &[named, named]), [("duplicate", "t".to_owned())]);
    // Both are checked: what the second wrote is there to be seen.
    assert_eq!(told("SI", &[named, named_else, look]), [("conflict", "t".to_owned())]);
    assert_eq!(told("SI", &[named, unknown, unknown, look]), [("duplicate", "u".to_owned())]);
}

/// So many transactions of unknown outcome that the first are not kept: what they may have left is not held against
/// those who saw it.
#[test]
fn what_a_forgotten_transaction_may_have_left_is_undecided() {
    for restarts in [false, true] {
        let settings = Settings::new(Level::parse("SI").expect("a level"));
        let mut online = Online::new(settings.clone()).expect("decided");
        let unknown = |number: usize| {
            format!(
                r#"{{"session":{},"status":"unknown","ops":[{{"op":"write","key":{number},"value":{}}}]}}"#,
                number % 50,
                number + 1
            )
        };
        for round in 0..5 {
            let lines: Vec<String> = (5_000 * round..5_000 * (round + 1)).map(unknown).collect();
            online.receive(&part(&lines)).expect("there is no store");
            let tick = 10 * (round as i64 + 1);
            let known = format!(r#"{{"session":"a","db":{{"start":{tick},"commit":{tick}}},"ops":[]}}"#);
            online.receive(&part(&[known])).expect("there is no store");
            online.advance(Timestamp::from(tick), None).expect("there is no store");
        }
        if restarts {
            let mut state = Vec::new();
            online.save(&mut state).expect("a vector takes everything");
            online = Online::restore(settings, &mut state.as_slice()).expect("it was just saved");
        }
        let read = |name: &str, key: usize, value: usize| {
            format!(
                r#"{{"id":"{name}","session":"{name}","db":{{"start":90,"commit":90}},"ops":[{{"op":"read","key":{key},"value":{value}}}]}}"#
            )
        };
        let lines = [
            read("forgotten", 0, 1),
            read("kept", 24_000, 24_001),
            read("never", 0, 7),
            read("elsewhere", 30_000, 1),
        ];
        online.receive(&part(&lines)).expect("there is no store");
        online.finish().expect("there is no store");
        let found = online.findings().expect("there is no store");
        let mut told: Vec<(&str, &str)> =
            found.iter().map(|found| (found.txn.name.as_str(), found.kind.name())).collect();
        told.sort_unstable();
        assert_eq!(told, [("elsewhere", "ext"), ("forgotten", "undecided"), ("never", "ext")]);
        let doubt = found.iter().find_map(|found| found.doubt.as_deref()).expect("it says why");
        assert!(doubt.contains("not kept any more"), "{doubt}");
    }
}
