//! Histories in shards and in stretches: nothing is lost, nothing is told differently.

#[expect(dead_code, reason = "other tests use the rest")]
mod random;

use history::formats::{Format, ReadOptions, SplitBy, read_path, shards_of, split, stretches, write_path};
use history::{Builder, Copier, History};
use proptest::prelude::*;
use random::{Extras, show_by_session};
use std::path::Path;

fn read(path: &Path) -> History {
    let options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
    read_path(path, &options).expect("a history").history
}

fn names(history: &History) -> Vec<String> {
    // A session called "1" beside a session 1 is told apart by quotes.
    let plain = |name: String| name.replace('"', "");
    let mut names: Vec<String> = history.transactions().map(|txn| plain(txn.name().to_string())).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn shards_are_the_history(history in random::history(Extras::Some), shards in 1usize..5) {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = folder.path().join("whole.tph");
        write_path(&history, Format::Binary, &whole).expect("written");
        let options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
        for by in [SplitBy::Session, SplitBy::Time] {
            let out = folder.path().join(format!("{by:?}"));
            let counts = split(&whole, &options, &out, shards, by, Format::Binary).expect("split");
            prop_assert_eq!(counts.iter().sum::<u64>(), history.len() as u64);
            prop_assert_eq!(shards_of(&out).expect("a folder").len(), shards);
            let again = read(&out);
            prop_assert_eq!(names(&again), names(&history));
            prop_assert_eq!(again.op_count(), history.op_count());
            if by == SplitBy::Session {
                prop_assert_eq!(show_by_session(&again), show_by_session(&history));
            }
        }
    }

    #[test]
    fn a_copy_is_the_same(history in random::history(Extras::Some)) {
        let mut builder = Builder::new();
        let mut copier = Copier::new(&history);
        copier.header(&mut builder, |_| true);
        for txn in history.transactions() {
            copier.transaction(txn.id(), None, &mut builder).expect("it was a transaction");
        }
        let copy = builder.finish().expect("a history");
        prop_assert_eq!(random::show(&copy), random::show(&history));
    }
}

/// Many small transactions in files that are cut.
#[test]
fn stretches_are_the_file() {
    let mut builder = Builder::new();
    for number in 0..5_000i64 {
        let session = builder.session((number % 7).into());
        builder.begin(session);
        let key = builder.key((number % 100).into());
        let value = builder.int(number);
        builder.write(key, value);
        builder.end().expect("a transaction");
    }
    let history = builder.finish().expect("a history");
    let folder = tempfile::tempdir().expect("a folder");
    let options = ReadOptions::default();
    for (name, pieces) in [("h.jsonl", 2..1_000), ("h.jsonl.gz", 1..2), ("h.hist", 1..2), ("h.tph", 1..2)] {
        let path = folder.path().join(name);
        write_path(&history, Format::from_file_name(name).expect("a format"), &path).expect("written");
        let cut = stretches(&path, &options, 10_000).expect("it can be cut");
        assert!(pieces.contains(&cut.len()), "{name}: {}", cut.len());
        let mut operations = Vec::new();
        for stretch in &cut {
            stretch
                .read(&options, |part| {
                    operations.extend(part.transactions().flat_map(|txn| txn.ops()).map(|(_, deed)| {
                        let history::Operation::Write { value, .. } = deed else { panic!("only writes") };
                        value.as_inline()
                    }));
                    true
                })
                .expect("it can be read");
        }
        operations.sort_unstable();
        assert!(operations.into_iter().eq((0..5_000).map(Some)), "{name}");
    }
}
