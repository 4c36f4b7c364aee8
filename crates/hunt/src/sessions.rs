//! Connections that are told what to send, one batch at a time.
//!
//! Where a statement may wait for another session each connection has a thread of its own; where it never does the
//! connection is used in place, which saves two switches of threads a batch (half the time of a case there).

use databases::{Console, Failure, Isolation, Value};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The rows of an answer.
pub type Rows = Vec<Vec<Value>>;

/// What a session is to do.
#[derive(Clone, Debug)]
pub(crate) enum Order {
    /// Begin a transaction.
    Begin(Isolation),
    /// Send these, up to the first that fails.
    Send(Vec<String>),
}

/// The answers to a batch, up to and with the first failure.
pub(crate) type Answers = Vec<Result<Rows, Failure>>;

/// A connection.
pub(crate) struct Session {
    id: i64,
    way: Way,
    /// Whether an answer is still to come.
    owes: bool,
}

enum Way {
    InPlace(Box<dyn Console>, Option<Answers>),
    Thread { orders: Option<Sender<Order>>, answers: Receiver<Answers>, thread: Option<JoinHandle<()>> },
}

impl Session {
    pub(crate) fn new(mut console: Box<dyn Console>, waits: bool) -> Self {
        let id = console.id();
        if !waits {
            return Self { id, way: Way::InPlace(console, None), owes: false };
        }
        let (orders, told) = channel::<Order>();
        let (answer, answers) = channel();
        let thread = thread::spawn(move || {
            while let Ok(order) = told.recv() {
                if answer.send(obey(&mut *console, &order)).is_err() {
                    break;
                }
            }
        });
        let way = Way::Thread { orders: Some(orders), answers, thread: Some(thread) };
        Self { id, way, owes: false }
    }

    /// Its name in the server's own lists.
    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// Sends an order; false if the session ended.
    pub(crate) fn tell(&mut self, order: Order) -> bool {
        self.owes = true;
        match &mut self.way {
            Way::InPlace(console, answers) => {
                *answers = Some(obey(&mut **console, &order));
                true
            }
            Way::Thread { orders, .. } => orders.as_ref().is_some_and(|orders| orders.send(order).is_ok()),
        }
    }

    /// Waits for the answers.
    pub(crate) fn hear(&mut self, patience: Duration) -> Result<Answers, RecvTimeoutError> {
        let heard = match &mut self.way {
            Way::InPlace(_, answers) => answers.take().ok_or(RecvTimeoutError::Timeout),
            Way::Thread { answers, .. } => answers.recv_timeout(patience),
        };
        self.owes = heard.is_err();
        heard
    }
}

impl Drop for Session {
    /// The connection closes with its thread. A thread whose server never answers is left to itself.
    fn drop(&mut self) {
        if let Way::Thread { orders, thread, .. } = &mut self.way {
            drop(orders.take());
            if let Some(thread) = thread.take().filter(|_| !self.owes) {
                let _ = thread.join();
            }
        }
    }
}

fn obey(console: &mut dyn Console, order: &Order) -> Answers {
    let mut answers = Vec::new();
    match order {
        Order::Begin(isolation) => answers.push(console.begin(isolation).map(|()| Vec::new())),
        Order::Send(statements) => {
            for sql in statements {
                answers.push(console.answer(sql));
                if answers.last().is_some_and(Result::is_err) {
                    break;
                }
            }
        }
    }
    answers
}
