//! `taipan run`: a workload on a database, recorded and checked.

use crate::checking::{Checking, checker};
use crate::console::{Console, Outcome};
use crate::exit::Exit;
use crate::flags::{Output, RunFlags};
use crate::input::passwords;
use crate::names::Names;
use crate::output::Sink;
use crate::recording::{self, Recorded, Session};
use checker::{Level, VerdictKind};
use history::Status;
use history::formats::ReadOptions;
use report::Finding;
use std::io::Write;
use taipan::files::{Limits, Opened};

pub(crate) fn run(flags: &RunFlags, console: &mut Console) -> Outcome {
    let names = Names::new(None, flags.policy.profile)?;
    let levels = names.levels(&flags.levels.level, "--level <LEVEL>")?;
    let mut checker = checker(flags.policy.policy(&names), &flags.limits)?;
    checker.required.clone_from(&flags.require.require);
    let recorded = record(flags, &levels, checker.limits, console)?;
    if let Some(trouble) = &recorded.trouble {
        console.error(trouble);
    }
    let name = flags.record.as_ref().map_or(flags.target.to_string(), |file| file.display().to_string());
    let asked = match (levels.as_slice(), flags.policy.profile) {
        ([], None) => vec![recorded.level],
        // The database's own name of the level that it ran at.
        ([], Some(_)) => recorded.isolation.iter().flat_map(|it| Level::parse(it.name)).collect(),
        (levels, _) => levels.to_vec(),
    };
    let checking = Checking::new(checker, names, ReadOptions::default()).at(&asked)?;
    let opened = match recorded.kept.open(name, &checking) {
        Ok(opened) => opened,
        Err(failure) => {
            let mut sink = Sink::new(flags.output, flags.report.clone());
            let progress = console.progress(0);
            for finding in checking.undecided(failure)? {
                sink.finding(finding, console, &progress)?;
            }
            sink.finish(console)?;
            return Ok(if recorded.trouble.is_some() { Exit::Error } else { Exit::Undecided });
        }
    };
    let a_second = opened.history.len() as f64 / recorded.time.as_secs_f64().max(1e-9);
    console.note(format_args!("{}: {} ({a_second:.0}/s)", recorded.database, opened.counts()));
    if let Some(hint) = abort_hint(&opened) {
        console.note(hint);
    }
    for planted in &recorded.planted {
        console.note(format_args!("planted {}", recording::place(planted)));
    }
    let mut exit = Exit::Accepted;
    if let Some(live) = &recorded.live {
        for violation in &live.violations {
            console.note(format_args!("during the run: {violation}"));
        }
        let (settled, count) = (live.settled(), live.count);
        let undecided = match live.undecided {
            0 => String::new(),
            count => format!(", {count} results undecided because of transactions of unknown outcome"),
        };
        let left = if live.judges_conflicts { "" } else { "; write conflicts are checked afterwards" };
        console.note(format_args!(
            "during the run: {settled} transactions checked by their timestamps, {count} violations of snapshot isolation{undecided}{left}"
        ));
        exit = exit.and(live.exit());
    }
    if flags.no_check {
        return Ok(exit);
    }
    let claims = checking.claims(&opened)?;
    checking.say_meanings(&flags.levels.level, console)?;
    let mut sink = Sink::new(flags.output, flags.report.clone());
    let promised = recorded.isolation.and_then(|isolation| Level::parse(isolation.promises).ok());
    let mut is_broken = false;
    // A run that stopped early did not do what was asked, whatever its history says.
    exit = exit.and(if recorded.trouble.is_some() { Exit::Error } else { Exit::Accepted });
    {
        let progress = console.progress(1);
        for claim in claims {
            progress.say(format_args!("{}: {claim}", opened.name));
            let checked = checking.check(&opened, claim)?;
            exit = exit.and(Exit::of(checked.verdict.kind()));
            let finding = match flags.output {
                Output::Text => checking.in_context(&opened, flags.record.as_deref(), checked),
                _ => checked.finding,
            };
            is_broken |= promised.is_some_and(|promised| breaks(&finding, promised));
            sink.finding(finding, console, &progress)?;
        }
    }
    sink.finish(console)?;
    if flags.output == Output::Text {
        let guarantee = match &recorded.isolation {
            Some(isolation) => recording::guarantee(&recorded.database, isolation),
            None => recording::simulated_guarantee(recorded.level, recorded.planted.len()),
        };
        let but = if is_broken { " This run violated that." } else { "" };
        writeln!(console.out(), "{guarantee}{but}")?;
    }
    Ok(exit)
}

/// Whether a finding shows that a database did not keep a level.
fn breaks(finding: &Finding, promised: Level) -> bool {
    let allows = |level: &Level| checker::implies(*level, promised);
    finding.verdict == VerdictKind::Violated
        && (checker::implies(promised, finding.claim.level)
            || !finding.allowed.is_empty() && !finding.allowed.iter().any(allows))
}

/// What to change where most transactions abort, which leaves little to check.
fn abort_hint(opened: &Opened) -> Option<String> {
    let aborted = opened.history.transactions().filter(|txn| txn.status() == Status::Aborted).count();
    (2 * aborted > opened.history.len()).then(|| {
        let share = 100 * aborted / opened.history.len();
        format!(
            "{share} % of the transactions aborted, so little is tested: use fewer sessions (--sessions), more keys \
             (--set keys=N) or a weaker level (--isolation)"
        )
    })
}

fn record(
    flags: &RunFlags,
    levels: &[Level],
    limits: Limits,
    console: &mut Console,
) -> Result<Recorded, String> {
    let progress = console.progress(flags.plan.transactions);
    progress.say(format_args!("running on {}", flags.target));
    let target = flags.target.expose();
    if target.starts_with("sim:") && flags.live {
        return Err("--live needs a real database, not a simulated one".to_owned());
    }
    if target.starts_with("sim:") {
        let target: workload::Target = target.parse().map_err(|error| format!("{error}"))?;
        let recorded = recording::simulated(flags.plan.config(&target)?)?;
        if let Some(file) = &flags.record {
            recorded.save(file)?;
        }
        return Ok(recorded);
    }
    let settings = flags.plan.plan()?;
    if let Some(file) = flags.record.as_ref().filter(|file| file.extension().is_none_or(|end| end != "jsonl"))
    {
        return Err(format!("cannot record to {}: the name must end in .jsonl", file.display()));
    }
    let mut database =
        databases::open_with(&flags.target, &passwords()).map_err(|failure| failure.to_string())?;
    let session = Session {
        isolation: flags.isolation.as_deref(),
        levels,
        timestamps: flags.timestamps,
        live: flags.live,
        duration: flags.duration,
        file: flags.record.clone(),
        target: flags.target.expose(),
        limits,
        load: &flags.load,
    };
    recording::live(&mut *database, settings, flags.plan.transactions, session, &progress)
}
