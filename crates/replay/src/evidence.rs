//! Findings as evidence: what the replay found, told as edges with reasons.
//!
//! A finding says what had to be seen and what was. The argument is short, because the order is given:
//! two transactions whose timestamps say one order and whose operations say the other.
//!
//! ```text
//!   stale read          W ──ts──> T   W committed before T started,
//!                       T ──rw──> W   T did not see what W wrote
//!   future read         W ──wr──> T   T saw what W wrote,
//!                       T ──ts──> W   T started before W committed
//!   lost update         P ──ww──> T   T overwrote what P wrote,
//!                       T ──ts──> P   T started before P committed
//! ```
//!
//! **Cost.** Finding who wrote a value walks the history once for each finding that is reported.

use super::{Axiom, Content, Finding, Refusal, Report, check_counting, order};
use history::{History, KeyId, OpId, Primitive, Status, TxnId, ValueId, ValueRef};
use isolation::{
    Anomaly, Edge, EdgeKind, Evidence, Level, Options, Outcome, Reason, Rule, Stats, Undecided, Verdict,
    Witness,
};

/// Checks by timestamps and gives the answer in the form of every other check: the evidence is that of
/// the first finding, the statistics count them all.
pub fn outcome(history: &History, level: Level, options: &Options) -> Outcome {
    judge(history, level, options).0
}

/// As [`outcome`], with all findings.
pub fn judge(history: &History, level: Level, options: &Options) -> (Outcome, Vec<Finding>) {
    judge_only(history, level, options, |_| true)
}

/// As [`judge`], of those findings that count.
pub(super) fn judge_only(
    history: &History,
    level: Level,
    options: &Options,
    counts: impl Fn(&Finding) -> bool,
) -> (Outcome, Vec<Finding>) {
    let mut stats = Stats::default();
    let mut findings: Vec<Finding> = Vec::new();
    let checked = check_counting(history, level, options, counts, |finding| findings.push(finding));
    let verdict = match (checked, findings.first()) {
        (Err(Refusal::GaveUp(reason)), None) => Verdict::Undecided(reason),
        (Err(refusal), None) => Verdict::Undecided(Undecided::Unsupported(refusal.sentence(history))),
        (Ok(report), None) => {
            stats.record("transactions_replayed", report.replayed as f64);
            Verdict::Accepted(witness(history, level, &report))
        }
        // What was found before the budget ran out stands.
        (_, Some(finding)) => Verdict::Violated(Box::new(evidence(history, finding))),
    };
    for axiom in Axiom::ALL {
        let count = findings.iter().filter(|finding| finding.axiom == axiom).count();
        if count > 0 {
            stats.record(axiom.statistic(), count as f64);
        }
    }
    (Outcome { verdict, stats }, findings)
}

/// The order that the timestamps say: the witness of a history without findings.
pub fn witness(history: &History, level: Level, report: &Report) -> Witness {
    if let Some(witness) = &report.witness {
        return witness.clone();
    }
    let serial = level.rule == Rule::Serializable;
    order::Order::new(history, serial).witness(serial)
}

/// The argument behind one finding.
pub fn evidence(history: &History, finding: &Finding) -> Evidence {
    let told = Teller { history, finding };
    match finding.axiom {
        Axiom::TimestampOrder => told.one(anomaly("timestamp-order", Some("commit before start")), vec![]),
        Axiom::Session => told.orders("session-order", EdgeKind::So, Reason::Session),
        Axiom::RealTime => told.orders("real-time-order", EdgeKind::Rt, Reason::Clock),
        Axiom::Internal => told.internal(),
        Axiom::External => told.external(),
        Axiom::NoConflict => told.conflict(),
    }
}

impl Axiom {
    /// The name of its counter.
    fn statistic(self) -> &'static str {
        match self {
            Self::TimestampOrder => "timestamp_order_findings",
            Self::Session => "session_findings",
            Self::RealTime => "real_time_findings",
            Self::Internal => "int_findings",
            Self::External => "ext_findings",
            Self::NoConflict => "noconflict_findings",
        }
    }
}

fn anomaly(name: &str, common: Option<&'static str>) -> Anomaly {
    Anomaly { name: name.to_owned(), common }
}

/// Who wrote what was seen.
enum Source {
    /// The initial state.
    Initial,
    /// This operation.
    Write(OpId),
    /// Nobody.
    Nobody,
}

struct Teller<'h> {
    history: &'h History,
    finding: &'h Finding,
}

impl Teller<'_> {
    fn one(&self, anomaly: Anomaly, edges: Vec<Edge>) -> Evidence {
        let mut transactions = vec![self.finding.txn];
        for edge in &edges {
            for txn in edge.from.into_iter().chain([edge.to]) {
                if !transactions.contains(&txn) {
                    transactions.push(txn);
                }
            }
        }
        Evidence { anomaly, transactions, edges, support: Vec::new(), cases: None }
    }

    fn edge(&self, from: Option<TxnId>, to: TxnId, kind: EdgeKind, reason: Reason) -> Edge {
        let key = self.finding.key.filter(|_| !matches!(kind, EdgeKind::Ts | EdgeKind::So | EdgeKind::Rt));
        Edge { from, to, kind, key, predicate: key.is_some() && self.is_predicate(), reason }
    }

    /// `from` comes before `to` by the timestamps.
    fn by_time(&self, from: TxnId, to: TxnId) -> Edge {
        self.edge(Some(from), to, EdgeKind::Ts, Reason::Timestamps)
    }

    fn is_predicate(&self) -> bool {
        self.finding.op.is_some_and(|op| self.history.primitive(op).key().is_none())
    }

    /// An order that counts says one thing, the timestamps another.
    fn orders(&self, name: &str, kind: EdgeKind, reason: Reason) -> Evidence {
        let Some(other) = self.finding.other else { return self.one(anomaly(name, None), vec![]) };
        let own = self.finding.txn;
        let edges = vec![self.edge(Some(other), own, kind, reason), self.by_time(own, other)];
        self.one(anomaly(name, Some("a predecessor that is not visible")), edges)
    }

    fn conflict(&self) -> Evidence {
        let name = anomaly("lost-update", Some("two concurrent writers of one key"));
        let (Some(key), Some(other)) = (self.finding.key, self.finding.other) else {
            return self.one(name, vec![]);
        };
        let own = self.finding.txn;
        let Some(second) = self.last_write(own, key) else { return self.one(name, vec![]) };
        let reason = Reason::Overwrote { first: self.last_write(other, key), second, shown: None };
        let edges = vec![self.edge(Some(other), own, EdgeKind::Ww, reason), self.by_time(own, other)];
        self.one(name, edges)
    }

    fn internal(&self) -> Evidence {
        let name = anomaly("internal", None);
        let (Some(key), Some(read)) = (self.finding.key, self.finding.op) else {
            return self.one(name, vec![]);
        };
        let own = self.finding.txn;
        let before = |op: &OpId| *op < read;
        let reason = match self.writes(own, key).rfind(before) {
            Some(write) => Reason::Missed { read, write },
            None => {
                let seen = self.source(key, self.seen_value());
                let write = if let Source::Write(write) = seen { Some(write) } else { None };
                Reason::Saw { read, write }
            }
        };
        let edge = match reason {
            Reason::Saw { write: Some(write), .. } => {
                self.edge(Some(self.owner(write)), own, EdgeKind::Wr, reason)
            }
            Reason::Saw { .. } => self.edge(None, own, EdgeKind::Wr, reason),
            _ => self.edge(Some(own), own, EdgeKind::Rw, reason),
        };
        self.one(name, vec![edge])
    }

    fn external(&self) -> Evidence {
        let (Some(key), Some(read)) = (self.finding.key, self.finding.op) else {
            return self.one(anomaly("G-single", Some("phantom")), vec![]);
        };
        match self.source(key, self.seen_value()) {
            Source::Nobody => {
                let edge = self.edge(None, self.finding.txn, EdgeKind::Wr, Reason::Saw { read, write: None });
                self.one(anomaly("thin-air", None), vec![edge])
            }
            Source::Write(write) => self.saw_a_write(key, read, write),
            Source::Initial => self.missed(key, read),
        }
    }

    /// Something somebody wrote was seen, which was not to be seen.
    fn saw_a_write(&self, key: KeyId, read: OpId, write: OpId) -> Evidence {
        let own = self.finding.txn;
        let writer = self.owner(write);
        let saw = self.edge(Some(writer), own, EdgeKind::Wr, Reason::Saw { read, write: Some(write) });
        if self.history.transaction(writer).status() == Status::Aborted {
            return self.one(anomaly("G1a", Some("aborted read")), vec![saw]);
        }
        let overwritten = matches!(self.history.operation(write), history::Operation::Write { .. })
            && self.last_write(writer, key).is_some_and(|last| last != write);
        if overwritten && writer != own {
            return self.one(anomaly("G1b", Some("intermediate read")), vec![saw]);
        }
        let times = |txn| self.history.transaction(txn).db();
        let later = times(writer).zip(times(own)).is_some_and(|((_, commit), (start, _))| commit > start);
        if later && writer != own {
            let edges = vec![saw, self.by_time(own, writer)];
            return self.one(anomaly("future-read", Some("a version outside the snapshot")), edges);
        }
        self.missed(key, read)
    }

    /// A version that had to be seen was not.
    fn missed(&self, key: KeyId, read: OpId) -> Evidence {
        let name = anomaly("G-single", Some(if self.is_predicate() { "phantom" } else { "stale read" }));
        let own = self.finding.txn;
        let Some(writer) = self.missed_writer(key).or(self.finding.other) else {
            return self.one(name, vec![]);
        };
        let Some(write) = self.last_write(writer, key) else { return self.one(name, vec![]) };
        let edges = vec![
            self.by_time(writer, own),
            self.edge(Some(own), writer, EdgeKind::Rw, Reason::Missed { read, write }),
        ];
        self.one(name, edges)
    }

    // ---- looking for writers ----

    fn owner(&self, op: OpId) -> TxnId {
        self.history.owner(op)
    }

    /// The operations of a transaction that may have written a key, in order.
    fn writes(&self, txn: TxnId, key: KeyId) -> impl DoubleEndedIterator<Item = OpId> {
        let history = self.history;
        history.transaction(txn).op_ids().filter(move |&op| history.primitive(op).may_have_written(key))
    }

    fn last_write(&self, txn: TxnId, key: KeyId) -> Option<OpId> {
        self.writes(txn, key).next_back()
    }

    /// What the operation showed of the key.
    fn seen_value(&self) -> ValueId {
        match self.finding.seen {
            Content::Value(value) => value,
            _ => ValueId::ABSENT,
        }
    }

    fn list_of(&self, content: &Content) -> Option<Vec<ValueId>> {
        match content {
            Content::List(elements) => Some(elements.to_vec()),
            Content::Value(id) if id.is_known() => match self.history.values().get(*id) {
                ValueRef::List(elements) => Some(elements.to_vec()),
                ValueRef::Null => Some(Vec::new()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Seen and expected, where both are lists, and how far they agree.
    fn lists(&self) -> Option<(Vec<ValueId>, Vec<ValueId>, usize)> {
        let (seen, expected) = (self.list_of(&self.finding.seen)?, self.list_of(&self.finding.expected)?);
        if seen.is_empty() && expected.is_empty() {
            return None;
        }
        let agree = seen.iter().zip(&expected).take_while(|(a, b)| a == b).count();
        Some((seen, expected, agree))
    }

    /// Who appended the first element that is missing.
    fn missed_writer(&self, key: KeyId) -> Option<TxnId> {
        let (_, expected, agree) = self.lists()?;
        let element = *expected.get(agree)?;
        self.find_write(|operation| matches!(operation, Primitive::Append { key: at, value } if at == key && value == element))
            .map(|op| self.owner(op))
    }

    /// Who wrote a value that was seen; for lists, the first element that was not expected.
    fn source(&self, key: KeyId, value: ValueId) -> Source {
        if let Some((seen, _, agree)) = self.lists() {
            let Some(&element) = seen.get(agree) else { return Source::Initial };
            let appended = self.find_write(|operation| {
                matches!(operation, Primitive::Append { key: at, value } if at == key && value == element)
            });
            if let Some(write) = appended {
                return Source::Write(write);
            }
        }
        if value == ValueId::ABSENT || self.history.initial_value(key) == value {
            return Source::Initial;
        }
        let wrote = |operation: Primitive<'_>| {
            operation.written_value() == Some(value) && operation.may_have_written(key)
        };
        self.find_write(wrote).map_or(Source::Nobody, Source::Write)
    }

    /// The first such write, of a committed transaction if there is one.
    fn find_write(&self, wanted: impl Fn(Primitive<'_>) -> bool) -> Option<OpId> {
        let of = |committed: bool| {
            self.history
                .transactions()
                .filter(move |txn| (txn.status() != Status::Aborted) == committed)
                .flat_map(|txn| txn.primitives())
                .find(|(_, operation)| wanted(*operation))
                .map(|(op, _)| op)
        };
        of(true).or_else(|| of(false))
    }
}
