//! The command line: flags into library calls, results onto standard output, a status for scripts.
//!
//! The nouns:
//!
//! * `flags` — what the user typed, already typed values: levels, formats, durations, bytes.
//! * `commands` — one file a command; each is a short path from flags to library calls to output.
//! * `Console` — standard output for results, standard error for everything else.
//! * `Exit` — the status: 0 accepted, 1 violated, 2 undecided, 3 usage or input error.
//!
//! No logic lives here: what can be decided is decided in `checker`, what is said is said in `report`.

mod baseline;
mod certificates;
mod checking;
mod clustered;
mod commands;
mod console;
mod crew;
mod exit;
mod failure;
mod flags;
#[cfg(feature = "postgres")]
mod following;
mod input;
mod live;
mod names;
mod output;
mod recording;
mod sweeper;

use clap::Parser;
use console::Console;
use exit::Exit;
use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = match flags::Cli::try_parse() {
        Ok(cli) => cli,
        Err(message) => return refuse(&message),
    };
    cli.color.write_global();
    let mut console = Console::new(cli.quiet);
    let result = commands::run(cli.command, &mut console);
    console.finish(result).into()
}

/// Prints what the argument parser has to say: help is a result, anything else an error of usage.
fn refuse(message: &clap::Error) -> ExitCode {
    let is_as_it_is =
        !message.use_stderr() || console::shown(message) == report::printable_lines(&message.to_string());
    // If even this cannot be printed there is no one to tell.
    let _ = match is_as_it_is {
        true => message.print(),
        // An argument with a password in it is quoted.
        false => anstream::stderr().write_all(console::shown(message).as_bytes()),
    };
    if message.use_stderr() { Exit::Error.into() } else { Exit::Accepted.into() }
}
