//! Random histories over every operation, and a text form of a history that does not depend on ids.

use proptest::prelude::*;
use std::fmt::Write as _;
use taipan_history::{
    Builder, Cell, Comparison, History, KeyId, Lock, Name, Operation, Predicate, Range, Row, Span, Status,
    Timestamp, Transaction, ValueId, ValueRef, Values,
};

const TEXTS: &[&str] = &[
    "",
    "_",
    "1",
    "-0",
    "007",
    "1e5",
    "1.5",
    "true",
    "null",
    "a",
    "b",
    "x",
    "k/1",
    "a b",
    "é",
    "\"\\\n\u{0}\u{7f}",
    "x.y",
    "a..b",
    "a-",
    "->",
    "end",
    "desc",
    "#",
    "init",
    "level",
    "header",
    "%%",
    "%{}",
    "or",
    "none",
    "not",
    "?",
    "s1:0",
    "1:0",
    "99999999999999999999",
    "\u{feff}",
    "𝄞",
    "[",
    "{\"",
];

pub(crate) fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(TEXTS).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| text.chars().take(8).collect::<String>()),
    ]
}

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![
        3 => (0i64..6).prop_map(Name::Int),
        1 => any::<i64>().prop_map(Name::Int),
        3 => text().prop_map(Name::Str),
    ]
}

#[derive(Clone, Debug)]
enum Value {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Row(Vec<(String, Value)>),
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::Bool),
        4 => (0i64..9).prop_map(Value::Int),
        1 => any::<i64>().prop_map(Value::Int),
        1 => any::<u64>().prop_map(Value::UInt),
        1 => any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(Value::Float),
        1 => prop::sample::select(vec![1e19, 1.5, -2.0, 1e300, 5e-324, -0.0, 9.3e18]).prop_map(Value::Float),
        2 => text().prop_map(Value::Text),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let list = || prop::collection::vec(scalar(), 0..4);
    let nested = list().prop_map(|inside| Value::List(vec![Value::List(inside), Value::Int(1)]));
    let row = prop::collection::btree_map(text(), scalar(), 0..4);
    prop_oneof![
        6 => scalar(),
        2 => list().prop_map(Value::List),
        1 => nested,
        2 => row.prop_map(|cells| Value::Row(cells.into_iter().collect())),
    ]
}

#[derive(Clone, Debug)]
enum Where {
    All(Vec<Where>),
    Any(Vec<Where>),
    Not(Box<Where>),
    Compare(String, Comparison, Value),
}

fn predicate() -> impl Strategy<Value = Where> {
    let with = prop::sample::select(Comparison::ALL.map(|(_, with)| with).to_vec());
    // A column called `not` can only be compared with `=` in JSON; see the test of that refusal.
    let column = text().prop_filter("not", |name| name != "not");
    let leaf = (column, with, value()).prop_map(|(column, with, value)| Where::Compare(column, with, value));
    leaf.prop_recursive(3, 12, 3, |inside| {
        let parts = prop::collection::vec(inside.clone(), 0..4);
        prop_oneof![
            parts.clone().prop_map(Where::All),
            parts.prop_map(Where::Any),
            inside.prop_map(|part| Where::Not(Box::new(part))),
        ]
    })
}

#[derive(Clone, Debug)]
enum Op {
    Read(Name, Option<Value>, Lock),
    Write(Name, Value),
    Delete(Name),
    Append(Name, Value),
    Scan(Option<Name>, Option<Name>, Option<Vec<(Name, Value)>>),
    Iterate(Option<Name>, Option<Name>, bool, bool, Option<Vec<(Name, Value)>>),
    Query(Where, Option<Vec<(Name, Value)>>),
    Update(Where, Value, Option<u64>, Option<Vec<Name>>),
    DeleteWhere(Where, Option<u64>, Option<Vec<Name>>),
    Cas(Name, Value, Value, Option<bool>),
}

fn operation() -> impl Strategy<Value = Op> {
    let lock = prop::sample::select(vec![Lock::None, Lock::None, Lock::Share, Lock::Update]);
    let rows = || prop::option::of(prop::collection::vec((name(), value()), 0..3));
    let bound = || prop::option::of(name());
    let count = || prop::option::of(prop_oneof![0u64..9, Just(u64::MAX - 1)]);
    let keys = || prop::option::of(prop::collection::vec(name(), 0..3));
    prop_oneof![
        4 => (name(), prop::option::of(value()), lock).prop_map(|(key, value, lock)| Op::Read(key, value, lock)),
        4 => (name(), value()).prop_map(|(key, value)| Op::Write(key, value)),
        1 => name().prop_map(Op::Delete),
        2 => (name(), value()).prop_map(|(key, value)| Op::Append(key, value)),
        1 => (bound(), bound(), rows()).prop_map(|(from, to, rows)| Op::Scan(from, to, rows)),
        1 => (bound(), bound(), any::<bool>(), any::<bool>(), rows())
            .prop_map(|(from, to, reverse, exhausted, rows)| Op::Iterate(from, to, reverse, exhausted, rows)),
        1 => (predicate(), rows()).prop_map(|(predicate, rows)| Op::Query(predicate, rows)),
        // A row would be refused where it has some columns of others only.
        1 => (predicate(), value().prop_filter("row", |set| !matches!(set, Value::Row(_))), count(), keys())
            .prop_map(|(predicate, set, count, keys)| Op::Update(predicate, set, count, keys)),
        1 => (predicate(), count(), keys())
            .prop_map(|(predicate, count, keys)| Op::DeleteWhere(predicate, count, keys)),
        1 => (name(), value(), value(), any::<Option<bool>>())
            .prop_map(|(key, expect, write, ok)| Op::Cas(key, expect, write, ok)),
    ]
}

fn span() -> impl Strategy<Value = Span> {
    let near = (0i64..100, 0i64..100).prop_map(|(a, b)| Span { begin: a.min(b), end: a.max(b) });
    let far = (any::<i64>(), any::<i64>()).prop_map(|(a, b)| Span { begin: a.min(b), end: a.max(b) });
    let open = (0i64..100).prop_map(|begin| Span { begin, end: i64::MAX });
    prop_oneof![3 => near, 1 => far, 1 => open]
}

fn timestamps() -> impl Strategy<Value = (Timestamp, Timestamp)> {
    let one = (0i64..9, 0u32..3).prop_map(|(physical, logical)| Timestamp { physical, logical });
    let never = Timestamp { physical: i64::MAX, logical: u32::MAX };
    prop_oneof![
        4 => (one.clone(), one.clone()).prop_map(|(a, b)| (a.min(b), a.max(b))),
        1 => one.prop_map(move |start| (start, never)),
    ]
}

const OBJECTS: &[&str] =
    &["{\"a\":1}", "{\"why\":[1,{\"c\":null}],\"é\\n\":\"}\"}", "{\"locked\":0,\"deep\":[[[]]]}"];
/// What a transaction and an operation may hold that is only kept.
const SEQUENCE: &[&str] = &["{\"seq\":0}", "{\"seq\":17}"];
const HINTS: &[&str] = &["{\"ctx\":{}}", "{\"ctx\":{\"why\":[1,{\"c\":null}],\"é\\n\":\"}\"}}"];

fn one_of(of: &'static [&'static str]) -> impl Strategy<Value = Option<String>> {
    prop::option::weighted(0.15, prop::sample::select(of).prop_map(str::to_owned))
}

#[derive(Clone, Debug)]
struct Txn {
    session: Name,
    id: Option<Name>,
    status: Status,
    client: Option<Span>,
    db: Option<(Timestamp, Timestamp)>,
    level: Option<String>,
    ctx: Option<String>,
    extra: Option<String>,
    ops: Vec<(Op, Option<Span>, Option<String>)>,
}

fn transaction() -> impl Strategy<Value = Txn> {
    let status =
        prop::sample::select(vec![Status::Committed, Status::Committed, Status::Aborted, Status::Unknown]);
    let ops = prop::collection::vec((operation(), prop::option::weighted(0.1, span()), one_of(HINTS)), 0..4);
    let id = prop::option::weighted(0.3, name());
    let level = prop::option::weighted(0.1, text());
    let clocks = (prop::option::of(span()), prop::option::of(timestamps()));
    (name(), id, status, clocks, level, one_of(OBJECTS), one_of(SEQUENCE), ops).prop_map(
        |(session, id, status, (client, db), level, ctx, extra, ops)| Txn {
            session,
            id,
            status,
            client,
            db,
            level,
            ctx,
            extra,
            ops,
        },
    )
}

/// A random history.
pub(crate) fn history() -> impl Strategy<Value = History> {
    let initial = prop::collection::vec((name(), value()), 0..4);
    let level =
        prop::option::weighted(0.3, text().prop_filter("a level has a name", |text| !text.is_empty()));
    let transactions = prop::collection::vec(transaction(), 0..8);
    (initial, level, one_of(OBJECTS), transactions).prop_map(|(initial, level, extra, transactions)| {
        let mut builder = Builder::new();
        for (key, value) in &initial {
            let (key, value) = (builder.key(key.as_ref()), build_value(&mut builder, value));
            builder.initial(key, value);
        }
        if let Some(level) = level {
            builder.set_level(&level);
        }
        if let Some(extra) = extra {
            builder.set_header_extra(&extra);
        }
        for txn in &transactions {
            build_transaction(&mut builder, txn);
        }
        builder.finish().expect("a random history is a possible one")
    })
}

/// A transaction whose id is taken goes by its default id, or not at all.
fn build_transaction(builder: &mut Builder, txn: &Txn) {
    let session = builder.session(txn.session.as_ref());
    builder.begin(session);
    let _ = txn.id.as_ref().map(|id| builder.set_id(id.as_ref()));
    builder.set_status(txn.status);
    if let Some(span) = txn.client {
        builder.set_client(span).expect("ordered");
    }
    if let Some((start, commit)) = txn.db {
        builder.set_db(start, commit).expect("ordered");
    }
    if let Some(level) = &txn.level {
        builder.set_txn_level(level);
    }
    if let Some(ctx) = &txn.ctx {
        builder.set_ctx(ctx);
    }
    if let Some(extra) = &txn.extra {
        builder.set_txn_extra(extra);
    }
    for (op, at, extra) in &txn.ops {
        build_operation(builder, op);
        if let Some(span) = at {
            builder.set_op_at(*span).expect("ordered");
        }
        if let Some(extra) = extra {
            builder.set_op_extra(extra);
        }
    }
    let _ = builder.end();
}

fn build_operation(builder: &mut Builder, op: &Op) {
    match op {
        Op::Read(key, value, lock) => {
            let key = builder.key(key.as_ref());
            let value = value.as_ref().map_or(ValueId::UNKNOWN, |value| build_value(builder, value));
            builder.read(key, value, *lock);
        }
        Op::Write(key, value) => {
            let (key, value) = (builder.key(key.as_ref()), build_value(builder, value));
            builder.write(key, value);
        }
        Op::Delete(key) => {
            let key = builder.key(key.as_ref());
            builder.delete(key);
        }
        Op::Append(key, value) => {
            let (key, value) = (builder.key(key.as_ref()), build_value(builder, value));
            builder.append(key, value);
        }
        Op::Scan(from, to, rows) => {
            let range = build_range(builder, from, to);
            let rows = build_rows(builder, rows);
            builder.scan(range, rows.as_deref());
        }
        Op::Iterate(from, to, reverse, exhausted, rows) => {
            let range = build_range(builder, from, to);
            let rows = build_rows(builder, rows);
            builder.iterate(range, *reverse, *exhausted, rows.as_deref());
        }
        Op::Query(predicate, rows) => {
            let predicate = build_predicate(builder, predicate);
            let rows = build_rows(builder, rows);
            builder.query(predicate, rows.as_deref());
        }
        Op::Update(predicate, set, count, keys) => {
            let predicate = build_predicate(builder, predicate);
            let set = build_value(builder, set);
            let keys = build_keys(builder, keys);
            builder.update(predicate, set, *count, keys.as_deref());
        }
        Op::DeleteWhere(predicate, count, keys) => {
            let predicate = build_predicate(builder, predicate);
            let keys = build_keys(builder, keys);
            builder.delete_where(predicate, *count, keys.as_deref());
        }
        Op::Cas(key, expect, write, ok) => {
            let key = builder.key(key.as_ref());
            let (expect, write) = (build_value(builder, expect), build_value(builder, write));
            builder.cas(key, expect, write, *ok);
        }
    }
}

fn build_range(builder: &mut Builder, from: &Option<Name>, to: &Option<Name>) -> Range {
    let mut bound = |name: &Option<Name>| name.as_ref().map(|name| builder.key(name.as_ref()));
    Range { from: bound(from), to: bound(to) }
}

fn build_rows(builder: &mut Builder, rows: &Option<Vec<(Name, Value)>>) -> Option<Vec<Row>> {
    let mut row = |(key, value): &(Name, Value)| Row {
        key: builder.key(key.as_ref()),
        value: build_value(builder, value),
    };
    rows.as_ref().map(|rows| rows.iter().map(&mut row).collect())
}

fn build_keys(builder: &mut Builder, keys: &Option<Vec<Name>>) -> Option<Vec<KeyId>> {
    keys.as_ref().map(|keys| keys.iter().map(|key| builder.key(key.as_ref())).collect())
}

fn build_value(builder: &mut Builder, value: &Value) -> ValueId {
    match value {
        Value::Null => ValueId::ABSENT,
        Value::Bool(value) => builder.boolean(*value),
        Value::Int(value) => builder.int(*value),
        Value::UInt(value) => builder.uint(*value),
        Value::Float(value) => builder.float(*value),
        Value::Text(text) => builder.text(text),
        Value::List(elements) => {
            let elements: Vec<_> = elements.iter().map(|element| build_value(builder, element)).collect();
            builder.list(&elements)
        }
        Value::Row(cells) => {
            let cell = |builder: &mut Builder, (column, value): &(String, Value)| Cell {
                column: builder.column(column),
                value: build_value(builder, value),
            };
            let mut cells: Vec<_> = cells.iter().map(|entry| cell(builder, entry)).collect();
            builder.row(&mut cells)
        }
    }
}

fn build_predicate(builder: &mut Builder, predicate: &Where) -> Predicate {
    match predicate {
        Where::All(parts) => {
            Predicate::All(parts.iter().map(|part| build_predicate(builder, part)).collect())
        }
        Where::Any(parts) => {
            Predicate::Any(parts.iter().map(|part| build_predicate(builder, part)).collect())
        }
        Where::Not(part) => Predicate::Not(Box::new(build_predicate(builder, part))),
        Where::Compare(column, with, value) => Predicate::Compare {
            column: builder.column(column),
            with: *with,
            constant: build_value(builder, value),
        },
    }
}

// ---- a text form that does not depend on ids ----

/// The header and one text a transaction, in the order of the file.
pub(crate) fn show(history: &History) -> Vec<String> {
    let shown = Shown { history };
    let mut initial: Vec<String> = history.initial().iter().map(|row| shown.row(row)).collect();
    initial.sort();
    let header = format!("{initial:?} {:?} {:?}", history.level(), history.header_extra());
    std::iter::once(header).chain(history.transactions().map(|txn| shown.transaction(txn))).collect()
}

/// The same, ordered by session as the notation is.
pub(crate) fn show_by_session(history: &History) -> Vec<String> {
    let mut lines = show(history);
    lines[1..].sort();
    lines
}

struct Shown<'h> {
    history: &'h History,
}

impl Shown<'_> {
    fn transaction(&self, txn: Transaction<'_>) -> String {
        let session = self.history.sessions().get(txn.session()).to_owned();
        let mut out = format!("{session:?} {:06} {} {:?} ", txn.position(), txn.name(), txn.status());
        let _ = write!(out, "{:?} {:?} {:?} ", txn.explicit_id(), txn.client(), txn.db());
        let _ = write!(out, "{:?} {:?} {:?}", txn.level(), txn.ctx(), txn.extra_fields());
        for (id, op) in txn.ops() {
            let at = self.history.operation_at(id);
            let extra = self.history.operation_extra(id);
            let _ = write!(out, "\n  {} {at:?} {extra:?}", self.operation(op));
        }
        out
    }

    fn operation(&self, op: Operation<'_>) -> String {
        let name = op.name();
        match op {
            Operation::Read { key, value, lock } => {
                let value = if value.is_known() { self.value(value) } else { "?".into() };
                format!("{name} {} {value} {lock:?}", self.key(key))
            }
            Operation::Write { key, value } | Operation::Append { key, value } => {
                format!("{name} {} {}", self.key(key), self.value(value))
            }
            Operation::Delete { key } => format!("{name} {}", self.key(key)),
            Operation::Scan { range, rows } => format!("{name} {} {:?}", self.range(range), self.rows(rows)),
            Operation::Iterate { range, reverse, exhausted, rows } => {
                format!("{name} {} {reverse} {exhausted} {:?}", self.range(range), self.rows(rows))
            }
            Operation::Query { predicate, rows } => {
                format!("{name} {} {:?}", self.predicate(predicate), self.rows(rows))
            }
            Operation::Update { predicate, set, count, keys } => {
                let keys = self.keys(keys);
                format!("{name} {} {} {count:?} {keys:?}", self.predicate(predicate), self.value(set))
            }
            Operation::DeleteWhere { predicate, count, keys } => {
                format!("{name} {} {count:?} {:?}", self.predicate(predicate), self.keys(keys))
            }
            Operation::Cas { key, expect, write, ok } => {
                format!("{name} {} {} {} {ok:?}", self.key(key), self.value(expect), self.value(write))
            }
        }
    }

    fn key(&self, key: KeyId) -> String {
        format!("{:?}", self.history.keys().get(key))
    }

    fn keys(&self, keys: Option<&[KeyId]>) -> Option<Vec<String>> {
        keys.map(|keys| keys.iter().map(|&key| self.key(key)).collect())
    }

    fn range(&self, range: Range) -> String {
        format!("{:?}..{:?}", range.from.map(|key| self.key(key)), range.to.map(|key| self.key(key)))
    }

    fn row(&self, row: &Row) -> String {
        format!("{}: {}", self.key(row.key), self.value(row.value))
    }

    fn rows(&self, rows: Option<&[Row]>) -> Option<Vec<String>> {
        rows.map(|rows| rows.iter().map(|row| self.row(row)).collect())
    }

    fn value(&self, id: ValueId) -> String {
        show_value(self.history.values(), id)
    }

    /// Writers may write a conjunction as the negation of a disjunction: here both look the same.
    fn predicate(&self, predicate: &Predicate) -> String {
        self.normal(predicate).to_string()
    }

    fn normal(&self, predicate: &Predicate) -> Normal {
        match predicate {
            Predicate::All(parts) => {
                let mut flat = Vec::new();
                for part in parts.iter().map(|part| self.normal(part)) {
                    match part {
                        Normal::All(inside) => flat.extend(inside),
                        other => flat.push(other),
                    }
                }
                if flat.len() == 1 { flat.remove(0) } else { Normal::All(flat) }
            }
            Predicate::Any(parts) => {
                let parts: Vec<_> = parts.iter().map(|part| self.normal(part).negated()).collect();
                let mut flat = Vec::new();
                for part in parts {
                    match part {
                        Normal::All(inside) => flat.extend(inside),
                        other => flat.push(other),
                    }
                }
                let all = if flat.len() == 1 { flat.remove(0) } else { Normal::All(flat) };
                all.negated()
            }
            Predicate::Not(part) => self.normal(part).negated(),
            Predicate::Compare { column, with, constant } => {
                let column = self.history.values().columns().get(*column);
                Normal::Leaf(format!("{column:?} {with:?} {}", self.value(*constant)))
            }
        }
    }
}

/// Conjunctions, negations and leaves are enough.
enum Normal {
    All(Vec<Normal>),
    Not(Box<Normal>),
    Leaf(String),
}

impl Normal {
    fn negated(self) -> Self {
        match self {
            Self::Not(inside) => *inside,
            other => Self::Not(Box::new(other)),
        }
    }
}

impl std::fmt::Display for Normal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Leaf(text) => f.write_str(text),
            Self::Not(inside) => write!(f, "not({inside})"),
            Self::All(parts) => {
                let parts: Vec<String> = parts.iter().map(ToString::to_string).collect();
                write!(f, "all({})", parts.join(", "))
            }
        }
    }
}

fn show_value(values: &Values, id: ValueId) -> String {
    match values.get(id) {
        ValueRef::List(elements) => {
            let elements: Vec<_> = elements.iter().map(|&element| show_value(values, element)).collect();
            format!("[{}]", elements.join(", "))
        }
        ValueRef::Row(cells) => {
            let cell = |cell: &Cell| {
                format!("{:?}: {}", values.columns().get(cell.column), show_value(values, cell.value))
            };
            let mut cells: Vec<_> = cells.iter().map(cell).collect();
            cells.sort();
            format!("{{{}}}", cells.join(", "))
        }
        ValueRef::Float(value) => format!("Float({:x})", value.to_bits()),
        scalar => format!("{scalar:?}"),
    }
}
