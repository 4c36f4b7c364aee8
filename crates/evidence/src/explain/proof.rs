//! What arguments are put together from: cases, and what a cycle rests on.

use super::direct;
use history::{History, OpId, Primitive, Status, TxnId, ValueId};
use isolation::{Argument, Case, Cases, Edge, EdgeKind, Reason, Supposition};
use search::{lists, rows};
use std::sync::Arc;

/// A read of which all candidates but one were struck out: what is argued from then on is the last case.
#[derive(Clone)]
pub(crate) struct Pending {
    suppose: Supposition,
    /// Whoever took effect only because of it.
    writer: Option<TxnId>,
    struck: Vec<Case>,
    /// How much support there was by then.
    place: usize,
}

impl Pending {
    pub(crate) fn new(history: &History, suppose: Supposition, struck: Vec<Case>, place: usize) -> Self {
        Self { suppose, writer: unsettled_writer(history, &suppose), struck, place }
    }

    /// An argument as a case beside those that were struck out, if it needs to be one.
    fn wrap(self, history: &History, argument: Argument) -> Argument {
        if !rests_on(&argument, &self.suppose, self.writer) {
            return argument;
        }
        if self.struck.is_empty() {
            return argument;
        }
        let last = Case { suppose: self.suppose, argument };
        split(history, std::iter::once(last).chain(self.struck).collect())
    }
}

/// How many cases are reported; the others are counted.
const CASES_TOLD: usize = 8;

/// A case distinction. The case that takes most to refute comes first, and among equal ones what the clients' clocks make
/// plausible.
pub(crate) fn split(history: &History, mut told: Vec<Case>) -> Argument {
    let implausible = |suppose: &Supposition| match *suppose {
        Supposition::Source { read, write: Some(write), .. } => {
            let of = |op: OpId| history.transaction(history.owner(op));
            direct::plausibility(of(write), of(read))
        }
        _ => 1,
    };
    told.sort_by_key(|it| (std::cmp::Reverse(it.argument.end().edges.len()), implausible(&it.suppose)));
    let left_out = told.len().saturating_sub(CASES_TOLD);
    told.truncate(CASES_TOLD);
    Argument { cases: Some(Arc::new(Cases { told, left_out })), ..Argument::default() }
}

/// An argument with what it rests on, as a case of each read whose other candidates were struck out on the way.
pub(crate) fn finished(
    history: &History,
    mut argument: Argument,
    support: &[Edge],
    pending: Vec<Pending>,
) -> Argument {
    let mut end = support.len();
    for it in pending.into_iter().rev() {
        let place = it.place;
        argument = it.wrap(history, trimmed(history, argument, &support[place..end]));
        end = place;
    }
    trimmed(history, argument, &support[..end])
}

/// The same argument without distinctions that were made before: what is supposed already is one of the cases.
pub(crate) fn simplified(argument: &Argument, supposed: &mut Vec<Supposition>) -> Argument {
    let mut edges = |edges: &[Edge]| -> Vec<Edge> {
        let all = edges.iter().map(|edge| match &edge.reason {
            Reason::Otherwise { because } => {
                let because = Arc::new(simplified(because, supposed));
                Edge { reason: Reason::Otherwise { because }, ..edge.clone() }
            }
            _ => edge.clone(),
        });
        all.collect()
    };
    let mut plain = Argument::new(edges(&argument.edges), edges(&argument.support));
    let Some(cases) = &argument.cases else { return plain };
    if let Some(case) = cases.told.iter().find(|case| supposed.contains(&case.suppose)) {
        let mut case = simplified(&case.argument, supposed);
        case.support.splice(0..0, plain.support);
        return case;
    }
    let told = cases.told.iter().map(|case| {
        supposed.push(case.suppose);
        let argument = simplified(&case.argument, supposed);
        supposed.pop();
        Case { suppose: case.suppose, argument }
    });
    plain.cases = Some(Arc::new(Cases { told: told.collect(), left_out: cases.left_out }));
    plain
}

/// The transaction of unknown outcome that took effect if a supposition holds.
fn unsettled_writer(history: &History, suppose: &Supposition) -> Option<TxnId> {
    let Supposition::Source { write: Some(write), .. } = *suppose else { return None };
    let writer = history.owner(write);
    (history.transaction(writer).status() == Status::Unknown).then_some(writer)
}

/// Whether an argument speaks of a read's source, or of whoever took effect only with it.
fn rests_on(argument: &Argument, suppose: &Supposition, writer: Option<TxnId>) -> bool {
    let Supposition::Source { read, key, .. } = *suppose else { return true };
    argument.every_edge().any(|edge| {
        let is_read = match edge.reason {
            Reason::Saw { read: it, .. } | Reason::Missed { read: it, .. } => {
                it == read && edge.key == Some(key)
            }
            _ => false,
        };
        let is_writer = |txn: TxnId| writer == Some(txn);
        is_read || is_writer(edge.to) || edge.from.is_some_and(is_writer)
    })
}

/// What it comes to that all a read can have seen is struck out: a case distinction, or the argument of the case that does
/// not need to be one. Where there is one case only, it is a fact.
pub(crate) fn all_struck(history: &History, mut cases: Vec<Case>) -> Argument {
    let is_plain =
        |case: &Case| !rests_on(&case.argument, &case.suppose, unsettled_writer(history, &case.suppose));
    if let Some(plain) = cases.iter().position(is_plain) {
        return cases.swap_remove(plain).argument;
    }
    match (cases.len(), cases.pop()) {
        (1, Some(Case { suppose, mut argument })) => {
            if let Supposition::Source { read, key, write: Some(write) } = suppose {
                argument.support.push(direct::saw(history, read, key, Some(write)));
            }
            argument
        }
        (_, last) => {
            cases.extend(last);
            split(history, cases)
        }
    }
}

/// An argument with the support that it needs: the orders that say why a version was missed, and for everybody of unknown
/// outcome that they took effect.
pub(crate) fn trimmed(history: &History, mut argument: Argument, support: &[Edge]) -> Argument {
    let mut is_kept = vec![false; support.len()];
    loop {
        let wanted = |edge: &Edge| match edge.kind {
            EdgeKind::Ww => is_missed(&argument, edge),
            _ => is_effect(history, &argument, edge),
        };
        let next = (0..support.len()).rev().find(|&place| !is_kept[place] && wanted(&support[place]));
        let Some(place) = next else { return argument };
        is_kept[place] = true;
        let edge = &support[place];
        if !argument.support.contains(edge) && !argument.edges.contains(edge) {
            argument.support.push(edge.clone());
        }
    }
}

/// Whether an argument says that somebody missed what a transaction wrote, and this says what came before that.
fn is_missed(argument: &Argument, order: &Edge) -> bool {
    argument.every_edge().any(|edge| matches!(edge.reason, Reason::Missed { .. }) && edge.to == order.to)
}

/// Whether an argument speaks of whoever this shows to have taken effect, and does not show it yet.
fn is_effect(history: &History, argument: &Argument, seen: &Edge) -> bool {
    let Some(writer) = seen.from else { return false };
    if history.transaction(writer).status() != Status::Unknown {
        return false;
    }
    let shows = |edge: &Edge| edge.kind == EdgeKind::Wr && edge.from == Some(writer);
    let mut all = argument.every_edge();
    let mentions = |edge: &Edge| edge.to == writer || edge.from == Some(writer);
    all.any(mentions) && !argument.edges.iter().chain(&argument.support).any(shows)
}

/// The operation that returned a list which shows that one append came before another: it has the first, and the second
/// behind it or not at all.
pub(crate) fn shown_by(history: &History, first: OpId, second: OpId) -> Option<OpId> {
    let (Primitive::Append { key, value: one }, Primitive::Append { value: two, .. }) =
        (history.primitive(first), history.primitive(second))
    else {
        return None;
    };
    // What one transaction appends comes into the list at once.
    let beside: Vec<ValueId> = (history.transaction(history.owner(first)).primitives())
        .filter_map(|(_, it)| match it {
            Primitive::Append { key: at, value } if at == key => Some(value),
            _ => None,
        })
        .collect();
    let shows = |operation: &Primitive<'_>| {
        let list = rows::returned(operation).find(|(at, _)| *at == key).map(|(_, value)| value);
        let elements = list.and_then(|list| lists::elements(history, list)).unwrap_or_default();
        let place = |element| elements.iter().position(|&it| it == element);
        match (place(one).or_else(|| beside.iter().copied().find_map(place)), place(two)) {
            (Some(one), Some(two)) => one < two,
            (Some(_), None) => true,
            _ => false,
        }
    };
    let all = history.transactions().filter(|it| it.status() != Status::Aborted);
    let mut all: Vec<(bool, OpId)> = all
        .flat_map(|it| it.primitives().map(move |(op, deed)| (!it.is_committed(), op, deed)))
        .filter(|(_, _, deed)| shows(deed))
        .map(|(is_open, op, _)| (is_open, op))
        .collect();
    all.sort_unstable();
    all.first().map(|&(_, op)| op)
}
