//! Reading ends soon after somebody asks it to, whatever the format, and says how far it had come.
#![allow(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use taipan_history::Interrupt;
use taipan_history::formats::{ReadError, ReadOptions, read_path, read_stream};

/// Due when it is asked for the `count`th time, and ever after.
fn after(count: u32) -> Interrupt {
    let asked = Arc::new(AtomicU32::new(0));
    Interrupt::when(move |_| asked.fetch_add(1, Ordering::Relaxed) + 1 >= count)
}

fn options(interrupt: Interrupt, lenient: bool) -> ReadOptions {
    ReadOptions { interrupt, lenient, ..ReadOptions::default() }
}

#[test]
fn every_format_can_be_interrupted() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    for name in [
        "append.edn",
        "awdit.txt",
        "cobra",
        "completions.jsonl",
        "dbcop.hist",
        "dbcop.json",
        "history.bincode",
        "polysi.txt",
        "register.json",
        "timekiller-kv.json",
        "viper",
    ] {
        for lenient in [false, true] {
            let error = read_path(&data.join(name), &options(after(1), lenient)).unwrap_err();
            assert!(matches!(error, ReadError::Interrupted { .. }), "{name}: {error}");
        }
        assert!(read_path(&data.join(name), &options(Interrupt::never(), false)).is_ok(), "{name}");
    }
}

/// The same bytes again and again.
struct Endless(&'static [u8], usize);

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        for byte in buffer.iter_mut() {
            *byte = self.0[self.1];
            self.1 = (self.1 + 1) % self.0.len();
        }
        Ok(buffer.len())
    }
}

#[test]
fn a_stream_without_end_is_left() {
    let line = b"{\"session\":1,\"ops\":[{\"op\":\"write\",\"key\":1,\"value\":1}]}\n";
    let error = read_stream("h", Endless(line, 0), &options(after(100), false)).unwrap_err();
    let ReadError::Interrupted { bytes, transactions, operations, sessions, .. } = error else {
        panic!("{error}");
    };
    assert!(transactions > 1000 && operations == transactions && sessions == 1);
    assert!(bytes > 0 && bytes / line.len() as u64 <= transactions);
}

#[test]
fn nonsense_without_end_is_left_although_it_is_let_pass() {
    let first = b"{\"session\":1,\"ops\":[]}\n";
    let nonsense = first.chain(Endless(b"nonsense\n", 0));
    let error = read_stream("h.jsonl", nonsense, &options(after(10_000), true)).unwrap_err();
    assert!(matches!(error, ReadError::Interrupted { transactions: 1, .. }), "{error}");
}

/// Formats that are read as a whole are not even gathered to their end.
#[test]
fn a_whole_file_without_end_is_left() {
    let pieces: [(&[u8], &'static [u8]); 3] = [
        (b"[", b"{:type :ok, :f :txn, :value [[:append 1 1]], :process 0}\n"),
        (b"", b"r(1,2,3,4)\n"),
        (b"[", b"{\"type\":\"ok\",\"f\":\"txn\",\"value\":[[\"r\",1,[2]]],\"process\":0},\n"),
    ];
    for (first, rest) in pieces {
        let error = read_stream("h", first.chain(Endless(rest, 0)), &options(after(3), false)).unwrap_err();
        assert!(matches!(error, ReadError::Interrupted { .. }), "{error}");
    }
}

/// What the binary form will take at once is reported before it is taken.
#[test]
fn the_question_comes_with_what_lies_ahead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("h.tph");
    let mut builder = taipan_history::Builder::new();
    let session = builder.session(1.into());
    for count in 0..10_000 {
        builder.begin(session);
        let (key, value) = (builder.key(count.into()), builder.int(count));
        builder.write(key, value);
        builder.end().unwrap();
    }
    taipan_history::formats::write_path(
        &builder.finish().unwrap(),
        taipan_history::formats::Format::Binary,
        &path,
    )
    .unwrap();
    let len = std::fs::metadata(&path).unwrap().len();
    let error = read_path(&path, &options(Interrupt::when(move |ahead| ahead > len / 2), false)).unwrap_err();
    assert!(matches!(error, ReadError::Interrupted { transactions: 0, .. }), "{error}");
    assert!(read_path(&path, &options(Interrupt::when(move |ahead| ahead > len), false)).is_ok());
}
