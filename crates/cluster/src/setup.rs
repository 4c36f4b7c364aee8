//! Who works: threads, and processes that find each other over TCP.
//!
//! Processes greet each other as Timely's own do — the one with the larger number calls — but they also compare what they
//! are to do ([`crate::greeting`]), give up after a while and say who did not come. From then on everything is Timely's.

use crate::greeting::{self, Greeting};
use std::any::Any;
use std::fmt;
use std::io;
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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
            return Err(format!("line {number}: {host} is not host:port"));
        }
        found.push(host.to_owned());
    }
    if found.is_empty() {
        return Err("no hosts: expected one host:port per line".to_owned());
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
        greeting: Greeting,
        work: impl Fn(&mut Worker) -> T + Send + Sync + 'static,
    ) -> Result<T, Failure> {
        let (builders, others) = self.builders(&greeting)?;
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
                    return Err(Failure::Worker(format!("lost worker {number}: {why}")));
                }
                Err(_) => break,
            }
        }
        let joined: Result<Vec<()>, String> = guards.join().into_iter().collect();
        joined.map_err(|why| Failure::Worker(format!("lost a worker: {why}")))?;
        first.map(|(_, done)| done).ok_or_else(|| Failure::Worker("no worker was started".to_owned()))
    }

    /// What every task has in common.
    fn greeting(&self, greeting: Greeting) -> Greeting {
        let hosts = self.cluster.as_ref().map_or(String::new(), |cluster| cluster.addresses.join(" "));
        greeting.with("the list of hosts", hosts).with("--workers", self.workers)
    }

    fn builders(&self, greeting: &Greeting) -> Result<(Vec<AllocatorBuilder>, Box<dyn Any + Send>), Failure> {
        let Some(cluster) = self.cluster.as_ref().filter(|cluster| cluster.addresses.len() > 1) else {
            let communication = match self.workers {
                1 => Communication::Thread,
                workers => Communication::Process(workers),
            };
            return communication.try_build().map_err(Failure::Worker);
        };
        let sockets = cluster.connect(&self.greeting(greeting.clone()))?;
        let hooks = Hooks::default();
        let local = ProcessBuilder::new_typed_vector(self.workers, hooks.refill.clone(), hooks.spill.clone());
        let (builders, guard) =
            initialize_networking_from_sockets(local, sockets, cluster.process, self.workers, hooks)
                .map_err(|error| Failure::Connection(format!("cannot set up the connections: {error}")))?;
        Ok((builders.into_iter().map(AllocatorBuilder::Tcp).collect(), Box::new(guard)))
    }
}

/// How often somebody who is not there yet is called.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a connection that was accepted may take to greet.
const GREETING_MAX: Duration = Duration::from_secs(2);
/// How long to wait for others when it is known that nothing will come of it, so that they hear of it too.
const FAREWELL: Duration = Duration::from_secs(3);

/// What is known while processes meet.
struct Meeting<'a> {
    greeting: &'a Greeting,
    state: Mutex<State>,
}

struct State {
    end: Instant,
    refusal: Option<String>,
}

impl Meeting<'_> {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) -> Instant {
        self.lock().end
    }

    /// Compares greetings; the first difference is what is reported.
    fn compare(&self, own: usize, other: usize, theirs: &Greeting, address: &str) {
        if let Some(refusal) = greeting::refusal((own, self.greeting), (other, theirs), address) {
            let mut state = self.lock();
            state.end = state.end.min(Instant::now() + FAREWELL);
            state.refusal.get_or_insert(refusal);
        }
    }
}

impl Cluster {
    /// A connection to every other process, all of which are to do the same.
    fn connect(&self, greeting: &Greeting) -> Result<Vec<Option<TcpStream>>, Failure> {
        let state = State { end: Instant::now() + self.patience, refusal: None };
        let meeting = Meeting { greeting, state: Mutex::new(state) };
        let own = &self.addresses[self.process];
        let listener = TcpListener::bind(own)
            .map_err(|error| Failure::Connection(format!("cannot listen on {own}: {error}")))?;
        let met = self.meet(&listener, &meeting);
        match meeting.lock().refusal.take() {
            Some(refusal) => Err(Failure::Disagreement(refusal)),
            None => met,
        }
    }

    fn meet(&self, listener: &TcpListener, meeting: &Meeting<'_>) -> Result<Vec<Option<TcpStream>>, Failure> {
        let mut sockets: Vec<Option<TcpStream>> = self.addresses.iter().map(|_| None).collect();
        std::thread::scope(|scope| {
            let calls: Vec<_> =
                (0..self.process).map(|other| scope.spawn(move || self.call(other, meeting))).collect();
            self.listen(listener, &mut sockets, meeting)?;
            for (other, call) in calls.into_iter().enumerate() {
                let called = call.join().map_err(|_| Failure::Connection("a call failed".to_owned()))?;
                sockets[other] = Some(called?);
            }
            Ok(sockets)
        })
    }

    fn call(&self, other: usize, meeting: &Meeting<'_>) -> Result<TcpStream, Failure> {
        let address = &self.addresses[other];
        loop {
            let error = match self.try_call(other, address, meeting) {
                Ok(stream) => return Ok(stream),
                Err(error) => error,
            };
            if Instant::now() >= meeting.end() {
                return Err(Failure::Connection(format!(
                    "process {other} at {address} did not connect within {} s: {error}",
                    self.patience.as_secs()
                )));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_call(&self, other: usize, address: &str, meeting: &Meeting<'_>) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host name has no address");
        for to in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&to, Duration::from_secs(2)) {
                Ok(mut stream) => {
                    greeting::say(&mut stream, self.process, meeting.greeting)?;
                    let (number, theirs) = greeting::hear(&mut stream, meeting.end())?;
                    if number != other {
                        let said = format!("the process at this address is process {number}");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, said));
                    }
                    meeting.compare(self.process, other, &theirs, address);
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
        meeting: &Meeting<'_>,
    ) -> Result<(), Failure> {
        let failed = |error: io::Error| Failure::Connection(format!("cannot accept connections: {error}"));
        listener.set_nonblocking(true).map_err(failed)?;
        while let Some(missing) = (self.process + 1..sockets.len()).find(|&other| sockets[other].is_none()) {
            match listener.accept() {
                Ok((stream, _)) => {
                    // Strangers are not answered. A process that calls again did not hear the first answer.
                    if let Ok((other, stream)) = self.greeted(stream, meeting)
                        && let Some(socket) = sockets.get_mut(other)
                    {
                        *socket = Some(stream);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if Instant::now() >= meeting.end() {
                        return Err(Failure::Connection(format!(
                            "process {missing} at {} did not connect within {} s",
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

    fn greeted(&self, mut stream: TcpStream, meeting: &Meeting<'_>) -> io::Result<(usize, TcpStream)> {
        stream.set_nonblocking(false)?;
        let (other, theirs) = greeting::hear(&mut stream, Instant::now() + GREETING_MAX)?;
        let known = self.addresses.get(other).filter(|_| other > self.process);
        greeting::say(&mut stream, self.process, meeting.greeting)?;
        let from = stream.peer_addr()?.to_string();
        meeting.compare(self.process, other, &theirs, known.unwrap_or(&from));
        if known.is_none() {
            return Err(io::ErrorKind::InvalidData.into());
        }
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

/// The message when a process is lost: its number and its address.
pub type Lost = dyn Fn(usize, &str) + Send + Sync;

impl Cluster {
    /// Watches for processes that vanish. Timely's threads panic then, and would take every worker with them one after the
    /// other; the first of them says who it was, and `lost` ends the run. Other panics are reported as before.
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
    use super::{Cluster, Failure, Greeting, Setup, hosts};
    use corpus::Loopback;
    use std::io::Write;
    use std::net::{SocketAddr, TcpStream};
    use std::time::Duration;

    #[test]
    fn a_list_of_hosts_is_read() {
        let text = "# three of them\n10.0.0.1:7000\n\n[::1]:7001 # this one\nlocalhost:7002\n";
        assert_eq!(
            hosts(text),
            Ok(vec!["10.0.0.1:7000".into(), "[::1]:7001".into(), "localhost:7002".into()])
        );
        assert_eq!(hosts("a:1\nb"), Err("line 2: b is not host:port".into()));
        assert!(hosts("# nobody\n").is_err());
    }

    /// Processes with these greetings meet, each in a thread.
    fn meet(setups: Vec<(Setup, Greeting)>) -> Vec<Result<usize, Failure>> {
        let threads: Vec<_> = setups
            .into_iter()
            .map(|(setup, greeting)| {
                std::thread::spawn(move || {
                    let greeting = setup.greeting(greeting);
                    let cluster = setup.cluster.expect("a cluster");
                    Ok(cluster.connect(&greeting)?.iter().flatten().count())
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    }

    fn setups(loopback: &Loopback, count: usize) -> impl Fn(usize) -> Setup {
        let addresses = loopback.addresses(count);
        move |process| {
            let patience = Duration::from_secs(60);
            Setup { workers: 1, cluster: Some(Cluster { addresses: addresses.clone(), process, patience }) }
        }
    }

    #[test]
    fn processes_meet_if_all_of_them_are_to_do_the_same() {
        let loopback = Loopback::hold().expect("an address");
        let setup = setups(&loopback, 3);
        let greeting = || Greeting::new("check").with("the level", "SI");
        let met = meet((0..3).map(|process| (setup(process), greeting())).collect());
        assert_eq!(met, [Ok(2), Ok(2), Ok(2)]);
    }

    /// Each field that all have in common is compared, and the third process hears of a difference between two others, too.
    #[test]
    fn who_differs_is_named_on_all_sides() {
        let loopback = Loopback::hold().expect("an address");
        let setup = setups(&loopback, 3);
        let mut workers = setup(2);
        workers.workers = 4;
        let mut other = setup(2);
        if let Some(cluster) = &mut other.cluster {
            cluster.patience = Duration::from_secs(59);
        }
        let mut hosts = setup(2);
        if let Some(cluster) = &mut hosts.cluster {
            cluster.addresses.push("127.0.0.1:1".to_owned());
        }
        let cases = [
            (workers, Greeting::new("check"), Some("--workers is 4 for process 2 and 1 for process 0")),
            (
                setup(2),
                Greeting::new("watch"),
                Some("command is watch for process 2 and check for process 0"),
            ),
            (setup(2), Greeting::of_version("0.0.9"), Some("version is 0.0.9 for process 2 and ")),
            (
                setup(2),
                Greeting::new("check").with("--x", 1),
                Some("--x is 1 for process 2 and absent for process 0"),
            ),
            (hosts, Greeting::new("check"), Some("the list of hosts is ")),
            (other, Greeting::new("check"), None),
        ];
        for (third, greeting, expected) in cases {
            let others = [0, 1].map(|process| (setup(process), Greeting::new("check")));
            let met = meet(others.into_iter().chain([(third, greeting)]).collect());
            let Some(expected) = expected else {
                assert!(met.iter().all(Result::is_ok), "{met:?}");
                continue;
            };
            assert!(met.iter().all(|it| matches!(it, Err(Failure::Disagreement(_)))), "{expected}: {met:?}");
            let said = met[0].as_ref().expect_err("refused").to_string();
            assert!(said.contains(expected), "{expected}: {said}");
            assert!(said.starts_with("process 2 at 127."), "{said}");
        }
    }

    /// What is no process is not taken for one, and keeps nobody from meeting.
    #[test]
    fn strangers_do_no_harm() {
        let loopback = Loopback::hold().expect("an address");
        let setup = setups(&loopback, 2);
        let address: SocketAddr = loopback.addresses(1)[0].parse().expect("an address");
        let first = setup(0);
        let waiting = std::thread::spawn(move || meet(vec![(first, Greeting::new("check"))]));
        let bytes: [&[u8]; 4] =
            [b"GET / HTTP/1.1\r\n\r\n", b"taipan 1\xff\xff\xff\xff", b"taipan 1\0\0\0\x02{}", b""];
        let mut open = Vec::new();
        for bytes in bytes {
            let mut stream = (0..1000).find_map(|_| {
                std::thread::sleep(Duration::from_millis(10));
                TcpStream::connect(address).ok()
            });
            let stream = stream.as_mut().expect("process 0 listens");
            stream.write_all(bytes).expect("it reads");
            open.push(stream.try_clone().expect("a copy"));
        }
        assert_eq!(meet(vec![(setup(1), Greeting::new("check"))]), [Ok(1)]);
        assert_eq!(waiting.join().expect("no panic"), [Ok(1)]);
    }
}
