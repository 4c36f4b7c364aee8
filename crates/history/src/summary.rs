//! What is in a history, counted.

use crate::{Footprint, History, Id, KeyId, Operation, Status, ValueId};
use rustc_hash::FxHashSet;

/// Counts that tell what kind of history one has.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Transactions of any status.
    pub transactions: usize,
    /// Those that took effect.
    pub committed: usize,
    /// Those that did not.
    pub aborted: usize,
    /// Those whose client never learnt.
    pub unknown: usize,
    /// Committed transactions that change nothing.
    pub read_only: usize,
    /// Client connections.
    pub sessions: usize,
    /// Operations by their name in the native format, only those that occur.
    pub operations: Vec<(&'static str, usize)>,
    /// Reads that found nothing.
    pub absent_reads: usize,
    /// Operations whose result is not known.
    pub unknown_results: usize,
    /// Keys that occur anywhere.
    pub keys: usize,
    /// Keys that some transaction writes, deletes or appends to.
    pub keys_written: usize,
    /// Keys with a value before the first transaction.
    pub initial_values: usize,
    /// Writes and appends of a value that its key was given before, by any transaction or initially: where there
    /// are any, a read does not tell its writer.
    pub repeated_writes: usize,
    /// Transactions a session.
    pub session_length: Spread,
    /// Operations a transaction.
    pub transaction_length: Spread,
    /// Transactions with the clients' clocks.
    pub client_clocks: usize,
    /// Transactions with the database's timestamps.
    pub db_timestamps: usize,
    /// Bytes in memory.
    pub footprint: Footprint,
}

/// How a number is spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spread {
    /// The smallest.
    pub min: usize,
    /// The middle one.
    pub median: usize,
    /// The greatest.
    pub max: usize,
}

impl Spread {
    /// Of some numbers, in any order.
    fn of(mut numbers: Vec<usize>) -> Self {
        if numbers.is_empty() {
            return Self::default();
        }
        let middle = numbers.len() / 2;
        let median = *numbers.select_nth_unstable(middle).1;
        let min = numbers.iter().copied().min().unwrap_or(0);
        let max = numbers.iter().copied().max().unwrap_or(0);
        Self { min, median, max }
    }
}

impl History {
    /// Counts what is in it. One pass over all operations; memory grows with the number of distinct writes.
    pub fn summary(&self) -> Summary {
        let mut tally = Tally::new(self);
        for transaction in self.transactions() {
            let mut changes = false;
            for (_, operation) in transaction.ops() {
                changes |= tally.operation(&operation);
            }
            let committed = transaction.is_committed();
            tally.read_only += usize::from(committed && !changes);
        }
        let with_status = |status| self.transactions().filter(|txn| txn.status() == status).count();
        Summary {
            transactions: self.len(),
            committed: with_status(Status::Committed),
            aborted: with_status(Status::Aborted),
            unknown: with_status(Status::Unknown),
            read_only: tally.read_only,
            sessions: self.sessions().len(),
            operations: tally.operations,
            absent_reads: tally.absent_reads,
            unknown_results: tally.unknown_results,
            keys: self.keys().len(),
            keys_written: tally.is_written.iter().filter(|&&written| written).count(),
            initial_values: self.initial().len(),
            repeated_writes: tally.repeated_writes,
            session_length: Spread::of(
                self.sessions().ids().map(|session| self.of_session(session).len()).collect(),
            ),
            transaction_length: Spread::of(self.transactions().map(|txn| txn.ops().len()).collect()),
            client_clocks: self.transactions().filter(|txn| txn.client().is_some()).count(),
            db_timestamps: self.transactions().filter(|txn| txn.db().is_some()).count(),
            footprint: self.footprint(),
        }
    }
}

struct Tally {
    operations: Vec<(&'static str, usize)>,
    read_only: usize,
    absent_reads: usize,
    unknown_results: usize,
    is_written: Vec<bool>,
    seen: FxHashSet<(KeyId, ValueId)>,
    repeated_writes: usize,
}

impl Tally {
    fn new(history: &History) -> Self {
        Self {
            operations: Vec::new(),
            read_only: 0,
            absent_reads: 0,
            unknown_results: 0,
            is_written: vec![false; history.keys().len()],
            seen: history.initial().iter().map(|row| (row.key, row.value)).collect(),
            repeated_writes: 0,
        }
    }

    /// Counts an operation; says whether it changes anything.
    fn operation(&mut self, operation: &Operation<'_>) -> bool {
        let name = operation.name();
        match self.operations.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => self.operations.push((name, 1)),
        }
        match *operation {
            Operation::Read { value, .. } => {
                self.absent_reads += usize::from(value == ValueId::ABSENT);
                self.unknown_results += usize::from(!value.is_known());
                false
            }
            Operation::Scan { rows, .. }
            | Operation::Iterate { rows, .. }
            | Operation::Query { rows, .. } => {
                self.unknown_results += usize::from(rows.is_none());
                false
            }
            Operation::Write { key, value } | Operation::Append { key, value } => {
                self.is_written[key.index()] = true;
                self.repeated_writes += usize::from(!self.seen.insert((key, value)));
                true
            }
            Operation::Cas { key, write, ok, .. } => {
                self.unknown_results += usize::from(ok.is_none());
                self.is_written[key.index()] = true;
                self.repeated_writes += usize::from(ok != Some(false) && !self.seen.insert((key, write)));
                true
            }
            Operation::Delete { key } => {
                self.is_written[key.index()] = true;
                true
            }
            Operation::Update { .. } | Operation::DeleteWhere { .. } => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Builder, Lock, Status, ValueId};

    #[test]
    fn everything_is_counted() {
        let mut builder = Builder::new();
        let (x, y) = (builder.key("x".into()), builder.key("y".into()));
        let (zero, one) = (builder.int(0), builder.int(1));
        builder.initial(x, zero);
        let session = builder.session(1.into());
        builder.begin(session);
        builder.write(x, one);
        builder.write(x, one);
        builder.write(x, zero);
        builder.delete(y);
        builder.end().expect("valid");
        builder.begin(session);
        builder.read(x, ValueId::ABSENT, Lock::None);
        builder.read(x, ValueId::UNKNOWN, Lock::None);
        builder.end().expect("valid");
        builder.begin(session);
        builder.set_status(Status::Aborted);
        builder.end().expect("valid");
        let summary = builder.finish().expect("valid").summary();
        assert_eq!((summary.transactions, summary.committed, summary.aborted, summary.unknown), (3, 2, 1, 0));
        assert_eq!(summary.operations, [("write", 3), ("delete", 1), ("read", 2)]);
        assert_eq!((summary.read_only, summary.absent_reads, summary.unknown_results), (1, 1, 1));
        assert_eq!((summary.keys, summary.keys_written, summary.initial_values), (2, 2, 1));
        assert_eq!(summary.repeated_writes, 2, "one repeats a write, one the initial value");
        let length = summary.transaction_length;
        assert_eq!((length.min, length.median, length.max), (0, 2, 4));
    }
}
