//! Who saw whom: pieces of the graph, put together, and an order in which its edges lead forward.
//!
//! **Numbers.** Transactions are numbered in the order of the history, those that aborted left out: the parts in their order,
//! each from where the one before it ends. Later in a session is a larger number. In the [`Graph`] whatever precedes by
//! session order and wr has a smaller number: where the order of the history is not such, transactions are renumbered.
//!
//! **Steps.** (1) everybody says how much it read ([`Tally`]), so everybody knows where each part begins ([`Layout`]); (2) whoever
//! read a part makes a [`Piece`] of it; (3) all pieces are the [`Graph`]; (4) transactions of unknown outcome that somebody saw
//! get chains; (5) where sources come after their readers, the stretches between them are sorted ([`Regions`]), and all
//! transactions renumbered.
//!
//! **Cost.** O(transactions + reads), for sorting only of the stretches that are out of order.

use super::digest::Kept;
use super::{DOUBTFUL, NODES_MAX, NONE, Open, Plan};
use replay::shards::Label;
use rustc_hash::FxHashMap;
use search::weak;
use serde::{Deserialize, Serialize};

/// How much somebody read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    sessions: Vec<Label>,
    parts: Vec<PartTally>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct PartTally {
    order: u64,
    len: u32,
    /// The last committed transaction of each session.
    ends: Vec<(u32, u32)>,
}

impl Tally {
    /// Counts parts.
    pub fn of(all: &[Kept]) -> Self {
        let mut tally = Self::default();
        let mut numbers: FxHashMap<&Label, u32> = FxHashMap::default();
        for kept in all {
            let session: Vec<u32> = (kept.sessions.iter())
                .map(|label| {
                    *numbers.entry(label).or_insert_with(|| {
                        tally.sessions.push(label.clone());
                        tally.sessions.len() as u32 - 1
                    })
                })
                .collect();
            let ends = kept.ends().into_iter().map(|(of, last)| (session[of as usize], last)).collect();
            tally.parts.push(PartTally { order: kept.order, len: kept.len() as u32, ends });
        }
        tally
    }
}

/// Where parts begin, and which sessions there are.
#[derive(Debug)]
pub struct Layout {
    numbers: FxHashMap<Label, u32>,
    /// By order: where the transactions of a part begin.
    bases: FxHashMap<u64, u32>,
    /// Of own parts, the last transaction of each session before it.
    before: FxHashMap<u64, Vec<u32>>,
}

impl Layout {
    /// From what everybody read, for the one with this number.
    pub fn new(tallies: &[Tally], own: usize) -> Result<Self, Open> {
        let mut labels: Vec<&Label> = tallies.iter().flat_map(|tally| &tally.sessions).collect();
        labels.sort_unstable();
        labels.dedup();
        let numbers: FxHashMap<Label, u32> = labels.into_iter().cloned().zip(0..).collect();
        let sessions: Vec<Vec<u32>> = (tallies.iter())
            .map(|tally| tally.sessions.iter().map(|label| numbers[label]).collect())
            .collect();
        let mut parts: Vec<(usize, &PartTally)> = (tallies.iter().enumerate())
            .flat_map(|(by, it)| it.parts.iter().map(move |part| (by, part)))
            .collect();
        parts.sort_unstable_by_key(|(_, part)| part.order);
        let all: u64 = parts.iter().map(|(_, part)| u64::from(part.len)).sum();
        if all > NODES_MAX {
            return Err(Open::Size);
        }
        let mut last = vec![NONE; numbers.len()];
        let (mut bases, mut before) = (FxHashMap::default(), FxHashMap::default());
        let mut base = 0;
        for (by, part) in parts {
            bases.insert(part.order, base);
            if by == own {
                before.insert(part.order, last.clone());
            }
            for &(session, end) in &part.ends {
                last[sessions[by][session as usize] as usize] = base + end;
            }
            base += part.len;
        }
        Ok(Self { numbers, bases, before })
    }

    /// How many sessions there are.
    pub fn sessions(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// Where a part begins.
    pub(super) fn base(&self, order: u64) -> u32 {
        self.bases.get(&order).copied().unwrap_or(0)
    }

    /// Of a part of one's own: where it begins, its sessions' numbers, and the last transaction of each before it.
    pub(super) fn of_part(&self, order: u64, sessions: &[Label]) -> (u32, Vec<u32>, Vec<u32>) {
        let numbers: Vec<u32> =
            sessions.iter().map(|label| self.numbers.get(label).copied().unwrap_or(0)).collect();
        let before = self.before.get(&order);
        let last = |session: &u32| before.map_or(NONE, |before| before[*session as usize]);
        (self.base(order), numbers.clone(), numbers.iter().map(last).collect())
    }
}

/// The graph of one part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Piece {
    pub(super) base: u32,
    /// The session of each transaction; [`NONE`] if it is of unknown outcome.
    pub(super) chain: Vec<u32>,
    /// The committed transaction before it in its session.
    pub(super) previous: Vec<u32>,
    /// Where its reads begin; one more than there are transactions.
    pub(super) first_read: Vec<u32>,
    /// Who wrote what each read saw; [`NONE`]: nobody.
    pub(super) sources: Vec<u32>,
    /// Transactions of unknown outcome, with their sessions.
    pub(super) of_unknown: Vec<(u32, u32)>,
    /// Whether all sources are known, and have smaller numbers than their readers.
    pub is_forward: bool,
}

impl Piece {
    /// Where its transactions begin.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// How many transactions it has.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Of each transaction the largest number that directly precedes it, and one more; 0: nothing precedes.
    pub fn tops(&self) -> Vec<u32> {
        tops(&self.previous, &self.first_read, &self.sources)
    }
}

fn tops(previous: &[u32], first_read: &[u32], sources: &[u32]) -> Vec<u32> {
    let of = |(txn, &previous): (usize, &u32)| {
        let reads = &sources[first_read[txn] as usize..first_read[txn + 1] as usize];
        let known = reads.iter().filter(|&&source| source != DOUBTFUL);
        // Nothing is the largest number; one more is the smallest.
        known.map(|source| source.wrapping_add(1)).fold(previous.wrapping_add(1), u32::max)
    };
    previous.iter().enumerate().map(of).collect()
}

/// All pieces.
#[derive(Debug)]
pub struct Graph {
    /// [`NONE`] for those that did not take effect.
    pub(super) chain: Vec<u32>,
    pub(super) previous: Vec<u32>,
    first_read: Vec<u32>,
    sources: Vec<u32>,
    /// The sessions of transactions of unknown outcome, by transaction.
    of_unknown: Vec<(u32, u32)>,
    chains: u32,
    session: bool,
    /// See [`Piece::tops`].
    pub(super) tops: Vec<u32>,
    /// Where sources came after readers: the new number of each transaction.
    renumbered: Option<Vec<u32>>,
}

impl Graph {
    /// Puts all pieces together, by where they begin.
    pub fn new<'p>(
        pieces: impl Iterator<Item = &'p Piece> + Clone,
        sessions: u32,
        plan: Plan,
    ) -> Result<Self, Open> {
        let len = pieces.clone().map(|piece| piece.chain.len()).sum::<usize>();
        let reads = pieces.clone().map(|piece| piece.sources.len()).sum::<usize>();
        if reads >= NONE as usize {
            return Err(Open::Size);
        }
        let mut graph = Self {
            chain: Vec::with_capacity(len),
            previous: Vec::with_capacity(len),
            first_read: Vec::with_capacity(len + 1),
            sources: Vec::with_capacity(reads),
            of_unknown: Vec::new(),
            chains: sessions,
            session: plan.session,
            tops: Vec::new(),
            renumbered: None,
        };
        let mut is_forward = true;
        for piece in pieces {
            let first = graph.sources.len() as u32;
            let own = &piece.first_read[..piece.chain.len()];
            graph.chain.extend_from_slice(&piece.chain);
            graph.previous.extend_from_slice(&piece.previous);
            graph.first_read.extend(own.iter().map(|&at| at + first));
            graph.sources.extend_from_slice(&piece.sources);
            graph.of_unknown.extend_from_slice(&piece.of_unknown);
            is_forward &= piece.is_forward;
        }
        graph.first_read.push(graph.sources.len() as u32);
        graph.admit_unknown()?;
        if !is_forward {
            graph.sort()?;
        }
        graph.tops = tops(&graph.previous, &graph.first_read, &graph.sources);
        Ok(graph)
    }

    /// Transactions of unknown outcome that somebody saw took effect.
    fn admit_unknown(&mut self) -> Result<(), Open> {
        if self.of_unknown.is_empty() {
            return Ok(());
        }
        let mut is_seen = vec![false; self.len()];
        let mut work: Vec<u32> =
            (0..self.len() as u32).filter(|&txn| self.chain[txn as usize] != NONE).collect();
        while let Some(txn) = work.pop() {
            for &source in self.sources_of(txn) {
                if source == DOUBTFUL {
                    return Err(Open::Sources);
                }
                let is_new = source != NONE && self.chain[source as usize] == NONE;
                if is_new && !std::mem::replace(&mut is_seen[source as usize], true) {
                    work.push(source);
                }
            }
        }
        for &(txn, _) in self.of_unknown.iter().filter(|(txn, _)| is_seen[*txn as usize]) {
            self.chain[txn as usize] = self.chains;
            self.chains += 1;
        }
        Ok(())
    }

    /// Brings stretches in which sources come after their readers into order.
    fn sort(&mut self) -> Result<(), Open> {
        let all = 0..self.len() as u32;
        let backward = all.clone().flat_map(|txn| {
            self.predecessors(txn).filter(move |&before| before > txn).map(move |before| (txn, before))
        });
        let regions = Regions::of(backward.collect());
        if regions.spans.is_empty() {
            return Ok(());
        }
        let mut order: Vec<u32> = all.collect();
        for &(start, end) in &regions.spans {
            let graph = &*self;
            let edges = || {
                let within = move |before: &u32| (start..=end).contains(before);
                (start..=end).flat_map(move |txn| {
                    graph.predecessors(txn).filter(within).map(move |before| (before - start, txn - start))
                })
            };
            let sorted = weak::sort((end - start) as usize + 1, edges).map_err(|_| Open::Cycle)?;
            for (place, txn) in (start as usize..).zip(sorted) {
                order[place] = start + txn;
            }
        }
        self.renumber(&order);
        Ok(())
    }

    /// Gives every transaction its place in an order as its number.
    fn renumber(&mut self, order: &[u32]) {
        let mut number = vec![0; order.len()];
        for (place, &txn) in (0..).zip(order) {
            number[txn as usize] = place;
        }
        let new = |txn: u32| if txn >= DOUBTFUL { txn } else { number[txn as usize] };
        self.chain = order.iter().map(|&txn| self.chain[txn as usize]).collect();
        self.previous = order.iter().map(|&txn| new(self.previous[txn as usize])).collect();
        let mut first_read = Vec::with_capacity(self.first_read.len());
        let mut sources = Vec::with_capacity(self.sources.len());
        for &txn in order {
            first_read.push(sources.len() as u32);
            sources.extend(self.sources_of(txn).iter().map(|&source| new(source)));
        }
        first_read.push(sources.len() as u32);
        (self.first_read, self.sources) = (first_read, sources);
        self.of_unknown.iter_mut().for_each(|(txn, _)| *txn = number[*txn as usize]);
        self.of_unknown.sort_unstable();
        self.renumbered = Some(number);
    }

    /// The number of a transaction, from its place in the history.
    #[inline]
    pub(super) fn number(&self, place: u32) -> u32 {
        match &self.renumbered {
            Some(numbers) if place != NONE => numbers[place as usize],
            _ => place,
        }
    }

    /// Whether numbers are places in the history, and everything took effect.
    pub(super) fn is_plain(&self) -> bool {
        self.renumbered.is_none() && self.of_unknown.is_empty()
    }

    /// How many transactions there are.
    pub fn len(&self) -> usize {
        self.chain.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// Sessions, and transactions of unknown outcome that somebody saw.
    pub fn chains(&self) -> u32 {
        self.chains
    }

    #[inline]
    pub(super) fn took_effect(&self, txn: u32) -> bool {
        self.chain[txn as usize] != NONE
    }

    /// The sources of a transaction's reads, in turn.
    #[inline]
    pub(super) fn sources_of(&self, txn: u32) -> &[u32] {
        &self.sources[self.first_read[txn as usize] as usize..self.first_read[txn as usize + 1] as usize]
    }

    /// The session of a transaction.
    pub(super) fn session_of(&self, txn: u32) -> u32 {
        match self.of_unknown.binary_search_by_key(&txn, |&(txn, _)| txn) {
            Ok(place) => self.of_unknown[place].1,
            Err(_) => self.chain[txn as usize],
        }
    }

    /// What directly precedes a transaction in every explanation; nothing does if it did not take effect.
    fn predecessors(&self, txn: u32) -> impl Iterator<Item = u32> + '_ {
        let counts = self.took_effect(txn);
        let previous = Some(self.previous[txn as usize]).filter(|&before| self.session && before != NONE);
        let sources = self.sources_of(txn).iter().copied().filter(|&source| source != NONE);
        previous.into_iter().chain(sources).filter(move |_| counts)
    }

    /// Whether orders and some more edges make no cycle within regions.
    pub fn is_acyclic(&self, regions: &Regions, mut more: Vec<(u32, u32)>) -> bool {
        more.sort_unstable();
        regions.spans.iter().all(|&(start, end)| {
            let within = move |txn: &u32| (start..=end).contains(txn);
            let of_span = &more[more.partition_point(|edge| edge.0 < start)..];
            let of_span = &of_span[..of_span.partition_point(|edge| edge.0 <= end)];
            let edges = || {
                let known = (start..=end).flat_map(move |txn| {
                    let before = self.predecessors(txn).filter(within);
                    before.map(move |before| (before - start, txn - start))
                });
                let more = of_span.iter().filter(move |edge| within(&edge.1));
                known.chain(more.map(move |&(first, second)| (first - start, second - start)))
            };
            weak::sort((end - start) as usize + 1, edges).is_ok()
        })
    }
}

/// Stretches of numbers that backward edges span: a cycle lies within one of them, because it comes back over every
/// place that it leaves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Regions {
    /// First and last places, apart from each other, ascending.
    spans: Vec<(u32, u32)>,
}

impl Regions {
    /// From the ends of backward edges, the smaller first.
    pub(super) fn of(mut ends: Vec<(u32, u32)>) -> Self {
        ends.sort_unstable();
        let mut spans: Vec<(u32, u32)> = Vec::new();
        for (start, end) in ends {
            match spans.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => spans.push((start, end)),
            }
        }
        Self { spans }
    }

    /// From edges that lead backward.
    pub fn spanned(backward: &[(u32, u32)]) -> Self {
        Self::of(backward.iter().map(|&(first, second)| (second, first)).collect())
    }

    /// What several hands found.
    pub fn joined(all: &[Self]) -> Self {
        Self::of(all.iter().flat_map(|regions| regions.spans.iter().copied()).collect())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Whether it is in one of them.
    pub(super) fn hold(&self, txn: u32) -> bool {
        let place = self.spans.partition_point(|span| span.1 < txn);
        self.spans.get(place).is_some_and(|span| span.0 <= txn)
    }

    /// Whether both are in the same one.
    pub(super) fn hold_both(&self, one: u32, other: u32) -> bool {
        let place = self.spans.partition_point(|span| span.1 < one);
        self.spans.get(place).is_some_and(|&(start, end)| start <= one.min(other) && one.max(other) <= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolation::{Level, Options, Rule};

    #[test]
    fn stretches_that_touch_are_one() {
        let regions = Regions::spanned(&[(9, 7), (3, 1), (5, 3), (20, 12)]);
        assert_eq!(regions.spans, [(1, 5), (7, 9), (12, 20)]);
        assert!(regions.hold(1) && regions.hold(20) && !regions.hold(6) && !regions.hold(NONE));
        assert!(regions.hold_both(5, 1) && !regions.hold_both(5, 7));
        assert_eq!(Regions::joined(&[regions, Regions::spanned(&[(7, 5)])]).spans, [(1, 9), (12, 20)]);
    }

    /// Three transactions of two sessions; the first of the file saw the last one.
    fn piece(sources: [u32; 2]) -> Piece {
        Piece {
            base: 0,
            chain: vec![0, 1, 1],
            previous: vec![NONE, NONE, 1],
            first_read: vec![0, 1, 2, 2],
            sources: sources.to_vec(),
            of_unknown: Vec::new(),
            is_forward: false,
        }
    }

    #[test]
    fn what_precedes_gets_a_smaller_number() {
        let plan = Plan::of(Level::new(Rule::Causal, true, false), &Options::default()).expect("decided so");
        let graph = Graph::new([&piece([2, NONE])].into_iter(), 2, plan).expect("no cycle");
        assert_eq!([0, 1, 2].map(|place| graph.number(place)), [2, 0, 1]);
        assert_eq!(
            (graph.chain.as_slice(), graph.previous.as_slice()),
            (&[1, 1, 0][..], &[NONE, 0, NONE][..])
        );
        assert_eq!((graph.sources_of(2), graph.tops.as_slice()), (&[1][..], &[0, 1, 2][..]));
        // 0 saw 2, which follows 1, which saw 0.
        let cyclic = Graph::new([&piece([2, 0])].into_iter(), 2, plan);
        assert_eq!(cyclic.err(), Some(Open::Cycle));
    }

    #[test]
    fn edges_within_regions_are_sorted() {
        let plan = Plan::of(Level::new(Rule::Causal, true, false), &Options::default()).expect("decided so");
        let graph = Graph::new([&piece([2, NONE])].into_iter(), 2, plan).expect("no cycle");
        let regions = Regions::spanned(&[(2, 0)]);
        assert!(!graph.is_acyclic(&regions, vec![(2, 0)]), "0 precedes 1, which 2 saw");
        assert!(graph.is_acyclic(&regions, vec![(0, 2)]));
    }
}
