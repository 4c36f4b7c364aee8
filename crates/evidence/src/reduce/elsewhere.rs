//! A smaller violation somewhere else in the history.
//!
//! *What*: a core from which nothing can go may still be long: the search found that one first. Without one of its
//! transactions the history is often violated still, for a shorter reason.
//!
//! *Steps*: (1) the lightest contradiction that is seen soon ([`light`]); (2) one transaction of the core after the other is
//! left out of the whole ([`search::restrict`]), and what is left is judged anew. A smaller core takes the place of the one
//! before, until one is small enough, none is smaller, or the budget ends.
//!
//! *Cost*: that of weighing, and a check of the whole for each that is left out; so only where the whole is not large, and not where the core was found by
//! counting ([`search::pigeonhole`]): without one of them a search would have to find out what counting says.

use super::{Reduced, reduce_once};
use crate::Crowd;
use encodings::light;
use history::{History, Id, TxnId};
use isolation::{Evidence, Level, Options, Verdict};
use search::{restrict::restrict_for, rows};

/// What is at most this small is small enough to look at.
const TRANSACTIONS_WANTED: usize = 10;
/// Larger histories are not checked again.
const TRANSACTIONS_MAX: usize = 50_000;
/// Where all contradictions are weighed in a moment, even less is wanted.
const LIGHT_MAX: usize = 20_000;
const LIGHT_WANTED: usize = 4;
/// How often something is left out.
const ROUNDS_MAX: usize = 64;

/// The smaller one of what was reached and what is found elsewhere.
pub(super) fn smaller(
    history: &History,
    level: Level,
    options: &Options,
    evidence: &Evidence,
    judge: &dyn Fn(&History) -> Verdict,
    mut best: Reduced,
) -> Reduced {
    if history.len() > TRANSACTIONS_MAX
        || rows::has_claims(history)
        || options.mixed
        || !level.modules().is_empty()
        || Crowd::shown_by(evidence, history).is_some()
    {
        return best;
    }
    let of_part = |keep: &[TxnId], best: &Reduced| -> Option<Reduced> {
        let part = restrict_for(history, keep, level);
        let Verdict::Violated(other) = judge(&part.history) else { return None };
        let found = reduce_once(&part.history, level, options, &other, judge)?;
        // What was found first has a name; another one would give one history two.
        if !evidence.edges.is_empty() && found.evidence.anomaly.name != evidence.anomaly.name {
            return None;
        }
        let origins = found.origins.iter().map(|it| it.map(|txn| part.txns[txn.index()])).collect();
        (found.history.len() < best.history.len()).then_some(Reduced { origins, ..found })
    };
    let wanted = if history.len() <= LIGHT_MAX { LIGHT_WANTED } else { TRANSACTIONS_WANTED };
    if best.history.len() > wanted {
        for few in light::proposals(history, level, options) {
            best = of_part(&few, &best).unwrap_or(best);
        }
    }
    let mut without: Vec<TxnId> = Vec::new();
    let mut core = evidence.transactions.clone();
    let mut rounds = 0;
    'smaller: while best.history.len() > TRANSACTIONS_WANTED {
        for &txn in &core {
            rounds += 1;
            if rounds > ROUNDS_MAX || options.budget.exhausted().is_some() {
                break 'smaller;
            }
            let gone = |it: TxnId| it == txn || without.contains(&it);
            let keep: Vec<TxnId> = history.transactions().map(|it| it.id()).filter(|&it| !gone(it)).collect();
            if let Some(found) = of_part(&keep, &best) {
                best = found;
                without.push(txn);
                core = best.origins.iter().copied().flatten().collect();
                continue 'smaller;
            }
        }
        break;
    }
    best
}
