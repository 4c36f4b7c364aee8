//! What to run: for every session a deterministic stream of transaction templates.
//!
//! A plan does not know who executes it. The simulated database does, and so can a driver of a real one:
//! it takes each session's stream on its own thread, issues the steps, and records what came back. What a
//! session is asked to do depends on the seed and on its own number only, never on how sessions interleave
//! or on which transactions were aborted.

use crate::applications::Memory;
use crate::keys::{Distribution, Key, Keys};
use crate::random::{Random, Zipf};
use crate::workloads::Workload;
use history::Lock;

/// A value, as plans write it and as executors report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Value {
    /// The key is not there.
    #[default]
    Absent,
    /// A number.
    Int(i64),
    /// A row with the columns `v1` and `v2`; the key is its third.
    Row {
        /// The first column.
        v1: i32,
        /// The second column.
        v2: i32,
    },
    /// A list; only results hold one, and the elements lie in the executor's arena.
    List(Piece),
}

/// A piece of an arena.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// Where it starts.
    pub start: u32,
    /// How long it is.
    pub len: u32,
}

impl Piece {
    /// The piece of the arena.
    pub fn of<T>(self, arena: &[T]) -> &[T] {
        &arena[self.start as usize..self.start as usize + self.len as usize]
    }
}

/// A column that predicates filter by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// A scalar itself.
    Value,
    /// The first column of a row.
    V1,
    /// The second column of a row.
    V2,
}

/// A range filter: `low <= column < high`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filter {
    /// What is compared.
    pub column: Column,
    /// The least value that satisfies it.
    pub low: i64,
    /// The least value beyond that does not.
    pub high: i64,
}

impl Filter {
    /// Whether a value satisfies it.
    #[inline]
    pub fn holds(&self, value: Value) -> bool {
        let found = match (self.column, value) {
            (Column::Value, Value::Int(number)) => number,
            (Column::V1, Value::Row { v1, .. }) => i64::from(v1),
            (Column::V2, Value::Row { v2, .. }) => i64::from(v2),
            _ => return false,
        };
        (self.low..self.high).contains(&found)
    }
}

/// What a write puts there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// This value.
    Put(Value),
    /// The number that the transaction last read at this key, and this much more. An absent key counts
    /// as 0.
    Plus(i64),
}

/// One step of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A point read.
    Read {
        /// Where.
        key: Key,
        /// Whether it keeps others from changing the key until commit.
        lock: Lock,
    },
    /// Insert or overwrite.
    Write {
        /// Where.
        key: Key,
        /// What.
        value: Rule,
    },
    /// Physical deletion.
    Delete {
        /// Where.
        key: Key,
    },
    /// Adds one element to a list.
    Append {
        /// Where.
        key: Key,
        /// What.
        element: i64,
    },
    /// All keys of `[from, to)`; a missing bound is open.
    Scan {
        /// The first key.
        from: Option<Key>,
        /// The first key beyond.
        to: Option<Key>,
    },
    /// The first keys of `[from, to)`.
    Iterate {
        /// The first key.
        from: Key,
        /// The first key beyond.
        to: Key,
        /// From the end.
        reverse: bool,
        /// The client stops asking after so many rows.
        rows_max: u32,
    },
    /// All rows that satisfy the filter.
    Query {
        /// Which.
        filter: Filter,
    },
    /// Every row that satisfies the filter gets the value.
    Update {
        /// Which.
        filter: Filter,
        /// What.
        set: Value,
    },
    /// Every row that satisfies the filter is deleted.
    DeleteWhere {
        /// Which.
        filter: Filter,
    },
    /// Nothing is sent. The transaction commits here, unless the number that it last read at this key is
    /// at least so much.
    Require {
        /// Where.
        key: Key,
        /// How much.
        at_least: i64,
    },
}

impl Step {
    /// Whether it can change something.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Self::Write { .. }
                | Self::Delete { .. }
                | Self::Append { .. }
                | Self::Update { .. }
                | Self::DeleteWhere { .. }
        )
    }
}

/// One transaction to run: its steps in order. Reused from one to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// The steps.
    pub steps: Vec<Step>,
}

impl Template {
    /// Whether no step can change anything.
    pub fn is_read_only(&self) -> bool {
        !self.steps.iter().any(Step::writes)
    }
}

/// What to run, in numbers. Start from [`Workload::settings`] and change what you like.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The kind of transactions.
    pub workload: Workload,
    /// The same seed, the same plan.
    pub seed: u64,
    /// How many clients there are.
    pub sessions: u32,
    /// How many keys there are; for lists, how many are in use at a time.
    pub keys: u32,
    /// How many operations a transaction has (a read-modify-write counts as one).
    pub ops: u32,
    /// How many operations, or transactions where they do not mix, only read.
    pub read_share: f64,
    /// How many of the reads that a write of the same key follows lock it.
    pub locking: f64,
    /// Which keys are touched.
    pub distribution: Distribution,
    /// How many keys are there before the first transaction.
    pub populated: f64,
    /// On how many keys written values repeat; on the others every written value is new.
    pub duplicate_keys: f64,
    /// How many different values are written where values repeat.
    pub values: u32,
    /// How uneven they are: the exponent of Zipf's distribution; 0 for all alike.
    pub values_theta: f64,
    /// Lists: a key is replaced by a new one after about so many appends.
    pub appends_per_key: u32,
    /// Scans and iterators: the longest range.
    pub range_max: u32,
    /// Iterators: the client stops after at most so many rows.
    pub iterate_max: u32,
    /// Predicates: the most rows that a filter is meant to hit.
    pub hits_max: u32,
    /// Predicates: how many plain writes go with a predicate write.
    pub refresh: u32,
}

/// Why settings make no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsError {
    /// The setting; empty if there is none of that name.
    pub setting: &'static str,
    /// What is wrong and what is expected.
    pub problem: String,
}

impl std::fmt::Display for SettingsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let colon = if self.setting.is_empty() { "" } else { ": " };
        write!(f, "{}{colon}{}", self.setting, self.problem)
    }
}

impl std::error::Error for SettingsError {}

/// Keys and list keys in use stay below this, so that ids have room.
const KEYS_MAX: u32 = 1 << 30;
/// Rows hold their columns in 31 bits, and filters are drawn over the whole column.
const COLUMN_MAX: u32 = 1 << 26;

impl Settings {
    /// Refuses what cannot be run.
    pub fn validate(&self) -> Result<(), SettingsError> {
        let refuse = |setting, problem: String| Err(SettingsError { setting, problem });
        let counts = [
            ("sessions", self.sessions, 1 << 20),
            ("keys", self.keys, KEYS_MAX),
            ("ops", self.ops, 1 << 16),
            ("values", self.values, COLUMN_MAX),
            ("appends-per-key", self.appends_per_key, 1 << 16),
            ("range-max", self.range_max, KEYS_MAX),
            ("iterate-max", self.iterate_max, KEYS_MAX),
            ("hits-max", self.hits_max, KEYS_MAX),
        ];
        for (setting, count, max) in counts {
            if count == 0 || count > max {
                return refuse(setting, format!("{count} is not between 1 and {max}"));
            }
        }
        let shares = [
            ("read-share", self.read_share),
            ("locking", self.locking),
            ("populated", self.populated),
            ("duplicate-keys", self.duplicate_keys),
        ];
        for (setting, share) in shares {
            if !(0.0..=1.0).contains(&share) {
                return refuse(setting, format!("{share} is not a share between 0 and 1"));
            }
        }
        if !(0.0..=10.0).contains(&self.values_theta) {
            return refuse("values-theta", format!("{} is not between 0 and 10", self.values_theta));
        }
        match self.distribution {
            Distribution::Zipf { theta } if !(theta > 0.0 && theta <= 10.0) => {
                refuse("distribution", format!("zipf with θ = {theta}; expected more than 0 and at most 10"))
            }
            Distribution::Hotspot { keys, share }
                if !(keys > 0.0 && keys <= 1.0 && (0.0..=1.0).contains(&share)) =>
            {
                refuse("distribution", format!("hotspot of {share} on {keys}; expected shares up to 1"))
            }
            _ if self.workload == Workload::Bank && self.keys < 2 => {
                refuse("keys", "a transfer needs two accounts".to_owned())
            }
            _ if self.workload.has_filters() && self.keys > COLUMN_MAX => {
                refuse("keys", format!("{} rows; predicates are made for at most {COLUMN_MAX}", self.keys))
            }
            _ => Ok(()),
        }
    }

    /// The columns of rows hold values below this: ten times as many as there are rows.
    pub(crate) fn column_size(&self) -> u32 {
        (self.keys.saturating_mul(10)).clamp(16, 1 << 30)
    }

    /// The value of a key before the first transaction.
    pub fn initial(&self, key: Key) -> Value {
        if key.0 >= self.keys {
            return Value::Absent;
        }
        let mut random = Random::stream(self.seed ^ INITIAL_STREAM, u64::from(key.0));
        if !random.chance(self.populated) {
            return Value::Absent;
        }
        match self.workload {
            Workload::Predicate | Workload::Everything => {
                let size = u64::from(self.column_size());
                Value::Row { v1: random.below(size) as i32, v2: random.below(size) as i32 }
            }
            Workload::Bank => Value::Int(BALANCE),
            _ => Value::Int(0),
        }
    }

    /// What the keys hold before the first transaction; absent ones are left out.
    pub fn initial_rows(&self) -> impl Iterator<Item = (Key, Value)> + '_ {
        let keys = if self.populated > 0.0 { self.keys } else { 0 };
        (0..keys).map(|key| (Key(key), self.initial(Key(key)))).filter(|(_, value)| *value != Value::Absent)
    }
}

const INITIAL_STREAM: u64 = 0x5eed_0f1e_57a7_e000;
/// What every account of the bank holds at first.
const BALANCE: i64 = 100;

/// Values from here on are never written by a plan: an executor may use them for its own transactions.
pub const RESERVED_FROM: i64 = 1_000_000_000;
const RESERVED_LEN: i64 = 100_000_000;

/// The stream of one session.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    pub(crate) settings: Settings,
    pub(crate) random: Random,
    pub(crate) keys: Keys,
    pub(crate) memory: Memory,
    values: Zipf,
    pub(crate) session: u32,
    /// How many values of its own the session has written.
    written: i64,
    /// How many templates it has given out.
    pub(crate) given: u64,
}

impl SessionPlan {
    /// The stream of session number `session`, from 0.
    pub fn new(settings: &Settings, session: u32) -> Result<Self, SettingsError> {
        settings.validate()?;
        Ok(Self {
            random: Random::stream(settings.seed, u64::from(session)),
            keys: Keys::new(settings.keys, settings.distribution),
            values: Zipf::new(u64::from(settings.values), settings.values_theta.max(1e-9)),
            settings: settings.clone(),
            memory: Memory::default(),
            session,
            written: 0,
            given: 0,
        })
    }

    /// The next transaction.
    pub fn next(&mut self, template: &mut Template) {
        template.steps.clear();
        self.fill(template);
        self.given += 1;
    }

    /// A number that no other write of the plan has.
    pub(crate) fn unique(&mut self) -> i64 {
        let number = self.written * i64::from(self.settings.sessions) + i64::from(self.session) + 1;
        self.written += 1;
        if number < RESERVED_FROM { number } else { number + RESERVED_LEN }
    }

    /// What to write at a key: a repeated value where values repeat, else a new one.
    pub(crate) fn value_for(&mut self, key: Key) -> i64 {
        if self.repeats(key) { self.values.sample(&mut self.random) as i64 } else { self.unique() }
    }

    fn repeats(&self, key: Key) -> bool {
        // Spread over the key space by a multiplicative hash, so that hot keys are of both kinds.
        let spread = key.0.wrapping_mul(0x9e37_79b1);
        f64::from(spread) < self.settings.duplicate_keys * 4_294_967_296.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn templates(settings: &Settings, session: u32, count: usize) -> Vec<Template> {
        let mut plan = SessionPlan::new(settings, session).expect("valid settings");
        let mut all = Vec::new();
        for _ in 0..count {
            let mut template = Template::default();
            plan.next(&mut template);
            all.push(template);
        }
        all
    }

    #[test]
    fn a_session_is_asked_the_same_whatever_the_others_do() {
        for workload in Workload::ALL {
            let settings = workload.settings();
            assert_eq!(templates(&settings, 3, 50), templates(&settings, 3, 50), "{workload:?}");
            assert_ne!(templates(&settings, 3, 50), templates(&settings, 4, 50), "{workload:?}");
            let other = Settings { seed: 9, ..settings.clone() };
            assert_ne!(templates(&settings, 3, 50), templates(&other, 3, 50), "{workload:?}");
        }
    }

    #[test]
    fn unique_values_are_unique_over_all_sessions() {
        let settings = Settings { sessions: 5, ..Workload::BlindWrites.settings() };
        let mut seen = HashSet::new();
        for session in 0..5 {
            for template in templates(&settings, session, 200) {
                for step in template.steps {
                    if let Step::Write { value: Rule::Put(Value::Int(value)), .. } = step {
                        assert!(value > 0 && seen.insert(value), "{value} twice");
                    }
                }
            }
        }
        assert!(seen.len() > 1000);
    }

    #[test]
    fn settings_that_cannot_run_are_refused_with_the_setting() {
        let good = Workload::BlindWrites.settings();
        for (bad, setting) in [
            (Settings { sessions: 0, ..good.clone() }, "sessions"),
            (Settings { keys: 0, ..good.clone() }, "keys"),
            (Settings { read_share: 1.5, ..good.clone() }, "read-share"),
            (Settings { read_share: f64::NAN, ..good.clone() }, "read-share"),
            (Settings { distribution: Distribution::Zipf { theta: 0.0 }, ..good.clone() }, "distribution"),
            (Settings { workload: Workload::Bank, keys: 1, ..good.clone() }, "keys"),
        ] {
            assert_eq!(bad.validate().expect_err("refused").setting, setting);
        }
    }
}
