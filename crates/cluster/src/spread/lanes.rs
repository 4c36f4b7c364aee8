//! The reads and the writers of some keys, and what they oblige to.
//!
//! **Doubts.** Numbers are an order that session order and wr keep to; obligations that lead forward in it, too, make no cycle
//! with them. A read of x by T from W obliges to something backward only if a writer of x after W precedes T, and whatever
//! precedes T has a number no larger than the largest that directly precedes it: if no writer of x lies between, the
//! read is clear, and nothing has to be known of the reader but that one number. So is nearly every read of a history that is
//! written down in the order of commits, and whose database is stronger than the level. The others are [`Doubts`].
//!
//! **Steps.** For each doubtful read, and each level:
//! * axiomatic read committed, read atomic: sources of the reader (for the first one: of earlier reads) that write the key, too;
//! * read atomic: the last writer of the key earlier in the reader's session;
//! * causal: of each group, the writers of the key in one chain, the last that the reader's clock has seen, unless the source's
//!   clock has seen it.
//!
//! **Cost.** O(reads) and a look among writers, mostly near the one before; for doubtful reads × sources a look into a bitmap,
//! or × groups two comparisons and a look among their writers.

use super::clocks::Columns;
use super::graph::{Graph, Regions};
use super::{NONE, Open, Plan};
use isolation::gallop;
use search::weak::Sight;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A read: by whom, and whose version.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) txn: u32,
    pub(super) source: u32,
}

/// Some keys, as the history has them.
#[derive(Debug, Default)]
pub struct Lanes {
    keys: Vec<Ends>,
    reads: Vec<Seen>,
    /// Where it matters: of each read, how many reads of its transaction come before it.
    earlier: Vec<u32>,
    /// Ascending within a key.
    writers: Vec<u32>,
}

/// Where reads and writers of a key end, or reads and groups.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Ends {
    reads: u32,
    writers: u32,
}

/// Some reads of some keys, and all writers of these by chain.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Doubts {
    keys: Vec<Ends>,
    reads: Vec<Seen>,
    earlier: Vec<u32>,
    groups: Vec<Group>,
    writers: Vec<u32>,
}

/// The writers of a key in one chain, ascending.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Group {
    chain: u32,
    from: u32,
    to: u32,
}

/// What is found: edges that lead backward, or all within regions.
#[derive(Debug)]
pub struct Edges<'a> {
    regions: Option<&'a Regions>,
    found: Vec<(u32, u32)>,
}

impl<'a> Edges<'a> {
    /// With regions: all edges within them; without: those that lead backward.
    pub fn new(regions: Option<&'a Regions>) -> Self {
        Self { regions, found: Vec::new() }
    }

    /// What was found, each edge once.
    pub fn into_found(mut self) -> Vec<(u32, u32)> {
        self.found.sort_unstable();
        self.found.dedup();
        self.found
    }

    /// "`first` commits before `second`."
    #[inline]
    fn oblige(&mut self, first: u32, second: u32) -> Result<(), Open> {
        if second == NONE {
            return Err(Open::Initial);
        }
        let counts = match self.regions {
            None => first > second,
            Some(regions) => regions.hold_both(first, second),
        };
        if counts && self.found.last() != Some(&(first, second)) {
            self.found.push((first, second));
        }
        Ok(())
    }
}

impl Lanes {
    /// How many reads and writers there are.
    pub fn len(&self) -> usize {
        self.reads.len() + self.writers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A read of the key at hand.
    pub(super) fn read(&mut self, seen: Seen, earlier: Option<u32>) {
        self.reads.push(seen);
        self.earlier.extend(earlier);
    }

    /// All reads of the key at hand are here; these are its writers, ascending.
    pub(super) fn end_key(&mut self, writers: impl Iterator<Item = u32>) {
        self.writers.extend(writers);
        self.keys.push(Ends { reads: self.reads.len() as u32, writers: self.writers.len() as u32 });
    }

    /// Each key's reads and writers.
    fn each(&self) -> impl Iterator<Item = (Range<usize>, &[u32])> {
        let (mut read_at, mut write_at) = (0, 0);
        self.keys.iter().map(move |ends| {
            let reads = std::mem::replace(&mut read_at, ends.reads as usize)..ends.reads as usize;
            let writers = std::mem::replace(&mut write_at, ends.writers as usize)..ends.writers as usize;
            (reads, &self.writers[writers])
        })
    }

    /// Whether no read obliges to anything that leads backward, as far as that shows by what directly precedes its
    /// transaction ([`super::Piece::tops`]).
    pub fn are_clear(&self, tops: &[u32]) -> bool {
        self.each().all(|(reads, writers)| {
            let mut next = Next { writers, hint: 0 };
            self.reads[reads].iter().all(|&read| next.is_clear(read, tops))
        })
    }

    /// Gives transactions the numbers of the graph, and leaves out who did not take effect.
    pub fn renumber(&mut self, graph: &Graph) {
        if graph.is_plain() {
            return;
        }
        let old = std::mem::take(self);
        let mut earlier = old.earlier.iter();
        let mut of_key: Vec<(Seen, Option<u32>)> = Vec::new();
        let number = |place: u32| graph.number(place);
        for (reads, writers) in old.each() {
            of_key.clear();
            for read in &old.reads[reads] {
                let earlier = earlier.next().copied();
                // The source of what did not take effect may not be known.
                if graph.took_effect(number(read.txn)) {
                    of_key.push((Seen { txn: number(read.txn), source: number(read.source) }, earlier));
                }
            }
            of_key.sort_unstable_by_key(|(read, earlier)| (read.txn, *earlier));
            of_key.iter().for_each(|&(read, earlier)| self.read(read, earlier));
            let first = self.writers.len();
            self.end_key(writers.iter().map(|&txn| number(txn)).filter(|&txn| graph.took_effect(txn)));
            self.writers[first..].sort_unstable();
        }
    }

    /// Reads that may oblige to something that leads backward; with regions, all that may oblige to something within them.
    pub fn doubts(&self, graph: &Graph, regions: Option<&Regions>) -> Doubts {
        let mut doubts = Doubts::default();
        let mut count = vec![0u32; graph.chains() as usize];
        let mut chains: Vec<u32> = Vec::new();
        for (reads, writers) in self.each() {
            let first = doubts.reads.len();
            let mut next = Next { writers, hint: 0 };
            for at in reads {
                let read = self.reads[at];
                let is_doubtful = match regions {
                    None => !next.is_clear(read, &graph.tops),
                    Some(regions) => regions.hold(read.source),
                };
                if is_doubtful {
                    doubts.reads.push(read);
                    doubts.earlier.extend(self.earlier.get(at));
                }
            }
            if doubts.reads.len() > first {
                doubts.end_key(graph, writers, &mut count, &mut chains);
            }
        }
        doubts
    }
}

/// The next writer of a key after a source: looked for from where it was the time before.
struct Next<'w> {
    writers: &'w [u32],
    hint: usize,
}

impl Next<'_> {
    /// Whether no writer of the key comes after the source and no later than what directly precedes the reader. Whatever
    /// precedes it at all comes no later than that.
    #[inline]
    fn is_clear(&mut self, read: Seen, tops: &[u32]) -> bool {
        // One more than nothing is nothing.
        let after = read.source.wrapping_add(1);
        let top = tops[read.txn as usize];
        if top <= after {
            return true;
        }
        self.hint = gallop(self.writers, self.hint, |&writer| writer < after);
        self.writers.get(self.hint).is_none_or(|&writer| writer >= top)
    }
}

impl Doubts {
    /// How many reads there are.
    pub fn len(&self) -> usize {
        self.reads.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.reads.is_empty()
    }

    /// Puts the writers of the key at hand in groups.
    fn end_key(&mut self, graph: &Graph, writers: &[u32], count: &mut [u32], chains: &mut Vec<u32>) {
        chains.clear();
        for &txn in writers {
            let chain = graph.chain[txn as usize];
            let of_chain = &mut count[chain as usize];
            if *of_chain == 0 {
                chains.push(chain);
            }
            *of_chain += 1;
        }
        chains.sort_unstable();
        let mut from = self.writers.len() as u32;
        for &chain in &*chains {
            let len = std::mem::replace(&mut count[chain as usize], from);
            self.groups.push(Group { chain, from, to: from + len });
            from += len;
        }
        self.writers.resize(from as usize, NONE);
        for &txn in writers {
            let place = &mut count[graph.chain[txn as usize] as usize];
            self.writers[*place as usize] = txn;
            *place += 1;
        }
        chains.iter().for_each(|&chain| count[chain as usize] = 0);
        self.keys.push(Ends { reads: self.reads.len() as u32, writers: self.groups.len() as u32 });
    }

    /// Each key's reads and groups.
    fn each(&self) -> impl Iterator<Item = (Range<usize>, &[Group])> {
        let (mut read_at, mut group_at) = (0, 0);
        self.keys.iter().map(move |ends| {
            let reads = std::mem::replace(&mut read_at, ends.reads as usize)..ends.reads as usize;
            let groups = std::mem::replace(&mut group_at, ends.writers as usize)..ends.writers as usize;
            (reads, &self.groups[groups])
        })
    }

    /// Obligations from what transactions read from, and from what came before them in their sessions.
    pub fn oblige_direct(&self, plan: Plan, graph: &Graph, edges: &mut Edges<'_>) -> Result<(), Open> {
        let mut writes = vec![0u64; graph.len() / 64 + 1];
        for (reads, groups) in self.each() {
            let (Some(first), Some(last)) = (groups.first(), groups.last()) else { continue };
            let writers = &self.writers[first.from as usize..last.to as usize];
            writers.iter().for_each(|&txn| writes[txn as usize / 64] |= 1 << (txn % 64));
            for at in reads {
                let Seen { txn, source } = self.reads[at];
                let sources = graph.sources_of(txn);
                let sources = match self.earlier.get(at) {
                    Some(&earlier) => &sources[..earlier as usize],
                    None => sources,
                };
                for &seen in sources {
                    let is_other = seen != source && seen != NONE;
                    if is_other && writes[seen as usize / 64] & 1 << (seen % 64) != 0 {
                        edges.oblige(seen, source)?;
                    }
                }
                if plan.sight == Sight::Direct {
                    self.oblige_session(graph, groups, (txn, source), edges)?;
                }
            }
            writers.iter().for_each(|&txn| writes[txn as usize / 64] = 0);
        }
        Ok(())
    }

    fn oblige_session(
        &self,
        graph: &Graph,
        groups: &[Group],
        (txn, source): (u32, u32),
        edges: &mut Edges<'_>,
    ) -> Result<(), Open> {
        let session = graph.session_of(txn);
        let Ok(place) = groups.binary_search_by_key(&session, |group| group.chain) else { return Ok(()) };
        let writers = &self.writers[groups[place].from as usize..groups[place].to as usize];
        let before = writers.partition_point(|&writer| writer < txn);
        match writers[..before].last() {
            Some(&last) if last != source => edges.oblige(last, source),
            _ => Ok(()),
        }
    }

    /// Obligations from what precedes by session order and wr, in neighbouring columns.
    pub fn oblige_causes(
        &self,
        graph: &Graph,
        columns: &[impl AsRef<Columns>],
        edges: &mut Edges<'_>,
    ) -> Result<(), Open> {
        let span = Columns::span(columns);
        let width = span.len();
        let mut fetched = vec![0; 2 * width * READS_AT_ONCE];
        let mut hints: Vec<u32> = Vec::new();
        for (reads, groups) in self.each() {
            let from = groups.partition_point(|group| group.chain < span.start);
            let to = groups.partition_point(|group| group.chain < span.end);
            let groups = &groups[from..to];
            if groups.is_empty() {
                continue;
            }
            hints.clear();
            hints.extend(groups.iter().map(|group| group.from));
            for reads in self.reads[reads].chunks(READS_AT_ONCE) {
                // Rows are far apart: those of several reads are fetched at once, which waits once.
                for (read, rows) in reads.iter().zip(fetched.chunks_exact_mut(2 * width)) {
                    let (seen, of_source) = rows.split_at_mut(width);
                    fetch(columns, read.txn, seen);
                    match read.source {
                        NONE => of_source.fill(0),
                        source => fetch(columns, source, of_source),
                    }
                }
                for (read, rows) in reads.iter().zip(fetched.chunks_exact_mut(2 * width)) {
                    let (seen, of_source) = rows.split_at_mut(width);
                    // It does not see itself.
                    let chain = graph.chain[read.txn as usize];
                    if span.contains(&chain) {
                        seen[(chain - span.start) as usize] = read.txn;
                    }
                    self.oblige_read(
                        read.source,
                        (seen, of_source),
                        (span.start, groups),
                        &mut hints,
                        edges,
                    )?;
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn oblige_read(
        &self,
        source: u32,
        (seen, of_source): (&[u32], &[u32]),
        (first_chain, groups): (u32, &[Group]),
        hints: &mut [u32],
        edges: &mut Edges<'_>,
    ) -> Result<(), Open> {
        for (group, hint) in groups.iter().zip(hints) {
            let column = (group.chain - first_chain) as usize;
            let (seen, of_source) = (seen[column], of_source[column]);
            // What precedes the source anyway need not be said.
            if of_source >= seen || self.writers[group.from as usize] >= seen {
                continue;
            }
            let last = self.last_before(*group, *hint, seen);
            *hint = last;
            let writer = self.writers[last as usize];
            if of_source <= writer {
                edges.oblige(writer, source)?;
            }
        }
        Ok(())
    }

    /// The place of the last writer of a group, of which one at least is, that is smaller than a number; looked for from a hint.
    #[inline]
    fn last_before(&self, group: Group, hint: u32, number: u32) -> u32 {
        let writers = &self.writers[group.from as usize..group.to as usize];
        let hint = (hint - group.from) as usize + 1;
        group.from + gallop(writers, hint, |&writer| writer < number) as u32 - 1
    }
}

/// How many reads' rows are fetched at once.
const READS_AT_ONCE: usize = 32;

#[inline]
fn fetch(columns: &[impl AsRef<Columns>], txn: u32, into: &mut [u32]) {
    let mut at = 0;
    for columns in columns.iter().map(AsRef::as_ref) {
        let row = columns.row(txn);
        into[at..at + row.len()].copy_from_slice(row);
        at += row.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_writer_that_was_seen_is_found_from_anywhere() {
        let doubts = Doubts { writers: vec![99, 2, 3, 5, 8, 13, 0], ..Doubts::default() };
        let group = Group { chain: 0, from: 1, to: 6 };
        for hint in group.from..group.to {
            for number in 3..20 {
                let before = doubts.writers[1..6].partition_point(|&writer| writer < number) as u32;
                assert_eq!(doubts.last_before(group, hint, number), before, "{hint} {number}");
            }
        }
    }

    #[test]
    fn a_read_is_clear_if_no_writer_lies_between() {
        let mut lanes = Lanes::default();
        lanes.read(Seen { txn: 6, source: 2 }, None);
        lanes.end_key([2, 4].into_iter());
        // What directly precedes 6 is 3; then 4, another writer.
        assert!(lanes.are_clear(&[0, 0, 0, 0, 0, 0, 4]));
        assert!(!lanes.are_clear(&[0, 0, 0, 0, 0, 0, 5]));
        let mut initial = Lanes::default();
        initial.read(Seen { txn: 1, source: NONE }, None);
        initial.end_key([0].into_iter());
        assert!(initial.are_clear(&[0, 0]) && !initial.are_clear(&[0, 1]));
    }
}
