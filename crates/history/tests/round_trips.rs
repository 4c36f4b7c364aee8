//! Random histories over every operation come back from every native format, whole and in parts.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod random;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use random::{show, show_by_session};
use taipan_history::History;
use taipan_history::formats::{Format, ReadOptions, notation, read_bytes, write_stream};

fn through(history: &History, format: Format) -> History {
    let mut bytes = Vec::new();
    write_stream(history, format, &mut bytes).unwrap();
    let options = ReadOptions { format: Some(format), allow_empty: true, ..ReadOptions::default() };
    let loaded = read_bytes("memory", &bytes, &options);
    loaded.unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&bytes))).history
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/round_trips.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn json_lines(history in random::history()) {
        prop_assert_eq!(show(&through(&history, Format::Jsonl)), show(&history));
    }

    #[test]
    fn binary(history in random::history()) {
        prop_assert_eq!(show(&through(&history, Format::Binary)), show(&history));
    }

    #[test]
    fn the_notation(history in random::history()) {
        prop_assert_eq!(show_by_session(&through(&history, Format::Notation)), show_by_session(&history));
    }

    #[test]
    fn the_notation_without_notes_is_read_as_well(history in random::history()) {
        let text = notation::to_string(&history);
        let back = notation::parse(&text);
        prop_assert!(back.is_ok(), "{:?}\n{}", back, text);
        prop_assert_eq!(back.unwrap().op_count(), history.op_count());
    }
}
