//! A closer look at a violation: what falls with it, and what would have been allowed.
//!
//! *What*: takes the smallest violated part of a history ([`crate::reduce()`]), asks it at every level ([`crate::survey()`]),
//! and asks what its reads could have returned instead ([`crate::instead()`]). What the part violates the whole violates; the
//! whole may violate more for other reasons.
//!
//! *Cost*: some hundred checks of a history of a few transactions.

use crate::{Instead, check, instead, survey};
use history::{History, TxnId};
use isolation::{Level, Options, Rule, Verdict, VerdictKind};
use search::restrict::{restrict, restrict_for};
use std::convert::Infallible;

/// What a closer look shows.
#[derive(Clone, Debug, Default)]
pub struct Closer {
    /// The weakest levels that the part violates; none of them follows from another.
    pub weakest: Vec<Level>,
    /// What every level comes to in the part.
    pub marks: Vec<(Level, VerdictKind)>,
    /// Results that would have made the part possible at the level it was checked at.
    pub instead: Vec<Instead>,
}

/// Looks closer at a tiny violated history. `judge` is what found it violated.
pub fn look_closer(part: &History, options: &Options, judge: impl Fn(&History) -> Verdict) -> Closer {
    let verdict = |level: Level| Ok::<_, Infallible>(check(part, level, options).verdict);
    // Levels are compared by what results show; where transactions ask for their own there is nothing to compare.
    let (weakest, marks) = match options.mixed {
        true => (Vec::new(), Vec::new()),
        false => {
            let Ok(survey) = survey(part, verdict, |_, _| Ok(None), |verdict| verdict);
            (survey.weakest.into_iter().map(|(level, _)| level).collect(), survey.marks)
        }
    };
    Closer { weakest, marks, instead: instead(part, options, judge) }
}

/// The levels that allow some transactions of a history which violate a level, looked at by themselves. None where
/// they violate it only together with others, and what the budget leaves open is left out.
pub fn allowed(history: &History, level: Level, transactions: &[TxnId], options: &Options) -> Vec<Level> {
    let plain = restrict(history, transactions);
    let exact = restrict_for(history, transactions, Level::new(Rule::Causal, true, false));
    let violates = |part: &History| matches!(check(part, level, options).verdict, Verdict::Violated(_));
    if !violates(&plain.history) || !violates(&exact.history) {
        return Vec::new();
    }
    let verdict = |level: Level| {
        let part = if level.is_axiomatic() { &exact } else { &plain };
        Ok::<_, Infallible>(check(&part.history, level, options).verdict)
    };
    let Ok(survey) = survey(&plain.history, verdict, |_, _| Ok(None), |verdict| verdict);
    let accepted = survey.marks.into_iter().filter(|(_, mark)| *mark == VerdictKind::Accepted);
    accepted.map(|(level, _)| level).collect()
}
