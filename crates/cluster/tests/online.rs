//! The online checker on a dataflow against the one in a thread: the same findings with the same numbers, in one process
//! and in several; and workers that stumble.

use corpus::Loopback;
use history::formats::{Format, ReadOptions, read_bytes};
use history::{History, Timestamp};
use isolation::{Level, Rule};
use replay::online::{Cold, ColdKey, ColdRecord, ColdTime, Found, Online, Settings, Workers};
use std::io;
use std::time::Duration;
use taipan_cluster::{Cluster, Gone, Setup, hire, serve};

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// What happens to a checker.
enum Event {
    Receive(Box<History>),
    Advance(Timestamp),
}

/// Transactions of a few sessions on a few keys, some of whose results are wrong, some late, some of unknown outcome.
fn events(seed: u64) -> Vec<Event> {
    let mut random = Random(seed);
    let keys = 2 + random.below(12);
    let mut values = vec![0; keys as usize];
    let mut lines: Vec<(u64, u64, String)> = Vec::new();
    for number in 0..60 + random.below(60) {
        let (start, commit) = (10 * number + 1, 10 * number + 5 + random.below(12));
        let mut ops = Vec::new();
        let mut written = Vec::new();
        for _ in 0..=random.below(4) {
            let key = random.below(keys) as usize;
            if random.below(2) == 0 {
                let value = if random.below(15) == 0 { 7 } else { values[key] };
                ops.push(format!(r#"{{"op":"read","key":"k{key}","value":{value}}}"#));
            } else {
                written.push((key, 100 + commit));
                ops.push(format!(r#"{{"op":"write","key":"k{key}","value":{}}}"#, 100 + commit));
            }
        }
        let is_unknown = random.below(12) == 0;
        if !is_unknown || random.below(2) == 0 {
            written.into_iter().for_each(|(key, value)| values[key] = value);
        }
        let (status, times) = match is_unknown {
            true => (r#""status":"unknown","#, String::new()),
            false => ("", format!(r#""db":{{"start":{start},"commit":{commit}}},"#)),
        };
        let session = random.below(4);
        let line = format!(r#"{{"session":{session},{status}{times}"ops":[{}]}}"#, ops.join(","));
        lines.push((number + random.below(9), commit, line));
    }
    lines.sort();
    let mut events = Vec::new();
    for batch in lines.chunks(1 + random.below(9) as usize) {
        let text: Vec<&str> = batch.iter().map(|(_, _, line)| line.as_str()).collect();
        let options =
            ReadOptions { format: Some(Format::Jsonl), allow_empty: true, ..ReadOptions::default() };
        let part = read_bytes("part", text.join("\n").as_bytes(), &options).expect("it was written so");
        events.push(Event::Receive(Box::new(part.history)));
        if random.below(2) == 0 {
            let newest = batch.iter().map(|(_, commit, _)| *commit).max().unwrap_or(0) as i64;
            events.push(Event::Advance((newest - 60 + random.below(80) as i64).into()));
        }
    }
    events
}

fn settings(seed: u64) -> Settings {
    let rule = if seed.is_multiple_of(2) { Rule::SnapshotIsolation } else { Rule::Serializable };
    Settings::new(Level::new(rule, seed % 4 < 2, false))
}

fn alone(seed: u64) -> Vec<Found> {
    let mut online = Online::new(settings(seed)).expect("decided");
    for event in events(seed) {
        match event {
            Event::Receive(part) => online.receive(&part).expect("no cold store"),
            Event::Advance(watermark) => online.advance(watermark, None).expect("no cold store"),
        }
    }
    online.finish().expect("no cold store");
    online.findings().expect("no cold store")
}

/// With a restart in the middle, on workers that `next` hires.
fn together(seed: u64, mut next: impl FnMut() -> Box<dyn Workers>) -> Vec<Found> {
    let mut sharded = Online::on(settings(seed), next()).expect("decided");
    let events = events(seed);
    let restart_at = seed as usize % events.len();
    let mut found = Vec::new();
    for (place, event) in events.into_iter().enumerate() {
        match event {
            Event::Receive(part) => sharded.receive(&part).expect("workers work"),
            Event::Advance(watermark) => sharded.advance(watermark, None).expect("workers work"),
        }
        found.extend(sharded.findings().expect("workers work"));
        if place == restart_at {
            sharded.catch_up().expect("workers work");
            found.extend(sharded.findings().expect("workers work"));
            let mut state = Vec::new();
            sharded.save(&mut state).expect("a vector takes everything");
            drop(sharded);
            sharded =
                Online::restore_on(settings(seed), &mut state.as_slice(), next()).expect("it was saved so");
        }
    }
    sharded.finish().expect("workers work");
    found.extend(sharded.findings().expect("workers work"));
    found
}

#[test]
fn a_dataflow_of_threads_tells_what_one_thread_tells() {
    let mut total = 0;
    for seed in 0..150 {
        let expected = alone(seed);
        let mut counts = [1, 2, 3, 4].into_iter().cycle().skip(seed as usize);
        let found = together(seed, || {
            let count = counts.next().expect("it goes on for ever");
            Box::new(hire(&Setup::threads(count), |_| None).expect("threads can be had"))
        });
        assert_eq!(found, expected, "seed {seed}");
        total += expected.len();
    }
    assert!(total > 500, "{total} findings");
}

/// Processes as threads of this one; they know nothing of each other but their addresses.
#[test]
fn processes_tell_what_one_thread_tells() {
    for (seed, count) in [(1000, 2), (1001, 3), (1002, 2)] {
        let expected = alone(seed);
        let mut others = Vec::new();
        let loopback = Loopback::hold().expect("an address");
        let found = together(seed, || {
            let addresses = loopback.addresses(count);
            let setup = |process: usize| {
                let cluster =
                    Cluster { addresses: addresses.clone(), process, patience: Duration::from_secs(60) };
                Setup { workers: 2, cluster: Some(cluster) }
            };
            for process in 1..count {
                let setup = setup(process);
                others.push(std::thread::spawn(move || serve(&setup)));
            }
            Box::new(hire(&setup(0), |_| None).expect("the others come"))
        });
        assert_eq!(found, expected, "seed {seed}");
        for other in others {
            other.join().expect("a process").expect("it ends when there is no more work");
        }
    }
}

/// A store over which a worker stumbles.
struct Stumble;

impl Cold for Stumble {
    fn put(&mut self, _: Vec<ColdRecord>) -> io::Result<()> {
        panic!("over its own feet");
    }

    fn newest(&mut self, _: &ColdKey, _: ColdTime) -> io::Result<Option<ColdRecord>> {
        Ok(None)
    }

    fn keys(&mut self, _: Option<&ColdKey>, _: Option<&ColdKey>) -> io::Result<Vec<ColdKey>> {
        Ok(Vec::new())
    }

    fn forget(&mut self, _: ColdTime) -> io::Result<()> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        0
    }
}

#[test]
fn a_worker_that_stumbles_ends_the_run_and_is_named() {
    for doomed in 0..3 {
        let hands = hire(&Setup::threads(3), move |worker| {
            (worker == doomed).then(|| Box::new(Stumble) as Box<dyn Cold>)
        });
        let settings = Settings { memory_max: Some(1), ..settings(0) };
        let mut sharded =
            Online::on(settings, Box::new(hands.expect("threads can be had"))).expect("decided");
        let mut work = || -> io::Result<()> {
            for seed in 0..50 {
                for event in events(seed) {
                    match event {
                        Event::Receive(part) => sharded.receive(&part)?,
                        Event::Advance(watermark) => sharded.advance(watermark, None)?,
                    }
                    sharded.findings()?;
                }
                sharded.finish()?;
            }
            Ok(())
        };
        let error = work().expect_err("a worker is gone");
        assert!(Gone::is_behind(&error), "{error:?}");
        assert_eq!(error.to_string(), format!("lost worker {doomed}: over its own feet"));
        assert!(sharded.catch_up().is_err(), "and it stays so");
    }
}

#[test]
fn a_process_that_does_not_come_is_named() {
    let loopback = Loopback::hold().expect("an address");
    let addresses = loopback.addresses(2);
    let cluster = Cluster { addresses: addresses.clone(), process: 0, patience: Duration::from_millis(200) };
    let error = hire(&Setup { workers: 1, cluster: Some(cluster) }, |_| None).expect_err("nobody comes");
    assert!(Gone::is_behind(&error), "{error:?}");
    assert!(error.to_string().starts_with(&format!("process 1 at {}", addresses[1])), "{error}");
}
