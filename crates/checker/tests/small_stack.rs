//! Long chains at every level on a thread with little stack: nothing recurses over a history.

use certify::{Certificate, certify};
use evidence::{add_proof, check, check_sharing, inventory, reduce};
use history::History;
use history::formats::notation;
use isolation::Verdict;
use isolation::{Budget, Level, Options, Strategy, Undecided, coverage};
use oracle::tiny::Random;
use search::LookedAt;
use std::fmt::Write as _;
use std::time::Duration;

/// An eighth of what a thread of the standard library gets.
const STACK: usize = 256 << 10;
/// Longer than the frames of any function that calls itself once per transaction fit on that stack.
const LENGTH: usize = 3_000;

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(work).expect("a thread starts");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn parse(text: &str) -> History {
    notation::parse(text).expect("the notation is right")
}

/// Each transaction reads what the one before it wrote; all but the last two are of unknown outcome, or not.
fn chain(unknown: bool, is_violated: bool) -> String {
    let mark = if unknown { "?" } else { "" };
    let mut text = format!("s0: w(k0,1){mark}\n");
    for i in 1..LENGTH {
        let last = if i == LENGTH - 1 { " w(z,1)" } else { "" };
        let _ = writeln!(text, "s{i}: r(k{},{i}) w(k{i},{}){last}{mark}", i - 1, i + 1);
    }
    text.push_str("R: r(z,1) w(m,1)\n");
    if is_violated {
        text.push_str("C: r(m,1) w(k0,7) w(z,1)\nD: r(m,1) r(k1,_)\n");
    }
    text
}

/// One session, each transaction overwriting what it read; or all values the same, so that every read is ambiguous.
fn counter(same: bool) -> String {
    let value = |i: usize| if same { i % 2 } else { i };
    let mut text = "a: w(x,0)".to_owned();
    for i in 1..LENGTH {
        let _ = write!(text, " | r(x,{}) w(x,{})", value(i - 1), value(i));
    }
    text.push('\n');
    text
}

/// One list that grows, with a read of all of it at the end.
fn list() -> String {
    let mut text = String::from("w: ");
    for i in 0..LENGTH / 4 {
        let _ = write!(text, "a(l,{i}){} | ", if i % 7 == 0 { "?" } else { "" });
    }
    text.push_str("w(q,1)\nr: r(l,[");
    for i in 0..LENGTH / 4 {
        let _ = write!(text, "{i} ");
    }
    text.push_str("])\n");
    text
}

/// Predicate writes whose keys were not reported, one after the other.
fn updates() -> String {
    let mut text = "a: w(x,0)\n".to_owned();
    for i in 1..LENGTH / 40 {
        let _ = writeln!(text, "s{i}: u(value={} -> {i})", i - 1);
    }
    text
}

/// A cycle through all transactions.
fn ring() -> String {
    let mut text = String::new();
    for i in 0..LENGTH {
        let _ = writeln!(text, "s{i}: r(k{},1) w(k{i},1)", (i + LENGTH - 1) % LENGTH);
    }
    text
}

/// A budget that is enough to walk along a chain: what comes after is not what is tested.
fn options() -> Options {
    let budget = Budget::unlimited().with_steps(20_000, Undecided::Timeout);
    let budget = budget.with_timeout(Duration::from_millis(250));
    Options { budget, threads: 2, ..Options::default() }
}

fn at_every_level(text: String) {
    on_a_small_stack(move || {
        let history = parse(&text);
        let shared = LookedAt::default();
        for level in Level::all() {
            let _ = check_sharing(&history, level, &options(), &shared);
        }
        let _ = coverage(&history);
    });
}

#[test]
fn chains_of_unknown_outcome() {
    at_every_level(chain(true, false));
    at_every_level(chain(true, true));
}

#[test]
fn chains_that_committed() {
    at_every_level(chain(false, false));
    at_every_level(chain(false, true));
}

#[test]
fn counters() {
    at_every_level(counter(false));
    at_every_level(counter(true));
}

#[test]
fn lists() {
    at_every_level(list());
}

#[test]
fn predicate_writes() {
    at_every_level(updates());
}

#[test]
fn evidence_about_a_long_cycle() {
    on_a_small_stack(|| {
        let history = parse(&ring());
        for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION] {
            for strategy in Strategy::ALL {
                let options = Options { strategy, ..options() };
                let verdict = check(&history, level, &options).verdict;
                let Verdict::Violated(evidence) = &verdict else { continue };
                let mut certificate = Certificate::new("ring", &history, level, &options, &verdict);
                add_proof(&mut certificate, &history, &options);
                let _ = certify(&history, &certificate, &options.budget);
                let lazily = Options { strategy: Strategy::Lazy, ..options };
                let _ = inventory(&history, level, &lazily);
                let _ =
                    reduce(&history, level, &lazily, evidence, |part| check(part, level, &lazily).verdict);
            }
        }
    });
}

#[test]
fn timestamps_of_a_long_chain() {
    on_a_small_stack(|| {
        let mut text = String::new();
        let mut random = Random::new(1);
        for i in 0..LENGTH {
            let (start, commit) = (2 * i, 2 * i + 1 + 4 * random.below(3));
            let status = if i % 5 == 0 { r#","status":"unknown""# } else { "" };
            let _ = writeln!(
                text,
                r#"{{"session":{i},"db":{{"start":{start},"commit":{commit}}}{status},"ops":[{{"op":"read","key":"x","value":{}}},{{"op":"write","key":"x","value":{}}}]}}"#,
                i,
                i + 1
            );
        }
        let text = format!("{{\"history\":1,\"initial\":{{\"x\":0}}}}\n{text}");
        let read = history::formats::read_bytes("h.jsonl", text.as_bytes(), &Default::default());
        let history = read.expect("the lines are right").history;
        for level in [Level::SERIALIZABLE, Level::SNAPSHOT_ISOLATION] {
            let _ = replay::judge(&history, level, &options());
        }
    });
}
