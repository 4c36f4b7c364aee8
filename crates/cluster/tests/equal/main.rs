//! Several workers and several processes against one: the same verdict, the same anomaly, the same argument, whatever the
//! placement of the input.

#![allow(clippy::print_stderr, reason = "a test says aloud what it skips and what it counted")]

mod drawn;
mod ids;
mod slices;
mod together;
mod told;

use corpus::Loopback;
use drawn::{History, histories};
use history::Interrupt;
use history::formats::{Format, ReadOptions, SplitBy, read_path, split, write_path};
use isolation::{Claim, Level, Options, Passes, Rule};
use std::path::{Path, PathBuf};
use std::time::Duration;
use taipan_cluster::{Answer, Cluster, Failure, Job, Monitor, Setup, Share};
use told::{alone, told};

const SI: Level = Level::new(Rule::SnapshotIsolation, false, false);
const STRONG_SI: Level = Level::new(Rule::SnapshotIsolation, true, false);
const SER: Level = Level::new(Rule::Serializable, false, false);

/// How workers are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    /// By timestamps.
    Timestamps,
    /// By results, without a look at timestamps.
    Results,
    /// By results, with the timestamps as a hint.
    Whatever,
}

fn job(setup: Setup, paths: Vec<PathBuf>, share: Share, level: Level, by: By) -> Job {
    let monitor = Monitor::new(setup.workers, setup.workers * setup.process());
    let passes = Passes { timestamps: by != By::Results, ..Passes::default() };
    let options = Options { threads: 1, passes, ..Options::default() };
    let claim = Claim::new(level).by(match by {
        By::Timestamps => isolation::By::Timestamps,
        By::Results | By::Whatever => isolation::By::Results,
    });
    Job {
        setup,
        paths,
        share,
        claim,
        own_levels: Vec::new(),
        options,
        reading: ReadOptions::default(),
        monitor,
    }
}

/// Runs several processes as threads of this one; they know nothing of each other but their addresses.
fn processes(
    count: usize,
    workers: usize,
    each: impl Fn(Setup, usize) -> Job + Send + Sync,
) -> Vec<Result<Answer, Failure>> {
    let loopback = Loopback::hold().expect("an address");
    let addresses = loopback.addresses(count);
    std::thread::scope(|scope| {
        let run = |process: usize| {
            let cluster =
                Cluster { addresses: addresses.clone(), process, patience: Duration::from_secs(60) };
            let job = each(Setup { workers, cluster: Some(cluster) }, process);
            scope.spawn(move || taipan_cluster::check(job))
        };
        let running: Vec<_> = (0..count).map(run).collect();
        running.into_iter().map(|it| it.join().expect("a process")).collect()
    })
}

/// A history in a folder of shards.
fn sharded(history: &history::History, folder: &Path, shards: usize, by: SplitBy, format: Format) -> PathBuf {
    let whole = folder.join("whole.jsonl");
    write_path(history, Format::Jsonl, &whole).expect("written");
    let out = folder.join(format!("{shards}-{by:?}-{format}"));
    split(&whole, &ReadOptions::default(), &out, shards, by, format).expect("split");
    out
}

/// What one process says of the same files.
fn expected(path: &Path, level: Level, by: By) -> Vec<String> {
    alone(&read_path(path, &ReadOptions::default()).expect("a history").history, level, by)
}

fn compare(
    History { history, seed }: &History,
    level: Level,
    by: By,
    path: &Path,
    setups: &[usize],
) -> String {
    let expected = expected(path, level, by);
    for &workers in setups {
        let job = job(Setup::threads(workers), vec![path.to_owned()], Share::All, level, by);
        let answer = taipan_cluster::check(job).expect("an answer");
        assert_eq!(answer.size.0, history.len() as u64, "seed {seed}");
        assert_eq!(told(&answer, by), expected, "seed {seed} at {level}, {workers} workers");
    }
    expected[0].clone()
}

#[test]
fn timestamps_on_workers() {
    let mut counts = [0; 2];
    for drawn in histories(0..900) {
        let folder = tempfile::tempdir().expect("a folder");
        let axis = if drawn.seed % 2 == 0 { SplitBy::Session } else { SplitBy::Time };
        let format = if drawn.seed % 3 == 0 { Format::Binary } else { Format::Jsonl };
        let path = sharded(&drawn.history, folder.path(), 1 + drawn.seed as usize % 5, axis, format);
        for level in [SI, STRONG_SI] {
            let verdict = compare(&drawn, level, By::Timestamps, &path, &[1, 2, 4]);
            counts[usize::from(verdict == "violated")] += 1;
        }
        compare(&drawn, SER, By::Timestamps, &path, &[3]);
    }
    assert!(counts.iter().all(|&count| count > 300), "{counts:?}");
}

#[test]
fn timestamps_on_processes() {
    for drawn in histories(1000..1040) {
        let folder = tempfile::tempdir().expect("a folder");
        let shards = 2 + drawn.seed as usize % 4;
        let axis = if drawn.seed % 2 == 0 { SplitBy::Session } else { SplitBy::Time };
        let path = sharded(&drawn.history, folder.path(), shards, axis, Format::Jsonl);
        for (count, workers) in [(2, 1), (3, 1), (2, 2)] {
            let expected = expected(&path, STRONG_SI, By::Timestamps);
            let shared = |setup, _| job(setup, vec![path.clone()], Share::All, STRONG_SI, By::Timestamps);
            let own = |setup, process: usize| {
                let files = history::formats::shards_of(&path).expect("shards");
                let mine = files.into_iter().enumerate().filter(|(number, _)| number % count == process);
                let paths = mine.map(|(_, file)| file).collect();
                job(setup, paths, Share::Own, STRONG_SI, By::Timestamps)
            };
            for answers in [processes(count, workers, shared), processes(count, workers, own)] {
                let answers: Vec<Answer> = answers.into_iter().map(|it| it.expect("an answer")).collect();
                let name = &expected[0];
                assert!(answers.iter().all(|answer| answer.verdict.name() == name), "seed {}", drawn.seed);
                assert_eq!(told(&answers[0], By::Timestamps), expected, "seed {}, {count}", drawn.seed);
                assert!(answers[1..].iter().all(|answer| answer.found.is_none()));
            }
        }
    }
}

#[test]
fn results_on_workers_and_processes() {
    for drawn in histories(2000..2060) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = sharded(&drawn.history, folder.path(), 3, SplitBy::Session, Format::Jsonl);
        for level in
            [SER, SI, Level::new(Rule::Causal, true, false), Level::new(Rule::ReadAtomic, true, false)]
        {
            compare(&drawn, level, By::Results, &path, &[1, 2, 4]);
        }
        // By whatever tells: a serial order need not be that of the commits.
        compare(&drawn, SER, By::Whatever, &path, &[2]);
        // What timestamps accept at snapshot isolation is causal.
        compare(&drawn, Level::new(Rule::Causal, true, false), By::Whatever, &path, &[2]);
        let expected = expected(&path, SER, By::Results);
        let shared = |setup, _| job(setup, vec![path.clone()], Share::All, SER, By::Results);
        let answers = processes(2, 1, shared);
        let first = answers.into_iter().next().expect("two").expect("an answer");
        assert_eq!(told(&first, By::Results), expected, "seed {}", drawn.seed);
    }
}

#[test]
fn components_are_decided_where_they_lie() {
    let mut counts = [0; 2];
    for first in [0, 42, 63, 84, 105] {
        let history = drawn::together(first, 6);
        let folder = tempfile::tempdir().expect("a folder");
        let path = sharded(&history, folder.path(), 4, SplitBy::Time, Format::Binary);
        let drawn = History { seed: first, history };
        for level in [SER, SI, Level::new(Rule::Causal, true, false)] {
            let verdict = compare(&drawn, level, By::Results, &path, &[1, 2, 4]);
            counts[usize::from(verdict == "violated")] += 1;
        }
        let job = job(Setup::threads(3), vec![path.clone()], Share::All, SI, By::Results);
        let found = taipan_cluster::check(job).expect("an answer").found.expect("at process 0");
        let note = found.note.expect("how it was decided");
        assert!(note.starts_with("6 independent components"), "{note}");
    }
    assert!(counts[0] > 0 && counts[1] > 0, "{counts:?}");
}

/// Larger ones take their time.
const TRANSACTIONS_MAX: usize = 150;
const HISTORIES_MAX: usize = 150;

#[test]
fn the_corpus_on_workers() {
    let named = std::env::var_os("TAIPAN_CORPUS").map(Into::into);
    let all = match corpus::labelled(named, Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        Ok(all) => all,
        Err(missing) => return corpus::missing("corpus", &missing),
    };
    let mut compared = 0;
    let small = all.iter().filter(|it| it.transactions.is_some_and(|count| count <= TRANSACTIONS_MAX));
    for labelled in small.take(HISTORIES_MAX) {
        let Ok(loaded) = read_path(&labelled.path, &ReadOptions::default()) else { continue };
        let folder = tempfile::tempdir().expect("a folder");
        let path = sharded(&loaded.history, folder.path(), 3, SplitBy::Session, Format::Jsonl);
        let drawn = History { seed: compared, history: loaded.history };
        for level in
            [STRONG_SI, Level::new(Rule::Serializable, true, false), Level::new(Rule::Causal, true, false)]
        {
            compare(&drawn, level, By::Results, &path, &[2]);
        }
        compare(&drawn, STRONG_SI, By::Whatever, &labelled.path, &[1, 4]);
        compared += 1;
    }
    eprintln!("{compared} labelled histories compared");
}

#[test]
fn who_does_not_come_is_named() {
    let loopback = Loopback::hold().expect("an address");
    let addresses = loopback.addresses(2);
    let cluster = Cluster { addresses: addresses.clone(), process: 0, patience: Duration::from_millis(300) };
    let setup = Setup { workers: 1, cluster: Some(cluster) };
    let failure = taipan_cluster::check(job(setup, vec!["nothing".into()], Share::All, SI, By::Whatever));
    let Err(Failure::Connection(why)) = failure else { panic!("nobody came: {failure:?}") };
    assert!(why.contains(&format!("process 1 at {}", addresses[1])), "{why}");
}

#[test]
fn a_limit_is_told_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.jsonl");
    write_path(&histories(5..6).next().expect("one").history, Format::Jsonl, &path).expect("written");
    for by in [By::Timestamps, By::Results] {
        let job = job(Setup::threads(2), vec![path.clone()], Share::All, SI, by);
        job.options.budget.run_out_of_memory();
        let failure = taipan_cluster::check(job);
        let Err(Failure::Limit(why)) = failure else { panic!("there is no memory: {failure:?}") };
        assert!(why.starts_with("out of memory"), "{why}");
    }
}

/// One worker panics in the middle of its work while the others wait for it: the run ends, and says why.
#[test]
fn a_worker_that_panics_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    for (number, history) in histories(5..9).enumerate() {
        let path = folder.path().join(format!("shard-000{number}.jsonl"));
        write_path(&history.history, Format::Jsonl, &path).expect("written");
    }
    for (by, level) in
        [(By::Timestamps, SI), (By::Results, Level::new(Rule::Causal, false, false)), (By::Results, SER)]
    {
        let mut job = job(Setup::threads(3), vec![folder.path().to_owned()], Share::All, level, by);
        let panics = |_| match std::thread::current().name() {
            Some(name) if name.ends_with("work-1") => panic!("worker 1 has had enough"),
            _ => false,
        };
        job.reading.interrupt = Interrupt::when(panics);
        let failure = taipan_cluster::check(job);
        let Err(Failure::Worker(why)) = failure else { panic!("a worker is gone: {failure:?}") };
        assert_eq!(why, "lost worker 1: worker 1 has had enough");
    }
}

#[test]
fn processes_that_disagree_and_files_that_are_none_are_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("h.jsonl");
    let good = histories(5..6).next().expect("one").history;
    write_path(&good, Format::Jsonl, &path).expect("written");
    let other = folder.path().join("other");
    std::fs::create_dir(&other).expect("a folder");
    let (longer, changed) = (other.join("longer.jsonl"), other.join("h.jsonl"));
    let mut bytes = std::fs::read(&path).expect("written");
    std::fs::write(&longer, [&bytes[..], b"\n"].concat()).expect("written");
    let place = bytes.iter().rposition(u8::is_ascii_digit).expect("a number");
    bytes[place] ^= 1;
    std::fs::write(&changed, &bytes).expect("written");
    let size = bytes.len();
    type Change<'a> = &'a (dyn Fn(&mut Job) + Sync);
    let strict = Level::new(Rule::SnapshotIsolation, true, true);
    let vendor = isolation::Vendor {
        database: "postgres",
        product: "PostgreSQL",
        level: "repeatable read",
        logical: false,
    };
    let cases: [(Change<'_>, String); 11] = [
        (&|job| job.claim.level = SER, format!("the level is {SER} for process 1 and {SI} for process 0")),
        (&|job| job.claim.level = strict, format!("the level is {strict} for process 1 and {SI}")),
        (
            &|job| job.claim.by = isolation::By::Results,
            "--by is results for process 1 and timestamps".to_owned(),
        ),
        (&|job| job.claim.ryow = isolation::Ryow::May, "--ryow is may for process 1 and must".to_owned()),
        (&|job| job.claim.clock_skew = 5, "--clock-skew is 5 for process 1 and 0 for".to_owned()),
        (&|job| job.claim.mixed = true, "--mixed is true for process 1 and false".to_owned()),
        (&|job| job.claim.vendor = Some(vendor), "--profile is postgres repeatable read for".to_owned()),
        (&|job| job.reading.lenient = true, "--lenient is true for process 1 and false".to_owned()),
        (&|job| job.share = Share::Own, "--shards is own for process 1 and shared for process 0".to_owned()),
        (&|job| job.paths = vec![longer.clone()], "file longer.jsonl is ".to_owned()),
        (&|job| job.paths = vec![changed.clone()], format!("file h.jsonl is {size} bytes with hash ")),
    ];
    for (change, expected) in cases {
        let answers = processes(2, 1, |setup, process| {
            let mut job = job(setup, vec![path.clone()], Share::All, SI, By::Timestamps);
            if process == 1 {
                change(&mut job);
            }
            job
        });
        let said: Vec<&str> = answers
            .iter()
            .map(|answer| match answer {
                Err(Failure::Disagreement(why)) => why.as_str(),
                other => panic!("{expected}: {other:?}"),
            })
            .collect();
        assert!(said[0].contains(&expected), "{expected}: {}", said[0]);
        // The other one says the same, the other way round.
        assert!(said[0].starts_with("process 1 at 127."), "{}", said[0]);
        assert!(said[1].starts_with("process 0 at 127."), "{}", said[1]);
        let name = expected.split(" is ").next().expect("a field");
        assert!(said[1].contains(&format!("{name} is ")), "{}", said[1]);
    }

    let bad = folder.path().join("bad.jsonl");
    std::fs::write(&bad, "{\"session\":1,\"ops\":[]}\n{\"session\":1}\n").expect("written");
    let answers = processes(2, 1, |setup, _| job(setup, vec![bad.clone()], Share::All, SI, By::Timestamps));
    for answer in answers {
        let Err(Failure::Input(why)) = answer else { panic!("it is no history: {answer:?}") };
        assert!(why.contains("bad.jsonl:2:"), "{why}");
    }
}
