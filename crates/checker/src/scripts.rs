//! Writes that build on what they find: predicate writes whose keys nobody reported, and appends.
//!
//! *What*: such a predicate write took effect on a key if what was there satisfied its predicate, and an append makes a
//! longer list of what was there; so what a transaction left behind depends on what it found. All that it did to such a
//! key is its *script*. Running the script on
//! everything that the key may ever hold sorts those contents by what happens: which predicate writes match, and what
//! is left in the end. Each such outcome is an *alternative*: the transaction found one of these contents, and left
//! that. Exactly one alternative is true; which, is an open question.
//!
//! ```text
//!   u(v>=2 -> 0)  on a key that may hold 1, 2, 3:    found 2 or 3, left 0   |   found 1, left nothing
//! ```
//!
//! *Cost*: the contents of the key, for each script. *Source*: the open questions are boomslang.txt §5's
//! superpositions.

use crate::contents::Contents;
use crate::rows::Claim;
use crate::verdict::Ryow;
use history::{KeyId, OpId, Predicate, ValueId};

/// One thing that a transaction did to a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Action<'h> {
    /// It read this.
    Read { op: OpId, value: ValueId },
    /// It said something about what it read.
    Claim(Claim<'h>),
    /// A predicate write said something about what it built on.
    Found(Claim<'h>),
    /// It wrote this.
    Set(ValueId),
    /// It wrote this if the predicate held.
    SetWhere { op: OpId, predicate: &'h Predicate, set: ValueId },
    /// It appended this.
    Append { op: OpId, key: KeyId, element: ValueId },
}

/// What running a script gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trace {
    /// The predicate writes that matched.
    pub(crate) matched: Vec<OpId>,
    /// What is left, if something was written.
    pub(crate) left: Option<ValueId>,
}

/// An outcome and the contents that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) trace: Trace,
    /// Ascending.
    pub(crate) contents: Vec<ValueId>,
}

/// The operation that makes what is left depend on what was found, if there is one.
pub(crate) fn opened_by(script: &[Action<'_>], lists_are_open: bool) -> Option<OpId> {
    script.iter().find_map(|action| match action {
        Action::SetWhere { op, .. } => Some(*op),
        Action::Append { op, .. } if lists_are_open => Some(*op),
        _ => None,
    })
}

/// The outcomes of a script.
pub(crate) fn outcomes(
    known: &Contents<'_>,
    ryow: Ryow,
    script: &[Action<'_>],
    contents: impl Iterator<Item = ValueId>,
) -> Vec<Outcome> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    for content in contents {
        let Some(trace) = run(known, ryow, script, content) else { continue };
        match outcomes.iter_mut().find(|outcome| outcome.trace == trace) {
            Some(outcome) => outcome.contents.push(content),
            None => outcomes.push(Outcome { trace, contents: vec![content] }),
        }
    }
    for outcome in &mut outcomes {
        outcome.contents.sort_unstable();
        outcome.contents.dedup();
    }
    outcomes
}

/// Runs a script on what it found; `None` if a result does not fit.
fn run(known: &Contents<'_>, ryow: Ryow, script: &[Action<'_>], found: ValueId) -> Option<Trace> {
    let mut trace = Trace { matched: Vec::new(), left: None };
    for action in script {
        let current = trace.left.unwrap_or(found);
        let may_see = |fits: &dyn Fn(ValueId) -> bool| match (trace.left, ryow) {
            (None, _) | (Some(_), Ryow::Never) => fits(found),
            (Some(own), Ryow::Must) => fits(own),
            (Some(own), Ryow::May) => fits(own) || fits(found),
        };
        let fits = match action {
            Action::Read { value, .. } => may_see(&|seen| seen == *value),
            Action::Claim(claim) => may_see(&|seen| claim.accepts(known, seen)),
            Action::Found(claim) => claim.accepts(known, current),
            Action::Set(value) => {
                trace.left = Some(*value);
                true
            }
            Action::Append { key, element, .. } => {
                trace.left = Some(known.append(*key, current, *element));
                true
            }
            Action::SetWhere { op, predicate, set } => {
                if known.holds(predicate, current) {
                    trace.matched.push(*op);
                    trace.left = Some(*set);
                }
                true
            }
        };
        if !fits {
            return None;
        }
    }
    Some(trace)
}
