//! Several workers tell what one tells: the same findings with the same numbers, whatever arrives in whatever order, late,
//! twice or never, with restarts on another number of workers in between.

use crate::drawn::{self, Times};
use crate::online::{Kept, LEVELS, lines, part, safe_watermark, shapes};
use history::{History, Id, Timestamp};
use isolation::{Level, Rule, Ryow};
use oracle::tiny::{Random, Shape, Sketch};
use std::io;
use taipan_replay::Axiom;
use taipan_replay::online::{Cold, Counters, Found, Here, Kind, MemoryCold, Online, Settings, Workers};

/// What happens to a checker.
#[derive(Clone, Debug)]
enum Event {
    Receive(Vec<String>),
    Advance(Timestamp, Option<Timestamp>),
    /// Findings are asked for.
    Ask,
    /// The state is saved, and restored on so many workers.
    Restart(usize),
}

/// How events are drawn.
#[derive(Clone, Copy, Debug)]
struct Draw {
    seed: u64,
    jitter: usize,
    /// Percent of transactions that are lost, and that come twice.
    lost: u32,
    /// Whether transactions carry sequence numbers.
    numbered: bool,
    restarts: u32,
    memory_max: Option<usize>,
    horizon: bool,
    ryow: Ryow,
}

/// Watermarks are any commit so far, who comes later may be late; unless memory is short.
fn events(history: &History, draw: Draw) -> Vec<Event> {
    let mut random = Random::new(draw.seed);
    let (header, lines) = lines(history);
    let mut by_commit: Vec<usize> = (0..history.len()).collect();
    by_commit.sort_by_key(|&txn| history.transaction(Id::new(txn)).db().map(|(_, commit)| commit));
    let mut order: Vec<(usize, usize)> = Vec::new();
    for (place, txn) in by_commit.into_iter().enumerate() {
        let copies = match random.chance(draw.lost) {
            true => [0, 2][random.below(2)],
            false => 1,
        };
        for _ in 0..copies {
            order.push((place + random.below(draw.jitter + 1), txn));
        }
    }
    order.sort();
    let mut events: Vec<Event> = header.into_iter().map(|header| Event::Receive(vec![header])).collect();
    let mut commits: Vec<Timestamp> = Vec::new();
    let mut next = 0;
    while next < order.len() {
        let count = random.between(1, 4).min(order.len() - next);
        let batch = &order[next..next + count];
        next += count;
        commits.extend(
            batch.iter().filter_map(|(_, txn)| history.transaction(Id::new(*txn)).db()).map(|it| it.1),
        );
        let line = |(_, txn): &(usize, usize)| match draw.numbered {
            true => lines[*txn].clone(),
            // The sequence number is the first field.
            false => lines[*txn].split_once(',').map_or_else(String::new, |(_, rest)| format!("{{{rest}")),
        };
        events.push(Event::Receive(batch.iter().map(line).collect()));
        if draw.memory_max.is_some() {
            // What comes late to a key that is cold finds less of it.
            let coming: Vec<usize> = order[next..].iter().map(|(_, txn)| *txn).collect();
            if let Some((watermark, _)) = safe_watermark(history, &coming, true).filter(|_| random.chance(50))
            {
                events.push(Event::Advance(watermark, None));
            }
        } else if random.chance(50) && !commits.is_empty() {
            commits.sort();
            // Mostly a while ago.
            let back = random.below(commits.len().min(5));
            let watermark = commits[commits.len() - 1 - back];
            let horizon = commits[random.below(commits.len())];
            events.push(Event::Advance(watermark, draw.horizon.then_some(horizon)));
        }
        if random.chance(50) {
            events.push(Event::Ask);
        }
        if random.chance(draw.restarts) {
            events.push(Event::Restart(random.between(1, 4)));
        }
    }
    events
}

/// What came of it.
#[derive(Debug, PartialEq)]
struct Outcome {
    found: Vec<Found>,
    received: u64,
    settled: u64,
    took_effect: u64,
    by_kind: Vec<u64>,
    open: (usize, u64),
}

impl Outcome {
    fn new(found: Vec<Found>, counters: &Counters, open_results: usize) -> Self {
        Self {
            found,
            received: counters.received,
            settled: counters.settled,
            took_effect: counters.took_effect,
            by_kind: counters.found.to_vec(),
            open: (open_results, counters.provisional),
        }
    }
}

fn alone(events: &[Event], settings: &Settings) -> Outcome {
    let kept = Kept::default();
    let cold = || Box::new(kept.clone());
    let mut online = Online::new(settings.clone()).expect("decided").with_cold(cold());
    let mut found = Vec::new();
    for event in events {
        match event {
            Event::Receive(lines) => online.receive(&part(lines)).expect("the cold store works"),
            Event::Advance(watermark, horizon) => online.advance(*watermark, *horizon).expect("it works"),
            Event::Ask => found.extend(online.findings().expect("it works")),
            Event::Restart(_) => {
                found.extend(online.findings().expect("it works"));
                let mut state = Vec::new();
                online.save(&mut state).expect("a vector takes everything");
                online = Online::restore(settings.clone(), &mut state.as_slice())
                    .expect("what was saved can be restored")
                    .with_cold(cold());
            }
        }
    }
    online.finish().expect("the cold store works");
    found.extend(online.findings().expect("it works"));
    Outcome::new(found, &online.counters(), online.size().open_results)
}

fn together(events: &[Event], settings: &Settings, workers: usize) -> Outcome {
    let kept = Kept::default();
    let hands = |count: usize| {
        let kept = kept.clone();
        Box::new(Here::new(count, move || Some(Box::new(kept.clone()) as Box<dyn Cold>)))
    };
    let mut online = Online::on(settings.clone(), hands(workers)).expect("decided");
    let mut found = Vec::new();
    for event in events {
        match event {
            Event::Receive(lines) => online.receive(&part(lines)).expect("it works"),
            Event::Advance(watermark, horizon) => online.advance(*watermark, *horizon).expect("it works"),
            Event::Ask => found.extend(online.findings().expect("it works")),
            Event::Restart(count) => {
                online.catch_up().expect("it works");
                found.extend(online.findings().expect("it works"));
                let mut state = Vec::new();
                online.save(&mut state).expect("a vector takes everything");
                let mut input = state.as_slice();
                let restored = match count {
                    // Without workers.
                    1 => Online::restore(settings.clone(), &mut input)
                        .map(|it| it.with_cold(Box::new(kept.clone()))),
                    // Now and then the same number.
                    count => Online::restore_on(settings.clone(), &mut input, hands(*count)),
                };
                online = restored.expect("what was saved can be restored");
            }
        }
    }
    online.finish().expect("it works");
    found.extend(online.findings().expect("it works"));
    Outcome::new(found, &online.counters(), online.size().open_results)
}

fn compare(sketch: &Sketch, level: Level, draw: Draw, workers: usize) -> Result<Outcome, String> {
    let history = sketch.build();
    let settings = Settings { memory_max: draw.memory_max, ryow: draw.ryow, ..Settings::new(level) };
    let events = events(&history, draw);
    let expected = alone(&events, &settings);
    let found = together(&events, &settings, workers);
    if found == expected {
        return Ok(found);
    }
    let lines = |outcome: &Outcome| {
        let found: String = outcome.found.iter().map(|found| format!("\n  {found:?}")).collect();
        format!(
            "{found}\n  {} received, {} settled, open {:?}",
            outcome.received, outcome.settled, outcome.open
        )
    };
    let events: String = events.iter().map(|event| format!("\n  {event:?}")).collect();
    Err(format!("events:{events}\n{workers} workers:{}\none:{}", lines(&found), lines(&expected)))
}

fn agree(shape: &Shape, times: Times, draw: Draw, level: Level, workers: usize) -> Outcome {
    let sketch = drawn::sketch(&shape.clone().with_ryow(draw.ryow), times, draw.seed);
    match compare(&sketch, level, draw, workers) {
        Ok(outcome) => outcome,
        Err(_) => {
            let differs = |history: &History| compare(&Sketch::of(history), level, draw, workers).is_err();
            let small = Sketch::of(&oracle::tiny::shrink(&sketch.build(), differs));
            let why = compare(&small, level, draw, workers).expect_err("shrinking keeps the difference");
            panic!("{draw:?}, {level:?}, {workers} workers:\n{small}\n{why}");
        }
    }
}

/// What was found, over many runs.
#[derive(Default)]
struct Census {
    by_kind: Vec<u64>,
    took_effect: u64,
}

impl Census {
    fn add(&mut self, outcome: &Outcome) {
        self.by_kind.resize(Kind::ALL.len(), 0);
        self.by_kind.iter_mut().zip(&outcome.by_kind).for_each(|(sum, count)| *sum += count);
        self.took_effect += outcome.took_effect;
    }

    fn of(&self, kind: Kind) -> u64 {
        Kind::ALL.iter().zip(&self.by_kind).find(|(other, _)| **other == kind).map_or(0, |(_, count)| *count)
    }
}

#[test]
fn any_number_of_workers_tells_what_one_tells() {
    let mut census = Census::default();
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 0..120 {
                for (place, level) in LEVELS.into_iter().enumerate() {
                    let draw = Draw {
                        seed,
                        jitter: [0, 3, 8, 100][(seed as usize + place) % 4],
                        lost: [0, 20][seed as usize % 2],
                        numbered: seed % 3 != 0,
                        restarts: 0,
                        memory_max: None,
                        horizon: seed % 5 == 0,
                        ryow: [Ryow::Must, Ryow::Must, Ryow::May, Ryow::Never][seed as usize / 4 % 4],
                    };
                    census.add(&agree(&shape, times, draw, level, 1 + (seed as usize + place) % 4));
                }
            }
        }
    }
    for kind in Kind::ALL {
        // The store never commits before it starts; nobody asks for real time; all have timestamps.
        // Streams are too short for clocks to be suspected, and nothing of them is forgotten.
        let is_possible = !matches!(
            kind,
            Kind::Broken(Axiom::RealTime | Axiom::TimestampOrder)
                | Kind::Timeless
                | Kind::ClockJump
                | Kind::Undecided
        );
        assert!(!is_possible || census.of(kind) >= 10, "{} × {}", census.of(kind), kind.name());
    }
    assert!(census.took_effect > 100, "{} of unknown outcome took effect", census.took_effect);
}

#[test]
fn a_restart_on_another_number_of_workers_changes_nothing() {
    let mut found = 0;
    for shape in shapes() {
        for times in [Times::CROWDED, Times::APART] {
            for seed in 5000..5080 {
                for (place, level) in LEVELS.into_iter().enumerate() {
                    let memory_max = [None, Some(1), Some(4000)][seed as usize % 3];
                    let draw = Draw {
                        seed,
                        jitter: 6,
                        lost: [0, 10][seed as usize % 2],
                        numbered: seed % 4 != 0,
                        restarts: 40,
                        memory_max,
                        horizon: memory_max.is_none() && seed % 2 == 0,
                        ryow: Ryow::Must,
                    };
                    found += agree(&shape, times, draw, level, 1 + (seed as usize + place) % 4).found.len();
                }
            }
        }
    }
    assert!(found > 2000, "{found} findings");
}

/// A cold store that is full.
struct Full(MemoryCold);

impl Cold for Full {
    fn put(&mut self, _: Vec<taipan_replay::online::ColdRecord>) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::StorageFull, "no room"))
    }

    fn newest(
        &mut self,
        key: &taipan_replay::online::ColdKey,
        until: taipan_replay::online::ColdTime,
    ) -> io::Result<Option<taipan_replay::online::ColdRecord>> {
        self.0.newest(key, until)
    }

    fn keys(
        &mut self,
        from: Option<&taipan_replay::online::ColdKey>,
        to: Option<&taipan_replay::online::ColdKey>,
    ) -> io::Result<Vec<taipan_replay::online::ColdKey>> {
        self.0.keys(from, to)
    }

    fn forget(&mut self, until: taipan_replay::online::ColdTime) -> io::Result<()> {
        self.0.forget(until)
    }

    fn bytes(&self) -> u64 {
        0
    }
}

#[test]
fn what_goes_wrong_at_a_worker_is_an_error_that_names_it() {
    let settings =
        Settings { memory_max: Some(1), ..Settings::new(Level::new(Rule::SnapshotIsolation, false, false)) };
    let hands = Here::new(2, || Some(Box::new(Full(MemoryCold::default()))));
    let mut sharded = Online::on(settings, Box::new(hands)).expect("decided");
    let line = |commit: u32| {
        let write = format!("{{\"op\":\"write\",\"key\":{commit},\"value\":1}}");
        format!("{{\"session\":1,\"db\":{{\"start\":{},\"commit\":{commit}}},\"ops\":[{write}]}}", commit - 1)
    };
    let mut work = || -> io::Result<()> {
        for commit in 1..100 {
            sharded.receive(&part(&[line(commit)]))?;
            sharded.advance(i64::from(commit).into(), None)?;
            sharded.catch_up()?;
        }
        Ok(())
    };
    let error = work().expect_err("nothing fits").to_string();
    assert!(error.starts_with("worker ") && error.ends_with("no room"), "{error}");
}

#[test]
fn a_damaged_state_of_several_workers_is_refused() {
    let settings = Settings::new(Level::new(Rule::SnapshotIsolation, true, false));
    let sketch = drawn::sketch(&shapes()[4], Times::CROWDED, 11);
    let (_, lines) = lines(&sketch.build());
    let hands = || -> Box<dyn Workers> { Box::new(Here::new(2, || None)) };
    let mut sharded = Online::on(settings.clone(), hands()).expect("decided");
    sharded.receive(&part(&lines)).expect("no cold store");
    let mut state = Vec::new();
    sharded.catch_up().expect("no cold store");
    sharded.findings().expect("no cold store");
    sharded.save(&mut state).expect("a vector takes everything");
    assert!(Online::restore_on(settings.clone(), &mut state.as_slice(), hands()).is_ok());
    for place in 0..state.len() {
        let mut damaged = state.clone();
        damaged[place] ^= 1;
        assert!(
            Online::restore_on(settings.clone(), &mut damaged.as_slice(), hands()).is_err(),
            "byte {place}"
        );
        assert!(
            Online::restore_on(settings.clone(), &mut &state[..place], hands()).is_err(),
            "cut at {place}"
        );
        assert!(Online::restore(settings.clone(), &mut damaged.as_slice()).is_err(), "byte {place}, alone");
    }
    let other = Settings::new(Level::new(Rule::Serializable, true, false));
    assert!(Online::restore_on(other, &mut state.as_slice(), hands()).is_err());
}
