//! Whether two histories are the same: equal sessions of equal transactions, and equal initial values. The order
//! in which sessions interleave in a file is no part of a history, and neither are the numbers of keys and values.

use std::collections::BTreeMap;
use taipan_history::{History, NameRef, Operation, Transaction, ValueId, ValueRef};

/// What differs first, in words.
pub(crate) fn difference(a: &History, b: &History) -> Option<String> {
    let pair = Pair { a, b };
    pair.initial().or_else(|| pair.sessions())
}

struct Pair<'h> {
    a: &'h History,
    b: &'h History,
}

impl<'h> Pair<'h> {
    fn initial(&self) -> Option<String> {
        let table = |history: &'h History| -> BTreeMap<NameRef<'h>, ValueId> {
            history.initial().iter().map(|row| (history.keys().get(row.key), row.value)).collect()
        };
        let (a, b) = (table(self.a), table(self.b));
        if a.len() != b.len() {
            return Some(format!("{} initial values against {}", a.len(), b.len()));
        }
        let mut both = a.into_iter().zip(b);
        both.find(|&(a, b)| a.0 != b.0 || !self.same_value(a.1, b.1))
            .map(|(a, b)| format!("initial value of {} against that of {}", a.0, b.0))
    }

    fn sessions(&self) -> Option<String> {
        let table = |history: &'h History| -> BTreeMap<NameRef<'h>, Vec<Transaction<'h>>> {
            let sessions = history.sessions();
            let transactions =
                |id| history.of_session(id).iter().map(|&txn| history.transaction(txn)).collect();
            sessions.ids().map(|id| (sessions.get(id), transactions(id))).collect()
        };
        let (a, b) = (table(self.a), table(self.b));
        if a.keys().ne(b.keys()) {
            return Some(format!("sessions {:?} against {:?}", a.keys(), b.keys()));
        }
        for (a, b) in a.values().zip(b.values()) {
            if a.len() != b.len() {
                return Some(format!(
                    "session {:?}: {} transactions against {}",
                    a.first(),
                    a.len(),
                    b.len()
                ));
            }
            for (&a, &b) in a.iter().zip(b) {
                if let Some(what) = self.transaction(a, b) {
                    return Some(format!("{what}: {a:?} against {b:?}"));
                }
            }
        }
        None
    }

    fn transaction(&self, a: Transaction<'_>, b: Transaction<'_>) -> Option<&'static str> {
        let checks = [
            (a.status() == b.status(), "status"),
            (a.client() == b.client(), "client clock"),
            (a.db() == b.db(), "database timestamps"),
            (a.explicit_id() == b.explicit_id(), "id"),
            (a.level() == b.level(), "level"),
            (a.ops().len() == b.ops().len(), "number of operations"),
        ];
        if let Some((_, what)) = checks.iter().find(|(same, _)| !same) {
            return Some(what);
        }
        let same = a.ops().zip(b.ops()).all(|((_, a), (_, b))| self.same_operation(a, b));
        (!same).then_some("operation")
    }

    fn same_operation(&self, a: Operation<'_>, b: Operation<'_>) -> bool {
        let same_key = |a, b| self.a.keys().get(a) == self.b.keys().get(b);
        let same_bound = |a: Option<_>, b: Option<_>| match (a, b) {
            (Some(a), Some(b)) => same_key(a, b),
            (None, None) => true,
            _ => false,
        };
        match (a, b) {
            (Operation::Read { key, value, lock }, Operation::Read { key: k, value: v, lock: l }) => {
                same_key(key, k) && self.same_value(value, v) && lock == l
            }
            (Operation::Write { key, value }, Operation::Write { key: k, value: v })
            | (Operation::Append { key, value }, Operation::Append { key: k, value: v }) => {
                same_key(key, k) && self.same_value(value, v)
            }
            (Operation::Delete { key }, Operation::Delete { key: k }) => same_key(key, k),
            (Operation::Scan { range, rows }, Operation::Scan { range: r, rows: s }) => {
                let same_rows = match (rows, s) {
                    (Some(a), Some(b)) => {
                        let same = |(a, b): (&taipan_history::Row, &taipan_history::Row)| {
                            same_key(a.key, b.key) && self.same_value(a.value, b.value)
                        };
                        a.len() == b.len() && a.iter().zip(b).all(same)
                    }
                    (None, None) => true,
                    _ => false,
                };
                same_bound(range.from, r.from) && same_bound(range.to, r.to) && same_rows
            }
            _ => false,
        }
    }

    fn same_value(&self, a: ValueId, b: ValueId) -> bool {
        if !a.is_known() || !b.is_known() {
            return a == b;
        }
        match (self.a.values().get(a), self.b.values().get(b)) {
            (ValueRef::List(a), ValueRef::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| self.same_value(a, b))
            }
            (ValueRef::Row(_), ValueRef::Row(_)) => {
                self.a.values().show(a).to_string() == self.b.values().show(b).to_string()
            }
            (a, b) => a == b,
        }
    }
}
