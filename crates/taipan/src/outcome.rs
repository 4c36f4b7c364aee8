//! The answer to a claim.

use crate::{Error, refusal, witness};
use certify::{Certificate, has_certifier};
use checker::{Budget, Claim, Options, Passes, Undecided, Verdict, VerdictKind};
use history::History;
use report::{Cost, Detail, Finding, Palette};
use std::time::Instant;

/// The answer to a claim about a history.
#[derive(Clone, Debug)]
pub struct Outcome {
    claim: Claim,
    verdict: Verdict,
    /// How it was looked for.
    options: Options,
    cost: Cost,
}

impl Outcome {
    pub(crate) fn of(history: &History, claim: &Claim, options: &Options) -> Self {
        let started = Instant::now();
        let verdict = match refusal::says_enough(history, claim) {
            Ok(()) => checker::answer(claim, &checker::subject(claim, history), options).outcome.verdict,
            Err(refused) => Verdict::Undecided(undecided(&refused)),
        };
        let check_ms = started.elapsed().as_secs_f64() * 1000.0;
        // What is asked of it later has its own time.
        let options = Options { budget: Budget::unlimited(), ..claim.options(options) };
        Self { claim: *claim, verdict, options, cost: Cost { check_ms, ..Cost::default() } }
    }

    /// Whether a correct database could have produced the history.
    pub fn is_accepted(&self) -> bool {
        self.kind() == VerdictKind::Accepted
    }

    /// Whether no correct database can have produced it.
    pub fn is_violated(&self) -> bool {
        self.kind() == VerdictKind::Violated
    }

    /// Accepted, violated or undecided.
    pub fn kind(&self) -> VerdictKind {
        self.verdict.kind()
    }

    /// What was asked.
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// The answer with what proves it.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// What went wrong, by Elle's name, such as `lost-update` or `G-single`; none if the history is not violated.
    pub fn anomaly(&self) -> Option<&str> {
        match &self.verdict {
            Verdict::Violated(evidence) => Some(&evidence.anomaly.name),
            _ => None,
        }
    }

    /// The answer and its argument in the words that the program prints. `history` is the one that was checked.
    pub fn explain(&self, history: &History) -> String {
        let subject = checker::subject(&self.claim, history);
        let finding = Finding::new("history", self.claim, &subject, &self.verdict, self.cost);
        report::text(&finding, Detail::Full, Palette::plain())
    }

    /// The smallest part of a violated history that is still violated; none if the history is not violated. `history` is
    /// the one that was checked.
    pub fn smallest(&self, history: &History) -> Option<History> {
        let Verdict::Violated(evidence) = &self.verdict else { return None };
        let (claim, options) = (&self.claim, &self.options);
        let judge = |part: &History| checker::answer(claim, part, options).outcome.verdict;
        let subject = checker::subject(claim, history);
        let reduced = checker::reduce(&subject, claim.level, options, evidence, judge)?;
        Some(reduced.history)
    }

    /// One line that lets [`certify`](crate::certify) check the answer again; none if there are no certificates of such
    /// claims, or nothing was decided. `history` is the one that was checked.
    pub fn certificate(&self, history: &History) -> Option<String> {
        let Claim { level, by, mixed, vendor, .. } = self.claim;
        let has_certificates =
            has_certifier(level) && by == checker::By::Results && !mixed && vendor.is_none();
        if !has_certificates || self.kind() == VerdictKind::Undecided {
            return None;
        }
        let again = witness::is_missing(&self.verdict, level).then(|| {
            let passes = Passes { timestamps: false, ..self.options.passes };
            let options = Options { passes, ..self.options.clone() };
            checker::answer(&self.claim, history, &options).outcome.verdict
        });
        let verdict = again.as_ref().unwrap_or(&self.verdict);
        let mut certificate = Certificate::new("history", history, level, &self.options, verdict);
        checker::add_proof(&mut certificate, history, &self.options);
        let mut line = Vec::new();
        certificate.write(&mut line).expect("a vector takes everything");
        Some(String::from_utf8(line).expect("JSON is text"))
    }
}

/// Why nothing was decided, where the answer would say less than it seems to.
fn undecided(refused: &Error) -> Undecided {
    Undecided::Untested(refused.to_string())
}
