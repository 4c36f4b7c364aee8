//! Who works: threads, and processes that find each other over TCP.
//!
//! Processes greet each other as Timely's own do — whoever has the larger number calls, and says its number — but give up
//! after a while and say who did not come. From then on everything is Timely's.

use std::any::Any;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use timely::WorkerConfig;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Config as Communication, Hooks};
use timely::worker::Worker;

/// Who works on a check.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Threads of this process.
    pub workers: usize,
    /// Other processes.
    pub cluster: Option<Cluster>,
}

/// All processes, and which of them this is.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Where each listens, `host:port`.
    pub addresses: Vec<String>,
    /// The number of this one.
    pub process: usize,
    /// How long to wait for the others.
    pub patience: Duration,
}

/// What a panic said.
pub(crate) fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

/// Why a run failed; no verdict was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A file could not be read; the sentence says which and why.
    Input(String),
    /// Processes do not agree on what is checked.
    Disagreement(String),
    /// A process did not come, or cannot be listened to.
    Connection(String),
    /// A worker gave up.
    Worker(String),
    /// A limit was reached; the sentence says which, and how far the check was.
    Limit(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Input(why)
        | Self::Disagreement(why)
        | Self::Connection(why)
        | Self::Worker(why)
        | Self::Limit(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for Failure {}

/// Reads a list of hosts: one `host:port` a line; empty lines and what follows `#` do not count.
pub fn hosts(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let host = line.split('#').next().unwrap_or("").trim();
        if host.is_empty() {
            continue;
        }
        let port = host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        if port.is_none() {
            return Err(format!("line {number}: {host} is no host:port"));
        }
        found.push(host.to_owned());
    }
    if found.is_empty() {
        return Err("no hosts: expected one host:port a line".to_owned());
    }
    Ok(found)
}

impl Setup {
    /// Threads of this process alone.
    pub fn threads(workers: usize) -> Self {
        Self { workers: workers.max(1), cluster: None }
    }

    /// The number of this process.
    pub fn process(&self) -> usize {
        self.cluster.as_ref().map_or(0, |cluster| cluster.process)
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.cluster.as_ref().map_or(1, |cluster| cluster.addresses.len())
    }

    /// Lets every worker of this process work; the result is that of the first. A worker that panics ends it: the others
    /// wait for what will never come, and are left behind.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Fn(&mut Worker) -> T + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let (builders, others) = self.builders()?;
        let (tell, told) = channel();
        let work = move |worker: &mut Worker| {
            let done = catch_unwind(AssertUnwindSafe(|| work(worker)));
            if done.is_err() {
                for dataflow in worker.installed_dataflows() {
                    worker.drop_dataflow(dataflow);
                }
            }
            // Whoever does not listen any more has heard of another one that panicked.
            let _ = tell.send((worker.index(), done.map_err(|panic| said(&*panic).to_owned())));
        };
        let guards = timely::execute::execute_from(builders, others, WorkerConfig::default(), work)
            .map_err(Failure::Worker)?;
        let mut first: Option<(usize, T)> = None;
        for _ in 0..self.workers.max(1) {
            match told.recv() {
                Ok((number, Ok(done))) if first.as_ref().is_none_or(|(least, _)| number < *least) => {
                    first = Some((number, done));
                }
                Ok((_, Ok(_))) => {}
                Ok((number, Err(why))) => {
                    std::mem::forget(guards);
                    return Err(Failure::Worker(format!("worker {number} is gone: {why}")));
                }
                Err(_) => break,
            }
        }
        let joined: Result<Vec<()>, String> = guards.join().into_iter().collect();
        joined.map_err(|why| Failure::Worker(format!("a worker is gone: {why}")))?;
        first.map(|(_, done)| done).ok_or_else(|| Failure::Worker("no worker was started".to_owned()))
    }

    fn builders(&self) -> Result<(Vec<AllocatorBuilder>, Box<dyn Any + Send>), Failure> {
        let Some(cluster) = self.cluster.as_ref().filter(|cluster| cluster.addresses.len() > 1) else {
            let communication = match self.workers {
                1 => Communication::Thread,
                workers => Communication::Process(workers),
            };
            return communication.try_build().map_err(Failure::Worker);
        };
        let sockets = cluster.connect()?;
        let hooks = Hooks::default();
        let local = ProcessBuilder::new_typed_vector(self.workers, hooks.refill.clone(), hooks.spill.clone());
        let (builders, guard) =
            initialize_networking_from_sockets(local, sockets, cluster.process, self.workers, hooks)
                .map_err(|error| Failure::Connection(format!("the connections failed: {error}")))?;
        Ok((builders.into_iter().map(AllocatorBuilder::Tcp).collect(), Box::new(guard)))
    }
}

/// How often somebody who is not there yet is called.
const PAUSE: Duration = Duration::from_millis(100);

impl Cluster {
    /// A connection to every other process.
    fn connect(&self) -> Result<Vec<Option<TcpStream>>, Failure> {
        let end = Instant::now() + self.patience;
        let own = &self.addresses[self.process];
        let listener = TcpListener::bind(own)
            .map_err(|error| Failure::Connection(format!("cannot listen on {own}: {error}")))?;
        let mut sockets: Vec<Option<TcpStream>> = self.addresses.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..self.process).map(|other| scope.spawn(move || self.call(other, end))).collect();
            self.listen(&listener, &mut sockets, end)?;
            for (other, call) in calls.into_iter().enumerate() {
                let called = call.join().map_err(|_| Failure::Connection("a call failed".to_owned()))?;
                sockets[other] = Some(called?);
            }
            Ok(sockets)
        })
    }

    fn call(&self, other: usize, end: Instant) -> Result<TcpStream, Failure> {
        let address = &self.addresses[other];
        loop {
            let error = match self.try_call(address) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if Instant::now() >= end {
                return Err(Failure::Connection(format!(
                    "process {other} at {address} did not come within {} s: {error}",
                    self.patience.as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_call(&self, address: &str) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, Duration::from_secs(2)) {
                Ok(mut stream) => {
                    stream.write_all(&(self.process as u64).to_be_bytes())?;
                    return watched(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Waits for those with larger numbers.
    fn listen(
        &self,
        listener: &TcpListener,
        sockets: &mut [Option<TcpStream>],
        end: Instant,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Connection(format!("nobody can be listened to: {error}"));
        listener.set_nonblocking(true).map_err(failed)?;
        while let Some(missing) = (self.process + 1..sockets.len()).find(|&other| sockets[other].is_none()) {
            match listener.accept() {
                Ok((stream, _)) => {
                    if let Ok((other, stream)) = self.greeted(stream)
                        && let Some(socket @ None) = sockets.get_mut(other)
                        && other > self.process
                    {
                        *socket = Some(stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= end {
                        return Err(Failure::Connection(format!(
                            "process {missing} at {} did not come within {} s",
                            self.addresses[missing],
                            self.patience.as_secs()
                        )));
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(())
    }

    fn greeted(&self, mut stream: TcpStream) -> io::Result<(usize, TcpStream)> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let mut number = [0; 8];
        stream.read_exact(&mut number)?;
        stream.set_read_timeout(None)?;
        let other = usize::try_from(u64::from_be_bytes(number)).unwrap_or(usize::MAX);
        Ok((other, watched(stream)?))
    }
}

/// A connection on which a machine that vanished is noticed within ten seconds, though nothing is sent.
fn watched(stream: TcpStream) -> io::Result<TcpStream> {
    use rustix::net::sockopt;
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(&stream, true)?;
    #[cfg(target_os = "linux")]
    {
        sockopt::set_tcp_keepidle(&stream, Duration::from_secs(3))?;
        sockopt::set_tcp_keepintvl(&stream, Duration::from_secs(1))?;
        sockopt::set_tcp_keepcnt(&stream, 5)?;
        sockopt::set_tcp_user_timeout(&stream, 10_000)?;
    }
    Ok(stream)
}

/// What is told when a process is lost: its number and its address.
pub type Lost = dyn Fn(usize, &str) + Send + Sync;

impl Cluster {
    /// Watches for processes that vanish. Timely's threads panic then, and would take every worker with them one after the
    /// other; the first of them says who it was, and `lost` ends the run. Other panics are told as before.
    pub fn watch(&self, lost: Arc<Lost>) {
        let addresses = self.addresses.clone();
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = std::thread::current().name().unwrap_or("").to_owned();
            let remote = name.strip_prefix("timely:recv-").or(name.strip_prefix("timely:send-"));
            match remote.and_then(|number| number.parse::<usize>().ok()) {
                Some(other) => lost(other, addresses.get(other).map_or("", String::as_str)),
                None => before(panic),
            }
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::hosts;

    #[test]
    fn a_list_of_hosts_is_read() {
        let text = "# three of them\n10.0.0.1:7000\n\n[::1]:7001 # this one\nlocalhost:7002\n";
        assert_eq!(
            hosts(text),
            Ok(vec!["10.0.0.1:7000".into(), "[::1]:7001".into(), "localhost:7002".into()])
        );
        assert_eq!(hosts("a:1\nb"), Err("line 2: b is no host:port".into()));
        assert!(hosts("# nobody\n").is_err());
    }
}
