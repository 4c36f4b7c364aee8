//! `taipan smt`: what must hold of a history, for another solver.

use crate::checking::Checking;
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{LimitFlags, SmtFlags};
use checker::smt::Unwritable;
use std::io::Write;

pub(crate) fn run(flags: &SmtFlags, console: &mut Console) -> Outcome {
    let checking =
        Checking::new(&flags.policy, &LimitFlags { bounds: flags.bounds, ..LimitFlags::default() })
            .map_err(Stop::Error)?;
    let opened = checking.open(&flags.file, &flags.reading)?;
    if let Some(warning) = &opened.warning {
        console.note(warning);
    }
    let claims = checking.claims(&flags.levels.level, &opened).map_err(Stop::Error)?;
    let out = console.out();
    for (index, claim) in claims.iter().enumerate() {
        if index > 0 {
            writeln!(out, "(reset)")?;
        }
        checking.write_smt(&opened, claim, out).map_err(|error| match error {
            Unwritable::Io(error) => Stop::Output(error),
            Unwritable::Beyond(why) => Stop::Error(format!("{}: {why}", opened.name)),
            Unwritable::Open(why) => Stop::Limit(format!("{}: {claim}: not written: {why}", opened.name)),
        })?;
    }
    Ok(Exit::Accepted)
}
