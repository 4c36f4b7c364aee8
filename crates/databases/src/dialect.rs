//! SQL in every vendor's way: one table of differences, one generator of statements.
//!
//! A dialect is a row of data. Everything a vendor does in its own way is a column of that row; the
//! generator below reads the row and knows no vendor.

use crate::driver::Failure;
use crate::schema::{Kind, Schema};
use history::{Lock, Name};
use record::{Condition, LIST_COLUMN, Request, Response, SCALAR_COLUMN, Value};
use std::fmt::Write;

/// How a vendor writes SQL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dialect {
    /// Around identifiers.
    pub(crate) quote: char,
    /// `$1`, `$2` (true) or `?` (false).
    pub(crate) numbered: bool,
    /// Column types.
    pub(crate) int: &'static str,
    pub(crate) text: &'static str,
    pub(crate) text_key: &'static str,
    /// What follows the closing parenthesis of CREATE TABLE.
    pub(crate) table_options: &'static str,
    /// Insert-or-overwrite.
    pub(crate) upsert: Upsert,
    /// After a SELECT that locks.
    pub(crate) for_share: Option<&'static str>,
    pub(crate) for_update: Option<&'static str>,
    /// Whether UPDATE and DELETE can say which rows they changed.
    pub(crate) update_returning: bool,
    pub(crate) delete_returning: bool,
}

/// The vendor's way to insert or overwrite in one statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// `ON CONFLICT (k) DO UPDATE SET c = excluded.c`
    OnConflict,
    /// `ON DUPLICATE KEY UPDATE c = VALUES(c)`
    OnDuplicateKey,
}

pub(crate) const SQLITE: Dialect = Dialect {
    quote: '"',
    numbered: false,
    int: "INTEGER",
    text: "TEXT",
    text_key: "TEXT",
    table_options: "WITHOUT ROWID",
    upsert: Upsert::OnConflict,
    for_share: None,
    for_update: None,
    update_returning: true,
    delete_returning: true,
};

#[cfg(feature = "duckdb")]
pub(crate) const DUCKDB: Dialect =
    Dialect { int: "BIGINT", text: "VARCHAR", text_key: "VARCHAR", table_options: "", ..SQLITE };

/// Text is ordered by its bytes, as the native format orders keys.
pub(crate) const POSTGRES: Dialect = Dialect {
    quote: '"',
    numbered: true,
    int: "BIGINT",
    text: "TEXT COLLATE \"C\"",
    text_key: "TEXT COLLATE \"C\"",
    table_options: "",
    upsert: Upsert::OnConflict,
    for_share: Some("FOR SHARE"),
    for_update: Some("FOR UPDATE"),
    update_returning: true,
    delete_returning: true,
};

/// Text collations ignore trailing spaces; binary columns do not.
pub(crate) const MARIADB: Dialect = Dialect {
    quote: '`',
    numbered: false,
    int: "BIGINT",
    text: "LONGBLOB",
    text_key: "VARBINARY(512)",
    table_options: "ENGINE=InnoDB",
    upsert: Upsert::OnDuplicateKey,
    for_share: Some("LOCK IN SHARE MODE"),
    for_update: Some("FOR UPDATE"),
    update_returning: false,
    delete_returning: true,
};

/// The table all workloads use.
pub(crate) const TABLE: &str = "taipan_kv";
const KEY: &str = "k";

/// A statement ready to be sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Statement {
    pub(crate) sql: String,
    /// Integers, texts and nulls only.
    pub(crate) params: Vec<Value>,
    /// Whether it answers with rows; otherwise with a count.
    pub(crate) rows: bool,
}

/// What a vendor's driver hands back.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// Rows as columns in the order selected: integers, texts and nulls.
    Rows(Vec<Vec<Value>>),
    /// How many rows a statement changed.
    Count(u64),
}

impl Dialect {
    /// The statements that make an empty table.
    pub(crate) fn create_table(&self, schema: &Schema) -> Vec<String> {
        let null = if schema.nullable { "" } else { " NOT NULL" };
        let key = if schema.key == Kind::Int { self.int } else { self.text_key };
        let mut sql = format!("CREATE TABLE {TABLE} ({} {key} NOT NULL PRIMARY KEY", self.name(KEY));
        for column in &schema.columns {
            let kind = if column.kind == Kind::Int { self.int } else { self.text };
            let _ = write!(sql, ", {} {kind}{null}", self.name(&column.name));
        }
        let _ = write!(sql, ") {}", self.table_options);
        vec![format!("DROP TABLE IF EXISTS {TABLE}"), sql.trim_end().to_owned()]
    }

    /// The statement of a request.
    pub(crate) fn statement(&self, schema: &Schema, request: &Request) -> Result<Statement, Failure> {
        let mut out = Writer { dialect: self, schema, sql: String::with_capacity(96), params: Vec::new() };
        let rows = match request {
            Request::Read { key, lock } => {
                out.select();
                out.sql.push_str(" WHERE ");
                out.key_compared("=", key)?;
                out.lock(*lock);
                true
            }
            Request::Write { key, value } => {
                out.upsert(key, value)?;
                false
            }
            Request::Append { key, value } => {
                out.append(key, value)?;
                false
            }
            Request::Delete { key } => {
                let _ = write!(out.sql, "DELETE FROM {TABLE} WHERE ");
                out.key_compared("=", key)?;
                false
            }
            Request::Scan { range } => {
                out.select();
                out.range(range)?;
                out.order(false);
                true
            }
            Request::Iterate { range, reverse, limit } => {
                out.select();
                out.range(range)?;
                out.order(*reverse);
                let _ = write!(out.sql, " LIMIT {limit}");
                true
            }
            Request::Query { condition } => {
                out.select();
                out.sql.push_str(" WHERE ");
                out.condition(condition)?;
                true
            }
            Request::Update { condition, set } => {
                out.update(condition, set)?;
                out.returning(self.update_returning)
            }
            Request::DeleteWhere { condition } => {
                let _ = write!(out.sql, "DELETE FROM {TABLE} WHERE ");
                out.condition(condition)?;
                out.returning(self.delete_returning)
            }
        };
        Ok(Statement { sql: out.sql, params: out.params, rows })
    }

    /// What an answer means for the request that was sent.
    pub(crate) fn response(
        &self,
        schema: &Schema,
        request: &Request,
        answer: Answer,
    ) -> Result<Response, Failure> {
        let answer = match (request, answer) {
            (Request::Read { .. }, Answer::Rows(rows)) => match rows.into_iter().next() {
                None => Response::Value(Value::Null),
                Some(row) => Response::Value(decode_row(schema, row)?.1),
            },
            (Request::Update { .. } | Request::DeleteWhere { .. }, Answer::Rows(rows)) => {
                let keys: Vec<Name> = rows
                    .into_iter()
                    .map(|row| row.into_iter().next().map_or_else(|| Err(no_key()), decode_key))
                    .collect::<Result<_, _>>()?;
                Response::Changed { count: Some(keys.len() as u64), keys: Some(keys) }
            }
            (Request::Update { .. } | Request::DeleteWhere { .. }, Answer::Count(count)) => {
                Response::Changed { count: Some(count), keys: None }
            }
            (request, Answer::Rows(rows)) => {
                let rows: Vec<_> =
                    rows.into_iter().map(|row| decode_row(schema, row)).collect::<Result<_, _>>()?;
                let exhausted = match request {
                    Request::Iterate { limit, .. } => rows.len() < *limit as usize,
                    _ => true,
                };
                Response::Rows { rows, exhausted }
            }
            // Nothing was deleted, so nothing was written: all it did is to see that nothing is there.
            (Request::Delete { .. }, Answer::Count(0)) => Response::Value(Value::Null),
            (_, Answer::Count(_)) => Response::Done,
        };
        Ok(answer)
    }

    fn name(&self, name: &str) -> String {
        format!("{0}{name}{0}", self.quote)
    }
}

fn no_key() -> Failure {
    Failure::mistake("the database returned a row without a key")
}

fn decode_key(value: Value) -> Result<Name, Failure> {
    match value {
        Value::Int(key) => Ok(Name::Int(key)),
        Value::Text(key) => Ok(Name::Str(key)),
        _ => Err(no_key()),
    }
}

/// A row `k, c1, …, cn` as a key and the value that was written there.
fn decode_row(schema: &Schema, row: Vec<Value>) -> Result<(Name, Value), Failure> {
    let mut cells = row.into_iter();
    let key = cells.next().map_or_else(|| Err(no_key()), decode_key)?;
    let mut columns = Vec::new();
    for (column, value) in schema.columns.iter().zip(cells) {
        if value == Value::Null {
            continue;
        }
        match column.name.as_str() {
            SCALAR_COLUMN => return Ok((key, value)),
            LIST_COLUMN => return Ok((key, decode_list(&value)?)),
            name => columns.push((name.to_owned(), value)),
        }
    }
    Ok((key, Value::Row(columns)))
}

/// A list column holds its elements in JSON, with commas between them.
fn decode_list(value: &Value) -> Result<Value, Failure> {
    let Value::Text(text) = value else { return Err(Failure::mistake("a list column does not hold text")) };
    decode_elements(text).map(Value::List)
}

pub(crate) fn decode_elements(text: &str) -> Result<Vec<Value>, Failure> {
    let broken = |_| Failure::mistake(format!("the list column holds {text:?}, which is not a list"));
    let elements: Vec<serde_json::Value> = serde_json::from_str(&format!("[{text}]")).map_err(broken)?;
    Ok(elements.into_iter().map(from_json).collect())
}

pub(crate) fn from_json(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(value) => Value::Int(value),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::Text(text),
        serde_json::Value::Array(elements) => Value::List(elements.into_iter().map(from_json).collect()),
        serde_json::Value::Object(cells) => {
            Value::Row(cells.into_iter().map(|(name, value)| (name, from_json(value))).collect())
        }
    }
}

pub(crate) fn encode_element(value: &Value) -> Result<String, Failure> {
    let text = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::List(_) | Value::Row(_) => {
            return Err(Failure::mistake("an element of a list must be a scalar"));
        }
    };
    Ok(text)
}

struct Writer<'a> {
    dialect: &'a Dialect,
    schema: &'a Schema,
    sql: String,
    params: Vec<Value>,
}

impl Writer<'_> {
    fn ident(&mut self, name: &str) {
        self.sql.push(self.dialect.quote);
        self.sql.push_str(name);
        self.sql.push(self.dialect.quote);
    }

    fn param(&mut self, value: Value) {
        self.params.push(value);
        if self.dialect.numbered {
            let _ = write!(self.sql, "${}", self.params.len());
        } else {
            self.sql.push('?');
        }
    }

    fn key(&mut self, key: &Name) -> Result<(), Failure> {
        let value = match (self.schema.key, key) {
            (Kind::Int, Name::Int(key)) => Value::Int(*key),
            (Kind::Text, Name::Str(key)) => Value::Text(key.clone()),
            (Kind::Int, key) => {
                return Err(Failure::mistake(format!(
                    "key {key} is text, but the table's keys are integers"
                )));
            }
            (_, key) => {
                return Err(Failure::mistake(format!(
                    "key {key} is an integer, but the table's keys are text"
                )));
            }
        };
        self.param(value);
        Ok(())
    }

    fn key_compared(&mut self, with: &str, key: &Name) -> Result<(), Failure> {
        self.ident(KEY);
        let _ = write!(self.sql, " {with} ");
        self.key(key)
    }

    fn select(&mut self) {
        self.sql.push_str("SELECT ");
        self.ident(KEY);
        for column in &self.schema.columns {
            self.sql.push_str(", ");
            self.ident(&column.name);
        }
        let _ = write!(self.sql, " FROM {TABLE}");
    }

    fn lock(&mut self, lock: Lock) {
        let suffix = match lock {
            Lock::None => None,
            Lock::Share => self.dialect.for_share,
            Lock::Update => self.dialect.for_update,
        };
        if let Some(suffix) = suffix {
            self.sql.push(' ');
            self.sql.push_str(suffix);
        }
    }

    fn range(&mut self, range: &record::KeyRange) -> Result<(), Failure> {
        let mut word = " WHERE ";
        if let Some(from) = &range.from {
            self.sql.push_str(word);
            self.key_compared(">=", from)?;
            word = " AND ";
        }
        if let Some(to) = &range.to {
            self.sql.push_str(word);
            self.key_compared("<", to)?;
        }
        Ok(())
    }

    fn order(&mut self, reverse: bool) {
        self.sql.push_str(" ORDER BY ");
        self.ident(KEY);
        if reverse {
            self.sql.push_str(" DESC");
        }
    }

    fn upsert(&mut self, key: &Name, value: &Value) -> Result<(), Failure> {
        let cells = self.cells(value)?;
        self.insert(key, cells)?;
        self.on_conflict();
        for (index, column) in self.schema.columns.iter().enumerate() {
            if index > 0 {
                self.sql.push_str(", ");
            }
            self.ident(&column.name);
            self.sql.push_str(" = ");
            self.inserted(&column.name);
        }
        Ok(())
    }

    fn append(&mut self, key: &Name, value: &Value) -> Result<(), Failure> {
        let element = encode_element(value)?;
        let cells = self.cells_where(|name| (name == LIST_COLUMN).then(|| Value::Text(element.clone())))?;
        self.insert(key, cells)?;
        self.on_conflict();
        self.ident(LIST_COLUMN);
        match self.dialect.upsert {
            Upsert::OnConflict => {
                let _ = write!(self.sql, " = {TABLE}.");
                self.ident(LIST_COLUMN);
                self.sql.push_str(" || ',' || ");
                self.inserted(LIST_COLUMN);
            }
            Upsert::OnDuplicateKey => {
                self.sql.push_str(" = CONCAT(");
                self.ident(LIST_COLUMN);
                self.sql.push_str(", ',', ");
                self.inserted(LIST_COLUMN);
                self.sql.push(')');
            }
        }
        Ok(())
    }

    fn insert(&mut self, key: &Name, cells: Vec<Value>) -> Result<(), Failure> {
        let _ = write!(self.sql, "INSERT INTO {TABLE} (");
        self.ident(KEY);
        for column in &self.schema.columns {
            self.sql.push_str(", ");
            self.ident(&column.name);
        }
        self.sql.push_str(") VALUES (");
        self.key(key)?;
        for cell in cells {
            self.sql.push_str(", ");
            self.param(cell);
        }
        self.sql.push(')');
        Ok(())
    }

    fn on_conflict(&mut self) {
        match self.dialect.upsert {
            Upsert::OnConflict => {
                self.sql.push_str(" ON CONFLICT (");
                self.ident(KEY);
                self.sql.push_str(") DO UPDATE SET ");
            }
            Upsert::OnDuplicateKey => self.sql.push_str(" ON DUPLICATE KEY UPDATE "),
        }
    }

    fn inserted(&mut self, column: &str) {
        match self.dialect.upsert {
            Upsert::OnConflict => {
                self.sql.push_str("excluded.");
                self.ident(column);
            }
            Upsert::OnDuplicateKey => {
                self.sql.push_str("VALUES(");
                self.ident(column);
                self.sql.push(')');
            }
        }
    }

    fn update(&mut self, condition: &Condition, set: &Value) -> Result<(), Failure> {
        let cells = self.cells(set)?;
        let _ = write!(self.sql, "UPDATE {TABLE} SET ");
        for (index, (column, cell)) in self.schema.columns.iter().zip(cells).enumerate() {
            if index > 0 {
                self.sql.push_str(", ");
            }
            self.ident(&column.name);
            self.sql.push_str(" = ");
            self.param(cell);
        }
        self.sql.push_str(" WHERE ");
        self.condition(condition)
    }

    fn returning(&mut self, can: bool) -> bool {
        if can {
            self.sql.push_str(" RETURNING ");
            self.ident(KEY);
        }
        can
    }

    /// The columns of a value, in the table's order.
    fn cells(&self, value: &Value) -> Result<Vec<Value>, Failure> {
        match value {
            Value::Row(cells) => {
                if let Some((name, _)) = cells
                    .iter()
                    .find(|(name, _)| !self.schema.columns.iter().any(|column| column.name == *name))
                {
                    return Err(Failure::mistake(format!("the table has no column {name}")));
                }
                self.cells_where(|name| cells.iter().find(|(other, _)| other == name).map(|(_, v)| v.clone()))
            }
            Value::List(elements) => {
                let text = elements.iter().map(encode_element).collect::<Result<Vec<_>, _>>()?.join(",");
                self.cells_where(|name| (name == LIST_COLUMN).then(|| Value::Text(text.clone())))
            }
            scalar => self.cells_where(|name| (name == SCALAR_COLUMN).then(|| scalar.clone())),
        }
    }

    fn cells_where(&self, cell: impl Fn(&str) -> Option<Value>) -> Result<Vec<Value>, Failure> {
        let cells: Vec<Value> =
            self.schema.columns.iter().map(|column| cell(&column.name).unwrap_or(Value::Null)).collect();
        for (column, cell) in self.schema.columns.iter().zip(&cells) {
            let fits = match (column.kind, cell) {
                (_, Value::Null) => self.schema.nullable,
                (Kind::Int, Value::Int(_)) => true,
                (Kind::Text | Kind::List, Value::Text(_)) => true,
                _ => false,
            };
            if !fits {
                let message = format!("column {} cannot hold {cell:?}", column.name);
                return Err(Failure::mistake(message));
            }
        }
        if cells.iter().all(|cell| *cell == Value::Null) {
            return Err(Failure::mistake("the table has no column for this value"));
        }
        Ok(cells)
    }

    /// `All([])` is true, `Any([])` false; a comparison on NULL is false, also under a NOT.
    fn condition(&mut self, condition: &Condition) -> Result<(), Failure> {
        match condition {
            Condition::All(parts) if parts.is_empty() => self.sql.push_str("1 = 1"),
            Condition::Any(parts) if parts.is_empty() => self.sql.push_str("1 = 0"),
            Condition::All(parts) => self.joined(parts, " AND ")?,
            Condition::Any(parts) => self.joined(parts, " OR ")?,
            Condition::Not(part) => {
                self.sql.push_str("NOT (");
                self.condition(part)?;
                self.sql.push(')');
            }
            Condition::Compare { column, with, constant } => self.compare(column, with.symbol(), constant)?,
        }
        Ok(())
    }

    fn joined(&mut self, parts: &[Condition], word: &str) -> Result<(), Failure> {
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.sql.push_str(word);
            }
            self.sql.push('(');
            self.condition(part)?;
            self.sql.push(')');
        }
        Ok(())
    }

    /// A list answers to the column of scalars, too, and is unequal to every constant.
    fn compare(&mut self, name: &str, symbol: &str, constant: &Value) -> Result<(), Failure> {
        let has_lists = self.schema.columns.iter().any(|column| column.name == LIST_COLUMN);
        if name == SCALAR_COLUMN && symbol == "!=" && has_lists {
            self.sql.push('(');
            self.ident(LIST_COLUMN);
            self.sql.push_str(" IS NOT NULL OR ");
            self.compare_column(name, symbol, constant)?;
            self.sql.push(')');
            return Ok(());
        }
        self.compare_column(name, symbol, constant)
    }

    fn compare_column(&mut self, name: &str, symbol: &str, constant: &Value) -> Result<(), Failure> {
        if matches!(constant, Value::Float(_)) {
            return Err(Failure::mistake("columns hold integers and text: compare with one of these"));
        }
        let Some(column) = self.schema.columns.iter().find(|column| column.name == name) else {
            // No value has the column: every comparison on it is false.
            self.sql.push_str("1 = 0");
            return Ok(());
        };
        let same_type =
            matches!((column.kind, constant), (Kind::Int, Value::Int(_)) | (Kind::Text, Value::Text(_)));
        if !same_type {
            // Values of different types are unequal, and nothing else.
            match symbol {
                "!=" => {
                    self.ident(name);
                    self.sql.push_str(" IS NOT NULL");
                }
                _ => self.sql.push_str("1 = 0"),
            }
            return Ok(());
        }
        if self.schema.nullable {
            self.sql.push('(');
            self.ident(name);
            self.sql.push_str(" IS NOT NULL AND ");
        }
        self.ident(name);
        let symbol = if symbol == "!=" { "<>" } else { symbol };
        let _ = write!(self.sql, " {symbol} ");
        self.param(constant.clone());
        if self.schema.nullable {
            self.sql.push(')');
        }
        Ok(())
    }
}
