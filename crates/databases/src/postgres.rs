//! PostgreSQL, over the network or as a throw-away server.

use crate::dialect::{self, Answer, Statement};
use crate::driver::{Database, Failure, Fault, Limit, Session, try_repeatedly};
use crate::follow::{FollowOptions, Follower};
use crate::grammar::{self, Grammar, Sight};
use crate::isolation::{self, Isolation};
use crate::matrix::{Console, Scripted};
use crate::passwords::{self, Passwords};
use crate::schema::Schema;
use crate::secret::Address;
use crate::server::Server;
use crate::server::postgres::Cluster;
use crate::sql::{Connection, SqlSession, fill};
use crate::target::{self, Temp, Vendor};
use crate::timestamps::{self, SetSnapshot};
use crate::tls::{self, Tls};
use bytes::BytesMut;
use history::Name;
#[cfg(feature = "tls")]
use net::Trust;
use record::{Stamp, Value};
use rustix::process::Signal;
use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, Config, Error, NoTls, Row, SimpleQueryMessage, Socket};
#[cfg(feature = "tls")]
use tokio_postgres_rustls::MakeRustlsConnect;

/// A PostgreSQL server.
#[derive(Debug)]
pub struct Postgres {
    login: Login,
    version: String,
    server: Option<Server>,
    /// The replication slot that remembers which transactions committed, if timestamps are wanted.
    slot: Option<String>,
    log: Mutex<CommitLog>,
    limit: Limit,
}

pub(crate) const VENDOR: Vendor = Vendor {
    schemes: &["postgres", "postgresql"],
    forms: &[
        target::sql("postgres:temp", "a temporary PostgreSQL server; ?bin=DIR&SETTING=VALUE&…"),
        target::sql("postgres://USER@HOST/DATABASE", "a running PostgreSQL server"),
    ],
    open: |target| match target.is_url() {
        true => Ok(Box::new(Postgres::at(target.address, target.passwords)?)),
        false => {
            let Temp { bin, settings } = target.temp()?;
            Ok(Box::new(Postgres::temporary(bin.as_deref(), &settings)?))
        }
    },
};

/// What the slot has told so far.
#[derive(Debug, Default)]
struct CommitLog {
    /// How many commits all later transactions see.
    settled: usize,
    /// Further commits, in the order of the log.
    committed: Vec<u64>,
}

/// Who connects to what, and how.
#[derive(Clone, Debug)]
pub(crate) struct Login {
    config: Config,
    /// Whom to trust; `None`: nothing is encrypted.
    #[cfg(feature = "tls")]
    trust: Option<Trust>,
}

impl Login {
    fn of(url: &Address, passwords: &Passwords) -> Result<Self, Failure> {
        url.well_formed("PostgreSQL", "PGPASSWORD")?;
        let (rest, tls) = tls::of_postgres(url.expose())?;
        let mut config: Config = rest.parse().map_err(|error: Error| url.refused("PostgreSQL", &error))?;
        config.application_name(APPLICATION).ssl_mode(match tls {
            Tls::Never => SslMode::Disable,
            Tls::IfOffered => SslMode::Prefer,
            Tls::With(_) => SslMode::Require,
        });
        if config.get_password().is_none()
            && let Some(password) = passwords.of_postgres(&who(&config))?
        {
            config.password(password.expose());
        }
        Ok(Self {
            config,
            #[cfg(feature = "tls")]
            trust: match tls {
                Tls::Never => None,
                Tls::IfOffered => Some(Trust::Anybody),
                Tls::With(trust) => Some(trust),
            },
        })
    }

    /// A connection; what moves its bytes ends with it.
    async fn connect(&self) -> Result<Client, Failure> {
        #[cfg(feature = "tls")]
        {
            if let Some(trust) = &self.trust {
                let config =
                    net::client_config(trust).map_err(|error| Failure::mistake(error.to_string()))?;
                return self.connect_by(MakeRustlsConnect::new((*config).clone())).await;
            }
        }
        self.connect_by(NoTls).await
    }

    async fn connect_by<T>(&self, tls: T) -> Result<Client, Failure>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let connected = self.config.connect(tls).await;
        let (client, connection) = connected.map_err(|error| connect_failure(&self.config, error))?;
        // It ends with the client, or with the connection; the client then reports the error.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(client)
    }
}

/// Who connects to what, for the file of passwords.
fn who(config: &Config) -> passwords::Login<'_> {
    let user = config.get_user().unwrap_or_default();
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.as_str(),
        // A socket is on this machine.
        _ => "localhost",
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    passwords::Login { host, port, database: config.get_dbname().unwrap_or(user), user }
}

/// How the server tells our connections from others.
const APPLICATION: &str = "taipan";

impl Postgres {
    /// The server of a URL, `postgres://user:password@host:port/database`.
    pub fn at(url: &Address, passwords: &Passwords) -> Result<Self, Failure> {
        let login = Login::of(url, passwords)?;
        let version = PostgresConnection::open(&login, Limit::default())?.version()?;
        Ok(Self { login, version, server: None, slot: None, log: Mutex::default(), limit: Limit::default() })
    }

    /// A private throw-away server, from the programs in `bin` or those installed; removed with the value.
    pub fn temporary(bin: Option<&Path>, settings: &[(String, String)]) -> Result<Self, Failure> {
        let cluster = Cluster::create(bin, settings)?;
        let mut config = Config::new();
        // The name of the server's socket holds its port.
        if let Some((_, port)) = settings.iter().rfind(|(name, _)| name == "port") {
            config.port(port.parse().map_err(|_| Failure::mistake(format!("port={port} is not a port")))?);
        }
        config
            .host_path(&cluster.folder.path)
            .user("taipan")
            .dbname("postgres")
            .application_name(APPLICATION);
        let login = Login {
            config,
            #[cfg(feature = "tls")]
            trust: None,
        };
        let ready = || PostgresConnection::open(&login, Limit::default()).is_ok();
        let server = Server::start(cluster.folder, cluster.janitor, cluster.command, &ready)?;
        let version = PostgresConnection::open(&login, Limit::default())?.version()?;
        Ok(Self {
            login,
            version,
            server: Some(server),
            slot: None,
            log: Mutex::default(),
            limit: Limit::default(),
        })
    }

    pub(crate) fn open(&self) -> Result<PostgresConnection, Failure> {
        PostgresConnection::open(&self.login, self.limit)
    }

    /// Follows the server's change stream.
    pub fn follow(&self, options: FollowOptions) -> Result<Follower, Failure> {
        Follower::open(&self.login, options)
    }

    /// The URL under which others reach the same server, on this machine.
    pub fn url(&self) -> Option<String> {
        let server = self.server.as_ref()?;
        let escape = |c: char| if c == '/' { "%2F".to_owned() } else { c.to_string() };
        let host: String = server.folder().display().to_string().chars().map(escape).collect();
        Some(format!("postgres://taipan@{host}/postgres"))
    }

    /// Cuts a connection that is in a transaction; between transactions there is none, so a few tries.
    fn kill_connection(&self) -> Result<bool, Failure> {
        let sql = "SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity \
                   WHERE application_name = 'taipan' AND pid <> pg_backend_pid() AND state <> 'idle' \
                   ORDER BY random() LIMIT 1) AS victim";
        let mut connection = self.open()?;
        try_repeatedly(|| {
            let rows = connection.rows(sql)?;
            Ok(rows.first().and_then(|row| row.first()) == Some(&Value::Int(1)))
        })
    }
}

impl Database for Postgres {
    fn name(&self) -> String {
        format!("PostgreSQL {}", self.version)
    }

    fn isolations(&self) -> &'static [Isolation] {
        &isolation::POSTGRES
    }

    fn create(&self, schema: &Schema, initial: &[(Name, Value)]) -> Result<(), Failure> {
        let mut connection = self.open()?;
        for sql in dialect::POSTGRES.create_table(schema) {
            connection.run(&sql)?;
        }
        let mut session = SqlSession::new(connection, &dialect::POSTGRES, schema.clone());
        fill(&mut session, self.isolations(), initial)
    }

    fn connect(&self, schema: &Schema) -> Result<Box<dyn Session>, Failure> {
        let mut connection = self.open()?;
        connection.stamps = self.slot.is_some();
        Ok(Box::new(SqlSession::new(connection, &dialect::POSTGRES, schema.clone())))
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit = limit;
    }

    /// A slot without a reader would keep the server's log for ever.
    fn leftovers(&self) -> Vec<String> {
        let slot = self.slot.iter().filter(|_| self.server.is_none());
        slot.map(|slot| drop_slot(slot)).collect()
    }

    fn enable_timestamps(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        if self.slot.is_some() {
            return Ok(());
        }
        if isolation.sight == Some(Sight::NEWEST) {
            let message = "each statement has its own snapshot, so a transaction has no start timestamp";
            return Err(Failure::mistake(format!("PostgreSQL at {}: {message}", isolation.name)));
        }
        if self
            .version
            .split('.')
            .next()
            .and_then(|major| major.parse().ok())
            .is_none_or(|major: u32| major < 13)
        {
            return Err(Failure::mistake(format!("timestamps need PostgreSQL 13, this is {}", self.version)));
        }
        let slot = format!("taipan_{}", std::process::id());
        let sql = format!("SELECT pg_create_logical_replication_slot('{slot}', 'test_decoding')::text");
        match self.open()?.rows(&sql) {
            Ok(_) => {
                self.slot = Some(slot);
                Ok(())
            }
            Err(failure) => Err(Failure::mistake(format!(
                "timestamps need wal_level = logical, a free replication slot and test_decoding: {failure}"
            ))),
        }
    }

    fn timestamps(&self, stamps: &[Option<Stamp>]) -> Result<Vec<Option<(i64, i64)>>, Failure> {
        let Some(slot) = &self.slot else { return Ok(vec![None; stamps.len()]) };
        let mut connection = self.open()?;
        connection.await_flush()?;
        let rows = connection.rows(&format!(
            "SELECT xid::text::bigint FROM pg_logical_slot_get_changes('{slot}', NULL, NULL, \
             'skip-empty-xacts', '1') WHERE data LIKE 'COMMIT%'"
        ))?;
        let now = connection.text("SELECT pg_current_snapshot()::text")?;
        let now = now.as_deref().and_then(SetSnapshot::parse);
        let now = now.ok_or_else(|| Failure::mistake("the server did not report its snapshot"))?;
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        // The log has the lower half of ids only.
        let xid =
            |row: &Vec<Value>| row.first().and_then(Value::as_int).and_then(|xid| u32::try_from(xid).ok());
        log.committed.extend(rows.iter().filter_map(xid).map(|xid| now.widen(xid)));
        // Nothing is open: what is visible now is visible to all that come later. What others have committed and nobody
        // sees yet is left for the next time.
        let (visible, later): (Vec<u64>, Vec<u64>) = log.committed.iter().partition(|&&xid| now.sees(xid));
        let times = timestamps::from_sets(stamps, log.settled, &visible)?;
        log.settled += visible.len();
        log.committed = later;
        Ok(times)
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
        server.suffer(fault, Signal::INT, &|| PostgresConnection::open(&self.login, self.limit).is_ok())?;
        Ok(true)
    }
}

impl Scripted for Postgres {
    fn limit(&self) -> Limit {
        self.limit
    }

    fn console(&self) -> Result<Box<dyn Console>, Failure> {
        let mut connection = self.open()?;
        let rows = connection.rows("SELECT pg_backend_pid()")?;
        let id = rows.first().and_then(|row| row.first()).and_then(Value::as_int).unwrap_or_default();
        Ok(Box::new(PostgresConsole { connection, id }))
    }

    fn log_from(&self, place: u64) -> (String, u64) {
        self.server.as_ref().map_or((String::new(), place), |server| server.log_from(place))
    }

    fn is_waiting(&self, observer: &mut dyn Console, id: i64) -> Result<bool, Failure> {
        let rows =
            observer.send(&format!("SELECT 1 FROM pg_locks WHERE pid = {id} AND NOT granted LIMIT 1"))?;
        Ok(!rows.is_empty())
    }

    fn grammar(&self) -> &'static Grammar {
        &grammar::POSTGRES
    }

    fn hurry(&self, console: &mut dyn Console) {
        // A setting that is refused costs time only.
        let _ = console.answer("SET synchronous_commit = off");
    }
}

struct PostgresConsole {
    connection: PostgresConnection,
    id: i64,
}

impl Console for PostgresConsole {
    fn id(&self) -> i64 {
        self.id
    }

    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        self.connection.run(isolation.ask)
    }

    fn be_patient(&mut self) {
        self.connection.limit = self.connection.limit.for_connecting();
    }

    fn send(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        self.connection.rows(sql)
    }

    fn answer(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        self.connection.texts(sql)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for sql in self.leftovers() {
            let _ = self.open().and_then(|mut connection| connection.rows(&sql));
        }
    }
}

fn drop_slot(slot: &str) -> String {
    format!(
        "SELECT pg_drop_replication_slot(slot_name)::text FROM pg_replication_slots WHERE slot_name = '{slot}'"
    )
}

/// A connection with the small runtime that moves its bytes.
pub(crate) struct PostgresConnection {
    client: Client,
    runtime: Runtime,
    prepared: HashMap<String, tokio_postgres::Statement>,
    /// Whether to ask for snapshots and transaction ids.
    stamps: bool,
    snapshot: Option<String>,
    xid: Option<String>,
    limit: Limit,
}

impl PostgresConnection {
    pub(crate) fn open(login: &Login, limit: Limit) -> Result<Self, Failure> {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Failure::mistake(format!("cannot start a runtime for the connection: {error}"))
            })?;
        let client = runtime.block_on(async { limit.connecting(login.connect()).await })?;
        Ok(Self {
            client,
            runtime,
            prepared: HashMap::new(),
            stamps: false,
            snapshot: None,
            xid: None,
            limit,
        })
    }

    fn wait<T>(&self, answer: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        self.runtime.block_on(self.limit.wait(async { answer.await.map_err(failure) }))
    }

    /// Runs a statement that has neither parameters nor results.
    pub(crate) fn run(&mut self, sql: &str) -> Result<(), Failure> {
        self.wait(self.client.batch_execute(sql))
    }

    /// The rows of a query without parameters.
    pub(crate) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        let rows = self.wait(self.client.query(sql, &[]))?;
        rows.iter().map(cells).collect()
    }

    /// Runs statements of which one answers with one text (or NULL), all in one round trip.
    fn text(&mut self, sql: &str) -> Result<Option<String>, Failure> {
        let messages = self.wait(self.client.simple_query(sql))?;
        Ok(messages.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        }))
    }

    /// The rows of a statement, in the server's own words.
    pub(crate) fn texts(&mut self, sql: &str) -> Result<Vec<Vec<Value>>, Failure> {
        let messages = self.wait(self.client.simple_query(sql))?;
        let cell = |text: Option<&str>| text.map_or(Value::Null, |text| Value::Text(text.to_owned()));
        let row = |message: &SimpleQueryMessage| match message {
            SimpleQueryMessage::Row(row) => Some((0..row.len()).map(|index| cell(row.get(index))).collect()),
            _ => None,
        };
        Ok(messages.iter().filter_map(row).collect())
    }

    /// Waits until everything that has committed is on the server's disk: a slot tells no more than that, and without
    /// `synchronous_commit` a transaction is visible before.
    fn await_flush(&mut self) -> Result<(), Failure> {
        let end = self.text("SELECT pg_current_wal_insert_lsn()::text")?.unwrap_or_default();
        let until = Instant::now() + Duration::from_secs(10);
        let reached = format!("SELECT (pg_current_wal_flush_lsn() >= '{end}'::pg_lsn)::text");
        while self.text(&reached)?.as_deref() != Some("true") && Instant::now() < until {
            thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn version(&mut self) -> Result<String, Failure> {
        let rows = self.rows("SELECT split_part(current_setting('server_version'), ' ', 1)")?;
        match rows.into_iter().next().and_then(|row| row.into_iter().next()) {
            Some(Value::Text(version)) => Ok(version),
            _ => Err(Failure::mistake("the server did not report its version")),
        }
    }
}

impl Connection for PostgresConnection {
    fn begin(&mut self, isolation: &Isolation) -> Result<(), Failure> {
        if !self.stamps {
            return self.run(isolation.ask);
        }
        self.xid = None;
        self.snapshot = self.text(&format!("{}; SELECT pg_current_snapshot()::text", isolation.ask))?;
        Ok(())
    }

    fn send(&mut self, statement: &Statement) -> Result<Answer, Failure> {
        let Self { client, runtime, prepared, limit, .. } = self;
        let answer = async {
            let handle = match prepared.get(&statement.sql) {
                Some(handle) => handle,
                None => {
                    let handle = client.prepare(&statement.sql).await?;
                    prepared.entry(statement.sql.clone()).or_insert(handle)
                }
            };
            let params: Vec<Param<'_>> = statement.params.iter().map(Param).collect();
            let params: Vec<&(dyn ToSql + Sync)> =
                params.iter().map(|param| param as &(dyn ToSql + Sync)).collect();
            if statement.rows {
                client.query(handle, &params).await.map(Ok)
            } else {
                client.execute(handle, &params).await.map(Err)
            }
        };
        match runtime.block_on(limit.wait(async { answer.await.map_err(failure) }))? {
            Ok(rows) => rows.iter().map(cells).collect::<Result<_, _>>().map(Answer::Rows),
            Err(count) => Ok(Answer::Count(count)),
        }
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if !self.stamps {
            return self.run("COMMIT");
        }
        self.xid = self.text("SELECT pg_current_xact_id_if_assigned()::text; COMMIT")?;
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), Failure> {
        self.run("ROLLBACK")
    }

    fn stamp(&mut self) -> Option<Stamp> {
        let snapshot = self.snapshot.take()?;
        Some(Stamp { snapshot, commit: self.xid.take() })
    }
}

/// A parameter; what the server expects there decides how it is sent.
#[derive(Debug)]
struct Param<'v>(&'v Value);

impl ToSql for Param<'_> {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match self.0 {
            Value::Int(value) => value.to_sql_checked(kind, out),
            Value::Text(text) => text.to_sql_checked(kind, out),
            Value::Bool(value) => value.to_sql_checked(kind, out),
            Value::Float(value) => value.to_sql_checked(kind, out),
            Value::Null | Value::List(_) | Value::Row(_) => Ok(IsNull::Yes),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// The cells of a row: integers, texts and nulls; of other types their text, if they are text at all.
fn cells(row: &Row) -> Result<Vec<Value>, Failure> {
    let cell = |index: usize| {
        let value = match *row.columns()[index].type_() {
            Type::INT8 => row.try_get::<_, Option<i64>>(index)?.map(Value::Int),
            Type::INT4 => row.try_get::<_, Option<i32>>(index)?.map(|value| Value::Int(value.into())),
            Type::BOOL => row.try_get::<_, Option<bool>>(index)?.map(Value::Bool),
            _ => row.try_get::<_, Option<String>>(index)?.map(Value::Text),
        };
        Ok(value.unwrap_or(Value::Null))
    };
    (0..row.len()).map(cell).collect::<Result<_, Error>>().map_err(failure)
}

/// A server that does not answer may be about to come back; one that refuses us will not change its mind.
fn connect_failure(config: &Config, error: Error) -> Failure {
    if error.as_db_error().is_none() {
        return Failure::unreachable(server(config), &error);
    }
    match failure(error) {
        Failure::Mistake { message } => {
            Failure::mistake(format!("cannot connect to {}: {message}", server(config)))
        }
        other => other,
    }
}

/// Where a server is: `localhost:5432`, or the path of a socket.
fn server(config: &Config) -> String {
    let ports = config.get_ports();
    let port = |place: usize| ports.get(place).or(ports.first()).copied().unwrap_or(5432);
    let hosts = config.get_hosts().iter().enumerate().map(|(place, host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(place)),
        Host::Unix(path) => path.display().to_string(),
    });
    hosts.collect::<Vec<_>>().join(", ")
}

/// What an error means for the transaction, by its SQLSTATE.
fn failure(error: Error) -> Failure {
    let Some(db) = error.as_db_error() else {
        let source =
            std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        return match error.is_closed() || source_is_io(&error) {
            true => Failure::lost(format!("{error}{source}")),
            false => Failure::mistake(format!("PostgreSQL driver: {error}{source}")),
        };
    };
    let (code, message) = (db.code().code(), db.message());
    match code {
        // The statement may have completed, nobody knows.
        "40003" => Failure::lost(message),
        // Serialization failures and deadlocks; a failed transaction; constraints; time-outs.
        _ if code.starts_with("40") || code.starts_with("23") => Failure::aborted(code, message),
        "25P02" | "55P03" | "57014" => Failure::aborted(code, message),
        // The server or the connection is going down.
        _ if code.starts_with("57P") || code.starts_with("08") => Failure::lost(message),
        _ => Failure::mistake(format!("PostgreSQL: {message} ({code})")),
    }
}

fn source_is_io(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>())
}
