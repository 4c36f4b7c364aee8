//! The axiomatic levels, and read committed, where every source is known: no search, near-linear time.
//!
//! *What*: with known sources the obligations "S commits before W" are known too, and the level holds if and
//! only if they, session order and wr together form no cycle. Few of them matter, because obligations that
//! follow from others need not be listed:
//! * axiomatic read committed and read atomic: for each transaction, its sources against the keys it reads;
//! * read atomic also: the last writer of the key earlier in the session, one a read;
//! * causal: one writer a session and read — the last one that the reader's clock has seen
//!   ([`Clocks`]); earlier ones precede it by session order.
//!
//! *Cost*: reads × the smaller of what the sources wrote and what the transaction read; for causal reads ×
//! sessions that write the key, a bisection each, and n × [`CHAINS_AT_ONCE`] × 4 bytes.
//! *Source*: AWDIT (Møldrup et al., PLDI 2025), algorithms 1 to 3, in our terms.

use super::{Sight, cycle, marked};
use crate::constrain::Known;
use crate::problem::{NONE, Problem, Read, Standing, Txn};
use history::{History, Id, OpId, Status};
use isolation::{Budget, Meter, Undecided};
use rustc_hash::FxHashSet;

/// Decides it; `Err` are transactions that already have no explanation. `None`: not by saturation.
pub(super) fn saturate(
    history: &History,
    problem: &Problem,
    known: &Known,
    sight: Sight,
    budget: &Budget,
) -> Result<Option<Result<(), Vec<Txn>>>, Undecided> {
    if !matches!(sight, Sight::Nothing | Sight::EarlierReads | Sight::Direct | Sight::Causes) {
        return Ok(None);
    }
    let mut saturation = Saturation::new(history, problem, budget);
    if sight == Sight::Causes {
        // Causality is judged on an acyclic graph.
        let order = match saturation.causal_order() {
            Ok(order) => order,
            Err(cycle) => return Ok(Some(Err(saturation.core(&cycle)))),
        };
        budget.check()?;
        match saturation.oblige_causes(&order) {
            Ok(()) => {}
            Err(Halt::Unseen(unseen)) => return Ok(Some(Err(saturation.core_of(&unseen)))),
            Err(Halt::Open(why)) => return Err(why),
        }
    }
    let listed = match sight {
        Sight::EarlierReads => saturation.oblige_sources(true),
        Sight::Direct => saturation.oblige_sources(false).and_then(|()| saturation.oblige_sessions()),
        _ => Ok(()),
    };
    match listed {
        Ok(()) => {}
        Err(Halt::Unseen(unseen)) => return Ok(Some(Err(saturation.core_of(&unseen)))),
        Err(Halt::Open(why)) => return Err(why),
    }
    budget.check()?;
    Ok(Some(match saturation.sort(known) {
        Ok(_) => Ok(()),
        Err(cycle) => Err(saturation.core(&cycle)),
    }))
}

/// Why obligations are not listed any further.
enum Halt {
    /// One that nothing can keep.
    Unseen(Obligation),
    /// The budget is used up.
    Open(Undecided),
}

impl From<Undecided> for Halt {
    fn from(why: Undecided) -> Self {
        Self::Open(why)
    }
}

/// "`first` commits before `second`, because `reader` must see it."
#[derive(Clone, Copy, Debug)]
struct Obligation {
    first: Txn,
    /// [`NONE`]: before the initial state, which is impossible.
    second: Txn,
    reader: Txn,
}

/// A read of a transaction, and the one before it of the same key in `next`.
#[derive(Clone, Copy)]
struct Seen {
    key: u32,
    source: Txn,
    op: OpId,
    next: u32,
}

/// A read of a key: by whom, and whose version.
#[derive(Clone, Copy)]
struct KeyRead {
    txn: Txn,
    source: Txn,
}

struct Saturation<'a> {
    history: &'a History,
    problem: &'a Problem,
    obligations: Vec<Obligation>,
    /// Which reads are not reads; see [`Problem::bases`]. Empty if all are.
    is_base: Vec<bool>,
    /// Whose version each read saw; [`NONE`]: the initial one.
    sources: Vec<Txn>,
    meter: Meter<'a>,
}

/// Above this many writes a transaction's keys are looked up instead of walked.
const WRITES_WALKED_MAX: usize = 64;

impl<'a> Saturation<'a> {
    fn new(history: &'a History, problem: &'a Problem, budget: &'a Budget) -> Self {
        Self {
            meter: budget.meter(),
            history,
            problem,
            obligations: Vec::new(),
            is_base: marked(&problem.bases, problem.reads.len()),
            sources: (problem.reads.iter())
                .map(|read| problem.versions.get(read.source as usize).map_or(NONE, |version| version.txn))
                .collect(),
        }
    }

    fn is_live(&self, txn: Txn) -> bool {
        self.problem.standing[txn as usize] != Standing::Out
    }

    /// Its reads, without those that are none.
    fn read_ids(&self, txn: Txn) -> impl Iterator<Item = usize> + '_ {
        self.problem.read_ids(txn).filter(|&id| !self.is_base(id))
    }

    fn is_base(&self, id: usize) -> bool {
        self.is_base.get(id).copied().unwrap_or(false)
    }

    fn oblige(&mut self, first: Txn, second: Txn, reader: Txn) -> Result<(), Halt> {
        let obligation = Obligation { first, second, reader };
        if second == NONE {
            return Err(Halt::Unseen(obligation));
        }
        self.obligations.push(obligation);
        Ok(())
    }

    fn sort(&self, known: &Known) -> Result<Vec<u32>, Vec<u32>> {
        let nodes = known.node_count(self.problem);
        let seen = |txn: Txn| {
            let sources = self.sources[self.problem.read_ids(txn)].iter().copied();
            sources.filter(|&source| source != NONE)
        };
        let obligations = || self.obligations.iter().map(|it| (it.first, it.second));
        cycle::sort(nodes, || known.edges_from(self.problem, seen).chain(obligations()))
    }

    // ---- sources against reads of one transaction ----

    /// Obligations from what a transaction reads from; with `earlier` only from reads before.
    fn oblige_sources(&mut self, earlier: bool) -> Result<(), Halt> {
        let mut stamp = vec![NONE; self.problem.keys()];
        let mut first_of_key = vec![NONE; self.problem.keys()];
        let large = self.large_writers();
        let mut reads: Vec<Seen> = Vec::new();
        let mut sources: Vec<(Txn, usize)> = Vec::new();
        let mut in_turn: Vec<usize> = Vec::new();
        for txn in 0..self.problem.len() as Txn {
            if !self.is_live(txn) {
                continue;
            }
            reads.clear();
            sources.clear();
            in_turn.clear();
            in_turn.extend(self.read_ids(txn));
            self.meter.steps(1 + in_turn.len())?;
            let op = |&id: &usize| self.problem.reads[id].op;
            if !in_turn.is_sorted_by_key(op) {
                in_turn.sort_by_key(op);
            }
            for &id in &in_turn {
                let Read { key, op, .. } = self.problem.reads[id];
                let place = key as usize;
                let next = if stamp[place] == txn { first_of_key[place] } else { NONE };
                stamp[place] = txn;
                first_of_key[place] = reads.len() as u32;
                let source = self.sources[id];
                if source != NONE && !sources.iter().any(|&(seen, _)| seen == source) {
                    sources.push((source, reads.len()));
                }
                reads.push(Seen { key, source, op, next });
            }
            if reads.len() < 2 {
                continue;
            }
            for &(seen, place) in &sources {
                self.meter.steps(1 + reads.len().min(self.problem.versions_of(seen).len()))?;
                // What one operation saw at several keys it saw at once.
                let op = reads[place].op;
                let later = || reads[place..].iter().take_while(|read| read.op == op).count();
                let from = if earlier { place + later() } else { 0 };
                if self.problem.versions_of(seen).len() > WRITES_WALKED_MAX {
                    for read in &reads[from.min(reads.len())..] {
                        if read.source != seen && large.contains(&(seen, read.key)) {
                            self.oblige(seen, read.source, txn)?;
                        }
                    }
                    continue;
                }
                for version in self.problem.versions_of(seen) {
                    if stamp[version.key as usize] != txn {
                        continue;
                    }
                    let mut at = first_of_key[version.key as usize];
                    while at != NONE && at as usize >= from {
                        let read = reads[at as usize];
                        if read.source != seen {
                            self.oblige(seen, read.source, txn)?;
                        }
                        at = read.next;
                    }
                }
            }
        }
        Ok(())
    }

    /// The keys of transactions that write many.
    fn large_writers(&self) -> FxHashSet<(Txn, u32)> {
        let txns = (0..self.problem.len() as Txn)
            .filter(|&txn| self.problem.versions_of(txn).len() > WRITES_WALKED_MAX);
        txns.flat_map(|txn| self.problem.versions_of(txn).iter().map(move |version| (txn, version.key)))
            .collect()
    }

    // ---- the session ----

    /// Obligations from the last writer of the key earlier in the session.
    fn oblige_sessions(&mut self) -> Result<(), Halt> {
        let mut by_session: Vec<Vec<Txn>> = vec![Vec::new(); self.history.sessions().len()];
        for txn in (0..self.problem.len() as Txn).filter(|&txn| self.is_live(txn)) {
            let transaction = self.history.transaction(self.problem.txns[txn as usize]);
            by_session[transaction.session().index()].push(txn);
        }
        let mut stamp = vec![NONE; self.problem.keys()];
        let mut last = vec![NONE; self.problem.keys()];
        for (session, txns) in by_session.iter().enumerate() {
            for &txn in txns {
                self.meter.steps(1 + self.problem.reads_of(txn).len())?;
                for id in self.problem.read_ids(txn) {
                    let key = self.problem.reads[id].key as usize;
                    let source = self.sources[id];
                    if stamp[key] == session as u32 && last[key] != source && !self.is_base(id) {
                        self.oblige(last[key], source, txn)?;
                    }
                }
                let transaction = self.history.transaction(self.problem.txns[txn as usize]);
                if transaction.status() != Status::Committed {
                    continue; // nothing follows it
                }
                for version in self.problem.versions_of(txn) {
                    stamp[version.key as usize] = session as u32;
                    last[version.key as usize] = txn;
                }
            }
        }
        Ok(())
    }

    // ---- causality ----

    fn oblige_causes(&mut self, order: &[Txn]) -> Result<(), Halt> {
        let chains = Chains::of(self.history, self.problem);
        let writers = Writers::of(self.problem, &chains);
        let (start, reads) = self.reads_by_key();
        let mut clocks = Clocks::new(self.problem.len(), chains.count);
        let mut fetched = Vec::new();
        let mut from = 0;
        while from < chains.count {
            clocks.run(self, &chains, order, from)?;
            for key in 0..self.problem.keys() as u32 {
                let of_key = &reads[start[key as usize] as usize..start[key as usize + 1] as usize];
                self.oblige_causes_on(key, of_key, &writers, &clocks, &mut fetched)?;
            }
            from += CHAINS_AT_ONCE as u32;
        }
        Ok(())
    }

    /// The obligations of one key's reads: a key's writers are few and stay near. Clocks are far apart: those of several
    /// reads are fetched at once, which waits once.
    fn oblige_causes_on(
        &mut self,
        key: u32,
        reads: &[KeyRead],
        writers: &Writers,
        clocks: &Clocks,
        fetched: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        let groups = writers.groups_within(key, clocks.from, clocks.end());
        for reads in reads.chunks(READS_AT_ONCE) {
            self.meter.steps(reads.len() * (1 + groups.len()))?;
            fetched.clear();
            for read in reads {
                fetched.extend_from_slice(clocks.row(read.txn));
                match read.source {
                    NONE => fetched.resize(fetched.len() + clocks.width, 0),
                    source => fetched.extend_from_slice(clocks.row(source)),
                }
            }
            for (read, rows) in reads.iter().zip(fetched.chunks_exact(2 * clocks.width)) {
                let (seen, before_source) = rows.split_at(clocks.width);
                for group in groups {
                    let column = (group.chain - clocks.from) as usize;
                    if group.first >= seen[column] {
                        continue;
                    }
                    let places = &writers.places[group.from as usize..group.to as usize];
                    let last = places.partition_point(|&place| place < seen[column]) - 1;
                    // What precedes the source anyway need not be said.
                    if before_source[column] > places[last] {
                        continue;
                    }
                    let writer = writers.txns[group.from as usize + last];
                    if writer != read.source {
                        self.oblige(writer, read.source, read.txn)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The reads of each key, and where each key's begin.
    fn reads_by_key(&self) -> (Vec<u32>, Vec<KeyRead>) {
        let counts = |id: &usize| !self.is_base(*id) && self.is_live(self.problem.reads[*id].txn);
        let ids = || (0..self.problem.reads.len()).filter(counts);
        let mut start = vec![0u32; self.problem.keys() + 1];
        for id in ids() {
            start[self.problem.reads[id].key as usize + 1] += 1;
        }
        for key in 1..start.len() {
            start[key] += start[key - 1];
        }
        let mut next = start.clone();
        let mut reads = vec![KeyRead { txn: NONE, source: NONE }; start[start.len() - 1] as usize];
        for id in ids() {
            let Read { key, txn, .. } = self.problem.reads[id];
            let place = &mut next[key as usize];
            reads[*place as usize] = KeyRead { txn, source: self.sources[id] };
            *place += 1;
        }
        (start, reads)
    }

    /// Transactions in an order that contains session order and wr; or a cycle of those.
    fn causal_order(&self) -> Result<Vec<Txn>, Vec<Txn>> {
        cycle::sort(self.problem.len(), || {
            (0..self.problem.len() as Txn)
                .filter(|&txn| self.is_live(txn))
                .flat_map(|txn| self.causes(txn).map(move |before| (before, txn)))
        })
    }

    /// What directly precedes a transaction by session order and wr.
    fn causes(&self, txn: Txn) -> impl Iterator<Item = Txn> + '_ {
        let previous = Some(self.problem.previous[txn as usize]).filter(|&previous| previous != NONE);
        let sources = self.read_ids(txn).map(|id| self.sources[id]).filter(|&source| source != NONE);
        previous.into_iter().chain(sources)
    }

    // ---- cores ----

    /// The transactions that a cycle of the commit order speaks of.
    fn core(&self, cycle: &[u32]) -> Vec<Txn> {
        let mut core: Vec<Txn> =
            cycle.iter().copied().filter(|&node| (node as usize) < self.problem.len()).collect();
        for (place, &first) in cycle.iter().enumerate() {
            let second = cycle[(place + 1) % cycle.len()];
            let mut all = self.obligations.iter();
            if let Some(it) = all.find(|it| it.first == first && it.second == second) {
                core.append(&mut self.core_of(it));
            }
        }
        core.sort_unstable();
        core.dedup();
        core
    }

    /// The transactions that an obligation speaks of, with the shortest way from the one that must be seen.
    fn core_of(&self, obligation: &Obligation) -> Vec<Txn> {
        let mut core = vec![obligation.first, obligation.reader];
        core.extend(Some(obligation.second).filter(|&second| second != NONE));
        let mut via = vec![NONE; self.problem.len()];
        let mut queue = std::collections::VecDeque::from([obligation.reader]);
        while let Some(at) = queue.pop_front() {
            if at == obligation.first {
                break;
            }
            for before in self.causes(at) {
                if via[before as usize] == NONE && before != obligation.reader {
                    via[before as usize] = at;
                    queue.push_back(before);
                }
            }
        }
        let mut at = obligation.first;
        while at != NONE && at != obligation.reader {
            core.push(at);
            at = via[at as usize];
        }
        core
    }
}

/// Sessions as chains; a transaction of unknown outcome, which nothing follows, is a chain of its own.
struct Chains {
    of: Vec<u32>,
    /// Places within the chain, from 0.
    place: Vec<u32>,
    count: u32,
}

impl Chains {
    fn of(history: &History, problem: &Problem) -> Self {
        let mut count = history.sessions().len() as u32;
        let mut len = vec![0; count as usize];
        let (mut of, mut place) = (Vec::new(), Vec::new());
        for &id in &problem.txns {
            let transaction = history.transaction(id);
            if transaction.status() == Status::Committed {
                let session = transaction.session().index();
                of.push(session as u32);
                place.push(len[session]);
                len[session] += 1;
            } else {
                of.push(count);
                place.push(0);
                count += 1;
            }
        }
        Self { of, place, count }
    }

    /// All transactions, chain by chain.
    fn in_order(&self) -> impl Iterator<Item = Txn> + use<> {
        let mut start = vec![0u32; self.count as usize + 1];
        for &chain in &self.of {
            start[chain as usize + 1] += 1;
        }
        for chain in 1..start.len() {
            start[chain] += start[chain - 1];
        }
        let mut order = vec![NONE; self.of.len()];
        for (txn, &chain) in self.of.iter().enumerate() {
            order[(start[chain as usize] + self.place[txn]) as usize] = txn as Txn;
        }
        order.into_iter()
    }
}

/// The writers of each key by chain.
struct Writers {
    start: Vec<u32>,
    groups: Vec<Group>,
    txns: Vec<Txn>,
    /// Their places in their chain.
    places: Vec<u32>,
}

/// The writers of a key in one chain, ascending.
#[derive(Clone, Copy)]
struct Group {
    chain: u32,
    /// The place of the first.
    first: u32,
    from: u32,
    to: u32,
}

impl Writers {
    fn of(problem: &Problem, chains: &Chains) -> Self {
        let live = |txn: &Txn| problem.standing[*txn as usize] != Standing::Out;
        let mut next: Vec<u32> = problem.key_start.clone();
        let mut txns = vec![NONE; problem.versions.len()];
        // Chain by chain, each in its order: every key's writers come out sorted.
        for txn in chains.in_order().filter(live) {
            for version in problem.versions_of(txn) {
                let place = &mut next[version.key as usize];
                txns[*place as usize] = txn;
                *place += 1;
            }
        }
        let mut it = Self { start: vec![0], groups: Vec::new(), txns, places: Vec::new() };
        it.places = vec![0; it.txns.len()];
        for (key, &end) in next.iter().enumerate().take(problem.keys()) {
            let groups = it.groups.len();
            for at in problem.key_start[key]..end {
                let txn = it.txns[at as usize];
                let chain = chains.of[txn as usize];
                it.places[at as usize] = chains.place[txn as usize];
                match it.groups[groups..].last_mut() {
                    Some(group) if group.chain == chain => group.to = at + 1,
                    _ => {
                        let first = chains.place[txn as usize];
                        it.groups.push(Group { chain, first, from: at, to: at + 1 });
                    }
                }
            }
            it.start.push(it.groups.len() as u32);
        }
        it
    }

    /// The groups of a key whose chain is in a range.
    fn groups_within(&self, key: u32, from: u32, end: u32) -> &[Group] {
        let of_key = &self.groups[self.start[key as usize] as usize..self.start[key as usize + 1] as usize];
        let first = of_key.partition_point(|group| group.chain < from);
        let last = of_key.partition_point(|group| group.chain < end);
        &of_key[first..last]
    }
}

/// How many chains one pass keeps clocks of.
const CHAINS_AT_ONCE: usize = 64;
/// How many reads' clocks are fetched at once.
const READS_AT_ONCE: usize = 32;

/// For each transaction and chain, how many of the chain precede the transaction.
struct Clocks {
    from: u32,
    width: usize,
    seen: Vec<u32>,
}

impl Clocks {
    fn new(txns: usize, chains: u32) -> Self {
        let width = (chains as usize).min(CHAINS_AT_ONCE);
        Self { from: 0, width, seen: vec![0; txns * width] }
    }

    fn end(&self) -> u32 {
        self.from + self.width as u32
    }

    fn row(&self, txn: Txn) -> &[u32] {
        &self.seen[txn as usize * self.width..][..self.width]
    }

    /// Computes the clocks of the chains from `from` on.
    fn run(
        &mut self,
        saturation: &Saturation<'_>,
        chains: &Chains,
        order: &[Txn],
        from: u32,
    ) -> Result<(), Undecided> {
        self.from = from;
        self.seen.fill(0);
        let mut row = vec![0; self.width];
        for &txn in order.iter().filter(|&&txn| saturation.is_live(txn)) {
            saturation.meter.steps(1 + saturation.problem.reads_of(txn).len())?;
            row.fill(0);
            for before in saturation.causes(txn) {
                let theirs = &self.seen[before as usize * self.width..][..self.width];
                for (mine, &seen) in row.iter_mut().zip(theirs) {
                    *mine = seen.max(*mine);
                }
                let chain = chains.of[before as usize];
                if (self.from..self.end()).contains(&chain) {
                    let mine = &mut row[(chain - self.from) as usize];
                    *mine = (*mine).max(chains.place[before as usize] + 1);
                }
            }
            self.seen[txn as usize * self.width..][..self.width].copy_from_slice(&row);
        }
        Ok(())
    }
}
