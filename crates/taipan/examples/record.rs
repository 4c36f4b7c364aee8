//! Records what concurrent clients of a store see, and checks it: an account that loses deposits.
//!
//! ```text
//! cargo run -p taipan --example record
//! ```
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use taipan::record::{Header, RecordError, Recorder, Request, Response, Status, Tracer};

const CLIENTS: i64 = 4;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let header = Header { initial: vec![("account".into(), 0.into())], ..Header::default() };
    let recorder = Recorder::in_memory(&header)?;
    let (account, all_have_read) = (AtomicI64::new(0), Barrier::new(CLIENTS as usize));
    std::thread::scope(|scope| {
        for client in 1..=CLIENTS {
            let (mut tracer, account, barrier) = (recorder.tracer(client.into()), &account, &all_have_read);
            scope.spawn(move || deposit(client, account, barrier, &mut tracer));
        }
    });
    let history = recorder.finish()?;
    let outcome = taipan::check(&history, &taipan::Claim::serializable(), &Default::default());
    println!("{}", outcome.explain(&history));
    assert_eq!(outcome.anomaly(), Some("lost-update"));
    Ok(())
}

/// One transaction: reads the balance and writes a higher one. Nothing keeps another client from doing so in between.
fn deposit(
    amount: i64,
    account: &AtomicI64,
    all_have_read: &Barrier,
    tracer: &mut Tracer,
) -> Result<(), RecordError> {
    tracer.begin();
    tracer.call(Request::read("account"));
    let balance = account.load(Ordering::SeqCst);
    tracer.answer(Response::Value(balance.into()));
    all_have_read.wait();
    tracer.call(Request::write("account", balance + amount));
    account.store(balance + amount, Ordering::SeqCst);
    tracer.answer(Response::Done);
    tracer.committing();
    tracer.end(Status::Committed)
}
