//! A case as one self-contained SQL file: for people to read, for `--replay` to execute again.
//!
//! Comments carry what SQL cannot say, one fact a line:
//!
//! ```text
//! -- taipan hunt case
//! -- isolation: serializable
//! -- table: hunt0
//! -- view: huntv0
//! -- schema                       what follows makes tables
//! -- rows                         what follows fills them
//! -- schedule                     what follows is sent, in this order
//! -- T1 S4                        the session, and the name of the step
//! -- is: update hunt0 7 transaction    kind, target, version it installs, what it looks at; shared, ordered, items=…
//! -- versions hunt0: SELECT …     the reads around the statement
//! -- before: SELECT …
//! -- after: SELECT …
//! UPDATE …;
//! ```
//!
//! Other comments are for people: they tell what was seen and what was expected.

use crate::case::{Act, Case, Instrumented, Kind, Step, StepNo, TableNo, TxnNo};
use databases::View;
use std::fmt::{self, Write};

/// The first line.
const TITLE: &str = "-- taipan hunt case";

/// Writes a case; `remarks` are lines for people at the top, and after the step they belong to.
pub fn write(
    case: &Case,
    isolation: &str,
    remarks: &[String],
    of_step: impl Fn(StepNo) -> Vec<String>,
) -> String {
    let mut text = format!("{TITLE}\n-- isolation: {isolation}\n");
    for remark in remarks {
        let _ = writeln!(text, "-- | {remark}");
    }
    case.tables.iter().for_each(|table| text += &format!("-- table: {table}\n"));
    case.views.iter().for_each(|view| text += &format!("-- view: {view}\n"));
    text += "\n-- schema\n";
    case.schema.iter().for_each(|sql| text += &format!("{sql};\n"));
    text += "\n-- rows\n";
    case.rows.iter().for_each(|sql| text += &format!("{sql};\n"));
    text += "\n-- schedule\n";
    for step in &case.steps {
        text += &format!("-- {} {}\n", step.txn, step.number);
        match &step.act {
            Act::Begin => text += "BEGIN;\n",
            Act::Commit => text += "COMMIT;\n",
            Act::Rollback => text += "ROLLBACK;\n",
            Act::Savepoint(name) => text += &format!("SAVEPOINT {name};\n"),
            Act::RollbackTo(name) => text += &format!("ROLLBACK TO SAVEPOINT {name};\n"),
            Act::Statement(statement) => write_statement(&mut text, case, statement),
        }
        for remark in of_step(step.number) {
            let _ = writeln!(text, "-- | {remark}");
        }
    }
    text
}

fn write_statement(text: &mut String, case: &Case, statement: &Instrumented) {
    let name = |table: TableNo| case.tables[table.index()].as_str();
    let target = statement.target.map_or("-", name);
    let view = match statement.view {
        View::Statement => "statement",
        View::Transaction => "transaction",
    };
    let _ = write!(text, "-- is: {} {target} {} {view}", statement.kind.name(), statement.version);
    if statement.shared {
        text.push_str(" shared");
    }
    if statement.ordered {
        text.push_str(" ordered");
    }
    if let Some(table) = statement.items {
        let _ = write!(text, " items={}", name(table));
    }
    text.push('\n');
    for (table, sql) in &statement.versions {
        let _ = writeln!(text, "-- versions {}: {sql}", name(*table));
    }
    if let Some(sql) = &statement.before {
        let _ = writeln!(text, "-- before: {sql}");
    }
    if let Some(sql) = &statement.after {
        let _ = writeln!(text, "-- after: {sql}");
    }
    let _ = writeln!(text, "{};", statement.sql);
}

/// A case read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// The case.
    pub case: Case,
    /// The level it ran at, by the vendor's name.
    pub isolation: String,
}

/// Why a file is no case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ScriptError {}

/// Reads what [`write()`] wrote.
pub fn parse(text: &str) -> Result<Script, ScriptError> {
    let mut reader = Reader::default();
    if text.lines().next().map(str::trim) != Some(TITLE) {
        let message = format!("not a case saved by `taipan hunt`: expected {TITLE:?}");
        return Err(ScriptError { line: 1, message });
    }
    for (place, line) in text.lines().enumerate() {
        let at = |message: String| ScriptError { line: place + 1, message };
        reader.line(line.trim()).map_err(at)?;
    }
    if !reader.sql.is_empty() {
        let message = "the file ends within a statement".to_owned();
        return Err(ScriptError { line: text.lines().count(), message });
    }
    if reader.case.steps.is_empty() {
        let message = "the file ends before its first statement: is it truncated?".to_owned();
        return Err(ScriptError { line: text.lines().count(), message });
    }
    Ok(Script { case: reader.case, isolation: reader.isolation })
}

/// The part of the file that is being read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    Schema,
    Rows,
    Schedule,
}

#[derive(Default)]
struct Reader {
    case: Case,
    isolation: String,
    part: Part,
    /// The statement so far.
    sql: String,
    step: Option<(TxnNo, StepNo)>,
    statement: Option<Instrumented>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        if let Some(comment) = line.strip_prefix("--")
            && self.sql.is_empty()
        {
            return self.comment(comment.trim());
        }
        if line.is_empty() {
            return Ok(());
        }
        if !self.sql.is_empty() {
            self.sql.push(' ');
        }
        self.sql.push_str(line);
        match self.sql.strip_suffix(';').map(str::to_owned) {
            Some(sql) => {
                self.sql.clear();
                self.statement(sql)
            }
            None => Ok(()),
        }
    }

    fn comment(&mut self, comment: &str) -> Result<(), String> {
        match comment {
            "schema" => self.part = Part::Schema,
            "rows" => self.part = Part::Rows,
            "schedule" => self.part = Part::Schedule,
            _ if comment.starts_with('|') => {}
            _ if self.part == Part::Schedule => return self.fact(comment),
            _ => match comment.split_once(": ") {
                Some(("isolation", name)) => self.isolation = name.to_owned(),
                Some(("table", name)) => self.case.tables.push(name.to_owned()),
                Some(("view", name)) => self.case.views.push(name.to_owned()),
                _ => {}
            },
        }
        Ok(())
    }

    /// A comment of the schedule that says what SQL cannot.
    fn fact(&mut self, fact: &str) -> Result<(), String> {
        let words: Vec<&str> = fact.split(' ').collect();
        if let [txn, step] = words.as_slice()
            && let (Some(Ok(txn)), Some(Ok(step))) =
                (txn.strip_prefix('T').map(str::parse), step.strip_prefix('S').map(str::parse))
        {
            if txn >= TRANSACTIONS_MAX {
                return Err(format!("a case has at most {TRANSACTIONS_MAX} transactions"));
            }
            self.step = Some((TxnNo(txn), StepNo(step)));
            return Ok(());
        }
        let (what, rest) = fact.split_once(": ").ok_or_else(|| format!("unknown fact {fact:?}"))?;
        if what == "is" {
            self.statement = Some(self.kind(rest)?);
            return Ok(());
        }
        let table = what.strip_prefix("versions ").map(|name| self.table(name)).transpose()?;
        let statement = self.statement.as_mut().ok_or("a read before \"is:\"")?;
        match (what, table) {
            (_, Some(table)) => statement.versions.push((table, rest.to_owned())),
            ("before", _) => statement.before = Some(rest.to_owned()),
            ("after", _) => statement.after = Some(rest.to_owned()),
            _ => return Err(format!("unknown line {what:?}")),
        }
        Ok(())
    }

    fn table(&self, name: &str) -> Result<TableNo, String> {
        let place = self.case.tables.iter().position(|table| table == name);
        place.map(TableNo::of).ok_or_else(|| format!("no table {name:?} is declared at the top"))
    }

    fn kind(&self, facts: &str) -> Result<Instrumented, String> {
        let words: Vec<&str> = facts.split(' ').collect();
        let [kind, target, version, view, marks @ ..] = words.as_slice() else {
            return Err("expected kind, table, version and view".to_owned());
        };
        let known = Kind::ALL.iter().find(|(name, _)| name == kind);
        let mut statement = Instrumented {
            kind: known.map(|(_, kind)| *kind).ok_or_else(|| format!("unknown kind {kind:?}"))?,
            target: if *target == "-" { None } else { Some(self.table(target)?) },
            version: version.parse().map_err(|_| format!("{version:?} is not a version"))?,
            shared: false,
            view: match *view {
                "statement" => View::Statement,
                "transaction" => View::Transaction,
                _ => return Err(format!("{view:?} is not a view")),
            },
            ordered: false,
            items: None,
            versions: Vec::new(),
            before: None,
            sql: String::new(),
            after: None,
        };
        for mark in marks {
            match (*mark, mark.strip_prefix("items=")) {
                ("shared", _) => statement.shared = true,
                ("ordered", _) => statement.ordered = true,
                (_, Some(table)) => statement.items = Some(self.table(table)?),
                _ => return Err(format!("unknown mark {mark:?}")),
            }
        }
        Ok(statement)
    }

    fn statement(&mut self, sql: String) -> Result<(), String> {
        match self.part {
            Part::Head => return Err("a statement before \"-- schema\"".to_owned()),
            Part::Schema => self.case.schema.push(sql),
            Part::Rows => self.case.rows.push(sql),
            Part::Schedule => {
                let (txn, number) = self.step.take().ok_or("a statement without a session")?;
                let act = match (self.statement.take(), sql.as_str()) {
                    (Some(statement), _) => Act::Statement(Box::new(Instrumented { sql, ..statement })),
                    (None, "BEGIN") => Act::Begin,
                    (None, "COMMIT") => Act::Commit,
                    (None, "ROLLBACK") => Act::Rollback,
                    (None, other) => match other.strip_prefix("ROLLBACK TO SAVEPOINT ") {
                        Some(name) => Act::RollbackTo(name.to_owned()),
                        None => Act::Savepoint(
                            other
                                .strip_prefix("SAVEPOINT ")
                                .ok_or("a statement needs a line \"-- is:\" before it")?
                                .to_owned(),
                        ),
                    },
                };
                self.case.steps.push(Step { number, txn, act });
            }
        }
        Ok(())
    }
}

/// Each transaction has a connection.
const TRANSACTIONS_MAX: u32 = 200;
