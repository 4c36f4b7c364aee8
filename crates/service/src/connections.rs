//! Connections over HTTP: accepted, served by one thread, and cut off when they are slow.
//!
//! **What.** All connections are tasks of one thread, so that none waits for another. A [`Meter`] knows whose turn it is.
//! While it is the client's turn — it is to send a request or a body, or to read an answer — it has to make progress: a
//! connection that moves nothing for as long as the patience lasts, or moves less than [`BYTES_PER_SECOND`] beyond it, is
//! cut off. Where there are as many connections as there may be, the one that has waited longest for its client makes
//! room. Nobody reads what a client still owes before it is answered; see [`Metered`].
//!
//! **Cost.** A look at all connections, [`CONNECTIONS_MAX`] at most, every [`TICK`].

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// How many connections there may be at once.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// How often all connections are looked at.
const TICK: Duration = Duration::from_millis(50);
/// A client that is slower than this is cut off.
const BYTES_PER_SECOND: u64 = 64 << 10;
/// The longest head of a request.
const HEAD_LEN_MAX: usize = 32 << 10;
/// How long answers under way may take when the service ends.
const FAREWELL: Duration = Duration::from_millis(600);
/// How long a client that owes the rest of a body may take to read the answer.
const LINGER: Duration = Duration::from_secs(2);
/// How many threads read bodies and make long answers.
const WORKERS: usize = 4;

pub(crate) type Answer = Response<Full<Bytes>>;
pub(crate) type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The service works on an answer.
    Service,
    /// The client sends or reads.
    Client,
    /// The answer is out, and the client owes the rest of a request that nobody wants.
    Leaving,
}

#[derive(Clone, Copy, Debug)]
struct Course {
    turn: Turn,
    since: Instant,
    /// When bytes moved last, and how many did in this turn.
    moved: Instant,
    bytes: u64,
    is_owed: bool,
}

/// How a connection gets on.
#[derive(Debug)]
pub(crate) struct Meter(Mutex<Course>);

impl Meter {
    fn new() -> Self {
        let now = Instant::now();
        Self(Mutex::new(Course { turn: Turn::Client, since: now, moved: now, bytes: 0, is_owed: false }))
    }

    fn lock(&self) -> MutexGuard<'_, Course> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, turn: Turn) {
        let mut course = self.lock();
        let now = Instant::now();
        *course = Course { turn, since: now, moved: now, bytes: 0, is_owed: course.is_owed };
    }

    /// From here on the client is waited for.
    pub(crate) fn client(&self) {
        self.pass(Turn::Client);
    }

    /// From here on the client waits.
    pub(crate) fn service(&self) {
        self.pass(Turn::Service);
    }

    /// The answer is given without having read the whole request.
    pub(crate) fn is_owed(&self) {
        self.lock().is_owed = true;
    }

    fn moved(&self, bytes: usize) {
        if bytes > 0 {
            let mut course = self.lock();
            course.bytes += bytes as u64;
            course.moved = Instant::now();
        }
    }

    fn is_too_slow(&self, now: Instant, patience: Duration) -> bool {
        let course = self.lock();
        let earned = Duration::from_secs(course.bytes / BYTES_PER_SECOND);
        match course.turn {
            Turn::Service => false,
            Turn::Client => now > course.moved + patience || now > course.since + patience + earned,
            Turn::Leaving => now > course.since + LINGER,
        }
    }

    /// Since when the client is waited for.
    fn waits_since(&self) -> Option<Instant> {
        let course = self.lock();
        (course.turn != Turn::Service).then_some(course.since)
    }
}

/// A stream whose bytes are counted.
///
/// Closing a socket with unread bytes makes the system throw away what the other side has not read yet, the answer. So
/// where a request was answered without reading its body, the end of the answer is sent, and what comes is thrown away for
/// a moment, until the client has closed.
struct Metered {
    stream: TcpStream,
    meter: Arc<Meter>,
    is_shut: bool,
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = space.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, space);
        self.meter.moved(space.filled().len() - before);
        read
    }
}

impl AsyncWrite for Metered {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(len)) = &written {
            self.meter.moved(*len);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.is_shut {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.is_shut = true;
            if self.meter.lock().is_owed {
                self.meter.pass(Turn::Leaving);
            }
        }
        if !self.meter.lock().is_owed {
            return Poll::Ready(Ok(()));
        }
        let mut space = [0; 8 << 10];
        loop {
            let mut space = ReadBuf::new(&mut space);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut space))?;
            if space.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

struct Connection {
    meter: Arc<Meter>,
    task: JoinHandle<()>,
}

/// Serves until the service ends. The listener does not block.
pub(crate) fn serve(
    listener: std::net::TcpListener,
    patience: Duration,
    stop: &AtomicBool,
    answer: impl Fn(Request<Incoming>, Arc<Meter>) -> Answering + Clone + Send + 'static,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .max_blocking_threads(WORKERS)
        .thread_name("http")
        .build()?;
    let served = runtime.block_on(accept(listener, patience, stop, answer));
    // What is still being read is of no use to anybody.
    runtime.shutdown_background();
    served
}

async fn accept(
    listener: std::net::TcpListener,
    patience: Duration,
    stop: &AtomicBool,
    answer: impl Fn(Request<Incoming>, Arc<Meter>) -> Answering + Clone + Send + 'static,
) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (end, ends) = watch::channel(false);
    let mut open: Vec<Connection> = Vec::new();
    let mut next = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match tokio::time::timeout(TICK, listener.accept()).await {
            Ok(Ok((stream, _))) => {
                open.retain(|connection| !connection.task.is_finished());
                if make_room(&mut open) {
                    let meter = Arc::new(Meter::new());
                    let task = converse(stream, Arc::clone(&meter), ends.clone(), answer.clone());
                    open.push(Connection { meter, task: tokio::spawn(task) });
                }
            }
            // There are no descriptors left, perhaps.
            Ok(Err(_)) => tokio::time::sleep(TICK).await,
            Err(_) => {}
        }
        let now = Instant::now();
        if now >= next {
            next = now + TICK;
            open.retain(|connection| !connection.task.is_finished());
            open.iter()
                .filter(|connection| connection.meter.is_too_slow(now, patience))
                .for_each(|connection| connection.task.abort());
        }
    }
    drop(listener);
    // Nobody listens if all connections are gone.
    let _ = end.send(true);
    let until = Instant::now() + FAREWELL;
    while open.iter().any(|connection| !connection.task.is_finished()) && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Whether there is room for one more connection: the one that has waited longest for its client makes it.
fn make_room(open: &mut Vec<Connection>) -> bool {
    if open.len() < CONNECTIONS_MAX {
        return true;
    }
    let waiting = open.iter().enumerate().filter_map(|(place, it)| Some((it.meter.waits_since()?, place)));
    let Some((_, place)) = waiting.min() else { return false };
    open.swap_remove(place).task.abort();
    true
}

/// One connection from its first request to its last.
async fn converse(
    stream: TcpStream,
    meter: Arc<Meter>,
    mut ends: watch::Receiver<bool>,
    answer: impl Fn(Request<Incoming>, Arc<Meter>) -> Answering + Send + 'static,
) {
    // Answers are small and whole: there is nothing to wait for.
    let _ = stream.set_nodelay(true);
    let metered = Metered { stream, meter: Arc::clone(&meter), is_shut: false };
    let service = service_fn(move |request| {
        let meter = Arc::clone(&meter);
        meter.service();
        let answering = answer(request, Arc::clone(&meter));
        async move {
            let answer = answering.await;
            meter.client();
            Ok::<_, Infallible>(answer)
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .header_read_timeout(None)
            .max_buf_size(HEAD_LEN_MAX)
            .serve_connection(TokioIo::new(metered), service)
    );
    let mut ending = pin!(ends.wait_for(|it| *it));
    let mut is_ending = false;
    poll_fn(|cx| {
        if !is_ending && ending.as_mut().poll(cx).is_ready() {
            is_ending = true;
            connection.as_mut().graceful_shutdown();
        }
        // A connection that breaks off is the client's affair.
        connection.as_mut().poll(cx).map(drop)
    })
    .await;
}
