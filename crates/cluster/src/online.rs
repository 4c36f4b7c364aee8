//! The online checker's workers as a dataflow.
//!
//! **What.** [`hire`] starts the workers of this process, and calls the other processes, which [`serve`]. Whoever hired them
//! sends messages and gets answers ([`replay::online::Workers`]); each worker has a [`Shard`] of the keys.
//!
//! ```text
//!   messages of one sending, at one logical time            answers
//!   worker 0 ── exchange by worker ──> Follow  ── exchange to worker 0 ──> Tell ──> whoever hired them
//! ```
//!
//! **Order.** Sendings are logical times. A worker follows a message when the frontier says that nothing earlier is under
//! way, so in the order of sending; and the answers to a message are reported when the frontier says that nobody has one any
//! more. The watermark is in the messages: it passes everywhere at the same logical time.
//!
//! **Faults.** A worker that stumbles says so to all in its process, who stop; whoever waits for answers gets [`Gone`]. A
//! process that vanishes is noticed by the others' connections ([`crate::Cluster::watch`]). Nobody waits for ever, and nothing is
//! told that the missing one had a part in.

use crate::greeting::Greeting;
use crate::setup::{Failure, Setup, said};
use replay::online::{Cold, Shard, Workers};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::Duration;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::{Capability, Operator, Probe};
use timely::dataflow::{InputHandle, ProbeHandle};
use timely::worker::Worker;

/// A worker, and bytes for it or from it.
type Parcel = (u64, Vec<u8>);
type Parcels = CapacityContainerBuilder<Vec<Parcel>>;

/// How long anybody sleeps who has nothing to do; whoever has something for him wakes him before.
const NAP: Duration = Duration::from_millis(50);

/// A worker is gone, and with it the keys it had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone(String);

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Gone {}

impl Gone {
    /// Whether this is why something failed.
    pub fn is_behind(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// The cold store of a worker of this process, by its number.
type ColdOf = dyn Fn(usize) -> Option<Box<dyn Cold>> + Send + Sync;

/// What the workers of this process share.
struct Common {
    /// Who stumbled first, and over what.
    stumbled: OnceLock<String>,
    cold: Box<ColdOf>,
}

/// The ends of the channels that worker 0 holds.
struct Ends {
    messages: Receiver<Vec<Vec<u8>>>,
    answers: Sender<Vec<Vec<u8>>>,
    ready: Sender<(Thread, usize)>,
}

/// Workers that were hired. They stop when this is dropped.
pub struct Hands {
    messages: Option<Sender<Vec<Vec<u8>>>>,
    answers: Receiver<Vec<Vec<u8>>>,
    first: Thread,
    count: usize,
    common: Arc<Common>,
    dataflow: Option<JoinHandle<Result<(), Failure>>>,
}

impl fmt::Debug for Hands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hands").field("count", &self.count).finish_non_exhaustive()
    }
}

/// Starts the workers of this process, which is the first, and waits for the others.
pub fn hire(
    setup: &Setup,
    cold: impl Fn(usize) -> Option<Box<dyn Cold>> + Send + Sync + 'static,
) -> io::Result<Hands> {
    let (messages, to_follow) = channel();
    let (told, answers) = channel();
    let (ready, is_ready) = channel();
    let ends = Mutex::new(Some(Ends { messages: to_follow, answers: told, ready }));
    let common = Arc::new(Common { stumbled: OnceLock::new(), cold: Box::new(cold) });
    let (setup, shared) = (setup.clone(), Arc::clone(&common));
    let dataflow = std::thread::Builder::new().name("dataflow".to_owned()).spawn(move || {
        setup.run(Greeting::new("watch"), move |worker| {
            let ends = match worker.index() {
                0 => ends.lock().unwrap_or_else(PoisonError::into_inner).take(),
                _ => None,
            };
            work(worker, ends, &shared);
        })
    })?;
    match is_ready.recv() {
        Ok((first, count)) => {
            let messages = Some(messages);
            Ok(Hands { messages, answers, first, count, common, dataflow: Some(dataflow) })
        }
        Err(_) => Err(match dataflow.join() {
            // That is no worker that is gone: the command is wrong.
            Ok(Err(Failure::Disagreement(why))) => io::Error::new(io::ErrorKind::InvalidInput, why),
            Ok(Err(failure)) => gone(failure.to_string()),
            _ => gone("the workers did not start".to_owned()),
        }),
    }
}

/// Lets the workers of this process work for the first one, until that one has no more work.
pub fn serve(setup: &Setup) -> Result<(), Failure> {
    let common = Arc::new(Common { stumbled: OnceLock::new(), cold: Box::new(|_| None) });
    let shared = Arc::clone(&common);
    setup.run(Greeting::new("watch"), move |worker| work(worker, None, &shared))?;
    match common.stumbled.get() {
        Some(why) => Err(Failure::Worker(why.clone())),
        None => Ok(()),
    }
}

fn gone(why: String) -> io::Error {
    io::Error::other(Gone(why))
}

impl Hands {
    fn why(&self) -> io::Error {
        gone(self.common.stumbled.get().cloned().unwrap_or_else(|| "lost all workers".to_owned()))
    }
}

impl Workers for Hands {
    fn count(&self) -> usize {
        self.count
    }

    fn send(&mut self, messages: Vec<Vec<u8>>) -> io::Result<()> {
        let is_sent = self.messages.as_ref().is_some_and(|sender| sender.send(messages).is_ok());
        self.first.unpark();
        if is_sent { Ok(()) } else { Err(self.why()) }
    }

    fn answers(&mut self, wait: bool) -> io::Result<Option<Vec<Vec<u8>>>> {
        loop {
            // What was answered before somebody stumbled is right all the same.
            match self.answers.try_recv() {
                Ok(answers) => return Ok(Some(answers)),
                Err(TryRecvError::Disconnected) => return Err(self.why()),
                Err(TryRecvError::Empty) if self.common.stumbled.get().is_some() => return Err(self.why()),
                Err(TryRecvError::Empty) if !wait => return Ok(None),
                Err(TryRecvError::Empty) => {}
            }
            match self.answers.recv_timeout(NAP) {
                Ok(answers) => return Ok(Some(answers)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(self.why()),
            }
        }
    }
}

impl Drop for Hands {
    fn drop(&mut self) {
        self.messages = None;
        self.first.unpark();
        // Those who stumbled may have left others waiting for them in other processes.
        if self.common.stumbled.get().is_none()
            && let Some(dataflow) = self.dataflow.take()
        {
            let _ = dataflow.join();
        }
    }
}

/// Messages of later times than those that may still come.
struct Waiting<T>(BTreeMap<u64, T>);

impl<T> Waiting<T> {
    /// The earliest, if nothing earlier can come, nor anything of its own time.
    fn next(&mut self, frontier: Option<u64>) -> Option<(u64, T)> {
        let &first = self.0.first_key_value()?.0;
        match frontier {
            Some(frontier) if first >= frontier => None,
            _ => self.0.pop_first(),
        }
    }
}

fn work(worker: &mut Worker, ends: Option<Ends>, common: &Arc<Common>) {
    let (index, count) = (worker.index(), worker.peers());
    let mut input = InputHandle::<u64, Parcels>::new_with_builder();
    let probe = ProbeHandle::new();
    let (messages, answers) = match ends {
        Some(Ends { messages, answers, ready }) => {
            let _ = ready.send((std::thread::current(), count));
            (Some(messages), Some(answers))
        }
        None => (None, None),
    };
    let shared = Arc::clone(common);
    worker.dataflow::<u64, _, _>(|scope| {
        input
            .to_stream(scope)
            .unary_frontier::<Parcels, _, _, _>(
                Exchange::new(|parcel: &Parcel| parcel.0),
                "Follow",
                |_, _| {
                    let mut shard = Shard::new(index, count, (shared.cold)(index));
                    let mut waiting: Waiting<(Capability<u64>, Vec<u8>)> = Waiting(BTreeMap::new());
                    move |(input, frontier), output| {
                        input.for_each_time(|time, containers| {
                            for (_, message) in containers.flat_map(|container| container.drain(..)) {
                                waiting.0.insert(*time.time(), (time.retain(0), message));
                            }
                        });
                        let frontier = frontier.frontier().first().copied();
                        while let Some((_, (time, message))) = waiting.next(frontier) {
                            if shared.stumbled.get().is_some() {
                                return;
                            }
                            match catch_unwind(AssertUnwindSafe(|| shard.take(&message))) {
                                Ok(answer) => output.session(&time).give((index as u64, answer)),
                                Err(panic) => {
                                    let why = format!("lost worker {index}: {}", said(&*panic));
                                    let _ = shared.stumbled.set(why);
                                }
                            }
                        }
                    }
                },
            )
            .unary_frontier::<CapacityContainerBuilder<Vec<()>>, _, _, _>(
                Exchange::new(|_: &Parcel| 0),
                "Tell",
                |_, _| {
                    let mut waiting: Waiting<Vec<Vec<u8>>> = Waiting(BTreeMap::new());
                    move |(input, frontier), _| {
                        input.for_each_time(|time, containers| {
                            let all =
                                waiting.0.entry(*time.time()).or_insert_with(|| vec![Vec::new(); count]);
                            for (from, answer) in containers.flat_map(|container| container.drain(..)) {
                                all[from as usize % count] = answer;
                            }
                        });
                        let frontier = frontier.frontier().first().copied();
                        while let Some((_, all)) = waiting.next(frontier) {
                            if let Some(answers) = &answers {
                                // Whoever does not listen any more needs no answer.
                                let _ = answers.send(all);
                            }
                        }
                    }
                },
            )
            .probe_with(&probe);
    });
    let mut input = Some(input);
    let mut messages = messages;
    if messages.is_none() {
        input = None;
    }
    while !probe.done() {
        if common.stumbled.get().is_some() {
            drop(input);
            for dataflow in worker.installed_dataflows() {
                worker.drop_dataflow(dataflow);
            }
            return;
        }
        let is_over = send(messages.as_ref(), input.as_mut());
        if is_over {
            (messages, input) = (None, None);
        }
        worker.step_or_park(Some(NAP));
    }
}

/// Sends what came to the workers, each sending at its own time. Whether nothing more will come.
fn send(messages: Option<&Receiver<Vec<Vec<u8>>>>, input: Option<&mut InputHandle<u64, Parcels>>) -> bool {
    let (Some(messages), Some(input)) = (messages, input) else { return true };
    loop {
        match messages.try_recv() {
            Ok(all) => {
                for (to, message) in (0..).zip(all).filter(|(_, message)| !message.is_empty()) {
                    input.send((to, message));
                }
                let next = *input.time() + 1;
                input.advance_to(next);
            }
            Err(TryRecvError::Empty) => return false,
            Err(TryRecvError::Disconnected) => return true,
        }
    }
}
