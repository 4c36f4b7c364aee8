//! What holds of every explanation of a part, as clauses.

use super::Atom;
use crate::certify::content::Seen;
use crate::{Level, Rule, Ryow};
use history::{History, Id, KeyId, Operation, Status, Transaction, ValueId};
use rustc_hash::FxHashMap;

/// Cores beyond this are not proved: real time alone is a fact for every two of them.
const TRANSACTIONS_MAX: usize = 4_000;

/// Clauses, and the number of events they speak of.
pub(super) struct Facts {
    pub(super) clauses: Vec<Vec<Atom>>,
    pub(super) events: u32,
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
    clauses: Vec<Vec<Atom>>,
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
            clauses: Vec::new(),
        };
        for transaction in part.transactions() {
            if transaction.status() != Status::Committed {
                return Err(
                    "a transaction of unknown outcome is in the core, and proofs do not cover them".into()
                );
            }
            writer.transaction(transaction)?;
        }
        writer.orders(level, clock_skew);
        writer.writers();
        for read in std::mem::take(&mut writer.reads) {
            writer.read(&read);
        }
        let events = part.len() as u32 * if writer.snapshots { 2 } else { 1 };
        Ok(Self { clauses: writer.clauses, events })
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

    fn transaction(&mut self, transaction: Transaction<'_>) -> Result<(), String> {
        let txn = transaction.id().index() as u32;
        let mut own: FxHashMap<KeyId, ValueId> = FxHashMap::default();
        for (op, (_, operation)) in transaction.ops().enumerate() {
            match operation {
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
        for (key, value) in own {
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
                for pair in self.part.of_session(session).windows(2) {
                    self.clauses.push(vec![self.precedes(pair[0].0, pair[1].0)]);
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
                    self.clauses.push(vec![self.precedes(first, second), self.precedes(second, first)]);
                }
            }
        }
    }

    fn read(&mut self, read: &Outside) {
        let versions = self.left.get(&read.key).cloned().unwrap_or_default();
        let wrote = versions.iter().filter(|&&(writer, value)| writer != read.txn && value == read.value);
        let mut sources: Vec<Option<u32>> = wrote.map(|&(writer, _)| Some(writer)).collect();
        if self.plain(self.part.initial_value(read.key)) == read.value {
            sources.push(None);
        }
        let saw = |source: Option<u32>| Atom::Saw(read.txn, read.op, source);
        self.clauses.push(sources.iter().map(|&source| saw(source)).collect());
        for source in sources {
            let unless = Atom::Missed(read.txn, read.op, source);
            if let Some(writer) = source {
                self.clauses.push(vec![unless, self.precedes(writer, read.txn)]);
            }
            for &(other, _) in &versions {
                if Some(other) == source || other == read.txn {
                    continue;
                }
                // It becomes visible before the source does, or after the read.
                let mut clause = vec![unless, Atom::Before(self.begin(read.txn), self.commit(other))];
                clause.extend(source.map(|writer| Atom::Before(self.commit(other), self.commit(writer))));
                self.clauses.push(clause);
            }
        }
    }
}
