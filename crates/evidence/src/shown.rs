//! Which transactions of a core show the order of its lists.
//!
//! *What*: the problem of a history knows an order of the versions of a list because somebody read it. A part of that
//! problem keeps the order also where whoever read it is left out, and so knows what none of its transactions says: it
//! would be no core. Here a part knows only what its own transactions have read.
//!
//! ```text
//!   order of the whole     A → B → C → D → everybody else
//!   deepest list kept      [A B]
//!   order of the part      A → B → C, D, everybody else
//! ```
//!
//! *Invariant*: the order is a path with a star at its end, in the whole as in every part ([`search::lists`]).
//! *Cost*: the chains and reads of the whole once, the part each time.

use rustc_hash::FxHashMap;
use search::problem::{INITIAL, Problem, Standing, Txn};

/// The list orders of a problem, and how much of them everybody shows.
pub(crate) struct Shown<'p> {
    problem: &'p Problem,
    /// For every version of a list whose order is known, how many come before it.
    depth: FxHashMap<u32, u32>,
}

impl<'p> Shown<'p> {
    pub(crate) fn new(problem: &'p Problem) -> Self {
        let before: FxHashMap<u32, u32> =
            problem.chains.iter().map(|&(first, second)| (second, first)).collect();
        let mut depth: FxHashMap<u32, u32> = FxHashMap::default();
        let mut way = Vec::new();
        for &(first, second) in &problem.chains {
            for mut version in [first, second] {
                let mut at = loop {
                    match (depth.get(&version), before.get(&version)) {
                        (Some(&at), _) => break at + 1,
                        (None, Some(&earlier)) => {
                            way.push(version);
                            version = earlier;
                        }
                        (None, None) => {
                            way.push(version);
                            break 0;
                        }
                    }
                };
                while let Some(version) = way.pop() {
                    depth.insert(version, at);
                    at += 1;
                }
            }
        }
        Self { problem, depth }
    }

    /// What a transaction shows: keys, and up to which version.
    fn by(&self, txn: Txn) -> impl Iterator<Item = (u32, u32)> {
        let reads = self.problem.reads_of(txn).iter();
        let known = reads.filter(|read| read.is_known() && read.source < INITIAL);
        let is_in = self.problem.standing[txn as usize] == Standing::In;
        known.filter(move |_| is_in).filter_map(|read| Some((read.key, *self.depth.get(&read.source)?)))
    }

    /// Some transactions, and for every list that they appended to whoever shows most of its order.
    pub(crate) fn with_tellers(&self, txns: &[Txn]) -> Vec<Txn> {
        let mut all = txns.to_vec();
        if self.depth.is_empty() {
            return all;
        }
        let mut deepest: FxHashMap<u32, (u32, Txn)> = FxHashMap::default();
        for txn in 0..self.problem.len() as Txn {
            for (key, depth) in self.by(txn) {
                let most = deepest.entry(key).or_insert((depth, txn));
                *most = (*most).max((depth, txn));
            }
        }
        let versions = txns.iter().flat_map(|&txn| self.problem.versions_of(txn));
        all.extend(versions.filter_map(|version| Some(deepest.get(&version.key)?.1)));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Whoever took effect because others saw it may not have where those are left out.
    fn doubt(&self, part: &mut Problem) {
        let find = |part: &Problem, txn: Txn| part.find(self.problem.txns[txn as usize]);
        for &(txn, teller) in &self.problem.forced {
            let Some(place) = find(part, txn) else { continue };
            let is_told = find(part, teller).is_some_and(|it| part.standing[it as usize] == Standing::In);
            if !is_told && part.standing[place as usize] == Standing::In {
                part.standing[place as usize] = Standing::Maybe;
            }
        }
    }

    /// Some transactions of a part of the problem, or of the problem itself, with the order that they show.
    pub(crate) fn part(&self, from: &Problem, keep: &[Txn]) -> Problem {
        let mut part = from.part(keep);
        self.doubt(&mut part);
        if part.chains.is_empty() {
            return part;
        }
        let here = |txn: Txn| self.problem.find(part.txns[txn as usize]).expect("parts have no others");
        let mut shown: FxHashMap<u32, u32> = FxHashMap::default();
        let is_in = |txn: &Txn| part.standing[*txn as usize] == Standing::In;
        for (key, depth) in (0..part.len() as Txn).filter(is_in).flat_map(|txn| self.by(here(txn))) {
            let most = shown.entry(key).or_insert(depth);
            *most = (*most).max(depth);
        }
        let mut ordered: FxHashMap<u32, Vec<(u32, u32)>> = FxHashMap::default();
        for (id, version) in (0..).zip(&part.versions) {
            let whole = self.problem.version_by(here(version.txn), version.key);
            if let Some(&depth) = whole.and_then(|whole| self.depth.get(&whole)) {
                ordered.entry(version.key).or_default().push((depth, id));
            }
        }
        part.chains.clear();
        let mut keys: Vec<u32> = ordered.keys().copied().filter(|key| shown.contains_key(key)).collect();
        keys.sort_unstable();
        for key in keys {
            let versions = ordered.get_mut(&key).expect("it is one of the map's");
            versions.sort_unstable();
            let (path, others) = versions.split_at(versions.partition_point(|it| it.0 <= shown[&key]));
            part.chains.extend(path.windows(2).map(|pair| (pair[0].1, pair[1].1)));
            if let Some(&(_, last)) = path.last() {
                part.chains.extend(others.iter().map(|&(_, other)| (last, other)));
            }
        }
        part
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

    use super::Shown;
    use history::formats::notation;
    use isolation::Options;
    use search::observe::observe;

    /// The order that remains when only some transactions are kept, as pairs of their places in the whole.
    fn order(keep: &[u32]) -> Vec<(u32, u32)> {
        let text = "a: a(x,1)\nb: a(x,2)\nc: a(x,3)\nd: a(x,4)\ne: r(x,[1 2])\nf: r(x,[1 2 3])\n";
        let problem = observe(&notation::parse(text).unwrap(), &Options::default()).unwrap();
        let part = Shown::new(&problem).part(&problem, keep);
        let txn = |version: u32| keep[part.versions[version as usize].txn as usize];
        let mut order: Vec<_> =
            part.chains.iter().map(|&(first, second)| (txn(first), txn(second))).collect();
        order.sort_unstable();
        order
    }

    #[test]
    fn a_part_knows_what_its_readers_saw() {
        assert_eq!(order(&[0, 1, 2, 3, 4, 5]), [(0, 1), (1, 2), (2, 3)]);
        assert_eq!(order(&[0, 1, 2, 3, 4]), [(0, 1), (1, 2), (1, 3)]);
        assert_eq!(order(&[0, 2, 3, 4]), [(0, 2), (0, 3)]);
        assert_eq!(order(&[0, 1, 5]), [(0, 1)]);
        assert_eq!(order(&[0, 1, 2, 3]), []);
    }

    #[test]
    fn whoever_saw_most_tells() {
        let text = "a: a(x,1)\nb: a(x,2)\nc: r(x,[1])\nd: r(x,[1 2])\ne: a(y,1)\nf: r(y,[1])\n";
        let problem = observe(&notation::parse(text).unwrap(), &Options::default()).unwrap();
        let shown = Shown::new(&problem);
        assert_eq!(shown.with_tellers(&[0]), [0, 3]);
        assert_eq!(shown.with_tellers(&[2]), [2]);
    }
}
