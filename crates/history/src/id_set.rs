//! The ids of a history that is too large to be held, so that one that comes twice is noticed.
//!
//! What: a set of names, as [`NameRef`] tells them apart: the integer 1 is not the string "1".
//! Invariant: a name that was added is never denied. One that was not is never affirmed, though it may be suspected.
//! Steps: integers, and strings that end in a number (`t7`: the family `t` and 7), are kept as intervals, because ids are
//! mostly counted. Names of other kinds, and numbers so scattered that there would be too many intervals, are *odd*: of
//! them a hash of 64 bits is kept, and whoever sees the same hash twice looks into the file again; or, where that
//! cannot be done, they are kept whole ([`Odd`]).
//! Cost: some bytes a counter; 8 to 18 bytes an odd name, or its text. Adding a table of names that count up by one costs
//! a comparison a name.

use crate::{Id, Name, NameRef, Names};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// What a set says of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It was not added.
    No,
    /// It, or another name with the same hash, was added.
    Maybe,
    /// It was added.
    Yes,
}

/// How odd names are kept.
#[derive(Clone, Debug)]
enum Odd {
    /// As hashes.
    Hashed(HashSet<u64, BuildHasherDefault<Itself>>),
    /// Whole.
    Whole(FxHashSet<Name>),
    /// Whole, but only those that somebody asks about.
    Asked { about: FxHashSet<Name>, seen: FxHashSet<Name> },
}

/// A set of ids.
#[derive(Clone, Debug)]
pub struct IdSet {
    integers: Intervals,
    /// Strings that end in a number, by what comes before it.
    prefixes: FxHashMap<Box<str>, u32>,
    families: Vec<Intervals>,
    /// The prefix and number of the last family that was looked at.
    last: Option<(Box<str>, u32)>,
    odd: Odd,
    /// How many intervals there may still be.
    room: usize,
    /// Whether something is odd only because there was no room.
    has_overflowed: bool,
    has_defaults: bool,
}

/// How many intervals there may be in all, of one counter, and how many families.
const INTERVALS_MAX: usize = 1 << 17;
const OF_FAMILY_MAX: usize = 1 << 12;
const FAMILIES_MAX: usize = 1 << 12;

impl IdSet {
    /// An empty set that keeps odd names as hashes.
    pub fn hashed() -> Self {
        Self::new(Odd::Hashed(HashSet::default()))
    }

    /// An empty set that keeps odd names whole, and suspects nothing.
    pub fn whole() -> Self {
        Self::new(Odd::Whole(FxHashSet::default()))
    }

    /// An empty set that keeps no other odd names than these, and suspects nothing. For others it must not be asked.
    pub(crate) fn about(names: impl IntoIterator<Item = Name>) -> Self {
        Self::new(Odd::Asked { about: names.into_iter().collect(), seen: FxHashSet::default() })
    }

    fn new(odd: Odd) -> Self {
        Self {
            integers: Intervals::default(),
            prefixes: FxHashMap::default(),
            families: Vec::new(),
            last: None,
            odd,
            room: INTERVALS_MAX,
            has_overflowed: false,
            has_defaults: false,
        }
    }

    /// Whether a name was added.
    pub fn knows(&self, name: NameRef<'_>) -> Known {
        if let Some((prefix, number)) = counter_of(name) {
            if self.counter(prefix).is_some_and(|intervals| intervals.contains(number)) {
                return Known::Yes;
            }
            if !self.has_overflowed {
                return Known::No;
            }
        }
        match &self.odd {
            Odd::Hashed(hashes) if hashes.contains(&hash_of(name)) => Known::Maybe,
            Odd::Hashed(_) => Known::No,
            Odd::Whole(names) | Odd::Asked { seen: names, .. } => match names.contains(&name.to_owned()) {
                true => Known::Yes,
                false => Known::No,
            },
        }
    }

    /// Adds a name.
    pub fn add(&mut self, name: NameRef<'_>) {
        match counter_of(name) {
            Some((prefix, number)) => self.add_run(prefix, number, number),
            None => self.add_odd(name),
        }
    }

    /// Adds a table of names.
    pub fn add_all<I: Id>(&mut self, names: &Names<I>) {
        each_run(names, |run| match run {
            Run::Counted(prefix, first, last) => self.add_run(prefix, first, last),
            Run::Odd(name) => self.add_odd(name),
        });
    }

    /// Names of a table that were added before, or are suspected to have been: each is told to `found`.
    pub fn known_of<I: Id>(&self, names: &Names<I>, mut found: impl FnMut(NameRef<'_>, Known)) {
        if self.is_empty() {
            return;
        }
        let mut ask = |name: NameRef<'_>| match self.knows(name) {
            Known::No => {}
            known => found(name, known),
        };
        each_run(names, |run| match run {
            Run::Counted(prefix, first, last) if self.is_apart(prefix, first, last) => {}
            Run::Counted(prefix, first, last) => {
                (first..=last).for_each(|number| with_name(prefix, number, &mut ask));
            }
            Run::Odd(name) => ask(name),
        });
    }

    /// Adds a table of names; those that were added before, or are suspected to have been, are told to `found`.
    pub fn admit<I: Id>(&mut self, names: &Names<I>, mut found: impl FnMut(NameRef<'_>, Known)) {
        each_run(names, |run| {
            let mut ask = |name: NameRef<'_>| match self.knows(name) {
                Known::No => {}
                known => found(name, known),
            };
            match run {
                Run::Counted(prefix, first, last) => {
                    if !self.is_apart(prefix, first, last) {
                        (first..=last).for_each(|number| with_name(prefix, number, &mut ask));
                    }
                    self.add_run(prefix, first, last);
                }
                Run::Odd(name) => {
                    ask(name);
                    self.add_odd(name);
                }
            }
        });
    }

    /// Whether nothing of these is known or suspected.
    pub(crate) fn are_apart(&self, runs: &Runs) -> bool {
        runs.runs.iter().all(|(prefix, first, last)| self.is_apart(prefix.as_deref(), *first, *last))
    }

    /// Adds names that count up.
    pub(crate) fn add_runs(&mut self, runs: &Runs) {
        runs.runs.iter().for_each(|(prefix, first, last)| self.add_run(prefix.as_deref(), *first, *last));
    }

    /// Whether nothing of a run is known or suspected.
    fn is_apart(&self, prefix: Option<&str>, first: i64, last: i64) -> bool {
        !self.has_overflowed
            && self.counter(prefix).is_none_or(|intervals| intervals.common(first, last).is_none())
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.integers.0.is_empty()
            && self.families.is_empty()
            && match &self.odd {
                Odd::Hashed(hashes) => hashes.is_empty(),
                Odd::Whole(names) | Odd::Asked { seen: names, .. } => names.is_empty(),
            }
    }

    /// Whether a name was added that could be the default name of a transaction, `SESSION:N`.
    pub fn has_defaults(&self) -> bool {
        self.has_defaults
    }

    /// Whether a name that ends in a number, or is one, was kept by its hash.
    pub fn has_overflowed(&self) -> bool {
        self.has_overflowed
    }

    /// The counters: what comes before the number, nothing if the names are integers; and intervals, ascending, with both
    /// ends.
    pub fn counters(&self) -> impl Iterator<Item = (Option<&str>, &[(i64, i64)])> {
        let families = self.prefixes.iter();
        let families = families.map(|(prefix, &at)| (Some(&**prefix), &*self.families[at as usize].0));
        std::iter::once((None, &*self.integers.0)).chain(families)
    }

    /// The hashes of odd names.
    pub fn hashes(&self) -> impl Iterator<Item = u64> {
        let hashes = match &self.odd {
            Odd::Hashed(hashes) => Some(hashes.iter().copied()),
            _ => None,
        };
        hashes.into_iter().flatten()
    }

    fn add_run(&mut self, prefix: Option<&str>, first: i64, last: i64) {
        self.has_defaults |= prefix.is_some_and(|prefix| prefix.ends_with(':'));
        let family = prefix.map(|prefix| self.family_or_new(prefix));
        let intervals = match family {
            None => Some(&mut self.integers),
            Some(family) => family.and_then(|family| self.families.get_mut(family)),
        };
        if let Some(intervals) = intervals {
            let before = intervals.0.len();
            let has_room = before < OF_FAMILY_MAX && self.room > 0;
            if intervals.add(first, last, has_room) {
                self.room = (self.room + before).saturating_sub(intervals.0.len());
                return;
            }
        }
        self.has_overflowed = true;
        for number in first..=last {
            with_name(prefix, number, |name| self.add_odd(name));
        }
    }

    fn add_odd(&mut self, name: NameRef<'_>) {
        match &mut self.odd {
            Odd::Hashed(hashes) => {
                hashes.insert(hash_of(name));
            }
            Odd::Whole(names) => {
                names.insert(name.to_owned());
            }
            Odd::Asked { about, seen } => {
                let name = name.to_owned();
                if about.contains(&name) {
                    seen.insert(name);
                }
            }
        }
    }

    fn counter(&self, prefix: Option<&str>) -> Option<&Intervals> {
        let Some(prefix) = prefix else { return Some(&self.integers) };
        let family = match &self.last {
            Some((last, family)) if **last == *prefix => family,
            _ => self.prefixes.get(prefix)?,
        };
        self.families.get(*family as usize)
    }

    fn family_or_new(&mut self, prefix: &str) -> Option<usize> {
        if let Some((last, family)) = &self.last
            && **last == *prefix
        {
            return Some(*family as usize);
        }
        let family = match self.prefixes.get(prefix) {
            Some(&family) => family,
            None if self.families.len() >= FAMILIES_MAX => return None,
            None => {
                let family = self.families.len() as u32;
                self.prefixes.insert(prefix.into(), family);
                self.families.push(Intervals::default());
                family
            }
        };
        self.last = Some((prefix.into(), family));
        Some(family as usize)
    }
}

/// A table of names that count up, in few words: so the table is walked once, and may be gone when they are added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runs {
    /// What comes before the number, the first number and the last.
    runs: Vec<(Option<Box<str>>, i64, i64)>,
    /// How many names they are.
    pub(crate) names: usize,
}

/// With more runs than this, a table is no shorter in words.
const RUNS_MAX: usize = 64;

impl Runs {
    /// The runs of a table, if its names are counted.
    pub(crate) fn of<I: Id>(names: &Names<I>) -> Option<Self> {
        let mut runs: Vec<(Option<&str>, i64, i64)> = Vec::new();
        for id in names.ids() {
            let (prefix, number) = counter_of(names.get(id))?;
            let is_full = runs.len() == RUNS_MAX;
            match runs.last_mut() {
                Some((of, _, last)) if last.checked_add(1) == Some(number) && *of == prefix => *last = number,
                _ if is_full => return None,
                _ => runs.push((prefix, number, number)),
            }
        }
        let owned = |(prefix, first, last): (Option<&str>, i64, i64)| (prefix.map(Into::into), first, last);
        Some(Self { runs: runs.into_iter().map(owned).collect(), names: names.len() })
    }
}

/// Names of a table that count up, or one that does not.
enum Run<'a> {
    Counted(Option<&'a str>, i64, i64),
    Odd(NameRef<'a>),
}

fn each_run<I: Id>(names: &Names<I>, mut each: impl FnMut(Run<'_>)) {
    let mut open: Option<(Option<&str>, i64, i64)> = None;
    for id in names.ids() {
        let name = names.get(id);
        match (counter_of(name), &mut open) {
            (Some((prefix, number)), Some((of, _, last)))
                if last.checked_add(1) == Some(number) && *of == prefix =>
            {
                *last = number;
            }
            (Some((prefix, number)), open) => {
                if let Some((prefix, first, last)) = open.replace((prefix, number, number)) {
                    each(Run::Counted(prefix, first, last));
                }
            }
            (None, _) => each(Run::Odd(name)),
        }
    }
    if let Some((prefix, first, last)) = open {
        each(Run::Counted(prefix, first, last));
    }
}

/// The hash of a name.
pub fn hash_of(name: NameRef<'_>) -> u64 {
    match name {
        NameRef::Int(number) => xxh3_64_with_seed(&number.to_le_bytes(), 1),
        NameRef::Str(text) => xxh3_64(text.as_bytes()),
    }
}

/// Calls `each` with the name that has this number.
pub fn with_name<T>(prefix: Option<&str>, number: i64, each: impl FnOnce(NameRef<'_>) -> T) -> T {
    match prefix {
        None => each(NameRef::Int(number)),
        Some(prefix) => each(NameRef::Str(&format!("{prefix}{number}"))),
    }
}

/// The most digits that are taken for a number.
const DIGITS_MAX: usize = 18;

/// What counts in a name: nothing before an integer, the prefix before the number at the end of a string. The number
/// begins with no zero that it could do without, so that prefix and number are the name again: `t007` is `t00` and 7.
pub fn counter_of(name: NameRef<'_>) -> Option<(Option<&str>, i64)> {
    let text = match name {
        NameRef::Int(number) => return Some((None, number)),
        NameRef::Str(text) => text,
    };
    let bytes = text.as_bytes();
    let longest = &bytes[bytes.len().saturating_sub(DIGITS_MAX)..];
    let digits = longest.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = &longest[longest.len() - digits..];
    let zeros = digits[..digits.len().checked_sub(1)?].iter().take_while(|&&byte| byte == b'0').count();
    let digits = &digits[zeros..];
    let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
    Some((Some(&text[..text.len() - digits.len()]), number))
}

/// Numbers as ascending intervals, with both ends; none touches the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    pub(crate) fn contains(&self, number: i64) -> bool {
        self.common(number, number).is_some()
    }

    /// The smallest number that is here and in `first..=last`.
    fn common(&self, first: i64, last: i64) -> Option<i64> {
        // Mostly what is asked about comes after everything.
        if self.0.last().is_none_or(|&(_, end)| end < first) {
            return None;
        }
        let at = self.0.partition_point(|&(_, end)| end < first);
        let &(start, _) = self.0.get(at)?;
        (start <= last).then_some(start.max(first))
    }

    /// Adds `first..=last`; false, and nothing added, if that would be an interval more and there is no room.
    pub(crate) fn add(&mut self, first: i64, last: i64, has_room: bool) -> bool {
        if let Some((_, end)) = self.0.last_mut()
            && end.checked_add(1) == Some(first)
        {
            *end = last;
            return true;
        }
        let (before, after) = (first.saturating_sub(1), last.saturating_add(1));
        let from = self.0.partition_point(|&(_, end)| end < before);
        let to = from + self.0[from..].partition_point(|&(start, _)| start <= after);
        if from == to {
            if has_room {
                self.0.insert(from, (first, last));
            }
            return has_room;
        }
        let joined = (first.min(self.0[from].0), last.max(self.0[to - 1].1));
        self.0[from] = joined;
        self.0.drain(from + 1..to);
        true
    }
}

/// A hash of what is one already.
#[derive(Clone, Copy, Debug, Default)]
struct Itself(u64);

impl Hasher for Itself {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Only whole words are hashed here.
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::{IdSet, Intervals, Known, counter_of, with_name};
    use crate::names::NameIndex;
    use crate::{Name, NameRef, TxnId};
    use proptest::prelude::*;
    use proptest::test_runner::FileFailurePersistence;
    use std::collections::HashSet;

    #[test]
    fn a_number_at_the_end_counts() {
        let check = |text: &str, expected: Option<(&str, i64)>| {
            let found = counter_of(NameRef::Str(text));
            assert_eq!(found, expected.map(|(prefix, number)| (Some(prefix), number)), "{text}");
        };
        check("t7", Some(("t", 7)));
        check("7", Some(("", 7)));
        check("t007", Some(("t00", 7)));
        check("t0", Some(("t", 0)));
        check("t00", Some(("t0", 0)));
        check("3:12", Some(("3:", 12)));
        check("x-1234567890123456789012", Some(("x-1234", 567_890_123_456_789_012)));
        check("日7", Some(("日", 7)));
        check("seven", None);
        check("", None);
        assert_eq!(counter_of(NameRef::Int(-3)), Some((None, -3)));
    }

    fn name() -> impl Strategy<Value = Name> {
        prop_oneof![
            (0i64..60).prop_map(Name::Int),
            prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-1i64)].prop_map(Name::Int),
            (0..4usize, 0i64..60)
                .prop_map(|(prefix, number)| Name::Str(format!("{}{number}", ["", "t", "t0", "1:"][prefix]))),
            "[a-c]{1,3}".prop_map(Name::Str),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/id_set.txt"))), ..ProptestConfig::default() })]

        /// As a set of the names themselves, however the names come in tables.
        #[test]
        fn it_is_a_set(tables in prop::collection::vec(prop::collection::vec(name(), 0..40), 1..8), room in 0usize..12) {
            for mut set in [IdSet::hashed(), IdSet::whole()] {
                set.room = room;
                let mut naive: HashSet<Name> = HashSet::new();
                for table in &tables {
                    let mut index = NameIndex::<TxnId>::default();
                    table.iter().for_each(|name| {
                        index.intern(name.as_ref());
                    });
                    let mut found = HashSet::new();
                    set.known_of(&index.names, |name, _| {
                        found.insert(name.to_owned());
                    });
                    let expected: HashSet<Name> = table.iter().filter(|name| naive.contains(name)).cloned().collect();
                    prop_assert_eq!(found, expected);
                    for name in table {
                        prop_assert_eq!(set.knows(name.as_ref()) != Known::No, naive.contains(name));
                    }
                    set.add_all(&index.names);
                    naive.extend(table.iter().cloned());
                }
                // What others compare is all of it, and nothing twice that was not added twice.
                let mut told: usize = set.hashes().count();
                for (prefix, intervals) in set.counters() {
                    for &(first, last) in intervals {
                        for number in first..=last {
                            with_name(prefix, number, |name| assert!(naive.contains(&name.to_owned())));
                            told += 1;
                        }
                    }
                }
                if let super::Odd::Hashed(_) = set.odd {
                    let added = tables.iter().flatten().count();
                    prop_assert!(told == naive.len() || told > naive.len() && added > naive.len());
                }
            }
        }

        #[test]
        fn intervals_are_a_set(numbers in prop::collection::vec((0i64..80, 0i64..5), 0..60)) {
            let mut intervals = Intervals::default();
            let mut naive = HashSet::new();
            for (first, more) in numbers {
                prop_assert!(intervals.add(first, first + more, true));
                naive.extend(first..=first + more);
                prop_assert!((0..90).all(|number| intervals.contains(number) == naive.contains(&number)));
                prop_assert!(intervals.0.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0));
            }
        }
    }
}
