//! The replay by timestamps as a dataflow.
//!
//! **What.** Every worker reads its stretches, makes digests and sends each to the worker where its keys live, at a logical
//! time that is its first commit. A worker replays what committed before the frontier: Timely says when nothing earlier
//! can come from anybody. So commits are in order without a sort of the whole, and a worker holds its keys, the versions
//! that somebody may still look at, and the digests between the frontier and the fastest reader.
//!
//! **Promises.** Histories are written as transactions end, so their commits are nearly in order. One of several readers
//! promises after a part that nothing will come of it that committed before the part's last commit: its next part is not
//! the next of the file. A reader that cannot keep its promise stops, and the replay begins anew, with a smaller one
//! ([`Promise`]): the last commit of the part *before*, as a reader alone does from the beginning; for shards by session,
//! which are all of the same time, that for each file, and these are then read in turn; at last none at all, so that
//! everything waits until all is read. **Back-pressure.** A reader that is a part a file ahead of the frontier waits.

use crate::gather::Census;
use crate::ids::Ids;
use crate::job::Job;
use crate::monitor::Standing;
use crate::source::{Dealt, PARTS_MAX};
use history::History;
use isolation::Level;
use replay::shards::{Digest, Digested, Ends, Label, Sessions, Shard, Suspects, digest};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::{Operator, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

/// What goes from a reader to where it is checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Parcel {
    Digest(Box<Digest>),
    Ends(u32, Vec<Ends>),
}

impl Parcel {
    fn to(&self) -> u64 {
        match self {
            Self::Digest(digest) => digest.home.into(),
            Self::Ends(to, _) => (*to).into(),
        }
    }

    fn arrive(self, shard: &mut Shard, sessions: &mut Sessions) {
        match self {
            Self::Digest(digest) => shard.receive(*digest),
            Self::Ends(_, ends) => ends.into_iter().for_each(|ends| sessions.receive(ends)),
        }
    }
}

/// What a worker found out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) suspects: Suspects,
    /// Whether a promise was not kept.
    pub(crate) is_disordered: bool,
    /// Why a file could not be read.
    pub(crate) error: Option<String>,
    /// Why it gave up.
    pub(crate) limit: Option<String>,
    pub(crate) size: Read,
    /// The level in the header, where there is one.
    pub(crate) level: Option<String>,
}

/// What was read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Read {
    pub(crate) transactions: u64,
    pub(crate) operations: u64,
    pub(crate) committed: u64,
    pub(crate) sessions: rustc_hash::FxHashSet<Label>,
}

impl Read {
    pub(crate) fn add(&mut self, part: &History) {
        self.transactions += part.len() as u64;
        self.operations += part.op_count() as u64;
        for id in part.sessions().ids() {
            let label = Label::from(part.sessions().get(id));
            if !self.sessions.contains(&label) {
                self.sessions.insert(label);
            }
        }
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.transactions += other.transactions;
        self.operations += other.operations;
        self.committed += other.committed;
        self.sessions.extend(other.sessions);
    }
}

/// A commit as a logical time: the same order, without negative numbers.
fn time_of(physical: i64) -> u64 {
    (physical as u64) ^ (1 << 63)
}

fn commit_of(time: u64) -> i64 {
    (time ^ (1 << 63)) as i64
}

/// How long a worker sleeps when it has nothing to do but wait for others.
const NAP: Duration = Duration::from_millis(5);

/// What a reader promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// Its stretches, one after the other, are in the order of commits.
    Now,
    /// About so: none begins before the end of the one before the last.
    Later,
    /// The stretches of each file are about so.
    EachFile,
    /// Nothing.
    Nothing,
}

impl Promise {
    /// What to promise at first, as one of so many.
    pub(crate) fn first(readers: usize) -> Self {
        if readers > 1 { Self::Now } else { Self::Later }
    }

    /// What to promise when this could not be kept.
    pub(crate) fn smaller(self) -> Self {
        match self {
            Self::Now => Self::Later,
            Self::Later => Self::EachFile,
            Self::EachFile | Self::Nothing => Self::Nothing,
        }
    }
}

/// Checks by timestamps as far as that is possible in shards.
pub(crate) fn replay(
    worker: &mut Worker,
    job: &Job,
    level: Level,
    dealt: &[Dealt],
    promise: Promise,
    ids: &mut Ids,
) -> (Report, Census) {
    ids.begin();
    let standing = job.monitor.standing(worker.index());
    let home = Home::new(level);
    let (input, probe) = home.receive(worker, standing.clone());
    let mut reader = Reader::new(level, promise, Sender { input, probe: probe.clone() }, standing.clone());
    reader.read(worker, job, dealt, ids);
    let (mut report, census) = reader.finish();
    standing.has_read();
    worker.step_or_park_while(Some(NAP), || !probe.done());
    home.finish(level, &mut report);
    (report, census)
}

/// What lives at a worker: its keys, and its sessions.
struct Home {
    shard: Rc<RefCell<Shard>>,
    sessions: Rc<RefCell<Sessions>>,
}

impl Home {
    fn new(level: Level) -> Self {
        Self {
            shard: Rc::new(RefCell::new(Shard::new(level))),
            sessions: Rc::new(RefCell::new(Sessions::new(level))),
        }
    }

    /// The dataflow: parcels go where they live, and what committed before the frontier is replayed.
    fn receive(&self, worker: &mut Worker, standing: Standing) -> (Input, ProbeHandle<u64>) {
        let mut input = Input::new_with_builder();
        let probe = ProbeHandle::new();
        let (shard, sessions) = (self.shard.clone(), self.sessions.clone());
        worker.dataflow::<u64, _, _>(|scope| {
            input
                .to_stream(scope)
                .unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                    Exchange::new(Parcel::to),
                    "Replay",
                    |_, _| {
                        move |(input, frontier), _| {
                            let (mut shard, mut sessions) = (shard.borrow_mut(), sessions.borrow_mut());
                            input.for_each_time(|_, containers| {
                                for parcel in containers.flat_map(|container| container.drain(..)) {
                                    parcel.arrive(&mut shard, &mut sessions);
                                }
                            });
                            shard.settle(frontier.frontier().first().map(|&time| commit_of(time)));
                            standing.shard(shard.size());
                        }
                    },
                )
                .probe_with(&probe);
        });
        (input, probe)
    }

    /// When everything has come: what is not settled.
    fn finish(self, level: Level, report: &mut Report) {
        // The dataflow may still hold its ends.
        let shard = self.shard.replace(Shard::new(level));
        report.is_disordered |= shard.is_disordered();
        shard.finish(&mut report.suspects);
        self.sessions.replace(Sessions::new(level)).finish(&mut report.suspects);
    }
}

/// Stretches that are in the order of commits among themselves.
struct Run {
    /// How many are still to be read.
    left: usize,
    /// What was promised, and the last commit of all.
    last: [i64; 2],
}

type Input = InputHandle<u64, CapacityContainerBuilder<Vec<Parcel>>>;

/// Where parcels go, and how far everybody is.
struct Sender {
    input: Input,
    probe: ProbeHandle<u64>,
}

struct Reader {
    level: Level,
    promise: Promise,
    report: Report,
    census: Census,
    /// The times of parts that were sent.
    ahead: VecDeque<u64>,
    runs: Vec<Run>,
    sender: Sender,
    standing: Standing,
}

impl Reader {
    fn new(level: Level, promise: Promise, sender: Sender, standing: Standing) -> Self {
        Self {
            level,
            promise,
            report: Report::default(),
            census: Census::default(),
            ahead: VecDeque::new(),
            runs: Vec::new(),
            sender,
            standing,
        }
    }

    /// Nothing more will be sent.
    fn finish(self) -> (Report, Census) {
        self.sender.input.close();
        (self.report, self.census)
    }

    /// Reads the stretches of this worker, part by part.
    fn read(&mut self, worker: &mut Worker, job: &Job, dealt: &[Dealt], ids: &mut Ids) {
        for (run, number) in self.plan(dealt) {
            let dealt = &dealt[number];
            let mut part_number = 0;
            let result = dealt.stretch.read(&job.reading, |part| {
                let order = dealt.order + (part_number % PARTS_MAX);
                part_number += 1;
                self.census.count(dealt.order, &part);
                ids.take(&part);
                self.part(worker, job, part, (order, run));
                !self.is_stopped()
            });
            if let Err(error) = result {
                self.report.error = Some(job.plain_error(&dealt.stretch.path, &error));
            }
            self.is_over(run);
            if self.is_stopped() {
                return;
            }
        }
    }

    fn is_stopped(&self) -> bool {
        let Report { error, limit, is_disordered, .. } = &self.report;
        error.is_some() || limit.is_some() || *is_disordered
    }

    /// Sends a part, and lets this worker work; none of the next while the frontier is too far behind.
    fn part(&mut self, worker: &mut Worker, job: &Job, part: History, place: (u64, usize)) {
        self.report.error = job.refused(&part);
        self.send(worker, &part, place);
        drop(part);
        worker.step();
        self.wait(worker);
        if self.report.error.is_none() {
            self.report.limit = job.options.budget.exhausted().map(|why| why.to_string());
        }
    }

    /// In what order stretches are read: of each its run, and its place among those that were dealt.
    fn plan(&mut self, dealt: &[Dealt]) -> Vec<(usize, usize)> {
        let mut order: Vec<(usize, usize, usize)> = Vec::with_capacity(dealt.len());
        let mut file = None;
        for (number, dealt) in dealt.iter().enumerate() {
            let is_new = file != Some(&dealt.stretch.path) && self.promise == Promise::EachFile;
            if is_new || self.runs.is_empty() {
                self.runs.push(Run { left: 0, last: [i64::MIN; 2] });
            }
            file = Some(&dealt.stretch.path);
            let run = self.runs.len() - 1;
            order.push((self.runs[run].left, run, number));
            self.runs[run].left += 1;
        }
        // The first of every run, then the second, and so on.
        order.sort_unstable();
        order.into_iter().map(|(_, run, number)| (run, number)).collect()
    }

    /// A stretch of a run was read.
    fn is_over(&mut self, run: usize) {
        self.runs[run].left -= 1;
        if self.runs[run].left == 0 {
            self.runs[run].last = [i64::MAX; 2];
        }
    }

    fn send(&mut self, worker: &Worker, part: &History, (order, run): (u64, usize)) {
        let shards = worker.peers();
        let Digested { digests, ends, suspects, commits, committed } =
            digest(part, order, shards, self.level);
        self.report.size.add(part);
        self.report.size.committed += committed;
        if self.report.level.is_none() {
            self.report.level = part.level().map(str::to_owned);
        }
        self.report.suspects.extend(suspects);
        self.standing.read(part.len(), part.op_count());
        for digest in digests.into_iter().filter(|digest| !digest.is_empty()) {
            self.standing.sent(digest.bytes());
            self.sender.input.send(Parcel::Digest(Box::new(digest)));
        }
        let mut by_home: Vec<Vec<Ends>> = vec![Vec::new(); shards];
        ends.into_iter().for_each(|ends| by_home[ends.home(shards)].push(ends));
        for (home, ends) in (0..).zip(by_home).filter(|(_, ends)| !ends.is_empty()) {
            self.sender.input.send(Parcel::Ends(home, ends));
        }
        if let Some((first, last)) = commits {
            self.keep_promise(run, first.physical, last.physical);
        }
        if self.promise != Promise::Nothing {
            let promise = self.promised().max(*self.sender.input.time());
            self.sender.input.advance_to(promise);
            self.ahead.push_back(promise);
        }
        self.sender.input.flush();
    }

    /// A part of a run commits from `first` to `last`.
    fn keep_promise(&mut self, run: usize, first: i64, last: i64) {
        let before = &mut self.runs[run].last;
        self.report.is_disordered |= self.promise != Promise::Nothing && first < before[0];
        let last = before[1].max(last);
        *before = [if self.promise == Promise::Now { last } else { before[1] }, last];
    }

    /// Nothing earlier will come.
    fn promised(&self) -> u64 {
        time_of(self.runs.iter().map(|run| run.last[0]).min().unwrap_or(i64::MIN))
    }

    /// Waits while the frontier is too far behind.
    fn wait(&mut self, worker: &mut Worker) {
        while self.ahead.len() > self.runs.len() {
            let Some(&time) = self.ahead.front() else { return };
            worker.step_or_park_while(Some(NAP), || self.sender.probe.less_than(&time));
            self.ahead.pop_front();
        }
    }
}
