//! JUnit XML: a suite a file, a test case a level.

use crate::text::timeless;
use crate::{Finding, Told};
use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// Everything a run has to tell as JUnit XML. A violation is a failure, one that is known from before is
/// skipped; an undecided check and a file that could not be read are errors.
pub fn junit(told: &Told) -> String {
    let told = &told.printable();
    let mut suites: Vec<TestSuite> = Vec::new();
    for finding in &told.findings {
        suite(&mut suites, &finding.file).add_test_case(case(finding));
    }
    for trouble in &told.troubles {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("input").set_message(first_line(&trouble.message)).set_description(&*trouble.message);
        suite(&mut suites, &trouble.file).add_test_case(TestCase::new("read", status));
    }
    let mut report = Report::new("taipan");
    // A report counts the cases of a suite when it takes it.
    report.add_test_suites(suites);
    report.to_string().expect("a report in memory has no writer that could fail")
}

/// The suite of a file, made if it is new. Findings of one file come together, so the last is asked first.
fn suite<'s>(suites: &'s mut Vec<TestSuite>, file: &str) -> &'s mut TestSuite {
    let found = suites.iter().rposition(|suite| suite.name.as_str() == file);
    let place = found.unwrap_or_else(|| {
        suites.push(TestSuite::new(file));
        suites.len() - 1
    });
    &mut suites[place]
}

fn case(finding: &Finding) -> TestCase {
    let status = match (&finding.anomaly, &finding.reason) {
        (Some(anomaly), _) if finding.is_known => {
            let mut status = TestCaseStatus::skipped();
            status
                .set_type(&*anomaly.name)
                .set_message(format!("{}: violated as before: {anomaly}", finding.claim))
                .set_description(timeless(finding));
            status
        }
        (Some(anomaly), _) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status
                .set_type(&*anomaly.name)
                .set_message(format!("{}: violated: {anomaly}", finding.claim))
                .set_description(timeless(finding));
            status
        }
        (None, Some(reason)) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
            status.set_type("undecided").set_message(format!("{}: undecided: {reason}", finding.claim));
            status
        }
        (None, None) => TestCaseStatus::success(),
    };
    let mut case = TestCase::new(finding.claim.to_string(), status);
    case.set_classname(&*finding.file);
    case.set_time(Duration::from_secs_f64((finding.cost.check_ms / 1000.0).max(0.0)));
    case
}

fn first_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}
