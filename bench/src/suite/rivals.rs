//! Programs of others on the same files in the same run.
//!
//! `--peer NAME=PATH` for a program that is known here, or `--peer 'NAME=FORMAT:PROGRAM ARGUMENT…'` for any other: it is
//! given files of that format, `{file}` and `{level}` stand for the file and the level's name.

use super::process::{How, REPEATED_UNDER_S, REPEATS, measure};
use super::{Case, Run};
use history::formats::{Format, ReadOptions, read_path, write_path};
use isolation::VerdictKind;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};
use workload::{Settings, Workload};

/// A program that checks histories, too.
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    name: String,
    format: Format,
    /// Levels by our names and by its own.
    levels: Vec<(&'static str, &'static str)>,
    /// What it prints of a violated history, if its status does not tell.
    refusal: Option<&'static str>,
    /// The program and its arguments.
    command: Vec<String>,
}

/// A program whose command line is known.
struct Known {
    name: &'static str,
    format: Format,
    levels: &'static [(&'static str, &'static str)],
    refusal: Option<&'static str>,
    arguments: &'static str,
}

const SAME: &[(&str, &str)] =
    &[("serializable", "serializable"), ("snapshot-isolation", "snapshot-isolation")];

const KNOWN: [Known; 2] = [
    Known {
        name: "adya",
        format: Format::ElleEdn,
        levels: SAME,
        refusal: None,
        arguments: "check -m list-append -c {level} {file}",
    },
    Known {
        name: "awdit",
        format: Format::Text,
        levels: &[
            ("axiomatic-read-committed", "read-committed"),
            ("read-atomic", "read-atomic"),
            ("causal", "causal"),
        ],
        refusal: Some("Inconsistent."),
        arguments: "check -i {level} {file}",
    },
];

impl FromStr for Rival {
    type Err = Box<dyn Error>;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        let (name, what) = given.split_once('=').ok_or("a peer is given as NAME=PATH")?;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if let Some(known) = KNOWN.iter().find(|known| known.name == name)
            && Path::new(what).exists()
        {
            let mut command = vec![what.to_owned()];
            command.extend(words(known.arguments));
            let levels = known.levels.to_vec();
            let (format, refusal) = (known.format, known.refusal);
            return Ok(Self { name: with_version(name, what), format, levels, refusal, command });
        }
        let unknown = || {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.name).collect();
            format!(
                "{given}: there is no such file, or its command line is not known (known: {}); NAME=FORMAT:PROGRAM ARGUMENT… tells it",
                names.join(", ")
            )
        };
        let (format, command) = what.split_once(':').ok_or_else(unknown)?;
        let format = Format::ALL.iter().copied().find(|it| it.name() == format).ok_or_else(unknown)?;
        let (levels, command) = (SAME.to_vec(), words(command));
        Ok(Self { name: name.to_owned(), format, levels, refusal: None, command })
    }
}

/// How long a program of others may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Lists and registers of growing size, each checked by both from the same file.
pub(super) fn run(run: &mut Run) -> Result<(), Box<dyn Error>> {
    for index in 0..run.rivals.len() {
        let format = run.rivals[index].format;
        for size in [10_000, 30_000, 100_000] {
            let size = run.size(size);
            let file = input(run, format, size)?;
            for (level, own) in run.rivals[index].levels.clone() {
                let what = if is_of_lists(format) { "lists" } else { "blind writes" };
                let input = format!("{what} {}, {level}", super::cases::short(size));
                let mut ours = measure(
                    &file,
                    &How { level, strategy: "lazy", without: None, limit_s: LIMIT.as_secs() },
                )?;
                ours.benchmark = "rivals".into();
                ours.series = "taipan".into();
                ours.input = input.clone();
                let (read_s, transactions) = (ours.read_s, ours.transactions);
                let theirs = run.rivals[index].best(&file, own)?;
                let series = run.rivals[index].name.clone();
                run.add(ours);
                run.add(Case { benchmark: "rivals".into(), series, input, read_s, transactions, ..theirs });
            }
        }
    }
    Ok(())
}

/// Whether a format holds lists and nothing else.
fn is_of_lists(format: Format) -> bool {
    matches!(format, Format::ElleEdn | Format::ElleJson)
}

fn input(run: &Run, format: Format, size: usize) -> Result<PathBuf, Box<dyn Error>> {
    let path = run.path(&format!("rival-{size}.{}", format.name()));
    if path.exists() {
        return Ok(path);
    }
    let name = if is_of_lists(format) { "list-append" } else { "blind-writes" };
    let settings = Settings { seed: 1, sessions: 24, ops: 4, ..Workload::named(name)? };
    let native = run.path("rival.jsonl");
    crate::checks::inputs::Generated::new(size as u64, settings, None).write(&native)?;
    write_path(&read_path(&native, &ReadOptions::default())?.history, format, &path)?;
    Ok(path)
}

impl Rival {
    /// The best of as many runs as our own checks have.
    fn best(&self, file: &Path, level: &str) -> Result<Case, Box<dyn Error>> {
        let mut best = self.check(file, level)?;
        for _ in 1..REPEATS {
            if best.cpu_s > REPEATED_UNDER_S {
                break;
            }
            let again = self.check(file, level)?;
            if again.cpu_s < best.cpu_s {
                best = again;
            }
        }
        Ok(best)
    }

    fn check(&self, file: &Path, level: &str) -> Result<Case, Box<dyn Error>> {
        let fill = |word: &String| word.replace("{file}", &file.to_string_lossy()).replace("{level}", level);
        let (program, arguments) = self.command.split_first().ok_or("a peer needs a program")?;
        let said = file.with_extension("said");
        let (before, clock) = (crate::levels::children_s(), Instant::now());
        let mut child = Command::new(program)
            .args(arguments.iter().map(fill))
            .stdout(std::fs::File::create(&said)?)
            .stderr(Stdio::null())
            .spawn()?;
        let status_file = format!("/proc/{}/status", child.id());
        let mut peak_mb: f64 = 0.0;
        let status = loop {
            peak_mb = peak_mb.max(peak_of(&status_file).unwrap_or_default());
            match child.try_wait()? {
                Some(status) => break Some(status),
                None if clock.elapsed() > LIMIT => {
                    child.kill()?;
                    child.wait()?;
                    break None;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let said = String::from_utf8_lossy(&std::fs::read(&said)?).into_owned();
        let is_refused = self.refusal.is_some_and(|refusal| said.contains(refusal));
        let verdict = match status.map(|status| status.code()) {
            Some(Some(0)) if is_refused => VerdictKind::Violated.to_string(),
            Some(Some(0)) => VerdictKind::Accepted.to_string(),
            Some(Some(1)) => VerdictKind::Violated.to_string(),
            Some(code) => format!("undecided: status {code:?}"),
            None => format!("undecided: not within {} s", LIMIT.as_secs()),
        };
        let cpu_s = crate::levels::children_s() - before;
        Ok(Case { verdict, cpu_s, wall_s: clock.elapsed().as_secs_f64(), peak_mb, ..Case::default() })
    }
}

/// A program's name and the version that it says it has.
fn with_version(name: &str, program: &str) -> String {
    let output = Command::new(program).arg("--version").output();
    let said = output.ok().filter(|it| it.status.success()).map(|it| it.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).into_owned();
    let version = said.split_whitespace().find(|word| word.starts_with(|it: char| it.is_ascii_digit()));
    version.map_or(name.to_owned(), |version| format!("{name} {version}"))
}

/// The most memory that a process had so far.
fn peak_of(status: &str) -> Option<f64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1e3)
}
