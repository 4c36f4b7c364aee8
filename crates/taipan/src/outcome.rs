//! The answer to a claim.

use checker::{Claim, Options, Verdict};
use history::History;
use report::{Cost, Detail, Finding, Palette};
use std::time::Instant;

/// The answer to a claim about a history.
#[derive(Clone, Debug)]
pub struct Outcome {
    claim: Claim,
    verdict: Verdict,
    cost: Cost,
}

impl Outcome {
    pub(crate) fn of(history: &History, claim: &Claim, options: &Options) -> Self {
        let started = Instant::now();
        let verdict = checker::answer(claim, &checker::subject(claim, history), options).outcome.verdict;
        let check_ms = started.elapsed().as_secs_f64() * 1000.0;
        Self { claim: *claim, verdict, cost: Cost { check_ms, ..Cost::default() } }
    }

    /// Whether a correct database could have produced the history.
    pub fn is_accepted(&self) -> bool {
        matches!(self.verdict, Verdict::Accepted(_))
    }

    /// Whether no correct database can have produced it.
    pub fn is_violated(&self) -> bool {
        matches!(self.verdict, Verdict::Violated(_))
    }

    /// What was asked.
    pub fn claim(&self) -> Claim {
        self.claim
    }

    /// The answer with what proves it.
    pub fn verdict(&self) -> &Verdict {
        &self.verdict
    }

    /// The answer and its argument in the words that the program prints. `history` is the one that was checked.
    pub fn explain(&self, history: &History) -> String {
        let subject = checker::subject(&self.claim, history);
        let finding = Finding::new("history", self.claim, &subject, &self.verdict, self.cost);
        report::text(&finding, Detail::Full, Palette::plain())
    }
}
