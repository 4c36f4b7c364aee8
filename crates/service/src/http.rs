//! The HTTP side: transactions in, how things stand out.
//!
//! | request | answer |
//! |---|---|
//! | `POST /transactions` | one JSON object, a JSON array, or JSON lines; also gzip. 200 `{"accepted":N}` once all are durable; 400 if one is not understood, and none is taken; 413 if it is too large; 503 if the queue stays full |
//! | `GET /` | the page |
//! | `GET /status`, `/samples`, `/findings?from=N&max=N` | what the page shows |
//! | `GET /metrics` | the same for Prometheus |
//! | `GET /health` | `ok` |
//!
//! With a token, every request but those for the page itself and `/health` needs `Authorization: Bearer TOKEN`. Without a
//! token only loopback addresses are bound.

use crate::intake::{Batch, Intake, NotTaken};
use crate::lines::cut;
use crate::page;
use crate::status::Board;
use flate2::read::MultiGzDecoder;
use std::io::{self, Cursor, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tiny_http::{Header, Method, Request, Response, Server, StatusCode};

/// How the HTTP side is set up.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// What requests have to show.
    pub token: Option<String>,
    /// The most bytes of a request, after decompression.
    pub body_max: u64,
}

/// How long a request waits for room in the queue, and then for its lines to be durable.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How many posts are served at once.
const POSTS_MAX: usize = 64;

type Answer = Response<Cursor<Vec<u8>>>;

struct Side {
    server: Server,
    options: HttpOptions,
    intake: Intake,
    board: Board,
    stop: Arc<AtomicBool>,
    posts: AtomicUsize,
}

/// Listens. Gives the address it is bound to.
pub(crate) fn listen(
    options: HttpOptions,
    intake: Intake,
    board: Board,
    stop: Arc<AtomicBool>,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    if options.token.is_none() && !options.address.ip().is_loopback() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!("{} can be reached from elsewhere: that needs a token (--token)", options.address),
        ));
    }
    let server = Server::http(options.address).map_err(io::Error::other)?;
    let bound = server.server_addr().to_ip().unwrap_or(options.address);
    let side = Arc::new(Side { server, options, intake, board, stop, posts: AtomicUsize::new(0) });
    let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || serve(&side))?;
    Ok((bound, thread))
}

fn serve(side: &Arc<Side>) {
    let mut posting: Vec<JoinHandle<()>> = Vec::new();
    while !side.stop.load(Ordering::Relaxed) {
        posting.retain(|thread| !thread.is_finished());
        let request = match side.server.recv_timeout(Duration::from_millis(100)) {
            Ok(Some(request)) => request,
            Ok(None) => continue,
            Err(_) => break,
        };
        if *request.method() != Method::Post {
            let answer = side.get(&request);
            // Whoever went away needs no answer.
            let _ = request.respond(answer);
            continue;
        }
        if side.posts.load(Ordering::Relaxed) >= POSTS_MAX {
            let _ = request.respond(busy());
            continue;
        }
        side.posts.fetch_add(1, Ordering::Relaxed);
        let own = Arc::clone(side);
        let thread = std::thread::Builder::new().name("post".to_owned()).spawn(move || {
            own.post(request);
            own.posts.fetch_sub(1, Ordering::Relaxed);
        });
        posting.extend(thread);
    }
    for thread in posting {
        let _ = thread.join();
    }
}

impl Side {
    fn is_allowed(&self, request: &Request) -> bool {
        let Some(token) = &self.options.token else { return true };
        let given = header(request, "Authorization");
        given
            .and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned))
            .is_some_and(|it| is_same(&it, token))
    }

    fn get(&self, request: &Request) -> Answer {
        let (path, query) = request.url().split_once('?').unwrap_or((request.url(), ""));
        if !matches!(request.method(), Method::Get | Method::Head) {
            return text(405, "only GET, and POST /transactions\n");
        }
        match path {
            "/" => {
                return typed(200, "text/html; charset=utf-8", page::PAGE.as_bytes().to_vec())
                    .with_header(field("Content-Security-Policy", page::POLICY));
            }
            "/health" => return text(200, "ok\n"),
            _ if !self.is_allowed(request) => return unauthorised(),
            _ => {}
        }
        let number = |name: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
        };
        match path {
            "/status" => json(200, &self.board.status()),
            "/samples" => json(200, &self.board.samples()),
            "/metrics" => typed(200, "text/plain; version=0.0.4", self.board.prometheus().into_bytes()),
            "/findings" => {
                let max = number("max").unwrap_or(1000).min(20_000) as usize;
                let (lines, first, next) = self.board.findings(number("from").unwrap_or(0), max);
                let body =
                    format!("{{\"first\":{first},\"next\":{next},\"findings\":[{}]}}", lines.join(","));
                typed(200, "application/json", body.into_bytes())
            }
            _ => text(
                404,
                "there is /, /status, /samples, /findings, /metrics, /health, and POST /transactions\n",
            ),
        }
    }

    fn post(&self, mut request: Request) {
        let answer = match self.is_allowed(&request) {
            false => unauthorised(),
            true if request.url() != "/transactions" => {
                text(404, "transactions are posted to /transactions\n")
            }
            true => self.transactions(&mut request),
        };
        let _ = request.respond(answer);
    }

    fn transactions(&self, request: &mut Request) -> Answer {
        let is_gzip = header(request, "Content-Encoding").is_some_and(|it| it.eq_ignore_ascii_case("gzip"));
        let max = self.options.body_max;
        if request.body_length().is_some_and(|len| len as u64 > max) {
            return too_large(max);
        }
        let mut body = Vec::new();
        let read = match is_gzip {
            true => MultiGzDecoder::new(request.as_reader()).take(max + 1).read_to_end(&mut body),
            false => request.as_reader().take(max + 1).read_to_end(&mut body),
        };
        match read {
            Err(error) => return text(400, &format!("the body cannot be read: {error}\n")),
            Ok(len) if len as u64 > max => return too_large(max),
            Ok(_) => {}
        }
        match as_lines(body) {
            Ok(lines) => self.take(lines),
            Err(problem) => text(400, &format!("{problem}\n")),
        }
    }

    /// All of it, or nothing.
    fn take(&self, lines: Vec<u8>) -> Answer {
        let mut batches = Vec::new();
        cut(lines, &mut |piece| batches.push(Batch::new(piece)));
        if let Some(refused) = batches.iter().flat_map(|batch| &batch.parsed.refused).next() {
            return text(400, &format!("nothing was taken: {refused}\n"));
        }
        let accepted: usize = batches.iter().map(|batch| batch.parsed.history.len()).sum();
        let (sender, receiver) = sync_channel::<()>(batches.len());
        let until = Instant::now() + WAIT_MAX;
        let count = batches.len();
        for batch in batches {
            let sender = sender.clone();
            let batch = batch.waited_for(move || {
                let _ = sender.send(());
            });
            match self.intake.put_until(batch, until) {
                Ok(()) => {}
                Err(NotTaken::Full) => return busy(),
                Err(NotTaken::Closed) => return text(503, "the service ends\n"),
            }
        }
        drop(sender);
        for _ in 0..count {
            if receiver.recv_timeout(WAIT_MAX).is_err() {
                return text(503, "it was taken, but is not durable yet\n");
            }
        }
        json(200, &serde_json::json!({ "accepted": accepted }))
    }
}

/// A JSON array, or an object over several lines, as lines; lines stay as they are.
fn as_lines(body: Vec<u8>) -> Result<Vec<u8>, String> {
    let trimmed = body.trim_ascii();
    let is_array = trimmed.first() == Some(&b'[');
    // An object that ends in its first line is a line; one that does not is an object over several.
    let first = trimmed.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let is_spread =
        first.len() < trimmed.len() && serde_json::from_slice::<serde::de::IgnoredAny>(first).is_err();
    if !is_array && !is_spread {
        return Ok(body);
    }
    let problem = |error: serde_json::Error| format!("this is neither JSON nor JSON lines: {error}");
    let all: Vec<serde_json::Value> = match is_array {
        true => serde_json::from_slice(trimmed).map_err(problem)?,
        // Perhaps lines, the first of which is damaged: let the reader of lines say what is wrong.
        false => match serde_json::from_slice(trimmed) {
            Ok(one) => vec![one],
            Err(_) => return Ok(body),
        },
    };
    let mut lines = Vec::with_capacity(body.len());
    for one in all {
        lines.extend_from_slice(one.to_string().as_bytes());
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Compares in a time that does not depend on where they differ.
fn is_same(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    given.len() == token.len() && differs == 0
}

fn header(request: &Request, name: &'static str) -> Option<String> {
    let found = request.headers().iter().find(|header| header.field.equiv(name))?;
    Some(found.value.as_str().to_owned())
}

fn field(name: &str, value: &str) -> Header {
    Header::from_bytes(name.as_bytes(), value.as_bytes()).expect("names and values here are plain ASCII")
}

fn typed(code: u16, kind: &str, body: Vec<u8>) -> Answer {
    Response::from_data(body)
        .with_status_code(StatusCode(code))
        .with_header(field("Content-Type", kind))
        .with_header(field("Cache-Control", "no-store"))
        .with_header(field("X-Content-Type-Options", "nosniff"))
}

fn text(code: u16, body: &str) -> Answer {
    typed(code, "text/plain; charset=utf-8", body.as_bytes().to_vec())
}

fn json(code: u16, body: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => typed(code, "application/json", body),
        Err(error) => text(500, &format!("{error}\n")),
    }
}

fn unauthorised() -> Answer {
    text(401, "this needs Authorization: Bearer TOKEN\n").with_header(field("WWW-Authenticate", "Bearer"))
}

fn too_large(max: u64) -> Answer {
    text(413, &format!("a request holds at most {max} bytes\n"))
}

fn busy() -> Answer {
    text(503, "the queue is full: try again\n").with_header(field("Retry-After", "1"))
}
