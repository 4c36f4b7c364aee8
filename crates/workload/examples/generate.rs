//! Writes a simulated history to a file, without holding it all:
//!
//! ```text
//! cargo run --release -p taipan-workload --example generate -- \
//!     duplicates-hd 'sim:serializable?bug=write-skew' 1000000 out.jsonl.zst seed=7 keys=5000
//! ```

#![allow(clippy::print_stderr)]

use history::formats::{Format, Output, Writing, write_path};
use std::path::Path;
use std::time::Instant;
use workload::{Config, Fields, Simulation, Target, Workload};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [workload, target, transactions, out, settings @ ..] = &arguments[..] else {
        eprintln!("generate WORKLOAD TARGET TRANSACTIONS OUT [SETTING=VALUE]…\n\nworkloads:");
        Workload::names().for_each(|(name, about)| eprintln!("  {name:18} {about}"));
        eprintln!("\nsettings:");
        Config::settings().for_each(|(name, about)| eprintln!("  {name:18} {about}"));
        return Err("too few arguments".into());
    };
    let target: Target = target.parse()?;
    let mut config = target.config(Workload::named(workload)?, transactions.replace('_', "").parse()?)?;
    for setting in settings {
        let (name, value) = setting.split_once('=').ok_or("expected SETTING=VALUE")?;
        config.set(name, value)?;
    }
    let started = Instant::now();
    let simulation = Simulation::new(config)?;
    let format = Format::from_file_name(out).ok_or("the name of OUT says no format; e.g. out.jsonl")?;
    let summary = match format.row().output {
        Output::Parts(_) => {
            let mut writing = Writing::create(Path::new(out))?;
            let summary = simulation.run_in_parts(Fields::default(), |history, part| {
                Ok::<_, Box<dyn std::error::Error>>(writing.part(history, format, part)?)
            })?;
            writing.finish()?;
            summary
        }
        _ => {
            let mut builder = history::Builder::new();
            let summary = simulation.run(Fields::default(), &mut builder)?;
            write_path(&builder.finish()?, format, Path::new(out))?;
            summary
        }
    };
    let seconds = started.elapsed().as_secs_f64();
    eprintln!(
        "committed {}, conflicts {}, aborted {}, unknown {} ({} took effect), planted {}; {seconds:.2} s",
        summary.committed,
        summary.conflicts,
        summary.aborted,
        summary.unknown,
        summary.unknown_effective,
        summary.planted.len(),
    );
    for planted in summary.planted.iter().take(20) {
        let names: Vec<String> =
            planted.transactions.iter().map(|(session, place)| format!("{}:{place}", session + 1)).collect();
        let keys: Vec<String> = planted.keys.iter().map(|key| key.0.to_string()).collect();
        eprintln!("  {}: transactions {} on keys {}", planted.bug.name(), names.join(" "), keys.join(" "));
    }
    Ok(())
}
