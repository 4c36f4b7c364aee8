//! One JSON object a finding; the shape is a contract with other programs.

use crate::{Alternative, Comparison, Finding, Step, Violation};
use checker::{By, Claim, Mark, Ryow};
use serde::Serialize;

/// The object, without a line break. Fields are in a fixed order; those that do not apply are left out.
pub fn json_line(finding: &Finding) -> String {
    let names: Vec<&str> = finding.transactions.iter().map(|member| member.name.as_str()).collect();
    let violated = finding.anomaly.is_some();
    let object = Object {
        file: &finding.file,
        level: finding.claim.level_name(),
        verdict: finding.verdict,
        anomaly: finding.anomaly.as_ref().map(|anomaly| anomaly.name.as_str()),
        common_name: finding.anomaly.as_ref().and_then(|anomaly| anomaly.common),
        known: finding.is_known,
        reason: finding.reason.as_deref(),
        transactions: violated.then_some(names),
        explanation: violated.then_some(&finding.explanation),
        support: &finding.support,
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
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    known: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a Vec<Step>>,
    #[serde(skip_serializing_if = "<[Step]>::is_empty")]
    support: &'a [Step],
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
    stats: Stats,
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
            violated_levels: part.levels(Mark::Violated),
            accepted_levels: part.levels(Mark::Accepted),
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

impl From<&checker::Coverage> for Coverage<'_> {
    fn from(coverage: &checker::Coverage) -> Self {
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
struct Stats {
    transactions: usize,
    operations: usize,
    sessions: usize,
    read_ms: f64,
    check_ms: f64,
    peak_rss_bytes: u64,
}

/// To the microsecond: more digits are noise.
fn milliseconds(time: f64) -> f64 {
    (time * 1000.0).round() / 1000.0
}
