//! What was wrong before: findings of an earlier run, which do not fail this one.
//!
//! A baseline is what `taipan check --output json` printed. A violation is known if the baseline has one of the same kind
//! in the same file at the same level; which transactions showed it does not matter, for they differ from run to run.

use checker::By;
use report::Finding;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::Path;

/// The violations of an earlier run.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    known: BTreeSet<Known>,
    seen: BTreeSet<Known>,
}

/// A violation as it is recognised again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Known {
    file: String,
    level: String,
    anomaly: String,
}

/// The fields that count; the others are passed over.
#[derive(Debug, Deserialize)]
struct Line {
    file: String,
    level: String,
    by: Option<String>,
    verdict: String,
    anomaly: Option<String>,
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
            let Line { file, level, by, verdict, anomaly, anomalies } =
                serde_json::from_str(line).map_err(|error| (index + 1, error))?;
            let level = by.map_or(level.clone(), |by| format!("{level} by {by}"));
            if verdict != "violated" {
                continue;
            }
            let names = anomaly.into_iter().chain(anomalies.into_iter().map(|listed| listed.anomaly));
            baseline.known.extend(names.map(|anomaly| Known {
                file: file.clone(),
                level: level.clone(),
                anomaly,
            }));
        }
        Ok(baseline)
    }

    /// Whether all that is wrong in a finding was wrong before.
    pub(crate) fn knows(&mut self, finding: &Finding) -> bool {
        let named = finding.anomaly.iter().chain(finding.anomalies.iter().flatten().map(|it| &it.anomaly));
        let claim = &finding.claim;
        let asked = match claim.by {
            By::Results => claim.level_name(),
            By::Timestamps => format!("{} by {}", claim.level_name(), claim.by.name()),
        };
        let mut all = true;
        for anomaly in named {
            let known =
                Known { file: finding.file.clone(), level: asked.clone(), anomaly: anomaly.name.clone() };
            all &= self.known.contains(&known);
            self.seen.insert(known);
        }
        all && finding.anomaly.is_some()
    }

    /// What was wrong before and was not seen now, in words.
    pub(crate) fn gone(&self) -> Vec<String> {
        let gone = self.known.difference(&self.seen);
        gone.map(|known| format!("{}: {}: {}", known.file, known.level, known.anomaly)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Baseline;

    #[test]
    fn only_violations_count() {
        let text = "{\"file\":\"a\",\"level\":\"serializable\",\"verdict\":\"violated\",\"anomaly\":\"G2\",\"more\":1}\n\n\
                    {\"file\":\"a\",\"level\":\"causal\",\"verdict\":\"accepted\"}\n";
        let baseline = Baseline::parse(text).expect("two lines");
        assert_eq!(baseline.gone(), ["a: serializable: G2"]);
        let (line, _) = Baseline::parse("\n{\"file\":1}").expect_err("no such line");
        assert_eq!(line, 2);
    }
}
