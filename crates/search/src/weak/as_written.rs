//! Whether the order in which a history is written down explains it.
//!
//! *What*: files are mostly written as transactions end, and databases are mostly stronger than the level asked for: then
//! transactions that commit in the order of the file are an explanation, and that is tested before anything is searched.
//!
//! ```text
//!   W writes x  <  whatever T must see  <=  top of T  <  the next writer of x        T, who read x from W, comes after W
//! ```
//!
//! *Why*: where sources come before their readers all orders lead forward, so whatever leads to T comes no later than the last
//! of what directly precedes it, its *top* ([`Top`]). If nobody else writes x after W and up to there, nothing that the read
//! must see is missing.
//!
//! *Steps*: (1) the versions of each key by value, each with the next writer of the key; (2) transactions in their order:
//! who wrote what each read saw, looked for near what was found at the key before; of each transaction the top, and the first
//! of the next writers; (3) where one of them comes before the top and only causes count, whether it is a cause: clients hear
//! of commits in a slightly other order than the database made them.
//!
//! *Only ever accepts*: transactions of unknown outcome are taken to have had effect; operations on many keys, lists that grow,
//! results with no source or several, and whatever does not fit are left to the other stages.
//!
//! *Cost*: O(operations) up to what does not fit, 12 bytes a version, 28 a key. Causes are looked for between the next writer and the
//! reader, which mostly are near each other, and among no more operations altogether than there are.

use super::Sight;
use crate::lists::normal;
use crate::problem::NONE;
use history::{History, Id, KeyId, OpId, Point, PointKind, Status, Transaction, TxnId, ValueId};
use isolation::{Budget, Level, Options, Rule, Ryow, Undecided, gallop};
use rustc_hash::FxHashSet;

/// What directly precedes a transaction, as far as it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Top {
    /// Nothing: no read must see anything but its source.
    Nothing,
    /// The one before it in its session, and whom it saw; of what comes before these only what leads to it.
    Causes,
    /// The same, and whatever comes before these.
    Seen,
    /// Also those whose versions it replaced.
    Replaced,
}

impl Top {
    /// `None` where everything before it counts: then a file mostly has to be brought into order.
    fn of(rule: Rule) -> Option<Self> {
        // What read committed allows, it allows.
        if rule == Rule::ReadUncommitted {
            return Some(Self::Nothing);
        }
        match Sight::of(rule)? {
            Sight::Nothing => Some(Self::Nothing),
            Sight::EarlierReads | Sight::Direct | Sight::Causes => Some(Self::Causes),
            Sight::Prefix => Some(Self::Seen),
            Sight::BeforeOwnWrite | Sight::EarlierOperations | Sight::Dependencies => Some(Self::Replaced),
            Sight::Updates | Sight::Asked => None,
        }
    }
}

/// Whether it does; if not, another order may.
pub(super) fn explains(history: &History, level: Level, options: &Options) -> Result<bool, Undecided> {
    let Some(top) = Top::of(level.rule) else { return Ok(false) };
    let is_plain = level.own.is_none() && !options.mixed && options.ryow == Ryow::Must;
    // Who must see what ended before it began has another top.
    let is_timed = level.realtime && history.has_client_clocks();
    let is_in_order = is_plain
        && !is_by_session(history)
        && (!is_timed || top == Top::Nothing && keeps_to_clocks(history, options.clock_skew));
    if !is_in_order {
        return Ok(false);
    }
    let replay = Replay::new(history, &options.budget)?;
    replay.map_or(Ok(false), |mut replay| replay.fits(top, &options.budget))
}

/// Whether one session comes after the other: then the file is in no order of commits.
fn is_by_session(history: &History) -> bool {
    let sessions = history.sessions().len();
    let mut last = None;
    let turns = history.transactions().filter(|it| last.replace(it.session()) != Some(it.session()));
    sessions > 1 && sessions < history.len() && turns.take(sessions + 1).count() == sessions
}

/// Whether nobody is written down after somebody who began when it had ended.
fn keeps_to_clocks(history: &History, skew: i64) -> bool {
    let mut latest = i64::MIN;
    live(history).all(|transaction| {
        let Some(span) = transaction.client() else { return true };
        let fits = transaction.status() != Status::Committed || latest <= span.end.saturating_add(skew);
        latest = latest.max(span.begin);
        fits
    })
}

/// All that can have taken effect.
fn live(history: &History) -> impl Iterator<Item = Transaction<'_>> {
    history.transactions().filter(|transaction| transaction.status() != Status::Aborted)
}

/// The last thing a transaction wrote to a key.
#[derive(Clone, Copy)]
struct Version {
    value: ValueId,
    writer: u32,
    /// The next transaction that writes the key.
    next: u32,
}

/// A key while transactions are replayed.
#[derive(Clone)]
struct Lane {
    /// Its versions, ascending by value.
    start: u32,
    end: u32,
    /// Where the last one was found.
    hint: u32,
    initial: ValueId,
    /// The first transaction that writes it.
    first: u32,
    /// Who wrote it last so far, and what.
    last: u32,
    left: ValueId,
}

struct Replay<'h> {
    history: &'h History,
    lanes: Vec<Lane>,
    versions: Vec<Version>,
    /// The committed transaction before it in its session.
    previous: Vec<u32>,
    /// The last search that came to a transaction, and how many operations searches may still look at.
    reached: Vec<u32>,
    searches: u32,
    ops_left: usize,
}

impl<'h> Replay<'h> {
    /// `None`: there are other operations than reads and writes of single keys, or something was not recorded.
    fn new(history: &'h History, budget: &Budget) -> Result<Option<Self>, Undecided> {
        let meter = budget.meter();
        let untouched = Lane {
            start: 0,
            end: 0,
            hint: 0,
            initial: ValueId::ABSENT,
            first: NONE,
            last: NONE,
            left: ValueId::UNKNOWN,
        };
        let mut lanes = vec![untouched; history.keys().len()];
        for row in history.initial() {
            if !row.value.is_known() {
                return Ok(None);
            }
            lanes[row.key.index()].initial = normal(history, row.value);
        }
        // 1. How many versions there are of each key.
        for transaction in live(history) {
            for op in transaction.op_ids() {
                meter.step()?;
                let Some(Point { kind, key, value }) = history.point(op) else { return Ok(None) };
                match kind {
                    PointKind::Read => {}
                    PointKind::Write if value.is_known() => {
                        let lane = &mut lanes[key.index()];
                        lane.end += u32::from(lane.last != transaction.id().0);
                        lane.last = transaction.id().0;
                    }
                    PointKind::Write | PointKind::Append => return Ok(None),
                }
            }
        }
        let mut start = 0;
        for lane in &mut lanes {
            lane.start = start;
            start += std::mem::replace(&mut lane.end, start);
            lane.last = NONE;
        }
        // 2. Each key's in the order of the file, then by value.
        let mut versions = vec![Version { value: ValueId::ABSENT, writer: NONE, next: NONE }; start as usize];
        for transaction in live(history) {
            let writer = transaction.id().0;
            meter.steps(transaction.op_ids().len())?;
            for op in transaction.op_ids() {
                let Some(Point { kind: PointKind::Write, key, value }) = history.point(op) else { continue };
                let lane = &mut lanes[key.index()];
                lane.end += u32::from(lane.last != writer);
                lane.last = writer;
                versions[lane.end as usize - 1] =
                    Version { value: normal(history, value), writer, next: NONE };
            }
        }
        for lane in &mut lanes {
            let of_key = &mut versions[lane.start as usize..lane.end as usize];
            lane.last = NONE;
            lane.first = of_key.first().map_or(NONE, |version| version.writer);
            let mut next = NONE;
            for version in of_key.iter_mut().rev() {
                version.next = std::mem::replace(&mut next, version.writer);
            }
            if !of_key.is_sorted_by_key(|version| version.value) {
                of_key.sort_unstable_by_key(|version| version.value);
            }
        }
        budget.check()?;
        Ok(Some(Self {
            history,
            lanes,
            versions,
            previous: vec![NONE; history.len()],
            reached: Vec::new(),
            searches: 0,
            ops_left: history.op_count(),
        }))
    }

    /// Whether every read sees what it must.
    fn fits(&mut self, top: Top, budget: &Budget) -> Result<bool, Undecided> {
        let meter = budget.meter();
        let mut last = vec![NONE; self.history.sessions().len()];
        for transaction in live(self.history) {
            let last = &mut last[transaction.session().index()];
            self.previous[transaction.id().index()] = *last;
            if transaction.status() == Status::Committed {
                *last = transaction.id().0;
            }
            meter.steps(1 + transaction.op_ids().len())?;
            if self.transaction(transaction, top).is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Versions are far apart: those where a transaction will look are fetched at once, which waits once.
    fn fetch(&self, transaction: Transaction<'_>) {
        let near = |op: OpId| {
            let lane = &self.lanes[self.history.point(op)?.key.index()];
            self.versions.get((lane.start + lane.hint) as usize)
        };
        let writers = transaction.op_ids().filter_map(near).map(|version| version.writer);
        std::hint::black_box(writers.fold(0, |all, writer| all ^ writer));
    }

    /// `None`: something does not fit.
    fn transaction(&mut self, transaction: Transaction<'_>, top: Top) -> Option<()> {
        let number = transaction.id().0;
        // One more than the last that directly precedes; one more than nobody is nothing.
        let mut after = self.previous[number as usize].wrapping_add(1);
        let mut next = NONE;
        self.fetch(transaction);
        for op in transaction.op_ids() {
            let Point { kind, key, value } = self.history.point(op)?;
            let lane = &mut self.lanes[key.index()];
            match kind {
                PointKind::Read if !value.is_known() => {}
                PointKind::Read if lane.last == number => {
                    if lane.left != normal(self.history, value) {
                        return None;
                    }
                }
                PointKind::Read => {
                    let (source, next_of_key) = lane.source(&self.versions, normal(self.history, value))?;
                    if source != NONE && source >= number {
                        return None;
                    }
                    after = after.max(source.wrapping_add(1));
                    next = next.min(next_of_key);
                }
                PointKind::Write | PointKind::Append => {
                    if top == Top::Replaced && lane.last != number {
                        after = after.max(lane.last.wrapping_add(1));
                    }
                    lane.last = number;
                    lane.left = normal(self.history, value);
                }
            }
        }
        match top {
            Top::Causes if next < after => self.examine(number, after),
            _ => (top == Top::Nothing || next >= after).then_some(()),
        }
    }

    /// Whether nobody whom a read misses leads to its transaction.
    #[cold]
    fn examine(&mut self, txn: u32, after: u32) -> Option<()> {
        for (key, value) in self.outside(txn) {
            let (_, next) = self.lanes[key.index()].find(&self.versions, value)?;
            if next < after {
                self.search(txn, key, next)?;
            }
        }
        Some(())
    }

    /// `None`: a writer of the key, this one or a later one, leads to the transaction, or searches were long enough.
    fn search(&mut self, txn: u32, key: KeyId, first: u32) -> Option<()> {
        self.reached.resize(self.history.len(), 0);
        self.searches += 1;
        let mut work = vec![txn];
        while let Some(at) = work.pop() {
            self.ops_left = self.ops_left.checked_sub(self.points(at).count())?;
            let mut before = vec![self.previous[at as usize]];
            for (seen_at, value) in self.outside(at) {
                before.push(self.lanes[seen_at.index()].find(&self.versions, value)?.0);
            }
            for txn in before.into_iter().filter(|&txn| txn != NONE && txn >= first) {
                if std::mem::replace(&mut self.reached[txn as usize], self.searches) == self.searches {
                    continue;
                }
                if self.points(txn).any(|it| it.kind == PointKind::Write && it.key == key) {
                    return None;
                }
                work.push(txn);
            }
        }
        Some(())
    }

    fn points(&self, txn: u32) -> impl Iterator<Item = Point> + '_ {
        self.history.transaction(TxnId(txn)).op_ids().filter_map(|op| self.history.point(op))
    }

    /// What a transaction saw of others.
    fn outside(&self, txn: u32) -> Vec<(KeyId, ValueId)> {
        let (mut own, mut seen) = (FxHashSet::default(), Vec::new());
        for Point { kind, key, value } in self.points(txn) {
            match kind {
                PointKind::Read if value.is_known() && !own.contains(&key) => {
                    seen.push((key, normal(self.history, value)));
                }
                PointKind::Read => {}
                PointKind::Write | PointKind::Append => {
                    own.insert(key);
                }
            }
        }
        seen
    }
}

impl Lane {
    /// The only transaction that left a value, and the next writer of the key; nobody, if it was there before.
    #[inline]
    fn source(&mut self, versions: &[Version], value: ValueId) -> Option<(u32, u32)> {
        self.hint = self.place(versions, value);
        self.at(versions, self.hint, value)
    }

    /// The same, while nothing is read.
    fn find(&self, versions: &[Version], value: ValueId) -> Option<(u32, u32)> {
        self.at(versions, self.place(versions, value), value)
    }

    #[inline]
    fn place(&self, versions: &[Version], value: ValueId) -> u32 {
        let of_key = &versions[self.start as usize..self.end as usize];
        gallop(of_key, self.hint as usize, |version| version.value < value) as u32
    }

    #[inline]
    fn at(&self, versions: &[Version], place: u32, value: ValueId) -> Option<(u32, u32)> {
        let versions = &versions[self.start as usize + place as usize..self.end as usize];
        let carries = |it: Option<&Version>| it.is_some_and(|version| version.value == value);
        match (versions.first(), value == self.initial) {
            (Some(version), false) if version.value == value && !carries(versions.get(1)) => {
                Some((version.writer, version.next))
            }
            (version, true) if !carries(version) => Some((NONE, self.first)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;
    use isolation::Verdict;
    use oracle::{self, tiny::Shape};

    fn explains_at(level: &str, text: &str) -> bool {
        let history = notation::parse(text).expect("the notation is right");
        let level = Level::parse(level).expect("a name of the table");
        explains(&history, level, &Options::default()).expect("nothing is limited")
    }

    #[test]
    fn the_order_of_the_file_explains_what_keeps_to_it() {
        for (level, text, expected) in [
            ("causal", "a: w(x,1) w(y,1)\nb: r(x,1)\nc: r(y,1)\n", true),
            // One session after the other.
            ("causal", "a: w(x,1) w(y,1)\nb: r(x,1) | r(y,1)\n", false),
            // The reader is written down before whom it saw.
            ("read-committed", "a: r(x,1)\nb: w(x,1)\n", false),
            // Half of b is seen, and nothing leads to b otherwise.
            ("read-committed", "a: w(x,1)\nb: w(x,2) w(y,2)\nc: r(y,2) r(x,1)\n", true),
            ("read-atomic", "a: w(x,1)\nb: w(x,2) w(y,2)\nc: r(y,2) r(x,1)\n", false),
            ("causal", "a: w(x,1)\nb: w(x,2)\nc: r(x,1)\n", true),
            // The next writer of x comes before whom the reader saw, but does not lead to it.
            ("causal", "a: w(x,1)\nb: w(x,2)\nc: w(y,1)\nd: r(x,1) r(y,1)\n", true),
            ("prefix", "a: w(x,1)\nb: w(x,2)\nc: w(y,1)\nd: r(x,1) r(y,1)\n", false),
            ("causal", "a: w(x,1)\nb: w(x,2)\nc: r(x,2) w(y,1)\nd: r(x,1) r(y,1)\n", false),
            // The initial state is older than what the session wrote.
            ("causal", "a: w(x,1) | r(x,_)\n", false),
            ("read-committed", "a: w(x,1) | r(x,_)\n", true),
            // A lost update.
            ("prefix", "a: r(x,_) w(x,1)\nb: r(x,_) w(x,2)\n", true),
            ("consistent-view", "a: r(x,_) w(x,1)\nb: r(x,_) w(x,2)\n", false),
            // Whatever is not plain.
            ("read-committed", "a: a(x,1)\nb: r(x,[1])\n", false),
            ("read-committed", "a: w(x,1)\nb: w(x,1)\nc: r(x,1)\n", false),
            ("read-committed", "a: w(x,1) !\nb: r(x,1)\n", false),
            ("read-committed", "a: w(x,1) r(x,2)\n", false),
            ("read-committed", "a: w(x,1)?\nb: r(x,1)\n", true),
            ("serializable", "a: w(x,1)\n", false),
        ] {
            assert_eq!(explains_at(level, text), expected, "{level}: {text}");
        }
    }

    /// It never explains what has no explanation, and explains a good part of what has.
    #[test]
    fn what_it_explains_the_oracle_accepts() {
        let shapes = [Shape::registers(), Shape { keys_max: 2, ..Shape::registers() }];
        let options = Options::default();
        for level in Level::all().filter(|level| Top::of(level.rule).is_some()) {
            let (mut explained, mut accepted) = (0, 0);
            for seed in 0..1_000 {
                let history = shapes[seed as usize % 2].history(seed);
                let Ok(verdict) = oracle::oracle(&history, level, &options) else { continue };
                let is_accepted = matches!(verdict, Verdict::Accepted(_));
                let is_explained = explains(&history, level, &options).expect("nothing is limited");
                assert!(is_accepted || !is_explained, "seed {seed} at {level}");
                accepted += usize::from(is_accepted);
                explained += usize::from(is_explained);
            }
            assert!(explained * 10 > accepted, "{level}: {explained} of {accepted}");
        }
    }
}
