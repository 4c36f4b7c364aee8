//! From finished transactions to a [`history::Builder`].

use crate::executed::{Done, Executed};
use crate::keys::Key;
use crate::plan::{Column, Filter, Piece, SettingsError, Value};
use crate::simulation::{Config, Simulation, Summary};
use history::formats::Part;
use history::{
    BuildError, Builder, Cell, ColumnId, Comparison, History, KeyId, Predicate, Range, Row, Timestamp,
    ValueId,
};
use std::fmt;

/// What of a transaction is recorded beside its operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// The clients' clocks.
    pub client: bool,
    /// The database's timestamps.
    pub db: bool,
    /// `ctx` of planted transactions says which bug they are a part of.
    pub planted: bool,
}

impl Default for Fields {
    fn default() -> Self {
        Self { client: true, db: true, planted: false }
    }
}

/// Why a simulation was not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The settings make no sense.
    Settings(SettingsError),
    /// The history cannot hold it.
    Build(BuildError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(error) => error.fmt(f),
            Self::Build(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<SettingsError> for RunError {
    fn from(error: SettingsError) -> Self {
        Self::Settings(error)
    }
}

impl From<BuildError> for RunError {
    fn from(error: BuildError) -> Self {
        Self::Build(error)
    }
}

impl Simulation {
    /// Runs to the end and records everything, header included.
    pub fn run(mut self, fields: Fields, builder: &mut Builder) -> Result<Summary, RunError> {
        let mut recorder = Recorder::new(fields);
        recorder.header(self.config(), builder);
        while let Some(executed) = self.next_transaction() {
            recorder.transaction(executed, builder)?;
        }
        Ok(self.summary().clone())
    }
}

/// A part is handed out when it holds this many operations, rows and elements.
const PART_ITEMS: usize = 1 << 18;

impl Simulation {
    /// Runs to the end and hands out the history in parts, so that memory does not grow with its length.
    pub fn run_in_parts<E: From<RunError>>(
        mut self,
        fields: Fields,
        mut sink: impl FnMut(&History, Part) -> Result<(), E>,
    ) -> Result<Summary, E> {
        let mut recorder = Recorder::new(fields);
        let mut builder = Builder::new();
        let mut part = Part { last: false, ..Part::WHOLE };
        let mut items = 0;
        recorder.header(self.config(), &mut builder);
        let failed = |error: BuildError| E::from(RunError::from(error));
        while let Some(executed) = self.next_transaction() {
            recorder.transaction(executed, &mut builder).map_err(failed)?;
            items += 1 + executed.items();
            if items >= PART_ITEMS {
                items = 0;
                let history = builder.take_part().map_err(failed)?;
                sink(&history, part)?;
                part.index += 1;
                part.transactions_before += history.len() as u64;
                part.operations_before += history.op_count() as u64;
            }
        }
        let history = builder.take_part().map_err(failed)?;
        sink(&history, Part { last: true, ..part })?;
        Ok(self.summary().clone())
    }
}

/// Records finished transactions, one after the other.
#[derive(Debug)]
pub struct Recorder {
    fields: Fields,
    // Reused from one operation to the next.
    rows: Vec<Row>,
    keys: Vec<KeyId>,
    elements: Vec<ValueId>,
    cells: Vec<Cell>,
}

impl Recorder {
    /// A recorder of the given fields.
    pub fn new(fields: Fields) -> Self {
        Self { fields, rows: Vec::new(), keys: Vec::new(), elements: Vec::new(), cells: Vec::new() }
    }

    /// Records what the history's header says: initial values, the promised level, where it came from.
    pub fn header(&mut self, config: &Config, builder: &mut Builder) {
        for (key, value) in config.plan.initial_rows() {
            let key = builder.key(i64::from(key.0).into());
            let value = self.value(value, &[], builder);
            builder.initial(key, value);
        }
        builder.set_level(config.strength.promise());
        let note = format!(
            r#"{{"generator":{{"target":"sim:{}","workload":"{}","seed":{},"sessions":{},"keys":{}}}}}"#,
            config.strength.name(),
            config.plan.workload.name(),
            config.plan.seed,
            config.plan.sessions,
            config.plan.keys,
        );
        builder.set_header_extra(&note);
    }

    /// Records one transaction. Sessions are called by their number, from 1.
    pub fn transaction(&mut self, executed: &Executed, builder: &mut Builder) -> Result<(), BuildError> {
        let session = builder.session((i64::from(executed.session) + 1).into());
        builder.begin(session);
        builder.set_status(executed.status);
        if self.fields.client {
            builder.set_client(executed.client)?;
        }
        if let Some((start, commit)) = executed.db.filter(|_| self.fields.db) {
            builder.set_db(Timestamp::from(start as i64), Timestamp::from(commit as i64))?;
        }
        if let Some(bug) = executed.planted.filter(|_| self.fields.planted) {
            builder.set_ctx(&format!(r#"{{"planted":"{}"}}"#, bug.name()));
        }
        let mut times = executed.times.iter();
        for op in &executed.ops {
            self.operation(executed, op, builder);
            if let Some(time) = times.next() {
                builder.set_op_at(*time)?;
            }
        }
        builder.end()?;
        Ok(())
    }

    fn operation(&mut self, executed: &Executed, op: &Done, builder: &mut Builder) {
        match *op {
            Done::Read { key, value, lock } => {
                let value = match value {
                    Some(value) => self.value(value, &executed.elements, builder),
                    None => ValueId::UNKNOWN,
                };
                let key = key_id(key, builder);
                builder.read(key, value, lock);
            }
            Done::Write { key, value } => {
                let value = self.value(value, &executed.elements, builder);
                let key = key_id(key, builder);
                builder.write(key, value);
            }
            Done::Delete { key } => {
                let key = key_id(key, builder);
                builder.delete(key);
            }
            Done::Append { key, element } => {
                let (key, element) = (key_id(key, builder), builder.int(element));
                builder.append(key, element);
            }
            Done::Scan { from, to, rows } => {
                let range = range(from, to, builder);
                let rows = self.fill_rows(rows, executed, builder);
                builder.scan(range, rows);
            }
            Done::Iterate { from, to, reverse, exhausted, rows } => {
                let range = range(Some(from), Some(to), builder);
                let rows = self.fill_rows(rows, executed, builder);
                builder.iterate(range, reverse, exhausted, rows);
            }
            Done::Query { filter, rows } => {
                let rows = self.fill_rows(rows, executed, builder);
                let predicate = predicate(filter, builder);
                builder.query(predicate, rows);
            }
            Done::Update { filter, set, keys } => {
                let set = self.value(set, &executed.elements, builder);
                let predicate = predicate(filter, builder);
                let keys = self.fill_keys(keys, executed, builder);
                builder.update(predicate, set, keys.map(|keys| keys.len() as u64), keys);
            }
            Done::DeleteWhere { filter, keys } => {
                let predicate = predicate(filter, builder);
                let keys = self.fill_keys(keys, executed, builder);
                builder.delete_where(predicate, keys.map(|keys| keys.len() as u64), keys);
            }
        }
    }

    fn value(&mut self, value: Value, elements: &[i64], builder: &mut Builder) -> ValueId {
        match value {
            Value::Absent => ValueId::ABSENT,
            Value::Int(number) => builder.int(number),
            Value::Row { v1, v2 } => {
                self.cells.clear();
                for (column, number) in [(Column::V1, v1), (Column::V2, v2)] {
                    let (column, value) = (column_id(column, builder), builder.int(i64::from(number)));
                    self.cells.push(Cell { column, value });
                }
                builder.row(&mut self.cells)
            }
            Value::List(piece) => {
                self.elements.clear();
                self.elements.extend(piece.of(elements).iter().map(|&element| builder.int(element)));
                builder.list(&self.elements)
            }
        }
    }

    fn fill_rows(
        &mut self,
        rows: Option<Piece>,
        executed: &Executed,
        builder: &mut Builder,
    ) -> Option<&[Row]> {
        let piece = rows?;
        let mut filled = std::mem::take(&mut self.rows);
        filled.clear();
        for &(key, value) in piece.of(&executed.rows) {
            let key = key_id(key, builder);
            let value = self.value(value, &executed.elements, builder);
            filled.push(Row { key, value });
        }
        self.rows = filled;
        Some(&self.rows)
    }

    fn fill_keys(
        &mut self,
        keys: Option<Piece>,
        executed: &Executed,
        builder: &mut Builder,
    ) -> Option<&[KeyId]> {
        let piece = keys?;
        self.keys.clear();
        self.keys.extend(piece.of(&executed.keys).iter().map(|&key| key_id(key, builder)));
        Some(&self.keys)
    }
}

#[inline]
fn key_id(key: Key, builder: &mut Builder) -> KeyId {
    builder.key(i64::from(key.0).into())
}

fn range(from: Option<Key>, to: Option<Key>, builder: &mut Builder) -> Range {
    Range { from: from.map(|key| key_id(key, builder)), to: to.map(|key| key_id(key, builder)) }
}

fn column_id(column: Column, builder: &mut Builder) -> ColumnId {
    builder.column(match column {
        Column::Value => "value",
        Column::V1 => "v1",
        Column::V2 => "v2",
    })
}

fn predicate(filter: Filter, builder: &mut Builder) -> Predicate {
    let column = column_id(filter.column, builder);
    let compare = |with, constant| Predicate::Compare { column, with, constant };
    let (low, high) = (builder.int(filter.low), builder.int(filter.high));
    Predicate::All(vec![compare(Comparison::GreaterOrEqual, low), compare(Comparison::Less, high)])
}
