//! MariaDB and MySQL, over the network or as a throw-away server.

use crate::dialect::{self, Answer, Statement};
use crate::driver::{Database, Failure, Fault, Limit, Session, try_repeatedly};
use crate::grammar::{self, Grammar, View};
use crate::isolation::{self, Isolation};
use crate::matrix::{Console, Scripted};
use crate::passwords::Passwords;
use crate::schema::Schema;
use crate::secret::Address;
use crate::server::Server;
use crate::server::mariadb::DataFolder;
use crate::sql::{Connection, SqlSession, fill};
use crate::target::{self, Temp, Vendor};
use crate::timestamps::{self, LogPlace, Logged};
use crate::tls::{self, Tls};
use history::Name;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, Opts, OptsBuilder, Params, Row, SslOpts};
use net::Trust;
use record::{Stamp, Value};
use rustix::process::Signal;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Runtime;

/// A MariaDB or MySQL server.
pub struct MariaDb {
    opts: Opts,
    about: About,
    server: Option<Server>,
    /// Taken around the beginning of a transaction if timestamps are wanted: the two values that name its
    /// snapshot race between sessions (seen on 10.11 and 11.8).
    snapshots: Option<Arc<Mutex<()>>>,
    limit: Limit,
}

pub(crate) const VENDOR: Vendor = Vendor {
    schemes: &["mariadb", "mysql"],
    forms: &[
        target::sql("mariadb:temp", "a temporary MariaDB server; ?bin=DIR&SETTING=VALUE&…"),
        target::sql("mysql:temp", "a temporary MySQL server; ?bin=DIR&SETTING=VALUE&…"),
        target::sql("mysql://USER@HOST/DATABASE", "a running MariaDB or MySQL server"),
    ],
    open: |target| {
        if target.is_url() {
            return Ok(Box::new(MariaDb::at(target.address, target.passwords)?));
        }
        let Temp { bin, settings } = target.temp()?;
        Ok(Box::new(match target.scheme {
            "mysql" => MariaDb::temporary_mysql(bin.as_deref(), &settings)?,
            _ => MariaDb::temporary(bin.as_deref(), &settings)?,
        }))
    },
};

/// What the server says of itself.
#[derive(Clone, Debug)]
struct About {
    version: String,
    is_mariadb: bool,
    snapshot_isolation: bool,
}

const DATABASE: &str = "taipan";

/// Without the options, which hold the password.
impl fmt::Debug for MariaDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MariaDb")
            .field("about", &self.about)
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl MariaDb {
    /// The server of a URL, `mysql://user:password@host:port/database`.
    pub fn at(url: &Address, passwords: &Passwords) -> Result<Self, Failure> {
        url.well_formed("MySQL", "MYSQL_PWD")?;
        let (rest, tls) = tls::of_mysql(url.expose())?;
        let opts = Opts::from_url(&rest.replacen("mariadb://", "mysql://", 1))
            .map_err(|error| url.refused("MySQL", &error))?;
        let (has_user, has_password) = (opts.user().is_some(), opts.pass().is_some());
        let mut builder = OptsBuilder::from_opts(opts);
        let client = passwords.of_mysql()?;
        if !has_user {
            builder = builder.user(client.user);
        }
        if let Some(password) = client.password.filter(|_| !has_password) {
            builder = builder.pass(Some(password.expose()));
        }
        if let Tls::With(trust) = tls {
            builder = builder.ssl_opts(ssl_opts(trust)?);
        }
        let opts = with_our_options(builder);
        let about = MariaDbConnection::open(&opts, Limit::default())?.about()?;
        Ok(Self { opts, about, server: None, snapshots: None, limit: Limit::default() })
    }

    /// A private throw-away MariaDB server, from the programs in `bin` or those installed; removed with the value.
    pub fn temporary(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        Self::serving(DataFolder::of_mariadb(bin, settings)?)
    }

    /// The same of MySQL.
    pub fn temporary_mysql(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        Self::serving(DataFolder::of_mysql(bin, settings)?)
    }

    fn serving(data: DataFolder) -> Result<Self, Failure> {
        let base = OptsBuilder::default().socket(data.socket.to_str()).user(Some("root"));
        let without_database = with_our_options(base.clone());
        let ready = || MariaDbConnection::open(&without_database, Limit::default()).is_ok();
        let server = Server::start(data.folder, data.janitor, data.command, &ready)?;
        let mut connection = MariaDbConnection::open(&without_database, Limit::default())?;
        connection.run(&format!("CREATE DATABASE {DATABASE}"))?;
        let about = connection.about()?;
        let opts = with_our_options(base.db_name(Some(DATABASE)));
        Ok(Self { opts, about, server: Some(server), snapshots: None, limit: Limit::default() })
    }

    pub(crate) fn open(&self) -> Result<MariaDbConnection, Failure> {
        MariaDbConnection::open(&self.opts, self.limit)
    }

    fn kill_connection(&self) -> Result<bool, Failure> {
        let mut connection = self.open()?;
        let sql = "SELECT id FROM information_schema.processlist \
             WHERE id <> CONNECTION_ID() AND db = DATABASE() AND command <> 'Sleep' ORDER BY RAND() LIMIT 1";
        try_repeatedly(|| {
            let victims = connection.rows(sql)?;
            let Some(Value::Int(id)) = victims.first().and_then(|row| row.first()) else { return Ok(false) };
            match connection.run(&format!("KILL CONNECTION {id}")) {
                Ok(()) => Ok(true),
                // It ended by itself in the meantime.
                Err(Failure::Mistake { .. }) => Ok(false),
                Err(failure) => Err(failure),
            }
        })
    }
}

/// Whom the driver trusts.
fn ssl_opts(trust: Trust) -> Result<SslOpts, Failure> {
    let only = |roots| SslOpts::default().with_root_certs(roots).with_disable_built_in_roots(true);
    Ok(match trust {
        Trust::System => {
            let found = net::system_authorities().map_err(|error| Failure::mistake(error.to_string()))?;
            only(found.into_iter().map(Into::into).collect())
        }
        Trust::File(path) => only(vec![path.into()]),
        Trust::FileForAnyName(path) => only(vec![path.into()]).with_danger_skip_domain_validation(true),
        Trust::Anybody => SslOpts::default().with_danger_accept_invalid_certs(true),
    })
}

/// Rows that an UPDATE found, not only those it changed, are what its condition saw.
fn with_our_options(opts: OptsBuilder) -> Opts {
    opts.client_found_rows(true).prefer_socket(Some(false)).stmt_cache_size(Some(256)).into()
}

impl Database for MariaDb {
    fn name(&self) -> String {
        let product = if self.about.is_mariadb { "MariaDB" } else { "MySQL" };
        format!("{product} {}", self.about.version)
    }

    fn isolations(&self) -> &'static [Isolation] {
        match self.about.snapshot_isolation {
            true => &isolation::MARIADB_SNAPSHOT,
            false => &isolation::MARIADB,
        }
    }

    fn create(&self, schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure> {
        let mut connection = self.open()?;
        for sql in dialect::MARIADB.create_table(schema) {
            connection.run(&sql)?;
        }
        let mut session = SqlSession::new(connection, &dialect::MARIADB, schema.clone());
        fill(&mut session, self.isolations(), initial)
    }

    fn connect(&self, schema: &Schema) -> Result<Box<dyn Session>, Failure> {
        let mut connection = self.open()?;
        connection.snapshots = self.snapshots.clone();
        Ok(Box::new(SqlSession::new(connection, &dialect::MARIADB, schema.clone())))
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    fn enable_timestamps(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        if isolation.sight.is_none_or(|sight| sight.reads != View::Transaction) {
            let message = "only repeatable-read reads from one snapshot";
            return Err(Failure::mistake(format!("no timestamps at {}: {message}", isolation.name)));
        }
        let mut connection = self.open()?;
        if !self.about.is_mariadb || connection.snapshot_place()?.is_none() {
            return Err(Failure::mistake("timestamps need MariaDB with the binary log on (log_bin)"));
        }
        self.snapshots = Some(Arc::default());
        Ok(())
    }

    fn timestamps(&self, stamps: &[Option<Stamp>]) -> Result<Vec<Option<(i64, i64)>>, Failure> {
        if self.snapshots.is_none() {
            return Ok(vec![None; stamps.len()]);
        }
        timestamps::from_places(stamps, &self.open()?.binary_log()?)
    }

    fn scripted(&self) -> Option<&dyn Scripted> {
        Some(self)
    }

    fn log_end(&self) -> Option<String> {
        self.server.as_ref().map(Server::log_end)
    }

    fn can_suffer(&self, fault: Fault) -> bool {
        fault == Fault::KillConnection || self.server.is_some()
    }

    fn inflict(&self, fault: Fault) -> Result<bool, Failure> {
        if fault == Fault::KillConnection {
            return self.kill_connection();
        }
        let Some(server) = &self.server else { return Ok(false) };
        server.suffer(fault, Signal::TERM, &|| MariaDbConnection::open(&self.opts, self.limit).is_ok())?;
        Ok(true)
    }
}

impl Scripted for MariaDb {
    fn limit(&self) -> Limit {
        self.limit
    }

    fn console(&self) -> Result<Box<dyn Console>, Failure> {
        let mut connection = self.open()?;
        let rows = connection.rows("SELECT CONNECTION_ID()")?;
        let id = rows.first().and_then(|row| row.first()).and_then(Value::as_int).unwrap_or_default();
        Ok(Box::new(MariaDbConsole { connection, id }))
    }

    fn log_from(&self, place: u64) -> (String, u64) {
        self.server.as_ref().map_or((String::new(), place), |server| server.log_from(place))
    }

    /// `information_schema.innodb_trx` would say the same, but is refreshed ten times a second at most and
    /// never while it is being read.
    fn is_waiting(&self, observer: &mut dyn Console, id: i64) -> Result<bool, Failure> {
        let rows = observer.send("SHOW ENGINE INNODB STATUS")?;
        let Some(Value::Text(status)) = rows.into_iter().next().and_then(|mut row| row.pop()) else {
            return Ok(false);
        };
        Ok(waits_in(&status, id))
    }

    fn table_options(&self) -> &'static str {
        dialect::MARIADB.table_options
    }

    fn grammar(&self) -> &'static Grammar {
        let major = self.about.version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        match (self.about.is_mariadb, major) {
            (true, _) => &grammar::MARIADB,
            (false, Some(..8)) => &grammar::OLD_MYSQL,
            (false, _) => &grammar::MYSQL,
        }
    }

    fn hurry(&self, console: &mut dyn Console) {
        if self.server.is_some() {
            // A setting that is refused costs time only.
            let _ = console.send("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
            let _ = console.send("SET GLOBAL sync_binlog = 0");
            let _ = console.send("SET SESSION sql_log_bin = 0");
        }
    }
}

/// Whether the engine's status lists the connection's transaction as waiting for a lock. Each transaction
/// has a section: `---TRANSACTION …`, perhaps a line `LOCK WAIT …`, and a line `MySQL thread id 7, …`
/// (`MariaDB thread id 7` in later versions).
fn waits_in(status: &str, id: i64) -> bool {
    let is_of = |line: &str| {
        let number = line.split_once("thread id ").map(|(_, rest)| rest);
        number.is_some_and(|rest| rest.split([',', ' ']).next() == Some(&id.to_string()))
    };
    status
        .split("---TRANSACTION ")
        .skip(1)
        .filter(|section| section.lines().take_while(|line| !line.starts_with("---")).any(is_of))
        .any(|section| section.lines().any(|line| line.starts_with("LOCK WAIT ")))
}

struct MariaDbConsole {
    connection: MariaDbConnection,
    id: i64,
}

impl Console for MariaDbConsole {
    fn id(&self) -> i64 {
        self.id
    }

    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        self.connection.run(isolation.ask)?;
        self.connection.run("START TRANSACTION")
    }

    fn be_patient(&mut self) {
        self.connection.limit = self.connection.limit.for_connecting();
    }

    fn send(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        self.connection.rows(sql)
    }
}

/// A connection with the small runtime that moves its bytes.
pub(crate) struct MariaDbConnection {
    conn: Conn,
    runtime: Runtime,
    /// The level last asked for.
    isolation: Option<Isolation>,
    in_transaction: bool,
    /// See [`MariaDb::snapshots`].
    snapshots: Option<Arc<Mutex<()>>>,
    snapshot: Option<String>,
    /// The transaction id (GTID) of the last commit that wrote something.
    last_gtid: Value,
    limit: Limit,
}

impl MariaDbConnection {
    fn open(opts: &Opts, limit: Limit) -> Result<Self, Failure> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Failure::mistake(format!("cannot start a runtime for the connection: {error}"))
            })?;
        let connected = async { Conn::new(opts.clone()).await.map_err(|error| connect_failure(opts, error)) };
        let conn = runtime.block_on(async { limit.connecting(connected).await })?;
        Ok(Self {
            conn,
            runtime,
            isolation: None,
            in_transaction: false,
            snapshots: None,
            snapshot: None,
            last_gtid: Value::Text(String::new()),
            limit,
        })
    }

    /// Runs a statement that has neither parameters nor results.
    pub(crate) fn run(&mut self, sql: &str) -> Result<(), Failure> {
        let Self { conn, runtime, limit, .. } = self;
        runtime.block_on(limit.wait(async { conn.query_drop(sql).await.map_err(failure) }))
    }

    /// The rows of a query without parameters. They come as text: numbers are recognised by their look.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        let Self { conn, runtime, limit, .. } = self;
        let rows: Vec<Row> =
            runtime.block_on(limit.wait(async { conn.query(sql).await.map_err(failure) }))?;
        let number = |value: Value| match value {
            Value::Text(text) => text.parse().map(Value::Int).unwrap_or(Value::Text(text)),
            other => other,
        };
        Ok(rows.into_iter().map(|row| cells(row).into_iter().map(number).collect()).collect())
    }

    /// The place in the binary log that the snapshot of this session's transaction stands for.
    fn snapshot_place(&mut self) -> Result<Option<String>, Failure> {
        let (mut file, mut offset) = (None, None);
        for row in self.rows("SHOW STATUS LIKE 'binlog_snapshot_%'")? {
            match row.as_slice() {
                [Value::Text(name), Value::Text(value)]
                    if name.eq_ignore_ascii_case("binlog_snapshot_file") =>
                {
                    file = Some(value.clone());
                }
                [Value::Text(name), Value::Int(value)]
                    if name.eq_ignore_ascii_case("binlog_snapshot_position") =>
                {
                    offset = Some(*value);
                }
                _ => {}
            }
        }
        Ok(file.zip(offset).map(|(file, offset)| format!("{file}:{offset}")))
    }

    /// All transactions in the binary log, in order.
    fn binary_log(&mut self) -> Result<Vec<Logged>, Failure> {
        let mut log = Vec::new();
        for row in self.rows("SHOW BINARY LOGS")? {
            let Some(Value::Text(file)) = row.into_iter().next() else { continue };
            let events = self.rows(&format!("SHOW BINLOG EVENTS IN '{file}'"))?;
            log.extend(transactions_of(&file, &events));
        }
        Ok(log)
    }

    fn about(&mut self) -> Result<About, Failure> {
        let first = |rows: Vec<Vec<Value>>| rows.into_iter().next().unwrap_or_default();
        let version = match first(self.rows("SELECT CONCAT('', VERSION())")?).pop() {
            Some(Value::Text(version)) => version,
            _ => return Err(Failure::mistake("the server did not report its version")),
        };
        let setting = first(self.rows("SHOW VARIABLES LIKE 'innodb_snapshot_isolation'")?).pop();
        let is_mariadb = version.contains("MariaDB");
        let version = version.split('-').next().unwrap_or_default().to_owned();
        Ok(About { version, is_mariadb, snapshot_isolation: setting == Some(Value::Text("ON".into())) })
    }
}

impl Connection for MariaDbConnection {
    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        if self.isolation != Some(*isolation) {
            self.run(isolation.ask)?;
            self.isolation = Some(*isolation);
        }
        match self.snapshots.clone() {
            None => self.run("START TRANSACTION")?,
            Some(one_at_a_time) => {
                let _guard = one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
                self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
                self.snapshot = self.snapshot_place()?;
            }
        }
        self.in_transaction = true;
        Ok(())
    }

    fn send(&mut self, statement: &Statement) -> Result<Answer, Failure> {
        let params = match statement.params.is_empty() {
            true => Params::Empty,
            false => Params::Positional(statement.params.iter().map(param).collect()),
        };
        let Self { conn, runtime, limit, .. } = self;
        let answer = async {
            if statement.rows {
                let rows: Vec<Row> = conn.exec(statement.sql.as_str(), params).await?;
                return Ok(Answer::Rows(rows.into_iter().map(cells).collect()));
            }
            conn.exec_drop(statement.sql.as_str(), params).await?;
            Ok(Answer::Count(conn.affected_rows()))
        };
        runtime.block_on(limit.wait(async { answer.await.map_err(failure) }))
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.run("COMMIT")?;
        self.in_transaction = false;
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        if !std::mem::take(&mut self.in_transaction) {
            return Ok(());
        }
        self.run("ROLLBACK")
    }

    /// After a commit `@@last_gtid` names it; it stays as it was if nothing was written.
    fn stamp(&mut self) -> Option<Stamp> {
        let snapshot = self.snapshot.take()?;
        let gtid = self.rows("SELECT @@last_gtid").ok()?.pop()?.pop()?;
        let commit = match (&gtid, gtid != self.last_gtid) {
            (Value::Text(name), true) => Some(name.clone()),
            _ => None,
        };
        self.last_gtid = gtid;
        Some(Stamp { snapshot, commit })
    }
}

/// The transactions among a log file's events (Log_name, Pos, Event_type, Server_id, End_log_pos, Info).
/// A transaction begins with a Gtid event that names it. `BEGIN GTID …` ends with an Xid event, or with
/// COMMIT where no engine has transactions; any other Gtid event announces a single statement.
fn transactions_of(file: &str, events: &[Vec<Value>]) -> Vec<Logged> {
    let mut found = Vec::new();
    let mut open: Option<(String, bool)> = None;
    for event in events {
        let [_, _, Value::Text(kind), _, Value::Int(end), Value::Text(info)] = event.as_slice() else {
            continue;
        };
        if kind == "Gtid" {
            // `BEGIN GTID 0-1-49 cid=70`: what follows the name concerns group commit.
            let name = info.split(' ').skip_while(|word| *word != "GTID").nth(1).unwrap_or_default();
            open = Some((name.to_owned(), info.starts_with("BEGIN")));
            continue;
        }
        let Some((_, is_block)) = &open else { continue };
        let is_end = kind == "Xid" || (kind == "Query" && (!is_block || info == "COMMIT"));
        if is_end
            && let Some((name, _)) = open.take()
            && let Some(place) = LogPlace::parse(&format!("{file}:{end}"))
        {
            found.push(Logged { name, end: place });
        }
    }
    found
}

fn param(value: &Value) -> mysql_async::Value {
    match value {
        Value::Int(value) => (*value).into(),
        Value::Text(text) => text.as_bytes().into(),
        Value::Float(value) => (*value).into(),
        Value::Bool(value) => (*value).into(),
        _ => mysql_async::Value::NULL,
    }
}

fn cells(row: Row) -> Vec<Value> {
    let cell = |value: mysql_async::Value| match value {
        mysql_async::Value::Int(value) => Value::Int(value),
        mysql_async::Value::UInt(value) => {
            i64::try_from(value).map_or(Value::Float(value as f64), Value::Int)
        }
        mysql_async::Value::Bytes(bytes) => Value::Text(String::from_utf8_lossy(&bytes).into_owned()),
        mysql_async::Value::Float(value) => Value::Float(value.into()),
        mysql_async::Value::Double(value) => Value::Float(value),
        _ => Value::Null,
    };
    row.unwrap().into_iter().map(cell).collect()
}

fn connect_failure(opts: &Opts, error: Error) -> Failure {
    let server = match opts.socket() {
        Some(path) => path.to_owned(),
        None => format!("{}:{}", opts.ip_or_hostname(), opts.tcp_port()),
    };
    if matches!(error, Error::Io(_)) {
        return Failure::unreachable(server, &error);
    }
    match failure(error) {
        Failure::Mistake { message } => Failure::mistake(format!("cannot connect to {server}: {message}")),
        other => other,
    }
}

/// What an error means for the transaction, by the server's number.
fn failure(error: Error) -> Failure {
    let Error::Server(server) = error else {
        return match error {
            Error::Io(_) | Error::Driver(DriverError::ConnectionClosed) => Failure::lost(error.to_string()),
            _ => Failure::mistake(format!("MariaDB driver: {error}")),
        };
    };
    let message = server.message;
    match server.code {
        // Record changed since last read; record not found, where it was found before; duplicate key; lock wait time-out;
        // deadlock; statement time-out.
        1020 | 1032 | 1062 | 1205 | 1213 | 1969 => Failure::aborted(server.code.to_string(), message),
        // Shutting down, connection killed, query interrupted, aborted connection.
        1053 | 1927 | 1317 | 1152 | 1184 => Failure::lost(message),
        code => Failure::mistake(format!("MariaDB: {message} ({code})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_transaction_is_found_in_the_status() {
        let status = "TRANSACTIONS\n------------\n\
            ---TRANSACTION 31, ACTIVE 1 sec starting index read\nmysql tables in use 1, locked 1\n\
            LOCK WAIT 2 lock struct(s), heap size 1128, 1 row lock(s)\n\
            MariaDB thread id 12, OS thread handle 1, query id 40 localhost root Updating\nUPDATE t\n\
            ------- TRX HAS BEEN WAITING 3 us FOR THIS LOCK TO BE GRANTED:\nRECORD LOCKS\n\
            ---TRANSACTION 30, ACTIVE 1 sec\n2 lock struct(s)\n\
            MariaDB thread id 1, OS thread handle 2, query id 39 localhost root\n--------\nFILE I/O\n";
        assert!(waits_in(status, 12));
        assert!(!waits_in(status, 1));
        assert!(!waits_in(status, 2), "no such connection");
    }

    #[test]
    fn transactions_are_found_among_the_events_of_a_log() {
        let event = |kind: &str, end: i64, info: &str| {
            let text = |text: &str| Value::Text(text.into());
            vec![text("binlog.000002"), Value::Int(0), text(kind), Value::Int(1), Value::Int(end), text(info)]
        };
        let events = [
            event("Format_desc", 256, "Server ver: 10.11"),
            event("Gtid", 300, "GTID 0-1-1"),
            event("Query", 400, "CREATE DATABASE taipan"),
            event("Gtid", 440, "BEGIN GTID 0-1-2"),
            event("Write_rows_v1", 500, "table_id: 1 flags: STMT_END_F"),
            event("Xid", 530, "COMMIT /* xid=9 */"),
            event("Gtid", 570, "BEGIN GTID 0-1-3 cid=70"),
            event("Query", 600, "SAVEPOINT a"),
            event("Query", 640, "COMMIT"),
            event("Gtid", 700, "BEGIN GTID 0-1-4"),
        ];
        let found = transactions_of("binlog.000002", &events);
        let logged = |name: &str, offset| Logged { name: name.into(), end: LogPlace { file: 2, offset } };
        assert_eq!(found, [logged("0-1-1", 400), logged("0-1-2", 530), logged("0-1-3", 640)]);
    }
}
