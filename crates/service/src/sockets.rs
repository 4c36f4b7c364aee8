//! Streams of lines: standard input, TCP and unix sockets.
//!
//! A connection sends transactions as JSON lines. It hears `{"durable":N}`, N lines of this connection being durable so
//! far, whenever N grows; it need not listen. `{"refused":"…"}` says which line was not understood. A client that
//! lost its connection goes on after the last N it heard of; what was taken twice is reported as a duplicate.
//!
//! Where TCP has a token, the first line of a connection is `{"token":"TOKEN"}`, and does not count. Without one only
//! loopback addresses are bound.

use crate::http::{self, is_same};
use crate::intake::{Batch, Intake};
use crate::lines::Lines;
use serde::Deserialize;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The longest line.
pub(crate) const LINE_LEN_MAX: usize = 16 << 20;
/// How much is read at once. A batch is no larger, so that many small senders take turns.
const READ_LEN: usize = 128 << 10;
/// How many connections there may be at once.
const CONNECTIONS_MAX: usize = 1024;
/// The longest line with a token, and how long it may take to come.
const TOKEN_LEN_MAX: usize = 4 << 10;
const TOKEN_WAIT_MAX: Duration = Duration::from_secs(10);
/// How many bytes of unfinished lines all connections of a listener together may have.
const HELD_MAX: usize = 256 << 20;
/// How long what was taken may need to become durable when a connection ends, and when the service does.
const ANSWER_MAX: Duration = Duration::from_secs(5);
const FAREWELL: Duration = Duration::from_millis(500);
/// How often a source looks whether the service shuts down.
const PATIENCE: Duration = Duration::from_millis(100);

/// Something that can be read with a time limit, and answered.
trait Connection: Read + Send + Sized + 'static {
    type Answer: Write + Send + 'static;
    fn answer(&self) -> io::Result<Self::Answer>;
    fn be_patient(&self) -> io::Result<()>;
    /// Whoever writes or reads does so no more.
    fn cut(&self);
}

impl Connection for TcpStream {
    type Answer = Self;
    fn answer(&self) -> io::Result<Self> {
        self.try_clone()
    }
    fn be_patient(&self) -> io::Result<()> {
        self.set_nodelay(true)?;
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(Duration::from_secs(5)))
    }
    fn cut(&self) {
        // It may be gone already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

impl Connection for UnixStream {
    type Answer = Self;
    fn answer(&self) -> io::Result<Self> {
        self.try_clone()
    }
    fn be_patient(&self) -> io::Result<()> {
        self.set_read_timeout(Some(PATIENCE))?;
        self.set_write_timeout(Some(Duration::from_secs(5)))
    }
    fn cut(&self) {
        // It may be gone already.
        let _ = self.shutdown(Shutdown::Both);
    }
}

/// What a connection's answering thread has to say.
#[derive(Default)]
struct News {
    durable: u64,
    refused: Vec<String>,
    is_over: bool,
}

type Shared = Arc<(Mutex<News>, Condvar)>;

fn change(shared: &Shared, change: impl FnOnce(&mut News)) {
    change(&mut shared.0.lock().unwrap_or_else(PoisonError::into_inner));
    shared.1.notify_one();
}

/// Reads a stream to its end, or until shutting down. True if it is at its end.
pub(crate) fn read_lines(mut stream: impl Read, intake: &Intake, stop: &AtomicBool) -> io::Result<bool> {
    let mut lines = Lines::new(LINE_LEN_MAX);
    let mut space = vec![0; READ_LEN];
    while !stop.load(Ordering::Relaxed) {
        let len = match stream.read(&mut space) {
            Ok(0) => {
                if let Some(last) = lines.finish() {
                    intake.put(Batch::new(last));
                }
                return Ok(true);
            }
            Ok(len) => len,
            Err(error) if is_patience(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut open = true;
        lines
            .push(&space[..len], |piece| open &= intake.put(Batch::new(piece)))
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a line longer than 16 MiB"))?;
        if !open {
            return Ok(false);
        }
    }
    Ok(false)
}

fn is_patience(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// What the connections of a listener share.
struct Shop {
    intake: Intake,
    stop: Arc<AtomicBool>,
    token: Option<String>,
    open: AtomicUsize,
    /// Bytes of unfinished lines.
    held: AtomicUsize,
}

impl Shop {
    fn new(intake: Intake, stop: Arc<AtomicBool>, token: Option<String>) -> Self {
        Self { intake, stop, token, open: AtomicUsize::new(0), held: AtomicUsize::new(0) }
    }

    /// Waits for the line with the token; what came behind it. None if it is not the right one.
    fn admit(&self, stream: &mut impl Connection) -> io::Result<Option<Vec<u8>>> {
        #[derive(Deserialize)]
        struct Shown {
            token: String,
        }
        let Some(token) = &self.token else { return Ok(Some(Vec::new())) };
        let until = Instant::now() + TOKEN_WAIT_MAX;
        let mut came = Vec::new();
        let mut space = vec![0; TOKEN_LEN_MAX];
        while !self.stop.load(Ordering::Relaxed) && Instant::now() < until {
            match stream.read(&mut space) {
                Ok(0) => return Ok(None),
                Ok(len) => came.extend_from_slice(&space[..len]),
                Err(error) if is_patience(&error) => continue,
                Err(error) => return Err(error),
            }
            let Some(end) = memchr::memchr(b'\n', &came) else {
                if came.len() > TOKEN_LEN_MAX {
                    break;
                }
                continue;
            };
            let shown = serde_json::from_slice::<Shown>(&came[..end]);
            let is_right = shown.is_ok_and(|shown| is_same(&shown.token, token));
            return Ok(is_right.then(|| came.split_off(end + 1)));
        }
        Ok(None)
    }

    fn serve(&self, mut stream: impl Connection) -> io::Result<()> {
        stream.be_patient()?;
        let mut answer = stream.answer()?;
        let Some(first) = self.admit(&mut stream)? else {
            answer.write_all(b"{\"refused\":\"the first line has to be {\\\"token\\\":\\\"TOKEN\\\"}, with the right one\"}\n")?;
            return Ok(());
        };
        let shared: Shared = Shared::default();
        let telling = Arc::clone(&shared);
        let teller =
            std::thread::Builder::new().name("answers".to_owned()).spawn(move || tell(answer, &telling))?;
        let mut held = HeldLines { shop: self, bytes: 0 };
        let mut sent = 0;
        let result = self.take(&mut stream, first, &shared, &mut held, &mut sent);
        // Everything taken is answered before the connection ends.
        let began = Instant::now();
        while began.elapsed() < ANSWER_MAX {
            let durable = shared.0.lock().unwrap_or_else(PoisonError::into_inner).durable;
            if durable >= sent || self.stop.load(Ordering::Relaxed) && began.elapsed() > FAREWELL {
                break;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        change(&shared, |news| news.is_over = true);
        // A client that does not listen does not hold up the end of the service.
        while !teller.is_finished() {
            if self.stop.load(Ordering::Relaxed) && began.elapsed() > FAREWELL {
                stream.cut();
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        result
    }

    /// Takes lines until the connection or the service ends.
    fn take(
        &self,
        stream: &mut impl Connection,
        first: Vec<u8>,
        shared: &Shared,
        held: &mut HeldLines<'_>,
        sent: &mut u64,
    ) -> io::Result<()> {
        let mut lines = Lines::new(LINE_LEN_MAX);
        let mut space = vec![0; READ_LEN];
        let mut put = |piece: Vec<u8>| {
            *sent += memchr::memchr_iter(b'\n', &piece).count() as u64;
            if piece.last() != Some(&b'\n') {
                *sent += 1;
            }
            let (shared, durable) = (Arc::clone(shared), *sent);
            let batch = Batch::new(piece);
            for refused in &batch.parsed.refused {
                change(&shared, |news| news.refused.push(refused.clone()));
            }
            self.intake.put(batch.waited_for(move || change(&shared, |news| news.durable = durable)))
        };
        let mut open = true;
        let mut pushed = lines.push(&first, |piece| open &= put(piece));
        while open && pushed.is_ok() && !self.stop.load(Ordering::Relaxed) {
            match stream.read(&mut space) {
                Ok(0) => {
                    if let Some(last) = lines.finish() {
                        put(last);
                    }
                    return Ok(());
                }
                Ok(len) => {
                    pushed = lines.push(&space[..len], |piece| open &= put(piece));
                    if !held.are(lines.held()) {
                        let said = "all connections together send too much in unfinished lines".to_owned();
                        change(shared, |news| news.refused.push(said));
                        return Ok(());
                    }
                }
                Err(error) if is_patience(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if pushed.is_err() {
            change(shared, |news| news.refused.push("a line longer than 16 MiB".to_owned()));
        }
        Ok(())
    }
}

/// The unfinished line of a connection.
struct HeldLines<'a> {
    shop: &'a Shop,
    bytes: usize,
}

impl HeldLines<'_> {
    /// Whether there is room for it.
    fn are(&mut self, bytes: usize) -> bool {
        let before = std::mem::replace(&mut self.bytes, bytes);
        self.shop.held.fetch_sub(before, Ordering::Relaxed);
        self.shop.held.fetch_add(bytes, Ordering::Relaxed) + bytes <= HELD_MAX || bytes <= READ_LEN
    }
}

impl Drop for HeldLines<'_> {
    fn drop(&mut self) {
        self.shop.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Says what is new, as long as anybody listens.
fn tell(mut out: impl Write, shared: &Shared) {
    let mut told = 0;
    loop {
        let (durable, refused, is_over) = {
            let mut news = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            while news.durable == told && news.refused.is_empty() && !news.is_over {
                news = shared.1.wait(news).unwrap_or_else(PoisonError::into_inner);
            }
            (news.durable, std::mem::take(&mut news.refused), news.is_over)
        };
        let mut text = String::new();
        for refused in refused {
            text += &serde_json::json!({ "refused": refused }).to_string();
            text.push('\n');
        }
        if durable > told {
            text += &format!("{{\"durable\":{durable}}}\n");
            told = durable;
        }
        if out.write_all(text.as_bytes()).is_err() {
            return;
        }
        if is_over {
            return;
        }
    }
}

fn listen<L: Send + 'static, C: Connection>(
    listener: L,
    accept: fn(&L) -> io::Result<C>,
    shop: Shop,
) -> io::Result<JoinHandle<()>> {
    let shop = Arc::new(shop);
    std::thread::Builder::new().name("listener".to_owned()).spawn(move || {
        let mut serving: Vec<JoinHandle<()>> = Vec::new();
        while !shop.stop.load(Ordering::Relaxed) {
            serving.retain(|thread| !thread.is_finished());
            let Ok(stream) = accept(&listener) else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            if shop.open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                drop(stream);
                continue;
            }
            shop.open.fetch_add(1, Ordering::Relaxed);
            let own = Arc::clone(&shop);
            let thread = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
                // A connection that breaks off is the sender's affair: it knows what was durable.
                let _ = own.serve(stream);
                own.open.fetch_sub(1, Ordering::Relaxed);
            });
            match thread {
                Ok(thread) => serving.push(thread),
                Err(_) => drop(shop.open.fetch_sub(1, Ordering::Relaxed)),
            }
        }
        for thread in serving {
            let _ = thread.join();
        }
    })
}

/// Listens on a TCP address.
pub(crate) fn tcp(
    address: SocketAddr,
    token: Option<String>,
    intake: Intake,
    stop: Arc<AtomicBool>,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    http::allow(address, token.as_deref())?;
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let accept = |listener: &TcpListener| {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    };
    Ok((bound, listen(listener, accept, Shop::new(intake, stop, token))?))
}

/// A unix socket that goes when it is not listened on any more.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Listens on a unix socket. One that nobody listens on any more is replaced.
pub(crate) fn unix(path: &Path, intake: Intake, stop: Arc<AtomicBool>) -> io::Result<JoinHandle<()>> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    let accept = |socket: &Socket| {
        let (stream, _) = socket.listener.accept()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    };
    listen(Socket { listener, path: path.to_owned() }, accept, Shop::new(intake, stop, None))
}
