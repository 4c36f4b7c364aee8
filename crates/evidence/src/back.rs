//! Arguments about a part of a history, told of the whole.

use crate::explain;
use history::{History, Id, KeyId, OpId, TxnId};
use isolation::{Argument, Case, Cases, Edge, Impossible, Reason, Ryow, Supposition};
use search::refusal::Contradiction;
use std::sync::Arc;

/// Brings edges of a part back into the whole.
pub(crate) struct Back<'a> {
    pub(crate) part: &'a History,
    pub(crate) txns: &'a [TxnId],
    pub(crate) whole: &'a History,
    pub(crate) ryow: Ryow,
}

impl Back<'_> {
    /// An argument; cases and inferred edges are nested no deeper than they were looked for.
    pub(crate) fn argument(&self, argument: &Argument) -> Argument {
        if let Some((read, key)) = argument.impossible_read()
            && let Some(whole) = explain::no_source(self.whole, self.op(read), self.key(key), self.ryow)
        {
            // Aborted transactions belong to no part, but they did write what was seen.
            return whole;
        }
        let edges = |edges: &[Edge]| edges.iter().map(|edge| self.edge(edge)).collect();
        let case = |case: &Case| Case {
            suppose: self.supposition(&case.suppose),
            argument: self.argument(&case.argument),
        };
        Argument {
            edges: edges(&argument.edges),
            support: edges(&argument.support),
            cases: argument.cases.as_ref().map(|it| {
                Arc::new(Cases { told: it.told.iter().map(case).collect(), left_out: it.left_out })
            }),
        }
    }

    fn supposition(&self, suppose: &Supposition) -> Supposition {
        match *suppose {
            Supposition::Source { read, key, write } => Supposition::Source {
                read: self.op(read),
                key: self.key(key),
                write: write.map(|write| self.op(write)),
            },
            Supposition::Changed { op, key, changed } => {
                Supposition::Changed { op: self.op(op), key: self.key(key), changed }
            }
        }
    }

    /// The whole has every key of a part.
    fn key(&self, key: KeyId) -> KeyId {
        self.whole.find_key(self.part.keys().get(key)).expect("a part has no keys of its own")
    }

    /// A contradiction; none where it is told apart in the part.
    pub(crate) fn contradiction(&self, contradiction: &Contradiction) -> Option<Contradiction> {
        Some(match *contradiction {
            Contradiction::Internal { op, key } => {
                Contradiction::Internal { op: self.op(op), key: self.key(key) }
            }
            Contradiction::NoSource { op, key } => {
                Contradiction::NoSource { op: self.op(op), key: self.key(key) }
            }
            Contradiction::BadRows { op } => Contradiction::BadRows { op: self.op(op) },
            Contradiction::BrokenList { op, key } => {
                Contradiction::BrokenList { op: self.op(op), key: self.key(key) }
            }
            Contradiction::IncompatibleLists { first, second, key } => Contradiction::IncompatibleLists {
                first: self.op(first),
                second: self.op(second),
                key: self.key(key),
            },
            // These are told apart in the part.
            Contradiction::NonRepeatable { .. } => return None,
        })
    }

    fn edge(&self, edge: &Edge) -> Edge {
        Edge {
            from: edge.from.map(|txn| self.txns[txn.index()]),
            to: self.txns[edge.to.index()],
            kind: edge.kind,
            key: edge.key.map(|key| self.key(key)),
            predicate: edge.predicate,
            reason: self.reason(&edge.reason),
        }
    }

    fn reason(&self, reason: &Reason) -> Reason {
        let op = |op: OpId| self.op(op);
        match reason {
            Reason::Saw { read, write } => Reason::Saw { read: op(*read), write: write.map(op) },
            Reason::Missed { read, write } => Reason::Missed { read: op(*read), write: op(*write) },
            Reason::Overwrote { first, second, shown } => {
                Reason::Overwrote { first: first.map(op), second: op(*second), shown: shown.map(op) }
            }
            Reason::Otherwise { because } => Reason::Otherwise { because: Arc::new(self.argument(because)) },
            Reason::Impossible { op: at, why } => Reason::Impossible {
                op: op(*at),
                why: match *why {
                    Impossible::Row(key) => Impossible::Row(self.key(key)),
                    Impossible::Own(key) => Impossible::Own(self.key(key)),
                    Impossible::Read(key) => Impossible::Read(self.key(key)),
                    Impossible::Differs(other, key) => Impossible::Differs(op(other), self.key(key)),
                    other => other,
                },
            },
            other => other.clone(),
        }
    }

    /// A part keeps all operations of its transactions in their places.
    pub(crate) fn op(&self, op: OpId) -> OpId {
        let txn = self.part.owner(op);
        let first = |history: &History, txn: TxnId| history.transaction(txn).first_op();
        OpId(op.0 - first(self.part, txn).0 + first(self.whole, self.txns[txn.index()]).0)
    }
}
