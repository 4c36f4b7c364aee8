//! A test case as it is generated and reduced: a schema, its rows, and interleaved transactions, all as trees.
//!
//! [`Plan::case`] prints it for one grammar, with the instrumentation of TxCheck (Jiang et al., OSDI 2023) §3.2 around every statement:
//!
//! ```text
//!   version-set reads   SELECT pkey, vkey FROM t      for every table the statement refers to
//!   before-write read   SELECT … WHERE p              p is the statement's own condition
//!   the statement       UPDATE t SET vkey = 7 … WHERE p
//!   after-write read    SELECT * FROM t WHERE vkey = 7
//! ```
//!
//! Where writes look at another state than plain reads do ([`Sight::SPLIT`]), the reads before a write are locking
//! reads: they look at what the write will look at. The paper reads plainly there, and holds writes to the snapshot
//! of their transaction (its Figure 1); [`Plan::case`] does that when it is told that everything looks at a snapshot.

use crate::case::{Act, Case, Instrumented, Kind, Step, StepNo, TableNo, TxnNo};
use crate::print::Printer;
use crate::tree::{Column, Expr, KEY, Literal, Query, Rows, Statement, VERSION, relations_of};
use databases::{Grammar, Sight, View};

/// A table to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct TablePlan {
    /// Its name.
    pub name: String,
    /// Its columns after key and version.
    pub columns: Vec<Column>,
    /// Its indexes beside the primary key.
    pub indexes: Vec<IndexPlan>,
    /// Its rows: keys, and values of the columns. Their first version is the key itself, negated.
    pub rows: Vec<(i64, Vec<Literal>)>,
}

/// An index to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexPlan {
    /// The columns.
    pub columns: Vec<String>,
    /// Whether it is unique; it has the key among its columns then, so that it never refuses a row.
    pub unique: bool,
    /// The rows it covers, if not all.
    pub partial: Option<Expr>,
}

/// A view to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct ViewPlan {
    /// Its name.
    pub name: String,
    /// Its query; the names of the outputs are those of its columns.
    pub query: Query,
}

/// A whole test case.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The tables.
    pub tables: Vec<TablePlan>,
    /// The views.
    pub views: Vec<ViewPlan>,
    /// Every step of every transaction, in the order of submission.
    pub steps: Vec<PlanStep>,
}

/// A step of a transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// What names it, for good.
    pub number: StepNo,
    /// Its transaction.
    pub txn: TxnNo,
    /// What is done.
    pub act: PlanAct,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanAct {
    /// Begins, ends, marks.
    Control(Act),
    /// A statement; the version is what it installs.
    Statement {
        /// The statement.
        tree: Box<Statement>,
        /// The version it installs.
        version: i64,
        /// Whether another statement installs the same.
        shared: bool,
    },
}

impl Plan {
    /// The case in a grammar's words, for a level at which statements look at `sight`.
    pub fn case(&self, grammar: &'static Grammar, sight: Sight) -> Case {
        let printer = Printer { grammar, lock: None };
        let rows =
            self.tables.iter().filter(|table| !table.rows.is_empty()).map(|table| fill(printer, table));
        Case {
            tables: self.tables.iter().map(|table| table.name.clone()).collect(),
            views: self.views.iter().map(|view| view.name.clone()).collect(),
            schema: self.schema(printer),
            rows: rows.collect(),
            steps: self.steps.iter().map(|step| self.step(step, printer, sight)).collect(),
        }
    }

    /// The plan with only these steps, in this order.
    pub fn arranged(&self, numbers: &[StepNo]) -> Self {
        let find = |number: &StepNo| self.steps.iter().find(|step| step.number == *number).cloned();
        Self { steps: numbers.iter().filter_map(find).collect(), ..self.clone() }
    }

    fn schema(&self, printer: Printer) -> Vec<String> {
        let mut statements = Vec::new();
        for table in &self.tables {
            let name = &table.name;
            let integer = printer.grammar.integer;
            let columns = table.columns.iter();
            let columns: String = columns
                .map(|column| format!(", {} {}", column.name, printer.column_type(column.kind)))
                .collect();
            let table_sql = format!(
                "CREATE TABLE {name} ({KEY} {integer} PRIMARY KEY, {VERSION} {integer} NOT NULL{columns}) {}",
                printer.grammar.table_options
            );
            statements.push(table_sql.trim_end().to_owned());
            for (number, index) in table.indexes.iter().enumerate() {
                let partial = index.partial.as_ref().filter(|_| printer.grammar.partial_indexes);
                let partial = partial.map(|filter| format!(" WHERE {}", printer.expr(filter)));
                statements.push(format!(
                    "CREATE {}INDEX {name}_i{number} ON {name} ({}){}",
                    if index.unique { "UNIQUE " } else { "" },
                    index.columns.join(", "),
                    partial.unwrap_or_default().replace(&format!("{name}."), "")
                ));
            }
        }
        for view in &self.views {
            let names = view.query.select.outputs.iter().map(|(_, name)| name.as_str());
            statements.push(format!(
                "CREATE VIEW {} ({}) AS {}",
                view.name,
                names.collect::<Vec<_>>().join(", "),
                printer.query(&view.query)
            ));
        }
        statements
    }

    fn step(&self, step: &PlanStep, printer: Printer, sight: Sight) -> Step {
        let act = match &step.act {
            PlanAct::Control(act) => act.clone(),
            PlanAct::Statement { tree, version, shared } => {
                Act::Statement(Box::new(self.instrument(tree, *version, *shared, printer, sight)))
            }
        };
        Step { number: step.number, txn: step.txn, act }
    }

    fn instrument(
        &self,
        tree: &Statement,
        version: i64,
        shared: bool,
        printer: Printer,
        sight: Sight,
    ) -> Instrumented {
        let target = target(tree);
        let locks = matches!(tree, Statement::Select(query) if query.lock.is_some());
        let view = if target.is_some() || locks { sight.writes } else { sight.reads };
        let is_split = sight.reads != sight.writes && view == View::Statement;
        let lock = |text: Option<&str>| match (is_split, text) {
            (true, Some(text)) => format!(" {text}"),
            _ => String::new(),
        };
        let (share, update) = (lock(printer.grammar.for_share), lock(printer.grammar.for_update));
        // A lock around a query leaves the queries inside it at the snapshot: each needs its own.
        let before = Printer { lock: printer.grammar.for_share.filter(|_| is_split), ..printer };
        let references = self.references(tree);
        let versions = references
            .iter()
            .map(|&table| {
                let name = &self.tables[table.index()].name;
                let is_target = target == Some(name.as_str());
                (
                    table,
                    format!(
                        "SELECT {KEY}, {VERSION} FROM {name}{}",
                        if is_target { &update } else { &share }
                    ),
                )
            })
            .collect();
        let columns = target.and_then(|name| self.tables.iter().find(|table| table.name == name));
        let columns = columns.map(|table| table.columns.as_slice()).unwrap_or_default();
        Instrumented {
            kind: kind(tree),
            target: target.and_then(|name| self.table(name)),
            version,
            shared,
            view,
            ordered: matches!(tree, Statement::Select(query) if query.limit.is_some()),
            items: self.items(tree),
            versions,
            before: before.before(tree).map(|sql| format!("{sql}{update}")),
            sql: printer.statement(tree, version),
            after: printer.after(tree, columns, version),
        }
    }

    fn table(&self, name: &str) -> Option<TableNo> {
        self.tables.iter().position(|table| table.name == name).map(TableNo::of)
    }

    /// The tables whose rows a statement may look at: what it names, through views, and what it writes unless it
    /// only adds rows under new keys.
    fn references(&self, tree: &Statement) -> Vec<TableNo> {
        let mut names = Vec::new();
        match tree {
            Statement::Select(query) => query.relations(&mut names),
            Statement::Update { table, assignments, filter } => {
                names.push(table.clone());
                assignments.iter().for_each(|(_, value)| relations_of(value, &mut names));
                filter.iter().for_each(|filter| relations_of(filter, &mut names));
            }
            Statement::Delete { table, filter } => {
                names.push(table.clone());
                filter.iter().for_each(|filter| relations_of(filter, &mut names));
            }
            Statement::Insert { table, rows, upsert, .. } => {
                match rows {
                    Rows::Values(rows) => {
                        let values = rows.iter().flat_map(|(_, values)| values);
                        values.for_each(|value| relations_of(value, &mut names));
                    }
                    Rows::Select { source, values, filter, .. } => {
                        names.push(source.clone());
                        values.iter().chain(filter).for_each(|value| relations_of(value, &mut names));
                    }
                }
                if let Some(assignments) = upsert {
                    names.push(table.clone());
                    assignments.iter().for_each(|(_, value)| relations_of(value, &mut names));
                }
            }
        }
        through_views(&self.views, &mut names);
        let mut tables: Vec<TableNo> = names.iter().filter_map(|name| self.table(name)).collect();
        tables.sort();
        tables.dedup();
        tables
    }

    /// The table whose rows a query shows in its first two columns, key and version.
    fn items(&self, tree: &Statement) -> Option<TableNo> {
        let Statement::Select(query) = tree else { return None };
        let select = &query.select;
        let [(Expr::Column { source, column }, _), (Expr::Column { column: version, .. }, _), ..] =
            select.outputs.as_slice()
        else {
            return None;
        };
        let is_plain = query.second.is_none() && select.group.is_empty();
        if !is_plain || column.name != KEY || version.name != VERSION || *source != select.from.alias {
            return None;
        }
        match &select.from.relation {
            crate::tree::Relation::Stored(name) => self.table(name),
            _ => None,
        }
    }
}

/// Adds what views read, and what views among that read; a view only reads views that were made before it.
pub(crate) fn through_views(views: &[ViewPlan], names: &mut Vec<String>) {
    for view in views.iter().rev() {
        if names.contains(&view.name) {
            view.query.relations(names);
        }
    }
}

fn fill(printer: Printer, table: &TablePlan) -> String {
    let names: String = table.columns.iter().map(|column| format!(", {}", column.name)).collect();
    let row = |(key, values): &(i64, Vec<Literal>)| {
        let values: String = values.iter().map(|value| format!(", {}", printer.literal(value))).collect();
        format!("({key}, {}{values})", first_version(*key))
    };
    let rows: Vec<String> = table.rows.iter().map(row).collect();
    format!("INSERT INTO {} ({KEY}, {VERSION}{names}) VALUES {}", table.name, rows.join(", "))
}

/// The version of a row that was there from the start; statements install versions from 1 on.
pub(crate) fn first_version(key: i64) -> i64 {
    -key
}

fn target(tree: &Statement) -> Option<&str> {
    match tree {
        Statement::Select(_) => None,
        Statement::Insert { table, .. }
        | Statement::Update { table, .. }
        | Statement::Delete { table, .. } => Some(table),
    }
}

fn kind(tree: &Statement) -> Kind {
    match tree {
        Statement::Select(_) => Kind::Select,
        Statement::Insert { .. } => Kind::Insert,
        Statement::Update { .. } => Kind::Update,
        Statement::Delete { .. } => Kind::Delete,
    }
}
