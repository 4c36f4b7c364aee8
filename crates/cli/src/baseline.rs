//! What was wrong before: findings of an earlier run, which do not fail this one.
//!
//! A baseline is what `taipan check --output json` printed. A violation is known if the baseline has one with the same
//! fingerprint in the same file: the level, the kind and the shape of the argument. Which transactions showed it does not
//! matter, for they differ from run to run. Where the baseline has no fingerprint of the kind, the kind suffices.

use checker::{By, VerdictKind};
use report::Finding;
use serde::Deserialize;
use serde::de::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The violations of an earlier run, and what was checked in this one.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    /// With the fingerprints of their arguments; none where any shape is known.
    known: BTreeMap<Kind, BTreeSet<String>>,
    seen: BTreeSet<Kind>,
    /// Files and levels that were decided in this run.
    checked: BTreeSet<(String, String)>,
}

/// A kind of violation as it is recognised again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    file: String,
    level: String,
    anomaly: String,
}

/// The fields that count; the others are passed over. A file that could not be read has no level.
#[derive(Debug, Deserialize)]
struct Line {
    file: String,
    #[serde(default)]
    level: String,
    by: Option<String>,
    verdict: String,
    error: Option<String>,
    anomaly: Option<String>,
    fingerprint: Option<String>,
    #[serde(default)]
    anomalies: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
struct Listed {
    anomaly: String,
}

impl Baseline {
    /// Reads a baseline.
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read the baseline {}: {error}", path.display()))?;
        Self::parse(&text).map_err(|(line, error)| {
            format!(
                "{}:{line}: not a line of `taipan check --output json`: {error}; create a baseline with `taipan check --output json FILE… > {}`",
                path.display(),
                path.display()
            )
        })
    }

    fn parse(text: &str) -> Result<Self, (usize, serde_json::Error)> {
        let mut baseline = Self::default();
        for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let line: Line = serde_json::from_str(line).map_err(|error| (index + 1, error))?;
            if line.error.is_some() {
                continue;
            }
            let verdict = line.verdict.parse().map_err(|error: String| (index + 1, Error::custom(error)))?;
            match verdict {
                VerdictKind::Violated => baseline.take(line),
                VerdictKind::Accepted | VerdictKind::Undecided => {}
            }
        }
        Ok(baseline)
    }

    fn take(&mut self, line: Line) {
        let Line { file, level, by, anomaly, fingerprint, anomalies, .. } = line;
        let level = by.map_or(level.clone(), |by| format!("{level} by {by}"));
        let kind = |anomaly: String| Kind { file: file.clone(), level: level.clone(), anomaly };
        if let Some(anomaly) = anomaly {
            self.known.entry(kind(anomaly)).or_default().extend(fingerprint);
        }
        for listed in anomalies {
            self.known.entry(kind(listed.anomaly)).or_default();
        }
    }

    /// Whether all that is wrong in a finding was wrong before. The finding counts as checked in this run.
    pub(crate) fn knows(&mut self, finding: &Finding) -> bool {
        let claim = &finding.claim;
        let level = match claim.by {
            By::Results => claim.level_name(),
            By::Timestamps => format!("{} by {}", claim.level_name(), claim.by.name()),
        };
        let file = &finding.file;
        if finding.verdict != VerdictKind::Undecided {
            self.checked.insert((file.clone(), level.clone()));
        }
        let kind =
            |anomaly: &str| Kind { file: file.clone(), level: level.clone(), anomaly: anomaly.to_owned() };
        let mut all = true;
        for listed in finding.anomalies.iter().flatten() {
            let kind = kind(&listed.anomaly.name);
            all &= self.known.contains_key(&kind);
            self.seen.insert(kind);
        }
        let Some(anomaly) = &finding.anomaly else { return false };
        let kind = kind(&anomaly.name);
        let has_shape = |known: &BTreeSet<String>| {
            known.is_empty() || finding.fingerprint.as_ref().is_some_and(|print| known.contains(print))
        };
        all &= self.known.get(&kind).is_some_and(has_shape);
        self.seen.insert(kind);
        all
    }

    /// What was wrong before and was not seen now though it was looked for, in words.
    pub(crate) fn gone(&self) -> Vec<String> {
        let was_checked = |kind: &&Kind| self.checked.contains(&(kind.file.clone(), kind.level.clone()));
        let gone = self.known.keys().filter(|kind| !self.seen.contains(kind)).filter(was_checked);
        gone.map(|kind| format!("{}: {}: {}", kind.file, kind.level, kind.anomaly)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Baseline;
    use checker::{Claim, Level, Options, VerdictKind, check};
    use history::formats::notation;
    use report::{Cost, Finding};

    fn finding(file: &str, level: &str, text: &str) -> Finding {
        let level = Level::parse(level).expect("a level");
        let history = notation::parse(text).expect("well written");
        let verdict = check(&history, level, &Options::default()).verdict;
        Finding::new(file, Claim::new(level), &history, &verdict, Cost::default())
    }

    fn baseline(findings: &[&Finding]) -> Baseline {
        let lines: Vec<String> = findings.iter().map(|finding| report::json_line(finding)).collect();
        Baseline::parse(&lines.join("\n")).expect("what is printed is read")
    }

    const SKEW: &str = "init: x=0 y=0\ns1: r(x,0) w(y,1)\ns2: r(y,0) w(x,1)\n";
    const OTHER_SKEW: &str = "init: k=7 l=7\nb: r(l,7) w(k,9)\n\na: r(k,7) w(l,8)\n";
    const LONGER: &str = "init: x=0 y=0 z=0\ns1: r(x,0) w(y,1)\ns2: r(y,0) w(z,1)\ns3: r(z,0) w(x,1)\n";
    const FINE: &str = "s1: w(x,1)\ns2: r(x,1)\n";

    #[test]
    fn what_is_known_is_of_the_same_shape() {
        let mut known = baseline(&[&finding("a", "serializable", SKEW)]);
        assert!(known.knows(&finding("a", "serializable", SKEW)));
        assert!(known.knows(&finding("a", "serializable", OTHER_SKEW)), "names and places are chance");
        let longer = finding("a", "serializable", LONGER);
        assert_eq!(longer.anomaly.as_ref().map(|anomaly| anomaly.name.as_str()), Some("G2-item"));
        assert!(!known.knows(&longer), "a longer cycle is another bug");
        assert!(!known.knows(&finding("b", "serializable", SKEW)));
        assert!(!known.knows(&finding("a", "repeatable-read", SKEW)));
        assert!(!known.knows(&finding("a", "serializable", FINE)), "nothing is wrong that could be known");
    }

    #[test]
    fn a_line_without_a_fingerprint_is_of_any_shape() {
        let line =
            "{\"file\":\"a\",\"level\":\"serializable\",\"verdict\":\"violated\",\"anomaly\":\"G2-item\"}";
        let mut known = Baseline::parse(line).expect("a line");
        assert!(known.knows(&finding("a", "serializable", SKEW)));
        assert!(known.knows(&finding("a", "serializable", LONGER)));
    }

    #[test]
    fn gone_is_only_what_was_checked() {
        let was = [finding("a", "serializable", SKEW), finding("a", "repeatable-read", SKEW)];
        let lost = finding("b", "serializable", "init: x=0\ns1: r(x,0) w(x,1)\ns2: r(x,0) w(x,2)\n");
        let mut known = baseline(&[&was[0], &was[1], &lost]);
        assert_eq!(known.gone(), Vec::<String>::new(), "nothing was checked yet");
        known.knows(&finding("a", "serializable", FINE));
        assert_eq!(known.gone(), ["a: serializable: G2-item"]);
        let open = finding("b", "serializable", FINE);
        let open = Finding { verdict: VerdictKind::Undecided, reason: Some("timed out".to_owned()), ..open };
        known.knows(&open);
        assert_eq!(known.gone().len(), 1, "what is undecided may still be there");
        known.knows(&lost);
        assert_eq!(known.gone(), ["a: serializable: G2-item"]);
    }

    #[test]
    fn lines_of_unreadable_files_are_passed_over() {
        let text = "{\"file\":\"a\",\"verdict\":\"error\",\"error\":\"a: no such file\"}\n\n";
        assert!(Baseline::parse(text).expect("a line").gone().is_empty());
        let (line, _) = Baseline::parse("\n{\"file\":1}").expect_err("no such line");
        assert_eq!(line, 2);
        let text = "{\"file\":\"a\",\"level\":\"serializable\",\"verdict\":\"refused\"}";
        let (line, error) = Baseline::parse(text).expect_err("no such verdict");
        assert!(line == 1 && error.to_string().contains("unknown verdict \"refused\""), "{error}");
    }
}
