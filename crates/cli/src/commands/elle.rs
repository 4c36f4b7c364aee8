//! `taipan elle`: elle-cli's flags and results.

use crate::checking::Checking;
use crate::console::{Console, Outcome, Stop};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::flags::{ElleFlags, ElleOutput, HistoryFormat, Model};
use crate::input::left_out;
use crate::names::Names;
use checker::{Level, VerdictKind, forbidding, implies};
use history::formats::{Format, ReadOptions};
use report::{ElleResult, Finding, Palette};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;
use taipan::files::{Checker, Limits, Opened};
use taipan::{Assumption, Policy};

/// What every level comes to.
type Marks = Vec<(Level, VerdictKind)>;

pub(crate) fn run(flags: &ElleFlags, console: &mut Console) -> Outcome {
    let levels = levels(flags)?;
    let policy = Policy { assume: assumed(flags), ..Policy::default() };
    let limits = Limits { time: flags.cycle_search_timeout.map(Duration::from_millis), memory: None };
    let checker = Checker { policy, limits, ..Checker::default() };
    let checking = Checking::new(checker, Names::default(), reading(flags)).at(&levels)?;
    let mut exit = Exit::Accepted;
    for (place, file) in flags.files.iter().enumerate() {
        let folder = flags.directory.as_ref().map(|folder| match flags.files.len() {
            1 => folder.clone(),
            _ => folder.join((place + 1).to_string()),
        });
        exit = exit.and(one(flags, &checking, file, folder, console)?);
    }
    Ok(exit)
}

/// What is assumed of keys.
fn assumed(flags: &ElleFlags) -> Vec<Assumption> {
    let all = [
        (flags.sequential_keys, Assumption::SequentialKeys),
        (flags.linearizable_keys, Assumption::LinearizableKeys),
        (flags.wfr_keys, Assumption::WfrKeys),
    ];
    all.into_iter().filter(|it| it.0).map(|it| it.1).collect()
}

/// The levels that models and anomalies ask for, without those that follow from others.
fn levels(flags: &ElleFlags) -> Result<Vec<Level>, String> {
    let mut levels: Vec<Level> = Vec::new();
    for name in &flags.consistency_models {
        levels.push(Level::parse(name).map_err(|unknown| unknown.to_string())?);
    }
    for name in &flags.anomalies {
        let level = forbidding(name).ok_or_else(|| match report::anomaly(name) {
            Ok(_) => format!("{name} alone is not decided: name a model with -c"),
            Err(unknown) => unknown.to_string(),
        })?;
        levels.push(level);
    }
    if flags.model == Model::Linearizable {
        levels = vec![Level::STRICT_SERIALIZABLE];
    }
    // What follows from another one that is asked for needs no answer of its own.
    let mut kept: Vec<Level> = Vec::new();
    for &level in &levels {
        let follows = levels.iter().any(|&other| other != level && implies(other, level));
        if !follows && !kept.contains(&level) {
            kept.push(level);
        }
    }
    Ok(kept)
}

fn reading(flags: &ElleFlags) -> ReadOptions {
    let format = flags.format.map(|format| match format {
        HistoryFormat::Edn => Format::ElleEdn,
        HistoryFormat::Json => Format::ElleJson,
    });
    ReadOptions { format, allow_empty: true, ..ReadOptions::default() }
}

fn one(
    flags: &ElleFlags,
    checking: &Checking,
    file: &Path,
    folder: Option<PathBuf>,
    console: &mut Console,
) -> Outcome {
    let (findings, marks) = match checking.open(file) {
        Err(failure) => match checking.undecided(failure) {
            Ok(findings) => (findings, Vec::new()),
            Err(failure) => {
                console.error(failure.sentence());
                return Ok(Exit::Error);
            }
        },
        Ok(opened) => {
            if let Some(warning) = left_out(&opened.warnings) {
                console.note(warning);
            }
            check(flags, checking, &opened)?
        }
    };
    if let Some(folder) = folder {
        write_anomalies(&findings, &folder, flags.max_plot_bytes)?;
    }
    let result = ElleResult::new(&findings, &marks);
    let out = console.out();
    match (flags.verbose, flags.output) {
        (false, _) => writeln!(out, "{} \t {}", file.display(), result.word())?,
        (true, ElleOutput::Edn) => writeln!(out, "{}", result.edn())?,
        (true, ElleOutput::Json) => writeln!(out, "{}", result.json())?,
    }
    Ok(match result.word() {
        "true" => Exit::Accepted,
        "false" => Exit::Violated,
        _ => Exit::Undecided,
    })
}

/// What the levels asked for come to, and, where the result map is printed, what all do.
fn check(flags: &ElleFlags, checking: &Checking, opened: &Opened) -> Result<(Vec<Finding>, Marks), Failure> {
    let mut findings = Vec::new();
    for claim in checking.claims(opened)? {
        let checked = checking.check(opened, claim)?;
        let checked = if flags.verbose { checking.with_anomalies(opened, checked)? } else { checked };
        findings.push(checked.finding);
    }
    let is_violated = findings.iter().any(|finding| finding.anomaly.is_some());
    let marks = match flags.verbose && is_violated {
        true if assumed(flags).is_empty() => {
            checking.all_levels(opened, |claim| checking.check(opened, claim))?.surveyed.marks
        }
        true => marks_one_by_one(checking, opened)?,
        false => Vec::new(),
    };
    Ok((findings, marks))
}

/// What every level that takes the assumptions comes to.
fn marks_one_by_one(checking: &Checking, opened: &Opened) -> Result<Marks, Failure> {
    let mut marks = Vec::new();
    for level in Level::all() {
        let Ok(claim) = checking.claim(level) else { continue };
        let checked = checking.check(opened, claim)?;
        marks.push((level, checked.verdict.kind()));
    }
    Ok(marks)
}

/// Writes `ANOMALY.txt` and `ANOMALY.svg` per kind.
fn write_anomalies(findings: &[Finding], folder: &Path, dot_bytes_max: usize) -> Result<(), Stop> {
    let violated = findings.iter().filter_map(|finding| Some((finding, finding.anomaly.as_ref()?)));
    for (finding, anomaly) in violated {
        std::fs::create_dir_all(folder)
            .map_err(|error| Stop::Error(format!("{}: cannot be made: {error}", folder.display())))?;
        let write = |ending: &str, text: String| {
            let path = folder.join(format!("{}.{ending}", anomaly.name));
            std::fs::write(&path, text)
                .map_err(|error| Stop::Error(format!("{}: cannot be written: {error}", path.display())))
        };
        write("txt", report::text(finding, report::Detail::Full, Palette::plain()))?;
        if report::dot(finding).len() <= dot_bytes_max {
            write("svg", report::svg(finding))?;
        }
    }
    Ok(())
}
