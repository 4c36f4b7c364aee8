//! The reads and the writers of some keys, and what they oblige to.
//!
//! **Steps.** Where a key is joined, its reads and writers are kept in the order of the history; when the graph is known, writers
//! are put in groups, one a chain, and who did not take effect is left out. Then for each read, and each level:
//! * axiomatic read committed, read atomic: sources of the reader (for the first one: of earlier reads) that write the key, too;
//! * read atomic: the last writer of the key earlier in the reader's session;
//! * causal: of each group the last writer that the reader's clock has seen, unless the source's clock has seen it.
//!
//! **Cost.** Reads × sources, a look into a bitmap each; for causal reads × groups: mostly two comparisons, because clocks of
//! readers ascend and the last writer that was seen is looked for from where it was the time before.

use super::clocks::Columns;
use super::graph::{Graph, Regions};
use super::{NONE, Open, Plan};
use crate::weak::Sight;
use serde::{Deserialize, Serialize};

/// A read: by whom, and whose version.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) txn: u32,
    pub(super) source: u32,
}

/// Some keys.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Lanes {
    keys: Vec<Lane>,
    reads: Vec<Seen>,
    /// Where it matters: of each read, how many reads of its transaction come before it.
    earlier: Vec<u32>,
    groups: Vec<Group>,
    writers: Vec<u32>,
}

/// Where reads and groups of a key end; before groups are made, where its writers do.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Lane {
    reads: u32,
    groups: u32,
}

/// The writers of a key in one chain, ascending.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Group {
    chain: u32,
    from: u32,
    to: u32,
}

/// What is found: edges that lead backward in the order, or all within regions.
#[derive(Debug)]
pub struct Edges<'a> {
    graph: &'a Graph,
    regions: Option<&'a Regions>,
    found: Vec<(u32, u32)>,
}

impl<'a> Edges<'a> {
    /// With regions: all edges within them; without: those that lead backward.
    pub fn new(graph: &'a Graph, regions: Option<&'a Regions>) -> Self {
        Self { graph, regions, found: Vec::new() }
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
        let (one, other) = (self.graph.position(first), self.graph.position(second));
        let counts = match self.regions {
            None => one > other,
            Some(regions) => regions.hold(one, other),
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
        self.keys.push(Lane { reads: self.reads.len() as u32, groups: self.writers.len() as u32 });
    }

    /// Puts writers in groups, and leaves out who did not take effect.
    pub fn arrange(&mut self, graph: &Graph) {
        let old = std::mem::take(&mut self.writers);
        self.writers.reserve_exact(old.len());
        let mut count = vec![0u32; graph.chains() as usize];
        let mut chains: Vec<u32> = Vec::new();
        let (mut read_at, mut kept, mut write_at) = (0, 0, 0);
        for lane in &mut self.keys {
            let of_key = &old[write_at..lane.groups as usize];
            write_at = lane.groups as usize;
            for at in std::mem::replace(&mut read_at, lane.reads as usize)..lane.reads as usize {
                if graph.took_effect(self.reads[at].txn) {
                    self.reads[kept] = self.reads[at];
                    if let Some(&earlier) = self.earlier.get(at) {
                        self.earlier[kept] = earlier;
                    }
                    kept += 1;
                }
            }
            lane.reads = kept as u32;
            chains.clear();
            for &txn in of_key.iter().filter(|&&txn| graph.took_effect(txn)) {
                let chain = graph.chain[txn as usize];
                let of_chain = &mut count[chain as usize];
                if *of_chain == 0 {
                    chains.push(chain);
                }
                *of_chain += 1;
            }
            chains.sort_unstable();
            let mut from = self.writers.len() as u32;
            for &chain in &chains {
                let len = std::mem::replace(&mut count[chain as usize], from);
                self.groups.push(Group { chain, from, to: from + len });
                from += len;
            }
            self.writers.resize(from as usize, NONE);
            for &txn in of_key.iter().filter(|&&txn| graph.took_effect(txn)) {
                let place = &mut count[graph.chain[txn as usize] as usize];
                self.writers[*place as usize] = txn;
                *place += 1;
            }
            chains.iter().for_each(|&chain| count[chain as usize] = 0);
            lane.groups = self.groups.len() as u32;
        }
        self.reads.truncate(kept);
        self.earlier.truncate(kept);
    }

    /// Each key's reads, with what is said of those before them, and groups.
    fn each(&self) -> impl Iterator<Item = (std::ops::Range<usize>, &[Group])> {
        let (mut read_at, mut group_at) = (0, 0);
        self.keys.iter().map(move |lane| {
            let reads = std::mem::replace(&mut read_at, lane.reads as usize)..lane.reads as usize;
            let groups = std::mem::replace(&mut group_at, lane.groups as usize)..lane.groups as usize;
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
        let writers = &self.writers;
        if writers[hint as usize] >= number {
            let before = &writers[group.from as usize..hint as usize];
            return group.from + before.partition_point(|&writer| writer < number) as u32 - 1;
        }
        let (mut at, mut step) = (hint, 1);
        while at + step < group.to && writers[(at + step) as usize] < number {
            at += step;
            step *= 2;
        }
        let to = (at + step).min(group.to);
        at + writers[at as usize..to as usize].partition_point(|&writer| writer < number) as u32 - 1
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
