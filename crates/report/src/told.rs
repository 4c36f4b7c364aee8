//! Everything one run has to tell: findings, and the files that could not be checked.

use crate::{Finding, Overview};
use checker::{Level, Mark};

/// What a run has to tell, for renderings that need all of it at once.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// One a file and level, in the order given.
    pub findings: Vec<Finding>,
    /// Files that could not be checked.
    pub troubles: Vec<Trouble>,
    /// Files that were checked at all levels.
    pub surveys: Vec<Surveyed>,
    /// Whole histories at a glance, for the page.
    pub overviews: Vec<Overview>,
}

/// A file and what every level comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// The file, as the user named it.
    pub file: String,
    /// Every level with its mark.
    pub marks: Vec<(Level, Mark)>,
}

/// A file that could not be read or checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The file, as the user named it.
    pub file: String,
    /// What is wrong, in the words for a terminal; it may have several lines.
    pub message: String,
}

/// How many findings have each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) accepted: usize,
    pub(crate) violated: usize,
    pub(crate) undecided: usize,
    pub(crate) troubles: usize,
}

impl Told {
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally { troubles: self.troubles.len(), ..Tally::default() };
        for finding in &self.findings {
            match finding.verdict {
                "accepted" => tally.accepted += 1,
                "violated" => tally.violated += 1,
                _ => tally.undecided += 1,
            }
        }
        tally
    }
}
