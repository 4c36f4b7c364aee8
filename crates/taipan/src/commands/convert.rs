//! `taipan convert`: from one format into another.

use crate::checking::guarded;
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::ConvertFlags;
use crate::input::{is_standard_stream, left_out, target_format};
use history::formats::{ConvertError, Converted, Origin, Target, WriteError, convert};
use std::io;
use std::path::Path;

pub(crate) fn run(flags: &ConvertFlags, console: &mut Console) -> Outcome {
    let to = target_format(&flags.output, flags.to).map_err(Stop::Error)?;
    let name = flags.input.display().to_string();
    let converted = {
        let progress = console.progress(1);
        progress.say(format_args!("converting {name}"));
        guarded(&name, || convert(origin(&flags.input), &flags.reading.options(), target(&flags.output), to))
    };
    let converted = converted.map_err(Stop::Error)?.map_err(|error| match error {
        ConvertError::Write(WriteError::Io { source, .. }) if is_standard_stream(&flags.output) => {
            Stop::Output(source)
        }
        error => Stop::Error(error.to_string()),
    })?;
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

fn origin(file: &Path) -> Origin<'_> {
    match is_standard_stream(file) {
        true => Origin::Stream("standard input", Box::new(io::stdin().lock())),
        false => Origin::Path(file),
    }
}

fn target(file: &Path) -> Target<'_> {
    match is_standard_stream(file) {
        true => Target::Stream("standard output", Box::new(io::stdout().lock())),
        false => Target::Path(file),
    }
}
