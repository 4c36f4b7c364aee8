//! `taipan stats`: what is in a history.

use crate::console::{Console, Outcome};
use crate::exit::Exit;
use crate::failure::{Failure, attempt};
use crate::flags::{ListOutput, StatsFlags};
use crate::input::left_out;
use report::{stats_line, stats_text};
use std::io::Write;
use std::time::Instant;
use taipan::files::read;

pub(crate) fn run(flags: &StatsFlags, console: &mut Console) -> Outcome {
    let limits = flags.bounds.limits()?;
    let mut exit = Exit::Accepted;
    let progress = console.progress(flags.files.len() as u64);
    for (index, file) in flags.files.iter().enumerate() {
        let name = file.display().to_string();
        progress.say(&name);
        let guard = limits.guard(Instant::now());
        let found = attempt(|| {
            let loaded = read(file, &flags.reading.options(), &guard)?;
            Ok((loaded.history.summary(), loaded))
        });
        match found {
            Err(cause) => {
                let failure = Failure::new(&name, cause);
                exit = exit.and(Exit::from(&failure));
                progress.pause(|| console.error(failure.sentence()));
            }
            Ok((summary, loaded)) => progress.pause(|| {
                if let Some(warning) = left_out(&loaded.warnings) {
                    console.note(warning);
                }
                let blank_line = if index > 0 { "\n" } else { "" };
                match flags.output {
                    ListOutput::Json => writeln!(console.out(), "{}", stats_line(&name, &loaded, &summary)),
                    ListOutput::Text => {
                        write!(console.out(), "{blank_line}{}", stats_text(&name, &loaded, &summary))
                    }
                }
            })?,
        }
        progress.step();
    }
    Ok(exit)
}
