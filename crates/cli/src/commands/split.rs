//! `taipan split`: a history into shards.

use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::failure::{Failure, guarded};
use crate::flags::{Axis, SplitFlags};
use history::formats::{ConvertError, ReadError, ReadOptions, SplitBy, split};
use std::time::Instant;

pub(crate) fn run(flags: &SplitFlags, console: &mut Console) -> Outcome {
    let guard = flags.bounds.limits()?.guard(Instant::now());
    let name = flags.input.display().to_string();
    let by = match flags.by {
        Axis::Session => SplitBy::Session,
        Axis::Time => SplitBy::Time,
    };
    let counts = {
        let progress = console.progress(1);
        progress.say(format_args!("splitting {name}"));
        guarded(|| {
            let options = ReadOptions { interrupt: guard.interrupt(), ..flags.reading.options() };
            split(&flags.input, &options, &flags.folder, flags.shards.into(), by, flags.to)
        })
    };
    let counts = match counts.map_err(|cause| Failure::new(&name, cause))? {
        Ok(counts) => counts,
        Err(ConvertError::Read(error @ ReadError::Interrupted { .. })) => {
            return Err(Stop::Limit(format!("{}: {error}", guard.why())));
        }
        Err(error) => return Err(Stop::Error(error.to_string())),
    };
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    console.note(format_args!(
        "{name} to {} shards in {}: {} transactions, {least} to {most} per shard",
        counts.len(),
        flags.folder.display(),
        counts.iter().sum::<u64>()
    ));
    Ok(Exit::Accepted)
}
