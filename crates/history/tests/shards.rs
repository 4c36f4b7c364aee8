//! Histories in shards and in stretches: nothing is lost, nothing is reported differently.

mod random;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use random::{show, show_by_session, text};
use std::path::Path;
use taipan_history::formats::{
    Format, ReadOptions, SplitBy, read_path, shards_of, split, stretches, write_path,
};
use taipan_history::{Builder, Copier, History, Lock, Name, Span, Status, Timestamp};

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

fn name() -> impl Strategy<Value = Name> {
    prop_oneof![(0i64..9).prop_map(Name::Int), any::<i64>().prop_map(Name::Int), text().prop_map(Name::Str)]
}

/// Something of each of a transaction: its session and id, its status and times, what it did.
type Drawn = (Name, Option<Name>, u8, (Option<i64>, Option<(i64, u32)>), Vec<(u8, Name, Name)>);

/// Histories of reads and writes of single keys, as files are that are cut within frames.
fn points() -> impl Strategy<Value = History> {
    let times = (prop::option::weighted(0.2, 0i64..99), prop::option::weighted(0.8, (0i64..99, 0u32..3)));
    let ops = prop::collection::vec((0u8..6, name(), name()), 0..5);
    let txn = (name(), prop::option::weighted(0.3, name()), 0u8..6, times, ops);
    let initial = prop::collection::vec((name(), name()), 0..3);
    let level = prop::option::weighted(0.3, Just("serializable"));
    (initial, level, prop::collection::vec(txn, 0..30)).prop_map(|(initial, level, txns)| {
        let mut builder = Builder::new();
        for (key, value) in &initial {
            let (key, value) = (builder.key(key.as_ref()), scalar(&mut builder, value));
            builder.initial(key, value);
        }
        level.into_iter().for_each(|level| builder.set_level(level));
        txns.iter().for_each(|txn| build(&mut builder, txn));
        builder.finish().expect("a history")
    })
}

fn scalar(builder: &mut Builder, value: &Name) -> taipan_history::ValueId {
    match value {
        Name::Int(0) => builder.float(0.5),
        Name::Int(1) => builder.list(&[]),
        Name::Int(2) => builder.boolean(true),
        Name::Int(3) => taipan_history::ValueId::ABSENT,
        Name::Int(number) => builder.int(*number),
        Name::Str(text) => builder.text(text),
    }
}

fn build(builder: &mut Builder, (session, id, status, (client, db), ops): &Drawn) {
    let session = builder.session(session.as_ref());
    builder.begin(session);
    // One that is taken is left out.
    let _ = id.as_ref().map(|id| builder.set_id(id.as_ref()));
    builder.set_status([Status::Committed, Status::Aborted, Status::Unknown][*status as usize % 3]);
    if let Some(begin) = *client {
        builder.set_client(Span { begin, end: begin + 5 }).expect("in order");
    }
    if let Some((physical, logical)) = *db {
        let start = Timestamp { physical, logical };
        builder.set_db(start, Timestamp { physical: physical + 1, ..start }).expect("in order");
    }
    for (kind, key, value) in ops {
        let (key, value) = (builder.key(key.as_ref()), scalar(builder, value));
        match kind {
            0 => builder.write(key, value),
            1 => builder.delete(key),
            2 => builder.append(key, value),
            3 => builder.read(key, taipan_history::ValueId::UNKNOWN, Lock::Share),
            _ => builder.read(key, value, Lock::None),
        };
    }
    let _ = builder.end();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/shards.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn shards_are_the_history(history in random::history(), shards in 1usize..5) {
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
    fn slices_are_the_frame(history in points(), len in 1u64..600) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("h.tph");
        write_path(&history, Format::Binary, &path).expect("written");
        let options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
        let cut = stretches(&path, &options, len).expect("it can be cut");
        let bytes = std::fs::metadata(&path).expect("a file").len();
        prop_assert!(cut.len() > 1 || history.len() < 2 || bytes <= 2 * len, "{bytes} bytes: {}", cut.len());
        let mut builder = Builder::new();
        for stretch in &cut {
            let copied = stretch.read(&options, |part| {
                let mut copier = Copier::new(&part);
                copier.header(&mut builder, |_| true);
                part.transactions().all(|txn| copier.transaction(txn.id(), None, &mut builder).is_ok())
            });
            prop_assert!(copied.is_ok(), "{copied:?}");
        }
        let again = builder.finish().expect("a history");
        prop_assert_eq!(show(&again), show(&history));
    }

    /// Somebody notices, whatever is damaged, and says what one reader says.
    #[test]
    fn a_damaged_frame_has_a_slice_that_is_refused(
        history in points(), place: prop::sample::Index, bits in 1u8..=255
    ) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("h.tph");
        write_path(&history, Format::Binary, &path).expect("written");
        let mut bytes = std::fs::read(&path).expect("a file");
        // Between the preamble and the frame at the end.
        let place = 16 + place.index(bytes.len() - 16 - 40);
        bytes[place] ^= bits;
        std::fs::write(&path, bytes).expect("written");
        let options = ReadOptions { allow_empty: true, ..ReadOptions::default() };
        let alone = read_path(&path, &options).expect_err("it is damaged").to_string();
        let refused: Vec<String> = match stretches(&path, &options, 200) {
            Err(error) => vec![error.to_string()],
            Ok(cut) => cut.iter().filter_map(|it| it.read(&options, |_| true).err()).map(|it| it.to_string()).collect(),
        };
        prop_assert!(refused.contains(&alone), "{alone}: {refused:?}");
    }

    #[test]
    fn a_copy_is_the_same(history in random::history()) {
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
    for (name, pieces) in [("h.jsonl", 2..1_000), ("h.jsonl.gz", 1..2), ("h.hist", 1..2), ("h.tph", 20..60)] {
        let path = folder.path().join(name);
        write_path(&history, Format::from_file_name(name).expect("a format"), &path).expect("written");
        let cut = stretches(&path, &options, 10_000).expect("it can be cut");
        assert!(pieces.contains(&cut.len()), "{name}: {}", cut.len());
        let mut operations = Vec::new();
        for stretch in &cut {
            stretch
                .read(&options, |part| {
                    operations.extend(part.transactions().flat_map(|txn| txn.ops()).map(|(_, deed)| {
                        let taipan_history::Operation::Write { value, .. } = deed else {
                            panic!("only writes")
                        };
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
