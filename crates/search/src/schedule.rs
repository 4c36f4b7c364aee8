//! A first guess: an order of the known graph that a database might have taken.
//!
//! *What*: plays the history forward. A transaction is *ready* when whatever it saw has been placed; it is
//! *safe* when it overwrites nothing that somebody still has to read. Safe ones are placed, nearest hint
//! first; when there is none, the least bad is. Every read that finds something else than it returned
//! makes its key a *suspect*. No suspects: the order is a witness and the check is over.
//!
//! *Invariant*: every known edge leads forward in the order made.
//!
//! *Steps*: pop the ready transaction with the smallest hint; if some key it writes still has readers to
//! come, park it there until that changes; else place it and release who waited for it. At snapshot
//! isolation a transaction is placed whole where it can be; where it cannot, its begin is placed alone,
//! which takes away one reader from what others want to overwrite, and its commit waits.
//!
//! A value that comes back, like that of a lock, is not overwritten while more are to take one than are to come.
//!
//! *Cost*: O(operations · log).

use crate::constrain::Known;
use crate::pigeonhole;
use crate::problem::{INITIAL, NONE, Problem, Read, Standing, Txn};
use history::{History, ValueId};
use isolation::{Budget, Meter, Undecided};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The order made, or the transactions that wait for each other.
#[derive(Debug)]
pub enum Scheduled {
    /// A place for every node, and the keys where some read found something else.
    Order {
        /// Places, by node.
        position: Vec<u32>,
        /// Keys, each once.
        suspects: Vec<u32>,
        /// Who certainly reads each version.
        readers: Readers,
    },
    /// The known edges form a cycle among these.
    Stuck(Vec<Txn>),
}

/// The transactions that are known to read each version.
#[derive(Debug, Default)]
pub struct Readers {
    start: Vec<u32>,
    txns: Vec<Txn>,
}

impl Readers {
    /// Those of a problem.
    pub fn new(problem: &Problem) -> Self {
        let known_reads = || {
            let is_in = |read: &&Read| problem.standing[read.txn as usize] == Standing::In;
            problem.reads.iter().filter(|read| read.is_known() && read.source < INITIAL).filter(is_in)
        };
        let mut start = vec![0; problem.versions.len() + 1];
        known_reads().for_each(|read| start[read.source as usize + 1] += 1);
        for index in 1..start.len() {
            start[index] += start[index - 1];
        }
        let mut next = start.clone();
        let mut txns = vec![NONE; *next.last().expect("one entry more than versions") as usize];
        for read in known_reads() {
            let place: &mut u32 = &mut next[read.source as usize];
            txns[*place as usize] = read.txn;
            *place += 1;
        }
        Self { start, txns }
    }

    /// Who read a version.
    pub fn of(&self, version: u32) -> &[Txn] {
        &self.txns[self.start[version as usize] as usize..self.start[version as usize + 1] as usize]
    }
}

/// Where a transaction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Waiting,
    Ready,
    Begun,
    Placed,
}

/// Values that come back, such as those of locks: whoever read one and wrote the key took one of its versions.
#[derive(Debug, Default)]
struct Scarce {
    /// By key and value: how many are still to take one, and how many are still to come.
    left: FxHashMap<(u32, ValueId), (u32, u32)>,
}

impl Scarce {
    fn of(problem: &Problem, meter: &Meter<'_>) -> Result<Self, Undecided> {
        let mut left: FxHashMap<(u32, ValueId), (u32, u32)> = FxHashMap::default();
        for read in problem.reads.iter().filter(|read| problem.standing[read.txn as usize] == Standing::In) {
            meter.step()?;
            if let Some(taken) = taken(problem, read) {
                left.entry(taken).or_default().0 += 1;
            }
        }
        // The versions of a key are sorted by value.
        for (&(key, value), (_, coming)) in &mut left {
            let versions = problem.versions_of_key(key);
            let first = versions.partition_point(|&(other, _)| other < value);
            let with_value = versions[first..].iter().take_while(|&&(other, _)| other == value);
            let comes = |version: u32| {
                problem.standing[problem.versions[version as usize].txn as usize] == Standing::In
            };
            *coming = with_value.filter(|&&(_, version)| comes(version)).count() as u32;
            meter.steps(1 + *coming as usize)?;
        }
        Ok(Self { left })
    }

    /// Whether somebody else needs the version that is there: those that are still to come are not enough.
    fn is_needed(&self, problem: &Problem, txn: Txn, key: u32, current: u32) -> bool {
        if self.left.is_empty() {
            return false;
        }
        let value =
            problem.versions.get(current as usize).map_or(problem.initial[key as usize], |it| it.value);
        let takes = || problem.reads_of(txn).iter().any(|read| taken(problem, read) == Some((key, value)));
        self.left.get(&(key, value)).is_some_and(|&(takers, coming)| takers > coming && !takes())
    }

    fn take(&mut self, problem: &Problem, read: &Read) {
        if !self.left.is_empty()
            && let Some((takers, _)) = taken(problem, read).and_then(|taken| self.left.get_mut(&taken))
        {
            *takers = takers.saturating_sub(1);
        }
    }

    fn come(&mut self, key: u32, value: ValueId) {
        if !self.left.is_empty()
            && let Some((_, coming)) = self.left.get_mut(&(key, value))
        {
            *coming = coming.saturating_sub(1);
        }
    }
}

/// What a read with several candidates took away, if its transaction wrote the key.
fn taken(problem: &Problem, read: &Read) -> Option<(u32, ValueId)> {
    if read.is_known() || problem.version_by(read.txn, read.key).is_none() {
        return None;
    }
    Some((read.key, pigeonhole::value_seen(problem, read)?))
}

type Queue = BinaryHeap<Reverse<(u64, Txn)>>;

struct Scheduler<'a> {
    problem: &'a Problem,
    known: &'a Known,
    hint: Vec<u64>,
    // What each transaction waits for: known edges, and (as a wish, where it does not count) its session.
    hard: Vec<u32>,
    soft: Vec<bool>,
    // Who waits for whom.
    readers: Readers,
    chain_start: Vec<u32>,
    chain: Vec<Txn>,
    next_in_session: Vec<Txn>,
    next_sibling: Vec<Txn>,
    // The simulated store.
    current: Vec<u32>,
    open_readers: Vec<u32>,
    open_initial: Vec<u32>,
    locked_by: Vec<Txn>,
    scarce: Scarce,
    /// Which alternatives came true.
    came_true: Vec<bool>,
    begin_place: Vec<u32>,
    commit_place: Vec<u32>,
    state: Vec<State>,
    // Queues.
    ready: Queue,
    blocked: Queue,
    begun: Queue,
    unsorted: Queue,
    parked: Vec<Txn>,
    park_next: Vec<Txn>,
    // Real time.
    time_waiting: Vec<Txn>,
    time_next: Vec<Txn>,
    time_placed: usize,
    // The result.
    position: Vec<u32>,
    next_place: u32,
    suspect: Vec<bool>,
    suspects: Vec<u32>,
    placed: usize,
}

/// Makes the order.
pub fn schedule(
    history: &History,
    problem: &Problem,
    known: &Known,
    budget: &Budget,
) -> Result<Scheduled, Undecided> {
    let meter = budget.meter();
    let mut scheduler = Scheduler::new(history, problem, known, &meter)?;
    budget.check()?;
    scheduler.start();
    while scheduler.placed < problem.len() {
        if !scheduler.step(&meter)? {
            let stuck = (0..problem.len() as Txn)
                .filter(|&txn| scheduler.state[txn as usize] != State::Placed)
                .collect();
            return Ok(Scheduled::Stuck(stuck));
        }
    }
    scheduler.place_times();
    scheduler.check_counts();
    Ok(Scheduled::Order {
        position: scheduler.position,
        suspects: scheduler.suspects,
        readers: scheduler.readers,
    })
}

/// Numbers that say roughly when a transaction happened: the database's commit timestamp, the client's
/// clock, or how far its session had come.
fn hints(history: &History, problem: &Problem) -> Vec<u64> {
    let ordered = |number: i64| (number as u64) ^ (1 << 63);
    let all = |has: &dyn Fn(history::TxnId) -> bool| problem.txns.iter().all(|&txn| has(txn));
    if history.has_db_timestamps() && all(&|txn| history.transaction(txn).db().is_some()) {
        let commit = |txn| history.transaction(txn).db().map(|(_, commit)| commit);
        let mut sorted: Vec<_> = problem.txns.iter().map(|&txn| commit(txn)).collect();
        sorted.sort_unstable();
        let rank = |txn| sorted.partition_point(|&other| other < commit(txn)) as u64;
        return problem.txns.iter().map(|&txn| rank(txn)).collect();
    }
    if history.has_client_clocks() && all(&|txn| history.transaction(txn).client().is_some()) {
        let end = |txn| history.transaction(txn).client().map_or(0, |span| span.end);
        return problem.txns.iter().map(|&txn| ordered(end(txn))).collect();
    }
    let progress = |txn| {
        let transaction = history.transaction(txn);
        let len = history.of_session(transaction.session()).len() as u64;
        (u64::from(transaction.position()) << 32) / len
    };
    problem.txns.iter().map(|&txn| progress(txn)).collect()
}

impl<'a> Scheduler<'a> {
    fn new(
        history: &History,
        problem: &'a Problem,
        known: &'a Known,
        meter: &Meter<'_>,
    ) -> Result<Self, Undecided> {
        let n = problem.len();
        let keys = problem.keys();
        let mut it = Self {
            problem,
            known,
            hint: hints(history, problem),
            hard: vec![0; n],
            soft: vec![false; n],
            readers: Readers::new(problem),
            chain_start: Vec::new(),
            chain: Vec::new(),
            next_in_session: vec![NONE; n],
            next_sibling: vec![NONE; n],
            current: vec![INITIAL; keys],
            open_readers: vec![0; problem.versions.len()],
            open_initial: vec![0; keys],
            locked_by: vec![NONE; if known.nodes.points == 2 { keys } else { 0 }],
            scarce: Scarce::of(problem, meter)?,
            came_true: vec![false; problem.alternatives.len()],
            begin_place: vec![NONE; n],
            commit_place: vec![NONE; n],
            state: vec![State::Waiting; n],
            ready: Queue::new(),
            blocked: Queue::new(),
            begun: Queue::new(),
            unsorted: Queue::new(),
            parked: vec![NONE; keys],
            park_next: vec![NONE; n],
            time_waiting: vec![NONE; known.real_time.ended.len() + 1],
            time_next: vec![NONE; if known.real_time.ended.is_empty() { 0 } else { n }],
            time_placed: 0,
            position: vec![NONE; known.node_count(problem)],
            next_place: 0,
            suspect: vec![false; keys],
            suspects: Vec::new(),
            placed: 0,
        };
        it.index_readers();
        it.index_chains();
        Ok(it)
    }

    fn is_in(&self, txn: Txn) -> bool {
        self.problem.standing[txn as usize] == Standing::In
    }

    /// How many readers of each version are still to come.
    fn index_readers(&mut self) {
        let known_reads = || {
            self.problem
                .reads
                .iter()
                .filter(|read| read.is_known() && self.problem.standing[read.txn as usize] == Standing::In)
        };
        for read in known_reads() {
            if read.source == INITIAL {
                self.open_initial[read.key as usize] += 1;
            } else {
                self.open_readers[read.source as usize] += 1;
                self.hard[read.txn as usize] += 1;
            }
        }
    }

    /// Orders that are known otherwise.
    fn index_chains(&mut self) {
        let edges: Vec<(Txn, Txn)> = self.known.orders(self.problem).collect();
        if edges.is_empty() {
            return;
        }
        self.chain_start = vec![0; self.problem.len() + 1];
        for &(first, second) in &edges {
            self.chain_start[first as usize + 1] += 1;
            self.hard[second as usize] += 1;
        }
        for index in 1..self.chain_start.len() {
            self.chain_start[index] += self.chain_start[index - 1];
        }
        let mut next = self.chain_start.clone();
        self.chain = vec![NONE; edges.len()];
        for (first, second) in edges {
            let place = &mut next[first as usize];
            self.chain[*place as usize] = second;
            *place += 1;
        }
    }

    /// Everybody waits for its session; real time is waited for; who waits for nothing is ready.
    fn start(&mut self) {
        for txn in (0..self.problem.len() as Txn).rev() {
            let previous = self.problem.previous[txn as usize];
            if previous != NONE {
                self.soft[txn as usize] = true;
                self.next_sibling[txn as usize] = self.next_in_session[previous as usize];
                self.next_in_session[previous as usize] = txn;
            }
            let after = self.known.real_time.after.get(txn as usize).copied().unwrap_or(0);
            if after > 0 && self.problem.standing[txn as usize] != Standing::Out {
                self.hard[txn as usize] += 1;
                self.time_next[txn as usize] = self.time_waiting[after as usize];
                self.time_waiting[after as usize] = txn;
            }
        }
        for txn in 0..self.problem.len() as Txn {
            self.check_ready(txn);
        }
    }

    fn check_ready(&mut self, txn: Txn) {
        if self.state[txn as usize] != State::Waiting || self.hard[txn as usize] > 0 {
            return;
        }
        if self.soft[txn as usize] {
            if !self.known.session {
                self.unsorted.push(Reverse((self.hint[txn as usize], txn)));
            }
            return;
        }
        self.state[txn as usize] = State::Ready;
        self.ready.push(Reverse((self.hint[txn as usize], txn)));
    }

    /// Places something. False: nothing can be placed.
    fn step(&mut self, meter: &Meter<'_>) -> Result<bool, Undecided> {
        meter.step()?;
        if let Some(Reverse((_, txn))) = self.ready.pop() {
            meter.steps(self.problem.read_ids(txn).len())?;
            match self.state[txn as usize] {
                State::Ready => match self.obstacle(txn) {
                    None => self.place_whole(txn),
                    Some(key) => {
                        self.park(txn, key);
                        self.blocked.push(Reverse((self.hint[txn as usize], txn)));
                    }
                },
                State::Begun => match self.overwrite_obstacle(txn) {
                    None => self.place_commit(txn),
                    Some(key) => self.park(txn, key),
                },
                State::Waiting | State::Placed => {}
            }
            return Ok(true);
        }
        Ok(self.begin_something(meter)? || self.force_something() || self.ignore_a_session())
    }

    /// A key for which it is better to wait, if there is one.
    fn obstacle(&self, txn: Txn) -> Option<u32> {
        if !self.is_in(txn) {
            return None;
        }
        self.value_obstacle(txn).or_else(|| self.lock_obstacle(txn)).or_else(|| self.overwrite_obstacle(txn))
    }

    /// An ambiguous read whose value is not there now.
    fn value_obstacle(&self, txn: Txn) -> Option<u32> {
        let ids = self.problem.read_ids(txn);
        let certain = ids.filter(|&id| self.problem.alternative_of_read(id as u32) == NONE);
        let mut reads = certain.map(|id| &self.problem.reads[id]).filter(|read| !read.is_known());
        reads.find(|read| !self.matches(read)).map(|read| read.key)
    }

    /// A key that a transaction which has begun will write.
    fn lock_obstacle(&self, txn: Txn) -> Option<u32> {
        if self.locked_by.is_empty() {
            return None;
        }
        let mut keys = self.problem.versions_of(txn).iter().map(|version| version.key);
        keys.find(|&key| self.locked_by[key as usize] != NONE && self.locked_by[key as usize] != txn)
    }

    /// A key whose current version somebody else still has to read.
    fn overwrite_obstacle(&self, txn: Txn) -> Option<u32> {
        let begun = self.state[txn as usize] == State::Begun;
        for version in self.problem.versions_of(txn) {
            let current = self.current[version.key as usize];
            if !begun && self.scarce.is_needed(self.problem, txn, version.key, current) {
                return Some(version.key);
            }
            let open = self.open(version.key, current);
            if open == 0 {
                continue;
            }
            let reads = || self.problem.reads_of(txn).iter();
            let own = !begun
                && reads().any(|read| read.key == version.key && read.is_known() && read.source == current);
            if open > u32::from(own) {
                return Some(version.key);
            }
        }
        None
    }

    #[inline]
    fn open(&self, key: u32, version: u32) -> u32 {
        if version == INITIAL { self.open_initial[key as usize] } else { self.open_readers[version as usize] }
    }

    /// Whether a read finds what it returned.
    fn matches(&self, read: &Read) -> bool {
        self.problem.fits(read, self.current[read.key as usize])
    }

    fn park(&mut self, txn: Txn, key: u32) {
        self.park_next[txn as usize] = self.parked[key as usize];
        self.parked[key as usize] = txn;
    }

    /// Whoever waits at a key looks again.
    fn wake(&mut self, key: u32) {
        let mut txn = std::mem::replace(&mut self.parked[key as usize], NONE);
        while txn != NONE {
            let next = std::mem::replace(&mut self.park_next[txn as usize], NONE);
            if matches!(self.state[txn as usize], State::Ready | State::Begun) {
                self.ready.push(Reverse((self.hint[txn as usize], txn)));
            }
            txn = next;
        }
    }

    fn place_whole(&mut self, txn: Txn) {
        self.place_begin(txn);
        self.place_commit(txn);
    }

    fn place_begin(&mut self, txn: Txn) {
        self.state[txn as usize] = State::Begun;
        let node = self.known.nodes.begin(txn);
        self.begin_place[txn as usize] = self.next_place;
        if self.known.nodes.points == 2 {
            self.position[node as usize] = self.next_place;
            self.next_place += 1;
        }
        if !self.is_in(txn) {
            return;
        }
        for index in self.problem.read_ids(txn) {
            let read = self.problem.reads[index];
            if self.problem.alternative_of_read(index as u32) != NONE {
                continue;
            }
            if !self.matches(&read) {
                self.add_suspect(read.key);
            }
            self.scarce.take(self.problem, &read);
            if read.is_known() {
                let open = match read.source {
                    INITIAL => &mut self.open_initial[read.key as usize],
                    version => &mut self.open_readers[version as usize],
                };
                *open -= 1;
                if *open <= 1 && self.parked[read.key as usize] != NONE {
                    self.wake(read.key);
                }
            }
        }
        for it in self.problem.matches_of(txn) {
            match self.problem.alternative_on(it, self.current[it.key as usize]) {
                Some(alternative) => self.came_true[alternative as usize] = true,
                None => self.add_suspect(it.key),
            }
        }
        if self.known.nodes.points == 2 {
            for version in self.problem.versions_of(txn) {
                self.locked_by[version.key as usize] = txn;
            }
        }
    }

    fn place_commit(&mut self, txn: Txn) {
        self.state[txn as usize] = State::Placed;
        self.placed += 1;
        self.position[self.known.nodes.commit(txn) as usize] = self.next_place;
        self.commit_place[txn as usize] = self.next_place;
        self.next_place += 1;
        let is_in = self.is_in(txn);
        for version in self.problem.version_ids(txn) {
            let key = self.problem.versions[version as usize].key;
            let alternative = self.problem.alternative_of_version(version);
            if self.locked_by.get(key as usize) == Some(&txn) {
                self.locked_by[key as usize] = NONE;
            }
            if is_in && (alternative == NONE || self.came_true[alternative as usize]) {
                self.overwrite(txn, key, version);
            }
            for index in 0..self.readers.of(version).len() {
                let reader = self.readers.of(version)[index];
                self.release(reader);
            }
        }
        if !self.chain_start.is_empty() {
            for index in self.chain_start[txn as usize]..self.chain_start[txn as usize + 1] {
                let next = self.chain[index as usize];
                self.release(next);
            }
        }
        let mut next = self.next_in_session[txn as usize];
        while next != NONE {
            self.soft[next as usize] = false;
            self.check_ready(next);
            next = self.next_sibling[next as usize];
        }
        self.place_times();
    }

    fn overwrite(&mut self, txn: Txn, key: u32, version: u32) {
        if self.known.nodes.points == 2 {
            // First committer wins: the version replaced must have been there at begin.
            let current = self.current[key as usize];
            if current != INITIAL {
                let other = self.problem.versions[current as usize].txn;
                if self.commit_place[other as usize] > self.begin_place[txn as usize] {
                    self.add_suspect(key);
                }
            }
        }
        self.current[key as usize] = version;
        self.scarce.come(key, self.problem.versions[version as usize].value);
        if self.parked[key as usize] != NONE {
            self.wake(key);
        }
    }

    fn release(&mut self, txn: Txn) {
        self.hard[txn as usize] -= 1;
        self.check_ready(txn);
    }

    /// Time nodes whose transaction, and all that ended before it, are placed.
    fn place_times(&mut self) {
        let ended = &self.known.real_time.ended;
        while let Some(&txn) = ended.get(self.time_placed) {
            if self.state[txn as usize] != State::Placed {
                return;
            }
            let node = self.known.time_node(self.problem, self.time_placed);
            self.position[node as usize] = self.next_place;
            self.next_place += 1;
            self.time_placed += 1;
            let mut waiting = self.time_waiting[self.time_placed];
            while waiting != NONE {
                let next = self.time_next[waiting as usize];
                self.release(waiting);
                waiting = next;
            }
        }
    }

    /// Snapshot isolation: a begin that harms nobody, of a transaction whose commit must wait.
    fn begin_something(&mut self, meter: &Meter<'_>) -> Result<bool, Undecided> {
        if self.known.nodes.points == 1 {
            return Ok(false);
        }
        let mut aside = Vec::new();
        let mut found = None;
        while let Some(Reverse((hint, txn))) = self.blocked.pop() {
            if self.state[txn as usize] != State::Ready {
                continue;
            }
            let mut ids = self.problem.read_ids(txn);
            meter.steps(1 + ids.len())?;
            let fits = ids.all(|id| {
                self.problem.alternative_of_read(id as u32) != NONE || self.matches(&self.problem.reads[id])
            });
            if fits && self.lock_obstacle(txn).is_none() {
                found = Some(txn);
                break;
            }
            aside.push(Reverse((hint, txn)));
        }
        self.blocked.extend(aside);
        let Some(txn) = found else { return Ok(false) };
        self.place_begin(txn);
        // It stays parked where it is: what it waits for to commit is what it waited for before.
        self.begun.push(Reverse((self.hint[txn as usize], txn)));
        Ok(true)
    }

    /// Nothing is safe: the earliest goes all the same, and its keys become suspects as reads fail.
    fn force_something(&mut self) -> bool {
        while let Some(Reverse((_, txn))) = self.begun.pop() {
            if self.state[txn as usize] == State::Begun {
                self.place_commit(txn);
                return true;
            }
        }
        while let Some(Reverse((_, txn))) = self.blocked.pop() {
            if self.state[txn as usize] == State::Ready {
                self.place_whole(txn);
                return true;
            }
        }
        false
    }

    /// Where session order does not count, it is only a hint; here it cannot be followed.
    fn ignore_a_session(&mut self) -> bool {
        while let Some(Reverse((_, txn))) = self.unsorted.pop() {
            if self.state[txn as usize] == State::Waiting && self.soft[txn as usize] {
                self.soft[txn as usize] = false;
                self.check_ready(txn);
                return true;
            }
        }
        false
    }

    /// Where a predicate write matched more or fewer keys than it reported, all of them are suspects.
    fn check_counts(&mut self) {
        for count in &self.problem.counts {
            let came_true = count.matched.iter().filter(|&&it| self.came_true[it as usize]).count();
            if self.is_in(count.txn) && came_true as u64 != count.count {
                for &it in &count.matched {
                    let of = self.problem.alternatives[it as usize].of;
                    self.add_suspect(self.problem.matches[of as usize].key);
                }
            }
        }
    }

    fn add_suspect(&mut self, key: u32) {
        if !std::mem::replace(&mut self.suspect[key as usize], true) {
            self.suspects.push(key);
        }
    }
}
