//! The argument that needs the fewest orders.
//!
//! *What*: at a level that counts session or real-time order the first contradiction found may lean on them although what
//! was read and written has none by itself. That says more: it is a fault at the level without these orders, too, and
//! whoever reads it need not trust any clock. So the history is judged without them, and what is wrong there is argued.
//!
//! *Cost*: one or two more checks, of a violated history that is not large, where the argument leans on an order.

use crate::shrink;
use history::History;
use isolation::{EdgeKind, Evidence, Level, Options, Stats};
use search::{Decision, decide};

/// Larger histories keep the argument that was found first.
const TRANSACTIONS_MAX: usize = 50_000;

/// Evidence from data alone, if there is any; else from sessions without clocks; else what there is.
pub(crate) fn evidence(history: &History, level: Level, options: &Options, found: Evidence) -> Evidence {
    let leans = |kind: EdgeKind| found.edges.iter().any(|edge| edge.kind == kind);
    let (on_sessions, on_clocks) = (leans(EdgeKind::So), leans(EdgeKind::Rt));
    let is_plain = level.own.is_none() && !options.mixed && !level.is_axiomatic();
    if !(on_sessions || on_clocks) || !is_plain || history.len() > TRANSACTIONS_MAX {
        return found;
    }
    let by_data = Level { session: false, realtime: false, ..level };
    let by_sessions = Level { realtime: false, ..level };
    let fewer = [by_data, by_sessions].into_iter().take(1 + usize::from(on_clocks && level.session));
    for weaker in fewer {
        if let Decision::Impossible(core) = decide(history, weaker, options, &mut Stats::default()) {
            let simpler = shrink::evidence(history, weaker, options, core);
            // Out of time, it has no argument.
            if !simpler.edges.is_empty() {
                return simpler;
            }
        }
    }
    found
}
