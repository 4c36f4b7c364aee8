//! One component by all workers together: the polynomial levels by results, on random histories of registers.

use super::{By, History, compare, job, processes, sharded};
use history::formats::{Format, ReadOptions, SplitBy, read_path};
use history::{Builder, Lock, NameRef, Status, ValueId};
use isolation::{Level, Rule};
use std::path::Path;
use taipan_cluster::{Setup, Share};

/// The levels that are decided so.
const LEVELS: [Level; 5] = [
    Level::new(Rule::ReadCommitted, false, false),
    Level::new(Rule::ReadCommitted, true, false),
    Level::new(Rule::AxiomaticReadCommitted, true, false),
    Level::new(Rule::ReadAtomic, true, false),
    Level::new(Rule::Causal, true, false),
];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn is_one_in(&mut self, of: u64) -> bool {
        self.below(of) == 0
    }
}

/// An operation before it is known what reads see.
#[derive(Clone, Copy)]
enum Step {
    Read(usize),
    Write(usize, ValueId),
}

/// A history whose reads see what was written lately, or long ago; whether it has nothing but registers with one writer a value.
fn registers(seed: u64) -> (History, bool) {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    // Some have more sessions than clocks have columns at once.
    let sessions = if seed % 40 == 7 { 150 } else { 1 + random.below(5) };
    let keys = 1 + random.below(6) as usize;
    let txns = if sessions > 100 { 400 } else { 3 + random.below(24) };
    // How far back reads look, how often ahead, and how often something is not as it should be.
    let reach = 1 + random.below(4);
    let ahead = [0, 0, 12][random.below(3) as usize];
    let odd = [0, 0, 60, 25][random.below(4) as usize];
    let texts = random.is_one_in(6);
    let mut is_plain = true;
    let mut builder = Builder::new();
    let mut ids = Vec::new();
    // By key, who wrote which value; the initial one first.
    let mut versions: Vec<Vec<(u64, ValueId)>> = Vec::new();
    for key in 0..keys {
        let name = format!("key {key}");
        let name = if random.is_one_in(3) { NameRef::Str(&name) } else { NameRef::Int(key as i64) };
        let (id, zero) = (builder.key(name), builder.int(0));
        let has_initial = random.is_one_in(4);
        if has_initial {
            builder.initial(id, zero);
        }
        ids.push(id);
        versions.push(vec![(0, if has_initial { zero } else { ValueId::ABSENT })]);
    }
    // 1. Who does what.
    let mut all: Vec<(Status, Vec<Step>)> = Vec::new();
    let mut next = 0;
    for txn in 1..=txns {
        let status = match odd > 0 {
            true if random.is_one_in(odd) => Status::Unknown,
            true if random.is_one_in(odd) => Status::Aborted,
            _ => Status::Committed,
        };
        is_plain &= status == Status::Committed;
        let mut steps = Vec::new();
        for _ in 0..1 + random.below(4) {
            let key = random.below(keys as u64) as usize;
            if random.is_one_in(2) {
                steps.push(Step::Read(key));
                continue;
            }
            next += 1;
            let value = if odd > 0 && next > 1 && random.is_one_in(2 * odd) {
                is_plain = false;
                match random.is_one_in(3) {
                    true => ValueId::ABSENT,
                    false => builder.int(1 + random.below(next - 1) as i64),
                }
            } else if texts {
                builder.text(&format!("value {next}"))
            } else {
                builder.int(if random.is_one_in(20) { -(next as i64) } else { next as i64 })
            };
            steps.push(Step::Write(key, value));
            // Nobody sees most of what was rolled back, or overwritten at once.
            let is_last = versions[key].last().is_none_or(|&(by, _)| by != txn);
            if (status == Status::Committed || random.is_one_in(3)) && (is_last || random.is_one_in(9)) {
                versions[key].push((txn, value));
            } else if let Some(last) = versions[key].last_mut().filter(|last| last.0 == txn) {
                last.1 = value;
            }
        }
        all.push((status, steps));
    }
    // 2. What reads see.
    for (txn, (status, steps)) in (1..).zip(all) {
        let session = builder.session(NameRef::Int(random.below(sessions) as i64));
        builder.begin(session);
        builder.set_status(status);
        let mut own: Vec<Option<ValueId>> = vec![None; keys];
        for step in steps {
            match step {
                Step::Write(key, value) => {
                    builder.write(ids[key], value);
                    own[key] = Some(value);
                }
                Step::Read(key) => {
                    let of_key = &versions[key];
                    let before = of_key.partition_point(|&(by, _)| by < txn);
                    let after = of_key.partition_point(|&(by, _)| by <= txn);
                    let back = random.below(reach).min(before as u64 - 1) as usize;
                    let outside = match of_key.get(after) {
                        Some(&(_, value)) if ahead > 0 && random.is_one_in(ahead) => value,
                        _ => of_key[before - 1 - back].1,
                    };
                    let is_hidden = odd > 0 && random.is_one_in(2 * odd);
                    let is_blind = odd > 0 && random.is_one_in(4 * odd);
                    let seen = own[key].filter(|_| !is_blind).unwrap_or(outside);
                    builder.read(ids[key], if is_hidden { ValueId::UNKNOWN } else { seen }, Lock::None);
                }
            }
        }
        builder.end().expect("a transaction");
    }
    (History { seed, history: builder.finish().expect("a history") }, is_plain)
}

#[test]
fn registers_on_workers() {
    let mut counts = [[0; 2]; LEVELS.len()];
    let mut together = 0;
    for seed in 0..1200 {
        let (drawn, is_plain) = registers(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let axis = if seed % 2 == 0 { SplitBy::Session } else { SplitBy::Time };
        let format = if seed % 3 == 0 { Format::Binary } else { Format::Jsonl };
        let path = sharded(&drawn.history, folder.path(), 1 + seed as usize % 5, axis, format);
        for (number, &level) in LEVELS.iter().enumerate() {
            let workers = 1 + (seed as usize + number) % 4;
            let verdict = compare(&drawn, level, By::Results, &path, &[workers]);
            counts[number][usize::from(verdict == "violated")] += 1;
            if is_plain && verdict == "accepted" && workers > 1 {
                let job = job(Setup::threads(workers), vec![path.clone()], Share::All, level, By::Results);
                let found = taipan_cluster::check(job).expect("an answer").found.expect("at process 0");
                let note = found.note.expect("how it was decided");
                assert!(note.starts_with("decided by"), "seed {seed} at {level}: {note}");
                together += 1;
            }
        }
    }
    eprintln!("{together} by all workers together; accepted and violated: {counts:?}");
    assert!(together > 500, "{together}");
    // What nobody saw before it was written happens only where sessions are apart.
    assert!(counts.iter().flatten().all(|&count| count > 100), "{counts:?}");
}

#[test]
fn registers_on_processes() {
    for seed in 5000..5030 {
        let (drawn, _) = registers(seed);
        let folder = tempfile::tempdir().expect("a folder");
        let axis = if seed % 2 == 0 { SplitBy::Session } else { SplitBy::Time };
        let path = sharded(&drawn.history, folder.path(), 2 + seed as usize % 4, axis, Format::Jsonl);
        for (number, (count, workers)) in [(2, 1), (3, 1), (2, 2)].into_iter().enumerate() {
            let level = LEVELS[LEVELS.len() - 1 - (seed as usize + number) % 3];
            let expected = super::expected(&path, level, By::Results);
            let shared = |setup, _| job(setup, vec![path.clone()], Share::All, level, By::Results);
            let own = |setup, process: usize| {
                let files = history::formats::shards_of(&path).expect("shards");
                let mine = files.into_iter().enumerate().filter(|(number, _)| number % count == process);
                job(setup, mine.map(|(_, file)| file).collect(), Share::Own, level, By::Results)
            };
            for answers in [processes(count, workers, shared), processes(count, workers, own)] {
                let answers: Vec<_> = answers.into_iter().map(|it| it.expect("an answer")).collect();
                assert!(answers.iter().all(|answer| answer.verdict.name() == expected[0]), "seed {seed}");
                assert_eq!(
                    super::told(&answers[0], By::Results),
                    expected,
                    "seed {seed} at {level}, {count}"
                );
            }
        }
    }
}

/// Larger ones take their time.
const TRANSACTIONS_MAX: usize = 2_000;
const HISTORIES_MAX: usize = 250;

#[test]
fn the_corpus_together() {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let all = match corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(all) => all,
        Err(missing) => return corpus::missing("corpus", &missing),
    };
    let small: Vec<_> =
        all.iter().filter(|it| it.transactions.is_some_and(|count| count <= TRANSACTIONS_MAX)).collect();
    let each = small.len().div_ceil(HISTORIES_MAX).max(1);
    let (mut compared, mut together) = (0, 0);
    for labelled in small.into_iter().step_by(each) {
        let Ok(loaded) = read_path(&labelled.path, &ReadOptions::default()) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let axis = if compared % 2 == 0 { SplitBy::Session } else { SplitBy::Time };
        let path = sharded(&loaded.history, folder.path(), 3, axis, Format::Jsonl);
        let drawn = History { seed: compared, history: loaded.history };
        for level in LEVELS {
            let workers = 2 + compared as usize % 3;
            if compare(&drawn, level, By::Results, &path, &[workers]) == "accepted" {
                let job = job(Setup::threads(workers), vec![path.clone()], Share::All, level, By::Results);
                let found = taipan_cluster::check(job).expect("an answer").found.expect("at process 0");
                together += usize::from(found.note.is_some_and(|note| note.starts_with("decided by")));
            }
        }
        compared += 1;
    }
    eprintln!("{compared} labelled histories compared, {together} levels accepted by all workers together");
}
