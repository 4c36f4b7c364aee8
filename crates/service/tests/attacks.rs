//! Clients that are slow, silent or greedy on purpose: others are served meanwhile, the slow ones are cut off, and the service
//! ends when it is told to.

use isolation::{Level, Rule};
use replay::online::Settings;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use taipan_service::{EngineOptions, HttpOptions, Options, Outlets, Pace, Service, Source};

const SI: Level = Level::new(Rule::SnapshotIsolation, true, false);
/// How long the service waits for a client here.
const PATIENCE: Duration = Duration::from_secs(4);
/// More than a client that behaves may have to wait, on a machine that is busy.
const SOON: Duration = Duration::from_secs(40);

fn start(patience: Duration) -> (Service, SocketAddr) {
    let address = "127.0.0.1:0".parse().expect("an address");
    let options = Options {
        engine: EngineOptions {
            settings: Settings::new(SI),
            pace: Pace::Told,
            state: None,
            spill: None,
            journal_max: u64::MAX,
            joiner: None,
            workers: None,
        },
        sources: vec![Source::Http(HttpOptions { address, token: None, body_max: 1 << 20, patience })],
        outlets: Outlets::default(),
        checkpoint_every: Duration::from_secs(3600),
        memory_max: None,
        notes: Box::new(|_| {}),
    };
    let service = Service::start(options).expect("it starts");
    let address = service.bound[0];
    (service, address)
}

/// Asks as a client that behaves, and gives the status.
fn ask(address: SocketAddr, head: &str, body: &str) -> u16 {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(SOON)).expect("a time");
    let head = format!(
        "{head} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + body).as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in time");
    answer.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status")
}

/// Somebody else is served, whatever goes on.
fn others_are_served(address: SocketAddr, what: &str) {
    assert_eq!(ask(address, "GET /health", ""), 200, "{what}");
    assert_eq!(ask(address, "GET /metrics", ""), 200, "{what}");
    assert_eq!(ask(address, "POST /transactions", "{\"session\":1,\"ops\":[]}"), 200, "{what}");
}

/// Whether the other side has closed, or closes soon. What it says before is read.
fn is_cut_off(stream: &mut TcpStream) -> bool {
    let until = Instant::now() + SOON;
    let _ = stream.set_nonblocking(false);
    stream.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
    let mut space = [0; 4096];
    while Instant::now() < until {
        match stream.read(&mut space) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {}
            Err(_) => return true,
        }
    }
    false
}

const HEAD: &str = "HTTP/1.1\r\nHost: localhost\r\n";

/// Requests that never end.
fn unfinished() -> Vec<(&'static str, String)> {
    vec![
        ("nothing", String::new()),
        ("half a head", format!("GET / {HEAD}X-Slow: ")),
        ("a body is owed to GET", format!("GET /health {HEAD}Content-Length: 100000\r\n\r\n")),
        ("a body is owed to PUT", format!("PUT / {HEAD}Content-Length: 100000\r\n\r\nx")),
        ("a body is owed to POST", format!("POST /transactions {HEAD}Content-Length: 100000\r\n\r\n{{")),
        (
            "a body is announced",
            format!("POST /transactions {HEAD}Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n"),
        ),
        (
            "a body is announced to GET",
            format!("GET / {HEAD}Content-Length: 100000\r\nExpect: 100-continue\r\n\r\n"),
        ),
        ("a chunk is owed to GET", format!("GET / {HEAD}Transfer-Encoding: chunked\r\n\r\n")),
        (
            "a chunk is owed to POST",
            format!("POST /transactions {HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n{{\"ses\r\n"),
        ),
        ("elsewhere", format!("POST /elsewhere {HEAD}Content-Length: 100000\r\n\r\n")),
    ]
}

#[test]
fn requests_that_never_end_keep_nobody_waiting_and_are_cut_off() {
    let (service, address) = start(PATIENCE);
    let mut open = Vec::new();
    for (what, bytes) in unfinished() {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(bytes.as_bytes()).expect("it reads");
        others_are_served(address, what);
        open.push((what, stream));
    }
    for (what, stream) in &mut open {
        assert!(is_cut_off(stream), "{what}");
    }
    others_are_served(address, "after all");
    end(service);
}

/// A byte now and then is no progress to speak of.
#[test]
fn drops_are_not_enough() {
    let (service, address) = start(PATIENCE);
    for request in
        [format!("GET / {HEAD}X-Slow: "), format!("POST /transactions {HEAD}Content-Length: 100000\r\n\r\n")]
    {
        let mut stream = TcpStream::connect(address).expect("it listens");
        stream.write_all(request.as_bytes()).expect("it reads");
        let until = Instant::now() + SOON;
        while stream.write_all(b" ").is_ok() {
            assert!(Instant::now() < until, "{request} goes on");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    others_are_served(address, "after all");
    end(service);
}

#[test]
fn answers_that_nobody_reads_keep_nobody_waiting() {
    let (service, address) = start(PATIENCE);
    let request = format!("GET / {HEAD}\r\n");
    let mut open: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    for stream in &mut open {
        stream.set_nonblocking(true).expect("a socket");
        // Until the service does not take any more.
        for _ in 0..100_000 {
            if stream.write(request.as_bytes()).is_err() {
                break;
            }
        }
    }
    others_are_served(address, "answers are not read");
    std::thread::sleep(2 * PATIENCE);
    for stream in &mut open {
        assert!(is_cut_off(stream));
    }
    end(service);
}

/// However patient the service is, those who do nothing make room for those who do something.
#[test]
fn hundreds_of_idle_connections_keep_nobody_out() {
    let (service, address) = start(Duration::from_secs(3600));
    let mut idle: Vec<TcpStream> = Vec::new();
    // Both ends of each are in this process, which may have a thousand descriptors.
    for number in 0..600 {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: ");
        idle.push(stream);
        if number % 100 == 99 {
            others_are_served(address, "in the crowd");
        }
    }
    others_are_served(address, "behind the crowd");
    assert!(is_cut_off(&mut idle[0]), "the oldest made room");
    let began = Instant::now();
    end(service);
    assert!(began.elapsed() < SOON, "it does not wait for them");
}

/// All bodies together are bounded, and the rest is sent away.
#[test]
fn bodies_together_are_bounded() {
    let (service, address) = start(Duration::from_secs(3600));
    let len = 1 << 20;
    let head = format!("POST /transactions {HEAD}Content-Length: {len}\r\n\r\n");
    let mut open: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(head.as_bytes()).expect("it reads");
            // All but the end; it may be refused before.
            let _ = stream.write_all(&vec![b' '; len - 1]);
            stream
        })
        .collect();
    let mut refused = 0;
    for stream in &mut open {
        stream.set_read_timeout(Some(Duration::from_secs(2))).expect("a time");
        let mut answer = [0; 12];
        refused += usize::from(stream.read_exact(&mut answer).is_ok() && &answer == b"HTTP/1.1 503");
    }
    assert!((5..8).contains(&refused), "{refused} of 8 were refused");
    assert_eq!(ask(address, "GET /health", ""), 200);
    end(service);
}

/// The switch is what a signal turns.
fn end(service: Service) {
    let began = Instant::now();
    service.switch().store(true, Ordering::Relaxed);
    service.wait().expect("it ends well");
    // A second is promised; a busy machine may take longer.
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
}
