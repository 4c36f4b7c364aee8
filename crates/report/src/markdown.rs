//! A summary in Markdown, as continuous-integration services show it beside a run: GitHub's step summary, a comment on a
//! merge request. The same input gives the same text: there are no times in it.

use crate::escape::escape;
use crate::timestamps::basis;
use crate::{Detail, Finding, Palette, Told, mermaid, text};
use isolation::VerdictKind;
use std::fmt::Write;

/// Everything a run has to tell, in GitHub's dialect of Markdown.
pub fn markdown(told: &Told) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write_summary(&mut out, &told.printable());
    out
}

fn write_summary(out: &mut String, told: &Told) -> std::fmt::Result {
    writeln!(out, "## Isolation: {}\n", headline(told))?;
    if !told.findings.is_empty() {
        writeln!(out, "| history | level | verdict | transactions | operations |")?;
        writeln!(out, "|---|---|---|---:|---:|")?;
        for finding in &told.findings {
            writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                code(&finding.file),
                cell(&finding.claim.to_string()),
                verdict(finding),
                finding.size.transactions,
                finding.size.operations
            )?;
        }
        writeln!(out)?;
    }
    for finding in told.findings.iter().filter(|finding| finding.anomaly.is_none()) {
        for note in &finding.notes {
            writeln!(
                out,
                "{} at {}: {}.\n",
                code(&finding.file),
                cell(&finding.claim.to_string()),
                cell(note)
            )?;
        }
    }
    let mut all: Vec<&str> = told.findings.iter().map(|finding| basis(&finding.claim)).collect();
    all.dedup();
    if let [only] = all.as_slice() {
        writeln!(out, "{only}.\n")?;
    }
    for trouble in &told.troubles {
        writeln!(out, "{} could not be checked:\n", code(&trouble.file))?;
        fenced(out, "text", &trouble.message)?;
    }
    for finding in told.findings.iter().filter(|finding| finding.anomaly.is_some()) {
        let open = if finding.is_known { "" } else { " open" };
        writeln!(out, "<details{open}><summary>{}</summary>\n", summary(finding))?;
        fenced(out, "text", &argument(finding))?;
        fenced(out, "mermaid", &mermaid(finding))?;
        writeln!(out, "</details>\n")?;
    }
    for surveyed in &told.surveys {
        let table = crate::survey_text(surveyed, Palette::plain());
        fenced(out, "text", &table)?;
    }
    Ok(())
}

fn headline(told: &Told) -> String {
    let tally = told.tally();
    let counts = [
        (tally.violated - tally.known, VerdictKind::Violated.name()),
        (tally.known, "violated as before"),
        (tally.undecided, VerdictKind::Undecided.name()),
        (tally.troubles, "not checked"),
        (tally.accepted, VerdictKind::Accepted.name()),
    ];
    let said: Vec<String> = counts
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    if said.is_empty() { "nothing was checked".to_owned() } else { said.join(", ") }
}

fn verdict(finding: &Finding) -> String {
    match (&finding.anomaly, &finding.reason) {
        (Some(anomaly), _) if finding.is_known => {
            format!("⚠️ violated as before: {}", cell(&anomaly.to_string()))
        }
        (Some(anomaly), _) => format!("❌ **violated**: {}", cell(&anomaly.to_string())),
        (None, Some(reason)) => format!("❔ undecided: {}", cell(reason)),
        (None, None) => "✅ accepted".to_owned(),
    }
}

fn summary(finding: &Finding) -> String {
    let anomaly = finding.anomaly.as_ref().map(ToString::to_string).unwrap_or_default();
    let known = if finding.is_known { " (as before)" } else { "" };
    format!("{}: {}: {}{known}", escape(&finding.file), escape(&finding.claim.to_string()), escape(&anomaly))
}

/// The explanation without its first line, which says what the table says, and how long it took.
fn argument(finding: &Finding) -> String {
    let whole = text(finding, Detail::Full, Palette::plain());
    let lines = whole.lines().skip(1).map(|line| line.strip_prefix("  ").unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// A block that ends where it should, whatever is in it.
fn fenced(out: &mut String, language: &str, text: &str) -> std::fmt::Result {
    let longest = text.split(|ch| ch != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    writeln!(out, "{fence}{language}\n{}\n{fence}\n", text.trim_end())
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    let mut out = String::new();
    for ch in text.chars() {
        match ch {
            '\n' => out.push(' '),
            '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(ch);
            }
            _ => out.push(ch),
        }
    }
    out
}

/// A name in a cell of a table, as code.
fn code(name: &str) -> String {
    match name.contains('`') {
        true => cell(name),
        false => format!("`{}`", name.replace('|', "\\|").replace('\n', " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::{cell, code, fenced};

    #[test]
    fn nothing_leaves_its_place() {
        assert_eq!(cell("a|b\n*c*"), "a\\|b \\*c\\*");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a`b"), "a\\`b");
        let mut out = String::new();
        fenced(&mut out, "text", "```\nx\n````").expect("a string takes everything");
        assert!(out.starts_with("`````text\n") && out.ends_with("\n`````\n\n"), "{out}");
    }
}
