//! What a history must test for its acceptance to count.

use checker::Coverage;
use std::fmt;
use std::str::FromStr;

/// How much a history must test: `coverage=60`, `transactions=1000`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Requirement {
    /// How many percent of the writes another transaction read.
    Coverage(f64),
    /// How many transactions are committed.
    Transactions(u64),
}

/// What is expected instead of what is no requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRequirement(&'static str);

impl fmt::Display for BadRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}, such as coverage=60", self.0)
    }
}

impl std::error::Error for BadRequirement {}

impl FromStr for Requirement {
    type Err = BadRequirement;

    fn from_str(text: &str) -> Result<Self, BadRequirement> {
        let expected = || BadRequirement("coverage=PERCENT or transactions=N");
        let (what, number) = text.split_once('=').ok_or_else(expected)?;
        match what {
            "coverage" => {
                let percent: f64 =
                    number.strip_suffix('%').unwrap_or(number).parse().map_err(|_| expected())?;
                let is_fraction = percent > 0.0 && percent < 1.0 && !number.ends_with('%');
                match (0.0..=100.0).contains(&percent) && !is_fraction {
                    true => Ok(Self::Coverage(percent)),
                    false => Err(BadRequirement("a percentage from 1 to 100")),
                }
            }
            "transactions" => number.parse().map(Self::Transactions).map_err(|_| expected()),
            _ => Err(expected()),
        }
    }
}

impl Requirement {
    fn lack(self, committed: u64, coverage: Option<&Coverage>) -> Option<String> {
        match (self, coverage) {
            (Self::Transactions(least), _) if committed < least => {
                Some(format!("{committed} committed transactions, of {least} required"))
            }
            (Self::Transactions(_), _) => None,
            (Self::Coverage(least), None) => {
                Some(format!("coverage was not measured within the limits, {least} % is required"))
            }
            (Self::Coverage(least), Some(coverage)) => {
                let read = coverage.writes - coverage.unread;
                let percent = 100.0 * read as f64 / coverage.writes.max(1) as f64;
                (percent < least).then(|| {
                    format!(
                        "{read} of {} writes were read by another transaction, {least} % is required",
                        coverage.writes
                    )
                })
            }
        }
    }
}

/// What is missing of all that is required, if anything is.
pub(super) fn lack(required: &[Requirement], committed: u64, coverage: Option<&Coverage>) -> Option<String> {
    let lacks: Vec<String> =
        required.iter().filter_map(|requirement| requirement.lack(committed, coverage)).collect();
    (!lacks.is_empty()).then(|| format!("tests too little: {}", lacks.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_read_and_held_to() {
        let all = |texts: &[&str]| -> Vec<Requirement> {
            texts.iter().map(|text| text.parse().expect("it is one")).collect()
        };
        let coverage = Coverage { writes: 10, unread: 4, ..Coverage::default() };
        for (texts, is_met) in [
            (&["coverage=60"][..], true),
            (&["coverage=60.5%"], false),
            (&["transactions=7"], true),
            (&["transactions=8"], false),
            (&["coverage=60", "transactions=8"], false),
            (&[], true),
        ] {
            assert_eq!(lack(&all(texts), 7, Some(&coverage)).is_none(), is_met, "{texts:?}");
        }
        assert!(lack(&all(&["coverage=1"]), 7, None).is_some());
        assert!(lack(&all(&["coverage=1"]), 7, Some(&Coverage::default())).is_some(), "nothing was written");
        for text in ["coverage", "coverage=0.6", "coverage=101", "coverage=-1", "transactions=x", "keys=3"] {
            assert!(text.parse::<Requirement>().is_err(), "{text}");
        }
    }
}
