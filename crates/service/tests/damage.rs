//! A state folder whose files are damaged: the same findings as without the damage, or a refusal; never other findings.

use isolation::{Level, Rule};
use replay::online::Settings;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use taipan_service::{Batch, Engine, EngineOptions, Pace};

const SI: Level = Level::new(Rule::SnapshotIsolation, true, false);

/// A small deterministic generator.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}

fn open(folder: &Path) -> io::Result<(Engine, taipan_service::Told)> {
    Engine::open(EngineOptions {
        // Little memory: most versions are on disk.
        settings: Settings { memory_max: Some(60_000), ..Settings::new(SI) },
        pace: Pace::Window { transactions: 12, longest: 10 },
        state: Some(folder.to_owned()),
        spill: None,
        journal_max: u64::MAX,
        joiner: None,
        workers: None,
    })
}

/// Transactions on many keys, which are read again long after they were written; some of the reads are wrong.
fn lines(random: &mut Random, count: usize) -> Vec<String> {
    let keys = 300;
    let mut values = vec![0; keys];
    (0..count)
        .map(|number| {
            let (start, commit) = (10 * number + 1, 10 * number + 5);
            let mut ops = Vec::new();
            for _ in 0..3 {
                let key = random.below(keys);
                if random.below(2) == 0 {
                    let value = if random.below(25) == 0 { 7 } else { values[key] };
                    ops.push(format!(r#"{{"op":"read","key":"key {key}","value":{value}}}"#));
                } else {
                    values[key] = 100 + commit;
                    ops.push(format!(r#"{{"op":"write","key":"key {key}","value":{}}}"#, values[key]));
                }
            }
            let seq = number / 3 + 1;
            format!(
                r#"{{"session":{},"seq":{seq},"db":{{"start":{start},"commit":{commit}}},"ops":[{}]}}"#,
                number % 3,
                ops.join(",")
            )
        })
        .collect()
}

fn header() -> String {
    let initial: Vec<String> = (0..300).map(|key| format!(r#""key {key}":0"#)).collect();
    format!(r#"{{"history":1,"initial":{{{}}}}}"#, initial.join(","))
}

/// As a process that acknowledges does: what was taken is on disk when this returns.
fn take(engine: &mut Engine, lines: &[String]) -> io::Result<()> {
    for some in lines.chunks(10) {
        let batch = Batch::new((some.join("\n") + "\n").into_bytes()).waited_for(|| {});
        let told = engine.take(vec![batch], Instant::now())?;
        assert!(told.refused.is_empty(), "{:?}", told.refused);
        told.journal.expect("there is a state").sync()?;
    }
    Ok(())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in [folder.to_owned(), folder.join("spill")] {
        let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path());
        found.extend(entries.filter(|path| path.is_file()));
    }
    found.sort();
    found
}

/// Takes up a state, takes the rest, and gives everything that was ever found.
fn go_on(folder: &Path, rest: &[String]) -> io::Result<Vec<String>> {
    let (mut engine, _) = open(folder)?;
    take(&mut engine, rest)?;
    engine.finish()?;
    let found = std::fs::read_to_string(folder.join("findings.jsonl"))?;
    Ok(found.lines().map(str::to_owned).collect())
}

/// The state of a process that was killed, the lines that it had not taken, and what is found if nothing is damaged.
fn killed(seed: u64) -> (BTreeMap<PathBuf, Vec<u8>>, Vec<String>, Vec<String>) {
    let mut random = Random(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let all = lines(&mut random, 900);
    let (mut engine, _) = open(folder.path()).expect("it is empty");
    take(&mut engine, &[header()]).expect("there is room");
    take(&mut engine, &all[..500]).expect("there is room");
    engine.checkpoint().expect("there is room");
    take(&mut engine, &all[500..700]).expect("there is room");
    assert!(engine.online().counters().evicted > 0, "versions went to disk");
    drop(engine);
    let kept: BTreeMap<PathBuf, Vec<u8>> = files(folder.path())
        .into_iter()
        .map(|path| {
            let bytes = std::fs::read(&path).expect("it is there");
            (path.strip_prefix(folder.path()).expect("inside").to_owned(), bytes)
        })
        .collect();
    let expected = go_on(folder.path(), &all[700..]).expect("nothing is damaged");
    assert!(expected.len() > 10, "{} findings", expected.len());
    (kept, all[700..].to_vec(), expected)
}

fn restored(kept: &BTreeMap<PathBuf, Vec<u8>>) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("spill")).expect("a folder");
    for (path, bytes) in kept {
        std::fs::write(folder.path().join(path), bytes).expect("there is room");
    }
    folder
}

fn damaged(bytes: &[u8], random: &mut Random) -> (Vec<u8>, String) {
    let mut bytes = bytes.to_vec();
    let place = random.below(bytes.len().max(1));
    let what = match random.below(4) {
        0 | 1 if !bytes.is_empty() => {
            bytes[place] ^= 1 << random.below(8);
            format!("byte {place} changed")
        }
        2 => {
            bytes.truncate(place);
            format!("cut off at {place}")
        }
        _ => {
            let more = 1 + random.below(60);
            bytes.extend((0..more).map(|_| random.below(256) as u8));
            format!("{more} bytes more")
        }
    };
    (bytes, what)
}

#[test]
fn damage_changes_no_finding() {
    let cases = if std::env::var_os("TAIPAN_QUICK").is_some() { 60 } else { 240 };
    let (mut same, mut refused) = (0, 0);
    for seed in 0..3 {
        let (kept, rest, expected) = killed(seed);
        // What was found is for people and programs that read it; nothing is concluded from its text.
        let is_state = |name: &&PathBuf| !name.ends_with("lock") && !name.ends_with("findings.jsonl");
        let names: Vec<&PathBuf> = kept.keys().filter(is_state).collect();
        let mut random = Random(seed + 77);
        for case in 0..cases {
            let name = names[case % names.len()];
            let (bytes, what) = damaged(&kept[name], &mut random);
            let folder = restored(&kept);
            std::fs::write(folder.path().join(name), bytes).expect("there is room");
            match go_on(folder.path(), &rest) {
                Ok(found) => {
                    assert_eq!(found, expected, "seed {seed}, case {case}: {name:?}: {what}");
                    same += 1;
                }
                Err(error) => {
                    let said = error.to_string();
                    let file = name.file_name().expect("a name").to_string_lossy();
                    // A mark that says too much blames the journal.
                    let is_named = said.contains(&*file) || file == "durable" && said.contains("journal-");
                    assert!(is_named && said.contains("another state folder"), "{name:?}: {what}: {said}");
                    refused += 1;
                }
            }
        }
    }
    assert!(same > 10 && refused > 50, "{same} did no harm, {refused} were refused");
}

/// Each file that belongs to the state is missed.
#[test]
fn a_file_that_is_gone_is_missed() {
    let (kept, rest, expected) = killed(5);
    for name in kept.keys() {
        let folder = restored(&kept);
        std::fs::remove_file(folder.path().join(name)).expect("it is there");
        // Without these more is reported again, or less is noticed.
        let is_spare = ["lock", "told", "durable"].iter().any(|spare| name.ends_with(spare));
        // Of the files of versions, those that the checkpoint names.
        match go_on(folder.path(), &rest) {
            Ok(found) => {
                assert!(is_spare || name.starts_with("spill"), "{name:?}");
                assert_eq!(found, expected, "{name:?}");
            }
            Err(error) => assert!(!is_spare, "{name:?}: {error}"),
        }
    }
}

/// What is behind the last whole record was never acknowledged: it is left out, kept aside, and that is said.
#[test]
fn a_torn_record_is_kept_aside_and_said() {
    let (kept, rest, expected) = killed(9);
    let folder = restored(&kept);
    let journal = folder.path().join("journal-1");
    let whole = std::fs::read(&journal).expect("it is there");
    std::fs::write(&journal, [&whole[..], b"TPJ2 and no more"].concat()).expect("there is room");
    let (engine, told) = open(folder.path()).expect("it does no harm");
    drop(engine);
    let aside = folder.path().join(format!("journal-1.torn-at-{}", whole.len()));
    assert_eq!(std::fs::read(&aside).expect("it is kept"), b"TPJ2 and no more");
    let [note] = told.notes.as_slice() else { panic!("one note: {:?}", told.notes) };
    assert!(note.contains(&*aside.to_string_lossy()) && note.contains("16 bytes"), "{note}");
    assert_eq!(go_on(folder.path(), &rest).expect("it is mended"), expected);
    // A record in the middle: nothing is taken for empty, cut short or overwritten, however often it is tried.
    let folder = restored(&kept);
    let journal = folder.path().join("journal-1");
    let mut changed = whole.clone();
    changed[whole.len() / 2] ^= 1;
    std::fs::write(&journal, &changed).expect("there is room");
    let refused = || open(folder.path()).map(|_| ()).expect_err("it is damaged").to_string();
    let said = refused();
    assert!(said.contains("journal-1: the journal is damaged at byte "), "{said}");
    assert!(said.contains(" can; the damaged file is kept as "), "{said}");
    assert!(said.contains("restore the file from a backup, or start with"), "{said}");
    let aside = |number: u32| folder.path().join(format!("journal-1.damaged-{number}"));
    for _ in 0..2 {
        assert!(said.contains("journal-1.damaged-1"), "{said}");
        let said = refused();
        assert!(said.contains("the journal is missing; a damaged one is kept as "), "{said}");
        assert_eq!(std::fs::read(aside(1)).expect("it is kept"), changed);
    }
    // Another damaged one does not take its place; a whole one that is put back is taken up.
    std::fs::write(&journal, &changed[..changed.len() - 1]).expect("there is room");
    refused();
    assert_eq!(std::fs::read(aside(1)).expect("it is kept"), changed);
    assert_eq!(std::fs::read(aside(2)).expect("it is kept"), changed[..changed.len() - 1]);
    std::fs::write(&journal, &whole).expect("there is room");
    assert_eq!(go_on(folder.path(), &rest).expect("it is mended"), expected);
}

/// A state that was begun for one level is not taken up for another, also before the first checkpoint.
#[test]
fn a_journal_of_another_check_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut engine, _) = open(folder.path()).expect("it is empty");
    take(&mut engine, &lines(&mut Random(1), 20)).expect("there is room");
    drop(engine);
    let other = EngineOptions {
        settings: Settings::new(Level::SERIALIZABLE),
        pace: Pace::Told,
        state: Some(folder.path().to_owned()),
        spill: None,
        journal_max: u64::MAX,
        joiner: None,
        workers: None,
    };
    let said = Engine::open(other).map(|_| ()).expect_err("another level").to_string();
    assert!(
        said.contains("journal-0: the state belongs to a check of ") && said.contains("use that level"),
        "{said}"
    );
}

/// Keys of any length are spilled and come back.
#[test]
fn long_keys_do_no_harm() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "k".repeat(70_000);
    let mut text = Vec::new();
    for number in 0..40 {
        let (start, commit) = (10 * number + 1, 10 * number + 5);
        let op = match number {
            39 => format!(r#"{{"op":"read","key":"{long}0","value":-1}}"#),
            _ => format!(r#"{{"op":"write","key":"{long}{number}","value":{commit}}}"#),
        };
        text.push(format!(r#"{{"session":1,"db":{{"start":{start},"commit":{commit}}},"ops":[{op}]}}"#));
    }
    let (mut engine, _) = open(folder.path()).expect("it is empty");
    take(&mut engine, &text[..30]).expect("there is room");
    assert!(engine.online().counters().evicted > 0, "versions went to disk");
    engine.checkpoint().expect("there is room");
    drop(engine);
    let found = go_on(folder.path(), &text[30..]).expect("it can be read");
    assert!(found.len() == 1 && found[0].contains("\"expected\":\"5\""), "{} findings", found.len());
}
