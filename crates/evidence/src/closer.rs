//! A closer look at a violation: what falls with it, and what would have been allowed.
//!
//! *What*: takes the smallest violated part of a history ([`crate::reduce()`]), asks it at every level ([`crate::survey()`]),
//! and asks what its reads could have returned instead ([`crate::instead()`]). What the part violates the whole violates; the
//! whole may violate more for other reasons.
//!
//! *Cost*: some hundred checks of a history of a few transactions.

use crate::{Instead, check, instead, survey};
use history::{History, Primitive, Status, Transaction, TxnId, WriteIf};
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
/// they violate it only together with others, or where a part of the history would show less than they do: a scan, a
/// query or a predicate write among them. What the budget leaves open is left out.
pub fn allowed(history: &History, level: Level, transactions: &[TxnId], options: &Options) -> Vec<Level> {
    let is_kept = |it: &Transaction<'_>| it.status() == Status::Aborted || transactions.contains(&it.id());
    if history.transactions().all(|it| is_kept(&it)) {
        return allowing(level, history, history, options);
    }
    let shows_many = |txn: &TxnId| {
        let mut does = history.transaction(*txn).primitives();
        does.any(|(_, it)| {
            matches!(it, Primitive::Show { .. } | Primitive::WriteIf(WriteIf { key: None, .. }))
        })
    };
    if transactions.iter().any(shows_many) {
        return Vec::new();
    }
    let plain = restrict(history, transactions);
    let exact = restrict_for(history, transactions, Level::new(Rule::Causal, true, false));
    allowing(level, &plain.history, &exact.history, options)
}

/// The levels that allow a history that violates a level: in one form for the axiomatic levels, in another for the rest.
fn allowing(level: Level, plain: &History, exact: &History, options: &Options) -> Vec<Level> {
    let violates = |part: &History| matches!(check(part, level, options).verdict, Verdict::Violated(_));
    if !violates(plain) || !violates(exact) {
        return Vec::new();
    }
    let verdict = |level: Level| {
        let part = if level.is_axiomatic() { exact } else { plain };
        Ok::<_, Infallible>(check(part, level, options).verdict)
    };
    let Ok(survey) = survey(plain, verdict, |_, _| Ok(None), |verdict| verdict);
    let accepted = survey.marks.into_iter().filter(|(_, mark)| *mark == VerdictKind::Accepted);
    accepted.map(|(level, _)| level).collect()
}
