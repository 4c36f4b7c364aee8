//! `taipan check`: every file at every level asked for.

use crate::baseline::Baseline;
use crate::certificates::{self, Certificates};
use crate::checking::{Checking, checker};
use crate::clustered;
use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{CheckFlags, Output, SearchFlags};
use crate::input::left_out;
use crate::names::Names;
use crate::output::Sink;
use checker::certify::has_certifier;
use checker::{By, Level};
use report::Remark;
use std::path::Path;
use taipan::files::{AllLevels, Checked, Checker, Opened};
use taipan::{Claim, Policy};

pub(crate) fn run(flags: &CheckFlags, console: &mut Console) -> Outcome {
    let names = Names::new(flags.levels_file.as_deref(), flags.policy.profile)?;
    let levels = names.levels(&flags.levels.level, "--level <LEVEL>")?;
    refuse(flags, &levels)?;
    let checking = Checking::new(resolved(flags, &names)?, names, flags.reading.options()).at(&levels)?;
    checking.say_meanings(&flags.levels.level, console)?;
    for level in levels.iter().filter(|level| level.own.is_some()) {
        console.note(level.definition());
    }
    if flags.certificate.is_some() {
        certificates::serve(&flags.policy, &levels)?;
    }
    let baseline = flags.baseline.as_deref().map(Baseline::read).transpose()?;
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
            let mut run = Run { flags, checking: &checking, sink: &mut sink, console, progress: &progress };
            exit = exit.and(run.file(file, certificates.as_mut())?);
            progress.step();
        }
    }
    sink.finish(console)?;
    if let Some(certificates) = certificates {
        certificates.finish()?;
    }
    Ok(exit)
}

/// How files are checked.
fn resolved(flags: &CheckFlags, names: &Names) -> Result<Checker, Stop> {
    let by = if flags.order.compare { By::Timestamps } else { flags.by() };
    let mut checker = checker(Policy { by, ..flags.policy.policy(names) }, &flags.limits)?;
    checker.strategy = flags.search.strategy;
    for name in &flags.search.without {
        checker.passes = checker.passes.without(name).map_err(|unknown| unknown.to_string())?;
    }
    checker.compares = flags.order.compare;
    checker.is_shared = flags.all_levels || flags.levels.level.len() > 1;
    checker.needs_witness = flags.certificate.is_some();
    checker.required.clone_from(&flags.require.require);
    Ok(checker)
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
fn refuse(flags: &CheckFlags, levels: &[Level]) -> Result<(), String> {
    if let Some(profile) = flags.policy.profile.filter(|_| flags.all_levels) {
        return Err(format!(
            "--all-levels checks the levels of `taipan levels`, not those of --profile {}: remove one of them",
            profile.name
        ));
    }
    let of_results = [
        (flags.certificate.is_some(), "--certificate needs a check by results"),
        (flags.all_levels, "--all-levels includes levels that need a check by results"),
        (flags.anomalies, "--anomalies needs a check by results"),
        (levels.iter().any(|level| level.own.is_some()), "custom levels need a check by results"),
        (flags.policy.profile.is_some(), "--profile needs a check by results"),
        (flags.policy.mixed, "--mixed needs a check by results"),
        (flags.search != SearchFlags::default(), "--strategy and --without need a check by results"),
    ];
    let is_by_timestamps = flags.by() == By::Timestamps || flags.order.compare;
    if let Some((_, why)) = of_results.into_iter().find(|(asked, _)| *asked && is_by_timestamps) {
        return Err(format!("{why}: remove --by timestamps"));
    }
    Ok(())
}

/// Files on their way through.
struct Run<'a> {
    flags: &'a CheckFlags,
    checking: &'a Checking,
    sink: &'a mut Sink,
    console: &'a mut Console,
    progress: &'a Progress,
}

impl Run<'_> {
    fn file(&mut self, file: &Path, mut certificates: Option<&mut Certificates>) -> Outcome {
        let Self { flags, checking, progress, .. } = *self;
        let name = file.display().to_string();
        progress.say(format_args!("reading {name}"));
        let in_parts = !flags.all_levels && flags.certificate.is_none() && flags.policy.profile.is_none();
        if let Some(findings) = in_parts.then(|| checking.accept_in_parts(file)).flatten() {
            for finding in findings {
                self.sink.finding(finding, self.console, progress)?;
            }
            return Ok(Exit::Accepted);
        }
        let opened = match checking.open(file) {
            Ok(opened) => opened,
            Err(failure) => return self.unread(failure),
        };
        if let Some(warning) = left_out(&opened.warnings) {
            progress.pause(|| self.console.note(warning));
        }
        if flags.all_levels {
            return self.all_levels(&opened, file);
        }
        let claims = match self.claims(&opened, certificates.is_some()) {
            Ok(claims) => claims,
            Err(refused) => return self.refused(refused),
        };
        self.sink.history(&name, claims.first().map_or(&opened.history, |claim| opened.subject(claim)));
        let mut exit = Exit::Accepted;
        // Each answer is printed before the next is looked for.
        for claim in claims {
            exit = exit.and(match self.check(&opened, claim) {
                Ok(checked) => {
                    if let Some(certificates) =
                        certificates.as_mut().filter(|_| has_certifier(checked.level()))
                    {
                        certificates.write(&checking.checker.certificate(&opened, &checked))?;
                    }
                    self.tell(&opened, file, checked)?
                }
                Err(failure) => self.refused(failure)?,
            });
        }
        Ok(exit)
    }

    /// What is asked of a file. The level in a header is known only now.
    fn claims(&self, opened: &Opened, certifies: bool) -> Result<Vec<Claim>, Failure> {
        let claims = self.checking.claims(opened)?;
        match claims.iter().find(|claim| certifies && !has_certifier(claim.level)) {
            Some(claim) => Err(Failure::refused(&opened.name, certificates::no_certifier(claim.level))),
            None => Ok(claims),
        }
    }

    fn check(&self, opened: &Opened, claim: Claim) -> Result<Checked, Failure> {
        let Self { flags, checking, progress, .. } = *self;
        let name = &opened.name;
        progress.say(format_args!("{name}: {claim}"));
        let checked = checking.check(opened, claim)?;
        if !flags.anomalies {
            return Ok(checked);
        }
        progress.say(format_args!("{name}: {claim}: every kind of anomaly"));
        checking.with_anomalies(opened, checked)
    }

    fn all_levels(&mut self, opened: &Opened, file: &Path) -> Outcome {
        self.sink.history(&opened.name, &opened.history);
        let all = self.checking.all_levels(opened, |claim| self.check(opened, claim));
        let AllLevels { frontier, follows, surveyed } = match all {
            Ok(all) => all,
            Err(failure) => return self.refused(failure),
        };
        let mut exit = Exit::Accepted;
        for checked in frontier {
            exit = exit.and(self.tell(opened, file, checked)?);
        }
        for finding in &follows {
            self.sink.follows(finding, self.console)?;
        }
        self.sink.survey(surveyed, self.console, self.progress)?;
        Ok(exit)
    }

    /// Tells of one verdict.
    fn tell(&mut self, opened: &Opened, file: &Path, checked: Checked) -> Outcome {
        let Self { flags, checking, .. } = *self;
        let mut exit = Exit::of(checked.verdict.kind());
        let part = match self.sink.wants_parts() {
            true => checking.look_closer(opened, &checked)?,
            false => None,
        };
        let subject = opened.subject(&checked.claim);
        let mut finding = match flags.output {
            Output::Text => checking.in_context(opened, (opened.name != "-").then_some(file), checked),
            _ if self.sink.wants_lines() => {
                checking.checker.with_lines(opened, file, &checking.reading, checked.finding)
            }
            _ => checked.finding,
        };
        if self.sink.knows(&finding) {
            finding = finding.known();
            exit = Exit::Accepted;
        }
        // What is printed does not depend on whether a page is written, too.
        let on_page = match part {
            Some((reduced, part)) => finding.clone().retold(subject, &reduced).with_part(part),
            None => finding.clone(),
        };
        self.sink.shown(finding, on_page, self.console, self.progress)?;
        Ok(exit)
    }

    /// Tells of a file that was not read to its end.
    fn unread(&mut self, failure: Failure) -> Outcome {
        match self.checking.undecided(failure) {
            Ok(findings) => {
                for finding in findings {
                    self.sink.finding(finding, self.console, self.progress)?;
                }
                Ok(Exit::Undecided)
            }
            Err(failure) => self.refused(failure),
        }
    }

    fn refused(&mut self, failure: Failure) -> Outcome {
        self.sink.trouble(failure.trouble(), self.console, self.progress)?;
        Ok(Exit::Error)
    }
}
