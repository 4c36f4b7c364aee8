//! The lines that transactions stand on.

use std::fmt::Write;
use std::path::PathBuf;
use taipan_history::formats::{Format, ReadOptions, read_path, transaction_lines};

fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).expect("a file");
    path
}

#[test]
fn lines_are_those_of_the_file() {
    let jsonl = "{\"history\":1,\"initial\":{\"x\":0}}\n\
                 {\"session\":1,\"ops\":[]}\n\n\
                 {\"session\":2,\"ops\":[]}\n\
                 {\"session\":1,\"ops\":[]}";
    let notation = "# what happened\ninit: x=0\n\ns1: w(x,1) | r(x,1)\ns2: r(x,0)\n";
    let strict = ReadOptions::default();
    for (name, text, expected) in
        [("lines.jsonl", jsonl, vec![2, 4, 5]), ("lines.hist", notation, vec![4, 4, 5])]
    {
        let path = file(name, text);
        let all: Vec<usize> = (0..expected.len()).collect();
        assert_eq!(transaction_lines(&path, &strict, &all).expect("it reads"), Some(expected.clone()));
        // In any order, and some more than once.
        let asked = [2, 0, 2];
        let those: Vec<u64> = asked.iter().map(|&place| expected[place]).collect();
        assert_eq!(transaction_lines(&path, &strict, &asked).expect("it reads"), Some(those));
        assert_eq!(transaction_lines(&path, &strict, &[3]).expect("it reads"), None, "there are three");
    }
}

#[test]
fn lines_that_were_left_out_count_as_lines() {
    let path = file("left-out.jsonl", "{\"session\":1,\"ops\":[]}\nnothing\n{\"session\":1,\"ops\":[]}\n");
    let lenient = ReadOptions { lenient: true, format: Some(Format::Jsonl), ..ReadOptions::default() };
    assert_eq!(read_path(&path, &lenient).expect("it reads").history.len(), 2);
    assert_eq!(transaction_lines(&path, &lenient, &[0, 1]).expect("it reads"), Some(vec![1, 3]));
}

#[test]
fn places_are_found_in_files_of_several_parts() {
    let mut text = String::new();
    let count = (1 << 18) + 1_000;
    for number in 0..count {
        writeln!(text, "{{\"session\":{},\"ops\":[]}}", number % 3).expect("text");
    }
    let path = file("several-parts.jsonl", &text);
    let last = count - 1;
    let lines = transaction_lines(&path, &ReadOptions::default(), &[last, 7]).expect("it reads");
    assert_eq!(lines, Some(vec![count as u64, 8]));
}

#[test]
fn formats_without_lines_have_none() {
    let path = file("no-lines.json", "[]");
    let options = ReadOptions { format: Some(Format::ElleJson), ..ReadOptions::default() };
    assert_eq!(transaction_lines(&path, &options, &[0]).expect("it opens"), None);
}
