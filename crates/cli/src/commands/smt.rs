//! `taipan smt`: what must hold of a history, for another solver.

use crate::checking::{Checking, checker};
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::flags::{LimitFlags, SmtFlags};
use crate::input::left_out;
use crate::names::Names;
use checker::smt::Unwritable;
use std::io::Write;

pub(crate) fn run(flags: &SmtFlags, console: &mut Console) -> Outcome {
    let names = Names::new(None, flags.policy.profile)?;
    let levels = names.levels(&flags.levels.level, "--level <LEVEL>")?;
    let limits = LimitFlags { bounds: flags.bounds, ..LimitFlags::default() };
    let checker = checker(flags.policy.policy(&names), &limits)?;
    let checking = Checking::new(checker, names, flags.reading.options()).at(&levels)?;
    let opened = checking.open(&flags.file)?;
    if let Some(warning) = left_out(&opened.warnings) {
        console.note(warning);
    }
    let claims = checking.claims(&opened)?;
    let out = console.out();
    for (index, claim) in claims.iter().enumerate() {
        if index > 0 {
            writeln!(out, "(reset)")?;
        }
        checking.checker.write_smt(&opened, claim, out).map_err(|error| match error {
            Unwritable::Io(error) => Stop::Output(error),
            Unwritable::Beyond(why) => Stop::Error(format!("{}: {why}", opened.name)),
            Unwritable::Open(why) => Stop::Limit(format!("{}: {claim}: not written: {why}", opened.name)),
        })?;
    }
    Ok(Exit::Accepted)
}
