//! `taipan split`: a history into shards.

use crate::checking::guarded;
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{Axis, SplitFlags};
use history::formats::{SplitBy, split};

pub(crate) fn run(flags: &SplitFlags, console: &mut Console) -> Outcome {
    let name = flags.input.display().to_string();
    let by = match flags.by {
        Axis::Session => SplitBy::Session,
        Axis::Time => SplitBy::Time,
    };
    let counts = {
        let progress = console.progress(1);
        progress.say(format_args!("splitting {name}"));
        guarded(&name, || {
            split(&flags.input, &flags.reading.options(), &flags.folder, flags.shards.into(), by, flags.to)
        })
    };
    let counts = counts.map_err(Stop::Error)?.map_err(|error| Stop::Error(error.to_string()))?;
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    console.note(format_args!(
        "{name} to {} shards in {}: {} transactions, {least} to {most} a shard",
        counts.len(),
        flags.folder.display(),
        counts.iter().sum::<u64>()
    ));
    Ok(Exit::Accepted)
}
