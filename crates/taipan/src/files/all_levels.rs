//! What all levels come to.

use super::{Checked, Checker, Opened};
use crate::{Claim, Error};
use checker::{Fragment, Level, Survey};
use report::{Finding, Surveyed};

/// What all levels of a history come to.
#[derive(Clone, Debug)]
pub struct AllLevels {
    /// The strongest that hold, the weakest that are violated, and what is not known.
    pub frontier: Vec<Checked>,
    /// What follows from that.
    pub follows: Vec<Finding>,
    /// The mark of every level.
    pub surveyed: Surveyed,
}

impl Checker {
    /// Finds out what every level comes to, within the limits of one. `check` answers a claim; it is [`Checker::check`],
    /// perhaps with more.
    ///
    /// # Errors
    /// The first error of `check`.
    pub fn all_levels<E: From<Error>>(
        &self,
        opened: &Opened,
        check: impl Fn(Claim) -> Result<Checked, E>,
    ) -> Result<AllLevels, E> {
        self.ask_all(opened);
        let claim = |level: Level| self.policy.claim(level).map_err(Error::Claim);
        let probe = |level: Level, fragment: &Fragment<'_>| Ok(self.probe(opened, claim(level)?, fragment));
        let check = |level: Level| check(claim(level)?);
        let Survey { strongest, weakest, undecided, marks, follows } =
            checker::survey(&opened.history, check, probe, |checked| &checked.verdict)?;
        let frontier = strongest.into_iter().chain(weakest).chain(undecided).map(|(_, checked)| checked);
        let mark = |level: Level| marks.iter().find(|(other, _)| *other == level).map(|&(_, mark)| mark);
        let follows = follows.iter().filter_map(|&(level, by)| {
            let claim = claim(level).ok()?;
            Some(Finding::follows(&opened.name, claim, mark(level)?, Some(by.name()), &opened.history))
        });
        Ok(AllLevels {
            frontier: frontier.collect(),
            follows: follows.collect(),
            surveyed: Surveyed { file: opened.name.clone(), marks: marks.clone() },
        })
    }
}
