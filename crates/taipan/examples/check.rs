//! Checks a history at an isolation level and prints why it is violated.
//!
//! ```text
//! cargo run -p taipan --example check -- history.jsonl snapshot-isolation
//! ```
#![expect(clippy::print_stdout, reason = "an example shows its results")]

use std::process::ExitCode;
use taipan::{Claim, Level, VerdictKind};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: check FILE [LEVEL]")?;
    let claim = match arguments.next() {
        Some(level) => Claim::new(level.parse::<Level>()?),
        None => Claim::serializable(),
    };
    let history = taipan::read(file)?;
    let outcome = taipan::check(&history, &claim, &Default::default());
    println!("{}", outcome.explain(&history));
    if let Some(smallest) = outcome.smallest(&history) {
        println!("{} of {} transactions already show it", smallest.len(), history.len());
    }
    Ok(ExitCode::from(match outcome.kind() {
        VerdictKind::Accepted => 0,
        VerdictKind::Violated => 1,
        VerdictKind::Undecided => 2,
    }))
}
