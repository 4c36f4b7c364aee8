//! SARIF 2.1.0 (OASIS standard), for code scanning.
//!
//! A rule is an isolation level: "the history has an explanation at this level". A violated level is a result of kind
//! `fail`, an accepted one `pass`, an undecided one `open` (SARIF §3.27.9). A file that could not be read is a
//! notification of the tool (§3.20.21).

use crate::text::timeless;
use crate::{Finding, Told, Trouble};
use serde::Serialize;

/// Everything a run has to tell as one SARIF log.
pub fn sarif(told: &Told) -> String {
    let mut claims: Vec<String> = Vec::new();
    for finding in &told.findings {
        let claim = finding.claim.to_string();
        if !claims.contains(&claim) {
            claims.push(claim);
        }
    }
    let log = Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: "taipan",
                    version: env!("CARGO_PKG_VERSION"),
                    rules: claims.iter().map(|claim| rule(claim)).collect(),
                },
            },
            invocations: [Invocation {
                execution_successful: told.troubles.is_empty(),
                tool_execution_notifications: told.troubles.iter().map(notification).collect(),
            }],
            results: told
                .findings
                .iter()
                .map(|finding| {
                    let asked = finding.claim.to_string();
                    let index = claims.iter().position(|claim| *claim == asked);
                    result(finding, index.expect("every finding's claim was collected above"))
                })
                .collect(),
            column_kind: "unicodeCodePoints",
        }],
    };
    serde_json::to_string_pretty(&log).expect("names and sentences always have a JSON form")
}

fn rule(level: &str) -> Rule<'_> {
    Rule {
        id: level,
        short_description: Message { text: format!("The history has an explanation at the level {level}") },
        default_configuration: Configuration { level: "error" },
    }
}

fn result(finding: &Finding, rule_index: usize) -> ResultObject<'_> {
    let (kind, level) = match finding.verdict {
        "accepted" => ("pass", "none"),
        "violated" => ("fail", "error"),
        _ => ("open", "none"),
    };
    ResultObject {
        rule_id: finding.claim.to_string(),
        rule_index,
        kind,
        level,
        message: Message { text: timeless(finding).trim_end().to_owned() },
        locations: vec![location(&finding.file)],
        baseline_state: finding.is_known.then_some("unchanged"),
        suppressions: if finding.is_known { vec![Suppression { kind: "external" }] } else { Vec::new() },
        partial_fingerprints: finding.anomaly.as_ref().map(|anomaly| {
            let names: Vec<&str> = finding.transactions.iter().map(|member| member.name.as_str()).collect();
            Fingerprints { core: format!("{}/{}/{}", finding.claim, anomaly.name, names.join(",")) }
        }),
        properties: finding.anomaly.as_ref().map(|anomaly| Properties {
            anomaly: &anomaly.name,
            common_name: anomaly.common,
            transactions: finding.transactions.iter().map(|member| member.name.as_str()).collect(),
        }),
    }
}

fn notification(trouble: &Trouble) -> Notification {
    Notification {
        level: "error",
        message: Message { text: trouble.message.clone() },
        locations: vec![location(&trouble.file)],
    }
}

fn location(file: &str) -> Location {
    Location { physical_location: PhysicalLocation { artifact_location: Artifact { uri: uri(file) } } }
}

/// A file name as a relative reference (RFC 3986): everything but unreserved characters and `/` is escaped.
fn uri(file: &str) -> String {
    let mut out = String::new();
    for byte in file.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                out.push(byte as char)
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[derive(Serialize)]
struct Log<'a> {
    #[serde(rename = "$schema")]
    schema: &'a str,
    version: &'a str,
    runs: [Run<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run<'a> {
    tool: Tool<'a>,
    invocations: [Invocation; 1],
    results: Vec<ResultObject<'a>>,
    column_kind: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    driver: Driver<'a>,
}

#[derive(Serialize)]
struct Driver<'a> {
    name: &'a str,
    version: &'a str,
    rules: Vec<Rule<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule<'a> {
    id: &'a str,
    short_description: Message,
    default_configuration: Configuration<'a>,
}

#[derive(Serialize)]
struct Configuration<'a> {
    level: &'a str,
}

#[derive(Serialize)]
struct Message {
    text: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
struct Notification {
    level: &'static str,
    message: Message,
    locations: Vec<Location>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultObject<'a> {
    rule_id: String,
    rule_index: usize,
    kind: &'a str,
    level: &'a str,
    message: Message,
    locations: Vec<Location>,
    /// `unchanged` for what is known from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
    #[serde(skip_serializing_if = "Option::is_none")]
    partial_fingerprints: Option<Fingerprints>,
    #[serde(skip_serializing_if = "Option::is_none")]
    properties: Option<Properties<'a>>,
}

/// Why a result does not count: somebody else keeps the list.
#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
}

#[derive(Serialize)]
struct Fingerprints {
    #[serde(rename = "taipanCore/v1")]
    core: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    anomaly: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    common_name: Option<&'a str>,
    transactions: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    physical_location: PhysicalLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: Artifact,
}

#[derive(Serialize)]
struct Artifact {
    uri: String,
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn file_names_become_references() {
        assert_eq!(uri("a/b-c_1.jsonl"), "a/b-c_1.jsonl");
        assert_eq!(uri("my file#1.jsonl"), "my%20file%231.jsonl");
        assert_eq!(uri("ü"), "%C3%BC");
    }
}
