//! The history as the checker sees it: who can have taken effect, what each left behind, and what each read can have
//! seen. Made by [`crate::observe`]; nothing behind it looks at operations again to decide.

use history::{History, OpId, TxnId, ValueId};
use isolation::modules::{additions, through};
use isolation::{Level, Stats};
use rustc_hash::FxHashMap;

/// No transaction, no version, no read.
pub const NONE: u32 = u32::MAX;
/// The version that was there before the first transaction.
pub const INITIAL: u32 = u32::MAX - 1;

/// Marks a number of versions as those that a read did not see.
pub(crate) const ALL_BUT: u32 = 1 << 31;

/// A transaction that can have taken effect, numbered from 0 without gaps in the order of the file.
pub type Txn = u32;

/// Whether a transaction took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In every explanation.
    In,
    /// In some explanations, perhaps.
    Maybe,
    /// In none that needs it: nobody can have seen it.
    Out,
}

/// The last thing a transaction wrote to a key.
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// The key.
    pub key: u32,
    /// The transaction.
    pub txn: Txn,
    /// The value; `UNKNOWN` on a key that is only appended to, where the order makes the value.
    pub value: ValueId,
}

/// A read from outside and what it can have seen.
#[derive(Clone, Copy, Debug)]
pub struct Read {
    /// The key.
    pub key: u32,
    /// The transaction.
    pub txn: Txn,
    /// The version (or [`INITIAL`]) if there is one; else where the candidates begin in `by_value`.
    pub source: u32,
    /// How many candidates there are in `by_value`; 0: `source` is the version itself. With `ALL_BUT`: how many
    /// versions of the key are no candidates.
    pub candidates: u32,
    /// The operation.
    pub op: OpId,
}

impl Read {
    /// Whether its source is the only candidate.
    #[inline]
    pub fn is_known(&self) -> bool {
        self.candidates == 0
    }
}

/// What several outside reads of one key in one transaction mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// They saw one version: what differs is refused, what agrees is one read.
    OneVersion,
    /// Every operation saw a version of its own; the reads of a transaction are in the order issued. A list
    /// that ends with the transaction's own appends is no outside read: it shows what they build on
    /// ([`Problem::bases`]).
    EachItsOwn,
}

/// The history as the checker sees it.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The transactions, by their ids in the history.
    pub txns: Vec<TxnId>,
    /// Whether each took effect.
    pub standing: Vec<Standing>,
    /// The transaction before it in its session that certainly took effect.
    pub previous: Vec<Txn>,
    /// Where each transaction's versions and reads begin; one entry more than transactions.
    pub(crate) first_version: Vec<u32>,
    /// All versions, by transaction.
    pub versions: Vec<Version>,
    /// Where each transaction's reads begin; one entry more than transactions.
    pub first_read: Vec<u32>,
    /// All reads, by transaction.
    pub reads: Vec<Read>,
    /// Versions of each key, ascending by value; `key_start` delimits keys. Behind the last key: what is left
    /// of candidates where some were ruled out.
    pub(crate) key_start: Vec<u32>,
    pub(crate) by_value: Vec<(ValueId, u32)>,
    /// Initial values, `ABSENT` where nothing was there.
    pub initial: Vec<ValueId>,
    /// Version orders that lists show: the first is overwritten by the second, directly or not.
    pub chains: Vec<(u32, u32)>,
    /// Reads, ascending, that are none: their source is the version right before the transaction's own.
    /// Only with [`Repeats::EachItsOwn`].
    pub bases: Vec<u32>,
    /// Reads, ascending, of a range or a predicate that saw no row: what they say is that the key did not belong to
    /// it. Only with [`Repeats::EachItsOwn`].
    pub unshown: Vec<u32>,
    /// The operations that made versions which belong to an alternative. Only with [`Repeats::EachItsOwn`].
    pub(crate) written_late: Vec<(u32, OpId)>,
    /// What depends on what was found, ascending by transaction.
    pub matches: Vec<Match>,
    /// The alternatives of all of these.
    pub alternatives: Vec<Alternative>,
    /// The alternative that a read or a version belongs to, or [`NONE`]; empty if there is none.
    pub(crate) read_alternative: Vec<u32>,
    pub(crate) version_alternative: Vec<u32>,
    /// How many keys a predicate write matched, where only that was reported.
    pub counts: Vec<Count>,
    /// Whether what predicates say of keys that were not touched is left out ([`crate::demand`]).
    pub(crate) is_on_demand: bool,
    /// Transactions of which an alternative is true, or which took effect at all, because of what another one read; in the
    /// order in which that was concluded.
    pub forced: Vec<(Txn, Txn)>,
    /// What modules add: the first commits before the second begins; and which module says so.
    pub added: Vec<(Txn, Txn, u32)>,
}

/// What a transaction did to a key, where that depends on what it found.
#[derive(Clone, Copy, Debug)]
pub struct Match {
    /// The transaction.
    pub txn: Txn,
    /// The key.
    pub key: u32,
    /// The operation that makes it depend.
    pub op: OpId,
    /// Whether one of its alternatives is known to be true.
    pub is_settled: bool,
    /// Its alternatives.
    pub first: u32,
    /// The one after the last of them.
    pub end: u32,
}

/// One way it can have gone: the transaction found what the read says, and left the version.
#[derive(Clone, Copy, Debug)]
pub struct Alternative {
    /// Which match it belongs to.
    pub of: u32,
    /// [`NONE`] if anything may have been found. Where every operation sees a version of its own, the last of several.
    pub read: u32,
    /// [`NONE`] if nothing was left.
    pub version: u32,
    /// Whether it was not ruled out yet.
    pub is_possible: bool,
}

/// A predicate write matched so many keys.
#[derive(Clone, Debug)]
pub struct Count {
    /// The transaction.
    pub txn: Txn,
    /// The operation.
    pub op: OpId,
    /// How many.
    pub count: u64,
    /// The alternatives in which it matched their key.
    pub matched: Vec<u32>,
}

impl Problem {
    /// Records how large it is.
    pub fn measure(&self, stats: &mut Stats) {
        let ambiguous = self.reads.iter().filter(|read| !read.is_known()).count();
        stats.record("versions", self.versions.len() as f64);
        stats.record("reads", self.reads.len() as f64);
        stats.record("ambiguous_reads", ambiguous as f64);
    }

    /// How many transactions there are.
    pub fn len(&self) -> usize {
        self.txns.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.initial.len()
    }

    /// The versions of a transaction.
    #[inline]
    pub fn versions_of(&self, txn: Txn) -> &[Version] {
        &self.versions
            [self.first_version[txn as usize] as usize..self.first_version[txn as usize + 1] as usize]
    }

    /// The version ids of a transaction.
    #[inline]
    pub(crate) fn version_ids(&self, txn: Txn) -> std::ops::Range<u32> {
        self.first_version[txn as usize]..self.first_version[txn as usize + 1]
    }

    /// The reads of a transaction.
    #[inline]
    pub fn reads_of(&self, txn: Txn) -> &[Read] {
        &self.reads[self.read_ids(txn)]
    }

    /// Where the reads of a transaction are.
    #[inline]
    pub fn read_ids(&self, txn: Txn) -> std::ops::Range<usize> {
        self.first_read[txn as usize] as usize..self.first_read[txn as usize + 1] as usize
    }

    /// All versions of a key with their values.
    #[inline]
    pub fn versions_of_key(&self, key: u32) -> &[(ValueId, u32)] {
        &self.by_value[self.key_start[key as usize] as usize..self.key_start[key as usize + 1] as usize]
    }

    /// The version of a key that a transaction wrote.
    pub fn version_by(&self, txn: Txn, key: u32) -> Option<u32> {
        self.version_ids(txn).find(|&version| self.versions[version as usize].key == key)
    }

    /// The value that an ambiguous read returned; `UNKNOWN` if it may have seen one of several.
    #[inline]
    pub(crate) fn value_of(&self, read: &Read) -> ValueId {
        debug_assert!(!read.is_known());
        self.by_value[read.source as usize].0
    }

    /// The candidates of an ambiguous read: versions with its value that are not its own transaction's,
    /// and [`INITIAL`] if that has the value.
    pub fn candidates(&self, read: &Read) -> impl Iterator<Item = u32> + '_ {
        self.all_candidates(read).filter(|&version| {
            let Some(of) = self.versions.get(version as usize) else { return true };
            self.standing[of.txn as usize] != Standing::Out
                && !self.is_impossible(self.alternative_of_version(version))
        })
    }

    /// As [`Self::candidates`], also those of transactions that did not take effect and of alternatives that are impossible.
    pub fn all_candidates(&self, read: &Read) -> impl Iterator<Item = u32> + '_ {
        let piece = self.listed(read);
        let (txn, key, value) = (read.txn, read.key, piece[0].0);
        let all_but = read.candidates & ALL_BUT != 0;
        let is_struck = move |version: u32| all_but && is_listed(piece, version);
        let initial = if all_but {
            !is_listed(piece, INITIAL)
        } else {
            !self.is_narrowed(read) && self.initial[key as usize] == value
        };
        let others = if all_but { self.versions_of_key(key) } else { piece };
        let others = others.iter().map(|&(_, version)| version).filter(move |&version| {
            let of = self.versions.get(version as usize);
            of.is_none_or(|of| of.txn != txn && !is_struck(version))
        });
        initial.then_some(INITIAL).into_iter().chain(others)
    }

    /// What a read saw, if only one version can be it and nothing says that its transaction did not take effect.
    pub fn certain_source(&self, read: &Read) -> Option<u32> {
        (read.is_known() && !self.is_out(read.source)).then_some(read.source)
    }

    /// Whether a version belongs to a transaction that did not take effect.
    pub fn is_out(&self, version: u32) -> bool {
        let of = self.versions.get(version as usize);
        of.is_some_and(|of| self.standing[of.txn as usize] == Standing::Out)
    }

    /// The candidates of an ambiguous read as they are listed, or those that are none.
    #[inline]
    fn listed(&self, read: &Read) -> &[(ValueId, u32)] {
        &self.by_value[read.source as usize..(read.source + (read.candidates & !ALL_BUT)) as usize]
    }

    /// The alternative that a read belongs to, or [`NONE`].
    #[inline]
    pub(crate) fn alternative_of_read(&self, read: u32) -> u32 {
        self.read_alternative.get(read as usize).copied().unwrap_or(NONE)
    }

    /// The reads of an alternative, which lie together.
    pub(crate) fn reads_of_alternative(&self, alternative: u32) -> std::ops::Range<u32> {
        let last = self.alternatives[alternative as usize].read;
        if last == NONE {
            return 0..0;
        }
        let before = self.read_alternative[..last as usize].iter().rev();
        let others = before.take_while(|&&of| of == alternative).count() as u32;
        last - others..last + 1
    }

    /// The alternative that a version belongs to, or [`NONE`].
    #[inline]
    pub(crate) fn alternative_of_version(&self, version: u32) -> u32 {
        self.version_alternative.get(version as usize).copied().unwrap_or(NONE)
    }

    /// Whether something that belongs to an alternative, or [`NONE`], is not there for certain.
    #[inline]
    fn is_impossible(&self, alternative: u32) -> bool {
        self.alternatives.get(alternative as usize).is_some_and(|it| !it.is_possible)
    }

    /// The matches of a transaction.
    pub(crate) fn matches_of(&self, txn: Txn) -> &[Match] {
        let first = self.matches.partition_point(|it| it.txn < txn);
        let len = self.matches[first..].partition_point(|it| it.txn == txn);
        &self.matches[first..first + len]
    }

    /// The alternative of a match that is true if this version, or [`INITIAL`], was found.
    pub(crate) fn alternative_on(&self, it: &Match, found: u32) -> Option<u32> {
        (it.first..it.end).find(|&index| {
            let alternative = &self.alternatives[index as usize];
            alternative.is_possible
                && self.reads.get(alternative.read as usize).is_none_or(|read| self.fits(read, found))
        })
    }

    /// Whether a base is that of a list which does not show its own order: nothing else tells what it built on.
    pub(crate) fn is_open_base(&self, base: u32) -> bool {
        let read = &self.reads[base as usize];
        self.version_by(read.txn, read.key).is_some_and(|own| self.versions[own as usize].value.is_known())
    }

    /// Whether a read can have seen a version of its key, or [`INITIAL`].
    #[inline]
    pub fn fits(&self, read: &Read, version: u32) -> bool {
        if read.is_known() {
            return version == read.source;
        }
        let wanted = self.value_of(read);
        if !wanted.is_known() {
            return is_listed(self.listed(read), version) == (read.candidates & ALL_BUT == 0);
        }
        wanted
            == match version {
                INITIAL => self.initial[read.key as usize],
                version => self.versions[version as usize].value,
            }
    }

    fn is_narrowed(&self, read: &Read) -> bool {
        self.key_start.last().is_some_and(|&end| read.source >= end)
    }

    /// The part made of some transactions, ascending: what they saw counts where everybody who can have written it
    /// is kept. If the whole has an explanation, so has the part: strike the others out.
    pub fn part(&self, keep: &[Txn]) -> Self {
        let mut now = vec![NONE; self.len()];
        for (new, &old) in keep.iter().enumerate() {
            now[old as usize] = new as Txn;
        }
        let mut part = Self { initial: self.initial.clone(), ..Self::default() };
        let mut version_now = vec![NONE; self.versions.len()];
        for &old in keep {
            part.txns.push(self.txns[old as usize]);
            part.standing.push(self.standing[old as usize]);
            let mut previous = self.previous[old as usize];
            while previous != NONE && now[previous as usize] == NONE {
                previous = self.previous[previous as usize];
            }
            part.previous.push(if previous == NONE { NONE } else { now[previous as usize] });
            part.first_version.push(part.versions.len() as u32);
            for id in self.version_ids(old) {
                if self.is_impossible(self.alternative_of_version(id)) {
                    continue;
                }
                version_now[id as usize] = part.versions.len() as u32;
                part.version_alternative.push(self.alternative_of_version(id));
                part.versions.push(Version { txn: now[old as usize], ..self.versions[id as usize] });
            }
        }
        part.first_version.push(part.versions.len() as u32);
        sort_versions(&mut part);
        let mut read_now: FxHashMap<u32, u32> = FxHashMap::default();
        let mut sources = Sources {
            whole: self,
            version_now: &version_now,
            with_value: FxHashMap::default(),
            missing: FxHashMap::default(),
        };
        for &old in keep {
            part.first_read.push(part.reads.len() as u32);
            for id in self.read_ids(old) {
                let read = &self.reads[id];
                let alternative = self.alternative_of_read(id as u32);
                if self.is_impossible(alternative) {
                    continue;
                }
                if !read.is_known() && self.candidates(read).next().is_none() {
                    // Nobody is left who can have written it.
                    read_now.insert(id as u32, NONE);
                    continue;
                }
                let Some((source, candidates)) = sources.of(read, alternative, &mut part) else { continue };
                if alternative != NONE {
                    read_now.insert(id as u32, part.reads.len() as u32);
                }
                let place = part.reads.len() as u32;
                part.bases.extend(is_in(&self.bases, id).then_some(place));
                part.unshown.extend(is_in(&self.unshown, id).then_some(place));
                part.read_alternative.push(alternative);
                part.reads.push(Read { txn: now[old as usize], source, candidates, ..*read });
            }
        }
        part.first_read.push(part.reads.len() as u32);
        let late = self.written_late.iter().map(|&(version, op)| (version_now[version as usize], op));
        part.written_late = late.filter(|&(version, _)| version != NONE).collect();
        part.chains = self.chains_among(&version_now);
        part.added = through(&self.added, self.len(), |txn| now[txn as usize] != NONE)
            .into_iter()
            .map(|(first, second, by)| (now[first as usize], now[second as usize], by))
            .collect();
        part.adopt_alternatives(self, &now, &version_now, &read_now);
        part
    }

    /// Matches, alternatives and counts of the transactions that are kept. Where what was found says nothing any
    /// more, the alternative is a free choice: that only allows more.
    fn adopt_alternatives(
        &mut self,
        whole: &Self,
        now: &[Txn],
        version_now: &[u32],
        read_now: &FxHashMap<u32, u32>,
    ) {
        if whole.matches.is_empty() {
            self.read_alternative.clear();
            self.version_alternative.clear();
            return;
        }
        let mut alternative_now = vec![NONE; whole.alternatives.len()];
        for it in whole.matches.iter().filter(|it| now[it.txn as usize] != NONE) {
            let first = self.alternatives.len() as u32;
            for old in it.first..it.end {
                let alternative = whole.alternatives[old as usize];
                alternative_now[old as usize] = self.alternatives.len() as u32;
                self.alternatives.push(Alternative {
                    of: self.matches.len() as u32,
                    read: read_now.get(&alternative.read).copied().unwrap_or(NONE),
                    version: version_now.get(alternative.version as usize).copied().unwrap_or(NONE),
                    is_possible: alternative.is_possible && read_now.get(&alternative.read) != Some(&NONE),
                });
            }
            let end = self.alternatives.len() as u32;
            self.matches.push(Match { txn: now[it.txn as usize], first, end, ..*it });
        }
        let renamed = |&old: &u32| if old == NONE { NONE } else { alternative_now[old as usize] };
        self.read_alternative = self.read_alternative.iter().map(renamed).collect();
        self.version_alternative = self.version_alternative.iter().map(renamed).collect();
        let kept = whole.counts.iter().filter(|count| now[count.txn as usize] != NONE);
        self.counts = kept
            .map(|count| Count {
                txn: now[count.txn as usize],
                op: count.op,
                count: count.count,
                matched: count.matched.iter().map(renamed).collect(),
            })
            .collect();
    }

    /// The version orders among those that are kept.
    fn chains_among(&self, now: &[u32]) -> Vec<(u32, u32)> {
        let chains: Vec<(u32, u32, u32)> =
            self.chains.iter().map(|&(first, second)| (first, second, 0)).collect();
        let kept = through(&chains, self.versions.len(), |version| now[version as usize] != NONE);
        kept.into_iter().map(|(first, second, _)| (now[first as usize], now[second as usize])).collect()
    }

    /// Some transactions and whoever can have written what they saw.
    pub fn with_writers(&self, txns: &[Txn]) -> Vec<Txn> {
        let mut all = txns.to_vec();
        for read in txns.iter().flat_map(|&txn| self.reads_of(txn)) {
            let sources: Vec<u32> =
                if read.is_known() { vec![read.source] } else { self.candidates(read).collect() };
            let sources = sources.into_iter().filter(|&version| version < INITIAL);
            all.extend(sources.map(|version| self.versions[version as usize].txn));
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Some transactions and whoever tells what they did.
    pub fn with_tellers(&self, txns: &[Txn]) -> Vec<Txn> {
        let mut is_in = vec![false; self.len()];
        txns.iter().for_each(|&txn| is_in[txn as usize] = true);
        loop {
            let mut grown = false;
            for &(txn, teller) in &self.forced {
                grown |= is_in[txn as usize] && !std::mem::replace(&mut is_in[teller as usize], true);
            }
            if !grown {
                return (0..self.len() as Txn).filter(|&txn| is_in[txn as usize]).collect();
            }
        }
    }

    /// The number of a transaction.
    pub fn find(&self, txn: TxnId) -> Option<Txn> {
        self.txns.binary_search(&txn).ok().map(|txn| txn as Txn)
    }

    /// Lets transactions off the order of their sessions: first where two of them follow each other, else wholly.
    /// False: nothing was left to let off.
    pub(crate) fn leave_sessions(&mut self, txns: &[Txn]) -> bool {
        let follows = |&&txn: &&Txn| {
            let previous = self.previous[txn as usize];
            previous != NONE && txns.binary_search(&previous).is_ok()
        };
        let mut leaving: Vec<Txn> = txns.iter().filter(follows).copied().collect();
        if leaving.is_empty() {
            leaving = txns.iter().copied().filter(|&txn| self.previous[txn as usize] != NONE).collect();
        }
        for &txn in &leaving {
            self.previous[txn as usize] = NONE;
        }
        !leaving.is_empty()
    }

    /// How many reads are ambiguous.
    pub fn ambiguous(&self) -> usize {
        self.reads.iter().filter(|read| !read.is_known()).count()
    }

    /// Leaves an ambiguous read these of its candidates.
    pub fn narrow(&mut self, id: usize, left: &[u32]) {
        let read = self.reads[id];
        let certain = |version: u32| {
            let txn = self.versions.get(version as usize).map(|version| version.txn);
            let is_in = txn.is_none_or(|txn| self.standing[txn as usize] == Standing::In);
            is_in && self.alternative_of_version(version) == NONE
        };
        if let [only] = *left
            && certain(only)
            && self.alternative_of_read(id as u32) == NONE
        {
            self.reads[id] = Read { source: only, candidates: 0, ..read };
            return;
        }
        let value = self.value_of(&read);
        let in_place = self.is_narrowed(&read) && read.candidates & ALL_BUT == 0;
        let start = if in_place { read.source as usize } else { self.by_value.len() };
        self.by_value.resize(self.by_value.len().max(start + left.len()), (value, INITIAL));
        let places = &mut self.by_value[start..start + left.len()];
        for (place, &version) in places.iter_mut().zip(left) {
            *place = (value, version);
        }
        places.sort_unstable();
        self.reads[id] = Read { source: start as u32, candidates: left.len() as u32, ..read };
    }
}

/// Adds what modules of the level add to a problem. What they refuse was refused before.
pub fn adopt(history: &History, level: Level, problem: &mut Problem) {
    if level.modules().is_empty() {
        return;
    }
    let added = additions(history, level).unwrap_or_default();
    let pairs = added
        .into_iter()
        .filter_map(|(first, second, by)| Some((problem.find(first)?, problem.find(second)?, by)));
    problem.added = pairs.collect();
}

/// Whether a read is in an ascending list.
fn is_in(list: &[u32], id: usize) -> bool {
    list.binary_search(&(id as u32)).is_ok()
}

/// Whether a version is in a list that is ascending by version.
fn is_listed(list: &[(ValueId, u32)], version: u32) -> bool {
    list.binary_search_by_key(&version, |&(_, listed)| listed).is_ok()
}

/// Who can have written what reads of a part saw. Reads of one value share their candidates, and a read that names those
/// that are none goes on doing so: listing them all for every read would take the square of the history.
struct Sources<'a> {
    whole: &'a Problem,
    version_now: &'a [u32],
    /// By where the versions with a value are listed: where they are in the part; `None` if not all are kept.
    with_value: FxHashMap<u32, Option<(u32, u32)>>,
    /// The versions of each key that are not kept.
    missing: FxHashMap<u32, Vec<u32>>,
}

impl Sources<'_> {
    /// `None` where somebody who can have written it is not kept, or where everybody who is can have.
    fn of(&mut self, read: &Read, alternative: u32, part: &mut Problem) -> Option<(u32, u32)> {
        if read.is_known() {
            return Some((self.now(read.source)?, 0));
        }
        if read.candidates & ALL_BUT != 0 {
            return self.all_but(read, alternative, part);
        }
        if !self.whole.is_narrowed(read) {
            let group = match self.with_value.get(&read.source) {
                Some(group) => *group,
                None => {
                    let group = self.group(read, part);
                    self.with_value.insert(read.source, group);
                    group
                }
            };
            // Where only what was there at first has the value, it is listed below.
            if group.is_none_or(|(_, len)| len > 0) {
                return group;
            }
        }
        self.listed(self.whole.candidates(read), part)
    }

    /// Where a version is in the part.
    fn now(&self, version: u32) -> Option<u32> {
        let kept = |version: u32| Some(self.version_now[version as usize]).filter(|&now| now != NONE);
        if version >= INITIAL { Some(version) } else { kept(version) }
    }

    /// Whether a version of somebody who may have taken effect is not there any more.
    fn is_missing(&self, version: u32) -> bool {
        let is_live = || {
            let of = self.whole.versions[version as usize].txn;
            self.whole.standing[of as usize] != Standing::Out
                && !self.whole.is_impossible(self.whole.alternative_of_version(version))
        };
        version < INITIAL && self.version_now[version as usize] == NONE && is_live()
    }

    fn group(&self, read: &Read, part: &Problem) -> Option<(u32, u32)> {
        let piece = self.whole.listed(read);
        if piece.iter().any(|&(_, version)| self.is_missing(version)) {
            return None;
        }
        let value = piece[0].0;
        let of_key = part.versions_of_key(read.key);
        let first = of_key.partition_point(|&(other, _)| other < value);
        let len = of_key[first..].iter().take_while(|&&(other, _)| other == value).count();
        Some((part.key_start[read.key as usize] + first as u32, len as u32))
    }

    /// As a list of those that are none.
    fn all_but(&mut self, read: &Read, alternative: u32, part: &mut Problem) -> Option<(u32, u32)> {
        let piece = self.whole.listed(read);
        if !self.missing.contains_key(&read.key) {
            let all = self.whole.versions_of_key(read.key).iter().map(|&(_, version)| version);
            let missing = all.filter(|&version| self.is_missing(version)).collect();
            self.missing.insert(read.key, missing);
        }
        let missing = &self.missing[&read.key];
        if missing.len() > piece.len() || !missing.iter().all(|&version| is_listed(piece, version)) {
            return None;
        }
        let struck: Vec<u32> =
            piece.iter().map(|&(_, version)| version).filter(|&it| self.now(it).is_some()).collect();
        match struck.is_empty() {
            true if alternative == NONE => None,
            true => self.listed(self.whole.candidates(read), part),
            false => self.listed(struck.into_iter(), part).map(|(first, len)| (first, len | ALL_BUT)),
        }
    }

    /// Some versions, one by one; `None` if one of them is not kept.
    fn listed(&self, versions: impl Iterator<Item = u32>, part: &mut Problem) -> Option<(u32, u32)> {
        let first = part.by_value.len();
        for version in versions {
            let Some(now) = self.now(version) else {
                part.by_value.truncate(first);
                return None;
            };
            part.by_value.push((ValueId::UNKNOWN, now));
        }
        part.by_value[first..].sort_unstable();
        Some((first as u32, (part.by_value.len() - first) as u32))
    }
}

/// Groups the versions by key, each group ascending by value.
pub(crate) fn sort_versions(problem: &mut Problem) {
    let mut start = vec![0u32; problem.keys() + 1];
    for version in &problem.versions {
        start[version.key as usize + 1] += 1;
    }
    for key in 1..start.len() {
        start[key] += start[key - 1];
    }
    let mut next = start.clone();
    let mut by_value = vec![(ValueId::ABSENT, 0); problem.versions.len()];
    for (index, version) in problem.versions.iter().enumerate() {
        let place = &mut next[version.key as usize];
        by_value[*place as usize] = (version.value, index as u32);
        *place += 1;
    }
    for key in 0..problem.keys() {
        let group = &mut by_value[start[key] as usize..start[key + 1] as usize];
        if !group.is_sorted() {
            group.sort_unstable();
        }
    }
    problem.key_start = start;
    problem.by_value = by_value;
}
