//! What a read must see, and why.
//!
//! *What*: given a read of T whose source has later versions before T in the order, finds one of their writers that
//! the level says T must see, and the steps from it to T. `None`: the read is as it must be.
//!
//! *How*: directly where one step is meant; else backwards from T along the level's relation, cheapest first — steps that
//! are no choice are free, so the clause made of the others is short — down to the place of the first such version.
//!
//! *Cost*: the edges between two places of the order.

use super::search::{Search, Step, Why};
use super::{Sight, Strict};
use crate::problem::{INITIAL, NONE, Read, Standing, Txn};
use solver::Node;
use std::collections::VecDeque;

impl Search<'_> {
    /// The steps from a writer that the read must see but misses. `from` is the first place on the key's lane
    /// after the read's source.
    pub(super) fn must_see(&mut self, id: u32, read: &Read, from: usize) -> Option<Vec<Step>> {
        let is_base = self.is_base.get(id as usize).copied().unwrap_or(false);
        if is_base {
            return Some(self.first_by_order(read, from));
        }
        match self.sight {
            Sight::Nothing => None,
            Sight::Asked => {
                let asks = match self.strict[read.txn as usize] {
                    Strict::Nothing => false,
                    Strict::Items => !self.is_unshown(id),
                    Strict::Everything => true,
                };
                asks.then(|| self.first_by_order(read, from))
            }
            Sight::BeforeOwnWrite if self.is_unshown(id) => None,
            Sight::BeforeOwnWrite => {
                self.version_now(read.txn, read.key).map(|_| self.first_by_order(read, from))
            }
            Sight::Updates if self.is_update(read.txn) => Some(self.first_by_order(read, from)),
            Sight::EarlierReads => self.seen_directly(read, from, |it| it.op < read.op),
            Sight::Direct => self.in_session(read, from).or_else(|| self.seen_directly(read, from, |_| true)),
            Sight::Prefix => self.within_prefix(read, from),
            Sight::EarlierOperations => {
                let starts = self.earlier_operations(read);
                self.walk_back(id, read, from, starts)
            }
            Sight::Dependencies | Sight::Causes | Sight::Updates => {
                let starts = self.steps_into(read.txn);
                self.walk_back(id, read, from, starts)
            }
        }
    }

    fn is_update(&self, txn: Txn) -> bool {
        self.update_by(txn).is_some()
    }

    /// The first missed writer, because it comes before the reader in the order.
    fn first_by_order(&self, read: &Read, from: usize) -> Vec<Step> {
        let first = self.writer(self.lanes[read.key as usize][from]);
        vec![Step { from: first, to: read.txn, why: Why::Order }]
    }

    /// Whether a writer of the read's key is missed: behind the source, before the reader.
    fn is_missed(&self, read: &Read, from: usize, writer: Txn) -> bool {
        let Some(version) = self.version_now(writer, read.key) else { return false };
        writer != read.txn
            && self.place[version as usize] as usize >= from
            && self.position(writer) < self.position(read.txn)
    }

    /// A missed writer that another read of the transaction saw.
    fn seen_directly(&self, read: &Read, from: usize, counts: impl Fn(&Read) -> bool) -> Option<Vec<Step>> {
        for id in self.problem.read_ids(read.txn) {
            if !self.is_read(id as u32) || !counts(&self.problem.reads[id]) {
                continue;
            }
            let Some(source) = self.source(id as u32).filter(|&source| source != INITIAL) else { continue };
            let writer = self.writer(source);
            if self.is_missed(read, from, writer) {
                return Some(vec![Step { from: writer, to: read.txn, why: Why::Wr(id as u32, source) }]);
            }
        }
        None
    }

    /// A missed writer that is earlier in the session.
    fn in_session(&self, read: &Read, from: usize) -> Option<Vec<Step>> {
        let (session, _) = self.session[read.txn as usize];
        let found = self
            .missed(read, from)
            .find(|&txn| txn < read.txn && self.session[txn as usize] == (session, true))?;
        Some(vec![Step { from: found, to: read.txn, why: Why::Known }])
    }

    fn missed(&self, read: &Read, from: usize) -> impl Iterator<Item = Txn> + '_ {
        let before = self.position(read.txn);
        let lane = self.lanes[read.key as usize][from..].iter();
        lane.map(|&version| self.writer(version)).take_while(move |&txn| self.position(txn) < before)
    }

    /// As [`Self::missed`]; of a range or predicate that saw no row only those that would have changed that.
    fn changes_missed(&self, id: u32, read: &Read, from: usize) -> impl Iterator<Item = Txn> + '_ {
        let read = *read;
        let before = self.position(read.txn);
        let is_unshown = self.is_unshown(id);
        let lane = self.lanes[read.key as usize][from..].iter();
        lane.take_while(move |&&version| self.position(self.writer(version)) < before)
            .filter(move |&&version| !(is_unshown && self.problem.fits(&read, version)))
            .map(|&version| self.writer(version))
    }

    /// A missed writer that is in the prefix which the transaction sees.
    fn within_prefix(&self, read: &Read, from: usize) -> Option<Vec<Step>> {
        let previous = self.problem.previous[read.txn as usize];
        let session = (previous != NONE).then_some((previous, Why::Known));
        let sources =
            self.problem.read_ids(read.txn).filter(|&id| self.is_read(id as u32)).filter_map(|id| {
                let source = self.source(id as u32).filter(|&source| source != INITIAL)?;
                Some((self.writer(source), Why::Wr(id as u32, source)))
            });
        let (last, why) = session.into_iter().chain(sources).max_by_key(|&(txn, _)| self.position(txn))?;
        let first = self.missed(read, from).next()?;
        if self.position(first) > self.position(last) {
            return None;
        }
        let step = Step { from: last, to: read.txn, why };
        if self.is_missed(read, from, last) {
            return Some(vec![step]);
        }
        Some(vec![Step { from: first, to: last, why: Why::Order }, step])
    }

    // ---- walking ----

    /// What earlier operations of the read's transaction depend on.
    fn earlier_operations(&self, read: &Read) -> Vec<(Node, Why)> {
        let mut starts = Vec::new();
        for id in self.problem.read_ids(read.txn) {
            if !self.is_read(id as u32) || self.problem.reads[id].op >= read.op {
                continue;
            }
            if let Some(source) = self.source(id as u32).filter(|&source| source != INITIAL) {
                starts.push((self.writer(source), Why::Wr(id as u32, source)));
            }
        }
        for version in self.problem.version_ids(read.txn) {
            if self.written_by[version as usize] < read.op {
                starts.extend(self.overwritten(version));
            }
        }
        starts
    }

    /// The writer of the version right before one, which is there.
    fn overwritten(&self, version: u32) -> Option<(Txn, Why)> {
        if !self.counts(version) {
            return None;
        }
        let place = self.place[version as usize].checked_sub(1)?;
        let lane = &self.lanes[self.problem.versions[version as usize].key as usize];
        lane.get(place as usize).map(|&before| (self.writer(before), Why::Ww(before, version)))
    }

    /// The level's relation, backwards.
    fn steps_into(&self, node: Node) -> Vec<(Node, Why)> {
        let mut steps = Vec::new();
        let txn = node as Txn;
        let is_txn = (txn as usize) < self.problem.len();
        match self.sight {
            Sight::Causes => {
                let previous = self.problem.previous[txn as usize];
                steps.extend((previous != NONE).then_some((previous, Why::Known)));
                self.add_sources(txn, false, &mut steps);
            }
            _ => {
                steps.extend(self.graph.predecessors(node).iter().map(|&before| (before, Why::Known)));
                if is_txn {
                    self.add_sources(txn, true, &mut steps);
                    let versions = self.problem.version_ids(txn);
                    steps.extend(versions.filter_map(|version| self.overwritten(version)));
                }
                if self.sight == Sight::Updates && is_txn {
                    self.add_anti_dependencies(txn, &mut steps);
                    steps.retain(|&(before, _)| self.is_update(before));
                }
            }
        }
        steps
    }

    /// What the reads of a transaction see; `open`: only those that the known edges leave out.
    fn add_sources(&self, txn: Txn, open: bool, steps: &mut Vec<(Node, Why)>) {
        let is_in = self.problem.standing[txn as usize] == Standing::In;
        for id in self.problem.read_ids(txn) {
            let is_known = is_in && self.problem.reads[id].is_known();
            if !self.is_read(id as u32) || open && is_known {
                continue;
            }
            if let Some(source) = self.source(id as u32).filter(|&source| source != INITIAL) {
                let why = if is_known { Why::Known } else { Why::Wr(id as u32, source) };
                steps.push((self.writer(source), why));
            }
        }
    }

    /// Transactions that write and read the version right before one of this transaction's.
    fn add_anti_dependencies(&self, txn: Txn, steps: &mut Vec<(Node, Why)>) {
        for version in self.problem.version_ids(txn).filter(|&version| self.counts(version)) {
            let key = self.problem.versions[version as usize].key as usize;
            let place = self.place[version as usize];
            let before = place.checked_sub(1).map_or(INITIAL, |before| self.lanes[key][before as usize]);
            for id in self.readers.of_version(key as u32, before) {
                let read = &self.problem.reads[id as usize];
                let reads = read.txn != txn
                    && self.is_read(id)
                    && self.in_effect(read.txn)
                    && self.is_update(read.txn);
                let Some(source) = self.source(id).filter(|_| reads) else { continue };
                let is_next = match self.is_unshown(id) {
                    // The first version behind its source that it cannot have seen.
                    true => {
                        let fits = |version: u32| self.problem.fits(read, version);
                        let from = if source == INITIAL { 0 } else { self.place[source as usize] + 1 };
                        from <= place
                            && !fits(version)
                            && self.lanes[key][from as usize..place as usize].iter().all(|&it| fits(it))
                    }
                    false => source == before,
                };
                if is_next {
                    steps.push((read.txn, Why::Rw(id, source, version)));
                }
            }
        }
    }

    /// Walks backwards from the reader until it meets a missed writer.
    fn walk_back(
        &mut self,
        id: u32,
        read: &Read,
        from: usize,
        starts: Vec<(Node, Why)>,
    ) -> Option<Vec<Step>> {
        self.walk.epoch += 1;
        let epoch = self.walk.epoch;
        let mut floor = u32::MAX;
        let missed: Vec<Txn> = self.changes_missed(id, read, from).collect();
        for txn in missed {
            self.walk.target[txn as usize] = epoch;
            floor = floor.min(self.position(txn));
        }
        let mut queue: VecDeque<Node> = VecDeque::new();
        self.relax(read.txn, 0, floor, starts, &mut queue);
        while let Some(node) = queue.pop_front() {
            if std::mem::replace(&mut self.walk.done[node as usize], epoch) == epoch {
                continue;
            }
            if self.walk.target[node as usize] == epoch {
                return Some(self.unwind(node, read.txn));
            }
            let cost = self.walk.cost_of[node as usize].1;
            let steps = self.steps_into(node);
            self.relax(node, cost, floor, steps, &mut queue);
        }
        None
    }

    fn relax(
        &mut self,
        node: Node,
        cost: u32,
        floor: u32,
        steps: Vec<(Node, Why)>,
        queue: &mut VecDeque<Node>,
    ) {
        let epoch = self.walk.epoch;
        let place = self.position(node);
        for (before, why) in steps {
            let at = self.position(before);
            if at < floor || at >= place || self.walk.done[before as usize] == epoch {
                continue;
            }
            let step = u32::from(why != Why::Known);
            let known = self.walk.cost_of[before as usize];
            if known.0 == epoch && known.1 <= cost + step {
                continue;
            }
            self.walk.cost_of[before as usize] = (epoch, cost + step);
            self.walk.via[before as usize] = (node, why);
            if step == 0 { queue.push_front(before) } else { queue.push_back(before) }
        }
    }

    fn unwind(&self, from: Node, reader: Txn) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = from;
        while at != reader {
            let (to, why) = self.walk.via[at as usize];
            steps.push(Step { from: at, to, why });
            at = to;
        }
        steps
    }
}
