//! Every kind of anomaly that a history holds, as far as a bounded search finds them.
//!
//! *What*: a verdict shows one violation, the simplest; an inventory lists the kinds. Two violations may share
//! transactions, so a core that was found must not hide another one.
//!
//! *Steps*:
//! 1. Reads that are wrong whatever the order is are all counted; then their results are taken as not known.
//! 2. At the level and at every level that follows from it, all cores: whenever one is found, it is set aside as a whole,
//!    and each of its transactions by itself, and the rest is checked again. Whatever core there is misses one of the
//!    transactions of the one before, so every core is met, unless [`ROUNDS_MAX`] checks were made first. A level that
//!    holds says that what follows from it holds.
//!
//! *Cost*: a pass over what was read, and a check a round. *Source*: Elle (VLDB 2020) §6 for the names; Reiter, A theory of
//! diagnosis from first principles (1987), for the search.

use crate::check::{check, check_as_found};
use crate::naming::common_name;
use history::{History, Id, KeyId, OpId, Primitive, Status, Transaction, TxnId, ValueId, ValueRef, WriteIf};
use isolation::{Anomaly, Evidence, Level, Options, Ryow, Verdict, implications};
use oracle::tiny::{Datum, Sketch, SketchOp};
use rustc_hash::{FxHashMap, FxHashSet};
use search::lists::normal;
use search::restrict::restrict_for;
use std::collections::{BTreeSet, VecDeque};

/// How often a level is checked at most.
pub const ROUNDS_MAX: usize = 16;

/// What is at most this small is searched to the end in most cases.
const SMALL_MAX: usize = 64;
const ROUNDS_OF_SMALL_MAX: usize = 256;

/// Of larger histories only the level that was asked for is checked more than once, and results stay as they are.
const LARGE_MIN: usize = 20_000;

/// The kinds of anomaly that were found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// The kinds, each once, in the order found: wrong reads, then cores, those of the level that was asked for first.
    pub kinds: Vec<Kind>,
    /// Whether nothing is left to be found.
    pub is_complete: bool,
}

/// A kind of anomaly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Its name.
    pub anomaly: Anomaly,
    /// How many were found that share no transaction; of wrong reads, how many there are.
    pub count: usize,
    /// The transactions of the first.
    pub transactions: Vec<TxnId>,
}

/// Lists the kinds of anomaly that a level forbids.
pub fn inventory(history: &History, level: Level, options: &Options) -> Inventory {
    let mut inventory = Inventory { kinds: Vec::new(), is_complete: true };
    let wrong = wrong_reads(history, options.ryow);
    for it in &wrong {
        inventory.note_read(it);
    }
    let forgotten = without_results(history, level, &wrong);
    let aside = match &forgotten {
        Some(_) => BTreeSet::new(),
        None => wrong.iter().map(|it| it.reader).collect(),
    };
    let mut search = Search {
        history: forgotten.as_ref().unwrap_or(history),
        options,
        aside,
        inventory,
        counted: FxHashSet::default(),
    };
    let mut holds: Vec<Level> = Vec::new();
    for weaker in with_implied(level) {
        let is_settled = holds.iter().any(|&stronger| with_implied(stronger).contains(&weaker));
        if !is_settled && search.cores(weaker, weaker == level) {
            holds.push(weaker);
        }
    }
    search.inventory
}

/// A level, and those of its family that follow from it, nearest first. What the axiomatic ones forbid has the names of the
/// others.
fn with_implied(level: Level) -> Vec<Level> {
    let mut found = vec![level];
    let mut next = 0;
    while let Some(&stronger) = found.get(next) {
        next += 1;
        let direct = implications().iter().filter(|it| it.stronger == stronger && !it.without_predicates);
        for weaker in direct.map(|it| it.weaker).filter(|it| it.is_axiomatic() == level.is_axiomatic()) {
            if !found.contains(&weaker) {
                found.push(weaker);
            }
        }
    }
    found
}

/// The history with some results not known. None if there are none, it is large, or hints would be lost.
fn without_results(history: &History, level: Level, wrong: &[Wrong]) -> Option<History> {
    if wrong.is_empty() || history.len() > LARGE_MIN || !level.modules().is_empty() {
        return None;
    }
    let mut sketch = Sketch::of(history);
    for it in wrong {
        let place = it.read.index() - history.transaction(it.reader).first_op().index();
        if let Some(SketchOp::Read { value, .. }) = sketch.transactions[it.reader.index()].ops.get_mut(place)
        {
            *value = Datum::Unknown;
        }
    }
    Some(sketch.build())
}

struct Search<'h> {
    history: &'h History,
    options: &'h Options,
    /// What is left out from the start.
    aside: BTreeSet<TxnId>,
    inventory: Inventory,
    /// The transactions of the cores that were counted, by kind.
    counted: FxHashSet<(String, TxnId)>,
}

impl Search<'_> {
    /// Notes the cores of a level; whether there are none.
    fn cores(&mut self, level: Level, is_asked: bool) -> bool {
        let rounds = match self.history.len() {
            0..=SMALL_MAX => ROUNDS_OF_SMALL_MAX,
            LARGE_MIN.. if !is_asked => 1,
            _ => ROUNDS_MAX,
        };
        let mut open = VecDeque::from([self.aside.clone()]);
        let mut met = FxHashSet::from_iter([self.aside.clone()]);
        let mut holds = true;
        for _ in 0..rounds {
            let Some(gone) = open.pop_front() else { return holds };
            let keep = self.history.transactions().map(|it| it.id()).filter(|txn| !gone.contains(txn));
            let part = restrict_for(self.history, &keep.collect::<Vec<TxnId>>(), level);
            let evidence = match check(&part.history, level, self.options).verdict {
                Verdict::Accepted(_) => continue,
                Verdict::Undecided(_) => {
                    self.inventory.is_complete = false;
                    return false;
                }
                Verdict::Violated(evidence) => evidence,
            };
            let core: Vec<TxnId> = evidence.transactions.iter().map(|txn| part.txns[txn.index()]).collect();
            if is_asked && holds {
                self.note(&evidence, &core);
            }
            holds = false;
            self.note_alone(&evidence, &core, level);
            let without = |txns: &[TxnId]| gone.iter().chain(txns).copied().collect::<BTreeSet<TxnId>>();
            let all = without(&core);
            if met.insert(all.clone()) {
                open.push_front(all);
            }
            for &txn in &core {
                let one = without(&[txn]);
                if met.insert(one.clone()) {
                    open.push_back(one);
                }
            }
        }
        self.inventory.is_complete &= open.is_empty();
        holds
    }

    /// Notes what a core is called by itself, and beside an argument from data one that needs an order, if there is one.
    fn note_alone(&mut self, found: &Evidence, core: &[TxnId], level: Level) {
        let part = restrict_for(self.history, core, level);
        match check(&part.history, level, self.options).verdict {
            Verdict::Violated(alone) => self.note(&alone, core),
            _ => self.note(found, core),
        }
        if (level.session || level.realtime)
            && let Verdict::Violated(other) = check_as_found(&part.history, level, self.options).verdict
        {
            self.note(&other, core);
        }
    }

    fn note(&mut self, evidence: &Evidence, core: &[TxnId]) {
        let Anomaly { name, common } = &evidence.anomaly;
        let known = self.inventory.kinds.iter_mut().find(|kind| kind.anomaly.name == *name);
        let is_apart = !core.iter().any(|&txn| self.counted.contains(&(name.clone(), txn)));
        match known {
            Some(kind) if is_apart => kind.count += 1,
            Some(_) => return,
            None => {
                let anomaly = Anomaly { name: name.clone(), common: *common };
                self.inventory.kinds.push(Kind { anomaly, count: 1, transactions: core.to_vec() });
            }
        }
        self.counted.extend(core.iter().map(|&txn| (name.clone(), txn)));
    }
}

impl Inventory {
    fn note_read(&mut self, wrong: &Wrong) {
        match self.kinds.iter_mut().find(|kind| kind.anomaly.name == wrong.name) {
            Some(kind) => kind.count += 1,
            None => {
                let anomaly = Anomaly { name: wrong.name.to_owned(), common: common_name(wrong.name) };
                self.kinds.push(Kind { anomaly, count: 1, transactions: wrong.transactions() });
            }
        }
    }
}

/// A read that no order explains.
struct Wrong {
    name: &'static str,
    reader: TxnId,
    writer: Option<TxnId>,
    read: OpId,
}

impl Wrong {
    fn transactions(&self) -> Vec<TxnId> {
        let mut all = vec![self.reader];
        all.extend(self.writer.filter(|&writer| writer != self.reader));
        all
    }
}

/// The name of what is wrong with a read, and the writer to blame.
type Fault = (&'static str, Option<TxnId>);

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
        let ops: Vec<_> = transaction.primitives().collect();
        for (_, operation) in ops.into_iter().rev() {
            let (key, value) = match operation {
                Primitive::Write { key, value } => (key, normal(self.history, value)),
                Primitive::Append { key, value } => {
                    let is_last = later.insert(key);
                    self.lists.insert(key);
                    self.appended.insert((key, value), Appended { txn, is_last });
                    continue;
                }
                Primitive::WriteIf(write) => {
                    self.note_write_if(txn, aborted, &write);
                    continue;
                }
                Primitive::Read { .. } | Primitive::Show { .. } => continue,
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

    /// What a conditional write may have left counts as left by it: it takes the blame for nothing.
    fn note_write_if(&mut self, txn: TxnId, aborted: bool, write: &WriteIf<'_>) {
        let value = normal(self.history, write.set);
        for key in self.history.keys().ids().filter(|&key| write.changed(key) != Some(false)) {
            let it = self.written.entry((key, value)).or_default();
            if aborted {
                it.aborted = Some(txn);
            } else {
                it.finals += 1;
                it.last = Some(txn);
            }
        }
    }

    fn judge(&mut self, transaction: Transaction<'h>) {
        let mut own: FxHashMap<KeyId, ValueId> = FxHashMap::default();
        let mut own_appends: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        for (read, operation) in transaction.primitives() {
            match operation {
                Primitive::Read { key, value, .. } if value.is_known() => {
                    let value = normal(self.history, value);
                    let found = if self.lists.contains(&key) {
                        let appends = own_appends.get(&key).map_or(&[][..], Vec::as_slice);
                        self.judge_list(transaction.id(), key, value, appends)
                    } else {
                        self.judge_value(transaction, key, value, own.get(&key).copied())
                    };
                    let reader = transaction.id();
                    self.found.extend(found.map(|(name, writer)| Wrong { name, reader, writer, read }));
                }
                Primitive::Write { key, value } => {
                    own.insert(key, normal(self.history, value));
                }
                Primitive::Append { key, value } => own_appends.entry(key).or_default().push(value),
                // What it holds from here on is not known.
                _ if operation.is_open_write() => return,
                Primitive::WriteIf(write) => {
                    let value = normal(self.history, write.set);
                    own.extend(operation.written_keys().map(|key| (key, value)));
                }
                Primitive::Read { .. } | Primitive::Show { .. } => {}
            }
        }
    }

    fn judge_value(
        &self,
        transaction: Transaction<'_>,
        key: KeyId,
        value: ValueId,
        own: Option<ValueId>,
    ) -> Option<Fault> {
        let reader = transaction.id();
        let wrong = |name, writer| Some((name, writer));
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

    fn judge_list(&mut self, reader: TxnId, key: KeyId, value: ValueId, own: &[ValueId]) -> Option<Fault> {
        let wrong = |name, writer| Some((name, writer));
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
    use oracle::tiny::Shape;

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

    #[test]
    fn cores_that_share_transactions_do_not_hide_each_other() {
        let replaced_twice = "s1: a(x,0) | r(x,[0]) a(x,1) | r(x,[0]) a(x,2)\n";
        let mut found = names(replaced_twice, "strict-serializable");
        found.sort();
        assert_eq!(found, ["1 G-single-item-process", "1 lost-update"]);
        // Of a transaction with a wrong read, whatever else is wrong shows, too.
        let both = "a: w(z,9)!\nb: r(z,9) r(x,_) w(x,1)\nc: r(x,_) w(x,2)\n";
        assert_eq!(names(both, "SER"), ["1 G1a", "1 lost-update"]);
    }

    /// The names of all smallest parts that are violated at some level that follows from the one asked for.
    fn exhaustive(history: &History, level: Level, options: &Options) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        for weaker in with_implied(level) {
            let mut violated: Vec<u32> = Vec::new();
            let mut sets: Vec<u32> = (1..1 << history.len()).collect();
            sets.sort_by_key(|set| set.count_ones());
            for set in sets {
                if violated.iter().any(|smaller| smaller & set == *smaller) {
                    continue;
                }
                let keep = history.transactions().map(|it| it.id()).filter(|txn| set >> txn.0 & 1 == 1);
                let part = restrict_for(history, &keep.collect::<Vec<TxnId>>(), weaker);
                if let Verdict::Violated(evidence) = check(&part.history, weaker, options).verdict {
                    violated.push(set);
                    names.insert(evidence.anomaly.name);
                    if let Verdict::Violated(first) = check_as_found(&part.history, weaker, options).verdict {
                        names.insert(first.anomaly.name);
                    }
                }
            }
        }
        names
    }

    #[test]
    fn every_kind_is_listed() {
        let options = Options::default();
        let (mut shared, mut kinds, mut missed) = (0, 0, Vec::new());
        for seed in 0..if std::env::var_os("TAIPAN_QUICK").is_some() { 60 } else { 240 } {
            // Of lists that hold an element twice cores are not always the smallest.
            let lists = Shape { unique_values: 100, initial: 0, ..Shape::lists() };
            let shape = [Shape::registers(), lists][seed as usize % 2].clone();
            let shape = Shape { transactions: (3, 5), keys_max: 2, unknown: 0, spoiled: 60, ..shape };
            let history = shape.history(seed);
            let level = Level::parse(["strict-serializable", "SER", "strong-session-SI"][seed as usize % 3]);
            let level = level.expect("a level");
            let found = inventory(&history, level, &options);
            let wrong = wrong_reads(&history, options.ryow);
            let rest = without_results(&history, level, &wrong).unwrap_or_else(|| history.clone());
            let expected = exhaustive(&rest, level, &options);
            let text = || format!("seed {seed} at {level}: {found:?}\n{}", notation::to_string(&rest));
            let listed = |name: &&String| found.kinds.iter().any(|kind| kind.anomaly.name == **name);
            missed
                .extend(expected.iter().find(|name| !listed(name)).map(|name| format!("{name}: {}", text())));
            shared += usize::from(expected.len() > 1);
            kinds += found.kinds.len();
        }
        assert_eq!(missed, Vec::<String>::new());
        assert!(shared > 10 && kinds > 50, "{shared} {kinds}");
    }
}
