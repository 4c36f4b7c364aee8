//! `taipan certify`: a second opinion on every line of a certificate.

use crate::checking::guarded;
use crate::console::{Console, Outcome, Progress, Stop};
use crate::exit::Exit;
use crate::flags::{CertifyFlags, ListOutput};
use crate::input::left_out;
use checker::Budget;
use checker::certify::{Certificate, Fingerprint, Ruling, certify};
use history::History;
use serde::Serialize;
use std::io::Write;

pub(crate) fn run(flags: &CertifyFlags, console: &mut Console) -> Outcome {
    let name = flags.file.display().to_string();
    let proof = flags.certificate.display().to_string();
    let text = std::fs::read_to_string(&flags.certificate)
        .map_err(|error| Stop::Error(format!("{proof}: cannot be read: {error}")))?;
    let progress = console.progress(1);
    progress.say(format_args!("reading {name}"));
    let loaded = guarded(&name, || flags.reading.read(&flags.file)).map_err(Stop::Error)?;
    let loaded = loaded.map_err(|error| Stop::Error(error.to_string()))?;
    if let Some(warning) = left_out(&loaded.warnings) {
        progress.pause(|| console.note(warning));
    }
    let certifying = Certifying { flags, name: &name, proof: &proof, history: &loaded.history };
    certifying.lines(&text, console, &progress)
}

struct Certifying<'a> {
    flags: &'a CertifyFlags,
    name: &'a str,
    proof: &'a str,
    history: &'a History,
}

impl Certifying<'_> {
    fn lines(&self, text: &str, console: &mut Console, progress: &Progress) -> Outcome {
        let fingerprint = Fingerprint::of(self.history);
        let mut exit = Exit::Accepted;
        let mut about_this = 0;
        let mut foreign = Vec::new();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let certificate = match Certificate::parse(line) {
                Ok(certificate) => certificate,
                Err(malformed) => {
                    let column = malformed.column.map_or(String::new(), |column| format!(":{column}"));
                    let place = format!("{}:{}{column}", self.proof, index + 1);
                    progress.pause(|| console.error(format_args!("{place}: no certificate: {malformed}")));
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
            progress.say(format_args!("{}: {}", self.name, certificate.level));
            exit = exit.and(self.line(index + 1, &certificate, console, progress)?);
        }
        for (line, file) in &foreign {
            let place = format!("{}:{line}", self.proof);
            progress.pause(|| console.note(format_args!("{place}: is about another history ({file})")));
        }
        if about_this == 0 && exit == Exit::Accepted {
            let none = format!("{}: no line of it is about {}", self.proof, self.name);
            progress.pause(|| console.error(none));
            return Ok(Exit::Violated);
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
        let budget = Budget::unlimited();
        let budget = match self.flags.timeout {
            Some(time) => budget.with_timeout(time),
            None => budget,
        };
        let ruling =
            guarded(self.name, || certify(self.history, certificate, &budget)).map_err(Stop::Error)?;
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

/// What is told of one line.
#[derive(Serialize)]
struct Told<'a> {
    file: &'a str,
    certificate: &'a str,
    line: usize,
    level: &'a str,
    verdict: &'a str,
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
        let Self { file, level, verdict, outcome, .. } = self;
        write!(f, "{file}: {level}: {verdict}: {outcome}")?;
        self.reason.as_ref().map_or(Ok(()), |reason| write!(f, ": {reason}"))
    }
}
