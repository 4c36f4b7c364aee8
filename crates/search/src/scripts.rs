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
//! *Cost*: the contents of the key, for each script. *Source*: the open questions are Boomslang (Zhang, Mu and Tan 2026), §5's
//! superpositions.

use crate::contents::Contents;
use crate::rows::Claim;
use history::{KeyId, OpId, Test, ValueId};
use isolation::{Meter, Ryow, Undecided};
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;

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
    Set { value: ValueId, op: OpId },
    /// It wrote this if the test held.
    SetIf { op: OpId, test: Test<'h>, set: ValueId },
    /// It appended this.
    Append { op: OpId, key: KeyId, element: ValueId },
}

/// What running a script gives.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Trace {
    /// The predicate writes that matched.
    pub matched: Vec<OpId>,
    /// What is left, if something was written.
    pub left: Option<ValueId>,
}

/// An outcome and the contents that lead to it.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) trace: Trace,
    /// Ascending.
    pub contents: Vec<ValueId>,
}

/// The operation that makes what is left depend on what was found, if there is one.
pub(crate) fn opened_by(script: &[Action<'_>], lists_are_open: bool) -> Option<OpId> {
    script.iter().find_map(|action| match action {
        Action::SetIf { op, .. } => Some(*op),
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
    meter: &Meter<'_>,
) -> Result<Vec<Outcome>, Undecided> {
    let mut outcomes: Vec<Outcome> = Vec::new();
    let mut place: FxHashMap<Trace, usize> = FxHashMap::default();
    for content in contents {
        meter.steps(script.len())?;
        let Some(trace) = run(known, ryow, script, content) else { continue };
        match place.entry(trace) {
            Entry::Occupied(same) => outcomes[*same.get()].contents.push(content),
            Entry::Vacant(new) => {
                let trace = new.key().clone();
                new.insert(outcomes.len());
                outcomes.push(Outcome { trace, contents: vec![content] });
            }
        }
    }
    for outcome in &mut outcomes {
        outcome.contents.sort_unstable();
        outcome.contents.dedup();
    }
    Ok(outcomes)
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
            Action::Set { value, .. } => {
                trace.left = Some(*value);
                true
            }
            Action::Append { key, element, .. } => {
                trace.left = Some(known.append(*key, current, *element));
                true
            }
            Action::SetIf { op, test, set } => {
                if known.holds(*test, current) {
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

/// What an operation saw from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seen<'h> {
    /// This value.
    Value { op: OpId, value: ValueId },
    /// Something of which this holds.
    Claim(Claim<'h>),
    /// The same, by a predicate write.
    Found(Claim<'h>),
}

impl Seen<'_> {
    pub(crate) fn op(&self) -> OpId {
        match self {
            Self::Value { op, .. } => *op,
            Self::Claim(claim) | Self::Found(claim) => claim.op,
        }
    }

    /// The value, if one came back.
    pub(crate) fn value(&self) -> ValueId {
        match self {
            Self::Value { value, .. } => *value,
            Self::Claim(_) | Self::Found(_) => ValueId::UNKNOWN,
        }
    }

    /// Whether the predicate held, where one was asked.
    pub(crate) fn is_shown(&self) -> bool {
        match self {
            Self::Value { .. } => true,
            Self::Claim(claim) | Self::Found(claim) => claim.is_shown(),
        }
    }

    /// Whether a key was asked for by name, and what it held was not reported.
    pub(crate) fn is_of_item(&self) -> bool {
        matches!(self, Self::Claim(claim) | Self::Found(claim) if claim.is_of_item())
    }

    pub(crate) fn is_by_write(&self) -> bool {
        matches!(self, Self::Found(_))
    }

    pub(crate) fn accepts(&self, known: &Contents<'_>, content: ValueId) -> bool {
        match self {
            Self::Value { value, .. } => *value == content,
            Self::Claim(claim) | Self::Found(claim) => claim.accepts(known, content),
        }
    }
}

/// One way a script can go, where every operation sees a version of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Branch<'h> {
    /// What the version right before its own may hold, if that matters: an append builds on it.
    pub bases: Vec<ValueId>,
    /// What was seen from outside.
    pub seen: Vec<Seen<'h>>,
    /// The predicate writes that matched.
    pub matched: Vec<OpId>,
    /// What is left, if something was written, and by which operation.
    pub left: Option<(ValueId, OpId)>,
}

/// The ways a script can go on a key that may hold some contents. Up to its first write every predicate write either
/// matches or does not; an append builds on the version before; from then on all is determined.
pub(crate) fn branches<'h>(
    known: &Contents<'_>,
    ryow: Ryow,
    script: &[Action<'h>],
    contents: &[ValueId],
    meter: &Meter<'_>,
) -> Result<Vec<Branch<'h>>, Undecided> {
    let mut branches = vec![Branch::default()];
    for action in script {
        let mut next = Vec::with_capacity(branches.len() + 1);
        for branch in branches {
            meter.steps(1 + branch.seen.len())?;
            if matches!(action, Action::Append { .. }) && branch.left.is_none() {
                meter.steps(contents.len())?;
            }
            branch.extend(known, ryow, action, contents, &mut next);
        }
        branches = next;
    }
    Ok(merged(branches))
}

/// Branches that come to the same, whatever they build on, are one.
fn merged(branches: Vec<Branch<'_>>) -> Vec<Branch<'_>> {
    let mut merged: Vec<Branch<'_>> = Vec::with_capacity(branches.len().min(8));
    let mut place: FxHashMap<_, usize> = FxHashMap::default();
    for branch in branches {
        let seen: Vec<OpId> = branch.seen.iter().map(Seen::op).collect();
        match place.entry((seen, branch.matched.clone(), branch.left)) {
            Entry::Occupied(same) => merged[*same.get()].bases.extend(branch.bases),
            Entry::Vacant(new) => {
                new.insert(merged.len());
                merged.push(branch);
            }
        }
    }
    for branch in &mut merged {
        branch.bases.sort_unstable();
    }
    merged
}

impl<'h> Branch<'h> {
    /// Adds what may become of the branch by an action.
    fn extend(
        mut self,
        known: &Contents<'_>,
        ryow: Ryow,
        action: &Action<'h>,
        contents: &[ValueId],
        into: &mut Vec<Self>,
    ) {
        let own = self.left.map(|(own, _)| own);
        let seen = match *action {
            Action::Read { op, value } => Seen::Value { op, value },
            Action::Claim(claim) => Seen::Claim(claim),
            Action::Found(claim) => Seen::Found(claim),
            Action::Set { value, op } => {
                self.left = Some((value, op));
                into.push(self);
                return;
            }
            Action::Append { op, key, element } => {
                let on = |mut it: Self, content| {
                    it.left = Some((known.append(key, content, element), op));
                    it
                };
                match own {
                    Some(own) => into.push(on(self, own)),
                    None => into.extend(contents.iter().map(|&base| {
                        let branch = Self { bases: vec![base], ..self.clone() };
                        on(branch, base)
                    })),
                }
                return;
            }
            Action::SetIf { op, test, set } => {
                let claim = |truth| Claim { test, truth, op };
                let may = |truth| own.is_none_or(|own| claim(truth).accepts(known, own));
                for truth in [true, false].into_iter().filter(|&truth| may(truth)) {
                    let mut branch = self.clone();
                    if own.is_none() {
                        branch.seen.push(Seen::Found(claim(truth)));
                    }
                    if truth {
                        branch.matched.push(op);
                        branch.left = Some((set, op));
                    }
                    into.push(branch);
                }
                return;
            }
        };
        let fits_own = own.is_some_and(|own| seen.accepts(known, own));
        let must = own.is_some() && (ryow == Ryow::Must || seen.is_by_write());
        if must && !fits_own {
            return;
        }
        if !(must || fits_own && ryow == Ryow::May) {
            self.seen.push(seen);
        }
        into.push(self);
    }
}
