//! Lanes: for each key, everybody who reads or writes it, in the order of the moment.
//!
//! *What*: a lane is built when its key is first replayed, and afterwards only mended where somebody changed
//! places: moving a transaction marks a *window* of its lanes, lining up sorts that window and as much around
//! it as the moved ones travelled, and replay looks only there.
//!
//! *Invariant*: outside its unsorted window a lane is in order, and outside its unchecked window its reads
//! were looked at since they last moved: of two neighbours that changed places at least one moved and was
//! marked. *Cost*: the windows.

use crate::constrain::Nodes;
use crate::problem::{NONE, Problem, Txn};
use solver::{Node, Solver};
use std::ops::Range;

/// A point on a key's lane: where a read happens, where a version becomes visible, and at snapshot
/// isolation where the writer of a version begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access(u32);

/// What an access is, with the read or the version.
pub(crate) enum AccessKind {
    Read(u32),
    Version(u32),
    Opening(u32),
}

impl Access {
    fn read(id: u32) -> Self {
        Self(id << 2)
    }

    fn version(id: u32) -> Self {
        Self(id << 2 | 1)
    }

    fn opening(id: u32) -> Self {
        Self(id << 2 | 2)
    }

    #[inline]
    pub(crate) fn kind(self) -> AccessKind {
        match self.0 & 3 {
            0 => AccessKind::Read(self.0 >> 2),
            1 => AccessKind::Version(self.0 >> 2),
            _ => AccessKind::Opening(self.0 >> 2),
        }
    }

    /// The version, if it is one.
    pub(crate) fn as_version(self) -> Option<u32> {
        (self.0 & 3 == 1).then_some(self.0 >> 2)
    }
}

/// An access with its node, so that where it stands is one look-up.
#[derive(Clone, Copy, Debug)]
struct Stand {
    access: Access,
    node: Node,
}

/// A range of places; empty if it ends before it starts.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: u32,
    end: u32,
}

impl Window {
    const EMPTY: Self = Self { start: u32::MAX, end: 0 };

    fn is_empty(self) -> bool {
        self.start >= self.end
    }

    fn cover(&mut self, start: u32, end: u32) {
        self.start = self.start.min(start);
        self.end = self.end.max(end);
    }

    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The lanes of all keys.
pub(crate) struct Lanes<'a> {
    problem: &'a Problem,
    nodes: Nodes,
    /// Reads of each key.
    reads_start: Vec<u32>,
    reads_of_key: Vec<u32>,
    lanes: Vec<Vec<Stand>>,
    unsorted: Vec<Window>,
    unchecked: Vec<Window>,
    /// Where reads and versions stand in their lane.
    read_place: Vec<u32>,
    version_place: Vec<u32>,
    opening_place: Vec<u32>,
    /// Scratch for sorting.
    sorting: Vec<(u64, Stand)>,
}

/// Where an access stands: a transaction reads a key before it writes it.
#[inline]
fn rank(order: &Solver, stand: Stand) -> u64 {
    u64::from(order.position(stand.node)) << 1 | u64::from(stand.access.as_version().is_some())
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(problem: &'a Problem, nodes: Nodes) -> Self {
        let (reads_start, reads_of_key) = reads_by_key(problem);
        Self {
            problem,
            nodes,
            reads_start,
            reads_of_key,
            lanes: vec![Vec::new(); problem.keys()],
            unsorted: vec![Window::EMPTY; problem.keys()],
            unchecked: vec![Window::EMPTY; problem.keys()],
            read_place: vec![NONE; problem.reads.len()],
            version_place: vec![NONE; problem.versions.len()],
            opening_place: vec![NONE; if nodes.points == 2 { problem.versions.len() } else { 0 }],
            sorting: Vec::new(),
        }
    }

    /// A transaction has moved: calls back for every key where it changed places with a neighbour, or whose
    /// lane is not built.
    pub(crate) fn displace(&mut self, txn: Txn, order: &Solver, mut dirty: impl FnMut(u32)) {
        for id in self.problem.read_ids(txn) {
            let key = self.problem.reads[id].key;
            if self.is_displaced(order, key, self.read_place[id]) {
                dirty(key);
            }
        }
        for id in self.problem.version_ids(txn) {
            let key = self.problem.versions[id as usize].key;
            let opening = self.opening_place.get(id as usize).copied();
            let at_commit = self.is_displaced(order, key, self.version_place[id as usize]);
            let at_begin = opening.is_some_and(|place| self.is_displaced(order, key, place));
            if at_commit || at_begin {
                dirty(key);
            }
        }
    }

    fn is_displaced(&mut self, order: &Solver, key: u32, place: u32) -> bool {
        let lane = &self.lanes[key as usize];
        let Some(&stand) = lane.get(place as usize) else { return true };
        let here = rank(order, stand);
        let before = place.checked_sub(1).map(|before| lane[before as usize]);
        let after = lane.get(place as usize + 1);
        let displaced = before.is_some_and(|before| rank(order, before) > here)
            || after.is_some_and(|&after| rank(order, after) < here);
        if displaced {
            let end = (place + 2).min(lane.len() as u32);
            self.unsorted[key as usize].cover(place.saturating_sub(1), end);
        }
        displaced
    }

    /// Who is on a lane has changed.
    pub(crate) fn forget(&mut self, key: u32) {
        self.lanes[key as usize].clear();
        self.unsorted[key as usize] = Window::EMPTY;
        self.unchecked[key as usize] = Window::EMPTY;
    }

    /// Brings a key's lane into the order.
    pub(crate) fn line_up(&mut self, key: u32, order: &Solver, counts: impl Fn(AccessKind) -> bool) {
        if self.lanes[key as usize].is_empty() {
            self.build(key, counts);
        }
        let window = std::mem::replace(&mut self.unsorted[key as usize], Window::EMPTY);
        if window.is_empty() {
            return;
        }
        let mut range = window.range();
        self.rank_range(key, order, range.clone());
        let lane = &self.lanes[key as usize];
        let (first, last) = (self.sorting[0].0, self.sorting[self.sorting.len() - 1].0);
        let start = lane[..range.start].partition_point(|&stand| rank(order, stand) <= first);
        let rest = lane[range.end..].partition_point(|&stand| rank(order, stand) < last);
        if start < range.start || rest > 0 {
            range = start..range.end + rest;
            self.rank_range(key, order, range.clone());
        }
        self.unchecked[key as usize].cover(range.start as u32, range.end as u32);
        let lane = &mut self.lanes[key as usize];
        for (place, &(_, stand)) in range.zip(&self.sorting) {
            lane[place] = stand;
            match stand.access.kind() {
                AccessKind::Version(id) => self.version_place[id as usize] = place as u32,
                AccessKind::Read(id) => self.read_place[id as usize] = place as u32,
                AccessKind::Opening(id) => self.opening_place[id as usize] = place as u32,
            }
        }
    }

    /// Sorts what lies in a range into the scratch.
    fn rank_range(&mut self, key: u32, order: &Solver, range: Range<usize>) {
        let mut sorting = std::mem::take(&mut self.sorting);
        sorting.clear();
        let stands = self.lanes[key as usize][range].iter();
        sorting.extend(stands.map(|&stand| (rank(order, stand), stand)));
        sorting.sort_by_key(|&(rank, _)| rank);
        self.sorting = sorting;
    }

    /// Puts everybody on a lane who counts.
    fn build(&mut self, key: u32, counts: impl Fn(AccessKind) -> bool) {
        let mut lane = std::mem::take(&mut self.lanes[key as usize]);
        let versions = self.problem.versions_of_key(key).iter().map(|&(_, version)| version);
        for version in versions.filter(|&version| counts(AccessKind::Version(version))) {
            let txn = self.problem.versions[version as usize].txn;
            lane.push(Stand { access: Access::version(version), node: self.nodes.commit(txn) });
            if self.nodes.points == 2 {
                lane.push(Stand { access: Access::opening(version), node: self.nodes.begin(txn) });
            }
        }
        let ids = self.reads_start[key as usize] as usize..self.reads_start[key as usize + 1] as usize;
        let reads = self.reads_of_key[ids].iter().copied();
        let reads = reads.filter(|&id| counts(AccessKind::Read(id)));
        lane.extend(reads.map(|id| Stand {
            access: Access::read(id),
            node: self.nodes.begin(self.problem.reads[id as usize].txn),
        }));
        self.unsorted[key as usize] = Window { start: 0, end: lane.len() as u32 };
        self.lanes[key as usize] = lane;
    }

    /// The lane of a key that is lined up.
    pub(crate) fn lane(
        &self,
        key: u32,
    ) -> impl DoubleEndedIterator<Item = Access> + ExactSizeIterator + Clone {
        self.lined_up(key).iter().map(|stand| stand.access)
    }

    fn lined_up(&self, key: u32) -> &[Stand] {
        debug_assert!(self.unsorted[key as usize].is_empty(), "the lane is lined up first");
        &self.lanes[key as usize]
    }

    /// The places to look at again; they count as looked at.
    pub(crate) fn take_unchecked(&mut self, key: u32) -> Range<usize> {
        let window = std::mem::replace(&mut self.unchecked[key as usize], Window::EMPTY);
        if window.is_empty() { 0..0 } else { window.range() }
    }

    /// The version that is visible at a place in the order.
    pub(crate) fn visible_at(&self, key: u32, order: &Solver, position: u32) -> Option<u32> {
        let lane = self.lined_up(key);
        let before = lane.partition_point(|&stand| rank(order, stand) < u64::from(position) << 1);
        lane[..before].iter().rev().find_map(|stand| stand.access.as_version())
    }

    /// The version that a read finds.
    pub(crate) fn visible_to(&self, id: u32) -> Option<u32> {
        self.before_read(id).iter().rev().find_map(|stand| stand.access.as_version())
    }

    /// The first version between one of its key, or the beginning, and a read.
    pub(crate) fn first_between(&self, version: Option<u32>, id: u32) -> Option<u32> {
        let from = version.map_or(0, |version| self.version_place[version as usize] as usize + 1);
        self.before_read(id)[from..].iter().find_map(|stand| stand.access.as_version())
    }

    /// The part of the lane before a read.
    fn before_read(&self, id: u32) -> &[Stand] {
        &self.lined_up(self.problem.reads[id as usize].key)[..self.read_place[id as usize] as usize]
    }
}

fn reads_by_key(problem: &Problem) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0u32; problem.keys() + 1];
    for read in &problem.reads {
        start[read.key as usize + 1] += 1;
    }
    for key in 1..start.len() {
        start[key] += start[key - 1];
    }
    let mut next = start.clone();
    let mut ids = vec![NONE; problem.reads.len()];
    for (id, read) in problem.reads.iter().enumerate() {
        let place = &mut next[read.key as usize];
        ids[*place as usize] = id as u32;
        *place += 1;
    }
    (start, ids)
}
