//! Levels by their definition: every explanation is tried, its dependency graph built, the rule applied.
//!
//! **What.** An explanation is an outcome of every unknown transaction, the keys that each predicate write
//! matched ([`scenario`](super::scenario)), a version order of every key, and the version that every read
//! and every predicate evaluation saw. Its edges are those of Vbox, definitions 2.1 and 2.2:
//!
//! ```text
//!   version order of x    x0 ──ww──▶ x1 ──ww──▶ x2          (x0 is initial: no transaction, no edge)
//!   T reads x1            writer(x1) ──wr──▶ T ──rw──▶ writer(x2)
//!   T evaluates θ on xj   writer(xi) ──wr──▶ T ──rw──▶ writer(xk)      predicate edges
//!                         xi: the last change of θ up to xj; xk: the first change of θ after it
//! ```
//! * A row that satisfies the predicate is also read as an item: it has the edges of both lines, and its
//!   item rw counts for `repeatable-read` and `cursor-stability`.
//! * Definition 2.2 speaks of two *distinct* transactions. An evaluation that would see the effect of the
//!   transaction's own later write (xi is its own version) would have no edge, but no execution either; such
//!   a choice is not an explanation. Replay agrees.
//! * A read of the transaction's own write has no edge; it must fit the content that the version order
//!   gives: an append builds on the version right before it.
//!
//! **Invariant.** Keys are independent within a scenario, and rules forbid patterns; so the graphs of one
//! key are computed alone, only the minimal ones kept, and combined key by key while they are allowed.
//!
//! **Monotonic view** is Adya's unfolded graph (PL-2L, G-monotonic), one node an operation of T: no operation
//! has an rw to S if an *earlier* operation of T depends (wr, or ww at T's last write of the key) on S or
//! on something that S leads to by D. An operation on many keys is one node: what one scan saw and missed
//! itself is not judged, because "later" means a later operation.
//!
//! **Update serializability** forbids a cycle with at most one transaction that wrote nothing (Adya's no-
//! update-conflict-misses, seen by one reader at a time); a predicate write that matched nothing wrote nothing.
//!
//! **Cursor stability** looks at item rw only: a cursor is on an item.
//!
//! **Cost.** The product over keys of (writers of the key)! times the versions each read may have seen.

use super::dirty;
use super::orders::{Effective, Set};
use super::rules::{Frame, Graph, NODES_MAX, Relation, Step};
use super::scenario::{self, Participant, Scenario};
use super::versions::{ExternalRead, OneKey, Versions, permutations};
use super::{Effort, Found, Stop, admit};
use crate::content::Content;
use history::{History, KeyId};
use isolation::{Level, Options, Rule, Witness};

pub(super) fn search(history: &History, level: Level, options: &Options, effort: &mut Effort<'_>) -> Found {
    let effective = Effective::new(history, level, options.clock_skew);
    admit(effective.len(), NODES_MAX)?;
    let dirty = level.rule == Rule::ReadUncommitted;
    let found = scenario::each(history, effort, dirty, |scenario, effort| {
        let frame = frame(level, &effective, &scenario.participants);
        explained(history, options, scenario, &frame, effort)
    })?;
    Ok(found.then(Witness::default))
}

/// The orders between the participants of a scenario, and which of them only read.
fn frame(level: Level, effective: &Effective, participants: &[Participant<'_>]) -> Frame {
    let places: Vec<usize> = participants
        .iter()
        .filter_map(|participant| effective.transactions.iter().position(|&txn| txn == participant.txn))
        .collect();
    let mut orders = Relation::default();
    let mut read_only: Set = 0;
    for (to, &place) in places.iter().enumerate() {
        for (from, other) in places.iter().enumerate() {
            if effective.before[place] & 1 << other != 0 {
                orders.add(from, to);
            }
        }
        if !participants[to].writes_any() {
            read_only |= 1 << to;
        }
    }
    Frame { rule: level.rule, orders, nodes: participants.len(), read_only }
}

/// Whether some version orders and reads-from choices have an allowed graph.
fn explained(
    history: &History,
    options: &Options,
    scenario: &Scenario<'_>,
    frame: &Frame,
    effort: &mut Effort<'_>,
) -> Result<bool, Stop> {
    if !frame.allows(&Graph::default()) {
        return Ok(false);
    }
    let mut keys: Vec<Vec<Graph>> = Vec::new();
    for key in history.keys().ids() {
        let mut graphs = match frame.rule {
            Rule::ReadUncommitted => dirty::graphs(history, key, scenario, effort)?,
            _ => graphs(history, options, key, scenario, frame, effort)?,
        };
        graphs.retain(|graph| frame.allows(graph));
        if graphs.is_empty() {
            return Ok(false);
        }
        keys.push(graphs);
    }
    // The key with the fewest choices first.
    keys.sort_by_key(Vec::len);
    combine(&keys, &Graph::default(), frame, effort)
}

/// Whether one graph of every key can be chosen so that all together are allowed.
fn combine(
    keys: &[Vec<Graph>],
    chosen: &Graph,
    frame: &Frame,
    effort: &mut Effort<'_>,
) -> Result<bool, Stop> {
    let Some((graphs, others)) = keys.split_first() else { return Ok(true) };
    for graph in graphs {
        effort.step()?;
        let together = chosen.union(graph);
        if frame.allows(&together) && combine(others, &together, frame, effort)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The minimal graphs of one key.
fn graphs(
    history: &History,
    options: &Options,
    key: KeyId,
    scenario: &Scenario<'_>,
    frame: &Frame,
    effort: &mut Effort<'_>,
) -> Result<Vec<Graph>, Stop> {
    let one = OneKey {
        key,
        participants: &scenario.participants,
        values: history.values(),
        ryow: options.ryow,
        initial: Content::of(history.values(), history.initial_value(key)),
    };
    let mut all = Vec::new();
    permutations(&one.writers(), &mut |order| {
        effort.step()?;
        let Some(versions) = one.under(order) else { return Ok(()) };
        let mut graphs = Vec::new();
        frame.keep(version_edges(&one, &versions, frame.rule), &mut graphs);
        for read in &versions.reads {
            let mut choices = Vec::new();
            for &version in &read.candidates {
                if let Some(edges) = read_edges(&one, &versions, read, version, frame.rule) {
                    frame.keep(edges, &mut choices);
                }
            }
            let mut longer = Vec::new();
            for graph in &graphs {
                for choice in &choices {
                    effort.step()?;
                    frame.keep(graph.union(choice), &mut longer);
                }
            }
            graphs = longer;
        }
        graphs.into_iter().for_each(|graph| graph.add_minimal(&mut all));
        Ok(())
    })?;
    Ok(all)
}

/// The ww edges of a version order.
fn version_edges(one: &OneKey<'_, '_>, versions: &Versions<'_, '_>, rule: Rule) -> Graph {
    let mut graph = Graph::default();
    for pair in versions.writers.windows(2) {
        if let [Some(earlier), Some(later)] = *pair {
            graph.ww.add(earlier, later);
            if rule == Rule::MonotonicView {
                let actions = one.participants[later].actions(one.key);
                let op = actions.iter().rev().find(|action| action.writes()).map_or(0, |action| action.op);
                if op < one.participants[later].last_op() {
                    graph.steps.push(Step { txn: later, op, missed: false, other: earlier });
                }
            }
        }
    }
    graph.steps.sort_unstable();
    graph
}

/// The edges of a read that saw `seen`; `None` if it would have to see its own transaction's later write.
fn read_edges(
    one: &OneKey<'_, '_>,
    versions: &Versions<'_, '_>,
    read: &ExternalRead<'_, '_>,
    seen: usize,
    rule: Rule,
) -> Option<Graph> {
    let reader = Some(read.reader);
    let mut graph = Graph::default();
    let mut depends_on: Vec<Option<usize>> = Vec::new();
    let mut missed: Vec<Option<usize>> = Vec::new();
    if read.expected.reads_item() {
        depends_on.push(versions.writers[seen]);
        let next = versions.writers.get(seen + 1).copied().flatten();
        missed.push(next);
        if let Some(next) = next.filter(|_| next != reader) {
            graph.rw_item.add(read.reader, next);
            // The reader wrote the key too, after that: it lost an update.
            let overwrote = versions.writers[seen + 2..].contains(&reader);
            graph.lost_update = rule == Rule::CursorStability && overwrote;
        }
    }
    if let Some((test, _)) = read.expected.predicate {
        let truth: Vec<bool> =
            versions.contents.iter().map(|content| test.holds(one.values, content)).collect();
        let changes = |version: &usize| truth[*version] != truth[*version - 1];
        if let Some(last_change) = (1..=seen).rev().find(changes) {
            if versions.writers[last_change] == reader {
                return None;
            }
            depends_on.push(versions.writers[last_change]);
        }
        if let Some(next_change) = (seen + 1..truth.len()).find(changes) {
            missed.push(versions.writers[next_change]);
            if let Some(next) =
                versions.writers[next_change].filter(|_| versions.writers[next_change] != reader)
            {
                graph.rw_predicate.add(read.reader, next);
            }
        }
    }
    for writer in depends_on.iter().flatten() {
        graph.wr.add(*writer, read.reader);
    }
    if rule == Rule::MonotonicView {
        let step = |missed, other| Step { txn: read.reader, op: read.op, missed, other };
        // What the last operation sees and the first one misses concerns no other operation.
        if read.op < one.participants[read.reader].last_op() {
            graph.steps.extend(depends_on.into_iter().flatten().map(|writer| step(false, writer)));
        }
        if read.op > 0 {
            let others = missed.into_iter().flatten().filter(|&writer| Some(writer) != reader);
            graph.steps.extend(others.map(|writer| step(true, writer)));
        }
        graph.steps.sort_unstable();
        graph.steps.dedup();
    }
    Some(graph)
}
