//! `taipan diff`: two histories, or the results of two runs.

use crate::checking::{Checking, checker};
use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::flags::{DiffFlags, ListOutput};
use crate::input::left_out;
use crate::names::Names;
use report::{Run, difference, json_line};
use std::io::{Read, Write};
use std::path::Path;
use taipan::files::AllLevels;

pub(crate) fn run(flags: &DiffFlags, console: &mut Console) -> Outcome {
    let names = Names::new(None, flags.policy.profile)?;
    let levels = names.levels(&flags.level, "--level <LEVEL>")?;
    let checker = checker(flags.policy.policy(&names), &flags.limits)?;
    let checking = Checking::new(checker, names, flags.reading.options()).at(&levels)?;
    checking.say_meanings(&flags.level, console)?;
    let found = {
        let progress = console.progress(2);
        let mut side = |file: &Path| {
            let run = side(&checking, file, console, &progress);
            progress.step();
            run
        };
        difference(&side(&flags.a)?, &side(&flags.b)?)
    };
    match flags.output {
        ListOutput::Text => write!(console.out(), "{}", found.text())?,
        ListOutput::Json => writeln!(console.out(), "{}", found.json())?,
    }
    if found.shares_nothing() {
        return Err(Stop::Error(format!(
            "nothing was compared: {} and {} have no history and level in common",
            flags.a.display(),
            flags.b.display()
        )));
    }
    Ok(if found.is_none() { Exit::Accepted } else { Exit::Violated })
}

/// What is said of one side: read if it is results, else found out.
fn side(checking: &Checking, file: &Path, console: &mut Console, progress: &Progress) -> Result<Run, Stop> {
    let name = file.display().to_string();
    if let Some(text) = results(file) {
        return Run::parse(&name, &text).map_err(|(line, error)| {
            Stop::Error(format!("{name}:{line}: not a line of `taipan check --output json`: {error}"))
        });
    }
    progress.say(format_args!("reading {name}"));
    let opened = checking.open(file)?;
    if let Some(warning) = left_out(&opened.warnings) {
        progress.pause(|| console.note(warning));
    }
    let check = |claim| {
        progress.say(format_args!("{name}: {claim}"));
        checking.check(&opened, claim)
    };
    let mut lines = String::new();
    let mut tell = |finding: &report::Finding| lines += &(json_line(finding) + "\n");
    if checking.asked.is_empty() {
        let AllLevels { frontier, follows, .. } = checking.all_levels(&opened, check)?;
        frontier.iter().for_each(|checked| tell(&checked.finding));
        follows.iter().for_each(&mut tell);
    } else {
        for claim in checking.claims(&opened)? {
            tell(&check(claim)?.finding);
        }
    }
    Run::parse(&name, &lines).map_err(|(line, error)| Stop::Error(format!("{name}: {line}: {error}")))
}

/// The text of a file that holds results.
fn results(file: &Path) -> Option<String> {
    let mut head = Vec::new();
    let opened =
        std::fs::File::open(file).ok().filter(|opened| opened.metadata().is_ok_and(|it| it.is_file()))?;
    opened.take(HEAD_LEN).read_to_end(&mut head).ok()?;
    // Results are text, one object a line; the first may be longer than what was read, but names its fields first.
    let head = String::from_utf8_lossy(&head);
    let is_like = head.trim_start().starts_with("{\"file\":");
    let text = is_like.then(|| std::fs::read_to_string(file).ok()).flatten()?;
    Run::is_like(&text).then_some(text)
}

const HEAD_LEN: u64 = 64;
