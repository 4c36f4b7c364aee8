//! Looks every read up: who can have written what it saw.
//!
//! *Steps*: (1) a value: the versions of the key that carry it; a claim: those of which it holds; an alternative: those
//! that lead to it; (2) no version is a contradiction, one a known source, several an open question.

use crate::contents::Contents;
use crate::demand::{self, Missing};
use crate::lists::ListRead;
use crate::problem::{ALL_BUT, INITIAL, NONE, Problem, Read, Standing, Txn};
use crate::refusal::{Contradiction, Refusal};
use crate::rows::Claim;
use history::{History, KeyId, OpId, ValueId};
use isolation::{Budget, Meter, Undecided, gallop};

/// A read before it is looked up.
pub(crate) struct RawRead {
    pub key: u32,
    /// `UNKNOWN` for a list, which is looked up by its elements, and for claims.
    pub value: ValueId,
    pub op: OpId,
}

/// All reads before they are looked up.
pub(crate) struct Raw<'a> {
    pub contents: &'a Contents<'a>,
    pub reads: &'a [RawRead],
    pub(crate) claims: &'a [Claim<'a>],
    /// The reads that are claims, ascending, and where those begin.
    pub(crate) claimed: &'a [(u32, u32)],
    /// The reads that belong to an alternative, ascending, with what may have been found.
    pub open: &'a [OpenRead],
    /// Reads, ascending, that are none, and reads that saw no row.
    pub bases: &'a [u32],
    pub unshown: &'a [u32],
    /// Reads of a key by name, ascending, where each read is its own.
    pub items: &'a [u32],
}

/// What was found if an alternative is true.
pub(crate) struct OpenRead {
    pub read: u32,
    pub alternative: u32,
    pub contents: Vec<ValueId>,
}

/// Looks every read up. A read that nothing explains is a contradiction if its transaction certainly
/// took effect; else the transaction did not. What is true of every version is left out.
pub(crate) fn resolve(
    problem: &mut Problem,
    raw: &Raw<'_>,
    list_reads: &mut [ListRead],
    budget: &Budget,
) -> Result<(), Refusal> {
    let meter = budget.meter();
    let mut reads = Vec::with_capacity(raw.reads.len());
    let mut choices = Vec::new();
    let mut claimed = raw.claimed.iter().enumerate().peekable();
    let mut lists = list_reads.iter_mut().peekable();
    let mut open = raw.open.iter().peekable();
    let mut bases = raw.bases.iter().peekable();
    let mut unshown = raw.unshown.iter().peekable();
    let mut items = raw.items.iter().peekable();
    let mut hints = vec![0; problem.keys()];
    let mut fetched = 0;
    for txn in 0..problem.len() {
        let ids = problem.first_read[txn]..problem.first_read[txn + 1];
        problem.first_read[txn] = reads.len() as u32;
        for id in ids {
            if id as usize == fetched {
                fetched = raw.reads.len().min(fetched + READS_AT_ONCE);
                fetch(problem, &raw.reads[id as usize..fetched], &hints);
            }
            meter.step()?;
            let it = &raw.reads[id as usize];
            let place = reads.len() as u32;
            let is_base = bases.next_if(|base| **base == id).is_some();
            let is_unshown = unshown.next_if(|read| **read == id).is_some();
            let is_item = items.next_if(|read| **read == id).is_some();
            if let Some(alternative) = open.next_if(|open| open.read == id) {
                let fits = |value: ValueId| alternative.contents.binary_search(&value).is_ok();
                match choose(problem, txn as Txn, it, fits, is_item, &mut choices, &meter)? {
                    None => {}
                    Some((NONE, _)) => {
                        problem.alternatives[alternative.alternative as usize].is_possible = false;
                    }
                    Some((source, candidates)) => {
                        problem.alternatives[alternative.alternative as usize].read = reads.len() as u32;
                        problem.read_alternative.resize(reads.len(), NONE);
                        problem.read_alternative.push(alternative.alternative);
                        reads.push(Read { key: it.key, txn: txn as Txn, source, candidates, op: it.op });
                        problem.bases.extend(is_base.then_some(place));
                        problem.unshown.extend(is_unshown.then_some(place));
                    }
                }
                continue;
            }
            let found = match claimed.next_if(|(_, (read, _))| *read == id) {
                Some((index, &(_, first))) => {
                    let end = raw.claimed.get(index + 1).map_or(raw.claims.len(), |&(_, next)| next as usize);
                    let claims = &raw.claims[first as usize..end];
                    let fits = |value| claims.iter().all(|claim| claim.accepts(raw.contents, value));
                    match choose(problem, txn as Txn, it, fits, is_item, &mut choices, &meter)? {
                        Some((start, 1))
                            if is_certain(problem, &choices[start as usize - problem.by_value.len()]) =>
                        {
                            let (_, only) = choices.pop().expect("the one that fits was added");
                            (only, 0)
                        }
                        Some(found) => found,
                        None => continue,
                    }
                }
                None => look_up(problem, txn as Txn, it, &mut hints),
            };
            if let Some(list) = lists.next_if(|list| list.slot == id) {
                list.slot = reads.len() as u32;
            }
            let (source, candidates) = found;
            if source == NONE {
                if problem.standing[txn] == Standing::In {
                    return Err(Contradiction::NoSource { op: it.op, key: KeyId(it.key) }.into());
                }
                problem.standing[txn] = Standing::Out;
            }
            reads.push(Read { key: it.key, txn: txn as Txn, source, candidates, op: it.op });
            problem.bases.extend(is_base.then_some(place));
            problem.unshown.extend(is_unshown.then_some(place));
        }
    }
    let end = problem.first_read.len() - 1;
    problem.first_read[end] = reads.len() as u32;
    problem.reads = reads;
    problem.by_value.extend(choices);
    Ok(())
}

/// Adds what predicates say of keys, ascending by transaction. A transaction of which something cannot be true is
/// returned if it certainly took effect; an error if the budget is used up.
pub(crate) fn add_claims(
    problem: &mut Problem,
    history: &History,
    contents: &Contents<'_>,
    missing: &[Missing],
    budget: &Budget,
) -> Result<Option<Txn>, Undecided> {
    let meter = budget.meter();
    let mut reads = Vec::with_capacity(problem.reads.len() + missing.len());
    let mut choices = Vec::new();
    let mut missing = missing.iter().copied().peekable();
    for txn in 0..problem.len() as Txn {
        let ids = problem.read_ids(txn);
        problem.first_read[txn as usize] = reads.len() as u32;
        reads.extend_from_slice(&problem.reads[ids]);
        while let Some((_, key)) = missing.next_if(|&(of, _)| of == txn) {
            let claims = demand::claims_on(history, problem.txns[txn as usize], key);
            let fits = |value| claims.iter().all(|claim| claim.accepts(contents, value));
            let op = claims.first().expect("a predicate of the transaction asked for it").op;
            match choose(
                problem,
                txn,
                &RawRead { key: key.0, value: ValueId::UNKNOWN, op },
                fits,
                false,
                &mut choices,
                &meter,
            )? {
                None => {}
                Some((NONE, _)) if problem.standing[txn as usize] == Standing::In => return Ok(Some(txn)),
                Some((NONE, _)) => {
                    // Nobody but itself can have written it: it took no effect, if that matters to anybody.
                    if let Some(own) = problem.version_ids(txn).next() {
                        let source = (problem.by_value.len() + choices.len()) as u32;
                        choices.push((ValueId::UNKNOWN, own));
                        reads.push(Read { key: key.0, txn, source, candidates: 1, op });
                    }
                }
                Some((source, candidates)) => {
                    reads.push(Read { key: key.0, txn, source, candidates, op });
                }
            }
        }
    }
    let end = problem.first_read.len() - 1;
    problem.first_read[end] = reads.len() as u32;
    problem.reads = reads;
    problem.by_value.extend(choices);
    Ok(None)
}

fn is_certain(problem: &Problem, &(_, version): &(ValueId, u32)) -> bool {
    problem.alternative_of_version(version) == NONE
}

/// The versions of a key that fit; `None` if that is all of them, unless an item was read: then some version was, and
/// whoever wrote the next one follows. The shorter of two lists is kept: those, or all
/// others. A version that is only there if an alternative came true is never known to be the source.
fn choose(
    problem: &Problem,
    txn: Txn,
    raw: &RawRead,
    fits: impl Fn(ValueId) -> bool,
    is_item: bool,
    choices: &mut Vec<(ValueId, u32)>,
    meter: &Meter<'_>,
) -> Result<Option<(u32, u32)>, Undecided> {
    meter.steps(problem.versions_of_key(raw.key).len())?;
    let first = choices.len();
    let versions = problem.versions_of_key(raw.key).iter();
    let others = versions.filter(|&&(_, version)| problem.versions[version as usize].txn != txn);
    let all = others.clone().map(|&(value, version)| (version, fits(value)));
    let all = all.chain([(INITIAL, fits(problem.initial[raw.key as usize]))]);
    let (mut fitting, mut count) = (0, 0);
    for (_, fits) in all.clone() {
        count += 1;
        fitting += usize::from(fits);
    }
    match fitting {
        _ if fitting == count && !is_item => return Ok(None),
        0 => return Ok(Some((NONE, 0))),
        _ => {}
    }
    let all_but = fitting > count - fitting && fitting < count;
    let kept = all.filter(|&(_, fits)| fits != all_but).map(|(version, _)| (ValueId::UNKNOWN, version));
    choices.extend(kept);
    choices[first..].sort_unstable();
    let len = (choices.len() - first) as u32;
    let start = (problem.by_value.len() + first) as u32;
    Ok(Some((start, if all_but { len | ALL_BUT } else { len })))
}

/// How many reads' versions are fetched at once.
const READS_AT_ONCE: usize = 32;

/// Versions are far apart: those where several reads will look are fetched at once, which waits once.
fn fetch(problem: &Problem, reads: &[RawRead], hints: &[u32]) {
    let near = |read: &RawRead| {
        let place = problem.key_start[read.key as usize] + hints[read.key as usize].saturating_sub(1);
        problem.by_value.get(place as usize).map_or(0, |&(_, version)| version)
    };
    std::hint::black_box(reads.iter().map(near).fold(0, |all, version| all ^ version));
}

/// The versions of a key that carry a value. What is read of a key mostly lies near what was read of it before: there it
/// is looked for, by key.
fn look_up(problem: &Problem, txn: Txn, raw: &RawRead, hints: &mut [u32]) -> (u32, u32) {
    if !raw.value.is_known() {
        return (INITIAL, 0); // a list; see lists::resolve
    }
    let group = problem.versions_of_key(raw.key);
    let hint = &mut hints[raw.key as usize];
    let first = gallop(group, *hint as usize, |&(value, _)| value < raw.value);
    *hint = first as u32;
    let with_value = group[first..].iter().take_while(|&&(value, _)| value == raw.value);
    let from_initial = problem.initial[raw.key as usize] == raw.value;
    let own = problem.version_ids(txn);
    let mut len = 0;
    let mut others = 0;
    let mut other = NONE;
    for &(_, version) in with_value {
        len += 1;
        if !own.contains(&version) {
            others += 1;
            other = version;
        }
    }
    match (others, from_initial) {
        (0, false) => (NONE, 0),
        (0, true) => (INITIAL, 0),
        (1, false) if problem.alternative_of_version(other) == NONE => (other, 0),
        _ => (problem.key_start[raw.key as usize] + first as u32, len),
    }
}
