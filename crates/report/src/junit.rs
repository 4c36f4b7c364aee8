//! JUnit XML: a suite per file, a test case per level.
//!
//! What is written is valid against both schemas that services go by: that of Apache Ant (which requires more) and that
//! of Jenkins' xUnit plugin (which allows less at the root). So the root has no attributes, and every suite has all of
//! them, its properties first, then the cases, then both outputs.

use crate::text::timeless;
use crate::timestamps::basis;
use crate::{Finding, Told, Trouble};
use isolation::VerdictKind;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::io;
use std::time::SystemTime;

/// Everything a run has to tell as JUnit XML. A violation is a failure, one that is known from before is skipped; an
/// undecided check and a file that could not be read are errors, of type `undecided` and `unreadable`.
pub fn junit(told: &Told) -> String {
    let told = &told.printable();
    let mut suites: Vec<Suite<'_>> = Vec::new();
    for finding in &told.findings {
        suite(&mut suites, &finding.file).take(finding);
    }
    for trouble in &told.troubles {
        suite(&mut suites, &trouble.file).take_trouble(trouble);
    }
    let began = told.began.unwrap_or(SystemTime::UNIX_EPOCH);
    let began = humantime::format_rfc3339_seconds(began).to_string();
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 4);
    write(&mut writer, &suites, began.trim_end_matches('Z')).expect("a writer in memory does not fail");
    String::from_utf8(writer.into_inner()).expect("what is written is text")
}

/// The cases of a file.
struct Suite<'t> {
    file: &'t str,
    /// What the order of transactions is judged by.
    by: Option<&'static str>,
    cases: Vec<Case<'t>>,
    /// What was said of those that did not fail.
    said: String,
}

struct Case<'t> {
    file: &'t str,
    name: String,
    ms: f64,
    result: Outcome,
}

enum Outcome {
    Passed,
    /// With an element of this name in the case.
    Not {
        element: &'static str,
        /// The schemas give a skipped case none.
        kind: Option<String>,
        message: String,
        text: String,
    },
}

/// The suite of a file, made if it is new. Findings of one file come together, so the last is asked first.
fn suite<'s, 't>(suites: &'s mut Vec<Suite<'t>>, file: &'t str) -> &'s mut Suite<'t> {
    let found = suites.iter().rposition(|suite| suite.file == file);
    let place = found.unwrap_or_else(|| {
        suites.push(Suite { file, by: None, cases: Vec::new(), said: String::new() });
        suites.len() - 1
    });
    &mut suites[place]
}

impl<'t> Suite<'t> {
    fn take(&mut self, finding: &'t Finding) {
        let Finding { file, claim, cost, .. } = finding;
        let text = timeless(finding);
        let anomaly = finding.anomaly.as_ref().map(ToString::to_string).unwrap_or_default();
        let result = match finding.verdict {
            VerdictKind::Accepted => Outcome::Passed,
            VerdictKind::Violated if finding.is_known => Outcome::Not {
                element: "skipped",
                kind: None,
                message: format!("{claim}: violated as before: {anomaly}"),
                text: text.clone(),
            },
            VerdictKind::Violated => Outcome::Not {
                element: "failure",
                kind: Some(
                    finding.anomaly.as_ref().map_or(finding.verdict.name(), |it| it.name.as_str()).to_owned(),
                ),
                message: format!("{claim}: violated: {anomaly}"),
                text: text.clone(),
            },
            VerdictKind::Undecided => {
                let reason = finding.reason.as_deref().unwrap_or_default();
                let message = format!("{claim}: undecided: {}", first_line(reason));
                Outcome::Not {
                    element: "error",
                    kind: Some(finding.verdict.to_string()),
                    message,
                    text: text.clone(),
                }
            }
        };
        if matches!(result, Outcome::Passed) {
            self.said += &text;
        }
        if self.by.is_none() {
            self.said += &format!("{}\n", basis(claim));
            self.by = Some(claim.by.name());
        }
        self.cases.push(Case { file, name: claim.to_string(), ms: cost.check_ms.max(0.0), result });
    }

    fn take_trouble(&mut self, trouble: &'t Trouble) {
        let result = Outcome::Not {
            element: "error",
            kind: Some("unreadable".to_owned()),
            message: first_line(&trouble.message).to_owned(),
            text: trouble.message.clone(),
        };
        self.cases.push(Case { file: &trouble.file, name: "read".to_owned(), ms: 0.0, result });
    }

    fn count(&self, wanted: &str) -> String {
        let is = |case: &&Case<'_>| matches!(case.result, Outcome::Not { element, .. } if element == wanted);
        self.cases.iter().filter(is).count().to_string()
    }
}

fn write(writer: &mut Writer<Vec<u8>>, suites: &[Suite<'_>], began: &str) -> io::Result<()> {
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer.create_element("testsuites").write_inner_content(|writer| {
        suites.iter().enumerate().try_for_each(|(id, suite)| write_suite(writer, suite, id, began))
    })?;
    Ok(())
}

fn write_suite(writer: &mut Writer<Vec<u8>>, suite: &Suite<'_>, id: usize, began: &str) -> io::Result<()> {
    // Of what is written, so that it is the sum of what is read.
    let time: f64 = suite.cases.iter().map(|case| case.ms.round()).sum();
    let attributes = [
        ("id", id.to_string()),
        ("package", "taipan".to_owned()),
        ("name", suite.file.to_owned()),
        ("timestamp", began.to_owned()),
        ("hostname", "localhost".to_owned()),
        ("tests", suite.cases.len().to_string()),
        ("failures", suite.count("failure")),
        ("errors", suite.count("error")),
        ("skipped", suite.count("skipped")),
        ("time", seconds(time)),
    ];
    let element = writer.create_element("testsuite");
    let element = element.with_attributes(attributes.iter().map(|(name, value)| (*name, value.as_str())));
    element.write_inner_content(|writer| {
        let mut properties = vec![("taipan", env!("CARGO_PKG_VERSION"))];
        properties.extend(suite.by.map(|by| ("checked by", by)));
        writer.create_element("properties").write_inner_content(|writer| {
            properties.iter().try_for_each(|&(name, value)| {
                let property = writer.create_element("property");
                property.with_attributes([("name", name), ("value", value)]).write_empty().map(|_| ())
            })
        })?;
        suite.cases.iter().try_for_each(|case| write_case(writer, case))?;
        writer.create_element("system-out").write_text_content(BytesText::new(&suite.said))?;
        writer.create_element("system-err").write_text_content(BytesText::new(""))?;
        Ok(())
    })?;
    Ok(())
}

fn write_case(writer: &mut Writer<Vec<u8>>, case: &Case<'_>) -> io::Result<()> {
    let time = seconds(case.ms);
    let element = writer.create_element("testcase").with_attributes([
        ("name", case.name.as_str()),
        ("classname", case.file),
        ("time", time.as_str()),
    ]);
    match &case.result {
        Outcome::Passed => element.write_empty()?,
        Outcome::Not { element: name, kind, message, text } => element.write_inner_content(|writer| {
            let attributes = kind.iter().map(|kind| ("type", kind.as_str()));
            let attributes = attributes.chain([("message", message.as_str())]);
            let inner = writer.create_element(*name).with_attributes(attributes);
            inner.write_text_content(BytesText::new(text)).map(|_| ())
        })?,
    };
    Ok(())
}

/// To the millisecond: the schemas take no more digits.
fn seconds(ms: f64) -> String {
    format!("{:.3}", ms.round() / 1e3)
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
