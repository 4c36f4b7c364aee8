//! Looks every read up: who can have written what it saw.
//!
//! *Steps*: (1) a value: the versions of the key that carry it; a claim: those of which it holds; an alternative: those
//! that lead to it; (2) no version is a contradiction, one a known source, several an open question; (3) transactions of
//! unknown outcome that somebody must have seen are in, those that nobody can have seen are out.

use crate::lists::ListRead;
use crate::observe::Contradiction;
use crate::problem::{ALL_BUT, INITIAL, NONE, Problem, Read, Standing, Txn};
use crate::rows::Claim;
use history::{History, KeyId, OpId, ValueId};

/// A read before it is looked up.
pub(crate) struct RawRead {
    pub(crate) key: u32,
    /// `UNKNOWN` for a list, which is looked up by its elements, and for claims.
    pub(crate) value: ValueId,
    pub(crate) op: OpId,
}

/// All reads before they are looked up.
pub(crate) struct Raw<'a> {
    pub(crate) history: &'a History,
    pub(crate) reads: &'a [RawRead],
    pub(crate) claims: &'a [Claim<'a>],
    /// The reads that are claims, ascending, and where those begin.
    pub(crate) claimed: &'a [(u32, u32)],
    /// The reads that belong to an alternative, ascending, with what may have been found.
    pub(crate) open: &'a [OpenRead],
}

/// What was found if an alternative is true.
pub(crate) struct OpenRead {
    pub(crate) read: u32,
    pub(crate) alternative: u32,
    pub(crate) contents: Vec<ValueId>,
}

/// Looks every read up. A read that nothing explains is a contradiction if its transaction certainly
/// took effect; else the transaction did not. What is true of every version is left out.
pub(crate) fn resolve(
    problem: &mut Problem,
    raw: &Raw<'_>,
    list_reads: &mut [ListRead],
) -> Result<(), Contradiction> {
    let mut reads = Vec::with_capacity(raw.reads.len());
    let mut choices = Vec::new();
    let mut claimed = raw.claimed.iter().enumerate().peekable();
    let mut lists = list_reads.iter_mut().peekable();
    let mut open = raw.open.iter().peekable();
    for txn in 0..problem.len() {
        let ids = problem.first_read[txn]..problem.first_read[txn + 1];
        problem.first_read[txn] = reads.len() as u32;
        for id in ids {
            let it = &raw.reads[id as usize];
            if let Some(alternative) = open.next_if(|open| open.read == id) {
                if let Some((source, candidates)) =
                    choose_among(problem, txn as Txn, it, alternative, &mut choices)
                {
                    problem.alternatives[alternative.alternative as usize].read = reads.len() as u32;
                    problem.read_alternative.resize(reads.len(), NONE);
                    problem.read_alternative.push(alternative.alternative);
                    reads.push(Read { key: it.key, txn: txn as Txn, source, candidates, op: it.op });
                }
                continue;
            }
            let found = match claimed.next_if(|(_, (read, _))| *read == id) {
                Some((index, &(_, first))) => {
                    let end = raw.claimed.get(index + 1).map_or(raw.claims.len(), |&(_, next)| next as usize);
                    let claims = &raw.claims[first as usize..end];
                    match choose(problem, raw.history, txn as Txn, it, claims, &mut choices) {
                        Some(found) => found,
                        None => continue,
                    }
                }
                None => look_up(problem, txn as Txn, it),
            };
            if let Some(list) = lists.next_if(|list| list.slot == id) {
                list.slot = reads.len() as u32;
            }
            let (source, candidates) = found;
            if source == NONE {
                if problem.standing[txn] == Standing::In {
                    return Err(Contradiction::NoSource { op: it.op, key: KeyId(it.key) });
                }
                problem.standing[txn] = Standing::Out;
            }
            reads.push(Read { key: it.key, txn: txn as Txn, source, candidates, op: it.op });
        }
    }
    let end = problem.first_read.len() - 1;
    problem.first_read[end] = reads.len() as u32;
    problem.reads = reads;
    problem.by_value.extend(choices);
    for it in &problem.matches {
        let mut alternatives = problem.alternatives[it.first as usize..it.end as usize].iter();
        if !alternatives.any(|alternative| alternative.is_possible) {
            let op = raw.reads[problem.first_read[it.txn as usize] as usize].op;
            if problem.standing[it.txn as usize] == Standing::In {
                return Err(Contradiction::NoSource { op, key: KeyId(it.key) });
            }
            problem.standing[it.txn as usize] = Standing::Out;
        }
    }
    Ok(())
}

/// The versions of a key that an alternative can have found; `None` if that is all of them, or none.
fn choose_among(
    problem: &mut Problem,
    txn: Txn,
    raw: &RawRead,
    open: &OpenRead,
    choices: &mut Vec<(ValueId, u32)>,
) -> Option<(u32, u32)> {
    let fits = |value: ValueId| open.contents.binary_search(&value).is_ok();
    let first = choices.len();
    let mut all = 1;
    for &(value, version) in problem.versions_of_key(raw.key) {
        if problem.versions[version as usize].txn != txn {
            all += 1;
            if fits(value) {
                choices.push((ValueId::UNKNOWN, version));
            }
        }
    }
    choices[first..].sort_unstable();
    if fits(problem.initial[raw.key as usize]) {
        choices.push((ValueId::UNKNOWN, INITIAL));
    }
    let len = choices.len() - first;
    problem.alternatives[open.alternative as usize].is_possible = len > 0;
    if len == 0 || len == all {
        choices.truncate(first);
        return None;
    }
    Some(((problem.by_value.len() + first) as u32, len as u32))
}

/// The versions of a key of which all claims hold; `None` if that is all of them. The shorter of two lists is kept:
/// those, or all others.
fn choose(
    problem: &Problem,
    history: &History,
    txn: Txn,
    raw: &RawRead,
    claims: &[Claim<'_>],
    choices: &mut Vec<(ValueId, u32)>,
) -> Option<(u32, u32)> {
    let fits = |value: ValueId| claims.iter().all(|claim| claim.accepts(history, value));
    let first = choices.len();
    let versions = problem.versions_of_key(raw.key).iter();
    let others = versions.filter(|&&(_, version)| problem.versions[version as usize].txn != txn);
    let all = others.clone().map(|&(value, version)| (version, fits(value)));
    let all = all.chain([(INITIAL, fits(problem.initial[raw.key as usize]))]);
    let (mut fitting, mut only, mut count) = (0, NONE, 0);
    for (version, fits) in all.clone() {
        count += 1;
        if fits {
            fitting += 1;
            only = version;
        }
    }
    match fitting {
        _ if fitting == count => return None,
        0 => return Some((NONE, 0)),
        1 if problem.alternative_of_version(only) == NONE => return Some((only, 0)),
        _ => {}
    }
    let all_but = fitting > count - fitting;
    let kept = all.filter(|&(_, fits)| fits != all_but).map(|(version, _)| (ValueId::UNKNOWN, version));
    choices.extend(kept);
    choices[first..].sort_unstable();
    let len = (choices.len() - first) as u32;
    let start = (problem.by_value.len() + first) as u32;
    Some((start, if all_but { len | ALL_BUT } else { len }))
}

fn look_up(problem: &Problem, txn: Txn, raw: &RawRead) -> (u32, u32) {
    if !raw.value.is_known() {
        return (INITIAL, 0); // a list; see lists::resolve
    }
    let group = problem.versions_of_key(raw.key);
    let first = group.partition_point(|&(value, _)| value < raw.value);
    let with_value = group[first..].iter().take_while(|&&(value, _)| value == raw.value);
    let from_initial = problem.initial[raw.key as usize] == raw.value;
    let mut len = 0;
    let mut others = 0;
    let mut other = NONE;
    for &(_, version) in with_value {
        len += 1;
        if problem.versions[version as usize].txn != txn {
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

/// Decides which transactions of unknown outcome are in: those that somebody who is in must have seen.
/// Those that nobody can have seen are out. The rest stay open.
pub(crate) fn settle_unknown(problem: &mut Problem) -> Result<(), Contradiction> {
    if problem.standing.iter().all(|&standing| standing == Standing::In) {
        return Ok(());
    }
    drop_out(problem)?;
    let mut wanted = vec![false; problem.len()];
    let of = |problem: &Problem, standing| -> Vec<Txn> {
        (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] == standing).collect()
    };
    let mut work = of(problem, Standing::In);
    while let Some(txn) = work.pop() {
        for read in problem.reads_of(txn).to_vec() {
            let must = read.is_known() && problem.standing[txn as usize] == Standing::In;
            let sources: Vec<u32> =
                if read.is_known() { vec![read.source] } else { problem.candidates(&read).collect() };
            for version in sources.into_iter().filter(|&version| version < INITIAL) {
                let writer = problem.versions[version as usize].txn as usize;
                if must && problem.standing[writer] == Standing::Maybe {
                    problem.standing[writer] = Standing::In;
                    work.push(writer as Txn);
                } else if !std::mem::replace(&mut wanted[writer], true) {
                    // What a wanted one may have seen is wanted too.
                    work.push(writer as Txn);
                }
            }
        }
    }
    for txn in of(problem, Standing::Maybe) {
        if !wanted[txn as usize] {
            problem.standing[txn as usize] = Standing::Out;
        }
    }
    // An open read may have lost candidates; those that remain are as they were.
    drop_out(problem)
}

/// Reads of transactions that are out constrain nothing; ambiguous reads may have become known or
/// impossible as candidates dropped out. Repeats until nothing changes.
fn drop_out(problem: &mut Problem) -> Result<(), Contradiction> {
    loop {
        let mut changed = false;
        for index in 0..problem.reads.len() {
            let read = problem.reads[index];
            let standing = problem.standing[read.txn as usize];
            if standing == Standing::Out {
                continue;
            }
            if problem.alternative_of_read(index as u32) != NONE {
                continue;
            }
            let left: Vec<u32> = if !read.is_known() {
                problem.candidates(&read).take(2).collect()
            } else if read.source == INITIAL
                || problem.standing[problem.versions[read.source as usize].txn as usize] != Standing::Out
            {
                continue;
            } else {
                Vec::new()
            };
            match (left[..].first(), left.len()) {
                (None, _) if standing == Standing::In => {
                    return Err(Contradiction::NoSource { op: read.op, key: KeyId(read.key) });
                }
                (None, _) => {
                    problem.standing[read.txn as usize] = Standing::Out;
                    changed = true;
                }
                (Some(&only), 1) if problem.alternative_of_version(only) == NONE => {
                    problem.reads[index].source = only;
                    problem.reads[index].candidates = 0;
                    changed = true;
                }
                _ => {}
            }
        }
        if !changed {
            return Ok(());
        }
    }
}
