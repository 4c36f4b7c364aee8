//! Online, transactions of unknown outcome are decided as offline: whatever the order of arrival, over restarts, on any number
//! of workers.

use crate::drawn::Times;
use crate::online::{lines, part, safe_watermark};
use crate::unknown::{LEVELS, drawn, is_accepted, shapes};
use history::{History, Timestamp};
use isolation::Level;
use oracle::tiny::{Random, shrink};
use taipan_replay::Axiom;
use taipan_replay::online::{Found, Here, Kind, Online, Settings};

/// What a stream brings, in its order.
enum Event {
    Arrive(Box<History>),
    Advance(Timestamp),
    Restart,
}

fn events(history: &History, seed: u64) -> Vec<Event> {
    let mut random = Random::new(seed);
    let (header, lines) = lines(history);
    let jitter = [0, 2, 100][random.below(3)];
    let mut order: Vec<(usize, usize)> =
        (0..lines.len()).map(|place| (place + random.below(jitter + 1), place)).collect();
    order.sort_unstable();
    let order: Vec<usize> = order.into_iter().map(|(_, txn)| txn).collect();
    let mut events: Vec<Event> =
        header.map(|header| Event::Arrive(Box::new(part(&[header])))).into_iter().collect();
    let mut next = 0;
    while next < order.len() {
        let count = random.between(1, 3).min(order.len() - next);
        let batch: Vec<String> = order[next..next + count].iter().map(|&txn| lines[txn].clone()).collect();
        events.push(Event::Arrive(Box::new(part(&batch))));
        next += count;
        if let Some((watermark, _)) =
            safe_watermark(history, &order[next..], true).filter(|_| random.chance(60))
        {
            events.push(Event::Advance(watermark));
        }
        if random.chance(10) {
            events.push(Event::Restart);
        }
    }
    events
}

fn alone(events: &[Event], level: Level) -> Vec<Found> {
    let settings = Settings::new(level);
    let mut online = Online::new(settings.clone()).expect("the level is decided");
    let mut found = Vec::new();
    for event in events {
        match event {
            Event::Arrive(part) => online.receive(part).expect("there is no store"),
            Event::Advance(watermark) => online.advance(*watermark, None).expect("there is no store"),
            Event::Restart => {
                found.extend(online.findings().expect("there is no store"));
                let mut state = Vec::new();
                online.save(&mut state).expect("a vector takes everything");
                online = Online::restore(settings.clone(), &mut state.as_slice()).expect("it was just saved");
                let mut again = Vec::new();
                online.save(&mut again).expect("a vector takes everything");
                assert!(state == again, "a restored state is the same state");
            }
        }
    }
    online.finish().expect("there is no store");
    found.extend(online.findings().expect("there is no store"));
    found
}

fn together(events: &[Event], level: Level, workers: usize) -> Vec<Found> {
    let settings = Settings::new(level);
    let hands = || Box::new(Here::new(workers, || None));
    let mut sharded = Online::on(settings.clone(), hands()).expect("the level is decided");
    let mut found = Vec::new();
    for event in events {
        match event {
            Event::Arrive(part) => sharded.receive(part).expect("there is no store"),
            Event::Advance(watermark) => sharded.advance(*watermark, None).expect("there is no store"),
            Event::Restart => {
                sharded.catch_up().expect("there is no store");
                found.extend(sharded.findings().expect("there is no store"));
                let mut state = Vec::new();
                sharded.save(&mut state).expect("a vector takes everything");
                let mut state = state.as_slice();
                sharded =
                    Online::restore_on(settings.clone(), &mut state, hands()).expect("it was just saved");
            }
        }
    }
    sharded.finish().expect("there is no store");
    found.extend(sharded.findings().expect("there is no store"));
    found
}

/// What differs; else whether it is accepted, and `None` where that is not always decided.
fn compare(history: &History, level: Level, seed: u64) -> Result<Option<bool>, String> {
    if !taipan_replay::applies(history, level) {
        return Ok(None);
    }
    let events = events(history, seed);
    let found = alone(&events, level);
    let several = together(&events, level, 1 + seed as usize % 3);
    if found != several {
        return Err(format!("one thread: {found:?}\nworkers: {several:?}"));
    }
    let Some(is_accepted) = is_accepted(history, level) else { return Ok(None) };
    let is_violated = found.iter().any(|found| found.kind.is_violation());
    let is_open = found.iter().any(|found| found.kind == Kind::Undecided);
    match is_violated != is_accepted && !is_open {
        true => Ok(Some(is_accepted)),
        false => Err(format!("offline accepted: {is_accepted}, online: {found:?}")),
    }
}

#[test]
fn online_decides_what_offline_decides() {
    let seeds = if std::env::var_os("TAIPAN_QUICK").is_some() { 60 } else { 240 };
    let (mut accepted, mut violated) = (0, 0);
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 0..seeds {
                for (level, asked) in LEVELS.into_iter().filter(|(level, _)| !level.realtime) {
                    let history = drawn(&shape, times, seed, asked.serial).build();
                    match compare(&history, level, seed) {
                        Ok(Some(true)) => accepted += 1,
                        Ok(Some(false)) => violated += 1,
                        Ok(None) => {}
                        Err(_) => {
                            let small = shrink(&history, |history| compare(history, level, seed).is_err());
                            let why = compare(&small, level, seed).expect_err("shrinking keeps it");
                            let text = history::formats::notation::to_string(&small);
                            panic!("seed {seed}, {level}:\n{text}\n{why}");
                        }
                    }
                }
            }
        }
    }
    assert!(accepted > 300 && violated > 300, "both occur: {accepted} accepted, {violated} violated");
}

/// As the lines of a stream: `start..commit`, then what a transaction did.
fn told(text: &str, level: &str) -> Vec<(&'static str, String)> {
    let history = history::formats::notation::parse(text).expect("the notation is right");
    let level = Level::parse(level).expect("a level");
    let mut online = Online::new(Settings::new(level)).expect("the level is decided");
    online.receive(&history).expect("there is no store");
    online.finish().expect("there is no store");
    online
        .findings()
        .expect("there is no store")
        .into_iter()
        .map(|found| (found.kind.name(), found.txn.name))
        .collect()
}

#[test]
fn what_it_took_to_go_wrong_before() {
    for (text, level, violated) in [
        ("u: w(x,1) w(y,1)?\nc: w(y,2) @@4..5\nr: r(x,1) r(y,2) @@6..6", "SI", false),
        ("u: w(x,1)? @@1..\nr: r(x,1) @@5..5", "SI", false),
        ("u: w(x,1)? @@6..\nr: r(x,1) @@5..5", "SI", true),
        ("u: w(x,1)? @@1..4\nr: r(x,_) @@5..5\ns: r(x,1) @@6..6", "SI", true),
        ("u: r(z,7) w(x,1)?\nr: r(x,1) @@5..5", "SI", true),
    ] {
        assert_eq!(!told(text, level).is_empty(), violated, "{text}");
    }
}

/// Which timestamp is wrong nobody knows, so whoever saw the transaction, or did not, is not to blame.
#[test]
fn a_commit_before_the_start_is_told_of_the_transaction_that_has_it_alone() {
    for (text, level) in [
        ("a: w(x,1) @@10..5\nb: r(x,1) @@15..16", "SI"),
        ("a: w(x,1) @@10..5\nb: r(y,_) @@15..16", "SI"),
        ("a: w(x,1) @@10..5\nb: r(x,1) @@15..16", "SER"),
        ("a: w(x,1) @@10..5\nb: r(x,_) @@7..7", "SI"),
        ("a: r(y,3) @@10..5\nb: r(x,_) @@15..16", "SI"),
    ] {
        assert_eq!(told(text, level), [(Axiom::TimestampOrder.name(), "a:0".to_owned())], "{text}");
    }
}
