//! A finding as text for a terminal.

use crate::book::page_of;
use crate::picture::{label, shown_operations};
use crate::{Alternative, Cases, Cost, Finding, Member, Part, Step, Surveyed, Violation};
use crate::{printable, shorten};
use anstyle::{AnsiColor, Style};
use checker::timestamped::Axiom;
use checker::{Coverage, Mark};
use std::collections::HashSet;
use std::fmt::Write;

/// Transactions with more operations than this show only those the argument is about.
const OPERATIONS_MAX: usize = 12;

/// How text is coloured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Palette {
    good: Style,
    bad: Style,
    open: Style,
    strong: Style,
    faint: Style,
}

impl Palette {
    /// No colours at all.
    pub fn plain() -> Self {
        Self::default()
    }

    /// For a terminal.
    pub fn coloured() -> Self {
        let of = |colour: AnsiColor| Style::new().fg_color(Some(colour.into())).bold();
        Self {
            good: of(AnsiColor::Green),
            bad: of(AnsiColor::Red),
            open: of(AnsiColor::Yellow),
            strong: Style::new().bold(),
            faint: Style::new().dimmed(),
        }
    }

    fn verdict(&self, name: &str) -> Style {
        match name {
            "accepted" => self.good,
            "violated" => self.bad,
            _ => self.open,
        }
    }
}

/// A finding: one line, and for a violation the argument below it.
pub fn text(finding: &Finding, palette: Palette) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write_finding(&mut out, &finding.printable(), Some(finding.cost), palette);
    out
}

/// The same without times, for what is compared from run to run: the same input gives the same text.
pub(crate) fn timeless(finding: &Finding) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write_finding(&mut out, &finding.printable(), None, Palette::plain());
    out
}

fn write_finding(
    out: &mut String,
    finding: &Finding,
    cost: Option<Cost>,
    palette: Palette,
) -> std::fmt::Result {
    let (colour, strong) = (palette.verdict(finding.verdict), palette.strong);
    write!(out, "{}: {}: {colour}{}{colour:#}", finding.file, finding.claim, finding.verdict)?;
    if let Some(anomaly) = &finding.anomaly {
        let known = if finding.is_known { ", as before" } else { "" };
        write!(out, ": {strong}{anomaly}{strong:#}{known}")?;
    }
    if let Some(reason) = &finding.reason {
        write!(out, ": {reason}")?;
    }
    writeln!(out, " {}", size(finding, cost, palette))?;
    if finding.anomaly.is_some() {
        write_claim(out, finding, palette)?;
        write_argument(out, finding, palette)?;
    }
    if let Some(violations) = finding.by_timestamps.as_ref().filter(|_| finding.reason.is_none()) {
        write_violations(out, violations, palette)?;
        if !violations.is_empty() && finding.comparison.is_none() {
            let faint = palette.faint;
            writeln!(out, "  {faint}--compare tells whether another order explains the results{faint:#}")?;
        }
    }
    if let Some(comparison) = &finding.comparison {
        let anomaly = comparison.anomaly.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        writeln!(out, "  by results alone: {}{anomaly}: {}", comparison.by_results, comparison.why)?;
    }
    if let Some(listed) = &finding.anomalies {
        let kinds: Vec<String> = listed.iter().map(|it| format!("{} × {}", it.count, it.anomaly)).collect();
        writeln!(
            out,
            "  found: {}",
            if kinds.is_empty() { "nothing more".to_owned() } else { kinds.join(", ") }
        )?;
    }
    if let Some(part) = &finding.part {
        write_part(out, finding, part, palette)?;
    }
    if let Some(coverage) = &finding.coverage {
        let faint = palette.faint;
        for line in coverage_lines(coverage) {
            writeln!(out, "  {faint}{line}{faint:#}")?;
        }
    }
    for note in &finding.notes {
        writeln!(out, "  note: {note}")?;
    }
    Ok(())
}

/// How many violations of a history are told one by one.
const VIOLATIONS_MAX: usize = 20;

/// What a check by timestamps found: how many of each kind, then the first of them.
fn write_violations(out: &mut String, violations: &[Violation], palette: Palette) -> std::fmt::Result {
    let faint = palette.faint;
    if violations.is_empty() {
        return writeln!(out, "  {faint}by the database's timestamps, in one pass{faint:#}");
    }
    let of = |axiom: Axiom| violations.iter().filter(|it| it.axiom == axiom.name()).count();
    let kinds: Vec<String> = Axiom::ALL
        .into_iter()
        .filter(|&axiom| of(axiom) > 0)
        .map(|axiom| format!("{} × {}", grouped(of(axiom)), axiom.name()))
        .collect();
    writeln!(out, "  by the database's timestamps: {}", kinds.join(", "))?;
    for violation in violations.iter().take(VIOLATIONS_MAX) {
        writeln!(out, "    {} {faint}({}){faint:#}", violation.why, violation.axiom)?;
    }
    match violations.len().saturating_sub(VIOLATIONS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "    {faint}and {} more: --output json lists all{faint:#}", grouped(more)),
    }
}

/// What an accepted history tested, in a line or two.
pub(crate) fn coverage_lines(coverage: &Coverage) -> Vec<String> {
    let mut lines = vec![format!(
        "of {} others read {}, of {} sessions shared {}, of {} {} may have seen one of several writes",
        count(coverage.writes, "write"),
        grouped(coverage.writes - coverage.unread),
        count(coverage.keys, "key"),
        grouped(coverage.keys - coverage.unshared),
        count(coverage.reads, "read"),
        grouped(coverage.ambiguous),
    )];
    if coverage.scans > 0 {
        lines[0] += &format!("; scans and queries: {}", grouped(coverage.scans));
    }
    if !coverage.blind_spots.is_empty() {
        let spots: Vec<&str> = coverage.blind_spots.iter().map(|spot| spot.anomaly).collect();
        lines.push(format!("could not have shown {}", spots.join(", ")));
    }
    lines
}

/// What all levels come to, one line a mark; what is violated weakest first.
pub fn survey_text(surveyed: &Surveyed, palette: Palette) -> String {
    let mut out = String::new();
    let file = printable(&surveyed.file);
    for mark in [Mark::Accepted, Mark::Violated, Mark::Undecided] {
        let mut names: Vec<&str> =
            surveyed.marks.iter().filter(|(_, it)| *it == mark).map(|(level, _)| level.name()).collect();
        if mark == Mark::Accepted {
            names.reverse();
        }
        if !names.is_empty() {
            let colour = palette.verdict(mark.name());
            // Writing into a string cannot fail.
            let _ = writeln!(out, "{file}: {colour}{}{colour:#} at {}", mark.name(), names.join(", "));
        }
    }
    out
}

fn size(finding: &Finding, cost: Option<Cost>, palette: Palette) -> String {
    let faint = palette.faint;
    let size = finding.size;
    let times = cost.map_or_else(String::new, |cost| {
        // A history that was not read but recorded took no time to read.
        let read =
            if cost.read_ms > 0.0 { format!("read in {}, ", duration(cost.read_ms)) } else { String::new() };
        format!("; {read}checked in {}", duration(cost.check_ms))
    });
    format!(
        "{faint}({}, {}, {}{times}){faint:#}",
        count(size.transactions, "transaction"),
        count(size.operations, "operation"),
        count(size.sessions, "session"),
    )
}

/// What was claimed: the level in a sentence, where the whole story is told.
fn write_claim(out: &mut String, finding: &Finding, palette: Palette) -> std::fmt::Result {
    let level = finding.part.as_ref().map(|_| finding.claim.level);
    let faint = palette.faint;
    level.map_or(Ok(()), |level| writeln!(out, "  {faint}claimed: {}{faint:#}", level.definition()))
}

/// What the smallest part shows: results that would have been allowed, levels that fall, the part itself.
fn write_part(out: &mut String, finding: &Finding, part: &Part, palette: Palette) -> std::fmt::Result {
    let faint = palette.faint;
    if !part.instead.is_empty() {
        let any = if part.instead.len() == 1 { "this" } else { "any one of these" };
        writeln!(out, "  {any} would have been allowed:")?;
        for other in &part.instead {
            let Alternative { transaction, seen, .. } = other;
            writeln!(out, "    {transaction} {} {faint}(instead of: {seen}){faint:#}", alternatives(other))?;
        }
    }
    if !part.weakest.is_empty() {
        let weakest: Vec<&str> = part.weakest.iter().map(|level| level.name()).collect();
        let several = if weakest.len() == 1 { "weakest level" } else { "weakest levels" };
        writeln!(out, "  {several} broken: {}", weakest.join(", "))?;
        let with = if weakest.len() == 1 { "broken with it" } else { "broken with them" };
        for (what, names) in [(with, part.also_broken()), ("still possible at", part.levels(Mark::Accepted))]
        {
            if !names.is_empty() {
                writeln!(out, "  {what}: {}", names.join(", "))?;
            }
        }
    }
    let size =
        format!("{}, {}", count(part.transactions, "transaction"), count(part.operations, "operation"));
    let open = if part.is_minimal { "" } else { ", perhaps not the smallest: the time was up" };
    let fits = |line: &str| line.chars().count() <= NOTATION_WIDTH_MAX;
    if part.notation.lines().count() <= NOTATION_LINES_MAX && part.notation.lines().all(fits) {
        writeln!(out, "  the smallest part that is violated by itself ({size}{open}):")?;
        for line in part.notation.lines() {
            writeln!(out, "    {line}")?;
        }
    } else {
        writeln!(
            out,
            "  the smallest part that is violated by itself has {size}{open}; --save FILE.hist keeps it"
        )?;
    }
    if let Some(page) = finding.anomaly.as_ref().and_then(page_of) {
        writeln!(
            out,
            "  {faint}the book on it: docs/book/src/{}, or taipan explain --anomaly {:?}{faint:#}",
            page.path(),
            page.name()
        )?;
    }
    Ok(())
}

/// Parts in the notation with more lines or longer ones are not printed.
const NOTATION_LINES_MAX: usize = 16;
const NOTATION_WIDTH_MAX: usize = 160;

/// How many allowed results of a read are told.
const ALLOWED_MAX: usize = 4;

/// `read x = 1 or read x = 2`.
pub(crate) fn alternatives(of: &Alternative) -> String {
    let told: Vec<&str> = of.allowed.iter().take(ALLOWED_MAX).map(String::as_str).collect();
    let more = match of.allowed.len().saturating_sub(ALLOWED_MAX) {
        0 => String::new(),
        more => format!(" or {more} more"),
    };
    told.join(" or ") + &more
}

fn write_argument(out: &mut String, finding: &Finding, palette: Palette) -> std::fmt::Result {
    match finding.transactions.as_slice() {
        [] => {}
        [_] => writeln!(out, "  nothing that {} allows explains this transaction:", finding.claim)?,
        many => writeln!(
            out,
            "  nothing that {} allows explains these {} transactions together:",
            finding.claim,
            many.len()
        )?,
    }
    let width = finding.transactions.iter().map(|member| member.name.chars().count()).max().unwrap_or(0);
    let shown = shown_members(finding);
    for member in shown {
        write_member(out, member, finding, width, palette)?;
    }
    if let Some(rest) = rest_of(finding) {
        let faint = palette.faint;
        writeln!(out, "    {faint}{rest}{faint:#}")?;
    }
    let mut told = ToldSteps::default();
    if let Some(cases) = &finding.cases {
        writeln!(out, "  because")?;
        write_cases(out, cases, 2, palette)?;
    } else if !finding.explanation.is_empty() {
        writeln!(out, "  because")?;
        write_steps(out, &finding.explanation, 2, palette, &mut told)?;
    }
    if let Some(end) = conclusion(finding) {
        writeln!(out, "  so {end}")?;
    }
    if !finding.support.is_empty() {
        // What is said already is not said again, nor is there anything to say then.
        let mut support = String::new();
        write_steps(&mut support, &finding.support, 2, palette, &mut told)?;
        if !support.is_empty() {
            write!(out, "  where\n{support}")?;
        }
    }
    Ok(())
}

/// One case after the other, each with its own end.
fn write_cases(out: &mut String, cases: &Cases, depth: usize, palette: Palette) -> std::fmt::Result {
    let indent = 2 * depth;
    for case in &cases.told {
        // What follows in one case is written there, even if it follows in another, too.
        let mut told = ToldSteps::default();
        writeln!(out, "{:indent$}if {}:", "", case.suppose)?;
        write_steps(out, &case.explanation, depth + 1, palette, &mut told)?;
        if let Some(cases) = &case.cases {
            write_cases(out, cases, depth + 1, palette)?;
        }
        if let Some(end) = end_of(&case.explanation) {
            writeln!(out, "{:indent$}  so {end}", "")?;
        }
        if !case.support.is_empty() {
            writeln!(out, "{:indent$}  where", "")?;
            write_steps(out, &case.support, depth + 2, palette, &mut told)?;
        }
    }
    match left_out(cases) {
        Some(more) => writeln!(out, "{:indent$}{more}", ""),
        None => Ok(()),
    }
}

/// What is said of cases that are not told.
pub(crate) fn left_out(cases: &Cases) -> Option<String> {
    match cases.left_out {
        0 => None,
        1 => Some("and 1 more case, which is impossible, too".to_owned()),
        more => Some(format!("and {} more cases, each of which is impossible, too", grouped(more))),
    }
}

/// Of many transactions without an argument only the first are told one by one.
const UNARGUED_MAX: usize = 16;

/// The transactions that are told one by one.
pub(crate) fn shown_members(finding: &Finding) -> &[Member] {
    let all = &finding.transactions;
    if finding.explanation.is_empty() { &all[..all.len().min(UNARGUED_MAX)] } else { all }
}

/// What is said of the others.
pub(crate) fn rest_of(finding: &Finding) -> Option<String> {
    let rest = finding.transactions.len() - shown_members(finding).len();
    (rest > 0).then(|| {
        format!(
            "and {rest} more, too many to argue about one by one: --save FILE.hist keeps them, `taipan check --certificate` proves it"
        )
    })
}

fn write_member(
    out: &mut String,
    member: &Member,
    finding: &Finding,
    width: usize,
    palette: Palette,
) -> std::fmt::Result {
    let strong = palette.strong;
    write!(out, "    {strong}{:width$}{strong:#}  ", member.name)?;
    if member.status != "committed" {
        write!(out, "({}) ", member.status)?;
    }
    let faint = palette.faint;
    if let Some(circumstances) = circumstances(member) {
        write!(out, "{faint}[{circumstances}]{faint:#} ")?;
    }
    let (shown, left_out) = shown_operations(finding, member, OPERATIONS_MAX);
    let shown: Vec<&str> = shown.into_iter().map(|(_, words)| words).collect();
    write!(out, "{}", shown.join(", "))?;
    if left_out > 0 {
        write!(out, "{} {faint}(and {left_out} more){faint:#}", if shown.is_empty() { "" } else { "," })?;
    }
    writeln!(out)?;
    match &member.ctx {
        Some(ctx) => writeln!(out, "    {:width$}  {faint}ctx {}{faint:#}", "", shorten::clip(ctx, &[])),
        None => Ok(()),
    }
}

/// A transaction's session, where its name does not tell, and its clocks.
fn circumstances(member: &Member) -> Option<String> {
    let mut parts = Vec::new();
    if !member.has_plain_name() {
        parts.push(format!("session {}", member.session));
    }
    if let Some((begin, end)) = member.client {
        parts.push(format!("clock {begin}..{}", until(end)));
    }
    if let Some((start, commit)) = &member.db {
        parts.push(format!("database {start}..{commit}"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The steps that were written: what several others follow from is written once.
#[derive(Default)]
pub(crate) struct ToldSteps<'f> {
    told: HashSet<(Option<&'f str>, &'f str, &'static str, &'f str)>,
}

impl<'f> ToldSteps<'f> {
    /// Whether a step is written for the first time.
    pub(crate) fn is_new(&mut self, step: &'f Step) -> bool {
        self.told.insert((step.from.as_deref(), &step.to, step.edge, &step.why))
    }
}

fn write_steps<'f>(
    out: &mut String,
    steps: &'f [Step],
    depth: usize,
    palette: Palette,
    told: &mut ToldSteps<'f>,
) -> std::fmt::Result {
    let faint = palette.faint;
    for step in steps {
        if !told.is_new(step) {
            continue;
        }
        let from = step.from.as_deref().unwrap_or("initial state");
        let (indent, label) = (2 * depth, label(step));
        writeln!(out, "{:indent$}{} {faint}({from} -{label}-> {}){faint:#}", "", step.why, step.to)?;
        write_steps(out, &step.because, depth + 1, palette, told)?;
        if let Some(cases) = &step.cases {
            write_cases(out, cases, depth + 1, palette)?;
        }
    }
    Ok(())
}

/// The end of a time; nothing where none was recorded.
pub(crate) fn until(end: i64) -> String {
    if end == i64::MAX { String::new() } else { end.to_string() }
}

/// What a cycle comes to, two lists that contradict each other, or a count.
pub(crate) fn conclusion(finding: &Finding) -> Option<String> {
    if finding.counted.is_some() {
        return finding.counted.clone();
    }
    match finding.cases {
        Some(_) => Some("none of the cases is possible".to_owned()),
        None => end_of(&finding.explanation),
    }
}

/// What steps come to: a cycle, or two lists that contradict each other.
pub(crate) fn end_of(steps: &[Step]) -> Option<String> {
    let closes = steps.len() > 1
        && steps
            .iter()
            .zip(steps.iter().cycle().skip(1))
            .all(|(step, next)| Some(&step.to) == next.from.as_ref());
    if let [one, two] = steps
        && !closes
        && [one, two].iter().all(|step| step.edge == "wr")
    {
        let (first, second) = (&two.to, &one.to);
        return Some(format!("{first} and {second} would have to have read beginnings of one list"));
    }
    let first = steps.first()?.from.as_ref()?;
    closes.then(|| format!("{first} would have to come before itself"))
}

/// `1 session`, `2 sessions`, `1,234 operations`.
fn count(number: usize, noun: &str) -> String {
    format!("{} {noun}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// `1,234`.
pub(crate) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A time with three digits or fewer that mean something.
pub(crate) fn duration(ms: f64) -> String {
    match ms {
        ms if ms < 10.0 => format!("{ms:.1} ms"),
        ms if ms < 1000.0 => format!("{ms:.0} ms"),
        ms if ms < 10_000.0 => format!("{:.2} s", ms / 1000.0),
        ms => format!("{:.1} s", ms / 1000.0),
    }
}
