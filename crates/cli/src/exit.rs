//! The exit status.

use checker::VerdictKind;
use std::process::ExitCode;

/// What the process says when it ends. Ordered: of several, the greatest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Every verdict is `accepted`, or the command did what it was asked to.
    Accepted,
    /// None is violated, at least one is undecided.
    Undecided,
    /// At least one is violated.
    Violated,
    /// Something could not be read or understood, whatever became of the rest.
    Error,
}

impl Exit {
    /// The status of a verdict.
    pub(crate) fn of(verdict: VerdictKind) -> Self {
        match verdict {
            VerdictKind::Accepted => Self::Accepted,
            VerdictKind::Violated => Self::Violated,
            VerdictKind::Undecided => Self::Undecided,
        }
    }

    /// The worse of the two.
    pub(crate) fn and(self, other: Self) -> Self {
        self.max(other)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Accepted => 0,
            Exit::Violated => 1,
            Exit::Undecided => 2,
            Exit::Error => 3,
        })
    }
}
