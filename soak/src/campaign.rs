//! A campaign: cases made from seeds, and what came of them.

use history::History;
use history::formats::notation;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// One kind of case.
pub(crate) struct Campaign {
    pub(crate) name: &'static str,
    /// What is compared, for people.
    pub(crate) about: &'static str,
    /// Makes the case of a seed; how many things were compared, or what was wrong.
    pub(crate) case: fn(u64) -> Result<u64, Wrong>,
}

/// What was wrong with a case.
pub(crate) struct Wrong {
    pub(crate) what: String,
    /// The history that shows it.
    pub(crate) history: Option<String>,
}

impl Wrong {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), history: None }
    }

    pub(crate) fn with(what: impl Into<String>, history: &History) -> Self {
        Self { what: what.into(), history: Some(notation::to_string(history)) }
    }
}

/// A case that went wrong.
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) what: String,
    pub(crate) history: Option<String>,
}

/// What came of a campaign.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) cases: u64,
    pub(crate) comparisons: u64,
    pub(crate) failures: Vec<Failure>,
    /// The case that took longest: its seed, and how long it took.
    pub(crate) slowest: (Duration, u64),
}

impl Tally {
    pub(crate) fn add(&mut self, seed: u64, took: Duration, result: Result<u64, Failure>) {
        self.cases += 1;
        self.slowest = self.slowest.max((took, seed));
        match result {
            Ok(comparisons) => self.comparisons += comparisons,
            Err(failure) => self.failures.push(failure),
        }
    }
}

/// Runs one case; a panic is a failure.
pub(crate) fn attempt(campaign: &Campaign, seed: u64) -> Result<u64, Failure> {
    let result = catch_unwind(AssertUnwindSafe(|| (campaign.case)(seed)));
    let wrong = match result {
        Ok(Ok(comparisons)) => return Ok(comparisons),
        Ok(Err(wrong)) => wrong,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            Wrong::new(format!("it panicked: {text}"))
        }
    };
    Err(Failure { seed, what: wrong.what, history: wrong.history })
}
