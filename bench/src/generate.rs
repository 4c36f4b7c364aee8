//! How fast histories are generated: the plan alone, the simulated database on top of it, the history in
//! memory on top of that, and JSON lines written away in parts.

use cpu_time::ProcessTime;
use history::Builder;
use history::formats::{Format, Writing};
use std::error::Error;
use std::hint::black_box;
use std::io;
use workload::{Config, Fields, Recorder, SessionPlan, Settings, Simulation, Strength, Template, Workload};

/// What the simulator is meant to reach, in transactions of eight operations a second and core.
const TARGET: f64 = 300_000.0;

pub(crate) fn run(transactions: usize) -> Result<(), Box<dyn Error>> {
    println!(
        "{transactions} transactions on sim:serializable (a tenth where marked *); thousands a second of CPU time"
    );
    println!(
        "{:<20} {:>10} {:>10} {:>12} {:>12} {:>12} {:>12}",
        "workload", "ops a txn", "plan", "simulate", "in memory", "JSON lines", "of target"
    );
    for name in [
        "blind-writes",
        "read-modify-write",
        "duplicates",
        "list-append",
        "bank",
        "range",
        "everything",
        "predicate",
        "blind-writes-pred",
    ] {
        let settings = Settings { seed: 1, ..Workload::named(name)? };
        // Its predicates return hundreds of rows.
        let slow = name == "blind-writes-pred";
        let count = if slow { transactions / 10 } else { transactions };
        let config = Config::new(settings, Strength::Serializable, count as u64);
        let ops = operations(&config)? as f64 / count as f64;
        let simulate = rate(count, || simulate(&config))?;
        println!(
            "{:<20} {ops:>10.1} {:>10.0} {:>12.0} {:>12.0} {:>12.0} {:>11.1}×",
            format!("{name}{}", if slow { " *" } else { "" }),
            rate(count, || plan(&config))? / 1e3,
            simulate / 1e3,
            rate(count, || in_memory(&config))? / 1e3,
            rate(count, || json_lines(&config))? / 1e3,
            simulate / TARGET,
        );
    }
    Ok(())
}

/// Transactions a second of CPU time, best of three.
fn rate(count: usize, mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = ProcessTime::now();
        run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(count as f64 / best)
}

fn operations(config: &Config) -> Result<usize, Box<dyn Error>> {
    let mut simulation = Simulation::new(config.clone())?;
    let mut operations = 0;
    while let Some(executed) = simulation.next_transaction() {
        operations += executed.ops.len();
    }
    Ok(operations)
}

fn plan(config: &Config) -> Result<(), Box<dyn Error>> {
    let mut session = SessionPlan::new(&config.plan, 0)?;
    let mut template = Template::default();
    for _ in 0..config.transactions {
        session.next(&mut template);
        black_box(&template);
    }
    Ok(())
}

fn simulate(config: &Config) -> Result<(), Box<dyn Error>> {
    let mut simulation = Simulation::new(config.clone())?;
    while let Some(executed) = simulation.next_transaction() {
        black_box(executed);
    }
    Ok(())
}

fn in_memory(config: &Config) -> Result<(), Box<dyn Error>> {
    let mut simulation = Simulation::new(config.clone())?;
    let mut recorder = Recorder::new(Fields::default());
    let mut builder = Builder::new();
    recorder.header(simulation.config(), &mut builder);
    while let Some(executed) = simulation.next_transaction() {
        recorder.transaction(executed, &mut builder)?;
    }
    black_box(builder.finish()?);
    Ok(())
}

fn json_lines(config: &Config) -> Result<(), Box<dyn Error>> {
    let simulation = Simulation::new(config.clone())?;
    let mut writing = Writing::over("nowhere", Box::new(io::sink()));
    simulation.run_in_parts(Fields::default(), |history, part| {
        Ok::<_, Box<dyn Error>>(writing.part(history, Format::Jsonl, part)?)
    })?;
    writing.finish()?;
    Ok(())
}
