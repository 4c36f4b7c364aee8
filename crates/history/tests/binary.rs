//! The binary form: parts, damage of every byte, and files made to do harm.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

mod random;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use random::{show, show_by_session};
use std::io;
use taipan_history::formats::{
    Format, Origin, Part, ReadError, ReadOptions, Target, binary, convert, jsonl, notation, read_bytes,
    read_path, read_stream, write_path, write_stream, write_string,
};
use taipan_history::{Builder, History, Span};

fn bytes_of(history: &History) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_stream(history, Format::Binary, &mut bytes).unwrap();
    bytes
}

fn load(bytes: &[u8]) -> Result<History, ReadError> {
    let options = ReadOptions { format: Some(Format::Binary), ..ReadOptions::default() };
    read_bytes("h.tph", bytes, &options).map(|loaded| loaded.history)
}

fn sample() -> History {
    notation::parse(
        "init: x=0 l=[1 {a:1}]\nlevel: serializable\n\
         1: [t7] w(x,\"text\") @1..2 @@3.1..4 | r(x,-5)^6..7 iter(a..m desc)=[b:3 end] ~read-committed\n\
         s2: q(a>=1 & not (b=_ or c!=1.5))=[x:2] u(value=2 -> [1 2])=1[x] dw(*) | d(y) a(l,7) ru(l)?\n",
    )
    .unwrap()
}

/// Uses everything a history offers: what was admitted must hold.
fn walk(history: &History) {
    let _ = (show(history), history.footprint(), history.keys().ranks());
    for session in history.sessions().ids() {
        assert!(history.of_session(session).iter().all(|&txn| history.transaction(txn).session() == session));
    }
    let _ = notation::to_string(history);
    // A column called `not` is the only thing that JSON lines cannot hold.
    if let Ok(json) = write_string(history, Format::Jsonl) {
        let options =
            ReadOptions { format: Some(Format::Jsonl), allow_empty: true, ..ReadOptions::default() };
        let back = read_bytes("h.jsonl", json.as_bytes(), &options);
        assert_eq!(show(&back.unwrap_or_else(|error| panic!("{error}")).history), show(history));
    }
    assert_eq!(show(&load(&bytes_of(history)).unwrap()), show(history));
}

/// Sets the checksum of every frame to what its payload asks for.
fn seal(bytes: &mut [u8]) {
    let mut at = 16;
    while let Some(len) = bytes.get(at + 8..at + 16) {
        let len = u64::from_le_bytes(len.try_into().unwrap());
        let Some(end) = usize::try_from(len).ok().and_then(|len| (at + 24).checked_add(len)) else { return };
        let Some(payload) = bytes.get(at + 24..end) else { return };
        let checksum = xxhash_rust::xxh3::xxh3_64(payload).to_le_bytes();
        bytes[at + 16..at + 24].copy_from_slice(&checksum);
        at = end;
    }
}

#[test]
fn a_file_that_is_cut_off_anywhere_is_refused() {
    let bytes = bytes_of(&sample());
    assert_eq!(show(&load(&bytes).unwrap()), show(&sample()));
    for len in 0..bytes.len() {
        assert!(load(&bytes[..len]).is_err(), "{len} of {} bytes", bytes.len());
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(load(&longer).unwrap_err().to_string().contains("goes on after its end"));
}

#[test]
fn a_damaged_byte_is_noticed() {
    let bytes = bytes_of(&sample());
    for place in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[place] ^= 0x10;
        assert!(load(&damaged).is_err(), "byte {place} of {}", bytes.len());
    }
}

#[test]
fn damage_with_a_good_checksum_never_does_harm() {
    let bytes = bytes_of(&sample());
    let mut admitted = 0;
    for place in 16..bytes.len() {
        for change in [0x01, 0x02, 0x10, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[place] ^= change;
            seal(&mut damaged);
            if let Ok(history) = load(&damaged) {
                admitted += 1;
                walk(&history);
            }
        }
    }
    assert!(admitted > 100, "some changes only change the content, but {admitted} were admitted");
}

#[test]
fn what_is_wrong_is_said() {
    let good = bytes_of(&sample());
    let check = |change: &dyn Fn(&mut Vec<u8>), wanted: &str| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let said = load(&bytes).unwrap_err().to_string();
        assert!(said.contains(wanted), "{said}");
    };
    check(&|bytes| bytes[8] = 9, "byte 8: version 9 of the binary form is not known");
    check(&|bytes| bytes[8] = 1, "byte 8: version 1 of the binary form is no longer read");
    check(&|bytes| bytes[40] ^= 1, "byte 16: the checksum does not fit: the frame is damaged");
    check(&|bytes| bytes.truncate(100), "byte 16: the frame holds");
    check(&|bytes| bytes[0] = b'x', "no frame of the binary form begins here");
    check(&|bytes| drop(bytes.drain(..16)), "the file does not start like the binary format");
    check(&|bytes| bytes.truncate(16), "the file is truncated");
    check(
        &|bytes| {
            // The end frame's count of transactions.
            let at = bytes.len() - 16;
            bytes[at] += 1;
            seal(bytes);
        },
        "the parts hold 4 transactions and 9 operations, the end says otherwise",
    );
}

/// The parts of a history, cut after every few transactions.
fn parts(history: &History, len: usize) -> Vec<History> {
    // As the first of several parts, so that the header says which initial keys are integers and which are strings.
    let mut json = Vec::new();
    jsonl::write(history, Part { last: false, ..Part::WHOLE }, &mut json).unwrap();
    let mut builder = Builder::new();
    let mut warnings = taipan_history::formats::Warnings::new(false);
    let mut parts = Vec::new();
    for line in json.split_inclusive(|&byte| byte == b'\n') {
        jsonl::read(line, &mut builder, &mut warnings).unwrap();
        if builder.len() >= len {
            parts.push(builder.take_part().unwrap());
        }
    }
    parts.push(builder.take_part().unwrap());
    parts
}

fn write_parts(parts: &[History], write: taipan_history::formats::Write) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut transactions_before, mut operations_before) = (0, 0);
    for (index, part) in parts.iter().enumerate() {
        let last = index + 1 == parts.len();
        let place = Part { index: index as u64, last, transactions_before, operations_before };
        write(part, place, &mut bytes).unwrap();
        transactions_before += part.len() as u64;
        operations_before += part.op_count() as u64;
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: Some(Box::new(FileFailurePersistence::Direct("proptest-regressions/binary.txt"))), ..ProptestConfig::default() })]

    #[test]
    fn parts_make_a_whole(history in random::history(), len in 1usize..4) {
        let parts = parts(&history, len);
        let whole: usize = parts.iter().map(History::len).sum();
        prop_assert_eq!(whole, history.len());
        let back = load(&write_parts(&parts, binary::write)).unwrap();
        prop_assert_eq!(show(&back), show(&history));
        let options = ReadOptions { format: Some(Format::Jsonl), allow_empty: true, ..ReadOptions::default() };
        let back = read_bytes("h.jsonl", &write_parts(&parts, jsonl::write), &options).unwrap().history;
        prop_assert_eq!(show(&back), show(&history));
    }

    #[test]
    fn parts_in_the_notation_make_a_whole(history in random::history(), len in 1usize..4) {
        let options = ReadOptions { format: Some(Format::Notation), allow_empty: true, ..ReadOptions::default() };
        let bytes = write_parts(&parts(&history, len), notation::write);
        let back = read_bytes("h.hist", &bytes, &options).unwrap().history;
        prop_assert_eq!(show_by_session(&back), show_by_session(&history));
    }

    #[test]
    fn random_damage_never_does_harm(
        history in random::history(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = bytes_of(&history);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        seal(&mut bytes);
        if let Ok(history) = load(&bytes) {
            walk(&history);
        }
    }
}

/// A stream that gives a little at a time.
struct Drops<'a>(&'a [u8]);

impl io::Read for Drops<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(1001);
        self.0.read(&mut into[..len])
    }
}

#[test]
fn large_columns_are_the_same_however_they_come() {
    let mut builder = Builder::new();
    for count in 0..20_000i64 {
        let session = builder.session((count % 7).into());
        builder.begin(session);
        for op in 0..3 {
            let key = builder.key(format!("key {}", count % 500 + op).as_str().into());
            let value = builder.text(&format!("{count} {op}"));
            builder.write(key, value);
            builder.set_op_at(Span { begin: count * 10 + op, end: count * 10 + op + 1 }).unwrap();
        }
        builder.set_client(Span { begin: count * 10, end: count * 10 + 9 }).unwrap();
        builder.end().unwrap();
    }
    let history = builder.finish().unwrap();
    let bytes = bytes_of(&history);
    assert!(bytes.len() > 2 << 20);
    let expected = show(&history);
    assert_eq!(show(&load(&bytes).unwrap()), expected);
    let streamed = read_stream("h.tph", Drops(&bytes), &ReadOptions::default()).unwrap();
    assert_eq!(show(&streamed.history), expected);
    let folder = tempfile::tempdir().unwrap();
    for name in ["h.tph", "h.tph.zst"] {
        let path = folder.path().join(name);
        write_path(&history, Format::Binary, &path).unwrap();
        let loaded = read_path(&path, &ReadOptions::default()).unwrap();
        assert_eq!(show(&loaded.history), expected, "{name}");
    }
}

/// One element of four gigabytes, of which a kilobyte comes: what was promised by nobody but the file is not believed.
#[cfg(target_os = "linux")]
#[test]
fn a_stream_that_lies_about_its_elements_costs_nothing() {
    let (operations, width) = (8u32, 0xffff_fff8u32);
    let list = [
        &1u32.to_le_bytes()[..],
        &[0; 4],
        &operations.to_le_bytes(),
        &width.to_le_bytes(),
        &1u64.to_le_bytes(),
    ];
    let list = list.concat();
    let mut bytes = bytes_of(&sample())[..16].to_vec();
    bytes.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend((list.len() as u64 + u64::from(width)).to_le_bytes());
    bytes.extend([0; 8]);
    bytes.extend(&list);
    bytes.extend([0; 1000]);
    let refused = load(&bytes).unwrap_err().to_string();
    assert!(refused.contains("truncated"), "{refused}");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 1 << 20, "{kilobytes} kB were in use");
}

#[test]
fn an_id_that_two_parts_share_is_refused() {
    let part = notation::parse("s1: [a] w(x,1)").unwrap();
    let bytes = write_parts(&[part.clone(), part], binary::write);
    assert!(load(&bytes).unwrap_err().to_string().contains("transaction id a is used twice"));
}

/// A history of several parts of the size that conversions make.
#[test]
fn a_conversion_in_parts_keeps_everything() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut builder = Builder::new();
    for count in 0..70_000i64 {
        let session = builder.session((count % 7).into());
        builder.begin(session);
        let key = builder.key(format!("k{}", count % 1000).as_str().into());
        for op in 0..10 {
            let value =
                if op == 0 { builder.text(&format!("v{count}")) } else { builder.int(count * 10 + op) };
            builder.write(key, value);
        }
        builder.end().unwrap();
    }
    let history = builder.finish().unwrap();
    taipan_history::formats::write_path(&history, Format::Jsonl, &path("a.jsonl")).unwrap();
    let steps =
        [("a.jsonl", "b.tph"), ("b.tph", "c.jsonl.gz"), ("c.jsonl.gz", "d.tph"), ("d.tph", "e.jsonl.zst")];
    for (from, to) in steps {
        let format = Format::from_file_name(to).unwrap();
        let (from, to) = (path(from), path(to));
        let done = convert(Origin::Path(&from), &ReadOptions::default(), Target::Path(&to), format).unwrap();
        assert_eq!((done.transactions, done.operations, done.parts), (70_000, 700_000, 3));
    }
    let back =
        taipan_history::formats::read_path(&path("e.jsonl.zst"), &ReadOptions::default()).unwrap().history;
    assert_eq!(write_string(&back, Format::Jsonl).unwrap(), write_string(&history, Format::Jsonl).unwrap());
    let unfinished = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(unfinished, 5, "a conversion leaves nothing but its output");
}
