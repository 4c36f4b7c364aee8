//! The histories that checks are measured with.

use super::Extent;
use history::formats::{Format, Writing};
use std::error::Error;
use std::path::{Path, PathBuf};
use workload::{Bug, Config, Fields, Plant, Settings, Simulation, Strength, Workload};

/// A history and a level.
pub(crate) struct Input {
    pub(crate) name: &'static str,
    pub(crate) level: &'static str,
    pub(crate) place: Place,
    pub(crate) extent: Extent,
    /// Whether no later input needs the same file.
    pub(crate) is_last_use: bool,
}

/// Where a history comes from.
pub(crate) enum Place {
    /// The corpus: how its path ends.
    Corpus(&'static str),
    /// The generator.
    Generated(Generated),
}

/// A history that the simulated database records: serializable, except for what is planted.
#[derive(Clone, Debug)]
pub(crate) struct Generated {
    pub(crate) file: &'static str,
    transactions: u64,
    plan: Settings,
    planted: Option<Bug>,
    /// Whether transactions carry the clients' clocks.
    clocks: bool,
    /// Whether they carry the database's timestamps.
    timestamps: bool,
}

impl Generated {
    /// A serializable history; nothing tells times.
    pub(crate) fn new(transactions: u64, plan: Settings, planted: Option<Bug>) -> Self {
        Self { file: "", transactions, plan, planted, clocks: false, timestamps: false }
    }

    /// The same with clients' clocks and the database's timestamps.
    pub(crate) fn with_all_clocks(self) -> Self {
        Self { clocks: true, timestamps: true, ..self }
    }

    /// As JSON lines, in parts.
    pub(crate) fn write(&self, path: &Path) -> Result<(), Box<dyn Error>> {
        let bugs = self.planted.into_iter().map(|bug| (bug, Plant::Exactly(1))).collect();
        let config = Config {
            bugs,
            record_aborted: false,
            ..Config::new(self.plan.clone(), Strength::Serializable, self.transactions)
        };
        let mut writing = Writing::create(path)?;
        let fields = Fields { client: self.clocks, db: self.timestamps, planted: false };
        Simulation::new(config)?.run_in_parts(fields, |history, part| {
            Ok::<_, Box<dyn Error>>(writing.part(history, Format::Jsonl, part)?)
        })?;
        writing.finish()?;
        Ok(())
    }
}

pub(crate) const SER: &str = "strong-session-serializable";
pub(crate) const SI: &str = "strong-session-snapshot-isolation";
const STRICT: &str = "strict-serializable";

/// Paths in the corpus; packed bundles are unpacked first.
pub(crate) fn corpus(scratch: &Path) -> Result<Vec<PathBuf>, corpus::Missing> {
    let named = std::env::var_os("TAIPAN_CORPUS").map(PathBuf::from);
    Ok(corpus::labelled(named, scratch)?.into_iter().map(|labelled| labelled.path).collect())
}

/// Half of the transactions read eight keys, the others write eight.
fn blind(keys: u32, read_share: f64) -> Settings {
    Settings { seed: 1, sessions: 24, keys, ops: 8, read_share, ..Workload::BlindWrites.settings() }
}

/// A workload of the command line.
fn named(name: &str) -> Settings {
    let settings = Workload::named(name).expect("the command line has it");
    Settings { seed: 1, sessions: 24, ..settings }
}

/// Twenty operations, half of them reads; values repeat on half of the keys.
fn duplicates(keys: u32) -> Settings {
    Settings {
        seed: 1,
        sessions: 24,
        keys,
        ops: 20,
        read_share: 0.5,
        duplicate_keys: 0.5,
        ..Workload::Duplicates.settings()
    }
}

/// How the paths of corpus histories end.
const CORPUS: &[(&str, &str, &str)] = &[
    ("general RH 10k", SER, "fig13-14-15-table1/RH-10k/hist-00000/history.bincode"),
    ("general BL 10k", SER, "fig13-14-15-table1/BL-10k/hist-00000/history.bincode"),
    ("general WH 10k", SER, "fig13-14-15-table1/WH-10k/hist-00000/history.bincode"),
    ("general HD 10k", SER, "fig13-14-15-table1/HD-10k/hist-00000/history.bincode"),
    ("BlindW-RW 10k (chengRW)", SER, "one-shot-10k/chengRW-10000"),
    ("G-RUBiS 10k", SER, "fig13-14-15-table1/rubis-10k"),
    ("G-Twitter 10k", SER, "fig13-14-15-table1/twitter-10k"),
    ("G-TPCC 10k", SER, "fig13-14-15-table1/tpcc-10k"),
    ("PolySI RH 10k", SI, "fig8_9_10/25_400_8_10000_0.95_uniform/hist-00000/history.bincode"),
    ("PolySI BL 10k", SI, "fig8_9_10/25_400_8_10000_0.5_uniform/hist-00000/history.bincode"),
    ("PolySI WH 10k", SI, "fig8_9_10/25_400_8_10000_0.3_uniform/hist-00000/history.bincode"),
    ("yuga-G2-a", SER, "ser-violation/yuga-G2-a"),
    ("yuga-G2-c", SER, "ser-violation/yuga-G2-c"),
    ("fauna-page", SER, "ser-violation/fauna-page"),
];

/// The histories of the corpus that are measured: a name, the level, the file. Packed ones are unpacked already.
pub(crate) fn found(corpus: &[PathBuf]) -> Vec<(&'static str, &'static str, PathBuf)> {
    let file = |ending: &str| {
        corpus.iter().find(|path| path.to_string_lossy().trim_end_matches('/').ends_with(ending)).cloned()
    };
    CORPUS.iter().filter_map(|&(name, level, ending)| Some((name, level, file(ending)?))).collect()
}

/// Generated histories: name, level, extent, file, transactions, settings, what is planted.
type Row = (&'static str, &'static str, Extent, &'static str, u64, Settings, Option<Bug>);

fn generated() -> Vec<Row> {
    use Extent::{Full, Short};
    let million = 1_000_000;
    vec![
        ("contention 2k, 100 keys", SER, Short, "contention-2k", 2_000, blind(100, 0.2), None),
        ("contention 2k, 100 keys", SI, Short, "contention-2k", 2_000, blind(100, 0.2), None),
        ("contention 20k, 100 keys", SER, Full, "contention-20k", 20_000, blind(100, 0.2), None),
        ("contention 20k, 100 keys", SI, Full, "contention-20k", 20_000, blind(100, 0.2), None),
        ("duplicates 20k × 20", SER, Short, "duplicates-20k", 20_000, duplicates(10_000), None),
        ("duplicates 20k × 20", SI, Short, "duplicates-20k", 20_000, duplicates(10_000), None),
        ("duplicates 100k × 20", SER, Full, "duplicates-100k", 100_000, duplicates(50_000), None),
        ("duplicates 100k × 20", SI, Full, "duplicates-100k", 100_000, duplicates(50_000), None),
        ("blind 10k", SER, Short, "blind-10k", 10_000, blind(1_000, 0.5), None),
        ("blind 30k", SER, Short, "blind-30k", 30_000, blind(3_000, 0.5), None),
        ("blind 100k", SER, Short, "blind-100k", 100_000, blind(10_000, 0.5), None),
        ("blind 100k", SI, Short, "blind-100k", 100_000, blind(10_000, 0.5), None),
        ("blind 300k", SER, Full, "blind-300k", 300_000, blind(30_000, 0.5), None),
        ("blind 1M", SER, Full, "blind-1m", million, blind(100_000, 0.5), None),
        ("blind 1M", SI, Full, "blind-1m", million, blind(100_000, 0.5), None),
        (
            "blind 100k, one lost update",
            SER,
            Short,
            "lost-100k",
            100_000,
            blind(10_000, 0.5),
            Some(Bug::LostUpdate),
        ),
        (
            "blind 1M, one lost update",
            SER,
            Full,
            "lost-1m",
            million,
            blind(100_000, 0.5),
            Some(Bug::LostUpdate),
        ),
        (
            "blind 1M, one lost update",
            SI,
            Full,
            "lost-1m",
            million,
            blind(100_000, 0.5),
            Some(Bug::LostUpdate),
        ),
        ("BlindW-Pred 10k", SER, Short, "pred-10k", 10_000, named("blind-writes-pred"), None),
        ("BlindW-Pred 10k", SI, Short, "pred-10k", 10_000, named("blind-writes-pred"), None),
        ("RandomRange 10k", SER, Short, "range-10k", 10_000, named("random-range"), None),
        ("RandomBench 10k", SER, Short, "bench-10k", 10_000, named("random-bench"), None),
        ("BlindW-WR 10k, clocks count", STRICT, Short, "blind-10k-clocks", 10_000, blind(10_000, 0.5), None),
        ("BlindW-WR 10k, clocks do not", SER, Short, "blind-10k-clocks", 10_000, blind(10_000, 0.5), None),
        (
            "BlindW-WR 100k, clocks count",
            STRICT,
            Short,
            "blind-100k-clocks",
            100_000,
            blind(10_000, 0.5),
            None,
        ),
        ("BlindW-WR 100k, clocks do not", SER, Short, "blind-100k-clocks", 100_000, blind(10_000, 0.5), None),
    ]
}

/// Everything, in the order of the table.
pub(crate) fn all() -> Vec<Input> {
    let from_corpus = CORPUS.iter().map(|&(name, level, ending)| {
        let place = Place::Corpus(ending);
        Input { name, level, place, extent: Extent::Short, is_last_use: false }
    });
    let rows = generated();
    let files: Vec<&str> = rows.iter().map(|row| row.3).collect();
    let generated = rows.into_iter().enumerate().map(|(index, row)| {
        let (name, level, extent, file, transactions, plan, planted) = row;
        let clocks = file.ends_with("clocks");
        let place =
            Place::Generated(Generated { file, clocks, ..Generated::new(transactions, plan, planted) });
        let is_last_use = files.get(index + 1) != Some(&file);
        Input { name, level, place, extent, is_last_use }
    });
    from_corpus.chain(generated).collect()
}
