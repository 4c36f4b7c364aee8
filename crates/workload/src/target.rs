//! Settings by their names, and targets: `sim:snapshot-isolation?bug=lost-update`.
//!
//! One table holds every setting with a line about it, so that the options of a target, the flags of a
//! command and their help are the same thing.

use crate::bugs::Bug;
use crate::keys::Distribution;
use crate::plan::{Settings, SettingsError};
use crate::planting::Plant;
use crate::simulation::{Certification, Config, Strength};
use history::suggest;
use std::fmt;

/// A simulated database, as it is written on the command line.
///
/// ```
/// use taipan_workload::{Target, Workload};
///
/// let target: Target = "sim:snapshot-isolation?bug=lost-update:3&unknown-rate=0.01".parse().unwrap();
/// let config = target.config(Workload::ReadModifyWrite.settings(), 10_000).unwrap();
/// assert_eq!(config.unknown_rate, 0.01);
///
/// let error = "sim:snapshot".parse::<Target>().unwrap_err().to_string();
/// assert!(error.contains("snapshot-isolation"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    strength: Strength,
    options: Vec<(String, String)>,
}

/// Why a target is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetError {
    /// It does not begin with `sim:`.
    NotSimulated(String),
    /// No simulated database is called that.
    UnknownStrength(String),
    /// An option without a value.
    NotAnOption(String),
    /// An option that is not there, or a value that makes no sense.
    Setting(SettingsError),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSimulated(text) => {
                write!(f, "{text:?} is not a simulated database; expected sim:LEVEL, e.g. sim:serializable")
            }
            Self::UnknownStrength(name) => {
                // All of them: what looks most like another level need not be what was meant.
                let names = Strength::ALL.map(Strength::name).join(", ");
                write!(f, "unknown simulated database {name:?}; expected one of: {names}")
            }
            Self::NotAnOption(text) => {
                write!(f, "{text:?} is not an option; expected name=value, e.g. bug=lost-update")
            }
            Self::Setting(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TargetError {}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let rest = text.strip_prefix("sim:").ok_or_else(|| TargetError::NotSimulated(text.to_owned()))?;
        let (name, query) = rest.split_once('?').unwrap_or((rest, ""));
        let strength = strength(name).ok_or_else(|| TargetError::UnknownStrength(name.to_owned()))?;
        let mut options = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| TargetError::NotAnOption(option.to_owned()))?;
            options.push((name.to_owned(), value.to_owned()));
        }
        let target = Self { strength, options };
        // Options are tried on a stand-in now, so that a mistake shows before anything runs.
        let stand_in = Config::new(crate::Workload::BlindWrites.settings(), strength, u64::MAX);
        target.apply(stand_in).map_err(TargetError::Setting)?;
        Ok(target)
    }
}

fn strength(name: &str) -> Option<Strength> {
    let wanted = name.to_ascii_lowercase().replace('_', "-");
    let short = [
        ("rc", Strength::ReadCommitted),
        ("si", Strength::SnapshotIsolation),
        ("ser", Strength::Serializable),
        ("strict-serializable", Strength::Strict),
    ];
    let named = Strength::ALL.into_iter().find(|strength| strength.name() == wanted);
    named.or_else(|| short.iter().find(|(short, _)| *short == wanted).map(|(_, strength)| *strength))
}

impl Target {
    /// What it promises.
    pub fn strength(&self) -> Strength {
        self.strength
    }

    /// The simulation of a plan on it.
    pub fn config(&self, plan: Settings, transactions: u64) -> Result<Config, SettingsError> {
        let config = self.apply(Config::new(plan, self.strength, transactions))?;
        config.validate()?;
        Ok(config)
    }

    fn apply(&self, mut config: Config) -> Result<Config, SettingsError> {
        for (name, value) in &self.options {
            config.set(name, value)?;
        }
        Ok(config)
    }
}

/// One setting.
struct Setting {
    name: &'static str,
    about: &'static str,
    set: fn(&mut Config, &str) -> Result<(), String>,
}

const SETTINGS: &[Setting] = &[
    Setting {
        name: "transactions",
        about: "number of transactions",
        set: |config, text| number(text).map(|value| config.transactions = value),
    },
    Setting {
        name: "seed",
        about: "random seed; the same seed gives the same history",
        set: |config, text| number(text).map(|value| config.plan.seed = value),
    },
    Setting {
        name: "sessions",
        about: "number of clients",
        set: |config, text| number(text).map(|value| config.plan.sessions = value),
    },
    Setting {
        name: "concurrency",
        about: "most transactions open at the same time; 0 = no limit",
        set: |config, text| number(text).map(|value| config.concurrency = value),
    },
    Setting {
        name: "keys",
        about: "number of keys; for lists, number in use at a time",
        set: |config, text| number(text).map(|value| config.plan.keys = value),
    },
    Setting {
        name: "warehouses",
        about: "TPC-C: number of warehouses",
        set: |config, text| {
            number(text).map(|value| config.plan.keys = crate::applications::tpcc_keys(value))
        },
    },
    Setting {
        name: "ops",
        about: "operations per transaction",
        set: |config, text| number(text).map(|value| config.plan.ops = value),
    },
    Setting {
        name: "read-share",
        about: "fraction of operations, or transactions, that only read (0-1)",
        set: |config, text| number(text).map(|value| config.plan.read_share = value),
    },
    Setting {
        name: "locking",
        about: "fraction of reads-before-write that take a lock (0-1)",
        set: |config, text| number(text).map(|value| config.plan.locking = value),
    },
    Setting {
        name: "distribution",
        about: "how keys are chosen: uniform, zipf:THETA or hotspot:KEYS:SHARE",
        set: |config, text| distribution(text).map(|value| config.plan.distribution = value),
    },
    Setting {
        name: "populated",
        about: "fraction of keys that exist at the start (0-1)",
        set: |config, text| number(text).map(|value| config.plan.populated = value),
    },
    Setting {
        name: "duplicate-keys",
        about: "fraction of keys whose written values repeat (0-1)",
        set: |config, text| number(text).map(|value| config.plan.duplicate_keys = value),
    },
    Setting {
        name: "values",
        about: "number of different values where values repeat",
        set: |config, text| number(text).map(|value| config.plan.values = value),
    },
    Setting {
        name: "values-theta",
        about: "skew of repeated values: the exponent of Zipf's distribution",
        set: |config, text| number(text).map(|value| config.plan.values_theta = value),
    },
    Setting {
        name: "appends-per-key",
        about: "approximate length of a list before a new key is used",
        set: |config, text| number(text).map(|value| config.plan.appends_per_key = value),
    },
    Setting {
        name: "range-max",
        about: "longest range of scans and iterators, in keys",
        set: |config, text| number(text).map(|value| config.plan.range_max = value),
    },
    Setting {
        name: "iterate-max",
        about: "most rows taken from an iterator",
        set: |config, text| number(text).map(|value| config.plan.iterate_max = value),
    },
    Setting {
        name: "hits-max",
        about: "most rows that a predicate should match",
        set: |config, text| number(text).map(|value| config.plan.hits_max = value),
    },
    Setting {
        name: "refresh",
        about: "plain writes per predicate write, which keep rows different",
        set: |config, text| number(text).map(|value| config.plan.refresh = value),
    },
    Setting {
        name: "abort-rate",
        about: "fraction of transactions aborted at random (0-1)",
        set: |config, text| number(text).map(|value| config.abort_rate = value),
    },
    Setting {
        name: "unknown-rate",
        about: "fraction of transactions that lose their connection (0-1)",
        set: |config, text| number(text).map(|value| config.unknown_rate = value),
    },
    Setting {
        name: "aborted",
        about: "aborted transactions: record or drop",
        set: |config, text| {
            config.record_aborted = match text {
                "record" => true,
                "drop" => false,
                _ => return Err(format!("{text:?}; expected record or drop")),
            };
            Ok(())
        },
    },
    Setting {
        name: "certify",
        about: "how sim:serializable validates commits: commit-order or conflicts",
        set: |config, text| {
            config.certification = match text {
                "commit-order" => Certification::CommitOrder,
                "conflicts" => Certification::Conflicts,
                _ => return Err(format!("{text:?}; expected commit-order or conflicts")),
            };
            Ok(())
        },
    },
    Setting {
        name: "lag",
        about: "fraction of snapshots that are old (0-1)",
        set: |config, text| number(text).map(|value| config.lag = value),
    },
    Setting {
        name: "lag-max",
        about: "largest age of an old snapshot, in commits",
        set: |config, text| number(text).map(|value| config.lag_max = value),
    },
    Setting {
        name: "clock-skew",
        about: "largest difference between two clients' clocks, in nanoseconds",
        set: |config, text| number(text).map(|value| config.clock_skew = value),
    },
    Setting {
        name: "op-clocks",
        about: "record client clocks around every operation: yes or no",
        set: |config, text| {
            config.op_clocks = match text {
                "yes" => true,
                "no" => false,
                _ => return Err(format!("{text:?}; expected yes or no")),
            };
            Ok(())
        },
    },
    Setting {
        name: "bug",
        about: "NAME, NAME:COUNT or NAME:RATE (a decimal fraction); repeatable",
        set: |config, text| bug(text).map(|planted| config.bugs.push(planted)),
    },
];

impl Config {
    /// The names of all settings, each with a line about it.
    pub fn settings() -> impl Iterator<Item = (&'static str, &'static str)> {
        SETTINGS.iter().map(|setting| (setting.name, setting.about))
    }

    /// Changes a setting by its name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingsError> {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else {
            let names = SETTINGS.iter().map(|setting| setting.name);
            return Err(SettingsError { setting: "", problem: suggest::unknown("setting", name, names) });
        };
        (setting.set)(self, value).map_err(|problem| SettingsError { setting: setting.name, problem })
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.replace('_', "").parse().map_err(|_| format!("{text:?} is not a valid number"))
}

fn distribution(text: &str) -> Result<Distribution, String> {
    let mut parts = text.split(':');
    let kind = parts.next().unwrap_or_default();
    let mut share = |usual: f64| parts.next().map_or(Ok(usual), number);
    let distribution = match kind {
        "uniform" => Distribution::Uniform,
        "zipf" => Distribution::Zipf { theta: share(1.0)? },
        "hotspot" => Distribution::Hotspot { keys: share(0.2)?, share: share(0.8)? },
        _ => return Err(format!("{text:?}; expected uniform, zipf:THETA or hotspot:KEYS:SHARE")),
    };
    match parts.next() {
        None => Ok(distribution),
        Some(rest) => Err(format!("{text:?} goes on with {rest:?}")),
    }
}

fn bug(text: &str) -> Result<(Bug, Plant), String> {
    let (name, amount) = text.split_once(':').map_or((text, None), |(name, amount)| (name, Some(amount)));
    let bug = Bug::parse(name).map_err(|error| error.to_string())?;
    let plant = match amount {
        None => Plant::Exactly(1),
        Some(rate) if rate.contains('.') => Plant::Rate(number(rate)?),
        Some(count) => Plant::Exactly(number(count)?),
    };
    Ok((bug, plant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn config(target: &str) -> Result<Config, String> {
        let target: Target = target.parse().map_err(|error: TargetError| error.to_string())?;
        target.config(Workload::BlindWrites.settings(), 1000).map_err(|error| error.to_string())
    }

    #[test]
    fn targets_that_people_write() {
        assert_eq!(config("sim:serializable").map(|config| config.strength), Ok(Strength::Serializable));
        assert_eq!(config("sim:SI").map(|config| config.strength), Ok(Strength::SnapshotIsolation));
        assert_eq!(config("sim:strict-serializable").map(|config| config.strength), Ok(Strength::Strict));
        let bugs = config("sim:snapshot-isolation?bug=lost-update&bug=long-fork:3&bug=phantom:0.01");
        assert_eq!(
            bugs.map(|config| config.bugs),
            Ok(vec![
                (Bug::LostUpdate, Plant::Exactly(1)),
                (Bug::LongFork, Plant::Exactly(3)),
                (Bug::Phantom, Plant::Rate(0.01)),
            ])
        );
        let hot = config("sim:rc?distribution=hotspot:0.1:0.9&keys=1_000").expect("understood");
        assert_eq!(hot.plan.distribution, Distribution::Hotspot { keys: 0.1, share: 0.9 });
        assert_eq!(hot.plan.keys, 1000);
    }

    #[test]
    fn mistakes_are_answered_with_what_there_is() {
        for (target, part) in [
            ("postgres://x", "sim:serializable"),
            ("sim:linearizable", "read-committed, snapshot-isolation, serializable, strict"),
            ("sim:serializable?bug", "bug=lost-update"),
            ("sim:serializable?bug=lost", "write-skew"),
            ("sim:serializable?bugs=lost-update", "did you mean bug?"),
            ("sim:serializable?bug=lost-update:many", "not a valid number"),
            ("sim:serializable?keys=0", "keys: 0 is not between"),
            ("sim:serializable?distribution=normal", "zipf:THETA"),
            ("sim:strict?lag=0.5", "does not read old snapshots"),
            ("sim:serializable?bug=long-fork:1000", "have room for 200"),
            ("sim:serializable?bug=long-fork&sessions=1", "needs 4 sessions"),
        ] {
            let error = match config(target) {
                Ok(config) => crate::Simulation::new(config).map(|_| ()).expect_err(target).to_string(),
                Err(error) => error,
            };
            assert!(error.contains(part), "{target}: {error}");
        }
    }
}
