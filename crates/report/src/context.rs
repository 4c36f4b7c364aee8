//! What is shown of a transaction's `ctx`: its SQL statements, and the rest.
//!
//! Recorders keep statements as `{"sql":["SELECT …","UPDATE …"]}` beside a transaction, or as `{"sql":"SELECT …"}` beside each
//! operation. A page shows them behind a fold, with what each one read or wrote; text leaves them out.

use crate::printable::printable;
use history::{History, Transaction};
use serde_json::{Map, Value, json};

/// The field of `ctx` that holds statements.
const SQL: &str = "sql";

/// What a `ctx` shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Context {
    /// The statements in the order issued.
    pub(crate) sql: Vec<String>,
    /// The other fields, as JSON.
    pub(crate) rest: Option<String>,
}

impl Context {
    /// Takes a `ctx` apart; what is no object with statements is kept as it is.
    pub(crate) fn of(ctx: &str) -> Self {
        let Ok(mut fields) = serde_json::from_str::<Map<String, Value>>(ctx) else {
            return Self { sql: Vec::new(), rest: Some(ctx.to_owned()) };
        };
        let Some(sql) = fields.get(SQL).and_then(statements) else {
            return Self { sql: Vec::new(), rest: Some(ctx.to_owned()) };
        };
        fields.remove(SQL);
        let rest = (!fields.is_empty()).then(|| Value::Object(fields).to_string());
        // JSON's escapes are undone here, and could bring back what acts on a terminal.
        let shown = |text: String| printable(&text).into_owned();
        Self { sql: sql.into_iter().map(shown).collect(), rest: rest.map(shown) }
    }
}

fn statements(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(one) => Some(vec![one.clone()]),
        Value::Array(all) => all.iter().map(|one| one.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// The `ctx` of a transaction, with the statements of its operations where it has none itself.
pub(crate) fn merged(history: &History, transaction: Transaction<'_>) -> Option<String> {
    let own = transaction.ctx();
    let mut fields: Map<String, Value> = match own.map(serde_json::from_str) {
        None => Map::new(),
        Some(Ok(fields)) => fields,
        Some(Err(_)) => return own.map(str::to_owned),
    };
    let of_operations: Vec<Option<String>> =
        transaction.op_ids().map(|op| history.operation_extra(op).and_then(statement)).collect();
    if fields.contains_key(SQL) || of_operations.iter().all(Option::is_none) {
        return own.map(str::to_owned);
    }
    fields.insert(
        SQL.to_owned(),
        json!(of_operations.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>()),
    );
    Some(Value::Object(fields).to_string())
}

/// The statement of an operation's fields that are only kept.
fn statement(extra: &str) -> Option<String> {
    let extra: Value = serde_json::from_str(extra).ok()?;
    let sql = statements(extra.get("ctx")?.get(SQL)?)?;
    Some(sql.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use history::formats::{Format, ReadOptions, read_bytes};

    #[test]
    fn statements_and_the_rest_are_told_apart() {
        let shown = |sql: &[&str], rest: Option<&str>| Context {
            sql: sql.iter().map(|&one| one.to_owned()).collect(),
            rest: rest.map(str::to_owned),
        };
        assert_eq!(Context::of(r#"{"sql":["A","B"]}"#), shown(&["A", "B"], None));
        assert_eq!(Context::of(r#"{"sql":["\u001b[31m"]}"#), shown(&["\\u{1b}[31m"], None));
        assert_eq!(Context::of(r#"{"sql":"A","host":"h"}"#), shown(&["A"], Some(r#"{"host":"h"}"#)));
        for other in [r#"{"host":"h"}"#, r#"{"sql":7}"#, r#"{"sql":["A",7]}"#, "{}"] {
            assert_eq!(Context::of(other), shown(&[], Some(other)));
        }
    }

    #[test]
    fn statements_of_operations_are_gathered() {
        let text = concat!(
            r#"{"session":1,"ops":[{"op":"read","key":1,"value":2,"ctx":{"sql":"SELECT"}},{"op":"delete","key":1}],"ctx":{"a":1}}"#,
            "\n",
            r#"{"session":1,"ops":[{"op":"read","key":1,"ctx":{"sql":"X"}}],"ctx":{"sql":["OWN"]}}"#,
            "\n",
            r#"{"session":1,"ops":[{"op":"read","key":1}]}"#,
        );
        let options = ReadOptions { format: Some(Format::Jsonl), ..ReadOptions::default() };
        let history = read_bytes("h", text.as_bytes(), &options).expect("a history").history;
        let found: Vec<Option<String>> = history.transactions().map(|txn| merged(&history, txn)).collect();
        assert_eq!(
            found,
            [Some(r#"{"a":1,"sql":["SELECT",""]}"#.to_owned()), Some(r#"{"sql":["OWN"]}"#.to_owned()), None]
        );
    }
}
