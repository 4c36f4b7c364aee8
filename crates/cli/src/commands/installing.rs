//! `taipan completions` and `taipan man`: the command line described to shells and to `man`.

use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{Cli, CompletionsFlags, ManFlags};
use clap::CommandFactory;
use clap_mangen::Man;
use std::io::Write;

pub(crate) fn completions(flags: &CompletionsFlags, console: &mut Console) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(flags.shell, &mut Cli::command(), "taipan", &mut script);
    console.out().write_all(&script)?;
    Ok(Exit::Accepted)
}

pub(crate) fn man(flags: &ManFlags, console: &mut Console) -> Outcome {
    let Some(folder) = &flags.dir else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        console.out().write_all(&page)?;
        return Ok(Exit::Accepted);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .map_err(|error| Stop::Error(format!("{}: {error}", folder.display())))?;
    console.note(format_args!("wrote the manual pages to {}", folder.display()));
    Ok(Exit::Accepted)
}
