//! Checks by results: independent components, each decided where it lies.
//!
//! **What.** Transactions that share no key and no session, even through others, are explained apart. A
//! session is whole in one component, so components are sets of sessions that keys tie together:
//!
//! ```text
//!   parts ── which sessions touch which key ── exchange by key ──> sessions tied by a key
//!         <── ties, and how much each session does ── told to all: everybody finds the same components, and places
//!             them alike, the largest first, each with whoever has least
//!   parts ── transactions ── exchange by component ──> the usual check
//! ```
//!
//! **Invariant.** A component says all that the whole says of its transactions. If every worker accepts what it has, the
//! whole is accepted. What somebody does not accept is gathered at worker 0 and decided there once more, as if alone.
//!
//! **What does not distribute.** One component is one search: its orders constrain each other, and a worker decides it by
//! itself. Real-time order, operations on many keys and levels of one's own tie everything together.
//!
//! **Cost.** A part is held once where it is read and once where it is decided; beside transactions, a name for every key
//! a worker reads, with the sessions that touch it.

use crate::exchange::{everybody, exchange};
use crate::gather::{Packed, copy, merge};
use crate::ids::Ids;
use crate::job::{Found, Job, limit};
use crate::setup::Failure;
use crate::source::{Dealt, PARTS_MAX, of_process};
use crate::timestamps::Read;
use history::{History, Id, TxnId};
use isolation::{Options, Outcome, Stats, Undecided, Verdict, VerdictKind, Witness};
use replay::shards::{Label, home};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use timely::worker::Worker;

/// What all workers came to, and what is known at worker 0.
pub(crate) struct Decided {
    pub(crate) read: Read,
    pub(crate) found: Option<Found>,
    pub(crate) verdict: VerdictKind,
}

/// Decides by results.
pub(crate) fn decide(
    worker: &mut Worker,
    job: &Job,
    dealt: &[Dealt],
    ids: &mut Ids,
) -> Result<Decided, Failure> {
    let (parts, read) = read_all(worker, job, dealt, ids)?;
    let placed = place(worker, job, &parts, &read);
    let parcels = exchange(worker, sorted_out(&parts, &placed, worker.peers())?);
    drop(parts);
    // Orders of the history, as it was read.
    let (outcome, committed) = decide_here(worker, job, &parcels)?;
    let told = match &outcome {
        Some(Outcome { verdict: Verdict::Undecided(why), .. }) => (VerdictKind::Undecided, why.to_string()),
        Some(outcome) => (outcome.verdict.kind(), String::new()),
        None => (VerdictKind::Accepted, String::new()),
    };
    let all = everybody(worker, (told.0, told.1, committed));
    let read = Read { committed: all.iter().map(|(_, _, committed)| committed).sum(), ..read };
    let open = |kind: VerdictKind| all.iter().position(|(verdict, _, _)| *verdict == kind);
    let is_first = worker.index() == 0;
    if let Some(number) = open(VerdictKind::Violated) {
        let sent = if told.0 == VerdictKind::Violated { parcels } else { Vec::new() };
        let came = exchange(worker, sent.into_iter().map(|(order, packed)| (0, order, packed)));
        let found = is_first.then(|| {
            let history = merge(came.into_iter().map(|(_, packed)| Ok(packed)))?;
            let outcome = evidence::check(&history, job.claim.level, &job.options);
            Ok(Found {
                outcome: Some(outcome),
                findings: None,
                history,
                note: placed.note(job, Some(number)),
            })
        });
        return Ok(Decided { read, found: found.transpose()?, verdict: VerdictKind::Violated });
    }
    let (verdict, outcome) = match open(VerdictKind::Undecided) {
        Some(number) => {
            let why = Undecided::Unsupported(of_worker(worker, number, &all[number].1));
            (VerdictKind::Undecided, Verdict::Undecided(why))
        }
        None => (VerdictKind::Accepted, Verdict::Accepted(Witness::default())),
    };
    let found = is_first.then(|| Found {
        outcome: Some(Outcome { verdict: outcome, stats: Stats::default() }),
        findings: None,
        history: History::default(),
        note: placed.note(job, None),
    });
    Ok(Decided { read, found, verdict })
}

fn of_worker(worker: &Worker, number: usize, why: &str) -> String {
    match worker.peers() {
        1 => why.to_owned(),
        _ => format!("worker {number}: {why}"),
    }
}

/// All parts of a worker, and what all workers read together.
fn read_all(
    worker: &mut Worker,
    job: &Job,
    dealt: &[Dealt],
    ids: &mut Ids,
) -> Result<(Vec<(u64, History)>, Read), Failure> {
    ids.begin();
    let standing = job.monitor.standing(worker.index());
    let (mut parts, mut own, mut error, mut over) = (Vec::new(), Read::default(), None, None);
    for dealt in dealt {
        let mut number = 0;
        let read = dealt.stretch.read(&job.reading, |part| {
            own.add(&part);
            ids.take(&part);
            error = error.take().or_else(|| job.refused(&part));
            standing.read(part.len(), part.op_count());
            parts.push((dealt.order + number % PARTS_MAX, part));
            number += 1;
            over = job.options.budget.exhausted().map(|why| why.to_string());
            over.is_none() && error.is_none()
        });
        if let Err(why) = read {
            error = Some(job.plain_error(&dealt.stretch.path, &why));
        }
        if error.is_some() || over.is_some() {
            break;
        }
    }
    standing.has_read();
    let mut all = Read::default();
    let mut limit_reached = None;
    for (number, (read, error, over)) in everybody(worker, (own, error, over)).into_iter().enumerate() {
        if let Some(error) = error {
            return Err(Failure::Input(of_process(job, number / job.setup.workers, &error)));
        }
        all.extend(read);
        limit_reached = limit_reached.or(over);
    }
    match limit_reached {
        Some(why) => Err(limit(&why, &all)),
        None => ids.unite(worker, job, dealt).map(|()| (parts, all)),
    }
}

/// Who decides what.
struct Placed {
    /// For each session its worker.
    workers: FxHashMap<Label, u32>,
    components: usize,
    /// The share of the largest component in all operations.
    largest: f64,
}

/// What a worker knows of sessions, by their numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Ties {
    pairs: Vec<(u32, u32)>,
    work: Vec<u64>,
    /// Whether something ties all of them together.
    is_one: bool,
}

fn place(worker: &mut Worker, job: &Job, parts: &[(u64, History)], read: &Read) -> Placed {
    // 1. Sessions get numbers, the same everywhere.
    let mut sessions: Vec<&Label> = read.sessions.iter().collect();
    sessions.sort();
    let number: FxHashMap<&Label, u32> = (0..).zip(&sessions).map(|(at, label)| (*label, at)).collect();
    // 2. Which sessions touch which key, to where the key lives.
    let mut ties =
        Ties { work: vec![0; sessions.len()], is_one: job.claim.level.own.is_some(), ..Ties::default() };
    let mut touched: FxHashMap<Label, Vec<u32>> = FxHashMap::default();
    for (_, part) in parts {
        touch(part, job, &number, &mut ties, &mut touched);
    }
    let peers = worker.peers();
    let mut by_home: Vec<Vec<(Label, Vec<u32>)>> = vec![Vec::new(); peers];
    for (key, sessions) in touched {
        by_home[home(key.as_name(), peers)].push((key, sessions));
    }
    let own = worker.index() as u64;
    let came = exchange(worker, by_home.into_iter().enumerate().map(|(to, keys)| (to, own, keys)));
    // 3. A key ties its sessions.
    let mut forest = Forest::new(sessions.len());
    let mut first: FxHashMap<Label, u32> = FxHashMap::default();
    for (key, sessions) in came.into_iter().flat_map(|(_, keys)| keys) {
        for session in sessions {
            let one = *first.entry(key.clone()).or_insert(session);
            if forest.unite(one, session) {
                ties.pairs.push((one, session));
            }
        }
    }
    // 4. Everybody knows all ties, and finds the same.
    let mut forest = Forest::new(sessions.len());
    let mut work = vec![0u64; sessions.len()];
    let mut is_one = false;
    for ties in everybody(worker, ties) {
        ties.pairs.iter().for_each(|&(one, other)| {
            forest.unite(one, other);
        });
        ties.work.iter().zip(&mut work).for_each(|(more, sum)| *sum += more);
        is_one |= ties.is_one;
    }
    if is_one {
        (1..sessions.len() as u32).for_each(|session| {
            forest.unite(0, session);
        });
    }
    balance(&sessions, &work, &mut forest, peers)
}

fn touch(
    part: &History,
    job: &Job,
    number: &FxHashMap<&Label, u32>,
    ties: &mut Ties,
    touched: &mut FxHashMap<Label, Vec<u32>>,
) {
    ties.is_one |= job.claim.level.realtime && part.has_client_clocks();
    let sessions: Vec<u32> = (part.sessions().ids())
        .map(|id| number.get(&Label::from(part.sessions().get(id))).copied().unwrap_or(0))
        .collect();
    let mut of_key: Vec<Vec<u32>> = vec![Vec::new(); part.keys().len()];
    for txn in part.transactions() {
        let session = sessions[txn.session().index()];
        ties.work[session as usize] += 1 + txn.op_ids().len() as u64;
        for (_, operation) in txn.ops() {
            match operation.key() {
                Some(key) if of_key[key.index()].contains(&session) => {}
                Some(key) => of_key[key.index()].push(session),
                None => ties.is_one = true,
            }
        }
    }
    for (id, sessions) in part.keys().ids().zip(of_key).filter(|(_, sessions)| !sessions.is_empty()) {
        let known = touched.entry(Label::from(part.keys().get(id))).or_default();
        for session in sessions {
            if !known.contains(&session) {
                known.push(session);
            }
        }
    }
}

/// The largest component first, each to whoever has least.
fn balance(sessions: &[&Label], work: &[u64], forest: &mut Forest, peers: usize) -> Placed {
    let mut of_component: FxHashMap<u32, u64> = FxHashMap::default();
    for (session, work) in (0..).zip(work) {
        *of_component.entry(forest.find(session)).or_default() += work;
    }
    let mut components: Vec<(u64, u32)> = of_component.into_iter().map(|(root, work)| (work, root)).collect();
    components.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut loads = vec![0u64; peers];
    let mut at: FxHashMap<u32, u32> = FxHashMap::default();
    for &(work, root) in &components {
        let least = (0..peers).min_by_key(|&worker| loads[worker]).unwrap_or(0);
        loads[least] += work;
        at.insert(root, least as u32);
    }
    let all: u64 = work.iter().sum();
    let largest = components.first().map_or(0, |&(work, _)| work);
    let workers =
        (0..).zip(sessions).map(|(number, label)| ((*label).clone(), at[&forest.find(number)])).collect();
    Placed { workers, components: components.len(), largest: largest as f64 / (all.max(1)) as f64 }
}

/// Each part's transactions for each worker.
fn sorted_out(
    parts: &[(u64, History)],
    placed: &Placed,
    peers: usize,
) -> Result<Vec<(usize, u64, Packed)>, Failure> {
    let mut parcels = Vec::new();
    for (order, part) in parts {
        let at: Vec<u32> = (part.sessions().ids())
            .map(|id| placed.workers.get(&Label::from(part.sessions().get(id))).copied().unwrap_or(0))
            .collect();
        let mut txns: Vec<Vec<TxnId>> = vec![Vec::new(); peers];
        for txn in part.transactions() {
            txns[at[txn.session().index()] as usize].push(txn.id());
        }
        for (to, txns) in txns.iter().enumerate() {
            if !txns.is_empty() || !part.initial().is_empty() {
                parcels.push((to, *order, copy(part, txns, |_| true, |_| None)?));
            }
        }
    }
    Ok(parcels)
}

/// Decides what lies here; also how many transactions are committed.
fn decide_here(
    worker: &Worker,
    job: &Job,
    parcels: &[(u64, Packed)],
) -> Result<(Option<Outcome>, u64), Failure> {
    let history = merge(parcels.iter().map(|(_, packed)| Ok(packed.clone())))?;
    let committed = history.transactions().filter(|txn| txn.is_committed()).count() as u64;
    if history.is_empty() {
        return Ok((None, committed));
    }
    // Workers of one machine share its cores.
    let threads = if worker.peers() > 1 { 1 } else { job.options.threads };
    let options = Options { threads, ..job.options.clone() };
    Ok((Some(evidence::check(&history, job.claim.level, &options)), committed))
}

impl Placed {
    /// What is to be said of how it was decided.
    fn note(&self, job: &Job, violated: Option<usize>) -> Option<String> {
        let workers = job.setup.workers * job.setup.processes();
        if workers < 2 {
            return None;
        }
        let share = 100.0 * self.largest;
        let mut said = match self.components {
            1 => format!("all sessions and keys are connected: one component on {workers} workers"),
            many => format!(
                "{many} independent components of sessions and keys on {workers} workers; the largest has {share:.0} % of \
                 the operations"
            ),
        };
        if self.largest > 1.5 / workers as f64 {
            said += ": one worker decides it alone, with the time and memory of a single process. Keys shared by fewer sessions, or database timestamps, would spread the work";
        }
        if let Some(number) = violated {
            said += &format!("; worker {number} found a violation");
        }
        Some(said)
    }
}

/// Sessions that belong together.
struct Forest {
    parent: Vec<u32>,
}

impl Forest {
    fn new(count: usize) -> Self {
        Self { parent: (0..count as u32).collect() }
    }

    fn find(&mut self, mut at: u32) -> u32 {
        while self.parent[at as usize] != at {
            let above = self.parent[self.parent[at as usize] as usize];
            self.parent[at as usize] = above;
            at = above;
        }
        at
    }

    /// Whether they were apart.
    fn unite(&mut self, one: u32, other: u32) -> bool {
        let (one, other) = (self.find(one), self.find(other));
        self.parent[one.max(other) as usize] = one.min(other);
        one != other
    }
}
