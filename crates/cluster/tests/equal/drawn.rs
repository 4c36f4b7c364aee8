//! Random histories: a simulated database, with and without planted bugs.

use workload::{Bug, Config, Fields, Plant, Simulation, Strength, Workload};

/// A history and what it was drawn from.
pub(crate) struct History {
    pub(crate) seed: u64,
    pub(crate) history: history::History,
}

/// Small histories of several workloads and strengths; two of three have a planted bug.
pub(crate) fn histories(seeds: std::ops::Range<u64>) -> impl Iterator<Item = History> {
    seeds.map(|seed| {
        let bugs: Vec<Bug> = Bug::all().collect();
        let strengths = [Strength::SnapshotIsolation, Strength::Serializable];
        let workloads = [Workload::ReadModifyWrite, Workload::ReadModifyWrite, Workload::ListAppend];
        let settings = workloads[seed as usize / 7 % workloads.len()].settings();
        let mut config = Config::new(settings, strengths[seed as usize % strengths.len()], 20 + seed % 180);
        config.plan.seed = seed;
        config.plan.sessions = 2 + seed as u32 % 7;
        config.plan.keys = 3 + seed as u32 % 40;
        config.unknown_rate = if seed % 5 == 0 { 0.05 } else { 0.0 };
        if seed % 3 != 0 {
            let bug = bugs[seed as usize / 3 % bugs.len()];
            config.bugs.push((bug, Plant::Exactly(1 + seed % 2)));
        }
        // Not every bug shows in every workload.
        let simulation = Simulation::new(config.clone()).or_else(|_| {
            config.bugs.clear();
            Simulation::new(config)
        });
        let mut builder = history::Builder::new();
        simulation.expect("settings").run(Fields::default(), &mut builder).expect("recorded");
        History { seed, history: builder.finish().expect("a history") }
    })
}
