//! One file a command.

mod certify;
mod check;
mod convert;
mod demo;
mod diff;
mod elle;
mod explain;
mod generate;
mod hunt;
mod installing;
mod levels;
mod matrix;
mod run;
mod smt;
mod split;
mod stats;
mod watch;

use crate::console::{Console, Outcome};
use crate::exit::Exit;
use crate::flags::Command;
use crate::sweeper;

/// Does what the user asked for.
pub(crate) fn run(command: Command, console: &mut Console) -> Outcome {
    match command {
        Command::Check(flags) => check::run(&flags, console),
        Command::Explain(flags) => explain::run(&flags, console),
        Command::Diff(flags) => diff::run(&flags, console),
        Command::Elle(flags) => elle::run(&flags, console),
        Command::Certify(flags) => certify::run(&flags, console),
        Command::Smt(flags) => smt::run(&flags, console),
        Command::Demo(_) => demo::run(console),
        Command::Run(flags) => run::run(&flags, console),
        Command::Convert(flags) => convert::run(&flags, console),
        Command::Split(flags) => split::run(&flags, console),
        Command::Stats(flags) => stats::run(&flags, console),
        Command::Generate(flags) => generate::run(&flags, console),
        Command::Hunt(flags) => hunt::run(&flags, console),
        Command::Matrix(flags) => matrix::run(&flags, console),
        Command::Watch(flags) => watch::run(&flags, console),
        Command::Levels(flags) => levels::run(&flags, console),
        Command::Completions(flags) => installing::completions(&flags, console),
        Command::Man(flags) => installing::man(&flags, console),
        Command::Sweep => {
            // There is no one to tell what goes wrong.
            let _ = sweeper::sweep();
            Ok(Exit::Accepted)
        }
    }
}
