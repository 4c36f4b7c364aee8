//! One JSON object a finding; the shape is a contract with other programs.

use crate::{Finding, Step};
use serde::Serialize;

/// The object, without a line break. Fields are in a fixed order; those that do not apply are left out.
pub fn json_line(finding: &Finding) -> String {
    let names: Vec<&str> = finding.transactions.iter().map(|member| member.name.as_str()).collect();
    let violated = finding.anomaly.is_some();
    let object = Object {
        file: &finding.file,
        level: &finding.level,
        verdict: finding.verdict,
        anomaly: finding.anomaly.as_ref().map(|anomaly| anomaly.name.as_str()),
        common_name: finding.anomaly.as_ref().and_then(|anomaly| anomaly.common),
        reason: finding.reason.as_deref(),
        transactions: violated.then_some(names),
        explanation: violated.then_some(&finding.explanation),
        support: &finding.support,
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
    level: &'a str,
    verdict: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomaly: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    common_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transactions: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<&'a Vec<Step>>,
    #[serde(skip_serializing_if = "<[Step]>::is_empty")]
    support: &'a [Step],
    stats: Stats,
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
