//! Short names for the transactions of an argument: `T1`, `T2`, … in the order in which the argument visits them.

use history::TxnId;
use isolation::{Cases, Edge, Evidence};
use std::collections::BTreeMap;

/// The labels of an argument's transactions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Labels {
    /// The transactions in the order of their labels.
    order: Vec<TxnId>,
    places: BTreeMap<TxnId, usize>,
}

impl Labels {
    /// Of the transactions that evidence speaks of: those of the argument first, then the rest of the core, then what only
    /// supports it.
    pub(crate) fn of(evidence: &Evidence) -> Self {
        let mut labels = Self::default();
        let ends = |edge: &Edge| edge.from.into_iter().chain([edge.to]).collect::<Vec<TxnId>>();
        evidence.edges.iter().flat_map(ends).for_each(|txn| labels.add(txn));
        let mut open: Vec<&Cases> = evidence.cases.iter().map(|cases| &**cases).collect();
        while let Some(cases) = open.pop() {
            for case in &cases.told {
                case.argument.edges.iter().flat_map(ends).for_each(|txn| labels.add(txn));
                open.extend(case.argument.cases.as_deref());
            }
        }
        evidence.transactions.iter().for_each(|&txn| labels.add(txn));
        evidence.support.iter().flat_map(ends).for_each(|txn| labels.add(txn));
        labels
    }

    fn add(&mut self, txn: TxnId) {
        let next = self.order.len();
        if *self.places.entry(txn).or_insert(next) == next {
            self.order.push(txn);
        }
    }

    /// The transactions in the order of their labels.
    pub(crate) fn order(&self) -> &[TxnId] {
        &self.order
    }

    /// `T1`, if the argument speaks of the transaction.
    pub(crate) fn get(&self, txn: TxnId) -> Option<String> {
        self.places.get(&txn).map(|place| label(*place))
    }
}

/// The label of the transaction at a place, from 0.
pub(crate) fn label(place: usize) -> String {
    format!("T{}", place + 1)
}
