//! One self-contained page: no external assets, light and dark, usable by keyboard and without scripts.
//!
//! The page is a list of verdicts; a violation has its argument as steps, its core as a graph, its transactions on the
//! lanes of their sessions, what would have been allowed, and the levels that fall. Pointing at a step or an edge, moving
//! the focus to it, or going through the argument step by step marks the operations it speaks of in all of them. Below,
//! the whole history at a glance, with the core and what else happened.

use crate::book::page_of;
use crate::context::Context;
use crate::lanes::{Lane, lanes};
use crate::picture::{every_step, shown_operations};
use crate::strip::{STRIP_SCRIPT, STRIP_STYLE, strip};
use crate::svg::{COLOURS, STYLE, drawing};
use crate::text::{ToldSteps, until};
use crate::timestamps::basis;
use crate::told::Tally;
use crate::{Cases, Finding, Member, Named, Overview, Part, Remark, Step, Surveyed, Told};
use isolation::{Coverage, Level, VerdictKind};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// How the page looks.
const PAGE_STYLE: &str = include_str!("page/style.css");
/// Marks what a step speaks of, and goes through the argument step by step.
const SCRIPT: &str = include_str!("page/script.js");

/// Everything a run has to tell as a page.
pub fn html(told: &Told) -> String {
    let told = &told.printable();
    let tally = told.tally();
    let title = headline(told, &tally);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style {
                    (PreEscaped(COLOURS)) (PreEscaped(STYLE)) (PreEscaped(crate::lattice::STYLE))
                    (PreEscaped(PAGE_STYLE)) (PreEscaped(STRIP_STYLE))
                }
            }
            body {
                header {
                    h1 { (title) }
                    (counts(&tally))
                }
                main {
                    (summary(told))
                    (judged_by(told))
                    @for surveyed in &told.surveys { (all_levels(surveyed)) }
                    @for (index, finding) in told.findings.iter().enumerate() {
                        @if finding.anomaly.is_some() { (violation(index, finding, overview_of(told, finding))) }
                    }
                    @for overview in &told.overviews { (strip(overview, &told.findings)) }
                    @if !told.troubles.is_empty() { (troubles(told)) }
                }
                footer { "Taipan " (env!("CARGO_PKG_VERSION")) }
                script { (PreEscaped(SCRIPT)) (PreEscaped(STRIP_SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn overview_of<'t>(told: &'t Told, finding: &Finding) -> Option<&'t Overview> {
    told.overviews.iter().find(|overview| overview.file == finding.file)
}

fn headline(told: &Told, tally: &Tally) -> String {
    let file = match told.findings.as_slice() {
        [] => None,
        [first, rest @ ..] => rest.iter().all(|other| other.file == first.file).then_some(&first.file),
    };
    let what = match (tally.violated, tally.undecided, tally.accepted) {
        (0, 0, 0) => "nothing was checked",
        (0, 0, _) => VerdictKind::Accepted.name(),
        (0, _, _) => VerdictKind::Undecided.name(),
        _ => VerdictKind::Violated.name(),
    };
    match file {
        Some(file) => format!("{file}: {what}"),
        None => format!("Isolation check: {what}"),
    }
}

fn counts(tally: &Tally) -> Markup {
    html! {
        p.counts {
            @for (class, count, what) in [
                (VerdictKind::Violated.name(), tally.violated, VerdictKind::Violated.name()),
                (VerdictKind::Undecided.name(), tally.undecided, VerdictKind::Undecided.name()),
                (VerdictKind::Accepted.name(), tally.accepted, VerdictKind::Accepted.name()),
                ("trouble", tally.troubles, "not checked"),
            ] {
                @if count > 0 { span.badge.(class) { (count) " " (what) } " " }
            }
        }
    }
}

fn summary(told: &Told) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "History" }
                th scope="col" { "Level" }
                th scope="col" { "Verdict" }
                th scope="col" { "Why" }
                th.number scope="col" { "Transactions" }
                th.number scope="col" { "Checked in" }
            } }
            tbody {
                @for (index, finding) in told.findings.iter().enumerate() {
                    tr {
                        td.file { (finding.file) }
                        td.level { (finding.claim) }
                        td { span.badge.(finding.verdict) { (finding.verdict) } }
                        td.why {
                            @if let Some(anomaly) = &finding.anomaly {
                                a href={ "#violation-" (index) } { (anomaly.in_words()) }
                            } @else if let Some(reason) = &finding.reason {
                                (reason)
                            } @else if let Some(coverage) = &finding.coverage {
                                (tested(coverage))
                            }
                            @if finding.anomaly.is_none() { (notes(finding)) }
                        }
                        td.number { (crate::text::grouped(finding.size.transactions)) }
                        td.number { (crate::text::duration(finding.cost.check_ms)) }
                    }
                }
            }
        }
    }
}

/// What else there is to say of a finding.
fn notes(finding: &Finding) -> Markup {
    html! { @for note in &finding.notes { div.note { "Note: " (note) "." } } }
}

/// What the order of transactions is judged by, where that is the same for all.
fn judged_by(told: &Told) -> Markup {
    let mut all: Vec<&str> = told.findings.iter().map(|finding| basis(&finding.claim)).collect();
    all.dedup();
    html! { @if let [only] = all.as_slice() { p { (only) "." } } }
}

/// What an accepted history tested, and what it lacks to test more.
fn tested(coverage: &Coverage) -> Markup {
    let lacks: Vec<String> =
        coverage.blind_spots.iter().map(|spot| format!("{}: {}", spot.anomaly, spot.lacks)).collect();
    html! { div title=(lacks.join("\n")) { (crate::text::coverage_lines(coverage).join("; ")) } }
}

fn all_levels(surveyed: &Surveyed) -> Markup {
    html! {
        section {
            h2 { "All levels: " code { (surveyed.file) } }
            div.scroll tabindex="0" role="group" aria-label="All levels" {
                (PreEscaped(crate::lattice::drawing(&surveyed.marks, "")))
            }
        }
    }
}

fn violation(index: usize, finding: &Finding, overview: Option<&Overview>) -> Markup {
    let anomaly = finding.anomaly.as_ref().map(Named::in_words).unwrap_or_default();
    let page = finding.anomaly.as_ref().and_then(page_of);
    let mut told = ToldSteps::default();
    html! {
        section.violation id={ "violation-" (index) } aria-labelledby={ "violation-" (index) "-name" } {
            h2 id={ "violation-" (index) "-name" } { span.badge.violated { "violated" } " " (anomaly) (crate::text::keys(finding)) }
            @if let Some(page) = page { p.meaning { strong { (page.name_with(finding.explanation.len())) ". " } (page.lead()) } }
            p {
                "Expected level: " strong { (finding.claim) } " — " (finding.claim.level.promise())
                ". It forbids " (forbidden(finding.claim.level)) ". " (basis(&finding.claim)) "."
            }
            (notes(finding))
            p {
                @if finding.transactions.len() == 1 { "This transaction of " code { (finding.file) } " is impossible" }
                @else {
                    "These " (finding.transactions.len()) " of the " (crate::text::grouped(finding.size.transactions))
                    " transactions of " code { (finding.file) } " cannot all have happened"
                }
                " under " strong { (finding.claim) } "."
            }
            @if !finding.explanation.is_empty() {
                (argument(finding, &mut told))
                h3 {
                    "The transactions and what orders them"
                    @if let Some(case) = crate::picture::first_case(finding) { " in " (case) }
                }
                div.scroll tabindex="0" role="group" aria-label="The transactions and what orders them" {
                    (PreEscaped(drawing(finding, "", &format!("v{index}-"))))
                }
                (legend(finding))
            }
            @if let Some(counted) = &finding.counted {
                h3 { "The argument" }
                p.so { "Contradiction: " (counted) "." }
            }
            @if !finding.support.is_empty() {
                h3 { "Inferences used above" }
                ul.steps { @for step in &finding.support { (argument_step(finding, step, None, &mut told)) } }
            }
            h3 { "The sessions" }
            div.scroll tabindex="0" role="group" aria-label="The sessions" {
                (session_lanes(finding, overview.map_or(&[][..], |overview| &overview.remarks)))
            }
            @if let Some(part) = &finding.part { (smallest_part(index, finding, part)) }
        }
    }
}

fn forbidden(level: Level) -> &'static str {
    level.row().map_or("what it forbids", |row| row.forbids)
}

/// The steps, and buttons to go through them one by one.
fn argument<'f>(finding: &'f Finding, told: &mut ToldSteps<'f>) -> Markup {
    let end = crate::text::conclusion(finding);
    html! {
        h3 { "The argument" }
        div.walk hidden {
            button type="button" data-walk="-1" { "← Back" }
            " "
            button type="button" data-walk="1" { "Step through →" }
            " "
            span.now role="status" {}
        }
        @if let Some(cases) = &finding.cases { (case_distinction(finding, cases, true)) }
        @else {
            ol.steps {
                @for (place, step) in finding.explanation.iter().enumerate() { (argument_step(finding, step, Some(place), told)) }
            }
        }
        @if let Some(end) = end {
            p.so { "Contradiction: " (end) "." }
        }
    }
}

/// One case after the other. The steps of the first are those that the picture shows.
fn case_distinction(finding: &Finding, cases: &Cases, is_shown: bool) -> Markup {
    html! {
        ul.cases {
            @for (number, case) in cases.told.iter().enumerate() {
                @let mut told = ToldSteps::default();
                li {
                    "If " (case.said) ":"
                    @if let Some(cases) = &case.cases { (case_distinction(finding, cases, is_shown && number == 0)) }
                    @else {
                        ol.steps {
                            @for (place, step) in case.explanation.iter().enumerate() {
                                (argument_step(finding, step, Some(place).filter(|_| is_shown && number == 0), &mut told))
                            }
                        }
                    }
                    @if let Some(end) = crate::text::end_of(finding, &case.explanation) { p.so { "Contradiction: " (end) "." } }
                    @if !case.support.is_empty() {
                        p { "This relies on:" }
                        ul.steps { @for step in &case.support { (argument_step(finding, step, None, &mut told)) } }
                    }
                }
            }
            @if let Some(more) = crate::text::left_out(cases) { li { (more) } }
        }
    }
}

/// What the kinds of edges mean, of those that are there.
fn legend(finding: &Finding) -> Markup {
    let steps = every_step(finding);
    let kinds = [
        ("wr", "read what the other wrote"),
        ("ww", "overwrote what the other wrote"),
        ("rw", "overwrote what the other had read"),
        ("so", "later in the same session"),
        ("rt", "began after the other had ended"),
        ("ts", "later by the database's timestamps"),
        ("added", "later, as a module of the level says"),
    ];
    html! {
        p.legend {
            "An arrow leads from what came first to what came after it: "
            @for (place, (kind, meaning)) in
                kinds.iter().filter(|(kind, _)| steps.iter().any(|step| step.edge == *kind)).enumerate()
            {
                @if place > 0 { "; " }
                span.edge.(kind) { (kind) } " " (meaning)
            }
            "."
        }
    }
}

/// A step with the steps it follows from. Steps of the argument itself can be pointed at.
fn argument_step<'f>(
    finding: &Finding,
    step: &'f Step,
    place: Option<usize>,
    told: &mut ToldSteps<'f>,
) -> Markup {
    if !told.is_new(step) && place.is_none() {
        return html! {};
    }
    let mut places: Vec<&crate::Place> = Vec::new();
    let mut open = vec![step];
    while let Some(step) = open.pop() {
        places.extend(&step.places);
        open.extend(&step.because);
    }
    let ops: Vec<String> =
        places.iter().map(|place| format!("{}/{}", place.transaction, place.operation)).collect();
    let label = crate::picture::label(step);
    let edge = html! {
        span.edge.(step.edge) {
            (step.from.as_deref().map_or_else(|| "initial state".to_owned(), |from| finding.label_of(from)))
            " → " (finding.label_of(&step.to)) " " (label)
        }
        " " span.sentence { (step.said) "." }
        @if !step.because.is_empty() {
            ul.steps { @for inner in &step.because { (argument_step(finding, inner, None, told)) } }
        }
        @if let Some(cases) = &step.cases { (case_distinction(finding, cases, false)) }
    };
    match place {
        Some(place) => html! { li tabindex="0" data-step=(place) data-ops=(ops.join("\n")) { (edge) } },
        None => html! { li { (edge) } },
    }
}

/// One lane a session; columns are moments in the order of the clients' clocks where all have them, and then what
/// happened meanwhile has a lane, too.
fn session_lanes(finding: &Finding, remarks: &[Remark]) -> Markup {
    let lanes = lanes(crate::text::shown_members(finding), remarks);
    let below = usize::from(!lanes.events.is_empty());
    html! {
        div.lanes style={ "grid-template-columns:max-content repeat(" (lanes.columns) ",auto)" } {
            @if below > 0 { div.session style="grid-row:1" { "meanwhile" } }
            @for event in &lanes.events {
                div.event style={ "grid-row:1;grid-column:" (event.from + 2) "/" (event.to + 3) } {
                    span.clock { (event.remark.at) @if let Some(until) = event.remark.until { "…" (until) } }
                    " " (event.remark.text)
                }
            }
            @for (row, lane) in lanes.lanes.iter().enumerate() { (session_lane(finding, lane, row + 1 + below)) }
        }
        @if let Some(rest) = crate::text::rest_of(finding) { p.legend { (rest) } }
    }
}

fn session_lane(finding: &Finding, lane: &Lane<'_>, row: usize) -> Markup {
    html! {
        div.session style={ "grid-row:" (row) } { "session " (lane.session) }
        @for stay in &lane.stays {
            div.txn.(stay.member.status) style={ "grid-row:" (row) ";grid-column:" (stay.from + 2) "/" (stay.to + 3) } {
                (transaction(finding, stay.member))
            }
        }
    }
}

fn transaction(finding: &Finding, member: &Member) -> Markup {
    let (operations, more) = shown_operations(finding, member, 12);
    html! {
        div.name {
            (member.label)
            span.clock { " " (member.name) }
            @if member.status != "committed" { " (" (member.status) ")" }
            @if let Some((begin, end)) = member.client { span.clock { " " (begin) "…" (until(end)) } }
            @if let Some((start, commit)) = &member.db { span.clock { " db " (start) "…" (commit) } }
        }
        ol {
            @for (place, words) in operations { li data-op={ (member.name) "/" (place) } { (words) } }
            @if more > 0 { li.more { "and " (more) " more" } }
        }
        @if let Some(ctx) = &member.ctx { (context(member, &Context::of(ctx))) }
    }
}

/// Statements, each with what it read or wrote where that can be reported, and what else was recorded.
fn context(member: &Member, context: &Context) -> Markup {
    let is_paired = context.sql.len() == member.operations.len();
    html! {
        details.ctx {
            summary { (if context.sql.is_empty() { "context" } else { "SQL" }) }
            @if !context.sql.is_empty() {
                ol {
                    @for (place, statement) in context.sql.iter().enumerate() {
                        li {
                            code { (statement) }
                            @if is_paired { " " span.values { (member.operations[place]) } }
                        }
                    }
                }
            }
            @if let Some(rest) = &context.rest { p { (rest) } }
        }
    }
}

/// What the smallest part shows: what would have been allowed, what falls, and the part itself.
fn smallest_part(index: usize, finding: &Finding, part: &Part) -> Markup {
    let names = |names: &[&str]| names.join(", ");
    let weakest: Vec<&str> = part.weakest.iter().map(|level| level.name()).collect();
    html! {
        @if !part.instead.is_empty() {
            h3 { "Results that would have been allowed" }
            ul.steps {
                @for other in &part.instead {
                    li {
                        strong { (finding.label_of(&other.transaction)) } " " (crate::text::alternatives(other))
                        span.clock { " instead of " (other.seen) }
                    }
                }
            }
        }
        @if !weakest.is_empty() {
            h3 { "The levels" }
            p {
                "Breaks: " strong { (names(&weakest)) }
                @let also = part.also_broken();
                @if !also.is_empty() { " and every stronger level (" (names(&also)) ")" }
                "."
                @let (allowed, has_weaker) = part.strongest_allowed();
                @if !allowed.is_empty() {
                    " Allowed by: " (names(&allowed)) @if has_weaker { " and every weaker level" } "."
                }
            }
            details open[index == 0] {
                summary { "All levels, the strongest on top" }
                div.scroll tabindex="0" role="group" aria-label="All levels, the strongest on top" {
                    (PreEscaped(crate::lattice::drawing(&part.marks, "")))
                }
            }
        }
        h3 { "Minimal reproduction" }
        p {
            (part.transactions) " transactions, " (part.operations) " operations"
            @if !part.is_minimal { " (timed out before it was shown to be minimal)" }
            ". Save as " code { "bug.hist" } " and run " code { "taipan check bug.hist" } ":"
        }
        pre.part tabindex="0" role="group" aria-label="Minimal reproduction" { (part.notation) }
    }
}

fn troubles(told: &Told) -> Markup {
    html! {
        section {
            h2 { "Files that could not be checked" }
            @for trouble in &told.troubles { pre.trouble { (trouble.message) } }
        }
    }
}
