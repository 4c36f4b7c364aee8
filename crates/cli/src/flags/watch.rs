//! The flags of `taipan watch`.

use super::values::levels;
use super::{CrewFlags, LevelName, bytes, count, seconds};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Check transactions while the database runs
///
/// Checks by the database's own timestamps. Transactions arrive as JSON lines, in any order, from stdin, sockets, HTTP or
/// a Redis stream, and are checked as they arrive. Findings are JSON lines on stdout; a finding is reported once it is
/// final. A verdict is final when no later transaction can change it: after --grace, after --window transactions, or at a
/// line {"watermark":TIMESTAMP} in the stream.
///
/// With the URL of a PostgreSQL server, Taipan follows its change stream, which says what was written and in which order.
/// The lines then only need what clients saw and their snapshots. On the server this creates a logical replication slot and
/// no tables.
#[derive(Debug, Args)]
#[command(after_help = "\
With postgres://…, creates a replication slot on the server and no tables.
Exit status: 0 no violation, 1 at least one, 2 undecided or a worker is gone,
3 error.
More options and examples: taipan help watch")]
#[command(after_long_help = "\
Exit status:
  0  no violation was found
  1  at least one was found
  2  results are undecided, or a worker or a process is gone; earlier findings
     stand, and --state resumes
  3  usage or input error, or the service could not continue

Examples:
  tail -F trace.jsonl | taipan watch --level SI
  # a page at /, transactions by POST /transactions
  taipan watch --http 127.0.0.1:8080
  taipan watch --tcp 127.0.0.1:7070 --state /var/lib/taipan --max-memory 512M
  # the keys on four workers, the same findings
  taipan watch --tcp 127.0.0.1:7070 --workers 4 --monitor
  # a second process for the keys; process 0 has the sources and the state
  taipan watch --cluster hosts.txt --process 1
  # reads arrive by POST, writes from the server
  taipan watch postgres://me@localhost/shop --http 127.0.0.1:8080
  taipan watch --broker 'redis://127.0.0.1?stream=txns' \\
      --webhook http://127.0.0.1:9000/alarm")]
pub(crate) struct WatchFlags {
    /// Files of JSON lines, or postgres://USER@HOST/DATABASE
    ///
    /// `-` is stdin. With a database, its change stream is followed.
    #[arg(value_name = "FILE|URL")]
    pub(crate) files: Vec<PathBuf>,

    /// Isolation level
    ///
    /// Snapshot isolation or serializability, with or without session order.
    #[arg(long, value_name = "LEVEL", value_parser = levels(), hide_possible_values = true, default_value = checker::Level::SNAPSHOT_ISOLATION.name())]
    pub(crate) level: LevelName,

    /// Read-your-own-writes policy
    #[arg(long, value_name = "POLICY", default_value = "must", hide_short_help = true)]
    pub(crate) ryow: super::Ryow,

    /// Read stdin; the default without another source
    #[arg(long, help_heading = "Sources")]
    pub(crate) stdin: bool,

    /// Listen for JSON lines (repeatable)
    #[arg(long, value_name = "ADDRESS", help_heading = "Sources")]
    pub(crate) tcp: Vec<SocketAddr>,

    /// Listen on a Unix socket (repeatable)
    #[arg(long, value_name = "PATH", help_heading = "Sources")]
    pub(crate) unix: Vec<PathBuf>,

    /// Serve HTTP: POST /transactions, a page at /, /metrics
    #[arg(long, value_name = "ADDRESS", help_heading = "Sources")]
    pub(crate) http: Option<SocketAddr>,

    /// Read a Redis stream: redis://HOST?stream=NAME
    ///
    /// The full form is `redis://[USER:PASSWORD@]HOST[:PORT][/DB]?stream=NAME&group=NAME`; by TLS `rediss://…`, with `&ca=FILE`
    /// for a certificate authority that this machine does not know.
    #[arg(long, value_name = "URL", help_heading = "Sources")]
    pub(crate) broker: Vec<service::BrokerAddress>,

    /// Follow only this table of the database (repeatable)
    ///
    /// Default: all tables with a primary key.
    #[arg(long, value_name = "TABLE", help_heading = "Sources")]
    pub(crate) table: Vec<String>,

    /// Replication slot on the followed database
    ///
    /// Default: a temporary slot, dropped with the connection; with --state the slot `taipan_watch`, which stays.
    #[arg(long, value_name = "NAME", help_heading = "Sources")]
    pub(crate) slot: Option<String>,

    /// Token that HTTP requests and TCP connections must send
    ///
    /// HTTP requests send `Authorization: Bearer TOKEN`, TCP connections the first line {"token":"TOKEN"}. Required unless
    /// all addresses are loopback addresses.
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TAIPAN_TOKEN",
        hide_env_values = true,
        help_heading = "Sources"
    )]
    pub(crate) token: Option<String>,

    /// Largest HTTP request, after decompression
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "64M", hide_short_help = true, help_heading = "Sources")]
    pub(crate) max_body: u64,

    /// Also post findings to `http://HOST[:PORT]/PATH`
    ///
    /// To reach an https address, use a proxy on this machine.
    #[arg(long, value_name = "URL", help_heading = "Findings")]
    pub(crate) webhook: Option<databases::Address>,

    /// How late a transaction may arrive, in seconds
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "5", help_heading = "Certainty")]
    pub(crate) grace: Duration,

    /// Longest duration of a transaction, in seconds
    ///
    /// Values that were overwritten longer ago are forgotten.
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "60", help_heading = "Certainty")]
    pub(crate) longest: Duration,

    /// How late a transaction may arrive, in transactions
    ///
    /// Instead of --grace and --longest: up to this many others may arrive, or commit, before it.
    #[arg(long, value_name = "TRANSACTIONS", conflicts_with_all = ["grace", "longest"], help_heading = "Certainty", value_parser = count::<u64>(0.., "10000"))]
    pub(crate) window: Option<u64>,

    /// Finalize verdicts only on watermark lines
    ///
    /// A watermark is a line {"watermark":TIMESTAMP} in the stream.
    #[arg(long, alias = "told", conflicts_with_all = ["grace", "longest", "window"], help_heading = "Certainty")]
    pub(crate) explicit_watermarks: bool,

    /// Keep all state here, to resume after a restart
    ///
    /// Acknowledged transactions are on disk. After a restart, also with another number of workers, no finding is lost or
    /// reported twice.
    #[arg(long, value_name = "FOLDER", help_heading = "Memory and disk")]
    pub(crate) state: Option<PathBuf>,

    /// Longest time between checkpoints, in seconds
    #[arg(long, hide_short_help = true, value_name = "SECS", value_parser = seconds, default_value = "60", help_heading = "Memory and disk")]
    pub(crate) checkpoint: Duration,

    /// Memory limit of the process
    ///
    /// Final transactions go to disk. If that is not enough, verdicts become final earlier. K, M, G and T are powers of
    /// 1024.
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Memory and disk")]
    pub(crate) max_memory: Option<u64>,

    #[command(flatten)]
    pub(crate) crew: CrewFlags,
}
