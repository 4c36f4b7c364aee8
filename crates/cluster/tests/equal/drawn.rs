//! Random histories: a simulated database, with and without planted bugs.

use history::{Operation, ValueId};
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

/// Several histories that share nothing, as one: their transactions in turn, with sessions and keys of their own.
pub(crate) fn together(first: u64, count: usize) -> history::History {
    let is_plain = |drawn: &History| {
        let of_numbers = |value: ValueId| value == ValueId::ABSENT || value.as_inline().is_some();
        let mut all = drawn.history.transactions().flat_map(|txn| txn.ops());
        all.all(|(_, operation)| match operation {
            Operation::Read { value, .. } | Operation::Write { value, .. } => of_numbers(value),
            operation => matches!(operation, Operation::Delete { .. }),
        })
    };
    let parts: Vec<History> = histories(first..u64::MAX).filter(is_plain).take(count).collect();
    let mut builder = history::Builder::new();
    let longest = parts.iter().map(|part| part.history.len()).max().unwrap_or(0);
    for place in 0..longest {
        for part in &parts {
            let Some(txn) = part.history.transactions().nth(place) else { continue };
            let name = |of: &dyn std::fmt::Display| format!("{}-{of}", part.seed);
            let session = builder.session(name(&part.history.sessions().get(txn.session())).as_str().into());
            builder.begin(session);
            builder.set_status(txn.status());
            for (_, operation) in txn.ops() {
                let key = operation.key().expect("only single keys are drawn");
                let key = builder.key(name(&part.history.keys().get(key)).as_str().into());
                match operation {
                    Operation::Read { value, lock, .. } => builder.read(key, value, lock),
                    Operation::Write { value, .. } => builder.write(key, value),
                    Operation::Delete { .. } => builder.delete(key),
                    other => panic!("only reads and writes are drawn: {other:?}"),
                };
            }
            builder.end().expect("a transaction");
        }
    }
    builder.finish().expect("a history")
}
