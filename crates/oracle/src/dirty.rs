//! One key at read uncommitted, where reads may see what never committed.
//!
//! **What.** The versions of a key are those of the transactions that took effect, in some order, and, in
//! between, some of those that did not (ghosts). A version builds on the one right before it; a ghost may
//! have vanished by then, so a version may also build on what was before the ghost, or on something the
//! ghost left half-way. A read may see any content that any of them ever had, half-way ones included; a
//! transaction's reads of its own writes are not judged. Only ww edges between transactions that took
//! effect count.
//!
//! For single values this asks only that every value read was written by somebody. For lists it is more:
//! what was read shows in which order elements were added.
//!
//! **Cost.** The orders of all writers of the key, times where each may build.

use super::content::Content;
use super::rules::Graph;
use super::scenario::{Participant, Scenario, What};
use super::{Effort, Stop};
use history::{History, KeyId};

pub(super) fn graphs(
    history: &History,
    key: KeyId,
    scenario: &Scenario<'_>,
    effort: &mut Effort<'_>,
) -> Result<Vec<Graph>, Stop> {
    let initial = Content::of(history.values(), history.initial_value(key));
    let mut search = Search { history, key, scenario, found: Vec::new(), effort };
    let start = Point {
        bases: vec![initial.clone()],
        seen: vec![initial],
        last: None,
        graph: Graph::default(),
        left: scenario
            .participants
            .iter()
            .enumerate()
            .filter(|(_, who)| who.writes_key(key))
            .map(|(place, _)| place)
            .collect(),
        ghosts: (0..scenario.ghosts.len()).filter(|&place| scenario.ghosts[place].writes_key(key)).collect(),
    };
    search.extend(&start)?;
    Ok(search.found)
}

#[derive(Clone)]
struct Point {
    /// What the next version may build on.
    bases: Vec<Content>,
    /// Every content there has been.
    seen: Vec<Content>,
    /// The last transaction with effect, by place among the participants.
    last: Option<usize>,
    graph: Graph,
    left: Vec<usize>,
    ghosts: Vec<usize>,
}

struct Search<'h, 's, 'e, 'o> {
    history: &'h History,
    key: KeyId,
    scenario: &'s Scenario<'h>,
    found: Vec<Graph>,
    effort: &'e mut Effort<'o>,
}

impl Search<'_, '_, '_, '_> {
    fn extend(&mut self, point: &Point) -> Result<(), Stop> {
        self.effort.step()?;
        if point.left.is_empty() && self.reads_fit(&point.seen) {
            point.graph.clone().add_minimal(&mut self.found);
            // More ghosts change no edge.
            return Ok(());
        }
        for (place, &who) in point.left.iter().enumerate() {
            for base in &point.bases {
                let mut next = point.clone();
                next.left.remove(place);
                let contents = contents_from(&self.scenario.participants[who], self.key, base);
                next.bases = contents.last().cloned().into_iter().collect();
                next.seen.extend(contents);
                if let Some(last) = point.last {
                    next.graph.ww.add(last, who);
                }
                next.last = Some(who);
                self.extend(&next)?;
            }
        }
        for (place, &ghost) in point.ghosts.iter().enumerate() {
            for base in &point.bases {
                let mut next = point.clone();
                next.ghosts.remove(place);
                let contents = contents_from(&self.scenario.ghosts[ghost], self.key, base);
                next.bases.extend(contents.iter().cloned());
                next.bases.sort();
                next.bases.dedup();
                next.seen.extend(contents);
                self.extend(&next)?;
            }
        }
        Ok(())
    }

    fn reads_fit(&self, seen: &[Content]) -> bool {
        let values = self.history.values();
        let actions = self.scenario.participants.iter().flat_map(|who| who.actions(self.key));
        let mut reads = actions.filter_map(|action| match &action.what {
            What::Read(expected) => Some(expected),
            _ => None,
        });
        reads.all(|expected| seen.iter().any(|content| expected.accepts(values, content)))
    }
}

/// What a transaction makes of a key, write by write.
fn contents_from(who: &Participant<'_>, key: KeyId, base: &Content) -> Vec<Content> {
    let mut contents = Vec::new();
    let mut current = base.clone();
    for action in who.actions(key).iter().filter(|action| action.writes()) {
        current = action.apply(&current);
        contents.push(current.clone());
    }
    contents
}
