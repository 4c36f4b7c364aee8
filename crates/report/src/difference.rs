//! Two runs compared: levels, anomalies, and how much was tested.
//!
//! A run is what `taipan check --output json` prints, so that a run of last week can be compared with one of today whether
//! or not its histories are still there.

use crate::printable;
use isolation::VerdictKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What one run said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What it is called: the history, or the file with its results.
    pub name: String,
    lines: Vec<Line>,
}

/// What was said of one history at one level; other fields are passed over.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Line {
    file: String,
    level: String,
    verdict: VerdictKind,
    anomaly: Option<String>,
    #[serde(default)]
    anomalies: Vec<Listed>,
    coverage: Option<Coverage>,
    stats: Stats,
}

/// A line of results.
enum Said {
    Finding(Box<Line>),
    /// A file could not be checked, and there is nothing to compare.
    Unreadable,
}

impl Said {
    fn parse(line: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Unreadable {
            #[serde(rename = "file")]
            _file: String,
            #[serde(rename = "error")]
            _error: String,
        }
        match serde_json::from_str(line) {
            Ok(line) => Ok(Self::Finding(Box::new(line))),
            Err(_) if serde_json::from_str::<Unreadable>(line).is_ok() => Ok(Self::Unreadable),
            Err(error) => Err(error),
        }
    }

    fn finding(self) -> Option<Line> {
        match self {
            Self::Finding(line) => Some(*line),
            Self::Unreadable => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Listed {
    anomaly: String,
    count: u64,
}

/// How much was tested.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Coverage {
    writes: u64,
    writes_never_read: u64,
    keys: u64,
    keys_never_shared: u64,
    reads: u64,
    #[serde(default)]
    scans: u64,
    reads_ambiguous: u64,
    could_not_show: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stats {
    transactions: u64,
    operations: u64,
    sessions: u64,
}

impl Run {
    /// From the lines of `taipan check --output json`; the number of the first line that is none, and why.
    pub fn parse(name: &str, text: &str) -> Result<Self, (usize, String)> {
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let parsed = lines.map(|(index, line)| match Said::parse(line) {
            Ok(said) => Ok(said.finding()),
            Err(error) => Err((index + 1, error.to_string())),
        });
        let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
        Ok(Self { name: name.to_owned(), lines: parsed.into_iter().flatten().collect() })
    }

    /// Whether a text looks like results, not like a history.
    pub fn is_like(text: &str) -> bool {
        let first = text.lines().find(|line| !line.trim().is_empty());
        first.is_some_and(|line| Said::parse(line).is_ok())
    }

    /// Whether it is about one history.
    fn is_single(&self) -> bool {
        self.lines.windows(2).all(|pair| pair[0].file == pair[1].file)
    }

    /// What was said, by history (if there are several) and level.
    fn by_place(&self, by_file: bool) -> BTreeMap<(String, &str), &Line> {
        let file = |line: &Line| if by_file { line.file.clone() } else { String::new() };
        self.lines.iter().map(|line| ((file(line), line.level.as_str()), line)).collect()
    }
}

/// How two runs differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    a: String,
    b: String,
    /// Whether they say the same of every level they both speak of.
    same: bool,
    /// How many verdicts are the same.
    alike: usize,
    changes: Vec<Change>,
    /// What only one of them speaks of.
    only_a: Vec<String>,
    only_b: Vec<String>,
    tested: Vec<Tested>,
}

/// A level of which the runs say different things.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Change {
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    level: String,
    a: String,
    b: String,
}

/// A number that says how much was tested, where it differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Tested {
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    what: &'static str,
    a: String,
    b: String,
}

/// Compares two runs. Histories are matched by name, unless each run has only one.
pub fn difference(a: &Run, b: &Run) -> Difference {
    let by_file = !(a.is_single() && b.is_single());
    let (of_a, of_b) = (a.by_place(by_file), b.by_place(by_file));
    let place = |(file, level): &(String, &str)| match file.as_str() {
        "" => (*level).to_owned(),
        file => format!("{file}: {level}"),
    };
    let only = |these: &BTreeMap<(String, &str), &Line>, those: &BTreeMap<(String, &str), &Line>| {
        these.keys().filter(|key| !those.contains_key(*key)).map(place).collect::<Vec<_>>()
    };
    let mut difference = Difference {
        a: a.name.clone(),
        b: b.name.clone(),
        same: true,
        alike: 0,
        changes: Vec::new(),
        only_a: only(&of_a, &of_b),
        only_b: only(&of_b, &of_a),
        tested: Vec::new(),
    };
    let mut last_file = None;
    for ((file, level), line) in &of_a {
        let Some(other) = of_b.get(&(file.clone(), *level)) else { continue };
        let (said, says) = (verdict(line), verdict(other));
        if said == says {
            difference.alike += 1;
        } else {
            let change = Change { file: file.clone(), level: (*level).to_owned(), a: said, b: says };
            difference.changes.push(change);
        }
        if last_file.as_ref() != Some(file) {
            difference.tested.extend(tested(file, line, other));
            last_file = Some(file.clone());
        }
    }
    difference.same = difference.changes.is_empty();
    difference
}

/// `violated: G2-item`, with every kind and its count where they were listed.
fn verdict(line: &Line) -> String {
    let kinds: Vec<String> =
        line.anomalies.iter().map(|listed| format!("{} × {}", listed.count, listed.anomaly)).collect();
    match (&line.anomaly, kinds.is_empty()) {
        (Some(anomaly), true) => format!("{}: {anomaly}", line.verdict),
        (_, false) => format!("{}: {}", line.verdict, kinds.join(", ")),
        (None, true) => line.verdict.to_string(),
    }
}

fn tested(file: &str, a: &Line, b: &Line) -> Vec<Tested> {
    let of_stats = |line: &Line| {
        let Stats { transactions, operations, sessions } = line.stats;
        vec![("transactions", transactions), ("operations", operations), ("sessions", sessions)]
    };
    let of_coverage = |line: &Line| {
        line.coverage.as_ref().map(|coverage| {
            vec![
                ("writes", coverage.writes),
                ("writes never read by another transaction", coverage.writes_never_read),
                ("keys", coverage.keys),
                ("keys used by only one session", coverage.keys_never_shared),
                ("reads", coverage.reads),
                ("range and predicate reads", coverage.scans),
                ("reads with several possible writers", coverage.reads_ambiguous),
            ]
        })
    };
    let mut pairs: Vec<_> = of_stats(a).into_iter().zip(of_stats(b)).collect();
    let mut differing = Vec::new();
    if let (Some(of_a), Some(of_b)) = (of_coverage(a), of_coverage(b)) {
        pairs.extend(of_a.into_iter().zip(of_b));
    }
    for ((what, a), (_, b)) in pairs {
        if a != b {
            differing.push(Tested { file: file.to_owned(), what, a: a.to_string(), b: b.to_string() });
        }
    }
    if let (Some(a), Some(b)) = (&a.coverage, &b.coverage)
        && a.could_not_show != b.could_not_show
    {
        let list = |names: &[String]| if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let (a, b) = (list(&a.could_not_show), list(&b.could_not_show));
        differing.push(Tested { file: file.to_owned(), what: "not exercised", a, b });
    }
    differing
}

impl Difference {
    /// Whether the runs say the same of every level they both speak of.
    pub fn is_none(&self) -> bool {
        self.same
    }

    /// Whether there is nothing that both speak of, so that nothing was compared.
    pub fn shares_nothing(&self) -> bool {
        self.alike == 0 && self.changes.is_empty()
    }

    /// One JSON object.
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers always have a JSON form")
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing into a string cannot fail.
        let _ = self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let of = |file: &str| if file.is_empty() { String::new() } else { format!("{}: ", printable(file)) };
        writeln!(out, "A {}\nB {}", printable(&self.a), printable(&self.b))?;
        for Change { file, level, a, b } in &self.changes {
            writeln!(out, "  {}{level}: {a} → {b}", of(file))?;
        }
        match (self.changes.len(), self.alike) {
            (0, alike) => writeln!(out, "  no change at {}", levels("", alike))?,
            (_, 0) => {}
            (_, alike) => writeln!(out, "  {}: no change", levels("other ", alike))?,
        }
        for (name, only) in [("A", &self.only_a), ("B", &self.only_b)] {
            if !only.is_empty() {
                writeln!(out, "  only {name} was checked at {}", printable(&only.join(", ")))?;
            }
        }
        for Tested { file, what, a, b } in &self.tested {
            writeln!(out, "  {}{what}: {a} → {b}", of(file))?;
        }
        Ok(())
    }
}

fn levels(which: &str, count: usize) -> String {
    if count == 1 { format!("1 {which}level") } else { format!("{count} {which}levels") }
}

#[cfg(test)]
mod tests {
    use super::{Run, difference};

    fn run(name: &str, lines: &[(&str, &str, &str, u32)]) -> Run {
        let line = |(file, level, verdict, count): &(&str, &str, &str, u32)| {
            let (verdict, anomaly) = verdict.split_once(' ').unwrap_or((verdict, ""));
            let anomaly =
                if anomaly.is_empty() { String::new() } else { format!("\"anomaly\":\"{anomaly}\",") };
            format!(
                "{{\"file\":\"{file}\",\"level\":\"{level}\",\"verdict\":\"{verdict}\",{anomaly}\"stats\":\
                 {{\"transactions\":{count},\"operations\":9,\"sessions\":2,\"read_ms\":1.5}}}}\n"
            )
        };
        let text: String = lines.iter().map(line).collect();
        assert!(Run::is_like(&text));
        Run::parse(name, &text).expect("lines of a run")
    }

    #[test]
    fn one_history_each_is_compared_whatever_its_name() {
        let a = run("a", &[("a", "causal", "accepted", 5), ("a", "serializable", "accepted", 5)]);
        let b = run("b", &[("b", "causal", "accepted", 7), ("b", "serializable", "violated G2", 7)]);
        let found = difference(&a, &b);
        assert!(!found.is_none());
        assert_eq!(
            found.text(),
            "A a\nB b\n  serializable: accepted → violated: G2\n  1 other level: no change\n  \
             transactions: 5 → 7\n"
        );
        assert!(difference(&a, &a).is_none());
    }

    #[test]
    fn several_histories_are_matched_by_name() {
        let a = run("a", &[("x", "causal", "accepted", 5), ("y", "causal", "violated G1c", 5)]);
        let b = run("b", &[("y", "causal", "violated G-single", 5), ("z", "causal", "accepted", 5)]);
        assert_eq!(
            difference(&a, &b).text(),
            "A a\nB b\n  y: causal: violated: G1c → violated: G-single\n  only A was checked at x: causal\n  \
             only B was checked at z: causal\n"
        );
    }

    #[test]
    fn histories_are_no_results() {
        assert!(!Run::is_like("{\"session\":1,\"ops\":[]}\n"));
        assert!(!Run::is_like(""));
        assert_eq!(Run::parse("a", "\nx\n").map_err(|(line, _)| line), Err(2));
    }
}
