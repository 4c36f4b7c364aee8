//! Transactions that have no place in the order of timestamps: those whose outcome the client never learnt, and those
//! whose timestamps contradict themselves. Each took effect at some moment, or never; this file looks for moments that
//! explain everything.
//!
//! **What.** The order of all other transactions is fixed. A *floating* transaction may commit anywhere from its start, or
//! from the beginning if it has none, to its reported end, or any time later if it has none; or not at all. If it
//! took effect its own results count, and it follows what its session committed and what had ended before it
//! began, as at [`oracle`](mod@oracle). At an instant that it shares with others it may stand anywhere among them.
//!
//! **Steps.**
//! 1. Without any of them: if that explains everything, nobody took effect. (The caller does that.)
//! 2. The keys where it does not and that some floating transaction may write, with all keys of the floating transactions
//!    around them: what is left of the history is the operations on those keys ([`Around`]).
//! 3. The search by results decides, with the order of the others as known edges ([`Search`]): it is exact.
//!    Where it does not know a result of a floating transaction (a list longer than any other), such results do not count
//!    there, and the replay has to confirm them.
//! 4. If no moments explain everything: the first transaction, by commit, up to which none do is to blame. It is
//!    left out, and the search goes on for the rest, so that the others are judged as if it were not there.
//!
//! **Cost.** Nothing where step 1 accepts. Else that of a check by results on those keys, once more for each halving that
//! step 4 needs.

use super::order::Order;
use super::replay::Replay;
use super::sessions::times;
use super::{Axiom, Finding};
use history::{BuildError, Builder, Copier, History, Id, KeyId, OpId, Status, Timestamp, TxnId};
use isolation::{Level, Options, Rule, Undecided};
use rustc_hash::{FxHashMap, FxHashSet};
use search::constrain::{Known, Nodes};
use search::observe;
use search::pigeonhole;
use search::problem::{Problem, Repeats, Standing, Txn};
use search::refine::{Questions, Refined};
use search::refusal::Refusal;
use search::schedule::Readers;
use solver::{Graph, Node};
use std::collections::VecDeque;

/// So many transactions are blamed one by one; after that the rest is judged by the moments found so far.
const BLAMED_MAX: usize = 16;

/// A moment of the order that is fixed.
#[derive(Clone, Copy, Debug)]
struct Moment {
    at: Timestamp,
    kind: Kind,
    rank: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A transaction looks.
    Begin,
    /// One that starts and commits at once looks, right before it commits.
    BeginAtOnce,
    Commit,
}

/// A floating transaction that took effect: after so many moments of the fixed order it looks, and commits.
#[derive(Clone, Copy, Debug)]
struct Placed {
    txn: TxnId,
    /// The number of moments before, and the place among those that are equal in that.
    begin: (u32, u32),
    commit: (u32, u32),
}

/// Floating transactions that may have written.
pub(super) struct Floating {
    all: Vec<TxnId>,
    by_key: FxHashMap<KeyId, Vec<u32>>,
    /// Whether some of them write by predicate, so that they may have written anything.
    anywhere: bool,
}

impl Floating {
    /// Those of a history; `None` if there are none.
    pub(super) fn new(history: &History, backwards: &[TxnId]) -> Option<Self> {
        let unknown = history.transactions().filter(|txn| txn.status() == Status::Unknown);
        let mut all: Vec<TxnId> = unknown.map(|txn| txn.id()).collect();
        all.extend_from_slice(backwards);
        all.retain(|&txn| !super::order::is_read_only(history, txn));
        if all.is_empty() {
            return None;
        }
        all.sort_unstable();
        let mut floating = Self { all, by_key: FxHashMap::default(), anywhere: false };
        for (place, &txn) in floating.all.iter().enumerate() {
            for (_, operation) in history.transaction(txn).primitives() {
                let Some(key) = operation.key() else {
                    floating.anywhere |= !operation.is_read();
                    continue;
                };
                let touching = floating.by_key.entry(key).or_default();
                if touching.last() != Some(&(place as u32)) {
                    touching.push(place as u32);
                }
            }
        }
        Some(floating)
    }

    /// Whether one of them may have written what a finding is about: the version that a result shows, or the version on
    /// which it depends whether a transaction wrote at all.
    fn may_explain(&self, history: &History, finding: &Finding) -> bool {
        let perhaps_wrote = |txn: TxnId, key: KeyId| {
            let mut does = history.transaction(txn).primitives();
            does.any(|(_, operation)| operation.may_have_written(key) && !operation.certainly_wrote(key))
        };
        let is_explicable = match (finding.axiom, finding.key) {
            (Axiom::External, _) => true,
            (Axiom::Internal | Axiom::NoConflict, Some(key)) => {
                [Some(finding.txn), finding.other].into_iter().flatten().any(|txn| perhaps_wrote(txn, key))
            }
            _ => false,
        };
        if !is_explicable {
            return false;
        }
        let writes = |txn: TxnId, key: KeyId| {
            history.transaction(txn).primitives().any(|(_, operation)| operation.may_have_written(key))
        };
        match finding.key {
            _ if self.anywhere => true,
            // How many keys a predicate write changed.
            None => true,
            Some(key) => {
                let touching = self.by_key.get(&key).into_iter().flatten();
                touching.copied().any(|place| writes(self.all[place as usize], key))
            }
        }
    }
}

/// What came of it.
pub(super) struct Outcome {
    /// The order with floating transactions in their places.
    pub(super) order: Order,
    /// Those that took effect.
    pub(super) took_effect: Vec<TxnId>,
    /// Why it could not be decided, if so.
    pub(super) gave_up: Option<Undecided>,
    /// Why it is not decided unless a replay of this order finds nothing.
    pub(super) unsure: Option<Undecided>,
    /// No moments explain everything: a replay of this order finds something.
    pub(super) is_violated: bool,
    /// Up to whom none do, one after the other.
    pub(super) blamed: Vec<TxnId>,
}

/// What some results are asked about.
pub(super) struct Asked<'a> {
    pub(super) history: &'a History,
    pub(super) level: Level,
    pub(super) options: &'a Options,
    /// Which wrong results are to be explained; transactions with other ones do not count.
    pub(super) is_held: &'a dyn Fn(&Finding) -> bool,
    /// Whose results do not count.
    pub(super) blind: &'a [TxnId],
    /// Nothing has been left out of the history. Otherwise results of floating transactions do not count: they may be of what
    /// was left out.
    pub(super) is_whole: bool,
}

/// What came of it.
pub(super) struct Decided {
    /// What no moments explain.
    pub(super) findings: Vec<Finding>,
    /// How many floating transactions took effect.
    pub(super) took_effect: usize,
}

/// Decides whether some moments explain results that are wrong without any floating transaction; `None` if there is none.
pub(super) fn decide(asked: &Asked<'_>) -> Result<Option<Decided>, Undecided> {
    let &Asked { history, level, options, is_held, blind, is_whole } = asked;
    let serial = level.rule == Rule::Serializable;
    let order = Order::new(history, serial);
    let Some(floating) = Floating::new(history, &order.backwards) else { return Ok(None) };
    let (mut held, mut blind) = (Vec::new(), blind.iter().copied().collect::<FxHashSet<TxnId>>());
    let play = |order: &Order, found: &mut dyn FnMut(Finding)| {
        Replay::new(history, options, serial, !serial, found).by_commit(order)
    };
    play(&order, &mut |finding| match is_held(&finding) {
        true => held.push(finding),
        false => drop(blind.insert(finding.txn)),
    })?;
    held.retain(|finding| !blind.contains(&finding.txn));
    if held.is_empty() {
        return Ok(Some(Decided { findings: held, took_effect: 0 }));
    }
    let Some(outcome) = explain_but(history, level, options, &order, &floating, &held, &blind, is_whole)
    else {
        return Ok(Some(Decided { findings: held, took_effect: 0 }));
    };
    if let Some(why) = outcome.gave_up {
        return Err(why);
    }
    let mut findings = Vec::new();
    play(&outcome.order, &mut |finding| findings.push(finding))?;
    findings.retain(|finding| !blind.contains(&finding.txn));
    // Of those whose results did not count in the search it turns out now.
    let is_left = |finding: &Finding| finding.axiom != Axiom::External && is_held(finding);
    match (outcome.is_violated, outcome.unsure) {
        (false, Some(why)) if is_whole && !findings.is_empty() => return Err(why),
        (false, _) if is_whole => {}
        (false, _) => findings.retain(is_left),
        (true, _) => {
            let is_blamed = |finding: &Finding| outcome.blamed.contains(&finding.txn) || is_left(finding);
            if findings.iter().any(is_blamed) {
                findings.retain(is_blamed);
            } else {
                // Those that are blamed are right in this order: others are not.
                findings.truncate(1);
            }
        }
    }
    if outcome.is_violated && findings.is_empty() {
        findings.extend(held.into_iter().next());
    }
    Ok(Some(Decided { findings, took_effect: outcome.took_effect.len() }))
}

/// Looks for moments that explain what `findings` say; those are all findings without any floating transaction. `None`: no
/// floating transaction has to do with any of them.
pub(super) fn explain(
    history: &History,
    level: Level,
    options: &Options,
    order: &Order,
    floating: &Floating,
    findings: &[Finding],
) -> Option<Outcome> {
    explain_but(history, level, options, order, floating, findings, &FxHashSet::default(), true)
}

/// As [`explain`], where results of some do not count; see [`Asked`].
#[expect(clippy::too_many_arguments, reason = "all of them are one question")]
fn explain_but(
    history: &History,
    level: Level,
    options: &Options,
    order: &Order,
    floating: &Floating,
    findings: &[Finding],
    blind: &FxHashSet<TxnId>,
    is_whole: bool,
) -> Option<Outcome> {
    if !findings.iter().any(|finding| floating.may_explain(history, finding)) {
        return None;
    }
    let around = Around::new(history, floating, findings);
    let mut search = Search::new(history, level, options, order, floating, around);
    // What contradicts itself, or others whose place is fixed, has no say.
    for finding in findings.iter().filter(|finding| !floating.may_explain(history, finding)) {
        search.leave_out(finding.txn);
    }
    blind.iter().for_each(|&txn| search.leave_out(txn));
    if !is_whole {
        search.unsure = Some(Undecided::Unsupported("what came before is not kept any more".to_owned()));
    }
    let mut all_blamed = Vec::new();
    let ranks = order.by_rank.len();
    let mut placed = Vec::new();
    let (mut gave_up, mut unsure) = (None, None);
    let mut is_violated = false;
    for blamed in 0..=BLAMED_MAX {
        is_violated = blamed > 0;
        match search.run(ranks) {
            Found::Placed(found) => {
                placed = found;
                unsure = search.unsure.clone().filter(|_| blamed == 0);
                break;
            }
            Found::GaveUp(why) => {
                // Only if nothing is known to be wrong.
                gave_up = (blamed == 0).then_some(why);
                break;
            }
            Found::Nothing => {}
        }
        // The first rank up to which nothing explains all: halving between what is explained and what is not.
        let (mut good, mut bad) = (0, ranks);
        while good + 1 < bad {
            let middle = good + (bad - good) / 2;
            match search.run(middle) {
                Found::Placed(found) => (good, placed) = (middle, found),
                Found::Nothing => bad = middle,
                Found::GaveUp(_) => break,
            }
        }
        search.leave_out(order.by_rank[bad - 1]);
        all_blamed.push(order.by_rank[bad - 1]);
        if options.budget.exhausted().is_some() {
            break;
        }
    }
    let took_effect = placed.iter().map(|placed| placed.txn).collect();
    let order = search.merged(&placed);
    Some(Outcome { order, took_effect, gave_up, unsure, is_violated, blamed: all_blamed })
}

/// The keys that a search is about.
struct Around {
    /// By key; `None`: all.
    keys: Option<Vec<bool>>,
    /// By place in [`Floating::all`].
    floating: Vec<bool>,
}

impl Around {
    fn new(history: &History, floating: &Floating, findings: &[Finding]) -> Self {
        let count = floating.all.len();
        if floating.anywhere || history.transactions().any(|txn| has_many(history, txn)) {
            return Self { keys: None, floating: vec![true; count] };
        }
        let mut keys = vec![false; history.keys().len()];
        let mut taken = vec![false; count];
        let explicable = findings.iter().filter(|finding| floating.may_explain(history, finding));
        let mut queue: Vec<KeyId> = explicable.filter_map(|finding| finding.key).collect();
        while let Some(key) = queue.pop() {
            if std::mem::replace(&mut keys[key.index()], true) {
                continue;
            }
            for &place in floating.by_key.get(&key).into_iter().flatten() {
                if !std::mem::replace(&mut taken[place as usize], true) {
                    let txn = history.transaction(floating.all[place as usize]);
                    queue.extend(txn.primitives().filter_map(|(_, operation)| operation.key()));
                }
            }
        }
        Self { keys: Some(keys), floating: taken }
    }
}

fn has_many(history: &History, txn: history::Transaction<'_>) -> bool {
    txn.status() != Status::Aborted && txn.op_ids().any(|op| history.point(op).is_none())
}

enum Found {
    /// These moments explain all.
    Placed(Vec<Placed>),
    /// None do.
    Nothing,
    GaveUp(Undecided),
}

struct Search<'h> {
    history: &'h History,
    level: Level,
    options: &'h Options,
    order: &'h Order,
    nodes: Nodes,
    around: Around,
    floating: &'h Floating,
    /// The order that is fixed.
    moments: Vec<Moment>,
    /// The last commit that a floating transaction has to see, where session order or real time count.
    sees: FxHashMap<TxnId, u32>,
    left_out: FxHashSet<TxnId>,
    /// Why the results of floating transactions do not count: there are some that the search does not know.
    unsure: Option<Undecided>,
}

impl<'h> Search<'h> {
    fn new(
        history: &'h History,
        level: Level,
        options: &'h Options,
        order: &'h Order,
        floating: &'h Floating,
        around: Around,
    ) -> Self {
        let nodes = Nodes::of(level);
        let moments = moments(history, order, nodes.points == 2);
        let left_out = FxHashSet::default();
        let unsure = None;
        let sees = last_commits_seen(history, level, options, order, floating, &moments);
        let mut search =
            Self { history, level, options, order, nodes, around, floating, moments, sees, left_out, unsure };
        // One that has no place at all never took effect.
        let places: Vec<bool> = floating.all.iter().map(|&txn| search.has_a_place(txn)).collect();
        search.around.floating.iter_mut().zip(places).for_each(|(taken, has)| *taken &= has);
        search
    }

    /// Whether the bounds of a floating transaction leave it any place.
    fn has_a_place(&self, txn: TxnId) -> bool {
        let Bounds { begin_after, begin_before, commit_after, commit_before } = self.bounds(txn);
        let between = |from: u32, to: u32| &self.moments[from as usize..to.max(from) as usize];
        let has_commit =
            |from: u32, to: u32| between(from, to).iter().any(|moment| moment.kind == Kind::Commit);
        between(commit_before, commit_after).is_empty()
            && !has_commit(commit_before, begin_after)
            && !has_commit(begin_before, begin_after)
    }

    fn leave_out(&mut self, txn: TxnId) {
        self.left_out.insert(txn);
    }

    /// Moments that explain the transactions of the first ranks.
    fn run(&mut self, ranks: usize) -> Found {
        match self.search(ranks) {
            Found::GaveUp(Undecided::Unsupported(why)) if self.unsure.is_none() => {
                self.unsure = Some(Undecided::Unsupported(why));
                self.search(ranks)
            }
            found => found,
        }
    }

    fn search(&self, ranks: usize) -> Found {
        let (part, txns) = match self.part(ranks) {
            Ok(part) => part,
            Err(error) => return Found::GaveUp(Undecided::Unsupported(error.to_string())),
        };
        let blind: Vec<bool> = txns.iter().map(|txn| self.is_blind(*txn)).collect();
        let observed = observe::observe_with(&part, self.options, Repeats::OneVersion, &blind);
        let problem = match observed {
            Ok(problem) => problem,
            Err(Refusal::Contradiction(_)) => return Found::Nothing,
            Err(Refusal::Unsupported(what)) => return Found::GaveUp(Undecided::Unsupported(what)),
            Err(Refusal::Open(why)) => return Found::GaveUp(why),
        };
        match pigeonhole::find(&problem, &self.options.budget) {
            Ok(None) => {}
            Ok(Some(_)) => return Found::Nothing,
            Err(why) => return Found::GaveUp(why),
        }
        let number: FxHashMap<TxnId, Txn> = (txns.iter().enumerate())
            .filter_map(|(place, &txn)| problem.find(TxnId::new(place)).map(|number| (txn, number)))
            .collect();
        let level = Level { session: false, realtime: false, ..self.level };
        let mut known = Known::new(&part, &problem, level, 0);
        known.fixed = self.fixed(&number, &problem, ranks);
        let Some(position) = sorted(&known.graph(&problem)) else { return Found::Nothing };
        let readers = Readers::new(&problem);
        let keys: Vec<u32> = (0..problem.keys() as u32).collect();
        let budget = &self.options.budget;
        let mut questions = Questions::nothing(&problem, &known, &position, budget);
        match questions.refine(&problem, &known, &readers, &keys, budget) {
            Refined::Explained { position, effective } => {
                Found::Placed(self.places(&problem, &number, &position, &effective))
            }
            Refined::Impossible(_) => Found::Nothing,
            Refined::GaveUp(why) => Found::GaveUp(why),
        }
    }

    /// Results that do not count: those of transactions that are reported already.
    fn is_blind(&self, txn: TxnId) -> bool {
        let is_left_out =
            |txn| self.left_out.contains(txn) || self.order.backwards.binary_search(txn).is_ok();
        is_left_out(&txn) || self.unsure.is_some() && self.floating.all.binary_search(&txn).is_ok()
    }

    /// What is left of the history, and for each of its transactions the one that it was.
    fn part(&self, ranks: usize) -> Result<(History, Vec<TxnId>), BuildError> {
        let mut is_in = vec![false; self.history.len()];
        self.order.by_rank[..ranks].iter().for_each(|txn| is_in[txn.index()] = true);
        for (place, txn) in self.floating.all.iter().enumerate() {
            is_in[txn.index()] = self.around.floating[place];
        }
        let keeps_key = |key: KeyId| self.around.keys.as_ref().is_none_or(|keys| keys[key.index()]);
        let keeps = |op: OpId| self.history.primitive(op).key().is_none_or(keeps_key);
        let mut builder = Builder::new();
        let mut copier = Copier::new(self.history);
        copier.header(&mut builder, keeps_key);
        let mut txns = Vec::new();
        for txn in self.history.transactions() {
            let takes_part = is_in[txn.id().index()] || txn.status() == Status::Aborted;
            if !takes_part || !txn.op_ids().any(keeps) {
                continue;
            }
            let is_backwards = self.order.backwards.binary_search(&txn.id()).is_ok();
            let status = if is_backwards { Status::Unknown } else { txn.status() };
            copier.operations(txn.id(), status, &mut builder, keeps)?;
            txns.push(txn.id());
        }
        Ok((builder.finish()?, txns))
    }

    /// The order that is fixed, as edges, and between what each floating transaction has to fall.
    fn fixed(&self, number: &FxHashMap<TxnId, Txn>, problem: &Problem, ranks: usize) -> Vec<(Node, Node)> {
        let mut edges = Vec::new();
        // The nodes of the moments, in their order, by the number of the moment.
        let mut chain: Vec<(u32, Node)> = Vec::new();
        let mut commits: Vec<(u32, Node)> = Vec::new();
        for (place, moment) in self.moments.iter().enumerate() {
            let txn = self.order.by_rank[moment.rank as usize];
            let Some(&txn_number) = number.get(&txn).filter(|_| (moment.rank as usize) < ranks) else {
                continue;
            };
            if problem.standing[txn_number as usize] == Standing::Out {
                continue;
            }
            match moment.kind {
                Kind::Commit => {
                    chain.push((place as u32, self.nodes.commit(txn_number)));
                    commits.push((place as u32, self.nodes.commit(txn_number)));
                }
                // What is left out may have looked at any time.
                _ if self.left_out.contains(&txn) => {}
                _ => chain.push((place as u32, self.nodes.begin(txn_number))),
            }
        }
        edges.extend(chain.windows(2).map(|pair| (pair[0].1, pair[1].1)));
        let floating = self.floating.all.iter().zip(&self.around.floating).filter(|(_, taken)| **taken);
        for (&txn, _) in floating {
            let Some(&own) = number.get(&txn) else { continue };
            let (begin, commit) = (self.nodes.begin(own), self.nodes.commit(own));
            let bounds = self.bounds(txn);
            let before = |nodes: &[(u32, Node)], place: u32| {
                nodes.partition_point(|(at, _)| *at < place).checked_sub(1).map(|last| nodes[last].1)
            };
            let after = |nodes: &[(u32, Node)], place: u32| {
                nodes.get(nodes.partition_point(|(at, _)| *at < place)).map(|(_, node)| *node)
            };
            edges.extend(before(&chain, bounds.commit_after).map(|node| (node, commit)));
            edges.extend(after(&chain, bounds.commit_before).map(|node| (commit, node)));
            edges.extend(before(&commits, bounds.begin_after).map(|node| (node, begin)));
            edges.extend(after(&commits, bounds.begin_before).map(|node| (begin, node)));
        }
        edges
    }

    /// Between what moments a floating transaction looks and commits.
    fn bounds(&self, txn: TxnId) -> Bounds {
        let all = self.moments.len() as u32;
        let mut bounds = Bounds { begin_after: 0, begin_before: all, commit_after: 0, commit_before: all };
        let it = self.history.transaction(txn);
        let is_backwards = it.is_committed();
        if let Some((start, end)) = it.db().filter(|_| !is_backwards) {
            let place = |is_before: &dyn Fn(&Moment) -> bool| self.moments.partition_point(is_before) as u32;
            bounds.commit_after = place(&|moment| moment.at < start);
            if self.nodes.points == 2 {
                bounds.begin_after = bounds.commit_after;
                bounds.begin_before = place(&|moment| moment.at <= start);
            }
            if end >= start {
                bounds.commit_before =
                    place(&|moment| moment.at < end || moment.at == end && moment.kind != Kind::Begin);
            }
        }
        if let Some(&place) = self.sees.get(&txn).filter(|_| !is_backwards) {
            bounds.begin_after = bounds.begin_after.max(place + 1);
        }
        bounds.commit_after = bounds.commit_after.max(bounds.begin_after);
        bounds
    }

    /// Where those that took effect stand among the moments.
    fn places(
        &self,
        problem: &Problem,
        number: &FxHashMap<TxnId, Txn>,
        position: &[u32],
        effective: &[Txn],
    ) -> Vec<Placed> {
        let mut by_position: Vec<(u32, u32)> = Vec::new();
        for (place, moment) in self.moments.iter().enumerate() {
            let txn = self.order.by_rank[moment.rank as usize];
            let Some(&own) = number.get(&txn).filter(|_| !self.left_out.contains(&txn)) else { continue };
            let node =
                if moment.kind == Kind::Commit { self.nodes.commit(own) } else { self.nodes.begin(own) };
            by_position.push((position[node as usize], place as u32 + 1));
        }
        by_position.sort_unstable();
        let place = |node: Node| {
            let at = position[node as usize];
            let before = by_position.partition_point(|&(other, _)| other < at);
            (before.checked_sub(1).map_or(0, |last| by_position[last].1), at)
        };
        let taken = self.floating.all.iter().filter_map(|&txn| {
            let &own = number.get(&txn)?;
            let took_effect = match problem.standing[own as usize] {
                Standing::In => true,
                Standing::Maybe => effective.binary_search(&own).is_ok(),
                Standing::Out => false,
            };
            if !took_effect {
                return None;
            }
            let (begin, commit) = (self.nodes.begin(own), self.nodes.commit(own));
            // Among moments that the search did not know its timestamps decide.
            let Bounds { begin_after, begin_before, commit_after, commit_before } = self.bounds(txn);
            let within = |(before, order): (u32, u32), from: u32, to: u32| (before.max(from).min(to), order);
            let commit = within(place(commit), commit_after, commit_before);
            let begin = within(place(begin), begin_after, begin_before).min(commit);
            Some(Placed { txn, begin, commit })
        });
        taken.collect()
    }

    /// The order of all, with those that float in their places.
    fn merged(&self, placed: &[Placed]) -> Order {
        let is_serial = self.nodes.points == 1;
        let mut events: Vec<((u32, u32), bool, u32)> = Vec::with_capacity(2 * placed.len());
        for (number, it) in placed.iter().enumerate() {
            events.push((it.begin, false, number as u32));
            events.push((it.commit, true, number as u32));
        }
        events.sort_unstable();
        let mut events = events.into_iter().peekable();
        let count = self.order.by_rank.len() + placed.len();
        let (mut by_rank, mut snapshot) = (Vec::with_capacity(count), vec![0; count]);
        let mut seen_by: FxHashMap<TxnId, u32> = FxHashMap::default();
        for place in 0..=self.moments.len() as u32 {
            while let Some((_, is_commit, number)) = events.next_if(|((before, _), ..)| *before == place) {
                let txn = placed[number as usize].txn;
                if is_commit {
                    by_rank.push(txn);
                } else {
                    seen_by.insert(txn, by_rank.len() as u32);
                }
            }
            let Some(moment) = self.moments.get(place as usize) else { continue };
            let txn = self.order.by_rank[moment.rank as usize];
            if moment.kind == Kind::Commit {
                by_rank.push(txn);
            } else {
                seen_by.insert(txn, by_rank.len() as u32);
            }
        }
        for (rank, txn) in by_rank.iter().enumerate() {
            let sees = seen_by.get(txn).filter(|_| !is_serial);
            snapshot[rank] = sees.copied().unwrap_or(rank as u32);
        }
        Order::of(by_rank, snapshot)
    }
}

/// See [`Search::bounds`]: numbers of moments.
struct Bounds {
    begin_after: u32,
    begin_before: u32,
    commit_after: u32,
    commit_before: u32,
}

/// The moments of the order that is fixed: looks, where they are apart from commits, and commits.
fn moments(history: &History, order: &Order, looks: bool) -> Vec<Moment> {
    let of = |rank: u32| {
        let txn = history.transaction(order.by_rank[rank as usize]);
        times(txn).expect("only transactions with timestamps have a rank")
    };
    let ranks = order.by_rank.len() as u32;
    let mut starts: Vec<u32> =
        if looks { (0..ranks).filter(|&rank| of(rank).0 < of(rank).1).collect() } else { vec![] };
    starts.sort_by_key(|&rank| (order.snapshot[rank as usize], of(rank).0, rank));
    let mut starts = starts.into_iter().peekable();
    let mut moments = Vec::with_capacity(2 * ranks as usize);
    for rank in 0..ranks {
        let (start, commit) = of(rank);
        while let Some(other) = starts.next_if(|&other| order.snapshot[other as usize] == rank) {
            moments.push(Moment { at: of(other).0, kind: Kind::Begin, rank: other });
        }
        if looks && start >= commit {
            moments.push(Moment { at: commit, kind: Kind::BeginAtOnce, rank });
        }
        moments.push(Moment { at: commit, kind: Kind::Commit, rank });
    }
    moments
}

/// See [`Search::sees`].
fn last_commits_seen(
    history: &History,
    level: Level,
    options: &Options,
    order: &Order,
    floating: &Floating,
    moments: &[Moment],
) -> FxHashMap<TxnId, u32> {
    let mut sees: FxHashMap<TxnId, u32> = FxHashMap::default();
    if !level.session && !level.realtime {
        return sees;
    }
    let mut commit_of: Vec<Option<u32>> = vec![None; history.len()];
    for (place, moment) in moments.iter().enumerate().filter(|(_, moment)| moment.kind == Kind::Commit) {
        commit_of[order.by_rank[moment.rank as usize].index()] = Some(place as u32);
    }
    let mut see = |txn: TxnId, place: Option<u32>| {
        if let Some(place) = place {
            let last = sees.entry(txn).or_insert(place);
            *last = (*last).max(place);
        }
    };
    let floats = |txn: &TxnId| floating.all.binary_search(txn).is_ok();
    if level.session {
        for session in history.sessions().ids() {
            let mut last = None;
            for txn in history.of_session(session) {
                if floats(txn) {
                    see(*txn, last);
                }
                last = last.max(commit_of[txn.index()]);
            }
        }
    }
    if level.realtime {
        let span = |txn: TxnId| history.transaction(txn).client();
        let mut ended: Vec<(i64, u32)> = history
            .transactions()
            .filter_map(|txn| Some((txn.client()?.end, commit_of[txn.id().index()]?)))
            .collect();
        ended.sort_unstable();
        // With each end the last commit of all that had ended by then.
        let mut last = 0;
        for (_, place) in &mut ended {
            last = last.max(*place);
            *place = last;
        }
        for &txn in &floating.all {
            let Some(own) = span(txn) else { continue };
            let before = ended.partition_point(|(end, _)| end.saturating_add(options.clock_skew) < own.begin);
            see(txn, before.checked_sub(1).map(|last| ended[last].1));
        }
    }
    sees
}

/// Places for the nodes of a graph, such that every edge leads forward; `None` if there is a cycle.
fn sorted(graph: &Graph) -> Option<Vec<u32>> {
    let mut open: Vec<u32> =
        (0..graph.len() as Node).map(|node| graph.predecessors(node).len() as u32).collect();
    let mut queue: VecDeque<Node> =
        (0..graph.len() as Node).filter(|&node| open[node as usize] == 0).collect();
    let mut position = vec![0; graph.len()];
    let mut next = 0;
    while let Some(node) = queue.pop_front() {
        position[node as usize] = next;
        next += 1;
        for &after in graph.successors(node) {
            open[after as usize] -= 1;
            if open[after as usize] == 0 {
                queue.push_back(after);
            }
        }
    }
    (next as usize == graph.len()).then_some(position)
}
