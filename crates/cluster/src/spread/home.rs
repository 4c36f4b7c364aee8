//! The home of some keys: who wrote what each read of them saw.
//!
//! **Steps.** (1) digests come in any order; keys and values that are no small integers get numbers; (2) when all have come, and it is
//! known where each part begins, writes are put together key by key, in the order of the history, and so are reads; (3) every read
//! is looked up among the writes of its key: exactly one writer but itself, or the initial value and none, is its
//! source; (4) sources go back to whoever read the part, reads and writers stay as [`Lanes`].
//!
//! **Cost.** O(operations), and a sort of the writes of a key where its values do not ascend.

use super::digest::{Deed, Digest};
use super::graph::Layout;
use super::lanes::{Lanes, Seen};
use super::{DOUBTFUL, NONE, Open};
use history::ValueId;
use isolation::gallop;
use replay::online::Datum;
use replay::shards::{Label, Literal, Numbers};
use rustc_hash::FxHashMap;

/// The home of some keys.
#[derive(Debug, Default)]
pub struct Home {
    numbers: Numbers,
    initial: Vec<u32>,
    values: Values,
    came: Vec<Came>,
    reads: Vec<Deed>,
    earlier: Vec<u32>,
    writes: Vec<Deed>,
    open: Option<Open>,
}

/// A digest, by where its reads and writes begin.
#[derive(Clone, Copy, Debug)]
struct Came {
    order: u64,
    from: u32,
    reads: (u32, u32),
    writes: (u32, u32),
}

/// Numbers of values that are no small integers.
#[derive(Debug, Default)]
struct Values {
    by_hash: FxHashMap<u64, Vec<(Datum, u32)>>,
    count: u32,
}

impl Values {
    fn number(&mut self, datum: Datum) -> u32 {
        if datum == Datum::Absent {
            return ValueId::ABSENT.0;
        }
        let same = self.by_hash.entry(datum.hash()).or_default();
        if let Some((_, number)) = same.iter().find(|(other, _)| *other == datum) {
            return *number;
        }
        self.count += 1;
        same.push((datum, self.count));
        self.count
    }
}

/// The sources of the reads of a part that live here, in their order.
#[derive(Debug)]
pub struct Replies {
    /// Who read the part.
    pub to: u32,
    /// The place of the part in the history.
    pub order: u64,
    /// The sources.
    pub sources: Vec<u32>,
}

/// About how many reads lanes of several keys have together.
const LANES_READS: usize = 1 << 16;

impl Home {
    /// Takes a digest.
    pub fn receive(&mut self, digest: Digest) {
        let keys: Vec<u32> = digest.keys.iter().map(|label| self.number(label)).collect();
        let literals: Vec<u32> =
            digest.literals.iter().map(|literal| self.values.number(Literal::datum(literal))).collect();
        let number = |value: u32| match ValueId(value).as_inline() {
            Some(_) => value,
            None => literals[value as usize],
        };
        for &(key, value) in &digest.initial {
            let initial = &mut self.initial[keys[key as usize] as usize];
            // Which one counts is not for us to say.
            if *initial != ValueId::UNKNOWN.0 && *initial != number(value) {
                self.open = Some(Open::Initial);
            }
            *initial = number(value);
        }
        let deed =
            |deed: &Deed| Deed { txn: deed.txn, key: keys[deed.key as usize], value: number(deed.value) };
        let (reads, writes) = (self.reads.len() as u32, self.writes.len() as u32);
        self.reads.extend(digest.reads.iter().map(deed));
        self.writes.extend(digest.writes.iter().map(deed));
        self.earlier.extend_from_slice(&digest.earlier);
        if self.reads.len().max(self.writes.len()) >= NONE as usize {
            self.open = Some(Open::Size);
        }
        self.came.push(Came {
            order: digest.order,
            from: digest.from,
            reads: (reads, self.reads.len() as u32),
            writes: (writes, self.writes.len() as u32),
        });
    }

    fn number(&mut self, label: &Label) -> u32 {
        if let Some(number) = self.numbers.get(label) {
            return number;
        }
        let number = self.initial.len() as u32;
        self.numbers.insert(label, number);
        self.initial.push(ValueId::UNKNOWN.0);
        number
    }

    /// How many keys live here.
    pub fn keys(&self) -> usize {
        self.initial.len()
    }

    /// Looks every read up, when everything has come.
    pub fn join(mut self, layout: &Layout) -> Result<(Vec<Replies>, Vec<Lanes>), Open> {
        if let Some(open) = self.open {
            return Err(open);
        }
        // 1. Names and values are needed no more.
        self.numbers = Numbers::default();
        self.values = Values::default();
        self.came.sort_unstable_by_key(|came| came.order);
        // 2. Writes and reads by key, each in the order of the history.
        let writes = std::mem::take(&mut self.writes);
        let (write_start, written) = by_key(
            self.initial.len(),
            &self.came,
            &writes,
            |came| came.writes,
            |base, at| {
                let Deed { txn, value, .. } = writes[at as usize];
                (value, base + txn)
            },
            layout,
        );
        drop(writes);
        let (read_start, places) =
            by_key(self.initial.len(), &self.came, &self.reads, |came| came.reads, |_, at| at, layout);
        for came in &self.came {
            let base = layout.base(came.order);
            self.reads[came.reads.0 as usize..came.reads.1 as usize].iter_mut().for_each(|it| it.txn += base);
        }
        // 3. Sources, where values were.
        let mut all = Vec::new();
        let mut lanes = Lanes::default();
        let mut sorted = Vec::new();
        for key in 0..self.initial.len() {
            let of_key = &written[write_start[key] as usize..write_start[key + 1] as usize];
            let ascends = of_key.windows(2).all(|pair| pair[0].0 < pair[1].0);
            if !ascends {
                sorted.clear();
                sorted.extend_from_slice(of_key);
                sorted.sort_unstable();
            }
            let initial = match self.initial[key] {
                value if value == ValueId::UNKNOWN.0 => ValueId::ABSENT.0,
                value => value,
            };
            let mut look = Look { versions: if ascends { of_key } else { &sorted }, initial, hint: 0 };
            for &place in &places[read_start[key] as usize..read_start[key + 1] as usize] {
                let read = &mut self.reads[place as usize];
                read.value = look.up(read.value, read.txn);
                let seen = Seen { txn: read.txn, source: read.value };
                lanes.read(seen, self.earlier.get(place as usize).copied());
            }
            lanes.end_key(of_key.iter().map(|&(_, txn)| txn));
            if lanes.len() >= LANES_READS {
                all.push(std::mem::take(&mut lanes));
            }
        }
        all.push(lanes);
        drop((places, written));
        // 4. Sources in the order in which reads came.
        let reply = |came: &Came| Replies {
            to: came.from,
            order: came.order,
            sources: (self.reads[came.reads.0 as usize..came.reads.1 as usize].iter())
                .map(|read| read.value)
                .collect(),
        };
        Ok((self.came.iter().map(reply).collect(), all))
    }
}

/// Deeds by key, each in the order of the history: where those of a key begin, and what is taken of each.
fn by_key<T: Copy + Default>(
    keys: usize,
    came: &[Came],
    deeds: &[Deed],
    range: impl Fn(&Came) -> (u32, u32),
    take: impl Fn(u32, u32) -> T,
    layout: &Layout,
) -> (Vec<u32>, Vec<T>) {
    let mut start = vec![0u32; keys + 1];
    deeds.iter().for_each(|deed| start[deed.key as usize + 1] += 1);
    for key in 1..start.len() {
        start[key] += start[key - 1];
    }
    let mut next = start.clone();
    let mut taken = vec![T::default(); deeds.len()];
    for came in came {
        let base = layout.base(came.order);
        let (from, to) = range(came);
        for at in from..to {
            let place = &mut next[deeds[at as usize].key as usize];
            taken[*place as usize] = take(base, at);
            *place += 1;
        }
    }
    (start, taken)
}

/// The versions of a key by value.
struct Look<'v> {
    versions: &'v [(u32, u32)],
    initial: u32,
    /// Where the last one was found: the next one is mostly near.
    hint: usize,
}

impl Look<'_> {
    /// The source of a value that a transaction saw.
    fn up(&mut self, value: u32, by: u32) -> u32 {
        let first = gallop(self.versions, self.hint, |version| version.0 < value);
        self.hint = first;
        let with_value = self.versions[first..].iter().take_while(|version| version.0 == value);
        let mut others = with_value.map(|version| version.1).filter(|&txn| txn != by);
        let is_initial = self.initial == value;
        match (others.next(), others.next()) {
            (None, _) if is_initial => NONE,
            (Some(txn), None) if !is_initial => txn,
            _ => DOUBTFUL,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_the_only_other_writer() {
        let versions = [(1, 10), (3, 11), (3, 12), (5, 13), (7, 14), (9, 15)];
        for hint in 0..=versions.len() {
            let source = |value, by| Look { versions: &versions, initial: 9, hint }.up(value, by);
            assert_eq!([source(1, 20), source(5, 20), source(7, 20)], [10, 13, 14]);
            assert_eq!(source(3, 20), DOUBTFUL, "two wrote it");
            assert_eq!(source(3, 11), 12, "it did not see itself");
            assert_eq!(source(5, 13), DOUBTFUL, "nobody else wrote it");
            assert_eq!(source(4, 20), DOUBTFUL, "nobody wrote it");
            assert_eq!(source(9, 20), DOUBTFUL, "it is the initial value, too");
            assert_eq!(source(9, 15), NONE);
        }
    }
}
