//! The axiomatic family: every commit order is tried and the axiom checked as it is written.
//!
//! **What.** Biswas and Enea (OOPSLA 2019): a commit order is a total order of the transactions, after the
//! initial one, that contains session order and wr. For every read of x by t3 from t1, any other writer t2
//! of x that t3 must see commits before t1. What t3 must see is the level:
//!
//! | level | t3 must see t2 when |
//! |---|---|
//! | axiomatic-read-committed | an operation of t3 before the read reads from t2 |
//! | read-atomic | t2 → t3 by session order or wr |
//! | causal | t2 → … → t3 by session order and wr |
//! | prefix | t2 commits no later than some t4 → t3 by session order or wr |
//!
//! The commit order gives the version order of every key, and with it the content of lists. A predicate
//! evaluation is a read of one version of every key it ranges over, shown or not.
//!
//! **Invariant.** Choosing what more reads saw adds obligations and never removes one, so a broken axiom is
//! not repaired later and the search turns back.
//!
//! **Cost.** n! commit orders, times the versions each read may have seen.

use super::content::Content;
use super::orders::Effective;
use super::rules::{NODES_MAX, Relation};
use super::scenario::{self, Scenario};
use super::versions::{ExternalRead, OneKey, Versions, permutations};
use super::{Effort, Found, Stop, admit};
use history::History;
use isolation::{Level, Options, Rule, Witness};

/// The largest history that is tried.
const TRANSACTIONS_MAX: usize = 7;

pub(super) fn search(history: &History, level: Level, options: &Options, effort: &mut Effort<'_>) -> Found {
    let effective = Effective::new(history, level, options.clock_skew);
    admit(effective.len(), TRANSACTIONS_MAX.min(NODES_MAX))?;
    let found = scenario::each(history, effort, false, |scenario, effort| {
        let session_order = session_order(&effective, scenario);
        let everyone: Vec<usize> = (0..scenario.participants.len()).collect();
        // A found order ends the enumeration the way an error does.
        let visited = permutations(&everyone, &mut |order| {
            if !contains(order, &session_order) {
                return Ok(());
            }
            effort.step().map_err(Ended::Stopped)?;
            let holds = holds_under(history, level.rule, options, scenario, &session_order, order, effort);
            if holds.map_err(Ended::Stopped)? { Err(Ended::Found) } else { Ok(()) }
        });
        match visited {
            Ok(()) => Ok(false),
            Err(Ended::Found) => Ok(true),
            Err(Ended::Stopped(stop)) => Err(stop),
        }
    })?;
    Ok(found.then(Witness::default))
}

enum Ended {
    Found,
    Stopped(Stop),
}

fn session_order(effective: &Effective, scenario: &Scenario<'_>) -> Relation {
    let place = |at: usize| {
        effective.transactions.iter().position(|&txn| txn == scenario.participants[at].txn).unwrap_or(0)
    };
    let mut relation = Relation::default();
    for from in 0..scenario.participants.len() {
        for to in 0..scenario.participants.len() {
            if effective.before[place(to)] & 1 << place(from) != 0 {
                relation.add(from, to);
            }
        }
    }
    relation
}

fn contains(order: &[usize], relation: &Relation) -> bool {
    !order
        .iter()
        .enumerate()
        .any(|(at, &later)| order[..at].iter().any(|&earlier| relation.has(later, earlier)))
}

/// Whether reads can be explained so that the axiom holds under a commit order.
fn holds_under(
    history: &History,
    rule: Rule,
    options: &Options,
    scenario: &Scenario<'_>,
    session_order: &Relation,
    order: &[usize],
    effort: &mut Effort<'_>,
) -> Result<bool, Stop> {
    let mut commit = [0; NODES_MAX];
    for (at, &txn) in order.iter().enumerate() {
        commit[txn] = at;
    }
    let mut keys = Vec::new();
    for key in history.keys().ids() {
        let one = OneKey {
            key,
            participants: &scenario.participants,
            values: history.values(),
            ryow: options.ryow,
            initial: Content::of(history.values(), history.initial_value(key)),
        };
        let mut writers = one.writers();
        writers.sort_by_key(|&writer| commit[writer]);
        let Some(versions) = one.under(&writers) else { return Ok(false) };
        keys.push(versions);
    }
    let mut reads = Vec::new();
    for versions in &keys {
        for read in &versions.reads {
            let committed_before = |&version: &usize| {
                versions.writers[version].is_none_or(|writer| commit[writer] < commit[read.reader])
            };
            let sources = read.candidates.iter().copied().filter(committed_before).collect();
            reads.push(Read { read, versions, sources });
        }
    }
    if reads.iter().any(|read| read.sources.is_empty()) {
        return Ok(false);
    }
    let axiom = Axiom { rule, session_order, commit, order };
    if rule == Rule::Causal {
        return choose(&axiom, &reads, &mut Vec::new(), effort);
    }
    // What a transaction must see depends, but for causality, on its own reads alone.
    for &reader in order {
        let own: Vec<_> = reads.iter().filter(|read| read.read.reader == reader).cloned().collect();
        if !choose(&axiom, &own, &mut Vec::new(), effort)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A read and what it may have seen under the commit order.
#[derive(Clone)]
struct Read<'k, 's, 'h> {
    read: &'k ExternalRead<'s, 'h>,
    versions: &'k Versions<'s, 'h>,
    sources: Vec<usize>,
}

struct Axiom<'a> {
    rule: Rule,
    session_order: &'a Relation,
    /// Each transaction's place in the commit order.
    commit: [usize; NODES_MAX],
    order: &'a [usize],
}

/// Chooses a source for every read, one after the other.
fn choose(
    axiom: &Axiom<'_>,
    reads: &[Read<'_, '_, '_>],
    chosen: &mut Vec<usize>,
    effort: &mut Effort<'_>,
) -> Result<bool, Stop> {
    effort.step()?;
    if !axiom.holds(&reads[..chosen.len()], chosen) {
        return Ok(false);
    }
    let Some(next) = reads.get(chosen.len()) else { return Ok(true) };
    for &source in &next.sources {
        chosen.push(source);
        if choose(axiom, reads, chosen, effort)? {
            return Ok(true);
        }
        chosen.pop();
    }
    Ok(false)
}

impl Axiom<'_> {
    /// Whether the axiom holds for the reads whose source is chosen.
    fn holds(&self, reads: &[Read<'_, '_, '_>], chosen: &[usize]) -> bool {
        let writer = |index: usize| reads[index].versions.writers[chosen[index]];
        let mut direct = *self.session_order;
        for (index, read) in reads.iter().enumerate() {
            if let Some(writer) = writer(index) {
                direct.add(writer, read.read.reader);
            }
        }
        let causal = direct.closure();
        reads.iter().enumerate().all(|(index, read)| {
            let t3 = read.read.reader;
            let must_see = |t2: usize| match self.rule {
                Rule::AxiomaticReadCommitted => reads.iter().enumerate().any(|(other, earlier)| {
                    earlier.read.reader == t3 && earlier.read.op < read.read.op && writer(other) == Some(t2)
                }),
                Rule::ReadAtomic => direct.has(t2, t3),
                Rule::Causal => causal.has(t2, t3),
                Rule::Prefix => {
                    self.order.iter().any(|&t4| direct.has(t4, t3) && self.commit[t2] <= self.commit[t4])
                }
                _ => unreachable!("only levels of the axiomatic family come here"),
            };
            // Versions are in commit order: what must be seen is not after what was seen.
            let later = read.versions.writers[chosen[index] + 1..].iter().flatten();
            later.copied().filter(|&t2| t2 != t3).all(|t2| !must_see(t2))
        })
    }
}
