//! What recording costs the database: the same load with and without it, in turns.
//!
//! `cargo run --release -p taipan-databases --example overhead -- postgres:temp [ROUNDS [SECONDS [SESSIONS]]]`
//!
//! Each round runs the workload twice on the same server, once with a recorder that is off and once with
//! every line written to a file, the order changing from round to round (Chronos and Aion, Li et al., ICDE 2025, §VI-D measures the
//! same for its collector). Printed are the medians of transactions a second, and of the rounds' ratios.
//! Where other programs run beside it, those say little; so what recording a transaction takes by itself is
//! measured, too, and set against what the machine does in that time.

#![allow(clippy::print_stdout, reason = "its purpose")]

use history::Status;
use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};
use taipan_databases::{
    Database, Detail, Header, Plan, Recorder, Request, Response, RunOptions, Sinks, WorkloadPlan, run,
};
use workload::{Settings, Workload};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let target = arguments.first().map_or("postgres:temp", String::as_str);
    let number = |place: usize, usual: u64| arguments.get(place).map_or(Ok(usual), |text| text.parse());
    let (rounds, seconds, sessions) = (number(1, 7)?, number(2, 3)?, number(3, 8)?);
    let database = taipan_databases::open(target)?;
    let folder = tempfile::tempdir()?;
    let settings = Settings { sessions: u32::try_from(sessions)?, ..Workload::BlindWrites.settings() };
    let plan = WorkloadPlan::new(settings)?;
    let duration = Duration::from_secs(seconds);
    let (mut without, mut with, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        let file = folder.path().join("history.jsonl");
        let sinks = || Sinks { file: Some(file.clone()), detail: Detail::default(), ..Sinks::default() };
        let measure_off = || rate(&*database, &plan, &Recorder::off(), duration);
        let measure_on = || rate(&*database, &plan, &Recorder::new(&Header::default(), sinks())?, duration);
        let (off, on) = if round % 2 == 0 {
            let off = measure_off()?;
            (off, measure_on()?)
        } else {
            let on = measure_on()?;
            (measure_off()?, on)
        };
        println!("round {}: {off:.0} a second without, {on:.0} with recording", round + 1);
        without.push(off);
        with.push(on);
        ratios.push(on / off);
    }
    println!(
        "{}, {sessions} sessions: {:.0} a second without, {:.0} with recording; the median round keeps {:.1} %",
        database.name(),
        median(&mut without),
        median(&mut with),
        100.0 * median(&mut ratios)
    );
    let alone = alone(&folder.path().join("alone.jsonl"))?.as_secs_f64();
    let cores = std::thread::available_parallelism()?.get() as f64;
    println!(
        "recording a transaction takes {:.1} µs: {:.1} % of {cores} cores at {:.0} a second",
        alone * 1e6,
        100.0 * alone * median(&mut without) / cores,
        median(&mut without)
    );
    Ok(())
}

/// What recording one transaction of eight operations takes, without a database: the best of many tries.
fn alone(file: &Path) -> Result<Duration, Box<dyn Error>> {
    const TRANSACTIONS: u32 = 50;
    let sinks = Sinks { file: Some(file.to_owned()), detail: Detail::default(), ..Sinks::default() };
    let recorder = Recorder::new(&Header::default(), sinks)?;
    let mut tracer = recorder.tracer(1.into());
    let mut best = Duration::MAX;
    for _ in 0..500 {
        let start = Instant::now();
        for number in 0..i64::from(TRANSACTIONS) {
            tracer.begin();
            for key in 0..8 {
                tracer.call(Request::write(key, number));
                tracer.answer(Response::Done);
                tracer.statement(Some(STATEMENT));
            }
            tracer.end(Status::Committed)?;
        }
        best = best.min(start.elapsed());
    }
    Ok(best / TRANSACTIONS)
}

const STATEMENT: &str =
    "INSERT INTO taipan_kv (k, value) VALUES (1, 2) ON CONFLICT (k) DO UPDATE SET value = 2";

/// Transactions a second.
fn rate(
    database: &dyn Database,
    plan: &WorkloadPlan,
    recorder: &Recorder,
    duration: Duration,
) -> Result<f64, Box<dyn Error>> {
    database.create(&plan.schema(), &plan.initial())?;
    let options = RunOptions {
        sessions: plan.sessions_max(),
        transactions: None,
        duration: Some(duration),
        ..RunOptions::default()
    };
    let summary = run(database, plan, recorder, &options)?;
    Ok(summary.counts.committed as f64 / summary.elapsed.as_secs_f64())
}

fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
