//! The core of a violation as a graph: what the pictures have in common.

use crate::{Cases, Finding, Member, Step};

/// Transactions with more operations than this show only those the argument is about.
pub(crate) const OPERATIONS_MAX: usize = 8;

/// A graph to be drawn.
pub(crate) struct Picture<'f> {
    pub(crate) nodes: Vec<Node<'f>>,
    /// How many of the nodes, the first ones, the argument itself visits.
    pub(crate) visited: usize,
    pub(crate) arrows: Vec<Arrow<'f>>,
}

/// A transaction, or the initial state.
pub(crate) struct Node<'f> {
    pub(crate) name: &'f str,
    /// What the argument calls it, with its name: `T1 · 2:175`.
    pub(crate) heading: String,
    pub(crate) status: &'f str,
    /// Its operations, with their place in the transaction; those left out are counted in `more`.
    pub(crate) lines: Vec<(usize, &'f str)>,
    pub(crate) more: usize,
}

/// An edge between two nodes.
pub(crate) struct Arrow<'f> {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) step: &'f Step,
    /// Its place in the argument; none if the argument only rests on it.
    pub(crate) place: Option<usize>,
}

/// What the initial state is called.
const INITIAL: &str = "initial state";

impl<'f> Picture<'f> {
    /// The core of a finding: nodes in the order in which the argument visits them.
    pub(crate) fn of(finding: &'f Finding) -> Self {
        let mut order: Vec<&str> = Vec::new();
        let mut visit = |name: &'f str| {
            if !order.contains(&name) {
                order.push(name);
            }
        };
        for step in &finding.explanation {
            visit(step.from.as_deref().unwrap_or(INITIAL));
            visit(&step.to);
        }
        let visited = order.len();
        for member in &finding.transactions {
            if !order.contains(&member.name.as_str()) {
                order.push(&member.name);
            }
        }
        let nodes = order.iter().map(|&name| node(finding, name)).collect();
        let place = |name: &str| order.iter().position(|&other| other == name);
        let arrow = |step: &'f Step, index: Option<usize>| {
            let from = place(step.from.as_deref().unwrap_or(INITIAL))?;
            Some(Arrow { from, to: place(&step.to)?, step, place: index })
        };
        let argument = finding.explanation.iter().enumerate();
        let mut arrows: Vec<Arrow<'f>> =
            argument.filter_map(|(index, step)| arrow(step, Some(index))).collect();
        // Whoever the argument only rests on is connected by what it was named for.
        for step in shown_steps(finding).into_iter().skip(finding.explanation.len()) {
            let Some(other) = arrow(step, None) else { continue };
            let is_known = |known: &Arrow<'_>| {
                (known.from, known.to, known.step.edge) == (other.from, other.to, other.step.edge)
            };
            if other.from.max(other.to) >= visited && !arrows.iter().any(is_known) {
                arrows.push(other);
            }
        }
        Self { nodes, visited, arrows }
    }
}

fn node<'f>(finding: &'f Finding, name: &'f str) -> Node<'f> {
    let Some(member) = finding.transactions.iter().find(|member| member.name == name) else {
        return Node { name, heading: name.to_owned(), status: "committed", lines: Vec::new(), more: 0 };
    };
    let (lines, more) = shown_operations(finding, member, OPERATIONS_MAX);
    let heading = format!("{} · {name}", member.label);
    Node { name, heading, status: member.status, lines, more }
}

/// The operations to show: all of a short transaction, of a long one those that the argument is about.
pub(crate) fn shown_operations<'f>(
    finding: &'f Finding,
    member: &'f Member,
    all_up_to: usize,
) -> (Vec<(usize, &'f str)>, usize) {
    let steps = every_step(finding);
    let mentioned = |index: usize| {
        let mut places = steps.iter().flat_map(|step| &step.places);
        places.any(|place| place.transaction == member.name && place.operation == index)
    };
    let all = member.operations.len() <= all_up_to;
    let shown: Vec<(usize, &str)> = (member.operations.iter().enumerate())
        .filter(|&(index, _)| all || mentioned(index))
        .map(|(index, words)| (index, words.as_str()))
        .collect();
    let more = member.operations.len() - shown.len();
    (shown, more)
}

/// The steps of an argument, those they rest on, and those that these follow from; of a case distinction those of the
/// first case.
fn shown_steps(finding: &Finding) -> Vec<&Step> {
    let mut steps: Vec<&Step> = finding.explanation.iter().chain(&finding.support).collect();
    let mut cases = finding.cases.as_ref();
    while let Some(case) = cases.and_then(|cases| cases.told.first()) {
        steps.extend(&case.support);
        cases = case.cases.as_ref();
    }
    let mut next = 0;
    while let Some(step) = steps.get(next) {
        steps.extend(&step.because);
        next += 1;
    }
    steps
}

/// Every step of an argument, in all of its cases.
pub(crate) fn every_step(finding: &Finding) -> Vec<&Step> {
    let mut steps = shown_steps(finding);
    let mut cases: Vec<&Cases> = finding.cases.iter().collect();
    let (mut next, mut next_cases) = (0, 0);
    loop {
        if let Some(step) = steps.get(next).copied() {
            // The because of shown steps is there already.
            let known = |it: &&Step| steps.iter().any(|step| std::ptr::eq(*step, *it));
            let new: Vec<&Step> = step.because.iter().filter(|it| !known(it)).collect();
            steps.extend(new);
            cases.extend(&step.cases);
            next += 1;
        } else if let Some(it) = cases.get(next_cases).copied() {
            for case in &it.told {
                steps.extend(case.explanation.iter().chain(&case.support));
                cases.extend(&case.cases);
            }
            next_cases += 1;
        } else {
            return steps;
        }
    }
}

/// `the first of 2 cases`, where a picture shows no more.
pub(crate) fn first_case(finding: &Finding) -> Option<String> {
    let cases = finding.cases.as_ref()?;
    Some(format!("the first of {} cases", cases.told.len() + cases.left_out))
}

/// What is written on an edge: `rw x`, `so`, `rw x (predicate)`.
pub(crate) fn label(step: &Step) -> String {
    let key = step.key.as_ref().map(|key| format!(" {key}")).unwrap_or_default();
    let predicate = if step.predicate { " (predicate)" } else { "" };
    format!("{}{key}{predicate}", step.edge)
}
