//! The simulated database: sessions that take turns at random on one multi-version store.
//!
//! **What.** A turn is one request of one session: begin, an operation, commit, or the arrival of the
//! answer. Which session is next is drawn at random, so transactions interleave operation by operation.
//! Everything is a function of the configuration: same seed, same history, byte for byte.
//!
//! **Levels.** Changes are kept aside until commit, then take effect at once.
//! * read-committed: a read sees the newest committed state at its own time; nothing else is asked.
//! * snapshot isolation: a read sees the state at the transaction's first operation; commit is refused if
//!   another transaction has committed a write to the same key since (first committer wins).
//! * serializable: a read sees the same snapshot; commit is refused if anything read (key, range or
//!   filter) would be read differently now, or, as an alternative, if it could close a cycle
//!   (`certify.rs` has both).
//! * strict: the same, and snapshots are never old.
//!
//! **Cost.** A turn is constant work but for scans and filters; about two million turns a second and
//! core. Memory is bounded by keys, sessions and the versions between the oldest open snapshot and now.

use crate::bugs::Bug;
use crate::certify::Certifier;
use crate::claims::{Change, Claims};
use crate::executed::Executed;
use crate::keys::Key;
use crate::plan::{SessionPlan, Settings, SettingsError, Template};
use crate::planting::{Plant, Planted, Schedule};
use crate::random::Random;
use crate::running::Running;
use crate::store::{Stamp, Store};
use crate::workloads::Workload;
use history::{Span, Status};
use std::collections::VecDeque;

/// How much the simulated database promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Strength {
    /// Reads see committed values.
    ReadCommitted,
    /// Reads see one snapshot, the first committer wins.
    SnapshotIsolation,
    /// Some serial order explains everything.
    Serializable,
    /// And it agrees with real time.
    Strict,
}

impl Strength {
    /// All of them, from weak to strong.
    pub const ALL: [Self; 4] =
        [Self::ReadCommitted, Self::SnapshotIsolation, Self::Serializable, Self::Strict];

    /// The name in a target.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadCommitted => "read-committed",
            Self::SnapshotIsolation => "snapshot-isolation",
            Self::Serializable => "serializable",
            Self::Strict => "strict",
        }
    }

    /// The level that it promises, by its name in the levels table.
    pub fn promise(self) -> &'static str {
        match self {
            Self::Strict => "strict-serializable",
            other => other.name(),
        }
    }
}

/// How a serializable database decides on commits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Certification {
    /// All that was read would be read again at commit: commit order is a serial order, and the database
    /// timestamps tell it.
    #[default]
    CommitOrder,
    /// No transaction both misses a write and overwrites a read in the way that cycles need. Serial order
    /// and commit order differ.
    Conflicts,
}

/// What to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What clients want.
    pub plan: Settings,
    /// What the database promises.
    pub strength: Strength,
    /// How it keeps its promise, if it is serializable.
    pub certification: Certification,
    /// How many transactions to record.
    pub transactions: u64,
    /// How many transactions are aborted for no reason of their own.
    pub abort_rate: f64,
    /// How many transactions lose their connection: the client never learns what became of them.
    pub unknown_rate: f64,
    /// How many snapshots are old ones. At serializable only transactions that do not write get them.
    pub lag: f64,
    /// How old, in commits.
    pub lag_max: u64,
    /// How much the clocks of two clients may differ, in nanoseconds.
    pub clock_skew: i64,
    /// Whether the clients' clocks around every operation are kept, beside those around transactions.
    pub op_clocks: bool,
    /// How many sessions have a transaction open at a time; 0: all.
    pub concurrency: u32,
    /// Whether aborted transactions are recorded.
    pub record_aborted: bool,
    /// Which bugs the database has, and how often they show.
    pub bugs: Vec<(Bug, Plant)>,
}

impl Config {
    /// A healthy database of some strength, and nothing but commits and conflicts.
    pub fn new(plan: Settings, strength: Strength, transactions: u64) -> Self {
        Self {
            plan,
            strength,
            certification: Certification::default(),
            transactions,
            abort_rate: 0.0,
            unknown_rate: 0.0,
            lag: 0.0,
            lag_max: 100,
            clock_skew: 0,
            op_clocks: false,
            concurrency: 0,
            record_aborted: true,
            bugs: Vec::new(),
        }
    }

    /// Refuses what cannot be simulated.
    pub fn validate(&self) -> Result<(), SettingsError> {
        self.plan.validate()?;
        let refuse = |setting, problem: String| Err(SettingsError { setting, problem });
        for (setting, rate) in
            [("abort-rate", self.abort_rate), ("unknown-rate", self.unknown_rate), ("lag", self.lag)]
        {
            if !(0.0..=1.0).contains(&rate) {
                return refuse(setting, format!("{rate} is not a share between 0 and 1"));
            }
        }
        if self.plan.keys > KEYS_MAX {
            return refuse("keys", format!("{}; the simulated store holds up to {KEYS_MAX}", self.plan.keys));
        }
        if self.abort_rate + self.unknown_rate > 1.0 {
            return refuse("abort-rate", "more than everything is aborted or unknown".to_owned());
        }
        if self.abort_rate >= 1.0 && !self.record_aborted {
            return refuse("abort-rate", "everything is aborted and aborts are not recorded".to_owned());
        }
        if !(0..=1_000_000_000_000).contains(&self.clock_skew) {
            return refuse("clock-skew", format!("{} ns is not between 0 and 1000 s", self.clock_skew));
        }
        if self.lag > 0.0 && matches!(self.strength, Strength::Strict | Strength::ReadCommitted) {
            let name = self.strength.name();
            return refuse("lag", format!("a {name} database does not read old snapshots"));
        }
        for &(bug, plant) in &self.bugs {
            if let Plant::Rate(rate) = plant
                && !(0.0..=1.0).contains(&rate)
            {
                return refuse("rate", format!("{rate} is not a share between 0 and 1"));
            }
            if bug.sessions() > self.plan.sessions {
                let problem = format!("{} needs {} sessions", bug.name(), bug.sessions());
                return refuse("sessions", problem);
            }
            if self.plan.keys < 2 {
                return refuse("keys", format!("{} needs two keys", bug.name()));
            }
        }
        Ok(())
    }
}

/// What a simulation did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Transactions that the client saw commit.
    pub committed: u64,
    /// Transactions refused at commit because of others.
    pub conflicts: u64,
    /// Transactions aborted at random or by a script.
    pub aborted: u64,
    /// Transactions whose outcome the client never learnt.
    pub unknown: u64,
    /// Those of unknown outcome that took effect.
    pub unknown_effective: u64,
    /// Every bug that was planted, with the transactions that show it.
    pub planted: Vec<Planted>,
}

/// A running simulation: hands out finished transactions one after the other.
pub struct Simulation {
    pub(crate) config: Config,
    pub(crate) store: Store,
    pub(crate) random: Random,
    /// Real time, in nanoseconds. Clients' clocks differ from it.
    pub(crate) clock: i64,
    /// The last stamp given out.
    pub(crate) stamp: Stamp,
    pub(crate) sessions: Vec<Session>,
    /// Sessions that take turns, and those that wait until another one finishes.
    active: Vec<u32>,
    idle: Vec<u32>,
    open_max: u32,
    /// Transactions, finished ones included until they are handed out.
    pub(crate) running: Vec<Running>,
    free: Vec<u32>,
    pub(crate) finished: VecDeque<u32>,
    handed_out: Option<u32>,
    /// Transactions that their client gave up on and that the database has not finished yet.
    limbo: Vec<(i64, Claims)>,
    certifier: Certifier,
    commits_until_sweep: u32,
    /// Lists below this key were no longer in use at the last sweep.
    lists_left_behind: u32,
    /// How many transactions of the plan are still to begin.
    left: u64,
    begun: u64,
    pub(crate) schedule: Schedule,
    pub(crate) parked: Vec<u32>,
    pub(crate) summary: Summary,
}

pub(crate) struct Session {
    plan: SessionPlan,
    phase: Phase,
    /// The transaction it is in.
    current: u32,
    /// How much its clock is ahead.
    pub(crate) clock_ahead: i64,
    pub(crate) recorded: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    Open,
    /// The database is done; the answer is on its way.
    Answering,
}

/// What happens to a transaction beside conflicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Commit,
    /// The database gives up before this step.
    AbortBefore(usize),
    /// The connection breaks during this step; its result is lost, and nothing takes effect.
    LostDuring(usize),
    /// The connection breaks during commit; it takes effect after so many nanoseconds, or never.
    LostAtCommit(Option<i64>),
}

/// A key of the simulated store takes 32 bytes, whether it is written or not: 2 GiB of them.
const KEYS_MAX: u32 = 1 << 26;
/// How many commits lie between two sweeps of old versions.
const SWEEP_COMMITS: u32 = 256;
/// An unknown transaction takes effect within this time.
const LIMBO_MAX_NS: u64 = 20_000;

impl Simulation {
    /// Prepares a simulation.
    pub fn new(config: Config) -> Result<Self, SettingsError> {
        config.validate()?;
        let mut random = Random::stream(config.plan.seed, SCHEDULER_STREAM);
        let mut sessions = Vec::new();
        for number in 0..config.plan.sessions {
            let clock_ahead = random.below(config.clock_skew as u64 + 1) as i64;
            let plan = SessionPlan::new(&config.plan, number)?;
            sessions.push(Session { plan, phase: Phase::Idle, current: 0, clock_ahead, recorded: 0 });
        }
        let schedule = Schedule::new(&config, &mut random)?;
        let open = match config.concurrency {
            0 => config.plan.sessions,
            some => some.min(config.plan.sessions),
        };
        let mut store = Store::new(config.plan.keys, config.plan.initial_rows());
        if config.plan.workload.has_filters() {
            store.index_columns(config.plan.column_size());
        }
        Ok(Self {
            store,
            random,
            clock: 0,
            stamp: Stamp(0),
            active: (0..open).collect(),
            idle: (open..config.plan.sessions).collect(),
            open_max: open,
            sessions,
            running: Vec::new(),
            free: Vec::new(),
            finished: VecDeque::new(),
            handed_out: None,
            limbo: Vec::new(),
            certifier: Certifier::new(&config),
            commits_until_sweep: SWEEP_COMMITS,
            lists_left_behind: 0,
            left: config.transactions - schedule.transactions(),
            begun: 0,
            schedule,
            parked: Vec::new(),
            summary: Summary::default(),
            config,
        })
    }

    /// What is simulated.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What happened so far.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The next finished transaction, or `None` at the end. Transactions of one session come in session
    /// order.
    pub fn next_transaction(&mut self) -> Option<&Executed> {
        if let Some(place) = self.handed_out.take() {
            self.free.push(place);
        }
        loop {
            if let Some(place) = self.finished.pop_front() {
                self.handed_out = Some(place);
                return Some(&self.running[place as usize].executed);
            }
            if self.active.is_empty() {
                return None;
            }
            self.turn();
        }
    }

    /// One request of one session.
    fn turn(&mut self) {
        let bits = self.random.bits();
        self.clock += 1 + (bits & 0x3ff) as i64;
        let slot = (((bits >> 32) * self.active.len() as u64) >> 32) as usize;
        let session = self.active[slot];
        if self.commits_until_sweep == 0 {
            self.commits_until_sweep = SWEEP_COMMITS;
            self.sweep();
        }
        if !self.limbo.is_empty() {
            self.settle_limbo();
        }
        match self.sessions[session as usize].phase {
            Phase::Idle => self.begin_or_leave(slot),
            Phase::Open => self.request(session),
            Phase::Answering => {
                self.answer(session);
                self.clock += 1;
                self.hand_over(slot);
            }
        }
    }

    /// After a transaction: the session goes on, or makes room for one that waited.
    fn hand_over(&mut self, slot: usize) {
        if !self.idle.is_empty() {
            let next = self.random.below(self.idle.len() as u64) as usize;
            std::mem::swap(&mut self.active[slot], &mut self.idle[next]);
        }
        self.begin_or_leave(slot);
    }

    /// Begins the session's next transaction; or makes it take part in a script that is due; or, when all
    /// transactions have begun, ends the session.
    fn begin_or_leave(&mut self, slot: usize) {
        let session = self.active[slot];
        if let Some(actors) = self.schedule.due(self.begun, self.config.plan.sessions) {
            self.active.swap_remove(slot);
            self.parked.push(session);
            if self.parked.len() == actors {
                self.play_script();
                self.release_parked();
            } else if self.active.is_empty() {
                self.active.extend(self.idle.pop());
            }
            return;
        }
        if self.left == 0 {
            self.active.swap_remove(slot);
            return;
        }
        self.left -= 1;
        self.begun += 1;
        let place = self.open(session);
        let fate = self.draw_fate(place);
        self.running[place as usize].fate = fate;
        let state = &mut self.sessions[session as usize];
        state.phase = Phase::Open;
        state.current = place;
    }

    /// Sessions that played go on, as many as may be open at a time.
    fn release_parked(&mut self) {
        while let Some(session) = self.parked.pop() {
            let crowded = self.active.len() as u32 >= self.open_max;
            let list = if crowded { &mut self.idle } else { &mut self.active };
            list.push(session);
        }
    }

    /// A transaction record for a session, with a template where it is one of the plan.
    fn open(&mut self, session: u32) -> u32 {
        let place = self.vacant();
        let running = &mut self.running[place as usize];
        let state = &mut self.sessions[session as usize];
        state.plan.next(&mut running.template);
        running.executed.reset(session, self.clock + state.clock_ahead);
        place
    }

    pub(crate) fn vacant(&mut self) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.running.push(Running {
                template: Template::default(),
                next_step: 0,
                has_snapshot: false,
                answered: 0,
                fate: Fate::Commit,
                claims: Claims::default(),
                executed: Executed::new(),
                matched: Vec::new(),
            });
            self.running.len() as u32 - 1
        });
        let running = &mut self.running[place as usize];
        running.next_step = 0;
        running.has_snapshot = false;
        running.answered = self.clock;
        running.fate = Fate::Commit;
        running.claims.clear();
        place
    }

    fn draw_fate(&mut self, place: u32) -> Fate {
        let config = &self.config;
        if config.abort_rate == 0.0 && config.unknown_rate == 0.0 {
            return Fate::Commit;
        }
        let steps = self.running[place as usize].template.steps.len() as u64;
        let dice = self.random.unit();
        if dice < config.abort_rate {
            Fate::AbortBefore(self.random.between(1, steps.max(1)) as usize)
        } else if dice < config.abort_rate + config.unknown_rate {
            match self.random.below(4) {
                0 => Fate::LostDuring(self.random.below(steps) as usize),
                1 => Fate::LostAtCommit(None),
                _ => Fate::LostAtCommit(Some(self.random.below(LIMBO_MAX_NS) as i64)),
            }
        } else {
            Fate::Commit
        }
    }

    /// The session's next operation, or its commit.
    fn request(&mut self, session: u32) {
        let place = self.sessions[session as usize].current;
        if !self.running[place as usize].has_snapshot {
            self.take_snapshot(place);
        }
        let running = &mut self.running[place as usize];
        if running.fate == Fate::AbortBefore(running.next_step) {
            self.summary.aborted += 1;
            return self.conclude(session, Status::Aborted);
        }
        let Some(&step) = running.template.steps.get(running.next_step) else {
            return self.commit(session);
        };
        let lost = running.fate == Fate::LostDuring(running.next_step);
        let ops = running.executed.ops.len();
        running.next_step += 1;
        running.execute(&self.store, step);
        let operated = running.executed.ops.len() > ops;
        if self.config.op_clocks && operated {
            let ahead = self.sessions[session as usize].clock_ahead;
            let span = Span { begin: running.answered + ahead, end: self.clock + ahead };
            running.executed.times.push(span);
            running.answered = self.clock + 1;
        }
        if lost {
            if operated {
                running.executed.lose_last_result();
            }
            self.summary.unknown += 1;
            self.conclude(session, Status::Unknown);
        }
    }

    fn take_snapshot(&mut self, place: u32) {
        let old = self.config.lag > 0.0 && self.random.chance(self.config.lag);
        let running = &mut self.running[place as usize];
        running.has_snapshot = true;
        let may_be_old = match self.config.strength {
            Strength::SnapshotIsolation => true,
            Strength::Serializable => running.template.is_read_only(),
            Strength::ReadCommitted | Strength::Strict => false,
        };
        self.stamp = self.stamp.next();
        let mut start = self.stamp;
        if old && may_be_old {
            start.0 -= self.random.below(self.config.lag_max.saturating_mul(2)).min(start.0);
        }
        running.claims.snapshot = match self.config.strength {
            Strength::ReadCommitted => Stamp::LATEST,
            _ => start,
        };
        running.executed.db = Some((start.0, start.0));
    }

    fn commit(&mut self, session: u32) {
        let place = self.sessions[session as usize].current;
        match self.running[place as usize].fate {
            Fate::LostAtCommit(None) => {
                self.summary.unknown += 1;
                self.conclude(session, Status::Unknown);
            }
            Fate::LostAtCommit(Some(delay)) => {
                let claims = std::mem::take(&mut self.running[place as usize].claims);
                self.limbo.push((self.clock + delay, claims));
                self.summary.unknown += 1;
                self.conclude(session, Status::Unknown);
            }
            _ => match self.certify(place) {
                Some(stamp) => {
                    if let (Some((_, commit)), Some(stamp)) =
                        (&mut self.running[place as usize].executed.db, stamp)
                    {
                        *commit = stamp.0;
                    }
                    self.summary.committed += 1;
                    self.conclude(session, Status::Committed);
                }
                None => {
                    self.summary.conflicts += 1;
                    self.conclude(session, Status::Aborted);
                }
            },
        }
    }

    /// Lets a transaction take effect if its level allows it. `None` if not; else its commit stamp, where
    /// it has one of its own.
    fn certify(&mut self, place: u32) -> Option<Option<Stamp>> {
        let claims = std::mem::take(&mut self.running[place as usize].claims);
        let outcome = self.certify_claims(&claims);
        self.running[place as usize].claims = claims;
        outcome
    }

    fn certify_claims(&mut self, claims: &Claims) -> Option<Option<Stamp>> {
        if !self.certifier.allows(claims, &self.store) {
            return None;
        }
        if claims.reads_only() && self.config.strength != Strength::ReadCommitted {
            self.certifier.committed(claims, &self.store, self.stamp);
            return Some(None);
        }
        self.stamp = self.stamp.next();
        self.apply(claims);
        Some(Some(self.stamp))
    }

    /// Makes changes visible at the present stamp.
    pub(crate) fn apply(&mut self, claims: &Claims) {
        for (key, change) in claims.changes.iter() {
            match change {
                Change::Put(value) => self.store.install(key, self.stamp, value),
                Change::Append(element) => self.store.append(key, self.stamp, element),
            }
        }
        self.certifier.committed(claims, &self.store, self.stamp);
        self.commits_until_sweep = self.commits_until_sweep.saturating_sub(1);
    }

    /// Forgets what no snapshot can ask for any more.
    fn sweep(&mut self) {
        let mut horizon = self.stamp;
        for session in self.sessions.iter().filter(|session| session.phase == Phase::Open) {
            let running = &self.running[session.current as usize];
            if running.has_snapshot {
                horizon = horizon.min(running.claims.snapshot);
            }
        }
        for (_, claims) in &self.limbo {
            horizon = horizon.min(claims.snapshot);
        }
        if self.config.lag > 0.0 {
            horizon.0 = horizon.0.min(self.stamp.0.saturating_sub(self.config.lag_max.saturating_mul(2)));
        }
        self.store.raise_horizon(horizon);
        if self.config.plan.workload == Workload::ListAppend {
            self.forget_old_lists();
        }
        self.certifier.forget(horizon);
    }

    /// Forgets lists of generations that every session has left behind. Those that some session left since
    /// the last sweep stay for another round: a transaction begun before may still read them.
    fn forget_old_lists(&mut self) {
        let in_use = self.sessions.iter().map(|session| session.plan.first_key()).min().unwrap_or(0);
        self.store.forget_lists_below(Key(self.lists_left_behind));
        self.lists_left_behind = in_use.saturating_sub(self.config.plan.keys);
    }

    /// Lets transactions take effect that their clients have given up on.
    fn settle_limbo(&mut self) {
        let mut place = 0;
        while place < self.limbo.len() {
            if self.limbo[place].0 > self.clock {
                place += 1;
                continue;
            }
            let (_, claims) = self.limbo.remove(place);
            if self.certify_claims(&claims).is_some() {
                self.summary.unknown_effective += 1;
            }
        }
    }

    /// The database is done with the session's transaction.
    fn conclude(&mut self, session: u32, status: Status) {
        let state = &mut self.sessions[session as usize];
        state.phase = Phase::Answering;
        let executed = &mut self.running[state.current as usize].executed;
        executed.status = status;
        if status != Status::Committed {
            executed.db = None;
        }
    }

    /// The client learns what became of its transaction.
    fn answer(&mut self, session: u32) {
        let state = &mut self.sessions[session as usize];
        state.phase = Phase::Idle;
        let place = state.current;
        let executed = &mut self.running[place as usize].executed;
        executed.client.end = self.clock + state.clock_ahead;
        if executed.status == Status::Aborted && !self.config.record_aborted {
            self.free.push(place);
            self.left += 1;
            return;
        }
        executed.position = state.recorded;
        state.recorded += 1;
        self.finished.push_back(place);
    }
}

impl Session {
    /// Two keys that the session's transactions use now.
    pub(crate) fn draw_two_keys(&self, random: &mut Random) -> (Key, Key) {
        self.plan.draw_two_keys(random)
    }
}

const SCHEDULER_STREAM: u64 = u64::MAX;
