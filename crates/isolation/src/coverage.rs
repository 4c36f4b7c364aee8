//! How much a history really tested: so that "accepted" is not mistaken for "tested".
//!
//! *What*: counts what constrains nothing — writes nobody read, keys that only one session used, reads that several
//! writes explain — and names the anomalies that the workload could not have shown whatever the database did, because a
//! shape they need is missing. The conditions are necessary ones: an anomaly that is not named could have been shown.
//!
//! *Cost*: one pass over the operations, a sort of what was left at each key, and for every read a look among that.

use crate::budget::{Budget, Meter};
use crate::gallop::gallop;
use crate::undecided::Undecided;
use history::{History, Id, KeyId, Point, PointKind, Primitive, Status, ValueId, ValueRef};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

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
    let unlimited = Budget::unlimited();
    coverage_within(history, &unlimited).unwrap_or_default()
}

/// As [`coverage`], if there is enough time and memory for it.
pub fn coverage_within(history: &History, budget: &Budget) -> Result<Coverage, Undecided> {
    let mut walk = Walk::new(history);
    let meter = budget.meter();
    for transaction in history.transactions() {
        walk.transaction(transaction, &meter)?;
    }
    budget.check()?;
    Ok(walk.finish())
}

/// What transactions did to a key so far.
#[derive(Clone, Copy, Default)]
pub struct Use {
    /// The session that used it first, plus one.
    session: u32,
    /// Whether several sessions used it.
    pub is_shared: bool,
    is_written: bool,
    /// How many transactions both read and wrote it.
    read_and_written: u32,
    /// Whether some transaction that wrote something else read it.
    read_for_others: bool,
}

impl Use {
    /// A session, counted from one, uses the key.
    #[inline]
    pub fn touch(&mut self, session: u32) {
        self.is_shared |= self.session != 0 && self.session != session;
        self.session = if self.session == 0 { session } else { self.session };
    }

    /// A transaction read or wrote the key, and wrote something.
    #[inline]
    pub fn note(&mut self, read: bool, wrote: bool, wrote_something: bool) {
        self.read_and_written += u32::from(read && wrote);
        self.read_for_others |= read && !wrote && wrote_something;
        self.is_written |= wrote;
    }

    /// Whether any session used it.
    pub fn is_used(&self) -> bool {
        self.session != 0
    }
}

/// What transactions of a history do, beside what they do to single keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Whether an aborted one wrote.
    pub aborted_writes: bool,
    /// Whether one wrote a key twice.
    pub overwrites_itself: bool,
    /// How many read two keys or more.
    pub reads_two: usize,
    /// How many wrote two keys or more.
    pub writes_two: usize,
    /// Whether one read by predicate.
    pub predicates: bool,
    /// Whether a session had two of them.
    pub two_in_a_session: bool,
    /// Whether clients recorded clocks.
    pub clocks: bool,
}

impl Habits {
    /// The anomalies that cannot be shown.
    pub fn blind_spots<'u>(&self, uses: impl Iterator<Item = &'u Use> + Clone) -> Vec<BlindSpot> {
        let any = |holds: &dyn Fn(&Use) -> bool| uses.clone().any(holds);
        let conditions = [
            ("G1a", self.aborted_writes, "no aborted transaction wrote"),
            ("G1b", self.overwrites_itself, "no transaction wrote a key twice"),
            (
                "lost-update",
                any(&|it| it.read_and_written > 1),
                "no two transactions read and wrote the same key",
            ),
            (
                "G-single",
                self.reads_two > 0 && self.writes_two > 0 || any(&|it| it.read_and_written > 1),
                "no transaction read two keys while another wrote two",
            ),
            ("G-nonadjacent", self.reads_two > 1, "no two transactions read several keys"),
            (
                "G2-item",
                any(&|it| it.read_for_others && it.is_written),
                "no transaction read a key that another wrote and wrote a different key",
            ),
            ("G2", self.predicates, "no range or predicate reads"),
            ("…-process", self.two_in_a_session, "each session ran one transaction"),
            ("…-realtime", self.clocks, "no client clocks recorded"),
        ];
        let missing = conditions.into_iter().filter(|&(_, could_be_shown, _)| !could_be_shown);
        missing.map(|(anomaly, _, lacks)| BlindSpot { anomaly, lacks }).collect()
    }
}

struct Walk<'h> {
    history: &'h History,
    keys: Vec<Touched>,
    /// The keys that the transaction at hand read from outside, and those it wrote.
    read_keys: Vec<KeyId>,
    written_keys: Vec<KeyId>,
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

/// A key, and the last transactions that read and wrote it, plus one.
#[derive(Clone, Copy, Default)]
struct Touched {
    of_all: Use,
    read_by: u32,
    written_by: u32,
}

impl<'h> Walk<'h> {
    fn new(history: &'h History) -> Self {
        Self {
            history,
            keys: vec![Touched::default(); history.keys().len()],
            read_keys: Vec::new(),
            written_keys: Vec::new(),
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

    fn transaction(
        &mut self,
        transaction: history::Transaction<'_>,
        meter: &Meter<'_>,
    ) -> Result<(), Undecided> {
        meter.step()?;
        if transaction.status() == Status::Aborted {
            self.habits.aborted_writes |= transaction.primitives().any(|(_, it)| !it.is_read());
            return Ok(());
        }
        let stamp = transaction.id().0 + 1;
        let session = transaction.session().0 + 1;
        self.read_keys.clear();
        self.written_keys.clear();
        self.own.clear();
        for op in transaction.op_ids() {
            // Where a key is written again, all own writes are gone through.
            meter.steps(1 + if self.habits.overwrites_itself { self.own.len() / 64 } else { 0 })?;
            match self.history.point(op) {
                Some(Point { kind: PointKind::Read, key, value }) => {
                    self.read((key, value), (stamp, session))
                }
                Some(Point { key, value, .. }) => self.write((key, value), (stamp, session)),
                None => self.many(self.history.primitive(op), (stamp, session)),
            }
        }
        self.habits.reads_two += usize::from(self.read_keys.len() > 1);
        self.habits.writes_two += usize::from(self.written_keys.len() > 1);
        for key in &self.read_keys {
            let Touched { of_all, written_by, .. } = &mut self.keys[key.index()];
            of_all.note(true, *written_by == stamp, !self.written_keys.is_empty());
        }
        for key in &self.written_keys {
            self.keys[key.index()].of_all.note(false, true, true);
        }
        if transaction.is_committed() {
            self.left.append(&mut self.own);
            self.habits.two_in_a_session |= !self.of_session.insert(session);
        }
        Ok(())
    }

    /// An operation that is more than a point.
    fn many(&mut self, operation: Primitive<'_>, by: (u32, u32)) {
        self.habits.predicates |= operation.key().is_none();
        self.coverage.scans += usize::from(matches!(operation, Primitive::Show { rows: Some(_), .. }));
        operation.rows().iter().for_each(|row| self.read((row.key, row.value), by));
        if let Some(value) = operation.written_value() {
            operation.written_keys().for_each(|key| self.write((key, value), by));
        }
    }

    fn read(&mut self, (key, value): (KeyId, ValueId), (stamp, session): (u32, u32)) {
        let it = &mut self.keys[key.index()];
        it.of_all.touch(session);
        let own = it.written_by == stamp;
        if it.read_by != stamp && !own {
            it.read_by = stamp;
            self.read_keys.push(key);
        }
        if value.is_known() {
            self.coverage.reads += 1;
            self.note_read(key, value, own);
        }
    }

    fn write(&mut self, (key, value): (KeyId, ValueId), (stamp, session): (u32, u32)) {
        let it = &mut self.keys[key.index()];
        it.of_all.touch(session);
        if it.written_by == stamp {
            self.habits.overwrites_itself = true;
            self.own.retain(|&(other, _)| other != key);
        } else {
            it.written_by = stamp;
            self.written_keys.push(key);
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
        let uses = self.keys.iter().map(|it| &it.of_all);
        coverage.writes = self.left.len();
        coverage.keys = uses.clone().filter(|it| it.is_used()).count();
        coverage.unshared = uses.clone().filter(|it| it.is_used() && !it.is_shared).count();
        coverage.blind_spots = self.habits.blind_spots(uses);
        (coverage.unread, coverage.ambiguous) = self.compare();
        coverage
    }

    /// How many versions nobody saw, and how many reads fit several: what was seen of a key is looked for in what was left there.
    fn compare(&self) -> (usize, usize) {
        let keys = self.history.keys();
        let of_all = |pairs| ByKey::new(pairs, keys.len());
        let (mut left, read, shown) = (of_all(&self.left), of_all(&self.read_values), of_all(&self.shown));
        let (mut unread, mut ambiguous) = (0, 0);
        // Of several versions that are alike, the first.
        let mut is_seen = Vec::new();
        for key in keys.ids() {
            let initial = self.history.initial_value(key);
            let left = left.sorted(key);
            is_seen.clear();
            is_seen.resize(left.len(), false);
            let mut place = 0;
            let mut see = |value: ValueId| {
                place = gallop(left, place, |&other| other < value);
                let is_left = left.get(place) == Some(&value);
                if is_left {
                    is_seen[place] = true;
                }
                is_left && (value == initial || left.get(place + 1) == Some(&value))
            };
            ambiguous += read.of(key).iter().filter(|&&value| see(value)).count();
            shown.of(key).iter().for_each(|&value| {
                see(value);
            });
            let mut is_seen = is_seen.as_slice();
            for alike in left.chunk_by(|one, other| one == other) {
                unread += if is_seen[0] { 0 } else { alike.len() };
                is_seen = &is_seen[alike.len()..];
            }
        }
        (unread, ambiguous)
    }
}

/// Values in the order of keys.
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
        Self { values, ends }
    }

    fn range(&self, key: KeyId) -> Range<usize> {
        key.index().checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[key.index()]
    }

    fn of(&self, key: KeyId) -> &[ValueId] {
        &self.values[self.range(key)]
    }

    fn sorted(&mut self, key: KeyId) -> &[ValueId] {
        let range = self.range(key);
        self.values[range.clone()].sort_unstable();
        &self.values[range]
    }
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
