//! The one place that chooses the engine that answers a claim.
//!
//! **What.** [`answer`] decides a [`Claim`]. Every command, the library and the workers ask here.
//!
//! **Steps, by results.** Where the database recorded timestamps, their order is tried first, because it nearly always
//! explains the results: a replay in that order costs one pass. If it does not explain them, the search decides, and the
//! [`Answer`] says what the timestamps refuse. A level that timestamps do not decide is tried at the weakest level
//! that implies it and that they do decide. What is accepted though the history has none of the order that the level asks
//! for was not tested: it is undecided.
//!
//! **Cost.** The replay, and the search only where the replay did not accept.

use history::History;
use isolation::{By, Claim, Level, Options, Orders, Outcome, Strategy, Vendor, Verdict};
use replay::Finding;
use search::LookedAt;
use std::borrow::Cow;

/// The answer to a claim.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The verdict, and what it cost.
    pub outcome: Outcome,
    /// Every violation, where the claim is judged by timestamps.
    pub findings: Option<Vec<Finding>>,
    /// What the database's timestamps refuse first, where results accept the history.
    pub timestamps_refuse: Option<Finding>,
}

/// The history that a claim is about: `history` itself, or its logical sub-transactions.
pub fn subject<'h>(claim: &Claim, history: &'h History) -> Cow<'h, History> {
    match claim.vendor {
        Some(Vendor { logical: true, .. }) => Cow::Owned(isolation::logical::split(history)),
        _ => Cow::Borrowed(history),
    }
}

/// Decides a claim. `subject` is what [`subject`] gave.
pub fn answer(claim: &Claim, subject: &History, options: &Options) -> Answer {
    answer_sharing(claim, subject, options, None)
}

/// As [`answer`], for a history of which several levels are asked.
pub fn answer_sharing(
    claim: &Claim,
    subject: &History,
    options: &Options,
    shared: Option<&LookedAt>,
) -> Answer {
    let options = &claim.options(options);
    let mut answer = match claim.by {
        By::Timestamps => by_timestamps(claim, subject, options),
        By::Results => by_results(claim, subject, options, shared),
    };
    if matches!(answer.outcome.verdict, Verdict::Accepted(_))
        && let Some(lack) = Orders::of(subject).lack(claim.level)
    {
        answer.outcome.verdict = Verdict::Undecided(lack);
    }
    answer
}

/// The level to replay by timestamps before the search: one that implies the claim. None where the order of the
/// timestamps is not worth trying.
pub fn hint(claim: &Claim, options: &Options) -> Option<Level> {
    let is_plain = claim.level.own.is_none() && !claim.mixed;
    if !is_plain || !options.passes.timestamps || options.strategy != Strategy::Lazy {
        return None;
    }
    match replay::decides(claim.level) {
        true => Some(claim.level),
        false => replay::shards::stronger(claim.level),
    }
}

fn by_timestamps(claim: &Claim, subject: &History, options: &Options) -> Answer {
    let (outcome, findings) = replay::judge(subject, claim.level, options);
    Answer { outcome, findings: Some(findings), timestamps_refuse: None }
}

fn by_results(claim: &Claim, subject: &History, options: &Options, shared: Option<&LookedAt>) -> Answer {
    let hint = hint(claim, options).filter(|&level| replay::applies(subject, level));
    let hinted = hint.map(|level| (level, replay::judge(subject, level, options)));
    let refused = match hinted {
        Some((_, (outcome, _))) if matches!(outcome.verdict, Verdict::Accepted(_)) => {
            return Answer { outcome, findings: None, timestamps_refuse: None };
        }
        Some((level, (_, findings))) => findings.into_iter().next().filter(|_| level == claim.level),
        None => None,
    };
    let outcome = match shared {
        Some(shared) => evidence::check_sharing(subject, claim.level, options, shared),
        None => evidence::check(subject, claim.level, options),
    };
    let is_accepted = matches!(outcome.verdict, Verdict::Accepted(_));
    Answer { outcome, findings: None, timestamps_refuse: refused.filter(|_| is_accepted) }
}
