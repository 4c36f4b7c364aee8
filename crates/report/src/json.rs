//! One JSON object per finding; the shape is a contract with other programs: `docs/schema/check-output.schema.json`.

use crate::{Alternative, Cases, Comparison, Finding, Member, Search, Step, Trouble, Violation};
use isolation::{By, Claim, Ryow, VerdictKind};
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};
use std::collections::HashMap;

/// The object, without a line break. Fields are in a fixed order; those that do not apply are left out.
pub fn json_line(finding: &Finding) -> String {
    let names: Vec<&str> = finding.transactions.iter().map(|member| member.name.as_str()).collect();
    let violated = finding.anomaly.is_some();
    let (explanation, support) = numbered(&finding.explanation, &finding.support);
    let object = Object {
        file: &finding.file,
        level: finding.claim.level_name(),
        verdict: finding.verdict.name(),
        anomaly: finding.anomaly.as_ref().map(|anomaly| anomaly.name.as_str()),
        common_name: finding.anomaly.as_ref().and_then(|anomaly| anomaly.common),
        fingerprint: finding.fingerprint.as_deref(),
        known: finding.is_known,
        reason: finding.reason.as_deref(),
        transactions: violated.then_some(names),
        core: (violated && !finding.is_gathered)
            .then(|| finding.transactions.iter().map(Core::from).collect()),
        explanation: violated.then_some(explanation),
        support,
        cases: finding.cases.as_ref().map(NumberedCases::from),
        counted: finding.counted.as_deref(),
        anomalies: finding.anomalies.as_ref().map(|all| all.iter().map(Listed::from).collect()),
        coverage: finding.coverage.as_ref().map(Coverage::from),
        follows_from: finding.follows_from.as_deref(),
        by: (finding.claim.by == By::Timestamps).then_some(By::Timestamps.name()),
        policies: Policies::of(&finding.claim),
        notes: &finding.notes,
        violations: finding.by_timestamps.as_deref().filter(|all| !all.is_empty()),
        comparison: finding.comparison.as_ref(),
        part: finding.part.as_ref().map(Part::from),
        stats: Stats {
            transactions: finding.size.transactions,
            operations: finding.size.operations,
            sessions: finding.size.sessions,
            read_ms: milliseconds(finding.cost.read_ms),
            check_ms: milliseconds(finding.cost.check_ms),
            peak_rss_bytes: finding.cost.peak_rss_bytes,
            // A check by timestamps looks for no order.
            strategy: (finding.search.as_ref())
                .filter(|_| finding.claim.by == By::Results)
                .map(|search| search.strategy.name()),
            counters: finding.search.as_ref().map(Counters),
        },
    };
    serde_json::to_string(&object).expect("names, sentences and finite numbers always have a JSON form")
}

#[derive(Serialize)]
struct Object<'a> {
    file: &'a str,
    level: String,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomaly: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    common_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    known: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    core: Option<Vec<Core<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Vec<Numbered<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    support: Vec<Numbered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cases: Option<NumberedCases<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counted: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomalies: Option<Vec<Listed<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<Coverage<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    follows_from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policies: Option<Policies>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    violations: Option<&'a [Violation]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<Part<'a>>,
    stats: Stats<'a>,
}

/// A file that could not be checked as an object of its own, without a line break.
pub fn trouble_line(trouble: &Trouble) -> String {
    let Trouble { file, message, line, column } = trouble;
    let object = Unreadable { file, verdict: "error", error: message, line: *line, column: *column };
    serde_json::to_string(&object).expect("names and sentences always have a JSON form")
}

#[derive(Serialize)]
struct Unreadable<'a> {
    file: &'a str,
    verdict: &'a str,
    error: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<u64>,
}

/// A transaction of the core, with what it did as the native format writes it.
#[derive(Serialize)]
struct Core<'a> {
    label: &'a str,
    name: &'a str,
    session: &'a str,
    position: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    status: &'static str,
    transaction: Native<'a>,
}

impl<'a> From<&'a Member> for Core<'a> {
    fn from(member: &'a Member) -> Self {
        let Member { label, name, session, position, line, status, native, .. } = member;
        Self { label, name, session, position: *position, line: *line, status, transaction: Native(native) }
    }
}

/// A line of the native format, as it is.
struct Native<'a>(&'a str);

impl Serialize for Native<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut line = serde_json::Deserializer::from_str(self.0);
        serde_transcode::transcode(&mut line, serializer).map_err(S::Error::custom)
    }
}

/// A step with its number, from 1; the steps that it follows from are named by theirs.
#[derive(Serialize)]
struct Numbered<'a> {
    step: usize,
    from: Option<&'a str>,
    to: &'a str,
    edge: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    predicate: bool,
    why: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    because: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cases: Option<NumberedCases<'a>>,
}

/// A case distinction; the steps of each case are numbered by themselves.
#[derive(Serialize)]
struct NumberedCases<'a> {
    shown: Vec<NumberedCase<'a>>,
    left_out: usize,
}

/// What may be, and the steps that contradict it, or the cases into which it falls.
#[derive(Serialize)]
struct NumberedCase<'a> {
    #[serde(rename = "if")]
    suppose: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    explanation: Vec<Numbered<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    support: Vec<Numbered<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cases: Option<NumberedCases<'a>>,
}

impl<'a> From<&'a Cases> for NumberedCases<'a> {
    fn from(cases: &'a Cases) -> Self {
        let shown = cases.told.iter().map(|case| {
            let (explanation, support) = numbered(&case.explanation, &case.support);
            let cases = case.cases.as_ref().map(Self::from);
            NumberedCase { suppose: &case.suppose, explanation, support, cases }
        });
        Self { shown: shown.collect(), left_out: cases.left_out }
    }
}

/// The steps of an argument, and all those that they follow from, each once.
fn numbered<'a>(explanation: &'a [Step], support: &'a [Step]) -> (Vec<Numbered<'a>>, Vec<Numbered<'a>>) {
    let mut all: Vec<&Step> = Vec::new();
    let mut numbers = HashMap::new();
    let mut number = |step: &'a Step, all: &mut Vec<&'a Step>| {
        let what = (step.from.as_deref(), step.to.as_str(), step.edge, step.why.as_str());
        *numbers.entry(what).or_insert_with(|| {
            all.push(step);
            all.len()
        })
    };
    explanation.iter().for_each(|step| _ = number(step, &mut all));
    let argued = all.len();
    support.iter().for_each(|step| _ = number(step, &mut all));
    let mut steps: Vec<Numbered<'a>> = Vec::new();
    while let Some(&step) = all.get(steps.len()) {
        let Step { from, to, edge, key, predicate, why, because, cases, .. } = step;
        steps.push(Numbered {
            step: steps.len() + 1,
            from: from.as_deref(),
            to,
            edge,
            key: key.as_deref(),
            predicate: *predicate,
            why,
            because: because.iter().map(|step| number(step, &mut all)).collect(),
            cases: cases.as_ref().map(NumberedCases::from),
        });
    }
    let support = steps.split_off(argued);
    (steps, support)
}

/// What the checker counted: whole numbers, and times in milliseconds.
struct Counters<'a>(&'a Search);

impl Serialize for Counters<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = &self.0.stats.entries;
        let mut map = serializer.serialize_map(Some(entries.len()))?;
        for &(name, value) in entries {
            match name.ends_with("_ms") {
                true => map.serialize_entry(name, &milliseconds(value))?,
                false => map.serialize_entry(name, &(value as u64))?,
            }
        }
        map.end()
    }
}

/// The policies of a claim that are not the default ones.
#[derive(Serialize)]
struct Policies {
    #[serde(skip_serializing_if = "Option::is_none")]
    ryow: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_skew: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    mixed: bool,
    /// What a profile's level is judged as.
    #[serde(skip_serializing_if = "Option::is_none")]
    judged_as: Option<String>,
}

impl Policies {
    fn of(claim: &Claim) -> Option<Self> {
        let Claim { level, ryow, clock_skew, mixed, vendor, .. } = *claim;
        let policies = Self {
            ryow: (ryow != Ryow::default()).then_some(ryow.name()),
            clock_skew: (clock_skew != 0).then_some(clock_skew),
            mixed,
            judged_as: vendor.map(|vendor| vendor.judged_as(level)),
        };
        let Self { ryow, clock_skew, mixed, judged_as } = &policies;
        let is_plain = ryow.is_none() && clock_skew.is_none() && !mixed && judged_as.is_none();
        (!is_plain).then_some(policies)
    }
}

/// The smallest violated part.
#[derive(Serialize)]
struct Part<'a> {
    transactions: usize,
    operations: usize,
    minimal: bool,
    notation: &'a str,
    weakest_levels: Vec<&'static str>,
    violated_levels: Vec<&'static str>,
    accepted_levels: Vec<&'static str>,
    allowed_instead: &'a [Alternative],
}

impl<'a> From<&'a crate::Part> for Part<'a> {
    fn from(part: &'a crate::Part) -> Self {
        Self {
            transactions: part.transactions,
            operations: part.operations,
            minimal: part.is_minimal,
            notation: &part.notation,
            weakest_levels: part.weakest.iter().map(|level| level.name()).collect(),
            violated_levels: part.levels(VerdictKind::Violated),
            accepted_levels: part.levels(VerdictKind::Accepted),
            allowed_instead: &part.instead,
        }
    }
}

#[derive(Serialize)]
struct Listed<'a> {
    anomaly: &'a str,
    count: usize,
    transactions: &'a [String],
}

impl<'a> From<&'a crate::Listed> for Listed<'a> {
    fn from(listed: &'a crate::Listed) -> Self {
        Self { anomaly: &listed.anomaly.name, count: listed.count, transactions: &listed.transactions }
    }
}

#[derive(Serialize)]
struct Coverage<'a> {
    writes: usize,
    writes_never_read: usize,
    keys: usize,
    keys_never_shared: usize,
    reads: usize,
    scans: usize,
    reads_ambiguous: usize,
    could_not_show: Vec<&'a str>,
}

impl From<&isolation::Coverage> for Coverage<'_> {
    fn from(coverage: &isolation::Coverage) -> Self {
        Self {
            writes: coverage.writes,
            writes_never_read: coverage.unread,
            keys: coverage.keys,
            keys_never_shared: coverage.unshared,
            reads: coverage.reads,
            scans: coverage.scans,
            reads_ambiguous: coverage.ambiguous,
            could_not_show: coverage.blind_spots.iter().map(|spot| spot.anomaly).collect(),
        }
    }
}

#[derive(Serialize)]
struct Stats<'a> {
    transactions: usize,
    operations: usize,
    sessions: usize,
    read_ms: f64,
    check_ms: f64,
    peak_rss_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    strategy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counters: Option<Counters<'a>>,
}

/// To the microsecond: more digits are noise.
fn milliseconds(time: f64) -> f64 {
    (time * 1000.0).round() / 1000.0
}
