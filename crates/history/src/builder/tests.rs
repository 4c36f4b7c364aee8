//! Tables that are full: a builder refuses what does not fit, and what it does not refuse is as without a limit.

use super::Builder;
use crate::formats::{FrameBytes, FrameError, Part, Warnings, binary, jsonl};
use crate::{BuildError, History};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

impl Builder {
    /// A builder whose tables hold that many entries, and that long ones.
    fn limited(most: usize) -> Self {
        let mut builder = Self::default();
        builder.limit(most);
        builder
    }

    fn limit(&mut self, most: usize) {
        let interned = &mut self.interned;
        let rooms = [
            &mut self.room,
            &mut interned.keys.room,
            &mut interned.sessions.room,
            &mut interned.ids.room,
            &mut interned.values.room,
            &mut interned.values.columns.room,
        ];
        rooms.into_iter().for_each(|room| room.limit(most));
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..12i64).prop_map(|name| name.to_string()),
        (-3..3i64).prop_map(|name| (name << 40).to_string()),
        "[a-c]{1,9}".prop_map(|name| format!("\"{name}\"")),
    ]
}

fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        name(),
        Just("0.5".to_owned()),
        prop::collection::vec(name(), 0..5).prop_map(|elements| format!("[{}]", elements.join(","))),
        ("[a-d]", name()).prop_map(|(column, value)| format!("{{\"{column}\":{value}}}")),
    ]
}

fn operation() -> impl Strategy<Value = String> {
    let rows = prop::collection::vec((name(), name()), 0..4).prop_map(|rows| {
        let rows: Vec<String> = rows.iter().map(|(key, value)| format!("[{key},{value}]")).collect();
        rows.join(",")
    });
    prop_oneof![
        (name(), value())
            .prop_map(|(key, value)| format!("{{\"op\":\"read\",\"key\":{key},\"value\":{value}}}")),
        (name(), value(), any::<bool>()).prop_map(|(key, value, has_clock)| {
            let clock = if has_clock { ",\"at\":{\"begin\":1,\"end\":2},\"note\":\"mine\"" } else { "" };
            format!("{{\"op\":\"write\",\"key\":{key},\"value\":{value}{clock}}}")
        }),
        rows.prop_map(|rows| format!("{{\"op\":\"scan\",\"rows\":[{rows}]}}")),
        (name(), prop::collection::vec(name(), 0..4)).prop_map(|(constant, keys)| {
            let keys = keys.join(",");
            format!(
                "{{\"op\":\"update\",\"where\":{{\"c\":{constant}}},\"set\":{{\"c\":1}},\"keys\":[{keys}]}}"
            )
        }),
    ]
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let id = prop::option::of(name());
    let line = (name(), id, prop::collection::vec(operation(), 0..5)).prop_map(|(session, id, ops)| {
        let id = id.map_or(String::new(), |id| format!("\"id\":{id},"));
        format!("{{\"session\":{session},{id}\"ops\":[{}],\"more\":true}}\n", ops.join(","))
    });
    prop::collection::vec(line, 1..12)
}

/// Reads lines until one is refused; gives what it said.
fn read(lines: &[String], builder: &mut Builder) -> Option<String> {
    let mut warnings = Warnings::new(true);
    lines
        .iter()
        .find_map(|line| jsonl::read(line.as_bytes(), builder, &mut warnings).err().map(|it| it.problem))
}

fn text(history: &History) -> Vec<u8> {
    let mut out = Vec::new();
    jsonl::write(history, Part::WHOLE, &mut out).expect("memory");
    out
}

fn is_full(problem: &str) -> bool {
    problem.contains("than 32-bit numbers can count")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/builder.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn what_fits_is_as_without_a_limit(lines in lines(), most in 1..24usize) {
        let mut limited = Builder::limited(most);
        let refused = read(&lines, &mut limited);
        let mut free = Builder::new();
        let expected = read(&lines, &mut free);
        match limited.finish() {
            Ok(history) => {
                prop_assert_eq!(refused, expected);
                prop_assert_eq!(text(&history), text(&free.finish().expect("a history")));
            }
            Err(error) => {
                prop_assert!(matches!(error, BuildError::TooMany(_)));
                prop_assert!(refused.is_none_or(|problem| is_full(&problem)));
            }
        }
    }

    #[test]
    fn parts_that_fit_are_as_without_a_limit(a in lines(), b in lines(), most in 1..40usize) {
        let frame = |lines: &[String], part: Part| {
            let mut builder = Builder::new();
            let refused = read(lines, &mut builder);
            let history = builder.finish().ok().filter(|_| refused.is_none())?;
            let mut bytes = Vec::new();
            binary::write(&history, part, &mut bytes).expect("memory");
            Some(bytes)
        };
        let part = |index| Part { index, last: false, transactions_before: 0, operations_before: 0 };
        let (Some(a), Some(b)) = (frame(&a, part(0)), frame(&b, part(1))) else { return Ok(()) };
        let append = |most: Option<usize>| {
            let mut builder = Builder::new();
            for frame in [&a[16..], &b] {
                // The first part brings tables of its own.
                most.into_iter().for_each(|most| builder.limit(most));
                let len = frame.len() as u64;
                match binary::read(&mut FrameBytes::new(&mut &*frame, len, len), &mut builder) {
                    Ok(_) => {}
                    Err(FrameError::Fault(fault)) => return Err(fault.problem),
                    Err(FrameError::Broken(error)) => panic!("{error}"),
                }
            }
            builder.finish().map(|history| text(&history)).map_err(|error| error.to_string())
        };
        match (append(Some(most)), append(None)) {
            (Ok(limited), Ok(free)) => prop_assert_eq!(limited, free),
            (Err(limited), free) => prop_assert!(is_full(&limited) || free == Err(limited)),
            (Ok(_), Err(free)) => prop_assert!(false, "accepted, but {}", free),
        }
    }
}
