//! What is never answered, because an answer would say less than it seems to.

use crate::{Claim, Error, History, LevelNames};
use checker::Module;
use serde::Deserialize;

/// Refuses a history and a claim whose answer would say less than it seems to.
pub(crate) fn says_enough(history: &History, claim: &Claim) -> Result<(), Error> {
    is_committed(history)?;
    is_checkable(history)?;
    is_promised(history, claim, &LevelNames::default())?;
    is_matched(history, claim)
}

/// Refuses a history in which nothing is committed.
pub(crate) fn is_committed(history: &History) -> Result<(), Error> {
    match history.transactions().any(|txn| txn.is_committed()) {
        true => Ok(()),
        false => Err(Error::NothingCommitted { transactions: history.len() as u64 }),
    }
}

/// Refuses a history of another model, whose operations say nothing of isolation: nothing of it would be checked.
pub(crate) fn is_checkable(history: &History) -> Result<(), Error> {
    let header: Option<Header> = history.header_extra().and_then(|extra| serde_json::from_str(extra).ok());
    let not_kept = header.and_then(|header| header.jepsen.not_kept);
    not_kept.map_or(Ok(()), |why| Err(Error::OtherModel(why)))
}

/// What of a header says so. Other fields are passed over: they may be as long as the file.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Header {
    jepsen: Jepsen,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Jepsen {
    not_kept: Option<String>,
}

/// Refuses a claim that holds transactions to more than the level they asked for.
pub(crate) fn is_promised(history: &History, claim: &Claim, names: &LevelNames) -> Result<(), Error> {
    match claim.unpromised(history, |name| names.find(name).ok()) {
        None => Ok(()),
        Some((txn, asked)) => Err(Error::Unpromised {
            transaction: txn.name().to_string(),
            asked: asked.to_owned(),
            level: claim.level_name(),
        }),
    }
}

/// Refuses a level with a module that speaks of nothing in the history: it would test less than its name says.
pub(crate) fn is_matched(history: &History, claim: &Claim) -> Result<(), Error> {
    let level = claim.level;
    let unmatched = |module: &dyn Module| {
        let first = module.unmatched(history).into_iter().next()?;
        Some(Error::Unmatched(format!("{level}, {}: {first}", module.name())))
    };
    level.modules().iter().find_map(|module| unmatched(&**module)).map_or(Ok(()), Err)
}
