//! What levels share of a history.
//!
//! *What*: what each read can have seen does not depend on the level, except on what several reads of one key in one
//! transaction mean. Whoever asks a history at several levels finds it out once for each of the two meanings.
//!
//! *Cost*: the problems stay in memory as long as this does, so a single question is asked without it.

use crate::bases::adjoin;
use crate::first_order::FirstOrder;
use crate::observe::{observe_on_demand, observe_with};
use crate::problem::{Problem, Repeats};
use crate::refusal::Refusal;
use history::History;
use isolation::{Options, Ryow, Undecided};
use std::borrow::Cow;
use std::cell::OnceCell;

/// What was found out about one history under one policy on reads of own writes; used with these only.
#[derive(Debug, Default)]
pub struct LookedAt {
    one_version: OnceCell<Found>,
    each_its_own: OnceCell<Found>,
    first_with_sessions: OnceCell<FirstOrder>,
}

/// It serves one policy.
#[derive(Debug)]
struct Found {
    ryow: Ryow,
    problem: Result<Problem, Refusal>,
}

impl LookedAt {
    /// The problem at levels where several reads of a key are of one version; what predicates say may wait.
    pub(crate) fn one_version(
        &self,
        history: &History,
        options: &Options,
    ) -> Result<Cow<'_, Problem>, Refusal> {
        take(&self.one_version, options.ryow, || observe_on_demand(history, options))
    }

    /// The problem at weaker levels, with all that lists show.
    pub(crate) fn each_its_own(
        &self,
        history: &History,
        options: &Options,
    ) -> Result<Cow<'_, Problem>, Refusal> {
        take(&self.each_its_own, options.ryow, || {
            let mut problem = observe_with(history, options, Repeats::EachItsOwn, &[])?;
            adjoin(&mut problem, &options.budget)?;
            Ok(problem)
        })
    }

    /// A first order of the second problem that keeps to session order.
    pub(crate) fn first_with_sessions(
        &self,
        make: impl FnOnce() -> Result<FirstOrder, Undecided>,
    ) -> Result<&FirstOrder, Undecided> {
        if let Some(first) = self.first_with_sessions.get() {
            return Ok(first);
        }
        let made = make()?;
        Ok(self.first_with_sessions.get_or_init(|| made))
    }
}

fn take(
    cell: &OnceCell<Found>,
    ryow: Ryow,
    observe: impl Fn() -> Result<Problem, Refusal>,
) -> Result<Cow<'_, Problem>, Refusal> {
    let found = match cell.get() {
        Some(found) if found.ryow != ryow => return observe().map(Cow::Owned),
        Some(found) => found,
        None => match observe() {
            // Another level may have more time.
            Err(Refusal::Open(why)) => return Err(Refusal::Open(why)),
            problem => cell.get_or_init(|| Found { ryow, problem }),
        },
    };
    found.problem.as_ref().map(Cow::Borrowed).map_err(Clone::clone)
}
