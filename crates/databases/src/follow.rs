//! A running PostgreSQL server followed through logical replication.
//!
//! A [`Follower`] holds a replication slot with the server's own plugin `test_decoding` and asks it, a few times
//! a second, for what has committed since: the order of commits and every row they changed. A [`Join`] puts that
//! together with what traced clients read.
//!
//! **Rows are keys.** A row of a followed table is the key `PRIMARY-KEY`, or `TABLE/PRIMARY-KEY` if several tables
//! are followed (parts of a key of several columns are joined by `/`). Its value is the one column beside the key, or
//! an object of columns if there are several. A NULL there is as good as no row: clients cannot tell them apart.
//!
//! **Steps** of [`Follower::poll`]:
//! 1. if no boundary is on its way: a snapshot, and the place where the log ends *after* it — everything that the
//!    snapshot sees has its commit record before that place;
//! 2. up to where the log is on disk, which is as far as the slot tells;
//! 3. what the slot tells, without moving it on;
//! 4. if 2 is behind the boundary's place, the boundary has been reached.
//!
//! [`Follower::confirm`] moves the slot on, once what was told is safe: a crash in between makes the slot tell it
//! again, and [`Follower::poll`] leaves out what is known.

mod decoding;
mod join;

pub use join::{Join, Joined, Matched, Patience};

use crate::driver::{Failure, Limit};
use crate::postgres::{Login, PostgresConnection};
use crate::timestamps::SetSnapshot;
use decoding::{Cell, Change, Content};
use join::Told;
use record::Value;
use serde_json::{Map, Value as Json};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What is followed, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FollowOptions {
    /// Tables by name, with their schema unless that is `public`; none: all that have a primary key.
    pub tables: Vec<String>,
    /// A slot that outlives the connection, so that following can go on after a restart; without one the slot goes
    /// with the connection.
    pub slot: Option<String>,
    /// Up to where the log is known from before, as [`Changes::place`] said.
    pub resume: Option<u64>,
}

/// What one look brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Lines for [`Join::take_changes`].
    pub lines: Vec<u8>,
    /// The place in the log up to which they tell.
    pub place: u64,
    /// What cannot be followed, a sentence each.
    pub troubles: Vec<String>,
    /// Whether there is more to be had at once.
    pub is_more: bool,
}

/// Follows a server. See the module.
pub struct Follower {
    login: Login,
    connection: PostgresConnection,
    options: FollowOptions,
    slot: String,
    tables: HashMap<String, Table>,
    known_until: u64,
    boundary: Option<Boundary>,
    confirmed: u64,
    /// The rows at the beginning are still to be reported.
    is_new: bool,
}

struct Boundary {
    snapshot: SetSnapshot,
    /// Where the log ended after it.
    end: u64,
    at_ms: u64,
}

/// A table that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    /// As a key begins; nothing if it is the only one.
    prefix: String,
    /// As SQL names it.
    quoted: String,
    /// All columns with their types.
    columns: Vec<(String, String)>,
    /// The primary key.
    key: Vec<String>,
}

/// How many changes are asked for at once; a transaction is never cut.
const CHANGES_MAX: usize = 20_000;
/// How many rows a transaction of the initial state has.
const ROWS_MAX: usize = 1_000;

impl Follower {
    pub(crate) fn open(login: &Login, options: FollowOptions) -> Result<Self, Failure> {
        let mut connection = PostgresConnection::open(login, Limit::default().for_connecting())?;
        let slot = options.slot.clone().unwrap_or_else(|| format!("taipan_watch_{}", std::process::id()));
        if !slot.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_') {
            return Err(Failure::mistake(format!(
                "invalid slot name {slot:?}: use lower-case letters, digits and _"
            )));
        }
        let exists = !connection
            .rows(&format!("SELECT 1 FROM pg_replication_slots WHERE slot_name = '{slot}'"))?
            .is_empty();
        match (exists, options.resume) {
            (true, Some(_)) => {}
            (false, Some(_)) => {
                return Err(Failure::mistake(format!(
                    "the replication slot {slot} no longer exists, and the changes it kept are lost: start with a new state folder"
                )));
            }
            (true, None) => {
                return Err(Failure::mistake(format!(
                    "the replication slot {slot} already exists: choose another with --slot, or remove it with \
                     SELECT pg_drop_replication_slot('{slot}')"
                )));
            }
            (false, None) => create_slot(&mut connection, &slot, options.slot.is_none())?,
        }
        let tables = tables(&mut connection, &options.tables)?;
        if tables.is_empty() {
            return Err(Failure::mistake("no table with a primary key to follow"));
        }
        let known_until = options.resume.unwrap_or(0);
        let is_new = options.resume.is_none();
        Ok(Self {
            login: login.clone(),
            connection,
            options,
            slot,
            tables,
            known_until,
            boundary: None,
            confirmed: known_until,
            is_new,
        })
    }

    /// The name of the slot.
    pub fn slot(&self) -> &str {
        &self.slot
    }

    /// The tables, as keys name them.
    pub fn tables(&self) -> Vec<String> {
        let mut names: Vec<String> = self.tables.values().map(|table| table.quoted.clone()).collect();
        names.sort();
        names
    }

    /// Connects again after the connection was lost. A slot that went with it cannot be had again.
    pub fn reconnect(&mut self) -> Result<(), Failure> {
        if self.options.slot.is_none() {
            return Err(Failure::mistake(
                "the connection was lost, and the replication slot with it; use --state FOLDER to keep the slot",
            ));
        }
        self.connection = PostgresConnection::open(&self.login, Limit::default().for_connecting())?;
        self.boundary = None;
        Ok(())
    }

    /// What has happened since the last look.
    pub fn poll(&mut self) -> Result<Changes, Failure> {
        let mut changes = Changes { place: self.known_until, ..Changes::default() };
        if self.is_new {
            self.initial_rows(&mut changes)?;
            self.is_new = false;
        }
        // 1.
        let boundary = match self.boundary.take() {
            Some(boundary) => boundary,
            None => self.look()?,
        };
        // 2.
        let flushed = self.number("SELECT (pg_current_wal_flush_lsn() - '0/0'::pg_lsn)::bigint")?;
        // 3.
        let slot = &self.slot;
        let rows = self.connection.rows(&format!(
            "SELECT (lsn - '0/0'::pg_lsn)::bigint, xid::text::bigint, data FROM \
             pg_logical_slot_peek_changes('{slot}', NULL, {CHANGES_MAX}, 'skip-empty-xacts', '1')"
        ))?;
        changes.is_more = rows.len() >= CHANGES_MAX;
        let last = self.commits(&rows, &boundary.snapshot, &mut changes)?;
        changes.place = if changes.is_more { last } else { flushed.max(last) }.max(self.known_until);
        self.known_until = changes.place;
        // 4.
        if changes.place >= boundary.end {
            let Boundary { snapshot, at_ms, .. } = boundary;
            line(&mut changes, &Told::Boundary { snapshot, at_ms });
        } else {
            self.boundary = Some(boundary);
        }
        Ok(changes)
    }

    /// Everything up to this place is safe: the server need not keep it.
    pub fn confirm(&mut self, place: u64) -> Result<(), Failure> {
        if place <= self.confirmed {
            return Ok(());
        }
        let slot = &self.slot;
        // A place that the slot is behind already, after a restart of the server, is as good.
        self.connection.rows(&format!(
            "SELECT pg_replication_slot_advance('{slot}', '0/0'::pg_lsn + {place})::text FROM pg_replication_slots \
             WHERE slot_name = '{slot}' AND confirmed_flush_lsn < '0/0'::pg_lsn + {place}"
        ))?;
        self.confirmed = place;
        Ok(())
    }

    fn number(&mut self, sql: &str) -> Result<u64, Failure> {
        let rows = self.connection.rows(sql)?;
        number(rows.first().and_then(|row| row.first()))
    }

    fn look(&mut self) -> Result<Boundary, Failure> {
        let rows = self.connection.rows(
            "SELECT pg_current_snapshot()::text, (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint",
        )?;
        let row = rows.first().map(Vec::as_slice).unwrap_or_default();
        let snapshot = snapshot(row.first())?;
        Ok(Boundary { snapshot, end: number(row.get(1))?, at_ms: now_ms() })
    }

    /// The rows of all tables, as one snapshot sees them.
    fn initial_rows(&mut self, changes: &mut Changes) -> Result<(), Failure> {
        self.connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
        let rows = self.connection.rows("SELECT pg_current_snapshot()::text")?;
        let base = snapshot(rows.first().and_then(|row| row.first()))?;
        line(changes, &Told::Begin { snapshot: base });
        let tables: Vec<Table> = self.tables.values().cloned().collect();
        for table in tables {
            let columns: Vec<String> = table.columns.iter().map(|(name, _)| quote(name)).collect();
            let (columns, from) = (columns.join(", "), &table.quoted);
            self.connection.run(&format!("DECLARE taipan_rows CURSOR FOR SELECT {columns} FROM {from}"))?;
            loop {
                let rows = self.connection.texts(&format!("FETCH {ROWS_MAX} FROM taipan_rows"))?;
                let writes: Vec<(Json, Json)> =
                    rows.iter().filter_map(|row| table.write(&table.cells(row))).collect();
                if !writes.is_empty() {
                    line(changes, &Told::Rows { writes });
                }
                if rows.len() < ROWS_MAX {
                    break;
                }
            }
            self.connection.run("CLOSE taipan_rows")?;
        }
        self.connection.run("COMMIT")
    }

    /// Turns rows of the slot into commits; returns where the last one ends.
    fn commits(
        &mut self,
        rows: &[Vec<Value>],
        near: &SetSnapshot,
        changes: &mut Changes,
    ) -> Result<u64, Failure> {
        let mut writes: Vec<(Json, Json)> = Vec::new();
        let mut last = 0;
        for row in rows {
            let (place, xid) = (number(row.first())?, number(row.get(1))?);
            let Some(Value::Text(text)) = row.get(2) else { continue };
            let is_known = place <= self.known_until;
            match decoding::read(text) {
                Some(Change::Committed) => {
                    last = place;
                    let writes = std::mem::take(&mut writes);
                    if !is_known && !writes.is_empty() {
                        let xid = u32::try_from(xid).map_or(xid, |xid| near.widen(xid));
                        line(changes, &Told::Commit { xid, writes });
                    }
                }
                Some(Change::Emptied { tables }) => {
                    let message = format!(
                        "{tables}: TRUNCATE cannot be followed; later reads of these tables may be reported as wrong"
                    );
                    changes.troubles.push(message);
                }
                Some(Change::Put { table, old, new }) => {
                    let Some(table) = self.table(&table)? else { continue };
                    let moved = table.key(&old).filter(|key| table.key(&new).as_ref() != Some(key));
                    writes.extend(moved.map(|key| (key, Json::Null)));
                    writes.extend(table.write(&new));
                }
                Some(Change::Removed { table, old }) => {
                    let Some(table) = self.table(&table)? else { continue };
                    writes.extend(table.key(&old).map(|key| (key, Json::Null)));
                }
                Some(Change::Other) => {}
                None => changes.troubles.push(format!("unexpected message in the change stream: {text:?}")),
            }
        }
        Ok(last)
    }

    /// A table by its name; one that was made since the beginning is followed, too.
    fn table(&mut self, name: &str) -> Result<Option<&Table>, Failure> {
        if !self.tables.contains_key(name) && self.options.tables.is_empty() {
            // The only table's keys have no prefix, and must not get one in mid-stream.
            let found = tables(&mut self.connection, &self.options.tables)?;
            if self.tables.len() > 1 {
                for (name, table) in found {
                    self.tables.entry(name).or_insert(table);
                }
            }
        }
        Ok(self.tables.get(name))
    }
}

impl Table {
    /// A row of a query as cells.
    fn cells(&self, row: &[Value]) -> Vec<Cell> {
        let content = |value: &Value| match value {
            Value::Text(text) => Content::Text(text.clone()),
            _ => Content::Null,
        };
        let cell = |((column, kind), value): (&(String, String), &Value)| Cell {
            column: column.clone(),
            kind: kind.clone(),
            content: content(value),
        };
        self.columns.iter().zip(row).map(cell).collect()
    }

    /// The key of a row.
    fn key(&self, cells: &[Cell]) -> Option<Json> {
        let part = |column: &String| {
            let cell = cells.iter().find(|cell| cell.column == *column)?;
            cell.content.value(&cell.kind)
        };
        let parts: Vec<Json> = self.key.iter().map(part).collect::<Option<_>>()?;
        let text = |part: &Json| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
        Some(match parts.as_slice() {
            [Json::Number(number)] if self.prefix.is_empty() => number.clone().into(),
            parts => {
                format!("{}{}", self.prefix, parts.iter().map(text).collect::<Vec<_>>().join("/")).into()
            }
        })
    }

    /// A row that stands there: its key and its value. None where the value is unknown.
    fn write(&self, cells: &[Cell]) -> Option<(Json, Json)> {
        let key = self.key(cells)?;
        let mut values: BTreeMap<&str, Json> = BTreeMap::new();
        for cell in cells.iter().filter(|cell| !self.key.contains(&cell.column)) {
            values.insert(&cell.column, cell.content.value(&cell.kind)?);
        }
        let value = match values.len() {
            0 => Json::Bool(true),
            1 => values.into_values().next()?,
            _ => Json::Object(
                values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>(),
            ),
        };
        Some((key, value))
    }
}

fn create_slot(connection: &mut PostgresConnection, slot: &str, is_temporary: bool) -> Result<(), Failure> {
    let sql =
        format!("SELECT pg_create_logical_replication_slot('{slot}', 'test_decoding', {is_temporary})::text");
    connection.rows(&sql).map(drop).map_err(|failure| {
        Failure::mistake(format!(
            "following needs wal_level = logical, a free replication slot, the right to replicate, and test_decoding: \
             {failure}"
        ))
    })
}

/// All tables with a primary key, by their names as the plugin writes them without quotes.
fn tables(connection: &mut PostgresConnection, wanted: &[String]) -> Result<HashMap<String, Table>, Failure> {
    let rows = connection.rows(
        "SELECT n.nspname::text, c.relname::text, a.attname::text, format_type(a.atttypid, NULL), \
                coalesce(array_position(i.indkey::int2[], a.attnum), -1)::bigint \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary \
         JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
         WHERE c.relkind = 'r' AND c.relpersistence = 'p' AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
         ORDER BY 1, 2, a.attnum",
    )?;
    let mut tables: BTreeMap<String, (Table, BTreeMap<i64, String>)> = BTreeMap::new();
    for row in &rows {
        let [
            Value::Text(schema),
            Value::Text(name),
            Value::Text(column),
            Value::Text(kind),
            Value::Int(place),
        ] = row.as_slice()
        else {
            continue;
        };
        let short = if schema == "public" { name.clone() } else { format!("{schema}.{name}") };
        if !wanted.is_empty() && !wanted.contains(&short) && !wanted.contains(&format!("{schema}.{name}")) {
            continue;
        }
        let (table, key) = tables.entry(format!("{schema}.{name}")).or_insert_with(|| {
            let quoted = format!("{}.{}", quote(schema), quote(name));
            let table = Table { prefix: format!("{short}/"), quoted, columns: Vec::new(), key: Vec::new() };
            (table, BTreeMap::new())
        });
        table.columns.push((column.clone(), kind.clone()));
        if *place >= 0 {
            key.insert(*place, column.clone());
        }
    }
    if let Some(missing) = wanted
        .iter()
        .find(|name| !tables.contains_key(*name) && !tables.contains_key(&format!("public.{name}")))
    {
        return Err(Failure::mistake(format!("no table {missing} with a primary key")));
    }
    let is_only = tables.len() == 1;
    let table = |(name, (mut table, key)): (String, (Table, BTreeMap<i64, String>))| {
        table.key = key.into_values().collect();
        if is_only {
            table.prefix.clear();
        }
        (name, table)
    };
    Ok(tables.into_iter().map(table).collect())
}

fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn line(changes: &mut Changes, told: &Told) {
    changes.lines.extend_from_slice(
        serde_json::to_string(told).expect("names, numbers and texts always have a JSON form").as_bytes(),
    );
    changes.lines.push(b'\n');
}

fn number(value: Option<&Value>) -> Result<u64, Failure> {
    value
        .and_then(Value::as_int)
        .and_then(|number| u64::try_from(number).ok())
        .ok_or_else(|| Failure::mistake(format!("the server sent {value:?} instead of a number")))
}

fn snapshot(value: Option<&Value>) -> Result<SetSnapshot, Failure> {
    match value {
        Some(Value::Text(text)) => SetSnapshot::parse(text),
        _ => None,
    }
    .ok_or_else(|| Failure::mistake(format!("the server's snapshot {value:?} cannot be read")))
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
