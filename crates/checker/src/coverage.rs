//! How much a history really tested: so that "accepted" is not mistaken for "tested".
//!
//! *What*: counts what constrains nothing — writes nobody read, keys that only one session used, reads that several
//! writes explain — and names the anomalies that the workload could not have shown whatever the database did, because a
//! shape they need is missing. The conditions are necessary ones: an anomaly that is not named could have been shown.
//!
//! *Cost*: one pass over the operations and a hash set of what was read.

use history::{History, Id, KeyId, Operation, Status, ValueId, ValueRef};
use rustc_hash::{FxHashMap, FxHashSet};

/// What a history tested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Versions that committed transactions left behind.
    pub writes: usize,
    /// Those of them that no other transaction is known to have read.
    pub unread: usize,
    /// Keys that committed transactions used.
    pub keys: usize,
    /// Those of them that one session alone used.
    pub unshared: usize,
    /// Reads with a known result; every row that a scan, an iterator or a query returned is one.
    pub reads: usize,
    /// Scans, iterators and queries with a known result.
    pub scans: usize,
    /// Those of them whose value was written more than once.
    pub ambiguous: usize,
    /// Anomalies that the workload could not have shown, and what it lacks.
    pub blind_spots: Vec<BlindSpot>,
}

/// An anomaly that a workload cannot show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlindSpot {
    /// Its name.
    pub anomaly: &'static str,
    /// What the workload lacks.
    pub lacks: &'static str,
}

/// What an accepted verdict rests on.
pub fn coverage(history: &History) -> Coverage {
    let mut walk = Walk::new(history);
    for transaction in history.transactions() {
        walk.transaction(transaction);
    }
    walk.finish()
}

/// What transactions did to a key so far.
#[derive(Clone, Copy, Default)]
pub(crate) struct Use {
    /// The session that used it first, plus one.
    session: u32,
    pub(crate) is_shared: bool,
    is_written: bool,
    /// How many transactions both read and wrote it.
    read_and_written: u32,
    /// Whether some transaction that wrote something else read it.
    read_for_others: bool,
}

impl Use {
    /// A session, counted from one, uses the key.
    #[inline]
    pub(crate) fn touch(&mut self, session: u32) {
        self.is_shared |= self.session != 0 && self.session != session;
        self.session = if self.session == 0 { session } else { self.session };
    }

    /// A transaction read or wrote the key, and wrote something.
    #[inline]
    pub(crate) fn note(&mut self, read: bool, wrote: bool, wrote_something: bool) {
        self.read_and_written += u32::from(read && wrote);
        self.read_for_others |= read && !wrote && wrote_something;
        self.is_written |= wrote;
    }

    pub(crate) fn is_used(&self) -> bool {
        self.session != 0
    }
}

/// What transactions of a history do, beside what they do to single keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    pub(crate) aborted_writes: bool,
    pub(crate) overwrites_itself: bool,
    /// How many read and wrote two keys or more.
    pub(crate) reads_two: usize,
    pub(crate) writes_two: usize,
    pub(crate) predicates: bool,
    pub(crate) two_in_a_session: bool,
    pub(crate) clocks: bool,
}

impl Habits {
    /// The anomalies that cannot be shown.
    pub(crate) fn blind_spots<'u>(&self, uses: impl Iterator<Item = &'u Use> + Clone) -> Vec<BlindSpot> {
        let any = |holds: &dyn Fn(&Use) -> bool| uses.clone().any(holds);
        let conditions = [
            ("G1a", self.aborted_writes, "no aborted transaction wrote"),
            ("G1b", self.overwrites_itself, "no transaction wrote a key twice"),
            ("lost-update", any(&|it| it.read_and_written > 1), "no two transactions read and wrote one key"),
            (
                "G-single",
                self.reads_two > 0 && self.writes_two > 0 || any(&|it| it.read_and_written > 1),
                "no transaction read two keys while another wrote two",
            ),
            ("G-nonadjacent", self.reads_two > 1, "no two transactions read several keys"),
            (
                "G2-item",
                any(&|it| it.read_for_others && it.is_written),
                "no transaction read what another wrote, and wrote something else",
            ),
            ("G2", self.predicates, "nothing was read by predicate"),
            ("…-process", self.two_in_a_session, "no session had two transactions"),
            ("…-realtime", self.clocks, "there are no clients' clocks"),
        ];
        let missing = conditions.into_iter().filter(|&(_, could_be_shown, _)| !could_be_shown);
        missing.map(|(anomaly, _, lacks)| BlindSpot { anomaly, lacks }).collect()
    }
}

struct Walk<'h> {
    history: &'h History,
    uses: Vec<Use>,
    /// The last transaction that read and that wrote a key, plus one.
    read_by: Vec<u32>,
    written_by: Vec<u32>,
    /// Elements of lists that were seen.
    shown: Vec<(KeyId, ValueId)>,
    /// The versions left behind.
    left: Vec<(KeyId, ValueId)>,
    own: Vec<(KeyId, ValueId)>,
    coverage: Coverage,
    read_values: Vec<(KeyId, ValueId)>,
    habits: Habits,
    /// Sessions with a transaction that took effect.
    of_session: FxHashSet<u32>,
    /// How much of the longest list read from each key is noted.
    list_lens: FxHashMap<KeyId, usize>,
}

impl<'h> Walk<'h> {
    fn new(history: &'h History) -> Self {
        let keys = history.keys().len();
        Self {
            history,
            uses: vec![Use::default(); keys],
            read_by: vec![0; keys],
            written_by: vec![0; keys],
            shown: Vec::new(),
            left: Vec::new(),
            own: Vec::new(),
            coverage: Coverage::default(),
            read_values: Vec::new(),
            habits: Habits { clocks: history.has_client_clocks(), ..Habits::default() },
            of_session: FxHashSet::default(),
            list_lens: FxHashMap::default(),
        }
    }

    fn transaction(&mut self, transaction: history::Transaction<'_>) {
        if transaction.status() == Status::Aborted {
            let writes = |operation: Operation<'_>| !is_read(&operation);
            self.habits.aborted_writes |= transaction.ops().any(|(_, operation)| writes(operation));
            return;
        }
        let stamp = transaction.id().0 + 1;
        let session = transaction.session().0 + 1;
        let (mut read_keys, mut written_keys) = (Vec::new(), Vec::new());
        self.own.clear();
        for (_, operation) in transaction.ops() {
            self.habits.predicates |= operation.key().is_none();
            match operation {
                Operation::Read { key, value, .. } => {
                    self.read((key, value), (stamp, session), &mut read_keys);
                }
                Operation::Scan { rows, .. }
                | Operation::Iterate { rows, .. }
                | Operation::Query { rows, .. } => {
                    self.coverage.scans += usize::from(rows.is_some());
                    for row in rows.unwrap_or_default() {
                        self.read((row.key, row.value), (stamp, session), &mut read_keys);
                    }
                }
                Operation::Write { key, value } | Operation::Append { key, value } => {
                    self.write((key, value), (stamp, session), &mut written_keys);
                }
                Operation::Delete { key } => {
                    self.write((key, ValueId::ABSENT), (stamp, session), &mut written_keys);
                }
                Operation::Update { set, keys, .. } => {
                    for &key in keys.unwrap_or_default() {
                        self.write((key, set), (stamp, session), &mut written_keys);
                    }
                }
                Operation::DeleteWhere { keys, .. } => {
                    for &key in keys.unwrap_or_default() {
                        self.write((key, ValueId::ABSENT), (stamp, session), &mut written_keys);
                    }
                }
            }
        }
        self.habits.reads_two += usize::from(read_keys.len() > 1);
        self.habits.writes_two += usize::from(written_keys.len() > 1);
        for &key in &read_keys {
            let wrote = self.written_by[key.index()] == stamp;
            self.uses[key.index()].note(true, wrote, !written_keys.is_empty());
        }
        for &key in &written_keys {
            self.uses[key.index()].note(false, true, true);
        }
        if transaction.is_committed() {
            self.left.append(&mut self.own);
            self.habits.two_in_a_session |= !self.of_session.insert(session);
        }
    }

    fn read(
        &mut self,
        (key, value): (KeyId, ValueId),
        (stamp, session): (u32, u32),
        read_keys: &mut Vec<KeyId>,
    ) {
        let place = key.index();
        self.uses[place].touch(session);
        if self.read_by[place] != stamp && self.written_by[place] != stamp {
            self.read_by[place] = stamp;
            read_keys.push(key);
        }
        if value.is_known() {
            self.coverage.reads += 1;
            self.note_read(key, value, self.written_by[place] == stamp);
        }
    }

    fn write(
        &mut self,
        (key, value): (KeyId, ValueId),
        (stamp, session): (u32, u32),
        written_keys: &mut Vec<KeyId>,
    ) {
        let place = key.index();
        self.uses[place].touch(session);
        if self.written_by[place] == stamp {
            self.habits.overwrites_itself = true;
            self.own.retain(|&(other, _)| other != key);
        } else {
            self.written_by[place] = stamp;
            written_keys.push(key);
        }
        self.own.push((key, value));
    }

    /// A read of an own write tells nothing of others.
    fn note_read(&mut self, key: KeyId, value: ValueId, own: bool) {
        if let ValueRef::List(elements) = self.history.values().get(value) {
            let noted = self.list_lens.entry(key).or_default();
            // Lists of one key begin alike, or the history is violated.
            let new = elements.get(*noted..).unwrap_or_default();
            self.shown.extend(new.iter().map(|&element| (key, element)));
            *noted = elements.len().max(*noted);
            // It may also have been written as a whole.
            if !own {
                self.shown.push((key, value));
            }
        } else if !own {
            self.read_values.push((key, value));
        }
    }

    fn finish(mut self) -> Coverage {
        let mut coverage = std::mem::take(&mut self.coverage);
        coverage.writes = self.left.len();
        coverage.keys = self.uses.iter().filter(|it| it.is_used()).count();
        coverage.unshared = self.uses.iter().filter(|it| it.is_used() && !it.is_shared).count();
        (coverage.unread, coverage.ambiguous) = self.compare();
        coverage.blind_spots = self.habits.blind_spots(self.uses.iter());
        coverage
    }

    /// How many versions nobody saw, and how many reads fit several: what was written to a key and what was seen of it, side by
    /// side.
    fn compare(&self) -> (usize, usize) {
        let keys = self.history.keys();
        let of_all = |pairs| ByKey::new(pairs, keys.len());
        let (left, read, shown) = (of_all(&self.left), of_all(&self.read_values), of_all(&self.shown));
        let (mut unread, mut ambiguous) = (0, 0);
        for key in keys.ids() {
            let (mut left, read, shown) = (left.of(key), read.of(key), shown.of(key));
            let initial = self.history.initial_value(key);
            while let Some(&value) = left.first() {
                let count = leading(left, value);
                left = &left[count..];
                let reads = leading(from(read, value), value);
                if reads + leading(from(shown, value), value) == 0 {
                    unread += count;
                }
                if count > 1 || value == initial {
                    ambiguous += reads;
                }
            }
        }
        (unread, ambiguous)
    }
}

/// Values in the order of keys, those of a key ascending.
struct ByKey {
    values: Vec<ValueId>,
    /// Where those of each key end.
    ends: Vec<usize>,
}

impl ByKey {
    fn new(pairs: &[(KeyId, ValueId)], keys: usize) -> Self {
        let mut ends = vec![0; keys + 1];
        pairs.iter().for_each(|(key, _)| ends[key.index() + 1] += 1);
        (0..keys).for_each(|key| ends[key + 1] += ends[key]);
        // While they are filled in, the end of the key before moves to that of the key.
        let mut values = vec![ValueId::UNKNOWN; pairs.len()];
        for &(key, value) in pairs {
            values[ends[key.index()]] = value;
            ends[key.index()] += 1;
        }
        ends.pop();
        let mut start = 0;
        for &end in &ends {
            values[start..end].sort_unstable();
            start = end;
        }
        Self { values, ends }
    }

    fn of(&self, key: KeyId) -> &[ValueId] {
        let start = key.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.values[start..self.ends[key.index()]]
    }
}

/// How many values of an ascending list are the given one, which none of them is less than.
fn leading(values: &[ValueId], value: ValueId) -> usize {
    values.iter().take_while(|&&other| other == value).count()
}

/// The values of an ascending list from the given one.
fn from(values: &[ValueId], value: ValueId) -> &[ValueId] {
    &values[values.partition_point(|&other| other < value)..]
}

fn is_read(operation: &Operation<'_>) -> bool {
    matches!(
        operation,
        Operation::Read { .. } | Operation::Scan { .. } | Operation::Iterate { .. } | Operation::Query { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    fn of(text: &str) -> Coverage {
        coverage(&notation::parse(text).expect("the notation is right"))
    }

    #[test]
    fn counts_what_nobody_looked_at() {
        let it = of("a: w(x,1) w(y,1) | w(z,9)\nb: r(x,1) r(y,_)\n");
        assert_eq!((it.writes, it.unread), (3, 2), "y = 1 and z = 9");
        assert_eq!((it.keys, it.unshared), (3, 1), "z");
        assert_eq!((it.reads, it.ambiguous), (2, 0));
        assert_eq!(of("a: w(x,1)\nb: w(x,1)\nc: r(x,1)\n").ambiguous, 1);
        let lists = of("a: a(x,1) | a(x,2)\nb: a(x,3)\nc: r(x,[1 2]) | r(x,[1])\n");
        assert_eq!((lists.writes, lists.unread), (3, 1));
        let whole = of("a: w(x,[1 2]) | w(y,[1 2])\nb: r(x,[1 2])\n");
        assert_eq!((whole.writes, whole.unread), (2, 1), "y");
    }

    /// What a transaction reads of itself shows nothing of the database; what it reads of the one before it does.
    #[test]
    fn own_reads_do_not_count_and_earlier_ones_do() {
        assert_eq!(of("a: w(x,1) r(x,1)\n").unread, 1);
        assert_eq!(of("a: w(x,1) | r(x,1)\n").unread, 0);
        assert_eq!(of("a: w(x,1) | w(y,1) r(x,1)\n").unread, 1);
        // What may not have taken effect is nobody's.
        let unknown = of("a: w(x,1)?\nb: w(y,1)\n");
        assert_eq!((unknown.writes, unknown.unread), (1, 1));
    }

    #[test]
    fn counts_what_ranges_and_predicates_showed() {
        let it =
            of("a: w(x,1) w(y,1)\nb: scan(x..z)=[x:1 y:1] | u(value=1 -> 9)=1[x]\nc: q(value=9)=[x:9]\n");
        assert_eq!((it.scans, it.reads), (2, 3), "two scans, three rows");
        assert_eq!((it.writes, it.unread), (3, 0), "x = 1, y = 1 and x = 9 were all seen");
        assert_eq!((it.keys, it.unshared), (2, 0));
    }

    #[test]
    fn names_what_it_could_not_have_shown() {
        let blind = |text: &str| -> Vec<&str> { of(text).blind_spots.iter().map(|it| it.anomaly).collect() };
        let skew = blind("a: r(x,_) w(y,1)\nb: r(y,_) w(x,1)\n");
        assert!(
            !skew.contains(&"G2-item") && skew.contains(&"G1a") && skew.contains(&"lost-update"),
            "{skew:?}"
        );
        let lost = blind("a: r(x,_) w(x,1) | r(x,1)\nb: r(x,_) w(x,2) !\nc: r(x,1) w(x,3)\n");
        assert!(!lost.contains(&"lost-update") && !lost.contains(&"G1a"), "{lost:?}");
        assert!(lost.contains(&"G2-item") && !lost.contains(&"…-process"), "{lost:?}");
    }
}
