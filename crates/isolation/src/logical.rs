//! Transactions whose plain reads see a snapshot while their writes see the newest state: taken apart.
//!
//! *What*: some databases' "repeatable read" lets plain reads see the state as of the transaction's first read, while
//! locking reads and writes see, and lock, the newest committed state. No level of the literature is that; but each
//! transaction is two logical ones. [`split`] makes a history of them:
//!
//! ```text
//!   T        r(x,0)  w(y,1)  r(y,1)  r!(z,3)  w(z,4)  r(x,0)        r! locks
//!   T.reads  r(x,0)  r(x,0)                                         one snapshot
//!   T        w(y,1)  r(y,1)  r!(z,3)  w(z,4)                        locked until commit
//! ```
//!
//! *Why that is what such a database keeps*: what is locked stays as it is until the commit, so the second halves are
//! serializable in the order of commits (two-phase locking), and a snapshot is a state between two commits, taken before
//! its own second half commits and after what its session committed earlier. So the halves together are serializable with
//! session order. Lost updates and write skews are gone by design; snapshots that are none, and reads that do not see
//! their own transaction's write, remain violations.
//!
//! *What is let go*: a query, or an iterator, of a transaction that has written before is left out, and so is a plain read
//! behind a predicate write whose keys nobody reported: what is own and what is snapshot cannot be told apart there. A
//! scan is cut at the keys that were written.
//!
//! *Cost*: one pass. *Source*: Boomslang (Zhang, Mu and Tan 2026), case #4 (§8.1), which starts a new sub-transaction at every locking read
//! and write; two are enough, because locks are kept, and say more.

use history::{
    Builder, Copier, History, KeyId, Lock, NameRef, Operation, Range, Row, Status, Transaction, ValueId,
};
use rustc_hash::FxHashSet;

/// The history of logical sub-transactions. The half that reads is called `NAME.reads`, the other one keeps the name.
pub fn split(history: &History) -> History {
    let mut splitter =
        Splitter { history, copier: Copier::new(history), builder: Builder::new(), sorted: Vec::new() };
    splitter.sorted = history.keys().ids().collect();
    splitter.sorted.sort_unstable_by_key(|&key| history.keys().get(key));
    splitter.run()
}

/// How many operations of a history [`split`] lets go, of transactions that did not abort: nothing is said of them.
pub fn let_go(history: &History) -> usize {
    let judged = history.transactions().filter(|it| it.status() != Status::Aborted);
    judged.flat_map(|it| halves(history, &it)).filter(|half| *half == Half::Neither).count()
}

/// Where an operation belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Reads,
    Writes,
    /// Nowhere: what it saw cannot be told apart.
    Neither,
    /// Piece by piece: a scan over keys that were written.
    Both,
}

struct Splitter<'h> {
    history: &'h History,
    copier: Copier<'h>,
    builder: Builder,
    /// All keys in their order.
    sorted: Vec<KeyId>,
}

impl Splitter<'_> {
    fn run(mut self) -> History {
        for &Row { key, value } in self.history.initial() {
            let key = self.copier.key(key, &mut self.builder);
            let value = self.copier.value(value, &mut self.builder);
            self.builder.initial(key, value);
        }
        let history = self.history;
        let names: FxHashSet<String> = history.transactions().map(|it| it.name().to_string()).collect();
        for transaction in history.transactions() {
            let halves = halves(history, &transaction);
            let has = |half: Half| halves.iter().any(|&it| it == half || it == Half::Both);
            let name = transaction.name().to_string();
            if transaction.status() != Status::Aborted && has(Half::Reads) && has(Half::Writes) {
                let mut reads = format!("{name}.reads");
                while names.contains(&reads) {
                    reads.push('\'');
                }
                self.half(&transaction, &reads, &halves, Half::Reads);
            }
            let is_whole = transaction.status() == Status::Aborted || !has(Half::Writes);
            let half = if is_whole { Half::Both } else { Half::Writes };
            self.half(&transaction, &name, &halves, half);
        }
        self.builder.finish().expect("names were unique, and those that are new differ from them")
    }

    /// Copies the operations of one half, or of both.
    fn half(&mut self, transaction: &Transaction<'_>, name: &str, halves: &[Half], wanted: Half) {
        let session = self.copier.session(transaction.session(), &mut self.builder);
        self.builder.begin(session);
        self.builder.set_status(transaction.status());
        self.builder.set_id(NameRef::Str(name)).expect("names were unique, and those that are new differ");
        if let Some(span) = transaction.client() {
            self.builder.set_client(span).expect("the whole has it in order");
        }
        if let Some(ctx) = transaction.ctx() {
            self.builder.set_ctx(ctx);
        }
        let mut own: FxHashSet<KeyId> = FxHashSet::default();
        let history = self.history;
        for ((op, operation), &half) in transaction.ops().zip(halves) {
            if half == Half::Both && wanted != Half::Both {
                self.pieces(&operation, &own, wanted);
            } else if wanted == Half::Both || half == wanted {
                self.copy(&operation);
            }
            own.extend(history.primitive(op).written_keys());
        }
        self.builder.end().expect("a half is no longer than the whole");
    }

    /// The pieces of a scan between the keys that were written, or those keys.
    fn pieces(&mut self, operation: &Operation<'_>, own: &FxHashSet<KeyId>, wanted: Half) {
        let Operation::Scan { range, rows: Some(rows) } = *operation else { return };
        let value_at =
            |key: KeyId| rows.iter().find(|row| row.key == key).map_or(ValueId::ABSENT, |row| row.value);
        let keys: Vec<KeyId> =
            self.sorted.iter().copied().filter(|&key| is_within(self.history, range, key)).collect();
        if wanted == Half::Writes {
            for key in keys.into_iter().filter(|key| own.contains(key)) {
                self.copy(&Operation::Read { key, value: value_at(key), lock: Lock::None });
            }
            return;
        }
        for piece in keys.split(|key| own.contains(key)).filter(|piece| !piece.is_empty()) {
            let place = |key: KeyId| self.sorted.iter().position(|&it| it == key).unwrap_or(0);
            let next = piece.last().and_then(|&last| self.sorted.get(place(last) + 1)).copied();
            let of_piece: Vec<Row> = rows.iter().copied().filter(|row| piece.contains(&row.key)).collect();
            // The next key there is ends the piece; behind the last one the range is as open as it was.
            let range = Range { from: piece.first().copied(), to: next.or(range.to) };
            self.copy(&Operation::Scan { range, rows: Some(&of_piece) });
        }
    }

    fn copy(&mut self, operation: &Operation<'_>) {
        self.copier.operation(*operation, &mut self.builder);
    }
}

fn is_within(history: &History, range: Range, key: KeyId) -> bool {
    let place = |key: KeyId| history.keys().get(key);
    range.from.is_none_or(|from| place(from) <= place(key))
        && range.to.is_none_or(|to| place(key) < place(to))
}

/// Where each operation of a transaction belongs.
fn halves(history: &History, transaction: &Transaction<'_>) -> Vec<Half> {
    let mut own: FxHashSet<KeyId> = FxHashSet::default();
    let mut is_unreported = false;
    let mut halves = Vec::new();
    for (op, operation) in transaction.ops() {
        halves.push(match operation {
            Operation::Read { lock, .. } if lock != Lock::None => Half::Writes,
            Operation::Read { key, .. } if own.contains(&key) => Half::Writes,
            Operation::Read { .. } | Operation::Scan { .. } if is_unreported => Half::Neither,
            Operation::Read { .. } => Half::Reads,
            Operation::Scan { range, rows: Some(_) }
                if own.iter().any(|&key| is_within(history, range, key)) =>
            {
                Half::Both
            }
            Operation::Scan { .. } => Half::Reads,
            Operation::Iterate { .. } | Operation::Query { .. } if is_unreported || !own.is_empty() => {
                Half::Neither
            }
            Operation::Iterate { .. } | Operation::Query { .. } => Half::Reads,
            _ => Half::Writes,
        });
        let does = history.primitive(op);
        is_unreported |= does.is_open_write();
        own.extend(does.written_keys());
    }
    halves
}
