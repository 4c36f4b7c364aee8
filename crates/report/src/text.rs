//! A finding as text for a terminal.

use crate::book::page_of;
use crate::context::Context;
use crate::picture::{label, shown_operations};
use crate::{Alternative, Cases, Cost, Finding, Member, Part, Step, Surveyed, Tally, Violation};
use crate::{printable, shorten};
use anstyle::{AnsiColor, Style};
use isolation::{BlindSpot, Coverage, VerdictKind};
use replay::Axiom;
use std::collections::HashSet;
use std::fmt::Write;

/// Transactions with more operations than this show only those the argument is about.
const OPERATIONS_MAX: usize = 12;

/// How text is coloured.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    good: Style,
    bad: Style,
    open: Style,
    strong: Style,
    faint: Style,
    is_ascii: bool,
    between: &'static str,
}

impl Default for Palette {
    fn default() -> Self {
        let none = Style::new();
        Self {
            good: none, bad: none, open: none, strong: none, faint: none, is_ascii: false, between: " · "
        }
    }
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
            ..Self::default()
        }
    }

    /// The same for a terminal that shows ASCII only.
    pub fn ascii(self) -> Self {
        Self { is_ascii: true, between: "; ", ..self }
    }

    fn mark(&self, verdict: VerdictKind) -> &'static str {
        match (verdict, self.is_ascii) {
            (VerdictKind::Accepted, false) => "✔",
            (VerdictKind::Violated, false) => "✘",
            (VerdictKind::Accepted, true) => "ok",
            (VerdictKind::Violated, true) => "FAIL",
            (VerdictKind::Undecided, _) => "?",
        }
    }

    fn verdict(&self, verdict: VerdictKind) -> Style {
        match verdict {
            VerdictKind::Accepted => self.good,
            VerdictKind::Violated => self.bad,
            VerdictKind::Undecided => self.open,
        }
    }
}

/// How much of an argument is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// The answer, and the argument if it is short.
    Brief,
    /// Everything the argument rests on.
    Full,
}

/// A finding: the answer in one line, and for a violation the argument below it.
pub fn text(finding: &Finding, detail: Detail, palette: Palette) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write_finding(&mut out, &finding.printable(), detail, Some(finding.cost), palette);
    out
}

/// The same in full and without times, for what is compared from run to run: the same input gives the same text.
pub(crate) fn timeless(finding: &Finding) -> String {
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = write_finding(&mut out, &finding.printable(), Detail::Full, None, Palette::plain());
    out
}

fn write_finding(
    out: &mut String,
    finding: &Finding,
    detail: Detail,
    cost: Option<Cost>,
    palette: Palette,
) -> std::fmt::Result {
    writeln!(out, "{}  {}", answer(finding, palette), size(finding, cost, palette))?;
    if finding.anomaly.is_some() {
        if detail == Detail::Full {
            write_claim(out, finding, palette)?;
        }
        write_argument(out, finding, detail, palette)?;
    }
    if let Some(violations) = finding.by_timestamps.as_ref().filter(|_| finding.reason.is_none()) {
        write_violations(out, violations, palette)?;
        if !violations.is_empty() && finding.comparison.is_none() {
            let faint = palette.faint;
            writeln!(out, "  {faint}--compare also judges the results without the timestamps{faint:#}")?;
        }
    }
    if let Some(comparison) = &finding.comparison {
        let anomaly = comparison.anomaly.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        writeln!(out, "  by results alone: {}{anomaly}: {}", comparison.by_results, comparison.why)?;
    }
    if let Some(listed) = &finding.anomalies {
        let kinds: Vec<String> = listed.iter().map(|it| format!("{} × {}", it.count, it.anomaly)).collect();
        let kinds = if kinds.is_empty() { "nothing else".to_owned() } else { kinds.join(", ") };
        writeln!(out, "  anomalies found: {kinds}")?;
    }
    if let Some(part) = &finding.part {
        write_part(out, finding, part, palette)?;
    } else if !finding.allowed.is_empty() {
        let names: Vec<&str> = finding.allowed.iter().map(|level| level.name()).collect();
        writeln!(out, "  still allowed by: {}", names.join(", "))?;
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
    if !finding.next.is_empty() {
        let faint = palette.faint;
        writeln!(out, "  {faint}next: {}{faint:#}", finding.next.join(palette.between))?;
    }
    Ok(())
}

/// `✘ h.jsonl: not serializable: lost update on key 6`.
fn answer(finding: &Finding, palette: Palette) -> String {
    let (colour, strong) = (palette.verdict(finding.verdict), palette.strong);
    let mark = palette.mark(finding.verdict);
    let known = if finding.is_known { " (known)" } else { "" };
    let Finding { file, claim, .. } = finding;
    match (&finding.anomaly, &finding.reason) {
        (Some(anomaly), _) => format!(
            "{colour}{mark}{colour:#} {file}: {colour}not {claim}{colour:#}: {strong}{}{strong:#}{}{known}",
            anomaly.in_words(),
            keys(finding)
        ),
        (None, Some(reason)) => {
            format!("{colour}{mark}{colour:#} {file}: {colour}undecided{colour:#} at {claim}: {reason}")
        }
        (None, None) if finding.verdict == VerdictKind::Violated => {
            format!("{colour}{mark}{colour:#} {file}: {colour}not {claim}{colour:#}{known}")
        }
        (None, None) => format!("{colour}{mark}{colour:#} {file}: {colour}{claim}{colour:#}"),
    }
}

/// How many keys the answer names.
const KEYS_MAX: usize = 3;

/// ` on x and y`: the keys that the argument is about.
pub(crate) fn keys(finding: &Finding) -> String {
    let mut keys: Vec<&str> = Vec::new();
    for step in &finding.explanation {
        let Some(key) = step.key.as_deref().filter(|key| !keys.contains(key)) else { continue };
        keys.push(key);
    }
    let named = |key: &str| match key.parse::<i64>() {
        Ok(_) => format!("key {key}"),
        Err(_) => key.to_owned(),
    };
    match keys.as_slice() {
        [] => String::new(),
        [one] => format!(" on {}", named(one)),
        [all @ .., last] if all.len() < KEYS_MAX => {
            let all: Vec<String> = all.iter().map(|key| named(key)).collect();
            format!(" on {} and {}", all.join(", "), named(last))
        }
        many => format!(" on {} keys", many.len()),
    }
}

/// How many violations of a history are reported one by one.
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

/// With more than these, only the names of what was not exercised are shown.
const SPOTS_MAX: usize = 3;

/// What an accepted history tested, in a line or two.
pub(crate) fn coverage_lines(coverage: &Coverage) -> Vec<String> {
    let of = |part: usize, whole: usize, noun: &str| match part == whole {
        true if whole == 1 => format!("the only {noun}"),
        true => format!("all {}", count(whole, noun)),
        false => format!("{} of {}", grouped(part), count(whole, noun)),
    };
    let was = |number: usize| if number == 1 { "was" } else { "were" };
    let read = coverage.writes - coverage.unread;
    let shared = coverage.keys - coverage.unshared;
    let mut tested = vec![
        format!(
            "{} {} read by another transaction",
            of(read, coverage.writes, "write"),
            was(coverage.writes)
        ),
        format!("{} {} used by several sessions", of(shared, coverage.keys, "key"), was(coverage.keys)),
    ];
    if coverage.ambiguous > 0 {
        let reads = count(coverage.reads, "read");
        tested.push(format!("{} of {reads} had several possible writers", grouped(coverage.ambiguous)));
    }
    if coverage.scans > 0 {
        tested.push(count(coverage.scans, "range or predicate read"));
    }
    let mut lines = vec![format!("coverage: {}", tested.join("; "))];
    if !coverage.blind_spots.is_empty() {
        let is_short = coverage.blind_spots.len() <= SPOTS_MAX;
        let spot = |spot: &BlindSpot| match is_short {
            true => format!("{} ({})", in_plain_words(spot.anomaly), spot.lacks),
            false => in_plain_words(spot.anomaly).to_owned(),
        };
        let spots: Vec<String> = coverage.blind_spots.iter().map(spot).collect();
        lines.push(format!("not exercised: {}", spots.join(if is_short { "; " } else { ", " })));
    }
    lines
}

/// What could not have been shown, as people call it.
pub(crate) fn in_plain_words(anomaly: &'static str) -> &'static str {
    match anomaly {
        "G1a" => "aborted reads",
        "G1b" => "intermediate reads",
        "lost-update" => "lost updates",
        "G-single" => "read skew",
        "G-nonadjacent" => "long forks",
        "G2-item" => "write skew",
        "G2" => "phantoms",
        "…-process" => "session-order anomalies",
        "…-realtime" => "real-time anomalies",
        other => other,
    }
}

/// What all levels come to, one line per mark; what is violated weakest first.
pub fn survey_text(surveyed: &Surveyed, palette: Palette) -> String {
    let mut out = String::new();
    let file = printable(&surveyed.file);
    for mark in [VerdictKind::Accepted, VerdictKind::Violated, VerdictKind::Undecided] {
        let mut names: Vec<&str> =
            surveyed.marks.iter().filter(|(_, it)| *it == mark).map(|(level, _)| level.name()).collect();
        if mark == VerdictKind::Accepted {
            names.reverse();
        }
        if !names.is_empty() {
            let colour = palette.verdict(mark);
            // Writing into a string cannot fail.
            let _ = writeln!(out, "{file}: {colour}{mark}{colour:#} at {}", names.join(", "));
        }
    }
    out
}

/// `12 files: 10 accepted, 1 violated, 1 undecided`: what checks of several files come to.
pub fn summary_text(tally: &Tally, palette: Palette) -> String {
    let violated = tally.violated - tally.known;
    let Palette { good, bad, open, .. } = palette;
    let counts = [
        (tally.accepted, VerdictKind::Accepted.name(), good),
        (violated, VerdictKind::Violated.name(), bad),
        (tally.known, "violated as before", open),
        (tally.undecided, VerdictKind::Undecided.name(), open),
        (tally.troubles, "not checked", bad),
    ];
    let said: Vec<String> = counts
        .into_iter()
        .filter(|(number, ..)| *number > 0)
        .map(|(number, what, colour)| format!("{colour}{} {what}{colour:#}", grouped(number)))
        .collect();
    let files = count(tally.files(), "file");
    let checks = match tally.answers() == tally.files() {
        true => String::new(),
        false => format!(", {}", count(tally.answers(), "check")),
    };
    format!("{files}{checks}: {}\n", said.join(", "))
}

fn size(finding: &Finding, cost: Option<Cost>, palette: Palette) -> String {
    let faint = palette.faint;
    let size = finding.size;
    let time = cost.map_or_else(String::new, |cost| format!(", {}", duration(cost.read_ms + cost.check_ms)));
    let (transactions, sessions) = (count(size.transactions, "transaction"), count(size.sessions, "session"));
    format!("{faint}({transactions}, {sessions}{time}){faint:#}")
}

/// What the level forbids, where everything is shown.
fn write_claim(out: &mut String, finding: &Finding, palette: Palette) -> std::fmt::Result {
    let faint = palette.faint;
    let Some(_) = &finding.part else { return Ok(()) };
    writeln!(out, "  {faint}{}{faint:#}", finding.claim.level.definition())
}

/// What the smallest part shows: results that would have been allowed, levels that it breaks, the part itself.
fn write_part(out: &mut String, finding: &Finding, part: &Part, palette: Palette) -> std::fmt::Result {
    let faint = palette.faint;
    if !part.instead.is_empty() {
        let any = if part.instead.len() == 1 { "this result" } else { "any one of these results" };
        writeln!(out, "  {any} would have been allowed:")?;
        for other in &part.instead {
            let Alternative { transaction, seen, .. } = other;
            let name = finding.label_of(transaction);
            writeln!(out, "    {name} {} {faint}(instead of: {seen}){faint:#}", alternatives(other))?;
        }
    }
    if !part.weakest.is_empty() {
        let weakest: Vec<&str> = part.weakest.iter().map(|level| level.name()).collect();
        let and = if part.also_broken().is_empty() { "" } else { " and every stronger level" };
        writeln!(out, "  breaks: {}{and}", weakest.join(", "))?;
        let (allowed, has_weaker) = part.strongest_allowed();
        if !allowed.is_empty() {
            let and = if has_weaker { " and every weaker level" } else { "" };
            writeln!(out, "  allowed at: {}{and}", allowed.join(", "))?;
        }
    }
    let size =
        format!("{}, {}", count(part.transactions, "transaction"), count(part.operations, "operation"));
    let open = if part.is_minimal { "" } else { "; timed out before it was shown to be minimal" };
    let fits = |line: &str| line.chars().count() <= NOTATION_WIDTH_MAX;
    if part.notation.lines().count() <= NOTATION_LINES_MAX && part.notation.lines().all(fits) {
        writeln!(out, "  minimal violating history ({size}{open}):")?;
        for line in part.notation.lines() {
            writeln!(out, "    {line}")?;
        }
    } else {
        writeln!(out, "  minimal violating history: {size}{open}; save it with --save FILE.hist")?;
    }
    if let Some(page) = finding.anomaly.as_ref().and_then(page_of) {
        writeln!(out, "  {faint}more: taipan explain --anomaly {:?}{faint:#}", page.name())?;
    }
    Ok(())
}

/// Parts in the notation with more lines or longer ones are not printed.
const NOTATION_LINES_MAX: usize = 16;
const NOTATION_WIDTH_MAX: usize = 160;

/// How many allowed results of a read are shown.
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

/// A brief argument has at most this many transactions and steps; the rest is counted.
const BRIEF_MAX: usize = 5;

fn write_argument(out: &mut String, finding: &Finding, detail: Detail, palette: Palette) -> std::fmt::Result {
    let is_brief = detail == Detail::Brief;
    if !is_brief {
        match finding.transactions.as_slice() {
            [] => {}
            [_] => writeln!(out, "  This transaction is impossible under {}:", finding.claim)?,
            many => writeln!(
                out,
                "  These {} transactions cannot all have happened under {}:",
                many.len(),
                finding.claim
            )?,
        }
    }
    let shown = if is_brief { brief_members(finding) } else { shown_members(finding).iter().collect() };
    let hidden = finding.transactions.len() - shown.len();
    for member in &shown {
        write_member(out, member, finding, detail, palette)?;
    }
    let faint = palette.faint;
    if hidden > 0 && !is_brief {
        writeln!(
            out,
            "  {faint}… and {hidden} more (too many to show; --save FILE.hist keeps all){faint:#}"
        )?;
    }
    let scribe = Scribe { finding, detail, palette };
    let mut told = ToldSteps::default();
    match &finding.cases {
        Some(cases) => scribe.cases(out, cases, 1)?,
        None => {
            let steps = &finding.explanation;
            let fits = if is_brief { steps.len().min(BRIEF_MAX) } else { steps.len() };
            scribe.steps(out, &steps[..fits], 1, &mut told)?;
            if steps.len() > fits {
                let more = count(steps.len() - fits, "more step");
                writeln!(out, "  {faint}… {more}: `taipan explain` shows all{faint:#}")?;
            }
        }
    }
    if let Some(end) = conclusion(finding) {
        writeln!(out, "  Contradiction: {end}.")?;
    }
    if !is_brief {
        // What is said already is not said again, nor is there anything to say then.
        let mut support = String::new();
        scribe.steps(&mut support, &finding.support, 2, &mut told)?;
        if !support.is_empty() {
            write!(out, "  This relies on:\n{support}")?;
        }
    }
    Ok(())
}

/// What is said of cases that are not shown.
pub(crate) fn left_out(cases: &Cases) -> Option<String> {
    match cases.left_out {
        0 => None,
        1 => Some("… and 1 more case, which is impossible, too".to_owned()),
        more => Some(format!("… and {} more cases, each of which is impossible, too", grouped(more))),
    }
}

/// Of many transactions without an argument only the first are shown.
const UNARGUED_MAX: usize = 16;

/// The transactions that are shown one by one.
pub(crate) fn shown_members(finding: &Finding) -> &[Member] {
    let all = &finding.transactions;
    if finding.explanation.is_empty() { &all[..all.len().min(UNARGUED_MAX)] } else { all }
}

/// The transactions that the argument itself visits, the first few of them.
fn brief_members(finding: &Finding) -> Vec<&Member> {
    let visited = |member: &&Member| {
        let ends = |step: &Step| step.to == member.name || step.from.as_ref() == Some(&member.name);
        finding.explanation.is_empty() || finding.explanation.iter().any(ends)
    };
    finding.transactions.iter().filter(visited).take(BRIEF_MAX).collect()
}

/// What is said of the others.
pub(crate) fn rest_of(finding: &Finding) -> Option<String> {
    let rest = finding.transactions.len() - shown_members(finding).len();
    (rest > 0).then(|| format!("… and {rest} more (too many to show; --save FILE.hist keeps all)"))
}

fn write_member(
    out: &mut String,
    member: &Member,
    finding: &Finding,
    detail: Detail,
    palette: Palette,
) -> std::fmt::Result {
    let (strong, faint) = (palette.strong, palette.faint);
    let who = identity(member, detail);
    let status = if member.status == "committed" { String::new() } else { format!(", {}", member.status) };
    let all_up_to = if detail == Detail::Brief { 0 } else { OPERATIONS_MAX };
    let (shown, left_out) = shown_operations(finding, member, all_up_to);
    let shown: Vec<&str> = shown.into_iter().map(|(_, words)| words).collect();
    let (mut said, mut more) = (shown.join(", "), String::new());
    if said.is_empty() && left_out <= BRIEF_MAX {
        let all: Vec<&str> = member.operations.iter().map(String::as_str).collect();
        said = all.join(", ");
    } else if left_out > 0 {
        more = format!("{}and {} more", if said.is_empty() { "" } else { ", " }, grouped(left_out));
    }
    let label = &member.label;
    writeln!(
        out,
        "  {strong}{label}{strong:#} {faint}({who}{status}){faint:#}: {said}{faint}{more}{faint:#}"
    )?;
    // Statements are for pages.
    let ctx = member.ctx.as_ref().filter(|_| detail == Detail::Full).and_then(|ctx| Context::of(ctx).rest);
    match &ctx {
        Some(ctx) => writeln!(out, "    {faint}ctx {}{faint:#}", shorten::clip(ctx, &[])),
        None => Ok(()),
    }
}

/// Which transaction a label stands for: its session and place, or its id; in full with its clocks.
fn identity(member: &Member, detail: Detail) -> String {
    let mut parts = vec![match member.has_plain_name() {
        true => format!("session {}, #{}", member.session, member.position),
        false => format!("{}, session {}", member.name, member.session),
    }];
    if detail == Detail::Full {
        if let Some((begin, end)) = member.client {
            parts.push(format!("clock {begin}..{}", until(end)));
        }
        if let Some((start, commit)) = &member.db {
            parts.push(format!("database {start}..{commit}"));
        }
    }
    parts.join(", ")
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

/// Writes the steps of an argument.
struct Scribe<'f> {
    finding: &'f Finding,
    detail: Detail,
    palette: Palette,
}

impl<'f> Scribe<'f> {
    fn steps(
        &self,
        out: &mut String,
        steps: &'f [Step],
        depth: usize,
        told: &mut ToldSteps<'f>,
    ) -> std::fmt::Result {
        let (indent, faint) = (2 * depth, self.palette.faint);
        for step in steps {
            if !told.is_new(step) {
                continue;
            }
            let kind = match self.detail {
                Detail::Full => format!(" {faint}[{}]{faint:#}", label(step)),
                Detail::Brief => String::new(),
            };
            // A step by itself contradicts what is there, and orders nothing.
            let order = if steps.len() > 1 || depth > 1 { self.order(step) } else { String::new() };
            writeln!(out, "{:indent$}{order}{}.{kind}", "", step.said)?;
            if self.detail == Detail::Full {
                self.steps(out, &step.because, depth + 1, told)?;
                if let Some(cases) = &step.cases {
                    self.cases(out, cases, depth + 1)?;
                }
            }
        }
        Ok(())
    }

    /// `T1 before T2: `, where a step orders two transactions.
    fn order(&self, step: &Step) -> String {
        match &step.from {
            Some(from) if *from != step.to => {
                format!("{} before {}: ", self.finding.label_of(from), self.finding.label_of(&step.to))
            }
            _ => String::new(),
        }
    }

    /// One case after the other, each with its own end.
    fn cases(&self, out: &mut String, cases: &'f Cases, depth: usize) -> std::fmt::Result {
        let indent = 2 * depth;
        for case in &cases.told {
            // What follows in one case is written there, even if it follows in another, too.
            let mut told = ToldSteps::default();
            writeln!(out, "{:indent$}If {}:", "", case.said)?;
            self.steps(out, &case.explanation, depth + 1, &mut told)?;
            if let Some(cases) = &case.cases {
                self.cases(out, cases, depth + 1)?;
            }
            if let Some(end) = end_of(self.finding, &case.explanation) {
                writeln!(out, "{:indent$}  Contradiction: {end}.", "")?;
            }
            if self.detail == Detail::Full && !case.support.is_empty() {
                writeln!(out, "{:indent$}  This relies on:", "")?;
                self.steps(out, &case.support, depth + 2, &mut told)?;
            }
        }
        match left_out(cases) {
            Some(more) => writeln!(out, "{:indent$}{more}", ""),
            None => Ok(()),
        }
    }
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
        None => end_of(finding, &finding.explanation),
    }
}

/// Whether every step leads to the next, and the last to the first.
pub(crate) fn is_cycle(steps: &[Step]) -> bool {
    let nexts = steps.iter().cycle().skip(1);
    steps.len() > 1 && steps.iter().zip(nexts).all(|(step, next)| Some(&step.to) == next.from.as_ref())
}

/// What steps come to: a cycle, or two lists that contradict each other.
pub(crate) fn end_of(finding: &Finding, steps: &[Step]) -> Option<String> {
    let name = |name: &str| finding.label_of(name);
    let closes = is_cycle(steps);
    if let [one, two] = steps
        && !closes
        && [one, two].iter().all(|step| step.edge == "wr")
    {
        let (first, second) = (name(&two.to), name(&one.to));
        return Some(format!("{first} and {second} saw the list in orders that contradict each other"));
    }
    if !closes {
        return None;
    }
    let names: Vec<String> = steps.iter().filter_map(|step| step.from.as_deref()).map(name).collect();
    match names.as_slice() {
        [one, two] => Some(format!("{one} must run before {two} and {two} before {one}")),
        [first, .., last] if names.len() > 2 * BRIEF_MAX => {
            Some(format!("{first} must run before {last} and {last} before {first}"))
        }
        [first, ..] => Some(format!("{} before {first}", names.join(" before "))),
        [] => None,
    }
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
