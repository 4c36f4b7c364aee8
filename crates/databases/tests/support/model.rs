//! A database held against a map: one session, random operations, equal answers.

use super::Random;
use history::{Comparison, Lock, Name};
use std::collections::BTreeMap;
use taipan_databases::{
    Access, Condition, Database, KeyRange, Kind, Request, Response, SCALAR_COLUMN, Schema, Session, Value,
    satisfies,
};

type Model = BTreeMap<Name, Value>;

/// Runs `steps` random operations on tables of every shape and compares each answer with a map's.
pub fn conforms(database: &dyn Database, steps: usize) {
    shape(database, &Schema::integers(), steps, 1);
    shape(database, &Schema::lists(), steps, 2);
    shape(database, &Schema::rows(&["v1", "v2"]), steps, 3);
    let text = Schema::with(Kind::Text, &[(SCALAR_COLUMN, Kind::Text)]);
    shape(database, &text, steps, 4);
    let mixed =
        Schema::with(Kind::Text, &[(SCALAR_COLUMN, Kind::Int), ("list", Kind::List), ("v1", Kind::Int)]);
    shape(database, &mixed, steps, 5);
}

fn shape(database: &dyn Database, schema: &Schema, steps: usize, seed: u64) {
    let mut random = Random(seed);
    let mut model = Model::new();
    let initial: Vec<(Name, Value)> =
        (0..5).map(|key| (name(schema, key), value(schema, &mut random, &Value::Null))).collect();
    model.extend(initial.iter().cloned());
    database.create(schema, &initial).unwrap();
    let mut session = database.connect(schema).unwrap();
    let isolation = database.isolations().last().unwrap();
    let mut step = 0;
    while step < steps {
        session.begin(isolation, Access::ReadWrite).unwrap();
        let before = model.clone();
        for _ in 0..=random.below(6) {
            let request = request(schema, &mut random, &model);
            let seen = session.execute(&request).unwrap();
            let expected = apply(&mut model, &request);
            assert!(agrees(&request, &seen, &expected), "{request:?}\n seen {seen:?}\n want {expected:?}");
            step += 1;
        }
        if random.below(4) == 0 {
            session.rollback().unwrap();
            model = before;
        } else {
            session.commit().unwrap();
        }
    }
    let all = session_scan(&mut *session, database);
    assert_eq!(all, model.into_iter().collect::<Vec<_>>(), "what is left in the end");
}

fn session_scan(session: &mut dyn Session, database: &dyn Database) -> Vec<(Name, Value)> {
    session.begin(database.isolations().last().unwrap(), Access::ReadWrite).unwrap();
    let answer = session.execute(&Request::Scan { range: KeyRange::default() }).unwrap();
    session.commit().unwrap();
    match answer {
        Response::Rows { rows, .. } => rows,
        other => panic!("a scan answered {other:?}"),
    }
}

/// A database may know less than the map (which keys an update changed), never something else; the
/// rows of a query come in any order.
fn agrees(request: &Request, seen: &Response, expected: &Response) -> bool {
    match (seen, expected) {
        (Response::Changed { count: seen_count, keys: seen_keys }, Response::Changed { count, keys }) => {
            let sorted = |keys: &Option<Vec<Name>>| {
                keys.clone().map(|mut keys| {
                    keys.sort();
                    keys
                })
            };
            (seen_count.is_none() || seen_count == count)
                && (seen_keys.is_none() || sorted(seen_keys) == sorted(keys))
        }
        (Response::Rows { rows: seen, .. }, Response::Rows { rows, .. })
            if matches!(request, Request::Query { .. }) =>
        {
            let mut seen = seen.clone();
            seen.sort_by(|a, b| a.0.cmp(&b.0));
            seen == *rows
        }
        // Whether something was there.
        (Response::Done, Response::Value(Value::Null)) => matches!(request, Request::Delete { .. }),
        (seen, expected) => seen == expected,
    }
}

fn name(schema: &Schema, key: i64) -> Name {
    match schema.key {
        Kind::Int => Name::Int(key - 3),
        _ => Name::Str(
            ["", "a", "A", "a ", "b", "é", "z\u{10000}", "key:1", "key:10", "key:2"][key as usize].into(),
        ),
    }
}

fn value(schema: &Schema, random: &mut Random, old: &Value) -> Value {
    let scalar = |kind: Kind, random: &mut Random| match kind {
        Kind::Int => Value::Int(random.int(9) - 2),
        _ => Value::Text(["", "x", "X", "x ", "it's", "\"q\"", "ü\\"][random.below(7) as usize].into()),
    };
    let lists = schema.columns.iter().any(|column| column.kind == Kind::List);
    if lists && (schema.columns.len() == 1 || random.below(3) == 0 || matches!(old, Value::List(_))) {
        return Value::List((0..=random.below(3)).map(|_| scalar(Kind::Int, random)).collect());
    }
    let scalars = schema.columns.iter().find(|column| column.name == SCALAR_COLUMN);
    match scalars {
        Some(column) if schema.columns.len() == 1 || random.below(2) == 0 => scalar(column.kind, random),
        _ => Value::Row(
            schema
                .columns
                .iter()
                .filter(|column| column.kind != Kind::List && column.name != SCALAR_COLUMN)
                .map(|column| (column.name.clone(), scalar(column.kind, random)))
                .collect(),
        ),
    }
}

fn condition(schema: &Schema, random: &mut Random, depth: u32) -> Condition {
    match random.below(if depth == 0 { 1 } else { 5 }) {
        0 | 1 => {
            let columns: Vec<_> = schema.columns.iter().filter(|column| column.kind != Kind::List).collect();
            let (name, kind) = match columns.len() {
                0 => ("value".to_owned(), Kind::Int),
                len => {
                    let column = columns[random.below(len as u64) as usize];
                    (column.name.clone(), column.kind)
                }
            };
            let with = Comparison::ALL[random.below(6) as usize].1;
            let constant = match (kind, random.below(8)) {
                (Kind::Int, 1..) => Value::Int(random.int(7)),
                (_, 1..) => Value::Text("x".into()),
                (Kind::Int, 0) => Value::Text("5".into()),
                _ => Value::Int(5),
            };
            Condition::compare(name, with, constant)
        }
        2 => Condition::Not(Box::new(condition(schema, random, depth - 1))),
        kind => {
            let parts = (0..random.below(3)).map(|_| condition(schema, random, depth - 1)).collect();
            if kind == 3 { Condition::All(parts) } else { Condition::Any(parts) }
        }
    }
}

fn request(schema: &Schema, random: &mut Random, model: &Model) -> Request {
    let key = name(schema, random.int(10));
    let old = model.get(&key).cloned().unwrap_or(Value::Null);
    let lists = schema.columns.iter().any(|column| column.kind == Kind::List);
    let range = |random: &mut Random| KeyRange {
        from: (random.below(3) > 0).then(|| name(schema, random.int(10))),
        to: (random.below(3) > 0).then(|| name(schema, random.int(10))),
    };
    match random.below(13) {
        0..=1 => {
            Request::Read { key, lock: [Lock::None, Lock::Share, Lock::Update][random.below(3) as usize] }
        }
        2..=4 if lists && matches!(old, Value::Null | Value::List(_)) => {
            Request::Append { key, value: Value::Int(random.int(50)) }
        }
        2..=5 => Request::Write { key, value: value(schema, random, &old) },
        6 => Request::Delete { key },
        7 => Request::Scan { range: range(random) },
        8 => Request::Iterate {
            range: range(random),
            reverse: random.below(2) == 0,
            limit: 1 + random.below(5) as u32,
        },
        9..=10 => Request::Query { condition: condition(schema, random, 2) },
        11 => Request::Update {
            condition: condition(schema, random, 2),
            set: value(schema, random, &Value::Null),
        },
        _ => Request::DeleteWhere { condition: condition(schema, random, 2) },
    }
}

fn apply(model: &mut Model, request: &Request) -> Response {
    let pick = |model: &Model, keep: &dyn Fn(&Name, &Value) -> bool| -> Vec<(Name, Value)> {
        model.iter().filter(|(key, value)| keep(key, value)).map(|(k, v)| (k.clone(), v.clone())).collect()
    };
    match request {
        Request::Read { key, .. } => Response::Value(model.get(key).cloned().unwrap_or(Value::Null)),
        Request::Write { key, value } => {
            model.insert(key.clone(), value.clone());
            Response::Done
        }
        Request::Append { key, value } => {
            match model.entry(key.clone()).or_insert(Value::List(vec![])) {
                Value::List(elements) => elements.push(value.clone()),
                other => panic!("appended to {other:?}"),
            }
            Response::Done
        }
        Request::Delete { key } => match model.remove(key) {
            Some(_) => Response::Done,
            None => Response::Value(Value::Null),
        },
        Request::Scan { range } => {
            Response::Rows { rows: pick(model, &|key, _| range.contains(key)), exhausted: true }
        }
        Request::Iterate { range, reverse, limit } => {
            let mut rows = pick(model, &|key, _| range.contains(key));
            if *reverse {
                rows.reverse();
            }
            let exhausted = rows.len() < *limit as usize;
            rows.truncate(*limit as usize);
            Response::Rows { rows, exhausted }
        }
        Request::Query { condition } => {
            Response::Rows { rows: pick(model, &|_, value| satisfies(condition, value)), exhausted: true }
        }
        Request::Update { condition, set } => {
            let keys: Vec<Name> = pick(model, &|_, value| satisfies(condition, value))
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            for key in &keys {
                model.insert(key.clone(), set.clone());
            }
            Response::Changed { count: Some(keys.len() as u64), keys: Some(keys) }
        }
        Request::DeleteWhere { condition } => {
            let keys: Vec<Name> = pick(model, &|_, value| satisfies(condition, value))
                .into_iter()
                .map(|(key, _)| key)
                .collect();
            for key in &keys {
                model.remove(key);
            }
            Response::Changed { count: Some(keys.len() as u64), keys: Some(keys) }
        }
    }
}

/// A transaction that is rolled back, and one whose session is dropped, leave nothing behind.
pub fn rolls_back(database: &dyn Database) {
    let schema = Schema::integers();
    database.create(&schema, &[(1.into(), Value::Int(10))]).unwrap();
    let isolation = database.isolations().last().unwrap();
    let mut session = database.connect(&schema).unwrap();
    session.begin(isolation, Access::ReadWrite).unwrap();
    session.execute(&Request::write(1, 11)).unwrap();
    session.rollback().unwrap();
    session.rollback().expect("a second rollback does nothing");
    session.begin(isolation, Access::ReadWrite).unwrap();
    session.execute(&Request::write(1, 12)).unwrap();
    drop(session);
    let mut session = database.connect(&schema).unwrap();
    assert_eq!(session_scan(&mut *session, database), [(Name::Int(1), Value::Int(10))]);
}
