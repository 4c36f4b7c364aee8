//! `taipan convert`: from one format into another.

use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::failure::{Failure, guarded};
use crate::flags::ConvertFlags;
use crate::input::{left_out, target_format};
use history::formats::{
    ConvertError, Converted, Origin, ReadError, ReadOptions, Target, WriteError, convert,
};
use std::io;
use std::path::Path;
use std::time::Instant;
use taipan::files::Guard;
use taipan::files::Patient;
use taipan::files::is_standard_stream;

pub(crate) fn run(flags: &ConvertFlags, console: &mut Console) -> Outcome {
    let to = target_format(&flags.output, flags.to)?;
    let guard = flags.bounds.limits()?.guard(Instant::now());
    let name = flags.input.display().to_string();
    let converted = {
        let progress = console.progress(1);
        progress.say(format_args!("converting {name}"));
        let options = ReadOptions { interrupt: guard.interrupt(), ..flags.reading.options() };
        guarded(|| convert(origin(&flags.input, &guard), &options, target(&flags.output), to))
    };
    let converted = match converted.map_err(|cause| Failure::new(&name, cause))? {
        Ok(converted) => converted,
        Err(ConvertError::Read(error @ ReadError::Interrupted { .. })) => {
            return Err(Stop::Limit(format!("{}: {error}", guard.why())));
        }
        Err(ConvertError::Write(WriteError::Io { source, .. })) if is_standard_stream(&flags.output) => {
            return Err(Stop::Output(source));
        }
        Err(error) => return Err(Stop::Error(error.to_string())),
    };
    if let Some(warning) = left_out(&converted.warnings) {
        console.note(warning);
    }
    let Converted { from, transactions, operations, .. } = converted;
    console.note(format_args!(
        "{name} ({from}) to {} ({to}): {transactions} transactions, {operations} operations",
        flags.output.display()
    ));
    Ok(Exit::Accepted)
}

fn origin<'f>(file: &'f Path, guard: &Guard) -> Origin<'f> {
    match is_standard_stream(file) {
        true => {
            let stream = Patient::new(|| Ok(io::stdin()), guard.interrupt());
            Origin::Stream("standard input", Box::new(stream))
        }
        false => Origin::Path(file),
    }
}

fn target(file: &Path) -> Target<'_> {
    match is_standard_stream(file) {
        true => Target::Stream("standard output", Box::new(io::stdout().lock())),
        false => Target::Path(file),
    }
}
