//! What each read can have seen.
//!
//! *What*: turns a history into a [`Problem`]: the transactions that can have taken effect, the last
//! version each of them wrote to a key, and for every read from outside the versions that carry the
//! value it returned. Nothing here depends on the level, except what several reads of one key in one
//! transaction mean ([`Repeats`]): snapshot isolation and everything above forbid them to differ.
//!
//! *Steps*: (1) walk the operations of each transaction, settle reads of its own writes on the spot, keep
//! the first outside read and the last write of every key; (2) sort the versions of each key by value;
//! (3) look every read up: no version — a violation that needs no order; one — a known edge; several — an
//! open question; (4) settle transactions of unknown outcome: those whose versions nobody can have seen
//! are out, those that somebody must have seen are in, the others are open questions.
//!
//! *Cost*: O(operations), plus a sort within each key. *Source*: boomslang.txt §4.2 and §A.2 (read
//! lineage); veristrong.txt §3 (duplicate values).

use crate::lists::{self, ListRead};
use crate::rows::{Claim, Test, Universe};
use crate::verdict::Ryow;
use history::{History, Id, KeyId, OpId, Operation, Predicate, Range, Row, Status, TxnId, ValueId, ValueRef};
use rustc_hash::{FxHashMap, FxHashSet};

/// No transaction, no version, no read.
pub(crate) const NONE: u32 = u32::MAX;
/// The version that was there before the first transaction.
pub(crate) const INITIAL: u32 = u32::MAX - 1;

/// A transaction that can have taken effect, numbered from 0 without gaps in the order of the file.
pub(crate) type Txn = u32;

/// Whether a transaction took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// In every explanation.
    In,
    /// In some explanations, perhaps.
    Maybe,
    /// In none that needs it: nobody can have seen it.
    Out,
}

/// The last thing a transaction wrote to a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    pub(crate) key: u32,
    pub(crate) txn: Txn,
    /// The value; `UNKNOWN` on a key that is only appended to, where the order makes the value.
    pub(crate) value: ValueId,
}

/// A read from outside and what it can have seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read {
    pub(crate) key: u32,
    pub(crate) txn: Txn,
    /// The version (or [`INITIAL`]) if there is one; else where the candidates begin in `by_value`.
    pub(crate) source: u32,
    /// How many candidates there are in `by_value`; 0: `source` is the version itself.
    pub(crate) candidates: u32,
    pub(crate) op: OpId,
}

impl Read {
    #[inline]
    pub(crate) fn is_known(&self) -> bool {
        self.candidates == 0
    }
}

/// What several outside reads of one key in one transaction mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// They saw one version: what differs is refused, what agrees is one read.
    OneVersion,
    /// Every operation saw a version of its own; the reads of a transaction are in the order issued. A list
    /// that ends with the transaction's own appends is no outside read: it shows what they build on
    /// ([`Problem::bases`]).
    EachItsOwn,
}

/// The history as the checker sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problem {
    pub(crate) txns: Vec<TxnId>,
    pub(crate) standing: Vec<Standing>,
    /// The transaction before it in its session that certainly took effect.
    pub(crate) previous: Vec<Txn>,
    /// Where each transaction's versions and reads begin; one entry more than transactions.
    pub(crate) first_version: Vec<u32>,
    pub(crate) versions: Vec<Version>,
    pub(crate) first_read: Vec<u32>,
    pub(crate) reads: Vec<Read>,
    /// Versions of each key, ascending by value; `key_start` delimits keys. Behind the last key: what is left
    /// of candidates where some were ruled out.
    pub(crate) key_start: Vec<u32>,
    pub(crate) by_value: Vec<(ValueId, u32)>,
    /// Initial values, `ABSENT` where nothing was there.
    pub(crate) initial: Vec<ValueId>,
    /// Version orders that lists show: the first is overwritten by the second, directly or not.
    pub(crate) chains: Vec<(u32, u32)>,
    /// Reads, ascending, that are none: their source is the version right before the transaction's own.
    /// Only with [`Repeats::EachItsOwn`].
    pub(crate) bases: Vec<u32>,
}

/// A contradiction that needs no order to see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contradiction {
    /// A read that contradicts its transaction's own write.
    Internal { op: OpId },
    /// Two outside reads of one key in one transaction differ.
    NonRepeatable { first: OpId, second: OpId },
    /// No version carries the value that was seen at the key.
    NoSource { op: OpId, key: KeyId },
    /// Rows that no store returns, whatever it holds.
    BadRows { op: OpId },
    /// A list that no order of whole transactions' appends makes.
    BrokenList { op: OpId },
    /// Two lists of which neither is the beginning of the other.
    IncompatibleLists { first: OpId, second: OpId },
}

/// Why there is no problem to solve.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// It is violated already.
    Contradiction(Contradiction),
    /// It holds an operation that this stage does not know.
    Unsupported(String),
}

impl Problem {
    pub(crate) fn len(&self) -> usize {
        self.txns.len()
    }

    pub(crate) fn keys(&self) -> usize {
        self.initial.len()
    }

    #[inline]
    pub(crate) fn versions_of(&self, txn: Txn) -> &[Version] {
        &self.versions
            [self.first_version[txn as usize] as usize..self.first_version[txn as usize + 1] as usize]
    }

    /// The version ids of a transaction.
    #[inline]
    pub(crate) fn version_ids(&self, txn: Txn) -> std::ops::Range<u32> {
        self.first_version[txn as usize]..self.first_version[txn as usize + 1]
    }

    #[inline]
    pub(crate) fn reads_of(&self, txn: Txn) -> &[Read] {
        &self.reads[self.read_ids(txn)]
    }

    #[inline]
    pub(crate) fn read_ids(&self, txn: Txn) -> std::ops::Range<usize> {
        self.first_read[txn as usize] as usize..self.first_read[txn as usize + 1] as usize
    }

    /// All versions of a key with their values.
    #[inline]
    pub(crate) fn versions_of_key(&self, key: u32) -> &[(ValueId, u32)] {
        &self.by_value[self.key_start[key as usize] as usize..self.key_start[key as usize + 1] as usize]
    }

    /// The version of a key that a transaction wrote.
    pub(crate) fn version_by(&self, txn: Txn, key: u32) -> Option<u32> {
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
    pub(crate) fn candidates(&self, read: &Read) -> impl Iterator<Item = u32> + '_ {
        let piece = &self.by_value[read.source as usize..(read.source + read.candidates) as usize];
        let (txn, key, value) = (read.txn, read.key, piece[0].0);
        let is_whole = !self.is_narrowed(read);
        let initial = (is_whole && self.initial[key as usize] == value).then_some(INITIAL);
        let others = piece.iter().map(|&(_, version)| version).filter(move |&version| {
            let Some(version) = self.versions.get(version as usize) else { return true };
            version.txn != txn && self.standing[version.txn as usize] != Standing::Out
        });
        initial.into_iter().chain(others)
    }

    /// Whether a read can have seen a version of its key, or [`INITIAL`].
    #[inline]
    pub(crate) fn fits(&self, read: &Read, version: u32) -> bool {
        if read.is_known() {
            return version == read.source;
        }
        let wanted = self.value_of(read);
        if !wanted.is_known() {
            let piece = &self.by_value[read.source as usize..(read.source + read.candidates) as usize];
            return piece.binary_search_by_key(&version, |&(_, candidate)| candidate).is_ok();
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
    pub(crate) fn part(&self, keep: &[Txn]) -> Self {
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
                version_now[id as usize] = part.versions.len() as u32;
                part.versions.push(Version { txn: now[old as usize], ..self.versions[id as usize] });
            }
        }
        part.first_version.push(part.versions.len() as u32);
        sort_versions(&mut part);
        for &old in keep {
            part.first_read.push(part.reads.len() as u32);
            for read in self.reads_of(old) {
                let sources: Vec<u32> =
                    if read.is_known() { vec![read.source] } else { self.candidates(read).collect() };
                let kept = |&version: &u32| version >= INITIAL || version_now[version as usize] != NONE;
                if !sources.iter().all(kept) {
                    continue;
                }
                let mut sources: Vec<u32> = sources
                    .into_iter()
                    .map(|version| if version >= INITIAL { version } else { version_now[version as usize] })
                    .collect();
                sources.sort_unstable();
                let (source, candidates) = match sources[..] {
                    [only] => (only, 0),
                    ref some => {
                        let first = part.by_value.len() as u32;
                        part.by_value.extend(some.iter().map(|&version| (ValueId::UNKNOWN, version)));
                        (first, some.len() as u32)
                    }
                };
                part.reads.push(Read { txn: now[old as usize], source, candidates, ..*read });
            }
        }
        part.first_read.push(part.reads.len() as u32);
        part.chains = self.chains_among(&version_now);
        part
    }

    /// The version orders among those that are kept.
    fn chains_among(&self, now: &[u32]) -> Vec<(u32, u32)> {
        let before: FxHashMap<u32, u32> =
            self.chains.iter().map(|&(first, second)| (second, first)).collect();
        let mut chains = Vec::new();
        for &(_, second) in self.chains.iter().filter(|&&(_, second)| now[second as usize] != NONE) {
            let mut first = before.get(&second);
            while let Some(&version) = first {
                if now[version as usize] != NONE {
                    chains.push((now[version as usize], now[second as usize]));
                    break;
                }
                first = before.get(&version);
            }
        }
        chains
    }

    /// Some transactions and whoever can have written what they saw.
    pub(crate) fn with_writers(&self, txns: &[Txn]) -> Vec<Txn> {
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

    /// How many reads are ambiguous.
    pub(crate) fn ambiguous(&self) -> usize {
        self.reads.iter().filter(|read| !read.is_known()).count()
    }

    /// Leaves an ambiguous read these of its candidates.
    pub(crate) fn narrow(&mut self, id: usize, left: &[u32]) {
        let read = self.reads[id];
        let certain = |version: u32| {
            let version = self.versions.get(version as usize);
            version.is_none_or(|version| self.standing[version.txn as usize] == Standing::In)
        };
        if let [only] = *left
            && certain(only)
        {
            self.reads[id] = Read { source: only, candidates: 0, ..read };
            return;
        }
        let value = self.value_of(&read);
        let start = if self.is_narrowed(&read) { read.source as usize } else { self.by_value.len() };
        self.by_value.resize(self.by_value.len().max(start + left.len()), (value, INITIAL));
        for (place, &version) in self.by_value[start..].iter_mut().zip(left) {
            *place = (value, version);
        }
        self.reads[id] = Read { source: start as u32, candidates: left.len() as u32, ..read };
    }
}

/// `[]` and absent are one thing: what appends start from.
pub(crate) fn normal(history: &History, value: ValueId) -> ValueId {
    if value.as_inline().is_some() || value == ValueId::ABSENT || !value.is_known() {
        return value;
    }
    match history.values().get(value) {
        ValueRef::List([]) => ValueId::ABSENT,
        _ => value,
    }
}

/// Makes the problem of a history.
pub(crate) fn observe(history: &History, ryow: Ryow) -> Result<Problem, Refusal> {
    observe_with(history, ryow, Repeats::OneVersion)
}

/// As [`observe`], for levels at which several reads of one key may differ.
pub(crate) fn observe_with(history: &History, ryow: Ryow, repeats: Repeats) -> Result<Problem, Refusal> {
    let mut walk = Walk::new(history, ryow, repeats);
    walk.transactions()?;
    let Walk { mut problem, raw_reads, claims, claimed, appends, mut list_reads, .. } = walk;
    sort_versions(&mut problem);
    let raw = Raw { history, reads: &raw_reads, claims: &claims, claimed: &claimed };
    resolve(&mut problem, &raw, &mut list_reads).map_err(Refusal::Contradiction)?;
    drop(raw_reads);
    if !appends.is_empty() {
        lists::resolve(history, &mut problem, &appends, &list_reads)?;
    }
    settle_unknown(&mut problem).map_err(Refusal::Contradiction)?;
    Ok(problem)
}

/// A read before it is looked up.
struct RawRead {
    key: u32,
    /// `UNKNOWN` for a list, which is looked up by its elements, and for claims.
    value: ValueId,
    op: OpId,
}

/// All reads before they are looked up.
struct Raw<'a> {
    history: &'a History,
    reads: &'a [RawRead],
    claims: &'a [Claim<'a>],
    /// The reads that are claims, ascending, and where those begin.
    claimed: &'a [(u32, u32)],
}

/// What a transaction did to a key so far.
struct Touch<'h> {
    key: u32,
    /// The outside read's value; `UNKNOWN` if there is none.
    seen: ValueId,
    seen_op: OpId,
    /// The own write's value; `UNKNOWN` if there is none.
    own: ValueId,
    /// On a list key: how many elements it appended, and its outside read in `list_reads`.
    appended: u32,
    list_read: u32,
    /// What was said about the outside value without naming it.
    claims: Vec<Claim<'h>>,
}

struct Walk<'h> {
    history: &'h History,
    ryow: Ryow,
    repeats: Repeats,
    problem: Problem,
    raw_reads: Vec<RawRead>,
    appends: Vec<lists::Append>,
    list_reads: Vec<ListRead>,
    list_keys: Vec<bool>,
    /// Which transaction touched a key last, and where in `touches`.
    stamp: Vec<u32>,
    slot: Vec<u32>,
    touches: Vec<Touch<'h>>,
    /// Where operations are about many keys.
    universe: Option<Universe>,
    claims: Vec<Claim<'h>>,
    claimed: Vec<(u32, u32)>,
}

impl<'h> Walk<'h> {
    fn new(history: &'h History, ryow: Ryow, repeats: Repeats) -> Self {
        let keys = history.keys().len();
        let initial = {
            let mut initial = vec![ValueId::ABSENT; keys];
            for row in history.initial() {
                initial[row.key.index()] = normal(history, row.value);
            }
            initial
        };
        Self {
            history,
            ryow,
            repeats,
            problem: Problem { initial, ..Problem::default() },
            raw_reads: Vec::new(),
            appends: Vec::new(),
            list_reads: Vec::new(),
            list_keys: vec![false; keys],
            stamp: vec![NONE; keys],
            slot: vec![0; keys],
            touches: Vec::new(),
            universe: Universe::of(history),
            claims: Vec::new(),
            claimed: Vec::new(),
        }
    }

    fn transactions(&mut self) -> Result<(), Refusal> {
        self.find_list_keys()?;
        let mut last_of_session = vec![NONE; self.history.sessions().len()];
        for transaction in self.history.transactions() {
            let standing = match transaction.status() {
                Status::Committed => Standing::In,
                Status::Unknown => Standing::Maybe,
                Status::Aborted => continue,
            };
            let txn = self.problem.txns.len() as Txn;
            let last = &mut last_of_session[transaction.session().index()];
            self.problem.txns.push(transaction.id());
            self.problem.standing.push(standing);
            self.problem.previous.push(*last);
            if standing == Standing::In {
                *last = txn;
            }
            self.problem.first_version.push(self.problem.versions.len() as u32);
            self.problem.first_read.push(self.raw_reads.len() as u32);
            self.touches.clear();
            for (op, operation) in transaction.ops() {
                let done = self.operation(txn, op, operation);
                self.forgive(txn, done)?;
            }
            let done = self.finish(txn).map_err(Refusal::Contradiction);
            self.forgive(txn, done)?;
        }
        self.problem.first_version.push(self.problem.versions.len() as u32);
        self.problem.first_read.push(self.raw_reads.len() as u32);
        Ok(())
    }

    /// A transaction of unknown outcome that contradicts itself did not take effect.
    fn forgive(&mut self, txn: Txn, done: Result<(), Refusal>) -> Result<(), Refusal> {
        let standing = &mut self.problem.standing[txn as usize];
        match done {
            Err(Refusal::Contradiction(_)) if *standing != Standing::In => {
                *standing = Standing::Out;
                Ok(())
            }
            other => other,
        }
    }

    /// Keys that are appended to. Keys whose lists do not show their order are not for this stage: those
    /// that are also overwritten, and those with an element twice.
    fn find_list_keys(&mut self) -> Result<(), Refusal> {
        let history = self.history;
        let operations = || {
            let effective = history.transactions().filter(|it| it.status() != Status::Aborted);
            effective.flat_map(|transaction| transaction.ops()).map(|(_, operation)| operation)
        };
        let refuse = |key, what| Err(Refusal::Unsupported(format!("key {} {what}", history.keys().get(key))));
        let mut seen: FxHashSet<(KeyId, ValueId)> = FxHashSet::default();
        for operation in operations() {
            let Operation::Append { key, value } = operation else { continue };
            if !std::mem::replace(&mut self.list_keys[key.index()], true) {
                match lists::elements(history, self.problem.initial[key.index()]) {
                    Some(elements) => seen.extend(elements.iter().map(|&element| (key, element))),
                    None => return refuse(key, "starts as a scalar and is appended to"),
                }
            }
            if !seen.insert((key, value)) {
                return refuse(key, "has an element that is appended twice");
            }
        }
        if seen.is_empty() {
            return Ok(());
        }
        for operation in operations() {
            if let Operation::Write { key, .. } | Operation::Delete { key } = operation
                && self.list_keys[key.index()]
            {
                return refuse(key, "is both appended to and overwritten");
            }
        }
        Ok(())
    }

    fn operation(&mut self, txn: Txn, op: OpId, operation: Operation<'h>) -> Result<(), Refusal> {
        match operation {
            Operation::Read { value, .. } if !value.is_known() => Ok(()),
            Operation::Read { key, value, .. } => {
                let value = normal(self.history, value);
                self.read(txn, op, key, value).map_err(Refusal::Contradiction)
            }
            Operation::Write { value, .. } if !value.is_known() => {
                Err(Refusal::Unsupported("a write of an unknown value".into()))
            }
            Operation::Write { key, value } => {
                let value = normal(self.history, value);
                self.write(txn, key, value);
                Ok(())
            }
            Operation::Delete { key } => {
                self.write(txn, key, ValueId::ABSENT);
                Ok(())
            }
            Operation::Append { key, value } => {
                self.append(txn, key, value);
                Ok(())
            }
            Operation::Scan { rows: None, .. }
            | Operation::Iterate { rows: None, .. }
            | Operation::Query { rows: None, .. } => Ok(()),
            Operation::Scan { range, rows: Some(rows) } => self.range(txn, op, (range, false, true), rows),
            Operation::Iterate { range, reverse, exhausted, rows: Some(rows) } => {
                self.range(txn, op, (range, reverse, exhausted), rows)
            }
            Operation::Query { predicate, rows: Some(rows) } => self.query(txn, op, predicate, rows),
            Operation::Update { predicate, set, count, keys } => {
                let set = normal(self.history, set);
                self.predicate_write(txn, op, (predicate, set), count, keys)
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                self.predicate_write(txn, op, (predicate, ValueId::ABSENT), count, keys)
            }
        }
    }

    /// A scan or an iterator.
    fn range(
        &mut self,
        txn: Txn,
        op: OpId,
        (range, reverse, to_the_end): (Range, bool, bool),
        rows: &[Row],
    ) -> Result<(), Refusal> {
        let universe = self.universe.as_ref().expect("an operation on many keys makes one");
        let visited = universe.visited(range, reverse, to_the_end, rows);
        for (key, value) in visited.ok_or(Refusal::Contradiction(Contradiction::BadRows { op }))? {
            if value.is_known() {
                let value = normal(self.history, value);
                self.read(txn, op, key, value).map_err(Refusal::Contradiction)?;
            } else {
                self.claim(txn, key, Claim { test: Test::Present, truth: true, op })?;
            }
        }
        Ok(())
    }

    fn query(&mut self, txn: Txn, op: OpId, predicate: &'h Predicate, rows: &[Row]) -> Result<(), Refusal> {
        self.refuse_lists()?;
        let bad_rows = Refusal::Contradiction(Contradiction::BadRows { op });
        let mut sorted: Vec<Row> = rows.to_vec();
        sorted.sort_unstable_by_key(|row| row.key);
        if sorted.windows(2).any(|pair| pair[0].key == pair[1].key) {
            return Err(bad_rows);
        }
        let universe = self.universe.as_ref().expect("an operation on many keys makes one");
        for key in universe.concerned(self.history, predicate, rows.iter().map(|row| row.key)) {
            let row = sorted.binary_search_by_key(&key, |row| row.key).ok();
            let value = row.map_or(ValueId::ABSENT, |row| normal(self.history, sorted[row].value));
            if value.is_known() && value != ValueId::ABSENT {
                if !predicate.holds(self.history.values(), value) {
                    return Err(bad_rows);
                }
                self.read(txn, op, key, value).map_err(Refusal::Contradiction)?;
            } else {
                let truth = !value.is_known();
                self.claim(txn, key, Claim { test: Test::Where(predicate), truth, op })?;
            }
        }
        Ok(())
    }

    /// A predicate write whose keys the database reported.
    fn predicate_write(
        &mut self,
        txn: Txn,
        op: OpId,
        (predicate, set): (&'h Predicate, ValueId),
        count: Option<u64>,
        keys: Option<&[KeyId]>,
    ) -> Result<(), Refusal> {
        self.refuse_lists()?;
        let Some(keys) = keys else {
            return Err(Refusal::Unsupported("a predicate write whose keys were not reported".into()));
        };
        if !set.is_known() {
            return Err(Refusal::Unsupported("a predicate write of an unknown value".into()));
        }
        let mut sorted = keys.to_vec();
        sorted.sort_unstable();
        let twice = sorted.windows(2).any(|pair| pair[0] == pair[1]);
        if twice || count.is_some_and(|count| count != keys.len() as u64) {
            return Err(Refusal::Contradiction(Contradiction::BadRows { op }));
        }
        let universe = self.universe.as_ref().expect("an operation on many keys makes one");
        for key in universe.concerned(self.history, predicate, keys.iter().copied()) {
            let truth = sorted.binary_search(&key).is_ok();
            let claim = Claim { test: Test::Where(predicate), truth, op };
            // It builds on the transaction's own writes, whatever its reads do.
            let own = self.touch(txn, key).own;
            if !own.is_known() {
                self.touch(txn, key).claims.push(claim);
            } else if !claim.accepts(self.history, own) {
                return Err(Refusal::Contradiction(Contradiction::Internal { op }));
            }
            if truth {
                self.write(txn, key, set);
            }
        }
        Ok(())
    }

    /// A list answers to predicates, and what it holds is known only with its order.
    fn refuse_lists(&self) -> Result<(), Refusal> {
        match self.list_keys.iter().position(|&is_list| is_list) {
            Some(key) => {
                let name = self.history.keys().get(KeyId(key as u32));
                Err(Refusal::Unsupported(format!("predicates, while key {name} is appended to")))
            }
            None => Ok(()),
        }
    }

    /// Something is said about the value seen at a key.
    fn claim(&mut self, txn: Txn, key: KeyId, claim: Claim<'h>) -> Result<(), Refusal> {
        let (history, ryow) = (self.history, self.ryow);
        let touch = self.touch(txn, key);
        let own = match touch.appended {
            0 => touch.own.is_known().then_some(touch.own),
            // Present, whatever it is.
            _ => Some(ValueId::UNKNOWN),
        };
        match own {
            Some(own) if ryow != Ryow::Never && claim.accepts(history, own) => Ok(()),
            Some(_) if ryow == Ryow::Must => {
                Err(Refusal::Contradiction(Contradiction::Internal { op: claim.op }))
            }
            _ => {
                touch.claims.push(claim);
                Ok(())
            }
        }
    }

    #[inline]
    fn touch(&mut self, txn: Txn, key: KeyId) -> &mut Touch<'h> {
        let place = key.index();
        if self.stamp[place] != txn {
            self.stamp[place] = txn;
            self.slot[place] = self.touches.len() as u32;
            self.touches.push(Touch {
                key: key.0,
                seen: ValueId::UNKNOWN,
                seen_op: OpId(NONE),
                own: ValueId::UNKNOWN,
                appended: 0,
                list_read: NONE,
                claims: Vec::new(),
            });
        }
        let slot = self.slot[place];
        &mut self.touches[slot as usize]
    }

    fn write(&mut self, txn: Txn, key: KeyId, value: ValueId) {
        self.touch(txn, key).own = value;
    }

    fn append(&mut self, txn: Txn, key: KeyId, value: ValueId) {
        self.touch(txn, key).appended += 1;
        self.appends.push(lists::Append { key: key.0, txn, element: value });
    }

    fn read(&mut self, txn: Txn, op: OpId, key: KeyId, value: ValueId) -> Result<(), Contradiction> {
        if self.list_keys[key.index()] {
            return self.read_list(txn, op, key, value);
        }
        let ryow = self.ryow;
        let touch = self.touch(txn, key);
        if touch.own.is_known() {
            match ryow {
                Ryow::Must if value == touch.own => return Ok(()),
                Ryow::Must => return Err(Contradiction::Internal { op }),
                Ryow::May if value == touch.own => return Ok(()),
                Ryow::May | Ryow::Never => {}
            }
        }
        if self.repeats == Repeats::EachItsOwn {
            self.raw_reads.push(RawRead { key: key.0, value, op });
            return Ok(());
        }
        self.touch(txn, key).see(value, op)
    }

    /// A read of a list: what is left after taking its own appends off the end came from outside.
    fn read_list(&mut self, txn: Txn, op: OpId, key: KeyId, value: ValueId) -> Result<(), Contradiction> {
        let Some(elements) = lists::elements(self.history, value) else {
            return Err(Contradiction::NoSource { op, key });
        };
        let appended = self.touch(txn, key).appended as usize;
        let own = match self.ryow {
            Ryow::Never => Vec::new(),
            Ryow::Must | Ryow::May => lists::own_appends(&self.appends, txn, key.0, appended),
        };
        let trim = match elements.len().checked_sub(own.len()) {
            Some(rest) if elements[rest..] == own[..] => own.len(),
            _ if self.ryow == Ryow::May => 0,
            _ => return Err(Contradiction::Internal { op }),
        };
        let outside = &elements[..elements.len() - trim];
        if self.repeats == Repeats::EachItsOwn {
            let slot = self.raw_reads.len() as u32;
            self.list_reads.push(ListRead { key: key.0, txn, value, trim: trim as u32, op, slot });
            self.raw_reads.push(RawRead { key: key.0, value: ValueId::UNKNOWN, op });
            if trim > 0 {
                self.problem.bases.push(slot);
            }
            return Ok(());
        }
        let next = self.list_reads.len() as u32;
        let list_read = self.touch(txn, key).list_read;
        if let Some(first) = self.list_reads.get(list_read as usize) {
            let same = lists::outside(self.history, first) == outside;
            return if same {
                Ok(())
            } else {
                Err(Contradiction::NonRepeatable { first: first.op, second: op })
            };
        }
        self.touch(txn, key).list_read = next;
        self.list_reads.push(ListRead { key: key.0, txn, value, trim: trim as u32, op, slot: NONE });
        Ok(())
    }

    /// Keeps what the transaction saw from outside and what it left behind.
    fn finish(&mut self, txn: Txn) -> Result<(), Contradiction> {
        let mut contradiction = Ok(());
        for touch in &self.touches {
            if let Some(read) = self.list_reads.get_mut(touch.list_read as usize) {
                read.slot = self.raw_reads.len() as u32;
                self.raw_reads.push(RawRead { key: touch.key, value: ValueId::UNKNOWN, op: read.op });
                let is_empty = lists::outside(self.history, read).is_empty();
                let seen = if is_empty { ValueId::ABSENT } else { ValueId::UNKNOWN };
                contradiction = contradiction.and(touch.agree(self.history, seen, read.op));
            } else if touch.seen.is_known() {
                self.raw_reads.push(RawRead { key: touch.key, value: touch.seen, op: touch.seen_op });
                contradiction = contradiction.and(touch.agree(self.history, touch.seen, touch.seen_op));
            } else if let Some(claim) = touch.claims.first() {
                self.claimed.push((self.raw_reads.len() as u32, self.claims.len() as u32));
                self.claims.extend(&touch.claims);
                self.raw_reads.push(RawRead { key: touch.key, value: ValueId::UNKNOWN, op: claim.op });
            }
            if touch.own.is_known() || touch.appended > 0 {
                self.problem.versions.push(Version { key: touch.key, txn, value: touch.own });
            }
        }
        contradiction
    }
}

impl Touch<'_> {
    /// Whether everything claimed holds of the value that was seen.
    fn agree(&self, history: &History, seen: ValueId, op: OpId) -> Result<(), Contradiction> {
        match self.claims.iter().find(|claim| !claim.accepts(history, seen)) {
            Some(claim) => Err(Contradiction::NonRepeatable { first: op, second: claim.op }),
            None => Ok(()),
        }
    }

    fn see(&mut self, value: ValueId, op: OpId) -> Result<(), Contradiction> {
        if !self.seen.is_known() {
            self.seen = value;
            self.seen_op = op;
        } else if self.seen != value {
            return Err(Contradiction::NonRepeatable { first: self.seen_op, second: op });
        }
        Ok(())
    }
}

/// Groups the versions by key, each group ascending by value.
fn sort_versions(problem: &mut Problem) {
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

/// Looks every read up. A read that nothing explains is a contradiction if its transaction certainly
/// took effect; else the transaction did not. What is true of every version is left out.
fn resolve(problem: &mut Problem, raw: &Raw<'_>, list_reads: &mut [ListRead]) -> Result<(), Contradiction> {
    let mut reads = Vec::with_capacity(raw.reads.len());
    let mut choices = Vec::new();
    let mut claimed = raw.claimed.iter().enumerate().peekable();
    let mut lists = list_reads.iter_mut().peekable();
    for txn in 0..problem.len() {
        let ids = problem.first_read[txn]..problem.first_read[txn + 1];
        problem.first_read[txn] = reads.len() as u32;
        for id in ids {
            let it = &raw.reads[id as usize];
            let found = match claimed.next_if(|(_, (read, _))| *read == id) {
                Some((index, &(_, first))) => {
                    let end = raw.claimed.get(index + 1).map_or(raw.claims.len(), |&(_, next)| next as usize);
                    let claims = &raw.claims[first as usize..end];
                    match choose(problem, raw.history, txn as Txn, it, claims, &mut choices) {
                        Some(found) => found,
                        None => continue,
                    }
                }
                None => look_up(problem, txn as Txn, it),
            };
            if let Some(list) = lists.next_if(|list| list.slot == id) {
                list.slot = reads.len() as u32;
            }
            let (source, candidates) = found;
            if source == NONE {
                if problem.standing[txn] == Standing::In {
                    return Err(Contradiction::NoSource { op: it.op, key: KeyId(it.key) });
                }
                problem.standing[txn] = Standing::Out;
            }
            reads.push(Read { key: it.key, txn: txn as Txn, source, candidates, op: it.op });
        }
    }
    let end = problem.first_read.len() - 1;
    problem.first_read[end] = reads.len() as u32;
    problem.reads = reads;
    problem.by_value.extend(choices);
    Ok(())
}

/// The versions of a key of which all claims hold; `None` if that is all of them.
fn choose(
    problem: &Problem,
    history: &History,
    txn: Txn,
    raw: &RawRead,
    claims: &[Claim<'_>],
    choices: &mut Vec<(ValueId, u32)>,
) -> Option<(u32, u32)> {
    let fits = |value: ValueId| claims.iter().all(|claim| claim.accepts(history, value));
    let first = choices.len();
    let mut all = 1;
    for &(value, version) in problem.versions_of_key(raw.key) {
        if problem.versions[version as usize].txn != txn {
            all += 1;
            if fits(value) {
                choices.push((ValueId::UNKNOWN, version));
            }
        }
    }
    choices[first..].sort_unstable();
    if fits(problem.initial[raw.key as usize]) {
        choices.push((ValueId::UNKNOWN, INITIAL));
    }
    let found = match choices[first..] {
        ref some if some.len() == all => None,
        [] => Some((NONE, 0)),
        [(_, only)] => Some((only, 0)),
        ref some => return Some(((problem.by_value.len() + first) as u32, some.len() as u32)),
    };
    choices.truncate(first);
    found
}

fn look_up(problem: &Problem, txn: Txn, raw: &RawRead) -> (u32, u32) {
    if !raw.value.is_known() {
        return (INITIAL, 0); // a list; see lists::resolve
    }
    let group = problem.versions_of_key(raw.key);
    let first = group.partition_point(|&(value, _)| value < raw.value);
    let with_value = group[first..].iter().take_while(|&&(value, _)| value == raw.value);
    let from_initial = problem.initial[raw.key as usize] == raw.value;
    let mut len = 0;
    let mut others = 0;
    let mut other = NONE;
    for &(_, version) in with_value {
        len += 1;
        if problem.versions[version as usize].txn != txn {
            others += 1;
            other = version;
        }
    }
    match (others, from_initial) {
        (0, false) => (NONE, 0),
        (0, true) => (INITIAL, 0),
        (1, false) => (other, 0),
        _ => (problem.key_start[raw.key as usize] + first as u32, len),
    }
}

/// Decides which transactions of unknown outcome are in: those that somebody who is in must have seen.
/// Those that nobody can have seen are out. The rest stay open.
fn settle_unknown(problem: &mut Problem) -> Result<(), Contradiction> {
    if problem.standing.iter().all(|&standing| standing == Standing::In) {
        return Ok(());
    }
    drop_out(problem)?;
    let mut wanted = vec![false; problem.len()];
    let of = |problem: &Problem, standing| -> Vec<Txn> {
        (0..problem.len() as Txn).filter(|&txn| problem.standing[txn as usize] == standing).collect()
    };
    let mut work = of(problem, Standing::In);
    while let Some(txn) = work.pop() {
        for read in problem.reads_of(txn).to_vec() {
            let must = read.is_known() && problem.standing[txn as usize] == Standing::In;
            let sources: Vec<u32> =
                if read.is_known() { vec![read.source] } else { problem.candidates(&read).collect() };
            for version in sources.into_iter().filter(|&version| version < INITIAL) {
                let writer = problem.versions[version as usize].txn as usize;
                if must && problem.standing[writer] == Standing::Maybe {
                    problem.standing[writer] = Standing::In;
                    work.push(writer as Txn);
                } else if !std::mem::replace(&mut wanted[writer], true) {
                    // What a wanted one may have seen is wanted too.
                    work.push(writer as Txn);
                }
            }
        }
    }
    for txn in of(problem, Standing::Maybe) {
        if !wanted[txn as usize] {
            problem.standing[txn as usize] = Standing::Out;
        }
    }
    // An open read may have lost candidates; those that remain are as they were.
    drop_out(problem)
}

/// Reads of transactions that are out constrain nothing; ambiguous reads may have become known or
/// impossible as candidates dropped out. Repeats until nothing changes.
fn drop_out(problem: &mut Problem) -> Result<(), Contradiction> {
    loop {
        let mut changed = false;
        for index in 0..problem.reads.len() {
            let read = problem.reads[index];
            let standing = problem.standing[read.txn as usize];
            if standing == Standing::Out {
                continue;
            }
            let left: Vec<u32> = if !read.is_known() {
                problem.candidates(&read).take(2).collect()
            } else if read.source == INITIAL
                || problem.standing[problem.versions[read.source as usize].txn as usize] != Standing::Out
            {
                continue;
            } else {
                Vec::new()
            };
            match (left[..].first(), left.len()) {
                (None, _) if standing == Standing::In => {
                    return Err(Contradiction::NoSource { op: read.op, key: KeyId(read.key) });
                }
                (None, _) => {
                    problem.standing[read.txn as usize] = Standing::Out;
                    changed = true;
                }
                (Some(&only), 1) => {
                    problem.reads[index].source = only;
                    problem.reads[index].candidates = 0;
                    changed = true;
                }
                _ => {}
            }
        }
        if !changed {
            return Ok(());
        }
    }
}
