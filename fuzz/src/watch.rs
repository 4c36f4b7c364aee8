//! What arrives at `taipan watch`: whatever the lines are and however they are cut into batches, nothing panics, every line
//! is a transaction or is refused with a reason, and every finding has a line.

use isolation::Level;
use replay::online::Settings;
use service::{Batch, Engine, EngineOptions, Pace, finding_line};
use std::time::{Duration, Instant};

/// The first byte chooses the level, the pace and the memory; `0xff` ends a batch.
pub fn watch(bytes: &[u8]) {
    let Some((&choice, lines)) = bytes.split_first() else { return };
    let level = if choice & 1 == 0 { Level::SNAPSHOT_ISOLATION } else { Level::SERIALIZABLE };
    let pace = match choice >> 1 & 3 {
        0 => Pace::Told,
        1 => Pace::Window { transactions: 2, longest: 2 },
        2 => Pace::Window { transactions: 1000, longest: 1000 },
        _ => Pace::Grace { grace: Duration::ZERO, longest: Duration::from_secs(10) },
    };
    let memory_max = (choice & 8 != 0).then_some(10_000);
    let options = EngineOptions {
        settings: Settings { memory_max, ..Settings::new(level) },
        pace,
        state: None,
        spill: None,
        journal_max: u64::MAX,
        joiner: None,
        workers: None,
    };
    let (mut engine, _) = Engine::open(options).expect("there is no state that could be damaged");
    let now = Instant::now();
    for (number, batch) in lines.split(|&byte| byte == 0xff).enumerate() {
        let mut batch = Batch::new(batch.to_vec());
        batch.arrived = now;
        assert!(batch.parsed.refused.iter().all(|why| !why.to_string().is_empty()));
        let told = engine.take(vec![batch], now).expect("nothing is written");
        told.findings.iter().for_each(|found| assert!(!finding_line(found).is_empty()));
        drop(engine.tick(now + Duration::from_secs(number as u64)).expect("nothing is written"));
    }
    drop(engine.finish().expect("nothing is written"));
}
