//! Findings on their way out: lines of JSON to a stream, and to a webhook.
//!
//! A webhook gets batches of lines (`application/x-ndjson`) by a thread of its own, each tried again until it is
//! taken or given up, so that a slow receiver never holds up the checker; what waits is bounded.

use history::{Name, Timestamp};
use net::{Security, Trust};
use replay::online::{Found, Kind, Named};
use serde::Serialize;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// One line of JSON about a finding, without the line end.
pub fn finding_line(found: &Found) -> String {
    let line = Line {
        number: found.number,
        kind: found.kind.name(),
        violation: found.kind.is_violation(),
        transaction: Transaction::from(&found.txn),
        operation: found.op,
        key: found.key.as_ref(),
        other: found.other.as_ref().map(Transaction::from),
        expected: found.expected.as_ref().map(ToString::to_string),
        seen: found.seen.as_ref().map(ToString::to_string),
        counts: found.counts,
        missing: found.missing,
        why: sentence(found),
    };
    serde_json::to_string(&line).expect("names, numbers and texts always have a JSON form")
}

#[derive(Serialize)]
struct Line<'a> {
    number: u64,
    kind: &'static str,
    violation: bool,
    transaction: Transaction<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "key_name")]
    key: Option<&'a Name>,
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<Transaction<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seen: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<(u64, u64)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<(u64, u64)>,
    why: String,
}

#[derive(Serialize)]
struct Transaction<'a> {
    name: &'a str,
    #[serde(serialize_with = "name")]
    session: &'a Name,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    start: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "time")]
    commit: Option<Timestamp>,
}

impl<'a> From<&'a Named> for Transaction<'a> {
    fn from(named: &'a Named) -> Self {
        Self { name: &named.name, session: &named.session, start: named.start, commit: named.commit }
    }
}

fn name<S: serde::Serializer>(name: &&Name, out: S) -> Result<S::Ok, S::Error> {
    match name {
        Name::Int(number) => out.serialize_i64(*number),
        Name::Str(text) => out.serialize_str(text),
    }
}

fn key_name<S: serde::Serializer>(key: &Option<&Name>, out: S) -> Result<S::Ok, S::Error> {
    match key {
        Some(key) => name(key, out),
        None => out.serialize_none(),
    }
}

fn time<S: serde::Serializer>(time: &Option<Timestamp>, out: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(Timestamp { physical, logical: 0 }) => out.serialize_i64(*physical),
        Some(Timestamp { physical, logical }) => (physical, logical).serialize(out),
        None => out.serialize_none(),
    }
}

fn sentence(found: &Found) -> String {
    let own = &found.txn.name;
    let key = match &found.key {
        Some(Name::Int(number)) => format!("key {number}"),
        Some(Name::Str(text)) => text.clone(),
        None => String::new(),
    };
    let show = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
    let other = found.other.as_ref();
    let other_name = other.map_or("the initial state", |other| other.name.as_str());
    let other_commit = other.map(|other| show(other.commit)).unwrap_or_default();
    let datum = |datum: &Option<replay::online::Datum>| {
        datum.as_ref().map_or_else(|| "nothing".to_owned(), ToString::to_string)
    };
    match found.kind {
        Kind::Late => format!(
            "{own} arrived after results up to its commit had become final; its own results are not checked"
        ),
        Kind::Duplicate => format!("{own} arrived twice; the second is left out"),
        Kind::Conflict => format!(
            "{own} has the id, or the session and times, of an earlier transaction but differs from it: either a source sent \
             two versions of one transaction, or two transactions have the same id"
        ),
        Kind::Timeless => format!("{own} has no timestamps; it is left out"),
        Kind::ClockJump => format!(
            "{own} committed at {}, far ahead of the transactions around it; the watermark does not follow it",
            show(found.txn.commit)
        ),
        Kind::Undecided => {
            let what = match (found.counts, &found.seen) {
                (Some((expected, seen)), _) => {
                    format!("changed {seen} rows, but its snapshot holds {expected} that match")
                }
                (None, None) => format!("overwrote {key}, which {other_name} had changed after its snapshot"),
                (None, seen) => {
                    format!("saw {key} = {}, but its snapshot holds {}", datum(seen), datum(&found.expected))
                }
            };
            let why = found.doubt.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
            format!(
                "{own} {what}; transactions of unknown outcome may explain it, which cannot be decided{why}"
            )
        }
        Kind::Unjudged => {
            format!(
                "{own} read {key} from a snapshot before the horizon; the expected value is no longer known"
            )
        }
        Kind::Lost => match found.missing {
            Some((first, last)) if first == last => {
                format!("transaction {first} of session {} never arrived", found.txn.session)
            }
            Some((first, last)) => {
                format!("transactions {first} to {last} of session {} never arrived", found.txn.session)
            }
            None => format!("transactions of session {} never arrived", found.txn.session),
        },
        Kind::Broken(axiom) => match (axiom.name(), found.counts) {
            ("timestamp-order", _) => format!(
                "{own} started at {} and committed before that, at {}",
                show(found.txn.start),
                show(found.txn.commit)
            ),
            ("session" | "real-time", _) => format!(
                "{own} does not see {other_name}, which came before it and committed at {other_commit}"
            ),
            ("noconflict", _) => format!(
                "{own} took its snapshot at {}, before {other_name} committed {key} at {other_commit}, and still overwrote it",
                show(found.txn.start)
            ),
            ("int", _) => format!(
                "{own} saw {key} = {}; its own earlier operations require {}",
                datum(&found.seen),
                datum(&found.expected)
            ),
            (_, Some((expected, seen))) => {
                format!("{own} changed {seen} rows; its snapshot holds {expected} that match")
            }
            _ => {
                let whose = if other.is_some() {
                    format!("written by {other_name}")
                } else {
                    "the initial value".to_owned()
                };
                format!(
                    "{own} saw {key} = {}; its snapshot holds {}, {whose}",
                    datum(&found.seen),
                    datum(&found.expected)
                )
            }
        },
    }
}

/// Where findings go.
#[derive(Default)]
pub struct Outlets {
    /// A stream.
    pub stream: Option<Box<dyn Write + Send>>,
    /// A receiver over HTTP.
    pub webhook: Option<Webhook>,
}

impl Outlets {
    pub(crate) fn tell(&mut self, lines: &[String]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut text = lines.join("\n");
        text.push('\n');
        if let Some(stream) = &mut self.stream {
            stream.write_all(text.as_bytes())?;
            stream.flush()?;
        }
        if let Some(webhook) = &mut self.webhook {
            webhook.post(text);
        }
        Ok(())
    }

    pub(crate) fn finish(self) {
        if let Some(webhook) = self.webhook {
            webhook.finish();
        }
    }
}

/// How many batches of findings wait for a webhook at most; later ones are given up.
const WAITING_MAX: usize = 1024;
const TRIES: u32 = 5;
const TIMEOUT: Duration = Duration::from_secs(10);

/// A receiver of findings over HTTP.
pub struct Webhook {
    sender: SyncSender<String>,
    thread: JoinHandle<()>,
    given_up: Arc<AtomicU64>,
}

impl Webhook {
    /// A receiver at `http://HOST[:PORT]/PATH` or `https://HOST[:PORT]/PATH`.
    pub fn new(url: &str) -> Result<Self, String> {
        let receiver_at = Receiving::parse(url)?;
        let (sender, receiver) = sync_channel::<String>(WAITING_MAX);
        let given_up = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&given_up);
        let thread = std::thread::Builder::new()
            .name("webhook".to_owned())
            .spawn(move || deliver(&receiver, &receiver_at, &counter))
            .map_err(|error| error.to_string())?;
        Ok(Self { sender, thread, given_up })
    }

    fn post(&mut self, text: String) {
        if let Err(TrySendError::Full(text) | TrySendError::Disconnected(text)) = self.sender.try_send(text) {
            self.given_up.fetch_add(text.lines().count() as u64, Ordering::Relaxed);
        }
    }

    /// How many findings it did not take.
    pub(crate) fn given_up(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.given_up)
    }

    fn finish(self) {
        drop(self.sender);
        let _ = self.thread.join();
    }
}

/// Where a webhook is.
struct Receiving {
    security: Security,
    /// As the URL has it.
    host: String,
    /// Host and port.
    address: String,
    path: String,
}

impl Receiving {
    fn parse(url: &str) -> Result<Self, String> {
        let (security, port, rest) = match url.split_once("://") {
            Some(("http", rest)) => (Security::Plain, 80, rest),
            Some(("https", rest)) => (Security::Tls(Trust::System), 443, rest),
            _ => {
                return Err(format!(
                    "{url}: a webhook is http://HOST[:PORT]/PATH or https://HOST[:PORT]/PATH"
                ));
            }
        };
        if security != Security::Plain && !cfg!(feature = "tls") {
            return Err(format!("{url}: {}", net::NO_TLS));
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address = if host.contains(':') { host.to_owned() } else { format!("{host}:{port}") };
        Ok(Self { security, host: host.to_owned(), address, path: format!("/{path}") })
    }
}

fn deliver(receiver: &Receiver<String>, to: &Receiving, given_up: &AtomicU64) {
    loop {
        let mut text = match receiver.recv_timeout(Duration::from_secs(3600)) {
            Ok(text) => text,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        while text.len() < 1 << 20 {
            let Ok(more) = receiver.try_recv() else { break };
            text.push_str(&more);
        }
        let mut pause = Duration::from_millis(100);
        let taken = (0..TRIES).any(|attempt| {
            if attempt > 0 {
                std::thread::sleep(pause);
                pause *= 4;
            }
            post(to, &text).is_ok()
        });
        if !taken {
            given_up.fetch_add(text.lines().count() as u64, Ordering::Relaxed);
        }
    }
}

/// Posts once; fine if the answer is 2xx.
fn post(to: &Receiving, body: &str) -> io::Result<()> {
    let Receiving { security, host, address, path } = to;
    let mut stream = net::connect(address, security, TIMEOUT)?;
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    stream.write_all(body.as_bytes())?;
    let mut status = String::new();
    BufReader::new(Read::take(stream, 1 << 16)).read_line(&mut status)?;
    let code = status.split_ascii_whitespace().nth(1).and_then(|code| code.parse::<u16>().ok());
    if code.is_some_and(|code| (200..300).contains(&code)) {
        return Ok(());
    }
    Err(io::Error::other(format!("the webhook responded {}", status.trim())))
}
