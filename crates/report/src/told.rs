//! Everything one run has to tell: findings, and the files that could not be checked.

use crate::{Finding, Overview};
use isolation::{Level, VerdictKind};
use std::collections::HashSet;
use std::time::SystemTime;

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
    /// When the run began.
    pub began: Option<SystemTime>,
}

/// A file and what every level comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surveyed {
    /// The file, as the user named it.
    pub file: String,
    /// Every level with its mark.
    pub marks: Vec<(Level, VerdictKind)>,
}

/// A file that could not be read or checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The file, as the user named it.
    pub file: String,
    /// What is wrong, in the words for a terminal; it may have several lines.
    pub message: String,
    /// The line where it is wrong, from 1, where that is known.
    pub line: Option<u64>,
    /// The column in that line, in characters, from 1.
    pub column: Option<u64>,
}

impl Trouble {
    /// A file with what is wrong with it.
    pub fn new(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.into(), message: message.into(), line: None, column: None }
    }

    /// The same, with the place in the file.
    pub fn at(self, line: Option<u64>, column: Option<u64>) -> Self {
        Self { line, column, ..self }
    }
}

/// How many checks have each verdict, and how many files there were.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    files: HashSet<String>,
    pub(crate) accepted: usize,
    pub(crate) violated: usize,
    /// Of the violated ones, those that are known from before.
    pub(crate) known: usize,
    pub(crate) undecided: usize,
    pub(crate) troubles: usize,
}

impl Tally {
    /// Counts a finding.
    pub fn add(&mut self, finding: &Finding) {
        self.files.insert(finding.file.clone());
        match finding.verdict {
            VerdictKind::Accepted => self.accepted += 1,
            VerdictKind::Violated => self.violated += 1,
            VerdictKind::Undecided => self.undecided += 1,
        }
        self.known += usize::from(finding.verdict == VerdictKind::Violated && finding.is_known);
    }

    /// Counts a file that could not be checked.
    pub fn add_trouble(&mut self, trouble: &Trouble) {
        self.files.insert(trouble.file.clone());
        self.troubles += 1;
    }

    /// How many files there were.
    pub fn files(&self) -> usize {
        self.files.len()
    }

    /// How many answers there were, with the files that could not be checked.
    pub(crate) fn answers(&self) -> usize {
        self.accepted + self.violated + self.undecided + self.troubles
    }
}

impl Told {
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        self.findings.iter().for_each(|finding| tally.add(finding));
        self.troubles.iter().for_each(|trouble| tally.add_trouble(trouble));
        tally
    }
}
