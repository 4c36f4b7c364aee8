//! From levels to claims: what is assumed, and what names of levels mean.

use checker::{By, Claim, KeyOrder, Level, Rule, Ryow, UnknownLevel, Vendor};
use std::fmt;
use std::sync::Arc;

/// What a claim says beside the level. The default is what [`Claim::new`] says.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// What the order of transactions is judged by.
    pub by: By,
    /// What is assumed of clocks and keys.
    pub assume: Vec<Assumption>,
    /// Real-time order holds only between transactions further apart than this, in the history's own unit of time.
    pub clock_skew: i64,
    /// What a read must see of its own transaction's earlier writes.
    pub ryow: Ryow,
    /// Whether each transaction is held to the level it asked for.
    pub mixed: bool,
    /// What names of levels mean in a history.
    pub names: LevelNames,
}

/// What is assumed beyond a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assumption {
    /// The clients' clocks are accurate, so session order and real-time order count.
    Realtime,
    /// Each session sees versions of each key in their order.
    SequentialKeys,
    /// Versions of each key follow the clients' clocks.
    LinearizableKeys,
    /// A transaction's write of a key follows the version that it read.
    WfrKeys,
}

/// A level that is asked for, and the database's own level that it stands for, if one was named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The level that is checked.
    pub level: Level,
    /// The database's own level.
    pub vendor: Option<Vendor>,
}

impl From<Level> for Asked {
    fn from(level: Level) -> Self {
        Self { level, vendor: None }
    }
}

/// What names of levels mean where a history or its transactions name one: by default, the rows of the table.
#[derive(Clone, Default)]
pub struct LevelNames(Option<Arc<Find>>);

type Find = dyn Fn(&str) -> Result<Level, UnknownLevel> + Send + Sync;

impl LevelNames {
    /// Names that this function knows.
    pub fn new(find: impl Fn(&str) -> Result<Level, UnknownLevel> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(find)))
    }

    /// The level of that name.
    ///
    /// # Errors
    /// If there is none; the message names a similar one.
    pub fn find(&self, name: &str) -> Result<Level, UnknownLevel> {
        self.0.as_ref().map_or_else(|| Level::parse(name), |find| find(name))
    }
}

impl fmt::Debug for LevelNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LevelNames")
    }
}

/// Why there is no such claim.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum BadClaim {
    /// The level has no variant that counts session and real-time order.
    NoRealTime(Level),
    /// The level does not count what reads saw, so it cannot assume that writes follow reads.
    NoReads(Level),
    /// Assumptions on keys beside mixed levels or another policy on own writes.
    KeysBesidePolicies,
    /// Assumptions on keys that the level does not take; the sentence says why.
    Keys(String),
    /// Timestamps do not decide the level.
    NotByTimestamps(Level),
    /// The history names a level that is not known.
    UnknownHeader(UnknownLevel),
}

impl fmt::Display for BadClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRealTime(level) => write!(f, "{level} has no real-time variant"),
            Self::NoReads(level) => write!(f, "{level} does not count what reads saw"),
            Self::KeysBesidePolicies => f.write_str(
                "assumptions on keys cannot be combined with mixed levels or a policy on own writes",
            ),
            Self::Keys(why) => f.write_str(why),
            Self::NotByTimestamps(level) => write!(f, "{level}: {}", replay::Refusal::Level),
            Self::UnknownHeader(unknown) => write!(f, "{unknown} (in the header of the file)"),
        }
    }
}

impl std::error::Error for BadClaim {}

impl Policy {
    /// The claim that a history keeps a level.
    ///
    /// # Errors
    /// If the level does not take the assumptions, or is not decided by what the order is judged by.
    pub fn claim(&self, asked: impl Into<Asked>) -> Result<Claim, BadClaim> {
        let Asked { level, vendor } = asked.into();
        let level = match self.assumes(Assumption::Realtime) {
            true => in_real_time(level)?,
            false => level,
        };
        let level = self.with_key_orders(level)?;
        if self.by == By::Timestamps && !replay::decides(level) {
            return Err(BadClaim::NotByTimestamps(level));
        }
        let Self { by, ryow, clock_skew, mixed, .. } = *self;
        Ok(Claim { level, by, ryow, clock_skew, mixed, vendor })
    }

    /// The claims about a history: the levels asked for, else the one that its header names, else serializable.
    ///
    /// # Errors
    /// As [`Policy::claim`]; or if the header names a level that is not known.
    pub fn claims(&self, asked: &[Asked], header: Option<&str>) -> Result<Vec<Claim>, BadClaim> {
        if !asked.is_empty() {
            return asked.iter().map(|&asked| self.claim(asked)).collect();
        }
        let level = match header {
            None => Level::SERIALIZABLE,
            Some(name) => self.names.find(name).map_err(BadClaim::UnknownHeader)?,
        };
        Ok(vec![self.claim(level)?])
    }

    fn assumes(&self, what: Assumption) -> bool {
        self.assume.contains(&what)
    }

    /// The level with what is assumed of keys.
    fn with_key_orders(&self, level: Level) -> Result<Level, BadClaim> {
        let orders = [
            (Assumption::SequentialKeys, KeyOrder::Sequential),
            (Assumption::LinearizableKeys, KeyOrder::Linearizable),
        ];
        let orders: Vec<KeyOrder> =
            orders.into_iter().filter(|it| self.assumes(it.0)).map(|it| it.1).collect();
        if self.assumes(Assumption::WfrKeys) && level.rule == Rule::ReadUncommitted {
            return Err(BadClaim::NoReads(level));
        }
        if !orders.is_empty() && (self.mixed || self.ryow != Ryow::Must) {
            return Err(BadClaim::KeysBesidePolicies);
        }
        level.assuming(&orders, self.clock_skew).map_err(BadClaim::Keys)
    }
}

/// The same level with session and real-time order.
fn in_real_time(level: Level) -> Result<Level, BadClaim> {
    let strong = Level { session: true, realtime: true, ..level };
    strong.row().map(|_| strong).ok_or(BadClaim::NoRealTime(level))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_takes_what_its_level_can() {
        let realtime = Policy { assume: vec![Assumption::Realtime], ..Policy::default() };
        let claim = realtime.claim(Level::SERIALIZABLE).expect("strict serializability");
        assert_eq!(claim.level, Level::STRICT_SERIALIZABLE);
        let timestamps = Policy { by: By::Timestamps, ..Policy::default() };
        assert!(timestamps.claim(Level::SERIALIZABLE).is_ok());
        let causal = Level::parse("causal").expect("a level");
        assert!(matches!(timestamps.claim(causal), Err(BadClaim::NotByTimestamps(level)) if level == causal));
        let keys = Policy { assume: vec![Assumption::SequentialKeys], mixed: true, ..Policy::default() };
        assert!(matches!(keys.claim(Level::SERIALIZABLE), Err(BadClaim::KeysBesidePolicies)));
    }

    #[test]
    fn without_a_level_the_header_says_which() {
        let policy = Policy::default();
        let level = |header| policy.claims(&[], header).map(|claims| claims[0].level);
        assert_eq!(level(None).ok(), Some(Level::SERIALIZABLE));
        assert_eq!(level(Some("SI")).ok(), Level::parse("snapshot-isolation").ok());
        assert!(matches!(level(Some("nonsense")), Err(BadClaim::UnknownHeader(_))));
        let asked = [Level::STRICT_SERIALIZABLE.into()];
        let claims = policy.claims(&asked, Some("SI")).expect("the header is not asked");
        assert_eq!(claims[0].level, Level::STRICT_SERIALIZABLE);
    }
}
