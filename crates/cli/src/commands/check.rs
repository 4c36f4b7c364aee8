//! `taipan check`: every file at every level asked for.

use crate::baseline::Baseline;
use crate::certificates::{self, Certificates};
use crate::checking::{Checked, Checking, Opened, Unopened};
use crate::clustered;
use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::flags::{CheckFlags, Output, SearchFlags};
use crate::output::Sink;
use checker::certify::has_certifier;
use checker::{By, Claim, Fragment, Level, Survey};
use report::{Finding, Remark, Surveyed, Trouble};
use std::path::Path;

pub(crate) fn run(flags: &CheckFlags, console: &mut Console) -> Outcome {
    let checking = Checking::new(&flags.policy, &flags.limits).map_err(Stop::Error)?;
    let checking = checking.searching(&flags.search).map_err(Stop::Error)?;
    refuse(flags).map_err(Stop::Error)?;
    let checking = match flags.order.compare {
        true => checking.comparing(),
        false => checking.judging(flags.order.by()),
    };
    let checking = checking.requiring(&flags.require);
    let checking = checking.sharing(flags.all_levels || flags.levels.level.len() > 1);
    let checking = checking.witnessing(flags.certificate.is_some());
    checking.say_profile(&flags.levels.level, console)?;
    for level in flags.levels.level.iter().filter(|level| level.own.is_some()) {
        console.note(level.definition());
    }
    if flags.certificate.is_some() {
        certificates::serve(&flags.policy, &flags.levels.level).map_err(Stop::Error)?;
    }
    let baseline = flags.baseline.as_deref().map(Baseline::read).transpose().map_err(Stop::Error)?;
    let mut sink = Sink::new(flags.output, flags.report.clone()).against(baseline);
    if let Some(remarks) = &flags.remarks {
        sink = sink.remarked(read_remarks(remarks)?);
    }
    if flags.workers.crew.are_set() {
        let exit = clustered::run(flags, &checking, &mut sink, console)?;
        sink.finish(console)?;
        return Ok(exit);
    }
    let mut certificates = flags.certificate.as_deref().map(Certificates::create).transpose()?;
    let mut exit = Exit::Accepted;
    {
        let progress = console.progress(flags.files.len() as u64);
        for file in &flags.files {
            let proofs = certificates.as_mut();
            exit = exit.and(check_file(flags, &checking, file, &mut sink, proofs, console, &progress)?);
            progress.step();
        }
    }
    sink.finish(console)?;
    if let Some(certificates) = certificates {
        certificates.finish()?;
    }
    Ok(exit)
}

pub(crate) fn read_remarks(path: &Path) -> Result<Vec<Remark>, Stop> {
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::Error(format!("cannot read the remarks {name}: {error}")))?;
    Remark::parse_all(&text).map_err(|(line, error)| {
        Stop::Error(format!(
            "{name}:{line}: not a remark: {error}; expected an object such as {{\"at\":100,\"until\":200,\"text\":\"…\"}}"
        ))
    })
}

/// Refuses flags that cannot serve what is asked.
fn refuse(flags: &CheckFlags) -> Result<(), String> {
    if let Some(profile) = flags.policy.profile.filter(|_| flags.all_levels) {
        return Err(format!(
            "--all-levels checks the levels of `taipan levels`, not those of --profile {}: remove one of them",
            profile.name
        ));
    }
    if flags.order.by() == By::Results && !flags.order.compare {
        return Ok(());
    }
    let of_results = [
        (flags.certificate.is_some(), "--certificate needs a check by results"),
        (flags.all_levels, "--all-levels includes levels that need a check by results"),
        (flags.anomalies, "--anomalies needs a check by results"),
        (flags.levels.level.iter().any(|level| level.own.is_some()), "custom levels need a check by results"),
        (flags.policy.profile.is_some(), "--profile needs a check by results"),
        (flags.policy.mixed, "--mixed needs a check by results"),
        (flags.search != SearchFlags::default(), "--strategy and --without need a check by results"),
    ];
    match of_results.into_iter().find(|(asked, _)| *asked) {
        Some((_, why)) => Err(format!("{why}: remove --by timestamps")),
        None => Ok(()),
    }
}

fn check_file(
    flags: &CheckFlags,
    checking: &Checking<'_>,
    file: &Path,
    sink: &mut Sink,
    mut certificates: Option<&mut Certificates>,
    console: &mut Console,
    progress: &Progress,
) -> Outcome {
    let name = file.display().to_string();
    progress.say(format_args!("reading {name}"));
    let in_parts = !flags.all_levels && flags.certificate.is_none() && flags.policy.profile.is_none();
    if let Some(findings) =
        in_parts.then(|| checking.accept_in_parts(file, &flags.reading, &flags.levels.level)).flatten()
    {
        for finding in findings {
            sink.finding(finding, console, progress)?;
        }
        return Ok(Exit::Accepted);
    }
    let opened = match checking.open(file, &flags.reading) {
        Ok(opened) => opened,
        Err(Unopened::Trouble(trouble)) => {
            sink.trouble(trouble, console, progress)?;
            return Ok(Exit::Error);
        }
        Err(Unopened::Ended(ended)) => match checking.undecided(&flags.levels.level, &ended) {
            Ok(findings) => {
                for finding in findings {
                    sink.finding(finding, console, progress)?;
                }
                return Ok(Exit::Undecided);
            }
            Err(message) => {
                sink.trouble(Trouble::new(&name, message), console, progress)?;
                return Ok(Exit::Error);
            }
        },
    };
    if let Some(warning) = &opened.warning {
        progress.pause(|| console.note(warning));
    }
    let check = |claim: Claim| {
        progress.say(format_args!("{name}: {claim}"));
        let checked = checking.check(&opened, claim)?;
        if !flags.anomalies {
            return Ok(checked);
        }
        progress.say(format_args!("{name}: {claim}: every kind of anomaly"));
        checking.with_anomalies(&opened, checked)
    };
    let mut all: Option<All> = None;
    // Lazy, so that each answer is printed before the next is looked for.
    let results: Box<dyn Iterator<Item = Result<Checked, String>>> = if flags.all_levels {
        sink.history(&name, &opened.history);
        match frontier(checking, &opened, check) {
            Ok((checked, rest)) => {
                all = Some(rest);
                Box::new(checked.into_iter().map(Ok))
            }
            Err(message) => Box::new([Err(message)].into_iter()),
        }
    } else {
        let claims = checking.claims(&flags.levels.level, &opened).and_then(|claims| {
            // The level in a header is known only now.
            match claims.iter().find(|claim| certificates.is_some() && !has_certifier(claim.level)) {
                Some(claim) => Err(format!("{name}: {}", certificates::no_certifier(claim.level))),
                None => Ok(claims),
            }
        });
        match claims {
            Ok(claims) => {
                let subject = claims.first().map_or(&opened.history, |claim| opened.subject(claim));
                sink.history(&name, subject);
                Box::new(claims.into_iter().map(check))
            }
            Err(message) => Box::new([Err(message)].into_iter()),
        }
    };
    let mut exit = Exit::Accepted;
    for result in results {
        exit = exit.and(match result {
            Ok(checked) => {
                let mut exit = checked.exit();
                if let Some(certificates) = certificates.as_mut().filter(|_| has_certifier(checked.level())) {
                    certificates.write(&checking.certificate(&opened, &checked))?;
                }
                let part = match sink.wants_parts() {
                    true => checking.look_closer(&opened, &checked).map_err(Stop::Error)?,
                    false => None,
                };
                let subject = opened.subject(&checked.claim());
                let mut finding = match flags.output {
                    Output::Text => checking.in_context(&opened, (name != "-").then_some(file), checked),
                    _ if sink.wants_lines() => {
                        checking.with_lines(&opened, file, &flags.reading, checked.finding)
                    }
                    _ => checked.finding,
                };
                if sink.knows(&finding) {
                    finding = finding.known();
                    exit = Exit::Accepted;
                }
                // What is printed does not depend on whether a page is written, too.
                let on_page = match part {
                    Some((reduced, part)) => finding.clone().retold(subject, &reduced).with_part(part),
                    None => finding.clone(),
                };
                sink.shown(finding, on_page, console, progress)?;
                exit
            }
            Err(message) => {
                sink.trouble(Trouble::new(&name, message), console, progress)?;
                Exit::Error
            }
        });
    }
    if let Some(All { follows, surveyed }) = all {
        for finding in &follows {
            sink.follows(finding, console)?;
        }
        sink.survey(surveyed, console, progress)?;
    }
    Ok(exit)
}

/// What all levels come to, beside the frontier.
pub(crate) struct All {
    pub(crate) follows: Vec<Finding>,
    pub(crate) surveyed: Surveyed,
}

/// What is told of all levels: the strongest that hold, the weakest that are violated, and what is not known; and what
/// follows from that.
pub(crate) fn frontier(
    checking: &Checking<'_>,
    opened: &Opened,
    check: impl Fn(Claim) -> Result<Checked, String>,
) -> Result<(Vec<Checked>, All), String> {
    checking.ask_all(opened);
    let probe =
        |level: Level, fragment: &Fragment<'_>| Ok(checking.probe(opened, checking.claim(level)?, fragment));
    let check = |level: Level| check(checking.claim(level)?);
    let Survey { strongest, weakest, undecided, marks, follows } =
        checker::survey(&opened.history, check, probe, |checked| &checked.verdict)?;
    let checked = strongest.into_iter().chain(weakest).chain(undecided).map(|(_, checked)| checked).collect();
    let mark = |level: Level| marks.iter().find(|(other, _)| *other == level).map(|&(_, mark)| mark);
    let follows = follows.iter().filter_map(|&(level, by)| {
        let mark = mark(level)?;
        let claim = checking.claim(level).ok()?;
        Some(Finding::follows(&opened.name, claim, mark, Some(by.name()), &opened.history))
    });
    let all = All {
        follows: follows.collect(),
        surveyed: Surveyed { file: opened.name.clone(), marks: marks.clone() },
    };
    Ok((checked, all))
}
