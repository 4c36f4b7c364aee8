//! Streams of lines: standard input, TCP and unix sockets.
//!
//! A connection sends transactions as JSON lines. It hears `{"durable":N}`, N lines of this connection being durable so
//! far, whenever N grows; it need not listen. `{"refused":"…"}` says which line was not understood. A client that
//! lost its connection goes on after the last N it heard of; what was taken twice is found by sequence numbers.

use crate::intake::{Batch, Intake};
use crate::lines::Lines;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The longest line.
pub(crate) const LINE_LEN_MAX: usize = 16 << 20;
/// How much is read at once. A batch is no larger, so that many small senders take turns.
const READ_LEN: usize = 128 << 10;
/// How many connections there may be at once.
const CONNECTIONS_MAX: usize = 1024;
/// How often a source looks whether the service ends.
const PATIENCE: Duration = Duration::from_millis(100);

/// Something that can be read with a time limit, and answered.
trait Connection: Read + Send + Sized + 'static {
    type Answer: Write + Send + 'static;
    fn answer(&self) -> io::Result<Self::Answer>;
    fn be_patient(&self) -> io::Result<()>;
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

/// Reads a stream to its end, or until the service ends. True if it is at its end.
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

fn serve<C: Connection>(mut stream: C, intake: &Intake, stop: &AtomicBool) -> io::Result<()> {
    stream.be_patient()?;
    let shared: Shared = Shared::default();
    let answer = stream.answer()?;
    let telling = Arc::clone(&shared);
    let teller =
        std::thread::Builder::new().name("answers".to_owned()).spawn(move || tell(answer, &telling))?;
    let mut lines = Lines::new(LINE_LEN_MAX);
    let mut space = vec![0; READ_LEN];
    let mut sent = 0;
    let result = loop {
        if stop.load(Ordering::Relaxed) {
            break Ok(());
        }
        let mut put = |piece: Vec<u8>| {
            sent += memchr::memchr_iter(b'\n', &piece).count() as u64;
            if piece.last() != Some(&b'\n') {
                sent += 1;
            }
            let (shared, durable) = (Arc::clone(&shared), sent);
            let batch = Batch::new(piece);
            for refused in &batch.parsed.refused {
                change(&shared, |news| news.refused.push(refused.clone()));
            }
            intake.put(batch.waited_for(move || change(&shared, |news| news.durable = durable)))
        };
        match stream.read(&mut space) {
            Ok(0) => {
                if let Some(last) = lines.finish() {
                    put(last);
                }
                break Ok(());
            }
            Ok(len) => {
                let mut open = true;
                let pushed = lines.push(&space[..len], |piece| open &= put(piece));
                if pushed.is_err() {
                    change(&shared, |news| news.refused.push("a line longer than 16 MiB".to_owned()));
                    break Ok(());
                }
                if !open {
                    break Ok(());
                }
            }
            Err(error) if is_patience(&error) => {}
            Err(error) => break Err(error),
        }
    };
    // Everything taken is answered before the connection ends.
    let until = std::time::Instant::now() + Duration::from_secs(5);
    while std::time::Instant::now() < until {
        let durable = shared.0.lock().unwrap_or_else(PoisonError::into_inner).durable;
        if durable >= sent {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    change(&shared, |news| news.is_over = true);
    let _ = teller.join();
    result
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
    intake: Intake,
    stop: Arc<AtomicBool>,
) -> io::Result<JoinHandle<()>> {
    let open = Arc::new(AtomicUsize::new(0));
    std::thread::Builder::new().name("listener".to_owned()).spawn(move || {
        let mut serving: Vec<JoinHandle<()>> = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            serving.retain(|thread| !thread.is_finished());
            let Ok(stream) = accept(&listener) else {
                std::thread::sleep(Duration::from_millis(10));
                continue;
            };
            if open.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
                drop(stream);
                continue;
            }
            open.fetch_add(1, Ordering::Relaxed);
            let (intake, stop, open) = (intake.clone(), Arc::clone(&stop), Arc::clone(&open));
            let thread = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
                // A connection that breaks off is the sender's affair: it knows what was durable.
                let _ = serve(stream, &intake, &stop);
                open.fetch_sub(1, Ordering::Relaxed);
            });
            serving.extend(thread);
        }
        drop(intake);
        for thread in serving {
            let _ = thread.join();
        }
    })
}

/// Listens on a TCP address.
pub(crate) fn tcp(
    address: SocketAddr,
    intake: Intake,
    stop: Arc<AtomicBool>,
) -> io::Result<(SocketAddr, JoinHandle<()>)> {
    let listener = TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    let accept = |listener: &TcpListener| {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(false)?;
        Ok(stream)
    };
    Ok((bound, listen(listener, accept, intake, stop)?))
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
    listen(Socket { listener, path: path.to_owned() }, accept, intake, stop)
}
