//! Programs of others on the same files in the same run.
//!
//! `--peer NAME=PATH` for a program that is known here, or `--peer 'NAME=FORMAT:PROGRAM ARGUMENT…'` for any other: it is
//! given files of that format, `{file}` and `{level}` stand for the file and the level's name.

use super::process::{How, measure};
use super::{Case, Run};
use history::formats::{Format, ReadOptions, read_path, write_path};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};
use workload::{Settings, Workload};

/// A program that checks histories, too.
pub(crate) struct Rival {
    name: String,
    format: Format,
    /// The program and its arguments.
    command: Vec<String>,
}

/// Programs whose command line is known: a name, the format they read, and their arguments.
const KNOWN: [(&str, Format, &str); 1] =
    [("adya", Format::ElleEdn, "check -m list-append -c {level} {file}")];

impl FromStr for Rival {
    type Err = Box<dyn Error>;

    fn from_str(given: &str) -> Result<Self, Self::Err> {
        let (name, what) = given.split_once('=').ok_or("a peer is given as NAME=PATH")?;
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        if let Some((_, format, arguments)) = KNOWN.iter().find(|known| known.0 == name)
            && Path::new(what).exists()
        {
            let mut command = vec![what.to_owned()];
            command.extend(words(arguments));
            return Ok(Self { name: name.to_owned(), format: *format, command });
        }
        let unknown = || {
            let names: Vec<&str> = KNOWN.iter().map(|known| known.0).collect();
            format!(
                "{given}: there is no such file, or its command line is not known (known: {}); NAME=FORMAT:PROGRAM ARGUMENT… tells it",
                names.join(", ")
            )
        };
        let (format, command) = what.split_once(':').ok_or_else(unknown)?;
        let format = Format::ALL.iter().copied().find(|it| it.name() == format).ok_or_else(unknown)?;
        Ok(Self { name: name.to_owned(), format, command: words(command) })
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
            for level in ["serializable", "snapshot-isolation"] {
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
                let theirs = run.rivals[index].check(&file, level)?;
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
    fn check(&self, file: &Path, level: &str) -> Result<Case, Box<dyn Error>> {
        let fill = |word: &String| word.replace("{file}", &file.to_string_lossy()).replace("{level}", level);
        let (program, arguments) = self.command.split_first().ok_or("a peer needs a program")?;
        let (before, clock) = (crate::levels::children_s(), Instant::now());
        let mut child = Command::new(program)
            .args(arguments.iter().map(fill))
            .stdout(Stdio::null())
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
        let verdict = match status.map(|status| status.code()) {
            Some(Some(0)) => "accepted".to_owned(),
            Some(Some(1)) => "violated".to_owned(),
            Some(code) => format!("undecided: status {code:?}"),
            None => format!("undecided: not within {} s", LIMIT.as_secs()),
        };
        let cpu_s = crate::levels::children_s() - before;
        Ok(Case { verdict, cpu_s, wall_s: clock.elapsed().as_secs_f64(), peak_mb, ..Case::default() })
    }
}

/// The most memory that a process had so far.
fn peak_of(status: &str) -> Option<f64> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok()? / 1e3)
}
