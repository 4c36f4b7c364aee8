//! Files whose frames are larger than what a worker reads at once: several workers share a frame, and what is wrong lies
//! on both sides of where it is cut.

use super::{By, SER, SI, STRONG_SI, compare, drawn, job};
use history::formats::{Format, ReadOptions, Writing, read_path, stretches, write_path};
use history::{Builder, History, Lock};
use isolation::{Level, Rule};
use std::path::Path;
use taipan_cluster::{Failure, Setup, Share};

const TRANSACTIONS: i64 = 60_000;
const KEYS: i64 = 300;

/// Where two slices meet, if there are as many as workers of this test make of the frame.
fn borders(path: &Path, workers: u64) -> Vec<i64> {
    let cut = stretches(path, &ReadOptions::default(), (4 << 20) / workers).expect("it can be cut");
    let mut end = 0;
    let mut borders = Vec::new();
    for stretch in &cut {
        let counted = stretch.read(&ReadOptions::default(), |part| {
            end += part.len() as i64;
            true
        });
        counted.expect("it can be read");
        borders.push(end);
    }
    assert_eq!(borders.pop(), Some(TRANSACTIONS));
    borders
}

/// One transaction after the other: each reads what an earlier one left and writes the next value of the key. Those in
/// `wrong` see the value before that.
fn history(wrong: &[i64], names: impl Fn(i64) -> Option<String>) -> History {
    let mut builder = Builder::new();
    for number in 0..TRANSACTIONS {
        let session = builder.session((number / 3 % 5).into());
        builder.begin(session);
        if let Some(name) = names(number) {
            builder.set_id(name.as_str().into()).expect("no other has it");
        }
        let late = if wrong.contains(&number) { 2 * KEYS } else { KEYS };
        let key = builder.key((number % KEYS).into());
        let seen = if number >= late { builder.int(number - late) } else { history::ValueId::ABSENT };
        let value = builder.int(number);
        builder.read(key, seen, Lock::None);
        builder.write(key, value);
        builder.set_db((2 * number).into(), (2 * number + 1).into()).expect("in order");
        builder.end().expect("a transaction");
    }
    builder.finish().expect("a history")
}

#[test]
fn findings_on_both_sides_of_a_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.tph");
    write_path(&history(&[], |_| None), Format::Binary, &path).expect("written");
    let mut wrong = Vec::new();
    for workers in [2, 4] {
        let borders = borders(&path, workers);
        assert!(borders.len() + 1 >= workers as usize, "{workers} workers share the frame: {borders:?}");
        // Of one border the last before it, of the next one the first after it, of some both.
        for (place, border) in borders.into_iter().enumerate() {
            wrong.extend([border - 1, border].iter().skip(place % 3 % 2).take(1 + place % 3 / 2));
        }
    }
    assert!(wrong.len() > 4, "{wrong:?}");
    for (wrong, verdict) in [(&[][..], "accepted"), (&wrong[..1], "violated"), (&wrong[..], "violated")] {
        let history = history(wrong, |_| None);
        write_path(&history, Format::Binary, &path).expect("written");
        let drawn = drawn::History { seed: wrong.len() as u64, history };
        for level in [SI, STRONG_SI, SER] {
            assert_eq!(compare(&drawn, level, By::Timestamps, &path, &[1, 2, 4]), verdict, "{level}");
        }
        let causal = Level::new(Rule::Causal, true, false);
        compare(&drawn, causal, By::Results, &path, &[2]);
    }
}

#[test]
fn an_id_that_comes_again_after_a_cut_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.tph");
    // Two frames of one file, with names that the first has, too.
    let mut builder = Builder::new();
    let mut writing = Writing::create(&path).expect("a file");
    let mut place = history::formats::Part { last: false, ..history::formats::Part::WHOLE };
    for number in 0..2 * TRANSACTIONS {
        let session = builder.session(1.into());
        builder.begin(session);
        let id = if number == 2 * TRANSACTIONS - 7 { TRANSACTIONS / 2 + 3 } else { number };
        builder.set_id(format!("t{id}").as_str().into()).expect("within a frame it is the only one");
        let (key, value) = (builder.key((number % KEYS).into()), builder.int(number));
        builder.write(key, value);
        builder.set_db((2 * number).into(), (2 * number + 1).into()).expect("in order");
        builder.end().expect("a transaction");
        if (number + 1) % TRANSACTIONS == 0 {
            place.last = number + 1 == 2 * TRANSACTIONS;
            let part = builder.take_part().expect("a part");
            writing.part(&part, Format::Binary, place).expect("written");
            place.index += 1;
            place.transactions_before += part.len() as u64;
            place.operations_before += part.op_count() as u64;
        }
    }
    writing.finish().expect("a file");
    let alone = read_path(&path, &ReadOptions::default()).expect_err("an id comes twice").to_string();
    for workers in [1, 2, 4] {
        let job = job(Setup::threads(workers), vec![path.clone()], Share::All, SI, By::Timestamps);
        match taipan_cluster::check(job) {
            Err(Failure::Input(told)) => assert_eq!(told, alone, "{workers} workers"),
            other => panic!("{workers} workers: {other:?}"),
        }
    }
}

#[test]
fn names_are_those_of_the_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.tph");
    // Some have names, the others go by their place in their session, which began slices before.
    let named = |number: i64| (number % 4 == 0).then(|| format!("t{number}"));
    let history = history(&[TRANSACTIONS / 2, TRANSACTIONS / 2 + 1, TRANSACTIONS - 1], named);
    write_path(&history, Format::Binary, &path).expect("written");
    let drawn = drawn::History { seed: 0, history };
    assert_eq!(compare(&drawn, STRONG_SI, By::Timestamps, &path, &[1, 3]), "violated");
}
