//! Every kind of anomaly that a history holds, as far as a bounded search finds them.
//!
//! *What*: a verdict shows one violation, the simplest; an inventory lists the kinds. Reads that are wrong whatever the
//! order is are all counted. Cycles are found one after the other: the transactions of each core are set aside and the rest
//! is checked again, until the rest is possible or [`ROUNDS_MAX`] cores were found.
//!
//! *Cost*: a pass over what was read, and a check a core. *Source*: Elle (VLDB 2020) §6 for the names.

use crate::naming::common_name;
use crate::pipeline::check;
use crate::restrict::restrict_for;
use crate::verdict::{Anomaly, Options, Ryow, Verdict};
use crate::{Level, observe::normal};
use history::{History, KeyId, Operation, Status, Transaction, TxnId, ValueId, ValueRef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

/// How many cores are looked for.
pub const ROUNDS_MAX: usize = 16;

/// The kinds of anomaly that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The kinds, each once, in the order found: wrong reads, then cycles, the shortest of the first cores first.
    pub kinds: Vec<Kind>,
    /// Whether nothing is left to be found in what was not set aside.
    pub is_complete: bool,
}

/// A kind of anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub anomaly: Anomaly,
    /// How many were found.
    pub count: usize,
    /// The transactions of the first.
    pub transactions: Vec<TxnId>,
}

/// Lists the kinds of anomaly that a level forbids.
pub fn inventory(history: &History, level: Level, options: &Options) -> Inventory {
    let mut inventory = Inventory::default();
    let mut aside: BTreeSet<TxnId> = BTreeSet::new();
    for wrong in wrong_reads(history, options.ryow) {
        aside.insert(wrong.reader);
        inventory.note(wrong.name, common_name(wrong.name), wrong.transactions());
    }
    for _ in 0..ROUNDS_MAX {
        let keep: Vec<TxnId> =
            history.transactions().map(|it| it.id()).filter(|txn| !aside.contains(txn)).collect();
        let part = restrict_for(history, &keep, level);
        match check(&part.history, level, options).verdict {
            Verdict::Accepted(_) => {
                inventory.is_complete = true;
                return inventory;
            }
            Verdict::Undecided(_) => return inventory,
            Verdict::Violated(evidence) => {
                let core: Vec<TxnId> =
                    evidence.transactions.iter().map(|txn| part.txns[txn.0 as usize]).collect();
                aside.extend(core.iter().copied());
                inventory.note(&evidence.anomaly.name, evidence.anomaly.common, core);
            }
        }
    }
    inventory
}

impl Inventory {
    fn note(&mut self, name: &str, common: Option<&'static str>, transactions: Vec<TxnId>) {
        match self.kinds.iter_mut().find(|kind| kind.anomaly.name == name) {
            Some(kind) => kind.count += 1,
            None => {
                let anomaly = Anomaly { name: name.to_owned(), common };
                self.kinds.push(Kind { anomaly, count: 1, transactions });
            }
        }
    }
}

/// A read that no order explains.
struct Wrong {
    name: &'static str,
    reader: TxnId,
    writer: Option<TxnId>,
}

impl Wrong {
    fn transactions(&self) -> Vec<TxnId> {
        let mut all = vec![self.reader];
        all.extend(self.writer.filter(|&writer| writer != self.reader));
        all
    }
}

/// Who wrote a value to a key.
#[derive(Clone, Copy, Default)]
struct Written {
    /// How many transactions left it behind, and one of them.
    finals: u32,
    last: Option<TxnId>,
    /// One that wrote it and then something else; one that aborted.
    passing: Option<TxnId>,
    aborted: Option<TxnId>,
}

/// Who appended an element.
#[derive(Clone, Copy)]
struct Appended {
    txn: TxnId,
    is_last: bool,
}

struct Scan<'h> {
    history: &'h History,
    ryow: Ryow,
    written: FxHashMap<(KeyId, ValueId), Written>,
    appended: FxHashMap<(KeyId, ValueId), Appended>,
    lists: FxHashSet<KeyId>,
    longest: FxHashMap<KeyId, &'h [ValueId]>,
    found: Vec<Wrong>,
}

fn wrong_reads(history: &History, ryow: Ryow) -> Vec<Wrong> {
    let mut scan = Scan {
        history,
        ryow,
        written: FxHashMap::default(),
        appended: FxHashMap::default(),
        lists: FxHashSet::default(),
        longest: FxHashMap::default(),
        found: Vec::new(),
    };
    for transaction in history.transactions() {
        scan.note_writes(transaction);
    }
    for transaction in history.transactions().filter(|it| it.is_committed()) {
        scan.judge(transaction);
    }
    scan.found
}

impl<'h> Scan<'h> {
    fn note_writes(&mut self, transaction: Transaction<'h>) {
        let txn = transaction.id();
        let aborted = transaction.status() == Status::Aborted;
        let mut later: FxHashSet<KeyId> = FxHashSet::default();
        let ops: Vec<_> = transaction.ops().collect();
        for (_, operation) in ops.into_iter().rev() {
            let (key, value) = match operation {
                Operation::Write { key, value } => (key, normal(self.history, value)),
                Operation::Delete { key } => (key, ValueId::ABSENT),
                Operation::Append { key, value } => {
                    let is_last = later.insert(key);
                    self.lists.insert(key);
                    self.appended.insert((key, value), Appended { txn, is_last });
                    continue;
                }
                _ => continue,
            };
            let it = self.written.entry((key, value)).or_default();
            match (aborted, later.insert(key)) {
                (true, _) => it.aborted = Some(txn),
                (false, true) => {
                    it.finals += 1;
                    it.last = Some(txn);
                }
                (false, false) => it.passing = Some(txn),
            }
        }
    }

    fn judge(&mut self, transaction: Transaction<'h>) {
        let mut own: FxHashMap<KeyId, ValueId> = FxHashMap::default();
        let mut own_appends: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        for (_, operation) in transaction.ops() {
            match operation {
                Operation::Read { key, value, .. } if value.is_known() => {
                    let value = normal(self.history, value);
                    let wrong = if self.lists.contains(&key) {
                        let appends = own_appends.get(&key).map_or(&[][..], Vec::as_slice);
                        self.judge_list(transaction.id(), key, value, appends)
                    } else {
                        self.judge_value(transaction, key, value, own.get(&key).copied())
                    };
                    self.found.extend(wrong);
                }
                Operation::Write { key, value } => {
                    own.insert(key, normal(self.history, value));
                }
                Operation::Delete { key } => {
                    own.insert(key, ValueId::ABSENT);
                }
                Operation::Append { key, value } => own_appends.entry(key).or_default().push(value),
                _ => {}
            }
        }
    }

    fn judge_value(
        &self,
        transaction: Transaction<'_>,
        key: KeyId,
        value: ValueId,
        own: Option<ValueId>,
    ) -> Option<Wrong> {
        let reader = transaction.id();
        let wrong = |name, writer| Some(Wrong { name, reader, writer });
        match (own, self.ryow) {
            (Some(own), Ryow::Must) if own == value => return None,
            (Some(_), Ryow::Must) => return wrong("internal", None),
            (Some(own), Ryow::May) if own == value => return None,
            _ => {}
        }
        let it = self.written.get(&(key, value)).copied().unwrap_or_default();
        let by_others = it.finals > u32::from(it.last == Some(reader));
        if by_others || normal(self.history, self.history.initial_value(key)) == value {
            return None;
        }
        match (it.passing.filter(|&txn| txn != reader), it.aborted) {
            _ if it.last == Some(reader) || it.passing == Some(reader) => wrong("future-read", Some(reader)),
            (Some(writer), _) => wrong("G1b", Some(writer)),
            (None, Some(writer)) => wrong("G1a", Some(writer)),
            (None, None) => wrong("thin-air", None),
        }
    }

    fn judge_list(&mut self, reader: TxnId, key: KeyId, value: ValueId, own: &[ValueId]) -> Option<Wrong> {
        let wrong = |name, writer| Some(Wrong { name, reader, writer });
        let elements: &'h [ValueId] = match self.history.values().get(value) {
            ValueRef::Null => &[],
            ValueRef::List(elements) => elements,
            _ => return wrong("thin-air", None),
        };
        if self.ryow == Ryow::Must && !elements.ends_with(own) {
            return wrong("internal", None);
        }
        let mut met: FxHashSet<ValueId> = FxHashSet::default();
        if !elements.iter().all(|&element| met.insert(element)) {
            return wrong("duplicate-elements", None);
        }
        let initial = self.history.values_of(normal(self.history, self.history.initial_value(key)));
        let outside = elements.len() - if elements.ends_with(own) { own.len() } else { 0 };
        let committed = |txn: TxnId| self.history.transaction(txn).status() != Status::Aborted;
        for (place, &element) in elements[..outside].iter().enumerate() {
            if initial.contains(&element) {
                continue;
            }
            let Some(&it) = self.appended.get(&(key, element)) else { return wrong("thin-air", None) };
            if it.txn == reader {
                return wrong("future-read", Some(reader));
            }
            if !committed(it.txn) {
                let later = elements[place + 1..].iter().filter_map(|&it| self.appended.get(&(key, it)));
                let is_built_on = later.into_iter().any(|later| committed(later.txn));
                return wrong(if is_built_on { "dirty-update" } else { "G1a" }, Some(it.txn));
            }
            if place + 1 == outside && !it.is_last {
                return wrong("G1b", Some(it.txn));
            }
        }
        let longest = self.longest.entry(key).or_default();
        let is_beginning = longest.starts_with(&elements[..outside]);
        if !is_beginning && !elements.starts_with(longest) {
            return wrong("incompatible-order", None);
        }
        if !is_beginning {
            *longest = &elements[..outside];
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    fn names(text: &str, level: &str) -> Vec<String> {
        let history = notation::parse(text).expect("the notation is right");
        let level = Level::parse(level).expect("a level");
        let found = inventory(&history, level, &Options::default());
        assert!(found.is_complete, "{text}");
        found.kinds.into_iter().map(|kind| format!("{} {}", kind.count, kind.anomaly.name)).collect()
    }

    #[test]
    fn wrong_reads_by_kind() {
        let check = |text: &str, expected: &str| assert_eq!(names(text, "SER"), [expected], "{text}");
        check("a: w(x,1)!\nb: r(x,1) | r(x,1)\n", "2 G1a");
        check("a: w(x,1) w(x,2)\nb: r(x,1)\n", "1 G1b");
        check("a: r(x,1) w(x,1)\n", "1 future-read");
        check("a: r(x,7)\n", "1 thin-air");
        check("a: w(x,1) r(x,_)\n", "1 internal");
        check("a: a(x,1)\nb: r(x,[1 1])\n", "1 duplicate-elements");
        check("a: a(x,1)!\nb: a(x,2)\nc: r(x,[1 2])\n", "1 dirty-update");
        check("a: a(x,1)\nb: a(x,2)\nc: r(x,[1 2])\nd: r(x,[2])\n", "1 incompatible-order");
        let grown = "a: a(x,1)\nb: a(x,2)\ne: a(x,3)\nc: r(x,[1]) | r(x,[1 2])\nd: r(x,[1 3])\n";
        check(grown, "1 incompatible-order");
        check("a: a(x,1)\nb: r(x,[1 2]) a(x,2)\n", "1 future-read");
        // A shorter list behind a longer one is nothing by itself.
        check("a: a(x,1)\nb: a(x,2)\nc: r(x,[1 2])\nd: r(x,[1])\ne: r(z,7)\n", "1 thin-air");
    }

    #[test]
    fn cycles_are_found_one_after_the_other() {
        let skew = "a: r(x,_) w(y,1)\nb: r(y,_) w(x,1)\n";
        let lost = "c: r(z,_) w(z,1)\nd: r(z,_) w(z,2)\n";
        let mut found = names(&format!("{skew}{lost}"), "SER");
        found.sort();
        assert_eq!(found, ["1 G2-item", "1 lost-update"]);
        assert_eq!(names(&format!("{skew}{lost}"), "SI"), ["1 lost-update"]);
        assert_eq!(names("a: w(x,1) | r(x,_)\n", "strong-session-SER"), ["1 G-single-item-process"]);
    }
}
