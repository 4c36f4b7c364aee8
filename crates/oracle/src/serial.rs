//! Serializability by trying serial orders.
//!
//! **What.** Looks for an order of all committed transactions and some of the unknown ones in which each
//! transaction, run alone on the state that the ones before it left, gives exactly the recorded results.
//!
//! **Invariant.** A point of the search is the set of transactions that ran and the state they left;
//! nothing else matters for what can follow, so no point is visited twice.
//!
//! **Cost.** At most 2ⁿ sets, times the states that different orders of one set leave behind.

use super::content::{Store, initial_store};
use super::orders::{Effective, Set};
use super::replay::Replay;
use super::{Effort, Found, Stop, admit};
use history::History;
use isolation::{Event, Level, Options, Witness};
use std::collections::HashSet;

/// The largest history that is tried.
const TRANSACTIONS_MAX: usize = 24;

pub(super) fn search(history: &History, level: Level, options: &Options, effort: &mut Effort<'_>) -> Found {
    let effective = Effective::new(history, level, options.clock_skew);
    admit(effective.len(), TRANSACTIONS_MAX)?;
    let mut search = Search {
        effective,
        replay: Replay::new(history, options.ryow),
        failed: HashSet::new(),
        order: Vec::new(),
        effort,
    };
    let found = search.extend(0, &initial_store(history))?;
    Ok(found.then_some(Witness { order: search.order }))
}

struct Search<'h, 'e, 'o> {
    effective: Effective,
    replay: Replay<'h>,
    /// Points from which no order goes on to the end.
    failed: HashSet<(Set, Store)>,
    order: Vec<Event>,
    effort: &'e mut Effort<'o>,
}

impl Search<'_, '_, '_> {
    /// Whether the order so far can be completed; `ran` is the set of its transactions, `store` their effect.
    fn extend(&mut self, ran: Set, store: &Store) -> Result<bool, Stop> {
        if self.effective.committed & !ran == 0 {
            return Ok(true);
        }
        let point = (ran, store.clone());
        if self.failed.contains(&point) {
            return Ok(false);
        }
        for next in 0..self.effective.len() {
            let has_run = ran & 1 << next != 0;
            let must_wait = self.effective.before[next] & !ran != 0;
            if has_run || must_wait {
                continue;
            }
            self.effort.step()?;
            let txn = self.effective.transactions[next];
            let Some(writes) = self.replay.run(txn, store) else { continue };
            let mut after = store.clone();
            for (key, content) in writes {
                after[key.0 as usize] = content;
            }
            self.order.push(Event::Whole(txn));
            if self.extend(ran | 1 << next, &after)? {
                return Ok(true);
            }
            self.order.pop();
        }
        self.failed.insert(point);
        Ok(false)
    }
}
