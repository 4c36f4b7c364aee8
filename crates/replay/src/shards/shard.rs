//! One shard: the versions of its keys, and digests that wait for their turn.
//!
//! **Invariant.** Everything that committed before `settled` has been replayed, in the order of commits. A digest that
//! comes later with something earlier is noticed ([`Shard::is_disordered`]); what was settled then means nothing.

use super::super::datum::Datum;
use super::super::versions::{Version, Versions};
use super::digest::{Deed, Digest, Entry, NOTHING};
use super::label::{Literal, Numbers};
use super::sessions::Moment;
use super::{Label, Suspects};
use history::{Timestamp, ValueId};
use isolation::{Level, Rule};

/// How many times the longest transaction so far versions are kept back.
const REACH: i64 = 4;

/// Versions are looked through when so many transactions were replayed as there are keys.
const TIDY_EVERY: u64 = 8;

/// A digest of which all but this part is replayed is cut down to it.
const FORGET_ALL_BUT: usize = 8;

const BEGINNING: Timestamp = Timestamp { physical: i64::MIN, logical: 0 };

struct Waiting {
    digest: Digest,
    /// Our number of each of its keys.
    keys: Vec<u32>,
    literals: Vec<Datum>,
    next: usize,
}

impl Waiting {
    /// Gives up what was replayed, if that is nearly all: mostly what remains is the last of a part, which commits when
    /// somebody promised that nothing earlier comes.
    fn forget(&mut self) {
        let Digest { txns, deeds, .. } = &mut self.digest;
        if self.next == 0 || (txns.len() - self.next) * FORGET_ALL_BUT > txns.len() {
            return;
        }
        let gone = txns[self.next].deeds;
        *deeds = deeds[gone as usize..].to_vec();
        *txns = txns[self.next..].to_vec();
        txns.iter_mut().for_each(|txn| txn.deeds -= gone);
        self.next = 0;
    }
}

/// A shard.
pub struct Shard {
    serial: bool,
    numbers: Numbers,
    keys: Vec<Versions<Timestamp>>,
    /// By key.
    suspect: Vec<bool>,
    waiting: Vec<Waiting>,
    settled: i64,
    longest: i64,
    is_disordered: bool,
    replayed: u64,
    /// How many are replayed when versions are looked through again.
    tidy_at: u64,
    turns: Vec<(Timestamp, u32, u32)>,
}

impl Shard {
    /// Nothing has come yet.
    pub fn new(level: Level) -> Self {
        Self {
            serial: level.rule == Rule::Serializable,
            numbers: Numbers::default(),
            keys: Vec::new(),
            suspect: Vec::new(),
            waiting: Vec::new(),
            settled: i64::MIN,
            longest: 0,
            is_disordered: false,
            replayed: 0,
            tidy_at: 0,
            turns: Vec::new(),
        }
    }

    /// Takes a digest.
    pub fn receive(&mut self, mut digest: Digest) {
        let first = digest.txns.first().map(|txn| txn.moment.commit.physical);
        self.is_disordered |= first.is_some_and(|first| first < self.settled);
        let keys: Vec<u32> = digest.keys.iter().map(|label| self.number(label)).collect();
        let literals: Vec<Datum> = digest.literals.iter().map(Literal::datum).collect();
        for &(key, value) in &digest.initial {
            // Only what came before everything can be said of it.
            self.is_disordered |= self.settled != i64::MIN;
            self.keys[keys[key as usize] as usize].newest.value = datum(&literals, value);
        }
        for txn in &digest.txns {
            let Moment { start, commit, .. } = txn.moment;
            self.longest = self.longest.max(commit.physical.saturating_sub(start.physical));
        }
        (digest.keys, digest.literals) = (Vec::new(), Vec::new());
        self.waiting.push(Waiting { digest, keys, literals, next: 0 });
    }

    fn number(&mut self, label: &Label) -> u32 {
        if let Some(number) = self.numbers.get(label) {
            return number;
        }
        let number = self.keys.len() as u32;
        self.numbers.insert(label, number);
        self.keys.push(Versions::starting(BEGINNING));
        self.suspect.push(false);
        number
    }

    /// Nothing that commits before `frontier` will come any more; none: nothing at all.
    pub fn settle(&mut self, frontier: Option<i64>) {
        let end = frontier.unwrap_or(i64::MAX);
        if end <= self.settled {
            return;
        }
        self.settled = end;
        let mut turns = std::mem::take(&mut self.turns);
        turns.clear();
        for (number, waiting) in self.waiting.iter_mut().enumerate() {
            let txns = &waiting.digest.txns;
            let from = waiting.next;
            waiting.next += match frontier {
                Some(end) => txns[from..].partition_point(|txn| txn.moment.commit.physical < end),
                None => txns.len() - from,
            };
            let ready =
                (from..waiting.next).map(|place| (txns[place].moment.commit, number as u32, place as u32));
            turns.extend(ready);
        }
        // Runs that are sorted are only merged.
        turns.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| self.break_tie((a.1, a.2), (b.1, b.2))));
        let waiting = std::mem::take(&mut self.waiting);
        for &(_, number, place) in &turns {
            self.replay(&waiting[number as usize], place as usize);
        }
        self.replayed += turns.len() as u64;
        self.waiting = waiting;
        self.waiting.retain(|waiting| waiting.next < waiting.digest.txns.len());
        self.waiting.iter_mut().for_each(Waiting::forget);
        self.turns = turns;
        self.tidy();
    }

    /// Now and then, gives up versions that nobody will look at: those of keys that are written once in a while.
    fn tidy(&mut self) {
        if self.replayed < self.tidy_at || self.serial {
            return;
        }
        self.tidy_at = self.replayed + TIDY_EVERY * self.keys.len() as u64;
        let floor = Timestamp::from(self.floor(self.settled));
        self.keys.iter_mut().for_each(|versions| versions.tidy(floor));
    }

    /// Nobody who commits at this time looks further back.
    fn floor(&self, commit: i64) -> i64 {
        commit.saturating_sub(self.longest.saturating_mul(REACH).saturating_add(1))
    }

    /// The order of two transactions that commit at once; see [`super::super::order`].
    #[cold]
    fn break_tie(&self, a: (u32, u32), b: (u32, u32)) -> std::cmp::Ordering {
        let key = |(number, place): (u32, u32)| {
            let digest = &self.waiting[number as usize].digest;
            let entry = &digest.txns[place as usize];
            (entry.moment.place(), &digest.sessions[entry.session as usize], digest.order, entry.place)
        };
        key(a).cmp(&key(b))
    }

    fn replay(&mut self, from: &Waiting, place: usize) {
        let txns = &from.digest.txns;
        let Entry { moment, deeds, .. } = txns[place];
        let end = txns.get(place + 1).map_or(from.digest.deeds.len(), |next| next.deeds as usize);
        let look = moment.look(self.serial);
        let floor = self.floor(moment.commit.physical);
        for &Deed { key, seen, wrote } in &from.digest.deeds[deeds as usize..end] {
            let number = from.keys[key as usize] as usize;
            let key = &mut self.keys[number];
            let mut fits = true;
            if seen != NOTHING {
                let expected = match look {
                    Some(look) => key.seen(look),
                    None => Some(&mut key.newest),
                };
                fits = expected.is_some_and(|expected| is_same(&expected.value, &from.literals, seen));
            }
            if wrote != NOTHING {
                fits &= look.is_none_or(|look| key.newest.at <= look);
                let value = datum(&from.literals, wrote);
                let version = Version { at: moment.commit, value, is_read: false };
                let old = key.write(version);
                if !self.serial {
                    key.keep(old, Timestamp::from(floor));
                }
            }
            if !fits {
                self.suspect[number] = true;
            }
        }
    }

    /// Whether something came after it was said not to.
    pub fn is_disordered(&self) -> bool {
        self.is_disordered
    }

    /// How many transactions were replayed, how many keys there are, and how many digests wait.
    pub fn size(&self) -> (u64, usize, usize) {
        (self.replayed, self.keys.len(), self.waiting.len())
    }

    /// When everything is settled: the keys that are not.
    pub fn finish(self, suspects: &mut Suspects) {
        let unsettled = self.numbers.into_labels().filter(|(_, number)| self.suspect[*number as usize]);
        suspects.keys.extend(unsettled.map(|(label, _)| label));
    }
}

#[inline]
fn datum(literals: &[Datum], value: u32) -> Datum {
    match ValueId(value).as_inline() {
        Some(number) => Datum::Int(number),
        None => literals[value as usize].clone(),
    }
}

#[inline]
fn is_same(expected: &Datum, literals: &[Datum], value: u32) -> bool {
    match (expected, ValueId(value).as_inline()) {
        (Datum::Int(known), Some(number)) => *known == number,
        (_, Some(_)) => false,
        (expected, None) => *expected == literals[value as usize],
    }
}
