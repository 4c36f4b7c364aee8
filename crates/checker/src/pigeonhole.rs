//! More transactions replaced a value than there were versions of it.
//!
//! *What*: at every level that forbids lost updates, from cursor stability on, whoever read a key and wrote it replaced the
//! version that it read, and nobody else did. Of the transactions that read x = v and wrote x there are at most as many as versions of x with the
//! value v, the initial one among them. Where there are more, two of them replaced the same one, and an update is lost;
//! which two, nobody can say.
//!
//! *Why it is looked for*: locks, compare-and-set and counters that come back to a value read and write a few values very often. A
//! search would try all ways to deal versions to readers: proofs of the pigeonhole principle by resolution are exponential
//! (Haken, The intractability of resolution, 1985).
//!
//! *Cost*: a sort of the reads with several candidates whose transactions write the key.

use crate::core::Back;
use crate::naming;
use crate::observe::observe;
use crate::problem::{NONE, Problem, Read, Standing, Txn};
use crate::restrict::restrict;
use history::{History, Id, OpId, Operation, TxnId, ValueId};
use isolation::{Budget, Evidence, Level, Options, Rule, Ryow, Undecided};
use rustc_hash::FxHashSet;

/// More transactions replaced a value than there were versions of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The reads, one of each transaction: all returned the same value of the same key, which all of them replaced.
    pub reads: Vec<OpId>,
    /// Who wrote the value.
    pub writers: Vec<TxnId>,
    /// Whether it was there from the start.
    pub from_start: bool,
}

impl Crowd {
    /// What counting shows of the core of some evidence, where there is no other argument.
    pub fn shown_by(evidence: &Evidence, history: &History) -> Option<Self> {
        let is_counted = evidence.edges.is_empty() && evidence.anomaly == naming::lost_update();
        is_counted.then(|| of(history, &evidence.transactions, Ryow::Must)).flatten()
    }

    /// Whether one transaction less would be none: it speaks of all of them. That the others are not a crowd does not mean that they
    /// have an explanation, but to look for one is a search that counting saves.
    pub(crate) fn needs_all(&self, history: &History, txns: &[TxnId]) -> bool {
        let of_it = self.transactions(history);
        txns.iter().all(|txn| of_it.contains(txn))
    }

    /// What it rests on: the reads, and what their transactions and the writers left in the key.
    pub(crate) fn operations(&self, history: &History) -> FxHashSet<OpId> {
        let key = self.reads.first().and_then(|&read| history.operation(read).key());
        let is_write = |&op: &OpId| {
            matches!(history.operation(op), Operation::Write { .. } | Operation::Delete { .. })
                && history.operation(op).key() == key
        };
        let last_write = |txn: TxnId| history.transaction(txn).op_ids().rev().find(is_write);
        let left = self.transactions(history).into_iter().filter_map(last_write);
        self.reads.iter().copied().chain(left).collect()
    }

    fn transactions(&self, history: &History) -> FxHashSet<TxnId> {
        self.reads.iter().map(|&read| history.owner(read)).chain(self.writers.iter().copied()).collect()
    }
}

/// Whether a level forbids that two transactions replace the same version.
pub(crate) fn applies(level: Level) -> bool {
    matches!(
        level.rule,
        Rule::CursorStability
            | Rule::ConsistentView
            | Rule::RepeatableRead
            | Rule::SnapshotIsolation
            | Rule::UpdateSerializable
            | Rule::Serializable
    )
}

/// What a set of transactions shows by counting alone, if it does and the level forbids it.
pub(crate) fn crowd(history: &History, txns: &[TxnId], level: Level, options: &Options) -> Option<Crowd> {
    (applies(level) && !options.mixed).then(|| of(history, txns, options.ryow)).flatten()
}

fn of(history: &History, txns: &[TxnId], ryow: Ryow) -> Option<Crowd> {
    let part = restrict(history, txns);
    let options = Options { ryow, ..Options::default() };
    let problem = observe(&part.history, &options).ok()?;
    let found = find(&problem, &options.budget).ok()??;
    let origin = |txn: Txn| part.txns[problem.txns[txn as usize].index()];
    let back = Back { part: &part.history, txns: &part.txns, whole: history, ryow };
    Some(Crowd {
        reads: found.readers.iter().map(|&read| back.op(problem.reads[read as usize].op)).collect(),
        writers: found.writers.into_iter().map(origin).collect(),
        from_start: found.from_start,
    })
}

/// A crowd in a problem: as few readers as are too many, and all writers.
pub(crate) struct Found {
    /// Reads, one of each transaction.
    readers: Vec<u32>,
    writers: Vec<Txn>,
    from_start: bool,
}

impl Found {
    /// Who read and replaced the value.
    pub(crate) fn readers(&self, problem: &Problem) -> impl Iterator<Item = Txn> {
        self.readers.iter().map(|&read| problem.reads[read as usize].txn)
    }

    /// Everybody it speaks of.
    pub(crate) fn txns(&self, problem: &Problem) -> Vec<Txn> {
        let mut txns: Vec<Txn> = self.readers(problem).chain(self.writers.iter().copied()).collect();
        txns.sort_unstable();
        txns.dedup();
        txns
    }
}

/// The smallest crowd.
pub(crate) fn find(problem: &Problem, budget: &Budget) -> Result<Option<Found>, Undecided> {
    let meter = budget.meter();
    let mut replaced: Vec<(u32, ValueId, Txn, u32)> = Vec::new();
    for (id, read) in (0..).zip(&problem.reads) {
        meter.step()?;
        let is_certain = |version: u32| problem.alternative_of_version(version) == NONE;
        // What was not shown in a range or by a predicate is no version that was read, and bases are none either.
        let is_none =
            || problem.unshown.binary_search(&id).is_ok() || problem.bases.binary_search(&id).is_ok();
        if !read.is_known()
            && !is_none()
            && problem.alternative_of_read(id) == NONE
            && problem.standing[read.txn as usize] == Standing::In
            && problem.version_by(read.txn, read.key).is_some_and(is_certain)
            && let Some(value) = value_seen(problem, read)
        {
            replaced.push((read.key, value, read.txn, id));
        }
    }
    replaced.sort_unstable();
    replaced.dedup_by_key(|&mut (key, value, txn, _)| (key, value, txn));
    let crowd = |readers: &[(u32, ValueId, Txn, u32)]| {
        let &(key, value, ..) = readers.first()?;
        let (writers, from_start) = versions(problem, key, value)?;
        let count = writers.len() + usize::from(from_start);
        let readers = readers.get(..=count)?.iter().map(|&(.., id)| id).collect();
        Some(Found { readers, writers, from_start })
    };
    let mut smallest: Option<Found> = None;
    for readers in replaced.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
        let versions = readers.first().map_or(0, |&(key, ..)| problem.versions_of_key(key).len());
        meter.steps(1 + versions)?;
        let is_smaller = |found: &Found| {
            smallest.as_ref().is_none_or(|smallest| found.readers.len() < smallest.readers.len())
        };
        if let Some(found) = crowd(readers).filter(is_smaller) {
            smallest = Some(found);
        }
    }
    Ok(smallest)
}

/// The value that a read with several candidates saw, if they all have the same.
pub(crate) fn value_seen(problem: &Problem, read: &Read) -> Option<ValueId> {
    let listed = problem.value_of(read);
    if listed.is_known() {
        return Some(listed);
    }
    let mut values = problem.candidates(read).map(|version| match problem.versions.get(version as usize) {
        Some(version) => version.value,
        None => problem.initial[read.key as usize],
    });
    let first = values.next().filter(|value| value.is_known())?;
    values.all(|value| value == first).then_some(first)
}

/// Who may have written a value of a key, and whether it was there from the start; `None` where a version may be anything.
fn versions(problem: &Problem, key: u32, value: ValueId) -> Option<(Vec<Txn>, bool)> {
    let all = problem.versions_of_key(key);
    if all.iter().any(|(other, _)| !other.is_known()) {
        return None;
    }
    let with_value = all.iter().filter(|&&(other, _)| other == value);
    let writers = with_value.map(|&(_, version)| problem.versions[version as usize].txn);
    let live = writers.filter(|&txn| problem.standing[txn as usize] != Standing::Out);
    Some((live.collect(), problem.initial[key as usize] == value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    fn of(text: &str) -> Option<(usize, usize, bool)> {
        let history = notation::parse(text).expect("the notation is right");
        let all: Vec<TxnId> = history.transactions().map(|txn| txn.id()).collect();
        super::of(&history, &all, Ryow::Must).map(|it| (it.reads.len(), it.writers.len(), it.from_start))
    }

    #[test]
    fn each_version_is_replaced_once() {
        let lock = |sessions: usize| -> String {
            (0..sessions).map(|session| format!("s{session}: r(m,0) w(m,1)\n")).collect()
        };
        // There from the start, and after one release.
        let twice = format!("init: m=0\nt: r(m,1) w(m,0)\n{}", lock(2));
        assert_eq!(of(&twice), None);
        assert_eq!(of(&format!("{twice}u: r(m,0) w(m,1)\n")), Some((3, 1, true)));
        // Who may have taken effect may have released it; whoever is not known to have taken it may not have.
        assert_eq!(of(&format!("{twice}u: r(m,0) w(m,1)\nv: w(m,0)?\n")), None);
        assert_eq!(of(&format!("{twice}u: r(m,0) w(m,1)?\n")), None);
        // Whoever only looked replaced nothing.
        assert_eq!(of(&format!("{twice}u: r(m,0)\n")), None);
    }
}
