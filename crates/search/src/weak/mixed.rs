//! Transactions of different levels in one history: each gets what it asked for.
//!
//! *What*: Adya's mixing theorem. In the graph of a mixed history write-dependencies count always, a read-dependency
//! counts if the reader asked for read committed or more, an anti-dependency counts if the reader asked to be serializable
//! (or, unless it comes from a predicate, for repeatable read). If that graph has no cycle, and no transaction above read uncommitted
//! reads what aborted or was overwritten by its writer, every transaction has the level it asked for.
//!
//! *How*: reads at read uncommitted are only asked to come from somebody ([`dirty`](super::dirty)); the others are
//! searched for as at any level, where a read of a transaction that asked to be serializable must see what commits before
//! its transaction.
//!
//! *Source*: Adya 1999, §3.4 (mixed serialization graphs, definition of mixing-correct).

use super::{Asked, Setting, Sight, Strict, Strictness, decide_asked, dirty};
use crate::decision::Decision;
use crate::looked_at::LookedAt;
use history::History;
use isolation::{Level, Options, Rule, Stats};

/// What a transaction asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    Nothing,
    Committed,
    Repeatable,
    Serial,
}

/// What every transaction of a history asked for.
pub(crate) struct Demands {
    of: Vec<Demand>,
}

impl Demands {
    /// `level` is what transactions ask for that do not say. `Err` names a level that cannot be mixed.
    pub(crate) fn of(history: &History, level: Level) -> Result<Self, String> {
        let default = demand(level)?;
        let mut of = Vec::with_capacity(history.len());
        for transaction in history.transactions() {
            of.push(match transaction.level() {
                None => default,
                Some(name) => demand(Level::parse(name).map_err(|unknown| unknown.to_string())?)?,
            });
        }
        Ok(Self { of })
    }

    /// What that comes to.
    pub(super) fn asked(&self, level: Level) -> Asked {
        let strict = self.of.iter().map(|demand| match demand {
            Demand::Nothing | Demand::Committed => Strict::Nothing,
            Demand::Repeatable => Strict::Items,
            Demand::Serial => Strict::Everything,
        });
        let strict = Strictness::By(strict.collect());
        let level = Level { session: false, realtime: false, ..level };
        let blind = self.of.iter().map(|&demand| demand == Demand::Nothing).collect();
        Asked { setting: Setting { level, sight: Sight::Asked, strict }, blind }
    }
}

fn demand(level: Level) -> Result<Demand, String> {
    match level.rule {
        _ if level.session || level.realtime => {}
        Rule::ReadUncommitted => return Ok(Demand::Nothing),
        Rule::ReadCommitted => return Ok(Demand::Committed),
        Rule::RepeatableRead => return Ok(Demand::Repeatable),
        Rule::Serializable => return Ok(Demand::Serial),
        _ => {}
    }
    Err(format!(
        "{level} cannot be mixed with other levels: the theorem speaks of read-uncommitted, read-committed, \
                 repeatable-read and serializable"
    ))
}

/// Decides whether every transaction has the level that it asked for, or `level` where it does not say.
pub(crate) fn decide_mixed(
    history: &History,
    level: Level,
    options: &Options,
    stats: &mut Stats,
) -> Decision {
    let demands = match Demands::of(history, level) {
        Ok(demands) => demands,
        Err(why) => return Decision::NotHere(why),
    };
    let asked = demands.asked(level);
    if asked.blind.contains(&true) {
        match dirty::decide(history, level, options.clock_skew, &options.budget) {
            Decision::Possible(_) => {}
            other => return other,
        }
    }
    decide_asked(history, &asked, options, &LookedAt::default(), stats)
}
