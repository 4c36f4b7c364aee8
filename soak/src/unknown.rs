//! Transactions of unknown outcome: a correct store is accepted by results, by timestamps and online; planted bugs are found.

use crate::campaign::Wrong;
use history::formats::{Format, ReadOptions, read_bytes, write_string};
use history::{Builder, History, Id, Status, Timestamp};
use isolation::{By, Claim, Level, Options, Verdict};
use oracle::tiny::Random;
use replay::online::{Found, Here, Kind, Online, Settings};
use workload::{Bug, Config, Fields, Plant, Simulation, Strength, Workload};

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0x0c0de);
    let (history, level, has_bug, made) = simulated(&mut random);
    if history.is_empty() {
        return Ok(0);
    }
    let wrong = |what: String| Wrong::with(format!("{level}: {what}; {made}"), &history);
    let options = Options::default();
    let by_timestamps =
        checker::answer(&Claim::new(level).by(By::Timestamps), &history, &options).outcome.verdict;
    let by_results = match has_bug {
        true => None,
        false => Some(checker::answer(&Claim::new(level), &history, &options).outcome.verdict),
    };
    for (by, verdict) in [("results", &by_results), ("timestamps", &Some(by_timestamps.clone()))] {
        if let (false, Some(Verdict::Violated(evidence))) = (has_bug, verdict) {
            return Err(wrong(format!("a correct store is refused by {by}: {}", evidence.anomaly.name)));
        }
    }
    let mut online = Vec::new();
    for workers in [0, random.between(1, 3)] {
        let arrivals = Arrivals::new(&history, &mut Random::new(seed)).map_err(&wrong)?;
        online.push(arrivals.told(level, workers).map_err(&wrong)?);
    }
    if online[0] != online[1] {
        return Err(wrong(format!("with workers {:?}, without {:?}", online[1], online[0])));
    }
    let is_violated = online[0].iter().any(|found| found.kind.is_violation());
    let is_open = online[0].iter().any(|found| found.kind == Kind::Undecided);
    let is_right = match by_timestamps {
        Verdict::Accepted(_) => !is_violated && !is_open,
        // Online, the wrong results of a violated history are decided one by one.
        Verdict::Violated(_) => is_violated,
        Verdict::Undecided(_) => true,
    };
    match is_right {
        true => Ok(3 + online[0].len() as u64),
        false => Err(wrong(format!("by timestamps {}, online {:?}", by_timestamps.name(), online[0]))),
    }
}

/// A history of the simulated store, a level that the store keeps but for planted bugs, and whether there are some.
fn simulated(random: &mut Random) -> (History, Level, bool, String) {
    let workload = *random.pick(&Workload::ALL);
    let strength = *random.pick(&[Strength::Serializable, Strength::SnapshotIsolation]);
    // A serial store that reads old snapshots is not in the order of its commits.
    let lags = strength == Strength::SnapshotIsolation && random.chance(30);
    let in_session = !lags && random.chance(50);
    let level = match strength {
        // By timestamps, one of the two does not imply the other.
        Strength::Serializable => isolation::Rule::Serializable,
        _ => isolation::Rule::SnapshotIsolation,
    };
    let plan = workload::Settings {
        seed: random.bits(),
        sessions: random.between(2, 8) as u32,
        keys: random.between(3, 40) as u32,
        range_max: 6,
        hits_max: 6,
        ..workload.settings()
    };
    let mut config = Config::new(plan, strength, random.between(10, 120) as u64);
    config.unknown_rate = *random.pick(&[0.01, 0.05, 0.2]);
    config.abort_rate = *random.pick(&[0.0, 0.05]);
    if lags {
        config.lag = 0.2;
        config.lag_max = 20;
    }
    if random.chance(30) {
        let bugs: Vec<Bug> = Bug::all().collect();
        let bug = *random.pick(&bugs);
        if bug.sessions() <= config.plan.sessions {
            config.bugs.push((bug, Plant::Exactly(1)));
        }
    }
    let (words, has_bug) = (format!("{config:?}"), !config.bugs.is_empty());
    let mut builder = Builder::new();
    // Some workloads refuse some settings: then nothing happened.
    if let Ok(simulation) = Simulation::new(config) {
        let run = simulation.run(Fields::default(), &mut builder);
        assert!(run.is_ok(), "{words}: {run:?}");
    }
    let history = builder.finish().unwrap_or_else(|error| panic!("{words}: {error}"));
    (history, Level::new(level, in_session, false), has_bug, words)
}

/// What a stream brings, in its order.
enum Event {
    Arrive(Box<History>),
    Advance(Timestamp),
    Restart,
}

struct Arrivals {
    events: Vec<Event>,
}

fn part(text: &str) -> Result<History, String> {
    let options = ReadOptions { format: Some(Format::Jsonl), ..ReadOptions::default() };
    read_bytes("part", text.as_bytes(), &options).map(|it| it.history).map_err(|error| error.to_string())
}

impl Arrivals {
    /// The lines of a history out of order, with watermarks that nothing comes behind, and restarts.
    fn new(history: &History, random: &mut Random) -> Result<Self, String> {
        let text = write_string(history, Format::Jsonl).map_err(|error| error.to_string())?;
        let (headers, lines): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| line.starts_with("{\"history\""));
        let jitter = *random.pick(&[0, 3, 20]);
        let mut order: Vec<(usize, usize)> =
            (0..lines.len()).map(|place| (place + random.below(jitter + 1), place)).collect();
        order.sort_unstable();
        let mut events = Vec::new();
        for header in headers {
            events.push(Event::Arrive(Box::new(part(header)?)));
        }
        let mut has_arrived = vec![false; lines.len()];
        let mut rest = order.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(random.between(1, 9).min(rest.len()));
            let mut text = String::new();
            for &(_, place) in batch {
                has_arrived[place] = true;
                let position = history.transaction(Id::new(place)).position();
                text += &format!("{{\"seq\":{position},{}\n", &lines[place][1..]);
            }
            events.push(Event::Arrive(Box::new(part(&text)?)));
            rest = later;
            if random.chance(60) {
                events.extend(safe_watermark(history, &has_arrived).map(Event::Advance));
            }
            if random.chance(5) {
                events.push(Event::Restart);
            }
        }
        Ok(Self { events })
    }

    /// What is reported, by one thread or by so many workers.
    fn told(&self, level: Level, workers: usize) -> Result<Vec<Found>, String> {
        let settings = Settings::new(level);
        let words = |error: &dyn std::fmt::Display| error.to_string();
        let hands = || Box::new(Here::new(workers, || None));
        let mut found = Vec::new();
        let first = match workers {
            0 => Online::new(settings.clone()),
            _ => Online::on(settings.clone(), hands()),
        };
        let mut online = first.map_err(|it| words(&it))?;
        for event in &self.events {
            match event {
                Event::Arrive(part) => online.receive(part).map_err(|it| words(&it))?,
                Event::Advance(watermark) => online.advance(*watermark, None).map_err(|it| words(&it))?,
                Event::Restart => {
                    online.catch_up().map_err(|it| words(&it))?;
                    found.extend(online.findings().map_err(|it| words(&it))?);
                    let mut state = Vec::new();
                    online.save(&mut state).map_err(|it| words(&it))?;
                    let mut state = state.as_slice();
                    let restored = match workers {
                        0 => Online::restore(settings.clone(), &mut state),
                        _ => Online::restore_on(settings.clone(), &mut state, hands()),
                    };
                    online = restored.map_err(|it| words(&it))?;
                }
            }
        }
        online.finish().map_err(|it| words(&it))?;
        found.extend(online.findings().map_err(|it| words(&it))?);
        Ok(found)
    }
}

/// A watermark behind which nothing comes, and below which nothing was read of a transaction of unknown outcome that is still
/// to come. The client of one may give up after others have read what it wrote: what it began before may have seen it.
fn safe_watermark(history: &History, has_arrived: &[bool]) -> Option<Timestamp> {
    let txn = |place: usize| history.transaction(Id::new(place));
    let commit = |place: &usize| {
        let txn = txn(*place);
        txn.db().filter(|_| txn.status() == Status::Committed).map(|(_, commit)| commit)
    };
    let first = has_arrived.iter().position(|it| !it)?;
    let all = 0..has_arrived.len();
    let unknown = (first..all.end).map(txn).filter(|txn| txn.status() == Status::Unknown);
    let begun = unknown.filter_map(|txn| txn.client()).map(|client| client.begin).min();
    let may_have_seen = |place: &usize| {
        *place >= first || begun.zip(txn(*place).client()).is_some_and(|(begun, client)| client.end >= begun)
    };
    let open = all.filter(may_have_seen).filter_map(|place| commit(&place)).min();
    let settled = (0..first).filter_map(|place| commit(&place));
    settled.filter(|commit| open.is_none_or(|open| *commit < open)).max()
}

#[cfg(test)]
mod tests {
    #[test]
    fn correct_stores_are_accepted_and_bugs_are_found() {
        let seeds = if std::env::var_os("TAIPAN_QUICK").is_some() { 500 } else { 3_000 };
        for seed in 0..seeds {
            if let Err(wrong) = super::case(seed) {
                panic!("seed {seed}: {}", wrong.what);
            }
        }
    }
}
