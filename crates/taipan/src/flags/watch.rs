//! The flags of `taipan watch`.

use super::{CrewFlags, bytes, count, level, seconds};
use checker::Level;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Check transactions while the database runs, by its own timestamps
///
/// Transactions come as JSON lines, in any order, from standard input, sockets, HTTP or a broker's stream. Each is
/// checked as it arrives; a finding is told once it is certain, and then never changes. Findings are lines of JSON on
/// standard output. With the URL of a PostgreSQL server its change stream tells what was written and in which order, and
/// the lines need only tell what clients saw, and their snapshots. Verdicts become final when a later transaction cannot change them any more: after --grace, after
/// --window transactions, or when the stream says so with a line {"watermark":TIMESTAMP}.
#[derive(Debug, Args)]
#[command(after_help = "\
Exit status:
  0  no violation was found
  1  at least one was
  2  some results could not be decided, or a worker or a process is gone; what was told before is certain, and --state goes on where it was
  3  usage or input error, or the service could not go on

Examples:
  tail -F trace.jsonl | taipan watch --level SI
  taipan watch --http 127.0.0.1:8080                   a page at /, transactions by POST /transactions
  taipan watch --tcp 127.0.0.1:7070 --state /var/lib/taipan --max-memory 512M
  taipan watch --tcp 127.0.0.1:7070 --workers 4 --monitor
                                                       keys on four workers, the same findings
  taipan watch --cluster hosts.txt --process 1         keys for process 0, which has the sources, the state and the findings
  taipan watch postgres://me@localhost/shop --http 127.0.0.1:8080
                                                       what clients saw comes by POST, what was written from the server
  taipan watch --broker 'redis://127.0.0.1?stream=txns' --webhook http://127.0.0.1:9000/alarm")]
pub(crate) struct WatchFlags {
    /// Files of JSON lines to play back; `-` is standard input. Or a database whose change stream is to be followed,
    /// `postgres://USER@HOST/DATABASE`
    #[arg(value_name = "FILE|URL")]
    pub(crate) files: Vec<PathBuf>,

    /// Snapshot isolation or serializability, with or without session order
    #[arg(long, value_name = "LEVEL", value_parser = level, default_value_t = Level::SNAPSHOT_ISOLATION)]
    pub(crate) level: Level,

    /// What a read must see of its own transaction's earlier writes
    #[arg(long, value_name = "POLICY", default_value = "must")]
    pub(crate) ryow: super::Ryow,

    /// Read standard input; this is what happens if no other source is named
    #[arg(long, help_heading = "Sources")]
    pub(crate) stdin: bool,

    /// Listen for connections that send JSON lines
    #[arg(long, value_name = "ADDRESS", help_heading = "Sources")]
    pub(crate) tcp: Vec<SocketAddr>,

    /// Listen on a unix socket
    #[arg(long, value_name = "PATH", help_heading = "Sources")]
    pub(crate) unix: Vec<PathBuf>,

    /// Listen for HTTP: POST /transactions, the page at /, /metrics
    #[arg(long, value_name = "ADDRESS", help_heading = "Sources")]
    pub(crate) http: Option<SocketAddr>,

    /// Read a Redis stream: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]?stream=NAME&group=NAME`
    #[arg(long, value_name = "URL", help_heading = "Sources")]
    pub(crate) broker: Vec<service::BrokerAddress>,

    /// Of a database that is followed: this table only; may be given several times [default: all with a primary key]
    #[arg(long, value_name = "TABLE", help_heading = "Sources")]
    pub(crate) table: Vec<String>,

    /// Of a database that is followed: the replication slot [default: one that goes with the connection; with --state
    /// `taipan_watch`, which stays]
    #[arg(long, value_name = "NAME", help_heading = "Sources")]
    pub(crate) slot: Option<String>,

    /// What HTTP requests have to show (Authorization: Bearer TOKEN), and TCP connections in their first line
    /// ({"token":"TOKEN"}); needed unless all addresses are loopback ones
    #[arg(
        long,
        value_name = "TOKEN",
        env = "TAIPAN_TOKEN",
        hide_env_values = true,
        help_heading = "Sources"
    )]
    pub(crate) token: Option<String>,

    /// The most bytes of an HTTP request, after decompression
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "64M", help_heading = "Sources")]
    pub(crate) max_body: u64,

    /// Also post findings to this address, `http://HOST[:PORT]/PATH`; to reach one by https, go through a proxy on this
    /// machine
    #[arg(long, value_name = "URL", help_heading = "Findings")]
    pub(crate) webhook: Option<databases::Address>,

    /// How late a transaction may arrive
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "5", help_heading = "Certainty")]
    pub(crate) grace: Duration,

    /// How long a transaction may take: what was overwritten longer ago is forgotten
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "60", help_heading = "Certainty")]
    pub(crate) longest: Duration,

    /// Instead of times: how many others may arrive, and commit, before a transaction does
    #[arg(long, value_name = "TRANSACTIONS", conflicts_with_all = ["grace", "longest"], help_heading = "Certainty", value_parser = count::<u64>(0.., "10000"))]
    pub(crate) window: Option<u64>,

    /// Only lines {"watermark":TIMESTAMP} in the stream make verdicts final
    #[arg(long, conflicts_with_all = ["grace", "longest", "window"], help_heading = "Certainty")]
    pub(crate) told: bool,

    /// Keep everything here, so that nothing is lost or told twice over a restart, also one with another number of workers;
    /// what is acknowledged is on disk
    #[arg(long, value_name = "FOLDER", help_heading = "Memory and disk")]
    pub(crate) state: Option<PathBuf>,

    /// Write a checkpoint at least this often
    #[arg(long, value_name = "SECS", value_parser = seconds, default_value = "60", help_heading = "Memory and disk")]
    pub(crate) checkpoint: Duration,

    /// Keep the process below this much memory: what is final goes to disk, and if that is not enough, verdicts become
    /// final earlier; K, M, G and T are powers of 1024
    #[arg(long, value_name = "BYTES", value_parser = bytes, help_heading = "Memory and disk")]
    pub(crate) max_memory: Option<u64>,

    #[command(flatten)]
    pub(crate) crew: CrewFlags,
}
