//! What a level asks for and a history cannot show.
//!
//! **What.** Real-time order is read off the clients' clocks, session order off sessions with several transactions. Where a
//! history has none, a level that asks for that order was not tested, and to accept it would say more than is known.
//!
//! **Invariant.** Only what is accepted becomes undecided: a level that is violated without these orders is violated.
//!
//! **Cost.** One pass over the transactions, which ends at the first session with two of them.

use crate::levels::{Level, Rule};
use crate::undecided::Undecided;
use history::{History, Id, Name};
use rustc_hash::FxHashSet;

/// The orders that a history shows, read in one or several parts.
#[derive(Clone, Debug, Default)]
pub struct Orders {
    has_clocks: bool,
    has_committed: bool,
    has_pairs: bool,
    /// Sessions of which one committed transaction is known.
    sessions: FxHashSet<Name>,
}

impl Orders {
    /// Those of a whole history.
    pub fn of(history: &History) -> Self {
        let mut orders = Self::default();
        orders.take(history);
        orders
    }

    /// Adds the next part.
    pub fn take(&mut self, part: &History) {
        self.has_clocks |= part.has_client_clocks();
        if self.has_pairs {
            return;
        }
        let mut is_used = vec![false; part.sessions().len()];
        for txn in part.transactions().filter(|txn| txn.is_committed()) {
            self.has_committed = true;
            if std::mem::replace(&mut is_used[txn.session().index()], true) {
                self.has_pairs = true;
                return;
            }
        }
        let used = part.sessions().ids().filter(|id| is_used[id.index()]);
        for name in used.map(|id| part.sessions().get(id)) {
            self.has_pairs |= !self.sessions.insert(name.to_owned());
        }
    }

    /// Why the level is not tested, if it is not.
    pub fn lack(&self, level: Level) -> Option<Undecided> {
        if !self.has_committed && !self.has_pairs {
            return None;
        }
        if level.realtime && !self.has_clocks {
            return Some(Undecided::Untested("no client clocks recorded".to_owned()));
        }
        // The strong session levels. Others, such as causal, need session order in their definition and ask for more.
        let has_strong =
            matches!(level.rule, Rule::ReadCommitted | Rule::SnapshotIsolation | Rule::Serializable);
        let asks_for_sessions = level.session && !level.realtime && level.own.is_none() && has_strong;
        (asks_for_sessions && !self.has_pairs).then(|| {
            Undecided::Untested("session order was not tested: each session ran one transaction".to_owned())
        })
    }

    /// Whether nothing that comes later makes a difference to the level.
    pub fn are_enough(&self, level: Level) -> bool {
        (self.has_committed || self.has_pairs) && self.lack(level).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::notation;

    #[test]
    fn orders_are_there_or_not() {
        let level = |name| Level::parse(name).expect("a name of the table");
        for (text, name, is_tested) in [
            ("a: w(x,1)\nb: r(x,1)\n", "serializable", true),
            ("a: w(x,1)\nb: r(x,1)\n", "strict-serializable", false),
            ("a: w(x,1)\nb: r(x,1)\n", "forward-consistent-view", false),
            ("a: w(x,1)\nb: r(x,1)\n", "strong-session-SI", false),
            ("a: w(x,1)\nb: r(x,1)\n", "PSI", true),
            ("a: w(x,1)\nb: r(x,1)\n", "causal", true),
            ("a: w(x,1)\nb: r(x,1)\n", "prefix", true),
            ("a: w(x,1) | r(x,1)\n", "strong-session-SI", true),
            ("a: w(x,1) | r(x,1)!\n", "strong-session-SI", false),
            ("a: w(x,1) @1..2\nb: r(x,1)\n", "strict-serializable", true),
            ("a: w(x,1)!\n", "strict-serializable", true),
        ] {
            let history = notation::parse(text).expect("the notation is right");
            assert_eq!(Orders::of(&history).lack(level(name)).is_none(), is_tested, "{name}: {text}");
        }
    }

    #[test]
    fn parts_come_to_the_same_as_the_whole() {
        let part = |text| notation::parse(text).expect("the notation is right");
        let level = Level::parse("strong-session-SER").expect("a name of the table");
        let mut orders = Orders::default();
        orders.take(&part("a: w(x,1)\nb: w(y,1)\n"));
        assert!(!orders.are_enough(level));
        orders.take(&part("c: w(x,2)\n"));
        assert!(!orders.are_enough(level));
        orders.take(&part("b: w(y,2)\n"));
        assert!(orders.are_enough(level));
    }
}
