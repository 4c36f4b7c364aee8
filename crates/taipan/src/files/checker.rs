//! From a file and levels to findings.

use super::{Ended, Limits, Opened, Requirement, read, required};
use crate::{Asked, Claim, Error, Policy, refusal, witness};
use certify::Certificate;
use checker::smt::{self, Unwritable};
use checker::{
    Answer, Budget, By, Fragment, Level, Options, Passes, Strategy, Undecided, Verdict, VerdictKind,
};
use history::formats::{Loaded, ReadOptions};
use report::{Finding, Size};
use std::io;
use std::path::Path;
use std::time::Instant;

/// How files are checked. Only the policy is part of what is asked; the rest can make an answer undecided and never turns
/// one verdict into the other.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    /// What a claim says beside the level.
    pub policy: Policy,
    /// What a check may use.
    pub limits: Limits,
    /// How many threads may be used; 0: as many as there are cores.
    pub threads: usize,
    /// How the answer is looked for.
    pub strategy: Strategy,
    /// Which passes run.
    pub passes: Passes,
    /// Whether a claim by timestamps is decided by results too, and the answers compared.
    pub compares: bool,
    /// Whether a history is asked at several levels, which then share what they find out.
    pub is_shared: bool,
    /// Whether accepted histories need a witness.
    pub needs_witness: bool,
    /// What accepted histories must test.
    pub required: Vec<Requirement>,
}

/// A verdict, with what is reported about it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What was asked.
    pub claim: Claim,
    /// The answer with what proves it.
    pub verdict: Verdict,
    /// What is reported about it.
    pub finding: Finding,
}

impl Checker {
    /// Reads a file, within the limits.
    ///
    /// # Errors
    /// If the file is no history, or one of which nothing could be checked, or a limit is passed.
    pub fn open(&self, file: &Path, reading: &ReadOptions) -> Result<Opened, Error> {
        let started = Instant::now();
        let Loaded { history, warnings, .. } = read(file, reading, &self.limits.guard(started))?;
        if !reading.allow_empty {
            refusal::is_committed(&history)?;
        }
        refusal::is_checkable(&history)?;
        let mut opened = Opened::new(file.display().to_string(), history);
        opened.warnings = warnings;
        opened.read_time = started.elapsed();
        opened.end.set(self.limits.end(started));
        Ok(opened)
    }

    /// What is asked of a history: the levels asked for, else the one in its header, else serializable.
    ///
    /// # Errors
    /// If there is no such claim.
    pub fn claims(&self, asked: &[Asked], opened: &Opened) -> Result<Vec<Claim>, Error> {
        Ok(self.policy.claims(asked, opened.history.level())?)
    }

    /// What is reported about a file whose reading was ended: no level is decided.
    ///
    /// # Errors
    /// If there is no such claim.
    pub fn undecided(&self, asked: &[Asked], ended: &Ended) -> Result<Vec<Finding>, Error> {
        let claims = self.policy.claims(asked, ended.level.as_deref())?;
        let finding = |claim: Claim| {
            Finding::undecided(&ended.name, claim, ended.reason.clone(), ended.size, ended.cost)
        };
        Ok(claims.into_iter().map(finding).collect())
    }

    /// From here on the levels of a history are one question, whose time includes that of reading it.
    pub(super) fn ask_all(&self, opened: &Opened) {
        opened.end_of_all.set(opened.end.get());
    }

    /// The time of a level begins to run. Where levels are one question, each has half of what is left, so that one
    /// that is hard leaves something to the others.
    fn begin(&self, opened: &Opened) {
        let now = Instant::now();
        opened.end.set(match opened.end_of_all.get() {
            Some(end) => Some(now + end.saturating_duration_since(now) / 2),
            None => self.limits.end(now.checked_sub(opened.read_time).unwrap_or(now)),
        });
    }

    /// Answers a claim about a history.
    ///
    /// # Errors
    /// If the answer would say less than it seems to: see [`Error::Unpromised`] and [`Error::Unmatched`].
    pub fn check(&self, opened: &Opened, claim: Claim) -> Result<Checked, Error> {
        self.begin(opened);
        refusal::is_promised(&opened.history, &claim, &self.policy.names)?;
        refusal::is_matched(&opened.history, &claim)?;
        let (answer, mut checked) = self.answer(opened, claim, self.passes);
        let Answer { findings, timestamps_refuse, .. } = answer;
        if let Some(refused) = timestamps_refuse {
            checked.finding = checked.finding.refused_by_timestamps(opened.subject(&claim), &refused);
        }
        if !self.compares {
            return Ok(checked);
        }
        let broken = findings.unwrap_or_default();
        let searched = Passes { timestamps: false, ..self.passes };
        let (_, other) = self.answer(opened, claim.by(By::Results), searched);
        let finding = checked.finding.compared(&opened.history, &broken, &other.verdict);
        let verdict = match severity(&other.verdict) > severity(&checked.verdict) {
            true => other.verdict,
            false => checked.verdict,
        };
        Ok(Checked { verdict, finding, ..checked })
    }

    fn answer(&self, opened: &Opened, claim: Claim, passes: Passes) -> (Answer, Checked) {
        let started = Instant::now();
        let guard = self.limits.guard_until(opened.end.get());
        let options = Options { passes, ..self.options(guard.budget()) };
        let subject = opened.subject(&claim);
        let is_whole = std::ptr::eq(subject, &opened.history);
        let shared = (self.is_shared && is_whole).then_some(&opened.shared);
        let mut answer = checker::answer_sharing(&claim, subject, &options, shared);
        if self.needs_witness && witness::is_missing(&answer.outcome.verdict, claim.level) {
            let passes = Passes { timestamps: false, ..passes };
            let options = Options { passes, ..options };
            answer = checker::answer_sharing(&claim, subject, &options, shared);
        }
        let mut verdict = answer.outcome.verdict.clone();
        let mut finding = Finding::new(&opened.name, claim, subject, &verdict, opened.cost(started));
        finding = finding.with_search(self.strategy, &answer.outcome.stats);
        finding.size = Size::of(&opened.history);
        if let Some(note) = let_go(opened, &claim) {
            finding = finding.noted(note);
        }
        if let Some(findings) = &answer.findings {
            finding = finding.by_timestamps(subject, findings);
        }
        finding = opened.with_coverage(finding, &verdict, &guard.budget());
        if let Some(lack) = self.lack(opened, &verdict, &finding) {
            verdict = Verdict::Undecided(Undecided::Untested(lack.clone()));
            finding = Finding { verdict: verdict.kind(), reason: Some(lack), ..finding };
        }
        (answer, Checked { claim, verdict, finding })
    }

    /// What an accepted history does not test and was required to.
    fn lack(&self, opened: &Opened, verdict: &Verdict, finding: &Finding) -> Option<String> {
        if self.required.is_empty() || !matches!(verdict, Verdict::Accepted(_)) {
            return None;
        }
        let committed = opened.history.transactions().filter(|txn| txn.is_committed()).count() as u64;
        required::lack(&self.required, committed, finding.coverage.as_ref())
    }

    /// The violation of a level by a part of the history, if it is one.
    pub(super) fn probe(&self, opened: &Opened, claim: Claim, fragment: &Fragment<'_>) -> Option<Checked> {
        let started = Instant::now();
        self.begin(opened);
        let guard = self.limits.guard_until(opened.end.get());
        let evidence = fragment.violates(claim.level, &self.options(guard.budget()))?;
        let verdict = Verdict::Violated(Box::new(evidence));
        let finding = Finding::new(&opened.name, claim, &opened.history, &verdict, opened.cost(started));
        Some(Checked { claim, verdict, finding })
    }

    /// How to look for an answer, until a budget is used up.
    pub fn options(&self, budget: Budget) -> Options {
        Options {
            budget,
            ryow: self.policy.ryow,
            clock_skew: self.policy.clock_skew,
            mixed: self.policy.mixed,
            threads: self.threads,
            strategy: self.strategy,
            passes: self.passes,
        }
    }

    /// Writes what must hold of a history, for another solver.
    ///
    /// # Errors
    /// If it cannot be written, or not within the limits.
    pub fn write_smt(
        &self,
        opened: &Opened,
        claim: &Claim,
        out: &mut dyn io::Write,
    ) -> Result<(), Unwritable> {
        let guard = self.limits.guard_until(opened.end.get());
        smt::write(opened.subject(claim), claim.level, &self.options(guard.budget()), out)
    }

    /// What lets other code check a verdict again.
    pub fn certificate(&self, opened: &Opened, checked: &Checked) -> Certificate<'static> {
        let guard = self.limits.guard_until(opened.end.get());
        let options = self.options(guard.budget());
        let mut certificate =
            Certificate::new(&opened.name, &opened.history, checked.claim.level, &options, &checked.verdict);
        checker::add_proof(&mut certificate, &opened.history, &options);
        certificate
    }
}

impl Checked {
    /// The level that was checked.
    pub fn level(&self) -> Level {
        self.claim.level
    }
}

/// Of two answers the worse one counts.
fn severity(verdict: &Verdict) -> u8 {
    match verdict.kind() {
        VerdictKind::Accepted => 0,
        VerdictKind::Undecided => 1,
        VerdictKind::Violated => 2,
    }
}

/// What is not judged where transactions are taken apart.
fn let_go(opened: &Opened, claim: &Claim) -> Option<String> {
    let vendor = claim.vendor.filter(|vendor| vendor.logical)?;
    let count = checker::let_go_by_halves(&opened.history);
    let operations = if count == 1 { "operation is" } else { "operations are" };
    (count > 0).then(|| {
        format!(
            "{count} {operations} not checked: {} lets a transaction see its own writes together with an older snapshot, \
             and their results do not show which they saw",
            vendor.product
        )
    })
}
