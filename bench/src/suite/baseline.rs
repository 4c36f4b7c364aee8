//! The recorded baseline: the cases of a run as JSON lines, and what another run is beside them, by ratio.

use super::Case;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;

/// Ratios that differ by less than this factor are the same: so much do runs differ by themselves.
const NOISE: f64 = 1.35;
/// Cases that take less than this, beyond reading, are not compared.
const SECONDS_MIN: f64 = 0.02;

/// A case that is not what it was.
pub(crate) struct Change {
    pub(crate) name: String,
    pub(crate) before: f64,
    pub(crate) now: f64,
    /// Another verdict: that one, and this one.
    pub(crate) verdicts: Option<(String, String)>,
}

/// What a comparison comes to.
#[derive(Default)]
pub(crate) struct Changes {
    pub(crate) compared: usize,
    pub(crate) changed: Vec<Change>,
}

impl Changes {
    pub(crate) fn summary(&self) -> String {
        if self.compared == 0 {
            return "no recorded baseline to compare with; --record makes this run the baseline".to_owned();
        }
        let mut text = format!(
            "{} cases compared with the recorded baseline by their ratio to reading, {} changed by more than {NOISE}",
            self.compared,
            self.changed.len()
        );
        for change in &self.changed {
            let Change { name, before, now, verdicts } = change;
            let _ = match verdicts {
                Some((then, now)) => write!(text, "\n  {name}: was {then}, is {now}"),
                None => write!(text, "\n  {name}: {before:.1} → {now:.1}, {:.2}×", now / before),
            };
        }
        text
    }
}

pub(crate) fn load(path: &Path) -> Result<Vec<Case>, Box<dyn Error>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(path)?;
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

pub(crate) fn save(path: &Path, cases: &[Case]) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    for case in cases {
        let case = Case { samples: Vec::new(), ..case.clone() };
        writeln!(text, "{}", serde_json::to_string(&case)?)?;
    }
    Ok(std::fs::write(path, text)?)
}

/// Cases that are in both, and how they changed.
pub(crate) fn compare(before: &[Case], now: &[Case]) -> Changes {
    let known: BTreeMap<_, &Case> = before.iter().map(|case| (case.key(), case)).collect();
    let mut changes = Changes::default();
    for case in now {
        let Some(then) = known.get(&case.key()).filter(|then| then.transactions == case.transactions) else {
            continue;
        };
        changes.compared += 1;
        let verdicts = (then.verdict != case.verdict).then(|| (then.verdict.clone(), case.verdict.clone()));
        let factor = case.ratio() / then.ratio();
        let is_long = case.cpu_s - case.read_s > SECONDS_MIN || then.cpu_s - then.read_s > SECONDS_MIN;
        let is_other = is_long && case.is_decided() && !(1.0 / NOISE..=NOISE).contains(&factor);
        if verdicts.is_some() || is_other {
            let name = format!("{}, {}, {}", case.benchmark, case.series, case.input);
            changes.changed.push(Change { name, before: then.ratio(), now: case.ratio(), verdicts });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::{Case, compare};

    #[test]
    fn ratios_are_compared_and_not_seconds() {
        let case = |read_s: f64, cpu_s: f64| Case {
            benchmark: "growth".to_owned(),
            verdict: "accepted".to_owned(),
            read_s,
            cpu_s,
            ..Case::default()
        };
        let changed = |now: Case| compare(&[case(0.1, 1.0)], &[now]).changed.len();
        assert_eq!(changed(case(0.2, 2.0)), 0, "a slower machine");
        assert_eq!(changed(case(0.1, 2.0)), 1, "a slower check");
        assert_eq!(changed(case(0.1, 0.5)), 1, "a faster check");
        assert_eq!(changed(Case { verdict: "violated".to_owned(), ..case(0.1, 1.0) }), 1, "another verdict");
        let other = Case { input: "another".to_owned(), ..case(0.1, 9.0) };
        assert_eq!(compare(&[case(0.1, 1.0)], &[other]).compared, 0);
    }
}
