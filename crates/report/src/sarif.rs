//! SARIF 2.1.0 (OASIS standard), for code scanning.
//!
//! A rule is a kind of anomaly at a level, explained by the book's page; a violation is a result. What is accepted or
//! undecided is no result: services such as GitHub's show every result as an alert, whatever its `kind` says. It is a
//! notification of the tool (§3.20.21), as is a file that could not be read.

use crate::book::page_of;
use crate::text::timeless;
use crate::timestamps::basis;
use crate::{Finding, Member, Named, Told, Trouble};
use isolation::VerdictKind;
use serde::Serialize;
use std::collections::BTreeMap;

/// Where pages of the book are.
const BOOK: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/book/src/");

/// Everything a run has to tell as one SARIF log.
pub fn sarif(told: &Told) -> String {
    let violated = || told.findings.iter().filter(|finding| finding.verdict == VerdictKind::Violated);
    let mut rules: Vec<Rule> = Vec::new();
    let mut results = Vec::new();
    for finding in violated() {
        let id = rule_id(finding);
        let index = rules.iter().position(|rule| rule.id == id).unwrap_or_else(|| {
            rules.push(rule(finding, id.clone()));
            rules.len() - 1
        });
        results.push(result(finding, id, index));
    }
    let others = told.findings.iter().filter(|finding| finding.verdict != VerdictKind::Violated);
    let notifications = others.map(told_of).chain(told.troubles.iter().map(notification));
    let log = Log {
        schema: "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        version: "2.1.0",
        runs: [Run {
            tool: Tool {
                driver: Driver {
                    name: "taipan",
                    version: env!("CARGO_PKG_VERSION"),
                    information_uri: env!("CARGO_PKG_REPOSITORY"),
                    rules,
                },
            },
            invocations: [Invocation {
                execution_successful: told.troubles.is_empty(),
                tool_execution_notifications: notifications.collect(),
            }],
            results,
            column_kind: "unicodeCodePoints",
        }],
    };
    serde_json::to_string_pretty(&log).expect("names and sentences always have a JSON form")
}

/// `serializable/lost-update`.
fn rule_id(finding: &Finding) -> String {
    let name = finding.anomaly.as_ref().map_or("violated", |anomaly| anomaly.name.as_str());
    let word = |letter: char| if letter.is_whitespace() { '-' } else { letter };
    format!("{}/{name}", finding.claim).replace(", ", "-").chars().map(word).collect()
}

fn rule(finding: &Finding, id: String) -> Rule {
    let claim = &finding.claim;
    let page = finding.anomaly.as_ref().and_then(page_of);
    let name = finding.anomaly.as_ref().map(Named::in_words).unwrap_or_else(|| "violated".to_owned());
    let level = format!("{claim}: {}", claim.level.promise());
    let (lead, text, markdown, path) = match page {
        Some(page) => (page.lead(), page.prose().to_owned(), page.markdown(BOOK), page.path()),
        None => ("", claim.level.definition(), claim.level.definition(), "anomalies/README.md".to_owned()),
    };
    Rule {
        id,
        short_description: Message { text: capitalized(&format!("{name}: not {claim}")) },
        full_description: Message { text: format!("{lead} Expected level: {level}. {}.", basis(claim)) },
        help: Help { text: format!("{text}\n\n{}", claim.level.definition()), markdown },
        help_uri: format!("{BOOK}{path}"),
        default_configuration: Configuration { level: "error" },
        properties: Tags { tags: vec!["isolation", "correctness"], precision: "very-high" },
    }
}

pub(crate) fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn result(finding: &Finding, rule_id: String, rule_index: usize) -> ResultObject<'_> {
    let members = &finding.transactions;
    let at = |member: &Member| Location {
        id: None,
        message: None,
        physical_location: PhysicalLocation::new(&finding.file, member.line, None),
        logical_locations: vec![logical(member)],
    };
    let whole = || Location::of(&finding.file, None, None);
    let related = members.iter().enumerate().map(|(index, member)| Location {
        id: Some(index + 1),
        message: Some(Message { text: format!("{}: {}", member.label, member.operations.join(", ")) }),
        ..at(member)
    });
    let fingerprints = finding.fingerprint.iter().flat_map(|print| {
        // GitHub recognises alerts again by the second name only.
        [("taipanArgument/v1", print.as_str()), ("primaryLocationLineHash", print.as_str())]
    });
    ResultObject {
        rule_id,
        rule_index,
        kind: "fail",
        level: "error",
        message: Message { text: timeless(finding).trim_end().to_owned() },
        locations: vec![members.first().map_or_else(whole, at)],
        related_locations: related.collect(),
        baseline_state: finding.is_known.then_some("unchanged"),
        suppressions: if finding.is_known { vec![Suppression { kind: "external" }] } else { Vec::new() },
        partial_fingerprints: fingerprints.collect(),
        properties: Properties {
            level: finding.claim.to_string(),
            checked_by: finding.claim.by.name(),
            anomaly: finding.anomaly.as_ref().map(|anomaly| anomaly.name.as_str()),
            common_name: finding.anomaly.as_ref().and_then(|anomaly| anomaly.common),
            transactions: members.iter().map(|member| member.name.as_str()).collect(),
            notes: &finding.notes,
        },
    }
}

fn logical(member: &Member) -> LogicalLocation {
    LogicalLocation {
        name: member.name.clone(),
        fully_qualified_name: format!("session {}/transaction {}", member.session, member.position),
        kind: "transaction",
    }
}

/// What is reported about a check without a violation.
fn told_of(finding: &Finding) -> Notification {
    let said = timeless(finding);
    Notification {
        level: match finding.verdict {
            VerdictKind::Accepted => "note",
            VerdictKind::Violated | VerdictKind::Undecided => "warning",
        },
        message: Message { text: format!("{}\n  {}", said.trim_end(), basis(&finding.claim)) },
        locations: vec![Location::of(&finding.file, None, None)],
    }
}

fn notification(trouble: &Trouble) -> Notification {
    Notification {
        level: "error",
        message: Message { text: trouble.message.clone() },
        locations: vec![Location::of(&trouble.file, trouble.line, trouble.column)],
    }
}

impl Location {
    fn of(file: &str, line: Option<u64>, column: Option<u64>) -> Self {
        Self {
            id: None,
            message: None,
            physical_location: PhysicalLocation::new(file, line, column),
            logical_locations: Vec::new(),
        }
    }
}

impl PhysicalLocation {
    fn new(file: &str, line: Option<u64>, column: Option<u64>) -> Self {
        let region = line.map(|start_line| Region { start_line, start_column: column });
        Self { artifact_location: Artifact { uri: uri(file) }, region }
    }
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
#[serde(rename_all = "camelCase")]
struct Driver<'a> {
    name: &'a str,
    version: &'a str,
    information_uri: &'a str,
    rules: Vec<Rule>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rule {
    id: String,
    short_description: Message,
    full_description: Message,
    help: Help,
    help_uri: String,
    default_configuration: Configuration,
    properties: Tags,
}

#[derive(Serialize)]
struct Help {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct Tags {
    tags: Vec<&'static str>,
    precision: &'static str,
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
    related_locations: Vec<Location>,
    /// `unchanged` for what is known from before.
    #[serde(skip_serializing_if = "Option::is_none")]
    baseline_state: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
    partial_fingerprints: BTreeMap<&'static str, &'a str>,
    properties: Properties<'a>,
}

/// Why a result does not count: another file keeps the list.
#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Properties<'a> {
    level: String,
    checked_by: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomaly: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    common_name: Option<&'a str>,
    transactions: Vec<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Location {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    physical_location: PhysicalLocation,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logical_locations: Vec<LogicalLocation>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LogicalLocation {
    name: String,
    fully_qualified_name: String,
    kind: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: Artifact,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<Region>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_column: Option<u64>,
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
