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

use crate::problem::{NONE, Problem, Read, Standing, Txn};
use history::ValueId;
use isolation::{Budget, Level, Rule, Undecided};

/// Whether a level forbids that two transactions replace the same version.
pub fn applies(level: Level) -> bool {
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

/// A crowd in a problem: as few readers as are too many, and all writers.
pub struct Found {
    /// Reads, one of each transaction.
    pub readers: Vec<u32>,
    /// Who wrote the value.
    pub writers: Vec<Txn>,
    /// Whether it was there from the start.
    pub from_start: bool,
}

impl Found {
    /// Who read and replaced the value.
    pub fn readers(&self, problem: &Problem) -> impl Iterator<Item = Txn> {
        self.readers.iter().map(|&read| problem.reads[read as usize].txn)
    }

    /// Everybody it speaks of.
    pub fn txns(&self, problem: &Problem) -> Vec<Txn> {
        let mut txns: Vec<Txn> = self.readers(problem).chain(self.writers.iter().copied()).collect();
        txns.sort_unstable();
        txns.dedup();
        txns
    }
}

/// The smallest crowd.
pub fn find(problem: &Problem, budget: &Budget) -> Result<Option<Found>, Undecided> {
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
