//! A part of a history that is asked at several levels.
//!
//! *What*: transactions that have no explanation at one level often have none at weaker ones either. A fragment cuts them
//! out once and answers for every level in the time that a tiny history takes; what it finds violated is violated in the
//! whole, and its evidence speaks of the whole.

use crate::back::Back;
use crate::check::check;
use history::{History, TxnId};
use isolation::{Evidence, Level, Options, Rule, Verdict};
use search::restrict::{Part, restrict, restrict_for};

/// Some transactions of a history, as a history of their own.
#[derive(Debug)]
pub struct Fragment<'h> {
    whole: &'h History,
    /// For levels at which only what came before matters, and for those at which it matters whom a read saw.
    plain: Part,
    exact: Part,
}

impl<'h> Fragment<'h> {
    /// Cuts transactions out of a history.
    pub fn new(whole: &'h History, transactions: &[TxnId]) -> Self {
        let axiomatic = Level::new(Rule::Causal, true, false);
        Self {
            whole,
            plain: restrict(whole, transactions),
            exact: restrict_for(whole, transactions, axiomatic),
        }
    }

    /// The evidence that the whole violates a level, if the fragment does.
    pub fn violates(&self, level: Level, options: &Options) -> Option<Evidence> {
        // What aborted may explain a read at read uncommitted, and fragments leave it out.
        if level.rule == Rule::ReadUncommitted {
            return None;
        }
        let part = if level.is_axiomatic() { &self.exact } else { &self.plain };
        let Verdict::Violated(evidence) = check(&part.history, level, options).verdict else { return None };
        let back = Back { part: &part.history, txns: &part.txns, whole: self.whole, ryow: options.ryow };
        let transactions = evidence.transactions.iter().map(|txn| part.txns[txn.0 as usize]).collect();
        Some(Evidence::new(evidence.anomaly.clone(), transactions, back.argument(&evidence.argument())))
    }
}
