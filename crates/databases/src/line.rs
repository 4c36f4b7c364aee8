//! Records as lines of the native format.

use crate::record::{Detail, Header, OpRecord, TxnRecord};
use crate::request::{Condition, KeyRange, Request, Response, Value};
use history::{Lock, Name, Span, Status};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// The first line.
pub(crate) fn header(header: &Header) -> String {
    let mut fields = Map::new();
    fields.insert("history".into(), 1.into());
    if !header.initial.is_empty() {
        fields.insert("initial".into(), initial(&header.initial));
    }
    if let Some(level) = &header.level {
        fields.insert("level".into(), level.as_str().into());
    }
    for (name, note) in &header.notes {
        fields.insert(name.clone(), note.as_str().into());
    }
    format!("{}\n", Json::Object(fields))
}

/// Rows where a key is an integer, which the name of an object's field cannot be.
fn initial(rows: &[(Name, Value)]) -> Json {
    let names: Option<Map<String, Json>> = rows
        .iter()
        .map(|(key, value)| match key {
            Name::Str(text) if text.parse::<i64>().is_err() => Some((text.clone(), value_json(value))),
            _ => None,
        })
        .collect();
    match names {
        Some(names) => Json::Object(names),
        None => rows.iter().map(|(key, value)| json!([name_json(key), value_json(value)])).collect(),
    }
}

/// A transaction's line, with its end.
pub(crate) fn transaction(record: &TxnRecord, detail: Detail) -> String {
    let mut out = String::with_capacity(64 + 96 * record.ops.len());
    let _ = write!(out, "{{\"session\":{}", name_json(&record.session));
    if record.status != Status::Committed {
        let _ = write!(out, ",\"status\":\"{}\"", record.status.name());
    }
    out.push_str(",\"client\":");
    span(&mut out, record.client);
    if let Some(level) = &record.level {
        let _ = write!(out, ",\"level\":{}", Json::from(level.as_str()));
    }
    out.push_str(",\"ops\":[");
    for (index, op) in record.ops.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        operation(&mut out, op, detail);
    }
    out.push(']');
    if let Some(ctx) = ctx(record, detail) {
        let _ = write!(out, ",\"ctx\":{ctx}");
    }
    out.push_str("}\n");
    out
}

/// Hints and debug fields of a transaction: statements, stamp, why it failed.
pub(crate) fn ctx(record: &TxnRecord, detail: Detail) -> Option<String> {
    let mut fields = Map::new();
    if detail.statements && record.ops.iter().any(|op| op.statement.is_some()) {
        let sql: Vec<Json> = record.ops.iter().map(|op| op.statement.as_deref().into()).collect();
        fields.insert("sql".into(), sql.into());
    }
    if let Some(stamp) = &record.stamp {
        fields.insert("snapshot".into(), stamp.snapshot.as_str().into());
        if let Some(commit) = &stamp.commit {
            fields.insert("commit".into(), commit.as_str().into());
        }
    }
    if let Some(failure) = &record.failure {
        fields.insert("failure".into(), failure.as_str().into());
    }
    (!fields.is_empty()).then(|| Json::Object(fields).to_string())
}

fn span(out: &mut String, span: Span) {
    let _ = write!(out, "{{\"begin\":{},\"end\":{}}}", span.begin, span.end);
}

fn operation(out: &mut String, op: &OpRecord, detail: Detail) {
    match &op.request {
        Request::Read { key, lock } => {
            let _ = write!(out, "{{\"op\":\"read\",\"key\":{}", name_json(key));
            match lock {
                Lock::None => {}
                Lock::Share => out.push_str(",\"lock\":\"share\""),
                Lock::Update => out.push_str(",\"lock\":\"update\""),
            }
            if let Some(Response::Value(value)) = &op.response {
                let _ = write!(out, ",\"value\":{}", value_json(value));
            }
        }
        Request::Write { key, value } => {
            let _ =
                write!(out, "{{\"op\":\"write\",\"key\":{},\"value\":{}", name_json(key), value_json(value));
        }
        Request::Append { key, value } => {
            let _ =
                write!(out, "{{\"op\":\"append\",\"key\":{},\"value\":{}", name_json(key), value_json(value));
        }
        // A delete that found nothing wrote nothing.
        Request::Delete { key } if matches!(op.response, Some(Response::Value(_))) => {
            let key = name_json(key);
            let _ = write!(out, "{{\"op\":\"read\",\"key\":{key},\"lock\":\"update\",\"value\":null");
        }
        Request::Delete { key } => {
            let _ = write!(out, "{{\"op\":\"delete\",\"key\":{}", name_json(key));
        }
        Request::Scan { range } => {
            out.push_str("{\"op\":\"scan\"");
            bounds(out, range);
            rows(out, op.response.as_ref());
        }
        Request::Iterate { range, reverse, .. } => {
            out.push_str("{\"op\":\"iterate\"");
            bounds(out, range);
            if *reverse {
                out.push_str(",\"reverse\":true");
            }
            rows(out, op.response.as_ref());
            if let Some(Response::Rows { exhausted: true, .. }) = op.response {
                out.push_str(",\"exhausted\":true");
            }
        }
        Request::Query { condition } => {
            let _ = write!(out, "{{\"op\":\"query\",\"where\":{}", condition_json(condition));
            rows(out, op.response.as_ref());
        }
        Request::Update { condition, set } => {
            let _ = write!(
                out,
                "{{\"op\":\"update\",\"where\":{},\"set\":{}",
                condition_json(condition),
                value_json(set)
            );
            changed(out, op.response.as_ref());
        }
        Request::DeleteWhere { condition } => {
            let _ = write!(out, "{{\"op\":\"delete-where\",\"where\":{}", condition_json(condition));
            changed(out, op.response.as_ref());
        }
    }
    if detail.operation_clocks {
        out.push_str(",\"at\":");
        span(out, op.at);
    }
    out.push('}');
}

fn bounds(out: &mut String, range: &KeyRange) {
    for (name, bound) in [("from", &range.from), ("to", &range.to)] {
        if let Some(key) = bound {
            let _ = write!(out, ",\"{name}\":{}", name_json(key));
        }
    }
}

fn rows(out: &mut String, response: Option<&Response>) {
    let Some(Response::Rows { rows, .. }) = response else { return };
    out.push_str(",\"rows\":[");
    for (index, (key, value)) in rows.iter().enumerate() {
        let comma = if index > 0 { "," } else { "" };
        let _ = write!(out, "{comma}[{},{}]", name_json(key), value_json(value));
    }
    out.push(']');
}

fn changed(out: &mut String, response: Option<&Response>) {
    let Some(Response::Changed { count, keys }) = response else { return };
    if let Some(count) = count {
        let _ = write!(out, ",\"count\":{count}");
    }
    if let Some(keys) = keys {
        let keys: Vec<Json> = keys.iter().map(name_json).collect();
        let _ = write!(out, ",\"keys\":{}", Json::from(keys));
    }
}

fn name_json(name: &Name) -> Json {
    match name {
        Name::Int(value) => (*value).into(),
        Name::Str(text) => text.as_str().into(),
    }
}

pub(crate) fn value_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(value) => (*value).into(),
        Value::Int(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
        Value::List(elements) => elements.iter().map(value_json).collect(),
        Value::Row(cells) => {
            Json::Object(cells.iter().map(|(name, value)| (name.clone(), value_json(value))).collect())
        }
    }
}

/// A condition as `where`: entries that all must hold. Parts that cannot share an object, because they
/// would need the same entry twice, are joined the long way round: not (not a or not b).
fn condition_json(condition: &Condition) -> Json {
    match condition {
        Condition::Any(parts) => json!({ "or": parts.iter().map(condition_json).collect::<Vec<_>>() }),
        Condition::Not(part) => json!({ "not": condition_json(part) }),
        Condition::Compare(column, with, constant) => {
            json!({ column.clone(): { with.symbol(): value_json(constant) } })
        }
        Condition::All(parts) => merged(parts).unwrap_or_else(|| {
            let negated: Vec<Json> =
                parts.iter().map(|part| json!({ "not": condition_json(part) })).collect();
            json!({ "not": { "or": negated } })
        }),
    }
}

fn merged(parts: &[Condition]) -> Option<Json> {
    let mut all = Map::new();
    for part in parts {
        let Json::Object(entries) = condition_json(part) else { return None };
        for (name, entry) in entries {
            match (all.get_mut(&name), entry) {
                (None, entry) => {
                    all.insert(name, entry);
                }
                (Some(Json::Object(known)), Json::Object(more)) if name != "not" => {
                    if more.keys().any(|symbol| known.contains_key(symbol)) {
                        return None;
                    }
                    known.extend(more);
                }
                _ => return None,
            }
        }
    }
    Some(Json::Object(all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::Comparison;

    fn compare(column: &str, with: Comparison, value: i64) -> Condition {
        Condition::Compare(column.into(), with, Value::Int(value))
    }

    #[test]
    fn conditions_share_an_object_where_they_can() {
        let between = Condition::All(vec![
            compare("v1", Comparison::GreaterOrEqual, 10),
            compare("v1", Comparison::Less, 20),
            compare("v2", Comparison::Equal, 3),
        ]);
        assert_eq!(condition_json(&between), json!({"v1": {">=": 10, "<": 20}, "v2": {"=": 3}}));
        let twice = Condition::All(vec![
            compare("v1", Comparison::NotEqual, 1),
            compare("v1", Comparison::NotEqual, 2),
        ]);
        assert_eq!(
            condition_json(&twice),
            json!({"not": {"or": [{"not": {"v1": {"!=": 1}}}, {"not": {"v1": {"!=": 2}}}]}})
        );
        assert_eq!(condition_json(&Condition::All(vec![])), json!({}));
    }

    #[test]
    fn a_line_holds_what_the_client_saw_and_nothing_it_did_not() {
        let record = TxnRecord {
            session: Name::Int(2),
            status: Status::Unknown,
            client: Span { begin: 5, end: 9 },
            level: None,
            ops: vec![
                OpRecord {
                    request: Request::Read { key: "x".into(), lock: Lock::Update },
                    response: Some(Response::Value(Value::Null)),
                    at: Span { begin: 6, end: 7 },
                    statement: Some("SELECT 1".into()),
                },
                OpRecord {
                    request: Request::read(7),
                    response: None,
                    at: Span { begin: 7, end: 8 },
                    statement: None,
                },
            ],
            stamp: None,
            failure: Some("gone".into()),
        };
        assert_eq!(
            transaction(&record, Detail::default()),
            concat!(
                r#"{"session":2,"status":"unknown","client":{"begin":5,"end":9},"ops":["#,
                r#"{"op":"read","key":"x","lock":"update","value":null,"at":{"begin":6,"end":7}},"#,
                r#"{"op":"read","key":7,"at":{"begin":7,"end":8}}],"#,
                r#""ctx":{"failure":"gone","sql":["SELECT 1",null]}}"#,
                "\n"
            )
        );
    }
}
