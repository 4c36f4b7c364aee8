//! What holds of every explanation of a part, as clauses.

use super::Atom;
use crate::content::Seen;
use history::{History, Id, KeyId, Operation, Status, Transaction, ValueId};
use isolation::{Level, Rule, Ryow};
use rustc_hash::FxHashMap;

/// Cores beyond this are not proved: real time alone is a fact for every two of them.
const TRANSACTIONS_MAX: usize = 4_000;

/// Clauses, and the number of events they speak of.
pub(super) struct Facts {
    pub(super) clauses: Vec<Vec<Atom>>,
    pub(super) events: u32,
    /// Of each transaction that read a key and wrote it what it read.
    replaced: FxHashMap<(u32, KeyId), ValueId>,
    /// How many versions of a key carry a value.
    versions: FxHashMap<(KeyId, ValueId), usize>,
}

/// A read from outside of its transaction.
struct Outside {
    txn: u32,
    op: u32,
    key: KeyId,
    value: ValueId,
}

struct Writer<'h> {
    part: &'h History,
    snapshots: bool,
    ryow: Ryow,
    /// What each transaction left in each key.
    left: FxHashMap<KeyId, Vec<(u32, ValueId)>>,
    reads: Vec<Outside>,
    /// Keys that are appended to, and who appended which element; how many elements each transaction appended.
    owners: FxHashMap<(KeyId, ValueId), u32>,
    appended: FxHashMap<KeyId, Vec<(u32, usize)>>,
    lists: Vec<OutsideList>,
    clauses: Vec<Vec<Atom>>,
}

/// A list read from outside, without what its transaction appended itself.
struct OutsideList {
    txn: u32,
    key: KeyId,
    elements: Vec<ValueId>,
}

impl Facts {
    /// The facts of a part; the sentence says why there are none.
    pub(super) fn of(part: &History, level: Level, ryow: Ryow, clock_skew: i64) -> Result<Self, String> {
        if part.len() > TRANSACTIONS_MAX {
            return Err(format!("a core of {} transactions is too large to be proved", part.len()));
        }
        let mut writer = Writer {
            part,
            snapshots: level.rule == Rule::SnapshotIsolation,
            ryow,
            left: FxHashMap::default(),
            reads: Vec::new(),
            owners: FxHashMap::default(),
            appended: FxHashMap::default(),
            lists: Vec::new(),
            clauses: Vec::new(),
        };
        writer.appends()?;
        for transaction in part.transactions() {
            writer.transaction(transaction)?;
        }
        writer.orders(level, clock_skew);
        writer.writers();
        let (replaced, versions) = (writer.replaced(), writer.versions());
        for read in std::mem::take(&mut writer.reads) {
            writer.read(&read);
        }
        for list in std::mem::take(&mut writer.lists) {
            writer.list(&list);
        }
        let events = part.len() as u32 * if writer.snapshots { 2 } else { 1 };
        Ok(Self { clauses: writer.clauses, events, replaced, versions })
    }

    /// Whether these transactions all replaced one value of one key, of which there were fewer versions.
    pub(super) fn are_a_crowd(&self, txns: &[u32]) -> bool {
        let Some(&first) = txns.first() else { return false };
        let mut others = txns.to_vec();
        others.sort_unstable();
        others.dedup();
        self.replaced.iter().filter(|((txn, _), _)| *txn == first).any(|(&(_, key), value)| {
            others.iter().all(|&txn| self.replaced.get(&(txn, key)) == Some(value))
                && others.len() > self.versions.get(&(key, *value)).copied().unwrap_or(0)
        })
    }
}

impl Writer<'_> {
    fn begin(&self, txn: u32) -> u32 {
        if self.snapshots { txn * 2 } else { txn }
    }

    fn commit(&self, txn: u32) -> u32 {
        if self.snapshots { txn * 2 + 1 } else { txn }
    }

    /// The first commits before the second begins.
    fn precedes(&self, first: u32, second: u32) -> Atom {
        Atom::Before(self.commit(first), self.begin(second))
    }

    /// The atom that is true if a transaction did not take effect; none if it certainly did.
    fn failed(&self, txn: u32) -> Option<Atom> {
        let status = self.part.transaction(history::TxnId(txn)).status();
        (status != Status::Committed).then_some(Atom::Failed(txn))
    }

    fn appends(&mut self) -> Result<(), String> {
        let beyond = || Err("proofs cover lists only where every element is appended once".to_owned());
        for transaction in self.part.transactions() {
            let txn = transaction.id().index() as u32;
            for (_, operation) in transaction.ops() {
                let Operation::Append { key, value } = operation else { continue };
                if self.owners.insert((key, value), txn).is_some() {
                    return beyond();
                }
                let appended = self.appended.entry(key).or_default();
                match appended.last_mut() {
                    Some((last, count)) if *last == txn => *count += 1,
                    _ => appended.push((txn, 1)),
                }
            }
        }
        for &key in self.appended.keys() {
            if self.plain(self.part.initial_value(key)) != ValueId::ABSENT {
                return beyond();
            }
        }
        let mut operations = self.part.transactions().flat_map(|transaction| transaction.ops());
        let overwrites = |operation: &Operation<'_>| {
            matches!(operation, Operation::Write { key, .. } | Operation::Delete { key }
                if self.appended.contains_key(key))
        };
        if operations.any(|(_, operation)| overwrites(&operation)) { beyond() } else { Ok(()) }
    }

    /// A read of a list. Leaving one out only makes the proof harder.
    fn note_list(&mut self, txn: u32, key: KeyId, value: ValueId, own: &[ValueId]) {
        let elements = match Seen::of(self.part.values(), value) {
            Seen::Absent => Vec::new(),
            Seen::List(elements) => elements.to_vec(),
            _ => return,
        };
        let rest = elements.len().checked_sub(own.len());
        let outside = match self.ryow {
            Ryow::Must => rest.filter(|&rest| elements[rest..] == *own),
            Ryow::May | Ryow::Never => Some(elements.len()).filter(|_| own.is_empty()),
        };
        if let Some(outside) = outside {
            self.lists.push(OutsideList { txn, key, elements: elements[..outside].to_vec() });
        }
    }

    fn transaction(&mut self, transaction: Transaction<'_>) -> Result<(), String> {
        let txn = transaction.id().index() as u32;
        let mut own: FxHashMap<KeyId, ValueId> = FxHashMap::default();
        let mut own_elements: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        for (op, (_, operation)) in transaction.ops().enumerate() {
            match operation {
                Operation::Append { key, value } => own_elements.entry(key).or_default().push(value),
                Operation::Read { key, value, .. }
                    if value.is_known() && self.appended.contains_key(&key) =>
                {
                    let own = own_elements.get(&key).map_or(&[][..], Vec::as_slice);
                    self.note_list(txn, key, value, own);
                }
                Operation::Write { key, value } => drop(own.insert(key, self.plain(value))),
                Operation::Delete { key } => drop(own.insert(key, ValueId::ABSENT)),
                Operation::Read { value, .. } if !value.is_known() => {}
                Operation::Read { key, value, .. } => {
                    let value = self.plain(value);
                    // What its own write explains, or contradicts, says nothing about others. Leaving a read out
                    // only makes the proof harder.
                    let from_outside = match (self.ryow, own.get(&key)) {
                        (_, None) | (Ryow::Never, _) => true,
                        (Ryow::Must, Some(_)) => false,
                        (Ryow::May, Some(&written)) => written != value,
                    };
                    let is_first = !self
                        .reads
                        .iter()
                        .rev()
                        .take_while(|read| read.txn == txn)
                        .any(|read| read.key == key);
                    if from_outside && is_first {
                        self.reads.push(Outside { txn, op: op as u32, key, value });
                    }
                }
                other => return Err(format!("proofs do not cover the operation `{}`", other.name())),
            }
        }
        let lists = own_elements.into_keys().map(|key| (key, ValueId::UNKNOWN));
        for (key, value) in own.into_iter().chain(lists) {
            self.left.entry(key).or_default().push((txn, value));
        }
        Ok(())
    }

    /// Nothing and an empty list are the same.
    fn plain(&self, value: ValueId) -> ValueId {
        match Seen::of(self.part.values(), value) {
            Seen::Absent => ValueId::ABSENT,
            _ => value,
        }
    }

    fn orders(&mut self, level: Level, clock_skew: i64) {
        for txn in (0..self.part.len() as u32).filter(|_| self.snapshots) {
            self.clauses.push(vec![Atom::Before(self.begin(txn), self.commit(txn))]);
        }
        if level.session || level.realtime {
            for session in self.part.sessions().ids() {
                let mut certain: Option<u32> = None;
                for txn in self.part.of_session(session).iter().map(|txn| txn.0) {
                    self.clauses.extend(certain.map(|before| vec![self.precedes(before, txn)]));
                    if self.failed(txn).is_none() {
                        certain = Some(txn);
                    }
                }
            }
        }
        if level.realtime {
            let span = |txn: u32| self.part.transaction(history::TxnId(txn)).client();
            let count = self.part.len() as u32;
            for (first, second) in (0..count).flat_map(|first| (0..count).map(move |second| (first, second)))
            {
                if let (Some(one), Some(two)) = (span(first), span(second))
                    && first != second
                    && self.failed(first).is_none()
                    && i128::from(one.end) + i128::from(clock_skew) < i128::from(two.begin)
                {
                    self.clauses.push(vec![self.precedes(first, second)]);
                }
            }
        }
    }

    /// Writers of one key do not overlap.
    fn writers(&mut self) {
        if !self.snapshots {
            return;
        }
        for versions in self.left.values() {
            for (place, &(second, _)) in versions.iter().enumerate() {
                for &(first, _) in &versions[..place] {
                    let mut clause = vec![self.precedes(first, second), self.precedes(second, first)];
                    clause.extend(self.failed(first));
                    clause.extend(self.failed(second));
                    self.clauses.push(clause);
                }
            }
        }
    }

    /// What was read from outside, and replaced, by those who certainly took effect.
    fn replaced(&self) -> FxHashMap<(u32, KeyId), ValueId> {
        let writes = |read: &&Outside| {
            let left = self.left.get(&read.key);
            self.failed(read.txn).is_none()
                && left.is_some_and(|left| left.iter().any(|&(writer, _)| writer == read.txn))
        };
        self.reads.iter().filter(writes).map(|read| ((read.txn, read.key), read.value)).collect()
    }

    /// How many versions carry a value that was read, those of unknown outcome and the initial ones among them.
    fn versions(&self) -> FxHashMap<(KeyId, ValueId), usize> {
        let mut versions: FxHashMap<(KeyId, ValueId), usize> = FxHashMap::default();
        for (&key, left) in &self.left {
            left.iter().for_each(|&(_, value)| *versions.entry((key, value)).or_default() += 1);
        }
        for key in self.part.keys().ids() {
            *versions.entry((key, self.plain(self.part.initial_value(key)))).or_default() += 1;
        }
        versions
    }

    fn read(&mut self, read: &Outside) {
        let versions = self.left.get(&read.key).cloned().unwrap_or_default();
        let wrote = versions.iter().filter(|&&(writer, value)| writer != read.txn && value == read.value);
        let mut sources: Vec<Option<u32>> = wrote.map(|&(writer, _)| Some(writer)).collect();
        if self.plain(self.part.initial_value(read.key)) == read.value {
            sources.push(None);
        }
        let saw = |source: Option<u32>| Atom::Saw(read.txn, read.op, source);
        let some = sources.iter().map(|&source| saw(source)).chain(self.failed(read.txn));
        self.clauses.push(some.collect());
        for source in sources {
            let unless = Atom::Missed(read.txn, read.op, source);
            if let Some(writer) = source {
                self.clauses.push(vec![unless, self.precedes(writer, read.txn)]);
                if self.failed(writer).is_some() {
                    self.clauses.push(vec![unless, Atom::Happened(writer)]);
                }
            }
            for &(other, _) in &versions {
                if Some(other) == source || other == read.txn {
                    continue;
                }
                // It becomes visible before the source does, or after the read.
                let mut clause = vec![unless, Atom::Before(self.begin(read.txn), self.commit(other))];
                clause.extend(source.map(|writer| Atom::Before(self.commit(other), self.commit(writer))));
                clause.extend(self.failed(other));
                self.clauses.push(clause);
            }
        }
    }

    fn list(&mut self, list: &OutsideList) {
        let owners: Option<Vec<u32>> =
            list.elements.iter().map(|&element| self.owners.get(&(list.key, element)).copied()).collect();
        let failed = self.failed(list.txn);
        // An element that nobody appended, or its reader later: there is no such list.
        let Some(owners) = owners.filter(|owners| !owners.contains(&list.txn)) else {
            self.clauses.push(failed.into_iter().collect());
            return;
        };
        let clauses = &mut self.clauses;
        let mut says = |atom: Option<Atom>, unless: Option<Atom>| {
            clauses.push(atom.into_iter().chain(unless).chain(failed).collect());
        };
        for pair in owners.windows(2).filter(|pair| pair[0] != pair[1]) {
            let (one, two) = (pair[0], pair[1]);
            let (commit, next) = if self.snapshots { (one * 2 + 1, two * 2 + 1) } else { (one, two) };
            says(Some(Atom::Before(commit, next)), None);
        }
        let others = self.appended.get(&list.key).cloned().unwrap_or_default();
        for (other, count) in others.into_iter().filter(|&(other, _)| other != list.txn) {
            let seen = owners.iter().filter(|&&owner| owner == other).count();
            let (begin, commit) =
                if self.snapshots { (list.txn * 2, other * 2 + 1) } else { (list.txn, other) };
            let is_unknown = self.part.transaction(history::TxnId(other)).status() != Status::Committed;
            match seen {
                0 => says(Some(Atom::Before(begin, commit)), is_unknown.then_some(Atom::Failed(other))),
                _ if seen == count => {
                    says(Some(Atom::Before(commit, begin)), None);
                    if is_unknown {
                        says(Some(Atom::Happened(other)), None);
                    }
                }
                // A part of a transaction is never seen.
                _ => says(None, None),
            }
        }
    }
}
