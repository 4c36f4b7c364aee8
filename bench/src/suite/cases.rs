//! The benchmarks of a run: which inputs, which questions.

use super::process::{BY_TIMESTAMPS, How, measure};
use super::{Case, Run};
use crate::checks::inputs::{Generated, SER, SI};
use crate::timestamps;
use isolation::{Level, Passes, Strategy};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use workload::{Bug, Settings, Workload};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// How long a check may take at most, where nothing else is said.
const LIMIT_S: u64 = 60;
/// How long an encoding may take: what takes longer is shown to do so.
const SHORT_LIMIT_S: u64 = 3;
const LAZY: &str = "lazy";

fn plain(level: &str) -> How<'_> {
    How { level, strategy: LAZY, without: None, limit_s: LIMIT_S }
}

/// Writes a generated history, unless it is there. It tells no times: those would give most of the order away.
fn made(run: &Run, name: &str, settings: Settings, transactions: usize, bug: Option<Bug>) -> Result<PathBuf> {
    let path = run.path(&format!("{name}-{transactions}.jsonl"));
    if !path.exists() {
        Generated::new(transactions as u64, settings, bug).write(&path)?;
    }
    Ok(path)
}

fn blind(transactions: usize) -> Settings {
    let keys = (transactions / 10).max(100) as u32;
    Settings { seed: 1, sessions: 24, keys, ops: 8, read_share: 0.5, ..Workload::BlindWrites.settings() }
}

fn named(name: &str) -> Result<Settings> {
    Ok(Settings { seed: 1, sessions: 24, ..Workload::named(name)? })
}

/// `10k`, `1M`.
pub(crate) fn short(count: usize) -> String {
    match count {
        count if count >= 1_000_000 => format!("{}M", count / 1_000_000),
        count if count >= 1_000 => format!("{}k", count / 1_000),
        count => count.to_string(),
    }
}

/// From ten thousand to a million transactions, at levels of every kind.
pub(super) fn growth(run: &mut Run) -> Result<()> {
    let kinds = [
        ("serializable", SER, LAZY),
        ("snapshot isolation", SI, LAZY),
        ("causal", "causal", LAZY),
        ("read committed", "read-committed", LAZY),
    ];
    let with_times = [
        ("strict serializable, clients' clocks", "strict-serializable", LAZY),
        ("serializable, database's timestamps", "serializable", BY_TIMESTAMPS),
    ];
    for size in [10_000, 30_000, 100_000, 300_000, 1_000_000] {
        let size = run.size(size);
        let plain_file = made(run, "blind", blind(size), size, None)?;
        let timed_file = run.path("timed.jsonl");
        Generated::new(size as u64, blind(size), None).with_all_clocks().write(&timed_file)?;
        let plainly = kinds.iter().map(|kind| (&plain_file, kind));
        for (path, &(series, level, strategy)) in
            plainly.chain(with_times.iter().map(|kind| (&timed_file, kind)))
        {
            let case = measure(path, &How { strategy, ..plain(level) })?;
            let input = format!("blind writes {}", short(size));
            run.add(Case { benchmark: "growth".into(), series: series.into(), input, ..case });
        }
        std::fs::remove_file(&plain_file)?;
        std::fs::remove_file(&timed_file)?;
    }
    Ok(())
}

/// Where the time of a check goes.
pub(super) fn stages(run: &mut Run) -> Result<()> {
    let (large, middle, small) = (run.size(100_000), run.size(20_000), run.size(5_000));
    let duplicates = Settings {
        keys: middle as u32 / 2,
        ops: 20,
        read_share: 0.5,
        duplicate_keys: 0.5,
        ..named("duplicates")?
    };
    let crowded = Settings { keys: 100, read_share: 0.2, ..blind(small) };
    let inputs = [
        ("blind writes", blind(large), large, None),
        ("blind writes, one lost update", blind(large), large, Some(Bug::LostUpdate)),
        ("lists", named("list-append")?, large, None),
        ("repeated values", duplicates, middle, None),
        ("100 keys, mostly writes", crowded, small, None),
        ("predicates", named("blind-writes-pred")?, small, None),
    ];
    for (name, settings, transactions, bug) in inputs {
        let path = made(run, &name.replace([' ', ','], "-"), settings, transactions, bug)?;
        for (series, level) in [("serializable", SER), ("snapshot isolation", SI)] {
            let case = measure(&path, &plain(level))?;
            let input = format!("{name} {}", short(transactions));
            run.add(Case { benchmark: "stages".into(), series: series.into(), input, ..case });
        }
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// Every level on one history.
pub(super) fn every_level(run: &mut Run) -> Result<()> {
    let size = run.size(30_000);
    let path = made(run, "blind", blind(size), size, None)?;
    for level in Level::all() {
        let case = measure(&path, &plain(level.name()))?;
        let input = format!("blind writes {}", short(size));
        run.add(Case { benchmark: "every-level".into(), series: level.name().into(), input, ..case });
    }
    Ok(())
}

/// Every workload, applications and predicates included.
pub(super) fn workloads(run: &mut Run) -> Result<()> {
    let names = [
        ("blind-writes", 20_000),
        ("read-modify-write", 20_000),
        ("duplicates", 20_000),
        ("list-append", 20_000),
        ("bank", 20_000),
        ("tpcc", 20_000),
        ("rubis", 20_000),
        ("range", 20_000),
        ("predicate", 20_000),
        ("everything", 20_000),
        ("blind-writes-pred", 5_000),
        ("random-range", 5_000),
        ("random-bench", 5_000),
    ];
    for (name, size) in names {
        let size = run.size(size);
        let path = made(run, name, named(name)?, size, None)?;
        for (series, level) in [("serializable", SER), ("snapshot isolation", SI)] {
            let case = measure(&path, &plain(level))?;
            let input = format!("{name} {}", short(size));
            run.add(Case { benchmark: "workloads".into(), series: series.into(), input, ..case });
        }
        std::fs::remove_file(&path)?;
    }
    Ok(())
}

/// The histories that papers measure with, where the corpus is there.
pub(super) fn corpus(run: &mut Run) -> Result<()> {
    for (name, level, path) in crate::checks::inputs::found(&run.corpus) {
        let case = measure(&path, &plain(level))?;
        run.add(Case { benchmark: "corpus".into(), series: said(level).into(), input: name.into(), ..case });
    }
    Ok(())
}

fn said(level: &str) -> &'static str {
    if level == SI { "snapshot isolation" } else { "serializable" }
}

/// The strategies, on growing histories and on those of the papers.
pub(super) fn side_by_side(run: &mut Run) -> Result<()> {
    for size in [500, 1_000, 2_000, 5_000, 10_000, 20_000] {
        let size = run.size(size);
        let path = made(run, "blind", blind(size), size, None)?;
        for strategy in Strategy::ALL {
            // Viper's and PolySI's decide snapshot isolation alone.
            let level = if ["eager-viper", "eager-polysi"].contains(&strategy.name()) { SI } else { SER };
            let case =
                measure(&path, &How { strategy: strategy.name(), limit_s: SHORT_LIMIT_S, ..plain(level) })?;
            let input = format!("blind writes {}", short(size));
            run.add(Case { benchmark: "side-by-side".into(), series: strategy.name().into(), input, ..case });
        }
    }
    let known =
        ["general RH 10k", "general BL 10k", "BlindW-RW 10k (chengRW)", "G-TPCC 10k", "PolySI RH 10k"];
    for (name, level, path) in crate::checks::inputs::found(&run.corpus) {
        if !known.contains(&name) {
            continue;
        }
        for strategy in Strategy::ALL {
            let case =
                measure(&path, &How { strategy: strategy.name(), limit_s: SHORT_LIMIT_S, ..plain(level) })?;
            run.add(Case {
                benchmark: "side-by-side".into(),
                series: strategy.name().into(),
                input: name.into(),
                ..case
            });
        }
    }
    Ok(())
}

/// Which passes a strategy has.
fn passes_of(strategy: Strategy) -> &'static [&'static str] {
    match strategy.name() {
        "lazy" => &["saturate", "parts", "sessions"],
        "eager-cobra" => &["combine", "prune", "polarity"],
        "eager-vbox" => &["consolidate", "prune", "polarity"],
        "eager-veristrong" => &["prune", "two-width", "polarity"],
        "eager-viper" => &["combine", "polarity"],
        "eager-polysi" => &["prune", "polarity"],
        _ => &["polarity"],
    }
}

/// Each pass left out, one at a time.
pub(super) fn ablations(run: &mut Run) -> Result<()> {
    debug_assert!(
        Strategy::ALL.iter().flat_map(|&it| passes_of(it)).all(|name| Passes::NAMES.contains(name))
    );
    let (small, large) = (run.size(2_000), run.size(20_000));
    let apart = Settings { sessions: 24, ops: 15, ..blind(large) };
    let repeated = Settings {
        keys: large as u32 / 2,
        ops: 20,
        read_share: 0.5,
        duplicate_keys: 0.5,
        ..named("duplicates")?
    };
    let lazily = [
        ("repeated values", repeated, large),
        ("blind writes", apart, large),
        ("100 keys, mostly writes", Settings { keys: 100, read_share: 0.2, ..blind(small) }, small),
    ];
    for (name, settings, size) in lazily {
        let path = made(run, &name.replace([' ', ','], "-"), settings, size, None)?;
        for level in ["serializable", "snapshot-isolation"] {
            for without in [None].into_iter().chain(passes_of(Strategy::Lazy).iter().copied().map(Some)) {
                let case = measure(&path, &How { without, limit_s: 10, ..plain(level) })?;
                let input = format!("lazy, {level}, {name} {}", short(size));
                run.add(Case { benchmark: "ablations".into(), series: told(without), input, ..case });
            }
        }
    }
    let path = made(run, "blind", blind(small), small, None)?;
    for strategy in Strategy::ALL.into_iter().filter(|&it| it != Strategy::Lazy) {
        let level = if ["eager-viper", "eager-polysi"].contains(&strategy.name()) { SI } else { SER };
        for without in [None].into_iter().chain(passes_of(strategy).iter().copied().map(Some)) {
            let how = How { strategy: strategy.name(), without, limit_s: SHORT_LIMIT_S, ..plain(level) };
            let case = measure(&path, &how)?;
            let input = format!("{}, blind writes {}", strategy.name(), short(small));
            run.add(Case { benchmark: "ablations".into(), series: told(without), input, ..case });
        }
    }
    Ok(())
}

fn told(without: Option<&str>) -> String {
    without.map_or("all passes".to_owned(), |pass| format!("without {pass}"))
}

/// The online checker: how fast, and how much memory in the course of a stream.
pub(super) fn online(run: &mut Run) -> Result<()> {
    let size = run.size(500_000);
    for (name, keys, memory, window) in [
        ("1,000 keys", 1_000, None, 50_000),
        ("1,000 keys, at most 64 MB", 1_000, Some(64 << 20), 20_000),
        ("1 million keys", 1_000_000, None, 50_000),
        ("1 million keys, at most 64 MB", 1_000_000, Some(64 << 20), 20_000),
    ] {
        let followed = timestamps::follow(size, keys, memory, window)?;
        let input = format!("a stream of {}", short(size));
        run.add(Case {
            benchmark: "online".into(),
            series: name.into(),
            input,
            transactions: size,
            verdict: "accepted".into(),
            read_s: followed.build_s,
            cpu_s: followed.build_s + followed.check_s,
            wall_s: followed.wall_s,
            peak_mb: followed.state as f64 / 1e6,
            samples: followed.samples,
            ..Case::default()
        });
    }
    Ok(())
}

/// Benchmarks that print tables of their own, each in a process.
pub(super) fn printed(run: &mut Run) -> Result<()> {
    let sized = |size: usize| run.size(size).to_string();
    let commands: [(&str, Vec<String>); 8] = [
        ("The native formats", vec!["formats".into(), sized(50_000)]),
        ("Formats of other tools", vec!["peers".into(), sized(50_000)]),
        ("Memory", vec!["memory".into(), sized(50_000)]),
        ("Generators", vec!["generate".into(), sized(30_000)]),
        ("Levels beside their targets, and all at once", vec!["levels".into(), sized(30_000)]),
        ("Several workers", vec!["scale".into(), sized(200_000), "checks".into()]),
        ("Several workers, by results", vec!["scale".into(), sized(200_000), "causal".into()]),
        ("By timestamps, from files", vec!["timestamps".into(), sized(300_000), "offline".into()]),
    ];
    for (title, arguments) in commands {
        let text = output_of(&std::env::current_exe()?, &arguments)?;
        println!("{title}\n{text}");
        run.printed.push((format!("{title}: `taipan-bench {}`", arguments.join(" ")), text));
    }
    Ok(())
}

fn output_of(program: &Path, arguments: &[String]) -> Result<String> {
    let output = Command::new(program).args(arguments).output()?;
    if !output.status.success() {
        return Err(format!("{arguments:?}: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
