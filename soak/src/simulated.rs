//! Histories of some size from the simulated database, healthy and with planted bugs.

use history::{Builder, History};
use oracle::tiny::Random;
use workload::{Bug, Config, Fields, Plant, Settings, Simulation, Strength, Workload};

/// A random history; how it was made.
pub(crate) fn history(random: &mut Random, transactions: (usize, usize)) -> (History, String) {
    let workload = *random.pick(&Workload::ALL);
    let strength =
        *random.pick(&[Strength::Serializable, Strength::SnapshotIsolation, Strength::ReadCommitted]);
    let count = random.between(transactions.0, transactions.1);
    let plan = Settings {
        seed: random.bits(),
        sessions: random.between(2, 12) as u32,
        keys: random.between(3, 80) as u32,
        range_max: 6,
        hits_max: 6,
        ..workload.settings()
    };
    let mut config = Config::new(plan, strength, count as u64);
    config.abort_rate = if random.chance(50) { 0.05 } else { 0.0 };
    config.unknown_rate = if random.chance(30) { 0.03 } else { 0.0 };
    // Only these read old snapshots; without session order they are right to.
    if strength != Strength::ReadCommitted && random.chance(30) {
        config.lag = 0.2;
        config.lag_max = 20;
    }
    if random.chance(40) {
        let bugs: Vec<Bug> = Bug::all().collect();
        let bug = *random.pick(&bugs);
        if bug.sessions() <= config.plan.sessions {
            config.bugs.push((bug, Plant::Exactly(1)));
        }
    }
    let words = format!("{config:?}");
    let mut builder = Builder::new();
    // Some workloads refuse some settings: then nothing happened.
    if let Ok(simulation) = Simulation::new(config) {
        let run = simulation.run(Fields::default(), &mut builder);
        assert!(run.is_ok(), "{words}: {run:?}");
    }
    (builder.finish().unwrap_or_else(|error| panic!("{words}: {error}")), words)
}
