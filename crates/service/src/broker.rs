//! Transactions from a Redis stream: a consumer group that acknowledges what is durable.
//!
//! **Steps.** The group is made if it is not there, or not there any more, from the beginning of the stream. First the entries that were
//! delivered before and never acknowledged: those that the journal holds are acknowledged and nothing else,
//! the others are taken. Then new entries, as they come. An entry is acknowledged (`XACK`) once it is durable. So
//! no entry is lost and none is taken twice, wherever a crash falls: the place of the last entry in the journal is part
//! of the journal.
//!
//! An entry holds one transaction, or several as lines, in the field `txn`. The protocol is RESP 2.

use crate::intake::{Batch, Intake, Place};
use net::{Security, Stream, Trust};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where a stream is: `redis://[USER:PASSWORD@]HOST[:PORT][/DB]?stream=NAME&group=NAME&consumer=NAME`; `rediss://` by TLS, with the
/// authorities of this machine or those in `ca=FILE`.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerAddress {
    security: Security,
    host: String,
    user: Option<String>,
    password: Option<String>,
    database: u32,
    stream: String,
    group: String,
    consumer: String,
}

impl FromStr for BrokerAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            format!("{text}: expected redis://[USER:PASSWORD@]HOST[:PORT][/DB]?stream=NAME, or rediss://…")
        };
        let (security, rest) = match text.split_once("://") {
            Some(("redis", rest)) => (Security::Plain, rest),
            Some(("rediss", rest)) => (Security::Tls(Trust::System), rest),
            _ => return Err(expected()),
        };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (login, place) =
            place.rsplit_once('@').map_or((None, place), |(login, place)| (Some(login), place));
        let (host, database) = place.split_once('/').unwrap_or((place, ""));
        if host.is_empty() {
            return Err(expected());
        }
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or(("", login))) {
            None => (None, None),
            Some((user, password)) => {
                ((!user.is_empty()).then(|| user.to_owned()), Some(password.to_owned()))
            }
        };
        let mut address = Self {
            security,
            host: if host.contains(':') { host.to_owned() } else { format!("{host}:6379") },
            user,
            password,
            database: if database.is_empty() { 0 } else { database.parse().map_err(|_| expected())? },
            stream: "taipan".to_owned(),
            group: "taipan".to_owned(),
            consumer: "taipan".to_owned(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=') {
                Some(("stream", name)) => address.stream = name.to_owned(),
                Some(("group", name)) => address.group = name.to_owned(),
                Some(("consumer", name)) => address.consumer = name.to_owned(),
                Some(("ca", file)) if address.security != Security::Plain => {
                    address.security = Security::Tls(Trust::File(file.into()));
                }
                Some(("ca", _)) => return Err(format!("{text}: ca= needs TLS: write rediss://")),
                _ => {
                    return Err(format!(
                        "{text}: unknown option {pair}; expected stream=, group=, consumer= or ca="
                    ));
                }
            }
        }
        Ok(address)
    }
}

/// Without the password.
impl fmt::Display for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.security == Security::Plain { "redis" } else { "rediss" };
        write!(f, "{scheme}://{}/{}?stream={}&group={}", self.host, self.database, self.stream, self.group)
    }
}

impl fmt::Debug for BrokerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How many entries are asked for at once.
const ENTRIES_MAX: &str = "512";
/// How many entries are on their way at most.
const UNDERWAY_MAX: usize = 8192;

#[derive(Debug)]
enum Reply {
    Text(Vec<u8>),
    Number,
    Many(Vec<Reply>),
    Nothing,
}

/// How long a broker may take to answer.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// How long a connection to it may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect again.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Client {
    stream: BufReader<Stream>,
}

impl Client {
    fn connect(address: &BrokerAddress) -> io::Result<Self> {
        let stream = net::connect(&address.host, &address.security, CONNECT_MAX)?;
        stream.set_read_timeout(ANSWER_MAX)?;
        let mut client = Self { stream: BufReader::with_capacity(1 << 18, stream) };
        if let Some(password) = &address.password {
            match &address.user {
                Some(user) => client.ask(&["AUTH", user, password])?,
                None => client.ask(&["AUTH", password])?,
            };
        }
        if address.database > 0 {
            client.ask(&["SELECT", &address.database.to_string()])?;
        }
        // A group that is there stays as it is. One that was lost begins anew: what the journal holds is not taken again.
        let made = client.ask(&["XGROUP", "CREATE", &address.stream, &address.group, "0", "MKSTREAM"]);
        match made {
            Err(error) if !error.to_string().starts_with("BUSYGROUP") => Err(error),
            _ => Ok(client),
        }
    }

    fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.stream.get_mut().write_all(request.as_bytes())?;
        self.reply(0)
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        (&mut self.stream).take(1 << 16).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\r\n") {
            Some(line) => Ok(line.to_vec()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn reply(&mut self, depth: usize) -> io::Result<Reply> {
        let damaged = || {
            io::Error::new(io::ErrorKind::InvalidData, "the broker does not speak Redis's protocol (RESP)")
        };
        let line = self.line()?;
        let (&kind, rest) = line.split_first().ok_or_else(damaged)?;
        let number = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
        match kind {
            b'+' => Ok(Reply::Text(rest.to_vec())),
            b'-' => Err(io::Error::other(String::from_utf8_lossy(rest).into_owned())),
            b':' => number().map(|_| Reply::Number).ok_or_else(damaged),
            b'$' | b'*' => match (usize::try_from(number().ok_or_else(damaged)?), kind) {
                (Err(_), _) => Ok(Reply::Nothing),
                (Ok(len), b'$') if len <= 512 << 20 => {
                    let mut text = vec![0; len + 2];
                    self.stream.read_exact(&mut text)?;
                    text.truncate(len);
                    Ok(Reply::Text(text))
                }
                (Ok(len), b'*') if depth < 8 => {
                    let mut many = Vec::new();
                    for _ in 0..len {
                        many.push(self.reply(depth + 1)?);
                    }
                    Ok(Reply::Many(many))
                }
                _ => Err(damaged()),
            },
            _ => Err(damaged()),
        }
    }
}

/// An entry of the stream: its id, and its lines.
type Entry = ((u64, u64), Vec<u8>);

fn entry_id(text: &[u8]) -> Option<(u64, u64)> {
    let (a, b) = std::str::from_utf8(text).ok()?.split_once('-')?;
    Some((a.parse().ok()?, b.parse().ok()?))
}

/// The entries of an answer to XREADGROUP.
fn entries(reply: Reply) -> Vec<Entry> {
    let Reply::Many(streams) = reply else { return Vec::new() };
    let mut found = Vec::new();
    for stream in streams {
        let Reply::Many(mut stream) = stream else { continue };
        let Some(Reply::Many(all)) = stream.pop() else { continue };
        for entry in all {
            let Reply::Many(entry) = entry else { continue };
            let mut entry = entry.into_iter();
            let (Some(Reply::Text(id)), fields) = (entry.next(), entry.next()) else { continue };
            let Some(id) = entry_id(&id) else { continue };
            let mut lines = Vec::new();
            if let Some(Reply::Many(fields)) = fields {
                for pair in fields.chunks(2) {
                    if let [Reply::Text(name), Reply::Text(value)] = pair
                        && name == b"txn"
                    {
                        lines.extend_from_slice(value.trim_ascii());
                        lines.push(b'\n');
                    }
                }
            }
            found.push((id, lines));
        }
    }
    found
}

/// Ids that are durable and not acknowledged yet.
type Durable = Arc<Mutex<VecDeque<(u64, u64)>>>;

/// A consumer of a stream.
pub(crate) struct Broker {
    address: BrokerAddress,
    intake: Intake,
    stop: Arc<AtomicBool>,
    /// The last entry that was put into the journal.
    last: (u64, u64),
    underway: usize,
    durable: Durable,
}

impl Broker {
    /// Connects, to go on behind what the journal holds.
    pub(crate) fn open(
        address: BrokerAddress,
        intake: Intake,
        stop: Arc<AtomicBool>,
        journalled: Option<(u64, u64)>,
    ) -> io::Result<(Self, Client)> {
        let client = Client::connect(&address)?;
        let last = journalled.unwrap_or((0, 0));
        Ok((Self { address, intake, stop, last, underway: 0, durable: Durable::default() }, client))
    }

    /// The name of the source, in the journal.
    pub(crate) fn source(address: &BrokerAddress) -> String {
        address.to_string()
    }

    /// Reads until the service shuts down, and connects again when the connection breaks.
    pub(crate) fn run(mut self, mut client: Client, note: &dyn Fn(String)) {
        let mut pause = PAUSE_MIN;
        loop {
            let began = Instant::now();
            match self.read(&mut client) {
                Ok(()) => return,
                Err(error) => note(format!("{}: {error}; trying again", self.address)),
            }
            // What broke at once will break again.
            pause = if began.elapsed() > PAUSE_MAX { PAUSE_MIN } else { pause };
            loop {
                if self.sleeps_until_the_end(pause) {
                    return;
                }
                pause = (pause * 2).min(PAUSE_MAX);
                if let Ok(again) = Client::connect(&self.address) {
                    client = again;
                    break;
                }
            }
        }
    }

    /// Whether the service shuts down meanwhile.
    fn sleeps_until_the_end(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        while Instant::now() < until && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
        self.stop.load(Ordering::Relaxed)
    }

    /// Reads until the service shuts down or the connection breaks.
    fn read(&mut self, client: &mut Client) -> io::Result<()> {
        // What was delivered before: from the beginning, until there is no more of it.
        let mut from = "0".to_owned();
        loop {
            let found = self.ask(client, &from, None)?;
            let Some((last, _)) = found.last() else { break };
            from = format!("{}-{}", last.0, last.1);
            self.take(client, found)?;
        }
        while !self.stop.load(Ordering::Relaxed) {
            let found = self.ask(client, ">", Some("200"))?;
            self.take(client, found)?;
        }
        // What is under way is acknowledged, if it becomes durable soon.
        let until = Instant::now() + Duration::from_secs(5);
        while self.underway > 0 && Instant::now() < until {
            self.acknowledge(client)?;
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    fn ask(&self, client: &mut Client, from: &str, block: Option<&str>) -> io::Result<Vec<Entry>> {
        let BrokerAddress { stream, group, consumer, .. } = &self.address;
        let mut words = vec!["XREADGROUP", "GROUP", group, consumer, "COUNT", ENTRIES_MAX];
        if let Some(time) = block {
            words.extend(["BLOCK", time]);
        }
        words.extend(["STREAMS", stream, from]);
        Ok(entries(client.ask(&words)?))
    }

    fn take(&mut self, client: &mut Client, found: Vec<Entry>) -> io::Result<()> {
        let mut lines = Vec::new();
        let mut ids = Vec::new();
        for (id, mut entry) in found {
            if id <= self.last {
                // The journal has it; only the acknowledgement was lost.
                self.underway += 1;
                self.lock().push_back(id);
                continue;
            }
            lines.append(&mut entry);
            ids.push(id);
        }
        if let Some(&last) = ids.last() {
            self.last = last;
            self.underway += ids.len();
            let durable = Arc::clone(&self.durable);
            let mut batch = Batch::new(lines)
                .waited_for(move || durable.lock().unwrap_or_else(PoisonError::into_inner).extend(ids));
            batch.place = Some(Place { source: Self::source(&self.address), at: last });
            if !self.intake.put(batch) {
                return Err(io::Error::other("shutting down"));
            }
        }
        self.acknowledge(client)?;
        // Back-pressure: no more is asked for while much is on its way.
        while self.underway > UNDERWAY_MAX && !self.stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(2));
            self.acknowledge(client)?;
        }
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<(u64, u64)>> {
        self.durable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn acknowledge(&mut self, client: &mut Client) -> io::Result<()> {
        let ids: Vec<(u64, u64)> = self.lock().drain(..).collect();
        for some in ids.chunks(256) {
            let words: Vec<String> = some.iter().map(|(a, b)| format!("{a}-{b}")).collect();
            let mut request = vec!["XACK", &self.address.stream, &self.address.group];
            request.extend(words.iter().map(String::as_str));
            client.ask(&request)?;
            self.underway -= some.len();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_people_write() {
        let address: BrokerAddress =
            "redis://me:secret@host:1/2?stream=s&group=g&consumer=c".parse().expect("a good address");
        assert_eq!(address.to_string(), "redis://host:1/2?stream=s&group=g");
        assert_eq!((address.user.as_deref(), address.password.as_deref()), (Some("me"), Some("secret")));
        let short: BrokerAddress = "redis://host".parse().expect("a good address");
        assert_eq!(short.to_string(), "redis://host:6379/0?stream=taipan&group=taipan");
        let secure: BrokerAddress = "rediss://host?ca=/etc/ca.pem".parse().expect("a good address");
        assert_eq!(secure.security, Security::Tls(Trust::File("/etc/ca.pem".into())));
        assert_eq!(secure.to_string(), "rediss://host:6379/0?stream=taipan&group=taipan");
        for wrong in ["http://host", "redis://", "redis://h/x", "redis://h?color=red", "redis://h?ca=f"] {
            assert!(wrong.parse::<BrokerAddress>().is_err(), "{wrong}");
        }
    }
}
