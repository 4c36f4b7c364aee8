//! Files that are read in parts: an id that comes twice is refused, however far apart, as when they are read whole.

use std::fmt::Write;
use std::path::Path;
use taipan_history::formats::{
    Converted, Format, Origin, Part, ReadOptions, SplitBy, Target, Warnings, Writing, convert, jsonl,
    read_parts, read_path, split,
};
use taipan_history::{Builder, History};

/// So many that there is more than one part.
const COUNT: usize = (1 << 18) + 20_000;
/// The transaction that is named as another one, and that one.
const SECOND: usize = COUNT - 100;
const FIRST: usize = 1_001;

/// What transactions are called, by number; and what calls the second as the first.
struct Naming {
    name: fn(usize) -> Option<String>,
    again: String,
}

/// As good as random.
fn scattered(number: usize) -> u64 {
    (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn namings() -> Vec<(&'static str, Naming)> {
    let name = |what, name: fn(usize) -> Option<String>| {
        (what, Naming { name, again: name(FIRST).unwrap_or_default() })
    };
    // The default name of another: its session has every third.
    let again = format!("\"{}:{}\"", FIRST % 3, FIRST / 3);
    vec![
        name("integers", |number| Some(number.to_string())),
        name("families", |number| Some(format!("\"t{number}\""))),
        name("scattered", |number| Some((scattered(number) >> 1).to_string())),
        name("odd", |number| Some(format!("\"{:x}-x\"", scattered(number)))),
        ("defaults", Naming { name: |_| None, again }),
    ]
}

fn lines(naming: &Naming) -> String {
    let mut text = String::new();
    for number in 0..COUNT {
        let again = (number == SECOND).then(|| naming.again.clone());
        let id = again.or_else(|| (naming.name)(number)).map_or(String::new(), |id| format!("\"id\":{id},"));
        writeln!(text, "{{\"session\":{},{id}\"ops\":[]}}", number % 3).expect("text");
    }
    text
}

/// The same in frames that nobody looked at together.
fn frames(text: &str, path: &Path) {
    let mut writing = Writing::create(path).expect("a file");
    let mut builder = Builder::new();
    let mut before = 0;
    let half = text[..text.len() / 2].rfind('\n').expect("a line") + 1;
    for (index, half) in [&text[..half], &text[half..]].into_iter().enumerate() {
        jsonl::read(half.as_bytes(), &mut builder, &mut Warnings::new(false)).expect("lines");
        let part: History = builder.take_part().expect("a part");
        let place =
            Part { index: index as u64, last: index == 1, transactions_before: before, operations_before: 0 };
        writing.part(&part, Format::Binary, place).expect("written");
        before += part.len() as u64;
    }
    writing.finish().expect("written");
}

fn converted(origin: Origin<'_>, options: &ReadOptions) -> Result<Converted, String> {
    let mut out = Vec::new();
    let target = Target::Stream("out", Box::new(&mut out));
    convert(origin, options, target, Format::Binary).map_err(|error| error.to_string())
}

#[test]
fn an_id_that_comes_again_in_another_part_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = ReadOptions::default();
    for (what, naming) in namings() {
        let path = folder.path().join("h.jsonl");
        let text = lines(&naming);
        std::fs::write(&path, &text).expect("written");
        let whole = read_path(&path, &options).expect_err(what).to_string();
        assert!(whole.contains(&format!("h.jsonl:{}:", SECOND + 1)), "{what}: {whole}");
        assert!(whole.contains("is used twice: ids must be unique in a history"), "{what}: {whole}");
        let mut parts = 0;
        let in_parts = read_parts(&path, &options, |_| {
            parts += 1;
            true
        });
        assert_eq!(in_parts.expect_err(what).to_string(), whole);
        assert_eq!(parts, 1, "the second part is refused");
        let out = folder.path().join(what);
        let shards = split(&path, &options, &out, 2, SplitBy::Session, Format::Jsonl);
        assert_eq!(shards.expect_err(what).to_string(), whole);
        if matches!(what, "odd" | "defaults") {
            no_second_look(what, &path, &text, &whole);
        }
        let path = folder.path().join("h.tph");
        frames(&text, &path);
        let whole = read_path(&path, &options).expect_err(what).to_string();
        assert!(whole.contains(": byte "), "{what}: {whole}");
        assert_eq!(read_parts(&path, &options, |_| true).expect_err(what).to_string(), whole);
        assert_eq!(converted(Origin::Path(&path), &options).expect_err(what), whole);
    }
}

fn no_second_look(what: &str, path: &Path, text: &str, whole: &str) {
    let options = ReadOptions::default();
    // A stream cannot be looked at again.
    let name = path.display().to_string();
    let stream = Origin::Stream(&name, Box::new(text.as_bytes()));
    assert_eq!(converted(stream, &options).expect_err(what), whole);
    // It alone is left out where that is allowed.
    let lenient = ReadOptions { lenient: true, ..options };
    let done = converted(Origin::Path(path), &lenient).expect(what);
    assert_eq!((done.transactions, done.warnings.count), (COUNT as u64 - 1, 1), "{what}");
}

/// Nothing is refused where names differ, though by little.
#[test]
fn ids_that_differ_are_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.jsonl");
    for (what, naming) in namings() {
        // The integer is not the string, and a default name is not that of another session.
        let again = match naming.again.strip_prefix('"') {
            Some(text) => format!("\"0{text}"),
            None => format!("\"{}\"", naming.again),
        };
        std::fs::write(&path, lines(&Naming { again, ..naming })).expect("written");
        let mut read = 0;
        let all = read_parts(&path, &ReadOptions::default(), |part| {
            read += part.len();
            true
        });
        assert!(all.expect(what));
        assert_eq!(read, COUNT, "{what}");
    }
}
