//! What the flags ask of files, in the library's terms.

use crate::console::{Console, Stop};
use crate::failure::{Cause, Failure, attempt, guarded};
use crate::flags::{Assumption, BoundFlags, LevelName, LimitFlags, PolicyFlags, ReadingFlags};
use crate::names::Names;
use checker::{Level, Reduced};
use history::formats::ReadOptions;
use report::{Finding, Part};
use std::path::Path;
use taipan::files::{AllLevels, Checked, Checker, Limits, Opened};
use taipan::{Asked, Claim, Error, Policy};

/// What is asked of files, and how they are read and checked. A panic of the library becomes a [`Failure`], too.
pub(crate) struct Checking {
    pub(crate) checker: Checker,
    pub(crate) names: Names,
    /// The levels that were asked for.
    pub(crate) asked: Vec<Asked>,
    pub(crate) reading: ReadOptions,
}

impl PolicyFlags {
    /// The library's policy.
    pub(crate) fn policy(&self, names: &Names) -> Policy {
        Policy {
            assume: self.assume.iter().copied().map(taipan::Assumption::from).collect(),
            clock_skew: self.clock_skew,
            ryow: self.ryow.into(),
            mixed: self.mixed,
            names: names.shared(),
            ..Policy::default()
        }
    }
}

impl From<Assumption> for taipan::Assumption {
    fn from(assumption: Assumption) -> Self {
        match assumption {
            Assumption::Realtime => Self::Realtime,
            Assumption::SequentialKeys => Self::SequentialKeys,
            Assumption::LinearizableKeys => Self::LinearizableKeys,
            Assumption::WfrKeys => Self::WfrKeys,
        }
    }
}

impl BoundFlags {
    /// The library's limits.
    pub(crate) fn limits(self) -> Result<Limits, String> {
        match self.max_memory.is_some() && !Limits::can_watch_memory() {
            true => Err("--max-memory needs a system with /proc".to_owned()),
            false => Ok(Limits { time: self.timeout, memory: self.max_memory }),
        }
    }
}

impl ReadingFlags {
    /// The library's options.
    pub(crate) fn options(&self) -> ReadOptions {
        ReadOptions {
            format: self.format,
            lenient: self.lenient,
            allow_empty: self.allow_empty,
            ..ReadOptions::default()
        }
    }
}

/// The library's checker.
pub(crate) fn checker(policy: Policy, limits: &LimitFlags) -> Result<Checker, String> {
    Ok(Checker { policy, limits: limits.bounds.limits()?, threads: limits.threads, ..Checker::default() })
}

impl Checking {
    /// Asks for no level by name.
    pub(crate) fn new(checker: Checker, names: Names, reading: ReadOptions) -> Self {
        Self { checker, names, asked: Vec::new(), reading }
    }

    /// The same, asking for these levels.
    pub(crate) fn at(self, levels: &[Level]) -> Result<Self, String> {
        let asked = self.names.asked(levels)?;
        Ok(Self { asked, ..self })
    }

    /// Says what levels of a profile are judged as, and what an ambiguous name means.
    pub(crate) fn say_meanings(&self, typed: &[LevelName], console: &mut Console) -> Result<(), Stop> {
        for meaning in self.names.meanings(typed) {
            console.note(meaning);
        }
        for &asked in &self.asked {
            let Some(vendor) = asked.vendor else { continue };
            let claim = self.claim(asked)?;
            let how = match vendor.logical {
                true => ", plain reads separately from locking reads and writes,",
                false => "",
            };
            let meaning = claim.level.row().map(|row| format!(" (forbids {}; {})", row.forbids, row.source));
            console.note(format_args!(
                "{} is checked{how} as {}{}",
                vendor.title(),
                claim.level,
                meaning.unwrap_or_default()
            ));
        }
        Ok(())
    }

    pub(crate) fn open(&self, file: &Path) -> Result<Opened, Failure> {
        self.open_as(file, &self.reading)
    }

    pub(crate) fn open_as(&self, file: &Path, reading: &ReadOptions) -> Result<Opened, Failure> {
        let opened = attempt(|| self.checker.open(file, reading));
        opened.map_err(|cause| Failure::new(&file.display().to_string(), cause))
    }

    pub(crate) fn accept_in_parts(&self, file: &Path) -> Option<Vec<Finding>> {
        // What went wrong here, the usual way says again.
        guarded(|| self.checker.accept_in_parts(file, &self.reading, &self.asked)).ok().flatten()
    }

    /// What is reported about a file that has no history: findings where a limit ended the reading.
    pub(crate) fn undecided(&self, failure: Failure) -> Result<Vec<Finding>, Failure> {
        match failure.cause() {
            Cause::Error(Error::Ended(ended)) => {
                self.checker.undecided(&self.asked, ended).map_err(|error| Failure::new(&ended.name, error))
            }
            _ => Err(failure),
        }
    }

    pub(crate) fn claim(&self, asked: impl Into<Asked>) -> Result<Claim, Failure> {
        self.checker.policy.claim(asked).map_err(|bad| Failure::new("", Error::Claim(bad)))
    }

    pub(crate) fn claims(&self, opened: &Opened) -> Result<Vec<Claim>, Failure> {
        self.checker.claims(&self.asked, opened).map_err(|error| Failure::new(&opened.name, error))
    }

    pub(crate) fn check(&self, opened: &Opened, claim: Claim) -> Result<Checked, Failure> {
        attempt(|| self.checker.check(opened, claim)).map_err(|cause| Failure::new(&opened.name, cause))
    }

    /// All levels; `check` answers a claim.
    pub(crate) fn all_levels(
        &self,
        opened: &Opened,
        check: impl Fn(Claim) -> Result<Checked, Failure>,
    ) -> Result<AllLevels, Failure> {
        let check = |claim| check(claim).map_err(Failure::into_cause);
        let all = guarded(|| self.checker.all_levels(opened, check)).and_then(|all| all);
        all.map_err(|cause| Failure::new(&opened.name, cause))
    }

    pub(crate) fn with_anomalies(&self, opened: &Opened, checked: Checked) -> Result<Checked, Failure> {
        let with = guarded(|| self.checker.with_anomalies(opened, checked));
        with.map_err(|cause| Failure::new(&opened.name, cause))
    }

    pub(crate) fn look_closer(
        &self,
        opened: &Opened,
        checked: &Checked,
    ) -> Result<Option<(Reduced, Part)>, Failure> {
        let closer = guarded(|| self.checker.look_closer(opened, checked));
        closer.map_err(|cause| Failure::new(&opened.name, cause))
    }

    /// What text says of a verdict: for a violation also the levels that allow it, and the commands that show more of the
    /// file.
    pub(crate) fn in_context(&self, opened: &Opened, file: Option<&Path>, checked: Checked) -> Finding {
        let claim = checked.claim;
        let is_plain = claim == Claim::new(claim.level);
        let plain = checked.finding.clone();
        let finding = guarded(|| self.checker.with_allowed(opened, checked)).unwrap_or(plain);
        match file.filter(|_| is_plain && finding.anomaly.is_some()) {
            Some(file) => finding.with_next(next_commands(file, claim.level)),
            None => finding,
        }
    }
}

/// The commands that show more of a violation.
fn next_commands(file: &Path, level: Level) -> Vec<String> {
    let file = quoted(&file.display().to_string());
    let (asked, assumed) = level.assumed();
    let mut flags = match asked == Level::SERIALIZABLE {
        true => String::new(),
        false => format!("--level {asked} "),
    };
    for what in assumed {
        flags.push_str(&format!("--assume {what} "));
    }
    vec![format!("taipan explain {flags}{file}"), format!("taipan check {flags}--report why.html {file}")]
}

/// A file name as a shell takes it.
fn quoted(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/:+@%".contains(letter);
    match !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain) {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "'\\''")),
    }
}
