//! How a finding is reported: a few sentences, and the file that replays it.

use crate::case::{Act, Case, StepNo};
use crate::compare::show;
use crate::examine::{Examined, Finding};
use crate::execute::{Fate, Run};
use crate::oracle::{Difference, Place};
use crate::script;

/// A finding in a few lines.
pub fn describe(finding: &Finding, case: &Case) -> Vec<String> {
    match finding {
        Finding::Difference(difference) => describe_difference(difference, case),
        Finding::Level(broken) => vec![format!(
            "{} is promised, but {} occurred in {}",
            broken.level,
            broken.anomaly,
            broken.transactions.join(", ")
        )],
        Finding::Trouble(trouble) => vec![trouble.to_string()],
    }
}

fn describe_difference(difference: &Difference, case: &Case) -> Vec<String> {
    let name = |step: StepNo| {
        let txn = case.steps.iter().find(|other| other.number == step).map(|other| other.txn.to_string());
        format!("{}.{step}", txn.unwrap_or_default())
    };
    let whole = |step: StepNo| format!("{} ({})", name(step), beginning(case, step));
    let what = match difference.place {
        Place::Answer(step) => format!("{} returned different rows", whole(step)),
        Place::Before(step) => format!("{} matched different rows", whole(step)),
        Place::After(step) => format!("{} changed different rows", whole(step)),
        Place::Refusal(step) => {
            format!("{} succeeded inside the transaction and failed outside, or the reverse", whole(step))
        }
        Place::Table(table) => format!("the table {} differs at the end", case.tables[table.index()]),
    };
    let alone = match &difference.alone {
        Ok(rows) => show(rows),
        Err(failure) => failure.to_string(),
    };
    let order: Vec<String> = difference.order.iter().map(|step| name(*step)).collect();
    vec![
        what,
        format!("inside the transaction: {}", show(&difference.in_transactions)),
        format!("expected:               {alone}"),
        format!("expected when run one by one outside transactions, in the order {}", order.join(", ")),
    ]
}

/// How much of a statement is reported.
const SQL_LEN_MAX: usize = 60;

/// The beginning of a step's statement.
fn beginning(case: &Case, number: StepNo) -> String {
    let step = case.steps.iter().find(|step| step.number == number);
    let Some(Act::Statement(statement)) = step.map(|step| &step.act) else { return String::new() };
    let sql = statement.sql.replace('\n', " ");
    match sql.char_indices().nth(SQL_LEN_MAX) {
        Some((end, _)) => format!("{}…", &sql[..end]),
        None => sql,
    }
}

/// What servers write when they die of a bug.
const LAST_WORDS: [&str; 5] = ["assert", "signal", "PANIC", "TRAP", "stack smashing"];
/// Lines of a log that are reported.
const LOG_LINES: usize = 12;

/// The part of a server's log that tells of a crash: from the first of its last words on, else the end.
pub fn last_words(log: &str) -> Vec<&str> {
    let lines: Vec<&str> = log.lines().collect();
    let is_last_word = |line: &&str| LAST_WORDS.iter().any(|word| line.contains(word));
    let first = lines.iter().position(is_last_word).unwrap_or(lines.len().saturating_sub(LOG_LINES));
    lines.into_iter().skip(first).take(LOG_LINES).collect()
}

/// The file that replays a finding: the case, with what was seen and what was expected.
pub(crate) fn script(examined: &Examined, isolation: &str, remarks: &[String], log: Option<&str>) -> String {
    let mut remarks = remarks.to_vec();
    if let Some(finding) = &examined.finding {
        remarks.extend(describe(finding, &examined.case));
    }
    for line in last_words(log.unwrap_or_default()) {
        remarks.push(format!("log: {line}"));
    }
    let run = &examined.run;
    script::write(&examined.case, isolation, &remarks, |step| seen(&examined.case, run, step))
}

/// What a step showed.
fn seen(case: &Case, run: &Run, number: StepNo) -> Vec<String> {
    let Some(step) = case.steps.iter().find(|step| step.number == number) else { return Vec::new() };
    let Some(seen) = run.observed.get(&number) else {
        return match run.fates.get(step.txn.index()) {
            Some(Fate::Aborted(Some(failure))) if !run.order.contains(&number) => {
                vec![format!("not run: {failure}")]
            }
            _ => Vec::new(),
        };
    };
    match &step.act {
        Act::Statement(statement) if statement.target.is_none() => {
            vec![format!("returns {}", show(&seen.output))]
        }
        Act::Statement(statement) => {
            let before = statement.before.as_ref().map(|_| format!("matches {}", show(&seen.before)));
            let after = statement.after.as_ref().map(|_| format!("leaves {}", show(&seen.after)));
            before.into_iter().chain(after).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_of_a_server_are_found() {
        let start = "ready for connections\n".repeat(30);
        let crash = "mysqld got signal 11 ;\nSorry, we probably made a mistake\n";
        let log = format!("{start}{crash}{}", "frame\n".repeat(30));
        let told = last_words(&log);
        assert_eq!(told.len(), LOG_LINES);
        assert_eq!(told.first(), Some(&"mysqld got signal 11 ;"));
        assert_eq!(last_words(&start).len(), LOG_LINES);
        assert!(last_words("").is_empty());
    }
}
