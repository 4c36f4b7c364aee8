//! What `smt` writes, decided by z3 and compared with the exhaustive oracle on random tiny histories, at all six
//! levels.

mod cases;

use cases::{least, seeds, strong_levels};
use encodings::smt::{self, Unwritable};
use history::History;
use history::formats::notation;
use isolation::{Level, Options, Rule, Ryow, Verdict};
use oracle::oracle;
use oracle::tiny::Shape;
use std::io::Write;
use std::process::{Command, Stdio};

fn script(history: &History, level: Level, options: &Options) -> Option<String> {
    let mut text = Vec::new();
    match smt::write(history, level, options, &mut text) {
        Ok(()) => Some(String::from_utf8(text).expect("SMT-LIB is text")),
        Err(Unwritable::Beyond(_)) => None,
        Err(Unwritable::Open(why)) => panic!("nothing limits it: {why}"),
        Err(Unwritable::Io(error)) => panic!("a vector takes everything: {error}"),
    }
}

/// The answers of z3 to scripts, one after the other in one process; none if it is not there.
fn z3(scripts: &[String]) -> Option<Vec<String>> {
    if !corpus::needs("z3") {
        return None;
    }
    let process = Command::new("z3").arg("-in").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut process = process.expect("z3 can be started");
    let mut input = process.stdin.take().expect("it is piped");
    let text = scripts.join("(reset)\n");
    let feeding = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = process.wait_with_output().expect("z3 ends when its input does");
    feeding.join().expect("the thread only writes").expect("z3 reads to the end");
    let text = String::from_utf8(output.stdout).expect("z3 answers in text");
    Some(text.lines().map(str::to_owned).collect())
}

fn compare(shape: &Shape, normal: u64, options: &Options) {
    let (mut scripts, mut expected) = (Vec::new(), Vec::new());
    for seed in seeds(normal) {
        let history = shape.history(seed);
        for level in strong_levels() {
            let answer = match oracle(&history, level, options) {
                Ok(Verdict::Accepted(_)) => "sat",
                Ok(Verdict::Violated(_)) => "unsat",
                _ => continue,
            };
            if let Some(script) = script(&history, level, options) {
                scripts.push(script);
                expected.push((answer, seed, level));
            }
        }
    }
    let Some(answers) = z3(&scripts) else { return };
    assert_eq!(answers.len(), expected.len(), "z3 answers every question, and says nothing else");
    for (found, (answer, seed, level)) in answers.iter().zip(&expected) {
        let history = || notation::to_string(&shape.history(*seed));
        assert_eq!(found, answer, "seed {seed} at {level}\n{}", history());
    }
    for answer in ["sat", "unsat"] {
        let count = expected.iter().filter(|(expected, ..)| *expected == answer).count();
        assert!(count > least(normal as usize) / 5, "only {count} of {} are {answer}", expected.len());
    }
}

#[test]
fn registers_lists_and_duplicates() {
    let options = Options::default();
    compare(&Shape::registers(), 150, &options);
    compare(&Shape::lists(), 100, &options);
    compare(&Shape { unique_values: 0, unknown: 30, ..Shape::registers() }, 150, &options);
    compare(&Shape::ranges(), 60, &options);
}

#[test]
fn policies_and_skew() {
    let options = Options { ryow: Ryow::May, clock_skew: 8, ..Options::default() };
    compare(&Shape { clocks: 100, ..Shape::registers() }.with_ryow(Ryow::May), 60, &options);
}

#[test]
fn what_is_written_is_readable() {
    let history = notation::parse("s1: r(x,_) w(y,1)\ns2: r(y,_) w(x,1)\n").expect("the notation is right");
    let text = script(&history, Level::SERIALIZABLE, &Options::default()).expect("registers are covered");
    assert_eq!(
        text,
        "; Is there an order of the transactions that explains what clients saw, under serializable?\n\
         ; sat: yes. unsat: no.\n\
         (set-logic QF_IDL)\n\
         (declare-const t0 Int) ; \"s1:0\"\n\
         (declare-const t1 Int) ; \"s2:0\"\n\
         ; What every explanation has.\n\
         (assert (< t0 t1))\n\
         (assert (< t1 t0))\n\
         ; Questions, and what either answer brings.\n\
         ; What answers must hold together.\n\
         (check-sat)\n"
    );
    let thin_air = notation::parse("s1: r(x,7)\n").expect("the notation is right");
    let text = script(&thin_air, Level::SNAPSHOT_ISOLATION, &Options::default()).expect("it is covered");
    assert!(text.contains("(assert false)"), "{text}");
    let weak = Level::new(Rule::ReadCommitted, false, false);
    assert_eq!(script(&history, weak, &Options::default()), None);
}
