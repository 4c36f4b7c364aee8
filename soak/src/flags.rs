//! One claim, one answer: random histories, random flags and commands of the program itself.
//!
//! *What*: a case draws a few histories and a claim, asks the library for the answer to the claim by search alone, and then
//! runs `taipan` with random flags that may not change it: output, certificates, anomalies, strategies, passes, threads,
//! workers, generous limits, and other commands. Every verdict must be the same, or `undecided` where a flag may give up.
//! Between the answers at all levels every implication of the levels table holds.
//!
//! The program is the one beside this one, or what `TAIPAN` names.

use crate::campaign::Wrong;
use crate::{levels, simulated};
use history::History;
use history::formats::{Format, write_path};
use isolation::{Budget, By, Claim, Level, Options, Passes, Rule, Ryow, Strategy, VerdictKind, implications};
use oracle::tiny::Random;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// How many histories one run of the program is given.
const HISTORIES: usize = 24;
/// How many runs a case makes.
const RUNS: usize = 6;

/// A line of `--output json`.
#[derive(Deserialize)]
struct Line {
    file: String,
    level: String,
    #[serde(default)]
    by: Option<String>,
    verdict: VerdictKind,
}

/// Verdicts by file and level.
type Answers = BTreeMap<(String, String), VerdictKind>;

pub(crate) fn case(seed: u64) -> Result<u64, Wrong> {
    let mut random = Random::new(seed ^ 0xf1a65);
    let folder = tempfile::tempdir().map_err(|error| Wrong::new(error.to_string()))?;
    let (mut policies, mut histories) = (Claim::new(Level::SERIALIZABLE), Vec::new());
    policies.ryow = *random.pick(&[Ryow::Must, Ryow::Must, Ryow::Must, Ryow::May, Ryow::Never]);
    policies.clock_skew = if random.chance(10) { 3 } else { 0 };
    for number in 0..HISTORIES {
        let history = draw(&mut random, seed.wrapping_mul(1_000).wrapping_add(number as u64));
        if history.transactions().any(|txn| txn.is_committed()) {
            let path = folder.path().join(format!("h{number}.jsonl"));
            write_path(&history, Format::Jsonl, &path).map_err(|error| Wrong::new(error.to_string()))?;
            histories.push((path, history));
        }
    }
    let mut comparisons = 0;
    for _ in 0..RUNS {
        let by = if random.chance(20) { By::Timestamps } else { By::Results };
        let run = Run::draw(&mut random, policies.by(by), folder.path());
        comparisons += run.compare(&histories)?;
    }
    Ok(comparisons)
}

/// A tiny history of any shape, or one of a simulated database with its timestamps.
fn draw(random: &mut Random, seed: u64) -> History {
    if random.chance(60) {
        return simulated::history(random, (3, 30)).0;
    }
    let (shape, _) = levels::shape(random);
    shape.history(seed)
}

/// One run of the program.
struct Run {
    claim: Claim,
    levels: Vec<Level>,
    command: &'static str,
    arguments: Vec<String>,
    /// Whether a flag may make an answer undecided.
    may_give_up: bool,
}

impl Run {
    fn draw(random: &mut Random, claim: Claim, folder: &Path) -> Self {
        let all: Vec<Level> = match claim.by {
            By::Results => Level::all().collect(),
            By::Timestamps => Level::all().filter(|&level| is_timed(level)).collect(),
        };
        let mut run = Self {
            claim,
            levels: (0..random.between(1, 4)).map(|_| *random.pick(&all)).collect(),
            command: "check",
            arguments: Vec::new(),
            may_give_up: false,
        };
        run.levels.sort_unstable();
        run.levels.dedup();
        let file = |name: &str| folder.join(name).display().to_string();
        let by_results = claim.by == By::Results;
        match random.below(if by_results { 13 } else { 6 }) {
            0 => {}
            1 => run.add(&["--threads", "1"]),
            2 => run.add(&["--timeout", "60", "--max-memory", "4G"]),
            3 => run.add(&["--report", &file("report.html")]),
            4 => run.command = "explain",
            5 => run.add(&["--workers", "2"]),
            6 => {
                // There are certificates of these.
                run.levels = Level::all().filter(|&level| is_timed(level)).collect();
                run.add(&["--certificate", &file("certificates.jsonl")]);
            }
            7 => run.add(&["--anomalies"]),
            8 => {
                run.add(&["--strategy", random.pick(&Strategy::ALL).name()]);
                run.may_give_up = true;
            }
            9 => {
                let pass: &str = random.pick::<&str>(&Passes::NAMES);
                run.add(&["--without", pass]);
            }
            10 => {
                run.levels = all;
                run.add(&["--all-levels"]);
            }
            11 => run.levels = all,
            _ => {
                run.add(&["--timeout", &format!("0.0{}", random.between(1, 9))]);
                run.may_give_up = true;
            }
        }
        if !by_results {
            run.add(&["--by", "timestamps"]);
        } else if random.chance(30) && !run.arguments.iter().any(|it| it == "--all-levels") {
            run.add(&["--by", "results"]);
        }
        if claim.ryow != Ryow::default() {
            run.add(&["--ryow", claim.ryow.name()]);
        }
        if claim.clock_skew != 0 {
            run.add(&["--clock-skew", &claim.clock_skew.to_string()]);
        }
        run
    }

    fn add(&mut self, arguments: &[&str]) {
        self.arguments.extend(arguments.iter().map(|&it| it.to_owned()));
    }

    /// Runs the program and compares what it says with what the library says.
    fn compare(&self, histories: &[(PathBuf, History)]) -> Result<u64, Wrong> {
        let files: Vec<&Path> = histories.iter().map(|(path, _)| path.as_path()).collect();
        let answers = match self.command {
            "check" => self.run(&files)?,
            // One history at a time.
            _ => {
                let mut answers = Answers::new();
                for file in files.iter().take(3) {
                    answers.extend(self.run(&[file])?);
                }
                answers
            }
        };
        let mut comparisons = 0;
        for (path, history) in histories {
            let name = path.display().to_string();
            let mut at_levels: Vec<(Level, VerdictKind)> = Vec::new();
            for &level in &self.levels {
                let Some(&said) = answers.get(&(name.clone(), level.name().to_owned())) else { continue };
                let expected = self.expected(history, level);
                let is_same = said == expected
                    || self.may_give_up && said == VerdictKind::Undecided
                    || expected == VerdictKind::Undecided && self.command == "check" && self.is_survey();
                if !is_same {
                    let what = format!(
                        "{level} by {}: {said} with {}, {expected} by search alone",
                        self.claim.by.name(),
                        self.words()
                    );
                    return Err(Wrong::with(what, history));
                }
                comparisons += 1;
                at_levels.push((level, said));
            }
            comparisons += self.implied(history, &at_levels)?;
        }
        if comparisons == 0 && !histories.is_empty() {
            return Err(Wrong::new(format!("no answer to {}", self.words())));
        }
        Ok(comparisons)
    }

    fn is_survey(&self) -> bool {
        self.arguments.iter().any(|it| it == "--all-levels")
    }

    /// What the claim comes to without a hint, in this process.
    fn expected(&self, history: &History, level: Level) -> VerdictKind {
        let passes = Passes { timestamps: false, ..Passes::default() };
        let budget = Budget::unlimited().with_timeout(Duration::from_secs(20));
        let options = Options { passes, budget, threads: 1, ..Options::default() };
        checker::answer(&self.claim.at(level), history, &options).outcome.verdict.kind()
    }

    /// What a level accepts, weaker ones do not refuse.
    fn implied(&self, history: &History, answers: &[(Level, VerdictKind)]) -> Result<u64, Wrong> {
        let of = |level: Level| answers.iter().find(|(other, _)| *other == level).map(|&(_, it)| it);
        let mut comparisons = 0;
        for it in implications().iter().filter(|it| !it.without_predicates) {
            // By timestamps, serializability and snapshot isolation are judged at different timestamps.
            if self.claim.by == By::Timestamps && it.stronger.rule != it.weaker.rule {
                continue;
            }
            if let (Some(VerdictKind::Accepted), Some(VerdictKind::Violated)) =
                (of(it.stronger), of(it.weaker))
            {
                let what = format!("{} accepted, {} violated: {}", it.stronger, it.weaker, self.words());
                return Err(Wrong::with(what, history));
            }
            comparisons += 1;
        }
        Ok(comparisons)
    }

    fn words(&self) -> String {
        format!("taipan {} {}", self.command, self.arguments.join(" "))
    }

    fn run(&self, files: &[&Path]) -> Result<Answers, Wrong> {
        let mut command = Command::new(program()?);
        command.arg(self.command).args(["--output", "json"]).args(&self.arguments);
        if !self.is_survey() {
            command.args(self.levels.iter().flat_map(|level| ["--level", level.name()]));
        }
        let output = command.args(files).output().map_err(|error| Wrong::new(error.to_string()))?;
        let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let mut answers = Answers::new();
        let mut worst = 0;
        for line in text.lines() {
            let Line { file, level, by, verdict } = serde_json::from_str(line)
                .map_err(|error| Wrong::new(format!("{}: {error}: {line}", self.words())))?;
            if by.unwrap_or("results".to_owned()) != self.claim.by.name() {
                return Err(Wrong::new(format!("{}: another claim was answered: {line}", self.words())));
            }
            worst = match (verdict, worst) {
                (VerdictKind::Violated, _) => 1,
                (VerdictKind::Undecided, 0) => 2,
                (VerdictKind::Undecided | VerdictKind::Accepted, _) => worst,
            };
            answers.insert((file, level), verdict);
        }
        match output.status.code() {
            Some(code) if code == worst => Ok(answers),
            code => Err(Wrong::new(format!("{}: exit {code:?}, expected {worst}: {said}", self.words()))),
        }
    }
}

fn is_timed(level: Level) -> bool {
    matches!(level.rule, Rule::Serializable | Rule::SnapshotIsolation)
}

/// The program that is tried.
fn program() -> Result<&'static Path, Wrong> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PROGRAM.get_or_init(|| {
        let beside = || Some(std::env::current_exe().ok()?.with_file_name("taipan"));
        std::env::var_os("TAIPAN").map(PathBuf::from).or_else(beside).filter(|path| path.is_file())
    });
    found.as_deref().ok_or_else(|| {
        Wrong::new(
            "no taipan beside taipan-soak: build it with `cargo build -p taipan-cli`, or name it in TAIPAN",
        )
    })
}
