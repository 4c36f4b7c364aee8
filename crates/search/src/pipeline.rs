//! The whole check on one screen.
//!
//! ```text
//!   observe ─▶ constrain ─▶ schedule ─▶ refine ─▶ verdict
//!      │            │           │          │
//!      └─ a value   └───────────┴─ cycle   └─ no answer left
//!         nobody wrote
//! ```

use crate::blame;
use crate::constrain::Known;
use crate::decision::Decision;
use crate::demand::Demand;
use crate::looked_at::LookedAt;
use crate::observe;
use crate::parts;
use crate::pigeonhole;
use crate::problem::{Problem, Standing, Txn, adopt};
use crate::refine::{Questions, Refined};
use crate::refusal::Refusal;
use crate::resolve;
use crate::rows;
use crate::saturate::{self, Round, Saturation};
use crate::schedule::{self, Scheduled};
use crate::settle::settle;
use crate::solving::record_search;
use crate::weak;
use history::{History, TxnId};
use isolation::{Budget, Event, Level, Options, Rule, Stats, Undecided, Witness, modules};
use std::borrow::Cow;
use std::time::Instant;

/// The pipeline proper: no evidence is worked out.
pub fn decide(history: &History, level: Level, options: &Options, stats: &mut Stats) -> Decision {
    decide_sharing(history, level, options, &LookedAt::default(), stats)
}

/// As [`decide`], with what other levels found out.
pub fn decide_sharing(
    history: &History,
    level: Level,
    options: &Options,
    shared: &LookedAt,
    stats: &mut Stats,
) -> Decision {
    // What is likely is tried as if it were certain: if that explains the history, it is explained.
    if let Some(hinted) = level.hinted().filter(|_| modules::has_hints(history, level))
        && let Decision::Possible(witness) = decide_sharing(history, hinted, options, shared, stats)
    {
        return Decision::Possible(witness);
    }
    if options.mixed {
        return weak::decide_mixed(history, level, options, stats);
    }
    let Some(level) = ordered(history, level) else {
        let serializable = |level, stats: &mut Stats| decide_sharing(history, level, options, shared, stats);
        return weak::decide(history, level, options, shared, stats, serializable);
    };
    // 1. What each read can have seen.
    let started = Instant::now();
    // A module's additions are to the whole: nothing is left for later.
    let observed = match level.modules() {
        [] => shared.one_version(history, options),
        _ => observe::observe(history, options).map(|mut problem| {
            adopt(history, level, &mut problem);
            Cow::Owned(problem)
        }),
    };
    let problem = match observed {
        Ok(problem) => problem,
        Err(Refusal::Contradiction(contradiction)) => {
            return Decision::Impossible(blame::of_contradiction(history, &contradiction));
        }
        Err(Refusal::Unsupported(what)) => return Decision::NotHere(what),
        Err(Refusal::Open(why)) => return Decision::Open(why),
    };
    stats.record("observe_ms", milliseconds(started));
    problem.measure(stats);
    // 2. Independent parts, where neither real time nor a module ties them together.
    let is_one = level.realtime || !problem.added.is_empty() || problem.is_on_demand;
    if is_one || problem.len() < PARTS_WORTH || !options.passes.parts {
        return explain_or_without_sessions(history, &problem, level, options, stats);
    }
    let bundles = parts::bundles(&problem, options.cores());
    explain_bundles(history, &problem, &bundles, level, options, stats)
}

/// The level of one order, or of begins and commits, that a level comes to for this history; none if it is decided by
/// what reads must see.
pub fn ordered(history: &History, level: Level) -> Option<Level> {
    match level.rule {
        Rule::Serializable | Rule::SnapshotIsolation => Some(level),
        // Without predicates the two forbid the same.
        Rule::RepeatableRead if !rows::has_claims(history) => {
            Some(Level { rule: Rule::Serializable, ..level })
        }
        _ => None,
    }
}

/// Problems of fewer transactions are not taken apart.
const PARTS_WORTH: usize = 2_000;

/// Explains independent parts at once, each on a thread of its own.
fn explain_bundles(
    history: &History,
    problem: &Problem,
    bundles: &[Vec<Txn>],
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Decision {
    if bundles.is_empty() {
        return explain_or_without_sessions(history, problem, level, options, stats);
    }
    let explain_bundle = |bundle: &[Txn]| {
        let mut stats = Stats::default();
        let part = problem.part(bundle);
        let decision = explain_or_without_sessions(history, &part, level, options, &mut stats);
        (decision, stats)
    };
    let decisions: Vec<(Decision, Stats)> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            bundles.iter().map(|bundle| scope.spawn(move || explain_bundle(bundle))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a check does not panic")).collect()
    });
    stats.record("bundles", bundles.len() as f64);
    together(decisions, stats)
}

/// Explanations of parts, one after the other; or what is wrong with one of them.
fn together(decisions: Vec<(Decision, Stats)>, stats: &mut Stats) -> Decision {
    let mut order = Vec::new();
    let mut open = None;
    for (decision, of_part) in decisions {
        stats.record_all(of_part);
        match decision {
            Decision::Possible(witness) => order.extend(witness.order),
            Decision::Impossible(core) => return Decision::Impossible(core),
            other => open = Some(other),
        }
    }
    open.unwrap_or(Decision::Possible(Witness { order }))
}

/// Where session order does not count it still tells the likely order: whatever keeps to it is explained. A part that
/// cannot keep to it is either impossible without it, too, which settles everything, or is let off it, and the rest
/// keeps to it as before.
fn explain_or_without_sessions(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Decision {
    if level.session || level.realtime || !options.passes.sessions {
        return decide_problem(history, problem, level, options, stats);
    }
    let with_sessions = Level { session: true, ..level };
    let mut loosened = Cow::Borrowed(problem);
    let mut rounds = 0.0;
    loop {
        let mut round = Stats::default();
        let decision = decide_problem(history, &loosened, with_sessions, options, &mut round);
        rounds += 1.0;
        if let Decision::Impossible(part) = &decision {
            match still_impossible(history, problem, level, options, part) {
                Ok(true) => {}
                Ok(false) => {
                    let part: Vec<Txn> = part.iter().filter_map(|&txn| problem.find(txn)).collect();
                    if loosened.to_mut().leave_sessions(&part) {
                        continue;
                    }
                    return decide_problem(history, problem, level, options, stats);
                }
                // What has no explanation with sessions may have one without them.
                Err(why) => return Decision::Open(why),
            }
        }
        stats.record_all(round);
        if rounds > 1.0 {
            stats.record("session_rounds", rounds);
        }
        return decision;
    }
}

/// Whether a part of the problem has no explanation at a level; an error if that is not known.
fn still_impossible(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
    part: &[TxnId],
) -> Result<bool, Undecided> {
    // A part that is the whole is decided by the caller.
    if part.len() == problem.len() {
        return Ok(false);
    }
    let told = if problem.is_on_demand {
        let observed = observe::observe_unsettled(history, options, part).and_then(|mut told| {
            settle(&mut told, &options.budget)?;
            Ok(told)
        });
        match observed {
            Ok(told) => Cow::Owned(told),
            Err(Refusal::Open(why)) => return Err(why),
            Err(Refusal::Contradiction(_) | Refusal::Unsupported(_)) => return Ok(true),
        }
    } else {
        Cow::Borrowed(problem)
    };
    let part: Vec<Txn> = part.iter().filter_map(|&txn| told.find(txn)).collect();
    match decide_problem(history, &told.part(&part), level, options, &mut Stats::default()) {
        Decision::Impossible(_) => Ok(true),
        Decision::Open(why) => Err(why),
        Decision::Possible(_) | Decision::NotHere(_) => Ok(false),
    }
}

/// Looks for an order that explains the problem.
pub fn decide_problem(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Decision {
    try_decide_problem(history, problem, level, options, stats).unwrap_or_else(Decision::Open)
}

fn try_decide_problem(
    history: &History,
    problem: &Problem,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Result<Decision, Undecided> {
    let budget = &options.budget;
    budget.check()?;
    // 3. What every explanation has.
    let known = Known::new(history, problem, level, options.clock_skew);
    // 4. What counting shows, no search finds. A cycle is shorter to tell.
    if let Some(crowd) = pigeonhole::find(problem, budget)? {
        let txns = match schedule::schedule(history, problem, &known, budget) {
            Ok(Scheduled::Stuck(stuck)) => blame::known_cycle(problem, &known, &stuck),
            Ok(Scheduled::Order { .. }) | Err(_) => crowd.txns(problem),
        };
        let txns = txns.into_iter().map(|txn| problem.txns[txn as usize]).collect();
        return Ok(Decision::Impossible(txns));
    }
    // 5. Where many reads are ambiguous: what follows from it. It serves acceptance only, because a
    //    contradiction found with its help does not show all that it rests on.
    if options.passes.saturate && saturate::is_worth_it(problem, &known) {
        if let Some(witness) = at_first_sight(history, problem, &known, budget)? {
            return Ok(Decision::Possible(witness));
        }
        let started = Instant::now();
        let saturated = saturated(history, problem, &known, budget)?;
        stats.record("saturate_ms", milliseconds(started));
        if let Some((problem, known)) = saturated
            && let decided @ (Decision::Possible(_) | Decision::Open(_)) =
                search(history, Cow::Owned(problem), &known, options, stats)?
        {
            return Ok(decided);
        }
    }
    search(history, Cow::Borrowed(problem), &known, options, stats)
}

/// The first order, if it explains everything: then nothing has to be ruled out.
fn at_first_sight(
    history: &History,
    problem: &Problem,
    known: &Known,
    budget: &Budget,
) -> Result<Option<Witness>, Undecided> {
    let scheduled = schedule::schedule(history, problem, known, budget)?;
    let Scheduled::Order { position, suspects, .. } = scheduled else { return Ok(None) };
    let asks_nothing = |demand: Demand<'_>| {
        let missing = demand.missing(problem, known, &position, &[], budget)?;
        Ok(missing.is_empty())
    };
    let fits = suspects.is_empty()
        && (!problem.is_on_demand || Demand::new(history, problem, budget).and_then(asks_nothing)?);
    Ok(fits.then(|| witness(problem, known, &position, &[])))
}

/// A round that rules out a smaller share of the candidates is the last.
const SATURATED: f64 = 0.25;

/// The problem with fewer candidates and more edges; none if that shows a contradiction.
fn saturated(
    history: &History,
    problem: &Problem,
    known: &Known,
    budget: &Budget,
) -> Result<Option<(Problem, Known)>, Undecided> {
    let (mut problem, mut known) = (problem.clone(), known.clone());
    let saturation = Saturation::new(&problem);
    loop {
        let scheduled = schedule::schedule(history, &problem, &known, budget)?;
        let Scheduled::Order { position, .. } = scheduled else { return Ok(None) };
        match saturation.round(&mut problem, &mut known, &position, budget)? {
            Round::RuledOut { share } if share < SATURATED => return Ok(Some((problem, known))),
            Round::RuledOut { .. } => {}
            Round::Impossible => return Ok(None),
        }
    }
}

/// Schedules, then refines.
fn search(
    history: &History,
    mut problem: Cow<'_, Problem>,
    known: &Known,
    options: &Options,
    stats: &mut Stats,
) -> Result<Decision, Undecided> {
    // 6. A first order.
    let started = Instant::now();
    let scheduled = schedule::schedule(history, &problem, known, &options.budget)?;
    stats.record("schedule_ms", milliseconds(started));
    let (mut position, mut suspects, readers) = match scheduled {
        Scheduled::Order { position, suspects, readers } => (position, suspects, readers),
        Scheduled::Stuck(stuck) => {
            let cycle = blame::known_cycle(&problem, known, &stuck);
            let cycle = cycle.into_iter().map(|txn| problem.txns[txn as usize]).collect();
            return Ok(Decision::Impossible(cycle));
        }
    };
    stats.record("suspects", suspects.len() as f64);
    let mut effective = Vec::new();
    let (mut demand, mut questions) = (None, None);
    loop {
        // 7. Replay, blame, refine.
        if !suspects.is_empty() {
            let started = Instant::now();
            let questions = questions
                .get_or_insert_with(|| Questions::nothing(&problem, known, &position, &options.budget));
            let refined = questions.refine(&problem, known, &readers, &suspects, &options.budget);
            stats.record("refine_ms", milliseconds(started));
            match refined {
                Refined::Explained { position: found, effective: those } => {
                    (position, effective) = (found, those);
                }
                Refined::Impossible(core) => {
                    record_search(stats, &questions.counters());
                    let core = core.into_iter().map(|txn| problem.txns[txn as usize]);
                    return Ok(Decision::Impossible(core.collect()));
                }
                Refined::GaveUp(why) => {
                    record_search(stats, &questions.counters());
                    return Err(why);
                }
            }
        }
        // 8. What predicates say, where the order does not keep to it.
        let order = (&position[..], &effective[..]);
        let state = (&mut demand, &mut questions);
        match demanded(history, &mut problem, known, order, state, &options.budget, stats)? {
            Demanded::Keys(more) if more.is_empty() => {
                questions.iter().for_each(|questions| record_search(stats, &questions.counters()));
                return Ok(Decision::Possible(witness(&problem, known, &position, &effective)));
            }
            Demanded::Keys(more) => suspects = more,
            Demanded::Impossible(txn) => {
                return Ok(Decision::Impossible(vec![problem.txns[txn as usize]]));
            }
        }
    }
}

/// What comes of asking predicates about an order.
enum Demanded {
    /// The keys to look at again; none if the order keeps to everything.
    Keys(Vec<u32>),
    /// A transaction of which something cannot be true at all.
    Impossible(Txn),
}

/// Adds what predicates say and an order does not keep to.
fn demanded<'h>(
    history: &'h History,
    problem: &mut Cow<'_, Problem>,
    known: &Known,
    (position, effective): (&[u32], &[Txn]),
    (demand, questions): (&mut Option<Demand<'h>>, &mut Option<Questions>),
    budget: &Budget,
    stats: &mut Stats,
) -> Result<Demanded, Undecided> {
    if !problem.is_on_demand {
        return Ok(Demanded::Keys(Vec::new()));
    }
    let started = Instant::now();
    let demand = match demand {
        Some(demand) => demand,
        None => demand.insert(Demand::new(history, problem, budget)?),
    };
    let missing = demand.missing(problem, known, position, effective, budget)?;
    stats.record("demand_ms", milliseconds(started));
    stats.record("demanded", missing.len() as f64);
    stats.record("demand_rounds", 1.0);
    if missing.is_empty() {
        return Ok(Demanded::Keys(Vec::new()));
    }
    let mut suspects: Vec<u32> = missing.iter().map(|&(_, key)| key.0).collect();
    suspects.sort_unstable();
    suspects.dedup();
    let before = problem.first_read.clone();
    let added = resolve::add_claims(problem.to_mut(), history, &demand.contents, &missing, budget)?;
    if let Some(impossible) = added {
        return Ok(Demanded::Impossible(impossible));
    }
    if let Some(questions) = questions {
        questions.renumber(|id| {
            let txn = before.partition_point(|&first| first <= id) - 1;
            problem.first_read[txn] + (id - before[txn])
        });
    }
    Ok(Demanded::Keys(suspects))
}

/// The order of nodes as an order of transactions.
pub fn witness(problem: &Problem, known: &Known, position: &[u32], effective: &[Txn]) -> Witness {
    let mut events: Vec<(u32, Event)> = Vec::with_capacity(problem.len() * known.nodes.points as usize);
    for txn in 0..problem.len() as Txn {
        let taken = match problem.standing[txn as usize] {
            Standing::In => true,
            Standing::Maybe => effective.binary_search(&txn).is_ok(),
            Standing::Out => false,
        };
        if !taken {
            continue;
        }
        let id = problem.txns[txn as usize];
        let place = |node: u32| position[node as usize];
        if known.nodes.points == 1 {
            events.push((place(known.nodes.begin(txn)), Event::Whole(id)));
        } else {
            events.push((place(known.nodes.begin(txn)), Event::Begin(id)));
            events.push((place(known.nodes.commit(txn)), Event::Commit(id)));
        }
    }
    events.sort_unstable_by_key(|&(place, _)| place);
    Witness { order: events.into_iter().map(|(_, event)| event).collect() }
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use oracle::tiny::Shape;

    /// Parts explained apart come to what the whole comes to.
    #[test]
    fn bundles_decide_as_the_whole_does() {
        let shape =
            Shape { transactions: (2, 8), sessions_max: 5, keys_max: 5, ops_max: 2, ..Shape::registers() };
        let mut taken_apart = 0;
        for seed in 0..3_000 {
            let history = shape.history(seed);
            let Ok(problem) = observe::observe(&history, &Options::default()) else { continue };
            let bundles = parts::bundles(&problem, 3);
            taken_apart += usize::from(!bundles.is_empty());
            for (rule, session) in [
                (Rule::Serializable, true),
                (Rule::Serializable, false),
                (Rule::SnapshotIsolation, true),
                (Rule::SnapshotIsolation, false),
            ] {
                let level = Level::new(rule, session, false);
                let options = Options::default();
                let mut stats = Stats::default();
                let whole = explain_or_without_sessions(&history, &problem, level, &options, &mut stats);
                let apart = explain_bundles(&history, &problem, &bundles, level, &options, &mut stats);
                match (&whole, &apart) {
                    (Decision::Possible(one), Decision::Possible(other)) => {
                        assert_eq!(one.order.len(), other.order.len(), "seed {seed}: nobody is lost");
                    }
                    (Decision::Impossible(_), Decision::Impossible(_)) => {}
                    _ => panic!("seed {seed} at {level}: {whole:?}, in parts {apart:?}"),
                }
            }
        }
        assert!(taken_apart > 300, "{taken_apart} of the histories fell into parts");
    }

    /// Nothing at these levels is left to the oracle.
    #[test]
    fn every_operation_is_decided_here() {
        for seed in 0..1_500 {
            let history = Shape::everything().history(seed);
            let predicates = Shape::predicates().history(seed);
            for level in Level::all() {
                // Lists that do not show their order are beyond read uncommitted.
                let history = if level.rule == Rule::ReadUncommitted { &predicates } else { &history };
                let decision = decide(history, level, &Options::default(), &mut Stats::default());
                let is_decided = matches!(decision, Decision::Possible(_) | Decision::Impossible(_));
                assert!(is_decided, "seed {seed} at {level}: {decision:?}");
            }
        }
    }
}
