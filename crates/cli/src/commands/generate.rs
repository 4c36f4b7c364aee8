//! `taipan generate`: synthetic histories from the simulated database.

use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::flags::GenerateFlags;
use crate::input::target_format;
use crate::recording;
use history::Builder;
use history::formats::{Format, Output, Part, WriteError, Writing};
use std::fmt::Display;
use std::io;
use taipan::files::is_standard_stream;
use workload::{Config, Fields, RunError, Simulation, Summary};

/// Planted bugs that are reported one by one.
const PLANTED_TOLD_MAX: usize = 20;

pub(crate) fn run(flags: &GenerateFlags, console: &mut Console) -> Outcome {
    let format = target_format(&flags.output, flags.to)?;
    let config = config(flags)?;
    let simulation = Simulation::new(config).map_err(said)?;
    let fields =
        Fields { client: !flags.no_client_clocks, db: !flags.no_db_timestamps, planted: flags.mark_planted };
    let summary = {
        let progress = console.progress(flags.plan.transactions);
        progress.say(format_args!("generating {}", flags.output.display()));
        write(flags, format, simulation, fields, &progress)?
    };
    tell(&summary, flags, console);
    Ok(Exit::Accepted)
}

fn said(error: impl Display) -> Stop {
    Stop::Error(error.to_string())
}

fn config(flags: &GenerateFlags) -> Result<Config, String> {
    let mut config = flags.plan.config(&flags.target)?;
    flags.bug.iter().try_for_each(|bug| config.set("bug", bug)).map_err(|error| error.to_string())?;
    Ok(config)
}

/// Runs the simulation and writes what it does, in parts where the format allows it.
fn write(
    flags: &GenerateFlags,
    format: Format,
    simulation: Simulation,
    fields: Fields,
    progress: &Progress,
) -> Result<Summary, Stop> {
    let failed = |error: WriteError| match error {
        WriteError::Io { source, .. } if is_standard_stream(&flags.output) => Stop::Output(source),
        error => said(error),
    };
    let mut writing = match is_standard_stream(&flags.output) {
        true => Writing::over("standard output", Box::new(io::stdout().lock())),
        false => Writing::create(&flags.output).map_err(failed)?,
    };
    let summary = match format.row().output {
        Output::Parts(_) => simulation.run_in_parts(fields, |history, part| {
            progress.advance(history.len() as u64);
            writing.part(history, format, part).map_err(failed)
        })?,
        _ => {
            let mut builder = Builder::new();
            let summary = simulation.run(fields, &mut builder)?;
            let history = builder.finish().map_err(said)?;
            writing.part(&history, format, Part::WHOLE).map_err(failed)?;
            summary
        }
    };
    writing.finish().map_err(failed)?;
    Ok(summary)
}

impl From<RunError> for Stop {
    fn from(error: RunError) -> Self {
        said(error)
    }
}

fn tell(summary: &Summary, flags: &GenerateFlags, console: &mut Console) {
    let Summary { committed, conflicts, aborted, unknown, planted, .. } = summary;
    console.note(format_args!(
        "{}: {committed} committed, {} aborted ({conflicts} by conflicts), {unknown} of unknown outcome",
        flags.output.display(),
        conflicts + aborted,
    ));
    for planted in planted.iter().take(PLANTED_TOLD_MAX) {
        console.note(format_args!("planted {}", recording::place(planted)));
    }
    if let Some(more) = planted.len().checked_sub(PLANTED_TOLD_MAX).filter(|&more| more > 0) {
        console.note(format_args!("and {more} more"));
    }
}
