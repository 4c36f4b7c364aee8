//! A history that was read, or the reason why a limit ended the reading.

use super::{Guard, cost};
use crate::ended::Ended;
use crate::{Claim, History};
use checker::{Budget, Coverage, LookedAt, Vendor, Verdict};
use history::Status;
use history::formats::Warned;
use report::{Cost, Finding, Size};
use std::cell::{Cell, OnceCell};
use std::time::{Duration, Instant};

/// A history that was read, and what was found out about it.
#[derive(Debug)]
pub struct Opened {
    /// The file, as findings name it.
    pub name: String,
    /// What was read.
    pub history: History,
    /// What the reader left out and noted.
    pub warnings: Warned,
    /// How long reading took.
    pub(super) read_time: Duration,
    /// When the time is up for the level at hand.
    pub(super) end: Cell<Option<Instant>>,
    /// When the time is up for all levels together, where they are one question.
    pub(super) end_of_all: Cell<Option<Instant>>,
    /// What it tests, once that was asked.
    coverage: OnceCell<Coverage>,
    /// Its logical sub-transactions, once they were asked for.
    logical: OnceCell<History>,
    /// What levels found out about it.
    pub(super) shared: LookedAt,
}

impl Opened {
    /// A history that was not read from a file.
    pub fn new(name: impl Into<String>, history: History) -> Self {
        Self {
            name: name.into(),
            history,
            warnings: Warned::default(),
            read_time: Duration::ZERO,
            end: Cell::new(None),
            end_of_all: Cell::new(None),
            coverage: OnceCell::new(),
            logical: OnceCell::new(),
            shared: LookedAt::default(),
        }
    }

    /// The same under this name.
    pub fn called(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// The history that a claim is about: what was read, or its logical sub-transactions.
    pub fn subject(&self, claim: &Claim) -> &History {
        match claim.vendor {
            Some(Vendor { logical: true, .. }) => {
                self.logical.get_or_init(|| checker::subject(claim, &self.history).into_owned())
            }
            _ => &self.history,
        }
    }

    /// `1000 transactions: 990 committed, 10 aborted`.
    pub fn counts(&self) -> String {
        let with = |status| self.history.transactions().filter(|txn| txn.status() == status).count();
        let mut said = format!("{} transactions: {} committed", self.history.len(), with(Status::Committed));
        for status in [Status::Aborted, Status::Unknown] {
            match with(status) {
                0 => {}
                count => said += &format!(", {count} {}", status.name()),
            }
        }
        said
    }

    /// What is reported about a verdict, with how much was tested if it is accepted.
    pub(super) fn with_coverage(&self, finding: Finding, verdict: &Verdict, budget: &Budget) -> Finding {
        if !matches!(verdict, Verdict::Accepted(_)) {
            return finding;
        }
        // What there is no time for is not reported; the verdict stands.
        let coverage = match self.coverage.get() {
            Some(coverage) => Some(coverage),
            None => {
                let coverage = checker::coverage_within(&self.history, budget).ok();
                coverage.map(|coverage| self.coverage.get_or_init(|| coverage))
            }
        };
        match coverage {
            Some(coverage) => finding.with_coverage(coverage.clone()),
            None => finding,
        }
    }

    pub(super) fn cost(&self, started: Instant) -> Cost {
        cost(self.read_time, started.elapsed())
    }
}

/// What was read of a file before a limit ended the reading.
pub(super) fn ended(
    name: String,
    level: Option<String>,
    bytes: u64,
    (transactions, operations, sessions): (u64, u64, u64),
    guard: &Guard,
    started: Instant,
) -> Ended {
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let why = guard.why();
    Ended {
        name,
        level,
        reason: format!("{why} while reading ({transactions} transactions, {bytes} bytes so far)"),
        size: Size {
            transactions: count(transactions),
            operations: count(operations),
            sessions: count(sessions),
        },
        cost: cost(started.elapsed(), Duration::ZERO),
    }
}
