//! The HTTP side: transactions in, how things stand out.
//!
//! | request | answer |
//! |---|---|
//! | `POST /transactions` | one JSON object, a JSON array, or JSON lines; also gzip. 200 `{"accepted":N}` once all are durable; 400 if one is not understood, and none is taken; 413 if it is too large; 503 if the queue stays full |
//! | `GET /` | the page |
//! | `GET /status`, `/samples`, `/findings?from=N&max=N`, `/transactions?finding=N` | what the page shows |
//! | `GET /metrics` | the same for Prometheus |
//! | `GET /health` | `ok` |
//!
//! With a token, every request but those for the page itself and `/health` needs `Authorization: Bearer TOKEN`. Without a
//! token only loopback addresses are bound, and requests must name such an address: `localhost` or a number. So the page
//! of a stranger, whose name was made to mean this machine, is not served. A request that a page of another origin
//! sends is refused in any case.
//!
//! What a request may cost is bounded: its body, all bodies together, the time that its client takes
//! ([`crate::connections`]), and the size of an answer.

#![expect(clippy::result_large_err, reason = "an answer is moved once per request")]

use crate::connections::{self, Answer, Answering, Meter};
use crate::intake::{Batch, Intake, NotTaken};
use crate::lines::cut;
use crate::page;
use crate::status::Board;
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::http::uri::Authority;
use hyper::{Method, Request, Response, StatusCode};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// How the HTTP side is set up.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// Where it listens.
    pub address: SocketAddr,
    /// What requests have to show.
    pub token: Option<String>,
    /// The most bytes of a request, after decompression.
    pub body_max: u64,
    /// How long a client may take without getting on.
    pub patience: Duration,
}

impl HttpOptions {
    /// A patience that clients on poor networks need.
    pub const PATIENCE: Duration = Duration::from_secs(10);
}

/// How long a request waits for room in the queue, and then for its lines to be durable.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// How often it looks whether there is room.
const PAUSE: Duration = Duration::from_millis(2);
/// How many bytes all bodies together may have that are being read, in bodies of the largest size.
const BODIES_MAX: u64 = 2;
/// The most bytes of findings in an answer, and the most of them.
const FINDINGS_LEN_MAX: usize = 1 << 20;
const FINDINGS_MAX: u64 = 2000;

struct Side {
    options: HttpOptions,
    intake: Intake,
    board: Board,
    /// Bytes of bodies that are being read.
    held: AtomicU64,
}

/// Refuses to listen for others than this machine without a token.
pub(crate) fn allow(address: SocketAddr, token: Option<&str>) -> io::Result<()> {
    if token.is_some_and(|token| !token.is_empty()) || token.is_none() && address.ip().is_loopback() {
        return Ok(());
    }
    let what = match token {
        Some(_) => "the token is empty".to_owned(),
        None => format!("{address} is reachable from other machines: set a token with --token"),
    };
    Err(io::Error::new(io::ErrorKind::PermissionDenied, what))
}

/// Listens. Gives the address it is bound to.
pub(crate) fn listen(
    options: HttpOptions,
    intake: Intake,
    board: Board,
    stop: Arc<AtomicBool>,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    allow(options.address, options.token.as_deref())?;
    let listener = TcpListener::bind(options.address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let patience = options.patience;
    let side = Arc::new(Side { options, intake, board, held: AtomicU64::new(0) });
    let thread = std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        let answer = move |request: Request<Incoming>, meter: Arc<Meter>| -> Answering {
            let side = Arc::clone(&side);
            Box::pin(async move { side.answer(request, &meter).await })
        };
        // Without a runtime there is no listener: whoever connects is refused.
        let _ = connections::serve(listener, patience, &stop, answer);
    })?;
    Ok((bound, thread))
}

/// A part of the bytes that all bodies together may have; given back when it is dropped.
struct Held {
    side: Arc<Side>,
    bytes: u64,
}

impl Held {
    fn grow(&mut self, bytes: u64) -> bool {
        let max = self.side.options.body_max.saturating_mul(BODIES_MAX);
        let before = self.side.held.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before.saturating_add(bytes) <= max
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.side.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// On a thread where it may take its time.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Answer> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| {
        text(StatusCode::INTERNAL_SERVER_ERROR, "internal error in taipan watch: this is a bug\n")
    })
}

impl Side {
    async fn answer(self: &Arc<Self>, request: Request<Incoming>, meter: &Meter) -> Answer {
        let (head, body) = request.into_parts();
        let is_empty = body.is_end_stream();
        let is_post = head.method == Method::POST && head.uri.path() == "/transactions";
        let mut is_read = is_empty;
        let answer = match self.admit(&head) {
            Err(refused) => refused,
            Ok(()) if is_post => match self.body(&head, body, meter).await {
                Err(refused) => refused,
                Ok((body, held)) => {
                    is_read = true;
                    self.transactions(&head, body, held).await.unwrap_or_else(|refused| refused)
                }
            },
            Ok(()) if head.method == Method::POST => {
                text(StatusCode::NOT_FOUND, "POST transactions to /transactions\n")
            }
            Ok(()) => {
                let side = Arc::clone(self);
                aside(move || side.get(&head)).await.unwrap_or_else(|refused| refused)
            }
        };
        if is_read {
            return answer;
        }
        meter.is_owed();
        with(answer, header::CONNECTION, "close")
    }

    /// Who may ask for what.
    fn admit(&self, head: &Parts) -> Result<(), Answer> {
        let host = self.host(head)?;
        if let Some(origin) = head.headers.get(header::ORIGIN) {
            let own = |scheme: &str| {
                let origin = origin.to_str().ok()?.strip_prefix(scheme)?;
                Some(origin.eq_ignore_ascii_case(host.as_str()))
            };
            if own("http://").or_else(|| own("https://")) != Some(true) {
                return Err(text(
                    StatusCode::FORBIDDEN,
                    "requests from pages of other origins are refused\n",
                ));
            }
        }
        let is_open = matches!(head.uri.path(), "/" | "/health") && head.method != Method::POST;
        if is_open || self.is_allowed(head) { Ok(()) } else { Err(unauthorised()) }
    }

    /// The host that is asked for. Without a token, one that no other page can be at.
    fn host(&self, head: &Parts) -> Result<Authority, Answer> {
        let mut all = head.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (all.next(), all.next()) else {
            return Err(text(StatusCode::BAD_REQUEST, "a request needs exactly one Host header\n"));
        };
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        let named = head.uri.authority();
        let Some(host) = host.filter(|host| named.is_none_or(|named| named == host)) else {
            return Err(text(StatusCode::BAD_REQUEST, "the Host header is invalid\n"));
        };
        let name = host.host().trim_start_matches('[').trim_end_matches(']');
        let is_local = name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok();
        if is_local || self.options.token.is_some() {
            return Ok(host);
        }
        let said = format!(
            "without --token, requests must address this host by number or as localhost, not as {name}\n"
        );
        Err(text(StatusCode::FORBIDDEN, &said))
    }

    fn is_allowed(&self, head: &Parts) -> bool {
        let Some(token) = &self.options.token else { return true };
        let given = head.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        given.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|it| is_same(it, token))
    }

    fn get(&self, head: &Parts) -> Answer {
        if !matches!(head.method, Method::GET | Method::HEAD) {
            let said = "only GET, and POST to /transactions\n";
            return with(text(StatusCode::METHOD_NOT_ALLOWED, said), header::ALLOW, "GET, HEAD, POST");
        }
        let query = head.uri.query().unwrap_or("");
        let number = |name: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse::<u64>().ok())
        };
        match head.uri.path() {
            "/" => {
                let page = typed(StatusCode::OK, "text/html; charset=utf-8", page::PAGE);
                with(page, header::CONTENT_SECURITY_POLICY, page::POLICY)
            }
            "/health" => text(StatusCode::OK, "ok\n"),
            "/status" => json(&self.board.status()),
            "/samples" => json(&self.board.samples()),
            "/metrics" => typed(StatusCode::OK, "text/plain; version=0.0.4", self.board.prometheus()),
            "/findings" => {
                let max = number("max").unwrap_or(1000).min(FINDINGS_MAX) as usize;
                let from = number("from").unwrap_or(0);
                let (lines, first, next) = self.board.findings(from, max, FINDINGS_LEN_MAX);
                let body =
                    format!("{{\"first\":{first},\"next\":{next},\"findings\":[{}]}}", lines.join(","));
                typed(StatusCode::OK, "application/json", body)
            }
            "/transactions" => {
                let lines = self.board.transactions_of(number("finding").unwrap_or(u64::MAX));
                typed(StatusCode::OK, "application/json", format!("[{}]", lines.join(",")))
            }
            _ => text(
                StatusCode::NOT_FOUND,
                "not found; expected /, /status, /samples, /findings, /transactions?finding=N, /metrics, /health, or POST to /transactions\n",
            ),
        }
    }

    /// The body as it was sent.
    async fn body(
        self: &Arc<Self>,
        head: &Parts,
        mut body: Incoming,
        meter: &Meter,
    ) -> Result<(Vec<u8>, Held), Answer> {
        let max = self.options.body_max;
        let encoding = head.headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        if encoding
            .is_some_and(|it| !it.eq_ignore_ascii_case(b"gzip") && !it.eq_ignore_ascii_case(b"identity"))
        {
            let said = "unsupported Content-Encoding: send the body uncompressed or as gzip\n";
            return Err(text(StatusCode::UNSUPPORTED_MEDIA_TYPE, said));
        }
        if body.size_hint().lower() > max {
            return Err(too_large(max));
        }
        let mut held = Held { side: Arc::clone(self), bytes: 0 };
        let mut bytes = Vec::new();
        meter.client();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                text(StatusCode::BAD_REQUEST, &format!("cannot read the body: {error}\n"))
            })?;
            // Trailers say nothing here.
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() as u64 + data.len() as u64 > max {
                return Err(too_large(max));
            }
            if !held.grow(data.len() as u64) {
                return Err(busy("too many requests are being sent at the same time"));
            }
            bytes.extend_from_slice(&data);
        }
        meter.service();
        Ok((bytes, held))
    }

    async fn transactions(
        self: &Arc<Self>,
        head: &Parts,
        body: Vec<u8>,
        held: Held,
    ) -> Result<Answer, Answer> {
        let encoding = head.headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
        let is_gzip = encoding.is_some_and(|it| it.eq_ignore_ascii_case(b"gzip"));
        let max = self.options.body_max;
        let batches = aside(move || {
            // What was sent is given back when it has been understood.
            let _held = held;
            let body = if is_gzip { unpacked(&body, max)? } else { body };
            let bad = |problem: &str| text(StatusCode::BAD_REQUEST, &format!("{problem}\n"));
            let lines = as_lines(body).map_err(|problem| bad(&problem))?;
            let mut batches = Vec::new();
            cut(lines, &mut |piece| batches.push(Batch::new(piece)));
            match batches.iter().flat_map(|batch| &batch.parsed.refused).next() {
                Some(refused) => Err(bad(&format!("rejected: {refused}"))),
                None => Ok(batches),
            }
        })
        .await??;
        self.take(batches).await
    }

    /// All of it, or nothing.
    async fn take(&self, batches: Vec<Batch>) -> Result<Answer, Answer> {
        let accepted: usize = batches.iter().map(|batch| batch.parsed.history.len()).sum();
        let until = Instant::now() + WAIT_MAX;
        let mut durable = Vec::with_capacity(batches.len());
        for batch in batches {
            let (sender, receiver) = oneshot::channel::<()>();
            durable.push(receiver);
            let mut batch = Box::new(batch.waited_for(move || {
                let _ = sender.send(());
            }));
            loop {
                batch = match self.intake.try_put(batch) {
                    Ok(()) => break,
                    Err(NotTaken::Closed) => return Err(ends()),
                    Err(NotTaken::Full(_)) if Instant::now() >= until => {
                        return Err(busy("the queue is full"));
                    }
                    Err(NotTaken::Full(batch)) => batch,
                };
                tokio::time::sleep(PAUSE).await;
            }
        }
        let until = tokio::time::Instant::now() + WAIT_MAX;
        for receiver in durable {
            match tokio::time::timeout_at(until, receiver).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(ends()),
                Err(_) => {
                    let said = "accepted, but not on disk yet\n";
                    return Err(text(StatusCode::SERVICE_UNAVAILABLE, said));
                }
            }
        }
        Ok(json(&serde_json::json!({ "accepted": accepted })))
    }
}

fn unpacked(body: &[u8], max: u64) -> Result<Vec<u8>, Answer> {
    let mut out = Vec::new();
    match MultiGzDecoder::new(body).take(max.saturating_add(1)).read_to_end(&mut out) {
        Err(error) => Err(text(StatusCode::BAD_REQUEST, &format!("cannot read the body: {error}\n"))),
        Ok(len) if len as u64 > max => Err(too_large(max)),
        Ok(_) => Ok(out),
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
    let problem = |error: serde_json::Error| format!("the body is neither JSON nor JSON lines: {error}");
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
pub(crate) fn is_same(given: &str, token: &str) -> bool {
    let differs = given.bytes().zip(token.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    given.len() == token.len() && differs == 0
}

fn typed(code: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = code;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

fn with(mut answer: Answer, name: HeaderName, value: &'static str) -> Answer {
    answer.headers_mut().insert(name, HeaderValue::from_static(value));
    answer
}

fn text(code: StatusCode, body: &str) -> Answer {
    typed(code, "text/plain; charset=utf-8", body.to_owned())
}

fn json(body: &impl serde::Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(body) => typed(StatusCode::OK, "application/json", body),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &format!("{error}\n")),
    }
}

fn unauthorised() -> Answer {
    let said = "missing or wrong token: send Authorization: Bearer TOKEN\n";
    with(text(StatusCode::UNAUTHORIZED, said), header::WWW_AUTHENTICATE, "Bearer")
}

fn too_large(max: u64) -> Answer {
    text(StatusCode::PAYLOAD_TOO_LARGE, &format!("the request is too large: at most {max} bytes\n"))
}

fn busy(why: &str) -> Answer {
    let answer = text(StatusCode::SERVICE_UNAVAILABLE, &format!("{why}: try again\n"));
    with(answer, header::RETRY_AFTER, "1")
}

fn ends() -> Answer {
    text(StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
}
