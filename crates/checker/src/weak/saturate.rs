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

use super::Sight;
use super::cycle;
use crate::constrain::Known;
use crate::observe::{INITIAL, NONE, Problem, Read, Standing, Txn};
use history::{History, Id, Status};
use rustc_hash::FxHashSet;
use solver::Graph;

/// Decides it; `Err` are transactions that already have no explanation. `None`: not by saturation.
pub(super) fn saturate(
    history: &History,
    problem: &Problem,
    known: &Known,
    sight: Sight,
) -> Option<Result<(), Vec<Txn>>> {
    if !matches!(sight, Sight::Nothing | Sight::EarlierReads | Sight::Direct | Sight::Causes) {
        return None;
    }
    let mut saturation = Saturation::new(history, problem);
    // Causality is judged on an acyclic graph.
    if sight == Sight::Causes
        && let Err(cycle) = saturation.sort(known)
    {
        return Some(Err(saturation.core(&cycle)));
    }
    let listed = match sight {
        Sight::EarlierReads => saturation.oblige_sources(true),
        Sight::Direct => saturation.oblige_sources(false).and_then(|()| saturation.oblige_sessions()),
        Sight::Causes => saturation.oblige_causes(),
        _ => Ok(()),
    };
    if let Err(unseen) = listed {
        return Some(Err(saturation.core_of(&unseen)));
    }
    Some(match saturation.sort(known) {
        Ok(_) => Ok(()),
        Err(cycle) => Err(saturation.core(&cycle)),
    })
}

/// "`first` commits before `second`, because `reader` must see it."
#[derive(Clone, Copy, Debug)]
struct Obligation {
    first: Txn,
    /// [`NONE`]: before the initial state, which is impossible.
    second: Txn,
    reader: Txn,
}

struct Saturation<'a> {
    history: &'a History,
    problem: &'a Problem,
    obligations: Vec<Obligation>,
    /// Which reads are not reads; see [`Problem::bases`]. Empty if all are.
    is_base: Vec<bool>,
}

/// Above this many writes a transaction's keys are looked up instead of walked.
const WRITES_WALKED_MAX: usize = 64;

impl<'a> Saturation<'a> {
    fn new(history: &'a History, problem: &'a Problem) -> Self {
        Self { history, problem, obligations: Vec::new(), is_base: bases_of(problem) }
    }

    fn is_live(&self, txn: Txn) -> bool {
        self.problem.standing[txn as usize] != Standing::Out
    }

    fn reads_of(&self, txn: Txn) -> impl Iterator<Item = &'a Read> + '_ {
        let ids = self.problem.read_ids(txn);
        ids.filter(|&id| !self.is_base.get(id).copied().unwrap_or(false)).map(|id| &self.problem.reads[id])
    }

    fn writer(&self, version: u32) -> Txn {
        if version == INITIAL { NONE } else { self.problem.versions[version as usize].txn }
    }

    fn oblige(&mut self, first: Txn, second: Txn, reader: Txn) -> Result<(), Obligation> {
        let obligation = Obligation { first, second, reader };
        if second == NONE {
            return Err(obligation);
        }
        self.obligations.push(obligation);
        Ok(())
    }

    fn sort(&self, known: &Known) -> Result<Vec<u32>, Vec<u32>> {
        let nodes = known.node_count(self.problem);
        let graph = Graph::from_edges(nodes, || {
            known.edges(self.problem).chain(self.obligations.iter().map(|it| (it.first, it.second)))
        });
        cycle::sort(&graph)
    }

    // ---- sources against reads of one transaction ----

    /// Obligations from what a transaction reads from; with `earlier` only from reads before.
    fn oblige_sources(&mut self, earlier: bool) -> Result<(), Obligation> {
        let mut stamp = vec![NONE; self.problem.keys()];
        let mut first_of_key = vec![NONE; self.problem.keys()];
        let large = self.large_writers();
        let mut reads: Vec<(Read, u32)> = Vec::new();
        let mut sources: Vec<(Txn, usize)> = Vec::new();
        for txn in 0..self.problem.len() as Txn {
            if !self.is_live(txn) {
                continue;
            }
            reads.clear();
            sources.clear();
            for read in self.reads_of(txn) {
                let key = read.key as usize;
                let next = if stamp[key] == txn { first_of_key[key] } else { NONE };
                stamp[key] = txn;
                first_of_key[key] = reads.len() as u32;
                let source = self.writer(read.source);
                if source != NONE && !sources.iter().any(|&(seen, _)| seen == source) {
                    sources.push((source, reads.len()));
                }
                reads.push((*read, next));
            }
            if reads.len() < 2 {
                continue;
            }
            for &(seen, place) in &sources {
                let from = if earlier { place + 1 } else { 0 };
                if self.problem.versions_of(seen).len() > WRITES_WALKED_MAX {
                    for (read, _) in &reads[from.min(reads.len())..] {
                        let source = self.writer(read.source);
                        if source != seen && large.contains(&(seen, read.key)) {
                            self.oblige(seen, source, txn)?;
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
                        let (read, next) = &reads[at as usize];
                        let source = self.writer(read.source);
                        if source != seen {
                            self.oblige(seen, source, txn)?;
                        }
                        at = *next;
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
    fn oblige_sessions(&mut self) -> Result<(), Obligation> {
        let mut by_session: Vec<Vec<Txn>> = vec![Vec::new(); self.history.sessions().len()];
        for txn in (0..self.problem.len() as Txn).filter(|&txn| self.is_live(txn)) {
            let transaction = self.history.transaction(self.problem.txns[txn as usize]);
            by_session[transaction.session().index()].push(txn);
        }
        let mut stamp = vec![NONE; self.problem.keys()];
        let mut last = vec![NONE; self.problem.keys()];
        for (session, txns) in by_session.iter().enumerate() {
            for &txn in txns {
                for id in self.problem.read_ids(txn) {
                    let read = self.problem.reads[id];
                    let key = read.key as usize;
                    let is_base = self.is_base.get(id).copied().unwrap_or(false);
                    let source = self.writer(read.source);
                    if stamp[key] == session as u32 && last[key] != source && !is_base {
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

    fn oblige_causes(&mut self) -> Result<(), Obligation> {
        let chains = Chains::of(self.history, self.problem);
        let writers = Writers::of(self.problem, &chains);
        let order = self.causal_order();
        let mut clocks = Clocks::new(self.problem.len(), chains.count);
        let mut from = 0;
        while from < chains.count {
            clocks.run(self, &chains, &order, from);
            for txn in 0..self.problem.len() as Txn {
                if self.is_live(txn) {
                    self.causes_of(txn, &writers, &chains, &clocks)?;
                }
            }
            from += CHAINS_AT_ONCE as u32;
        }
        Ok(())
    }

    fn causes_of(
        &mut self,
        txn: Txn,
        writers: &Writers,
        chains: &Chains,
        clocks: &Clocks,
    ) -> Result<(), Obligation> {
        for id in self.problem.read_ids(txn) {
            if self.is_base.get(id).copied().unwrap_or(false) {
                continue;
            }
            let read = self.problem.reads[id];
            let source = self.writer(read.source);
            for group in writers.groups_within(read.key, clocks.from, clocks.end()) {
                let seen = clocks.of(txn, group.chain);
                let versions = writers.of_group(group);
                if seen == 0 || chains.place[versions[0] as usize] >= seen {
                    continue;
                }
                let count = versions.partition_point(|&writer| chains.place[writer as usize] < seen);
                let last = versions[count - 1];
                // What precedes the source anyway need not be said.
                let is_said = source != NONE
                    && (last == source || clocks.of(source, group.chain) > chains.place[last as usize]);
                if !is_said {
                    self.oblige(last, source, txn)?;
                }
            }
        }
        Ok(())
    }

    /// Transactions in an order that contains session order and wr.
    fn causal_order(&self) -> Vec<Txn> {
        let graph = Graph::from_edges(self.problem.len(), || {
            (0..self.problem.len() as Txn)
                .filter(|&txn| self.is_live(txn))
                .flat_map(|txn| self.causes(txn).map(move |before| (before, txn)))
        });
        let place = cycle::sort(&graph).expect("session order and wr were sorted before");
        let mut order: Vec<Txn> = (0..self.problem.len() as Txn).collect();
        order.sort_unstable_by_key(|&txn| place[txn as usize]);
        order
    }

    /// What directly precedes a transaction by session order and wr.
    fn causes(&self, txn: Txn) -> impl Iterator<Item = Txn> + '_ {
        let previous = Some(self.problem.previous[txn as usize]).filter(|&previous| previous != NONE);
        let sources = self.reads_of(txn).map(|read| self.writer(read.source)).filter(|&it| it != NONE);
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

/// Which reads are not reads, by id; empty if all are.
pub(super) fn bases_of(problem: &Problem) -> Vec<bool> {
    if problem.bases.is_empty() {
        return Vec::new();
    }
    let mut is_base = vec![false; problem.reads.len()];
    for &id in &problem.bases {
        is_base[id as usize] = true;
    }
    is_base
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
}

/// The writers of each key by chain.
struct Writers {
    start: Vec<u32>,
    groups: Vec<Group>,
    txns: Vec<Txn>,
}

/// The writers of a key in one chain, ascending.
#[derive(Clone, Copy)]
struct Group {
    chain: u32,
    from: u32,
    to: u32,
}

impl Writers {
    fn of(problem: &Problem, chains: &Chains) -> Self {
        let mut it =
            Self { start: vec![0], groups: Vec::new(), txns: Vec::with_capacity(problem.versions.len()) };
        let mut of_key: Vec<(u32, u32, Txn)> = Vec::new();
        for key in 0..problem.keys() as u32 {
            of_key.clear();
            for &(_, version) in problem.versions_of_key(key) {
                let txn = problem.versions[version as usize].txn;
                if problem.standing[txn as usize] != Standing::Out {
                    of_key.push((chains.of[txn as usize], chains.place[txn as usize], txn));
                }
            }
            of_key.sort_unstable();
            for &(chain, _, txn) in &of_key {
                let at = it.txns.len() as u32;
                it.txns.push(txn);
                let start = *it.start.last().expect("it starts with an entry") as usize;
                match it.groups[start..].last_mut() {
                    Some(group) if group.chain == chain => group.to = at + 1,
                    _ => it.groups.push(Group { chain, from: at, to: at + 1 }),
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

    fn of_group(&self, group: &Group) -> &[Txn] {
        &self.txns[group.from as usize..group.to as usize]
    }
}

/// How many chains one pass keeps clocks of.
const CHAINS_AT_ONCE: usize = 64;

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

    fn of(&self, txn: Txn, chain: u32) -> u32 {
        self.seen[txn as usize * self.width + (chain - self.from) as usize]
    }

    /// Computes the clocks of the chains from `from` on.
    fn run(&mut self, saturation: &Saturation<'_>, chains: &Chains, order: &[Txn], from: u32) {
        self.from = from;
        self.seen.fill(0);
        let mut row = vec![0; self.width];
        for &txn in order.iter().filter(|&&txn| saturation.is_live(txn)) {
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
    }
}
