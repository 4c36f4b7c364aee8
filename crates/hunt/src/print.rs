//! Trees into SQL, by a row of the grammar table.
//!
//! Everything is parenthesised where precedence could differ between vendors. What a statement needs around it —
//! the reads before and after a write (TxCheck, Jiang et al., OSDI 2023, §3.2) — is printed here, too, since it shares the
//! statement's condition.

use crate::tree::{
    Aggregate, Arithmetic, Column, Comparison, Expr, Function, Join, KEY, KEY_STEP, Literal, Lock, Query,
    Relation, Rows, Select, SetOperator, Source, Statement, Type, VERSION,
};
use databases::Grammar;

/// Writes trees in one grammar.
#[derive(Clone, Copy, Debug)]
pub struct Printer {
    /// The row of the table.
    pub grammar: &'static Grammar,
    /// What ends every query that does not say itself how it locks.
    pub lock: Option<&'static str>,
}

impl Printer {
    /// A statement that installs `version` if it writes.
    pub fn statement(&self, statement: &Statement, version: i64) -> String {
        match statement {
            Statement::Select(query) => self.query(query),
            Statement::Insert { table, columns, rows, upsert } => {
                let names = columns.iter().map(|column| format!(", {}", column.name)).collect::<String>();
                let rows = self.rows(rows, version);
                let upsert = upsert.as_ref().map(|assignments| {
                    let words = self.grammar.upsert.replace("{key}", KEY);
                    format!(" {words} {}", self.assignments(assignments, version))
                });
                format!("INSERT INTO {table} ({KEY}, {VERSION}{names}) {rows}{}", upsert.unwrap_or_default())
            }
            Statement::Update { table, assignments, filter } => {
                format!(
                    "UPDATE {table} SET {}{}",
                    self.assignments(assignments, version),
                    self.filter(filter.as_ref())
                )
            }
            Statement::Delete { table, filter } => {
                format!("DELETE FROM {table}{}", self.filter(filter.as_ref()))
            }
        }
    }

    /// The before-write read: what the statement is about to overwrite, key and version first.
    pub fn before(&self, statement: &Statement) -> Option<String> {
        let (table, filter) = match statement {
            Statement::Select(_) => return None,
            Statement::Update { table, filter, .. } | Statement::Delete { table, filter } => {
                (table, self.filter(filter.as_ref()))
            }
            Statement::Insert { table, rows: Rows::Values(rows), upsert: Some(_), .. } => {
                let keys: Vec<String> = rows.iter().map(|(key, _)| key.to_string()).collect();
                (table, format!(" WHERE {table}.{KEY} IN ({})", keys.join(", ")))
            }
            Statement::Insert { .. } => return None,
        };
        Some(format!("SELECT {table}.{KEY}, {table}.{VERSION} FROM {table}{filter}"))
    }

    /// The after-write read: what the statement installed, key and version first.
    pub fn after(&self, statement: &Statement, columns: &[Column], version: i64) -> Option<String> {
        let (Statement::Insert { table, .. } | Statement::Update { table, .. }) = statement else {
            return None;
        };
        let names = columns.iter().map(|column| format!(", {}", column.name)).collect::<String>();
        Some(format!("SELECT {KEY}, {VERSION}{names} FROM {table} WHERE {VERSION} = {version}"))
    }

    fn rows(&self, rows: &Rows, version: i64) -> String {
        match rows {
            Rows::Values(rows) => {
                let row = |(key, values): &(i64, Vec<Expr>)| {
                    let values: String =
                        values.iter().map(|value| format!(", {}", self.expr(value))).collect();
                    format!("({key}, {version}{values})")
                };
                format!("VALUES {}", rows.iter().map(row).collect::<Vec<_>>().join(", "))
            }
            Rows::Select { source, alias, tag, values, filter } => {
                let values: String = values.iter().map(|value| format!(", {}", self.expr(value))).collect();
                format!(
                    "SELECT {alias}.{KEY} * {KEY_STEP} + {tag}, {version}{values} FROM {source} AS {alias}{}",
                    self.filter(filter.as_ref())
                )
            }
        }
    }

    fn assignments(&self, assignments: &[(Column, Expr)], version: i64) -> String {
        let others: String = assignments
            .iter()
            .map(|(column, value)| format!(", {} = {}", column.name, self.expr(value)))
            .collect();
        format!("{VERSION} = {version}{others}")
    }

    fn filter(&self, filter: Option<&Expr>) -> String {
        filter.map(|filter| format!(" WHERE {}", self.expr(filter))).unwrap_or_default()
    }

    /// A query.
    pub fn query(&self, query: &Query) -> String {
        let mut text = String::new();
        if !query.with.is_empty() {
            let named = query.with.iter().map(|(name, query)| format!("{name} AS ({})", self.query(query)));
            text = format!("WITH {} ", named.collect::<Vec<_>>().join(", "));
        }
        text += &self.select(&query.select);
        if let Some((operator, second)) = &query.second {
            let operator = match operator {
                SetOperator::UnionAll => "UNION ALL",
                SetOperator::Union => "UNION",
                SetOperator::Intersect => "INTERSECT",
                SetOperator::Except => "EXCEPT",
            };
            text += &format!(" {operator} {}", self.select(second));
        }
        if let Some((source, descending)) = &query.order {
            text += &format!(" ORDER BY {source}.{KEY}{}", if *descending { " DESC" } else { "" });
        }
        if let Some(limit) = query.limit {
            text += &format!(" LIMIT {limit}");
        }
        let lock = match query.lock {
            None => self.lock,
            Some(Lock::Share) => self.grammar.for_share,
            Some(Lock::Update) => self.grammar.for_update,
        };
        if let Some(lock) = lock {
            text += &format!(" {lock}");
        }
        text
    }

    fn select(&self, select: &Select) -> String {
        let outputs = select.outputs.iter().map(|(expr, name)| format!("{} AS {name}", self.expr(expr)));
        let mut text = format!(
            "SELECT {}{} FROM {}",
            if select.distinct { "DISTINCT " } else { "" },
            outputs.collect::<Vec<_>>().join(", "),
            self.source(&select.from)
        );
        for (join, source, on) in &select.joins {
            let join = match join {
                Join::Inner => "JOIN",
                Join::Left => "LEFT JOIN",
            };
            text += &format!(" {join} {} ON {}", self.source(source), self.expr(on));
        }
        text += &self.filter(select.filter.as_ref());
        if !select.group.is_empty() {
            let group = select.group.iter().map(|expr| self.expr(expr)).collect::<Vec<_>>();
            text += &format!(" GROUP BY {}", group.join(", "));
        }
        if let Some(having) = &select.having {
            text += &format!(" HAVING {}", self.expr(having));
        }
        text
    }

    fn source(&self, source: &Source) -> String {
        let alias = &source.alias;
        match &source.relation {
            Relation::Stored(name) | Relation::Named(name) => format!("{name} AS {alias}"),
            Relation::Derived(query) => format!("({}) AS {alias}", self.query(query)),
        }
    }

    /// The type of a column.
    pub fn column_type(&self, kind: Type) -> &'static str {
        match kind {
            Type::Integer | Type::Truth => self.grammar.integer,
            Type::Real => self.grammar.real,
            Type::Text => self.grammar.text,
        }
    }

    fn cast_type(&self, kind: Type) -> &'static str {
        match kind {
            Type::Integer | Type::Truth => self.grammar.cast_integer,
            Type::Real => self.grammar.cast_real,
            Type::Text => self.grammar.cast_text,
        }
    }

    /// A value.
    pub fn literal(&self, literal: &Literal) -> String {
        match literal {
            Literal::Null(kind) => format!("CAST(NULL AS {})", self.cast_type(*kind)),
            Literal::Integer(value) => negative(*value < 0, value.to_string()),
            Literal::Quarters(count) => negative(*count < 0, format!("{:.2}", *count as f64 / 4.0)),
            Literal::Text(text) => format!("'{}'", text.replace('\'', "''")),
        }
    }

    /// An expression.
    pub fn expr(&self, expr: &Expr) -> String {
        match expr {
            Expr::Column { source, column } => format!("{source}.{}", column.name),
            Expr::Literal(literal) => self.literal(literal),
            Expr::Compare(comparison, left, right) => {
                let operator = match comparison {
                    Comparison::Equal => "=",
                    Comparison::Unequal => "<>",
                    Comparison::Less => "<",
                    Comparison::AtMost => "<=",
                    Comparison::More => ">",
                    Comparison::AtLeast => ">=",
                    Comparison::Same => self.grammar.same,
                };
                format!("({} {operator} {})", self.expr(left), self.expr(right))
            }
            Expr::Arithmetic(arithmetic, left, right) => {
                let operator = match arithmetic {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Remainder => "%",
                };
                format!("({} {operator} {})", self.expr(left), self.expr(right))
            }
            Expr::Junction(both, left, right) => {
                let operator = if *both { "AND" } else { "OR" };
                format!("({} {operator} {})", self.expr(left), self.expr(right))
            }
            Expr::Not(value) => format!("(NOT {})", self.expr(value)),
            Expr::IsNull(value, negated) => {
                format!("({} IS {}NULL)", self.expr(value), if *negated { "NOT " } else { "" })
            }
            Expr::Between(value, low, high) => {
                format!("({} BETWEEN {} AND {})", self.expr(value), self.expr(low), self.expr(high))
            }
            Expr::InList(value, list, negated) => {
                let list: Vec<String> = list.iter().map(|value| self.expr(value)).collect();
                format!("({} {}IN ({}))", self.expr(value), not(*negated), list.join(", "))
            }
            Expr::Like(value, pattern) => format!("({} LIKE '{pattern}')", self.expr(value)),
            Expr::Case(when, then, otherwise) => {
                let (when, then) = (self.expr(when), self.expr(then));
                format!("(CASE WHEN {when} THEN {then} ELSE {} END)", self.expr(otherwise))
            }
            Expr::Call(function, arguments) => self.call(*function, arguments),
            Expr::Aggregate(aggregate, value, distinct) => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                format!("{}({distinct}{})", name(*aggregate), self.expr(value))
            }
            Expr::CountRows => "COUNT(*)".to_owned(),
            Expr::Window(aggregate, value, partition) => {
                let (value, partition) = (self.expr(value), self.expr(partition));
                format!("{}({value}) OVER (PARTITION BY {partition})", name(*aggregate))
            }
            Expr::Scalar(query) => format!("({})", self.query(query)),
            Expr::In(value, query, negated) => {
                format!("({} {}IN ({}))", self.expr(value), not(*negated), self.query(query))
            }
            Expr::Exists(query, negated) => format!("({}EXISTS ({}))", not(*negated), self.query(query)),
        }
    }

    fn call(&self, function: Function, arguments: &[Expr]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|argument| self.expr(argument)).collect();
        let name = match function {
            Function::Coalesce => "COALESCE",
            Function::NullIf => "NULLIF",
            Function::Abs => "ABS",
            Function::Length => "LENGTH",
            Function::Trim => "TRIM",
            Function::Concat if self.grammar.bars_concatenate => {
                return format!("({})", arguments.join(" || "));
            }
            Function::Concat => "CONCAT",
        };
        format!("{name}({})", arguments.join(", "))
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "NOT " } else { "" }
}

/// `a --1` would begin a comment.
fn negative(is_negative: bool, text: String) -> String {
    if is_negative { format!("({text})") } else { text }
}

fn name(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Count => "COUNT",
        Aggregate::Sum => "SUM",
        Aggregate::Min => "MIN",
        Aggregate::Max => "MAX",
        Aggregate::Mean => "AVG",
    }
}
