//! What session order and known reads already settle.
//!
//! *What*: where many reads are ambiguous, most of their candidates cannot have been seen: the reader comes
//! before them, or another version certainly lies between. Each transaction gets a *clock*: for every session
//! how many of its transactions certainly come before. A question "does S come before T?" is then one
//! comparison, and two rules settle what they can:
//!
//! ```text
//!   T read x from W, S writes x:      S before T   gives  S before W
//!                                     W before S   gives  T before S      (serial levels)
//!   T read x = v, candidates W, …:    W before S before T, or T before W: W is ruled out
//! ```
//!
//! *Invariant*: every edge and every candidate ruled out holds in all explanations that keep to session order.
//! *Steps*: clocks along a first order; both rules over all reads; again while that rules out candidates.
//! *Cost*: (reads · sessions) a round. *Source*: algorithms.md §1 and §2.

use crate::constrain::Known;
use crate::observe::{INITIAL, NONE, Problem, Read, Standing, Txn};

/// Ambiguous reads below which the search alone is faster, as a share of all transactions.
const WORTH_ONE_IN: usize = 8;
/// Clocks beyond this many numbers are not kept.
const CLOCK_MAX: usize = 1 << 27;

/// Whether there is enough to settle.
pub(crate) fn is_worth_it(problem: &Problem, known: &Known) -> bool {
    known.session
        && problem.matches.is_empty()
        && problem.ambiguous() * WORTH_ONE_IN > problem.len()
        && Chains::count(problem) * problem.len() <= CLOCK_MAX
}

/// What a round found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Round {
    /// This share of the candidates was ruled out.
    RuledOut { share: f64 },
    /// A read without a candidate: there is no explanation that keeps to session order.
    Impossible,
}

/// Rules out candidates and adds edges.
pub(crate) fn saturate(problem: &mut Problem, known: &mut Known, position: &[u32]) -> Round {
    let chains = Chains::new(problem);
    let clocks = Clocks::new(problem, known, &chains, position);
    let writers = Writers::new(problem, &chains);
    let before = known.derived.len();
    let mut rules = Rules {
        problem,
        known,
        clocks: &clocks,
        writers: &writers,
        ruled_out: 0,
        left: 0,
        is_impossible: false,
    };
    rules.apply();
    // Whoever reads many keys of one writer says the same of it many times.
    rules.known.derived[before..].sort_unstable();
    rules.known.derived.dedup();
    let (ruled_out, all) = (rules.ruled_out, rules.ruled_out + rules.left);
    if rules.is_impossible {
        return Round::Impossible;
    }
    // Where there is no candidate to rule out, edges tell whether it goes on.
    let (done, of) = if all > 0 { (ruled_out, all) } else { (known.derived.len() - before, problem.len()) };
    Round::RuledOut { share: done as f64 / of.max(1) as f64 }
}

/// Sessions, as chains of transactions that certainly took effect.
struct Chains {
    count: usize,
    /// For each transaction its chain and its place there; [`NONE`] if it may not have taken effect.
    of: Vec<(u32, u32)>,
}

impl Chains {
    fn count(problem: &Problem) -> usize {
        problem.previous.iter().filter(|&&previous| previous == NONE).count()
    }

    fn new(problem: &Problem) -> Self {
        let mut count = 0;
        let mut of: Vec<(u32, u32)> = Vec::with_capacity(problem.len());
        for txn in 0..problem.len() {
            of.push(match (problem.standing[txn], problem.previous[txn]) {
                (Standing::In, NONE) => {
                    count += 1;
                    (count - 1, 0)
                }
                (Standing::In, previous) => {
                    let (chain, place) = of[previous as usize];
                    (chain, place + 1)
                }
                _ => (NONE, NONE),
            });
        }
        Self { count: count as usize, of }
    }
}

/// For each transaction and chain, how many of the chain's transactions certainly come before, and from which on they
/// certainly come after.
struct Clocks<'a> {
    chains: &'a Chains,
    ticks: Vec<u32>,
    /// Where only what comes before counts there are none.
    ahead: Vec<u32>,
}

impl<'a> Clocks<'a> {
    fn new(problem: &Problem, known: &Known, chains: &'a Chains, position: &[u32]) -> Self {
        let mut order: Vec<Txn> =
            (0..problem.len() as Txn).filter(|&txn| chains.of[txn as usize].0 != NONE).collect();
        order.sort_unstable_by_key(|&txn| position[known.nodes.begin(txn) as usize]);
        let (start, derived) = incoming(problem.len(), &known.derived);
        // Whoever certainly comes right before a transaction, some more than once.
        let preceding = |txn: Txn| {
            let session = Some(problem.previous[txn as usize]);
            let sources =
                problem.reads_of(txn).iter().filter(|read| read.is_known() && read.source < INITIAL);
            let writers = sources.map(|read| problem.versions[read.source as usize].txn);
            let derived = &derived[start[txn as usize] as usize..start[txn as usize + 1] as usize];
            let all = session.into_iter().chain(writers).chain(derived.iter().copied());
            all.filter(|&other| other != NONE && chains.of[other as usize].0 != NONE)
        };
        let mut clocks = Self { chains, ticks: vec![0; problem.len() * chains.count], ahead: Vec::new() };
        let mut row = vec![0u32; chains.count];
        for &txn in &order {
            row.fill(0);
            preceding(txn).for_each(|other| {
                let (chain, place) = chains.of[other as usize];
                if row[chain as usize] <= place {
                    let theirs = clocks.before(other).iter();
                    row.iter_mut().zip(theirs).for_each(|(mine, &their)| *mine = (*mine).max(their));
                    row[chain as usize] = place + 1;
                }
            });
            clocks.ticks[txn as usize * chains.count..][..chains.count].copy_from_slice(&row);
        }
        if known.nodes.points == 2 {
            return clocks;
        }
        clocks.ahead = vec![NONE; problem.len() * chains.count];
        for &txn in order.iter().rev() {
            row.copy_from_slice(clocks.after(txn));
            let (chain, place) = chains.of[txn as usize];
            row[chain as usize] = place;
            preceding(txn).for_each(|other| {
                let theirs = &mut clocks.ahead[other as usize * chains.count..][..chains.count];
                if theirs[chain as usize] > place {
                    theirs.iter_mut().zip(&row).for_each(|(their, &mine)| *their = (*their).min(mine));
                }
            });
        }
        clocks
    }

    /// How many of each chain certainly come before a transaction.
    #[inline]
    fn before(&self, txn: Txn) -> &[u32] {
        &self.ticks[txn as usize * self.chains.count..][..self.chains.count]
    }

    /// From which place on each chain certainly comes after a transaction.
    #[inline]
    fn after(&self, txn: Txn) -> &[u32] {
        &self.ahead[txn as usize * self.chains.count..][..self.chains.count]
    }

    /// Whether one transaction certainly comes before another.
    #[inline]
    fn is_before(&self, first: Txn, second: Txn) -> bool {
        let (chain, place) = self.chains.of[first as usize];
        chain != NONE && self.ticks[second as usize * self.chains.count + chain as usize] > place
    }
}

/// Groups the sources of edges by their target.
fn incoming(len: usize, edges: &[(Txn, Txn)]) -> (Vec<u32>, Vec<Txn>) {
    let mut start = vec![0u32; len + 1];
    for &(_, to) in edges {
        start[to as usize + 1] += 1;
    }
    for index in 1..start.len() {
        start[index] += start[index - 1];
    }
    let mut next = start.clone();
    let mut from = vec![NONE; edges.len()];
    for &(source, to) in edges {
        from[next[to as usize] as usize] = source;
        next[to as usize] += 1;
    }
    (start, from)
}

/// The certain writers of each key, by chain and place.
struct Writers {
    /// For each key its first stretch, and one more.
    start: Vec<u32>,
    /// The stretches: a chain, and its first writer. One more says where the last one ends.
    stretches: Vec<(u32, u32)>,
    txns: Vec<Txn>,
    /// Beside each writer its place in its chain.
    places: Vec<u32>,
}

/// The writers of a key in one chain, in session order.
struct Stretch<'a> {
    chain: usize,
    txns: &'a [Txn],
    places: &'a [u32],
}

impl Stretch<'_> {
    /// The last writer before a place of the chain.
    #[inline]
    fn last_before(&self, place: u32) -> Option<Txn> {
        self.places.partition_point(|&other| other < place).checked_sub(1).map(|last| self.txns[last])
    }

    /// The first writer from a place of the chain on that is not this one.
    #[inline]
    fn first_from(&self, place: u32, but: Txn) -> Option<Txn> {
        let first = self.places.partition_point(|&other| other < place);
        self.txns[first..].iter().copied().find(|&writer| writer != but)
    }
}

impl Writers {
    fn new(problem: &Problem, chains: &Chains) -> Self {
        let mut made = Self {
            start: vec![0],
            stretches: Vec::new(),
            txns: Vec::with_capacity(problem.versions.len()),
            places: Vec::with_capacity(problem.versions.len()),
        };
        let mut group = Vec::new();
        for key in 0..problem.keys() as u32 {
            let versions = problem.versions_of_key(key).iter();
            let writers = versions.map(|&(_, version)| problem.versions[version as usize].txn);
            group.extend(
                writers.map(|txn| (chains.of[txn as usize], txn)).filter(|((chain, _), _)| *chain != NONE),
            );
            group.sort_unstable();
            let mut latest = NONE;
            for ((chain, place), txn) in group.drain(..) {
                if chain != latest {
                    made.stretches.push((chain, made.txns.len() as u32));
                    latest = chain;
                }
                made.txns.push(txn);
                made.places.push(place);
            }
            made.start.push(made.stretches.len() as u32);
        }
        made.stretches.push((NONE, made.txns.len() as u32));
        made
    }

    /// The writers of a key, chain by chain.
    fn of(&self, key: u32) -> impl Iterator<Item = Stretch<'_>> {
        let (first, end) = (self.start[key as usize] as usize, self.start[key as usize + 1] as usize);
        self.stretches[first..=end].windows(2).map(|pair| {
            let range = pair[0].1 as usize..pair[1].1 as usize;
            let chain = pair[0].0 as usize;
            Stretch { chain, txns: &self.txns[range.clone()], places: &self.places[range] }
        })
    }
}

struct Rules<'a> {
    problem: &'a mut Problem,
    known: &'a mut Known,
    clocks: &'a Clocks<'a>,
    writers: &'a Writers,
    ruled_out: usize,
    left: usize,
    is_impossible: bool,
}

impl Rules<'_> {
    fn apply(&mut self) {
        let mut latest = Vec::new();
        for id in 0..self.problem.reads.len() {
            let read = self.problem.reads[id];
            // What a read did not see rules out little, and there is much of it.
            let is_claim = !read.is_known() && !self.problem.value_of(&read).is_known();
            if self.problem.standing[read.txn as usize] != Standing::In || is_claim {
                continue;
            }
            latest.clear();
            let before = self.clocks.before(read.txn);
            for stretch in self.writers.of(read.key) {
                latest.extend(stretch.last_before(before[stretch.chain]));
            }
            if read.is_known() {
                self.settle_known(&read, &latest);
            } else {
                self.rule_out(id, &read, &latest);
            }
        }
    }

    /// Versions certainly visible to the reader come before its source; those certainly after the source,
    /// after the reader.
    fn settle_known(&mut self, read: &Read, latest: &[Txn]) {
        let reader = read.txn;
        if read.source < INITIAL {
            let source = self.problem.versions[read.source as usize].txn;
            for &writer in latest.iter().filter(|&&writer| writer != source) {
                if !self.clocks.is_before(writer, source) {
                    self.known.derived.push((writer, source));
                }
            }
            if self.known.nodes.points == 2 || self.problem.standing[source as usize] != Standing::In {
                return;
            }
            let after = self.clocks.after(source);
            for stretch in self.writers.of(read.key) {
                self.misses(reader, stretch.first_from(after[stretch.chain], reader));
            }
        } else if self.known.nodes.points == 1 {
            for stretch in self.writers.of(read.key) {
                self.misses(reader, stretch.first_from(0, reader));
            }
        }
    }

    fn misses(&mut self, reader: Txn, writer: Option<Txn>) {
        if let Some(writer) = writer.filter(|&writer| !self.clocks.is_before(reader, writer)) {
            self.known.derived.push((reader, writer));
        }
    }

    /// Keeps the candidates that nothing hides.
    fn rule_out(&mut self, id: usize, read: &Read, latest: &[Txn]) {
        let is_possible = |version: u32| {
            if version == INITIAL {
                return latest.is_empty();
            }
            let writer = self.problem.versions[version as usize].txn;
            !self.clocks.is_before(read.txn, writer)
                && !latest.iter().any(|&other| self.clocks.is_before(writer, other))
        };
        let mut all = 0;
        let left: Vec<u32> = (self.problem.candidates(read).inspect(|_| all += 1))
            .filter(|&version| is_possible(version))
            .collect();
        self.left += left.len();
        if left.is_empty() {
            self.is_impossible = true;
        } else if left.len() < all {
            self.ruled_out += all - left.len();
            self.problem.narrow(id, &left);
        }
    }
}
