//! Levels below snapshot isolation, and beside it: decided at any size.
//!
//! *What*: one idea serves all of them. An explanation is a total *commit order* of the transactions that
//! contains every dependency of the level; the version order of a key is that order, restricted to the
//! key's writers. A level adds only what a read *must see*:
//!
//! ```text
//!   T reads x from W;  S is another writer of x that the read must see   ⇒   S commits before W
//! ```
//!
//! | level | a read of T must see S when ([`Sight`]) |
//! |---|---|
//! | read-committed | never: the order alone is asked for |
//! | cursor-stability | T writes x too, and S commits before T |
//! | monotonic-view | S leads by D to something that an earlier operation of T depends on |
//! | consistent-view | S leads by D to T |
//! | update-serializable | T writes: S commits before T; T only reads: S leads to T by dependencies between writers |
//! | axiomatic-read-committed | an earlier operation of T read from S |
//! | read-atomic | S precedes T by session order or wr |
//! | causal | S precedes T by session order and wr, in any number of steps |
//! | prefix | S commits no later than something that precedes T by session order or wr |
//! | repeatable-read | S commits before T, unless the read is of a range or predicate and saw no row |
//!
//! *Ranges and predicates* are reads of single keys ([`crate::rows`]). One that returned no row at a key says that the
//! key did not belong to it; it misses only what changes that (Vbox, definition 2.2), except in the
//! axiomatic family, where it is a read of one version like any other.
//!
//! *Why that is the level*: for consistent view, T misses the version after W's, written by N (T → N is the
//! one rw); N ⇝ T by D closes the forbidden cycle. Any writer S after W is N or follows it by ww, so
//! "no S after W leads to T" says the same. The others are the same argument with another ⇝; for the axiomatic
//! family it is the definition itself.
//!
//! *Steps*: where the order of the file is an explanation, that is all (`as_written`); else (1) [`observe`](crate::observe) with every read apart, and what lists show of version orders
//! (`bases`); (2) the orders that count; (3) what counting shows ([`pigeonhole`]); (4) where every source is known, the levels whose obligations do not feed back are decided
//! by `saturate` in near-linear time; (5) everything else by `search`: an order, the reads it
//! breaks, a clause for each, the solver. Read uncommitted is `dirty`. Without predicates repeatable read
//! is serializability, so it goes there.
//!
//! *Source*: Adya 1999; Biswas and Enea 2019; the sparse saturation is AWDIT's idea (PLDI 2025), done on
//! session clocks.

mod as_written;
mod cycle;
mod dirty;
mod matching;
mod mixed;
mod saturate;
mod search;
mod sight;

use crate::bases::adjoin;
use crate::blame;
use crate::constrain::{Known, Nodes, RealTime};
use crate::decision::Decision;
use crate::first_order::FirstOrder;
use crate::looked_at::LookedAt;
use crate::observe::{observe_apart, observe_with};
use crate::pigeonhole;
use crate::problem::{Problem, Repeats, Standing, Txn, adopt};
use crate::refusal::Refusal;
use crate::restrict::restrict_for;
use crate::rows;
use crate::solving::record_search;
pub use cycle::sort;
pub use dirty::from_nowhere;
use history::{History, Id, TxnId};
use isolation::{Level, Options, Rule, Stats, Undecided, Witness};
pub(crate) use mixed::decide_mixed;
use search::Searched;
use std::borrow::Cow;
use std::time::Instant;

/// What a read must see; see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// Nothing but its source.
    Nothing,
    /// What commits before a transaction that writes the key too.
    BeforeOwnWrite,
    /// What earlier operations depend on.
    EarlierOperations,
    /// Whatever leads here by D.
    Dependencies,
    /// Whatever leads here by dependencies between transactions that write.
    Updates,
    /// What earlier operations read from.
    EarlierReads,
    /// What precedes directly by session order or wr.
    Direct,
    /// What precedes by session order and wr.
    Causes,
    /// A prefix of the commit order.
    Prefix,
    /// What commits before a transaction that asked for it ([`Strict`]).
    Asked,
}

/// Which reads of a transaction must see all that commits before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strict {
    /// None.
    Nothing,
    /// Those that returned something: an anti-dependency by predicate does not count.
    Items,
    /// All.
    Everything,
}

impl Sight {
    fn of(rule: Rule) -> Option<Self> {
        Some(match rule {
            Rule::ReadCommitted => Self::Nothing,
            Rule::CursorStability => Self::BeforeOwnWrite,
            Rule::MonotonicView => Self::EarlierOperations,
            Rule::ConsistentView => Self::Dependencies,
            Rule::UpdateSerializable => Self::Updates,
            Rule::AxiomaticReadCommitted => Self::EarlierReads,
            Rule::ReadAtomic => Self::Direct,
            Rule::Causal => Self::Causes,
            Rule::Prefix => Self::Prefix,
            Rule::RepeatableRead => Self::Asked,
            Rule::ReadUncommitted | Rule::SnapshotIsolation | Rule::Serializable => return None,
        })
    }

    /// Whether every operation on many keys counts as a read of one version of each of them.
    pub fn is_axiomatic(self) -> bool {
        matches!(self, Self::EarlierReads | Self::Direct | Self::Causes | Self::Prefix)
    }
}

/// Marks the reads of a list; empty if there are none.
pub fn marked(list: &[u32], count: usize) -> Vec<bool> {
    if list.is_empty() {
        return Vec::new();
    }
    let mut marked = vec![false; count];
    for &id in list {
        marked[id as usize] = true;
    }
    marked
}

/// Decides a history at a level that has a [`Sight`], or at read uncommitted. `serializable` decides the whole at a level of
/// one order.
pub fn decide(
    history: &History,
    level: Level,
    options: &Options,
    shared: &LookedAt,
    stats: &mut Stats,
    serializable: impl FnOnce(Level, &mut Stats) -> Decision,
) -> Decision {
    let started = Instant::now();
    let is_explained = as_written::explains(history, level, options);
    stats.record("as_written_ms", milliseconds(started));
    match is_explained {
        Ok(true) => return Decision::Possible(Witness::default()),
        Ok(false) => {}
        Err(why) => return Decision::Open(why),
    }
    if level.rule == Rule::ReadUncommitted {
        return dirty::decide(history, level, options.clock_skew, &options.budget);
    }
    let Some(asked) = Asked::of(history, level, options) else {
        return Decision::NotHere(format!("{} is not decided by what reads must see", level.name()));
    };
    if level.rule == Rule::UpdateSerializable
        && let Some(decided) = by_serializability(history, level, &asked, options, stats, serializable)
    {
        return decided;
    }
    decide_asked(history, &asked, options, shared, stats)
}

/// Update serializability, where serializability settles it: what is serializable is update serializable, and what makes it
/// fail mostly makes the other fail, too.
fn by_serializability(
    history: &History,
    level: Level,
    asked: &Asked,
    options: &Options,
    stats: &mut Stats,
    serializable: impl FnOnce(Level, &mut Stats) -> Decision,
) -> Option<Decision> {
    match serializable(Level { rule: Rule::Serializable, ..level }, stats) {
        Decision::Possible(_) => Some(Decision::Possible(Witness::default())),
        Decision::Impossible(core) => {
            let part = restrict_for(history, &core, level);
            // A part that is the whole, or rests on what is not in it, is for the search.
            let is_part = part.history.len() < history.len() && !rows::has_claims(history);
            let is_smaller = is_part && level.modules().is_empty();
            let decided = is_smaller.then(|| {
                decide_asked(&part.history, asked, options, &LookedAt::default(), &mut Stats::default())
            });
            matches!(decided, Some(Decision::Impossible(_))).then_some(Decision::Impossible(core))
        }
        Decision::Open(why) => options.budget.exhausted().map(|_| Decision::Open(why)),
        Decision::NotHere(_) => None,
    }
}

/// Decides what is asked of a history.
fn decide_asked(
    history: &History,
    asked: &Asked,
    options: &Options,
    shared: &LookedAt,
    stats: &mut Stats,
) -> Decision {
    // 1. What each read can have seen, and what lists show.
    let started = Instant::now();
    let problem = match asked.observe_sharing(history, options, shared) {
        Ok(problem) => problem,
        Err(Refusal::Contradiction(contradiction)) => {
            return Decision::Impossible(blame::of_contradiction(history, &contradiction));
        }
        Err(Refusal::Unsupported(what)) => return Decision::NotHere(what),
        Err(Refusal::Open(why)) => return Decision::Open(why),
    };
    stats.record("observe_ms", milliseconds(started));
    problem.measure(stats);
    // What another level may need again stays.
    let shared = matches!(problem, Cow::Borrowed(_)).then_some(shared);
    settle(history, &problem, &asked.setting, shared, options, stats)
}

/// What is asked of a history.
pub struct Asked {
    /// The level, and what it asks of reads.
    pub setting: Setting,
    /// Whose reads only have to come from somebody, by transaction of the history; none if empty.
    pub blind: Vec<bool>,
}

impl Asked {
    /// `None` if the level is not decided here, or levels are mixed that cannot be.
    pub fn of(history: &History, level: Level, options: &Options) -> Option<Self> {
        if options.mixed {
            return mixed::Demands::of(history, level).ok().map(|demands| demands.asked(level));
        }
        let sight = Sight::of(level.rule)?;
        // Only repeatable read asks, and its transactions all for the same.
        let strict = Strictness::Each(Strict::Items);
        Some(Self { setting: Setting { level, sight, strict }, blind: Vec::new() })
    }

    /// The problem of a history, with all that lists show.
    pub fn observe(&self, history: &History, options: &Options) -> Result<Problem, Refusal> {
        let mut problem = observe_with(history, options, Repeats::EachItsOwn, &self.blind)?;
        adjoin(&mut problem, &options.budget)?;
        adopt(history, self.setting.level, &mut problem);
        Ok(problem)
    }

    /// As [`Self::observe`], before conclusions are drawn; some transactions of unknown outcome are taken to have
    /// committed.
    pub fn observe_unsettled(
        &self,
        history: &History,
        options: &Options,
        certain: &[TxnId],
    ) -> Result<Problem, Refusal> {
        let mut problem = observe_apart(history, options, &self.blind, certain)?;
        adjoin(&mut problem, &options.budget)?;
        adopt(history, self.setting.level, &mut problem);
        Ok(problem)
    }

    /// As [`Self::observe`], unless another level did.
    fn observe_sharing<'s>(
        &self,
        history: &History,
        options: &Options,
        shared: &'s LookedAt,
    ) -> Result<Cow<'s, Problem>, Refusal> {
        if self.blind.is_empty() && self.setting.level.modules().is_empty() {
            return shared.each_its_own(history, options);
        }
        self.observe(history, options).map(Cow::Owned)
    }

    /// Whether a part of a problem has no explanation.
    pub fn is_impossible(&self, history: &History, part: &Problem, options: &Options) -> bool {
        let decision = settle(history, part, &self.setting, None, options, &mut Stats::default());
        matches!(decision, Decision::Impossible(_))
    }
}

/// What is asked of a problem.
pub struct Setting {
    /// The level.
    pub level: Level,
    /// What a read must see.
    pub sight: Sight,
    /// For [`Sight::Asked`]: what each transaction asked for.
    pub strict: Strictness,
}

/// What transactions asked for.
#[derive(Clone, Debug)]
pub enum Strictness {
    /// All the same.
    Each(Strict),
    /// By transaction of the history.
    By(Vec<Strict>),
}

impl Strictness {
    /// By transaction of a problem.
    pub fn of(&self, problem: &Problem) -> Vec<Strict> {
        match self {
            Self::Each(strict) => vec![*strict; problem.len()],
            Self::By(strict) => problem.txns.iter().map(|txn| strict[txn.index()]).collect(),
        }
    }
}

/// Looks for an explanation of what was observed.
fn settle(
    history: &History,
    problem: &Problem,
    setting: &Setting,
    shared: Option<&LookedAt>,
    options: &Options,
    stats: &mut Stats,
) -> Decision {
    try_settle(history, problem, setting, shared, options, stats).unwrap_or_else(Decision::Open)
}

fn try_settle(
    history: &History,
    problem: &Problem,
    setting: &Setting,
    shared: Option<&LookedAt>,
    options: &Options,
    stats: &mut Stats,
) -> Result<Decision, Undecided> {
    let budget = &options.budget;
    budget.check()?;
    // 2. The orders that count.
    let known = known(history, problem, setting.level, options.clock_skew);
    // 3. What counting shows, no search finds.
    if pigeonhole::applies(setting.level)
        && setting.sight != Sight::Asked
        && let Some(crowd) = pigeonhole::find(problem, budget)?
    {
        return Ok(impossible(problem, crowd.txns(problem)));
    }
    // 4. Without open questions.
    let started = Instant::now();
    if is_settled(problem)
        && let Some(saturated) = saturate::saturate(history, problem, &known, setting.sight, budget)?
    {
        stats.record("saturate_ms", milliseconds(started));
        return Ok(match saturated {
            Ok(()) => Decision::Possible(Witness::default()),
            Err(core) => impossible(problem, core),
        });
    }
    // 5. With them. Where session order does not count it still tells the likely order: what keeps to it is
    //    explained, and a part that has no explanation, with or without sessions, settles it too.
    if !setting.level.session {
        let with_sessions = Known { session: true, ..known.clone() };
        let make = || FirstOrder::of(history, problem, &with_sessions, budget);
        let decided = match shared.filter(|_| !setting.level.realtime) {
            Some(shared) => {
                let first = shared.first_with_sessions(make)?;
                by_search(history, problem, (&with_sessions, first), setting, options, stats)
            }
            None => by_search(history, problem, (&with_sessions, &make()?), setting, options, stats),
        };
        match decided {
            Decision::Impossible(part) if !still_impossible(history, problem, setting, options, &part)? => {}
            decided => return Ok(decided),
        }
    }
    let first = FirstOrder::of(history, problem, &known, budget)?;
    Ok(by_search(history, problem, (&known, &first), setting, options, stats))
}

fn by_search(
    history: &History,
    problem: &Problem,
    start: (&Known, &FirstOrder),
    setting: &Setting,
    options: &Options,
    stats: &mut Stats,
) -> Decision {
    let started = Instant::now();
    let (searched, counters) = search::search(history, problem, start, setting, &options.budget);
    stats.record("search_ms", milliseconds(started));
    record_search(stats, &counters);
    match searched {
        Searched::Explained => Decision::Possible(Witness::default()),
        Searched::Impossible(core) => impossible(problem, core),
        Searched::GaveUp(why) => Decision::Open(why),
    }
}

/// Whether a part of the history has no explanation at the level itself.
fn still_impossible(
    history: &History,
    problem: &Problem,
    setting: &Setting,
    options: &Options,
    part: &[TxnId],
) -> Result<bool, Undecided> {
    if rows::has_claims(history) || !problem.added.is_empty() {
        // Where operations are about many keys, or modules add to the whole, a part is cut out of the problem.
        let part: Vec<Txn> = part.iter().filter_map(|&txn| problem.find(txn)).collect();
        let part = problem.part(&part);
        let known = known(history, &part, setting.level, options.clock_skew);
        let start = (&known, &FirstOrder::of(history, &part, &known, &options.budget)?);
        return Ok(part.len() < problem.len()
            && matches!(
                by_search(history, &part, start, setting, options, &mut Stats::default()),
                Decision::Impossible(_)
            ));
    }
    let part = restrict_for(history, part, setting.level);
    // A part that is the whole is decided by the caller.
    Ok(part.history.len() < history.len()
        && matches!(decide_part(&part.history, setting.level, options), Decision::Impossible(_)))
}

/// Decides a part by itself, as its whole was decided.
fn decide_part(part: &History, level: Level, options: &Options) -> Decision {
    let mut stats = Stats::default();
    if options.mixed {
        return decide_mixed(part, level, options, &mut stats);
    }
    // The search itself answers for update serializability: what a stronger level says of the whole was asked before.
    let not_asked = |level: Level, _: &mut Stats| Decision::NotHere(format!("{level} of a part"));
    decide(part, level, options, &LookedAt::default(), &mut stats, not_asked)
}

fn impossible(problem: &Problem, core: Vec<Txn>) -> Decision {
    Decision::Impossible(core.into_iter().map(|txn| problem.txns[txn as usize]).collect())
}

/// One node a transaction, and the orders that the level counts.
fn known(history: &History, problem: &Problem, level: Level, skew: i64) -> Known {
    let real_time = if level.realtime { RealTime::of(history, problem, skew) } else { RealTime::default() };
    Known {
        nodes: Nodes { points: 1 },
        session: level.session,
        real_time,
        derived: Vec::new(),
        fixed: Vec::new(),
    }
}

/// Whether every read has one source and every outcome is known.
fn is_settled(problem: &Problem) -> bool {
    let open = |txn: Txn| problem.standing[txn as usize] == Standing::Maybe;
    problem.matches.is_empty()
        && !problem.bases.iter().any(|&base| problem.is_open_base(base))
        && !(0..problem.len() as Txn).any(open)
        && problem
            .reads
            .iter()
            .all(|read| read.is_known() || problem.standing[read.txn as usize] == Standing::Out)
}

fn milliseconds(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}
