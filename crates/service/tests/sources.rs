//! Every way in and out, for real: sockets, HTTP, a Redis server, a webhook.

use flate2::Compression;
use flate2::write::GzEncoder;
use isolation::{Level, Rule};
use replay::online::Settings;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taipan_service::{Ended, EngineOptions, HttpOptions, Options, Outlets, Pace, Service, Source, Webhook};

const SI: Level = Level::new(Rule::SnapshotIsolation, true, false);
const ANY: &str = "127.0.0.1:0";

/// A stream that tests look into.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn lines(&self) -> Vec<serde_json::Value> {
        let bytes = self.0.lock().expect("nobody panics").clone();
        let text = String::from_utf8(bytes).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

struct Running {
    service: Service,
    found: Shared,
}

fn start(sources: Vec<Source>, state: Option<&Path>, webhook: Option<Webhook>) -> Running {
    let found = Shared::default();
    let options = Options {
        engine: EngineOptions {
            settings: Settings::new(SI),
            pace: Pace::Told,
            state: state.map(Path::to_owned),
            spill: None,
            journal_max: u64::MAX,
            joiner: None,
            workers: None,
        },
        sources,
        outlets: Outlets { stream: Some(Box::new(found.clone())), webhook },
        checkpoint_every: Duration::from_secs(3600),
        memory_max: None,
        notes: Box::new(|_| {}),
    };
    Running { service: Service::start(options).expect("it starts"), found }
}

impl Running {
    fn address(&self) -> SocketAddr {
        self.service.bound[0]
    }

    fn stop(self) -> (Ended, Vec<serde_json::Value>) {
        self.service.switch().store(true, Ordering::Relaxed);
        let ended = self.service.wait().expect("it ends well");
        (ended, self.found.lines())
    }
}

/// Two transactions, the second of which reads what the first has overwritten.
fn stale(from: u64) -> String {
    format!(
        "{{\"session\":1,\"seq\":{from},\"db\":{{\"start\":{a},\"commit\":{b}}},\"ops\":[{{\"op\":\"write\",\"key\":\"x\",\"value\":{from}}}]}}\n\
         {{\"session\":2,\"seq\":{from},\"db\":{{\"start\":{c},\"commit\":{d}}},\"ops\":[{{\"op\":\"read\",\"key\":\"x\",\"value\":-1}}]}}\n",
        a = 10 * from,
        b = 10 * from + 1,
        c = 10 * from + 2,
        d = 10 * from + 3,
    )
}

fn watermark(from: u64) -> String {
    format!("{{\"watermark\":{}}}\n", 10 * from + 9)
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stream_ends_with_everything_final() {
    let text = stale(1) + &stale(2);
    let running = start(vec![Source::Stream(Box::new(io::Cursor::new(text.into_bytes())))], None, None);
    let Running { service, found } = running;
    let ended = service.wait().expect("it ends by itself");
    assert!(ended.is_final);
    assert_eq!((ended.status.received, ended.status.checked, ended.status.violations), (4, 4, 2));
    let why = found.lines()[0]["why"].as_str().expect("a sentence").to_owned();
    assert_eq!(why, "2:1 saw x = -1; its snapshot holds 1, written by 1:1");
}

#[test]
fn connections_hear_what_is_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("socket");
    let state = folder.path().join("state");
    let sources = vec![over_tcp(None), Source::Unix(socket.clone())];
    let running = start(sources, Some(&state), None);
    let mut tcp = TcpStream::connect(running.address()).expect("it listens");
    tcp.write_all((stale(1) + "{\"session\":3}\n").as_bytes()).expect("it reads");
    let mut lines = BufReader::new(tcp.try_clone().expect("a copy")).lines();
    let mut heard = Vec::new();
    while !heard.iter().any(|line: &String| line == "{\"durable\":3}") {
        heard.push(lines.next().expect("an answer").expect("text"));
    }
    assert!(heard[0].contains("refused"), "{heard:?}");
    let mut unix = UnixStream::connect(&socket).expect("it listens");
    unix.write_all((stale(2) + &watermark(2)).as_bytes()).expect("it reads");
    unix.shutdown(std::net::Shutdown::Write).expect("it is open");
    let mut answers = String::new();
    unix.read_to_string(&mut answers).expect("text");
    assert!(answers.ends_with("{\"durable\":3}\n"), "{answers}");
    until("findings", || running.found.lines().len() == 2);
    let (ended, _) = running.stop();
    assert!(!ended.is_final);
    assert!(!socket.exists(), "the socket goes with the service");
    assert_eq!(ended.status.refused, 1);
    // A restart knows everything and tells nothing again.
    let again = start(vec![over_tcp(None)], Some(&state), None);
    assert_eq!(again.service.status().level, "strong-session-snapshot-isolation");
    let (ended, found) = again.stop();
    assert_eq!((ended.status.received, ended.status.violations), (4, 2));
    assert!(found.is_empty(), "{found:?}");
}

/// Asks, and gives the status and the body.
fn ask(address: SocketAddr, request: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    let mut head = format!("{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
    if request.starts_with("POST") {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    stream.write_all((head + "\r\n").as_bytes()).expect("it reads");
    let _ = stream.write_all(body);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("text");
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    (code, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
}

fn over_tcp(token: Option<&str>) -> Source {
    Source::Tcp { address: ANY.parse().expect("an address"), token: token.map(str::to_owned) }
}

fn http(token: Option<&str>, body_max: u64) -> Source {
    let address = ANY.parse().expect("an address");
    let patience = HttpOptions::PATIENCE;
    Source::Http(HttpOptions { address, token: token.map(str::to_owned), body_max, patience })
}

#[test]
fn transactions_are_posted_and_the_rest_is_asked_for() {
    let running = start(vec![http(None, 100_000)], None, None);
    let at = running.address();
    let post = |headers: &[(&str, &str)], body: &[u8]| ask(at, "POST /transactions", headers, body);
    let one = |seq: u64| stale(seq).lines().next().expect("a line").to_owned();
    assert_eq!(post(&[], one(1).as_bytes()), (200, "{\"accepted\":1}".to_owned()), "one object");
    let pretty =
        serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(&one(2)).expect("JSON"));
    assert_eq!(post(&[], pretty.expect("JSON").as_bytes()).0, 200, "one object over several lines");
    let array = format!("[{}, {}]", one(3), one(4));
    assert_eq!(post(&[], array.as_bytes()), (200, "{\"accepted\":2}".to_owned()), "an array");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all((stale(5) + &stale(6)).as_bytes()).expect("memory");
    let packed = gzip.finish().expect("memory");
    assert_eq!(
        post(&[("Content-Encoding", "gzip")], &packed),
        (200, "{\"accepted\":4}".to_owned()),
        "lines, packed"
    );
    let (code, why) = post(&[], (stale(7) + "{\"session\":1}\n").as_bytes());
    assert!(code == 400 && why.contains("rejected"), "{code} {why}");
    assert_eq!(post(&[], &vec![b' '; 100_001]).0, 413);
    let mut bomb = GzEncoder::new(Vec::new(), Compression::best());
    bomb.write_all(&vec![b' '; 1_000_000]).expect("memory");
    assert_eq!(post(&[("Content-Encoding", "gzip")], &bomb.finish().expect("memory")).0, 413);
    assert_eq!(post(&[("Content-Encoding", "gzip")], b"no gzip").0, 400);
    assert_eq!(post(&[], watermark(6).as_bytes()).0, 200);
    until("findings", || running.found.lines().len() == 2);
    let status: serde_json::Value = serde_json::from_str(&ask(at, "GET /status", &[], b"").1).expect("JSON");
    assert_eq!((&status["received"], &status["violations"]), (&8.into(), &2.into()));
    let metrics = ask(at, "GET /metrics", &[], b"").1;
    for line in [
        "taipan_received_total 8",
        "taipan_findings_total{kind=\"ext\",violation=\"true\"} 2",
        "taipan_delay_seconds_count 8",
        "taipan_provisional 0",
    ] {
        assert!(metrics.lines().any(|it| it == line), "{line} in\n{metrics}");
    }
    for name in ["checked_total", "lag_seconds", "memory_bytes", "spill_bytes"] {
        assert!(metrics.contains(&format!("taipan_{name} ")), "{name}");
    }
    let found: serde_json::Value =
        serde_json::from_str(&ask(at, "GET /findings?from=1&max=5", &[], b"").1).expect("JSON");
    assert_eq!(found["findings"].as_array().map(Vec::len), Some(1));
    assert_eq!((&found["first"], &found["next"]), (&0.into(), &2.into()));
    assert!(ask(at, "GET /", &[], b"").1.contains("<title>"));
    assert_eq!(ask(at, "GET /nothing", &[], b"").0, 404);
    assert_eq!(ask(at, "DELETE /", &[], b"").0, 405);
    running.stop();
}

/// Requests that are none, or nearly: whatever comes, the next one that is right is answered, and nothing was taken.
#[test]
fn bytes_from_strangers_do_no_harm() {
    let running = start(vec![http(None, 10_000)], None, None);
    let address = running.address();
    let good = b"POST /transactions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n{\"session\":1";
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % bound as u64) as usize
    };
    for round in 0..250 {
        let mut bytes = good.to_vec();
        for _ in 0..1 + below(6) {
            let place = below(bytes.len());
            match below(4) {
                0 => bytes[place] = below(256) as u8,
                1 if bytes.len() > 1 => drop(bytes.remove(place)),
                2 => bytes.insert(place, *b"\r\n: /%\0\xff9".get(below(9)).unwrap_or(&b' ')),
                _ => bytes.truncate(place.max(1)),
            }
        }
        if round % 50 == 0 {
            // A head without an end.
            bytes = vec![b'A'; 200_000];
        }
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a time");
        stream.set_write_timeout(Some(Duration::from_millis(200))).expect("a time");
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read(&mut [0; 256]);
    }
    let (code, metrics) = ask(address, "GET /metrics", &[], b"");
    assert_eq!(code, 200, "{metrics}");
    let (ended, found) = running.stop();
    assert_eq!((ended.status.received, found.len()), (0, 0));
}

#[test]
fn a_token_is_needed_where_there_is_one() {
    let running = start(vec![http(Some("secret"), 1000)], None, None);
    let at = running.address();
    let wrong = [("Authorization", "Bearer secreT")];
    let right = [("Authorization", "Bearer secret")];
    for request in ["GET /status", "GET /metrics", "GET /findings", "GET /samples", "POST /transactions"] {
        assert_eq!(ask(at, request, &[], b"").0, 401, "{request}");
        assert_eq!(ask(at, request, &wrong, b"").0, 401, "{request}");
        assert_eq!(ask(at, request, &right, b"").0, 200, "{request}");
    }
    assert_eq!(ask(at, "GET /health", &[], b"").0, 200);
    running.stop();
    let everywhere: SocketAddr = "0.0.0.0:0".parse().expect("an address");
    let http = |token: Option<&str>| {
        let token = token.map(str::to_owned);
        Source::Http(HttpOptions { address: everywhere, token, body_max: 1, patience: HttpOptions::PATIENCE })
    };
    let tcp = |token: Option<&str>| Source::Tcp { address: everywhere, token: token.map(str::to_owned) };
    for source in [http(None), tcp(None), http(Some("")), tcp(Some(""))] {
        let refused = Service::start(options(vec![source])).map(|_| ()).expect_err("anybody could post");
        assert!(refused.to_string().contains("token"), "{refused}");
    }
    for source in [http(Some("secret")), tcp(Some("secret"))] {
        let service = Service::start(options(vec![source])).expect("it has a token");
        service.switch().store(true, Ordering::Relaxed);
        service.wait().expect("it ends well");
    }
}

fn options(sources: Vec<Source>) -> Options {
    Options {
        engine: EngineOptions {
            settings: Settings::new(SI),
            pace: Pace::Told,
            state: None,
            spill: None,
            journal_max: 1,
            joiner: None,
            workers: None,
        },
        sources,
        outlets: Outlets::default(),
        checkpoint_every: Duration::from_secs(1),
        memory_max: None,
        notes: Box::new(|_| {}),
    }
}

#[test]
fn a_connection_shows_the_token_in_its_first_line() {
    let running = start(vec![over_tcp(Some("secret"))], None, None);
    let say = |first: &str| {
        let mut stream = TcpStream::connect(running.address()).expect("it listens");
        // It may have been refused before all is sent.
        let _ = stream.write_all((first.to_owned() + &stale(1)).as_bytes());
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answers = String::new();
        let _ = stream.read_to_string(&mut answers);
        answers
    };
    let wrong = ["", "{\"token\":\"secreT\"}\n", "{\"token\":\"\"}\n", "secret\n", "{\"token\":\"secret\"}"];
    for first in wrong {
        let answers = say(first);
        assert!(!answers.contains("durable"), "{first}: {answers}");
    }
    assert_eq!(running.service.status().received, 0);
    // In two pieces, and the line itself does not count.
    assert_eq!(say("{\"token\":\"secret\"}\n"), "{\"durable\":2}\n");
    running.stop();
}

/// A page of another site, and one whose name was made to mean this machine.
#[test]
fn pages_of_others_are_not_served() {
    let running = start(vec![http(None, 1000)], None, None);
    let at = running.address();
    let raw = |head: &str| {
        let mut stream = TcpStream::connect(at).expect("it listens");
        stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("text");
        answer.split(' ').nth(1).expect("a status").to_owned()
    };
    for request in ["GET /status", "GET /", "POST /transactions"] {
        for (hosts, expected) in [
            (&["localhost"][..], "200"),
            (&["LOCALHOST:81"], "200"),
            (&["127.0.0.1:81"], "200"),
            (&["[::1]:81"], "200"),
            (&["evil.example"], "403"),
            (&["evil.example:81"], "403"),
            (&["localhost.evil.example"], "403"),
            (&["127.0.0.1.evil.example"], "403"),
            (&[""], "400"),
            (&[], "400"),
            (&["localhost", "evil.example"], "400"),
        ] {
            let hosts: String = hosts.iter().map(|host| format!("Host: {host}\r\n")).collect();
            assert_eq!(raw(&format!("{request} HTTP/1.1\r\n{hosts}")), expected, "{request} {hosts}");
        }
        for (origin, expected) in [
            ("http://localhost:81", "200"),
            ("https://localhost:81", "200"),
            ("http://localhost", "403"),
            ("http://evil.example", "403"),
            ("null", "403"),
        ] {
            let head = format!("{request} HTTP/1.1\r\nHost: localhost:81\r\nOrigin: {origin}\r\n");
            assert_eq!(raw(&head), expected, "{request} {origin}");
        }
        assert_eq!(
            raw(&format!(
                "{} http://evil.example/status HTTP/1.1\r\nHost: localhost\r\n",
                &request[..4].trim()
            )),
            "400"
        );
    }
    running.stop();
    // With a token a name will do, but the page still has to be its own.
    let running = start(vec![http(Some("secret"), 1000)], None, None);
    let right = ("Authorization", "Bearer secret");
    assert_eq!(ask(running.address(), "GET /status", &[right], b"").0, 200);
    assert_eq!(
        ask(running.address(), "GET /status", &[right, ("Origin", "http://evil.example")], b"").0,
        403
    );
    running.stop();
}

#[test]
fn a_webhook_gets_findings_even_if_it_fails_at_first() {
    let listener = TcpListener::bind(ANY).expect("a port");
    let address = listener.local_addr().expect("an address");
    let receiver = std::thread::spawn(move || {
        let mut bodies = Vec::new();
        for answer in ["500 Oops", "204 No Content"] {
            let (stream, _) = listener.accept().expect("somebody posts");
            let mut reader = BufReader::new(stream);
            let mut len = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).expect("text");
                if let Some(value) = line.strip_prefix("Content-Length: ") {
                    len = value.trim().parse().expect("a number");
                }
                if line == "\r\n" {
                    break;
                }
            }
            let mut body = vec![0; len];
            reader.read_exact(&mut body).expect("all of it");
            bodies.push(String::from_utf8(body).expect("text"));
            let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
            reader.get_mut().write_all(answer.as_bytes()).expect("it reads");
        }
        bodies
    });
    let webhook = Webhook::new(&format!("http://{address}/alarm")).expect("a good address");
    let text = stale(1) + &watermark(1);
    let running =
        start(vec![Source::Stream(Box::new(io::Cursor::new(text.into_bytes())))], None, Some(webhook));
    let ended = running.service.wait().expect("it ends by itself");
    assert_eq!(ended.status.violations, 1);
    let bodies = receiver.join().expect("the receiver got both");
    assert_eq!(bodies[0], bodies[1]);
    assert!(bodies[0].contains("\"kind\":\"ext\"") && bodies[0].ends_with('\n'));
    assert!(Webhook::new("ftp://x").is_err());
}

/// A Redis server in a folder, behind a port that the test holds: connections are handed on to the server's socket.
struct Redis {
    process: Child,
    address: String,
}

impl Redis {
    fn start(folder: &Path) -> Self {
        let socket = folder.join("redis");
        let process = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--unixsocket"])
            .arg(&socket)
            .arg("--dir")
            .arg(folder)
            .stdout(Stdio::null())
            .spawn()
            .expect("it is installed");
        let listener = TcpListener::bind(ANY).expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let Ok(server) = UnixStream::connect(&socket) else { continue };
                hand_on(stream.try_clone().expect("a copy"), server.try_clone().expect("a copy"));
                hand_on_back(server, stream);
            }
        });
        let redis = Self { process, address };
        until("the server answers", || redis.say(&["PING"]).is_some_and(|it| it == "+PONG"));
        redis
    }

    /// Sends a command and gives the first line of the answer.
    fn say(&self, words: &[&str]) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        stream.write_all(request.as_bytes()).ok()?;
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    }

    fn add(&self, lines: &str) {
        for line in lines.lines() {
            assert!(self.say(&["XADD", "txns", "*", "txn", line]).is_some_and(|it| it.starts_with('$')));
        }
    }

    /// How many entries were delivered and not acknowledged.
    fn pending(&self) -> usize {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(b"*3\r\n$8\r\nXPENDING\r\n$4\r\ntxns\r\n$6\r\ntaipan\r\n").expect("it reads");
        let mut lines = BufReader::new(stream).lines();
        lines.next();
        let count = lines.next().and_then(Result::ok).unwrap_or_default();
        // A group that is not there, or not yet, has everything before it.
        count.trim_start_matches(':').parse().unwrap_or(usize::MAX)
    }

    fn source(&self) -> Source {
        Source::Broker(format!("redis://{}?stream=txns", self.address).parse().expect("an address"))
    }
}

fn hand_on(mut from: TcpStream, mut to: UnixStream) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

fn hand_on_back(mut from: UnixStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_stream_of_a_broker_is_taken_once_and_acknowledged_when_it_is_durable() {
    let folder = tempfile::tempdir().expect("a folder");
    if !corpus::needs("redis") {
        return;
    }
    let redis = Redis::start(folder.path());
    let state = folder.path().join("state");
    redis.add(&stale(1));
    let running = start(vec![redis.source()], Some(&state), None);
    redis.add(&stale(2));
    until("all is taken", || running.service.status().received == 4);
    until("all is acknowledged", || redis.pending() == 0);
    running.stop();
    // Delivered to somebody who never said that it was durable: a crash before the journal.
    redis.add(&stale(3));
    redis.say(&["XREADGROUP", "GROUP", "taipan", "taipan", "COUNT", "1", "STREAMS", "txns", ">"]);
    assert_eq!(redis.pending(), 1);
    let running = start(vec![redis.source()], Some(&state), None);
    redis.add(&watermark(3));
    until("the rest is taken", || running.service.status().violations == 3);
    until("all is acknowledged", || redis.pending() == 0);
    let (ended, _) = running.stop();
    assert_eq!(ended.status.received, 6, "each entry once");
    // A journal that the broker does not know of: a crash before the acknowledgement.
    redis.say(&["XGROUP", "SETID", "txns", "taipan", "0"]);
    let running = start(vec![redis.source()], Some(&state), None);
    redis.add(&stale(4));
    until("the new one is taken", || running.service.status().received == 8);
    until("all is acknowledged", || redis.pending() == 0);
    let (ended, _) = running.stop();
    assert_eq!(ended.status.received, 8, "entries that the journal holds are not taken again");
    assert_eq!(ended.status.found.iter().find(|(kind, _)| *kind == "duplicate"), Some(&("duplicate", 0)));
}

/// A group that is gone is made again, and what the journal holds is not taken twice.
#[test]
fn a_group_that_was_lost_is_made_again() {
    if !corpus::needs("redis") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let redis = Redis::start(folder.path());
    let running = start(vec![redis.source()], Some(&folder.path().join("state")), None);
    redis.add(&stale(1));
    until("the first are taken", || running.service.status().received == 2);
    until("all is acknowledged", || redis.pending() == 0);
    assert_eq!(redis.say(&["XGROUP", "DESTROY", "txns", "taipan"]).as_deref(), Some(":1"));
    redis.add(&stale(2));
    until("the next are taken", || running.service.status().received == 4);
    until("all is acknowledged", || redis.pending() == 0);
    let (ended, _) = running.stop();
    assert_eq!(ended.status.received, 4, "each entry once");
}

/// Without a broker there is nothing to check: that is said at once, with the address and the cause.
#[test]
fn a_broker_that_cannot_be_reached_is_an_error() {
    let listener = TcpListener::bind(ANY).expect("a port");
    let address = listener.local_addr().expect("an address");
    // It is there, and no broker: it closes every connection.
    let closing = std::thread::spawn(move || drop(listener.accept()));
    for (address, cause) in [(address.to_string(), ""), ("127.0.0.1:1".to_owned(), "refused")] {
        let source =
            Source::Broker(format!("redis://:secret@{address}?stream=s").parse().expect("an address"));
        let said = Service::start(options(vec![source])).map(|_| ()).expect_err("no broker").to_string();
        assert!(said.contains(&address) && said.contains(cause) && !said.contains("secret"), "{said}");
    }
    closing.join().expect("it was called");
}
