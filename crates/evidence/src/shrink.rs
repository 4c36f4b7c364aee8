//! The core: the smallest set of transactions found that already has no explanation.
//!
//! *What*: starts from the transactions that a contradiction speaks of and takes away whatever can go:
//! larger pieces first, then one by one, each time asking the pipeline whether the part that is left
//! ([`search::restrict`]) is still impossible. What remains is minimal: without any one of it there is an
//! explanation.
//!
//! *Cost*: checks of tiny histories. *Source*: Zeller's delta debugging.

use crate::back::Back;
use crate::crowd;
use crate::explain;
use crate::explain::must_see;
use crate::naming;
use crate::prove::TRIED_MAX;
use crate::shown::Shown;
use history::{History, Id, KeyId, Primitive, Status, TxnId, ValueId};
use isolation::{Anomaly, Argument, Edge, EdgeKind, Evidence, Level, Options, Rule, Stats, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};
use search::Decision;
use search::contents::Contents;
use search::decide;
use search::observe::{observe, observe_unsettled};
use search::problem::{Problem, Txn, adopt};
use search::refusal::{Contradiction, Refusal};
use search::restrict::{Part, restrict_for, restrict_to_reads};
use search::rows;
use search::settle::settle;
use search::weak;

/// What is larger, because the time was up before it was small, is not argued about: nobody would read that.
const ARGUED_MAX: usize = 128;

/// Shrinks a set of transactions without an explanation and says what is wrong with it.
pub(crate) fn evidence(history: &History, level: Level, options: &Options, start: Vec<TxnId>) -> Evidence {
    let Ok(has_rebuilt_lists) = has_rebuilt_lists(history, options) else { return unshown(history, level) };
    let is_whole = rows::has_claims(history) || !level.modules().is_empty() || has_rebuilt_lists;
    if is_whole && (options.mixed || level.rule != Rule::ReadUncommitted) {
        return evidence_about_many(history, level, options, &start);
    }
    if let [alone] = start[..]
        && level.rule == Rule::ReadUncommitted
        && rows::has_claims(history)
        && let Some(argument) = told_of_one(history, alone)
    {
        // What was seen at many keys is judged with the whole only.
        return argued(history, start, argument);
    }
    if let [alone] = start[..]
        && let Err(Refusal::Contradiction(contradiction)) = observe(history, options)
        && matches!(contradiction, Contradiction::Internal { op, .. } if history.owner(op) == alone)
    {
        // A transaction that contradicts its own writes needs nobody else.
        let argument = explain::of_contradiction(history, &contradiction, level, options);
        return argued(history, start, argument);
    }
    let counted = |txns: &[TxnId]| crowd::crowd(history, txns, level, options);
    if start.len() > TRIED_MAX && counted(&start).is_some_and(|it| it.needs_all(history, &start)) {
        let anomaly = naming::lost_update();
        return Evidence::new(anomaly, start, Argument::default());
    }
    let part = shrink(history, level, options, start);
    let is_small = part.txns.len() <= ARGUED_MAX;
    let argument = is_small.then(|| argue_part(history, &part, level, options)).flatten();
    let transactions = part.txns.clone();
    let Some(argument) = argument.filter(|it| *it != Argument::default()) else {
        let anomaly = match counted(&transactions) {
            Some(_) => naming::lost_update(),
            None => unargued(level, transactions.len()),
        };
        return Evidence::new(anomaly, transactions, Argument::default());
    };
    argued(history, transactions, argument)
}

/// Transactions with the argument about them, its name, and why those of unknown outcome took effect.
fn argued(history: &History, mut transactions: Vec<TxnId>, mut argument: Argument) -> Evidence {
    let shown = |argument: &Argument, txn: TxnId| {
        let by = |edge: &&Edge| edge.kind == EdgeKind::Wr && edge.from == Some(txn) && edge.to != txn;
        argument.edges.iter().chain(&argument.support).any(|edge| by(&edge))
    };
    for txn in argument.transactions() {
        if history.transaction(txn).status() == Status::Unknown && !shown(&argument, txn) {
            argument.support.extend(explain::effect(history, txn));
        }
    }
    let anomaly = naming::name(history, &argument);
    transactions.extend(argument.transactions());
    transactions.sort_unstable();
    transactions.dedup();
    Evidence::new(anomaly, transactions, argument)
}

/// An argument of so many steps or more is not shown.
const STEPS_MAX: usize = 4096;

/// An argument as it is shown; `None` if it is too long to follow.
fn readable(argument: Argument) -> Option<Argument> {
    (argument.steps(STEPS_MAX) < STEPS_MAX).then(|| explain::simplified(&argument, &mut Vec::new()))
}

/// What one transaction saw that nobody wrote, at read uncommitted.
fn told_of_one(history: &History, alone: TxnId) -> Option<Argument> {
    explain::unexplained_by(history, alone).or_else(|| {
        let op = weak::from_nowhere(history, alone)?;
        let key = rows::returned(&history.primitive(op)).next()?.0;
        Some(explain::unexplained(history, op, key))
    })
}

/// Argues on a part, in terms of the whole. What contradicts everything by itself is argued with the whole: whoever
/// aborted belongs to no part, and tells where a value came from.
fn argue_part(history: &History, part: &Part, level: Level, options: &Options) -> Option<Argument> {
    let back = Back { part: &part.history, txns: &part.txns, whole: history, ryow: options.ryow };
    let rule = if options.mixed { Rule::ReadCommitted } else { level.rule };
    let observed = match (rule, weak::Asked::of(history, level, options)) {
        (Rule::ReadUncommitted, _) => return explain::unexplained_value(history),
        (_, Some(asked)) => asked.observe(&part.history, options),
        (_, None) => observe(&part.history, options),
    };
    if let Err(Refusal::Contradiction(contradiction)) = observed
        && let Some(contradiction) = back.contradiction(&contradiction)
    {
        let argument = explain::of_contradiction(history, &contradiction, level, options);
        if argument != Argument::default() {
            return Some(argument);
        }
    }
    let argument = must_see::argue(&part.history, level, options)
        .unwrap_or_else(|| explain::argue(&part.history, level, options))?;
    readable(back.argument(&readable(argument)?))
}

/// Where operations are about many keys, or lists do not show their order, a part is no history of its own: it is cut
/// out of the problem.
fn evidence_about_many(history: &History, level: Level, options: &Options, start: &[TxnId]) -> Evidence {
    let is_order = matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation) && !options.mixed;
    let asked = if is_order { None } else { weak::Asked::of(history, level, options) };
    let observed = match &asked {
        Some(asked) => asked.observe(history, options),
        None => observe_unsettled(history, options, start).map(|mut problem| {
            adopt(history, level, &mut problem);
            problem
        }),
    };
    let (mut transactions, argument) = match observed {
        Ok(problem) => {
            let impossible = |part: &Problem| match &asked {
                Some(asked) => asked.is_impossible(history, part, options),
                None => is_impossible(history, part, level, options),
            };
            // An order that needs none of the core to show it is none of the core's.
            let shown = asked.is_none().then(|| Shown::new(&problem));
            let mut part = shrink_problem(&problem, options, start, shown.as_ref(), impossible);
            let lists =
                explain::incompatible_lists(history, options.ryow).filter(|_| part.len() <= ARGUED_MAX);
            let lists = lists.filter(|it| it.transactions().iter().any(|txn| part.txns.contains(txn)));
            let argument = match &asked {
                _ if part.len() > ARGUED_MAX => None,
                _ if lists.is_some() => lists,
                Some(asked) => {
                    // What predicates left waits for conclusions here.
                    let _ = settle(&mut part, &options.budget);
                    must_see::argue_problem(history, &part, asked, options)
                }
                None => argue_order(history, &mut part, level, options),
            };
            (part.txns, argument)
        }
        Err(Refusal::Contradiction(contradiction)) => {
            let argument = explain::of_contradiction(history, &contradiction, level, options);
            let shown = argument.transactions();
            let txns = if shown.is_empty() { start.to_vec() } else { shown };
            (txns, Some(argument))
        }
        Err(Refusal::Unsupported(_)) => (start.to_vec(), None),
        Err(Refusal::Open(_)) => return unshown(history, level),
    };
    let argument = argument.and_then(readable).unwrap_or_default();
    if is_order && falls_apart(history, level, options) {
        transactions = standing(history, level, options, transactions);
    }
    if argument == Argument::default() {
        transactions.sort_unstable();
        transactions.dedup();
        return Evidence::new(unargued(level, transactions.len()), transactions, argument);
    }
    argued(history, transactions, argument)
}

/// Argues on a part of the problem: on conclusions that are reported, where nothing depends on what was found.
fn argue_order(history: &History, part: &mut Problem, level: Level, options: &Options) -> Option<Argument> {
    if part.matches.is_empty()
        && let Some(argument) = explain::argue_problem(history, part, level, options)
    {
        return Some(argument);
    }
    match settle(part, &options.budget) {
        Ok(()) => explain::argue_problem(history, part, level, options),
        Err(Refusal::Contradiction(contradiction)) => {
            Some(explain::of_contradiction(history, &contradiction, level, options))
        }
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => None,
    }
}

/// Whether all that was seen is what reads of single keys would have seen, and a part says it of some transactions alone: no
/// module, no predicate, and no list that more than its appends speak of.
fn falls_apart(history: &History, level: Level, options: &Options) -> bool {
    let mut operations = history.transactions().flat_map(|it| it.primitives());
    level.modules().is_empty()
        && !operations.any(|(_, it)| rows::predicate_of(&it).is_some() || matches!(it, Primitive::WriteIf(_)))
        && has_rebuilt_lists(history, options) == Ok(false)
}

fn has_rebuilt_lists(history: &History, options: &Options) -> Result<bool, Undecided> {
    Ok(Contents::of(history, options.ryow, &options.budget)?.has_rebuilt_lists())
}

/// What is said of a violation when the budget ended before some transactions were found to blame.
fn unshown(history: &History, level: Level) -> Evidence {
    let transactions = effective(history);
    let anomaly = unargued(level, transactions.len());
    Evidence::new(anomaly, transactions, Argument::default())
}

/// A core that stands by itself, with everything that it rests on: what made a contradiction of it was learnt from the
/// whole. Who appended the other elements of a list, or saw that somebody of unknown outcome took effect, may be missing;
/// then it grows until it has no explanation without the others, and is shrunk again.
fn standing(history: &History, level: Level, options: &Options, core: Vec<TxnId>) -> Vec<TxnId> {
    let cut = |history: &History, keep: &[TxnId]| restrict_to_reads(history, keep, options.ryow);
    if impossible(&cut(history, &core).history, level, options) {
        return core;
    }
    let part = shrink_by(history, level, options, &core, cut);
    match decide(&part.history, level, options, &mut Stats::default()) {
        Decision::Impossible(_) => part.txns,
        // Of the whole it is known.
        Decision::Open(_) => effective(history),
        Decision::Possible(_) | Decision::NotHere(_) => core,
    }
}

/// Everybody who can have taken effect.
fn effective(history: &History) -> Vec<TxnId> {
    history.transactions().filter(|it| it.status() != Status::Aborted).map(|it| it.id()).collect()
}

/// What is called that has no argument: what the level forbids, or, where that is about many transactions, all that is
/// known of them.
fn unargued(level: Level, transactions: usize) -> Anomaly {
    if transactions > ARGUED_MAX {
        return Anomaly { name: "no-order".to_owned(), common: Some("no order explains these transactions") };
    }
    let name = level.row().map_or("violation", |row| row.anomaly);
    Anomaly { name: name.to_owned(), common: None }
}

/// Whether a part of a problem, from which no conclusions were drawn, has no explanation.
fn is_impossible(history: &History, part: &Problem, level: Level, options: &Options) -> bool {
    let mut part = part.clone();
    match settle(&mut part, &options.budget) {
        Err(Refusal::Contradiction(_)) => true,
        Err(Refusal::Unsupported(_) | Refusal::Open(_)) => false,
        Ok(()) => matches!(
            search::decide_problem(history, &part, level, options, &mut Stats::default()),
            Decision::Impossible(_)
        ),
    }
}

/// The smallest part of a problem found that has no explanation; no conclusions were drawn from either.
fn shrink_problem(
    problem: &Problem,
    options: &Options,
    start: &[TxnId],
    shown: Option<&Shown<'_>>,
    impossible: impl Fn(&Problem) -> bool,
) -> Problem {
    let cut = |from: &Problem, keep: &[Txn]| match shown {
        Some(shown) => shown.part(from, keep),
        None => from.part(keep),
    };
    let mut settled = problem.clone();
    // What told of something on the way to a contradiction is what counts here.
    let _ = settle(&mut settled, &options.budget);
    let mut keep: Vec<Txn> = start.iter().filter_map(|&txn| problem.find(txn)).collect();
    keep = settled.with_tellers(&keep);
    keep = shown.map_or(keep.clone(), |shown| shown.with_tellers(&keep));
    let mut part = cut(problem, &keep);
    while !impossible(&part) {
        let is_over = options.budget.exhausted().is_some();
        let larger = settled.with_tellers(&problem.with_writers(&keep));
        // A part of which it is not known is not blamed.
        let is_larger = larger.len() > keep.len() && !is_over;
        keep = if is_larger { larger } else { (0..problem.len() as Txn).collect() };
        part = cut(problem, &keep);
        if part.len() == problem.len() || is_over {
            break;
        }
    }
    let mut piece = part.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < part.len() && part.len() > 1 {
            let others: Vec<Txn> = (0..part.len() as Txn)
                .filter(|&txn| !(from..from + piece).contains(&(txn as usize)))
                .collect();
            let smaller = cut(&part, &others);
            if !smaller.is_empty() && impossible(&smaller) {
                part = smaller;
            } else {
                from += piece;
            }
            if options.budget.exhausted().is_some() {
                return part;
            }
        }
        if piece <= 1 {
            return part;
        }
        piece = piece.div_ceil(2);
    }
}

/// Up to here a core that does not stand by itself is looked for in the whole history.
const SEARCHED_WHOLE_MAX: usize = 4096;

/// A set of transactions together with those that can have caused what they saw: whoever wrote a value or an element
/// that one of them returned, and for lists the longest one read, which shows the order of all others; and for each of
/// unknown outcome somebody who saw something of it. `None` if there is nobody to add.
fn grown(history: &History, txns: &[TxnId]) -> Option<Vec<TxnId>> {
    let mut returned: FxHashSet<(KeyId, ValueId)> = FxHashSet::default();
    let mut listed: FxHashMap<KeyId, (usize, Option<TxnId>)> = FxHashMap::default();
    let mut doubted: FxHashMap<(KeyId, ValueId), TxnId> = FxHashMap::default();
    for &txn in txns {
        let is_unknown = history.transaction(txn).status() == Status::Unknown;
        for (_, operation) in history.transaction(txn).primitives() {
            for (key, value) in rows::returned(&operation) {
                returned.insert((key, value));
                returned.extend(history.values_of(value).iter().map(|&element| (key, element)));
                listed.entry(key).or_default();
            }
            if let Primitive::Append { key, .. } = operation {
                listed.entry(key).or_default();
            }
            if let Primitive::Append { key, value } | Primitive::Write { key, value } = operation
                && is_unknown
            {
                doubted.insert((key, value), txn);
            }
        }
    }
    let mut larger = txns.to_vec();
    let mut tellers: FxHashMap<TxnId, (bool, TxnId)> = FxHashMap::default();
    for transaction in history.transactions().filter(|it| it.status() != Status::Aborted) {
        let mut is_writer = false;
        for (_, operation) in transaction.primitives() {
            match operation {
                Primitive::Write { key, value } | Primitive::Append { key, value } => {
                    is_writer |= returned.contains(&(key, value));
                }
                _ => {}
            }
            for (key, value) in rows::returned(&operation) {
                let elements = history.values_of(value);
                if let Some(longest) = listed.get_mut(&key)
                    && elements.len() > longest.0
                {
                    *longest = (elements.len(), Some(transaction.id()));
                }
                if doubted.is_empty() {
                    continue;
                }
                for seen in elements.iter().copied().chain([value]) {
                    let Some(&of) = doubted.get(&(key, seen)).filter(|&&of| of != transaction.id()) else {
                        continue;
                    };
                    let teller = (transaction.status() == Status::Unknown, transaction.id());
                    tellers.entry(of).and_modify(|best| *best = (*best).min(teller)).or_insert(teller);
                }
            }
        }
        if is_writer {
            larger.push(transaction.id());
        }
    }
    larger.extend(listed.into_values().filter_map(|(_, reader)| reader));
    larger.extend(tellers.into_values().map(|(_, teller)| teller));
    larger.sort_unstable();
    larger.dedup();
    if larger.len() > txns.len() {
        return Some(larger);
    }
    let all = effective(history);
    (all.len() > larger.len() && all.len() <= SEARCHED_WHOLE_MAX).then_some(all)
}

fn impossible(history: &History, level: Level, options: &Options) -> bool {
    matches!(decide(history, level, options, &mut Stats::default()), Decision::Impossible(_))
}

fn shrink(whole: &History, level: Level, options: &Options, start: Vec<TxnId>) -> Part {
    shrink_by(whole, level, options, &start, |history, keep| restrict_for(history, keep, level))
}

fn shrink_by(
    whole: &History,
    level: Level,
    options: &Options,
    start: &[TxnId],
    cut: impl Fn(&History, &[TxnId]) -> Part,
) -> Part {
    // The first part is cut from the whole; all further ones are cut from it.
    let mut part = cut(whole, start);
    while !impossible(&part.history, level, options) {
        // The part says less than the proof needed: whoever else its results speak of is missing.
        if options.budget.exhausted().is_some() {
            return cut(whole, &effective(whole));
        }
        let Some(larger) = grown(whole, &part.txns) else { return part };
        part = cut(whole, &larger);
    }
    let mut piece = part.txns.len().div_ceil(2);
    loop {
        let mut from = 0;
        while from < part.txns.len() && part.txns.len() > 1 {
            let len = part.history.len();
            let keep: Vec<TxnId> = (part.history.transactions().map(|it| it.id()))
                .filter(|txn| !(from..from + piece).contains(&txn.index()))
                .collect();
            let smaller = cut(&part.history, &keep);
            if !keep.is_empty() && impossible(&smaller.history, level, options) {
                part.txns = smaller.txns.iter().map(|&txn| part.txns[txn.index()]).collect();
                part.history = smaller.history;
                debug_assert!(part.history.len() < len);
            } else {
                from += piece;
            }
            if options.budget.exhausted().is_some() {
                return part;
            }
        }
        if piece == 1 {
            return part;
        }
        piece = piece.div_ceil(2);
    }
}
