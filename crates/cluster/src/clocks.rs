//! The polynomial levels by results: one component, decided by all workers together.
//!
//! **What.** [`crate::spread`] as a dataflow:
//!
//! ```text
//!   parts ── digests ── exchange by key ──> homes of keys: join reads with writers
//!         <── sources ── back to the readers of parts
//!   parts ── the largest number that directly precedes each transaction ── told to all ──> is every read clear? accepted
//!
//!   if some are not:
//!   parts ── pieces of the graph ── to one worker of each process, which puts them together for all of its own
//!   sessions are dealt to processes, and within them to workers: clocks, each worker some columns of all transactions
//!   keys ── doubtful reads ── their home, and one worker of every other process ──> obligations, for the sessions of the process
//!   edges that lead backward ── told to all ──> the stretches they span: their edges ── worker 0 ──> sorted, or a cycle
//! ```
//!
//! **Invariant.** Only acceptance is decided here. Whatever is [`Open`] is told to all at the next step where everybody meets, and
//! everybody leaves: dataflows are made by all workers in the same order, or by none.
//!
//! **Why columns by process and keys by worker.** Workers of a process share memory: the graph is there once, and every worker
//! sees the columns of the others, so its keys' obligations are all found by itself. Processes share nothing: each
//! finds those of its own sessions, for which the doubtful reads and the writers of their keys come by, a few at a time.
//!
//! **Cost.** Time: everything is divided by the workers, except that each process puts the graph together where it is needed, and
//! that rows of a few columns are not much faster to find than rows of all. Bytes between processes: 12 an operation and
//! 4 a read back, 4 a transaction to each other process; where there are doubts 12 a transaction and 4 a read for the graph, 8 a
//! doubtful read and 4 a writer of its key. Memory: see [`crate::spread`]; the graph does not shrink with more processes,
//! everything else does.

use crate::components::Decided;
use crate::exchange::{everybody, exchange, stream};
use crate::ids::Ids;
use crate::job::{Found, Job};
use crate::source::{Dealt, PARTS_MAX};
use crate::spread::{
    Columns, Digest, Digested, Doubts, Edges, Graph, Home, Kept, Lanes, Layout, Open, Piece, Plan, Regions,
    Replies, Tally, digest,
};
use crate::timestamps::Read;
use history::History;
use isolation::{Outcome, Stats, Verdict, VerdictKind, Witness};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use timely::worker::Worker;

/// What workers of one process share.
#[derive(Debug, Default)]
pub(crate) struct Commons {
    /// See [`Piece::tops`], of all transactions.
    tops: Mutex<Option<Arc<Vec<u32>>>>,
    graph: Mutex<Option<Arc<Graph>>>,
    columns: Mutex<Vec<Option<Arc<Columns>>>>,
    /// Whether somebody found that nothing will be accepted.
    is_open: AtomicBool,
}

/// A worker that panicked ends the run; what it left behind is not looked at.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What several workers receive: once per process.
#[derive(Clone, Debug)]
struct Told<T>(Arc<T>);

impl<T: Serialize> Serialize for Told<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Told<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|it| Self(Arc::new(it)))
    }
}

/// Why nothing was accepted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Why {
    /// It is not the plain case, or it is violated.
    Open(Open),
    /// Files could not be read, or a limit was reached.
    Interrupted,
    /// It is no history; the sentence says why.
    Refused(String),
}

impl Why {
    pub(crate) fn why(&self) -> &'static str {
        match self {
            Self::Open(open) => open.why(),
            Self::Interrupted | Self::Refused(_) => "reading was interrupted",
        }
    }
}

/// Who this worker is among all.
#[derive(Clone, Copy)]
struct Place {
    process: usize,
    processes: usize,
    /// Among those of the process.
    worker: usize,
    workers: usize,
}

impl Place {
    fn of(worker: &Worker, job: &Job) -> Self {
        let workers = job.setup.workers.max(1);
        Self {
            process: worker.index() / workers,
            processes: worker.peers() / workers,
            worker: worker.index() % workers,
            workers,
        }
    }

    /// The same among those of another process.
    fn in_process(self, process: usize) -> usize {
        process * self.workers + self.worker
    }
}

/// What a worker has read.
struct Parts {
    read: Read,
    kept: Vec<Kept>,
    home: Home,
    why: Option<Why>,
}

/// Accepts a history; or says why not.
pub(crate) fn accept(
    worker: &mut Worker,
    job: &Job,
    commons: &Commons,
    plan: Plan,
    dealt: &[Dealt],
    ids: &mut Ids,
) -> Result<Decided, Why> {
    let place = Place::of(worker, job);
    // 1. Everything is read, and comes to the homes of its keys.
    let Parts { read: own, mut kept, home, why } = read_parts(worker, job, commons, plan, dealt, ids);
    let all = everybody(worker, (Tally::of(&kept), own, why));
    let mut read = Read::default();
    let mut tallies = Vec::with_capacity(all.len());
    let mut whys = Vec::with_capacity(all.len());
    for (tally, own, why) in all {
        tallies.push(tally);
        read.extend(own);
        whys.push(why);
    }
    first_of(whys)?;
    ids.unite(worker, job, dealt).map_err(|failure| Why::Refused(failure.to_string()))?;
    let layout = Layout::new(&tallies, worker.index()).map_err(Why::Open)?;
    drop(tallies);
    // 2. Sources, and the pieces of the graph that are made of them.
    let (replies, mut lanes, mut open) = match home.join(&layout) {
        Ok((replies, lanes)) => (replies, lanes, None),
        Err(open) => (Vec::new(), Vec::new(), Some(open)),
    };
    let from = worker.index();
    let parcel = |Replies { to, order, sources }| (to as usize, order, (from, sources));
    let replies = exchange(worker, replies.into_iter().map(parcel));
    kept.sort_unstable_by_key(|kept| kept.order);
    let pieces =
        pieces(kept, replies, &layout, worker.peers()).map_err(|why| open = Some(why)).unwrap_or_default();
    let is_forward = pieces.iter().all(|piece| piece.is_forward);
    let all = everybody(worker, (open.map(Why::Open), is_forward));
    let is_forward = all.iter().all(|(_, is_forward)| *is_forward);
    first_of(all.into_iter().map(|(why, _)| why))?;
    let decided =
        |note| Decided { found: (from == 0).then(|| accepted(note)), read, verdict: VerdictKind::Accepted };
    let note = note(job, layout.sessions(), plan);
    // 3. What directly precedes is mostly enough.
    if is_forward && (!plan.obliges() || are_clear(worker, commons, place, &pieces, &lanes)) {
        return Ok(decided(note));
    }
    // 4. The graph, once a process.
    let graph = share_graph(worker, commons, place, pieces, layout.sessions(), plan)?;
    lanes.iter_mut().for_each(|lanes| lanes.renumber(&graph));
    // 5. Obligations that lead backward, and if there are any, all those around them.
    let search = Search { commons, place, plan, graph: &graph, lanes: &lanes };
    let (backward, why) = search.run(worker, None);
    let all = everybody(worker, (Regions::spanned(&backward), why));
    let (regions, whys): (Vec<Regions>, Vec<Option<Why>>) = all.into_iter().unzip();
    first_of(whys)?;
    let regions = Arc::new(Regions::joined(&regions));
    if !regions.is_empty() {
        let (edges, why) = search.run(worker, Some(regions.clone()));
        let came = exchange(worker, [(0, from as u64, (edges, why))]);
        let mut edges = Vec::new();
        let mut whys = Vec::new();
        for (_, (more, why)) in came {
            edges.extend(more);
            whys.push(why);
        }
        let mut why = first_of(whys).err();
        if from == 0 && why.is_none() && !graph.is_acyclic(&regions, edges) {
            why = Some(Why::Open(Open::Cycle));
        }
        first_of(everybody(worker, why))?;
    }
    Ok(decided(note))
}

/// Whether nothing leads backward, as far as that shows by what directly precedes readers.
fn are_clear(
    worker: &mut Worker,
    commons: &Commons,
    place: Place,
    pieces: &[Piece],
    lanes: &[Lanes],
) -> bool {
    let parcels = |piece: &Piece| {
        let (base, told) = (u64::from(piece.base()), Told(Arc::new(piece.tops())));
        (0..place.processes).map(move |process| (process * place.workers, base, told.clone()))
    };
    let came = exchange(worker, pieces.iter().flat_map(parcels));
    if place.worker == 0 {
        let count = came.iter().map(|(_, tops)| tops.0.len()).sum();
        let mut all = Vec::with_capacity(count);
        came.into_iter().for_each(|(_, tops)| all.extend_from_slice(&tops.0));
        *locked(&commons.tops) = Some(Arc::new(all));
    }
    everybody(worker, ());
    let tops = locked(&commons.tops).clone();
    let is_clear = tops.is_some_and(|tops| lanes.iter().all(|lanes| lanes.are_clear(&tops)));
    let all = everybody(worker, is_clear);
    *locked(&commons.tops) = None;
    all.into_iter().all(|is_clear| is_clear)
}

/// The first of what workers say, which all of them find alike.
fn first_of(whys: impl IntoIterator<Item = Option<Why>>) -> Result<(), Why> {
    whys.into_iter().flatten().next().map_or(Ok(()), Err)
}

fn accepted(note: Option<String>) -> Found {
    let verdict = Verdict::Accepted(Witness::default());
    Found {
        outcome: Some(Outcome { verdict, stats: Stats::default() }),
        findings: None,
        history: History::default(),
        note,
    }
}

/// What is to be said of how it was decided.
fn note(job: &Job, sessions: u32, plan: Plan) -> Option<String> {
    let workers = job.setup.workers * job.setup.processes();
    let how = if plan.needs_clocks() {
        format!("the clocks of {sessions} sessions and the keys")
    } else {
        "the keys".to_owned()
    };
    (workers > 1).then(|| format!("decided by {workers} workers together, who share {how}"))
}

/// Reads everything, sends digests to homes, and takes in those of keys that live here.
fn read_parts(
    worker: &mut Worker,
    job: &Job,
    commons: &Commons,
    plan: Plan,
    dealt: &[Dealt],
    ids: &mut Ids,
) -> Parts {
    ids.begin();
    let standing = job.monitor.standing(worker.index());
    let home = Rc::new(RefCell::new(Home::default()));
    let at = home.clone();
    let (mut read, mut kept, mut why) = (Read::default(), Vec::new(), None);
    stream(
        worker,
        |worker, sender| {
            for dealt in dealt {
                let mut number = 0;
                let result = dealt.stretch.read(&job.reading, |part| {
                    let order = dealt.order + number % PARTS_MAX;
                    number += 1;
                    standing.read(part.len(), part.op_count());
                    ids.take(&part);
                    // Who reads everything says so.
                    let is_refused = job.refused(&part).is_some();
                    match digest(&part, order, worker.index(), worker.peers(), plan) {
                        Ok(Digested { digests, kept: of_part, committed }) => {
                            read.add(&part);
                            read.committed += committed;
                            drop(part);
                            kept.push(of_part);
                            standing.sent(digests.iter().map(Digest::bytes).sum());
                            let digests = digests.into_iter().filter(|digest| !digest.is_empty());
                            sender.send(worker, digests.map(|digest| (digest.home as usize, digest)));
                        }
                        Err(open) => why = Some(Why::Open(open)),
                    }
                    if is_refused || job.options.budget.exhausted().is_some() {
                        why = Some(Why::Interrupted);
                    }
                    why.is_none() && !commons.is_open.load(Ordering::Relaxed)
                });
                if result.is_err() {
                    why = Some(Why::Interrupted);
                }
                if why.is_some() {
                    commons.is_open.store(true, Ordering::Relaxed);
                }
                if commons.is_open.load(Ordering::Relaxed) {
                    break;
                }
            }
            standing.has_read();
        },
        move |digest: Digest| at.borrow_mut().receive(digest),
    );
    let home = home.take();
    standing.shard((read.transactions, home.keys(), 0));
    Parts { read, kept, home, why }
}

/// The pieces of the parts that were read here, from what homes answered.
fn pieces(
    kept: Vec<Kept>,
    replies: Vec<(u64, (usize, Vec<u32>))>,
    layout: &Layout,
    homes: usize,
) -> Result<Vec<Piece>, Open> {
    let mut replies = replies.into_iter().peekable();
    let mut pieces = Vec::with_capacity(kept.len());
    for kept in kept {
        let mut by_home = vec![Vec::new(); homes];
        while let Some((_, (home, sources))) = replies.next_if(|(order, _)| *order == kept.order) {
            by_home[home] = sources;
        }
        pieces.push(kept.piece(layout, &by_home)?);
    }
    Ok(pieces)
}

/// The first worker of every process puts the graph together, for all of the process.
fn share_graph(
    worker: &mut Worker,
    commons: &Commons,
    place: Place,
    pieces: Vec<Piece>,
    sessions: u32,
    plan: Plan,
) -> Result<Arc<Graph>, Why> {
    let firsts = move |piece: Piece| {
        let base = u64::from(piece.base());
        let told = Told(Arc::new(piece));
        (0..place.processes).map(move |process| (process * place.workers, base, told.clone()))
    };
    let came = exchange(worker, pieces.into_iter().flat_map(firsts));
    let mut why = None;
    if place.worker == 0 {
        match Graph::new(came.iter().map(|(_, piece)| &*piece.0), sessions, plan) {
            Ok(graph) => *locked(&commons.graph) = Some(Arc::new(graph)),
            Err(open) => why = Some(Why::Open(open)),
        }
    }
    drop(came);
    first_of(everybody(worker, why))?;
    let graph = locked(&commons.graph).clone();
    let graph = graph.ok_or(Why::Interrupted);
    // Whoever needs it has it.
    everybody(worker, ());
    *locked(&commons.graph) = None;
    graph
}

/// The search for obligations.
struct Search<'a> {
    commons: &'a Commons,
    place: Place,
    plan: Plan,
    graph: &'a Arc<Graph>,
    lanes: &'a [Lanes],
}

impl Search<'_> {
    /// Edges that lead backward, or with regions all within them.
    fn run(&self, worker: &mut Worker, regions: Option<Arc<Regions>>) -> (Vec<(u32, u32)>, Option<Why>) {
        let doubts: Vec<Arc<Doubts>> = if self.plan.obliges() {
            let all = self.lanes.iter().map(|lanes| lanes.doubts(self.graph, regions.as_deref()));
            all.filter(|doubts| !doubts.is_empty()).map(Arc::new).collect()
        } else {
            Vec::new()
        };
        let found = if !self.plan.needs_clocks() {
            self.directly(&doubts, regions.as_deref())
        } else if everybody(worker, doubts.is_empty()).into_iter().all(|is_empty| is_empty) {
            Ok(Vec::new())
        } else {
            self.by_clocks(worker, &doubts, regions)
        };
        match found {
            Ok(edges) => (edges, None),
            Err(open) => (Vec::new(), Some(Why::Open(open))),
        }
    }

    fn directly(&self, doubts: &[Arc<Doubts>], regions: Option<&Regions>) -> Result<Vec<(u32, u32)>, Open> {
        let mut edges = Edges::new(regions);
        for doubts in doubts {
            doubts.oblige_direct(self.plan, self.graph, &mut edges)?;
        }
        Ok(edges.into_found())
    }

    fn by_clocks(
        &self,
        worker: &mut Worker,
        doubts: &[Arc<Doubts>],
        regions: Option<Arc<Regions>>,
    ) -> Result<Vec<(u32, u32)>, Open> {
        let Place { process, processes, worker: own, workers } = self.place;
        let mut found = Ok(Vec::new());
        for pass in 0..self.passes() {
            // 1. Some columns, to be seen by the workers of the process.
            let columns = Columns::new(self.graph, part_of(self.chains(process, pass), own, workers));
            {
                let mut all = locked(&self.commons.columns);
                all.resize(workers, None);
                all[own] = Some(Arc::new(columns));
            }
            everybody(worker, ());
            let columns: Vec<Arc<Columns>> =
                locked(&self.commons.columns).iter().flatten().cloned().collect();
            everybody(worker, ());
            locked(&self.commons.columns)[own] = None;
            // 2. Keys that live here.
            let mut edges = Edges::new(regions.as_deref());
            let oblige = |doubts: &Arc<Doubts>| doubts.oblige_causes(self.graph, &columns, &mut edges);
            let here = doubts.iter().try_for_each(oblige);
            note_found(&mut found, here.map(|()| edges.into_found()));
            // 3. Keys that live in other processes.
            if processes > 1 {
                let there = self.of_others(worker, doubts, columns, regions.clone());
                note_found(&mut found, there);
            }
        }
        found
    }

    /// Doubts go to one worker of every other process, and come from there.
    fn of_others(
        &self,
        worker: &mut Worker,
        doubts: &[Arc<Doubts>],
        columns: Vec<Arc<Columns>>,
        regions: Option<Arc<Regions>>,
    ) -> Result<Vec<(u32, u32)>, Open> {
        let found = Rc::new(RefCell::new(Ok(Vec::new())));
        let (into, graph, place) = (found.clone(), self.graph.clone(), self.place);
        stream(
            worker,
            |worker, sender| {
                for doubts in doubts {
                    let others = (0..place.processes).filter(|&process| process != place.process);
                    let parcels = others.map(|process| (place.in_process(process), Told(doubts.clone())));
                    sender.send(worker, parcels);
                    sender.wait(worker, DOUBTS_UNDER_WAY);
                }
            },
            move |Told(doubts): Told<Doubts>| {
                let mut edges = Edges::new(regions.as_deref());
                let done = doubts.oblige_causes(&graph, &columns, &mut edges);
                note_found(&mut into.borrow_mut(), done.map(|()| edges.into_found()));
            },
        );
        found.replace(Ok(Vec::new()))
    }

    /// The chains that a process looks at in a pass.
    fn chains(&self, process: usize, pass: u32) -> Range<u32> {
        let all = part_of(0..self.graph.chains(), process, self.place.processes);
        let at_once = Columns::AT_ONCE * self.place.workers as u32;
        let start = (all.start + pass * at_once).min(all.end);
        start..(start + at_once).min(all.end)
    }

    fn passes(&self) -> u32 {
        let most = self.graph.chains().div_ceil(self.place.processes as u32);
        most.div_ceil(Columns::AT_ONCE * self.place.workers as u32)
    }
}

/// How many parcels of a worker may be under way.
const DOUBTS_UNDER_WAY: u64 = 4;

/// A fair part of a range.
fn part_of(range: Range<u32>, number: usize, parts: usize) -> Range<u32> {
    let len = range.len();
    let at = |number: usize| range.start + (len * number / parts) as u32;
    at(number)..at(number + 1)
}

fn note_found(all: &mut Result<Vec<(u32, u32)>, Open>, more: Result<Vec<(u32, u32)>, Open>) {
    match (all.as_mut(), more) {
        (Ok(edges), Ok(more)) => edges.extend(more),
        (Ok(_), Err(open)) => *all = Err(open),
        (Err(_), _) => {}
    }
}
