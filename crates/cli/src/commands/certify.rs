//! `taipan certify`: a second opinion on every line of a certificate.

use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::failure::{Failure, attempt, guarded};
use crate::flags::{CertifyFlags, ListOutput};
use crate::input::left_out;
use crate::names::Names;
use checker::certify::{Certificate, Fingerprint, Question, Ruling, certify};
use checker::{Claim, VerdictKind};
use history::History;
use serde::Serialize;
use std::io::Write;
use std::time::{Duration, Instant};
use taipan::files::{Limits, read};
use taipan::{Assumption, Error, Policy};

pub(crate) fn run(flags: &CertifyFlags, console: &mut Console) -> Outcome {
    let name = flags.file.display().to_string();
    let proof = flags.certificate.display().to_string();
    let started = Instant::now();
    let limits = flags.bounds.limits()?;
    let guard = limits.guard(started);
    let len = std::fs::metadata(&flags.certificate).map_or(0, |meta| meta.len());
    if guard.interrupt().is_due(len) {
        return Err(Stop::Limit(format!("{proof}: {} while it is read", guard.why())));
    }
    let text = std::fs::read_to_string(&flags.certificate)
        .map_err(|error| Stop::Error(format!("cannot read {proof}: {error}")))?;
    let progress = console.progress(1);
    progress.say(format_args!("reading {name}"));
    let loaded = attempt(|| read(&flags.file, &flags.reading.options(), &guard));
    let loaded = loaded.map_err(|cause| Failure::new(&name, cause))?;
    drop(guard);
    if let Some(warning) = left_out(&loaded.warnings) {
        progress.pause(|| console.note(warning));
    }
    let asked = asked(flags, &name, loaded.history.level())?;
    let read_time = started.elapsed();
    let certifying =
        Certifying { flags, limits, read_time, name: &name, proof: &proof, history: &loaded.history, asked };
    certifying.lines(&text, console, &progress)
}

/// What is asked: as of `taipan check` with the same flags.
fn asked(flags: &CertifyFlags, name: &str, header: Option<&str>) -> Result<Vec<Question>, Stop> {
    let names = Names::default();
    let policy = Policy {
        assume: flags.assume.iter().copied().map(Assumption::from).collect(),
        clock_skew: flags.clock_skew,
        ryow: flags.ryow.into(),
        ..Policy::default()
    };
    let levels = names.levels(&flags.levels.level, "--level <LEVEL>")?;
    let claims = policy.claims(&names.asked(&levels)?, header);
    let question =
        |claim: Claim| Question { level: claim.level, ryow: claim.ryow, clock_skew: claim.clock_skew };
    let claims = claims.map_err(|bad| Failure::new(name, Error::from(bad)))?;
    Ok(claims.into_iter().map(question).collect())
}

struct Certifying<'a> {
    flags: &'a CertifyFlags,
    limits: Limits,
    read_time: Duration,
    name: &'a str,
    proof: &'a str,
    history: &'a History,
    /// What is asked: a certificate of anything else is refused, and so is a question without a certificate.
    asked: Vec<Question>,
}

impl Certifying<'_> {
    fn lines(&self, text: &str, console: &mut Console, progress: &Progress) -> Outcome {
        let fingerprint = Fingerprint::of(self.history);
        let mut exit = Exit::Accepted;
        let mut about_this = 0;
        let mut foreign = Vec::new();
        let mut unanswered = self.asked.clone();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let certificate = match Certificate::parse(line) {
                Ok(certificate) => certificate,
                Err(malformed) => {
                    let column = malformed.column.map_or(String::new(), |column| format!(":{column}"));
                    let place = format!("{}:{}{column}", self.proof, index + 1);
                    progress.pause(|| console.error(format_args!("{place}: not a certificate: {malformed}")));
                    exit = exit.and(Exit::Error);
                    continue;
                }
            };
            // A line about another file is none of our business, unless there is no other.
            if certificate.fingerprint != fingerprint && certificate.file != self.name {
                foreign.push((index + 1, certificate.file.into_owned()));
                continue;
            }
            about_this += 1;
            unanswered.retain(|question| *question != certificate.question());
            progress.say(format_args!("{}: {}", self.name, certificate.level));
            exit = exit.and(self.line(index + 1, &certificate, console, progress)?);
        }
        for (line, file) in &foreign {
            let place = format!("{}:{line}", self.proof);
            progress.pause(|| console.note(format_args!("{place}: is about another history ({file})")));
        }
        if about_this == 0 && exit == Exit::Accepted {
            let none = format!("{} contains no certificate for {}", self.proof, self.name);
            progress.pause(|| console.error(none));
            return Ok(Exit::Violated);
        }
        for question in unanswered.iter().filter(|_| about_this > 0) {
            let none = format!("{} contains no certificate of {question} for {}", self.proof, self.name);
            progress.pause(|| console.error(none));
            exit = exit.and(Exit::Violated);
        }
        Ok(exit)
    }

    fn line(
        &self,
        line: usize,
        certificate: &Certificate<'_>,
        console: &mut Console,
        progress: &Progress,
    ) -> Outcome {
        let now = Instant::now();
        let guard = self.limits.guard(now.checked_sub(self.read_time).unwrap_or(now));
        let budget = guard.budget();
        let answers = match self.asked.contains(&certificate.question()) {
            true => Ok(()),
            false => self.asked.first().map_or(Ok(()), |&asked| certificate.answers(asked)),
        };
        let ruling = match answers {
            Ok(()) => {
                let ruling = guarded(|| certify(self.history, certificate, &budget));
                ruling.map_err(|cause| Failure::new(self.name, cause))?
            }
            Err(refusal) => Ruling::Refused(refusal),
        };
        let (exit, outcome, reason) = match &ruling {
            Ruling::Certified => (Exit::Accepted, "certified", None),
            Ruling::Refused(refusal) => (Exit::Violated, "refused", Some(refusal.to_string())),
            Ruling::Beyond(why) => (Exit::Undecided, "not certified", Some(why.clone())),
        };
        let told = Told {
            file: self.name,
            certificate: self.proof,
            line,
            level: certificate.level.name(),
            by: "results",
            ryow: certificate.ryow.name(),
            clock_skew: certificate.clock_skew,
            question: certificate.question(),
            verdict: certificate.claim.verdict(),
            outcome,
            reason,
        };
        progress.pause(|| match self.flags.output {
            ListOutput::Text => writeln!(console.out(), "{told}"),
            ListOutput::Json => writeln!(console.out(), "{}", told.json()),
        })?;
        Ok(exit)
    }
}

/// What is reported about one line.
#[derive(Serialize)]
struct Told<'a> {
    file: &'a str,
    certificate: &'a str,
    line: usize,
    level: &'a str,
    by: &'a str,
    ryow: &'a str,
    clock_skew: i64,
    #[serde(skip)]
    question: Question,
    verdict: VerdictKind,
    outcome: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Told<'_> {
    fn json(&self) -> String {
        serde_json::to_string(self).expect("names and sentences always have a JSON form")
    }
}

impl std::fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, question, verdict, outcome, .. } = self;
        write!(f, "{file}: {question}: {verdict}: {outcome}")?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
