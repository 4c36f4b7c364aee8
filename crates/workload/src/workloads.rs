//! The kinds of transactions, as one table, and how each is drawn.
//!
//! Sources: BlindW of Cobra as Vbox §4.2 describes it; the general workloads with repeated values of
//! VeriStrong (Cai et al., PVLDB 2026) §7.1; RandomRange, RandomBench and RandomRMWRange of Boomslang (Zhang, Mu and Tan 2026) §A.5; list append and
//! bank as Jepsen's tests made them known.

use crate::applications::tpcc_keys;
use crate::keys::{Distribution, Key};
use crate::plan::{Column, Filter, Rule, SessionPlan, Settings, Step, Template, Value};
use crate::random::Random;
use history::Lock;

/// A kind of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Workload {
    /// Read-only and write-only transactions; every written value is new.
    BlindWrites,
    /// Reads, and writes of keys just read; every written value is new.
    ReadModifyWrite,
    /// Lists that grow; every element is new.
    ListAppend,
    /// Point operations, deletes and scans, repeated values.
    RandomRange,
    /// The same and iterators.
    RandomBench,
    /// Read-modify-writes and scans, each after a scan of everything; new values.
    RandomRmwRange,
    /// Predicate reads and predicate writes over rows with two columns.
    Predicate,
    /// Every operation there is on rows, points and predicates mixed in one transaction.
    Everything,
    /// Reads and writes mixed, values that repeat unevenly on a part of the keys.
    Duplicates,
    /// Transfers between accounts, and reads of all accounts.
    Bank,
    /// Orders, payments and deliveries of a wholesale supplier: TPC-C's five kinds.
    Tpcc,
    /// An auction site.
    Rubis,
    /// A site of short messages: posts, followers, timelines.
    Twitter,
    /// The same with fewer kinds, as TAPIR measures.
    Retwis,
    /// Parts of known anomalies, on few pairs of keys.
    Anomalies,
}

/// A name on the command line: a workload and what it changes in its settings.
struct Named {
    name: &'static str,
    about: &'static str,
    workload: Workload,
    change: fn(&mut Settings),
}

const NAMED: &[Named] = &[
    Named {
        name: "blind-writes",
        about: "read-only and write-only transactions, half of each; unique values (BlindW-WR)",
        workload: Workload::BlindWrites,
        change: |_| {},
    },
    Named {
        name: "blind-writes-rh",
        about: "BlindW-RH: 80 % reads",
        workload: Workload::BlindWrites,
        change: |settings| settings.read_share = 0.8,
    },
    Named {
        name: "blind-writes-wh",
        about: "BlindW-WH: 20 % reads",
        workload: Workload::BlindWrites,
        change: |settings| settings.read_share = 0.2,
    },
    Named {
        name: "read-modify-write",
        about: "reads, and writes of keys just read; unique values",
        workload: Workload::ReadModifyWrite,
        change: |_| {},
    },
    Named {
        name: "mini-transactions",
        about: "read-modify-write with at most two keys, each read before it is written",
        workload: Workload::ReadModifyWrite,
        change: |settings| settings.ops = 2,
    },
    Named {
        name: "list-append",
        about: "appends to lists and reads of whole lists",
        workload: Workload::ListAppend,
        change: |_| {},
    },
    Named {
        name: "range",
        about: "RandomBench: reads, writes, deletes, scans, iterators, read-modify-writes; repeated values",
        workload: Workload::RandomBench,
        change: |_| {},
    },
    Named {
        name: "random-bench",
        about: "the same as range",
        workload: Workload::RandomBench,
        change: |_| {},
    },
    Named {
        name: "random-range",
        about: "RandomRange: random-bench with scans instead of iterators",
        workload: Workload::RandomRange,
        change: |_| {},
    },
    Named {
        name: "random-rmw-range",
        about: "RandomRMWRange: read-modify-writes, and scans after a full scan; unique values",
        workload: Workload::RandomRmwRange,
        change: |_| {},
    },
    Named {
        name: "predicate",
        about: "predicate reads and predicate writes over rows (k, v1, v2), up to 20 rows each",
        workload: Workload::Predicate,
        change: |_| {},
    },
    Named {
        name: "blind-writes-pred",
        about: "BlindW-Pred: predicate with up to 1000 rows each",
        workload: Workload::Predicate,
        change: |settings| (settings.hits_max, settings.refresh) = (1000, 8),
    },
    Named {
        name: "everything",
        about: "rows (k, v1, v2): point operations, deletes, scans, iterators, predicate reads and writes",
        workload: Workload::Everything,
        change: |_| {},
    },
    Named {
        name: "duplicates",
        about: "general BL: reads and writes; values repeat on half of the keys",
        workload: Workload::Duplicates,
        change: |_| {},
    },
    Named {
        name: "duplicates-rh",
        about: "general RH: 95 % reads",
        workload: Workload::Duplicates,
        change: |settings| settings.read_share = 0.95,
    },
    Named {
        name: "duplicates-wh",
        about: "general WH: 30 % reads",
        workload: Workload::Duplicates,
        change: |settings| settings.read_share = 0.3,
    },
    Named {
        name: "duplicates-hd",
        about: "general HD: values that repeat often",
        workload: Workload::Duplicates,
        change: |settings| settings.values_theta = 1.5,
    },
    Named {
        name: "bank",
        about: "transfers between accounts and reads of all accounts",
        workload: Workload::Bank,
        change: |_| {},
    },
    Named {
        name: "tpcc",
        about: "TPC-C over keys: new orders, payments, order status, deliveries, stock level",
        workload: Workload::Tpcc,
        change: |_| {},
    },
    Named {
        name: "rubis",
        about: "RUBiS, an auction site: items, bids, purchases, comments; mostly reads",
        workload: Workload::Rubis,
        change: |_| {},
    },
    Named {
        name: "twitter",
        about: "C-Twitter: posts, followers, timelines; a few users are popular",
        workload: Workload::Twitter,
        change: |_| {},
    },
    Named {
        name: "retwis",
        about: "Retwis: new users, follows, posts (3 reads, 5 writes), timelines of up to 10 reads",
        workload: Workload::Retwis,
        change: |_| {},
    },
    Named {
        name: "anomalies",
        about: "parts of known anomalies, such as write skew and lost update, on a few pairs of keys",
        workload: Workload::Anomalies,
        change: |_| {},
    },
];

/// A name that no workload has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownWorkload {
    /// What was asked for.
    pub name: String,
}

impl std::fmt::Display for UnknownWorkload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = NAMED.iter().map(|row| row.name);
        f.write_str(&history::suggest::unknown("workload", &self.name, names))
    }
}

impl std::error::Error for UnknownWorkload {}

impl Workload {
    /// All kinds.
    pub const ALL: [Self; 15] = [
        Self::BlindWrites,
        Self::ReadModifyWrite,
        Self::ListAppend,
        Self::RandomRange,
        Self::RandomBench,
        Self::RandomRmwRange,
        Self::Predicate,
        Self::Everything,
        Self::Duplicates,
        Self::Bank,
        Self::Tpcc,
        Self::Rubis,
        Self::Twitter,
        Self::Retwis,
        Self::Anomalies,
    ];

    /// The names that the command line knows, each with a line about it.
    pub fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
        NAMED.iter().map(|row| (row.name, row.about))
    }

    /// The settings of a name.
    pub fn named(name: &str) -> Result<Settings, UnknownWorkload> {
        let row = NAMED
            .iter()
            .find(|row| row.name == name)
            .ok_or_else(|| UnknownWorkload { name: name.to_owned() })?;
        let mut settings = row.workload.settings();
        (row.change)(&mut settings);
        Ok(settings)
    }

    /// The name of the kind itself.
    pub fn name(self) -> &'static str {
        NAMED.iter().find(|row| row.workload == self).map_or("unnamed", |row| row.name)
    }

    /// The usual settings.
    pub fn settings(self) -> Settings {
        let usual = Settings {
            workload: self,
            seed: 0,
            sessions: 24,
            keys: 10_000,
            ops: 8,
            read_share: 0.5,
            locking: 0.0,
            distribution: Distribution::Uniform,
            populated: 0.0,
            duplicate_keys: 0.0,
            values: 100,
            values_theta: 0.0,
            appends_per_key: 64,
            range_max: 100,
            iterate_max: 10,
            hits_max: 1000,
            refresh: 8,
        };
        match self {
            Self::BlindWrites | Self::ReadModifyWrite => usual,
            Self::ListAppend => Settings { keys: 200, ops: 4, ..usual },
            Self::RandomRange | Self::RandomBench => {
                Settings { duplicate_keys: 1.0, populated: 0.5, ..usual }
            }
            Self::RandomRmwRange => Settings { keys: 1000, populated: 0.5, ..usual },
            Self::Predicate => Settings { ops: 1, hits_max: 20, refresh: 2, populated: 1.0, ..usual },
            Self::Everything => {
                Settings { keys: 1000, ops: 4, hits_max: 20, range_max: 20, populated: 0.5, ..usual }
            }
            Self::Duplicates => Settings { keys: 5000, duplicate_keys: 0.5, values_theta: 0.5, ..usual },
            Self::Bank => Settings { keys: 10, populated: 1.0, ..usual },
            Self::Tpcc => Settings { keys: tpcc_keys(1), ops: 10, populated: 1.0, range_max: 1, ..usual },
            Self::Rubis => Settings { populated: 1.0, range_max: 1, ..usual },
            Self::Twitter | Self::Retwis => {
                let distribution = Distribution::Zipf { theta: 0.6 };
                Settings { populated: 1.0, range_max: 1, distribution, ..usual }
            }
            Self::Anomalies => Settings { keys: 16, range_max: 1, ..usual },
        }
    }

    /// Whether its transactions filter by value.
    pub(crate) fn has_filters(self) -> bool {
        self.medium() == Medium::Rows
    }

    /// What the keys of this workload hold.
    pub(crate) fn medium(self) -> Medium {
        match self {
            Self::ListAppend => Medium::Lists,
            Self::Predicate | Self::Everything => Medium::Rows,
            _ => Medium::Numbers,
        }
    }
}

/// What keys hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    Numbers,
    Lists,
    Rows,
}

impl SessionPlan {
    /// Draws one transaction.
    pub(crate) fn fill(&mut self, template: &mut Template) {
        let steps = &mut template.steps;
        match self.settings.workload {
            Workload::BlindWrites => self.blind_writes(steps),
            Workload::Predicate => self.predicate(steps),
            Workload::Bank => self.bank(steps),
            Workload::ReadModifyWrite => self.each_op(steps, Self::read_or_modify),
            Workload::ListAppend => self.each_op(steps, Self::read_or_append),
            Workload::Duplicates => self.each_op(steps, Self::read_or_write),
            Workload::RandomRange => self.each_op(steps, |plan, steps| plan.range(steps, [25, 25, 5, 20, 0])),
            Workload::RandomBench => {
                self.each_op(steps, |plan, steps| plan.range(steps, [25, 25, 5, 10, 10]))
            }
            Workload::RandomRmwRange => self.each_op(steps, Self::modify_or_scan),
            Workload::Everything => self.each_op(steps, Self::anything),
            Workload::Tpcc => self.tpcc(steps),
            Workload::Rubis => self.rubis(steps),
            Workload::Twitter => self.twitter(steps),
            Workload::Retwis => self.retwis(steps),
            Workload::Anomalies => self.anomalies(steps),
        }
    }

    fn each_op(&mut self, steps: &mut Vec<Step>, draw: impl Fn(&mut Self, &mut Vec<Step>)) {
        for _ in 0..self.settings.ops {
            draw(self, steps);
        }
    }

    pub(crate) fn key(&mut self) -> Key {
        self.keys.draw(&mut self.random)
    }

    fn is_read(&mut self) -> bool {
        self.random.chance(self.settings.read_share)
    }

    fn write(&mut self, key: Key) -> Step {
        Step::Write { key, value: Rule::Put(Value::Int(self.value_for(key))) }
    }

    /// The read of a key that is written next.
    pub(crate) fn read_to_modify(&mut self, key: Key) -> Step {
        let locks = self.settings.locking > 0.0 && self.random.chance(self.settings.locking);
        Step::Read { key, lock: if locks { Lock::Update } else { Lock::None } }
    }

    fn blind_writes(&mut self, steps: &mut Vec<Step>) {
        let reads = self.is_read();
        for _ in 0..self.settings.ops {
            let key = self.key();
            let step = if reads { read(key) } else { self.write(key) };
            steps.push(step);
        }
    }

    fn read_or_write(&mut self, steps: &mut Vec<Step>) {
        let (reads, key) = (self.is_read(), self.key());
        let step = if reads { read(key) } else { self.write(key) };
        steps.push(step);
    }

    fn read_or_modify(&mut self, steps: &mut Vec<Step>) {
        let (reads, key) = (self.is_read(), self.key());
        if reads {
            steps.push(read(key));
        } else {
            steps.push(self.read_to_modify(key));
            steps.push(self.write(key));
        }
    }

    /// The first of the keys that are in use now.
    ///
    /// Keys of lists come in generations: after so many transactions of this session that the lists of the
    /// present one have about `appends_per_key` elements, the next generation is used. Sessions are about
    /// equally fast, so they change generations at about the same time.
    pub(crate) fn first_key(&self) -> u32 {
        let settings = &self.settings;
        if settings.workload != Workload::ListAppend {
            return 0;
        }
        let per_round = f64::from(settings.ops) * (1.0 - settings.read_share) * f64::from(settings.sessions);
        let per_generation = f64::from(settings.keys) * f64::from(settings.appends_per_key);
        let generation = (self.given as f64 * per_round / per_generation) as u32;
        generation.saturating_mul(settings.keys).min(LIST_KEYS_MAX - settings.keys)
    }

    /// Two keys that are in use now, drawn by somebody else's dice.
    pub(crate) fn draw_two_keys(&self, random: &mut Random) -> (Key, Key) {
        let first = self.keys.draw(random);
        let second = self.keys.draw_other(random, first);
        (Key(self.first_key() + first.0), Key(self.first_key() + second.0))
    }

    fn read_or_append(&mut self, steps: &mut Vec<Step>) {
        let reads = self.is_read();
        let key = Key(self.first_key() + self.key().0);
        let step = if reads { read(key) } else { Step::Append { key, element: self.unique() } };
        steps.push(step);
    }

    /// Percentages of reads, writes, deletes, scans and iterators; the rest are read-modify-writes.
    fn range(&mut self, steps: &mut Vec<Step>, percent: [u64; 5]) {
        let key = self.key();
        let mut dice = self.random.below(100);
        let mut kind = 0;
        while kind < percent.len() && dice >= percent[kind] {
            dice -= percent[kind];
            kind += 1;
        }
        let step = match kind {
            0 => read(key),
            1 => self.write(key),
            2 => Step::Delete { key },
            3 => {
                let (from, to) = self.bounds(key);
                Step::Scan { from: Some(from), to: Some(to) }
            }
            4 => self.iterator(key),
            _ => {
                steps.push(self.read_to_modify(key));
                self.write(key)
            }
        };
        steps.push(step);
    }

    fn iterator(&mut self, key: Key) -> Step {
        let (from, to) = self.bounds(key);
        let reverse = self.random.chance(0.5);
        let rows_max = self.random.between(1, u64::from(self.settings.iterate_max)) as u32;
        Step::Iterate { from, to, reverse, rows_max }
    }

    fn bounds(&mut self, from: Key) -> (Key, Key) {
        let len = self.random.between(1, u64::from(self.settings.range_max)) as u32;
        (from, Key(from.0.saturating_add(len).min(self.keys.count())))
    }

    fn modify_or_scan(&mut self, steps: &mut Vec<Step>) {
        let key = self.key();
        if self.random.below(100) < 90 {
            steps.push(self.read_to_modify(key));
            steps.push(self.write(key));
        } else {
            let (from, to) = self.bounds(key);
            steps.push(Step::Scan { from: None, to: None });
            steps.push(Step::Scan { from: Some(from), to: Some(to) });
        }
    }

    /// A transaction of predicate reads, or one of predicate writes. Predicate writes make all rows they hit
    /// equal, and equal rows stay together for ever; so each brings along plain writes that give single rows
    /// new columns. With filters of a share w of the columns on average, r plain writes to one predicate
    /// write keep about (1 + r) / w groups of equal rows apart: 3000 by default, 180 where filters hit up to a
    /// tenth of the rows and r is 8.
    fn predicate(&mut self, steps: &mut Vec<Step>) {
        let reads = self.is_read();
        for _ in 0..self.settings.ops {
            let filter = self.filter();
            if reads {
                steps.push(Step::Query { filter });
                continue;
            }
            steps.push(Step::Update { filter, set: self.row() });
            for _ in 0..self.settings.refresh {
                let (key, row) = (self.key(), self.row());
                steps.push(Step::Write { key, value: Rule::Put(row) });
            }
        }
    }

    /// One operation of any kind; a kind that only reads with the probability that settings say.
    fn anything(&mut self, steps: &mut Vec<Step>) {
        let (reads, key) = (self.is_read(), self.key());
        let dice = self.random.below(10);
        let step = match (reads, dice) {
            (true, 0..=3) => read(key),
            (true, 4..=5) => {
                let (from, to) = self.bounds(key);
                Step::Scan { from: Some(from), to: Some(to) }
            }
            (true, 6..=7) => self.iterator(key),
            (true, _) => Step::Query { filter: self.filter() },
            (false, 0..=2) => Step::Write { key, value: Rule::Put(self.row()) },
            (false, 3..=4) => {
                steps.push(self.read_to_modify(key));
                Step::Write { key, value: Rule::Put(self.row()) }
            }
            (false, 5..=6) => Step::Delete { key },
            (false, 7..=8) => Step::Update { filter: self.filter(), set: self.row() },
            (false, _) => Step::DeleteWhere { filter: self.filter() },
        };
        steps.push(step);
    }

    /// A filter that hits between 1 and `hits_max` rows where the columns are evenly spread.
    fn filter(&mut self) -> Filter {
        let size = u64::from(self.settings.column_size());
        let rows = u64::from(self.settings.keys);
        let hits = self.random.between(1, u64::from(self.settings.hits_max).min(rows));
        let width = (size * hits / rows).clamp(1, size);
        let low = self.random.below(size - width + 1);
        let column = if self.random.chance(0.5) { Column::V1 } else { Column::V2 };
        Filter { column, low: low as i64, high: (low + width) as i64 }
    }

    fn row(&mut self) -> Value {
        let size = u64::from(self.settings.column_size());
        Value::Row { v1: self.random.below(size) as i32, v2: self.random.below(size) as i32 }
    }

    fn bank(&mut self, steps: &mut Vec<Step>) {
        if self.is_read() {
            steps.extend((0..self.keys.count()).map(|key| read(Key(key))));
            return;
        }
        let from = self.key();
        let to = self.keys.draw_other(&mut self.random, from);
        let amount = self.random.between(1, 5) as i64;
        let (from_read, to_read) = (self.read_to_modify(from), self.read_to_modify(to));
        steps.extend([
            from_read,
            to_read,
            Step::Require { key: from, at_least: amount },
            Step::Write { key: from, value: Rule::Plus(-amount) },
            Step::Write { key: to, value: Rule::Plus(amount) },
        ]);
    }
}

fn read(key: Key) -> Step {
    Step::Read { key, lock: Lock::None }
}

/// List keys stay below this.
pub(crate) const LIST_KEYS_MAX: u32 = 1 << 31;

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(settings: &Settings, transactions: usize) -> Vec<Step> {
        let mut plan = SessionPlan::new(settings, 0).expect("valid settings");
        let mut template = Template::default();
        let mut all = Vec::new();
        for _ in 0..transactions {
            plan.next(&mut template);
            all.extend_from_slice(&template.steps);
        }
        all
    }

    fn share(steps: &[Step], is: impl Fn(&Step) -> bool) -> f64 {
        steps.iter().filter(|step| is(step)).count() as f64 / steps.len() as f64
    }

    #[test]
    fn every_name_gives_settings_that_run() {
        for (name, _) in Workload::names() {
            let settings = Workload::named(name).expect("a name of the table");
            assert_eq!(settings.validate(), Ok(()), "{name}");
        }
        for workload in Workload::ALL {
            assert_eq!(Workload::named(workload.name()).map(|settings| settings.workload), Ok(workload));
        }
        let error = Workload::named("blind").expect_err("no such name").to_string();
        assert!(error.contains("blind-writes-rh"), "{error}");
    }

    #[test]
    fn shares_of_reads_are_what_the_names_say() {
        for (name, expected) in [
            ("blind-writes-rh", 0.8),
            ("blind-writes", 0.5),
            ("blind-writes-wh", 0.2),
            ("duplicates-rh", 0.95),
            ("duplicates-wh", 0.3),
        ] {
            let steps = steps(&Workload::named(name).expect("a name"), 5000);
            let reads = share(&steps, |step| matches!(step, Step::Read { .. }));
            assert!((reads - expected).abs() < 0.03, "{name}: {reads}");
        }
    }

    #[test]
    fn random_bench_has_the_mix_of_the_paper() {
        let steps = steps(&Workload::RandomBench.settings(), 20_000);
        let of_slots =
            |is: fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count() as f64 / (20_000.0 * 8.0);
        for (is, expected) in [
            ((|step: &Step| matches!(step, Step::Read { .. })) as fn(&Step) -> bool, 0.5),
            (|step: &Step| matches!(step, Step::Write { .. }), 0.5),
            (|step: &Step| matches!(step, Step::Delete { .. }), 0.05),
            (|step: &Step| matches!(step, Step::Scan { .. }), 0.1),
            (|step: &Step| matches!(step, Step::Iterate { .. }), 0.1),
        ] {
            assert!((of_slots(is) - expected).abs() < 0.01, "{expected}");
        }
    }

    #[test]
    fn lists_stay_short() {
        let settings =
            Settings { keys: 10, sessions: 2, appends_per_key: 8, ..Workload::ListAppend.settings() };
        let mut appends = std::collections::HashMap::new();
        for step in steps(&settings, 2000) {
            if let Step::Append { key, .. } = step {
                *appends.entry(key).or_insert(0u32) += 1;
            }
        }
        assert!(appends.len() > 500, "{}", appends.len());
        assert!(appends.values().all(|&count| count < 30));
    }

    #[test]
    fn values_repeat_on_some_keys_only() {
        let settings = Settings { keys: 100, ..Workload::Duplicates.settings() };
        let mut repeating = std::collections::HashMap::new();
        for step in steps(&settings, 5000) {
            if let Step::Write { key, value: Rule::Put(Value::Int(value)) } = step {
                repeating.entry(key).or_insert_with(Vec::new).push(value);
            }
        }
        let repeats = |values: &&Vec<i64>| {
            let different: std::collections::HashSet<_> = values.iter().collect();
            different.len() < values.len()
        };
        let with_repeats = repeating.values().filter(repeats).count();
        assert!((40..=60).contains(&with_repeats), "{with_repeats}");
    }
}
