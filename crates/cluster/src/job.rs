//! A check from end to end, as every worker does its part of it.

use crate::clocks::{self, Commons, Why};
use crate::components;
use crate::exchange::{everybody, exchange};
use crate::gather::{Census, gather};
use crate::greeting::Greeting;
use crate::ids::Ids;
use crate::monitor::Monitor;
use crate::setup::{Failure, Setup};
use crate::source::{Dealt, Share, deal, of_process};
use crate::spread::Plan;
use crate::timestamps::{Promise, Read, Report, replay};
use history::History;
use history::formats::{ReadError, ReadOptions, read_parts, read_path};
use isolation::{By, Claim, Level, Options, Outcome, Stats, Verdict, VerdictKind, Witness};
use replay::Finding;
use replay::shards::{self, Suspects, Whole};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use timely::worker::Worker;

/// What is checked.
#[derive(Clone, Debug)]
pub struct Job {
    /// Who works on it.
    pub setup: Setup,
    /// One history: a file, a folder of shards, or several of either.
    pub paths: Vec<PathBuf>,
    /// Whether processes share the input files.
    pub share: Share,
    /// What is asked.
    pub claim: Claim,
    /// Levels beside the table whose names transactions can have asked for.
    pub own_levels: Vec<Level>,
    /// How.
    pub options: Options,
    /// How files are read.
    pub reading: ReadOptions,
    /// Where workers say how far they are.
    pub monitor: Monitor,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The answer: every process knows it.
    pub verdict: VerdictKind,
    /// Transactions, operations and sessions that all processes read.
    pub size: (u64, u64, usize),
    /// How many transactions are committed.
    pub committed: u64,
    /// More, at process 0.
    pub found: Option<Found>,
}

/// What is known at process 0.
#[derive(Clone, Debug)]
pub struct Found {
    /// The outcome; none if every worker accepted what it had.
    pub outcome: Option<Outcome>,
    /// All violations, if timestamps decided.
    pub findings: Option<Vec<Finding>>,
    /// The transactions that they and the outcome speak of.
    pub history: History,
    /// What is to be said of how it was decided.
    pub note: Option<String>,
}

/// Checks a history. Every process of the cluster calls this.
pub fn check(mut job: Job) -> Result<Answer, Failure> {
    // A shard may hold nothing; whether the whole does, the answer tells.
    job.reading.allow_empty = true;
    job.options = job.claim.options(&job.options);
    let setup = job.setup.clone();
    let job = Arc::new(job);
    let commons = Commons::default();
    let greeting = job.greeting();
    setup.run(greeting, move |worker| {
        let answer = work(worker, &job, &commons);
        job.monitor.standing(worker.index()).is_done();
        answer
    })?
}

fn work(worker: &mut Worker, job: &Job, commons: &Commons) -> Result<Answer, Failure> {
    job.monitor.listen(worker);
    let dealt = deal(worker, job)?;
    let mut suspects = Suspects::default();
    let mut read = None;
    let mut census = None;
    let mut ids = Ids::default();
    let replayed = job.replayed();
    if let Some(level) = replayed {
        match shards::applies(level, &job.options) {
            Ok(()) => {
                let (report, counted) = settle(worker, job, level, &dealt, &mut ids)?;
                (suspects, census) = (report.suspects, Some(counted));
                read = Some(report.size);
            }
            Err(why) => suspects.whole = Some(why),
        }
        if let Some(read) = read.as_ref().filter(|_| suspects.is_empty()) {
            return Ok(Answer {
                verdict: VerdictKind::Accepted,
                size: (read.transactions, read.operations, read.sessions.len()),
                committed: read.committed,
                found: (worker.index() == 0).then(|| accepted(job.claim.level, level)),
            });
        }
    }
    // By results, timestamps are a hint: what their order does not explain, another may.
    if job.claim.by == By::Results {
        let components::Decided { read, found, verdict } =
            by_results(worker, job, commons, &dealt, &mut ids)?;
        let size = (read.transactions, read.operations, read.sessions.len());
        return Ok(Answer { verdict, size, committed: read.committed, found });
    }
    if replayed.is_none() {
        suspects.whole = Some(Whole::Level);
    }
    let gathered = gather(worker, job, &dealt, &suspects, census, &mut ids);
    let decided = gathered.map(|history| history.map(|history| decide(job, history, &suspects)));
    let (verdict, size) = tell(worker, &decided)?;
    let found = decided?;
    let (size, committed) = match read {
        Some(read) => ((read.transactions, read.operations, read.sessions.len()), read.committed),
        None => ((size.0, size.1, size.2), size.3),
    };
    Ok(Answer { verdict, size, committed, found })
}

/// All workers together, where the level and the history are such; else component by component.
fn by_results(
    worker: &mut Worker,
    job: &Job,
    commons: &Commons,
    dealt: &[Dealt],
    ids: &mut Ids,
) -> Result<components::Decided, Failure> {
    let Some(plan) = Plan::of(job.claim.level, &job.options) else {
        return components::decide(worker, job, dealt, ids);
    };
    let why = match clocks::accept(worker, job, commons, plan, dealt, ids) {
        Ok(decided) => return Ok(decided),
        Err(Why::Refused(why)) => return Err(Failure::Input(why)),
        Err(why) => why,
    };
    let mut decided = components::decide(worker, job, dealt, ids)?;
    if let Some(note) = decided.found.as_mut().and_then(|found| found.note.as_mut()) {
        *note = format!("not settled by all workers together: {}; {note}", why.why());
    }
    Ok(decided)
}

/// What is known when every worker accepted.
fn accepted(asked: Level, replayed: Level) -> Found {
    let found = Found { outcome: None, findings: Some(Vec::new()), history: History::default(), note: None };
    if asked == replayed {
        return found;
    }
    let verdict = Verdict::Accepted(Witness::default());
    Found {
        outcome: Some(Outcome { verdict, stats: Stats::default() }),
        findings: None,
        note: Some(format!("by the database's timestamps {replayed} holds, which implies {asked}")),
        ..found
    }
}

/// Replays in shards; what all workers found out together.
fn settle(
    worker: &mut Worker,
    job: &Job,
    level: Level,
    dealt: &[Dealt],
    ids: &mut Ids,
) -> Result<(Report, Census), Failure> {
    let mut promise = Promise::first(worker.peers());
    loop {
        let (report, census) = replay(worker, job, level, dealt, promise, ids);
        let mut all = Report::default();
        for (number, report) in everybody(worker, report).into_iter().enumerate() {
            if let Some(error) = report.error {
                return Err(Failure::Input(of_process(job, number / job.setup.workers, &error)));
            }
            all.limit = all.limit.or(report.limit);
            all.suspects.extend(report.suspects);
            all.size.extend(report.size);
            all.is_disordered |= report.is_disordered;
            all.level = all.level.or(report.level);
        }
        if let Some(why) = all.limit {
            return Err(limit(&why, &all.size));
        }
        if !all.is_disordered {
            ids.unite(worker, job, dealt)?;
            return Ok((all, census));
        }
        promise = promise.smaller();
    }
}

/// A limit was reached while files were read.
pub(crate) fn limit(why: &str, read: &Read) -> Failure {
    Failure::Limit(format!("{why} while reading ({} transactions so far)", read.transactions))
}

/// Decides by timestamps what was gathered.
fn decide(job: &Job, history: History, suspects: &Suspects) -> Found {
    let note = suspects
        .whole
        .as_ref()
        .map(|why| format!("decided on one machine, which holds the whole history: {}", why.why()));
    let (outcome, findings) = shards::conclude(&history, job.claim.level, &job.options, suspects);
    Found { outcome: Some(outcome), findings: Some(findings), history, note }
}

type Size = (u64, u64, usize, u64);

/// Worker 0 tells all what came of it.
fn tell(
    worker: &mut Worker,
    decided: &Result<Option<Found>, Failure>,
) -> Result<(VerdictKind, Size), Failure> {
    let told = match decided {
        Ok(None) => None,
        Ok(Some(found)) => {
            let history = &found.history;
            let committed = history.transactions().filter(|txn| txn.is_committed()).count() as u64;
            let size = (history.len() as u64, history.op_count() as u64, history.sessions().len(), committed);
            let outcome = found.outcome.as_ref();
            Some(Ok((outcome.map_or(VerdictKind::Accepted, |outcome| outcome.verdict.kind()), size)))
        }
        Err(error) => Some(Err(error.to_string())),
    };
    let peers = worker.peers();
    let items = told.into_iter().flat_map(|told| (0..peers).map(move |to| (to, 0, told.clone())));
    let came = exchange(worker, items.collect::<Vec<_>>());
    let first: Option<Result<(VerdictKind, Size), String>> = came.into_iter().next().map(|(_, told)| told);
    match first {
        Some(Ok(told)) => Ok(told),
        Some(Err(error)) => Err(Failure::Input(error)),
        None => Err(Failure::Worker("worker 0 returned no verdict".to_owned())),
    }
}

impl Job {
    /// What all processes must agree on.
    fn greeting(&self) -> Greeting {
        let Claim { level, by, ryow, clock_skew, mixed, vendor } = self.claim;
        let greeting = Greeting::new("check");
        if self.setup.processes() == 1 {
            return greeting;
        }
        let vendor = vendor.map_or("none".to_owned(), |it| format!("{} {}", it.database, it.level));
        let format = self.reading.format.map_or("detected", |format| format.name());
        let shards = match self.share {
            Share::All => "shared",
            Share::Own => "own",
        };
        greeting
            .with("the level", level)
            .with("--by", by.name())
            .with("--ryow", ryow.name())
            .with("--clock-skew", clock_skew)
            .with("--mixed", mixed)
            .with("--profile", vendor)
            .with("--lenient", self.reading.lenient)
            .with("--format", format)
            .with("--shards", shards)
            .with_files(&self.paths, self.share)
    }

    /// Why a part is refused: a transaction asked for less than the claim.
    pub(crate) fn refused(&self, part: &History) -> Option<String> {
        let (txn, asked) = self.claim.unpromised(part, |name| self.level(name))?;
        // Places in the session are not known yet.
        let who = match txn.explicit_id() {
            Some(id) => format!("transaction {id}"),
            None => format!("a transaction of session {}", part.sessions().get(txn.session())),
        };
        Some(format!(
            "{}{who} asked for {asked}, which does not promise {}: --mixed holds each transaction to the level it asked for",
            self.paths.first().map(|path| format!("{}: ", path.display())).unwrap_or_default(),
            self.claim.level_name()
        ))
    }

    /// The level of a name.
    fn level(&self, name: &str) -> Option<Level> {
        let mut own = self.own_levels.iter().copied();
        let own = own.find(|level| level.row().is_some_and(|row| row.is_called(name)));
        own.or_else(|| Level::parse(name).ok())
    }

    /// The level that is replayed by timestamps, if any is.
    pub(crate) fn replayed(&self) -> Option<Level> {
        match self.claim.by {
            By::Timestamps => Some(self.claim.level).filter(|&level| replay::decides(level)),
            By::Results => checker::hint(&self.claim, &self.options),
        }
    }

    /// What is wrong with a file, told as when it is read whole: with its line.
    pub(crate) fn plain_error(&self, path: &Path, error: &ReadError) -> String {
        let plain = match path.is_dir() {
            true => Ok(false),
            false => read_parts(path, &self.reading, |_| true),
        };
        let plain = match plain {
            Ok(true) => None,
            Ok(false) => read_path(path, &self.reading).err(),
            Err(error) => Some(error),
        };
        plain.as_ref().unwrap_or(error).to_string()
    }
}
