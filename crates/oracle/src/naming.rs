//! A name for a violation: the anomalies that are checked first, else the simplest cycle, else the one that
//! the level is named for.
//!
//! This never decides anything: that a history is violated is known before it is asked how to call it.
//! The simplest cycle is the anomaly of the weakest rule, with the fewest orders, that already rejects the
//! history. Before that it looks at single reads of committed transactions:
//! * `internal`: the transaction's own earlier writes fix what the read must see, and it saw something else;
//! * `thin-air`: nobody wrote what was read;
//! * `G1a`: only aborted transactions did;
//! * `G1b`: only writes did that their own transaction overwrote.

use super::content::Content;
use history::{History, KeyId, Operation, Row, Status, Transaction, TxnId, ValueId};
use isolation::{Anomaly, Evidence, Level, Options, Rule, Ryow, implications};

/// The evidence that an exhaustive search gives: the name, and every transaction that may have taken effect.
pub(super) fn evidence(
    history: &History,
    level: Level,
    options: &Options,
    rejects: impl Fn(Level) -> bool,
) -> Evidence {
    let effective = history.transactions().filter(|txn| txn.status() != Status::Aborted);
    let all: Vec<TxnId> = effective.map(|txn| txn.id()).collect();
    let (name, transactions) = match bad_read(history, level, options) {
        // That a write was overwritten is seen at its writer, not at the reader.
        Some((name @ "G1b", _)) => (name.to_owned(), all),
        Some((name, txn)) => (name.to_owned(), vec![txn]),
        None => (simplest_cycle(level, rejects), all),
    };
    Evidence {
        anomaly: Anomaly { common: common_name(&name), name },
        transactions,
        edges: Vec::new(),
        support: Vec::new(),
        cases: None,
    }
}

/// The rules that have an anomaly of their own in Elle's vocabulary, from weak to strong.
const CYCLES: [(Rule, &str); 6] = [
    (Rule::ReadUncommitted, "G0"),
    (Rule::ReadCommitted, "G1c"),
    (Rule::ConsistentView, "G-single"),
    (Rule::SnapshotIsolation, "G-nonadjacent"),
    (Rule::RepeatableRead, "G2-item"),
    (Rule::Serializable, "G2"),
];

fn simplest_cycle(level: Level, rejects: impl Fn(Level) -> bool) -> String {
    for (rule, name) in CYCLES.into_iter().filter(|&(rule, _)| implied(level.rule, rule)) {
        for (session, realtime, suffix) in
            [(false, false, ""), (true, false, "-process"), (true, true, "-realtime")]
        {
            let weaker = Level::new(rule, session, realtime);
            let counts_no_more = session <= level.session && realtime <= level.realtime;
            if counts_no_more && weaker != level && rejects(weaker) {
                return format!("{name}{suffix}");
            }
        }
    }
    level.row().map_or("violation", |row| row.anomaly).to_owned()
}

/// Whether what the weaker rule forbids is forbidden by the stronger one too, on any graph.
fn implied(stronger: Rule, weaker: Rule) -> bool {
    let plain = |rule| Level::new(rule, false, false);
    let mut reached = vec![plain(stronger)];
    let mut next = 0;
    while let Some(&level) = reached.get(next) {
        next += 1;
        for implication in implications() {
            let new = implication.stronger == level && !implication.without_predicates;
            if new && !reached.contains(&implication.weaker) {
                reached.push(implication.weaker);
            }
        }
    }
    reached.contains(&plain(weaker))
}

fn common_name(name: &str) -> Option<&'static str> {
    match name {
        "G1a" => Some("aborted read"),
        "G1b" => Some("intermediate read"),
        "thin-air" => Some("value from nowhere"),
        _ => None,
    }
}

/// The first read that is wrong whatever the order is.
fn bad_read(history: &History, level: Level, options: &Options) -> Option<(&'static str, TxnId)> {
    for txn in history.transactions().filter(Transaction::is_committed) {
        let mut own = OwnWrites::default();
        for (_, operation) in txn.ops() {
            for row in rows_read(history, &operation) {
                let seen = Content::of(history.values(), row.value);
                let name = judge(history, level, options, &own, row.key, &seen);
                if let Some(name) = name {
                    return Some((name, txn.id()));
                }
            }
            own.note(history, &operation);
        }
    }
    None
}

fn judge(
    history: &History,
    level: Level,
    options: &Options,
    own: &OwnWrites,
    key: KeyId,
    seen: &Content,
) -> Option<&'static str> {
    let sources = Sources::of(history, key, seen);
    let dirty_allowed = level.rule == Rule::ReadUncommitted;
    match own.of_key(key) {
        _ if sources == Sources::Nobody => Some("thin-air"),
        _ if dirty_allowed => None,
        Some(own) if options.ryow == Ryow::Must => (!own.agrees(seen)).then_some("internal"),
        Some(own) if options.ryow == Ryow::May && own.agrees(seen) => None,
        _ => match sources {
            Sources::Aborted => Some("G1a"),
            Sources::Intermediate => Some("G1b"),
            _ => None,
        },
    }
}

/// The keys and values that an operation certainly saw. A query's row that holds nothing says only that the
/// key does not satisfy it.
fn rows_read(history: &History, operation: &Operation<'_>) -> Vec<Row> {
    let known = |row: &Row| row.value.is_known();
    let there = |row: &Row| known(row) && Content::of(history.values(), row.value).is_present();
    match *operation {
        Operation::Read { key, value, .. } => [Row { key, value }].into_iter().filter(known).collect(),
        Operation::Scan { rows: Some(rows), .. } | Operation::Iterate { rows: Some(rows), .. } => {
            rows.iter().copied().filter(known).collect()
        }
        Operation::Query { rows: Some(rows), .. } => rows.iter().copied().filter(there).collect(),
        Operation::Cas { key, expect, ok: Some(true), .. } => vec![Row { key, value: expect }],
        _ => Vec::new(),
    }
}

/// What a transaction has written so far, as far as it is certain.
#[derive(Default)]
struct OwnWrites {
    keys: Vec<(KeyId, Own)>,
}

/// A transaction's own effect on a key.
#[derive(Clone)]
enum Own {
    /// Exactly this.
    Exactly(Content),
    /// Whatever was there, with these elements added.
    Added(Vec<ValueId>),
    /// A predicate write may have changed it.
    Unsure,
}

impl Own {
    fn agrees(&self, seen: &Content) -> bool {
        match (self, seen) {
            (Self::Unsure, _) => true,
            (Self::Exactly(content), seen) => content == seen,
            (Self::Added(added), Content::List(elements)) => elements.ends_with(added),
            (Self::Added(_), _) => false,
        }
    }
}

impl OwnWrites {
    fn of_key(&self, key: KeyId) -> Option<&Own> {
        self.keys.iter().find(|(written, _)| *written == key).map(|(_, own)| own)
    }

    fn set(&mut self, key: KeyId, own: Own) {
        self.keys.retain(|(written, _)| *written != key);
        self.keys.push((key, own));
    }

    fn note(&mut self, history: &History, operation: &Operation<'_>) {
        match *operation {
            Operation::Write { key, value } => {
                self.set(key, Own::Exactly(Content::of(history.values(), value)))
            }
            Operation::Delete { key } => self.set(key, Own::Exactly(Content::Absent)),
            Operation::Append { key, value } => {
                let own = match self.of_key(key) {
                    Some(Own::Exactly(content)) => Own::Exactly(content.append(value)),
                    Some(Own::Added(added)) => Own::Added([added.as_slice(), &[value]].concat()),
                    Some(Own::Unsure) => Own::Unsure,
                    None => Own::Added(vec![value]),
                };
                self.set(key, own);
            }
            Operation::Cas { key, write, ok, .. } => match ok {
                Some(true) => self.set(key, Own::Exactly(Content::of(history.values(), write))),
                Some(false) => {}
                None => self.set(key, Own::Unsure),
            },
            Operation::Update { .. } | Operation::DeleteWhere { .. } => {
                for key in history.keys().ids() {
                    self.set(key, Own::Unsure);
                }
            }
            _ => {}
        }
    }
}

/// Who can have written what was read, the best of all writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sources {
    Nobody,
    Aborted,
    Intermediate,
    Final,
}

impl Sources {
    fn of(history: &History, key: KeyId, seen: &Content) -> Self {
        let writes = writes_to(history, key);
        let appended = writes.iter().any(|write| matches!(write.what, What::Appends(_)));
        match seen {
            // A list that appends made: the worst of its elements, where the last one must be final.
            Content::List(elements) if appended => elements
                .iter()
                .enumerate()
                .map(|(place, &element)| {
                    let last = place + 1 == elements.len();
                    let found = writes.iter().filter(|write| write.provides(element));
                    let found = found.map(|write| write.source).max().unwrap_or(Self::Nobody);
                    if last || found != Self::Intermediate { found } else { Self::Final }
                })
                .min()
                .unwrap_or(Self::Final),
            _ => {
                let found = writes.iter().filter(|write| write.what == What::Sets(seen.clone()));
                found.map(|write| write.source).max().unwrap_or(Self::Nobody)
            }
        }
    }
}

/// One write that may have reached a key.
struct Write {
    what: What,
    source: Sources,
}

#[derive(PartialEq)]
enum What {
    Sets(Content),
    Appends(ValueId),
}

impl Write {
    fn provides(&self, element: ValueId) -> bool {
        match &self.what {
            What::Appends(appended) => *appended == element,
            What::Sets(Content::List(elements)) => elements.contains(&element),
            What::Sets(Content::Single(value)) => *value == element,
            What::Sets(Content::Absent) => false,
        }
    }
}

/// Every write that may have reached a key, with what it would mean to read it.
fn writes_to(history: &History, key: KeyId) -> Vec<Write> {
    let values = history.values();
    let initial = Content::of(values, history.initial_value(key));
    let mut all = vec![Write { what: What::Sets(initial), source: Sources::Final }];
    for txn in history.transactions() {
        let mut later_write = false;
        for (_, operation) in txn.ops().collect::<Vec<_>>().into_iter().rev() {
            let (what, certain) = match operation {
                Operation::Write { key: at, value } if at == key => {
                    (What::Sets(Content::of(values, value)), true)
                }
                Operation::Delete { key: at } if at == key => (What::Sets(Content::Absent), true),
                Operation::Append { key: at, value } if at == key => (What::Appends(value), true),
                Operation::Cas { key: at, write, ok, .. } if at == key && ok != Some(false) => {
                    (What::Sets(Content::of(values, write)), ok == Some(true))
                }
                Operation::Update { set, .. } => (What::Sets(Content::of(values, set)), false),
                Operation::DeleteWhere { .. } => (What::Sets(Content::Absent), false),
                _ => continue,
            };
            let source = match txn.status() {
                Status::Aborted => Sources::Aborted,
                _ if later_write => Sources::Intermediate,
                _ => Sources::Final,
            };
            later_write |= certain;
            all.push(Write { what, source });
        }
    }
    all
}
