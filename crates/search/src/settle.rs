//! What follows without an order: who took effect, and which alternatives came true.
//!
//! *What*: a transaction of unknown outcome that somebody must have seen is in; one that nobody can have seen is out. A
//! read that can have seen one version only makes the alternative true that left it; an alternative that found what
//! nobody left is impossible; the last one left of a match is true. One conclusion leads to the next: a list that was
//! read settles who appended before whom, down to its first element.
//!
//! *Cost*: the candidates of the reads, a few times. *Source*: unit propagation; Boomslang (Zhang, Mu and Tan 2026) §5.2 collapses
//! superpositions the same way.

use crate::problem::{Alternative, Count, INITIAL, NONE, Problem, Standing, Txn};
use crate::refusal::{Contradiction, Refusal};
use history::KeyId;
use isolation::{Budget, Meter};

/// Supposes that an alternative came true, and draws all conclusions.
pub fn suppose(problem: &mut Problem, alternative: u32, budget: &Budget) -> Result<(), Refusal> {
    make_true(problem, alternative);
    settle(problem, budget)
}

/// Draws all conclusions that need no order.
pub fn settle(problem: &mut Problem, budget: &Budget) -> Result<(), Refusal> {
    let meter = budget.meter();
    if problem.alternatives.is_empty() {
        return settle_unknown(problem, &meter);
    }
    settle_unknown(problem, &meter)?;
    while settle_alternatives(problem, &meter)? {}
    settle_unknown(problem, &meter)?;
    remove_settled(problem);
    Ok(())
}

/// One round over alternatives, reads and counts; whether something changed.
fn settle_alternatives(problem: &mut Problem, meter: &Meter<'_>) -> Result<bool, Refusal> {
    let mut changed = settle_impossible(problem, meter)?;
    drop_out(problem, meter)?;
    let mut work: Vec<u32> = (0..problem.reads.len() as u32).collect();
    while let Some(id) = work.pop() {
        meter.step()?;
        let read = problem.reads[id as usize];
        if read.is_known()
            || problem.standing[read.txn as usize] != Standing::In
            || problem.alternative_of_read(id) != NONE
        {
            continue;
        }
        let left: Vec<u32> = problem.candidates(&read).take(2).collect();
        let [only] = left[..] else { continue };
        let alternative = problem.alternative_of_version(only);
        if alternative != NONE {
            let writer = problem.versions[only as usize].txn;
            problem.standing[writer as usize] = Standing::In;
            problem.forced.push((writer, read.txn));
            work.extend(make_true(problem, alternative));
            changed = true;
        }
    }
    Ok(settle_counts(problem, meter)? || changed)
}

/// Alternatives that found what nobody left are impossible; the last one of a match is true.
fn settle_impossible(problem: &mut Problem, meter: &Meter<'_>) -> Result<bool, Refusal> {
    let mut changed = false;
    for index in 0..problem.matches.len() {
        let it = problem.matches[index];
        if it.is_settled || problem.standing[it.txn as usize] == Standing::Out {
            continue;
        }
        let mut possible = 0;
        let mut last = NONE;
        for alternative in it.first..it.end {
            meter.step()?;
            if !problem.alternatives[alternative as usize].is_possible {
                continue;
            }
            let mut reads = problem.reads_of_alternative(alternative);
            if reads.any(|read| problem.candidates(&problem.reads[read as usize]).next().is_none()) {
                problem.alternatives[alternative as usize].is_possible = false;
                changed = true;
                continue;
            }
            possible += 1;
            last = alternative;
        }
        match possible {
            0 => {
                refute(problem, it.txn, Contradiction::NoSource { op: it.op, key: KeyId(it.key) })?;
                changed = true;
            }
            1 => {
                make_true(problem, last);
                changed = true;
            }
            _ => {}
        }
    }
    Ok(changed)
}

/// A transaction contradicts everything: it did not take effect, unless it certainly did.
fn refute(problem: &mut Problem, txn: Txn, contradiction: Contradiction) -> Result<(), Contradiction> {
    if problem.standing[txn as usize] == Standing::In {
        return Err(contradiction);
    }
    problem.standing[txn as usize] = Standing::Out;
    Ok(())
}

/// Settles a match. The reads that now hold for certain are returned.
fn make_true(problem: &mut Problem, alternative: u32) -> std::ops::Range<u32> {
    let Alternative { of, version, .. } = problem.alternatives[alternative as usize];
    let it = &mut problem.matches[of as usize];
    it.is_settled = true;
    for other in (it.first..it.end).filter(|&other| other != alternative) {
        problem.alternatives[other as usize].is_possible = false;
    }
    if version != NONE {
        problem.version_alternative[version as usize] = NONE;
    }
    let reads = problem.reads_of_alternative(alternative);
    for read in reads.clone() {
        problem.read_alternative[read as usize] = NONE;
    }
    reads
}

/// How many keys a predicate write matched may leave no choice.
fn settle_counts(problem: &mut Problem, meter: &Meter<'_>) -> Result<bool, Refusal> {
    let mut changed = false;
    for index in 0..problem.counts.len() {
        let Count { txn, op, count, .. } = problem.counts[index];
        if problem.standing[txn as usize] == Standing::Out {
            continue;
        }
        meter.steps(problem.counts[index].matched.len())?;
        let matched = std::mem::take(&mut problem.counts[index].matched);
        let of = |problem: &Problem, it: u32| problem.alternatives[it as usize].of;
        let live = matched.iter().copied().filter(|&it| problem.alternatives[it as usize].is_possible);
        let (certain, open): (Vec<u32>, Vec<u32>) =
            live.partition(|&it| problem.matches[of(problem, it) as usize].is_settled);
        let mut matches: Vec<u32> = open.iter().map(|&it| of(problem, it)).collect();
        matches.dedup();
        let wanted = count.checked_sub(certain.len() as u64);
        if wanted.is_none_or(|wanted| wanted > matches.len() as u64) {
            refute(problem, txn, Contradiction::BadRows { op })?;
            changed = true;
        } else if wanted == Some(0) {
            changed |= !open.is_empty();
            for it in open {
                problem.alternatives[it as usize].is_possible = false;
            }
        } else if wanted == Some(matches.len() as u64) {
            for it in matches.into_iter().map(|it| problem.matches[it as usize]) {
                meter.steps((it.end - it.first) as usize * open.len())?;
                for alternative in (it.first..it.end).filter(|it| !open.contains(it)) {
                    changed |=
                        std::mem::replace(&mut problem.alternatives[alternative as usize].is_possible, false);
                }
            }
        }
        problem.counts[index].matched = matched;
    }
    Ok(changed)
}

/// Takes out the matches that are settled, and, once none is left, all versions and reads that are not there.
fn remove_settled(problem: &mut Problem) {
    for count in &mut problem.counts {
        let of = |it: u32| problem.alternatives[it as usize].of as usize;
        let is_settled = |it: u32| problem.matches[of(it)].is_settled;
        count.matched.retain(|&it| problem.alternatives[it as usize].is_possible);
        let certain = count.matched.iter().filter(|&&it| is_settled(it)).count();
        count.count = count.count.saturating_sub(certain as u64);
        count.matched.retain(|&it| !is_settled(it));
    }
    problem.counts.retain(|count| !count.matched.is_empty());
    problem.matches.retain(|it| !it.is_settled);
    for (of, it) in problem.matches.iter().enumerate() {
        for alternative in it.first..it.end {
            problem.alternatives[alternative as usize].of = of as u32;
        }
    }
    if problem.matches.is_empty() {
        let all: Vec<Txn> = (0..problem.len() as Txn).collect();
        let part = problem.part(&all);
        *problem = Problem { forced: std::mem::take(&mut problem.forced), ..part };
    }
}

/// Decides which transactions of unknown outcome are in: those that somebody who is in must have seen.
/// Those that nobody can have seen are out. The rest stay open.
fn settle_unknown(problem: &mut Problem, meter: &Meter<'_>) -> Result<(), Refusal> {
    if problem.standing.iter().all(|&standing| standing == Standing::In) {
        return Ok(());
    }
    drop_out(problem, meter)?;
    // Predicates may want anybody, and have not said so yet.
    let mut wanted = vec![problem.is_on_demand; problem.len()];
    let of = |problem: &Problem, standing| -> Vec<Txn> {
        (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] == standing).collect()
    };
    let mut work = of(problem, Standing::In);
    while let Some(txn) = work.pop() {
        for read in problem.reads_of(txn).to_vec() {
            let must = read.is_known() && problem.standing[txn as usize] == Standing::In;
            let sources: Vec<u32> =
                if read.is_known() { vec![read.source] } else { problem.candidates(&read).collect() };
            meter.steps(1 + sources.len())?;
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
    drop_out(problem, meter)
}

/// Reads of transactions that are out constrain nothing; ambiguous reads may have become known or
/// impossible as candidates dropped out. Repeats until nothing changes.
fn drop_out(problem: &mut Problem, meter: &Meter<'_>) -> Result<(), Refusal> {
    loop {
        let mut changed = false;
        for index in 0..problem.reads.len() {
            meter.step()?;
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
                    return Err(Contradiction::NoSource { op: read.op, key: KeyId(read.key) }.into());
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
